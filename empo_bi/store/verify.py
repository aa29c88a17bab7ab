"""Checking a store from end to end: every array is read and its checksum compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from empo_bi.errors import DamagedStoreError, counted
from empo_bi.runtime.progress import level_bar
from empo_bi.store.json_states import JsonStates
from empo_bi.store.places import place_of
from empo_bi.store.zarr_levels import ZarrLevels


@dataclass(frozen=True)
class Verification:
    """What was found: how much is there, and what is wrong with it, a line each."""

    name: str
    title: str
    is_finished: bool
    n_levels: int
    n_arrays: int
    damage: list[str]

    def __str__(self) -> str:
        state = "finished" if self.is_finished else "unfinished: run enumerate_dag again to continue"
        verdict = f"{counted(len(self.damage), 'problem')} found" if self.damage else "all checksums agree"
        head = f"{self.name}: {self.title}, {counted(self.n_levels, 'level')} ({state}), "
        return "\n".join([head + f"{counted(self.n_arrays, 'array')} checked: {verdict}", *self.damage])


def verify_store(path: Any, *, progress: bool = True) -> Verification:
    """Read every array of the store at ``path``; it does not stop at the first problem.

    Raises
    ------
    StoreNotFoundError, StoreMismatchError
        If no slice store of this format is there.
    DamagedStoreError
        If not even its list of levels can be read.
    """
    levels = ZarrLevels.open(place_of(path), JsonStates(None), cache_bytes=0)
    n_arrays = 0
    damage: list[str] = []
    with level_bar("verify", len(levels), progress) as bar:
        for t in range(len(levels)):
            damage += levels.problems_of(t)
            n_arrays += levels.n_arrays_of(t)
            bar.update()
    if len(levels) and not levels.is_finished:
        try:
            levels.frontier()
        except DamagedStoreError as error:
            damage.append(str(error))
    return Verification(levels.place.name, levels.manifest["title"], levels.is_finished, len(levels), n_arrays, damage)
