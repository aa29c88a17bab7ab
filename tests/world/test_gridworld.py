"""GridWorld as people use it: gymnasium, PettingZoo, states and profiles, pictures and text."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
import pytest
from engine import load_quietly
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from pettingzoo.test import parallel_api_test
from random_worlds import random_worlds
from scipy.stats import chisquare
from worked_examples import walled

from empo_bi import (
    GridWorld,
    InvalidActionError,
    InvalidStateError,
    WorldModel,
    WorldTooLargeError,
    load_world,
    worlds,
)
from empo_bi.world.map_world import MapWorld
from empo_bi.world.pettingzoo import ParallelGridWorld

CONTEST = {"map": walled("Ay .. Ae / Un .. Un"), "orientations": ["e", "w"], "max_steps": 4}


@pytest.fixture
def contest() -> GridWorld:
    return load_quietly(CONTEST)


# --- the world-model interface ----------------------------------------------------------------------------------------


def test_humans_are_yellow_robots_are_grey_and_the_others_only_act() -> None:
    world = load_quietly({"map": walled("Ar Ay Ae / Ay Ab Ae")})
    assert len(world.agents) == 6
    assert (world.human_agent_indices, world.robot_agent_indices) == ([1, 3], [2, 5])
    assert isinstance(world, WorldModel)
    assert isinstance(world, gymnasium.Env)


def test_a_state_is_terminal_exactly_at_the_horizon(contest: GridWorld) -> None:
    state = contest.initial_state()
    for step in range(4):
        assert state[0] == step
        assert not contest.is_terminal(state)
        ((_, state),) = contest.transition_probabilities(state, [0, 0])
    assert contest.is_terminal(state)
    assert contest.transition_probabilities(state, [0, 0]) is None
    assert contest.transition_probabilities((7, *state[1:]), [0, 0]) is None


def test_a_world_of_no_steps_is_over_at_once() -> None:
    world = load_quietly(CONTEST, max_steps=0)
    assert world.is_terminal()
    assert world.transition_probabilities(world.initial_state(), [3, 3]) is None


def test_transitions_do_not_depend_on_or_change_the_present_state(contest: GridWorld) -> None:
    start = contest.initial_state()
    contest.reset(seed=0)
    contest.step([3, 0])
    present = contest.get_state()
    assert len(contest.transition_probabilities(start, [3, 3])) == 2
    assert contest.get_state() == present
    assert contest.initial_state() == start
    assert contest.get_state() == present


def test_set_state_and_get_state_are_inverse(contest: GridWorld) -> None:
    (_, one), (_, other) = contest.transition_probabilities(contest.initial_state(), [3, 3])
    for state in (one, other):
        contest.set_state(state)
        assert contest.get_state() == state


def test_durations_are_one_each(contest: GridWorld) -> None:
    transitions = contest.transition_probabilities(contest.initial_state(), [3, 3])
    assert contest.transition_durations(contest.initial_state(), [3, 3], transitions) == [1.0, 1.0]
    assert contest.terminal_duration(contest.initial_state()) == 1.0


BAD_PROFILES = ([3], [3, 3, 3], [3, 4], [3, -1], [3, 1.0], [3, None], [[3], 3], "ab", 3, np.ones((2, 2)))


@pytest.mark.parametrize("actions", BAD_PROFILES)
def test_a_bad_profile_is_an_error_that_says_what_a_profile_is(contest: GridWorld, actions: Any) -> None:
    with pytest.raises(InvalidActionError, match=r"one action id for each agent|0 still, 1 left, 2 right, 3 forward"):
        contest.transition_probabilities(contest.initial_state(), actions)
    with pytest.raises(InvalidActionError):
        contest.step(actions)


def test_profiles_may_be_tuples_lists_or_arrays(contest: GridWorld) -> None:
    state = contest.initial_state()
    forms = [(3, 3), [3, 3], np.array([3, 3]), np.array([3, 3], dtype=np.int8)]
    assert all(
        contest.transition_probabilities(state, form) == contest.transition_probabilities(state, [3, 3]) for form in forms
    )


def test_a_world_without_agents_only_lets_time_pass() -> None:
    world = load_quietly({"map": walled(".. Bl .."), "max_steps": 2})
    ((probability, successor),) = world.transition_probabilities(world.initial_state(), [])
    assert (probability, successor) == (1.0, (1, (), (("block", 2, 1),), ()))
    assert world.expand(world.initial_key).count_SJ.tolist() == [[1]]


def test_eight_agents_are_no_problem() -> None:
    world = load_quietly({"map": walled("Ay Ae Ar .. / .. .. .. .. / Ag Ab Ap .. / Ay Ae .. .."), "max_steps": 2})
    profile = [3] * 8
    transitions = world.transition_probabilities(world.initial_state(), profile)
    assert sum(p for p, _ in transitions) == pytest.approx(1.0)
    assert len(world.all_profiles) == 4**8


def test_more_profiles_than_can_be_listed_are_an_error_that_counts_them() -> None:
    world = load_quietly({"map": walled("Ay Ae Ar .. / .. .. .. .. / Ag Ab Ap .. / Ay Ae .. Kr / Ay Ay Ay ..")})
    with pytest.raises(WorldTooLargeError, match="11 agents with 7 actions have 1,977,326,743 action profiles"):
        world.expand(world.initial_key)
    assert world.transition_probabilities(world.initial_state(), [0] * 11) is not None


def test_all_profiles_come_with_agent_0_as_the_least_significant_digit(contest: GridWorld) -> None:
    profiles = contest.all_profiles
    assert profiles.shape == (16, 2)
    assert [int(p[0] + 4 * p[1]) for p in profiles] == list(range(16))


# --- packed states ----------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(random_worlds(max_agents=3), st.integers(0, 2**32))
def test_encode_and_decode_are_inverse_on_reachable_states(mapping: dict[str, Any], seed: int) -> None:
    world = load_quietly(mapping)
    rng = np.random.default_rng(seed)
    key_SW = world.initial_key
    for step in range(1, 6):
        profiles = rng.integers(world.action_space.n, size=(3, len(world.agents)))
        key_SW = np.unique(world.expand(key_SW[:50], profiles).key_KW, axis=0)
        states = world.decode(step, key_SW)
        assert len(set(states)) == len(states)
        steps, keys = world.encode(states)
        assert (steps == step).all()
        assert np.array_equal(keys, key_SW)


def test_asymmetric_freeing_packs_into_one_word_and_what_a_world_lacks_takes_no_bits() -> None:
    world = load_world("asymmetric_freeing")
    assert world.layout.n_words == 1
    assert sum(field.width for field in world.layout.fields) == 3 * (5 + 2) + 2 * 5  # three agents, two rocks, 18 cells


def test_a_large_world_takes_several_words() -> None:
    rows = " / ".join([" ".join(["Bl"] * 12)] * 6 + [" ".join([".."] * 11 + ["Ay"])] * 3)
    world = load_quietly({"map": walled(rows), "max_steps": 3})
    assert world.layout.n_words >= 9
    states = world.decode(1, world.expand(world.initial_key, np.array([[3, 1, 0], [2, 3, 3]])).key_KW)
    assert world.decode(1, world.encode(states)[1]) == states


def _changed(state: tuple, agent: int, **entries: Any) -> tuple:
    names = ["x", "y", "direction", "terminated", "started", "paused", "kind", "colour", "forced"]
    old = dict(zip(names, state[1][agent], strict=True))
    agents = list(state[1])
    agents[agent] = tuple((old | entries).values())
    return (state[0], tuple(agents), *state[2:])


ALL_KINDS = {"map": walled("Ay Kr Lr Bl / Ae Xb Ro Pa / .. Bu Ma CB"), "can_enter_magic_walls": "e", "max_steps": 9}
BAD_STATES = {
    "an agent in a wall": (lambda s: _changed(s, 0, x=0), r"cell \(0, 1\)"),
    "an agent off the grid": (lambda s: _changed(s, 0, x=77), r"cell \(77, 1\)"),
    "an agent on a button": (lambda s: _changed(s, 0, x=4, y=3), r"cell \(4, 3\)"),
    "two on one cell": (lambda s: _changed(s, 0, x=1, y=2), "two agents or things on one cell"),
    "a fifth direction": (lambda s: _changed(s, 0, direction=4), "direction"),
    "an agent never started": (lambda s: _changed(s, 0, started=False), "True as the fifth entry"),
    "terminated without a cause": (lambda s: _changed(s, 0, terminated=True), "agent 0's terminated can never"),
    "paused in words": (lambda s: _changed(s, 1, paused="yes"), "found 'yes'"),
    "a forced action that does not exist": (lambda s: _changed(s, 1, forced=7), "forced action 7"),
    "a carried key that also lies there": (lambda s: _changed(s, 0, kind="key", colour="red"), "1 on the ground and 1"),
    "a carried key the map lacks": (lambda s: _changed(s, 0, kind="key", colour="green"), "carries a green key"),
    "a negative step": (lambda s: (-1, *s[1:]), "steps are counted from 0"),
    "a step and a half": (lambda s: (1.5, *s[1:]), "not a state of this world"),
    "a place and a half": (lambda s: _changed(s, 0, x=1.5), "not a state of this world"),
    "a paused human": (lambda s: _changed(s, 0, paused=True), "agent 0's paused can never"),
    "things out of order": (lambda s: (*s[:2], s[2][::-1], s[3]), "sort it by kind, x, y"),
    "a block with a colour": (lambda s: (*s[:2], (("block", 4, 1, None), *s[2][1:]), s[3]), "no such thing"),
    "an agent missing": (lambda s: (s[0], s[1][:1], *s[2:]), "1 agents"),
    "a block missing": (lambda s: (*s[:2], s[2][1:], s[3]), "0 on the ground and 0 carried, but the map has 1"),
    "a thing the map lacks": (lambda s: (*s[:2], (("ball", 1, 3, "red"), *s[2]), s[3]), "the map has no such thing"),
    "a mutable object missing": (lambda s: (*s[:3], s[3][1:]), "4 mutable objects"),
    "mutable objects out of order": (lambda s: (*s[:3], s[3][::-1]), "expected the door"),
    "an open locked door": (lambda s: (*s[:3], (("door", 3, 1, True, True), *s[3][1:])), "never open and locked"),
    "a number": (lambda s: 7, "not a state of this world"),
    "a short tuple": (lambda s: s[:3], "not a state of this world"),
    "None": (lambda s: None, "not a state of this world"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_STATES)
def test_a_state_that_cannot_be_is_an_error_that_says_why(case: str) -> None:
    change, message = BAD_STATES[case]
    world = load_quietly(ALL_KINDS)
    bad = change(world.initial_state())
    with pytest.raises(InvalidStateError, match=message):
        world.transition_probabilities(bad, [0, 0])
    with pytest.raises(ValueError, match=message):
        world.set_state(bad)


# --- gymnasium and PettingZoo -----------------------------------------------------------------------------------------


def test_a_world_with_one_agent_passes_gymnasiums_own_check(recwarn: pytest.WarningsRecorder) -> None:
    check_env(load_quietly({"map": walled("Ay Un .. / .. .. .."), "max_steps": 20}, render_mode="rgb_array"))
    assert [str(warning.message) for warning in recwarn if "render" not in str(warning.message)] == []


@pytest.mark.parametrize("name", ["asymmetric_freeing"])
def test_the_parallel_wrapper_passes_pettingzoos_own_test(name: str) -> None:
    env = ParallelGridWorld(load_world(name))
    parallel_api_test(env, num_cycles=50)
    assert env.possible_agents == ["human_0", "human_1", "robot_2"]


def test_a_seed_makes_a_run_repeatable(contest: GridWorld) -> None:
    def run(seed: int) -> list[Any]:
        contest.reset(seed=seed)
        return [contest.step([3, 3])[4]["state"] for _ in range(3)]

    assert run(1) == run(1)
    assert len({repr(run(seed)) for seed in range(20)}) > 1


def test_step_returns_five_values_and_refuses_to_go_on_after_the_end(contest: GridWorld) -> None:
    observation, info = contest.reset(seed=0)
    assert observation in contest.observation_space
    assert info["state"] == contest.initial_state()
    for step in range(1, 5):
        observation, reward, terminated, truncated, info = contest.step([0, 1])
        assert observation in contest.observation_space
        assert (reward, terminated, truncated) == (0.0, step == 4, False)
        assert info["state"] == contest.get_state()
    with pytest.raises(RuntimeError, match="ended after 4 steps; call reset"):
        contest.step([0, 1])


def test_reset_may_start_from_a_given_state(contest: GridWorld) -> None:
    _, state = contest.transition_probabilities(contest.initial_state(), [3, 3])[1]
    _, info = contest.reset(options={"state": state})
    assert info["state"] == contest.get_state() == state


def test_steps_are_drawn_with_the_transition_probabilities() -> None:
    """Two agents on unsteady ground: nine outcomes. A chi-squared test that a right sampler fails once in a million."""
    mapping = {"map": walled(".. .. .. .. .. / .. Un .. Un .. / .. Ay .. Ae .."), "orientations": "n", "max_steps": 9}
    world = load_quietly(mapping, stumble_probability=0.6)
    ((_, state),) = world.transition_probabilities(world.initial_state(), [3, 3])
    transitions = world.transition_probabilities(state, [3, 3])
    assert len(transitions) == 9
    world.reset(seed=12345)
    counts: Counter[Any] = Counter()
    for _ in range(3000):
        world.set_state(state)
        counts[world.step([3, 3])[4]["state"]] += 1
    assert set(counts) == {successor for _, successor in transitions}
    expected = [3000 * probability for probability, _ in transitions]
    assert chisquare([counts[successor] for _, successor in transitions], expected).pvalue > 1e-6


def test_worlds_can_be_pickled_and_copied(contest: GridWorld) -> None:
    contest.reset(seed=3)
    contest.step([3, 3])
    assert contest.all_profiles.shape == (16, 2)
    assert len(pickle.dumps(contest)) < 20_000
    for twin in (pickle.loads(pickle.dumps(contest)), copy.deepcopy(contest)):
        assert twin.get_state() == contest.get_state()
        assert twin.transition_probabilities(twin.initial_state(), [3, 3]) == contest.transition_probabilities(
            contest.initial_state(), [3, 3]
        )


# --- looking at it ----------------------------------------------------------------------------------------------------


def test_text_shows_what_the_cells_show_now() -> None:
    world = load_quietly({"map": walled("Ay Cr Bu / Ae Bl La"), "max_steps": 9})
    assert world.to_text().splitlines()[1:3] == ["We Ay Cr Bu We", "We Ae Bl La We"]
    ((_, state),) = world.transition_probabilities(world.initial_state(), [6, 3])
    assert world.to_text(state).splitlines()[1:3] == ["We Ay Or Bu We", "We .. Ae Bl We"]
    ((_, state),) = world.transition_probabilities(state, [3, 1])
    assert world.to_text(state).splitlines()[1:3] == ["We .. Ay Bu We", "We .. Ae Bl We"]


def test_render_gives_a_picture_or_text_by_mode(contest: GridWorld) -> None:
    picture = contest.render()
    assert (picture.shape, picture.dtype) == ((4 * 32, 5 * 32, 3), np.uint8)
    assert contest.render(tile=16).shape == (4 * 16, 5 * 16, 3)
    before = picture.copy()
    contest.reset(seed=0)
    contest.step([1, 0])
    assert not np.array_equal(contest.render(), before)
    assert load_quietly(CONTEST, render_mode="ansi").render() == contest.to_text(contest.initial_state())
    with pytest.raises(ValueError, match="render_mode='human'"):
        load_quietly(CONTEST, render_mode="human")


def test_a_state_of_another_world_is_not_drawn(contest: GridWorld) -> None:
    other = load_world("asymmetric_freeing").initial_state()
    for look in (contest.to_text, contest.render, contest.describe):
        with pytest.raises(InvalidStateError):
            look(other)


def test_a_given_state_is_drawn_and_described_without_going_there(contest: GridWorld) -> None:
    before = contest.get_state()
    ((_, turned),) = contest.transition_probabilities(before, [1, 0])
    assert not np.array_equal(contest.render(turned), contest.render())
    assert contest.describe(turned).splitlines() == [
        "human 0 (yellow) at 1,1 facing north",
        "robot 1 (grey) at 3,1 facing west",
    ]
    assert contest.get_state() == before


def test_likely_mistakes_are_explained(contest: GridWorld) -> None:
    with pytest.raises(InvalidStateError, match=r"write encode\(\[state\]\)"):
        contest.encode(contest.initial_state())
    world = load_world("asymmetric_freeing")
    pairs = list(world.possible_goal_generator.generate(world.initial_state(), 0))
    with pytest.raises(TypeError, match="without the weights"):
        world.attainment(0, world.initial_key, pairs)
    with pytest.raises(ValueError, match="this world has agents 0 to 2"):
        next(world.possible_goal_generator.generate(world.initial_state(), 7))


# --- blocks from strangers --------------------------------------------------------------------------------------------


def test_arrays_that_are_no_states_or_profiles_are_refused_before_the_kernel_sees_them() -> None:
    world = load_world("asymmetric_freeing")
    key = world.initial_key
    for keys in (key[0], np.zeros((1, 2), np.uint64), np.uint64(3)):
        with pytest.raises(InvalidStateError, match=r"expected \(states, 1\)"):
            world.expand(keys)
    for number in (0, 2**31 - 1, 2**64 - 1):
        with pytest.raises(InvalidStateError, match="is not a state of this world"):
            world.expand(np.array([[number]], dtype=np.uint64))
    for profiles in ([[0, 0]], [0, 0, 0], [[0.0, 0.0, 0.0]]):
        with pytest.raises(InvalidActionError, match=r"of shape \(profiles, 3\)"):
            world.expand(key, np.array(profiles))
    for action in (-1, 4, 10**6):
        with pytest.raises(InvalidActionError, match=rf"action {action} of agent 2\. This world's actions are 0 still"):
            world.expand(key, np.array([[0, 0, action]]))


def test_what_a_world_hands_out_cannot_spoil_it() -> None:
    world = load_world("asymmetric_freeing", max_steps=3)
    before = world.initial_state()
    world.initial_key[:] = 0
    assert world.initial_state() == before
    with pytest.raises(ValueError, match="read-only"):
        world.all_profiles[:] = 0


def test_blocks_may_be_expanded_in_threads(contest: GridWorld) -> None:
    world = load_world("ice_rink")
    key_SW = np.repeat(world.initial_key, 300, axis=0)
    alone = world.expand(key_SW)
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(lambda _: world.expand(key_SW), range(12)):
            assert all(np.array_equal(one, other) for one, other in zip(result, alone, strict=True))


def test_a_copied_world_has_goals_of_its_own() -> None:
    twin = copy.deepcopy(load_world("asymmetric_freeing"))
    assert twin.possible_goal_generator.env is twin
    assert next(twin.possible_goal_generator.generate(twin.initial_state(), 0))[0].env is twin


# --- Python worlds ----------------------------------------------------------------------------------------------------


class Coin(WorldModel):
    """Two flips of a biased coin, by one agent without a choice."""

    def __init__(self) -> None:
        self.agents = ("tosser",)
        self.action_space = gymnasium.spaces.Discrete(1)
        self._state: tuple[int, int] = (0, 0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._state = (0, 0)
        return self._state, {}

    def get_state(self) -> tuple[int, int]:
        return self._state

    def set_state(self, state: Any) -> None:
        self._state = state

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, heads = state
        return None if step == 2 else [(0.75, (step + 1, heads + 1)), (0.25, (step + 1, heads))]


def test_a_python_world_gets_the_rest_of_the_interface_for_free() -> None:
    world = Coin()
    world.reset(seed=5)
    state, reward, terminated, truncated, _ = world.step([0])
    assert (state[0], reward, terminated, truncated) == (1, 0.0, False, False)
    assert world.initial_state() == (0, 0)
    assert world.get_state() == state
    assert world.step([0])[2]
    assert world.is_terminal()
    assert world.transition_durations(state, [0], [(1.0, state)]) == [1.0]
    with pytest.raises(RuntimeError, match="the world has ended"):
        world.step([0])
    heads = 0
    for seed in range(400):
        world.reset(seed=seed)
        heads += world.step([0])[0][1]
    assert heads / 400 == pytest.approx(0.75, abs=0.08)


def test_a_python_world_that_forgets_a_method_cannot_be_made() -> None:
    class Forgetful(Coin):
        transition_probabilities = WorldModel.transition_probabilities

    with pytest.raises(TypeError, match="transition_probabilities"):
        Forgetful()


def test_the_parallel_wrapper_refuses_missing_actions_and_steps_after_the_end(contest: GridWorld) -> None:
    env = ParallelGridWorld(contest)
    observations, infos = env.reset(seed=1)
    assert infos["human_0"] is not infos["robot_1"]
    assert observations["human_0"] is not observations["robot_1"]
    with pytest.raises(InvalidActionError, match="missing: robot_1"):
        env.step({"human_0": 0})
    with pytest.raises(InvalidActionError, match="unknown: robot_2"):
        env.step({"human_0": 0, "robot_1": 0, "robot_2": 0})
    with pytest.raises(InvalidActionError, match="whole number"):
        env.step({"human_0": 0, "robot_1": 1.9})
    while env.agents:
        env.step({"human_0": 0, "robot_1": 1})
    with pytest.raises(RuntimeError, match="call reset"):
        env.step({"human_0": 0, "robot_1": 1})


def some_states(world: MapWorld, n_levels: int, seed: int = 0) -> list[Any]:
    """States of a few levels, as if on one: up to 100 of each are expanded by some random profiles."""
    rng, key_SW = np.random.default_rng(seed), world.initial_key
    for _ in range(n_levels):
        chosen = key_SW[rng.permutation(len(key_SW))[:100]]
        profiles = rng.integers(world.action_space.n, size=(6, len(world.agents)))
        key_SW = np.unique(np.concatenate([key_SW, world.expand(chosen, profiles).key_KW]), axis=0)
    return world.decode(1, key_SW[:1000])


def check_looks(world: MapWorld, states: list[Any]) -> None:
    assert len({world.describe(state) for state in states}) == len(states)
    assert len({world.to_text(state) for state in states}) == len(states)


@pytest.mark.parametrize("name", worlds.available())
def test_states_that_differ_have_different_words_and_texts(name: str) -> None:
    world = load_quietly(name, max_steps=9)
    states = some_states(world, 4)
    assert len(states) > 10
    check_looks(world, states)


@settings(max_examples=40, deadline=None)
@given(random_worlds(), st.integers(0, 2**32))
def test_states_that_differ_look_different_whatever_is_in_a_world(mapping: dict[str, Any], seed: int) -> None:
    world = load_quietly(mapping)
    check_looks(world, some_states(world, 5, seed))
    again = load_quietly({**mapping, "map": world.to_text()})  # what stands below the map is ignored
    assert again.world_spec.cells == world.world_spec.cells


def test_the_text_of_a_state_shows_what_is_under_things_in_hands_and_where_agents_look() -> None:
    world = load_quietly({"map": walled("Ay Kr Lr"), "max_steps": 9, "action_class": "ObjectActions"})
    names = world.action_names
    assert world.to_text().splitlines()[1:] == ["We Ay Kr Lr We", "We We We We We", "# human 0 at 1,1 faces east"]
    state = world.initial_state()
    for action in ("pickup", "forward", "toggle", "forward"):
        ((_, state),) = world.transition_probabilities(state, [names.index(action)])
    assert world.to_text(state).splitlines()[1:] == [
        "We .. .. Ay We",
        "We We We We We",
        "# human 0 at 3,1 faces east, carries a red key",
        "# the map: open red door at 3,1",
    ]
    for action in ("left", "left", "drop"):
        ((_, state),) = world.transition_probabilities(state, [names.index(action)])
    assert world.to_text(state).splitlines()[1] == "We .. Kr Ay We"


def test_words_tell_of_doors_things_and_switches() -> None:
    world = load_quietly("one_key_two_rooms")
    assert world.describe().splitlines()[-2:] == [
        "things: green key at 2,1",
        "the map: locked green door at 1,2; locked green door at 3,2",
    ]
    step, agents, _, ((*door, _, _), other) = world.initial_state()
    carrying = ((*agents[0][:6], "key", "green", None), *agents[1:])
    lines = world.describe((step, carrying, (), ((*door, True, False), other))).splitlines()
    assert lines[0] == "human 0 (yellow) at 1,1 facing east, carries a green key"
    assert lines[3:] == ["the map: open green door at 1,2; locked green door at 3,2"]
    assert "control button at 2,1" in load_quietly("remote_control").describe()
