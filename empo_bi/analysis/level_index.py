"""How ``level`` is looked up along ``state``: by where levels begin, not by an index with an entry for every state.

Imported only where xarray is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index as as_integer
from typing import Any

import numpy as np
import xarray
from xarray.backends import BackendArray
from xarray.core import indexing
from xarray.core.indexing import IndexSelResult

from empo_bi.types import IndexArray


class LevelIndex(xarray.Index):
    """Stretches of states, each of one level; levels ascend.

    ``ds.sel(level=3)`` gives the states of a level, ``level=slice(2, 4)`` those of levels 2 to 4, the last one included as
    everywhere in xarray, ``level=[1, 3]`` those of some.
    """

    def __init__(self, level_L: IndexArray, start_L1: IndexArray) -> None:
        """Levels, and where each begins among the states, and all of them end."""
        self.level_L, self.start_L1 = level_L, start_L1

    def create_variables(self, variables: Mapping[Any, xarray.Variable] | None = None) -> dict[Any, xarray.Variable]:
        attributes = dict(variables["level"].attrs) if variables and "level" in variables else {}
        numbers = indexing.LazilyIndexedArray(_LevelNumbers(self.level_L, self.start_L1))
        return {"level": xarray.Variable(("state",), numbers, attributes)}

    def sel(self, labels: dict[Any, Any], method: Any = None, tolerance: Any = None) -> IndexSelResult:
        if method is not None or tolerance is not None:
            raise ValueError(f"levels are whole numbers: neither method={method!r} nor tolerance={tolerance!r} is of use")
        (wanted,) = labels.values()
        if isinstance(wanted, slice):
            first = 0 if wanted.start is None else as_integer(wanted.start)
            last = np.inf if wanted.stop is None else as_integer(wanted.stop)
            keep = (self.level_L >= first) & (self.level_L <= last)
            chosen = np.flatnonzero(keep)[:: wanted.step]
        else:
            asked = np.asarray(wanted)
            if asked.size and asked.dtype.kind not in "iu":
                raise KeyError(f"level={wanted!r}; give a whole number, a list of them, or a slice")
            if asked.ndim > 1:
                raise KeyError(f"level={wanted!r}; give one level, or a list of them")
            chosen = np.array([self._place_of(int(level)) for level in np.atleast_1d(asked)], dtype=np.int64)
        if len(chosen) == 0:
            return IndexSelResult({"state": slice(0, 0)})
        if (np.diff(chosen) == 1).all():
            return IndexSelResult({"state": slice(int(self.start_L1[chosen[0]]), int(self.start_L1[chosen[-1] + 1]))})
        stretches = [np.arange(self.start_L1[i], self.start_L1[i + 1]) for i in chosen]
        return IndexSelResult({"state": np.concatenate(stretches)})

    def _place_of(self, level: int) -> int:
        place = int(np.searchsorted(self.level_L, level))
        if place == len(self.level_L) or self.level_L[place] != level:
            known = self.level_L.tolist()
            there = "none" if not known else f"levels {known[0]} to {known[-1]}"
            if len(known) > 1 and len(known) <= known[-1] - known[0]:
                there = f"levels {', '.join(map(str, known[:10]))}" + (", ..." if len(known) > 10 else "")
            raise KeyError(f"level {level}: here are {there}")
        return place

    def isel(self, indexers: Mapping[Any, Any]) -> LevelIndex | None:
        """The index of what is left, None where levels do not ascend any more, or nothing is along ``state``."""
        chosen = indexers["state"]
        if isinstance(chosen, xarray.Variable):
            if chosen.dims != ("state",):
                return None
            chosen = chosen.values
        n = int(self.start_L1[-1])
        if isinstance(chosen, slice):
            numbers = range(n)[chosen]
            if numbers.step < 0:
                return None
            # How many of the numbers are before each level's begin.
            start_L1 = np.clip(-((numbers.start - self.start_L1) // numbers.step), 0, len(numbers))
        else:
            number_N = np.asarray(chosen)
            if number_N.ndim != 1:
                return None
            if number_N.dtype == bool:
                number_N = np.flatnonzero(number_N)
            place_N = np.searchsorted(self.start_L1, np.where(number_N < 0, number_N + n, number_N), side="right") - 1
            if (np.diff(place_N) < 0).any():
                return None
            start_L1 = np.searchsorted(place_N, np.arange(len(self.start_L1)))
        keep = np.flatnonzero(np.diff(start_L1))
        return LevelIndex(self.level_L[keep], np.append(start_L1[keep], start_L1[-1]))

    @classmethod
    def concat(cls, indexes: Sequence[Any], dim: Any, positions: Any = None) -> LevelIndex:
        """Stretches one after the other, as long as levels still ascend."""
        level_L = np.concatenate([index.level_L for index in indexes])
        if positions is not None or (np.diff(level_L) <= 0).any():
            raise ValueError(
                "levels would not ascend along state; put them in order, or give up the index: data.drop_indexes('level')"
            )
        length_L = np.concatenate([np.diff(index.start_L1) for index in indexes])
        return cls(level_L, np.concatenate([[0], length_L.cumsum()]))

    def equals(self, other: xarray.Index, **_: Any) -> bool:
        return (
            isinstance(other, LevelIndex)
            and np.array_equal(self.level_L, other.level_L)
            and np.array_equal(self.start_L1, other.start_L1)
        )

    def join(self, other: Any, how: Any = "inner") -> LevelIndex:
        raise ValueError("states of different levels have nothing in common: select the same levels on both sides")

    def reindex_like(self, other: Any) -> dict[Any, Any]:
        raise ValueError("states of different levels have nothing in common: select the same levels on both sides")

    def __repr__(self) -> str:
        return f"LevelIndex({len(self.level_L)} levels, {int(self.start_L1[-1]):,} states)"

    def _repr_inline_(self, max_width: int) -> str:
        return repr(self)[:max_width]


class _LevelNumbers(BackendArray):
    """The level of each state, counted when it is asked for."""

    def __init__(self, level_L: IndexArray, start_L1: IndexArray) -> None:
        self._level_L, self._start_L1 = level_L, start_L1
        self.shape, self.dtype = (int(start_L1[-1]),), np.dtype(np.int32)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        if isinstance(key, indexing.BasicIndexer | indexing.OuterIndexer):
            return self._read(key.tuple)
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        (one,) = key
        if isinstance(one, slice) and (one.step is None or one.step == 1):
            first, last, _ = one.indices(self.shape[0])
            bounds = np.clip(self._start_L1, first, max(first, last))
            return np.repeat(self._level_L, bounds[1:] - bounds[:-1]).astype(self.dtype)
        number_N = np.arange(self.shape[0])[one] if isinstance(one, slice) else np.asarray(one)
        number_N = np.where(number_N < 0, number_N + self.shape[0], number_N)
        return self._level_L[np.searchsorted(self._start_L1, number_N, side="right") - 1].astype(self.dtype)
