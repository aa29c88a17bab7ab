"""Events: what may hold in a state, for questions such as "how likely, by when" (``probability_by_time``, ``first_of``).

An event is a goal, what one of the functions below returns, or a plain function of a state tuple. Compiled goals, and
whatever looks only at fields of packed states, take one look at all packed bodies at once; anything else is asked about
every state that can come about, one by one.

>>> from empo_bi import events, first_of, load_world, solve
>>> solution = solve(load_world("mirror_freeing"), progress=False)
>>> freed = first_of(solution, [events.thing_gone("rock", (2, 2)), events.thing_gone("rock", (6, 2))])
>>> bool(abs(freed.first[0] - freed.first[1]) < 1e-3), freed.tie
(True, 0.0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.dag.slices import as_array
from empo_bi.runtime.wording import short_repr
from empo_bi.types import BoolArray, IndexArray, KeyArray
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.attained import ignores_the_step
from empo_bi.world.fields import StateFields
from empo_bi.world.goals import ConditionGoal, ReachStatesGoal
from empo_bi.world.rectangles import rectangle

Event = Any  # a goal, an event by fields, or a function of a state
Indicator = Callable[[int, IndexArray], BoolArray]  # level, places of M states there -> (M,)


@dataclass(frozen=True)
class FieldsEvent:
    """An event of a world on a map that is computed from fields of packed states: ``function(fields)`` is (S,) booleans.

    ``fields`` are :class:`AgentFields`; those of gridworlds, :class:`StateFields`, know things and doors, too.
    """

    function: Callable[..., object]
    name: str = "by_fields"

    def __repr__(self) -> str:
        return self.name

    def __call__(self, fields: AgentFields) -> BoolArray:
        try:
            found = np.asarray(self.function(fields))
        except AttributeError as error:
            if error.obj is not fields:
                raise
            raise TypeError(
                f"event {self.name} asks for fields.{error.name}, which states of {short_repr(fields.world)} do not have"
            ) from error
        if found.shape != (len(fields),) or found.dtype != np.bool_:
            raise ValueError(
                f"event {self.name} gave {found.dtype} of shape {found.shape} for {len(fields)} states; expected one "
                "boolean each, such as fields.direction(0) == 3"
            )
        return found


def by_fields(function: Callable[..., object]) -> FieldsEvent:
    """Mark a function of the fields of packed states, which returns (S,) booleans, as an event; also as a decorator."""
    return FieldsEvent(function, getattr(function, "__name__", "by_fields"))


def agent_in(agent: int, area: Sequence[int]) -> FieldsEvent:
    """An agent is on a cell ``(x, y)``, or in a rectangle ``(x1, y1, x2, y2)``, corners included."""
    area = rectangle(area)
    return FieldsEvent(lambda fields: fields.inside(agent, area), f"agent_in({agent}, {area})")


def door_open(cell: Sequence[int]) -> FieldsEvent:
    """The door on a cell is open."""
    x, y = cell
    return FieldsEvent(lambda fields: fields.is_open((x, y)), f"door_open({(x, y)})")


def carries(agent: int, kind: str) -> FieldsEvent:
    """An agent has a thing of a kind in its hands: a key, a ball or a box."""
    return FieldsEvent(lambda fields: fields.carries(agent, kind), f"carries({agent}, {kind!r})")


def thing_gone(kind: str, cell: Sequence[int]) -> FieldsEvent:
    """What lies on a cell at the start (a block, rock, key, ball or box) does not lie there: it was pushed or taken away."""
    x, y = cell
    name = f"thing_gone({kind!r}, {(x, y)})"

    def is_gone(fields: StateFields) -> BoolArray:
        start = type(fields)(fields.world, fields.world.initial_key)
        if not start.holds(kind, (x, y))[0]:
            lie = [tuple(xy) for xy in start.things(kind)[0].tolist()]
            raise ValueError(f"{name}: there is no {kind} on that cell at the start; they lie on {lie or 'no cell'}")
        return ~fields.holds(kind, (x, y))

    return FieldsEvent(is_gone, name)


def indicator_of(event: Event, dag: Dag) -> Indicator:
    """Tells in which states of a level an event holds."""
    if isinstance(event, FieldsEvent):
        fields_of = dag.model.fields
        if fields_of is None:
            raise TypeError(
                f"{event!r} is computed from the fields of a gridworld, and {short_repr(dag.world)} is not one; give a "
                "goal, or a function of a state"
            )
        return _by_body(dag, lambda key_BW: event(fields_of(key_BW)))
    packed = dag.model.packed
    if packed is not None and (type(event) is ReachStatesGoal or ignores_the_step(event)):
        return _by_body(dag, lambda key_BW: packed.attainment(0, key_BW, [event])[:, 0])
    if packed is not None and type(event) is ConditionGoal:
        return lambda t, place_M: packed.attainment(dag.level_values[t], _keys(dag, t, place_M), [event])[:, 0]
    ask = getattr(event, "is_achieved", event)
    if not callable(ask) or isinstance(event, type):
        raise TypeError(f"{short_repr(event)} is not an event; give a goal, one of empo_bi.events, or a function of a state")

    def by_state(t: int, place_M: IndexArray) -> BoolArray:
        return np.fromiter((_truth(ask(state), event) for state in dag.states(t, place_M)), np.bool_, len(place_M))

    return by_state


def _truth(answer: Any, event: Event) -> bool:
    """Whatever is no yes or no was probably meant to be compared with something."""
    if not isinstance(answer, bool | np.bool_) and (not isinstance(answer, int | float | np.number) or answer not in (0, 1)):
        raise TypeError(f"event {short_repr(event)} said {short_repr(answer)} of a state; expected True or False")
    return bool(answer)


def _keys(dag: Dag, t: int, place_M: IndexArray) -> KeyArray:
    key_MW = dag.keys(t, place_M)
    assert key_MW is not None
    return key_MW


def _by_body(dag: Dag, look: Callable[[Any], BoolArray]) -> Indicator:
    """One look at each body, whatever the number of levels that it is on."""
    holds_B = look(np.concatenate([head.key_BW for head in dag.levels.heads() if head.key_BW is not None]))
    return lambda t, place_M: holds_B[as_array(dag.levels.members(t))[place_M]]
