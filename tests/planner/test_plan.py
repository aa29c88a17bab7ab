"""The planner: counts that are exact, forecasts that are ranges, and recommendations that hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from planning_worlds import At, Places, Ring, TwoSteps, step_of
from store_tools import Drift, run_python

from empo_bi import (
    Params,
    Plan,
    ReachCellGoal,
    TabularGoalGenerator,
    TooManyStatesError,
    enumerate_dag,
    load_world,
    plan,
    solve,
)
from empo_bi.cli import cli
from empo_bi.planner.growth import Range
from empo_bi.planner.plan import Horizon, Way

QUIET: dict[str, Any] = {"progress": False}
PARAMS = Params(gamma_h=0.99, gamma_r=0.99)
MB = 1_000_000


def freeing(steps: int) -> Any:
    return load_world("asymmetric_freeing", max_steps=steps)


def way_of(horizon: Horizon, name: str) -> Way:
    (found,) = [way for way in horizon.ways if way.name == name]
    return found


# --- counts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["asymmetric_freeing", "ice_rink", "carousel", "off_switch", "full_hands"])
def test_what_was_counted_is_exact_at_every_horizon(name: str) -> None:
    found = plan(load_world(name), PARAMS, steps=[8, 3, 1], **QUIET)
    assert [horizon.sizes.steps for horizon in found.horizons] == [1, 3, 8]
    for horizon in found.horizons:
        sizes = horizon.sizes
        dag = enumerate_dag(load_world(name, max_steps=sizes.steps), progress=False)
        assert sizes.is_exact
        assert sizes.states == Range.exactly(dag.n_states)
        assert sizes.bodies == Range.exactly(dag.n_bodies)
        assert sizes.transitions == Range.exactly(dag.n_transitions)
        assert sizes.n_seen == sizes.steps + 1


def test_the_horizon_is_that_of_the_world_unless_others_are_asked_for() -> None:
    assert [h.sizes.steps for h in plan(freeing(6), **QUIET).horizons] == [6]
    assert [h.sizes.steps for h in plan(freeing(6), steps=9, **QUIET).horizons] == [9]
    assert [h.sizes.steps for h in plan(freeing(6), steps=(9, 2), **QUIET).horizons] == [2, 9]


@pytest.mark.parametrize("limit", [{"max_levels": 7}, {"seconds": 1e-9}])
@pytest.mark.parametrize("name", ["hall_2_rocks", "carousel"])
def test_what_was_not_counted_is_a_range_that_contains_what_there_is(name: str, limit: dict[str, Any]) -> None:
    world = load_world(name, max_steps=12)
    dag = enumerate_dag(world, progress=False)
    found = plan(world, PARAMS, **limit, **QUIET)
    sizes = found.horizons[-1].sizes
    assert not sizes.is_exact
    assert sizes.n_seen == len(found.probe.levels) < 13
    for forecast, truth in ((sizes.states, dag.n_states), (sizes.bodies, dag.n_bodies)):
        assert forecast.low < forecast.likely < forecast.high
        assert forecast.low <= truth
        assert truth <= forecast.high or "seconds" in limit  # which looks at two levels only, and from two nothing follows


def test_a_horizon_that_was_counted_is_exact_though_a_longer_one_is_not() -> None:
    found = plan(freeing(20), PARAMS, steps=[6, 20], max_levels=10, **QUIET)
    short, long = (horizon.sizes for horizon in found.horizons)
    dag = enumerate_dag(freeing(6), progress=False)
    assert short.is_exact
    assert (short.states.likely, short.transitions.likely) == (dag.n_states, dag.n_transitions)
    assert not long.is_exact
    assert (short.n_seen, long.n_seen) == (7, 10)


def test_a_longer_horizon_takes_no_less_of_anything() -> None:
    found = plan(freeing(20), PARAMS, steps=list(range(1, 21)), max_levels=10, **QUIET)
    for before, after in zip(found.horizons, found.horizons[1:], strict=False):
        for name in ("states", "bodies", "transitions"):
            for guess in ("low", "likely", "high"):
                assert getattr(getattr(before.sizes, name), guess) <= getattr(getattr(after.sizes, name), guess)


def test_all_ranges_are_ordered() -> None:
    for options in ({}, {"max_levels": 5}, {"max_levels": 1}):
        for horizon in plan(freeing(14), PARAMS, steps=[2, 7, 14], **options, **QUIET).horizons:
            ranges = [getattr(way, what) for way in horizon.ways for what in ("memory", "disk", "seconds")]
            for found in (*ranges, horizon.sizes.states, horizon.sizes.transitions):
                assert 0 <= found.low <= found.likely <= found.high


def test_a_full_world_is_known_to_be_full() -> None:
    """Nothing new is found after 11 steps; however long the horizon, the number of bodies is known."""
    world = load_world("first_steps", max_steps=200)
    sizes = plan(world, PARAMS, max_levels=20, **QUIET).horizons[0].sizes
    dag = enumerate_dag(world, progress=False)
    assert sizes.bodies == Range.exactly(dag.n_bodies)
    assert sizes.states == Range.exactly(dag.n_states)
    assert sizes.n_seen == 20


def test_kernels_that_are_compiled_meanwhile_take_nothing_of_the_time_to_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock by which the first expansion takes an hour, as compiling does on a slow machine."""
    from empo_bi.planner import probe

    now = [0.0]
    plain = probe.explorer_for

    class Slow:
        def __init__(self, inner: Any) -> None:
            self.inner, self.calls = inner, 0

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

        def next_level(self, levels: Any) -> Any:
            self.calls += 1
            now[0] += 3600.0 if self.calls == 1 else 0.001
            return self.inner.next_level(levels)

    monkeypatch.setattr(probe, "explorer_for", lambda *args: Slow(plain(*args)))
    monkeypatch.setattr(probe, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    assert plan(freeing(6), PARAMS, seconds=1.0, **QUIET).horizons[0].sizes.is_exact


# --- recommendations --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ample() -> Plan:
    return plan(freeing(15), PARAMS, memory="100GB", **QUIET)


def test_in_memory_if_that_fits(ample: Plan) -> None:
    assert ample.recommended is not None
    assert ample.recommended.name == "in memory, float16"
    assert ample.recommended.call == "solve(world, params)"
    assert ample.longest == 15
    assert all(way.fits for way in ample.horizons[0].ways)
    assert "Recommended: solve(world, params), which takes" in str(ample)


def within(factor: float, name: str) -> Plan:
    """A plan of 40 steps, forecast from 17, with as much memory as one way needs in the worst case, and a little more."""
    world = freeing(40)
    way = way_of(plan(world, PARAMS, max_levels=18, **QUIET).horizons[0], name)
    return plan(world, PARAMS, max_levels=18, memory=int(way.memory.high * factor), **QUIET)


def test_on_disk_if_only_that_fits() -> None:
    """Of a larger world, so that the difference is larger than what changes from one look to the next."""
    found = within(1.02, "on disk")
    assert found.recommended is not None
    assert found.recommended.name == "on disk"
    assert found.recommended.call == "solve(world, params, out='RUNS')"
    assert " of disk and " in str(found)


def test_a_tight_limit_if_nothing_else_fits_and_it_is_no_more_than_may_be_used() -> None:
    found = within(1.02, "on disk, tight limit")
    assert found.recommended is not None
    assert found.recommended.name == "on disk, tight limit"
    limit = str(found.recommended.options["memory_limit"])
    assert limit.endswith("MB")
    assert found.recommended.memory.high <= int(limit.removesuffix("MB")) * MB + MB
    assert int(limit.removesuffix("MB")) * MB <= found.memory


def test_if_nothing_fits_the_longest_horizon_that_does_is_named() -> None:
    world = freeing(30)
    memory = int(plan(world, PARAMS, steps=18, **QUIET).horizons[0].ways_by_memory[0].memory.high)
    found = plan(world, PARAMS, memory=memory, max_levels=20, **QUIET)
    assert found.recommended is None
    assert found.longest is not None
    assert 18 <= found.longest < 30
    assert "30 steps do not fit into" in str(found)
    assert f"{found.longest} steps do" in str(found)
    assert f"max_steps={found.longest}" in str(found)
    shorter = plan(world, PARAMS, steps=found.longest - 1, memory=memory, max_levels=20, **QUIET)
    assert shorter.recommended is not None


def test_if_not_even_one_step_fits_it_says_so() -> None:
    found = plan(freeing(8), PARAMS, memory="2MB", **QUIET)
    assert (found.recommended, found.longest) == (None, None)
    assert "nor does any shorter horizon; allow more memory" in str(found)
    assert "none fits" in str(found)


def test_what_fits_does_so_at_the_upper_end_of_its_range(ample: Plan) -> None:
    way = ample.horizons[0].ways[0]
    below, above = (plan(freeing(15), PARAMS, memory=int(way.memory.likely * factor), **QUIET) for factor in (0.97, 1.3))
    assert not way_of(below.horizons[0], way.name).fits
    assert way_of(above.horizons[0], way.name).fits


def test_a_recommended_tight_limit_is_enough(tmp_path: Path) -> None:
    """In a process of its own, which holds nothing but what it needs."""
    code = """
import json, sys
from empo_bi import Params, load_world, plan, solve
world, params = load_world("asymmetric_freeing", max_steps=16), Params(gamma_h=0.99, gamma_r=0.99)
way = next(way for way in plan(world, params, progress=False).horizons[0].ways if way.name == "on disk, tight limit")
solution = solve(world, params, **{**way.options, "out": sys.argv[1], "memory_limit": int(way.memory.high)}, progress=False)
print(solution.values.V_r[0][0] < 0)
"""
    child = run_python(code, tmp_path / "run")
    assert child.returncode == 0, child.stderr[-2000:]
    assert child.stdout.strip() == "True"


def test_exact_numbers_are_never_recommended_but_shown(ample: Plan) -> None:
    way = way_of(ample.horizons[0], "in memory, float64")
    assert way.options == {"precision": "float64"}
    assert way.memory.likely > way_of(ample.horizons[0], "in memory, float16").memory.likely
    assert "in memory, float64" in ample.comparison()


def test_the_comparison_has_all_ways_the_most_demanding_first(ample: Plan) -> None:
    lines = ample.comparison().splitlines()
    rows = [line for line in lines if line.startswith(("in memory", "on disk"))]
    assert len(rows) == 4
    assert rows[0].startswith("in memory, float64")
    assert " 1.0x" in rows[0]
    factors = [float(row.split("x  ")[0].split()[-1]) for row in rows]
    assert factors == sorted(factors)
    assert all(row.endswith("yes") for row in rows)
    assert lines[-1].startswith("Recommended: ")


def test_a_plan_is_printed_with_ranges_where_it_forecasts() -> None:
    text = str(plan(freeing(14), PARAMS, steps=[4, 14], max_levels=8, memory="4GB", **QUIET))
    assert "8 of 15 levels counted (752 bodies," in text
    assert "4 GB of memory" in text
    short, long = [line for line in text.splitlines() if line.strip().startswith(("4 ", "14 "))]
    assert "(" not in short.split("in memory")[0]
    assert long.split("in memory")[0].count(" to ") == 2  # states and transitions


# --- what it takes, measured ------------------------------------------------------------------------------------------

RUN = """
import json, sys
from empo_bi import Params, load_world, plan, solve
name, steps, job, out = sys.argv[1:]
world, params = load_world(name, max_steps=int(steps)), Params(gamma_h=0.99, gamma_r=0.99)
if job == "plan":
    ways = plan(world, params, progress=False).horizons[0].ways
    print(json.dumps({way.name: [way.memory.low, way.memory.likely, way.memory.high, way.disk.likely] for way in ways}))
else:
    solve(world, params, out=None if job == "in memory, float16" else out, progress=False)
    with open("/proc/self/status") as file:
        print(next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM")))
"""


def in_child(*arguments: object) -> Any:
    child = run_python(RUN, *arguments)
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout)


MEASURED = [
    pytest.param("asymmetric_freeing", 17),
    pytest.param("hall_2_rocks", 18),
    pytest.param("asymmetric_freeing", 20, marks=pytest.mark.slow),
    pytest.param("three_rooms", 20, marks=pytest.mark.slow),
]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize(("name", "steps"), MEASURED)
def test_predicted_memory_is_within_a_quarter_of_what_a_run_takes(name: str, steps: int, tmp_path: Path) -> None:
    predicted = in_child(name, steps, "plan", "-")
    for way in ("in memory, float16", "on disk"):
        low, likely, high, disk = predicted[way]
        peak = in_child(name, steps, way, tmp_path / "run")
        assert 0.75 * peak <= likely <= 1.25 * peak, f"{way}: {likely / MB:.0f} MB predicted, {peak / MB:.0f} MB taken"
        assert low <= 1.15 * peak
        assert high >= 0.95 * peak
    files = sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file())
    assert files / 2.5 <= disk <= 2.5 * files


# --- other worlds and options -----------------------------------------------------------------------------------------


PYTHON_WORLDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "levels derived": (Ring(5), {}),
    "with a level_fct": (Ring(5), {"level_fct": step_of}),
    "deterministic": (TwoSteps(4), {}),
}


@pytest.mark.parametrize("case", PYTHON_WORLDS)
def test_worlds_written_in_python_are_counted_to_their_end(case: str) -> None:
    world, options = PYTHON_WORLDS[case]
    dag = enumerate_dag(world, progress=False, **options)
    found = plan(world, PARAMS, **options, **QUIET)
    sizes = found.horizons[0].sizes
    assert sizes.steps == dag.horizon
    assert sizes.states == Range.exactly(dag.n_states)
    assert sizes.bodies == Range.exactly(dag.n_bodies)
    assert sizes.transitions == Range.exactly(dag.n_transitions)
    assert found.recommended is not None


class Walk(Drift):
    """A ring that shares bodies, with a human, a robot and goals."""

    n_agents = 2
    human_agent_indices, robot_agent_indices = (0,), (1,)

    def __init__(self, steps: int) -> None:
        super().__init__(steps)
        self.possible_goal_generator = self

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[At, float]]:
        for cell in range(9):
            yield At(cell), 1 / 9


def test_a_time_homogeneous_world_shares_bodies_in_the_plan_too() -> None:
    dag = enumerate_dag(Walk(12), progress=False)
    sizes = plan(Walk(12), PARAMS, **QUIET).horizons[0].sizes
    assert (sizes.states.likely, sizes.bodies.likely, sizes.transitions.likely) == (dag.n_states, 9, dag.n_transitions)
    assert dag.n_bodies == 9


def test_a_python_world_has_the_horizon_that_it_has() -> None:
    with pytest.raises(ValueError, match=r"steps=7: only gridworlds can be given another horizon"):
        plan(Ring(), PARAMS, steps=7, **QUIET)


def test_a_python_world_that_is_not_counted_to_its_end_says_what_would_help() -> None:
    with pytest.raises(TooManyStatesError, match=r"number of levels is still unknown.*Allow more seconds"):
        plan(Ring(50), PARAMS, level_fct=step_of, max_levels=3, **QUIET)


class Picky:
    """Goals that differ from state to state."""

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[At, float]]:
        for place in range(1 + state[0] % 3):
            yield At(place), 1.0


def test_goals_that_differ_from_state_to_state_take_memory_of_their_own() -> None:
    fixed = TabularGoalGenerator([At(0), At(1), At(2)])
    same, other = (plan(Ring(6), PARAMS, possible_goal_generator=generator, **QUIET) for generator in (fixed, Picky()))
    assert (same.probe.goals_by_state, other.probe.goals_by_state) == (False, True)
    assert same.probe.n_columns == other.probe.n_columns == 2 * 3


@pytest.mark.parametrize("steps", [None, 7])
def test_goals_that_somebody_put_on_a_gridworld_are_planned_for(steps: int | None) -> None:
    world = freeing(5)
    world.possible_goal_generator = TabularGoalGenerator([ReachCellGoal(world, 0, cell) for cell in ((2, 1), (2, 2))])
    assert plan(world, PARAMS, steps=steps, phase_2=False, **QUIET).probe.n_columns == 2 * 2


def test_without_phase_2_less_is_kept() -> None:
    both, one = (plan(freeing(15), PARAMS, phase_2=phase_2, **QUIET).horizons[0] for phase_2 in (True, False))
    assert both.sizes.states == one.sizes.states
    for way in ("in memory, float64", "on disk"):
        assert way_of(one, way).memory.likely < way_of(both, way).memory.likely
    assert way_of(one, "on disk").disk.likely < way_of(both, "on disk").disk.likely


def test_workers_make_it_faster_and_take_more_memory_for_blocks() -> None:
    one, four = (plan(freeing(15), PARAMS, workers=n, **QUIET) for n in (1, 4))
    blocks = [found.horizons[0].ways[1].memory.high for found in (one, four)]
    assert blocks[1] > blocks[0]


def test_nothing_is_changed_in_the_world_that_is_planned() -> None:
    world = freeing(5)
    plan(world, PARAMS, steps=9, **QUIET)
    assert world.max_steps == 5
    assert solve(world, PARAMS, **QUIET).dag.horizon == 5


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [0, -3, 2.5, "12", [], [5, 0], [5, "6"], True, [True]])
def test_steps_that_are_no_numbers_of_steps_are_an_error(steps: Any) -> None:
    with pytest.raises(ValueError, match=r"steps=.*; give a number of steps, or a list of them, each 1 or more"):
        plan(freeing(5), PARAMS, steps=steps, **QUIET)


@pytest.mark.parametrize("memory", ["plenty", 0, -1, 12, True])
def test_memory_that_is_no_size_is_an_error(memory: Any) -> None:
    with pytest.raises(ValueError, match=r"memory=.*; give a size such as '2GB'"):
        plan(freeing(5), PARAMS, memory=memory, **QUIET)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seconds": -1}, "seconds=-1; give a positive number"),
        ({"seconds": "ten"}, "seconds='ten'; give a positive number"),
        ({"seconds": float("nan")}, "seconds=nan; give a positive number"),
        ({"max_levels": 0}, "max_levels=0; give a number of levels"),
        ({"max_levels": 2.5}, "max_levels=2.5; give a number of levels"),
        ({"workers": 0}, "workers=0"),
    ],
)
def test_other_options_that_make_no_sense_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan(freeing(5), PARAMS, **options, **QUIET)


def test_what_is_no_world_is_an_error() -> None:
    with pytest.raises(TypeError, match="is not a world"):
        plan("asymmetric_freeing", PARAMS, **QUIET)


# --- the command line -------------------------------------------------------------------------------------------------


def run(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["plan", *arguments])


def test_the_command_prints_the_plan_and_ends_with_0_if_something_fits() -> None:
    done = run("asymmetric_freeing", "--steps", "5,8", "--memory", "4GB")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert "Asymmetric freeing" in lines[0]
    assert any(line.split()[:2] == ["5", "1,250"] for line in lines)
    assert any(line.split()[:2] == ["8", "3,740"] for line in lines)
    assert lines[-1].startswith("Recommended: solve(world, params)")


def test_the_command_ends_with_1_if_nothing_fits() -> None:
    done = run("asymmetric_freeing", "--steps", "6", "--memory", "2MB")
    assert done.exit_code == 1
    assert "do not fit into 2 MB" in done.output


def test_the_command_compares_all_ways() -> None:
    done = run("first_steps", "--compare", "--memory", "4GB", "--workers", "2")
    assert done.exit_code == 0, done.output
    for way in ("in memory, float16", "in memory, float64", "on disk ", "on disk, tight limit"):
        assert way in done.output
    assert "less memory" in done.output


MINE = """
map: |
  We We We We
  We Ay Ae We
  We We We We
max_steps: 3
possible_goals: ["1,1", "2,1"]
"""


def test_a_file_is_a_world_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINE, encoding="utf-8")
    done = run(str(file), "--memory", "4GB")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["asymmetric_freeing", "--steps", "five"], "give a number, or several separated by commas"),
        (["asymmetric_freeing", "--steps", "0"], "each 1 or more"),
        (["asymmetric_freeing", "--memory", "lots"], "give a size such as '2GB'"),
        (["asymmetric_freeing", "--workers", "0"], "workers=0"),
        (["asymetric_freeing"], "Did you mean"),
        ([], "Missing argument"),
    ],
)
def test_the_command_ends_with_2_and_says_what_is_wrong(arguments: list[str], message: str) -> None:
    child = run_python("import sys; sys.argv[0] = 'empo-bi'; from empo_bi.cli import main; main()", "plan", *arguments)
    assert child.returncode == 2
    assert message in child.stderr
    assert "Traceback" not in child.stderr


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "a", True])
def test_seconds_that_make_no_sense_are_named(seconds: Any) -> None:
    with pytest.raises(ValueError, match=f"seconds={seconds!r}; give a positive number"):
        plan(load_world("first_steps"), seconds=seconds, progress=False)


def test_a_plan_is_about_one_set_of_parameters() -> None:
    with pytest.raises(TypeError, match="give one set of parameters"):
        plan(load_world("first_steps"), [Params(), Params(zeta=2)], progress=False)  # type: ignore[arg-type]


def test_steps_may_be_numpy_numbers_and_are_told_once_each() -> None:
    found = plan(load_world("first_steps"), steps=np.array([3, 2, 3]), progress=False)
    assert [horizon.sizes.steps for horizon in found.horizons] == [2, 3]
    assert plan(load_world("first_steps"), steps=np.int64(2), progress=False).horizons[0].sizes.steps == 2


class Endless:
    """A world that goes on for very long, of which nobody tells the levels."""

    n_agents, action_space = 1, SimpleNamespace(n=2)
    human_agent_indices, robot_agent_indices = (0,), ()

    def __init__(self) -> None:
        self.possible_goal_generator = Places(1.0)

    def initial_state(self) -> tuple[int, int]:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, place = state
        return None if step == 10**6 else [(1.0, (step + 1, (place + actions[0]) % 3))]


def test_a_world_that_does_not_end_in_time_is_given_up() -> None:
    with pytest.raises(TooManyStatesError, match=r"has not ended; without a level_fct, all states have to be found"):
        plan(Endless(), seconds=0.2, progress=False)


def test_long_horizons_are_planned_quickly_and_endless_ones_refused() -> None:
    """A world file of 100 bytes may say that it has two billion steps."""
    corridor = {"map": ["We We We We We", "We Ay .. Ae We", "We We We We We"], "possible_goals": "all"}
    found = plan(load_world(corridor, max_steps=20_000), seconds=0.5, memory="240MB", progress=False)
    assert found.longest is None or found.longest < 20_000
    for steps in (100_001, 2_147_483_647):
        with pytest.raises(ValueError, match=f"max_steps={steps:,}; plans are made for up to 100,000 steps"):
            plan(load_world(corridor, max_steps=steps), progress=False)
    with pytest.raises(ValueError, match="steps=200,000; plans"):
        plan(load_world(corridor), steps=[5, 200_000], progress=False)
