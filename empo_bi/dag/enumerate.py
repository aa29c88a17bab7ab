"""The frontier sweep: every body that can be reached, level by level, and which bodies make up each level.

Bodies are numbered in the order of discovery. Where the initial body can stay as it is (``still``), levels are nested, by
induction: all that can be reached in t steps can be reached in t + 1. Level t is then simply the first ``n_t`` bodies, and
only the bodies that a level adds have to be expanded. Elsewhere (no ``still``, forced moves) the exact set of each level is
found by following the transitions already computed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from empo_bi.dag.key_index import KeyIndex
from empo_bi.dag.slices import BodySlice, IndexArray, SliceBuilder
from empo_bi.errors import TooManyStatesError
from empo_bi.runtime.jit import kernel
from empo_bi.world.gridworld import GridWorld

BLOCK_ENTRIES = 1 << 18  # (state, profile) pairs expanded at a time: a few megabytes of successors


def sweep(world: GridWorld, index: KeyIndex, max_states: int | None) -> Iterator[BodySlice]:
    """Yield what each level adds, for levels 0 to ``max_steps``; ``index`` grows along.

    The bodies that the last level adds are terminal and come without transitions.
    """
    index.add(world.initial_key)
    first = 0
    block = max(1, BLOCK_ENTRIES // len(world.all_profiles))
    for _ in range(world.max_steps):
        key_BW = index.keys[first:].copy()
        builder = SliceBuilder(first, key_BW)
        for b in range(0, max(len(key_BW), 1), block):  # a level that adds nothing is one empty block
            expansion = world.expand(key_BW[b : b + block])
            builder.add(expansion, index.add(expansion.key_KW))
            if max_states is not None and len(index) > max_states:
                raise TooManyStatesError(
                    f"{world}: more than max_states={max_states:,} bodies; shorten the horizon (max_steps), or allow more"
                )
        yield builder.build()
        first += len(key_BW)
    yield BodySlice(first, index.keys[first:].copy(), len(index) - first, None, None, None)


def is_nested(first_slice: BodySlice) -> bool:
    """Whether each level contains the one before it: if the initial body may stay, so by induction may all."""
    return first_slice.succ_K is not None and bool((first_slice.succ_K == 0).any())


def members_of_levels(slices: list[BodySlice], n_profiles: int, n_bodies: int) -> list[range | IndexArray]:
    """The bodies on each level: a range where levels are nested, else an ascending array."""
    if is_nested(slices[0]):
        return [range(piece.first + len(piece)) for piece in slices]
    members: list[range | IndexArray] = [np.zeros(1, dtype=np.int64)]
    for _ in slices[1:]:
        members.append(next_members(np.asarray(members[-1]), slices, n_profiles, n_bodies))
    return members


def next_members(member_M: IndexArray, slices: list[BodySlice], n_profiles: int, n_bodies: int) -> IndexArray:
    """The exact set of bodies one level on: all successors of ``member_M``, ascending."""
    mark = np.zeros(n_bodies, dtype=np.bool_)
    for piece in slices:
        if piece.succ_K is not None:
            lo, hi = np.searchsorted(member_M, [piece.first, piece.first + len(piece)])
            mark_successors(mark, member_M[lo:hi] - piece.first, piece.starts(n_profiles), piece.succ_K)
    return np.flatnonzero(mark)


@kernel
def mark_successors(
    mark: npt.NDArray[np.bool_], body_M: IndexArray, start_B: IndexArray, succ_K: npt.NDArray[np.int32]
) -> None:
    for m in range(body_M.size):
        for k in range(start_B[body_M[m]], start_B[body_M[m] + 1]):
            mark[succ_K[k]] = True
