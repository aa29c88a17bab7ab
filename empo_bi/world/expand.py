"""Blocks of packed states in, all their successors out: the one way transitions are ever computed.

Rows are packed into keys and unpacked from them as ``layout`` says. A block's successors come as CSR arrays: how many each
(state, profile) has, then keys and probabilities, one profile after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from empo_bi.runtime.jit import allocating, inlined, kernel, rule
from empo_bi.world.board import (
    FIELDS,
    FIRST_THING,
    INITIAL_ROW,
    N_FIELDS,
    N_SLOTS,
    N_TYPES,
    close_held_cells,
    end_of_type,
    first_of_type,
    lay_out,
    new_board,
    reopen_held_cells,
    restore,
    things_have_moved,
)
from empo_bi.world.joint import (
    FloatArray,
    draw_probability,
    form_blocks,
    new_intents,
    new_odds,
    new_step,
    next_draw,
    plan_draws,
    prepare,
    read_intents,
)
from empo_bi.world.play import play, play_certain
from empo_bi.world.tables import IntArray, Tables

KeyArray = npt.NDArray[np.uint64]
TOO_MANY_OUTCOMES: int = np.iinfo(np.int64).min


class Expansion(NamedTuple):
    """Successors of a block of S states under J profiles: K entries in all, keys of W words."""

    count_SJ: npt.NDArray[np.int32]
    key_KW: KeyArray
    prob_K: npt.NDArray[np.float64]


def expand(tables: Tables, key_SW: KeyArray, profile_JN: IntArray) -> Expansion:
    """All successors of the states ``key_SW`` under the profiles ``profile_JN``, equal ones merged, none of probability 0.

    Parameters
    ----------
    key_SW : (S, W) uint64
    profile_JN : (J, N) int64, action ids
    """
    keys, profiles = np.ascontiguousarray(key_SW), np.ascontiguousarray(profile_JN)
    count_SJ, key_KW, prob_K, n = expand_block(tables.world, tables.chances, keys, profiles)
    return Expansion(count_SJ, key_KW[:n], prob_K[:n])


@kernel
def expand_block(  # type: ignore[no-untyped-def]
    world: IntArray, chances: FloatArray, key_SW: KeyArray, profile_JN: IntArray
):
    n_states, n_words = key_SW.shape
    n_profiles = profile_JN.shape[0]
    board, row = new_board(world), np.zeros(world[N_SLOTS], np.int64)
    intents, step, odds = new_intents(world), new_step(world), new_odds(world)
    count_SJ = np.empty((n_states, n_profiles), np.int32)
    capacity = n_states * n_profiles + n_states * n_profiles // 8 + 16
    key_KW = np.empty((capacity, n_words), np.uint64)
    prob_K = np.empty(capacity)
    n = np.int64(0)
    for s in range(n_states):
        unpack(world, key_SW, s, row)
        lay_out(world, board, row)
        close_held_cells(world, board)
        read_intents(world, board, intents)
        for slot in range(row.size):  # forced actions are consumed now
            row[slot] = board[slot]
        end = np.int64(-1)
        while end < 0:
            end = expand_state(world, chances, board, row, intents, step, odds, profile_JN, count_SJ, s, key_KW, prob_K, n)
            if end == TOO_MANY_OUTCOMES:
                raise ValueError("one step of this world has over 16 million outcomes; use fewer agents or less chance")
            if end < 0:
                capacity = 2 * (capacity - end)
                key_KW, prob_K = grown_keys(key_KW, n, capacity), grown_probs(prob_K, n, capacity)
        n = end
        reopen_held_cells(world, board)
    return count_SJ, key_KW, prob_K, n


@rule
def expand_state(
    world: IntArray,
    chances: FloatArray,
    board: IntArray,
    row: IntArray,
    intents: IntArray,
    step: IntArray,
    odds: FloatArray,
    profile_JN: IntArray,
    count_SJ: npt.NDArray[np.int32],
    s: int,
    key_KW: KeyArray,
    prob_K: FloatArray,
    n: int,
) -> int:
    """Append the successors of the state on the board, which is ``row``, for one profile after the other.

    Returns the number of entries there are then. If the arrays are too short, it returns how many more are needed for the
    next profile, as a negative number (or ``TOO_MANY_OUTCOMES``), and has to be called again with longer ones. The long list
    of arguments is scratch space: functions that allocate nothing are much faster (see ``jit``).
    """
    for j in range(profile_JN.shape[0]):
        first = n
        n_outcomes = 1
        has_draws = prepare(world, intents, profile_JN, j, step)
        if has_draws:
            form_blocks(world, intents, step)
            n_outcomes = plan_draws(world, chances, board, step, odds)
            if n_outcomes == 0:
                return TOO_MANY_OUTCOMES
        if n + n_outcomes > prob_K.size:
            return -n_outcomes
        if has_draws:
            n = play_draws(world, board, row, step, odds, key_KW, prob_K, n)
        else:
            play_certain(world, board, step)
            n = emit(world, board, 1.0, key_KW, prob_K, first, n)
            restore(world, board, row)
        count_SJ[s, j] = n - first
    return n


@rule
def play_draws(
    world: IntArray,
    board: IntArray,
    row: IntArray,
    step: IntArray,
    odds: FloatArray,
    key_KW: KeyArray,
    prob_K: FloatArray,
    n: int,
) -> int:
    """Play every combination of draws from ``row``, which the board shows before and after."""
    first = n
    more = True
    while more:
        probability = draw_probability(step, odds)
        magic_draw, n_magic_draws = np.int64(0), np.int64(1)
        while probability > 0.0 and magic_draw < n_magic_draws:
            n_magic_draws = play(world, board, step, magic_draw)
            n = emit(world, board, probability / n_magic_draws, key_KW, prob_K, first, n)
            restore(world, board, row)
            magic_draw += 1
        more = next_draw(step)
    return n


@allocating
def grown_keys(key_KW: KeyArray, n: int, capacity: int) -> KeyArray:
    larger = np.empty((capacity, key_KW.shape[1]), np.uint64)
    for k in range(n):
        for w in range(key_KW.shape[1]):
            larger[k, w] = key_KW[k, w]
    return larger


@allocating
def grown_probs(prob_K: FloatArray, n: int, capacity: int) -> FloatArray:
    larger = np.empty(capacity)
    for k in range(n):
        larger[k] = prob_K[k]
    return larger


@inlined
def emit(
    world: IntArray, board: IntArray, probability: float, key_KW: KeyArray, prob_K: FloatArray, first: int, n: int
) -> int:
    """Append the board's state, or add to the entry of this profile (from ``first`` on) that equals it."""
    if things_have_moved(board):
        sort_things(world, board)
    pack(world, board, key_KW, n)
    for k in range(first, n):
        same = True
        for w in range(key_KW.shape[1]):
            same &= key_KW[k, w] == key_KW[n, w]
        if same:
            prob_K[k] += probability
            return n
    prob_K[n] = probability
    return n + 1


@inlined
def sort_things(world: IntArray, row: IntArray) -> None:
    """Interchangeable things in order of their cells, so that equal states have equal keys (insertion sort)."""
    offset = world[FIRST_THING]
    for t in range(world[N_TYPES]):
        first = offset + first_of_type(world, t)
        for k in range(first + 1, offset + end_of_type(world, t)):
            cell = row[k]
            place = k
            while place > first and row[place - 1] > cell:
                row[place] = row[place - 1]
                place -= 1
            row[place] = cell


@inlined
def pack(world: IntArray, row: IntArray, key_KW: KeyArray, k: int) -> None:
    """Write the key of a row as entry ``k``."""
    at = world[FIELDS]
    word, bits = 0, np.uint64(0)
    for _ in range(world[N_FIELDS]):
        if world[at + 1] != word:  # fields come in the order of their words
            key_KW[k, word] = bits
            word, bits = world[at + 1], np.uint64(0)
        bits |= np.uint64(row[world[at]]) << np.uint64(world[at + 2])
        at += 4
    key_KW[k, word] = bits


@inlined
def unpack(world: IntArray, key_KW: KeyArray, k: int, row: IntArray) -> None:
    """Write the row of entry ``k``."""
    for slot in range(world[N_SLOTS]):
        row[slot] = world[world[INITIAL_ROW] + slot]
    at = world[FIELDS]
    for _ in range(world[N_FIELDS]):
        mask = (np.uint64(1) << np.uint64(world[at + 3])) - np.uint64(1)
        row[world[at]] = np.int64((key_KW[k, world[at + 1]] >> np.uint64(world[at + 2])) & mask)
        at += 4


@kernel
def pack_rows(world: IntArray, row_SR: IntArray, key_SW: KeyArray) -> None:
    """Keys of rows, into ``key_SW``; the rows come out with their things sorted."""
    for s in range(row_SR.shape[0]):
        sort_things(world, row_SR[s])
        pack(world, row_SR[s], key_SW, s)


@kernel
def unpack_keys(world: IntArray, key_SW: KeyArray, row_SR: IntArray) -> None:
    """Rows of keys, into ``row_SR``."""
    for s in range(key_SW.shape[0]):
        unpack(world, key_SW, s, row_SR[s])
