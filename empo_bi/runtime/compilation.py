"""What is being compiled, shown while it takes long: kernels compile when they are first used after an installation.

A kernel is compiled with all functions that it calls, a hundred for the rules of gridworlds, and numba tells of each when
it is done. Their number is known beforehand, from the names that their code has, so a bar can say how far it is. What takes
less than a second or two says nothing, and nothing is said while somebody who asked for quiet is at work.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec, TypeVar

from empo_bi.runtime.numba_internals import is_compiled, is_dispatcher

_PACKAGE = __name__.partition(".")[0]
_WORDS = {
    "world": "the rules of gridworlds", "dag": "the search for states", "backward": "the planning steps",
    "results": "what follows policies", "export": "the export", "accuracy": "the bounds of errors",
}  # fmt: skip

_NOBODY_READS = (OSError, ValueError)  # stderr is closed, or its reader has gone: no reason not to compile

_log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class Compilations:
    """Told when compilations begin and end; shows those of this package.

    Numba compiles one function at a time, those that it calls inside it, whatever the number of threads.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._quiet = 0  # how many who asked for it are at work
        self._depth = 0
        self._awaited: set[Any] = set()
        self._n_known = 0
        self._begin = 0.0
        self._bar: Any = None
        self.n_compiled = 0  # kernels, by this process

    @contextmanager
    def quiet(self, asked: bool = True) -> Iterator[None]:
        """Say nothing until the end of this, whichever thread compiles, if it is asked."""
        with self._lock:
            self._quiet += asked
        try:
            yield
        finally:
            with self._lock:
                self._quiet -= asked

    def begin(self, dispatcher: Any) -> None:
        """A function begins to be compiled: a kernel, or what one calls."""
        if not _is_ours(dispatcher):
            return
        with self._lock:
            if self._depth == 0:
                self._awaited = functions_to_compile(dispatcher)
                self._n_known, self._begin = len(self._awaited), time.monotonic()
                self._bar = None
                with suppress(*_NOBODY_READS):
                    self._bar = None if self._quiet else self._new_bar(dispatcher)
            self._depth += 1

    def _new_bar(self, dispatcher: Any) -> Any:
        from empo_bi.runtime.progress import compilation_bar  # with tqdm and psutil, only where something is compiled

        return compilation_bar(f"compiling {words_for(dispatcher)}, once per installation", self._n_known)

    def end(self, dispatcher: Any) -> None:
        """It is done, or has failed."""
        if not _is_ours(dispatcher):
            return
        with self._lock:
            self._depth -= 1
            self._awaited.discard(dispatcher)
            with suppress(*_NOBODY_READS):
                self._show()
            if self._depth == 0:
                self._finish(dispatcher)

    def _show(self) -> None:
        if self._bar is None:
            return
        if self._depth:
            self._bar.to(self._n_known - len(self._awaited))
        else:
            self._bar.close()

    def _finish(self, dispatcher: Any) -> None:
        self._bar = None
        self.n_compiled += 1
        _log.info("compiled %s in %.1f s", dispatcher.py_func.__name__, time.monotonic() - self._begin)


compilations = Compilations()


def quiet_unless_shown(function: Callable[P, R]) -> Callable[P, R]:
    """A function whose keyword ``progress`` or ``quiet`` also says whether compilations are shown while it works."""

    @functools.wraps(function)
    def with_quiet(*args: P.args, **options: P.kwargs) -> R:
        with compilations.quiet(bool(options.get("quiet", False)) or not options.get("progress", True)):
            return function(*args, **options)

    return with_quiet


def words_for(dispatcher: Any) -> str:
    """What a function of this package is there for, by the part of the package that it is in."""
    _, _, rest = dispatcher.py_func.__module__.partition(".")
    return _WORDS.get(rest.partition(".")[0], dispatcher.py_func.__name__)


def functions_to_compile(dispatcher: Any) -> set[Any]:
    """A kernel and all of this package's functions that it calls, directly or not, less those that are compiled already."""
    found, waiting = {dispatcher}, [dispatcher]
    while waiting:
        function = waiting.pop().py_func
        called = [function.__globals__.get(name) for name in function.__code__.co_names]
        new = {one for one in called if _is_ours(one) and not is_compiled(one)} - found
        found |= new
        waiting += new
    return found


def _is_ours(dispatcher: Any) -> bool:
    """Numba tells of everybody's functions, so nothing may be taken for granted."""
    return is_dispatcher(dispatcher) and str(getattr(dispatcher.py_func, "__module__", "")).startswith(f"{_PACKAGE}.")
