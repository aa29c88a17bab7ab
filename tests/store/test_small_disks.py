"""Disks that are full or read-only, real ones wherever the system lets a test have some: what was committed survives.

Each story is told by a process of its own, which mounts its disks where nobody else sees them, so that nothing has to be
tidied up. Where mounting is not allowed, errors are injected and permissions taken away instead.
"""

from __future__ import annotations

import errno
import functools
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_tools import assert_same_dags, assert_same_trees, enumerated, environment, tree
from zarr.storage import LocalStore

from empo_bi import StoreError, StoreNotFoundError, open_dag
from empo_bi.store import location as places

STEPS = 9


def pages_of(folder: Path) -> int:
    """Room that a tmpfs needs for a folder."""
    return sum(4096 * (path.stat().st_size // 4096 + 1) for path in folder.rglob("*") if path.is_file())


class Tmpfs:
    """A file system in memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mount("-t", "tmpfs", "-o", "size=64m", "tmpfs")

    def _mount(self, *options: str) -> None:
        subprocess.run(["mount", *options, str(self.folder)], check=True)

    def resize(self, nbytes: int) -> None:
        self._mount("-o", f"remount,size={nbytes}")

    def limit_files(self, n: int) -> None:
        self._mount("-o", f"remount,nr_inodes={n}")

    def make_read_only(self) -> None:
        self._mount("-o", "remount,ro")


class Pretended:
    """A folder that behaves as if it were one, as far as zarr and packing are concerned."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._nbytes, self._files = 1 << 26, 1 << 20
        for owner, name in ((LocalStore, "set"), (LocalStore, "set_if_not_exists")):
            setattr(owner, name, self._guarded_later(getattr(owner, name)))
        plain = zipfile.ZipFile.writestr

        def writestr(*arguments: Any) -> None:
            self._check(len(arguments[2]))
            plain(*arguments)

        zipfile.ZipFile.writestr = writestr  # type: ignore[assignment, method-assign]

    def _check(self, nbytes: int) -> None:
        n_files = sum(1 for _ in self.folder.rglob("*"))
        if pages_of(self.folder) + nbytes > self._nbytes or n_files >= self._files:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _guarded_later(self, plain: Any) -> Any:
        async def guarded(store: Any, key: str, value: Any) -> None:
            self._check(len(value))
            await plain(store, key, value)

        return guarded

    def resize(self, nbytes: int) -> None:
        self._nbytes = nbytes

    def limit_files(self, n: int) -> None:
        self._files = n

    def make_read_only(self) -> None:
        for path in (self.folder, *self.folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        if os.geteuid() == 0:  # to whom permissions mean nothing
            importlib.import_module("encodings.cp437")  # zip files need it, and nobody may not read Python's own folders
            os.seteuid(65534)


Disk = Tmpfs | Pretended


@functools.cache
def way_to_mount() -> tuple[str, ...] | None:
    """How to start a process that may mount disks for itself, None if there is no way."""
    for way in (("unshare", "-m"), ("unshare", "-rm")):
        command = [*way, "mount", "-t", "tmpfs", "tmpfs", tempfile.gettempdir()]
        if shutil.which("unshare") and subprocess.run(command, capture_output=True, check=False).returncode == 0:
            return way
    return None


def tell(story: Callable[[Disk, Path], None], kind: str) -> None:
    """Run a story in a process of its own. Its folders are open to everybody, also to a user who may write nowhere."""
    way = way_to_mount() if kind == "real" else None
    script = f"import test_small_disks as t; t.begin(t.{story.__name__}, t.{'Pretended' if way is None else 'Tmpfs'})"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        command = [*(way or ()), sys.executable, "-c", script, folder]
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment())
    assert found.returncode == 0, found.stderr


def begin(story: Callable[[Disk, Path], None], kind: type[Disk]) -> None:
    folder = Path(sys.argv[1])
    (folder / "disk").mkdir()
    story(kind(folder / "disk"), folder / "elsewhere")


# The second kind is what the first falls back to where nothing can be mounted.
both_kinds = pytest.mark.parametrize("kind", ["real", pytest.param("pretended", marks=pytest.mark.slow)])


# --- full -------------------------------------------------------------------------------------------------------------


def fill(disk: Disk, elsewhere: Path, limit: Callable[[float], None], release: Callable[[], None]) -> None:
    """Run into the limit at several moments, twice each, and go on when there is room."""
    expected = open_dag(elsewhere / "store")
    for part in (0.3, 0.6, 0.63, 0.97):
        store = disk.folder / "store"
        limit(part)
        n_levels = 0
        for _ in range(2):  # trying again is no use, but does no harm
            with pytest.raises(StoreError, match="the disk is full"):
                enumerated("ice_rink", STEPS, store)
            dag = open_dag(store)
            assert not dag.is_finished
            assert dag.horizon + 1 >= max(1, n_levels)
            n_levels = dag.horizon + 1
            assert_same_dags(dag, expected, n_levels)
        release()
        enumerated("ice_rink", STEPS, store)
        assert_same_trees(disk.folder, elsewhere)
        shutil.rmtree(store)


def too_little_room(disk: Disk, elsewhere: Path) -> None:
    enumerated("ice_rink", STEPS, elsewhere / "store")
    needed = pages_of(elsewhere / "store")
    fill(disk, elsewhere, lambda part: disk.resize(int(part * needed)), lambda: disk.resize(1 << 26))


def too_many_files(disk: Disk, elsewhere: Path) -> None:
    enumerated("ice_rink", STEPS, elsewhere / "store")
    needed = len(tree(elsewhere / "store"))
    fill(disk, elsewhere, lambda part: disk.limit_files(int(part * needed)), lambda: disk.limit_files(1 << 20))


@both_kinds
@pytest.mark.parametrize("story", [too_little_room, too_many_files])
def test_a_full_disk_costs_no_committed_level_and_the_run_goes_on_when_there_is_room(
    story: Callable[[Disk, Path], None], kind: str
) -> None:
    tell(story, kind)


def no_room_to_pack(disk: Disk, elsewhere: Path) -> None:
    enumerated("ice_rink", STEPS, elsewhere / "store.zip")
    enumerated("ice_rink", STEPS, disk.folder / "folder")
    shutil.move(disk.folder / "folder", elsewhere.with_name("folder"))
    disk.resize(pages_of(elsewhere.with_name("folder")) + 100_000)
    for _ in range(2):
        with pytest.raises(StoreError, match="the disk is full"):
            enumerated("ice_rink", STEPS, disk.folder / "store.zip")
        # What was packed so far is of no use to anybody and would keep the disk full.
        found = sorted(path.name for path in disk.folder.iterdir())
        assert found == ["store.zip.building"], found
    disk.resize(1 << 26)
    enumerated("ice_rink", STEPS, disk.folder / "store.zip")
    assert_same_trees(disk.folder, elsewhere)


@both_kinds
def test_a_disk_without_room_to_pack_a_zip_file_loses_nothing(kind: str) -> None:
    tell(no_room_to_pack, kind)


def no_room_for_a_temporary_store(disk: Disk, elsewhere: Path) -> None:
    tempfile.tempdir = str(disk.folder)
    disk.resize(400_000)
    if isinstance(disk, Tmpfs):
        with pytest.raises(StoreError, match="0 MB free, a temporary store wants 200 MB"):
            enumerated("ice_rink", STEPS, True)
    places.ROOM_NEEDED = 0
    with pytest.raises(StoreError, match="the disk is full"):
        enumerated("ice_rink", STEPS, True)
    assert list(disk.folder.iterdir()) == []


@both_kinds
def test_a_temporary_store_that_outgrows_its_disk_is_removed(kind: str) -> None:
    tell(no_room_for_a_temporary_store, kind)


# --- read-only --------------------------------------------------------------------------------------------------------


def read_only(disk: Disk, elsewhere: Path) -> None:
    expected = enumerated("ice_rink", STEPS, elsewhere / "store")
    for name in ("finished", "finished.zip"):
        enumerated("ice_rink", STEPS, disk.folder / name)
    with pytest.raises(RuntimeError, match="max_states"):
        enumerated("ice_rink", STEPS, disk.folder / "unfinished", max_states=500)
    disk.make_read_only()
    before = tree(disk.folder)
    for name in ("new", "new.zip", "deep/new", "unfinished", "finished", "finished.zip"):
        overwrite = name.startswith("finished")
        with pytest.raises(StoreError, match=r"cannot be written: no permission .*Choose a place that you may write to"):
            enumerated("ice_rink", STEPS, disk.folder / name, overwrite=overwrite)
    for name in ("finished", "finished.zip"):
        assert_same_dags(enumerated("ice_rink", STEPS, disk.folder / name), expected)
        assert_same_dags(open_dag(disk.folder / name), expected)
    unfinished = open_dag(disk.folder / "unfinished")
    assert_same_dags(unfinished, expected, unfinished.horizon + 1)
    with pytest.raises(StoreNotFoundError):
        open_dag(disk.folder / "new")
    assert tree(disk.folder) == before


@both_kinds
def test_a_read_only_disk_is_told_and_what_is_on_it_can_be_used(kind: str) -> None:
    tell(read_only, kind)
