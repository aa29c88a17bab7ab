"""Numbers for packed keys, in the order in which they are first met: "have I seen this state before?".

A hash table in one array, row = key and number, with linear probing. Looking up a key costs about one cache miss; sorting
the keys instead (``np.unique``) is some thirty times slower.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from empo_bi.runtime.jit import inlined, kernel
from empo_bi.world.expand import KeyArray, hash_of

_FIRST_ROWS = 1 << 10
EMPTY = 0  # in the last column of the table, where known keys have their number + 1


class KeyIndex:
    """Distinct keys of W words, numbered 0, 1, 2, ... in the order of their first appearance.

    Memory: at most ``32 * (W + 1)`` bytes a key for the table, and ``16 * W`` for the list of keys.
    """

    def __init__(self, n_words: int) -> None:
        self._table = np.zeros((_FIRST_ROWS, n_words + 1), dtype=np.uint64)
        self._keys = np.empty((_FIRST_ROWS // 2, n_words), dtype=np.uint64)
        self._n = 0

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
            self._n, done = number_keys(self._table, self._keys, self._n, key_KW, number_K, done)
            if done == len(key_KW):
                return number_K
            self._grow()

    def find(self, key_KW: KeyArray) -> npt.NDArray[np.int64]:
        """The number of each key (K,), -1 for those never added."""
        key_KW = np.ascontiguousarray(key_KW)
        number_K = np.empty(len(key_KW), dtype=np.int64)
        find_keys(self._table, key_KW, number_K)
        return number_K

    def _grow(self) -> None:
        """Twice the room; the list of keys is half as long as the table, which is thus never more than half full."""
        n_words = self._keys.shape[1]
        keys = np.empty((2 * len(self._keys), n_words), dtype=np.uint64)
        keys[: self._n] = self.keys
        self._keys = keys
        self._table = np.zeros((2 * len(self._table), n_words + 1), dtype=np.uint64)
        fill_table(self._table, keys, self._n)


@inlined
def slot_of(table: KeyArray, key_KW: KeyArray, k: int) -> np.uint64:
    """The row of the table that holds the key, or the empty one where it belongs."""
    n_words = key_KW.shape[1]
    mask = np.uint64(table.shape[0] - 1)
    row = hash_of(key_KW, k) & mask
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
    table: KeyArray, keys: KeyArray, n: int, key_KW: KeyArray, number_K: npt.NDArray[np.int64], first: int
):
    """Number the keys from entry ``first`` on. Returns how many keys are known then, and the first entry left undone."""
    n_words = key_KW.shape[1]
    for k in range(first, key_KW.shape[0]):
        row = slot_of(table, key_KW, k)
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
def find_keys(table: KeyArray, key_KW: KeyArray, number_K: npt.NDArray[np.int64]) -> None:
    for k in range(key_KW.shape[0]):
        number_K[k] = np.int64(table[slot_of(table, key_KW, k), key_KW.shape[1]]) - 1


@kernel
def fill_table(table: KeyArray, keys: KeyArray, n: int) -> None:
    for k in range(n):
        row = slot_of(table, keys, k)
        for w in range(keys.shape[1]):
            table[row, w] = keys[k, w]
        table[row, keys.shape[1]] = k + 1
