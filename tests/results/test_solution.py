"""What ``solve`` returns: values and policies by level, a report on any state, and what happens when it is closed."""

from __future__ import annotations

import gc
import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle.planning import human_policy_prior, robot_policy
from planning_worlds import At, Places, Ring, TwoSteps, plain

from empo_bi import (
    InvalidStateError,
    MarkovChain,
    Params,
    Solution,
    TabularHumanPolicyPrior,
    TabularRobotPolicy,
    compute_human_policy_prior,
    compute_robot_policy,
    enumerate_dag,
    load_world,
    solve,
)

PARAMS = Params(beta_h=2.0, gamma_h=0.9, beta_r=3.0, gamma_r=0.8, zeta=2.0, eta=1.1)
EXACT: dict[str, Any] = {"precision": "float64", "progress": False}


class OracleRing(Ring):
    """The same for the plain oracle, which wants these two names."""

    n_agents, n_actions = 3, 2


@pytest.fixture(params=["in memory", "on disk"], scope="module")
def solution(request: pytest.FixtureRequest) -> Solution:
    return solve(Ring(), PARAMS, out=True if request.param == "on disk" else None, **EXACT)


@pytest.fixture(scope="module")
def oracle() -> dict[str, Any]:
    world = OracleRing()
    goals = world.possible_goal_generator
    policies, Vh = human_policy_prior(world, [0, 2], goals, beta_h=2.0, gamma_h=0.9)
    robot = robot_policy(
        world, [0, 2], [1], goals, policies, beta_r=3.0, gamma_h=0.9, gamma_r=0.8, zeta=2.0, xi=1.0, eta=1.1
    )
    return robot | {"policies": policies, "Vh": Vh}


# --- values -----------------------------------------------------------------------------------------------------------


def test_the_worked_example_of_section_12() -> None:
    solution = solve(TwoSteps(), PARAMS, **EXACT)
    assert solution.values.V_r[0].tolist() == pytest.approx([-3.064551], abs=6e-7)
    assert sorted(solution.values.V_r[1].tolist()) == pytest.approx([-1.921227, -1.797284], abs=6e-7)
    assert solution.pi_r[0].tolist() == [pytest.approx([0.512817, 0.487183], abs=6e-7)]
    assert solution.values.Vh_e[0].tolist() == [[pytest.approx([1.0, 0.413783], abs=6e-7)]]
    assert solution.values.Vh_m[0].tolist() == [[[0.0, 0.0]]]
    assert solution.pi_h[0].tolist() == [[[[1.0, 0.0], [0.5, 0.5]]]]
    assert solution.prior((1, 1), 0, At(1)).tolist() == [1.0, 0.0]


def test_arrays_have_a_row_per_state_of_their_level_and_are_float64(solution: Solution) -> None:
    n_humans, n_goals, n_actions, n_robot_profiles = 2, 4, 2, 2
    values = solution.values
    for t, n_states in enumerate(solution.dag.level_sizes):
        shapes = {
            "Vh_m": (values.Vh_m[t], (n_states, n_humans, n_goals)),
            "Vh_e": (values.Vh_e[t], (n_states, n_humans, n_goals)),
            "X_h": (values.X_h[t], (n_states, n_humans)),
            "U_r": (values.U_r[t], (n_states,)),
            "V_r": (values.V_r[t], (n_states,)),
            "Q_r": (solution.Q_r[t], (n_states, n_robot_profiles)),
            "pi_r": (solution.pi_r[t], (n_states, n_robot_profiles)),
            "pi_h": (solution.pi_h[t], (n_states, n_humans, n_goals, n_actions)),
        }
        assert {name: array.shape for name, (array, _) in shapes.items()} == {name: s for name, (_, s) in shapes.items()}
        assert {array.dtype for array, _ in shapes.values()} == {np.dtype(np.float64)}


def test_levels_are_a_sequence(solution: Solution) -> None:
    levels = solution.values.V_r
    assert len(levels) == len(solution.pi_h) == len(solution.Q_r) == 5
    assert levels[-1].tolist() == levels[4].tolist()
    assert [level.tolist() for level in levels[1:3]] == [levels[1].tolist(), levels[2].tolist()]
    assert [len(level) for level in levels] == solution.dag.level_sizes
    with pytest.raises(IndexError):
        levels[5]


def test_every_number_is_that_of_the_plain_oracle(solution: Solution, oracle: dict[str, Any]) -> None:
    goals = [At(place) for place in range(4)]
    for t in range(5):
        arrays = {
            "Vh": solution.values.Vh_m[t],
            "Vhe": solution.values.Vh_e[t],
            "Xh": solution.values.X_h[t],
            "Ur": solution.values.U_r[t],
            "Vr": solution.values.V_r[t],
            "Qr": solution.Q_r[t],
            "pi_r": solution.pi_r[t],
            "policies": solution.pi_h[t],
        }
        for s, state in enumerate(solution.dag.states(t)):
            found = {name: array[s].tolist() for name, array in arrays.items()}
            by_human = [(human, [oracle["policies"].get(state, {}).get(human, {}).get(goal, [0, 0]) for goal in goals])
                        for human in (0, 2)]  # fmt: skip
            expected = {
                name: [[oracle[name].get(state, {}).get(human, {}).get(goal, 0.0) for goal in goals] for human in (0, 2)]
                for name in ("Vh", "Vhe")
            } | {
                "Xh": [oracle["Xh"].get(state, {}).get(human, 0.0) for human in (0, 2)],
                "Ur": oracle["Ur"].get(state, 0.0),
                "Vr": oracle["Vr"][state],
                "Qr": [oracle["Qr"].get(state, {}).get((r,), 0.0) for r in (0, 1)],
                "pi_r": [oracle["pi_r"].get(state, {}).get((r,), 0.0) for r in (0, 1)],
                "policies": [rows for _, rows in by_human],
            }
            for name, numbers in expected.items():
                assert np.allclose(found[name], numbers, rtol=1e-11, atol=1e-14), (state, name)


def test_policies_and_the_chain_are_there_and_agree_with_the_arrays(solution: Solution, oracle: dict[str, Any]) -> None:
    assert isinstance(solution.prior, TabularHumanPolicyPrior)
    assert isinstance(solution.robot_policy, TabularRobotPolicy)
    assert isinstance(solution.markov_chain, MarkovChain)
    assert solution.robot_policy((0, 0)) == pytest.approx(oracle["pi_r"][0, 0])
    assert [pytest.approx(row) for row in oracle["chain"]] == list(solution.markov_chain)
    assert solution.prior.human_agent_indices == solution.humans == [0, 2]
    assert solution.robot_policy.robot_agent_indices == solution.robots == [1]
    assert solution.robot_profiles == [(0,), (1,)]
    assert solution.params == PARAMS


def test_the_documented_functions_give_the_same_numbers() -> None:
    world = Ring()
    solution = solve(world, PARAMS.replace(gamma_h=None), **EXACT)
    prior = compute_human_policy_prior(world, [0, 2], beta_h=2.0, use_float16=False, quiet=True)
    policy, Vr, Vhe = compute_robot_policy(
        world, [0, 2], [1], None, prior, beta_r=3.0, gamma_r=0.8, zeta=2.0, eta=1.1, use_float16=False, return_values=True,
        quiet=True,
    )  # fmt: skip
    assert plain(solution.prior.values) == plain(prior.values)
    assert plain(solution.robot_policy.values) == plain(policy.values)
    assert plain(solution.Vr) == plain(Vr)
    assert plain(solution.Vhe) == plain(Vhe)


def test_humans_robots_and_goals_keep_the_order_they_are_given_in() -> None:
    class OwnGoals(Places):
        def generate(self, state: Any, human_agent_index: int) -> Any:
            places = [3, 1] if human_agent_index == 2 else [0, 1, 2]
            return ((At(place), 1.0) for place in places)

    options = {**EXACT, "possible_goal_generator": OwnGoals(), "phase_2": False}
    there = solve(Ring(), human_agent_indices=[0, 2], **options)
    back = solve(Ring(), human_agent_indices=[2, 0], **options)
    assert there.goals == {0: [At(0), At(1), At(2)], 2: [At(3), At(1)]}
    assert list(back.goals) == back.humans == [2, 0]
    assert back.values.Vh_m[0].shape == (1, 2, 3)  # as many columns as the human with most goals has
    assert np.allclose(back.values.Vh_m[0][:, ::-1], there.values.Vh_m[0], rtol=1e-12)
    assert list(back.prior.values[0, 0]) == [2, 0]
    robots = solve(Ring(), human_agent_indices=[0], robot_agent_indices=[2, 1], **EXACT)
    assert robots.robot_profiles == [(0, 0), (0, 1), (1, 0), (1, 1)]
    swapped = solve(Ring(), human_agent_indices=[0], robot_agent_indices=[1, 2], **EXACT)
    assert robots.robot_policy((0, 0))[0, 1] == pytest.approx(swapped.robot_policy((0, 0))[1, 0])


def test_agents_and_goals_of_the_world_are_used_unless_others_are_given() -> None:
    world = load_world("side_by_side", max_steps=2)
    solution = solve(world, **EXACT)
    assert (solution.humans, solution.robots) == (world.human_agent_indices, world.robot_agent_indices)
    start = world.initial_state()
    assert solution.goals == {0: [goal for goal, _ in world.possible_goal_generator.generate(start, 0)]}


# --- one state --------------------------------------------------------------------------------------------------------


def test_a_report_has_everything_about_a_state(solution: Solution, oracle: dict[str, Any]) -> None:
    state = (1, 2)
    report = solution.at(state)
    assert (report.state, report.level, report.is_terminal) == (state, 1, False)
    assert report.V_r == pytest.approx(oracle["Vr"][state])
    assert report.U_r == pytest.approx(oracle["Ur"][state])
    assert report.Q_r == pytest.approx(oracle["Qr"][state])
    assert report.robot_policy == pytest.approx(oracle["pi_r"][state])
    assert report.power == pytest.approx(oracle["Xh"][state])
    assert list(report.goals) == [0, 2]
    weights = solution.world.possible_goal_generator.weights
    for human, rows in report.goals.items():
        assert [(goal, weight) for goal, weight, *_ in rows] == [(At(place), weights[place]) for place in range(4)]
        for goal, _, before, after, policy in rows:
            assert before == pytest.approx(oracle["Vh"].get(state, {}).get(human, {}).get(goal, 0.0))
            assert after == pytest.approx(oracle["Vhe"].get(state, {}).get(human, {}).get(goal, 0.0))
            assert policy.tolist() == pytest.approx(oracle["policies"][state][human][goal])


def test_a_report_can_be_read(solution: Solution) -> None:
    text = str(solution.at((1, 2)))
    assert text.startswith("state (1, 2) on level 1: V_r = -")
    for part in ("robots (0,): probability 0.", "human 0: power", "human 2: power", "At(place=3): weight 0.6", "actions 0."):
        assert part in text


def test_a_report_on_a_terminal_state_says_so(solution: Solution) -> None:
    report = solution.at((1, 3))
    assert report.is_terminal
    assert (report.goals, report.power, report.robot_policy, report.Q_r) == ({}, {}, {}, {})
    assert report.V_r == -1e-10
    assert "terminal" in str(report)


@pytest.mark.parametrize("state", [(9, 9), "nonsense", [0, 0]])
def test_there_is_no_report_on_what_cannot_be_reached(solution: Solution, state: Any) -> None:
    with pytest.raises(InvalidStateError, match=r"cannot be reached|is (no|not a) state"):
        solution.at(state)


def test_a_summary_has_sizes_values_and_the_place(tmp_path: Path) -> None:
    in_memory = solve(Ring(), PARAMS, **EXACT)
    assert "17 states on levels 0 to 4" in in_memory.summary()
    assert f"V_r = {in_memory.Vr[0, 0]:.7g}" in in_memory.summary()
    assert "in memory" in in_memory.summary()
    assert in_memory.summary() in repr(in_memory)
    assert str(tmp_path) in solve(Ring(), PARAMS, out=tmp_path, **EXACT).summary()
    assert "in a temporary folder" in solve(Ring(), PARAMS, out=True, **EXACT).summary()
    assert "V_r" not in solve(Ring(), PARAMS, phase_2=False, **EXACT).summary()


# --- precision --------------------------------------------------------------------------------------------------------


def test_double_precision_is_off_by_its_own_arithmetic_only(solution: Solution) -> None:
    bounds = solution.precision
    assert (bounds.rest, bounds.work) == ("float64", "float64")
    assert 0 < max(bounds.values, bounds.human_policies, bounds.V_r) < 1e-11
    assert "nothing is rounded" in str(bounds)


@pytest.mark.parametrize("beta_h", [0.5, 10.0, 200.0])
def test_the_bounds_of_half_precision_hold_and_are_not_far_off(beta_h: float) -> None:
    params = PARAMS.replace(beta_h=beta_h)
    half = solve(Ring(steps=6), params, precision="float16", progress=False)
    exact = solve(Ring(steps=6), params, **EXACT)
    bounds = half.precision
    assert (bounds.rest, bounds.work) == ("float16", "float32")
    worst = {"values": 0.0, "policies": 0.0}
    for t in range(7):
        for name in ("Vh_m", "Vh_e"):
            moved = np.abs(getattr(half.values, name)[t] - getattr(exact.values, name)[t]).max()
            worst["values"] = max(worst["values"], float(moved))
        worst["policies"] = max(worst["policies"], float(np.abs(half.pi_h[t] - exact.pi_h[t]).max()))
    assert bounds.values / 20 < worst["values"] <= bounds.values
    assert worst["policies"] <= bounds.human_policies
    assert f"{bounds.Vh_e:.2g}" in str(bounds)
    assert 0 < bounds.values < 3e-4
    assert 0 < bounds.human_policies < 1


# --- several sets of parameters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_list_of_parameters_gives_a_list_of_the_same_solutions(on_disk: bool, tmp_path: Path) -> None:
    sets = [PARAMS, PARAMS.replace(beta_r=9.0), PARAMS.replace(beta_h=7.0), PARAMS.replace(rho_h=0.4)]
    found = solve(Ring(), sets, out=tmp_path if on_disk else None, **EXACT)
    assert isinstance(found, list)
    assert [one.params for one in found] == sets
    for one, params in zip(found, sets, strict=True):
        alone = solve(Ring(), params, **EXACT)
        assert plain(one.Vr) == plain(alone.Vr)
        assert plain(one.Vhe) == plain(alone.Vhe)
        assert plain(one.prior.values) == plain(alone.prior.values)
    assert len({one.Vr[0, 0] for one in found}) == len(sets)


def test_a_list_of_one_is_a_list_and_no_parameters_are_the_defaults() -> None:
    assert [type(one) for one in solve(Ring(), [PARAMS], **EXACT)] == [Solution]
    assert solve(Ring(), **EXACT).params == Params()


@pytest.mark.parametrize("on_disk", [False, True])
def test_closing_one_of_several_solutions_leaves_the_others_alone(on_disk: bool) -> None:
    first, second = solve(Ring(), [PARAMS, PARAMS.replace(beta_r=9.0)], out=True if on_disk else None, **EXACT)
    expected = second.Vr[1, 2]
    first.close()
    assert second.robot_policy((2, 1)) != {}
    assert second.prior((1, 1), 0, At(2)).sum() == pytest.approx(1)
    assert second.Vr[1, 2] == expected


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_equal_sets_in_a_folder_are_solutions_of_their_own(closed: int, tmp_path: Path) -> None:
    sets = [PARAMS, PARAMS.replace(rho_h=PARAMS.rate_h), PARAMS]  # a factor, a rate
    expected = plain(solve(Ring(), PARAMS, **EXACT).Vr)
    for _ in range(2):  # the second time everything is there
        found = solve(Ring(), sets, out=tmp_path, **EXACT)
        assert len({id(one.results) for one in found}) == len(sets)
        assert len(list(tmp_path.glob("solution-*"))) == 1
        found[closed].close()
        with pytest.raises(OSError, match="closed"):
            found[closed].Vr[0, 0]
        for one in found[:closed] + found[closed + 1 :]:
            assert plain(one.Vr) == expected
            assert one.prior((1, 1), 0, At(2)).sum() == pytest.approx(1)
            one.close()


# --- closing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_closed_solution_complains_instead_of_answering_nothing(on_disk: bool) -> None:
    solution = solve(Ring(), PARAMS, out=True if on_disk else None, **EXACT)
    policy, Vr = solution.robot_policy, solution.Vr
    solution.close()
    for ask in (
        lambda: policy((1, 2)),
        lambda: policy.sample((1, 2)),
        lambda: Vr.get((1, 2)),
        lambda: solution.values.V_r[0],
    ):
        # engine defect, reported: in memory, the policy is empty and its samples are random, without a word
        with pytest.raises((ValueError, OSError, RuntimeError), match="closed"):
            ask()


def test_a_solution_is_a_context_manager_that_gives_temporary_folders_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with solve(Ring(), PARAMS, out=True, **EXACT) as solution:
        assert isinstance(solution, Solution)
        assert solution.Vr[0, 0] < 0
        assert list(tmp_path.iterdir()) != []
    assert list(tmp_path.iterdir()) == []
    solution.close()  # a second time does no harm


def test_a_forgotten_solution_gives_temporary_folders_back_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    solution = solve(Ring(), PARAMS, out=True, **EXACT)
    assert list(tmp_path.iterdir()) != []
    del solution
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_closing_a_solution_on_disk_keeps_what_is_there(tmp_path: Path) -> None:
    with solve(Ring(), PARAMS, out=tmp_path, **EXACT) as solution:
        expected = plain(solution.Vr)
    again = solve(Ring(), PARAMS, out=tmp_path, **EXACT)
    assert plain(again.Vr) == expected


# --- one phase, or a prior of one's own -------------------------------------------------------------------------------


def test_without_phase_2_its_values_are_missed_with_a_clear_error() -> None:
    solution = solve(Ring(), PARAMS, phase_2=False, **EXACT)
    assert plain(solution.prior.values) == plain(solve(Ring(), PARAMS, **EXACT).prior.values)
    questions = [
        lambda: solution.values.Vh_e[0],
        lambda: solution.values.X_h[0],
        lambda: solution.values.U_r[0],
        lambda: solution.values.V_r[0],
        lambda: solution.Q_r[0],
        lambda: solution.pi_r[0],
        lambda: solution.Vr[0, 0],
        lambda: solution.Vhe[0, 0],
        lambda: solution.robot_policy((0, 0)),
        lambda: solution.robot_policy.sample((0, 0)),
        lambda: solution.markov_chain[0],
        lambda: solution.markov_chain.matrix,
    ]
    for ask in questions:
        with pytest.raises(ValueError, match="phase 2 was not solved"):
            ask()
    report = solution.at((1, 2))
    assert math.isnan(report.V_r)
    assert math.isnan(report.goals[0][0][3])
    assert report.goals[2][1][2] == solution.Vh[1, 2].get(2, {}).get(At(1), 0.0)


class Undecided:
    """A prior of the user's own: everything is equally likely."""

    def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
        return [(0.25, [a, b]) for a in (0, 1) for b in (0, 1)]

    def profile_distribution_with_fixed_goal(self, state: Any, human: int, goal: Any) -> list[tuple[float, list[int]]]:
        return self.profile_distribution(state)


def test_with_a_prior_of_ones_own_phase_1_is_missed_with_a_clear_error() -> None:
    prior = Undecided()
    solution = solve(Ring(), PARAMS, human_policy_prior=prior, **EXACT)
    assert solution.prior is prior
    oracle = robot_policy(
        OracleRing(), [0, 2], [1], Ring().possible_goal_generator, prior, beta_r=3.0, gamma_h=0.9, gamma_r=0.8, zeta=2.0,
        eta=1.1,
    )  # fmt: skip
    assert plain(solution.Vr) == pytest.approx(oracle["Vr"])
    assert [pytest.approx(row) for row in oracle["chain"]] == list(solution.markov_chain)
    for ask in (lambda: solution.values.Vh_m[0], lambda: solution.Vh[0, 0], lambda: solution.pi_h[0]):
        with pytest.raises(ValueError, match=r"phase 1 was not solved|prior of your own"):
            ask()
    assert solution.at((1, 2)).V_r == solution.Vr[1, 2]


def test_a_dag_at_hand_is_used_instead_of_a_new_one() -> None:
    world = Ring()
    dag = enumerate_dag(world, precision="exact", progress=False)
    solution = solve(world, PARAMS, dag=dag, **EXACT)
    assert solution.dag is dag
    assert plain(solution.Vr) == plain(solve(world, PARAMS, **EXACT).Vr)


class Named(Ring):
    """A world that says itself what it is, so that one with durations of its own is equal to it."""

    content_key = "a ring of four places"


class SlowNamed(Named):
    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> list[float]:
        return [1.0 + 2.0 * after[1] for _, after in transitions]


def slow(world: Any) -> Any:
    """The world, to which durations are given after it was made."""
    world.transition_durations = lambda state, actions, transitions: [3.0] * len(transitions)
    return world


EQUAL_WORLDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "a subclass": (Named, SlowNamed),
    "an attribute": (Named, lambda: slow(Named())),
    "a gridworld with an attribute": (
        lambda: load_world("first_steps", max_steps=3),
        lambda: slow(load_world("first_steps", max_steps=3)),
    ),
}


@pytest.mark.parametrize("case", EQUAL_WORLDS)
def test_the_dag_of_an_equal_world_serves_but_durations_are_those_of_the_world_that_is_solved(case: str) -> None:
    make, make_slow = EQUAL_WORLDS[case]
    first, second = make(), make_slow()
    expected = [plain(solve(world, PARAMS, **EXACT).Vr) for world in (first, second)]
    assert expected[0] != expected[1]
    for world, other, numbers in ((first, second, expected[1]), (second, first, expected[0])):
        dag = enumerate_dag(world, precision="exact", progress=False)
        before = dict(vars(dag))
        solution = solve(other, PARAMS, dag=dag, **EXACT)
        assert plain(solution.Vr) == numbers
        assert list(solution.markov_chain)  # which follows transitions
        assert solution.world is other
        assert vars(dag).keys() == before.keys()
        assert [name for name in before if vars(dag)[name] is not before[name]] == []
        solution.close()
        assert dag.is_usable
        assert plain(solve(world, PARAMS, dag=dag, **EXACT).Vr) != numbers  # its owner has its own durations still
