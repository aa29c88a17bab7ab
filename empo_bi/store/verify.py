"""Checking a store from end to end: every array is read and its checksum compared."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empo_bi.errors import DamagedStoreError, StoreError, counted
from empo_bi.runtime.progress import level_bar
from empo_bi.store.dag_manifest import UNFINISHED
from empo_bi.store.json_states import JsonStates
from empo_bi.store.places import Place, place_of
from empo_bi.store.records import is_packed, printable
from empo_bi.store.slice_guard import check_distinct, check_followers
from empo_bi.store.stored_world import hold_to_world, stored_world
from empo_bi.store.zarr_levels import ZarrLevels
from empo_bi.store.zarr_results import ZarrResults, is_solution
from empo_bi.world.array_world import NumberedStates


@dataclass(frozen=True)
class Verification:
    """What was found: how much is there, and what is wrong with it, a line each."""

    name: str
    title: str
    is_finished: bool
    n_levels: int
    n_arrays: int
    damage: list[str]
    remedy: str = UNFINISHED  # what to do about a store that is not finished

    def __str__(self) -> str:
        state = "finished" if self.is_finished else self.remedy
        verdict = f"{counted(len(self.damage), 'problem')} found" if self.damage else "all checksums agree"
        head = f"{self.name}: {self.title}, {counted(self.n_levels, 'level')} ({state}), "
        return "\n".join([head + f"{counted(self.n_arrays, 'array')} checked: {verdict}", *self.damage])


def verify_store(path: Any, *, progress: bool = True) -> Verification:
    """Read every array of the DAG or solution at ``path``; it does not stop at the first problem.

    Raises
    ------
    StoreNotFoundError, StoreMismatchError
        If no store of this format is there.
    DamagedStoreError
        If not even its list of levels can be read.
    """
    place = place_of(path)
    if is_solution(place) or (place.folder is not None and place.folder.name.startswith("solution-") and place.exists):
        return _verify_solution(ZarrResults.open(place), progress)
    levels = ZarrLevels.open(place, JsonStates(None))
    damage = _hold_to_world(levels)
    n_arrays, found = _check_levels(levels, range(len(levels)), progress)
    damage += found or _problems_between(levels)
    if len(levels) and not levels.is_finished:
        try:
            levels.frontier()
        except DamagedStoreError as error:
            damage.append(str(error))
        if _has_solutions(place):  # which come after the end
            damage.append(f"{place.name}: {levels.why_unfinished}")
    name, title = levels.place.name, printable(levels.manifest["title"])
    return Verification(name, title, levels.is_finished, len(levels), n_arrays, damage, levels.why_unfinished)


def _hold_to_world(levels: ZarrLevels) -> list[str]:
    """Let the store's own world say what its keys may be; what is wrong with that world."""
    manifest = levels.manifest
    try:
        world = NumberedStates() if manifest["world"] is None else stored_world(levels)
        if is_packed(manifest):
            hold_to_world(levels, world, None)
    except DamagedStoreError as error:
        return [str(error)]
    return []


def _problems_between(levels: ZarrLevels) -> list[str]:
    """What is wrong between levels each of which is sound: transitions that leave them, states that are there twice."""
    try:
        for t in range(len(levels)):
            check_followers(levels, t, levels.manifest["n_profiles"])
        check_distinct(levels)
    except DamagedStoreError as error:
        return [str(error)]
    return []


def _has_solutions(place: Place) -> bool:
    return place.folder is not None and place.folder.name == "dag" and any(place.folder.parent.glob("solution-*/zarr.json"))


def stores_at(path: Any) -> list[Any]:
    """The store at ``path``, or all of them where it is the folder of :func:`solve`, of a batch, or one of such folders."""
    if not isinstance(path, str | os.PathLike) or not Path(path).is_dir():
        return [path]
    return list(_stores_in(Path(path), depth=3)) or [path]


def _stores_in(folder: Path, depth: int) -> Iterator[Path]:
    """Folders inside one that are stores, or are called so: of a damaged one, not even its metadata may be left."""
    if (folder / "zarr.json").exists():
        yield folder
        return
    for inside in sorted(path for path in folder.iterdir() if path.is_dir()):
        if inside.name == "dag" or inside.name.startswith("solution-") or folder.name == "dags":
            yield inside
        elif depth:
            yield from _stores_in(inside, depth - 1)


def is_damaged(path: Path) -> bool:
    """Whether there is a DAG or solution at a path, and something is wrong with it."""
    try:
        return bool(verify_store(path, progress=False).damage)
    except DamagedStoreError:
        return True
    except StoreError:
        return False


def _verify_solution(results: ZarrResults, progress: bool) -> Verification:
    n_arrays, damage = _check_levels(results, results.levels, progress)
    is_finished = results.next_level < 0
    if not is_finished and results.levels:
        try:
            results.carried()
        except DamagedStoreError as error:
            damage.append(str(error))
    title = f"solution of {printable(results.manifest['title'])}"
    return Verification(results.place.name, title, is_finished, len(results.levels), n_arrays, damage)


def _check_levels(store: ZarrLevels | ZarrResults, levels: Sequence[int], progress: bool) -> tuple[int, list[str]]:
    """The number of arrays on some levels, and what is wrong with them."""
    n_arrays = 0
    damage: list[str] = []
    with level_bar("verify", len(levels), progress) as bar:
        for t in levels:
            damage += store.problems_of(t)
            n_arrays += store.n_arrays_of(t)
            bar.level(t)
    return n_arrays, damage
