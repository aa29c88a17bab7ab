"""Shipped worlds, a few steps each, under many parameters: the compiled path against the oracle."""

from __future__ import annotations

import math
from typing import Any

import pytest
from backward.against_oracle import Problem, check_documented_functions, check_robot_policy, check_solve
from engine import GRIDWORLDS, load_quietly
from oracle.gridworld import parse
from oracle.planning import GridGoals, GridPlanningWorld, HumanGoal

from empo_bi import ReachCellGoal, compute_human_policy_prior, compute_robot_policy, solve, worlds

# As many steps as the oracle goes in a fraction of a second; 2 for worlds that are not listed.
STEPS = {
    "basics/carousel": 6,
    "basics/first_steps": 6,
    "basics/open_field": 3,
    "basics/robot_alone": 3,
    "basics/side_by_side": 3,
    "bushes/hedge_as_fence": 3,
    "bushes/thicket": 3,
    "buttons/decorative_button": 4,
    "buttons/off_switch": 3,
    "buttons/pause_and_resume": 3,
    "buttons/pause_both": 1,
    "challenges/lifeguard": 3,
    "challenges/night_watch": 1,
    "conflicts/after_you": 4,
    "conflicts/crowd_in_the_corridor": 1,
    "conflicts/the_many_or_the_few": 1,
    "doors_and_keys/locked_in": 3,
    "doors_and_keys/one_key_two_rooms": 1,
    "doors_and_keys/whose_door_first": 1,
    "hazards/ice_rink": 3,
    "hazards/lava_lid": 3,
    "hazards/no_bridge": 3,
    "hazards/slippery_ledge": 3,
    "items/ball_in_the_doorway": 3,
    "items/full_hands": 3,
    "magic/one_way_round": 3,
    "magic/revolving_wall": 4,
    "magic/shortcut_that_may_close": 3,
    "mine/collapsed_gallery": 3,
    "mine/strong_miner": 4,
    "pushing/cork_in_the_bottle": 4,
    "pushing/mixed_train": 5,
    "pushing/wrong_push": 3,
    "scaling/assembly": 1,
    "scaling/hall_1_rock": 3,
    "scaling/hall_2_rocks": 3,
    "scaling/hall_3_rocks": 3,
}

# (phase 1, phase 2)
PARAMETERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "defaults": ({}, {}),
    "standard": (
        {"beta_h": 10, "gamma_h": 0.99},
        {"beta_r": 10, "gamma_h": 0.99, "gamma_r": 0.99, "zeta": 2, "xi": 1, "eta": 1.1},
    ),
    "optimists": (
        {"beta_h": 5, "gamma_h": 0.9, "optimistic": True},
        {"beta_r": 3, "gamma_h": 0.8, "gamma_r": 0.95, "zeta": 1.5},
    ),
    "rates": (
        {"beta_h": 20, "rho_h": 0.3},
        {"beta_r": 50, "rho_h": 0.1, "rho_r": 0.7, "zeta": 1.3, "xi": 2.5, "eta": 1.7},
    ),
    "random humans": ({"beta_h": 0, "gamma_h": 0.5}, {"beta_r": 1, "gamma_r": 0.9, "xi": 0.5, "eta": 0.7}),
    "a random robot": ({"beta_h": 3, "rho_h": 0}, {"beta_r": 0, "gamma_h": 1, "rho_r": 0, "zeta": 3}),
    "a robot that fears the end": (
        {"beta_h": 8, "gamma_h": 0.95, "optimistic": True},
        {"beta_r": 7.5, "rho_h": 0.02, "gamma_r": 0.6, "zeta": 2, "terminal_Vr": -5.0},
    ),
    "a robot to which nothing matters much": (
        {"beta_h": 1, "gamma_h": 0.7},
        {"beta_r": 0.25, "gamma_h": 0.7, "rho_r": 2.0, "zeta": 0.4, "xi": 0.1, "eta": 0.2, "terminal_Vr": -1e-30},
    ),
}

# A bit of everything: agents of each number, all action sets, chance, keys and buttons, ground that slips.
QUICK = [
    ("basics/first_steps", "random humans"),
    ("basics/carousel", "rates"),
    ("basics/side_by_side", "a random robot"),
    ("bushes/thicket", "standard"),
    ("buttons/three_vetoes", "optimists"),
    ("challenges/greenhouse", "defaults"),
    ("conflicts/give_and_take", "a robot that fears the end"),
    ("conflicts/the_many_or_the_few", "rates"),
    ("doors_and_keys/swinging_doors", "a robot to which nothing matters much"),
    ("hazards/ice_rink", "optimists"),
    ("jobst_challenges/asymmetric_freeing", "standard"),
    ("magic/shortcut_that_may_close", "a robot that fears the end"),
    ("mine/collapsed_gallery", "rates"),
]

# Deterministic worlds with four actions, no discount: values are 0, 1 or parts of a few halves, which no order of adding up
# changes; so what ties in one arithmetic ties in the other.
STRICT = [
    ("basics/first_steps", {}),
    ("pushing/mirror_freeing", {}),
    ("pushing/mirror_freeing", {"optimistic": True}),
    ("jobst_challenges/asymmetric_freeing", {"optimistic": True}),
    ("conflicts/the_many_or_the_few", {}),
]


def meaning(goal: Any) -> Any:
    """A goal by what its equality looks at: the human, the kind, the rectangle."""
    return goal.human_agent_index, "cell" if isinstance(goal, ReachCellGoal) else "rectangle", goal.target_rect


def oracle_meaning(goal: HumanGoal) -> Any:
    x1, y1, x2, y2, kind = goal.goal
    return goal.human, kind, (x1, y1, x2, y2)


def problem_of(name: str, human: dict[str, Any], robot: dict[str, Any]) -> Problem:
    path = worlds.find(name)
    assert path is not None
    steps = STEPS.get(name, 2)
    plain = parse(path.read_text(), max_steps=steps)
    world = load_quietly(name, max_steps=steps)
    return Problem(
        world, world.human_agent_indices, world.robot_agent_indices, oracle_world=GridPlanningWorld(plain),
        oracle_goals=GridGoals(plain), name_of=meaning, oracle_name_of=oracle_meaning, human=human, robot=robot,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "parameters"), QUICK)
def test_both_phases_of_a_shipped_world(name: str, parameters: str) -> None:
    problem = problem_of(name, *PARAMETERS[parameters])
    check_documented_functions(problem)
    check_solve(problem)


def every_world() -> list[Any]:
    """Each world with a set of parameters, going round."""
    names = list(PARAMETERS)
    return [(name, names[i % len(names)]) for i, name in enumerate(GRIDWORLDS)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), every_world())
def test_both_phases_of_every_shipped_world(name: str, parameters: str) -> None:
    problem = problem_of(name, *PARAMETERS[parameters])
    if not problem.humans:
        with pytest.raises(ValueError, match="there are no humans"):
            solve(problem.world, progress=False)
        return
    check_documented_functions(problem)
    check_solve(problem)


@pytest.mark.slow
@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("name", ["hazards/slippery_ledge", "conflicts/after_you", "buttons/three_vetoes"])
def test_every_set_of_parameters(name: str, parameters: str) -> None:
    problem = problem_of(name, *PARAMETERS[parameters])
    check_documented_functions(problem)
    check_solve(problem)


@pytest.mark.parametrize(("name", "human"), STRICT)
def test_humans_who_know_exactly_what_they_want(name: str, human: dict[str, Any]) -> None:
    problem = problem_of(name, {"beta_h": math.inf, **human}, {"beta_r": 4, "gamma_r": 0.9, "zeta": 1.2})
    check_documented_functions(problem)
    check_solve(problem)


def test_the_chain_has_the_order_of_get_dag() -> None:
    problem = problem_of("pushing/cork_in_the_bottle", {}, {})  # its states are all alike, so they can be compared
    prior = compute_human_policy_prior(problem.world, problem.humans, use_float16=False, quiet=True)
    _, chain = compute_robot_policy(
        problem.world, problem.humans, problem.robots, None, prior, return_markov_chain=True, use_float16=False, quiet=True
    )
    assert problem.world.get_dag()[0] == problem.graph.states
    expected = problem.robot_answers["chain"]
    assert [dict(row) for row in chain] == [pytest.approx(row, abs=1e-9) for row in expected]


def test_without_a_prior_phase_1_runs_with_its_own_defaults() -> None:
    """Not with the discount that phase 2 was given."""
    problem = problem_of("hazards/slippery_ledge", {}, {"gamma_h": 0.5, "beta_r": 2})
    check_robot_policy(problem, None)


def test_roles_may_differ_from_those_of_the_world_file() -> None:
    """The first human and the robot swap places, the other human stands by: everybody else is a robot to phase 1."""
    problem = problem_of("jobst_challenges/asymmetric_freeing", *PARAMETERS["standard"])
    humans, robots = list(problem.humans), list(problem.robots)
    problem.humans, problem.robots = [humans[1]], [humans[0]]
    assert robots
    check_documented_functions(problem)
    check_solve(problem)


def test_the_order_of_humans_is_that_of_the_caller() -> None:
    problem = problem_of("jobst_challenges/asymmetric_freeing", *PARAMETERS["rates"])
    problem.humans = problem.humans[::-1]
    assert problem.humans == sorted(problem.humans, reverse=True)
    assert len(problem.humans) == 2
    check_documented_functions(problem)
    check_solve(problem)


def test_a_world_without_humans_cannot_be_solved() -> None:
    names = [name for name in worlds.available() if not load_quietly(name).human_agent_indices]
    assert "basics/robot_alone" in names
    for name in names:
        world = load_quietly(name, max_steps=2)
        with pytest.raises(ValueError, match="there are no humans"):
            solve(world, progress=False)
        with pytest.raises(ValueError, match="there are no humans"):
            compute_human_policy_prior(world, world.human_agent_indices, quiet=True)
    world = load_quietly("basics/first_steps", max_steps=2)  # which has goals
    with pytest.raises(ValueError, match="there are no humans"):
        compute_robot_policy(world, [], [0], quiet=True)
