"""What one action does: the rules of section 6 of the specification, in its complete reading.

Each function changes a board by one rule; ``board`` has the words they are written in, ``joint_actions`` decides who acts
when. In reading order: moving and pushing, bushes, items, doors and buttons, and one whole action.
"""

from __future__ import annotations

from empo_bi.runtime.jit import inlined, rule
from empo_bi.world.board import (
    BOX,
    BUSH,
    CLOSED_DOOR,
    CONTROL_BUTTON,
    DISABLING_SWITCH,
    DOOR_CLOSED,
    DOOR_OPEN,
    DROP,
    FORWARD,
    HAS_CONTROL_BUTTONS,
    KILL_BUTTON,
    LAVA,
    LEFT,
    N_AGENTS,
    N_OBJECTS,
    NO,
    NOBODY,
    OPEN_DOOR,
    PAUSE_SWITCH,
    PICKUP,
    RIGHT,
    ROCK,
    TOGGLE,
    YES,
    agent_at,
    ahead,
    end_of_type,
    first_of_type,
    flag,
    front_cell,
    has_trait,
    is_closed,
    is_item,
    is_pushable,
    kind_of_object,
    may_be_entered,
    meaning_of,
    object_at,
    set_agent,
    set_flag,
    set_occupant,
    set_thing_cell,
    shown,
    terrain,
    thing_cell,
    thing_on,
    trait_of_object,
    type_of_thing,
)
from empo_bi.world.layout import (
    AWAITING,
    CARRIED,
    CELL,
    CONDITION,
    CONTROLLED,
    DIRECTION,
    ENABLED,
    FORCED,
    IS_ON,
    PAUSED,
    RECORDED,
    TERMINATED,
    TRAMPLED,
    WALL_CELL,
)
from empo_bi.world.tables import IS_GREY, IS_ROBOT_LIKE, IS_YELLOW, PUSHES_ROCKS, IntArray

# --- moving and pushing (6.2 to 6.5) ----------------------------------------------------------------------------------


@inlined
def forward(world: IntArray, board: IntArray, agent: int) -> None:
    """Step ahead, push, or enter a bush; nothing happens if the way is blocked."""
    cell = front_cell(world, board, agent)
    if not is_closed(world, board, cell):
        advance(world, board, agent, cell)


@inlined
def advance(world: IntArray, board: IntArray, agent: int, cell: int) -> None:
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


@inlined
def move(world: IntArray, board: IntArray, agent: int, cell: int) -> None:
    """Put the agent on a cell; lava terminates any agent that enters it (C5)."""
    set_occupant(world, board, agent_at(board, agent, CELL), NOBODY)
    set_occupant(world, board, cell, agent + 1)
    set_agent(board, agent, CELL, cell)
    if terrain(world, cell) == LAVA:
        set_agent(board, agent, TERMINATED, YES)


@rule
def end_of_push(world: IntArray, board: IntArray, agent: int, cell: int) -> int:
    """The first cell behind the chain of blocks and rocks that starts at ``cell``, ``WALL_CELL`` if it cannot move."""
    direction = agent_at(board, agent, DIRECTION)
    kind = shown(world, board, cell)
    while is_pushable(kind):
        if kind == ROCK and not has_trait(world, agent, PUSHES_ROCKS):
            return WALL_CELL
        cell = ahead(world, cell, direction)
        kind = shown(world, board, cell)
    if may_be_entered(kind) and not is_closed(world, board, cell):
        return cell
    return WALL_CELL


@rule
def push(world: IntArray, board: IntArray, agent: int, cell: int, end: int) -> None:
    """Move the chain from ``cell`` on by one cell, its last member to ``end``, and the agent after it."""
    backward = (agent_at(board, agent, DIRECTION) + 2) & 3
    while end != cell:
        behind = ahead(world, end, backward)
        thing = thing_on(world, board, behind)
        set_thing_cell(world, board, thing, end)
        set_occupant(world, board, end, -(thing + 1))
        end = behind
    move(world, board, agent, cell)


@rule
def enter_bush(world: IntArray, board: IntArray, agent: int, cell: int) -> None:
    """Robot-like agents trample the bush permanently; others enter it."""
    if has_trait(world, agent, IS_ROBOT_LIKE):
        set_flag(world, board, object_at(world, cell), TRAMPLED, YES)
    move(world, board, agent, cell)


# --- items (6.7) ------------------------------------------------------------------------------------------------------


@rule
def pickup(world: IntArray, board: IntArray, agent: int, cell: int) -> None:
    """Pick up the key, ball or box ahead if nothing is carried."""
    if is_item(shown(world, board, cell)) and agent_at(board, agent, CARRIED) == 0:
        set_agent(board, agent, CARRIED, type_of_thing(world, thing_on(world, board, cell)) + 1)
        remove_item(world, board, cell)


@rule
def drop(world: IntArray, board: IntArray, agent: int, cell: int) -> None:
    """Drop the carried item on the cell ahead if that is empty or walk-over (C13)."""
    carried = agent_at(board, agent, CARRIED) - 1
    if carried < 0 or not may_be_entered(shown(world, board, cell)):
        return
    for k in range(first_of_type(world, carried), end_of_type(world, carried)):
        if (
            thing_cell(world, board, k) == WALL_CELL
        ):  # one of this type that lies nowhere: things of a type are interchangeable
            set_thing_cell(world, board, k, cell)
            set_occupant(world, board, cell, -(k + 1))
            set_agent(board, agent, CARRIED, NO)
            return


@rule
def remove_item(world: IntArray, board: IntArray, cell: int) -> None:
    set_thing_cell(world, board, thing_on(world, board, cell), WALL_CELL)
    set_occupant(world, board, cell, NOBODY)


# --- doors and buttons (6.8) ------------------------------------------------------------------------------------------


@rule
def toggle(world: IntArray, board: IntArray, agent: int, cell: int) -> int:
    """Operate what the cell ahead shows. Returns the control button whose programming this starts, else -1."""
    kind = shown(world, board, cell)
    it = object_at(world, cell)
    if kind == OPEN_DOOR or kind == CLOSED_DOOR:
        toggle_door(world, board, agent, it)
    elif kind == BOX:
        remove_item(world, board, cell)
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
def toggle_door(world: IntArray, board: IntArray, agent: int, door: int) -> None:
    """Any agent opens and closes an unlocked door; a locked one needs a key of its colour, which is kept."""
    condition = flag(world, board, door, CONDITION)
    if condition == DOOR_OPEN:
        set_flag(world, board, door, CONDITION, DOOR_CLOSED)
    elif condition == DOOR_CLOSED:
        set_flag(world, board, door, CONDITION, DOOR_OPEN)
    elif trait_of_object(world, door) >= 0 and agent_at(board, agent, CARRIED) == trait_of_object(world, door) + 1:
        set_flag(world, board, door, CONDITION, DOOR_OPEN)


@rule
def press_kill_button(world: IntArray, board: IntArray, agent: int, button: int) -> None:
    """A yellow agent terminates all grey ones."""
    if flag(world, board, button, ENABLED) and has_trait(world, agent, IS_YELLOW):
        for other in range(world[N_AGENTS]):
            if has_trait(world, other, IS_GREY):
                set_agent(board, other, TERMINATED, YES)


@rule
def flip_pause_switch(world: IntArray, board: IntArray, agent: int, switch: int) -> None:
    """A yellow agent pauses all grey ones, or releases them."""
    if flag(world, board, switch, ENABLED) and has_trait(world, agent, IS_YELLOW):
        set_flag(world, board, switch, IS_ON, 1 - flag(world, board, switch, IS_ON))
        pause_robots(world, board, flag(world, board, switch, IS_ON))


@rule
def pause_robots(world: IntArray, board: IntArray, paused: int) -> None:
    for other in range(world[N_AGENTS]):
        if has_trait(world, other, IS_GREY):
            set_agent(board, other, PAUSED, paused)


@rule
def flip_disabling_switch(world: IntArray, board: IntArray, agent: int, switch: int) -> None:
    """A grey agent disables every object of the switch's target kind that is enabled, and enables the others.

    A pause switch that is disabled while on releases the robots and stays on.
    """
    if not has_trait(world, agent, IS_GREY):
        return
    target = trait_of_object(world, switch)
    for it in range(world[N_OBJECTS]):
        if kind_of_object(world, it) == target:
            set_flag(world, board, it, ENABLED, 1 - flag(world, board, it, ENABLED))
            if target == PAUSE_SWITCH and flag(world, board, it, IS_ON) and not flag(world, board, it, ENABLED):
                pause_robots(world, board, NO)


@rule
def press_control_button(world: IntArray, board: IntArray, agent: int, button: int) -> int:
    """A grey agent starts to program the button; a yellow one forces the recorded action on the recorded agent.

    Returns the button if its programming starts just now, else -1.
    """
    if not flag(world, board, button, ENABLED):
        return -1
    controlled = flag(world, board, button, CONTROLLED)
    recorded = flag(world, board, button, RECORDED)
    if has_trait(world, agent, IS_GREY) and not (flag(world, board, button, AWAITING) and controlled == agent + 1):
        set_flag(world, board, button, AWAITING, YES)
        set_flag(world, board, button, CONTROLLED, agent + 1)
        return button
    if has_trait(world, agent, IS_YELLOW) and controlled and recorded:
        set_agent(board, controlled - 1, FORCED, recorded)
    return -1


# --- one action -------------------------------------------------------------------------------------------------------


@inlined
def act(world: IntArray, board: IntArray, agent: int, action: int) -> None:
    """Carry out one agent's action (an id) now, and let waiting control buttons record it (6.9)."""
    meaning = meaning_of(world, action)
    started = -1
    if meaning == FORWARD:
        forward(world, board, agent)
    elif meaning == LEFT:
        set_agent(board, agent, DIRECTION, (agent_at(board, agent, DIRECTION) + 3) & 3)
    elif meaning == RIGHT:
        set_agent(board, agent, DIRECTION, (agent_at(board, agent, DIRECTION) + 1) & 3)
    elif meaning == PICKUP:
        pickup(world, board, agent, front_cell(world, board, agent))
    elif meaning == DROP:
        drop(world, board, agent, front_cell(world, board, agent))
    elif meaning == TOGGLE:
        started = toggle(world, board, agent, front_cell(world, board, agent))
    if world[HAS_CONTROL_BUTTONS]:
        record(world, board, agent, action, started)


@rule
def record(world: IntArray, board: IntArray, agent: int, action: int, started: int) -> None:
    """Control buttons that await an action of this agent take this one, except the one ``started`` by it (6.9)."""
    for it in range(world[N_OBJECTS]):
        if kind_of_object(world, it) == CONTROL_BUTTON and it != started:
            if flag(world, board, it, AWAITING) and flag(world, board, it, CONTROLLED) == agent + 1:
                set_flag(world, board, it, RECORDED, action + 1)
                set_flag(world, board, it, AWAITING, NO)
