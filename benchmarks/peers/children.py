"""Other programs, run and measured: :func:`run_child`.

A process counts as its own peak what its parent had in memory when it was started: the kernel passes the parent's figure on.
A Python process with compiled kernels has hundreds of megabytes. So the program is started by a Python process with nothing
in it, some 9 MB, which is then the least that can be measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_LAUNCHER = """
import json, os, sys, time
report, output, *command = sys.argv[1:]
to_file = [(os.POSIX_SPAWN_OPEN, 1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), (os.POSIX_SPAWN_DUP2, 1, 2)]
begin = time.perf_counter()
child = os.posix_spawnp(command[0], command, os.environ, file_actions=to_file)
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - begin
with open(report, "w") as file:
    json.dump([os.waitstatus_to_exitcode(status), seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss], file)
"""
# What `ru_maxrss` counts in.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class ChildRun:
    """How one program ended, what it wrote to stdout and stderr, its wall and CPU seconds and its peak resident memory."""

    exit_code: int
    output: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int


def run_child(command: Sequence[str], folder: str | Path) -> ChildRun:
    """Run a program in a folder to its end; its output is kept there as ``<program>.out``."""
    name = Path(command[0]).name
    report, output = Path(folder, f"{name}.json").absolute(), Path(folder, f"{name}.out").absolute()
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(report), str(output), *command]
    subprocess.run(launcher, cwd=folder, check=True)
    exit_code, seconds, cpu_seconds, rss = json.loads(report.read_text())
    return ChildRun(exit_code, output.read_text(errors="replace"), seconds, cpu_seconds, rss * _RSS_UNIT)
