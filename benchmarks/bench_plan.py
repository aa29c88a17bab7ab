"""How good the planner's predictions are: states ahead of what it counted, and memory, disk and time against real runs.

Run with `make bench-plan`, or

    python benchmarks/bench_plan.py             # everything: three to six minutes
    python benchmarks/bench_plan.py --quick     # two small worlds, only to see that it runs
    python benchmarks/bench_plan.py --no-runs   # only the states, without solving anything

*States*: at twice the horizon that a world has, by the planner as it is by default, which counts for ten seconds; and where
it may count only half of the levels, and forecasts the rest. *Memory*: the planner runs as it does by default, in a process
of its own; then the world is solved in memory and on disk, each in its own process, whose peak (``VmHWM``) counts, Python
and libraries included. Disk is the size of all files; time is that of ``solve``, from the world to both policies, kernels
being compiled and loaded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import OtherWork, Table, wanted

from empo_bi import Params, enumerate_dag, load_world, plan, solve
from empo_bi.planner.growth import Range
from empo_bi.runtime.machine import peak_bytes

PARAMS = Params(gamma_h=0.99, gamma_r=0.99, zeta=2.0, eta=1.1)
# World and horizon, twice that of its file.
DEFAULTS = {
    "asymmetric_freeing": 30,
    "hall_2_rocks": 28,
    "hall_3_rocks": 40,
    "three_rooms": 40,
    "full_hands": 24,
    "spring_cleaning": 20,
    "greenhouse": 18,
    "one_key_two_rooms": 14,
    "whose_door_first": 14,
    "kitchen_hatch": 20,
}
# World and horizon, twice what the planner may count.
DOUBLINGS = {
    "asymmetric_freeing": 40,
    "hall_2_rocks": 36,
    "hall_3_rocks": 28,
    "three_rooms": 32,
    "full_hands": 26,
    "spring_cleaning": 28,
    "greenhouse": 24,
    "one_key_two_rooms": 14,
    "whose_door_first": 22,
    "the_many_or_the_few": 18,
}
# World and horizon, from a few thousand states to some millions.
RUNS = {
    "asymmetric_freeing": 25,
    "hall_2_rocks": 22,
    "hall_3_rocks": 20,
    "three_rooms": 20,
    "full_hands": 15,
    "spring_cleaning": 14,
    "greenhouse": 12,
    "one_key_two_rooms": 9,
    "the_many_or_the_few": 14,
    "carousel": 30,
}
QUICK_DOUBLINGS = {"asymmetric_freeing": 12, "hall_2_rocks": 8}
QUICK_RUNS = {"carousel": 6}


# --- states -----------------------------------------------------------------------------------------------------------


def print_states(worlds: dict[str, int], *, by_default: bool) -> None:
    title = "States: forecast from half of the levels, against all of them counted"
    if by_default:
        title = "States at twice the horizon of the world: the planner as it is by default, against all of them enumerated"
    table = Table(title, world=22, steps=7, bodies_seen=13, low=12, likely=12, high=12, counted=12, ratio=8)
    n_near, n_inside = 0, 0
    for name, steps in worlds.items():
        world = load_world(name, max_steps=steps)
        levels = None if by_default else steps // 2 + 1
        found = plan(world, PARAMS, max_levels=levels, memory="4GB", progress=False)
        dag = enumerate_dag(world, precision="exact", progress=False)
        states = found.horizons[-1].sizes.states
        ratio = states.likely / dag.n_states
        is_inside = states.low <= dag.n_states <= states.high
        n_near, n_inside = n_near + (1 / 1.5 <= ratio <= 1.5), n_inside + is_inside
        numbers = [f"{number:,.0f}" for number in (states.low, states.likely, states.high, dag.n_states)]
        note = "" if is_inside else "outside the range"
        table.row(name, f"{steps}", f"{found.probe.n_bodies:,}", *numbers, f"{ratio:.2f}", note=note)
    verdict = f"within a factor 1.5: {n_near} of {len(worlds)}; inside the range: {n_inside} of {len(worlds)}"
    print(f"\n{verdict}   {wanted(n_near == len(worlds), 'all')}")


# --- memory, disk and time --------------------------------------------------------------------------------------------


def in_child(name: str, steps: int, job: str) -> dict[str, Any]:
    """What this script prints when it is asked to do one job in a process of its own."""
    command = [sys.executable, str(Path(__file__)), "--child", name, str(steps), job]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def do_job(name: str, steps: int, job: str) -> dict[str, Any]:
    world = load_world(name, max_steps=steps)
    if job == "plan":
        found = plan(world, PARAMS, progress=False).horizons[-1]
        return {way.name: {what: vars(getattr(way, what)) for what in ("memory", "disk", "seconds")} for way in found.ways}
    with tempfile.TemporaryDirectory(prefix="empo_bi-bench-") as parent:
        out = Path(parent) / "run" if job == "on disk" else None
        solve(load_world(name, max_steps=2), PARAMS, out=out and Path(parent) / "first", progress=False)  # loads the kernels
        begin = time.perf_counter()
        solution = solve(world, PARAMS, out=out, progress=False)
        seconds = time.perf_counter() - begin
        files = [path.stat().st_size for path in Path(parent).glob("run/**/*") if path.is_file()]
        return {
            "memory": peak_bytes(), "disk": sum(files), "seconds": seconds, "states": solution.dag.n_states,
            "bodies": solution.dag.n_bodies,
        }  # fmt: skip


def print_runs(worlds: dict[str, int]) -> None:
    columns = {"world": 20, "steps": 6, "states": 11, "way": 20, "memory": 10, "measured": 10, "ratio": 7}
    title = "Memory, disk and time: predicted by default settings, against runs in processes of their own"
    table = Table(title, **columns, disk=10, files=10, time=9, took=9)
    near: dict[str, int] = {"in memory, float16": 0, "on disk": 0}
    for name, steps in worlds.items():
        predicted = in_child(name, steps, "plan")
        for way in near:
            real = in_child(name, steps, way)
            guess = {what: Range(**predicted[way][what]) for what in ("memory", "disk", "seconds")}
            ratio = guess["memory"].likely / real["memory"]
            is_near = 0.75 <= ratio <= 1.25
            near[way] += is_near
            note = "" if is_near else "over 25% off"
            disk = (
                [f"{nbytes / 1e6:,.1f} MB" for nbytes in (guess["disk"].likely, real["disk"])] if real["disk"] else ["", ""]
            )
            table.row(
                name, f"{steps}", f"{real['states']:,}", way,
                *(f"{nbytes / 1e6:,.0f} MB" for nbytes in (guess["memory"].likely, real["memory"])), f"{ratio:.2f}",
                *disk, f"{guess['seconds'].likely:.2f} s", f"{real['seconds']:.2f} s", note=note,
            )  # fmt: skip
    counted = "; ".join(f"{way}: {n} of {len(worlds)}" for way, n in near.items())
    print(f"\nmemory within 25%, {counted}   {wanted(min(near.values()) >= len(worlds) * 0.9, 'nine of ten')}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two small worlds: only to see that everything runs")
    parser.add_argument("--no-runs", action="store_true", help="only states, nothing is solved")
    parser.add_argument("--no-states", action="store_true", help="only memory, disk and time")
    child_help = "only do JOB (plan, 'in memory, float16', 'on disk') in this process, and print what was found as JSON"
    parser.add_argument("--child", nargs=3, metavar=("WORLD", "STEPS", "JOB"), help=child_help)
    options = parser.parse_args()
    if options.child:
        name, steps, job = options.child
        print(json.dumps(do_job(name, int(steps), job)))
        return
    begin, others = time.perf_counter(), OtherWork()
    if not options.no_states:
        print_states(QUICK_DOUBLINGS if options.quick else DEFAULTS, by_default=True)
        print_states(QUICK_DOUBLINGS if options.quick else DOUBLINGS, by_default=False)
    if not options.no_runs:
        print_runs(QUICK_RUNS if options.quick else RUNS)
    print(f"\n{time.perf_counter() - begin:.0f} s in all; others used {others.cores():.2f} cores meanwhile")


if __name__ == "__main__":
    main()
