"""Conditions on an agent and the world that goals ask for: be on some cells, face north, carry a key, all or any of these.

Each can be asked of a state tuple, and of a whole block of packed states at once, from their fields. Two conditions are
equal if they mean the same thing, whatever the order in which their parts were given.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
import numpy.typing as npt

from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.wording import did_you_mean, short_repr
from empo_bi.types import BoolArray, Json
from empo_bi.world.codes import COLOURS, DIRECTION_LETTERS, DIRECTION_NAMES, ITEMS
from empo_bi.world.model import State
from empo_bi.world.rectangles import Rectangle, common_cells, in_words, rectangle

if TYPE_CHECKING:
    from empo_bi.world.agent_fields import AgentFields
    from empo_bi.world.fields import StateFields
    from empo_bi.world.lint import MapSpec

MOST_PARTS = 256  # of all and any, and places of one condition
MOST_PLACES = 4096  # that all of several lists of places may have in common
MOST_DEPTH = 6  # of all and any within each other; several keys of one entry are all of them
_SAID = 4  # places or parts that are named in words
CARRIED = tuple(kind.name.lower() for kind in ITEMS)


class Condition(ABC):
    """What may hold of an agent in a state. ``one & other`` is all of them, ``one | other`` any of them."""

    @property
    def uses_step(self) -> bool:
        """Whether it may hold in one of two states that differ only in their step."""
        return False

    @property
    def depth(self) -> int:
        """How deep all and any are nested in it."""
        return 0

    @property
    def size(self) -> int:
        """The number of single conditions in it, with one for each place."""
        return 1

    @property
    def n_places(self) -> int:
        """At most so many rectangles are its cells; 0 if the agent may be anywhere."""
        return 0

    def singles(self) -> Iterator[Condition]:
        """The conditions in it that are neither all nor any of others."""
        yield self

    @property
    def cells(self) -> tuple[Rectangle, ...] | None:
        """Where the agent has to be for it, as rectangles; None if it may be anywhere."""
        return None

    @abstractmethod
    def holds_in(self, state: State, agent: int) -> bool:
        """Whether it holds of an agent in a state tuple."""

    @abstractmethod
    def holds(self, fields: AgentFields, agent: int, steps: npt.ArrayLike) -> BoolArray:
        """(S,), whether it holds in packed states, whose steps are one number for all, or one for each."""

    @abstractmethod
    def problem(self, spec: MapSpec) -> str | None:
        """Why a world cannot have it; None if it can."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What it asks for, in a few words."""

    @property
    @abstractmethod
    def values(self) -> Json:
        """It as in a world file."""

    def __and__(self, other: Condition) -> Condition:
        return AllOf((self, other))

    def __or__(self, other: Condition) -> Condition:
        return AnyOf((self, other))


@dataclass(frozen=True, init=False)
class InCells(Condition):
    """The agent is on one of some cells (x, y), or in one of some rectangles (x1, y1, x2, y2), corners included."""

    places: tuple[Rectangle, ...]

    def __init__(self, places: Iterable[Sequence[int]]) -> None:
        found = tuple(sorted({rectangle(place) for place in places}))
        if not 1 <= len(found) <= MOST_PARTS:
            raise ValueError(f"{len(found):,} places; give 1 to {MOST_PARTS} cells or rectangles")
        object.__setattr__(self, "places", found)

    @property
    def size(self) -> int:
        return len(self.places)

    @property
    def n_places(self) -> int:
        return len(self.places)

    @property
    def cells(self) -> tuple[Rectangle, ...]:
        return self.places

    def holds_in(self, state: State, agent: int) -> bool:
        x, y = state[1][agent][:2]
        return any(x1 <= x <= x2 and y1 <= y <= y2 for x1, y1, x2, y2 in self.places)

    def holds(self, fields: AgentFields, agent: int, steps: npt.ArrayLike) -> BoolArray:
        return np.any(fields.cells_inside(self.places), axis=1)[fields.cell(agent)]

    def problem(self, spec: MapSpec) -> str | None:
        for place in self.places:
            x1, y1, x2, y2 = place
            if x1 < 0 or y1 < 0 or x2 >= spec.width or y2 >= spec.height:
                return f"{in_words(place)} is not on the grid, whose cells are 0,0 to {spec.width - 1},{spec.height - 1}"
        return None

    @property
    def words(self) -> str:
        return _listed([in_words(place) for place in self.places], "or")

    @property
    def values(self) -> Json:
        return {"cells": [list(place[:2] if place[:2] == place[2:] else place) for place in self.places]}


@dataclass(frozen=True)
class Facing(Condition):
    """The agent looks east, south, west or north."""

    direction: str

    def __post_init__(self) -> None:
        names = {name[0]: name for name in DIRECTION_NAMES}
        given = names.get(self.direction, self.direction)
        if given not in DIRECTION_NAMES:
            raise ValueError(f"{short_repr(self.direction)}; give a direction: {', '.join(DIRECTION_NAMES)}")
        object.__setattr__(self, "direction", given)

    def holds_in(self, state: State, agent: int) -> bool:
        return bool(state[1][agent][2] == DIRECTION_LETTERS[self.direction[0]])

    def holds(self, fields: AgentFields, agent: int, steps: npt.ArrayLike) -> BoolArray:
        if fields.world.n_directions == 1:
            raise TypeError(f"agents of {short_repr(fields.world)} look nowhere; ask for cells and steps")
        return fields.direction(agent) == DIRECTION_LETTERS[self.direction[0]]

    def problem(self, spec: MapSpec) -> str | None:
        return None if spec.has_directions else "agents of this world look nowhere; leave out where they look"

    @property
    def words(self) -> str:
        return f"facing {self.direction}"

    @property
    def values(self) -> Json:
        return {"facing": self.direction}


@suggests_names()
@dataclass(frozen=True)
class Carries(Condition):
    """The agent has a key, a ball or a box in its hands, of a colour or of any."""

    kind: str
    colour: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in CARRIED:
            raise ValueError(
                f"{short_repr(self.kind)}; give a kind of thing that agents carry: {', '.join(CARRIED)}."
                + did_you_mean(str(self.kind), CARRIED)
            )
        if self.colour is not None and self.colour not in COLOURS.values():
            raise ValueError(
                f"colour {short_repr(self.colour)}; give one of {', '.join(COLOURS.values())}."
                + did_you_mean(str(self.colour), COLOURS.values())
            )

    def holds_in(self, state: State, agent: int) -> bool:
        kind, colour = state[1][agent][6:8]
        return kind == self.kind and self.colour in (None, colour)

    def holds(self, fields: AgentFields, agent: int, steps: npt.ArrayLike) -> BoolArray:
        return _with_things(fields).carries(agent, self.kind, self.colour)

    def problem(self, spec: MapSpec) -> str | None:
        things = spec.items
        if any(kind == self.kind and self.colour in (None, colour) for kind, colour in things):
            return None
        there = ", ".join(sorted({f"{colour} {kind}" for kind, colour in things}))
        return f"there is no {self._thing} in this world; " + (
            f"what can be carried: {there}" if there else "nobody carries"
        )

    @property
    def _thing(self) -> str:
        return self.kind if self.colour is None else f"{self.colour} {self.kind}"

    @property
    def words(self) -> str:
        return f"carries a {self._thing}"

    @property
    def values(self) -> Json:
        return {"carries": self._thing}


@dataclass(frozen=True, init=False)
class DoorOpen(Condition):
    """The door on a cell (x, y) is open."""

    x: int
    y: int

    def __init__(self, cell: Sequence[int]) -> None:
        x, y = map(index, cell)
        object.__setattr__(self, "x", x)
        object.__setattr__(self, "y", y)

    def holds_in(self, state: State, agent: int) -> bool:
        return any(entry[:4] == ("door", self.x, self.y, True) for entry in state[3])

    def holds(self, fields: AgentFields, agent: int, steps: npt.ArrayLike) -> BoolArray:
        return _with_things(fields).is_open((self.x, self.y))

    def problem(self, spec: MapSpec) -> str | None:
        if (self.x, self.y) in spec.doors:
            return None
        there = "; ".join(f"{x},{y}" for x, y in spec.doors)
        return f"there is no door on {self.x},{self.y}; " + (f"doors are on {there}" if there else "this world has no doors")

    @property
    def words(self) -> str:
        return f"door {self.x},{self.y} open"

    @property
    def values(self) -> Json:
        return {"door": [self.x, self.y]}


@dataclass(frozen=True)
class AtStep(Condition):
    """So many steps have been taken, neither fewer nor more."""

    step: int

    def __post_init__(self) -> None:
        if isinstance(self.step, bool) or index(self.step) < 0:
            raise ValueError(f"step {short_repr(self.step)}; steps are counted from 0")

    @property
    def uses_step(self) -> bool:
        return True

    def holds_in(self, state: State, agent: int) -> bool:
        return bool(state[0] == self.step)

    def holds(self, fields: AgentFields, agent: int, steps: npt.ArrayLike) -> BoolArray:
        return np.broadcast_to(np.asarray(steps) == self.step, (len(fields),))

    def problem(self, spec: MapSpec) -> str | None:
        return None

    @property
    def words(self) -> str:
        return f"at step {self.step}"

    @property
    def values(self) -> Json:
        return {"step": self.step}


@dataclass(frozen=True, init=False)
class _Several(Condition):
    """Parts in a fixed order, each once; parts of the same class are taken apart, so that they stand side by side."""

    parts: tuple[Condition, ...]
    joined_by: ClassVar[str] = ""
    key: ClassVar[str] = ""

    def __init__(self, parts: Iterable[Condition]) -> None:
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, type(self)) else (part,))]
        wrong = [part for part in flat if not isinstance(part, Condition)]
        if wrong:
            raise TypeError(f"{short_repr(wrong[0])} is not a condition, such as InCells([(3, 2)])")
        object.__setattr__(self, "parts", tuple(sorted(set(flat), key=_rank)))
        if not 1 <= self.size <= MOST_PARTS:
            raise ValueError(f"{self.size:,} conditions and places; give 1 to {MOST_PARTS}")
        if self.n_places > MOST_PLACES:
            raise ValueError(
                f"places that have up to {self.n_places:,} rectangles in common; at most {MOST_PLACES:,} are kept"
            )
        if self.depth > MOST_DEPTH:
            raise ValueError(f"all and any are nested {self.depth} deep; nest them at most {MOST_DEPTH} deep")

    @property
    def uses_step(self) -> bool:
        return any(part.uses_step for part in self.parts)

    @property
    def depth(self) -> int:
        return 1 + max((part.depth for part in self.parts), default=0)

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def singles(self) -> Iterator[Condition]:
        return (single for part in self.parts for single in part.singles())

    def problem(self, spec: MapSpec) -> str | None:
        return next((found for part in self.parts if (found := part.problem(spec)) is not None), None)

    @property
    def words(self) -> str:
        return _listed([f"({part.words})" if part.size > 1 else part.words for part in self.parts], self.joined_by)

    @property
    def values(self) -> Json:
        return {self.key: [part.values for part in self.parts]}


class AllOf(_Several):
    """All of some conditions hold."""

    joined_by, key = "and", "all"

    @property
    def n_places(self) -> int:
        found = [part.n_places for part in self.parts if part.n_places]
        return math.prod(found) if found else 0

    @property
    def cells(self) -> tuple[Rectangle, ...] | None:
        found: tuple[Rectangle, ...] | None = None
        for part in self.parts:
            if part.cells is not None:
                found = part.cells if found is None else common_cells(found, part.cells)
        return found

    def holds_in(self, state: State, agent: int) -> bool:
        return all(part.holds_in(state, agent) for part in self.parts)

    def holds(self, fields: AgentFields, agent: int, steps: npt.ArrayLike) -> BoolArray:
        return np.logical_and.reduce([part.holds(fields, agent, steps) for part in self.parts])


class AnyOf(_Several):
    """Any of some conditions holds."""

    joined_by, key = "or", "any"

    @property
    def n_places(self) -> int:
        found = [part.n_places for part in self.parts]
        return sum(found) if all(found) else 0

    @property
    def cells(self) -> tuple[Rectangle, ...] | None:
        found = [part.cells for part in self.parts]
        return None if None in found else tuple(sorted({place for places in found for place in places or ()}))

    def holds_in(self, state: State, agent: int) -> bool:
        return any(part.holds_in(state, agent) for part in self.parts)

    def holds(self, fields: AgentFields, agent: int, steps: npt.ArrayLike) -> BoolArray:
        return np.logical_or.reduce([part.holds(fields, agent, steps) for part in self.parts])


def _with_things(fields: AgentFields) -> StateFields:
    if not hasattr(fields, "carries"):
        raise TypeError(f"states of {short_repr(fields.world)} have neither things nor doors; ask for cells and steps")
    return cast("StateFields", fields)


def _rank(condition: Condition) -> tuple[int, str]:
    """Places first, then what is done there, then when; the same in every process."""
    kinds: list[type[Condition]] = [InCells, Facing, Carries, DoorOpen, AtStep, AllOf, AnyOf]
    return kinds.index(type(condition)), repr(condition)


def _listed(words: Sequence[str], joined_by: str) -> str:
    """``7,3 or 7,4``; of many only the first are said."""
    shown = list(words) if len(words) <= _SAID else [*words[: _SAID - 1], f"{len(words) - _SAID + 1} more"]
    return f" {joined_by} ".join(shown)
