r"""Arrows: where a policy takes an agent, cell by cell.

Each action of an agent that faces direction d has a heading (``world.headings``): in gridworlds ``forward`` has d, ``left``
and ``right`` the direction after the turn, any other action none. An arrow is the mean heading over the states with the
agent on that cell,

.. math:: \vec h(c) = \frac{\sum_{s: x_i(s) = c} w(s) \sum_a \pi_i(a \mid s) \, \vec e(d_i(s), a)}
    {\sum_{s: x_i(s) = c} w(s)},

so its length, at most 1, shows how sure the agent is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from empo_bi.analysis.agent_policy import policies_of
from empo_bi.analysis.maps import Others, map_states
from empo_bi.analysis.selection import REACHED, goal_place
from empo_bi.problem.protocols import Goal
from empo_bi.results.goal_names import GoalLike
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import suggests_names
from empo_bi.types import FloatArray
from empo_bi.world.map_world import MapWorld


@dataclass(frozen=True)
class ArrowMap:
    """An arrow, and a policy, for each cell.

    Attributes
    ----------
    world : GridWorld, or another world on a map
    level, agent : int
    policy : whose policy it is, such as "human 0 towards ReachCellGoal(agent 0, 2,2)"
    others : "reached", "mean", or a state, as in :func:`cell_map`
    heading_YX2 : (height, width, 2) float64, x to the right, y down; nan where the agent is in none of the states
    action_YXA : (height, width, A) float64, mean probabilities of the actions; nan likewise
    weight_YX : (height, width) float64, the weight of the states with the agent there that are not terminal
    goal : the goal that the agent pursues, if one was given
    """

    world: MapWorld
    level: int
    agent: int
    policy: str
    others: Others
    heading_YX2: FloatArray
    action_YXA: FloatArray
    weight_YX: FloatArray
    goal: Goal | None = None

    @property
    def title(self) -> str:
        return f"{self.policy}, level {self.level}"

    @property
    def stays_YX(self) -> FloatArray:
        """(height, width), the probability of actions that are not movements, such as ``still``; nan as ``action_YXA``."""
        no_movement = ~self.world.headings.any(axis=(0, 2))
        return self.action_YXA[:, :, no_movement].sum(axis=2)


@suggests_names()
def arrow_map(
    solution: Solution, agent: int, level: int, *, goal: GoalLike | None = None, others: Others = REACHED
) -> ArrowMap:
    """Where the policy of an agent takes it, by its cell.

    Parameters
    ----------
    solution : Solution of a gridworld
    agent : a human or a robot
    level : int
        The last level has no arrows: nobody acts there.
    goal : a goal of a human, its number or its name; None for the policy averaged over all goals
    others : "reached" (default), "mean", or a state
        As in :func:`cell_map`. Also with a goal, "reached" weights states by policies averaged over all goals.
    """
    chosen = map_states(solution, level, agent, others)
    heading_DA2 = chosen.world.headings
    n_actions = heading_DA2.shape[1]
    place_of = np.full(solution.dag.level_sizes[chosen.t], -1)
    place_of[chosen.place_M] = np.arange(len(chosen.place_M))
    result_MN, weight_M = np.zeros((len(chosen.place_M), n_actions + 2)), np.zeros(len(chosen.place_M))
    for place_B, pi_BA in policies_of(solution, agent, chosen.t, chosen.place_M, goal):
        m_B = place_of[place_B]
        result_MN[m_B, :n_actions] = pi_BA
        result_MN[m_B, n_actions:] = np.einsum("ba,bax->bx", pi_BA, heading_DA2[chosen.direction_M[m_B]])
        weight_M[m_B] = chosen.weight_M[m_B]  # the others are terminal
    going_on = np.flatnonzero(weight_M)
    chosen = chosen.only(going_on)
    mean_YXN, weight_YX = chosen.means(result_MN[going_on])
    who = "human" if agent in solution.humans else "robot" if agent in solution.robots else "agent"
    policy = f"{who} {agent}"
    pursued = None
    if goal is not None:
        h, g = goal_place(solution, agent, goal)
        pursued = solution.goals[agent][g]
        policy += f" towards {' '.join(solution.goal_columns.names[h][g].split())}"
    heading_YX2, action_YXA = mean_YXN[:, :, n_actions:], mean_YXN[:, :, :n_actions]
    return ArrowMap(chosen.world, chosen.t, agent, policy, others, heading_YX2, action_YXA, weight_YX, pursued)
