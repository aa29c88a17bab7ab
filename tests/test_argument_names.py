"""A wrong argument of a documented function is called by the name that the caller used, whichever of them it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planning_worlds import Ring

import empo_bi
from empo_bi import (
    GoalError,
    Solution,
    TabularGoalGenerator,
    compute_human_policy_prior,
    compute_robot_policy,
    events,
    goals,
    load_world,
    solve,
)
from empo_bi.solving.solve import SolveOptions


class Wrong:
    """Neither number, text, flag, path nor function."""

    def __repr__(self) -> str:
        return "Wrong()"


GIVEN: dict[str, Callable[[Path], dict[str, Any]]] = {  # what is right, so that only one argument is not
    "compute_human_policy_prior": lambda _: {"world_model": Ring(), "human_agent_indices": [0, 2], "quiet": True},
    "compute_robot_policy": lambda _: {"world_model": Ring(), "human_agent_indices": [0, 2], "robot_agent_indices": [1],
                                       "quiet": True},
    "solve": lambda _: {"world": load_world("basics/first_steps", max_steps=2), "progress": False},
    "enumerate_dag": lambda folder: {"world": Ring(), "store": folder / "dag", "progress": False},
    "open_dag": lambda folder: {"path": folder},
    "open_solution": lambda folder: {"path": folder},
    "plan": lambda _: {"world": load_world("basics/first_steps", max_steps=2), "seconds": 0.1, "progress": False},
    "run_batch": lambda folder: {"source": {"worlds": "basics/first_steps", "steps": 1}, "out": folder / "batch",
                                 "workers": 1, "progress": False},
    "load_world": lambda _: {"source": "basics/first_steps"},
    "write_report": lambda folder: {"path": folder / "report.html", "progress": False},
}  # fmt: skip


def arguments_of(function: str) -> list[str]:
    named = [name for name, about in inspect.signature(getattr(empo_bi, function)).parameters.items()
             if about.kind is not inspect.Parameter.VAR_KEYWORD]  # fmt: skip
    return [*named, *(SolveOptions.__annotations__ if function == "solve" else [])]


CASES = [(function, name) for function in GIVEN for name in arguments_of(function)]


@pytest.fixture(scope="module")
def solution() -> Solution:
    return solve(load_world("pushing/mirror_freeing", max_steps=2), progress=False)


@pytest.mark.parametrize(("function", "name"), CASES)
def test_a_wrong_argument_is_called_by_its_name(function: str, name: str, solution: Solution, tmp_path: Path) -> None:
    given = {**({"solution": solution} if function == "write_report" else {}), **GIVEN[function](tmp_path)}
    if function == "solve" and name == "compression":
        given["out"] = tmp_path / "out"  # nothing is compressed in memory
    with pytest.raises((TypeError, ValueError), match=rf"^{name}\b.*Wrong"):
        getattr(empo_bi, function)(**{**given, name: Wrong()})


@pytest.mark.parametrize(("name", "value"), [
    ("min_free_memory_fraction", 1.5), ("min_free_memory_fraction", -0.1), ("memory_check_interval", 0),
    ("memory_pause_duration", -1), ("num_workers", 0), ("num_workers", -2), ("parallel", "False"), ("quiet", "no"),
])  # fmt: skip
def test_values_out_of_range_are_named_as_well(name: str, value: Any) -> None:
    for function in ("compute_human_policy_prior", "compute_robot_policy"):
        with pytest.raises((TypeError, ValueError), match=rf"^{name}={value!r}"):
            getattr(empo_bi, function)(**{**GIVEN[function](Path()), name: value})


# --- names that no function has ---------------------------------------------------------------------------------------


def keywords_of(function: Any) -> list[str]:
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, about in inspect.signature(function).parameters.items() if about.kind in by_name]


FUNCTIONS = [
    pytest.param(thing, id=f"{module.__name__}.{name}")
    for module in (empo_bi, empo_bi.analysis, empo_bi.testing, empo_bi.goals)
    for name in module.__all__
    if inspect.isfunction(thing := getattr(module, name)) and name not in ("from_multigrid", "load_world")  # see below
]
CONSTRUCTORS = [
    empo_bi.Params, empo_bi.ArrayWorld, empo_bi.MemoryMonitor, empo_bi.MemoryProfiler, empo_bi.ShortestPathPrior,
    empo_bi.ArrayPrior, goals.ConditionGoal, goals.ReachCellGoal, goals.TabularGoalGenerator,
    goals.TabularGoalSampler, goals.Carries,
]  # fmt: skip


@pytest.mark.parametrize("function", [*FUNCTIONS, *CONSTRUCTORS, Solution.rollouts, events.agent_in, events.thing_gone])
def test_a_misspelt_keyword_is_named_with_the_one_that_was_meant(function: Any) -> None:
    for name in keywords_of(function):
        if len(name) < 4 or name == "self":
            continue
        misspelt = name[:-2] + name[-1]
        with pytest.raises(TypeError, match=rf"{misspelt}'.* Did you mean .*'{name}'"):
            function(**{misspelt: 1})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda world: empo_bi.Params(zetta=2), r"^Params\(\) got .*'zetta'\. Did you mean 'zeta'"),
        (lambda world: empo_bi.Params().replace(zetta=2), r"^Params\(\) got .*'zetta'\. Did you mean 'zeta'"),
        (lambda world: empo_bi.Params(qqq=2), r"'qqq'\. It takes beta_h, gamma_h, .*terminal_Vr\.$"),
        (lambda world: empo_bi.Params(max_step=7), r"if you mean 'max_steps', .* load_world\(\.\.\., max_steps=7\)"),
        (lambda world: solve(world, zeta=2), r"^solve\(\) got .*'zeta'; it is a parameter of the theory: Params\(zeta=2\)"),
        (lambda world: solve(world, zetaa=2), r"'zetaa'; if you mean 'zeta', it is a parameter .*Params\(zeta=2\)"),
        (lambda world: solve(world, max_steps=2), r"the horizon belongs to the world: load_world\(\.\.\., max_steps=2\)"),
        (lambda world: solve(world, memory_limt=2), "Did you mean 'memory_limit'"),
        (lambda world: empo_bi.plan(world, beta_r=2), r"Params\(beta_r=2\)"),
        (lambda world: compute_human_policy_prior(world, [0], zeta=2), r"phase 2: compute_robot_policy"),
        (lambda world: compute_robot_policy(world, [0], [1], beta_h=1), r"phase 1: compute_human_policy_prior"),
        (lambda world: load_world("first_steps", maxsteps=2), "has no option 'maxsteps'. Did you mean 'max_steps'"),
        (lambda world: load_world("first_steps", horizon=2), "has no option 'horizon'. Did you mean 'max_steps'"),
    ],
)
def test_names_that_belong_elsewhere_are_sent_there(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call(load_world("basics/first_steps", max_steps=2))


def test_decorated_functions_keep_their_signatures_and_names() -> None:
    assert empo_bi.plan.__name__ == "plan"
    assert next(iter(inspect.signature(empo_bi.Params).parameters)) == "beta_h"
    assert "progress" in inspect.signature(empo_bi.enumerate_dag).parameters


class Listed:
    """A goal that has an idea of equality, and therefore no hash."""

    def __init__(self, places: list[int]) -> None:
        self.places = places

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listed) and self.places == other.places

    def __repr__(self) -> str:
        return f"Listed({self.places})"

    def is_achieved(self, state: Any) -> bool:
        return False


class Everywhere:
    """A generator that is asked about every state."""

    def generate(self, state: Any, human: int) -> list[tuple[Any, float]]:
        return [(Listed([1, 2]), 1.0)]


@pytest.mark.parametrize("generator", [TabularGoalGenerator([Listed([1, 2])]), Everywhere()])  # type: ignore[list-item]
def test_a_goal_without_a_hash_is_told_with_its_class_and_a_remedy(generator: Any) -> None:
    message = r"^goal Listed\(\[1, 2\]\) is a .*Listed, which cannot be hashed .*; add __eq__ and __hash__ .*frozen=True"
    with pytest.raises(GoalError, match=message):
        solve(Ring(), human_agent_indices=[0, 2], possible_goal_generator=generator, progress=False)
