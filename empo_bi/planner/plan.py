"""How to run a world: :func:`plan` predicts the memory, disk and time of each way to run it, and which ways fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from empo_bi.analysis import html_parts as parts
from empo_bi.dag.key_index import bytes_for
from empo_bi.dag.packed_explorer import BLOCK_BYTES
from empo_bi.dag.python_world import LevelFunction
from empo_bi.dag.slices import BYTES_PER_STATE
from empo_bi.memory.budget import CACHE_BYTES, SLICE_BACKLOG, SPILL_BYTES, STRETCH_BYTES, UNLOADED
from empo_bi.planner.growth import Forecast, Range, Series, extrapolated
from empo_bi.planner.probe import Probe, probe
from empo_bi.problem.params import BELONGS_ELSEWHERE, Params
from empo_bi.problem.profiles import Profiles
from empo_bi.runtime.arguments import check_flags, check_function, suggests_names
from empo_bi.runtime.blocks import checked_workers
from empo_bi.runtime.byte_sizes import Size, as_text, parse_size
from empo_bi.runtime.compilation import quiet_unless_shown
from empo_bi.runtime.machine import available_bytes, resident_bytes, trim
from empo_bi.solving.argument_checks import checked_agents, checked_generator
from empo_bi.sweep.memory_model import BLOCK_STATES, SweepShape, sizes_within
from empo_bi.sweep.phases import wants_double
from empo_bi.types import Json
from empo_bi.world.as_model import Model, as_model
from empo_bi.world.goals import PossibleGoalGenerator
from empo_bi.world.model import World
from empo_bi.world.translation import translated

_SPEED = Range(0.7, 1.1, 2.0)  # time per state, long sweeps against short ones: tables outgrow the cache, machines are noisy
_ENUMERATION = Range(0.7, 1.0, 2.0)  # time per body, likewise
_FULLER = 4.5  # how much larger the values of a whole run are on disk than those of its first levels, which are mostly 0
_FULLEST = 0.5  # bytes on disk for each byte in memory, at worst
_PER_LEVEL = Range(0.01, 0.03, 0.1)  # seconds to write a level to disk, however small it is
_ALLOCATOR = Range(0.95, 1.05, 1.15)  # memory of the process for each byte that we count


@dataclass(frozen=True)
class Sizes:
    """How large a world is up to some horizon."""

    steps: int
    states: Range
    bodies: Range
    transitions: Range
    n_seen: int  # levels that were counted, not forecast

    @property
    def is_exact(self) -> bool:
        return self.states.is_exact


@dataclass(frozen=True)
class Way:
    """A way to run, what it takes, and the options of :func:`solve` for it."""

    name: str
    options: Mapping[str, str]
    memory: Range
    disk: Range
    seconds: Range
    fits: bool

    @property
    def call(self) -> str:
        """What to type."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        return f"solve(world, params{', ' + options if options else ''})"


@dataclass(frozen=True)
class Horizon:
    """A horizon: the size of the world up to it, and the ways to run it."""

    sizes: Sizes
    ways: Sequence[Way]

    @property
    def recommended(self) -> Way | None:
        """The fastest way that fits even at the upper end of its range; None if there is none."""
        return next((way for way in self.ways if way.fits and way.name != _EXACT_WAY), None)

    @property
    def ways_by_memory(self) -> list[Way]:
        """All ways, the one that needs the most memory first."""
        return sorted(self.ways, key=lambda way: -way.memory.likely)


@dataclass(frozen=True)
class Plan:
    """The result of :func:`plan`. ``print(plan)`` shows it; ``print(plan.comparison())`` shows all ways to run.

    Attributes
    ----------
    memory : bytes that may be used
    horizons : one for each given number of steps
    longest : the longest horizon that fits, None if even the shortest does not
    """

    title: str
    memory: int
    horizons: Sequence[Horizon]
    longest: int | None
    probe: Probe

    @property
    def recommended(self) -> Way | None:
        """The recommended way for the longest of the horizons."""
        return self.horizons[-1].recommended

    def __str__(self) -> str:
        n_seen = len(self.probe.levels)
        lines = [
            f"{self.title}",
            f"{n_seen} of {self.probe.n_levels} levels counted ({self.probe.n_bodies:,} bodies, "
            f"{self.probe.seconds:.1f} s); {as_text(self.memory)} of memory",
            "",
            f"{'steps':>5}  {'states':>28}  {'transitions':>28}  way to run",
        ]
        for horizon in self.horizons:
            sizes, way = horizon.sizes, horizon.recommended
            chosen = "none fits" if way is None else f"{way.name}: {_size(way.memory)}, {_time(way.seconds)}"
            lines.append(f"{sizes.steps:5}  {_count(sizes.states):>28}  {_count(sizes.transitions):>28}  {chosen}")
        return "\n".join([*lines, "", self._advice()])

    def _repr_html_(self) -> str:
        """For notebooks: a row for each horizon, and what is recommended."""
        rows = []
        for horizon in self.horizons:
            sizes, way = horizon.sizes, horizon.recommended
            chosen = ["none fits", "", ""] if way is None else [way.name, _size(way.memory), _time(way.seconds)]
            rows.append([sizes.steps, _count(sizes.states), _count(sizes.transitions), *chosen])
        head = ["steps", "states", "transitions", "way to run", "memory", "time"]
        return parts.table(head, rows, self.title) + parts.paragraph(self._advice())

    def _advice(self) -> str:
        way = self.recommended
        if way is not None:
            disk = f" and {_size(way.disk)} of disk" if way.disk.high else ""
            return f"Recommended: {way.call}, which takes {_size(way.memory)}{disk} and {_time(way.seconds)}"
        steps = self.horizons[-1].sizes.steps
        if self.longest is None:
            return f"{steps} steps do not fit into {as_text(self.memory)}, nor does any shorter horizon; allow more memory"
        return (
            f"{steps} steps do not fit into {as_text(self.memory)}, however they are run; {self.longest} steps do "
            f"(max_steps={self.longest})"
        )

    def comparison(self) -> str:
        """All ways to run each horizon, and how much less memory each needs than the first."""
        lines = [f"{self.title}, {as_text(self.memory)} of memory"]
        for horizon in self.horizons:
            lines += ["", f"{horizon.sizes.steps} steps: {_count(horizon.sizes.states)} states"]
            head = f"{'':26} {'memory':>30} {'disk':>30} {'time':>26} {'less memory':>12}  fits"
            lines.append(head)
            most = horizon.ways_by_memory[0].memory.likely
            for way in horizon.ways_by_memory:
                lines.append(
                    f"{way.name:26} {_size(way.memory):>30} {_size(way.disk):>30} {_time(way.seconds):>26} "
                    f"{most / way.memory.likely:>11.1f}x  {'yes' if way.fits else 'no'}"
                )
        return "\n".join([*lines, "", self._advice()])


MOST_STEPS = 100_000  # what is planned for each level takes memory and time
_EXACT_WAY = "in memory, float64"
# Name, options, whether in memory, bytes of a number in arithmetic and in storage, whether tight; the fastest first.
_WAYS: list[tuple[str, dict[str, str], bool, int, int, bool]] = [
    ("in memory, float16", {}, True, 4, 2, False),
    ("on disk", {"out": "RUNS"}, False, 4, 2, False),
    ("on disk, tight limit", {"out": "RUNS"}, False, 4, 2, True),
    (_EXACT_WAY, {"precision": "float64"}, True, 8, 8, False),
]


@quiet_unless_shown
def _without_functions_of_ends(params: Params) -> Params:
    """A look ahead ends where it likes, in states that a user's function of terminal states may know nothing about."""
    return params if params.terminal_function is None else params.replace(terminal_Vr=-1.0)


@suggests_names(elsewhere=BELONGS_ELSEWHERE)
def plan(
    world: World,
    params: Params | None = None,
    *,
    steps: int | Sequence[int] | None = None,
    memory: Size | None = None,
    workers: int = 1,
    human_agent_indices: Sequence[int] | None = None,
    robot_agent_indices: Sequence[int] | None = None,
    possible_goal_generator: PossibleGoalGenerator | None = None,
    phase_2: bool = True,
    level_fct: LevelFunction | None = None,
    seconds: float = 10.0,
    max_levels: int | None = None,
    progress: bool = True,
) -> Plan:
    """Predict how much memory, disk and time a world will take, without solving it, and recommend how to run it.

    Levels are counted for a few seconds, which is often enough for all of them; a few thousand states are solved to measure
    speed and compression. Levels that were not counted are forecast, and numbers that depend on them are wide ranges.

    Parameters
    ----------
    world, params, human_agent_indices, robot_agent_indices, possible_goal_generator, phase_2, level_fct
        As for :func:`solve`.
    steps : int or list of int, optional
        Horizons to plan; by default the world's own. Only gridworlds can be given another horizon.
    memory : int, float or str, optional
        How much may be used, for example ``"4GB"``; by default what is available now.
    workers : as for :func:`solve`
    seconds : about how long to count levels; the others are forecast
    max_levels : count at most this many levels
    progress : show a bar for what takes longer than a second

    Examples
    --------
    >>> from empo_bi import load_world, plan
    >>> found = plan(load_world("asymmetric_freeing"), steps=[5, 8], memory="4GB", progress=False)
    >>> [round(horizon.sizes.states.likely) for horizon in found.horizons]
    [1253, 3741]
    >>> found.recommended.call
    'solve(world, params)'
    """
    model = as_model(translated(world, progress=progress))
    check_function("level_fct", level_fct, "a function of a state")
    check_flags(progress=progress)
    if params is not None and not isinstance(params, Params):
        raise TypeError(f"params={params!r}; give one set of parameters, empo_bi.Params(...), or None")
    if isinstance(seconds, bool) or not hasattr(seconds, "__float__") or not 0 < float(seconds) < float("inf"):
        raise ValueError(f"seconds={seconds!r}; give a positive number of seconds")
    wanted = _checked_steps(model, steps)
    if max_levels is not None and (isinstance(max_levels, bool) or not isinstance(max_levels, int) or max_levels < 1):
        raise ValueError(f"max_levels={max_levels!r}; give a number of levels, 1 or more, or None")
    limit = available_bytes() + resident_bytes() if memory is None else parse_size(memory, "memory")
    workers = checked_workers(workers)
    longest = model if model.free_horizon is None else as_model(model.with_horizon(max(wanted)))
    humans = model.human_agent_indices if human_agent_indices is None else human_agent_indices
    robots = model.robot_agent_indices if robot_agent_indices is None else robot_agent_indices
    options: Json = {
        "params": _without_functions_of_ends(Params() if params is None else params),
        "human_agent_indices": humans,
        "robot_agent_indices": robots,
        "possible_goal_generator": checked_generator(longest, possible_goal_generator),
        "phase_2": phase_2,
    }
    seen = probe(longest, options, level_fct=level_fct, seconds=seconds, progress=progress, max_levels=max_levels)
    checked = checked_agents(model, humans, robots if phase_2 else ())
    profiles = Profiles.of(model.num_actions_per_agent, *checked)
    trim()  # else memory that the probe has freed would count
    narrowest = 8 if wants_double(options["params"], phase_2) else 4
    outlook = _Outlook(seen, profiles, phase_2, resident_bytes(), workers, narrowest)
    steps_of = [n_steps for n_steps in wanted if n_steps is not None] or [seen.n_levels - 1]
    horizons = [outlook.horizon(n_steps, limit) for n_steps in steps_of]
    return Plan(longest.title, limit, horizons, outlook.longest(max(steps_of), limit), seen)


def _checked_steps(model: Model, steps: int | Sequence[int] | None) -> list[Any]:
    if steps is None:
        return [_checked_length("max_steps", model.free_horizon)]
    given: list[Any] = list(steps) if hasattr(steps, "__iter__") and not isinstance(steps, str) else [steps]
    if not given or not all(hasattr(n, "__index__") and not isinstance(n, bool) and n >= 1 for n in given):
        raise ValueError(f"steps={steps!r}; give a number of steps, or a list of them, each 1 or more")
    if model.free_horizon is None:
        raise ValueError(f"steps={steps!r}: only gridworlds can be given another horizon; plan a world with this horizon")
    return sorted({_checked_length("steps", int(n)) or 1 for n in given})


def _checked_length(name: str, steps: int | None) -> int | None:
    if steps is not None and steps > MOST_STEPS:
        raise ValueError(f"{name}={steps:,}; plans are made for up to {MOST_STEPS:,} steps: give a shorter horizon")
    return steps


class _Outlook:
    """What each way to run takes for any horizon, from a probe; arithmetic uses at least ``narrowest`` bytes per number."""

    def __init__(self, seen: Probe, profiles: Profiles, phase_2: bool, base: int, workers: int, narrowest: int) -> None:
        self._narrowest = narrowest
        self._seen, self._profiles, self._phase_2, self._base, self._workers = seen, profiles, phase_2, base, workers
        length = max(seen.n_levels, len(seen.levels))
        added, states = ([getattr(level, name) for level in seen.levels] for name in ("n_bodies", "n_states"))
        self._added = extrapolated(added, length, seen.waves)
        self._states = self._on_levels(states)
        # The size of a body does not change much from level to level; later levels show it best.
        late = [level for level in seen.levels[len(seen.levels) // 2 :] if level.n_transitions] or list(seen.levels)
        bodies = max(1, sum(level.n_bodies for level in late))
        self._transitions_per_body = sum(level.n_transitions for level in late) / bodies
        self._bytes_per_body = sum(level.nbytes for level in late) / bodies

    def _on_levels(self, counted: Sequence[int]) -> Forecast:
        """States of each level: all bodies known by then if levels are nested, else the same share as on recent levels."""
        n, added = len(counted), self._added
        shares = np.array(counted) / np.maximum(1, added.likely[:n].cumsum())
        late = shares[n // 2 :]

        def continued(series: Series, share: float) -> Series:
            return np.concatenate([np.array(counted, dtype=np.float64), series.cumsum()[n:] * share])

        likely, highest = float(late.mean()), float(shares.max())
        return Forecast(
            continued(added.low, float(late.min())), continued(added.likely, likely), continued(added.high, highest), n
        )

    def horizon(self, steps: int, limit: int) -> Horizon:
        n = steps + 1
        states = self._range(lambda guess: float(getattr(self._states, guess)[:n].sum()))
        bodies = self._range(lambda guess: float(getattr(self._added, guess)[:n].sum()))
        transitions = self._range(
            lambda guess: sum(self._by_level(guess, "n_transitions", self._transitions_per_body)[:steps])
        )
        sizes = Sizes(steps, states, bodies, transitions, min(n, self._added.n_seen))
        return Horizon(sizes, [self._way(steps, sizes, *about, limit) for about in _WAYS])

    def longest(self, steps: int, limit: int) -> int | None:
        """The longest horizon that fits, up to so many steps; None if there is none. Longer ones never take less."""
        fits, most = 0, steps
        while fits < most:
            middle = (fits + most + 1) // 2
            if self.horizon(middle, limit).recommended is None:
                most = middle - 1
            else:
                fits = middle
        return fits or None

    def _by_level(self, guess: str, name: str, per_body: float) -> list[float]:
        """The numbers of counted levels, followed by forecasts for the others."""
        counted = [float(getattr(level, name)) for level in self._seen.levels]
        return counted + [float(number) * per_body for number in getattr(self._added, guess)[len(counted) :]]

    def _range(self, of: Callable[[str], float]) -> Range:
        return Range(of("low"), of("likely"), of("high"))

    def _way(
        self, steps: int, sizes: Sizes, name: str, options: dict[str, str], in_memory: bool, work: int, rest: int,
        is_tight: bool, limit: int,
    ) -> Way:  # fmt: skip
        shapes = {guess: self._shape(steps, guess, in_memory, work, rest) for guess in ("low", "likely", "high")}
        needed = self._range(lambda guess: self._peak(shapes[guess], is_tight, at_most=guess == "high"))
        memory = self._in_process(needed)
        needed_for_limit = memory
        results = self._range(lambda guess: sum(shapes[guess].level_states) * shapes[guess].bytes_per_state)
        slices = self._range(lambda guess: sum(shapes[guess].slice_bytes))
        disk = Range.exactly(0.0)
        if not in_memory:
            ratio = self._seen.result_ratio
            ratios = Range(ratio, max(ratio, min(_FULLEST, _FULLER * ratio)), max(ratio, _FULLEST))
            disk = results * ratios + slices * self._seen.dag_ratio
        if is_tight:
            # A limit keeps memory free that a run without one never asks for: what is taken is no more than without it.
            freely = self._in_process(self._range(lambda guess: self._peak(shapes[guess], False, at_most=guess == "high")))
            memory = Range(*(min(getattr(memory, guess), getattr(freely, guess)) for guess in ("low", "likely", "high")))
            enough = int(np.ceil(needed_for_limit.high / 1e8)) * 100  # MB in round numbers, but no more than may be used
            enough = min(enough, limit // 1_000_000) if needed_for_limit.high <= limit else enough
            options = {**options, "memory_limit": f"{enough}MB"}
        speed = self._seen.seconds_per_state / (1 if self._workers == 1 else 0.8 * self._workers)
        sweep = speed * (2.0 if work == 8 else 1.0) * (1.0 if in_memory else 1.15)
        seconds = sizes.states * sweep * _SPEED + sizes.bodies * self._seen.seconds_per_body * _ENUMERATION
        if not in_memory:
            seconds += _PER_LEVEL * (steps + 1)
        return Way(name, options, memory, disk, seconds, needed_for_limit.high <= limit)

    def _in_process(self, needed: Range) -> Range:
        """What the system shows, for bytes that we count."""
        return (needed + -self._base) * _ALLOCATOR + self._base

    def _shape(self, steps: int, guess: str, in_memory: bool, work: int, rest: int) -> SweepShape:
        n, profiles = steps + 1, self._profiles
        added, states = getattr(self._added, guess)[:n], getattr(self._states, guess)[:n]
        bodies = int(added.sum())
        rows = bodies if self._seen.shares_bodies else int((states + np.append(states[1:], 0)).max())
        slice_bytes = [int(nbytes) for nbytes in self._by_level(guess, "nbytes", self._bytes_per_body)[:n]]
        keys = int(added[-1]) * (8 * max(1, self._seen.n_words) + 8)
        slice_bytes[-1] = min(slice_bytes[-1], keys)  # the last level has no transitions
        return SweepShape(
            level_states=[int(number) for number in states], n_rows=rows, n_bodies=bodies, slice_bytes=slice_bytes,
            n_columns=self._seen.n_columns, n_humans=len(profiles.humans), n_robots=len(profiles.robot_profiles),
            n_actions=profiles.n_actions, n_profiles=profiles.n_profiles, work=max(work, self._narrowest), rest=rest,
            human_phases=1,
            robot_phases=int(self._phase_2), in_memory=in_memory, goals_by_state=self._seen.goals_by_state,
            slices_in_memory=in_memory,
        )  # fmt: skip

    def _peak(self, shape: SweepShape, is_tight: bool, *, at_most: bool) -> float:
        """The larger peak of enumeration and sweep: the usual one, or with ``at_most`` the worst case."""
        base = self._base + (0 if shape.in_memory else UNLOADED)  # the probe did not load what writes to disk
        if is_tight:
            base += UNLOADED  # a limit always keeps this much free
        sweeping = shape.least(self._workers) if is_tight else self._sweeping(shape) if at_most else self._usually(shape)
        return base + max(self._enumerating(shape, is_tight, at_most), sweeping)

    def _enumerating(self, shape: SweepShape, is_tight: bool, at_most: bool) -> float:
        slices, words = sum(shape.slice_bytes), self._seen.n_words
        index = bytes_for(shape.n_bodies, words) if words else 2 * BYTES_PER_STATE * shape.n_bodies
        at_hand = slices if shape.in_memory else 0 if is_tight else min(CACHE_BYTES, slices)
        waiting = 0 if shape.in_memory or is_tight or not at_most else min(SLICE_BACKLOG, slices)
        in_work = 0 if is_tight else min(BLOCK_BYTES, slices)
        level = max(shape.slice_bytes, default=0)  # the unfinished level; above a limit it waits on disk
        level = level if shape.in_memory else min(level, STRETCH_BYTES if is_tight else SPILL_BYTES)
        return index + at_hand + waiting + in_work + (2 if at_most else 1) * level

    def _sweeping(self, shape: SweepShape) -> float:
        chosen = sizes_within(shape, None, self._workers)
        assert chosen is not None
        return chosen.needs.total + (sum(shape.slice_bytes) if shape.in_memory else 0)

    def _usually(self, shape: SweepShape) -> float:
        """The same, without memory that is reserved but hardly ever used.

        The values of the last level are zeros that are never written, so the system provides no memory for them; the second
        of two tables has only the rows of the level before it. At most one level waits to be written.
        """
        states, parts = [*shape.level_states[:-1], 0], shape.fixed.parts
        kept = sum(states) if shape.in_memory else max(a + b for a, b in zip([*states, 0], [0, *states], strict=True))
        rows = sum(shape.level_states[-2:]) if self._seen.is_nested else 2 * shape.n_rows
        tables = parts["tables of values"] * rows / max(1, 2 * shape.n_rows)
        others = [parts[name] for name in ("goals of all states", "goals attained", "places of states and transitions")]
        slices = sum(shape.slice_bytes)
        largest = min(STRETCH_BYTES, max(shape.slice_bytes, default=0))
        at_hand = slices if shape.in_memory else min(CACHE_BYTES, slices) + largest
        blocks = BLOCK_STATES * shape.bytes_in_work(self._workers)
        return tables + kept * shape.bytes_per_state + sum(others) + at_hand + blocks


def _count(number: Range) -> str:
    return _ranged(number, lambda value: f"{float(f'{value:.3g}'):,.0f}" if value >= 1000 else f"{value:.0f}")


def _size(number: Range) -> str:
    return "-" if number.high == 0 else _ranged(number, as_text)


def _time(number: Range) -> str:
    def text(seconds: float) -> str:
        unit, name = (3600, "h") if seconds >= 3600 else (60, "min") if seconds >= 60 else (1, "s")
        return f"{seconds / unit:.1f} {name}"

    return _ranged(number, text)


def _ranged(number: Range, text: Callable[[float], str]) -> str:
    if number.is_exact:
        return text(number.likely)
    return f"{text(number.likely)} ({text(number.low)} to {text(number.high)})"
