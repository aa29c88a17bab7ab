"""Arrays and small records in a zarr v3 store, each with a checksum; the one module that calls zarr.

What is damaged is reported by group and array, and never used.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import itertools
import math
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from zarr.abc.store import RangeByteRequest, Store
from zarr.buffer import default_buffer_prototype
from zarr.storage import FsspecStore

from empo_bi.dag.spill import BlockArray
from empo_bi.errors import DamagedStoreError, MemoryLimitError, StoreError
from empo_bi.runtime.digests import checksum_of_json
from empo_bi.runtime.json_text import MOST_VALUES, count_values, parse_json
from empo_bi.store.compression import (
    Compression,
    StoredArray,
    array_files,
    chunk_name,
    group_file,
    little_endian,
    most_chunk_bytes,
)
from empo_bi.store.format_names import ATTRIBUTE, DAG_KIND, FINISHED, ROOT, spoken
from empo_bi.store.records import OBJECT, FormatError, check_record, one_of, parsed
from empo_bi.store.zarr_internals import is_open, open_if_needed, sync
from empo_bi.types import Array, Bodies, Json

_MOST_RECORD_BYTES = 16 << 20  # of metadata; those of a level have some kilobytes
_MOST_END_BYTES = 64 << 20  # of the record of the end, which has those of all levels
_MOST_ARRAY_BYTES = 64 << 10  # of an array's own metadata; a store sets aside as much memory as it may read


class ZarrFiles:
    """Groups of arrays in a store. ``name`` is how messages call it."""

    def __init__(self, name: str, store: Store, remedy: str = DAG_KIND.remedy) -> None:
        """``remedy`` says what to do about damage."""
        self.name, self._store, self._remedy = name, store, remedy
        self._manifest: str | None = None

    def bind(self, manifest: Json) -> ZarrFiles:
        """From now on records say to which manifest they belong, so that those of another store are noticed."""
        self._manifest = checksum_of_json(manifest)
        return self

    def write_array(
        self, group: str, name: str, array: Array | BlockArray, dimensions: tuple[str, ...], compression: Compression
    ) -> Json:
        """Returns what :meth:`read_array` wants to know again: type, shape and checksums."""
        given, crc32 = BlockArray.of(array), 0

        def summed_up() -> Iterator[Array]:
            nonlocal crc32
            for block in given.blocks():
                crc32 = _checksum_of(block, crc32)
                yield block

        chunks: list[str] = []

        def files() -> Iterator[tuple[str, bytes]]:
            for file, data in array_files(replace(given, blocks=summed_up), dimensions, compression):
                if file != "zarr.json":
                    chunks.append(data[-4:].hex())  # its own checksum
                yield f"{group}/{name}/{file}", data

        self._put(files())
        return {"dtype": given.dtype.name, "shape": list(given.shape), "crc32": f"{crc32:08x}", "chunks": chunks}

    def read_array(self, group: str, name: str, about: Json) -> Array:
        return self.read_arrays(group, {name: about})[name]

    def read_arrays(self, group: str, abouts: dict[str, Json]) -> dict[str, Array]:
        """Several arrays of a group; those of one chunk each take one round trip to the store together."""

        async def fetched() -> list[Any]:
            files = []
            for name, about in abouts.items():
                dtype, shape = about["dtype"], about["shape"]
                nbytes = min(np.dtype(dtype).itemsize * math.prod(shape), most_chunk_bytes(dtype, shape))
                files.append((f"{group}/{name}/zarr.json", _MOST_ARRAY_BYTES))
                files.append((f"{group}/{name}/{chunk_name(0, len(shape))}", _most_file_bytes(nbytes)))
            return await asyncio.gather(*itertools.starmap(self._get, files))

        found = iter(sync(fetched()))
        return {name: self._array(group, name, about, next(found), next(found)) for name, about in abouts.items()}

    def _array(self, group: str, name: str, about: Json, metadata: Any, first: Any) -> Array:
        """An array from its metadata and its first chunk; further chunks are fetched one by one."""
        stored = self._described(group, name, about, metadata)
        is_at_hand = stored.separator == "/" and isinstance(first, bytes)  # others may have cut larger chunks
        at_hand = {stored.chunk_name([0] * len(stored.shape)): first} if is_at_hand else {}
        self._check_files(stored, group, name)
        array = self._room_for(stored, group, name)
        for place in _places(stored):
            chunk = self.chunk(stored, place, group, name, at_hand.pop(stored.chunk_name(place), None))
            part = array[stored.part(place)]
            part[...] = chunk[tuple(map(slice, part.shape))]
        if f"{_checksum_of(array):08x}" != about["crc32"]:
            raise self.differs(group, name)
        return array

    def _room_for(self, stored: StoredArray, group: str, name: str) -> Array:
        try:
            return np.empty(stored.shape, stored.dtype.newbyteorder("="))
        except (MemoryError, ValueError) as error:  # of a shape beyond what addresses can tell
            raise MemoryLimitError(
                f"{self._where(group, name)}: there is no memory for {stored.dtype.name} {list(stored.shape)} ({error}); "
                "use a machine that has more of it"
            ) from error

    def read_pieces(self, group: str, name: str, about: Json, places: Bodies) -> Iterator[tuple[slice, Array]]:
        """Some rows of an array, a chunk at a time: which of ``places`` they are, and the rows.

        Chunks without any of the rows are not read. Each chunk has a checksum of its own, which its level has recorded; that
        of the array is checked, too, where all chunks are read.
        """
        stored = self.described(group, name, about)
        if not stored.has_whole_rows or not stored.shape:
            rows = self.read_array(group, name, about)
            yield slice(0, len(places)), rows[places.start : places.stop] if isinstance(places, range) else rows[places]
            return
        n_rows, crc32 = stored.chunk_shape[0], 0
        chunks = _chunks_of(places, n_rows)
        for c in chunks:
            first = c * n_rows
            place = (c, *[0] * (len(stored.shape) - 1))
            chunk = self.chunk(stored, place, group, name, is_alone=stored.grid[0] > 1)[: about["shape"][0] - first]
            crc32 = zlib.crc32(chunk.data.cast("B"), crc32)
            begin, end = (bisect.bisect_left(places, row) for row in (first, first + n_rows))
            if isinstance(places, range):
                yield slice(begin, end), chunk[places[begin] - first : places[end - 1] + 1 - first]
            else:
                yield slice(begin, end), chunk[places[begin:end] - first]
        if len(chunks) == stored.grid[0] and f"{crc32:08x}" != about["crc32"]:
            raise self.differs(group, name)

    def check_there(self, group: str, name: str, about: Json) -> None:
        """Whether an array has the shape that its marker says, and as many chunks; nothing else of it is read."""
        self._check_files(self.described(group, name, about), group, name)

    def _check_files(self, stored: StoredArray, group: str, name: str) -> None:
        """Where a size is made up there are not as many chunks: look before memory is taken."""
        n_chunks = math.prod(stored.grid)

        async def counted() -> int:
            n_files = 0
            async for _ in self._store.list_prefix(f"{group}/{name}/"):
                n_files += 1
                if n_files > n_chunks:  # the metadata are a file, too
                    break
            return n_files

        if n_chunks > 1 and sync(counted()) <= n_chunks:
            raise self.differs(group, name)

    def _file(self, key: str, most_bytes: int = _MOST_RECORD_BYTES) -> bytes | Exception | None:
        async def fetched() -> list[bytes | Exception | None]:  # in a list, since sync raises what it is given
            return [await self._get(key, most_bytes)]

        return sync(fetched())[0]

    async def _get(self, key: str, most_bytes: int) -> bytes | Exception | None:
        """The bytes of a file; None if there is none, or what is wrong with a damaged one. A larger one is not read.

        An error of the machine (no permission, no network) says nothing about the store, and is raised.
        """
        try:
            await open_if_needed(self._store)
            found = await self._store.get(key, default_buffer_prototype(), RangeByteRequest(0, most_bytes + 1))
        except FileNotFoundError:  # not even the folder
            return None
        except OSError:
            raise
        except Exception as error:
            return error
        if found is not None and len(found) > most_bytes:
            return ValueError(f"{key} has more than the {most_bytes:,} bytes that it can have")
        return None if found is None else found.to_bytes()

    def described(self, group: str, name: str, about: Json) -> StoredArray:
        """What an array's metadata say of it, if that is what was written."""
        return self._described(group, name, about, self._file(f"{group}/{name}/zarr.json", _MOST_ARRAY_BYTES))

    def _described(self, group: str, name: str, about: Json, metadata: Any) -> StoredArray:
        """An array that is as it was written, to judge by its metadata."""
        where = self._where(group, name)
        if metadata is None:
            raise DamagedStoreError(f"{where}: is missing. {self._remedy}")
        try:
            stored = StoredArray.from_json(_bytes(metadata))
        except Exception as error:  # whatever damaged metadata lead to
            raise DamagedStoreError(f"{where}: cannot be read (its metadata: {error}). {self._remedy}") from error
        if list(stored.shape) != about["shape"] or stored.dtype.name != about["dtype"]:
            raise DamagedStoreError(
                f"{where}: found {stored.dtype.name} {list(stored.shape)}, not {about['dtype']} {about['shape']}. "
                f"{self._remedy}"
            )
        checksums = about.get("chunks")  # earlier versions wrote none; others may have cut the array into other chunks
        if checksums is not None and stored.has_whole_rows and len(checksums) == math.prod(stored.grid):
            return replace(stored, checksums=checksums)
        return replace(stored, is_cut_anew=checksums is not None)

    def chunk(
        self, stored: StoredArray, place: Sequence[int], group: str, name: str, found: Any = None, *, is_alone: bool = False
    ) -> Array:
        """A chunk, filled up where it is the last one; ``found`` has its bytes if they are there already.

        One that ``is_alone`` has to be the one that its level has recorded: nobody reads the others and sums them up.

        Decoded here: zarr's threads would keep 20 MB for themselves, read zeros where a chunk is missing, and look up any
        codec that metadata name.
        """
        if found is None:
            found = self._file(f"{group}/{name}/{stored.chunk_name(place)}", _most_file_bytes(stored.chunk_bytes))
        if found is None:
            raise self.differs(group, name)
        try:
            data = _bytes(found)
            if is_alone and not stored.is_recorded(data, place[0]):
                raise ValueError("the checksum of a chunk is not the one that its level has recorded")
            return stored.decoded(data)
        except Exception as error:  # whatever a codec says of damaged bytes
            raise DamagedStoreError(f"{self._where(group, name)}: cannot be read ({error}). {self._remedy}") from error

    def damaged(self, problem: Any) -> DamagedStoreError:
        """What is wrong with something that was read, as an error that names the store and says what to do."""
        return DamagedStoreError(f"{self.name}: {problem}. {self._remedy}")

    @contextlib.contextmanager
    def naming_damage(self, what: str = "") -> Iterator[None]:
        """Turn :class:`FormatError` into an error that names the store, and ``what`` in it."""
        try:
            yield
        except FormatError as error:
            raise self.damaged(f"{what}{error}") from None

    def _where(self, group: str, name: str) -> str:
        return f"{self.name}: {spoken(group)}, array {name!r}"

    def differs(self, group: str, name: str) -> DamagedStoreError:
        return self.damaged(f"{spoken(group)}, array {name!r}: its checksum differs, so a chunk is missing or was changed")

    def write_record(self, group: str, content: Json) -> None:
        """Write a record as the attributes of a group, with a checksum: a changed digit there is as bad as elsewhere."""
        if group != ROOT and self._manifest is not None:
            content = {**content, "manifest": self._manifest}
        attributes = {ATTRIBUTE: {**content, "crc32": checksum_of_json(content)}}
        parents = itertools.accumulate(group.split("/")[:-1], "{}/{}".format)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Duplicate name")  # a zip file keeps both versions, the last one counts
            self._put((f"{parent}/zarr.json", group_file({})) for parent in parents)
            self._put([(f"{group}/zarr.json".lstrip("/"), self._readable(group, group_file(attributes)))])

    def _readable(self, group: str, data: bytes) -> bytes:
        """A record, if it will be read again: nothing is written that opening would refuse."""
        if len(data) > _most_bytes_of(group) or count_values(data) > MOST_VALUES:
            raise StoreError(
                f"{self.name}: the metadata of {spoken(group)} would take {len(data) / 1e6:,.0f} MB, more than is read "
                "again; use a world with fewer goals, or fewer cells"
            )
        return data

    def _put(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Write files one after the other, each in one stroke."""

        async def put() -> None:
            for key, data in files:
                await self._store.set(key, default_buffer_prototype().buffer.from_bytes(data))

        sync(put())

    def read_record(self, group: str) -> Json | None:
        """What :meth:`write_record` wrote; None if the group, or a record in it, is missing."""
        found = self.raw_record(group)
        if not found:
            return None
        content = self.checked_record(group, found)
        manifest = content.pop("manifest", None)  # earlier versions wrote none
        if manifest not in (None, self._manifest):
            raise self.damaged(f"{spoken(group)} belongs to another store, or the manifest (zarr.json of the root) does")
        return content

    def checked_record(self, group: str, found: Json) -> Json:
        """A raw record without its checksum, which has to agree."""
        content = {name: value for name, value in found.items() if name != "crc32"}
        if found.get("crc32") != checksum_of_json(content):
            raise self.damaged(f"the metadata of {spoken(group)}: its checksum differs, so it was changed")
        return content

    def raw_record(self, group: str) -> Json | None:
        """A record that has not been checked: empty if the group has none, None if there is no group."""
        found = self._file(f"{group}/zarr.json".lstrip("/"), _most_bytes_of(group))
        if found is None:
            return None
        try:
            metadata = parsed(_bytes(found))
            check_record(metadata, {"zarr_format": one_of(3), "node_type": one_of("group")}, {"attributes": OBJECT})
        except Exception as error:  # also whatever a store says of damaged bytes
            if self._is_torn(group):
                return None
            raise self.damaged(f"the metadata of {spoken(group)} cannot be read ({error})") from error
        record = metadata.get("attributes", {}).get(ATTRIBUTE)
        return record if isinstance(record, dict) else {}

    def _is_torn(self, group: str) -> bool:
        """Whether a record is the last thing that a killed process wrote, and only a part of it came to be.

        That happens behind URLs of plain disks (``local://``, ``sftp://``), where files do not appear at once and complete.
        A record commits what was written before it, so that without it the store is what it was before. The root's is the
        first thing in a store.
        """
        if not isinstance(self._store, FsspecStore) or (group == ROOT and self.names() != ["zarr.json"]):
            return False
        found = self._file(f"{group}/zarr.json".lstrip("/"))
        try:
            parse_json(found if isinstance(found, bytes) else b"{}")
        except ValueError:
            return True
        return False

    def names(self) -> list[str]:
        """What the root holds, files included."""

        async def listed() -> list[str]:
            return [name async for name in self._store.list_dir("")]

        found: list[str] = sync(listed())
        return found

    @property
    def can_delete(self) -> bool:
        return self._store.supports_deletes

    def close(self) -> None:
        if is_open(self._store):
            self._store.close()

    def delete(self, name: str) -> None:
        """Remove a group, or a file, and be content if it is not there. A zip file forgets nothing."""

        async def deleted() -> None:
            try:
                await self._store.delete_dir(name)
            except ValueError:  # it is a file
                await self._store.delete(name)

        if self.can_delete:
            sync(deleted())


def _most_bytes_of(group: str) -> int:
    return _MOST_END_BYTES if group == FINISHED else _MOST_RECORD_BYTES


def _most_file_bytes(nbytes: int) -> int:
    """Of a file with that many bytes of an array: what cannot be compressed grows a little."""
    return nbytes + nbytes // 64 + 4096


def _places(stored: StoredArray) -> Iterator[tuple[int, ...]]:
    """Of all chunks of an array."""
    return itertools.product(*map(range, stored.grid))


def _chunks_of(places: Bodies, n_rows: int) -> Sequence[int]:
    """Numbers of the chunks of ``n_rows`` rows that have some of the rows, which ascend."""
    if len(places) == 0:
        return []
    if isinstance(places, range):
        return range(places[0] // n_rows, places[-1] // n_rows + 1)
    numbers: list[int] = np.unique(places // n_rows).tolist()
    return numbers


def _bytes(found: bytes | Exception) -> bytes:
    """What was found, if it was no error."""
    if isinstance(found, Exception):
        raise found
    return found


def _checksum_of(array: Array, before: int = 0) -> int:
    """Of its bytes in C order, the lowest byte of each number first; ``before`` is that of the blocks before it."""
    return zlib.crc32(little_endian(array).data.cast("B") if array.size else b"", before)
