"""How exact a solution is."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

from empo_bi.types import FloatArray

# Quantities with bounds; relative ones where numbers span orders of magnitude.
QUANTITIES = ("Vh_m", "Vh_e", "X_h", "U_r", "Q_r", "V_r", "pi_h", "pi_r")
RELATIVE = frozenset({"X_h", "U_r", "Q_r", "V_r"})
_NAMES = {"Vh_m": "V_h", "Vh_e": "V_h with the robot"}


def _bound(name: str) -> property:
    """The largest bound of a quantity over all states."""
    return property(lambda self: self._largest(name))


class ErrorBounds:
    """How far the numbers of a solution may be from those of exact arithmetic, whatever the source of the error.

    Probabilities, durations, weights and parameters count as exact. If the DAG's probabilities are rounded, no bound is
    known, and all are infinite. ``rest`` and ``work`` are known at once; reading the first bound takes a pass over all
    levels, some ten times as long as the sweep.

    Attributes
    ----------
    rest, work : dtypes in which the humans' values are stored, and computed
    Vh_m, Vh_e, pi_h, pi_r : absolute bounds, the largest over all states
    X_h, U_r, Q_r, V_r : relative bounds, likewise; nan for all that was not solved or not stored
    levels : {name: the largest bound of each level, (T + 1,)}
    values : absolute, for ``Vh_m`` and ``Vh_e`` together
    human_policies : the same as ``pi_h``
    """

    def __init__(self, rest: str, work: str, measure: Callable[[], dict[str, FloatArray]] | None) -> None:
        """``measure`` computes the bounds of each level; None if no bounds are known."""
        self.rest, self.work, self._measure = rest, work, measure

    @cached_property
    def levels(self) -> dict[str, FloatArray]:
        return {} if self._measure is None else self._measure()

    def _largest(self, name: str) -> float:
        if self._measure is None:
            return 1.0 if name.startswith("pi") else math.inf
        return float(self.levels[name].max()) if name in self.levels else math.nan

    Vh_m, Vh_e, X_h, U_r = map(_bound, ("Vh_m", "Vh_e", "X_h", "U_r"))
    Q_r, V_r, pi_h, pi_r = map(_bound, ("Q_r", "V_r", "pi_h", "pi_r"))
    human_policies = pi_h

    @property
    def values(self) -> float:
        known = [bound for bound in (self.Vh_m, self.Vh_e) if not math.isnan(bound)]
        return max(known, default=math.nan)

    @property
    def types(self) -> str:
        """What is known without a pass over all levels."""
        if self._measure is None:
            return (
                "the given DAG stores its probabilities in a type that rounds them, so no bound is known; enumerate it with "
                "precision='exact'"
            )
        if self.rest == self.work:
            return f"{self.work} throughout, nothing is rounded for storage"
        return f"the humans' values are stored as {self.rest}; arithmetic is {self.work}"

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
