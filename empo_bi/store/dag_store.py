"""The levels of a DAG in a store, from the first to the last; what continuing needs is the *frontier*.

A frontier is all that was known of levels to come. The record of the end has the commit markers of all levels once more, so
that a finished store is opened with two reads.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from zarr.abc.store import Store

from empo_bi.dag.levels import LevelSizes, check_ascending
from empo_bi.dag.slices import BodySlice
from empo_bi.dag.successor_check import SuccessorCheck
from empo_bi.errors import MemoryLimitError
from empo_bi.memory.budget import CACHE_BYTES, SLICE_BACKLOG, STRETCH_BYTES
from empo_bi.store import slice_arrays as codec
from empo_bi.store.cache import LevelCache, held_weakly
from empo_bi.store.compression import Compression
from empo_bi.store.dag_manifest import END_IS_MISSING, UNFINISHED, check_content, read_end
from empo_bi.store.format_names import BODY_ARRAYS, DAG_KIND, FINISHED, HEAD_ARRAYS, TRANSITIONS, level_name, spoken
from empo_bi.store.json_states import JsonStates
from empo_bi.store.levelled import LevelledStore
from empo_bi.store.location import Place
from empo_bi.store.records import FormatError, check_dag_manifest
from empo_bi.store.slice_arrays import nbytes_when_read, sizes_of
from empo_bi.store.slice_guard import SliceGuard
from empo_bi.store.transition_chunks import read_stretches
from empo_bi.types import Bodies, IndexArray, Json


class DagStore(LevelledStore):
    """Levels of a DAG: slices by number, whole or in part, within a limit of memory."""

    kind, direction, first_level = DAG_KIND, 1, 0
    check_manifest = staticmethod(check_dag_manifest)

    def __init__(
        self, place: Place, store: Store, manifest: Json, states: JsonStates | None, *,
        compression: Compression | None = None, cache_bytes: int = CACHE_BYTES, backlog_bytes: int = SLICE_BACKLOG,
    ) -> None:  # fmt: skip
        """``states`` translates the states of Python worlds."""
        super().__init__(place, store, manifest, compression=compression, backlog_bytes=backlog_bytes)
        self._states = states
        self.guard = SliceGuard(self._files, manifest, has_states=states is not None)
        self.sizes: list[LevelSizes] = []
        sizes = self.sizes
        self._cache: LevelCache[int, BodySlice] = LevelCache(held_weakly(self._read), cache_bytes, lambda t: sizes[t].nbytes)
        self._kept_states: dict[int, Sequence[Any]] = {}  # of Python worlds, where they are not written
        self._last_value: int | None = None  # of the level that was appended last

    # --- opening ------------------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, place: Place, states: JsonStates | None = None, *, cache_bytes: int = CACHE_BYTES) -> DagStore:
        """An existing store, finished or not, for reading."""
        return cls._opened(place, partial(cls, states=states, cache_bytes=cache_bytes))

    @classmethod
    def open_or_create(
        cls, place: Place, manifest: Json, states: JsonStates | None, *, compression: Compression, overwrite: bool = False,
        cache_bytes: int = CACHE_BYTES, backlog_bytes: int = SLICE_BACKLOG,
    ) -> DagStore:  # fmt: skip
        """A store with the content that ``manifest`` describes: finished, for reading; to be continued; or new."""
        make = partial(cls, states=states, compression=compression, cache_bytes=cache_bytes, backlog_bytes=backlog_bytes)
        return cls._opened_or_created(place, manifest, make, overwrite=overwrite)

    def check_content(self, asked: Json) -> None:
        check_content(self.place.name, asked, self.manifest, is_finished=self.is_finished)

    def _find_levels(self, *, mends: bool) -> None:
        found = read_end(self._files, mends=mends)
        self.is_finished = found is not None
        self._markers = list(self._read_markers(itertools.count())) if found is None else found
        self.guard.check_levels(self._markers, is_finished=self.is_finished)
        self.sizes[:] = map(sizes_of, self._markers)
        self._last_value = self.sizes[-1].value if self.sizes else None

    def restart(self) -> None:
        """Forget all levels."""
        self._markers.clear()
        self.sizes.clear()
        self._cache.clear()
        self._last_value = None
        self._begin()

    @property
    def why_unfinished(self) -> str:
        """What to do about a store without an end: a run that was killed, or a record that was deleted."""
        if self._markers and self._markers[-1]["frontier"] == 0 and self.manifest["content"]["levels"] != "derived":
            return END_IS_MISSING
        return UNFINISHED

    # --- reading ------------------------------------------------------------------------------------------------------

    def __getitem__(self, t: int) -> BodySlice:
        self._check_readable()
        return self._cache.get(range(len(self))[t])

    def __iter__(self) -> Iterator[BodySlice]:
        return (self[t] for t in range(len(self)))

    def part(self, t: int, names: Collection[str]) -> BodySlice:
        self._check_readable()
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
        self._check_readable()
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
        self._check_readable()
        return self._read(t, self._present(t, HEAD_ARRAYS))

    def heads(self) -> Iterator[BodySlice]:
        return (self.head(t) for t in range(len(self)))

    def members(self, t: int) -> Bodies:
        self._check_readable()
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
        try:
            arrays = self._files.read_arrays(group, {name: marker["arrays"][name] for name in wanted})
            return self._slice_of(group, marker, arrays)
        except MemoryLimitError:
            raise
        except MemoryError as error:  # of what is made of the arrays
            raise MemoryLimitError(
                f"{self.place.name}: there is no memory for {spoken(group)} as a whole ({marker['n_transitions']:,} "
                f"transitions; {error}); use a machine that has more of it"
            ) from error

    def _slice_of(self, group: str, marker: Json, arrays: codec.Arrays) -> BodySlice:
        self.guard.check_arrays(group, marker, arrays, self._markers)
        try:
            piece = codec.from_arrays(marker, arrays, self._states)
        except FormatError as error:
            raise self.damaged(f"{spoken(group)}, array 'states': {error}") from error
        self.guard.check_piece(group, piece)
        return piece

    def successor_check(self, t: int) -> SuccessorCheck | None:
        return self.guard.successor_check(t, self._markers, self.members, is_finished=self.is_finished)

    def problems_of(self, t: int) -> list[str]:
        """Check the commit marker and every array of a level: what is wrong with them."""
        marker, problems = self._markers[t], list[str]()
        with self._noting(problems):
            if self._files.read_record(level_name(t)) != marker:
                problems.append(f"{self.place.name}: level {t}: its commit marker is missing or differs")
        is_whole, arrays = self._is_held_whole(t), {}
        for name, about in marker["arrays"].items():
            with self._noting(problems):
                if is_whole or name not in TRANSITIONS:
                    arrays[name] = self._files.read_array(level_name(t), name, about)
        with self._noting(problems):
            if not problems:
                self._check_place(t, self._slice_of(level_name(t), marker, arrays))
                for _ in () if is_whole else self._stretches(t, self.manifest["n_profiles"]):
                    pass
        return problems

    # --- writing ------------------------------------------------------------------------------------------------------

    def frontier(self) -> list[BodySlice]:
        """What the last committed level knew of those to come."""
        pieces = []
        for i in range(self._markers[-1]["frontier"]):
            group = f"{self.kind.resume_name(len(self) - 1)}/{i}"
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

    _read_resume_point = frontier

    def append(self, piece: BodySlice, frontier: Callable[[], list[BodySlice]]) -> None:
        """Write a level in the background. An error shows here or later, at the next call."""
        t = len(self)
        self._check_turn(t)
        check_ascending(self._last_value, piece.value)
        self._collect(backlog=self.backlog_bytes)
        if self._states is None and piece.states is not None:
            self._kept_states[t] = piece.states
        self._put(t, piece.nbytes, partial(self._write_level, t, piece, frontier()))
        self._last_value = piece.value
        if piece.spilled is None:
            self._cache.put(t, piece)

    def _committed(self, marker: Json) -> None:
        self.sizes.append(sizes_of(marker))

    def _write_level(self, t: int, piece: BodySlice, frontier: list[BodySlice]) -> Json:
        marker = {"level": t, **self._write_arrays(level_name(t), piece), "frontier": len(frontier)}
        for i, ahead in enumerate(frontier):
            group = f"{self.kind.resume_name(t)}/{i}"
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

    def _write_end(self) -> None:
        self._files.delete(self.kind.resume_name(len(self) - 1))
        self._files.write_record(FINISHED, {"levels": self._markers})

    def bytes_by_array(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for marker in self._markers:
            for name, about in marker["arrays"].items():
                found[name] = found.get(name, 0) + nbytes_when_read(name, about)
        return found
