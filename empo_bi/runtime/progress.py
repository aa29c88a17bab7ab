"""Progress bars: on stderr, only for what takes over a second, gone when done."""

from __future__ import annotations

import sys
from typing import Any

from tqdm.auto import tqdm


def level_bar(what: str, n_levels: int | None, shown: bool) -> Any:
    """A bar over levels; ``n_levels`` is None where their number is not known beforehand."""
    return tqdm(total=n_levels, unit="level", desc=what, delay=1, leave=False, disable=not shown)


def run_bar(what: str, n_runs: int, shown: bool) -> Any:
    """A bar over runs."""
    return tqdm(total=n_runs, unit="run", desc=what, delay=1, leave=False, disable=not shown)


def say(text: str) -> None:
    """A line on stderr that does not break a bar."""
    tqdm.write(f"empo_bi: {text}", file=sys.stderr)
