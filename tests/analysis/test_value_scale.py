"""V_r on a scale: other robots with the same humans, held to the oracle's evaluation of a given robot."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from backward.against_oracle import Problem
from backward.test_gridworlds_against_oracle import PARAMETERS, problem_of
from backward.test_python_worlds_against_oracle import Drawn, problems
from command_line import invoke
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle import planning
from planning_worlds import At, Places, Ring, TwoSteps

from empo_bi import (
    MemoryLimitError,
    Params,
    Solution,
    TabularGoalGenerator,
    compute_human_policy_prior,
    compute_robot_policy,
    load_world,
    open_solution,
    solve,
)
from empo_bi.analysis import ValueScale, value_scale
from empo_bi.analysis.scale import RobotRow, is_cheap
from empo_bi.errors import EmpoOverflowError, GoalError, StoreMismatchError
from empo_bi.runtime import progress
from empo_bi.solving.evaluation import Robots, level_with
from empo_bi.solving.options import Resources
from empo_bi.sweep.backward_pass import Sweep
from empo_bi.types import FloatArray
from empo_bi.world.still import still_action

QUIET: dict[str, Any] = {"progress": False}
EXACT: dict[str, Any] = {"precision": "float64", **QUIET}
PARAMS = Params(gamma_h=0.95, gamma_r=0.9, beta_h=20, zeta=2, beta_r=20)


def solution_of(problem: Problem) -> Solution:
    """Both phases with the humans' discount of phase 1."""
    own = {name: value for name, value in problem.robot.items() if name not in ("gamma_h", "rho_h")}
    params = Params(**problem.human, **own, believed_others_policy=problem.belief)
    return solve(
        problem.world, params, human_agent_indices=problem.humans, robot_agent_indices=problem.robots,
        possible_goal_generator=problem.generator, human_policy_prior=problem.prior, level_fct=problem.level_fct, **EXACT,
    )  # fmt: skip


def by_oracle(problem: Problem, policy: dict[Any, float]) -> dict[str, Any]:
    """What the oracle says of robots that play alike in every state."""
    discount = {name: value for name, value in problem.human.items() if name in ("gamma_h", "rho_h")}
    own = {name: value for name, value in problem.robot.items() if name not in ("gamma_h", "rho_h", "beta_r")}
    prior = problem.human_answers[0] if problem.prior is None else problem.oracle_prior or problem.prior
    return planning.worth_of_robots(
        problem.graph.world, problem.humans, problem.robots, problem.goals, prior, lambda state, r: policy[r],
        graph=problem.graph, **own, **discount,
    )  # fmt: skip


def assert_as_by_oracle(problem: Problem, solution: Solution, policies: Sequence[FloatArray], t: int) -> None:
    """All arrays of a level, for several robots in one pass."""
    profiles, states = solution.robot_profiles, solution.dag.states(t)
    answers = [by_oracle(problem, dict(zip(profiles, policy_R.tolist(), strict=True))) for policy_R in policies]
    if any(-math.inf < value < -1e100 for one in answers for value in one["Vr"].values()):
        return  # where small numbers lose their digits
    robots = [Robots(solution.params, policy_R) for policy_R in policies]
    for expected, found in zip(answers, level_with(solution, robots, t, Resources(**QUIET)), strict=True):
        for s, state in enumerate(states):
            assert found["vr"][s] == pytest.approx(expected["Vr"][state], rel=1e-9)
            if state not in expected["Xh"]:
                continue
            for h, human in enumerate(problem.humans):
                assert found["xh"][s, h] == pytest.approx(expected["Xh"][state][human], rel=1e-9, abs=1e-12)
                by_name = {problem.oracle_name_of(g): v for g, v in expected["Vhe"][state][human].items()}
                for g, goal in enumerate(solution.goals[human]):
                    value = by_name.get(problem.name_of(goal), 0.0)
                    assert found["ve"][s, h, g] == pytest.approx(value, rel=1e-9, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(problems(), st.integers(0, 2**20))
def test_given_robots_in_random_worlds_agree_with_the_oracle(drawn: tuple[Problem, Drawn], seed: int) -> None:
    """Durations, beliefs, priors, goals by state, bystanders; some robots never do some things."""
    problem, _ = drawn
    assume(not callable(problem.prior))  # `solve` takes no functions
    try:
        solution = solution_of(problem)
    except (GoalError, EmpoOverflowError):
        return
    rng = Random(seed)
    weights = [[rng.choice([0.0, 0.0, 1.0, 3.0]) for _ in solution.robot_profiles] for _ in range(2)]
    policies = [np.array(row) / sum(row) for row in [*weights, [1.0] * len(weights[0])] if sum(row)]
    assert_as_by_oracle(problem, solution, policies, rng.randint(0, solution.dag.horizon))


@pytest.mark.parametrize("parameters", ["standard", "optimists", "rates"])
@pytest.mark.parametrize("name", ["hazards/slippery_ledge", "conflicts/after_you"])
def test_idle_and_random_robots_in_shipped_worlds_agree_with_the_oracle(name: str, parameters: str) -> None:
    problem = problem_of(name, *PARAMETERS[parameters])
    solution = solution_of(problem)
    n = len(solution.robot_profiles)
    assert_as_by_oracle(problem, solution, [np.eye(n)[0], np.full(n, 1 / n)], 0)
    scale = value_scale(solution)
    expected = by_oracle(problem, {r: float(r == (0,) * len(problem.robots)) for r in solution.robot_profiles})
    start = problem.graph.states[0]
    assert scale.nothing is not None
    assert scale.nothing.V_r == pytest.approx(expected["Vr"][start], rel=1e-9)
    assert scale.nothing.U_r == pytest.approx(expected["Ur"][start], rel=1e-9)
    assert scale.nothing.power == pytest.approx(expected["Xh"][start])
    for human in solution.humans:
        pairs = [(w, v) for (g, w), v in zip(problem.goals.generate(start, human), expected["Vhe"][start][human].values(),
                                            strict=True) if not g.is_achieved(start)]  # fmt: skip
        mean = sum(w * v for w, v in pairs) / sum(w for w, _ in pairs)
        assert scale.nothing.mean_value[human] == pytest.approx(mean, rel=1e-9, abs=1e-12)


# --- against other ways to the same numbers -----------------------------------------------------------------------------


def assert_same_row(row: RobotRow | None, solution: Solution) -> None:
    """A row is what a solution with such a robot has at the start."""
    assert row is not None
    report = solution.at(solution.dag.states(0)[0])
    assert (row.V_r, row.U_r, row.power) == (report.V_r, report.U_r, report.power)
    for human, rows in report.goals.items():
        assert row.values[human].tolist() == [one.V_h_e for one in rows]


@pytest.mark.parametrize("precision", ["float16", "float64"])
@pytest.mark.parametrize("world", [load_world("asymmetric_freeing", max_steps=5), Ring()], ids=["grid", "python"])
def test_random_and_best_robots_are_bit_for_bit_those_of_beta_r_0_and_infinity(world: Any, precision: str) -> None:
    options = {"precision": precision, **QUIET}
    solution = solve(world, PARAMS, **options)
    scale = value_scale(solution, still=0)
    assert_same_row(scale.computed, solution)
    assert_same_row(scale.random, solve(world, PARAMS.replace(beta_r=0), **options))
    assert_same_row(scale.best, solve(world, PARAMS.replace(beta_r=math.inf), **options))
    bystander = solve(world, PARAMS, robot_agent_indices=[], **options)  # who plays action 0
    assert scale.nothing is not None
    assert scale.nothing.V_r == bystander.values.V_r[0][0]
    strict = value_scale(solve(world, PARAMS.replace(beta_r=math.inf), **options), still=0)
    assert strict.best is not None
    assert strict.computed.V_r == strict.best.V_r


def test_scales_of_stored_opened_and_limited_solutions_are_the_same(tmp_path: Path) -> None:
    world = load_world("asymmetric_freeing", max_steps=5)
    expected = value_scale(solve(world, PARAMS, **QUIET)).to_json()
    with solve(world, PARAMS, out=tmp_path, memory_limit="3GB", **QUIET) as stored:
        assert value_scale(stored, memory_limit="3GB", workers=2).to_json() == expected
    before = sorted(tmp_path.rglob("*"))
    with open_solution(tmp_path) as opened:
        assert value_scale(opened).to_json() == expected
        with pytest.raises(MemoryLimitError, match="evaluating: memory_limit"):
            value_scale(opened, memory_limit="20MB")
    assert sorted(tmp_path.rglob("*")) == before, "nothing is written"


def test_each_of_several_sets_of_parameters_has_its_own_scale() -> None:
    world, sets = load_world("slippery_ledge", max_steps=4), [PARAMS, PARAMS.replace(beta_h=2, zeta=1, optimistic=True)]
    for solution, params in zip(solve(world, sets, **QUIET), sets, strict=True):
        assert value_scale(solution).to_json() == value_scale(solve(world, params, **QUIET)).to_json()


def test_a_prior_of_your_own_is_asked_again_and_there_is_no_V_h() -> None:
    first = solve(Ring(), PARAMS, **EXACT)

    def prior(state: Any, human: int, goal: Any) -> Any:
        policy = first.prior(state, human) if goal is None else first.prior(state, human, goal)
        return policy / policy.sum()

    told = solve(Ring(), PARAMS, human_policy_prior=prior, **EXACT)
    expected, found = value_scale(first, still=0), value_scale(told, still=0)
    assert found.V_h == {}
    assert expected.V_h != {}
    for row, one in zip(found.rows, expected.rows, strict=True):
        assert row.V_r == pytest.approx(one.V_r, rel=1e-9)
        assert row.mean_value == pytest.approx(one.mean_value, rel=1e-9)


def test_solutions_of_the_documented_functions_have_a_scale_with_the_humans_of_phase_1() -> None:
    world = Ring()
    prior = compute_human_policy_prior(world, [0, 2], beta_h=7, gamma_h=0.8, use_float16=False, quiet=True)
    policy = compute_robot_policy(
        world, [0, 2], [1], human_policy_prior=prior, beta_r=5, gamma_h=0.9, use_float16=False, quiet=True
    )
    scale = value_scale(policy.solution, still=0)
    _, Vr, _ = compute_robot_policy(
        world,
        [0, 2],
        [1],
        human_policy_prior=prior,
        beta_r=0,
        gamma_h=0.9,
        return_values=True,
        use_float16=False,
        quiet=True,
    )
    assert scale.random.V_r == pytest.approx(Vr[0, 0], rel=1e-12)
    assert scale.gamma_h == pytest.approx(0.9)


def test_a_stored_run_says_in_one_line_that_its_prior_is_not_at_hand(tmp_path: Path) -> None:
    def prior(state: Any, human: int, goal: Any) -> list[float]:
        return [0.25, 0.75]

    with solve(Ring(), PARAMS, human_policy_prior=prior, out=tmp_path, **QUIET) as solved:
        expected = value_scale(solved, still=0)
    with open_solution(tmp_path) as opened, pytest.raises(StoreMismatchError, match="humans act by a prior of the user's"):
        value_scale(opened, still=0)
    done = invoke("show", tmp_path)
    assert done.exit_code == 0
    assert "V_r was not compared with that of other robots: the humans act by a prior of the user's" in done.stdout
    with open_solution(tmp_path, world=Ring(), goals=Ring().possible_goal_generator, prior=prior) as opened:
        assert value_scale(opened, still=0).to_json() == expected.to_json()


def test_any_state_of_a_sub_problem_can_be_asked_about() -> None:
    solution = solve(Ring(), PARAMS, start=[(1, 2), (1, 1)], stop=lambda s: s[1] == 0, **EXACT)
    assert value_scale(solution, still=0).state == solution.dag.states(0)[0]
    for t in range(solution.dag.horizon):
        for state in solution.dag.states(t):
            if solution.at(state).is_terminal:
                with pytest.raises(ValueError, match="is terminal"):
                    value_scale(solution, state, still=0)
                continue
            scale = value_scale(solution, state, still=0)
            own = solve(Ring(), PARAMS.replace(beta_r=0), start=state, stop=lambda s: s[1] == 0, **EXACT)
            assert scale.random.V_r == pytest.approx(own.Vr[state], rel=1e-12)
            assert scale.level == t


def test_the_sweep_ends_at_the_level_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    solution = solve(TwoSteps(4), PARAMS, **QUIET)
    levels, original = [], Sweep._level

    def note(self: Any, t: int, *arguments: Any) -> None:
        levels.append(t)
        original(self, t, *arguments)

    monkeypatch.setattr(Sweep, "_level", note)
    value_scale(solution, (2, 1), still=0)
    assert levels == [4, 3, 2, 4, 3, 2]  # one pass in the solution's tables, one in float64 for the best robot


# --- what it says -------------------------------------------------------------------------------------------------------


def test_a_scale_goes_from_doing_nothing_to_the_best() -> None:
    scale = value_scale(solve(load_world("locked_in", max_steps=8), **QUIET))
    assert scale.nothing is not None
    assert scale.best is not None
    assert scale.share == (scale.computed.V_r - scale.nothing.V_r) / (scale.best.V_r - scale.nothing.V_r)
    assert (scale.share_of(scale.nothing), scale.share_of(scale.best)) == (0.0, 1.0)
    lines = str(scale).splitlines()
    assert lines[0].split() == ["the", "robot", "...", "V_r", "scale", "human", "0"]
    value, mean = scale.computed.V_r, scale.computed.mean_value[0]
    assert lines[1].split()[-3:] == [f"{value:.6g}", f"{scale.share:.0%}", f"{mean:.4f}"]
    assert lines[2].split() == ["does", "nothing", "-40", "0%", "0.0000"]
    assert lines[4].startswith("takes its best action")
    assert lines[5].split() == ["works", "against", "the", "human", "(V_h)", "0.0000"]
    assert lines[6] == "scale: 0% is a robot that does nothing, 100% the best of these."
    assert lines[7] == "humans: the mean V_h^e (the chance to attain a goal) of goals not attained yet."
    assert repr(scale) == str(scale)
    assert scale._repr_html_().count("<tr>") == 6


def test_an_optimist_behind_a_locked_door_is_helped_and_not_alone() -> None:
    """The explorer once showed 0.57 "alone" for somebody who can attain nothing without the robot."""
    solution = solve(load_world("locked_in", max_steps=8), Params(optimistic=True), **QUIET)
    scale = value_scale(solution)
    assert scale.nothing is not None
    assert scale.nothing.mean_value[0] == 0
    assert scale.V_h[0] > 0.5
    assert "helps the human (V_h)" in str(scale)
    assert "alone" not in str(scale)
    report = str(solution.at(scale.state))
    assert "if the robot helps the human" in report
    assert "in phase 1" not in report
    pessimist = solve(load_world("locked_in", max_steps=4), **QUIET)
    assert "if the robot works against the human" in str(pessimist.at(scale.state))


def test_discounted_values_are_not_called_chances() -> None:
    told = str(value_scale(solve(load_world("locked_in", max_steps=5), Params(gamma_h=0.9), **QUIET)))
    assert "the mean V_h^e (the chance to attain a goal, discounted by gamma_h=0.9 a step)" in told


def test_a_robot_that_makes_no_difference_has_no_scale() -> None:
    class Ignored(TwoSteps):
        action_names = ("stay", "act")

        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            return super().transition_probabilities(state, [actions[0], 1])

    scale = value_scale(solve(Ignored(), Params(beta_h=2), **EXACT))
    assert not scale.makes_a_difference
    assert math.isnan(scale.share)
    assert "The robot makes no difference here: V_r is the same whatever it does." in str(scale)
    assert "%" not in str(scale)
    assert scale.to_json()["makes_a_difference"] is False


def test_a_robot_that_had_better_done_nothing_is_said_to_be_below_0() -> None:
    row = RobotRow("as computed", -5.0, -1.0, {0: 0.5}, {0: np.array([0.5])}, {0: 0.5})
    rows = {"nothing": replace(row, robot="does nothing", V_r=-4.0), "random": replace(row, V_r=-6.0), "best": None}
    scale = ValueScale((0,), 0, row, V_h={}, optimistic=False, gamma_h=1.0, **rows)  # type: ignore[arg-type]
    assert math.isnan(scale.share)
    assert "There is no scale: none of these robots is better than one that does nothing." in str(scale)
    better = replace(scale, best=replace(row, V_r=-3.0))
    assert better.share == -1.0


class Gate(TwoSteps):
    """The human gets through, to place 1, if the robot opens; nothing else is a goal."""

    action_names = ("wait", "act")

    def __init__(self, steps: int = 3) -> None:
        super().__init__(steps)
        self.possible_goal_generator = TabularGoalGenerator([At(1)], [1.0])

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        t, k = state
        if t == self.steps or k == 1:
            return None
        return [(1.0, (t + 1, 1 if list(actions) == [1, 1] else 0))]


@pytest.mark.parametrize("precision", ["float16", "float64"])
def test_without_the_robot_somebody_may_have_no_power_at_all(precision: str) -> None:
    solution = solve(Gate(), Params(beta_h=2, beta_r=3), precision=precision, **QUIET)
    scale = value_scale(solution)
    assert scale.nothing is not None
    assert (scale.nothing.V_r, scale.nothing.U_r, scale.nothing.power) == (-math.inf, -math.inf, {0: 0.0})
    assert scale.zero is scale.random, "0% has to be a number"
    assert 0 < scale.share < 1
    assert "V_r is -inf where a human may come to a state without any goal that can still be attained." in str(scale)
    assert "0% is a robot that acts at random" in str(scale)


class Detour(Gate):
    """The robot may carry the human off to place 2, from which only the robot brings it to place 1."""

    def __init__(self) -> None:
        super().__init__(3)
        self.possible_goal_generator = Places(0.5, 0.5)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        t, k = state
        return None if t == self.steps else [(1.0, (t + 1, {0: 2, 1: 1, 2: 1}[k] if actions[1] else k))]


def test_a_loss_that_never_comes_about_does_not_count() -> None:
    solution = solve(Detour(), Params(beta_h=2), **EXACT)
    scale = value_scale(solution)
    assert scale.nothing is not None
    assert scale.nothing.V_r == pytest.approx(-6.0)  # three steps with power 1/2
    lost = value_scale(solution, (1, 2)).nothing
    assert lost is not None
    assert lost.V_r == -math.inf


def test_a_world_without_an_action_that_does_nothing_says_so() -> None:
    solution = solve(TwoSteps(), PARAMS, **EXACT)
    scale = value_scale(solution)
    assert scale.nothing is None
    assert "does nothing: left out, since no action of this world has a name such as still, pass, stay" in str(scale)
    assert "value_scale(solution, still=...) takes the number of the action that does nothing" in str(scale)
    assert scale.zero is scale.random
    assert value_scale(solution, still=0).nothing is not None
    for wrong in (2, -1, "rest", 0.5, True):
        with pytest.raises(ValueError, match=r"give an action that all robots have, by its number or name: 0 \(action 0\)"):
            value_scale(solution, still=wrong)  # type: ignore[arg-type]


def test_actions_that_do_nothing_are_known_by_their_names() -> None:
    assert still_action(["left", "Still"]) == 1
    assert still_action(load_world("bush_worlds/overgrown_start").action_names) == 4
    assert still_action(["forward", "left"]) is None


def test_goals_attained_already_are_left_out_of_the_mean() -> None:
    solution = solve(TwoSteps(), Params(beta_h=2), **EXACT)
    report, scale = solution.at((0, 0)), value_scale(solution, still=0)
    assert scale.computed.values[0].tolist() == [row.V_h_e for row in report.goals[0]]
    assert scale.computed.mean_value == {0: report.goals[0][1].V_h_e}  # the other goal holds at the start
    assert scale.V_h == {0: report.goals[0][1].V_h}


def test_what_has_no_scale_says_why() -> None:
    with pytest.raises(ValueError, match="phase 2 was not solved"):
        value_scale(solve(TwoSteps(), phase_2=False, **QUIET))
    with pytest.raises(ValueError, match="without robots"):
        value_scale(solve(TwoSteps(), robot_agent_indices=[], **QUIET))


def test_what_takes_long_is_not_done_unasked() -> None:
    assert is_cheap(solve(load_world("locked_in", max_steps=3), **QUIET))
    assert not is_cheap(solve(TwoSteps(), Params(terminal_Vr=lambda state: -1.0), **QUIET))


def test_progress_says_what_is_done(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "LINE_AFTER", 0.0)
    solution = solve(TwoSteps(), PARAMS, **QUIET)
    capsys.readouterr()
    value_scale(solution, still=0, progress=True)
    assert "empo_bi: evaluate other robots: level 2 (1 of 3 done)" in capsys.readouterr().err
