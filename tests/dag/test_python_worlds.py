"""Worlds written in Python: the same DAG as the compiled path, other levels, and what is said about bad worlds."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_tools import run_python

from empo_bi import (
    GridWorld,
    InvalidStateError,
    InvalidWorldError,
    StoreMismatchError,
    TooManyStatesError,
    enumerate_dag,
    load_world,
)


class StandIn:
    """A gridworld behind the plain interface of a Python world, as the public EMPO environments have it."""

    def __init__(self, world: GridWorld) -> None:
        self._world = world
        self.agents = world.agents
        self.action_space = SimpleNamespace(n=int(world.action_space.n))

    def reset(self) -> None:
        self._world.reset()

    def get_state(self) -> Any:
        return self._world.get_state()

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return self._world.transition_probabilities(state, actions)


class Table:
    """A world of one agent given as {state: [answer of each action]}; states not listed are terminal."""

    def __init__(self, table: dict[Any, list[Any]], start: Any, n_actions: int = 1) -> None:
        self.n_agents = 1
        self.action_space = SimpleNamespace(n=n_actions)
        self._table, self._start = table, start

    def initial_state(self) -> Any:
        return self._start

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return self._table[state][actions[0]] if state in self._table else None


def transitions_of(dag: Any) -> dict[Any, list[dict[Any, float]]]:
    """state -> one {successor: probability} per profile, through the numbers that the DAG has given."""
    states = {}
    for t in range(dag.horizon + 1):
        states |= {(t, int(body)): state for body, state in zip(dag.level(t).body_S, dag.states(t), strict=True)}
    result = {}
    for t in range(dag.horizon + 1):
        level = dag.level(t)
        ends = level.count_SJ.ravel().cumsum().reshape(level.count_SJ.shape)
        for s, state in enumerate(dag.states(t)):
            rows = []
            for j, count in enumerate(level.count_SJ[s].tolist()):
                entries = range(int(ends[s, j]) - count, int(ends[s, j]))
                # In a gridworld the successor is on the next level, elsewhere a body has one level only.
                rows.append({find(states, t, int(level.succ_K[k])): float(level.prob_K[k]) for k in entries})
            result[state] = rows
    return result


def find(states: dict[tuple[int, int], Any], t: int, body: int) -> Any:
    if (t + 1, body) in states:
        return states[t + 1, body]
    (state,) = [state for (level, other), state in states.items() if other == body and level > t]
    return state


@pytest.mark.parametrize("name", ["first_steps", "carousel", "ice_rink", "locked_in"])
@pytest.mark.parametrize("level_fct", [None, lambda state: state[0]], ids=["derived levels", "steps"])
def test_a_stand_in_has_the_same_dag_as_the_compiled_world(name: str, level_fct: Any) -> None:
    world = load_world(name, max_steps=3)
    compiled = enumerate_dag(world, progress=False)
    plain = enumerate_dag(StandIn(world), level_fct=level_fct, progress=False)
    assert plain.level_sizes == compiled.level_sizes
    assert [set(plain.states(t)) for t in range(4)] == [set(compiled.states(t)) for t in range(4)]
    found, expected = transitions_of(plain), transitions_of(compiled)
    assert found.keys() == expected.keys()
    for state, rows in expected.items():
        assert len(found[state]) == len(rows)
        for row, wanted in zip(found[state], rows, strict=True):
            assert row == pytest.approx(wanted)


def test_levels_may_have_any_values_and_be_skipped() -> None:
    level = {"a": -7, "b": 0, "c": 100, "d": 100}
    table = {"a": [[(0.5, "b"), (0.5, "c")], [(1.0, "d")]], "b": [[(1.0, "c")], [(0.25, "c"), (0.75, "d")]]}
    dag = enumerate_dag(Table(table, "a", n_actions=2), level_fct=level.__getitem__, progress=False)
    assert dag.level_values == [-7, 0, 100]
    assert dag.level_sizes == [1, 1, 2]
    assert [dag.states(t) for t in range(3)] == [["a"], ["b"], ["c", "d"]]
    assert transitions_of(dag) == {"a": [{"b": 0.5, "c": 0.5}, {"d": 1.0}], "b": [{"c": 1.0}, {"c": 0.25, "d": 0.75}]} | {
        "c": [{}, {}],
        "d": [{}, {}],
    }
    assert [dag.index_of(state) for state in "abcd"] == [0, 1, 2, 3]
    with pytest.raises(InvalidStateError, match="'z' cannot be reached"):
        dag.index_of("z")


@pytest.mark.parametrize("answer", ["raises", "no number"])
def test_a_level_function_that_cannot_read_stored_states_is_told_from_the_one_before(tmp_path: Path, answer: str) -> None:
    world = StandIn(load_world("basics/first_steps", max_steps=2))
    enumerate_dag(world, store=tmp_path / "dag", level_fct=lambda state: state[0], progress=False)

    def other(state: Any) -> Any:
        if state[0] == 0:
            return 0
        return {}["nothing"] if answer == "raises" else "far"

    with pytest.raises(StoreMismatchError, match=r"the store has .* on level 1, level_fct says .*; use the function"):
        enumerate_dag(world, store=tmp_path / "dag", level_fct=other, progress=False)


def test_without_a_level_function_the_level_is_the_longest_path() -> None:
    table = {"a": [[(0.5, "d"), (0.5, "b")]], "b": [[(1.0, "c")]], "c": [[(1.0, "d")]]}
    dag = enumerate_dag(Table(table, "a"), progress=False)
    assert [dag.states(t) for t in range(4)] == [["a"], ["b"], ["c"], ["d"]]


def test_a_state_may_end_the_world_early() -> None:
    table = {0: [[(0.5, 1), (0.5, 2)]], 2: [[(1.0, 3)]]}
    dag = enumerate_dag(Table(table, 0), progress=False)
    assert [dag.states(t) for t in range(3)] == [[0], [1, 2], [3]]
    assert dag.level(1).count_SJ.tolist() == [[0], [1]]


def test_states_may_be_any_hashable_objects_and_impossible_successors_are_dropped() -> None:
    one, other = frozenset({1, 2}), (None, "x", 3.5)
    dag = enumerate_dag(Table({one: [[(1.0, other), (0.0, "never")]]}, one), progress=False)
    assert dag.n_states == 2
    assert dag.states(1) == [other]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**32))
def test_random_layered_worlds_come_out_as_they_went_in(depth: int, n_actions: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table: dict[Any, list[Any]] = {}
    for t in range(depth):
        for i in range(3):
            answers = []
            for _ in range(n_actions):
                targets = {(int(rng.integers(t + 1, depth + 1)), int(rng.integers(3))) for _ in range(3)}
                weights = rng.dirichlet(np.ones(len(targets)))
                answers.append(list(zip(weights.tolist(), sorted(targets), strict=True)))
            table[t, i] = answers
    world = Table(table, (0, 0), n_actions)
    dag = enumerate_dag(world, level_fct=lambda state: state[0], precision="float64", progress=False)
    for state, rows in transitions_of(dag).items():
        expected = [{target: weight for weight, target in answer} for answer in table.get(state, [[]] * n_actions)]
        for row, wanted in zip(rows, expected, strict=True):
            assert row == pytest.approx(wanted)


BAD_WORLDS: dict[str, tuple[Any, Any, str]] = {
    "a successor on a lower level": ({1: [[(1.0, 0)]]}, lambda state: state, r"0 on level 0 follows 1 on level 1"),
    "a successor on the same level": ({1: [[(1.0, 2)]]}, lambda state: 0, r"2 on level 0 follows 1 on level 0"),
    "a cycle": ({1: [[(1.0, 2)]], 2: [[(1.0, 3)]], 3: [[(1.0, 2)]]}, None, r"a cycle through [23]; time has to move"),
    "a state that follows itself": ({1: [[(1.0, 1)]]}, None, r"a cycle through 1"),
    "no answer for some profiles": ({1: [None, [(1.0, 2)]]}, None, r"profile \[0\] has no transitions in 1 although others"),
    "a negative probability": ({1: [[(1.5, 2), (-0.5, 3)]]}, None, r"in state 1 has probabilities \[1.5, -0.5\]"),
    "probabilities that are no numbers": ({1: [[(float("nan"), 2)]]}, None, r"has probabilities \[nan\]"),
    "too little probability": ({1: [[(0.5, 2)]]}, None, r"profile \[0\] in state 1: the probabilities sum to 0.5, not to 1"),
    "no successors at all": ({1: [[]]}, None, r"sum to 0.0, not to 1"),
    "an unhashable successor": ({1: [[(1.0, [2])]]}, None, r"a successor of 1 under profile \[0\] is not hashable: \[2\]"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_WORLDS)
def test_a_bad_world_is_named_with_state_and_profile(case: str) -> None:
    table, level_fct, message = BAD_WORLDS[case]
    with pytest.raises(InvalidWorldError, match=message):
        enumerate_dag(Table(table, 1, n_actions=len(table[1])), level_fct=level_fct, progress=False)


def test_a_name_is_no_world() -> None:
    with pytest.raises(TypeError, match=r"'off_switch' is not a world.*load_world"):
        enumerate_dag("off_switch")


def test_an_unhashable_start_is_an_error() -> None:
    with pytest.raises(InvalidWorldError, match="the initial state is not hashable"):
        enumerate_dag(Table({}, [1]), progress=False)


def test_a_world_that_never_ends_is_stopped_at_the_limit() -> None:
    class Endless(Table):
        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            return [(1.0, state + 1)]

    with pytest.raises(
        TooManyStatesError, match=r"more than max_states=1,000 states, the last one 1000. Does the world ever end"
    ):
        enumerate_dag(Endless({}, 0), max_states=1000, progress=False)


class LargeTable:
    """A world with a table of 8 MB, which tells in a file how it finds that table; it writes to it, too."""

    n_agents, action_space = 1, SimpleNamespace(n=1)

    def __init__(self, notes: Path) -> None:
        self.table, self.notes = np.zeros(1_000_000), notes

    def initial_state(self) -> tuple[int, int]:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, place = state
        if step == 2:
            return None
        self.table[place] += 1
        if step == 0:
            return [(1 / 9000, (1, n)) for n in range(9000)]
        if place % 1000 == 0:
            (self.notes / f"{os.getpid()}").write_text(type(self.table).__name__)
        return [(1.0, (2, 0))]


def test_worker_processes_map_the_arrays_of_a_world_and_load_no_kernels(tmp_path: Path) -> None:
    dag = enumerate_dag(LargeTable(tmp_path), level_fct=lambda state: state[0], workers=2, progress=False)
    assert dag.level_sizes == [1, 9000, 1]
    told = {int(path.name): path.read_text() for path in tmp_path.iterdir()}
    assert {told[process] for process in told if process != os.getpid()} == {"memmap"}


def test_what_worker_processes_load_is_small() -> None:
    script = "import sys, empo_bi.dag.python_world; print('numba' in sys.modules, 'scipy' in sys.modules)"
    child = run_python(script)
    assert child.stdout.split() == ["False", "False"], child.stderr
