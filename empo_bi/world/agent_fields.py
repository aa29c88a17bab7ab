"""Where agents are in packed states, for whole blocks: read from the bits of keys on demand, without state tuples."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

import numpy as np

from empo_bi.types import BoolArray, IndexArray, KeyArray
from empo_bi.world.key_layout import as_keys
from empo_bi.world.rectangles import inside, rectangle

if TYPE_CHECKING:
    from empo_bi.world.map_world import MapWorld


class AgentFields:
    """The fields of S states of a world on a map, given as packed keys. Steps are not part of keys.

    Parameters
    ----------
    world : MapWorld
    key_SW : (S, W) uint64, as ``world.encode`` and ``dag.keys(t)`` return them
    """

    def __init__(self, world: MapWorld, key_SW: KeyArray) -> None:
        self.world = world
        self._key_SW = as_keys(world.n_words, key_SW)

    def __len__(self) -> int:
        return len(self._key_SW)

    def cell(self, agent: int) -> IndexArray:
        """(S,), the number of an agent's cell, an index of ``world.cell_xy``."""
        return self._slot(self.world.cell_slot(self._known(agent)))

    def cell_xy(self, agent: int) -> IndexArray:
        """(S, 2), the cell of an agent; a terminated agent stays where it is."""
        return self.world.cell_xy[self.cell(agent)]

    def direction(self, agent: int) -> IndexArray:
        """(S,), the direction of an agent, an index of ``world.headings``; 0 where agents have none."""
        slot = self.world.direction_slot(self._known(agent))
        return np.zeros(len(self), dtype=np.int64) if slot is None else self._slot(slot)

    def inside(self, agent: int, area: Sequence[int]) -> BoolArray:
        """(S,), whether an agent is on a cell ``(x, y)``, or in a rectangle ``(x1, y1, x2, y2)``, corners included."""
        x1, y1, x2, y2 = area = rectangle(area)
        if x1 >= self.world.width or y1 >= self.world.height or x2 < 0 or y2 < 0:
            what = f"cell {(x1, y1)}" if (x1, y1) == (x2, y2) else f"rectangle {area}"
            raise ValueError(
                f"{what} is off the grid; give x from 0 to {self.world.width - 1}, y to {self.world.height - 1}"
            )
        return self.cells_inside([area])[self.cell(agent), 0]

    def cells_inside(self, rectangles: Sequence[Sequence[int]], cell_C: IndexArray | None = None) -> BoolArray:
        """(C, G), which cells, all or some, lie in which of the rectangles; those outside the map lie in none."""
        x_C, y_C = (self.world.cell_xy if cell_C is None else self.world.cell_xy[cell_C]).T
        return inside(x_C, y_C, rectangles) & ((x_C >= 0) & (y_C >= 0))[:, np.newaxis]

    def same_but_for(self, agent: int, key_W: KeyArray) -> BoolArray:
        """(S,), whether everything is as in one packed state, except for the cell and direction of an agent."""
        mask_W = np.full(self._key_SW.shape[1], ~np.uint64(0))
        for slot in (self.world.cell_slot(self._known(agent)), self.world.direction_slot(agent)):
            field = None if slot is None else self.world.layout.field_of(slot)
            if field is not None:
                mask_W[field.word] &= ~field.bits
        return ((self._key_SW ^ key_W) & mask_W == 0).all(axis=1)

    def _slot(self, slot: int) -> IndexArray:
        return self.world.layout.values(slot, self._key_SW)

    def _known(self, agent: int) -> int:
        n = len(self.world.agents)
        if not hasattr(agent, "__index__") or not 0 <= index(agent) < n:
            raise ValueError(f"agent {agent!r}; this world has agents 0 to {n - 1}")
        return index(agent)
