"""Files of a store on disk have to be files, inside its folder.

A folder from elsewhere may hold links that lead out of it, or pipes from which reading never returns.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from empo_bi.store.records import Unfit


def check_file(root: Path, key: str) -> None:
    """:class:`Unfit` if a file of the store at ``root`` is a link, is reached through one, or is not a file at all.

    Nothing is wrong with a file that does not exist. The folder itself may be a link: whoever opens it has chosen it.
    """
    path = str(root)
    for part in key.split("/"):
        path = os.path.join(path, part)
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        if stat.S_ISLNK(mode):
            raise Unfit(f"{path} is a link; a store has files of its own: copy what it leads to")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise Unfit(f"{path} is not a file")
