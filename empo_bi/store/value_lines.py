"""Files of values, level by level, as lines of JSON: what :func:`archive_value_slices` appends to.

Each line is the CRC-32 of a record in eight hexadecimal digits, a blank, and the record::

    8ad3a0c2 {"empo_bi values":1,"level_value":3,"num_states":2,"state_indices":[7,8]}
    0f9be4a2 {"dict":[[0,{"dict":[[{"goal":"ReachCellGoal(0, (1, 2))"},0.25]]}]]}
    f2c3fb1c {"dict":[]}
    c1a7d3b5 {"end":3}

A header, one record per state, and an end that says that the level is complete. Numbers, texts, booleans, null and lists
stand for themselves, ``dict``, ``tuple``, ``array`` and ``float`` for what JSON does not have, ``goal`` for a goal, by its
name. Nothing in such a file is ever executed.
"""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from empo_bi.errors import DamagedStoreError, StoreMismatchError
from empo_bi.runtime.json_text import parse_json
from empo_bi.runtime.ordinary_files import refuse_link
from empo_bi.runtime.wording import short_repr
from empo_bi.store.records import LARGEST
from empo_bi.types import Array, Json

FORMAT, VERSION = "empo_bi values", 1
LONGEST_LINE = 1 << 28  # bytes; a level of ten million states has a shorter header
MOST_VALUES = 1 << 24  # in it
_NOT_A_NUMBER = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DTYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")

Value = Any  # of a state: numbers, and lists, tuples, dictionaries and arrays of them
Written = Any  # the same in JSON
Slice = tuple[int, list[int], list[Value]]  # level, numbers of its states, a value for each
GoalOf = Callable[[str], object]  # what stands for a goal of this name


def name_of(goal: object) -> str:
    """A goal's name: what it calls itself, without its address."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(goal))


# --- writing ----------------------------------------------------------------------------------------------------------


def append_level(file: IO[bytes], level: int, numbers: Sequence[int], values: Sequence[object]) -> None:
    """Append a level at once; a value that cannot be held is refused before anything is written."""
    header = {FORMAT: VERSION, "level_value": level, "num_states": len(numbers), "state_indices": list(numbers)}
    lines = [_line(header), *(_line(_written(value)) for value in values), _line({"end": level})]
    file.write(b"".join(lines))


def check_kind(path: Path) -> None:
    """Complain about a file of another kind."""
    refuse_link(path)
    with open(path, "rb") as file:
        _first_line(file, path)


def check_end(path: Path) -> None:
    """Complain unless a file that is there ends with a complete level of this format."""
    check_kind(path)
    with open(path, "rb") as file:
        file.seek(-min(64, path.stat().st_size), 2)
        last = file.read().splitlines(keepends=True)[-1:]
    if not last or not last[0].endswith(b"\n") or b'{"end":' not in last[0]:
        raise _torn(path)


def _line(record: object) -> bytes:
    text = json.dumps(record, separators=(",", ":"), allow_nan=False).encode("ascii")
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _written(value: Value) -> Written:
    """A value as JSON; floats are written so that they are read as the same number."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, np.ndarray):
        return _written_array(value)
    if isinstance(value, Mapping):
        return {"dict": _pairs(value)}
    if isinstance(value, tuple):
        return {"tuple": [_written(part) for part in value]}
    if isinstance(value, list):
        return [_written(part) for part in value]
    raise TypeError(
        f"{short_repr(value)} of type {type(value).__name__} cannot be archived; expected numbers, texts, None, arrays of "
        "numbers, and lists, tuples and dictionaries of these, with goals as keys if need be"
    )


def _written_array(array: Array) -> Json:
    if array.dtype.name not in _DTYPES:
        raise TypeError(f"an array of {array.dtype} cannot be archived; expected numbers")
    return {"array": array.dtype.name, "shape": list(array.shape), "values": [_written(x) for x in array.ravel().tolist()]}


def _pairs(table: Mapping[Value, Value]) -> list[Written]:
    pairs = [[_written_key(key), _written(value)] for key, value in table.items()]
    names = [key["goal"] for key, _ in pairs if isinstance(key, dict) and "goal" in key]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TypeError(
            f"two goals are called {short_repr(twice)}, so an archive cannot tell them apart; give them a __repr__"
        )
    return pairs


def _written_key(key: Value) -> Written:
    if _is_too_large(key):
        raise TypeError(f"the key {short_repr(key)} cannot be archived; expected numbers below 2**53")
    return {"goal": name_of(key)} if callable(getattr(key, "is_achieved", None)) else _written(key)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_levels(path: Path, goal_of: GoalOf) -> Iterator[Slice]:
    """The levels of a file, one at a time.

    Raises
    ------
    StoreMismatchError
        For a file of another kind, such as a pickle, which is never read any further.
    DamagedStoreError
        Where a checksum differs, or the file ends within a level, after the levels that are complete.
    """
    check_kind(path)
    with open(path, "rb") as file:
        while (header := _record(file, path, is_first=True)) is not None:
            level, numbers = _checked_header(header, path)
            values = [_read(_record(file, path), goal_of, path) for _ in numbers]
            if _record(file, path) != {"end": level}:
                raise _damaged(path, f"level {level} does not end where it should")
            yield level, numbers, values


def _first_line(file: IO[bytes], path: Path) -> None:
    start = file.read(10 + len(FORMAT) + 2)
    if not re.fullmatch(rb'[0-9a-f]{8} \{"' + FORMAT.encode(), start[: 11 + len(FORMAT)]):
        kind = "looks like a pickle" if start[:1] == b"\x80" else "is not a file of values of empo_bi"
        raise StoreMismatchError(
            f"{path}: {kind}. Pickles can run any program when they are read, so this one is not; archive the values anew "
            "with empo_bi, or move the file away"
        )


def _record(file: IO[bytes], path: Path, *, is_first: bool = False) -> Written:
    line = file.readline(LONGEST_LINE)
    if not line and is_first:
        return None
    if not line.endswith(b"\n"):
        raise _torn(path)
    crc32, _, text = line[:-1].partition(b" ")
    if crc32 != b"%08x" % zlib.crc32(text):
        raise _damaged(path, "the checksum of a record differs")
    try:
        return parse_json(text, most_values=MOST_VALUES, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"a record is not JSON ({error})") from error


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _checked_header(header: Written, path: Path) -> tuple[int, list[int]]:
    fields = {FORMAT, "level_value", "num_states", "state_indices"}
    if not isinstance(header, dict) or header.keys() != fields or header[FORMAT] != VERSION:
        raise _damaged(path, f"{short_repr(header)} is not the header of a level, version {VERSION}")
    level, numbers = header["level_value"], header["state_indices"]
    are_whole = isinstance(numbers, list) and all(type(number) is int and number >= 0 for number in numbers)
    if type(level) is not int or not are_whole or len(numbers) != header["num_states"]:
        raise _damaged(path, f"the header of level {short_repr(level)} does not list its states")
    return level, numbers


def _read(written: Written, goal_of: GoalOf, path: Path) -> Value:
    """The value that a record stands for."""
    try:
        return _value(written, goal_of)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise _damaged(path, f"a record does not make sense ({type(error).__name__}: {error})") from error


def _value(written: Written, goal_of: GoalOf) -> Value:
    if isinstance(written, list):
        return [_value(part, goal_of) for part in written]
    if not isinstance(written, dict):
        return written
    if "array" in written:
        if written["array"] not in _DTYPES:
            raise ValueError(f"an array of {short_repr(written['array'])}")
        if not all(type(n) is int and n >= 0 for n in written["shape"]):
            raise ValueError(f"an array of shape {short_repr(written['shape'])}")
        return np.array(_value(written["values"], goal_of), dtype=written["array"]).reshape(written["shape"])
    ((kind, content),) = written.items()
    if kind == "dict":
        found = {_key(key, goal_of): _value(value, goal_of) for key, value in content}
        if len(found) < len(content):
            raise ValueError("a dictionary has a key twice")
        return found
    if kind == "tuple":
        return tuple(_value(part, goal_of) for part in content)
    return goal_of(str(content)) if kind == "goal" else _NOT_A_NUMBER[content]


def _key(written: Written, goal_of: GoalOf) -> Value:
    key = _value(written, goal_of)
    if _is_too_large(key):
        raise ValueError(f"{short_repr(key)} is the key of a value")
    return key


def _is_too_large(key: Value) -> bool:
    """Whether a key has numbers beyond 2**53: Python finds them by remainders, so a table of chosen ones takes long."""
    if isinstance(key, tuple):
        return any(map(_is_too_large, key))
    return isinstance(key, int | float) and LARGEST <= abs(key) < math.inf


def _torn(path: Path) -> DamagedStoreError:
    return _damaged(path, "it ends within a level: the program that wrote it was stopped, or the disk was full")


def _damaged(path: Path, what: str) -> DamagedStoreError:
    return DamagedStoreError(f"{path}: {what}. Remove the file, and archive the values anew")
