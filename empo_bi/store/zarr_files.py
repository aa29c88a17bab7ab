"""Arrays and small records in a zarr v3 store, each with a checksum; the one module that calls zarr.

What is damaged is reported by group and array, and never used.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import warnings
import zlib
from collections.abc import Iterable, Iterator
from typing import Literal

import numcodecs.blosc
import numpy as np
import zarr
from zarr.abc.store import Store
from zarr.core.buffer import default_buffer_prototype
from zarr.core.sync import sync

from empo_bi.errors import DamagedStoreError
from empo_bi.store.encoded import Array, Compression, Json, array_files, group_file, little_endian
from empo_bi.store.layout import ATTRIBUTE, spoken

REMEDY = "To make the store anew, call what made it (enumerate_dag, or solve) with overwrite=True, or delete it"


class ZarrFiles:
    """Groups of arrays in a store. ``name`` is how messages call it."""

    def __init__(self, name: str, store: Store, remedy: str = REMEDY) -> None:
        """``remedy`` tells what to do about damage."""
        self.name, self._store, self._remedy = name, store, remedy
        self._mode: Literal["r", "r+"] = "r" if store.read_only else "r+"  # for reading; some stores cannot become read-only

    def write_array(
        self, group: str, name: str, array: Array, dimensions: tuple[str, ...], compression: Compression
    ) -> Json:
        """Returns what :meth:`read_array` wants to know again: type, shape and checksum."""
        self._put((f"{group}/{name}/{file}", data) for file, data in array_files(array, dimensions, compression))
        return {"dtype": array.dtype.name, "shape": list(array.shape), "crc32": _checksum_of_array(array)}

    def read_array(self, group: str, name: str, about: Json) -> Array:
        where = f"{self.name}: {spoken(group)}, array {name!r}"
        try:
            array: Array = np.asarray(
                zarr.open_array(self._store, path=f"{group}/{name}", mode=self._mode, zarr_format=3)[...]
            )
        except FileNotFoundError as error:
            raise DamagedStoreError(f"{where}: is missing. {self._remedy}") from error
        except Exception as error:  # whatever a codec says of damaged bytes
            raise DamagedStoreError(f"{where}: cannot be read ({error}). {self._remedy}") from error
        if list(array.shape) != about["shape"] or array.dtype.name != about["dtype"]:
            raise DamagedStoreError(
                f"{where}: found {array.dtype.name} {list(array.shape)}, not {about['dtype']} {about['shape']}. "
                f"{self._remedy}"
            )
        if _checksum_of_array(array) != about["crc32"]:
            raise DamagedStoreError(f"{where}: its checksum differs, so a chunk is missing or was changed. {self._remedy}")
        return array

    def write_record(self, group: str, content: Json) -> None:
        """Write a record as the attributes of a group, with a checksum: a changed digit there is as bad as elsewhere."""
        attributes = {ATTRIBUTE: {**content, "crc32": _checksum_of_json(content)}}
        parents = itertools.accumulate(group.split("/")[:-1], "{}/{}".format)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Duplicate name")  # a zip file keeps both versions, the last one counts
            self._put((f"{parent}/zarr.json", group_file({})) for parent in parents)
            self._put([(f"{group}/zarr.json".lstrip("/"), group_file(attributes))])

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
        content = {name: value for name, value in found.items() if name != "crc32"}
        if found.get("crc32") != _checksum_of_json(content):
            raise DamagedStoreError(
                f"{self.name}: the metadata of {spoken(group)}: its checksum differs, so it was changed. {self._remedy}"
            )
        return content

    def raw_record(self, group: str) -> Json | None:
        """A record that has not been checked: empty if the group has none, None if there is no group."""
        try:
            attributes = dict(zarr.open_group(self._store, path=group, mode=self._mode, zarr_format=3).attrs)
        except FileNotFoundError:
            return None
        except OSError:
            raise
        except Exception as error:  # whatever zarr says of damaged metadata
            raise DamagedStoreError(
                f"{self.name}: the metadata of {spoken(group)} cannot be read ({error!r}). {self._remedy}"
            ) from error
        found = attributes.get(ATTRIBUTE)
        return found if isinstance(found, dict) else {}

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
        if getattr(self._store, "_is_open", True):  # a zip file that nobody has read yet
            self._store.close()

    def delete(self, name: str) -> None:
        """Remove a group, or a file, and be content if it is not there. A zip file forgets nothing."""

        async def deleted() -> None:
            try:
                await self._store.delete_dir(name)
            except ValueError:  # a file is no folder
                await self._store.delete(name)

        if self.can_delete:
            sync(deleted())


@contextlib.contextmanager
def one_blosc_thread() -> Iterator[None]:
    """The other cores are busy expanding the next level; two threads of Blosc made a run 13% slower."""
    before = numcodecs.blosc.set_nthreads(1)
    try:
        yield
    finally:
        numcodecs.blosc.set_nthreads(before)


def _checksum_of_array(array: Array) -> str:
    """Of its bytes in C order, the lowest byte of each number first."""
    return f"{zlib.crc32(little_endian(array).data.cast('B') if array.size else b''):08x}"


def _checksum_of_json(content: Json) -> str:
    return f"{zlib.crc32(json.dumps(content, sort_keys=True, separators=(',', ':')).encode()):08x}"
