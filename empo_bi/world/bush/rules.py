"""What happens in a step of a bush world, compiled: successors of blocks of packed states.

All players move at once, each into a cell that was empty when the step began; of several who want one cell, only the first
tries. Robots always get in and lower its density by 1, as they do with their own cell when they pass. A human gets into
density d with probability 1 - d/B. Only these tries are random, so n humans who may fail make 2**n outcomes, all different.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from empo_bi.errors import InvalidStateError, WorldTooLargeError
from empo_bi.runtime.jit import inlined, kernel, rule
from empo_bi.types import FloatArray, IndexArray, KeyArray
from empo_bi.world.bush.packing import BushLayout
from empo_bi.world.key_layout import KEYS_COME_FROM, Expansion, as_keys, for_kernels, most_successors

ACTIONS = ("north", "west", "south", "east", "pass")
STEPS_XY = ((0, -1), (-1, 0), (0, 1), (1, 0), (0, 0))
PASS: int = np.int64(4)  # type: ignore[assignment]  # (numba compiles again for every plain literal that it is called with)
NOWHERE = -1

# Columns of the table of slots; a slot without bits has word -1, and its only value as the largest.
WORD, SHIFT, MASK, LARGEST = range(4)
TOO_MANY = -2
MAX_OUTCOMES = 1 << 20


class Tables(NamedTuple):
    """A world for the kernels.

    Attributes
    ----------
    n_robots : players below this number are robots
    ahead_CA : (cells, actions), the cell that an action leads to; -1 for none
    slot_R4 : (slots, 4), where each slot is in the key
    chance_D : by density, the probability that a human gets in
    """

    n_robots: int
    ahead_CA: IndexArray
    slot_R4: IndexArray
    chance_D: FloatArray


def build_tables(layout: BushLayout) -> Tables:
    spec = layout.spec
    x_C1, y_C1 = layout.cell_xy[:, :1] + np.array(STEPS_XY)[:, 0], layout.cell_xy[:, 1:] + np.array(STEPS_XY)[:, 1]
    is_move_CA = (x_C1 >= 0) & (x_C1 < spec.width) & (y_C1 >= 0) & (y_C1 < spec.height) & (np.arange(len(ACTIONS)) != PASS)
    slot_R4 = np.zeros((layout.n_slots, 4), dtype=np.int64)
    slot_R4[:, WORD], slot_R4[:, LARGEST] = -1, layout.initial_row
    for field in layout.fields:
        slot_R4[field.slot] = field.word, field.shift, (1 << field.width) - 1, field.largest
    density_D = np.arange(max(spec.densities) + 1)
    return Tables(
        n_robots=sum(player.is_robot for player in spec.agents),
        ahead_CA=np.where(is_move_CA, y_C1 * spec.width + x_C1, NOWHERE),
        slot_R4=slot_R4,
        chance_D=np.maximum(0.0, 1.0 - density_D / spec.B),
    )


def expand(tables: Tables, n_words: int, key_SW: KeyArray, profile_JN: IndexArray) -> Expansion:
    """All successors of the states ``key_SW`` under the profiles ``profile_JN``, none of probability 0.

    Raises
    ------
    InvalidStateError
        If a key is not a state of this world.
    WorldTooLargeError
        If a step has more outcomes than can be listed.
    """
    keys, profiles = as_keys(n_words, key_SW), for_kernels(profile_JN, np.int64)
    count_SJ, problem, s = count_outcomes(*tables, keys, profiles)
    if problem == TOO_MANY:
        raise WorldTooLargeError(
            f"one step of state number {s} of the block has over {MAX_OUTCOMES:,} outcomes; use fewer humans"
        )
    if len(keys) == 1 and count_SJ.sum(dtype=np.int64) > most_successors(n_words):
        raise WorldTooLargeError(
            f"the successors of one state under its {len(profiles):,} action profiles take over 256 MB; use fewer players"
        )
    if problem:
        raise InvalidStateError(
            f"key {keys[s].tolist()}, number {s} of the block, is not a state of this world; {KEYS_COME_FROM}"
        )
    return Expansion(count_SJ, *write_outcomes(*tables, keys, profiles, count_SJ))


@kernel
def count_outcomes(  # type: ignore[no-untyped-def]
    n_robots: int, ahead_CA: IndexArray, slot_R4: IndexArray, chance_D: FloatArray, key_SW: KeyArray, profile_JN: IndexArray
):
    """How many successors each (state, profile) has; a code if a state is impossible or has too many, and its number."""
    n_profiles, n_players = profile_JN.shape
    count_SJ = np.empty((key_SW.shape[0], n_profiles), np.int32)
    cell_N, target_N = np.empty(n_players, np.int64), np.empty(n_players, np.int64)
    for s in range(key_SW.shape[0]):
        for slot in range(slot_R4.shape[0]):
            if slot_value(slot_R4, key_SW, s, slot) > slot_R4[slot, LARGEST]:
                return count_SJ, NOWHERE, s
        read_cells(slot_R4, key_SW, s, cell_N)
        for j in range(n_profiles):
            choose_targets(ahead_CA, cell_N, profile_JN, j, target_N)
            n = 1
            for i in range(n_robots, n_players):
                chance = entry_chance(slot_R4, chance_D, key_SW, s, target_N[i], n_players)
                if 0.0 < chance < 1.0:
                    n *= 2
                if n > MAX_OUTCOMES:
                    return count_SJ, TOO_MANY, s
            count_SJ[s, j] = n
    return count_SJ, 0, 0


@kernel
def write_outcomes(  # type: ignore[no-untyped-def]
    n_robots: int, ahead_CA: IndexArray, slot_R4: IndexArray, chance_D: FloatArray, key_SW: KeyArray, profile_JN: IndexArray,
    count_SJ: npt.NDArray[np.int32],
):  # fmt: skip
    """Keys and probabilities of all successors, as many as were counted."""
    n_profiles, n_players = profile_JN.shape
    cell_N, target_N = np.empty(n_players, np.int64), np.empty(n_players, np.int64)
    n_entries = np.int64(0)
    for count in count_SJ.ravel():
        n_entries += count
    key_KW, prob_K = np.empty((n_entries, key_SW.shape[1]), np.uint64), np.empty(n_entries)
    k = np.int64(0)
    for s in range(key_SW.shape[0]):
        read_cells(slot_R4, key_SW, s, cell_N)
        for j in range(n_profiles):
            choose_targets(ahead_CA, cell_N, profile_JN, j, target_N)
            for outcome in range(count_SJ[s, j]):
                for w in range(key_SW.shape[1]):
                    key_KW[k, w] = key_SW[s, w]
                move_robots(n_robots, slot_R4, cell_N, target_N, profile_JN, j, key_KW, k)
                prob_K[k] = move_humans(n_robots, slot_R4, chance_D, target_N, key_SW, s, outcome, key_KW, k)
                k += 1
    return key_KW, prob_K


@inlined
def slot_value(slot_R4: IndexArray, key_SW: KeyArray, s: int, slot: int) -> np.int64:
    word = slot_R4[slot, WORD]
    if word < 0:
        return slot_R4[slot, LARGEST]
    return np.int64((key_SW[s, word] >> np.uint64(slot_R4[slot, SHIFT])) & np.uint64(slot_R4[slot, MASK]))


@inlined
def set_slot(slot_R4: IndexArray, key_KW: KeyArray, k: int, slot: int, value: int) -> None:
    word = slot_R4[slot, WORD]
    if word >= 0:
        shift = np.uint64(slot_R4[slot, SHIFT])
        others = ~(np.uint64(slot_R4[slot, MASK]) << shift)
        key_KW[k, word] = (key_KW[k, word] & others) | (np.uint64(value) << shift)


@inlined
def read_cells(slot_R4: IndexArray, key_SW: KeyArray, s: int, cell_N: IndexArray) -> None:
    for i in range(cell_N.size):
        cell_N[i] = slot_value(slot_R4, key_SW, s, i)


@rule
def choose_targets(ahead_CA: IndexArray, cell_N: IndexArray, profile_JN: IndexArray, j: int, target_N: IndexArray) -> None:
    """The cell that each player tries to enter; -1 for those who pass, are blocked, or come second."""
    for i in range(cell_N.size):
        target = ahead_CA[cell_N[i], profile_JN[j, i]]
        for other in range(cell_N.size):
            if cell_N[other] == target or (other < i and target_N[other] == target):
                target = NOWHERE
        target_N[i] = target


@inlined
def entry_chance(slot_R4: IndexArray, chance_D: FloatArray, key_SW: KeyArray, s: int, target: int, n_players: int) -> float:
    """The probability that a human gets to where it wants; 0 if it does not try."""
    return 0.0 if target < 0 else chance_D[slot_value(slot_R4, key_SW, s, n_players + target)]


@rule
def move_robots(
    n_robots: int, slot_R4: IndexArray, cell_N: IndexArray, target_N: IndexArray, profile_JN: IndexArray, j: int,
    key_KW: KeyArray, k: int,
) -> None:  # fmt: skip
    """Robots always get in. They thin out the cell that they enter, or their own if they pass."""
    for i in range(n_robots):
        thinned = target_N[i]
        if thinned >= 0:
            set_slot(slot_R4, key_KW, k, i, thinned)
        elif profile_JN[j, i] == PASS:
            thinned = cell_N[i]
        if thinned >= 0:
            density = slot_value(slot_R4, key_KW, k, cell_N.size + thinned)
            set_slot(slot_R4, key_KW, k, cell_N.size + thinned, max(density - 1, 0))


@rule
def move_humans(
    n_robots: int, slot_R4: IndexArray, chance_D: FloatArray, target_N: IndexArray, key_SW: KeyArray, s: int, outcome: int,
    key_KW: KeyArray, k: int,
) -> float:  # fmt: skip
    """Humans get in or not: bit n of ``outcome`` is 1 if the n-th human who may fail does. Returns the probability."""
    probability = 1.0
    for i in range(n_robots, target_N.size):
        chance = entry_chance(slot_R4, chance_D, key_SW, s, target_N[i], target_N.size)
        gets_in = chance >= 1.0
        if 0.0 < chance < 1.0:
            gets_in = outcome & 1 == 0
            probability *= chance if gets_in else 1.0 - chance
            outcome >>= 1
        if gets_in:
            set_slot(slot_R4, key_KW, k, i, target_N[i])
    return probability
