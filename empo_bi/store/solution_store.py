"""The solved levels of a DAG in a store, from the last to the first; what continuing needs is the *carry*.

A carry has the tables that the next lower level reads, in full precision.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from zarr.abc.store import Store

from empo_bi.errors import DamagedStoreError, StoreError
from empo_bi.memory.budget import CACHE_BYTES, RESULT_BACKLOG
from empo_bi.store.cache import LevelCache, held_weakly
from empo_bi.store.compression import Compression
from empo_bi.store.format_names import ROOT, SOLUTION_KIND, level_name
from empo_bi.store.levelled import LevelledStore
from empo_bi.store.location import Place
from empo_bi.store.manifest import refuse_other_content
from empo_bi.store.records import SOLUTION_MARKER, check_abouts, check_solution_manifest, check_solution_marker
from empo_bi.store.solution_rules import SolutionRules, check_table
from empo_bi.store.solved_levels import ARRAYS, DIMENSIONS, rows_at
from empo_bi.store.zarr_files import ZarrFiles
from empo_bi.types import Array, Arrays, Bodies, Json

_RAW = Compression(level=0)


class SolutionStore(LevelledStore):
    """Solved levels: arrays by level and name, whole or some rows of them."""

    kind, direction = SOLUTION_KIND, -1
    check_manifest = staticmethod(check_solution_manifest)

    def __init__(self, place: Place, store: Store, manifest: Json, *, compression: Compression | None = None) -> None:
        super().__init__(place, store, manifest, compression=compression, backlog_bytes=RESULT_BACKLOG)
        self.first_level = int(manifest["horizon"])
        self._rules = SolutionRules.of(manifest)
        self._borrowed: dict[int, int] = {}  # of levels that wait, bytes of views of the sweep's tables
        self._cache: LevelCache[tuple[int, str], Array] = LevelCache(held_weakly(self._read), CACHE_BYTES, keeps_one=True)

    # --- opening ------------------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, place: Place) -> SolutionStore:
        """An existing solution, finished or not, for reading."""
        return cls._opened(place, cls)

    @classmethod
    def open_or_create(
        cls, place: Place, manifest: Json, *, compression: Compression, overwrite: bool = False
    ) -> SolutionStore:
        """A solution with the content that ``manifest`` describes: finished, to be continued, or new."""
        return cls._opened_or_created(place, manifest, partial(cls, compression=compression), overwrite=overwrite)

    def check_content(self, asked: Json) -> None:
        _check_content(self.place.name, asked, self.manifest)

    def _find_levels(self, *, mends: bool) -> None:
        for marker in self._read_markers(range(self.first_level, -1, -1)):
            self._check_marker(self.next_level, marker)
            self._markers.append({name: marker[name] for name in SOLUTION_MARKER})  # labels need not be kept
        self.is_finished = self.next_level < 0
        self._refuse_gaps()

    def _refuse_gaps(self) -> None:
        """Levels are committed from the last to the first."""
        t = self.next_level
        there = set(self._files.names()) if t > 0 else set()
        for below in range(t - 1, -1, -1):
            if level_name(below) in there and self._files.read_record(level_name(below)) is not None:
                raise self.damaged(f"the commit marker of level {t} is missing, though level {below} below it is there")

    def _check_marker(self, t: int, marker: Json) -> None:
        with self._files.naming_damage():
            check_solution_marker(marker)
            if self._rules is not None:
                self._rules.check_marker(t, marker)
        labels = self._labels(t).get("labels")
        if labels is not None and marker.get("labels", labels) != labels:
            raise self.damaged(f"level {t}: its labels are not those of the manifest")

    def _checked(self, t: int, name: str, array: Array) -> Array:
        """An array, or rows of one, whose numbers are what they may be."""
        with self._files.naming_damage():
            if self._rules is not None:
                self._rules.check_numbers(t, name, array)
        return array

    @property
    def name(self) -> str:
        return self.place.name.rstrip("/").replace("\\", "/").rpartition("/")[2]

    # --- checking -----------------------------------------------------------------------------------------------------

    @property
    def levels(self) -> list[int]:
        """Those that are committed."""
        return [self._level(n) for n in reversed(range(len(self._markers)))]

    def problems_of(self, t: int) -> list[str]:
        """Check every array of a level: what is wrong with them."""
        problems: list[str] = []
        at_rest: dict[str, Array] = {}
        for name in self._marker(t)["arrays"]:
            with self._noting(problems):
                if name in ARRAYS:
                    at_rest[name] = self.is_at_rest(t, name)
                else:
                    self._check_all(t, name)
        if "qr" in at_rest:
            terminal_S = at_rest["qr"]
            for name, rest_S in at_rest.items():
                if not rest_S[terminal_S].all() or (name == "xh" and not np.array_equal(rest_S, terminal_S)):
                    problems.append(
                        f"{self.place.name}: level {t}, array {name!r}: other states than by array 'qr' have the numbers of "
                        "terminal ones"
                    )
        return problems

    def _check_all(self, t: int, name: str) -> None:
        for _ in self.pieces(t, name, range(self._marker(t)["arrays"][name]["shape"][0])):
            pass

    def is_at_rest(self, t: int, name: str) -> Array:
        """Which states have the numbers that terminal ones have: 0, or what a robot's end is worth, (S,) bool."""
        rest = self.manifest["content"].get("params", {}).get("terminal_Vr", 0) if name == "vr" else 0
        if rest is None:  # somebody's function tells what an end is worth, which may be anything
            return np.ones(self._marker(t)["arrays"][name]["shape"][0], dtype=np.bool_)
        about, found = self._marker(t)["arrays"][name], [np.zeros(0, dtype=np.bool_)]
        for _, rows in self._files.read_pieces(level_name(t), name, about, range(about["shape"][0])):
            found.append((self._checked(t, name, rows) == rest).all(axis=tuple(range(1, rows.ndim))))
        return np.concatenate(found)

    # --- writing ------------------------------------------------------------------------------------------------------

    def put(self, t: int, arrays: Arrays, carry: Callable[[], Arrays]) -> None:
        """Write a level in the background. An error shows here or later, at the next call."""
        self._check_turn(t)
        self._collect(backlog=self.backlog_bytes)
        carried = carry() if t > 0 and not self.place.is_temporary else {}  # nobody continues a temporary store
        self._borrowed[t] = sum(array.nbytes for array in carried.values() if array.base is not None)
        nbytes = sum(array.nbytes for array in [*arrays.values(), *carried.values()])
        self._put(t, nbytes, partial(self._write_level, t, arrays, carried))

    def _committed(self, marker: Json) -> None:
        self._borrowed.pop(marker["level"], None)

    def settle(self, t: int) -> None:
        self._collect(through=t)

    def _write_level(self, t: int, arrays: Arrays, carried: Arrays) -> Json:
        assert self._compression is not None
        about = self._write_arrays(level_name(t), arrays, self._compression)
        marker = {"level": t, "arrays": about, **self._labels(t)}
        if carried:
            self._files.write_record(self.kind.resume_name(t), self._write_arrays(self.kind.resume_name(t), carried, _RAW))
        self._files.write_record(level_name(t), marker)
        return marker

    def _labels(self, t: int) -> Json:
        """What the numbers along dimensions mean, so that a level that is opened by itself explains itself.

        Taken from the manifest that is there, so that a run which is continued ends with the same bytes.
        """
        manifest, content = self.manifest, self.manifest["content"]
        if not {"actions", "levels"} <= manifest.keys() or "humans" not in content:
            return {}  # begun by an earlier version, or temporary, for nobody to open
        return {
            "labels": {
                "level": manifest["levels"][t],
                "human": content["humans"],
                "goal": manifest["goals"],
                "action": manifest["actions"],
                "robot_profile": manifest["robot_profiles"],
            }
        }

    def _write_arrays(self, group: str, arrays: Arrays, compression: Compression) -> Json:
        """Arrays are let go one by one: meanwhile the next level grows."""
        about = {}
        for name in list(arrays):
            array = arrays.pop(name)
            about[name] = self._files.write_array(group, name, array, _dimensions(name, array), compression)
            del array
        return about

    def _write_end(self) -> None:
        """There is no record of the end: the first level is it."""
        if self.next_level >= 0:
            raise ValueError(f"{self.place.name}: cannot be finished, level {self.next_level} has not been put")

    def carried(self) -> Arrays:
        group = self.kind.resume_name(self.next_level + 1)
        about = self._files.read_record(group)
        if about is None:
            raise self._files.damaged(
                f"level {self.next_level} has no commit marker (the attributes of its zarr.json), and group {group}, "
                "which is needed to solve it, is missing"
            )
        with self._files.naming_damage():
            check_abouts(about)
            if self._rules is not None:
                self._rules.check_carry(self.next_level + 1, group, about)
            tables = self._files.read_arrays(group, about)
            for name, table in tables.items():
                check_table(group, name, table)
        return tables

    _read_resume_point = carried

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, t: int, name: str) -> Array:
        """An array of a level; those used last are remembered."""
        self._about(t, name)
        return self._cache.get((t, name))

    def _read(self, place: tuple[int, str]) -> Array:
        t, name = place
        return self._checked(t, name, self._files.read_array(level_name(t), name, self._about(t, name)))

    def pieces(self, t: int, name: str, places: Bodies) -> Iterator[tuple[slice, Array]]:
        about, at_hand = self._about(t, name), self._cache.kept((t, name))
        if at_hand is not None:
            yield slice(0, len(places)), rows_at(at_hand, places)
            return
        for chosen, rows in self._files.read_pieces(level_name(t), name, about, places):
            yield chosen, self._checked(t, name, rows)

    def _about(self, t: int, name: str) -> Json:
        """What the marker of a level says of an array."""
        self._check_readable()
        about: Json = self._marker(t)["arrays"][name]
        return about

    @property
    def answers(self) -> frozenset[str]:
        return frozenset(self.manifest.get("answers", ()))

    def has(self, t: int, name: str) -> bool:
        self._collect()
        return name in self._marker(t)["arrays"]

    @property
    def held_bytes(self) -> int:
        return max(0, self._writer.nbytes - sum(self._borrowed.values())) + self._cache.nbytes

    def give_back(self) -> None:
        self._cache.clear()
        self.backlog_bytes = 0


def is_solution(place: Place) -> bool:
    """Whether there is a solution at a place, sound or not."""
    if not place.exists:
        return False
    with contextlib.suppress(StoreError):
        manifest = ZarrFiles(place.name, place.for_reading(), SOLUTION_KIND.remedy).raw_record(ROOT)
        return bool(manifest) and manifest.get("format") == SOLUTION_KIND.format  # type: ignore[union-attr]
    return False


def _dimensions(name: str, array: np.ndarray) -> tuple[str, ...]:
    return DIMENSIONS.get(name, ("row", "column")[: array.ndim])


_FOLLOWING = ("horizon", "levels", "goals", "robot_profiles")  # parts of a manifest that follow from its content


def _check_content(name: str, asked: Json, found: Json) -> None:
    other = [part for part in asked["content"] if asked["content"][part] != found["content"].get(part)]
    wrong = [part for part in _FOLLOWING if part in found and part in asked and asked[part] != found[part]]
    if wrong and not other:
        raise DamagedStoreError(
            f"{name}: the metadata of the store: {', '.join(wrong)} contradict the rest of the metadata. "
            f"{SOLUTION_KIND.remedy}"
        )
    if other:
        refuse_other_content(name, "a solution", found["content"], asked["content"], other)
