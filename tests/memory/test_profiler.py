"""The memory profiler: when it looks, whom it holds to account, what it says in the end, and where it says it."""

from __future__ import annotations

import builtins
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from planning_worlds import Ring

from empo_bi import (
    Dag,
    MemoryProfiler,
    Params,
    Solution,
    compute_human_policy_prior,
    compute_robot_policy,
    enumerate_dag,
    load_world,
    solve,
)
from empo_bi.memory import profiler as profiler_module

MB = 1_000_000
STEPS = 5
FILES = ["memory_profile.png", "memory_profile.txt"]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Profiles without a folder of their own go to the present one, which should not be that of the tests."""
    monkeypatch.chdir(tmp_path)


def freeing(steps: int = STEPS) -> Any:
    return load_world("asymmetric_freeing", max_steps=steps)


def profiled(world: Any, profiler: MemoryProfiler, **options: Any) -> Solution:
    return solve(world, memory_profile=profiler, progress=False, **options)


# --- when it looks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", [None, True])
def test_there_is_one_snapshot_for_each_level_forwards_and_one_backwards(out: Any) -> None:
    profiler = MemoryProfiler()
    solution = profiled(freeing(), profiler, out=out)
    levels = list(range(STEPS + 1))
    assert [(s.doing, s.level) for s in profiler.snapshots] == [
        *(("enumerating", t) for t in levels),
        *(("solving", t) for t in reversed(levels)),
    ]
    sizes = solution.dag.level_sizes
    assert [s.n_states for s in profiler.snapshots] == [*sizes, *reversed(sizes)]
    seconds = [s.seconds for s in profiler.snapshots]
    assert seconds == sorted(seconds)
    assert solution.memory_profile is profiler


def test_worlds_written_in_python_are_profiled_as_well() -> None:
    profiler = MemoryProfiler()
    solution = profiled(Ring(), profiler)
    assert [s.level for s in profiler.snapshots if s.doing == "solving"] == list(range(solution.dag.horizon, -1, -1))
    assert [s.level for s in profiler.snapshots if s.doing == "enumerating"] == list(range(solution.dag.horizon + 1))


@pytest.mark.parametrize(("interval", "levels"), [(1, [0, 1, 2, 3, 4, 5]), (2, [0, 2, 4]), (4, [0, 4]), (99, [0])])
def test_an_interval_leaves_levels_out(interval: int, levels: list[int]) -> None:
    profiler = MemoryProfiler(interval=interval)
    enumerate_dag(freeing(), memory_profile=profiler, progress=False)
    assert [s.level for s in profiler.snapshots] == levels


@pytest.mark.parametrize("interval", [0, -1, 1.5, "2", None, True])
def test_an_interval_that_is_no_number_of_levels_is_an_error(interval: Any) -> None:
    with pytest.raises(ValueError, match=r"interval=.*; give a number of levels, 1 or more"):
        MemoryProfiler(interval=interval)


def test_a_limit_that_is_no_size_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"limit='plenty'; give a size such as '2GB'"):
        MemoryProfiler(limit="plenty")


@pytest.mark.parametrize("nonsense", [1, "yes", Params()])
def test_a_profile_that_is_no_profiler_is_an_error(nonsense: Any) -> None:
    with pytest.raises(TypeError, match=r"memory_profile=.*; give True, False or a MemoryProfiler"):
        solve(freeing(2), memory_profile=nonsense, progress=False)


@pytest.mark.parametrize("nonsense", [1, True, "yes"])  # nobody would see what True has found
def test_an_enumeration_wants_a_profiler_that_somebody_holds(nonsense: Any) -> None:
    with pytest.raises(TypeError, match=r"memory_profile=.*; give a MemoryProfiler, which collects the snapshots"):
        enumerate_dag(freeing(2), memory_profile=nonsense, progress=False)


# --- who holds what ---------------------------------------------------------------------------------------------------


def slices_of(dag: Dag) -> int:
    """All arrays of a DAG's slices, added up one by one."""
    names = ("members", "added", "ended", "key_BW", "expanded", "count_EJ", "succ_K", "prob_K", "attained")
    arrays = [getattr(dag.levels[t], name) for t in range(dag.horizon + 1) for name in names]
    return sum(array.nbytes for array in arrays if hasattr(array, "nbytes"))


N_COLUMNS, N_HUMANS, N_ROBOT_PROFILES = 36, 2, 4  # of asymmetric_freeing: two humans with 18 goals, one robot
BYTES_PER_STATE = 2 * N_COLUMNS * 2 + 8 * (N_HUMANS + N_ROBOT_PROFILES + 1)  # both phases' values in float16; X_h, Q_r, V_r
BYTES_PER_ROW = 2 * (2 * N_COLUMNS * 4 + 8)  # tables take turns; both phases' values in float32; V_r


def test_owners_are_the_arrays_that_a_solve_in_memory_holds() -> None:
    profiler = MemoryProfiler()
    solution = profiled(freeing(), profiler)
    dag = solution.dag
    for snapshot in profiler.snapshots[STEPS + 2 :]:  # on the last level there is one table, not two
        t = snapshot.level
        assert snapshot.owners == {
            "slices at hand": slices_of(dag),
            "tables of values": dag.n_bodies * BYTES_PER_ROW,
            "the level in work": dag.level_sizes[t] * BYTES_PER_STATE,
            "solved levels in memory": sum(dag.level_sizes[t + 1 :]) * BYTES_PER_STATE,
        }


def test_owners_of_the_enumeration_are_the_index_and_the_slices() -> None:
    profiler = MemoryProfiler()
    dag = enumerate_dag(freeing(8), memory_profile=profiler, progress=False)
    last = profiler.snapshots[-1].owners
    assert last["slices at hand"] == slices_of(dag)
    assert dag.n_bodies * 3 * 8 <= last["index of states"] <= dag.n_bodies * 12 * 8  # keys and numbers, two to four times
    held = [s.owners["slices at hand"] for s in profiler.snapshots]
    assert held == sorted(held)


def test_on_disk_solved_levels_are_not_counted_as_held_once_they_are_written(tmp_path: Path) -> None:
    profiler = MemoryProfiler()
    solution = profiled(freeing(8), profiler, out=tmp_path)
    sizes = solution.dag.level_sizes
    for snapshot in profiler.snapshots[9:]:
        assert snapshot.owners["the level in work"] == sizes[snapshot.level] * BYTES_PER_STATE
        # At most one other level is being written; what is carried to continue from is a view of the tables.
        above = sizes[snapshot.level + 1] if snapshot.level < 8 else 0
        assert snapshot.owners.get("solved levels in memory", 0) <= above * BYTES_PER_STATE


def test_without_phase_2_its_arrays_are_not_held() -> None:
    profiler = MemoryProfiler()
    solution = profiled(freeing(), profiler, phase_2=False)
    last = profiler.snapshots[-1].owners
    assert last["tables of values"] == 2 * solution.dag.n_bodies * N_COLUMNS * 4
    assert last["the level in work"] == N_COLUMNS * 2


def test_what_is_held_is_what_the_process_has_and_the_rest_is_unexplained() -> None:
    profiler = MemoryProfiler()
    profiled(freeing(), profiler)
    for snapshot in profiler.snapshots:
        assert 30 * MB < snapshot.resident < 100_000 * MB
        assert snapshot.unexplained + sum(snapshot.owners.values()) == snapshot.resident
        assert 0 not in snapshot.owners.values()


# --- snapshots made by hand -------------------------------------------------------------------------------------------


class Meter:
    """What a process and its workers hold, in the place of what this one does."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.resident, self.workers = 0, 0
        patch.setattr(profiler_module, "resident_bytes", lambda: self.resident)
        patch.setattr(profiler_module, "worker_bytes", lambda: [self.workers])


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    return Meter(monkeypatch)


def seen(meter: Meter, resident: list[int], owned: list[int] | None = None, **options: Any) -> MemoryProfiler:
    """A profile of a process that held so many MB at each level, so many of them in tables."""
    profiler = MemoryProfiler(**options)
    for t, megabytes in enumerate(resident):
        meter.resident = megabytes * MB
        profiler.snapshot("solving", t, 10, {"tables": (owned[t] if owned else 0) * MB})
    return profiler


def test_the_peak_counts_what_workers_have_for_themselves(meter: Meter) -> None:
    profiler = seen(meter, [100, 300])
    meter.resident, meter.workers = 200 * MB, 150 * MB
    profiler.snapshot("solving", 7, 10, {})
    assert profiler.peak.level == 7
    assert "peak: 350 MB, solving level 7" in profiler.report()


def noisy(n: int) -> list[int]:
    return [200 + 40 * ((7 * t) % 5) for t in range(n)]


FLAT = {
    "flat": [200] * 40,
    "noisy": noisy(40),
    "loading at first": [100 + 20 * min(t, 15) for t in range(40)],
    "a step in the end that is small": [200] * 30 + [215] * 10,
    "up and down again": [200 + 10 * min(t, 40 - t) for t in range(40)],
    "too short to tell": [100, 200, 300, 400, 500],
}


@pytest.mark.parametrize("case", FLAT)
def test_a_process_that_stays_as_it_is_does_not_leak(case: str, meter: Meter) -> None:
    profiler = seen(meter, FLAT[case])
    assert not profiler.leaks
    assert "No sign of a leak" in profiler.report()
    assert "LEAK" not in profiler.report()


@pytest.mark.parametrize("growth", [5, 20])
def test_a_process_that_grows_and_nobody_says_why_leaks(growth: int, meter: Meter) -> None:
    profiler = seen(meter, [200 + growth * t for t in range(40)])
    assert profiler.leaks
    assert "THIS LOOKS LIKE A LEAK" in profiler.report()
    assert f"grew by {as_megabytes(39 * growth)}" in profiler.report()


def as_megabytes(number: int) -> str:
    return f"{number} MB"


def test_growth_of_arrays_that_are_wanted_is_no_leak(meter: Meter) -> None:
    """Results that stay in memory grow from level to level, as they should."""
    grown = [20 * t for t in range(40)]
    assert not seen(meter, [200 + number for number in grown], grown).leaks
    assert seen(meter, [200 + number for number in grown], [number // 2 for number in grown]).leaks


def test_noise_on_top_of_growth_does_not_hide_a_leak(meter: Meter) -> None:
    assert seen(meter, [number + 40 * t for t, number in enumerate(noisy(40))]).leaks


# --- what it says -----------------------------------------------------------------------------------------------------


def test_a_report_has_a_timeline_owners_first_and_last_a_verdict_and_the_limit(meter: Meter) -> None:
    text = seen(meter, [100, 400, 250], [0, 300, 120], limit="1GB").report()
    head, timeline, owners, verdict = text.split("\n\n")
    assert re.fullmatch(r"Memory at 3 moments in \d+\.\d s\npeak: 400 MB, solving level 1; limit: 1 GB", head)
    lines = timeline.splitlines()
    assert lines[0].split() == ["seconds", "level", "states", "resident", "highest", "workers", "arrays"]
    assert [line.split()[1:] for line in lines[1:]] == [
        ["solving", "0", "10", "100", "MB", "100", "MB", "0", "B", "0", "B"],
        ["solving", "1", "10", "400", "MB", "400", "MB", "0", "B", "300", "MB"],
        ["solving", "2", "10", "250", "MB", "250", "MB", "0", "B", "120", "MB"],
    ]
    rows = {re.split(r"\s{2,}", line)[0]: re.split(r"\s{2,}", line)[1:] for line in owners.splitlines()}
    assert rows["owner"] == ["first", "at the peak", "last", "most"]
    assert rows["tables"] == ["0 B", "300 MB", "120 MB", "300 MB"]
    assert rows["Python, libraries and the rest"] == ["100 MB", "100 MB", "130 MB", "130 MB"]
    assert verdict.startswith("From the first to the last moment, memory that no array accounts for grew by 30 MB. No sign")


def test_what_shrinks_is_said_to_shrink(meter: Meter) -> None:
    text = seen(meter, [300, 250]).report()
    assert "accounts for shrank by 50 MB" in text
    assert "limit" not in text


def test_a_report_of_many_levels_is_thinned_but_has_the_last(meter: Meter) -> None:
    lines = seen(meter, [100] * 1000).report().split("\n\n")[1].splitlines()
    assert 30 <= len(lines) <= 43
    assert lines[1].split()[2] == "0"
    assert lines[-1].split()[2] == "999"


def test_a_report_of_nothing_says_so(tmp_path: Path) -> None:
    assert "no snapshots" in MemoryProfiler().report()
    assert [path.name for path in MemoryProfiler().write(tmp_path)] == ["memory_profile.txt"]


def test_owners_come_with_the_largest_first(meter: Meter) -> None:
    profiler = MemoryProfiler()
    profiler.snapshot("solving", 1, 1, {"small": 1, "large": 5, "nothing": 0})
    profiler.snapshot("solving", 0, 1, {"small": 2, "larger": 7})
    assert profiler.owners == ["larger", "large", "small"]


# --- where it goes ----------------------------------------------------------------------------------------------------


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("memory_profile"))


@pytest.mark.parametrize("out", [None, True])
def test_without_a_folder_a_profile_goes_to_the_present_one(out: Any, tmp_path: Path) -> None:
    solution = solve(freeing(3), memory_profile=True, out=out, progress=False)
    assert names_in(tmp_path) == FILES
    assert (tmp_path / FILES[0]).read_bytes().startswith(b"\x89PNG")
    assert solution.memory_profile is not None
    assert (tmp_path / FILES[1]).read_text(encoding="utf-8") == solution.memory_profile.report() + "\n"


def test_a_profile_goes_to_the_folder_of_the_results(tmp_path: Path) -> None:
    solve(freeing(3), memory_profile=True, out=tmp_path / "run", memory_limit="4GB", progress=False)
    assert names_in(tmp_path / "run") == FILES
    assert names_in(tmp_path) == []
    assert "; limit: 4 GB" in (tmp_path / "run" / FILES[1]).read_text(encoding="utf-8")
    again = solve(freeing(3), out=tmp_path / "run", progress=False)  # is not disturbed by these files
    assert again.memory_profile is None


def test_no_profile_leaves_no_files(tmp_path: Path) -> None:
    assert solve(freeing(3), progress=False).memory_profile is None
    assert solve(freeing(3), memory_profile=False, progress=False).memory_profile is None
    assert names_in(tmp_path) == []


def test_the_documented_functions_write_profiles_too(tmp_path: Path) -> None:
    world = freeing(3)
    humans, robots = world.human_agent_indices, world.robot_agent_indices
    prior = compute_human_policy_prior(world, humans, memory_profile=True, quiet=True)
    assert names_in(tmp_path) == FILES
    for name in FILES:
        (tmp_path / name).unlink()
    cache = tmp_path / "cache"
    compute_robot_policy(
        world, humans, robots, human_policy_prior=prior, memory_profile=True, use_disk_slicing=True, disk_cache_dir=cache,
        quiet=True,
    )  # fmt: skip
    assert names_in(tmp_path) == []
    (folder,) = cache.iterdir()
    assert names_in(folder) == FILES


def test_where_matplotlib_is_missing_there_is_only_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = builtins.__import__

    def without_matplotlib(name: str, *args: Any, **options: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError("No module named 'matplotlib'")
        return plain(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    solve(freeing(3), memory_profile=True, progress=False)
    assert names_in(tmp_path) == ["memory_profile.txt"]


def test_the_picture_has_owners_the_process_its_workers_and_the_limit(meter: Meter) -> None:
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib.figure import Figure

    profiler = seen(meter, [100, 400, 250], [50, 300, 120], limit="1GB")
    meter.workers = 10 * MB
    profiler.snapshot("reading", 3, 10, {"slices": 20 * MB})
    ax = profiler.plot(Figure().add_subplot())
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [
        "Python, libraries and the rest",
        "tables",
        "slices",
        "resident",
        "highest meanwhile",
        "with workers",
        "limit",
    ]
    assert ax.get_xlabel() == "level (solving, then reading)"
    assert ax.get_lines()[0].get_ydata().tolist() == [100, 400, 250, 250]


# --- lines of source --------------------------------------------------------------------------------------------------


@pytest.fixture
def _stops_tracing() -> Iterator[None]:
    yield
    tracemalloc.stop()


@pytest.mark.usefixtures("_stops_tracing")
def test_with_trace_the_largest_lines_of_source_are_named() -> None:
    profiler = MemoryProfiler(trace=True)
    profiled(freeing(8), profiler)
    peak = profiler.peak
    assert 1 <= len(peak.lines) <= 5
    assert all(re.fullmatch(r"[\d.,]+ [kMG]?B in .*:\d+", line) for line in peak.lines), peak.lines
    assert any(re.search(r"empo_bi/.*\.py:\d+", line) for line in peak.lines)
    assert "the largest lines of Python at the peak:" in profiler.report()


def test_without_trace_nothing_is_traced() -> None:
    profiler = MemoryProfiler()
    profiled(freeing(2), profiler)
    assert not tracemalloc.is_tracing()
    assert all(snapshot.lines == () for snapshot in profiler.snapshots)
    assert "lines of Python" not in profiler.report()


def test_a_finished_solution_that_is_opened_again_can_be_profiled(tmp_path: Path) -> None:
    world = load_world("first_steps")
    for _ in range(2):
        solution = solve(world, out=tmp_path, memory_profile=True, progress=False)
        assert "solving" in solution.memory_profile.report()
