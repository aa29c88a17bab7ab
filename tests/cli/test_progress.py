"""Progress: a bar on a terminal, plain lines elsewhere, and nothing for short work."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from empo_bi import Params, TooManyStatesError, enumerate_dag, load_world, open_dag, solve
from empo_bi.runtime import progress
from empo_bi.runtime.byte_sizes import held_text
from empo_bi.runtime.compilation import compilations
from empo_bi.runtime.progress import LevelBar, RunBar


class Clock:
    """Time that passes when somebody says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setattr(progress, "resident_bytes", lambda: 410_000_000)
    return Clock(monkeypatch)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def as_stderr(stream: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A fixture could not do it: pytest sets its own between fixtures and test."""
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_a_line_says_levels_states_speed_memory_and_time_left(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with LevelBar("solve", 26, True, n_states=5_400_000, limit=2_000_000_000) as bar:
        for t in range(25, 11, -1):
            clock.now += 0.25
            bar.level(t, 85_000)
            clock.now += 0.01
        lines = capsys.readouterr().err.splitlines()
    assert lines == ["empo_bi: solve: level 18 (8 of 26 done), 680,000 states, 327,000 states/s, 0.41 of 2.00 GB, 14 s left"]
    assert capsys.readouterr().err == "empo_bi: solve: 14 levels, 1.2 M states, done in 4 s\n"


def test_lines_begin_after_two_seconds_and_come_every_ten(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    moments = []
    with LevelBar("solve", 100, True) as bar:
        for t in range(100):
            clock.now += 0.5
            bar.level(t, 1)
            if capsys.readouterr().err:
                moments.append(clock.now - 100)
    assert moments == [2, 12, 22, 32, 42]


def test_both_can_be_chosen(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with LevelBar("solve", 100, True, after=0, every=3) as bar:
        for t in range(10):
            bar.level(t, 1)
            clock.now += 1
    assert len(capsys.readouterr().err.splitlines()) == 4 + 1


def test_short_work_and_hidden_work_say_nothing(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with LevelBar("solve", 3, True) as bar:
        clock.now += 1.9
        bar.block(5)
        bar.level(2, 7)
    with LevelBar("solve", 3, False, after=0, every=0) as bar:
        clock.now += 100
        bar.block(5)
        bar.level(2, 7)
    assert capsys.readouterr() == ("", "")


def test_a_long_level_is_told_block_by_block(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with LevelBar("solve", 2, True, n_states=400, every=1) as bar:
        for _ in range(3):
            clock.now += 2
            bar.block(50)
        bar.level(1, 200)
        clock.now += 2
        bar.block(50)
    lines = capsys.readouterr().err.splitlines()
    assert [re.search(r"\((\d) of 2 done\), (\d+) states", line).groups() for line in lines[:-1]] == [  # type: ignore[union-attr]
        ("0", "50"), ("0", "100"), ("0", "150"), ("1", "250"),
    ]  # fmt: skip
    assert lines[0].startswith("empo_bi: solve: the first level in work (0 of 2 done), 50 states, 410 MB held")
    assert "(0 of 2 done), 100 states, 25 states/s, " in lines[1]
    assert lines[2].endswith("10 s left")  # 150 in 6 s, 250 to go


def test_time_that_kernels_take_to_compile_is_not_taken_for_the_speed(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with LevelBar("report", 5, True, n_states=2_000, every=0) as bar:
        clock.now += 2
        bar.level(0, 1)
        clock.now += 3
        bar.level(1, 9)
        clock.now += 0.5
        bar.level(2, 90)
        clock.now += 0.5
        bar.level(3, 900)
    lines = capsys.readouterr().err.splitlines()
    assert [line.endswith(" left") for line in lines] == [False, False, True, True, False]
    assert lines[2].endswith(" 67 s left")  # 99 states in 3.5 s since the first, 1,900 to go
    assert lines[3].endswith(" 4 s left")


def test_slow_work_tells_the_time_left_before_a_hundredth_is_done(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with LevelBar("solve", 9, True, n_states=1_000_000) as bar:
        for _ in range(5):
            clock.now += 10
            bar.block(100)
    lines = capsys.readouterr().err.splitlines()
    assert [" left" in line for line in lines] == [False, False, False, True, True, False]
    assert lines[3].endswith("27 h 46 min left")  # 300 in 30 s, 999,600 to go


def test_without_the_number_of_states_the_last_level_tells(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with LevelBar("enumerate", 10, True, every=0) as bar:
        bar.skip(3)
        clock.now += 2
        bar.level(3, 10)
        clock.now += 4
        bar.level(4, 30)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].endswith("level 3 (4 of 10 done), 10 states, 410 MB held")  # kernels may have been compiled
    assert lines[1].endswith("(5 of 10 done), 40 states, 7.5 states/s, 410 MB held, 20 s left")
    assert lines[2].startswith("empo_bi: enumerate: 5 levels, 40 states")


def test_what_is_not_known_is_left_out(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with LevelBar("verify", None, True) as bar:
        clock.now += 200
        bar.level(0)
    assert capsys.readouterr().err.splitlines()[0] == "empo_bi: verify: level 0 (1 done), 410 MB held"


def test_work_that_fails_does_not_claim_to_be_done(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(RuntimeError), LevelBar("solve", 3, True) as bar:
        clock.now += 5
        bar.level(2, 7)
        raise RuntimeError
    told = capsys.readouterr().err
    assert "level 2 (1 of 3 done)" in told
    assert "done in" not in told


def test_a_terminal_has_a_bar_that_goes_when_it_is_done(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_stderr(Terminal(), monkeypatch)
    with LevelBar("solve", 4, True, n_states=400, limit=2_000_000_000) as bar:
        clock.now += 0.9
        bar.level(3, 100)
        assert terminal.getvalue() == ""
        clock.now += 1.1
        bar.level(2, 100)
        shown = terminal.getvalue()
    assert "solve:  50%|" in shown
    assert "2/4 levels, 90.9 states/s, 0.41 of 2.00 GB, 2 s left" in shown
    assert "\n" not in terminal.getvalue()
    assert terminal.getvalue().split("\r")[-2].strip() == ""


def test_a_bar_without_a_number_of_levels(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = as_stderr(Terminal(), monkeypatch)
    with LevelBar("enumerate", None, True) as bar:
        clock.now += 2
        bar.level(0, 100)
    assert "enumerate: 1 levels, 410 MB held" in terminal.getvalue()


@pytest.mark.parametrize("no_stderr", [None, object()])
def test_no_stderr_is_no_terminal(no_stderr: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    as_stderr(no_stderr, monkeypatch)
    with LevelBar("solve", 3, True) as bar:
        bar.level(2, 7)


@pytest.mark.parametrize(
    ("held", "limit", "text"),
    [
        (0, 1_000_000, "0.00 of 1.00 MB"),
        (1.5e9, 25.4e9, "1.5 of 25.4 GB"),
        (9.994e9, 9.996e9, "10.0 of 10.0 GB"),
        (3e9, 999.9e6, "3.00 of 1.00 GB"),
        (5, 100, "5 of 100 B"),
        (123_456, None, "123 kB held"),
    ],
)
def test_memory_is_told_in_the_unit_of_the_limit(held: float, limit: float | None, text: str) -> None:
    assert held_text(held, limit) == text


def test_no_speed_is_told_while_kernels_compile(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was "0.0301 states/s": one state after 33 seconds of compiling."""
    compiling = 0.0
    monkeypatch.setattr(type(compilations), "seconds", property(lambda _: compiling))
    with LevelBar("enumerate", 4, True, every=0) as bar:
        clock.now, compiling = clock.now + 33, compiling + 33
        bar.level(0, 1)
        clock.now, compiling = clock.now + 20, compiling + 19.9  # another kernel
        bar.level(1, 36)
        assert "states/s" not in capsys.readouterr().err
        clock.now += 1.9
        bar.level(2, 164)
    assert capsys.readouterr().err.splitlines()[0] == (
        "empo_bi: enumerate: level 2 (3 of 4 done), 201 states, 100 states/s, 410 MB held, 2 s left"  # 200 in 2 s
    )


def test_a_batch_says_that_it_is_alive_within_ten_seconds_and_every_minute(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    bar = RunBar("batch", 60, True, lambda: "freeing, 24 steps (16 runs, level 3 of 24)")
    moments, lines = [], []
    for _ in range(200):
        clock.now += 1
        bar.tick()
        if told := capsys.readouterr().err:
            moments.append(clock.now - 100)
            lines.append(told.rstrip())
    assert moments == [5, 65, 125, 185]
    assert lines[1] == ("empo_bi: batch: 0 of 60 runs done after 65 s; at work: freeing, 24 steps (16 runs, level 3 of 24)")
    bar.update(16)
    capsys.readouterr()
    clock.now += 59
    bar.tick()
    assert not capsys.readouterr().err  # a line that tells what was done is a sign of life, too
    clock.now += 1
    bar.tick()
    assert capsys.readouterr().err.startswith("empo_bi: batch: 16 of 60 runs done; at work: ")


def test_on_a_terminal_the_bar_of_a_batch_moves_before_the_first_run_is_done(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = as_stderr(Terminal(), monkeypatch)
    bar = RunBar("batch", 60, True, lambda: "freeing, 24 steps")
    clock.now += 0.9
    bar.tick()
    assert "freeing" not in terminal.getvalue()
    clock.now += 0.2
    bar.tick()
    assert re.search("0/60 .*freeing, 24 steps", terminal.getvalue())


@pytest.mark.parametrize("shown", [False, True])
def test_a_thread_looks_at_the_clock_unless_the_batch_is_hidden(
    shown: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "ALIVE_AFTER", 0.0)
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.001)
    asked = threading.Event()
    with RunBar("batch", 60, shown, lambda: asked.set() or ""):  # type: ignore[func-returns-value]
        assert asked.wait(5 if shown else 0.05) is shown
    assert len(capsys.readouterr().err.splitlines()) == shown


# --- in real runs -----------------------------------------------------------------------------------------------------


def lines_of(text: str, what: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"empo_bi: {what}: level ")]


def test_runs_tell_every_level_and_their_limit_and_results_do_not_depend_on_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(progress, "LINE_AFTER", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    world = load_world("asymmetric_freeing", max_steps=5)
    with solve(world, Params(zeta=2), memory_limit="4GB", out=tmp_path) as shown:
        told = capsys.readouterr().err
        value = shown.values.V_r[0][0]
    for what in ("enumerate", "solve"):
        done = [re.search(r"\((\d) of 6 done\)", line)[1] for line in lines_of(told, what)]  # type: ignore[index]
        assert sorted(set(done)) == ["1", "2", "3", "4", "5", "6"]
        assert all(" of 4.00 GB" in line for line in lines_of(told, what))
        assert f"empo_bi: {what}: 6 levels, 1,253 states, done in " in told
    assert lines_of(told, "solve")[-1].endswith(" 0 s left")
    with solve(world, Params(zeta=2), progress=False) as hidden:
        assert hidden.values.V_r[0][0] == value
    assert capsys.readouterr() == ("", "")


def test_enumerating_without_a_limit_tells_what_is_held(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_AFTER", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    monkeypatch.setattr(progress, "RATE_FROM_SECONDS", 0.0)
    enumerate_dag(load_world("asymmetric_freeing", max_steps=3))
    told = capsys.readouterr().err
    assert told.startswith("empo_bi: enumerate: the first level in work (0 of 4 done), ")  # a block of it was done
    (last,) = [line for line in lines_of(told, "enumerate") if "(4 of 4 done)" in line]
    assert re.search(r"level 3 \(4 of 4 done\), 389 states, [\d,]+ states/s, \d+ MB held, 0 s left$", last)


def test_a_run_that_continues_counts_what_was_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    world = load_world("asymmetric_freeing", max_steps=5)
    with pytest.raises(TooManyStatesError):
        enumerate_dag(world, store=tmp_path / "dag", max_states=300)
    with open_dag(tmp_path / "dag") as begun:
        n_there = len(begun.level_sizes)
    assert 0 < n_there < 6
    monkeypatch.setattr(progress, "LINE_AFTER", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    enumerate_dag(world, store=tmp_path / "dag").close()
    told = capsys.readouterr().err.splitlines()
    assert f"({n_there} of 6 done)" in told[0]
    assert told[-1].startswith("empo_bi: enumerate: 6 levels, ")
