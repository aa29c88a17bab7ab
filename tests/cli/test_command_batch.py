"""``empo-bi batch`` and ``empo-bi show``: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from store.forging import manifest_of_run

from empo_bi import Params, load_world, solve
from empo_bi.cli import cli

BATCH = "worlds: [basics/first_steps, pushing/mirror_freeing]\nsteps: 3\nparams: {zeta: [1, 2]}\nout: runs\nworkers: 1\n"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def batch(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(BATCH)
    return path


def test_a_batch_ends_with_a_summary(batch: Path) -> None:
    result = run("batch", batch, "--quiet")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"4 runs: 4 finished, 0 failed\ntable: {batch.parent}/runs/table.csv\n"
    assert result.stderr == ""
    assert "(4 of them before)" in run("batch", batch, "--quiet").stdout


def test_options_take_the_place_of_what_the_file_says(batch: Path, tmp_path: Path) -> None:
    result = run(
        "batch", batch, "--quiet", "--out", tmp_path / "there", "--keep", "summary", "--memory-limit", "2GB", "--json"
    )
    assert result.exit_code == 0, result.stderr
    content = json.loads(result.stdout)
    assert (content["runs"], content["finished"], content["skipped"], content["failed"]) == (4, 4, 0, [])
    assert content["folder"] == str(tmp_path / "there")
    assert not list(tmp_path.glob("there/runs/*/solution-*"))
    assert not (tmp_path / "runs").exists()
    limited = run("batch", batch, "--quiet", "--memory-limit", "1MB", "--out", tmp_path / "small")
    assert limited.exit_code == 3
    assert "4 failed" in limited.stdout
    assert limited.stdout.count("MemoryLimitError") == 2  # one for each world


def test_a_dry_run_lists_and_does_nothing(batch: Path) -> None:
    result = run("batch", batch, "--dry-run")
    assert result.exit_code == 0
    assert result.stdout.count("missing") == 4
    assert "4 runs: 0 finished, 0 failed, 4 not done" in result.stdout
    assert not (batch.parent / "runs").exists()
    run("batch", batch, "--quiet")
    rows = json.loads(run("batch", batch, "--dry-run", "--json").stdout)["rows"]
    assert [row["status"] for row in rows] == ["finished"] * 4


def test_failures_end_with_3_and_are_tried_again_when_asked(batch: Path) -> None:
    batch.write_text(BATCH.replace("basics/first_steps", "mine.yaml"))
    failed = run("batch", batch, "--quiet")
    assert failed.exit_code == 3
    assert "4 runs: 2 finished, 2 failed" in failed.stdout
    assert failed.stdout.count("  failed: mine.yaml, 3 steps (2 runs, such as mine-3-") == 1
    text = "map: |\n  We We We We\n  We Ay .. We\n  We We We We\nmax_steps: 3\npossible_goals: ['1,1', '2,1']\n"
    (batch.parent / "mine.yaml").write_text(text)
    # A world that can be loaded now is another one than the one that could not.
    assert run("batch", batch, "--quiet", "--retry-failed").exit_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("worlds: a\nstep: 3\n", ":2: step: unknown key. Did you mean 'steps'"),
        ("metrics: x:y\nworlds: a\n", "cannot be imported"),
    ],
)
def test_wrong_files_end_with_2(text: str, words: str, batch: Path) -> None:
    batch.write_text(text)
    result = run("batch", batch)
    assert result.exit_code == 2
    assert words in result.stderr
    assert run("batch", batch.with_name("nothing.yaml")).exit_code == 2


def test_an_unknown_scheduler_ends_with_3(batch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empo_bi.batch.workers.CONNECT_SECONDS", 0.5)
    result = run("batch", batch, "--quiet", "--scheduler", "tcp://127.0.0.1:9")
    assert result.exit_code == 3
    assert "no Dask scheduler answers at this address" in result.stderr


def test_a_batch_and_its_runs_are_shown(batch: Path) -> None:
    run("batch", batch, "--quiet")
    told = run("show", batch.parent / "runs").stdout
    assert "4 runs: 4 finished" in told
    assert "basics/first_steps (2), pushing/mirror_freeing (2)" in told
    assert json.loads(run("show", batch.parent / "runs", "--json").stdout)["status"] == {"finished": 4}
    folder = next((batch.parent / "runs/runs").glob("mirror_freeing-3-*"))
    content = json.loads(run("show", folder, "--json").stdout)
    zeta = content["params"]["zeta"]
    solution = solve(load_world("pushing/mirror_freeing", max_steps=3), Params(zeta=zeta), progress=False)
    assert content["columns"]["V_r"] == solution.values.V_r[0][0]
    told = run("show", folder).stdout
    numbers = [f"{name} {content['columns'][name]:.6g}" for name in ("V_r", "X_h_1", "pi_r_left", "V_h_1_mean")]
    for part in (
        "Mirror freeing",
        "status: finished",
        f"zeta {zeta:g}",
        "optimistic no",
        "kept: values",
        "took: ",
        *numbers,
    ):
        assert part in told


def test_a_batch_that_is_not_done_is_shown_as_such(batch: Path) -> None:
    run("batch", batch, "--quiet")
    folder = next((batch.parent / "runs/runs").iterdir())
    manifest = manifest_of_run(folder)
    (folder / "manifest.json").write_text(json.dumps({**manifest, "status": "running"}))
    told = run("show", batch.parent / "runs").stdout
    assert "4 runs: " in told
    assert "1 begun and not finished" in told
    batch.write_text(BATCH.replace("[1, 2]", "[1]"))
    run("batch", batch, "--quiet")
    told = run("show", batch.parent / "runs").stdout
    assert "2 runs: 2 finished" in told
    assert "2 other runs from earlier calls" in told


def test_a_failed_run_is_shown_with_its_error(batch: Path) -> None:
    batch.write_text(BATCH.replace("basics/first_steps", "basics/robot_alone"))
    assert run("batch", batch, "--quiet").exit_code == 3
    folder = next((batch.parent / "runs/runs").glob("robot_alone-*"))
    told = run("show", folder)
    assert told.exit_code == 0
    assert "status: failed" in told.stdout
    assert "there are no humans" in told.stdout


def test_what_solve_left_is_shown(tmp_path: Path) -> None:
    for zeta in (1, 2):
        assert (
            run("solve", "mirror_freeing", "--steps", 3, "-p", f"zeta={zeta}", "--out", tmp_path / "mine", "-q").exit_code
            == 0
        )
    told = run("show", tmp_path / "mine").stdout
    assert told.count("Mirror freeing") == 2
    assert {"zeta 1,", "zeta 2,"} == {part for part in ("zeta 1,", "zeta 2,", "zeta 3,") if part in told}
    one = next((tmp_path / "mine").glob("solution-*[0-9a-f]"))
    assert run("show", one).stdout.count("Mirror freeing") == 1
    assert json.loads(run("show", one, "--json").stdout)["steps"] == 3


def test_where_nothing_is_nothing_is_shown(tmp_path: Path) -> None:
    result = run("show", tmp_path)
    assert result.exit_code == 2
    assert "no solution is there" in result.stderr


def test_batches_are_verified(batch: Path) -> None:
    run("batch", batch, "--quiet")
    assert run("verify", batch.parent / "runs", "--quiet").exit_code == 0
    assert len(json.loads(run("verify", batch.parent / "runs", "--json", "-q").stdout)["stores"]) == 4
    chunk = next((batch.parent / "runs/runs").glob("*/solution-*/level_00001/vr/c/0"))
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"x")
    assert run("verify", batch.parent / "runs", "--quiet").exit_code == 1
