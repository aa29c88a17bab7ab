"""Power laws through measured points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def exponent(x: Sequence[float], y: Sequence[float], *, least: float = 0.0, span: float = 2.0) -> float | None:
    r"""The :math:`a` of :math:`y = c\,x^a`, by least squares on logarithms.

    Parameters
    ----------
    x, y : positive numbers
    least : points with a smaller y do not count, since constant costs bend them
    span : points whose x differ by less than this factor tell nothing

    Returns
    -------
    float, or None where fewer than two points count or they tell nothing
    """
    kept = [(a, b) for a, b in zip(x, y, strict=True) if b >= least and a > 0 and b > 0]
    if len(kept) < 2 or max(a for a, _ in kept) < span * min(a for a, _ in kept):
        return None
    log_x, log_y = np.log(np.array(kept)).T
    return float(np.polyfit(log_x, log_y, 1)[0])
