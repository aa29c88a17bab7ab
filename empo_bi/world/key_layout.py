"""Rows of small integers as keys of a few 64-bit words: how compiled worlds pack their states, and lists of successors.

A row has a slot for each number of a state. A slot that can change gets a *field*: as many bits of the key as its values
need, without crossing a word boundary. The step is not part of a key: a key is the *body* of a state.

>>> import numpy as np
>>> layout = KeyLayout(np.array([4, 7, 1]), [(0, 9), (0, 0), (0, 1)])  # the second slot is always 7
>>> layout.pack(np.array([[9, 7, 0]])).tolist(), layout.unpack(np.array([[9]], dtype=np.uint64)).tolist()
([[9]], [[9, 7, 0]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from empo_bi.errors import InvalidStateError
from empo_bi.types import Array, FloatArray, IndexArray, KeyArray

WORD_BITS = 64
ROWS_AT_A_TIME = 1 << 14


@dataclass(frozen=True)
class Field:
    """The place of a slot in the key, and the values that it can have."""

    slot: int
    word: int
    shift: int
    width: int
    smallest: int
    largest: int

    @property
    def bits(self) -> np.uint64:
        """Those of its word."""
        return np.uint64(((1 << self.width) - 1) << self.shift)

    def values(self, key_SW: KeyArray) -> IndexArray:
        """(S,), the slot in some states."""
        return ((key_SW[:, self.word] & self.bits) >> np.uint64(self.shift)).astype(np.int64)


class Expansion(NamedTuple):
    """Successors of a block of S states under J profiles: K entries in all, keys of W words.

    The arrays of entries may be views of longer ones; copy what you keep.
    """

    count_SJ: npt.NDArray[np.int32]
    key_KW: KeyArray
    prob_K: FloatArray


def most_successors(n_words: int) -> int:
    """Of one state, under all profiles together: 256 MB of keys and probabilities. A world with more has no second level."""
    return (1 << 28) // (8 * (n_words + 1))


def as_keys(n_words: int, key_SW: KeyArray) -> KeyArray:
    """Keys as the kernels need them: (S, W), uint64, contiguous, writable (read-only arrays would compile again)."""
    keys = for_kernels(key_SW, np.uint64)
    if keys.ndim != 2 or keys.shape[1] != n_words:
        raise InvalidStateError(
            f"keys of shape {np.shape(key_SW)}; expected (states, {n_words}) for this world. {KEYS_COME_FROM}"
        )
    return keys


def for_kernels(array: Array, dtype: type) -> Array:
    """``numpy.require``, which takes a microsecond, only if the array is not as kernels need it."""
    is_array = type(array) is np.ndarray and array.dtype == dtype
    return array if is_array and array.flags.carray else np.require(array, dtype, ["C", "W"])


KEYS_COME_FROM = "use keys from encode, expand or initial_key of the same world"


class KeyLayout:
    """The fields of R slots.

    Parameters
    ----------
    initial_row : (R,) int64, the row of the initial state
    ranges : the smallest and largest value of each slot; (0, 0) if it can never change, so that it takes no bits

    Attributes
    ----------
    fields, n_words : the key
    initial_key : (1, n_words) uint64
    changing_slots : slots that have a field
    """

    def __init__(self, initial_row: IndexArray, ranges: Sequence[tuple[int, int]]) -> None:
        self.initial_row = initial_row
        self.fields, self.n_words = _pack_fields(ranges)
        self.changing_slots = [field.slot for field in self.fields]
        self._field_of = {field.slot: field for field in self.fields}
        self.initial_key = self.pack(initial_row[np.newaxis])

    @property
    def n_slots(self) -> int:
        return len(self.initial_row)

    @property
    def meaning(self) -> tuple[object, ...]:
        """Worlds whose layouts have equal meanings have equal states where they have equal keys."""
        return (self.fields, self.initial_row.tolist())

    def field_of(self, slot: int) -> Field | None:
        """None for a slot that never changes."""
        return self._field_of.get(slot)

    def values(self, slot: int, key_SW: KeyArray) -> IndexArray:
        """(S,), a slot of the rows of some keys."""
        field = self.field_of(slot)
        return np.full(len(key_SW), self.initial_row[slot]) if field is None else field.values(key_SW)

    def pack(self, row_SR: IndexArray) -> KeyArray:
        """Keys (S, W) of rows.

        Without a kernel: the first kernel call of a process takes 50 MB, which opening results should not need.
        """
        key_SW = np.zeros((len(row_SR), self.n_words), dtype=np.uint64)
        for field in self.fields:
            key_SW[:, field.word] |= row_SR[:, field.slot].astype(np.uint64) << np.uint64(field.shift)
        return key_SW

    def unpack(self, key_SW: KeyArray) -> IndexArray:
        """Rows (S, R) of keys."""
        row_SR = np.broadcast_to(self.initial_row, (len(key_SW), self.n_slots)).copy()
        for field in self.fields:
            row_SR[:, field.slot] = field.values(key_SW)
        return row_SR

    def problem_of_keys(self, key_SW: KeyArray) -> str | None:
        """What is wrong with the first of some keys (S, W) that is not a state; None if all are. For untrusted files."""
        if key_SW.shape[1] != self.n_words:
            return f"keys of {key_SW.shape[1]} words; expected {self.n_words} for this world"
        for first in range(0, len(key_SW), ROWS_AT_A_TIME):
            problem = self._problem_of_fields(key_SW[first : first + ROWS_AT_A_TIME])
            if problem is not None:
                return problem
        return None

    def _problem_of_fields(self, key_SW: KeyArray) -> str | None:
        rest_SW = key_SW.copy()
        for field in self.fields:
            value_S = field.values(key_SW)
            if int(value_S.max()) > field.largest or int(value_S.min()) < field.smallest:
                return f"a field of {field.width} bits is {int(value_S.min())} to {int(value_S.max())}; expected " + (
                    f"{field.smallest} to {field.largest}"
                )
            rest_SW[:, field.word] &= ~field.bits
        if rest_SW.any():
            return "bits are set that belong to no field"
        return self.problem_of_rows(self.unpack(key_SW))

    def problem_of_rows(self, row_SR: IndexArray) -> str | None:
        """Why some rows, whose values are all possible by themselves, are not states; None if all are."""
        return None


def _pack_fields(ranges: Sequence[tuple[int, int]]) -> tuple[list[Field], int]:
    """Place the slots one after the other, starting a new word if a slot does not fit."""
    fields, word, shift = [], 0, 0
    for slot, (smallest, largest) in enumerate(ranges):
        width = int(largest).bit_length()
        if width == 0:
            continue
        if shift + width > WORD_BITS:
            word, shift = word + 1, 0
        fields.append(Field(slot, word, shift, width, smallest, largest))
        shift += width
    return fields, word + 1
