"""Arrays and groups as the files that zarr would write: metadata in JSON, and chunks, compressed.

Exists because zarr takes 5 to 9 ms of Python per array, whatever its size, which small levels pay dozens of times beside an
explorer that wants the interpreter for itself, and 2 to 3 ms to read one. The bytes are those that zarr writes, and a test
holds them to that.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import google_crc32c
import numcodecs.blosc
import numpy as np
import numpy.typing as npt

from empo_bi.dag.spill import BlockArray
from empo_bi.store.layout import CHUNK_BYTES

_OURS = (["bytes", "blosc", "crc32c"], ["bytes", "crc32c"])  # names of codecs

Json = dict[str, Any]
Array = npt.NDArray[Any]


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
    dtype: np.dtype[Any]
    chunk_shape: tuple[int, ...]
    codecs: list[str]
    is_plain: bool = True  # little-endian, with chunks where we put them

    @classmethod
    def from_json(cls, data: bytes) -> StoredArray:
        """KeyError, TypeError or ValueError if this is no array's ``zarr.json``."""
        found = json.loads(data)
        if found["zarr_format"] != 3 or found["node_type"] != "array":
            raise ValueError(f"{found['node_type']!r} of zarr format {found['zarr_format']!r}, not an array of format 3")
        chunk_shape = found["chunk_grid"]["configuration"]["chunk_shape"]
        codecs = [str(codec["name"]) for codec in found["codecs"]]
        order = (found["codecs"][0].get("configuration") or {}).get("endian", "little")
        keys = found["chunk_key_encoding"]
        separator = (keys.get("configuration") or {}).get("separator", "/")
        is_plain = (order, keys["name"], separator, found["chunk_grid"]["name"]) == ("little", "default", "/", "regular")
        is_plain = is_plain and not found.get("storage_transformers")
        return cls(tuple(found["shape"]), np.dtype(found["data_type"]), tuple(chunk_shape), codecs, is_plain)

    @property
    def is_ours(self) -> bool:
        """Whether it is laid out as :func:`array_files` does it: whole rows, codecs that we write."""
        whole_rows = tuple(max(1, n) for n in self.shape[1:])
        return (
            self.is_plain
            and self.codecs in _OURS
            and len(self.chunk_shape) == len(self.shape)
            and self.chunk_shape[1:] == whole_rows
        )

    @property
    def n_chunks(self) -> int:
        if 0 in self.shape:
            return 0
        return math.ceil(self.shape[0] / self.chunk_shape[0]) if self.shape else 1


def chunk_name(c: int, n_dimensions: int) -> str:
    """The file of a chunk of whole rows, below the array's own name."""
    return "/".join(["c", *([str(c)] if n_dimensions else []), *["0"] * (n_dimensions - 1)])


def decoded_chunk(data: Any, codecs: list[str], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """A chunk as :func:`array_files` wrote it, by the names of its codecs; ValueError if it was changed."""
    if codecs not in _OURS:
        raise ValueError(f"codecs {codecs}, which empo_bi does not write")
    data, checksum = data[:-4], data[-4:]
    if int(google_crc32c.value(data)).to_bytes(4, "little") != checksum:
        raise ValueError("the checksum of a chunk differs")
    content = numcodecs.blosc.decompress(data) if "blosc" in codecs else data
    return np.frombuffer(content, dtype=dtype.newbyteorder("<")).reshape(shape)


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
