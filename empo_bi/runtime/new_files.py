"""Files for people, such as films and reports: never replaced unasked, and there only when they are finished."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


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
def appearing(path: Path) -> Iterator[Path]:
    """A file of another name in the same folder, which becomes ``path`` if all goes well, and else goes."""
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix.lower(), dir=path.parent)
    os.close(handle)
    unfinished = Path(name)
    try:
        yield unfinished
        mask = os.umask(0)
        os.umask(mask)
        unfinished.chmod(0o666 & ~mask)  # as of any other new file; temporary ones are private
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
