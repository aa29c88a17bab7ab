"""A run that is killed, whenever and however often, can be continued, and ends with the bytes of one that never was."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from store_tools import Moment, Runs, assert_same_trees, enumerated, moments_of, tree

from empo_bi import StoreNotFoundError, open_dag

STEPS = 32


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    runs = Runs()
    yield runs
    runs.close()


def committed(store: Path, whole: Path) -> int:
    """How many levels a killed run has left, each with the files that it has in the whole store."""
    try:
        dag = open_dag(store)
    except StoreNotFoundError:
        return 0
    dag.level(dag.horizon)
    ours, theirs = tree(store), tree(whole)
    for t in range(dag.horizon + 1):
        prefix = f"level_{t:05}/"
        mine = {name: data for name, data in ours.items() if name.startswith(prefix)}
        assert mine == {name: data for name, data in theirs.items() if name.startswith(prefix)}, t
    return dag.horizon + 1


def kill_again_and_again(runs: Runs, kind: str, steps: int, n_kills: int, folder: Path) -> list[int]:
    """Returns how many levels were there after each of the kills. Stores that finish in between are checked, too.

    Kills go on until enough of them came in the middle of a run: on a busy machine, many come before anything is there.
    """
    whole, store = folder / "whole" / "store", folder / "store"
    in_peace = runs.run(kind, steps, whole)
    assert in_peace.exit_code == 0
    rng, levels_left = random.Random(kind), []
    for _ in range(20 * n_kills):
        is_last = len(levels_left) >= n_kills and 2 * sum(0 < n <= steps for n in levels_left) >= n_kills
        outcome = runs.run(kind, steps, store, kill_after=None if is_last else rng.uniform(0, in_peace.seconds / 2))
        if outcome.was_killed:
            levels_left.append(committed(store, whole))
            continue
        assert outcome.exit_code == 0
        assert_same_trees(store, whole)
        if is_last:
            return levels_left
        shutil.rmtree(store)
    raise AssertionError(f"{len(levels_left)} runs were killed")


@pytest.mark.parametrize(
    ("kind", "n_kills"), [("ice_rink", 12), ("carousel", 8), ("leaps", 6), ("drift", 4), ("leaps, levels derived", 4)]
)
def test_killed_runs_end_with_the_files_of_a_run_in_peace(runs: Runs, kind: str, n_kills: int, tmp_path: Path) -> None:
    levels_left = kill_again_and_again(runs, kind, STEPS, n_kills, tmp_path)
    assert len(levels_left) >= n_kills
    in_the_middle = [n for n in levels_left if 0 < n <= STEPS]
    assert len(in_the_middle) >= n_kills / 2


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "steps"), [("asymmetric_freeing", 24), ("carousel", 120), ("leaps", 120), ("drift", 120)])
def test_killed_long_runs_end_with_the_files_of_a_run_in_peace(runs: Runs, kind: str, steps: int, tmp_path: Path) -> None:
    levels_left = kill_again_and_again(runs, kind, steps, 60, tmp_path)
    assert len([n for n in levels_left if 0 < n <= steps]) >= 30


# --- at every kind of touch of the disk -------------------------------------------------------------------------------


def one_of_each_kind(touches: list[str]) -> list[Moment]:
    """For each kind, one of the times that it happened."""
    last = dict(moments_of(touches))
    rng = random.Random(7)
    return [(kind, rng.randint(1, n)) for kind, n in last.items()]


def die_and_continue(runs: Runs, kind: str, name: str, moments: Sequence[Moment], folder: Path) -> None:
    """Die at each of the moments, and run again."""
    assert runs.run(kind, 2, folder / "whole" / name).exit_code == 0
    wrong = []
    for i, moment in enumerate(moments):
        place = folder / str(i)
        outcome = runs.run(kind, 2, place / name, die_at=moment)
        assert outcome.was_killed, moment
        try:
            assert runs.run(kind, 2, place / name).exit_code == 0
            assert_same_trees(place, folder / "whole")
        except AssertionError as error:
            wrong.append(f"{outcome.last_touch}: {error}")
        shutil.rmtree(place)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", ["ice_rink", "leaps", "drift"])
def test_death_at_any_kind_of_write_leaves_nothing_that_differs_afterwards(runs: Runs, kind: str, tmp_path: Path) -> None:
    touches = runs.run(kind, 2, tmp_path / "watched" / "store", watch=True).touches
    moments = one_of_each_kind(touches)
    for what in (
        "zarr.*",
        "level/zarr.*",
        "level/array/zarr.*",
        "level/array/c/0.*",
        "frontier/n/zarr.*",
        "finished/zarr.*",
    ):
        assert f"open store/{what}.partial" in dict(moments)
        assert f"os.rename store/{what}.partial" in dict(moments)
    assert "os.remove in a folder that goes" in dict(moments)
    die_and_continue(runs, kind, "store", moments, tmp_path)


def test_death_while_a_zip_file_is_being_packed_leaves_only_the_zip_file_afterwards(runs: Runs, tmp_path: Path) -> None:
    touches = runs.run("ice_rink", 2, tmp_path / "watched" / "store.zip", watch=True).touches
    moments = moments_of(touches)
    of_packing = dict(moments[moments.index(("open store.zip.partial", 1)) :])
    assert {"os.rename store.zip.partial", "os.rmdir store.zip.building"} <= of_packing.keys()
    die_and_continue(runs, "ice_rink", "store.zip", list(of_packing.items()), tmp_path)


@pytest.mark.parametrize("name", ["store", "store.zip"])
def test_what_zarr_leaves_of_a_last_write_that_was_cut_short_goes_when_the_store_is_used_again(
    name: str, tmp_path: Path
) -> None:
    for folder in ("whole", "here"):
        enumerated("ice_rink", 2, tmp_path / folder / name)
    folder = tmp_path / "here" / name
    if name == "store.zip":  # as it was just before it was packed
        folder = folder.with_name("store.zip.building")
        shutil.unpack_archive(tmp_path / "here" / name, folder)
        (tmp_path / "here" / name).unlink()
    # The record "finished" is there; of the root's, written beside it, only half is.
    (folder / f"zarr.{'0f' * 16}.partial").write_text('{"attributes": {')
    assert enumerated("ice_rink", 2, tmp_path / "here" / name).is_finished
    assert_same_trees(tmp_path / "here", tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["store", "store.zip"])
@pytest.mark.parametrize("kind", ["ice_rink", "carousel", "leaps", "drift"])
def test_death_at_every_single_write(runs: Runs, kind: str, name: str, tmp_path: Path) -> None:
    touches = runs.run(kind, 2, tmp_path / "watched" / name, watch=True).touches
    die_and_continue(runs, kind, name, moments_of(touches), tmp_path)


def test_death_while_an_old_store_is_being_replaced_is_no_obstacle_to_replacing_it(runs: Runs, tmp_path: Path) -> None:
    enumerated("ice_rink", 2, tmp_path / "whole" / "store")
    enumerated("ice_rink", 1, tmp_path / "old" / "store")
    shutil.copytree(tmp_path / "old", tmp_path / "watched")
    touches = runs.run("ice_rink", 2, tmp_path / "watched" / "store", watch=True, overwrite=True).touches
    moments = moments_of(touches)
    begun_anew = next(n for n, touch in enumerate(touches) if touch.startswith("os.rename store/level"))
    for i, moment in enumerate(moments[: begun_anew + 1 : 4]):
        shutil.copytree(tmp_path / "old", tmp_path / str(i))
        assert runs.run("ice_rink", 2, tmp_path / str(i) / "store", die_at=moment, overwrite=True).was_killed
        assert runs.run("ice_rink", 2, tmp_path / str(i) / "store", overwrite=True).exit_code == 0, moment
        assert_same_trees(tmp_path / str(i), tmp_path / "whole")
