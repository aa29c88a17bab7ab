"""Arrays and small records in a zarr v3 store, each with a checksum; the one module that calls zarr.

What is damaged is reported by group and array, and never used.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numcodecs.blosc
import numpy as np
import numpy.typing as npt
import zarr
from zarr.abc.store import Store
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.core.sync import sync
from zarr.errors import ContainsGroupError

from empo_bi.errors import DamagedStoreError, StoreError
from empo_bi.store.layout import ATTRIBUTE, CHUNK_BYTES, spoken

Json = dict[str, Any]
Array = npt.NDArray[Any]

REMEDY = "To make the store anew, call enumerate_dag with overwrite=True, or delete it"


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
        if not isinstance(given, str | int):
            raise ValueError(f"compression={given!r}; expected True, False, a level from 0 to 9, or a name such as 'lz4'")
        return cls(name=given) if isinstance(given, str) else cls(level=given)

    def codecs(self, itemsize: int) -> list[Any]:
        """The checksum comes last, so damaged bytes are found before anything tries to decompress them."""
        blosc = BloscCodec(cname=self.name, clevel=self.level, shuffle="shuffle", typesize=itemsize)  # type: ignore[arg-type]
        return [*([blosc] if self.level else []), Crc32cCodec()]


class ZarrFiles:
    """Groups of arrays in a store. ``name`` is how messages call it."""

    def __init__(self, name: str, store: Store) -> None:
        self.name, self._store = name, store
        self._mode: Literal["r", "r+"] = "r" if store.read_only else "r+"  # for reading; some stores cannot become read-only

    def write_array(
        self, group: str, name: str, array: Array, dimensions: tuple[str, ...], compression: Compression
    ) -> Json:
        """Returns what :meth:`read_array` wants to know again: type, shape and checksum."""
        array = np.ascontiguousarray(array)
        zarr.create_array(
            self._store,
            name=f"{group}/{name}",
            data=array,
            chunks=_chunks(array),
            compressors=compression.codecs(array.dtype.itemsize),
            filters=None,
            dimension_names=dimensions,
            config={"write_empty_chunks": True},  # or zarr would compare every chunk with the fill value
        )
        return {"dtype": array.dtype.name, "shape": list(array.shape), "crc32": _checksum_of_array(array)}

    def read_array(self, group: str, name: str, about: Json) -> Array:
        where = f"{self.name}: {spoken(group)}, array {name!r}"
        try:
            array: Array = np.asarray(
                zarr.open_array(self._store, path=f"{group}/{name}", mode=self._mode, zarr_format=3)[...]
            )
        except FileNotFoundError as error:
            raise DamagedStoreError(f"{where}: is missing. {REMEDY}") from error
        except Exception as error:  # whatever a codec says of damaged bytes
            raise DamagedStoreError(f"{where}: cannot be read ({error}). {REMEDY}") from error
        if list(array.shape) != about["shape"] or array.dtype.name != about["dtype"]:
            raise DamagedStoreError(
                f"{where}: found {array.dtype.name} {list(array.shape)}, not {about['dtype']} {about['shape']}. {REMEDY}"
            )
        if _checksum_of_array(array) != about["crc32"]:
            raise DamagedStoreError(f"{where}: its checksum differs, so a chunk is missing or was changed. {REMEDY}")
        return array

    def write_record(self, group: str, content: Json) -> None:
        """Write a record as the attributes of a group, with a checksum: a changed digit there is as bad as elsewhere."""
        attributes = {ATTRIBUTE: {**content, "crc32": _checksum_of_json(content)}}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Duplicate name")  # a zip file keeps both versions, the last one counts
            try:
                zarr.create_group(self._store, path=group, attributes=attributes, zarr_format=3)  # in one stroke
            except ContainsGroupError:  # it has arrays already
                zarr.open_group(self._store, path=group, mode="r+", zarr_format=3).update_attributes(attributes)

    def read_record(self, group: str) -> Json | None:
        """What :meth:`write_record` wrote; None if the group, or a record in it, is missing."""
        found = self.raw_record(group)
        if not found:
            return None
        content = {name: value for name, value in found.items() if name != "crc32"}
        if found.get("crc32") != _checksum_of_json(content):
            raise DamagedStoreError(
                f"{self.name}: the metadata of {spoken(group)}: its checksum differs, so it was changed. {REMEDY}"
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
                f"{self.name}: the metadata of {spoken(group)} cannot be read ({error!r}). {REMEDY}"
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


@contextlib.contextmanager
def reporting(name: str, t: int | None = None) -> Iterator[None]:
    """Turn what the system says while writing into what the user should do."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        doing = f"{name}: " + ("cannot be written" if t is None else f"level {t} cannot be written")
        kept = "Levels that were committed are kept: run the same command again to continue"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StoreError(f"{doing}: the disk is full ({error}). {kept} when there is room") from error
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise StoreError(f"{doing}: no permission ({error}). Choose a place that you may write to") from error
        raise StoreError(f"{doing}: {error}. {kept}") from error


def _chunks(array: Array) -> tuple[int, ...]:
    """Whole rows, a few megabytes of them; a small array is one chunk."""
    row_bytes = array.itemsize * math.prod(array.shape[1:])
    rows = max(1, min(len(array), CHUNK_BYTES // max(1, row_bytes)))
    return (rows, *(max(1, n) for n in array.shape[1:]))


def _checksum_of_array(array: Array) -> str:
    """Of its bytes in C order, the lowest byte of each number first."""
    little_endian = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return f"{zlib.crc32(little_endian.data.cast('B') if array.size else b''):08x}"


def _checksum_of_json(content: Json) -> str:
    return f"{zlib.crc32(json.dumps(content, sort_keys=True, separators=(',', ':')).encode()):08x}"
