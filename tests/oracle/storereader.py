"""A reader of slice stores, written from docs/format.md alone. It is strict: whatever the page does not mention is an error,
even a new field, which the page tells other readers to ignore.

Everything comes out as lists, tuples and plain numbers, nothing left out and no number referring to another level's arrays.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import zarr
from zarr.buffer import default_buffer_prototype
from zarr.storage import ZipStore

MANIFEST_FIELDS = {"format", "version", "written_by", "title", "world", "content", "n_agents", "n_actions", "n_profiles"}
MANIFEST_FIELDS |= {"shares_bodies", "humans", "goals"}
SUB_PROBLEM_FIELDS = {"start", "n_starts", "stop"}  # which the content of a whole world does not have
CONTENT_FIELDS = {"world", "horizon", "levels", "precision", "goals"}
SLICE_FIELDS = {
    "value", "n_states", "n_bodies", "n_expanded", "n_transitions", "n_known", "members", "added", "expanded", "ended",
    "attained_by_body", "arrays",
}  # fmt: skip
LEVEL_FIELDS = SLICE_FIELDS | {"level", "frontier"}
ARRAY_FIELDS = {"dtype", "shape", "crc32", "chunks"}
UNSIGNED = {"uint8", "uint16", "uint32"}
FLOATS = ("float16", "float32", "float64")
# Dimensions and types of every array. Those of `attained` depend on the marker.
ARRAYS: dict[str, tuple[tuple[str, ...], set[str]]] = {
    "key": (("body", "word"), {"uint64"}),
    "states": (("character",), {"uint8"}),
    "members": (("state",), UNSIGNED),
    "added": (("body",), UNSIGNED),
    "expanded": (("row",), UNSIGNED),
    "ended": (("state_byte",), {"uint8"}),
    "count": (("row", "profile"), UNSIGNED),
    "succ": (("transition",), UNSIGNED),
    "prob": (("transition",), set(FLOATS)),
    "attained": (("state", "byte"), {"uint8"}),
}

Transitions = list[list[tuple[int, float]]]  # one list per profile of (body that follows, probability)


class FormatError(Exception):
    """The store is not as docs/format.md says."""


class Level(NamedTuple):
    """A level in full. ``transitions[s][j]`` is empty for states that have ended."""

    number: int
    value: int
    bodies: list[int]
    ended: list[bool]
    transitions: list[Transitions]
    keys: list[tuple[int, ...]] | None
    states: list[Any] | None  # values of JSON, arrays as tuples
    attained: np.ndarray | None  # (state, human, goal) bool


class Slice:
    """One group, a level's or one of a frontier: its marker, and its arrays once they are asked for."""

    def __init__(self, group: zarr.Group, marker: dict[str, Any], n_profiles: int) -> None:
        self.group, self.marker, self.n_profiles = group, marker, n_profiles
        self._arrays: dict[str, np.ndarray] = {}
        self.members, self.added, self.expanded = (self._bodies(name) for name in ("members", "added", "expanded"))
        self.row_of = {body: row for row, body in enumerate(self.expanded)}
        check(set(group.array_keys()) == set(marker["arrays"]), f"{group.path}: other arrays than in the marker")
        sizes = (marker["n_states"], marker["n_bodies"], marker["n_expanded"])
        check(sizes == (len(self.members), len(self.added), len(self.expanded)), f"{group.path}: sizes")
        self._rows: list[Transitions] | None = None

    def array(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            self._arrays[name] = self._read_array(name)
        return self._arrays[name]

    def _read_array(self, name: str) -> np.ndarray:
        """Read an array and hold it to its marker: type, shape, checksum."""
        about, node, where = self.marker["arrays"][name], self.group[name], f"{self.group.path}/{name}"
        check(set(about) == ARRAY_FIELDS, f"{where}: fields {sorted(about)}")
        dimensions, types = ARRAYS[name]
        if name == "attained" and self.marker["attained_by_body"]:
            dimensions = ("body", "byte")
        check(node.metadata.dimension_names == dimensions, f"{where}: dimensions {node.metadata.dimension_names}")
        codecs = [codec.to_dict()["name"] for codec in node.metadata.codecs]
        check(codecs in (["bytes", "crc32c"], ["bytes", "blosc", "crc32c"]), f"{where}: codecs {codecs}")
        array = np.asarray(node[...])
        check(array.dtype.name == about["dtype"] and about["dtype"] in types, f"{where}: type {array.dtype}")
        check(list(array.shape) == about["shape"], f"{where}: shape {array.shape}")
        little_endian = array.astype(array.dtype.newbyteorder("<"))
        check(f"{zlib.crc32(little_endian.tobytes(order='C')):08x}" == about["crc32"], f"{where}: checksum")
        names = ["/".join(["c", str(i), *["0"] * (array.ndim - 1)]) for i in range(len(about["chunks"]))]
        stored = [asyncio.run(node.store.get(f"{node.path}/{name}", default_buffer_prototype())) for name in names]
        check([chunk.to_bytes()[-4:].hex() for chunk in stored] == about["chunks"], f"{where}: checksums of chunks")
        check(len(stored) == math.prod(node.cdata_shape), f"{where}: number of chunks")
        if types == UNSIGNED:
            check(array.dtype == np.min_scalar_type(int(array.max(initial=0))), f"{where}: a narrower type would do")
        return array

    def optional(self, name: str) -> np.ndarray | None:
        return self.array(name) if name in self.marker["arrays"] else None

    def _bodies(self, name: str) -> list[int]:
        given = self.marker[name]
        if isinstance(given, str):
            numbers = [int(number) for number in self.array(given)]
            check(given == name or name not in self.marker["arrays"], f"{self.group.path}: {name} is there twice")
        else:
            first, end = given
            numbers = list(range(first, end))
        check(all(a < b for a, b in itertools.pairwise(numbers)), f"{self.group.path}: {name} do not ascend")
        return numbers

    def ended(self) -> list[bool]:
        """One flag a state."""
        ended = self.marker["ended"]
        if isinstance(ended, bool):
            check("ended" not in self.marker["arrays"], f"{self.group.path}: ended is there twice")
            return [ended] * len(self.members)
        check(ended == "array", f"{self.group.path}: ended is {ended!r}")
        return bits(self.array("ended"), len(self.members))

    def rows(self) -> list[Transitions]:
        """Transitions of every expanded body."""
        if self._rows is None:
            self._rows = list(self._read_rows())
        return self._rows

    def _read_rows(self) -> Iterator[Transitions]:
        n_rows = len(self.expanded)
        if "succ" not in self.marker["arrays"]:
            check(n_rows == 0 and self.marker["n_transitions"] == 0, f"{self.group.path}: succ is missing")
            check(not {"count", "prob"} & set(self.marker["arrays"]), f"{self.group.path}: counts of nothing")
            return
        succ, count, prob = self.array("succ"), self.optional("count"), self.optional("prob")
        counts = [[1] * self.n_profiles] * n_rows if count is None else count.tolist()
        check(len(counts) == n_rows and all(len(row) == self.n_profiles for row in counts), f"{self.group.path}: count")
        n = sum(map(sum, counts))
        check(n == len(succ) == self.marker["n_transitions"], f"{self.group.path}: {len(succ)} transitions, not {n}")
        check(prob is None or len(prob) == n, f"{self.group.path}: prob")
        k = 0
        for row in counts:
            transitions = []
            for many in row:
                stored = [1.0] * many if prob is None else [float(p) for p in prob[k : k + many]]
                total = 1.0 if prob is None or prob.dtype.name == "float64" else sum(stored)
                transitions.append([(int(succ[k + i]), stored[i] / total) for i in range(many)])
                k += many
            yield transitions

    def keys(self) -> list[tuple[int, ...]] | None:
        """Of the added bodies, in a gridworld."""
        key = self.optional("key")
        if key is None and len(self.added) == 0:
            return []
        check(key is None or len(key) == len(self.added), f"{self.group.path}: key")
        return None if key is None else [tuple(int(word) for word in row) for row in key]

    def states(self) -> list[Any] | None:
        """Of the added bodies, in a Python world."""
        characters = self.optional("states")
        if characters is None:
            return None if len(self.added) else []
        text = characters.tobytes().decode("ascii")
        check(text == "" or text.endswith("\n"), f"{self.group.path}: the last state has no end")
        lines = text.split("\n")[:-1]
        check(len(lines) == len(self.added), f"{self.group.path}: {len(lines)} states")
        values = [json.loads(line) for line in lines]
        check(lines == [json.dumps(value, separators=(",", ":")) for value in values], f"{self.group.path}: white space")
        return [as_tuples(value) for value in values]


class StoreReader:
    """A store in a folder, or in a file whose name ends in ``.zip``."""

    def __init__(self, path: Any) -> None:
        self.root = zarr.open_group(ZipStore(path, mode="r") if str(path).endswith(".zip") else path, mode="r")
        self.manifest = unsealed(self.root)
        check((self.manifest["format"], self.manifest["version"]) == ("empo_bi DAG", 1), "another format")
        check(set(self.manifest) - {"own_goals"} == MANIFEST_FIELDS, f"manifest: fields {sorted(self.manifest)}")
        check(
            set(self.manifest["content"]) - SUB_PROBLEM_FIELDS == CONTENT_FIELDS,
            f"content: fields {sorted(self.manifest['content'])}",
        )
        check((self.manifest["humans"] is None) == (self.manifest["goals"] is None), "only one of humans and goals")
        self.n_profiles: int = self.manifest["n_profiles"]
        self.shares_bodies: bool = self.manifest["shares_bodies"]
        self.is_finished = "finished" in self.root and "empo_bi" in self.root["finished"].attrs
        self.markers = self._committed()
        if self.is_finished:
            finished = self._bound(self.root["finished"])
            check(finished == {"levels": self.markers}, "the markers differ from `finished`")
        self.slices = [Slice(self.root[f"level_{t:05}"], m, self.n_profiles) for t, m in enumerate(self.markers)]
        self._check_bodies()

    def _bound(self, group: zarr.Group) -> dict[str, Any]:
        """An attribute without the checksum of the manifest that it belongs to."""
        content = unsealed(group)
        check(content.pop("manifest") == self.root.attrs["empo_bi"]["crc32"], f"{group.path}: of another manifest")
        return content

    def _committed(self) -> list[dict[str, Any]]:
        """Markers of the levels from the first to the last one that was committed."""
        markers: list[dict[str, Any]] = []
        while (name := f"level_{len(markers):05}") in self.root and "empo_bi" in self.root[name].attrs:
            marker = self._bound(self.root[name])
            check(set(marker) == LEVEL_FIELDS, f"{name}: fields {sorted(marker)}")
            check(marker["level"] == len(markers), f"{name}: says level {marker['level']}")
            check(not markers or marker["value"] > markers[-1]["value"], f"{name}: values do not ascend")
            markers.append(marker)
        return markers

    def _check_bodies(self) -> None:
        """Every body is added once, and expanded at most once."""
        added = [body for piece in self.slices for body in piece.added]
        expanded = [body for piece in self.slices for body in piece.expanded]
        check(len(set(added)) == len(added) and len(set(expanded)) == len(expanded), "a body comes twice")
        if self.shares_bodies:
            check(added == list(range(len(added))), "bodies are not numbered in the order of the levels that add them")
        if self.is_finished:
            check(set(added) == set(range(len(added))), "numbers of bodies have gaps")

    def frontier(self) -> list[Slice]:
        """What the last level knew of those to come; empty in a finished store."""
        if self.is_finished:
            return []
        group = f"frontier_{len(self.markers) - 1:05}"
        pieces = [self.root[f"{group}/{i}"] for i in range(self.markers[-1]["frontier"])]
        markers = [self._bound(piece) for piece in pieces]
        check(all(set(marker) == SLICE_FIELDS for marker in markers), f"{group}: fields")
        return [Slice(piece, marker, self.n_profiles) for piece, marker in zip(pieces, markers, strict=True)]

    def __len__(self) -> int:
        return len(self.slices)

    def __iter__(self) -> Iterator[Level]:
        return (self.level(t) for t in range(len(self)))

    def is_compressed(self) -> bool:
        """Whether the arrays are, all of them or none."""
        nodes = [node for piece in self.slices for _, node in piece.group.arrays()]
        (found,) = {"blosc" in [codec.to_dict()["name"] for codec in node.metadata.codecs] for node in nodes}
        return found

    def level(self, t: int) -> Level:
        here = self.slices[t]
        ended = here.ended()
        transitions = [self._transitions(t, b, is_over=over) for b, over in zip(here.members, ended, strict=True)]
        ended = [over or not any(rows) for over, rows in zip(ended, transitions, strict=True)]
        keys, states = self._of_members(t, Slice.keys), self._of_members(t, Slice.states)
        if states is not None and self.shares_bodies:
            states = [(here.marker["value"], *state[1:]) for state in states]
        value = here.marker["value"]
        return Level(t, value, here.members, ended, transitions, keys, states, self._attained(t))

    def _transitions(self, t: int, body: int, *, is_over: bool) -> Transitions:
        """From the slice of the level that expanded the body: this one or, if bodies are shared, an earlier one."""
        if is_over:
            return [[] for _ in range(self.n_profiles)]
        sources = self.slices[: t + 1] if self.shares_bodies else [self.slices[t]]
        (source,) = [piece for piece in sources if body in piece.row_of]
        return source.rows()[source.row_of[body]]

    def _of_members(self, t: int, of_added: Any) -> list[Any] | None:
        """What is stored for each added body, for each member of a level."""
        known: dict[int, Any] = {}
        for piece in self.slices[: t + 1] if self.shares_bodies else [self.slices[t]]:
            found = of_added(piece)
            if found is None:
                return None
            known |= dict(zip(piece.added, found, strict=True))
        return [known[body] for body in self.slices[t].members]

    def _attained(self, t: int) -> np.ndarray | None:
        if self.manifest["goals"] is None:
            check("attained" not in self.markers[t]["arrays"], f"level {t}: attained, but no goals")
            return None
        n_humans, n_goals = len(self.manifest["humans"]), len(self.manifest["goals"][0])
        if self.markers[t]["attained_by_body"]:
            packed = self._of_members(t, lambda piece: list(piece.array("attained")))
        else:
            packed = list(self.slices[t].array("attained"))
        assert packed is not None
        check(len(packed) == len(self.slices[t].members), f"level {t}: attained")
        rows = [bits(row, n_humans * n_goals) for row in packed]
        return np.array(rows, dtype=bool).reshape(len(packed), n_humans, n_goals)


def unsealed(group: zarr.Group) -> dict[str, Any]:
    """The attribute of a group without the checksum that it has of itself."""
    content: dict[str, Any] = dict(group.attrs["empo_bi"])
    crc32 = content.pop("crc32")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    check(f"{zlib.crc32(text.encode('ascii')):08x}" == crc32, f"{group.path or 'the root'}: checksum of the attribute")
    return content


def bits(packed: np.ndarray, n: int) -> list[bool]:
    """The first ``n`` bits, the lowest bit of a byte first; those after them are 0."""
    found = [bool(int(byte) >> i & 1) for byte in packed for i in range(8)]
    check(len(packed) == (n + 7) // 8 and not any(found[n:]), f"{len(packed)} bytes for {n} bits")
    return found[:n]


def as_tuples(value: Any) -> Any:
    return tuple(map(as_tuples, value)) if isinstance(value, list) else value


def check(is_right: bool, what: str) -> None:
    if not is_right:
        raise FormatError(what)
