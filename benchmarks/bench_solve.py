"""How fast both phases are solved, how much memory that takes, and how far it is from what the machine could do.

Run with `make bench-solve`, or

    python benchmarks/bench_solve.py              # everything but the largest world: some minutes
    python benchmarks/bench_solve.py --quick      # small horizons, only to see that it runs
    python benchmarks/bench_solve.py --largest    # also 50 steps, 23.4 million states, within 2 GB

All of it is the world asymmetric_freeing, both phases. What is compared takes turns in one run, and the best undisturbed run
of each counts, since the speed of a virtual machine changes from one second to the next. Times are wall clock; against the
oracle, where one core works, CPU seconds. Kernels are warm. Peak memory is that of a process of its own.

*Gather bandwidth* is that of a loop which does nothing but add up the rows of a table that the transitions of the same DAG
lead to: what remains of a sweep if all arithmetic is free. The sweep gathers a row for each (state, profile, successor) in
each phase, and a number for the robot.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, prange

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the oracle lives there

from measuring import QUIET, OtherWork, Table, notes, take_turns, wanted  # noqa: E402
from oracle import planning  # noqa: E402
from oracle.gridworld import parse  # noqa: E402

from empo_bi import (  # noqa: E402
    Dag,
    Params,
    compute_human_policy_prior,
    compute_robot_policy,
    enumerate_dag,
    load_world,
    solve,
    worlds,
)
from empo_bi.runtime.machine import peak_bytes  # noqa: E402

WORLD = "asymmetric_freeing"
PARAMS = Params(beta_h=10.0, gamma_h=0.99, beta_r=10.0, gamma_r=0.99, zeta=2.0, xi=1.0, eta=1.1)


@dataclass(frozen=True)
class Sizes:
    """How large the cases are, and how often they are repeated."""

    oracle: tuple[int, ...] = (5, 8)
    horizons: tuple[int, ...] = (15, 25)
    middle: int = 25  # for workers and bandwidth
    sets: int = 15  # for many sets of parameters
    n_sets: int = 16
    peaks: tuple[int, ...] = (8, 15)
    engine_rounds: int = 20  # against the oracle
    copied: int = 1 << 26  # numbers
    rounds: int = 3
    most_rounds: int = 5  # if others use the machine
    seconds: float = 3.0  # short cases are repeated for this long


QUICK = Sizes(
    oracle=(3,), horizons=(4,), middle=5, sets=3, n_sets=2, peaks=(3,), engine_rounds=2, copied=1 << 16, rounds=1,
    most_rounds=1, seconds=0.0,
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One measured piece of work."""

    seconds: float
    cpu_seconds: float  # of all threads
    others: float  # cores that others used meanwhile

    @property
    def is_disturbed(self) -> bool:
        return self.others > QUIET

    @property
    def mark(self) -> str:
        return f"disturbed: others used {self.others:.1f} cores" if self.is_disturbed else ""


def measured(work: Callable[[], Any]) -> Run:
    gc.collect()
    others, begin, cpu_begin = OtherWork(), time.perf_counter(), time.process_time()
    work()
    seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
    return Run(seconds, cpu_seconds, others.cores())


# --- the pieces of work -----------------------------------------------------------------------------------------------


def solve_once(steps: int, *, dag: Dag | None = None, to_disk: bool = False, **options: Any) -> Run:
    """Solve to memory or to a new folder, from the world or from a DAG; removing the folder does not count."""
    world = load_world(WORLD, max_steps=steps) if dag is None else dag.world
    with tempfile.TemporaryDirectory(prefix="empo_bi-bench-") as parent:
        out = Path(parent) / "run" if to_disk else None
        return measured(lambda: solve(world, PARAMS, dag=dag, out=out, progress=False, **options))


def solve_by_oracle(steps: int) -> tuple[Run, float]:
    """Both phases by the plain oracle, enumeration included. Also returns V_r of the initial state."""
    path = worlds.find(WORLD)
    assert path is not None
    text = path.read_text(encoding="utf-8")
    found: list[float] = []

    def work() -> None:
        oracle = parse(text, max_steps=steps)
        world, goals = planning.GridPlanningWorld(oracle), planning.GridGoals(oracle)
        agents = load_world(WORLD, max_steps=steps)
        humans, robots = agents.human_agent_indices, agents.robot_agent_indices
        graph = planning.Graph(world)
        policies, _ = planning.human_policy_prior(world, humans, goals, beta_h=10.0, gamma_h=0.99, graph=graph)
        result = planning.robot_policy(
            world, humans, robots, goals, policies, beta_r=10.0, gamma_h=0.99, gamma_r=0.99, zeta=2.0, xi=1.0, eta=1.1,
            graph=graph,
        )  # fmt: skip
        found.append(result["Vr"][graph.states[0]])

    return measured(work), found[0]


@njit(nogil=True)
def gather(table: Any, vr: Any, succ_K: Any, sums: Any) -> float:
    """Add up the rows of a table, and the numbers of a vector, that transitions lead to."""
    total = 0.0
    for k in range(succ_K.size):
        s = succ_K[k]
        for x in range(table.shape[1]):
            sums[x] += table[s, x]
        total += vr[s]
    return total


@njit(nogil=True, parallel=True)
def copy(source: Any, target: Any) -> None:
    for i in prange(source.size):
        target[i] = source[i]


def gather_once(dag: Dag, n_columns: int) -> tuple[Run, int]:
    """Gather all rows that one sweep gathers: in both phases, all transitions of all levels. Returns also the bytes."""
    table = np.random.default_rng(0).random((dag.n_bodies, n_columns)).astype(np.float32)
    vr, sums = np.ones(dag.n_bodies), np.zeros(n_columns, dtype=np.float32)
    pieces = [dag.levels[t].succ_K for t in range(dag.horizon)]
    times = [sum(1 for t in range(dag.horizon) if t >= i) for i in range(dag.horizon)]  # levels that share a slice
    gather(table, vr, pieces[0][:1], sums)
    n_entries = sum(n * len(piece) for n, piece in zip(times, pieces, strict=True) if piece is not None)
    nbytes = n_entries * (2 * n_columns * 4 + 8)

    def work() -> None:
        for t in range(dag.horizon):
            for piece in pieces[: t + 1]:
                if piece is not None:
                    gather(table, vr, piece, sums)  # phase 1
                    gather(table, vr, piece, sums)  # phase 2

    return measured(work), nbytes


# --- tables -----------------------------------------------------------------------------------------------------------


def print_oracle(sizes: Sizes) -> None:
    table = Table("Against the oracle: both phases, enumeration included, one core", steps=5, oracle=14, engine=13, ratio=10)
    for steps in sizes.oracle:
        oracle, value = solve_by_oracle(steps)
        engine = min((solve_once(steps) for _ in range(sizes.engine_rounds)), key=lambda run: run.cpu_seconds)
        solution = solve(load_world(WORLD, max_steps=steps), PARAMS, progress=False)
        assert abs(solution.values.V_r[0][0] / value - 1) < 1e-5, (solution.values.V_r[0][0], value)
        ratio = oracle.cpu_seconds / engine.cpu_seconds
        table.row(
            f"{steps}", f"{oracle.cpu_seconds:,.2f} s", f"{engine.cpu_seconds * 1e3:.1f} ms", f"{ratio:,.0f}x",
            note=wanted(ratio >= 1000, "at least 1000x") if steps >= 5 else "",
        )  # fmt: skip


def print_horizons(sizes: Sizes) -> None:
    """Disk slicing against memory, from the world to both policies."""
    columns = {"steps": 5, "states": 12, "where": 8, "time": 10, "CPU": 10, "states_per_s": 14, "disk_to_memory": 16}
    table = Table("Memory and disk: from the world to both policies, one worker", **columns)
    for steps in sizes.horizons:
        n_states = enumerate_dag(load_world(WORLD, max_steps=steps), progress=False).n_states
        jobs = {where: partial(solve_once, steps, to_disk=where == "disk") for where in ("memory", "disk")}
        best = take_turns(jobs, sizes)
        for where, run in best.items():
            ratio = best["disk"].seconds / best["memory"].seconds
            cells = [f"{run.seconds:.2f} s", f"{run.cpu_seconds:.2f} s", f"{n_states / run.seconds / 1e6:.2f} M"]
            verdict = wanted(ratio <= 1.3, "at most 1.3") if where == "disk" and steps >= 25 else ""
            shown = [f"{ratio:.2f}"] if where == "disk" else []
            first = [f"{steps}", f"{n_states:,}"] if where == "memory" else ["", ""]
            table.row(*first, where, *cells, *shown, note=notes(verdict, run.mark))


def print_workers(sizes: Sizes) -> None:
    dag = enumerate_dag(load_world(WORLD, max_steps=sizes.middle), precision="exact", progress=False)
    best = take_turns({n: partial(solve_once, sizes.middle, dag=dag, workers=n) for n in (1, 2)}, sizes)
    table = Table(f"Workers: the sweep of {sizes.middle} steps, in memory", workers=8, time=10, faster=10)
    for workers, run in best.items():
        ratio = best[1].seconds / run.seconds
        verdict = wanted(ratio >= 1.6, "at least 1.6x") if workers == 2 and sizes.middle >= 25 else ""
        table.row(f"{workers}", f"{run.seconds:.2f} s", f"{ratio:.2f}x", note=notes(verdict, run.mark))


def print_sets(sizes: Sizes) -> None:
    """Many sets of parameters in one pass, with other robots, and with other humans too."""
    world = load_world(WORLD, max_steps=sizes.sets)
    robots = [PARAMS.replace(beta_r=1.0 + i) for i in range(sizes.n_sets)]
    everybody = [PARAMS.replace(beta_h=1.0 + i, beta_r=1.0 + i) for i in range(sizes.n_sets)]

    def one_by_one(sets: list[Params]) -> None:
        for params in sets:
            with tempfile.TemporaryDirectory(prefix="empo_bi-bench-") as parent:
                solve(world, params, out=Path(parent) / "run", progress=False)

    def together(sets: list[Params]) -> None:
        with tempfile.TemporaryDirectory(prefix="empo_bi-bench-") as parent:
            solve(world, sets, out=Path(parent) / "run", progress=False)

    jobs: dict[Any, Callable[[], Run]] = {}
    for name, sets in (("other robots", robots), ("other humans, too", everybody)):
        jobs[name, "passes"] = partial(measured, partial(one_by_one, sets))
        jobs[name, "one pass"] = partial(measured, partial(together, sets))
    best = take_turns(jobs, sizes)
    title = f"{sizes.n_sets} sets of parameters: {sizes.sets} steps, to disk, the DAG included"
    table = Table(title, sets=20, passes=12, one_pass=12, faster=10)
    for name in ("other robots", "other humans, too"):
        passes, one = best[name, "passes"], best[name, "one pass"]
        table.row(
            name, f"{passes.seconds:.2f} s", f"{one.seconds:.2f} s", f"{passes.seconds / one.seconds:.2f}x",
            note=notes(passes.mark, one.mark),
        )  # fmt: skip


def print_bandwidth(sizes: Sizes) -> None:
    steps = sizes.middle
    world = load_world(WORLD, max_steps=steps)
    dag = enumerate_dag(world, precision="exact", progress=False)
    n_columns = len(world.human_agent_indices) * world.possible_goal_generator.n_goals
    nbytes = gather_once(dag, n_columns)[1]
    best = take_turns(
        {"gather": lambda: gather_once(dag, n_columns)[0], "sweep": partial(solve_once, steps, dag=dag)}, sizes
    )
    gathered, swept = best["gather"], best["sweep"]
    source = np.ones(sizes.copied, dtype=np.float32)
    target = np.empty_like(source)
    copy(source, target)
    copied = min(measured(lambda: copy(source, target)).seconds for _ in range(5))
    title = f"Bandwidth: {steps} steps, tables of {dag.n_bodies * n_columns * 4 / 1e6:.0f} MB, one core (copying: two)"
    table = Table(title, _=8, bytes=12, time=10, bandwidth=14, share=9)
    table.row("copy", f"{2 * source.nbytes / 1e9:.2f} GB", f"{copied:.2f} s", f"{2 * source.nbytes / copied / 1e9:.1f} GB/s")
    for name, run in (("gather", gathered), ("sweep", swept)):
        share = gathered.seconds / run.seconds
        note = notes(wanted(share >= 0.4, "40%") if name == "sweep" and steps >= 25 else "", run.mark)
        table.row(
            name, f"{nbytes / 1e9:.2f} GB", f"{run.seconds:.2f} s", f"{nbytes / run.seconds / 1e9:.1f} GB/s", f"{share:.0%}",
            note=note,
        )  # fmt: skip


def print_peaks(sizes: Sizes) -> None:
    title = "Peak memory of a process, from YAML to both policies by the documented functions, disk slicing on"
    table = Table(title, steps=5, imports=11, peak=11, time=10)
    for steps in sizes.peaks:
        found = in_child("--documented", str(steps))
        note = wanted(found["peak"] < 400e6, "below 400 MB") if steps == 15 else ""
        table.row(f"{steps}", f"{found['start'] / 1e6:.0f} MB", f"{found['peak'] / 1e6:.0f} MB", f"{found['seconds']:.2f} s",
                  note=note)  # fmt: skip


def print_largest(steps: int, limit: str) -> None:
    title = f"{steps} steps to disk, both phases, memory_limit={limit}, in a process of its own"
    table = Table(title, states=12, bodies=11, time=10, CPU=10, disk=12, peak=12, V_r=14)
    found = in_child("--limited", str(steps), limit)
    table.row(
        f"{found['n_states']:,}", f"{found['n_bodies']:,}", f"{found['seconds']:.0f} s", f"{found['cpu']:.0f} s",
        f"{found['disk'] / 1e6:,.0f} MB", f"{found['peak'] / 1e6:,.0f} MB", f"{found['V_r']:.4f}",
        note=wanted(found["peak"] < 2e9, "below 2,000 MB"),
    )  # fmt: skip


# --- in processes of their own ----------------------------------------------------------------------------------------


def in_child(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__)), *arguments]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def documented(steps: int) -> None:
    start, begin = peak_bytes(), time.perf_counter()
    world = load_world(WORLD, max_steps=steps)
    humans, robots = world.human_agent_indices, world.robot_agent_indices
    prior = compute_human_policy_prior(world, humans, gamma_h=0.99, use_disk_slicing=True, quiet=True)
    policy = compute_robot_policy(
        world, humans, robots, human_policy_prior=prior, gamma_h=0.99, gamma_r=0.99, zeta=2.0, eta=1.1,
        use_disk_slicing=True, quiet=True,
    )  # fmt: skip
    assert abs(sum(policy(world.initial_state()).values()) - 1) < 1e-12
    print(json.dumps({"start": start, "peak": peak_bytes(), "seconds": time.perf_counter() - begin}))


def limited(steps: int, limit: str) -> None:
    world = load_world(WORLD, max_steps=steps)
    with tempfile.TemporaryDirectory(prefix="empo_bi-bench-") as parent:
        begin, cpu = time.perf_counter(), time.process_time()
        solution = solve(world, PARAMS, out=Path(parent) / "run", memory_limit=limit, workers=2, progress=False)
        found = {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "peak": peak_bytes()}
        disk = sum(path.stat().st_size for path in Path(parent).rglob("*") if path.is_file())
        dag, value = solution.dag, float(solution.values.V_r[0][0])
        print(json.dumps({**found, "disk": disk, "V_r": value, "n_states": dag.n_states, "n_bodies": dag.n_bodies}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small horizons, one round: only to see that everything runs")
    parser.add_argument("--largest", action="store_true", help="also 50 steps to disk, within 2 GB (some minutes)")
    parser.add_argument("--documented", type=int, metavar="STEPS", help=argparse.SUPPRESS)
    parser.add_argument("--limited", nargs=2, metavar=("STEPS", "LIMIT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.documented is not None:
        documented(options.documented)
        return
    if options.limited:
        limited(int(options.limited[0]), options.limited[1])
        return
    sizes = QUICK if options.quick else Sizes()
    begin, others = time.perf_counter(), OtherWork()
    for to_disk in (False, True):
        solve_once(3, to_disk=to_disk, workers=2)  # kernels, and imports of stores
    print_oracle(sizes)
    print_horizons(sizes)
    print_workers(sizes)
    print_sets(sizes)
    print_bandwidth(sizes)
    print_peaks(sizes)
    if options.largest:
        print_largest(50, "2GB")
    print(f"\n{time.perf_counter() - begin:.0f} s in all; others used {others.cores():.2f} cores meanwhile")


if __name__ == "__main__":
    main()
