"""Making and opening levelled DAGs: :func:`enumerate_dag` and :func:`open_dag`."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from empo_bi.dag.attainment import FixedGoals, are_goals_of, fixed_goals_of
from empo_bi.dag.dag import Dag, GoalTable
from empo_bi.dag.derived_explorer import DerivedExplorer
from empo_bi.dag.explorer import Explorer
from empo_bi.dag.level_explorer import LevelExplorer
from empo_bi.dag.levels import Levels, MemoryLevels
from empo_bi.dag.packed_explorer import BLOCK_BYTES, PackedExplorer
from empo_bi.dag.python_world import LevelFunction
from empo_bi.dag.shared_explorer import SharedExplorer
from empo_bi.dag.slices import PRECISIONS
from empo_bi.dag.spill import SpillLimit
from empo_bi.dag.spot_check import check_some_states
from empo_bi.dag.sub_problem import WHOLE, SubProblem
from empo_bi.dag.world_fingerprint import horizon_of, identity_of
from empo_bi.errors import StoreMismatchError, StoreNotFoundError
from empo_bi.events import Event
from empo_bi.memory.budget import CACHE_BYTES, SLICE_BACKLOG, SPILL_BYTES, Budget
from empo_bi.memory.monitor import MemoryMonitor
from empo_bi.memory.profiler import MemoryProfiler
from empo_bi.memory.watch import Watch
from empo_bi.runtime.arguments import check_flags, check_function, suggests_names
from empo_bi.runtime.blocks import active_cluster
from empo_bi.runtime.byte_sizes import Size
from empo_bi.runtime.compilation import quiet_unless_shown
from empo_bi.runtime.interrupts import Interrupts, kept_interrupts
from empo_bi.runtime.printable import one_line
from empo_bi.runtime.progress import LevelBar
from empo_bi.runtime.wording import did_you_mean
from empo_bi.solving.options import Resources, Storage, resources_from
from empo_bi.solving.sub_problems import stored_part, sub_problem_of
from empo_bi.store.format_names import FORMAT, VERSION, WRITTEN_BY
from empo_bi.types import Json
from empo_bi.world.array_world import NumberedStates
from empo_bi.world.as_model import UNKNOWN, Model, as_model
from empo_bi.world.model import World
from empo_bi.world.translation import translated

if TYPE_CHECKING:
    from empo_bi.store.dag_store import DagStore
    from empo_bi.store.location import Place

_REMEDY = "shorten the horizon, or allow more"
_REMEDY_IN_MEMORY = (
    f"Keep the levels on disk (store=PATH or True, in solve out=PATH; a given place can be continued), {_REMEDY}"
)


@suggests_names()
@quiet_unless_shown
def enumerate_dag(
    world: World,
    *,
    start: object = None,
    stop: Event | None = None,
    level_fct: LevelFunction | None = None,
    store: object = None,
    workers: int = 1,
    memory_limit: Size | None = None,
    precision: str = "float16",
    compression: bool | int | str = True,
    overwrite: bool = False,
    max_states: int | None = None,
    progress: bool = True,
    monitor: MemoryMonitor | None = None,
    memory_profile: MemoryProfiler | None = None,
) -> Dag:
    """Find every state that can be reached, with all transitions.

    Parameters
    ----------
    world : GridWorld, or any world written in Python
        A Python world has ``agents`` (or ``n_agents``), ``action_space.n``, ``initial_state()`` (or ``reset()`` and
        ``get_state()``) and ``transition_probabilities(state, actions)``. If it declares ``time_homogeneous = True`` (states
        are tuples that begin with the step), bodies are shared between levels as in gridworlds.
    start : state, or list of states, optional
        Where to begin, instead of the world's initial state: what can be reached from any of them. They may be at different
        steps. What is *initial* elsewhere (chances, rollouts) is the first of those on the lowest level.
    stop : event, optional
        States where it holds are terminal, whatever the world says: a goal, one of ``empo_bi.events``, or a function of a
        state.
    level_fct : function, optional
        ``f(state) -> int``, for Python worlds: every successor is on a higher level than its state; gaps and negative levels
        are fine. Without it, a state's level is the length of the longest path that leads to it. In gridworlds and
        time-homogeneous worlds the level is the step, and this is not asked.
    store : None, True, path, URL or zarr store
        Where the levels go. None: memory. A path: a folder, or a zip file if it ends in ``.zip``; the result is kept, an
        interrupted run continues there, and a finished one of the same world is used again. True: a temporary folder,
        which goes with the DAG. Also a URL (extra ``remote``) or any zarr v3 store object.
    workers : int
        Blocks of states expanded at a time, by threads (gridworlds) or processes (Python worlds); -1 for one per core. The
        result does not depend on it.
    memory_limit : int, float or str, optional
        ``"2GB"``, a number of bytes, or a fraction of the memory that is available. Sizes of blocks and caches follow, and
        where that is not enough, an error says so before the memory is taken.
    precision : "float16", "float32", "float64" or "exact"
        How probabilities rest. Rows are renormalised when read; in float16 they are then exact to a relative 0.1%, and
        exact where they are halves, quarters and so on or all the same. Where some are too small for the type, a level
        takes a wider one. With "exact", each level takes the narrowest type in which no probability changes.
    compression : bool, int or str
        For stores on disk: True, False, a level from 0 (off) to 9, or a Blosc compressor such as ``"lz4"``.
    overwrite : bool
        Replace what a store has.
    max_states : int, optional
        Stop with an error when more states (of a gridworld: bodies, states but for the step) than this are found. For Python
        worlds the default is ten million, in case they never end.
    progress : bool
        Show a bar, or lines where stderr is not a terminal, for anything over a second or two.
    monitor : MemoryMonitor, optional
        Gives back caches, waits or stops when the machine's memory is short.
    memory_profile : MemoryProfiler, optional
        Takes snapshots of what is held.

    Examples
    --------
    >>> from empo_bi import load_world
    >>> dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=8), progress=False)
    >>> dag.n_states, dag.n_bodies, dag.level_sizes[:4]
    (3741, 1144, [1, 36, 128, 224])
    """
    if memory_profile is not None and not isinstance(memory_profile, MemoryProfiler):
        raise TypeError(f"memory_profile={memory_profile!r}; give a MemoryProfiler, which collects the snapshots, or None")
    storage = Storage(where=store, precision=precision, compression=compression, overwrite=overwrite)
    resources = resources_from(
        memory_limit=memory_limit, workers=workers, max_states=max_states, monitor=monitor, memory_profile=memory_profile,
        progress=progress,
    )  # fmt: skip
    model = as_model(translated(world, progress=progress))
    return enumerated(model, storage, resources, level_fct, sub_problem_of(model, start, stop))


def enumerated(
    model: Model, storage: Storage, resources: Resources, level_fct: LevelFunction | None = None, part: SubProblem = WHOLE
) -> Dag:
    """The DAG of a world, or of a part of it, enumerated as far as it is not there; behind :func:`enumerate_dag`."""
    _check_arguments(storage, resources.max_states)
    check_function("level_fct", level_fct, "a function of a state")
    remedy = _REMEDY_IN_MEMORY if storage.where is None else _REMEDY.capitalize()
    watch = Watch("enumerating", remedy, budget=resources.budget, monitor=resources.monitor, profiler=resources.profiler)
    watch.budget.check_base("enumerating")
    # Functions of worlds written in Python may take long; nobody should have to wait for them.
    keeping = contextlib.nullcontext(Interrupts()) if model.packed is None else kept_interrupts()
    with keeping as watch.interrupts:
        return _enumerated(model, level_fct, part, storage, resources, watch)


def _enumerated(
    model: Model, level_fct: LevelFunction | None, part: SubProblem, storage: Storage, resources: Resources, watch: Watch
) -> Dag:
    place = None if storage.where is None else _place_of(storage.where)
    # Taken before anything is asked, since some worlds remember their answers. In memory nobody wants to know.
    identity = None if place is None else identity_of(model.world)
    goals = fixed_goals_of(model)
    # In a store that is kept, bits are worth writing only if a later run can tell whose they are.
    goals_key = None if goals is None or place is None else goals.key()
    stored_goals = goals if place is None or place.is_temporary or goals_key is not None else None
    levels: Levels = MemoryLevels()
    spill = None if place is None else _spill_limit(place, watch.budget)
    options: ExplorerOptions = {
        "precision": storage.precision, "workers": resources.workers, "max_states": resources.max_states, "spill": spill,
        "watch": watch, "part": part,
    }  # fmt: skip
    explorer = explorer_for(model, level_fct, stored_goals, watch.budget, options)
    is_stored = stored_goals is not None
    if place is not None:
        content = {
            "world": identity,
            "horizon": model.free_horizon,
            "levels": explorer.levels_are,
            "precision": storage.precision,
            "goals": goals_key,
            **part.content,
        }
        manifest = manifest_of(model, content, explorer, stored_goals)
        from empo_bi.store.stored_world import hold_to_world

        levels = on_disk = _open_or_create(model, place, manifest, storage, watch.budget)
        is_stored = is_stored and on_disk.manifest["content"]["goals"] == goals_key
        hold_to_world(on_disk, model, _goal_table(goals, is_stored=is_stored))
    was_there = len(levels) > 0
    _watch_memory(watch, levels, explorer)
    try:
        _fill(levels, explorer, resources.progress, watch)
    finally:
        watch.forget()  # or the explorer's index would wait for the garbage collector
    table = _goal_table(goals, is_stored=is_stored)
    dag = Dag(model.world, levels, n_profiles=explorer.n_profiles, shares_bodies=explorer.shares_bodies, goals=table)
    dag.precision, dag.part = storage.precision, part
    _hold_goals_to(dag, goals)
    if was_there and model.packed is None:
        check_some_states(dag)
    return dag


_NOTHING_YET = "{}: not finished, and no level has been committed yet; run the same command again to continue"


@suggests_names()
def open_dag(path: object, *, world: World | None = None, memory_limit: Size | None = None) -> Dag:
    """Open a stored DAG for reading, finished or not. Nothing in the store is executed.

    Parameters
    ----------
    path : path, URL or zarr store
        What ``enumerate_dag`` was given as ``store``.
    world : optional
        The world it was made from. A gridworld is remembered by the store. For a Python world, give it if states are to be
        translated by its ``decode_state``; otherwise states are tuples, numbers, texts, booleans and None as stored.
    memory_limit : int, float or str, optional
        As in :func:`enumerate_dag`: bounds what is cached.

    Raises
    ------
    StoreNotFoundError, StoreMismatchError, DamagedStoreError
    """
    from empo_bi.store.dag_store import DagStore
    from empo_bi.store.json_states import JsonStates
    from empo_bi.store.location import place_of
    from empo_bi.store.stored_world import hold_to_world, stored_world

    if path is None or isinstance(path, bool):
        raise TypeError(f"path={path!r}; give the folder, zip file, URL or zarr store of a DAG")
    world = translated(world, progress=False)
    model, place = UNKNOWN if world is None else as_model(world), place_of(path, "path")
    states = JsonStates(model, None if world is None else model.initial_state())
    try:
        levels = DagStore.open(place, states, cache_bytes=_cache_bytes(Budget.of(memory_limit)))
    except StoreNotFoundError:
        if place.is_begun:
            raise StoreNotFoundError(_NOTHING_YET.format(place.name)) from None
        raise
    manifest = levels.manifest
    if len(levels) == 0:
        raise StoreNotFoundError(_NOTHING_YET.format(place.name))
    content, given = manifest["content"], world
    if world is not None and (identity_of(world), horizon_of(world)) != (content["world"], content["horizon"]):
        raise StoreMismatchError(
            f"{levels.place.name}: was made for {one_line(manifest['title'])}, not for the world given, {world}"
        )
    if world is None and manifest["world"] is not None:
        world = stored_world(levels)
        model = as_model(world)
    goals = None if given is None else fixed_goals_of(model)
    table = None if manifest["goals"] is None else GoalTable(manifest["humans"], manifest["goals"], None, is_stored=True)
    if given is not None:
        table = _goal_table(goals, is_stored=goals is not None and goals.key() == content["goals"])
    keys = NumberedStates() if manifest.get("states") == "numbered" else None
    hold_to_world(levels, model, table, keys)
    dag = Dag(
        world, levels, n_profiles=manifest["n_profiles"], shares_bodies=manifest["shares_bodies"], goals=table, keys=keys
    )
    dag.precision, dag.part = content["precision"], stored_part(content)
    _hold_goals_to(dag, goals)
    return dag


def manifest_of(model: Model, content: Json, explorer: Explorer, goals: FixedGoals | None) -> Json:
    """What a store says about itself, in JSON; ``content`` has, by name, everything that its arrays depend on."""
    numbers = model.num_actions_per_agent
    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": WRITTEN_BY,
        "title": model.title,
        "world": model.mapping,
        **({} if model.state_format is None else {"states": model.state_format}),
        "content": content,
        "n_agents": model.n_agents,
        "n_actions": model.n_actions,
        **({} if len({*numbers}) <= 1 else {"num_actions_per_agent": numbers}),
        "n_profiles": explorer.n_profiles,
        "shares_bodies": explorer.shares_bodies,
        "humans": None if goals is None else goals.humans,
        "goals": None if goals is None else goals.describe(),
        **({"own_goals": True} if goals is not None and model.mapping is not None and not are_goals_of(model) else {}),
    }


def _place_of(store: object) -> Place:
    from empo_bi.store.location import place_of  # zarr takes a third of a second to import

    return place_of(store)


def _open_or_create(model: Model, place: Place, manifest: Json, storage: Storage, budget: Budget) -> DagStore:
    from empo_bi.store.compression import Compression
    from empo_bi.store.dag_store import DagStore
    from empo_bi.store.json_states import JsonStates

    # A temporary store keeps states in memory, as they are, whatever they are.
    in_json = model.packed is None and not place.is_temporary
    return DagStore.open_or_create(
        place,
        manifest,
        JsonStates(model, model.initial_state()) if in_json else None,
        compression=Compression.of(storage.compression),
        overwrite=storage.overwrite,
        cache_bytes=_cache_bytes(budget),
        backlog_bytes=budget.share(1 / 8, at_most=SLICE_BACKLOG),
    )


def _spill_limit(place: Place, budget: Budget) -> SpillLimit:
    folder = Path(tempfile.gettempdir()) if place.folder is None else place.folder
    return SpillLimit(budget.share(1 / 8, at_most=SPILL_BYTES), folder)


def _cache_bytes(budget: Budget) -> int:
    return budget.share(1 / 4, at_most=CACHE_BYTES)


def _check_arguments(storage: Storage, max_states: int | None) -> None:
    if max_states is not None and (isinstance(max_states, bool) or not hasattr(max_states, "__index__") or max_states < 1):
        raise ValueError(f"max_states={max_states!r}; give a number of states, 1 or more, or None")
    precision = storage.precision
    if precision not in PRECISIONS:
        raise ValueError(
            f"precision={precision!r}; expected one of {', '.join(PRECISIONS)}.{did_you_mean(precision, PRECISIONS)}"
        )
    check_flags(overwrite=storage.overwrite)


class ExplorerOptions(TypedDict):
    """What all explorers are given; they say what it is."""

    precision: str
    workers: int
    max_states: int | None
    spill: SpillLimit | None
    watch: Watch
    part: SubProblem


def explorer_for(
    model: Model, level_fct: LevelFunction | None, goals: FixedGoals | None, budget: Budget, options: ExplorerOptions
) -> Explorer:
    """The explorer that a world needs."""
    if model.packed is not None:
        cluster = active_cluster()
        at_a_time = options["workers"] if cluster is None else max(options["workers"], cluster.n_workers)
        if budget.limit is not None:
            model.packed.expand(model.packed.initial_key)  # loads the kernels, so that what is left of the limit is known
        waiting = 1 if at_a_time == 1 else 2  # blocks that are done wait for those before them
        block_bytes = budget.share(1 / 8 / (waiting * at_a_time), at_most=BLOCK_BYTES)
        return PackedExplorer(model.packed, goals, block_bytes=block_bytes, **options)
    if model.is_time_homogeneous:
        return SharedExplorer(model, goals, **options)
    if level_fct is not None:
        return LevelExplorer(model, goals, level_fct, **options)
    return DerivedExplorer(model, goals, **options)


def _watch_memory(watch: Watch, levels: Levels, explorer: Explorer) -> None:
    """Say what can be given back, and what is held for what."""

    def give_back() -> None:
        levels.give_back()
        explorer.give_back()

    watch.give_back = give_back
    watch.owners = lambda: {
        "index of states": explorer.nbytes,
        "transitions that wait": explorer.waiting_bytes,
        "slices at hand": levels.cached_bytes,
    }


def _fill(levels: Levels, explorer: Explorer, progress: bool, watch: Watch) -> None:
    """Append what the explorer finds, continuing after the levels that are there. What fails leaves them as they are."""
    try:
        frontier = levels.frontier() if len(levels) and not levels.is_finished else []
        explorer.check(itertools.chain(levels.heads(), frontier))
        if levels.is_finished:
            return
        if len(levels):
            explorer.resume(levels, frontier)
        with LevelBar("enumerate", explorer.n_levels, progress, limit=watch.budget.limit) as bar:
            bar.skip(len(levels))
            watch.after_block = bar.block
            while (piece := explorer.next_level(levels)) is not None:
                levels.append(piece, explorer.frontier)
                watch.look()
                watch.level(len(levels) - 1, len(piece.members))
                bar.level(len(levels) - 1, len(piece.members))
        levels.finish()
    except BaseException:
        levels.close()
        raise


def _hold_goals_to(dag: Dag, goals: FixedGoals | None) -> None:
    """Where goals of other packages turn out to mean something else than they seemed to, what slices say is not used."""
    if goals is not None and goals.compiled != goals.goals:
        held = fixed_goals_of(dag.model, dag)
        if held != goals:
            dag.goals = _goal_table(held, is_stored=False)


def _goal_table(goals: FixedGoals | None, *, is_stored: bool) -> GoalTable | None:
    return None if goals is None else GoalTable(goals.humans, goals.describe(), goals, is_stored=is_stored)
