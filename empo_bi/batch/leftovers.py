"""Removing what killed processes left behind in the folder of a batch."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from empo_bi.errors import StoreLockedError
from empo_bi.store.lock import WriterLock
from empo_bi.store.small_files import Folder
from empo_bi.store.solution_folders import is_url


def remove_leftovers(folders: Iterable[Folder]) -> None:
    """Remove unfinished files, folders that were being removed, and locks that no process holds.

    No other process may be writing small files there; writers of stores hold their locks. URLs have none of these.
    """
    for folder in folders:
        if not is_url(folder.place) and folder.place.is_dir():
            for path in list(folder.place.iterdir()):
                _remove_if_leftover(path)


def _remove_if_leftover(path: Path) -> None:
    if re.fullmatch(r"\..+\.\d+\.partial", path.name):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    elif path.suffix in (".lock", ".turn") and path.name != "batch.lock":
        with contextlib.suppress(StoreLockedError, OSError):  # held by somebody, or not a lock of ours
            WriterLock(path).release()
