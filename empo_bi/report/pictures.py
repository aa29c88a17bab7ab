"""States as pictures: every distinct cell is painted once into a sheet, and a state lists which cell it shows where."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from empo_bi.world.map_world import MapWorld
from empo_bi.world.png import png_bytes
from empo_bi.world.render import paint
from empo_bi.world.row_codec import MapState
from empo_bi.world.shapes import Cell

TILE = 48  # pixels
COLUMNS = 16  # of the sheet
MOST_PIXELS = 4_000_000  # of the map that a page shows first


@dataclass(frozen=True)
class Pictures:
    """N states of a world that is W cells wide and H high; cells are counted row by row.

    Attributes
    ----------
    sheet : (rows * TILE, COLUMNS * TILE, 3) uint8, all distinct cells
    first_C : (W * H,), what the first state shows, as indices into the sheet
    start_N : (N + 1,), where the list of differences of each state begins
    cell_D, shown_D : (D,), cells that differ from the first state, and what they show instead
    """

    sheet: npt.NDArray[np.uint8]
    first_C: npt.NDArray[np.uint16]
    start_N: npt.NDArray[np.int32]
    cell_D: npt.NDArray[np.uint16]
    shown_D: npt.NDArray[np.uint16]

    def first(self, width: int) -> npt.NDArray[np.uint8]:
        """The first state of a world ``width`` cells wide, assembled from the sheet: (H * TILE, W * TILE, 3) uint8.

        A large map has smaller cells, so that the picture has at most some four million pixels.
        """
        sprite_NYX3 = self.sheet.reshape(-1, TILE, COLUMNS, TILE, 3).swapaxes(1, 2).reshape(-1, TILE, TILE, 3)
        every = max(1, math.ceil(TILE * math.sqrt(len(self.first_C) / MOST_PIXELS)))
        sprite_NYX3 = sprite_NYX3[:, ::every, ::every]
        cell_HWYX3 = sprite_NYX3[self.first_C.reshape(-1, width)]
        return cell_HWYX3.swapaxes(1, 2).reshape(-1, width * sprite_NYX3.shape[2], 3)


def data_url(picture: npt.NDArray[np.uint8]) -> str:
    """A picture as a PNG in a data URL."""
    return "data:image/png;base64," + base64.b64encode(png_bytes(picture)).decode("ascii")


def pictures_of(world: MapWorld, states: Sequence[MapState]) -> Pictures:
    """Pictures of some states, each as its differences from the first."""
    width, known = world.width, dict[Cell, int]()
    start, cells, shown = [0], list[int](), list[int]()
    first = np.zeros(width * world.height, dtype=np.uint16)
    for n, state in enumerate(states):
        places = None if n == 0 else world.places_that_differ(states[0], state)
        for (x, y), cell in world.looks(state, places).items():
            sprite = known.setdefault(cell, len(known))
            if n == 0:
                first[y * width + x] = sprite
            elif first[y * width + x] != sprite:
                cells.append(y * width + x)
                shown.append(sprite)
        start.append(len(cells))
    rows = -(-len(known) // COLUMNS)
    sheet = np.zeros((rows, TILE, COLUMNS, TILE, 3), dtype=np.uint8)
    for cell, sprite in known.items():
        sheet[sprite // COLUMNS, :, sprite % COLUMNS] = paint(cell, TILE)
    return Pictures(
        sheet=sheet.reshape(rows * TILE, COLUMNS * TILE, 3),
        first_C=first,
        start_N=np.array(start, dtype=np.int32),
        cell_D=np.array(cells, dtype=np.uint16),
        shown_D=np.array(shown, dtype=np.uint16),
    )
