"""The values of a parameter in a batch: one value, a list, or a distribution to draw from."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from empo_bi.runtime.wording import did_you_mean, short_repr

KINDS = {
    "range": "{range: [8, 14]}, every whole number from 8 to 14",
    "uniform": "{uniform: [0.8, 1]}, drawn uniformly between 0.8 and 1",
    "log_uniform": "{log_uniform: [5, 100]}, drawn so that its logarithm is uniform",
    "integers": "{integers: [8, 14]}, whole numbers drawn uniformly, both ends included",
    "choices": "{choices: [1, 2, 5]}, one of these drawn each time",
}


@dataclass(frozen=True)
class ParameterValues:
    """The values of a parameter or of the horizon.

    Attributes
    ----------
    values : the values of a grid, one or more; empty if values are drawn
    kind, ends : the kind of distribution, and its ends or choices
    """

    name: str
    values: tuple[Any, ...] = ()
    kind: str = ""
    ends: tuple[Any, ...] = ()

    @property
    def is_random(self) -> bool:
        return not self.values

    def draws(self, n: int, seed: int) -> list[Any]:
        """``n`` values; a larger ``n`` begins with the same values, whatever else is drawn."""
        rng = np.random.Generator(np.random.PCG64([seed, zlib.crc32(self.name.encode())]))
        if self.kind == "uniform":
            low, high = self.ends
            return [float(low + (high - low) * u) for u in rng.random(n)]
        if self.kind == "log_uniform":
            low, high = self.ends
            drawn = [low * math.exp(u * math.log(high / low)) for u in rng.random(n).tolist()]
            return [min(max(float(value), low), high) for value in drawn]  # rounding may overshoot the ends
        if self.kind == "integers":
            low, high = self.ends
            return [int(low) + int(u * (high - low + 1)) for u in rng.random(n).tolist()]
        return [self.ends[int(u * len(self.ends))] for u in rng.random(n).tolist()]


def parameter_values_of(name: str, given: object, error: Callable[[str], Exception]) -> ParameterValues:
    """The values of a parameter as written in a batch file; ``error`` makes an exception that points to its line."""
    if isinstance(given, list):
        if not given:
            raise error("an empty list; give at least one value")
        if duplicates := [value for i, value in enumerate(given) if value in given[:i]]:
            raise error(f"duplicate value {short_repr(duplicates[0])} in the list; keep one of them")
        return ParameterValues(name, values=tuple(given))
    if not isinstance(given, dict):
        return ParameterValues(name, values=(given,))
    if len(given) != 1 or next(iter(given)) not in KINDS:
        hint = did_you_mean(str(next(iter(given), "")), KINDS)
        raise error(f"found {short_repr(given)}; give a value, a list, or one of: {'; '.join(KINDS.values())}.{hint}")
    [(kind, ends)] = given.items()
    if kind == "choices":
        if not isinstance(ends, list) or not ends:
            raise error(f"choices: {short_repr(ends)}; give a list, such as {KINDS[kind]}")
        return ParameterValues(name, kind=kind, ends=tuple(ends))
    if not isinstance(ends, list) or len(ends) != 2 or not all(_is_number(end) for end in ends) or ends[0] > ends[1]:
        raise error(f"{kind}: {short_repr(ends)}; give the lower and the upper end, such as {KINDS[kind]}")
    if kind == "log_uniform" and ends[0] <= 0:
        raise error(f"log_uniform: {short_repr(ends)}; give ends above 0")
    if kind in ("range", "integers") and not all(isinstance(end, int) for end in ends):
        raise error(f"{kind}: {short_repr(ends)}; give whole numbers as ends")
    if kind == "range":
        return ParameterValues(name, values=tuple(range(ends[0], ends[1] + 1)))
    return ParameterValues(name, kind=kind, ends=tuple(ends))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
