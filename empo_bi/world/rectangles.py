"""Rectangles of cells (x1, y1, x2, y2), corners included: spelled in several ways, intersected, named, asked of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index

import numpy as np

from empo_bi.types import BoolArray, IndexArray

Rectangle = tuple[int, int, int, int]


def rectangle(area: Sequence[int]) -> Rectangle:
    """A cell (x, y), or a rectangle (x1, y1, x2, y2) with its corners in any order, as x1 <= x2, y1 <= y2."""
    try:
        numbers = [index(number) for number in area]
    except TypeError:
        raise TypeError(f"{area!r}; give whole numbers: a cell (x, y), or a rectangle (x1, y1, x2, y2)") from None
    if len(numbers) not in (2, 4):
        raise ValueError(f"{area!r}; give a cell (x, y), or a rectangle (x1, y1, x2, y2)")
    x1, y1, x2, y2 = numbers * (4 // len(numbers))
    return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)


def is_one_cell(area: Rectangle) -> bool:
    return area[:2] == area[2:]


def in_words(area: Rectangle) -> str:
    """``8,2`` for a cell, ``1,2 to 1,3`` for a rectangle."""
    x1, y1, x2, y2 = area
    return f"{x1},{y1}" if is_one_cell(area) else f"{x1},{y1} to {x2},{y2}"


def common_cells(areas: Iterable[Rectangle], others: Iterable[Rectangle]) -> tuple[Rectangle, ...]:
    """The cells that lie in some of ``areas`` and in some of ``others``, as rectangles."""
    others = tuple(others)
    pairs = ((max(x1, a1), max(y1, b1), min(x2, a2), min(y2, b2)) for x1, y1, x2, y2 in areas for a1, b1, a2, b2 in others)
    return tuple(sorted({(x1, y1, x2, y2) for x1, y1, x2, y2 in pairs if x1 <= x2 and y1 <= y2}))


def inside(x_C: IndexArray, y_C: IndexArray, rectangles: Sequence[Sequence[int]]) -> BoolArray:
    """(C, G), which cells lie in which of the rectangles."""
    x1, y1, x2, y2 = np.array(rectangles).reshape(-1, 4).T
    x_C1, y_C1 = x_C[:, np.newaxis], y_C[:, np.newaxis]
    found: BoolArray = (x1 <= x_C1) & (x_C1 <= x2) & (y1 <= y_C1) & (y_C1 <= y2)
    return found
