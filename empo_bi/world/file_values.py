"""What world files of all kinds have in common: overrides, the rows of a map, the horizon, metadata.

Every error names file, line, key and value, and says what is expected.
"""

from __future__ import annotations

import difflib
import numbers
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from empo_bi.errors import WorldFileError, WorldWarning
from empo_bi.runtime.wording import short_repr
from empo_bi.world.lint import is_list, meant_key
from empo_bi.world.source import WorldSource

MAX_STEPS = 2**31 - 1
SHORT_NAMES = {"actions": "action_class", "goals": "possible_goals"}  # for options of load_world
MOST_AGENTS = 64  # more would have far too many action profiles
MOST_SIDE = 256  # of a map, in cells; plots and pictures of longer ones would take too much


def override(source: WorldSource, overrides: Mapping[str, Any], keys: Sequence[str]) -> WorldSource:
    """A value passed by the caller always replaces the file's (C9). Some keys also have short names there."""
    short = {name: key for name, key in SHORT_NAMES.items() if key in keys}
    known = (*keys, *short)
    for name in overrides:
        if name not in known:
            raise TypeError(
                f"load_world() has no option {name!r}.{meant_key(name, known)} Options: strict, require_human, "
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
        rows = [*rows_of_text(value)]
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


def rows_of_text(value: str) -> list[str]:
    """The rows of a map that is one text; what ``to_text`` writes below a map, behind #, is not part of it."""
    rows = value.strip().split("\n")
    while len(rows) > 1 and rows[-1].lstrip().startswith("#"):
        del rows[-1]
    return rows


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
