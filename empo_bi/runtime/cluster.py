"""Workers of a cluster, as joblib's backends know them: blocks go there, results come back in their order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from pickle import PicklingError
from typing import Any, Protocol, TypeVar

from empo_bi.errors import WorkerDiedError

Shared = TypeVar("Shared")
Block = TypeVar("Block")
Result = TypeVar("Result")

ATTEMPTS = 5  # to get a block computed, each time with what is shared sent anew


class Cluster(Protocol):
    """Where blocks may be computed. ``n_workers`` of them are at a time, and as many wait."""

    n_workers: int

    def map(self, function: Callable[[Shared, Block], Result], shared: Shared, blocks: Iterable[Block]) -> Iterator[Result]:
        """``function(shared, block)`` of each block, in order; ``blocks`` are made by the caller's thread, a few ahead.

        What is shared is the same for all blocks and is not changed by anybody.
        """


class DaskCluster:
    """A Dask cluster. What is shared goes to every worker once; if all that have it die, it is sent again.

    joblib's own way to send would do, but keeps large arguments on a single worker, with which they are lost.
    """

    def __init__(self, backend: Any) -> None:
        import distributed

        self._client = backend.client
        self._killed = distributed.KilledWorker
        self.n_workers = max(1, int(backend.effective_n_jobs(-1)))
        self._shared: Any = None
        self._sent: Any = None  # where the workers have it

    def map(self, function: Callable[[Shared, Block], Result], shared: Shared, blocks: Iterable[Block]) -> Iterator[Result]:
        self._share(shared)
        ahead: deque[tuple[Any, Block]] = deque()
        try:
            for block in blocks:
                ahead.append((self._submit(function, block), block))
                if len(ahead) == 2 * self.n_workers:
                    yield self._result(function, *ahead.popleft())
            while ahead:
                yield self._result(function, *ahead.popleft())
        finally:
            if ahead:  # something failed, or nobody wants the rest
                self._client.cancel([future for future, _ in ahead])

    def _share(self, shared: Any) -> None:
        if self._sent is None or self._shared is not shared:
            check_picklable(shared)
            self._send(shared)

    def _send(self, shared: Any) -> None:
        (self._sent,) = self._client.scatter([shared], broadcast=True, hash=False)
        self._shared = shared

    def _submit(self, function: Callable[[Shared, Block], Result], block: Block) -> Any:
        return self._client.submit(function, self._sent, block, pure=False)

    def _result(self, function: Callable[[Shared, Block], Result], future: Any, block: Block) -> Result:
        sent_then = self._sent
        for _ in range(ATTEMPTS):
            try:
                result: Result = future.result()
                return result
            except self._killed as error:
                raise WorkerDiedError(
                    f"a block killed the Dask workers that computed it, one after the other ({error}); their logs tell why, "
                    "most often it is memory: give them more, or set a memory_limit, which makes blocks smaller"
                ) from error
            except CancelledError:
                if self._sent is sent_then:  # or another block has found out
                    self._send(self._shared)
                sent_then = self._sent
                future = self._submit(function, block)
        raise WorkerDiedError(f"a block was lost {ATTEMPTS} times with the Dask workers that had it; their logs tell why")


def check_picklable(thing: Any) -> None:
    """Raise TypeError with a remedy; what cannot be sent would fail later, in places that nobody recognises."""
    import cloudpickle  # comes with distributed, and with gymnasium

    try:
        cloudpickle.dumps(thing)
    except (PicklingError, TypeError, AttributeError, ValueError) as error:
        raise TypeError(
            f"what is computed cannot be sent to the cluster ({error}); leave out what cannot be pickled, or call this "
            "outside of joblib.parallel_config(backend=...)"
        ) from error
