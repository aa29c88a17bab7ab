"""Counting the first levels of a world: sizes, speed, and compression."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.attainment import fixed_goals_of
from empo_bi.dag.dag import Dag
from empo_bi.dag.explorer import Explorer
from empo_bi.dag.level_blocks import LevelBlocks
from empo_bi.dag.levels import LevelSizes, MemoryLevels
from empo_bi.dag.packed_explorer import is_nested
from empo_bi.dag.python_world import LevelFunction
from empo_bi.dag.slices import EXACT, BodySlice
from empo_bi.dag.sub_problem import WHOLE
from empo_bi.errors import EmpoError, TooManyStatesError
from empo_bi.memory.budget import Budget
from empo_bi.memory.watch import Watch
from empo_bi.planner.lookahead import SeenPairs, log_boxes_ahead
from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.problem.params import Params
from empo_bi.runtime.progress import LevelBar
from empo_bi.solving.enumeration import ExplorerOptions, explorer_for
from empo_bi.solving.solve import pipeline_for
from empo_bi.sweep.memory_model import BLOCK_STATES
from empo_bi.types import Json, KeyArray
from empo_bi.world.as_model import Model

TRIAL_STATES = 20_000  # states that are solved to measure the speed
MAX_BODIES = 20_000_000
_SAMPLED_BODIES = 1 << 16  # of each level, whose values are looked at
_LOOK_AHEAD_SECONDS = 3.0
_UNTIMED_LEVELS = 2  # always counted: they have very few states, but load or even compile the kernels


@dataclass(frozen=True)
class Probe:
    """What the first levels show.

    Attributes
    ----------
    levels : sizes of the levels that were counted
    n_levels : how many levels there are in all
    is_nested : whether each level contains all bodies of the previous one
    seconds : the time it took to enumerate them, without loading kernels
    dag_ratio, result_ratio : bytes on disk for each byte in memory
    seconds_per_state : of the backward pass, both phases
    n_columns, n_words : (human, goal) pairs, and words of a key (0 in Python worlds)
    waves : what opens up by each level that was not counted, see :func:`~empo_bi.planner.growth.extrapolated`
    """

    levels: Sequence[LevelSizes]
    n_levels: int
    is_nested: bool
    shares_bodies: bool
    n_profiles: int
    seconds: float
    dag_ratio: float
    result_ratio: float
    seconds_per_state: float
    n_columns: int
    n_words: int
    goals_by_state: bool
    waves: Sequence[float] = ()

    @property
    def n_bodies(self) -> int:
        return sum(level.n_bodies for level in self.levels)

    @property
    def seconds_per_body(self) -> float:
        return self.seconds / max(1, self.n_bodies)


def probe(
    model: Model,
    solver_options: Json,
    *,
    level_fct: LevelFunction | None,
    seconds: float,
    progress: bool,
    max_levels: int | None = None,
) -> Probe:
    """Enumerate levels for up to ``seconds``, or ``max_levels`` of them, and solve the first as if nothing came after."""
    clock = _Clock(seconds)
    clock.is_waiting = model.packed is None  # packed worlds' first level is found at once, when kernels are compiled
    options: ExplorerOptions = {
        "precision": EXACT, "workers": 1, "max_states": MAX_BODIES, "spill": None, "watch": clock, "part": WHOLE,
    }  # fmt: skip
    explorer = explorer_for(model, level_fct, fixed_goals_of(model), Budget(), options)
    levels = _FirstLevels(explorer.n_profiles)
    with LevelBar("look ahead", explorer.n_levels, progress) as bar:
        spent, is_complete = _count(explorer, levels, clock, seconds, max_levels, bar)
    is_complete |= len(levels) == explorer.n_levels
    n_levels = len(levels) if is_complete else explorer.n_levels or 0
    if n_levels == 0:
        raise TooManyStatesError(
            f"after {spent:.1f} s and {explorer.n_known:,} states the number of levels is still unknown: a world written in "
            "Python does not state its horizon. Allow more seconds, or plan a world that ends sooner"
        )
    sizes = list(levels.sizes)
    cumulated = np.cumsum([level.n_bodies for level in sizes])
    trial = _Trial(model, levels, explorer.n_profiles, explorer.shares_bodies, solver_options)
    return Probe(
        levels=sizes,
        n_levels=n_levels,
        is_nested=explorer.shares_bodies and [level.n_states for level in sizes] == cumulated.tolist(),
        shares_bodies=explorer.shares_bodies,
        n_profiles=explorer.n_profiles,
        seconds=spent,
        dag_ratio=_dag_ratio(levels),
        result_ratio=trial.result_ratio,
        seconds_per_state=trial.seconds_per_state,
        n_columns=trial.n_columns,
        n_words=0 if model.packed is None else model.packed.n_words,
        goals_by_state=trial.goals_by_state,
        waves=_waves_of(model, levels.key_samples, n_levels - len(levels), min(_LOOK_AHEAD_SECONDS, seconds / 3)),
    )


def _waves_of(model: Model, samples: Sequence[KeyArray], n_levels: int, seconds: float) -> list[float]:
    """How much larger the box of combinations of values becomes by each of so many levels, as a logarithm."""
    if model.grid is None or n_levels == 0 or not SeenPairs.can_hold(model.grid.layout):
        return []
    seen = SeenPairs(model.grid.layout)
    for key_SW in samples:
        seen.add(key_SW)
    boxes = log_boxes_ahead(model.grid, seen, samples[-1], n_levels, seconds)
    return [box - boxes[0] for box in boxes[1:]]


def _count(
    explorer: Explorer, levels: _FirstLevels, clock: _Clock, seconds: float, max_levels: int | None, bar: LevelBar
) -> tuple[float, bool]:
    """Append levels as long as there is time. Returns the seconds that counted, and whether nothing comes after them."""
    spent, last = 0.0, 0.0
    while len(levels) < _UNTIMED_LEVELS or (
        spent + 1.5 * last < seconds and explorer.n_known < MAX_BODIES / 4  # the next level may take longer
    ):
        if max_levels is not None and len(levels) >= max_levels:
            break
        begin = time.perf_counter()
        piece = explorer.next_level(levels)
        if len(levels) >= _UNTIMED_LEVELS:
            last = time.perf_counter() - begin
            spent += last
        clock.is_waiting = False
        if piece is None:
            return spent, True
        levels.append(piece, list)
        bar.level(len(levels) - 1, len(piece.members))
    return spent, False


class _Clock(Watch):
    """Stops the count of a world without a ``level_fct``, whose first level is known only when all states are found."""

    def __init__(self, seconds: float) -> None:
        super().__init__("planning", "")
        self._seconds, self._begin, self.is_waiting = seconds, time.perf_counter(), True

    def look(self, n_states: int = 0, more: int = 0) -> None:
        super().look(n_states, more)
        if self.is_waiting and time.perf_counter() - self._begin > self._seconds:
            raise TooManyStatesError(
                f"after {self._seconds:g} s and {self._n_done:,} states this world has not ended; without a level_fct, all "
                "states have to be found before its levels are known. Give a level_fct, allow more seconds, or plan a world "
                "that ends sooner"
            )


class _FirstLevels(MemoryLevels):
    """Keeps the sizes of all levels, but slices only of the first states, and those that the explorer reads again."""

    def __init__(self, n_profiles: int) -> None:
        super().__init__()
        self._n_kept, self._n_profiles, self._is_nested = 0, n_profiles, False
        self.key_samples: list[KeyArray] = []  # of the bodies that each level adds, all or some

    def append(self, piece: BodySlice, frontier: Callable[[], list[Any]]) -> None:
        super().append(piece, frontier)
        self._n_kept += len(piece.added)
        if piece.key_BW is not None and len(piece.key_BW):
            every = -(-len(piece.key_BW) // _SAMPLED_BODIES)
            self.key_samples.append(piece.key_BW[::every].copy())
        if len(self) == 1:
            self._is_nested = is_nested(piece, self._n_profiles)
        is_wanted = len(self) == 1 or not self._is_nested or self._n_kept <= TRIAL_STATES
        if not is_wanted:
            self._slices[-1] = replace(piece, key_BW=None, count_EJ=None, succ_K=None, prob_K=None, attained=None)

    @property
    def kept(self) -> list[BodySlice]:
        return [piece for piece in self if piece.succ_K is not None or piece.key_BW is not None or piece.states]


def _dag_ratio(levels: _FirstLevels) -> float:
    """Bytes on disk for each byte in memory, of the largest slice."""
    from empo_bi.store import slice_arrays as codec

    largest = max(levels.kept, key=lambda piece: piece.nbytes)
    _, arrays = codec.to_arrays(replace(largest, states=None), None)
    return _compressed(list(arrays.values())) / max(1, largest.nbytes)


def _compressed(arrays: Sequence[npt.NDArray[np.generic]]) -> int:
    from empo_bi.store.compression import Compression, array_files

    compression = Compression.of(True)
    return sum(len(data) for array in arrays for _, data in array_files(array, ("",) * array.ndim, compression))


class _Trial:
    """The first levels, solved as if the last of them were the end."""

    def __init__(self, model: Model, levels: _FirstLevels, n_profiles: int, shares_bodies: bool, options: Json) -> None:
        dag = Dag(model.world, _first_of(levels), n_profiles=n_profiles, shares_bodies=shares_bodies)
        dag.precision = EXACT
        given: Any = {name: value for name, value in options.items() if name != "params"}
        solver = pipeline_for(model.world, [options.get("params", Params())], {**given, "dag": dag, "progress": False})
        columns = GoalColumns(LevelBlocks(dag, BLOCK_STATES), solver.problem.humans, solver.problem.generator)
        self.n_columns, self.goals_by_state = columns.n_columns, not columns.is_fixed
        self.seconds_per_state, self.result_ratio = 5e-6, 0.5  # guesses, in case the trial fails
        try:
            solver.solutions()  # loads the kernels
            begin = time.perf_counter()
            (solution,) = solver.solutions()
            self.seconds_per_state = (time.perf_counter() - begin) / max(1, dag.n_states)
        except EmpoError:  # such a short horizon may leave a human without power
            return
        t = max(range(dag.horizon), key=lambda t: dag.level_sizes[t], default=0)
        arrays = [solution.results.get(t, name) for name in ("vh", "ve", "xh", "qr", "vr") if solution.results.has(t, name)]
        self.result_ratio = _compressed(arrays) / max(1, sum(array.nbytes for array in arrays))


def _first_of(levels: _FirstLevels) -> MemoryLevels:
    """The first levels, with few states in all; the last of them is made the end."""
    chosen, n_states = MemoryLevels(), 0
    for t, piece in enumerate(levels.kept):
        n_states += len(piece.members)
        is_last = n_states > TRIAL_STATES or t == len(levels.kept) - 1
        chosen.append(_ended(piece) if is_last else piece, list)
        if is_last:
            break
    chosen.finish()
    return chosen


def _ended(piece: BodySlice) -> BodySlice:
    return replace(piece, ended=True, expanded=range(0), count_EJ=None, succ_K=None, prob_K=None)
