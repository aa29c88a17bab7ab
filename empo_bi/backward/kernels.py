r"""The mathematics of both phases for a block of states, compiled. Letters as everywhere, and X for (human, goal) pairs.

A *continuation* table has, for each successor and column x = (h, g), what arriving there is worth to human h with goal g:

.. math:: c(s', x) = 1 \text{ if } g \text{ is attained in } s', \text{ else } e^{-\rho_h D} V(s', x)

With durations of 1 throughout the discount is part of the table. Otherwise the table has :math:`V` itself, ``ATTAINED``
where the goal is attained, and the discount comes with each transition.

Every state is computed by itself, so results do not depend on how states are divided into blocks. Tables are float32 or
float64, and so are the sums over them; everything that has to do with the robot is float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from empo_bi.runtime.jit import inlined, kernel, rule

ATTAINED = np.float64(-1.0)  # in tables without discount; values are never negative

_LOG2_E = np.float64(1.4426950408889634)
_LN2_HIGH = np.float64(6.93145751953125e-1)
_LN2_LOW = np.float64(1.42860682030941723212e-6)


@intrinsic
def _power_of_two(typing_context: Any, exponent: Any) -> Any:
    """2 ** n for an int64 n between -1022 and 1023, by writing the bits of a double."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        biased = builder.add(arguments[0], ir.Constant(ir.IntType(64), 1023))
        return builder.bitcast(builder.shl(biased, ir.Constant(ir.IntType(64), 52)), ir.DoubleType())

    return types.float64(types.int64), generate


@inlined
def exp_nonpositive(x: float) -> float:
    """The exponential of a number that is at most 0, to two units in the last place.

    Exists because LLVM turns loops over it into vector instructions, which it cannot do with a call of the C library.
    """
    x = max(x, np.float64(-708.0))
    n = math.floor(x * _LOG2_E + np.float64(0.5))
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    # The Taylor series: |r| is at most 0.35, so terms beyond the 13th are below 1e-17.
    p = np.float64(1.0 / 6227020800.0)
    p = p * r + np.float64(1.0 / 479001600.0)
    p = p * r + np.float64(1.0 / 39916800.0)
    p = p * r + np.float64(1.0 / 3628800.0)
    p = p * r + np.float64(1.0 / 362880.0)
    p = p * r + np.float64(1.0 / 40320.0)
    p = p * r + np.float64(1.0 / 5040.0)
    p = p * r + np.float64(1.0 / 720.0)
    p = p * r + np.float64(1.0 / 120.0)
    p = p * r + np.float64(1.0 / 24.0)
    p = p * r + np.float64(1.0 / 6.0)
    p = p * r + np.float64(0.5)
    p = p * r + np.float64(1.0)
    p = p * r + np.float64(1.0)
    return p * _power_of_two(np.int64(n))  # type: ignore[call-arg]


# --- what successors are worth ----------------------------------------------------------------------------------------


@inlined
def n_successors(row, j, count_EJ):  # type: ignore[no-untyped-def]
    """Of a (row, profile); an empty ``count_EJ`` says one each."""
    return np.int64(1) if count_EJ.size == 0 else np.int64(count_EJ[row, j])


@inlined
def first_entry(row, start_E, n_profiles):  # type: ignore[no-untyped-def]
    """Where a row's successors begin; an empty ``start_E`` says that each profile has one."""
    return np.int64(row * n_profiles) if start_E.size == 0 else np.int64(start_E[row])


@inlined
def add_continuation(out_X, scale, k, succ_K, prob_K, discount_K, continuation, cell):  # type: ignore[no-untyped-def]
    """Add scale times probability times continuation of entry ``k``. Empty arrays: probability 1, discount in the table."""
    s = succ_K[k]
    cell[0] = scale * prob_K[k] if prob_K.size else scale  # in the type of the tables
    p = cell[0]
    if discount_K.size == 0:
        for x in range(out_X.size):
            out_X[x] += p * continuation[s, x]
    else:
        cell[1] = discount_K[k]
        d = cell[1]
        for x in range(out_X.size):
            c = continuation[s, x]
            out_X[x] += p * (d * c if c >= 0 else cell[2])


@inlined
def is_attained(bits_B, x):  # type: ignore[no-untyped-def]
    return (bits_B[x >> 3] >> (x & 7)) & 1


@inlined
def put_continuation(table, slot, v_X, bits_B, factor):  # type: ignore[no-untyped-def]
    """What arriving here will be worth; a ``factor`` of 0 says that the discount comes with each transition."""
    for x in range(v_X.size):
        table[slot, x] = v_X[x] * factor if factor > 0 else v_X[x]
    for x in range(v_X.size):
        if is_attained(bits_B, x):
            table[slot, x] = 1 if factor > 0 else ATTAINED


# --- phase 1 ----------------------------------------------------------------------------------------------------------


@rule
def extreme_over_robots(  # type: ignore[no-untyped-def]
    best_UX, sum_X, cell, row, k, count_EJ, succ_K, prob_K, discount_K, continuation, human_J, first_J, optimistic
):
    r"""``best_UX[u, x]``: the least (greatest, if optimistic) over the robots' profiles r of :math:`E(s, (u, r), x)`."""
    X = sum_X.size
    for j in range(human_J.size):
        n = n_successors(row, j, count_EJ)
        u = human_J[j]
        if n == 1 and discount_K.size == 0:  # the only successor has probability 1, and its row is taken as it is
            s = succ_K[k]
            if first_J[j]:
                for x in range(X):
                    best_UX[u, x] = continuation[s, x]
            elif optimistic:
                for x in range(X):
                    best_UX[u, x] = max(best_UX[u, x], continuation[s, x])
            else:
                for x in range(X):
                    best_UX[u, x] = min(best_UX[u, x], continuation[s, x])
        else:
            for x in range(X):
                sum_X[x] = 0
            for i in range(n):
                add_continuation(sum_X, np.float64(1.0), k + i, succ_K, prob_K, discount_K, continuation, cell)
            if first_J[j]:
                for x in range(X):
                    best_UX[u, x] = sum_X[x]
            elif optimistic:
                for x in range(X):
                    best_UX[u, x] = max(best_UX[u, x], sum_X[x])
            else:
                for x in range(X):
                    best_UX[u, x] = min(best_UX[u, x], sum_X[x])
        k += n


@rule
def boltzmann(q_AX, beta, top_X, sum_X, pi_AX, v_X):  # type: ignore[no-untyped-def]
    r"""Policies :math:`\pi(a \mid x) \propto e^{\beta q(a, x)}` and values :math:`v(x) = \sum_a \pi(a \mid x) q(a, x)`.

    For ``beta = inf`` the maximisers, compared with ``==``, share equally, and the value is the maximum.
    """
    A, X = q_AX.shape
    for x in range(X):
        top_X[x] = q_AX[0, x]
        sum_X[x] = 0
        v_X[x] = 0
    for a in range(1, A):
        for x in range(X):
            top_X[x] = max(top_X[x], q_AX[a, x])
    if math.isinf(beta):
        for a in range(A):
            for x in range(X):
                pi_AX[a, x] = 1 if q_AX[a, x] == top_X[x] else 0
    else:
        for a in range(A):
            for x in range(X):
                pi_AX[a, x] = exp_nonpositive(beta * np.float64(q_AX[a, x] - top_X[x]))
    for a in range(A):
        for x in range(X):
            sum_X[x] += pi_AX[a, x]
    for a in range(A):
        for x in range(X):
            pi_AX[a, x] /= sum_X[x]
            v_X[x] += pi_AX[a, x] * q_AX[a, x]
    if math.isinf(beta):
        for x in range(X):
            v_X[x] = top_X[x]


@kernel
def human_block(  # type: ignore[no-untyped-def]
    row_M, slot_M, start_E, count_EJ, succ_K, prob_K, discount_K, continuation, attained_MB, has_NX, belief_NHU,
    human_J, first_J, action_UH, beta, factor, optimistic, pi_MAX, v_MX, table,
):  # fmt: skip
    r"""Phase 1 for M states: goal-conditioned policies and values of the humans.

    .. math:: q(a, x) = \sum_{u: u_h = a} b_h(u) \min_r E(s, (u, r), x)

    Arrays whose first axis is N have one row for all states, or one each. Policies are written to ``pi_MAX`` (M, A, X),
    values to ``v_MX``, and what arriving at a state will be worth to row ``slot_M[m]`` of ``table``.
    """
    U, H = action_UH.shape
    A, X = pi_MAX.shape[1], v_MX.shape[1]
    G = X // H
    best_UX = np.empty((U, X), v_MX.dtype)
    q_AX = np.empty((A, X), v_MX.dtype)
    top_X, sum_X = np.empty(X, v_MX.dtype), np.empty(X, v_MX.dtype)
    cell = np.ones(3, v_MX.dtype)
    for m in range(row_M.size):
        row = row_M[m]
        k = first_entry(row, start_E, human_J.size)
        extreme_over_robots(
            best_UX, sum_X, cell, row, k, count_EJ, succ_K, prob_K, discount_K, continuation, human_J, first_J, optimistic
        )
        belief_HU = belief_NHU[m if belief_NHU.shape[0] > 1 else 0]
        q_AX[:] = 0
        for u in range(U):
            for h in range(H):
                a = action_UH[u, h]
                cell[0] = belief_HU[h, u]
                b = cell[0]
                for x in range(h * G, h * G + G):
                    q_AX[a, x] += b * best_UX[u, x]
        pi_AX, v_X, bits_B = pi_MAX[m], v_MX[m], attained_MB[m]
        boltzmann(q_AX, beta, top_X, sum_X, pi_AX, v_X)
        has_X = has_NX[m if has_NX.shape[0] > 1 else 0]
        for x in range(X):
            v_X[x] = v_X[x] if has_X[x] else 0
        for x in range(X):
            if is_attained(bits_B, x):  # credited on arrival
                v_X[x] = 0
                for a in range(A):
                    pi_AX[a, x] = 1 if a == 0 else 0
        put_continuation(table, slot_M[m], v_X, bits_B, factor)


# --- phase 2 ----------------------------------------------------------------------------------------------------------


@inlined
def marginals(pi_AX, weight_X, marginal_HA):  # type: ignore[no-untyped-def]
    """Each human's policy over all goals, normalised; uniform where all weights are 0."""
    H, A = marginal_HA.shape
    G = weight_X.size // H
    for h in range(H):
        total = np.float64(0.0)
        for a in range(A):
            mass = np.float64(0.0)
            for x in range(h * G, h * G + G):
                mass += weight_X[x] * pi_AX[a, x]
            marginal_HA[h, a] = mass
            total += mass
        for a in range(A):
            marginal_HA[h, a] = marginal_HA[h, a] / total if total > 0 else np.float64(1.0) / A


@inlined
def joint_of(marginal_HA, action_UH, joint_U, others_UH):  # type: ignore[no-untyped-def]
    """The humans' joint distribution, and that of all but one of them."""
    U, H = action_UH.shape
    for u in range(U):
        joint_U[u] = 1
        for h in range(H):
            joint_U[u] *= marginal_HA[h, action_UH[u, h]]
            others_UH[u, h] = 1
            for i in range(H):
                if i != h:
                    others_UH[u, h] *= marginal_HA[i, action_UH[u, i]]


@inlined
def power_law(q_R, beta, pi_R):  # type: ignore[no-untyped-def]
    r""":math:`\pi(r) \propto (-Q(r))^{-\beta}`, as a softmax of :math:`-\beta \ln(-Q)`, so that no number is too small."""
    top = -np.inf
    for r in range(q_R.size):
        pi_R[r] = -beta * math.log(-q_R[r])
        top = max(top, pi_R[r])
    total = np.float64(0.0)
    for r in range(q_R.size):
        pi_R[r] = math.exp(pi_R[r] - top)
        total += pi_R[r]
    for r in range(q_R.size):
        pi_R[r] /= total


@rule
def robot_values(  # type: ignore[no-untyped-def]
    q_R, weight_R, joint_U, row, k, count_EJ, succ_K, prob_K, discount_K, span_K, vr, human_J, robot_J
):
    r""":math:`Q_r(s, r) = \sum_u \pi_H(u) \sum_{s'} T e^{-\rho_r D} V_r(s')`, and likewise duration weights."""
    q_R[:] = 0
    if span_K.size:
        weight_R[:] = 0
    for j in range(human_J.size):
        n = n_successors(row, j, count_EJ)
        r, share = robot_J[j], joint_U[human_J[j]]
        if r >= 0 and share > 0:
            for i in range(k, k + n):
                p = share * prob_K[i] if prob_K.size else share
                q_R[r] += p * vr[succ_K[i]] * (discount_K[i] if discount_K.size else np.float64(1.0))
                if span_K.size:
                    weight_R[r] += p * span_K[i]
        k += n


@rule
def expected_over_robots(  # type: ignore[no-untyped-def]
    mean_UX, cell, pi_R, row, k, count_EJ, succ_K, prob_K, discount_K, continuation, human_J, robot_J
):
    r"""``mean_UX[u, x]`` = :math:`\sum_r \pi_r(r) E(s, (u, r), x)` with the continuation under both policies."""
    mean_UX[:] = 0
    for j in range(human_J.size):
        n = n_successors(row, j, count_EJ)
        r = robot_J[j]
        if r >= 0:
            mean_X = mean_UX[human_J[j]]
            for i in range(k, k + n):
                add_continuation(mean_X, pi_R[r], i, succ_K, prob_K, discount_K, continuation, cell)
        k += n


@inlined
def power(v_X, weight_X, first, last, zeta):  # type: ignore[no-untyped-def]
    r""":math:`X_h = \sum_g w(g) V(g)^\zeta`."""
    total = np.float64(0.0)
    for x in range(first, last):
        v = np.float64(v_X[x])
        total += weight_X[x] * (v if zeta == 1 else v * v if zeta == 2 else v**zeta)
    return total


@kernel
def robot_block(  # type: ignore[no-untyped-def]
    row_M, slot_M, start_E, count_EJ, succ_K, prob_K, discount_h_K, discount_r_K, span_K, continuation, vr,
    attained_MB, has_NX, weight_NX, pi_MAX, joint_MU, joint_MXU, human_J, robot_J, action_UH,
    beta, factor_h, factor_r, span, zeta, xi, eta, v_MX, xh_MH, qr_MR, vr_M, table, vr_table,
):  # fmt: skip
    r"""Phase 2 for M states: the robot's policy and what both policies together are worth.

    The humans play ``pi_MAX`` (policies by goal, from phase 1), or, where another prior tells, ``joint_MU`` (all profiles u)
    and ``joint_MXU`` (the same with one human pursuing one goal).

    .. math::
        V_h^e(x) = \sum_u \pi_{H|g}(u) \sum_r \pi_r(r) E(s, (u, r), x), \quad
        U_r = -\Big(\tfrac{1}{|H|} \sum_h X_h^{-\xi}\Big)^\eta, \quad
        V_r = \Big(\sum_r \pi_r(r) W(r)\Big) U_r + \sum_r \pi_r(r) Q_r(r)

    Returns the place of the first (state, human), as ``m * H + h``, whose power is not positive; -1 if there is none.
    """
    U, H = action_UH.shape
    A, X, R = pi_MAX.shape[1], v_MX.shape[1], qr_MR.shape[1]
    G = X // H
    is_given = joint_MU.shape[0] > 0
    mean_UX = np.empty((U, X), v_MX.dtype)
    marginal_HA = np.empty((H, A), np.float64)
    own_joint_U, others_UH = np.empty(U, np.float64), np.empty((U, H), np.float64)
    pi_R, weight_R = np.empty(R, np.float64), np.full(R, span)
    cell = np.ones(3, v_MX.dtype)
    powerless = np.int64(-1)
    for m in range(row_M.size):
        row = row_M[m]
        k = first_entry(row, start_E, human_J.size)
        weight_X = weight_NX[m if weight_NX.shape[0] > 1 else 0]
        has_X = has_NX[m if has_NX.shape[0] > 1 else 0]
        joint_U = own_joint_U
        if is_given:
            joint_U[:] = joint_MU[m]
        else:
            marginals(pi_MAX[m], weight_X, marginal_HA)
            joint_of(marginal_HA, action_UH, joint_U, others_UH)
        q_R = qr_MR[m]
        robot_values(q_R, weight_R, joint_U, row, k, count_EJ, succ_K, prob_K, discount_r_K, span_K, vr, human_J, robot_J)
        power_law(q_R, beta, pi_R)
        expected_over_robots(
            mean_UX, cell, pi_R, row, k, count_EJ, succ_K, prob_K, discount_h_K, continuation, human_J, robot_J
        )
        v_X = v_MX[m]
        for x in range(X):
            v_X[x] = 0
        for u in range(U):
            for h in range(H):
                if is_given:
                    for x in range(h * G, h * G + G):
                        v_X[x] += joint_MXU[m, x, u] * mean_UX[u, x]
                else:
                    cell[0] = others_UH[u, h]
                    others, a = cell[0], action_UH[u, h]
                    for x in range(h * G, h * G + G):
                        v_X[x] += others * pi_MAX[m, a, x] * mean_UX[u, x]
        for x in range(X):
            v_X[x] = v_X[x] if has_X[x] else 0
        inequality = np.float64(0.0)
        for h in range(H):
            xh_MH[m, h] = power(v_X, weight_X, h * G, h * G + G, zeta)
            if not xh_MH[m, h] > 0 and powerless < 0:
                powerless = m * H + h
            inequality += xh_MH[m, h] ** -xi
        u_r = -((inequality / H) ** eta)
        duration, future = np.float64(0.0), np.float64(0.0)
        for r in range(R):
            duration += pi_R[r] * weight_R[r]
            future += pi_R[r] * q_R[r]
        vr_M[m] = duration * u_r + future
        vr_table[slot_M[m]] = vr_M[m] * factor_r if factor_r > 0 else vr_M[m]
        put_continuation(table, slot_M[m], v_X, attained_MB[m], factor_h)
    return powerless
