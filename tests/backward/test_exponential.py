"""Our own exponential is as good as the C library's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from empo_bi.sweep.exponential import EXP_CONSTANTS, exp_constants, exp_nonpositive


@njit
def exponentials(z: Any, least: Any, constants: Any) -> Any:
    c = exp_constants(constants)
    for i in range(z.size):
        z[i] = exp_nonpositive(z[i], least, c)
    return z


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, -87.0), (np.float64, -708.0)])
def test_it_is_right_to_one_unit_in_the_last_place(dtype: Any, least: float) -> None:
    z = -np.concatenate([np.linspace(0, 3, 20_001), np.linspace(0, 80, 20_001)]).astype(dtype)
    expected = np.exp(z.astype(np.longdouble))
    found = exponentials(z.copy(), dtype(least), EXP_CONSTANTS.astype(dtype))
    assert found[0] == 1.0
    assert (np.abs((found - expected) / expected) <= np.finfo(dtype).eps).all()


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, -87.0), (np.float64, -708.0)])
def test_what_is_far_below_zero_is_as_good_as_nothing(dtype: Any, least: float) -> None:
    z = np.array([-1e3, -1e5, -1e30, -np.inf], dtype=dtype)
    found = exponentials(z, dtype(least), EXP_CONSTANTS.astype(dtype))
    assert (found >= 0).all()
    assert (found < 1e-37).all()
