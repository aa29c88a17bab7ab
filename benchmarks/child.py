"""A function in a process of its own, with its peak memory: ``python -m benchmarks.child module:function '{"a": 1}'``.

The peak is ``VmHWM`` of Linux. (``ru_maxrss`` of a child starts at the size of its parent, which is no measure.)
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from empo_bi.runtime.machine import peak_bytes, reset_peak, resident_bytes

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Measured:
    """What a function returned in its own process, and what it took.

    Attributes
    ----------
    result : whatever it returned, by way of JSON
    seconds, cpu_seconds : of the function, after ``warm_up``
    before, peak : resident bytes when it began, and at most meanwhile
    """

    result: Any
    seconds: float
    cpu_seconds: float
    before: int
    peak: int

    @property
    def added(self) -> int:
        """What the function itself took: arrays, mostly."""
        return self.peak - self.before


def in_child(function: str, *, environment: dict[str, str] | None = None, **arguments: Any) -> Measured:
    """Call ``"package.module:function"`` with keyword arguments that JSON can carry, in a fresh process.

    If its module has ``warm_up``, that is called before with the same arguments, so that kernels are loaded.
    """
    command = [sys.executable, "-m", "benchmarks.child", function, json.dumps(arguments)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{function}({arguments}) ended with exit code {done.returncode} in its process")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    where, arguments = sys.argv[1], json.loads(sys.argv[2])
    module, _, name = where.partition(":")
    home = importlib.import_module(module)
    if hasattr(home, "warm_up"):
        home.warm_up(**arguments)
    reset_peak()
    before, begin, cpu = resident_bytes(), time.perf_counter(), time.process_time()
    result = getattr(home, name)(**arguments)
    measured = Measured(result, time.perf_counter() - begin, time.process_time() - cpu, before, peak_bytes())
    print(json.dumps(vars(measured)))


if __name__ == "__main__":
    main()
