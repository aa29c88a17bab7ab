"""A pass: runs that share a world and horizon, solved together. This is what a worker process does."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from empo_bi.batch import manifest as manifests
from empo_bi.batch.folder import Folder, Json
from empo_bi.batch.metrics import Metric, MetricReference
from empo_bi.batch.runs import Run
from empo_bi.batch.spec import KEEPS
from empo_bi.batch.summary import columns_of, rollout_columns
from empo_bi.dag.dag import Dag
from empo_bi.dag.slices import EXACT
from empo_bi.enumeration import enumerate_dag
from empo_bi.errors import MemoryLimitError, TooManyStatesError
from empo_bi.keeping import is_url
from empo_bi.memory.machine import available_bytes, peak_bytes, reset_peak, resident_bytes
from empo_bi.opening import SOLUTION
from empo_bi.options import Params
from empo_bi.results.levels import ARRAYS
from empo_bi.results.solution import Solution
from empo_bi.solver import Solver

# DAGs up to this size are enumerated again in less time than a store of theirs takes to be opened, and passes over them
# are over before anybody could kill them with much loss: they stay in memory.
SMALL_BODIES, SMALL_STATES = 50_000, 200_000


@dataclass(frozen=True)
class Wishes:
    """What is wanted of all runs of a batch."""

    out: str
    call: str  # of run_batch that wishes this
    asked: Json  # as manifests have it
    keep: str
    precision: str
    per_goal: bool
    rollouts: int
    metrics: tuple[MetricReference, ...]
    memory_limit: Any
    max_states: int | None
    sharing: int = 1  # workers on one machine, which share its memory where there is no limit


@dataclass(frozen=True)
class Pass:
    """Runs of one world and horizon."""

    runs: tuple[Run, ...]
    wishes: Wishes

    @property
    def folder(self) -> Folder:
        return Folder(self.wishes.out)

    @property
    def memory_limit(self) -> Any:
        """What the process may hold: what was said, or its share of what there is."""
        given = self.wishes.memory_limit
        return int(0.8 * available_bytes() / self.wishes.sharing) + resident_bytes() if given is None else given

    def folder_of(self, run: Run) -> Folder:
        return self.folder / "runs" / run.folder_name


def do_pass(work: Pass) -> int:
    """Solve runs, and write what came of each to its folder; returns their number. Failures are written down as well."""
    reset_peak()
    begun = {run: manifests.begun(run, work.wishes.asked, work.wishes.call) for run in work.runs}
    for run, manifest in begun.items():
        work.folder_of(run).write_json(manifests.FILE, manifest)
        work.folder_of(run).log(f"begun on {manifest['machine']['host']}: {run.about.get('title', run.world.name)}")
    with _failing(work, begun, work.runs), _logging(work):
        metrics = [reference.load() for reference in work.wishes.metrics]
        world = work.runs[0].world.load(work.runs[0].given_steps)
        start = time.perf_counter()
        dag, kept_at = _dag_of(world, work)
        with dag:
            _solve_and_tell(work, world, dag, kept_at, time.perf_counter() - start, begun, metrics, work.runs)
    return len(work.runs)


@contextlib.contextmanager
def _failing(work: Pass, begun: dict[Run, Json], runs: Sequence[Run]) -> Iterator[None]:
    """Whatever goes wrong is written to the runs' folders, and is nobody else's trouble."""
    try:
        yield
    except Exception as error:
        for run in runs:
            manifest = manifests.failed(begun[run], error)
            work.folder_of(run).log(f"failed: {manifest['error']['traceback'] or manifest['error']['message']}")
            work.folder_of(run).write_json(manifests.FILE, manifest)


@contextlib.contextmanager
def _logging(work: Pass) -> Iterator[None]:
    """Warnings go to the logs of the runs."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for warning in caught:
        for run in work.runs:
            work.folder_of(run).log(f"warning: {warning.message}")


def _dag_of(world: Any, work: Pass) -> tuple[Dag, str | None]:
    """The DAG, and where it is kept below the batch's folder; None for a small one, which stays in memory."""
    options: Json = {"precision": EXACT, "progress": False, "memory_limit": work.memory_limit}
    most = work.wishes.max_states
    try:
        small = SMALL_BODIES if most is None else min(SMALL_BODIES, most)
        dag = enumerate_dag(world, max_states=small, **options)
        if dag.n_states <= SMALL_STATES:
            return dag, None
        dag.close()
    except TooManyStatesError:
        if most is not None and most <= SMALL_BODIES:
            raise
    name = f"dags/{work.runs[0].world_key}"
    with _turn(work.folder, name):
        return enumerate_dag(world, store=(work.folder / name).place, max_states=most, **options), name


@contextlib.contextmanager
def _turn(folder: Folder, name: str) -> Iterator[None]:
    """One worker at a time makes a DAG; the others wait for it, and open it. At URLs, one worker has all its runs."""
    if is_url(folder.place):
        yield
        return
    from empo_bi.store.lock import WriterLock

    path = folder.place / f"{name}.turn"
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = WriterLock(path, patient=True)
    try:
        yield
    finally:
        lock.release()


def _solve_and_tell(
    work: Pass, world: Any, dag: Dag, kept_at: str | None, enumerate_seconds: float, begun: dict[Run, Json],
    metrics: Sequence[Metric], runs: Sequence[Run],
) -> None:  # fmt: skip
    """Solve runs in one sweep if memory allows, otherwise in several; one that fails leaves the others alone."""
    rest = (kept_at, enumerate_seconds, begun, metrics)
    start = time.perf_counter()
    try:
        solutions = _solutions(work, world, dag, kept_at, runs)
    except Exception as error:
        if len(runs) == 1:
            raise
        for run in runs:
            work.folder_of(run).log(f"not together with {len(runs) - 1} others ({type(error).__name__}: {error})")
        middle = len(runs) // 2 if isinstance(error, MemoryLimitError) else 1
        for part in (runs[:middle], runs[middle:]):
            with _failing(work, begun, part):
                _solve_and_tell(work, world, dag, *rest, part)
        return
    seconds = time.perf_counter() - start
    for run, solution in zip(runs, solutions, strict=True):
        with _failing(work, begun, [run]), solution:
            timings = {
                "enumerate_seconds": enumerate_seconds,
                "solve_seconds": seconds / len(runs),
                "runs_in_pass": len(runs),
            }
            _tell(work, run, solution, kept_at, timings, begun[run], metrics)


def _solutions(work: Pass, world: Any, dag: Dag, kept_at: str | None, runs: Sequence[Run]) -> list[Solution]:
    stays_in_memory = work.wishes.keep == "summary" and kept_at is None
    return Solver(
        world,
        [Params(**run.params) for run in runs],
        folders=None if stays_in_memory else [work.folder_of(run).place for run in runs],
        arrays=frozenset(KEEPS[work.wishes.keep] or ARRAYS),
        dag=dag,
        precision=work.wishes.precision,
        memory_limit=work.memory_limit,
        progress=False,
    ).solutions()


def _tell(
    work: Pass, run: Run, solution: Solution, kept_at: str | None, timings: Json, manifest: Json, metrics: Sequence[Metric]
) -> None:
    """Write down what a solution says."""
    start = time.perf_counter()
    columns = columns_of(solution, per_goal=work.wishes.per_goal)
    for metric in metrics:
        columns |= metric.columns(solution)
    if work.wishes.rollouts:
        columns |= rollout_columns(solution, work.wishes.rollouts, run.rollout_seed)
    timings |= {"metric_seconds": time.perf_counter() - start, "peak_bytes": peak_bytes()}
    if work.wishes.keep == "summary":
        solution.close()
        work.folder_of(run).remove(SOLUTION)
    work.folder_of(run).log(f"finished: {solution.dag.n_states:,} states, V_r = {columns['V_r']:.7g}")
    work.folder_of(run).write_json(
        manifests.FILE, manifests.finished(manifest, columns=columns, timings=timings, dag=kept_at)
    )
