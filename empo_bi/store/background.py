"""Levels written by a thread of its own, one after the other, while the next ones are computed."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from empo_bi.errors import StoreError
from empo_bi.store.write_errors import reporting
from empo_bi.store.zarr_files import ZarrFiles
from empo_bi.types import Json


@dataclass(frozen=True)
class _Job:
    level: int
    nbytes: int
    marker: Future[Json]


class BackgroundWriter:
    """Writes levels in the order in which they are put. After one that fails, none is written any more.

    Errors show when levels are asked back, not before.
    """

    def __init__(self, files: ZarrFiles) -> None:
        self._files = files
        self._pool: ThreadPoolExecutor | None = None
        self._jobs: deque[_Job] = deque()
        self._has_failed = False

    def __len__(self) -> int:
        """Levels that were put and not asked back."""
        return len(self._jobs)

    @property
    def nbytes(self) -> int:
        """Of levels that wait, or are being written."""
        return sum(job.nbytes for job in self._jobs)

    def put(self, t: int, nbytes: int, write: Callable[[], Json], groups: tuple[str, ...], obsolete: str) -> None:
        """``write()`` returns the level's commit marker. If it fails, the ``groups`` that it may have begun are removed.

        ``obsolete`` is a group that nobody needs once the level is committed. Should it stay, the next start removes it.
        """
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="empo_bi-write")
        self._jobs.append(_Job(t, nbytes, self._pool.submit(self._write, t, write, groups, obsolete)))

    def _write(self, t: int, write: Callable[[], Json], groups: tuple[str, ...], obsolete: str) -> Json:
        with reporting(self._files.name, t):
            if self._has_failed:
                raise StoreError(f"{self._files.name}: level {t} was not written, since one before it could not be")
            try:
                marker = write()
            except Exception:
                self._has_failed = True
                for half_written in groups:
                    with contextlib.suppress(Exception):
                        self._files.delete(half_written)
                raise
            with contextlib.suppress(Exception):
                self._files.delete(obsolete)
            return marker

    def written(self, *, backlog: int = -1, through: int | None = None) -> Iterator[Json]:
        """Commit markers of levels that have been written.

        Waits until at most ``backlog`` bytes are left to be written; with ``through``, until that level is.
        """
        while self._jobs and (self._jobs[0].marker.done() or self._is_wanted(backlog, through)):
            try:
                marker = self._jobs.popleft().marker.result()
            except BaseException:
                for later in self._jobs:  # no level may be committed before those that come before it
                    later.marker.cancel()
                self._jobs.clear()
                raise
            yield marker

    def _is_wanted(self, backlog: int, through: int | None) -> bool:
        if through is not None:
            return any(job.level == through for job in self._jobs)
        return self.nbytes > backlog

    def stop(self) -> None:
        """End the thread, when it has written what it was given."""
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
