"""Files for people, such as films and reports: never replaced unasked, and there only when they are finished."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def checked_place(path: Any, overwrite: bool) -> Path:
    """The path of a file that may be written."""
    file = Path(path)
    if file.is_dir():
        raise IsADirectoryError(f"{file}: is a folder; give the name of a file in it")
    if file.exists() and not overwrite:
        raise FileExistsError(f"{file}: is there already; give another name, or overwrite=True (--force) to replace it")
    if not file.parent.is_dir():
        raise FileNotFoundError(f"{file}: there is no folder {file.parent}; make it first")
    return file


@contextlib.contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A file of another name in the same folder, which becomes ``path`` if all goes well, and else goes.

    What a killed process left of an earlier attempt goes, too.
    """
    _remove_rests(path)
    with _begun(path) as unfinished:
        try:
            yield unfinished
            mask = os.umask(0)
            os.umask(mask)
            unfinished.chmod(0o666 & ~mask)  # as of any other new file; temporary ones are private
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def _begun(path: Path) -> Iterator[Path]:
    """An empty file, locked meanwhile where the system lets others rename a file that is open."""
    while True:
        handle, name = tempfile.mkstemp(prefix=_prefix(path), suffix=path.suffix.lower(), dir=path.parent)
        if fcntl is None:
            os.close(handle)
            yield Path(name)
            return
        with os.fdopen(handle, "rb") as file:
            _hold(file)
            if os.path.exists(name):  # or somebody took it for a rest, before it was locked
                yield Path(name)
                return


def _prefix(path: Path) -> str:
    return f".{path.stem}-unfinished-"


def _hold(file: IO[bytes]) -> bool:
    """Lock a file until it is closed, or its process ends; False if somebody else has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_rests(path: Path) -> None:
    """Unfinished files of the same name that no living process holds."""
    for rest in path.parent.glob(f"{glob.escape(_prefix(path))}????????{glob.escape(path.suffix.lower())}"):
        with contextlib.suppress(OSError), open(rest, "rb") as file:
            if fcntl is not None and _hold(file):
                rest.unlink()
