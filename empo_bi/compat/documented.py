"""The documented functions: :func:`compute_human_policy_prior` and :func:`compute_robot_policy`, by the one pipeline."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from empo_bi.compat.archives import archive_as_documented, check_archive_files
from empo_bi.compat.attainment_cache import AttainmentCache
from empo_bi.compat.dag_at_hand import dag_at_hand, snapshot_before
from empo_bi.compat.switches import Folder, ProgressCallback, Switches, in_our_words
from empo_bi.dag.dag import Dag
from empo_bi.dag.python_objects import as_python_objects
from empo_bi.dag.python_world import LevelFunction
from empo_bi.errors import StoreMismatchError
from empo_bi.problem.params import Belief, Params, TerminalValue
from empo_bi.problem.protocols import GoalGenerator
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import check_flags, suggests_names
from empo_bi.runtime.byte_sizes import Size
from empo_bi.runtime.compilation import quiet_unless_shown
from empo_bi.solving.argument_checks import checked_generator
from empo_bi.solving.enumeration import enumerate_dag
from empo_bi.solving.options import Roles
from empo_bi.solving.pipeline import Pipeline
from empo_bi.world.as_model import as_model
from empo_bi.world.model import World
from empo_bi.world.translation import translated

# Where parameters of the other phase belong.
_OF_PHASE_1 = dict.fromkeys(
    ("beta_h", "optimistic", "believed_others_policy"),
    "it is a parameter of phase 1: compute_human_policy_prior(...), whose result is human_policy_prior",
)
_OF_PHASE_2 = dict.fromkeys(
    ("beta_r", "gamma_r", "rho_r", "zeta", "xi", "eta", "terminal_Vr", "robot_agent_indices", "human_policy_prior"),
    "it is a parameter of phase 2: compute_robot_policy(...)",
)


@suggests_names(elsewhere=_OF_PHASE_2)
@quiet_unless_shown
def compute_human_policy_prior(
    world_model: World,
    human_agent_indices: Sequence[int],
    possible_goal_generator: GoalGenerator | None = None,
    believed_others_policy: Belief | None = None,
    *,
    beta_h: float = 10.0,
    gamma_h: float | None = None,
    rho_h: float | None = None,
    parallel: bool = False,
    num_workers: int | None = None,
    level_fct: LevelFunction | None = None,
    return_Vh: bool = False,
    return_attainment_cache: bool = False,
    progress_callback: ProgressCallback | None = None,
    quiet: bool = False,
    min_free_memory_fraction: float = 0.1,
    memory_check_interval: int = 100,
    memory_pause_duration: float = 60.0,
    memory_profile: bool = False,
    use_disk_slicing: bool = False,
    disk_cache_dir: Folder = None,
    use_float16: bool = True,
    use_compression: bool = False,
    archive_dir: Folder = None,
    use_attainment_cache: bool = True,
    optimistic: bool = False,
    memory_limit: Size | None = None,
) -> Any:
    r"""Phase 1: how a goal-directed human would act, for each human, state and goal.

    .. math::
        q(s, a, g) = \sum_o b(o) \min_r \sum_{s'} T(s' \mid s, (a, o, r)) \,
            [1 \text{ if } g \text{ is attained in } s', \text{ else } e^{-\rho_h D} V_h(s', g)]

    with :math:`\pi(a \mid s, g) \propto e^{\beta_h q(s, a, g)}` and :math:`V_h = \sum_a \pi(a) q(a)`. In a state where the
    goal is attained already, the policy is action 0 and the value 0.

    Parameters
    ----------
    world_model : GridWorld, or any world written in Python
    human_agent_indices : the humans to plan for; every other agent counts as a robot
    possible_goal_generator : what has ``generate(state, agent_index)``; by default the world's own
    believed_others_policy : ``f(state, agent_index, action) -> [(probability, actions of all agents)]``
        What a human believes of the other humans; by default all their actions are equally likely.
    beta_h, gamma_h, rho_h, optimistic : as in :class:`Params`
    parallel, num_workers : several workers, by default one per core; the numbers are the same
    level_fct : ``f(state) -> int``, for worlds written in Python; without it levels are derived
    return_Vh, return_attainment_cache : also return ``Vh[state][human][goal]``, and the cache
    progress_callback : ``f(done, total)``, called once per state
    quiet : no bars, no messages
    min_free_memory_fraction, memory_check_interval, memory_pause_duration : as in :class:`MemoryMonitor`
    memory_profile : tell, level by level, how much memory is held, and write a report (:class:`MemoryProfiler`)
        to the ``disk_cache_dir``, or to the present folder
    use_disk_slicing : keep transitions and values on disk, level by level
    disk_cache_dir : where; what is there is kept and used again. By default a temporary folder that goes with the result
    use_float16 : values rest in float16 and are worked with in float32; False makes everything float64
    use_compression : compress what goes to disk
    archive_dir : keep the values there, in a zarr store as docs/format.md describes it; an older one is replaced
    use_attainment_cache : leave the attainment cache on the world, as ``_attainment_cache``
    memory_limit : ``"2GB"``, bytes, or a fraction of the available memory

    Returns
    -------
    prior, or ``(prior, Vh)``, ``(prior, cache)``, ``(prior, Vh, cache)``
        A :class:`TabularHumanPolicyPrior`. Tables are views of arrays, made when they are asked for.

    Examples
    --------
    >>> from empo_bi import load_world
    >>> world = load_world("basics/first_steps", max_steps=3)
    >>> prior = compute_human_policy_prior(world, world.human_agent_indices, quiet=True)
    >>> float(prior(world.initial_state(), 0).sum().round(6))
    1.0
    """
    given, world_model = world_model, translated(world_model, progress=not quiet)
    check_flags(
        return_Vh=return_Vh, return_attainment_cache=return_attainment_cache, use_attainment_cache=use_attainment_cache
    )
    params = Params(beta_h=beta_h, gamma_h=gamma_h, rho_h=rho_h, optimistic=optimistic,
                    believed_others_policy=believed_others_policy)  # fmt: skip
    switches = Switches(
        world_model=world_model, parallel=parallel, num_workers=num_workers, level_fct=level_fct,
        progress_callback=progress_callback, quiet=quiet, min_free_memory_fraction=min_free_memory_fraction,
        memory_check_interval=memory_check_interval, memory_pause_duration=memory_pause_duration,
        memory_profile=memory_profile, use_disk_slicing=use_disk_slicing, disk_cache_dir=disk_cache_dir,
        use_float16=use_float16, use_compression=use_compression, archive_dir=archive_dir, memory_limit=memory_limit,
    )  # fmt: skip
    switches.check()
    roles = Roles(humans=human_agent_indices, robots=(), goals=possible_goal_generator, phase_2=False)
    solution = _solved(given, switches, params, roles, [getattr(given, "_attainment_cache", None)])
    solution.prior.world_model = given  # not what it was translated to
    cache = _attainment_cache(given, solution)
    _leave_on(given, cache if use_attainment_cache else None, solution.dag if use_disk_slicing else None)
    return _one_or_all(solution.prior, *([solution.Vh] if return_Vh else []), *([cache] if return_attainment_cache else []))


@suggests_names(elsewhere=_OF_PHASE_1)
@quiet_unless_shown
def compute_robot_policy(
    world_model: World,
    human_agent_indices: Sequence[int],
    robot_agent_indices: Sequence[int],
    possible_goal_generator: GoalGenerator | None = None,
    human_policy_prior: object = None,
    *,
    beta_r: float = 10.0,
    gamma_h: float | None = None,
    gamma_r: float | None = None,
    rho_h: float | None = None,
    rho_r: float | None = None,
    zeta: float = 1.0,
    xi: float = 1.0,
    eta: float = 1.0,
    terminal_Vr: float | TerminalValue = -1e-10,
    parallel: bool = False,
    num_workers: int | None = None,
    level_fct: LevelFunction | None = None,
    return_values: bool = False,
    return_markov_chain: bool = False,
    progress_callback: ProgressCallback | None = None,
    quiet: bool = False,
    min_free_memory_fraction: float = 0.1,
    memory_check_interval: int = 100,
    memory_pause_duration: float = 60.0,
    memory_profile: bool = False,
    sliced_cache: AttainmentCache | None = None,
    archive_dir: Folder = None,
    use_disk_slicing: bool = False,
    disk_cache_dir: Folder = None,
    use_compression: bool = False,
    use_float16: bool = True,
    memory_limit: Size | None = None,
) -> Any:
    r"""Phase 2: a robot policy that increases the humans' power.

    .. math::
        \pi_r(r \mid s) \propto (-Q_r(s, r))^{-\beta_r}, \quad
        X_h(s) = \sum_g w_h(g) V_h^e(s, g)^\zeta, \quad
        U_r(s) = -\Big(\tfrac{1}{|H|} \sum_h X_h(s)^{-\xi}\Big)^\eta

    ``docs/solving.md`` has all definitions.

    Parameters
    ----------
    world_model, human_agent_indices, robot_agent_indices : agents in neither list play action 0
    possible_goal_generator : by default the world's own
    human_policy_prior : optional
        What :func:`compute_human_policy_prior` returned, or any object with ``profile_distribution(state)`` and
        ``profile_distribution_with_fixed_goal(state, agent_index, goal)``, or a function ``f(state, agent_index, goal)``
        that returns action probabilities (for the goal None, over all goals). By default phase 1 is run with its own
        defaults.
    beta_r, gamma_h, gamma_r, rho_h, rho_r, zeta, xi, eta, terminal_Vr : as in :class:`Params`
    return_values : also return ``Vr[state]`` and ``Vhe[state][human][goal]``
    return_markov_chain : also return the chain that both policies make, a :class:`MarkovChain`
    sliced_cache : what phase 1 returned as its attainment cache; its DAG is used again
    others : as in :func:`compute_human_policy_prior`

    Returns
    -------
    policy, then ``Vr, Vhe`` and ``chain`` if asked for
        A :class:`TabularRobotPolicy`; tables are views of arrays, made when they are asked for.

    Examples
    --------
    >>> from empo_bi import load_world
    >>> world = load_world("asymmetric_freeing", max_steps=3)
    >>> policy, Vr, Vhe = compute_robot_policy(
    ...     world, world.human_agent_indices, world.robot_agent_indices, return_values=True, quiet=True)
    >>> Vr[world.initial_state()] < 0
    True
    """
    given, world_model = world_model, translated(world_model, progress=not quiet)
    check_flags(return_values=return_values, return_markov_chain=return_markov_chain)
    params = Params(beta_r=beta_r, gamma_h=gamma_h, gamma_r=gamma_r, rho_h=rho_h, rho_r=rho_r, zeta=zeta, xi=xi, eta=eta,
                    terminal_Vr=terminal_Vr)  # fmt: skip
    switches = Switches(
        world_model=world_model, parallel=parallel, num_workers=num_workers, level_fct=level_fct,
        progress_callback=progress_callback, quiet=quiet, min_free_memory_fraction=min_free_memory_fraction,
        memory_check_interval=memory_check_interval, memory_pause_duration=memory_pause_duration,
        memory_profile=memory_profile, use_disk_slicing=use_disk_slicing, disk_cache_dir=disk_cache_dir,
        use_float16=use_float16, use_compression=use_compression, archive_dir=archive_dir, memory_limit=memory_limit,
    )  # fmt: skip
    switches.check()
    generator = checked_generator(as_model(world_model), possible_goal_generator)
    if sliced_cache is not None and not isinstance(sliced_cache, AttainmentCache):
        raise TypeError(
            f"sliced_cache={sliced_cache!r}; give what compute_human_policy_prior returned as its cache, or None"
        )
    roles = Roles(
        humans=human_agent_indices, robots=robot_agent_indices, goals=generator, prior=human_policy_prior,
        human_params=Params() if human_policy_prior is None else None,
    )  # fmt: skip
    holders = [getattr(human_policy_prior, "solution", None), sliced_cache, getattr(given, "_attainment_cache", None)]
    solution = _solved(given, switches, params, roles, holders)
    solution.robot_policy.world_model = given  # not what it was translated to
    if solution.model.packed is None and _is_outdated(getattr(given, "_attainment_cache", None), solution.dag):
        _leave_on(given, AttainmentCache(solution.blocks, solution.goal_columns), None)  # for the next call
    return _one_or_all(
        solution.robot_policy,
        *([solution.Vr, solution.Vhe] if return_values else []),
        *([solution.markov_chain] if return_markov_chain else []),
    )


def _one_or_all(*results: Any) -> Any:
    return results[0] if len(results) == 1 else results


def _reset(world: World) -> None:
    """As documented, where the world can be reset."""
    reset = getattr(world, "reset", None)
    if callable(reset):
        reset()


def _solved(given: World, switches: Switches, params: Params, roles: Roles, holders: Iterable[object]) -> Solution:
    """The solution, over a DAG that one of the holders has, or a new one."""
    if switches.archive_dir is not None:
        check_archive_files(switches.archive_dir)
    _reset(given)  # first: what it was asked last may be part of its attributes
    switches.tell_of_levels()
    dag = dag_at_hand(switches, holders)
    snapshot = snapshot_before(switches.world_model, dag)
    solution = _in_some_folder(switches, params, roles, dag)
    if snapshot is not None:
        _reset(given)
        snapshot.learn(switches.world_model)
        solution.dag.snapshot = snapshot
    if switches.archive_dir is not None:
        archive_as_documented(solution, switches.archive_dir, phase_2=roles.phase_2)
    return solution


def _in_some_folder(switches: Switches, params: Params, roles: Roles, dag: Dag | None) -> Solution:
    try:
        return _solution(switches, params, roles, dag)
    except StoreMismatchError:
        if not switches.has_cache:
            raise
        # A cache is no place that a user looks after: what stands in the way there is left alone.
        return _solution(switches, params, roles, dag, elsewhere=True)


def _solution(switches: Switches, params: Params, roles: Roles, dag: Dag | None, *, elsewhere: bool = False) -> Solution:
    with in_our_words():
        pipeline = Pipeline.of(
            switches.world_model, [params], roles, switches.storage(elsewhere=elsewhere), switches.resources(), dag=dag,
            level_fct=switches.level_fct, known_key=None if dag is None else dag.world_key,
        )  # fmt: skip
        return pipeline.solutions()[0]


def _attainment_cache(world: World, solution: Solution) -> AttainmentCache:
    """The cache that an earlier call left on the world, filled again, or a new one."""
    cache = getattr(world, "_attainment_cache", None)
    if isinstance(cache, AttainmentCache):
        cache.fill(solution.blocks, solution.goal_columns)
        return cache
    return AttainmentCache(solution.blocks, solution.goal_columns)


def _is_outdated(cache: object, dag: Dag) -> bool:
    """Whether the next call could not use the DAG of a cache, since there is none or the world has changed since."""
    return cache is None or (isinstance(cache, AttainmentCache) and cache.dag.levels is not dag.levels)


def _leave_on(world: Any, cache: AttainmentCache | None, dag: Dag | None) -> None:
    """Leave the cache on the world, as documented, and a DAG that is on disk in place of one in memory."""
    with contextlib.suppress(AttributeError):  # a world that takes no attributes
        world._attainment_cache = cache
        if dag is not None:
            world._disk_dag = dag
            if callable(getattr(world, "clear_dag_cache", None)):
                world.clear_dag_cache()


def dag_of_python_objects(world: World, *, progress: bool) -> tuple[Any, ...]:
    """All reachable states and transitions as plain Python objects; behind ``world.get_dag()``."""
    return as_python_objects(enumerate_dag(world, precision="float64", progress=progress))
