"""Sets of parameters solved in one sweep, into memory or into stores that may have some of the levels already."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from empo_bi.dag.level_blocks import LevelBlocks
from empo_bi.memory.watch import Watch
from empo_bi.problem.asked_prior import AskedPrior
from empo_bi.runtime.progress import say
from empo_bi.solving.memory_advice import sweep_sizes
from empo_bi.solving.options import Resources
from empo_bi.solving.problem import Problem
from empo_bi.solving.stored_results import StoredResults
from empo_bi.solving.sweeping import run_sweep
from empo_bi.store.solved_levels import SolvedLevels
from empo_bi.sweep.backward_pass import SolveTask
from empo_bi.sweep.memory_model import SweepSizes
from empo_bi.sweep.phase_pairs import prior_of
from empo_bi.sweep.phases import HumanPhase, RobotPhase, Setting
from empo_bi.types import Json

_WORTH_TELLING = 1.0  # seconds that a user's prior took
Results = dict[int, SolvedLevels]  # by the number of the set of parameters


@dataclass(frozen=True)
class ParameterSets:
    """What sweeps over one DAG have in common."""

    problem: Problem
    blocks: LevelBlocks
    stored: StoredResults
    resources: Resources
    watch: Watch
    solved: set[int] = field(default_factory=set)  # numbers of sets that were not there before
    _told: set[int] = field(default_factory=set)  # levels of which somebody was told

    def results(self, chosen: Sequence[int], setting: Setting) -> Results:
        """Results of some sets, solved as far as they are not there; those that want wider tables are left out."""
        results: Results = {}
        contents = self.stored.contents(chosen, setting)
        in_memory = self.stored.places[0] is None
        left = self.stored.unfinished(contents)
        self.solved.update(left)
        sizes = sweep_sizes(self.problem, self.blocks.dag, setting, self.resources, left, in_memory=in_memory)
        self.blocks.block_states = sizes.block_states
        try:
            again = self._open(contents, setting, results)
            self._sweep(results, setting, sizes)
            self._open_again(again, setting, results)
            for i, levels in results.items():
                self.stored.archive(levels, contents[i], setting)
        except BaseException:
            for levels in results.values():
                levels.close()
            raise
        return results

    def _open(self, contents: dict[int, Json], setting: Setting, results: Results) -> dict[int, Json]:
        """Open the results of all sets. Returns those that ask the same as one before them, in the same folder."""
        again = {}
        for i, content in contents.items():
            if any(self.stored.are_same(i, j, contents) for j in results):
                again[i] = content
            else:
                results[i] = self.stored.opened(i, content, setting, overwrite=self.stored.storage.overwrite)
        return again

    def _open_again(self, again: dict[int, Json], setting: Setting, results: Results) -> None:
        for i, content in again.items():
            if self.stored.is_there(i, content):
                results[i] = self.stored.opened(i, content, setting, overwrite=False)

    def _sweep(self, results: Results, setting: Setting, sizes: SweepSizes) -> None:
        """Solve what is not there, and take out sets whose tables are too narrow."""
        for levels in results.values():
            levels.backlog_bytes = sizes.backlog_bytes // len(results)
        for i in self._given_up(results, setting, sizes):  # by now the tables of all sets are gone
            results.pop(i).remove()
        for levels in results.values():
            levels.finish()

    def _given_up(self, results: Results, setting: Setting, sizes: SweepSizes) -> list[int]:
        """Run the sweep. Returns sets whose tables are too narrow."""
        tasks = self._tasks(setting, results)
        self._run(tasks, setting, sizes)
        return [i for i, task in zip(results, tasks, strict=True) if task.is_given_up]

    def _tasks(self, setting: Setting, results: Results) -> list[SolveTask]:
        """One for each set, in order; sets with the same humans share phase 1."""
        problem, humans, tasks = self.problem, dict[Hashable, HumanPhase](), []
        prior = None if problem.prior is None else AskedPrior(problem.prior, setting.profiles, setting.goals)
        for i, levels in results.items():
            human, robot = None, None
            if problem.prior is None:
                own = HumanPhase(setting, problem.params_of_humans(i), keeps_values=True)
                human = humans.setdefault(problem.human_key(i), own)
            if problem.phase_2:
                keeps_joint = "joint" in levels.answers
                robot = RobotPhase(setting, problem.params[i], prior, keeps_joint=keeps_joint)
            tasks.append(SolveTask(human, robot, levels, self.stored.storage.arrays, setting.goals.answers_at))
        return tasks

    def _run(self, tasks: Sequence[SolveTask], setting: Setting, sizes: SweepSizes) -> None:
        begin = time.perf_counter()
        run_sweep(
            self.problem, self.blocks, setting, tasks, sizes, self.resources, self.watch, after_level=self._after_level
        )
        self._tell_of_prior(tasks, time.perf_counter() - begin)

    def _tell_of_prior(self, tasks: Sequence[SolveTask], seconds: float) -> None:
        """What the user's own prior took, if it is worth a line."""
        prior = prior_of(tasks)
        if prior is not None and self.resources.progress and prior.seconds >= _WORTH_TELLING:
            answers = "questions" if prior.wants_states else "blocks of states"
            say(f"human_policy_prior: {prior.seconds:.1f} s for {prior.n_questions:,} {answers}, of {seconds:.1f} s in all")

    def _after_level(self, t: int, n_states: int) -> None:
        self.watch.level(t, n_states)
        if self.resources.after_level is not None and t not in self._told:  # a set that begins again is no news
            self._told.add(t)
            self.resources.after_level(t, n_states, self.blocks.dag.n_states)
