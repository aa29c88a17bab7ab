"""Successors of blocks of packed states: the only place where transitions of gridworlds are computed.

Rows are packed into keys and unpacked as ``layout`` says. The successors of a block are CSR arrays: how many each (state,
profile) has, then keys and probabilities, one profile after the other.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from empo_bi.errors import InvalidStateError, WorldTooLargeError
from empo_bi.runtime.jit import allocating, inlined, kernel, rule
from empo_bi.types import FloatArray, KeyArray
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
from empo_bi.world.joint_actions import (
    MAX_OUTCOMES,
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
from empo_bi.world.key_layout import KEYS_COME_FROM, Expansion, as_keys, for_kernels, most_successors
from empo_bi.world.tables import FIELD_RECORD, IntArray, Tables
from empo_bi.world.turn_order import play, play_certain

# Codes of errors that stop a block: negative numbers far from any that ask for more room.
BAD_KEY, TOO_MANY_OUTCOMES, TOO_MANY_SUCCESSORS = -(1 << 60), -(1 << 61), -(1 << 62)
NO_LIMIT = 1 << 62
FEW_OUTCOMES = 32  # up to this many, equal outcomes are found by comparing, beyond by hashing


def expand(tables: Tables, key_SW: KeyArray, profile_JN: IntArray) -> Expansion:
    """All successors of the states ``key_SW`` under the profiles ``profile_JN``; equal ones merged, none of probability 0.

    Parameters
    ----------
    key_SW : (S, W) uint64
    profile_JN : (J, N) int64, valid action ids

    Raises
    ------
    InvalidStateError
        If a key is not a state of this world.
    WorldTooLargeError
        If a step has more outcomes than can be listed.
    """
    keys, profiles = as_keys(tables.n_words, key_SW), for_kernels(profile_JN, np.int64)
    most = most_successors(tables.n_words) if len(keys) == 1 else NO_LIMIT
    count_SJ, key_KW, prob_K, n, s = expand_block(tables.world, tables.chances, keys, profiles, most)
    if n == BAD_KEY:
        raise InvalidStateError(
            f"key {keys[s].tolist()}, number {s} of the block, is not a state of this world; {KEYS_COME_FROM}"
        )
    if n == TOO_MANY_SUCCESSORS:
        raise WorldTooLargeError(
            f"the successors of one state under its {len(profiles):,} action profiles take over 256 MB; use fewer agents, "
            "or fewer random events"
        )
    if n == TOO_MANY_OUTCOMES:
        raise WorldTooLargeError(
            f"one step of state number {s} of the block has over {MAX_OUTCOMES:,} outcomes; use fewer agents, or fewer "
            "random events"
        )
    return Expansion(count_SJ, key_KW[:n], prob_K[:n])


@kernel
def expand_block(  # type: ignore[no-untyped-def]
    world: IntArray, chances: FloatArray, key_SW: KeyArray, profile_JN: IntArray, most_successors: int
):
    n_states, n_words = key_SW.shape
    n_profiles = profile_JN.shape[0]
    board, row = new_board(world), np.zeros(world[N_SLOTS], np.int64)
    intents, step, odds = new_intents(world), new_step(world), new_odds(world)
    count_SJ = np.empty((n_states, n_profiles), np.int32)
    capacity = n_states * n_profiles + n_states * n_profiles // 8 + 16
    key_KW = np.empty((capacity, n_words), np.uint64)
    prob_K = np.empty(capacity)
    slots = np.empty(2 * FEW_OUTCOMES, np.int64)
    s, n, wanted = np.int64(0), np.int64(0), np.int64(0)
    while s < n_states:
        s, n, wanted = expand_states(
            world, chances, key_SW, s, profile_JN, board, row, intents, step, odds, slots, count_SJ, key_KW, prob_K, n
        )  # fmt: skip
        if wanted < 0:
            return count_SJ, key_KW, prob_K, wanted, s
        if s < n_states:
            capacity = 2 * (capacity + wanted)
            if capacity > most_successors:
                return count_SJ, key_KW, prob_K, TOO_MANY_SUCCESSORS, s
            key_KW, prob_K = grown_keys(key_KW, n, capacity), grown_probs(prob_K, n, capacity)
            n_slots = slots.size
            while n_slots < 2 * wanted:
                n_slots *= 2
            slots = np.empty(n_slots, np.int64)
    return count_SJ, key_KW, prob_K, n, s


@rule
def expand_states(  # type: ignore[no-untyped-def]
    world: IntArray,
    chances: FloatArray,
    key_SW: KeyArray,
    s: int,
    profile_JN: IntArray,
    board: IntArray,
    row: IntArray,
    intents: IntArray,
    step: IntArray,
    odds: FloatArray,
    slots: IntArray,
    count_SJ: npt.NDArray[np.int32],
    key_KW: KeyArray,
    prob_K: FloatArray,
    n: int,
):
    """Append the successors of the states from ``s`` on, as long as there is room.

    Returns the next state to do, the number of entries, and, if it stopped early, how many more entries a profile of that
    state may need (or ``BAD_KEY``, ``TOO_MANY_OUTCOMES``). The long list of arguments is scratch space and results, since
    functions that allocate nothing are much faster (see ``jit``).
    """
    while s < key_SW.shape[0]:
        begin = n
        unpack(world, key_SW, s, row)
        if not is_valid(world, row):
            return s, begin, BAD_KEY
        lay_out(world, board, row)
        close_held_cells(world, board)
        read_intents(world, board, intents)
        for slot in range(row.size):  # forced actions are consumed now
            row[slot] = board[slot]
        for j in range(profile_JN.shape[0]):
            first = n
            n_outcomes = 1
            has_draws = prepare(world, intents, profile_JN, j, step)
            if has_draws:
                form_blocks(world, intents, step)
                n_outcomes = plan_draws(world, chances, board, step, odds)
                if n_outcomes == 0:
                    return s, begin, TOO_MANY_OUTCOMES
            if n + n_outcomes > prob_K.size or 2 * n_outcomes > slots.size:
                reopen_held_cells(world, board)
                return s, begin, n_outcomes  # the state is done again, with more room
            if has_draws:
                n = play_draws(world, board, row, step, odds, key_KW, prob_K, slots, n_outcomes, n)
            else:
                play_certain(world, board, step)
                write_entry(world, board, 1.0, key_KW, prob_K, n)
                restore(world, board, row)
                n += 1
            count_SJ[s, j] = n - first
        reopen_held_cells(world, board)
        s += 1
    return s, n, 0


@rule
def play_draws(
    world: IntArray,
    board: IntArray,
    row: IntArray,
    step: IntArray,
    odds: FloatArray,
    key_KW: KeyArray,
    prob_K: FloatArray,
    slots: IntArray,
    n_outcomes: int,
    n: int,
) -> int:
    """Play every combination of random draws from ``row``, which the board shows before and after; merge equal results."""
    first = n
    n_slots = np.int64(0)  # of the hash table of this profile's entries; none where they are few
    if n_outcomes > FEW_OUTCOMES:
        n_slots = np.int64(2 * FEW_OUTCOMES)
        while n_slots < 2 * n_outcomes:
            n_slots *= 2
        for slot in range(n_slots):
            slots[slot] = 0
    more = True
    while more:
        probability = draw_probability(step, odds)
        magic_draw, n_magic_draws = np.int64(0), np.int64(1)
        while probability > 0.0 and magic_draw < n_magic_draws:
            n_magic_draws = play(world, board, step, magic_draw)
            write_entry(world, board, probability / n_magic_draws, key_KW, prob_K, n)
            restore(world, board, row)
            same = equal_entry(key_KW, slots, n_slots, first, n)
            if same == n:
                n += 1
            else:
                prob_K[same] += prob_K[n]
            magic_draw += 1
        more = next_draw(step)
    return n


@inlined
def write_entry(world: IntArray, board: IntArray, probability: float, key_KW: KeyArray, prob_K: FloatArray, n: int) -> None:
    """The board's state as entry ``n``."""
    if things_have_moved(board):
        sort_things(world, board)
    pack(world, board, key_KW, n)
    prob_K[n] = probability


@inlined
def equal_entry(key_KW: KeyArray, slots: IntArray, n_slots: int, first: int, n: int) -> int:
    """The entry from ``first`` on whose key equals that of entry ``n``; ``n`` itself if it is new."""
    if n_slots == 0:
        for k in range(first, n):
            if same_key(key_KW, k, n):
                return k
        return n
    slot = np.int64(hash_of(key_KW, n, np.uint64(0)) & np.uint64(n_slots - 1))
    while slots[slot] != 0:
        if same_key(key_KW, slots[slot] - 1, n):
            return slots[slot] - 1
        slot = (slot + 1) & (n_slots - 1)
    slots[slot] = n + 1
    return n


@inlined
def same_key(key_KW: KeyArray, one: int, other: int) -> bool:
    same = True
    for w in range(key_KW.shape[1]):
        same &= key_KW[one, w] == key_KW[other, w]
    return same


@inlined
def hash_of(key_KW: KeyArray, k: int, salt: np.uint64) -> np.uint64:
    """All bits of a key, mixed with a salt."""
    mixed = salt
    for w in range(key_KW.shape[1]):
        mixed = (mixed ^ key_KW[k, w]) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(32)
    return mixed


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
        at += FIELD_RECORD
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
        at += FIELD_RECORD


@inlined
def is_valid(world: IntArray, row: IntArray) -> bool:
    """Whether every slot has a valid value; kernels use values as indices without a check."""
    valid = True
    at = world[FIELDS]
    for _ in range(world[N_FIELDS]):
        valid &= world[at + 4] <= row[world[at]] <= world[at + 5]
        at += FIELD_RECORD
    return valid


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
