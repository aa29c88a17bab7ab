"""Streaming from disk against doing everything in memory; and whether a longer horizon takes more memory."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.child import in_child
from benchmarks.measuring import Runs, duration, megabytes
from benchmarks.report import Section
from benchmarks.rooms import room
from benchmarks.sizes import Sizes
from benchmarks.sweeps import nbytes_in

WORLD = "asymmetric_freeing"
# For the whole process. Time and memory are traded by it, so both figures are of runs with the same limit. It was chosen
# after trying three; the page says what came of each. (Others used 0.09 cores during the first, 0.01 during the rest.)
LIMIT = "2GB"
# Two humans and a robot in an empty room, whose levels stop growing at step 10: only the number of levels differs then.
STEADY_ROOM = room(4, 3, humans=2, n_goals=12)
WHY_SLOWER = (
    "Compressing and writing takes two thirds of the CPU time of the sweep itself, and wants a core for itself: where all "
    "cores sweep, or others use one, it does not get it. About half of it are the tables from which an interrupted sweep "
    "continues, written with every level; writing them less often is what to do next."
)
_MILLION = 1_000_000
_IN_MEMORY, _FROM_DISK = "in memory", "from disk"


@dataclass
class _Variant:
    """Runs of one way to sweep, in processes of their own; memory in bytes above what was there before the DAG."""

    runs: Runs = field(default_factory=Runs)
    dag: int = 0
    peak: int = 0
    found: dict[str, float] = field(default_factory=dict)

    def run(self, function: str, **arguments: Any) -> None:
        child = in_child(f"benchmarks.sweeps:{function}", **arguments)
        self.found = child.result
        self.runs.wall.append(self.found["seconds"])
        self.runs.cpu.append(self.found["cpu"])
        self.dag = max(self.dag, int(self.found["held"]) - child.before)
        self.peak = max(self.peak, int(self.found["peak"]) - child.before)


def measure(sizes: Sizes) -> Section:
    section = Section("streaming", "Streaming from disk")
    _against_memory(section, sizes)
    _long_horizon(section, sizes)
    return section


def _against_memory(section: Section, sizes: Sizes) -> None:
    steps = sizes.streaming_steps
    section.about.append(
        f"One sweep over `{WORLD}` with {steps} steps, both phases, its DAG enumerated before. *In memory*: DAG and "
        "solution are arrays. *From disk*: the DAG is in a folder, from which slices of transitions are read whenever a "
        "level needs them; solved levels are compressed and written to another folder while the next one is computed, with "
        f'what is needed to continue after a crash; and `memory_limit="{LIMIT}"`, the whole process included. *Arrays* is '
        "the peak of resident memory less what the process had before the DAG was enumerated or opened; *DAG* is the part "
        "of it that was there before the sweep began. Both find the same values."
    )
    section.about.append(
        "With one worker, which is the default, compressing and writing has a core to itself here; with two workers it "
        "takes turns with them, and its CPU time shows. Taken apart with 27 steps: reading the DAG costs next to nothing; "
        "of what writing costs, about half is solved levels, compressed, and half the tables from which an interrupted "
        "sweep continues. The limit trades time for memory, mostly by how many slices stay decompressed: of three that were "
        "tried with 50 steps and one worker, 1600MB took 1.37x the time and 0.18x the memory, 2GB 1.16x and 0.21x, and no "
        "limit 1.03x and 0.27x, so that only the one in the middle reaches both figures."
    )
    with tempfile.TemporaryDirectory() as folder:
        dag_folder = str(Path(folder) / "dag")
        n = in_child("benchmarks.sweeps:enumerated", world=WORLD, steps=steps, folder=dag_folder).result
        disk = nbytes_in(Path(dag_folder))
        variants = {workers: {way: _Variant() for way in (_IN_MEMORY, _FROM_DISK)} for workers in sizes.streaming_workers}
        for i in range(sizes.streaming_rounds):
            for workers, ways in list(variants.items())[: None if i == 0 else 1]:  # only the first is repeated
                given = {"world": WORLD, "steps": steps, "workers": workers}
                ways[_IN_MEMORY].run("swept_in_memory", **given)
                ways[_FROM_DISK].run("swept_from_disk", **given, dag_folder=dag_folder, memory_limit=LIMIT)
    table = section.table(
        f"{n['bodies']:,} bodies, {n['states']:,} states, a DAG of {megabytes(disk)} on disk",
        "", "time", "spread", "CPU", "arrays", "of that, DAG", "time, ratio", "CPU, ratio", "arrays, ratio",
    )  # fmt: skip
    for workers, ways in variants.items():
        memory, streamed = ways[_IN_MEMORY], ways[_FROM_DISK]
        if memory.found["V_r"] != streamed.found["V_r"]:
            raise RuntimeError(f"V_r is {memory.found['V_r']} in memory and {streamed.found['V_r']} from disk")
        slower, dearer = (streamed.runs.seconds / memory.runs.seconds, streamed.runs.cpu_seconds / memory.runs.cpu_seconds)
        ratios = [f"{ratio:.2f}x" for ratio in (slower, dearer, streamed.peak / max(1, memory.peak))]
        name = "1 worker" if workers == 1 else f"{workers} workers"
        for way, variant in ways.items():
            cells = (*variant.runs.cells(), megabytes(variant.peak), megabytes(max(0, variant.dag)))
            table.row(f"{name}, {way}", *cells, *(ratios if way == _FROM_DISK else [""] * 3))
            section.figures |= {f"{name}, {way}, s": variant.runs.seconds, f"{name}, {way}, bytes": variant.peak}
    for workers, ways in variants.items():
        _want_streaming(section, ways, n, workers)


def _want_streaming(section: Section, ways: dict[str, _Variant], n: dict[str, float], workers: int) -> None:
    memory, streamed = ways[_IN_MEMORY], ways[_FROM_DISK]
    is_large = n["bodies"] >= _MILLION
    by_whom = "one worker" if workers == 1 else f"{workers} workers"
    small = f"This size has only {n['bodies']:,} bodies; the figure is about a million."
    section.want(
        f"streaming from disk against the sweep in memory, {by_whom}: time",
        streamed.runs.seconds / memory.runs.seconds if is_large else None, at_most=1.25,
        why=WHY_SLOWER if is_large else small,
    )  # fmt: skip
    section.want(
        f"streaming from disk against the sweep in memory, {by_whom}: peak array memory",
        streamed.peak / memory.peak if is_large else None, at_most=0.25,
        why="Tables of two levels and two solved levels have to be held; the more levels there are, the less that is of all."
        if is_large
        else small,
    )  # fmt: skip


def _long_horizon(section: Section, sizes: Sizes) -> None:
    section.about.append(
        "*A longer horizon*: an empty room of 4 x 3 cells with two humans and a robot, 12 goals, whose levels stop growing "
        "at step 10, solved to disk, one worker, no limit. *Resident* is the peak of the whole process, *arrays* what it "
        "is above what was resident before. More levels should take more time and disk, but no more memory."
    )
    found = {steps: in_child("benchmarks.sweeps:enumerated_and_solved", world=STEADY_ROOM, steps=steps)
             for steps in sizes.streaming_horizons}  # fmt: skip
    levels = [(int(child.result["level before"]), int(child.result["last level"])) for child in found.values()]
    is_steady = len({size for pair in levels for size in pair}) == 1
    table = section.table(
        "A longer horizon, levels that have stopped growing", "steps", "last level", "states", "time", "CPU", "resident",
        "arrays", "disk",
        note="" if is_steady else "In this size the levels have not stopped growing: it only shows that everything runs.",
    )  # fmt: skip
    for steps, child in found.items():
        one = child.result
        arrays, disk = one["solve peak"] - child.before, one["solve disk"] + one["enumerate disk"]
        table.row(
            f"{steps}", f"{one['last level']:,}", f"{one['states']:,}", duration(one["solve seconds"]),
            duration(one["solve cpu"]), megabytes(one["solve peak"]), megabytes(arrays), megabytes(disk),
        )  # fmt: skip
        section.figures |= {f"{steps} steps, resident bytes": one["solve peak"], f"{steps} steps, array bytes": arrays}
    peaks = [child.result["solve peak"] for child in found.values()]
    short, long = sizes.streaming_horizons
    section.want(
        f"peak resident memory at {long} steps against {short}, levels that have stopped growing",
        peaks[1] / peaks[0] if is_steady else None, at_most=1.15, why="" if is_steady else "Levels still grow in this size.",
    )  # fmt: skip
