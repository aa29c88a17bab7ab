"""A :class:`~empo_bi.dag.slices.BodySlice` as named arrays and a few numbers, and back; docs/format.md says it in prose.

Bodies that are consecutive are written as ``[first, past the last]``, others as an array; what equals the array before it is
not written again. Integers take the narrowest type that holds them, bits are packed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from empo_bi.dag.levels import LevelSizes
from empo_bi.dag.slices import BodySlice
from empo_bi.store.json_states import JsonStates
from empo_bi.types import Array, Arrays, Bodies, IndexArray, Json

# What the axes of each array count.
DIMENSIONS = {
    "key": ("body", "word"),
    "states": ("character",),
    "members": ("state",),
    "added": ("body",),
    "expanded": ("row",),
    "ended": ("state_byte",),
    "count": ("row", "profile"),
    "succ": ("transition",),
    "prob": ("transition",),
}


def dimensions_of(name: str, fields: Json) -> tuple[str, ...]:
    if name == "attained":
        return ("body" if fields["attained_by_body"] else "state", "byte")
    return DIMENSIONS[name]


def to_arrays(piece: BodySlice, states: JsonStates | None) -> tuple[Json, Json]:
    """The small fields, as JSON has them, and the arrays, some of them in blocks where they are too large for memory.

    States are left out where ``states`` is None.
    """
    arrays: Json = {}
    fields: Json = {
        "value": piece.value,
        "n_states": len(piece.members),
        "n_bodies": len(piece.added),
        "n_expanded": len(piece.expanded),
        "n_transitions": piece.n_entries,
        "n_known": piece.known,
        "attained_by_body": piece.attained_by_body,
    }
    _put_bodies(fields, arrays, piece)
    fields["ended"] = piece.ended if isinstance(piece.ended, bool) else "array"
    if not isinstance(piece.ended, bool):
        arrays["ended"] = np.packbits(piece.ended, bitorder="little")
    if piece.key_BW is not None:
        arrays["key"] = piece.key_BW
    if piece.states is not None and states is not None:
        arrays["states"] = states.to_bytes(piece.states)
    transitions = piece if piece.spilled is None else piece.spilled
    if transitions.count_EJ is not None:
        arrays["count"] = transitions.count_EJ
    if transitions.succ_K is not None:
        arrays["succ"] = narrow(transitions.succ_K) if isinstance(transitions.succ_K, np.ndarray) else transitions.succ_K
    if transitions.prob_K is not None:
        arrays["prob"] = transitions.prob_K
    if piece.attained is not None:
        arrays["attained"] = piece.attained
    return fields, {name: array for name, array in arrays.items() if len(array)}  # an array costs its milliseconds


def from_arrays(fields: Json, arrays: Arrays, states: JsonStates | None) -> BodySlice:
    """The slice that :func:`to_arrays` was given; the types that kernels see are always the same."""
    members = _get_bodies(fields, arrays, "members")
    ended: Any = fields["ended"]
    if ended == "array":
        ended = np.unpackbits(arrays["ended"], count=len(members), bitorder="little").astype(np.bool_)
    return BodySlice(
        value=fields["value"],
        members=members,
        added=_get_bodies(fields, arrays, "added"),
        ended=ended,
        key_BW=arrays.get("key"),
        states=states.from_bytes(arrays["states"]) if states is not None and "states" in arrays else None,
        expanded=_get_bodies(fields, arrays, "expanded"),
        count_EJ=arrays.get("count"),
        succ_K=arrays["succ"].astype(np.int32) if "succ" in arrays else None,
        prob_K=arrays.get("prob"),
        attained=arrays.get("attained"),
        attained_by_body=fields["attained_by_body"],
        known=fields["n_known"],
    )


def narrow(numbers: Array) -> Array:
    """Non-negative integers in the narrowest unsigned type."""
    return numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))


def _put_bodies(fields: Json, arrays: Json, piece: BodySlice) -> None:
    written: dict[str, IndexArray] = {}
    for name in ("members", "added", "expanded"):
        bodies: Bodies = getattr(piece, name)
        if isinstance(bodies, range):
            fields[name] = [bodies.start, bodies.stop]
            continue
        same = [other for other, array in written.items() if np.array_equal(array, bodies)]
        fields[name] = same[0] if same else name
        if not same:
            arrays[name] = narrow(bodies)
            written[name] = bodies


def _get_bodies(fields: Json, arrays: Arrays, name: str) -> Bodies:
    """``fields[name]`` is a range, or the name of the array that has the numbers."""
    found = fields[name]
    return range(*found) if isinstance(found, list) else arrays[found].astype(np.int64)


# --- sizes, from commit markers alone ------------------------------------------------------------------------------------

_WHEN_READ = {"succ": 4, "members": 8, "added": 8, "expanded": 8}  # bytes of numbers that are narrower on disk


def sizes_of(marker: Json) -> LevelSizes:
    nbytes = sum(nbytes_when_read(name, about) for name, about in marker["arrays"].items())
    counts = {name: marker[name] for name in ("value", "n_states", "n_bodies", "n_expanded", "n_transitions")}
    return LevelSizes(**counts, nbytes=nbytes, known=marker["n_known"])


def nbytes_when_read(name: str, about: Json) -> int:
    """An array when it has been read."""
    return int(math.prod(about["shape"]) * _WHEN_READ.get(name, np.dtype(about["dtype"]).itemsize))
