r"""A look beyond the levels that were counted, for worlds whose states come in waves: behind a locked door, with a key.

What a state is made of are values of slots: the cell of an agent, what it carries, the condition of a door. The look ahead
follows only states in which two slots have values that were never seen together before. There are few of them, so that all
remaining levels take a second; but whatever a short sequence of such steps can open is found, by the world's own rules.
(Width-based search, see Lipovetzky and Geffner, ECAI 2012, has the same idea for planning.)
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt

from empo_bi.types import BoolArray, IndexArray, KeyArray
from empo_bi.world.key_layout import KeyLayout
from empo_bi.world.map_world import MapWorld

_MOST_STATES = 2_000  # that are followed from one level
_MOST_VALUES = 2_000  # of all slots together: the table of pairs has the square of it
_AT_A_TIME = 1 << 16  # states whose pairs are looked at together


class SeenPairs:
    """Which values of slots occur, alone and in pairs.

    Attributes
    ----------
    seen_VV : (V, V) whether two values of different slots occur in one state; on the diagonal, whether a value occurs
    """

    def __init__(self, layout: KeyLayout) -> None:
        self._fields = layout.fields
        sizes = [1 << field.width for field in self._fields]
        self._first_F = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.seen_VV: BoolArray = np.zeros((int(self._first_F[-1]),) * 2, dtype=np.bool_)

    @staticmethod
    def can_hold(layout: KeyLayout) -> bool:
        return 0 < sum(1 << field.width for field in layout.fields) <= _MOST_VALUES

    def add(self, key_SW: KeyArray) -> IndexArray:
        """Note the pairs of some states. Returns the first state with each pair that is new, ascending."""
        chosen = []
        for first in range(0, len(key_SW), _AT_A_TIME):
            value_FS = self._values(key_SW[first : first + _AT_A_TIME])
            chosen += [first + self._add_pair(value_FS[f], value_FS[g]) for f in range(len(value_FS)) for g in range(f + 1)]
        return np.unique(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)

    def counts(self) -> npt.NDArray[np.int64]:
        """(F,), how many values each slot has had."""
        return np.add.reduceat(self.seen_VV.diagonal().astype(np.int64), self._first_F[:-1])

    def _values(self, key_SW: KeyArray) -> list[IndexArray]:
        return [field.values(key_SW) + first for field, first in zip(self._fields, self._first_F, strict=False)]

    def _add_pair(self, one_S: IndexArray, other_S: IndexArray) -> IndexArray:
        new = np.flatnonzero(~self.seen_VV[one_S, other_S])
        if len(new) == 0:
            return new
        _, first = np.unique(one_S[new] * len(self.seen_VV) + other_S[new], return_index=True)
        chosen = new[first]
        self.seen_VV[one_S[chosen], other_S[chosen]] = True
        return chosen


def log_boxes_ahead(world: MapWorld, seen: SeenPairs, frontier_SW: KeyArray, n_levels: int, seconds: float) -> list[float]:
    """How large the box of all combinations of the values seen is, as logarithms: on the last counted level, and after it.

    Stops early, with fewer numbers, when nothing new can be found or time is up.
    """
    boxes = [log_box(seen)]
    begin, rng = time.perf_counter(), np.random.default_rng(0)
    while len(boxes) <= n_levels and len(frontier_SW) and time.perf_counter() - begin < seconds:
        if len(frontier_SW) > _MOST_STATES:
            frontier_SW = frontier_SW[np.sort(rng.choice(len(frontier_SW), _MOST_STATES, replace=False))]
        after_KW = world.expand(frontier_SW).key_KW
        frontier_SW = after_KW[seen.add(after_KW)].copy()
        boxes.append(log_box(seen))
    return boxes


def log_box(seen: SeenPairs) -> float:
    return float(np.log(np.maximum(1, seen.counts())).sum())
