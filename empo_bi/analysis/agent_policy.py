"""The policy of one agent in the states of a level, block by block; policies are computed, used, and dropped."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index

import numpy as np

from empo_bi.analysis.selection import goal_place
from empo_bi.results.goal_names import GoalLike
from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray, IndexArray


def agent_number(solution: Solution, agent: int) -> int:
    n = solution.model.n_agents
    if not 0 <= index(agent) < n:
        raise ValueError(f"agent {agent}; this world has agents 0 to {n - 1}")
    return index(agent)


def policies_of(
    solution: Solution, agent: int, t: int, place_M: IndexArray | None = None, goal: GoalLike | None = None
) -> Iterator[tuple[IndexArray, FloatArray]]:
    r"""In blocks: places of M states of a level that are not terminal, and the policy of an agent there, (M, A).

    With a ``goal``, that is a human's policy :math:`\pi_h(a \mid s, g)`, and states without this goal are left out. Without
    one, it is the agent's marginal of both policies,

    .. math:: \pi_i(a \mid s) = \sum_{p: p_i = a} \pi_H(p_H \mid s) \, \pi_r(p_r \mid s).
    """
    agent = agent_number(solution, agent)
    if goal is not None:
        h, g = goal_place(solution, agent, goal)
        column = h * solution.goal_columns.n_goals + g
        has_S = solution.goal_columns.has_column(t, column)
        for work, pi_MAX in solution.human_policies.blocks_of(t, place_M):
            has_M = np.broadcast_to(has_S, solution.dag.level_sizes[t])[work.block.place_M]
            yield work.block.place_M[has_M], _normalised(pi_MAX[has_M, :, column].astype(np.float64))
        return
    for joint in solution.joint_policies(t, place_M):
        yield joint.block.place_M, marginal_policy(solution, joint.profile_weights(), agent)


def marginal_policy(solution: Solution, weight_MJ: FloatArray, agent: int) -> FloatArray:
    """The action probabilities of an agent, (M, A), if profiles have the probabilities ``weight_MJ``."""
    n_agents, actions_N = solution.model.n_agents, solution.profiles.actions_N
    others = tuple(n_agents - i for i in range(n_agents) if i != agent)  # agent 0 is the last axis
    pi_MA = np.zeros((len(weight_MJ), solution.profiles.n_actions))
    pi_MA[:, : actions_N[agent]] = weight_MJ.reshape(len(weight_MJ), *reversed(actions_N)).sum(axis=others)
    return _normalised(pi_MA)


def _normalised(pi_MA: FloatArray) -> FloatArray:
    """Rows that sum to 1: in float32 they do so only roughly, and with a user's own prior they need not."""
    return pi_MA / pi_MA.sum(axis=1, keepdims=True)
