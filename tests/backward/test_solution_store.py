"""Folders with solutions: damage is named and never used, disks may be small, writers many, nobody's files are touched."""

from __future__ import annotations

import contextlib
import gc
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
from backward.test_one_sweep import (
    BARELY,
    PARAMS,
    Cells,
    LateGoals,
    LateRing,
    LeapingRing,
    Ring,
    at_rest,
    everybody_plays_1,
    negative_gaps,
)
from store.test_damage import change_json, flip, truncate
from store.test_small_disks import Disk, Pretended, Tmpfs, both_kinds, pages_of, way_to_mount
from store_tools import assert_same_trees, counted_expansions, environment, step_of, tree

from empo_bi import (
    DamagedStoreError,
    EmpoError,
    GoalError,
    Params,
    ReachCellGoal,
    Solution,
    StoreError,
    StoreLockedError,
    StoreMismatchError,
    TabularGoalGenerator,
    compute_human_policy_prior,
    compute_robot_policy,
    enumerate_dag,
    load_world,
    solve,
)
from empo_bi.store import location as places
from empo_bi.store.solution_store import SolutionStore
from empo_bi.store.solved_levels import ARRAYS
from empo_bi.sweep import phases

STEPS = 4


def world(name: str = "ice_rink", steps: int = STEPS) -> Any:
    return load_world(name, max_steps=steps)


def solved(out: Any, params: Any = PARAMS, **options: Any) -> Any:
    return solve(options.pop("world", None) or world(), params, out=out, progress=False, **options)


def folders(out: Path) -> list[Path]:
    return sorted(path for path in out.glob("solution-*") if path.is_dir())


def levels_of(folder: Path) -> dict[tuple[int, str], bytes]:
    """All arrays of a store, as an independent reader sees them."""
    root = zarr.open_group(folder, mode="r")
    found = {}
    for group in sorted(root.group_keys()):
        assert group.startswith("level_"), group
        for name, array in root[group].arrays():  # type: ignore[union-attr]
            found[int(group.removeprefix("level_")), name] = np.asarray(array[...]).tobytes()
    return found


def stop_after(n: int) -> Callable[[int, int], None]:
    """A progress callback that stops the work when so many states are done; what was solved until then is committed."""

    def callback(done: int, total: int) -> None:
        if done == n:
            raise InterruptedError("enough for today")

    return callback


def interrupted(out: Path, *, level: int = 2) -> None:
    """Leave a folder with levels down to ``level``, as a stopped sweep leaves it."""
    plain = phases.RobotPhase.run

    def run(self: Any, work: Any, *arguments: Any) -> None:
        if work.t < level:
            raise InterruptedError
        plain(self, work, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phases.RobotPhase, "run", run)
        with pytest.raises(InterruptedError):
            solved(out)
    (folder,) = folders(out)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == [
        f"carry_{level:05}", *(f"level_{t:05}" for t in range(level, STEPS + 1))
    ]  # fmt: skip


@contextlib.contextmanager
def nothing_is_computed() -> Iterator[None]:
    def forbidden(*_: Any) -> Any:
        raise AssertionError("this was done before")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phases.HumanPhase, "run", forbidden)
        patch.setattr(phases.RobotPhase, "run", forbidden)
        yield


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders that nobody touches."""
    folder = tmp_path_factory.mktemp("wholes")
    for name, compression in (("compressed", True), ("plain", False)):
        solved(folder / name / "out", compression=compression).close()
    return {name: folder / name / "out" for name in ("compressed", "plain")}


@pytest.fixture
def copy(wholes: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(wholes["compressed"], tmp_path / "out"))


@pytest.fixture(scope="module")
def expected() -> Solution:
    found: Solution = solved(None)
    return found


# --- damage -----------------------------------------------------------------------------------------------------------


def chunk(out: Path, name: str, group: str = "level_00002") -> Path:
    (folder,) = folders(out)
    return next(path for path in sorted((folder / group / name / "c").rglob("*")) if path.is_file())


def metadata(out: Path, name: str) -> Path:
    return folders(out)[0] / name / "zarr.json"


DAMAGE: dict[str, tuple[str, Callable[[Path], Any], str]] = {
    "garbage for metadata": ("vr", lambda out: metadata(out, "level_00002/vr").write_text("{"), "cannot be read"),
    "another shape": (
        "vr",
        lambda out: change_json(metadata(out, "level_00002/vr"), lambda about: about.update(shape=[about["shape"][0] - 1])),
        r"found float64 \[\d+\], not float64 \[\d+\]",
    ),
    "the array of another level": (
        "xh",
        lambda out: shutil.copytree(
            metadata(out, "level_00003/xh").parent, metadata(out, "level_00002/xh").parent, dirs_exist_ok=True
        ),
        r"found float64 \[\d+, 1\], not float64 \[\d+, 1\]",
    ),
    "another array of the same level": (
        "ve",
        lambda out: shutil.copytree(
            metadata(out, "level_00002/vh").parent, metadata(out, "level_00002/ve").parent, dirs_exist_ok=True
        ),
        "its checksum differs",
    ),
}


@pytest.mark.parametrize(
    ("case", "which"), [*((case, "compressed") for case in DAMAGE), *((c, "plain") for c in list(DAMAGE)[:1])]
)
def test_damage_is_named_by_level_and_array_and_everything_else_stays_readable(
    case: str, which: str, wholes: dict[str, Path], tmp_path: Path, expected: Solution
) -> None:
    copy = Path(shutil.copytree(wholes[which], tmp_path / "out"))
    array, damage, message = DAMAGE[case]
    damage(copy)
    with nothing_is_computed():
        found = solved(copy)
    for t in range(STEPS + 1):
        for name in ARRAYS:
            if (t, name) == (2, array):
                with pytest.raises(
                    DamagedStoreError, match=rf"solution-\w+: level 2, array '{array}': {message}.*overwrite"
                ):
                    found.results.get(t, name)
            else:
                assert np.array_equal(found.results.get(t, name), expected.results.get(t, name)), (t, name)
    before = tree(copy)
    with nothing_is_computed():
        solved(copy)
    assert tree(copy) == before  # nobody repairs anything in secret
    assert at_rest(solved(copy, overwrite=True)) == at_rest(expected)
    with nothing_is_computed():
        assert at_rest(solved(copy)) == at_rest(expected)


def test_what_is_computed_from_damaged_values_is_refused_as_well(copy: Path) -> None:
    flip(chunk(copy, "vh", "level_00001"))
    flip(chunk(copy, "qr", "level_00001"))
    found = solved(copy)
    state = found.dag.states(1)[0]
    for ask in (
        lambda: found.values.Vh_m[1],
        lambda: found.Vh[state][found.humans[0]],
        lambda: found.pi_r[1],
        lambda: found.robot_policy(state),
        lambda: found.at(state),
        lambda: found.pi_h[0],  # which follows from the values of level 1
        lambda: found.prior(found.world.initial_state(), found.humans[0]),
    ):
        with pytest.raises(DamagedStoreError, match=r"level 1, array '(vh|qr)'"):
            ask()


RECORDS: dict[str, str] = {
    "level_00002/zarr.json": "the metadata of level 2: its checksum differs",
    "level_00000/zarr.json": "the metadata of level 0: its checksum differs",
    "zarr.json": "the metadata of the store: its checksum differs",
}


def change_a_number(path: Path) -> None:
    """In a record, so that it is JSON as before."""

    def change(content: Any) -> None:
        record = content["attributes"]["empo_bi"]
        if "arrays" in record:
            next(iter(record["arrays"].values()))["shape"][0] += 1
        else:
            record["horizon"] += 1

    change_json(path, change)


@pytest.mark.parametrize("record", RECORDS)
def test_a_changed_marker_or_manifest_is_refused_and_nothing_is_touched(record: str, copy: Path) -> None:
    change_a_number(folders(copy)[0] / record)
    before = tree(copy)
    for _ in range(2):
        with pytest.raises(DamagedStoreError, match=RECORDS[record]):
            solved(copy)
        assert tree(copy) == before
    assert solved(copy, overwrite=True).values.V_r[0].shape == (1,)


@pytest.mark.parametrize("record", RECORDS)
def test_garbage_in_a_marker_or_manifest_is_refused_and_nothing_is_touched(record: str, copy: Path) -> None:
    (folders(copy)[0] / record).write_text('{"zarr_format": 3')
    before = tree(copy)
    with pytest.raises(DamagedStoreError, match=f"{RECORDS[record].split(':')[0]} cannot be read"):
        solved(copy)
    assert tree(copy) == before


@pytest.mark.parametrize("level", [0, 2, STEPS])
def test_a_missing_marker_costs_none_of_the_levels_that_are_there(level: int, copy: Path, expected: Solution) -> None:
    """It looks like an interrupted sweep, but nothing was carried; whoever puts the marker back has everything again."""
    marker = folders(copy)[0] / f"level_{level:05}" / "zarr.json"
    content = marker.read_bytes()
    marker.unlink()
    before = tree(copy)
    with pytest.raises(DamagedStoreError, match=f"carry_{level + 1:05}|level {level}"):
        solved(copy)
    assert tree(copy) == before
    marker.write_bytes(content)
    assert at_rest(solved(copy)) == at_rest(expected)


def test_levels_that_changed_places_are_noticed(copy: Path) -> None:
    """Their arrays and markers are sound, each for itself."""
    one, other = (folders(copy)[0] / f"level_{t:05}" for t in (2, 3))
    one.rename(one.with_name("aside"))
    other.rename(one)
    one.with_name("aside").rename(other)
    with pytest.raises(DamagedStoreError, match=r"level [23]"):
        solved(copy).values.V_r[2]


def test_something_else_in_the_place_of_a_solution_is_refused_and_left_alone(copy: Path) -> None:
    (folder,) = folders(copy)
    shutil.rmtree(folder)
    shutil.copytree(copy / "dag", folder)
    before = tree(folder)
    for overwrite in (False, True):
        with pytest.raises(StoreMismatchError, match=r"empo_bi DAG|is not a solution"):
            solved(copy, overwrite=overwrite)
    assert tree(folder) == before


def test_damage_to_the_dag_stops_a_sweep_which_goes_on_when_that_is_mended(copy: Path, expected: Solution) -> None:
    path = next(path for path in sorted((copy / "dag/level_00002/succ/c").rglob("*")) if path.is_file())
    content = path.read_bytes()
    flip(path)
    other = PARAMS.replace(zeta=2.5)
    with pytest.raises(DamagedStoreError, match=r"dag: level 2, array 'succ'"):
        solved(copy, other)
    assert len(list(copy.glob("solution-*/level_00002"))) == 1  # that of the first one, long since
    path.write_bytes(content)
    assert at_rest(solved(copy, other)) == at_rest(solved(None, other))
    assert at_rest(solved(copy)) == at_rest(expected)


CARRIED = {
    "a truncated chunk": (lambda out: truncate(chunk(out, "human", "carry_00002")), "array 'human': cannot be read"),
    "a flipped byte": (lambda out: flip(chunk(out, "robot", "carry_00002")), "array 'robot': cannot be read"),
    "a missing chunk": (lambda out: chunk(out, "effective", "carry_00002").unlink(), "array 'effective': its checksum"),
    "a missing array": (lambda out: shutil.rmtree(metadata(out, "carry_00002/robot").parent), "array 'robot': is missing"),
    "a missing group": (lambda out: shutil.rmtree(metadata(out, "carry_00002").parent), "is missing"),
    "a missing record": (lambda out: metadata(out, "carry_00002").unlink(), "is missing"),
}


@pytest.mark.parametrize("case", CARRIED)
def test_damage_to_what_is_carried_is_named_and_an_interrupted_sweep_does_not_go_on_with_it(
    case: str, tmp_path: Path, expected: Solution
) -> None:
    interrupted(tmp_path / "out")
    sound = Path(shutil.copytree(tmp_path / "out", tmp_path / "sound"))
    damage, message = CARRIED[case]
    damage(tmp_path / "out")
    before = tree(tmp_path / "out")
    with nothing_is_computed(), pytest.raises(DamagedStoreError, match=f"group carry_00002.*{message}"):
        solved(tmp_path / "out")
    assert tree(tmp_path / "out") == before
    again = {"overwrite": True} if case == "a missing group" else {"out": sound}  # either way out will do
    assert at_rest(solved(**{"out": tmp_path / "out", **again})) == at_rest(expected)


@pytest.mark.parametrize("state", ["finished", "interrupted"])
def test_whatever_byte_is_changed_a_solve_gives_the_original_or_an_error(
    state: str, tmp_path: Path, expected: Solution
) -> None:
    """Never other numbers, and never an exception that is not ours."""
    original, out = tmp_path / "original", tmp_path / "out"
    solved(original) if state == "finished" else interrupted(original)
    files = sorted(path.relative_to(original) for path in folders(original)[0].rglob("*") if path.is_file())
    rng, refused, numbers = random.Random(5), 0, at_rest(expected)
    for _ in range(18):
        shutil.copytree(original, out)
        name = rng.choice(files)
        changed = bytearray((out / name).read_bytes())
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        (out / name).write_bytes(bytes(changed))
        try:
            assert at_rest(solved(out)) == numbers, name
        except EmpoError:
            refused += 1
        shutil.rmtree(out)
    assert refused > 4


# --- small disks ------------------------------------------------------------------------------------------------------


def tell(story: Callable[[Disk, Path], None], kind: str) -> None:
    """Run a story in a process of its own, which mounts its disks where nobody else sees them."""
    way = way_to_mount() if kind == "real" else None
    disk = "Pretended" if way is None else "Tmpfs"
    script = f"import backward.test_solution_store as t; t.begin(t.{story.__name__}, t.{disk})"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        command = [*(way or ()), sys.executable, "-c", script, folder]
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment())
    assert found.returncode == 0, found.stderr


def begin(story: Callable[[Disk, Path], None], kind: type[Disk]) -> None:
    folder = Path(sys.argv[1])
    (folder / "disk").mkdir()
    story(kind(folder / "disk"), folder / "elsewhere")


def fill(disk: Disk, elsewhere: Path, limit: Callable[[float], None], release: Callable[[], None], params: Any) -> None:
    """Run into the limit at several moments, twice each, and go on when there is room."""
    out = disk.folder / "out"
    for part in (0.3, 0.8):
        shutil.copytree(elsewhere / "out" / "dag", out / "dag")
        limit(part)
        n_before = 0
        for _ in range(2):  # trying again is no use, but does no harm
            with pytest.raises(StoreError, match="the disk is full"):
                solved(out, params)
            n_levels = len(list(out.glob("solution-*/level_*/zarr.json")))
            assert n_levels >= n_before
            n_before = n_levels
            assert not list(out.glob("*.lock"))
        for folder in folders(out):
            with contextlib.suppress(StoreError):  # of some there is not even the manifest
                results = SolutionStore.open(places.place_of(folder))
                whole = SolutionStore.open(places.place_of(elsewhere / "out" / folder.name))
                for t in range(results.next_level + 1, results.manifest["horizon"] + 1):
                    assert all(np.array_equal(results.get(t, name), whole.get(t, name)) for name in ARRAYS)
        release()
        solved(out, params)
        assert_same_trees(disk.folder, elsewhere)
        shutil.rmtree(out)


def too_little_room(disk: Disk, elsewhere: Path) -> None:
    solved(elsewhere / "out")
    dag, solution = pages_of(elsewhere / "out" / "dag"), pages_of(folders(elsewhere / "out")[0])
    fill(disk, elsewhere, lambda part: disk.resize(int(dag + part * solution)), lambda: disk.resize(1 << 26), PARAMS)


def too_many_files(disk: Disk, elsewhere: Path) -> None:
    params = [PARAMS, PARAMS.replace(zeta=2.5)]
    solved(elsewhere / "out", params)
    dag, everything = len(tree(elsewhere / "out" / "dag")), len(tree(elsewhere / "out"))
    fill(
        disk,
        elsewhere,
        lambda part: disk.limit_files(int(dag + part * (everything - dag))),
        lambda: disk.limit_files(1 << 20),
        params,
    )


@both_kinds
@pytest.mark.parametrize("story", [too_little_room, too_many_files])
def test_a_full_disk_costs_no_committed_level_and_the_solve_goes_on_when_there_is_room(
    story: Callable[[Disk, Path], None], kind: str
) -> None:
    tell(story, kind)


def no_room_for_temporary_folders(disk: Disk, elsewhere: Path) -> None:
    tempfile.tempdir = str(disk.folder)
    if isinstance(disk, Tmpfs):
        disk.resize(1_000_000)
        with pytest.raises(StoreError, match="1 MB free, a temporary store wants 200 MB"):
            solved(True)
        disk.resize(1 << 26)
    places.ROOM_NEEDED = 0
    with solved(True):
        needed = pages_of(disk.folder)
        assert len(list(disk.folder.iterdir())) == 4  # two folders, each with its lock
    assert list(disk.folder.iterdir()) == []
    there = world()
    for part, attempt in (
        (0.1, lambda: solved(True)),  # no room for the DAG
        (0.8, lambda: solved(True)),
        (0.8, lambda: solved(True, [PARAMS, PARAMS.replace(zeta=2.5)])),
        (0.1, lambda: sliced(None, there)),  # type: ignore[arg-type]
    ):
        disk.resize(int(part * needed))
        with pytest.raises(StoreError, match="the disk is full"):
            attempt()
        gc.collect()
        assert list(disk.folder.iterdir()) == []


@both_kinds
def test_temporary_folders_that_outgrow_their_disk_are_removed(kind: str) -> None:
    tell(no_room_for_temporary_folders, kind)


def sliced(cache: Path, there: Any, **options: Any) -> Any:
    """Phase 1 with its slices in a folder. Returns the prior and its values."""
    options = {"use_disk_slicing": True, "disk_cache_dir": cache, "quiet": True, **options}
    return compute_human_policy_prior(there, there.human_agent_indices, return_Vh=True, **options)


def read_only(disk: Disk, elsewhere: Path) -> None:
    out, cache, archive = (disk.folder / name for name in ("out", "cache", "archive"))
    expected = at_rest(solved(out))
    _, values = sliced(cache, world())
    before_values = values[world().initial_state()]
    interrupted(disk.folder / "interrupted")
    sliced(elsewhere, world(), archive_dir=archive)
    disk.make_read_only()
    before = tree(disk.folder)
    with nothing_is_computed():  # what is finished is used, by whoever may read it
        assert at_rest(solved(out)) == expected
        assert sliced(cache, world())[1][world().initial_state()] == before_values
    for attempt in (
        lambda: solved(out, PARAMS.replace(zeta=2.5)),
        lambda: solved(out, overwrite=True),
        lambda: solved(disk.folder / "interrupted"),
        lambda: solved(disk.folder / "deep" / "new"),
        lambda: sliced(cache, world(), beta_h=2.0),
        lambda: sliced(cache, world(steps=3)),
        lambda: sliced(disk.folder / "new", world()),
        lambda: sliced(elsewhere, world(), archive_dir=disk.folder / "new"),
        lambda: sliced(elsewhere, world(), beta_h=2.0, archive_dir=archive),
    ):
        with pytest.raises(StoreError, match=r"cannot be written: no permission .*Choose a place that you may write to"):
            attempt()
    assert tree(disk.folder) == before


@both_kinds
def test_a_read_only_disk_is_told_and_what_is_on_it_can_be_used(kind: str) -> None:
    tell(read_only, kind)


# --- several writers --------------------------------------------------------------------------------------------------

# Solves until the second level, then waits for a line.
WAITING = """
import sys
from empo_bi import Params, load_world, solve
from empo_bi.sweep import phases
plain, has_waited = phases.RobotPhase.run, False
def run(self, work, *arguments):
    global has_waited
    if work.t == 2 and not has_waited:
        has_waited = True
        print("waiting", flush=True)
        sys.stdin.readline()
    plain(self, work, *arguments)
phases.RobotPhase.run = run
solve(load_world("ice_rink", max_steps=4), Params(**eval(sys.argv[2])), out=sys.argv[1], progress=False)
"""
GIVEN = {"beta_h": 7.0, "gamma_h": 0.97, "gamma_r": 0.93, "zeta": 1.7, "xi": 1.2, "eta": 1.1}  # PARAMS


@contextlib.contextmanager
def somebody_solving(out: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process in the middle of its work, which ends well when the block does."""
    assert Params(**GIVEN) == PARAMS
    first = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(out), repr(GIVEN)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "waiting\n"
        yield first
        _, said = first.communicate("go on\n", timeout=120)
        assert first.returncode == 0, said
    finally:
        first.kill()
        first.wait()


def test_a_second_writer_of_the_same_solution_is_told_who_is_there_and_the_first_one_ends_undisturbed(
    tmp_path: Path,
) -> None:
    solved(tmp_path / "whole" / "out")
    out = tmp_path / "here" / "out"
    with somebody_solving(out) as first:
        for params in (PARAMS, [PARAMS.replace(zeta=2.5), PARAMS]):
            with pytest.raises(StoreLockedError, match=rf"solution-\w+: process {first.pid} on .* is writing there"):
                solved(out, params)
        for name in {path.name for path in folders(out)} - {path.name for path in folders(tmp_path / "whole" / "out")}:
            shutil.rmtree(out / name)  # what was begun of the other set
    assert_same_trees(tmp_path / "here", tmp_path / "whole")


def test_somebody_who_replaces_everything_does_not_pull_the_dag_from_under_a_writer(tmp_path: Path) -> None:
    solved(tmp_path / "whole" / "out")
    out = tmp_path / "here" / "out"
    with somebody_solving(out) as first:
        before = {path: path.stat().st_mtime_ns for path in (out / "dag").rglob("*")}
        with pytest.raises(StoreLockedError, match=rf"process {first.pid}"):
            solved(out, overwrite=True)
        assert {path: path.stat().st_mtime_ns for path in (out / "dag").rglob("*")} == before
    assert_same_trees(tmp_path / "here", tmp_path / "whole")


def test_other_parameters_can_be_solved_beside_a_writer(tmp_path: Path) -> None:
    other = PARAMS.replace(zeta=2.5)
    solved(tmp_path / "whole" / "out", [PARAMS, other])
    with somebody_solving(tmp_path / "here" / "out"):
        assert at_rest(solved(tmp_path / "here" / "out", other)) == at_rest(solved(None, other))
    assert_same_trees(tmp_path / "here", tmp_path / "whole")


def test_of_two_writers_at_once_one_writes_and_the_other_is_told_or_uses_what_it_wrote(tmp_path: Path) -> None:
    script = """
import sys, time
from empo_bi import Params, StoreLockedError, load_world, solve
world = load_world("ice_rink", max_steps=4)
solve(world, progress=False)
print("ready", flush=True)
sys.stdin.readline()
while True:
    try:
        solution = solve(world, Params(**eval(sys.argv[2])), out=sys.argv[1], progress=False)
        break
    except StoreLockedError:
        time.sleep(0.01)
print(repr(float(solution.values.V_r[0][0])), flush=True)
"""
    whole = solved(tmp_path / "whole" / "out")
    command = [sys.executable, "-c", script, str(tmp_path / "here" / "out"), repr(GIVEN)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment()}
    writers = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    told = [writer.communicate(timeout=120)[0].strip() for writer in writers]
    assert told == [repr(float(whole.values.V_r[0][0]))] * 2
    assert_same_trees(tmp_path / "here", tmp_path / "whole")


def test_an_error_in_the_middle_lets_go_of_all_locks(tmp_path: Path) -> None:
    out = tmp_path / "out"
    interrupted(out)
    assert not list(out.glob("*.lock"))
    second = Path(solved(out, PARAMS.replace(zeta=3.0)).results.place.name)
    (second / "notes.txt").write_text("mine")
    shutil.rmtree(second / "level_00000")
    with pytest.raises(StoreMismatchError, match=r"notes\.txt"):
        solved(out, [PARAMS, PARAMS.replace(zeta=3.0), PARAMS.replace(zeta=4.0)])
    assert not list(out.glob("*.lock"))
    assert at_rest(solved(out)) == at_rest(solved(None))


# --- whose files these are --------------------------------------------------------------------------------------------


def test_what_others_keep_in_the_folder_is_never_touched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = ("notes.txt", "level_00000/data.bin", "zarr.json", "solution.partial", "solution-of-mine/zarr.json", "dag.txt")
    for name in names:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text("mine")
    interrupted_first = PARAMS.replace(zeta=3.0)
    with pytest.raises(GoalError):
        solved(out, interrupted_first, possible_goal_generator=NoGoals())
    for options in ({}, {"overwrite": True}, {"phase_2": False}):
        solved(out, **options).close()
        assert {name: (out / name).read_text() for name in names} == dict.fromkeys(names, "mine")
    for archive in (out, out / "archive"):
        sliced(out, world(), archive_dir=archive)
    assert {name: (out / name).read_text() for name in names} == dict.fromkeys(names, "mine")


@pytest.mark.parametrize("name", ["notes.txt", "thesis.partial", "level_of_detail", "finished", "carry_on"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_folder_with_somebody_elses_files_is_no_place_for_a_solution(name: str, overwrite: bool, tmp_path: Path) -> None:
    out = tmp_path / "out"
    interrupted(out)
    (folder,) = folders(out)
    (folder / name).write_text("mine")
    before = tree(out / folder.name)
    with pytest.raises(StoreMismatchError, match=rf"is not a solution; it contains \['{name}'\]"):
        solved(out, overwrite=overwrite)
    assert tree(out / folder.name) == before


def test_a_folder_called_dag_that_is_none_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "dag").mkdir()
    (tmp_path / "dag" / "graph.dot").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(StoreMismatchError, match="not a slice store"):
            solved(tmp_path, overwrite=overwrite)
    assert tree(tmp_path) == {"dag": None, "dag/graph.dot": b"mine"}


@pytest.mark.parametrize("name", ["out", "out/dag"])
def test_a_file_in_the_place_of_a_folder_is_told_and_left_alone(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(OSError, match=r"is a file|File exists"):
            solved(tmp_path / "out", overwrite=overwrite)
    assert (tmp_path / name).read_text() == "mine"


# --- overwrite --------------------------------------------------------------------------------------------------------


def test_overwrite_makes_this_solution_anew_and_leaves_others_usable(tmp_path: Path, expected: Solution) -> None:
    out, other = tmp_path / "out", PARAMS.replace(zeta=2.5)
    mine, theirs = (Path(solution.results.place.name) for solution in solved(out, [PARAMS, other]))
    beside = at_rest(solved(out, other))
    before = tree(out)
    changed_at = {path: path.stat().st_mtime_ns for path in out.rglob("zarr.json")}
    assert at_rest(solved(out, overwrite=True)) == at_rest(expected)
    assert tree(out) == before
    changed = {path for path, then in changed_at.items() if path.stat().st_mtime_ns != then}
    assert mine / "zarr.json" in changed
    assert mine / "level_00000" / "vr" / "zarr.json" in changed
    assert not [path for path in changed if theirs in path.parents]
    with nothing_is_computed():
        assert at_rest(solved(out, other)) == beside


def test_overwrite_replaces_the_dag_of_another_world(tmp_path: Path) -> None:
    out = tmp_path / "out"
    solved(out, world=world("carousel"))
    before = tree(out)
    with pytest.raises(StoreMismatchError, match="differs in world"):
        solved(out)
    assert tree(out) == before
    assert at_rest(solved(out, overwrite=True)) == at_rest(solved(None))


# --- temporary folders ------------------------------------------------------------------------------------------------


class NoGoals:
    def generate(self, state: Any, human: int) -> Iterator[Any]:
        return iter(())


class GoalsUntil:
    """Goals everywhere but on the last levels, where asking is an error."""

    def __init__(self, there: Any, error: BaseException) -> None:
        self._plain, self._error = there.possible_goal_generator, error

    def generate(self, state: Any, human: int) -> Iterator[Any]:
        if state[0] >= 2:
            raise self._error
        return self._plain.generate(state, human)  # type: ignore[no-any-return]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """What is in the system's place for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return lambda: sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("empo_bi"))


def test_temporary_folders_go_when_the_solution_is_closed(temporary: Callable[[], list[str]]) -> None:
    with solved(True) as solution:
        assert len([name for name in temporary() if not name.endswith(".lock")]) == 2
        assert solution.values.V_r[0].shape == (1,)
    assert temporary() == []
    solution.close()


def test_temporary_folders_go_with_the_last_user_of_any_part(temporary: Callable[[], list[str]]) -> None:
    parts = {
        "solution": lambda solution: solution,
        "prior": lambda solution: solution.prior,
        "chain": lambda solution: solution.markov_chain,
        "Vhe": lambda solution: solution.Vhe,
    }
    for name, part_of in parts.items():
        part = part_of(solved(True))
        gc.collect()
        assert temporary() != [], name
        del part
        gc.collect()
        assert temporary() == [], name


def test_of_several_solutions_one_that_is_closed_takes_nothing_from_the_others(temporary: Callable[[], list[str]]) -> None:
    others = [PARAMS.replace(zeta=2.5), PARAMS.replace(beta_h=2.0)]
    expected = [at_rest(solved(None, params)) for params in others]
    first, *rest = solved(True, [PARAMS, *others])
    first.close()
    assert len([name for name in temporary() if not name.endswith(".lock")]) == 3
    assert [at_rest(solution) for solution in rest] == expected
    for solution in rest:
        assert solution.pi_h[0].shape[0] == 1  # for which the DAG is needed, which they share
        solution.close()
    assert temporary() == []


ERRORS: dict[str, tuple[type[BaseException], Callable[[Any], Any]]] = {
    "no goals": (GoalError, lambda there: NoGoals()),
    "an error of the goals' own": (ZeroDivisionError, lambda there: GoalsUntil(there, ZeroDivisionError())),
    "an interrupt": (KeyboardInterrupt, lambda there: GoalsUntil(there, KeyboardInterrupt())),
}


@pytest.mark.parametrize("case", ERRORS)
def test_temporary_folders_go_after_an_error(case: str, temporary: Callable[[], list[str]]) -> None:
    error, generator_of = ERRORS[case]
    there = world()
    for attempt in (
        lambda: solved(True, world=there, possible_goal_generator=generator_of(there)),
        lambda: solved(True, [PARAMS, PARAMS.replace(zeta=2.5)], world=there, possible_goal_generator=generator_of(there)),
        lambda: sliced(None, there, possible_goal_generator=generator_of(there)),  # type: ignore[arg-type]
    ):
        with pytest.raises(error):
            attempt()
        assert temporary() == []


def test_temporary_folders_go_after_an_error_in_the_middle_of_the_sweep(temporary: Callable[[], list[str]]) -> None:
    there = world()
    n_states = enumerate_dag(there, progress=False).n_states
    for n in (1, n_states // 2, n_states):
        with pytest.raises(InterruptedError):
            sliced(None, there, progress_callback=stop_after(n))  # type: ignore[arg-type]
        assert temporary() == []


def test_temporary_slices_go_with_the_prior_and_the_world(temporary: Callable[[], list[str]]) -> None:
    there = world()
    prior, values = sliced(None, there)  # type: ignore[arg-type]
    assert len([name for name in temporary() if not name.endswith(".lock")]) == 2
    del prior
    gc.collect()
    assert values[there.initial_state()] != {}
    del values, there
    gc.collect()
    assert temporary() == []


def test_a_second_run_does_not_pile_up_temporary_slices(temporary: Callable[[], list[str]]) -> None:
    there = world()
    for _ in range(3):
        prior, values = sliced(None, there)  # type: ignore[arg-type]
        gc.collect()
        assert len([name for name in temporary() if not name.endswith(".lock")]) == 2
    assert prior(there.initial_state(), there.human_agent_indices[0]).sum() == pytest.approx(1, rel=1e-3)
    assert values[there.initial_state()] != {}


# --- a DAG that was given ---------------------------------------------------------------------------------------------


def test_a_dag_that_was_given_stays_its_owners(tmp_path: Path) -> None:
    there = world()
    with enumerate_dag(there, store=tmp_path / "dag", precision="exact", progress=False) as dag:
        with pytest.raises(GoalError):
            solved(None, world=there, dag=dag, possible_goal_generator=NoGoals())
        assert dag.is_usable
        first = solved(None, world=there, dag=dag)
        first.close()
        assert dag.is_usable
        assert dag.level(1).succ_K.size > 0
        assert at_rest(solved(None, PARAMS.replace(zeta=2.5), world=there, dag=dag)) == at_rest(
            solved(None, PARAMS.replace(zeta=2.5))
        )


def test_a_phase_2_that_fails_leaves_what_phase_1_returned_usable() -> None:
    there = world()
    humans, robots = there.human_agent_indices, there.robot_agent_indices
    prior = compute_human_policy_prior(there, humans, use_disk_slicing=True, quiet=True)
    before = prior(there.initial_state(), humans[0]).tolist()

    def stop(done: int, total: int) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        compute_robot_policy(there, humans, robots, None, prior, use_disk_slicing=True, progress_callback=stop, quiet=True)
    state = there.transition_probabilities(there.initial_state(), [0] * len(there.agents))[0][1]
    assert prior(there.initial_state(), humans[0]).tolist() == before
    assert len(prior(state, humans[0])) == there.action_space.n


def test_the_dag_of_another_world_is_refused() -> None:
    script = """
from empo_bi import enumerate_dag, load_world, solve
dag = enumerate_dag(load_world("carousel", max_steps=4), precision="exact", progress=False)
try:
    solve(load_world("ice_rink", max_steps=4), dag=dag, progress=False)
except ValueError as error:
    print("refused:", error)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=environment())
    assert (found.returncode, found.stdout[:8]) == (0, "refused:"), found.stderr


# --- another question, another folder ---------------------------------------------------------------------------------


def generators(there: Any) -> dict[str, Any]:
    (human,) = there.human_agent_indices
    cells = [ReachCellGoal(there, human, (x, y)) for x in (1, 2, 3) for y in (1, 2, 3)]
    return {
        "goals": TabularGoalGenerator(cells),
        "weights": TabularGoalGenerator(cells, [1.0] * 8 + [2.0]),
        "fewer": TabularGoalGenerator(cells[::-1]),
    }


def test_every_change_of_the_question_leads_to_a_folder_of_its_own_beside_the_same_dag(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, out = world(steps=2), tmp_path / "out"
    questions: list[dict[str, Any]] = [
        {},
        {"params": PARAMS.replace(beta_h=2.0)},
        {"params": PARAMS.replace(gamma_h=0.5)},
        {"params": PARAMS.replace(gamma_r=0.5)},
        {"params": PARAMS.replace(terminal_Vr=-1.0)},
        {"params": PARAMS.replace(optimistic=True)},
        {"params": PARAMS.replace(eta=2.0)},
        {"precision": "float64"},
        {"phase_2": False},
        {"robot_agent_indices": []},
        {"human_agent_indices": [1], "robot_agent_indices": [0], "possible_goal_generator": generators(there)["goals"]},
        *({"possible_goal_generator": generator} for generator in generators(there).values()),
    ]
    solved(out, Params(zeta=1.9), world=there)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    with counted_expansions(monkeypatch) as expanded:
        for n, question in enumerate(questions):
            found = solved(out, world=there, **question)
            assert len(folders(out)) == n + 2, question
            names = ("vh",) if question.get("phase_2") is False else tuple(ARRAYS)
            in_memory = solved(None, world=there, dag=found.dag, **question)
            assert at_rest(found, names) == at_rest(in_memory, names), question
    assert expanded == []
    after = {path: path.stat().st_mtime_ns for path in before}
    assert after == before
    with nothing_is_computed():
        for question in questions:
            solved(out, world=there, **question)


def test_the_same_question_in_other_words_leads_to_the_same_folder(tmp_path: Path) -> None:
    solved(tmp_path, Params(gamma_h=0.5, zeta=2))
    with nothing_is_computed():
        solved(tmp_path, Params(rho_h=float(-np.log(0.5)), gamma_r=1.0, zeta=2.0), compression=False)
        solved(str(tmp_path), Params(gamma_h=0.5, zeta=2), workers=2, memory_limit="4GB")


def test_goals_in_a_world_file_are_no_part_of_its_dag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = load_world("ice_rink", max_steps=STEPS, possible_goals=["1,1", "1,1, 3,3"])
    solved(tmp_path)
    with counted_expansions(monkeypatch) as expanded:
        found = solved(tmp_path, world=other)
    assert expanded == []
    assert len(folders(tmp_path)) == 2
    assert at_rest(found) == at_rest(solved(None, world=other))


def test_what_is_finished_stays_when_another_set_of_a_list_needs_wider_tables(tmp_path: Path) -> None:
    late = {"world": LateRing(4), "possible_goal_generator": LateGoals(4), "level_fct": step_of}
    expected = [at_rest(solved(None, params, **late)) for params in (PARAMS, BARELY)]
    first = Path(solved(tmp_path, PARAMS, **late).results.place.name)
    before = tree(first)
    found = solved(tmp_path, [PARAMS, BARELY], **late)
    assert [at_rest(solution) for solution in found] == expected
    assert tree(first) == before
    with nothing_is_computed():
        solved(tmp_path, PARAMS, **late)
        solved(tmp_path, BARELY, **late)


def test_another_world_or_horizon_is_refused_and_nothing_is_touched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    solved(out)
    before = tree(out)
    for other, message in ((world("carousel"), "differs in world"), (world(steps=3), "differs in horizon")):
        with pytest.raises(StoreMismatchError, match=message):
            solved(out, world=other)
        assert tree(out) == before


def plays(action: int) -> Callable[..., Any]:
    """A belief that is made where it is used, as users make them."""
    return lambda state, human, own: [(1.0, np.full(3, action))]


def check_not_mixed_up(out: Path, names: tuple[str, ...], one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two questions that have no key: each gets its own answer, whatever is there."""
    numbers = [at_rest(solve(Ring(4), progress=False, **question), names) for question in (one, other)]
    assert numbers[0] != numbers[1]
    for overwrite in (False, True):
        for question, expected in ((one, numbers[0]), (other, numbers[1]), (one, numbers[0])):
            before = tree(out)
            found = solve(Ring(4), progress=False, out=out, overwrite=overwrite, **question)
            assert at_rest(found, names) == expected
            assert overwrite or before.items() <= tree(out).items()


def test_beliefs_that_nobody_can_tell_apart_are_not_taken_for_one_another(tmp_path: Path) -> None:
    one, other = ({"params": PARAMS.replace(believed_others_policy=plays(action))} for action in (0, 1))
    check_not_mixed_up(tmp_path, tuple(ARRAYS), one, other)


@pytest.mark.parametrize("rests", ["memory", "folder", "temporary"])
def test_beliefs_that_nobody_can_tell_apart_are_told_apart_in_a_list(rests: str, tmp_path: Path) -> None:
    sets = [PARAMS.replace(believed_others_policy=plays(action)) for action in (0, 1, 0)]
    numbers = [at_rest(solve(Ring(4), params, progress=False)) for params in sets]
    assert numbers[0] != numbers[1]
    out = {"memory": None, "folder": tmp_path / "out", "temporary": True}[rests]
    found = solve(Ring(4), sets, out=out, progress=False)
    assert [at_rest(solution) for solution in found] == numbers


def test_a_belief_by_name_has_a_folder_of_its_own(tmp_path: Path) -> None:
    ring = Ring(4)
    for params in (PARAMS, PARAMS.replace(believed_others_policy=everybody_plays_1)):
        assert at_rest(solve(ring, params, out=tmp_path, progress=False)) == at_rest(solve(ring, params, progress=False))
    assert len(folders(tmp_path)) == 2


class Doubtful(Cells):
    """Goals that depend on the state by way of something that cannot be pickled."""

    def __init__(self, weight_of: Callable[[Any], float]) -> None:
        super().__init__()
        self.weight_of = weight_of

    def generate(self, state: Any, human: int) -> Iterator[Any]:
        for goal, _ in super().generate(state, human):
            yield goal, self.weight_of(state)


def test_goals_that_nobody_can_tell_apart_are_not_taken_for_one_another(tmp_path: Path) -> None:
    one, other = (
        {"possible_goal_generator": Doubtful(lambda state, power=power: 0.1 * (1 + state[0]) ** power)}  # type: ignore[misc]
        for power in (1, 2)
    )
    check_not_mixed_up(tmp_path, tuple(ARRAYS), one, other)


class FixedPrior:
    """A prior of the user's own, which holds something that cannot be pickled."""

    def __init__(self, shares: Callable[[], list[float]]) -> None:
        self.shares = shares

    def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
        return [(share, [action, action]) for action, share in enumerate(self.shares())]

    def profile_distribution_with_fixed_goal(self, state: Any, human: int, goal: Any) -> list[tuple[float, list[int]]]:
        return self.profile_distribution(state)


def test_priors_that_nobody_can_tell_apart_are_not_taken_for_one_another(tmp_path: Path) -> None:
    one, other = (
        {"human_policy_prior": FixedPrior(lambda share=share: [share, 1 - share])}  # type: ignore[misc]
        for share in (0.25, 0.75)
    )
    check_not_mixed_up(tmp_path, ("ve", "xh", "qr", "vr"), one, other)


def test_durations_that_a_gridworld_was_given_are_part_of_the_question(tmp_path: Path) -> None:
    numbers = []
    for duration in (1.0, 3.0):
        there = world(steps=2)
        there.transition_durations = lambda state, actions, found, duration=duration: [duration] * len(found)
        expected = at_rest(solved(None, world=there))
        assert at_rest(solved(tmp_path, world=there)) == expected
        numbers.append(expected)
    assert numbers[0] != numbers[1]


class Remembering(LeapingRing):
    """A world that remembers its answers, as some do to be quick."""

    def __init__(self, steps: int) -> None:
        super().__init__(steps)
        self.answers: dict[Any, Any] = {}

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        key = (state, tuple(actions))
        if key not in self.answers:
            self.answers[key] = super().transition_probabilities(state, actions)
        return self.answers[key]


def test_a_world_that_remembers_its_answers_finds_its_solution_again(tmp_path: Path) -> None:
    solved(tmp_path, world=Remembering(4), level_fct=step_of)
    with nothing_is_computed():
        solved(tmp_path, world=Remembering(4), level_fct=step_of)
    assert len(folders(tmp_path)) == 1


def test_equal_python_worlds_make_equal_files(tmp_path: Path) -> None:
    alive = []
    for name in ("one", "other"):
        alive.append(LeapingRing(4))
        solved(tmp_path / name, world=alive[-1], level_fct=step_of)
    assert_same_trees(tmp_path / "one", tmp_path / "other")


# --- slices of the documented functions -------------------------------------------------------------------------------


def table(values: Any, there: Any) -> dict[Any, Any]:
    """All that a table of values says, as plain dictionaries."""
    return {state: {human: dict(row) for human, row in values[state].items()} for state in values}


CACHED = [("ice_rink", 3), ("ice_rink", 4), ("carousel", 3), ("first_steps", 3)]


def test_a_cache_folder_serves_several_worlds_and_horizons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    expected = {}
    for n, (name, steps) in enumerate(CACHED):
        there = world(name, steps)
        _, values = compute_human_policy_prior(there, there.human_agent_indices, return_Vh=True, quiet=True)
        expected[name, steps] = table(values, there)
        there = world(name, steps)
        _, values = sliced(tmp_path, there)
        assert table(values, there) == expected[name, steps]
        assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == n + 1
    before = tree(tmp_path)
    with nothing_is_computed(), counted_expansions(monkeypatch) as expanded:
        for name, steps in CACHED[::-1]:
            there = world(name, steps)
            _, values = sliced(tmp_path, there)
            assert table(values, there) == expected[name, steps]
    assert expanded == []
    assert tree(tmp_path) == before
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_one_world_object_whose_horizon_changes_has_its_own_slices_each_time(tmp_path: Path) -> None:
    """Slices that were left on the world, or in the cache, are those of the horizon that was."""
    there = world(steps=3)
    humans, robots = there.human_agent_indices, there.robot_agent_indices
    options: dict[str, Any] = {"use_disk_slicing": True, "disk_cache_dir": tmp_path, "quiet": True}
    for steps in (3, 4, 2, 3):
        there.max_steps = steps
        prior = compute_human_policy_prior(there, humans, **options)
        _, found, _ = compute_robot_policy(there, humans, robots, None, prior, return_values=True, **options)
        other = world(steps=steps)
        prior = compute_human_policy_prior(other, humans, quiet=True)
        _, expected, _ = compute_robot_policy(other, humans, robots, None, prior, return_values=True, quiet=True)
        assert dict(found) == dict(expected), steps


def test_a_stopped_phase_1_goes_on_in_its_cache(tmp_path: Path) -> None:
    there = world()
    sizes = enumerate_dag(there, progress=False).level_sizes
    n_states = sum(sizes)
    with pytest.raises(InterruptedError):
        sliced(tmp_path, there, progress_callback=stop_after(sizes[4] + sizes[3]))
    levels: set[int] = set()
    plain = phases.HumanPhase.run

    def run(self: Any, work: Any, **options: Any) -> Any:
        levels.add(work.t)
        return plain(self, work, **options)

    told: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phases.HumanPhase, "run", run)
        _, values = sliced(tmp_path, there, progress_callback=lambda done, total: told.append((done, total)))
    assert levels == {0, 1, 2}
    assert told == [(n, n_states) for n in range(1, n_states + 1)]
    _, expected = compute_human_policy_prior(there, there.human_agent_indices, return_Vh=True, quiet=True)
    assert table(values, there) == table(expected, there)


def test_the_callback_hears_of_every_state_also_when_everything_is_there(tmp_path: Path) -> None:
    there = world()
    n_states = enumerate_dag(there, progress=False).n_states
    for _ in range(2):
        told: dict[int, int] = {}
        sliced(tmp_path, there, progress_callback=told.__setitem__)
        assert told == dict.fromkeys(range(1, n_states + 1), n_states)


FIRST_AND_SECOND: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "levels that were given, then derived": ({"level_fct": step_of}, {}),
    "levels that were derived, then given": ({}, {"level_fct": step_of}),
    "other levels that were given": ({"level_fct": step_of}, {"level_fct": negative_gaps}),
    "a lambda as belief": (
        {"believed_others_policy": lambda state, human, own: [(1.0, np.ones(3, dtype=np.int64))]},
        {"believed_others_policy": lambda state, human, own: [(1.0, np.zeros(3, dtype=np.int64))]},
    ),
}


@pytest.mark.parametrize("case", FIRST_AND_SECOND)
def test_a_cache_never_stands_in_the_way(case: str, tmp_path: Path) -> None:
    """It is no place that a user looks after, and there is no overwrite=True: what cannot be used is not used."""
    ring = LeapingRing(5)
    for options in FIRST_AND_SECOND[case]:
        expected = compute_human_policy_prior(LeapingRing(5), [0, 2], quiet=True, **options)
        found = compute_human_policy_prior(
            ring, [0, 2], use_disk_slicing=True, disk_cache_dir=tmp_path, quiet=True, **options
        )
        state = ring.initial_state()
        for goal, _ in ring.possible_goal_generator.generate(state, 0):
            assert found(state, 0, goal).tolist() == expected(state, 0, goal).tolist()


# --- archives ---------------------------------------------------------------------------------------------------------


def phase_1(there: Any, archive: Path | None, **options: Any) -> Any:
    return compute_human_policy_prior(there, there.human_agent_indices, archive_dir=archive, quiet=True, **options)


def phase_2(there: Any, archive: Path | None, **options: Any) -> Any:
    humans, robots = there.human_agent_indices, there.robot_agent_indices
    options = {"archive_dir": archive, "return_values": True, "quiet": True, **options}
    return compute_robot_policy(there, humans, robots, **options)


@pytest.mark.parametrize("slices", [{}, {"use_disk_slicing": True}, {"use_disk_slicing": True, "disk_cache_dir": "cache"}])
def test_an_archive_is_complete(slices: dict[str, Any], tmp_path: Path) -> None:
    if "disk_cache_dir" in slices:
        slices = {**slices, "disk_cache_dir": tmp_path / "cache"}
    archive = tmp_path / "deep" / "archive"
    prior = phase_1(world(), archive, **slices)
    phase_2(world(), archive, **slices)
    assert sorted(path.name for path in archive.iterdir()) == ["human_values", "robot_values"]
    expected = solve(world(), Params(), progress=False)
    for name, arrays in (("human_values", ("vh",)), ("robot_values", tuple(ARRAYS))):
        found = levels_of(archive / name)
        assert found == {place: bits[2] for place, bits in at_rest(expected, arrays).items()}
    assert at_rest(prior.solution, ("vh",)) == at_rest(expected, ("vh",))


def test_an_archive_is_replaced_by_the_next_run(tmp_path: Path) -> None:
    for steps, options in ((4, {}), (4, {"beta_h": 2.0}), (2, {"beta_h": 2.0}), (3, {"use_float16": False}), (3, {})):
        prior = phase_1(world(steps=steps), tmp_path, **options)
        expected = phase_1(world(steps=steps), None, **options)
        found = levels_of(tmp_path / "human_values")
        assert found == {place: bits[2] for place, bits in at_rest(expected.solution, ("vh",)).items()}
        assert at_rest(prior.solution, ("vh",)) == at_rest(expected.solution, ("vh",))
    phase_1(world("carousel", 3), tmp_path)
    assert {t for t, _ in levels_of(tmp_path / "human_values")} == set(range(4))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["human_values"]


def test_an_archive_that_was_damaged_or_interrupted_is_replaced(tmp_path: Path) -> None:
    expected = {place: bits[2] for place, bits in at_rest(phase_1(world(), tmp_path).solution, ("vh",)).items()}
    (tmp_path / "human_values" / "zarr.json").write_text("{")
    phase_1(world(), tmp_path)
    assert levels_of(tmp_path / "human_values") == expected
    change_a_number(tmp_path / "human_values" / "level_00001" / "zarr.json")
    phase_1(world(), tmp_path)
    assert levels_of(tmp_path / "human_values") == expected
    with pytest.raises(InterruptedError):
        phase_1(world(), tmp_path, beta_h=3.0, progress_callback=stop_after(200))
    phase_1(world(), tmp_path)
    assert levels_of(tmp_path / "human_values") == expected


def test_what_an_earlier_run_returned_can_be_read_after_its_archive_was_replaced(tmp_path: Path) -> None:
    """As when one archive folder is given throughout a loop over parameters."""
    there = world()
    (human,) = there.human_agent_indices
    first, values = phase_1(there, tmp_path, beta_h=1.0, return_Vh=True)
    phase_1(there, tmp_path, beta_h=5.0)
    expected, expected_values = phase_1(world(), None, beta_h=1.0, return_Vh=True)
    state = there.initial_state()
    assert first(state, human).tolist() == expected(state, human).tolist()
    assert table(values, there) == table(expected_values, there)


def test_an_archive_folder_with_somebody_elses_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "human_values").mkdir()
    (tmp_path / "human_values" / "results.csv").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    before = tree(tmp_path)
    # Told before everything is computed in vain.
    with nothing_is_computed(), pytest.raises(StoreMismatchError, match=r"results\.csv"):
        phase_1(world(), tmp_path)
    assert {name: data for name, data in tree(tmp_path).items() if not name.endswith(".lock")} == before


# --- readers that know nothing of empo_bi -----------------------------------------------------------------------------


def test_zarr_opens_a_solution_and_finds_names_shapes_and_dimensions(wholes: dict[str, Path], expected: Solution) -> None:
    (folder,) = folders(wholes["plain"])
    root = zarr.open_group(folder, mode="r")
    about = root.attrs["empo_bi"]
    assert isinstance(about, dict)
    assert (about["format"], about["version"], about["horizon"]) == ("empo_bi solution", 1, STEPS)
    assert sorted(root.group_keys()) == [f"level_{t:05}" for t in range(STEPS + 1)]
    assert [len(goals) for goals in about["goals"]] == [9]
    assert [tuple(profile) for profile in about["robot_profiles"]] == expected.robot_profiles
    for t in range(STEPS + 1):
        group = zarr.open_group(folder, path=f"level_{t:05}", mode="r")
        assert sorted(group.array_keys()) == sorted(ARRAYS)
        for name, dimensions in ARRAYS.items():
            array = group[name]
            assert isinstance(array, zarr.Array)
            assert array.metadata.dimension_names == dimensions  # type: ignore[union-attr]
            assert np.array_equal(np.asarray(array[...]), expected.results.get(t, name))
    assert json.loads((folder / "zarr.json").read_text())["zarr_format"] == 3


def test_xarray_opens_every_level_with_named_dimensions_and_the_same_numbers(
    wholes: dict[str, Path], expected: Solution
) -> None:
    (folder,) = folders(wholes["plain"])
    for t in range(STEPS + 1):
        dataset = xarray.open_zarr(folder, group=f"level_{t:05}", consolidated=False)
        n_states = expected.dag.level_sizes[t]
        assert dict(dataset.sizes) == {"state": n_states, "human": 1, "goal": 9, "robot_profile": 4}
        assert set(dataset.data_vars) == set(ARRAYS)
        for name, dimensions in ARRAYS.items():
            assert dataset[name].dims == dimensions
            assert dataset[name].dtype == expected.results.get(t, name).dtype
            assert np.array_equal(dataset[name].values, expected.results.get(t, name))
    # numbers as people ask for them
    last = xarray.open_zarr(folder, group="level_00000", consolidated=False)
    assert float(last["vr"].isel(state=0)) == float(expected.values.V_r[0][0])


def test_archives_open_with_xarray_as_well(tmp_path: Path) -> None:
    prior = phase_1(world(), tmp_path)
    dataset = xarray.open_zarr(tmp_path / "human_values", group="level_00001", consolidated=False)
    assert set(dataset.data_vars) == {"vh"}
    assert np.array_equal(dataset["vh"].values, prior.solution.results.get(1, "vh"))


assert Pretended  # what stories fall back to where nothing can be mounted
