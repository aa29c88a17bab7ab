"""Values of single conditions in world files: cells and rectangles in all their spellings, directions, things, steps.

Whatever cannot be read is a ValueError, which says what was found and what is expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from empo_bi.runtime.wording import short_repr
from empo_bi.world.codes import DIRECTION_NAMES
from empo_bi.world.conditions import MOST_PARTS, AtStep, Carries, Condition, DoorOpen, Facing, InCells
from empo_bi.world.file_values import real, whole
from empo_bi.world.lint import is_list
from empo_bi.world.rectangles import is_one_cell

PLACES = '"x,y" or [x, y], or a rectangle "x1,y1,x2,y2", [x1, y1, x2, y2] or [[x1, y1], [x2, y2]]'


def n_coordinates(condition: Condition) -> int:
    """Of a single place: 2 for a cell, 4 for a rectangle; 0 for all other conditions."""
    if not isinstance(condition, InCells) or len(condition.places) > 1:
        return 0
    return 2 if is_one_cell(condition.places[0]) else 4


def _cells(value: object) -> InCells:
    """One place, or a list of places; unlike in ``goal``, two pairs are two cells."""
    single = place_numbers(value, corners=False)
    places = [value] if single is not None else value
    if not is_list(places) or not places:
        raise ValueError(f"found {short_repr(value)}, expected a list of cells and rectangles, such as '[[7, 3], [7, 4]]'")
    if len(places) > MOST_PARTS:
        raise ValueError(f"found {len(places):,} places, expected at most {MOST_PARTS}; use rectangles")
    return InCells([_place(place) for place in places])


def _place(value: object) -> list[int]:
    numbers = place_numbers(value)
    if numbers is None or any(isinstance(part, float) for part in flat(value)):
        raise ValueError(f"{short_repr(value)} is not a place; give a cell {PLACES}, with whole numbers")
    return numbers


def _one_cell(value: object) -> list[int]:
    numbers = _place(value)
    if len(numbers) != 2:
        raise ValueError(f"found {short_repr(value)}, expected the cell of a door, such as '[3, 2]'")
    return numbers


def _facing(value: object) -> Facing:
    number = whole(value)
    if number is not None and 0 <= number < len(DIRECTION_NAMES):
        return Facing(DIRECTION_NAMES[number])
    if not isinstance(value, str):
        raise ValueError(f"found {short_repr(value)}, expected a direction: {', '.join(DIRECTION_NAMES)}")
    return Facing(value)


def _carries(value: object) -> Carries:
    """``key`` or ``green key``."""
    words = value.split() if isinstance(value, str) else []
    if not 1 <= len(words) <= 2:
        raise ValueError(f"found {short_repr(value)}, expected a kind of thing, such as 'key' or 'green key'")
    return Carries(words[-1], words[0] if len(words) == 2 else None)


def _at_step(value: object) -> AtStep:
    step = whole(value)
    if step is None or step < 0:
        raise ValueError(f"found {short_repr(value)}, expected a number of steps, 0 or more")
    return AtStep(step)


SINGLE: dict[str, Callable[[object], Condition]] = {
    "goal": lambda value: InCells([_place(value)]),
    "cells": _cells,
    "facing": _facing,
    "carries": _carries,
    "door": lambda value: DoorOpen(_one_cell(value)),
    "step": _at_step,
}


def place_numbers(where: object, *, corners: bool = True) -> list[int] | None:
    """Two or four integers, or None if ``where`` is not a place; with ``corners``, [[x1, y1], [x2, y2]] is a rectangle."""
    if isinstance(where, str):
        parts: list[object] = [*where.split(",")]
    elif is_list(where):
        parts = list(where)
        if corners and len(parts) == 2 and all(is_list(part) and len(part) == 2 for part in parts):
            parts = flat(parts)
        if any(real(part) is None for part in parts):
            return None
    else:
        return None
    try:
        found = [_whole_number(part) if isinstance(part, str) else int(part) for part in parts]  # type: ignore[call-overload]
    except (ValueError, OverflowError):
        return None
    return found if len(found) in (2, 4) else None


def flat(value: object) -> list[object]:
    return [inner for part in value for inner in (part if is_list(part) else [part])] if is_list(value) else []


def _whole_number(text: str) -> int:
    """An integer in plain digits, blanks ignored; ValueError for anything else (``int`` would also take ``1_1``)."""
    plain = "".join(text.split())
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", plain):
        raise ValueError(text)
    return int(plain)
