"""What killed writers leave: ``verify`` and opening speak plainly of it, and the same command removes it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke, json_of
from store_tools import enumerated, tree, world_of

from empo_bi import Params, StoreError, StoreNotFoundError, open_dag, solve
from empo_bi.runtime.atomic_write import atomic_write
from empo_bi.store.zarr_files import ZarrFiles

KIND, STEPS = "ice_rink", 2


def make(folder: Path, name: str) -> Path:
    enumerated(KIND, STEPS, folder / name).close()
    return folder / name


# --- what is beside a store ---------------------------------------------------------------------------------------------


def lock_alone(store: Path, beside: Callable[[str], Path]) -> None:
    store.unlink()
    beside(".lock").touch()


def empty_folder(store: Path, beside: Callable[[str], Path]) -> None:
    store.unlink()
    beside(".building").mkdir()


def half_of_the_first_file(store: Path, beside: Callable[[str], Path]) -> None:
    empty_folder(store, beside)
    (beside(".building") / f"zarr.{'0f' * 16}.partial").write_text("{")
    beside(".lock").touch()


def half_packed(store: Path, beside: Callable[[str], Path]) -> None:
    shutil.unpack_archive(store, beside(".building"))
    store.rename(beside(".partial"))
    beside(".partial").write_bytes(beside(".partial").read_bytes()[:999])
    beside(".lock").touch()


def half_removed(store: Path, beside: Callable[[str], Path]) -> None:
    (beside(".building") / "level_00001").mkdir(parents=True)
    beside(".lock").touch()


def packed_again(store: Path, beside: Callable[[str], Path]) -> None:
    half_removed(store, beside)
    beside(".partial").write_bytes(b"PK")


def lock_of_the_finished(store: Path, beside: Callable[[str], Path]) -> None:
    beside(".lock").touch()


@pytest.mark.parametrize("rest", [lock_alone, empty_folder, half_of_the_first_file])
def test_a_zip_file_that_was_only_begun_is_called_unfinished_and_the_same_command_makes_it(
    rest: Any, tmp_path: Path
) -> None:
    expected = tree(make(tmp_path, "store.zip").parent)
    rest(tmp_path / "store.zip", lambda ending: tmp_path / f"store.zip{ending}")
    for place in (tmp_path / "store.zip", tmp_path):
        done = invoke("verify", place)
        assert done.exit_code == 0
        assert "begun, and nothing is finished yet (unfinished: run the same command again" in done.output
    with pytest.raises(StoreNotFoundError, match=r"not finished, .* run the same command again to continue"):
        open_dag(tmp_path / "store.zip")
    enumerated(KIND, STEPS, tmp_path / "store.zip")
    assert tree(tmp_path) == expected


@pytest.mark.parametrize("rest", [half_packed, half_removed, packed_again, lock_of_the_finished])
def test_rests_beside_a_zip_file_disturb_nobody_and_go(rest: Any, tmp_path: Path) -> None:
    expected = tree(make(tmp_path, "store.zip").parent)
    rest(tmp_path / "store.zip", lambda ending: tmp_path / f"store.zip{ending}")
    for place in (tmp_path / "store.zip", tmp_path / "store.zip.building", tmp_path):
        (store,) = json_of("verify", place)["stores"]
        assert (store["is_finished"], store["n_levels"], store["damage"]) == (True, STEPS + 1, [])
    assert open_dag(tmp_path / "store.zip").is_finished
    enumerated(KIND, STEPS, tmp_path / "store.zip")
    assert tree(tmp_path) == expected


def test_what_is_not_there_is_not_called_unfinished(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("store", "store.zip", "empty"):
        assert invoke("verify", tmp_path / name).exit_code == 2


def test_the_locks_of_finished_stores_go_when_the_same_command_runs_again(tmp_path: Path) -> None:
    def solved() -> None:
        solve(world_of(KIND, STEPS)[0], Params(), out=tmp_path, progress=False).close()

    solved()
    expected = tree(tmp_path)
    for store in [path for path in tmp_path.iterdir() if path.is_dir()]:
        (tmp_path / f"{store.name}.lock").touch()
    solved()
    assert tree(tmp_path) == expected


def test_a_folder_that_was_being_replaced_is_called_unfinished_and_one_without_its_root_is_not(tmp_path: Path) -> None:
    store = make(tmp_path, "dag")
    (store / "zarr.json").unlink()  # which goes first
    assert invoke("verify", store).exit_code == 2
    (tmp_path / "dag.lock").touch()
    for place in (store, tmp_path):
        done = invoke("verify", place)
        assert (done.exit_code, "begun, and nothing is finished yet" in done.output) == (0, True)


def test_ctrl_c_while_an_old_store_is_removed_leaves_one_that_is_called_unfinished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(tmp_path, "dag")
    plain = ZarrFiles.delete

    def interrupted(self: ZarrFiles, name: str) -> None:
        if name == "level_00001":
            raise KeyboardInterrupt
        plain(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(ZarrFiles, "delete", interrupted)
        with pytest.raises(KeyboardInterrupt):
            enumerated(KIND, 1, store, overwrite=True)
    assert "begun, and nothing is finished yet" in invoke("verify", store).output
    enumerated(KIND, 1, store)
    assert [path.name for path in tmp_path.iterdir()] == ["dag"]


# --- behind URLs --------------------------------------------------------------------------------------------------------


def test_a_first_record_that_was_torn_behind_a_url_is_written_again(tmp_path: Path) -> None:
    url = f"local://{tmp_path}/store"
    enumerated(KIND, STEPS, url).close()
    expected = tree(tmp_path)
    for group in [path for path in (tmp_path / "store").iterdir() if path.is_dir()]:
        shutil.rmtree(group)
    file = tmp_path / "store/zarr.json"
    file.write_bytes(file.read_bytes()[:99])
    assert "begun, and nothing is finished yet" in invoke("verify", url).output
    enumerated(KIND, STEPS, url)
    assert tree(tmp_path) == expected


def test_a_marker_that_was_torn_behind_a_url_commits_nothing_and_the_level_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"local://{tmp_path}/store"
    with monkeypatch.context() as patch:
        patch.setattr(ZarrFiles, "delete", lambda *_: None)  # a killed process removes nothing
        patch.setattr(ZarrFiles, "write_record", torn_at("level_00001", tmp_path / "store"))
        with pytest.raises(StoreError):
            enumerated(KIND, STEPS, url)
    (store,) = json_of("verify", url)["stores"]
    assert (store["n_levels"], store["damage"]) == (1, [])
    enumerated(KIND, STEPS, url)
    enumerated(KIND, STEPS, tmp_path / "whole")
    assert tree(tmp_path / "store") == tree(tmp_path / "whole")


def torn_at(group: str, store: Path) -> Callable[..., None]:
    """Writes records, and a part of one; then nothing works any more."""
    plain = ZarrFiles.write_record

    def write(self: ZarrFiles, name: str, content: Any) -> None:
        plain(self, name, content)
        if name == group:
            file = store / name / "zarr.json"
            file.write_bytes(file.read_bytes()[:99])
            raise OSError("killed")

    return write


def test_verify_finds_the_stores_in_a_folder_behind_a_url(tmp_path: Path) -> None:
    solve(world_of(KIND, STEPS)[0], Params(), out=f"local://{tmp_path}/out", progress=False).close()
    assert len(json_of("verify", f"local://{tmp_path}/out")["stores"]) == 2


# --- files for people ---------------------------------------------------------------------------------------------------


def test_what_a_killed_writer_left_of_a_file_goes_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    (tmp_path / ".film-unfinished-0a1b2c3d.gif").write_bytes(b"GIF")
    (tmp_path / ".film-my-own.gif").write_bytes(b"GIF")
    with atomic_write(tmp_path / "film.gif") as first, atomic_write(tmp_path / "film.gif") as second:
        assert first.exists()
        assert first != second
        second.write_bytes(b"GIF 2")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".film-my-own.gif", "film.gif"]
