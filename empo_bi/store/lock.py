"""One writer at a time: a lock on a file beside the store, which the system lets go of when the process dies."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
import warnings
from pathlib import Path
from typing import IO

from empo_bi.errors import StoreLockedError
from empo_bi.runtime.ordinary_files import open_without_links

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
    import msvcrt


class WriterLock:
    """Held from construction to :meth:`release`; raises :class:`StoreLockedError` if somebody else holds it.

    A lock file that was left behind by a killed process is no obstacle: what counts is the lock, not the file.
    """

    def __init__(self, path: Path, *, patient: bool = False) -> None:
        """``patient``: wait until the lock is free."""
        self.path = path
        while True:
            file = open_without_links(path, "a+")  # held until release
            try:
                _lock(file, patient)
            except (BlockingIOError, PermissionError):
                owner = _owner(file)
                file.close()
                raise StoreLockedError(
                    f"{path.with_suffix('')}: {owner} is writing there; wait until it is done, or choose another place"
                ) from None
            except OSError as error:
                warnings.warn(
                    f"{path.parent}: no locks on this file system ({error}); make sure that nobody else writes there",
                    RuntimeWarning,
                    stacklevel=2,
                )
            if _is_still_there(file, path):
                break
            file.close()  # the last owner removed it between our opening and locking
        self._file: IO[str] | None = file
        file.truncate(0)
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        file.write(json.dumps({"process": os.getpid(), "host": socket.gethostname(), "since": started}))
        file.flush()

    def release(self) -> None:
        if self._file is not None:
            with contextlib.suppress(PermissionError):  # Windows does not remove open files; a lock file does no harm
                self.path.unlink(missing_ok=True)
            self.let_go()

    def let_go(self) -> None:
        """Leave the file as a killed process does."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _lock(file: IO[str], patient: bool) -> None:
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
    else:
        file.seek(0)  # it locks bytes from here on
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK if patient else msvcrt.LK_NBLCK, 1)


def _is_still_there(file: IO[str], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _owner(file: IO[str]) -> str:
    try:
        file.seek(0)
        found = json.loads(file.read(1000))
        return f"process {found['process']} on {found['host']} (since {found['since']})"
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # whatever somebody else has written there
        return "another process"
