r"""The formulas of docs/theory.md in plain NumPy, one function each. Kernels compute the same, faster; tests compare them.

Arrays are those of one state unless something else is said. Axes: U profiles of the humans, R of the robots, A actions,
K successors, H humans, G goals of one human, X = (human, goal) pairs of all humans; ``...`` stands for states.
"""

from __future__ import annotations

import math

import numpy as np

from empo_bi.types import BoolArray, FloatArray

# --- time -------------------------------------------------------------------------------------------------------------


def discount_factor(rate: float) -> float:
    r""":math:`\gamma = e^{-\rho}`, the discount of one step."""
    return math.exp(-rate)


def step_weight(rate: float) -> float:
    r""":math:`(1 - e^{-\rho}) / \rho`, how long one step is to a discounting robot; 1 without discount."""
    return -math.expm1(-rate) / rate if rate > 0 else 1.0


def discounts(rate: float, duration_K: FloatArray) -> FloatArray:
    r""":math:`e^{-\rho D}`, the discount of transitions that take D."""
    return np.exp(-rate * duration_K)


def duration_weights(rate: float, duration_K: FloatArray) -> FloatArray:
    r""":math:`(1 - e^{-\rho D}) / \rho`, how long transitions are to a discounting robot; 1 without discount."""
    return -np.expm1(-rate * duration_K) / rate if rate > 0 else np.ones_like(duration_K)


# --- phase 1 ----------------------------------------------------------------------------------------------------------


def continuation(v_X: FloatArray, attained_X: BoolArray, discount: float | FloatArray) -> FloatArray:
    r""":math:`c(s', g) = 1` if g is attained in s', else :math:`e^{-\rho_h D} V(s', g)`; any shape."""
    return np.where(attained_X, 1.0, discount * v_X)


def expectation(prob_K: FloatArray, worth_KX: FloatArray) -> FloatArray:
    r""":math:`E(V; s, (u, r), g) = \sum_{s'} T(s' \mid s, (u, r)) \, c(s', g)`, (X,)."""
    return prob_K @ worth_KX


def extreme_over_robots(expected_URX: FloatArray, optimistic: bool) -> FloatArray:
    r""":math:`\min_r E(V; s, (u, r), g)`, (U, X); the maximum for optimistic humans."""
    return np.asarray(expected_URX.max(axis=1) if optimistic else expected_URX.min(axis=1))


def action_values(belief_U: FloatArray, worth_UX: FloatArray, action_U: FloatArray, n_actions: int) -> FloatArray:
    r""":math:`q(s, a, g) = \sum_{u: u_h = a} b_h(u) \, w(u, g)`, (A, X): what the actions of one human are worth.

    ``action_U`` has what the human does in each profile, ``belief_U`` how likely the others' part of it is.
    """
    shares_AU = np.where(np.arange(n_actions)[:, np.newaxis] == action_U, belief_U, 0.0)
    return np.asarray(shares_AU @ worth_UX)


def boltzmann_policy(q_AX: FloatArray, beta: float) -> FloatArray:
    r""":math:`\pi_h(a \mid s, g) \propto e^{\beta_h q(s, a, g)}`, (A, X); for ``inf`` the best actions share equally."""
    top_X = q_AX.max(axis=0)
    weight_AX = (q_AX == top_X).astype(np.float64) if math.isinf(beta) else np.exp(beta * (q_AX - top_X))
    return np.asarray(weight_AX / weight_AX.sum(axis=0))


def human_policy(q_AX: FloatArray, beta: float, attained_X: BoolArray) -> tuple[FloatArray, FloatArray]:
    r""":math:`\pi_h` (A, X) and :math:`V_h = \sum_a \pi_h(a) q(a)` (X,); where g is attained already, action 0 and 0."""
    pi_AX = boltzmann_policy(q_AX, beta)
    first_A1 = np.arange(len(q_AX))[:, np.newaxis] == 0
    return np.where(attained_X, first_A1, pi_AX), np.where(attained_X, 0.0, (pi_AX * q_AX).sum(axis=0))


# --- what everybody plays ---------------------------------------------------------------------------------------------


def normalised(weights: FloatArray) -> FloatArray:
    """Weights divided by their sum; uniform where that is 0."""
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1.0 / len(weights))


def policy_over_goals(weight_G: FloatArray, pi_AG: FloatArray) -> FloatArray:
    r""":math:`\sum_g w_h(g) \, \pi_h(a \mid s, g)`, normalised, (A,)."""
    return normalised(pi_AG @ weight_G)


def joint_policy(policy_HA: FloatArray, action_UH: FloatArray) -> FloatArray:
    r""":math:`\pi_H(u \mid s) = \prod_h \pi_h(u_h \mid s)`, (U,): each human for itself."""
    chosen_HU = [policy_A[action_U] for policy_A, action_U in zip(policy_HA, action_UH.T, strict=True)]
    return np.asarray(np.prod(chosen_HU, axis=0))


def robot_logits(q_R: FloatArray, beta: float) -> FloatArray:
    r""":math:`-\beta_r \ln(-Q_r)`, of which :math:`\pi_r` is the softmax, (..., R); for ``inf`` 0 if best, else -inf."""
    if math.isinf(beta):
        return np.where(q_R == q_R.max(axis=-1, keepdims=True), 0.0, -np.inf)
    return np.asarray(-beta * np.log(-q_R))


def softmax(logit_R: FloatArray) -> FloatArray:
    r""":math:`e^{l_r} / \sum_{r'} e^{l_{r'}}`, (..., R), such that no number is too large."""
    weight_R = np.exp(logit_R - logit_R.max(axis=-1, keepdims=True))
    return np.asarray(weight_R / weight_R.sum(axis=-1, keepdims=True))


def robot_policy(q_R: FloatArray, beta: float) -> FloatArray:
    r""":math:`\pi_r(r \mid s) = (-Q_r(s, r))^{-\beta_r} / \sum_{r'} (-Q_r(s, r'))^{-\beta_r}`, (..., R).

    For ``inf`` the best share equally.
    """
    return softmax(robot_logits(q_R, beta))


def profile_probabilities(joint_U: FloatArray, pi_R: FloatArray) -> FloatArray:
    r""":math:`\pi_H(u \mid s) \, \pi_r(r \mid s)`, (U, R): the weights of :math:`T` in :math:`P(s' \mid s)`."""
    return np.multiply.outer(joint_U, pi_R)


# --- phase 2 ----------------------------------------------------------------------------------------------------------


def expected_over_humans(joint_U: FloatArray, worth_UR: FloatArray) -> FloatArray:
    r""":math:`\sum_u \pi_H(u \mid s) \, w(u, r)`, (R,).

    This is :math:`Q_r` if :math:`w = \sum_{s'} T e^{-\rho_r D} V_r(s')`, and :math:`W` if
    :math:`w = \sum_{s'} T (1 - e^{-\rho_r D}) / \rho_r`.
    """
    return joint_U @ worth_UR


def effective_value(joint_U: FloatArray, pi_R: FloatArray, expected_UR: FloatArray) -> float:
    r""":math:`V_h^e(s, g) = \sum_r \pi_r(r \mid s) \sum_u \pi_{H \mid g}(u \mid s) \, E(V_h^e; s, (u, r), g)`."""
    return float(joint_U @ expected_UR @ pi_R)


def power(v_G: FloatArray, weight_G: FloatArray, zeta: float) -> float:
    r""":math:`X_h(s) = \sum_g w_h(g) \, V_h^e(s, g)^\zeta`."""
    return float((weight_G * v_G**zeta).sum())


def inequality(x_H: FloatArray, xi: float) -> FloatArray:
    r""":math:`\frac{1}{|H|} \sum_h X_h(s)^{-\xi}`, (...)."""
    return np.asarray((x_H**-xi).mean(axis=-1))


def reward(x_H: FloatArray, xi: float, eta: float) -> FloatArray:
    r""":math:`U_r(s) = -\left( \frac{1}{|H|} \sum_h X_h(s)^{-\xi} \right)^\eta`, (...)."""
    return -(inequality(x_H, xi) ** eta)


def robot_value(pi_R: FloatArray, weight_R: FloatArray, u_r: float, q_R: FloatArray) -> float:
    r""":math:`V_r(s) = \sum_r \pi_r(r \mid s) \left( W(s, r) \, U_r(s) + Q_r(s, r) \right)`."""
    return float((pi_R @ weight_R) * u_r + pi_R @ q_R)
