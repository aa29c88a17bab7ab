"""Value functions by level, each read or computed on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

from empo_bi.types import FloatArray


class ByLevel(Sequence[FloatArray]):
    """An array for each level, read or computed on demand; negative levels count from the last one."""

    def __init__(self, n_levels: int, read: Callable[[int], FloatArray]) -> None:
        self._n_levels, self._read = n_levels, read

    def __len__(self) -> int:
        return self._n_levels

    @overload
    def __getitem__(self, t: int) -> FloatArray: ...
    @overload
    def __getitem__(self, t: slice) -> Sequence[FloatArray]: ...
    def __getitem__(self, t: int | slice) -> FloatArray | Sequence[FloatArray]:
        if isinstance(t, slice):
            return [self._read(level) for level in range(self._n_levels)[t]]
        if not -self._n_levels <= t < self._n_levels:
            raise IndexError(f"level {t}: levels are numbered 0 to {self._n_levels - 1}")
        return self._read(t % self._n_levels)


@dataclass(frozen=True)
class Values:
    """Value functions by level, in the order of ``dag.states(t)``; all arrays are read as float64.

    Axis H is in the order of ``solution.humans`` (human 1 is at ``solution.humans.index(1)``), axis G in that of
    ``solution.goals[human]``.

    Attributes
    ----------
    Vh_m : (S, H, G), phase 1: what each human expects for each goal, with robots at their worst (or best)
    Vh_e : (S, H, G), phase 2: the value of each goal under the robot's policy
    X_h : (S, H), the power of each human
    U_r : (S,), the robot's reward
    V_r : (S,), the robot's value
    """

    Vh_m: ByLevel
    Vh_e: ByLevel
    X_h: ByLevel
    U_r: ByLevel
    V_r: ByLevel
