"""Phase 2 with bounds of errors, compiled; see ``arithmetic``."""

from __future__ import annotations

import math

import numpy as np

from empo_bi.accuracy.arithmetic import TINY, UNIT, expected, grown, growth, most_of, policy_error, put_next, share_of
from empo_bi.runtime.jit import kernel, rule
from empo_bi.sweep.kernels import joint_of, marginals, power_law, raised, reward
from empo_bi.sweep.successor_values import find_entries


@rule
def robot_bounds_of_values(  # type: ignore[no-untyped-def]
    q_R, dq_R, w_R, dw_R, joint_U, others_HU, dm_HA, action_UH, at_J, succ_K, prob_K, discount_K, span_K, vr, vr_error,
    slack, profile_UR, is_given, v_U, c_A,
):  # fmt: skip
    r"""``q_R``: :math:`Q_r` with bounds, and the weights ``w_R`` of durations where these are given."""
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
            d += turned * turned * (1 + growth(turned)) * (high - low + 2 * most) + turned * most
        q_R[r] = q
        dq_R[r] = d + (n + 6 + H + (slack if discount_K.size else 0.0)) * UNIT * abs(q) + TINY
        if span_K.size:
            w_R[r], dw_R[r] = w, turned * longest + (n + 8 + H + slack) * UNIT * w


@rule
def best_shares_errors(q_R, dq_R, pi_R, theta_R, dpi_R):  # type: ignore[no-untyped-def]
    """The same where the best share equally: numbers that are equal by chance, or differ by rounding only, leave it open
    who is among them, as in :func:`empo_bi.accuracy.human_bounds.boltzmann_column`."""
    low, n_likely = -np.inf, 0
    for r in range(q_R.size):
        low = max(low, q_R[r] - dq_R[r])
    for r in range(q_R.size):
        n_likely += q_R[r] + dq_R[r] >= low
    for r in range(q_R.size):
        is_open = n_likely > 1 and q_R[r] + dq_R[r] >= low
        dpi_R[r] = max(pi_R[r], 1 - pi_R[r]) if is_open else 2 * UNIT * pi_R[r]
        theta_R[r] = dpi_R[r]
    return np.inf if n_likely > 1 else 2 * UNIT


@rule
def power_law_errors(q_R, dq_R, beta, pi_R, theta_R, dpi_R):  # type: ignore[no-untyped-def]
    """How far logits and probabilities of the power law are off. Returns the former's greatest.

    For ``beta = inf``, where there are no logits, ``theta_R`` has how far probabilities are off as well.
    """
    if math.isinf(beta):
        return best_shares_errors(q_R, dq_R, pi_R, theta_R, dpi_R)
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
    if math.isinf(beta):  # the greatest of numbers that are off is off by no more than they are
        low, high = -np.inf, -np.inf
        for r in range(q_R.size):
            low, high = max(low, q_R[r] - dq_R[r]), max(high, q_R[r] + dq_R[r])
        return max(high - future, future - low) + rounding
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


@rule
def reward_error(x_H, dx_H, xi, eta):  # type: ignore[no-untyped-def]
    r"""By which share :math:`U_r` may be off."""
    H = x_H.size
    total, d = 0.0, 0.0
    for h in range(H):
        share = x_H[h] ** -xi
        total += share
        d += share * math.expm1(min(xi * most_of(dx_H[h] / x_H[h]), 700.0))
    relative = d / total + (H + 4 + xi) * UNIT
    return math.expm1(min(eta * math.log1p(relative), 700.0)) + (6 + eta) * UNIT


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


@kernel
def robot_bounds(  # type: ignore[no-untyped-def]
    row_M, slot_M, start_E, count_EJ, succ_K, prob_K, discount_h_K, discount_r_K, span_K, value, error, vr, vr_error,
    attained_MB, has_NX, weight_NX, pi_MAX, dpi_MAX, joint_MU, joint_MXU, profile_UR, action_UH, n_profiles,
    beta, factor_h, factor_r, slack_h, slack_r, span, is_discounted, zeta, xi, eta,
    v_MX, dv_MX, x_MH, dx_MH, u_M, du_M, q_MR, dq_MR, pi_MR, dpi_MR, vr_M, dvr_M, next_value, next_error, next_vr, next_dvr,
):  # fmt: skip
    """Phase 2 for M states, as :func:`empo_bi.sweep.kernels.robot_block` has it, with bounds; ``du_M`` is relative."""
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
        for r in range(0 if math.isinf(beta) else R):
            theta_R[r] = min(1e300, (1 + growth(furthest)) * pi_R[r] * growth(theta_R[r]))  # times 0 is to be 0
        share_r, off_r = growth(2 * furthest), 0.0
        for r in range(R):
            off_r += dpi_R[r]
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
            d, off, share = 0.0, off_r, share_r
            for r in range(R):
                d += theta_R[r] * abs(e_RX[r, x] - v_X[x])
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
            d += off * off * (1 + growth(off)) * (high_X[x] + most_X[x]) + off * most_X[x]
            # Either how much what is chosen matters, or, where values are tiny, by which share all of it may be off.
            d += dv_X[x]
            if share < 1e300:
                d = min(d, share * v_X[x] + (1 + share) * dv_X[x])
            dv_X[x] = d + (n + 2 * U + R + A + H + 8) * UNIT * v_X[x] + (TINY if v_X[x] > 0 else 0.0)
            if not is_given:  # a probability
                dv_X[x] = min(dv_X[x], max(v_X[x], 1.001 - v_X[x]))
            if not has_X[x]:
                v_X[x], dv_X[x] = 0.0, 0.0
        for h in range(H):
            power_h, d = 0.0, 0.0
            for g in range(G):
                if weight_HG[h, g] > 0:
                    v = v_X[h * G + g]
                    v_zeta = raised(v, zeta)
                    power_h += weight_HG[h, g] * v_zeta
                    d += weight_HG[h, g] * grown(v, zeta, v_zeta, dv_X[h * G + g])
            x_MH[m, h], dx_MH[m, h] = power_h, d + (G + 6) * UNIT * power_h
        u_M[m], du_M[m] = reward(x_MH[m], xi, eta), reward_error(x_MH[m], dx_MH[m], xi, eta)
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
