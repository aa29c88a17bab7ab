"""Private names of multiprocessing, known only here."""

from __future__ import annotations

from multiprocessing.util import _finalizer_registry  # type: ignore[attr-defined]


def unlink_own_semaphores() -> None:
    """Take the names away from this process's semaphores, which go on working.

    Libraries make locks for several processes when they are imported (numcodecs, tqdm). If a worker that has such locks is
    killed, Python prints a warning about leaked semaphores, among what we say. A lock without a name leaks nothing.
    """
    for finalizer in list(_finalizer_registry.values()):
        callback = getattr(finalizer, "_callback", None)
        if getattr(callback, "__qualname__", "") == "SemLock._cleanup":  # of multiprocessing, or of loky
            finalizer()
