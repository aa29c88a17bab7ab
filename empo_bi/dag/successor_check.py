"""Whether what follows a level is on the next one: a look at each transition, where the shape of a store does not tell.

Tables of values have a row for every body, but only those of the next level are filled. A stored successor that is on
another level would read what happens to be there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from empo_bi.runtime.jit import kernel
from empo_bi.types import IndexArray


class SuccessorCheck:
    """Knows which bodies are on one level, and holds successors to it. ``damaged`` makes an error of a problem."""

    def __init__(self, n_bodies: int, damaged: Callable[[str], Exception]) -> None:
        self._is_on, self._damaged = np.zeros(n_bodies, dtype=np.bool_), damaged
        self._level = -1

    def expect(self, t: int, body_S: IndexArray) -> None:
        """From now on, successors have to be among the bodies ``body_S`` of level ``t``."""
        if t != self._level:
            self._level = t
            self._is_on[:] = False
            self._is_on[body_S] = True

    def check(self, row_M: IndexArray, start_E: IndexArray | None, n_profiles: int, succ_K: npt.NDArray[np.int32]) -> None:
        """Successors of some rows of a slice; ``start_E`` says where rows begin, None if each profile has one successor."""
        starts = np.zeros(0, dtype=np.int64) if start_E is None else start_E
        stray = int(find_stray(self._is_on, row_M, starts, n_profiles, succ_K))
        if stray >= 0:
            raise self._damaged(f"level {self._level - 1}: body {stray:,} follows, but is not on level {self._level}")

    def check_all(self, succ_K: npt.NDArray[np.int32]) -> None:
        self.check(np.zeros(1, dtype=np.int64), np.array([0, len(succ_K)], dtype=np.int64), 0, succ_K)


@kernel
def find_stray(is_on, row_M, start_E, n_profiles, succ_K):  # type: ignore[no-untyped-def]
    """The first successor of some rows that is not on the level, -1 if there is none."""
    for m in range(row_M.size):
        row = row_M[m]
        first = start_E[row] if start_E.size else row * n_profiles
        last = start_E[row + 1] if start_E.size else first + n_profiles
        for k in range(first, last):
            if not is_on[succ_K[k]]:
                return np.int64(succ_K[k])
    return np.int64(-1)
