"""Texts, numbers and nesting in files of a batch that we would never write."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from batch.batches import run_here
from command_line import invoke
from store.forging import manifest_of_run

from empo_bi import DamagedStoreError, MemoryLimitError, StoreMismatchError, StoreNotFoundError, open_solution
from empo_bi.batch.batch import failure_lines
from empo_bi.batch.stores import damaged_manifests
from empo_bi.runtime.json_text import MOST_VALUES, parse_json
from empo_bi.runtime.machine import resident_bytes
from empo_bi.solving.run_manifest_rules import _is_plain, _is_text
from empo_bi.store.small_files import Folder


def test_json_that_is_nested_deeper_than_ours_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text(json.dumps({"a": 1})[:-1] + ', "b": ' + "[" * 200 + "]" * 200 + "}")
    (tmp_path / "flat.json").write_text('{"a": {"b": [1]}}')
    assert Folder(tmp_path).read_json("deep.json") is None
    assert Folder(tmp_path).read_json("flat.json") == {"a": {"b": [1]}}


def test_json_that_would_take_far_more_memory_than_it_is_long_is_not_read(tmp_path: Path) -> None:
    for name, text in {"lists": "[" + "[]," * MOST_VALUES + "[]]", "objects": '{"a":{},' * MOST_VALUES}.items():
        (tmp_path / f"{name}.json").write_text(f'{{"a": {text}}}')
        assert Folder(tmp_path).read_json(f"{name}.json") is None
        with pytest.raises(ValueError, match="at most 1,048,576 are read"):
            parse_json(text)
    assert parse_json("[" + "1," * (MOST_VALUES - 2) + "1]")[-1] == 1


def test_what_a_run_did_not_keep_is_computed_again_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = {"worlds": "asymmetric_freeing", "steps": 12, "params": {"zeta": 2}, "keep": "summary"}
    assert run_here(batch, tmp_path).is_complete
    (run,) = (tmp_path / "runs").iterdir()
    with open_solution(run, memory_limit=resident_bytes() + (1 << 30), progress=False) as solution:
        assert solution.dag.n_states == manifest_of_run(run)["columns"]["states"]
    monkeypatch.setattr("empo_bi.solving.opening.AGAIN_STEPS", 11)
    with pytest.raises(StoreNotFoundError, match=r"its world has 12 steps; up to 11 are computed again .*keep: values"):
        open_solution(run, progress=False)
    monkeypatch.undo()
    with pytest.raises(MemoryLimitError, match=r"computed again when it is opened, .* takes more than .*keep: values"):
        open_solution(run, memory_limit=resident_bytes() + (8 << 20), progress=False)


def test_numbers_beyond_floats_and_halves_of_characters_are_refused() -> None:
    assert _is_plain(2**70)
    assert not _is_plain(10**4000)
    assert _is_text("a")
    assert not _is_text("\ud800x")


def test_an_error_of_a_run_is_one_line() -> None:
    rows = [{"world": "w\nall checksums agree", "error": "E\nstatus: finished", "steps": 2, "run": "r"}]
    assert failure_lines(rows) == ["w all checksums agree, 2 steps (r): E status: finished"]


RESULTS = ("columns", "metric_columns", "timings", "dag", "store", "ended")
UNCHECKED = {
    "lines in the place of a DAG": {"dag": "x\nstatus: finished\nall checksums agree"},
    "columns that are none": {"columns": 5},
    "times that are texts": {"timings": {"a_seconds": "x"}},
    "no times at all": {"timings": {}},
    "columns alone": {"columns": {"a": 1}},
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch of two runs, all of which was kept."""
    folder = tmp_path_factory.mktemp("batch")
    assert run_here({"worlds": "basics/first_steps", "steps": [1, 2]}, folder).is_complete
    return folder


def changed(run: Path, status: str, **fields: Any) -> None:
    """Make a run one that has no results, but for these."""
    manifest = manifest_of_run(run)
    manifest = {name: value for name, value in manifest.items() if name not in RESULTS} | {"status": status} | fields
    if status == "failed":
        manifest |= {"error": {"type": "A", "message": "b", "traceback": None, "is_passing": False}, "ended": "x"}
    (run / "manifest.json").write_text(json.dumps(manifest))


def test_a_number_that_was_changed_is_not_taken_for_a_result(finished: Path, tmp_path: Path) -> None:
    batch = Path(shutil.copytree(finished, tmp_path / "batch"))
    run = sorted((batch / "runs").iterdir())[0]
    manifest = run / "manifest.json"
    honest = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**honest, "columns": {**honest["columns"], "V_r": -1.0}}))
    with pytest.raises(DamagedStoreError, match=r"manifest\.json: its checksum differs, so it was changed\. Run its batch"):
        open_solution(run)
    for folder in (run, batch):
        found = invoke("verify", folder)
        assert found.exit_code == 1
        assert found.output.count("manifest.json: its checksum differs") == 1
    assert run_here({"worlds": "basics/first_steps", "steps": [1, 2]}, batch).is_complete
    assert json.loads(manifest.read_text())["columns"]["V_r"] == honest["columns"]["V_r"]


@pytest.mark.parametrize("status", ["running", "failed"])
@pytest.mark.parametrize("case", UNCHECKED)
def test_results_of_a_run_that_was_not_solved_are_refused(case: str, status: str, finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "batch")
    run = sorted((tmp_path / "batch" / "runs").iterdir())[0]
    changed(run, status, **UNCHECKED[case])
    shown = invoke("show", run)
    assert (shown.exit_code, "which no batch writes" in shown.output) == (3, True)
    assert "\nstatus: finished" not in shown.output
    assert "1 damaged" in invoke("show", tmp_path / "batch").output.partition("\n")[0]
    assert run_here({"worlds": "basics/first_steps", "steps": [1, 2]}, tmp_path / "batch", retry_failed=True).is_complete


def test_a_batch_is_shown_whatever_its_runs_call_their_steps(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "batch")
    for run, steps in zip(sorted((tmp_path / "batch" / "runs").iterdir()), ("many", 3), strict=True):
        changed(run, "failed", steps=steps)
    assert "failed: basics/first_steps, 3 steps (2 runs" in invoke("show", tmp_path / "batch").output


LISTS = {"half a character": (["\ud800"], "2 runs: 2 finished"), "one name often": (["x"] * 200_000, "1 run: 1 not done")}


@pytest.mark.parametrize("case", LISTS)
def test_a_list_of_runs_that_no_batch_writes_is_no_trouble(case: str, finished: Path, tmp_path: Path) -> None:
    names, first_line = LISTS[case]
    shutil.copytree(finished, tmp_path / "batch")
    about = json.loads((tmp_path / "batch" / "batch.json").read_text())
    (tmp_path / "batch" / "batch.json").write_text(json.dumps(about | {"runs": names}))
    shown = invoke("show", tmp_path / "batch")
    assert (shown.exit_code, shown.output.partition("\n")[0]) == (0, first_line)


def test_names_of_columns_can_be_printed(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "batch")
    run = sorted((tmp_path / "batch" / "runs").iterdir())[0]
    manifest = manifest_of_run(run)
    manifest["columns"]["\ud800x"] = 1
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert "1 damaged" in invoke("show", tmp_path / "batch").output
    assert run_here({"worlds": "basics/first_steps", "steps": [1, 2]}, tmp_path / "batch").is_complete


def test_leftovers_that_are_none_of_ours_are_no_trouble(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "batch")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine.txt").write_text("mine")
    (tmp_path / "batch" / ".x.1.partial").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "batch" / "x.lock").mkdir()
    assert run_here({"worlds": "basics/first_steps", "steps": [1, 2]}, tmp_path / "batch").is_complete
    assert (tmp_path / "elsewhere" / "mine.txt").read_text() == "mine"


CHANGED_SUMMARIES: dict[str, tuple[str, dict[str, Any]]] = {
    "parameters": ("params", {"zeta": 2.0}),
    "V_r": ("columns", {"V_r": -1.0}),
    "V_r as an integer": ("columns", {"V_r": -1}),
    "V_r as a text": ("columns", {"V_r": "-1"}),
    "no V_r": ("columns", {"V_r": None}),
    "states": ("columns", {"states": 396}),
}


@pytest.mark.parametrize("keep", ["values", "summary"])
@pytest.mark.parametrize("case", CHANGED_SUMMARIES)
def test_a_summary_is_that_of_its_solution(keep: str, case: str, tmp_path: Path) -> None:
    """Even without a checksum, as earlier versions wrote it."""
    run_here({"worlds": "basics/first_steps", "steps": 2, "keep": keep}, tmp_path)
    (run,) = (tmp_path / "runs").iterdir()
    manifest = manifest_of_run(run)
    change, values = CHANGED_SUMMARIES[case]
    manifest[change] |= values
    (run / "manifest.json").write_text(json.dumps(manifest))
    problem = "another V_r at the start|its summary is of 396 states|different numbers of states"
    with pytest.raises((DamagedStoreError, StoreMismatchError), match=problem):
        open_solution(run, progress=False)
    if keep == "values":
        assert invoke("verify", tmp_path).exit_code == 1


@pytest.mark.parametrize("has_dag", [True, False])
def test_verify_holds_a_summary_to_its_solution(has_dag: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if has_dag:
        monkeypatch.setattr("empo_bi.batch.run_pass.SMALL_BODIES", 1)
    run_here({"worlds": "asymmetric_freeing", "steps": 2, "keep": "values"}, tmp_path)
    (run,) = (tmp_path / "runs").iterdir()
    assert invoke("verify", run).exit_code == 0
    manifest = manifest_of_run(run)
    manifest["columns"] |= {"pi_r_still": 5.0, "X_h_1": 7.0}
    (run / "manifest.json").write_text(json.dumps(manifest))
    found = invoke("verify", run)
    assert found.exit_code == 1
    assert ("pi_r_still" in found.output) == has_dag
    assert "X_h_1" in found.output


@pytest.mark.parametrize("change", ["world", "states", "store"])
def test_no_states_are_found_again_for_another_world_than_that_of_the_solution(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small folder could otherwise name a world that takes all memory."""
    run_here({"worlds": "basics/first_steps", "steps": 2, "keep": "values"}, tmp_path)
    (run,) = (tmp_path / "runs").iterdir()
    (solution,) = run.glob("solution-*")
    manifest = manifest_of_run(run)
    if change == "world":
        manifest["world"]["mapping"]["max_steps"] = 60
        manifest["columns"] |= {"states": 10**9, "bodies": 10**9}
    elif change == "states":
        manifest["columns"]["states"] += 1
    else:
        manifest["store"] = None
    (run / "manifest.json").write_text(json.dumps(manifest))

    def enumerated(*arguments: object, **options: object) -> None:
        raise AssertionError("the states of some world are found")

    monkeypatch.setattr("empo_bi.solving.opening.enumerated", enumerated)
    with pytest.raises((StoreMismatchError, DamagedStoreError), match=r"not one of its world|different numbers|has none"):
        open_solution(solution, progress=False)
    monkeypatch.setattr("empo_bi.solving.enumeration.enumerated", enumerated)
    assert "should not happen" not in invoke("verify", run).output


def test_a_table_says_what_was_asked_for_and_what_was_solved(tmp_path: Path) -> None:
    """A manifest without a checksum, as version 0.1 wrote them, may have been changed."""
    spec = {"worlds": "basics/first_steps", "steps": 2, "keep": "values"}
    before = run_here(spec, tmp_path).table
    (run,) = (tmp_path / "runs").iterdir()
    honest = manifest_of_run(run)
    for columns in ({"zeta": 9.0, "steps": 77, "run": "x", "status": "missing"}, {"V_r": -1.0}, {"X_h_0": 7.0}):
        (run / "manifest.json").write_text(json.dumps({**honest, "columns": {**honest["columns"], **columns}}))
        after = run_here(spec, tmp_path).table
        for name in ("run", "status", "steps", "zeta", "V_r", "X_h_0"):
            assert after[name] == before[name], (columns, name)
    (run / "manifest.json").write_text(json.dumps({**honest, "timings": {**honest["timings"], "V_r": -1.0}}))
    assert invoke("verify", run).exit_code == 1
    assert run_here(spec, tmp_path).table["V_r"] == before["V_r"]


def test_half_a_manifest_at_a_url_is_what_a_killed_batch_left(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "batch")
    manifest = next((tmp_path / "batch" / "runs").iterdir()) / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:100])
    assert damaged_manifests(f"local://{tmp_path / 'batch'}") == []
    assert len(damaged_manifests(tmp_path / "batch")) == 1  # where files appear complete
    manifest.write_text('{"format": "empo_bi run", "version": 1}')
    assert len(damaged_manifests(f"local://{tmp_path / 'batch'}")) == 1
