r"""How undecided agents are, and how far two policies are apart, level by level, in nats.

The robots' policy is a power law, :math:`\pi_r \propto (-Q_r)^{-\beta_r}`, so with the logits
:math:`x_r = -\beta_r \ln(-Q_r)` and :math:`\ln Z = \ln \sum_r e^{x_r}` both measures have a closed form, which needs no
logarithm of a probability and holds where probabilities are too small for floating point:

.. math:: \ln \pi_r = x_r - \ln Z, \qquad H(\pi) = -\sum_r \pi_r \ln \pi_r, \qquad
    D(\pi \| \pi') = \sum_r \pi_r (\ln \pi_r - \ln \pi'_r)

Humans may be strict (:math:`\beta_h = \infty`), for which logits do not exist; theirs are taken from the probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from empo_bi.analysis.agent_policy import policies_of
from empo_bi.analysis.alignment import shared_places
from empo_bi.analysis.selection import REACHED, goal_place, human_place, weights_of
from empo_bi.results.solution import Solution
from empo_bi.types import BoolArray, FloatArray, IndexArray


def robot_entropy(solution: Solution, *, over: str = REACHED) -> FloatArray:
    """(T,), the mean entropy of the robots' policy on levels 0 to T - 1; nan where all states are terminal.

    ``over``: "reached" weights states as both policies come to them (default), "mean" takes all alike.
    """

    def of_level(t: int) -> tuple[FloatArray, FloatArray]:
        logit_MR, goes_on = robot_logits(solution, t)
        return entropy_of_logits(logit_MR), weights_of(solution, t, over)[goes_on]

    return _means(solution.dag.horizon, of_level)


def human_entropy(solution: Solution, human: int, *, goal: Any = None, over: str = REACHED) -> FloatArray:
    """(T,), the mean entropy of a human's policy on levels 0 to T - 1, for a goal or (None) over all goals."""
    from scipy.special import entr

    human_place(solution, human)

    def of_level(t: int) -> tuple[FloatArray, FloatArray]:
        weight_S = weights_of(solution, t, over)
        entropy_S, goes_on_S = np.zeros(len(weight_S)), np.zeros(len(weight_S), dtype=np.bool_)
        for place_B, pi_BA in policies_of(solution, human, t, None, goal):
            entropy_S[place_B], goes_on_S[place_B] = entr(pi_BA).sum(axis=1), True
        return entropy_S[goes_on_S], weight_S[goes_on_S]

    return _means(solution.dag.horizon, of_level)


def robot_divergence(first: Solution, second: Solution, *, over: str = REACHED) -> FloatArray:
    """(T,), the mean Kullback-Leibler divergence of the robots' policies of two solutions, level by level.

    States are those that both solutions have and that are terminal in neither; ``over="reached"`` weights them as the first
    solution comes to them. T is the smaller horizon. Worlds may differ (in horizon, say), as long as they share states.
    """

    def of_level(t: int) -> tuple[FloatArray, FloatArray]:
        place_M, logit_MR, other_MR = shared_logits(first, second, t)
        return divergence_of_logits(logit_MR, other_MR), weights_of(first, t, over)[place_M]

    return _means(min(first.dag.horizon, second.dag.horizon), of_level)


def human_divergence(first: Solution, second: Solution, human: int, *, goal: Any = None, over: str = REACHED) -> FloatArray:
    """(T,), the same for a human, for a goal or (None) over all goals; ``inf`` where the second never does what the first
    may do."""
    from scipy.special import rel_entr

    human_place(second, human)
    if goal is not None:  # numbers may mean another goal there
        goal = first.goals[human][goal_place(first, human, goal)[1]]
    human_place(first, human)

    def of_level(t: int) -> tuple[FloatArray, FloatArray]:
        place_M, other_M = shared_places(first, second, t)
        pi_MA, goes_on_M = _policy_table(first, human, t, place_M, goal)
        other_MA, other_goes_on_M = _policy_table(second, human, t, other_M, goal)
        both = goes_on_M & other_goes_on_M
        divergence_N = np.maximum(0.0, rel_entr(pi_MA[both], other_MA[both]).sum(axis=1))
        return divergence_N, weights_of(first, t, over)[place_M[both]]

    return _means(min(first.dag.horizon, second.dag.horizon), of_level)


# --- logits -----------------------------------------------------------------------------------------------------------


def robot_logits(solution: Solution, t: int, place_M: IndexArray | None = None) -> tuple[FloatArray, BoolArray]:
    """Logits of the robots' policy in the states that go on, (N, R), and which of the states asked for those are."""
    q_MR = solution.rows("qr", t, place_M)
    goes_on: BoolArray = (q_MR < 0).all(axis=1)  # type: ignore[assignment]
    return -solution.params.beta_r * np.log(-q_MR[goes_on]), goes_on


def shared_logits(first: Solution, second: Solution, t: int) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Places in the first solution of states that both have and that go on in both, and the logits of each, (M, R)."""
    if (first.robots, first.robot_profiles) != (second.robots, second.robot_profiles):
        raise ValueError("the two solutions have other robots or actions; their decisions cannot be compared")
    place_M, other_M = shared_places(first, second, t)
    (logit, goes_on), (other, other_goes_on) = robot_logits(first, t, place_M), robot_logits(second, t, other_M)
    both = goes_on & other_goes_on
    return place_M[both], logit[both[goes_on]], other[both[other_goes_on]]


def log_policy(logit_MR: FloatArray) -> FloatArray:
    """(M, R), x - ln Z: shifted to a largest logit of 0 first, so that what is small is not lost beside what is large."""
    shifted_MR = logit_MR - logit_MR.max(axis=1, keepdims=True)
    return shifted_MR - np.log(np.exp(shifted_MR).sum(axis=1, keepdims=True))


def entropy_of_logits(logit_MR: FloatArray) -> FloatArray:
    """(M,)"""
    log_MR = log_policy(logit_MR)
    return -(np.exp(log_MR) * log_MR).sum(axis=1)


def divergence_of_logits(logit_MR: FloatArray, other_MR: FloatArray) -> FloatArray:
    """(M,)"""
    log_MR = log_policy(logit_MR)
    gap_M = (np.exp(log_MR) * (log_MR - log_policy(other_MR))).sum(axis=1)
    return np.maximum(0.0, gap_M)  # rounding may leave -1e-17


# --- means ------------------------------------------------------------------------------------------------------------


def _means(n_levels: int, of_level: Any) -> FloatArray:
    """Weighted means of what ``of_level(t)`` has, numbers and weights; nan where there is no weight."""
    mean_T = np.full(n_levels, np.nan)
    for t in range(n_levels):
        value_M, weight_M = of_level(t)
        counts = weight_M > 0  # so that what is never reached may be infinite
        if counts.any():
            mean_T[t] = np.average(value_M[counts], weights=weight_M[counts])
    return mean_T


def _policy_table(solution: Solution, human: int, t: int, place_M: IndexArray, goal: Any) -> tuple[FloatArray, BoolArray]:
    """What a human does in M states, (M, A), and whether they go on."""
    pi_MA, goes_on_M = np.zeros((len(place_M), solution.profiles.n_actions)), np.zeros(len(place_M), dtype=np.bool_)
    row_S = np.full(solution.dag.level_sizes[t], -1)
    row_S[place_M] = np.arange(len(place_M))
    for place_B, pi_BA in policies_of(solution, human, t, place_M, goal):
        pi_MA[row_S[place_B]], goes_on_M[row_S[place_B]] = pi_BA, True
    return pi_MA, goes_on_M
