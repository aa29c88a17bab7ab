"""Maps and arrows over the grid, held to plain loops over state tuples."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from planning_worlds import TwoSteps
from state_reports import report_of

from empo_bi import Params, Solution, analysis, load_world, solve

PARAMS = Params(gamma_h=0.98, gamma_r=0.95, zeta=2, beta_r=20)
WORLDS = [("asymmetric_freeing", 6), ("locked_in", 4), ("after_you", 4)]


@pytest.fixture(scope="module", params=WORLDS, ids=lambda world: world[0])
def solution(request: pytest.FixtureRequest) -> Solution:
    name, steps = request.param
    return solve(load_world(name, max_steps=steps), PARAMS, precision="float64", progress=False)


def cell_of(state: Any, agent: int) -> tuple[int, int]:
    return state[1][agent][:2]


def without(state: Any, agent: int) -> Any:
    """A state but for its step, and for the cell and direction of an agent."""
    _, agents, *rest = state
    return [row[3:] if i == agent else row for i, row in enumerate(agents)], rest


def means_by_hand(solution: Solution, level: int, agent: int, others: Any, value_of: Any) -> dict[Any, tuple[float, float]]:
    """Mean and weight by cell, one state after the other."""
    total, weight = defaultdict(float), defaultdict(float)
    for place, state in enumerate(solution.dag.states(level)):
        if others == "reached":
            w = float(solution.reached[level][place])
        elif others == "mean":
            w = 1.0
        else:
            w = float(without(state, agent) == without(others, agent))
        if w > 0:
            total[cell_of(state, agent)] += w * value_of(state)
            weight[cell_of(state, agent)] += w
    return {cell: (total[cell] / weight[cell], weight[cell]) for cell in total}


def check(found: analysis.CellMap, expected: dict[Any, tuple[float, float]]) -> None:
    assert expected
    for (y, x), value in np.ndenumerate(found.value_YX):
        if (x, y) in expected:
            mean, weight = expected[x, y]
            assert value == pytest.approx(mean, rel=1e-12, abs=1e-14)
            assert found.weight_YX[y, x] == pytest.approx(weight, rel=1e-12)
        else:
            assert math.isnan(value)
            assert found.weight_YX[y, x] == 0


def ways(solution: Solution, level: int) -> list[Any]:
    states = solution.dag.states(level)
    return ["reached", "mean", states[len(states) // 2]]


def test_power_is_the_mean_over_the_states_with_the_agent_on_a_cell(solution: Solution) -> None:
    level = solution.dag.horizon - 1
    human = solution.humans[-1]
    for others in ways(solution, level):
        for agent in (human, solution.robots[0]):
            found = analysis.power_map(solution, human, level, agent=agent, others=others)
            check(found, means_by_hand(solution, level, agent, others, lambda s: report_of(solution, s).power[human]))
            assert f"power of human {human}, level {level}" in found.title


def test_values_of_goals_with_the_robot_and_alone(solution: Solution) -> None:
    level, human = solution.dag.horizon - 2, solution.humans[0]
    goals = solution.goals[human]
    g = len(goals) - 1
    for others in ways(solution, level):
        for column, alone in ((2, True), (3, False)):
            found = analysis.value_map(solution, human, goals[g], level, others=others, alone=alone)
            expected = means_by_hand(
                solution, level, human, others, lambda s: report_of(solution, s).goals[human][g][column]  # noqa: B023
            )  # fmt: skip
            check(found, expected)
    by_number, by_name = (
        analysis.value_map(solution, human, goal, level) for goal in (g, solution.goal_columns.names[0][g])
    )
    by_goal = analysis.value_map(solution, human, goals[g], level)
    np.testing.assert_array_equal(by_number.value_YX, by_goal.value_YX)
    np.testing.assert_array_equal(by_name.value_YX, by_goal.value_YX)


def test_the_robots_value_and_where_agents_are(solution: Solution) -> None:
    level, robot = solution.dag.horizon - 1, solution.robots[0]
    found = analysis.robot_value_map(solution, level)
    check(found, means_by_hand(solution, level, robot, "reached", lambda s: report_of(solution, s).V_r))
    for agent in (robot, solution.humans[0]):
        presence = analysis.presence_map(solution, agent, level)
        assert np.nansum(presence.value_YX) == pytest.approx(1, abs=1e-12)
        expected = means_by_hand(solution, level, agent, "reached", lambda s: 1.0)
        cells = {(x, y): value for (y, x), value in np.ndenumerate(presence.value_YX) if not math.isnan(value)}
        assert cells == pytest.approx({cell: weight for cell, (_, weight) in expected.items()}, rel=1e-12)


def test_all_else_as_in_a_state_may_be_taken_from_another_level(solution: Solution) -> None:
    """The step of the state does not matter: what is fixed are agents and things."""
    human, start = solution.humans[0], solution.dag.states(0)[0]
    found = analysis.power_map(solution, human, 2, others=start)
    check(found, means_by_hand(solution, 2, human, start, lambda s: report_of(solution, s).power[human]))


# --- arrows -----------------------------------------------------------------------------------------------------------

AFTER = {"forward": 0, "left": -1, "right": 1}
VECTORS = [(1, 0), (0, 1), (-1, 0), (0, -1)]


def heading(solution: Solution, state: Any, agent: int, policy: Any) -> np.ndarray:
    names = solution.world.action_names
    faced = state[1][agent][2]
    moves = [VECTORS[(faced + AFTER[name]) % 4] if name in AFTER else (0, 0) for name in names]
    return np.array(policy) @ np.array(moves, dtype=float)


def human_policy(solution: Solution, state: Any, human: int, g: int | None) -> np.ndarray:
    rows = report_of(solution, state).goals[human]
    if g is not None:
        return rows[g][4]
    weights = np.array([row[1] for row in rows])
    return weights @ np.array([row[4] for row in rows]) / weights.sum()


def robot_policy(solution: Solution, state: Any, robot: int) -> np.ndarray:
    found = np.zeros(len(solution.world.action_names))
    for profile, probability in report_of(solution, state).robot_policy.items():
        found[profile[solution.robots.index(robot)]] += probability
    return found


def test_arrows_are_mean_headings_of_humans_and_robots(solution: Solution) -> None:
    level, human, robot = solution.dag.horizon - 2, solution.humans[0], solution.robots[0]
    cases = [
        (human, 0, lambda s: human_policy(solution, s, human, 0)),
        (human, None, lambda s: human_policy(solution, s, human, None)),
        (robot, None, lambda s: robot_policy(solution, s, robot)),
    ]
    for others in ways(solution, level):
        for agent, goal, policy_of in cases:
            found = analysis.arrow_map(solution, agent, level, goal=goal, others=others)
            for axis in (0, 1):
                expected = means_by_hand(
                    solution, level, agent, others, lambda s: heading(solution, s, agent, policy_of(s))[axis]  # noqa: B023
                )  # fmt: skip
                got = {(x, y): v for (y, x), v in np.ndenumerate(found.heading_YX2[:, :, axis]) if not math.isnan(v)}
                assert got == pytest.approx({cell: mean for cell, (mean, _) in expected.items()}, abs=1e-6)
            actions = found.action_YXA[~np.isnan(found.action_YXA).any(axis=2)]
            assert actions.sum(axis=1) == pytest.approx(1, abs=1e-6)
            for a in range(actions.shape[1]):
                expected = means_by_hand(solution, level, agent, others, lambda s: policy_of(s)[a])  # noqa: B023
                for (x, y), (mean, _) in expected.items():
                    assert found.action_YXA[y, x, a] == pytest.approx(mean, abs=1e-6)


def test_turning_left_from_east_heads_north() -> None:
    heading_DA2 = load_world("asymmetric_freeing", actions="object").headings
    assert heading_DA2[0, :5].tolist() == [[0, 0], [0, -1], [0, 1], [1, 0], [0, 0]]


def test_nothing_is_done_on_the_last_level(solution: Solution) -> None:
    assert np.isnan(analysis.arrow_map(solution, solution.robots[0], -1).heading_YX2).all()


# --- complaints -------------------------------------------------------------------------------------------------------


def test_wrong_questions_are_told_what_there_is(solution: Solution) -> None:
    human, n_agents = solution.humans[0], len(solution.world.agents)
    with pytest.raises(ValueError, match=r"agent 77 is not among the humans \["):
        analysis.power_map(solution, 77, 1)
    with pytest.raises(IndexError, match="level 99; this solution has levels 0 to"):
        analysis.power_map(solution, human, 99)
    with pytest.raises(ValueError, match=f"agent {n_agents}; this world has agents 0 to {n_agents - 1}"):
        analysis.power_map(solution, human, 1, agent=n_agents)
    with pytest.raises(ValueError, match=r"goal 500: human . has no such goal; its goals, numbered from 0, are "):
        analysis.value_map(solution, human, 500, 1)
    with pytest.raises(ValueError, match=r"goal 'ReachCelGoal'.* has no such goal"):
        analysis.value_map(solution, human, "ReachCelGoal", 1)
    with pytest.raises(ValueError, match="has no such goal"):
        analysis.value_map(solution, human, object(), 1)
    with pytest.raises(ValueError, match=r"over='often'; give 'reached' .* or 'mean'"):
        analysis.power_map(solution, human, 1, others="often")
    with pytest.raises(ValueError, match=r"value_S has shape \(3,\); level 0 has 1 states"):
        analysis.cell_map(solution, [1, 2, 3], 0, 0)


def test_worlds_without_cells_have_no_maps() -> None:
    solution = solve(TwoSteps(), progress=False)
    with pytest.raises(TypeError, match=r"has no cells; maps need a gridworld.*to_pandas"):
        analysis.power_map(solution, solution.humans[0], 0)
