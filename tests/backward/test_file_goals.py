"""Both phases with goals of world files beyond cells: against the oracle, and against a generator of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from backward.against_oracle import Problem, check_documented_functions, check_solve
from engine import load_quietly
from oracle.goals import EntryGoals
from oracle.gridworld import parse
from oracle.planning import GridPlanningWorld
from worked_examples import walled

from empo_bi import Params, Solution, solve
from empo_bi.goals import PossibleGoalGenerator, ReachCellGoal
from empo_bi.results.shortest_paths import ShortestPathPrior

ANYWHERE = {"name": "anywhere", "cells": [1, 1, 4, 2]}
MAP = {"map": walled("Ay Kg Lg .. / .. .. We Ae"), "max_steps": 3, "enter_bush_success_prob": 1}
TWO = {"map": walled("Ay .. Ae .. / .. We .. Ay"), "max_steps": 3, "action_class": "SmallActions"}

PROBLEMS: dict[str, tuple[dict[str, Any], dict[int, list[Any]]]] = {
    "things": (
        MAP,
        {
            0: [
                {"name": "key", "carries": "green key", "weight": 3},
                {"facing": "south", "cells": [[1, 1], [1, 2]]},
                ANYWHERE,
            ]
        },
    ),
    "the step": (MAP, {0: [{"step": 2, "facing": "north"}, {"any": [{"step": 3}, {"carries": "key"}]}, ANYWHERE]}),
    "a door": (
        {"map": walled("Ay Or .. / .. We Ae"), "max_steps": 3, "action_class": "ObjectActions"},
        {0: [{"door": [2, 1]}, {"all": [{"door": [2, 1]}, "2,1"]}, {"name": "anywhere", "cells": [1, 1, 3, 2]}]},
    ),
    "other numbers of goals": (
        TWO,
        {0: [ANYWHERE], 2: [{"name": "corner", "cells": [[1, 1], [4, 2]], "weight": 2}, "1,1", ANYWHERE, {"step": 3}]},
    ),
}


def lists_of(case: str) -> dict[int, list[Any]]:
    mapping, lists = PROBLEMS[case]
    humans = load_quietly(mapping).human_agent_indices
    return dict(zip(humans, lists.values(), strict=True))


def world_of(case: str) -> Any:
    return load_quietly({**PROBLEMS[case][0], "possible_goals": lists_of(case)})


def problem_of(case: str) -> Problem:
    world = world_of(case)
    return Problem(
        world, world.human_agent_indices, world.robot_agent_indices, world.possible_goal_generator,
        oracle_world=GridPlanningWorld(parse(PROBLEMS[case][0])), oracle_goals=EntryGoals(lists_of(case)),
        name_of=lambda goal: (goal.human_agent_index, goal.index), oracle_name_of=lambda goal: (goal.human, goal.place),
        human={"beta_h": 8, "gamma_h": 0.9}, robot={"beta_r": 5, "gamma_h": 0.9, "gamma_r": 0.95, "zeta": 2},
    )  # fmt: skip


@pytest.mark.parametrize("case", PROBLEMS)
def test_both_phases_are_those_of_the_oracle(case: str) -> None:
    problem = problem_of(case)
    check_solve(problem)
    check_documented_functions(problem)


class AsOwn(PossibleGoalGenerator):
    """The same goals from a generator that could say something else in every state."""

    def generate(self, state: Any, human_agent_index: int) -> Iterator[Any]:
        yield from self.env.possible_goal_generator.generate(state, human_agent_index)


@pytest.mark.parametrize("case", PROBLEMS)
@pytest.mark.parametrize("store", [None, "dag"])
def test_a_generator_of_ones_own_with_these_goals_gives_the_same_bits(case: str, store: str | None, tmp_path: Any) -> None:
    world, params = world_of(case), Params(beta_h=4, gamma_h=0.95, zeta=2)
    out = None if store is None else tmp_path / store
    compiled = solve(world, params, out=out, progress=False)
    asked = solve(world, params, possible_goal_generator=AsOwn(world), progress=False)
    assert compiled.goals == asked.goals
    for t in range(compiled.dag.horizon + 1):
        for name in ("Vh_m", "Vh_e", "X_h", "V_r", "U_r"):
            assert np.array_equal(getattr(compiled.values, name)[t], getattr(asked.values, name)[t]), (name, t)
        for name in ("pi_r", "pi_h", "Q_r"):
            assert np.array_equal(getattr(compiled, name)[t], getattr(asked, name)[t]), (name, t)


def test_other_numbers_of_goals_in_tables() -> None:
    solution: Solution = solve(world_of("other numbers of goals"), Params(beta_h=3, zeta=2), progress=False)
    assert [len(solution.goals[human]) for human in solution.humans] == [1, 4]
    table = solution.to_pandas("Vh_e")
    assert table.groupby("human")["goal"].nunique().tolist() == [1, 4]
    assert not table["value"].isna().any()
    array = solution.to_xarray()
    assert array["goal_name"].values.tolist() == [
        ["anywhere", "", "", ""],
        ["corner", "ReachCellGoal(agent 2, 1,1)", "anywhere", "at step 3"],
    ]
    going_on = array["Vh_e"].isel(state=0)
    assert np.isnan(going_on.sel(human=solution.humans[0]).values).tolist() == [False, True, True, True]
    report = solution.at(solution.dag.states(0)[0])
    assert [len(rows) for rows in report.goals.values()] == [1, 4]


def test_shortest_paths_lead_to_the_nearest_of_several_places() -> None:
    goals = [{"name": "ends", "cells": [[1, 1], [4, 1, 4, 2]]}, {"carries": "key"}, {"all": ["1,1", "2,1"]}]
    world = load_quietly({"map": walled(".. Ay .. .. / .. Kg We Ae"), "max_steps": 4, "possible_goals": goals})
    prior = ShortestPathPrior(world)
    ends, key, nowhere = world.possible_goal_generator.goals_of(0)
    state = world.initial_state()  # at 2,1, facing east: 1,1 is two turns and a step away, 4,1 two steps
    left, right = (prior(state, 0, ReachCellGoal(world, 0, cell)) for cell in ((1, 1), (4, 1)))
    assert prior(state, 0, ends).tolist() == right.tolist() != left.tolist()
    with pytest.raises(TypeError, match=r"carries a key\) has no cells to walk to"):
        prior(state, 0, key)
    assert prior(state, 0, nowhere).argmax() == 0  # it has no way, so it stands still
