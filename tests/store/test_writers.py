"""Several writers, stopped writers and forked ones, at every kind of place: nobody disturbs anybody, and nothing is left."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_tools import (
    assert_same_dags,
    assert_same_trees,
    counted_expansions,
    enumerated,
    environment,
    run_python,
    step_of,
    tree,
    world_of,
)
from zarr.storage import LocalStore, MemoryStore

from empo_bi import (
    StoreError,
    StoreLockedError,
    StoreMismatchError,
    StoreNotFoundError,
    TooManyStatesError,
    enumerate_dag,
    load_world,
    open_dag,
)
from empo_bi.store import location as places

STEPS = 4
PLACES: dict[str, Callable[[Path], Any]] = {
    "folder": lambda folder: folder / "store",
    "zip file": lambda folder: folder / "store.zip",
    "file URL": lambda folder: f"file://{folder}/store",
    "file URL of a zip file": lambda folder: f"file://{folder}/store.zip",
    "memory URL": lambda folder: f"memory://{folder.name}",
    "memory store": lambda folder: MemoryStore(),
    "local store": lambda folder: LocalStore(folder / "store"),
}


# --- continued, refused, replaced -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ice_rink", "leaps", "drift"])
@pytest.mark.parametrize("where", PLACES)
def test_a_stopped_run_is_read_as_far_as_it_came_and_continued_in_every_place(where: str, kind: str, tmp_path: Path) -> None:
    place, (world, _) = PLACES[where](tmp_path), world_of(kind, STEPS)
    expected = enumerated(kind, STEPS, None)
    with pytest.raises(TooManyStatesError):
        enumerated(kind, STEPS, place, max_states=sum(expected.level_sizes[:2]) + 1)
    partial = open_dag(place, world=world)
    assert not partial.is_finished
    assert 0 <= partial.horizon < STEPS
    assert_same_dags(partial, expected, partial.horizon + 1)
    assert_same_dags(enumerated(kind, STEPS, place), expected)
    assert open_dag(place, world=world).is_finished
    assert [path.name for path in tmp_path.iterdir()] in ([], ["store"], ["store.zip"])


@pytest.mark.parametrize("where", PLACES)
def test_a_continued_run_expands_only_what_is_missing(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = PLACES[where](tmp_path)
    with counted_expansions(monkeypatch) as in_memory:
        enumerated("ice_rink", STEPS, None)
    with pytest.raises(TooManyStatesError):
        enumerated("ice_rink", STEPS, place, max_states=200)
    done = open_dag(place)
    n_done = sum(len(done.levels[t].expanded) for t in range(done.horizon + 1))
    with counted_expansions(monkeypatch) as continued:
        enumerated("ice_rink", STEPS, place)
    assert 0 < n_done == sum(in_memory) - sum(continued)


@pytest.mark.parametrize("is_finished", [True, False], ids=["finished", "unfinished"])
@pytest.mark.parametrize("where", PLACES)
def test_what_holds_something_else_is_refused_as_it_is_and_replaced_when_asked(
    where: str, is_finished: bool, tmp_path: Path
) -> None:
    place = PLACES[where](tmp_path)
    if is_finished:
        enumerated("ice_rink", STEPS, place)
    else:
        with pytest.raises(TooManyStatesError):
            enumerated("ice_rink", STEPS, place, max_states=200)
    before, n_levels = tree(tmp_path), open_dag(place).horizon + 1
    for kind, steps, options, message in (
        ("carousel", STEPS, {}, "differs in world"),
        ("ice_rink", STEPS + 1, {}, "differs in horizon.* there 4, here 5"),
        ("ice_rink", STEPS, {"precision": "float32"}, "differs in precision.* there 'float16', here 'float32'"),
    ):
        with pytest.raises(StoreMismatchError, match=message):
            enumerated(kind, steps, place, **options)
    assert tree(tmp_path) == before
    assert open_dag(place).horizon + 1 == n_levels
    expected = enumerated("carousel", 3, None)
    assert_same_dags(enumerated("carousel", 3, place, overwrite=True), expected)
    assert_same_dags(open_dag(place), expected)


def test_other_levels_of_the_same_world_are_not_taken_for_those_asked_for(tmp_path: Path) -> None:
    world, _ = world_of("leaps", STEPS)
    enumerate_dag(world, level_fct=step_of, store=tmp_path / "store", progress=False)
    for level_fct in (None, lambda state: 2 * state[0]):
        with pytest.raises(StoreMismatchError):
            enumerate_dag(world, level_fct=level_fct, store=tmp_path / "store", progress=False)


@pytest.mark.parametrize("content", ["empty", "unfinished"])
def test_a_read_only_store_object_is_an_error_that_says_so(content: str) -> None:
    store = MemoryStore()
    if content == "unfinished":
        with pytest.raises(TooManyStatesError):
            enumerated("ice_rink", STEPS, store, max_states=200)
    with pytest.raises(StoreError, match="read-only"):
        enumerated("ice_rink", STEPS, store.with_read_only(True))


@pytest.mark.parametrize("name", ["store", "store.zip.building"])
def test_a_file_where_a_folder_is_wanted_is_refused_and_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(StoreError, match=r"store"):
            enumerated("ice_rink", STEPS, tmp_path / name.removesuffix(".building"), overwrite=overwrite)
        assert tree(tmp_path) == {name: b"mine"}


# --- locks ------------------------------------------------------------------------------------------------------------

# Expands two blocks, then waits for a line.
WAITING = """
import sys
from empo_bi import GridWorld, enumerate_dag, load_world
plain, n_calls = GridWorld.expand, 0
def expand(*arguments):
    global n_calls
    n_calls += 1
    if n_calls == 3:
        print("waiting", flush=True)
        sys.stdin.readline()
    return plain(*arguments)
GridWorld.expand = expand
enumerate_dag(load_world("ice_rink", max_steps=4), store=sys.argv[1], progress=False)
"""


@pytest.mark.parametrize("name", ["store", "store.zip"])
def test_whatever_a_second_writer_wants_the_first_one_ends_undisturbed(name: str, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "here").mkdir()
    enumerated("ice_rink", STEPS, tmp_path / "whole" / name)
    store = tmp_path / "here" / name
    first = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert first.stdout is not None
    assert first.stdout.readline() == "waiting\n"
    try:
        for kind, overwrite in (("ice_rink", False), ("ice_rink", True), ("carousel", True)):
            with pytest.raises(StoreLockedError, match=rf"{name}: process {first.pid} on .* is writing there"):
                enumerated(kind, STEPS, store, overwrite=overwrite)
        with pytest.raises(StoreMismatchError, match="differs in world"):
            enumerated("carousel", STEPS, store)
        first.communicate("go on\n", timeout=120)
    finally:
        first.kill()
        first.wait()
    assert first.returncode == 0
    assert_same_trees(tmp_path / "here", tmp_path / "whole")


def test_of_many_writers_at_once_one_writes_and_the_others_are_told_or_use_what_it_wrote(tmp_path: Path) -> None:
    script = """
import sys, time
from empo_bi import StoreLockedError, enumerate_dag, load_world
world = load_world("ice_rink", max_steps=4)
print("ready", flush=True)
sys.stdin.readline()
n_refused = 0
while True:
    try:
        dag = enumerate_dag(world, store=sys.argv[1], progress=False)
        break
    except StoreLockedError:
        n_refused += 1
        time.sleep(0.01)
print(n_refused, dag.n_states, flush=True)
"""
    whole = enumerated("ice_rink", STEPS, tmp_path / "whole" / "store")
    command = [sys.executable, "-c", script, str(tmp_path / "here" / "store")]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment()}
    writers = [subprocess.Popen(command, **pipes) for _ in range(3)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    told = [writer.communicate(timeout=120)[0].split() for writer in writers]
    assert [int(n_states) for _, n_states in told] == [whole.n_states] * 3
    assert_same_trees(tmp_path / "here", tmp_path / "whole")


@pytest.mark.parametrize("name", ["store", "store.zip"])
def test_a_store_that_is_finished_between_looking_and_locking_is_used_and_leaves_no_lock(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, others = places.Place.for_writing, [lambda: enumerated("ice_rink", STEPS, tmp_path / name)]

    def for_writing(self: places.Place) -> Any:
        if others:
            others.pop()()
        return plain(self)

    monkeypatch.setattr(places.Place, "for_writing", for_writing)
    with counted_expansions(monkeypatch) as expanded:
        dag = enumerated("ice_rink", STEPS, tmp_path / name)
    assert sum(expanded) == sum(len(dag.levels[t].expanded) for t in range(STEPS + 1))  # by the other one only
    assert dag.is_finished
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_reader_who_comes_while_a_store_is_being_begun_is_told_that_there_is_nothing_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enumerated("ice_rink", STEPS, tmp_path / "whole")
    (tmp_path / "store").mkdir()
    plain = LocalStore.get

    async def get(self: LocalStore, key: str, *arguments: Any, **options: Any) -> Any:
        found = await plain(self, key, *arguments, **options)
        if key == "zarr.json":  # just now it was not there
            shutil.copy(tmp_path / "whole" / key, tmp_path / "store")
        return found

    monkeypatch.setattr(LocalStore, "get", get)
    with pytest.raises(StoreNotFoundError):
        open_dag(tmp_path / "store")


# --- temporary stores -------------------------------------------------------------------------------------------------


def test_many_temporary_stores_can_be_begun_at_once(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def begin_and_end() -> None:
        try:
            for _ in range(400):
                place = places.temporary_place(tmp_path)
                place.for_writing()
                assert place.folder is not None
                assert place.folder.is_dir()
                place.remove()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=begin_and_end) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert list(tmp_path.iterdir()) == []


def test_a_forked_copy_of_the_process_does_not_take_the_store_with_it(tmp_path: Path) -> None:
    script = """
import os, sys
from empo_bi import enumerate_dag, load_world
dag = enumerate_dag(load_world("ice_rink", max_steps=4), store=True, memory_limit="4GB", progress=False)
if os.fork() == 0:
    sys.exit()  # which runs all that is to be run at the end
os.wait()
assert dag.levels.place.folder.is_dir(), "gone with the copy"
assert len(os.listdir(os.environ["TMPDIR"])) == 2, os.listdir(os.environ["TMPDIR"])
"""
    found = run_python(script, env=environment(TMPDIR=str(tmp_path)))
    assert found.returncode == 0, found.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("end", ["pass", "sys.exit(3)", "raise ZeroDivisionError", "dag.close(); dag.close()", "del dag"])
def test_however_a_process_ends_its_temporary_store_goes(end: str, tmp_path: Path) -> None:
    script = f"""
import os, sys
from empo_bi import enumerate_dag, load_world
dag = enumerate_dag(load_world("ice_rink", max_steps=4), store=True, progress=False)
dag.prefetch(2)
dag.level(2)
assert len(os.listdir(os.environ["TMPDIR"])) == 2
print("made", flush=True)
{end}
"""
    found = run_python(script, env=environment(TMPDIR=str(tmp_path)))
    assert found.stdout == "made\n", found.stderr
    assert list(tmp_path.iterdir()) == []


def test_worker_processes_leave_a_temporary_store_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("empo_bi.dag.python_explorer.BLOCK_PAIRS", 4)  # so that there is work for two
    with enumerated("leaps", STEPS, True, workers=2) as dag:
        assert_same_dags(dag, enumerated("leaps", STEPS, None))
        assert len([path for path in tmp_path.iterdir() if path.is_dir() and path.name.startswith("empo_bi-dag-")]) == 1
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("empo_bi-dag-")] == []


def test_the_room_for_a_temporary_store_is_looked_for_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1_000_000})())
    with counted_expansions(monkeypatch) as expanded, pytest.raises(StoreError, match="1 MB free"):
        enumerate_dag(load_world("ice_rink", max_steps=4), store=True, progress=False)
    assert expanded == []
    assert list(tmp_path.iterdir()) == []
