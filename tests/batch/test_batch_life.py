"""A batch shows that it is alive, and Ctrl-C loses little of what it has done."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from batch.batches import lasting_csv, run_here
from batch.test_batch_kills import start

from empo_bi import run_batch
from empo_bi.batch import run_pass
from empo_bi.batch.at_work import AT_WORK, Journal, at_work
from empo_bi.runtime import progress
from empo_bi.store.small_files import Folder

FOUR: dict[str, Any] = {
    "worlds": "pushing/mirror_freeing", "steps": 5, "params": {"zeta": [1, 1.5, 2, 3]}, "keep": "summary",
}  # fmt: skip


# --- signs of life ----------------------------------------------------------------------------------------------------


def test_a_batch_tells_what_it_does_before_the_first_run_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "ALIVE_AFTER", 0.0)
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.002)
    begin = run_pass._Recorder.begin

    def slowly(self: run_pass._Recorder) -> None:
        time.sleep(0.2)
        begin(self)

    monkeypatch.setattr(run_pass._Recorder, "begin", slowly)
    monkeypatch.setattr(progress, "ALIVE_EVERY", 0.02)
    run_batch(FOUR, out=tmp_path, workers=1)
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("empo_bi: batch: 0 of 4 runs done after 0 s; at work: ")
    assert "empo_bi: batch: 0 of 4 runs done after 0 s; at work: pushing/mirror_freeing, 5 steps (4 runs, starting)" in told
    assert not (tmp_path / AT_WORK).exists()


def test_workers_say_which_world_and_level_they_are_at(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    Journal(folder, "this", "freeing, 24 steps", 16).tell("finding states")
    assert at_work(folder, "this") == "freeing, 24 steps (16 runs, finding states)"
    assert at_work(folder, "another call") == ""
    for i, doing in enumerate(["a", "a", "b", "c", "d"]):
        (tmp_path / AT_WORK / f"{i}.json").write_text(json.dumps({"call": "many", "text": f"w (1 run, {doing})"}))
    assert at_work(folder, "many") == "2 x w (1 run, a), w (1 run, b), w (1 run, c), 1 more"


@pytest.mark.parametrize("text", ["[]", '{"call": "this"}', '{"call": "this", "text": 5}', "{", ""])
def test_files_of_others_among_them_harm_nobody(text: str, tmp_path: Path) -> None:
    (tmp_path / AT_WORK).mkdir()
    (tmp_path / AT_WORK / "a.json").write_text(text)
    (tmp_path / AT_WORK / "b.json").write_text(json.dumps({"call": "this", "text": "x\x1b[31m\nempo_bi: all is well"}))
    told = at_work(Folder(tmp_path), "this")
    assert told.startswith("x")
    assert told.isprintable()


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


def interrupt_at(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C as soon as a level is solved."""

    def tell(self: Journal, doing: str, n_runs: int | None = None) -> None:
        if doing == f"solving, {level} levels to go":
            raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "tell_sometimes", tell)


def times_of_levels(batch: Path) -> dict[str, int]:
    """When each level of each run was written."""
    levels = batch.glob("runs/*/solution-*/level_*")
    return {path.relative_to(batch / "runs").as_posix(): path.stat().st_mtime_ns for path in levels if path.is_dir()}


def test_long_sweeps_keep_the_levels_that_were_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sixty runs two were kept: small worlds stayed in memory, however long their sweeps took."""
    monkeypatch.setattr(run_pass, "MOST_WORK_IN_MEMORY", 0)
    with monkeypatch.context() as patch:
        interrupt_at(2, patch)
        with pytest.raises(KeyboardInterrupt) as stopped:
            run_here(FOUR, tmp_path / "stopped")
    assert stopped.value.__notes__ == ["0 of 4 runs finished, 4 runs half done; the same command continues"]
    kept = times_of_levels(tmp_path / "stopped")
    assert {name.rpartition("/")[2] for name in kept} >= {"level_00005", "level_00004", "level_00003"}
    assert len({name.partition("/")[0] for name in kept}) == 4
    later: dict[str, int] = {}

    def look(self: Journal, doing: str, n_runs: int | None = None) -> None:
        if doing == "solving, 1 level to go":
            later.update(times_of_levels(tmp_path / "stopped"))

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "tell_sometimes", look)
        assert run_here(FOUR, tmp_path / "stopped").is_complete
    assert later.items() >= kept.items()  # nothing was solved again
    run_here(FOUR, tmp_path / "whole")
    assert lasting_csv(tmp_path / "stopped") == lasting_csv(tmp_path / "whole")
    assert not list(tmp_path.glob("stopped/runs/*/solution-*"))


def test_runs_that_take_long_together_are_finished_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pass, "WORK_AT_ONCE", 1)
    record, recorded = run_pass._record, []

    def record_two(*arguments: Any) -> None:
        if len(recorded) == 2:
            raise KeyboardInterrupt
        recorded.append(record(*arguments))

    with monkeypatch.context() as patch:
        patch.setattr(run_pass, "_record", record_two)
        with pytest.raises(KeyboardInterrupt) as stopped:
            run_here(FOUR, tmp_path)
    assert (tmp_path / "table.csv").read_text().count("finished") == 2
    assert stopped.value.__notes__ == ["2 of 4 runs finished; the same command continues"]
    again = run_here(FOUR, tmp_path)
    assert (again.n_skipped, again.n_finished) == (2, 4)
    assert {row["runs_in_pass"] for row in again.table.rows} == {1}


def test_short_runs_are_solved_together_and_in_memory(tmp_path: Path) -> None:
    found = run_here(FOUR, tmp_path)
    assert {row["runs_in_pass"] for row in found.table.rows} == {4}
    assert not (tmp_path / "dags").exists()


def test_a_world_whose_states_are_found_slowly_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small it is: another pass, or another call after Ctrl-C, would have to find them again."""
    monkeypatch.setattr(run_pass, "PROBE_SECONDS", 0)
    run_here(FOUR, tmp_path)
    assert list(tmp_path.glob("dags/*/finished"))


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Ctrl-C is another thing on Windows")
def test_workers_that_are_interrupted_while_they_start_say_nothing(tmp_path: Path) -> None:
    """Each ended with a traceback, in the middle of an import. For later moments, see ``test_batch_kills.py``."""
    batch = tmp_path / "batch.yaml"
    batch.write_text("worlds: basics/first_steps\nsteps: 3\nparams: {zeta: [1, 2, 3, 4]}\n")
    process = start(batch, tmp_path / "runs", 2)
    while not _has_workers(process.pid):
        time.sleep(0.01)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    assert process.returncode == 130, complaint.decode()
    assert complaint.decode() == "empo-bi: interrupted. 0 of 4 runs finished; the same command continues\n"


def _has_workers(process: int) -> bool:
    return any("loky" in " ".join(child.cmdline()) for child in psutil.Process(process).children(recursive=True))
