"""States of a bush world as keys: a row has the cell of each player, then the density of each cell."""

from __future__ import annotations

from operator import index

import numpy as np

from empo_bi.errors import InvalidStateError
from empo_bi.runtime.wording import short_repr
from empo_bi.types import IndexArray
from empo_bi.world.bush.spec import BushSpec
from empo_bi.world.key_layout import KeyLayout
from empo_bi.world.row_codec import MapState, RowCodec


class BushLayout(KeyLayout):
    """Cells are numbered row by row. A density only falls, and only if there are robots; what cannot change takes no bits.

    Attributes
    ----------
    n_players : slots of cells
    cell_xy : (C, 2) int64
    """

    def __init__(self, spec: BushSpec) -> None:
        self.spec, self.n_players = spec, len(spec.agents)
        y_C, x_C = (axis.ravel() for axis in np.indices((spec.height, spec.width)))
        self.cell_xy: IndexArray = np.stack([x_C, y_C], axis=1)
        cells = [player.y * spec.width + player.x for player in spec.agents]
        most = spec.densities if any(player.is_robot for player in spec.agents) else [0] * len(spec.densities)
        ranges = [(0, len(x_C) - 1)] * self.n_players + [(0, density) for density in most]
        super().__init__(np.array([*cells, *spec.densities], dtype=np.int64), ranges)

    @property
    def meaning(self) -> tuple[object, ...]:
        return (*super().meaning, self.spec.width, self.n_players)

    def problem_of_rows(self, row_SR: IndexArray) -> str | None:
        cell_SN = np.sort(row_SR[:, : self.n_players], axis=1)
        return "two players are on one cell" if (cell_SN[:, 1:] == cell_SN[:, :-1]).any() else None


class BushCodec(RowCodec):
    """Translates ``(step, positions, densities)``: a tuple of (x, y) for each player, and the densities row by row."""

    layout: BushLayout
    form = "(step, positions, densities)"

    def __init__(self, layout: BushLayout) -> None:
        self.layout = layout
        self._xy: list[tuple[int, int]] = [(x, y) for x, y in layout.cell_xy.tolist()]
        self._number = {xy: cell for cell, xy in enumerate(self._xy)}
        self._can_change = set(layout.changing_slots)

    def row_of(self, state: MapState) -> tuple[int, IndexArray]:
        step, positions, densities = state
        layout = self.layout
        row = np.array([*(self._cell(*position) for position in positions), *map(index, densities)], dtype=np.int64)
        if index(step) < 0:
            raise InvalidStateError(f"step {step!r}; steps are counted from 0")
        if len(positions) != layout.n_players or len(row) != layout.n_slots:
            raise InvalidStateError(
                f"state with {len(positions)} players and {len(densities)} densities; this world has {layout.n_players} "
                f"and {layout.n_slots - layout.n_players}. Was it made for another world?"
            )
        if len(set(positions)) < len(positions):
            raise InvalidStateError(f"two players on one cell in {short_repr(state)}; a cell holds at most one")
        for slot in range(layout.n_players, layout.n_slots):
            most = int(layout.initial_row[slot])
            if not (0 if slot in self._can_change else most) <= row[slot] <= most:
                where = self._xy[slot - layout.n_players]
                raise InvalidStateError(
                    f"density {row[slot]} on cell {where}; it is {most} at the start, and only robots lower it"
                )
        return index(step), row

    def _cell(self, x: int, y: int) -> int:
        if (index(x), index(y)) not in self._number:
            raise InvalidStateError(f"a player is on cell ({x}, {y}), which is outside the grid")
        return self._number[x, y]

    def state_of(self, step: int, row: list[int]) -> MapState:
        n = self.layout.n_players
        return step, tuple([self._xy[cell] for cell in row[:n]]), tuple(row[n:])
