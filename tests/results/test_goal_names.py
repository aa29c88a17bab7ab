"""Goals are found by whatever somebody calls them."""

from __future__ import annotations

from typing import Any

import pytest
from planning_worlds import At, TwoSteps

from empo_bi import ReachCellGoal, Solution, analysis, load_world, solve
from empo_bi.results.goal_names import goal_number, label_of

TEXT = """
map: |
  We We We We We
  We Ay .. Ae We
  We .. .. .. We
  We We We We We
max_steps: 3
possible_goals: ["2,1", "1,2, 3,2", "1,1, 3,2"]
"""


@pytest.fixture(scope="module")
def solution() -> Solution:
    return solve(load_world(TEXT), progress=False)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (0, 0), ("2,1", 0), ("2, 1", 0), ("(2, 1)", 0), ("2,1,2,1", 0), ("ReachCellGoal(agent 0, 2,1)", 0),
        (1, 1), ("1,2 to 3,2", 1), ("1,2,3,2", 1), ("ReachRectangleGoal(agent 0, 1,2,3,2)", 1), (2, 2),
    ],
)  # fmt: skip
def test_a_goal_is_found_by_number_name_and_cells(solution: Solution, asked: Any, expected: int) -> None:
    assert goal_number(solution.goal_columns, 0, asked) == expected
    goal = solution.goals[0][expected]
    assert goal_number(solution.goal_columns, 0, goal) == expected
    by_asked, by_goal = (analysis.value_map(solution, 0, one, 2).value_YX for one in (asked, goal))
    assert by_asked.tolist() == by_goal.tolist() or str(by_asked) == str(by_goal)
    assert solution.rollouts(3, goals={0: asked}).goals == {0: goal}
    assert set(solution.to_pandas("Vh_e", goals=asked)["goal"]) == {repr(goal)}


def test_equal_goals_are_the_same_goal(solution: Solution) -> None:
    assert goal_number(solution.goal_columns, 0, ReachCellGoal(solution.world, 0, (2, 1))) == 0
    assert [label_of(goal) for goal in solution.goals[0]] == ["2,1", "1,2 to 3,2", "1,1 to 3,2"]


@pytest.mark.parametrize("asked", [3, -1, True, None, 1.5, "7,7", "", object(), At(0)])
def test_what_is_no_goal_is_told_which_there_are(solution: Solution, asked: Any) -> None:
    with pytest.raises(
        ValueError, match="human 0 has no such goal; its goals, numbered from 0, are 2,1; 1,2 to 3,2; 1,1 to"
    ):
        goal_number(solution.goal_columns, 0, asked)


def test_agents_that_are_no_humans_have_no_goals(solution: Solution) -> None:
    with pytest.raises(ValueError, match=r"agent 1 is not among the humans \[0\]"):
        goal_number(solution.goal_columns, 1, 0)


def test_goals_of_python_worlds_are_found_by_how_they_print() -> None:
    solution = solve(TwoSteps(), progress=False)
    assert goal_number(solution.goal_columns, 0, "At(place=1)") == goal_number(solution.goal_columns, 0, At(1)) == 1
    with pytest.raises(ValueError, match=r"Did you mean 'At\(place=1\)'"):
        goal_number(solution.goal_columns, 0, "At(place=11)")
