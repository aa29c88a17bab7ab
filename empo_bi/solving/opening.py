"""Opening what was solved earlier: :func:`open_solution`."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from empo_bi.dag.dag import Dag
from empo_bi.dag.world_fingerprint import horizon_of, world_key
from empo_bi.errors import DamagedStoreError, MemoryLimitError, StoreMismatchError, StoreNotFoundError
from empo_bi.problem.params import params_from
from empo_bi.problem.protocols import GoalGenerator
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import check_flags, check_path, suggests_names
from empo_bi.runtime.byte_sizes import Size, as_text
from empo_bi.runtime.compilation import quiet_unless_shown
from empo_bi.runtime.hooks import provider_of
from empo_bi.runtime.machine import resident_bytes
from empo_bi.runtime.user_functions import made_by
from empo_bi.runtime.wording import short_repr
from empo_bi.solving.enumeration import enumerated, open_dag
from empo_bi.solving.options import Resources, Roles, Storage, resources_from
from empo_bi.solving.pipeline import Pipeline
from empo_bi.solving.run_manifest import REMEDY, is_about, openable, read_manifest
from empo_bi.solving.solution_list import lines_of
from empo_bi.solving.world_reference import WorldReference
from empo_bi.store.small_files import Folder
from empo_bi.store.solution_folders import SOLUTION, inside, trimmed_url
from empo_bi.store.solved_levels import ARRAYS
from empo_bi.types import Json
from empo_bi.world.as_model import as_model
from empo_bi.world.model import World
from empo_bi.world.translation import translated

if TYPE_CHECKING:
    from empo_bi.store.solution_store import SolutionStore  # which imports zarr, a third of a second

AGAIN_BYTES = 2_000_000_000  # what opening takes at most, where it computes again what a batch did not keep
AGAIN_STEPS = 10_000  # each takes milliseconds, however few states it has


@dataclass(frozen=True)
class Given:
    """What the caller of :func:`open_solution` brings, as it was given: objects, or names of functions that make them."""

    world: World | str | None = None
    goals: GoalGenerator | str | None = None
    prior: object = None

    def goals_of(self, world: World | None) -> object:
        return _made_by(self.goals, world, "goals", "'my_goals.py:goals_of', a function that makes goals of a world")

    def prior_of(self, world: World | None) -> object:
        return _made_by(self.prior, world, "prior", "'my_priors.py:prior_of', a function that makes a prior of a world")


def _made_by(given: object, world: World | None, name: str, expected: str) -> object:
    if isinstance(given, str) and world is None:
        raise StoreMismatchError(
            f"{name}={given!r} is a function of the world, which was written in Python and is not at hand; give world=... "
            "(--world MODULE:FUNCTION) as well"
        )
    return made_by(given, world, expected)


@suggests_names()
@quiet_unless_shown
def open_solution(
    path: str | os.PathLike[str],
    *,
    world: World | str | None = None,
    goals: GoalGenerator | str | None = None,
    prior: object = None,
    trust: bool = False,
    memory_limit: Size | None = None,
    progress: bool = True,
) -> Solution:
    """Open a solution that is on disk: the ``out`` of :func:`solve`, one solution in it, or a run of a batch.

    What the files say is data: nothing in them is imported or called unless you say so with ``world`` or ``trust``, and
    nothing outside of the folder is read or written. See docs/security.md.

    Parameters
    ----------
    path : path or URL
        Where several solutions are in one folder, give the folder of one of them.
    world : optional
        The world, if it is written in Python, or what makes it: ``"my_worlds.py:make_ring"`` or ``"module:function"``, which
        is called as the run's batch did. A gridworld is remembered.
    goals, prior : optional
        What it was solved with, or the name of a function that makes it from the world (``"my_goals.py:goals_of"``). Without
        them, a run opens with what they said, which is stored, and with goals that are known by their names. With ``goals``,
        tables have your own goals as keys; with ``prior``, humans can be given single goals.
    trust : bool
        Where a batch made the world by a function, import and call the function that the run's folder names, with the
        arguments that it names. That is whatever the maker of the folder wants to be executed: only for your own runs, or
        those of people whose programs you would run.
    memory_limit : int, float or str, optional
        A batch does not keep everything: states that are quickly found, and values of runs that kept only their summary, are
        computed again. That stops when the process would hold more than this, by default 2 GB more than it holds now, so
        that a small file cannot keep your machine busy for hours.
    progress : bool
        Show bars, in case a run that kept its summary only has to be solved again.

    Examples
    --------
    >>> import tempfile
    >>> from empo_bi import Params, load_world, solve
    >>> folder = tempfile.mkdtemp()
    >>> first = solve(load_world("basics/first_steps", max_steps=3), Params(zeta=2), out=folder, progress=False)
    >>> again = open_solution(folder)
    >>> again.params.zeta, bool(again.values.V_r[0][0] == first.values.V_r[0][0])
    (2.0, True)
    """

    check_path("path", path, "the folder or URL of a solution")
    check_flags(trust=trust, progress=progress)
    if world is not None and not isinstance(world, str):
        as_model(world)  # refuses what is not one
    if not isinstance(goals, str | None) and not callable(getattr(goals, "generate", None)):
        raise TypeError(f"goals={short_repr(goals)} has no method generate(state, human_agent_index); give a goal generator")
    if not (isinstance(prior, str | None) or callable(prior) or hasattr(prior, "profile_distribution")):
        raise TypeError(f"prior={short_repr(prior)}; give what solve got as human_policy_prior")
    limit = resident_bytes() + AGAIN_BYTES if memory_limit is None else memory_limit
    resources = resources_from(memory_limit=limit, progress=progress)
    return _open(path, Given(world, goals, prior), resources, trust=trust)


def open_stored(path: str | os.PathLike[str]) -> Solution:
    """Open a solution whose DAG is stored, too; otherwise :class:`StoreNotFoundError`.

    However small a folder is, finding the states of its world again may take all time and memory.
    """
    return _open(path, Given(), None, trust=False)


def _open(path: str | os.PathLike[str], given: Given, again: Resources | None, *, trust: bool) -> Solution:
    """``again``: what finding states or values once more may take; None if what is not stored is an error."""
    folder, store, named = Folder(path), None, None
    if folder.name.startswith(SOLUTION):
        store = named = folder.name
        folder = Folder(_parent(folder.place))
        run = read_manifest(folder)
    elif (run := read_manifest(folder)) is None:
        store = _only_solution(folder)
    if run is None and store is None:
        if "dag" in folder.names("dag"):
            raise StoreNotFoundError(f"{folder}: nothing is solved there yet; run the same command again to continue")
        if "runs" in folder.names("runs"):
            raise StoreNotFoundError(f"{folder}: this is a batch; open one of the runs in {folder}/runs")
        what = "this is a DAG; no solution is there" if "finished" in folder.names("finished") else "no solution is there"
        raise StoreNotFoundError(f"{folder}: {what}; solve(world, out=...), empo-bi solve --out, or a batch makes one")
    if run is not None:
        found, run = run, openable(run)
        if run is None:
            remedy = "with --retry-failed" if found["status"] == "failed" else "again"
            raise StoreNotFoundError(f"{folder}: this run is {found['status']}; run its batch {remedy} to finish it")
        store = run["store"] if run["store"] is not None and (folder / run["store"]).names() else None
        if named is not None and named != store:
            raise StoreMismatchError(f"{folder}: {named} is not the solution of this run, {store or 'which has none'}")
    results = None if store is None else _results(folder, store)
    model = None if _may_do_without_world(run, given, trust) else _world_for(folder, run, given.world, trust)
    dag = _stored_dag(folder, run, model)
    if dag is None:
        model = _world_for(folder, run, given.world, trust) if model is None else model
        if again is None:
            raise StoreNotFoundError(f"{folder}: its DAG is not stored")
        assert run is not None
        dag = _found_again(folder, run, model, results, again)
    if results is None:  # a run of which only the summary was kept
        if again is None:
            raise StoreNotFoundError(f"{folder}: its values are not stored")
        assert run is not None
        solution = _solved_again(folder, run, dag, again)
    else:
        solution = _opened(folder, results, dag, given)
    if run is not None:
        _hold_to_summary(folder, run, solution)
    return solution


def _hold_to_summary(folder: Folder, run: Json, solution: Solution) -> None:
    """Whether a run's manifest has a summary of this solution: the same parameters and states, and V_r at the start."""
    said = run["columns"].get("V_r")
    found = float(solution.rows("vr", 0)[0]) if solution.results.has(0, "vr") else None
    is_same = run["params"] == solution.params.describe() and run["columns"].get("states") == solution.dag.n_states
    if found is not None:
        is_same &= isinstance(said, float) and math.isclose(said, found, rel_tol=1e-6)
    if not is_same:
        solution.close()
        raise DamagedStoreError(
            f"{folder}: its manifest has other parameters, another number of states, or another V_r at the start "
            f"({short_repr(said)}), than the solution ({found}). {REMEDY}"
        )
    wrong = _wrong_columns(run, solution)
    if wrong:
        solution.close()
        raise DamagedStoreError(
            f"{folder}: its summary has other numbers than its solution ({', '.join(wrong[:3])}). {REMEDY}"
        )


def _wrong_columns(run: Json, solution: Solution) -> list[str]:
    """Columns of the summary that are not those of the solution, as far as these arrays were kept."""
    if not all(solution.results.has(0, name) for name in ("xh", "qr", "vr")):
        return []
    columns, found = run["columns"], provider_of("Solution.columns")(solution, per_goal=run["asked"]["per_goal"])
    return [name for name, number in found.items() if name in columns and not is_about(columns[name], number)]


def _may_do_without_world(run: Json | None, given: Given, trust: bool) -> bool:
    """Whether a batch made the world by a function, which is not needed where the DAG and the values are stored."""
    if run is None or given.world is not None or trust is True:
        return False
    return run["world"]["mapping"] is None and run["store"] is not None and run["dag"] is not None


def _world_for(folder: Folder, run: Json | None, given: World | str | None, trust: bool) -> World | None:
    """The world to open a folder with: what the caller gave or allowed, or data in the folder; None for that of its DAG."""
    if isinstance(given, str):
        overrides, steps = ((), None) if run is None else (tuple(run["overrides"].items()), run["given_steps"])
        return WorldReference(given, given, Path.cwd(), overrides).look(steps).model
    if given is not None or run is None:
        return given
    about = run["world"]
    if about["mapping"] is not None:
        from empo_bi.store.stored_world import remembered_world

        return remembered_world(about["mapping"], f"{folder}/manifest.json")
    reference = WorldReference(about["name"], about["source"], Path(about["folder"]), tuple(run["overrides"].items()))
    if trust is not True:
        raise StoreMismatchError(
            f"{folder}: its world was made by the Python function {short_repr(about['source'])}, which is called "
            "only on request; give world=... (--world MODULE:FUNCTION), or trust=True (--trust) if you trust its maker "
            "enough to run their code"
        )
    return reference.load_again(run["given_steps"], about)


def _stored_dag(folder: Folder, run: Json | None, world: World | None) -> Dag | None:
    """The DAG beside a solution, or that of a batch; None where a batch found that it is quicker made again."""
    if run is None:
        return _finished(open_dag(inside(folder.place, "dag"), world=world), folder)
    runs = Folder(_parent(folder.place))
    if run["dag"] is not None and runs.name == "runs":
        with contextlib.suppress(StoreNotFoundError):  # somebody has deleted it
            return open_dag(inside(_parent(runs.place), run["dag"]), world=world)
    return None


def _found_again(folder: Folder, run: Json, world: World | None, results: SolutionStore | None, resources: Resources) -> Dag:
    assert world is not None  # a run says what its world is
    if results is not None:
        _hold_to_results(folder, run, world, results)
    most = replace(resources, max_states=_most_bodies(folder, run, world), progress=False)
    with _within_limit(folder, resources):
        return enumerated(as_model(translated(world, progress=False)), Storage(precision="exact"), most)


@contextlib.contextmanager
def _within_limit(folder: Folder, resources: Resources) -> Iterator[None]:
    """Around what is computed again: if that takes too much, the advice is about opening."""
    try:
        yield
    except MemoryLimitError as error:
        limit = as_text(resources.budget.limit or 0)
        raise MemoryLimitError(
            f"{folder}: what this run did not keep is computed again when it is opened, and that takes more than {limit}; "
            "allow more with memory_limit=... (--memory-limit), or run its batch again with keep: values"
        ) from error


def _hold_to_results(folder: Folder, run: Json, world: World, results: SolutionStore) -> None:
    """Whether a run's world and number of states are those of its solution, before the world's states are found again."""
    content = results.manifest["content"]
    key = None if content["world"] is None else (content["world"], content["horizon"])
    if key is not None and world_key(world) != key:
        raise StoreMismatchError(
            f"{folder}: its solution is not one of its world; it was changed, or solved by another version of empo_bi: run "
            "its batch again"
        )
    if run["columns"].get("states") != sum(content["level_sizes"]):
        raise DamagedStoreError(f"{folder}: its summary and its solution have different numbers of states. {REMEDY}")


def _most_bodies(folder: Folder, run: Json, world: World) -> int:
    """So many bodies may be found again: as many as the run says, if that can be, so that this does not take for ever."""
    states, bodies = (run["columns"].get(name) for name in ("states", "bodies"))
    if not all(isinstance(n, int) and n > 0 for n in (states, bodies)) or bodies > states:
        raise DamagedStoreError(f"{folder}: does not say how many states it has; run its batch again")
    if (horizon_of(world) or 0) >= states:  # each level has a state at least
        raise StoreMismatchError(
            f"{folder}: its summary is of {states:,} states, its world has {horizon_of(world):,} steps; it is another "
            "world, or the summary was changed: run the batch again"
        )
    if (horizon_of(world) or 0) > AGAIN_STEPS:
        raise StoreNotFoundError(
            f"{folder}: did not keep its states or values, and its world has {horizon_of(world):,} steps; up to "
            f"{AGAIN_STEPS:,} are computed again when a run is opened. Run its batch again with keep: values"
        )
    return int(bodies)


def _solved_again(folder: Folder, run: Json, dag: Dag, resources: Resources) -> Solution:
    """The solution of a run that kept its summary only, if the world is still the one that the summary is of."""
    if (dag.n_states, dag.n_bodies) != (run["columns"].get("states"), run["columns"].get("bodies")):
        raise StoreMismatchError(
            f"{folder}: its summary is of {run['columns'].get('states')} states, the world has {dag.n_states:,}; it is "
            "another world, or the summary was changed: run the batch again"
        )
    params = params_from(run["params"])
    storage = Storage(precision=run["asked"]["precision"])
    with _within_limit(folder, resources):
        return Pipeline.of(dag.world, [params], storage=storage, resources=resources, dag=dag).solutions()[0]


def _results(folder: Folder, store: str) -> SolutionStore:
    from empo_bi.store.location import place_of
    from empo_bi.store.solution_store import SolutionStore

    results = SolutionStore.open(place_of(inside(folder.place, store)))
    if results.next_level >= 0:
        raise StoreNotFoundError(f"{results.place.name}: is not finished; call solve again, or run its batch, to continue")
    return results


def _opened(folder: Folder, results: SolutionStore, dag: Dag, given: Given) -> Solution:
    from empo_bi.solving.stored_solution import StoredSolution, as_damage

    goals = cast("GoalGenerator | None", given.goals_of(dag.world))
    stored = StoredSolution(results, dag, goals, given.prior_of(dag.world))
    if stored.is_needed:
        return stored.open()
    stored.check_given()
    with as_damage(f"{folder}/{results.name}"):
        content = results.manifest["content"]
        if content.get("stop", "never") != dag.part.content.get("stop", "never"):
            raise StoreMismatchError(
                f"{folder}: was solved with a stop that the DAG beside it does not have; call solve with the same "
                "arguments: it opens what is there"
            )
        roles = Roles(humans=content["humans"], robots=content["robots"], goals=stored.goals, phase_2=content["phase_2"])
        storage = Storage(
            folders=[folder.place], only_opens=True, arrays=frozenset(content.get("arrays", ARRAYS)),
            precision="float16" if content["rest"] == "float16" else "float64",
        )  # fmt: skip
        params, resources = [params_from(content["params"])], Resources(progress=False)
        pipeline = Pipeline.of(dag.world, params, roles, storage, resources, dag=dag)
    pipeline.folders.remember(results)
    return pipeline.solutions()[0]


def _finished(dag: Dag, folder: Folder) -> Dag:
    if not dag.is_finished:
        raise DamagedStoreError(f"{inside(folder.place, 'dag')}: {getattr(dag.levels, 'why_unfinished', 'is not finished')}")
    return dag


def solutions_in(path: str | os.PathLike[str]) -> list[str | os.PathLike[str]]:
    """Places of all solutions in the folder of :func:`solve`, or the place itself if there are none."""

    folder = Folder(path)
    return [(folder / name).place for name in folder.names(SOLUTION)] or [path]


def _only_solution(folder: Folder) -> str | None:
    """The solution in a folder, None if there is none."""
    found = folder.names(SOLUTION)
    if len(found) > 1:
        listed = "\n".join(lines_of(folder, found))
        raise StoreMismatchError(f"{folder}: has {len(found)} solutions; give the folder of one of them:\n{listed}")
    return found[0] if found else None


def _parent(place: str | Path) -> str | Path:
    """The folder that a place is in, or the URL that is above it, if there is one."""
    if isinstance(place, Path):
        return place.absolute().parent
    scheme, _, path = trimmed_url(place).partition("://")
    return f"{scheme}://{path.rpartition('/')[0]}"
