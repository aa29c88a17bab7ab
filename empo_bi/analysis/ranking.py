"""The states of a level with the most and the least power; found by partial selection, without sorting the level."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from empo_bi.analysis.selection import human_place, level_number
from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray, IndexArray


@dataclass(frozen=True)
class RankedState:
    """A state, where it is, and the number by which it was ranked."""

    state: Any
    level: int
    place: int
    value: float


def most_empowered(
    solution: Solution, level: int, *, human: int | None = None, n: int = 5, min_probability: float | None = None
) -> list[RankedState]:
    """The ``n`` states of a level with the most power, most first; of equals the first in ``dag.states(level)``.

    Parameters
    ----------
    solution : Solution, with both phases
    level : int
    human : whose power :math:`X_h`; None for the robot's reward :math:`U_r`, which takes all humans together
    n : int
    min_probability : only states to which both policies come with at least this probability; None for all states
    """
    return _ranked(solution, level, human, n, min_probability, sign=-1.0)


def least_empowered(
    solution: Solution, level: int, *, human: int | None = None, n: int = 5, min_probability: float | None = None
) -> list[RankedState]:
    """The same from the other end: those with the least power, least first. Terminal states, without any, do not count."""
    return _ranked(solution, level, human, n, min_probability, sign=1.0)


def _ranked(
    solution: Solution, level: int, human: int | None, n: int, min_probability: float | None, sign: float
) -> list[RankedState]:
    if index(n) < 1:
        raise ValueError(f"n={n}; ask for at least one state")
    t = level_number(solution, level)
    power_SH = solution.rows("xh", t)
    value_S = solution.values.U_r[t] if human is None else power_SH[:, human_place(solution, human)]
    counts_S = (power_SH > 0).all(axis=1)
    if min_probability is not None:
        counts_S &= solution.reached[t] >= min_probability
    place_M = np.flatnonzero(counts_S)
    place_N = place_M[smallest(sign * value_S[place_M], n)]
    states = solution.dag.states(t, place_N)
    return [
        RankedState(state, t, place, float(value_S[place])) for state, place in zip(states, place_N.tolist(), strict=True)
    ]


def smallest(value_M: FloatArray, n: int) -> IndexArray:
    """Where the ``n`` smallest numbers are, smallest first, of equals the first; all if there are fewer."""
    if n < len(value_M):
        bound = np.partition(value_M, n - 1)[n - 1]
        below, equal = np.flatnonzero(value_M < bound), np.flatnonzero(value_M == bound)
        found_N = np.concatenate([below, equal[: n - len(below)]])
    else:
        found_N = np.arange(len(value_M))
    return found_N[np.lexsort((found_N, value_M[found_N]))]
