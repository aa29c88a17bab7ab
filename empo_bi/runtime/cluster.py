"""Computing blocks on the workers of a cluster that joblib's backends reach, with results in the order of the blocks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from pickle import PicklingError
from typing import Any, TypeVar

from empo_bi.errors import WorkerDiedError

Shared = TypeVar("Shared")
Block = TypeVar("Block")
Result = TypeVar("Result")

ATTEMPTS = 5  # per block; each sends the shared data again


class DaskCluster:
    """A Dask cluster. Shared data goes to every worker once; if all workers that have it die, it is sent again.

    joblib could send it, too, but keeps large arguments on a single worker, and they are lost with that worker.
    """

    def __init__(self, backend: Any) -> None:
        import distributed

        self._client = backend.client
        self._killed = distributed.KilledWorker
        self.n_workers = max(1, int(backend.effective_n_jobs(-1)))
        self._shared: object = None
        self._sent: Any = None  # the Dask future of the shared data

    def map(self, function: Callable[[Shared, Block], Result], shared: Shared, blocks: Iterable[Block]) -> Iterator[Result]:
        """``function(shared, block)`` of each block, in order. The caller's thread makes ``blocks``, a few ahead.

        ``shared`` is the same for all blocks and must not be changed.
        """
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
            if ahead:  # something failed, or the caller stopped early
                self._client.cancel([future for future, _ in ahead])

    def _share(self, shared: object) -> None:
        if self._sent is None or self._shared is not shared:
            check_picklable(shared)
            self._send(shared)

    def _send(self, shared: object) -> None:
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
                    f"a block killed one Dask worker after the other ({error}); their logs say why. Most often they ran out "
                    "of memory: give them more, or set a memory_limit, which makes blocks smaller"
                ) from error
            except CancelledError:
                if self._sent is sent_then:  # else it was sent again for another block
                    self._send(self._shared)
                sent_then = self._sent
                future = self._submit(function, block)
        raise WorkerDiedError(f"a block was lost {ATTEMPTS} times because Dask workers died; their logs say why")


def check_picklable(thing: object) -> None:
    """Raise TypeError with a remedy, now: later the same failure would come from deep inside the cluster's code."""
    import cloudpickle  # comes with distributed, and with gymnasium

    try:
        cloudpickle.dumps(thing)
    except (PicklingError, TypeError, AttributeError, ValueError) as error:
        raise TypeError(
            f"the work cannot be pickled and sent to the cluster ({error}); leave out what cannot be pickled, or call this "
            "outside joblib.parallel_config(backend=...)"
        ) from error
