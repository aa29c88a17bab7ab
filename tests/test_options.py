"""The parameters of the theory: defaults, ranges, discounts, copies with changes, and what they say of themselves."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from empo_bi import Params
from empo_bi.problem.params import discount_rate

DEFAULTS: dict[str, Any] = {
    "beta_h": 10.0,
    "gamma_h": None,
    "rho_h": None,
    "optimistic": False,
    "believed_others_policy": None,
    "beta_r": 10.0,
    "gamma_r": None,
    "rho_r": None,
    "zeta": 1.0,
    "xi": 1.0,
    "eta": 1.0,
    "terminal_Vr": -1e-10,
}
NUMBERS = [name for name in DEFAULTS if name not in ("optimistic", "believed_others_policy")]


def belief(state: Any, human: int, action: int) -> list[tuple[float, list[int]]]:
    return [(1.0, [0, 0])]


def test_defaults_are_those_of_the_specification() -> None:
    assert dataclasses.asdict(Params()) == DEFAULTS


def test_parameters_are_given_by_name_and_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        Params(10.0)  # type: ignore[misc]
    with pytest.raises(TypeError, match="unexpected keyword argument 'beta'"):
        Params(beta=1.0)  # type: ignore[call-arg]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Params().beta_h = 1.0  # type: ignore[misc]


def test_equal_parameters_are_equal_and_hash_alike() -> None:
    assert Params(beta_h=3) == Params(beta_h=3.0)
    assert hash(Params(zeta=2)) == hash(Params(zeta=2.0))
    assert Params(beta_h=3) != Params(beta_h=4)


@pytest.mark.parametrize("number", [1, np.float32(1.0), np.int64(1), np.float64(1.0), np.array(1.0)], ids=repr)
@pytest.mark.parametrize("name", [name for name in NUMBERS if name != "terminal_Vr"])
def test_numbers_of_any_kind_become_floats(name: str, number: Any) -> None:
    assert type(getattr(Params(**{name: number}), name)) is float


@pytest.mark.parametrize("given", ["1.0", True, [1.0], 1j, object(), {}], ids=["text", "bool", "list", "complex", "?", "{}"])
@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_no_number_is_a_type_error_that_names_the_parameter(name: str, given: Any) -> None:
    with pytest.raises(TypeError, match=rf"{name}=.*give a number"):
        Params(**{name: given})


def test_an_array_of_several_numbers_is_none_either() -> None:
    with pytest.raises(TypeError, match=r"beta_h=.*give a number"):  # engine defect, reported: "only 0-dimensional arrays"
        Params(beta_h=np.ones(2))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [name for name in NUMBERS if DEFAULTS[name] is not None])
def test_none_is_no_number_but_for_discounts(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}=None"):
        Params(**{name: None})


@pytest.mark.parametrize("given", [math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.parametrize("name", NUMBERS)
def test_nan_and_infinity_are_refused_by_name(name: str, given: float) -> None:
    if name in ("beta_h", "beta_r") and given == math.inf:
        assert getattr(Params(**{name: given}), name) == math.inf
        return
    with pytest.raises(ValueError, match=f"{name}={given}"):
        Params(**{name: given})


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("beta_h", -1e-9),
        ("beta_r", -1.0),
        ("gamma_h", 0.0),
        ("gamma_h", 1.0000001),
        ("gamma_h", -0.5),
        ("gamma_r", 0.0),
        ("gamma_r", 2.0),
        ("rho_h", -1e-9),
        ("rho_r", -1.0),
        ("zeta", 0.0),
        ("zeta", -1.0),
        ("xi", 0.0),
        ("xi", -2.0),
        ("eta", 0.0),
        ("eta", -1.0),
        ("terminal_Vr", 0.0),
        ("terminal_Vr", 1.0),
    ],
)
def test_numbers_out_of_range_are_refused_by_name_and_value(name: str, given: float) -> None:
    with pytest.raises(ValueError, match=f"{name}={given!r}"):
        Params(**{name: given})


@pytest.mark.parametrize(
    ("name", "given"),
    [("beta_h", 0), ("beta_r", 0), ("gamma_h", 1), ("gamma_r", 1e-300), ("rho_h", 0), ("rho_r", 50), ("zeta", 1e-3),
     ("xi", 0.5), ("eta", 7), ("terminal_Vr", -1e-300), ("terminal_Vr", -1e9)],
)  # fmt: skip
def test_numbers_at_the_edge_are_fine(name: str, given: float) -> None:
    assert getattr(Params(**{name: given}), name) == given


@pytest.mark.parametrize("who", ["h", "r"])
def test_a_discount_is_not_given_both_ways(who: str) -> None:
    with pytest.raises(ValueError, match=rf"gamma_{who}=0.9 and rho_{who}=0.1.*not by both"):
        Params(**{f"gamma_{who}": 0.9, f"rho_{who}": 0.1})
    Params(gamma_h=0.9, rho_r=0.1)  # one each way


@pytest.mark.parametrize("given", [1, "yes", None])
def test_optimistic_is_a_bool(given: Any) -> None:
    with pytest.raises(TypeError, match=r"optimistic=.*give True or False"):
        Params(optimistic=given)


def test_a_belief_can_be_called() -> None:
    assert Params(believed_others_policy=belief).believed_others_policy is belief
    with pytest.raises(TypeError, match=r"believed_others_policy=7 cannot be called"):
        Params(believed_others_policy=7)  # type: ignore[arg-type]


# --- discounts --------------------------------------------------------------------------------------------------------


def test_a_rate_is_minus_the_logarithm_of_the_factor_and_one_gives_exactly_zero() -> None:
    assert Params(gamma_h=0.9, gamma_r=0.8).rate_h == pytest.approx(-math.log(0.9), rel=1e-15)
    assert Params(gamma_r=0.8).rate_r == pytest.approx(-math.log(0.8), rel=1e-15)
    assert Params(gamma_h=1.0).rate_h == 0.0
    assert math.copysign(1, Params(gamma_h=1.0).rate_h) == 1.0
    assert Params(rho_h=0.3).rate_h == 0.3
    assert Params().rate_h == Params().rate_r == 0.0
    assert type(Params(rho_r=1).rate_r) is float


def test_a_discount_rate_on_its_own() -> None:
    assert discount_rate("h", None, None) == 0.0
    assert discount_rate("h", 0.5, None) == pytest.approx(math.log(2))
    assert discount_rate("h", None, 0.5) == 0.5
    with pytest.raises(ValueError, match=r"gamma_r=1\.5"):
        discount_rate("r", 1.5, None)


# --- copies -----------------------------------------------------------------------------------------------------------


def test_replace_changes_what_is_named_and_checks_it() -> None:
    before = Params(beta_h=3.0, gamma_h=0.9, zeta=2.0)
    after = before.replace(zeta=3.0, optimistic=True)
    assert (after.beta_h, after.gamma_h, after.zeta, after.optimistic) == (3.0, 0.9, 3.0, True)
    assert before.zeta == 2.0
    with pytest.raises(ValueError, match="zeta=-1"):
        before.replace(zeta=-1)
    with pytest.raises(TypeError, match="zetta"):
        before.replace(zetta=1)


def test_a_discount_given_one_way_takes_the_place_of_one_given_the_other_way() -> None:
    params = Params(gamma_h=0.9, rho_r=0.2).replace(rho_h=0.5, gamma_r=0.7)
    assert (params.gamma_h, params.rho_h, params.gamma_r, params.rho_r) == (None, 0.5, 0.7, None)
    assert Params(gamma_h=0.9).replace(gamma_h=None).rate_h == 0.0
    with pytest.raises(ValueError, match="not by both"):
        Params().replace(gamma_h=0.9, rho_h=0.1)


# --- descriptions -----------------------------------------------------------------------------------------------------


def test_a_description_is_json_and_has_discounts_as_rates() -> None:
    found = Params(gamma_h=0.5, beta_h=math.inf, believed_others_policy=belief).describe()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["rho_h"] == pytest.approx(math.log(2))
    assert found["beta_h"] == "inf"
    assert found["believed_others"] is True
    assert "gamma_h" not in found


def test_descriptions_differ_exactly_where_numbers_do() -> None:
    changed: dict[str, Any] = {
        "beta_h": 1.0, "gamma_h": 0.9, "rho_h": 0.2, "optimistic": True, "believed_others_policy": belief, "beta_r": 1.0,
        "gamma_r": 0.9, "rho_r": 0.2, "zeta": 2.0, "xi": 2.0, "eta": 2.0, "terminal_Vr": -1.0,
    }  # fmt: skip
    assert changed.keys() == DEFAULTS.keys()
    for name, value in changed.items():
        assert Params(**{name: value}).describe() != Params().describe(), name
    assert Params(gamma_h=1.0, rho_r=0.0).describe() == Params().describe()
    assert Params(gamma_h=0.5).describe() == Params(rho_h=-math.log(0.5)).describe()
