"""Numbers for packed keys, in the order in which they are first met: "have I seen this state before?".

A hash table in one array, row = key and number, with linear probing. Looking up a key costs about one cache miss; sorting
the keys instead (``np.unique``) is some thirty times slower. Each table has a random salt, since keys may come from a
file whose maker chose them so that they meet in one row; numbers do not depend on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from empo_bi.runtime.jit import inlined, kernel
from empo_bi.types import KeyArray
from empo_bi.world.expand import hash_of

_FIRST_ROWS = 1 << 10
EMPTY = 0  # in the last column of the table, where known keys have their number + 1


class KeyIndex:
    """Distinct keys of W words, numbered 0, 1, 2, ... in the order of their first appearance.

    Memory: at most ``32 * (W + 1)`` bytes a key for the table, and ``16 * W`` for the list of keys.
    """

    def __init__(self, n_words: int, before_growing: Callable[[int], None] | None = None) -> None:
        """``before_growing`` is asked about how many bytes are about to be taken, and may refuse."""
        self._before_growing = before_growing
        self._table = np.zeros((_FIRST_ROWS, n_words + 1), dtype=np.uint64)
        self._keys = np.empty((_FIRST_ROWS // 2, n_words), dtype=np.uint64)
        self._n = 0
        self._salt = np.uint64(int.from_bytes(os.urandom(8)))

    def __len__(self) -> int:
        return self._n

    @property
    def keys(self) -> KeyArray:
        """All known keys (n, W) in the order of their numbers; a view that is valid until the next ``add``."""
        return self._keys[: self._n]

    @property
    def nbytes(self) -> int:
        return self._table.nbytes + self._keys.nbytes

    def add(self, key_KW: KeyArray) -> npt.NDArray[np.int64]:
        """The number of each key, new ones included (K,)."""
        key_KW = np.ascontiguousarray(key_KW)
        number_K = np.empty(len(key_KW), dtype=np.int64)
        done = 0
        while True:
            self._n, done = number_keys(self._table, self._keys, self._n, key_KW, number_K, done, self._salt)
            if done == len(key_KW):
                return number_K
            self._grow()

    def find(self, key_KW: KeyArray) -> npt.NDArray[np.int64]:
        """The number of each key (K,), -1 for those never added."""
        key_KW = np.ascontiguousarray(key_KW)
        number_K = np.empty(len(key_KW), dtype=np.int64)
        find_keys(self._table, key_KW, number_K, self._salt)
        return number_K

    def _grow(self) -> None:
        """Twice the room; the list of keys is half as long as the table, which is thus never more than half full."""
        n_rows, n_words = 2 * len(self._table), self._keys.shape[1]
        if self._before_growing is not None:
            self._before_growing(self._table.nbytes + 2 * self._keys.nbytes)
        keys = np.empty((n_rows // 2, n_words), dtype=np.uint64)
        keys[: self._n] = self.keys
        self._keys = keys
        self._table = np.zeros((0, n_words + 1), dtype=np.uint64)  # the old one goes before the new one comes
        self._table = np.zeros((n_rows, n_words + 1), dtype=np.uint64)
        fill_table(self._table, keys, self._n, self._salt)


def bytes_for(n_keys: int, n_words: int) -> int:
    """What an index of so many keys takes while it grows for the last time."""
    rows = _FIRST_ROWS
    while rows // 2 < n_keys:
        rows *= 2
    return rows * (n_words + 1) * 8 + 3 * (rows // 4) * n_words * 8


@inlined
def slot_of(table: KeyArray, key_KW: KeyArray, k: int, salt: np.uint64) -> np.uint64:
    """The row of the table that holds the key, or the empty one where it belongs."""
    n_words = key_KW.shape[1]
    mask = np.uint64(table.shape[0] - 1)
    row = hash_of(key_KW, k, salt) & mask
    while table[row, n_words] != EMPTY:
        same = True
        for w in range(n_words):
            same &= table[row, w] == key_KW[k, w]
        if same:
            break
        row = (row + np.uint64(1)) & mask
    return row


@kernel
def number_keys(  # type: ignore[no-untyped-def]
    table: KeyArray, keys: KeyArray, n: int, key_KW: KeyArray, number_K: npt.NDArray[np.int64], first: int, salt: np.uint64
):
    """Number the keys from entry ``first`` on. Returns how many keys are known then, and the first entry left undone."""
    n_words = key_KW.shape[1]
    for k in range(first, key_KW.shape[0]):
        row = slot_of(table, key_KW, k, salt)
        if table[row, n_words] == EMPTY:
            if n == keys.shape[0]:
                return n, k
            for w in range(n_words):
                table[row, w] = key_KW[k, w]
                keys[n, w] = key_KW[k, w]
            n += 1
            table[row, n_words] = n
        number_K[k] = np.int64(table[row, n_words]) - 1
    return n, key_KW.shape[0]


@kernel
def find_keys(table: KeyArray, key_KW: KeyArray, number_K: npt.NDArray[np.int64], salt: np.uint64) -> None:
    for k in range(key_KW.shape[0]):
        number_K[k] = np.int64(table[slot_of(table, key_KW, k, salt), key_KW.shape[1]]) - 1


@kernel
def fill_table(table: KeyArray, keys: KeyArray, n: int, salt: np.uint64) -> None:
    for k in range(n):
        row = slot_of(table, keys, k, salt)
        for w in range(keys.shape[1]):
            table[row, w] = keys[k, w]
        table[row, keys.shape[1]] = k + 1
