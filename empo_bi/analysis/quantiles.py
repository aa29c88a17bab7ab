"""Quantiles of numbers that have weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from empo_bi.types import FloatArray

ROUNDING = 1e-12  # of a share, when a quantile falls on the border between two numbers


def weighted_quantiles(value_MH: FloatArray, weight_M: FloatArray, quantiles: Sequence[float]) -> FloatArray:
    """(Q, H), for each column the smallest number up to which there is at least a share q of the weight.

    Parameters
    ----------
    value_MH : (M, H), numbers of M states, M at least 1
    weight_M : (M,), not negative, with a positive sum
    quantiles : Q numbers from 0 to 1
    """
    order_MH = np.argsort(value_MH, axis=0, kind="stable")
    share_MH = weight_M[order_MH].cumsum(axis=0) / weight_M.sum()
    place_QH = [(share_MH >= q - ROUNDING).argmax(axis=0) for q in quantiles]
    return np.stack([np.take_along_axis(value_MH, np.take_along_axis(order_MH, p[np.newaxis], 0), 0)[0] for p in place_QH])
