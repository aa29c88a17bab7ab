"""Which folder answers which question, and whether anything is in it yet."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backward.test_one_sweep import assert_same
from backward.test_wider_tables import MILD, STEEP, content_of, folders, interrupted, solved

from empo_bi import DamagedStoreError, Params
from empo_bi.store.solution_folders import UNTOLD, SolutionFolders
from empo_bi.sweep.phases import PRECISIONS, Precision

QUESTION: dict[str, Any] = {
    **dict.fromkeys(UNTOLD, "some key"), "params": Params(zeta=2.0).describe(), "human_params": None,
    "horizon": 1, "level_sizes": [1, 1], "humans": [0], "robots": [1], "rest": "float16", "work": "float32", "phase_2": True,
    "arrays": ["vr"],
}  # fmt: skip
ABOUT = {"title": "a world", "horizon": 1, "goals": [["a goal"]], "robot_profiles": [[0], [1]]}


def begun(out: Path, question: dict[str, Any] = QUESTION) -> Any:
    """Results that nobody has put anything into."""
    return SolutionFolders().results_for(out, question, ABOUT, True, False)


def is_begun(out: Path, question: dict[str, Any]) -> bool:
    return SolutionFolders().is_begun(out, question)


def level() -> dict[str, Any]:
    return {"vr": np.array([-1.0])}


def carry() -> dict[str, Any]:
    return {"robot": np.array([-1.0]), "effective": np.zeros((1, 1), dtype=np.float32)}


# --- is_begun ---------------------------------------------------------------------------------------------------------


def test_nothing_is_begun_where_there_is_no_folder(tmp_path: Path) -> None:
    assert not is_begun(tmp_path / "nowhere", QUESTION)
    assert not is_begun(tmp_path, QUESTION)
    assert list(tmp_path.iterdir()) == []


def test_results_are_begun_once_a_level_is_there_and_stay_so(tmp_path: Path) -> None:
    results = begun(tmp_path)
    assert not is_begun(tmp_path, QUESTION)
    results.put(1, level(), carry)
    results.close()
    assert is_begun(tmp_path, QUESTION)
    results = begun(tmp_path)
    results.put(0, level(), dict)
    results.finish()
    assert is_begun(tmp_path, QUESTION)


def test_a_folder_that_was_begun_and_has_nothing_in_it_is_not_begun(tmp_path: Path) -> None:
    """As a run leaves it that was killed at once: with a manifest, without one, or with half of one."""
    begun(tmp_path).close()
    (folder,) = folders(tmp_path)
    assert not is_begun(tmp_path, QUESTION)
    (folder / "zarr.json").rename(folder / "zarr.json.partial")
    assert not is_begun(tmp_path, QUESTION)
    (folder / "zarr.json.partial").unlink()
    assert list(folder.iterdir()) == []
    assert not is_begun(tmp_path, QUESTION)


def test_another_question_is_not_begun(tmp_path: Path) -> None:
    results = begun(tmp_path)
    results.put(1, level(), carry)
    results.close()
    assert not is_begun(tmp_path, {**QUESTION, "params": {"zeta": 3.0}})
    assert is_begun(tmp_path, QUESTION)


@pytest.mark.parametrize("part", UNTOLD)
def test_a_question_that_nobody_can_tell_from_others_is_never_begun(part: str, tmp_path: Path) -> None:
    question = {**QUESTION, part: None}
    results = begun(tmp_path, question)
    results.put(1, level(), carry)
    results.close()
    assert not is_begun(tmp_path, question)
    (folder,) = folders(tmp_path)
    name, own = folder.name.rsplit("-", 1)  # what tells the folder from others of this name
    assert own
    folder.rename(tmp_path / name)
    assert not is_begun(tmp_path, question)


def test_a_damaged_folder_is_not_taken_for_one_with_nothing_in_it(tmp_path: Path) -> None:
    begun(tmp_path).close()
    (folder,) = folders(tmp_path)
    (folder / "zarr.json").write_text("garbage")
    with pytest.raises(DamagedStoreError, match=str(folder)):
        is_begun(tmp_path, QUESTION)


# --- solve, of which a question may have two folders ------------------------------------------------------------------


@pytest.fixture
def wide_folder(tmp_path: Path) -> Path:
    """The folder that results of ``MILD`` have with tables of float64, as if float32 had been too narrow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRECISIONS, "float16", [Precision("float16", "float64")])
        interrupted(MILD, tmp_path, lambda phase, work: bool(work.t == 2))
    (folder,) = folders(tmp_path)
    assert content_of(folder)["work"] == "float64"
    return folder


def empty(folder: Path, left: list[str]) -> None:
    """Remove all but some of what a folder has."""
    for path in folder.iterdir():
        if path.name not in left:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_results_that_were_begun_with_wider_tables_are_preferred(wide_folder: Path) -> None:
    found = solved(MILD, out=wide_folder.parent)
    assert found.precision.work == "float64"
    assert folders(wide_folder.parent) == [wide_folder]
    found.close()
    assert solved(MILD, out=wide_folder.parent).precision.work == "float64"  # also when it is finished


@pytest.mark.parametrize("left", [[], ["zarr.json"]])
def test_a_folder_for_wider_tables_with_nothing_in_it_is_not_preferred(left: list[str], wide_folder: Path) -> None:
    empty(wide_folder, left)
    found = solved(MILD, out=wide_folder.parent)
    assert found.precision.work == "float32"
    assert len(folders(wide_folder.parent)) == 2
    assert_same(found, solved(MILD))


def test_whoever_replaces_everything_does_not_go_on_with_wider_tables(wide_folder: Path) -> None:
    for overwrite in (True, False):
        assert solved(MILD, out=wide_folder.parent, overwrite=overwrite).precision.work == "float32"
    assert not wide_folder.exists()


@pytest.mark.parametrize("left", [[], ["zarr.json"]])
def test_a_solve_goes_on_in_a_folder_with_nothing_in_it(left: list[str], tmp_path: Path) -> None:
    solved([STEEP, MILD], out=tmp_path)
    before = folders(tmp_path)
    for folder in before:
        empty(folder, left)
    found = solved([STEEP, MILD], out=tmp_path)
    assert [solution.precision.work for solution in found] == ["float64", "float32"]
    for solution, params in zip(found, (STEEP, MILD), strict=True):
        assert_same(solution, solved(params))
    assert folders(tmp_path) == before


def test_whoever_replaces_everything_also_replaces_what_is_damaged(wide_folder: Path) -> None:
    marker = next(iter(sorted(wide_folder.glob("level_*")))) / "zarr.json"
    marker.write_text(marker.read_text().replace('"level": ', '"level": 1'))
    assert solved(MILD, out=wide_folder.parent, overwrite=True).precision.work == "float32"
    assert not wide_folder.exists()
