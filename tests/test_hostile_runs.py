"""Runs of somebody who means ill: whatever their files say, nothing is executed, and nothing outside is read or written."""

from __future__ import annotations

import copy
import itertools
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from batch.batches import run_here
from command_line import invoke
from planning_worlds import TwoSteps
from store.forging import manifest_of_run, put_record, put_tree, record_of, tree_of

from empo_bi import (
    DamagedStoreError,
    EmpoError,
    Params,
    StoreMismatchError,
    load_world,
    open_solution,
    run_batch,
    solve,
)
from empo_bi.solving.enumeration import enumerate_dag, open_dag
from empo_bi.solving.run_manifest_rules import problem_of
from empo_bi.store.verify import verify_store

Change = Callable[[dict[str, Any]], Any]
ONE_RUN = {"worlds": "basics/first_steps", "steps": 2}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A batch with one run, of which all was kept."""
    folder = tmp_path_factory.mktemp("batch")
    assert run_here(ONE_RUN, folder).is_complete
    return folder


@pytest.fixture
def batch(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, with ``pwned`` beside it if anything was executed."""
    shutil.copytree(finished, tmp_path / "batch")
    return tmp_path / "batch"


def run_of(batch: Path) -> Path:
    (run,) = (batch / "runs").iterdir()
    return run


def change(run: Path, act: Change) -> None:
    manifest = manifest_of_run(run)
    act(manifest)
    (run / "manifest.json").write_text(json.dumps(manifest))


def said_by(act: Callable[[], Any]) -> str:
    """What an act returns, or the message of the error that it ends with; any error that is not ours is a fault."""
    try:
        return str(act())
    except EmpoError as error:
        return str(error)


def attack(marker: Path, source: str = "os:system") -> Change:
    def act(manifest: dict[str, Any]) -> None:
        manifest["world"] |= {"mapping": None, "source": source, "folder": str(marker.parent)}
        manifest["overrides"] = {"command": f"touch {marker}"}
        manifest["given_steps"] = None

    return act


@pytest.mark.parametrize("source", ["os:system", "evil.py:make", "evil:make", "/etc/passwd", "asymmetric_freeing"])
def test_a_function_that_a_run_names_is_not_called(source: str, batch: Path, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'w')\ndef make(**options): pass\n")
    run = run_of(batch)
    change(run, attack(tmp_path / "pwned", source))
    with pytest.raises(
        StoreMismatchError, match=rf"made by the Python function '{source}', which is called only on request; give"
    ):
        open_solution(run)
    for command in (["report", run, "--out", tmp_path / "r.html"], ["rollout", run], ["show", run], ["verify", run]):
        done = invoke(*command)
        assert done.exit_code == (0 if command[0] in ("show", "verify") else 2), done.output
    assert "--trust" in invoke("rollout", run).output
    assert not (tmp_path / "pwned").exists()


def test_a_batch_imports_what_its_specification_names_and_nothing_that_manifests_name(batch: Path, tmp_path: Path) -> None:
    for status in ("finished", "failed", "running"):
        change(run_of(batch), attack(tmp_path / "pwned"))
        change(run_of(batch), lambda manifest, status=status: manifest.update(status=status))  # type: ignore[misc]
        for retry in (False, True):
            assert run_here(ONE_RUN, batch, retry_failed=retry).is_complete
        assert invoke("show", batch).exit_code == 0
    assert not (tmp_path / "pwned").exists()


def test_who_trusts_a_run_or_brings_its_world_opens_it(tmp_path: Path) -> None:
    (tmp_path / "walks.py").write_text("from planning_worlds import TwoSteps\ndef make(n=2):\n    return TwoSteps(n)\n")
    (tmp_path / "batch.yaml").write_text("worlds: walks.py:make\nout: runs\noverrides: {n: 3}\n")
    run = run_of(tmp_path / "runs") if run_batch(tmp_path / "batch.yaml", workers=1, progress=False).is_complete else Path()
    value = manifest_of_run(run)["columns"]["V_r"]
    function = f"{tmp_path / 'walks.py'}:make"
    for options in ({}, {"trust": True}, {"world": TwoSteps(3)}, {"world": function}):
        with open_solution(run, **options) as solution:
            assert solution.values.V_r[0][0] == value
    for options in (["--trust"], ["--world", function]):
        assert invoke("rollout", run, *options).exit_code == 0
        assert invoke("report", run, *options, "--out", tmp_path / "report.html", "--force").exit_code == 0
    with pytest.raises(StoreMismatchError):
        open_solution(run, world=TwoSteps(2))


def test_a_world_in_python_beside_a_solution_may_be_named_on_the_command_line(tmp_path: Path) -> None:
    solve(TwoSteps(), out=tmp_path / "run", progress=False)
    (tmp_path / "walks.py").write_text("from planning_worlds import TwoSteps as make\n")
    assert invoke("show", tmp_path / "run").exit_code == 0
    for command in (["show"], ["show", "--json"], ["rollout"]):
        done = invoke(*command, tmp_path / "run", "--world", f"{tmp_path / 'walks.py'}:make")
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("keep", ["summary", "values"])
@pytest.mark.parametrize("column", ["pi_r_left", "X_h_0", "V_h_0_mean", "V_h_alone_0_max", "U_r", "levels", "transitions"])
def test_all_numbers_of_a_summary_are_held_to_the_solution(tmp_path: Path, keep: str, column: str) -> None:
    run_here({"worlds": "asymmetric_freeing", "steps": 2, "keep": keep}, tmp_path)
    run = run_of(tmp_path)
    open_solution(run, progress=False).close()
    change(run, lambda manifest: manifest["columns"].update({column: manifest["columns"][column] * 2 + 0.25}))
    with pytest.raises(EmpoError, match=r"other numbers than its solution|says it has|its summary is of|states"):
        open_solution(run, progress=False)


def test_a_summary_is_not_taken_for_that_of_another_world(tmp_path: Path) -> None:
    run_here({**ONE_RUN, "keep": "summary"}, tmp_path)
    run = run_of(tmp_path)
    change(run, lambda manifest: manifest["world"]["mapping"].update(max_steps=1))
    with pytest.raises(StoreMismatchError, match="is another world, or the summary was changed"):
        open_solution(run)
    change(run, lambda manifest: manifest["world"]["mapping"].update(max_steps=2**31 - 1))  # which would take for ever
    with pytest.raises(StoreMismatchError, match="its world has 2,147,483,647 steps"):
        open_solution(run)


# --- paths ------------------------------------------------------------------------------------------------------------


ELSEWHERE = ("../../x", "/etc", "..", "dags/../../x", "s3://bucket/x", "http://127.0.0.1:9/x", "file:///etc", "~/x", "", 3)


@pytest.mark.parametrize("place", ELSEWHERE)
@pytest.mark.parametrize("field", ["dag", "store"])
def test_manifests_lead_to_no_other_place(field: str, place: Any, batch: Path) -> None:
    change(run_of(batch), lambda manifest: manifest.update({field: place}))
    with pytest.raises(DamagedStoreError, match=rf"{field} is .*Run its batch again"):
        open_solution(run_of(batch))


def test_a_world_in_a_manifest_is_data_and_no_path(batch: Path, tmp_path: Path) -> None:
    (tmp_path / "world.yaml").write_text("map: |\n  We Ae We\n")
    change(run_of(batch), lambda manifest: manifest["world"].update(mapping=str(tmp_path / "world.yaml")))
    with pytest.raises(DamagedStoreError, match="world is"):
        open_solution(run_of(batch))


def test_a_list_of_runs_names_no_folder_elsewhere(batch: Path, tmp_path: Path) -> None:
    shutil.copytree(run_of(batch), tmp_path / "elsewhere")
    about = json.loads((batch / "batch.json").read_text())
    (batch / "batch.json").write_text(json.dumps({**about, "runs": ["../../elsewhere", run_of(batch).name]}))
    assert invoke("show", batch).stdout.startswith("1 run: 1 finished")


def link_manifest(run: Path, target: Path) -> None:
    (run / "manifest.json").rename(target / "manifest.json")
    (run / "manifest.json").symlink_to(target / "manifest.json")


def link_solution(run: Path, target: Path) -> None:
    (store,) = run.glob("solution-*")
    store.rename(target / "store")
    store.symlink_to(target / "store")


def link_chunk(run: Path, target: Path) -> None:
    chunk = next(path for path in sorted(run.rglob("c/*")) if path.is_file())
    chunk.rename(target / "chunk")
    chunk.symlink_to(target / "chunk")


def link_run(run: Path, target: Path) -> None:
    run.rename(target / "run")
    run.symlink_to(target / "run")


@pytest.mark.parametrize("link", [link_manifest, link_solution, link_chunk])
def test_links_inside_a_run_are_refused(link: Callable[[Path, Path], None], batch: Path, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    link(run_of(batch), tmp_path / "target")
    with pytest.raises(StoreMismatchError, match="is a symbolic link; only ordinary files and folders are read"):
        open_solution(run_of(batch))
    assert invoke("rollout", run_of(batch)).exit_code == 2


def test_a_folder_that_is_named_may_itself_be_a_link(batch: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(run_of(batch))
    open_solution(tmp_path / "link").close()


def test_pipes_are_not_waited_for(batch: Path) -> None:
    run = run_of(batch)
    (run / "manifest.json").unlink()
    os.mkfifo(run / "manifest.json")
    with pytest.raises(StoreMismatchError, match="is a named pipe"):
        open_solution(run)


@pytest.mark.parametrize("name", ["log.txt", "manifest.json", "."])
def test_a_batch_writes_through_no_link(name: str, batch: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    if name == ".":
        target.mkdir()
        link_run(run_of(batch), target)
    else:
        target.write_text("mine")
        (run_of(batch) / name).unlink()
        (run_of(batch) / name).symlink_to(target)
    before = {path: path.read_bytes() for path in [target, *target.rglob("*")] if path.is_file()}
    told = said_by(lambda: run_here({**ONE_RUN, "per_goal": True}, batch).summary())  # asks for more than what is there
    assert "is a symbolic link" in told
    assert {path: path.read_bytes() for path in [target, *target.rglob("*")] if path.is_file()} == before


@pytest.mark.parametrize("name", ["dag.lock", "memory_profile.txt", "dag/level_00009"])
def test_solving_writes_through_no_link(name: str, tmp_path: Path) -> None:
    world, run, target = load_world("basics/first_steps", max_steps=2), tmp_path / "run", tmp_path / "target"
    solve(world, out=run, progress=False)
    if "/" in name:
        target.mkdir()
        (run / name).symlink_to(target)
    else:
        target.write_text("mine")
        (run / name).symlink_to(target)
    told = said_by(
        lambda: solve(world, Params(zeta=2), out=run, overwrite=True, memory_profile=True, progress=False).close()
    )
    shutil.rmtree(run / "dag")
    told += said_by(lambda: solve(world, Params(zeta=2), out=run, progress=False).close())
    assert "is a symbolic link" in told or (name == "memory_profile.txt" and not (run / name).is_symlink())
    assert (target.is_dir() and not list(target.iterdir())) or target.read_text() == "mine"


def test_a_zip_file_is_built_and_packed_through_no_link(tmp_path: Path) -> None:
    world, target = load_world("basics/first_steps", max_steps=2), tmp_path / "target"
    target.mkdir()
    (tmp_path / "dag.zip.building").symlink_to(target)
    with pytest.raises(StoreMismatchError, match="is a symbolic link"):
        enumerate_dag(world, store=tmp_path / "dag.zip", progress=False)
    (tmp_path / "dag.zip.building").unlink()
    (tmp_path / "dag.zip.partial").symlink_to(tmp_path / "secret")
    enumerate_dag(world, store=tmp_path / "dag.zip", progress=False).close()
    assert not (tmp_path / "secret").exists()
    assert not list(target.iterdir())
    assert open_dag(tmp_path / "dag.zip").n_states > 1


# --- whatever a manifest says -----------------------------------------------------------------------------------------


STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**400, float("nan"), "", "x", "../x", "\x1b[2J", "os:system", [], [[]], {}, {"a": None},
    [1] * 99,
)  # fmt: skip


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Keys that lead to every value inside one."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places_in(item, (*path, key))


def changed(manifest: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A manifest with another value at some place, or without any (``...``)."""
    result = inner = copy.deepcopy(manifest)
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return result


def test_what_passes_the_check_can_be_shown_and_what_does_not_is_named(batch: Path) -> None:
    """Every value of a manifest is replaced by every strange one: a clear error, or lines that are harmless."""
    from empo_bi.cli.show import _run

    manifest = manifest_of_run(run_of(batch))
    assert problem_of(manifest) is None
    n_refused = 0
    for path, value in itertools.product(list(places_in(manifest)), [*STRANGE, ...]):
        hostile = changed(manifest, path, value)
        problem = problem_of(hostile)
        n_refused += problem is not None
        if problem is None:
            assert _run(hostile)
        else:
            assert len(problem) < 200
    assert n_refused > 300


@pytest.mark.parametrize("n", [40, pytest.param(3000, marks=pytest.mark.slow)])
def test_runs_with_changed_manifests_open_or_say_why_not(n: int, batch: Path, tmp_path: Path) -> None:
    run, draw = run_of(batch), random.Random(7)
    manifest = manifest_of_run(run)
    paths = list(places_in(manifest))
    for _ in range(n):
        hostile = manifest
        for _ in range(draw.randint(1, 3)):
            path = draw.choice(paths)
            if path in set(places_in(hostile)):
                hostile = changed(hostile, path, draw.choice([*STRANGE, ...]))
        (run / "manifest.json").write_text(json.dumps(hostile))
        said_by(lambda: open_solution(run, progress=False).close())
    (run / "manifest.json").write_text(json.dumps(manifest))
    assert run_here(ONE_RUN, batch).is_complete


@pytest.mark.parametrize("n", [20, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["dag", "solution-*"])
def test_what_stores_say_of_themselves_opens_or_is_named_as_wrong(name: str, n: int, tmp_path: Path) -> None:
    """Records of DAG and solution with values replaced, and with checksums that agree."""
    solve(load_world("pushing/mirror_freeing", max_steps=2), out=tmp_path, progress=False).close()
    (store,), draw = list(tmp_path.glob(name)), random.Random(11)
    tree = tree_of(store)
    record = record_of(tree, "zarr.json")
    paths = [path for path in places_in(record) if path != ("horizon",)]  # which tests/store looks at
    for _ in range(n):
        hostile = changed(record, draw.choice(paths), draw.choice([*STRANGE, ...]))
        put_record(tree, "zarr.json", hostile)
        put_tree(tree, store)
        said_by(lambda: open_solution(tmp_path, progress=False).close())
        said_by(lambda: open_dag(tmp_path / "dag").close())
        said_by(lambda: verify_store(store, progress=False))


@pytest.mark.parametrize("text", ["", "nonsense", "[" * 100_000, "[]", '"' + "x" * 100, "\x00" * 1000, "1" * 10_000])
def test_what_is_no_manifest_is_told_and_mended(text: str, batch: Path) -> None:
    (run_of(batch) / "manifest.json").write_text(text)
    with pytest.raises(DamagedStoreError, match=r"manifest\.json: is not JSON, or far too large"):
        open_solution(run_of(batch))
    assert "1 damaged" in invoke("show", batch).stdout
    assert run_here(ONE_RUN, batch).is_complete
    open_solution(run_of(batch)).close()


def test_a_manifest_of_another_run_does_not_count(tmp_path: Path) -> None:
    spec = {"worlds": "pushing/mirror_freeing", "steps": 3, "params": {"eta": [1, 2]}}
    before = run_here(spec, tmp_path).table["V_r"]
    assert before[0] != before[1]
    first, second = sorted((tmp_path / "runs").iterdir())
    shutil.copy(first / "manifest.json", second / "manifest.json")
    assert run_here(spec, tmp_path).table["V_r"] == before


def test_a_manifest_of_another_version_is_told_as_such(batch: Path) -> None:
    change(run_of(batch), lambda manifest: manifest.update(version=2))
    with pytest.raises(StoreMismatchError, match="has version 2 of the format, this empo_bi reads 1"):
        open_solution(run_of(batch))


# --- terminals --------------------------------------------------------------------------------------------------------


ESCAPES = "a\x1b[2J\x1b]0;title\x07\x9b31m\u202eworld\x7f\r"


def test_titles_and_errors_do_not_reach_the_terminal_as_escape_sequences(tmp_path: Path) -> None:
    text = "map: |\n  We We We We\n  We Ay .. We\n  We We We We\nmax_steps: 2\npossible_goals: ['2,1']\n"
    (tmp_path / "world.yaml").write_text(text + f"metadata: {{name: {json.dumps(ESCAPES)}}}\n")
    run = tmp_path / "run"
    world = tmp_path / "world.yaml"
    (tmp_path / "batch.yaml").write_text("worlds: world.yaml\nout: batch\n")
    outputs = [
        invoke("worlds", "describe", world), invoke("worlds", "describe", world, "--json"), invoke("plan", world),
        invoke("solve", world, "--out", run), invoke("show", run), invoke("show", run, "--json"), invoke("verify", run),
        invoke("rollout", run), invoke("batch", tmp_path / "batch.yaml"), invoke("show", tmp_path / "batch"),
        invoke("solve", tmp_path / f"{ESCAPES}.yaml"), invoke("show", tmp_path / ESCAPES),
        invoke("solve", world, "--param", f"{ESCAPES}=1"),
    ]  # fmt: skip
    for done in outputs:
        printed = done.stdout + done.stderr
        assert printed
        assert not set(printed) & set("\x1b\x07\x9b\u202e\x7f\r"), printed
    assert json.loads(outputs[1].stdout)["title"] == ESCAPES  # as data it is what it was
    change(run_of(tmp_path / "batch"), lambda manifest: manifest.update(
        status="failed", error={"type": "E", "message": ESCAPES, "traceback": None, "is_passing": False}))  # fmt: skip
    for command in (["show", tmp_path / "batch"], ["show", run_of(tmp_path / "batch")]):
        assert "\x1b" not in invoke(*command).stdout


def test_a_title_cannot_look_like_lines_of_ours(tmp_path: Path) -> None:
    enumerate_dag(load_world("basics/first_steps", max_steps=1), store=tmp_path / "dag", progress=False).close()
    tree = tree_of(tmp_path / "dag")
    put_record(tree, "zarr.json", {**record_of(tree, "zarr.json"), "title": "a world\nrun: all checksums agree"})
    put_tree(tree, tmp_path / "dag")
    assert str(verify_store(tmp_path / "dag", progress=False)).count("\n") == 0


def test_commands_print_through_one_door() -> None:
    folder = Path(__file__).parents[1] / "empo_bi/cli"
    others = {path.name for path in folder.glob("*.py") if "click.echo(" in path.read_text()}
    assert others == {"output.py", "completion.py"}  # the latter prints a script that has no data in it


def test_texts_of_a_run_do_not_look_like_lines_of_ours(batch: Path) -> None:
    forged = "x\nstatus: not finished\nall checksums agree"

    def act(manifest: dict[str, Any]) -> None:
        error = {"type": forged, "message": forged, "traceback": forged, "is_passing": False}
        manifest |= {"begun": forged, "ended": forged, "status": "failed", "error": error}
        manifest["world"]["title"] = manifest["machine"]["host"] = forged
        manifest["columns"] |= {forged: forged}
        manifest["timings"] |= {f"{forged}_seconds": 1.0}

    change(run_of(batch), act)
    shown = invoke("show", str(run_of(batch))).output
    assert "| all checksums agree" in shown  # the traceback, which has lines
    starts = [line for line in shown.splitlines() if line.startswith(("status", "all checksums"))]
    assert starts == ["status: failed"]
