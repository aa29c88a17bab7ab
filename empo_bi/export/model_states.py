"""The states of an exported model, their numbers, and the successors of each, in blocks.

A model checker counts steps itself, so one state for each *body* (a state without its step) is enough. That is exact for
properties bounded by the horizon, if nothing but the horizon depends on the step: :func:`bodies_suffice`. Otherwise a state
of the model is a state of the DAG.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from empo_bi.dag.dag import ATTAINED, Dag
from empo_bi.dag.level_blocks import Block, LevelBlocks
from empo_bi.dag.slices import Rows, as_array, places_in
from empo_bi.types import BoolArray, ByteArray, FloatArray, IndexArray

BLOCK_PAIRS = 1 << 19  # (state, profile) pairs at a time: a few dozen MB in all


@dataclass(frozen=True)
class StateBlock:
    """M states with consecutive numbers, and their successors.

    Attributes
    ----------
    first : the number of the first state
    level : their level; for bodies, the first level that has them
    count_MJ : (M, J) int64, the number of successors of each (state, profile)
    succ_K : (K,) int64, numbers of the successors
    prob_K : (K,) float64
    attained_MX : (M, X) uint8, one bit per (human, goal), or None without goals
    n_of_level : how many states this level adds
    is_last : whether this is the last block of the level
    """

    first: int
    level: int
    count_MJ: IndexArray
    succ_K: IndexArray
    prob_K: FloatArray
    attained_MX: ByteArray | None
    n_of_level: int
    is_last: bool


def bodies_suffice(dag: Dag) -> bool:
    """Whether states that differ only in their step have the same successors and goals, apart from the horizon."""
    return dag.shares_bodies and _ends_ignore_the_step(dag) and _goals_ignore_the_step(dag)


def _ends_ignore_the_step(dag: Dag) -> bool:
    goes_on_somewhere = np.zeros(dag.n_bodies, dtype=np.bool_)
    for t in range(dag.horizon):
        goes_on_somewhere[as_array(dag.levels.part(t, ("expanded",)).expanded)] = True
    pieces = (dag.levels.part(t, ("members", "ended")) for t in range(dag.horizon))
    return not any(goes_on_somewhere[as_array(piece.members)[~piece.goes_on_S]].any() for piece in pieces)


def _goals_ignore_the_step(dag: Dag) -> bool:
    goals = dag.goals
    if goals is None or (goals.fixed is not None and goals.fixed.ignore_the_step and dag.model.packed is not None):
        return True
    if goals.is_stored and all(dag.levels.part(t, ()).attained_by_body for t in range(dag.horizon + 1)):
        return True
    # Users' goals may look at the step; their answers show whether they do.
    known_BX: ByteArray | None = None
    for t in range(dag.horizon + 1):
        attained_SX, piece = dag.attained(t), dag.levels.part(t, ATTAINED)
        assert attained_SX is not None
        body_S = as_array(piece.members)
        if known_BX is None:
            known_BX = np.zeros((dag.n_bodies, attained_SX.shape[1]), dtype=np.uint8)
        is_new = np.isin(body_S, as_array(piece.added), assume_unique=True)
        known_BX[body_S[is_new]] = attained_SX[is_new]
        if not np.array_equal(known_BX[body_S], attained_SX):
            return False
    return True


class ModelStates:
    """The states of a model, in the order of their numbers.

    Bodies keep their numbers. States of the DAG are numbered level after level, as :meth:`Dag.index_of` does.

    Attributes
    ----------
    is_unrolled : whether they are states of the DAG
    n_states : int
    """

    def __init__(self, dag: Dag, *, unrolled: bool) -> None:
        self._dag, self.is_unrolled = dag, unrolled or not bodies_suffice(dag)
        self.n_states = dag.n_states if self.is_unrolled else dag.n_bodies
        self._size = max(1, BLOCK_PAIRS // dag.n_profiles)
        self._blocks = LevelBlocks(dag, self._size)

    def blocks(self) -> Iterator[StateBlock]:
        levels = range(self._dag.horizon + 1)
        number_B = self._numbers_on(levels) if self.is_unrolled and not self._dag.shares_bodies else None
        first = 0
        for t in levels:
            if self.is_unrolled and self._dag.shares_bodies and t < self._dag.horizon:
                number_B = self._numbers_on([t + 1])
            place_S, attained_SX = self._states_of(t)
            for m in range(0, len(place_S), self._size):
                chosen = slice(m, m + self._size)
                rows = self._rows(t, place_S[chosen])
                succ_K = rows.succ_K.astype(np.int64) if number_B is None else number_B[rows.succ_K]
                attained_MX = None if attained_SX is None else attained_SX[chosen]
                is_last = chosen.stop >= len(place_S)
                yield StateBlock(first, t, rows.count_MJ, succ_K, rows.prob_K, attained_MX, len(place_S), is_last)
                first += len(rows.count_MJ)

    def _states_of(self, t: int) -> tuple[IndexArray, ByteArray | None]:
        """Places on level ``t`` of the states that it adds to the model, ascending, and their attainment bits."""
        dag, piece = self._dag, self._dag.levels.part(t, ATTAINED)
        if self.is_unrolled:
            return np.arange(len(piece.members), dtype=np.int64), dag.attained(t)
        place_S = places_in(piece.members, as_array(piece.added))[1]
        if dag.goals is not None and dag.goals.is_stored and piece.attained_by_body:
            return place_S, piece.attained
        attained_SX = dag.attained(t)
        return place_S, None if attained_SX is None else attained_SX[place_S]

    def _numbers_on(self, levels: Iterable[int]) -> IndexArray:
        """The number of each body that is on one of the levels, -1 for others."""
        number_B = np.full(self._dag.n_bodies, -1, dtype=np.int64)
        for t in levels:
            body_S = as_array(self._dag.levels.members(t))
            number_B[body_S] = self._dag.first_state_T[t] + np.arange(len(body_S))
        return number_B

    def _rows(self, t: int, place_M: IndexArray) -> Rows:
        """The successors of the states of level ``t`` at ``place_M``, which ascend; none for terminal states."""
        n_profiles = self._dag.n_profiles
        parts = [(block.place_M, _rows_of(block, n_profiles)) for block in self._blocks.of_states(t, place_M)]
        count_MJ = np.zeros((len(place_M), n_profiles), dtype=np.int64)
        if not parts:
            return Rows(count_MJ, np.zeros(0, dtype=np.int32), np.zeros(0))
        place_N = np.concatenate([place for place, _ in parts])
        rows = Rows(
            np.concatenate([part.count_MJ for _, part in parts]),
            np.concatenate([part.succ_K for _, part in parts]),
            np.concatenate([part.prob_K for _, part in parts]),
        )
        if (np.diff(place_N) < 0).any():  # bodies that ended when first found were expanded later, in another slice
            order = np.argsort(place_N)
            place_N, rows = place_N[order], rows.permuted(order)
        count_MJ[np.searchsorted(place_M, place_N)] = rows.count_MJ
        return Rows(count_MJ, rows.succ_K, rows.prob_K)


def _rows_of(block: Block, n_profiles: int) -> Rows:
    count_MJ = block.counts_of(n_profiles)
    is_whole = int(count_MJ.sum()) == len(block.succ_K)
    chosen = slice(None) if is_whole else block.entries_of(n_profiles)
    succ_K = block.succ_K[chosen]
    return Rows(count_MJ, succ_K, block.prob_K[chosen] if len(block.prob_K) else np.ones(len(succ_K)))


def goes_on(block: StateBlock) -> BoolArray:
    """Which of the states have successors, (M,)."""
    return block.count_MJ.sum(axis=1) > 0
