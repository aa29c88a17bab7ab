"""Playing one outcome of a step: which agent acts when (specification, 7.4 and 7.7 to 7.10, C14).

``joint_actions`` has fixed the roles and the draw under way; here the agents carry out their actions by the ``rules``:
normal agents first, winners of conflicts before the others, then stumblers, those before magic walls, then those before
bushes.
"""

from __future__ import annotations

from empo_bi.runtime.jit import inlined, rule
from empo_bi.world.board import (
    BUSH,
    MAGIC_WALL,
    NO,
    STILL,
    agent_at,
    can_act,
    flag,
    front_cell,
    is_closed,
    is_pushable,
    meaning_of,
    object_at,
    occupant,
    set_agent,
    set_flag,
    shown,
)
from empo_bi.world.joint_actions import (
    ACTION,
    BUSH_GOER,
    CONTESTED_CELL,
    DECISION,
    ENTER,
    FAIL,
    HAS_ACTED,
    IS_BLOCKED,
    LEADER,
    MAGICIAN,
    NORMAL,
    OPTION,
    ROLE,
    STUMBLE_LEFT,
    STUMBLE_RIGHT,
    STUMBLER,
)
from empo_bi.world.layout import ACTIVE, DIRECTION, WALL_CELL
from empo_bi.world.rules import act, advance, end_of_push, enter_bush, move
from empo_bi.world.tables import IntArray


@inlined
def play_certain(world: IntArray, board: IntArray, step: IntArray) -> None:
    """All agents act in index order, except those that are paused or terminated when their turn comes (7.4)."""
    for i in range(step.shape[0]):
        if meaning_of(world, step[i, ACTION]) != STILL and can_act(board, i):
            act(world, board, i, step[i, ACTION])


@rule
def play(world: IntArray, board: IntArray, step: IntArray, magic_draw: int) -> int:
    """Play the current draw (7.7). Returns the number of equally likely values of ``magic_draw``, normally 1 (C14)."""
    play_normal(world, board, step)
    play_stumblers(world, board, step)
    n_draws = play_magicians(world, board, step, magic_draw)
    play_bush_goers(world, board, step)
    return n_draws


@rule
def play_normal(world: IntArray, board: IntArray, step: IntArray) -> None:
    """First the winner of each conflict block, in block order, then the others in index order."""
    n = step.shape[0]
    for i in range(n):
        step[i, HAS_ACTED] = 0
    for leader in range(n):
        if step[leader, ROLE] == NORMAL and step[leader, LEADER] == leader:
            winner = member(step, leader, step[leader, OPTION])
            step[winner, HAS_ACTED] = 1
            if can_act(board, winner):
                act(world, board, winner, step[winner, ACTION])
    for i in range(n):
        if step[i, ROLE] == NORMAL and not step[i, HAS_ACTED] and can_act(board, i):
            act(world, board, i, step[i, ACTION])


@rule
def member(step: IntArray, leader: int, rank: int) -> int:
    """The block's member of that rank, counted from 0 in index order."""
    for i in range(leader, step.shape[0]):
        if step[i, ROLE] == NORMAL and step[i, LEADER] == leader:
            if rank == 0:
                return i
            rank -= 1
    return leader


@rule
def play_stumblers(world: IntArray, board: IntArray, step: IntArray) -> None:
    """All turn, then those move whose contested cell is free and wanted by no other stumbler (7.8)."""
    n = step.shape[0]
    for i in range(n):
        step[i, CONTESTED_CELL] = -1  # none: not a stumbler, or paused or terminated by now
        if step[i, ROLE] == STUMBLER and can_act(board, i):
            turn = 3 if step[i, OPTION] == STUMBLE_LEFT else 1 if step[i, OPTION] == STUMBLE_RIGHT else 0
            set_agent(board, i, DIRECTION, (agent_at(board, i, DIRECTION) + turn) & 3)
            step[i, CONTESTED_CELL] = contested_cell(world, board, i)
    for i in range(n):  # judged for all before the first one moves
        cell = step[i, CONTESTED_CELL]
        blocked = cell < 0 or is_closed(world, board, cell) or occupant(world, board, cell) > 0
        for j in range(n):
            blocked |= j != i and step[j, CONTESTED_CELL] == cell
        step[i, IS_BLOCKED] = blocked
    for i in range(n):
        if not step[i, IS_BLOCKED]:
            advance(world, board, i, front_cell(world, board, i))


@rule
def contested_cell(world: IntArray, board: IntArray, agent: int) -> int:
    """The cell ahead or, if the agent can push what is there, the end cell of the push."""
    cell = front_cell(world, board, agent)
    if is_pushable(shown(world, board, cell)):
        end = end_of_push(world, board, agent, cell)
        if end != WALL_CELL:
            return end
    return cell


@rule
def play_magicians(world: IntArray, board: IntArray, step: IntArray, magic_draw: int) -> int:
    """One of the agents that would enter a wall gets the chance; entering and solidifying need an active wall (C14)."""
    n = step.shape[0]
    for i in range(n):
        takes_part = step[i, ROLE] == MAGICIAN and can_act(board, i)
        step[i, DECISION] = step[i, OPTION] if takes_part else FAIL
    n_draws = 1
    for i in range(n):
        rivals = 0
        for j in range(n):
            rivals += enter_same_wall(world, board, step, i, j)
        if rivals > 1:  # seen first by the lowest rival, which settles it for all
            chosen = (magic_draw // n_draws) % rivals
            n_draws *= rivals
            for j in range(n - 1, i - 1, -1):  # from the last, so that i stays a rival until its own turn
                if enter_same_wall(world, board, step, i, j):
                    rivals -= 1
                    if rivals != chosen:
                        step[j, DECISION] = FAIL
    for i in range(n):
        if step[i, DECISION] != FAIL:
            cell = front_cell(world, board, i)
            wall = object_at(world, cell)
            if shown(world, board, cell) == MAGIC_WALL and flag(world, board, wall, ACTIVE):
                if step[i, DECISION] == ENTER:
                    move(world, board, i, cell)
                else:
                    set_flag(world, board, wall, ACTIVE, NO)
    return n_draws


@rule
def enter_same_wall(world: IntArray, board: IntArray, step: IntArray, one: int, other: int) -> bool:
    """Whether both would enter the same wall (an agent is its own rival)."""
    if step[one, ROLE] != MAGICIAN or step[other, ROLE] != MAGICIAN:
        return False
    both_enter = step[one, DECISION] == ENTER and step[other, DECISION] == ENTER
    return both_enter and front_cell(world, board, one) == front_cell(world, board, other)


@rule
def play_bush_goers(world: IntArray, board: IntArray, step: IntArray) -> None:
    """Agents that succeed enter the bush, if it is still there and free (7.10)."""
    for i in range(step.shape[0]):
        if step[i, ROLE] == BUSH_GOER and step[i, OPTION] == ENTER:
            cell = front_cell(world, board, i)
            if shown(world, board, cell) == BUSH:
                enter_bush(world, board, i, cell)
