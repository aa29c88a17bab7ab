"""States that two solutions share, level by level."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from empo_bi.dag.dag import Dag
from empo_bi.results.solution import Solution
from empo_bi.types import IndexArray, KeyArray


def shared_places(first: Solution, second: Solution, t: int) -> tuple[IndexArray, IndexArray]:
    """Places in both solutions of the states of level ``t`` that both have, in the same order.

    Gridworlds with the same map and agents (horizon and probabilities may differ) are matched by the keys of their states,
    other worlds by comparing states.
    """
    if first.dag.levels is second.dag.levels:
        everything = np.arange(first.dag.level_sizes[t])
        return everything, everything
    if _has_same_layout(first.dag, second.dag):
        own_SW, other_SW = first.dag.keys(t), second.dag.keys(t)
        assert own_SW is not None
        assert other_SW is not None
        if np.array_equal(own_SW, other_SW):
            everything = np.arange(len(own_SW))
            return everything, everything
        _, own_M, other_M = np.intersect1d(_as_rows(own_SW), _as_rows(other_SW), assume_unique=True, return_indices=True)
        order = np.argsort(own_M)
        return own_M[order], other_M[order]
    place_of = {state: s for s, state in enumerate(second.dag.states(t))}
    pairs = [(s, place_of[state]) for s, state in enumerate(first.dag.states(t)) if state in place_of]
    own_M, other_M = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return own_M, other_M


def _has_same_layout(first: Dag, second: Dag) -> bool:
    """Whether equal keys of both DAGs are equal states."""
    meaning = first.model.key_meaning
    return meaning is not None and meaning == second.model.key_meaning


def _as_rows(key_SW: KeyArray) -> npt.NDArray[np.void]:
    """Each key of several words as one item that can be compared."""
    key_SW = np.ascontiguousarray(key_SW)
    return key_SW.view([("", key_SW.dtype)] * key_SW.shape[1]).ravel()
