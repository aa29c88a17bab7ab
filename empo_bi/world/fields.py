"""Fields of packed states, for whole blocks: where agents and things are, and whether doors are open.

A field is read from its bits in the keys on demand, without making state tuples. Steps are not part of keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np
import numpy.typing as npt

from empo_bi.runtime.wording import did_you_mean
from empo_bi.types import BoolArray, KeyArray
from empo_bi.world import codes
from empo_bi.world.codes import Door, Kind
from empo_bi.world.expand import as_keys
from empo_bi.world.gridworld import GridWorld
from empo_bi.world.layout import AGENT_SLOTS, CARRIED, CELL, CONDITION, DIRECTION, OBJECT_SLOTS, PAUSED, TERMINATED

IntArray = npt.NDArray[np.int64]

THINGS = {kind.name.lower(): kind for kind in (*codes.PUSHABLES, *codes.ITEMS)}


class StateFields:
    """The fields of S states of a gridworld, given as packed keys.

    Parameters
    ----------
    world : GridWorld
    key_SW : (S, W) uint64, as ``world.encode`` and ``dag.keys(t)`` return them

    Examples
    --------
    >>> from empo_bi import enumerate_dag, load_world
    >>> world = load_world("asymmetric_freeing", max_steps=8)
    >>> fields = StateFields(world, enumerate_dag(world, progress=False).keys(0))
    >>> fields.cell_xy(2).tolist(), fields.things("rock").tolist()
    ([[4, 2]], [[[2, 2], [8, 2]]])
    >>> fields.holds("rock", (8, 2)).tolist()
    [True]
    """

    def __init__(self, world: GridWorld, key_SW: KeyArray) -> None:
        if not isinstance(world, GridWorld):
            raise TypeError(f"{world!r} is not a gridworld, so its states have no fields; use state tuples instead")
        self.world, self._layout = world, world.layout
        self._key_SW = as_keys(world.tables, key_SW)
        self._bits = {field.slot: field for field in self._layout.fields}

    def __len__(self) -> int:
        return len(self._key_SW)

    # --- agents -------------------------------------------------------------------------------------------------------

    def cell_xy(self, agent: int) -> IntArray:
        """(S, 2), the cell of an agent; a terminated agent stays where it is."""
        return self._layout.cell_xy[self._agent(agent, CELL)]

    def direction(self, agent: int) -> IntArray:
        """(S,), 0 east, 1 south, 2 west, 3 north."""
        return self._agent(agent, DIRECTION)

    def terminated(self, agent: int) -> BoolArray:
        """(S,), whether an agent is terminated, so that it no longer acts."""
        return self._agent(agent, TERMINATED).astype(np.bool_)

    def paused(self, agent: int) -> BoolArray:
        """(S,), whether an agent is paused, so that it does nothing."""
        return self._agent(agent, PAUSED).astype(np.bool_)

    def carries(self, agent: int, kind: str) -> BoolArray:
        """(S,), whether an agent carries a thing of this kind (key, ball or box, of any colour)."""
        wanted = self._kind(kind)
        is_one = np.array([False, *(kind == wanted for kind, _ in self._layout.types[: self._layout.item_types])])
        return is_one[self._agent(agent, CARRIED)]

    def inside(self, agent: int, area: Sequence[int]) -> BoolArray:
        """(S,), whether an agent is on a cell ``(x, y)``, or in a rectangle ``(x1, y1, x2, y2)``, corners included."""
        x1, y1, x2, y2 = rectangle(area)
        x_C, y_C = self._layout.cell_xy.T
        inside_C = (x1 <= x_C) & (x_C <= x2) & (y1 <= y_C) & (y_C <= y2)
        inside_C[0] = False  # the wall cell
        return inside_C[self._agent(agent, CELL)]

    def same_but_for(self, agent: int, key_W: KeyArray) -> BoolArray:
        """(S,), whether everything is as in one packed state, except for the cell and direction of an agent."""
        mask_W = np.full(self._key_SW.shape[1], ~np.uint64(0))
        for slot in (CELL, DIRECTION):
            field = self._bits.get(index(agent) * AGENT_SLOTS + int(slot))
            if field is not None:
                mask_W[field.word] &= ~field.bits
        return ((self._key_SW ^ key_W) & mask_W == 0).all(axis=1)

    # --- things and doors ---------------------------------------------------------------------------------------------

    def things(self, kind: str) -> IntArray:
        """(S, N, 2), cells of all blocks, rocks, keys, balls or boxes of the map; (-1, -1) if one is carried or gone.

        Things of one colour are interchangeable; they are sorted by their cells, column by column.
        """
        numbers = self._numbers(kind)
        cell_SN = np.empty((len(self), len(numbers)), dtype=np.int64)
        for n, k in enumerate(numbers):
            cell_SN[:, n] = self._slot(self._layout.first_thing + k)
        return self._layout.cell_xy[cell_SN]

    def holds(self, kind: str, cell: Sequence[int]) -> BoolArray:
        """(S,), whether a thing of this kind is on the cell (x, y)."""
        number = self._cell_number(cell)
        found = np.zeros(len(self), dtype=np.bool_)
        for k in self._numbers(kind):
            if number > 0:
                found |= self._slot(self._layout.first_thing + k) == number
        return found

    def door(self, cell: Sequence[int]) -> IntArray:
        """(S,), the condition of the door on a cell: 0 open, 1 closed, 2 locked."""
        x, y = map(index, cell)
        for i, it in enumerate(self._layout.objects):
            if it.kind in codes.DOORS and (it.x, it.y) == (x, y):
                return self._slot(self._layout.first_object + i * OBJECT_SLOTS + int(CONDITION))
        doors = [(it.x, it.y) for it in self._layout.objects if it.kind in codes.DOORS]
        raise ValueError(f"no door on cell {(x, y)}; the doors of this world are on {doors or 'no cell'}")

    def is_open(self, cell: Sequence[int]) -> BoolArray:
        """(S,), whether the door on a cell is open."""
        return self.door(cell) == Door.OPEN

    # --- bits ---------------------------------------------------------------------------------------------------------

    def _slot(self, slot: int) -> IntArray:
        """(S,), a slot of the states' rows."""
        field = self._bits.get(slot)
        if field is None:  # it can never change
            return np.full(len(self), self._layout.initial_row[slot])
        return field.values(self._key_SW)

    def _agent(self, agent: int, slot: np.int64) -> IntArray:
        n = self._layout.n_agents
        if not 0 <= index(agent) < n:
            raise ValueError(f"agent {agent}; this world has agents 0 to {n - 1}")
        return self._slot(index(agent) * AGENT_SLOTS + int(slot))

    def _kind(self, kind: str) -> Kind:
        if kind not in THINGS:
            raise ValueError(f"kind={kind!r}; give one of {', '.join(THINGS)}.{did_you_mean(str(kind), THINGS)}")
        return THINGS[kind]

    def _numbers(self, kind: str) -> list[int]:
        wanted = self._kind(kind)
        return [k for k, thing in enumerate(self._layout.things) if thing.kind == wanted]

    def _cell_number(self, cell: Sequence[int]) -> int:
        x, y = map(index, cell)
        spec = self._layout.spec
        if not (0 <= x < spec.width and 0 <= y < spec.height):
            raise ValueError(f"cell {(x, y)} is off the grid; give x from 0 to {spec.width - 1}, y to {spec.height - 1}")
        return int(self._layout.cell_number[y, x])


def rectangle(area: Sequence[int]) -> tuple[int, int, int, int]:
    """A cell (x, y), or a rectangle (x1, y1, x2, y2) with its corners in any order, as x1 <= x2, y1 <= y2."""
    numbers = [index(number) for number in area]
    if len(numbers) not in (2, 4):
        raise ValueError(f"{area!r}; give a cell (x, y), or a rectangle (x1, y1, x2, y2)")
    x1, y1, x2, y2 = numbers * (4 // len(numbers))
    return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)
