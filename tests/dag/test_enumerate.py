"""The levelled DAG in memory: the oracle's levels and transitions, whatever the world."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine import PerState, load_quietly
from golden_files import REFERENCE, check_golden_figures, golden_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.gridworld import enumerate_levels, golden_figures_by_horizon, parse
from random_worlds import random_worlds
from worked_examples import walled

from empo_bi import InvalidStateError, TooManyStatesError, enumerate_dag, load_world
from empo_bi.dag.dag import Dag
from empo_bi.dag.key_index import KeyIndex
from empo_bi.solving import enumeration


class FromDag(PerState):
    """Transitions as the DAG has them, for the golden digests."""

    def __init__(self, dag: Dag) -> None:
        super().__init__(dag.world)
        self._outcomes: dict[tuple, list[dict[tuple, float]]] = {}
        for t in range(dag.horizon):
            level, states = dag.level(t), dag.states(t)
            place = {int(body): i for i, body in enumerate(dag.level(t + 1).body_S)}
            successors = dag.states(t + 1)
            ends = level.count_SJ.ravel().cumsum().reshape(level.count_SJ.shape)
            for s, state in enumerate(states):
                self._outcomes[state] = [
                    {
                        successors[place[int(level.succ_K[k])]]: float(level.prob_K[k])
                        for k in range(ends[s, j] - level.count_SJ[s, j], ends[s, j])
                    }
                    for j in range(level.count_SJ.shape[1])
                ]

    def transitions(self, state: tuple, profile: Any) -> dict[tuple, float] | None:
        n = self.world.action_space.n
        return self._outcomes[state][sum(action * n**i for i, action in enumerate(profile))]


# --- numbering keys ---------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(0, 3000), st.integers(1, 400), st.integers(0, 2**32))
def test_keys_are_numbered_in_the_order_of_their_first_appearance(words: int, n: int, variety: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    key_KW = rng.integers(0, variety, size=(n, words)).astype(np.uint64) << rng.integers(0, 60, size=words, dtype=np.uint64)
    index, known = KeyIndex(words), {}
    for part in np.array_split(key_KW, 3):
        expected = [known.setdefault(tuple(key), len(known)) for key in part.tolist()]
        assert index.add(part).tolist() == expected
    assert index.keys.tolist() == [list(key) for key in known]
    assert index.find(key_KW).tolist() == [known[tuple(key)] for key in key_KW.tolist()]
    strange = np.full((1, words), 2**64 - 1, dtype=np.uint64)
    assert index.find(strange).tolist() == [-1]
    assert len(index) == len(known)


# --- levels and transitions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "horizons"), golden_cases(quick_lines=10_000))
def test_golden_digests_of_the_dag(path: Path, horizons: list[int]) -> None:
    world = load_quietly(REFERENCE / "worlds" / f"{path.stem}.yaml", max_steps=max(horizons))
    dag = enumerate_dag(world, precision="float64", progress=False)
    check_golden_figures(path, horizons, golden_figures_by_horizon(FromDag(dag), max(horizons)))
    wanted = json.loads(path.read_text())["horizons"][str(max(horizons))]
    assert dag.level_sizes == wanted["states_per_level"]
    assert dag.n_states == wanted["states_total"]


@settings(max_examples=40, deadline=None)
@given(random_worlds(max_agents=2, max_steps=3))
def test_levels_are_the_exact_reachable_sets_of_the_oracle(mapping: dict[str, Any]) -> None:
    """MinimalActions is among the action sets: without ``still``, levels are not nested."""
    dag = enumerate_dag(load_quietly(mapping), progress=False)
    for t, states in enumerate(enumerate_levels(parse(mapping), 3)):
        assert len(dag.states(t)) == len(states)
        assert set(dag.states(t)) == set(states)


@pytest.mark.parametrize("actions", ["small", "minimal"])
def test_without_still_levels_are_not_nested_and_with_it_they_are(actions: str) -> None:
    world = load_quietly({"map": walled("Ay .. .."), "max_steps": 4}, actions=actions)
    dag = enumerate_dag(world, progress=False)
    bodies = [set(dag.level(t).body_S.tolist()) for t in range(5)]
    assert all(lower <= upper for lower, upper in itertools.pairwise(bodies)) == (actions == "small")


def test_the_dag_does_not_depend_on_the_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_world("ice_rink")
    whole = enumerate_dag(world, progress=False)
    monkeypatch.setattr(enumeration, "BLOCK_BYTES", 50 * 200)
    monkeypatch.setattr("empo_bi.dag.packed_explorer._FEWEST_PAIRS", 50)
    parts = enumerate_dag(world, progress=False)
    assert whole.level_sizes == parts.level_sizes
    for t in range(world.max_steps + 1):
        for name in ("body_S", "count_SJ", "succ_K", "prob_K"):
            assert np.array_equal(getattr(whole.level(t), name), getattr(parts.level(t), name))
        assert whole.states(t) == parts.states(t)


@pytest.mark.parametrize("name", ["carousel", "asymmetric_freeing"])
def test_states_are_numbered_level_by_level(name: str) -> None:
    dag = enumerate_dag(load_world(name, max_steps=5), progress=False)
    numbers = [dag.index_of(state) for t in range(6) for state in dag.states(t)]
    assert numbers == list(range(dag.n_states))


def test_a_state_that_cannot_be_reached_has_no_number() -> None:
    dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=5), progress=False)
    start = dag.world.initial_state()
    (_, turned) = dag.world.transition_probabilities(start, [1, 0, 0])[0]
    assert dag.index_of(turned) > 0
    with pytest.raises(InvalidStateError, match="cannot be reached"):
        dag.index_of((0, *turned[1:]))
    with pytest.raises(IndexError, match="levels 0 to 5"):
        dag.level(6)


def test_known_sizes_of_asymmetric_freeing() -> None:
    dag = enumerate_dag(load_world("asymmetric_freeing"), progress=False)
    assert (dag.n_states, dag.n_bodies, dag.horizon) == (70_333, 18_028, 15)
    assert dag.level(-1).level == 15
    assert "70,333 states" in dag.summary()


def test_a_world_of_no_steps_is_one_state() -> None:
    dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=0), progress=False)
    assert (dag.level_sizes, dag.n_transitions) == ([1], 0)
    assert dag.level(0).count_SJ.sum() == 0


def test_too_many_states_stop_the_enumeration_with_advice() -> None:
    with pytest.raises(TooManyStatesError, match=r"more than max_states=1,000 bodies; shorten the horizon"):
        enumerate_dag(load_world("asymmetric_freeing"), max_states=1000, progress=False)


def test_a_quick_enumeration_shows_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    enumerate_dag(load_world("first_steps"))
    assert capsys.readouterr().err == ""
