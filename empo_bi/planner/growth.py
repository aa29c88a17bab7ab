"""Forecast of how many states later levels will have, from the levels that have been counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Series = npt.NDArray[np.float64]

_LEAST_POINTS = 5  # levels to learn from
_FEW_BODIES, _MANY_BODIES = 2e4, 2e5  # with fewer, growth has hardly begun in most worlds; with more, it slows down
_LEAST_WAVE = 0.1  # growth of the box, as a logarithm, that counts
_WAVE_POWER, _WAVE_OFFSET = 0.55, 0.8  # by which the likely forecast is raised, fitted; the offset for many bodies
_WAVE_SPREAD, _LEAST_SPREAD = 4.5, 3.0  # the high forecast against the likely one, with a wave to come and without
_HIGHEST_WAVE = 6.0  # beyond what was seen in any world
_STEEPEST = 5.0  # the exponent of the fastest growth, as a power of the step, at the beginning


@dataclass(frozen=True)
class Range:
    """A number that is not known exactly."""

    low: float
    likely: float
    high: float

    @classmethod
    def exactly(cls, number: float) -> Range:
        return cls(number, number, number)

    def __mul__(self, factor: float | Range) -> Range:
        other = factor if isinstance(factor, Range) else Range.exactly(factor)
        return Range(self.low * other.low, self.likely * other.likely, self.high * other.high)

    def __add__(self, other: float | Range) -> Range:
        more = other if isinstance(other, Range) else Range.exactly(other)
        return Range(self.low + more.low, self.likely + more.likely, self.high + more.high)

    @property
    def is_exact(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True)
class Forecast:
    """A series whose first ``n_seen`` numbers were counted; three forecasts of the others."""

    low: Series
    likely: Series
    high: Series
    n_seen: int


def extrapolated(seen: Sequence[float], length: int, waves: Sequence[float] = ()) -> Forecast:
    r"""New bodies by level, continued to a given length.

    Reachable states grow like a power of the step until all are found; the first levels do not show when that will be. The
    low forecast is that all have been found now. The likely one is a geometric mean of an early end (decay within a quarter
    of the levels counted) and a late end (a parabola in :math:`\ln t, \ln n`). The high one is the mean of the likely one
    and of continued growth (the same parabola, or a straight line), and never less than on the last level. The fewer bodies
    were counted, the closer the likely forecast is to a late end, and the high one to :math:`t^5`.

    ``waves`` are what a look ahead found to open up by each later level: the logarithm of how much larger the box of all
    combinations of values becomes (see :mod:`empo_bi.planner.lookahead`). Then the likely forecast is raised by a power of
    that, and the high one is at least a multiple of the likely one. Both were fitted to random worlds with keys and doors
    (``benchmarks/bench_keys.py``), whose levels do not show what is behind the next door.

    On the shipped worlds, the number of states at twice the counted horizon is in the range in nine cases of ten, and the
    likely number is right within a factor of 1.5 in seven cases of ten.
    """
    known = np.asarray(seen, dtype=np.float64)[:length]
    if len(known) == length:
        return Forecast(known, known, known, length)
    t = np.arange(len(known), length, dtype=np.float64) + 1
    nothing, flat = np.zeros(len(t)), np.full(len(t), known[-1])
    if known[-1] == 0:  # all states have been found
        return _forecast(known, nothing, nothing, nothing)
    youth = _youth(known)
    steep = flat * (t / len(known)) ** (_STEEPEST * youth)
    if len(known) < _LEAST_POINTS:  # too little to learn from
        return _raised(_forecast(known, nothing, flat, steep), waves, youth)
    early, late, straight = flat * np.exp(-4 * (t - len(known)) / len(known)), _parabola(known, t), _line(known, t)
    weight = 0.5 + 0.35 * youth**2
    likely = early ** (1 - weight) * late**weight
    high = np.maximum(steep, np.sqrt(likely * np.maximum(late, straight)))
    return _raised(_forecast(known, nothing, likely, high), waves, youth)


def _raised(forecast: Forecast, waves: Sequence[float], youth: float) -> Forecast:
    """A forecast that allows for what a look ahead found; as it is where there was none."""
    n, n_ahead = forecast.n_seen, len(forecast.likely) - forecast.n_seen
    opens = np.asarray([*waves[:n_ahead], *([waves[-1]] * (n_ahead - len(waves)))] if waves else np.zeros(n_ahead))
    is_wave = opens > _LEAST_WAVE
    factor = np.where(is_wave, np.exp(np.minimum(_WAVE_POWER * opens, _HIGHEST_WAVE) + _WAVE_OFFSET * (1 - youth)), 1.0)
    likely, high = forecast.likely.copy(), forecast.high.copy()
    likely[n:] *= factor
    spread = np.where(is_wave, _WAVE_SPREAD, _LEAST_SPREAD if len(waves) else 1.0)
    high[n:] = np.maximum(high[n:], spread * likely[n:])
    return Forecast(forecast.low, likely, high, n)


def _youth(known: Series) -> float:
    """1 if few bodies were counted, falling to 0 for many."""
    return float(np.interp(np.log(max(1.0, known.sum())), np.log([_FEW_BODIES, _MANY_BODIES]), [1.0, 0.0]))


def _forecast(known: Series, low: Series, likely: Series, high: Series) -> Forecast:
    low, likely, high = (np.concatenate([known, part]) for part in (low, likely, high))
    return Forecast(low, likely, high, len(known))


def _line(known: Series, t: Series) -> Series:
    """A straight line from the last point, with the slope of the last third, in logarithms."""
    first = max(1, min(int(len(known) * 2 / 3), len(known) - 3))
    slope = np.polyfit(np.log(np.arange(first, len(known)) + 1.0), _logs(known[first:]), 1)[0]
    return np.asarray(known[-1] * (t / len(known)) ** slope)


def _parabola(known: Series, t: Series) -> Series:
    """A parabola from the last point, with slope and curvature of the last two thirds, in logarithms; never convex."""
    first = max(1, min(int(len(known) / 3), len(known) - _LEAST_POINTS))
    x = np.log(np.arange(first, len(known)) + 1.0)
    curvature, slope, _ = np.polyfit(x - x[-1], _logs(known[first:]), 2)
    if curvature >= 0:
        return _line(known, t)
    ahead = np.log(t) - x[-1]
    return np.asarray(known[-1] * np.exp(slope * ahead + curvature * ahead**2))


def _logs(numbers: Series) -> Series:
    return np.asarray(np.log(np.maximum(numbers, 0.5)))
