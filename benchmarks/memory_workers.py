"""What each worker more takes: threads, which share everything, and processes, which worlds written in Python may use.

    python benchmarks/memory_workers.py            # a minute
    python benchmarks/memory_workers.py --quick    # only shows that it runs

Threads: peak resident memory of a process of its own that solves `asymmetric_freeing` to disk. Processes: a world written in
Python with a table of 64 MB, which workers map; memory that each worker has for itself, not shared with others (USS), while
the largest level is expanded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from measuring import Table

from empo_bi.runtime.machine import peak_bytes

TABLE_BYTES = 64 << 20


class Lookup:
    """A world that looks up where it goes in a large table."""

    n_agents, action_space = 2, SimpleNamespace(n=3)

    def __init__(self, n_states: int) -> None:
        self.n_states = n_states
        self.table = np.random.default_rng(0).integers(0, n_states, TABLE_BYTES // 8)

    def initial_state(self) -> tuple[int, int]:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, place = state
        if step == 4:
            return None
        rows = [(7 * place + 3 * actions[0] + actions[1] + 11 * i) % len(self.table) for i in range(4)]
        after = sorted({(step + 1, int(self.table[row])) for row in rows})
        return [(1 / len(after), successor) for successor in after]


def threads(workers: int, steps: int) -> dict[str, int]:
    from empo_bi import Params, load_world, solve

    with tempfile.TemporaryDirectory() as folder:
        world = load_world("asymmetric_freeing", max_steps=steps)
        solve(world, Params(gamma_h=0.99, gamma_r=0.99), out=folder, workers=workers, progress=False)
        return {"peak": peak_bytes()}


def processes(workers: int, n_states: int) -> dict[str, int]:
    from empo_bi import MemoryProfiler, enumerate_dag

    profiler = MemoryProfiler()
    enumerate_dag(
        Lookup(n_states), level_fct=lambda state: state[0], workers=workers, memory_profile=profiler, progress=False
    )
    return {"peak": peak_bytes(), "workers": max(snapshot.workers for snapshot in profiler.snapshots)}


def in_child(what: str, workers: int, size: int) -> dict[str, int]:
    command = [sys.executable, str(Path(__file__)), "--child", what, str(workers), str(size)]
    found: dict[str, int] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes, one worker and two")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        what, workers, size = options.child
        print(json.dumps({"threads": threads, "processes": processes}[what](int(workers), int(size))))
        return
    numbers = (1, 2) if options.quick else (1, 2, 4, 8)
    table = Table("Threads: solving asymmetric_freeing to disk", workers=8, peak=10, each_more=12)
    alone = 0
    for workers in numbers:
        peak = in_child("threads", workers, 8 if options.quick else 20)["peak"]
        alone = alone or peak
        more = f"{(peak - alone) / (workers - 1) / 1e6:.1f} MB" if workers > 1 else ""
        table.row(f"{workers}", f"{peak / 1e6:.0f} MB", more)
    table = Table("Processes: a world written in Python with a table of 67 MB", workers=8, main=10, each_worker=13)
    for workers in numbers:
        found = in_child("processes", workers, 2_000 if options.quick else 20_000)
        each = f"{found['workers'] / workers / 1e6:.0f} MB" if workers > 1 else ""
        table.row(f"{workers}", f"{found['peak'] / 1e6:.0f} MB", each)


if __name__ == "__main__":
    main()
