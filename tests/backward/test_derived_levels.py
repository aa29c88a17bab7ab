"""Levels that follow from the longest paths: states of late levels may be found early, and rows have to wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from backward.against_oracle import Problem, check_documented_functions, check_solve
from backward.test_python_worlds_against_oracle import TableWorld, TimedWorld, Wish, durations_for, outcomes
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.planning import all_profiles

from empo_bi import TabularGoalGenerator, enumerate_dag, solve
from empo_bi.sweep.value_tables import LiveRows, Table

HUMAN = {"beta_h": 3.0, "gamma_h": 0.9}
ROBOT = {"beta_r": 2.0, "gamma_h": 0.9, "gamma_r": 0.8, "zeta": 1.5, "terminal_Vr": -0.5}


@st.composite
def winding_worlds(draw: st.DrawFn) -> TableWorld:
    """States in a row, each of which may lead to the next one and leap to any later one.

    So the last states are on the highest levels, though some of them are among the first to be found; others are on low
    levels, since only leaps lead to them, and may end there.
    """
    n_states = draw(st.integers(2, 12))
    goes_on = draw(st.lists(st.sampled_from([True, True, True, False]), min_size=n_states, max_size=n_states))
    leaps_first, is_timed = draw(st.booleans()), draw(st.booleans())
    rng = Random(draw(st.integers(0, 2**20)))
    names = rng.sample(range(100), n_states)
    table: dict[Any, Any] = {}
    for i, name in enumerate(names):
        later = names[i + 1 :]
        table[name] = None
        if later and (i == 0 or goes_on[i]):
            rows = {profile: outcomes(rng, later, in_halves=False, chance=True) for profile in all_profiles(2, 2)}
            rows[(1, 1) if leaps_first else (0, 0)] = [(1.0, later[0])]
            table[name] = rows
    world = (TimedWorld if is_timed else TableWorld)(2, 2, reachable(names[0], table))
    if is_timed:
        world.durations = durations_for(rng, {s: rows for s, rows in world.table.items() if rows})  # type: ignore[attr-defined]
    return world


def reachable(start: Any, table: dict[Any, Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    waiting = [start]
    while waiting:
        state = waiting.pop()
        if state not in found:
            found[state] = table[state]
            waiting += [after for pairs in (table[state] or {}).values() for _, after in pairs]
    return found


def chain(n_states: int, leaps: Sequence[int] = ()) -> TableWorld:
    """From each state to the next one, and from the first one, by some profile, to others as well, which are found then."""
    table: dict[Any, Any] = {i: {profile: [(1.0, i + 1)] for profile in all_profiles(2, 2)} for i in range(n_states - 1)}
    if leaps:
        table[0][1, 0] = [(1 / len(leaps), i) for i in leaps]
    return TableWorld(2, 2, {**table, n_states - 1: None})


LEAPS = {"nearest first": range(1, 20), "farthest first": range(19, 0, -1), "a few": [17, 3, 18, 9]}


def goals_of(world: TableWorld) -> TabularGoalGenerator:
    """To be in every other state, in every third, or anywhere, so that everybody can attain something."""
    states = list(world.table)
    wishes: list[Any] = [Wish(f"every {n}.", frozenset(states[::n])) for n in (1, 2, 3)]
    return TabularGoalGenerator(wishes, [0.2, 0.5, 0.3])


def problem_of(world: TableWorld) -> Problem:
    return Problem(world, [0], [1], goals_of(world), human=HUMAN, robot=ROBOT)


# --- against the oracle -----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(winding_worlds())
def test_worlds_without_a_level_function_agree_with_the_oracle_however_far_transitions_leap(world: TableWorld) -> None:
    check_solve(problem_of(world))


@pytest.mark.parametrize("leaps", LEAPS)
def test_states_that_are_found_first_and_needed_last_agree_with_the_oracle(leaps: str) -> None:
    world = chain(20, LEAPS[leaps])
    assert enumerate_dag(world, progress=False).level_sizes == [1] * 20
    problem = problem_of(world)
    check_solve(problem)
    check_documented_functions(problem)


@pytest.mark.parametrize("leaps", LEAPS)
def test_a_dag_that_was_read_from_a_folder_gives_the_same_numbers(leaps: str, tmp_path: Path) -> None:
    """Which rows are needed is part of what is stored."""
    world = chain(20, LEAPS[leaps])
    options: dict[str, Any] = {"possible_goal_generator": goals_of(world), "progress": False}
    options |= {"human_agent_indices": [0], "robot_agent_indices": [1]}
    dag = enumerate_dag(world, store=tmp_path / "dag", precision="exact", progress=False)
    dag.close()
    found = solve(world, dag=enumerate_dag(world, store=tmp_path / "dag", precision="exact", progress=False), **options)
    assert dict(found.Vr) == dict(solve(world, **options).Vr)


# --- rows -------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(winding_worlds())
def test_a_row_is_kept_as_long_as_a_lower_level_leads_to_it(world: TableWorld) -> None:
    dag = enumerate_dag(world, progress=False)
    levels = [dag.level(t) for t in range(dag.horizon + 1)]
    level_of = {body: t for t, level in enumerate(levels) for body in level.body_S.tolist()}
    live, table = LiveRows(dag), Table(0, "float64")
    for t in range(dag.horizon, -1, -1):
        plan = live.begin(t, dag.levels.members(t))
        table.begin(plan)
        table.write[plan.slot_S] = levels[t].body_S  # each body's own number
        if len(levels[t].succ_K):
            assert table.read[live.slots_of(levels[t].succ_K)].tolist() == levels[t].succ_K.tolist()
        below = {body for level in levels[:t] for body in level.succ_K.tolist()}
        assert {body for body in below if level_of[body] >= t} <= set(table.write.tolist()), t


@pytest.mark.parametrize(("leaps", "n_rows"), [([], 2), ([19], 3), (range(1, 20), 20)])
def test_rows_go_where_nothing_leaps_and_stay_where_something_does(leaps: Sequence[int], n_rows: int) -> None:
    dag = enumerate_dag(chain(20, leaps), progress=False)
    live = LiveRows(dag)
    assert max(live.begin(t, dag.levels.members(t)).n_rows for t in range(dag.horizon, -1, -1)) == n_rows


@settings(max_examples=60, deadline=None)
@given(winding_worlds())
def test_known_bodies_are_those_that_a_level_and_the_ones_below_it_lead_to(world: TableWorld) -> None:
    dag = enumerate_dag(world, progress=False)
    highest = np.maximum.accumulate([int(dag.level(t).succ_K.max(initial=0)) for t in range(dag.horizon + 1)])
    assert [sizes.known for sizes in dag.levels.sizes] == (highest + 1).tolist()
