"""Solved levels in a zarr v3 store: one group a level, from the last to the first, committed one by one.

A level is written in three strokes: its arrays, then the *carry* (the tables that the next lower level reads, in full
precision), then its commit marker. A killed sweep continues below the last committed level and ends with the same bytes.
"""

from __future__ import annotations

import contextlib
import re
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from empo_bi.dag.slices import Bodies
from empo_bi.errors import DamagedStoreError, StoreError, StoreMismatchError, StoreNotFoundError
from empo_bi.memory.budget import CACHE_BYTES, RESULT_BACKLOG
from empo_bi.runtime.wording import short_repr
from empo_bi.store.background import BackgroundWriter
from empo_bi.store.dag_manifest import RootlessStoreError
from empo_bi.store.encoded import Compression, Json
from empo_bi.store.layout import ROOT, is_half_a_file, level_name, spoken
from empo_bi.store.location import Place, bytes_by_array, nbytes_of
from empo_bi.store.records import Unfit, check_abouts, check_solution_manifest, check_solution_marker, shown
from empo_bi.store.reporting import reporting
from empo_bi.store.solution_rules import SolutionRules, check_table
from empo_bi.store.solved_levels import ARRAYS, Array, Arrays, rows_at
from empo_bi.store.zarr_files import ZarrFiles

FORMAT, VERSION = "empo_bi solution", 1
REMEDY = "To make it anew, call solve with overwrite=True, or delete it"
_RAW = Compression(level=0)


def carry_name(t: int) -> str:
    return f"carry_{t:05}"


class SolutionStore:
    """Solved levels in a zarr store, for reading, or for writing by one process at a time."""

    def __init__(self, place: Place, files: ZarrFiles, manifest: Json, compression: Compression | None) -> None:
        self.place, self.manifest = place, manifest
        self._files, self._compression = files, compression
        self._markers: dict[int, Json] = {}
        self._horizon = int(manifest["horizon"])
        self._rules = SolutionRules.of(manifest)
        self._writer, self.backlog_bytes = BackgroundWriter(files), RESULT_BACKLOG
        self._borrowed: dict[int, int] = {}  # of levels that wait, bytes of views of the sweep's tables
        self._handed_over = self._horizon + 1
        self._cache: OrderedDict[tuple[int, str], Array] = OrderedDict()
        self._is_closed = False
        self._cleanup = weakref.finalize(self, place.remove) if place.is_temporary else None

    @classmethod
    def open(cls, place: Place) -> SolutionStore:
        """An existing solution, finished or not, for reading."""
        files = ZarrFiles(place.name, place.for_reading(), REMEDY)
        try:
            results = cls(place, files, _read_manifest(files), None)
        except StoreNotFoundError:
            if place.is_begun:  # or is being removed, to be made anew
                raise StoreNotFoundError(f"{place.name}: is not finished; run the same command again to continue") from None
            raise
        results._find_levels()
        return results

    @classmethod
    def open_or_create(
        cls, place: Place, manifest: Json, *, compression: Compression, overwrite: bool = False
    ) -> SolutionStore:
        """A solution with the content that ``manifest`` tells: finished, to be continued, or new."""
        with reporting(place.name):
            if place.exists and not overwrite:
                with contextlib.suppress(StoreNotFoundError):
                    found = cls.open(place)
                    _check_content(place.name, manifest, found.manifest)
                    if found.next_level < 0:
                        found._tidy()
                        return found
            files = ZarrFiles(place.name, place.for_writing(), REMEDY)
            try:
                results = cls(place, files, manifest, compression)
                results._prepare(overwrite)
                return results
            except BaseException:
                place.abandon()
                raise

    def _prepare(self, overwrite: bool) -> None:
        """Under the lock: begin anew, or remove what was not committed."""
        refuse_strangers(self.place.name, self._files.names())
        found = None
        with contextlib.suppress(StoreNotFoundError):
            if not overwrite:
                found = _read_manifest(self._files)
        if found is None:
            for name in sorted(self._files.names(), key=lambda name: name != "zarr.json"):
                self._files.delete(name)
            self._files.write_record(ROOT, self.manifest)
            return
        _check_content(self.place.name, self.manifest, found)
        self.manifest = found
        self._find_levels()
        if self._markers and self.next_level >= 0:
            self.carried()  # if that is damaged, nothing is touched
        for name in self._leftovers():
            self._files.delete(name)

    def _leftovers(self) -> list[str]:
        """What a killed writer left, and nobody needs."""
        keep = {"zarr.json", *map(level_name, self._markers)}
        if self.next_level >= 0:
            keep.add(carry_name(self.next_level + 1))
        return [name for name in self._files.names() if name not in keep and _is_our_name(name)]

    def _tidy(self) -> None:
        """Remove what the maker of a finished solution left when it was killed."""
        if not self._leftovers() and not self.place.is_begun:
            return
        with contextlib.suppress(OSError):  # read-only, or somebody is making it anew
            files = ZarrFiles(self.place.name, self.place.for_writing(), REMEDY)
            for name in self._leftovers():
                files.delete(name)
        self.place.release()

    def _find_levels(self) -> None:
        t = self._horizon
        while t >= 0 and (marker := self._files.read_record(level_name(t))) is not None:
            self._check_marker(t, marker)
            self._markers[t] = marker
            t -= 1
        self._handed_over = t + 1
        there = set(self._files.names()) if t > 0 else set()
        for below in range(t - 1, -1, -1):  # levels are committed from the last to the first
            if level_name(below) in there and self._files.read_record(level_name(below)) is not None:
                raise DamagedStoreError(
                    f"{self.place.name}: the commit marker of level {t} is missing, though level {below} below it is there. "
                    f"{REMEDY}"
                )

    def _check_marker(self, t: int, marker: Json) -> None:
        try:
            check_solution_marker(marker)
            if self._rules is not None:
                self._rules.check_marker(t, marker)
        except Unfit as error:
            raise self._files.damaged(error) from None

    def _checked(self, t: int, name: str, array: Array) -> Array:
        """An array, or rows of one, whose numbers are what they may be."""
        try:
            if self._rules is not None:
                self._rules.check_numbers(t, name, array)
        except Unfit as error:
            raise self._files.damaged(error) from None
        return array

    @property
    def name(self) -> str:
        return self.place.name.rstrip("/").replace("\\", "/").rpartition("/")[2]

    @property
    def next_level(self) -> int:
        return self._handed_over - 1

    # --- checking ---------------------------------------------------------------------------------------------------------

    @property
    def levels(self) -> list[int]:
        """Those that are committed."""
        return sorted(self._markers)

    def n_arrays_of(self, t: int) -> int:
        return len(self._markers[t]["arrays"])

    def problems_of(self, t: int) -> list[str]:
        """Check every array of a level: what is wrong with them."""
        problems: list[str] = []
        at_rest: dict[str, Array] = {}
        for name in self._markers[t]["arrays"]:
            try:
                at_rest[name] = self.is_at_rest(t, name)
            except DamagedStoreError as error:
                problems.append(str(error).removesuffix(f" {REMEDY}"))
        if "qr" in at_rest:
            terminal_S = at_rest["qr"]
            for name, rest_S in at_rest.items():
                if not rest_S[terminal_S].all() or (name == "xh" and not np.array_equal(rest_S, terminal_S)):
                    problems.append(
                        f"{self.place.name}: level {t}, array {name!r}: other states than by array 'qr' have the numbers of "
                        "terminal ones"
                    )
        return problems

    def is_at_rest(self, t: int, name: str) -> Array:
        """Which states have the numbers that terminal ones have: 0, or what a robot's end is worth, (S,) bool."""
        rest = self.manifest["content"].get("params", {}).get("terminal_Vr", 0) if name == "vr" else 0
        about, found = self._markers[t]["arrays"][name], [np.zeros(0, dtype=np.bool_)]
        for _, rows in self._files.read_pieces(level_name(t), name, about, range(about["shape"][0])):
            found.append((self._checked(t, name, rows) == rest).all(axis=tuple(range(1, rows.ndim))))
        return np.concatenate(found)

    # --- writing ------------------------------------------------------------------------------------------------------

    def put(self, t: int, arrays: Arrays, carry: Callable[[], Arrays]) -> None:
        """Write a level in the background. An error shows here or later, at the next call."""
        self._collect(backlog=self.backlog_bytes)
        carried = carry() if t > 0 and not self.place.is_temporary else {}  # nobody continues a temporary store
        self._borrowed[t] = sum(array.nbytes for array in carried.values() if array.base is not None)
        nbytes = sum(array.nbytes for array in [*arrays.values(), *carried.values()])
        write = partial(self._write_level, t, arrays, carried)
        self._writer.put(t, nbytes, write, groups=(level_name(t), carry_name(t)), obsolete=carry_name(t + 1))
        self._handed_over = t

    def settle(self, t: int) -> None:
        self._collect(through=t)

    def _write_level(self, t: int, arrays: Arrays, carried: Arrays) -> Json:
        assert self._compression is not None
        about = self._write_arrays(level_name(t), arrays, self._compression)
        marker = {"level": t, "arrays": about, **self._labels(t)}
        if carried:
            self._files.write_record(carry_name(t), self._write_arrays(carry_name(t), carried, _RAW))
        self._files.write_record(level_name(t), marker)
        return marker

    def _labels(self, t: int) -> Json:
        """What the numbers along dimensions mean, so that a level that is opened by itself explains itself.

        Taken from the manifest that is there, so that a run which is continued ends with the same bytes.
        """
        manifest, content = self.manifest, self.manifest["content"]
        if (
            "actions" not in manifest or "humans" not in content
        ):  # begun by an earlier version; temporary, for nobody to open
            return {}
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

    def _collect(self, *, backlog: int = -1, through: int | None = None) -> None:
        """Take note of levels that were committed; waits as :meth:`BackgroundWriter.written` does."""
        for marker in self._writer.written(backlog=backlog, through=through):
            self._markers[marker["level"]] = marker
            self._borrowed.pop(marker["level"], None)

    def carried(self) -> Arrays:
        group = carry_name(self._handed_over)
        about = self._files.read_record(group)
        if about is None:
            raise self._files.damaged(
                f"group {group} is missing, without which level {self.next_level}, whose commit marker (the attributes of "
                "its zarr.json) is missing, too, cannot be solved"
            )
        try:
            check_abouts(about)
            if self._rules is not None:
                self._rules.check_carry(group, about)
            tables = self._files.read_arrays(group, about)
            for name, table in tables.items():
                check_table(group, name, table)
        except Unfit as error:
            raise self._files.damaged(error) from None
        return tables

    def damaged(self, problem: str) -> Exception:
        return self._files.damaged(problem)

    def finish(self) -> None:
        self._collect()
        self._stop_writing()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._collect()
        self._is_closed = True
        self._stop_writing()
        self._cache.clear()
        if self._cleanup is not None:
            self._cleanup()

    def remove(self) -> None:
        """Close, and leave nothing behind."""
        if self._is_closed:
            return
        with contextlib.suppress(Exception):
            self._collect()
        if self._compression is None:  # it is finished, and only read
            self.close()
            return
        for name in sorted(self._files.names(), key=lambda name: name != "zarr.json"):
            self._files.delete(name)
        if self.place.folder is not None:
            with contextlib.suppress(OSError):
                self.place.folder.rmdir()
        self.close()  # the lock goes last: as long as it is there, everybody knows that nothing is finished

    def _stop_writing(self) -> None:
        self._writer.stop()
        if not self.place.is_temporary:
            self.place.release()

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, t: int, name: str) -> Array:
        """An array of a level; those used last are remembered."""
        about = self._about(t, name)
        if (t, name) not in self._cache:
            self._cache[t, name] = self._checked(t, name, self._files.read_array(level_name(t), name, about))
            while len(self._cache) > 1 and sum(array.nbytes for array in self._cache.values()) > CACHE_BYTES:
                self._cache.popitem(last=False)
        self._cache.move_to_end((t, name))
        return self._cache[t, name]

    def pieces(self, t: int, name: str, places: Bodies) -> Iterator[tuple[slice, Array]]:
        about = self._about(t, name)
        if (t, name) in self._cache:
            yield slice(0, len(places)), rows_at(self.get(t, name), places)
        else:
            for chosen, rows in self._files.read_pieces(level_name(t), name, about, places):
                yield chosen, self._checked(t, name, rows)

    def _about(self, t: int, name: str) -> Json:
        """What the marker of a level says of an array."""
        if self._is_closed:
            raise StoreError(f"{self.place.name}: this solution was closed; solve again to open it")
        self._collect()
        if t not in self._markers:
            raise StoreError(f"{self.place.name}: level {t} is not solved yet; call solve again to continue")
        about: Json = self._markers[t]["arrays"][name]
        return about

    def has(self, t: int, name: str) -> bool:
        self._collect()
        return name in self._markers[t]["arrays"]

    @property
    def held_bytes(self) -> int:
        waiting = max(0, self._writer.nbytes - sum(self._borrowed.values()))
        return waiting + sum(array.nbytes for array in self._cache.values())

    def give_back(self) -> None:
        self._cache.clear()
        self.backlog_bytes = 0

    def compressed_bytes(self) -> dict[str, int] | None:
        return bytes_by_array(self.place)

    def describe(self) -> str:
        nbytes = nbytes_of(self.place)
        size = "" if nbytes is None else f"{nbytes / 1e6:.1f} MB "
        return f"{size}in {'a temporary folder' if self.place.is_temporary else self.place.name}"


def refuse_strangers(place: str, names: list[str]) -> None:
    """Never write among, or over, what is not ours."""
    strangers = sorted(name for name in names if not _is_our_name(name))
    if strangers:
        raise StoreMismatchError(
            f"{place}: is no solution, it has {short_repr(strangers[:5])}; choose an empty or new place"
        )


def is_solution(place: Place) -> bool:
    """Whether there is a solution at a place, sound or not."""
    if not place.exists:
        return False
    with contextlib.suppress(StoreError):
        manifest = ZarrFiles(place.name, place.for_reading(), REMEDY).raw_record(ROOT)
        return bool(manifest) and manifest.get("format") == FORMAT  # type: ignore[union-attr]
    return False


def _dimensions(name: str, array: np.ndarray) -> tuple[str, ...]:
    return ARRAYS.get(name, ("row", "column")[: array.ndim])


def _is_our_name(name: str) -> bool:
    return re.fullmatch(r"zarr\.json|(level|carry)_\d{5,}", name) is not None or is_half_a_file(name)


def _read_manifest(files: ZarrFiles) -> Json:
    manifest = files.raw_record(ROOT)
    if manifest is None and any(name.startswith("level_") for name in files.names()):
        raise RootlessStoreError(f"{files.name}: has levels, but its own record, the file zarr.json, is missing. {REMEDY}")
    if not manifest:
        raise StoreNotFoundError(f"{files.name}: no solution is there; solve(world, out=...) makes one")
    if manifest.get("format") != FORMAT or manifest.get("version") != VERSION:
        raise StoreMismatchError(
            f"{files.name}: has {shown(manifest.get('format'))}, version {shown(manifest.get('version'))}; expected "
            f"{FORMAT!r}, version {VERSION}: choose another place"
        )
    checked = files.read_record(ROOT)
    assert checked is not None
    try:
        check_solution_manifest(checked)
    except Unfit as error:
        raise files.damaged(f"the metadata of {spoken(ROOT)}: {error}") from None
    return checked


_FOLLOWING = ("horizon", "levels", "goals", "robot_profiles")  # parts of a manifest that follow from its content


def _check_content(name: str, asked: Json, found: Json) -> None:
    other = [part for part in asked["content"] if asked["content"][part] != found["content"].get(part)]
    wrong = [part for part in _FOLLOWING if part in found and part in asked and asked[part] != found[part]]
    if wrong and not other:
        raise DamagedStoreError(
            f"{name}: the metadata of the store: {', '.join(wrong)} cannot be those of what was solved. {REMEDY}"
        )
    if other:
        details = "; ".join(
            f"{part}: there {short_repr(found['content'].get(part), 60)}, here {short_repr(asked['content'][part], 60)}"
            for part in other
        )
        raise StoreMismatchError(
            f"{name}: holds a solution that differs in {', '.join(other)} from what is asked for ({details}). Choose "
            "another place, or replace it with overwrite=True"
        )
