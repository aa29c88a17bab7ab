"""The states of a level in blocks, each with the arrays of transitions that kernels walk over.

A level's transitions lie in the slices of the levels that expanded its bodies. They are read there, slice by slice, and
never put together: a level of a million states would take gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.dag import Dag
from empo_bi.dag.slices import BodySlice, as_array, entries_of, places_in, widened
from empo_bi.types import Array, BoolArray, FloatArray, IndexArray, SuccessorArray

NO_FLOATS = np.empty(0, dtype=np.float64)
_NO_STARTS = np.empty(0, dtype=np.int64)
_NO_COUNTS = np.empty((0, 0), dtype=np.int32)


@dataclass(frozen=True)
class Block:
    """Some states of a level, all of which go on, and a stretch of a slice that has their transitions.

    Attributes
    ----------
    place_M : (M,) int64, places among the states of the level
    body_M : (M,) int64
    row_M : (M,) int64, rows of the stretch
    start_E : (E + 1,) int64, where the entries of each row begin; empty if every profile has one successor
    count_EJ : (E, J) int32, successors of each profile; empty likewise
    succ_K : (K,) int32, bodies
    prob_K : (K,) float64; empty if all probabilities are 1
    """

    place_M: IndexArray
    body_M: IndexArray
    row_M: IndexArray
    start_E: IndexArray
    count_EJ: npt.NDArray[np.int32]
    succ_K: SuccessorArray
    prob_K: FloatArray

    @property
    def transitions(self) -> tuple[Any, ...]:
        """In the order in which kernels take them."""
        return self.start_E, self.count_EJ, self.succ_K, self.prob_K

    def counts_of(self, n_profiles: int) -> IndexArray:
        """Successors of each (state, profile), (M, J)."""
        if self.count_EJ.size == 0:
            return np.ones((len(self.row_M), n_profiles), dtype=np.int64)
        return self.count_EJ[self.row_M].astype(np.int64)

    def entries_of(self, n_profiles: int) -> IndexArray:
        """Numbers of the entries of all states, one state after the other."""
        if self.count_EJ.size == 0:
            return (self.row_M[:, np.newaxis] * n_profiles + np.arange(n_profiles)).ravel()
        return entries_of(self.start_E, self.row_M)


@dataclass(frozen=True)
class RestingBlock:
    """A block whose transitions are as they lie in the slice, which takes a quarter of the room: views of it.

    Attributes are those of :class:`Block`, with None for what is trivial.
    """

    place_M: IndexArray
    body_M: IndexArray
    row_M: IndexArray
    start_E: IndexArray
    count_EJ: Array | None
    succ_K: Array
    prob_K: npt.NDArray[np.floating] | None

    def awake(self) -> Block:
        """The block as kernels read it. This is a tenth of the work on it, and several threads can do it."""
        succ_K = self.succ_K.astype(np.int32, copy=False)
        if self.count_EJ is None:
            return Block(self.place_M, self.body_M, self.row_M, _NO_STARTS, _NO_COUNTS, succ_K, NO_FLOATS)
        count_EJ = self.count_EJ.astype(np.int32)
        prob_K = NO_FLOATS if self.prob_K is None else widened(self.prob_K, count_EJ)
        return Block(self.place_M, self.body_M, self.row_M, self.start_E, count_EJ, succ_K, prob_K)


class LevelBlocks:
    """Divides levels into blocks of at most ``block_states`` states."""

    def __init__(self, dag: Dag, block_states: int) -> None:
        self.dag, self.block_states = dag, block_states
        self.n_going_on = 0  # states of the level that was last gone through that are in blocks
        self._starts: dict[int, IndexArray] = {}  # of slices that several levels share

    def bodies(self, t: int) -> IndexArray:
        return as_array(self.dag.levels.members(t))

    def going_on(self, t: int) -> BoolArray:
        """Which states of a level are not terminal there, as far as the slice itself says."""
        return self.dag.levels.part(t, ("members", "ended")).goes_on_S

    def of_level(self, t: int) -> Iterator[Block]:
        """All states of level ``t`` that go on, in some order; those in no block are terminal."""
        return (block.awake() for block in self.resting(t))

    def resting(self, t: int, at_most: int | None = None) -> Iterator[RestingBlock]:
        """The same at rest; ``at_most`` makes blocks smaller than usual."""
        self.n_going_on = 0
        body_S = self.bodies(t)
        goes_on = self.going_on(t)
        sources = self._sources(t)
        for n, i in enumerate(sources):
            self.dag.levels.prefetch(sources[n + 1 : n + 2])
            for piece in self.dag.levels.stretches(i, self.dag.n_profiles):
                inside, row_M = places_in(piece.expanded, body_S)
                keep = goes_on[inside]
                place_M, row_M = np.flatnonzero(inside)[keep], row_M[keep]
                self._check_followers(t, i, piece, row_M)
                yield from self._resting(i, piece, place_M, body_S[place_M], row_M, at_most)

    def of_states(self, t: int, place_M: IndexArray) -> Iterator[Block]:
        """The same for some states of level ``t``, given by their places there."""
        body_M = self.bodies(t)[place_M]
        keep = self.going_on(t)[place_M]
        order = np.argsort(body_M[keep], kind="stable")
        place_M, body_M = place_M[keep][order], body_M[keep][order]
        for i in self.dag.holders_of(t, body_M):
            for piece in self.dag.levels.stretches(i, self.dag.n_profiles, body_M):
                inside, row_M = places_in(piece.expanded, body_M)
                self._check_followers(t, i, piece, row_M)
                yield from (block.awake() for block in self._resting(i, piece, place_M[inside], body_M[inside], row_M))

    def _sources(self, t: int) -> list[int]:
        """Slices that may hold transitions of a level. Every other level goes through them backwards: those that were used
        last are still in the cache."""
        needed = self.dag.needed(t)
        return needed if t % 2 else needed[::-1]

    def _check_followers(self, t: int, i: int, piece: BodySlice, row_M: IndexArray) -> None:
        """Stored successors may be anything: those of level ``t`` have to be on the next one."""
        check = self.dag.levels.successor_check(t)
        if check is not None and piece.succ_K is not None:
            start_E = None if piece.count_EJ is None else self._starts_of(i, piece)
            check.check(row_M, start_E, self.dag.n_profiles, piece.succ_K)

    def _resting(
        self, i: int, piece: BodySlice, place_M: IndexArray, body_M: IndexArray, row_M: IndexArray,
        at_most: int | None = None,
    ) -> Iterator[RestingBlock]:  # fmt: skip
        if piece.succ_K is None or len(row_M) == 0:
            return
        start_E = None if piece.count_EJ is None else self._starts_of(i, piece)
        if start_E is not None:  # states without successors are terminal
            keep = start_E[row_M + 1] > start_E[row_M]
            place_M, body_M, row_M = place_M[keep], body_M[keep], row_M[keep]
        self.n_going_on += len(row_M)
        m = 0
        while m < len(row_M):
            size = self.block_states  # which may change meanwhile, when memory is short
            chosen = slice(m, m + (size if at_most is None else min(size, at_most)))
            m = chosen.stop
            yield self._block(piece, start_E, place_M[chosen], body_M[chosen], row_M[chosen])

    def _block(
        self, piece: BodySlice, start_E: IndexArray | None, place_M: IndexArray, body_M: IndexArray, row_M: IndexArray
    ) -> RestingBlock:
        assert piece.succ_K is not None
        first, last = int(row_M[0]), int(row_M[-1]) + 1
        if start_E is None:
            n_profiles = self.dag.n_profiles
            succ_K = piece.succ_K[first * n_profiles : last * n_profiles]
            return RestingBlock(place_M, body_M, row_M - first, _NO_STARTS, None, succ_K, None)
        assert piece.count_EJ is not None
        stretch = slice(int(start_E[first]), int(start_E[last]))
        prob_K = None if piece.prob_K is None else piece.prob_K[stretch]
        starts = start_E[first : last + 1] - start_E[first]
        return RestingBlock(
            place_M, body_M, row_M - first, starts, piece.count_EJ[first:last], piece.succ_K[stretch], prob_K
        )

    def _starts_of(self, i: int, piece: BodySlice) -> IndexArray:
        is_whole = len(piece.expanded) == self.dag.levels.sizes[i].n_expanded
        if not self.dag.shares_bodies or not is_whole:  # used once, or a stretch
            return piece.starts(self.dag.n_profiles)
        if i not in self._starts:
            self._starts[i] = piece.starts(self.dag.n_profiles)
        return self._starts[i]
