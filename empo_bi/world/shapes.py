"""Shapes and colours for pictures of cells.

**Shapes** are functions of the pixels' coordinates that return the signed distance to the shape's edge, negative inside,
in units of a tile's side. Coverage of a pixel follows from its distance, which gives smooth edges at every size;
``np.minimum`` unites two shapes, ``abs`` turns one into its outline, subtracting a number makes it fatter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.world.codes import DIRECTION_VECTORS

Distance = npt.NDArray[np.float64]
Colour = tuple[float, float, float]
Point = tuple[float, float]
Layer = tuple[Any, ...]  # a kind of object or a painter, then the arguments of the painter
Cell = tuple[Layer, ...]  # from the ground up; equal cells look the same
Place = tuple[int, int]  # x, y

# Hues, and as far as possible lightnesses, that also differ for the colour-blind.
COLOURS: dict[str, Colour] = {
    "red": (205, 48, 40),
    "green": (16, 172, 106),
    "blue": (24, 100, 190),
    "purple": (168, 84, 206),
    "yellow": (250, 200, 30),
    "grey": (140, 147, 158),
    "magic": (150, 92, 224),
    "spent magic": (118, 116, 136),
}
INK, WHITE, FLOOR, PANEL = (36, 38, 44), (255, 255, 255), (244, 242, 237), (72, 77, 87)
LAVA, GLOW, SAND, CRACK = (232, 84, 20), (255, 208, 80), (222, 198, 156), (120, 88, 52)
LEAF, TWIG, WOOD, STONE = (72, 140, 52), (128, 140, 84), (190, 134, 76), (122, 114, 108)


def every_place(width: int, height: int) -> list[Place]:
    """The places of all cells, row by row."""
    return [(x, y) for y in range(height) for x in range(width)]


def row_by_row(places: Iterable[Place]) -> list[Place]:
    """Different places in reading order."""
    return sorted(set(places), key=lambda place: place[::-1])


@dataclass(frozen=True)
class Tile:
    """Pixels being painted, and where they are: ``x`` to the right and ``y`` down, 0 to 1 across the tile.

    ``part`` and ``facing`` show the same pixels in other coordinates, so that a painter need not know where it paints.
    """

    rgb: npt.NDArray[np.float64]
    x: Distance
    y: Distance
    pixel: float

    def paint(self, shape: Distance, colour: Colour, opacity: float = 1.0) -> None:
        cover = opacity * np.clip(0.5 - shape / self.pixel, 0, 1)
        self.rgb[:] += cover[..., None] * (np.array(colour) - self.rgb)

    def paint_outlined(self, shape: Distance, colour: Colour, edge: Colour = INK, width: float = 0.05) -> None:
        self.paint(shape, edge)
        self.paint(shape + max(width, 0.7 * self.pixel), colour)

    def part(self, x: float, y: float, scale: float) -> Tile:
        """The square of side ``scale`` around (x, y) as a tile of its own."""
        return replace(self, x=(self.x - x) / scale + 0.5, y=(self.y - y) / scale + 0.5, pixel=self.pixel / scale)

    def facing(self, direction: int) -> Tile:
        """The tile turned so that ``x`` grows in that direction."""
        (dx, dy), x, y = DIRECTION_VECTORS[direction], self.x - 0.5, self.y - 0.5
        return replace(self, x=x * dx + y * dy + 0.5, y=y * dx - x * dy + 0.5)


def disc(t: Tile, x: float, y: float, radius: float) -> Distance:
    return np.hypot(t.x - x, t.y - y) - radius


def box(t: Tile, x1: float, y1: float, x2: float, y2: float, rounding: float = 0.0) -> Distance:
    across = np.abs(t.x - (x1 + x2) / 2) - (x2 - x1) / 2 + rounding
    down = np.abs(t.y - (y1 + y2) / 2) - (y2 - y1) / 2 + rounding
    outside = np.hypot(np.maximum(across, 0), np.maximum(down, 0))
    return outside + np.minimum(np.maximum(across, down), 0) - rounding


def line(t: Tile, *points: Point, width: float) -> Distance:
    """A stroke with round ends through the points."""
    distances = []
    for (x1, y1), (x2, y2) in pairwise(points):
        dx, dy = x2 - x1, y2 - y1
        along = np.clip(((t.x - x1) * dx + (t.y - y1) * dy) / (dx * dx + dy * dy), 0, 1)
        distances.append(np.hypot(t.x - x1 - along * dx, t.y - y1 - along * dy))
    return np.minimum.reduce(distances) - width / 2


def polygon(t: Tile, *corners: Point) -> Distance:
    inside = np.zeros(t.x.shape, dtype=bool)
    for (x1, y1), (x2, y2) in zip(corners, (*corners[1:], corners[0]), strict=True):
        if y1 != y2:  # even-odd rule: count the edges to the right
            inside ^= ((t.y < y1) != (t.y < y2)) & (t.x < x1 + (t.y - y1) * (x2 - x1) / (y2 - y1))
    return line(t, *corners, corners[0], width=0) * np.where(inside, -1, 1)


def union(*shapes: Distance) -> Distance:
    return np.minimum.reduce(shapes)


def mix(colour: Colour, other: Colour, share: float) -> Colour:
    """``colour`` with a ``share`` of the other one in it."""
    a, b, c = (own + share * (more - own) for own, more in zip(colour, other, strict=True))
    return a, b, c
