"""Checks of what :func:`solve` and the documented functions are given; complaints name the thing and say what to do."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from empo_bi.dag.dag import Dag
from empo_bi.dag.world_fingerprint import world_key
from empo_bi.errors import StoreMismatchError
from empo_bi.problem.protocols import GoalGenerator
from empo_bi.runtime.arguments import check_flags
from empo_bi.runtime.wording import did_you_mean
from empo_bi.solving.options import Storage
from empo_bi.sweep.phases import PRECISIONS
from empo_bi.world.as_model import Model
from empo_bi.world.model import World


def check_storage(storage: Storage) -> None:
    """Whether results can go where they are to go."""
    if storage.precision not in PRECISIONS:
        expected, found = " or ".join(PRECISIONS), storage.precision
        raise ValueError(f"precision={found!r}; expected {expected}.{did_you_mean(str(found), PRECISIONS)}")
    for place in [] if storage.only_opens else [storage.where, *(storage.folders or [])]:
        check_out(place)
    check_flags(overwrite=storage.overwrite)


def checked_agents(model: Model, humans: Iterable[int], robots: Iterable[int]) -> tuple[list[int], list[int]]:
    """Lists of agents, each known, none twice."""
    n = model.n_agents
    for role, agents in (("human", humans), ("robot", robots)):
        if isinstance(agents, str) or not hasattr(agents, "__iter__"):
            raise TypeError(f"{role}_agent_indices={agents!r}; give a list of agents, such as [0]")
    humans, robots = list(humans), list(robots)
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
        raise ValueError(
            f"agent {both[0]} is both human and robot; give each agent one role: human_agent_indices is {list(humans)} and "
            f"robot_agent_indices {list(robots)} (where one of them is not given, it is the world's own)"
        )
    if not len(humans):
        raise ValueError("there are no humans: give human_agent_indices (--humans), or a world that has some")
    return [int(agent) for agent in humans], [int(agent) for agent in robots]


def checked_generator(model: Model, generator: GoalGenerator | None) -> GoalGenerator:
    found: GoalGenerator | None = model.goal_generator if generator is None else generator
    if found is None:
        raise ValueError(
            "there are no goals: give possible_goal_generator, or a world that has one (in a world file, possible_goals; "
            "load_world(..., goals='all') or --set goals=all for every cell where a human can walk)"
        )
    if not callable(getattr(found, "generate", None)):
        raise TypeError(f"possible_goal_generator={found!r} has no method generate(state, human_agent_index)")
    return found


def check_out(out: object) -> None:
    """Results go to a folder or a URL, since they are written level by level beside the DAG."""
    if out is None or out is True or (isinstance(out, str) and "://" in out):
        return
    path = Path(out) if isinstance(out, str | os.PathLike) and os.fspath(out) else None
    if path is not None and (path / "batch.json").exists():
        raise StoreMismatchError(f"{out}: is the folder of a batch; give another one (open_solution opens the batch's runs)")
    if path is not None and path.exists() and not path.is_dir():
        hint = " (open_solution opens a run that was packed)" if path.suffix.lower() == ".zip" else ""
        raise StoreMismatchError(f"{out}: is a file; results go to a folder, which may be new{hint}")
    if path is None or path.suffix.lower() == ".zip":
        raise ValueError(
            f"out={out!r}; results go to a folder: give its path or URL, True for a temporary one, or None for memory"
        )


def check_dag(dag: Dag, world: World, key: tuple[str, int | None] | None) -> None:
    """Whether a DAG can be used for a world."""
    if not isinstance(dag, Dag):
        raise TypeError(f"dag={dag!r}; give what enumerate_dag returned, or None")
    if not dag.is_finished or not dag.is_usable:
        raise ValueError(f"dag={dag!r} is {'closed' if dag.is_finished else 'unfinished'}; enumerate it again")
    theirs = dag.world_key if dag.world_key is not None else world_key(dag.world)
    if dag.world is not world and (key is None or key != theirs):
        raise ValueError(f"dag={dag!r} was enumerated for another world or horizon; enumerate one for this world")


def check_sequence_of(params: Sequence[object], kind: type) -> None:
    if not params or not all(isinstance(given, kind) for given in params):
        raise TypeError(f"params={params!r}; give empo_bi.{kind.__name__}(...), a list of them, or nothing")
