"""What was read of a store, in memory within a limit of bytes: what was used last stays, what comes next is read ahead."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


Key = TypeVar("Key", bound=Hashable)  # a level, or a level and an array's name
Piece = TypeVar("Piece", bound=Sized)  # a slice, or an array


class LevelCache(Generic[Key, Piece]):
    """Reads pieces of levels through ``read(t)`` and remembers at most ``limit`` bytes of them, the last used ones.

    A piece larger than the limit is passed through, unless the cache ``keeps_one`` whatever its size. Pieces that are read
    ahead count like all others. A limit of 0 remembers nothing. ``size_of(t)`` says how large a piece will be, so that
    others can go before it is read.
    """

    def __init__(
        self,
        read: Callable[[Key], Piece],
        limit: int,
        size_of: Callable[[Key], int] = lambda t: 0,
        *,
        keeps_one: bool = False,
    ) -> None:
        self._read, self._size_of, self.limit, self._keeps_one = read, size_of, limit, keeps_one
        self._kept: OrderedDict[Key, Piece] = OrderedDict()
        self._coming: dict[Key, Future[Piece]] = {}
        self._lock = threading.Lock()
        self._reader: ThreadPoolExecutor | None = None
        self.nbytes = 0

    def get(self, t: Key) -> Piece:
        with self._lock:
            if t in self._kept:
                self._kept.move_to_end(t)
                return self._kept[t]
            coming = self._coming.get(t)
        try:
            return self._fetch(t) if coming is None else coming.result()
        except CancelledError:  # by clear(), meanwhile
            return self._fetch(t)

    def _fetch(self, t: Key) -> Piece:
        try:
            expected = self._size_of(t)
            with self._lock:
                self._make_room(expected if expected <= self.limit else 0)
            piece = self._read(t)
            self.put(t, piece)
            return piece
        finally:
            with self._lock:
                self._coming.pop(t, None)

    def put(self, t: Key, piece: Piece) -> None:
        with self._lock:
            if t in self._kept or (piece.nbytes > self.limit and not self._keeps_one):
                return
            self._make_room(piece.nbytes)
            self._kept[t] = piece
            self.nbytes += piece.nbytes

    def kept(self, t: Key) -> Piece | None:
        """A piece if it is at hand, without reading anything."""
        with self._lock:
            return self._kept.get(t)

    def prefetch(self, levels: Iterable[Key]) -> None:
        """Start reading pieces in the background, one after the other; :meth:`get` waits for what is on its way."""
        if self.limit == 0:
            return
        with self._lock:
            if self._reader is None:
                self._reader = ThreadPoolExecutor(1, thread_name_prefix="empo_bi-read-ahead")
            for t in levels:
                if t not in self._kept and t not in self._coming:
                    self._coming[t] = self._reader.submit(self._fetch, t)

    def shrink(self, limit: int) -> None:
        """Remember at most so many bytes from now on."""
        with self._lock:
            self.limit = limit
            self._make_room(0)

    def _make_room(self, nbytes: int) -> None:
        while self._kept and self.nbytes + nbytes > self.limit:
            _, oldest = self._kept.popitem(last=False)
            self.nbytes -= oldest.nbytes

    def clear(self) -> None:
        """Give all memory back."""
        with self._lock:
            for future in self._coming.values():
                future.cancel()
            self._coming.clear()
            self._kept.clear()
            self.nbytes = 0

    def close(self) -> None:
        if self._reader is not None:
            self._reader.shutdown(wait=True, cancel_futures=True)
            self._reader = None
        self.clear()


def held_weakly(read: Callable[[Key], Piece]) -> Callable[[Key], Piece]:
    """A method for a cache of its owner's, which would keep its owner alive otherwise, and a temporary store with it."""
    method = weakref.WeakMethod(read)
    return lambda key: method()(key)  # type: ignore[misc]
