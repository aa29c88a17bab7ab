r"""What successors are worth, and rows of them combined: the inner loops of both phases.

A *continuation* table has, for each successor and column x = (h, g), what arriving there is worth to human h with goal g:

.. math:: c(s', x) = 1 \text{ if } g \text{ is attained in } s', \text{ else } e^{-\rho_h D} V(s', x)

With durations of 1 throughout the discount is part of the table. Otherwise the table has :math:`V` itself, ``ATTAINED``
where the goal is attained, and the discount comes with each transition.

An empty array stands for what is trivial: one successor each, probability 1, a discount that is part of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from empo_bi.runtime.jit import inlined

ATTAINED = np.float64(-1.0)  # in tables without discount; values are never negative


@inlined
def find_entries(at_J, row, start_E, count_EJ):  # type: ignore[no-untyped-def]
    """Where the successors of each profile begin, and where those of the last end (J + 1).

    An empty ``count_EJ`` says that each profile has one successor.
    """
    n_profiles = at_J.size - 1
    if count_EJ.size == 0:
        for j in range(n_profiles + 1):
            at_J[j] = row * n_profiles + j
    else:
        k = start_E[row]
        for j in range(n_profiles):
            at_J[j] = k
            k += count_EJ[row, j]
        at_J[n_profiles] = k


@inlined
def are_certain(j_R, at_J):  # type: ignore[no-untyped-def]
    """Whether each of some profiles has one successor, which then has probability 1."""
    more = np.int64(0)
    for r in range(j_R.size):
        more += at_J[j_R[r] + 1] - at_J[j_R[r]] - 1
    return more == 0


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


def _extreme_of_rows(extreme: Callable[..., Any]) -> Any:
    """A loop over rows of a table that finds the least (``min``) or the greatest (``max``), column by column."""

    @inlined
    def extreme_of_rows(out_X, j_R, at_J, succ_K, table):  # type: ignore[no-untyped-def]
        """Four rows at a time: what is between loops costs more than the loops."""
        R, X = j_R.size, out_X.size
        a = succ_K[at_J[j_R[0]]]
        if R >= 4:
            b, c, d = succ_K[at_J[j_R[1]]], succ_K[at_J[j_R[2]]], succ_K[at_J[j_R[3]]]
            for x in range(X):
                out_X[x] = extreme(extreme(table[a, x], table[b, x]), extreme(table[c, x], table[d, x]))
        else:
            for x in range(X):
                out_X[x] = table[a, x]
        r = 4 if R >= 4 else 1
        while r + 4 <= R:
            a, b, c, d = succ_K[at_J[j_R[r]]], succ_K[at_J[j_R[r + 1]]], succ_K[at_J[j_R[r + 2]]], succ_K[at_J[j_R[r + 3]]]
            for x in range(X):
                four = extreme(extreme(table[a, x], table[b, x]), extreme(table[c, x], table[d, x]))
                out_X[x] = extreme(out_X[x], four)
            r += 4
        while r < R:
            a = succ_K[at_J[j_R[r]]]
            for x in range(X):
                out_X[x] = extreme(out_X[x], table[a, x])
            r += 1

    return extreme_of_rows


least_of_rows = _extreme_of_rows(min)
greatest_of_rows = _extreme_of_rows(max)


@inlined
def mean_of_rows(out_X, weight_R, cell, j_R, at_J, succ_K, table):  # type: ignore[no-untyped-def]
    """The weighted sum of some rows. Four rows at a time, as above."""
    R, X = j_R.size, out_X.size
    r = 0
    while r < R:
        a = succ_K[at_J[j_R[r]]]
        cell[0] = weight_R[r]  # in the type of the tables
        p = cell[0]
        if r + 4 <= R:
            b, c, d = succ_K[at_J[j_R[r + 1]]], succ_K[at_J[j_R[r + 2]]], succ_K[at_J[j_R[r + 3]]]
            cell[0], cell[1] = weight_R[r + 1], weight_R[r + 2]
            q, s = cell[0], cell[1]
            cell[0] = weight_R[r + 3]
            t = cell[0]
            if r == 0:
                for x in range(X):
                    out_X[x] = (p * table[a, x] + q * table[b, x]) + (s * table[c, x] + t * table[d, x])
            else:
                for x in range(X):
                    out_X[x] += (p * table[a, x] + q * table[b, x]) + (s * table[c, x] + t * table[d, x])
            r += 4
        else:
            if r == 0:
                for x in range(X):
                    out_X[x] = p * table[a, x]
            else:
                for x in range(X):
                    out_X[x] += p * table[a, x]
            r += 1
