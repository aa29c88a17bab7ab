"""Agents with different numbers of actions, against the oracle: Python worlds and array worlds."""

from __future__ import annotations

import itertools
import math
import pickle
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from backward.against_oracle import Problem, check_human_policy_prior, check_solve
from backward.test_python_worlds_against_oracle import problems
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from empo_bi import (
    ArrayWorld,
    InvalidActionError,
    InvalidWorldError,
    Params,
    enumerate_dag,
    open_dag,
    open_solution,
    solve,
)
from empo_bi.goals import PossibleGoal, TabularGoalGenerator
from empo_bi.store.verify import verify_store
from empo_bi.testing import check_world

QUIET = {"progress": False}
# KeyError: no goal has a weight, so the oracle takes any action for as likely as any other, also those that a human lacks.
UNDEFINED = (KeyError, OverflowError, ValueError)


class OnOne(PossibleGoal):
    def is_achieved(self, state: Any) -> int:
        return int(state[1] == 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OnOne)

    def __hash__(self) -> int:
        return 1


@st.composite
def uneven_problems(draw: st.DrawFn, strict: bool = False) -> Problem:
    """A random world of which some agents have lost some of their actions; it does not know the others any more."""
    problem, _ = draw(problems(strict))
    world, rng = problem.world, Random(draw(st.integers(0, 2**20)))
    numbers = [rng.randint(1, world.n_actions) for _ in range(world.n_agents)]
    world.num_actions_per_agent, world.n_actions = numbers, max(numbers)
    world.action_space = SimpleNamespace(n=max(numbers))
    for state, rows in world.table.items():
        if rows is not None:
            world.table[state] = {
                profile: found
                for profile, found in rows.items()
                if all(a < n for a, n in zip(profile, numbers, strict=True))
            }
    problem.belief = problem.prior = problem.oracle_prior = None  # which may be about any action
    return problem


def check_uneven(problem: Problem) -> None:
    try:
        expected = problem.robot_answers
    except UNDEFINED:
        reject()
    assume(min(expected["Vr"].values()) > -1e100)
    check_human_policy_prior(problem)
    solution = check_solve(problem)
    numbers = problem.world.num_actions_per_agent
    assert solution.robot_profiles == list(itertools.product(*(range(numbers[robot]) for robot in problem.robots)))
    played = solution.rollouts(20).action_NTI
    assert (played < np.array(numbers)).all()
    assert (played[:, 0] >= 0).all() or not problem.going_on or problem.graph.states[0] not in problem.going_on


@settings(max_examples=60, deadline=None)
@given(uneven_problems())
def test_random_worlds_agree_with_the_oracle(problem: Problem) -> None:
    check_uneven(problem)


@settings(max_examples=25, deadline=None)
@given(uneven_problems(strict=True))
def test_humans_who_know_exactly_what_they_want_agree_with_the_oracle(problem: Problem) -> None:
    check_uneven(problem)


@settings(max_examples=10, deadline=None)
@given(uneven_problems())
def test_bounds_of_errors_hold(problem: Problem) -> None:
    try:
        expected = problem.robot_answers
    except UNDEFINED:
        reject()
    assume(min(expected["Vr"].values()) > -1e100)
    discount = {name: value for name, value in problem.human.items() if name in ("gamma_h", "rho_h")}
    rest = {name: value for name, value in problem.robot.items() if name not in ("gamma_h", "rho_h")}
    both = Problem(
        problem.world, problem.humans, problem.robots, problem.generator, human=problem.human, robot=rest | discount
    )
    try:
        expected = both.robot_answers
    except UNDEFINED:
        reject()
    solution = solve(
        problem.world, Params(**problem.human, **rest), human_agent_indices=problem.humans,
        robot_agent_indices=problem.robots, possible_goal_generator=problem.generator, level_fct=problem.level_fct, **QUIET,
    )  # fmt: skip
    allowed = solution.precision.V_r + 1e-9
    assert all(abs(solution.Vr[state] - value) <= allowed * abs(value) for state, value in expected["Vr"].items())


# --- by hand ----------------------------------------------------------------------------------------------------------


class Switchboard:
    """Human 0 has three levers, human 1 one that does nothing, robot 2 two; levers a and b lead to place a + 2 b."""

    n_agents = 3
    num_actions_per_agent = (3, 1, 2)
    human_agent_indices = (0, 1)
    robot_agent_indices = (2,)

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        if any(not 0 <= a < n for a, n in zip(actions, self.num_actions_per_agent, strict=True)):
            raise ValueError(f"nobody can do {actions}")
        t, _ = state
        return None if t == 2 else [(1.0, (t + 1, actions[0] + 2 * actions[2]))]

    class possible_goal_generator:
        @staticmethod
        def generate(state: Any, human: int) -> Any:
            for place in range(5):
                yield At(place), 0.2


class At:
    def __init__(self, place: int) -> None:
        self.place = place

    def is_achieved(self, state: Any) -> bool:
        return bool(state[1] == self.place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, At) and other.place == self.place

    def __hash__(self) -> int:
        return self.place

    def __repr__(self) -> str:
        return f"At({self.place})"


def test_a_world_without_an_action_space_may_say_how_many_actions_each_agent_has() -> None:
    solution = solve(Switchboard(), Params(beta_h=math.inf, optimistic=True), precision="float64", **QUIET)
    assert [len(solution.pi_h[0][0, h, 0]) for h in (0, 1)] == [3, 3]
    wants_4 = solution.goals[0].index(At(4))
    assert solution.pi_h[1][0, 0, wants_4].tolist() == [0.0, 0.0, 1.0]
    assert solution.pi_h[1][0, 1, wants_4].tolist() == [1.0, 0.0, 0.0]  # it has one action, whatever it wants
    assert solution.robot_profiles == [(0,), (1,)]
    check_world(Switchboard())  # raises an error for what is wrong


def test_a_belief_is_about_actions_that_there_are() -> None:
    asked = set()

    def belief(state: Any, human: int, action: int) -> Any:
        asked.add((human, action))
        return [(1.0, [0, 0, 0])]

    solve(Switchboard(), Params(believed_others_policy=belief), **QUIET)
    assert asked == {(0, 0), (0, 1), (0, 2), (1, 0)}
    with pytest.raises(ValueError, match="actions are 0 to 2 of agent 0, 0 to 0 of agent 1"):
        solve(Switchboard(), Params(believed_others_policy=lambda *_: [(1.0, [0, 1, 0])]), **QUIET)


@pytest.mark.parametrize("given", [(3, 1), (3, 0, 2), "312", 3])
def test_numbers_that_cannot_be_are_refused(given: Any) -> None:
    world = Switchboard()
    world.num_actions_per_agent = given
    with pytest.raises(InvalidWorldError, match=r"num_actions_per_agent=.* expected a number for each of 3 agents"):
        enumerate_dag(world, **QUIET)


def as_arrays(numbers: list[int], n_states: int = 5) -> ArrayWorld:
    rng = np.random.default_rng(7)
    matrices = []
    for _ in range(math.prod(numbers)):
        rows = rng.random((n_states, n_states)) * (rng.random((n_states, n_states)) < 0.6) + 0.05
        matrices.append(rows / rows.sum(axis=1, keepdims=True))
    everywhere = {f"at {i}": [i] for i in range(n_states)}
    n = len(numbers)
    return ArrayWorld(
        matrices, max_steps=3, goals=everywhere, n_agents=n, humans=range(n - 1), robots=[n - 1],
        num_actions_per_agent=numbers,
    )  # fmt: skip


@pytest.mark.parametrize("numbers", [[2, 3], [3, 1], [1, 4, 2], [2, 2, 3]])
def test_array_worlds_agree_with_the_oracle(numbers: list[int]) -> None:
    world = as_arrays(numbers)
    world.n_agents, world.n_actions = len(numbers), max(numbers)
    humans = world.human_agent_indices
    problem = Problem(world, humans, world.robot_agent_indices, world.possible_goal_generator, human={"beta_h": 4.0})
    check_solve(problem)
    check_solve(problem, out=True, workers=2)


def test_a_store_knows_how_many_actions_there_are(tmp_path: Path) -> None:
    solution = solve(as_arrays([1, 4, 2]), out=tmp_path, **QUIET)
    again = open_solution(tmp_path, world=as_arrays([1, 4, 2]))
    assert dict(again.Vr.items()) == dict(solution.Vr.items())
    assert open_dag(tmp_path / "dag").n_profiles == 8
    assert all(verify_store(folder, progress=False).damage == [] for folder in (tmp_path / "dag", *tmp_path.glob("sol*")))


def test_an_array_world_refuses_what_nobody_can_do() -> None:
    world = as_arrays([1, 3])
    with pytest.raises(InvalidActionError, match=r"from 0 to \[0, 2\]"):
        world.transition_probabilities((0, 0), [1, 0])
    with pytest.raises(InvalidWorldError, match="give 6, one for each combination"):
        ArrayWorld([np.eye(2)] * 4, max_steps=1, goals={"a": [0]}, n_agents=2, num_actions_per_agent=[2, 3])
    with pytest.raises(InvalidWorldError, match="or say how many each has"):
        ArrayWorld([np.eye(2)] * 6, max_steps=1, goals={"a": [0]}, n_agents=2)


def test_equal_numbers_are_the_same_as_one(tmp_path: Path) -> None:
    """Also to stores: what everybody has is not a property of single agents."""
    plain = ArrayWorld([np.eye(2), np.eye(2)[::-1]] * 2, max_steps=2, goals={"a": [0], "b": [1]}, n_agents=2)
    said = ArrayWorld(
        [np.eye(2), np.eye(2)[::-1]] * 2, max_steps=2, goals={"a": [0], "b": [1]}, n_agents=2, num_actions_per_agent=[2, 2]
    )
    expected, found = solve(plain, **QUIET), solve(said, **QUIET)
    assert dict(expected.Vr.items()) == dict(found.Vr.items())
    assert expected.robot_profiles == found.robot_profiles


class WithoutActionSpace:
    """Says how many actions each agent has, and nothing else about them."""

    agents, num_actions_per_agent = (0, 1, 2), (3, 2, 4)
    human_agent_indices, robot_agent_indices = (0,), (1, 2)
    possible_goal_generator = TabularGoalGenerator([OnOne()])

    def initial_state(self) -> Any:
        return 0, 0

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        assert all(action < n for action, n in zip(actions, self.num_actions_per_agent, strict=True))
        t, k = state
        return None if t == 2 else [(0.5, (t + 1, (k + sum(actions)) % 3)), (0.5, (t + 1, 1))]


def test_a_world_needs_no_action_space_beside_numbers_of_actions() -> None:
    solution = solve(WithoutActionSpace(), Params(gamma_h=0.9, gamma_r=0.9), **QUIET)
    policy = solution.robot_policy
    assert len(policy((0, 0))) == 2 * 4
    assert policy.num_actions == 4
    drawn = {policy.sample("a state without an entry") for _ in range(200)}
    assert drawn == set(itertools.product(range(2), range(4)))
    assert pickle.loads(pickle.dumps(policy)).sample("unknown") in drawn
    assert solution.prior((0, 0), 0).shape == (4,)
