"""States for which the robot's value is not defined: what a phase notices, and how it is said."""

from __future__ import annotations

from collections.abc import Sequence

from empo_bi.dag.dag import Dag
from empo_bi.errors import EmpoError, EmpoOverflowError, GoalError, short_repr

_LARGEST_EXPONENT = 690.0  # beyond which an exponential is 0


class StateTrouble(Exception):
    """A state has no value: the one at ``place`` of its level, because of human ``h``, or of the robot if ``h`` is None.

    What can be known where blocks are computed; :func:`complaint` says it in words, where the DAG is.
    """

    def __init__(self, place: int, h: int | None, rate: float, longest: float) -> None:
        super().__init__(place, h, rate, longest)
        self.place, self.h, self.rate, self.longest = place, h, rate, longest


def complaint(trouble: StateTrouble, dag: Dag, t: int, humans: Sequence[int]) -> EmpoError:
    """What the user reads."""
    state, level = short_repr(dag.states(t)[trouble.place], 300), dag.level_values[t]
    if trouble.h is None:
        return EmpoOverflowError(
            f"the robot's value of state {state} on level {level} is beyond what numbers can hold: the humans' power is "
            "next to nothing there, and zeta, xi, eta or beta_r make the most of it; choose smaller ones, or a larger "
            "terminal_Vr such as -1"
        )
    if trouble.rate * trouble.longest > _LARGEST_EXPONENT:
        return EmpoOverflowError(
            f"the robot's discount leaves nothing of what follows state {state} on level {level}: e^(-rho_r D) is 0 for "
            f"rho_r={trouble.rate:.3g} and durations of up to {trouble.longest:g}; measure durations in longer units, or "
            "choose a gamma_r nearer to 1"
        )
    return GoalError(
        f"human {humans[trouble.h]} has no power in state {state} on level {level}: no goal can be attained from there, "
        "so the robot's value is not defined; goal lists should cover whatever a human can do or reach, for example every "
        "cell it can stand on"
    )
