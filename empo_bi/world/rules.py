"""What one action does: the rules of section 6 of the specification, in its complete reading.

Each function changes a :class:`Board`, the one mutable picture of a state, and reads the world's :class:`~.tables.Tables`.
All are compiled; ``joint`` decides who acts when. In reading order: what a cell shows, moving and pushing, bushes, items,
doors and buttons, recording.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from empo_bi.runtime.jit import rule
from empo_bi.world import codes
from empo_bi.world.layout import (
    AGENT_SLOTS,
    AWAITING,
    CARRIED,
    CELL,
    CONDITION,
    CONTROLLED,
    DIRECTION,
    ENABLED,
    FORCED,
    IS_ON,
    OBJECT_SLOTS,
    PAUSED,
    RECORDED,
    TERMINATED,
    TRAMPLED,
    WALL_CELL,
)
from empo_bi.world.tables import IS_GREY, IS_ROBOT_LIKE, IS_YELLOW, PUSHES_ROCKS, Tables

# Numba freezes module globals at compile time; plain integers compile to plain comparisons.
EMPTY, LAVA, UNSTEADY = int(codes.Kind.EMPTY), int(codes.Kind.LAVA), int(codes.Kind.UNSTEADY)
OPEN_DOOR, CLOSED_DOOR = int(codes.Kind.OPEN_DOOR), int(codes.Kind.CLOSED_DOOR)
MAGIC_WALL, BUSH = int(codes.Kind.MAGIC_WALL), int(codes.Kind.BUSH)
KILL_BUTTON, PAUSE_SWITCH = int(codes.Kind.KILL_BUTTON), int(codes.Kind.PAUSE_SWITCH)
CONTROL_BUTTON, DISABLING_SWITCH = int(codes.Kind.CONTROL_BUTTON), int(codes.Kind.DISABLING_SWITCH)
BLOCK, ROCK = int(codes.Kind.BLOCK), int(codes.Kind.ROCK)
KEY, BOX, AGENT = int(codes.Kind.KEY), int(codes.Kind.BOX), int(codes.Kind.AGENT)
DOOR_OPEN, DOOR_CLOSED, DOOR_LOCKED = int(codes.Door.OPEN), int(codes.Door.CLOSED), int(codes.Door.LOCKED)

STILL, LEFT, RIGHT, FORWARD = (int(a) for a in codes.ACTION_SETS["SmallActions"])
PICKUP, DROP, TOGGLE = (int(a) for a in codes.ACTION_SETS["ObjectActions"][4:])


class Board(NamedTuple):
    """A state laid out for playing. ``agents``, ``things`` and ``objects`` are views of one row (see ``layout``)."""

    row: npt.NDArray[np.int32]
    agents: npt.NDArray[np.int32]  # (N, 6)
    things: npt.NDArray[np.int32]  # (M,): the cell of each, 0 while carried or gone
    objects: npt.NDArray[np.int32]  # (O, 4)
    occupant: npt.NDArray[np.int32]  # (C,): i + 1 for agent i, -(k + 1) for thing k, 0 for nobody
    closed: npt.NDArray[np.bool_]  # (C,): S0, held by a living agent when the step began: closed for this whole step


@rule
def new_board(world: Tables) -> Board:
    """A board with room for any state of the world; :func:`set_row` fills it."""
    row = np.zeros(world.initial_row.size, dtype=np.int32)
    n_agents, n_things = world.traits.shape[0], world.thing_kind.size
    first_thing = n_agents * AGENT_SLOTS
    first_object = first_thing + n_things
    return Board(
        row,
        row[:first_thing].reshape(n_agents, AGENT_SLOTS),
        row[first_thing:first_object],
        row[first_object:].reshape(world.object_kind.size, OBJECT_SLOTS),
        np.zeros(world.terrain.size, dtype=np.int32),
        np.zeros(world.terrain.size, dtype=np.bool_),
    )


@rule
def set_row(board: Board, row: npt.NDArray[np.int32]) -> None:
    """Lay out another state. Only cells in use are touched, so the size of the map does not matter."""
    for i in range(board.agents.shape[0]):
        board.occupant[board.agents[i, CELL]] = 0
    for k in range(board.things.size):
        board.occupant[board.things[k]] = 0
    for slot in range(row.size):
        board.row[slot] = row[slot]
    for i in range(board.agents.shape[0]):
        board.occupant[board.agents[i, CELL]] = i + 1
    for k in range(board.things.size):
        board.occupant[board.things[k]] = -(k + 1)
    board.occupant[WALL_CELL] = 0  # where carried and opened items are noted


# --- what a cell shows ------------------------------------------------------------------------------------------------


@rule
def shown(world: Tables, board: Board, cell: int) -> int:
    """What shows on a cell: the agent on it, else the pushable or item, else what the map has there (C12)."""
    who = board.occupant[cell]
    if who > 0:
        return AGENT
    if who < 0:
        return world.thing_kind[-who - 1]
    kind = world.terrain[cell]
    if kind == BUSH and board.objects[world.object_at[cell], TRAMPLED]:
        return EMPTY
    if kind == CLOSED_DOOR and board.objects[world.object_at[cell], CONDITION] == DOOR_OPEN:
        return OPEN_DOOR
    return kind


@rule
def may_be_entered(kind: int) -> bool:
    """Empty or walk-over: goal, switch, lava, unsteady ground, open door."""
    return kind <= OPEN_DOOR


@rule
def is_pushable(kind: int) -> bool:
    return kind == BLOCK or kind == ROCK


@rule
def is_item(kind: int) -> bool:
    return KEY <= kind <= BOX


@rule
def can_act(board: Board, agent: int) -> bool:
    return not (board.agents[agent, TERMINATED] or board.agents[agent, PAUSED])


@rule
def front_cell(world: Tables, board: Board, agent: int) -> int:
    return world.neighbour[board.agents[agent, CELL], board.agents[agent, DIRECTION]]


# --- moving and pushing (6.2 to 6.5) ----------------------------------------------------------------------------------


@rule
def forward(world: Tables, board: Board, agent: int) -> None:
    """Step ahead, push, or enter a bush; nothing happens where the way is barred."""
    cell = front_cell(world, board, agent)
    if not board.closed[cell]:
        advance(world, board, agent, cell)


@rule
def advance(world: Tables, board: Board, agent: int, cell: int) -> None:
    """Go to the cell ahead as it shows now."""
    kind = shown(world, board, cell)
    if may_be_entered(kind):
        move(world, board, agent, cell)
    elif is_pushable(kind):
        end = end_of_push(world, board, agent, cell)
        if end != WALL_CELL:
            push(world, board, agent, cell, end)
    elif kind == BUSH:
        enter_bush(world, board, agent, cell)


@rule
def move(world: Tables, board: Board, agent: int, cell: int) -> None:
    """Put the agent on a cell; lava terminates whoever comes to stand on it (C5)."""
    board.occupant[board.agents[agent, CELL]] = 0
    board.occupant[cell] = agent + 1
    board.agents[agent, CELL] = cell
    if world.terrain[cell] == LAVA:
        board.agents[agent, TERMINATED] = 1


@rule
def end_of_push(world: Tables, board: Board, agent: int, cell: int) -> int:
    """The first cell behind the chain of blocks and rocks that starts at ``cell``, or ``WALL_CELL`` if it won't budge."""
    direction = board.agents[agent, DIRECTION]
    kind = shown(world, board, cell)
    while is_pushable(kind):
        if kind == ROCK and not world.traits[agent, PUSHES_ROCKS]:
            return WALL_CELL
        cell = world.neighbour[cell, direction]
        kind = shown(world, board, cell)
    if may_be_entered(kind) and not board.closed[cell]:
        return cell
    return WALL_CELL


@rule
def push(world: Tables, board: Board, agent: int, cell: int, end: int) -> None:
    """Move the chain from ``cell`` on by one cell, its last member to ``end``, and the agent after it."""
    backward = (board.agents[agent, DIRECTION] + 2) & 3
    while end != cell:
        behind = world.neighbour[end, backward]
        board.occupant[end] = board.occupant[behind]
        board.things[-board.occupant[end] - 1] = end
        end = behind
    move(world, board, agent, cell)


@rule
def enter_bush(world: Tables, board: Board, agent: int, cell: int) -> None:
    """Robots and their like trample the bush for good, others slip in."""
    if world.traits[agent, IS_ROBOT_LIKE]:
        board.objects[world.object_at[cell], TRAMPLED] = 1
    move(world, board, agent, cell)


# --- items (6.7) ------------------------------------------------------------------------------------------------------


@rule
def pickup(world: Tables, board: Board, agent: int, cell: int) -> None:
    """Take the key, ball or box ahead, with free hands."""
    if is_item(shown(world, board, cell)) and board.agents[agent, CARRIED] == 0:
        board.agents[agent, CARRIED] = world.thing_type[-board.occupant[cell] - 1] + 1
        remove_item(board, cell)


@rule
def drop(world: Tables, board: Board, agent: int, cell: int) -> None:
    """Lay what is carried on the cell ahead, if that shows nothing or something walk-over (C13)."""
    carried = board.agents[agent, CARRIED] - 1
    if carried < 0 or not may_be_entered(shown(world, board, cell)):
        return
    for k in range(world.type_range[carried, 0], world.type_range[carried, 1]):
        if board.things[k] == WALL_CELL:  # one of this type that lies nowhere: things of a type are interchangeable
            board.things[k] = cell
            board.occupant[cell] = -(k + 1)
            board.agents[agent, CARRIED] = 0
            return


@rule
def remove_item(board: Board, cell: int) -> None:
    board.things[-board.occupant[cell] - 1] = WALL_CELL
    board.occupant[cell] = 0


# --- doors and buttons (6.8) ------------------------------------------------------------------------------------------


@rule
def toggle(world: Tables, board: Board, agent: int, cell: int) -> int:
    """Operate what the cell ahead shows. Returns the control button whose programming this starts, else -1."""
    kind = shown(world, board, cell)
    it = world.object_at[cell]
    if kind == OPEN_DOOR or kind == CLOSED_DOOR:
        toggle_door(world, board, agent, it)
    elif kind == BOX:
        remove_item(board, cell)
    elif kind == KILL_BUTTON:
        press_kill_button(world, board, agent, it)
    elif kind == PAUSE_SWITCH:
        flip_pause_switch(world, board, agent, it)
    elif kind == DISABLING_SWITCH:
        flip_disabling_switch(world, board, agent, it)
    elif kind == CONTROL_BUTTON:
        return press_control_button(world, board, agent, it)
    return -1


@rule
def toggle_door(world: Tables, board: Board, agent: int, door: int) -> None:
    """Anybody opens and closes an unlocked door; a locked one needs a key of its colour, which is kept."""
    condition = board.objects[door, CONDITION]
    if condition == DOOR_OPEN:
        board.objects[door, CONDITION] = DOOR_CLOSED
    elif condition == DOOR_CLOSED:
        board.objects[door, CONDITION] = DOOR_OPEN
    elif world.object_trait[door] >= 0 and board.agents[agent, CARRIED] == world.object_trait[door] + 1:
        board.objects[door, CONDITION] = DOOR_OPEN


@rule
def press_kill_button(world: Tables, board: Board, agent: int, button: int) -> None:
    """A yellow agent terminates all grey ones."""
    if board.objects[button, ENABLED] and world.traits[agent, IS_YELLOW]:
        for other in range(board.agents.shape[0]):
            if world.traits[other, IS_GREY]:
                board.agents[other, TERMINATED] = 1


@rule
def flip_pause_switch(world: Tables, board: Board, agent: int, switch: int) -> None:
    """A yellow agent pauses all grey ones, or releases them."""
    if board.objects[switch, ENABLED] and world.traits[agent, IS_YELLOW]:
        board.objects[switch, IS_ON] ^= 1
        pause_robots(world, board, board.objects[switch, IS_ON])


@rule
def pause_robots(world: Tables, board: Board, paused: int) -> None:
    for other in range(board.agents.shape[0]):
        if world.traits[other, IS_GREY]:
            board.agents[other, PAUSED] = paused


@rule
def flip_disabling_switch(world: Tables, board: Board, agent: int, switch: int) -> None:
    """A grey agent disables every object of the switch's target kind that is enabled, and enables the others.

    A pause switch that is disabled while on releases the robots and stays on.
    """
    if not world.traits[agent, IS_GREY]:
        return
    target = world.object_trait[switch]
    for it in range(world.object_kind.size):
        if world.object_kind[it] == target:
            board.objects[it, ENABLED] ^= 1
            if target == PAUSE_SWITCH and board.objects[it, IS_ON] and not board.objects[it, ENABLED]:
                pause_robots(world, board, 0)


@rule
def press_control_button(world: Tables, board: Board, agent: int, button: int) -> int:
    """A grey agent starts to program the button; a yellow one forces the recorded action on the recorded agent.

    Returns the button if its programming starts just now, else -1.
    """
    state = board.objects[button]
    if not state[ENABLED]:
        return -1
    if world.traits[agent, IS_GREY] and not (state[AWAITING] and state[CONTROLLED] == agent + 1):
        state[AWAITING] = 1
        state[CONTROLLED] = agent + 1
        return button
    if world.traits[agent, IS_YELLOW] and state[CONTROLLED] and state[RECORDED]:
        board.agents[state[CONTROLLED] - 1, FORCED] = state[RECORDED]
    return -1


# --- one action -------------------------------------------------------------------------------------------------------


@rule
def act(world: Tables, board: Board, agent: int, action: int) -> None:
    """Carry out one agent's action (an id) now, and let waiting control buttons record it (6.9)."""
    meaning = world.meaning[action]
    started = -1
    if meaning == FORWARD:
        forward(world, board, agent)
    elif meaning == LEFT:
        board.agents[agent, DIRECTION] = (board.agents[agent, DIRECTION] + 3) & 3
    elif meaning == RIGHT:
        board.agents[agent, DIRECTION] = (board.agents[agent, DIRECTION] + 1) & 3
    elif meaning == PICKUP:
        pickup(world, board, agent, front_cell(world, board, agent))
    elif meaning == DROP:
        drop(world, board, agent, front_cell(world, board, agent))
    elif meaning == TOGGLE:
        started = toggle(world, board, agent, front_cell(world, board, agent))
    for button in world.control_buttons:
        if button != started and board.objects[button, AWAITING] and board.objects[button, CONTROLLED] == agent + 1:
            board.objects[button, RECORDED] = action + 1
            board.objects[button, AWAITING] = 0
