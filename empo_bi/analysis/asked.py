"""Which level, human, goal or weighting of states a question is about, with complaints about what there is none of."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from empo_bi.dag.slices import FloatArray
from empo_bi.errors import did_you_mean, short_repr
from empo_bi.results.solution import Solution

REACHED, MEAN = "reached", "mean"  # how states of a level are weighted


def level_number(solution: Solution, level: int) -> int:
    """A level from 0 on; negative ones count from the last."""
    n_levels = solution.dag.horizon + 1
    if not -n_levels <= index(level) < n_levels:
        raise IndexError(f"level {level}; this solution has levels 0 to {n_levels - 1}")
    return index(level) % n_levels


def human_place(solution: Solution, human: int) -> int:
    """Where a human is along the axis H of arrays."""
    if human not in solution.humans:
        raise ValueError(f"human {human!r}; the humans of this solution are the agents {solution.humans}")
    return solution.humans.index(human)


def goal_place(solution: Solution, human: int, goal: Any) -> tuple[int, int]:
    """Where a goal is along the axes H and G; it is given itself, by its number in ``solution.goals``, or by its name."""
    h = human_place(solution, human)
    goals = solution.goals[human]
    if isinstance(goal, str):
        names = solution.goal_columns.names[h][: len(goals)]
        if goal not in names:
            raise ValueError(f"goal {goal!r}; human {human} has {', '.join(names)}{did_you_mean(goal, names)}")
        return h, names.index(goal)
    if isinstance(goal, int | np.integer) and not isinstance(goal, bool) and goal not in goals:
        if not 0 <= goal < len(goals):
            raise ValueError(f"goal {goal}; human {human} has goals 0 to {len(goals) - 1}")
        return h, int(goal)
    if goal not in goals:
        raise ValueError(
            f"{short_repr(goal)} is no goal of human {human}, who has {short_repr(goals, 300)}; give one of them, its "
            "number or its name"
        )
    return h, goals.index(goal)


def weights_of(solution: Solution, t: int, over: str) -> FloatArray:
    """(S,) float64: the probability of each state of a level under both policies, or 1 each."""
    if over == REACHED:
        return np.asarray(solution.reached[t], dtype=np.float64)
    if over == MEAN:
        return np.ones(solution.dag.level_sizes[t])
    raise ValueError(f"over={over!r}; give {REACHED!r} (as likely as both policies make it) or {MEAN!r} (all alike)")
