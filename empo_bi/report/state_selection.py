"""Which states go into a report: the most probable ones, and the likeliest successor of each, so that runs go on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from empo_bi.report.steps import steps_of
from empo_bi.report.survey import Survey
from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray, IndexArray

MIN_PROBABILITY = 1e-6
NOT_EMBEDDED = -1


@dataclass(frozen=True)
class Choice:
    """N states, level after level, the likeliest of a level first; the initial state is number 0.

    Attributes
    ----------
    level_N, place_N : (N,), where they are in the DAG
    mass_N : (N,), the probability that each is reached under both policies
    n_probable : how many were chosen because they are probable; the others are likeliest successors
    min_probability, max_states : as given
    """

    level_N: IndexArray
    place_N: IndexArray
    mass_N: FloatArray
    n_probable: int
    min_probability: float
    max_states: int
    _first_T: IndexArray

    def __len__(self) -> int:
        return len(self.level_N)

    def on_level(self, t: int) -> slice:
        """The numbers of the states of a level."""
        first, last = np.searchsorted(self.level_N, [t, t + 1])
        return slice(int(first), int(last))

    def numbers_of(self, number_K: IndexArray) -> IndexArray:
        """Numbers in this choice of states numbered level after level in the DAG; -1 for those that were not chosen."""
        own_N = self._first_T[self.level_N] + self.place_N
        order = np.argsort(own_N)
        place_K = np.minimum(np.searchsorted(own_N[order], number_K), len(order) - 1)
        return np.where(own_N[order][place_K] == number_K, order[place_K], NOT_EMBEDDED)

    def embedded_by_level(self, n_levels: int) -> tuple[IndexArray, FloatArray]:
        """How many states of each level were chosen, and their total probability."""
        mass_T = np.bincount(self.level_N, self.mass_N, minlength=n_levels).astype(np.float64)
        return np.bincount(self.level_N, minlength=n_levels).astype(np.int64), mass_T


def choose(solution: Solution, found: Survey, *, min_probability: float, max_states: int) -> Choice:
    """Up to ``max_states`` states of at least ``min_probability``, and the likeliest successors of each."""
    dag, n_levels = solution.dag, solution.dag.horizon + 1
    first_T = dag.first_state_T
    places = [np.flatnonzero((mass_S >= min_probability) & (mass_S > 0)) for mass_S in found.mass_TS]
    level_C = np.repeat(np.arange(n_levels), [len(place) for place in places])
    place_C = np.concatenate(places)
    mass_C = np.concatenate([mass_S[place] for mass_S, place in zip(found.mass_TS, places, strict=True)])
    top = np.lexsort((place_C, level_C, -mass_C))[:max_states]
    chosen_T = [np.sort(place_C[top[level_C[top] == t]]) for t in range(n_levels)]
    chosen_T[0] = np.union1d(chosen_T[0], np.zeros(1, dtype=np.int64))  # the initial state is always there
    n_probable = max(1, len(top))
    for t in range(n_levels):
        for steps in steps_of(solution, t, chosen_T[t]):
            row_E, number_E, prob_E = steps.under_both_policies()
            likeliest_first = np.lexsort((number_E, -prob_E, row_E))
            _, at = np.unique(row_E[likeliest_first], return_index=True)
            added = np.unique(number_E[likeliest_first[at]])
            level_A = np.searchsorted(first_T, added, side="right") - 1
            for u in np.unique(level_A).tolist():
                chosen_T[u] = np.union1d(chosen_T[u], added[level_A == u] - first_T[u])
    level_N = np.repeat(np.arange(n_levels), [len(place) for place in chosen_T])
    place_N = np.concatenate(chosen_T)
    mass_N = np.concatenate([mass_S[place] for mass_S, place in zip(found.mass_TS, chosen_T, strict=True)])
    order = np.lexsort((place_N, -mass_N, level_N))
    return Choice(level_N[order], place_N[order], mass_N[order], n_probable, min_probability, max_states, first_T)
