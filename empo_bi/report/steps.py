"""What follows some states of a level: after each joint action, and under both policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray, IndexArray


@dataclass(frozen=True)
class Steps:
    """M states of a level that go on, with K entries: one state after the other, profile after profile.

    Attributes
    ----------
    place_M : (M,), places on the level
    weight_MJ : (M, J), the probability of each profile under both policies
    count_MJ : (M, J), how many entries each profile has
    number_K : (K,), the state that follows, counted level after level
    prob_K : (K,), its probability once the profile is played
    """

    place_M: IndexArray
    weight_MJ: FloatArray
    count_MJ: IndexArray
    number_K: IndexArray
    prob_K: FloatArray

    @property
    def row_K(self) -> IndexArray:
        """(K,), which of the M states an entry belongs to."""
        return np.repeat(np.arange(len(self.place_M)), self.count_MJ.sum(axis=1))

    def under_both_policies(self) -> tuple[IndexArray, IndexArray, FloatArray]:
        """Rows, states that follow, and probabilities: each pair once, in that order, and none of probability 0."""
        weight_K = np.repeat(self.weight_MJ.ravel(), self.count_MJ.ravel()) * self.prob_K
        number_N, inverse_K = np.unique(self.number_K, return_inverse=True)
        shape = (len(self.place_M), len(number_N))
        summed = scipy.sparse.coo_array((weight_K, (self.row_K, inverse_K)), shape=shape).tocsr()
        summed.sum_duplicates()
        summed.eliminate_zeros()
        found = summed.tocoo()
        return found.coords[0], number_N[found.coords[1]], found.data


def steps_of(solution: Solution, t: int, place_M: IndexArray) -> Iterator[Steps]:
    """Steps of those states among the given ones that go on, block by block."""
    dag, n_profiles = solution.dag, solution.dag.n_profiles
    first = np.cumsum([0, *dag.level_sizes])
    if t == dag.horizon or len(place_M) == 0:
        return
    for play in solution.plays(t, place_M):
        block = play.block
        entry_K = block.entries_of(n_profiles)
        body_N, inverse_K = np.unique(block.succ_K[entry_K], return_inverse=True)
        number_N = np.zeros(len(body_N), dtype=np.int64)
        for level, chosen, place in dag.locate(t, body_N):
            number_N[chosen] = first[level] + place
        yield Steps(
            place_M=block.place_M,
            weight_MJ=play.profile_weights(),
            count_MJ=block.counts_of(n_profiles),
            number_K=number_N[inverse_K],
            prob_K=block.prob_K[entry_K] if block.prob_K.size else np.ones(len(entry_K)),
        )
