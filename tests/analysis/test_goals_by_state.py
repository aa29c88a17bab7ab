"""Goals that only some states have: where a state lacks a goal, nothing is said of it, neither 0 nor a made-up policy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from empo_bi import Params, PossibleGoalGenerator, ReachCellGoal, ReachRectangleGoal, Solution, analysis, load_world, solve

LEVEL = 3


class WhileFacingAcross(PossibleGoalGenerator):
    """One goal is there in all states, the other only while the human faces east or west."""

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Any, float]]:
        yield ReachRectangleGoal(self.env, human_agent_index, (0, 0, 9, 9)), 1.0
        if state[1][human_agent_index][2] % 2 == 0:
            yield ReachCellGoal(self.env, human_agent_index, (3, 1)), 1.0


@pytest.fixture(scope="module")
def solution() -> Solution:
    world = load_world("basics/first_steps", max_steps=5)
    generator = WhileFacingAcross(world)
    return solve(world, Params(gamma_h=0.9), possible_goal_generator=generator, precision="float64", progress=False)


def having(solution: Solution) -> list[tuple[int, Any, tuple[Any, ...]]]:
    """Places, states and what is said of the second goal, where the human has it."""
    human = solution.humans[0]
    found = []
    for place, state in enumerate(solution.dag.states(LEVEL)):
        rows = [row for row in solution.at(state).goals[human] if row[0].target_rect == (3, 1, 3, 1)]
        found += [(place, state, row) for row in rows]
    assert 0 < len(found) < solution.dag.level_sizes[LEVEL]
    return found


def test_maps_are_means_over_states_that_have_the_goal(solution: Solution) -> None:
    human = solution.humans[0]
    for alone, column in ((False, 3), (True, 2)):
        found = analysis.value_map(solution, human, "3,1", LEVEL, others="mean", alone=alone)
        by_cell: dict[Any, list[float]] = {}
        for _, state, row in having(solution):
            by_cell.setdefault(state[1][human][:2], []).append(row[column])
        cells = {(x, y): value for (y, x), value in np.ndenumerate(found.value_YX) if not math.isnan(value)}
        assert cells == pytest.approx({cell: np.mean(values) for cell, values in by_cell.items()})
        assert found.weight_YX.sum() == sum(map(len, by_cell.values()))
    arrows = analysis.arrow_map(solution, human, LEVEL, goal="3,1", others="mean")
    assert arrows.weight_YX.sum() == len(having(solution))


def test_entropies_and_divergences_are_means_over_states_that_have_the_goal(solution: Solution) -> None:
    human = solution.humans[0]
    entropies = [-sum(p * math.log(p) for p in row[4] if p > 0) for _, _, row in having(solution)]
    assert analysis.human_entropy(solution, human, goal="3,1", over="mean")[LEVEL] == pytest.approx(np.mean(entropies))
    assert analysis.human_divergence(solution, solution, human, goal="3,1")[LEVEL] == 0


def test_tables_and_datasets_have_nan_where_the_goal_is_lacking(solution: Solution) -> None:
    places = {place: row for place, _, row in having(solution)}
    human = solution.humans[0]
    for name, column in (("Vh_e", 3), ("Vh_m", 2)):
        table = solution.to_pandas(name, levels=LEVEL, humans=human, goals="3,1")
        array = solution.to_xarray()[name].sel(level=LEVEL, human=human).isel(goal=1)
        for place, value in zip(table["place"], table["value"], strict=True):
            assert value == places[place][column] if place in places else math.isnan(value)
        np.testing.assert_array_equal(array, table["value"])
    policy = solution.to_xarray().pi_h.sel(level=LEVEL, human=human).isel(goal=1)
    for place, pi_A in enumerate(policy.values):
        assert pi_A.tolist() == places[place][4].tolist() if place in places else np.isnan(pi_A).all()
    last = solution.to_pandas("Vh_e", levels=-1)
    assert (last["value"] == 0).all(), "terminal states have no goals, and all is 0"


def test_numbers_of_goals_mean_those_of_the_first_solution() -> None:
    class Reversed(WhileFacingAcross):
        def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Any, float]]:
            return reversed(list(Forward.generate(self, state, human_agent_index)))

    class Forward(WhileFacingAcross):
        def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Any, float]]:
            yield ReachCellGoal(self.env, 0, (3, 1)), 1.0
            yield ReachRectangleGoal(self.env, 0, (0, 0, 9, 9)), 1.0

    world = load_world("basics/first_steps", max_steps=3)
    generators = Forward(world), Reversed(world)
    first, second = (solve(world, possible_goal_generator=one, precision="float64", progress=False) for one in generators)
    assert analysis.human_divergence(first, second, 0, goal=0) == pytest.approx(0, abs=1e-12)
