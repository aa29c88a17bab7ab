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
from functools import cache, partial
from typing import Any

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.dag.slices import as_array
from empo_bi.dag.sub_problem import Stop
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.wording import short_repr
from empo_bi.types import BoolArray, IndexArray, KeyArray
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.as_model import Model
from empo_bi.world.attained import ignores_the_step
from empo_bi.world.conditions import Carries
from empo_bi.world.fields import StateFields
from empo_bi.world.goals import ConditionGoal, ReachStatesGoal, cells_of, place_problem
from empo_bi.world.model import State
from empo_bi.world.rectangles import rectangle

Event = Any  # a goal, an event by fields, or a function of a state
KeyTest = Callable[[KeyArray], BoolArray]  # packed bodies (B, W) -> (B,)
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


@suggests_names()
def agent_in(agent: int, area: Sequence[int]) -> FieldsEvent:
    """An agent is on a cell ``(x, y)``, or in a rectangle ``(x1, y1, x2, y2)``, corners included."""
    area = rectangle(area)
    return FieldsEvent(partial(_is_inside, agent, area), f"agent_in({agent}, {area})")


@suggests_names()
def door_open(cell: Sequence[int]) -> FieldsEvent:
    """The door on a cell is open."""
    x, y = _cell(cell)
    return FieldsEvent(partial(_is_open, (x, y)), f"door_open({(x, y)})")


@suggests_names()
def carries(agent: int, kind: str) -> FieldsEvent:
    """An agent has a thing of a kind in its hands: a key, a ball or a box."""
    return FieldsEvent(partial(_carries, agent, Carries(kind)), f"carries({agent}, {kind!r})")


@suggests_names()
def thing_gone(kind: str, cell: Sequence[int]) -> FieldsEvent:
    """What lies on a cell at the start (a block, rock, key, ball or box) does not lie there: it was pushed or taken away."""
    x, y = _cell(cell)
    return FieldsEvent(partial(_is_gone, kind, (x, y)), f"thing_gone({kind!r}, {(x, y)})")


def _cell(cell: Sequence[int]) -> tuple[int, int]:
    x, y, *_ = rectangle(cell)
    if len(cell) != 2:
        raise ValueError(f"{cell!r} is a rectangle; give one cell (x, y)")
    return x, y


# Functions of this module, not closures, so that events can be identified and sent to other processes.


def _is_inside(agent: int, area: tuple[int, int, int, int], fields: AgentFields) -> BoolArray:
    return fields.inside(agent, area)


def _is_open(cell: tuple[int, int], fields: StateFields) -> BoolArray:
    return fields.is_open(cell)


def _carries(agent: int, thing: Carries, fields: StateFields) -> BoolArray:
    found = fields.carries(agent, thing.kind)
    problem = thing.problem(fields.world.world_spec)
    if problem is not None:
        raise ValueError(f"carries({agent}, {thing.kind!r}): {problem}")
    return found


def _is_gone(kind: str, cell: tuple[int, int], fields: StateFields) -> BoolArray:
    start = type(fields)(fields.world, fields.world.initial_key)
    if not start.holds(kind, cell)[0]:
        lie = [tuple(xy) for xy in start.things(kind)[0].tolist()]
        raise ValueError(
            f"thing_gone({kind!r}, {cell}): there is no {kind} on that cell at the start; they lie on {lie or 'no cell'}"
        )
    return ~fields.holds(kind, cell)


def indicators_of(events: Sequence[Event], dag: Dag) -> list[Indicator]:
    """For each of some events, what tells in which states of a level it holds. Packed bodies are read once for all."""
    keys = cache(lambda: np.concatenate([head.key_BW for head in dag.levels.heads() if head.key_BW is not None]))
    return [_indicator_of(event, dag, keys) for event in events]


def _indicator_of(event: Event, dag: Dag, keys: Callable[[], KeyArray]) -> Indicator:
    of_keys = _test_of_keys(event, dag.model)
    if of_keys is not None:
        return _by_body(dag, of_keys(keys()))
    packed = dag.model.packed
    if packed is not None and type(event) is ConditionGoal:  # one that depends on the step
        return lambda t, place_M: packed.attainment(dag.level_values[t], _keys(dag, t, place_M), [event])[:, 0]
    test = _StateTest.of(event)

    def by_state(t: int, place_M: IndexArray) -> BoolArray:
        return np.fromiter(map(test, dag.states(t, place_M)), np.bool_, len(place_M))

    return by_state


def stop_of(event: Event | None, model: Model) -> Stop | None:
    """Where a sub-problem of a world stops, if an event says so."""
    if event is None:
        return None
    of_keys = _test_of_keys(event, model)
    if of_keys is None:
        return Stop(event, _StateTest.of(event))
    packed = model.packed
    assert packed is not None
    return Stop(event, lambda state: bool(of_keys(packed.encode([state])[1])[0]), of_keys)


def _test_of_keys(event: Event, model: Model) -> KeyTest | None:
    """One look at many packed bodies, where that is all an event takes."""
    packed = model.packed
    problem = place_problem(model.world, cells_of(event) or ())
    if problem is not None:
        raise ValueError(f"event {short_repr(event)}: {problem}")
    if isinstance(event, FieldsEvent):
        fields_of = model.fields
        if fields_of is None:
            raise TypeError(
                f"{event!r} is computed from the fields of a gridworld, and {short_repr(model.world)} is not one; give a "
                "goal, or a function of a state"
            )
        return lambda key_BW: event(fields_of(key_BW))
    if packed is not None and (type(event) is ReachStatesGoal or ignores_the_step(event)):
        return lambda key_BW: packed.attainment(0, key_BW, [event])[:, 0]
    return None


@dataclass(frozen=True)
class _StateTest:
    """Asks an event about single states."""

    event: Event
    ask: Callable[[State], object]

    @classmethod
    def of(cls, event: Event) -> _StateTest:
        ask = getattr(event, "is_achieved", event)
        if not callable(ask) or isinstance(event, type):
            raise TypeError(
                f"{short_repr(event)} is not an event; give a goal of solution.goals (not its name), one of "
                "empo_bi.events, or a function of a state"
            )
        return cls(event, ask)

    def __call__(self, state: State) -> bool:
        return _truth(self.ask(state), self.event)


def _truth(answer: Any, event: Event) -> bool:
    """Whatever is no yes or no was probably meant to be compared with something."""
    if not isinstance(answer, bool | np.bool_) and (not isinstance(answer, int | float | np.number) or answer not in (0, 1)):
        raise TypeError(f"event {short_repr(event)} said {short_repr(answer)} of a state; expected True or False")
    return bool(answer)


def _keys(dag: Dag, t: int, place_M: IndexArray) -> KeyArray:
    key_MW = dag.keys(t, place_M)
    assert key_MW is not None
    return key_MW


def _by_body(dag: Dag, holds_B: BoolArray) -> Indicator:
    """One look at each body, whatever the number of levels that it is on."""
    return lambda t, place_M: holds_B[as_array(dag.levels.members(t))[place_M]]
