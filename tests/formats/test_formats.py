"""Runs that released versions wrote are opened, continued and used again by this one."""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import make_runs
import numpy as np
import pytest
from click.testing import CliRunner
from make_runs import BATCH, HERE, SETS, Cell, Ring
from store_tools import assert_same_dags, counted_expansions

import empo_bi
from empo_bi import Solution, enumerate_dag, load_world, open_dag, open_solution, run_batch, solve
from empo_bi.cli import cli

RELEASES = [path.name.removesuffix(".tar.xz") for path in sorted(HERE.glob("*.tar.xz"))]
QUESTIONS: dict[str, Callable[..., Any]] = {
    "keys": lambda **options: solve(make_runs.keys(), SETS[1], progress=False, **options),
    "two_sets": lambda **options: solve(make_runs.rink(2), list(SETS), precision="float64", progress=False, **options),
    "ring": lambda **options: solve(Ring(), SETS[0], progress=False, **options),
}


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("formats")
    with tarfile.open(HERE / f"{request.param}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return Path(folder / request.param)


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def assert_same_values(found: Solution, expected: Solution) -> None:
    for t in range(expected.dag.horizon + 1):
        for name in ("V_r", "Vh_m", "Vh_e", "X_h"):
            np.testing.assert_array_equal(getattr(found.values, name)[t], getattr(expected.values, name)[t], err_msg=name)
        np.testing.assert_array_equal(found.Q_r[t], expected.Q_r[t])
        assert found.dag.states(t) == expected.dag.states(t)


def world_of(name: str) -> dict[str, Any]:
    return {"world": Ring()} if name == "ring" else {}


def invoke(*words: object) -> int:
    return CliRunner().invoke(cli, list(map(str, words))).exit_code


def in_list(solved: Any) -> list[Solution]:
    return solved if isinstance(solved, list) else [solved]


@pytest.fixture(autouse=True)
def _same_python(request: pytest.FixtureRequest) -> None:
    """A world in Python is known by its compiled source, which differs between versions of Python."""
    name = request.node.name
    if ("ring" in name or "python_world" in name or "verify_and_show" in name) and sys.version_info[:2] != (3, 11):
        pytest.skip("the run of a Python world was made with Python 3.11")


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_there_are_runs_of_every_release() -> None:
    assert RELEASES == ["0.1.0"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_run_is_opened_and_has_the_numbers_that_it_had(name: str, release: Path, closing: ExitStack) -> None:
    expected = in_list(QUESTIONS[name]())
    folders = sorted((release / name).glob("solution-*"))
    found = [closing.enter_context(open_solution(folder, progress=False, **world_of(name))) for folder in folders]
    assert len(found) == len(expected)
    for one in expected:
        (same,) = [other for other in found if other.params.describe() == one.params.describe()]
        assert_same_values(same, one)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_same_call_uses_a_run_as_it_is(name: str, release: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = files(release / name)
    with counted_expansions(monkeypatch) as counts:
        solutions = in_list(QUESTIONS[name](out=release / name, compression=name == "two_sets"))
    assert not counts
    assert len(solutions) == (2 if name == "two_sets" else 1)
    for solution in solutions:
        assert solution.values.V_r[0][0] < 0
        solution.close()
    assert files(release / name) == before


def test_the_goals_of_a_python_world_are_the_users_own(release: Path, closing: ExitStack) -> None:
    found = closing.enter_context(open_solution(release / "ring", world=Ring(), progress=False))
    assert set(found.prior.values[(0, 0)][0]) == {Cell(1), Cell(2)}


def test_a_dag_in_a_zip_file_is_opened(release: Path, closing: ExitStack) -> None:
    found = closing.enter_context(open_dag(release / "rink.zip"))
    expected = enumerate_dag(make_runs.rink(3), precision="exact", progress=False)
    assert_same_dags(found, expected)


def test_a_dag_that_was_not_finished_is_continued(
    release: Path, monkeypatch: pytest.MonkeyPatch, closing: ExitStack
) -> None:
    with counted_expansions(monkeypatch) as all_counts:
        expected = enumerate_dag(make_runs.rink(5), progress=False)
    with counted_expansions(monkeypatch) as counts:
        found = closing.enter_context(enumerate_dag(make_runs.rink(5), store=release / "unfinished", progress=False))
    assert sum(counts) < sum(all_counts)
    assert_same_dags(found, expected)


@pytest.mark.parametrize("keep", ["values", "summary"])
def test_a_batch_is_complete_and_its_runs_open(keep: str, release: Path, closing: ExitStack) -> None:
    runs = {path: path.read_bytes() for path in (release / keep).glob("runs/*/manifest.json")}
    assert len(runs) == 4
    result = run_batch({**BATCH, "keep": keep}, out=release / keep, progress=False)
    assert result.is_complete
    assert {path: path.read_bytes() for path in runs} == runs
    for path in runs:
        with open_solution(path.parent, progress=False) as solution:
            assert solution.values.V_r[0][0] < 0


def test_verify_and_show_find_nothing_wrong(release: Path) -> None:
    for name in (*QUESTIONS, "rink.zip", "unfinished", "values", "summary"):
        assert invoke("verify", release / name) == 0
    for name in (*QUESTIONS, "values", "summary"):
        world = ["--world", f"{make_runs.__file__}:Ring"] if name == "ring" else []
        for folder in sorted((release / name).glob("solution-*")) or [release / name]:
            assert invoke("show", folder, *world) == 0


def test_stores_say_which_package_began_them(tmp_path: Path) -> None:
    with solve(load_world("basics/first_steps", max_steps=1), out=tmp_path, progress=False):
        roots = [json.loads((folder / "zarr.json").read_text()) for folder in sorted(tmp_path.iterdir()) if folder.is_dir()]
    assert [root["attributes"]["empo_bi"]["written_by"] for root in roots] == [f"empo_bi {empo_bi.__version__}"] * 2
