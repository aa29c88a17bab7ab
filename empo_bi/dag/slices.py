"""The arrays of one level: :class:`BodySlice`, what a level adds, and :class:`LevelSlice`, what a level consists of.

A *body* is a state without its step. In a world whose rules do not depend on the step, a body's transitions are computed
and kept once, in the slice of the level where it is first reached, and shared by all later levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from empo_bi.world.expand import Expansion, KeyArray

IndexArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class BodySlice:
    """Bodies ``first`` to ``first + B - 1``, numbered in the order of discovery, and where they lead.

    What is trivial is left out: ``count_BJ`` is None if every profile has one successor, ``prob_K`` if every probability
    is 1. Bodies that are first reached at the horizon have no transitions; then ``succ_K`` is None.
    """

    first: int
    key_BW: KeyArray | None  # None for Python worlds, whose states are no keys
    n_bodies: int
    count_BJ: npt.NDArray[np.unsignedinteger] | None
    succ_K: npt.NDArray[np.int32] | None
    prob_K: FloatArray | None

    def __len__(self) -> int:
        return self.n_bodies

    @property
    def n_entries(self) -> int:
        return 0 if self.succ_K is None else len(self.succ_K)

    @property
    def nbytes(self) -> int:
        arrays = (self.key_BW, self.count_BJ, self.succ_K, self.prob_K)
        return sum(array.nbytes for array in arrays if array is not None)

    def starts(self, n_profiles: int) -> IndexArray:
        """Where each body's entries begin in ``succ_K``, and where the last one's end (B + 1,)."""
        if self.count_BJ is None:
            return np.arange(len(self) + 1, dtype=np.int64) * (n_profiles if self.succ_K is not None else 0)
        ends = self.count_BJ.sum(axis=1, dtype=np.int64).cumsum()
        return np.concatenate([np.zeros(1, dtype=np.int64), ends])

    def entries(self, body_M: IndexArray, n_profiles: int) -> tuple[IndexArray, IndexArray, FloatArray]:
        """Counts, successors and probabilities of some of the bodies (numbered within the slice), nothing left out."""
        starts = self.starts(n_profiles)
        lengths = starts[body_M + 1] - starts[body_M]
        # Each body's entries lie consecutively in the slice: shift a count from 0 to where they begin.
        begins = np.concatenate([np.zeros(1, dtype=np.int64), lengths.cumsum()])[:-1]
        chosen = np.arange(lengths.sum(), dtype=np.int64) + np.repeat(starts[body_M] - begins, lengths)
        if self.succ_K is None:
            return np.zeros((len(body_M), n_profiles), np.int64), chosen, np.zeros(0)
        ones = np.ones((len(body_M), n_profiles), dtype=np.int64)
        count_MJ = ones if self.count_BJ is None else self.count_BJ[body_M].astype(np.int64)
        prob_K = np.ones(len(chosen)) if self.prob_K is None else self.prob_K[chosen]
        return count_MJ, self.succ_K[chosen].astype(np.int64), prob_K


@dataclass(frozen=True)
class LevelSlice:
    """All states of one level, as the solver reads them.

    Attributes
    ----------
    level : int
    body_S : (S,) the body of each state, ascending
    count_SJ : (S, J) successors of each (state, profile); 0 for terminal states, where nothing follows
    succ_K : (K,) bodies of the successors; in a gridworld on the next level, elsewhere on any higher one
    prob_K : (K,) float64
    """

    level: int
    body_S: IndexArray
    count_SJ: IndexArray
    succ_K: IndexArray
    prob_K: FloatArray

    @property
    def n_states(self) -> int:
        return len(self.body_S)


class SliceBuilder:
    """Gathers the blocks that a level is expanded in, narrowed at once, and leaves out what is trivial."""

    def __init__(self, first: int, key_BW: KeyArray) -> None:
        self._first, self._key_BW = first, key_BW
        self._counts: list[npt.NDArray[np.int32]] = []
        self._succs: list[npt.NDArray[np.int32]] = []
        self._probs: list[FloatArray] = []

    def add(self, block: Expansion, number_K: IndexArray) -> None:
        """One block, with the numbers of its successors."""
        self._counts.append(block.count_SJ)
        self._succs.append(number_K.astype(np.int32))
        self._probs.append(block.prob_K.copy())  # the block's own array has room to spare

    def build(self) -> BodySlice:
        count_BJ, prob_K = np.concatenate(self._counts), np.concatenate(self._probs)
        most = int(count_BJ.max(initial=1))
        return BodySlice(
            self._first,
            self._key_BW,
            len(self._key_BW),
            None if most == 1 else count_BJ.astype(np.min_scalar_type(most)),
            np.concatenate(self._succs),
            None if (prob_K == 1.0).all() else prob_K,
        )
