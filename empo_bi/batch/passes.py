"""Which runs are solved together."""

from __future__ import annotations

import math
from collections.abc import Iterable

from empo_bi.batch.runs import Run
from empo_bi.batch.work import Pass, Wishes
from empo_bi.keeping import is_url

RUNS_PER_PASS = 16  # more gain nothing, and make workers wait for each other at the end


def passes_of(runs: Iterable[Run], wishes: Wishes, workers: int) -> list[Pass]:
    """Runs of one world and horizon in passes, those whose humans are the same side by side; the longest horizons first."""
    groups: dict[str, list[Run]] = {}
    for run in {run.key: run for run in runs}.values():
        groups.setdefault(run.world_key, []).append(run)
    passes = []
    for group in groups.values():
        group.sort(key=_humans_of)
        # At URLs there are no locks, so that one worker has to do all that needs one DAG.
        n = 1 if is_url(wishes.out) else max(math.ceil(len(group) / RUNS_PER_PASS), min(workers, len(group) // 2))
        size = math.ceil(len(group) / max(1, n))
        passes += [Pass(tuple(group[i : i + size]), wishes) for i in range(0, len(group), size)]
    return sorted(passes, key=lambda work: -(work.runs[0].steps or 0))


def _humans_of(run: Run) -> str:
    """The same for runs that share phase 1."""
    return str(
        sorted((name, str(value)) for name, value in run.params.items() if name.endswith("_h") or name == "optimistic")
    )
