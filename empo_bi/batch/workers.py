"""Where passes run: this process, other processes by way of joblib, a Dask cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from typing import Any, TypeVar

import joblib

from empo_bi.errors import ClusterError
from empo_bi.runtime.blocks import checked_workers
from empo_bi.runtime.progress import say
from empo_bi.runtime.wording import did_you_mean

Task = TypeVar("Task")
Result = TypeVar("Result")
BACKENDS = ("local", "dask")
SPREADS = ("runs", "blocks")  # what a cluster distributes
WARNING_FILTERS = "PYTHONWARNINGS"  # the variable that new processes read
CONNECT_SECONDS = 10  # to wait for a scheduler
SCHEDULER_LOST = (
    "the Dask scheduler is gone, or has lost this batch; finished runs are kept. Start a scheduler, and the same command "
    "continues"
)


class Workers:
    """``n`` worker processes on this machine; with one, everything happens in this process."""

    def __init__(self, n: int = -1) -> None:
        self.n = checked_workers(n)

    @property
    def sharing(self) -> int:
        """How many workers share one machine."""
        return self.n

    crashes: tuple[type[BaseException], ...] = (BrokenExecutor,)  # what is raised when a worker dies

    @property
    def parent(self) -> int:
        """The process whose end ends the workers; 0 if they belong to a cluster."""
        return os.getpid()

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """``function`` of each task, in the order in which they finish."""
        pool: Any = joblib.Parallel(
            n_jobs=self.n, backend="loky", return_as="generator_unordered", batch_size=1, pre_dispatch="2 * n_jobs"
        )
        with warnings.catch_warnings():
            # Its advice about memory is for other work: what a worker may hold is decided here.
            warnings.filterwarnings("ignore", category=UserWarning, module=r"joblib\b")
            with _starting_quiet_processes():
                results = pool(joblib.delayed(function)(task) for task in tasks)
            yield from results

    def alone(self, function: Callable[[Task], Result], task: Task) -> Result:
        """One task in a process of its own, so that its death harms no other task."""
        pool: Any = joblib.Parallel(n_jobs=2, backend="loky", batch_size=1)
        return pool([joblib.delayed(function)(task)])[0]

    def close(self) -> None:
        pass

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextlib.contextmanager
def _starting_quiet_processes() -> Iterator[None]:
    """Processes that are started inside of this context say nothing when Ctrl-C ends a batch.

    Ctrl-C reaches all processes of a terminal. New ones would end in the middle of an import, with a traceback each, so it
    is blocked in them for good, and here until the end of this context. Killed ones leave semaphores of libraries behind
    (numcodecs, tqdm). Python removes these, but with a warning, which the variable suppresses.
    """
    with contextlib.ExitStack() as undo:
        if hasattr(signal, "pthread_sigmask"):  # not on Windows
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            undo.callback(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        filters = os.environ.get(WARNING_FILTERS)
        undo.callback(_set_variable, WARNING_FILTERS, filters)
        _set_variable(WARNING_FILTERS, ",".join([*filter(None, [filters]), "ignore:resource_tracker"]))
        yield


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


class DaskWorkers(Workers):
    """Workers of a Dask cluster: that of a scheduler, or a new cluster on this machine.

    With ``spreads_blocks``, tasks run here one after the other, and the cluster computes the blocks of their levels.
    """

    def __init__(self, n: int = -1, scheduler: str | None = None, *, spreads_blocks: bool = False) -> None:
        try:
            import distributed
        except ImportError as error:
            raise ClusterError("a Dask cluster needs the package distributed: pip install 'empo-bi[cluster]'") from error
        self._cluster: Any = None
        self._spreads_blocks = spreads_blocks
        try:
            if scheduler is None:
                self._cluster = _local_cluster(checked_workers(n))
            self._client = distributed.Client(scheduler or self._cluster, timeout=CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"{scheduler}: no Dask scheduler answers at this address ({error}); start one with `dask scheduler`, and "
                "give the address that it prints, such as tcp://10.0.0.1:8786"
            ) from error
        self.crashes = (*Workers.crashes, distributed.KilledWorker)
        self._as_completed = distributed.as_completed
        self._look_at_workers()

    def _look_at_workers(self) -> None:
        """Count the workers; an adaptive cluster may have none before there is work."""
        threads = self._client.nthreads()  # by address
        hosts: Counter[str] = Counter()
        for address, n in threads.items():
            hosts[address.rpartition(":")[0]] += n
        self.n, self._sharing = max(1, sum(threads.values())), max([1, *hosts.values()])
        if not threads:
            say("the cluster has no workers yet; runs begin when workers join")
        if any(n > 1 for n in threads.values()):
            warnings.warn(
                "some Dask workers have several threads, whose runs share one memory limit; start workers with --nthreads 1",
                RuntimeWarning,
                stacklevel=5,
            )

    @property
    def sharing(self) -> int:
        return self._sharing

    @property
    def parent(self) -> int:
        return 0

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
        """A task that kills its workers is reported when all others are done."""
        if self._spreads_blocks:
            with joblib.parallel_config(backend="dask", client=self._client):  # where the engine looks for a cluster
                yield from map(function, tasks)
            return
        futures = [self._client.submit(function, task, pure=False) for task in tasks]
        crash: BaseException | None = None
        try:
            for future in self._as_completed(futures):
                try:
                    yield future.result()
                except self.crashes as error:
                    crash = error
        except (CancelledError, TimeoutError) as error:
            raise ClusterError(SCHEDULER_LOST) from error
        finally:
            with contextlib.suppress(OSError, TimeoutError):  # of a scheduler that is gone
                self._client.cancel(futures)  # those that are left, if the caller has stopped
        if crash is not None:
            raise crash

    def alone(self, function: Callable[[Task], Result], task: Task) -> Result:
        return self._client.submit(function, task, pure=False, retries=0).result()

    def close(self) -> None:
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def _local_cluster(n: int) -> Any:
    """A cluster on this machine. If a worker dies while starting, it is tried again."""
    import distributed

    for is_last in (False, False, True):
        try:
            return distributed.LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=None, memory_limit=0)
        except RuntimeError as error:
            if is_last:
                remedy = "look into the workers' logs, or use the local backend"
                raise ClusterError(f"Dask workers die while starting ({error.__cause__ or error}); {remedy}") from error
            say("a Dask worker died while starting; starting the cluster again")


def check_backend(backend: str, scheduler: str | None, spread: str) -> None:
    """Refuse wrong options, even if there is nothing left to do."""
    if backend == "ray":
        raise ValueError("backend='ray' was removed in version 0.2, because it was never tested; use a Dask cluster instead")
    for name, given, known in (("spread", spread, SPREADS), ("backend", backend, BACKENDS)):
        if given not in list(known):
            raise ValueError(f"{name}={given!r}; give one of {', '.join(known)}.{did_you_mean(str(given), known)}")
    if scheduler is not None and not isinstance(scheduler, str):
        raise TypeError(f"scheduler={scheduler!r}; give the address of a Dask scheduler, such as 'tcp://10.0.0.1:8786'")


def workers_for(backend: str, n: int, scheduler: str | None, spread: str = "runs") -> Workers:
    """The workers that ``backend``, ``scheduler`` and ``spread`` ask for; a scheduler alone means Dask."""
    check_backend(backend, scheduler, spread)
    if backend == "dask" or scheduler is not None:
        return DaskWorkers(n, scheduler, spreads_blocks=spread == "blocks")
    if spread == "blocks":
        raise ValueError("spread='blocks' needs a cluster; give scheduler=ADDRESS or backend='dask'")
    return Workers(n)
