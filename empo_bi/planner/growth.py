"""How many states the levels to come will have, from those that have been seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Series = npt.NDArray[np.float64]

_LEAST_POINTS = 5  # levels to learn from
_FEW_BODIES, _MANY_BODIES = 2e4, 2e5  # with fewer, most worlds have hardly begun to fill; with more, they are filling
_STEEPEST = 5.0  # the power of the step that growth may follow as long as a world is young


@dataclass(frozen=True)
class Range:
    """A number that is not known exactly."""

    low: float
    likely: float
    high: float

    @classmethod
    def exactly(cls, number: float) -> Range:
        return cls(number, number, number)

    def __mul__(self, factor: float) -> Range:
        return Range(self.low * factor, self.likely * factor, self.high * factor)

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.likely + other.likely, self.high + other.high)

    @property
    def is_exact(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True)
class Forecast:
    """A series of which the first ``n_seen`` numbers were seen; three guesses at the others."""

    low: Series
    likely: Series
    high: Series
    n_seen: int


def extrapolated(seen: Sequence[float], length: int) -> Forecast:
    r"""New bodies by level, continued to some length.

    Reachable states grow like a power of the step until the world is full; when that will be, the first levels do not tell.
    So the guesses are: the world is full now; nobody knows, which is a geometric mean of an early end (a decay within a
    quarter of the levels seen) and of a late one (a parabola in :math:`\ln t, \ln n`); and, as the highest, the mean of that
    and of growth that goes on (the same, or a straight line), at least as many as on the last level. The fewer bodies were
    seen, the nearer is the mean to a late end, and the highest guess to :math:`t^5`.

    On the shipped worlds, the number of states one doubling ahead is in the range in nine cases of ten, and the likely
    number right within a factor 1.5 in seven cases of ten.
    """
    known = np.asarray(seen, dtype=np.float64)[:length]
    if len(known) == length:
        return Forecast(known, known, known, length)
    t = np.arange(len(known), length, dtype=np.float64) + 1
    nothing, flat = np.zeros(len(t)), np.full(len(t), known[-1])
    if known[-1] == 0:  # the world is full
        return _forecast(known, nothing, nothing, nothing)
    youth = _youth(known)
    steep = flat * (t / len(known)) ** (_STEEPEST * youth)
    if len(known) < _LEAST_POINTS:  # nothing to learn from
        return _forecast(known, nothing, flat, steep)
    early, late, straight = flat * np.exp(-4 * (t - len(known)) / len(known)), _parabola(known, t), _line(known, t)
    weight = 0.5 + 0.35 * youth**2
    likely = early ** (1 - weight) * late**weight
    return _forecast(known, nothing, likely, np.maximum(steep, np.sqrt(likely * np.maximum(late, straight))))


def _youth(known: Series) -> float:
    """From 1, hardly anything was seen yet, to 0."""
    return float(np.interp(np.log(max(1.0, known.sum())), np.log([_FEW_BODIES, _MANY_BODIES]), [1.0, 0.0]))


def _forecast(known: Series, low: Series, likely: Series, high: Series) -> Forecast:
    low, likely, high = (np.concatenate([known, part]) for part in (low, likely, high))
    return Forecast(low, likely, high, len(known))


def _line(known: Series, t: Series) -> Series:
    """Straight on, from the last point, with the slope of the last third."""
    first = max(1, min(int(len(known) * 2 / 3), len(known) - 3))
    slope = np.polyfit(np.log(np.arange(first, len(known)) + 1.0), _logs(known[first:]), 1)[0]
    return np.asarray(known[-1] * (t / len(known)) ** slope)


def _parabola(known: Series, t: Series) -> Series:
    """On in a bend, from the last point, with slope and curvature of the last two thirds; never bending up."""
    first = max(1, min(int(len(known) / 3), len(known) - _LEAST_POINTS))
    x = np.log(np.arange(first, len(known)) + 1.0)
    curvature, slope, _ = np.polyfit(x - x[-1], _logs(known[first:]), 2)
    if curvature >= 0:
        return _line(known, t)
    ahead = np.log(t) - x[-1]
    return np.asarray(known[-1] * np.exp(slope * ahead + curvature * ahead**2))


def _logs(numbers: Series) -> Series:
    return np.asarray(np.log(np.maximum(numbers, 0.5)))
