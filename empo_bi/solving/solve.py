"""Solving a world: :func:`solve` and its options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict, Unpack, overload

from empo_bi.dag.dag import Dag
from empo_bi.dag.python_world import LevelFunction
from empo_bi.events import Event
from empo_bi.memory.monitor import MemoryMonitor
from empo_bi.memory.profiler import MemoryProfiler
from empo_bi.problem.params import BELONGS_ELSEWHERE, Params
from empo_bi.problem.protocols import GoalGenerator
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.byte_sizes import Size
from empo_bi.runtime.compilation import quiet_unless_shown
from empo_bi.solving.argument_checks import check_sequence_of
from empo_bi.solving.mistakes import warn_of_mistakes
from empo_bi.solving.options import Roles, Storage, resources_from
from empo_bi.solving.pipeline import Pipeline
from empo_bi.world.model import World
from empo_bi.world.translation import translated


class SolveOptions(TypedDict, total=False):
    """Options of :func:`solve`, which describes them."""

    human_agent_indices: Sequence[int] | None
    robot_agent_indices: Sequence[int] | None
    possible_goal_generator: GoalGenerator | None
    human_policy_prior: object
    phase_2: bool
    out: object
    start: object
    stop: Event | None
    dag: Dag | None
    level_fct: LevelFunction | None
    precision: str
    compression: bool | int | str
    memory_limit: Size | None
    workers: int
    overwrite: bool
    max_states: int | None
    progress: bool
    monitor: MemoryMonitor | None
    memory_profile: bool | MemoryProfiler


@overload
def solve(world: World, params: Params | None = None, **options: Unpack[SolveOptions]) -> Solution: ...
@overload
def solve(world: World, params: Sequence[Params], **options: Unpack[SolveOptions]) -> list[Solution]: ...
@suggests_names(also=SolveOptions.__annotations__, elsewhere=BELONGS_ELSEWHERE)
@quiet_unless_shown
def solve(
    world: World, params: Params | Sequence[Params] | None = None, **options: Unpack[SolveOptions]
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
    possible_goal_generator : object with generate(state, human), optional
        By default that of the world.
    human_policy_prior : prior or function, optional
        Instead of phase 1: any object with ``profile_distribution(state)`` and ``profile_distribution_with_fixed_goal(state,
        human, goal)``, a function ``f(state, human, goal)``, or a prior that was solved earlier.
    phase_2 : bool
        False solves phase 1 alone.
    out : None, path, URL or True
        Where results go. None: memory. A folder (or a URL, with the extra ``remote``): the DAG goes to ``out/dag``, the
        solution beside it; a killed run continues there, a finished one is opened, and other parameters use the same DAG.
        True: temporary folders, which go with the solution.
    start, stop : as for :func:`enumerate_dag`
        Solve a sub-problem: from some states on, and up to where an event holds. ``Params(terminal_Vr=...)`` may then be
        a function that says what each state where it stops is worth; see docs/solving.md.
    dag : Dag, optional
        A finished DAG of the same world, instead of enumerating one. For a sub-problem it may be one of more than that: it
        has to have the states to start with, and what else is in it is solved as well.
    level_fct : function, optional
        As for :func:`enumerate_dag`.
    precision : "float16" or "float64"
        How the humans' values rest. float16: they are worked with in float32, or in float64 where parameters make much of
        small errors. float64: everything is float64. ``solution.precision`` says how exact numbers are. Transition
        probabilities lose nothing either way.
    compression : as for :func:`enumerate_dag`
    memory_limit : int, float or str, optional
        ``"2GB"``, a number of bytes, or a fraction of the memory that is available, for the whole process. Sizes of blocks
        and caches follow from it. Where the sweep cannot do with it, an error says before it begins what is needed for
        what, and what would help.
    workers : int
        Threads of the sweep, and what :func:`enumerate_dag` makes of it; results do not depend on it.
    overwrite : bool
        Replace what is in ``out``.
    max_states : as for :func:`enumerate_dag`
    progress : bool
        Show bars, or lines where stderr is not a terminal, for anything over a second or two.
    monitor : MemoryMonitor, optional
        Gives back caches, waits or stops when the machine's memory is short.
    memory_profile : bool or MemoryProfiler
        Take snapshots of what is held, and write a report to ``out``, or to the present folder if that is not a folder.

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
    is_single = params is None or isinstance(params, Params)
    given: Any = Params() if params is None else params
    sets = [given] if is_single or not hasattr(given, "__iter__") else list(given)
    check_sequence_of(sets, Params)
    solutions = pipeline_for(world, sets, options).solutions()
    if options.get("start") is None and options.get("stop") is None:
        warn_of_mistakes(solutions, robots_are_given=options.get("robot_agent_indices") is not None)
    return solutions[0] if is_single else solutions


def pipeline_for(world: World, sets: Sequence[Params], options: SolveOptions) -> Pipeline:
    """What :func:`solve` runs: its options, translated and checked."""
    roles = Roles(
        humans=options.get("human_agent_indices"),
        robots=options.get("robot_agent_indices"),
        goals=options.get("possible_goal_generator"),
        prior=options.get("human_policy_prior"),
        phase_2=options.get("phase_2", True),
    )
    storage = Storage(
        where=options.get("out"),
        precision=options.get("precision", "float16"),
        compression=options.get("compression", True),
        overwrite=options.get("overwrite", False),
    )
    resources = resources_from(
        memory_limit=options.get("memory_limit"),
        workers=options.get("workers", 1),
        max_states=options.get("max_states"),
        monitor=options.get("monitor"),
        memory_profile=options.get("memory_profile", False),
        progress=options.get("progress", True),
    )
    dag, level_fct = options.get("dag"), options.get("level_fct")
    start, stop = options.get("start"), options.get("stop")
    found = translated(world, progress=resources.progress)
    return Pipeline.of(found, sets, roles, storage, resources, dag=dag, level_fct=level_fct, start=start, stop=stop)
