"""How goals are called, and which goal somebody means: itself, its number, its name, or the cells that it is about."""

from __future__ import annotations

from typing import Any

import numpy as np

from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.runtime.wording import did_you_mean, short_repr
from empo_bi.world.goals import ReachGoal, ReachStatesGoal

LISTED = 20


def label_of(goal: Any) -> str:
    """A short name: ``8,2`` or ``1,2 to 1,3`` for cells, the name of a set of states, or else how the goal prints."""
    if isinstance(goal, ReachGoal):
        x1, y1, x2, y2 = goal.target_rect
        return f"{x1},{y1}" if (x1, y1) == (x2, y2) else f"{x1},{y1} to {x2},{y2}"
    return goal.name if isinstance(goal, ReachStatesGoal) else short_repr(goal, 30)


def goal_number(columns: GoalColumns, human: int, asked: Any) -> int:
    """The number of a goal among those of a human, axis G of arrays.

    Parameters
    ----------
    columns : the goals of all humans
    human : agent
    asked : the goal itself, its number, its name (as it prints), or its cells, such as "8,2", "1,2 to 1,3" or "1,2,1,3"

    Raises
    ------
    ValueError
        That says which goals there are.
    """
    if human not in columns.humans:
        raise ValueError(f"agent {human!r} is not among the humans {columns.humans} of this solution")
    h = columns.humans.index(human)
    known = [goal for goal in columns.goals[h] if goal is not None]
    labels = [label_of(goal) for goal in known]
    for g, goal in enumerate(known):
        if asked is goal or (asked is not None and not isinstance(asked, str) and _equal(asked, goal)):
            return g
    if isinstance(asked, str):
        names = columns.names[h][: len(known)]
        spellings = [
            {name, repr(goal), label, _plain(label)} for name, goal, label in zip(names, known, labels, strict=True)
        ]
        for g, spelled in enumerate(spellings):
            if asked in spelled or _plain(asked) in spelled or _plain(asked) == _corners(known[g]):
                return g
    is_number = isinstance(asked, int | np.integer) and not isinstance(asked, bool)
    if is_number and 0 <= asked < len(known):
        return int(asked)
    listed = "; ".join(labels[:LISTED]) + ("; ..." if len(labels) > LISTED else "")
    hint = did_you_mean(asked, [*columns.names[h], *labels]) if isinstance(asked, str) else ""
    raise ValueError(
        f"goal {short_repr(asked)}: human {human} has no such goal, but these, numbered from 0: {listed}; give one of "
        f"solution.goals[{human}], its number, its name or its cells.{hint}"
    )


def _equal(asked: Any, goal: Any) -> bool:
    try:
        return bool(asked == goal)
    except Exception:  # goals of users may compare as they like
        return False


def _plain(text: str) -> str:
    """Cells as numbers with commas: ``1,2 to 1,3`` and ``(1, 2, 1, 3)`` are the same."""
    return text.replace(" ", "").replace("to", ",").strip("()")


def _corners(goal: Any) -> str | None:
    return ",".join(map(str, goal.target_rect)) if isinstance(goal, ReachGoal) else None
