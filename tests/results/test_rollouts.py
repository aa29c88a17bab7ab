"""Episodes drawn under both policies: what they are made of, and that they are as frequent as they should be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from planning_worlds import At, Places, Ring, TwoSteps

from empo_bi import Params, Solution, events, first_of, load_world, probability_by_time, solve
from empo_bi.results.rollouts import Rollouts

EXACT: dict[str, Any] = {"precision": "float64", "progress": False}
WORLDS = [("mirror_freeing", 8), ("ice_rink", 4), ("after_you", 4), ("shortcut_that_may_close", 4), ("lava_lid", 4)]


def solved(name: str, steps: int, **params: Any) -> Solution:
    return solve(load_world(name, max_steps=steps), Params(gamma_h=0.98, gamma_r=0.95, **params), **EXACT)


class Slow(Ring):
    """Transitions that take their time."""

    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> list[float]:
        return [0.5, 1.0, 2.5]


ALL = [
    *(pytest.param(lambda name=name, steps=steps: solved(name, steps), id=name) for name, steps in WORLDS),
    pytest.param(lambda: solve(Ring(5), Params(gamma_r=0.9), **EXACT), id="ring"),
    pytest.param(lambda: solve(Ring(5), Params(), **EXACT), id="ring without discount"),
    pytest.param(lambda: solve(Slow(5), Params(gamma_h=0.9, gamma_r=0.8), **EXACT), id="slow ring"),
    pytest.param(lambda: solve(TwoSteps(6), Params(gamma_r=0.9, terminal_Vr=-3.0), **EXACT), id="two steps"),
]


@pytest.fixture(params=ALL)
def solution(request: pytest.FixtureRequest) -> Solution:
    found: Solution = request.param()
    return found


def test_every_episode_is_a_path_of_the_world(solution: Solution) -> None:
    rollouts = solution.rollouts(12, seed=3)
    world = solution.world
    for i in range(len(rollouts)):
        states = rollouts.states(i)
        assert states[0] == world.initial_state()
        assert world.transition_probabilities(states[-1], [0] * len(world.agents)) is None
        assert len(states) == rollouts.length_N[i] + 1
        for k in range(len(states) - 1):
            actions = rollouts.action_NTI[i, k].tolist()
            assert sum(p for p, after in world.transition_probabilities(states[k], actions) if after == states[k + 1]) > 0
            played = sum(a * int(world.action_space.n) ** agent for agent, a in enumerate(actions))
            assert played == rollouts.profile_NT[i, k]


def test_what_comes_after_the_end_is_minus_one(solution: Solution) -> None:
    rollouts = solution.rollouts(50, seed=1)
    horizon = solution.dag.horizon
    assert rollouts.place_NT.shape == rollouts.level_NT.shape == (50, horizon + 1)
    assert rollouts.profile_NT.shape == (50, horizon)
    after_NT = np.arange(horizon + 1) > rollouts.length_N[:, np.newaxis]
    for array in (rollouts.place_NT, rollouts.level_NT):
        assert (array[after_NT] == -1).all()
        assert (array[~after_NT] >= 0).all()
    assert (rollouts.action_NTI[rollouts.profile_NT < 0] == -1).all()
    assert (np.diff(rollouts.level_NT, axis=1)[~after_NT[:, 1:]] > 0).all()


def test_states_are_as_frequent_as_they_are_likely(solution: Solution) -> None:
    n = 20_000
    rollouts = solution.rollouts(n, seed=5)
    for t, p_S in enumerate(solution.reached):
        count_S = np.bincount(rollouts.place_NT[rollouts.level_NT == t], minlength=len(p_S))
        assert (count_S[p_S == 0] == 0).all()
        error_S = np.sqrt(n * p_S * (1 - p_S).clip(0))
        assert (np.abs(count_S - n * p_S) <= 5.5 * error_S + 2 + 1e-9).all(), f"level {t}"
        often = n * p_S * (1 - p_S) > 10
        if often.any():
            chi = ((count_S - n * p_S)[often] ** 2 / (n * p_S)[often]).sum()
            assert chi < often.sum() + 5 * np.sqrt(2 * often.sum()) + 5


def test_the_mean_return_is_the_robots_value(solution: Solution) -> None:
    rollouts = solution.rollouts(20_000, seed=11)
    error = rollouts.return_N.std(ddof=1) / np.sqrt(len(rollouts))
    value = float(solution.values.V_r[0][0])
    assert abs(rollouts.return_N.mean() - value) <= 4 * error + 1e-12 * abs(value)


def test_goals_are_attained_as_often_as_is_likely(solution: Solution) -> None:
    n = 20_000
    share_HG = solution.rollouts(n, seed=7).attained_NHG.mean(axis=0)
    for h, human in enumerate(solution.humans):
        for g, goal in enumerate(solution.goals[human]):
            p = float(probability_by_time(solution, goal)[-1])
            assert abs(share_HG[h, g] - p) <= 4.5 * np.sqrt(p * max(0, 1 - p) / n) + 1e-9


def test_who_is_freed_first() -> None:
    solution, n = solved("mirror_freeing", 9, beta_r=5.0), 4000
    rocks = [events.thing_gone("rock", (2, 2)), events.thing_gone("rock", (6, 2))]
    indicators = events.indicators_of(rocks, solution.dag)
    rollouts = solution.rollouts(n, seed=2)
    when_EN = np.full((2, n), 99)
    for t in reversed(range(10)):
        for e in range(2):
            when_EN[e, indicators[e](t, rollouts.place_NT[:, t])] = t
    exact = first_of(solution, rocks)
    for p, share in [
        (exact.first[0], (when_EN[0] < when_EN[1]).mean()),
        (exact.first[1], (when_EN[1] < when_EN[0]).mean()),
        (exact.none, (when_EN.min(axis=0) == 99).mean()),
    ]:
        assert abs(share - p) <= 4 * np.sqrt(p * (1 - p) / n)


# --- the same again ---------------------------------------------------------------------------------------------------


def same(one: Rollouts, other: Rollouts, n: int) -> bool:
    arrays = ("level_NT", "place_NT", "profile_NT", "return_N", "attained_NHG")
    return all(np.array_equal(getattr(one, name)[:n], getattr(other, name)[:n]) for name in arrays)


def test_a_seed_gives_the_same_episodes_and_the_first_of_many(solution: Solution) -> None:
    assert same(solution.rollouts(40, seed=9), solution.rollouts(40, seed=9), 40)
    assert same(solution.rollouts(1, seed=9), solution.rollouts(40, seed=9), 1)
    assert same(solution.rollouts(3), solution.rollouts(3, seed=0), 3)
    assert not same(solution.rollouts(40, seed=9), solution.rollouts(40, seed=10), 40)


def test_numpys_global_generator_is_left_alone() -> None:
    solution = solve(TwoSteps(4), Params(), **EXACT)
    before = np.random.get_state()  # noqa: NPY002 (it is about this one)
    solution.rollouts(5, seed=1)
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))


def test_one_number_decides_a_step_and_numbers_come_episode_after_episode() -> None:
    """So that what a seed gives stays what it is from version to version; policies are exact numbers here."""

    class Coin:
        def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
            return [(0.5, [0]), (0.5, [1])]

        def profile_distribution_with_fixed_goal(self, *_: Any) -> list[tuple[float, list[int]]]:
            return self.profile_distribution(None)

    solution = solve(TwoSteps(4), Params(beta_r=0.0), human_policy_prior=Coin(), **EXACT)
    uniform_NT = np.random.Generator(np.random.PCG64(6)).random((5, 4))
    human_NT, rest_NT = np.divmod(2 * uniform_NT, 1)
    robot_NT = (rest_NT >= 0.5).astype(int)
    rollouts = solution.rollouts(5, seed=6)
    assert rollouts.action_NTI.tolist() == np.stack([human_NT, robot_NT], axis=2).astype(int).tolist()


def test_blocks_do_not_matter() -> None:
    solution = solved("mirror_freeing", 7)
    before = solution.rollouts(300, seed=4)
    solution.blocks.block_states = 5
    assert same(before, solution.rollouts(300, seed=4), 300)


# --- edges ------------------------------------------------------------------------------------------------------------


def test_a_world_that_ends_at_once() -> None:
    rollouts = solve(TwoSteps(steps=0), Params(terminal_Vr=-2.0), **EXACT).rollouts(3)
    assert rollouts.states(1) == [(0, 0)]
    assert rollouts.return_N.tolist() == [-2.0] * 3
    assert rollouts.profile_NT.shape == (3, 0)
    assert not rollouts.attained_NHG.any(), "nobody has a goal any more"


def test_a_prior_whose_sums_are_not_one_is_normalised() -> None:
    class Half:
        def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
            return [(0.1, [0]), (0.3, [1])]

        def profile_distribution_with_fixed_goal(self, *_: Any) -> list[tuple[float, list[int]]]:
            return [(1.0, [0])]

    rollouts = solve(TwoSteps(3), Params(), human_policy_prior=Half(), **EXACT).rollouts(4000)
    assert (rollouts.action_NTI[:, :, 0] == 1).mean() == pytest.approx(0.75, abs=0.02)


def test_agents_that_are_neither_play_action_0() -> None:
    class Watched(Ring):
        human_agent_indices = (0,)

    rollouts = solve(Watched(), Params(), **EXACT).rollouts(30)
    assert set(rollouts.action_NTI[:, :, 2].ravel().tolist()) <= {0, -1}
    assert {0, 1} <= set(rollouts.action_NTI[:, :, 0].ravel().tolist())


@pytest.mark.parametrize("n", [0, -3])
def test_at_least_one_episode(n: int) -> None:
    with pytest.raises(ValueError, match="give a number of episodes, 1 or more"):
        solve(TwoSteps(), **EXACT).rollouts(n)


def test_both_phases_are_needed() -> None:
    with pytest.raises(ValueError, match="phase 2 was not solved"):
        solve(TwoSteps(), phase_2=False, **EXACT).rollouts(1)


def test_what_is_certain_happens_every_time() -> None:
    class Still(Places):
        def generate(self, state: Any, human_agent_index: int) -> Any:
            yield At(state[1]), 1.0

    rollouts = solve(TwoSteps(4), possible_goal_generator=Still(), **EXACT).rollouts(200)
    assert (rollouts.action_NTI[:, :, 0] == 0).all()
    assert rollouts.states(7) == [(t, 0) for t in range(5)]
