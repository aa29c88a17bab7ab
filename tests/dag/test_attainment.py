"""Attainment bits: one per (state, human, goal), held to asking every goal about every state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dag.test_python_worlds import StandIn
from dag.test_shared_python_worlds import SharedStandIn

from empo_bi import (
    Dag,
    GridWorld,
    PossibleGoal,
    PossibleGoalGenerator,
    ReachCellGoal,
    TabularGoalGenerator,
    enumerate_dag,
    load_world,
    open_dag,
)


class FacesNorthLate(PossibleGoal):
    """Looks at the step, too, so its bits belong to states, not to bodies."""

    def __init__(self, human: int) -> None:
        super().__init__()
        self.human = human

    def is_achieved(self, state: Any) -> int:
        return int(state[1][self.human][2] == 3 and state[0] >= 2)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FacesNorthLate) and other.human == self.human

    def __hash__(self) -> int:
        return hash(self.human)


class AnythingGoes(PossibleGoalGenerator):
    """Yields other goals in other states."""

    def generate(self, state: Any, human_agent_index: int) -> Any:
        yield FacesNorthLate(state[0] % 2), 1.0


def check_bits(dag: Dag, world: Any) -> None:
    generator = world.possible_goal_generator
    for t in range(dag.horizon + 1):
        expected = [
            [[bool(goal.is_achieved(state)) for goal, _ in generator.generate(state, h)] for h in world.human_agent_indices]
            for state in dag.states(t)
        ]
        found = dag.level(t).attained_SHG
        assert found is not None
        assert found.tolist() == expected


@pytest.mark.parametrize("name", ["asymmetric_freeing", "carousel"])
def test_bits_of_a_world_files_goals_are_what_the_goals_say(name: str, tmp_path: Path) -> None:
    world = load_world(name, max_steps=4)
    if world.possible_goal_generator is None:
        world.possible_goal_generator = TabularGoalGenerator(
            [ReachCellGoal(world, 0, (1, 1)), ReachCellGoal(world, 0, (2, 1))]
        )
    for store in (None, tmp_path / "dag"):
        check_bits(enumerate_dag(world, store=store, progress=False), world)
    check_bits(open_dag(tmp_path / "dag"), world)


@pytest.mark.parametrize("kind", [GridWorld, StandIn, SharedStandIn])
def test_goals_may_look_at_the_step(kind: Any, tmp_path: Path) -> None:
    inner = load_world("asymmetric_freeing", max_steps=2)
    world: Any = inner if kind is GridWorld else kind(inner)
    world.human_agent_indices = [0, 1]
    world.possible_goal_generator = TabularGoalGenerator(
        [FacesNorthLate(0), FacesNorthLate(1), ReachCellGoal(inner, 1, (8, 2))]
    )
    for store in (None, tmp_path / "dag", True):
        check_bits(enumerate_dag(world, store=store, progress=False), world)


def test_a_finished_store_serves_other_goals_too(tmp_path: Path) -> None:
    world = load_world("asymmetric_freeing", max_steps=3)
    enumerate_dag(world, store=tmp_path / "dag", progress=False)
    for goals in ([FacesNorthLate(1)], [ReachCellGoal(world, 0, (2, 1))]):
        world.possible_goal_generator = TabularGoalGenerator(goals)
        dag = enumerate_dag(world, store=tmp_path / "dag", progress=False)
        assert dag.goals is not None
        assert not dag.goals.is_stored
        check_bits(dag, world)


@pytest.mark.parametrize("generator", [None, AnythingGoes()])
def test_without_a_fixed_list_of_goals_there_are_no_bits(generator: Any) -> None:
    world = load_world("asymmetric_freeing", max_steps=2)
    world.possible_goal_generator = generator
    dag = enumerate_dag(world, progress=False)
    assert dag.goals is None
    assert dag.level(1).attained_SHG is None


def test_attainment_of_15_steps_takes_less_than_half_a_megabyte_and_a_transition_less_than_a_byte(tmp_path: Path) -> None:
    dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=15), store=tmp_path / "dag", progress=False)
    files = [path for path in (tmp_path / "dag").rglob("*") if path.is_file()]
    attained = sum(path.stat().st_size for path in files if "attained" in path.parts)
    keys = sum(path.stat().st_size for path in files if "key" in path.parts)
    everything = sum(path.stat().st_size for path in files)
    assert np.prod(dag.level(15).attained_SHG.shape[1:]) == 2 * 18  # type: ignore[union-attr]
    assert 0 < attained < 0.5e6
    assert everything - keys <= 1.0 * dag.n_transitions
