"""How exact a solution is."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

from empo_bi.types import FloatArray

# What bounds are told of; those of numbers that span orders of magnitude are relative.
QUANTITIES = ("Vh_m", "Vh_e", "X_h", "U_r", "Q_r", "V_r", "pi_h", "pi_r")
RELATIVE = frozenset({"X_h", "U_r", "Q_r", "V_r"})
_NAMES = {"Vh_m": "V_h", "Vh_e": "V_h with the robot"}


class ErrorBounds:
    """How far the numbers of a solution may be from those of exact arithmetic, whatever their errors come from.

    Probabilities, durations, weights and parameters count as exact. Where a DAG was given that rounds its probabilities, no
    bound is known, and all are infinite. ``rest`` and ``work`` are known at once; the first bound that is asked for takes a
    pass over all levels, some ten times as long as the sweep.

    Attributes
    ----------
    rest, work : types
    Vh_m, Vh_e, pi_h, pi_r : absolute, the largest of all states
    X_h, U_r, Q_r, V_r : relative, likewise; all bounds of what was not solved or not kept are nan
    levels : by name of these, the largest of each level, (T + 1,)
    values : absolute, of both ``Vh_m`` and ``Vh_e``
    human_policies : the same as ``pi_h``
    """

    def __init__(self, rest: str, work: str, measure: Callable[[], dict[str, FloatArray]] | None) -> None:
        """``measure`` finds the bounds of each level; without it there are none."""
        self.rest, self.work, self._measure = rest, work, measure

    @cached_property
    def levels(self) -> dict[str, FloatArray]:
        return {} if self._measure is None else self._measure()

    def _largest(self, name: str) -> float:
        if self._measure is None:
            return 1.0 if name.startswith("pi") else math.inf
        return float(self.levels[name].max()) if name in self.levels else math.nan

    @property
    def Vh_m(self) -> float:
        return self._largest("Vh_m")

    @property
    def Vh_e(self) -> float:
        return self._largest("Vh_e")

    @property
    def X_h(self) -> float:
        return self._largest("X_h")

    @property
    def U_r(self) -> float:
        return self._largest("U_r")

    @property
    def Q_r(self) -> float:
        return self._largest("Q_r")

    @property
    def V_r(self) -> float:
        return self._largest("V_r")

    @property
    def pi_h(self) -> float:
        return self._largest("pi_h")

    @property
    def pi_r(self) -> float:
        return self._largest("pi_r")

    @property
    def values(self) -> float:
        known = [bound for bound in (self.Vh_m, self.Vh_e) if not math.isnan(bound)]
        return max(known, default=math.nan)

    @property
    def human_policies(self) -> float:
        return self.pi_h

    @property
    def types(self) -> str:
        """What can be said without looking at all numbers."""
        if self._measure is None:
            return (
                "the DAG that was given rests its probabilities in a type that changes them, so no bound is known; "
                "enumerate it with precision='exact'"
            )
        if self.rest == self.work:
            return f"{self.work} throughout, nothing rounded at rest"
        return f"the humans' values rest in {self.rest}; arithmetic is {self.work}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ErrorBounds) or (self.rest, self.work) != (other.rest, other.work):
            return False
        return {n: b.tolist() for n, b in self.levels.items()} == {n: b.tolist() for n, b in other.levels.items()}

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<ErrorBounds: {self}>"

    def __str__(self) -> str:
        bounds = [
            f"{_NAMES.get(name, name)} {self._largest(name):.2g}{' (relative)' if name in RELATIVE else ''}"
            for name in QUANTITIES
            if name in self.levels
        ]
        return "; ".join([self.types, *(["numbers are off by at most " + ", ".join(bounds)] if bounds else [])])
