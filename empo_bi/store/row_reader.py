"""Rows of an array, read a chunk at a time, usually from the first to the last."""

from __future__ import annotations

import zlib

import numpy as np

from empo_bi.store.zarr_files import ZarrFiles
from empo_bi.types import Array, Json


class RowReader:
    """Stretches of rows of one array, which is never in memory as a whole; the chunk that was used last is.

    Each chunk has a checksum of its own. That of the array is checked, too, if chunks are read one after the other.
    """

    def __init__(self, files: ZarrFiles, group: str, name: str, about: Json) -> None:
        """``about`` is what :meth:`ZarrFiles.write_array` returned."""
        self._files, self._group, self._name, self._about = files, group, name, about
        self._stored = files.described(group, name, about)
        self._at, self._last = -1, np.empty(0)
        # Others may have cut the array into other chunks.
        self._whole = None if self._stored.has_whole_rows else files.read_array(group, name, about)
        self._n_summed, self._crc32 = 0, 0  # chunks read one after the other from the first, and their checksum

    def rows(self, first: int, stop: int) -> Array:
        """Rows ``first`` to ``stop - 1``; fewer where the array ends."""
        if self._whole is not None:
            return self._whole[first:stop]
        n_rows, stop = self._stored.chunk_shape[0], min(stop, self._about["shape"][0])
        if first >= stop:
            return np.empty((0, *self._about["shape"][1:]), dtype=self._stored.dtype)
        chunks = range(first // n_rows, (stop - 1) // n_rows + 1)
        parts = [self._chunk(c)[max(0, first - c * n_rows) : stop - c * n_rows] for c in chunks]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _chunk(self, c: int) -> Array:
        if c != self._at:
            self._at, self._last = -1, np.empty(0)  # the old one goes before the new one comes
            n_rows = self._stored.chunk_shape[0]
            place = (c, *[0] * (len(self._stored.shape) - 1))
            found = self._files.chunk(self._stored, place, self._group, self._name, is_alone=self._stored.grid[0] > 1)
            self._at, self._last = c, found[: self._about["shape"][0] - c * n_rows]
            if c == self._n_summed:
                self._sum_up()
        return self._last

    def _sum_up(self) -> None:
        self._n_summed, self._crc32 = self._n_summed + 1, zlib.crc32(self._last.data.cast("B"), self._crc32)
        if self._n_summed == self._stored.grid[0] and f"{self._crc32:08x}" != self._about["crc32"]:
            raise self._files.differs(self._group, self._name)
