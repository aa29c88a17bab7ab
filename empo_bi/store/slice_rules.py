"""The contract of a stored level: how its commit marker, its arrays and the levels around it have to fit together.

Kernels take the numbers of a slice as they are, and would read and write wherever these lead. Therefore nothing leaves a
store before this module has seen it: :func:`check_levels` looks at all commit markers when a store is opened (sizes, ranges,
shapes), :func:`check_slice` at the arrays of a level whenever they are read (smallest and largest numbers, sums, order).
docs/format.md lists the same rules in prose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.slices import BodySlice, places_in
from empo_bi.store.format_names import level_name, spoken
from empo_bi.store.records import FLOATS, MOST_BODIES, UNSIGNED, FormatError, check_slice_marker, is_packed
from empo_bi.types import Array, Arrays, Bodies, Json

KeyCheck = Callable[[npt.NDArray[np.uint64]], str | None]  # what is wrong with some keys, None if nothing is

PAIRS_AT_A_TIME = 1 << 16  # of body and profile, so that sums take a few megabytes, whatever the level
MOST_WORDS = 1 << 10  # of a key
_MOST_ANSWERS = 1 << 20  # successors of a state and profile of a Python world, which may name the same one several times
# How far probabilities of one body and profile may be from a sum of 1, by the type in which they rest.
SUM_TOLERANCE = {"float16": 2**-10, "float32": 2**-22, "float64": 1e-9}


@dataclass(frozen=True)
class StoreRules:
    """What holds for all slices of a store, from its manifest.

    Attributes
    ----------
    n_profiles : J
    shares_bodies : whether a body may be on several levels
    is_packed : whether states are keys
    has_states : whether states are texts in the store
    n_bits : bits of a row of ``attained``, None if there are none
    n_starts : states to begin with
    is_part, stops : whether a sub-problem begins elsewhere than the world, and whether it stops earlier
    """

    n_profiles: int
    shares_bodies: bool
    is_packed: bool
    has_states: bool
    n_bits: int | None
    n_starts: int
    is_part: bool
    stops: bool

    @classmethod
    def of(cls, manifest: Json, *, has_states: bool) -> StoreRules:
        humans, goals = manifest["humans"], manifest["goals"]
        n_bits = None if humans is None else len(humans) * len(goals[0])
        packed, content = is_packed(manifest), manifest["content"]
        return cls(
            manifest["n_profiles"], manifest["shares_bodies"], packed, has_states and not packed, n_bits,
            n_starts=content.get("n_starts", 1), is_part="start" in content, stops="stop" in content,
        )  # fmt: skip


# --- commit markers ---------------------------------------------------------------------------------------------------


def check_levels(markers: Sequence[Any], rules: StoreRules, *, is_finished: bool) -> None:
    """Whether the commit markers of levels 0, 1, ... fit together."""
    n_bodies, known, value, n_transitions = 0, 0, None, 0
    for t, marker in enumerate(markers):
        where = spoken(level_name(t))
        check_marker(where, marker, rules, is_level=True)
        if marker["level"] != t:
            raise FormatError(f"{where}: its commit marker is that of level {marker['level']}")
        is_dense = rules.shares_bodies and not rules.is_part  # a sub-problem may start at several steps
        if value is not None and (marker["value"] != value + 1 if is_dense else marker["value"] <= value):
            raise FormatError(f"{where}: its value is {marker['value']:,} after one of {value:,}")
        value = marker["value"]
        if rules.shares_bodies:
            _check_added(where, marker, n_bodies, known if t else None)
        n_bodies += marker["n_bodies"]
        _check_below(where, marker, n_bodies if rules.shares_bodies else MOST_BODIES)
        n_transitions += marker["n_transitions"]
        if marker["n_known"] > n_transitions + rules.n_starts:
            raise FormatError(
                f"{where}: {marker['n_known']:,} bodies are said to be known, but there are {n_transitions:,} transitions "
                f"from {rules.n_starts:,} to begin with"
            )
        if marker["n_known"] < max(known, n_bodies if rules.shares_bodies else 1):
            raise FormatError(f"{where}: {marker['n_known']:,} bodies are said to be known, but there are more")
        known = marker["n_known"]
    if markers and not rules.is_part and (markers[0]["n_states"], markers[0]["members"]) != (1, [0, 1]):
        raise FormatError("level 0: it has to have one state, body 0")
    if markers and markers[0]["n_states"] > rules.n_starts:
        raise FormatError(f"level 0: it has {markers[0]['n_states']:,} states, of {rules.n_starts:,} to begin with")
    if markers and rules.is_packed and (markers[0]["value"] < 0 if rules.is_part else markers[0]["value"] != 0):
        raise FormatError("level 0: its value has to be 0, the step")
    if n_bodies > MOST_BODIES or known > MOST_BODIES or (is_finished and known > n_bodies):
        raise FormatError(f"level {len(markers) - 1}: {known:,} bodies are said to be known, but {n_bodies:,} are on levels")
    if is_finished and (not markers or markers[-1]["n_transitions"]):
        raise FormatError(
            f"level {len(markers) - 1}: nothing follows the last level of a finished store, but it has transitions"
        )


def _check_added(where: str, marker: Json, n_bodies: int, known: int | None) -> None:
    """Shared bodies are numbered level by level, and a level adds all that the one before it has found."""
    added = marker["added"]
    if marker["n_bodies"] and added != [n_bodies, n_bodies + marker["n_bodies"]]:
        raise FormatError(f"{where}: it adds bodies {added}; expected {marker['n_bodies']:,} from {n_bodies:,} on")
    if known is not None and known != n_bodies + marker["n_bodies"]:
        raise FormatError(
            f"{where}: it adds {marker['n_bodies']:,} bodies to {n_bodies:,}, but {known:,} were found before it"
        )


def _check_below(where: str, marker: Json, limit: int) -> None:
    for name in ("members", "added", "expanded"):
        given = marker[name]
        if isinstance(given, list) and given[0] < given[1] and given[1] > limit:
            raise FormatError(f"{where}: its {name} go up to {given[1]:,}, but there are {limit:,} bodies")


def check_marker(where: str, marker: Any, rules: StoreRules, *, is_level: bool) -> None:
    """Whether a marker's fields and the shapes of its arrays agree with each other; ``is_level`` or part of a frontier."""
    try:
        check_slice_marker(marker, is_level=is_level)
    except FormatError as error:
        raise FormatError(f"{where}, its commit marker: {error}") from None
    _check_bodies(where, marker, rules)
    if (marker["n_expanded"] > 0) != (marker["n_transitions"] > 0) or (not is_level and marker["n_expanded"]):
        raise FormatError(f"{where}: {marker['n_expanded']:,} bodies expanded, with {marker['n_transitions']:,} transitions")
    if marker["ended"] is True and marker["n_transitions"]:
        raise FormatError(f"{where}: all its states are said to be terminal, though it has transitions")
    if "count" not in marker["arrays"] and marker["n_transitions"] != marker["n_expanded"] * rules.n_profiles:
        raise FormatError(f"{where}: no array 'count', though there is not one transition for each body and profile")
    _check_shapes(where, marker, _needed(marker, rules, is_level=is_level), _allowed(marker, rules))


def _check_bodies(where: str, marker: Json, rules: StoreRules) -> None:
    sizes = {"members": "n_states", "added": "n_bodies", "expanded": "n_expanded"}
    names = list(sizes)
    for i, name in enumerate(names):
        given = marker[name]
        if isinstance(given, str) and given not in names[: i + 1]:
            raise FormatError(f"{where}: its {name} are defined by {given!r}, which is not allowed")
        if isinstance(given, list) and given[1] - given[0] != marker[sizes[name]]:
            raise FormatError(f"{where}: {marker[sizes[name]]:,} {name} are said to be {given}")
        if isinstance(given, str) and marker[sizes[name]] != marker[sizes[given]]:
            raise FormatError(f"{where}: {marker[sizes[name]]:,} {name} are said to be the {marker[sizes[given]]:,} {given}")
    if marker["n_states"] == 0:
        raise FormatError(f"{where}: it has no states")
    if marker["n_bodies"] > marker["n_states"] or marker["n_expanded"] > marker["n_states"]:
        raise FormatError(f"{where}: it adds {marker['n_bodies']:,} bodies and expands {marker['n_expanded']:,}, but has "
                    f"{marker['n_states']:,} states")  # fmt: skip
    if rules.shares_bodies and not isinstance(marker["added"], list):
        raise FormatError(f"{where}: bodies that are shared are added one after the other, but it names an array of them")
    own = marker["members"]
    if not rules.shares_bodies and (marker["added"] != own or (marker["expanded"] != own and marker["n_expanded"])):
        raise FormatError(f"{where}: it adds or expands other bodies than its members, which are on no other level")
    if rules.is_packed and not rules.stops and marker["n_expanded"] and marker["expanded"] != marker["added"]:
        raise FormatError(f"{where}: it expands other bodies than those that it adds")


Shapes = dict[str, tuple[tuple[str, ...], tuple[int | None, ...]]]  # types and shape by name; None where any number is right


def _needed(marker: Json, rules: StoreRules, *, is_level: bool) -> Shapes:
    """The arrays that a slice has to have."""
    n_states, n_bodies = marker["n_states"], marker["n_bodies"]
    shapes: Shapes = {}
    for name, size in (("members", n_states), ("added", n_bodies), ("expanded", marker["n_expanded"])):
        if marker[name] == name and size:
            shapes[name] = (UNSIGNED, (size,))
    if marker["ended"] == "array":
        shapes["ended"] = (("uint8",), (math.ceil(n_states / 8),))
    if rules.is_packed and n_bodies:
        shapes["key"] = (("uint64",), (n_bodies, None))
    if rules.has_states and n_bodies:
        shapes["states"] = (("uint8",), (None,))
    if marker["n_transitions"]:
        shapes["succ"] = (UNSIGNED, (marker["n_transitions"],))
    rows = n_bodies if marker["attained_by_body"] else n_states
    if rules.n_bits is not None and is_level and rows:
        shapes["attained"] = (("uint8",), (rows, math.ceil(rules.n_bits / 8)))
    return shapes


def _allowed(marker: Json, rules: StoreRules) -> Shapes:
    """Arrays that it may have besides."""
    if not marker["n_expanded"]:
        return {}
    return {
        "count": (UNSIGNED, (marker["n_expanded"], rules.n_profiles)),
        "prob": (FLOATS, (marker["n_transitions"],)),
    }


def _check_shapes(where: str, marker: Json, needed: Shapes, allowed: Shapes) -> None:
    for name in needed:
        if name not in marker["arrays"]:
            raise FormatError(f"{where}: its commit marker has no array {name!r}")
    for name, about in marker["arrays"].items():
        if name not in needed and name not in allowed:
            raise FormatError(f"{where}, array {name!r}: is unexpected on such a level")
        dtypes, shape = needed.get(name) or allowed[name]
        is_right = len(shape) == len(about["shape"]) and all(
            n is None or n == m for n, m in zip(shape, about["shape"], strict=True)
        )
        if about["dtype"] not in dtypes or not is_right:
            wanted = f"{' or '.join(dtypes)} {['any' if n is None else n for n in shape]}"
            raise FormatError(
                f"{where}, array {name!r}: it is said to be {about['dtype']} {about['shape']}; expected {wanted}"
            )
    if "key" in needed and not 1 <= marker["arrays"]["key"]["shape"][1] <= MOST_WORDS:
        raise FormatError(f"{where}, array 'key': keys of {marker['arrays']['key']['shape'][1]:,} words")
    if "states" in needed and marker["arrays"]["states"]["shape"][0] < 2 * marker["n_bodies"]:
        raise FormatError(f"{where}, array 'states': too short for {marker['n_bodies']:,} states")


def is_nested(markers: Sequence[Json], rules: StoreRules, *, is_finished: bool) -> bool:
    """Whether the markers alone tell that whatever follows a level is on the next one.

    Each level then is all bodies found so far, so that successors of level t, which are below its ``n_known``, are on
    level t + 1 and on all above it. Elsewhere it takes a look at each transition, see :mod:`empo_bi.dag.successor_check`.
    """
    n_bodies = 0
    for marker in markers:
        n_bodies += marker["n_bodies"]
        if marker["members"] != [0, n_bodies]:
            return False
    return rules.shares_bodies and (not is_finished or markers[-1]["ended"] is True)


# --- arrays -----------------------------------------------------------------------------------------------------------


def check_slice(
    where: str, marker: Json, arrays: Arrays, rules: StoreRules, n_bodies: int, key_check: KeyCheck | None
) -> None:
    """Whether numbers are what a slice may have; of arrays that were read, which need not be all of them.

    ``n_bodies`` are those that members may be among; ``key_check`` is the world's opinion of keys, if there is a world.
    """
    for name in ("members", "added", "expanded"):
        if name in arrays:
            _check_ascending(f"{where}, array {name!r}", arrays[name], n_bodies)
    if "ended" in arrays:
        _check_spare_bits(f"{where}, array 'ended'", arrays["ended"][-1:], marker["n_states"])
    if "attained" in arrays and rules.n_bits is not None:
        _check_spare_bits(f"{where}, array 'attained'", arrays["attained"][:, -1], rules.n_bits)
    if "succ" in arrays:
        largest = int(arrays["succ"].max())
        if largest >= marker["n_known"]:
            raise FormatError(f"{where}, array 'succ': body {largest:,} follows, but {marker['n_known']:,} are known")
    if "count" in arrays:
        check_largest_count(where, marker, arrays["count"], rules)
        _check_counts(f"{where}, array 'count'", arrays["count"], marker["n_transitions"])
    if "prob" in arrays and "count" in arrays.keys() | marker["arrays"].keys():
        if "count" in arrays:
            _check_probabilities(f"{where}, array 'prob'", arrays["prob"], arrays["count"])
    elif "prob" in arrays:
        _check_sums(f"{where}, array 'prob'", arrays["prob"], arrays["prob"].dtype)
    if "key" in arrays and key_check is not None:
        problem = key_check(arrays["key"])
        if problem is not None:
            raise FormatError(f"{where}, array 'key': {problem}")


def check_bodies(where: str, piece: BodySlice) -> None:
    """Whether a slice adds and expands bodies of its level only."""
    for name in ("added", "expanded"):
        bodies: Bodies = getattr(piece, name)
        if not _are_among(bodies, piece.members):
            raise FormatError(f"{where}: some of its {name} are not among its members")


def _are_among(bodies: Bodies, members: Bodies) -> bool:
    if isinstance(bodies, range) and isinstance(members, range):
        return len(bodies) == 0 or (members.start <= bodies.start and bodies.stop <= members.stop)
    if isinstance(bodies, range):
        first, last = np.searchsorted(members, [bodies.start, bodies.stop])
        return bool(last - first == len(bodies))
    return bodies is members or bool(places_in(members, bodies)[0].all())


def _check_ascending(where: str, numbers: Array, limit: int) -> None:
    if not (numbers[1:] > numbers[:-1]).all():
        raise FormatError(f"{where}: its numbers do not ascend")
    if int(numbers[-1]) >= limit:
        raise FormatError(f"{where}: it has body {int(numbers[-1]):,}, but there are {limit:,}")


def _check_spare_bits(where: str, last_bytes: npt.NDArray[np.uint8], n_bits: int) -> None:
    if n_bits % 8 and int(last_bytes.max()) >> n_bits % 8:
        raise FormatError(f"{where}: padding bits are set; expected 0")


def check_largest_count(where: str, marker: Json, count_EJ: Array, rules: StoreRules) -> None:
    """Whether no body and profile has more successors than there can be; before any of them is read."""
    most = marker["n_known"] if rules.is_packed else max(marker["n_known"], _MOST_ANSWERS)
    largest = int(count_EJ.max(initial=0))
    if largest > most:
        raise FormatError(
            f"{where}, array 'count': {largest:,} successors of one body and profile; expected at most {most:,}"
        )


def _check_counts(where: str, count_EJ: Array, n_transitions: int) -> None:
    total = int(count_EJ.sum(dtype=np.int64))
    if total != n_transitions:
        raise FormatError(f"{where}: its numbers sum to {total:,}, but there are {n_transitions:,} transitions")
    if count_EJ.size and int(count_EJ.min()) == 0:  # a state is terminal for all profiles, or for none
        for block_EJ in _blocks(count_EJ):
            follows = block_EJ > 0
            if (follows.any(axis=1) != follows.all(axis=1)).any():
                raise FormatError(f"{where}: a body has transitions under some profiles, but not under all")


def _blocks(count_EJ: Array) -> Iterator[Array]:
    n_rows = max(1, PAIRS_AT_A_TIME // count_EJ.shape[1])
    return (count_EJ[e : e + n_rows] for e in range(0, len(count_EJ), n_rows))


def _check_probabilities(where: str, prob_K: Array, count_EJ: Array) -> None:
    """Whether all are positive and those of each body and profile sum to 1, but for rounding."""
    k = 0
    for block_EJ in _blocks(count_EJ):
        count_R = block_EJ.ravel()
        count_R = count_R[count_R > 0].astype(np.int64)
        if len(count_R) == 0:
            continue
        ends = count_R.cumsum()
        prob_N = prob_K[k : k + int(ends[-1])].astype(np.float64)
        if not float(prob_N.min()) > 0:  # also if it is not a number
            raise FormatError(f"{where}: a probability is {float(prob_N.min())}, not above 0")
        _check_sums(where, np.add.reduceat(prob_N, ends - count_R), prob_K.dtype)
        k += int(ends[-1])


def _check_sums(where: str, sum_R: Array, dtype: np.dtype[Any]) -> None:
    tolerance = SUM_TOLERANCE[dtype.name]
    least, most = float(sum_R.min()), float(sum_R.max())
    if not (abs(least - 1) <= tolerance and abs(most - 1) <= tolerance):
        raise FormatError(
            f"{where}: probabilities of a body and profile sum to {least if abs(least - 1) > tolerance else most}"
        )
