"""Short names of goals, and finding a goal by itself, by its number, by its name, or by its cells."""

from __future__ import annotations

import numpy as np

from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.problem.protocols import Goal
from empo_bi.problem.stored_goals import StoredGoal
from empo_bi.runtime.wording import did_you_mean, short_repr
from empo_bi.world.conditions import InCells
from empo_bi.world.goals import ConditionGoal, ReachGoal, ReachStatesGoal, cells_of
from empo_bi.world.rectangles import in_words

LISTED = 20  # goals in a message

GoalLike = Goal | int | str  # a goal, its number, its name, or its cells


def label_of(goal: object) -> str:
    """A short name: its own, ``8,2`` or ``1,2 to 1,3`` for cells, a condition in words, or else the goal's ``repr``."""
    if isinstance(goal, ReachGoal):
        return in_words(goal.target_rect)
    if isinstance(goal, ConditionGoal | StoredGoal):
        return goal.label
    return goal.name if isinstance(goal, ReachStatesGoal) else short_repr(goal, 30)


def goal_number(columns: GoalColumns, human: int, wanted: GoalLike | None) -> int:
    """The number of a goal among those of a human: its index on axis G of arrays.

    Parameters
    ----------
    columns : the goals of all humans
    human : agent
    wanted : the goal itself, its number, its name (as it prints), or its cells, such as "8,2", "1,2 to 1,3" or "1,2,1,3"

    Raises
    ------
    ValueError
        If there is no such goal; the message lists the goals there are.
    """
    if human not in columns.humans:
        raise ValueError(f"agent {human!r} is not among the humans {columns.humans} of this solution")
    h = columns.humans.index(human)
    known = [goal for goal in columns.goals[h] if goal is not None]
    labels = [label_of(goal) for goal in known]
    for g, goal in enumerate(known):
        if wanted is goal or (wanted is not None and not isinstance(wanted, str) and _equal(wanted, goal)):
            return g
    if isinstance(wanted, str):
        names = columns.names[h][: len(known)]
        by_name = [{name, repr(goal), label} for name, goal, label in zip(names, known, labels, strict=True)]
        for spellings, spelled in ((by_name, wanted), ([_places(goal) for goal in known], _plain(wanted))):
            for g, found in enumerate(spellings):
                if spelled in found:
                    return g
    if isinstance(wanted, int | np.integer) and not isinstance(wanted, bool) and 0 <= wanted < len(known):
        return int(wanted)
    listed = "; ".join(labels[:LISTED]) + ("; ..." if len(labels) > LISTED else "")
    hint = did_you_mean(wanted, [*columns.names[h], *labels]) if isinstance(wanted, str) else ""
    raise ValueError(
        f"goal {short_repr(wanted)}: human {human} has no such goal; its goals, numbered from 0, are {listed}. Give one of "
        f"solution.goals[{human}], its number, its name or its cells.{hint}"
    )


def has_goal(columns: GoalColumns, human: int, wanted: GoalLike) -> bool:
    """Whether a human has such a goal."""
    try:
        goal_number(columns, human, wanted)
    except ValueError:
        return False
    return True


def _equal(wanted: object, goal: object) -> bool:
    try:
        return bool(wanted == goal)
    except Exception:  # users' goals may raise whatever they like
        return False


def _plain(text: str) -> str:
    """Cells as numbers with commas: ``1,2 to 1,3`` and ``(1, 2, 1, 3)`` are the same."""
    return text.replace(" ", "").replace("to", ",").strip("()")


def _places(goal: object) -> set[str]:
    """Plain spellings of the place of a goal that asks for nothing else; of any other goal its name without blanks."""
    cells = cells_of(goal) or ()
    is_place = not isinstance(goal, ConditionGoal) or isinstance(goal.condition, InCells)
    if not is_place or len(cells) != 1:
        return {label_of(goal).replace(" ", "")}
    return {_plain(in_words(cells[0])), ",".join(map(str, cells[0]))}
