"""Humans who take shortest paths: distances against a plain search, policies by hand, and as a prior of phase 2."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest
from backward.against_oracle import Problem, check_solve
from engine import load_quietly
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_worlds import Ring

from empo_bi import ShortestPathPrior, compute_robot_policy, load_world, solve
from empo_bi.goals import ReachCellGoal, ReachRectangleGoal

MAZE = """
map: |
  We We We We We We
  We Ay We Ro Ae We
  We .. .. .. La We
  We We We We We We
orientations: [e, w]
max_steps: 4
possible_goals: ["1,1, 4,2"]
"""
STILL, LEFT, RIGHT, FORWARD = range(4)
BLOCKED = {"We", "La"}


def plain_distance(rows: list[list[str]], pose: tuple[int, int, int], area: tuple[int, int, int, int]) -> float:
    """Actions from a pose to an area, by trying everything, step by step."""
    ahead = ((1, 0), (0, 1), (-1, 0), (0, -1))
    reached, n = {pose}, 0
    while True:
        if any(area[0] <= x <= area[2] and area[1] <= y <= area[3] for x, y, _ in reached):
            return n
        more = set(reached)
        for x, y, d in reached:
            nx, ny = x + ahead[d][0], y + ahead[d][1]
            more |= {(x, y, (d + 1) % 4), (x, y, (d - 1) % 4)}
            if rows[ny][nx] not in BLOCKED:
                more.add((nx, ny, d))
        if more == reached:
            return math.inf
        reached, n = more, n + 1


@pytest.mark.parametrize("beta_h", [math.inf, 1.5, 0.0])
def test_gridworld_policies_follow_distances_on_the_bare_map(beta_h: float) -> None:
    world = load_quietly(MAZE)
    rows = [line.split() for line in world.map_text().split("\n")]
    prior = ShortestPathPrior(world, beta_h=beta_h)
    start = world.initial_state()
    free = [(x, y) for y, row in enumerate(rows) for x, code in enumerate(row) if code not in BLOCKED]
    ahead = ((1, 0), (0, 1), (-1, 0), (0, -1))
    for (x, y), d, area in itertools.product(free, range(4), [(3, 1, 3, 1), (1, 1, 1, 1), (3, 2, 4, 2)]):
        state = (0, ((x, y, d, *start[1][0][3:]), start[1][1]), *start[2:])
        goal = ReachRectangleGoal(world, 0, area)
        here = plain_distance(rows, (x, y, d), area)
        nx, ny = x + ahead[d][0], y + ahead[d][1]
        moved = (nx, ny, d) if rows[ny][nx] not in BLOCKED else (x, y, d)
        after = [plain_distance(rows, pose, area) for pose in ((x, y, d), (x, y, (d - 1) % 4), (x, y, (d + 1) % 4), moved)]
        if here == 0:
            expected = [1.0, 0, 0, 0]
        elif math.isinf(beta_h):
            expected = [float(distance < here) for distance in after]
        else:
            expected = [math.exp(-beta_h * distance) for distance in after]
        assert prior(state, 0, goal) == pytest.approx(np.array(expected) / sum(expected), abs=1e-12)


def test_walls_lava_and_ways_that_do_not_exist() -> None:
    world = load_quietly(MAZE)
    prior, start = ShortestPathPrior(world), world.initial_state()
    assert prior(start, 0, ReachCellGoal(world, 0, (1, 2))).tolist() == [0, 0, 1, 0]  # it faces east and turns right
    assert prior(start, 0, ReachCellGoal(world, 0, (4, 2))).tolist() == [1, 0, 0, 0]  # lava
    assert prior(start, 0, ReachCellGoal(world, 0, (2, 1))).tolist() == [1, 0, 0, 0]  # a wall
    assert prior(start, 0, ReachCellGoal(None, 0, (40, 2))).tolist() == [1, 0, 0, 0]  # nowhere
    for beta_h in (0.0, 3.0):
        assert ShortestPathPrior(world, beta_h=beta_h)(start, 0, ReachCellGoal(world, 0, (4, 2))).tolist() == [1, 0, 0, 0]


def test_where_nobody_can_stand_still_those_at_the_goal_do_what_keeps_them_there() -> None:
    world = load_world("carousel")
    human = world.human_agent_indices[0]
    assert world.action_names == ["forward", "left"]
    x, y = world.initial_state()[1][human][:2]
    policy = ShortestPathPrior(world)(world.initial_state(), human, ReachCellGoal(world, human, (x, y)))
    assert policy[1] > 0
    assert policy.sum() == pytest.approx(1)


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from([math.inf, 2.0, 0.5]), st.data())
@settings(max_examples=40, deadline=None)
def test_bush_world_policies_follow_manhattan_distances(width: int, height: int, beta_h: float, data: Any) -> None:
    cells = [(x, y) for y in range(height) for x in range(width)]
    (x, y), target = data.draw(st.sampled_from(cells)), data.draw(st.sampled_from(cells))
    codes = {cell: data.draw(st.sampled_from([".", "09"])) for cell in cells} | {(x, y): "Hu"}
    rows = [" ".join(codes[i, j] for i in range(width)) for j in range(height)]
    world = load_world({"map": rows, "B": 3, "max_steps": 1})
    found = ShortestPathPrior(world, beta_h=beta_h)(world.initial_state(), 0, ReachCellGoal(world, 0, target))

    def distance(cell: tuple[int, int]) -> int:
        return abs(cell[0] - target[0]) + abs(cell[1] - target[1])

    moved = [(x, y - 1), (x - 1, y), (x, y + 1), (x + 1, y), (x, y)]
    after = [distance(cell if cell in codes else (x, y)) for cell in moved]
    if target == (x, y):
        weights = [0.0, 0, 0, 0, 1]
    elif math.isinf(beta_h):
        weights = [float(d < distance((x, y))) for d in after]
    else:
        weights = [math.exp(-beta_h * d) for d in after]
    assert found == pytest.approx(np.array(weights) / sum(weights), abs=1e-12)


# --- as a prior -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bush_worlds/overgrown_start", "basics/side_by_side"])
def test_phase_2_with_it_is_that_of_the_oracle(name: str) -> None:
    world = load_world(name, max_steps=2)
    prior = ShortestPathPrior(world, beta_h=2.0)
    problem = Problem(
        world, world.human_agent_indices, world.robot_agent_indices, world.possible_goal_generator, prior=prior,
        oracle_world=AsOracle(world), robot={"zeta": 1.5},
    )  # fmt: skip
    check_solve(problem)


class AsOracle:
    def __init__(self, world: Any) -> None:
        self.world, self.n_agents, self.n_actions = world, len(world.agents), int(world.action_space.n)
        self.initial_state, self.transition_probabilities = world.initial_state, world.transition_probabilities


def test_it_is_taken_wherever_a_prior_is_and_told_from_others_on_disk(tmp_path: Any) -> None:
    world = load_world("bush_worlds/overgrown_start", max_steps=3)
    humans, robots = world.human_agent_indices, world.robot_agent_indices
    prior, start = ShortestPathPrior(world), world.initial_state()
    policy = compute_robot_policy(world, humans, robots, None, prior, quiet=True)
    kept = solve(world, human_policy_prior=prior, out=tmp_path / "run", progress=False)
    assert kept.robot_policy(start) == pytest.approx(policy(start), abs=2e-3)
    again = solve(world, human_policy_prior=ShortestPathPrior(world), out=tmp_path / "run", progress=False)
    assert again.robot_policy(start) == kept.robot_policy(start)
    other = solve(world, human_policy_prior=ShortestPathPrior(world, beta_h=0.1), out=tmp_path / "run", progress=False)
    assert other.robot_policy(start) != kept.robot_policy(start)
    assert sum(path.name.startswith("solution-") for path in (tmp_path / "run").iterdir()) == 2


def test_averages_samples_and_copies() -> None:
    world = load_world("bush_worlds/trailblazer")
    prior, start = ShortestPathPrior(world), world.initial_state()
    assert repr(prior) == "<ShortestPathPrior of humans [1], beta_h=inf>"
    pairs = list(world.possible_goal_generator.generate(start, 1))
    assert prior(start, 1) == pytest.approx(sum(weight * prior(start, 1, goal) for goal, weight in pairs))
    assert prior.sample(start, 1, ReachCellGoal(world, 1, (0, 0))) == 4
    again = pickle.loads(pickle.dumps(prior))
    with pytest.raises(ValueError, match=r"call set_world_model\(world\)"):
        again(start, 1)
    again.set_world_model(world)
    assert again(start, 1) == pytest.approx(prior(start, 1))
    prior(start, 1, pairs[0][0])[:] = 7  # a copy
    assert prior(start, 1, pairs[0][0]).sum() == pytest.approx(1)


def test_what_it_cannot_do_is_said() -> None:
    world = load_world("bush_worlds/trailblazer")
    with pytest.raises(TypeError, match="has no map to walk on; give a gridworld or a bush world"):
        ShortestPathPrior(Ring())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="world_model=3 is not a world"):
        ShortestPathPrior(3)  # type: ignore[arg-type]
    for beta_h in (-1.0, math.nan):
        with pytest.raises(ValueError, match="give a number, 0 or more, or infinity"):
            ShortestPathPrior(world, beta_h=beta_h)
    with pytest.raises(TypeError, match="has no cells to walk to"):
        ShortestPathPrior(world)(world.initial_state(), 1, "home")
    world.possible_goal_generator = None
    with pytest.raises(ValueError, match="has no goals; give possible_goal_generator"):
        ShortestPathPrior(world)(world.initial_state(), 1)
