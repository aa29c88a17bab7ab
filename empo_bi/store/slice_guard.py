"""Everything that is read of a DAG's store passes here: from a folder, a zip file or a URL, to be used or to be verified."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.key_index import KeyIndex
from empo_bi.dag.levels import Levels
from empo_bi.dag.slices import BodySlice, as_array, places_in
from empo_bi.dag.successor_check import SuccessorCheck
from empo_bi.store.body_census import BodyCensus
from empo_bi.store.format_names import level_name, spoken
from empo_bi.store.records import FormatError
from empo_bi.store.slice_arrays import nbytes_when_read
from empo_bi.store.slice_rules import (
    KeyCheck,
    StoreRules,
    check_bodies,
    check_largest_count,
    check_levels,
    check_marker,
    check_slice,
    is_nested,
)
from empo_bi.store.zarr_files import ZarrFiles
from empo_bi.types import Array, Arrays, Json

LARGE = 1 << 20  # bytes of an array: from here on, its files are counted before anything is made for it


class SliceGuard:
    """Refuses what is not as the format says, with an error that names store, level and array."""

    def __init__(self, files: ZarrFiles, manifest: Json, *, has_states: bool) -> None:
        self._files = files
        self._rules = StoreRules.of(manifest, has_states=has_states)
        self._key_check: KeyCheck | None = None
        self._initial_key: npt.NDArray[np.uint64] | None = None
        self._nested: tuple[int, bool] = (0, False)  # of how many levels, and whether they are
        self._census = None if self._rules.is_packed else BodyCensus(shares_bodies=self._rules.shares_bodies)
        self._successor_check: SuccessorCheck | None = None
        self._lock = threading.Lock()

    def use_keys_of(self, keys: Any) -> None:
        """Hold keys to what a world, or something else that reads them, says of them."""
        self._key_check, self._initial_key = keys.problem_of_keys, getattr(keys, "initial_key", None)

    def check_levels(self, markers: Sequence[Json], *, is_finished: bool) -> None:
        """Commit markers of levels 0, 1, ...; sizes are held against files before memory is taken for them."""
        with self._files.naming_damage():
            check_levels(markers, self._rules, is_finished=is_finished)
        for t, marker in enumerate(markers):
            for name, about in marker["arrays"].items():
                if nbytes_when_read(name, about) >= LARGE:
                    self._files.check_there(level_name(t), name, about)

    def check_frontier(self, group: str, marker: Json) -> None:
        with self._files.naming_damage():
            check_marker(spoken(group), marker, self._rules, is_level=False)

    def check_whole_frontier(self, pieces: Sequence[BodySlice], last: Json, n_bodies: int) -> None:
        """What is known of levels to come: with the ``n_bodies`` of all levels, it is all that the last one has found."""
        with self._files.naming_damage():
            values = [last["value"], *(piece.value for piece in pieces)]
            n_added = sum(len(piece.added) for piece in pieces)
            if n_bodies + n_added != last["n_known"] or any(a >= b for a, b in itertools.pairwise(values)):
                raise FormatError("the frontier has other bodies, or other levels, than its level has found")
            if self._rules.shares_bodies and pieces:
                ahead = pieces[0]
                is_next = self._rules.is_part or ahead.value == values[0] + 1
                if len(pieces) > 1 or not is_next or ahead.added != range(n_bodies, last["n_known"]):
                    raise FormatError("the frontier is not that of the next level")

    def check_arrays(self, group: str, marker: Json, arrays: Arrays, markers: Sequence[Json]) -> None:
        """Arrays as they were read, before anything is made of them; ``markers`` are those of all levels."""
        t = marker.get("level")
        n_bodies = markers[-1]["n_known"]
        if self._rules.shares_bodies and t is not None:
            n_bodies = markers[t - 1]["n_known"] if t else marker["n_bodies"]
        with self._files.naming_damage():
            check_slice(spoken(group), marker, arrays, self._rules, n_bodies, self._key_check)
            is_first = t == 0 and "key" in arrays and self._initial_key is not None and not self._rules.is_part
            if is_first and not np.array_equal(arrays["key"][:1], self._initial_key):  # type: ignore[arg-type]
                raise FormatError(f"{spoken(group)}, array 'key': the first state is not the initial state of the world")

    def check_counts(self, group: str, marker: Json, count_EJ: Array) -> None:
        """Counts of some rows, before so many transitions are read."""
        with self._files.naming_damage():
            check_largest_count(spoken(group), marker, count_EJ, self._rules)

    def check_stretch(self, group: str, marker: Json, arrays: Arrays, n_entries: int) -> None:
        """Counts, successors and probabilities of some rows, which have so many transitions by their counts."""
        with self._files.naming_damage():
            if len(arrays["succ"]) != n_entries:
                raise FormatError(f"{spoken(group)}, array 'count': its numbers sum to more than there are transitions")
            if n_entries:
                check_slice(spoken(group), {**marker, "n_transitions": n_entries}, arrays, self._rules, 0, None)

    def check_end(self, group: str, marker: Json, n_entries: int) -> None:
        """After the last stretch."""
        with self._files.naming_damage():
            if n_entries != marker["n_transitions"]:
                raise FormatError(
                    f"{spoken(group)}, array 'count': its numbers sum to {n_entries:,}, not to all transitions"
                )

    def check_piece(self, group: str, piece: BodySlice) -> None:
        """A slice by itself."""
        with self._files.naming_damage():
            check_bodies(spoken(group), piece)
            if piece.states is not None and len(piece.states) != len(piece.added):
                raise FormatError(
                    f"{spoken(group)}, array 'states': {len(piece.states):,} states for {len(piece.added):,} bodies"
                )

    def check_place(
        self, t: int, piece: BodySlice, markers: Sequence[Json], head: Callable[[int], BodySlice], *, is_finished: bool
    ) -> None:
        """A slice among all levels; ``head(t)`` reads the bodies of one."""
        if self._census is None:
            return
        with self._files.naming_damage(), self._lock:  # slices are read ahead by another thread
            while self._census.n_levels < len(markers):
                self._census.add(head(self._census.n_levels), markers[-1]["n_known"])
            self._census.check(t, piece, is_finished=is_finished)

    def successor_check(
        self, t: int, markers: Sequence[Json], members: Callable[[int], object], *, is_finished: bool
    ) -> SuccessorCheck | None:
        """What holds successors of level ``t`` to the next one; None where that is known already, or cannot be known."""
        is_last = t == len(markers) - 1
        if not self._rules.shares_bodies or (is_last and not is_finished):
            return None
        if self._nested[0] != len(markers):
            self._nested = (len(markers), is_nested(markers, self._rules, is_finished=is_finished))
        if self._nested[1]:
            return None
        if self._successor_check is None:
            self._successor_check = SuccessorCheck(
                max(markers[-1]["n_known"], 1), lambda problem: self._files.damaged(problem)
            )
        self._successor_check.expect(t + 1, as_array(range(0) if is_last else members(t + 1)))  # type: ignore[arg-type]
        return self._successor_check


def check_successors(levels: Levels, t: int, n_profiles: int) -> None:
    """Hold all transitions of a level to the next one, where its shape does not tell: a long look, to verify a store."""
    check = levels.successor_check(t)
    if check is None:
        return
    piece = levels.part(t, ("members", "ended"))
    going_on = as_array(piece.members)[~np.broadcast_to(piece.ended, (len(piece.members),))]
    for i in range(t + 1):
        if levels.sizes[i].n_transitions:
            for source in levels.stretches(i, n_profiles, going_on):
                assert source.succ_K is not None
                row_M = places_in(source.expanded, going_on)[1]
                check.check(row_M, source.starts(n_profiles), n_profiles, source.succ_K)


def check_distinct(levels: Levels) -> None:
    """Whether no key, and no state of a world written in Python, is there twice."""
    index, n_states = None, 0
    texts: set[str] = set()  # whose hashes nobody can foresee; numbers could be chosen so that their hashes are the same
    for t, piece in enumerate(levels.heads()):
        if piece.key_BW is not None:
            index = index or KeyIndex(piece.key_BW.shape[1])
            index.add(piece.key_BW)
        if piece.states is not None:
            n_states += len(piece.states)
            texts.update(map(repr, piece.states))
        n_keys = piece.added.stop if index is not None and len(piece.added) else None  # type: ignore[union-attr]
        if len(texts) < n_states or (index is not None and n_keys is not None and len(index) < n_keys):
            raise levels.damaged(f"level {t}: a state is there twice")
