"""Compiled worlds, level by level: which bodies each level adds, where they lead, and which bodies make up each level.

Where the initial body can stay as it is (in a gridworld, by ``still``), levels are nested, by induction: all that can be
reached in t steps can be reached in t + 1. Level t is then simply the first ``n_t`` bodies, and only the bodies that a level
adds have to be expanded. Elsewhere (no ``still``, forced moves) the exact set of each level follows from transitions
already computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from empo_bi.dag.attainment import FixedGoals
from empo_bi.dag.key_index import KeyIndex
from empo_bi.dag.level_members import successors_of
from empo_bi.dag.levels import Levels
from empo_bi.dag.slices import BodySlice, SliceBuilder, as_array, bodies_from
from empo_bi.dag.spill import SpillLimit
from empo_bi.dag.sub_problem import WHOLE, SubProblem
from empo_bi.errors import TooManyStatesError
from empo_bi.memory.watch import Watch
from empo_bi.runtime.blocks import active_cluster, map_blocks
from empo_bi.types import Bodies, BoolArray, IndexArray, Json, KeyArray
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
        part: SubProblem = WHOLE,
    ) -> None:
        """``block_bytes`` is what a block in work may take."""
        self._world, self._goals, self._precision = world, goals, precision
        self._workers, self._max_states = workers, min(MAX_BODIES, MAX_BODIES if max_states is None else max_states)
        self.n_profiles = len(world.all_profiles)
        self._block_bytes, self._bytes_per_pair = block_bytes, BYTES_PER_PAIR
        self._spill, self._builder = spill, SliceBuilder(self.n_profiles, precision)
        self._watch, self._cluster = watch, active_cluster()
        self._index = self._new_index()
        self._starts, self._stop = start_keys(world, part), part.stop
        self._stopped_B = np.zeros(0, dtype=np.bool_)  # bodies where the sub-problem stops at any step
        self._is_expanded_B = np.zeros(0, dtype=np.bool_)  # where it depends on the step: bodies whose transitions are known
        self._first = 0
        self._begin_levels(-1)
        self._is_nested = False
        self._expanding: list[int] = []  # levels whose slices hold transitions, as far as they are asked for

    def _new_index(self) -> KeyIndex:
        return KeyIndex(self._world.n_words, before_growing=partial(self._watch.look, 0))

    def _begin_levels(self, before: int) -> None:
        """Go to the first step after ``before`` at which something starts."""
        self._step = min(step for step in self._starts if step > before)
        self._members: Bodies = bodies_from(self._started())

    def _started(self) -> IndexArray:
        """Numbers of the bodies that start at this step, ascending."""
        key_SW = self._starts.get(self._step)
        return np.zeros(0, dtype=np.int64) if key_SW is None else np.unique(self._index.add(key_SW))

    @property
    def n_levels(self) -> int:
        return self._world.max_steps + 1 - min(self._starts)

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
        ended = is_last or self._ended(members)
        expanding = range(0) if is_last else self._to_expand(members, added, ended)
        is_whole = isinstance(expanding, range) and expanding == added
        transitions = {} if is_last else self._expand(key_BW if is_whole else self._index.keys[as_array(expanding)])
        piece = BodySlice(
            value=self._step,
            members=members,
            added=added,
            ended=ended,
            key_BW=key_BW,
            expanded=expanding if transitions else range(0),
            attained=attained,
            attained_by_body=goals is None or goals.ignore_the_step,
            **transitions,
        )
        if len(earlier) == 0:
            self._is_nested = self._begins_nested(piece)
        self._first = added.stop
        self._advance(earlier, piece)
        return replace(piece, known=len(self._index))

    def _advance(self, earlier: Levels, piece: BodySlice) -> None:
        """Go to the next level, whose bodies follow those of this one, or start there."""
        self._mark_expanded(piece)
        if piece.value == self._world.max_steps:
            self._step += 1
            return
        followers = range(len(self._index)) if self._is_nested else self._next_members(earlier, piece)
        self._step += 1
        if len(followers) == 0 and any(step > piece.value for step in self._starts):
            self._begin_levels(piece.value)
        elif self._step in self._starts:
            self._members = bodies_from(np.union1d(as_array(followers), self._started()))
        else:
            self._members = followers

    def _ended(self, members: Bodies) -> bool | BoolArray:
        """At which of the states the sub-problem stops."""
        if self._stop is None:
            return False
        if self._stop.of_keys is None:
            stops, key_SW = self._stop.of_state, self._index.keys[as_array(members)]
            ended_S = np.fromiter(map(stops, self._world.decode(self._step, key_SW)), np.bool_, len(key_SW))
        else:
            new = self._index.keys[len(self._stopped_B) :]
            self._stopped_B = np.concatenate([self._stopped_B, self._stop.of_keys(new)]) if len(new) else self._stopped_B
            ended_S = self._stopped_B[as_array(members)]
        return bool(ended_S[0]) if ended_S.all() == ended_S.any() else ended_S

    def _to_expand(self, members: Bodies, added: range, ended: bool | BoolArray) -> Bodies:
        """Bodies that go on here and have not been expanded: those that are new, but for those where it stops."""
        if self._stop is None:
            return added
        if self._stop.of_keys is not None:
            return bodies_from(as_array(added)[~self._stopped_B[added.start : added.stop]])
        going_on = as_array(members)[~np.broadcast_to(ended, (len(members),))]
        self._is_expanded_B = _grown(self._is_expanded_B, len(self._index))
        return bodies_from(going_on[~self._is_expanded_B[going_on]])

    @property
    def _stops_by_state(self) -> bool:
        return self._stop is not None and self._stop.of_keys is None

    def _mark_expanded(self, piece: BodySlice) -> None:
        if self._stops_by_state:
            self._is_expanded_B = _grown(self._is_expanded_B, len(self._index))
            self._is_expanded_B[as_array(piece.expanded)] = True

    def _begins_nested(self, first_slice: BodySlice) -> bool:
        """Whether levels are nested; not if more starts later, or if where it stops depends on the step."""
        return not self._stops_by_state and len(self._starts) == 1 and is_nested(first_slice, self.n_profiles)

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
        going_on = as_array(self._members)[piece.goes_on_S]
        members = bodies_from(successors_of(going_on, slices, self.n_profiles, len(self._index)))
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
        self._is_nested = self._begins_nested(done[0])
        self._index = self._new_index()
        self._stopped_B = self._is_expanded_B = np.zeros(0, dtype=np.bool_)
        for t, piece in enumerate(itertools.chain(done.heads(), frontier)):
            if piece.key_BW is not None:
                self._index.add(piece.key_BW)
            self._expanding += [t] if len(piece.expanded) else []
            if len(piece.added) and len(self._index) != piece.added.stop:  # type: ignore[union-attr]
                raise done.damaged(f"level {t}, array 'key': a body is there twice")
            self._mark_expanded(piece)
        self._step = frontier[0].value if frontier else done.sizes[-1].value + 1
        # Without a frontier everything has been found, if only its last record is missing.
        self._first, self._members = len(self._index), range(0)
        if frontier:
            self._first, self._members = frontier[0].added.start, frontier[0].members  # type: ignore[union-attr]


def expand_keys(world: PackedWorld, key_SW: KeyArray) -> Expansion:
    """A block of keys on a cluster, which gets the world once."""
    return world.expand(key_SW)


def start_keys(world: PackedWorld, part: SubProblem) -> dict[int, KeyArray]:
    """Keys of the states to begin with, by their steps."""
    if not part.starts:
        return {0: world.initial_key}
    steps, key_SW = world.encode(part.starts)
    return {int(step): key_SW[steps == step] for step in np.unique(steps)}


def is_nested(first_slice: BodySlice, n_profiles: int) -> bool:
    """Whether each level contains the one before it: if the initial bodies may stay, so by induction may all."""
    may_stay_S = np.zeros(len(first_slice.members), dtype=np.bool_)
    for piece in first_slice.stretches(n_profiles):
        if piece.succ_K is not None:
            may_stay_S[piece.succ_K[piece.succ_K < len(may_stay_S)]] = True
    return bool(may_stay_S.all())


def _grown(flags: BoolArray, size: int) -> BoolArray:
    """The same with False for what is new."""
    return np.concatenate([flags, np.zeros(size - len(flags), dtype=np.bool_)]) if size > len(flags) else flags
