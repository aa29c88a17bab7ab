"""The wiring behind :func:`solve` and the documented functions: worlds, DAGs, goals, the sweep, memory and the solution."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from empo_bi.dag.dag import Dag
from empo_bi.dag.level_blocks import LevelBlocks
from empo_bi.dag.python_world import LevelFunction, action_names_of, n_agents_of
from empo_bi.dag.slices import EXACT
from empo_bi.dag.world_fingerprint import key_of, world_key
from empo_bi.errors import DamagedStoreError, StoreMismatchError
from empo_bi.memory.budget import Budget
from empo_bi.memory.monitor import MemoryMonitor
from empo_bi.memory.profiler import MemoryProfiler, profiler_of
from empo_bi.memory.watch import Watch
from empo_bi.problem.callbacks import has_own_durations
from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.problem.params import Params
from empo_bi.problem.profiles import Profiles
from empo_bi.results.priors import checked_prior
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import check_flags, check_function, check_kind
from empo_bi.runtime.blocks import checked_workers
from empo_bi.runtime.byte_sizes import Size
from empo_bi.runtime.digests import digest_of
from empo_bi.runtime.interrupts import Interrupts, kept_interrupts
from empo_bi.runtime.machine import set_malloc_threshold, trim
from empo_bi.runtime.progress import say
from empo_bi.runtime.wording import did_you_mean
from empo_bi.solving.argument_checks import check_dag, check_out, checked_agents, checked_generator
from empo_bi.solving.enumeration import check_world, enumerate_dag, title_of
from empo_bi.store.solution_folders import (
    ARCHIVES,
    SolutionFolders,
    are_same,
    check_archive,
    durations_key,
    has_folder,
    inside,
    write_archive,
)
from empo_bi.store.solved_levels import ARRAYS, SolvedLevels
from empo_bi.sweep.backward_pass import SolveTask, Sweep
from empo_bi.sweep.cluster_blocks import workers_or_batches
from empo_bi.sweep.memory_model import BLOCK_STATES, SweepSizes, shape_of, sizes_for
from empo_bi.sweep.phases import (
    PRECISIONS,
    HumanPhase,
    Precision,
    RobotPhase,
    Setting,
    wants_double,
)

SMALL_BLOCK = 64  # states, when memory is short
AfterLevel = Callable[[int, int, int], None]  # level, its number of states, number of all states


class Pipeline:
    """The wiring: everything that :func:`solve` and the documented functions have in common."""

    def __init__(
        self,
        world: Any,
        params: Sequence[Params],
        *,
        human_agent_indices: Sequence[int] | None = None,
        robot_agent_indices: Sequence[int] | None = None,
        possible_goal_generator: Any = None,
        human_policy_prior: Any = None,
        human_params: Params | None = None,
        phase_2: bool = True,
        out: Any = None,
        folders: Sequence[Any] | None = None,
        arrays: frozenset[str] = frozenset(ARRAYS),
        dag: Dag | None = None,
        level_fct: LevelFunction | None = None,
        precision: str = "float16",
        compression: Any = True,
        memory_limit: Size | None = None,
        workers: int = 1,
        overwrite: bool = False,
        max_states: int | None = None,
        progress: bool = True,
        archive: Any = None,
        only_opens: bool = False,
        monitor: MemoryMonitor | None = None,
        memory_profile: bool | MemoryProfiler = False,
        after_level: AfterLevel | None = None,
    ) -> None:
        """``human_params`` are those of phase 1, where phase 2 has others; ``archive`` is a folder that keeps results.

        ``folders`` has a folder for each set of parameters, in place of ``out``, which then is for the DAG alone; ``arrays``
        names those that are handed over; with ``only_opens``, what is not there is an error.
        """
        if precision not in PRECISIONS:
            expected = " or ".join(PRECISIONS)
            raise ValueError(f"precision={precision!r}; expected {expected}.{did_you_mean(str(precision), PRECISIONS)}")
        check_world(world)
        for place in [out, *(folders or [])]:
            check_out(place)
        if not isinstance(phase_2, bool):
            raise TypeError(f"phase_2={phase_2!r}; give True or False")
        check_function("level_fct", level_fct, "a function of a state")
        check_kind("monitor", monitor, MemoryMonitor)
        check_flags(overwrite=overwrite, progress=progress)
        self.world, self.params = world, list(params)
        humans = getattr(world, "human_agent_indices", ()) if human_agent_indices is None else human_agent_indices
        robots = getattr(world, "robot_agent_indices", ()) if robot_agent_indices is None else robot_agent_indices
        self.humans, self.robots = checked_agents(world, humans, robots if phase_2 else ())
        self.generator = checked_generator(world, possible_goal_generator)
        self._prior, self._human_params = None, human_params
        if human_policy_prior is not None:
            self._prior, self._human_params = checked_prior(human_policy_prior, world, self.humans, self.generator)
        self._phase_2, self._out, self._precision = phase_2, out, precision
        self._outs, self._arrays = [out] * len(self.params) if folders is None else list(folders), arrays
        self._budget, self._workers, self._progress = Budget.of(memory_limit), checked_workers(workers), progress
        self._compression, self._overwrite, self._archive = compression, overwrite, archive
        self._after_level, self._only_opens = after_level, only_opens
        self.solution_folders = SolutionFolders()
        self._told: set[int] = set()
        self._keys: dict[int, str | None] = {}  # of users' things by id: telling one from others may take seconds
        self._profiler = profiler_of(memory_profile, self._budget.limit)
        self._watch = Watch("solving", self._memory_remedy(), budget=self._budget, monitor=monitor, profiler=self._profiler)
        self._budget.check_base("solving")
        key = world_key(world)
        if dag is not None:
            check_dag(dag, world, key)
            dag = dag.of_world(world)  # an equal one may have durations of its own
        if archive is not None:
            check_archive(self._archive_folder)
        self._owns_dag = dag is None
        self._world_key = key
        self.dag = dag if dag is not None else self._enumerated(
            world, level_fct=level_fct, store=self._dag_store(), workers=workers, memory_limit=self._budget.limit,
            precision=EXACT, compression=compression, max_states=max_states, progress=progress, monitor=monitor,
            memory_profile=self._profiler,
        )  # fmt: skip
        self.dag.world_key = key

    def _enumerated(self, world: Any, **options: Any) -> Dag:
        """A DAG that is there is replaced only if it is another one, or damaged, whatever ``overwrite`` says: others may be
        using it."""
        with self._profile_of_failures():
            try:
                return enumerate_dag(world, overwrite=self._overwrite and self._has_damaged_dag(), **options)
            except (StoreMismatchError, DamagedStoreError):
                if not self._overwrite:
                    raise
                return enumerate_dag(world, overwrite=True, **options)

    def _has_damaged_dag(self) -> bool:
        from empo_bi.store.verify import is_damaged

        store = self._dag_store()
        return store is not None and store is not True and is_damaged(store)

    def _dag_store(self) -> Any:
        if self._out is None or self._out is True:
            return self._out
        return inside(self._out, "dag")

    def solutions(self) -> list[Solution]:
        """Sweep, as far as that has not been done, and return one solution for each set of parameters.

        Sets for which float32 is too coarse, as far as parameters tell, have tables of float64 from the beginning; where a
        human's power turns out to be too small for float32, a set is solved again with such tables.
        """
        with self._profile_of_failures():
            return self._all_solutions()

    def _all_solutions(self) -> list[Solution]:
        found: dict[int, Solution] = {}
        users: weakref.WeakSet[Solution] = weakref.WeakSet()
        try:
            blocks = LevelBlocks(self.dag, BLOCK_STATES)
            watch = self._watch.also("goals")
            goals = GoalColumns(blocks, self.humans, self.generator, progress=self._progress, watch=watch)
            settings = [self._setting(goals, precision) for precision in PRECISIONS[self._precision]]
            narrow = settings[0]
            too_steep = [i for i in range(len(self.params)) if self._is_too_steep(i, narrow)] if settings[1:] else []
            self._forget(too_steep, narrow)
            for wider in settings[1:]:  # that a set wants wider tables was perhaps found out earlier
                self._forget(range(len(self.params)), wider)
                begun = [i for i in range(len(self.params)) if self._is_begun(i, wider)]
                found |= self._sweep(begun, blocks, wider, users) if begun else {}
            for setting in settings:
                left = [i for i in range(len(self.params)) if i not in found and not (setting is narrow and i in too_steep)]
                found |= self._sweep(left, blocks, setting, users) if left else {}
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt) and self._has_folder and self._progress:
                say(f"stopped; levels that were finished are kept in {self._outs[0]}, and the same call continues there")
            for solution in found.values():
                solution.results.close()
            if self._owns_dag:
                self.dag.close()
            raise
        return [found[i] for i in range(len(self.params))]

    def _setting(self, goals: GoalColumns, precision: Precision) -> Setting:
        profiles = Profiles.of(n_agents_of(self.world), int(self.world.action_space.n), self.humans, self.robots)
        rates = [rate for params in self._all_params for rate in (params.rate_h, params.rate_r)]
        return Setting(profiles, goals, precision, unit_durations=not has_own_durations(self.world) or not any(rates))

    @property
    def _all_params(self) -> list[Params]:
        return [*self.params, *([] if self._human_params is None else [self._human_params])]

    def _sweep(
        self, chosen: list[int], blocks: LevelBlocks, setting: Setting, users: weakref.WeakSet[Solution]
    ) -> dict[int, Solution]:
        """Solutions of some sets of parameters, by their numbers; those that want wider tables are left out."""
        results: dict[int, SolvedLevels] = {}
        is_kept = self._has_folder or self._archive is not None  # otherwise nobody wants to know what was asked
        contents = {i: self._content(self.params[i], setting) if is_kept else {} for i in chosen}
        left = [i for i in chosen if not self._is_finished(i, contents[i])]
        if left and self._only_opens:
            raise StoreMismatchError(
                f"{self._outs[left[0]]}: what is there was solved for another world, or by another version of empo_bi; "
                "solve it again"
            )
        sizes = self._sizes(left, setting)
        blocks.block_states = sizes.block_states
        try:
            again = {}  # sets that ask the same as one before them, which finds its results in the same folder
            for i in chosen:
                if self._has_folder and any(self._is_same(i, j, contents) for j in results):
                    again[i] = contents[i]
                else:
                    results[i] = self._results(i, contents[i], setting, overwrite=self._overwrite)
            tasks = self._tasks(setting, results)
            for levels in results.values():
                levels.backlog_bytes = sizes.backlog_bytes // len(results)
            self._watch.give_back = partial(_give_back, blocks, list(results.values()))
            self._watch.owners = partial(_owners, self.dag, tasks)
            sweep = Sweep(
                blocks, setting, tasks, self._workers, wants_states=self._asks(setting),
                asks_durations=not setting.unit_durations, waits=sizes.waits, progress=self._progress,
                memory_limit=self._budget.limit, after_block=self._watch.look, after_level=self._tell,
            )  # fmt: skip
            # Functions of users may take long; nobody should have to wait for them.
            keeping = contextlib.nullcontext(Interrupts()) if self._asks(setting) else kept_interrupts()
            with keeping as self._watch.interrupts:
                sweep.run()
            given_up = [task.sink for task in tasks if task.is_given_up]
            self._watch.forget()
            del sweep, tasks  # their tables are not needed any more
            for i in list(results):
                if any(results[i] is sink for sink in given_up):
                    results.pop(i).remove()
            for levels in results.values():
                levels.finish()
            for i, content in again.items():
                if self.solution_folders.is_begun(self._outs[i], content):
                    results[i] = self._results(i, content, setting, overwrite=False)
            if self._profiler is not None:
                self._write_profile(self._profiler)
            if self._archive is not None and results:
                write_archive(self._archive_folder, results[0], contents[0], self._about(setting), self._compression)
        except BaseException:
            for levels in results.values():
                levels.close()
            raise
        return {
            i: Solution(
                self.dag, blocks, setting, self.params[i], levels, human_params=self._human_params, prior=self._prior,
                has_robot=self._phase_2, owns_dag=self._owns_dag, users=users, memory_profile=self._profiler,
            )
            for i, levels in results.items()
        }  # fmt: skip

    @property
    def _has_folder(self) -> bool:
        return self._outs[0] is not None and self._outs[0] is not True

    def _is_same(self, i: int, j: int, contents: dict[int, dict[str, Any]]) -> bool:
        return self._outs[i] == self._outs[j] and are_same(contents[i], contents[j])

    def _is_begun(self, i: int, setting: Setting) -> bool:
        return self._has_folder and self.solution_folders.is_begun(self._outs[i], self._content(self.params[i], setting))

    def _is_finished(self, i: int, content: dict[str, Any]) -> bool:
        return self._has_folder and not self._overwrite and self.solution_folders.is_finished(self._outs[i], content)

    def _is_too_steep(self, i: int, narrow: Setting) -> bool:
        """Whether float32 is not tried for a set; one that an earlier version began is continued as it was begun."""
        return wants_double(self.params[i], self._phase_2) and (self._overwrite or not self._is_begun(i, narrow))

    def _forget(self, chosen: Iterable[int], setting: Setting) -> None:
        """With ``overwrite``, what was solved with other tables goes as well, or later calls would prefer it."""
        for i in chosen if self._overwrite else ():
            content = self._content(self.params[i], setting)
            if self._has_folder and has_folder(self._outs[i], content):
                self._results(i, content, setting, overwrite=True).remove()

    def _results(self, i: int, content: dict[str, Any], setting: Setting, *, overwrite: bool) -> SolvedLevels:
        return self.solution_folders.results_for(self._outs[i], content, self._about(setting), self._compression, overwrite)

    @property
    def _archive_folder(self) -> Path:
        return Path(inside(self._archive, ARCHIVES[self._phase_2]))

    def _human_key(self, params: Params) -> Any:
        """Sets of parameters for which this is the same share phase 1."""
        own = self._human_params or params
        return own.beta_h, own.rate_h, own.optimistic, own.believed_others_policy

    def _tasks(self, setting: Setting, results: dict[int, SolvedLevels]) -> list[SolveTask]:
        humans: dict[Any, HumanPhase] = {}
        tasks: list[SolveTask] = []
        for i, levels in results.items():
            params = self.params[i]
            human = None
            if self._prior is None:
                own = self._human_params or params
                human = humans.setdefault(self._human_key(params), HumanPhase(setting, own, keeps_values=True))
            robot = RobotPhase(setting, params, self._prior) if self._phase_2 else None
            tasks.append(SolveTask(human, robot, levels, self._arrays))
        return tasks

    def _memory_remedy(self) -> str:
        """What would help where memory does not suffice, without what is done already."""
        ways = {
            "keep everything on disk (out=PATH, which can be continued)": self._outs[0] is None,
            "shorten the horizon": True,
            "use fewer goals": True,
            "solve fewer sets of parameters at a time": len(self.params) > 1,
            "use precision='float16'": self._precision != "float16",
        }
        text = ", ".join(way for way, is_left in ways.items() if is_left)
        return f"{text[0].upper()}{text[1:]}, or allow more"

    def _sizes(self, chosen: list[int], setting: Setting) -> SweepSizes:
        """Sizes that keep the sweep within its budget; slices that enumeration left in memory go first."""
        shape = shape_of(
            self.dag, setting, in_memory=self._outs[0] is None, asks=self._asks(setting),
            robot_phases=len(chosen) if self._phase_2 else 0,
            human_phases=len({self._human_key(self.params[i]) for i in chosen}) if self._prior is None else 0,
        )  # fmt: skip
        if self._budget.limit is not None:
            self.dag.levels.give_back()
            set_malloc_threshold()
            trim()
        budget = self._budget if chosen else Budget()  # what is there already is only opened
        sizes = sizes_for(shape, self.dag.levels.sizes, budget, workers_or_batches(self._workers, self.dag.n_profiles))
        self.dag.levels.give_back(sizes.cache_bytes)
        return sizes

    @contextlib.contextmanager
    def _profile_of_failures(self) -> Iterator[None]:
        """Write the profile also where work fails: that is when it is wanted most."""
        try:
            yield
        except BaseException:
            if self._profiler is not None and self._profiler.snapshots:
                with contextlib.suppress(OSError):  # the failure itself matters more
                    self._write_profile(self._profiler)
            raise

    def _write_profile(self, profiler: MemoryProfiler) -> None:
        written = profiler.write(Path(self._outs[0]) if self._has_folder else Path.cwd())
        if self._progress:
            say(f"memory profile: {', '.join(map(str, written))}")

    def _asks(self, setting: Setting) -> bool:
        """Whether functions of users are asked about states during the sweep."""
        has_belief = any(params.believed_others_policy is not None for params in self._all_params)
        return self._prior is not None or has_belief or not setting.unit_durations

    def _tell(self, t: int, n_states: int) -> None:
        self._watch.level(t, n_states)
        if self._after_level is not None and t not in self._told:  # a set that begins again is no news
            self._told.add(t)
            self._after_level(t, n_states, self.dag.n_states)

    def _key_of(self, thing: Any) -> str | None:
        if id(thing) not in self._keys:
            self._keys[id(thing)] = key_of(thing)
        return self._keys[id(thing)]

    # --- what is asked ----------------------------------------------------------------------------------------------------

    def _about(self, setting: Setting) -> dict[str, Any]:
        """What else a store says of itself."""
        return {
            "title": title_of(self.world),
            "horizon": self.dag.horizon,
            "levels": [int(value) for value in self.dag.level_values],
            "goals": setting.goals.names,
            "actions": action_names_of(self.world),
            "robot_profiles": [list(profile) for profile in setting.profiles.robot_profiles],
        }

    def _content(self, params: Params, setting: Setting) -> dict[str, Any]:
        """By name, everything that the arrays depend on."""
        human_params = self._human_params or params
        is_discounted = any([params.rate_h, params.rate_r, human_params.rate_h])
        return {
            "world": None if self._world_key is None else self._world_key[0],
            "horizon": None if self._world_key is None else self._world_key[1],
            "level_sizes": self.dag.level_sizes,
            "humans": self.humans,
            "robots": self.robots,
            "goals": setting.goals.key(),
            "goal_names": digest_of(repr(setting.goals.names)),  # a generator may yield them in another order next time
            "params": params.describe(),
            "human_params": None if self._human_params is None else self._human_params.describe(),
            "belief": self._key_of(human_params.believed_others_policy),
            "durations": durations_key(self.world, are_asked=has_own_durations(self.world) and is_discounted),
            "prior": self._key_of(self._prior),
            "rest": setting.precision.rest,
            "work": setting.precision.work,
            "probabilities": self.dag.precision,
            "phase_2": self._phase_2,
            **({} if self._arrays >= ARRAYS.keys() else {"arrays": sorted(self._arrays)}),
        }


def _give_back(blocks: LevelBlocks, results: Sequence[SolvedLevels]) -> None:
    """Let go of all that can be read again, and go on in small steps."""
    blocks.dag.levels.give_back()
    for levels in results:
        levels.give_back()
    blocks.block_states = max(1, min(blocks.block_states, SMALL_BLOCK))


def _owners(dag: Dag, tasks: Sequence[SolveTask]) -> dict[str, int]:
    """Arrays that a sweep holds, by what they are for.

    The level that was just handed over counts once, though its sink has the same arrays, unless it has written them already.
    """
    phases = dict.fromkeys(phase for task in tasks for phase in task.phases)
    in_work = {phase: sum(array.nbytes for array in phase.arrays().values()) for phase in phases}
    handed_over = [sum(in_work[phase] for phase in task.phases) for task in tasks]
    return {
        "slices at hand": dag.levels.cached_bytes,
        "tables of values": sum(table.nbytes for phase in phases for table in phase.tables().values()),
        "the level in work": sum(in_work.values()),
        "solved levels in memory": sum(
            max(0, task.sink.held_bytes - nbytes) for task, nbytes in zip(tasks, handed_over, strict=True)
        ),
    }
