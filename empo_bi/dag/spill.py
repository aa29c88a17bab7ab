"""Blocks of a level's transitions until the level ends: in memory, and beyond a limit in a nameless temporary file.

In which types the transitions of a level are stored, and what of them is trivial, is known only when the level ends. Until
then they may be many times larger than all that is known of its states, so they must not wait in memory.
"""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numcodecs.blosc
import numpy as np

from empo_bi.types import Array


@dataclass(frozen=True)
class BlockArray:
    """An array that comes in blocks of whole rows, one after the other, because it may be larger than memory.

    Attributes
    ----------
    blocks : yields the blocks, in order, each time it is called
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Callable[[], Iterable[Array]]

    @classmethod
    def of(cls, array: Array | BlockArray) -> BlockArray:
        """An ordinary array as one block."""
        return array if isinstance(array, BlockArray) else cls(array.shape, array.dtype, lambda: [array])

    def __len__(self) -> int:
        return self.shape[0]


@dataclass(frozen=True)
class SpillLimit:
    """How many bytes of a level's transitions may wait in memory, and the folder of the file for those beyond."""

    nbytes: int
    folder: Path


@dataclass(frozen=True)
class _Stored:
    """Where an array is in the file."""

    offset: int
    length: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class BlockSpool:
    """A list of blocks, each of several arrays (or None), that moves to a file when it outgrows its limit."""

    def __init__(self, limit: SpillLimit | None = None) -> None:
        """Without a limit everything stays in memory."""
        self._limit = limit
        self._in_memory: list[tuple[Array | None, ...]] = []
        self._in_file: list[tuple[_Stored | None, ...]] = []
        self._file: Any = None
        self._lock = threading.Lock()  # one thread may read a level while another one writes
        self.nbytes = 0  # in memory

    @property
    def is_spilled(self) -> bool:
        return self._file is not None

    def append(self, *arrays: Array | None) -> None:
        self._in_memory.append(arrays)
        self.nbytes += sum(array.nbytes for array in arrays if array is not None)
        if self.is_spilled or (self._limit is not None and self.nbytes > self._limit.nbytes):
            self.spill()

    def spill(self) -> bool:
        """Move what is in memory to the file. Returns False if there is no place for one."""
        if self._limit is None:
            return False
        if self._file is None:
            # Nameless where the system can, so that a killed process leaves nothing behind.
            # Elsewhere its name is one of those that are removed when a run is continued.
            suffix = f".{os.urandom(16).hex()}.partial"
            self._file = tempfile.TemporaryFile(dir=self._limit.folder, prefix="spill", suffix=suffix)  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        for arrays in self._in_memory:
            self._in_file.append(tuple(None if array is None else self._write(array) for array in arrays))
        self._in_memory, self.nbytes = [], 0
        return True

    def _write(self, array: Array) -> _Stored:
        # Compressed in passing: lz4 takes a small part of the time of expanding, and a quarter of the disk.
        data = numcodecs.blosc.compress(np.ascontiguousarray(array), b"lz4", 1, numcodecs.blosc.SHUFFLE)
        with self._lock:
            offset = self._file.seek(0, 2)
            self._file.write(data)
        return _Stored(offset, len(data), array.shape, array.dtype)

    def _read(self, stored: _Stored) -> Array:
        if 0 in stored.shape:  # of which Blosc makes nothing
            return np.empty(stored.shape, stored.dtype)
        with self._lock:
            self._file.seek(stored.offset)
            data = self._file.read(stored.length)
        return np.frombuffer(numcodecs.blosc.decompress(data), dtype=stored.dtype).reshape(stored.shape)

    def column(self, i: int) -> Iterator[Array | None]:
        """The i-th array of each block, in the order in which blocks came."""
        for block in self._in_file:
            found = block[i]
            yield None if found is None else self._read(found)
        for arrays in self._in_memory:
            yield arrays[i]

    def pop_column(self, i: int) -> list[Any]:
        """The same as a list, from memory only; the spool forgets these arrays, so that they go when the list does."""
        found = [arrays[i] for arrays in self._in_memory]
        self._in_memory = [(*arrays[:i], None, *arrays[i + 1 :]) for arrays in self._in_memory]
        return found
