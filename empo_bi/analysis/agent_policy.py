"""What one agent does in the states of a level, block by block: policies are computed, used, and forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index
from typing import Any

import numpy as np

from empo_bi.analysis.selection import goal_place
from empo_bi.dag.python_world import n_agents_of
from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray, IndexArray


def agent_number(solution: Solution, agent: int) -> int:
    n = n_agents_of(solution.world)
    if not 0 <= index(agent) < n:
        raise ValueError(f"agent {agent}; this world has agents 0 to {n - 1}")
    return index(agent)


def policies_of(
    solution: Solution, agent: int, t: int, place_M: IndexArray | None = None, goal: Any = None
) -> Iterator[tuple[IndexArray, FloatArray]]:
    r"""Places of M states of a level that go on, and what an agent does there, (M, A), in blocks.

    A human with a ``goal`` plays :math:`\pi_h(a \mid s, g)`, and states in which it does not have that goal are left out;
    without one, all agents play what they do over all goals,

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
    for play in solution.plays(t, place_M):
        yield play.block.place_M, over_all_goals(solution, play.profile_weights(), agent)


def over_all_goals(solution: Solution, weight_MJ: FloatArray, agent: int) -> FloatArray:
    """What an agent does, (M, A), where profiles are played with these probabilities, (M, J)."""
    n_agents, n_actions = n_agents_of(solution.world), solution.profiles.n_actions
    others = tuple(n_agents - i for i in range(n_agents) if i != agent)  # agent 0 is the last axis
    return _normalised(weight_MJ.reshape(len(weight_MJ), *[n_actions] * n_agents).sum(axis=others))


def _normalised(pi_MA: FloatArray) -> FloatArray:
    """Rows that sum to 1: after float32 they do so only roughly, and a prior of another maker need not."""
    return pi_MA / pi_MA.sum(axis=1, keepdims=True)
