"""Levels in a zarr v3 store: one group a level, committed one by one. docs/format.md describes it.

A level is written in three strokes: its arrays, then the *frontier* (what is known of levels to come), then its commit
marker, the attributes of its group. Whatever has no marker does not count and is removed when the run is continued.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from zarr.abc.store import Store

from empo_bi.dag.levels import LevelSizes
from empo_bi.dag.slices import Bodies, BodySlice, IndexArray, places_in
from empo_bi.errors import (
    DamagedStoreError,
    StoreError,
    StoreMismatchError,
    StoreNotFoundError,
    StoreVersionError,
    short_repr,
)
from empo_bi.memory.budget import CACHE_BYTES, SLICE_BACKLOG, STRETCH_BYTES
from empo_bi.store import codec
from empo_bi.store.background import BackgroundWriter
from empo_bi.store.cache import SliceCache
from empo_bi.store.json_states import JsonStates
from empo_bi.store.layout import (
    BODY_ARRAYS,
    FINISHED,
    FORMAT,
    HEAD_ARRAYS,
    ROOT,
    TRANSITIONS,
    VERSION,
    frontier_name,
    is_our_name,
    level_name,
)
from empo_bi.store.places import Place, bytes_by_array, nbytes_of
from empo_bi.store.reporting import reporting
from empo_bi.store.row_reader import RowReader
from empo_bi.store.zarr_files import REMEDY, Compression, Json, ZarrFiles


class ZarrLevels:
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
    def open(cls, place: Place, states: JsonStates | None = None, *, cache_bytes: int = CACHE_BYTES) -> ZarrLevels:
        """An existing store, finished or not, for reading."""
        store = place.for_reading()
        try:
            levels = cls(place, store, read_manifest(ZarrFiles(place.name, store)), states, cache_bytes=cache_bytes)
            levels._find_levels()
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
    ) -> ZarrLevels:
        """A store with the content that ``manifest`` tells: a finished one for reading, one to continue, or a new one.

        Raises
        ------
        StoreMismatchError
            If something else is there.
        """

        def finished() -> ZarrLevels | None:
            """What is there, if it is complete and the right thing; this needs neither lock nor permission to write."""
            if not place.exists:
                return None
            try:
                levels = cls.open(place, states, cache_bytes=cache_bytes)
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
            _check_content(place.name, manifest, levels.manifest, is_finished=levels.is_finished)
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
        self._find_levels()
        _check_content(self.place.name, self.manifest, found, is_finished=self.is_finished)
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

    def _find_levels(self) -> None:
        finished = self._files.read_record(FINISHED)
        if finished is not None:
            self._markers, self.is_finished = finished["levels"], True
        else:
            while (marker := self._files.read_record(level_name(len(self._markers)))) is not None:
                self._markers.append(marker)
        self.sizes[:] = map(_sizes_of, self._markers)

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
        head, abouts = self._read(t, self._present(t, BODY_ARRAYS)), self._markers[t]["arrays"]
        read = {name: RowReader(self._files, level_name(t), name, abouts[name]) for name in self._present(t, TRANSITIONS)}
        n_rows, begin = max(1, STRETCH_BYTES // (16 * n_profiles)), 0
        for first in range(0, len(head.expanded), n_rows):
            expanded = head.expanded[first : first + n_rows]
            count_EJ = read["count"].rows(first, first + n_rows) if "count" in read else None
            n_entries = len(expanded) * n_profiles if count_EJ is None else int(count_EJ.sum(dtype=np.int64))
            end = begin + n_entries
            if wanted is None or places_in(expanded, wanted)[0].any():
                yield replace(
                    head, expanded=expanded, count_EJ=count_EJ, succ_K=read["succ"].rows(begin, end).astype(np.int32),
                    prob_K=read["prob"].rows(begin, end) if "prob" in read else None,
                )  # fmt: skip
            begin = end

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
        return replace(piece, states=self._kept_states[t]) if t in self._kept_states else piece

    def _read_slice(self, group: str, marker: Json, names: list[str] | None = None) -> BodySlice:
        wanted = list(marker["arrays"]) if names is None else names
        arrays = self._files.read_arrays(group, {name: marker["arrays"][name] for name in wanted})
        return codec.from_arrays(marker, arrays, self._states)

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
        for name, about in marker["arrays"].items():
            try:
                self._files.read_array(level_name(t), name, about)
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
                raise DamagedStoreError(f"{self.place.name}: group {group} is missing. {REMEDY}")
            pieces.append(self._read_slice(group, marker))
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
                self.sizes.append(_sizes_of(marker))
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
                found[name] = found.get(name, 0) + _nbytes_of(name, about)
        return found

    def compressed_bytes(self) -> dict[str, int] | None:
        return bytes_by_array(self.place)

    def describe(self) -> str:
        nbytes = nbytes_of(self.place)
        size = "" if nbytes is None else f"{nbytes / 1e6:.1f} MB "
        return f"{size}in {'a temporary folder' if self.place.is_temporary else self.place.name}"


def read_manifest(files: ZarrFiles) -> Json:
    """What the root group says of the store, checked."""
    manifest = files.raw_record(ROOT)
    if manifest is None:
        raise StoreNotFoundError(f"{files.name}: no slice store is there; enumerate_dag(world, store=...) makes one")
    if manifest.get("format") != FORMAT:
        raise StoreMismatchError(f"{files.name}: is a zarr group, but no slice store of empo_bi; choose another place")
    if manifest.get("version") != VERSION:
        raise StoreVersionError(
            f"{files.name}: has version {manifest.get('version')!r} of the format, this empo_bi reads version {VERSION}; "
            "enumerate again with overwrite=True, or use the empo_bi that made it"
        )
    checked = files.read_record(ROOT)
    assert checked is not None
    return checked


_IF_EQUAL = ". If the worlds are equal for you, give them the same content_key, a text or a method that returns one"


def _check_content(name: str, asked: Json, found: Json, *, is_finished: bool) -> None:
    """Whether a store holds what is asked for: by name, all that its arrays depend on.

    The DAG of a finished store does not depend on goals, whose bits can be computed anew when they are read.
    """
    parts = ["world", "horizon", "levels", "precision", *(() if is_finished else ("goals",))]
    other = [part for part in parts if asked["content"].get(part) != found["content"].get(part)]
    if other:
        there, here = found["content"], asked["content"]
        details = "; ".join(
            "world: another map, or another source of its file, global values or attributes"
            if part == "world"
            else f"{part}: there {short_repr(there.get(part), 44)}, here {short_repr(here.get(part), 44)}"
            for part in other
        )
        raise StoreMismatchError(
            f"{name}: holds the DAG of {found.get('title')}, which differs in {', '.join(other)} from what is "
            f"asked for ({details}). Choose another place, or replace it with overwrite=True (--overwrite)"
            + (_IF_EQUAL if "world" in other and found["world"] is None else "")
        )
    if asked["content"]["world"] is None:
        raise StoreMismatchError(
            f"{name}: cannot tell whether this store was made for the same world; give the world an attribute or "
            "method content_key, a text that is the same only for equal worlds, or pass overwrite=True"
        )


def _sizes_of(marker: Json) -> LevelSizes:
    nbytes = sum(_nbytes_of(name, about) for name, about in marker["arrays"].items())
    counts = {name: marker[name] for name in ("value", "n_states", "n_bodies", "n_expanded", "n_transitions")}
    return LevelSizes(**counts, nbytes=nbytes, known=marker["n_known"])


_WHEN_READ = {"succ": 4, "members": 8, "added": 8, "expanded": 8}  # bytes of numbers that are narrower on disk


def _nbytes_of(name: str, about: Json) -> int:
    """An array when it has been read."""
    return int(math.prod(about["shape"]) * _WHEN_READ.get(name, np.dtype(about["dtype"]).itemsize))
