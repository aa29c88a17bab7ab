"""Fields of packed states are those of the decoded tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine import GRIDWORLDS

from empo_bi import enumerate_dag, load_world
from empo_bi.world.fields import THINGS, StateFields

MANY = 3000  # states of each world


def level_of(name: str) -> tuple[Any, list[Any], StateFields]:
    """A world, the states of the last level that is not too large, and their fields."""
    world = load_world(name, max_steps=1)
    for steps in range(2, 6):
        if enumerate_dag(world, progress=False).level_sizes[-1] > 500:
            break
        world = load_world(name, max_steps=steps)
    dag = enumerate_dag(world, progress=False)
    keys = dag.keys(-1)
    assert keys is not None
    chosen = np.arange(0, len(keys), max(1, len(keys) // MANY))
    return world, dag.states(dag.horizon, chosen), StateFields(world, keys[chosen])


@pytest.mark.parametrize("name", [name for name in GRIDWORLDS if not name.startswith("scaling")])
def test_fields_are_those_of_the_tuples(name: str) -> None:
    world, states, fields = level_of(name)
    assert len(fields) == len(states)
    for agent in range(len(world.agents)):
        entries = [state[1][agent] for state in states]
        assert fields.cell_xy(agent).tolist() == [list(entry[:2]) for entry in entries]
        assert fields.direction(agent).tolist() == [entry[2] for entry in entries]
        assert fields.terminated(agent).tolist() == [entry[3] for entry in entries]
        assert fields.paused(agent).tolist() == [entry[5] for entry in entries]
        for kind in THINGS:
            assert fields.carries(agent, kind).tolist() == [entry[6] == kind for entry in entries]
        x, y = entries[0][:2]
        assert fields.inside(agent, (x, y)).tolist() == [entry[:2] == (x, y) for entry in entries]
        inside = [x - 1 <= entry[0] <= x + 1 and y <= entry[1] <= y + 1 for entry in entries]
        assert fields.inside(agent, (x + 1, y + 1, x - 1, y)).tolist() == inside
    for kind in THINGS:
        lie = [sorted(entry[1:3] for entry in state[2] if entry[0] == kind) for state in states]
        found = [sorted(tuple(xy) for xy in row if xy != [-1, -1]) for row in fields.things(kind).tolist()]
        assert found == lie
        for cell in {cell for cells in lie for cell in cells}:
            assert fields.holds(kind, cell).tolist() == [cell in cells for cells in lie]
    for i, entry in enumerate(states[0][3]):
        if entry[0] == "door":
            flags = [state[3][i][3:] for state in states]
            assert fields.is_open(entry[1:3]).tolist() == [is_open for is_open, _ in flags]
            assert (fields.door(entry[1:3]) == 2).tolist() == [is_locked for _, is_locked in flags]


def test_things_that_are_carried_or_gone_are_nowhere() -> None:
    world = load_world("locked_in")
    start = StateFields(world, world.initial_key)
    (key,) = start.things("key")[0].tolist()
    dag = enumerate_dag(load_world("locked_in", max_steps=8), progress=False)
    keys = dag.keys(-1)
    assert keys is not None
    fields = StateFields(world, keys)
    carried = np.any([fields.carries(agent, "key") for agent in range(len(world.agents))], axis=0)
    assert carried.any()
    assert (fields.things("key")[carried] == -1).all()
    assert (fields.things("key")[~carried] >= 0).all()
    assert not fields.holds("key", key)[carried].any()


def test_nothing_lies_in_walls() -> None:
    world = load_world("mirror_freeing")
    fields = StateFields(world, world.initial_key)
    assert fields.holds("rock", (0, 0)).tolist() == [False]
    assert fields.things("ball").shape == (1, 0, 2)


def test_no_states_have_no_fields() -> None:
    world = load_world("mirror_freeing")
    fields = StateFields(world, world.initial_key[:0])
    assert fields.cell_xy(0).shape == (0, 2)
    assert fields.things("rock").shape == (0, 2, 2)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda fields: fields.cell_xy(3), "agents 0 to 2"),
        (lambda fields: fields.direction(-1), "agents 0 to 2"),
        (lambda fields: fields.holds("stone", (1, 1)), "give one of block, rock"),
        (lambda fields: fields.holds("rock", (9, 1)), "off the grid; give x from 0 to 8"),
        (lambda fields: fields.door((1, 1)), "no door on cell .* doors of this world are on no cell"),
        (lambda fields: fields.inside(0, (1,)), "give a cell"),
    ],
)
def test_what_is_not_there_cannot_be_asked_for(ask: Any, message: str) -> None:
    world = load_world("mirror_freeing")
    with pytest.raises(ValueError, match=message):
        ask(StateFields(world, world.initial_key))


def test_other_worlds_have_no_fields() -> None:
    with pytest.raises(TypeError, match="is not a gridworld"):
        StateFields(object(), np.zeros((1, 1), dtype=np.uint64))  # type: ignore[arg-type]
