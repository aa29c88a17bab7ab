"""What killed processes left in the folder of a batch, and nobody needs."""

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


def remove_rests(folders: Iterable[Folder]) -> None:
    """Files that never got their names, folders that were being removed, and locks that nobody holds.

    Nobody else may be writing small files there; whoever writes to a store holds its lock. At URLs there are none of these.
    """
    for folder in folders:
        if not is_url(folder.place) and folder.place.is_dir():
            for path in list(folder.place.iterdir()):
                _remove_if_rest(path)


def _remove_if_rest(path: Path) -> None:
    if re.fullmatch(r"\..+\.\d+\.partial", path.name):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    elif path.suffix in (".lock", ".turn") and path.name != "batch.lock":
        with contextlib.suppress(StoreLockedError, OSError):  # held by somebody, or not a lock of ours
            WriterLock(path).release()
