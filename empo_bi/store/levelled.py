"""Levels of named arrays in a zarr v3 store, committed one by one, so that a killed writer can continue.

A store has a manifest at its root, and a group for each level. A level is written in three strokes: its arrays, then what is
needed to continue after it (the frontier of a DAG, the carry of a solution), then its commit marker, the attributes of its
group. Whatever has no marker does not count and is removed when the store is continued, which then ends with the same bytes.
docs/format.md describes the files.
"""

from __future__ import annotations

import contextlib
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Self, TypeVar

from zarr.abc.store import Store

from empo_bi.errors import DamagedStoreError, StoreError, StoreMismatchError, StoreNotFoundError, StoreVersionError
from empo_bi.store.background import BackgroundWriter
from empo_bi.store.cache import LevelCache
from empo_bi.store.compression import Compression
from empo_bi.store.format_names import FINISHED, ROOT, StoreKind, level_name
from empo_bi.store.location import Place, bytes_by_array, nbytes_of
from empo_bi.store.manifest import read_manifest, refuse_strangers
from empo_bi.store.write_errors import reporting
from empo_bi.store.zarr_files import ZarrFiles
from empo_bi.types import Json

AnyStore = TypeVar("AnyStore", bound="LevelledStore")
Make = Callable[[Place, Store, Json], AnyStore]  # a store object for what is, or will be, at a place


class LevelledStore(ABC):
    """A manifest and levels, for reading, or for writing by one process at a time.

    Writing happens in the background, in order, so that the next levels can be computed meanwhile; a few megabytes may wait:
    small levels take longer to write than to compute.

    A subclass says which arrays a level has, which rules they obey, and in which direction levels follow each other.
    """

    kind: ClassVar[StoreKind]
    direction: ClassVar[int]  # from a level to the one that is committed after it: +1 or -1
    first_level: int  # the one that is committed first
    _cache: LevelCache[Any, Any]

    def __init__(
        self, place: Place, store: Store, manifest: Json, *, compression: Compression | None, backlog_bytes: int
    ) -> None:
        """``compression`` may be None for a store that is only read."""
        self.place, self.manifest, self._compression = place, manifest, compression
        self._files = ZarrFiles(place.name, store, self.kind.remedy).bind(manifest)
        self._markers: list[Json] = []  # in the order in which levels were committed
        self.is_finished = False
        self._writer, self.backlog_bytes = BackgroundWriter(self._files), backlog_bytes
        self._is_closed, self._is_writing = False, False
        # A temporary store goes when nobody uses it any more, at the latest when the process ends.
        self._cleanup = weakref.finalize(self, place.remove) if place.is_temporary else None

    # --- what a kind of store adds ------------------------------------------------------------------------------------

    @staticmethod
    @abstractmethod
    def check_manifest(manifest: Json) -> None:
        """Raise :class:`FormatError` for what is not a manifest of this kind."""

    @abstractmethod
    def check_content(self, asked: Json) -> None:
        """Complain if the store holds something else than what a manifest asks for."""

    @abstractmethod
    def _find_levels(self, *, mends: bool) -> None:
        """Set :attr:`_markers` and :attr:`is_finished`, checked; who ``mends`` will write the record of the end anew."""

    @abstractmethod
    def _read_resume_point(self) -> object:
        """What is needed to continue after the last level."""

    @abstractmethod
    def _write_end(self) -> None:
        """Record that the last level is there, where its number does not tell."""

    @abstractmethod
    def _committed(self, marker: Json) -> None:
        """Take note of a level that has been committed."""

    # --- opening ------------------------------------------------------------------------------------------------------

    @classmethod
    def _opened(cls, place: Place, make: Make[Self], *, mends: bool = False) -> Self:
        """An existing store, finished or not, for reading; who ``mends`` takes one whose end is damaged for unfinished."""
        store = place.for_reading()
        try:
            found = make(place, store, cls._manifest_in(place, store))
            found._find_levels(mends=mends and not place.reads_zip_file)
            return found
        except (StoreNotFoundError, DamagedStoreError) as error:
            if place.zip_file is not None and not place.reads_zip_file and place.zip_file.exists():
                return cls._opened(place, make)  # it has been packed meanwhile
            if isinstance(error, StoreNotFoundError) and place.is_begun:  # or is being removed, to be made anew
                raise StoreNotFoundError(f"{place.name}: is not finished; run the same command again to continue") from None
            raise

    @classmethod
    def _manifest_in(cls, place: Place, store: Store) -> Json:
        return read_manifest(ZarrFiles(place.name, store, cls.kind.remedy), cls.kind, cls.check_manifest)

    @classmethod
    def _opened_or_created(cls, place: Place, manifest: Json, make: Make[Self], *, overwrite: bool) -> Self:
        """A store with the content that ``manifest`` describes: finished, for reading; to be continued; or new."""
        with reporting(place.name):
            if (found := cls._complete(place, manifest, make, overwrite)) is not None:
                found.tidy()
                return found
            store = place.for_writing()
            try:
                if place.zip_file is not None and (found := cls._complete(place, manifest, make, overwrite)) is not None:
                    place.release()  # another process was quicker, and has packed it
                    found.tidy()
                    return found
                return cls._written(place, store, manifest, make, overwrite)
            except BaseException:
                place.abandon()
                raise

    @classmethod
    def _complete(cls, place: Place, manifest: Json, make: Make[Self], overwrite: bool) -> Self | None:
        """What is there, if it is complete and the right thing; this needs neither lock nor permission to write."""
        if not place.exists:
            return None
        try:
            found = cls._opened(place, make, mends=True)
        except StoreNotFoundError:
            if place.reads_zip_file:
                raise StoreMismatchError(
                    f"{place.name}: is a zip file without a {cls.kind.noun}; use another name"
                ) from None
            return None
        except (StoreMismatchError, DamagedStoreError) as error:
            may_be_anybodys = place.reads_zip_file and not isinstance(error, StoreVersionError)
            if not overwrite or may_be_anybodys:
                raise
            return None
        if overwrite:
            return None
        found.check_content(manifest)
        is_complete = found.is_finished and (place.zip_file is None or place.reads_zip_file)
        return found if is_complete else None

    @classmethod
    def _written(cls, place: Place, store: Store, manifest: Json, make: Make[Self], overwrite: bool) -> Self:
        """Under the lock: what is there, to be continued, or a new store."""
        found = None
        if not overwrite:
            with contextlib.suppress(StoreNotFoundError):
                found = cls._manifest_in(place, store)
        made = make(place, store, manifest if found is None else found)
        made._is_writing = True
        if found is None:
            made._begin()
        else:
            made._continue(manifest)
        return made

    def _begin(self) -> None:
        names = self._files.names()
        refuse_strangers(self.place.name, self.kind, names)
        if names and not self._files.can_delete:
            raise StoreMismatchError(
                f"{self.place.name}: is not empty, and this kind of store cannot delete entries; use an empty one"
            )
        self._delete_all(names)
        self._files.write_record(ROOT, self.manifest)

    def _delete_all(self, names: Iterable[str]) -> None:
        """What says that the store is complete goes first, so that a kill leaves nothing that looks so."""
        for name in sorted(names, key=lambda name: (name != "zarr.json", name != FINISHED)):
            self._files.delete(name)

    def _continue(self, asked: Json) -> None:
        """Find what is there, and remove what was not committed."""
        self._find_levels(mends=True)
        self.check_content(asked)
        if self.is_finished:
            self._pack()
            self._stop_writing()
            self.tidy()
            return
        if not self.kind.has_guests:
            refuse_strangers(self.place.name, self.kind, self._files.names())
        if len(self):
            self._read_resume_point()  # if that is damaged, nothing is touched
        for name in self._leftovers():
            self._files.delete(name)

    def _leftovers(self) -> list[str]:
        """What a killed writer left, and nobody needs."""
        keep = {"zarr.json", FINISHED, *(level_name(self._level(n)) for n in range(len(self)))}
        if not self.is_finished:
            keep = keep - {FINISHED} | {self.kind.resume_name(self._level(len(self) - 1))}
        return [name for name in self._files.names() if name not in keep and self.kind.is_our_name(name)]

    def tidy(self) -> None:
        """Remove what the maker of a finished store left when it was killed."""
        with contextlib.suppress(OSError, NotImplementedError):  # it cannot be listed, is read-only, or is being made anew
            if not self.place.reads_zip_file and self._leftovers():
                files = ZarrFiles(self.place.name, self.place.for_writing(), self.kind.remedy)
                is_whole = set(files.names()).issuperset(level_name(self._level(n)) for n in range(len(self)))
                for name in self._leftovers() if is_whole else ():  # or somebody has begun anew meanwhile
                    files.delete(name)
        self.place.release()
        self.place.tidy()

    def _read_markers(self, levels: Iterable[int]) -> Iterator[Json]:
        """Commit markers of levels, up to the first that has none."""
        for t in levels:
            marker = self._files.read_record(level_name(t))
            if marker is None:
                return
            yield marker

    # --- levels -------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """Levels that were put, committed or on their way there."""
        return len(self._markers) + len(self._writer)

    def _level(self, n: int) -> int:
        """The level that is committed after ``n`` others."""
        return self.first_level + self.direction * n

    def _marker(self, t: int) -> Json:
        """The commit marker of a level."""
        n = (t - self.first_level) * self.direction
        if not 0 <= n < len(self._markers):
            raise StoreError(f"{self.place.name}: level {t} is not there; run the same command again to continue")
        return self._markers[n]

    @property
    def next_level(self) -> int:
        """The level to be put next."""
        return self._level(len(self))

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self.place.name}: {self.kind.closed}")

    def _check_readable(self) -> None:
        """Complain if the store was closed, and wait until everything that was put is committed."""
        self._check_open()
        self._collect()

    def _check_turn(self, t: int) -> None:
        """Complain of a level that is not the next one, or that comes after the end."""
        self._check_open()
        if self.is_finished or t != self.next_level:
            comes = "nothing, it is finished" if self.is_finished else f"level {self.next_level}"
            raise ValueError(f"{self.place.name}: level {t} is out of order; expected {comes}")

    def _put(self, t: int, nbytes: int, write: Callable[[], Json]) -> None:
        """Write a level in the background. An error shows here or later, at the next call."""
        ahead, obsolete = self.kind.resume_name(t), self.kind.resume_name(t - self.direction)
        self._writer.put(t, nbytes, write, groups=(level_name(t), ahead), obsolete=obsolete)

    def _collect(self, *, backlog: int = -1, through: int | None = None) -> None:
        """Take note of levels that were committed; wait for all of them, or as :meth:`BackgroundWriter.written` says."""
        try:
            for marker in self._writer.written(backlog=backlog, through=through):
                self._markers.append(marker)
                self._committed(marker)
        except BaseException:
            self._cache.clear()  # of what was not written
            raise

    # --- the end ------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Wait until everything is safe, and let others write."""
        self._collect()
        if not self.is_finished:
            with reporting(self.place.name):
                self._write_end()
                self._pack()
                self.is_finished = True
        self._stop_writing()

    def _pack(self) -> None:
        if self.place.zip_file is not None:
            self.place.pack()
            self._files = ZarrFiles(self.place.name, self.place.for_reading(), self.kind.remedy).bind(self.manifest)

    def close(self) -> None:
        """Give back memory and lock. What was committed stays, except that a temporary store is removed."""
        with contextlib.suppress(Exception):  # an error in writing was raised, or is less than the one that led here
            self._collect()
        self._is_closed = True
        self._stop_writing()
        self._cache.close()
        if self.place.reads_zip_file:
            self._files.close()
        if self._cleanup is not None:
            self._cleanup()

    def remove(self) -> None:
        """Close, and leave nothing behind of what was being written."""
        if self._is_writing:
            with contextlib.suppress(Exception):
                self._collect()
            self._delete_all(self._files.names())
            if self.place.folder is not None:
                with contextlib.suppress(OSError):
                    self.place.folder.rmdir()
        self.close()  # the lock goes last: as long as it is there, everybody knows that nothing is finished

    def _stop_writing(self) -> None:
        self._writer.stop()
        self._is_writing = False
        if not self.place.is_temporary:
            self.place.release()

    # --- what there is ------------------------------------------------------------------------------------------------

    def damaged(self, problem: object) -> Exception:
        return self._files.damaged(problem)

    @contextlib.contextmanager
    def _noting(self, problems: list[str]) -> Iterator[None]:
        """Add damage to a list, which needs no remedy for each."""
        try:
            yield
        except DamagedStoreError as error:
            problems.append(str(error).removesuffix(f" {self.kind.remedy}"))

    def n_arrays_of(self, t: int) -> int:
        return len(self._marker(t)["arrays"])

    def compressed_bytes(self) -> dict[str, int] | None:
        return bytes_by_array(self.place)

    def describe(self) -> str:
        nbytes = nbytes_of(self.place)
        size = "" if nbytes is None else f"{nbytes / 1e6:.1f} MB "
        return f"{size}in {'a temporary folder' if self.place.is_temporary else self.place.name}"
