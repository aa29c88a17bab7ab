"""The compiled rules against the specification: its worked examples, the golden figures, and the oracle."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine import Blocks, PerState, load_quietly
from golden_files import REFERENCE, check_golden_figures, golden_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.gridworld import golden_figures_by_horizon, parse
from random_worlds import random_worlds
from worked_examples import EXAMPLES, check_steps, describe, mapping_of, profile_of, walled

from empo_bi import WorldTooLargeError


@pytest.mark.parametrize("example", EXAMPLES)
def test_worked_example(example: str) -> None:
    check_steps(PerState(load_quietly(mapping_of(example))), EXAMPLES[example][2])


def test_disabling_a_pause_switch_that_is_on_releases_all_robots() -> None:
    """6.8. By play alone all robots are paused or none is, so this state is made by hand."""
    world = PerState(load_quietly({"map": walled("Pa Ae .. / dP Ae .."), "orientations": "w"}))
    robot, other = (2, 1, 2, False, True, True, None, None, None), (2, 2, 2, False, True, False, None, None, None)
    state = (0, (robot, other), (), (("pauseswitch", 1, 1, True, True),))
    outcomes = world.transitions(state, profile_of(world, "S T"))
    assert [describe(successor) for successor in outcomes] == ["(2,1)w (2,2)w pauseswitch(1,1):on-disabled"]


@pytest.mark.parametrize(("facing", "robot_acts"), [("n", False), ("s", True)])
def test_two_agents_before_the_same_wall_are_in_conflict(facing: str, robot_acts: bool) -> None:
    """7.5 counts a wall as a contested cell. That makes the step a random one, where a released robot does not act (Q6)."""
    mapping = {"map": walled("Pa Ay .. Ay We / .. Ae .. .. Ay"), "orientations": ["w", "e", "w", facing]}
    world, oracle = PerState(load_quietly(mapping)), parse(mapping)
    step, agents, mobile, _ = oracle.initial_state()
    robot = agents[2]
    paused = (*robot[:5], True, *robot[6:])
    state = (step, (*agents[:2], paused, agents[3]), mobile, (("pauseswitch", 1, 1, True, True),))
    profile = profile_of(world, "T F F F")
    outcomes = world.transitions(state, profile)
    assert outcomes == {successor: float(p) for successor, p in oracle.transitions(state, profile).items()}
    assert [successor[1][2][:2] for successor in outcomes] == [(1, 2) if robot_acts else (2, 2)]


@pytest.mark.parametrize(("path", "horizons"), golden_cases(quick_lines=4000))
def test_golden_digests_state_by_state(path: Path, horizons: list[int]) -> None:
    world = load_quietly(REFERENCE / "worlds" / f"{path.stem}.yaml", max_steps=max(horizons))
    check_golden_figures(path, horizons, golden_figures_by_horizon(PerState(world), max(horizons)))


@pytest.mark.parametrize(("path", "horizons"), golden_cases(quick_lines=15_000))
def test_golden_digests_block_by_block(path: Path, horizons: list[int]) -> None:
    world = load_quietly(REFERENCE / "worlds" / f"{path.stem}.yaml", max_steps=max(horizons))
    check_golden_figures(path, horizons, golden_figures_by_horizon(Blocks(world), max(horizons)))


@settings(max_examples=150, deadline=None)
@given(random_worlds(), st.integers(0, 2**32))
def test_random_worlds_played_at_random_agree_with_the_oracle(mapping: dict[str, Any], seed: int) -> None:
    check_random_play(mapping, seed)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None)
@given(random_worlds(max_agents=5), st.integers(0, 2**32))
def test_thousands_of_random_worlds_agree_with_the_oracle(mapping: dict[str, Any], seed: int) -> None:
    check_random_play(mapping, seed)


def check_random_play(mapping: dict[str, Any], seed: int) -> None:
    """A sample of profiles in every state visited, through blocks; the states come from long random plays."""
    oracle, world = parse(mapping), load_quietly(mapping)
    choose = random.Random(seed)
    state = oracle.initial_state()
    assert world.initial_state() == state
    visited = []
    for _ in range(12):
        visited.append(state)
        profile = [choose.randrange(oracle.n_actions) for _ in range(oracle.n_agents)]
        state = choose.choice(list(oracle.transitions(state, profile)))
    _, key_SW = world.encode(visited)
    rows = choose.sample(range(len(world.all_profiles)), min(40, len(world.all_profiles)))
    profile_JN = world.all_profiles[rows]
    count_SJ, key_KW, prob_K = world.expand(key_SW, profile_JN)
    ends = np.cumsum(count_SJ.ravel()).reshape(count_SJ.shape)
    for s, before in enumerate(visited):
        for j, profile in enumerate(profile_JN.tolist()):
            entries = slice(ends[s, j] - count_SJ[s, j], ends[s, j])
            successors = world.decode(before[0] + 1, key_KW[entries])
            expected = oracle.transitions(before, profile)
            found = dict(zip(successors, prob_K[entries].tolist(), strict=True))
            assert found == pytest.approx({successor: float(p) for successor, p in expected.items()}, abs=1e-15)
            assert prob_K[entries].sum() == pytest.approx(1.0, abs=1e-14)


@settings(max_examples=25, deadline=None)
@given(random_worlds(max_agents=2, max_steps=3))
def test_random_worlds_enumerated_whole_have_the_oracles_digests(mapping: dict[str, Any]) -> None:
    expected = golden_figures_by_horizon(parse(mapping), 2)
    assert golden_figures_by_horizon(Blocks(load_quietly(mapping)), 2) == expected


def test_the_result_of_a_block_does_not_depend_on_how_it_is_cut() -> None:
    world = load_quietly("asymmetric_freeing")
    key_SW = world.initial_key
    for _ in range(4):
        key_SW = np.unique(world.expand(key_SW).key_KW, axis=0)
    whole = world.expand(key_SW)
    parts = [world.expand(key_SW[i : i + 7]) for i in range(0, len(key_SW), 7)]
    for name in ("count_SJ", "key_KW", "prob_K"):
        assert np.array_equal(getattr(whole, name), np.concatenate([getattr(part, name) for part in parts]))


def test_many_outcomes_of_one_step_make_the_arrays_grow() -> None:
    """Seven stumblers give up to 3 ** 7 outcomes where room for a few was set aside."""
    rows = " / ".join([".. Ay Un .. "] * 7)
    world = load_quietly({"map": walled(rows), "stumble_probability": 0.5, "max_steps": 5})
    ahead = world.expand(world.initial_key, np.full((1, 7), 3))
    assert ahead.count_SJ.tolist() == [[1]]
    stumbling = world.expand(ahead.key_KW, np.full((1, 7), 3))
    assert stumbling.count_SJ[0, 0] > 500
    assert stumbling.prob_K.sum() == pytest.approx(1.0, abs=1e-12)
    oracle = parse({"map": walled(rows), "stumble_probability": 0.5, "max_steps": 5})
    state = world.decode(1, ahead.key_KW)[0]
    expected = {s: float(p) for s, p in oracle.transitions(state, [3] * 7).items()}
    successors = world.decode(2, stumbling.key_KW)
    assert dict(zip(successors, stumbling.prob_K.tolist(), strict=True)) == pytest.approx(expected)


def test_thousands_of_outcomes_are_merged_by_hashing() -> None:
    """Eight stumblers, and two agents on either side of one wall: 2 * 3 ** 8 combinations, every two of them the same."""
    rows = " / ".join([".. Ay Un .. .."] * 8 + [".. Ay We Ay .."])
    world = load_quietly({"map": walled(rows), "orientations": [*["e"] * 9, "w"], "stumble_probability": 0.5})
    profile = np.full((1, 10), 3)
    ahead = world.expand(world.initial_key, profile)
    assert ahead.count_SJ.tolist() == [[1]]
    found = world.expand(ahead.key_KW, profile)
    assert len(np.unique(found.key_KW, axis=0)) == len(found.key_KW) == 3**8
    assert found.prob_K.sum() == pytest.approx(1.0, abs=1e-12)
    everybody_ahead = [(4, y) for y in range(1, 9)]
    straight = [
        p
        for p, state in zip(found.prob_K, world.decode(2, found.key_KW), strict=True)
        if [agent[:2] for agent in state[1][:8]] == everybody_ahead
    ]
    assert straight == pytest.approx([0.5**8])


def test_a_state_whose_successors_take_too_much_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_quietly({"map": walled(" / ".join([".. Ay Un .. "] * 4)), "max_steps": 5})
    ahead = world.expand(world.initial_key, np.full((1, 4), 3)).key_KW
    assert len(world.expand(ahead).prob_K) > 500
    monkeypatch.setattr("empo_bi.world.expand.most_successors", lambda n_words: 500)
    with pytest.raises(WorldTooLargeError, match="its 256 action profiles take over 256 MB; use fewer agents, or fewer"):
        world.expand(ahead)
    assert len(world.expand(np.repeat(ahead, 2, axis=0)).prob_K) > 1000  # a block is as large as its maker wants


def test_too_many_outcomes_of_one_step_are_an_error_and_not_a_crash() -> None:
    rows = " / ".join([".. Ay Un .. "] * 16)
    world = load_quietly({"map": walled(rows), "max_steps": 5})
    profile = np.full((1, 16), 3)
    ahead = world.expand(world.initial_key, profile)
    with pytest.raises(WorldTooLargeError, match="over 1,048,576 outcomes"):
        world.expand(ahead.key_KW, profile)
