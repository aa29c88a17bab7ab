"""How fast DAGs are found, how much room they take in memory and on disk, and how that grows: figures of one run.

Run with `make bench-dag`, or

    python benchmarks/bench_dag.py                    # everything: six to ten minutes
    python benchmarks/bench_dag.py --quick            # small horizons, only to see that it runs
    python benchmarks/bench_dag.py --horizons 15 25   # other horizons in the table of memory and disk
    python benchmarks/bench_dag.py --no-50            # without the largest DAG
    python benchmarks/bench_dag.py --profile          # also where the time goes when levels are written to disk

All of it is the world asymmetric_freeing. *States* count with their step, *bodies* without it: a body is expanded and stored
once, whatever the number of levels it is on. *Transitions* are the stored (body, profile, successor) entries.

Only figures of one run may be compared with each other. What is compared takes turns, and the best of several rounds of each
counts, since the speed of a virtual machine changes from one second to the next. Times are wall clock, since other threads
write to disk; only where one core is used, against the oracle and in the table of growth, CPU seconds are counted. Kernels
are warm. Peak memory is that of a process of its own.

Stores and workers want a second core for themselves. Runs during which others used the machine count only where there is no
better one after some more rounds; such figures are marked as disturbed.
"""

from __future__ import annotations

import argparse
import gc
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the oracle lives there

from measuring import QUIET, OtherWork, Table, notes, take_turns, wanted  # noqa: E402
from oracle.gridworld import enumerate_levels, parse  # noqa: E402

from empo_bi import Dag, enumerate_dag, load_world, worlds  # noqa: E402
from empo_bi.runtime.machine import peak_bytes  # noqa: E402

WORLD = "asymmetric_freeing"
COMPRESSIONS: dict[str, Any] = {"none": False, "lz4": "lz4", "zstd 1": 1, "zstd 3": 3, "zstd 5": 5}
WARM_UP_STEPS = 3


@dataclass(frozen=True)
class Sizes:
    """How large the cases are, and how often they are repeated."""

    oracle: int = 8
    horizons: tuple[int, ...] = (15, 25, 40)
    growth: tuple[int, ...] = (15, 20, 25, 30, 35, 40)
    largest: int = 50
    middle: int = 25  # for workers, compression and the profile
    rounds: int = 3
    most_rounds: int = 4  # if others use the machine
    seconds: float = 4.0  # short cases are repeated for this long


QUICK = Sizes(oracle=3, horizons=(6,), growth=(4, 6), largest=7, middle=5, rounds=1, most_rounds=1, seconds=0.0)


@dataclass(frozen=True)
class Run:
    """One enumeration: its time and its sizes; files are counted where it went to disk."""

    seconds: float
    cpu_seconds: float  # of all threads
    others: float  # cores that others used meanwhile
    n_states: int
    n_bodies: int
    n_transitions: int
    peak_bytes: int
    attained_bytes: int = 0  # in memory
    disk_bytes: int = 0
    key_bytes: int = 0
    attained_disk_bytes: int = 0

    @property
    def is_disturbed(self) -> bool:
        return self.others > QUIET

    @property
    def mark(self) -> str:
        return f"disturbed: others used {self.others:.1f} cores" if self.is_disturbed else ""


# --- measuring --------------------------------------------------------------------------------------------------------


def enumerate_once(steps: int, *, to_disk: bool = False, **options: Any) -> Run:
    """Enumerate to memory or to a new folder, which is measured and removed outside the time that counts."""
    world = load_world(WORLD, max_steps=steps)
    with tempfile.TemporaryDirectory(prefix="empo_bi-bench-") as parent:
        folder = Path(parent) / "dag"
        gc.collect()
        others, begin, cpu_begin = OtherWork(), time.perf_counter(), time.process_time()
        dag = enumerate_dag(world, store=folder if to_disk else None, progress=False, **options)
        seconds, cpu_seconds = time.perf_counter() - begin, time.process_time() - cpu_begin
        cores, peak = others.cores(), peak_bytes()
        with dag:
            attained = 0 if to_disk else attained_bytes_of(dag)
            sizes = (dag.n_states, dag.n_bodies, dag.n_transitions)
            return Run(seconds, cpu_seconds, cores, *sizes, peak, attained, *sizes_on_disk(folder))


def attained_bytes_of(dag: Dag) -> int:
    return sum(piece.attained.nbytes for piece in dag.levels if piece.attained is not None)


def sizes_on_disk(folder: Path) -> tuple[int, int, int]:
    """Bytes of all files, of those of arrays named ``key``, and of those named ``attained``."""
    files = [(path.relative_to(folder).parts, path.stat().st_size) for path in folder.rglob("*") if path.is_file()]
    named = [sum(size for parts, size in files if name in parts) for name in ("key", "attained")]
    return sum(size for _, size in files), named[0], named[1]


def warm_up() -> None:
    """Load or compile all kernels, and import what stores need."""
    for to_disk in (False, True):
        enumerate_once(WARM_UP_STEPS, to_disk=to_disk)
    enumerate_once(WARM_UP_STEPS, workers=2)


def print_peak(steps: int, place: str) -> None:
    """What ``--peak`` does: one enumeration in this process, which is a fresh one. Prints JSON."""
    start = enumerate_once(WARM_UP_STEPS, to_disk=place == "disk").peak_bytes
    print(json.dumps({"start": start, "run": vars(enumerate_once(steps, to_disk=place == "disk"))}))


def peak_of(steps: int, place: str) -> tuple[int, Run]:
    """Bytes held after imports and warm-up, and one enumeration, in a process of its own."""
    command = [sys.executable, str(Path(__file__)), "--peak", str(steps), place]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found["start"], Run(**found["run"])


# --- tables -----------------------------------------------------------------------------------------------------------


def print_oracle(sizes: Sizes) -> None:
    """Engine and oracle find the same levels and the transitions of all their states; only the engine keeps the latter."""
    steps = sizes.oracle
    world = load_world(WORLD, max_steps=steps)
    path = worlds.find(WORLD)
    assert path is not None
    oracle = parse(path.read_text(encoding="utf-8"), max_steps=steps)
    engine_times, oracle_times = [], []
    for _ in range(sizes.rounds):
        for _ in range(20):  # it takes only milliseconds
            begin = time.process_time()
            dag = enumerate_dag(world, progress=False)
            engine_times.append(time.process_time() - begin)
        begin = time.process_time()
        levels = enumerate_levels(oracle, steps)
        oracle_times.append(time.process_time() - begin)
    assert [len(level) for level in levels] == dag.level_sizes
    engine, plain = min(engine_times), min(oracle_times)
    ratio = plain / engine
    title = f"Against the oracle: {steps} steps, {dag.n_states:,} states, {dag.n_bodies:,} bodies, in memory, one core"
    table = Table(title, _=8, time=14, states_per_second=20, bodies_per_second=20, ratio=9)
    table.row("oracle", f"{plain * 1e3:,.1f} ms", f"{dag.n_states / plain:,.0f}", "")
    rates = [f"{n / engine:,.0f}" for n in (dag.n_states, dag.n_bodies)]
    note = wanted(ratio >= 500, "at least 500x") if steps >= 8 else ""
    table.row("engine", f"{engine * 1e3:,.1f} ms", *rates, f"{ratio:.0f}x", note=note)


def print_horizons(sizes: Sizes) -> None:
    """Time and room of a DAG in memory and on disk, by horizon."""
    columns = {"steps": 5, "states": 12, "bodies": 11, "transitions": 13, "where": 8, "time": 10, "CPU": 10}
    table = Table("Memory and disk", **columns, states_per_s=14, transitions_per_s=19, disk_to_memory=16)
    on_disk: dict[int, Run] = {}
    attained: dict[int, int] = {}
    for steps in sizes.horizons:
        jobs = {where: partial(enumerate_once, steps, to_disk=where == "disk") for where in ("memory", "disk")}
        best = take_turns(jobs, sizes)
        on_disk[steps], attained[steps] = best["disk"], best["memory"].attained_bytes
        ratio = best["disk"].seconds / best["memory"].seconds
        for where, run in best.items():
            counts = [f"{n:,}" for n in (steps, run.n_states, run.n_bodies, run.n_transitions)]
            rates = [f"{n / run.seconds / 1e6:.2f} M" for n in (run.n_states, run.n_transitions)]
            cells = [
                *(counts if where == "memory" else [""] * 4),
                where,
                f"{run.seconds:.2f} s",
                f"{run.cpu_seconds:.2f} s",
                *rates,
            ]
            if where == "memory":
                table.row(*cells, note=run.mark)
            else:
                verdict = wanted(ratio <= 1.4, "at most 1.4") if steps >= 25 else ""
                table.row(*cells, f"{ratio:.2f}", note=notes(verdict, run.mark))

    title = (
        "Room: bytes on disk, for each transition with and without keys; attainment bits in memory and on disk;\n"
        "peak of a process that keeps the DAG in memory or on disk, and what it held before it began"
    )
    columns = {"steps": 5, "disk": 11, "each": 10, "without_keys": 14, "attained": 12, "on_disk": 11}
    table = Table(title, **columns, peak_in_memory=20, peak_on_disk=20)
    for steps, run in on_disk.items():
        each = [nbytes / run.n_transitions for nbytes in (run.disk_bytes, run.disk_bytes - run.key_bytes)]
        table.row(
            f"{steps}",
            f"{run.disk_bytes / 1e6:.2f} MB",
            *(f"{nbytes:.3f} B" for nbytes in each),
            *(f"{nbytes / 1e6:.3f} MB" for nbytes in (attained[steps], run.attained_disk_bytes)),
            *(f"{alone.peak_bytes / 1e6:,.0f} ({start / 1e6:.0f}) MB" for start, alone in both_peaks(steps)),
            note=wanted(attained[steps] <= 0.5e6, "attained at most 0.5 MB") if steps == 15 else "",
        )


def both_peaks(steps: int) -> list[tuple[int, Run]]:
    return [peak_of(steps, place) for place in ("memory", "disk")]


def print_growth(sizes: Sizes) -> None:
    """Bodies of the last level are not expanded, which is why a transition says more than a body."""
    title = "How CPU time grows with the horizon, in memory: per body and transition it should not, per state it falls"
    table = Table(title, steps=5, states=12, bodies=11, CPU=10, per_body=12, per_transition=17, per_state=12)
    best = take_turns({steps: partial(enumerate_once, steps) for steps in sizes.growth}, sizes, by="cpu_seconds")
    for steps, run in best.items():
        each = [run.cpu_seconds / n for n in (run.n_bodies, run.n_transitions, run.n_states)]
        spoken = [f"{each[0] * 1e6:.2f} us", f"{each[1] * 1e9:.0f} ns", f"{each[2] * 1e6:.2f} us"]
        table.row(f"{steps}", f"{run.n_states:,}", f"{run.n_bodies:,}", f"{run.cpu_seconds:.2f} s", *spoken, note=run.mark)


def print_largest(steps: int) -> None:
    title = f"{steps} steps to disk, in a process of its own"
    table = Table(title, states=12, bodies=11, transitions=13, time=10, disk=12, before=12, peak=12)
    start, run = peak_of(steps, "disk")
    counts = [f"{n:,}" for n in (run.n_states, run.n_bodies, run.n_transitions)]
    room = [f"{nbytes / 1e6:,.1f} MB" for nbytes in (run.disk_bytes, start, run.peak_bytes)]
    note = notes(wanted(run.peak_bytes < 1.5e9, "below 1,500 MB"), run.mark)
    table.row(*counts, f"{run.seconds:.2f} s", *room, note=note)


def print_workers(sizes: Sizes) -> None:
    best = take_turns({n: partial(enumerate_once, sizes.middle, workers=n) for n in (1, 2)}, sizes)
    table = Table(f"Workers: {sizes.middle} steps, in memory", workers=8, time=10, faster=10)
    for workers, run in best.items():
        table.row(f"{workers}", f"{run.seconds:.2f} s", f"{best[1].seconds / run.seconds:.2f}x", note=run.mark)


def print_compression(sizes: Sizes) -> None:
    jobs = {name: partial(enumerate_once, sizes.middle, to_disk=True, compression=c) for name, c in COMPRESSIONS.items()}
    best = take_turns({"memory": partial(enumerate_once, sizes.middle), **jobs}, sizes)
    columns = {"compression": 11, "time": 10, "to_memory": 11, "disk": 12, "each": 11, "without_keys": 15}
    table = Table(f"Compression: {sizes.middle} steps, to disk", **columns)
    for name, run in best.items():
        each = [nbytes / run.n_transitions for nbytes in (run.disk_bytes, run.disk_bytes - run.key_bytes)]
        room = [f"{run.disk_bytes / 1e6:.2f} MB", *(f"{nbytes:.3f} B" for nbytes in each)] if run.disk_bytes else []
        table.row(name, f"{run.seconds:.2f} s", f"{run.seconds / best['memory'].seconds:.2f}", *room, note=run.mark)


# --- where the time goes ----------------------------------------------------------------------------------------------


def print_profile(steps: int) -> None:
    """Look at all threads every few milliseconds, since a store is written by others than the one that explores."""
    seen: Counter[tuple[str, str]] = Counter()
    looks, done = 0, threading.Event()

    def explore() -> None:
        try:
            enumerate_once(steps, to_disk=True)
        finally:
            done.set()

    explorer = threading.Thread(target=explore, name="explorer")
    explorer.start()
    while not done.wait(0.003):
        looks += 1
        names = {thread.ident: re.sub(r"[-_]?\d+$", "", thread.name) for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident != threading.get_ident() and (place := place_of(frame)) is not None:
                seen[names.get(ident, "other"), place] += 1
    explorer.join()
    table = Table(f"Where threads are while {steps} steps go to disk, if they are not idle", looks=7, thread=16, function=11)
    for (thread, place), count in seen.most_common(20):
        table.row(f"{count / looks:.1%}", thread, note=place)


def place_of(frame: FrameType) -> str | None:
    """The innermost function, and the one of this package that it works for; None for a thread that waits for work."""
    here = name_of(frame)
    if here in ("selectors.py:select", "thread.py:_worker", "_monitor.py:run"):
        return None
    caller: FrameType | None = frame
    while caller is not None and "empo_bi" not in Path(caller.f_code.co_filename).parts:
        caller = caller.f_back
    if caller is None:
        return None if here == "threading.py:wait" else here
    return here if caller is frame else f"{here} for {name_of(caller)}"


def name_of(frame: FrameType) -> str:
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small horizons, one round: only to see that everything runs")
    parser.add_argument(
        "--horizons", nargs="+", type=int, metavar="STEPS", help="of the table of memory and disk (15 25 40)"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="how often those that are compared take turns, at least (3)")
    parser.add_argument("--no-50", action="store_true", help="leave out the largest DAG, of 50 steps")
    parser.add_argument("--profile", action="store_true", help="also show where threads are while levels are written")
    peak_help = "only enumerate once, to PLACE (memory or disk), in this process, and print its peak memory as JSON"
    parser.add_argument("--peak", nargs=2, metavar=("STEPS", "PLACE"), help=peak_help)
    options = parser.parse_args()
    if options.peak:
        print_peak(int(options.peak[0]), options.peak[1])
        return
    sizes = QUICK if options.quick else Sizes()
    if options.rounds:
        sizes = replace(sizes, rounds=options.rounds)
    if options.horizons:
        sizes = replace(sizes, horizons=tuple(options.horizons))
    begin, others = time.perf_counter(), OtherWork()
    warm_up()
    print_oracle(sizes)
    print_horizons(sizes)
    print_growth(sizes)
    if not options.no_50:
        print_largest(sizes.largest)
    print_workers(sizes)
    print_compression(sizes)
    if options.profile:
        print_profile(sizes.middle)
    print(f"\n{time.perf_counter() - begin:.0f} s in all; others used {others.cores():.2f} cores meanwhile")


if __name__ == "__main__":
    main()
