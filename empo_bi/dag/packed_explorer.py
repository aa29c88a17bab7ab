"""Compiled worlds, level by level: which bodies each level adds, where they lead, and which bodies make up each level.

Where the initial body can stay as it is (in a gridworld, by ``still``), levels are nested, by induction: all that can be
reached in t steps can be reached in t + 1. Level t is then simply the first ``n_t`` bodies, and only the bodies that a level
adds have to be expanded. Elsewhere (no ``still``, forced moves) the exact set of each level follows from transitions
already computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import numpy.typing as npt

from empo_bi.dag.attainment import FixedGoals
from empo_bi.dag.key_index import KeyIndex
from empo_bi.dag.level_members import successors_of
from empo_bi.dag.levels import Levels
from empo_bi.dag.slices import BodySlice, SliceBuilder, as_array, bodies_from
from empo_bi.dag.spill import SpillLimit
from empo_bi.errors import TooManyStatesError
from empo_bi.memory.watch import Watch
from empo_bi.runtime.blocks import active_cluster, map_blocks
from empo_bi.types import Bodies, Json, KeyArray
from empo_bi.world.expand import Expansion
from empo_bi.world.packed import PackedWorld

MAX_BODIES = 2**31 - 1  # numbers of successors are int32
BLOCK_PAIRS, _FEWEST_PAIRS = 1 << 18, 1 << 10  # (state, profile) pairs that are expanded at a time
BYTES_PER_PAIR = 200  # of a block in work: successors, their numbers and probabilities, room to spare
_BYTES_PER_ENTRY = 120  # the same for a successor, where pairs have many
BLOCK_BYTES = BLOCK_PAIRS * BYTES_PER_PAIR


class PackedExplorer:
    """Expands the levels of a packed world one after the other; see :class:`~empo_bi.dag.explorer.Explorer`."""

    shares_bodies = True
    levels_are = "steps"

    def __init__(
        self,
        world: PackedWorld,
        goals: FixedGoals | None,
        *,
        precision: str,
        workers: int,
        max_states: int | None,
        block_bytes: int,
        spill: SpillLimit | None,
        watch: Watch,
    ) -> None:
        """``block_bytes`` is what a block in work may take."""
        self._world, self._goals, self._precision = world, goals, precision
        self._workers, self._max_states = workers, min(MAX_BODIES, MAX_BODIES if max_states is None else max_states)
        self.n_profiles = len(world.all_profiles)
        self._block_bytes, self._bytes_per_pair = block_bytes, BYTES_PER_PAIR
        self._spill, self._builder = spill, SliceBuilder(self.n_profiles, precision)
        self._watch, self._cluster = watch, active_cluster()
        self._index = self._new_index()
        self._index.add(world.initial_key)
        self._step, self._first = 0, 0
        self._members: Bodies = range(1)
        self._is_nested = False
        self._expanding: list[int] = []  # levels whose slices hold transitions, as far as they are asked for

    def _new_index(self) -> KeyIndex:
        return KeyIndex(self._world.n_words, before_growing=partial(self._watch.look, 0))

    @property
    def n_levels(self) -> int:
        return self._world.max_steps + 1

    @property
    def n_known(self) -> int:
        return len(self._index)

    @property
    def nbytes(self) -> int:
        return self._index.nbytes

    @property
    def _is_over(self) -> bool:
        """After the last step, or earlier if all states are terminal."""
        return self._step > self._world.max_steps or len(self._members) == 0

    def next_level(self, earlier: Levels) -> BodySlice | None:
        if self._is_over:
            return None
        is_last = self._step == self._world.max_steps
        key_BW = self._index.keys[self._first :].copy()
        added = range(self._first, len(self._index))
        goals, members = self._goals, self._members
        attained = None
        rows_for_goals = len(key_BW) if goals is None or goals.ignore_the_step else len(members)
        self._watch.look(0, key_BW.nbytes + rows_for_goals * 8 * (key_BW.shape[1] + 1))  # for the frontier; and goals
        if goals is not None:
            # One row per body where the step plays no part, else one per state.
            rows_for = key_BW if goals.ignore_the_step else self._index.keys[as_array(members)]
            attained = goals.rows(self._world, self._step, rows_for, None)
        transitions = {} if is_last else self._expand(key_BW)
        piece = BodySlice(
            value=self._step,
            members=members,
            added=added,
            ended=is_last,
            key_BW=key_BW,
            expanded=added if transitions else range(0),
            attained=attained,
            attained_by_body=goals is None or goals.ignore_the_step,
            known=len(self._index),
            **transitions,
        )
        if self._step == 0:
            self._is_nested = is_nested(piece, self.n_profiles)
        if not is_last:
            self._members = range(len(self._index)) if self._is_nested else self._next_members(earlier, piece)
        self._step += 1
        self._first = added.stop
        return piece

    def _expand(self, key_BW: npt.NDArray[np.uint64]) -> Json:
        self._builder = builder = SliceBuilder(self.n_profiles, self._precision, self._spill)
        for block in self._expanded(self._blocks_of(key_BW), is_large=len(key_BW) > self._block_states):
            self._watch.look(len(block.count_SJ), self._block_bytes)
            builder.add(block.count_SJ, self._index.add(block.key_KW), block.prob_K)
            self._bytes_per_pair = max(self._bytes_per_pair, _BYTES_PER_ENTRY * len(block.prob_K) // block.count_SJ.size)
            if len(self._index) > self._max_states:
                raise TooManyStatesError(
                    f"{self._world}: more than max_states={self._max_states:,} bodies; shorten the horizon (max_steps), or "
                    "allow more"
                )
        return builder.arrays(partial(self._watch.look, 0))

    @property
    def _block_states(self) -> int:
        pairs = max(_FEWEST_PAIRS, self._block_bytes // self._bytes_per_pair)
        return max(1, pairs // self.n_profiles)

    def _blocks_of(self, key_BW: KeyArray) -> Iterator[KeyArray]:
        """Blocks that become smaller when it shows that states have many successors."""
        first = 0
        while first < len(key_BW):
            block = key_BW[first : first + self._block_states]
            first += len(block)
            yield block

    @property
    def waiting_bytes(self) -> int:
        return self._builder.nbytes

    def give_back(self) -> None:
        self._builder.spill()

    def _expanded(self, blocks: Iterable[KeyArray], *, is_large: bool) -> Iterator[Expansion]:
        if is_large and self._cluster is not None:
            return self._cluster.map(expand_keys, self._world, blocks)
        return map_blocks(self._world.expand, blocks, self._workers if is_large else 1)

    def _next_members(self, earlier: Levels, piece: BodySlice) -> Bodies:
        stored = (earlier.stretches(t, self.n_profiles) for t in self._expanding)
        slices = itertools.chain(*stored, piece.stretches(self.n_profiles))
        members = bodies_from(successors_of(as_array(self._members), slices, self.n_profiles, len(self._index)))
        self._expanding += [len(earlier)] if len(piece.expanded) else []
        return members

    def check(self, heads: Iterable[BodySlice]) -> None:
        """Nothing beyond the world's identity decides what its levels are."""

    def frontier(self) -> list[BodySlice]:
        """What is known of the next level before it is expanded."""
        if self._is_over:
            return []
        added = range(self._first, len(self._index))
        return [
            BodySlice(value=self._step, members=self._members, added=added, key_BW=self._index.keys[self._first :].copy())
        ]

    def resume(self, done: Levels, frontier: list[BodySlice]) -> None:
        """Continue after the levels ``done``, as if they had just been expanded."""
        self._is_nested = is_nested(done[0], self.n_profiles)
        self._index = self._new_index()
        for t, piece in enumerate(itertools.chain(done.heads(), frontier)):
            if piece.key_BW is not None:
                self._index.add(piece.key_BW)
            self._expanding += [t] if len(piece.expanded) else []
            if len(piece.added) and len(self._index) != piece.added.stop:  # type: ignore[union-attr]
                raise done.damaged(f"level {t}, array 'key': a body is there twice")
        self._step = len(done)
        # Without a frontier everything has been found, if only its last record is missing.
        self._first, self._members = len(self._index), range(0)
        if frontier:
            self._first, self._members = frontier[0].added.start, frontier[0].members  # type: ignore[union-attr]


def expand_keys(world: PackedWorld, key_SW: KeyArray) -> Expansion:
    """A block of keys on a cluster, which gets the world once."""
    return world.expand(key_SW)


def is_nested(first_slice: BodySlice, n_profiles: int) -> bool:
    """Whether each level contains the one before it: if the initial body may stay, so by induction may all."""
    return any(piece.succ_K is not None and bool((piece.succ_K == 0).any()) for piece in first_slice.stretches(n_profiles))
