"""The transitions of a slice that is too large to be held, a stretch of its expanded bodies after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from empo_bi.dag.slices import BodySlice, IndexArray, places_in
from empo_bi.store.layout import TRANSITIONS, level_name
from empo_bi.store.records import Json
from empo_bi.store.row_reader import RowReader
from empo_bi.store.slice_guard import SliceGuard
from empo_bi.store.zarr_files import ZarrFiles


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
    n_rows, begin = max(1, nbytes // (16 * n_profiles)), 0
    for first in range(0, len(head.expanded), n_rows):
        expanded = head.expanded[first : first + n_rows]
        count_EJ = read["count"].rows(first, first + n_rows) if "count" in read else None
        end = begin + (len(expanded) * n_profiles if count_EJ is None else int(count_EJ.sum(dtype=np.int64)))
        if wanted is None or places_in(expanded, wanted)[0].any():
            arrays = {name: reader.rows(begin, end) for name, reader in read.items() if name != "count"}
            arrays |= {} if count_EJ is None else {"count": count_EJ}
            guard.check_stretch(group, marker, arrays, end - begin)
            succ_K, prob_K = arrays["succ"].astype(np.int32), arrays.get("prob")
            yield replace(head, expanded=expanded, count_EJ=count_EJ, succ_K=succ_K, prob_K=prob_K)
        begin = end
    guard.check_end(group, marker, begin)
