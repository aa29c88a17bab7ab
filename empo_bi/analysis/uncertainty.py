r"""Entropy of policies, and divergence between two policies, level by level, in nats.

The robots' policy is a power law, :math:`\pi_r \propto (-Q_r)^{-\beta_r}`, so with the logits
:math:`x_r = -\beta_r \ln(-Q_r)` and :math:`\ln Z = \ln \sum_r e^{x_r}` both measures have a closed form, which needs no
logarithm of a probability and works even if probabilities are too small for floating point:

.. math:: \ln \pi_r = x_r - \ln Z, \qquad H(\pi) = -\sum_r \pi_r \ln \pi_r, \qquad
    D(\pi \| \pi') = \sum_r \pi_r (\ln \pi_r - \ln \pi'_r)

Humans may act greedily (:math:`\beta_h = \infty`), which has no logits; for humans, both are computed from probabilities.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from empo_bi.analysis.agent_policy import policies_of
from empo_bi.analysis.alignment import shared_places
from empo_bi.analysis.selection import REACHED, goal_place, human_place, weights_of
from empo_bi.results.goal_names import GoalLike
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import suggests_names
from empo_bi.sweep import formulas
from empo_bi.types import BoolArray, FloatArray, IndexArray


@suggests_names()
def robot_entropy(solution: Solution, *, over: str = REACHED) -> FloatArray:
    """(T,), the mean entropy of the robots' policy on levels 0 to T - 1; nan where all states are terminal.

    ``over``: "reached" weights states by their probability under both policies (default), "mean" weights all equally.
    """

    def of_level(t: int) -> tuple[FloatArray, FloatArray]:
        logit_MR, goes_on = robot_logits(solution, t)
        return entropy_of_logits(logit_MR), weights_of(solution, t, over)[goes_on]

    return _means(solution.dag.horizon, of_level)


@suggests_names()
def human_entropy(solution: Solution, human: int, *, goal: GoalLike | None = None, over: str = REACHED) -> FloatArray:
    """(T,), the mean entropy of a human's policy on levels 0 to T - 1, for a goal or (None) averaged over all goals."""
    from scipy.special import entr

    human_place(solution, human)

    def of_level(t: int) -> tuple[FloatArray, FloatArray]:
        weight_S = weights_of(solution, t, over)
        entropy_S, goes_on_S = np.zeros(len(weight_S)), np.zeros(len(weight_S), dtype=np.bool_)
        for place_B, pi_BA in policies_of(solution, human, t, None, goal):
            entropy_S[place_B], goes_on_S[place_B] = entr(pi_BA).sum(axis=1), True
        return entropy_S[goes_on_S], weight_S[goes_on_S]

    return _means(solution.dag.horizon, of_level)


@suggests_names()
def robot_divergence(first: Solution, second: Solution, *, over: str = REACHED) -> FloatArray:
    """(T,), the mean Kullback-Leibler divergence of the robots' policies of two solutions, level by level.

    It counts the states that both solutions have and that are terminal in neither; ``over="reached"`` weights them by their
    probability in the first solution. T is the smaller horizon. Worlds may differ, for example in horizon, as long as they
    share states.
    """

    def of_level(t: int) -> tuple[FloatArray, FloatArray]:
        place_M, logit_MR, other_MR = shared_logits(first, second, t)
        return divergence_of_logits(logit_MR, other_MR), weights_of(first, t, over)[place_M]

    return _means(min(first.dag.horizon, second.dag.horizon), of_level)


@suggests_names()
def human_divergence(
    first: Solution, second: Solution, human: int, *, goal: GoalLike | None = None, over: str = REACHED
) -> FloatArray:
    """(T,), the same for a human, for a goal or (None) averaged over all goals; ``inf`` if the second policy excludes an
    action that the first may choose."""
    from scipy.special import rel_entr

    human_place(second, human)
    if goal is not None:  # in the second solution, its number may belong to another goal
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
    """Logits (N, R) of the robots' policy in those of M states that are not terminal, and which these are, (M,)."""
    q_MR = solution.rows("qr", t, place_M)
    goes_on: BoolArray = np.asarray((q_MR < 0).all(axis=1), dtype=np.bool_)
    return formulas.robot_logits(q_MR[goes_on], solution.params.beta_r), goes_on


def shared_logits(first: Solution, second: Solution, t: int) -> tuple[IndexArray, FloatArray, FloatArray]:
    """States that both solutions have and that are terminal in neither: places in the first, and both logits (M, R)."""
    if (first.robots, first.robot_profiles) != (second.robots, second.robot_profiles):
        raise ValueError("the two solutions have different robots or actions; compare solutions with the same ones")
    place_M, other_M = shared_places(first, second, t)
    (logit, goes_on), (other, other_goes_on) = robot_logits(first, t, place_M), robot_logits(second, t, other_M)
    both = goes_on & other_goes_on
    return place_M[both], logit[both[goes_on]], other[both[other_goes_on]]


def log_policy(logit_MR: FloatArray) -> FloatArray:
    """(M, R), x - ln Z; -inf for what is never played (beta_r = inf).

    The largest logit is shifted to 0 first, so that small terms do not get lost beside large ones.
    """
    shifted_MR = logit_MR - logit_MR.max(axis=1, keepdims=True)
    return shifted_MR - np.log(np.exp(shifted_MR).sum(axis=1, keepdims=True))


def entropy_of_logits(logit_MR: FloatArray) -> FloatArray:
    """(M,), the entropy of each policy."""
    return -_expected(log_policy(logit_MR), log_policy(logit_MR))


def divergence_of_logits(logit_MR: FloatArray, other_MR: FloatArray) -> FloatArray:
    """(M,), the divergence of each policy from the other one; ``inf`` where that one never plays what the first may."""
    log_MR = log_policy(logit_MR)
    with np.errstate(invalid="ignore"):  # what neither plays
        gap_MR = log_MR - log_policy(other_MR)
    return np.maximum(0.0, _expected(log_MR, gap_MR))  # rounding may leave -1e-17


def _expected(log_MR: FloatArray, number_MR: FloatArray) -> FloatArray:
    """(M,), the mean of numbers, which may be anything where the probability is 0."""
    pi_MR = np.exp(log_MR)
    return np.asarray((pi_MR * np.where(pi_MR > 0, number_MR, 0.0)).sum(axis=1))


# --- means ------------------------------------------------------------------------------------------------------------


def _means(n_levels: int, of_level: Callable[[int], tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Weighted mean for each level; ``of_level(t)`` gives numbers and weights. nan where all weights are 0."""
    mean_T = np.full(n_levels, np.nan)
    for t in range(n_levels):
        value_M, weight_M = of_level(t)
        counts = weight_M > 0  # states that are never reached may have infinite values
        if counts.any():
            mean_T[t] = np.average(value_M[counts], weights=weight_M[counts])
    return mean_T


def _policy_table(
    solution: Solution, human: int, t: int, place_M: IndexArray, goal: GoalLike | None
) -> tuple[FloatArray, BoolArray]:
    """The policy of a human in M states, (M, A), and which of them are not terminal."""
    pi_MA, goes_on_M = np.zeros((len(place_M), solution.profiles.n_actions)), np.zeros(len(place_M), dtype=np.bool_)
    row_S = np.full(solution.dag.level_sizes[t], -1)
    row_S[place_M] = np.arange(len(place_M))
    for place_B, pi_BA in policies_of(solution, human, t, place_M, goal):
        pi_MA[row_S[place_B]], goes_on_M[row_S[place_B]] = pi_BA, True
    return pi_MA, goes_on_M
