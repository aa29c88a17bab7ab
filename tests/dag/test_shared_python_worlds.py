"""Python worlds that declare ``time_homogeneous``: bodies are shared, only what may differ from step to step is asked."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from dag.test_python_worlds import StandIn, transitions_of
from hypothesis import given, settings
from hypothesis import strategies as st

from empo_bi import InvalidWorldError, TooManyStatesError, enumerate_dag, load_world
from empo_bi.dag import shared_explorer


class SharedStandIn(StandIn):
    time_homogeneous = True


class Walk:
    """One agent on the cells 0 to 3: action 0 stays, action 1 goes on with probability 3/4. Stops early on some steps."""

    time_homogeneous = True
    n_agents = 1
    action_space = SimpleNamespace(n=2)

    def __init__(self, horizon: int = 5, pauses: frozenset[tuple[int, int]] = frozenset()) -> None:
        self.horizon, self.pauses = horizon, pauses
        self.asked: Counter[Any] = Counter()

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, cell = state
        self.asked[state] += 1
        if step == self.horizon or (step, cell) in self.pauses:
            return None
        if actions[0] == 0 or cell == 3:
            return [(1.0, (step + 1, cell))]
        return [(0.25, (step + 1, cell)), (0.75, (step + 1, cell + 1))]


class Unshared(Walk):
    time_homogeneous = False


@pytest.mark.parametrize("name", ["first_steps", "carousel", "ice_rink", "locked_in"])
def test_a_stand_in_that_shares_bodies_has_the_dag_of_the_compiled_world(name: str) -> None:
    world = load_world(name, max_steps=4)
    compiled = enumerate_dag(world, precision="float64", progress=False)
    shared = enumerate_dag(SharedStandIn(world), precision="float64", progress=False)
    assert (shared.level_sizes, shared.n_bodies) == (compiled.level_sizes, compiled.n_bodies)
    assert shared.n_transitions == compiled.n_transitions
    found, expected = transitions_of(shared), transitions_of(compiled)
    assert found.keys() == expected.keys()
    for state, rows in expected.items():
        for row, wanted in zip(found[state], rows, strict=True):
            assert row == pytest.approx(wanted)


def test_each_body_is_expanded_once_and_later_only_asked_whether_it_is_terminal() -> None:
    world = Walk(horizon=5)
    dag = enumerate_dag(world, progress=False)
    assert (dag.n_bodies, dag.level_sizes) == (4, [1, 2, 3, 4, 4, 4])
    # Two profiles where a body is first met, later one question; and one body per level is asked again, to be sure.
    assert world.asked[0, 0] == 2
    assert [world.asked[step, 0] for step in range(1, 6)] == [3, 3, 3, 3, 1]
    assert [world.asked[step, 1] for step in range(1, 6)] == [2, 1, 1, 1, 1]
    assert set(world.asked) == {state for t in range(6) for state in dag.states(t)}


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 6), st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 3))))
def test_terminal_states_may_depend_on_the_step(horizon: int, pauses: frozenset[tuple[int, int]]) -> None:
    shared = enumerate_dag(Walk(horizon, pauses), progress=False)
    unshared = enumerate_dag(Unshared(horizon, pauses), level_fct=lambda state: state[0], progress=False)
    assert shared.level_sizes == unshared.level_sizes
    assert transitions_of(shared) == transitions_of(unshared)
    for t in range(shared.horizon + 1):
        assert [shared.index_of(state) for state in shared.states(t)] == list(
            range(sum(shared.level_sizes[:t]), sum(shared.level_sizes[: t + 1]))
        )


def test_a_body_that_first_comes_to_an_end_may_go_on_later() -> None:
    """Cell 1 ends at step 1; at step 2 it is expanded, in the slice of that level."""
    dag = enumerate_dag(Walk(horizon=4, pauses=frozenset({(1, 1)})), progress=False)
    assert dag.level(1).count_SJ.tolist() == [[1, 2], [0, 0]]
    assert dag.level(2).count_SJ.tolist() == [[1, 2], [1, 2]]
    assert [state for t in range(3) for state in dag.states(t)] == [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]


class Place(NamedTuple):
    step: int
    cell: int


class NamedWalk(Walk):
    def initial_state(self) -> Any:
        return Place(7, 0)

    def transition_probabilities(self, state: Place, actions: Any) -> Any:
        if state.step == 10:
            return None
        return [(1.0, state._replace(step=state.step + 1, cell=(state.cell + actions[0]) % 4))]


def test_named_tuples_stay_named_and_the_first_step_may_be_any(tmp_path: Any) -> None:
    for store in (None, tmp_path / "walk"):
        dag = enumerate_dag(NamedWalk(), store=store, progress=False)
        assert dag.level_values == [7, 8, 9, 10]
        assert dag.states(1) == [Place(8, 0), Place(8, 1)]
        assert isinstance(dag.states(1)[0], Place)
        assert dag.index_of((8, 1)) == 2


BROKEN: dict[str, tuple[Any, Any, str]] = {
    "a state that is no tuple": ("x", None, r"initial state is 'x'; such a world's states are tuples"),
    "a state without a step": (("x", 1), None, r"begin with the step"),
    "a step that does not move on": ((0, 1), (0, 2), r"\(0, 2\) follows \(0, 1\) under profile \[0\].*next step, 1"),
    "a step that is skipped": ((0, 1), (2, 1), r"\(2, 1\) follows \(0, 1\) under profile \[0\].*next step, 1"),
    "a successor that is no tuple": ((0, 1), "x", r"'x' follows \(0, 1\)"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_world_that_breaks_its_promise_is_told_so(case: str) -> None:
    start, successor, message = BROKEN[case]

    class Broken(Walk):
        def initial_state(self) -> Any:
            return start

        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            return [(1.0, successor)]

    with pytest.raises(InvalidWorldError, match=message):
        enumerate_dag(Broken(), progress=False)


def test_a_world_that_goes_round_for_ever_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_explorer, "MAX_LEVELS", 50)
    message = r"more than 50 levels, the last one with \(50, 0\)\. Does the world ever end"
    with pytest.raises(TooManyStatesError, match=message):
        enumerate_dag(Walk(horizon=10**9), progress=False)
    assert enumerate_dag(Walk(horizon=60), max_states=1000, progress=False).horizon == 60


def test_a_world_whose_rules_look_at_the_step_is_told_so() -> None:
    class Liar(Walk):
        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            step, cell = state
            return None if step == 5 else [(1.0, (step + 1, cell + 1 if step == 3 else cell))]

    with pytest.raises(InvalidWorldError, match=r"\(3, 0\) has other successors than the same state at an earlier step"):
        enumerate_dag(Liar(), progress=False)
