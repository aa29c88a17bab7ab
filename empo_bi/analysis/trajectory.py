"""Values along a trajectory, state by state: the humans' power, the robot's values, and the values of goals."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from empo_bi.problem.goal_columns import bits_of
from empo_bi.problem.protocols import Goal
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import suggests_names
from empo_bi.types import BoolArray, FloatArray, IndexArray
from empo_bi.world.goals import ConditionGoal


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
    Vh_NHG : (N, H, G), the values of goals with the robot
    attained_NHG : (N, H, G) booleans, whether each goal is attained in the state
    goal_names : a list for each human, with the name of each goal that has one, and the numbers of the others
    """

    humans: list[int]
    states: list[Hashable]
    level_N: IndexArray
    X_NH: FloatArray
    U_N: FloatArray
    V_N: FloatArray
    Vh_NHG: FloatArray
    attained_NHG: BoolArray
    goal_names: list[list[str]]

    @property
    def gain_NH(self) -> FloatArray:
        """(N - 1, H), the change of each human's power in each step."""
        return np.diff(self.X_NH, axis=0)


@suggests_names()
def course_of(solution: Solution, states: Iterable[Hashable]) -> Course:
    """Values along a trajectory, such as ``solution.rollouts(1).states(0)``, or for any other states of the solution.

    Only the levels of these states are read, each once.
    """
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
    names = [[_name(goal, g) for g, goal in enumerate(solution.goals[human])] for human in solution.humans]
    return Course(list(solution.humans), states, where_N2[:, 0], X_NH, U_N, V_N, Vh_NHG, attained_NHG, names)


def _name(goal: Goal, g: int) -> str:
    return goal.name if isinstance(goal, ConditionGoal) and goal.name is not None else str(g)
