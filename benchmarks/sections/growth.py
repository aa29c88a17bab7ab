"""How time, memory and disk grow with horizon, agents, goals, actions and states, and whether faster than they should."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.child import Measured, in_child
from benchmarks.fitting import exponent
from benchmarks.measuring import duration, megabytes
from benchmarks.report import Curve, Section
from benchmarks.rooms import room
from benchmarks.sizes import Sizes

LEAST_SECONDS = 0.2  # below, constant costs (files, threads, Python for each level) are a good part of it
WORSE = 1.1  # exponents above are worse than proportional, whatever the noise
PARTS = ("enumerate", "solve")
_CPU = "CPU, seconds"


@dataclass(frozen=True)
class Problem:
    """One point: the number that is varied, a world, its horizon, and how tables call it."""

    x: float
    world: Any
    steps: int
    name: str = ""


@dataclass(frozen=True)
class Point:
    """A problem and what it took."""

    problem: Problem
    child: Measured

    @property
    def found(self) -> dict[str, float]:
        result: dict[str, float] = self.child.result
        return result

    def work(self, part: str) -> float:
        """The natural size: (body, profile) pairs, or (state, profile, human, goal) quadruples; of what has successors."""
        n = self.found
        return n["profiles"] * (n["expanded"] if part == "enumerate" else n["solved"] * n["columns"])

    def cpu(self, part: str) -> float:
        return self.found[f"{part} cpu"]

    def arrays(self, part: str) -> float:
        """Peak of resident memory above what the process had before."""
        return max(0.0, self.found[f"{part} peak"] - self.child.before)

    def nanoseconds(self, part: str) -> float:
        """CPU time for each unit of work."""
        return 1e9 * self.cpu(part) / self.work(part)

    @property
    def seconds(self) -> float:
        return sum(self.found[f"{part} seconds"] for part in PARTS)

    @property
    def table_bytes(self) -> float:
        """Of the tables that a sweep gathers rows from: two of float32, one of float64; as many again are written."""
        return self.found["bodies"] * (2 * 4 * self.found["columns"] + 8)


@dataclass(frozen=True, eq=False)
class Variation:
    """What is varied: name of the plot, label of the axis, what is held fixed, and the problems, the smallest first."""

    name: str
    label: str
    about: str
    problems: Sequence[Problem]
    x_of: Callable[[Point], float] = lambda point: point.problem.x
    is_law: bool = True  # whether a power of what is varied is to be expected, and written beside its curve


def variations(sizes: Sizes) -> list[Variation]:
    few = sizes.growth_seconds < 2  # only to show that everything runs
    freeing = [Problem(steps, "asymmetric_freeing", steps, f"{steps}") for steps in sizes.growth_horizons]
    crowd = [
        Problem(n, room(3, 3, humans=n - 1, n_goals=4), 2 if few else 7, f"{n}") for n in ((2, 3) if few else (2, 3, 4))
    ]
    goals = [Problem(n, room(6, 6, humans=2, n_goals=n), 2 if few else 6, f"{n}") for n in sizes.growth_goals]
    actions = [
        Problem(n, room(3, 3, humans=2, n_goals=9, actions=name), 2 if few else 8, f"{n}")
        for n, name in ((4, "SmallActions"), (7, "ObjectActions"))
    ]
    rooms = [Problem(n, room(n, n, humans=1, n_goals=9), 4 if few else 25, f"{n} x {n}") for n in sizes.growth_rooms]
    return [
        Variation("horizon", "steps", "`asymmetric_freeing`, 2 humans, 1 robot, 18 goals", freeing, is_law=False),
        Variation("agents", "agents", "a room of 3 x 3 cells, 1 robot, all others human, 4 goals", crowd, is_law=False),
        Variation("goals", "goals of each human", "a room of 6 x 6 cells, 2 humans, 1 robot", goals),
        Variation("actions", "actions", "a room of 3 x 3 cells, 2 humans, 1 robot, 9 goals", actions),
        Variation("states", "states", "square rooms, 1 human, 1 robot, 9 goals", rooms, lambda point: point.found["states"]),
    ]


def measure(sizes: Sizes) -> Section:
    section = Section("growth", "Growth")
    section.about += [
        "Enumerating and solving (both phases), each to disk, one worker, every point in a process of its own; short ones "
        "are repeated there, and the fastest run counts. *Arrays* is the peak of resident memory above what the process had "
        "before; *disk* is the size of all files, DAG and solution.",
        "The natural size of the work is, for enumerating, the number of *pairs*: bodies that have successors, times joint "
        "action profiles; for solving, the number of *cells*: states that have successors, times profiles, times columns "
        "(humans times goals). An exponent of 1 against it means that nothing is lost by being larger. Exponents are fitted "
        f"to CPU time by least squares on logarithms, to points of at least {LEAST_SECONDS} s, since smaller ones are "
        "mostly files and Python for each level; where too few are left, there is none (–). *Tables* are those that a sweep "
        f"gathers rows from: once they outgrow the processor's caches ({caches()}), rows come from memory.",
    ]
    measured = {variation: _points(variation, sizes.growth_seconds) for variation in variations(sizes)}
    fits = section.table(
        "Fitted exponents", "", "points", "CPU, by what is varied", "CPU, by work", "a pair or cell, largest to least",
        "arrays, by what is varied", "disk, by what is varied",
    )  # fmt: skip
    for variation, points in measured.items():
        _tell(section, variation, points, sizes.growth_seconds)
        for part in PARTS:
            fits.row(f"{variation.name}, {part}", *_fitted(section, variation, points, part))
            section.curves += _curves(variation, points, part)
    section.about.append(_reading(section, measured))
    freeing = next(points for variation, points in measured.items() if variation.name == "horizon")
    rooms = next(variation for variation in measured if variation.name == "states")
    for part in PARTS:
        section.curves += _curves(rooms, freeing, part, ", asymmetric_freeing")
    return section


def _points(variation: Variation, most_seconds: float) -> list[Point]:
    """Measure problems until one takes too long."""
    points: list[Point] = []
    for problem in variation.problems:
        if not points or points[-1].seconds <= most_seconds:
            child = in_child("benchmarks.sweeps:enumerated_and_solved", world=problem.world, steps=problem.steps)
            points.append(Point(problem, child))
    return points


def _tell(section: Section, variation: Variation, points: list[Point], most_seconds: float) -> None:
    left_out = [f"{problem.name}" for problem in variation.problems[len(points) :]]
    note = f"Left out in this size, since the point before took over {most_seconds:g} s: {', '.join(left_out)}."
    first = "size" if variation.name == "states" else variation.label
    table = section.table(
        f"{variation.name.capitalize()}: {variation.about}", first, "states", "bodies", "enumerate", "CPU", "a pair",
        "solve", "CPU", "a cell", "tables", "arrays", "disk", note=note if left_out else "",
    )  # fmt: skip
    for point in points:
        n = point.found
        cells: list[str] = []
        for part in PARTS:
            cells += [duration(n[f"{part} seconds"]), duration(point.cpu(part)), f"{point.nanoseconds(part):.3g} ns"]
        table.row(
            point.problem.name, f"{n['states']:,}", f"{n['bodies']:,}", *cells, megabytes(point.table_bytes),
            megabytes(max(map(point.arrays, PARTS))), megabytes(sum(n[f"{part} disk"] for part in PARTS)),
        )  # fmt: skip


def _fitted(section: Section, variation: Variation, points: list[Point], part: str) -> list[str]:
    """Cells of the table of exponents, which also go to the figures."""
    large = [point for point in points if point.cpu(part) >= LEAST_SECONDS]
    x, cpu = [variation.x_of(point) for point in large], [point.cpu(part) for point in large]
    exponents = [
        exponent(x, cpu, span=1.5),
        exponent([point.work(part) for point in large], cpu),
        exponent(x, [point.arrays(part) for point in large], span=1.5),
        exponent(x, [point.found[f"{part} disk"] for point in large], span=1.5),
    ]
    names = ("CPU", "CPU by work", "arrays", "disk")
    for name, found in zip(names, exponents, strict=True):
        if found is not None:
            section.figures[f"{variation.name}, {part}, exponent of {name}"] = found
    first, second, *others = ["–" if found is None else f"{found:.2f}" for found in exponents]
    costs = [point.nanoseconds(part) for point in large]
    ratio = f"{costs[-1] / min(costs):.2f}x" if len(costs) > 1 else "–"
    return [f"{len(large)}", first, second, ratio, *others]


def _reading(section: Section, measured: dict[Variation, list[Point]]) -> str:
    """What the exponents say: whether anything grows faster than its work, and what tables beyond the caches cost."""
    end = ", exponent of CPU by work"
    worse = [
        f"{name.removesuffix(end)} ({a:.2f})" for name, a in section.figures.items() if name.endswith(end) and a > WORSE
    ]
    verdict = (
        f"Faster than the work grow: {'; '.join(worse)}: see what a pair or a cell costs there." if worse
        else f"Nothing grows faster than its work (no exponent above {WORSE})."
    )  # fmt: skip
    freeing = next(points for variation, points in measured.items() if variation.name == "horizon")
    cached, largest = min(freeing, key=lambda point: point.nanoseconds("solve")), freeing[-1]
    return (
        f"{verdict} Exponents below 1 are costs that more work shares: Python and files for each level, and finding a "
        "profile's successors once for all columns. The price of leaving the caches: on `asymmetric_freeing` a cell costs "
        f"{cached.nanoseconds('solve'):.3g} ns at the least, with tables of {megabytes(cached.table_bytes)} "
        f"({cached.problem.name} steps), and {largest.nanoseconds('solve'):.3g} ns with {megabytes(largest.table_bytes)} "
        f"({largest.problem.name} steps). Enumerating also looks at every goal once for each body, so that a pair costs "
        "more where there are many goals."
    )


def _curves(variation: Variation, points: list[Point], part: str, suffix: str = "") -> list[Curve]:
    """Lines of a plot: time, time for each unit of work, memory and disk."""
    x = [variation.x_of(point) for point in points]
    numbers = {
        _CPU: [point.cpu(part) for point in points],
        "CPU for a pair or a cell, ns": [point.nanoseconds(part) for point in points],
        "arrays, MB": [max(point.arrays(part), 1e4) / 1e6 for point in points],  # 0 has no place on such an axis
        "disk, MB": [point.found[f"{part} disk"] / 1e6 for point in points],
    }
    large = [i for i, point in enumerate(points) if point.cpu(part) >= LEAST_SECONDS]
    law = {_CPU: exponent([x[i] for i in large], [numbers[_CPU][i] for i in large], span=1.5) if variation.is_law else None}
    return [
        Curve(variation.name, variation.label, label, f"{part}{suffix}", x, y, law.get(label))
        for label, y in numbers.items()
    ]


def caches() -> str:
    """Sizes of the first core's caches, as Linux tells them."""
    found = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((folder / name).read_text(encoding="ascii").strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return ", ".join(found) or "sizes unknown"
