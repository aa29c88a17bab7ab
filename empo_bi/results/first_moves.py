"""What humans make of their goals at the very start: how much likelier their best action is than their worst.

Where these are nearly equal although the goal can be attained, humans dawdle: arriving late is as good as arriving early, or
``beta_h`` is too small to tell the difference. One lost step costs a share ``1 - gamma_h`` of the value V, so

.. math:: \\frac{\\pi(best)}{\\pi(worst)} \\approx e^{\\beta_h (1 - \\gamma_h) V}
"""

from __future__ import annotations

import math

import numpy as np

from empo_bi.problem.params import Params
from empo_bi.results.solution import Solution
from empo_bi.types import BoolArray, FloatArray

HURRY = 2.0  # the exponent above from which humans are said to hurry (docs/choosing_parameters.md)


def eagerness(solution: Solution) -> FloatArray:
    """(H, G): the probability of the best first action over that of the worst; nan for goals that nobody pursues there.

    These are goals that are attained already, and those that phase 1 thinks cannot be attained.
    """
    t, place = solution.dag.place_of(solution.dag.begins[0]) if solution.dag.begins else (0, 0)
    places, goals = np.array([place]), solution.goal_columns
    shape = (len(goals.humans), goals.n_goals)
    value_HG = solution.rows("vh", t, places)[0].reshape(shape)
    found = np.full(shape, math.nan)
    if value_HG.any():
        _, pi_MHGA = solution.human_policies.of_states(t, places)
        if len(pi_MHGA):
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio_HG = pi_MHGA[0].max(axis=-1) / pi_MHGA[0].min(axis=-1)
            found[value_HG > 0] = ratio_HG[value_HG > 0]
    return found


def dawdling(eagerness_HG: FloatArray, ratio: float, share: float = 0.5) -> list[int]:
    """Numbers h of humans who hardly care what they do at first, for more than a share of the goals that they pursue."""
    pursued_HG = ~np.isnan(eagerness_HG)
    hardly_HG: BoolArray = pursued_HG & (np.nan_to_num(eagerness_HG, nan=math.inf) < ratio)
    return [
        h for h, (hardly_G, pursued_G) in enumerate(zip(hardly_HG, pursued_HG, strict=True))
        if pursued_G.any() and hardly_G.sum() > share * pursued_G.sum()
    ]  # fmt: skip


def urgency(params: Params, value: float = 1.0) -> float:
    """The exponent ``beta_h (1 - gamma_h) V`` by which humans hurry."""
    share = -math.expm1(-params.rate_h)
    return 0.0 if share == 0 else params.beta_h * share * value
