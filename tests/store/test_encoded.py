"""The files that we write ourselves, for speed, are to the byte those that zarr writes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from store_tools import tree
from zarr.codecs import BloscCodec, Crc32cCodec

from empo_bi import DamagedStoreError
from empo_bi.store import compression as encoded
from empo_bi.store.compression import Compression, array_files, chunk_shape_of, group_file
from empo_bi.store.zarr_files import ZarrFiles

DTYPES = ["uint8", "uint16", "uint32", "uint64", "int32", "int64", "float16", "float32", "float64"]


def files_of(folder: Path) -> dict[str, bytes]:
    return {name: data for name, data in tree(folder).items() if data is not None}


def as_zarr_writes_it(folder: Path, array: np.ndarray, dimensions: tuple[str, ...], compression: Compression) -> dict:
    blosc: Any = BloscCodec(
        cname=compression.name, clevel=compression.level, shuffle="shuffle", typesize=array.dtype.itemsize
    )
    zarr.create_array(
        folder,
        data=array,
        chunks=chunk_shape_of(array),
        compressors=[*([blosc] if compression.level else []), Crc32cCodec()],
        filters=None,
        dimension_names=dimensions,
        config={"write_empty_chunks": True},
        overwrite=True,
    )
    return files_of(folder)


@settings(max_examples=60, deadline=None)
@given(
    dtype=st.sampled_from(DTYPES),
    shape=st.one_of(st.tuples(st.integers(1, 3000)), st.tuples(st.integers(1, 300), st.integers(1, 70))),
    compression=st.builds(Compression, level=st.integers(0, 9), name=st.sampled_from(["zstd", "lz4", "blosclz", "zlib"])),
    chunk_bytes=st.sampled_from([64, 1000, 1 << 20]),
    seed=st.integers(0, 2**32 - 1),
)
def test_arrays_have_the_bytes_that_zarr_gives_them(tmp_path_factory, dtype, shape, compression, chunk_bytes, seed) -> None:
    array = np.random.default_rng(seed).integers(0, 100, shape).astype(dtype)
    dimensions = ("row", "column")[: array.ndim]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoded, "CHUNK_BYTES", chunk_bytes)
        ours = dict(array_files(array, dimensions, compression))
        theirs = as_zarr_writes_it(tmp_path_factory.mktemp("array") / "a", array, dimensions, compression)
    assert ours == theirs


def test_groups_have_the_bytes_that_zarr_gives_them(tmp_path: Path) -> None:
    attributes = {"empo_bi": {"number": 1.5, "text": "ü", "list": [1, None, True]}}
    zarr.create_group(tmp_path / "g", attributes=attributes, zarr_format=3)
    assert files_of(tmp_path / "g") == {"zarr.json": group_file(attributes)}


@settings(max_examples=60, deadline=None)
@given(
    dtype=st.sampled_from(DTYPES),
    shape=st.one_of(
        st.tuples(st.integers(0, 3000)), st.tuples(st.integers(1, 300), st.integers(1, 70)),
        st.tuples(st.integers(1, 40), st.integers(1, 5), st.integers(1, 7)),
    ),
    compression=st.builds(Compression, level=st.integers(0, 9)),
    chunk_bytes=st.sampled_from([64, 1000, 1 << 20]),
)  # fmt: skip
def test_arrays_are_read_as_they_were_written(tmp_path_factory, dtype, shape, compression, chunk_bytes) -> None:
    array = np.random.default_rng(1).integers(0, 100, shape).astype(dtype)
    files = ZarrFiles("here", zarr.storage.LocalStore(tmp_path_factory.mktemp("array")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoded, "CHUNK_BYTES", chunk_bytes)
        about = files.write_array("g", "a", array, ("x", "y", "z")[: array.ndim], compression)
    found = files.read_arrays("g", {"a": about})["a"]
    assert found.dtype == array.dtype
    assert found.flags.writeable
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("chunks", [(7, 5), (3, 2)])
def test_other_chunks_than_ours_are_read(tmp_path: Path, chunks: tuple[int, int]) -> None:
    """The numbers are the same, so the checksum of the array is."""
    array = np.arange(35.0).reshape(7, 5)
    files = ZarrFiles("here", zarr.storage.LocalStore(tmp_path))
    about = files.write_array("g", "a", array, ("x", "y"), Compression())
    options: Any = {"chunks": chunks, "overwrite": True, "compressors": [BloscCodec(typesize=8), Crc32cCodec()]}
    zarr.create_array(tmp_path / "g" / "a", data=array, **options)
    np.testing.assert_array_equal(files.read_array("g", "a", about), array)
    zarr.create_array(tmp_path / "g" / "a", data=array + 1, **options)
    with pytest.raises(DamagedStoreError, match="checksum differs"):
        files.read_array("g", "a", about)


def test_other_codecs_than_those_of_the_format_are_refused_not_looked_up(tmp_path: Path) -> None:
    """Nobody knows what a codec is that metadata name, nor how much it unpacks to."""
    array = np.arange(35.0).reshape(7, 5)
    files = ZarrFiles("here", zarr.storage.LocalStore(tmp_path))
    about = files.write_array("g", "a", array, ("x", "y"), Compression())
    zarr.create_array(tmp_path / "g" / "a", data=array, overwrite=True)
    with pytest.raises(DamagedStoreError, match=r"group g, array 'a'.*codecs \['bytes', 'zstd'\]; expected"):
        files.read_array("g", "a", about)


@pytest.mark.parametrize("place", [4, 12])
@pytest.mark.parametrize("size", [0, 8, 2**31 - 1, 2**32 - 1])
def test_sizes_in_a_chunk_are_checked_before_it_is_unpacked(tmp_path: Path, place: int, size: int) -> None:
    """Blosc would believe its header, and read beyond the buffer."""
    array = np.arange(3500.0).reshape(700, 5)
    files = ZarrFiles("here", zarr.storage.LocalStore(tmp_path))
    about = files.write_array("g", "a", array, ("x", "y"), Compression())
    data = bytearray((tmp_path / "g/a/c/0/0").read_bytes()[:-4])
    struct.pack_into("<I", data, place, size)
    (tmp_path / "g/a/c/0/0").write_bytes(bytes(data) + int(google_crc32c.value(bytes(data))).to_bytes(4, "little"))
    with pytest.raises(DamagedStoreError, match="says that it has"):
        files.read_array("g", "a", about)


@pytest.mark.parametrize("how", ["halved rows", "big-endian", "dots"])
def test_rows_of_what_others_have_packed_anew_are_right(tmp_path: Path, how: str) -> None:
    array = np.arange(40, dtype=np.int32).reshape(10, 4)
    files = ZarrFiles("here", zarr.storage.LocalStore(tmp_path))
    about = files.write_array("g", "a", array, ("x", "y"), Compression())
    options: dict[str, Any] = {"chunks": (10, 2) if how == "halved rows" else (10, 4)}
    if how == "big-endian":
        options["serializer"] = zarr.codecs.BytesCodec(endian="big")
    if how == "dots":
        options["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "."}}
    blosc: Any = BloscCodec(cname="zstd", clevel=3, shuffle="shuffle", typesize=4)
    zarr.create_array(
        tmp_path / "g" / "a", data=array, compressors=[blosc, Crc32cCodec()], filters=None, overwrite=True, **options
    )
    np.testing.assert_array_equal(files.read_array("g", "a", about), array)
    for places in (range(2, 4), range(10), np.array([1, 7])):
        rows = np.concatenate([rows for _, rows in files.read_pieces("g", "a", about, places)])
        np.testing.assert_array_equal(rows, array[places])
