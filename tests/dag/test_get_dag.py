"""``world.get_dag()``: the documented tuple of Python objects, in the documented order."""

from __future__ import annotations

import heapq
from typing import Any

import pytest
from engine import load_quietly
from oracle.gridworld import parse
from worked_examples import walled

from empo_bi import load_world, worlds


def smallest_first(start: Any, successors: dict[Any, set[Any]]) -> list[Any]:
    """Topological order by its definition: of all states whose predecessors are out, the smallest comes next."""
    waiting: dict[Any, int] = dict.fromkeys(successors, 0)
    for targets in successors.values():
        for target in targets:
            waiting[target] += 1
    ready, order = [start], []
    while ready:
        state = heapq.heappop(ready)
        order.append(state)
        for target in successors[state]:
            waiting[target] -= 1
            if waiting[target] == 0:
                heapq.heappush(ready, target)
    return order


@pytest.mark.parametrize("name", ["side_by_side", "carousel", "ice_rink", "thicket"])
def test_states_successors_and_transitions_are_those_of_the_oracle_in_the_documented_order(name: str) -> None:
    world = load_world(name, max_steps=2)
    path = worlds.find(name)
    assert path is not None
    oracle = parse(path.read_text(), max_steps=2)
    states, number_of, successors, transitions = world.get_dag(return_probabilities=True)
    profiles = list(oracle.profiles())
    expected = {
        state: [oracle.transitions(state, profile) for profile in profiles] if state[0] < 2 else [] for state in states
    }
    after = {state: {successor for row in rows for successor in row} for state, rows in expected.items()}
    assert states == smallest_first(oracle.initial_state(), after)
    assert number_of == {state: i for i, state in enumerate(states)}
    for i, state in enumerate(states):
        assert sorted(successors[i]) == sorted(number_of[successor] for successor in after[state])
        assert len(transitions[i]) == len(expected[state])
        for (profile, probabilities, indices), wanted_profile, row in zip(
            transitions[i], profiles, expected[state], strict=False
        ):
            assert profile == tuple(wanted_profile)
            found = {states[k]: p for k, p in zip(indices, probabilities, strict=True)}
            assert found == pytest.approx({successor: float(p) for successor, p in row.items()})


def test_the_result_is_kept_until_it_is_cleared_and_the_world_is_reset() -> None:
    world = load_world("side_by_side", max_steps=2)
    world.step([1, 1])
    first = world.get_dag()
    assert len(first) == 3
    assert world.get_state() == world.initial_state()
    assert world.get_dag(return_probabilities=True)[0] is first[0]
    world.clear_dag_cache()
    assert world.get_dag()[0] is not first[0]


def test_states_that_cannot_be_compared_still_come_level_by_level() -> None:
    world = load_quietly({"map": walled("Ay Kr .."), "max_steps": 3})
    states, _, successors, _ = world.get_dag(return_probabilities=True, quiet=True)
    assert [state[0] for state in states] == sorted(state[0] for state in states)
    assert all(j > i for i, targets in enumerate(successors) for j in targets)
