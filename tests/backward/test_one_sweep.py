"""One sweep serves everything: whoever computes, wherever results rest, whatever else is solved along, bits are the same."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from planning_worlds import Places
from store_tools import step_of

from empo_bi import Params, Solution, compute_human_policy_prior, compute_robot_policy, enumerate_dag, load_world, solve
from empo_bi.sweep import backward_pass as sweep
from empo_bi.sweep import phases

# --- worlds -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class In:
    """The goal of being in a cell, whoever has it."""

    cell: int

    def is_achieved(self, state: Any) -> bool:
        return bool(state[1] == self.cell)


class Cells:
    """All cells of a ring, so that whatever happens somebody attains something."""

    def __init__(self, first_weight: float = 0.5) -> None:
        self.first_weight = first_weight

    def generate(self, state: Any, human: int) -> Iterator[tuple[In, float]]:
        for cell in range(7):
            yield In(cell), self.first_weight if cell == 0 else 0.25


class NearCells(Cells):
    """Goals that depend on the state: the own cell and those that can be next."""

    def generate(self, state: Any, human: int) -> Iterator[tuple[In, float]]:
        yield In(state[1]), 0.25
        yield In((state[1] + 1) % 7), 0.5 + 0.125 * (human == 1)
        yield In((state[1] + 3) % 7), 0.375


class Ring:
    """Two humans share a cart on a ring of seven cells, and a robot opens and closes the way; thirds do not fit any float.

    States are (step, cell, whether the way is open).
    """

    n_agents = 3
    action_space = SimpleNamespace(n=2)
    human_agent_indices = (0, 2)
    robot_agent_indices = (1,)

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.possible_goal_generator = Cells()

    def initial_state(self) -> Any:
        return (0, 0, True)

    def _after(self, state: Any, actions: Any) -> list[tuple[float, int, int]]:
        """Probability, steps taken, cell."""
        _, cell, is_open = state
        push = actions[0] + 2 * actions[2]
        if push == 0 or not is_open:
            return [(1.0, 1, cell)]
        return [(2 / 3, 1, (cell + push) % 7), (1 / 3, 1, cell)]

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        if state[0] == self.steps:
            return None
        is_open = bool(state[2]) != (actions[1] == 1)
        ends = [(p, (min(state[0] + n, self.steps), cell, is_open)) for p, n, cell in self._after(state, actions)]
        return [(sum(p for p, end in ends if end == each), each) for each in dict.fromkeys(end for _, end in ends)]


class LeapingRing(Ring):
    """The same with leaps of three steps: a level leads to several others."""

    def _after(self, state: Any, actions: Any) -> list[tuple[float, int, int]]:
        plain = super()._after(state, actions)
        return plain if actions[0] == 0 else [(2 * p / 3, n, cell) for p, n, cell in plain] + [(1 / 3, 3, state[1])]


class SlowRing(LeapingRing):
    """And a leap takes as long as the steps that it replaces, which only the world can tell."""

    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> list[float]:
        return [float(successor[0] - state[0]) for _, successor in transitions]


class SteadyRing(Ring):
    """Bodies are shared, and cell 6 is a dead end, so that states end on all levels."""

    time_homogeneous = True

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if state[1] == 6 else super().transition_probabilities(state, actions)


def negative_gaps(state: Any) -> int:
    return 5 * int(state[0]) - 7


Made = tuple[Any, dict[str, Any]]  # a world, and options to solve it with

WORLDS: dict[str, Callable[[], Made]] = {
    "nested levels": lambda: (load_world("asymmetric_freeing", max_steps=4), {}),
    "levels not nested": lambda: (load_world("carousel", max_steps=5), {}),
    "chances": lambda: (load_world("ice_rink", max_steps=3), {}),
    "skipped levels": lambda: (LeapingRing(6), {"level_fct": step_of}),
    "levels with gaps": lambda: (LeapingRing(6), {"level_fct": negative_gaps}),
    "derived levels": lambda: (LeapingRing(6), {}),
    "durations": lambda: (SlowRing(6), {"level_fct": step_of}),
    "time-homogeneous": lambda: (SteadyRing(6), {}),
    "goals that depend on the state": lambda: (
        LeapingRing(6),
        {"possible_goal_generator": NearCells(), "level_fct": step_of},
    ),
}
every_world = pytest.mark.parametrize("kind", WORLDS)
most_worlds = pytest.mark.parametrize(
    "kind", [kind for kind in WORLDS if kind not in ("chances", "skipped levels", "levels with gaps")]
)

PARAMS = Params(beta_h=7.0, gamma_h=0.97, gamma_r=0.93, zeta=1.7, xi=1.2, eta=1.1)


# --- what is compared -------------------------------------------------------------------------------------------------

PHASE_1, PHASE_2 = ("vh",), ("ve", "xh", "qr", "vr")


def bits(array: Any) -> tuple[str, tuple[int, ...], bytes]:
    """Tells 0.0 from -0.0, and float16 from float32."""
    return str(array.dtype), array.shape, array.tobytes()


def at_rest(solution: Solution, names: tuple[str, ...] = PHASE_1 + PHASE_2) -> dict[tuple[int, str], Any]:
    levels = range(solution.dag.horizon + 1)
    return {(t, name): bits(solution.results.get(t, name)) for t in levels for name in names}


def derived(solution: Solution) -> dict[tuple[int, str], Any]:
    """What is computed when it is asked for, from what rests."""
    found = {}
    for t in range(solution.dag.horizon + 1):
        found[t, "pi_h"] = bits(solution.pi_h[t])
        if solution.has_robot:
            found[t, "pi_r"] = bits(solution.pi_r[t])
            found[t, "U_r"] = bits(solution.values.U_r[t])
    return found


def assert_same(found: Solution, expected: Solution, names: tuple[str, ...] = PHASE_1 + PHASE_2) -> None:
    ours, theirs = at_rest(found, names), at_rest(expected, names)
    other = [place for place, array in theirs.items() if ours.get(place) != array]
    assert not other, f"(level, array) that differ: {other}"
    assert found.dag.level_sizes == expected.dag.level_sizes


def solved(kind: str, params: Any = PARAMS, **options: Any) -> Any:
    world, more = WORLDS[kind]()
    return solve(world, params, progress=False, **{**more, **options})


@pytest.fixture
def block_states(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the size of blocks."""
    return partial(monkeypatch.setattr, "empo_bi.sweep.memory_model.BLOCK_STATES")


# --- who computes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "precision"),
    [*((kind, "float16") for kind in WORLDS), ("chances", "float64"), ("durations", "float64")],
)
def test_workers_and_sizes_of_blocks_do_not_change_a_bit(
    kind: str, precision: str, block_states: Callable[[int], None]
) -> None:
    expected = solved(kind, precision=precision)
    lazily = derived(expected)
    for size, workers in ((1, 1), (5, 2), (64, 2)):
        block_states(size)
        found = solved(kind, precision=precision, workers=workers)
        assert_same(found, expected)
        assert derived(found) == lazily, (size, workers)


def test_two_workers_are_two_threads_at_a_time(block_states: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the tests above would compare one thread with itself."""
    expected = solved("nested levels")
    plain, meeting = phases.HumanPhase.run, threading.Barrier(2)
    met: list[int] = []
    others: list[int] = []

    def run(self: Any, work: Any, **options: Any) -> Any:
        me = threading.get_ident()
        if me != threading.main_thread().ident:
            others.append(me)
            if not met and me not in others[:-1]:
                meeting.wait(timeout=60)  # nobody gets past it alone
                met.append(me)
        return plain(self, work, **options)

    monkeypatch.setattr(phases.HumanPhase, "run", run)
    block_states(10)
    assert_same(solved("nested levels", workers=2), expected)
    assert len(set(met)) == 2
    others.clear()
    assert_same(solved("nested levels", workers=1), expected)
    assert others == []


def test_small_blocks_are_really_used(block_states: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    plain = sweep.run_block

    def run(work: Any, tasks: Any, setting: Any) -> None:
        sizes.append(len(work.slot_M))
        plain(work, tasks, setting)

    monkeypatch.setattr(sweep, "run_block", run)
    for size in (1, 5, 1 << 20):
        sizes.clear()
        block_states(size)
        solution = solved("chances")
        goes_on = sum(int((solution.Q_r[t] < 0).all(axis=1).sum()) for t in range(solution.dag.horizon + 1))
        assert sum(sizes) == goes_on
        assert max(sizes) <= size
        assert (size == 1 << 20) == (len(sizes) < 20)


# --- where results rest -----------------------------------------------------------------------------------------------


@most_worlds
def test_memory_folders_and_temporary_folders_hold_the_same_bits(
    kind: str, tmp_path: Path, block_states: Callable[[int], None]
) -> None:
    expected = solved(kind)
    lazily = derived(expected)
    for name, size, options in (
        ("folder", 1024, {"out": tmp_path / "folder"}),
        ("folder, found there", 1024, {"out": tmp_path / "folder"}),
        ("folder, plain", 1024, {"out": str(tmp_path / "plain"), "compression": False}),
        ("everything at once", 6, {"out": tmp_path / "all", "compression": 9, "memory_limit": 0.9, "workers": 2}),
        ("temporary, everything at once", 6, {"out": True, "compression": False, "memory_limit": "4GB", "workers": 2}),
    ):
        block_states(size)
        with solved(kind, **options) as found:
            assert_same(found, expected)
            assert derived(found) == lazily, name


@pytest.mark.parametrize("kind", ["nested levels", "skipped levels", "derived levels", "time-homogeneous"])
def test_a_dag_that_was_made_before_gives_the_same_bits(kind: str, tmp_path: Path) -> None:
    expected = solved(kind)
    world, options = WORLDS[kind]()
    level_fct = {name: options[name] for name in options if name == "level_fct"}
    for store in (None, tmp_path / "dag", True):
        dag = enumerate_dag(world, store=store, precision="exact", progress=False, **level_fct)
        found = solve(world, PARAMS, dag=dag, progress=False)
        assert_same(found, expected)
        assert derived(found) == derived(expected)


# --- several sets of parameters ---------------------------------------------------------------------------------------


def everybody_plays_1(state: Any, human: int, action: int) -> list[tuple[float, Any]]:
    """Most of the time, and 0 otherwise."""
    return [(0.875, np.ones(3, dtype=np.int64)), (0.125, np.zeros(3, dtype=np.int64))]


SETS = [
    PARAMS,
    PARAMS.replace(zeta=2.5, beta_r=3.0),  # the same humans
    PARAMS.replace(beta_h=math.inf, eta=1.5),  # from here on, humans of their own
    PARAMS.replace(optimistic=True, rho_h=0.2, gamma_r=1.0),
    PARAMS.replace(terminal_Vr=-2.0, gamma_r=0.5, xi=2.0),  # those of the first set
    Params(),
]


@pytest.mark.parametrize(
    ("kind", "rests"),
    [*((kind, "memory") for kind in WORLDS), ("nested levels", "temporary"), ("levels not nested", "folder"),
     ("durations", "folder"), ("derived levels", "temporary"), ("time-homogeneous", "folder")],
)  # fmt: skip
def test_a_set_of_parameters_alone_gives_what_it_gives_among_others(
    kind: str, rests: str, tmp_path: Path, block_states: Callable[[int], None]
) -> None:
    alone = [solved(kind, params) for params in SETS]
    block_states(40)
    out = {"memory": None, "folder": tmp_path / "out", "temporary": True}[rests]
    together = solved(kind, SETS, out=out, workers=2)
    assert len(together) == len(SETS)
    for found, expected in zip(together, alone, strict=True):
        assert found.params == expected.params
        assert_same(found, expected)
        assert derived(found) == derived(expected)


@pytest.mark.parametrize("kind", ["skipped levels", "time-homogeneous"])
def test_a_belief_of_ones_own_is_nobody_elses(kind: str) -> None:
    believing = PARAMS.replace(believed_others_policy=everybody_plays_1)
    expected = [solved(kind, believing), solved(kind, PARAMS)]
    for order in ([believing, PARAMS], [PARAMS, believing], [PARAMS, believing, PARAMS.replace(eta=1.3), believing]):
        for params, found in zip(order, solved(kind, order), strict=True):
            if params in (believing, PARAMS):
                assert_same(found, expected[0 if params is believing else 1])
    assert at_rest(expected[0]) != at_rest(expected[1])


@dataclass(frozen=True)
class End:
    """The goal of being through with it, which everybody attains, and nobody before the last step."""

    steps: int

    def is_achieved(self, state: Any) -> bool:
        return bool(state[0] == self.steps)


@dataclass(frozen=True)
class EndIn(End):
    """And to be in a certain cell then."""

    cell: int

    def is_achieved(self, state: Any) -> bool:
        return bool(state[0] == self.steps and state[1] == self.cell)


class LateGoals:
    """With a steep discount, humans have hardly any power for most of the time, but never none."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def generate(self, state: Any, human: int) -> Iterator[tuple[End, float]]:
        yield End(self.steps), 0.1
        for cell in range(7):
            yield EndIn(self.steps, cell), 0.3


class LateRing(Ring):
    def __init__(self, steps: int) -> None:
        super().__init__(steps)
        self.possible_goal_generator = LateGoals(steps)  # type: ignore[assignment]


BARELY = PARAMS.replace(gamma_h=1e-30)  # after two steps, float32 takes that for nothing


@pytest.mark.parametrize("order", [[PARAMS, BARELY], [BARELY, PARAMS.replace(eta=1.3), PARAMS]])
def test_a_set_that_needs_wider_tables_leaves_those_of_the_others_as_they_are(order: list[Params]) -> None:
    assert solve(LateRing(4), BARELY, level_fct=step_of, progress=False).values.X_h[0].min() > 0
    found = solve(LateRing(4), order, level_fct=step_of, progress=False)
    for params, solution in zip(order, found, strict=True):
        assert_same(solution, solve(LateRing(4), params, level_fct=step_of, progress=False))


def test_sets_that_humans_cannot_tell_apart_are_swept_by_one_phase_1(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, n_runs = phases.HumanPhase.run, [0]

    def run(self: Any, work: Any, **options: Any) -> Any:
        n_runs[0] += 1
        return plain(self, work, **options)

    monkeypatch.setattr(phases.HumanPhase, "run", run)
    solved("nested levels")
    n_alone, n_runs[0] = n_runs[0], 0
    solved("nested levels", [PARAMS, PARAMS.replace(zeta=2.5), PARAMS.replace(gamma_r=0.5), PARAMS])
    assert n_runs[0] == n_alone > 0
    n_runs[0] = 0
    solved("nested levels", [PARAMS, PARAMS.replace(beta_h=2.0), PARAMS.replace(gamma_h=0.5)])
    assert n_runs[0] == 3 * n_alone


@pytest.mark.parametrize("rests", ["memory", "folder", "temporary"])
def test_equal_sets_in_a_list_give_equal_solutions(rests: str, tmp_path: Path) -> None:
    """As in a grid of parameters, or where a discount is written as a factor here and as a rate there."""
    expected = solved("chances", Params())
    out = {"memory": None, "folder": tmp_path / "out", "temporary": True}[rests]
    for found in solved("chances", [Params(), Params(), Params(gamma_h=1.0), Params(rho_r=0.0)], out=out):
        assert_same(found, expected)


def test_equal_sets_in_a_list_that_replaces_what_is_there_give_equal_solutions(tmp_path: Path) -> None:
    expected = solved("chances", Params())
    for _ in range(2):
        for found in solved("chances", [Params(), Params()], out=tmp_path / "out", overwrite=True):
            assert_same(found, expected)


# --- one phase or both ------------------------------------------------------------------------------------------------


@most_worlds
def test_phase_1_alone_gives_what_it_gives_below_phase_2(
    kind: str, tmp_path: Path, block_states: Callable[[int], None]
) -> None:
    both = solved(kind)
    pi_h = [bits(both.pi_h[t]) for t in range(both.dag.horizon + 1)]
    for size, options in ((6, {"workers": 2}), (1024, {"out": tmp_path / "out"}), (6, {"out": True})):
        block_states(size)
        alone = solved(kind, phase_2=False, **options)
        assert_same(alone, both, PHASE_1)
        assert [bits(alone.pi_h[t]) for t in range(both.dag.horizon + 1)] == pi_h
        with pytest.raises(ValueError, match="phase 2 was not solved"):
            alone.values.V_r[0]
        alone.close()


HUMAN = {"beta_h": PARAMS.beta_h, "gamma_h": PARAMS.gamma_h}
ROBOT = {name: getattr(PARAMS, name) for name in ("beta_r", "gamma_h", "gamma_r", "zeta", "xi", "eta")}


@most_worlds
def test_the_documented_functions_are_the_same_sweep(kind: str, tmp_path: Path, block_states: Callable[[int], None]) -> None:
    expected = solved(kind)
    pi_h = [bits(expected.pi_h[t]) for t in range(expected.dag.horizon + 1)]
    for size, options in (
        (6, {"parallel": True, "num_workers": 2}),
        (1024, {"use_disk_slicing": True, "use_compression": True}),
        (6, {"use_disk_slicing": True, "disk_cache_dir": tmp_path / "cache", "parallel": True, "num_workers": 2}),
        (1024, {"use_disk_slicing": True, "disk_cache_dir": tmp_path / "cache"}),  # where everything is by now
        (1024, {"archive_dir": tmp_path / "archive"}),
    ):
        block_states(size)
        world, more = WORLDS[kind]()
        more = {"quiet": True, **more, **options}
        generator = more.pop("possible_goal_generator", world.possible_goal_generator)
        humans, robots = world.human_agent_indices, world.robot_agent_indices
        prior, Vh = compute_human_policy_prior(world, humans, generator, return_Vh=True, **HUMAN, **more)
        policy, Vr, Vhe = compute_robot_policy(world, humans, robots, generator, prior, return_values=True, **ROBOT, **more)
        assert_same(prior.solution, expected, PHASE_1)
        assert [bits(prior.solution.pi_h[t]) for t in range(expected.dag.horizon + 1)] == pi_h
        for t in range(expected.dag.horizon + 1):
            state = expected.dag.states(t)[-1]
            assert Vr[state] == expected.Vr[state], options
            assert policy(state) == expected.robot_policy(state), options
            for human, table in itertools.product(humans, ("Vh", "Vhe")):
                found = {"Vh": Vh, "Vhe": Vhe}[table].get(state, {}).get(human, {})
                assert dict(found) == dict(getattr(expected, table).get(state, {}).get(human, {})), (options, table)


def test_the_documented_functions_are_the_same_sweep_in_full_precision() -> None:
    world, _ = WORLDS["chances"]()
    humans, robots = world.human_agent_indices, world.robot_agent_indices
    prior = compute_human_policy_prior(world, humans, use_float16=False, quiet=True, **HUMAN)
    _, Vr, _ = compute_robot_policy(
        world, humans, robots, None, prior, use_float16=False, return_values=True, quiet=True, **ROBOT
    )
    expected = solved("chances", precision="float64")
    assert_same(prior.solution, expected, PHASE_1)
    for t in range(expected.dag.horizon + 1):
        states = expected.dag.states(t)
        assert [Vr[state] for state in states] == expected.values.V_r[t].tolist()


# --- discounts that come with each transition -------------------------------------------------------------------------


class Strolling:
    """Two humans and a robot with four actions each, on a ring of four places; some steps take longer."""

    agents = ("human", "robot", "human")
    action_space = SimpleNamespace(n=4)
    human_agent_indices, robot_agent_indices = (0, 2), (1,)
    time_homogeneous = True

    def __init__(self) -> None:
        self.possible_goal_generator = Places(0.4, 0.3, 0.2, 0.6)

    def initial_state(self) -> tuple[int, int]:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, place = state
        if step >= 3:
            return None
        return [(0.5, (step + 1, (place + actions[0] - actions[2]) % 4)), (0.5, (step + 1, (place + actions[1]) % 4))]

    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> list[float]:
        return [1.0 if after[1] % 2 else 2.5 for _, after in transitions]


@pytest.mark.parametrize("precision", ["float16", "float64"])
def test_durations_with_four_others_do_not_depend_on_blocks(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four profiles of others are contracted at a time, in cells beside the one that attained goals are worth."""
    found = []
    for block_states in (1, 1024):
        monkeypatch.setattr("empo_bi.sweep.memory_model.BLOCK_STATES", block_states)
        found.append(solve(Strolling(), Params(gamma_h=0.9, gamma_r=0.9), precision=precision, progress=False))
    for t in range(4):
        for name in ("vh", "ve", "xh", "qr", "vr"):
            assert np.array_equal(found[0].results.get(t, name), found[1].results.get(t, name))
    assert found[0].values.V_r[0][0] == pytest.approx(-7.079, abs=1e-3)
