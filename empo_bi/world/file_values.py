"""What world files of all kinds have in common: overrides, the rows of a map, the horizon, goals, metadata.

Every error names file, line, key and value, and says what is expected.
"""

from __future__ import annotations

import difflib
import math
import numbers
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from empo_bi.errors import WorldFileError, WorldWarning
from empo_bi.runtime.wording import did_you_mean, short_repr
from empo_bi.types import Json
from empo_bi.world.lint import ALL, MapSpec, is_list
from empo_bi.world.source import WorldSource

MAX_STEPS = 2**31 - 1
SHORT_NAMES = {"actions": "action_class", "goals": "possible_goals"}  # for options of load_world
MOST_AGENTS = 64  # more would have far too many action profiles
MOST_SIDE = 256  # of a map, in cells; plots and pictures of longer ones would take too much


@dataclass(frozen=True)
class GoalSpec:
    """A rectangle of cells, corners included; ``is_cell`` distinguishes "x,y" from "x,y,x,y" (section 8.3)."""

    rectangle: tuple[int, int, int, int]
    is_cell: bool
    weight: float


def override(source: WorldSource, overrides: Mapping[str, Any], keys: Sequence[str]) -> WorldSource:
    """A value passed by the caller always replaces the file's (C9). Some keys also have short names there."""
    short = {name: key for name, key in SHORT_NAMES.items() if key in keys}
    known = (*keys, *short)
    for name in overrides:
        if name not in known:
            raise TypeError(
                f"load_world() has no option {name!r}.{did_you_mean(name, known)} Options: strict, require_human, "
                f"require_robot, render_mode, {', '.join(known)}"
            )
        if short.get(name) in overrides:
            raise TypeError(f"{name}= and {short[name]}= mean the same; give one of them")
    given = {short.get(name, name): value for name, value in overrides.items()}
    lines = {path: line for path, line in source.lines.items() if path[0] not in given}
    return WorldSource({**source.mapping, **given}, source.origin, source.name, lines, frozenset(given))


def tell(mistakes: Sequence[str], *, strict: bool) -> None:
    """Warn of probable mistakes; with ``strict`` they are an error."""
    if mistakes and strict:
        raise WorldFileError("\n".join(mistakes))
    for mistake in mistakes:
        warnings.warn(mistake, WorldWarning, stacklevel=4)


def whole(value: object) -> int | None:
    """The value as an int if it is one (True and 3.0 are not)."""
    return int(value) if isinstance(value, numbers.Integral) and not isinstance(value, bool) else None


def real(value: object) -> float | None:
    """The value as a float if it is a number that fits (True is not)."""
    try:
        return float(value) if isinstance(value, numbers.Real) and not isinstance(value, bool) else None
    except OverflowError:
        return None


def map_rows(source: WorldSource, cells: str) -> list[str]:
    """The rows of a map, from any of its three forms: text, list of texts, list of lists of codes.

    ``cells`` says in errors how cells are written.
    """
    if "map" not in source.mapping:
        near = [key for key in source.mapping if str(key).lower() in ("grid", "layout")]
        near += difflib.get_close_matches("map", map(str, source.mapping), n=1)
        hint = f" (found {near[0]!r}: is that it?)" if near else ""
        raise source.error(message=f"the key 'map' is missing{hint}; give the grid, {cells}")
    value, rows = source.mapping["map"], list[object]()
    if isinstance(value, str):
        rows = [*value.strip().split("\n")]
    elif is_list(value) and value:
        rows = list(value)
    else:
        raise source.error(
            "map", message=f"found {short_repr(value)}, expected the rows of the grid as a text, a list of texts, or a list "
            "of lists of two-letter codes",
        )  # fmt: skip
    plain = []
    for y, row in enumerate(rows):
        if is_list(row) and all(isinstance(code, str) for code in row):
            row = " ".join(row)
        if not isinstance(row, str):
            raise source.error(
                "map", y, message=f"row {y} is {short_repr(row)}; a row is a text or a list of two-letter codes"
            )
        plain.append(row)
    return plain


def read_steps(source: WorldSource) -> int:
    value = source.mapping.get("max_steps", 100)
    steps = whole(value)
    if steps is None or not 0 <= steps <= MAX_STEPS:
        raise source.error(
            "max_steps",
            message=f"found {short_repr(value)}, expected a whole number of steps, 0 or more (at most {MAX_STEPS:,})",
        )
    return steps


def read_metadata(source: WorldSource) -> Mapping[str, Any]:
    value = source.mapping.get("metadata")
    if value is not None and not isinstance(value, Mapping):
        raise source.error("metadata", message=f"found {short_repr(value)}, expected a mapping such as 'name: My world'")
    return dict(value or {})


# --- goals ------------------------------------------------------------------------------------------------------------


def read_goals(source: WorldSource, spec: MapSpec, default: str | None = None) -> tuple[GoalSpec, ...]:
    """Goals in all their spellings (section 8.1), with normalised weights; ``default`` stands for what is not there."""
    entries = source.mapping.get("possible_goals")
    if entries is None:
        entries = default or ()
    if entries == ALL:
        entries = spec.cells_that_humans_reach()
    if not is_list(entries):
        raise source.error(
            "possible_goals",
            message=f"found {short_repr(entries)}, expected a list with one goal per entry, as in '- 3,2', or 'all'",
        )
    goals = [_read_goal(source, entry, i) for i, entry in enumerate(entries)]
    largest = max((goal.weight for goal in goals), default=1.0)
    total = sum(goal.weight / largest for goal in goals)  # so that huge weights do not add up to infinity
    return tuple(GoalSpec(goal.rectangle, goal.is_cell, goal.weight / largest / total) for goal in goals)


def _read_goal(source: WorldSource, entry: object, i: int) -> GoalSpec:
    weight, where = 1.0, entry
    if isinstance(entry, Mapping):
        if "goal" not in entry or set(entry) - {"goal", "weight"}:
            raise source.error(
                "possible_goals", i, message=f"found keys {sorted(map(str, entry))}, expected 'goal' and optionally "
                "'weight', as in '{goal: \"3,2\", weight: 2}', with quotes around the cell",
            )  # fmt: skip
        where, weight = entry["goal"], real(entry.get("weight", 1.0)) or 0.0
        if not 0 < weight < math.inf:
            raise source.error(
                "possible_goals", i, message=f"weight is {short_repr(entry['weight'])}, expected a positive number"
            )
    coordinates = _goal_numbers(where)
    if coordinates is None:
        raise source.error(
            "possible_goals", i,
            message=f"{short_repr(where)} is not a goal; give a cell \"x,y\" or [x, y], or a rectangle \"x1,y1,x2,y2\", "
            "[x1, y1, x2, y2] or [[x1, y1], [x2, y2]]",
        )  # fmt: skip
    if len(coordinates) == 2:
        x, y = coordinates
        return GoalSpec((x, y, x, y), is_cell=True, weight=weight)
    x1, y1, x2, y2 = coordinates
    return GoalSpec((min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)), is_cell=False, weight=weight)


def _goal_numbers(where: object) -> list[int] | None:
    """Two or four integers, or None if ``where`` is not a goal."""
    if isinstance(where, str):
        parts: list[Any] = where.split(",")
    elif is_list(where):
        parts = list(where)
        if len(parts) == 2 and all(is_list(p) and len(p) == 2 for p in parts):
            parts = [*parts[0], *parts[1]]
        if any(real(p) is None for p in parts):
            return None
    else:
        return None
    try:
        found = [_whole_number(p) if isinstance(p, str) else int(p) for p in parts]
    except (ValueError, OverflowError):
        return None
    return found if len(found) in (2, 4) else None


def _whole_number(text: str) -> int:
    """An integer in plain digits, blanks ignored; ValueError for anything else (``int`` would also take ``1_1``)."""
    plain = "".join(text.split())
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", plain):
        raise ValueError(text)
    return int(plain)


def goals_as_values(goals: Sequence[GoalSpec]) -> list[Json]:
    """Goals as in a world file."""
    return [{"goal": list(goal.rectangle[: 2 if goal.is_cell else 4]), "weight": goal.weight} for goal in goals]
