"""The successors of some states of a level: after each joint action, and under both policies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray, IndexArray


@dataclass(frozen=True)
class Steps:
    """M states of a level that are not terminal, with K entries, state after state and profile after profile.

    Attributes
    ----------
    place_M : (M,), places on the level
    weight_MJ : (M, J), the probability of each profile under both policies
    count_MJ : (M, J), how many entries each profile has
    number_K : (K,), the successor, numbered level after level
    prob_K : (K,), its probability given the profile
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
        """Rows, successors and their probabilities: each pair once, sorted, and none of probability 0."""
        weight_K = np.repeat(self.weight_MJ.ravel(), self.count_MJ.ravel()) * self.prob_K
        number_N, inverse_K = np.unique(self.number_K, return_inverse=True)
        shape = (len(self.place_M), len(number_N))
        summed = scipy.sparse.coo_array((weight_K, (self.row_K, inverse_K)), shape=shape).tocsr()
        summed.sum_duplicates()
        summed.eliminate_zeros()
        found = summed.tocoo()
        return found.coords[0], number_N[found.coords[1]], found.data


def steps_of(solution: Solution, t: int, place_M: IndexArray) -> Iterator[Steps]:
    """Steps of those of the given states that are not terminal, block by block."""
    dag, n_profiles = solution.dag, solution.dag.n_profiles
    if t == dag.horizon or len(place_M) == 0:
        return
    for joint in solution.joint_policies(t, place_M):
        block = joint.block
        entry_K = block.entries_of(n_profiles)
        body_N, inverse_K = np.unique(block.succ_K[entry_K], return_inverse=True)
        yield Steps(
            place_M=block.place_M,
            weight_MJ=joint.profile_weights(),
            count_MJ=block.counts_of(n_profiles),
            number_K=dag.numbers_of(t, body_N)[inverse_K],
            prob_K=block.prob_K[entry_K] if block.prob_K.size else np.ones(len(entry_K)),
        )
