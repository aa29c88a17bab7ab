"""What it takes to open a large solution and to look at one level of it: peak memory and time, in a process of its own.

    python benchmarks/bench_labelled.py                  # asymmetric_freeing with 50 steps: some minutes, 1.8 GB of disk
    python benchmarks/bench_labelled.py --quick          # with 12 steps, only to see that it runs
    python benchmarks/bench_labelled.py --solution PATH  # one that is there

Each row is one thing after the other in the same process, so that peaks (``VmHWM``) include all before, Python, numba,
xarray and pandas, which take 200 to 290 MB, depending on their versions. The last row must stay within 100 MB above the
first one at 20 million states.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import Table, wanted

LIMIT_MB = 100  # above imports


def look(path: str) -> None:
    """In a process of its own: open a solution, ask some questions, and print what each took."""
    from empo_bi.runtime.machine import peak_bytes

    rows: list[tuple[str, float, float, str]] = []

    def timed(what: str, job: Callable[[], Any], told: Callable[[Any], Any] = lambda _: "") -> Any:
        begin = time.perf_counter()
        found = job()
        rows.append((what, time.perf_counter() - begin, peak_bytes() / 1e6, str(told(found))))
        return found

    def imported() -> None:
        import pandas  # noqa: F401
        import xarray  # noqa: F401

        import empo_bi.solving.opening  # noqa: F401

    timed("imports", imported)
    import empo_bi

    solution = timed("open_solution", lambda: empo_bi.open_solution(path), lambda found: f"{found.dag.n_states:,} states")
    level = round(0.8 * solution.dag.horizon)
    goal = repr(solution.goals[solution.humans[0]][2])
    ds = timed("to_xarray", solution.to_xarray, lambda found: f"{found.nbytes / 1e9:.1f} GB if all were loaded")
    timed("repr", lambda: repr(ds), lambda text: f"{len(text)} characters")
    timed(f"V_r.sel(level={level}).max()", lambda: float(ds.V_r.sel(level=level).max()))
    timed("one goal of that level, mean", lambda: float(ds.Vh_e.sel(level=level).isel(goal=2).mean()))
    timed("where the robot is, on average", lambda: float(ds[f"x_{solution.robots[0]}"].sel(level=level).mean()))
    timed(
        "to_pandas of that level, one goal", lambda: solution.to_pandas("Vh_e", levels=level, goals=goal, max_rows=10**7),
        lambda table: f"{len(table):,} rows, mean {table['value'].mean():.6f}",
    )  # fmt: skip
    print(json.dumps(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small horizon")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--solution", type=Path, help="a solution on disk, instead of making one")
    parser.add_argument("--look", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.look:
        look(options.look)
        return
    with tempfile.TemporaryDirectory(prefix="empo_bi-labelled-") as folder:
        place = options.solution
        if place is None:
            steps = 12 if options.quick else options.steps
            make = (
                "import sys, empo_bi; empo_bi.solve(empo_bi.load_world('asymmetric_freeing', max_steps=int(sys.argv[2])), "
            )
            make += "empo_bi.Params(zeta=2, beta_r=20), out=sys.argv[1], memory_limit='3GB', progress=False)"
            place = Path(folder) / "freeing"
            subprocess.run([sys.executable, "-c", make, str(place), str(steps)], check=True)
        done = subprocess.run([sys.executable, __file__, "--look", str(place)], check=True, capture_output=True, text=True)
    table = Table(f"Looking at {options.solution or 'asymmetric_freeing'}", what=36, seconds=10, peak_MB=10)
    rows = json.loads(done.stdout.splitlines()[-1])
    for what, seconds, megabytes, told in rows:
        table.row(what, f"{seconds:.2f}", f"{megabytes:.0f}", note=told)
    added = rows[-1][2] - rows[0][2]
    print(wanted(added < LIMIT_MB, f"at most {LIMIT_MB} MB above what imports take; found {added:.0f} MB"))


if __name__ == "__main__":
    main()
