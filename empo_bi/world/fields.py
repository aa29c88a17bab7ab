"""Fields of packed states of gridworlds, for whole blocks: where agents and things are, and whether doors are open."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index

import numpy as np

from empo_bi.runtime.wording import did_you_mean
from empo_bi.types import BoolArray, IndexArray, KeyArray
from empo_bi.world import codes
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.codes import Door, Kind
from empo_bi.world.gridworld import GridWorld
from empo_bi.world.layout import AGENT_SLOTS, CARRIED, CONDITION, OBJECT_SLOTS, PAUSED, TERMINATED

THINGS = {kind.name.lower(): kind for kind in (*codes.PUSHABLES, *codes.ITEMS)}


class StateFields(AgentFields):
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

    world: GridWorld

    def __init__(self, world: GridWorld, key_SW: KeyArray) -> None:
        if not isinstance(world, GridWorld):
            raise TypeError(f"{world!r} is not a gridworld, so its states have no fields; use state tuples instead")
        super().__init__(world, key_SW)
        self._layout = world.layout

    # --- agents -------------------------------------------------------------------------------------------------------

    def terminated(self, agent: int) -> BoolArray:
        """(S,), whether an agent is terminated, so that it no longer acts."""
        return self._agent(agent, TERMINATED).astype(np.bool_)

    def paused(self, agent: int) -> BoolArray:
        """(S,), whether an agent is paused, so that it does nothing."""
        return self._agent(agent, PAUSED).astype(np.bool_)

    def carries(self, agent: int, kind: str, colour: str | None = None) -> BoolArray:
        """(S,), whether an agent carries a thing of this kind: a key, ball or box, of one colour or of any."""
        wanted, items = self._kind(kind), self._layout.types[: self._layout.item_types]
        is_one = np.array([False, *(kind == wanted and colour in (None, its_own) for kind, its_own in items)])
        return is_one[self._agent(agent, CARRIED)]

    # --- things and doors ---------------------------------------------------------------------------------------------

    def things(self, kind: str) -> IndexArray:
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

    def door(self, cell: Sequence[int]) -> IndexArray:
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

    def _agent(self, agent: int, slot: np.int64) -> IndexArray:
        return self._slot(self._known(agent) * AGENT_SLOTS + int(slot))

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
