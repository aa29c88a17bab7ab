r"""Both phases in float64, each number with a bound of its error (a *running error analysis*), compiled.

Letters as everywhere, and X for (human, goal) pairs. A name that begins with ``d`` is a bound of the absolute error of the
number without it: what exact arithmetic with the same parameters, probabilities, durations and weights gives is within it.
Bounds hold for errors of any size, not only to first order. Three arguments carry them through:

- A sum of n products of positive numbers is off by the errors of its terms, and by n units in the last place.
- If weights :math:`p` become :math:`p'_i \propto p_i e^{\theta_i}`, then, since :math:`\sum p_i (E_i - \bar E) = 0`,
  :math:`|\sum_i (p'_i - p_i) E_i| \le e^{\max \theta} \sum_i p_i (e^{\theta_i} - 1) |E_i - \bar E|`: an uncertain
  policy matters only as far as what is chosen matters. For the power law, :math:`\theta_i = -\beta \ln(1 - dQ_i / |Q_i|)`.
- The mean of a Boltzmann policy has the gradient :math:`\pi_a (1 + \beta (q_a - v))`, bounded over all q that may be.

Bounds are not exact sums themselves, so whoever reports them adds a thousandth.
"""

from __future__ import annotations

import math

import numpy as np

from empo_bi.backward.continuation import ATTAINED, find_entries, is_attained
from empo_bi.backward.kernels import joint_of, marginals, power_law
from empo_bi.runtime.jit import inlined, kernel, rule

UNIT = 2.0**-53  # the largest relative error of one operation
TINY = 1e-307  # what is lost below the smallest normal numbers


@rule
def expected(v_X, d_X, j, at_J, succ_K, prob_K, discount_K, value, error, slack):  # type: ignore[no-untyped-def]
    """What profile number ``j`` promises for each column, :math:`E(s, j, x)`; discounts are off by ``slack`` units."""
    for x in range(v_X.size):
        v_X[x] = 0.0
        d_X[x] = 0.0
    n = at_J[j + 1] - at_J[j]
    for k in range(at_J[j], at_J[j + 1]):
        s = succ_K[k]
        p = prob_K[k] if prob_K.size else 1.0
        discounted = p * discount_K[k] if discount_K.size else p
        for x in range(v_X.size):
            c = value[s, x]
            v_X[x] += discounted * c if c >= 0 else p
            d_X[x] += discounted * error[s, x]
    if n > 1 or discount_K.size:
        units = (n + 3 + (slack if discount_K.size else 0.0)) * UNIT
        for x in range(v_X.size):
            d_X[x] += units * v_X[x] + TINY


@rule
def put_extreme(best_X, low_X, high_X, v_X, d_X, optimistic, is_first):  # type: ignore[no-untyped-def]
    """The least (greatest) value so far, and between which numbers the exact one is."""
    for x in range(v_X.size):
        v, low, high = v_X[x], v_X[x] - d_X[x], v_X[x] + d_X[x]
        if is_first:
            best_X[x], low_X[x], high_X[x] = v, low, high
        elif optimistic:
            best_X[x], low_X[x], high_X[x] = max(best_X[x], v), max(low_X[x], low), max(high_X[x], high)
        else:
            best_X[x], low_X[x], high_X[x] = min(best_X[x], v), min(low_X[x], low), min(high_X[x], high)


@inlined
def policy_error(p, theta, most, n):  # type: ignore[no-untyped-def]
    r"""How far a probability is off if its logit is off by theta and others by at most ``most``: at most
    :math:`p (1 - p) (e^{\theta + most} - 1)`, and what normalising ``n`` weights adds."""
    return min(1.0, p * (1 - p) * math.expm1(min(theta + most, 700.0)) + (n + 4) * UNIT * p + TINY)


@rule
def boltzmann_column(q_A, dq_A, beta, pi_A, dpi_A, theta_A):  # type: ignore[no-untyped-def]
    """Policy and value of one column, with bounds. Returns value and bound."""
    A = q_A.size
    top, low, high, least = q_A[0], q_A[0] - dq_A[0], q_A[0] + dq_A[0], q_A[0] - dq_A[0]
    for a in range(1, A):
        top, low, high = max(top, q_A[a]), max(low, q_A[a] - dq_A[a]), max(high, q_A[a] + dq_A[a])
        least = min(least, q_A[a] - dq_A[a])
    total = 0.0
    if math.isinf(beta):  # equal shares of those whose computed numbers are equal; others may be, in exact arithmetic
        n_likely, is_sure = 0, True
        for a in range(A):
            pi_A[a] = 1.0 if q_A[a] == top else 0.0
            total += pi_A[a]
            if q_A[a] + dq_A[a] >= low:
                n_likely += 1
                is_sure = is_sure and dq_A[a] == 0
        for a in range(A):
            is_open = n_likely > 1 and not is_sure and q_A[a] + dq_A[a] >= low
            pi_A[a] /= total
            dpi_A[a] = max(pi_A[a], 1 - pi_A[a]) if is_open else 2 * UNIT * pi_A[a]
        return top, max(high - top, top - low)
    most = 0.0
    for a in range(A):
        z = beta * (q_A[a] - top)
        pi_A[a] = math.exp(z)
        total += pi_A[a]
        theta_A[a] = (4 - 3 * z) * UNIT  # of the exponential and of its argument
        most = max(most, dq_A[a])
    v = 0.0
    for a in range(A):
        pi_A[a] /= total
        v += pi_A[a] * q_A[a]
    turned = beta * most  # how far logits may be off
    widest = math.exp(min(2 * turned, 700.0))
    d, arithmetic, furthest = 0.0, 0.0, 0.0
    for a in range(A):
        slope = abs(1 + beta * (q_A[a] - v)) + turned * (2 + 2 * math.log(A))
        d += widest * pi_A[a] * slope * dq_A[a]
        arithmetic += pi_A[a] * math.expm1(min(theta_A[a], 700.0)) * abs(q_A[a] - v)
        theta_A[a] += beta * dq_A[a]
        furthest = max(furthest, theta_A[a])
    for a in range(A):
        dpi_A[a] = policy_error(pi_A[a], theta_A[a], furthest, A)
    d += 1.01 * arithmetic + (2 * A + 4) * UNIT * v
    return v, min(d, max(high - v, v - least))


@kernel
def human_bounds(  # type: ignore[no-untyped-def]
    row_M, slot_M, start_E, count_EJ, succ_K, prob_K, discount_K, value, error, attained_MB, has_NX, belief_NHU,
    profile_UR, profile_HAO, beta, factor, slack, optimistic, pi_MAX, dpi_MAX, v_MX, dv_MX, next_value, next_error,
):  # fmt: skip
    """Phase 1 for M states, as :func:`empo_bi.backward.kernels.human_block` computes it, with bounds."""
    U, R = profile_UR.shape
    H, A, n_others = profile_HAO.shape
    X = v_MX.shape[1]
    G = X // H
    best_UX, low_UX, high_UX = np.empty((U, X)), np.empty((U, X)), np.empty((U, X))
    sum_X, dsum_X = np.empty(X), np.empty(X)
    q_A, dq_A, pi_A, dpi_A, theta_A = np.empty(A), np.empty(A), np.empty(A), np.empty(A), np.empty(A)
    at_J = np.empty(profile_UR.size + 1, np.int64)
    for m in range(row_M.size):
        find_entries(at_J, row_M[m], start_E, count_EJ)
        for u in range(U):
            for r in range(R):
                expected(sum_X, dsum_X, profile_UR[u, r], at_J, succ_K, prob_K, discount_K, value, error, slack)
                put_extreme(best_UX[u], low_UX[u], high_UX[u], sum_X, dsum_X, optimistic, r == 0)
        belief_HU = belief_NHU[m if belief_NHU.shape[0] > 1 else 0]
        has_X = has_NX[m if has_NX.shape[0] > 1 else 0]
        for x in range(X):
            h = x // G
            for a in range(A):
                q, dq = 0.0, 0.0
                for o in range(n_others):
                    u = profile_HAO[h, a, o]
                    q += belief_HU[h, u] * best_UX[u, x]
                    dq += belief_HU[h, u] * max(high_UX[u, x] - best_UX[u, x], best_UX[u, x] - low_UX[u, x])
                q_A[a], dq_A[a] = q, dq + ((n_others + 2) * UNIT * q if n_others > 1 else 0.0)
            v, dv = boltzmann_column(q_A, dq_A, beta, pi_A, dpi_A, theta_A)
            if is_attained(attained_MB[m], x):  # credited on arrival
                v, dv = 0.0, 0.0
                for a in range(A):
                    pi_A[a], dpi_A[a] = 1.0 if a == 0 else 0.0, 0.0
            if not has_X[x]:
                v, dv = 0.0, 0.0
            v_MX[m, x], dv_MX[m, x] = v, dv
            for a in range(A):
                pi_MAX[m, a, x], dpi_MAX[m, a, x] = pi_A[a], dpi_A[a]
        put_next(next_value[slot_M[m]], next_error[slot_M[m]], v_MX[m], dv_MX[m], attained_MB[m], factor, slack)


@rule
def put_next(value_X, error_X, v_X, d_X, bits_B, factor, slack):  # type: ignore[no-untyped-def]
    """What arriving here will be worth, as :func:`empo_bi.backward.continuation.put_continuation` has it."""
    for x in range(v_X.size):
        if is_attained(bits_B, x):
            value_X[x], error_X[x] = (1.0 if factor > 0 else ATTAINED), 0.0
        elif factor > 0:
            value_X[x], error_X[x] = v_X[x] * factor, d_X[x] * factor
            if factor < 1:
                error_X[x] += (slack + 1) * UNIT * value_X[x] + (TINY if v_X[x] > 0 else 0.0)
        else:
            value_X[x], error_X[x] = v_X[x], d_X[x]


# --- phase 2 ----------------------------------------------------------------------------------------------------------


@rule
def robot_bounds_of_values(  # type: ignore[no-untyped-def]
    q_R, dq_R, w_R, dw_R, joint_U, others_HU, dm_HA, action_UH, at_J, succ_K, prob_K, discount_K, span_K, vr, vr_error,
    slack, profile_UR, is_given, v_U, c_A,
):  # fmt: skip
    r"""``q_R``: :math:`Q_r` with bounds, and the weights ``w_R`` of durations where these are told."""
    U, R = profile_UR.shape
    H, A = dm_HA.shape
    turned = 0.0
    for h in range(H):
        for a in range(A):
            turned += 0.0 if is_given else dm_HA[h, a]
    for r in range(R):
        q, d, w, longest, most, n = 0.0, 0.0, 0.0, 0.0, 0.0, 0
        low, high = 0.0, -np.inf
        for u in range(U):
            v, dv = 0.0, 0.0
            j = profile_UR[u, r]
            for k in range(at_J[j], at_J[j + 1]):
                s = succ_K[k]
                p = (prob_K[k] if prob_K.size else 1.0) * (discount_K[k] if discount_K.size else 1.0)
                v += p * vr[s]
                dv += p * vr_error[s]
                n += 1
                if span_K.size:
                    w += joint_U[u] * (prob_K[k] if prob_K.size else 1.0) * span_K[k]
                    longest = max(longest, span_K[k])
            v_U[u] = v
            q += joint_U[u] * v
            d += joint_U[u] * dv
            low, high, most = min(low, v), max(high, v), max(most, dv)
        if not is_given:
            for h in range(H):
                for a in range(A):
                    c_A[a] = 0.0
                for u in range(U):
                    c_A[action_UH[u, h]] += others_HU[h, u] * v_U[u]
                for a in range(A):
                    d += dm_HA[h, a] * abs(c_A[a] - q)
            # What several policies that are off at once add, and that successors are off where policies are.
            d += turned * turned * math.exp(min(turned, 700.0)) * (high - low + 2 * most) + turned * most
        q_R[r] = q
        dq_R[r] = d + (n + 6 + H + (slack if discount_K.size else 0.0)) * UNIT * abs(q) + TINY
        if span_K.size:
            w_R[r], dw_R[r] = w, turned * longest + (n + 8 + H + slack) * UNIT * w


@inlined
def most_of(relative):  # type: ignore[no-untyped-def]
    """The logarithm by which a number that is relatively off by so much may be off."""
    return np.inf if not relative < 1 else -math.log1p(-relative)


@rule
def power_law_errors(q_R, dq_R, beta, pi_R, theta_R, dpi_R):  # type: ignore[no-untyped-def]
    """How far logits and probabilities of the power law are off. Returns the former's greatest."""
    most, top = 0.0, np.inf
    for r in range(q_R.size):
        top = min(top, -q_R[r])
    for r in range(q_R.size):
        theta_R[r] = (beta * most_of(dq_R[r] / -q_R[r]) if beta > 0 else 0.0) + UNIT * (
            3 * beta * (abs(math.log(-q_R[r])) + abs(math.log(top)) + 1) + 6
        )
        most = max(most, theta_R[r])
    for r in range(q_R.size):
        dpi_R[r] = policy_error(pi_R[r], theta_R[r], most, q_R.size)
    return most


@rule
def future_error(q_R, dq_R, future, beta, pi_R):  # type: ignore[no-untyped-def]
    r"""How far :math:`\sum_r \pi_r(r) Q_r(r)` is off, given that its gradient along :math:`\ln |Q_r(r)|` is
    :math:`\pi_r(r) (Q_r(r) - \beta (Q_r(r) - \bar Q))`."""
    most, largest, least = 0.0, 0.0, np.inf
    for r in range(q_R.size):
        most = max(most, most_of(dq_R[r] / -q_R[r]))
        largest, least = max(largest, -q_R[r] + dq_R[r]), min(least, -q_R[r] - dq_R[r])
    widest, rounding = max(largest + future, -future - least), (q_R.size + 4) * UNIT * -future
    if (beta + 1) * most > 1:
        return widest + rounding
    turned = math.expm1(2 * (beta + 1) * most)
    d = 0.0
    for r in range(q_R.size):
        slope = abs(q_R[r] - beta * (q_R[r] - future)) + 2 * (1 + beta) * turned * largest
        d += (1 + turned) * pi_R[r] * slope * most_of(dq_R[r] / -q_R[r])
    logs = 0.0
    for r in range(q_R.size):
        logs += pi_R[r] * abs(q_R[r] - future) * (abs(math.log(-q_R[r])) + 2) * 6 * (beta + 1) * UNIT
    return min(d + logs, widest) + rounding


@inlined
def grown(base, exponent, d):  # type: ignore[no-untyped-def]
    """How far ``base ** exponent`` is off if ``base`` is by ``d``; both positive."""
    if base <= 0:
        return d**exponent
    relative = d / base
    up = math.expm1(min(exponent * math.log1p(relative), 700.0))
    down = 1.0 if not relative < 1 else -math.expm1(exponent * math.log1p(-relative))
    return base**exponent * max(up, down)


@rule
def reward(x_H, dx_H, xi, eta):  # type: ignore[no-untyped-def]
    r""":math:`U_r = -(\frac{1}{|H|} \sum_h X_h^{-\xi})^\eta`, and by which share it may be off."""
    H = x_H.size
    total, d = 0.0, 0.0
    for h in range(H):
        share = x_H[h] ** -xi
        total += share
        d += share * math.expm1(min(xi * most_of(dx_H[h] / x_H[h]), 700.0))
    relative = d / total + (H + 4 + xi) * UNIT
    return -((total / H) ** eta), math.expm1(min(eta * math.log1p(relative), 700.0)) + (6 + eta) * UNIT


@kernel
def robot_bounds(  # type: ignore[no-untyped-def]
    row_M, slot_M, start_E, count_EJ, succ_K, prob_K, discount_h_K, discount_r_K, span_K, value, error, vr, vr_error,
    attained_MB, has_NX, weight_NX, pi_MAX, dpi_MAX, joint_MU, joint_MXU, profile_UR, action_UH, n_profiles,
    beta, factor_h, factor_r, slack_h, slack_r, span, is_discounted, zeta, xi, eta,
    v_MX, dv_MX, x_MH, dx_MH, u_M, du_M, q_MR, dq_MR, pi_MR, dpi_MR, vr_M, dvr_M, next_value, next_error, next_vr, next_dvr,
):  # fmt: skip
    """Phase 2 for M states, as :func:`empo_bi.backward.kernels.robot_block` has it, with bounds; ``du_M`` is relative."""
    U, R = profile_UR.shape
    H = action_UH.shape[1]
    X, A = v_MX.shape[1], pi_MAX.shape[1]
    G = X // H
    is_given = joint_MU.shape[0] > 0
    marginal_HA, dm_HA = np.zeros((H, A)), np.zeros((H, A))
    joint_U, others_HU = np.empty(U), np.empty((H, U))
    at_J = np.empty(n_profiles + 1, np.int64)
    sum_X, dsum_X, w_R, dw_R, theta_R = np.empty(X), np.empty(X), np.empty(R), np.zeros(R), np.empty(R)
    e_RX, f_AX, low_X, high_X, most_X = np.empty((R, X)), np.empty((A, X)), np.empty(X), np.empty(X), np.empty(X)
    mean_X, w_X, v_U, c_A = np.empty(X), np.empty(X), np.empty(U), np.empty(A)
    weight_NHG = weight_NX.reshape((weight_NX.shape[0], H, G))
    pi_MAHG = pi_MAX.reshape((pi_MAX.shape[0], A, H, G if pi_MAX.shape[2] else 0))
    for m in range(row_M.size):
        find_entries(at_J, row_M[m], start_E, count_EJ)
        weight_HG = weight_NHG[m if weight_NHG.shape[0] > 1 else 0]
        has_X = has_NX[m if has_NX.shape[0] > 1 else 0]
        mass = 0.0
        if is_given:
            for u in range(U):
                joint_U[u] = joint_MU[m, u]
                mass += joint_U[u]
        else:
            marginals(pi_MAHG[m], weight_HG, marginal_HA)
            marginal_errors(dpi_MAX[m], weight_HG, marginal_HA, dm_HA)
            joint_of(marginal_HA, action_UH, joint_U, others_HU)
        q_R, dq_R, pi_R, dpi_R = q_MR[m], dq_MR[m], pi_MR[m], dpi_MR[m]
        for r in range(R):
            w_R[r] = span * mass if is_given and is_discounted else span
            dw_R[r] = (slack_r + U + 4) * UNIT * w_R[r] if is_discounted else 0.0
        robot_bounds_of_values(
            q_R, dq_R, w_R, dw_R, joint_U, others_HU, dm_HA, action_UH, at_J, succ_K, prob_K, discount_r_K, span_K, vr,
            vr_error, slack_r, profile_UR, is_given, v_U, c_A,
        )  # fmt: skip
        power_law(q_R, beta, pi_R)
        furthest = power_law_errors(q_R, dq_R, beta, pi_R, theta_R, dpi_R)
        v_X, dv_X = v_MX[m], dv_MX[m]
        for x in range(X):
            v_X[x], dv_X[x], most_X[x], low_X[x], high_X[x] = 0.0, 0.0, 0.0, np.inf, 0.0
            for r in range(R):
                e_RX[r, x] = 0.0
            for a in range(A):
                f_AX[a, x] = 0.0
        for u in range(U):
            for h in range(H):
                a = action_UH[u, h]
                for x in range(h * G, h * G + G):
                    mean_X[x] = 0.0
                    w_X[x] = joint_MXU[m, x, u] if is_given else others_HU[h, u] * pi_MAX[m, a, x]
            for r in range(R):
                expected(sum_X, dsum_X, profile_UR[u, r], at_J, succ_K, prob_K, discount_h_K, value, error, slack_h)
                for x in range(X):
                    e_RX[r, x] += w_X[x] * sum_X[x]
                    dv_X[x] += w_X[x] * pi_R[r] * dsum_X[x]
                    most_X[x] = max(most_X[x], dsum_X[x])
                    mean_X[x] += pi_R[r] * sum_X[x]
                    high_X[x] = max(high_X[x], sum_X[x])
            for x in range(X):
                low_X[x] = min(low_X[x], mean_X[x])
            for h in range(0 if is_given else H):
                a = action_UH[u, h]
                for x in range(h * G, h * G + G):
                    f_AX[a, x] += others_HU[h, u] * mean_X[x]
        n = at_J[n_profiles] - at_J[0]
        for x in range(X):
            h = x // G
            for r in range(R):
                v_X[x] += pi_R[r] * e_RX[r, x]
            d, off, share = 0.0, 0.0, math.expm1(min(2 * furthest, 700.0))
            for r in range(R):
                d += pi_R[r] * math.expm1(min(theta_R[r], 700.0)) * abs(e_RX[r, x] - v_X[x])
                off += dpi_R[r]
            d *= math.exp(min(furthest, 700.0))
            if not is_given:
                share = (1 + share) * (1 + share_of(pi_MAX[m, :, x], dpi_MAX[m, :, x])) - 1
                for a in range(A):
                    d += dpi_MAX[m, a, x] * abs(f_AX[a, x] - v_X[x])
                    off += dpi_MAX[m, a, x]
                for i in range(H):
                    if i != h:
                        share = (1 + share) * (1 + share_of(marginal_HA[i], dm_HA[i])) - 1
                        for a in range(A):
                            d += dm_HA[i, a] * (high_X[x] - low_X[x])
                            off += dm_HA[i, a]
            d += off * off * math.exp(min(off, 700.0)) * (high_X[x] + most_X[x]) + off * most_X[x]
            # Either how much what is chosen matters, or, where values are tiny, by which share all of it may be off.
            d = min(dv_X[x] + d, share * v_X[x] + (1 + share) * dv_X[x])
            dv_X[x] = d + (n + 2 * U + R + A + H + 8) * UNIT * v_X[x] + (TINY if v_X[x] > 0 else 0.0)
            if not is_given:  # a probability
                dv_X[x] = min(dv_X[x], max(v_X[x], 1.001 - v_X[x]))
            if not has_X[x]:
                v_X[x], dv_X[x] = 0.0, 0.0
        for h in range(H):
            power_h, d = 0.0, 0.0
            for g in range(G):
                if weight_HG[h, g] > 0:
                    power_h += weight_HG[h, g] * v_X[h * G + g] ** zeta
                    d += weight_HG[h, g] * grown(v_X[h * G + g], zeta, dv_X[h * G + g])
            x_MH[m, h], dx_MH[m, h] = power_h, d + (G + 6) * UNIT * power_h
        u_M[m], du_M[m] = reward(x_MH[m], dx_MH[m], xi, eta)
        duration, d_duration, future = 0.0, 0.0, 0.0
        for r in range(R):
            duration += pi_R[r] * w_R[r]
            future += pi_R[r] * q_R[r]
        for r in range(R):
            d_duration += dpi_R[r] * abs(w_R[r] - duration) + (pi_R[r] + dpi_R[r]) * dw_R[r]
        d_duration = d_duration / duration + (R + 4) * UNIT if duration > 0 else 0.0
        vr_M[m] = duration * u_M[m] + future
        own = -duration * u_M[m] * (du_M[m] + d_duration + du_M[m] * d_duration)
        dvr_M[m] = own + future_error(q_R, dq_R, future, beta, pi_R) + 4 * UNIT * -vr_M[m]
        next_vr[slot_M[m]] = vr_M[m] * factor_r if factor_r > 0 else vr_M[m]
        next_dvr[slot_M[m]] = dvr_M[m]
        if factor_r > 0:
            next_dvr[slot_M[m]] = dvr_M[m] * factor_r + (slack_r + 1) * UNIT * -next_vr[slot_M[m]]
        put_next(next_value[slot_M[m]], next_error[slot_M[m]], v_X, dv_X, attained_MB[m], factor_h, slack_h)


@rule
def share_of(p_A, dp_A):  # type: ignore[no-untyped-def]
    """By which share probabilities are off at most; those that are nothing do not count."""
    most = 0.0
    for a in range(p_A.size):
        if dp_A[a] > 2 * TINY:
            most = max(most, dp_A[a] / p_A[a] if p_A[a] > 0 else np.inf)
    return most


@rule
def marginal_errors(dpi_AX, weight_HG, marginal_HA, dm_HA):  # type: ignore[no-untyped-def]
    """How far each human's policy over all goals is off."""
    H, A = marginal_HA.shape
    G = weight_HG.shape[1]
    for h in range(H):
        total = 0.0
        for g in range(G):
            total += weight_HG[h, g]
        for a in range(A):
            d = 0.0
            for g in range(G):
                d += weight_HG[h, g] * dpi_AX[a, h * G + g]
            dm_HA[h, a] = min(1.0, d / total + (G + A + 6) * UNIT * marginal_HA[h, a]) if total > 0 else 0.0
