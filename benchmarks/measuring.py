"""What the benchmarks have in common: how busy the machine is, taking turns, and tables."""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil

QUIET = 0.15  # cores that others may use while a run counts as undisturbed


def take_turns(jobs: Mapping[Any, Callable[[], Any]], sizes: Any, by: str = "seconds") -> dict[Any, Any]:
    """The fastest undisturbed run of each job, by the attribute ``by``; runs also have ``is_disturbed``.

    ``sizes`` has ``rounds``, ``most_rounds`` and ``seconds``. All jobs have had as many turns as the others, short ones more
    than long ones.
    """
    runs: dict[Any, list[Any]] = {name: [] for name in jobs}
    begin, rounds, is_enough = time.perf_counter(), 0, False
    while not is_enough:
        for name, job in jobs.items():
            runs[name].append(job())
        rounds += 1
        is_quiet = all(not all(run.is_disturbed for run in done) for done in runs.values())
        is_enough = rounds >= sizes.rounds and time.perf_counter() - begin >= sizes.seconds
        is_enough &= is_quiet or rounds >= sizes.most_rounds
    return {name: min(done, key=lambda run: (run.is_disturbed, getattr(run, by))) for name, done in runs.items()}


@dataclass
class Runs:
    """Wall and CPU seconds (of all threads and finished children) of the same job, run after run, and what it returned."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    result: Any = None

    def run(self, job: Callable[[], Any]) -> None:
        self.result = None  # or two results would be held at a time
        begin, cpu = time.perf_counter(), _cpu_seconds()
        self.result = job()
        self.wall.append(time.perf_counter() - begin)
        self.cpu.append(_cpu_seconds() - cpu)

    @property
    def seconds(self) -> float:
        """Of the fastest run: everything else is noise of the machine."""
        return min(self.wall)

    @property
    def cpu_seconds(self) -> float:
        return min(self.cpu)

    @property
    def spread(self) -> float:
        """By how much of itself the fastest run is exceeded by the median one."""
        return statistics.median(self.wall) / self.seconds - 1

    def cells(self) -> tuple[str, str, str]:
        """Wall time, spread and CPU time, for tables."""
        spread = f"+{self.spread:.0%}" if len(self.wall) > 1 else "once"
        return duration(self.seconds), spread, duration(self.cpu_seconds)


def in_turns(jobs: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, Runs]:
    """Run each job ``rounds`` times, one after the other, so that all have the same share of good and bad moments."""
    runs = {name: Runs() for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            runs[name].run(job)
    return runs


def _cpu_seconds() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def duration(seconds: float) -> str:
    for limit, factor, unit in ((1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:.0f} s"


def megabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:,.1f} MB" if n_bytes < 1e8 else f"{n_bytes / 1e6:,.0f} MB"


class OtherWork:
    """How much of the machine others used since construction, in cores; 0 where that cannot be told."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()
        self._busy = self._busy_seconds()

    def cores(self) -> float:
        return max(0.0, (self._busy_seconds() - self._busy) / (time.perf_counter() - self._begin))

    @staticmethod
    def _busy_seconds() -> float:
        """CPU seconds of the machine, stolen and niced ones included, without those of this process and its children."""
        machine = psutil.cpu_times()
        mine = os.times()
        busy = sum(getattr(machine, kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq", "steal"))
        return busy - (mine.user + mine.system + mine.children_user + mine.children_system)


class Table:
    """Rows of texts, aligned to the right, printed as they come."""

    def __init__(self, title: str, **columns: int) -> None:
        """``columns``: name, with spaces for underlines, and width of each."""
        self.widths = list(columns.values())
        print(f"\n{title}\n")
        self.row(*(name.replace("_", " ") for name in columns))
        print("-" * sum(self.widths), flush=True)

    def row(self, *cells: str, note: str = "") -> None:
        line = "".join(f"{cell:>{width}}" for cell, width in zip(cells, self.widths, strict=False))
        print(f"{line}   {note}".rstrip(), flush=True)


def notes(*texts: str) -> str:
    return "; ".join(text for text in texts if text)


def wanted(is_met: bool, what: str) -> str:
    return f"wanted: {what}{'' if is_met else ', NOT MET'}"


def obvious_bytes(n_states: int, n_profiles: int, n_transitions: int, n_columns: int) -> Mapping[str, int]:
    """Bytes that the obvious data structures would take: dictionaries, tuples and small arrays.

    Parameters
    ----------
    n_transitions : successors of all (state, profile) pairs together
    n_columns : (human, goal) pairs
    """
    per_pair = n_transitions / max(1, n_states * n_profiles)  # successors of a (state, profile) pair
    number, slot = sys.getsizeof(1.0), 8  # an object, and a place in a list, tuple or dictionary that refers to one
    two_lists = 2 * (sys.getsizeof([]) + per_pair * slot) + per_pair * (number + sys.getsizeof(10**6))
    one_transition = sys.getsizeof((1, 2, 3)) + two_lists + slot  # (profile, [probabilities], [successors])
    entry = 104 / (2 / 3)  # of a dictionary: hash, key, value and index, two thirds full
    array = 112 + slot * per_pair  # a numpy array, one number per successor
    return {
        "transition tuples": int(n_states * n_profiles * one_transition),
        "dictionary of attainment arrays": int(n_states * n_profiles * n_columns * (entry + array)),
    }
