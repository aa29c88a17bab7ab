"""The picture at the top of the README: its numbers are the solution's, read another way."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import empo_bi

SCRIPT = Path(__file__).parents[1] / "docs" / "pictures" / "make_first_look.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    pytest.importorskip("matplotlib")
    spec = importlib.util.spec_from_file_location("make_first_look", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_power_and_probabilities_are_those_of_the_markov_chain(script: ModuleType) -> None:
    found = script.numbers(6)
    world = empo_bi.load_world("asymmetric_freeing", max_steps=6)
    solution = empo_bi.solve(world, script.PARAMS, progress=False)
    chain = solution.markov_chain
    mass = np.zeros(len(chain.states))
    mass[0] = 1.0
    moved_before = np.zeros(2)
    for t in range(6):
        present = [(p, chain.states[i]) for i, p in enumerate(mass) if p > 0]
        power = sum(p * np.array(list(solution.at(state).power.values())) for p, state in present)
        moved = [sum(p for p, state in present if ("rock", *cell) not in state[2]) for cell in script.ROCKS.values()]
        np.testing.assert_allclose(found["power_TH"][t], power, rtol=1e-9)
        np.testing.assert_allclose(found["moved_ET"][:, t], moved, atol=1e-9)  # nobody pushes a rock back in six steps
        assert (np.array(moved) >= moved_before - 1e-12).all()
        moved_before = np.array(moved)
        mass = mass @ chain.matrix
    assert found["policy"] == solution.robot_policy(world.initial_state())


def test_the_picture_is_drawn_and_small(script: ModuleType, tmp_path: Path) -> None:
    script.draw(script.numbers(), tmp_path / "picture.png")
    assert 20_000 < (tmp_path / "picture.png").stat().st_size < 200_000
