"""``solution.to_pandas(...)``: every row says what the solution's arrays and state tuples say."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from planning_worlds import At, Ring

from empo_bi import Params, Solution, load_world, solve
from empo_bi.analysis.quantities import QUANTITIES

PARAMS = Params(beta_h=5.0, gamma_h=0.9, beta_r=4.0, zeta=2.0)


@pytest.fixture(scope="module")
def solution() -> Solution:
    return solve(load_world("conflicts/give_and_take", max_steps=5), PARAMS, out=True, progress=False)


@pytest.fixture(scope="module")
def ring() -> Solution:
    return solve(Ring(), PARAMS, precision="float64", progress=False)


def plain(solution: Solution, name: str, t: int) -> Any:
    return (getattr(solution.values, name) if hasattr(solution.values, name) else getattr(solution, name))[t]


@pytest.mark.parametrize("name", QUANTITIES)
def test_every_row_has_its_number_its_state_and_its_labels(solution: Solution, name: str) -> None:
    table = solution.to_pandas(name, levels=[4, 2], states=True)
    arrays = {t: plain(solution, name, t) for t in (2, 4)}
    assert len(table) == sum(array.size for array in arrays.values())
    assert table["level"].is_monotonic_increasing
    assert np.array_equal(table["value"], np.concatenate([arrays[2].ravel(), arrays[4].ravel()]))
    actions = solution.world.action_names
    rng = np.random.default_rng(1)
    for _, row in table.iloc[rng.choice(len(table), 40)].iterrows():
        key: list[int] = [row["place"]]
        if "human" in QUANTITIES[name].dims:
            key.append(solution.humans.index(row["human"]))
        if "goal" in QUANTITIES[name].dims:
            key.append([repr(goal) for goal in solution.goals[row["human"]]].index(row["goal"]))
        if "action" in QUANTITIES[name].dims:
            key.append(actions.index(row["action"]))
        if "robot_profile" in QUANTITIES[name].dims:
            key.append(solution.robot_profiles.index((actions.index(row["robot_profile"]),)))
        assert row["value"] == arrays[row["level"]][tuple(key)]
        assert row["state"] == solution.dag.states(row["level"])[row["place"]]
        for i, agent in enumerate(row["state"][1]):
            assert (row[f"x_{i}"], row[f"y_{i}"], row[f"direction_{i}"]) == agent[:3]


def test_columns_are_in_order_and_labels_are_categories(solution: Solution) -> None:
    table = solution.to_pandas("pi_h", levels=1)
    fields = [f"{field}_{i}" for i in range(3) for field in ("x", "y", "direction")]
    assert list(table.columns) == ["level", "place", "human", "goal", "action", *fields, "value"]
    assert table["action"].cat.categories.tolist() == solution.world.action_names
    assert table["goal"].dtype == "category"
    assert list(solution.to_pandas("Q_r", levels=1).columns) == ["level", "place", "robot_profile", *fields, "value"]


@pytest.mark.parametrize(
    ("asked", "levels"), [(3, [3]), (-1, [5]), (slice(1, 3), [1, 2]), ([4, 0], [0, 4]), (None, list(range(6))), ([], [])]
)
def test_levels_are_chosen_as_from_a_list(solution: Solution, asked: Any, levels: list[int]) -> None:
    table = solution.to_pandas("V_r", levels=asked)
    assert np.array_equal(table["value"], np.concatenate([np.zeros(0), *(solution.values.V_r[t] for t in levels)]))


def test_goals_are_chosen_by_number_name_or_themselves(solution: Solution) -> None:
    goal = solution.goals[1][4]
    by_name, by_goal = (solution.to_pandas("Vh_e", levels=5, goals=given) for given in (repr(goal), [goal]))
    assert by_name.equals(by_goal)
    assert set(by_name["human"]) == {1}  # the goal of one human
    assert np.array_equal(by_name["value"], solution.values.Vh_e[5][:, 1, 4])
    by_number = solution.to_pandas("Vh_e", levels=5, goals=[4, 2], humans=0)
    assert np.array_equal(by_number["value"], solution.values.Vh_e[5][:, 0][:, [2, 4]].ravel())
    assert by_number["goal"].unique().tolist() == [repr(solution.goals[0][g]) for g in (2, 4)]


def test_only_states_that_are_reached_often_enough(solution: Solution) -> None:
    table = solution.to_pandas("X_h", min_reached=0.01, humans=1)
    expected = [(t, s) for t in range(6) for s in np.flatnonzero(solution.reached[t] >= 0.01).tolist()]
    assert 10 < len(expected) < solution.dag.n_states // 2
    assert list(zip(table["level"], table["place"], strict=True)) == expected
    assert table["reached"].tolist() == [solution.reached[t][s] for t, s in expected]
    assert table["value"].tolist() == [solution.values.X_h[t][s, 1] for t, s in expected]


def test_python_worlds_have_tables_too(ring: Solution) -> None:
    table = ring.to_pandas("pi_h", humans=2, goals=At(1), states=True)
    assert list(table.columns) == ["level", "place", "human", "goal", "action", "state", "value"]
    assert table["action"].cat.categories.tolist() == ["action 0", "action 1"]
    expected = np.concatenate([ring.pi_h[t][:, 1, 1].ravel() for t in range(ring.dag.horizon + 1)])
    assert np.array_equal(table["value"], expected)
    assert len(np.unique(expected)) > 4
    states = [state for t in range(ring.dag.horizon + 1) for state in ring.dag.states(t)]
    assert table["state"].tolist() == [state for state in states for _ in range(2)]


def test_a_table_that_would_be_huge_is_refused_before_anything_is_read(
    solution: Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(solution.results, "pieces", None)
    n = solution.dag.n_states
    with pytest.raises(
        ValueError, match=rf"would have {n * 16:,} rows \({n:,} states x 16 numbers\), more than max_rows=1,000"
    ):
        solution.to_pandas("Vh_e", max_rows=1000)


@pytest.mark.parametrize(
    ("choices", "complaint"),
    [
        ({"quantity": "V_h"}, "expected one of Vh_m, Vh_e.*Did you mean"),
        ({"quantity": "X_h", "goals": 1}, "goals=1: X_h has no goals"),
        ({"quantity": "V_r", "humans": 1}, "humans=1: V_r has no humans"),
        ({"quantity": "X_h", "humans": 2}, r"human 2; the humans of this solution are agents \[0, 1\]"),
        ({"quantity": "X_h", "levels": 6}, "level 6: levels are numbered 0 to 5"),
        ({"quantity": "Vh_e", "goals": "ReachCellGoal(agent 0, 99)"}, r"Did you mean 'ReachCellGoal\(agent 0, "),
        ({"quantity": "Vh_e", "goals": 99}, "goal 99: human 0 has no such goal"),
    ],
)
def test_what_is_not_there_is_named_with_what_is(solution: Solution, choices: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        solution.to_pandas(**choices)


def test_a_phase_that_was_not_solved_is_named() -> None:
    solution = solve(Ring(), PARAMS, phase_2=False, progress=False)
    with pytest.raises(ValueError, match="V_r: phase 2 was not solved"):
        solution.to_pandas("V_r")


def test_without_pandas_the_error_names_the_extra(ring: Solution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"empo-bi\[analysis\]"):
        ring.to_pandas("V_r")


def test_several_quantities_are_a_column_each(solution: Solution) -> None:
    both = solution.to_pandas(["V_r", "U_r", "reached"], levels=[1, 3])
    for name in ("V_r", "U_r", "reached"):
        assert both[name].tolist() == solution.to_pandas(name, levels=[1, 3])["value"].tolist()
    assert "value" not in both.columns
    values = solution.to_pandas(["Vh_m", "Vh_e"], levels=2, goals=1)
    assert values["Vh_e"].tolist() == solution.to_pandas("Vh_e", levels=2, goals=1)["value"].tolist()
    with pytest.raises(ValueError, match=r"need the same dimensions, found V_r: state; X_h: state, human"):
        solution.to_pandas(["V_r", "X_h"])
    with pytest.raises(ValueError, match="quantity 'V_h'"):
        solution.to_pandas(["V_r", "V_h"])
    with pytest.raises(ValueError, match="quantity is an empty list"):
        solution.to_pandas([])
