"""What a profile of actions does: the joint transitions of section 7 of the specification, in its complete reading.

From the state as it is (``read_intents``, once a state), each agent's action gets a *role* and, in case others want the
same, a *resource*. One profile's step (``prepare``) is either certain, and everybody acts in index order, or there are
independent draws (``form_blocks``, ``plan_draws``, ``next_draw``): which member of a conflict block goes first, who stumbles
where, who gets into a magic wall or a bush. Each combination is one outcome, which ``play`` carries out.
"""

from __future__ import annotations

import numpy as np

from empo_bi.runtime.jit import allocating, inlined, rule
from empo_bi.types import FloatArray
from empo_bi.world.board import (
    AGENT,
    BUSH,
    BUSHES_ARE_RISKY,
    DROP,
    FORWARD,
    KILL_BUTTON,
    LEFT,
    MAGIC_WALL,
    N_ACTIONS,
    N_AGENTS,
    NO,
    PAUSE_SWITCH,
    PICKUP,
    RIGHT,
    STILL,
    TOGGLE,
    UNSTEADY,
    agent_at,
    can_act,
    flag,
    front_cell,
    has_trait,
    is_item,
    is_pushable,
    meaning_of,
    object_at,
    set_agent,
    shown,
    terrain,
    trait_of_object,
    wall_ahead,
)
from empo_bi.world.codes import ALL_SIDES
from empo_bi.world.layout import ACTIVE, CELL, DIRECTION, ENABLED, FORCED, WALL_CELL
from empo_bi.world.rules import end_of_push
from empo_bi.world.tables import (
    ENTER_BUSH,
    ENTER_MAGIC_WALL,
    ENTERS_MAGIC_WALLS,
    IS_GREY,
    IS_ROBOT_LIKE,
    IS_YELLOW,
    SOLIDIFY,
    STUMBLE,
    IntArray,
)

# Roles of an agent in a step (7.3), by increasing phase of execution (7.7).
IDLE, NORMAL, STUMBLER, MAGICIAN, BUSH_GOER = range(5)
# Options of a draw (7.6).
STRAIGHT, STUMBLE_LEFT, STUMBLE_RIGHT = range(3)
ENTER, FAIL, SOLIDIFY_WALL = range(3)
MAX_OPTIONS = 3

PRIVATE = 0  # the resource of an action that conflicts with no other
MAX_OUTCOMES = 1 << 20


# An intent: what an agent would try with an action id, according to the state before anything moves. `intents` has shape
# (N, A, 5), an array of int64; the entries of the last axis are:
REAL_ACTION = 0  # the action carried out, another one than chosen if forced (7.1)
INTENDED_ROLE = 1
RESOURCE = 2  # equal and not PRIVATE means conflict (7.5)
IS_TURN = 3
HITS_ROBOTS = 4  # toggles an enabled kill button or pause switch
INTENT_SIZE = 5

# A step: what one profile makes of the agents. `step` has shape (N, 10), int64, with the columns:
ACTION = 0
ROLE = 1
LEADER = 2  # lowest member of the agent's conflict block; only for normal agents
N_OPTIONS = 3  # 1 if there is nothing to draw; a block's draw is its leader's
OPTION = 4  # the current draw
CHOSEN = 5  # the action id in the profile; ACTION may be a forced one instead
HAS_ACTED = 6  # this and the next ones are notes of the phases of play
CONTESTED_CELL = 7
IS_BLOCKED = 8
DECISION = 9
STEP_SIZE = 10
# and `odds`, (N, 3) float64, has the probabilities of the options of stumblers, magicians and bush goers.


@allocating
def new_intents(world: IntArray) -> IntArray:
    return np.zeros((world[N_AGENTS], world[N_ACTIONS], INTENT_SIZE), np.int64)


@allocating
def new_step(world: IntArray) -> IntArray:
    return np.zeros((world[N_AGENTS], STEP_SIZE), np.int64)


@allocating
def new_odds(world: IntArray) -> FloatArray:
    return np.zeros((world[N_AGENTS], MAX_OPTIONS))


# --- once a state -----------------------------------------------------------------------------------------------------


@rule
def read_intents(world: IntArray, board: IntArray, intents: IntArray) -> None:
    """Judge every agent's every action from the loaded state, and consume the forced actions (7.1 to 7.3, 7.5)."""
    for i in range(world[N_AGENTS]):
        forced = agent_at(board, i, FORCED)
        set_agent(board, i, FORCED, NO)
        front = front_cell(world, board, i)
        kind = shown(world, board, front)
        for a in range(world[N_ACTIONS]):
            action = forced - 1 if forced else a
            meaning = meaning_of(world, action)
            role = role_of(world, board, i, meaning, front, kind)
            intents[i, a, REAL_ACTION] = action
            intents[i, a, INTENDED_ROLE] = role
            intents[i, a, RESOURCE] = PRIVATE
            intents[i, a, IS_TURN] = meaning == LEFT or meaning == RIGHT
            intents[i, a, HITS_ROBOTS] = False
            if role == NORMAL and meaning >= FORWARD:
                intents[i, a, RESOURCE] = resource_of(world, board, i, meaning, front, kind)
                intents[i, a, HITS_ROBOTS] = meaning == TOGGLE and hits_robots(world, board, i, front, kind)


@inlined
def role_of(world: IntArray, board: IntArray, agent: int, meaning: int, front: int, kind: int) -> int:
    """The first class of 7.3 that fits; ``kind`` is what the ``front`` cell shows."""
    if meaning == STILL or not can_act(board, agent):
        return IDLE
    if meaning != FORWARD:
        return NORMAL
    if kind == MAGIC_WALL and can_try_magic_wall(world, board, agent, front):
        return MAGICIAN
    if kind == BUSH and not has_trait(world, agent, IS_ROBOT_LIKE) and world[BUSHES_ARE_RISKY]:
        return BUSH_GOER
    if terrain(world, agent_at(board, agent, CELL)) == UNSTEADY:
        return STUMBLER
    return NORMAL


@rule
def can_try_magic_wall(world: IntArray, board: IntArray, agent: int, cell: int) -> bool:
    """Whether the agent can enter magic walls, the wall is active, and the agent faces its magic side."""
    wall = object_at(world, cell)
    if not (has_trait(world, agent, ENTERS_MAGIC_WALLS) and flag(world, board, wall, ACTIVE)):
        return False
    side = trait_of_object(world, wall)
    return side == ALL_SIDES or side == (agent_at(board, agent, DIRECTION) + 2) & 3


@inlined
def resource_of(world: IntArray, board: IntArray, agent: int, meaning: int, front: int, kind: int) -> int:
    """The resource that a normal agent's action needs: a cell to enter, an item to take, an agent to hand over to."""
    if meaning == FORWARD:
        if front == WALL_CELL:  # two agents that face the same wall are in conflict, so walls have numbers
            return wall_ahead(world, agent_at(board, agent, CELL), agent_at(board, agent, DIRECTION))
        end = end_of_push(world, board, agent, front) if is_pushable(kind) else front
        return PRIVATE if end == WALL_CELL else 3 * end
    if meaning == PICKUP and is_item(kind):
        return 3 * front + 1
    if meaning == DROP and kind == AGENT:
        return 3 * front + 2
    return PRIVATE


@inlined
def hits_robots(world: IntArray, board: IntArray, agent: int, front: int, kind: int) -> bool:
    """Whether a toggle by this agent terminates, pauses or releases all robots."""
    if kind != KILL_BUTTON and kind != PAUSE_SWITCH:
        return False
    return has_trait(world, agent, IS_YELLOW) and flag(world, board, object_at(world, front), ENABLED) == 1


# --- once a profile ---------------------------------------------------------------------------------------------------


@inlined
def prepare(world: IntArray, intents: IntArray, profile_JN: IntArray, j: int, step: IntArray) -> bool:
    """Fix actions and roles of profile ``j``. True if the outcome is random, False if it is certain (7.4)."""
    n_busy, n_not_turning, special = 0, 0, False
    for i in range(step.shape[0]):
        a = profile_JN[j, i]
        step[i, CHOSEN] = a
        step[i, ACTION] = intents[i, a, REAL_ACTION]
        step[i, ROLE] = intents[i, a, INTENDED_ROLE]
        if step[i, ROLE] != IDLE:
            n_busy += 1
            n_not_turning += 1 - intents[i, a, IS_TURN]
            special |= step[i, ROLE] != NORMAL
    if special:
        return True
    return n_busy > 1 and n_not_turning > 1 and any_conflict(world, intents, step)


@inlined
def any_conflict(world: IntArray, intents: IntArray, step: IntArray) -> bool:
    """Whether some conflict block has two members."""
    for i in range(step.shape[0]):
        if step[i, ROLE] == NORMAL:
            mine = intents[i, step[i, CHOSEN], RESOURCE]
            for j in range(i + 1, step.shape[0]):
                if step[j, ROLE] == NORMAL:
                    if mine != PRIVATE and intents[j, step[j, CHOSEN], RESOURCE] == mine:
                        return True
                    if intents[i, step[i, CHOSEN], HITS_ROBOTS] and has_trait(world, j, IS_GREY):
                        return True
                    if intents[j, step[j, CHOSEN], HITS_ROBOTS] and has_trait(world, i, IS_GREY):
                        return True
    return False


@rule
def form_blocks(world: IntArray, intents: IntArray, step: IntArray) -> None:
    """Unite agents that need the same resource, then agents that hit all robots with the robots (7.5)."""
    n = step.shape[0]
    for i in range(n):
        step[i, LEADER] = i
        for j in range(i):
            if step[i, ROLE] == NORMAL and step[j, ROLE] == NORMAL:
                claim = intents[i, step[i, CHOSEN], RESOURCE]
                if claim != PRIVATE and claim == intents[j, step[j, CHOSEN], RESOURCE]:
                    step[i, LEADER] = step[j, LEADER]
                    break
    for i in range(n):
        if step[i, ROLE] == NORMAL and intents[i, step[i, CHOSEN], HITS_ROBOTS]:
            for j in range(n):
                if step[j, ROLE] == NORMAL and has_trait(world, j, IS_GREY):
                    unite(step, step[i, LEADER], step[j, LEADER])


@rule
def unite(step: IntArray, one: int, other: int) -> None:
    first, second = min(one, other), max(one, other)
    for i in range(step.shape[0]):
        if step[i, LEADER] == second:
            step[i, LEADER] = first


@rule
def block_size(step: IntArray, leader: int) -> int:
    size = 0
    for i in range(step.shape[0]):
        size += step[i, ROLE] == NORMAL and step[i, LEADER] == leader
    return size


@rule
def plan_draws(world: IntArray, chances: FloatArray, board: IntArray, step: IntArray, odds: FloatArray) -> int:
    """List each agent's options with their odds (7.6). Returns an upper bound on the number of outcomes, 0 if too many."""
    bound = 1.0
    for i in range(step.shape[0]):
        role = step[i, ROLE]
        options = 1
        if role == NORMAL and step[i, LEADER] == i:
            options = block_size(step, i)
        elif role == STUMBLER:
            options = 3
            p = chances[STUMBLE]
            odds[i, STRAIGHT] = 1.0 - p
            odds[i, STUMBLE_LEFT] = odds[i, STUMBLE_RIGHT] = p / 2
        elif role == MAGICIAN:
            options = 3
            e, s = chances[ENTER_MAGIC_WALL], chances[SOLIDIFY]
            odds[i, ENTER] = e
            odds[i, FAIL] = (1.0 - e) * (1.0 - s)
            odds[i, SOLIDIFY_WALL] = (1.0 - e) * s
            bound *= rivals_at_wall(world, board, step, i)
        elif role == BUSH_GOER:
            options = 2
            odds[i, ENTER] = chances[ENTER_BUSH]
            odds[i, FAIL] = 1.0 - chances[ENTER_BUSH]
        step[i, N_OPTIONS] = options
        step[i, OPTION] = 0
        bound *= options
    return int(bound) if bound <= MAX_OUTCOMES else 0


@rule
def rivals_at_wall(world: IntArray, board: IntArray, step: IntArray, agent: int) -> int:
    """How many magicians up to this one face the same wall: its factor in the bound on draws (C14)."""
    rivals = 0
    for j in range(agent + 1):
        if step[j, ROLE] == MAGICIAN and front_cell(world, board, j) == front_cell(world, board, agent):
            rivals += 1
    return rivals


@rule
def next_draw(step: IntArray) -> bool:
    """Go on to the next combination of options; False after the last one."""
    for i in range(step.shape[0]):
        step[i, OPTION] += 1
        if step[i, OPTION] < step[i, N_OPTIONS]:
            return True
        step[i, OPTION] = 0
    return False


@rule
def draw_probability(step: IntArray, odds: FloatArray) -> float:
    probability = 1.0
    for i in range(step.shape[0]):
        if step[i, ROLE] == NORMAL:
            probability /= step[i, N_OPTIONS]
        elif step[i, ROLE] != IDLE:
            probability *= odds[i, step[i, OPTION]]
    return probability
