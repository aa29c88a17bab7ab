"""Where a store may be, what is left there, and who may write: folders, zip files, URLs, store objects, temporary ones."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zarr.storage
from dag.test_stores_and_workers import assert_same

from empo_bi import (
    GridWorld,
    InvalidWorldError,
    StoreError,
    StoreLockedError,
    StoreMismatchError,
    TooManyStatesError,
    enumerate_dag,
    load_world,
    open_dag,
)
from empo_bi.store import location as places

WORLD = "asymmetric_freeing"


def small_world(steps: int = 5) -> GridWorld:
    return load_world(WORLD, max_steps=steps)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def forbid_expansion(monkeypatch: pytest.MonkeyPatch) -> None:
    def expand(*_: Any) -> Any:
        raise AssertionError("expanded again")

    monkeypatch.setattr(GridWorld, "expand", expand)


# --- kinds of places --------------------------------------------------------------------------------------------------


def memory_store(_: Path) -> Any:
    return zarr.storage.MemoryStore()


def zip_store(folder: Path) -> Any:
    return zarr.storage.ZipStore(folder / "object.zip", mode="w")


PLACES: dict[str, Any] = {
    "folder": lambda folder: folder / "deep" / "below" / "dag",
    "zip file": lambda folder: str(folder / "dag.zip"),
    "file URL": lambda folder: f"file://{folder}/dag",
    "memory URL": lambda folder: f"memory://{folder.name}/dag",
    "memory store": memory_store,
    "local store": lambda folder: zarr.storage.LocalStore(folder / "dag"),
    "zip store": zip_store,
}


@pytest.mark.parametrize("kind", PLACES)
def test_a_dag_is_the_same_in_every_place_and_is_used_again(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, place = small_world(), PLACES[kind](tmp_path)
    memory = enumerate_dag(world, progress=False)
    assert_same(memory, enumerate_dag(world, store=place, progress=False))
    forbid_expansion(monkeypatch)
    assert_same(memory, enumerate_dag(small_world(), store=place, progress=False))
    assert_same(memory, open_dag(place))


@pytest.mark.parametrize("place", [123, "", b"x", False])
def test_what_is_no_place_is_a_type_error(place: Any) -> None:
    with pytest.raises(TypeError, match=r"give a folder, a \.zip file, a URL, a zarr store, True for a temporary folder"):
        enumerate_dag(small_world(), store=place, progress=False)


@pytest.mark.parametrize("overwrite", [False, True])
def test_zip_files_that_are_not_ours_are_refused_and_kept(overwrite: bool, tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("no zip file")
    with zipfile.ZipFile(tmp_path / "backup.zip", "w") as backup:
        backup.writestr("precious.txt", "mine")
    before = files_of(tmp_path)
    for name in ("text.zip", "backup.zip"):
        with pytest.raises(StoreError, match=rf"{name}: is "):
            enumerate_dag(small_world(), store=tmp_path / name, overwrite=overwrite, progress=False)
    assert files_of(tmp_path) == before


def test_other_files_in_a_folder_are_never_removed(tmp_path: Path) -> None:
    for name in ("level_1.txt", "film.mkv.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("mine")
        with pytest.raises(StoreMismatchError, match="is not a slice store"):
            enumerate_dag(small_world(), store=tmp_path / name, progress=False)
    with pytest.raises(TooManyStatesError):
        enumerate_dag(small_world(), store=tmp_path / "dag", max_states=10, progress=False)
    (tmp_path / "dag" / "notes.txt").write_text("mine")
    enumerate_dag(small_world(), store=tmp_path / "dag", progress=False)
    assert (tmp_path / "dag" / "notes.txt").read_text() == "mine"


def test_a_file_is_no_place_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for attempt in (open_dag, lambda place: enumerate_dag(small_world(), store=place, progress=False)):
        with pytest.raises(StoreMismatchError, match=r"notes\.txt: is a file; a store is a folder"):
            attempt(tmp_path / "notes.txt")


def test_a_link_leads_to_the_same_lock(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with child(str(tmp_path / "real")), pytest.raises(StoreLockedError, match="is writing there"):
        enumerate_dag(small_world(), store=tmp_path / "link", progress=False)


def test_a_store_that_cannot_forget_is_not_overwritten(tmp_path: Path) -> None:
    store = zarr.storage.ZipStore(tmp_path / "object.zip", mode="w")
    enumerate_dag(small_world(), store=store, progress=False)
    with pytest.raises(StoreMismatchError, match="cannot delete entries; use an empty one"):
        enumerate_dag(load_world("carousel", max_steps=3), store=store, overwrite=True, progress=False)
    assert_same(open_dag(store), enumerate_dag(small_world(), progress=False))


def test_a_zip_file_that_was_not_yet_packed_is_packed_by_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: places.Place) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(places.Place, "pack", fail)
        with pytest.raises(StoreError, match="the disk is full"):
            enumerate_dag(small_world(), store=tmp_path / "dag.zip", progress=False)
    assert open_dag(tmp_path / "dag.zip").horizon == 5  # from the folder it is built in
    forbid_expansion(monkeypatch)
    enumerate_dag(small_world(), store=tmp_path / "dag.zip", progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["dag.zip"]


def test_a_folder_that_a_killed_packer_left_is_removed(tmp_path: Path) -> None:
    enumerate_dag(small_world(), store=tmp_path / "dag.zip", progress=False)
    (tmp_path / "dag.zip.building" / "level_00003").mkdir(parents=True)
    enumerate_dag(small_world(), store=tmp_path / "dag.zip", progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["dag.zip"]


def test_a_world_that_fails_halfway_leaves_the_levels_before(tmp_path: Path) -> None:
    class Fails(FromSteps):
        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            if state[0] == 3 and self.fails:
                raise ZeroDivisionError("the world's own")
            return super().transition_probabilities(state, actions)

    with pytest.raises(ZeroDivisionError, match="the world's own"):
        enumerate_dag(Fails(True), level_fct=lambda state: state[0], store=tmp_path / "dag", progress=False)
    dag = open_dag(tmp_path / "dag")
    assert (dag.is_finished, dag.level_sizes) == (False, [1, 2, 3])
    assert "unfinished" in dag.summary()
    assert enumerate_dag(
        Fails(False), level_fct=lambda state: state[0], store=tmp_path / "dag", progress=False
    ).level_sizes == [1, 2, 3, 4, 5, 6]


class FromSteps:
    """(step, sum of coins): one coin a step."""

    n_agents = 1
    content_key = "from steps"

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails
        self.action_space = type("Space", (), {"n": 1})()

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, total = state
        return None if step == 5 else [(0.5, (step + 1, total)), (0.5, (step + 1, total + 1))]


# --- full and read-only disks -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A real file system of its own; the tests' own machines run as root."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True, capture_output=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True, capture_output=True)


def can_mount() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0


needs_mount = pytest.mark.skipif(
    not can_mount(), reason="only root may mount a disk; its sibling with an injected error runs everywhere"
)


def check_full_disk(disk: Path, expected: dict[str, bytes], make_room: Any) -> None:
    with pytest.raises(StoreError, match=r"level \d+ cannot be written: the disk is full .* run the same command again"):
        enumerate_dag(small_world(11), store=disk / "dag", progress=False)
    so_far = open_dag(disk / "dag")
    assert not so_far.is_finished
    assert so_far.horizon > 0
    assert so_far.level(so_far.horizon).n_states > 0
    make_room()
    enumerate_dag(small_world(11), store=disk / "dag", progress=False)
    assert files_of(disk / "dag") == expected


@pytest.fixture(scope="module")
def eleven_steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("whole") / "dag"
    enumerate_dag(small_world(11), store=path, progress=False)
    return files_of(path)


@needs_mount
def test_a_full_disk_is_told_and_the_run_continues_when_there_is_room(
    tmp_path: Path, eleven_steps: dict[str, bytes]
) -> None:
    with small_disk(tmp_path / "disk", "240k") as disk:
        check_full_disk(disk, eleven_steps, lambda: remount(disk, "size=8m"))


def test_an_error_of_the_disk_is_told_and_the_run_continues_after_it(
    tmp_path: Path, eleven_steps: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    real, room = zarr.storage.LocalStore.set, [60]

    async def limited(self: Any, key: str, value: Any) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        await real(self, key, value)

    monkeypatch.setattr(zarr.storage.LocalStore, "set", limited)
    check_full_disk(tmp_path, eleven_steps, lambda: room.append(room.pop() + 100_000))


@needs_mount
def test_a_read_only_disk_is_told_but_a_finished_store_on_it_can_be_used(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "8m") as disk:
        enumerate_dag(small_world(), store=disk / "dag", progress=False)
        enumerate_dag(small_world(), store=disk / "dag.zip", progress=False)
        remount(disk, "ro")
        with pytest.raises(StoreError, match=r"cannot be written: no permission .*Choose a place that you may write to"):
            enumerate_dag(small_world(), store=disk / "new", progress=False)
        for name in ("dag", "dag.zip"):
            assert enumerate_dag(small_world(), store=disk / name, progress=False).horizon == 5
            assert open_dag(disk / name).level(3).n_states == 224


def test_a_place_without_permission_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreError, match=r"cannot be written: no permission"):
        enumerate_dag(small_world(), store=tmp_path / "dag", progress=False)


# --- one writer -------------------------------------------------------------------------------------------------------

CHILD = """
import sys, time
import empo_bi
from empo_bi.store.dag_store import DagStore
place = {place!r}
original = DagStore.append
def append(self, *args):
    if len(self) == 3:
        self._collect()  # until the levels before are committed
        print("writing", flush=True)
        sys.stdin.readline()  # until told to go on
    original(self, *args)
DagStore.append = append
dag = empo_bi.enumerate_dag(empo_bi.load_world({world!r}, max_steps=5), store=place, progress=False)
print(dag.levels.place.folder, flush=True)
{after}
"""


@contextlib.contextmanager
def child(place: Any, after: str = "", **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A process that stops in the middle of writing, or after it, until it gets a line or is killed."""
    command = [sys.executable, "-c", CHILD.format(place=place, world=WORLD, after=after)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def test_the_lock_of_a_killed_writer_is_no_obstacle(tmp_path: Path) -> None:
    place = tmp_path / "dag"
    with child(str(place)) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (tmp_path / "dag.lock").exists()
    assert_same(enumerate_dag(small_world(), store=place, progress=False), enumerate_dag(small_world(), progress=False))
    assert [path.name for path in tmp_path.iterdir()] == ["dag"]


# --- temporary folders ------------------------------------------------------------------------------------------------


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_temporary_store_goes_when_it_is_closed_or_forgotten(temporary: Path) -> None:
    with enumerate_dag(small_world(), store=True, progress=False) as dag:
        assert len(list(temporary.glob("empo_bi-dag-*"))) == 2  # a folder and its lock
        assert "in a temporary folder" in dag.summary()
    assert list(temporary.iterdir()) == []
    dag = enumerate_dag(small_world(), store=True, progress=False)
    assert dag.level(3).n_states == 224
    del dag
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_a_temporary_store_goes_when_the_enumeration_fails(temporary: Path) -> None:
    class Bad(FromSteps):
        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            return [(0.5, (state[0] + 1, 0))] if state[0] == 3 else super().transition_probabilities(state, actions)

    with pytest.raises(InvalidWorldError, match=r"sum to 0\.5"):
        enumerate_dag(Bad(), level_fct=lambda state: state[0], store=True, progress=False)
    assert list(temporary.iterdir()) == []


def test_a_temporary_store_goes_with_its_process(tmp_path: Path) -> None:
    with child(True, TMPDIR=str(tmp_path)) as process:
        out, _ = process.communicate("go on\n")
        assert process.returncode == 0
        assert out.startswith(str(tmp_path / "empo_bi-dag-"))
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_reclaimed_and_what_is_in_use_is_not(temporary: Path) -> None:
    with child(True, TMPDIR=str(temporary)) as killed:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    (left,) = [path for path in temporary.iterdir() if path.is_dir()]
    with child(True, TMPDIR=str(temporary)) as living:  # which reclaims it
        assert not left.exists()
        (in_use,) = [path for path in temporary.iterdir() if path.is_dir()]
        enumerate_dag(small_world(), store=True, progress=False).close()
        assert in_use.exists()
        living.communicate("go on\n")
        assert living.returncode == 0
    assert list(temporary.iterdir()) == []


def test_a_temporary_store_wants_room(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(temporary)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=5_000_000))
    with pytest.raises(StoreError, match=r"5 MB free, a temporary store wants 200 MB; free some room, set TMPDIR"):
        enumerate_dag(small_world(), store=True, progress=False)
    assert list(temporary.iterdir()) == []
