"""Levels in a zarr v3 store: one group a level, committed one by one, checked by checksums. docs/format.md describes it.

A level is written in three strokes: its arrays, then the *frontier* (what is known of levels to come), then its commit
marker, the attributes of its group. Whatever has no marker does not count and is removed when the run is continued.
"""

from __future__ import annotations

import contextlib
import errno
import math
import warnings
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec

from empo_bi.dag.levels import LevelSizes
from empo_bi.dag.slices import BodySlice
from empo_bi.errors import (
    DamagedStoreError,
    StoreError,
    StoreMismatchError,
    StoreNotFoundError,
    short_repr,
)
from empo_bi.store import codec
from empo_bi.store.cache import SliceCache
from empo_bi.store.json_states import JsonStates
from empo_bi.store.layout import (
    ATTRIBUTE,
    CHUNK_BYTES,
    FINISHED,
    FORMAT,
    HEAD_ARRAYS,
    VERSION,
    frontier_name,
    level_name,
    spoken,
)  # fmt: skip
from empo_bi.store.places import Place, nbytes_of

CACHE_BYTES = 256 << 20

Json = dict[str, Any]


@dataclass(frozen=True)
class Compression:
    """How arrays are compressed: a Blosc compressor (zstd, lz4, blosclz, zlib) and its level, 0 for none at all."""

    level: int = 3
    name: str = "zstd"

    def __post_init__(self) -> None:
        if self.name not in ("zstd", "lz4", "lz4hc", "blosclz", "zlib") or not 0 <= self.level <= 9:
            raise ValueError(f"{self}: expected zstd, lz4, lz4hc, blosclz or zlib, and a level from 0 (off) to 9")

    @classmethod
    def of(cls, given: Compression | bool | int | str) -> Compression:
        """``True`` or ``False``, a level, the name of a compressor, or the thing itself."""
        if isinstance(given, Compression):
            return given
        if isinstance(given, bool):
            return cls() if given else cls(level=0)
        return cls(name=given) if isinstance(given, str) else cls(level=given)

    def codecs(self, itemsize: int) -> list[Any]:
        """The checksum comes last, so damaged bytes are found before anything tries to decompress them."""
        blosc = BloscCodec(cname=self.name, clevel=self.level, shuffle="shuffle", typesize=itemsize)  # type: ignore[arg-type]
        return [*([blosc] if self.level else []), Crc32cCodec()]


class ZarrLevels:
    """Levels of a DAG in a zarr store, for reading, or for writing by one process at a time.

    Writing happens in the background, so that the next level can be expanded meanwhile; at most one level is on its way.
    """

    def __init__(
        self,
        place: Place,
        store: Any,
        manifest: Json,
        states: JsonStates | None,
        *,
        compression: Compression | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        """``states`` translates the states of Python worlds; ``compression`` is None for a store that is only read."""
        self.place, self.manifest = place, manifest
        self._store, self._states = store, states
        self._compression = compression
        self._markers: list[Json] = []
        self.sizes: list[LevelSizes] = []
        self.is_finished = False
        self._cache = SliceCache(self._read, cache_bytes)
        self._kept_states: dict[int, Sequence[Any]] = {}  # of Python worlds, where they are not written
        self._pool: ThreadPoolExecutor | None = None
        self._writing: Future[Json] | None = None
        # A temporary store goes when nobody uses it any more, at the latest when the process ends.
        self._cleanup = weakref.finalize(self, place.remove) if place.is_temporary else None

    # --- opening ------------------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, place: Place, states: JsonStates | None = None, *, cache_bytes: int = CACHE_BYTES) -> ZarrLevels:
        """An existing store, finished or not, for reading."""
        store = place.for_reading()
        levels = cls(place, store, read_manifest(place, store), states, cache_bytes=cache_bytes)
        levels._find_levels()
        return levels

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
    ) -> ZarrLevels:
        """A store with the content that ``manifest`` tells: a finished one for reading, one to continue, or a new one.

        Raises
        ------
        StoreMismatchError
            If something else is there.
        """
        with _reporting(place):
            if place.exists and not overwrite:
                with contextlib.suppress(StoreNotFoundError):
                    levels = cls.open(place, states, cache_bytes=cache_bytes)
                    _check_content(place, manifest, levels.manifest, is_finished=levels.is_finished)
                    if levels.is_finished:
                        return levels
            store = place.for_writing()
            try:
                levels = cls(place, store, manifest, states, compression=compression, cache_bytes=cache_bytes)
                levels._prepare(overwrite)
            except BaseException:
                place.release()
                raise
            return levels

    def _prepare(self, overwrite: bool) -> None:
        """Under the lock: begin anew, or find what is there and remove what was not committed."""
        try:
            found = read_manifest(self.place, self._store)
        except StoreNotFoundError:
            strangers = [key for key in _names_in(self._store) if not key.endswith(".partial")]
            if strangers:
                raise StoreMismatchError(
                    f"{self.place.name}: is no slice store (it has {short_repr(sorted(strangers)[:5])}); choose an empty or "
                    "new place"
                ) from None
            found = None
        except StoreMismatchError:
            if not overwrite:
                raise
            found = None
        if overwrite:
            _run(self._store.clear())
            found = None
        if found is None:
            zarr.create_group(self._store, attributes={ATTRIBUTE: self.manifest}, zarr_format=3)
            return
        self._find_levels()
        _check_content(self.place, self.manifest, found, is_finished=self.is_finished)
        self.manifest = found
        if not self.is_finished:
            keep = {"zarr.json", *(level_name(t) for t in range(len(self))), frontier_name(len(self) - 1)}
            for name in _names_in(self._store):
                if name not in keep:
                    _run(_delete(self._store, name))

    def _find_levels(self) -> None:
        finished = self._marker(FINISHED)
        if finished is not None:
            self._markers, self.is_finished = finished["levels"], True
        else:
            while (marker := self._marker(level_name(len(self._markers)))) is not None:
                self._markers.append(marker)
        self.sizes = [_sizes_of(marker) for marker in self._markers]

    def _marker(self, name: str) -> Json | None:
        """The attributes of a group that was committed, None if it was not."""
        attributes = _attributes_of(self.place, self._store, name)
        return None if attributes is None else attributes.get(ATTRIBUTE)

    # --- reading ------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._markers) + (self._writing is not None)

    def __getitem__(self, t: int) -> BodySlice:
        self._wait()
        return self._cache.get(range(len(self))[t])

    def __iter__(self) -> Iterator[BodySlice]:
        return (self[t] for t in range(len(self)))

    def heads(self) -> Iterator[BodySlice]:
        self._wait()
        for t, marker in enumerate(self._markers):
            yield self._read(t, [name for name in HEAD_ARRAYS if name in marker["arrays"]])

    def prefetch(self, levels: Iterable[int]) -> None:
        """Read slices ahead, as many as fill half the cache."""
        wanted, nbytes = [], 0
        for t in levels:
            nbytes += self.sizes[t].nbytes
            if nbytes > self._cache.limit // 2:
                break
            wanted.append(t)
        self._cache.prefetch(wanted)

    @property
    def cached_bytes(self) -> int:
        return self._cache.nbytes

    def _read(self, t: int, names: list[str] | None = None) -> BodySlice:
        marker = self._markers[t]
        arrays = self._read_arrays(level_name(t), marker, list(marker["arrays"]) if names is None else names)
        piece = codec.from_arrays(marker, arrays, self._states)
        return replace(piece, states=self._kept_states[t]) if t in self._kept_states else piece

    def _read_arrays(self, group: str, marker: Json, names: list[str]) -> codec.Arrays:
        return {name: self._read_array(group, marker["arrays"][name], name) for name in names}

    def _read_array(self, group: str, about: Json, name: str) -> npt.NDArray[Any]:
        where = f"{self.place.name}: {spoken(group)}, array {name!r}"
        try:
            array: npt.NDArray[Any] = np.asarray(zarr.open_array(self._store, path=f"{group}/{name}", mode="r")[...])
        except FileNotFoundError as error:
            raise DamagedStoreError(f"{where}: is missing. {_REMEDY}") from error
        except Exception as error:  # whatever a codec says of damaged bytes
            raise DamagedStoreError(f"{where}: cannot be read ({error}). {_REMEDY}") from error
        if list(array.shape) != about["shape"] or array.dtype.name != about["dtype"]:
            raise DamagedStoreError(
                f"{where}: found {array.dtype.name} {list(array.shape)}, not {about['dtype']} {about['shape']}. {_REMEDY}"
            )
        if _checksum(array) != about["crc32"]:
            raise DamagedStoreError(f"{where}: its checksum differs, so a chunk is missing or was changed. {_REMEDY}")
        return array

    def problems_of(self, t: int) -> Iterator[str | None]:
        """Check the commit marker and every array of a level: for each what is wrong with it, None if nothing is."""
        marker = self._markers[t]
        if self.is_finished and self._marker(level_name(t)) != marker:
            yield f"{self.place.name}: level {t}: its commit marker is missing or differs"
        for name, about in marker["arrays"].items():
            try:
                self._read_array(level_name(t), about, name)
            except DamagedStoreError as error:
                yield str(error).removesuffix(f" {_REMEDY}")
            else:
                yield None

    # --- writing ------------------------------------------------------------------------------------------------------

    def frontier(self) -> list[BodySlice]:
        """What the last committed level knew of those to come."""
        name = frontier_name(len(self) - 1)
        pieces = []
        for i in range(self._markers[-1]["frontier"]):
            marker = self._marker(f"{name}/{i}")
            if marker is None:
                raise DamagedStoreError(f"{self.place.name}: group {name}/{i} is missing. {_REMEDY}")
            arrays = self._read_arrays(f"{name}/{i}", marker, list(marker["arrays"]))
            pieces.append(codec.from_arrays(marker, arrays, self._states))
        return pieces

    def append(self, piece: BodySlice, frontier: Callable[[], list[BodySlice]]) -> None:
        """Write a level in the background. An error shows here or later, at the next call."""
        self._wait()
        t = len(self)
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="empo_bi-write")
        if self._states is None and piece.states is not None:
            self._kept_states[t] = piece.states
        self._writing = self._pool.submit(self._write_level, t, piece, frontier())
        self._cache.put(t, piece)

    def _wait(self) -> None:
        """Until what was appended is committed."""
        writing, self._writing = self._writing, None
        if writing is None:
            return
        try:
            marker = writing.result()
        except BaseException:
            self._cache.clear()
            raise
        self._markers.append(marker)
        self.sizes.append(_sizes_of(marker))

    def _write_level(self, t: int, piece: BodySlice, frontier: list[BodySlice]) -> Json:
        with _reporting(self.place, t):
            name = level_name(t)
            try:
                marker = self._write_arrays(name, piece)
                for i, ahead in enumerate(frontier):
                    self._commit(f"{frontier_name(t)}/{i}", self._write_arrays(f"{frontier_name(t)}/{i}", ahead))
                marker = {"level": t, **marker, "frontier": len(frontier)}
                self._commit(name, marker)
            except OSError:
                for half_written in (name, frontier_name(t)):
                    with contextlib.suppress(OSError):
                        _run(_delete(self._store, half_written))
                raise
            if t > 0:
                _run(_delete(self._store, frontier_name(t - 1)))
            return marker

    def _write_arrays(self, group: str, piece: BodySlice) -> Json:
        """Write the arrays of a slice. Returns what its commit marker says."""
        assert self._compression is not None
        marker, arrays = codec.to_arrays(piece, self._states)
        marker["arrays"] = {}
        node = zarr.create_group(self._store, path=group, zarr_format=3)
        for name, array in arrays.items():
            node.create_array(
                name,
                data=np.ascontiguousarray(array),
                chunks=_chunks(array),
                compressors=self._compression.codecs(array.dtype.itemsize),
                filters=None,
                dimension_names=codec.dimensions_of(name, marker),
                config={"write_empty_chunks": True},  # or zarr would compare every chunk with the fill value
            )
            about = {"dtype": array.dtype.name, "shape": list(array.shape), "crc32": _checksum(array)}
            marker["arrays"][name] = about
        return marker

    def _commit(self, group: str, marker: Json) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Duplicate name")  # a zip file keeps both versions, the last one counts
            zarr.open_group(self._store, path=group, mode="r+").update_attributes({ATTRIBUTE: marker})

    def finish(self) -> None:
        self._wait()
        with _reporting(self.place):
            _run(_delete(self._store, frontier_name(len(self) - 1)))
            zarr.create_group(self._store, path=FINISHED, attributes={ATTRIBUTE: {"levels": self._markers}}, zarr_format=3)
            self.is_finished = True
            self.place.pack()
            if self.place.zip_file is not None:
                self._store = self.place.for_reading()
        self._stop_writing()

    def close(self) -> None:
        """Give back memory and lock. What was committed stays, except that a temporary store is removed."""
        with contextlib.suppress(Exception):  # an error in writing was told, or is less than the one that led here
            self._wait()
        self._stop_writing()
        self._cache.close()
        if self._cleanup is not None:
            self._cleanup()

    def _stop_writing(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True)
            self._pool = None
        if not self.place.is_temporary:
            self.place.release()

    def describe(self) -> str:
        nbytes = nbytes_of(self.place)
        size = "" if nbytes is None else f"{nbytes / 1e6:.1f} MB "
        return f"{size}in {'a temporary folder' if self.place.is_temporary else self.place.name}"


_REMEDY = "Other levels are not affected; to make the store anew, call enumerate_dag with overwrite=True, or delete it"


def read_manifest(place: Place, store: Any) -> Json:
    """What the root group says of the store, checked."""
    attributes = _attributes_of(place, store, "")
    if attributes is None:
        raise StoreNotFoundError(f"{place.name}: no slice store is there; enumerate_dag(world, store=...) makes one")
    manifest = attributes.get(ATTRIBUTE)
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StoreMismatchError(f"{place.name}: is a zarr group, but no slice store of empo_bi; choose another place")
    if manifest.get("version") != VERSION:
        raise StoreMismatchError(
            f"{place.name}: has version {manifest.get('version')!r} of the format, this empo_bi reads version {VERSION}; "
            "enumerate again with overwrite=True, or use the empo_bi that made it"
        )
    return manifest


def _check_content(place: Place, asked: Json, found: Json, *, is_finished: bool) -> None:
    """Whether a store holds what is asked for: by name, all that its arrays depend on.

    The DAG of a finished store does not depend on goals, whose bits can be computed anew when they are read.
    """
    names = ["world", "horizon", "precision", *(() if is_finished else ("goals",))]
    other = [name for name in names if asked["content"].get(name) != found["content"].get(name)]
    if other:
        details = "; ".join(
            f"{name}: there {short_repr(found['content'].get(name), 44)}, here {short_repr(asked['content'].get(name), 44)}"
            for name in other
        )
        raise StoreMismatchError(
            f"{place.name}: holds the DAG of {found.get('title')}, which differs in {', '.join(other)} from what is "
            f"asked for ({details}). Choose another place, or replace it with overwrite=True"
        )
    if asked["content"]["world"] is None:
        raise StoreMismatchError(
            f"{place.name}: cannot tell whether this store was made for the same world; give the world an attribute or "
            "method content_key, a text that is the same only for equal worlds, or pass overwrite=True"
        )


def _sizes_of(marker: Json) -> LevelSizes:
    nbytes = sum(
        math.prod(about["shape"]) * (4 if name == "succ" else np.dtype(about["dtype"]).itemsize)
        for name, about in marker["arrays"].items()
    )
    return LevelSizes(marker["value"], marker["n_states"], marker["n_bodies"], marker["n_transitions"], nbytes)


def _chunks(array: npt.NDArray[Any]) -> tuple[int, ...]:
    """Whole rows, a few megabytes of them; a small array is one chunk."""
    row_bytes = array.itemsize * math.prod(array.shape[1:])
    rows = max(1, min(len(array), CHUNK_BYTES // max(1, row_bytes)))
    return (rows, *(max(1, n) for n in array.shape[1:]))


def _checksum(array: npt.NDArray[Any]) -> str:
    return f"{zlib.crc32(np.ascontiguousarray(array).data.cast('B') if array.size else b''):08x}"


@contextlib.contextmanager
def _reporting(place: Place, t: int | None = None) -> Iterator[None]:
    """Turn what the system says into what the user should do."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        doing = f"{place.name}: " + ("cannot be written" if t is None else f"level {t} cannot be written")
        kept = "The levels before it are kept: run the same command again to continue"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"{doing}: the disk is full ({error}). {kept} when there is room") from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise StoreError(f"{doing}: no permission ({error}). Choose a place that you may write to") from error
        raise StoreError(f"{doing}: {error}. {kept}") from error


# --- zarr's stores are asynchronous -----------------------------------------------------------------------------------


def _run(job: Any) -> Any:
    from zarr.core.sync import sync

    return sync(job)


def _names_in(store: Any) -> list[str]:
    async def listed() -> list[str]:
        return [name async for name in store.list_dir("")]

    found: list[str] = _run(listed())
    return found


async def _delete(store: Any, name: str) -> None:
    if not store.supports_deletes:
        return
    await store.delete_dir(name)
    with contextlib.suppress(FileNotFoundError):
        await store.delete(name)  # a file that is no folder


def _attributes_of(place: Place, store: Any, group: str) -> Json | None:
    """The attributes of a group, None if there is no such group."""
    try:
        return dict(zarr.open_group(store, path=group, mode="r", zarr_format=3).attrs)
    except FileNotFoundError:
        return None
    except OSError:
        raise
    except Exception as error:  # whatever zarr says of damaged metadata
        where = f"{place.name}: the metadata of {spoken(group) if group else 'the store'}"
        raise DamagedStoreError(f"{where} cannot be read ({error!r}). {_REMEDY}") from error
