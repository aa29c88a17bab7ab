"""Goals of other packages count as reach goals only where they mean just that: also late, also where a walk never comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from empo_bi import Params, enumerate_dag, load_world, solve
from empo_bi.dag.attainment import fixed_goals
from empo_bi.dag.users_goals import UsersGoals
from empo_bi.goals import TabularGoalGenerator
from empo_bi.world.as_model import as_model
from empo_bi.world.gridworld import GridWorld

MAP = "We We We We We We\nWe Ay .. .. .. We\nWe .. .. Ae .. We\nWe We We We We We"
CELLS = [(x, y) for y in (1, 2) for x in range(1, 5)]
HUMAN, ROBOT = 0, 1


def room(max_steps: int = 60) -> GridWorld:
    return load_world({"map": MAP, "max_steps": max_steps, "action_class": "SmallActions"}, goals="all")


class Reach:
    """Another package's goal: the human is at a cell."""

    def __init__(self, cell: tuple[int, int], number: int = 0) -> None:
        self.human_agent_index, self.target_pos, self.number = HUMAN, cell, number

    def is_achieved(self, state: Any) -> int:
        return int(tuple(state[1][self.human_agent_index][:2]) == self.target_pos)

    def __hash__(self) -> int:
        return hash(self.target_pos)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.target_pos == other.target_pos  # type: ignore[attr-defined]


class Before(Reach):
    def is_achieved(self, state: Any) -> int:
        return int(super().is_achieved(state) and state[0] <= self.number)


class NotJustAt(Reach):
    def is_achieved(self, state: Any) -> int:
        return int(super().is_achieved(state) and state[0] != self.number)


class WhileTheRobotIsElsewhere(Reach):
    """The human is there, but not with the robot in the corner at step ``number``."""

    def is_achieved(self, state: Any) -> int:
        is_in_the_corner = tuple(state[1][ROBOT][:2]) == (1, 1)
        return int(super().is_achieved(state) and not (is_in_the_corner and state[0] == self.number))


class Hidden:
    """The same goal without attributes by which it could be taken for another one."""

    def __init__(self, goal: Reach) -> None:
        self.goal = goal

    def is_achieved(self, state: Any) -> int:
        return self.goal.is_achieved(state)


def values(world: GridWorld, goals: list[Any]) -> list[Any]:
    solution = solve(
        world, Params(beta_h=5, gamma_h=0.9), phase_2=False, possible_goal_generator=TabularGoalGenerator(goals),
        human_agent_indices=[HUMAN], robot_agent_indices=[ROBOT], progress=False, precision="float64",
    )  # fmt: skip
    return list(solution.values.Vh_m)


@pytest.mark.parametrize("goal", [Before((4, 1), n) for n in (0, 20, 45, 59)] + [NotJustAt((4, 1), n) for n in (17, 41, 60)])
def test_a_goal_that_looks_at_the_step_is_no_reach_goal(goal: Reach) -> None:
    assert UsersGoals(as_model(room())).reach_goal_like(goal) is None


def test_a_plain_reach_goal_is_one_whatever_it_is_called() -> None:
    world = room()
    dag = enumerate_dag(world, progress=False)
    found = UsersGoals(dag.model, dag).reach_goal_like(Reach((4, 1)))
    assert found is not None
    assert found.target_rect == (4, 1, 4, 1)


def test_values_of_goals_with_a_late_deadline_are_those_of_goals_that_are_asked() -> None:
    goals = [Before(cell, 45) for cell in CELLS]
    found, expected = values(room(), goals), values(room(), [Hidden(goal) for goal in goals])
    assert all(np.array_equal(here, there) for here, there in zip(found, expected, strict=True))
    assert found[40].any()
    assert not found[50].any()


def test_goals_that_depend_on_what_a_walk_does_not_meet_are_held_to_the_states_of_the_dag() -> None:
    world = room(8)
    goals = [WhileTheRobotIsElsewhere(cell, 7) for cell in CELLS]
    alone = UsersGoals(as_model(world))
    seen = [state for state in alone._probes if state[1][ROBOT][:2] == (1, 1) and state[0] == 7]
    assert not seen  # or this shows nothing about the states of the DAG
    assert alone.reach_goal_like(goals[0]) is not None
    found, expected = values(world, goals), values(room(8), [Hidden(goal) for goal in goals])
    assert all(np.array_equal(here, there) for here, there in zip(found, expected, strict=True))
    assert values(world, goals)[7].sum() == expected[7].sum()  # which the world remembers


class Listed:
    """Another package's generator with a list, from which a state may take something away."""

    def __init__(self, goals: list[Any], last: int) -> None:
        self.goals, self.weights, self.last = goals, [1.0] * len(goals), last

    def generate(self, state: Any, human: int) -> Any:
        if state[0] > self.last and state[1][HUMAN][:2] == (1, 1):
            raise LookupError("not a state where goals matter")
        return zip(self.goals if state[0] <= self.last else self.goals[:1], self.weights, strict=False)


def test_a_generator_that_yields_something_else_late_is_not_fixed() -> None:
    goals = [Reach(cell) for cell in CELLS]
    for last in (0, 45, 59):
        assert fixed_goals(Listed(goals, last), [HUMAN], as_model(room())) is None
    found = fixed_goals(Listed(goals, 60), [HUMAN], as_model(room()))
    assert found is not None
    assert found.goals == [goals]


def test_a_goal_that_fails_where_no_state_is_does_not_stop_anybody() -> None:
    class OnTheFloor(Reach):
        def is_achieved(self, state: Any) -> int:
            assert state[1][HUMAN][:2] in CELLS
            return super().is_achieved(state)

    goals = [OnTheFloor(cell) for cell in CELLS]
    found, expected = values(room(8), goals), values(room(8), [Reach(cell) for cell in CELLS])
    assert all(np.array_equal(here, there) for here, there in zip(found, expected, strict=True))


def test_a_goal_whose_numbers_change_although_it_stays_equal_is_asked_again() -> None:
    world, goals = room(8), [Before(cell, 8) for cell in CELLS]
    generator = TabularGoalGenerator(goals)
    first = fixed_goals(generator, [HUMAN], as_model(world))
    for goal in goals:
        goal.number = 3
    again = fixed_goals(generator, [HUMAN], as_model(world))
    assert first is not None
    assert again is not None
    assert first.compiled != first.goals
    assert again.compiled == again.goals


def test_bits_that_a_dag_stored_for_goals_recognised_wrongly_are_not_used() -> None:
    world = room(8)
    world.possible_goal_generator = TabularGoalGenerator([WhileTheRobotIsElsewhere(cell, 7) for cell in CELLS])
    dag = enumerate_dag(world, progress=False)
    bits = dag.attained(7)
    assert bits is not None
    expected = [[goal.is_achieved(state) for goal in world.possible_goal_generator.goals] for state in dag.states(7)]
    assert np.unpackbits(bits, axis=1, count=8, bitorder="little").tolist() == expected
