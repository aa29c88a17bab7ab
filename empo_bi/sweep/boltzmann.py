r"""Boltzmann policies of humans, compiled: :math:`\pi(a \mid x) \propto e^{\beta q(a, x)}` for all columns x = (h, g)."""

from __future__ import annotations

import math

from empo_bi.runtime.jit import inlined, rule
from empo_bi.sweep.exponential import exp_constants, exp_nonpositive


@rule
def boltzmann(q_AX, beta, top_X, sum_X, pi_AX, v_X, least, constants):  # type: ignore[no-untyped-def]
    r"""Policies :math:`\pi(a \mid x) \propto e^{\beta q(a, x)}` and values :math:`v(x) = \sum_a \pi(a \mid x) q(a, x)`.

    For ``beta = inf`` the maximisers, compared with ``==``, share equally, and the value is the maximum.
    """
    A, X = q_AX.shape
    c = exp_constants(constants)
    if A == 4 and not math.isinf(beta):  # the usual number of actions: everything in one loop
        for x in range(X):
            q0, q1, q2, q3 = q_AX[0, x], q_AX[1, x], q_AX[2, x], q_AX[3, x]
            top = max(max(q0, q1), max(q2, q3))
            e0, e1 = exp_nonpositive(beta * (q0 - top), least, c), exp_nonpositive(beta * (q1 - top), least, c)
            e2, e3 = exp_nonpositive(beta * (q2 - top), least, c), exp_nonpositive(beta * (q3 - top), least, c)
            total = (e0 + e1) + (e2 + e3)
            e0, e1, e2, e3 = e0 / total, e1 / total, e2 / total, e3 / total
            pi_AX[0, x], pi_AX[1, x], pi_AX[2, x], pi_AX[3, x] = e0, e1, e2, e3
            v_X[x] = (e0 * q0 + e1 * q1) + (e2 * q2 + e3 * q3)
        return
    for x in range(X):
        top_X[x] = q_AX[0, x]
        sum_X[x] = 0
        v_X[x] = 0
    for a in range(1, A):
        for x in range(X):
            top_X[x] = max(top_X[x], q_AX[a, x])
    for a in range(A):
        if math.isinf(beta):
            for x in range(X):
                pi_AX[a, x] = 1 if q_AX[a, x] == top_X[x] else 0
                sum_X[x] += pi_AX[a, x]
        else:
            for x in range(X):
                pi_AX[a, x] = exp_nonpositive(beta * (q_AX[a, x] - top_X[x]), least, c)
                sum_X[x] += pi_AX[a, x]
    for a in range(A):
        for x in range(X):
            pi_AX[a, x] /= sum_X[x]
            v_X[x] += pi_AX[a, x] * q_AX[a, x]
    if math.isinf(beta):
        for x in range(X):
            v_X[x] = top_X[x]


@inlined
def number_of_actions(profile_HAO, h):  # type: ignore[no-untyped-def]
    """How many actions a human has; the first ones."""
    n = profile_HAO.shape[1]
    while n > 1 and profile_HAO[h, n - 1, 0] < 0:
        n -= 1
    return n


@rule
def boltzmann_of_own(q_AX, beta, pi_AX, v_X, least, constants, profile_HAO):  # type: ignore[no-untyped-def]
    """The same as :func:`boltzmann` where humans have different numbers of actions, one column after the other."""
    H, A, X = profile_HAO.shape[0], q_AX.shape[0], q_AX.shape[1]
    c = exp_constants(constants)
    for x in range(X):
        n = number_of_actions(profile_HAO, x // (X // H))
        top = q_AX[0, x]
        for a in range(1, n):
            top = max(top, q_AX[a, x])
        total = top - top  # 0 in the type of the tables
        v = total
        for a in range(A):
            pi_AX[a, x] = 0
        for a in range(n):
            if math.isinf(beta):
                pi_AX[a, x] = 1 if q_AX[a, x] == top else 0
            else:
                pi_AX[a, x] = exp_nonpositive(beta * (q_AX[a, x] - top), least, c)
            total += pi_AX[a, x]
        for a in range(n):
            pi_AX[a, x] /= total
            v += pi_AX[a, x] * q_AX[a, x]
        v_X[x] = top if math.isinf(beta) else v
