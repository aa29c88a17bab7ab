"""Running a batch: :func:`run_batch`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from empo_bi.batch import manifest as manifests
from empo_bi.batch.folder import Folder, Json
from empo_bi.batch.passes import passes_of
from empo_bi.batch.runs import Run, runs_of
from empo_bi.batch.spec import BatchSpec, read_spec
from empo_bi.batch.table import Table
from empo_bi.batch.work import Pass, Wishes, do_pass
from empo_bi.batch.workers import Workers, workers_for
from empo_bi.errors import ClusterError, WorkerDiedError, counted
from empo_bi.keeping import is_url
from empo_bi.runtime.progress import run_bar, say

TABLE_SECONDS = 60  # from one writing of the table to the next while runs go on


@dataclass(frozen=True)
class BatchResult:
    """What came of a batch.

    Attributes
    ----------
    folder : where everything is
    table : one row a run
    n_skipped : runs that had been finished before
    """

    folder: Folder
    table: Table
    n_skipped: int

    @property
    def failed(self) -> list[Json]:
        """Rows of runs that failed."""
        return [row for row in self.table.rows if row["status"] == manifests.FAILED]

    @property
    def n_finished(self) -> int:
        return sum(row["status"] == manifests.FINISHED for row in self.table.rows)

    @property
    def is_complete(self) -> bool:
        return self.n_finished == len(self.table)

    def summary(self) -> str:
        """How many runs came to what, each failure with its error, and where the table is."""
        before = f" ({self.n_skipped:,} of them before)" if self.n_skipped else ""
        failed, missing = self.failed, len(self.table) - self.n_finished - len(self.failed)
        lines = [f"{counted(len(self.table), 'run')}: {self.n_finished:,} finished{before}, {len(failed):,} failed"
                 + (f", {missing:,} not done" if missing else "")]  # fmt: skip
        lines += [f"  failed: {row['world']}, {row['steps']} steps ({row['run']}): {row['error']}" for row in failed]
        return "\n".join([*lines, f"table: {self.folder}/table.csv"])

    def listing(self) -> list[str]:
        """A line for each run."""
        return [f"{row['status']:>8}  {row['run']}  {row['world']}, {row['steps']} steps" for row in self.table.rows]


def run_batch(
    source: str | os.PathLike[str] | Mapping[str, Any] | BatchSpec,
    *,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    memory_limit: Any = None,
    keep: str | None = None,
    retry_failed: bool = False,
    backend: str = "local",
    scheduler: str | None = None,
    spread: str = "runs",
    progress: bool = True,
) -> BatchResult:
    """Run everything that a batch file asks for, and write a table of results.

    Runs that are finished are skipped, those that were interrupted continue. A run that fails is written down with its
    error, and the others go on.

    Parameters
    ----------
    source : path, YAML text, mapping or BatchSpec
        See docs/batch.md.
    out, workers, memory_limit, keep
        In place of what the file says.
    retry_failed : bool
        Try again what failed earlier.
    backend : "local", "dask" or "ray"
        Where runs go: processes of this machine, or a cluster.
    scheduler : str, optional
        The address of a Dask scheduler, such as ``"tcp://10.0.0.1:8786"``.
    spread : "runs" or "blocks"
        What a Dask cluster shares out: runs, or, of one run after the other, blocks of its large levels.
    progress : bool
        Show a bar for anything over a second.

    Examples
    --------
    >>> import tempfile
    >>> batch = {"worlds": "basics/first_steps", "steps": [2, 3], "params": {"zeta": [1, 2]}, "keep": "summary"}
    >>> result = run_batch(batch, out=tempfile.mkdtemp(), workers=1, progress=False)
    >>> result.n_finished, result.table["steps"]
    (4, [2, 2, 3, 3])
    """
    spec = _spec_of(source, out=out, workers=workers, memory_limit=memory_limit, keep=keep)
    with _locked(Folder(spec.out)):
        return _Batch(spec, retry_failed).run(lambda: workers_for(backend, spec.workers, scheduler, spread), progress)


def look_at_batch(source: str | os.PathLike[str] | Mapping[str, Any] | BatchSpec, **changes: Any) -> BatchResult:
    """What :func:`run_batch` would find: all runs, and what has become of them so far. Nothing is run or written."""
    return _Batch(_spec_of(source, **changes), retry_failed=False).result()


def _spec_of(source: Any, *, out: Any, **changes: Any) -> BatchSpec:
    spec = source if isinstance(source, BatchSpec) else read_spec(source)
    return spec.replace(out=None if out is None else os.fspath(out), **changes)


@contextlib.contextmanager
def _locked(folder: Folder) -> Iterator[None]:
    """One batch at a time in a folder."""
    if is_url(folder.place):
        yield
        return
    from empo_bi.store.lock import WriterLock

    folder.place.parent.mkdir(parents=True, exist_ok=True)
    lock = WriterLock(folder.place.with_name(folder.place.name + ".lock"))
    try:
        yield
    finally:
        lock.release()


class _Batch:
    """The runs of a batch, and what has become of them."""

    def __init__(self, spec: BatchSpec, retry_failed: bool) -> None:
        metrics = {reference.name: reference.load().key for reference in spec.metrics}  # what is not there shows at once
        self._spec, self._asked = spec, manifests.asked_of(
            keep=spec.keep, per_goal=spec.per_goal, rollouts=spec.rollouts, metrics=metrics, precision=spec.precision
        )  # fmt: skip
        self._folder, self._call = Folder(spec.out), os.urandom(8).hex()
        self._runs = runs_of(spec)
        self._by_key = {run.key: run for run in self._runs}
        self._manifests: dict[str, Json] = {}  # of runs that are finished or failed
        for run in self._by_key.values():
            found = self._read(run)
            if manifests.has_all(found, self._asked) or (found and found["status"] == manifests.FAILED and not retry_failed):
                assert found is not None
                self._manifests[run.key] = found
        self._n_skipped = sum(run.key in self._manifests for run in self._runs)

    def _read(self, run: Run) -> Json | None:
        return manifests.read_manifest(self._folder_of(run))

    def _folder_of(self, run: Run) -> Folder:
        return self._folder / "runs" / run.folder_name

    def run(self, make_workers: Callable[[], Workers], progress: bool) -> BatchResult:
        left = [run for run in self._by_key.values() if run.key not in self._manifests]
        for run in left:
            if run.trouble is not None:
                self._fail(run, run.trouble)
        left = [run for run in left if run.trouble is None]
        with run_bar("batch", len(left), progress) as bar, _finally(self._write_table):
            if left:
                with make_workers() as workers:
                    self._work_on(left, workers, bar)
        return self.result()

    def result(self) -> BatchResult:
        return BatchResult(self._folder, Table(self._rows()), self._n_skipped)

    def _work_on(self, runs: Sequence[Run], workers: Workers, bar: Any) -> None:
        """Do all passes. After a crash, what was in work is tried alone, and what had not begun is begun again."""
        spec = self._spec
        wishes = Wishes(
            out=str(self._folder), call=self._call, asked=self._asked, keep=spec.keep, precision=spec.precision,
            per_goal=spec.per_goal, rollouts=spec.rollouts, metrics=spec.metrics, memory_limit=spec.memory_limit,
            max_states=spec.max_states, sharing=workers.sharing,
        )  # fmt: skip
        left = list(runs)
        while left:
            try:
                self._do_passes(passes_of(left, wishes, workers.n), workers, bar)
                return
            except workers.crashes as error:
                say("a worker died; what was in work is tried again, each run in a process of its own")
                suspects = [run for run in left if self._state_of(run) == manifests.RUNNING]
                for run in suspects:
                    self._try_alone(run, wishes, workers)
                n_before, left = len(left), [run for run in left if self._state_of(run) is None]
                if len(left) == n_before:
                    raise ClusterError(f"workers die before they begin to work ({type(error).__name__}: {error})") from error
                bar.update(len(suspects))

    def _do_passes(self, passes: Sequence[Pass], workers: Workers, bar: Any) -> None:
        written = time.monotonic()
        for n in workers.map(do_pass, passes):
            bar.update(n)
            if time.monotonic() - written > TABLE_SECONDS:
                self._write_table()
                written = time.monotonic()

    def _state_of(self, run: Run) -> str | None:
        """What has become of a run since this batch was called; None if it has not begun."""
        found = self._read(run)
        return found["status"] if found is not None and found["call"] == self._call else None

    def _try_alone(self, run: Run, wishes: Wishes, workers: Workers) -> None:
        try:
            workers.alone(do_pass, Pass((run,), wishes))
        except workers.crashes as error:
            died = f"its worker process died twice ({type(error).__name__}), probably for lack of memory"
            self._fail(run, WorkerDiedError(f"{died}: give a memory_limit, or use fewer workers"))

    def _fail(self, run: Run, error: Exception) -> None:
        begun = manifests.begun(run, self._asked, self._call)
        self._folder_of(run).write_json(manifests.FILE, manifests.failed(begun, error))
        self._folder_of(run).log(f"failed: {error}")

    def _rows(self) -> list[Json]:
        return [manifests.row_of(run, self._read(run)) for run in self._runs]

    def _write_table(self) -> None:
        Table(self._rows()).write(self._folder)


@contextlib.contextmanager
def _finally(act: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    finally:
        act()
