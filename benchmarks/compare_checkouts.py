"""Compare two checkouts, such as a commit and the one before it: `python benchmarks/compare_checkouts.py OLD NEW`.

Each case runs in a process of its own, in turns (old, new, old, new, ...), so that whatever else the machine does hits both
alike; the fastest of all rounds counts. Kernels are compiled before anything is measured. CPU seconds are those of all
threads of the process, of what is measured alone: imports and compiling are left out, except where they are the case.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

CASES = ("start", "enumerate in memory", "enumerate to disk", "sweep in memory", "solve on disk")

CHILD = """
import json, resource, sys, tempfile, time
case, world_name, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])

def cpu():
    return sum(resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime for who in (resource.RUSAGE_SELF,))

begin = 0.0, time.perf_counter() if case != "start" else float(sys.argv[4])
import empo_bi
from empo_bi import Params, enumerate_dag, load_world, solve
world = load_world(world_name, max_steps=3 if case == "start" else steps)
params, quiet = Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=20), {"progress": False}
with tempfile.TemporaryDirectory(dir=sys.argv[5]) as folder:
    if case != "start":
        small = load_world(world_name, max_steps=3)
        solve(small, params, out=folder + "/warm", **quiet)
        dag = enumerate_dag(world, precision="exact", **quiet) if case == "sweep in memory" else None
        begin = cpu(), time.perf_counter()
    if case == "start":
        solution = solve(world, params, **quiet)
        begin = 0.0, begin[1]
    elif case == "enumerate in memory":
        enumerate_dag(world, precision="exact", **quiet)
    elif case == "enumerate to disk":
        enumerate_dag(world, store=folder + "/dag", precision="exact", **quiet)
    elif case == "sweep in memory":
        solve(world, params, dag=dag, **quiet)
    else:
        solve(world, params, out=folder + "/run", **quiet)
    print(json.dumps({"cpu": cpu() - begin[0], "seconds": time.perf_counter() - begin[1]}))
"""


def measured(checkout: Path, case: str, world: str, steps: int, scratch: str) -> dict[str, float]:
    """CPU and wall-clock seconds of a case with the package of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "NUMBA_NUM_THREADS": "1"}
    # perf_counter is the same clock in all processes of a machine, so that a start counts from before the process.
    program = f"import time, subprocess, sys\n{CHILD}"
    arguments = [case, world, str(steps), str(_now()), scratch]
    done = subprocess.run([sys.executable, "-c", program, *arguments], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{checkout}: {case} failed\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _now() -> float:
    import time

    return time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--world", default="asymmetric_freeing")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scratch", default="/dev/shm" if Path("/dev/shm").is_dir() else None, help="where files go")
    parser.add_argument("--cases", nargs="*", default=CASES, choices=CASES)
    given = parser.parse_args()
    checkouts = {"old": given.old.resolve(), "new": given.new.resolve()}
    scratch = given.scratch or "."
    for checkout in checkouts.values():  # compile
        measured(checkout, "solve on disk", given.world, 3, scratch)
        measured(checkout, "sweep in memory", given.world, 3, scratch)
    print(f"{given.world}, {given.steps} steps; the fastest of {given.rounds} rounds, in turns; one worker")
    print(f"{'case':<22}{'old CPU s':>10}{'new CPU s':>10}{'ratio':>8}{'old s':>9}{'new s':>9}{'ratio':>8}")
    for case in given.cases:
        found: dict[str, list[dict[str, float]]] = {"old": [], "new": []}
        for _ in range(given.rounds):
            for name, checkout in checkouts.items():
                found[name].append(measured(checkout, case, given.world, given.steps, scratch))
        row = []
        for unit in ("cpu", "seconds"):
            old, new = (min(one[unit] for one in found[name]) for name in ("old", "new"))
            row.append(f"{old:>10.3f}{new:>10.3f}{old / new:>7.2f}x")
        print(f"{case:<22}{''.join(row)}", flush=True)


if __name__ == "__main__":
    main()
