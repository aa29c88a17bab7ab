"""States for which the robot's value is not defined: what a phase notices, and how it is said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.errors import EmpoError, EmpoOverflowError, GoalError
from empo_bi.problem.params import Params
from empo_bi.runtime.wording import short_repr
from empo_bi.sweep import formulas
from empo_bi.types import FloatArray

_LARGEST_EXPONENT = 690.0  # beyond which an exponential is 0


class StateTrouble(Exception):
    """A state has no value: the one at ``place`` of its level.

    ``why`` says which parameter has taken a number beyond what numbers can hold; else human number ``h`` has no power.
    This is what can be known where blocks are computed; :func:`complaint` says the rest, where the DAG is.
    """

    def __init__(self, place: int, h: int, why: str | None) -> None:
        super().__init__(place, h, why)
        self.place, self.h, self.why = place, h, why


def parameter_at_fault(
    params: Params, longest: float, weight_HG: FloatArray, v_HG: FloatArray, x_H: FloatArray, q_R: FloatArray
) -> str | None:
    """Why the numbers of a state are not what they should be; None if it is not for the parameters.

    The causes are looked for in the order in which numbers are computed, since one that is not finite spoils all others.
    """
    robots = _fault_of_robot_values(params, longest, weight_HG, q_R)
    if robots is not None:
        return robots
    zeta, xi, eta, beta_r = params.zeta, params.xi, params.eta, params.beta_r
    if not np.isfinite(x_H).all():
        return (
            f"X_h is {_first(x_H[~np.isfinite(x_H)])} for zeta={zeta:g}, beyond what numbers can hold; choose a smaller "
            "zeta, or smaller weights of goals"
        )
    lost = (x_H == 0) & ((v_HG > 0) & (weight_HG > 0)).any(axis=1)
    if lost.any():
        return (
            f"V_h^zeta is below what numbers can hold for zeta={zeta:g}, so that nothing is left of X_h; choose a smaller "
            "zeta, or larger weights of goals"
        )
    if (x_H == 0).any():
        if params.rate_h * longest < _LARGEST_EXPONENT / 2:
            return None
        return f"rho_h={params.rate_h:.3g} leaves nothing of what can be attained later; choose a gamma_h nearer to 1"
    with np.errstate(all="ignore"):
        inequality, u_r = float(formulas.inequality(x_H, xi)), float(formulas.reward(x_H, xi, eta))
    if not (np.isfinite(inequality) and inequality > 0):
        return (
            f"X_h^-xi is {inequality:g} for xi={xi:g} and X_h={_numbers(x_H)}, beyond what numbers can hold; choose a "
            "smaller xi"
        )
    if not (np.isfinite(u_r) and u_r < 0):
        return (
            f"U_r is {u_r:g} for eta={eta:g}, xi={xi:g} and X_h={_numbers(x_H)}, beyond what numbers can hold; choose a "
            "smaller eta, xi or zeta"
        )
    return (
        "the robot's value is beyond what numbers can hold: the humans' power is next to nothing there, and "
        f"zeta={zeta:g}, xi={xi:g}, eta={eta:g} or beta_r={beta_r:g} make the most of it; choose smaller ones, or a larger "
        "terminal_Vr such as -1"
    )


def _fault_of_robot_values(params: Params, longest: float, weight_HG: FloatArray, q_R: FloatArray) -> str | None:
    with np.errstate(over="ignore"):
        if not np.isfinite(weight_HG.sum(axis=1)).all():
            return (
                f"the weights of goals sum to {weight_HG.sum(axis=1).max():g}; choose smaller ones, say such that sum to 1"
            )
    if params.rate_r * longest > _LARGEST_EXPONENT:
        return (
            f"the robot's discount leaves nothing of what follows: e^(-rho_r D) is 0 for rho_r={params.rate_r:.3g} and "
            f"durations of up to {longest:g}; measure durations in longer units, or choose a gamma_r nearer to 1"
        )
    if not (np.isfinite(q_R).all() and (q_R < 0).all()):
        return (
            f"Q_r is {_first(q_R[~(np.isfinite(q_R) & (q_R < 0))])}, beyond what numbers can hold, for "
            f"terminal_Vr={_shown(params)} and rho_r={params.rate_r:.3g}; choose a terminal_Vr nearer to -1, or "
            "a gamma_r nearer to 1"
        )
    with np.errstate(all="ignore"):
        logits_R = formulas.robot_logits(q_R, params.beta_r)
    if np.isfinite(params.beta_r) and not np.isfinite(logits_R).all():
        return f"beta_r={params.beta_r:g} takes (-Q_r)^-beta_r beyond what numbers can hold; choose a smaller one"
    return None


def too_large(value: float, rest: str, largest: float, source: str) -> str:
    """Why a value above 1 is too large."""
    return (
        f"a human's value is {value:.3g}, and {rest} holds numbers up to {largest:.3g}: the probabilities of {source} sum "
        "to more than 1; let them sum to 1, or use precision='float64'"
    )


def complaint(trouble: StateTrouble, dag: Dag, t: int, humans: Sequence[int]) -> EmpoError:
    """What the user reads."""
    state, level = short_repr(dag.states(t)[trouble.place], 300), dag.level_values[t]
    if trouble.why is not None:
        return EmpoOverflowError(f"state {state} on level {level}: {trouble.why}")
    return GoalError(
        f"human {humans[trouble.h]} has no power in state {state} on level {level}: no goal can be attained from there, "
        "so the robot's value is not defined; goal lists should cover whatever a human can do or reach, for example every "
        "cell it can stand on"
    )


def _shown(params: Params) -> str:
    return short_repr(params.terminal_Vr) if callable(params.terminal_Vr) else f"{params.terminal_Vr:g}"


def _first(numbers: FloatArray) -> str:
    return f"{float(numbers[0]):g}"


def _numbers(x_H: FloatArray) -> str:
    return ", ".join(f"{float(x):.3g}" for x in x_H)
