"""The documented functions: signatures, what they return, what they leave on the world, and what each option does."""

from __future__ import annotations

import gc
import inspect
import itertools
import math
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planning_worlds import At, Patience, Places, Ring, TwoSteps, plain, step_of

import empo_bi.sweep.phases
from empo_bi import (
    MarkovChain,
    MemoryLimitError,
    TabularHumanPolicyPrior,
    TabularRobotPolicy,
    WorldModel,
    compute_human_policy_prior,
    compute_markov_chain_value_function,
    compute_robot_policy,
    load_world,
)
from empo_bi.compat.attainment_cache import AttainmentCache
from empo_bi.store.location import place_of
from empo_bi.store.solution_store import SolutionStore

# --- signatures -------------------------------------------------------------------------------------------------------

REQUIRED = inspect.Parameter.empty
MEMORY_GUARD = {"min_free_memory_fraction": 0.1, "memory_check_interval": 100, "memory_pause_duration": 60.0,
                "memory_profile": False}  # fmt: skip
SIGNATURES: dict[str, tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]] = {
    "phase 1": (
        compute_human_policy_prior,
        {
            "world_model": REQUIRED,
            "human_agent_indices": REQUIRED,
            "possible_goal_generator": None,
            "believed_others_policy": None,
        },
        {
            "beta_h": 10.0,
            "gamma_h": None,
            "rho_h": None,
            "parallel": False,
            "num_workers": None,
            "level_fct": None,
            "return_Vh": False,
            "return_attainment_cache": False,
            "progress_callback": None,
            "quiet": False,
            **MEMORY_GUARD,
            "use_disk_slicing": False,
            "disk_cache_dir": None,
            "use_float16": True,
            "use_compression": False,
            "archive_dir": None,
            "use_attainment_cache": True,
            "optimistic": False,
        },
    ),
    "phase 2": (
        compute_robot_policy,
        {
            "world_model": REQUIRED,
            "human_agent_indices": REQUIRED,
            "robot_agent_indices": REQUIRED,
            "possible_goal_generator": None,
            "human_policy_prior": None,
        },
        {
            "beta_r": 10.0,
            "gamma_h": None,
            "gamma_r": None,
            "rho_h": None,
            "rho_r": None,
            "zeta": 1.0,
            "xi": 1.0,
            "eta": 1.0,
            "terminal_Vr": -1e-10,
            "parallel": False,
            "num_workers": None,
            "level_fct": None,
            "return_values": False,
            "return_markov_chain": False,
            "progress_callback": None,
            "quiet": False,
            **MEMORY_GUARD,
            "sliced_cache": None,
            "archive_dir": None,
            "use_disk_slicing": False,
            "use_compression": False,
            "use_float16": True,
        },
    ),
    "chain values": (
        compute_markov_chain_value_function,
        {"markov_chain": REQUIRED, "rewards": REQUIRED, "gamma": REQUIRED, "states": None},
        {},
    ),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_every_documented_parameter_has_its_kind_its_place_and_its_default(name: str) -> None:
    function, positional, keywords = SIGNATURES[name]
    found = inspect.signature(function).parameters
    first = list(found.values())[: len(positional)]
    assert {parameter.name: parameter.default for parameter in first} == positional
    assert [parameter.name for parameter in first] == list(positional)
    assert {parameter.kind for parameter in first} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    others = {name: parameter for name, parameter in found.items() if name not in positional}
    assert {name: others[name].default for name in keywords} == keywords
    assert all(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in others.values())


@pytest.mark.parametrize("name", SIGNATURES)
def test_additions_of_ours_can_be_left_out(name: str) -> None:
    function, positional, keywords = SIGNATURES[name]
    found = inspect.signature(function).parameters
    assert all(found[ours].default is not REQUIRED for ours in found.keys() - positional.keys() - keywords.keys())


def test_the_first_arguments_may_be_given_by_place_or_by_name() -> None:
    world, goals = TwoSteps(), Places(0.3, 0.7)
    by_place = compute_human_policy_prior(world, [0], goals, None, quiet=True)
    by_name = compute_human_policy_prior(
        world_model=world, human_agent_indices=[0], possible_goal_generator=goals, believed_others_policy=None, quiet=True
    )
    assert plain(by_place.values) == plain(by_name.values)
    policy = compute_robot_policy(world, [0], [1], goals, by_place, quiet=True)
    named = compute_robot_policy(
        world_model=world, human_agent_indices=[0], robot_agent_indices=[1], possible_goal_generator=goals,
        human_policy_prior=by_name, quiet=True,
    )  # fmt: skip
    assert plain(policy.values) == plain(named.values)


# --- the worked example of section 12, through the documented functions -----------------------------------------------


def test_the_worked_example_comes_out_of_the_documented_functions() -> None:
    world = TwoSteps()
    prior, Vh = compute_human_policy_prior(
        world, [0], beta_h=2.0, gamma_h=0.9, use_float16=False, return_Vh=True, quiet=True
    )
    assert plain(Vh) == {}
    assert prior((0, 0), 0, At(1)).tolist() == [0.5, 0.5]
    _, Vr, Vhe, chain = compute_robot_policy(
        world, [0], [1], None, prior, beta_r=3.0, gamma_h=0.9, gamma_r=0.8, zeta=2.0, eta=1.1, use_float16=False,
        return_values=True, return_markov_chain=True, quiet=True,
    )  # fmt: skip
    assert Vr[0, 0] == pytest.approx(-3.064551, abs=6e-7)
    assert Vhe[0, 0][0][At(1)] == pytest.approx(0.413783, abs=6e-7)
    assert At(0) not in Vhe[1, 1][0]
    assert chain[0] == pytest.approx({1: 0.878204, 2: 0.121796}, abs=6e-7)
    assert chain[3:] == [{}, {}]


# --- what is returned -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize(("return_Vh", "return_attainment_cache"), list(itertools.product([False, True], repeat=2)))
def test_phase_1_returns_what_was_asked_for_in_the_documented_order(
    return_Vh: bool, return_attainment_cache: bool, on_disk: bool
) -> None:
    found = compute_human_policy_prior(
        Ring(), [0, 2], return_Vh=return_Vh, return_attainment_cache=return_attainment_cache, use_disk_slicing=on_disk,
        quiet=True,
    )  # fmt: skip
    if not return_Vh and not return_attainment_cache:
        assert isinstance(found, TabularHumanPolicyPrior)
        return
    assert isinstance(found, tuple)
    prior, *others = found
    assert isinstance(prior, TabularHumanPolicyPrior)
    assert len(others) == return_Vh + return_attainment_cache
    if return_Vh:
        assert isinstance(float(others[0][0, 0][0][At(1)]), float)
    if return_attainment_cache:
        assert isinstance(others[-1], AttainmentCache)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize(("return_values", "return_markov_chain"), list(itertools.product([False, True], repeat=2)))
def test_phase_2_returns_what_was_asked_for_in_the_documented_order(
    return_values: bool, return_markov_chain: bool, on_disk: bool
) -> None:
    found = compute_robot_policy(
        Ring(), [0, 2], [1], return_values=return_values, return_markov_chain=return_markov_chain, use_disk_slicing=on_disk,
        quiet=True,
    )  # fmt: skip
    if not return_values and not return_markov_chain:
        assert isinstance(found, TabularRobotPolicy)
        return
    assert isinstance(found, tuple)
    policy, *others = found
    assert isinstance(policy, TabularRobotPolicy)
    assert len(others) == 2 * return_values + return_markov_chain
    if return_values:
        Vr, Vhe = others[:2]
        assert type(Vr[0, 0]) is float
        assert type(Vr[4, 0]) is float  # terminal states have a value, too
        assert 0 < Vhe[0, 0][2][At(1)] <= 1
    if return_markov_chain:
        assert isinstance(others[-1], MarkovChain)
        assert sum(others[-1][0].values()) == pytest.approx(1)


def test_tables_are_keyed_by_state_then_human_then_goal_and_policies_are_float64_arrays() -> None:
    prior, Vh = compute_human_policy_prior(Ring(), [2, 0], return_Vh=True, quiet=True)
    by_human = prior.values[0, 0]
    assert list(by_human) == [2, 0]  # the order of the caller
    assert list(by_human[0]) == [At(0), At(1), At(2), At(3)]
    policy = by_human[0][At(1)]
    assert policy.dtype == np.float64
    assert policy.shape == (2,)
    assert policy.sum() == pytest.approx(1)
    assert Vh[0, 0][0].get(At(0), 0) == 0


def test_robot_profiles_come_with_the_last_robot_changing_fastest() -> None:
    policy = compute_robot_policy(Ring(), [0], [2, 1], quiet=True)
    assert list(policy((0, 0))) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert sum(policy((0, 0)).values()) == pytest.approx(1)


# --- what is left on the world ----------------------------------------------------------------------------------------


def test_phase_1_leaves_the_attainment_cache_on_the_world() -> None:
    world = Ring()
    _, cache = compute_human_policy_prior(world, [0, 2], return_attainment_cache=True, quiet=True)
    assert world._attainment_cache is cache
    assert not hasattr(world, "_disk_dag")


def test_without_an_attainment_cache_the_attribute_is_none() -> None:
    world = Ring()
    compute_human_policy_prior(world, [0, 2], quiet=True)
    prior, cache = compute_human_policy_prior(
        world, [0, 2], use_attainment_cache=False, return_attainment_cache=True, quiet=True
    )
    assert world._attainment_cache is None
    assert cache.num_states() == len(prior.values)


def test_an_existing_attainment_cache_is_filled_again_not_replaced() -> None:
    world = Ring()
    compute_human_policy_prior(world, [0, 2], quiet=True)
    first = world._attainment_cache
    compute_human_policy_prior(world, [0, 2], quiet=True)
    assert world._attainment_cache is first  # engine defect, reported


def test_slicing_to_disk_leaves_the_slices_on_the_world() -> None:
    world = Ring()
    compute_human_policy_prior(world, [0, 2], use_disk_slicing=True, quiet=True)
    assert world._disk_dag.n_states == 17
    assert world._disk_dag.states(0) == [(0, 0)]


def test_slicing_to_disk_clears_what_get_dag_remembers() -> None:
    world = load_world("first_steps")
    world.get_dag()
    compute_human_policy_prior(world, [0], use_disk_slicing=True, quiet=True)
    assert world._dag_cache is None  # engine defect, reported


def test_the_attainment_cache_tells_attainments_of_successors_in_transition_order() -> None:
    world = Ring()
    _, cache = compute_human_policy_prior(world, [0, 2], return_attainment_cache=True, quiet=True)
    # profile 1 is (1, 0, 0), with agent 0 as the least significant digit: the first of three successors is in place 1
    assert cache.get(0, 1, At(1)).tolist() == [1, 0, 0]
    assert cache.get(0, 0, At(1)).tolist() == [0, 0, 0]
    assert cache.get(0, 1, At(0)) is None  # attained already
    assert cache.get(16, 0, At(1)) is None  # terminal
    assert cache.num_states() == sum(1 for t in range(4) for place in range(3) if (t, place) == (0, 0) or t > 0)


class Walk(WorldModel):
    """A world with a present state, derived from the base class."""

    agents = ("human",)
    human_agent_indices = [0]  # noqa: RUF012 (as in the base class)

    def __init__(self) -> None:
        self.action_space = TwoSteps.action_space
        self.possible_goal_generator = Places(1.0, 1.0, 1.0)
        self._at = (0, 0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self._at = (0, 0)
        return self._at, {}

    def get_state(self) -> Any:
        return self._at

    def set_state(self, state: Any) -> None:
        self._at = state

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if state[0] == 2 else [(1.0, (state[0] + 1, state[1] + actions[0]))]


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("make", [Walk, lambda: load_world("first_steps")], ids=["python", "gridworld"])
def test_both_phases_leave_the_world_in_its_initial_state(make: Callable[[], Any], on_disk: bool) -> None:
    world = make()
    start = world.initial_state()
    world.step([1])
    assert world.get_state() != start
    compute_human_policy_prior(world, [0], use_disk_slicing=on_disk, quiet=True)
    assert world.get_state() == start
    world.step([1])
    compute_robot_policy(world, [0], [], use_disk_slicing=on_disk, quiet=True)
    assert world.get_state() == start


@pytest.mark.parametrize("make", [Walk, Ring, lambda: load_world("first_steps")], ids=["model", "plain", "gridworld"])
def test_a_world_that_was_played_between_the_phases_is_still_the_same_world(make: Callable[[], Any]) -> None:
    world = make()
    prior = compute_human_policy_prior(world, [0], quiet=True)
    if hasattr(world, "step"):
        world.step([1])
    else:
        world.state = (1, 1)
    policy = compute_robot_policy(world, [0], [], None, prior, quiet=True)
    assert world.get_state() == world.initial_state()
    assert len(policy.values) == len(prior.values)


class Busy(Ring):
    """A world that counts how often it is asked, as those do that remember their answers."""

    def __init__(self) -> None:
        super().__init__()
        self.n_asked = 0

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        self.n_asked += 1
        return super().transition_probabilities(state, actions)

    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> list[float]:
        return [2.0] * len(transitions)


@pytest.mark.parametrize("discount", [{}, {"gamma_h": 0.9}], ids=str)
def test_a_world_that_was_asked_between_the_phases_is_still_the_same_world(discount: dict[str, float]) -> None:
    world = Busy()
    prior = compute_human_policy_prior(world, [0, 2], quiet=True, **discount)  # with a discount, durations are asked for
    world.transition_probabilities((0, 0), [0, 0, 0])
    policy = compute_robot_policy(world, [0, 2], [1], None, prior, quiet=True, **discount)
    assert len(policy.values) == len(prior.values)


# --- progress ---------------------------------------------------------------------------------------------------------

WORLDS: dict[str, Callable[[], Any]] = {
    "terminal states on several levels": Ring,
    "section 12": TwoSteps,
    "gridworld": lambda: load_world("first_steps", max_steps=4),
    "one state": lambda: TwoSteps(steps=0),
}
STORAGE: dict[str, dict[str, Any]] = {
    "in memory": {},
    "on disk": {"use_disk_slicing": True},
    "on disk, levels given": {"use_disk_slicing": True, "level_fct": step_of},
}


def both_phases(world: Any, one: dict[str, Any], two: dict[str, Any] | None = None) -> dict[str, Any]:
    """All numbers of both phases; ``one`` and ``two`` are the options of the phases."""
    humans, robots = list(world.human_agent_indices), list(world.robot_agent_indices)
    prior, Vh = compute_human_policy_prior(world, humans, return_Vh=True, **{"quiet": True} | one)
    policy, Vr, Vhe, chain = compute_robot_policy(
        world, humans, robots, None, prior, return_values=True, return_markov_chain=True,
        **{"quiet": True} | (one if two is None else two),
    )  # fmt: skip
    views = {"prior": prior.values, "Vh": Vh, "policy": policy.values, "Vr": Vr, "Vhe": Vhe}
    return {name: plain(view) for name, view in views.items()} | {"chain": list(chain)}


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("world", WORLDS)
def test_the_callback_is_called_once_per_state_with_one_to_the_number_of_states(world: str, storage: str) -> None:
    calls: list[tuple[str, int, int]] = []
    both_phases(
        WORLDS[world](),
        STORAGE[storage] | {"progress_callback": lambda done, total: calls.append(("phase 1", done, total))},
        STORAGE[storage] | {"progress_callback": lambda done, total: calls.append(("phase 2", done, total))},
    )
    n_states = {"terminal states on several levels": 17, "section 12": 5, "one state": 1}.get(world)
    if n_states is None:
        n_states = len(WORLDS[world]().get_dag()[0])
    assert calls == [(phase, i, n_states) for phase in ("phase 1", "phase 2") for i in range(1, n_states + 1)]


def test_the_callback_is_called_also_where_a_finished_store_is_used_again(tmp_path: Path) -> None:
    for _ in range(2):
        calls: list[tuple[int, int]] = []
        compute_human_policy_prior(
            Ring(), [0, 2], use_disk_slicing=True, disk_cache_dir=tmp_path, quiet=True,
            progress_callback=lambda done, total, calls=calls: calls.append((done, total)),
        )  # fmt: skip
        assert calls == [(i, 17) for i in range(1, 18)]


@pytest.mark.parametrize("storage", [*STORAGE, "in a folder"])
def test_the_callback_is_called_once_per_state_also_where_levels_are_solved_twice(
    storage: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With so steep a discount, the human's values are too small for float32, and all is done again in float64."""
    levels: dict[str, set[int]] = {"float32": set(), "float64": set()}
    run = empo_bi.sweep.phases.RobotPhase.run

    def watched_run(self: Any, work: Any, *arguments: Any) -> None:
        levels[self.setting.precision.work].add(work.t)
        run(self, work, *arguments)

    monkeypatch.setattr(empo_bi.sweep.phases.RobotPhase, "run", watched_run)
    options = STORAGE.get(storage, {"use_disk_slicing": True, "disk_cache_dir": tmp_path})
    for _ in range(2):  # in a folder, the second time finds everything there
        calls: list[tuple[int, int]] = []
        compute_robot_policy(
            Patience(6), [0], [1], gamma_h=1e-8, quiet=True,
            progress_callback=lambda done, total, calls=calls: calls.append((done, total)), **options,
        )  # fmt: skip
        assert calls == [(i, 13) for i in range(1, 14)]
    assert levels == {"float32": {5, 4, 3, 2, 1}, "float64": {5, 4, 3, 2, 1, 0}}


@pytest.mark.parametrize("storage", STORAGE)
def test_quiet_prints_nothing(storage: str, capfd: pytest.CaptureFixture[str]) -> None:
    both_phases(Ring(), {"quiet": True, "memory_profile": True, **STORAGE[storage]})
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("storage", STORAGE)
def test_what_is_not_quiet_works_outside_a_terminal_and_keeps_stdout_clean(
    storage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    found = both_phases(Ring(), {"quiet": False, **STORAGE[storage]})
    assert found == both_phases(Ring(), {"quiet": True, **STORAGE[storage]})
    assert capfd.readouterr().out == ""


def test_a_memory_profile_tells_each_level_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    compute_human_policy_prior(Ring(), [0, 2], memory_profile=True, quiet=False)
    told = [line for line in capfd.readouterr().err.splitlines() if "MB" in line]
    assert [line.split(":")[1].strip() for line in told] == [f"level {t}" for t in (4, 3, 2, 1, 0)]


def test_derived_levels_are_mentioned_on_stderr_unless_levels_are_given_or_it_is_quiet(
    capfd: pytest.CaptureFixture[str],
) -> None:
    compute_human_policy_prior(Ring(), [0, 2], use_disk_slicing=True)
    assert "no level_fct was given; levels are derived" in capfd.readouterr().err
    compute_robot_policy(Ring(), [0, 2], [1], use_disk_slicing=True)
    assert "no level_fct was given; levels are derived" in capfd.readouterr().err
    compute_human_policy_prior(Ring(), [0, 2], use_disk_slicing=True, level_fct=step_of)
    compute_human_policy_prior(Ring(), [0, 2])
    compute_human_policy_prior(load_world("first_steps", max_steps=2), [0], use_disk_slicing=True)
    assert "level_fct" not in capfd.readouterr().err


# --- several workers --------------------------------------------------------------------------------------------------


def watched(kernel: Callable[..., Any], names: set[str]) -> Callable[..., Any]:
    """The kernel, with a note of the threads that call it; the first two of a pool wait for each other.

    Otherwise one quick thread might do all the work, and nobody could tell whether there was a second one.
    """
    both, have_met = threading.Barrier(2, timeout=60), threading.Event()

    def call(*args: Any) -> Any:
        names.add(threading.current_thread().name)
        if threading.current_thread() is not threading.main_thread() and not have_met.is_set():
            both.wait()
            have_met.set()
        return kernel(*args)

    return call


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Many small blocks, and the names of the threads that compute them, by phase."""
    names: dict[str, set[str]] = {"phase 1": set(), "phase 2": set()}
    monkeypatch.setattr("empo_bi.sweep.memory_model.BLOCK_STATES", 4)
    for phase, kernel in (("phase 1", "human_block"), ("phase 2", "robot_block")):
        original = getattr(empo_bi.sweep.phases, kernel)
        monkeypatch.setattr(empo_bi.sweep.phases, kernel, watched(original, names[phase]))
    return names


@pytest.mark.parametrize("on_disk", [False, True])
def test_parallel_work_is_done_by_threads_and_gives_the_same_numbers(
    small_blocks: dict[str, set[str]], on_disk: bool
) -> None:
    world = load_world("side_by_side", max_steps=2)
    alone = both_phases(world, {"use_disk_slicing": on_disk, "num_workers": 2})
    assert small_blocks == {"phase 1": {"MainThread"}, "phase 2": {"MainThread"}}
    together = both_phases(world, {"use_disk_slicing": on_disk, "parallel": True, "num_workers": 2})
    for names in small_blocks.values():
        assert len(names - {"MainThread"}) >= 2
    assert together == alone


def test_the_number_of_workers_may_be_left_to_the_machine(
    small_blocks: dict[str, set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("joblib.cpu_count", lambda *_, **__: 2)
    world = load_world("side_by_side", max_steps=2)
    compute_human_policy_prior(world, [0], parallel=True, quiet=True)
    assert len(small_blocks["phase 1"] - {"MainThread"}) == 2


# --- slices on disk ---------------------------------------------------------------------------------------------------

PRECISION = [{"use_float16": half, "use_compression": not half} for half in (True, False)]
SLICED_WORLDS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "gridworld": (lambda: load_world("side_by_side", max_steps=2), {}),
    "python, levels derived": (Ring, {}),
    "python, levels given": (Ring, {"level_fct": step_of}),
    "python, levels negative and with gaps": (Ring, {"level_fct": lambda state: 3 * state[0] - 7}),
}


@pytest.mark.parametrize("precision", PRECISION, ids=lambda options: " ".join(f"{k}={v}" for k, v in options.items()))
@pytest.mark.parametrize("case", SLICED_WORLDS)
def test_slices_on_disk_give_the_numbers_of_memory(case: str, precision: dict[str, Any], tmp_path: Path) -> None:
    make, options = SLICED_WORLDS[case]
    in_memory = both_phases(make(), {"use_float16": precision["use_float16"], **options})
    sliced = precision | options | {"use_disk_slicing": True}
    assert both_phases(make(), sliced) == in_memory
    assert both_phases(make(), sliced | {"disk_cache_dir": tmp_path}) == in_memory
    assert both_phases(make(), sliced, precision | options) == in_memory, "phase 1 alone on disk"
    assert both_phases(make(), precision | options, sliced) == in_memory, "phase 2 alone on disk"


def test_slices_of_another_horizon_are_not_taken_for_those_of_this_one(tmp_path: Path) -> None:
    options = {"use_disk_slicing": True, "disk_cache_dir": tmp_path, "level_fct": step_of}
    for make in (Ring, lambda steps: load_world("first_steps", max_steps=steps)):
        old = make(3)
        both_phases(old, options)
        new = make(4)
        new._attainment_cache, new._disk_dag = old._attainment_cache, old._disk_dag
        expected = both_phases(make(4), {"level_fct": step_of})
        assert both_phases(new, options) == expected
        policy = compute_robot_policy(
            new, new.human_agent_indices, new.robot_agent_indices, sliced_cache=old._attainment_cache, quiet=True, **options
        )
        assert policy.values.keys() == expected["policy"].keys()


def test_a_world_whose_horizon_changes_between_calls_is_enumerated_anew(tmp_path: Path) -> None:
    world = Ring(3)
    options = {"use_disk_slicing": True, "disk_cache_dir": tmp_path}
    both_phases(world, options)
    world.steps = 4
    assert both_phases(world, options) == both_phases(Ring(4), {})


def test_slices_in_memory_and_on_disk_differ_in_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    compute_human_policy_prior(Ring(), [0, 2], quiet=True)
    assert list(tmp_path.rglob("level_*")) == []
    world = Ring()
    prior = compute_human_policy_prior(world, [0, 2], use_disk_slicing=True, quiet=True)
    assert len(list((tmp_path / "temporary").iterdir())) > 0
    del prior, world
    gc.collect()
    assert list((tmp_path / "temporary").iterdir()) == [], "a temporary folder goes with the result"


@pytest.mark.parametrize("packed", [True, False])
def test_compression_is_a_matter_of_the_files(tmp_path: Path, packed: bool) -> None:
    compute_human_policy_prior(
        Ring(), [0, 2], use_disk_slicing=True, disk_cache_dir=tmp_path, use_compression=packed, quiet=True
    )
    files = [path.read_text() for path in tmp_path.rglob("zarr.json")]
    assert any('"succ_K"' in text or '"codecs"' in text for text in files)
    assert any('"blosc"' in text for text in files) == packed


def test_half_precision_moves_values_a_little_and_double_precision_not_at_all() -> None:
    exact, half = (
        both_phases(Ring(), {"use_float16": flag, "beta_h": 1.5, "optimistic": True}, {}) for flag in (False, True)
    )
    again = both_phases(Ring(), {"use_float16": False, "beta_h": 1.5, "optimistic": True}, {})
    assert exact == again
    assert exact["Vh"] != half["Vh"]
    worst = max(
        abs(value - half["Vh"][state][human][goal])
        for state, by_human in exact["Vh"].items()
        for human, by_goal in by_human.items()
        for goal, value in by_goal.items()
    )
    assert 0 < worst < 5e-4


ASKED: list[Any] = []  # outside the world, so that the world stays the same


class Counted(Ring):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        ASKED.append(state)
        return super().transition_probabilities(state, actions)


@pytest.fixture
def asked() -> Iterator[list[Any]]:
    ASKED.clear()
    yield ASKED
    ASKED.clear()


def test_phase_2_uses_the_slices_of_phase_1(asked: list[Any]) -> None:
    world = Counted()
    _, cache = compute_human_policy_prior(world, [0, 2], return_attainment_cache=True, use_disk_slicing=True, quiet=True)
    assert asked
    world._attainment_cache = None
    for options in ({"sliced_cache": cache}, {}):
        asked.clear()
        compute_robot_policy(world, [0, 2], [1], use_disk_slicing=True, quiet=True, **options)
        assert not asked, options  # the world has the DAG, too
    world._attainment_cache = cache
    asked.clear()
    compute_robot_policy(world, [0, 2], [1], use_disk_slicing=True, quiet=True)
    assert not asked


class CountedWalk(Walk):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        ASKED.append(state)
        return super().transition_probabilities(state, actions)


def test_phase_2_uses_the_slices_of_phase_1_also_for_worlds_derived_from_the_base_class(asked: list[Any]) -> None:
    world = CountedWalk()
    prior = compute_human_policy_prior(world, [0], quiet=True)
    asked.clear()
    compute_robot_policy(world, [0], [], None, prior, quiet=True)
    assert not asked


def test_what_is_in_the_cache_folder_is_used_again(asked: list[Any], tmp_path: Path) -> None:
    options = {"use_disk_slicing": True, "disk_cache_dir": tmp_path, "level_fct": step_of, "quiet": True}
    first = compute_human_policy_prior(Counted(), [0, 2], **options)
    n_asked = len(asked)
    asked.clear()
    second = compute_human_policy_prior(Counted(), [0, 2], **options)
    assert len(asked) < n_asked / 4  # a few states are asked about, to see whether the world is still the same
    assert plain(second.values) == plain(first.values)


class OwnWeights:
    """Goals with weights from a function, which tells nothing of itself to other processes."""

    def __init__(self, weight_of: Callable[[int], float]) -> None:
        self.weight_of = weight_of

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[At, float]]:
        for place in range(4):
            yield At(place), self.weight_of(place)


class OwnPrior:
    """The first human does what a function says, the second one nothing."""

    def __init__(self, chance_of: Callable[[int], float]) -> None:
        self.chance_of = chance_of

    def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
        return [(self.chance_of(action), [action, 0]) for action in (0, 1)]

    def profile_distribution_with_fixed_goal(self, state: Any, human: int, goal: Any) -> list[tuple[float, list[int]]]:
        return self.profile_distribution(state)


class Wrapper:
    """Answers for another object, and can also be called, as a function of a state can."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, *_: Any) -> Any:
        pytest.fail("it was taken for a plain function")


def test_a_prior_that_answers_for_another_object_is_one() -> None:
    world, prior = Ring(), OwnPrior(lambda action: 0.1 + 0.8 * action)
    options: dict[str, Any] = {"return_values": True, "quiet": True}
    expected, found = (
        compute_robot_policy(world, [0, 2], [1], None, given, **options)[1] for given in (prior, Wrapper(prior))
    )
    assert plain(found) == plain(expected)


def believed(action: int) -> Any:
    return lambda state, human, own: [(1.0, [action, action, action])]


FUNCTIONS: dict[str, Callable[[Any, Any], dict[str, Any]]] = {
    "goals": lambda world, options: plain(
        compute_robot_policy(world, [0, 2], [1], options.pop("user"), return_values=True, **options)[1]
    ),
    "a prior": lambda world, options: plain(
        compute_robot_policy(world, [0, 2], [1], None, options.pop("user"), return_values=True, **options)[1]
    ),
    "a belief": lambda world, options: plain(
        compute_human_policy_prior(world, [0, 1, 2], None, options.pop("user"), return_Vh=True, **options)[1]
    ),
}
USERS: dict[str, tuple[Any, Any]] = {
    "goals": (OwnWeights(lambda place: 1.0), OwnWeights(lambda place: 1.0 + place)),
    "a prior": (OwnPrior(lambda action: 0.5), OwnPrior(lambda action: 0.1 + 0.8 * action)),
    "a belief": (believed(0), believed(1)),
}


@pytest.mark.parametrize("where", ["disk_cache_dir", "archive_dir"])
@pytest.mark.parametrize("what", FUNCTIONS)
def test_results_of_another_function_of_the_user_are_never_taken_for_those_of_this_one(
    what: str, where: str, tmp_path: Path
) -> None:
    options = {where: tmp_path, "use_disk_slicing": where == "disk_cache_dir", "use_float16": False, "quiet": True}
    first, second = USERS[what]
    before = FUNCTIONS[what](Ring(), {"user": first, **options})
    after = FUNCTIONS[what](Ring(), {"user": second, **options})
    expected = FUNCTIONS[what](Ring(), {"user": second, "use_float16": False, "quiet": True})
    assert expected != before
    assert after == expected


# --- archives ---------------------------------------------------------------------------------------------------------


def archived(folder: Path, name: str) -> list[list[Any]]:
    store = SolutionStore.open(place_of(folder))
    horizon = int(store.manifest["horizon"])
    return [store.get(t, name).tolist() for t in range(horizon + 1)]


@pytest.mark.parametrize("on_disk", [False, True])
def test_an_archive_is_complete_has_the_returned_values_and_is_replaced_by_the_next_run(
    tmp_path: Path, on_disk: bool
) -> None:
    for gamma_r in (0.5, 0.9):
        world = Ring()
        options = {"archive_dir": tmp_path, "use_disk_slicing": on_disk, "use_float16": False}
        found = both_phases(world, options, options | {"gamma_r": gamma_r})
        assert found == both_phases(Ring(), {"use_float16": False}, {"use_float16": False, "gamma_r": gamma_r})
        levels = [sorted({state for state in found["Vr"] if state[0] == t}) for t in range(5)]
        values = archived(tmp_path / "robot_values", "vr")
        assert [sorted(level) for level in values] == [sorted(found["Vr"][state] for state in states) for states in levels]
        human = archived(tmp_path / "human_values", "vh")
        assert [len(level) for level in human] == [len(states) for states in levels]
        expected = [value for by_human in found["Vh"].values() for row in by_human.values() for value in row.values()]
        assert sorted(x for x in np.concatenate([np.ravel(level) for level in human]).tolist() if x) == sorted(expected)


# --- every option has an effect ---------------------------------------------------------------------------------------

ONE: dict[str, Any] = {
    "beta_h": 3.0,
    "gamma_h": 0.5,
    "rho_h": 0.5,
    "optimistic": True,
    "believed_others_policy": believed(1),
    "possible_goal_generator": Places(0.5, 0.5, 0.0, 0.0),
}
TWO: dict[str, Any] = {
    "beta_r": 3.0,
    "gamma_h": 0.5,
    "rho_h": 0.5,
    "gamma_r": 0.5,
    "rho_r": 0.5,
    "zeta": 2.0,
    "xi": 2.0,
    "eta": 2.0,
    "terminal_Vr": -3.0,
    "possible_goal_generator": Places(0.5, 0.5, 0.1, 0.1),
    "human_policy_prior": OwnPrior(lambda action: 0.1 + 0.8 * action),
}


@pytest.mark.parametrize("option", ONE)
def test_every_parameter_of_phase_1_changes_the_numbers(option: str) -> None:
    # With one agent that is no human, the pessimist has something to fear; with two humans, beliefs matter.
    def marginals(options: dict[str, Any]) -> Any:
        prior = compute_human_policy_prior(Ring(), [0, 2], quiet=True, use_float16=False, **options)
        return {state: [prior(state, human).tolist() for human in (0, 2)] for state in prior.values}

    common: dict[str, Any] = {} if option == "optimistic" else {"optimistic": True}
    assert marginals(common | {option: ONE[option]}) != marginals(common)


@pytest.mark.parametrize("option", TWO)
def test_every_parameter_of_phase_2_changes_the_numbers(option: str) -> None:
    def values(options: dict[str, Any]) -> Any:
        return plain(compute_robot_policy(Ring(), [0, 2], [1], return_values=True, quiet=True, **options)[1])

    assert values({option: TWO[option]}) != values({})


def test_a_factor_and_the_rate_that_belongs_to_it_are_the_same_discount() -> None:
    options = [{"gamma_h": 0.8, "gamma_r": 0.7}, {"rho_h": -math.log(0.8), "rho_r": -math.log(0.7)}]
    found = [both_phases(Ring(), {}, given) for given in options]
    assert found[0] == found[1]


def test_a_level_function_is_asked_about_python_worlds() -> None:
    asked: set[Any] = set()

    def level_fct(state: Any) -> int:
        asked.add(state)
        return step_of(state)

    prior = compute_human_policy_prior(Ring(), [0, 2], level_fct=level_fct, quiet=True)
    assert asked >= set(prior.values)


def test_a_memory_limit_below_what_python_takes_stops_the_run() -> None:
    with pytest.raises(MemoryLimitError, match="memory_limit=1 MB"):
        compute_human_policy_prior(Ring(), [0, 2], memory_limit=1_000_000, quiet=True)
    with pytest.raises(MemoryLimitError, match="memory_limit=1 MB"):
        compute_robot_policy(Ring(), [0, 2], [1], memory_limit=1_000_000, quiet=True)


# --- phase 1 within phase 2 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("discount", [{"gamma_h": 0.5}, {"rho_h": 1.0}, {}], ids=str)
def test_without_a_prior_phase_2_takes_that_of_phase_1_with_its_own_defaults(discount: dict[str, float]) -> None:
    world = Ring()

    def values(prior: Any) -> Any:
        found = compute_robot_policy(
            world, [0, 2], [1], None, prior, return_values=True, return_markov_chain=True, quiet=True, **discount
        )
        return [plain(found[0].values), plain(found[1]), plain(found[2]), list(found[3])]

    default = compute_human_policy_prior(world, [0, 2], quiet=True)
    assert values(None) == values(default)
    for other in ({"gamma_h": 0.5}, {"beta_h": 2.0}, {"optimistic": True}):
        prior = compute_human_policy_prior(world, [0, 2], quiet=True, **other)
        assert values(None) != values(prior), "the prior matters in this world"


def test_a_goal_generator_given_to_phase_2_is_that_of_its_phase_1() -> None:
    goals = Places(0.1, 0.1, 0.1, 0.9)
    prior = compute_human_policy_prior(Ring(), [0, 2], goals, quiet=True)
    given, own = (
        compute_robot_policy(Ring(), [0, 2], [1], goals, chosen, return_values=True, quiet=True)[1]
        for chosen in (prior, None)
    )
    assert plain(own) != plain(compute_robot_policy(Ring(), [0, 2], [1], return_values=True, quiet=True)[1])
    assert plain(own) == plain(given)


def test_a_prior_used_with_other_goals_is_asked_about_them() -> None:
    prior = compute_human_policy_prior(Ring(), [0, 2], Places(1.0, 1.0, 1.0, 1.0), optimistic=True, quiet=True)
    fewer = Places(0.5, 0.2, 0.1, 0.1)
    _, _, Vhe = compute_robot_policy(Ring(), [0, 2], [1], fewer, prior, return_values=True, quiet=True)
    table = TabularHumanPolicyPrior(Ring(), [0, 2], Places(1.0, 1.0, 1.0, 1.0), prior.values.to_dict())
    _, _, expected = compute_robot_policy(Ring(), [0, 2], [1], fewer, table, return_values=True, quiet=True)
    assert plain(Vhe) == plain(expected)


def test_complaints_about_memory_recommend_switches_of_the_documented_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise MemoryLimitError("What would fit: results on disk (out=PATH or True); precision='float16'")

    monkeypatch.setattr("empo_bi.solving.memory_advice.sizes_for", refuse)
    with pytest.raises(MemoryLimitError, match=r"results on disk \(use_disk_slicing=True\); use_float16=True"):
        compute_human_policy_prior(Ring(), [0, 2], quiet=True)
    with pytest.raises(MemoryLimitError, match=r"results on disk \(out=PATH or True\); precision='float16'"):
        empo_bi.solve(Ring(), human_agent_indices=[0, 2], robot_agent_indices=[1], progress=False)
