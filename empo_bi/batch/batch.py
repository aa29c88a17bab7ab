"""Running a batch: :func:`run_batch`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from empo_bi.batch import manifest as manifests
from empo_bi.batch.at_work import AT_WORK, at_work, forget
from empo_bi.batch.leftovers import remove_leftovers
from empo_bi.batch.run_pass import BatchSettings, Pass, do_pass
from empo_bi.batch.runs import Run, runs_of
from empo_bi.batch.shared_passes import passes_of
from empo_bi.batch.spec import BatchSpec, read_spec
from empo_bi.batch.table import Table
from empo_bi.batch.workers import Workers, check_backend, workers_for
from empo_bi.errors import ClusterError, DamagedStoreError, StoreError, StoreMismatchError, WorkerDiedError
from empo_bi.runtime.arguments import check_flags, check_path, suggests_names
from empo_bi.runtime.byte_sizes import Size
from empo_bi.runtime.compilation import quiet_unless_shown
from empo_bi.runtime.printable import one_line
from empo_bi.runtime.progress import RunBar, say
from empo_bi.runtime.wording import counted
from empo_bi.solving import run_manifest
from empo_bi.solving.run_manifest_rules import KEEPS
from empo_bi.store.small_files import Folder
from empo_bi.store.solution_folders import SOLUTION, is_url
from empo_bi.types import Json

MAX_DEATHS = 3  # of workers, one after the other, before any of them has begun a run
STARTING = "nothing yet, the workers are starting"
TABLE_SECONDS = 60  # how often the table is written while runs go on
OURS = ("batch.json", "batch.lock", AT_WORK, "runs", "dags", "table.csv", "table.parquet")  # files in the folder of a batch
Source = str | os.PathLike[str] | Mapping[str, Any] | BatchSpec


@dataclass(frozen=True)
class BatchResult:
    """The result of a batch.

    Attributes
    ----------
    folder : where everything is
    table : one row per run
    n_skipped : runs that had been finished before
    """

    folder: Folder
    table: Table
    n_skipped: int

    def __repr__(self) -> str:
        counts = f"{counted(len(self.table), 'run')}, {self.n_finished:,} finished, {len(self.failed):,} failed"
        return f"<BatchResult: {counts}, in {self.folder}>"

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
        """How many runs finished or failed, the errors of those that failed, and where the table is."""
        before = f" ({self.n_skipped:,} of them before)" if self.n_skipped else ""
        failed, outdated = self.failed, sum(row["status"] == manifests.OUTDATED for row in self.table.rows)
        missing = len(self.table) - self.n_finished - len(failed) - outdated
        lines = [f"{counted(len(self.table), 'run')}: {self.n_finished:,} finished{before}, {len(failed):,} failed"
                 + (f", {outdated:,} to be extended" if outdated else "")
                 + (f", {missing:,} not done" if missing else "")]  # fmt: skip
        lines += [f"  failed: {line}" for line in failure_lines(failed)]
        if failed:
            lines.append("  (try them again with --retry-failed, or retry_failed=True in Python)")
        place = f"{self.folder}/table.csv"
        if not is_url(self.folder.place):
            with contextlib.suppress(ValueError):
                place = str(Path(place).relative_to(Path.cwd()))
        return "\n".join([*lines, f"table: {place}"])

    def listing(self) -> list[str]:
        """A line for each run."""
        return [
            f"{row['status']:>8}  {row['run']}  {row['world']}, {row['steps']} steps, {_params(row)}"
            for row in self.table.rows
        ]


def failure_lines(rows: Sequence[Json]) -> list[str]:
    """One line for all failures of a world with the same error."""
    groups: dict[tuple[str, str], list[Json]] = {}
    for row in rows:
        groups.setdefault((row["world"], row["error"]), []).append(row)
    lines = []
    for (world, error), some in groups.items():
        steps = sorted({row["steps"] for row in some if isinstance(row["steps"], int | float)})
        horizon = f", {'-'.join(map(str, dict.fromkeys([steps[0], steps[-1]])))} steps" if steps else ""
        which = some[0]["run"] if len(some) == 1 else f"{len(some):,} runs, such as {some[0]['run']}"
        lines.append(one_line(f"{world}{horizon} ({which}): {error}"))
    return lines


def _params(row: Json) -> str:
    names = ("seed", "sample", "repetition", "beta_h", "beta_r", "gamma_h", "gamma_r", "optimistic", "zeta", "xi", "eta")
    return ", ".join(f"{name} {row[name]:.4g}" for name in names if row.get(name) is not None)


@suggests_names()
@quiet_unless_shown
def run_batch(
    source: Source,
    *,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    memory_limit: Size | None = None,
    keep: str | None = None,
    retry_failed: bool = False,
    backend: str = "local",
    scheduler: str | None = None,
    spread: str = "runs",
    progress: bool = True,
) -> BatchResult:
    """Run everything in a batch file, and write a table of results.

    Finished runs are skipped, interrupted runs continue. A run that fails is recorded with its error, and the others go on.

    Parameters
    ----------
    source : path, YAML text, mapping or BatchSpec
        See docs/batch.md.
    out, workers, memory_limit, keep
        Replace the values in the file.
    retry_failed : bool
        Try runs again that failed before.
    backend : "local" or "dask"
        Where runs go: processes of this machine, or a cluster.
    scheduler : str, optional
        The address of a Dask scheduler, such as ``"tcp://10.0.0.1:8786"``.
    spread : "runs" or "blocks"
        What a Dask cluster distributes: runs, or the blocks of large levels, one run after the other.
    progress : bool
        Show a bar for what takes longer than a second.

    Examples
    --------
    >>> import tempfile
    >>> batch = {"worlds": "basics/first_steps", "steps": [2, 3], "params": {"zeta": [1, 2]}, "keep": "summary"}
    >>> result = run_batch(batch, out=tempfile.mkdtemp(), workers=1, progress=False)
    >>> result.n_finished, result.table["steps"]
    (4, [2, 2, 3, 3])
    """
    check_flags(retry_failed=retry_failed, progress=progress)
    check_backend(backend, scheduler, spread)
    spec = _spec_of(source, out=out, workers=workers, memory_limit=memory_limit, keep=keep)
    check_folder(Folder(spec.out))
    found = _Batch(spec, retry_failed)
    if not found.left:
        with contextlib.suppress(OSError), _locked(Folder(spec.out)):  # the folder may be read-only
            found.write_table()
            found.tidy()
        return found.result()
    with _locked(Folder(spec.out)):
        batch = _Batch(spec, retry_failed)  # again, since another process may have worked on it until now
        return batch.run(lambda: workers_for(backend, spec.workers, scheduler, spread), progress)


def look_at_batch(source: Source, *, out: str | os.PathLike[str] | None = None, **changes: Any) -> BatchResult:
    """All runs of a batch and their status so far. Nothing is run or written."""
    return _Batch(_spec_of(source, out=out, **changes), retry_failed=False).result()


def _spec_of(source: Source, *, out: str | os.PathLike[str] | None, **changes: Any) -> BatchSpec:
    if out is not None:
        check_path("out", out, "a folder or URL")
    spec = source if isinstance(source, BatchSpec) else read_spec(source)
    return spec.replace(out=None if out is None else os.fspath(out), **changes)


def check_folder(folder: Folder) -> None:
    """Refuse a folder that has other files than those of a batch."""
    if not is_url(folder.place) and folder.place.exists() and not folder.place.is_dir():
        raise StoreMismatchError(f"{folder}: is a file; give a folder, which may be new")
    names = folder.names()
    strangers = [name for name in names if name not in OURS and not name.startswith(".")]
    if "batch.json" not in names and (strangers or any(name.startswith("table") for name in names)):
        raise StoreMismatchError(
            f"{folder}: is not the folder of a batch, it contains {', '.join((strangers or names)[:5])}; choose an empty or "
            "new folder"
        )


@contextlib.contextmanager
def _locked(folder: Folder) -> Iterator[None]:
    """One batch at a time in a folder."""
    if is_url(folder.place):
        yield
        return
    from empo_bi.store.lock import WriterLock
    from empo_bi.store.write_errors import reporting

    with reporting(str(folder)):
        folder.place.mkdir(parents=True, exist_ok=True)
        lock = WriterLock(folder.place / "batch.lock")
    try:
        yield
    finally:
        lock.release()


class _Batch:
    """The runs of a batch, and their manifests."""

    def __init__(self, spec: BatchSpec, retry_failed: bool) -> None:
        metrics = {reference.name: reference.load() for reference in spec.metrics}  # fails at once if one is missing
        self._spec, self._asked = spec, manifests.asked_of(spec, {name: metric.key for name, metric in metrics.items()})
        self._folder, self._call = Folder(spec.out), os.urandom(8).hex()
        # A run may have been made under the name of another file with the same content.
        there = {name.rpartition("-")[2]: name for name in (self._folder / "runs").names()}
        begun = set(there)
        self._runs = [replace(run, folder_name=there.setdefault(run.key, run.folder_name)) for run in runs_of(spec)]
        self._before: dict[str, Json] = {}  # manifests of earlier attempts at runs that are still to be done
        self._settled: dict[str, Json] = {}  # manifests of runs that need nothing more
        self._has_later: set[str] = set()  # runs with a later attempt that asked for more and failed
        by_key = {run.key: run for run in self._runs}
        for run in by_key.values():
            found = self._read(run) if run.key in begun else None
            answer = manifests.settled(found, self._asked, retry_failed=retry_failed)
            if answer is not None and self._is_still_there(run, answer) and _has_same_trouble(run, answer):
                self._settled[run.key] = answer
                if answer is not found:
                    self._has_later.add(run.key)
            elif found is not None:
                self._before[run.key] = found
        self._n_skipped = sum(self._is_finished(run) for run in self._runs)
        self.left = [run for run in by_key.values() if run.key not in self._settled]

    def _is_finished(self, run: Run) -> bool:
        return run.key in self._settled and self._settled[run.key]["status"] == manifests.FINISHED

    def _is_still_there(self, run: Run, manifest: Json) -> bool:
        """Whether the solution that a run has kept still exists, if it is needed."""
        store = manifest.get("store")
        return not KEEPS[self._asked["keep"]] or store is None or bool((self._folder_of(run) / store).names())

    def _read(self, run: Run) -> Json | None:
        """The manifest of a run; None if it is missing, damaged or of another run, so that the run is done again."""
        try:
            found = run_manifest.read_manifest(self._folder_of(run))
        except DamagedStoreError as error:
            say(str(error).removesuffix(run_manifest.REMEDY) + "The run is done again")
            return None
        if found is None or found["key"] != run.key:
            return None
        wrong = self._problems(run, found)
        if wrong:
            say(wrong[0].removesuffix(run_manifest.REMEDY) + "The run is done again")
        return None if wrong else found

    def _problems(self, run: Run, manifest: Json) -> list[str]:
        """What a manifest without a checksum says that its solution does not, if that was kept."""
        folder, store = self._folder_of(run), manifest.get("store")
        if store is None or not (folder / store).names() or run_manifest.has_checksum(folder):
            return []
        from empo_bi.batch.stores import wrong_summary  # which imports zarr, a third of a second

        with contextlib.suppress(StoreError):  # one that is damaged is solved again elsewhere
            return wrong_summary((folder / store).place, manifest)
        return []

    def _folder_of(self, run: Run) -> Folder:
        return self._folder / "runs" / run.folder_name

    # --- working ------------------------------------------------------------------------------------------------------

    def run(self, make_workers: Callable[[], Workers], progress: bool) -> BatchResult:
        self.write_table()
        possible = [run for run in self.left if run.trouble is None]
        bar = RunBar("batch", len(possible), progress, lambda: at_work(self._folder, self._call) or STARTING)
        with bar, _finally(self._leave), self._noting_what_is_kept():
            for run in self.left:
                if run.trouble is not None:
                    self._fail(run, run.trouble)
            if possible:
                with make_workers() as workers:
                    # Progress of levels only from a single process: several would overwrite each other's lines.
                    self._work_on(possible, workers, bar, progress=progress and workers.n == 1 and bool(workers.parent))
        self.tidy()
        return self.result()

    def _leave(self) -> None:
        """What is left to do, however the work ended."""
        self.write_table()
        forget(self._folder)

    @contextlib.contextmanager
    def _noting_what_is_kept(self) -> Iterator[None]:
        """Tell whoever presses Ctrl-C what will be there next time."""
        try:
            yield
        except KeyboardInterrupt as error:
            for run in self.left:
                found = None if run.key in self._settled else self._read(run)
                if found is not None and found["call"] == self._call and found["status"] != manifests.RUNNING:
                    self._settled[run.key] = found  # its pass was not over
            begun = [run for run in self.left if run.key not in self._settled and self._folder_of(run).names(SOLUTION)]
            n_finished = sum(self._is_finished(run) for run in self._runs)
            half = f", {counted(len(begun), 'run')} half done" if begun else ""
            error.add_note(f"{n_finished:,} of {counted(len(self._runs), 'run')} finished{half}; the same command continues")
            raise

    def tidy(self) -> None:
        """When all runs are settled, remove what killed processes left behind, of this or earlier calls."""
        remove_leftovers([self._folder, self._folder / "dags", *(self._folder_of(run) for run in self._runs)])
        for run in self._runs:
            found = self._settled.get(run.key, {})
            # If neither was kept, nothing has ever been written to a store.
            has_stores = found.get("store") is not None or found.get("dag") is not None
            if has_stores and found["status"] == manifests.FINISHED and run.key not in self._has_later:
                self._folder_of(run).remove(SOLUTION, but=found["store"] or "")

    def _about(self) -> Json:
        """The content of batch.json, from which the table can be made again."""
        spec = self._spec
        sources = {metric.name: {"reference": metric.reference, "source": metric.text()} for metric in spec.metrics}
        called = time.strftime("%Y-%m-%d %H:%M:%S")
        runs = list(dict.fromkeys(run.folder_name for run in self._runs))
        about = {"spec": spec.describe(), "metrics": sources, "called": called, "runs": runs}
        return {"format": "empo_bi batch", "version": 1, **about}

    def _work_on(self, runs: Sequence[Run], workers: Workers, bar: RunBar, *, progress: bool) -> None:
        """Do all passes. After a worker died, runs that had begun are tried alone, and the others start again."""
        spec = self._spec
        settings = BatchSettings(
            out=str(self._folder), call=self._call, asked=self._asked, precision=spec.precision, per_goal=spec.per_goal,
            rollouts=spec.rollouts, metrics=spec.metrics, memory_limit=spec.memory_limit, max_states=spec.max_states,
            sharing=workers.sharing, parent=workers.parent, progress=progress,
        )  # fmt: skip
        # What was kept before is not deleted because less is asked for now.
        keeps = {run.key: self._keep_of(run) for run in runs}
        left, n_deaths = list(runs), 0
        while left:
            try:
                self._do_passes(passes_of(left, keeps, self._before, settings, workers.n), workers, bar)
                return
            except workers.crashes as error:
                say("a worker died; unfinished runs are tried again, each in a process of its own")
                unsettled = [run for run in left if run.key not in self._settled]
                for run in unsettled:
                    found = self._read(run)
                    if found is None or found["call"] != self._call:  # it had not begun
                        continue
                    if found["status"] == manifests.RUNNING:
                        self._try_alone(Pass((run,), keeps[run.key], settings, self._before), workers)
                    else:
                        self._settled[run.key] = found
                    bar.update(1)
                left = [run for run in unsettled if run.key not in self._settled]
                # A single worker that died while starting says nothing about the others.
                n_deaths = n_deaths + 1 if len(left) == len(unsettled) else 0
                if n_deaths == MAX_DEATHS:
                    raise ClusterError(
                        f"workers die before they begin a run ({type(error).__name__}: {error}); give them more memory, or "
                        "use fewer workers"
                    ) from error

    def _keep_of(self, run: Run) -> str:
        """What to keep of a run: what is asked for, or what was kept before if that is more."""
        before = manifests.kept_before(self._before.get(run.key))
        keep = max(self._asked["keep"], before, key=lambda keep: len(KEEPS[keep]))
        # If policies were kept and a summary is asked for, its numbers may need all values.
        return "values" if keep == "policies" != self._asked["keep"] else keep

    def _do_passes(self, passes: Sequence[Pass], workers: Workers, bar: RunBar) -> None:
        by_key = {run.key: run for work in passes for run in work.runs}
        written, is_seen = time.monotonic(), False
        for done in workers.map(do_pass, passes):
            self._settled |= done
            bar.update(len(done))
            if not is_seen:
                is_seen = self._is_seen([by_key[key] for key, manifest in done.items() if not _is_passing(manifest)])
            if time.monotonic() - written > TABLE_SECONDS:
                self.write_table()
                written = time.monotonic()

    def _is_seen(self, runs: Sequence[Run]) -> bool:
        """Whether the folders of these runs are visible here; an error if workers write somewhere else."""
        for run in runs:
            found = self._read(run)
            if found is None or found["call"] != self._call:
                raise ClusterError(
                    f"{self._folder}: a worker has finished a run, but nothing is here: workers do not share this folder. "
                    "Give as out a folder that all workers share, or a URL"
                )
        return bool(runs)

    def _try_alone(self, work: Pass, workers: Workers) -> None:
        try:
            self._settled |= workers.alone(do_pass, work)
        except workers.crashes as error:
            died = f"its worker process died twice ({type(error).__name__}), perhaps because memory ran out"
            self._fail(work.runs[0], WorkerDiedError(f"{died}; give a memory_limit, or use fewer workers"))

    def _fail(self, run: Run, error: Exception) -> None:
        begun = manifests.begun(run, self._asked, self._asked, self._call, self._before.get(run.key))
        manifest = manifests.failed(begun, error)
        self._settled[run.key] = manifest
        run_manifest.write_manifest(self._folder_of(run), manifest)
        self._folder_of(run).log(f"failed: {error}")

    # --- results ------------------------------------------------------------------------------------------------------

    def result(self) -> BatchResult:
        return BatchResult(self._folder, self._table(), self._n_skipped)

    def write_table(self) -> None:
        """Write the table, and batch.json, which says what it is about."""
        self._folder.write_json("batch.json", self._about())
        self._table().write(self._folder)

    def _table(self) -> Table:
        rows = [
            manifests.row_of(run, self._settled.get(run.key), self._before.get(run.key), self._asked) for run in self._runs
        ]
        return Table(rows, list(self._asked["metrics"]))


def _has_same_trouble(run: Run, manifest: Json) -> bool:
    """Whether a run that cannot begin has failed before for the same reason."""
    return run.trouble is None or manifest.get("error", {}).get("message") == str(run.trouble)


def _is_passing(manifest: Json) -> bool:
    """Whether a run failed for an outside reason, such as a full disk, so that nothing may have been written."""
    return manifest["status"] == manifests.FAILED and bool(manifest["error"]["is_passing"])


@contextlib.contextmanager
def _finally(act: Callable[[], None]) -> Iterator[None]:
    try:
        yield
    finally:
        act()
