"""Which level, human, goal or weighting of states a question is about, with complaints about what there is none of."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from empo_bi.results.goal_names import goal_number
from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray

REACHED = "reached"  # how states of a level are weighted
MEAN = "mean"


def level_number(solution: Solution, level: int) -> int:
    """A level from 0 on; negative ones count from the last."""
    n_levels = solution.dag.horizon + 1
    if not -n_levels <= index(level) < n_levels:
        raise IndexError(f"level {level}; this solution has levels 0 to {n_levels - 1}")
    return index(level) % n_levels


def human_place(solution: Solution, human: int) -> int:
    """Where a human is along the axis H of arrays."""
    if human not in solution.humans:
        raise ValueError(f"agent {human!r} is not among the humans {solution.humans} of this solution")
    return solution.humans.index(human)


def goal_place(solution: Solution, human: int, goal: Any) -> tuple[int, int]:
    """Where a goal is along the axes H and G; it is given as :func:`goal_number` takes it."""
    g = goal_number(solution.goal_columns, human, goal)
    return human_place(solution, human), g


def weights_of(solution: Solution, t: int, over: str) -> FloatArray:
    """(S,) float64: the probability of each state of a level under both policies, or 1 each."""
    if over == REACHED:
        return np.asarray(solution.reached[t], dtype=np.float64)
    if over == MEAN:
        return np.ones(solution.dag.level_sizes[t])
    raise ValueError(f"over={over!r}; give {REACHED!r} (as likely as both policies make it) or {MEAN!r} (all alike)")
