"""The files that we write ourselves, for speed, are to the byte those that zarr writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from store_tools import tree
from zarr.codecs import BloscCodec, Crc32cCodec

from empo_bi.store import encoded
from empo_bi.store.encoded import Compression, array_files, chunk_shape_of, group_file

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
