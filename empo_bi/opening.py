"""Opening what was solved earlier: :func:`open_solution`."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from empo_bi.dag.dag import Dag
from empo_bi.enumeration import enumerate_dag, open_dag
from empo_bi.errors import DamagedStoreError, StoreMismatchError, StoreNotFoundError
from empo_bi.keeping import SOLUTION, inside, is_url
from empo_bi.options import Params
from empo_bi.results.levels import ARRAYS
from empo_bi.results.solution import Solution
from empo_bi.solver import Solver

_USERS_OWN = ("belief", "prior")  # functions that a folder cannot hold


def open_solution(path: Any, *, world: Any = None, progress: bool = True) -> Solution:
    """Open a solution that is on disk: the ``out`` of :func:`solve`, one solution in it, or a run of a batch.

    Parameters
    ----------
    path : path or URL
        Where several solutions are in one folder, give the folder of one of them.
    world : optional
        The world, if it is written in Python. A gridworld is remembered.
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
    from empo_bi.batch.folder import Folder
    from empo_bi.batch.manifest import openable, read_manifest

    folder, store = Folder(path), None
    if folder.name.startswith(SOLUTION):
        store, folder = folder.name, Folder(_parent(folder.place))
    elif read_manifest(folder) is None:
        store = _only_solution(folder)
    run = read_manifest(folder)
    if run is None and store is None:
        raise StoreNotFoundError(
            f"{folder}: no solution is there; solve(world, out=...), empo-bi solve --out, or a batch makes one"
        )
    if run is not None:
        found, run = run, openable(run)
        if run is None:
            remedy = "with --retry-failed" if found["status"] == "failed" else "again"
            raise StoreNotFoundError(f"{folder}: this run is {found['status']}; run its batch {remedy} to finish it")
        store = run["store"] if run["store"] is not None and (folder / run["store"]).names() else None
    dag = _dag_of(folder, run, world)
    if store is None:  # a run of which only the summary was kept
        assert run is not None
        params = _params_of(run["params"])
        return Solver(dag.world, [params], dag=dag, precision=run["asked"]["precision"], progress=progress).solutions()[0]
    return _opened(folder, store, dag)


def _opened(folder: Any, store: str, dag: Dag) -> Solution:
    from empo_bi.store.places import place_of
    from empo_bi.store.zarr_results import ZarrResults

    results = ZarrResults.open(place_of(inside(folder.place, store)))
    if results.next_level >= 0:
        raise StoreNotFoundError(f"{results.place.name}: is not finished; call solve again, or run its batch, to continue")
    content = results.manifest["content"]
    own = [part for part in _USERS_OWN if content[part] != "none"]
    if own or content["human_params"] is not None:
        raise StoreMismatchError(
            f"{folder}: was solved with functions or settings of your own ({', '.join(own) or 'phase 1 apart'}), which a "
            "folder cannot hold; call solve, or what made it, with the same arguments: it opens what is there"
        )
    return Solver(
        dag.world, [_params_of(content["params"])], dag=dag, only_opens=True,
        folders=[folder.place], arrays=frozenset(content.get("arrays", ARRAYS)),
        precision="float16" if content["rest"] == "float16" else "float64", phase_2=content["phase_2"],
        human_agent_indices=content["humans"], robot_agent_indices=content["robots"], progress=False,
    ).solutions()[0]  # fmt: skip


def _dag_of(folder: Any, run: Any, world: Any) -> Dag:
    """The DAG beside a solution, that of a batch, or one made again where a batch found that quicker."""
    if run is None:
        return _with_world(open_dag(inside(folder.place, "dag"), world=world), folder)
    if run["dag"] is not None:
        place = inside(_parent(_parent(folder.place)), run["dag"])
        with contextlib.suppress(StoreNotFoundError):  # somebody has deleted it
            return open_dag(place, world=world or _world_of(run))
    return enumerate_dag(_world_of(run) if world is None else world, precision="exact", progress=False)


def _world_of(run: dict[str, Any]) -> Any:
    """The world of a run, from its manifest."""
    from empo_bi.batch.references import WorldReference

    about = run["world"]
    reference = WorldReference(about["name"], about["source"], Path(about["folder"]), tuple(run["overrides"].items()))
    return reference.load_again(run["given_steps"], about)


def _with_world(dag: Dag, folder: Any) -> Dag:
    if not dag.is_finished:
        raise DamagedStoreError(f"{inside(folder.place, 'dag')}: {getattr(dag.levels, 'why_unfinished', 'is not finished')}")
    if dag.world is None:
        raise StoreMismatchError(
            f"{folder}: is of a world written in Python, which a folder cannot hold; use Python: "
            "open_solution(folder, world=...)"
        )
    return dag


def solutions_in(path: Any) -> list[Any]:
    """Places of all solutions in the folder of :func:`solve`, or the place itself if there are none."""
    from empo_bi.batch.folder import Folder

    folder = Folder(path)
    return [(folder / name).place for name in folder.names(SOLUTION)] or [path]


def _only_solution(folder: Any) -> str | None:
    """The solution in a folder, None if there is none."""
    found = folder.names(SOLUTION)
    if len(found) > 1:
        raise StoreMismatchError(
            f"{folder}: has {len(found)} solutions; give the folder of one of them: {', '.join(found[:5])}"
            + (", ..." if len(found) > 5 else "")
        )
    return found[0] if found else None


def _params_of(described: dict[str, Any]) -> Params:
    """Parameters as :meth:`Params.describe` wrote them."""
    given: dict[str, Any] = {name: float("inf") if value == "inf" else value for name, value in described.items()}
    given.pop("believed_others", None)
    try:
        return Params(**given)
    except (TypeError, ValueError) as error:
        raise DamagedStoreError(f"the parameters of a solution cannot be what they are said to be ({error}); solve it again"
                                ) from error  # fmt: skip


def _parent(place: Any) -> Any:
    return place.rstrip("/").rpartition("/")[0] if is_url(place) else place.parent
