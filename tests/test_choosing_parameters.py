"""What docs/choosing_parameters.md and the FAQ say of parameters is so."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import empo_bi

PATH = Path(__file__).parents[1] / "examples" / "choosing_parameters.py"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("choosing_parameters", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_humans_dawdle_without_discount_whatever_their_beta(example: ModuleType) -> None:
    for beta_h in (10, 50):
        late = example.arrival(beta_h, 1.0)
        assert example.mean_arrival(late) > 11.5
        assert late[-1] > 0.99
    assert example.mean_arrival(example.arrival(50, 0.9)) < 5.3


def test_power_and_reward_are_those_of_the_engine(example: ModuleType) -> None:
    from empo_bi.sweep import formulas

    assert example.power_of([0.25] * 4, 2) == pytest.approx(example.power_of([1, 0, 0, 0], 2) / 4)
    for xi, eta in ((1, 1), (2, 0.5), (0.5, 3)):
        expected = float(formulas.reward(np.array([[1.0, 0.1]]), xi, eta)[0])
        assert example.reward_of([1, 0.1], xi, eta) == pytest.approx(expected)


def test_a_robot_with_a_small_beta_looks_like_dice_and_then_suddenly_does_not(example: ModuleType) -> None:
    found = example.robot_choices({"beta_r": [5, 20, 50]})
    assert found["beta_r", 5] == pytest.approx(0.25, abs=0.01)
    assert found["beta_r", 20] < 0.35
    assert found["beta_r", 50] > 0.95


def test_humans_who_expect_the_worst_do_not_try_and_optimists_do() -> None:
    """In docs/flat.md the robot could stand in the only door."""
    text = (Path(__file__).parents[1] / "docs/flat.md").read_text(encoding="utf-8")
    world = empo_bi.load_world(text.partition('flat = """')[2].partition('"""')[0])
    start = world.initial_state()
    for optimistic in (False, True):
        solution = empo_bi.solve(world, empo_bi.Params(beta_h=50, gamma_h=0.95, optimistic=optimistic), progress=False)
        hall = next(goal for goal in solution.goals[0] if goal.label == "hall")
        is_undecided = solution.prior(start, 0, hall) == pytest.approx([0.25] * 4)
        assert is_undecided is not optimistic
