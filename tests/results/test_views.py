"""Tables that are views of arrays: they behave as dictionaries and read no more than they need."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planning_worlds import At, Ring, plain

from empo_bi import Params, Solution, load_world, solve
from empo_bi.results import views
from empo_bi.store.solution_store import SolutionStore

N_STATES, N_GOING_ON = 17, 10
TERMINAL = (1, 3)
NAMES = ["prior", "robot policy", "Vh", "Vhe", "Vr"]
OPTIONS: dict[str, Any] = {"precision": "float64", "progress": False}


def solved(**options: Any) -> Solution:
    return solve(Ring(), Params(beta_h=3.0, gamma_h=0.9, gamma_r=0.9), **OPTIONS | options)


def view_of(solution: Solution, name: str) -> Any:
    return {
        "prior": solution.prior.values,
        "robot policy": solution.robot_policy.values,
        "Vh": solution.Vh,
        "Vhe": solution.Vhe,
        "Vr": solution.Vr,
    }[name]


@pytest.fixture(params=["in memory", "on disk"], scope="module")
def solution(request: pytest.FixtureRequest) -> Solution:
    return solved(out=True if request.param == "on disk" else None)


def reference() -> dict[str, dict[Any, Any]]:
    """The same tables, put together from arrays by level."""
    made = solved()
    tables: dict[str, dict[Any, Any]] = {name: {} for name in NAMES}
    for t in range(made.dag.horizon + 1):
        pi_h, pi_r = made.pi_h[t], made.pi_r[t]
        before, after, v_r = made.values.Vh_m[t], made.values.Vh_e[t], made.values.V_r[t]
        for s, state in enumerate(made.dag.states(t)):
            tables["Vr"][state] = v_r[s]
            if made.world.transition_probabilities(state, [0, 0, 0]) is None:
                continue
            goals = [(h, human, g, At(g)) for h, human in enumerate((0, 2)) for g in range(4)]
            tables["prior"][state] = {0: {}, 2: {}}
            for h, human, g, goal in goals:
                tables["prior"][state][human][goal] = pi_h[s, h, g].tolist()
                for name, values in (("Vh", before), ("Vhe", after)):
                    if values[s, h, g] != 0:
                        tables[name].setdefault(state, {}).setdefault(human, {})[goal] = values[s, h, g]
            tables["robot policy"][state] = {(0,): pi_r[s, 0], (1,): pi_r[s, 1]}
    return tables


@pytest.mark.parametrize("name", NAMES)
def test_a_view_equals_the_plain_dictionary_made_of_the_arrays(solution: Solution, name: str) -> None:
    assert plain(view_of(solution, name)) == reference()[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_view_is_a_mapping_whose_parts_fit_together(solution: Solution, name: str) -> None:
    view = view_of(solution, name)
    expected = view.to_dict()
    assert isinstance(view, Mapping)
    assert type(expected) is dict
    assert len(view) == len(expected) == len(list(view)) == len(list(view.items())) == len(view.items())
    assert list(view) == list(expected) == list(view.keys()) == [state for state, _ in view.items()]
    assert [plain(entry) for entry in view.values()] == [plain(entry) for entry in expected.values()]
    for state, entry in view.items():
        assert state in view
        assert plain(view[state]) == plain(entry) == plain(view.get(state)) == plain(expected[state])


def test_lengths_are_those_of_states_that_go_on_and_of_all_states(solution: Solution) -> None:
    assert len(solution.prior.values) == len(solution.robot_policy.values) == N_GOING_ON
    assert len(solution.Vr) == N_STATES


def test_tables_of_numbers_can_be_compared_with_plain_dictionaries(solution: Solution) -> None:
    assert solution.Vr == solution.Vr.to_dict()
    assert solution.robot_policy.values == reference()["robot policy"]
    assert solution.Vr != {**solution.Vr.to_dict(), (0, 0): 1.0}


@pytest.mark.parametrize("state", [(9, 9), (0, 1), (0,), (0, 0, 0), "nonsense", 3, None, (0, None), (0.5, 0)])
@pytest.mark.parametrize("name", NAMES)
def test_unknown_states_are_key_errors(solution: Solution, name: str, state: Any) -> None:
    view = view_of(solution, name)
    with pytest.raises(KeyError) as caught:
        view[state]
    assert caught.value.args[0] == state
    assert state not in view
    assert view.get(state, "nothing") == "nothing"


@pytest.mark.parametrize("state", [[0, 0], {}, ([0], 0)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_unhashable_states_are_key_errors_too(solution: Solution, name: str, state: Any) -> None:
    view = view_of(solution, name)
    with pytest.raises(KeyError):
        view[state]
    assert state not in view
    assert view.get(state) is None


@pytest.mark.parametrize("name", ["prior", "robot policy", "Vh", "Vhe"])
def test_terminal_states_have_no_entry_but_a_value(solution: Solution, name: str) -> None:
    view = view_of(solution, name)
    with pytest.raises(KeyError):
        view[TERMINAL]
    assert TERMINAL not in view
    assert solution.Vr[TERMINAL] == -1e-10


@pytest.mark.parametrize("state", [5, "x", None, (0,), [1], (3, None), np.zeros(2)], ids=str)
def test_what_is_no_state_of_a_gridworld_is_a_key_error(state: Any) -> None:
    solution = solve(load_world("first_steps", max_steps=2), **OPTIONS)
    for view in (solution.prior.values, solution.robot_policy.values, solution.Vh, solution.Vr):
        with pytest.raises(KeyError):
            view[state]


def test_values_are_sparse(solution: Solution) -> None:
    for name in ("Vh", "Vhe"):
        table = plain(view_of(solution, name))
        assert all(by_goal for by_human in table.values() for by_goal in by_human.values())
        assert all(table.values())
        assert 0.0 not in [value for by_human in table.values() for row in by_human.values() for value in row.values()]
    assert At(0) not in solution.Vh[0, 0][0]  # attained at the start, hence worth 0 in phase 1
    assert solution.Vh[0, 0][0].get(At(0), 0) == 0


def test_humans_and_states_without_any_value_are_left_out() -> None:
    class Alone(Ring):
        """Human 2 cannot move anything, and after one step nobody can attain anything new."""

        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            t, place = state
            return None if t == 2 else [(1.0, (t + 1, place + actions[0] if t == 0 else place))]

    solution = solve(Alone(2), phase_2=False, **OPTIONS)
    assert list(solution.Vh) == [(0, 0)]  # in (1, 0) and (1, 1) nothing but what is attained already can be attained
    assert list(solution.Vh[0, 0]) == [0, 2]
    assert solution.Vh[0, 0][0] == pytest.approx({At(1): 1 / (1 + np.exp(-10.0))})
    assert solution.Vh[0, 0][2] == pytest.approx({At(1): 0.5})
    assert solution.Vh.get((1, 0), {}) == {}
    assert len(solution.Vh) == 1
    assert len(solution.prior.values) == 3


def test_values_of_phase_2_are_python_floats_for_states_and_numbers_for_goals(solution: Solution) -> None:
    assert {type(value) for value in solution.Vr.values()} == {float}
    assert isinstance(solution.Vhe[0, 0][0][At(1)], float | np.floating)


def test_entries_that_were_forgotten_come_back_as_they_were(solution: Solution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "REMEMBERED", 2)
    view = solution.prior.values
    first = {state: plain(view[state]) for state in list(view)}
    assert {state: plain(view[state]) for state in reversed(list(view))} == first


def test_going_through_a_view_in_small_chunks_gives_the_same(solution: Solution, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {name: list(plain(view_of(solution, name)).items()) for name in NAMES}
    monkeypatch.setattr(views, "CHUNK", 2)
    assert {name: list(plain(view_of(solution, name)).items()) for name in NAMES} == expected


def test_a_view_says_what_it_is_without_being_read(solution: Solution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(solution.results), "get", None)
    for name in NAMES:
        assert "17 states" in repr(view_of(solution, name))


# --- laziness ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Arrays that are read from a store, as (level, name)."""
    read: list[tuple[int, str]] = []
    original = SolutionStore.get

    def get(self: SolutionStore, t: int, name: str) -> Any:
        read.append((t, name))
        return original(self, t, name)

    monkeypatch.setattr(SolutionStore, "get", get)
    return read


def test_solving_and_making_views_reads_nothing(reads: list[tuple[int, str]], tmp_path: Path) -> None:
    with solved(out=tmp_path) as solution:
        for name in NAMES:
            view_of(solution, name)
        assert solution.markov_chain is not None
        assert reads == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Vr", {(1, "vr")}),
        ("Vh", {(1, "vh")}),
        ("Vhe", {(1, "ve")}),
        ("robot policy", {(1, "qr")}),
        ("prior", {(2, "vh"), (3, "vh")}),  # policies follow from the values of successors, one or two steps ahead
    ],
)
def test_a_lookup_reads_the_one_level_it_needs(
    reads: list[tuple[int, str]], tmp_path: Path, name: str, expected: set[tuple[int, str]]
) -> None:
    with solved(out=tmp_path) as solution:
        view = view_of(solution, name)
        entry = plain(view[1, 2])
        assert set(reads) == expected
        reads.clear()
        assert plain(view[1, 2]) == entry
        assert reads == [], "an entry is remembered"


def test_terminal_and_unknown_states_of_a_policy_cost_no_reading(reads: list[tuple[int, str]], tmp_path: Path) -> None:
    with solved(out=tmp_path) as solution:
        assert TERMINAL not in solution.prior.values
        assert (9, 9) not in solution.prior.values
        assert (9, 9) not in solution.Vr
        assert reads == []


def test_iterating_reads_level_by_level(reads: list[tuple[int, str]], tmp_path: Path) -> None:
    with solved(out=tmp_path) as solution:
        going_through = iter(solution.Vr.items())
        next(going_through)
        assert set(reads) == {(0, "vr")}
        next(going_through)
        assert set(reads) == {(0, "vr"), (1, "vr")}


@pytest.mark.parametrize("name", ["Vr", "Vh", "Vhe"])
def test_tables_are_dictionaries_in_all_that_scripts_do_with_them(solution: Solution, name: str) -> None:
    view = getattr(solution, name)
    plain = dict(view.items())
    assert isinstance(view, dict)
    assert plain
    assert len(view) == len(plain) == len(dict(view)) == len({**view})
    assert {**view} == plain == dict(view) == view.copy() == copy.copy(view) == copy.deepcopy(view)
    assert type(view.copy()) is dict
    assert list(view) == list(plain) == list(view.keys()) == list(reversed(list(reversed(view))))
    assert list(view.values()) == list(plain.values())
    state = next(iter(plain))
    assert state in view
    assert view.get(state) == plain[state]
    assert view.get("no state", 7) == 7
    assert "no state" not in view
    assert view == plain
    assert (view | {"more": 1})["more"] == ({"more": 1} | view)["more"] == 1
    pickled = pickle.dumps(view)
    assert type(pickle.loads(pickled)) is dict
    assert pickle.loads(pickled) == plain


@pytest.mark.parametrize("act", [lambda view: view.update({1: 2}), lambda view: view.pop(1), lambda view: view.clear()])
def test_results_are_changed_in_copies_only(act: Callable[[Any], Any], solution: Solution) -> None:
    with pytest.raises(TypeError, match="change a copy"):
        act(solution.Vr)
    with pytest.raises(TypeError, match="change a copy"):
        solution.Vr["a state"] = 1.0
    with pytest.raises(TypeError, match="change a copy"):
        solution.markov_chain.append({})
    changed = solution.Vr.copy()
    changed["a state"] = 1.0


def test_the_chain_is_a_list_in_all_that_scripts_do_with_it(solution: Solution) -> None:
    chain = solution.markov_chain
    plain = [dict(row) for row in chain]
    assert isinstance(chain, list)
    assert list(chain) == plain == chain[:] == chain.copy() == copy.deepcopy(chain) == pickle.loads(pickle.dumps(chain))
    assert [*chain] == plain == sorted(chain, key=lambda row: 0)
    assert type(pickle.loads(pickle.dumps(chain))) is list
    assert chain + [{}] == [*plain, {}]  # noqa: RUF005 (what is tried)
    assert chain.index(plain[1]) <= 1
    assert plain[0] in chain
    assert json.loads(json.dumps(chain[:3])) == [{str(k): v for k, v in row.items()} for row in plain[:3]]
