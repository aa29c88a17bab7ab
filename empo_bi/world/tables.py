"""What the kernels know of a world: a handful of integer tables.

All worlds have the same table types, so one compiled kernel serves them all. What a world lacks costs next to nothing:
its lists are empty and its terrain never asks for the special rules.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from empo_bi.world import codes
from empo_bi.world.codes import Kind
from empo_bi.world.layout import StateLayout

# Columns of `traits`.
IS_YELLOW, IS_GREY, PUSHES_ROCKS, ENTERS_MAGIC_WALLS, IS_ROBOT_LIKE = range(5)
# Entries of `chances`.
STUMBLE, ENTER_MAGIC_WALL, SOLIDIFY, ENTER_BUSH = range(4)

MAGIC_ENTRY_PROBABILITY = 0.5

IntArray = npt.NDArray[np.int32]


class Tables(NamedTuple):
    """Static facts of one world; letters as in the docstrings: C cells, N agents, M things, O objects, A actions."""

    neighbour: IntArray  # (C, 4): the next cell in each direction, 0 for a wall
    wall_ahead: IntArray  # (C, 4): a negative number that tells the wall ahead from other walls, 0 where there is none
    terrain: IntArray  # (C,): Kind that the map has there, EMPTY below what can move, CLOSED_DOOR for any door
    object_at: IntArray  # (C,): index of the object with flags on the cell, else -1
    meaning: IntArray  # (A,): Action of each action id
    traits: IntArray  # (N, 5): see the columns above
    thing_kind: IntArray  # (M,)
    thing_type: IntArray  # (M,)
    type_range: IntArray  # (types, 2): first thing of a type, and past its last
    object_kind: IntArray  # (O,)
    object_trait: IntArray  # (O,): door: type of its key or -1; magic wall: side; disabling switch: Kind it acts on
    control_buttons: IntArray  # indices of the objects that are control buttons
    chances: npt.NDArray[np.float64]  # (4,): see the entries above
    fields: npt.NDArray[np.int64]  # (F, 4): slot, word, shift, mask of each field of the key
    initial_row: IntArray  # (slots,)


def build_tables(layout: StateLayout) -> Tables:
    spec = layout.spec
    n_cells = len(layout.cell_xy)
    place = np.arange(spec.height * spec.width, dtype=np.int32).reshape(spec.height, spec.width)
    terrain = np.full(n_cells, Kind.WALL, dtype=np.int32)
    object_at = np.full(n_cells, -1, dtype=np.int32)
    for cell, (x, y) in enumerate(layout.cell_xy.tolist()):
        if cell > 0:
            terrain[cell] = _terrain(spec.cells[y][x].kind)
    for i, thing in enumerate(layout.objects):
        object_at[layout.cell_number[thing.y, thing.x]] = i
    return Tables(
        neighbour=_ahead(layout, layout.cell_number),
        wall_ahead=_ahead(layout, np.where(layout.cell_number == 0, -1 - place, 0)),
        terrain=terrain,
        object_at=object_at,
        meaning=np.array(spec.actions, dtype=np.int32),
        traits=_table(
            [(a.is_human, a.is_robot, a.can_push_rocks, a.can_enter_magic_walls, a.is_robot_like) for a in spec.agents], 5
        ),
        thing_kind=np.array([thing.kind for thing in layout.things], dtype=np.int32),
        thing_type=np.array([thing.type for thing in layout.things], dtype=np.int32),
        type_range=_table([layout.type_range(number) for number in range(len(layout.types))], 2),
        object_kind=np.array([thing.kind for thing in layout.objects], dtype=np.int32),
        object_trait=np.array(_object_traits(layout), dtype=np.int32),
        control_buttons=np.flatnonzero([thing.kind == Kind.CONTROL_BUTTON for thing in layout.objects]).astype(np.int32),
        chances=np.array(
            [spec.stumble_probability, MAGIC_ENTRY_PROBABILITY, spec.solidify_probability, spec.enter_bush_success_prob]
        ),
        fields=np.array(
            [(f.slot, f.word, f.shift, (1 << f.width) - 1) for f in layout.fields], dtype=np.int64
        ).reshape(-1, 4),
        initial_row=layout.initial_row,
    )  # fmt: skip


def _table(rows: list[tuple[int, ...]] | list[tuple[int, int]], columns: int) -> IntArray:
    """Rows as an array that is two-dimensional even when there are none."""
    return np.array(rows, dtype=np.int32).reshape(-1, columns)


def _terrain(kind: Kind) -> Kind:
    """What stays on a cell for good: below the start of an agent, pushable or item there is nothing (C2)."""
    if kind == Kind.AGENT or kind in codes.PUSHABLES or kind in codes.ITEMS:
        return Kind.EMPTY
    return Kind.CLOSED_DOOR if kind in codes.DOORS else kind


def _ahead(layout: StateLayout, value: IntArray) -> IntArray:
    """The ``value`` (height, width) of the place ahead of each cell in each direction; 0 outside the grid (C8).

    Nobody but the one before it faces a place outside the grid, so those need not be told apart.
    """
    padded = np.pad(value, 1)
    table = np.zeros((len(layout.cell_xy), 4), dtype=np.int32)
    x, y = layout.cell_xy[1:, 0] + 1, layout.cell_xy[1:, 1] + 1
    for direction, (dx, dy) in enumerate(codes.DIRECTION_VECTORS):
        table[1:, direction] = padded[y + dy, x + dx]
    return table


def _object_traits(layout: StateLayout) -> list[int]:
    key_types = {colour: number for number, (kind, colour) in enumerate(layout.types) if kind == Kind.KEY}
    return [key_types.get(o.colour, -1) if o.kind in codes.DOORS else o.trait for o in layout.objects]
