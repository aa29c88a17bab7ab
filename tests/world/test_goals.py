"""Goals: equality, weights, samplers, and whole blocks of states at once."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from engine import load_quietly
from hypothesis import given, settings
from hypothesis import strategies as st
from random_worlds import random_worlds
from worked_examples import walled

from empo_bi import (
    DeterministicGoalGenerator,
    DeterministicGoalSampler,
    GridWorld,
    PossibleGoal,
    ReachCellGoal,
    ReachRectangleGoal,
    TabularGoalGenerator,
    TabularGoalSampler,
    approx_integral_over_possible_goals,
)
from empo_bi.goals import ConditionGoal, Facing

WORLD = {"map": walled("Ay .. Ae"), "max_steps": 5, "possible_goals": ["1,1", "2,1", {"goal": "1,1,3,1", "weight": 2}]}


class FacesWest(PossibleGoal):
    """A goal of a user's own making, about something that reach goals know nothing of."""

    def __init__(self, agent: int) -> None:
        super().__init__()
        self.agent = agent

    def is_achieved(self, state: Any) -> int:
        return int(state[1][self.agent][2] == 2)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FacesWest) and other.agent == self.agent

    def __hash__(self) -> int:
        return hash(self.agent)


@pytest.fixture
def world() -> GridWorld:
    return load_quietly(WORLD)


def test_equality_looks_at_class_human_and_target_and_not_at_the_index(world: GridWorld) -> None:
    cell = ReachCellGoal(world, 0, (2, 1), index=0)
    assert cell == ReachCellGoal(None, 0, [2, 1], index=5)
    assert hash(cell) == hash(ReachCellGoal(None, 0, [2, 1]))
    assert cell != ReachCellGoal(world, 1, (2, 1))
    assert cell != ReachCellGoal(world, 0, (1, 1))
    assert cell != ReachRectangleGoal(world, 0, (2, 1, 2, 1))
    assert ReachRectangleGoal(world, 0, (3, 2, 1, 0)) == ReachRectangleGoal(world, 0, (1, 0, 3, 2))
    assert (cell.target_pos, cell.target_rect) == ((2, 1), (2, 1, 2, 1))


def test_a_goal_is_frozen_and_leaves_its_world_behind_when_pickled(world: GridWorld) -> None:
    goal = ReachCellGoal(world, 0, (2, 1))
    with pytest.raises(AttributeError, match="frozen"):
        goal.target_pos = (1, 1)
    twin = pickle.loads(pickle.dumps(goal))
    assert twin == goal
    assert twin.env is None
    assert goal.env is world


def test_a_rectangle_is_reached_at_its_edges_and_a_dead_human_keeps_what_it_reached() -> None:
    world = load_quietly({"map": walled("Ay La .."), "max_steps": 5})
    goal = ReachRectangleGoal(world, 0, (3, 1, 2, 1))
    state = world.initial_state()
    assert goal.is_achieved(state) == 0
    for _ in range(3):
        ((_, state),) = world.transition_probabilities(state, [3])
        assert state[1][0][3]
        assert goal.is_achieved(state) == 1


def test_the_file_gives_each_human_the_same_goals_with_normalised_weights(world: GridWorld) -> None:
    generator = world.possible_goal_generator
    pairs = list(generator.generate(world.initial_state(), 0))
    assert [goal for goal, _ in pairs] == [
        ReachCellGoal(world, 0, (1, 1)),
        ReachCellGoal(world, 0, (2, 1)),
        ReachRectangleGoal(world, 0, (1, 1, 3, 1)),
    ]
    assert [weight for _, weight in pairs] == [0.25, 0.25, 0.5]
    assert (generator.n_goals, generator.indexed) == (3, True)
    assert generator.goal_coords == [(1, 1), (2, 1), (1, 1, 3, 1)]
    assert pickle.loads(pickle.dumps(generator)).world_model is None


def test_the_files_sampler_draws_in_proportion_to_the_weights(world: GridWorld) -> None:
    sampler = world.possible_goal_sampler
    sampler.rng = np.random.default_rng(7)
    draws = [sampler.sample(world.initial_state(), 0) for _ in range(4000)]
    share = sum(goal.index == 2 for goal, _ in draws) / len(draws)
    assert share == pytest.approx(0.5, abs=0.05)
    assert {weight for _, weight in draws} == {1.0}
    assert sampler.get_smallest_pw() == 0.25


def test_generator_and_sampler_agree_on_probability_times_weight(world: GridWorld) -> None:
    goals = [ReachCellGoal(world, 0, (x, 1)) for x in (1, 2, 3)]
    sampler = TabularGoalSampler(goals, probabilities=[1, 1, 2], weights=[1.0, 2.0, 3.0])
    assert [weight for _, weight in sampler.get_generator().generate(None, 0)] == [0.25, 0.5, 1.5]
    assert sampler.get_smallest_pw() == 0.25
    generator = TabularGoalGenerator(goals)
    assert [weight for _, weight in generator.generate(None, 0)] == [1 / 3] * 3
    assert generator.get_sampler().probabilities == pytest.approx([1 / 3] * 3)
    assert generator.get_sampler().weights == [1.0] * 3
    assert list(DeterministicGoalGenerator(goals[0], 2.0).generate(None, 0)) == [(goals[0], 2.0)]
    assert DeterministicGoalSampler(goals[0], 2.0).sample(None, 0) == (goals[0], 2.0)


def test_coverage_is_checked_against_the_world_of_the_goals(world: GridWorld) -> None:
    some = TabularGoalGenerator([ReachCellGoal(world, 0, (1, 1))])
    assert not some.validate_coverage(raise_on_error=False)
    with pytest.raises(ValueError, match=r"\(2, 1\)"):
        some.validate_coverage()
    assert TabularGoalGenerator([ReachRectangleGoal(world, 0, (1, 1, 3, 1))]).validate_coverage()


@pytest.mark.parametrize("build", [TabularGoalGenerator, TabularGoalSampler])
def test_empty_lists_and_wrong_lengths_are_errors(build: Any, world: GridWorld) -> None:
    with pytest.raises(ValueError, match="at least one goal"):
        build([])
    with pytest.raises(ValueError, match=r"2 .* for 1 goals"):
        build([ReachCellGoal(world, 0, (1, 1))], [0.5, 0.5])
    for wrong in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="give finite numbers, 0 or more"):
            build([ReachCellGoal(world, 0, (1, 1))], [wrong])


def test_an_integral_over_goals_is_the_average_of_weighted_values(world: GridWorld) -> None:
    goals = [ReachCellGoal(world, 0, (x, 1)) for x in (1, 3)]
    sampler = TabularGoalSampler(goals, weights=[2.0, 2.0], seed=1)
    mean = approx_integral_over_possible_goals(None, 0, sampler, lambda goal: goal.target_pos[0], 4000)
    assert mean == pytest.approx(4.0, abs=0.2)


@settings(max_examples=60, deadline=None)
@given(random_worlds(), st.integers(0, 2**32))
def test_blocks_of_packed_states_attain_what_their_tuples_attain(mapping: dict[str, Any], seed: int) -> None:
    world = load_quietly(mapping)
    rng = np.random.default_rng(seed)
    key_SW, n = world.initial_key, len(world.agents)
    for _ in range(4):
        key_SW = np.unique(world.expand(key_SW[:40], rng.integers(world.action_space.n, size=(4, n))).key_KW, axis=0)
    goals: list[PossibleGoal] = [FacesWest(agent) for agent in range(n)]
    goals += [ReachCellGoal(None, agent, rng.integers(-1, 6, size=2)) for agent in range(n)]
    goals += [ReachRectangleGoal(None, agent, rng.integers(-1, 6, size=4)) for agent in range(n)]
    states = world.decode(4, key_SW)
    expected = np.array([[goal.is_achieved(state) for goal in goals] for state in states], dtype=bool)
    assert np.array_equal(world.attainment(4, key_SW, goals), expected.reshape(len(states), len(goals)))


def test_a_goal_of_an_agent_that_is_not_there_is_an_error(world: GridWorld) -> None:
    with pytest.raises(ValueError, match="agents are numbered from 0"):
        ReachCellGoal(world, -1, (1, 1))
    with pytest.raises(ValueError, match="human_agent_index=2; this world has agents 0 to 1"):
        ReachCellGoal(world, 2, (1, 1))
    with pytest.raises(ValueError, match="human_agent_index=2; this world has agents 0 to 1"):
        ConditionGoal(world, 2, Facing("north"))
    with pytest.raises(ValueError, match="this world has agents 0 to 1"):
        world.attainment(0, world.initial_key, [ReachCellGoal(None, 2, (1, 1))])


def test_a_goal_off_the_grid_of_its_world_is_an_error(world: GridWorld) -> None:
    with pytest.raises(ValueError, match="40,1 is off the grid, whose cells are 0,0 to 4,2"):
        ReachCellGoal(world, 0, (40, 1))
    with pytest.raises(ValueError, match="-3,0 to -1,9 is off the grid"):
        ReachRectangleGoal(world, 0, (-1, 0, -3, 9))
    assert ReachRectangleGoal(world, 0, (3, 1, 40, 40)).target_rect == (3, 1, 40, 40)  # some of it is there
    assert ReachCellGoal(None, 0, (40, 1)).target_pos == (40, 1)  # who knows
    in_a_file = load_quietly({**world.mapping, "possible_goals": ["1,1", "40,1"]})  # where it is a warning
    assert in_a_file.possible_goal_generator.goals_of(0)[1].env is in_a_file


def test_a_subclass_with_its_own_idea_of_being_achieved_is_asked(world: GridWorld) -> None:
    class Never(ReachCellGoal):
        def is_achieved(self, state: Any) -> int:
            return 0

    attained = world.attainment(0, world.initial_key, [ReachCellGoal(world, 0, (1, 1)), Never(world, 0, (1, 1))])
    assert attained.tolist() == [[True, False]]
