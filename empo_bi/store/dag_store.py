"""Levels in a zarr v3 store: one group a level, committed one by one. docs/format.md describes it.

A level is written in three strokes: its arrays, then the *frontier* (what is known of levels to come), then its commit
marker, the attributes of its group. Whatever has no marker does not count and is removed when the run is continued.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from zarr.abc.store import Store

from empo_bi.dag.followers import Followers
from empo_bi.dag.levels import LevelSizes
from empo_bi.dag.slices import Bodies, BodySlice, IndexArray
from empo_bi.errors import (
    DamagedStoreError,
    StoreError,
    StoreMismatchError,
    StoreNotFoundError,
    StoreVersionError,
)
from empo_bi.memory.budget import CACHE_BYTES, SLICE_BACKLOG, STRETCH_BYTES
from empo_bi.runtime.wording import short_repr
from empo_bi.store import codec
from empo_bi.store.background import BackgroundWriter
from empo_bi.store.cache import SliceCache
from empo_bi.store.dag_manifest import END_IS_MISSING, UNFINISHED, check_content, read_end, read_manifest
from empo_bi.store.json_states import JsonStates
from empo_bi.store.layout import (
    BODY_ARRAYS,
    FINISHED,
    HEAD_ARRAYS,
    ROOT,
    TRANSITIONS,
    frontier_name,
    is_our_name,
    level_name,
    spoken,
)
from empo_bi.store.level_sizes import nbytes_when_read, sizes_of
from empo_bi.store.location import Place, bytes_by_array, nbytes_of
from empo_bi.store.records import Unfit
from empo_bi.store.reporting import reporting
from empo_bi.store.slice_guard import SliceGuard
from empo_bi.store.stretches import read_stretches
from empo_bi.store.zarr_files import REMEDY, Compression, Json, ZarrFiles


class DagStore:
    """Levels of a DAG in a zarr store, for reading, or for writing by one process at a time.

    Writing happens in the background, in order, so that the next levels can be expanded meanwhile; a few megabytes may wait:
    small levels take longer to write than to expand.
    """

    def __init__(
        self,
        place: Place,
        store: Store,
        manifest: Json,
        states: JsonStates | None,
        *,
        compression: Compression | None = None,
        cache_bytes: int = CACHE_BYTES,
        backlog_bytes: int = SLICE_BACKLOG,
    ) -> None:
        """``states`` translates the states of Python worlds; ``compression`` is None for a store that is only read."""
        self.place, self.manifest = place, manifest
        self._files, self._states, self._compression = ZarrFiles(place.name, store), states, compression
        self.guard = SliceGuard(self._files, manifest, has_states=states is not None)
        self._markers: list[Json] = []
        self.sizes: list[LevelSizes] = []
        self.is_finished = False
        self._is_closed = False
        read = weakref.WeakMethod(self._read)  # or the cache would keep its owner, and a temporary store, alive
        sizes = self.sizes
        self._cache = SliceCache(lambda t: read()(t), cache_bytes, lambda t: sizes[t].nbytes)  # type: ignore[misc]
        self._kept_states: dict[int, Sequence[Any]] = {}  # of Python worlds, where they are not written
        self._writer, self._backlog_bytes = BackgroundWriter(self._files), backlog_bytes
        # A temporary store goes when nobody uses it any more, at the latest when the process ends.
        self._cleanup = weakref.finalize(self, place.remove) if place.is_temporary else None

    # --- opening ------------------------------------------------------------------------------------------------------

    @classmethod
    def open(
        cls, place: Place, states: JsonStates | None = None, *, cache_bytes: int = CACHE_BYTES, mends: bool = False
    ) -> DagStore:
        """An existing store, finished or not, for reading; who ``mends`` takes one whose end is damaged for unfinished."""
        store = place.for_reading()
        try:
            levels = cls(place, store, read_manifest(ZarrFiles(place.name, store)), states, cache_bytes=cache_bytes)
            levels._find_levels(mends=mends and not place.reads_zip_file)
            return levels
        except (StoreNotFoundError, DamagedStoreError):
            if place.zip_file is None or place.reads_zip_file or not place.zip_file.exists():
                raise
            return cls.open(place, states, cache_bytes=cache_bytes)  # it has been packed meanwhile

    @classmethod
    def open_or_create(
        cls,
        place: Place,
        manifest: Json,
        states: JsonStates | None,
        *,
        compression: Compression,
        overwrite: bool = False,
        cache_bytes: int = CACHE_BYTES,
        backlog_bytes: int = SLICE_BACKLOG,
    ) -> DagStore:
        """A store with the content that ``manifest`` tells: a finished one for reading, one to continue, or a new one.

        Raises
        ------
        StoreMismatchError
            If something else is there.
        """

        def finished() -> DagStore | None:
            """What is there, if it is complete and the right thing; this needs neither lock nor permission to write."""
            if not place.exists:
                return None
            try:
                levels = cls.open(place, states, cache_bytes=cache_bytes, mends=True)
            except StoreNotFoundError:
                if place.reads_zip_file:
                    raise StoreMismatchError(f"{place.name}: is a zip file, but no slice store; use another name") from None
                return None
            except StoreVersionError:
                if not overwrite:
                    raise
                return None
            except (StoreMismatchError, DamagedStoreError):
                if not overwrite or place.reads_zip_file:  # it may be anybody's
                    raise
                return None
            if overwrite:
                return None
            check_content(place.name, manifest, levels.manifest, is_finished=levels.is_finished)
            is_complete = levels.is_finished and (place.zip_file is None or place.reads_zip_file)
            return levels if is_complete else None

        with reporting(place.name):
            if (found := finished()) is not None:
                place.tidy()
                return found
            store = place.for_writing()
            try:
                if (found := finished()) is not None:  # another process was quicker
                    place.release()
                    place.tidy()
                    return found
                levels = cls(
                    place, store, manifest, states,
                    compression=compression, cache_bytes=cache_bytes, backlog_bytes=backlog_bytes,
                )  # fmt: skip
                levels._prepare(overwrite)
                return levels
            except BaseException:
                place.abandon()
                raise

    def _prepare(self, overwrite: bool) -> None:
        """Under the lock: begin anew, or find what is there and remove what was not committed."""
        found = None
        try:
            found = read_manifest(self._files)
        except StoreNotFoundError:
            self._refuse_strangers()
        except (StoreMismatchError, DamagedStoreError):
            if not overwrite:
                raise
        if found is None or overwrite:
            self._begin()
            return
        self._find_levels(mends=True)
        check_content(self.place.name, self.manifest, found, is_finished=self.is_finished)
        self.manifest = found
        if self.is_finished:
            self._pack()
            self.place.release()
            return
        if len(self):
            self.frontier()  # if that is damaged, nothing is touched
        keep = {"zarr.json", *(level_name(t) for t in range(len(self))), frontier_name(len(self) - 1)}
        for name in self._files.names():
            if name not in keep and is_our_name(name):
                self._files.delete(name)

    def _begin(self) -> None:
        self._refuse_strangers()
        names = self._files.names()
        if names and not self._files.can_delete:
            raise StoreMismatchError(f"{self.place.name}: is not empty, and this kind of store cannot forget; use a new one")
        # What says that the store is complete goes first, so that a kill leaves nothing that looks so.
        for name in sorted(names, key=lambda name: (name != "zarr.json", name != FINISHED)):
            self._files.delete(name)
        self._files.write_record(ROOT, self.manifest)

    def restart(self) -> None:
        """Forget all levels."""
        self._markers.clear()
        self.sizes.clear()
        self._cache.clear()
        self._begin()

    def _refuse_strangers(self) -> None:
        """Never write among, or over, what is not ours."""
        strangers = sorted(name for name in self._files.names() if not is_our_name(name))
        if strangers:
            raise StoreMismatchError(
                f"{self.place.name}: is no slice store, it has {short_repr(strangers[:5])}; choose an empty or new place"
            )

    def _find_levels(self, *, mends: bool = False) -> None:
        """Which levels there are. Who ``mends`` writes the record of the end anew, so it may be damaged."""
        found = read_end(self._files, mends=mends)
        if found is not None:
            self._markers, self.is_finished = found, True
        else:
            while (marker := self._files.read_record(level_name(len(self._markers)))) is not None:
                self._markers.append(marker)
        self.guard.check_levels(self._markers, is_finished=self.is_finished)
        self.sizes[:] = map(sizes_of, self._markers)

    @property
    def why_unfinished(self) -> str:
        """What to do about a store without an end: a run that was killed, or a record that was deleted."""
        if self._markers and self._markers[-1]["frontier"] == 0 and self.manifest["content"]["levels"] != "derived":
            return END_IS_MISSING
        return UNFINISHED

    # --- reading ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._markers) + len(self._writer)

    def __getitem__(self, t: int) -> BodySlice:
        self._check_open()
        self._wait()
        return self._cache.get(range(len(self))[t])

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"{self.place.name}: this DAG was closed; open it again, or enumerate it anew")

    def __iter__(self) -> Iterator[BodySlice]:
        return (self[t] for t in range(len(self)))

    def part(self, t: int, names: Collection[str]) -> BodySlice:
        self._check_open()
        self._wait()
        t = range(len(self))[t]
        at_hand = self._cache.kept(t)
        if at_hand is None and self._is_held_whole(t):
            at_hand = self._cache.get(t)
        return self._read(t, self._present(t, names)) if at_hand is None else at_hand

    def _present(self, t: int, names: Collection[str]) -> list[str]:
        """Those of the arrays that there are, and which bodies they are about."""
        return [name for name in self._markers[t]["arrays"] if name in names or name in BODY_ARRAYS]

    def _is_held_whole(self, t: int) -> bool:
        """Whether a slice is small enough to be read whole, and remembered beside another one."""
        return self.sizes[t].nbytes <= max(STRETCH_BYTES, self._cache.limit // 2)

    def stretches(self, t: int, n_profiles: int, wanted: IndexArray | None = None) -> Iterator[BodySlice]:
        self._check_open()
        self._wait()
        t = range(len(self))[t]
        if self._is_held_whole(t):
            yield self._cache.get(t)
            return
        yield from self._stretches(t, n_profiles, wanted)

    def _stretches(self, t: int, n_profiles: int, wanted: IndexArray | None = None) -> Iterator[BodySlice]:
        head = self._read(t, self._present(t, BODY_ARRAYS))
        for piece in read_stretches(self._files, self.guard, self._markers[t], head, n_profiles, STRETCH_BYTES, wanted):
            self._check_place(t, piece)
            yield piece

    def _check_place(self, t: int, piece: BodySlice) -> None:
        self.guard.check_place(t, piece, self._markers, self._bodies_of, is_finished=self.is_finished)

    def head(self, t: int) -> BodySlice:
        self._check_open()
        self._wait()
        return self._read(t, self._present(t, HEAD_ARRAYS))

    def heads(self) -> Iterator[BodySlice]:
        return (self.head(t) for t in range(len(self)))

    def members(self, t: int) -> Bodies:
        self._check_open()
        self._wait()
        marker = self._markers[t]
        if isinstance(marker["members"], list):
            return range(*marker["members"])
        return self.part(t, BODY_ARRAYS).members

    def prefetch(self, levels: Iterable[int]) -> None:
        """Read slices ahead, as many as fill half the cache."""
        self._check_open()
        wanted, nbytes = [], 0
        for t in levels:
            nbytes += self.sizes[t].nbytes
            if nbytes > self._cache.limit // 2:
                break
            wanted.append(t)
        self._cache.prefetch(wanted)

    def give_back(self, cache_bytes: int = 0) -> None:
        self._cache.shrink(cache_bytes)

    @property
    def cached_bytes(self) -> int:
        return self._cache.nbytes

    def _read(self, t: int, names: list[str] | None = None) -> BodySlice:
        piece = self._read_slice(level_name(t), self._markers[t], names)
        self._check_place(t, piece)
        return replace(piece, states=self._kept_states[t]) if t in self._kept_states else piece

    def _bodies_of(self, t: int) -> BodySlice:
        """A slice with nothing but the numbers of its bodies."""
        return self._read_slice(level_name(t), self._markers[t], self._present(t, BODY_ARRAYS))

    def _read_slice(self, group: str, marker: Json, names: list[str] | None = None) -> BodySlice:
        """``marker`` has been checked."""
        wanted = list(marker["arrays"]) if names is None else names
        return self._slice_of(
            group, marker, self._files.read_arrays(group, {name: marker["arrays"][name] for name in wanted})
        )

    def _slice_of(self, group: str, marker: Json, arrays: codec.Arrays) -> BodySlice:
        self.guard.check_arrays(group, marker, arrays, self._markers)
        try:
            piece = codec.from_arrays(marker, arrays, self._states)
        except Unfit as error:
            raise self.damaged(f"{spoken(group)}, array 'states': {error}") from error
        self.guard.check_piece(group, piece)
        return piece

    def followers(self, t: int) -> Followers | None:
        return self.guard.followers(t, self._markers, self.members, is_finished=self.is_finished)

    def damaged(self, problem: str) -> Exception:
        return self._files.damaged(problem)

    def n_arrays_of(self, t: int) -> int:
        return len(self._markers[t]["arrays"])

    def problems_of(self, t: int) -> list[str]:
        """Check the commit marker and every array of a level: what is wrong with them."""
        marker, problems = self._markers[t], []
        try:
            if self._files.read_record(level_name(t)) != marker:
                problems.append(f"{self.place.name}: level {t}: its commit marker is missing or differs")
        except DamagedStoreError as error:
            problems.append(str(error))
        is_whole = self._is_held_whole(t)
        arrays = {}
        for name, about in marker["arrays"].items():
            try:
                if is_whole or name not in TRANSITIONS:
                    arrays[name] = self._files.read_array(level_name(t), name, about)
            except DamagedStoreError as error:
                problems.append(str(error))
        try:
            if not problems:
                piece = self._slice_of(level_name(t), marker, arrays)
                self._check_place(t, piece)
                for _ in () if is_whole else self._stretches(t, self.manifest["n_profiles"]):
                    pass
        except DamagedStoreError as error:
            problems.append(str(error))
        return [problem.removesuffix(f" {REMEDY}") for problem in problems]

    # --- writing ------------------------------------------------------------------------------------------------------

    def frontier(self) -> list[BodySlice]:
        """What the last committed level knew of those to come."""
        pieces = []
        for i in range(self._markers[-1]["frontier"]):
            group = f"{frontier_name(len(self) - 1)}/{i}"
            marker = self._files.read_record(group)
            if marker is None:
                missing = f"group {group} is missing"
                if level_name(len(self)) in self._files.names():  # it may have been committed
                    missing += f", and level {len(self)} has no commit marker (the attributes of its zarr.json)"
                raise self.damaged(missing)
            self.guard.check_frontier(group, marker)
            pieces.append(self._read_slice(group, marker))
        if self.manifest["content"]["levels"] != "derived":  # which has none, and begins anew
            self.guard.check_whole_frontier(pieces, self._markers[-1], sum(sizes.n_bodies for sizes in self.sizes))
        return pieces

    def append(self, piece: BodySlice, frontier: Callable[[], list[BodySlice]]) -> None:
        """Write a level in the background. An error shows here or later, at the next call."""
        self._collect(self._backlog_bytes)
        t = len(self)
        if self._states is None and piece.states is not None:
            self._kept_states[t] = piece.states
        write = partial(self._write_level, t, piece, frontier())
        self._writer.put(t, piece.nbytes, write, groups=(level_name(t), frontier_name(t)), obsolete=frontier_name(t - 1))
        if piece.spilled is None:
            self._cache.put(t, piece)

    def _wait(self) -> None:
        """Until what was appended is committed."""
        self._collect(-1)

    def _collect(self, backlog: int) -> None:
        """Take note of levels that were committed, and wait until at most so many bytes are left to be written."""
        try:
            for marker in self._writer.written(backlog=backlog):
                self._markers.append(marker)
                self.sizes.append(sizes_of(marker))
        except BaseException:
            self._cache.clear()  # of what was not written
            raise

    def _write_level(self, t: int, piece: BodySlice, frontier: list[BodySlice]) -> Json:
        marker = {"level": t, **self._write_arrays(level_name(t), piece), "frontier": len(frontier)}
        for i, ahead in enumerate(frontier):
            group = f"{frontier_name(t)}/{i}"
            self._files.write_record(group, self._write_arrays(group, ahead))
        self._files.write_record(level_name(t), marker)
        return marker

    def _write_arrays(self, group: str, piece: BodySlice) -> Json:
        """Write the arrays of a slice. Returns what its commit marker says."""
        assert self._compression is not None
        fields, arrays = codec.to_arrays(piece, self._states)
        about = {
            name: self._files.write_array(group, name, array, codec.dimensions_of(name, fields), self._compression)
            for name, array in arrays.items()
        }
        return {**fields, "arrays": about}

    def finish(self) -> None:
        self._wait()
        with reporting(self.place.name):
            self._files.delete(frontier_name(len(self) - 1))
            self._files.write_record(FINISHED, {"levels": self._markers})
            self._pack()
            self.is_finished = True
        self._stop_writing()

    def _pack(self) -> None:
        if self.place.zip_file is not None:
            self.place.pack()
            self._files = ZarrFiles(self.place.name, self.place.for_reading())

    def close(self) -> None:
        """Give back memory and lock. What was committed stays, except that a temporary store is removed."""
        with contextlib.suppress(Exception):  # an error in writing was told, or is less than the one that led here
            self._wait()
        self._is_closed = True
        self._stop_writing()
        self._cache.close()
        if self.place.reads_zip_file:
            self._files.close()
        if self._cleanup is not None:
            self._cleanup()

    def _stop_writing(self) -> None:
        self._writer.stop()
        if not self.place.is_temporary:
            self.place.release()

    def bytes_by_array(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for marker in self._markers:
            for name, about in marker["arrays"].items():
                found[name] = found.get(name, 0) + nbytes_when_read(name, about)
        return found

    def compressed_bytes(self) -> dict[str, int] | None:
        return bytes_by_array(self.place)

    def describe(self) -> str:
        nbytes = nbytes_of(self.place)
        size = "" if nbytes is None else f"{nbytes / 1e6:.1f} MB "
        return f"{size}in {'a temporary folder' if self.place.is_temporary else self.place.name}"
