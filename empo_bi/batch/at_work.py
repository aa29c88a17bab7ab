"""What the workers of a batch do at the moment: each writes a small file, and the batch's own process reads them all.

Files reach it from other processes and, in a shared folder, from other machines. At URLs nothing is written.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import time
from collections import Counter
from collections.abc import Iterator

from empo_bi.runtime.printable import one_line
from empo_bi.runtime.wording import counted
from empo_bi.store.small_files import Folder
from empo_bi.store.solution_folders import is_url

AT_WORK = "at_work"  # the folder with these files
WRITE_EVERY = 1.0  # seconds
MOST_SHOWN = 3  # passes


class Journal:
    """What one worker does.

    Parameters
    ----------
    folder : of the batch
    call : identifies the call of ``run_batch``, so that files of killed workers are not taken for news
    what : the world and horizon
    """

    def __init__(self, folder: Folder, call: str, what: str, n_runs: int) -> None:
        self._folder, self._call, self._what, self._n_runs = folder, call, what, n_runs
        self._name, self._written = f"{socket.gethostname()}-{os.getpid()}.json", 0.0

    def tell(self, doing: str, n_runs: int | None = None) -> None:
        """Write what is being done, with how many runs."""
        self._written = time.monotonic()
        if is_url(self._folder.place):
            return
        runs = counted(self._n_runs if n_runs is None else n_runs, "run")
        with contextlib.suppress(OSError):  # it is not worth a failure
            said = {"call": self._call, "text": f"{self._what} ({runs}, {doing})"}
            (self._folder / AT_WORK).write_json(self._name, said)

    def tell_sometimes(self, doing: str, n_runs: int | None = None) -> None:
        """The same, unless something was written a moment ago."""
        if time.monotonic() - self._written >= WRITE_EVERY:
            self.tell(doing, n_runs)

    @contextlib.contextmanager
    def removed_at_the_end(self) -> Iterator[None]:
        try:
            yield
        finally:
            if not is_url(self._folder.place):
                with contextlib.suppress(OSError):
                    (self._folder.place / AT_WORK / self._name).unlink(missing_ok=True)


def at_work(folder: Folder, call: str) -> str:
    """What the workers of a call do, on one line; "" if none has said anything."""
    if is_url(folder.place):
        return ""
    texts = []
    with contextlib.suppress(OSError):
        for name in (folder / AT_WORK).names():
            found = (folder / AT_WORK).read_json(name)
            if found is not None and found.get("call") == call and isinstance(found.get("text"), str):
                texts.append(one_line(found["text"]))
    texts = [text if n == 1 else f"{n} x {text}" for text, n in Counter(texts).items()]
    more = [f"{len(texts) - MOST_SHOWN:,} more"] if len(texts) > MOST_SHOWN else []
    return ", ".join([*texts[:MOST_SHOWN], *more])


def forget(folder: Folder) -> None:
    """Remove what workers have written, of this call or of earlier ones."""
    if not is_url(folder.place):
        shutil.rmtree(folder.place / AT_WORK, ignore_errors=True)
