r"""The mathematics of both phases for a block of states, compiled. Letters as everywhere, and X for (human, goal) pairs.

What successors are worth is read from *continuation* tables, see ``continuation``.

Every state is computed by itself, so results do not depend on how states are divided into blocks. Tables are float32 or
float64, and so are the sums over them; everything that has to do with the robot is float64.
"""

from __future__ import annotations

import math

import numpy as np

from empo_bi.runtime.jit import inlined, kernel, rule
from empo_bi.sweep.boltzmann import boltzmann, boltzmann_of_own, number_of_actions
from empo_bi.sweep.exponential import EXP_CONSTANTS
from empo_bi.sweep.successor_values import (
    add_continuation,
    are_certain,
    find_entries,
    greatest_of_rows,
    is_attained,
    least_of_rows,
    mean_of_rows,
    put_continuation,
)

OK = np.int64(-1)

# --- phase 1 ----------------------------------------------------------------------------------------------------------


@rule
def extreme_over_robots(  # type: ignore[no-untyped-def]
    best_UX, sum_X, cell, at_J, succ_K, prob_K, discount_K, continuation, profile_UR, optimistic
):
    r"""``best_UX[u, x]``: the least (greatest, if optimistic) over the robots' profiles r of :math:`E(s, (u, r), x)`."""
    U, R = profile_UR.shape
    X = sum_X.size
    for u in range(U):
        best_X, j_R = best_UX[u], profile_UR[u]
        if discount_K.size == 0 and are_certain(j_R, at_J):
            if optimistic:
                greatest_of_rows(best_X, j_R, at_J, succ_K, continuation)
            else:
                least_of_rows(best_X, j_R, at_J, succ_K, continuation)
            continue
        for r in range(R):
            for x in range(X):
                sum_X[x] = 0
            for k in range(at_J[j_R[r]], at_J[j_R[r] + 1]):
                add_continuation(sum_X, np.float64(1.0), k, succ_K, prob_K, discount_K, continuation, cell)
            if r == 0:
                for x in range(X):
                    best_X[x] = sum_X[x]
            elif optimistic:
                for x in range(X):
                    best_X[x] = max(best_X[x], sum_X[x])
            else:
                for x in range(X):
                    best_X[x] = min(best_X[x], sum_X[x])


@rule
def expected_over_others(out_AHG, in_UHG, weight_HU, profile_HAO, cell):  # type: ignore[no-untyped-def]
    r"""``out_AHG[a, h, g]`` = :math:`\sum_{u: u_h = a}` weight(h, u) ``in_UHG[u, h, g]``: what each own action means.

    ``profile_HAO`` has, for each human and action, the human profiles with that action; -1 after the last of fewer than
    others have. Actions that a human does not have are worth 0.
    """
    H, A, most_others = profile_HAO.shape
    for h in range(H):
        for a in range(A):
            out_G, u_O = out_AHG[a, h], profile_HAO[h, a]
            n_others = most_others
            while n_others > 0 and u_O[n_others - 1] < 0:
                n_others -= 1
            if n_others == 0:
                for g in range(out_G.size):
                    out_G[g] = 0
            o = 0
            while o < n_others:
                i = u_O[o]
                cell[0] = weight_HU[h, i]
                p = cell[0]
                if o + 4 <= n_others:
                    j, k, n = u_O[o + 1], u_O[o + 2], u_O[o + 3]
                    cell[0], cell[1] = weight_HU[h, j], weight_HU[h, k]  # the third is taken, see add_continuation
                    q, s = cell[0], cell[1]
                    cell[0] = weight_HU[h, n]
                    t = cell[0]
                    i_G, j_G, k_G, n_G = in_UHG[i, h], in_UHG[j, h], in_UHG[k, h], in_UHG[n, h]
                    if o == 0:
                        for g in range(out_G.size):
                            out_G[g] = (p * i_G[g] + q * j_G[g]) + (s * k_G[g] + t * n_G[g])
                    else:
                        for g in range(out_G.size):
                            out_G[g] += (p * i_G[g] + q * j_G[g]) + (s * k_G[g] + t * n_G[g])
                    o += 4
                else:
                    i_G = in_UHG[i, h]
                    if o == 0:
                        for g in range(out_G.size):
                            out_G[g] = p * i_G[g]
                    else:
                        for g in range(out_G.size):
                            out_G[g] += p * i_G[g]
                    o += 1


@inlined
def acts_alone(profile_UR, profile_HAO, belief_NHU):  # type: ignore[no-untyped-def]
    """Whether one human decides everything: profiles are its actions, in their order, and there is nobody to believe in."""
    U, R = profile_UR.shape
    H, A, n_others = profile_HAO.shape
    is_alone = H == 1 and R == 1 and n_others == 1 and A == U and belief_NHU.shape[0] == 1
    for u in range(U):
        is_alone = is_alone and profile_UR[u, 0] == u and profile_HAO[0, u, 0] == u and belief_NHU[0, 0, u] == 1
    return is_alone


@rule
def greatest_alone(v_X, sum_X, cell, row, start_E, count_EJ, n_actions, succ_K, prob_K, continuation):  # type: ignore[no-untyped-def]
    r"""``v_X[x]`` = :math:`\max_a E(s, a, x)` where profiles are actions: a plain Markov decision process.

    The same sums in the same order as by way of all other functions here, without what they have to allow for.
    """
    X = v_X.size
    is_certain = count_EJ.size == 0
    k = row * n_actions if is_certain else start_E[row]
    if X == 1 and not is_certain and prob_K.size:  # what is between loops costs more than loops over one goal
        best = cell[2] - cell[2]  # 0 in the type of the tables
        for a in range(n_actions):
            last = k + count_EJ[row, a] - 1
            cell[0] = prob_K[k]
            total = cell[0] * continuation[succ_K[k], 0]
            for i in range(k + 1, last + 1):
                cell[0] = prob_K[i]
                total += cell[0] * continuation[succ_K[i], 0]
            best = max(best, total)
            k = last + 1
        v_X[0] = best
        return
    for x in range(X):
        v_X[x] = 0
    for a in range(n_actions):
        last = k if is_certain else k + count_EJ[row, a] - 1
        s = succ_K[k]
        if last == k:
            for x in range(X):
                v_X[x] = max(v_X[x], continuation[s, x])
        else:
            cell[0] = prob_K[k]  # in the type of the tables
            p = cell[0]
            for x in range(X):
                sum_X[x] = p * continuation[s, x]
            for i in range(k + 1, last):
                s = succ_K[i]
                cell[0] = prob_K[i]
                p = cell[0]
                for x in range(X):
                    sum_X[x] += p * continuation[s, x]
            s = succ_K[last]
            cell[0] = prob_K[last]
            p = cell[0]
            for x in range(X):
                v_X[x] = max(v_X[x], sum_X[x] + p * continuation[s, x])
        k = last + 1


@kernel
def human_block(  # type: ignore[no-untyped-def]
    row_M, slot_M, start_E, count_EJ, succ_K, prob_K, discount_K, continuation, attained_MB, has_NX, belief_NHU,
    profile_UR, profile_HAO, beta, factor, optimistic, pi_NAX, v_MX, table,
):  # fmt: skip
    r"""Phase 1 for M states: goal-conditioned policies and values of the humans.

    .. math:: q(a, x) = \sum_{u: u_h = a} b_h(u) \min_r E(s, (u, r), x)

    Arrays whose first axis is N have one row for all states, or one each. Policies are written to ``pi_NAX`` (one row, if
    nobody asks for them), values to ``v_MX``, and what arriving at a state will be worth to row ``slot_M[m]`` of ``table``.
    """
    U, A, X = profile_UR.shape[0], pi_NAX.shape[1], v_MX.shape[1]
    best_UX = np.empty((U, X), v_MX.dtype)
    q_AX = np.empty((A, X), v_MX.dtype)
    # Loops go over whole rows, or over the goals of one human from 0: were x to run from h * G, LLVM could not tell that it
    # is never negative, and would gather and scatter single numbers.
    H = profile_HAO.shape[0]
    best_UHG, q_AHG = best_UX.reshape((U, H, X // H)), q_AX.reshape((A, H, X // H))
    top_X, sum_X = np.empty(X, v_MX.dtype), np.empty(X, v_MX.dtype)
    at_J = np.empty(profile_UR.size + 1, np.int64)
    constants = EXP_CONSTANTS.astype(v_MX.dtype)
    limits = np.array([-708.0 if v_MX.itemsize == 8 else -87.0, beta]).astype(v_MX.dtype)
    least, sharpness = limits[0], limits[1]
    cell = np.ones(3, v_MX.dtype)
    has_fewer = False
    for h in range(H):
        has_fewer = has_fewer or number_of_actions(profile_HAO, h) < A
    is_plain = math.isinf(beta) and pi_NAX.shape[0] < row_M.size and discount_K.size == 0
    is_plain = is_plain and acts_alone(profile_UR, profile_HAO, belief_NHU)
    for m in range(row_M.size):
        pi_AX, v_X, bits_B = pi_NAX[m if pi_NAX.shape[0] > 1 else 0], v_MX[m], attained_MB[m]
        if is_plain:
            greatest_alone(v_X, sum_X, cell, row_M[m], start_E, count_EJ, A, succ_K, prob_K, continuation)
        else:
            find_entries(at_J, row_M[m], start_E, count_EJ)
            extreme_over_robots(best_UX, sum_X, cell, at_J, succ_K, prob_K, discount_K, continuation, profile_UR, optimistic)
            expected_over_others(q_AHG, best_UHG, belief_NHU[m if belief_NHU.shape[0] > 1 else 0], profile_HAO, cell)
            if has_fewer:
                boltzmann_of_own(q_AX, sharpness, pi_AX, v_X, least, constants, profile_HAO)
            else:
                boltzmann(q_AX, sharpness, top_X, sum_X, pi_AX, v_X, least, constants)
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
def marginals(pi_AHG, weight_HG, marginal_HA):  # type: ignore[no-untyped-def]
    """Each human's policy over all goals, normalised; uniform where all weights are 0."""
    H, A = marginal_HA.shape
    for h in range(H):
        weight_G = weight_HG[h]
        G = weight_G.size
        total = np.float64(0.0)
        for a in range(A):
            pi_G = pi_AHG[a, h]
            even, odd = np.float64(0.0), np.float64(0.0)  # two sums, neither of which waits for the other
            for g in range(0, G - 1, 2):
                even += weight_G[g] * pi_G[g]
                odd += weight_G[g + 1] * pi_G[g + 1]
            if G % 2:
                even += weight_G[G - 1] * pi_G[G - 1]
            marginal_HA[h, a] = even + odd
            total += even + odd
        for a in range(A):
            marginal_HA[h, a] = marginal_HA[h, a] / total if total > 0 else np.float64(1.0) / A


@inlined
def joint_of(marginal_HA, action_UH, joint_U, others_HU):  # type: ignore[no-untyped-def]
    """The humans' joint distribution, and that of all but one of them."""
    U, H = action_UH.shape
    for u in range(U):
        joint_U[u] = 1
        for h in range(H):
            joint_U[u] *= marginal_HA[h, action_UH[u, h]]
            others_HU[h, u] = 1
            for i in range(H):
                if i != h:
                    others_HU[h, u] *= marginal_HA[i, action_UH[u, i]]


@inlined
def power_law(q_R, beta, pi_R):  # type: ignore[no-untyped-def]
    r""":math:`\pi(r) \propto (-Q(r))^{-\beta}`, as a softmax of :math:`-\beta \ln(-Q)`, so that no number is too small.

    For ``beta = inf`` the maximisers, compared with ``==``, share equally.
    """
    top, best = -np.inf, -np.inf
    for r in range(q_R.size):
        best = max(best, q_R[r])
    for r in range(q_R.size):
        if math.isinf(beta):
            pi_R[r] = np.float64(0.0) if q_R[r] == best else -np.inf
        else:
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
    q_R, weight_R, joint_U, at_J, succ_K, prob_K, discount_K, span_K, vr, profile_UR
):
    r""":math:`Q_r(s, r) = \sum_u \pi_H(u) \sum_{s'} T e^{-\rho_r D} V_r(s')`, and likewise duration weights."""
    U, R = profile_UR.shape
    for r in range(R):
        q_R[r] = 0
        if span_K.size:
            weight_R[r] = 0
    for u in range(U):
        share = joint_U[u]
        if share == 0:
            continue
        for r in range(R):
            j = profile_UR[u, r]
            for k in range(at_J[j], at_J[j + 1]):
                p = share * prob_K[k] if prob_K.size else share
                q_R[r] += p * vr[succ_K[k]] * (discount_K[k] if discount_K.size else np.float64(1.0))
                if span_K.size:
                    weight_R[r] += p * span_K[k]


@rule
def expected_over_robots(  # type: ignore[no-untyped-def]
    mean_UX, cell, pi_R, at_J, succ_K, prob_K, discount_K, continuation, profile_UR
):
    r"""``mean_UX[u, x]`` = :math:`\sum_r \pi_r(r) E(s, (u, r), x)` with the continuation under both policies."""
    U, R = profile_UR.shape
    for u in range(U):
        mean_X, j_R = mean_UX[u], profile_UR[u]
        if discount_K.size == 0 and are_certain(j_R, at_J):
            mean_of_rows(mean_X, pi_R, cell, j_R, at_J, succ_K, continuation)
            continue
        for x in range(mean_X.size):
            mean_X[x] = 0
        for r in range(R):
            for k in range(at_J[j_R[r]], at_J[j_R[r] + 1]):
                add_continuation(mean_X, pi_R[r], k, succ_K, prob_K, discount_K, continuation, cell)


@inlined
def raised(v, zeta):  # type: ignore[no-untyped-def]
    r""":math:`V^\zeta`."""
    return v if zeta == 1 else v * v if zeta == 2 else v**zeta


@inlined
def power(v_G, weight_G, zeta):  # type: ignore[no-untyped-def]
    r""":math:`X_h = \sum_g w(g) V(g)^\zeta`."""
    total = np.float64(0.0)
    for g in range(v_G.size):
        total += weight_G[g] * raised(np.float64(v_G[g]), zeta)
    return total


@inlined
def reward(x_H, xi, eta):  # type: ignore[no-untyped-def]
    r""":math:`U_r = -(\frac{1}{|H|} \sum_h X_h^{-\xi})^\eta`."""
    total = np.float64(0.0)
    for h in range(x_H.size):
        total += x_H[h] ** -xi
    return -((total / x_H.size) ** eta)


@kernel
def robot_block(  # type: ignore[no-untyped-def]
    row_M, slot_M, start_E, count_EJ, succ_K, prob_K, discount_h_K, discount_r_K, span_K, continuation, vr,
    attained_MB, has_NX, weight_NX, pi_MAX, joint_MU, joint_MXU, profile_UR, profile_HAO, action_UH, n_profiles,
    policy_NR, beta, factor_h, factor_r, span, is_discounted, zeta, xi, eta, least, v_MX, xh_MH, qr_MR, vr_M, table,
    vr_table,
):  # fmt: skip
    r"""Phase 2 for M states: the robot's policy and what both policies together are worth.

    The humans play ``pi_MAX`` (policies by goal, from phase 1), or, with another prior, ``joint_MU`` (all profiles u)
    and ``joint_MXU`` (the same with one human pursuing one goal).

    .. math::
        V_h^e(x) = \sum_u \pi_{H|g}(u) \sum_r \pi_r(r) E(s, (u, r), x), \quad
        U_r = -\Big(\tfrac{1}{|H|} \sum_h X_h^{-\xi}\Big)^\eta, \quad
        V_r = \Big(\sum_r \pi_r(r) W(r)\Big) U_r + \sum_r \pi_r(r) Q_r(r)

    ``span`` is the weight of one step, where durations are not given by ``span_K``; with a discount it counts in proportion
    to the mass of the humans' distribution, which need not be 1 with another prior.

    The robots act by the power law, or, if ``policy_NR`` has one row for all states or one each, as that says. A policy
    that is given may leave a human without power: then U_r and V_r are ``-inf``, which only matters where it is reached.

    Returns ``OK``, or ``m * H + h`` for the first state m where a number is not what it should be: the power of human h is
    not positive and finite, or has no value above ``least``, or, with h = 0, U_r or V_r is not finite, or the former 0.
    """
    U, H = action_UH.shape
    A, X, R = pi_MAX.shape[1], v_MX.shape[1], qr_MR.shape[1]
    G = X // H
    is_given, is_fixed = joint_MU.shape[0] > 0, policy_NR.shape[0] > 0
    mean_UX = np.empty((U, X), v_MX.dtype)
    mean_UHG, v_MHG = mean_UX.reshape((U, H, G)), v_MX.reshape((v_MX.shape[0], H, G))
    weight_NHG = weight_NX.reshape((weight_NX.shape[0], H, G))
    pi_MAHG = pi_MAX.reshape((pi_MAX.shape[0], A, H, G if pi_MAX.shape[2] else 0))
    marginal_HA = np.empty((H, A), np.float64)
    joint_U, others_HU = np.empty(U, np.float64), np.empty((H, U), np.float64)
    mean_AX = np.empty((A, X), v_MX.dtype)
    mean_AHG = mean_AX.reshape((A, H, G))
    pi_R, weight_R = np.empty(R, np.float64), np.full(R, span)
    at_J = np.empty(n_profiles + 1, np.int64)
    cell = np.ones(3, v_MX.dtype)
    trouble = OK
    for m in range(row_M.size):
        find_entries(at_J, row_M[m], start_E, count_EJ)
        weight_HG = weight_NHG[m if weight_NHG.shape[0] > 1 else 0]
        has_X = has_NX[m if has_NX.shape[0] > 1 else 0]
        if is_given:
            for u in range(U):  # a slice would compile numba's complaints about shapes, two seconds of the first start
                joint_U[u] = joint_MU[m, u]
        else:
            marginals(pi_MAHG[m], weight_HG, marginal_HA)
            joint_of(marginal_HA, action_UH, joint_U, others_HU)
        q_R = qr_MR[m]
        robot_values(q_R, weight_R, joint_U, at_J, succ_K, prob_K, discount_r_K, span_K, vr, profile_UR)
        if is_fixed:
            for r in range(R):
                pi_R[r] = policy_NR[m if policy_NR.shape[0] > 1 else 0, r]
        else:
            power_law(q_R, beta, pi_R)
        expected_over_robots(mean_UX, cell, pi_R, at_J, succ_K, prob_K, discount_h_K, continuation, profile_UR)
        v_X = v_MX[m]
        for x in range(X):
            v_X[x] = 0
        if is_given:
            for u in range(U):
                for x in range(X):
                    v_X[x] += joint_MXU[m, x, u] * mean_UX[u, x]
        else:
            expected_over_others(mean_AHG, mean_UHG, others_HU, profile_HAO, cell)
            pi_AX = pi_MAX[m]
            for a in range(A):
                for x in range(X):
                    v_X[x] += pi_AX[a, x] * mean_AX[a, x]
        for x in range(X):
            v_X[x] = v_X[x] if has_X[x] else 0
        is_lost = False
        for h in range(H):
            v_G, weight_G = v_MHG[m, h], weight_HG[h]
            xh_MH[m, h] = power(v_G, weight_G, zeta)
            best = np.float64(0.0)
            for g in range(G):
                best = max(best, np.float64(v_G[g])) if weight_G[g] > 0 else best
            if is_fixed and xh_MH[m, h] == 0 and best == 0 and least == 0:
                is_lost = True
            elif not (0 < xh_MH[m, h] < np.inf and best > least) and trouble == OK:
                trouble = m * H + h
        u_r = -np.inf if is_lost else reward(xh_MH[m], xi, eta)
        duration, future = np.float64(0.0), np.float64(0.0)
        if is_given and is_discounted and span_K.size == 0:
            mass = np.float64(0.0)
            for u in range(U):
                mass += joint_U[u]
            weight_R[:] = span * mass
        for r in range(R):
            if pi_R[r] > 0:  # or what is never done, and worth -inf, would spoil the sum
                duration += pi_R[r] * weight_R[r]
                future += pi_R[r] * q_R[r]
        vr_M[m] = duration * u_r + future
        is_sound = math.isfinite(vr_M[m]) or (is_fixed and vr_M[m] == -np.inf)
        if not (is_sound and u_r < 0) and trouble == OK:
            trouble = m * H
        vr_table[slot_M[m]] = vr_M[m] * factor_r if factor_r > 0 else vr_M[m]
        put_continuation(table, slot_M[m], v_X, attained_MB[m], factor_h)
    return trouble
