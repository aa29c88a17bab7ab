"""Snapshots of a process's memory while it works, and a report: a timeline, the owners, and whether memory leaks."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.atomic_write import atomic_write
from empo_bi.runtime.byte_sizes import Size, as_text, parse_size
from empo_bi.runtime.machine import resident_bytes, worker_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_LEAK_BYTES, _LEAK_SHARE = 20_000_000, 0.1  # unexplained growth below this is not called a leak
_REST = "Python, libraries and the rest"
_LINES = 5  # of source, with tracemalloc


@dataclass(frozen=True)
class Snapshot:
    """Memory at one moment.

    Attributes
    ----------
    seconds : since the profile began
    doing, level, n_states : what had just been done
    resident : bytes of the process, Python and libraries included
    workers : bytes of worker processes that they do not share
    owners : bytes of arrays, by what they are for
    lines : the largest lines of source, if Python's allocations are traced
    highest : the most that was resident at any check since the previous snapshot
    """

    seconds: float
    doing: str
    level: int
    n_states: int
    resident: int
    workers: int
    owners: Mapping[str, int]
    lines: tuple[str, ...] = ()
    highest: int = 0

    @property
    def most(self) -> int:
        """The most that process and workers held since the previous snapshot."""
        return max(self.resident, self.highest) + self.workers

    @property
    def unexplained(self) -> int:
        """What no array of ours accounts for: Python, libraries, and possible leaks."""
        return self.resident - sum(self.owners.values())


@suggests_names()
@dataclass
class MemoryProfiler:
    """Takes a snapshot every few levels while a world is enumerated and solved.

    Parameters
    ----------
    interval : int
        Levels from one snapshot to the next.
    limit : int, float or str, optional
        A limit to draw in the picture.
    trace : bool
        Also trace Python's own allocations (``tracemalloc``), which makes worlds written in Python several times slower.

    Examples
    --------
    >>> from empo_bi import load_world, solve
    >>> profiler = MemoryProfiler()
    >>> solution = solve(load_world("first_steps"), memory_profile=profiler, progress=False)
    >>> len(profiler.snapshots) == 2 * (solution.dag.horizon + 1)  # forwards and backwards
    True
    """

    interval: int = 1
    limit: Size | None = None
    trace: bool = False
    snapshots: list[Snapshot] = field(default_factory=list, init=False)
    _start: float = field(default_factory=time.monotonic, init=False)
    _calls: int = field(default=0, init=False)
    _highest: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if isinstance(self.interval, bool) or not isinstance(self.interval, int) or self.interval < 1:
            raise ValueError(f"interval={self.interval!r}; give a number of levels, 1 or more")
        self._limit = None if self.limit is None else parse_size(self.limit, "limit")
        if self.trace and not tracemalloc.is_tracing():
            tracemalloc.start()

    def sample(self) -> None:
        """Check memory in the middle of a level, where it may be higher than at its end."""
        self._highest = max(self._highest, resident_bytes())

    def snapshot(self, doing: str, level: int, n_states: int, owners: Mapping[str, int], *, is_due: bool = False) -> None:
        """Take a snapshot if ``interval`` levels have passed, or if ``is_due``."""
        self._calls += 1
        if (self._calls - 1) % self.interval and not is_due:
            return
        lines: tuple[str, ...] = ()
        if self.trace:
            found = tracemalloc.take_snapshot().statistics("lineno")[:_LINES]
            lines = tuple(f"{as_text(line.size)} in {line.traceback}" for line in found)
        self.sample()
        held = {name: nbytes for name, nbytes in owners.items() if nbytes}
        self.snapshots.append(
            Snapshot(
                time.monotonic() - self._start, doing, level, n_states, resident_bytes(), sum(worker_bytes()), held, lines,
                highest=self._highest,
            )
        )  # fmt: skip
        self._highest = 0

    @property
    def peak(self) -> Snapshot:
        """The snapshot with the most memory."""
        return max(self.snapshots, key=lambda snapshot: snapshot.most)

    @property
    def leaks(self) -> bool:
        """Whether unexplained memory kept growing through the second half of the snapshots.

        The first half does not count: code is loaded and caches fill. The median of the last quarter is compared with that
        of the quarter before it, since noise hardly moves medians: a leak is a growth of over 20 MB and over a tenth of
        the peak.
        """
        half = [snapshot.unexplained for snapshot in self.snapshots[len(self.snapshots) // 2 :]]
        if len(half) < 4:
            return False
        growth = float(np.median(half[len(half) // 2 :]) - np.median(half[: len(half) // 2]))
        return growth > max(_LEAK_BYTES, _LEAK_SHARE * self.peak.resident)

    def report(self) -> str:
        """The whole profile as text: the timeline, the owners of memory, and a verdict on leaks."""
        if not self.snapshots:
            return "no snapshots, since nothing was enumerated or solved"
        peak, last = self.peak, self.snapshots[-1]
        limit = "" if self._limit is None else f"; limit: {as_text(self._limit)}"
        verdict = "It kept growing until the end: THIS LOOKS LIKE A LEAK." if self.leaks else "No sign of a leak."
        growth = last.unexplained - self.snapshots[0].unexplained
        changed = f"{'grew' if growth >= 0 else 'shrank'} by {as_text(abs(growth))}"
        parts = [
            f"Memory at {len(self.snapshots)} moments in {last.seconds:.1f} s\n"
            f"peak: {as_text(peak.most)}, {peak.doing} level {peak.level}{limit}",
            self._timeline(),
            self._owners(),
            *(["\n  ".join(["the largest lines of Python at the peak:", *peak.lines])] if peak.lines else []),
            f"From the first to the last moment, memory that no array accounts for {changed}. {verdict}",
        ]
        return "\n\n".join(parts)

    def _timeline(self) -> str:
        moment = f"{'seconds':>8} {'':12} {'level':>5} {'states':>11}"
        lines = [f"{moment} {'resident':>10} {'highest':>10} {'workers':>9} {'arrays':>10}"]
        for s in self._thinned():
            resident, highest = as_text(s.resident), as_text(max(s.resident, s.highest))
            workers, arrays = as_text(s.workers), as_text(sum(s.owners.values()))
            moment = f"{s.seconds:8.2f} {s.doing:12} {s.level:5} {s.n_states:11,}"
            lines.append(f"{moment} {resident:>10} {highest:>10} {workers:>9} {arrays:>10}")
        return "\n".join(lines)

    def _owners(self) -> str:
        """Memory by owner, the largest first."""
        chosen = self.snapshots[0], self.peak, self.snapshots[-1]
        lines = [f"{'owner':32} {'first':>10} {'at the peak':>12} {'last':>10} {'most':>10}"]
        for name in [*self.owners, _REST]:
            held = [s.unexplained if name == _REST else s.owners.get(name, 0) for s in (*chosen, *self.snapshots)]
            first, peak, last, most = *map(as_text, held[:3]), as_text(max(held))
            lines.append(f"{name:32} {first:>10} {peak:>12} {last:>10} {most:>10}")
        return "\n".join(lines)

    @property
    def owners(self) -> list[str]:
        """All owners that ever held memory, the largest first."""
        names = dict.fromkeys(name for snapshot in self.snapshots for name in snapshot.owners)
        return sorted(names, key=lambda name: -max(s.owners.get(name, 0) for s in self.snapshots))

    def _thinned(self, most: int = 40) -> list[Snapshot]:
        step = -(-len(self.snapshots) // most)
        return [*self.snapshots[::step], *([self.snapshots[-1]] if (len(self.snapshots) - 1) % step else [])]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot memory by level: owners stacked, resident memory and limit as lines. Needs the extra ``analysis``."""
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
        place = range(len(self.snapshots))
        names = self.owners
        stacks = [[max(0, s.unexplained) / 1e6 for s in self.snapshots]]
        stacks += [[s.owners.get(name, 0) / 1e6 for s in self.snapshots] for name in names]
        colours = plt.get_cmap("cividis")([i / max(1, len(names)) for i in range(len(names))])
        ax.stackplot(place, stacks, labels=[_REST, *names], colors=["lightgrey", *colours], alpha=0.8)
        ax.plot(place, [s.resident / 1e6 for s in self.snapshots], color="black", label="resident")
        highest = [max(s.resident, s.highest) / 1e6 for s in self.snapshots]
        ax.plot(place, highest, color="black", linewidth=0.7, label="highest meanwhile")
        if any(s.workers for s in self.snapshots):
            total = [(s.resident + s.workers) / 1e6 for s in self.snapshots]
            ax.plot(place, total, color="black", linestyle=":", label="with workers")
        if self._limit is not None:
            ax.axhline(self._limit / 1e6, color="tab:red", linestyle="--", label="limit")
        step = max(1, len(self.snapshots) // 12)
        ax.set_xticks(list(place)[::step], [str(s.level) for s in self.snapshots[::step]])
        turns = [i for i in place if i and self.snapshots[i].doing != self.snapshots[i - 1].doing]
        for i in turns:
            ax.axvline(i - 0.5, color="grey", linewidth=0.8)
        phases = list(dict.fromkeys(s.doing for s in self.snapshots))
        ax.set(xlabel=f"level ({', then '.join(phases)})", ylabel="memory [MB]", ylim=(0, None), title="Memory by level")
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize="small")
        return ax

    def write(self, folder: Path) -> list[Path]:
        """Write ``memory_profile.txt`` and, if matplotlib is installed, ``memory_profile.png``; returns their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        text = folder / "memory_profile.txt"
        with atomic_write(text) as unfinished:
            unfinished.write_text(self.report() + "\n", encoding="utf-8")
        if not self.snapshots:
            return [text]
        try:
            from matplotlib.figure import Figure
        except ImportError:
            return [text]
        figure = Figure(figsize=(9, 4.5), layout="constrained")  # not pyplot's, which notebooks would show
        self.plot(figure.add_subplot())
        with atomic_write(folder / "memory_profile.png") as unfinished:
            figure.savefig(unfinished, dpi=120)
        return [text, folder / "memory_profile.png"]


def profiler_of(option: object, limit: int | None = None) -> MemoryProfiler | None:
    """The profiler that an option ``memory_profile`` asks for: the given one, a new one for True, or none."""
    if option is None or isinstance(option, bool):
        return MemoryProfiler(limit=limit) if option else None
    if not isinstance(option, MemoryProfiler):
        raise TypeError(f"memory_profile={option!r}; give True, False or a MemoryProfiler")
    return option
