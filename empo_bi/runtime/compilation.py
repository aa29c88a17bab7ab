"""Progress of compilation: kernels compile when they are first used after an installation, which takes a while.

A kernel is compiled together with all functions that it calls, about a hundred for the rules of gridworlds, and numba
reports each of them. Their number is known beforehand, from the names in their code, so a bar can show how far it is.
Nothing is shown for the first second or two, nor while a call with ``progress=False`` or ``quiet=True`` is running, nor
while the solution that such a call has returned is read.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from empo_bi.runtime.progress import CompilationBar

from empo_bi.runtime.numba_internals import is_compiled, is_dispatcher

_PACKAGE = __name__.partition(".")[0]
_WORDS = {
    "world": "the rules of gridworlds", "dag": "the search for states", "sweep": "the planning steps",
    "results": "rollouts and occupancy", "export": "the export", "accuracy": "the error bounds",
}  # fmt: skip

_STDERR_FAILED = (OSError, ValueError)  # stderr is closed, or its reader is gone: no reason not to compile

_log = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


class Compilations:
    """Shows compilations of this package's functions; :meth:`begin` and :meth:`end` are called by numba's events.

    Numba compiles one function at a time, whatever the number of threads; callees are compiled inside their callers.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._quiet = 0  # number of running calls that want quiet
        self._depth = 0
        self._awaited: set[object] = set()
        self._n_known = 0
        self._begin = 0.0
        self._bar: CompilationBar | None = None
        self._seconds = 0.0
        self.n_compiled = 0  # kernels that this process compiled

    @property
    def seconds(self) -> float:
        """How long this process has compiled so far."""
        with self._lock:
            return self._seconds + (time.monotonic() - self._begin if self._depth else 0.0)

    @property
    def are_quiet(self) -> bool:
        """Whether a call that wants quiet is running."""
        with self._lock:
            return self._quiet > 0

    @contextmanager
    def quiet(self, wanted: bool = True) -> Iterator[None]:
        """Show nothing inside this context, whichever thread compiles."""
        with self._lock:
            self._quiet += wanted
        try:
            yield
        finally:
            with self._lock:
                self._quiet -= wanted

    def begin(self, dispatcher: Any) -> None:
        """Compilation of a kernel, or of a function that one calls, begins."""
        if not _is_ours(dispatcher):
            return
        with self._lock:
            if self._depth == 0:
                self._awaited = functions_to_compile(dispatcher)
                self._n_known, self._begin = len(self._awaited), time.monotonic()
                self._bar = None
                with suppress(*_STDERR_FAILED):
                    self._bar = None if self._quiet else self._new_bar(dispatcher)
            self._depth += 1

    def _new_bar(self, dispatcher: Any) -> CompilationBar:
        from empo_bi.runtime.progress import CompilationBar  # imports tqdm and psutil, only needed if something compiles

        return CompilationBar(f"compiling {words_for(dispatcher)}, once per installation", self._n_known)

    def end(self, dispatcher: Any) -> None:
        """It has succeeded or failed."""
        if not _is_ours(dispatcher):
            return
        with self._lock:
            self._depth -= 1
            self._awaited.discard(dispatcher)
            with suppress(*_STDERR_FAILED):
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
        self._seconds += time.monotonic() - self._begin
        _log.info("compiled %s in %.1f s", dispatcher.py_func.__name__, time.monotonic() - self._begin)


compilations = Compilations()


def quiet_unless_shown(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function's keyword ``progress`` or ``quiet`` also decide whether compilations are shown while it runs."""

    @functools.wraps(function)
    def with_quiet(*args: P.args, **options: P.kwargs) -> R:
        with compilations.quiet(bool(options.get("quiet", False)) or not options.get("progress", True)):
            return function(*args, **options)

    return with_quiet


def words_for(dispatcher: Any) -> str:
    """What a function of this package is for, by the room it belongs to."""
    _, _, rest = dispatcher.py_func.__module__.partition(".")
    return _WORDS.get(rest.partition(".")[0], dispatcher.py_func.__name__)


def functions_to_compile(dispatcher: Any) -> set[Any]:
    """A kernel and all functions of this package that it calls, directly or not, except those already compiled."""
    found, waiting = {dispatcher}, [dispatcher]
    while waiting:
        function = waiting.pop().py_func
        called = [function.__globals__.get(name) for name in function.__code__.co_names]
        new = {one for one in called if _is_ours(one) and not is_compiled(one)} - found
        found |= new
        waiting += new
    return found


def _is_ours(dispatcher: Any) -> bool:
    """Numba reports the functions of all packages, so nothing may be taken for granted."""
    return is_dispatcher(dispatcher) and str(getattr(dispatcher.py_func, "__module__", "")).startswith(f"{_PACKAGE}.")
