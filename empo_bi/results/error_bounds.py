"""How exact a solution is."""

from __future__ import annotations

import math
from dataclasses import dataclass

HALF_STEP = 2.0**-12  # the most that a number of at most 1 moves when it is rounded to float16


@dataclass(frozen=True)
class ErrorBounds:
    """How far numbers may be from what they would be had nothing rested in float16; 0 for ``precision="float64"``.

    Transition probabilities do not change by resting (except where a DAG was given that has them in float16, which leaves
    no bound), and what concerns the robot rests in float64. Sums in work are float32,
    whose own rounding, some 1e-6, is not part of these bounds.

    Attributes
    ----------
    rest, work : types
    values : absolute, of ``Vh_m`` and ``Vh_e`` (of those above 1, relative and twice as large)
    human_policies : absolute, of the probabilities that ``prior`` returns
    """

    rest: str
    work: str
    values: float
    human_policies: float

    def __str__(self) -> str:
        if math.isinf(self.values):
            return (
                "the DAG that was given rests its probabilities in a type that changes them, so no bound is known; "
                "enumerate it with precision='exact'"
            )
        if self.values == 0:
            return f"{self.work} throughout, nothing rounded at rest"
        return (
            f"resting in {self.rest} moves values by at most {self.values:.2g} and human policies by at most "
            f"{self.human_policies:.2g}; arithmetic is {self.work}"
        )
