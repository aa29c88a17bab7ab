"""Goals in world files: ``possible_goals`` in all its spellings, read, checked, and written again.

An entry is a cell, a rectangle, or a mapping with a name, a weight and what has to hold: ``cells``, ``facing``, ``carries``,
``door``, ``step``, ``all``, ``any``. The list is one for all humans, or there is one for each, by agent or colour.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import TypeVar

from empo_bi.errors import WorldFileError
from empo_bi.runtime.wording import did_you_mean, short_repr
from empo_bi.types import Json
from empo_bi.world.codes import COLOURS
from empo_bi.world.condition_values import PLACES, SINGLE, flat, n_coordinates, place_numbers
from empo_bi.world.conditions import MOST_DEPTH, MOST_PARTS, AllOf, AnyOf, Condition, InCells
from empo_bi.world.file_values import real, whole
from empo_bi.world.goal_names import checked_name
from empo_bi.world.lint import ALL, MapSpec, is_list
from empo_bi.world.rectangles import Rectangle
from empo_bi.world.source import WorldSource
from empo_bi.world.yaml_text import KeyPath

Made = TypeVar("Made")

KEY = "possible_goals"
MOST_GOALS = 1 << 16  # of all humans together
MOST_TOGETHER = 1 << 18  # places and conditions of all goals
LEAST_WEIGHT = 1e-300  # of a goal, where all weights sum to 1; smaller numbers lose digits, or are 0
_ABOUT = ("name", "weight")
_CONDITIONS = ("goal", "cells", "facing", "carries", "door", "step", "all", "any")
_OTHER_NAMES = {
    "cell": "cells", "at": "cells", "rectangle": "cells", "rectangles": "cells", "direction": "facing",
    "orientation": "facing", "has": "carries", "holds": "carries", "time": "step", "label": "name",
}  # fmt: skip


@dataclass(frozen=True)
class GoalSpec:
    """A goal of a file.

    Attributes
    ----------
    condition : what has to hold
    weight : among those of a human, which sum to 1
    name : None for goals without one
    n_coordinates : 2 for just a cell "x,y", 4 for just a rectangle, which is distinguished from it even if it is "x,y,x,y"
        (section 8.3); 0 for goals with a name, or about more than one place
    agent : whose goal it is, None for that of every human
    given_weight : as in the file, in proportion to the others
    path : where it stands in the file
    truncated : how it is written, if that has numbers that are not whole
    is_walkable : whether it is there because the file says 'all'
    """

    condition: Condition
    weight: float
    name: str | None = None
    n_coordinates: int = 0
    agent: int | None = None
    given_weight: float = field(default=1.0, compare=False)
    path: KeyPath = field(default=(KEY, 0), compare=False)
    truncated: str | None = field(default=None, compare=False)
    is_walkable: bool = field(default=False, compare=False)

    @property
    def is_cell(self) -> bool:
        return self.n_coordinates == 2

    @property
    def is_rectangle(self) -> bool:
        return self.n_coordinates == 4

    @property
    def rectangle(self) -> Rectangle:
        """Of a goal that is just a cell or a rectangle."""
        (place,) = self.condition.cells or ()
        return place

    @property
    def coordinates(self) -> tuple[int, ...] | None:
        """Two or four numbers of just a cell or a rectangle; None for other goals."""
        return self.rectangle[: self.n_coordinates] if self.n_coordinates else None

    @property
    def label(self) -> str:
        if self.coordinates is not None:
            return ",".join(map(str, self.coordinates))
        return self.condition.words if self.name is None else self.name


# --- lists ------------------------------------------------------------------------------------------------------------


def read_goals(source: WorldSource, spec: MapSpec, default: str | None = None) -> tuple[GoalSpec, ...]:
    """Goals in all their spellings (section 8.1), with normalised weights; ``default`` stands for what is not there."""
    given = source.mapping.get(KEY)
    if given is None:
        given = default or ()
    if isinstance(given, Mapping):
        found = _read_own_lists(source, spec, given)
    else:
        found = _read_list(source, spec, given, (KEY,))
    if len(found) > MOST_GOALS:
        raise source.error(KEY, message=f"{len(found):,} goals; give at most {MOST_GOALS:,}")
    n_parts = sum(max(goal.condition.size, goal.condition.n_places) for goal in found)
    if n_parts > MOST_TOGETHER:  # a name stands for all that the goal of this name asks for
        raise source.error(
            KEY, message=f"goals with {n_parts:,} places and conditions in all; give at most {MOST_TOGETHER:,}"
        )
    return tuple(found)


def _read_own_lists(source: WorldSource, spec: MapSpec, given: Mapping[object, object]) -> list[GoalSpec]:
    """A list for each human: that of its number, or else that of its colour."""
    by_agent, by_colour = dict[int, object](), dict[str, object]()
    for key in given:
        number, colour = _agent_number(key), COLOURS.get(str(key), str(key))
        if number is not None and number in spec.humans:
            by_agent[number] = key
        elif colour in {spec.agents[human].colour for human in spec.humans}:
            by_colour[colour] = key
        else:
            raise source.error(KEY, str(key), message=_no_such_human(spec, key))
    goals = []
    for human in spec.humans:
        key = by_agent.get(human, by_colour.get(spec.agents[human].colour))
        if key is None:
            raise source.error(KEY, message=f"human {human} has no list of goals; give one for each of {_humans(spec)}")
        own = _read_list(source, spec, given[key], (KEY, str(key)))
        if not own:
            raise source.error(KEY, str(key), message=f"the list of human {human} is empty; give at least one goal")
        goals += [replace(goal, agent=human) for goal in own]
    return goals


def _agent_number(key: object) -> int | None:
    """An agent as YAML reads its number, or as JSON writes it."""
    return int(key) if isinstance(key, str) and re.fullmatch(r"[0-9]{1,3}", key) else whole(key)


def _humans(spec: MapSpec) -> str:
    return ", ".join(f"{human} ({spec.agents[human].colour})" for human in spec.humans) or "nobody: there are no humans"


def _no_such_human(spec: MapSpec, key: object) -> str:
    number = _agent_number(key)
    if number is not None and 0 <= number < len(spec.agents):
        what = f"agent {number} is not a human"
    elif str(key) in _CONDITIONS or str(key) in _ABOUT:
        return "found a single goal, expected a list with one goal per entry; begin its line with '- '"
    else:
        what = f"found {short_repr(key)}"
    known = [*map(str, spec.humans), *{spec.agents[human].colour for human in spec.humans}]
    return f"{what}, expected the number or the colour of a human: {_humans(spec)}.{did_you_mean(str(key), known)}"


def _read_list(source: WorldSource, spec: MapSpec, entries: object, path: KeyPath) -> list[GoalSpec]:
    is_all = entries == ALL
    if is_all:
        entries = spec.cells_that_humans_reach()
    if not is_list(entries):
        raise source.error(
            *path, message=f"found {short_repr(entries)}, expected a list with one goal per entry, as in '- 3,2', or 'all'"
        )
    reader = _Reader(source, spec)
    goals = [reader.goal(entry, (*path, i)) for i, entry in enumerate(entries)]
    weights = normalised([goal.weight for goal in goals])
    for goal, weight in zip(goals, weights, strict=True):
        if weight < LEAST_WEIGHT:
            raise source.error(*goal.path, message=f"weight {goal.weight:g} is nothing beside those of the other goals")
    return [
        replace(goal, weight=weight, given_weight=goal.weight, is_walkable=is_all)
        for goal, weight in zip(goals, weights, strict=True)
    ]


def normalised(weights: Sequence[float]) -> list[float]:
    """Weights in the same proportions that sum to 1."""
    largest = max(weights, default=1.0)
    # So that huge weights do not add up to infinity; one by one, since sum() rounds otherwise from Python 3.12 on.
    total = reduce(add, (weight / largest for weight in weights), 0.0)
    return [weight / largest / total for weight in weights]


# --- entries ----------------------------------------------------------------------------------------------------------


class _Reader:
    """Reads the entries of a list one by one; later ones may refer to earlier ones by their names."""

    def __init__(self, source: WorldSource, spec: MapSpec) -> None:
        self._source, self._spec = source, spec
        self._named: dict[str, Condition] = {}

    def goal(self, entry: object, path: KeyPath) -> GoalSpec:
        given = dict(entry) if isinstance(entry, Mapping) else {"goal": entry}
        self._check_keys(given, path, (*_ABOUT, *_CONDITIONS))
        name, weight = self._name(given, path), self._weight(given, path)
        if name is None and set(given) == {"goal"}:
            return self._plain_goal(given["goal"], weight, path)
        condition = self._condition(given, path, 0)
        problem = condition.problem(self._spec)
        if problem is not None:
            raise self._source.error(*path, message=problem)
        if name is not None:
            self._named[name] = condition
        return GoalSpec(condition, weight, name, 0 if name else n_coordinates(condition), path=path)

    def _name(self, given: Json, path: KeyPath) -> str | None:
        if given.get("name") is None:
            given.pop("name", None)
            return None
        name = self._made(lambda: checked_name(given.pop("name")), (*path, "name"))
        if name in self._named:
            raise self._source.error(*path, message=f"another goal is called {name!r}, too; give each its own name")
        return name

    def _weight(self, given: Json, path: KeyPath) -> float:
        value = given.pop("weight", 1.0)
        weight = real(value) or 0.0
        if not 0 < weight < math.inf:
            raise self._source.error(*path, message=f"weight is {short_repr(value)}, expected a positive number")
        return weight

    def _plain_goal(self, where: object, weight: float, path: KeyPath) -> GoalSpec:
        """Just a cell or a rectangle, which may be off the grid: that is a warning."""
        coordinates = place_numbers(where)
        if coordinates is None:
            raise self._source.error(
                *path, message=f"{short_repr(where)} is not a goal; give a cell {PLACES}, or a mapping such as "
                "'{name: kitchen, cells: [[3, 2], [3, 3]]}'",
            )  # fmt: skip
        is_truncated = any(isinstance(part, float) and part != int(part) for part in flat(where))
        written = short_repr(where) if is_truncated else None
        return GoalSpec(InCells([coordinates]), weight, n_coordinates=len(coordinates), path=path, truncated=written)

    def _check_keys(self, given: Json, path: KeyPath, known: Sequence[str]) -> None:
        unknown = [key for key in given if key not in known]
        if unknown:
            key = str(unknown[0])
            hint = f" Did you mean {_OTHER_NAMES[key]!r}?" if key in _OTHER_NAMES else did_you_mean(key, known)
            if isinstance(unknown[0], int):
                hint = " Put quotes around a cell in braces, as in '{goal: \"3,2\", weight: 2}'."
            raise self._source.error(
                *path,
                message=f"found keys {sorted(map(str, given))}, of which {short_repr(key)} is unknown.{hint} A goal may "
                f"have {', '.join(known)}",
            )
        if not set(given) & set(_CONDITIONS):
            raise self._source.error(
                *path, message=f"found keys {sorted(map(str, given))}, expected also what has to hold: "
                f"{', '.join(_CONDITIONS)}, as in '{{name: kitchen, cells: [[3, 2], [3, 3]]}}'",
            )  # fmt: skip

    # --- conditions -----------------------------------------------------------------------------------------------

    def _part(self, entry: object, path: KeyPath, depth: int) -> Condition:
        """An entry of all or any: a cell, a rectangle, conditions, or the name of a goal above."""
        if isinstance(entry, str) and entry in self._named:
            return self._named[entry]
        if isinstance(entry, Mapping):
            self._check_keys(dict(entry), path, _CONDITIONS)
            return self._condition(dict(entry), path, depth)
        coordinates = place_numbers(entry)
        if coordinates is None:
            hint = did_you_mean(entry, self._named) if isinstance(entry, str) else ""
            raise self._source.error(
                *path, message=f"{short_repr(entry)} is neither a place nor the name of a goal further up.{hint} Give a "
                f"cell {PLACES}, a mapping, or a name",
            )  # fmt: skip
        return InCells([coordinates])

    def _condition(self, given: Json, path: KeyPath, depth: int) -> Condition:
        """All that the keys of a mapping ask for."""
        if "goal" in given and "cells" in given:
            raise self._source.error(*path, message="'goal' and 'cells' mean the same; give one of them")
        if depth > MOST_DEPTH:
            raise self._source.error(*path, message=f"all and any are nested more than {MOST_DEPTH} deep; make it simpler")
        parts = [self._single(key, value, (*path, key), depth) for key, value in given.items()]
        return self._several(AllOf, parts, path)

    def _single(self, key: str, value: object, path: KeyPath, depth: int) -> Condition:
        if key in ("all", "any"):
            if not is_list(value) or not 1 <= len(value) <= MOST_PARTS:
                raise self._source.error(
                    *path, message=f"found {short_repr(value)}, expected a list of 1 to {MOST_PARTS} entries, such as "
                    "'[{carries: key}, \"3,2\"]'",
                )  # fmt: skip
            parts = [self._part(entry, (*path, i), depth + 1) for i, entry in enumerate(value)]
            return self._several(AllOf if key == "all" else AnyOf, parts, path)
        return self._made(lambda: SINGLE[key](value), path)

    def _several(self, kind: type[AllOf | AnyOf], parts: Sequence[Condition], path: KeyPath) -> Condition:
        """All or any of some conditions; of one it is that one."""
        different = set(parts)
        return parts[0] if len(different) == 1 else self._made(lambda: kind(different), path)

    def _made(self, make: Callable[[], Made], path: KeyPath) -> Made:
        """What a constructor makes; its complaints get a place in the file."""
        try:
            return make()
        except WorldFileError:
            raise
        except ValueError as error:
            raise self._source.error(*path, message=str(error)) from None


def goals_as_values(goals: Sequence[GoalSpec]) -> list[Json] | Json:
    """Goals as in a world file, which are the same goals when they are read again."""
    humans = dict.fromkeys(goal.agent for goal in goals)
    lists = {str(human): _list_as_values([goal for goal in goals if goal.agent == human]) for human in humans}
    return lists if lists.keys() - {"None"} else lists.get("None", [])


def _list_as_values(goals: Sequence[GoalSpec]) -> list[Json]:
    """With weights that sum to 1, unless they would change in the last digit if they were normalised once more."""
    weights = [goal.weight for goal in goals]
    if normalised(weights) != weights:
        weights = [goal.given_weight for goal in goals]
    return [_as_values(goal, weight) for goal, weight in zip(goals, weights, strict=True)]


def _as_values(goal: GoalSpec, weight: float) -> Json:
    if goal.coordinates is not None:
        return {"goal": list(goal.coordinates), "weight": weight}
    named: Json = {} if goal.name is None else {"name": goal.name}
    return {**named, **goal.condition.values, "weight": weight}
