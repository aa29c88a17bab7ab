"""The transitions of a slice that is too large to be held, a stretch of its expanded bodies after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from empo_bi.dag.slices import BodySlice, places_in
from empo_bi.store.format_names import TRANSITIONS, level_name
from empo_bi.store.row_reader import RowReader
from empo_bi.store.slice_guard import SliceGuard
from empo_bi.store.zarr_files import ZarrFiles
from empo_bi.types import Array, IndexArray, Json


def read_stretches(
    files: ZarrFiles, guard: SliceGuard, marker: Json, head: BodySlice, n_profiles: int, nbytes: int,
    wanted: IndexArray | None,
) -> Iterator[BodySlice]:  # fmt: skip
    """Slices with the bodies of ``head``, each with as many of the expanded ones as take some ``nbytes``.

    Those without any of the ``wanted`` bodies, which ascend, are left out, and their transitions are not read.
    """
    group = level_name(marker["level"])
    read = {name: RowReader(files, group, name, about) for name, about in marker["arrays"].items() if name in TRANSITIONS}
    # Types on disk may be as wide as int32 and float64, and are widened.
    most = nbytes // 16
    # A row has a count for each profile, however few its transitions are.
    n_rows = max(1, most * marker["n_expanded"] // max(1, marker["n_transitions"], marker["n_expanded"] * n_profiles))
    first, begin = 0, 0
    while first < len(head.expanded):
        expanded = head.expanded[first : first + n_rows]
        count_EJ, end = None, begin + len(expanded) * n_profiles
        if "count" in read:
            count_EJ, n_entries = _cut(read["count"].rows(first, first + len(expanded)), most)
            guard.check_counts(group, marker, count_EJ)
            expanded, end = expanded[: len(count_EJ)], begin + n_entries
        if wanted is None or places_in(expanded, wanted)[0].any():
            arrays = {name: reader.rows(begin, end) for name, reader in read.items() if name != "count"}
            arrays |= {} if count_EJ is None else {"count": count_EJ}
            guard.check_stretch(group, marker, arrays, end - begin)
            succ_K, prob_K = arrays["succ"].astype(np.int32), arrays.get("prob")
            yield replace(head, expanded=expanded, count_EJ=count_EJ, succ_K=succ_K, prob_K=prob_K)
        first, begin = first + len(expanded), end
    guard.check_end(group, marker, begin)


def _cut(count_EJ: Array, most: int) -> tuple[Array, int]:
    """As many of the rows as have at most so many transitions, but at least one, and how many they have."""
    ends = count_EJ.sum(axis=1, dtype=np.int64).cumsum()
    n_rows = max(1, int(np.searchsorted(ends, most, side="right")))
    return count_EJ[:n_rows], int(ends[n_rows - 1])
