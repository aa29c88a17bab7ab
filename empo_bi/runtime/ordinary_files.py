"""What is inside a folder that may be somebody else's: ordinary files and folders, and nothing that leads out of it.

A symbolic link in a run could make us read, or write to, any file of the user; a named pipe could make us wait for ever. The
place that a caller names may be a link; what is found below it may not.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath
from typing import Any

from empo_bi.errors import StoreMismatchError
from empo_bi.runtime.wording import short_repr

REMEDY = "only ordinary files and folders are read and written there; put a copy in its place, or remove it"
# Windows has no links to speak of, but two ways to write the end of a line.
_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


def is_plain_name(name: object) -> bool:
    """Whether a text names something directly inside a folder, wherever that is: no path, no URL, no way up.

    Nor has it control characters or lines: names are printed.
    """
    is_name = isinstance(name, str) and name not in ("", ".", "..") and name.isprintable()
    return is_name and not any(mark in str(name) for mark in "/\\:")


def path_inside(folder: Path, name: str) -> Path:
    """``folder / name``, refused if that is elsewhere: a way up, an absolute path, or a link on the way there."""
    check_relative(name)
    path = folder
    for part in PurePosixPath(name).parts:
        path = path / part
        refuse_link(path)
    return path


def check_relative(name: str) -> None:
    """Complain of a name that does not stay inside its folder, or below its URL."""
    if not all(is_plain_name(part) for part in name.split("/")):
        raise StoreMismatchError(f"{short_repr(name)}: is not a name inside a folder; nothing outside of it is opened")


def refuse_link(path: Path) -> None:
    """Complain if something is there that is neither an ordinary file nor a folder."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise StoreMismatchError(f"{path}: is {_kind(mode)}; {REMEDY}")


def refuse_links_in(folder: Path) -> None:
    """Complain of the first thing below a folder that is neither an ordinary file nor a folder."""
    left = [os.fspath(folder)]
    while left:
        try:
            with os.scandir(left.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        refuse_link(Path(entry.path))
        except FileNotFoundError:  # its writer is tidying up
            continue


def _kind(mode: int) -> str:
    return "a symbolic link" if stat.S_ISLNK(mode) else "a named pipe" if stat.S_ISFIFO(mode) else "a device or socket"


def open_without_links(path: Path, mode: str) -> Any:
    """Open a file to write (``"wb"``) or a text to append (``"a"``, ``"a+"``), but never through a link.

    To write makes a new file in any case: what is there, perhaps a link, goes. To append complains of a link.
    """
    if mode == "wb":
        path.unlink(missing_ok=True)
        return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o666), mode)
    refuse_link(path)  # for the message; the flag is what counts
    access = os.O_RDWR if "+" in mode else os.O_WRONLY
    return open(os.open(path, access | os.O_CREAT | os.O_APPEND | _PLAIN, 0o666), mode, encoding="utf-8")
