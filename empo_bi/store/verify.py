"""Checking a store from end to end: every array is read and its checksum compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.errors import DamagedStoreError, StoreError, StoreNotFoundError
from empo_bi.runtime.ordinary_files import path_inside
from empo_bi.runtime.printable import one_line
from empo_bi.runtime.progress import LevelBar
from empo_bi.runtime.wording import counted
from empo_bi.store.dag_manifest import UNFINISHED
from empo_bi.store.dag_store import DagStore
from empo_bi.store.json_states import JsonStates
from empo_bi.store.location import Place, place_of
from empo_bi.store.records import is_packed
from empo_bi.store.slice_guard import check_distinct, check_successors
from empo_bi.store.small_files import Folder
from empo_bi.store.solution_folders import ARCHIVES, SOLUTION, are_same, folder_name
from empo_bi.store.solution_store import SolutionStore, is_solution
from empo_bi.store.stored_world import hold_to_world, stored_world
from empo_bi.store.zarr_files import ZarrFiles
from empo_bi.world.array_world import NumberedStates
from empo_bi.world.as_model import UNKNOWN, as_model

_TRIES = 3  # of checking a store that somebody is writing


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
        if not self.is_finished and not self.n_levels and not self.damage:
            return f"{self.name}: begun, and nothing is finished yet ({UNFINISHED})"
        state = "finished" if self.is_finished else self.remedy
        verdict = f"{counted(len(self.damage), 'problem')} found" if self.damage else "all checksums agree"
        head = f"{self.name}: {self.title}, {counted(self.n_levels, 'level')} ({state}), "
        return "\n".join([head + f"{counted(self.n_arrays, 'array')} checked: {verdict}", *self.damage])


def verify_store(path: Any, *, progress: bool = True) -> Verification:
    """Read every array of the DAG or solution at ``path``; it does not stop at the first problem.

    What a killed process left beside a store is no problem: the next run of the same command removes it.

    Raises
    ------
    StoreNotFoundError, StoreMismatchError
        If no store of this format is there.
    DamagedStoreError
        If not even its list of levels can be read.
    """
    place = place_of(path)
    for _ in range(_TRIES):
        try:
            store = _opened(place)
        except StoreNotFoundError:
            if not is_begun(place):
                raise
            return Verification(place.name, "", is_finished=False, n_levels=0, n_arrays=0, damage=[])
        found = _verify_solution(store, progress) if isinstance(store, SolutionStore) else _verify_dag(store, progress)
        if not found.damage or not _is_being_written(place, found):
            return found
    return replace(found, is_finished=False, damage=[], remedy="somebody is writing there; verify it when that is done")


def _opened(place: Place) -> DagStore | SolutionStore:
    if is_solution(place) or (place.folder is not None and place.folder.name.startswith(SOLUTION) and place.exists):
        return SolutionStore.open(place)
    return DagStore.open(place, JsonStates(None))


def _is_being_written(place: Place, found: Verification) -> bool:
    """Whether a store has grown since it was opened: what a writer needs no longer is removed, which is no damage."""
    try:
        store = _opened(place)
    except StoreError:
        return not place.exists
    if isinstance(store, SolutionStore):
        return (store.next_level < 0, len(store.levels)) != (found.is_finished, found.n_levels)
    return (store.is_finished, len(store)) != (found.is_finished, found.n_levels)


def _verify_dag(levels: DagStore, progress: bool) -> Verification:
    place, damage = levels.place, _hold_to_world(levels)
    n_arrays, found = _check_levels(levels, range(len(levels)), progress)
    damage += found or _problems_between(levels)
    if len(levels) and not levels.is_finished:
        try:
            levels.frontier()
        except DamagedStoreError as error:
            damage.append(str(error))
        if _has_solutions(place):  # which come after the end
            damage.append(f"{place.name}: {levels.why_unfinished}")
    if place.reads_zip_file and not levels.is_finished:  # it was packed when it was complete
        damage.append(f"{place.name}: some of its files are missing; a store in a zip file is always finished")
    title = one_line(levels.manifest["title"])
    return Verification(place.name, title, levels.is_finished, len(levels), n_arrays, damage, levels.why_unfinished)


def _hold_to_world(levels: DagStore) -> list[str]:
    """Let the store's own world say what its keys may be; what is wrong with that world."""
    manifest = levels.manifest
    try:
        model = UNKNOWN if manifest["world"] is None else as_model(stored_world(levels))
        if is_packed(manifest):
            hold_to_world(levels, model, None, NumberedStates())
    except DamagedStoreError as error:
        return [str(error)]
    return []


def _problems_between(levels: DagStore) -> list[str]:
    """What is wrong between levels each of which is sound: transitions that leave them, states that are there twice."""
    try:
        for t in range(len(levels)):
            check_successors(levels, t, levels.manifest["n_profiles"])
        check_distinct(levels)
    except DamagedStoreError as error:
        return [str(error)]
    return []


def _has_solutions(place: Place) -> bool:
    return place.folder is not None and place.folder.name == "dag" and any(place.folder.parent.glob("solution-*/zarr.json"))


def is_begun(place: Place) -> bool:
    """Whether a place without a manifest is that of a store which was begun, or was being replaced, rather than damaged.

    On disk, the lock tells, which goes last; behind a URL, a first file that was torn, or an empty folder.
    """
    if place.is_begun:
        return True
    if place.folder is not None and not place.folder.is_dir():
        return False
    names = ZarrFiles(place.name, place.for_reading()).names()
    if place.folder is None:
        return names == ["zarr.json"] or (not names and _is_listed(place.name))
    return not names and (place.folder.name == "dag" or place.folder.name.startswith(SOLUTION))


def _is_listed(url: str) -> bool:
    """Whether an empty folder of a store's name is at a URL: all that its maker left, who was killed."""
    parent, _, name = url.rstrip("/").rpartition("/")
    return (name == "dag" or name.startswith(SOLUTION)) and name in Folder(parent).names(name)


def is_damaged(path: Path) -> bool:
    """Whether there is a DAG or solution at a path, and something is wrong with it."""
    try:
        return bool(verify_store(path, progress=False).damage)
    except DamagedStoreError:
        return True
    except StoreError:
        return False


def _verify_solution(results: SolutionStore, progress: bool) -> Verification:
    n_arrays, damage = _check_levels(results, results.levels, progress)
    is_finished = results.next_level < 0
    if not is_finished and results.levels and results.name not in ARCHIVES:  # which begin anew each time
        try:
            results.carried()
        except DamagedStoreError as error:
            damage.append(str(error))
    damage += [*_problems_with_name(results), *_problems_with_dag(results)]
    title = f"solution of {one_line(results.manifest['title'])}"
    return Verification(results.place.name, title, is_finished, len(results.levels), n_arrays, damage)


def _check_levels(store: DagStore | SolutionStore, levels: Sequence[int], progress: bool) -> tuple[int, list[str]]:
    """The number of arrays on some levels, and what is wrong with them."""
    n_arrays = 0
    damage: list[str] = []
    with LevelBar("verify", len(levels), progress) as bar:
        for t in levels:
            damage += store.problems_of(t)
            n_arrays += store.n_arrays_of(t)
            bar.level(t)
    return n_arrays, damage


def _problems_with_name(results: SolutionStore) -> list[str]:
    """Whether a solution is found under the name of its question, where it has such a name."""
    name, content = results.name, results.manifest["content"]
    if not name.startswith(SOLUTION) or not are_same(content, content) or name == folder_name(content):
        return []
    return [f"{results.place.name}: its manifest is that of {folder_name(content)}; it was renamed or replaced"]


def _problems_with_dag(results: SolutionStore) -> list[str]:
    """Whether a solution is one of the DAG beside it: the same world and levels, and as many states on each."""
    folder = results.place.folder
    beside = None if folder is None else path_inside(folder.parent, "dag")
    if beside is None or not (beside / "zarr.json").is_file():
        return []
    try:
        dag = DagStore.open(place_of(beside), JsonStates(None))
        manifest, content = results.manifest, results.manifest["content"]
        if content.get("level_sizes") != [level.n_states for level in dag.sizes]:
            return [f"{results.place.name}: its levels have other sizes than those of the DAG beside it"]
        if manifest.get("levels", values := [level.value for level in dag.sizes]) != values:
            return [f"{results.place.name}: its levels have other numbers than those of the DAG beside it"]
        if content["world"] != dag.manifest["content"]["world"]:
            return [f"{results.place.name}: it was solved for another world than that of the DAG beside it"]
        return [
            f"{results.place.name}: level {t}, array 'qr': a state that is terminal in the DAG beside it has values"
            for t in results.levels
            if results.has(t, "qr") and not results.is_at_rest(t, "qr")[_ended(dag, t)].all()
        ]
    except StoreError:  # which is said elsewhere
        return []


def _ended(dag: DagStore, t: int) -> npt.NDArray[np.bool_]:
    head = dag.part(t, ("members", "ended"))
    return np.broadcast_to(head.ended, (len(head.members),))
