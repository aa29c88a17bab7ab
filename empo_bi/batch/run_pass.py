"""A pass: runs that share a world and horizon, solved together by one worker."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from empo_bi.batch import manifest as manifests
from empo_bi.batch.at_work import Journal
from empo_bi.batch.metrics import Metric, MetricReference
from empo_bi.batch.runs import Run
from empo_bi.batch.summary import columns_of, rollout_columns
from empo_bi.dag.dag import Dag
from empo_bi.dag.slices import EXACT
from empo_bi.errors import (
    DamagedStoreError,
    InvalidStateError,
    MemoryLimitError,
    MetricError,
    StoreError,
    StoreLockedError,
    StoreMismatchError,
    TooManyStatesError,
)
from empo_bi.problem.params import Params
from empo_bi.results.solution import Solution
from empo_bi.runtime.byte_sizes import Size
from empo_bi.runtime.compilation import compilations
from empo_bi.runtime.machine import available_bytes, peak_bytes, reset_peak, resident_bytes
from empo_bi.runtime.wording import counted
from empo_bi.solving import run_manifest
from empo_bi.solving.enumeration import enumerate_dag
from empo_bi.solving.options import Storage, resources_from
from empo_bi.solving.pipeline import Pipeline
from empo_bi.solving.run_manifest_rules import KEEPS
from empo_bi.store.json_states import JsonStates
from empo_bi.store.small_files import Folder
from empo_bi.store.solution_folders import SOLUTION, is_url
from empo_bi.store.solved_levels import ARRAYS
from empo_bi.types import Json
from empo_bi.world.as_model import Model, as_model
from empo_bi.world.model import World

# DAGs up to this size stay in memory, if finding their first states is quick: enumerating them again takes less time than
# opening a store.
SMALL_BODIES, SMALL_STATES = 50_000, 200_000
PROBE_BODIES, PROBE_SECONDS = 2_000, 2.0
RUNS_AT_ONCE = 16  # more sets of parameters in one sweep gain nothing
# Sweeps in memory are three times as fast as with stores, but lost if the batch is stopped, so they have to be short.
# Work is transitions times columns of goals times runs, of which a core does about 1e9 in a second.
UNKNOWN_COLUMNS = 100  # of goals that differ from state to state
WORK_AT_ONCE = 1e10  # of a sweep in memory that several runs share
MOST_WORK_IN_MEMORY = 3e10  # of a single run; beyond that, levels go to a store one by one
LOCK_SECONDS = 600  # to wait for workers of a killed batch to release their stores; on a cluster, at their next level
OURS_SECONDS = 1  # between checks whether a run still belongs to this call
WATCH_SECONDS = 0.2  # between checks whether the batch's process still exists
Result = TypeVar("Result")


@dataclass(frozen=True)
class BatchSettings:
    """Options that are the same for all runs of a batch.

    Attributes
    ----------
    call : identifies the call of ``run_batch``; ``asked`` is what it asks for, as manifests record it
    sharing : workers on one machine, which share its memory if there is no limit
    parent : the process whose end ends a worker; 0 for none
    progress : whether to show the progress of levels as well as of runs
    """

    out: str
    call: str
    asked: Json
    precision: str
    per_goal: bool
    rollouts: int
    metrics: tuple[MetricReference, ...]
    memory_limit: Size | None
    max_states: int | None
    sharing: int = 1
    parent: int = 0
    progress: bool = False


@dataclass(frozen=True)
class Pass:
    """Runs of one world and horizon, for which the same is kept; ``before`` has the manifests of earlier attempts."""

    runs: tuple[Run, ...]
    keep: str
    settings: BatchSettings
    before: dict[str, Json] = field(default_factory=dict)

    @property
    def folder(self) -> Folder:
        return Folder(self.settings.out)

    def folder_of(self, run: Run) -> Folder:
        return self.folder / "runs" / run.folder_name

    @property
    def memory_limit(self) -> Size:
        """What the process may hold: the given limit, or its share of the available memory."""
        given = self.settings.memory_limit
        return int(0.8 * available_bytes() / self.settings.sharing) + resident_bytes() if given is None else given

    def begun(self, run: Run) -> Json:
        asked = {**self.settings.asked, "keep": self.keep}
        return manifests.begun(run, asked, self.settings.asked, self.settings.call, self.before.get(run.key))


class _TakenOverError(StoreError):
    """Another call of the batch has taken over the runs of this worker."""


class _Recorder:
    """Records what happens to the runs of a pass, in the manifests and logs of their folders."""

    def __init__(self, work: Pass) -> None:
        self._work = work
        first = work.runs[0]
        what = f"{first.world.name}, {counted(first.steps, 'step')}" if first.steps else first.world.name
        self.journal = Journal(work.folder, work.settings.call, what, len(work.runs))
        self.manifests = {run.key: work.begun(run) for run in work.runs}

    def begin(self) -> None:
        for run in self._work.runs:
            with self.failures([run]):
                self._write(run, self.manifests[run.key], f"begun on {self.manifests[run.key]['machine']['host']}")

    def finish(self, run: Run, log: str, **results: object) -> None:
        self._write(run, manifests.finished(self.manifests[run.key], **results), f"finished: {log}")

    def log(self, runs: Sequence[Run], text: str) -> None:
        for run in runs:
            self._work.folder_of(run).log(text)

    @contextlib.contextmanager
    def failures(self, runs: Sequence[Run]) -> Iterator[None]:
        """Record whatever goes wrong as a failure of these runs, and go on."""
        try:
            yield
        except (Exception, SystemExit) as error:
            for run in runs:
                self.fail(run, error)

    def fail(self, run: Run, error: BaseException, **results: object) -> None:
        manifest = manifests.failed(self.manifests[run.key], error, **results)
        self.manifests[run.key] = manifest  # in case nothing can be written
        with contextlib.suppress(OSError):
            if self._is_ours(run):
                self._write(run, manifest, f"failed: {manifest['error']['traceback'] or manifest['error']['message']}")

    def _is_ours(self, run: Run) -> bool:
        """Whether no later call has taken over a run, which happens if a worker of a cluster outlives its caller."""
        found = run_manifest.read_manifest(self._work.folder_of(run))
        return found is None or found["call"] == self._work.settings.call

    def after_level(self, runs: Sequence[Run]) -> Callable[[int, int, int], None]:
        """A function that tells the level, and stops the sweep if a later call has taken over the runs."""
        checked = time.monotonic()

        def check(level: int, *_: int) -> None:
            nonlocal checked
            self.journal.tell_sometimes(f"solving, {counted(level, 'level')} to go", len(runs))
            if time.monotonic() - checked > OURS_SECONDS:
                checked = time.monotonic()
                if not any(self._is_ours(run) for run in runs):
                    raise _TakenOverError("the batch was called again, and the new call does this run")

        return check

    def _write(self, run: Run, manifest: Json, log: str) -> None:
        folder = self._work.folder_of(run)
        run_manifest.write_manifest(folder, manifest)
        self.manifests[run.key] = manifest
        folder.log(log)


def do_pass(work: Pass) -> dict[str, Json]:
    """Solve runs, and write the results of each to its folder. Returns all manifests by key, also of failed runs."""
    if work.settings.parent:
        _end_with(work.settings.parent)
    reset_peak()
    recorder = _Recorder(work)
    with recorder.journal.removed_at_the_end():
        return _do_pass(work, recorder)


def _do_pass(work: Pass, recorder: _Recorder) -> dict[str, Json]:
    recorder.journal.tell("starting")
    recorder.begin()
    runs = [run for run in work.runs if recorder.manifests[run.key]["status"] == manifests.RUNNING]
    in_worker = bool(work.settings.parent)  # several workers share a terminal
    with recorder.failures(runs), _warnings_logged(recorder, runs), compilations.quiet(in_worker):
        metrics = [_unchanged(reference.load(), work.settings.asked) for reference in work.settings.metrics]
        world = work.runs[0].world.load_again(work.runs[0].given_steps, work.runs[0].about)
        recorder.journal.tell("finding states")
        start = time.perf_counter()
        dag, kept_at = _patiently(lambda: _dag_of(world, work), lambda error: recorder.log(runs, f"waiting: {error}"))
        seconds = time.perf_counter() - start
        with dag:
            task = _Task(work, recorder, world, dag, kept_at, seconds, metrics)
            at_once = task.runs_at_once()
            for first in range(0, len(runs), at_once):
                some = runs[first : first + at_once]
                with recorder.failures(some):
                    _solve_and_record(task, some)
    return recorder.manifests


def _unchanged(metric: Metric, asked: Json) -> Metric:
    if metric.key != asked["metrics"][metric.name]:
        raise StoreMismatchError(f"metric {metric.name}: has changed since the batch was called; run the batch again")
    return metric


def _patiently(act: Callable[[], Result], log: Callable[[StoreLockedError], None]) -> Result:
    """Wait for a lock: workers of a killed batch may take a while to end. The first wait is logged."""
    patience, is_logged = time.monotonic() + LOCK_SECONDS, False
    while True:
        try:
            return act()
        except StoreLockedError as error:
            if time.monotonic() > patience:
                raise
            if not is_logged:
                log(error)
                is_logged = True
            time.sleep(WATCH_SECONDS)


def _end_with(parent: int) -> None:
    """End this process when the batch's own process is gone; otherwise another call would find its locks.

    Ctrl-C reaches all processes of a terminal. It is for the batch's own process, which then ends the others.
    """
    name = f"empo_bi-watch-{parent}"
    if os.getpid() != parent and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.getpid() == parent or any(thread.name == name for thread in threading.enumerate()):
        return
    if os.getppid() != parent:
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name=name, daemon=True).start()


@contextlib.contextmanager
def _warnings_logged(recorder: _Recorder, runs: Sequence[Run]) -> Iterator[None]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for warning in caught:
        recorder.log(runs, f"warning: {warning.message}")


def _dag_of(world: Any, work: Pass) -> tuple[Dag, str | None]:
    """The DAG, and its place below the batch's folder; None for a small one, which stays in memory."""
    options: Json = {"precision": EXACT, "progress": work.settings.progress, "memory_limit": work.memory_limit}
    most, name = work.settings.max_states, f"dags/{work.runs[0].about['key']}"
    if _may_stay_in_memory(as_model(world), work.keep) and not (work.folder / name).names():
        dag = _small_dag(world, most, options)
        if dag is not None:
            return dag, None
    with _turn(work.folder, name):
        return enumerate_dag(world, store=(work.folder / name).place, max_states=most, **options), name


def _may_stay_in_memory(model: Model, keep: str) -> bool:
    """Whether runs do not need the stored DAG: they kept no values, or the world is data, from which it is found again.

    The run of a world that a function made could not be opened without that function otherwise.
    """
    if keep == "summary" or model.mapping is not None:
        return True
    start = model.initial_state()
    try:
        JsonStates(model, start).to_bytes([start])
    except InvalidStateError:  # such states cannot be stored
        return True
    return False


def _small_dag(world: World, most: int | None, options: Json) -> Dag | None:
    """The DAG in memory, if it is small and its states are found quickly; worlds written in Python may be slow."""
    for at_most, patience in ((min(PROBE_BODIES, SMALL_BODIES), PROBE_SECONDS), (SMALL_BODIES, math.inf)):
        dag, start = None, time.monotonic() - compilations.seconds
        try:
            dag = enumerate_dag(world, max_states=at_most if most is None else min(at_most, most), **options)
        except TooManyStatesError:
            if most is not None and most <= at_most:
                raise
        is_quick = time.monotonic() - compilations.seconds - start < patience
        if dag is not None and is_quick and dag.n_states <= SMALL_STATES:
            return dag
        if dag is not None:
            dag.close()
        if dag is not None or not is_quick:
            break
    return None


@contextlib.contextmanager
def _turn(folder: Folder, name: str) -> Iterator[None]:
    """One worker at a time makes a DAG; the others wait and open it. At URLs, one worker does all runs of a DAG."""
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


@dataclass(frozen=True)
class _Task:
    """What all runs of a pass share."""

    work: Pass
    recorder: _Recorder
    world: Any
    dag: Dag
    kept_at: str | None
    enumerate_seconds: float
    metrics: Sequence[Metric]

    @cached_property
    def work_of_a_run(self) -> float:
        """Transitions of all states, times columns of goals."""
        goals = self.dag.goals
        n_columns = UNKNOWN_COLUMNS if goals is None else len(goals.humans) * goals.n_goals
        return float(self.dag.n_transitions) * self.dag.n_states / max(1, self.dag.n_bodies) * n_columns

    @property
    def stays_in_memory(self) -> bool:
        """Whether results need no store, since nothing but numbers is kept and they are made quickly."""
        return self.work.keep == "summary" and self.kept_at is None and self.work_of_a_run <= MOST_WORK_IN_MEMORY

    def runs_at_once(self) -> int:
        """How many runs share a sweep: in memory so many that it is short, since they are all lost if it is stopped."""
        if not self.stays_in_memory:
            return RUNS_AT_ONCE
        return int(min(RUNS_AT_ONCE, max(1.0, WORK_AT_ONCE / max(1.0, self.work_of_a_run))))


def _solve_and_record(task: _Task, runs: Sequence[Run]) -> None:
    """Solve runs in one sweep; if that fails or needs too much memory, in two sweeps, and so on."""
    start = time.perf_counter()
    opened = [run.key for run in runs if _is_there(task, run)]
    try:
        solutions = _patiently(lambda: _solutions(task, runs), lambda error: task.recorder.log(runs, f"waiting: {error}"))
    except Exception as error:
        if len(runs) == 1 and isinstance(error, DamagedStoreError | StoreMismatchError) and opened:
            task.recorder.log(runs, f"solved again, since the earlier results cannot be used ({error})")
            task.work.folder_of(runs[0]).remove(SOLUTION)
            _solve_and_record(task, runs)
            return
        if len(runs) == 1 or isinstance(error, _TakenOverError):
            raise
        hint = "" if isinstance(error, MemoryLimitError) else "; one of them may be the cause"
        why = f"({type(error).__name__}: {error}){hint}"
        task.recorder.log(runs, f"cannot be solved together with {len(runs) - 1} others {why}")
        for part in (runs[: len(runs) // 2], runs[len(runs) // 2 :]):
            with task.recorder.failures(part):
                _solve_and_record(task, part)
        return
    seconds = (time.perf_counter() - start) / len(runs)
    for run, solution in zip(runs, solutions, strict=True):
        timings = {"enumerate_seconds": task.enumerate_seconds, "solve_seconds": seconds, "runs_in_pass": len(runs)}
        if run.key in opened:
            timings = task.recorder.manifests[run.key]["before"]["timings"]  # nothing was solved
        with task.recorder.failures([run]), solution:
            _record(task, run, solution, timings)


def _is_there(task: _Task, run: Run) -> bool:
    """Whether an earlier attempt has left the wanted solution, so that it only has to be opened."""
    before = task.recorder.manifests[run.key]["before"]
    if before is None or before["store"] is None or before["asked"]["keep"] != task.work.keep:
        return False
    return bool((task.work.folder_of(run) / before["store"]).names())


def _solutions(task: _Task, runs: Sequence[Run]) -> list[Solution]:
    settings = task.work.settings
    storage = Storage(
        folders=None if task.stays_in_memory else [task.work.folder_of(run).place for run in runs],
        arrays=frozenset(KEEPS[task.work.keep] or ARRAYS), precision=settings.precision,
    )  # fmt: skip
    resources = resources_from(
        memory_limit=task.work.memory_limit, progress=settings.progress, after_level=task.recorder.after_level(runs)
    )
    params = [Params(**run.params) for run in runs]
    return Pipeline.of(task.world, params, storage=storage, resources=resources, dag=task.dag).solutions()


def _record(task: _Task, run: Run, solution: Solution, timings: Json) -> None:
    """Record the results of a run, and then delete what is not kept."""
    settings, start = task.work.settings, time.perf_counter()
    task.recorder.journal.tell_sometimes("computing what goes into the table")
    columns = columns_of(solution, per_goal=settings.per_goal)
    if settings.rollouts:
        columns |= rollout_columns(solution, settings.rollouts, run.rollout_seed)
    log = f"{solution.dag.n_states:,} states, V_r = {columns['V_r']:.7g}"
    failures, metric_columns = [], {}
    for metric in task.metrics:
        try:
            found = metric.columns(solution)
            if found.keys() & columns.keys():
                raise MetricError(
                    f"metric {metric.name}: the table already has a column {min(found.keys() & columns.keys())!r}; choose "
                    "another name"
                )
            columns |= found
            metric_columns[metric.name] = list(found)
        except MetricError as error:
            failures.append(error)
    timings = {"peak_bytes": peak_bytes(), **timings, "metric_seconds": time.perf_counter() - start}
    store = None if task.work.keep == "summary" else solution.results.name
    results = {
        "columns": columns, "metric_columns": metric_columns, "timings": timings, "dag": task.kept_at, "store": store,
    }  # fmt: skip
    if failures:
        task.recorder.fail(run, failures[0], **results)
        return
    task.recorder.finish(run, log, **results)
    solution.close()
    task.work.folder_of(run).remove(SOLUTION, but=store or "")
