"""Reports of states for loops that ask about the same ones again and again, as those by agent, goal and action do."""

from __future__ import annotations

import functools
from typing import Any

from empo_bi import Solution
from empo_bi.results.state_report import StateReport


@functools.lru_cache(maxsize=20_000)
def report_of(solution: Solution, state: Any) -> StateReport:
    """``solution.at(state)``, asked once."""
    return solution.at(state)
