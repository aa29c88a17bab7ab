"""A parameter sweep as a batch against a shell loop of single commands.

The batch is examples/freeing_sweep.yaml: 200 settings of a world with two humans and a robot, horizons 8 to 14. The loop
calls `empo-bi solve` for some of the same settings, one after the other, as a shell script would; it computes no metric,
which favours it. Both are measured in this run, in processes of their own.

    python benchmarks/bench_batch.py            # some minutes
    python benchmarks/bench_batch.py --quick    # a few settings only
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import Table

from empo_bi.batch.runs import Run, runs_of
from empo_bi.batch.spec import read_spec

SPEC = Path(__file__).parents[1] / "examples" / "freeing_sweep.yaml"
WANTED = 5  # times as fast
EMPO_BI = [sys.executable, "-m", "empo_bi"]


def seconds_of(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begin


def solve_command(run: Run, out: Path | None) -> list[str]:
    """What a shell script would call for a run."""
    params = [part for name, value in run.params.items() for part in ("-p", f"{name}={value!r}")]
    kept = [] if out is None else ["--out", str(out / run.folder_name)]
    orientations = ["--set", "orientations=[s, s, n]"]
    return [*EMPO_BI, "solve", run.world.source, "--steps", str(run.steps), *orientations, *params, *kept, "--quiet"]


def loop(runs: list[Run], n: int, keeps: bool, folder: Path) -> list[float]:
    """Seconds of single commands for ``n`` of the runs, evenly over all, whose horizons are thus as mixed."""
    chosen = [runs[i * len(runs) // n] for i in range(n)]
    return [seconds_of(solve_command(run, folder / "single" if keeps else None)) for run in chosen]


def batch(keep: str, workers: int, samples: int, folder: Path) -> tuple[float, float]:
    """Seconds of the whole batch, and of the same command once more, when everything is there."""
    spec = folder / "sweep.yaml"
    text = SPEC.read_text(encoding="utf-8").replace("samples: 200", f"samples: {samples}")
    spec.write_text(text.replace("freeing_metrics.py", str(SPEC.with_name("freeing_metrics.py"))), encoding="utf-8")
    out = folder / f"batch-{keep}-{workers}"
    command = [*EMPO_BI, "batch", str(spec), "--out", str(out), "--keep", keep, "--workers", str(workers), "--quiet"]
    first, again = seconds_of(command), seconds_of(command)
    shutil.rmtree(out)
    return first, again


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few settings only")
    options = parser.parse_args()
    samples, single, workers = (4, 2, [1]) if options.quick else (200, 14, [1, 2])
    runs: Any = runs_of(read_spec(SPEC).replace(samples=samples))
    folder = Path(tempfile.mkdtemp(prefix="empo_bi-bench-"))
    try:
        seconds_of(solve_command(runs[0], None))  # kernels are compiled, files are at hand
        steps = [run.steps for run in runs]
        title = f"{len(runs)} settings of asymmetric_freeing, horizons {min(steps)} to {max(steps)}"
        table = Table(title, keep=9, how=26, seconds_a_setting=20, against_the_loop=18, once_more=12)
        for keep in ("summary", "values"):
            times = loop(runs, single, keep == "values", folder)
            mean = statistics.mean(times)
            table.row(keep, f"shell loop, {single} settings", f"{mean:.3f} +- {statistics.stdev(times):.2f}", "", "")
            for n in workers:
                first, again = batch(keep, n, samples, folder)
                each = first / len(runs)
                how = f"batch, {n} worker{'s' if n > 1 else ''}"
                table.row(keep, how, f"{each:.3f}", f"{mean / each:.1f}x", f"{again:.2f} s")
        print(f"\nwanted: at least {WANTED}x; the batch computes a metric as well, and start-up is part of its time")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
