"""From a world and parameters to solutions: check, enumerate, sweep, and assemble what was found."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from empo_bi.dag.dag import Dag
from empo_bi.dag.level_blocks import LevelBlocks
from empo_bi.dag.python_world import LevelFunction
from empo_bi.dag.sub_problem import WHOLE, SubProblem
from empo_bi.dag.world_fingerprint import WorldKey
from empo_bi.events import Event
from empo_bi.memory.profiler import MemoryProfiler
from empo_bi.memory.watch import Watch
from empo_bi.problem.params import Params
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import check_function
from empo_bi.runtime.progress import say
from empo_bi.solving.argument_checks import check_dag, check_storage
from empo_bi.solving.memory_advice import remedy
from empo_bi.solving.options import Resources, Roles, Storage
from empo_bi.solving.parameter_sets import ParameterSets
from empo_bi.solving.problem import Problem
from empo_bi.solving.run import Run
from empo_bi.solving.solution_dag import enumerated_beside
from empo_bi.solving.stored_results import StoredResults, archive_folder
from empo_bi.solving.sub_problems import dag_for, sub_problem_of
from empo_bi.store.solution_folders import SolutionFolders, check_archive, is_url
from empo_bi.sweep.memory_model import BLOCK_STATES
from empo_bi.world.model import World


@dataclass(frozen=True)
class Pipeline:
    """Everything that :func:`solve` and the documented functions have in common; nothing is done until it is asked for.

    Attributes
    ----------
    dag : a finished DAG of the world; without one, the world is enumerated
    level_fct : as for :func:`enumerate_dag`
    part : what is solved of the world
    folders : solutions that were opened already
    """

    problem: Problem
    storage: Storage
    resources: Resources
    dag: Dag | None = None
    level_fct: LevelFunction | None = None
    part: SubProblem = WHOLE
    folders: SolutionFolders = field(default_factory=SolutionFolders, init=False)

    @classmethod
    def of(
        cls, world: World, params: Sequence[Params], roles: Roles | None = None, storage: Storage | None = None,
        resources: Resources | None = None, *, dag: Dag | None = None, level_fct: LevelFunction | None = None,
        known_key: WorldKey = None, start: object = None, stop: Event | None = None,
    ) -> Pipeline:  # fmt: skip
        """The pipeline for what a user gave, all of which is checked; ``known_key`` saves the world's digest."""
        storage, resources = storage or Storage(), resources or Resources()
        check_storage(storage)
        check_function("level_fct", level_fct, "a function of a state")
        problem = Problem.of(world, params, roles or Roles(), known_key)
        part = sub_problem_of(problem.model, start, stop)
        resources.budget.check_base("solving")
        if dag is not None:
            check_dag(dag, world, problem.world_key)
            dag = dag_for(dag.of_world(world), part)  # an equal one may have durations of its own
        if storage.archive is not None:
            check_archive(archive_folder(storage, problem.phase_2))
        return cls(problem, storage, resources, dag, level_fct, part)

    def solutions(self) -> list[Solution]:
        """Enumerate and sweep, as far as that has not been done; one solution for each set of parameters."""
        with self._profile_of_failures():
            run = Run(self._sets(self._dag()), owns_dag=self.dag is None)
            with run.closing_on_failure():
                run.solve_all()
                if self.resources.profiler is not None:
                    self._write_profile(self.resources.profiler)
            return run.solutions

    def _dag(self) -> Dag:
        if self.dag is not None:
            dag = self.dag
        else:
            dag = enumerated_beside(self.problem.model, self.storage, self.resources, self.level_fct, self.part)
        dag.world_key = self.problem.world_key
        return dag

    def _sets(self, dag: Dag) -> ParameterSets:
        """The sets of parameters, ready to be solved over a DAG."""
        advice, resources = remedy(self.storage, len(self.problem.params)), self.resources
        watch = Watch("solving", advice, budget=resources.budget, monitor=resources.monitor, profiler=resources.profiler)
        stored = StoredResults(self.problem, dag, self.storage, self.folders)
        return ParameterSets(self.problem, LevelBlocks(dag, BLOCK_STATES), stored, resources, watch)

    @contextlib.contextmanager
    def _profile_of_failures(self) -> Iterator[None]:
        """Write the profile also where work fails: that is when it is wanted most."""
        try:
            yield
        except BaseException:
            if self.resources.profiler is not None and self.resources.profiler.snapshots:
                with contextlib.suppress(OSError):  # the failure itself matters more
                    self._write_profile(self.resources.profiler)
            raise

    def _write_profile(self, profiler: MemoryProfiler) -> None:
        """Write the memory profile beside the results, or to the present folder."""
        place = self.storage.places(len(self.problem.params))[0]
        is_folder = place is not None and place is not True and not is_url(place)
        written = profiler.write(Path(str(place).removeprefix("file://")) if is_folder else Path.cwd())
        if self.resources.progress:
            say(f"memory profile: {', '.join(map(str, written))}")
