"""Conditions of goals: whole blocks against state tuples and the oracle, equality by meaning, and what cannot be asked."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from engine import load_quietly
from goal_lists import goal_lists
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.goals import EntryGoals
from random_worlds import random_worlds
from worked_examples import walled

from empo_bi import GridWorld, enumerate_dag, events, load_world, probability_by_time, solve
from empo_bi.goals import AllOf, AnyOf, AtStep, Carries, ConditionGoal, DoorOpen, Facing, InCells, TabularGoalGenerator

FLAT = {"map": walled("Ay Kg Lg .. / .. .. We Ae"), "max_steps": 4}


@pytest.fixture
def world() -> GridWorld:
    return load_quietly(FLAT)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_blocks_and_tuples_attain_what_the_oracle_says_in_reachable_states(data: st.DataObject) -> None:
    mapping = data.draw(
        random_worlds(max_agents=2, max_steps=2).filter(lambda found: "Ay" in itertools.chain(*found["map"]))
    )
    entries = data.draw(goal_lists(mapping))
    world = load_quietly({**mapping, "possible_goals": entries})
    dag = enumerate_dag(world, progress=False)
    humans, oracle = world.human_agent_indices, EntryGoals(dict.fromkeys(range(len(world.agents)), entries))
    goals = [goal for human in humans for goal in world.possible_goal_generator.goals_of(human)]
    for t in range(dag.horizon + 1):
        some = slice(None, None, 1 + dag.level_sizes[t] // 200)  # all, on small levels
        states = dag.states(t)[some]
        expected = [[goal.is_achieved(s) for human in humans for goal, _ in oracle.generate(s, human)] for s in states]
        assert [[bool(goal.is_achieved(state)) for goal in goals] for state in states] == expected
        assert world.attainment(t, dag.keys(t), goals)[some].tolist() == expected
        assert dag.level(t).attained_SHG[some].reshape(len(states), -1).tolist() == expected


def test_bits_belong_to_bodies_unless_a_goal_asks_for_the_step(world: GridWorld) -> None:
    still = [ConditionGoal(world, 0, condition) for condition in (Facing("north"), Carries("key"), DoorOpen((3, 1)))]
    for goals, by_body in ((still, True), ([*still, ConditionGoal(world, 0, AtStep(2) & Facing("north"))], False)):
        world.possible_goal_generator = TabularGoalGenerator(goals)
        dag = enumerate_dag(world, progress=False)
        assert dag.levels.part(1, ()).attained_by_body == by_body
        for t in range(dag.horizon + 1):
            expected = [[[bool(goal.is_achieved(state)) for goal in goals]] for state in dag.states(t)]
            assert dag.level(t).attained_SHG.tolist() == expected


def test_compiled_goals_do_not_decode_states(world: GridWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    goals = [ConditionGoal(world, 0, AnyOf([AtStep(0), InCells([(1, 1)])]) & Facing("east") & DoorOpen((3, 1)))]
    monkeypatch.setattr(world, "decode", lambda *_: pytest.fail("states were decoded"))
    assert world.attainment(0, world.initial_key, goals).tolist() == [[False]]


def test_conditions_are_equal_by_what_they_mean(world: GridWorld) -> None:
    assert InCells([(2, 1), (1, 1, 1, 1), (2, 1)]) == InCells([[1, 1], [2, 1]])
    assert InCells([(3, 2, 1, 1)]) == InCells([(1, 1, 3, 2)])
    assert Facing("n") == Facing("north")
    one, other = InCells([(1, 1)]), Facing("north")
    assert one & other == other & one == AllOf([one, other, one])
    assert hash(one & other) == hash(other & one)
    assert one & other != one | other
    assert (one & other) & Carries("key") == AllOf([Carries("key"), one, other])
    assert ConditionGoal(world, 0, one, "here", 3) == ConditionGoal(None, 0, one)
    assert hash(ConditionGoal(world, 0, one, "here")) == hash(ConditionGoal(None, 0, one))
    assert ConditionGoal(world, 0, one) != ConditionGoal(world, 1, one)


def test_words_and_places() -> None:
    both = InCells([(1, 1), (2, 1, 3, 4)])
    assert (both & Facing("s") & AtStep(3)).words == "(1,1 or 2,1 to 3,4) and facing south and at step 3"
    assert (Carries("key", "green") | DoorOpen((3, 1))).words == "carries a green key or door 3,1 open"
    assert InCells([(x, 1) for x in range(9)]).words == "0,1 or 1,1 or 2,1 or 6 more"
    assert (both & InCells([(3, 3, 5, 5)]) & Facing("s")).cells == ((3, 3, 3, 4),)
    assert (InCells([(1, 1)]) & InCells([(2, 1)])).cells == ()
    assert (InCells([(1, 1)]) | InCells([(2, 1)])).cells == ((1, 1, 1, 1), (2, 1, 2, 1))
    assert (InCells([(1, 1)]) | Carries("key")).cells is None


def test_a_goal_is_frozen_and_pickled_without_its_world(world: GridWorld) -> None:
    goal = ConditionGoal(world, 0, InCells([(1, 1)]) & Carries("key"), "shopping", 2)
    with pytest.raises(AttributeError, match="frozen"):
        goal.name = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        goal.condition.parts = ()  # type: ignore[attr-defined]
    twin = pickle.loads(pickle.dumps(goal))
    assert (twin, twin.name, twin.index, twin.env) == (goal, "shopping", 2, None)
    assert repr(twin) == "ConditionGoal(agent 0, shopping: 1,1 and carries a key)"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: InCells([]), "0 places; give 1 to 256"),
        (lambda: InCells([(1, 2, 3)]), r"\(1, 2, 3\); give a cell"),
        (lambda: Facing("up"), "'up'; give a direction: east, south, west, north"),
        (lambda: Carries("keys"), r"'keys'; give a kind .*: key, ball, box\. Did you mean 'key'"),
        (lambda: Carries("key", "gren"), r"colour 'gren'; give one of .* Did you mean 'green'"),
        (lambda: AtStep(-1), "step -1; steps are counted from 0"),
        (lambda: AllOf([]), "0 conditions and places"),
        (lambda: AllOf(["3,2"]), "'3,2' is not a condition"),
        (lambda: AnyOf([InCells([(x, y) for x in range(16)]) for y in range(17)]), "272 conditions"),
        (lambda: nested(7), "nested 7 deep; nest them at most 6 deep"),
        (lambda: ConditionGoal(None, 0, "3,2"), "condition='3,2'; give one"),
        (lambda: ConditionGoal(None, -1, AtStep(1)), "agents are numbered from 0"),
        (lambda: ConditionGoal(None, 0, AtStep(1), ""), "name is ''; give a text"),
        (lambda: ConditionGoal(None, 0, AtStep(1), "x" * 61), "has 61 characters; give at most 60"),
        (lambda: ConditionGoal(None, 0, AtStep(1), "a\x1b[31m"), "control characters"),
        (lambda: ConditionGoal(None, 0, AtStep(1), "3, 2"), "could be taken for a number, for cells"),
        (lambda: ConditionGoal(None, 0, AtStep(1), "1,1 to 3,2"), "could be taken for"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def nested(depth: int) -> Any:
    if depth == 0:
        return AtStep(1)
    kind = AllOf if depth % 2 else AnyOf
    return kind([nested(depth - 1), Facing("north")])


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        (InCells([(1, 1), (6, 1)]), r"6,1 is not on the grid, whose cells are 0,0 to 5,3"),
        (Carries("ball"), "there is no ball in this world; what can be carried: green key"),
        (Carries("key", "red") | AtStep(1), "there is no red key in this world"),
        (DoorOpen((1, 1)), "there is no door on 1,1; doors are on 3,1"),
    ],
)
def test_what_a_world_does_not_have_is_refused(world: GridWorld, condition: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConditionGoal(world, 0, condition)


@pytest.mark.parametrize("condition", [Facing("east"), Carries("key"), DoorOpen((1, 0))])
def test_bush_worlds_have_neither_directions_nor_things(condition: Any) -> None:
    bushes = load_world("map: [Ro . ., . . Hu]\nB: 4\nmax_steps: 3")
    with pytest.raises(ValueError, match=r"nowhere|nobody carries|no doors"):
        ConditionGoal(bushes, 1, condition)
    with pytest.raises(TypeError, match=r"have neither things nor doors|look nowhere"):
        bushes.attainment(0, bushes.initial_key, [ConditionGoal(None, 1, condition)])


def test_a_goal_as_an_event_is_as_likely_as_a_function_of_states() -> None:
    world = load_quietly(FLAT, goals="all")
    solution = solve(world, progress=False)
    for condition in (Carries("key"), AtStep(2) & Facing("north"), InCells([(2, 2), (1, 1)])):
        goal = ConditionGoal(world, 0, condition)
        by_goal, by_function = probability_by_time(solution, [goal, lambda state, goal=goal: goal.is_achieved(state)])
        assert np.array_equal(by_goal, by_function)
        assert by_goal[-1] > 0
    assert np.array_equal(
        probability_by_time(solution, ConditionGoal(world, 0, Carries("key", "green"))),
        probability_by_time(solution, events.carries(0, "key")),
    )
