"""Tables hold the levels that lower ones may still lead to, and no others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from empo_bi import Params, enumerate_dag, load_world, solve
from empo_bi.sweep import kernels
from empo_bi.sweep import value_tables as rows
from empo_bi.sweep.value_tables import LiveRows, SharedRows, Table


class Ladder:
    """Three states a level; from (t, x) to (t + 1, any), and by action 1 to (t + leap, x) where that exists."""

    n_agents = 2
    action_space = SimpleNamespace(n=2)
    human_agent_indices = (0,)
    robot_agent_indices = (1,)

    def __init__(self, n_levels: int, leap: int = 1) -> None:
        self.n_levels, self.leap = n_levels, leap

    def initial_state(self) -> tuple[int, int]:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        t, x = state
        if t >= self.n_levels - 1:
            return None
        if actions[0] == 1 and t + self.leap < self.n_levels:
            return [(1.0, (t + self.leap, x))]
        return [(1.0 / 3.0, (t + 1, y)) for y in range(3)]


def most_rows(world: Ladder) -> int:
    """The largest number of rows that a sweep over the world has in its tables at a time."""
    dag = enumerate_dag(world, level_fct=lambda state: state[0], progress=False)
    live = LiveRows(dag)
    return max(live.begin(t, dag.levels.members(t)).n_rows for t in range(dag.horizon, -1, -1))


@pytest.mark.parametrize(("leap", "levels_at_a_time"), [(1, 2), (2, 3), (4, 5)])
def test_tables_grow_with_how_far_transitions_leap_and_not_with_the_number_of_levels(
    leap: int, levels_at_a_time: int
) -> None:
    assert most_rows(Ladder(12, leap)) == most_rows(Ladder(40, leap)) <= 3 * levels_at_a_time


def test_rows_that_are_kept_have_the_numbers_of_their_bodies() -> None:
    dag = enumerate_dag(Ladder(12, leap=3), level_fct=lambda state: state[0], progress=False)
    live, table = LiveRows(dag), Table(0, "float64")
    for t in range(dag.horizon, -1, -1):
        plan = live.begin(t, dag.levels.members(t))
        table.begin(plan)
        table.write[plan.slot_S] = dag.level(t).body_S  # each body's own number
        succ_K = dag.level(t).succ_K
        assert np.array_equal(table.read[live.slots_of(succ_K)], succ_K), t


def test_where_bodies_are_shared_two_tables_take_turns() -> None:
    dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=4), progress=False)
    shared, table = SharedRows(dag), Table(3, "float32")
    found = set()
    for t in range(dag.horizon, -1, -1):
        table.begin(shared.begin(t, dag.levels.members(t)))
        found |= {id(table.write)}
    assert len(found) == 2
    assert table.nbytes == 2 * dag.n_bodies * 3 * 4


def test_kernels_are_compiled_once_for_each_type_of_tables_whatever_the_world() -> None:
    before = [len(kernel.signatures) for kernel in (kernels.human_block, kernels.robot_block)]
    for name, steps in (("asymmetric_freeing", 2), ("hazards/ice_rink", 2), ("doors_and_keys/locked_in", 2)):
        for precision in ("float16", "float64"):
            world = load_world(name, max_steps=steps)
            solution = solve(world, Params(zeta=2.0), precision=precision, progress=False)
            assert solution.prior(world.initial_state(), world.human_agent_indices[0]).sum() > 0
    for kernel, n in zip((kernels.human_block, kernels.robot_block), before, strict=True):
        assert len(kernel.signatures) <= max(n, 2)
    assert rows.rows_of(enumerate_dag(Ladder(3), progress=False)).__class__ is LiveRows
