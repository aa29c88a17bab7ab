r"""What both phases are made of in float64, each number with a bound of its error (a *running error analysis*).

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

from empo_bi.runtime.jit import inlined, rule
from empo_bi.sweep.successor_values import ATTAINED, is_attained

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


@inlined
def growth(theta):  # type: ignore[no-untyped-def]
    r"""At least :math:`e^\theta - 1`, and hardly more where theta is small, as it is nearly always."""
    return theta * (1 + theta) if theta < 1 else math.expm1(min(theta, 700.0))


@inlined
def policy_error(p, theta, most, n):  # type: ignore[no-untyped-def]
    r"""How far a probability is off if its logit is off by theta and others by at most ``most``: at most
    :math:`p (1 - p) (e^{\theta + most} - 1)`, and what normalising ``n`` weights adds."""
    return min(1.0, p * (1 - p) * growth(theta + most) + (n + 4) * UNIT * p + TINY)


@inlined
def most_of(relative):  # type: ignore[no-untyped-def]
    """The logarithm by which a number that is relatively off by so much may be off."""
    return np.inf if not relative < 1 else -math.log1p(-relative)


@inlined
def grown(base, exponent, power, d):  # type: ignore[no-untyped-def]
    """How far ``power``, which is ``base ** exponent``, is off if ``base`` is by ``d``; all are positive."""
    if base <= 0:
        return d**exponent
    relative = d / base
    if exponent * relative < 0.1 and relative < 0.1:  # the greater of both below, by their series
        return power * growth(exponent * relative * (1 + relative))
    down = 1.0 if not relative < 1 else -math.expm1(exponent * math.log1p(-relative))
    return power * max(math.expm1(min(exponent * math.log1p(relative), 700.0)), down)


@rule
def share_of(p_A, dp_A):  # type: ignore[no-untyped-def]
    """By which share probabilities are off at most; those that are nothing do not count."""
    most = 0.0
    for a in range(p_A.size):
        if dp_A[a] > 2 * TINY:
            most = max(most, dp_A[a] / p_A[a] if p_A[a] > 0 else np.inf)
    return most


@rule
def put_next(value_X, error_X, v_X, d_X, bits_B, factor, slack):  # type: ignore[no-untyped-def]
    """What arriving here will be worth, as :func:`empo_bi.sweep.successor_values.put_continuation` has it."""
    for x in range(v_X.size):
        if is_attained(bits_B, x):
            value_X[x], error_X[x] = (1.0 if factor > 0 else ATTAINED), 0.0
        elif factor > 0:
            value_X[x], error_X[x] = v_X[x] * factor, d_X[x] * factor
            if factor < 1:
                error_X[x] += (slack + 1) * UNIT * value_X[x] + (TINY if v_X[x] > 0 else 0.0)
        else:
            value_X[x], error_X[x] = v_X[x], d_X[x]
