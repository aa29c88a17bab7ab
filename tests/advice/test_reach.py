"""What can come about at all: the earliest steps of goals and who can move, held to the oracle's own rules."""

from __future__ import annotations

from typing import Any

import pytest
from engine import load_quietly
from hypothesis import given, settings
from oracle.gridworld import OracleWorld, parse
from planning_worlds import At, TwoSteps
from random_worlds import random_worlds
from worked_examples import walled

from empo_bi import ConditionGoal, TabularGoalGenerator, enumerate_dag
from empo_bi.advice import reach as module
from empo_bi.advice.reach import Reach, reach_of
from empo_bi.dag.attainment import fixed_goals
from empo_bi.goals import AtStep
from empo_bi.world.as_model import as_model


def reach_in(world: Any, humans: list[int]) -> Reach:
    model = as_model(world)
    return reach_of(model, fixed_goals(model.goal_generator, humans, model) if humans else None)


LAYERS = 4  # that are looked at; more take long, since the oracle is written to be understood


def layers_of(oracle: OracleWorld) -> list[set[Any]]:
    """States without their step, by the number of steps that they take at least."""
    seen, layers = {oracle.initial_state()[1:]}, [{oracle.initial_state()[1:]}]
    while layers[-1] and len(layers) < LAYERS:
        found = set()
        for rest in layers[-1]:
            for profile in oracle.profiles():
                found |= {state[1:] for state in oracle.transitions((0, *rest), profile) or {}}
        layers.append(found - seen)
        seen |= found
    return layers if layers[-1] else layers[:-1]


@settings(max_examples=12, deadline=None)
@given(random_worlds(max_agents=2))
def test_earliest_steps_and_movement_are_those_of_the_oracle(mapping: dict[str, Any]) -> None:
    width, height = len(mapping["map"][0]), len(mapping["map"])
    mapping = {**mapping, "possible_goals": [[x, y] for y in range(height) for x in range(width)]}
    oracle, world = parse(mapping), load_quietly(mapping)
    humans = list(range(oracle.n_agents))
    found, layers = reach_in(world, humans), layers_of(oracle)
    assert list(found.new_T)[:LAYERS] == [len(layer) for layer in layers]
    for h in humans:
        first = {cell: t for t, layer in reversed(list(enumerate(layers))) for state in layer for cell in [state[0][h][:2]]}
        assert found.moves is not None
        assert found.moves[h] or len(first) == 1
        for g, goal in enumerate(oracle.goals):
            early = found.first_HG[h, g]
            assert (early if early < LAYERS else -1) == first.get((goal.x1, goal.y1), -1)


def test_a_key_opens_what_lies_behind_a_door() -> None:
    """Pick up, walk, unlock, walk: counted by hand."""
    world = load_quietly({
        "map": walled("Ay Kr Lr .."), "action_class": "ObjectActions", "max_steps": 3,
        "possible_goals": ["4,1", "2,1", "9,1"],
    })  # fmt: skip
    found = reach_in(world, [0])
    assert found.first_HG.tolist() == [[5, 2, -1]]  # pick up, forward, toggle, forward, forward
    assert found.is_complete
    assert found.moves == [True]


def test_goals_that_look_at_the_step_are_not_judged() -> None:
    world = load_quietly({"map": walled("Ay .. .."), "max_steps": 3})
    world.possible_goal_generator = TabularGoalGenerator([ConditionGoal(world, 0, AtStep(9))])
    assert reach_in(world, [0]).is_known_HG.tolist() == [[False]]


def test_a_look_that_is_cut_off_says_how_far_it_went(monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_quietly({"map": walled("Ay .. .. .. .. .. .. .."), "max_steps": 30, "possible_goals": ["8,1", "3,1"]})
    whole = reach_in(world, [0])
    assert (whole.is_complete, whole.first_HG.tolist()) == (True, [[7, 2]])
    monkeypatch.setattr(module, "WORK", 4 * 12)
    found = reach_in(world, [0])
    assert not found.is_complete
    assert list(found.new_T) == list(whole.new_T)[: len(found.new_T)]
    assert found.first_HG.tolist() == [[-1, 2]]
    assert found.covers(found.n_steps)
    assert not found.covers(found.n_steps + 1)


def test_states_within_a_horizon_are_counted_from_above() -> None:
    world = load_quietly({"map": walled("Ay .. .."), "max_steps": 5})
    found = reach_in(world, [])
    assert found.states_within(5) == enumerate_dag(world, progress=False).n_states


def test_worlds_written_in_python_are_asked_state_by_state() -> None:
    world = TwoSteps()
    world.possible_goal_generator = TabularGoalGenerator([At(0), At(1), At(7)])  # type: ignore[list-item]
    found = reach_in(world, [0])
    assert (found.is_complete, found.moves, list(found.new_T)) == (True, None, [1, 2, 2])
    assert found.first_HG.tolist() == [[0, 1, -1]]
