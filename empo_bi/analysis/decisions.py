r"""The robots' decision in a state, and the numbers behind it.

.. math:: P(s' \mid s, r) = \sum_u \pi_H(u \mid s) \, T(s' \mid s, (u, r)), \qquad
    E[X_h(s') \mid s, r] = \sum_{s'} P(s' \mid s, r) \, X_h(s')
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from empo_bi.analysis.quantities import robot_profile_names
from empo_bi.results.joint_policy import JointPolicy
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.wording import short_repr
from empo_bi.types import FloatArray, IndexArray


@dataclass(frozen=True)
class Decision:
    """The robots' choice among R profiles in one state.

    Attributes
    ----------
    state, level
    humans : list of agents, the axis H
    profiles, names : R profiles of the robots, as action numbers and in words
    probability_R : (R,), the robots' policy
    Q_R : (R,), the value of each profile
    power_after_RH : (R, H), the expected power of each human one step later; terminal states count as 0
    """

    state: Hashable
    level: int
    humans: list[int]
    profiles: list[tuple[int, ...]]
    names: list[str]
    probability_R: FloatArray
    Q_R: FloatArray
    power_after_RH: FloatArray

    def __str__(self) -> str:
        lines = [f"what the robots do in a state on level {self.level}:"]
        for r in np.argsort(-self.probability_R, kind="stable").tolist():
            power = ", ".join(f"{x:.4g}" for x in self.power_after_RH[r])
            lines.append(
                f"  {self.names[r]}: probability {self.probability_R[r]:.4f}, Q_r {self.Q_R[r]:.6g}, power next {power}"
            )
        return "\n".join(lines)


@suggests_names()
def decision_at(solution: Solution, state: Hashable) -> Decision:
    """The robots' policy in a state, with the values and the humans' power one step later that explain it.

    Raises ``ValueError`` for terminal states, in which nothing is decided.
    """
    t, place = solution.dag.place_of(state)
    joint = next(solution.joint_policies(t, np.array([place])), None)
    if joint is None:
        raise ValueError(f"{short_repr(state)} is terminal, so nothing is decided there; give another state")
    body_N, prob_RN = successors_by_robots(joint)
    power_NH = np.zeros((len(body_N), len(solution.humans)))
    for level, chosen, places in solution.dag.locate(t, body_N):
        power_NH[chosen] = solution.rows("xh", level, places)
    return Decision(
        state=state,
        level=t,
        humans=solution.humans,
        profiles=solution.robot_profiles,
        names=robot_profile_names(solution),
        probability_R=solution.robot_policies(t, np.array([place]))[0],
        Q_R=joint.q_MR[0],
        power_after_RH=prob_RN @ power_NH,
    )


def successors_by_robots(joint: JointPolicy) -> tuple[IndexArray, FloatArray]:
    """For the first state of a block: N possible successors, ascending, and their probability by robot profile (R, N)."""
    profiles = joint.profiles
    weight_J = joint.profile_weights()[0]
    # The robots' probabilities sum to 1, so what is left is the humans' joint policy.
    joint_U = weight_J[profiles.played_UR].sum(axis=1)
    count_MJ = joint.block.counts_of(profiles.n_profiles)
    entry_K = joint.block.entries_of(profiles.n_profiles)[: count_MJ[0].sum()]
    profile_K = np.repeat(np.arange(profiles.n_profiles), count_MJ[0])
    body_N, n_K = np.unique(joint.block.succ_K[entry_K].astype(np.int64), return_inverse=True)
    prob_K = joint.block.prob_K[entry_K] if joint.block.prob_K.size else np.ones(len(entry_K))
    prob_JN = np.zeros((profiles.n_profiles, len(body_N)))
    np.add.at(prob_JN, (profile_K, n_K), prob_K)
    return body_N, np.einsum("u,urn->rn", joint_U, prob_JN[profiles.played_UR])
