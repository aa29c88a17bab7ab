"""Which bodies a level consists of, where that has to be found by following transitions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from empo_bi.dag.slices import BodySlice, places_in
from empo_bi.runtime.jit import kernel
from empo_bi.types import BoolArray, IndexArray, SuccessorArray


def successors_of(member_M: IndexArray, slices: Iterable[BodySlice], n_profiles: int, n_bodies: int) -> IndexArray:
    """The exact set of bodies one level on: all successors of ``member_M``, ascending. Stretches will do as ``slices``."""
    mark = np.zeros(n_bodies, dtype=np.bool_)
    for piece in slices:
        if piece.succ_K is not None:
            _, row_M = places_in(piece.expanded, member_M)
            mark_successors(mark, row_M, piece.starts(n_profiles), piece.succ_K)
    return np.flatnonzero(mark)


@kernel
def mark_successors(mark: BoolArray, row_M: IndexArray, start_E: IndexArray, succ_K: SuccessorArray) -> None:
    for m in range(row_M.size):
        for k in range(start_E[row_M[m]], start_E[row_M[m] + 1]):
            mark[succ_K[k]] = True
