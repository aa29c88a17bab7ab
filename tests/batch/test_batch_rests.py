"""What killed processes leave in the folder of a batch goes with the next call, and what living ones hold stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from batch.batches import SMALL, lasting_csv, run_here
from command_line import invoke
from store.forging import manifest_of_run

from empo_bi.batch import run_pass as work_module
from empo_bi.batch.run_pass import do_pass
from empo_bi.batch.table import Table
from empo_bi.store.lock import WriterLock
from empo_bi.store.small_files import Folder


def names_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_rests_go_when_nothing_is_left_to_do_and_when_something_is(tmp_path: Path) -> None:
    run_here(SMALL, tmp_path)
    expected = names_below(tmp_path)
    for is_left in (False, True):
        run = next((tmp_path / "runs").iterdir())
        (tmp_path / ".table.csv.123.partial").touch()
        (run / ".manifest.json.123.partial").touch()
        shutil.copytree(next(run.glob("solution-*")), run / ".solution-0a.123.partial")
        shutil.copytree(next(run.glob("solution-*")), run / "solution-0a")  # that another precision had, say
        (run / "solution-0a.lock").touch()
        (tmp_path / "dags").mkdir(exist_ok=True)
        (tmp_path / "dags/0a.turn").touch()
        if is_left:
            (next(path for path in (tmp_path / "runs").iterdir() if path != run) / "manifest.json").unlink()
        assert run_here(SMALL, tmp_path).is_complete
        (tmp_path / "dags").rmdir()
        assert names_below(tmp_path) == expected


def test_the_lock_of_somebody_who_is_at_work_stays(tmp_path: Path) -> None:
    run_here(SMALL, tmp_path)
    run = next((tmp_path / "runs").iterdir())
    lock = WriterLock(run / "solution-0a.lock")
    assert run_here(SMALL, tmp_path).is_complete
    assert (run / "solution-0a.lock").exists()
    lock.release()


def test_solutions_that_were_not_to_be_kept_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_module, "SMALL_BODIES", 10)  # so that they are on disk meanwhile
    batch = {**SMALL, "keep": "summary"}
    with monkeypatch.context() as patch:
        patch.setattr(Folder, "remove", lambda *_, **__: None)  # a killed process removes nothing
        run_here(batch, tmp_path)
    assert list(tmp_path.glob("runs/*/solution-*"))
    assert invoke("verify", tmp_path).exit_code == 0
    assert run_here(batch, tmp_path).n_skipped == 8
    assert not list(tmp_path.glob("runs/*/solution-*"))


def test_a_worker_that_outlives_its_call_leaves_runs_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a cluster whose caller was killed: in the middle of a sweep, a later call takes the runs over."""
    monkeypatch.setattr(work_module, "OURS_SECONDS", -1)
    passes: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr("empo_bi.batch.batch.do_pass", lambda work: passes.append(work) or do_pass(work))
        run_here(SMALL, tmp_path)
    before = lasting_csv(tmp_path)
    work = passes[0]
    plain = work_module._Recorder.begin

    def taken_over(self: Any) -> None:
        plain(self)
        for run in work.runs:
            file = tmp_path / "runs" / run.folder_name / "manifest.json"
            file.write_text(json.dumps({**manifest_of_run(file.parent), "call": "a later one"}))
            shutil.rmtree(next(file.parent.glob("solution-*")))

    monkeypatch.setattr(work_module._Recorder, "begin", taken_over)
    found = do_pass(work)
    assert {manifest["error"]["type"] for manifest in found.values()} == {"_TakenOverError"}
    for run in work.runs:  # the later one's word counts
        assert json.loads((tmp_path / "runs" / run.folder_name / "manifest.json").read_text())["call"] == "a later one"
    monkeypatch.undo()
    assert run_here(SMALL, tmp_path).is_complete
    assert lasting_csv(tmp_path) == before


def test_half_a_table_is_written_again(tmp_path: Path) -> None:
    table = Table([{"run": "a", "V_r": -1.5}])
    folder = Folder(f"local://{tmp_path}")
    table.write(folder)
    whole = (tmp_path / "table.parquet").read_bytes()
    (tmp_path / "table.parquet").write_bytes(whole[:50])
    table.write(folder)
    assert (tmp_path / "table.parquet").read_bytes() == whole


def test_a_batch_that_keeps_no_stores_has_nothing_to_verify(tmp_path: Path) -> None:
    run_here({**SMALL, "keep": "summary"}, tmp_path)
    done = invoke("verify", tmp_path)
    assert (done.exit_code, "nothing to check" in done.output) == (0, True)
