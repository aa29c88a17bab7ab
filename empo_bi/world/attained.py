"""Which goals are achieved in a whole block of packed states, from their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from empo_bi.types import BoolArray, IndexArray
from empo_bi.world.conditions import InCells
from empo_bi.world.goals import ConditionGoal, PossibleGoal, ReachCellGoal, ReachRectangleGoal
from empo_bi.world.model import State
from empo_bi.world.rectangles import Rectangle

if TYPE_CHECKING:
    from empo_bi.world.agent_fields import AgentFields

_TABLE_BYTES = 1 << 24


def attained(
    fields: AgentFields, steps: npt.ArrayLike, states: Callable[[], Sequence[State]], goals: Sequence[PossibleGoal]
) -> BoolArray:
    """Whether each goal is achieved in each state, ``(S, G)``.

    Goals of reaching cells take one table look-up per state and agent, other conditions one look at the fields that they ask
    for. For all other goals, states are decoded and checked one by one, once for all such goals.
    """
    table_SG = np.zeros((len(fields), len(goals)), dtype=bool)
    others = []
    by_agent: dict[int, list[int]] = {}
    for g, goal in enumerate(goals):
        if _places(goal) is not None:
            by_agent.setdefault(goal.human_agent_index, []).append(g)  # type: ignore[attr-defined]
        elif type(goal) is ConditionGoal:
            table_SG[:, g] = goal.condition.holds(fields, goal.human_agent_index, steps)
        elif hasattr(goal, "is_achieved"):
            others.append(g)
        else:
            raise TypeError(f"{goal!r} is not a goal; give goals alone, without the weights that generators yield with them")
    for agent, members in by_agent.items():
        places_G = [_places(goals[g]) or () for g in members]
        cell_S = fields.cell(agent)
        is_used = np.zeros(len(fields.world.cell_xy), dtype=bool)
        is_used[cell_S] = True
        cell_C, row_S = np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[cell_S]
        for some in _stretches(places_G, len(cell_C)):
            table_SG[:, members[some]] = _inside(fields, places_G[some], cell_C)[row_S]
    if others:
        for s, state in enumerate(states()):
            table_SG[s, others] = [bool(goals[g].is_achieved(state)) for g in others]
    return table_SG


def _stretches(places_G: Sequence[tuple[Rectangle, ...]], n_cells: int) -> Iterator[slice]:
    """Goals to look at together: a table of their places by cells has a few megabytes, or one goal."""
    first, n_places = 0, 0
    for g, places in enumerate(places_G):
        if g > first and (n_places + len(places)) * n_cells > _TABLE_BYTES:
            yield slice(first, g)
            first, n_places = g, 0
        n_places += len(places)
    yield slice(first, len(places_G))


def _inside(fields: AgentFields, places_G: Sequence[tuple[Rectangle, ...]], cell_C: IndexArray) -> BoolArray:
    """(C, G), which of some cells lie in some place of which goal; each goal has at least one."""
    inside_CP = fields.cells_inside([place for places in places_G for place in places], cell_C)
    if inside_CP.shape[1] == len(places_G):
        return inside_CP
    first_G = np.cumsum([0, *(len(places) for places in places_G[:-1])])
    found: BoolArray = np.logical_or.reduceat(inside_CP, first_G, axis=1)
    return found


def ignores_the_step(goal: PossibleGoal) -> bool:
    """Whether a compiled goal holds in all or none of the states that differ only in their step; unknown ones may not."""
    return _places(goal) is not None or (type(goal) is ConditionGoal and not goal.condition.uses_step)


def _places(goal: PossibleGoal) -> tuple[Rectangle, ...] | None:
    """The cells that a goal is about, if that is all. A subclass may define is_achieved differently: exact classes only."""
    if type(goal) in (ReachCellGoal, ReachRectangleGoal):
        return (goal.target_rect,)  # type: ignore[attr-defined]
    is_place = type(goal) is ConditionGoal and type(goal.condition) is InCells
    return goal.condition.cells if is_place else None  # type: ignore[attr-defined]
