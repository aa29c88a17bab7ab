r"""Both policies in blocks of states: probability mass pushed along them, profile weights, and random draws.

.. math:: d(s') \mathrel{+}= d(s) \sum_u \pi_H(u \mid s) \sum_r \pi_r(r \mid s) T(s' \mid s, (u, r))

The policies of a block fit into the processor's cache: they are computed from stored values, used, and dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.level_blocks import Block
from empo_bi.problem.profiles import Profiles
from empo_bi.runtime.jit import inlined, kernel
from empo_bi.sweep.kernels import marginals, power_law
from empo_bi.sweep.successor_values import find_entries
from empo_bi.types import FloatArray, IndexArray

BELOW_ONE = np.nextafter(1.0, 0.0)


@dataclass(frozen=True)
class JointPolicy:
    """A block of states with the policies of all agents.

    The humans play ``pi_MAX``, policies by goal (M, A, X) weighted by ``weight_NX``, or, with a user's own prior,
    ``joint_MU``; the other one is empty. The robots' policy follows from ``q_MR`` and ``beta_r``.
    """

    block: Block
    pi_MAX: npt.NDArray[np.floating]
    weight_NX: FloatArray
    joint_MU: FloatArray
    q_MR: FloatArray
    beta_r: float
    profiles: Profiles

    @property
    def policies(self) -> tuple[Any, ...]:
        """The arguments of the kernels below, in their order."""
        profiles = self.profiles
        return (
            self.pi_MAX, self.weight_NX, self.joint_MU, self.q_MR, self.beta_r, profiles.played_UR, profiles.action_UH,
        )  # fmt: skip

    def push(self, mass_SN: FloatArray, next_BN: FloatArray) -> None:
        """Move the masses of the block's states, of N kinds, to the rows of the bodies that follow."""
        push(
            self.block.place_M, self.block.row_M, *self.block.transitions, *self.policies, self.profiles.n_profiles,
            mass_SN, next_BN,
        )  # fmt: skip

    def profile_weights(self) -> FloatArray:
        """The probability of each profile, (M, J)."""
        weight_MJ = np.zeros((len(self.block.place_M), self.profiles.n_profiles))
        put_profile_weights(*self.policies, weight_MJ)
        return weight_MJ

    def draw(
        self, duration_K: FloatArray, first_M: IndexArray, last_M: IndexArray, uniform_N: FloatArray, profile_N: IndexArray,
        succ_N: IndexArray, duration_N: FloatArray,
    ) -> None:  # fmt: skip
        """Draw the next step of episodes that are in the block's states; see the kernel."""
        draw(
            self.block.row_M, *self.block.transitions, *self.policies, self.profiles.n_profiles, duration_K, first_M, last_M,
            uniform_N, profile_N, succ_N, duration_N,
        )  # fmt: skip


@inlined
def put_policies(m, pi_MAHG, weight_NHG, joint_MU, q_MR, beta, action_UH, marginal_HA, joint_U, pi_R):  # type: ignore[no-untyped-def]
    """The policies of humans and robots in state ``m``, into ``joint_U`` and ``pi_R``."""
    U, H = action_UH.shape
    power_law(q_MR[m], beta, pi_R)
    if joint_MU.shape[0] > 0:
        for u in range(U):
            joint_U[u] = joint_MU[m, u]
        return
    marginals(pi_MAHG[m], weight_NHG[m if weight_NHG.shape[0] > 1 else 0], marginal_HA)
    for u in range(U):
        share = np.float64(1.0)
        for h in range(H):
            share *= marginal_HA[h, action_UH[u, h]]
        joint_U[u] = share


@kernel
def push(  # type: ignore[no-untyped-def]
    place_M, row_M, start_E, count_EJ, succ_K, prob_K, pi_MAX, weight_NX, joint_MU, q_MR, beta, profile_UR, action_UH,
    n_profiles, mass_SN, next_BN,
):  # fmt: skip
    """Push masses of M states forward, in a fixed order of sums."""
    U, R = profile_UR.shape
    H, A, N = action_UH.shape[1], pi_MAX.shape[1], mass_SN.shape[1]
    pi_MAHG = pi_MAX.reshape((pi_MAX.shape[0], A, H, pi_MAX.shape[2] // H))
    weight_NHG = weight_NX.reshape((weight_NX.shape[0], H, weight_NX.shape[1] // H))
    marginal_HA, joint_U, pi_R = np.empty((H, A)), np.empty(U), np.empty(R)
    at_J = np.empty(n_profiles + 1, np.int64)
    for m in range(row_M.size):
        put_policies(m, pi_MAHG, weight_NHG, joint_MU, q_MR, beta, action_UH, marginal_HA, joint_U, pi_R)
        find_entries(at_J, row_M[m], start_E, count_EJ)
        mass_N = mass_SN[place_M[m]]
        for u in range(U):
            for r in range(R):
                share = joint_U[u] * pi_R[r]
                if share == 0:
                    continue
                j = profile_UR[u, r]
                for k in range(at_J[j], at_J[j + 1]):
                    p = share * prob_K[k] if prob_K.size else share
                    for n in range(N):
                        next_BN[succ_K[k], n] += p * mass_N[n]


@kernel
def put_profile_weights(  # type: ignore[no-untyped-def]
    pi_MAX, weight_NX, joint_MU, q_MR, beta, profile_UR, action_UH, weight_MJ
):
    """The probability of each profile in each of M states; profiles that are never played stay at 0."""
    U, R = profile_UR.shape
    H, A = action_UH.shape[1], pi_MAX.shape[1]
    pi_MAHG = pi_MAX.reshape((pi_MAX.shape[0], A, H, pi_MAX.shape[2] // H))
    weight_NHG = weight_NX.reshape((weight_NX.shape[0], H, weight_NX.shape[1] // H))
    marginal_HA, joint_U, pi_R = np.empty((H, A)), np.empty(U), np.empty(R)
    for m in range(weight_MJ.shape[0]):
        put_policies(m, pi_MAHG, weight_NHG, joint_MU, q_MR, beta, action_UH, marginal_HA, joint_U, pi_R)
        for u in range(U):
            for r in range(R):
                weight_MJ[m, profile_UR[u, r]] = joint_U[u] * pi_R[r]


@inlined
def pick(weight, first, last, x):  # type: ignore[no-untyped-def]
    """Divide [0, 1) by ``weight[first:last]``, which sum to 1: the entry whose interval has ``x``, and where in it ``x`` is.

    Entries of weight 0 are never picked; the last of the others gets what rounding leaves over.
    """
    found = first
    for i in range(first, last):
        if weight[i] > 0:
            found = i
            if x < weight[i]:
                break
            x -= weight[i]
    return found, min(x / weight[found], BELOW_ONE)


@kernel
def draw(  # type: ignore[no-untyped-def]
    row_M, start_E, count_EJ, succ_K, prob_K, pi_MAX, weight_NX, joint_MU, q_MR, beta, profile_UR, action_UH, n_profiles,
    duration_K, first_M, last_M, uniform_N, profile_N, succ_N, duration_N,
):  # fmt: skip
    """Draw the next step of each of N episodes, of which those from ``first_M[m]`` to ``last_M[m]`` are in state m.

    One number of ``uniform_N``, in [0, 1), decides the humans' actions, then the robots' actions, then the successor.
    """
    U, R = profile_UR.shape
    H, A = action_UH.shape[1], pi_MAX.shape[1]
    pi_MAHG = pi_MAX.reshape((pi_MAX.shape[0], A, H, pi_MAX.shape[2] // H))
    weight_NHG = weight_NX.reshape((weight_NX.shape[0], H, weight_NX.shape[1] // H))
    marginal_HA, joint_U, pi_R = np.empty((H, A)), np.empty(U), np.empty(R)
    at_J = np.empty(n_profiles + 1, np.int64)
    for m in range(row_M.size):
        put_policies(m, pi_MAHG, weight_NHG, joint_MU, q_MR, beta, action_UH, marginal_HA, joint_U, pi_R)
        joint_U /= joint_U.sum()  # a user's own prior need not sum to 1
        find_entries(at_J, row_M[m], start_E, count_EJ)
        for n in range(first_M[m], last_M[m]):
            u, x = pick(joint_U, 0, U, uniform_N[n])
            r, x = pick(pi_R, 0, R, x)
            j = profile_UR[u, r]
            k = at_J[j]
            if prob_K.size:
                k, x = pick(prob_K, at_J[j], at_J[j + 1], x)
            profile_N[n], succ_N[n] = j, succ_K[k]
            if duration_K.size:
                duration_N[n] = duration_K[k]
