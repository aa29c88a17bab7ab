"""The DAG that an earlier call left behind, or the world's own ``get_dag``, so that a world is not asked twice."""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from empo_bi.compat.switches import Switches
from empo_bi.dag.dag import Dag
from empo_bi.dag.levels import MemoryLevels
from empo_bi.dag.python_world import LevelFunction
from empo_bi.dag.sub_problem import WHOLE
from empo_bi.dag.world_fingerprint import world_key
from empo_bi.dag.world_snapshot import WorldSnapshot
from empo_bi.errors import StoreMismatchError
from empo_bi.solving.solution_dag import enumerated_beside
from empo_bi.world.as_model import as_model
from empo_bi.world.model import State, Transitions, World
from empo_bi.world.python_model import PythonModel

Row = tuple[Sequence[int], Sequence[float], Sequence[int]]  # profile, probabilities, numbers of successors

LEAST_CHECKS, ONE_IN = 300, 20  # transitions of a _dag_cache that the world is asked for
N_TERMINAL = 50
_TOLERANCE = 1e-9


def dag_at_hand(switches: Switches, holders: Iterable[object]) -> Dag | None:
    """A DAG that an earlier call left behind, if it is one of this world as it is now, or what ``get_dag`` left."""
    dags = (getattr(holder, "dag", None) for holder in holders)
    found = [dag for dag in dags if isinstance(dag, Dag) and dag.is_usable and not dag.part.content]
    for dag in found:
        is_where_wanted = isinstance(dag.levels, MemoryLevels) != switches.use_disk_slicing
        if is_where_wanted and _has_levels(dag, switches.level_fct) and _is_of(dag, switches.world_model):
            return dag
    outdated = [dag.snapshot for dag in found if dag.world is switches.world_model and dag.snapshot is not None]
    return _from_dag_cache(switches, outdated)


def snapshot_before(world: World, dag: Dag | None) -> WorldSnapshot | None:
    """What a world written in Python is like before it is asked; None if it is not going to be, or is known already."""
    is_known = dag is not None and dag.snapshot is not None
    return None if is_known or as_model(world).packed is not None else WorldSnapshot(world)


def _is_of(dag: Dag, world: World) -> bool:
    if dag.world is world and dag.snapshot is not None:
        return dag.snapshot.is_of(world, dag)
    key = world_key(world)
    return key is not None and dag.world_key == key


def _has_levels(dag: Dag, level_fct: LevelFunction | None) -> bool:
    """Whether a DAG has the levels that a function says; where it has levels of its own, nobody is asked."""
    if level_fct is None or dag.model.is_time_homogeneous:
        return True
    return all(level_fct(state) == value for t, value in enumerate(dag.level_values) for state in dag.states(t))


# --- what get_dag left ------------------------------------------------------------------------------------------------


class _CachedModel(PythonModel):
    """A world whose transitions are looked up in what its own ``get_dag`` left on it."""

    def __init__(self, world: Any) -> None:
        super().__init__(world)
        self.states, self._number, _, self._transitions = world._dag_cache

    def transitions(self, state: State, profile: Sequence[int]) -> Transitions | None:
        rows = self._transitions[self._number[state]]
        return self.row(rows[sum(a * self.n_actions**i for i, a in enumerate(profile))]) if rows else None

    def row(self, row: Row) -> Transitions:
        """A triple (profile, probabilities, successors) as pairs."""
        return [(float(p), self.states[i]) for p, i in zip(row[1], row[2], strict=True)]

    def is_terminal(self, number: int) -> bool:
        return not self._transitions[number]

    def has_all(self) -> bool:
        """Whether there is a row for every profile, in their order, of every state that goes on."""
        n, profiles = len(self.states), [tuple(profile) for profile in self.profiles]
        rows = [rows for rows in self._transitions if rows]
        return len(self._number) == len(self._transitions) == n and all(
            [tuple(row[0]) for row in of_state] == profiles for of_state in rows
        )


def _from_dag_cache(switches: Switches, outdated: Sequence[WorldSnapshot]) -> Dag | None:
    """The DAG that ``get_dag`` left on the world, if the world still agrees with it in one of twenty transitions."""
    world = switches.world_model
    cache = getattr(world, "_dag_cache", None)
    if as_model(world).packed is not None or not isinstance(cache, tuple) or len(cache) != 4:
        return None
    if any(snapshot.has_seen(cache) for snapshot in outdated) or not _agrees(world):
        switches.tell("its _dag_cache is not used, since it is of another world; clear_dag_cache() removes it")
        return None
    with contextlib.suppress(StoreMismatchError):  # something else is where the DAG should be stored
        resources = replace(switches.resources(), workers=1)  # a look into a table is no work for others
        return enumerated_beside(_CachedModel(world), switches.storage(), resources, switches.level_fct, WHOLE)
    return None


def _agrees(world: World) -> bool:
    """Hold a cache to the world: its initial state, and transitions drawn at random."""
    cached, asked = _CachedModel(world), PythonModel(world)
    if not cached.states or not cached.has_all() or asked.initial_state() != cached.states[0]:
        return False
    draw, profiles = random.Random(0), cached.profiles
    going_on = [state for i, state in enumerate(cached.states) if not cached.is_terminal(i)]
    ended = [state for i, state in enumerate(cached.states) if cached.is_terminal(i)]
    n_checks = max(LEAST_CHECKS, len(going_on) * len(profiles) // ONE_IN)
    states = draw.choices(going_on, k=n_checks) if going_on else []
    states += draw.choices(ended, k=min(N_TERMINAL, len(ended)))
    return all(_same(cached, asked, state, draw.choice(profiles)) for state in states)


def _same(cached: _CachedModel, asked: PythonModel, state: State, profile: Sequence[int]) -> bool:
    here, there = cached.transitions(state, profile), asked.transitions(state, profile)
    if here is None or there is None:
        return here is there
    total: dict[State, float] = {successor: 0.0 for _, successor in [*here, *there]}
    for sign, pairs in ((1, here), (-1, there)):
        for probability, successor in pairs:
            total[successor] += sign * float(probability)
    return all(math.isclose(difference, 0, abs_tol=_TOLERANCE) for difference in total.values())
