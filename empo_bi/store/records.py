"""What the JSON records of a store have to look like: manifests and commit markers, by the name and kind of each field.

docs/format.md says the same in prose. Checksums tell accidents, not intentions: a record may have been written by anybody,
and what it says becomes sizes of arrays, ranges of numbers and texts on a screen. So every field that is used is looked at,
once, when its record is read; fields that we do not know are ignored.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from empo_bi.runtime.json_text import parse_json
from empo_bi.runtime.wording import short_repr
from empo_bi.types import Json

LARGEST = 2**53  # beyond it, JSON readers disagree about integers
MOST_PROFILES = 10_000_000  # as many as a world may have
LARGEST_WEIGHT = 1e300  # of a goal; sums of many are finite
MOST_BODIES = 2**31 - 1  # numbers of bodies are int32
UNSIGNED = ("uint8", "uint16", "uint32")
FLOATS = ("float16", "float32", "float64")
DTYPES = (*UNSIGNED, "uint64", *FLOATS)


class FormatError(ValueError):
    """Something in a store is not as docs/format.md says; whoever has read it adds the name of the store and a remedy."""


@dataclass(frozen=True)
class Kind:
    """What a field may hold, in words and as a test."""

    words: str
    fits: Callable[[Any], bool]


def _is_whole(value: Any) -> bool:
    return type(value) is int and -LARGEST < value < LARGEST  # True is an int, too


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not re.search("[\ud800-\udfff]", value)  # halves of characters cannot be printed


def listed(kind: Kind) -> Kind:
    return Kind(f"a list, each {kind.words}", lambda value: isinstance(value, list) and all(map(kind.fits, value)))


def optional(kind: Kind) -> Kind:
    return Kind(f"{kind.words}, or null", lambda value: value is None or kind.fits(value))


def one_of(*choices: Any) -> Kind:
    words = " or ".join(map(repr, choices))
    return Kind(words, lambda value: any(type(value) is type(choice) and value == choice for choice in choices))


INTEGER = Kind("an integer", _is_whole)
WHOLE = Kind("a whole number", lambda value: _is_whole(value) and value >= 0)
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
TEXT = Kind("a text", _is_text)
NUMBER = Kind("a finite number", lambda value: type(value) in (int, float) and abs(value) <= sys.float_info.max)
OBJECT = Kind("an object", lambda value: isinstance(value, dict))
# The parameters of the theory; those that are not numbers are flags.
THEORY_NUMBERS = frozenset(("beta_h", "beta_r", "eta", "rho_h", "rho_r", "terminal_Vr", "xi", "zeta"))
THEORY_FLAGS = frozenset(("believed_others", "optimistic"))
PARAMETERS = Kind(
    f"an object of numbers ({', '.join(sorted(THEORY_NUMBERS))}) and flags ({', '.join(sorted(THEORY_FLAGS))})",
    lambda value: (
        OBJECT.fits(value)
        and value.keys() == THEORY_NUMBERS | THEORY_FLAGS
        and all(FLAG.fits(value[name]) for name in THEORY_FLAGS)
        and all(NUMBER.fits(value[name]) or value[name] == "inf" for name in THEORY_NUMBERS - {"terminal_Vr"})
        and optional(NUMBER).fits(value["terminal_Vr"])  # null where a function tells
    ),
)
CHECKSUM = Kind(
    "eight hexadecimal digits", lambda value: isinstance(value, str) and bool(re.fullmatch("[0-9a-f]{8}", value))
)
SHAPE = Kind("a list of one to three whole numbers", lambda value: listed(WHOLE).fits(value) and 1 <= len(value) <= 3)
BODIES = Kind(
    "[first, past the last], or the name of an array",
    lambda value: (
        value in ("members", "added", "expanded")
        or (listed(WHOLE).fits(value) and len(value) == 2 and value[0] <= value[1] <= MOST_BODIES)
    ),
)

DAG_MANIFEST = {
    "title": TEXT,
    "world": optional(OBJECT),
    "content": OBJECT,
    "n_agents": WHOLE,
    "n_actions": WHOLE,
    "n_profiles": WHOLE,
    "shares_bodies": FLAG,
    "humans": optional(listed(WHOLE)),
    "goals": optional(listed(listed(TEXT))),
}
DAG_CONTENT = {
    "world": optional(TEXT),
    "horizon": optional(WHOLE),
    "levels": one_of("steps", "given", "derived"),
    "precision": one_of(*FLOATS, "exact"),
    "goals": optional(TEXT),
}
MOST_STARTS = 1 << 24
SUB_PROBLEM = {  # of the content of a DAG or solution, where it is not that of a whole world
    "start": optional(TEXT),
    "n_starts": Kind("a number of states", lambda value: _is_whole(value) and 1 <= value <= MOST_STARTS),
    "stop": optional(TEXT),
}
SLICE_MARKER = {
    "value": INTEGER,
    "n_states": WHOLE,
    "n_bodies": WHOLE,
    "n_expanded": WHOLE,
    "n_transitions": WHOLE,
    "n_known": WHOLE,
    "members": BODIES,
    "added": BODIES,
    "expanded": BODIES,
    "ended": one_of(True, False, "array"),
    "attained_by_body": FLAG,
    "arrays": OBJECT,
}
LEVEL_MARKER = {**SLICE_MARKER, "level": WHOLE, "frontier": WHOLE}
ARRAY = {"dtype": one_of(*DTYPES), "shape": SHAPE, "crc32": CHECKSUM}

SOLUTION_MANIFEST = {
    "title": TEXT,
    "horizon": WHOLE,
    "goals": listed(listed(TEXT)),
    "robot_profiles": listed(listed(WHOLE)),
    "content": OBJECT,
}
SOLUTION_CONTENT = {
    "world": optional(TEXT),
    "horizon": optional(WHOLE),
    "level_sizes": listed(WHOLE),
    "humans": listed(WHOLE),
    "robots": listed(WHOLE),
    "params": PARAMETERS,
    "human_params": optional(PARAMETERS),
    "belief": optional(TEXT),
    "prior": optional(TEXT),
    "rest": one_of(*FLOATS),
    "work": one_of("float32", "float64"),
    "phase_2": FLAG,
}
SOLUTION_ANSWERS = {  # where users' functions were asked
    "answers": listed(one_of("attained", "listed", "weight", "joint")),
    "goal_weights": listed(listed(NUMBER)),
    "goal_labels": listed(listed(optional(TEXT))),
    "human_profiles": listed(listed(WHOLE)),
}
SOLUTION_MARKER = {"level": WHOLE, "arrays": OBJECT}
ARRAY_METADATA = {
    "zarr_format": one_of(3),
    "node_type": one_of("array"),
    "shape": Kind("a list of at most three whole numbers", lambda value: value == [] or SHAPE.fits(value)),
    "data_type": one_of(*DTYPES, "bool", "int8", "int16", "int32", "int64"),
    "chunk_grid": OBJECT,
    "chunk_key_encoding": OBJECT,
    "codecs": listed(OBJECT),
}


def parsed(data: bytes) -> Any:
    """What JSON text says; :class:`FormatError` if it cannot be read, or is nested deeper than Python can follow."""
    try:
        found = parse_json(data, parse_constant=_refuse_constant)
        json.dumps(found)  # what can be read by the skin of its teeth cannot be written, or shown
        return found
    except RecursionError:
        raise FormatError("it is nested too deeply") from None
    except ValueError as error:  # no JSON, no UTF-8, or integers of thousands of digits
        raise FormatError(f"it is not JSON that can be read ({error})") from None


def _refuse_constant(name: str) -> None:
    raise FormatError(f"it has {name}, which is not a number")


def check_record(
    record: Any, required: Mapping[str, Kind], given: Mapping[str, Kind] | None = None, inside: str = ""
) -> None:
    """Whether a record has the ``required`` fields, each of its kind, and those that are ``given`` at all."""
    if not isinstance(record, dict):
        raise FormatError(f"{inside or 'the record'} is {shown(record)}; expected an object")
    inside = f" of {inside}" if inside else ""
    for name, kind in {**required, **(given or {})}.items():
        if name in record and not kind.fits(record[name]):
            raise FormatError(f"field {name!r}{inside} is {shown(record[name])}; expected {kind.words}")
        if name not in record and name in required:
            raise FormatError(f"field {name!r}{inside} is missing; expected {kind.words}")


def shown(value: Any) -> str:
    return short_repr(value, 60)


def check_dag_manifest(manifest: Json) -> None:
    own = {"own_goals": FLAG, "states": one_of("numbered"), "num_actions_per_agent": listed(WHOLE)}
    check_record(manifest, DAG_MANIFEST, {"written_by": TEXT, **own})
    check_record(manifest["content"], DAG_CONTENT, SUB_PROBLEM, inside="content")
    n_agents, n_actions, n_profiles = (manifest[name] for name in ("n_agents", "n_actions", "n_profiles"))
    numbers = manifest.get("num_actions_per_agent")
    most = math.log2(MOST_PROFILES) / math.log2(n_actions) if n_actions > 1 else MOST_PROFILES
    if numbers is not None:
        is_listed = len(numbers) == n_agents < 64 and all(1 <= n <= n_actions for n in numbers) and n_actions in numbers
        is_right = is_listed and n_profiles == math.prod(numbers) <= MOST_PROFILES
    else:
        is_right = n_agents <= most and n_profiles == n_actions**n_agents
    if not is_right:
        raise FormatError(f"field 'n_profiles' is {n_profiles:,} for {n_agents:,} agents with {n_actions:,} actions")
    _check_goals(manifest)
    if is_packed(manifest) and not (manifest["shares_bodies"] and manifest["content"]["levels"] == "steps"):
        raise FormatError("bodies of a compiled world are shared, and its levels are steps; the manifest says otherwise")


def is_packed(manifest: Json) -> bool:
    """Whether a DAG's states are keys: those of a gridworld, or of an array world."""
    return manifest["world"] is not None or manifest.get("states") == "numbered"


def _check_goals(manifest: Json) -> None:
    humans, goals = manifest["humans"], manifest["goals"]
    if (humans is None) != (goals is None):
        raise FormatError("one of 'humans' and 'goals' is null, the other is not")
    if humans is None:
        return
    check_agents("humans", humans, manifest["n_agents"])
    if len(goals) != len(humans) or not goals or not goals[0] or {len(names) for names in goals} != {len(goals[0])}:
        raise FormatError("field 'goals' has to list equally many goals, at least one, for each of 'humans'")


def check_agents(name: str, agents: list[int], n_agents: int = LARGEST) -> None:
    if len(set(agents)) < len(agents) or any(agent >= n_agents for agent in agents):
        raise FormatError(f"field {name!r} is {shown(agents)}; expected different agents below {n_agents:,}")


def check_abouts(abouts: Json) -> None:
    """What a marker says of each array: type, shape and checksum."""
    for name, about in abouts.items():
        check_record(about, ARRAY, {"chunks": listed(CHECKSUM)}, inside=f"array {shown(name)}")


def check_slice_marker(marker: Json, *, is_level: bool) -> None:
    check_record(marker, LEVEL_MARKER if is_level else SLICE_MARKER)
    check_abouts(marker["arrays"])


def check_solution_manifest(manifest: Json) -> None:
    given = {"levels": listed(INTEGER), "actions": listed(TEXT), "world": optional(OBJECT), **SOLUTION_ANSWERS}
    check_record(manifest, SOLUTION_MANIFEST, {"written_by": TEXT, **given})
    content = manifest["content"]
    own = {"arrays": listed(TEXT), "terminal_Vr": optional(TEXT)}
    check_record(content, SOLUTION_CONTENT, {**own, **SUB_PROBLEM}, inside="content")
    if (content["params"]["terminal_Vr"] is None) != ("terminal_Vr" in content):
        raise FormatError(
            "field 'params' of content: terminal_Vr is null if, and only if, content has the digest of a function"
        )
    check_agents("humans", content["humans"])
    check_agents("robots", content["robots"])
    if set(content["humans"]) & set(content["robots"]):
        raise FormatError(f"fields 'humans' and 'robots' of content share agents: {shown(content['humans'])}")
    goals, n_levels = manifest["goals"], manifest["horizon"] + 1
    if len(content["level_sizes"]) != n_levels or len(manifest.get("levels", content["level_sizes"])) != n_levels:
        raise FormatError(
            f"field 'horizon' is {n_levels - 1:,}, but level sizes of {len(content['level_sizes']):,} levels are given"
        )
    if len(goals) != len(content["humans"]) or not goals or {len(names) for names in goals} != {len(goals[0])}:
        raise FormatError("field 'goals' has to list equally many goals for each human")
    if any(len(profile) != len(content["robots"]) for profile in manifest["robot_profiles"]):
        raise FormatError("field 'robot_profiles' has to list one action for each robot")
    _check_answers(manifest)


def _check_answers(manifest: Json) -> None:
    """What else a manifest has where users' functions were asked."""
    n_humans, goals, answers = len(manifest["content"]["humans"]), manifest["goals"], manifest.get("answers", [])
    weights, profiles = manifest.get("goal_weights"), manifest.get("human_profiles")
    for name in ("goal_weights", "goal_labels"):
        if name in manifest and [len(row) for row in manifest[name]] != [len(names) for names in goals]:
            raise FormatError(f"field {name!r} has to have an entry for each goal")
    if any(not 0 <= weight <= LARGEST_WEIGHT for row in weights or () for weight in row):
        raise FormatError(f"field 'goal_weights' has numbers that are negative or above {LARGEST_WEIGHT:g}")
    if profiles is not None and any(len(profile) != n_humans for profile in profiles):
        raise FormatError("field 'human_profiles' has to list one action for each human")
    if "attained" in answers and (weights is None) != ("weight" in answers):
        raise FormatError(
            "fields 'answers' and 'goal_weights': goals have either an array of weights, or weights for all states"
        )
    described = {"attained": "goal_labels" in manifest, "joint": bool(profiles), "listed": "weight" in answers}
    if any((name in answers) != is_there for name, is_there in described.items()):
        raise FormatError(
            f"field 'answers' is {shown(answers)}; 'attained' needs goal_labels, 'joint' needs human_profiles, and 'listed' "
            "and 'weight' come together"
        )


def check_solution_marker(marker: Json) -> None:
    check_record(marker, SOLUTION_MARKER)
    check_abouts(marker["arrays"])
