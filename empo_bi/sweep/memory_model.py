"""How much memory a sweep takes, from sizes alone: before it begins, and before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.dag.levels import LevelSizes, MemoryLevels
from empo_bi.errors import MemoryLimitError
from empo_bi.memory.budget import CACHE_BYTES, RESULT_BACKLOG, STRETCH_BYTES, Budget, Needs
from empo_bi.runtime.byte_sizes import as_text
from empo_bi.sweep.phases import Setting

BLOCK_STATES = 1024  # policies of a block of this size stay in the processor's cache
_SMALLEST_BLOCK = 32
_PER_STATE = 60  # numbers of bodies, rows and places of the states of a level
_RESERVE = 1.06  # what the process holds against what arrays take, at the tightest
_BYTES_PER_TUPLE = 900  # a state of nested tuples, as users' functions get it
_PER_ENTRY = 28  # a transition of a block in work: successor, its row, count, probability, discount


@dataclass(frozen=True)
class SweepShape:
    """Sizes that decide how much memory a sweep takes.

    Attributes
    ----------
    level_states : states on each level
    n_rows : rows of the tables, all bodies or those that are still needed
    slice_bytes : of each level, decompressed
    n_columns, n_humans, n_robots, n_actions, n_profiles : (human, goal) pairs, humans, robot profiles, actions, profiles
    work, rest : bytes of a number of the humans in work and at rest
    human_phases, robot_phases : of all sets of parameters together, those that are shared once
    in_memory : whether results stay in memory
    goals_by_state : whether each state has weights of its own
    slices_in_memory : whether all transitions are in memory already
    waits : whether a level is begun only when the one above it has been written
    asks : whether states are needed as Python objects, since somebody's functions are asked about them
    n_joint : profiles of all humans together, where a prior of the user's is asked
    answers : bytes of what these functions said of each state, where that is stored
    """

    level_states: Sequence[int]
    n_rows: int
    n_bodies: int
    slice_bytes: Sequence[int]
    n_columns: int
    n_humans: int
    n_robots: int
    n_actions: int
    n_profiles: int
    work: int
    rest: int
    human_phases: int
    robot_phases: int
    in_memory: bool
    goals_by_state: bool = False
    slices_in_memory: bool = False
    waits: bool = False
    asks: bool = False
    answers: int = 0
    n_joint: int = 0

    @property
    def bytes_per_state(self) -> int:
        """What is kept of a solved state."""
        values, pairs = self.n_columns * self.rest, max(self.human_phases, self.robot_phases)
        robots = 8 * (self.n_humans + self.n_robots + 1)
        return self.human_phases * values + self.robot_phases * (values + robots) + pairs * self.answers

    @property
    def _bytes_per_row(self) -> int:
        return self.human_phases * self.n_columns * self.work + self.robot_phases * (self.n_columns * self.work + 8)

    @property
    def fixed(self) -> Needs:
        """What has to be there whatever else is done."""
        pairs = [a + b for a, b in zip([*self.level_states, 0], [0, *self.level_states], strict=True)]
        kept = "the level in work" if self.waits else "the level in work and the one being written"
        states = max(self.level_states) if self.waits else max(pairs)
        if self.in_memory:
            kept, states = "all solved levels", sum(self.level_states)
        bits = -(-self.n_columns // 8)
        slices = 0 if self.slices_in_memory else 2 * min(STRETCH_BYTES, max(self.slice_bytes, default=0))
        return Needs({
            "tables of values": 2 * self.n_rows * self._bytes_per_row,
            kept: states * self.bytes_per_state,
            "goals of all states": sum(self.level_states) * self.n_columns * 9 if self.goals_by_state else 0,
            "goals attained": (self.n_bodies + max(self.level_states, default=0)) * bits,
            "places of states and transitions": max(self.level_states, default=0) * _PER_STATE + 8 * self.n_bodies,
            "slices of transitions": slices,
            "states as Python objects": max(self.level_states, default=0) * _BYTES_PER_TUPLE if self.asks else 0,
        })  # fmt: skip

    @property
    def bytes_per_block_state(self) -> int:
        policies = (self.n_actions + 4) * self.n_columns * self.work
        joint = 8 * self.n_joint * (1 + self.n_columns)
        return policies * max(1, self.human_phases) + joint + self.n_profiles * _PER_ENTRY

    def least(self, workers: int) -> int:
        """What the smallest sizes take."""
        fixed = replace(self, waits=not self.in_memory).fixed.total
        return int(_RESERVE * fixed) + 4 * _SMALLEST_BLOCK * self.bytes_in_work(workers)

    def bytes_in_work(self, workers: int) -> int:
        """What one state takes in each of the blocks that are in work at a time; some wait while others are computed."""
        return self.bytes_per_block_state * (1 if workers == 1 else 2 * workers)

    def with_steps(self, horizon: int, sizes: Sequence[LevelSizes]) -> SweepShape:
        """The same for a shorter horizon."""
        kept = sizes[: horizon + 1]
        bodies = sum(level.n_bodies for level in kept)
        return replace(
            self, level_states=[level.n_states for level in kept], slice_bytes=[level.nbytes for level in kept],
            n_bodies=bodies, n_rows=min(self.n_rows, bodies),
        )  # fmt: skip


@dataclass(frozen=True)
class SweepSizes:
    """Sizes that are free to choose, and what all of it takes together; ``waits`` as in :class:`SweepShape`."""

    block_states: int
    cache_bytes: int
    backlog_bytes: int
    waits: bool
    needs: Needs


def sizes_within(shape: SweepShape, room: int | None, workers: int) -> SweepSizes | None:
    """The largest sizes for which everything fits into so many bytes; None if nothing does."""
    fixed = shape.fixed
    per_block_state = shape.bytes_in_work(workers)
    all_slices = 0 if shape.slices_in_memory else sum(shape.slice_bytes)
    written = 0 if shape.in_memory else sum(shape.level_states) * shape.bytes_per_state
    block, cache, backlog = BLOCK_STATES, min(CACHE_BYTES, all_slices), min(RESULT_BACKLOG, written)
    if room is not None:
        spare = room - int(_RESERVE * fixed.total)
        block = min(block, spare // 4 // per_block_state)
        cache, backlog = min(cache, spare * 3 // 8), min(backlog, spare // 8)  # and a quarter for nobody in particular
        if block < min(_SMALLEST_BLOCK, BLOCK_STATES):
            return None if shape.waits or shape.in_memory else sizes_within(replace(shape, waits=True), room, workers)
    return SweepSizes(
        block, cache, backlog, shape.waits,
        fixed + Needs({"blocks in work": block * per_block_state, "slices at hand": cache, "levels waiting": backlog}),
    )  # fmt: skip


def shape_of(
    dag: Dag, setting: Setting, *, human_phases: int, robot_phases: int, in_memory: bool, asks: bool,
    has_prior: bool = False,
) -> SweepShape:  # fmt: skip
    """The shape of a sweep over a DAG that is there; goals that were asked for state by state are in memory already."""
    profiles = setting.profiles
    return SweepShape(
        level_states=dag.level_sizes,
        n_rows=rows_needed(dag),
        n_bodies=dag.n_bodies,
        slice_bytes=[sizes.nbytes for sizes in dag.levels.sizes],
        n_columns=setting.goals.n_columns,
        n_humans=len(profiles.humans),
        n_robots=len(profiles.robot_profiles),
        n_actions=profiles.n_actions,
        n_profiles=dag.n_profiles,
        work=np.dtype(setting.precision.work).itemsize,
        rest=np.dtype(setting.precision.rest).itemsize,
        human_phases=human_phases,
        robot_phases=robot_phases,
        in_memory=in_memory,
        asks=asks,
        answers=0 if in_memory else setting.goals.answer_bytes + (8 * len(profiles.action_UH) if has_prior else 0),
        n_joint=len(profiles.action_UH) if has_prior else 0,
        slices_in_memory=isinstance(dag.levels, MemoryLevels),
    )


def rows_needed(dag: Dag) -> int:
    """Rows that the tables of a sweep have at most, see :mod:`empo_bi.sweep.value_tables`."""
    if dag.shares_bodies:
        return dag.n_bodies
    first = [int(bodies[0]) if len(bodies) else 0 for bodies in map(dag.levels.members, range(dag.horizon + 1))]
    live: list[int] = []
    most = 0
    for t in range(dag.horizon, -1, -1):
        live = [*(u for u in live if first[u] < dag.levels.sizes[t].known), t]
        most = max(most, sum(dag.level_sizes[u] for u in live))
    return most


def sizes_for(shape: SweepShape, levels: Sequence[LevelSizes], budget: Budget, workers: int) -> SweepSizes:
    """Sizes with which a sweep stays within its budget.

    Raises
    ------
    MemoryLimitError
        If there are none: it tells what is needed for what, and what would help.
    """
    room = budget.room
    sizes = sizes_within(shape, room, workers)
    if sizes is not None:
        return sizes
    assert room is not None
    assert budget.limit is not None
    enough = budget.held + shape.least(workers)
    ways = [*_ways_to_fit(shape, levels, room, workers), f"memory_limit='{math.ceil(enough * 1.08 / 1e6)}MB'"]
    needs = replace(shape, waits=not shape.in_memory).fixed
    raise MemoryLimitError(
        f"solving needs {as_text(enough)}, and memory_limit={as_text(budget.limit)}: {as_text(budget.held)} for Python, "
        f"libraries and what is held already, {needs}. What would fit: {'; '.join(ways)}"
    )


def _ways_to_fit(shape: SweepShape, levels: Sequence[LevelSizes], room: int, workers: int) -> list[str]:
    """What would help, tried out."""

    def fits(other: SweepShape) -> bool:
        return sizes_within(other, room, workers) is not None

    ways = []
    if shape.in_memory and fits(replace(shape, in_memory=False)):
        ways.append("results on disk (out=PATH or True)")
    if shape.work == 8 and fits(replace(shape, work=4, rest=2)):
        ways.append("precision='float16'")
    if shape.robot_phases > 1 and fits(replace(shape, human_phases=min(1, shape.human_phases), robot_phases=1)):
        ways.append("one set of parameters at a time")
    if shape.n_columns > shape.n_humans and fits(replace(shape, n_columns=shape.n_columns // 2)):
        ways.append("half as many goals")
    shorter = next((t for t in range(len(levels) - 2, 0, -1) if fits(shape.with_steps(t, levels))), None)
    return ways if shorter is None else [*ways, f"a horizon of {shorter} steps"]
