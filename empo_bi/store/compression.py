"""Arrays and groups as the files that zarr would write: metadata in JSON, and chunks, compressed.

Exists because zarr takes 5 to 9 ms of Python per array, whatever its size, which small levels pay dozens of times beside an
explorer that wants the interpreter for itself, and 2 to 3 ms to read one. The bytes are those that zarr writes, and a test
holds them to that.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numcodecs.blosc
import numpy as np
import numpy.typing as npt

from empo_bi.dag.spill import BlockArray
from empo_bi.store.format_names import CHUNK_BYTES, COMPRESSORS
from empo_bi.store.records import ARRAY_METADATA, WHOLE, FormatError, check_record, listed, parsed, shown
from empo_bi.types import Array, Json

_OURS = (["bytes", "blosc", "crc32c"], ["bytes", "crc32c"])  # names of codecs
BLOSC_HEADER = 16


@dataclass(frozen=True)
class Compression:
    """How arrays are compressed: a Blosc compressor (zstd, lz4, lz4hc, blosclz, zlib) and its level, 0 for none at all."""

    level: int = 3
    name: str = "zstd"

    def __post_init__(self) -> None:
        if self.name not in COMPRESSORS or not 0 <= self.level <= 9:
            raise ValueError(f"{self}: expected zstd, lz4, lz4hc, blosclz or zlib, and a level from 0 (off) to 9")

    @classmethod
    def of(cls, given: Compression | bool | int | str) -> Compression:
        """``True`` or ``False``, a level, the name of a compressor, or the thing itself."""
        if isinstance(given, Compression):
            return given
        if isinstance(given, bool):
            return cls() if given else cls(level=0)
        if not isinstance(given, str) and not hasattr(given, "__index__"):
            raise ValueError(f"compression={given!r}; expected True, False, a level from 0 to 9, or a name such as 'lz4'")
        return cls(name=given) if isinstance(given, str) else cls(level=int(given))

    def codecs(self, itemsize: int) -> list[Json]:
        """As array metadata lists them. The checksum comes last, so that damage is found before anything decompresses it."""
        settings = {"typesize": itemsize, "cname": self.name, "clevel": self.level, "shuffle": "shuffle", "blocksize": 0}
        endian = {"configuration": {"endian": "little"}} if itemsize > 1 else {}
        return [
            {"name": "bytes", **endian},
            *([{"name": "blosc", "configuration": settings}] if self.level else []),
            {"name": "crc32c"},
        ]

    def encode(self, chunk: Array) -> bytes:
        if self.level:
            data: bytes = numcodecs.blosc.compress(chunk, self.name.encode(), self.level, numcodecs.blosc.SHUFFLE)
        else:
            data = chunk.tobytes()
        return data + int(google_crc32c.value(data)).to_bytes(4, "little")


def array_files(
    given: Array | BlockArray, dimensions: tuple[str, ...], compression: Compression
) -> Iterator[tuple[str, bytes]]:
    """Names, below the array's own, and contents; the chunks first, so that what has metadata is complete."""
    array = BlockArray.of(given)
    chunk_shape = chunk_shape_of(array)
    blocks = [] if 0 in array.shape else map(little_endian, array.blocks())
    for c, chunk in enumerate(_in_chunks(blocks, chunk_shape, array.dtype)):
        yield chunk_name(c, len(array.shape)), compression.encode(chunk)
    yield (
        "zarr.json",
        _json_bytes(
            {
                "shape": list(array.shape),
                "data_type": array.dtype.name,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk_shape)}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "fill_value": 0.0 if array.dtype.kind == "f" else 0,
                "codecs": compression.codecs(array.dtype.itemsize),
                "attributes": {},
                "dimension_names": list(dimensions),
                "zarr_format": 3,
                "node_type": "array",
                "storage_transformers": [],
            }
        ),
    )


def _in_chunks(blocks: Iterable[Array], chunk_shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[Array]:
    """Blocks of rows cut, or put together, to chunks; the last one is as large as the others, filled up with zeros."""
    chunk, n_rows = np.zeros(0), 0  # the one that is not full yet, and how many rows it has
    for block in blocks:
        begin = 0
        while begin < len(block):
            piece = block[begin : begin + chunk_shape[0] - n_rows]
            begin += len(piece)
            if len(piece) == chunk_shape[0]:
                yield piece
                continue
            if n_rows == 0:
                chunk = np.zeros(chunk_shape, dtype=dtype.newbyteorder("<"))
            chunk[n_rows : n_rows + len(piece)] = piece
            n_rows += len(piece)
            if n_rows == chunk_shape[0]:
                yield chunk
                n_rows = 0
    if n_rows:
        yield chunk


@dataclass(frozen=True)
class StoredArray:
    """What an array's metadata say of it, as far as reading asks for it; codecs by their names."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]  # with the order of bytes that chunks have
    chunk_shape: tuple[int, ...]
    codecs: list[str]
    separator: str = "/"
    checksums: Sequence[str] | None = None  # of chunks of whole rows, in order, if they are known
    is_cut_anew: bool = False  # by others, into other chunks than were recorded

    @classmethod
    def from_json(cls, data: bytes) -> StoredArray:
        """:class:`FormatError` if this is not an array's ``zarr.json``, or has codecs that the format does not know.

        Other codecs are refused, not looked up: there is no telling what they are, and how large what they unpack.
        """
        found = parsed(data)
        check_record(found, ARRAY_METADATA)
        if found.get("storage_transformers"):
            raise FormatError("it has storage transformers, which are not part of the format")
        grid, keys = found["chunk_grid"], found["chunk_key_encoding"]
        names = [codec.get("name") for codec in found["codecs"]]
        if grid.get("name") != "regular" or keys.get("name") != "default" or names not in _OURS:
            raise FormatError(
                f"chunks {shown(grid.get('name'))} with keys {shown(keys.get('name'))} and codecs {shown(names)}; expected "
                f"'regular', 'default' and {' or '.join(map(str, _OURS))}: write the array anew with these"
            )
        chunk_shape = _configured(grid, "chunk_shape", None)
        separator = _configured(keys, "separator", "/")
        endian = _configured(found["codecs"][0], "endian", "little")
        if separator not in ("/", ".") or endian not in ("little", "big"):
            raise FormatError(f"separator {shown(separator)} and order of bytes {shown(endian)} are not known")
        dtype = np.dtype(found["data_type"]).newbyteorder("<" if endian == "little" else ">")
        stored = cls(tuple(found["shape"]), dtype, _checked_chunks(chunk_shape, found["shape"]), names, separator)
        if stored.chunk_bytes > most_chunk_bytes(dtype, stored.shape):
            raise FormatError(f"chunks of {list(stored.chunk_shape)} numbers are larger than any that are written")
        return stored

    @property
    def has_whole_rows(self) -> bool:
        """Whether chunks are as :func:`array_files` makes them, so that some can be read without the others."""
        is_ours = self.dtype == self.dtype.newbyteorder("<") and not self.is_cut_anew
        return is_ours and self.chunk_shape[1:] == tuple(max(1, n) for n in self.shape[1:])

    @property
    def chunk_bytes(self) -> int:
        """Of a chunk that is not compressed."""
        return self.dtype.itemsize * math.prod(self.chunk_shape)

    @property
    def grid(self) -> tuple[int, ...]:
        """Chunks along each dimension."""
        return tuple(math.ceil(n / size) for n, size in zip(self.shape, self.chunk_shape, strict=True))

    def chunk_name(self, place: Sequence[int]) -> str:
        """The file of a chunk, below the array's own name."""
        return self.separator.join(["c", *map(str, place)])

    def part(self, place: Sequence[int]) -> tuple[slice, ...]:
        """What a chunk covers of the array."""
        return tuple(slice(i * size, (i + 1) * size) for i, size in zip(place, self.chunk_shape, strict=True))

    def is_recorded(self, data: bytes, c: int) -> bool:
        """Whether a chunk is the one that its level has recorded as the ``c``-th, or none were recorded."""
        return self.checksums is None or self.checksums[c] == data[-4:].hex()

    def decoded(self, data: bytes) -> Array:
        """A chunk as :func:`array_files` wrote it; ValueError if it was changed, or is of another size than it should be."""
        data, checksum = data[:-4], data[-4:]
        if int(google_crc32c.value(data)).to_bytes(4, "little") != checksum:
            raise ValueError("the checksum of a chunk differs")
        if "blosc" in self.codecs:
            check_blosc_sizes(data, self.chunk_bytes)
            data = numcodecs.blosc.decompress(data)
        elif len(data) != self.chunk_bytes:
            raise ValueError(f"a chunk has {len(data):,} bytes; expected {self.chunk_bytes:,}")
        return little_endian(np.frombuffer(data, dtype=self.dtype).reshape(self.chunk_shape))


def check_blosc_sizes(data: bytes, nbytes: int) -> None:
    """Whether a Blosc buffer says that it has as many bytes as it has, and unpacks to ``nbytes``.

    Blosc believes its header: it would read beyond the end of the buffer, and take any amount of memory.
    """
    if len(data) < BLOSC_HEADER:
        raise ValueError(f"a chunk has {len(data)} bytes, less than a header of Blosc")
    unpacked, _, packed = struct.unpack_from("<III", data, 4)
    if packed != len(data) or unpacked != nbytes:
        raise ValueError(
            f"a chunk of {len(data):,} bytes says that it has {packed:,} bytes and unpacks to {unpacked:,}; expected "
            f"{nbytes:,}"
        )


def _configured(thing: Json, name: str, default: Any) -> Any:
    found = thing.get("configuration") or {}
    return found.get(name, default) if isinstance(found, dict) else None


def _checked_chunks(chunk_shape: Any, shape: list[int]) -> tuple[int, ...]:
    if not listed(WHOLE).fits(chunk_shape) or len(chunk_shape) != len(shape) or 0 in chunk_shape:
        raise FormatError(f"chunks of shape {shown(chunk_shape)} for an array of shape {shape}")
    return tuple(chunk_shape)


def most_chunk_bytes(dtype: npt.DTypeLike, shape: Sequence[int]) -> int:
    """Of a chunk that is read: 64 MB, sixteen times what we write, unless a single row has more."""
    return max(64 << 20, np.dtype(dtype).itemsize * math.prod(shape[1:]))


def chunk_name(c: int, n_dimensions: int) -> str:
    """The file of a chunk of whole rows, below the array's own name."""
    return "/".join(["c", *([str(c)] if n_dimensions else []), *["0"] * (n_dimensions - 1)])


def group_file(attributes: Json) -> bytes:
    """The ``zarr.json`` of a group."""
    return _json_bytes({"attributes": attributes, "zarr_format": 3, "node_type": "group"})


def little_endian(array: Array) -> Array:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def chunk_shape_of(array: Array | BlockArray) -> tuple[int, ...]:
    """Whole rows, a few megabytes of them; a small array is one chunk."""
    row_bytes = array.dtype.itemsize * math.prod(array.shape[1:])
    rows = max(1, min(len(array), CHUNK_BYTES // max(1, row_bytes)))
    return (rows, *(max(1, n) for n in array.shape[1:]))


def _json_bytes(content: Json) -> bytes:
    return json.dumps(content, indent=2).encode()
