"""The backward pass, from the last level to the first. It holds the tables of levels still needed and a block of a slice.

One sweep serves everything: in memory or on disk, one thread or many, one or several sets of parameters, one phase or both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.backward.asked import durations_of
from empo_bi.backward.blocks import NO_FLOATS, Block, BlockMaker, LevelBlocks
from empo_bi.backward.goals import bits_of
from empo_bi.backward.phases import HumanPhase, RobotPhase, Setting, TooSmallForSingle, Work
from empo_bi.backward.rows import RowPlan, Rows, Table, rows_of
from empo_bi.dag.slices import ByteArray, FloatArray, IndexArray
from empo_bi.results.levels import ARRAYS, Arrays, ResultLevels
from empo_bi.runtime.blocks import map_blocks
from empo_bi.runtime.progress import LevelBar, level_bar

PARALLEL_BLOCKS = 4  # a level of fewer blocks is not worth starting threads for


@dataclass(eq=False)
class Strand:
    """Phases that belong together: those of one set of parameters, and where their results go.

    Several robot phases may share a human phase; each strand has its own tables for the others.
    """

    human: HumanPhase | None
    robot: RobotPhase | None
    sink: ResultLevels
    keeps: frozenset[str] = frozenset(ARRAYS)  # names of arrays that are handed over; of the first level, all are
    is_given_up: bool = False  # since its tables are too narrow

    @property
    def next_level(self) -> int:
        """The level that this strand is at; -1 if there is nothing to do any more."""
        return -1 if self.is_given_up else self.sink.next_level

    @property
    def phases(self) -> list[HumanPhase | RobotPhase]:
        return [phase for phase in (self.human, self.robot) if phase is not None]

    @property
    def _tables(self) -> dict[str, Table]:
        return {name: table for phase in self.phases for name, table in phase.tables().items()}

    def hand_over(self, t: int, plan: RowPlan) -> None:
        arrays: Arrays = {}
        for phase in self.phases:
            arrays |= {name: array for name, array in phase.arrays().items() if name in self.keeps or t == 0}
        self.sink.put(t, arrays, lambda: {name: table.rows_to_carry(plan) for name, table in self._tables.items()})

    def restore(self, plan: RowPlan) -> None:
        """Fill the tables with what was carried when the sweep was interrupted."""
        carried = self.sink.carried()
        for name, table in self._tables.items():
            table.restore(plan, carried[name])


@dataclass
class Sweep:
    """A backward pass over all levels.

    Attributes
    ----------
    wants_states : whether some phase asks Python functions about states
    waits : whether a level is begun only when the one above it has been written, which takes less memory
    memory_limit : what progress shows as the limit; nothing depends on it
    after_block, after_level : called with a number of states, or a level and its number of states, when they are done
    """

    blocks: LevelBlocks
    setting: Setting
    strands: Sequence[Strand]
    workers: int = 1
    wants_states: bool = False
    asks_durations: bool = False
    waits: bool = False
    progress: bool = True
    memory_limit: int | None = None
    after_block: Callable[[int], None] | None = None
    after_level: Callable[[int, int], None] | None = None

    def run(self) -> None:
        """Go on where the sinks are; nothing is computed for those that have everything.

        Strands whose tables are too narrow are given up, and say so.
        """
        dag, rows = self.blocks.dag, rows_of(self.blocks.dag)
        first = max(strand.next_level for strand in self.strands)
        n_states = sum(dag.level_sizes[: first + 1])
        with level_bar("solve", first + 1, self.progress, n_states=n_states, limit=self.memory_limit) as bar:
            for t in range(dag.horizon, -1, -1):
                plan = rows.begin(t, dag.levels.members(t))
                active = [strand for strand in self.strands if strand.next_level == t]
                if active:
                    self._level(t, plan, rows, active, bar)
                    bar.level(t, len(plan.slot_S))
                for strand in self.strands:
                    if strand.next_level == t - 1 >= 0 and strand not in active:  # here it was interrupted
                        strand.restore(plan)
                if self.after_level is not None:
                    self.after_level(t, len(plan.slot_S))

    def _level(self, t: int, plan: RowPlan, rows: Rows, strands: Sequence[Strand], bar: LevelBar) -> None:
        """One level for some strands, all of which have the levels above it."""
        goals = self.setting.goals
        body_S = self.blocks.bodies(t)
        for strand in strands:
            strand.sink.settle(t + 1 if self.waits else t + 2)  # whose tables are about to be used again
        phases = _distinct(phase for strand in strands for phase in strand.phases)
        for phase in phases:
            phase.begin(plan, len(body_S))
        attained_SB = goals.attained(t)
        weight_NX, has_NX = goals.weights(t), goals.has(t)
        states = self.blocks.dag.states(t) if self.wants_states or self.asks_durations else None
        is_covered = np.zeros(len(body_S), dtype=np.bool_)

        def compute(make: BlockMaker) -> IndexArray:
            block = make()
            self._run(self._work(t, block, plan, rows, attained_SB, weight_NX, has_NX, states), strands)
            return block.place_M

        n_blocks = len(body_S) // self.blocks.block_states + 1
        # Users' functions are asked one after the other: few of them are made for several threads.
        workers = self.workers if n_blocks >= PARALLEL_BLOCKS and states is None else 1
        for place_M in map_blocks(compute, self.blocks.makers_of_level(t), workers):
            is_covered[place_M] = True
            bar.block(len(place_M))
            if self.after_block is not None:
                self.after_block(len(place_M))
        ended = np.flatnonzero(~is_covered)
        if len(body_S) - len(ended) != self.blocks.n_going_on:  # or states would pass for terminal ones
            raise RuntimeError(f"level {t}: {len(body_S) - len(ended)} of {self.blocks.n_going_on} states were computed")
        if len(ended):
            attained_MX = bits_of(attained_SB[ended], goals.n_columns)
            for phase in phases:
                phase.end_here(plan.slot_S[ended], attained_MX)
        for strand in strands:
            if strand.is_given_up:
                strand.sink.remove()
            else:
                strand.hand_over(t, plan)

    def _work(
        self, t: int, block: Block, plan: RowPlan, rows: Rows, attained_SB: ByteArray, weight_NX: FloatArray,
        has_NX: ByteArray, states: list[Any] | None,
    ) -> Work:  # fmt: skip
        place_M = block.place_M
        chosen = None if states is None else [states[s] for s in place_M.tolist()]
        durations = NO_FLOATS
        if self.asks_durations:
            assert chosen is not None
            durations = durations_of(self.blocks.dag, block, chosen)
        return Work(
            t=t,
            block=block,
            slot_M=plan.slot_S[place_M],
            succ_K=rows.slots_of(block.succ_K),
            attained_MB=attained_SB[place_M],
            has_NX=has_NX if len(has_NX) == 1 else has_NX[place_M],
            weight_NX=weight_NX if len(weight_NX) == 1 else weight_NX[place_M],
            duration_K=durations,
            states=chosen,
        )

    def _run(self, work: Work, strands: Sequence[Strand]) -> None:
        shape = (len(work.slot_M), self.setting.profiles.n_actions, 0)
        pi_MAX: npt.NDArray[Any] = np.empty(shape, dtype=self.setting.precision.work)
        for human in _distinct(strand.human for strand in strands):
            if human is not None:
                pi_MAX = human.run(work)
            for strand in strands:
                if strand.human is human and strand.robot is not None and not strand.is_given_up:
                    try:
                        strand.robot.run(work, pi_MAX)
                    except TooSmallForSingle:
                        strand.is_given_up = True  # the others go on


def _distinct(items: Iterable[Any]) -> list[Any]:
    """In order, each once."""
    return list(dict.fromkeys(items))
