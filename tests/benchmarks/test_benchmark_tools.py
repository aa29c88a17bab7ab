"""What sections of the benchmarks are made of: fits, tables, figures that are wanted, processes of their own, rooms."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.child import in_child
from benchmarks.fitting import exponent
from benchmarks.measuring import Runs, duration, in_turns, megabytes
from benchmarks.report import Curve, Section, Table, Wanted, wanted_table
from benchmarks.rooms import rectangles, room
from empo_bi import enumerate_dag, load_world

MEGABYTE = 1 << 20


# --- called in processes of their own -------------------------------------------------------------------------------------


def holds(n_bytes: int) -> int:
    return int(np.ones(n_bytes, dtype=np.uint8).sum())


def fails() -> None:
    raise ValueError("on purpose")


def works(seconds: float) -> None:
    begin = time.process_time()
    while time.process_time() - begin < seconds:
        pass


# --- fits -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [0.5, 1.0, 2.3, -1.0])
def test_an_exact_power_law_gives_its_exponent(power: float) -> None:
    x = [1.0, 3.0, 10.0, 500.0]
    found = exponent(x, [7.0 * one**power for one in x])
    assert found == pytest.approx(power, abs=1e-12)


def test_points_below_the_least_do_not_bend_a_fit() -> None:
    x = [1.0, 10.0, 100.0, 1000.0]
    y = [0.05, 0.06, 1.0, 10.0]  # constant costs first, then proportional
    assert exponent(x, y, least=0.5) == pytest.approx(1.0)
    bent = exponent(x, y)
    assert bent is not None
    assert bent < 0.9


@pytest.mark.parametrize(("x", "y"), [([], []), ([3.0], [1.0]), ([10.0, 12.0], [1.0, 2.0]), ([1.0, 8.0], [0.1, 0.0])])
def test_too_few_points_or_too_near_ones_give_no_exponent(x: list[float], y: list[float]) -> None:
    assert exponent(x, y) is None


# --- the report -----------------------------------------------------------------------------------------------------------


def test_a_table_is_aligned_text_and_markdown() -> None:
    table = Table("Title", ["", "time"], note="A note.")
    table.row("short", "1 s")
    table.row("rather long", "100 s")
    assert table.text() == (
        "Title\n\n"
        "              time\n"
        "------------------\n"
        "short          1 s\n"
        "rather long  100 s\n\n"
        "A note."
    )  # fmt: skip
    assert table.markdown() == (
        "**Title**\n\n|  | time |\n| :--- | ---: |\n| short | 1 s |\n| rather long | 100 s |\n\nA note."
    )


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Table("Title", ["a", "b"]).row("x")


@pytest.mark.parametrize(
    ("wanted", "is_met", "verdict", "bound"),
    [
        (Wanted("speed", 5.0, at_least=5), True, "met", "at least 5x"),
        (Wanted("speed", 4.99, at_least=5), False, "NOT MET", "at least 5x"),
        (Wanted("time", 2.0, at_most=2, unit=" s"), True, "met", "at most 2 s"),
        (Wanted("time", 2.1, at_most=2, unit=" s"), False, "NOT MET", "at most 2 s"),
        (Wanted("time", None, at_most=2), False, "NOT MEASURED", "at most 2x"),
    ],
)
def test_a_figure_is_met_missed_or_not_measured(wanted: Wanted, is_met: bool, verdict: str, bound: str) -> None:
    assert (wanted.is_met, wanted.verdict, wanted.bound) == (is_met, verdict, bound)
    (row,) = wanted_table([wanted]).rows
    assert list(row[2:]) == [bound, verdict]


def test_a_section_survives_json() -> None:
    section = Section(
        "name", "Title", about=["One.", "Two."], missing=["a peer"], figures={"x": 1.5}, seconds=2.0, others=0.5
    )
    section.table("Table", "", "number", note="note").row("a", "1")
    section.want("figure", 3.0, at_least=2.0, why="because")
    section.curves.append(Curve("plot", "x", "y", "line", [1.0, 2.0], [3.0, 4.0], 0.9))
    again = Section.from_json(json.loads(json.dumps(section.as_json())))
    assert again.as_json() == json.loads(json.dumps(section.as_json()))
    assert again.text() == section.text()
    assert again.wanted == section.wanted
    assert again.tables[0].markdown() == section.tables[0].markdown()
    assert again.curves[0].exponent == 0.9


def test_durations_and_sizes_are_written_in_fitting_units() -> None:
    assert [duration(s) for s in (2e-6, 0.0123, 1.5, 250.0)] == ["2 us", "12.3 ms", "1.50 s", "250 s"]
    assert [megabytes(n) for n in (1_500_000, 2_000_000_000)] == ["1.5 MB", "2,000 MB"]


def test_the_fastest_run_counts_and_the_median_tells_the_spread() -> None:
    runs = Runs(wall=[3.0, 2.0, 2.5], cpu=[1.0, 1.1, 0.9])
    assert (runs.seconds, runs.cpu_seconds, runs.spread) == (2.0, 0.9, pytest.approx(0.25))
    order: list[str] = []
    done = in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    assert order == ["a", "b", "a", "b"]
    assert [len(run.wall) for run in done.values()] == [2, 2]


# --- processes of their own -----------------------------------------------------------------------------------------------

HERE = "tests.benchmarks.test_benchmark_tools"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
def test_the_peak_of_a_child_is_what_it_allocated_and_what_was_there_before_is_less() -> None:
    n_bytes = 200 * MEGABYTE
    child = in_child(f"{HERE}:holds", n_bytes=n_bytes)
    assert child.result == n_bytes
    assert child.peak >= n_bytes + child.before // 2
    assert child.before < n_bytes + child.before // 2
    assert n_bytes * 0.95 <= child.added <= n_bytes * 1.2


def test_a_child_that_fails_is_an_error_that_names_it(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match=r"fails\(\{\}\) ended with exit code 1"):
        in_child(f"{HERE}:fails")
    assert "ValueError: on purpose" in capfd.readouterr().err


def test_a_child_tells_its_own_cpu_time() -> None:
    child = in_child(f"{HERE}:works", seconds=0.3)
    assert 0.3 <= child.cpu_seconds < 1.0
    assert child.seconds >= 0.3


# --- rooms ----------------------------------------------------------------------------------------------------------------


def test_a_room_has_as_many_rectangles_as_there_are_pairs_of_columns_and_rows() -> None:
    found = rectangles(4, 3)
    assert len(set(found)) == len(found) == (4 * 5 // 2) * (3 * 4 // 2)
    assert found[0] == (1, 1, 1, 1)
    assert found[-1] == (1, 1, 4, 3)


@pytest.mark.filterwarnings("error")
def test_a_room_is_a_world_with_what_was_asked_for() -> None:
    world = load_world(room(3, 2, humans=2, robots=1, n_goals=10, actions="ObjectActions"), max_steps=2, strict=True)
    assert (len(world.human_agent_indices), len(world.robot_agent_indices)) == (2, 1)
    assert world.action_space.n == 7
    assert world.possible_goal_generator.n_goals == 10


def test_an_empty_room_is_explored_until_everybody_has_been_everywhere() -> None:
    dag = enumerate_dag(load_world(room(2, 2, humans=1, n_goals=4), max_steps=12), progress=False)
    assert dag.level_sizes[-2:] == [4 * 4 * 3 * 4] * 2  # cells and directions of one, then of the other


def test_rooms_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="5 agents do not fit into 2 x 2"):
        room(2, 2, humans=4, n_goals=1)
    with pytest.raises(ValueError, match="10 goals, but 2 x 2 cells have 9"):
        room(2, 2, humans=1, n_goals=10)


def test_two_checkouts_are_compared_in_turns() -> None:
    here = Path(__file__).parents[2]
    script = [sys.executable, str(here / "benchmarks/compare_checkouts.py"), str(here), str(here)]
    choices = ["--world", "basics/first_steps", "--steps", "3", "--rounds", "1", "--cases", "enumerate in memory"]
    done = subprocess.run([*script, *choices], capture_output=True, text=True, timeout=300, check=True)
    line = done.stdout.splitlines()[-1]
    assert line.startswith("enumerate in memory")
    assert line.count("x") == 2
