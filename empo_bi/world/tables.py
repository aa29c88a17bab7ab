"""A world as the kernels see it: one vector of integers, of the same type for every world.

One compiled kernel therefore serves all worlds, and features that a world lacks cost next to nothing: their lists are empty,
and the terrain never triggers their rules. (A tuple of named arrays would read better, but numba counts references on each
access to a member, which made the kernels eight times slower and tripled their compilation time.)

The vector has a header (the constants below), then a record for each cell, then tables that the header points to. ``board``
has the functions that read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from empo_bi.world import codes
from empo_bi.world.codes import Kind
from empo_bi.world.layout import MapObject, StateLayout

IntArray = npt.NDArray[np.int64]


class Header(IntEnum):
    """Indices of the vector: counts first, then where each table begins."""

    N_AGENTS = 0
    N_ACTIONS = auto()
    N_THINGS = auto()
    N_TYPES = auto()
    N_OBJECTS = auto()
    N_SLOTS = auto()
    N_FIELDS = auto()
    N_CELLS = auto()
    FIRST_THING = auto()  # slot of a row
    FIRST_OBJECT = auto()  # slot of a row
    HAS_CONTROL_BUTTONS = auto()
    BUSHES_ARE_RISKY = auto()
    TRAITS = auto()  # record per agent: the traits below
    MEANINGS = auto()  # Action of each action id
    THINGS = auto()  # record per thing: kind, type
    TYPES = auto()  # record per type: its first thing, and past its last
    OBJECTS = auto()  # record per object: kind, trait (door: type of its key or -1; magic wall: side; switch: target kind)
    FIELDS = auto()  # record per field of the key: slot, word, shift, width, smallest and largest value
    INITIAL_ROW = auto()
    END = auto()  # where the cells begin


# Record of a cell.
AHEAD = 0  # 4 entries: the next cell in each direction, 0 for a wall
WALL_AHEAD = 4  # 4 entries: a negative number that identifies the wall ahead, 0 if there is none
TERRAIN = 8  # Kind that the map has there: EMPTY below what can move, CLOSED_DOOR for any door
OBJECT = 9  # index of the object with flags on the cell, else -1
CELL_RECORD = 10

FIELD_RECORD = 6

# Traits of an agent.
IS_YELLOW, IS_GREY, PUSHES_ROCKS, ENTERS_MAGIC_WALLS, IS_ROBOT_LIKE = map(np.int64, range(5))
N_TRAITS = 5

# Entries of `chances`.
STUMBLE, ENTER_MAGIC_WALL, SOLIDIFY, ENTER_BUSH = range(4)
MAGIC_ENTRY_PROBABILITY = 0.5


class Tables(NamedTuple):
    """A world for kernels: the vector of integers, the four probabilities, and the number of words of a key."""

    world: IntArray
    chances: npt.NDArray[np.float64]
    n_words: int


def build_tables(layout: StateLayout) -> Tables:
    spec = layout.spec
    header = dict.fromkeys(Header, 0)
    header |= {
        Header.N_AGENTS: layout.n_agents,
        Header.N_ACTIONS: len(spec.actions),
        Header.N_THINGS: len(layout.things),
        Header.N_TYPES: len(layout.types),
        Header.N_OBJECTS: len(layout.objects),
        Header.N_SLOTS: layout.n_slots,
        Header.N_FIELDS: len(layout.fields),
        Header.N_CELLS: len(layout.cell_xy),
        Header.FIRST_THING: layout.first_thing,
        Header.FIRST_OBJECT: layout.first_object,
        Header.HAS_CONTROL_BUTTONS: any(it.kind == Kind.CONTROL_BUTTON for it in layout.objects),
        Header.BUSHES_ARE_RISKY: spec.enter_bush_success_prob < 1,
    }
    tables: dict[Header, Sequence[Sequence[int]]] = {
        Header.TRAITS: [
            (a.is_human, a.is_robot, a.can_push_rocks, a.can_enter_magic_walls, a.is_robot_like) for a in spec.agents
        ],
        Header.MEANINGS: [spec.actions],
        Header.THINGS: [(thing.kind, thing.type) for thing in layout.things],
        Header.TYPES: layout.type_ranges,
        Header.OBJECTS: [(it.kind, _object_trait(layout, it)) for it in layout.objects],
        Header.FIELDS: [(f.slot, f.word, f.shift, f.width, f.smallest, f.largest) for f in layout.fields],
        Header.INITIAL_ROW: [layout.initial_row.tolist()],
    }
    parts: list[IntArray] = [_cell_records(layout).ravel()]
    place = Header.END + parts[0].size
    for name, records in tables.items():
        header[name] = place
        parts.append(np.array([int(value) for record in records for value in record], dtype=np.int64))
        place += parts[-1].size
    head = np.array([int(header[name]) for name in Header][: Header.END], dtype=np.int64)
    chances = [
        spec.stumble_probability,
        MAGIC_ENTRY_PROBABILITY,
        spec.solidify_probability,
        spec.enter_bush_success_prob,
    ]
    return Tables(np.concatenate([head, *parts]), np.array(chances, dtype=np.float64), layout.n_words)


def _cell_records(layout: StateLayout) -> IntArray:
    spec = layout.spec
    records = np.zeros((len(layout.cell_xy), CELL_RECORD), dtype=np.int64)
    wall_number = -1 - np.arange(spec.height * spec.width, dtype=np.int64).reshape(spec.height, spec.width)
    records[:, AHEAD : AHEAD + 4] = _ahead(layout, layout.cell_number)
    records[:, WALL_AHEAD : WALL_AHEAD + 4] = _ahead(layout, np.where(layout.cell_number == 0, wall_number, 0))
    records[:, TERRAIN] = Kind.WALL
    records[1:, TERRAIN] = [_terrain(spec.cells[y][x].kind) for x, y in layout.cell_xy[1:].tolist()]
    records[:, OBJECT] = -1
    for i, it in enumerate(layout.objects):
        records[layout.cell_number[it.y, it.x], OBJECT] = i
    return records


def _terrain(kind: Kind) -> Kind:
    """What stays on a cell forever: the cell where an agent, pushable or item starts is empty below it (C2)."""
    if kind == Kind.AGENT or kind in codes.PUSHABLES or kind in codes.ITEMS:
        return Kind.EMPTY
    return Kind.CLOSED_DOOR if kind in codes.DOORS else kind


def _ahead(layout: StateLayout, value: IntArray) -> IntArray:
    """The ``value`` (height, width) of the place ahead of each cell in each direction; 0 outside the grid (C8).

    Only one agent at a time can face a given place outside the grid, so these places need no numbers of their own.
    """
    padded = np.pad(value, 1)
    table = np.zeros((len(layout.cell_xy), 4), dtype=np.int64)
    x, y = layout.cell_xy[1:, 0] + 1, layout.cell_xy[1:, 1] + 1
    for direction, (dx, dy) in enumerate(codes.DIRECTION_VECTORS):
        table[1:, direction] = padded[y + dy, x + dx]
    return table


def _object_trait(layout: StateLayout, it: MapObject) -> int:
    if it.kind not in codes.DOORS:
        return it.trait
    key = (Kind.KEY, it.colour)
    return layout.types.index(key) if key in layout.types else -1
