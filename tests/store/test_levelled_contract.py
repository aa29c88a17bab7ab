"""One contract for levels of DAGs and of solutions, wherever they rest: memory, folders, zip files, URLs, temporary ones."""

from __future__ import annotations

import errno
import re
import shutil
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from empo_bi import Params, load_world, solve
from empo_bi.dag.levels import MemoryLevels
from empo_bi.errors import DamagedStoreError, StoreError, StoreLockedError, StoreMismatchError, StoreNotFoundError
from empo_bi.store import slice_arrays as codec
from empo_bi.store.compression import Compression
from empo_bi.store.dag_store import DagStore
from empo_bi.store.levelled import LevelledStore
from empo_bi.store.location import place_of
from empo_bi.store.solution_store import SolutionStore
from empo_bi.store.solved_levels import MemorySolution
from empo_bi.store.zarr_files import ZarrFiles

STEPS = 3

# --- places -----------------------------------------------------------------------------------------------------------

ON_DISK: dict[str, Callable[[Path], Any]] = {
    "folder": lambda folder: folder / "store",
    "zip file": lambda folder: folder / "store.zip",
}
KEPT = {
    **ON_DISK,
    "URL": lambda folder: f"memory://{folder.name}/store",
    "URL of a disk": lambda folder: f"local://{folder}/store",
}
PLACES = {**KEPT, "temporary folder": lambda folder: True, "memory": lambda folder: None}


def files_at(where: Any) -> dict[str, bytes]:
    """All files of a store; those of a zip file that is being made are in a folder beside it."""
    if isinstance(where, str):
        system, path = fsspec.core.url_to_fs(where)
        return {name.removeprefix(path).lstrip("/"): system.cat_file(name) for name in sorted(system.find(path))}
    if where.suffix == ".zip" and where.exists():
        with zipfile.ZipFile(where) as packed:
            return {name: packed.read(name) for name in sorted(packed.namelist())}
    folder = where.with_name(f"{where.name}.building") if where.suffix == ".zip" else where
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def put_files(where: Any, files: dict[str, bytes]) -> None:
    """Replace all files of a store."""
    if isinstance(where, str):
        system, path = fsspec.core.url_to_fs(where, auto_mkdir=True) if "local" in where else fsspec.core.url_to_fs(where)
        system.rm(path, recursive=True)
        system.pipe({f"{path}/{name}": data for name, data in files.items()})
    elif where.suffix == ".zip":
        with zipfile.ZipFile(where, "w") as packed:
            for name, data in files.items():
                packed.writestr(name, data)
    else:
        shutil.rmtree(where)
        for name, data in files.items():
            (where / name).parent.mkdir(parents=True, exist_ok=True)
            (where / name).write_bytes(data)


# --- kinds ------------------------------------------------------------------------------------------------------------


class Kind(ABC):
    """A kind of store, with levels that somebody has computed; ``order`` is that in which they are put."""

    store: type[LevelledStore]
    order: list[int]
    end: str  # without this file a store is not finished
    manifest: dict[str, Any]

    @abstractmethod
    def made(self, where: Any, *, overwrite: bool = False) -> Any:
        """A store that is there, or a new one."""

    @abstractmethod
    def put(self, store: Any, t: int) -> None:
        """Put the right level ``t``."""

    @abstractmethod
    def read(self, store: Any, t: int) -> dict[str, Any]:
        """All arrays of a level, and what is known of it beside them."""

    def opened(self, where: Any) -> Any:
        return self.store.open(place_of(where))  # type: ignore[attr-defined]

    def filled(self, where: Any, n: int = STEPS + 1) -> Any:
        """A store with its first ``n`` levels, finished with all of them."""
        store = self.made(where)
        for t in self.order[:n]:
            self.put(store, t)
        if n > STEPS:
            store.finish()
        return store


class Dags(Kind):
    store, order, end = DagStore, [0, 1, 2, 3], "finished/zarr.json"

    def __init__(self) -> None:
        self.levels: list[Any] = []  # each a slice and its frontier

    def made(self, where: Any, *, overwrite: bool = False) -> Any:
        if where is None:
            return MemoryLevels()
        return DagStore.open_or_create(place_of(where), self.manifest, None, compression=Compression(), overwrite=overwrite)

    def put(self, store: Any, t: int) -> None:
        piece, frontier = self.levels[t]
        store.append(piece, lambda: frontier)

    def read(self, store: Any, t: int) -> dict[str, Any]:
        fields, arrays = codec.to_arrays(store[t], None)
        return {**fields, **arrays}


class Solutions(Kind):
    store, order, end = SolutionStore, [3, 2, 1, 0], "level_00000/zarr.json"

    def __init__(self) -> None:
        self.levels: dict[int, Any] = {}  # arrays and the carry

    def made(self, where: Any, *, overwrite: bool = False) -> Any:
        if where is None:
            return MemorySolution(STEPS)
        return SolutionStore.open_or_create(place_of(where), self.manifest, compression=Compression(), overwrite=overwrite)

    def put(self, store: Any, t: int) -> None:
        arrays, carry = self.levels[t]
        store.put(t, dict(arrays), lambda: dict(carry))

    def read(self, store: Any, t: int) -> dict[str, Any]:
        return {name: store.get(t, name) for name in self.levels[t][0]}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kind]:
    """The levels that a solve puts, recorded."""
    dags, solutions = Dags(), Solutions()
    plain_append, plain_put = DagStore.append, SolutionStore.put

    def append(self: Any, piece: Any, frontier: Any) -> None:
        dags.manifest = self.manifest
        dags.levels.append((piece, frontier()))
        plain_append(self, piece, frontier)

    def put(self: Any, t: int, arrays: Any, carry: Any) -> None:
        solutions.manifest = self.manifest
        solutions.levels[t] = dict(arrays), {name: np.array(table) for name, table in carry().items()} if t else {}
        plain_put(self, t, arrays, carry)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DagStore, "append", append)
        patch.setattr(SolutionStore, "put", put)
        solve(load_world("ice_rink", max_steps=STEPS), Params(), out=tmp_path_factory.mktemp("run"), progress=False).close()
    return {"DAG": dags, "solution": solutions}


@pytest.fixture(params=["DAG", "solution"])
def kind(request: pytest.FixtureRequest, kinds: dict[str, Kind]) -> Kind:
    return kinds[request.param]


@pytest.fixture
def where(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A place of the kind that the test is about."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield PLACES[request.param](tmp_path)
    fsspec.filesystem("memory").store.clear()


everywhere = pytest.mark.parametrize("where", PLACES, indirect=True)
where_it_is_kept = pytest.mark.parametrize("where", KEPT, indirect=True)
where_files_are = pytest.mark.parametrize("where", ON_DISK, indirect=True)


def assert_right(kind: Kind, store: Any, levels: list[int]) -> None:
    """Whether levels are read as they were put, whatever is asked first."""
    expected = kind.filled(None)
    for t in [*levels, *reversed(levels)]:
        found, right = kind.read(store, t), kind.read(expected, t)
        assert found.keys() == right.keys()
        for name, value in right.items():
            assert np.array_equal(found[name], value), (t, name)
            assert not isinstance(value, np.ndarray) or found[name].dtype == value.dtype, (t, name)


def put_all(kind: Kind, store: Any) -> None:
    """The levels that are missing, and the end."""
    for t in kind.order[len(store) :]:
        kind.put(store, t)
    store.finish()


def whole(kind: Kind, where: Any) -> dict[str, bytes]:
    """The files of a store that was written in peace, at another place of the same sort."""
    elsewhere = where.with_name("whole" + where.suffix) if isinstance(where, Path) else f"{where}-whole"
    kind.filled(elsewhere).close()
    return files_at(elsewhere)


# --- put and read -----------------------------------------------------------------------------------------------------


@everywhere
def test_levels_are_read_as_they_were_put(kind: Kind, where: Any) -> None:
    store = kind.made(where)
    for n, t in enumerate(kind.order):
        kind.put(store, t)
        assert not store.is_finished
        assert_right(kind, store, kind.order[: n + 1])
    store.finish()
    assert store.is_finished
    assert_right(kind, store, kind.order)
    assert "in " in store.describe()
    store.close()


@everywhere
def test_what_is_given_back_is_read_again(kind: Kind, where: Any) -> None:
    store = kind.filled(where)
    assert_right(kind, store, kind.order)
    store.give_back()
    held = store.cached_bytes if isinstance(kind, Dags) else store.held_bytes
    assert (held > 0) == (where is None)
    assert_right(kind, store, kind.order)
    store.close()


@everywhere
def test_levels_come_one_after_the_other(kind: Kind, where: Any) -> None:
    store = kind.made(where)
    kind.put(store, kind.order[0])
    kind.put(store, kind.order[1])
    for t in (kind.order[1], kind.order[0]):
        with pytest.raises(ValueError, match="is out of order"):
            kind.put(store, t)
    put_all(kind, store)
    for t in (kind.order[-1], kind.order[0]):
        with pytest.raises(ValueError, match="is out of order"):
            kind.put(store, t)
    assert_right(kind, store, kind.order)
    store.close()


@everywhere
def test_a_solution_is_not_finished_before_its_first_level_is_there(where: Any, kinds: dict[str, Kind]) -> None:
    store = kinds["solution"].filled(where, 2)
    with pytest.raises(ValueError, match="cannot be finished, level 1 has not been put"):
        store.finish()
    store.close()


@pytest.mark.parametrize("where", [*KEPT, "temporary folder"], indirect=True)
def test_a_closed_store_says_so_and_closing_it_again_does_nothing(kind: Kind, where: Any, tmp_path: Path) -> None:
    store = kind.filled(where)
    for _ in range(3):
        store.close()
        with pytest.raises(StoreError, match=r"this (DAG|solution) was closed"):
            kind.read(store, 1)
    assert where is not True or list(tmp_path.iterdir()) == []


@everywhere
def test_closing_twice_is_no_error(kind: Kind, where: Any) -> None:
    for n in (0, 2, STEPS + 1):
        store = kind.filled(where, n) if where is None or where is True else kind.made(where)
        store.close()
        store.close()


# --- opened again -----------------------------------------------------------------------------------------------------


@where_it_is_kept
def test_a_finished_store_is_opened_for_reading_and_nothing_is_written(kind: Kind, where: Any, tmp_path: Path) -> None:
    kind.filled(where).close()
    before, around = files_at(where), sorted(path.name for path in tmp_path.iterdir())
    for store in (kind.opened(where), kind.made(where)):
        assert store.is_finished
        assert_right(kind, store, kind.order)
        store.finish()
        store.close()
    assert files_at(where) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == around
    assert around in ([], ["store"], ["store.zip"])  # no locks, no halves


@where_it_is_kept
@pytest.mark.parametrize("n", range(STEPS + 2))
def test_an_unfinished_store_is_read_as_far_as_it_goes_and_ends_with_the_same_bytes(kind: Kind, where: Any, n: int) -> None:
    store = kind.made(where)
    for t in kind.order[:n]:
        kind.put(store, t)
    store.close()
    found = kind.opened(where)
    assert len(found) == n
    assert found.is_finished == (n > STEPS and isinstance(kind, Solutions))  # its number of levels tells
    assert_right(kind, found, kind.order[:n])
    found.close()
    store = kind.made(where)
    assert len(store) == n
    put_all(kind, store)
    store.close()
    assert files_at(where) == whole(kind, where)


@where_it_is_kept
def test_what_a_killed_writer_left_is_removed(kind: Kind, where: Any) -> None:
    kind.filled(where, 2).close()
    if isinstance(where, Path) and where.suffix:
        where = where.with_name(f"{where.name}.building")
    begun = f"level_{kind.order[2]:05}/{'key' if isinstance(kind, Dags) else 'vr'}/c/0"
    put_files(where, {**files_at(where), begun: b"half", f"{kind.store.kind.resume_prefix}_00009/zarr.json": b"{}"})
    store = kind.made(where)
    store.close()
    assert begun not in files_at(where)
    assert not any(name.startswith(f"{kind.store.kind.resume_prefix}_00009") for name in files_at(where))


@pytest.mark.parametrize("where", ["folder", "URL", "URL of a disk"], indirect=True)
def test_what_was_left_beside_finished_levels_goes_unless_somebody_has_begun_anew(kind: Kind, where: Any) -> None:
    kind.filled(where).close()
    files, left = files_at(where), {f"{kind.store.kind.resume_prefix}_00001/zarr.json": b"{}"}
    put_files(where, files | left)
    found = kind.opened(where)
    put_files(where, {name: data for name, data in (files | left).items() if not name.startswith("level_00000")})
    found.tidy()
    assert files_at(where).keys() & left
    put_files(where, files | left)
    assert kind.made(where).is_finished
    assert files_at(where) == files


@where_it_is_kept
def test_nothing_is_there(kind: Kind, where: Any) -> None:
    with pytest.raises(StoreNotFoundError):
        kind.opened(where)


@where_it_is_kept
@pytest.mark.parametrize("n", [0, 2, STEPS + 1])
def test_a_store_is_replaced_when_that_is_asked_for(kind: Kind, where: Any, n: int) -> None:
    kind.filled(where, n).close()
    store = kind.made(where, overwrite=True)
    assert (len(store), store.is_finished) == (0, False)
    put_all(kind, store)
    store.close()
    assert files_at(where) == whole(kind, where)


@where_it_is_kept
@pytest.mark.parametrize("n", [2, STEPS + 1])
def test_other_content_is_refused_and_left_alone(kind: Kind, where: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kind.filled(where, n).close()
    before = files_at(where)
    other = {**kind.manifest, "content": {**kind.manifest["content"], "world": "another"}}
    monkeypatch.setattr(kind, "manifest", other)
    with pytest.raises(StoreMismatchError, match="differs in world"):
        kind.made(where)
    assert files_at(where) == before


@where_it_is_kept
@pytest.mark.parametrize("change", [{"format": "another"}, {"version": 99}])
def test_another_format_or_version_is_refused_and_replaced_when_asked(
    kind: Kind, where: Any, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(kind, "manifest", {**kind.manifest, **change})
        kind.made(where).close()
    before = files_at(where)
    for attempt in (kind.opened, kind.made):
        with pytest.raises(StoreMismatchError, match=r"has version 99 of the format|expected format .* found format"):
            attempt(where)
    assert files_at(where) == before
    put_all(kind, kind.made(where, overwrite=True))
    assert_right(kind, kind.opened(where), kind.order)


@where_it_is_kept
def test_what_is_being_written_can_be_removed(kind: Kind, where: Any, tmp_path: Path) -> None:
    store = kind.filled(where, 2)
    store.remove()
    store.remove()
    assert files_at(where) == {}
    assert not list(tmp_path.glob("*.lock"))
    finished = kind.filled(where)
    finished.remove()  # nobody writes it any more
    assert kind.opened(where).is_finished


# --- others -----------------------------------------------------------------------------------------------------------


@where_files_are
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_second_writer_is_refused_until_the_first_is_done(kind: Kind, where: Any, overwrite: bool) -> None:
    first = kind.filled(where, 2)
    kind.read(first, kind.order[1])  # until it is committed
    with pytest.raises(StoreLockedError, match="is writing there; wait until it is done"):
        kind.made(where, overwrite=overwrite)
    reader = kind.opened(where)
    assert_right(kind, reader, kind.order[:2])
    put_all(kind, first)
    assert kind.made(where).is_finished
    first.close()
    assert files_at(where) == whole(kind, where)


@where_it_is_kept
@pytest.mark.parametrize("overwrite", [False, True])
def test_somebody_elses_files_are_refused_and_left_alone(kind: Kind, where: Any, overwrite: bool) -> None:
    kind.filled(where).close()
    put_files(where, {"notes.txt": b"mine"})
    with pytest.raises(StoreMismatchError, match=r"is (not a|a zip file without a) (slice store|solution)"):
        kind.made(where, overwrite=overwrite)
    assert files_at(where) == {"notes.txt": b"mine"}


# --- damage -----------------------------------------------------------------------------------------------------------


def array_in(files: dict[str, bytes], level: int = 1) -> str:
    """The largest array of a level, as files are called."""
    inside = [name for name in files if name.startswith(f"level_{level:05}/") and "/c/" in name]
    return max(inside, key=lambda name: len(files[name])).split("/c/")[0]


def flipped(data: bytes) -> bytes:
    return bytes([*data[:-1], data[-1] ^ 1])


@where_it_is_kept
@pytest.mark.parametrize("case", ["a flipped bit", "half a chunk", "no chunk", "no metadata", "no array"])
def test_damage_to_an_array_is_named_and_other_levels_are_read(kind: Kind, where: Any, case: str) -> None:
    kind.filled(where).close()
    files = files_at(where)
    array = array_in(files)
    chunk = min(name for name in files if name.startswith(f"{array}/c/"))
    if case == "a flipped bit":
        files[chunk] = flipped(files[chunk])
    elif case == "half a chunk":
        files[chunk] = files[chunk][: len(files[chunk]) // 2]
    else:
        gone = {"no chunk": chunk, "no metadata": f"{array}/zarr.json", "no array": f"{array}/"}[case]
        files = {name: data for name, data in files.items() if not name.startswith(gone)}
    put_files(where, files)
    store = kind.opened(where)
    named = rf"level 1, array '{array.split('/')[1]}': .*To make (it|the store) anew"
    with pytest.raises(DamagedStoreError, match=named):
        kind.read(store, 1)
    (problem,) = store.problems_of(1)
    assert f"level 1, array '{array.split('/')[1]}'" in problem
    assert "To make" not in problem
    assert_right(kind, store, [0, 2, 3])
    assert files_at(where) == files
    store.close()


@where_it_is_kept
@pytest.mark.parametrize("record", ["zarr.json", "level_00001/zarr.json", "the end"])
def test_a_changed_record_is_refused(kind: Kind, where: Any, record: str) -> None:
    kind.filled(where).close()
    files, name = files_at(where), kind.end if record == "the end" else record
    number = rb'"n_agents": |"horizon": ' if name == "zarr.json" else rb'"level": '
    files[name] = re.sub(number, rb"\g<0>9", files[name])
    assert files[name] != files_at(where)[name]
    put_files(where, files)
    if name == kind.end or isinstance(kind, Solutions) or record == "zarr.json":
        with pytest.raises(DamagedStoreError, match="its checksum differs, so it was changed"):
            kind.opened(where)
    else:  # the end of a DAG has the markers of all levels
        (problem,) = kind.opened(where).problems_of(1)
        assert "its checksum differs, so it was changed" in problem


@where_it_is_kept
def test_a_store_without_its_manifest_is_damaged_for_a_reader(kind: Kind, where: Any) -> None:
    kind.filled(where).close()
    put_files(where, {name: data for name, data in files_at(where).items() if name != "zarr.json"})
    with pytest.raises(DamagedStoreError, match=r"has levels, but its own record, the file zarr\.json, is missing"):
        kind.opened(where)


@where_it_is_kept
def test_a_store_without_its_end_is_not_finished_and_its_levels_are_read(kind: Kind, where: Any) -> None:
    kind.filled(where).close()
    put_files(where, {name: data for name, data in files_at(where).items() if name != kind.end})
    store = kind.opened(where)
    assert not store.is_finished
    there = kind.order if isinstance(kind, Dags) else kind.order[:-1]
    assert len(store) == len(there)
    assert_right(kind, store, there)


@pytest.mark.parametrize("where", ["folder", "URL", "URL of a disk"], indirect=True)
def test_without_what_is_ahead_a_store_is_not_continued_and_nothing_is_touched(kind: Kind, where: Any) -> None:
    kind.filled(where, 2).close()
    ahead = kind.store.kind.resume_prefix
    files = {name: data for name, data in files_at(where).items() if not name.startswith(ahead)}
    put_files(where, files)
    with pytest.raises(DamagedStoreError, match=rf"group {ahead}_0000\d(/0)?.* is missing"):
        kind.made(where)
    assert files_at(where) == files


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [*KEPT, "temporary folder"], indirect=True)
@pytest.mark.parametrize("failing", ["write_array", "write_record"])
def test_a_level_that_cannot_be_written_leaves_nothing_behind(
    kind: Kind, where: Any, failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, group = getattr(ZarrFiles, failing), f"level_{kind.order[2]:05}"

    def full(self: Any, name: str, *arguments: Any) -> Any:
        if name == group:
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(self, name, *arguments)

    store = kind.made(where)
    with monkeypatch.context() as patch:
        patch.setattr(ZarrFiles, failing, full)
        with pytest.raises(StoreError, match=rf"level {kind.order[2]} cannot be written: the disk is full"):
            put_all(kind, store)
        store.close()
    if where is True:
        assert list(tmp_path.iterdir()) == []
        return
    left = {name.split("/")[0] for name in files_at(where)}
    first, second = kind.order[:2]
    assert left == {"zarr.json", f"level_{first:05}", f"level_{second:05}", kind.store.kind.resume_name(second)}
    assert not list(tmp_path.glob("*.lock"))
    store = kind.made(where)
    assert len(store) == 2
    put_all(kind, store)
    store.close()
    assert files_at(where) == whole(kind, where)
