"""What a profile of actions does: the joint transitions of section 7 of the specification, in its complete reading.

A step goes like this. From the state as it is (``read_intents``, once a state), each agent's action gets a *role* and, in
case others want the same, a *resource*. For one profile (``prepare``) the step is either certain, and everybody acts in
index order, or there are independent draws: which member of a conflict block goes first, who stumbles where, who gets
into a magic wall or a bush. Each combination of draws is one outcome (``play``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from empo_bi.runtime.jit import rule
from empo_bi.world.codes import ALL_SIDES
from empo_bi.world.layout import ACTIVE, CELL, DIRECTION, ENABLED, FORCED, TERMINATED, WALL_CELL
from empo_bi.world.rules import (
    AGENT,
    BUSH,
    DROP,
    FORWARD,
    KILL_BUTTON,
    LEFT,
    MAGIC_WALL,
    PAUSE_SWITCH,
    PICKUP,
    RIGHT,
    STILL,
    TOGGLE,
    UNSTEADY,
    Board,
    act,
    advance,
    can_act,
    end_of_push,
    enter_bush,
    front_cell,
    is_item,
    is_pushable,
    move,
    shown,
)
from empo_bi.world.tables import (
    ENTER_BUSH,
    ENTER_MAGIC_WALL,
    ENTERS_MAGIC_WALLS,
    IS_GREY,
    IS_ROBOT_LIKE,
    IS_YELLOW,
    SOLIDIFY,
    STUMBLE,
    Tables,
)

# Roles of an agent in a step (7.3), by increasing phase of execution (7.7).
IDLE, NORMAL, STUMBLER, MAGICIAN, BUSH_GOER = range(5)
# Options of a draw (7.6).
STRAIGHT, STUMBLE_LEFT, STUMBLE_RIGHT = range(3)
ENTER, FAIL, SOLIDIFY_WALL = range(3)
MAX_OPTIONS = 3

PRIVATE = 0  # the resource of an action that conflicts with no other
MAX_OUTCOMES = 1 << 24


class Intents(NamedTuple):
    """What each agent (N) would try with each action id (A), judged from the state before anything moves."""

    action: npt.NDArray[np.int32]  # (N, A): the action carried out, another one than chosen if forced (7.1)
    role: npt.NDArray[np.int32]  # (N, A)
    resource: npt.NDArray[np.int32]  # (N, A): equal and not PRIVATE means conflict (7.5)
    is_turn: npt.NDArray[np.bool_]  # (N, A)
    hits_robots: npt.NDArray[np.bool_]  # (N, A): toggles an enabled kill button or pause switch


class Step(NamedTuple):
    """One profile's step: each agent's action, role, conflict block and draw."""

    action: npt.NDArray[np.int32]  # (N,)
    role: npt.NDArray[np.int32]  # (N,)
    leader: npt.NDArray[np.int32]  # (N,): lowest member of the agent's conflict block; only for normal agents
    n_options: npt.NDArray[np.int32]  # (N,): 1 where there is nothing to draw; a block's draw is its leader's
    odds: npt.NDArray[np.float64]  # (N, 3): probabilities of the options of stumblers, magicians and bush goers
    option: npt.NDArray[np.int32]  # (N,): the draw under way
    target: npt.NDArray[np.int32]  # (N,): scratch of the phases


@rule
def new_intents(world: Tables) -> Intents:
    shape = (world.traits.shape[0], world.meaning.size)
    return Intents(
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.int32),
        np.zeros(shape, np.bool_),
        np.zeros(shape, np.bool_),
    )


@rule
def new_step(world: Tables) -> Step:
    n = world.traits.shape[0]
    return Step(
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.zeros((n, MAX_OPTIONS)),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
    )


# --- once a state -----------------------------------------------------------------------------------------------------


@rule
def close_cells(board: Board, closed: bool) -> None:
    """Mark (or unmark) the cells held by living agents, S0: nobody enters them in this step."""
    for i in range(board.agents.shape[0]):
        board.closed[board.agents[i, CELL]] = closed and not board.agents[i, TERMINATED]


@rule
def read_intents(world: Tables, board: Board, intents: Intents) -> None:
    """Judge every agent's every action from the loaded state, and consume the forced actions (7.1 to 7.3, 7.5)."""
    for i in range(board.agents.shape[0]):
        forced = board.agents[i, FORCED]
        board.agents[i, FORCED] = 0
        for a in range(world.meaning.size):
            action = forced - 1 if forced else a
            meaning = world.meaning[action]
            role = role_of(world, board, i, meaning)
            intents.action[i, a] = action
            intents.role[i, a] = role
            intents.resource[i, a] = resource_of(world, board, i, meaning) if role == NORMAL else PRIVATE
            intents.is_turn[i, a] = meaning == LEFT or meaning == RIGHT
            intents.hits_robots[i, a] = role == NORMAL and meaning == TOGGLE and hits_robots(world, board, i)


@rule
def role_of(world: Tables, board: Board, agent: int, meaning: int) -> int:
    """The first class of 7.3 that fits."""
    if meaning == STILL or not can_act(board, agent):
        return IDLE
    if meaning != FORWARD:
        return NORMAL
    cell = front_cell(world, board, agent)
    kind = shown(world, board, cell)
    if kind == MAGIC_WALL and can_try_magic_wall(world, board, agent, cell):
        return MAGICIAN
    if kind == BUSH and not world.traits[agent, IS_ROBOT_LIKE] and world.chances[ENTER_BUSH] < 1.0:
        return BUSH_GOER
    if world.terrain[board.agents[agent, CELL]] == UNSTEADY:
        return STUMBLER
    return NORMAL


@rule
def can_try_magic_wall(world: Tables, board: Board, agent: int, cell: int) -> bool:
    """The agent has the gift, the wall is active, and the agent faces its magic side."""
    wall = world.object_at[cell]
    if not (world.traits[agent, ENTERS_MAGIC_WALLS] and board.objects[wall, ACTIVE]):
        return False
    side = world.object_trait[wall]
    return side == ALL_SIDES or side == (board.agents[agent, DIRECTION] + 2) & 3


@rule
def resource_of(world: Tables, board: Board, agent: int, meaning: int) -> int:
    """What a normal agent's action lays claim to: a cell to enter, an item to take, an agent to hand over to."""
    cell = front_cell(world, board, agent)
    kind = shown(world, board, cell)
    if meaning == FORWARD:
        if cell == WALL_CELL:  # two agents facing the same wall are in conflict too, so tell walls apart
            return world.wall_ahead[board.agents[agent, CELL], board.agents[agent, DIRECTION]]
        if is_pushable(kind):
            cell = end_of_push(world, board, agent, cell)
        return PRIVATE if cell == WALL_CELL else 3 * cell
    if meaning == PICKUP and is_item(kind):
        return 3 * cell + 1
    if meaning == DROP and kind == AGENT:
        return 3 * cell + 2
    return PRIVATE


@rule
def hits_robots(world: Tables, board: Board, agent: int) -> bool:
    """Whether a toggle by this agent kills or pauses (or releases) all robots."""
    cell = front_cell(world, board, agent)
    kind = shown(world, board, cell)
    if kind != KILL_BUTTON and kind != PAUSE_SWITCH:
        return False
    return world.traits[agent, IS_YELLOW] == 1 and board.objects[world.object_at[cell], ENABLED] == 1


# --- once a profile ---------------------------------------------------------------------------------------------------


@rule
def prepare(world: Tables, board: Board, intents: Intents, profile: npt.NDArray[np.int32], step: Step) -> int:
    """Fix roles, conflict blocks and draws of one profile. Returns an upper bound on its outcomes, 0 if it is certain."""
    n = step.action.size
    n_busy, n_not_turning, special = 0, 0, False
    for i in range(n):
        a = profile[i]
        step.action[i] = intents.action[i, a]
        step.role[i] = intents.role[i, a]
        if step.role[i] != IDLE:
            n_busy += 1
            n_not_turning += not intents.is_turn[i, a]
            special |= step.role[i] != NORMAL
    if not special:
        # The deterministic shortcuts of 7.4.
        if n_busy <= 1 or n_not_turning <= 1 or not any_conflict(world, intents, profile, step):
            return 0
    form_blocks(world, intents, profile, step)
    return plan_draws(world, board, step)


@rule
def any_conflict(world: Tables, intents: Intents, profile: npt.NDArray[np.int32], step: Step) -> bool:
    """Whether some conflict block has two members."""
    for i in range(step.role.size):
        if step.role[i] == NORMAL:
            mine = intents.resource[i, profile[i]]
            for j in range(i + 1, step.role.size):
                if step.role[j] == NORMAL:
                    if mine != PRIVATE and intents.resource[j, profile[j]] == mine:
                        return True
                    if intents.hits_robots[i, profile[i]] and world.traits[j, IS_GREY]:
                        return True
                    if intents.hits_robots[j, profile[j]] and world.traits[i, IS_GREY]:
                        return True
    return False


@rule
def form_blocks(world: Tables, intents: Intents, profile: npt.NDArray[np.int32], step: Step) -> None:
    """Unite agents after the same resource, then those who hit all robots with the robots (7.5)."""
    n = step.role.size
    for i in range(n):
        step.leader[i] = i
        for j in range(i):
            if step.role[i] == NORMAL and step.role[j] == NORMAL:
                claim = intents.resource[i, profile[i]]
                if claim != PRIVATE and claim == intents.resource[j, profile[j]]:
                    step.leader[i] = step.leader[j]
                    break
    for i in range(n):
        if step.role[i] == NORMAL and intents.hits_robots[i, profile[i]]:
            for j in range(n):
                if step.role[j] == NORMAL and world.traits[j, IS_GREY]:
                    unite(step, step.leader[i], step.leader[j])


@rule
def unite(step: Step, one: int, other: int) -> None:
    first, second = min(one, other), max(one, other)
    for i in range(step.leader.size):
        if step.leader[i] == second:
            step.leader[i] = first


@rule
def block_size(step: Step, leader: int) -> int:
    size = 0
    for i in range(step.leader.size):
        size += step.role[i] == NORMAL and step.leader[i] == leader
    return size


@rule
def plan_draws(world: Tables, board: Board, step: Step) -> int:
    """List each agent's options with their odds (7.6). Returns an upper bound on the number of outcomes."""
    bound = 1.0
    for i in range(step.role.size):
        role = step.role[i]
        options = 1
        if role == NORMAL and step.leader[i] == i:
            options = block_size(step, i)
        elif role == STUMBLER:
            options = 3
            p = world.chances[STUMBLE]
            step.odds[i, STRAIGHT] = 1.0 - p
            step.odds[i, STUMBLE_LEFT] = step.odds[i, STUMBLE_RIGHT] = p / 2
        elif role == MAGICIAN:
            options = 3
            e, s = world.chances[ENTER_MAGIC_WALL], world.chances[SOLIDIFY]
            step.odds[i, ENTER] = e
            step.odds[i, FAIL] = (1.0 - e) * (1.0 - s)
            step.odds[i, SOLIDIFY_WALL] = (1.0 - e) * s
            bound *= rivals_at_wall(world, board, step, i)
        elif role == BUSH_GOER:
            options = 2
            step.odds[i, ENTER] = world.chances[ENTER_BUSH]
            step.odds[i, FAIL] = 1.0 - world.chances[ENTER_BUSH]
        step.n_options[i] = options
        step.option[i] = 0
        bound *= options
    if bound > MAX_OUTCOMES:
        raise ValueError("one step of this world has more than 16 million outcomes; use fewer agents or less chance")
    return int(bound)


@rule
def rivals_at_wall(world: Tables, board: Board, step: Step, agent: int) -> int:
    """How many magicians up to this one stand before the same wall: its factor in the bound on draws (C14)."""
    rivals = 0
    for j in range(agent + 1):
        if step.role[j] == MAGICIAN and front_cell(world, board, j) == front_cell(world, board, agent):
            rivals += 1
    return rivals


@rule
def next_draw(step: Step) -> bool:
    """Go on to the next combination of options; False after the last one."""
    for i in range(step.option.size):
        step.option[i] += 1
        if step.option[i] < step.n_options[i]:
            return True
        step.option[i] = 0
    return False


@rule
def draw_probability(step: Step) -> float:
    probability = 1.0
    for i in range(step.option.size):
        if step.role[i] == NORMAL:
            probability /= step.n_options[i]
        elif step.role[i] != IDLE:
            probability *= step.odds[i, step.option[i]]
    return probability


# --- once an outcome --------------------------------------------------------------------------------------------------


@rule
def play_certain(world: Tables, board: Board, step: Step) -> None:
    """Everybody acts in index order; who is paused or terminated when the turn comes does not (7.4)."""
    for i in range(step.action.size):
        if world.meaning[step.action[i]] != STILL and can_act(board, i):
            act(world, board, i, step.action[i])


@rule
def play(world: Tables, board: Board, step: Step, magic_draw: int) -> int:
    """Play the draw under way (7.7). Returns how many equally likely ``magic_draw`` there are, normally 1 (C14)."""
    play_normal(world, board, step)
    play_stumblers(world, board, step)
    n_draws = play_magicians(world, board, step, magic_draw)
    play_bush_goers(world, board, step)
    return n_draws


@rule
def play_normal(world: Tables, board: Board, step: Step) -> None:
    """First the winner of each conflict block, in block order, then the others in index order."""
    n = step.role.size
    has_acted = step.target
    has_acted[:] = 0
    for leader in range(n):
        if step.role[leader] == NORMAL and step.leader[leader] == leader:
            winner = member(step, leader, step.option[leader])
            has_acted[winner] = 1
            if can_act(board, winner):
                act(world, board, winner, step.action[winner])
    for i in range(n):
        if step.role[i] == NORMAL and not has_acted[i] and can_act(board, i):
            act(world, board, i, step.action[i])


@rule
def member(step: Step, leader: int, rank: int) -> int:
    """The block's member of that rank, counted from 0 in index order."""
    for i in range(leader, step.leader.size):
        if step.role[i] == NORMAL and step.leader[i] == leader:
            if rank == 0:
                return i
            rank -= 1
    return leader


@rule
def play_stumblers(world: Tables, board: Board, step: Step) -> None:
    """All turn, then those move whose contested cell is free and wanted by no other stumbler (7.8)."""
    n = step.role.size
    contested = step.target
    for i in range(n):
        contested[i] = -1
        if step.role[i] == STUMBLER and can_act(board, i):
            turn = 3 if step.option[i] == STUMBLE_LEFT else 1 if step.option[i] == STUMBLE_RIGHT else 0
            board.agents[i, DIRECTION] = (board.agents[i, DIRECTION] + turn) & 3
            contested[i] = front_cell(world, board, i)
            if is_pushable(shown(world, board, contested[i])):
                end = end_of_push(world, board, i, contested[i])
                if end != WALL_CELL:
                    contested[i] = end
    # Judged for all before the first one moves; -2 - cell marks a blocked claim, which still blocks others.
    for i in range(n):
        if contested[i] >= 0:
            cell = contested[i]
            blocked = board.closed[cell] or board.occupant[cell] > 0
            for j in range(n):
                blocked |= j != i and (contested[j] == cell or contested[j] == -2 - cell)
            if blocked:
                contested[i] = -2 - cell
    for i in range(n):
        if contested[i] >= 0:
            advance(world, board, i, front_cell(world, board, i))


@rule
def play_magicians(world: Tables, board: Board, step: Step, magic_draw: int) -> int:
    """One of those who would enter a wall gets the chance; enter and solidify need an active wall ahead (C14)."""
    n = step.role.size
    option = step.target
    for i in range(n):
        takes_part = step.role[i] == MAGICIAN and can_act(board, i)
        option[i] = step.option[i] if takes_part else FAIL
    n_draws = 1
    for i in range(n):
        if step.role[i] == MAGICIAN and option[i] == ENTER:
            rivals = 0
            for j in range(n):
                rivals += is_rival(world, board, step, option, i, j)
            if rivals > 1:  # seen first by the lowest rival, which settles it for all
                chosen = (magic_draw // n_draws) % rivals
                n_draws *= rivals
                for j in range(i, n):
                    if is_rival(world, board, step, option, i, j):
                        if chosen != 0:
                            option[j] = FAIL
                        chosen -= 1
    for i in range(n):
        if step.role[i] == MAGICIAN and option[i] != FAIL:
            cell = front_cell(world, board, i)
            wall = world.object_at[cell]
            if shown(world, board, cell) == MAGIC_WALL and board.objects[wall, ACTIVE]:
                if option[i] == ENTER:
                    move(world, board, i, cell)
                else:
                    board.objects[wall, ACTIVE] = 0
    return n_draws


@rule
def is_rival(world: Tables, board: Board, step: Step, option: npt.NDArray[np.int32], one: int, other: int) -> bool:
    """Whether the other one would enter the same wall (everybody is one's own rival)."""
    return (
        step.role[other] == MAGICIAN
        and option[other] == ENTER
        and front_cell(world, board, other) == front_cell(world, board, one)
    )


@rule
def play_bush_goers(world: Tables, board: Board, step: Step) -> None:
    """Who succeeds enters the bush, if it is still there and free (7.10)."""
    for i in range(step.role.size):
        if step.role[i] == BUSH_GOER and step.option[i] == ENTER:
            cell = front_cell(world, board, i)
            if shown(world, board, cell) == BUSH:
                enter_bush(world, board, i, cell)
