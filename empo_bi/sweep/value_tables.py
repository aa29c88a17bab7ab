"""Which row of the sweep's tables belongs to which body, for as long as lower levels may ask for it.

Where bodies are shared, a body has its number as its row, and two tables take turns: one has the level above, the other
receives the present level. Elsewhere one table has all levels that are still needed; those that no lower level leads to go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from empo_bi.dag.dag import Dag
from empo_bi.dag.slices import as_array
from empo_bi.types import Bodies, IndexArray, SuccessorArray


@dataclass(frozen=True)
class RowPlan:
    """The rows of one level: how many the tables have, where the level's states go, and what is kept of the old table."""

    n_rows: int
    slot_S: IndexArray
    kept: IndexArray | None  # old rows that become the first new ones; None where two tables take turns


class Rows(Protocol):
    def begin(self, t: int, members: Bodies) -> RowPlan:
        """Make room for level ``t``."""

    def slots_of(self, succ_K: SuccessorArray) -> SuccessorArray:
        """Rows of bodies of higher levels."""


class SharedRows:
    """A body's row is its number."""

    def __init__(self, dag: Dag) -> None:
        self._n_rows = dag.n_bodies

    def begin(self, t: int, members: Bodies) -> RowPlan:
        return RowPlan(self._n_rows, as_array(members), None)

    def slots_of(self, succ_K: SuccessorArray) -> SuccessorArray:
        return succ_K


class LiveRows:
    """Rows of all levels that a lower one may lead to, the highest first."""

    def __init__(self, dag: Dag) -> None:
        self._known = [sizes.known for sizes in dag.levels.sizes]
        self._live: list[IndexArray] = []  # bodies of each such level
        self._base = 0
        self._slot_of = np.zeros(0, dtype=np.int32)  # of bodies from the base on

    def begin(self, t: int, members: Bodies) -> RowPlan:
        starts = np.cumsum([0, *map(len, self._live)])
        # Bodies are numbered as they are found, from the lowest level up: a level all of whose bodies were found after
        # level t had been expanded follows from no level up to t.
        needed = [i for i, bodies in enumerate(self._live) if len(bodies) and bodies[0] < self._known[t]]
        kept = np.concatenate([np.zeros(0, dtype=np.int64), *(np.arange(starts[i], starts[i + 1]) for i in needed)])
        self._live = [*(self._live[i] for i in needed), as_array(members)]
        above = np.concatenate([np.zeros(0, dtype=np.int64), *self._live[:-1]])
        self._base = int(above.min(initial=0)) if len(above) else 0
        self._slot_of = np.zeros(int(above.max(initial=-1)) + 1 - self._base, dtype=np.int32)
        self._slot_of[above - self._base] = np.arange(len(above))
        return RowPlan(len(above) + len(members), np.arange(len(above), len(above) + len(members)), kept)

    def slots_of(self, succ_K: SuccessorArray) -> SuccessorArray:
        slots: SuccessorArray = self._slot_of[succ_K - self._base]
        return slots


def rows_of(dag: Dag) -> Rows:
    return SharedRows(dag) if dag.shares_bodies else LiveRows(dag)


class Table:
    """Numbers by row: ``read`` has those of higher levels, ``write`` receives those of the present one."""

    def __init__(self, width: int, dtype: npt.DTypeLike) -> None:
        """``width`` is 0 for a single number per row."""
        self._tail = (width,) if width else ()
        self._dtype = np.dtype(dtype)
        self.read = self.write = self._empty(0)

    def _empty(self, n_rows: int) -> npt.NDArray[Any]:
        return np.empty((n_rows, *self._tail), dtype=self._dtype)

    def begin(self, plan: RowPlan) -> None:
        if plan.kept is None:
            self.read, self.write = self.write, self.read
            if len(self.write) < plan.n_rows:
                self.write = self._empty(plan.n_rows)
        else:
            old, new = self.write, self._empty(plan.n_rows)
            new[: len(plan.kept)] = old[plan.kept]
            self.read = self.write = new

    def rows_to_carry(self, plan: RowPlan) -> npt.NDArray[Any]:
        """What lower levels need: the present level, or everything in the table where that has several."""
        if plan.kept is not None:
            return self.write
        n = len(plan.slot_S)
        is_prefix = n > 0 and int(plan.slot_S[-1]) == n - 1  # then a view will do
        return self.write[:n] if is_prefix else self.write[plan.slot_S]

    @staticmethod
    def n_rows_to_carry(plan: RowPlan) -> int:
        """How many rows :meth:`rows_to_carry` has."""
        return len(plan.slot_S) if plan.kept is None else plan.n_rows

    def restore(self, plan: RowPlan, carried: npt.NDArray[Any]) -> None:
        """Become what the table was when ``carried`` was taken from it."""
        if plan.kept is None:
            self.write = self._empty(plan.n_rows)
            self.write[plan.slot_S] = carried
        else:
            self.read = self.write = carried

    @property
    def nbytes(self) -> int:
        return self.read.nbytes + (0 if self.write is self.read else self.write.nbytes)
