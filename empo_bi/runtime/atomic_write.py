"""Output files such as films and reports: never replaced unless asked to, and visible only once they are complete."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def checked_place(path: str | os.PathLike[str], overwrite: bool) -> Path:
    """The path of a file that may be written, or an error that says why not."""
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file}: is a folder; give the name of a file")
    if file.exists() and not overwrite:
        raise FileExistsError(f"{file}: already exists; choose another name, or replace it with overwrite=True (--force)")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"{file}: the folder {file.parent} does not exist; create it first")
    return file


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A temporary file in the same folder, renamed to ``path`` on success and deleted on failure.

    Temporary files that killed processes left behind are deleted, too.
    """
    _remove_leftovers(path)
    with _locked_temporary_file(path) as unfinished:
        try:
            yield unfinished
            mask = os.umask(0)
            os.umask(mask)
            unfinished.chmod(0o666 & ~mask)  # the usual mode of a new file; temporary files are private
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked_temporary_file(path: Path) -> Iterator[Path]:
    """An empty file, locked while in use on systems that can rename an open file."""
    while True:
        handle, name = tempfile.mkstemp(prefix=_prefix(path), suffix=path.suffix.lower(), dir=path.parent)
        if fcntl is None:
            os.close(handle)
            yield Path(name)
            return
        with os.fdopen(handle, "rb") as file:
            _hold(file)
            if os.path.exists(name):  # else another process deleted it as a leftover, before it was locked
                yield Path(name)
                return


def _prefix(path: Path) -> str:
    return f".{path.stem}-unfinished-"


def _hold(file: IO[bytes]) -> bool:
    """Lock a file until it is closed or the process ends; False if another process holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_leftovers(path: Path) -> None:
    """Delete unfinished files for the same path that no running process holds."""
    for leftover in path.parent.glob(f"{glob.escape(_prefix(path))}????????{glob.escape(path.suffix.lower())}"):
        with contextlib.suppress(OSError), open(leftover, "rb") as file:
            if fcntl is not None and _hold(file):
                leftover.unlink()
