"""Which level, human, goal or weighting of states a question is about; errors for those that do not exist."""

from __future__ import annotations

from operator import index

import numpy as np

from empo_bi.results.goal_names import GoalLike, goal_number
from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray

REACHED = "reached"  # how states of a level are weighted: by their probability under both policies, or equally
MEAN = "mean"


def level_number(solution: Solution, level: int) -> int:
    """A level, counted from 0; negative levels count from the last."""
    n_levels = solution.dag.horizon + 1
    if not -n_levels <= index(level) < n_levels:
        raise IndexError(f"level {level}; this solution has levels 0 to {n_levels - 1}")
    return index(level) % n_levels


def human_place(solution: Solution, human: int) -> int:
    """The index of a human on axis H of arrays."""
    if human not in solution.humans:
        raise ValueError(f"agent {human!r} is not among the humans {solution.humans} of this solution")
    return solution.humans.index(human)


def goal_place(solution: Solution, human: int, goal: GoalLike) -> tuple[int, int]:
    """The indices of a goal on axes H and G; it may be given in any way that :func:`goal_number` accepts."""
    g = goal_number(solution.goal_columns, human, goal)
    return human_place(solution, human), g


def weights_of(solution: Solution, t: int, over: str) -> FloatArray:
    """(S,) float64: the weight of each state of a level, its probability under both policies or 1."""
    if over == REACHED:
        return np.asarray(solution.reached[t], dtype=np.float64)
    if over == MEAN:
        return np.ones(solution.dag.level_sizes[t])
    raise ValueError(f"over={over!r}; give {REACHED!r} (by probability under both policies) or {MEAN!r} (all equally)")
