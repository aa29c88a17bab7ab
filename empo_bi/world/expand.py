"""Blocks of packed states in, all their successors out: the one way transitions are ever computed.

Rows are packed into keys and unpacked from them as ``layout`` says. A block's successors come as CSR arrays: how many each
(state, profile) has, then keys and probabilities, one profile after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from empo_bi.runtime.jit import kernel, rule
from empo_bi.world.joint import (
    Step,
    close_cells,
    draw_probability,
    new_intents,
    new_step,
    next_draw,
    play,
    play_certain,
    prepare,
    read_intents,
)
from empo_bi.world.layout import AGENT_SLOTS
from empo_bi.world.rules import Board, new_board, set_row
from empo_bi.world.tables import Tables

KeyArray = npt.NDArray[np.uint64]


class Expansion(NamedTuple):
    """Successors of a block of S states under J profiles: K entries in all, keys of W words."""

    count_SJ: npt.NDArray[np.int32]
    key_KW: KeyArray
    prob_K: npt.NDArray[np.float64]


def expand(world: Tables, key_SW: KeyArray, profile_JN: npt.NDArray[np.int32]) -> Expansion:
    """All successors of the states ``key_SW`` under the profiles ``profile_JN``, equal ones merged, none of probability 0.

    Parameters
    ----------
    key_SW : (S, W) uint64
    profile_JN : (J, N) int32, action ids
    """
    count_SJ, key_KW, prob_K, n = expand_block(world, np.ascontiguousarray(key_SW), np.ascontiguousarray(profile_JN))
    return Expansion(count_SJ, key_KW[:n], prob_K[:n])


@kernel
def expand_block(world: Tables, key_SW: KeyArray, profile_JN: npt.NDArray[np.int32]):  # type: ignore[no-untyped-def]
    n_states, n_words = key_SW.shape
    n_profiles = profile_JN.shape[0]
    board, intents, step = new_board(world), new_intents(world), new_step(world)
    row = world.initial_row.copy()
    count_SJ = np.empty((n_states, n_profiles), np.int32)
    capacity = n_states * n_profiles + n_states * n_profiles // 8 + 16
    key_KW = np.empty((capacity, n_words), np.uint64)
    prob_K = np.empty(capacity)
    n = 0
    for s in range(n_states):
        unpack(world, key_SW[s], row)
        set_row(board, row)
        close_cells(board, True)
        read_intents(world, board, intents)
        row[:] = board.row  # forced actions are consumed
        for j in range(n_profiles):
            first = n
            n_outcomes = prepare(world, board, intents, profile_JN[j], step)
            if n + max(n_outcomes, 1) > capacity:
                capacity = 2 * (n + n_outcomes) + 16
                key_KW, prob_K = grown(key_KW, n, capacity), grown(prob_K, n, capacity)
            if n_outcomes == 0:
                play_certain(world, board, step)
                n = emit(world, board, 1.0, key_KW, prob_K, first, n)
                set_row(board, row)
            else:
                n = play_draws(world, board, row, step, key_KW, prob_K, n)
            count_SJ[s, j] = n - first
        close_cells(board, False)
    return count_SJ, key_KW, prob_K, n


@rule
def play_draws(  # type: ignore[no-untyped-def]
    world: Tables, board: Board, row: npt.NDArray[np.int32], step: Step, key_KW: KeyArray, prob_K, n: int
) -> int:
    """Play every combination of draws from ``row``, which the board shows before and after."""
    first = n
    more = True
    while more:
        probability = draw_probability(step)
        magic_draw, n_magic_draws = 0, 1
        while probability > 0.0 and magic_draw < n_magic_draws:
            n_magic_draws = play(world, board, step, magic_draw)
            n = emit(world, board, probability / n_magic_draws, key_KW, prob_K, first, n)
            set_row(board, row)
            magic_draw += 1
        more = next_draw(step)
    return n


@rule
def grown(array, n: int, capacity: int):  # type: ignore[no-untyped-def]
    larger = np.empty((capacity, *array.shape[1:]), array.dtype)
    larger[:n] = array[:n]
    return larger


@rule
def emit(  # type: ignore[no-untyped-def]
    world: Tables, board: Board, probability: float, key_KW: KeyArray, prob_K, first: int, n: int
) -> int:
    """Append the board's state, or add to the entry of this profile (from ``first`` on) that equals it."""
    sort_things(world, board.things)
    pack(world, board.row, key_KW[n])
    for k in range(first, n):
        same = True
        for w in range(key_KW.shape[1]):
            same &= key_KW[k, w] == key_KW[n, w]
        if same:
            prob_K[k] += probability
            return n
    prob_K[n] = probability
    return n + 1


@rule
def sort_things(world: Tables, things: npt.NDArray[np.int32]) -> None:
    """Interchangeable things in order of their cells, so that equal states have equal keys (insertion sort)."""
    for t in range(world.type_range.shape[0]):
        first = world.type_range[t, 0]
        for k in range(first + 1, world.type_range[t, 1]):
            cell = things[k]
            place = k
            while place > first and things[place - 1] > cell:
                things[place] = things[place - 1]
                place -= 1
            things[place] = cell


@rule
def pack(world: Tables, row: npt.NDArray[np.int32], key: KeyArray) -> None:
    key[:] = 0
    for f in range(world.fields.shape[0]):
        slot, word, shift = world.fields[f, 0], world.fields[f, 1], world.fields[f, 2]
        key[word] |= np.uint64(row[slot]) << np.uint64(shift)


@rule
def unpack(world: Tables, key: KeyArray, row: npt.NDArray[np.int32]) -> None:
    row[:] = world.initial_row
    for f in range(world.fields.shape[0]):
        slot, word, shift, mask = world.fields[f, 0], world.fields[f, 1], world.fields[f, 2], world.fields[f, 3]
        row[slot] = np.int32((key[word] >> np.uint64(shift)) & np.uint64(mask))


@kernel
def pack_rows(world: Tables, row_SR: npt.NDArray[np.int32], key_SW: KeyArray) -> None:
    """Keys of rows, into ``key_SW``; the rows come out with their things sorted."""
    n_things = world.thing_kind.size
    first_thing = world.traits.shape[0] * AGENT_SLOTS
    for s in range(row_SR.shape[0]):
        sort_things(world, row_SR[s, first_thing : first_thing + n_things])
        pack(world, row_SR[s], key_SW[s])


@kernel
def unpack_keys(world: Tables, key_SW: KeyArray, row_SR: npt.NDArray[np.int32]) -> None:
    """Rows of keys, into ``row_SR``."""
    for s in range(key_SW.shape[0]):
        unpack(world, key_SW[s], row_SR[s])
