"""Levels of a DAG that is at hand, seen as those of a sub-problem that stops earlier: nothing is enumerated or copied."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np

from empo_bi.dag.levels import Levels
from empo_bi.dag.slices import BodySlice
from empo_bi.types import BoolArray, IndexArray


class StoppedLevels:
    """The same levels, except that some more states are terminal. What could be reached through them stays there."""

    def __init__(self, levels: Levels, stopped: list[BoolArray]) -> None:
        """``stopped`` has, for each level, (S,) where it stops."""
        self._levels, self._stopped = levels, stopped

    def __getattr__(self, name: str) -> object:
        return getattr(self._levels, name)

    def __len__(self) -> int:
        return len(self._levels)

    def __getitem__(self, t: int) -> BodySlice:
        return self._ended(t, self._levels[t])

    def __iter__(self) -> Iterator[BodySlice]:
        return (self._ended(t, piece) for t, piece in enumerate(self._levels))

    def part(self, t: int, names: Collection[str]) -> BodySlice:
        return self._ended(t, self._levels.part(t, names))

    def stretches(self, t: int, n_profiles: int, wanted: IndexArray | None = None) -> Iterator[BodySlice]:
        return (self._ended(t, piece) for piece in self._levels.stretches(t, n_profiles, wanted))

    def head(self, t: int) -> BodySlice:
        return self._ended(t, self._levels.head(t))

    def heads(self) -> Iterator[BodySlice]:
        return (self._ended(t, piece) for t, piece in enumerate(self._levels.heads()))

    def _ended(self, t: int, piece: BodySlice) -> BodySlice:
        if len(piece.members) != len(self._stopped[t]):  # it was not asked for
            return piece
        return replace(piece, ended=np.logical_or(piece.ended, self._stopped[t]))
