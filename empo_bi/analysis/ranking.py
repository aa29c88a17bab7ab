"""The states of a level with the most and the least power, found without sorting the level."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from operator import index

import numpy as np

from empo_bi.analysis.selection import human_place, level_number
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import suggests_names
from empo_bi.types import FloatArray, IndexArray


@dataclass(frozen=True)
class RankedState:
    """A state, its place on its level, and the number by which it was ranked."""

    state: Hashable
    level: int
    place: int
    value: float


@suggests_names()
def most_empowered(
    solution: Solution, level: int, *, human: int | None = None, n: int = 5, min_probability: float | None = None
) -> list[RankedState]:
    """The ``n`` states of a level with the most power, greatest first; ties in the order of ``dag.states(level)``.

    Parameters
    ----------
    solution : Solution, with both phases
    level : int
    human : rank by the power :math:`X_h` of this human; None for the robot's reward :math:`U_r`, which combines all humans
    n : int
    min_probability : only states that are reached with at least this probability under both policies; None for all states
    """
    return _ranked(solution, level, human, n, min_probability, sign=-1.0)


@suggests_names()
def least_empowered(
    solution: Solution, level: int, *, human: int | None = None, n: int = 5, min_probability: float | None = None
) -> list[RankedState]:
    """The ``n`` states of a level with the least power, least first; see :func:`most_empowered`. Terminal states, which
    have no power, do not count."""
    return _ranked(solution, level, human, n, min_probability, sign=1.0)


def _ranked(
    solution: Solution, level: int, human: int | None, n: int, min_probability: float | None, sign: float
) -> list[RankedState]:
    if index(n) < 1:
        raise ValueError(f"n={n}; give a number of states, 1 or more")
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
    """The indices of the ``n`` smallest numbers, smallest first, ties in their order; all if there are fewer."""
    if n < len(value_M):
        bound = np.partition(value_M, n - 1)[n - 1]
        below, equal = np.flatnonzero(value_M < bound), np.flatnonzero(value_M == bound)
        found_N = np.concatenate([below, equal[: n - len(below)]])
    else:
        found_N = np.arange(len(value_M))
    return found_N[np.lexsort((found_N, value_M[found_N]))]
