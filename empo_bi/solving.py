"""Solving a world: :func:`solve`, which wires worlds, DAGs, goals, the sweep and the solution."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

from empo_bi.backward.asked import has_own_durations
from empo_bi.backward.blocks import LevelBlocks
from empo_bi.backward.goals import GoalColumns
from empo_bi.backward.phases import PRECISIONS, HumanPhase, RobotPhase, Setting
from empo_bi.backward.profiles import Profiles
from empo_bi.backward.sweep import Strand, Sweep
from empo_bi.dag.dag import Dag
from empo_bi.dag.identity import digest_of, horizon_of, identity_of, key_of, world_key
from empo_bi.dag.python_world import LevelFunction, n_agents_of
from empo_bi.dag.slices import EXACT
from empo_bi.enumeration import check_world, enumerate_dag
from empo_bi.errors import DamagedStoreError, StoreMismatchError, did_you_mean
from empo_bi.options import Params
from empo_bi.results.levels import MemoryResults, ResultLevels
from empo_bi.results.priors import checked_prior
from empo_bi.results.solution import Solution
from empo_bi.runtime.blocks import checked_workers
from empo_bi.runtime.memory import MemoryMonitor, plan_memory

MEMORY_REMEDY = (
    "Keep everything on disk (out=PATH, which can be continued), shorten the horizon, use fewer goals or sets of parameters "
    "at a time, or precision='float16', or allow more"
)
BLOCK_STATES = 1024  # policies of a block of this size stay in the processor's cache
AfterLevel = Callable[[int, int, int], None]  # level, its number of states, number of all states


class SolveOptions(TypedDict, total=False):
    """Options of :func:`solve`, which describes them."""

    human_agent_indices: Sequence[int] | None
    robot_agent_indices: Sequence[int] | None
    possible_goal_generator: Any
    human_policy_prior: Any
    phase_2: bool
    out: Any
    dag: Dag | None
    level_fct: LevelFunction | None
    precision: str
    compression: Any
    memory_limit: int | float | str | None
    workers: int
    overwrite: bool
    max_states: int | None
    progress: bool


@overload
def solve(world: Any, params: Params | None = None, **options: Unpack[SolveOptions]) -> Solution: ...
@overload
def solve(world: Any, params: Sequence[Params], **options: Unpack[SolveOptions]) -> list[Solution]: ...
def solve(
    world: Any, params: Params | Sequence[Params] | None = None, **options: Unpack[SolveOptions]
) -> Solution | list[Solution]:
    """Solve both phases of a world in one backward pass.

    Parameters
    ----------
    world : GridWorld, or any world written in Python
        As for :func:`enumerate_dag`.
    params : Params, or a list of them
        A list is solved in one pass over the levels, and gives a list of solutions; sets that differ in nothing that matters
        to humans share phase 1.

    Other parameters
    ----------------
    human_agent_indices, robot_agent_indices : lists of agents
        By default those of the world. Everybody else plays action 0.
    possible_goal_generator
        By default that of the world.
    human_policy_prior
        Instead of phase 1: any object with ``profile_distribution(state)`` and ``profile_distribution_with_fixed_goal(state,
        human, goal)``, a function ``f(state, human, goal)``, or a prior that was solved earlier.
    phase_2 : bool
        False solves phase 1 alone.
    out : None, path or True
        Where results go. None: memory. A folder: the DAG goes to ``out/dag``, the solution beside it; a killed run continues
        there, a finished one is opened, and other parameters use the same DAG. True: temporary folders, which go with the
        solution.
    dag : Dag, optional
        A finished DAG of the same world, instead of enumerating one.
    level_fct : function, optional
        As for :func:`enumerate_dag`.
    precision : "float16" or "float64"
        How the humans' values rest. float16: they are worked with in float32, and ``solution.precision`` tells how exact
        they are. float64: everything is exact. Transition probabilities lose nothing either way.
    compression : as for :func:`enumerate_dag`
    memory_limit : as for :func:`enumerate_dag`
    workers : int
        Threads of the sweep, and what :func:`enumerate_dag` makes of it; results do not depend on it.
    overwrite : bool
        Replace what is in ``out``.
    max_states : as for :func:`enumerate_dag`
    progress : bool
        Show bars for anything over a second.

    Examples
    --------
    >>> from empo_bi import Params, load_world, solve
    >>> world = load_world("asymmetric_freeing", max_steps=3)
    >>> solution = solve(world, Params(gamma_h=0.99, gamma_r=0.99, zeta=2, eta=1.1), progress=False)
    >>> round(float(solution.values.V_r[0][0]), 5)
    -71.02157
    >>> print(f"{solution.robot_policy(world.initial_state())[(3,)]:.3f}")  # nobody can be freed in three steps
    0.250
    """
    for name in options.keys() - SolveOptions.__annotations__.keys():
        if name in {field.name for field in fields(Params)}:
            raise TypeError(f"solve: {name} is a parameter of the theory; give it as Params({name}={options[name]!r})")  # type: ignore[literal-required]
        raise TypeError(f"solve: there is no option {name!r}.{did_you_mean(name, SolveOptions.__annotations__)}")
    is_single = params is None or isinstance(params, Params)
    sets: list[Any] = [params or Params()] if is_single else list(params)  # type: ignore[arg-type]
    if not sets or not all(isinstance(given, Params) for given in sets):
        raise TypeError(f"params={params!r}; give empo_bi.Params(...), a list of them, or nothing")
    solutions = Solver(world, sets, **options).solutions()
    return solutions[0] if is_single else solutions


class Solver:
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
        dag: Dag | None = None,
        level_fct: LevelFunction | None = None,
        precision: str = "float16",
        compression: Any = True,
        memory_limit: int | float | str | None = None,
        workers: int = 1,
        overwrite: bool = False,
        max_states: int | None = None,
        progress: bool = True,
        archive: Any = None,
        monitor: MemoryMonitor | None = None,
        after_level: AfterLevel | None = None,
    ) -> None:
        """``human_params`` are those of phase 1, where phase 2 has others; ``archive`` is a folder that keeps results;
        ``monitor`` watches the machine's memory."""
        if precision not in PRECISIONS:
            expected = " or ".join(PRECISIONS)
            raise ValueError(f"precision={precision!r}; expected {expected}.{did_you_mean(str(precision), PRECISIONS)}")
        check_world(world)
        check_out(out)
        self.world, self.params = world, list(params)
        humans = getattr(world, "human_agent_indices", ()) if human_agent_indices is None else human_agent_indices
        robots = getattr(world, "robot_agent_indices", ()) if robot_agent_indices is None else robot_agent_indices
        self.humans, self.robots = checked_agents(world, humans, robots if phase_2 else ())
        self.generator = checked_generator(world, possible_goal_generator)
        self._prior, self._human_params = None, human_params
        if human_policy_prior is not None:
            self._prior, self._human_params = checked_prior(human_policy_prior, world, self.humans, self.generator)
        self._phase_2, self._out, self._precision = phase_2, out, precision
        self._memory, self._workers, self._progress = plan_memory(memory_limit), checked_workers(workers), progress
        self._compression, self._overwrite, self._archive = compression, overwrite, archive
        self._monitor, self._after_level, self._n_done = monitor, after_level, 0
        key = world_key(world)
        if dag is not None:
            check_dag(dag, world, key)
        self._owns_dag = dag is None
        self.dag = dag if dag is not None else enumerate_dag(
            world, level_fct=level_fct, store=self._dag_store(), workers=workers, memory_limit=memory_limit, precision=EXACT,
            compression=compression, overwrite=overwrite, max_states=max_states, progress=progress,
        )  # fmt: skip
        self.dag.world_key = key

    def _dag_store(self) -> Any:
        if self._out is None or self._out is True:
            return self._out
        return Path(self._out) / "dag"

    def solutions(self) -> list[Solution]:
        """Sweep, as far as that has not been done, and return one solution for each set of parameters."""
        results: list[ResultLevels] = []
        try:
            blocks = LevelBlocks(self.dag, BLOCK_STATES)
            goals = GoalColumns(blocks, self.humans, self.generator, progress=self._progress)
            profiles = Profiles.of(n_agents_of(self.world), int(self.world.action_space.n), self.humans, self.robots)
            rates = [rate for params in self._all_params() for rate in (params.rate_h, params.rate_r)]
            unit = not has_own_durations(self.world) or not any(rates)
            setting = Setting(profiles, goals, PRECISIONS[self._precision], unit)
            results += (self._results(params, goals, profiles) for params in self.params)
            asks = self._prior is not None or any(p.believed_others_policy is not None for p in self._all_params())
            sweep = Sweep(
                blocks, setting, self._strands(setting, results), self._workers, wants_states=asks, asks_durations=not unit,
                progress=self._progress, after_block=self._watch, after_level=self._tell,
            )  # fmt: skip
            sweep.run()
            for levels in results:
                levels.finish()
        except BaseException:
            for levels in results:
                levels.close()
            if self._owns_dag:
                self.dag.close()
            raise
        return [
            Solution(
                self.dag, blocks, setting, params, levels, human_params=self._human_params, prior=self._prior,
                has_robot=self._phase_2, owns_dag=self._owns_dag and len(self.params) == 1,
            )
            for params, levels in zip(self.params, results, strict=True)
        ]  # fmt: skip

    def _all_params(self) -> list[Params]:
        return [*self.params, *([] if self._human_params is None else [self._human_params])]

    def _strands(self, setting: Setting, results: Sequence[ResultLevels]) -> list[Strand]:
        humans: dict[Any, HumanPhase] = {}
        strands = []
        for params, levels in zip(self.params, results, strict=True):
            human = None
            if self._prior is None:
                own = self._human_params or params
                key = (own.beta_h, own.rate_h, own.optimistic, own.believed_others_policy)
                human = humans.setdefault(key, HumanPhase(setting, own, keeps_values=True))
            robot = RobotPhase(setting, params, self._prior) if self._phase_2 else None
            strands.append(Strand(human, robot, levels))
        return strands

    def _watch(self, n_states: int) -> None:
        """Called with the number of states of each block that is done."""
        self._n_done += n_states
        self._memory.check("solving", MEMORY_REMEDY)
        if self._monitor is not None:
            self._monitor.check(self._n_done)

    def _tell(self, t: int, n_states: int) -> None:
        if self._after_level is not None:
            self._after_level(t, n_states, self.dag.n_states)

    # --- where results go ---------------------------------------------------------------------------------------------

    def _results(self, params: Params, goals: GoalColumns, profiles: Profiles) -> ResultLevels:
        if self._out is None and self._archive is None:
            return MemoryResults(self.dag.horizon)
        from empo_bi.store.encoded import Compression
        from empo_bi.store.places import place_of
        from empo_bi.store.zarr_results import FORMAT, VERSION, ZarrResults

        content = self._content(params, goals)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "title": str(self.world),
            "horizon": self.dag.horizon,
            "content": content,
            "goals": [[repr(goal) for goal in known] for known in goals.goals],
            "robot_profiles": [list(profile) for profile in profiles.robot_profiles],
        }
        name = f"solution-{digest_of(json.dumps(content, sort_keys=True))}"
        place = place_of(True if self._out is True else Path(self._out) / name) if self._archive is None else None
        if place is None:
            place = place_of(Path(self._archive) / ("robot_values" if self._phase_2 else "human_values"))
        options: Any = {"compression": Compression.of(self._compression), "overwrite": self._overwrite}
        try:
            return ZarrResults.open_or_create(place, manifest, **options)
        except (StoreMismatchError, DamagedStoreError):
            if self._archive is None:
                raise
            return ZarrResults.open_or_create(place, manifest, **{**options, "overwrite": True})

    def _content(self, params: Params, goals: GoalColumns) -> dict[str, Any]:
        """By name, everything that the arrays depend on."""
        return {
            "world": identity_of(self.world),
            "horizon": horizon_of(self.world),
            "level_sizes": self.dag.level_sizes,
            "humans": self.humans,
            "robots": self.robots,
            "goals": goals.key(),
            "params": params.describe(),
            "human_params": None if self._human_params is None else self._human_params.describe(),
            "belief": key_of(params.believed_others_policy),
            "prior": key_of(self._prior),
            "precision": self._precision,
            "phase_2": self._phase_2,
        }


def checked_agents(world: Any, humans: Sequence[int], robots: Sequence[int]) -> tuple[list[int], list[int]]:
    """Lists of agents, each known, none twice."""
    n = n_agents_of(world)
    for role, agents in (("human", humans), ("robot", robots)):
        for agent in agents:
            if isinstance(agent, bool) or not hasattr(agent, "__index__"):
                raise TypeError(f"{role}_agent_indices={list(agents)!r}: agents are whole numbers, not {agent!r}")
            if not 0 <= agent < n:
                raise ValueError(
                    f"{role}_agent_indices={list(agents)!r}: there is no agent {agent}; this world has 0 to {n - 1}"
                )
        twice = sorted({agent for agent in agents if list(agents).count(agent) > 1})
        if twice:
            raise ValueError(f"{role}_agent_indices={list(agents)!r}: agent {twice[0]} is named twice")
    both = sorted(set(humans) & set(robots))
    if both:
        raise ValueError(f"agent {both[0]} is both human and robot; give each agent one role")
    if not len(humans):
        raise ValueError("there are no humans: give human_agent_indices, or a world that has some")
    return [int(agent) for agent in humans], [int(agent) for agent in robots]


def check_out(out: Any) -> None:
    """Results go to a folder, since they are written level by level beside the DAG."""
    if out is None or out is True:
        return
    if not isinstance(out, str | os.PathLike) or "://" in str(out) or Path(out).suffix.lower() == ".zip":
        raise ValueError(f"out={out!r}; results go to a folder: give its path, True for a temporary one, or None for memory")


def check_dag(dag: Dag, world: Any, key: tuple[str, int | None] | None) -> None:
    """Whether a DAG can be used for a world."""
    if not dag.is_finished or not dag.is_usable:
        raise ValueError(f"dag={dag!r} is {'closed' if dag.is_finished else 'unfinished'}; enumerate it again")
    theirs = dag.world_key if dag.world_key is not None else world_key(dag.world)
    if dag.world is not world and (key is None or key != theirs):
        raise ValueError(f"dag={dag!r} is that of another world, or of another horizon; enumerate one for this world")


def checked_generator(world: Any, generator: Any) -> Any:
    found = getattr(world, "possible_goal_generator", None) if generator is None else generator
    if found is None:
        raise ValueError(
            "there are no goals: give possible_goal_generator, or a world that has one (in a world file, possible_goals)"
        )
    if not callable(getattr(found, "generate", None)):
        raise TypeError(f"possible_goal_generator={found!r} has no method generate(state, human_agent_index)")
    return found
