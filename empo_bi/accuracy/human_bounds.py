"""Phase 1 with bounds of errors, compiled; see ``arithmetic``."""

from __future__ import annotations

import math

import numpy as np

from empo_bi.accuracy.arithmetic import UNIT, expected, growth, policy_error, put_next
from empo_bi.runtime.jit import kernel, rule
from empo_bi.sweep.boltzmann import number_of_actions
from empo_bi.sweep.successor_values import find_entries, is_attained


@rule
def put_extreme(best_X, low_X, high_X, v_X, d_X, optimistic, is_first):  # type: ignore[no-untyped-def]
    """The least (greatest) value so far, and between which numbers the exact one is."""
    if is_first:
        for x in range(v_X.size):
            best_X[x], low_X[x], high_X[x] = v_X[x], v_X[x] - d_X[x], v_X[x] + d_X[x]
    elif optimistic:
        for x in range(v_X.size):
            best_X[x] = max(best_X[x], v_X[x])
            low_X[x], high_X[x] = max(low_X[x], v_X[x] - d_X[x]), max(high_X[x], v_X[x] + d_X[x])
    else:
        for x in range(v_X.size):
            best_X[x] = min(best_X[x], v_X[x])
            low_X[x], high_X[x] = min(low_X[x], v_X[x] - d_X[x]), min(high_X[x], v_X[x] + d_X[x])


@rule
def boltzmann_column(q_A, dq_A, beta, pi_A, dpi_A, theta_A, log_A):  # type: ignore[no-untyped-def]
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
    widest = 1 + growth(2 * turned)
    bend = turned * (2 + 2 * log_A)
    d, arithmetic, furthest = 0.0, 0.0, 0.0
    for a in range(A):
        slope = abs(1 + beta * (q_A[a] - v)) + bend
        d += widest * pi_A[a] * slope * dq_A[a]
        arithmetic += pi_A[a] * growth(theta_A[a]) * abs(q_A[a] - v)
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
    """Phase 1 for M states, as :func:`empo_bi.sweep.kernels.human_block` computes it, with bounds."""
    U, R = profile_UR.shape
    H, A, n_others = profile_HAO.shape
    X = v_MX.shape[1]
    G = X // H
    best_UX, low_UX, high_UX = np.empty((U, X)), np.empty((U, X)), np.empty((U, X))
    sum_X, dsum_X = np.empty(X), np.empty(X)
    q_A, dq_A, pi_A, dpi_A, theta_A = np.empty(A), np.empty(A), np.empty(A), np.empty(A), np.empty(A)
    at_J = np.empty(profile_UR.size + 1, np.int64)
    log_A = math.log(A)
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
            n = number_of_actions(profile_HAO, h)
            for a in range(n, A):
                pi_A[a], dpi_A[a] = 0.0, 0.0
            for a in range(n):
                q, dq = 0.0, 0.0
                for o in range(n_others):
                    u = profile_HAO[h, a, o]
                    if u < 0:
                        break
                    q += belief_HU[h, u] * best_UX[u, x]
                    dq += belief_HU[h, u] * max(high_UX[u, x] - best_UX[u, x], best_UX[u, x] - low_UX[u, x])
                q_A[a], dq_A[a] = q, dq + ((n_others + 2) * UNIT * q if n_others > 1 else 0.0)
            v, dv = boltzmann_column(q_A[:n], dq_A[:n], beta, pi_A[:n], dpi_A[:n], theta_A[:n], log_A)
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
