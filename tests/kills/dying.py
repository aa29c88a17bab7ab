"""A process that drops dead at a chosen touch of the disk.

Python announces whatever it is about to create, rename or remove to an *audit hook*, so that every gap between two touches
is a moment at which a process can be killed: all of them, one after the other, rather than those that chance finds. Standard
library only, since processes load it before anything else.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from typing import Any

PLAN = "EMPO_BI_TESTS_DIE_AT"  # a plan for processes that the caller starts: see hooks/sitecustomize.py
TOUCHES = ("open", "os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir", "os.truncate")


@dataclass
class Plan:
    """Who dies when.

    Attributes
    ----------
    folder : only what happens below it counts
    at : the process dies just before its ``at``-th touch; 0 for never
    is_torn : the file that was opened before that touch is cut in two, as of a process that was killed while it was writing
    who : "caller", the process that gives the command, or "worker", one of those that it starts
    caller : its process number
    signal : SIGKILL, or SIGINT, after which the process goes on as it likes
    is_group : whether all processes of the command die at once
    token : a file that goes with the first death, so that there is one only
    log : a file that gets a line for each touch; the last one is what the process was about to do
    """

    folder: str
    log: str
    token: str
    at: int = 0
    is_torn: bool = False
    who: str = "caller"
    caller: int = 0
    signal: int = signal.SIGKILL
    is_group: bool = False


def announce(plan: Plan) -> None:
    """To processes that this one starts."""
    os.environ[PLAN] = json.dumps(asdict(plan))
    hooks = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hooks")
    os.environ["PYTHONPATH"] = os.pathsep.join([hooks, *(path for path in sys.path if path and path != hooks)])


def obey(plan: Plan) -> None:
    """Watch this process from now on."""
    if (os.getpid() == plan.caller) == (plan.who == "caller"):
        sys.addaudithook(_Watch(plan))


class _Watch:
    def __init__(self, plan: Plan) -> None:
        self._plan, self._n, self._written = plan, 0, ""
        self._log = os.open(plan.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._is_busy = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in TOUCHES or self._is_busy:
            return
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            return
        path = _path(event, arguments)
        if not path.startswith(self._plan.folder):
            return
        self._n += 1
        os.write(self._log, f"{event} {path.removeprefix(self._plan.folder).lstrip('/')}\n".encode())
        if self._n == self._plan.at:
            self._is_busy = True
            self._die()
            self._is_busy = False
        self._written = path if event == "open" else ""

    def _die(self) -> None:
        plan = self._plan
        try:
            os.remove(plan.token)
        except FileNotFoundError:  # somebody else has died
            return
        if plan.is_torn and self._written and os.path.exists(self._written):
            os.truncate(self._written, os.path.getsize(self._written) // 2)
        os.killpg(0, plan.signal) if plan.is_group else os.kill(os.getpid(), plan.signal)


def _path(event: str, arguments: tuple[Any, ...]) -> str:
    """What is touched; folders are removed by way of descriptors, so that names in them are relative."""
    if isinstance(arguments[0], int):
        return ""
    path = os.fsdecode(arguments[0])
    descriptor = arguments[-1] if event in ("os.remove", "os.rmdir", "os.mkdir") else -1
    if os.path.isabs(path) or not isinstance(descriptor, int) or descriptor < 0:
        return os.path.abspath(path)
    return os.path.join(os.readlink(f"/proc/self/fd/{descriptor}"), path)
