"""Episodes in which humans pursue goals: as likely as the exact chain says, which in turn is held to phase 2 and to a walk
through all states in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from planning_worlds import At, Places, Ring, TwoSteps

from empo_bi import Params, Solution, load_world, probability_by_time, solve
from empo_bi.results.occupancy import ForwardPass

EXACT: dict[str, Any] = {"precision": "float64", "progress": False}


def gridworld(name: str, steps: int, **params: Any) -> Solution:
    return solve(load_world(name, max_steps=steps), Params(gamma_r=0.95, beta_h=4.0, beta_r=3.0, **params), **EXACT)


class OwnPrior:
    """The humans wait or go alike; one that has a goal goes with probability 0.9 if it is At(1), else 0.2."""

    def __init__(self, n_humans: int) -> None:
        self.n_humans = n_humans

    def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
        return self._joint([0.5] * self.n_humans)

    def profile_distribution_with_fixed_goal(self, state: Any, human: int, goal: Any) -> list[tuple[float, list[int]]]:
        go = [0.5] * self.n_humans
        go[{0: 0, 2: 1}[human]] = 0.9 if goal == At(1) else 0.2
        return self._joint(go)

    def _joint(self, go: list[float]) -> list[tuple[float, list[int]]]:
        found: list[tuple[float, list[int]]] = [(1.0, [])]
        for p in go:
            found = [(q * (p if a else 1 - p), [*actions, a]) for q, actions in found for a in (0, 1)]
        return found


def joint_of(solution: Solution, state: Any, goals: Mapping[int, Any]) -> dict[tuple[int, ...], float]:
    """What the humans do together, from policies of single humans, or from the one answer of a prior of another maker."""
    prior = solution.prior
    if isinstance(prior, OwnPrior):
        told = prior.profile_distribution(state)
        for human, goal in goals.items():
            told = prior.profile_distribution_with_fixed_goal(state, human, goal)
        return {tuple(actions): p for p, actions in told}
    joint: dict[tuple[int, ...], float] = {(): 1.0}
    for human in solution.humans:
        p_A = np.asarray(prior(state, human, goals.get(human)))
        joint = {(*u, a): p * x for u, p in joint.items() for a, x in enumerate(p_A / p_A.sum())}
    return joint


def walk(solution: Solution, goals: Mapping[int, Any]) -> list[dict[Any, float]]:
    """The probability of each state by number of transitions, found by asking policies and world one after the other."""
    world = solution.world
    n_agents = len(world.agents)
    now, found = {world.initial_state(): 1.0}, []
    while now:
        found.append(now)
        after: dict[Any, float] = defaultdict(float)
        for state, mass in now.items():
            if world.transition_probabilities(state, [0] * n_agents) is None:
                continue
            robots = solution.robot_policy(state)
            for u, p_u in joint_of(solution, state, goals).items():
                for r, p_r in robots.items():
                    actions = [0] * n_agents
                    for agent, action in [*zip(solution.humans, u, strict=True), *zip(solution.robots, r, strict=True)]:
                        actions[agent] = action
                    for p, successor in world.transition_probabilities(state, actions):
                        after[successor] += mass * p_u * p_r * p
        now = after
    return found


CASES = [
    pytest.param(lambda: (gridworld("crowd_in_the_corridor", 3), {0: 1}), id="one of two humans"),
    pytest.param(lambda: (gridworld("after_you", 3), {0: 2}), id="a human with a goal"),
    pytest.param(lambda: (gridworld("crowd_in_the_corridor", 3), {0: 2, 3: 1}), id="two humans with goals"),
    pytest.param(lambda: (gridworld("ice_rink", 3, gamma_h=0.9), {0: 2}), id="chance"),
    pytest.param(
        lambda: (solve(Ring(4), Params(gamma_h=0.9, gamma_r=0.9), **EXACT), {2: 1}), id="levels that are leapt over"
    ),
    pytest.param(
        lambda: (solve(Ring(4), Params(gamma_r=0.9), human_policy_prior=OwnPrior(2), **EXACT), {0: 1}), id="another prior"
    ),
    pytest.param(
        lambda: (solve(Ring(4), Params(gamma_r=0.9), human_policy_prior=OwnPrior(2), **EXACT), {2: 0}),
        id="another goal of it",
    ),
]


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Solution, dict[int, Any]]:
    solution, numbers = request.param()
    return solution, {human: solution.goals[human][g] for human, g in numbers.items()}


def test_states_are_as_frequent_as_a_walk_through_all_of_them_says(case: tuple[Solution, dict[int, Any]]) -> None:
    solution, goals = case
    n = 20_000
    rollouts = solution.rollouts(n, seed=5, goals=goals)
    assert rollouts.goals == goals
    count: list[dict[Any, int]] = []
    for k in range(rollouts.place_NT.shape[1]):
        there = rollouts.place_NT[:, k] >= 0
        pairs, number_N = np.unique(
            np.stack([rollouts.level_NT[there, k], rollouts.place_NT[there, k]]), axis=1, return_counts=True
        )
        states = [solution.dag.states(int(t), np.array([place]))[0] for t, place in pairs.T]
        count.append(dict(zip(states, number_N.tolist(), strict=True)))
    expected = walk(solution, goals)
    assert not any(count[len(expected) :])
    for k, p_of in enumerate(expected):
        assert set(count[k]) <= {state for state, p in p_of.items() if p > 0}
        for state, p in p_of.items():
            # Five and a half standard errors, over some hundreds of states; 2 for those that hardly ever come.
            assert abs(count[k].get(state, 0) - n * p) <= 5.5 * np.sqrt(n * p * max(0, 1 - p)) + 2, (k, state)


def test_the_exact_chain_is_that_of_the_walk(case: tuple[Solution, dict[int, Any]]) -> None:
    solution, goals = case
    expected: dict[Any, float] = defaultdict(float)
    for p_of in walk(solution, goals):
        for state, p in p_of.items():
            expected[state] += p
    n_found = 0
    for t, mass_SN in ForwardPass(solution, goals=goals):
        for state, p in zip(solution.dag.states(t), mass_SN[:, 0], strict=True):
            assert p == pytest.approx(expected.get(state, 0.0), abs=1e-12)
            n_found += p > 0
    assert n_found == sum(p > 0 for p in expected.values())


@pytest.mark.parametrize("name", ["after_you", "ice_rink", "shortcut_that_may_close"])
def test_without_discount_the_value_of_a_goal_is_the_probability_to_attain_it_when_pursuing_it(name: str) -> None:
    solution = gridworld(name, 5)
    start = solution.world.initial_state()
    n_checked = 0
    for h, human in enumerate(solution.humans):
        for g, goal in enumerate(solution.goals[human][:6]):
            if not goal.is_achieved(start):
                p = probability_by_time(solution, goal, goals={human: goal})[-1]
                assert p == pytest.approx(solution.values.Vh_e[0][0, h, g], abs=1e-12)
                n_checked += p > 0
    assert n_checked > 1


def test_goals_are_attained_as_often_as_pursuing_them_makes_likely(case: tuple[Solution, dict[int, Any]]) -> None:
    solution, goals = case
    n = 20_000
    share_HG = solution.rollouts(n, seed=8, goals=goals).attained_NHG.mean(axis=0)
    for h, human in enumerate(solution.humans):
        known = solution.goals[human]
        for g, p in enumerate(probability_by_time(solution, known, goals=goals)[:, -1]):
            assert abs(share_HG[h, g] - p) <= 4.5 * np.sqrt(p * max(0, 1 - p) / n) + 1e-9


def test_a_determined_human_does_what_its_goal_asks_for() -> None:
    solution = solve(TwoSteps(3), Params(beta_h=float("inf"), gamma_h=0.9, optimistic=True, beta_r=200.0), **EXACT)
    wants_0, wants_1 = solution.goals[0]
    to_1 = solution.rollouts(50, seed=1, goals={0: wants_1})
    assert (to_1.action_NTI[:, 0, 0] == 1).all()
    to_0 = solution.rollouts(50, seed=1, goals={0: wants_0})
    assert to_0.attained_NHG[:, 0, 0].all()
    both = {int(a) for a in solution.rollouts(200, seed=1).action_NTI[:, 0, 0]}
    assert both == {0, 1}, "without a goal it is now this, now that"


def test_no_goals_are_the_episodes_as_ever() -> None:
    solution = gridworld("after_you", 3)
    one, other = solution.rollouts(30, seed=3), solution.rollouts(30, seed=3, goals={})
    assert np.array_equal(one.place_NT, other.place_NT)
    assert one.goals == other.goals == {}
    assert not np.array_equal(one.place_NT, solution.rollouts(30, 3, {0: solution.goals[0][2]}).place_NT)


# --- goals that differ from state to state ----------------------------------------------------------------------------


class NowAndThen(Places):
    """At(0) and At(1) everywhere, At(2) at the start only."""

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[At, float]]:
        yield At(0), 0.5
        yield At(1), 0.5 if state[1] else 0.3
        if state[0] == 0:
            yield At(2), 0.2


def test_goals_that_states_weigh_differently_can_be_pursued_where_all_states_have_them() -> None:
    solution = solve(Ring(4), Params(gamma_r=0.9), possible_goal_generator=NowAndThen(), **EXACT)
    goals = {0: At(1)}
    expected = walk(solution, goals)
    n = 20_000
    rollouts = solution.rollouts(n, seed=4, goals=goals)
    last = expected[1]
    for state, p in last.items():
        t, place = solution.dag.place_of(state)
        share = ((rollouts.level_NT[:, 1] == t) & (rollouts.place_NT[:, 1] == place)).mean()
        assert abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n)
    assert len(last) > 2


def test_a_goal_that_a_state_does_not_have_cannot_be_pursued_there() -> None:
    solution = solve(Ring(4), Params(), possible_goal_generator=NowAndThen(), **EXACT)
    with pytest.raises(ValueError, match=r"human 0 does not have the goal At\(place=2\) in state \(1, "):
        solution.rollouts(5, goals={0: At(2)})
    with pytest.raises(ValueError, match="does not have the goal"):
        probability_by_time(solution, At(1), goals={0: At(2)})


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_wrong_goals_are_told_what_would_be_right() -> None:
    solution = solve(Ring(3), Params(), **EXACT)
    for goals, error, message in [
        ({1: At(0)}, ValueError, r"agent 1 is not among the humans \[0, 2\]"),
        (
            {0: At(7)},
            ValueError,
            r"goal At\(place=7\): human 0 has no such goal; .*At\(place=0\); At\(place=1\)",
        ),
        ({0: None}, ValueError, "human 0 has no such goal"),
        ({0: [1]}, ValueError, "human 0 has no such goal"),
        (At(0), TypeError, r"give \{human: goal\}"),
    ]:
        with pytest.raises(error, match=message):
            solution.rollouts(1, goals=goals)  # type: ignore[arg-type]


def test_a_prior_of_another_maker_takes_one_goal() -> None:
    solution = solve(Ring(3), Params(), human_policy_prior=OwnPrior(2), **EXACT)
    with pytest.raises(ValueError, match=r"humans \[0, 2\], but a prior of your own can only fix .* one human"):
        solution.rollouts(1, goals={0: At(1), 2: At(1)})
