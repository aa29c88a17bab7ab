"""A function mapped over blocks by one worker or several, with results in the order of the blocks.

Threads for compiled kernels, which release Python's lock; processes for worlds written in Python; a cluster for either,
if the caller has made one joblib's active backend.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pickle import PicklingError
from typing import Any, TypeVar

import joblib

from empo_bi.errors import ClusterError
from empo_bi.runtime.cluster import DaskCluster
from empo_bi.runtime.joblib_internals import active_backend

Block = TypeVar("Block")
Result = TypeVar("Result")


def active_cluster() -> DaskCluster | None:
    """The cluster to which blocks go: that of joblib's active backend, if it is none of this machine's own.

    ``with joblib.parallel_config(backend="dask", client=client): ...`` makes one active. Inside a task of a Dask worker
    there is none: that task is one of many already, such as the passes of a batch, and would wait for workers that wait
    for it.
    """
    kind, backend = active_backend()
    if kind == "local":
        return None
    if kind != "dask":
        raise ClusterError(
            f"joblib's active backend is {kind}; expected Dask's or one of joblib's own. Call this outside of its "
            "joblib.parallel_config(...), or inside of joblib.parallel_config(backend='dask', client=client)"
        )
    return None if _is_dask_task() else DaskCluster(backend)


def _is_dask_task() -> bool:
    from distributed.worker import thread_state

    return hasattr(thread_state, "execution_state")


def map_blocks(
    function: Callable[[Block], Result], blocks: Iterable[Block], workers: int, *, processes: bool = False
) -> Iterator[Result]:
    """``function`` of each block, in order; workers compute a few blocks ahead."""
    if workers == 1:
        yield from map(function, blocks)
        return
    if not processes:
        yield from _in_threads(function, blocks, workers)
        return
    pool: Any = joblib.Parallel(
        n_jobs=workers, backend="loky", return_as="generator", pre_dispatch=2 * workers, batch_size=1,
        max_nbytes="1M", mmap_mode="c",  # a world's large arrays are mapped, not copied; workers' writes stay private
    )  # fmt: skip
    try:
        yield from pool(joblib.delayed(function)(block) for block in blocks)
    except PicklingError as error:
        raise TypeError(f"the work cannot be pickled for worker processes ({error}); use workers=1") from error


def _in_threads(function: Callable[[Block], Result], blocks: Iterable[Block], workers: int) -> Iterator[Result]:
    """Threads of our own: joblib's add 0.2 ms to each block, these 0.03."""
    with ThreadPoolExecutor(workers, thread_name_prefix="empo_bi-work") as pool:
        ahead: deque[Future[Result]] = deque()
        try:
            for block in blocks:
                ahead.append(pool.submit(function, block))
                if len(ahead) == 2 * workers:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:  # something failed, or the caller stopped early
                future.cancel()


def checked_workers(workers: int, name: str = "workers") -> int:
    """A number of workers; -1 means one per core, as in joblib. ``name`` is the argument's name in messages."""
    if isinstance(workers, bool) or not hasattr(workers, "__index__") or workers == 0 or workers < -1:
        raise ValueError(f"{name}={workers!r}; give the number of workers, or -1 for one per core")
    return int(joblib.cpu_count()) if workers == -1 else int(workers)
