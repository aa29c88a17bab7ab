"""Every parameter at its extremes gives numbers, or an error that names it: never nan or inf without a word."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from planning_worlds import Patience, Places, Ring, TwoSteps, step_of

from empo_bi import EmpoError, GoalError, Params, Solution, solve
from empo_bi.errors import EmpoOverflowError

TINIEST, LARGEST = 5e-324, 1.7e308
EXTREMES: dict[str, list[float]] = {
    "beta_h": [0, TINIEST, 1e-10, 1e5, 1e38, 1e300, LARGEST, math.inf],
    "beta_r": [0, TINIEST, 1e5, 1e15, 1e300, LARGEST],
    "zeta": [TINIEST, 1e-300, 1e-3, 1e3, 1e5, 1e10, 1e300, LARGEST],
    "xi": [TINIEST, 1e-300, 1e-3, 1e3, 1e5, 1e300, LARGEST],
    "eta": [TINIEST, 1e-300, 1e3, 1e5, 1e10, 1e300, LARGEST],
    "gamma_h": [TINIEST, 1e-300, 1e-30, 1 - 1e-16],
    "gamma_r": [TINIEST, 1e-300, 1e-30, 1 - 1e-16],
    "rho_h": [1e-320, 1e-17, 1e3, 1e300],
    "rho_r": [1e-320, 1e-17, 1e3, 1e300],
    "terminal_Vr": [-TINIEST, -1e-300, -1e10, -1e300, -LARGEST],
}
WORLDS: dict[str, Callable[[], Any]] = {"ring": Ring, "patience": lambda: Patience(4), "two steps": TwoSteps}


def outcome(world: Any, params: Params, precision: str) -> Solution | EmpoError:
    try:
        return solve(world, params, precision=precision, level_fct=step_of, progress=False)
    except EmpoError as error:
        return error


def assert_finite(solution: Solution) -> None:
    values = solution.values
    arrays = [values.Vh_m, values.Vh_e, values.X_h, values.U_r, values.V_r, solution.Q_r, solution.pi_r, solution.pi_h]
    for by_level in arrays:
        assert all(np.isfinite(level).all() for level in by_level)
    for t in range(solution.dag.horizon):
        goes_on = solution.values.X_h[t].all(axis=1)
        assert (solution.values.U_r[t][goes_on] < 0).all()
        assert solution.pi_r[t][goes_on].sum(axis=1) == pytest.approx(1)


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("world", WORLDS)
def test_a_parameter_at_its_extremes_gives_numbers_or_is_named(world: str, name: str) -> None:
    for value in EXTREMES[name]:
        for precision in ("float16", "float64"):
            found = outcome(WORLDS[world](), Params(**{name: value}), precision)
            if isinstance(found, Solution):
                assert_finite(found)
            else:
                assert isinstance(found, EmpoOverflowError)
                assert name in str(found) or name.replace("gamma", "rho") in str(found)


@pytest.mark.parametrize(
    ("params", "named"),
    [
        (Params(zeta=1e6), "zeta=1e+06"),
        (Params(xi=1e4), "xi=10000"),
        (Params(eta=1e5), "eta=100000"),
        (Params(beta_r=LARGEST), "beta_r=1.7e+308"),
        (Params(terminal_Vr=-TINIEST), "terminal_Vr=-4.94"),
        (Params(rho_r=1e300), "rho_r=1e+300"),
        (Params(zeta=1000, xi=10), "xi=10"),
    ],
)
def test_the_message_names_what_is_too_large_and_says_what_to_do(params: Params, named: str) -> None:
    with pytest.raises(EmpoOverflowError, match="choose a") as caught:
        solve(Ring(), params, progress=False)
    assert named in str(caught.value)
    assert "state (" in str(caught.value)


class Generous(TwoSteps):
    """A world whose goals have huge weights, so that power is above 1."""

    def __init__(self, weight: float) -> None:
        super().__init__(3)
        self.possible_goal_generator = Places(weight, weight)


@pytest.mark.parametrize(
    ("weight", "params", "named"),
    [
        (1e308, Params(), "weights of goals sum to inf"),
        (1e3, Params(xi=1e3), "X_h^-xi is 0 for xi=1000"),
        (1e3, Params(eta=1e3), "U_r is -0 for eta=1000"),
    ],
)
def test_power_and_reward_that_vanish_or_are_infinite_are_refused(weight: float, params: Params, named: str) -> None:
    """Such a reward is -0, which everything else of the state takes without complaint."""
    with pytest.raises(EmpoOverflowError) as caught:
        solve(Generous(weight), params, progress=False)
    assert named in str(caught.value)


def test_a_human_without_power_is_still_told_apart_from_parameters() -> None:
    world = Patience(3)
    world.possible_goal_generator = type("Never", (), {"generate": lambda self, state, human: [(_Never(), 1.0)]})()
    with pytest.raises(GoalError, match="human 0 has no power"):
        solve(world, Params(zeta=2), progress=False)


class _Never:
    def is_achieved(self, state: Any) -> bool:
        return False


@pytest.mark.parametrize("precision", ["float16", "float64"])
def test_beliefs_that_sum_to_more_than_1_are_refused_once_values_outgrow_their_type(precision: str) -> None:
    def belief(state: Any, human: int, action: int) -> list[tuple[float, Any]]:
        return [(1e4 if precision == "float16" else 1e160, np.array([0, 0, 0]))]

    with pytest.raises(EmpoOverflowError, match=r"believed_others_policy sum to more than 1"):
        solve(Ring(steps=6), Params(believed_others_policy=belief), precision=precision, phase_2=False, progress=False)
