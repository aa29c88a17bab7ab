"""Which runs are solved together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from empo_bi.batch.run_pass import RUNS_AT_ONCE, BatchSettings, Pass
from empo_bi.batch.runs import Run
from empo_bi.solving.run_manifest_rules import KEEPS
from empo_bi.store.solution_folders import is_url
from empo_bi.types import Json


def passes_of(
    runs: Iterable[Run], keeps: Mapping[str, str], before: Mapping[str, Json], settings: BatchSettings, workers: int
) -> list[Pass]:
    """Runs of one world and horizon in passes; runs that share phase 1 are neighbours, and the longest horizons come first.

    ``keeps`` says what to keep of each run, by key; ``before`` has the manifests of earlier attempts.
    """
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        # URLs have no locks, so one worker has to do all runs of a DAG.
        groups.setdefault((run.about["key"], "" if is_url(settings.out) else keeps[run.key]), []).append(run)
    passes = []
    for group in groups.values():
        group.sort(key=_humans_of)
        keep = max((keeps[run.key] for run in group), key=lambda keep: len(KEEPS[keep]))
        n = 1 if is_url(settings.out) else max(math.ceil(len(group) / RUNS_AT_ONCE), min(workers, len(group) // 2))
        size = math.ceil(len(group) / max(1, n))
        for i in range(0, len(group), size):
            some = tuple(group[i : i + size])
            passes.append(Pass(some, keep, settings, {run.key: before[run.key] for run in some if run.key in before}))
    return sorted(passes, key=lambda work: -(work.runs[0].steps or 0))


def _humans_of(run: Run) -> str:
    """The same for runs that share phase 1."""
    theirs = {name: value for name, value in run.params.items() if name.endswith("_h") or name == "optimistic"}
    return str(sorted((name, str(value)) for name, value in theirs.items()))
