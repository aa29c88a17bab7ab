"""The vocabulary of the rules: functions that read a world's vector, and read and change a board, without copying.

``world`` is the vector of ``tables``, never changed. ``board`` is also a vector, a state laid out for playing: its row (see
``layout``), then two entries for each cell, its occupant and whether it is closed, then two marks of what has changed. Most
functions here compile to a load or a store.
"""

from __future__ import annotations

import numpy as np

from empo_bi.runtime.jit import allocating, inlined, rule
from empo_bi.world import codes
from empo_bi.world.layout import (
    AGENT_SLOTS,
    CELL,
    CONDITION,
    DIRECTION,
    OBJECT_SLOTS,
    PAUSED,
    TERMINATED,
    TRAMPLED,
    WALL_CELL,
)
from empo_bi.world.tables import AHEAD, CELL_RECORD, N_TRAITS, OBJECT, TERRAIN, WALL_AHEAD, Header, IntArray

# Numba freezes globals at compile time; plain integers compile to constants.
N_AGENTS, N_ACTIONS, N_THINGS, N_TYPES, N_OBJECTS = (int(h) for h in list(Header)[:5])
N_SLOTS, N_FIELDS, N_CELLS = int(Header.N_SLOTS), int(Header.N_FIELDS), int(Header.N_CELLS)
FIRST_THING, FIRST_OBJECT = int(Header.FIRST_THING), int(Header.FIRST_OBJECT)
HAS_CONTROL_BUTTONS, BUSHES_ARE_RISKY = int(Header.HAS_CONTROL_BUTTONS), int(Header.BUSHES_ARE_RISKY)
TRAITS, MEANINGS, THINGS, TYPES = int(Header.TRAITS), int(Header.MEANINGS), int(Header.THINGS), int(Header.TYPES)
OBJECTS, FIELDS, INITIAL_ROW = int(Header.OBJECTS), int(Header.FIELDS), int(Header.INITIAL_ROW)
CELLS = int(Header.END)

EMPTY, LAVA, UNSTEADY = int(codes.Kind.EMPTY), int(codes.Kind.LAVA), int(codes.Kind.UNSTEADY)
OPEN_DOOR, CLOSED_DOOR = int(codes.Kind.OPEN_DOOR), int(codes.Kind.CLOSED_DOOR)
MAGIC_WALL, BUSH = int(codes.Kind.MAGIC_WALL), int(codes.Kind.BUSH)
KILL_BUTTON, PAUSE_SWITCH = int(codes.Kind.KILL_BUTTON), int(codes.Kind.PAUSE_SWITCH)
CONTROL_BUTTON, DISABLING_SWITCH = int(codes.Kind.CONTROL_BUTTON), int(codes.Kind.DISABLING_SWITCH)
BLOCK, ROCK = int(codes.Kind.BLOCK), int(codes.Kind.ROCK)
KEY, BOX, AGENT = int(codes.Kind.KEY), int(codes.Kind.BOX), int(codes.Kind.AGENT)
DOOR_OPEN, DOOR_CLOSED = np.int64(codes.Door.OPEN), np.int64(codes.Door.CLOSED)

STILL, LEFT, RIGHT, FORWARD = (int(a) for a in codes.ACTION_SETS["SmallActions"])
PICKUP, DROP, TOGGLE = (int(a) for a in codes.ACTION_SETS["ObjectActions"][4:])

NOBODY = np.int64(0)
YES, NO = np.int64(1), np.int64(0)

# Entries at the end of a board, counted from there: whether a thing or a flag was changed since the state was laid out.
THINGS_MARK, FLAGS_MARK = 1, 2


# --- the world --------------------------------------------------------------------------------------------------------


@inlined
def ahead(world: IntArray, cell: int, direction: int) -> int:
    """The next cell in a direction, ``WALL_CELL`` for a wall."""
    return world[CELLS + cell * CELL_RECORD + AHEAD + direction]


@inlined
def wall_ahead(world: IntArray, cell: int, direction: int) -> int:
    """A number that identifies the wall ahead."""
    return world[CELLS + cell * CELL_RECORD + WALL_AHEAD + direction]


@inlined
def terrain(world: IntArray, cell: int) -> int:
    return world[CELLS + cell * CELL_RECORD + TERRAIN]


@inlined
def object_at(world: IntArray, cell: int) -> int:
    return world[CELLS + cell * CELL_RECORD + OBJECT]


@inlined
def has_trait(world: IntArray, agent: int, trait: int) -> bool:
    return world[world[TRAITS] + agent * N_TRAITS + trait] != 0


@inlined
def meaning_of(world: IntArray, action: int) -> int:
    """The Action of an action id."""
    return world[world[MEANINGS] + action]


@inlined
def kind_of_thing(world: IntArray, thing: int) -> int:
    return world[world[THINGS] + 2 * thing]


@inlined
def type_of_thing(world: IntArray, thing: int) -> int:
    return world[world[THINGS] + 2 * thing + 1]


@inlined
def first_of_type(world: IntArray, type_number: int) -> int:
    return world[world[TYPES] + 2 * type_number]


@inlined
def end_of_type(world: IntArray, type_number: int) -> int:
    return world[world[TYPES] + 2 * type_number + 1]


@inlined
def kind_of_object(world: IntArray, it: int) -> int:
    return world[world[OBJECTS] + 2 * it]


@inlined
def trait_of_object(world: IntArray, it: int) -> int:
    return world[world[OBJECTS] + 2 * it + 1]


# --- the board --------------------------------------------------------------------------------------------------------


@inlined
def agent_at(board: IntArray, agent: int, slot: int) -> int:
    """One of an agent's slots: CELL, DIRECTION, TERMINATED, PAUSED, CARRIED, FORCED."""
    return board[agent * AGENT_SLOTS + slot]


@inlined
def set_agent(board: IntArray, agent: int, slot: int, value: int) -> None:
    board[agent * AGENT_SLOTS + slot] = value


@inlined
def thing_cell(world: IntArray, board: IntArray, thing: int) -> int:
    """The cell of a thing, ``WALL_CELL`` while it is carried or gone."""
    return board[world[FIRST_THING] + thing]


@inlined
def set_thing_cell(world: IntArray, board: IntArray, thing: int, cell: int) -> None:
    board[world[FIRST_THING] + thing] = cell
    board[board.size - THINGS_MARK] = YES


@inlined
def flag(world: IntArray, board: IntArray, it: int, slot: int) -> int:
    """One of an object's slots, such as ENABLED."""
    return board[world[FIRST_OBJECT] + it * OBJECT_SLOTS + slot]


@inlined
def set_flag(world: IntArray, board: IntArray, it: int, slot: int, value: int) -> None:
    board[world[FIRST_OBJECT] + it * OBJECT_SLOTS + slot] = value
    board[board.size - FLAGS_MARK] = YES


@inlined
def occupant(world: IntArray, board: IntArray, cell: int) -> int:
    """The occupant of a cell: agent i as i + 1, thing k as -(k + 1), else ``NOBODY``."""
    return board[world[N_SLOTS] + 2 * cell]


@inlined
def set_occupant(world: IntArray, board: IntArray, cell: int, who: int) -> None:
    board[world[N_SLOTS] + 2 * cell] = who


@inlined
def thing_on(world: IntArray, board: IntArray, cell: int) -> int:
    """The thing on a cell that shows one."""
    return -occupant(world, board, cell) - 1


@inlined
def is_closed(world: IntArray, board: IntArray, cell: int) -> bool:
    """Whether an active agent was on the cell when the step began (S0): then no agent enters it in this step."""
    return board[world[N_SLOTS] + 2 * cell + 1] != 0


@inlined
def close_held_cells(world: IntArray, board: IntArray) -> None:
    for i in range(world[N_AGENTS]):
        board[world[N_SLOTS] + 2 * agent_at(board, i, CELL) + 1] = 1 - agent_at(board, i, TERMINATED)


@inlined
def reopen_held_cells(world: IntArray, board: IntArray) -> None:
    for i in range(world[N_AGENTS]):
        board[world[N_SLOTS] + 2 * agent_at(board, i, CELL) + 1] = 0


@allocating
def new_board(world: IntArray) -> IntArray:
    """A board with room for any state of the world; :func:`lay_out` fills it."""
    return np.zeros(world[N_SLOTS] + 2 * world[N_CELLS] + 2, dtype=np.int64)


@inlined
def things_have_moved(board: IntArray) -> bool:
    return board[board.size - THINGS_MARK] != NO


@rule
def lay_out(world: IntArray, board: IntArray, row: IntArray) -> None:
    """Lay out another state. Only occupied cells are touched, so the size of the map does not matter."""
    board[board.size - THINGS_MARK] = board[board.size - FLAGS_MARK] = YES
    restore(world, board, row)


@inlined
def restore(world: IntArray, board: IntArray, row: IntArray) -> None:
    """Return to the state that was laid out, undoing only what has changed."""
    n_agents, first_thing, first_object = world[N_AGENTS], world[FIRST_THING], world[FIRST_OBJECT]
    for i in range(n_agents):
        set_occupant(world, board, agent_at(board, i, CELL), NOBODY)
    for slot in range(first_thing):
        board[slot] = row[slot]
    if things_have_moved(board):
        for slot in range(first_thing, first_object):
            set_occupant(world, board, board[slot], NOBODY)
        for slot in range(first_thing, first_object):
            board[slot] = row[slot]
            set_occupant(world, board, row[slot], first_thing - slot - 1)
        set_occupant(world, board, WALL_CELL, NOBODY)  # where carried and opened items are noted
        board[board.size - THINGS_MARK] = NO
    if board[board.size - FLAGS_MARK]:
        for slot in range(first_object, row.size):
            board[slot] = row[slot]
        board[board.size - FLAGS_MARK] = NO
    for i in range(n_agents):
        set_occupant(world, board, agent_at(board, i, CELL), i + 1)


# --- what is seen -----------------------------------------------------------------------------------------------------


@inlined
def shown(world: IntArray, board: IntArray, cell: int) -> int:
    """What a cell shows: the agent on it, else the pushable or item, else what the map has there (C12)."""
    who = occupant(world, board, cell)
    if who > 0:
        return AGENT
    if who < 0:
        return kind_of_thing(world, -who - 1)
    kind = terrain(world, cell)
    if kind == BUSH and flag(world, board, object_at(world, cell), TRAMPLED):
        return EMPTY
    if kind == CLOSED_DOOR and flag(world, board, object_at(world, cell), CONDITION) == DOOR_OPEN:
        return OPEN_DOOR
    return kind


@inlined
def may_be_entered(kind: int) -> bool:
    """Empty or walk-over: goal, switch, lava, unsteady ground, open door."""
    return kind <= OPEN_DOOR


@inlined
def is_pushable(kind: int) -> bool:
    return kind == BLOCK or kind == ROCK


@inlined
def is_item(kind: int) -> bool:
    return KEY <= kind <= BOX


@inlined
def can_act(board: IntArray, agent: int) -> bool:
    return agent_at(board, agent, TERMINATED) == 0 and agent_at(board, agent, PAUSED) == 0


@inlined
def front_cell(world: IntArray, board: IntArray, agent: int) -> int:
    return ahead(world, agent_at(board, agent, CELL), agent_at(board, agent, DIRECTION))
