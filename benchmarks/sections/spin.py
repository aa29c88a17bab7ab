"""SPIN enumerates the same gridworld, from a Promela model that is generated from its map."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Literal

from benchmarks.child import in_child
from benchmarks.measuring import Runs, duration, megabytes
from benchmarks.peers.spin import SpinRun, enumerate_with_spin, why_missing
from benchmarks.report import Section
from benchmarks.sizes import Sizes
from empo_bi import Dag, enumerate_dag, load_world

WORLD = "asymmetric_freeing"
Counted = Literal["states", "bodies"]


def measure(sizes: Sizes) -> Section:
    section = Section("spin", "SPIN: enumeration")
    section.about.append(
        f"All states of `{WORLD}`. SPIN generates and compiles a program for each model (*prepare*: `spin -a` and gcc), "
        "which then searches. *States* have the step in them, searched depth first; *bodies* have not, searched breadth "
        "first down to the horizon, which is what we do, and SPIN's best case. SPIN only counts states; we also keep every "
        "transition with its probability, on disk compressed and with checksums. Both find the same numbers of states, "
        "which is checked. Peak memory is that of whole processes, ours with Python and numba."
    )
    missing = why_missing()
    if missing:
        section.missing.append(missing)
        return section
    columns = ("steps", "", "found", "prepare", "time", "spread", "CPU", "times ours, disk", "peak memory")
    table = section.table("Enumeration by SPIN and by us", *columns)
    shorter = [] if sizes.rounds == 1 else [sizes.spin_steps - 3]  # gcc takes seconds for each model
    for steps in (*shorter, sizes.spin_steps):
        _compare(section, table, steps, sizes.rounds)
    return section


def _compare(section, table, steps: int, rounds: int) -> None:  # type: ignore[no-untyped-def]
    world = load_world(WORLD, max_steps=steps)
    ours = {"ours, disk": Runs(), "ours, memory": Runs()}
    theirs: dict[Counted, list[SpinRun]] = {"states": [], "bodies": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            ours["ours, disk"].run(lambda folder=folder: enumerate_dag(world, store=Path(folder) / "dag", progress=False))
            ours["ours, memory"].run(lambda: enumerate_dag(world, progress=False))
            for counted, runs in theirs.items():
                runs.append(enumerate_with_spin(world, Path(folder), count=counted))
    dag: Dag = ours["ours, memory"].result
    found = {"states": dag.n_states, "bodies": dag.n_bodies}
    best = ours["ours, disk"].seconds
    for counted, runs in theirs.items():
        if runs[0].n_states != found[counted]:
            raise AssertionError(f"SPIN finds {runs[0].n_states} {counted}, we find {found[counted]}")
        search = Runs([run.pan_seconds for run in runs], [run.pan_cpu_seconds for run in runs])
        prepare = min(run.spin_seconds + run.gcc_seconds for run in runs)
        peak = megabytes(max(run.peak_bytes for run in runs))
        cells = duration(prepare), *search.cells(), f"{search.seconds / best:.2f}x", peak
        table.row(str(steps), f"SPIN, {counted}", f"{found[counted]:,}", *cells)
    for name, run in ours.items():
        child = in_child("benchmarks.sections.spin:enumerated", steps=steps, on_disk=name == "ours, disk")
        numbers = f"{found['states']:,} ({found['bodies']:,} bodies)"
        table.row(str(steps), name, numbers, "–", *run.cells(), f"{run.seconds / best:.2f}x", megabytes(child.peak))
    section.figures[f"SPIN on bodies, {steps} steps, times ours on disk"] = (
        min(run.pan_seconds for run in theirs["bodies"]) / best
    )


def enumerated(steps: int, on_disk: bool) -> int:
    """In a process of its own, for its memory."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "dag" if on_disk else None
        return enumerate_dag(load_world(WORLD, max_steps=steps), store=store, progress=False).n_states
