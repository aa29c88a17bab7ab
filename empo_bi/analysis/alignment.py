"""States that two solutions share, level by level."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.dag import Dag
from empo_bi.results.solution import Solution
from empo_bi.types import IndexArray, KeyArray
from empo_bi.world.gridworld import GridWorld


def shared_places(first: Solution, second: Solution, t: int) -> tuple[IndexArray, IndexArray]:
    """Places of the states of level ``t`` that both solutions have, in each of them, in the same order.

    Gridworlds whose packed states mean the same (same map and agents; horizon and probabilities may differ) are matched by
    their keys, other worlds by comparing states.
    """
    if first.dag.levels is second.dag.levels:
        everything = np.arange(first.dag.level_sizes[t])
        return everything, everything
    if _means_the_same(first.dag, second.dag):
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


def _means_the_same(first: Dag, second: Dag) -> bool:
    """Whether keys of two DAGs are of gridworlds with the same layout."""
    worlds = first.world, second.world
    if not all(isinstance(world, GridWorld) for world in worlds):
        return False
    own, other = (world.layout for world in worlds)
    return (
        own.fields == other.fields and np.array_equal(own.cell_xy, other.cell_xy) and own.types == other.types
        and own.objects == other.objects and np.array_equal(own.initial_row, other.initial_row)
    )  # fmt: skip


def _as_rows(key_SW: KeyArray) -> npt.NDArray[Any]:
    """Keys as single things that can be compared."""
    key_SW = np.ascontiguousarray(key_SW)
    return key_SW.view([("", key_SW.dtype)] * key_SW.shape[1]).ravel()
