"""The seam between worlds and the rest: what ``as_model`` makes of each kind, and that nobody behind it asks for kinds."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from planning_worlds import At, Ring, TwoSteps

import empo_bi
from empo_bi import ArrayWorld, GridWorld, enumerate_dag, load_world, open_dag, solve
from empo_bi.world.as_model import UNKNOWN, Model, as_model
from empo_bi.world.bush.world import BushWorld
from empo_bi.world.packed import PackedWorld
from empo_bi.world.python_model import NOT_PART_OF_A_WORLD

PACKAGE = Path(empo_bi.__file__).parent
KINDS = {
    "GridWorld",
    "PackedWorld",
    "ArrayWorld",
    "WorldModel",
    "WorldGoalGenerator",
    "MapWorld",
    "BushWorld",
    "MapModel",
    "PackedModel",
    "PythonModel",
}
EDGE = {"world/as_model.py", "world/packed_model.py", "world/map_world.py", "world/fields.py"}
AT_MOST = 8

PARTS = [name for name in vars(Model) if not name.startswith("_")]


def asked_kinds() -> Iterator[tuple[str, int]]:
    """Files and lines of ``isinstance(thing, kind)`` and ``issubclass``, however they are written."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
                named = {part for argument in node.args[1:] for part in ast.unparse(argument).replace("|", " ").split()}
                if {word.strip("(),").rsplit(".", 1)[-1] for word in named} & KINDS:
                    yield file.relative_to(PACKAGE).as_posix(), node.lineno


def array_world() -> ArrayWorld:
    return ArrayWorld([np.eye(3), np.roll(np.eye(3), 1, axis=1)], max_steps=3, goals={"all": range(3)})


def grid_world() -> GridWorld:
    return load_world("basics/first_steps", max_steps=3)


def bush_world() -> BushWorld:
    return load_world("bush_worlds/overgrown_start", max_steps=3)


def test_only_the_edge_asks_what_kind_of_world_it_is() -> None:
    found = list(asked_kinds())
    assert len(found) <= AT_MOST, found
    assert {file for file, _ in found} <= EDGE, f"ask a Model (world/as_model.py) instead: {found}"


@pytest.mark.parametrize("make", [grid_world, bush_world, array_world, TwoSteps, Ring])
def test_every_kind_of_world_has_all_parts_of_a_model(make: Any) -> None:
    world = make()
    before = dict(vars(world))
    model = as_model(world)
    for part in PARTS:
        getattr(model, part)
    assert model.world is world
    assert vars(world).keys() - before.keys() <= NOT_PART_OF_A_WORLD  # what is computed once
    assert all(vars(world)[name] is before[name] for name in before)
    assert len(model.profiles) == model.n_profiles == model.n_actions**model.n_agents
    assert len(model.action_names) == model.n_actions
    assert repr(model) == repr(world)


def test_what_kinds_of_worlds_can_do() -> None:
    grid, array, python = as_model(grid_world()), as_model(array_world()), as_model(TwoSteps())
    assert [model.packed is model.world for model in (grid, array, python)] == [True, True, False]
    assert [model.grid is model.world for model in (grid, array, python)] == [True, False, False]
    assert [model.fields is None for model in (grid, array, python)] == [False, True, True]
    assert [model.picture is None for model in (grid, array, python)] == [False, True, True]
    assert [model.is_time_homogeneous for model in (grid, array, python)] == [True, True, False]
    assert [model.free_horizon for model in (grid, array, python)] == [3, None, None]
    assert [model.max_steps for model in (grid, array, python)] == [3, 3, None]
    assert [model.state_format for model in (grid, array, python)] == [None, "numbered", None]
    assert [model.mapping is None for model in (grid, array, python)] == [False, True, True]
    assert [model.content is None for model in (grid, array, python)] == [False, False, True]
    bush = as_model(bush_world())
    for part in ("packed", "grid", "fields", "picture", "mapping", "content", "key_meaning", "free_horizon"):
        assert (getattr(bush, part) is None) == (getattr(grid, part) is None), part
    assert [model.name for model in (grid, array, python)] == [grid.world.world_spec.name, None, None]


@pytest.mark.parametrize("make", [grid_world, bush_world, array_world, TwoSteps])
def test_the_model_says_what_the_world_says(make: Any) -> None:
    world = make()
    model = as_model(world)
    assert model.initial_state() == world.initial_state()
    for profile in model.profiles:
        assert model.transitions(model.initial_state(), profile) == world.transition_probabilities(
            world.initial_state(), profile
        )


def test_a_python_world_may_say_little() -> None:
    class Least:
        n_agents = 2
        action_space = SimpleNamespace(n=3)

        def reset(self) -> None:
            self.now = 0

        def get_state(self) -> int:
            return self.now

        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            return None if state == 2 else [(1.0, state + 1)]

    model = as_model(Least())
    assert (model.n_agents, model.action_names) == (2, ["action 0", "action 1", "action 2"])
    assert (model.initial_state(), model.transitions(2, [0, 0])) == (0, None)
    assert (model.goal_generator, list(model.human_agent_indices), model.max_steps) == (None, [], None)
    assert not model.has_own_durations
    assert model.profiles[:4] == [[0, 0], [1, 0], [2, 0], [0, 1]]
    with pytest.raises(ValueError, match="has a fixed horizon"):
        model.with_horizon(3)


def test_what_is_not_a_world_is_refused_by_name() -> None:
    with pytest.raises(
        TypeError, match="my_world=3 is not a world: it has no transition_probabilities; load_world makes one"
    ):
        as_model(3, "my_world")


def test_another_horizon_keeps_goals_that_were_given_later() -> None:
    world = grid_world()
    longer = as_model(world).with_horizon(5)
    assert (longer.max_steps, world.max_steps) == (5, 3)
    assert as_model(world).with_horizon(3) is world
    world.possible_goal_generator = own = empo_bi.goals.TabularGoalGenerator([At(0)])
    assert as_model(world).with_horizon(5).possible_goal_generator is own


def test_a_world_that_packs_its_states_in_its_own_way_is_compiled_too() -> None:
    class Subclassed(ArrayWorld):
        pass

    world = Subclassed([np.eye(3)], max_steps=2, goals={"all": range(3)})
    assert as_model(world).packed is world
    assert isinstance(world, PackedWorld)


def test_users_get_back_the_world_that_they_gave(tmp_path: Path) -> None:
    for make in (grid_world, bush_world, array_world, TwoSteps):
        world = make()
        assert enumerate_dag(world, progress=False).world is world
        solution = solve(world, phase_2=False, progress=False)
        assert solution.world is world
        assert solution.model.world is world
    enumerate_dag(TwoSteps(), store=tmp_path / "dag", progress=False)
    opened = open_dag(tmp_path / "dag")
    assert opened.world is None
    assert opened.model is UNKNOWN
    assert opened.model.title == "a Python world"


def test_models_travel_to_other_processes() -> None:
    for make in (grid_world, bush_world, array_world, TwoSteps):
        model = as_model(make())
        again = pickle.loads(pickle.dumps(model))
        assert again.profiles == model.profiles
        assert again.initial_state() == model.initial_state()
