"""How things go along a trajectory: power, the robot's values and the values of goals, state by state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray, IndexArray


@dataclass(frozen=True)
class Course:
    """Values along N states.

    Attributes
    ----------
    humans : list of agents, the axis H
    states : list of N
    level_N : (N,) int64
    X_NH : (N, H), the power of each human
    U_N, V_N : (N,), the robot's reward and value
    Vh_NHG : (N, H, G), what goals are worth with the robot
    attained_NHG : (N, H, G) booleans, whether each goal is attained in the state
    """

    humans: list[int]
    states: list[Any]
    level_N: IndexArray
    X_NH: FloatArray
    U_N: FloatArray
    V_N: FloatArray
    Vh_NHG: FloatArray
    attained_NHG: Any

    @property
    def gain_NH(self) -> FloatArray:
        """(N - 1, H), by how much each step changes the power of each human."""
        return np.diff(self.X_NH, axis=0)


def course_of(solution: Solution, states: Iterable[Any]) -> Course:
    """Values along a trajectory, such as ``solution.rollouts(1).states(0)``; any states of the solution will do.

    Only the levels of these states are read, each once.
    """
    from empo_bi.problem.goal_columns import bits_of

    states = list(states)
    if not states:
        raise ValueError("states is empty; give the states of a trajectory, such as solution.rollouts(1).states(0)")
    where_N2 = np.array([solution.dag.place_of(state) for state in states])
    goals, n_humans = solution.goal_columns, len(solution.humans)
    X_NH, U_N, V_N = np.zeros((len(states), n_humans)), np.zeros(len(states)), np.zeros(len(states))
    Vh_NHG = np.zeros((len(states), n_humans, goals.n_goals))
    attained_NHG = np.zeros(Vh_NHG.shape, dtype=np.bool_)
    for t in np.unique(where_N2[:, 0]).tolist():
        n_M = np.flatnonzero(where_N2[:, 0] == t)
        place_M = where_N2[n_M, 1]
        X_NH[n_M], Vh_NHG[n_M] = solution.rows("xh", t, place_M), solution.rows("ve", t, place_M)
        U_N[n_M], V_N[n_M] = solution.rewards(t, place_M), solution.rows("vr", t, place_M)
        bits_MX = bits_of(goals.attained(t, place_M), goals.n_columns)
        attained_NHG[n_M] = bits_MX.reshape(len(n_M), n_humans, goals.n_goals)
    return Course(list(solution.humans), states, where_N2[:, 0], X_NH, U_N, V_N, Vh_NHG, attained_NHG)
