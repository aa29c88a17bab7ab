"""Arrays over all states of all levels, for xarray, that read only the selected levels, rows and columns.

Imported only if xarray is installed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from xarray.backends import BackendArray

from empo_bi.analysis import xarray_internals as indexing
from empo_bi.analysis.quantities import Source, trim_after
from empo_bi.dag.slices import bodies_from
from empo_bi.types import Bodies, IndexArray

Array = npt.NDArray[np.number]


class LevelledArray(BackendArray):
    """A quantity of all states, level after level, as ``dag.index_of`` numbers them.

    Levels are read one after the other, and only chunks with selected rows; only the selected columns of a chunk are kept.
    Nothing is cached. Several threads may read (dask does): they take turns.
    """

    def __init__(
        self, source: Source, first_state: IndexArray, columns: Sequence[int], dtype: npt.DTypeLike, lock: threading.Lock
    ) -> None:
        """``first_state``: the number of each level's first state, then that of all states; ``columns``: other sizes."""
        self._source, self._first_state, self._lock = source, first_state, lock
        self.shape = (int(first_state[-1]), *columns)
        self.dtype = np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Array:
        if isinstance(key, indexing.BasicIndexer | indexing.OuterIndexer):
            return self._read(key.tuple)  # also with backward or empty slices, which the adapter does not accept
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Array:
        """``key`` has an integer, a slice, or an array of integers for each dimension, applied independently."""
        keys = [_normal(one, n) for one, n in zip(key, self.shape, strict=True)]
        number_N, back = _ascending(keys[0])
        columns = keys[1:]
        found: Array = np.zeros((len(number_N), *map(len, columns)), dtype=self.dtype)
        with self._lock:
            for t, rows_there, places in self._by_level(number_N):
                out = found[rows_there]
                for where, rows in self._source(t, places):
                    out[where] = _chosen(rows, columns)
                trim_after(len(places))
        if back is not None:
            found = found[back]
        return found[tuple(0 if np.ndim(one) == 0 and not isinstance(one, slice) else slice(None) for one in key)]

    def _by_level(self, number_N: range | IndexArray) -> list[tuple[int, slice, Bodies]]:
        """Levels, which of the ascending numbers belong to each, and their places there."""
        if len(number_N) == 0:
            return []
        parts = []
        levels = np.searchsorted(self._first_state, [number_N[0], number_N[-1]], side="right") - 1
        for t in range(levels[0], levels[1] + 1):
            first, last = int(self._first_state[t]), int(self._first_state[t + 1])
            if isinstance(number_N, range):
                begin, end = (max(0, math.ceil((n - number_N.start) / number_N.step)) for n in (first, last))
                here = number_N[begin:end]
                places: Bodies = range(here.start - first, here.stop - first)
                if number_N.step > 1:
                    places = np.arange(here.start - first, here.stop - first, here.step, dtype=np.int64)
                end = begin + len(here)
            else:
                begin, end = np.searchsorted(number_N, [first, last]).tolist()
                places = bodies_from(number_N[begin:end] - first)
            if end > begin:
                parts.append((t, slice(begin, end), places))
        return parts

    # --- for dask, copy and pickle ------------------------------------------------------------------------------------

    def __deepcopy__(self, memo: object) -> LevelledArray:
        return self  # it never changes

    def __dask_tokenize__(self) -> tuple[str, int, int]:
        return "empo_bi", id(self._source), id(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "this array reads from an open solution, which cannot be pickled; call .load() first, or open the solution in "
            "the other process: open_solution(path).to_xarray()"
        )


def _normal(one: slice | npt.ArrayLike, n: int) -> range | IndexArray:
    """An index as a range or an array of numbers from 0 to n - 1."""
    if isinstance(one, slice):
        return range(n)[one]
    numbers = np.atleast_1d(np.asarray(one, dtype=np.int64))
    if len(numbers) and not (-n <= numbers.min() and numbers.max() < n):
        raise IndexError(f"index {one!r} is out of bounds for size {n}")
    return np.where(numbers < 0, numbers + n, numbers)


def _ascending(numbers: range | IndexArray) -> tuple[range | IndexArray, slice | IndexArray | None]:
    """The same numbers, each once and in order, and the index that restores the original order."""
    if isinstance(numbers, range):
        return (numbers[::-1], slice(None, None, -1)) if numbers.step < 0 else (numbers, None)
    if (np.diff(numbers) > 0).all():
        return numbers, None
    ascending, back = np.unique(numbers, return_inverse=True)
    return ascending, back


def _chosen(rows: Array, columns: Sequence[range | IndexArray]) -> Array:
    """Some columns of all dimensions but the first."""
    for axis, chosen in enumerate(columns, start=1):
        if isinstance(chosen, range) and len(chosen):
            stop = chosen.stop if chosen.stop >= 0 else None
            rows = rows[(slice(None),) * axis + (slice(chosen.start, stop, chosen.step),)]
        else:
            rows = rows.take(np.asarray(chosen, dtype=np.int64), axis=axis)
    return rows
