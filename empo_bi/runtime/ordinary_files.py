"""Safe access to folders that may come from strangers: only ordinary files and folders, and nothing outside of them.

A symbolic link in a run could make us read or write any file of the user; a named pipe could make us wait forever. The
path that a caller gives may be a link; what lies below it may not.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal

from empo_bi.errors import StoreMismatchError
from empo_bi.runtime.wording import short_repr

REMEDY = "only ordinary files and folders are read and written there; put a copy in its place, or remove it"
# Windows hardly has links, but two ways to end a line.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def is_plain_name(name: object) -> bool:
    """Whether a text names something directly inside a folder, wherever that is: no path, no URL, no way up.

    Nor has it control characters or lines: names are printed.
    """
    is_name = isinstance(name, str) and name not in ("", ".", "..") and name.isprintable()
    return is_name and not any(mark in str(name) for mark in "/\\:")


def path_inside(folder: Path, name: str) -> Path:
    """``folder / name``; refused if that leads elsewhere: by ``..``, an absolute path, or a link on the way."""
    check_relative(name)
    path = folder
    for part in PurePosixPath(name).parts:
        path = path / part
        refuse_link(path)
    return path


def check_relative(name: str) -> None:
    """Refuse a name that leads out of its folder or URL."""
    if not all(is_plain_name(part) for part in name.split("/")):
        raise StoreMismatchError(f"{short_repr(name)}: is not a name inside a folder; nothing outside of it is opened")


def refuse_link(path: Path) -> None:
    """Refuse what is neither an ordinary file nor a folder."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise StoreMismatchError(f"{path}: is {_kind(mode)}; {REMEDY}")


def refuse_links_in(folder: Path) -> None:
    """Refuse a folder if anything below it is neither an ordinary file nor a folder."""
    left = [os.fspath(folder)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        refuse_link(Path(entry.path))
        except FileNotFoundError:  # its writer has just removed it
            continue
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
            raise StoreMismatchError(
                f"{folder}: has folders inside of folders, deeper than names can be; {REMEDY}"
            ) from None


def _kind(mode: int) -> str:
    return "a symbolic link" if stat.S_ISLNK(mode) else "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"


def open_without_links(path: Path, mode: Literal["wb", "a", "a+"]) -> IO[Any]:
    """Open a file for writing (``"wb"``) or a text for appending (``"a"``, ``"a+"``), but never through a link.

    Writing always makes a new file and removes what was there, even a link. Appending refuses a link.
    """
    if mode == "wb":
        path.unlink(missing_ok=True)
        return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o666), mode)
    refuse_link(path)  # for the message; the flag is what counts
    access = os.O_RDWR if "+" in mode else os.O_WRONLY
    return open(os.open(path, access | os.O_CREAT | os.O_APPEND | _PLAIN, 0o666), mode, encoding="utf-8")
