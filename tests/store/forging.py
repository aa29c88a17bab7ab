"""Rewriting stores by hand, with checksums that agree: written from docs/format.md, without the engine.

What a thoughtful vandal would do: arrays and records say something else afterwards, and no checksum tells.
"""

from __future__ import annotations

import copy
import json
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import google_crc32c
import numcodecs.blosc
import numpy as np

Tree = dict[str, bytes]  # files of a folder, by their names in it


def tree_of(folder: Path) -> Tree:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def put_tree(tree: Tree, folder: Path) -> None:
    for name, data in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


# --- records ----------------------------------------------------------------------------------------------------------


def record_of(tree: Tree, name: str) -> Any:
    """The attribute ``empo_bi`` of a group, without its checksum; None for files that have none."""
    found = json.loads(tree[name]).get("attributes", {}).get("empo_bi")
    return None if found is None else {key: value for key, value in found.items() if key != "crc32"}


def put_record(tree: Tree, name: str, record: Any) -> None:
    whole = json.loads(tree[name])
    signed = record
    if isinstance(record, dict):
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        signed = {**record, "crc32": f"{zlib.crc32(text.encode('ascii')):08x}"}
    whole["attributes"]["empo_bi"] = signed
    tree[name] = json.dumps(whole, indent=2).encode()
    if isinstance(record, dict) and "format" in record:  # a manifest: its checksum is in all other records of its store
        for other in records_in(tree):
            if other != name and other.startswith(name.removesuffix("zarr.json")):
                found = record_of(tree, other)
                if isinstance(found, dict) and "manifest" in found:
                    put_record(tree, other, {**found, "manifest": signed["crc32"]})


def manifest_of_run(run: Path) -> dict[str, Any]:
    """What ``manifest.json`` says, without its checksum: who changes it leaves that out, as earlier versions did."""
    return {name: value for name, value in json.loads((run / "manifest.json").read_text()).items() if name != "crc32"}


def records_in(tree: Tree) -> list[str]:
    return [name for name in tree if name.endswith("zarr.json") and b'"empo_bi"' in tree[name]]


# --- arrays -----------------------------------------------------------------------------------------------------------


def arrays_in(tree: Tree) -> list[str]:
    """Folders of arrays, such as ``dag/level_00003/succ``."""
    return [name.removesuffix("/zarr.json") for name in tree if b'"node_type": "array"' in tree[name]]


def array_of(tree: Tree, folder: str) -> np.ndarray:
    about = json.loads(tree[f"{folder}/zarr.json"])
    shape, dtype = about["shape"], np.dtype(about["data_type"])
    rows = about["chunk_grid"]["configuration"]["chunk_shape"][0]
    is_packed = any(codec["name"] == "blosc" for codec in about["codecs"])
    parts = []
    for c in range(-(-shape[0] // rows)):
        data = tree[f"{folder}/c/{'/'.join([str(c), *['0'] * (len(shape) - 1)])}"][:-4]
        data = numcodecs.blosc.decompress(data) if is_packed else data
        parts.append(np.frombuffer(data, dtype).reshape(rows, *shape[1:]))
    return np.concatenate(parts)[: shape[0]].copy()


def put_array(tree: Tree, folder: str, array: np.ndarray, *, tells_shape: bool = True) -> None:
    """Replace an array, as one chunk, in its own metadata and wherever a commit marker speaks of it."""
    for name in [name for name in tree if name.startswith(f"{folder}/c/")]:
        del tree[name]
    about = json.loads(tree[f"{folder}/zarr.json"])
    about["shape"], about["data_type"] = list(array.shape), array.dtype.name
    about["chunk_grid"]["configuration"]["chunk_shape"] = [max(1, n) for n in array.shape]
    is_packed = any(codec["name"] == "blosc" for codec in about["codecs"])
    tree[f"{folder}/zarr.json"] = json.dumps(about, indent=2).encode()
    data = numcodecs.blosc.compress(array, b"zstd", 3, numcodecs.blosc.SHUFFLE) if is_packed else array.tobytes()
    tree[f"{folder}/c/{'/'.join(['0'] * array.ndim)}"] = data + signature(data)
    group, _, name = folder.rpartition("/")
    said: dict[str, Any] = {"crc32": f"{zlib.crc32(np.ascontiguousarray(array).tobytes()):08x}"}
    said["chunks"] = [signature(data).hex()] if array.size else []
    if tells_shape:
        said |= {"dtype": array.dtype.name, "shape": list(array.shape)}
    for file, record, arrays in abouts_of(tree, group):
        if name in arrays:
            arrays[name].update(said)
            put_record(tree, file, record)


def abouts_of(tree: Tree, group: str) -> Iterator[tuple[str, Any, Any]]:
    """Records that speak of a group's arrays: its own, and for a level the list of a finished store."""
    own = record_of(tree, f"{group}/zarr.json")
    if isinstance(own, dict):
        yield f"{group}/zarr.json", own, own.get("arrays", own)
    store, _, level = group.rpartition("/")
    end = f"{store}/finished/zarr.json".lstrip("/")
    if end in tree and level.startswith("level_"):
        record = record_of(tree, end)
        if isinstance(record, dict) and isinstance(record.get("levels"), list):
            t = int(level.removeprefix("level_"))
            if t < len(record["levels"]) and isinstance(record["levels"][t], dict):
                yield end, record, record["levels"][t].get("arrays", {})


def signature(data: bytes) -> bytes:
    return int(google_crc32c.value(data)).to_bytes(4, "little")


# --- mutations --------------------------------------------------------------------------------------------------------

DEEP: Any = json.loads("[" * 500 + "]" * 500)
NASTY: tuple[Any, ...] = (
    -1, 0, 1, 2, 7, 2**31 - 1, 2**31, 2**32, 2**53, 10**12, 10**30, -(10**9), 1.5, 0.1, float("nan"), float("inf"), True,
    False, None, "", "x", "array", "members", "added", "key", "../../etc/passwd", "\x1b[31m", "\ud800", "os:system",
    "float16", "uint8",
    [], {}, [0, 1], [1, 0], [0, 10**9], [-1, 1], [0, 2**40], [[]], {"a": 1}, DEEP, "y" * 10_000,
)  # fmt: skip


def places_in(thing: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to everything inside a value of JSON."""
    items = thing.items() if isinstance(thing, dict) else enumerate(thing) if isinstance(thing, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places_in(value, (*path, key))


def nasty_json(thing: Any, rng: random.Random) -> str:
    """Change one thing inside a value of JSON; returns what was done."""
    path = rng.choice(list(places_in(thing)))
    inside = thing
    for key in path[:-1]:
        inside = inside[key]
    old, how = inside[path[-1]], rng.random()
    if how < 0.1 and isinstance(inside, dict):
        del inside[path[-1]]
        return f"{path} deleted"
    if how < 0.4 and type(old) is int:
        inside[path[-1]] = old + rng.choice([-1, 1, 2, 100, 10**6])
    elif how < 0.4 and isinstance(old, list) and old:
        inside[path[-1]] = rng.choice([old[::-1], old + old[-1:], old[:-1], old * 2])
    elif how < 0.5:
        inside[path[-1]] = copy.deepcopy(rng.choice(list(inside.values() if isinstance(inside, dict) else inside)))
    else:
        inside[path[-1]] = copy.deepcopy(rng.choice(NASTY))
    return f"{path}: {str(old)[:40]} -> {str(inside[path[-1]])[:40]}"


def change_record(tree: Tree, rng: random.Random) -> str:
    """A manifest, a commit marker or another record; the copy of a level's marker that counts is changed as well."""
    name = rng.choice(records_in(tree))
    record = record_of(tree, name)
    if not isinstance(record, dict) or not record:
        return "nothing"
    what = nasty_json(record, rng)
    put_record(tree, name, record)
    group = name.removesuffix("/zarr.json")
    store, _, level = group.rpartition("/")
    end = f"{store}/finished/zarr.json".lstrip("/")
    if level.startswith("level_") and end in tree and rng.random() < 0.8:
        levels = record_of(tree, end)
        if isinstance(levels, dict) and isinstance(levels.get("levels"), list):
            t = int(level.removeprefix("level_"))
            if t < len(levels["levels"]):
                levels["levels"][t] = record
                put_record(tree, end, levels)
    return f"record {name}: {what}"


def change_metadata(tree: Tree, rng: random.Random) -> str:
    """An array's or a group's own ``zarr.json``, as Zarr has it."""
    name = rng.choice([name for name in tree if name.endswith("zarr.json")])
    whole = json.loads(tree[name])
    what = nasty_json(whole, rng)
    tree[name] = json.dumps(whole, indent=2).encode()
    return f"metadata {name}: {what}"


def change_numbers(tree: Tree, rng: random.Random) -> str:
    """Numbers of an array."""
    folder = rng.choice(arrays_in(tree))
    array = array_of(tree, folder)
    draw = np.random.default_rng(rng.randrange(2**32))
    how = rng.choice(["one", "one", "one", "some", "shuffle", "reverse", "constant", "shift", "noise"])
    if array.size == 0:
        return "nothing"
    special: list[Any] = [0, 1, 2, array.max(), array.min(), array.flat[draw.integers(array.size)]]
    if array.dtype.kind == "f":
        special += [np.nan, np.inf, -np.inf, -1.0, -0.5, 0.5, 1e-8, 2.0, 1e300, -1e300]
    else:
        top = np.iinfo(array.dtype).max
        special += [top, top // 2, top // 2 + 1, min(top, int(array.max()) + 1), min(top, 1 << 20)]
    with np.errstate(all="ignore"):
        value = np.array(special[draw.integers(len(special))]).astype(array.dtype)
        if how == "one":
            array.flat[draw.integers(array.size)] = value
        elif how == "some":
            array.flat[draw.integers(array.size, size=max(1, array.size // 3))] = value
        elif how == "shuffle":
            draw.shuffle(array)
        elif how == "reverse":
            array = array[::-1].copy()
        elif how == "constant":
            array[...] = value
        elif how == "shift":
            array = (array + np.array(1, array.dtype)).astype(array.dtype)
        else:
            array = np.frombuffer(draw.bytes(array.nbytes), array.dtype).reshape(array.shape).copy()
    put_array(tree, folder, array)
    return f"numbers {folder}: {how} {value}"


def change_shape(tree: Tree, rng: random.Random) -> str:
    """Shape or type of an array, with the numbers in a marker that belong to it in every other case."""
    folder = rng.choice(arrays_in(tree))
    array = array_of(tree, folder)
    how = rng.choice(["shorter", "longer", "wider", "flat", "type", "one", "none", "taller"])
    if how == "shorter":
        array = array[: max(1, len(array) - rng.choice([1, 2, 8]))]
    elif how == "longer":
        array = np.concatenate([array, array[-1:], array[-1:]])
    elif how == "wider" and array.ndim > 1:
        array = np.concatenate([array, array[:, -1:]], axis=1)
    elif how == "flat":
        array = array.ravel()
    elif how == "type":
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(["uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]))
    elif how == "one":
        array = array[:1]
    elif how == "none":
        array = array[:0]
    else:
        array = array[np.newaxis]
    put_array(tree, folder, np.ascontiguousarray(array), tells_shape=rng.random() < 0.9)
    group, _, name = folder.rpartition("/")
    counts = {
        "succ": "n_transitions",
        "prob": "n_transitions",
        "members": "n_states",
        "key": "n_bodies",
        "count": "n_expanded",
    }
    if name in counts and rng.random() < 0.5:
        for file, record, _ in list(abouts_of(tree, group)):
            levels = record.get("levels")
            marker = record if levels is None else levels[int(group.rpartition("level_")[2])]
            marker[counts[name]] = len(array)
            put_record(tree, file, record)
    return f"shape {folder}: {how} {array.dtype} {array.shape}"


def change_packed(tree: Tree, rng: random.Random) -> str:
    """Bytes of a compressed chunk, whose own checksum agrees."""
    name = rng.choice([name for name in tree if "/c/" in name])
    data = bytearray(tree[name][:-4])
    if not data:
        return "nothing"
    if rng.random() < 0.4 and len(data) >= 16:  # sizes in the header of Blosc
        struct.pack_into("<I", data, rng.choice([4, 8, 12]), rng.choice([0, 1, 15, 16, 2**20, 2**31 - 1, 2**31, 2**32 - 1]))
    for _ in range(rng.choice([0, 1, 1, 3, 20])):
        data[rng.randrange(min(len(data), rng.choice([16, 64, 10**9])))] = rng.randrange(256)
    if rng.random() < 0.1:
        data = data[: rng.randrange(len(data))]
    tree[name] = bytes(data) + signature(bytes(data))
    return f"packed {name}"


def change_files(tree: Tree, rng: random.Random) -> str:
    """Whole files: one is gone, or has what another one has."""
    name, other = rng.choice(list(tree)), rng.choice(list(tree))
    if rng.random() < 0.5:
        del tree[name]
        return f"file {name}: deleted"
    tree[name] = tree[other]
    return f"file {name}: that of {other}"


CHANGES = (
    change_record,
    change_record,
    change_metadata,
    change_numbers,
    change_numbers,
    change_shape,
    change_packed,
    change_files,
)


def forged(master: Tree, seed: int) -> tuple[Tree, list[str]]:
    """A store that was changed in one to three places, and what was done; the same for the same seed."""
    rng, tree = random.Random(seed), dict(master)
    done = []
    chosen = rng.choices(CHANGES, k=rng.choice([1, 1, 1, 2, 3]))
    for change in sorted(chosen, key=lambda change: change is change_packed):  # last: nobody else is to unpack that
        try:
            done.append(change(tree, rng))
        except (ValueError, KeyError, TypeError, IndexError, RuntimeError, AttributeError, OverflowError) as error:
            done.append(f"nothing, {error!r}")  # a change before this one has left no sense in what is changed
    return tree, done
