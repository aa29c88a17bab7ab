"""All sets of parameters solved, each with tables that are wide enough for it, and what was found as solutions."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.results.solution import Solution
from empo_bi.runtime.progress import say
from empo_bi.solving.parameter_sets import ParameterSets
from empo_bi.sweep.phases import PRECISIONS, Setting, wants_double


@dataclass
class Run:
    """Solves all sets over one DAG, which is closed with the last solution if it is theirs (``owns_dag``)."""

    sets: ParameterSets
    owns_dag: bool
    found: dict[int, Solution] = field(default_factory=dict, init=False)  # by the number of the set
    _users: weakref.WeakSet[Solution] = field(default_factory=weakref.WeakSet, init=False)

    @property
    def solutions(self) -> list[Solution]:
        return [self.found[i] for i in self._every]

    @property
    def _every(self) -> range:
        return range(len(self.sets.problem.params))

    def solve_all(self) -> None:
        """Sets for which float32 is too coarse, as far as parameters tell, have tables of float64 from the beginning; where
        a human's power turns out to be too small for float32, a set is solved again with such tables."""
        stored = self.sets.stored
        narrow, *wider = self._settings()
        too_steep = [i for i in self._every if wider and self._is_too_steep(i, narrow)]
        stored.forget(too_steep, narrow)
        for setting in wider:  # that a set wants wider tables was perhaps found out earlier
            stored.forget(self._every, setting)
            self._solve([i for i in self._every if stored.is_begun(i, setting)], setting)
        self._solve([i for i in self._every if i not in too_steep], narrow)
        for setting in wider:
            self._solve(self._every, setting)

    def _settings(self) -> list[Setting]:
        """With the types to be tried, one after the other."""
        problem, progress, watch = self.sets.problem, self.sets.resources.progress, self.sets.watch.also("goals")
        goals = GoalColumns(self.sets.blocks, problem.humans, problem.generator, progress=progress, watch=watch)
        return [problem.setting(goals, precision) for precision in PRECISIONS[self.sets.stored.storage.precision]]

    def _is_too_steep(self, i: int, narrow: Setting) -> bool:
        """Whether float32 is not tried for a set; one that an earlier version began is continued as it was begun."""
        problem, stored = self.sets.problem, self.sets.stored
        is_steep = wants_double(problem.params[i], problem.phase_2)
        return is_steep and (stored.storage.overwrite or not stored.is_begun(i, narrow))

    def _solve(self, chosen: Iterable[int], setting: Setting) -> None:
        """Solve those of some sets that are left, as far as tables are wide enough."""
        left = [i for i in chosen if i not in self.found]
        results = self.sets.results(left, setting) if left else {}
        problem, profiler = self.sets.problem, self.sets.resources.profiler
        self.found |= {
            i: Solution(
                self.sets.blocks, setting, problem.params[i], levels, human_params=problem.human_params,
                prior=problem.prior, has_robot=problem.phase_2, owns_dag=self.owns_dag, users=self._users,
                memory_profile=profiler,
            )
            for i, levels in results.items()
        }  # fmt: skip
        for i in results:
            self.found[i].was_there = i not in self.sets.solved

    @contextlib.contextmanager
    def closing_on_failure(self) -> Iterator[None]:
        """Around the work: where it fails, everything that was opened for it is closed."""
        try:
            yield
        except BaseException as error:
            stored = self.sets.stored
            if isinstance(error, KeyboardInterrupt) and stored.has_folders and self.sets.resources.progress:
                say(f"stopped; levels that were finished are kept in {stored.places[0]}, and the same call continues there")
            for solution in self.found.values():
                solution.results.close()
            if self.owns_dag:
                self.sets.blocks.dag.close()
            raise
