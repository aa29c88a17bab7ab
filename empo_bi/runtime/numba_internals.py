"""What we use of numba that it does not document: news of compilations, a hidden option, the stamp of cached kernels.

The only module that uses such names. ``tests/test_private_names.py`` says what to do when they change. Numba is imported
inside of functions, since :mod:`empo_bi.runtime.compilation` is imported by commands that need no kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def without_reference_counting() -> dict[str, bool]:
    """Options of ``njit`` for functions that do not allocate; none where numba has no such switch, which is only slower."""
    try:
        from numba.core.options import DefaultOptions
    except ImportError:
        return {}
    return {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def listen_to_compilations(begin: Callable[[Any], None], end: Callable[[Any], None]) -> None:
    """Have both called with the dispatcher of each function, whoever's it is, as its compilation begins and ends.

    Where numba does not tell, nobody is called, and kernels compile without a word.
    """
    try:
        from numba.core import event
    except ImportError:
        return

    class Listener(event.Listener):
        def on_start(self, what: event.Event) -> None:
            begin((what.data or {}).get("dispatcher"))

        def on_end(self, what: event.Event) -> None:
            end((what.data or {}).get("dispatcher"))

    event.register("numba:compile", Listener())


def is_dispatcher(thing: Any) -> bool:
    """Whether something is what ``njit`` makes of a function; it then has ``py_func``."""
    return hasattr(thing, "overloads") and hasattr(thing, "py_func")


def is_compiled(dispatcher: Any) -> bool:
    """Whether there is machine code of a function already."""
    return bool(dispatcher.overloads)


def stamp_cache(dispatcher: Any, stamp: Any) -> bool:
    """Have cached machine code thrown away whenever ``stamp`` changes, not just the file of the function.

    False where numba has no such stamp, so that code from the cache may be older than its source.
    """
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if not hasattr(cache_file, "_source_stamp"):
        return False
    cache_file._source_stamp = stamp  # type: ignore[union-attr]
    return True
