"""What is stored how: accounts of DAGs and solutions agree with sizes that are worked out here, and with files on disk."""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planning_worlds import Ring, step_of
from store_tools import Drift

from benchmarks.measuring import obvious_bytes
from empo_bi import Dag, Params, enumerate_dag, load_world, solve
from empo_bi.memory.storage_report import WAYS, Account, MemoryReport

PARAMS = Params(gamma_h=0.99, gamma_r=0.99)
TRANSITIONS = ("succ", "prob", "count", "members", "expanded", "added", "ended")


def freeing(steps: int = 6) -> Any:
    return load_world("asymmetric_freeing", max_steps=steps)


def account(report: MemoryReport, name: str) -> Account:
    (found,) = [each for each in report.accounts if each.name == name]
    return found


def files_of(folder: Path, *arrays: str) -> int:
    """Bytes of all files of some arrays of all levels, metadata included."""
    return sum(path.stat().st_size for name in arrays for path in folder.glob(f"level_*/{name}/**/*") if path.is_file())


def numbers_in(state: Any) -> Iterator[Any]:
    if isinstance(state, tuple):
        for part in state:
            yield from numbers_in(part)
    else:
        yield state


# --- reports ----------------------------------------------------------------------------------------------------------


def test_accounts_add_up() -> None:
    report = MemoryReport("a title", [Account("one", 800, 400, 40, 10), Account("two", 80, 40, 4, 1)])
    assert report.total == Account("together", 880, 440, 44, 11)
    assert report.reductions == {"dense float32": 2.0, "packed": 10.0, "compressed": 4.0, "together": 80.0}


def test_what_is_not_on_disk_has_no_compressed_size() -> None:
    report = MemoryReport("a title", [Account("one", 800, 400, 40), Account("two", 80, 40, 4, 1)])
    assert report.total.compressed is None
    assert report.reductions == {"dense float32": 2.0, "packed": 10.0, "together": 20.0}
    assert str(report).splitlines()[-2].split() == ["smaller", "by", "2.0x", "10.0x", "-"]


def test_nothing_at_all_is_reported_without_dividing_by_zero() -> None:
    report = MemoryReport("nothing", [Account("one", 0, 0, 0, 0)])
    assert report.total.steps == [0, 0, 0, 0]
    assert report.reductions["together"] == 0.0
    assert "0 B" in str(report)


def test_a_report_is_a_table_with_a_row_for_each_kind_and_a_column_for_each_way() -> None:
    text = str(
        MemoryReport("a title", [Account("one", 8_000_000, 4_000_000, 40_000, 10), Account("two kinds", 80, 40, 4, 1)])
    )
    lines = text.splitlines()
    assert lines[0] == "a title"
    assert re.split(r"\s{2,}", lines[2].strip()) == list(WAYS)
    assert [re.split(r"\s{2,}", line.strip()) for line in lines[3:6]] == [
        ["one", "8 MB", "4 MB", "40 kB", "10 B"],
        ["two kinds", "80 B", "40 B", "4 B", "1 B"],
        ["together", "8 MB", "4 MB", "40 kB", "11 B"],
    ]
    assert lines[6].split() == ["smaller", "by", "2.0x", "100.0x", "3,636.7x"]
    assert lines[7] == "727,280 times smaller in all"
    assert len({len(line) for line in lines[2:7]}) == 1


@pytest.mark.parametrize("out", [None, True])
def test_the_reductions_of_all_steps_multiply_up_to_the_whole(out: Any) -> None:
    solution = solve(freeing(), PARAMS, out=out, progress=False)
    for report in (solution.memory_report(), solution.dag.memory_report()):
        *steps, together = report.reductions.values()
        assert together == pytest.approx(np.prod(steps))
        assert len(steps) == (2 if out is None else 3)
        assert together > 5


# --- DAGs -------------------------------------------------------------------------------------------------------------


def entries_of_states(dag: Dag) -> int:
    """Successors of all states of all levels, read level by level."""
    return sum(len(dag.level(t).succ_K) for t in range(dag.horizon + 1))


@pytest.mark.parametrize(("name", "steps"), [("asymmetric_freeing", 6), ("ice_rink", 5), ("off_switch", 6)])
def test_a_dense_dag_has_a_number_for_each_state_profile_successor_and_goal(name: str, steps: int) -> None:
    dag = enumerate_dag(load_world(name, max_steps=steps), progress=False)
    report = dag.memory_report()
    assert dag.goals is not None
    n_columns = len(dag.goals.humans) * dag.goals.n_goals
    n_numbers = len(list(numbers_in(dag.states(0)[0])))
    dense = {
        "transitions": 2 * entries_of_states(dag) + dag.n_states * dag.n_profiles,
        "goals attained": dag.n_states * n_columns,
        "states": dag.n_states * n_numbers,
    }
    assert {each.name: each.dense_float64 for each in report.accounts} == {what: 8 * n for what, n in dense.items()}
    assert {each.name: each.dense_float32 for each in report.accounts} == {what: 4 * n for what, n in dense.items()}
    assert report.title == dag.summary()


def test_where_levels_are_not_nested_a_dense_dag_is_told_about_right() -> None:
    dag = enumerate_dag(load_world("carousel", max_steps=8), progress=False)
    dense = account(dag.memory_report(), "transitions").dense_float64
    assert dense == pytest.approx(8 * (2 * entries_of_states(dag) + dag.n_states * dag.n_profiles), rel=0.05)


def test_a_packed_dag_is_the_arrays_of_its_slices() -> None:
    dag = enumerate_dag(freeing(), progress=False)
    report, pieces = dag.memory_report(), [dag.levels[t] for t in range(dag.horizon + 1)]
    packed = {each.name: each.packed for each in report.accounts}
    assert packed["transitions"] == 4 * dag.n_transitions  # nothing is uncertain here: only successors, 32 bits each
    assert packed["states"] == dag.n_bodies * 8  # a key is one word
    assert packed["goals attained"] == dag.n_bodies * 5  # 36 bits
    assert sum(packed.values()) == sum(piece.nbytes for piece in pieces)
    assert all(each.compressed is None for each in report.accounts)


@pytest.mark.parametrize("name", ["asymmetric_freeing", "ice_rink", "carousel"])
@pytest.mark.parametrize("place", ["folder", "dag.zip"])
def test_compressed_sizes_of_a_dag_are_those_of_its_files(name: str, place: str, tmp_path: Path) -> None:
    world = load_world(name, max_steps=6)
    in_memory = enumerate_dag(world, progress=False).memory_report()
    report = enumerate_dag(world, store=tmp_path / place, progress=False).memory_report()
    folder = tmp_path / place
    if place.endswith(".zip"):
        folder = tmp_path / "unpacked"
        with zipfile.ZipFile(tmp_path / place) as packed:
            packed.extractall(folder)
    assert account(report, "transitions").compressed == files_of(folder, *TRANSITIONS)
    assert account(report, "goals attained").compressed == files_of(folder, "attained")
    assert account(report, "states").compressed == files_of(folder, "key")
    assert [each.steps[:3] for each in report.accounts] == [each.steps[:3] for each in in_memory.accounts]


def test_a_dag_of_a_python_world_counts_its_states_as_objects(tmp_path: Path) -> None:
    dag = enumerate_dag(Ring(), level_fct=step_of, store=tmp_path / "dag", progress=False)
    report = dag.memory_report()
    assert account(report, "transitions").dense_float64 == 8 * (2 * dag.n_transitions + dag.n_states * 8)
    assert account(report, "states").dense_float64 == 8 * dag.n_states * 2
    assert account(report, "states").compressed == files_of(tmp_path / "dag", "states")
    in_memory = enumerate_dag(Ring(), level_fct=step_of, progress=False).memory_report()
    assert account(in_memory, "states").packed == 200 * dag.n_bodies


def test_a_python_world_without_goals_that_shares_bodies_is_reported_too() -> None:
    dag = enumerate_dag(Drift(8), progress=False)
    report = dag.memory_report()
    assert account(report, "goals attained").steps == [0, 0, 0, None]
    entries = 8 * (2 * entries_of_states(dag) + dag.n_states * 2)
    assert account(report, "transitions").dense_float64 == pytest.approx(entries, rel=0.25)  # many end early


# --- solutions --------------------------------------------------------------------------------------------------------

WIDTHS = {"V_h": 36, "V_h with the robot": 36, "X_h": 2, "Q_r": 4, "V_r": 1}  # of asymmetric_freeing


@pytest.mark.parametrize(("precision", "rest"), [("float16", 2), ("float64", 8)])
def test_a_solution_accounts_for_values_and_for_policies_that_it_does_not_keep(precision: str, rest: int) -> None:
    solution = solve(freeing(), PARAMS, precision=precision, progress=False)
    report, n = solution.memory_report(), solution.dag.n_states
    expected = {name: [8 * n * width, 4 * n * width, n * width * (rest if "V_h" in name else 8), None]
                for name, width in WIDTHS.items()}  # fmt: skip
    expected["policies of the humans"] = [8 * n * 36 * 4, 4 * n * 36 * 4, 0, None]
    assert {each.name: each.steps for each in report.accounts} == expected
    assert report.total.packed == solution.results.held_bytes
    assert report.title == solution.summary()


def test_without_phase_2_only_phase_1_is_accounted_for() -> None:
    report = solve(freeing(), PARAMS, phase_2=False, progress=False).memory_report()
    assert [each.name for each in report.accounts] == ["V_h", "policies of the humans"]


def test_with_a_prior_of_ones_own_phase_1_is_not_accounted_for() -> None:
    prior = lambda state, human, goal: [0.5, 0.5]  # noqa: E731
    report = solve(Ring(), PARAMS, human_policy_prior=prior, progress=False).memory_report()
    assert [each.name for each in report.accounts][:-1] == ["V_h with the robot", "X_h", "Q_r", "V_r"]


def test_compressed_sizes_of_a_solution_are_those_of_its_files(tmp_path: Path) -> None:
    solution = solve(freeing(), PARAMS, out=tmp_path, progress=False)
    report = solution.memory_report()
    (folder,) = tmp_path.glob("solution-*")
    arrays = {"V_h": "vh", "V_h with the robot": "ve", "X_h": "xh", "Q_r": "qr", "V_r": "vr"}
    for name, array in arrays.items():
        assert account(report, name).compressed == files_of(folder, array) > 0
    assert account(report, "policies of the humans").compressed == 0
    in_memory = solve(freeing(), PARAMS, progress=False).memory_report()
    assert [each.steps[:3] for each in report.accounts] == [each.steps[:3] for each in in_memory.accounts]


def test_compression_shows_in_the_account(tmp_path: Path) -> None:
    reports = [
        solve(freeing(8), PARAMS, out=tmp_path / str(on), compression=on, progress=False).memory_report()
        for on in (True, False)
    ]
    tight, loose = (report.total.compressed for report in reports)
    assert tight is not None
    assert loose is not None
    assert tight < loose / 2


# --- the obvious data structures --------------------------------------------------------------------------------------


def size_of(thing: Any) -> int:
    """An object with all that is in it, as Python reckons."""
    parts = [*thing, *thing.values()] if isinstance(thing, dict) else thing if isinstance(thing, list | tuple) else []
    return sys.getsizeof(thing) + sum(map(size_of, parts))


def test_the_obvious_structures_are_as_large_as_python_makes_them() -> None:
    n_states, n_profiles, n_columns = 40, 16, 3
    successors = [10**6, 10**6 + 1]
    transitions = [(j, [0.25, 0.75], successors.copy()) for _ in range(n_states) for j in range(n_profiles)]
    pairs = [(s, j, x) for s in range(n_states) for j in range(n_profiles) for x in range(n_columns)]
    attainment = {pair: np.zeros(2) for pair in pairs}
    found = obvious_bytes(n_states, n_profiles, 2 * n_states * n_profiles, n_columns)
    assert found["transition tuples"] == pytest.approx(size_of(transitions), rel=0.2)
    assert found["dictionary of attainment arrays"] == pytest.approx(size_of(attainment), rel=0.2)


def test_the_obvious_structures_grow_with_what_is_in_them() -> None:
    small = obvious_bytes(100, 4, 400, 6)
    assert {name: 10 * nbytes for name, nbytes in small.items()} == pytest.approx(obvious_bytes(1000, 4, 4000, 6))
    assert obvious_bytes(100, 4, 400, 12)["dictionary of attainment arrays"] == 2 * small["dictionary of attainment arrays"]
    assert obvious_bytes(0, 4, 0, 6) == {"transition tuples": 0, "dictionary of attainment arrays": 0}
