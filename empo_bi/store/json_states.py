"""States of Python worlds as lines of JSON: tuples, numbers, strings, booleans and None, or whatever ``encode_state`` gives.

JSON has no tuples, so its arrays are read as tuples; lists cannot be part of a hashable state. A state that is a named tuple
is read as one again, since worlds ask for its fields.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.errors import InvalidStateError
from empo_bi.runtime.json_text import parse_json
from empo_bi.runtime.wording import short_repr
from empo_bi.store.records import FormatError

_REMEDY = (
    "give the world encode_state(state), which returns such a value, and decode_state(value); or keep the DAG in memory or "
    "in a temporary store (out=True for solve, store=True for enumerate_dag)"
)


class JsonStates:
    """Translates lists of states to bytes and back. ``world`` may be None where states are only read."""

    def __init__(self, world: Any, start: Any = None) -> None:
        self._encode: Callable[[Any], Any] | None = getattr(world, "encode_state", None)
        self._decode: Callable[[Any], Any] | None = getattr(world, "decode_state", None)
        if (self._encode is None) != (self._decode is None):
            raise TypeError(f"{world!r} has only one of encode_state and decode_state; a store needs both")
        self._named = type(start) if _is_named(start) else None

    def to_bytes(self, states: Sequence[Any]) -> npt.NDArray[np.uint8]:
        """One line of JSON per state."""
        lines = [self._line(state) for state in states]
        return np.frombuffer("".join(lines).encode("ascii"), dtype=np.uint8)

    def from_bytes(self, text: npt.NDArray[np.uint8]) -> list[Any]:
        """States from lines of JSON; :class:`FormatError` if they are not."""
        try:
            return [self._state(parse_json(line, parse_constant=float)) for line in text.tobytes().splitlines()]
        except RecursionError:
            raise FormatError("a state is nested too deeply") from None
        except FormatError:
            raise
        except ValueError as error:
            raise FormatError(f"a state is not JSON that can be read ({error})") from None

    def _line(self, state: Any) -> str:
        if self._encode is None and (type(state) if _is_named(state) else None) is not self._named:
            wanted = "no named tuple" if self._named is None else f"a {self._named.__name__}"
            raise InvalidStateError(
                f"state {short_repr(state)} is a {type(state).__name__}, but the initial state is {wanted}; its type "
                f"would be lost on reading: {_REMEDY}"
            )
        value = state if self._encode is None else self._encode(state)
        plain = _plain(value, state, is_top=self._encode is None)
        if self._decode is not None and self._decode(_tuples(plain)) != state:
            raise InvalidStateError(
                f"state {short_repr(state)} is written as {short_repr(plain)} by encode_state, of which decode_state makes "
                f"{short_repr(self._decode(_tuples(plain)))}; they have to undo each other"
            )
        return json.dumps(plain, separators=(",", ":"), allow_nan=False) + "\n"

    def _state(self, value: Any) -> Any:
        state = _tuples(value)
        try:
            if self._decode is not None:
                return self._decode(state)
            return state if self._named is None else self._named._make(state)
        except Exception as error:  # of a user's function, perhaps of a state that it never wrote
            raise FormatError(f"no state can be made of {short_repr(state)} ({error!r})") from error


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(type(value), "_make")


def _plain(value: Any, state: Any, *, is_top: bool = False) -> Any:
    """The value as JSON has it; an error for what would not come back as it went."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str) or (type(value) is float and math.isfinite(value)):
        return value
    if type(value) in (tuple, list) or (is_top and _is_named(value)):
        return [_plain(item, state) for item in value]
    raise InvalidStateError(
        f"{short_repr(value)} in state {short_repr(state)} is a {type(value).__name__}, which JSON cannot keep; states "
        f"in a store are tuples, finite numbers, strings, booleans and None: {_REMEDY}"
    )


def _tuples(value: Any) -> Any:
    if isinstance(value, dict) or (isinstance(value, float) and not math.isfinite(value)):
        raise FormatError(f"a state contains {short_repr(value)}, which is not allowed")
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
