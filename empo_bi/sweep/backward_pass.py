"""The backward pass, from the last level to the first. It holds the tables of levels still needed and a block of a slice.

One sweep serves everything: in memory or on disk, one thread or many, one or several sets of parameters, one phase or both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from empo_bi.dag.level_blocks import LevelBlocks, RestingBlock
from empo_bi.problem.asked_prior import AskedPrior, Questions, answered
from empo_bi.problem.callbacks import terminal_values_of
from empo_bi.problem.given_policies import GivenPolicies
from empo_bi.problem.goal_columns import bits_of
from empo_bi.runtime.blocks import active_cluster, map_blocks
from empo_bi.runtime.cluster import DaskCluster
from empo_bi.runtime.progress import LevelBar
from empo_bi.store.solved_levels import ARRAYS, SolvedLevels
from empo_bi.sweep import cluster_blocks as remote
from empo_bi.sweep.cluster_blocks import SharedSetting, batch_of, batch_states, compute_block_batch, grouped, put_results
from empo_bi.sweep.level_inputs import Level
from empo_bi.sweep.phase_pairs import PhasePair, phases_of, prior_of, run_block
from empo_bi.sweep.phases import BlockInputs, Ends, Setting
from empo_bi.sweep.undefined_values import StateTrouble, complaint
from empo_bi.sweep.value_tables import RowPlan, Rows, Table, rows_of
from empo_bi.types import Arrays, FloatArray, IndexArray
from empo_bi.world.as_model import Model

ENDS_AT_A_TIME = 1 << 16  # terminal states that are dealt with together, so that a level's are never all tuples
PARALLEL_BLOCKS = 4  # a level of fewer blocks is not worth starting threads for


@dataclass(eq=False)
class SolveTask(PhasePair):
    """Phases that belong together, and where their results go. Tasks may share a human phase."""

    sink: SolvedLevels
    keeps: frozenset[str] = frozenset(ARRAYS)  # names of arrays that are handed over; of the first level, all are
    # What users' goals said of a level, in arrays of some names.
    answers: Callable[[int, Collection[str]], Arrays] = lambda t, names: {}

    @property
    def next_level(self) -> int:
        """The level that this task is at; -1 if there is nothing to do any more."""
        return -1 if self.is_given_up else self.sink.next_level

    @property
    def _tables(self) -> dict[str, Table]:
        return {name: table for phase in self.phases for name, table in phase.tables().items()}

    def hand_over(self, t: int, plan: RowPlan) -> None:
        arrays: Arrays = {}
        for phase in self.phases:
            arrays |= {name: array for name, array in phase.arrays().items() if self._keeps(t, name)}
        arrays |= self.answers(t, self.sink.answers)
        self.sink.put(t, arrays, lambda: {name: table.rows_to_carry(plan) for name, table in self._tables.items()})

    def _keeps(self, t: int, name: str) -> bool:
        return t == 0 or name in self.keeps or name not in ARRAYS

    def restore(self, plan: RowPlan) -> None:
        """Fill the tables with what was carried when the sweep was interrupted."""
        carried = self.sink.carried()
        for name, table in self._tables.items():
            if name not in carried or len(carried[name]) != table.n_rows_to_carry(plan):
                found = f"{len(carried[name]):,} rows" if name in carried else "nothing"
                raise self.sink.damaged(
                    f"the carry of level {self.sink.next_level + 1}, array {name!r}: found {found}; expected "
                    f"{table.n_rows_to_carry(plan):,} rows"
                )
            table.restore(plan, carried[name])


@dataclass
class Sweep:
    """A backward pass over all levels.

    Attributes
    ----------
    wants_states : whether some phase asks Python functions about states
    waits : whether a level is begun only when the one above it has been written, which takes less memory
    memory_limit : what progress shows as the limit; nothing depends on it
    cluster : where large levels are computed; without one, by ``workers`` threads of this process
    after_block, after_level : called with a number of states, or a level and its number of states, when they are done
    doing : the work, as progress calls it
    """

    blocks: LevelBlocks
    setting: Setting
    tasks: Sequence[SolveTask]
    workers: int = 1
    wants_states: bool = False
    asks_durations: bool = False
    waits: bool = False
    progress: bool = True
    memory_limit: int | None = None
    after_block: Callable[[int], None] | None = None
    after_level: Callable[[int, int], None] | None = None
    cluster: DaskCluster | None = field(default_factory=active_cluster)
    doing: str = "solve"
    _shared: SharedSetting | None = field(default=None, init=False)

    def run(self) -> None:
        """Go on where the sinks are; nothing is computed for those that have everything.

        Tasks whose tables are too narrow are given up, and say so.
        """
        dag, rows = self.blocks.dag, rows_of(self.blocks.dag)
        first = max(task.next_level for task in self.tasks)
        n_states = sum(dag.level_sizes[: first + 1])
        with LevelBar(self.doing, first + 1, self.progress, n_states=n_states, limit=self.memory_limit) as bar:
            if first < 0:  # somebody opens what is there, and rows of all levels would only take memory
                for t in range(dag.horizon, -1, -1):
                    if self.after_level is not None:
                        self.after_level(t, dag.level_sizes[t])
                return
            for t in range(dag.horizon, -1, -1):
                plan = rows.begin(t, dag.levels.members(t))
                active = [task for task in self.tasks if task.next_level == t]
                if active:
                    self._level(t, plan, rows, active, bar)
                    bar.level(t, len(plan.slot_S))
                for task in self.tasks:
                    if task.next_level == t - 1 >= 0 and task not in active:  # here it was interrupted
                        task.restore(plan)
                if self.after_level is not None:
                    self.after_level(t, len(plan.slot_S))

    def _level(self, t: int, plan: RowPlan, rows: Rows, tasks: Sequence[SolveTask], bar: LevelBar) -> None:
        """One level for some tasks, all of which have the levels above it."""
        goals = self.setting.goals
        body_S = self.blocks.bodies(t)
        for task in tasks:
            task.sink.settle(t + 1 if self.waits else t + 2)  # whose tables are about to be used again
        phases = phases_of(tasks)
        for phase in phases:
            phase.begin(plan, len(body_S))
        attained_SB = goals.attained(t)
        weight_NX, has_NX = goals.weights(t), goals.has(t)
        states = self.blocks.dag.states(t) if self.wants_states or self.asks_durations else None
        level = Level(t, plan, rows, attained_SB, weight_NX, has_NX, states, self._given_at(t, tasks))
        is_covered = np.zeros(len(body_S), dtype=np.bool_)
        try:
            for place_M in self._computed(level, tasks, len(body_S)):
                is_covered[place_M] = True
                bar.block(len(place_M))
                if self.after_block is not None:
                    self.after_block(len(place_M))
        except StateTrouble as trouble:
            raise complaint(trouble, self.blocks.dag, t, goals.humans) from None
        ended = np.flatnonzero(~is_covered)
        if len(body_S) - len(ended) != self.blocks.n_going_on:  # or states would pass for terminal ones
            raise RuntimeError(f"level {t}: {len(body_S) - len(ended)} of {self.blocks.n_going_on} states were computed")
        for first in range(0, len(ended), ENDS_AT_A_TIME):
            place_M = ended[first : first + ENDS_AT_A_TIME]
            attained_MX = bits_of(attained_SB[place_M], goals.n_columns)
            ends = Ends(place_M, plan.slot_S[place_M], attained_MX, self._terminal_values(t, place_M, tasks))
            for phase in phases:
                phase.end_here(ends)
        for task in tasks:
            if task.is_given_up:
                task.sink.remove()
            else:
                task.hand_over(t, plan)

    def _given_at(self, t: int, tasks: Sequence[SolveTask]) -> Callable[[IndexArray], GivenPolicies | None]:
        prior = prior_of(tasks)
        return (lambda place_M: None) if prior is None else partial(prior.given, self.blocks.dag, t)

    def _terminal_values(self, t: int, place_M: IndexArray, tasks: Sequence[SolveTask]) -> dict[int, FloatArray]:
        """What each user's function says of terminal states, by its id; asked once, however many tasks have it."""
        found = [task.robot.params.terminal_function for task in tasks if task.robot is not None]
        functions = {id(function): function for function in found if function is not None}
        states = self.blocks.dag.states(t, place_M) if functions else []
        return {key: terminal_values_of(function, states) for key, function in functions.items()}

    def _computed(self, level: Level, tasks: Sequence[SolveTask], n_states: int) -> Iterator[IndexArray]:
        """Compute a level, here or on a cluster; yields places of states that are done."""
        fewest = remote.FEWEST_STATES if level.states is None else remote.FEWEST_ASKED
        if self.cluster is not None and n_states >= fewest:
            return self._computed_elsewhere(level, tasks, n_states, self.cluster)
        return self._computed_here(level, tasks, n_states)

    def _computed_here(self, level: Level, tasks: Sequence[SolveTask], n_states: int) -> Iterator[IndexArray]:
        def compute(block: RestingBlock) -> IndexArray:
            work = level.work(block.awake())
            run_block(work.with_durations(self._timing_model), tasks, self.setting)
            return work.block.place_M

        prior = prior_of(tasks)
        if prior is not None and prior.may_ask_elsewhere and self.workers > 1 and level.states is not None:
            return self._asked_elsewhere(level, tasks, prior)
        n_blocks = n_states // self.blocks.block_states + 1
        # Users' functions are asked one after the other: few of them are made for several threads.
        workers = self.workers if n_blocks >= PARALLEL_BLOCKS and level.states is None else 1
        return map_blocks(compute, self.blocks.resting(level.t), workers)

    def _asked_elsewhere(self, level: Level, tasks: Sequence[SolveTask], prior: AskedPrior) -> Iterator[IndexArray]:
        """The same where worker processes ask the prior, some blocks ahead of those that are computed here."""
        n_together = max(1, min(self.blocks.block_states, len(level.plan.slot_S) // (2 * self.workers)))
        works: deque[BlockInputs] = deque()

        def questions() -> Iterator[Questions]:
            for block in self.blocks.resting(level.t, n_together):
                works.append(level.work(block.awake()))
                yield Questions(prior, self.blocks.dag.world, works[-1].states or [], works[-1].has_NX)

        for told in map_blocks(answered, questions(), self.workers, processes=True):
            work = replace(works.popleft(), given=prior.with_answers(told))
            run_block(work.with_durations(self._timing_model), tasks, self.setting)
            yield work.block.place_M

    def _computed_elsewhere(
        self, level: Level, tasks: Sequence[SolveTask], n_states: int, cluster: DaskCluster
    ) -> Iterator[IndexArray]:
        if self._shared is None:
            self._shared = SharedSetting.of(self.tasks, self.setting, self._timing_model)
        chosen = [i for i, task in enumerate(self.tasks) if task in tasks]
        phases = phases_of(tasks)
        asks = level.states is not None
        n_together = batch_states(n_states, self.blocks.dag.n_profiles, cluster.n_workers, asks=asks)
        blocks = grouped(self.blocks.resting(level.t, n_together), max(1, n_together // self.blocks.block_states))
        batches = (batch_of(level, some, chosen, phases) for some in blocks)
        for results in cluster.map(compute_block_batch, self._shared, batches):
            put_results(results, phases, level.plan.slot_S[results.place_M])
            for i in results.given_up:
                self.tasks[i].is_given_up = True
            yield results.place_M

    @property
    def _timing_model(self) -> Model | None:
        """The world, if it is asked how long transitions take."""
        return self.blocks.dag.model if self.asks_durations else None
