"""States of Python worlds in a store that is kept: as JSON, or by the world's own translation, never pickled."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from dag.test_python_worlds import Table
from hypothesis import given, settings
from hypothesis import strategies as st

from empo_bi import (
    GridWorld,
    InvalidStateError,
    ReachCellGoal,
    StoreMismatchError,
    TabularGoalGenerator,
    enumerate_dag,
    load_world,
    open_dag,
)
from empo_bi.dag.world_fingerprint import identity_of
from empo_bi.store.json_states import JsonStates

plain_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda values: st.lists(values, max_size=4).map(tuple),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(plain_values, max_size=5))
def test_plain_states_come_back_as_they_went(states: list[Any]) -> None:
    translator = JsonStates(None)
    back = translator.from_bytes(translator.to_bytes(states))
    assert repr(back) == repr(states)  # which also tells 1 from True and 1.0


def test_numpy_numbers_come_back_as_equal_python_numbers() -> None:
    translator = JsonStates(None)
    state = (np.int64(3), np.float64(0.5), np.bool_(True), np.str_("x"))
    (back,) = translator.from_bytes(translator.to_bytes([state]))
    assert back == state
    assert [type(item) for item in back] == [int, float, bool, str]


@pytest.mark.parametrize("part", [frozenset({1}), b"x", math.nan, math.inf, 1j, SimpleNamespace])
def test_what_json_cannot_keep_is_refused_before_anything_is_written_for_that_level(part: Any, tmp_path: Path) -> None:
    world = Table({(0, 1): [[(1.0, (1, part))]]}, (0, 1))
    message = r"JSON cannot keep.*encode_state.*store=True"
    with pytest.raises(InvalidStateError, match=message):
        enumerate_dag(world, level_fct=lambda state: state[0], store=tmp_path / "dag", progress=False)
    for store in (None, True):
        dag = enumerate_dag(world, level_fct=lambda state: state[0], store=store, progress=False)
        assert dag.states(1) == [(1, part)]
        assert dag.index_of((1, part)) == 1


class Sets(Table):
    """States are (step, frozenset); the world itself says how they are written."""

    def __init__(self, key: str = "sets") -> None:
        empty, one, two = frozenset(), frozenset({1}), frozenset({1, 2})
        super().__init__({(0, empty): [[(0.5, (1, one)), (0.5, (1, two))]], (1, one): [[(1.0, (2, two))]]}, (0, empty))
        self.content_key = key

    def encode_state(self, state: Any) -> Any:
        return [state[0], sorted(state[1])]

    def decode_state(self, value: Any) -> Any:
        return (value[0], frozenset(value[1]))


def test_a_world_may_translate_its_states_itself(tmp_path: Path) -> None:
    memory = enumerate_dag(Sets(), level_fct=lambda state: state[0], progress=False)
    for _ in range(2):
        dag = enumerate_dag(Sets(), level_fct=lambda state: state[0], store=tmp_path / "dag", progress=False)
        assert [dag.states(t) for t in range(3)] == [memory.states(t) for t in range(3)]
    assert open_dag(tmp_path / "dag", world=Sets()).index_of((2, frozenset({1, 2}))) == 3
    assert open_dag(tmp_path / "dag").states(2) == [(2, (1, 2))]  # as written
    with pytest.raises(StoreMismatchError, match=r"was made for a Python world.*not for the world given"):
        open_dag(tmp_path / "dag", world=Sets("others"))


def test_a_translation_that_loses_something_is_an_error(tmp_path: Path) -> None:
    class Lossy(Sets):
        def encode_state(self, state: Any) -> Any:
            return [state[0], []]

    with pytest.raises(InvalidStateError, match="they have to undo each other"):
        enumerate_dag(Lossy(), level_fct=lambda state: state[0], store=tmp_path / "dag", progress=False)


def test_half_a_translation_is_an_error(tmp_path: Path) -> None:
    class Half(Table):
        def encode_state(self, state: Any) -> Any:
            return state

    with pytest.raises(TypeError, match="only one of encode_state and decode_state"):
        enumerate_dag(Half({}, 0), store=tmp_path / "dag", progress=False)


# --- which world a store belongs to -----------------------------------------------------------------------------------


def test_equal_worlds_have_equal_identities_and_others_have_not() -> None:
    def world(**options: Any) -> GridWorld:
        return load_world("ice_rink", **{"max_steps": 4, **options})

    assert identity_of(world()) == identity_of(world())
    assert identity_of(world()) == identity_of(world(max_steps=5))  # the horizon is named beside it
    assert identity_of(world()) != identity_of(world(stumble_probability=0.25))
    assert identity_of(world()) != identity_of(load_world("locked_in"))
    assert identity_of(Table({0: [[(1.0, 1)]]}, 0)) == identity_of(Table({0: [[(1.0, 1)]]}, 0))
    assert identity_of(Table({0: [[(1.0, 1)]]}, 0)) != identity_of(Table({0: [[(1.0, 2)]]}, 0))


def test_planning_does_not_change_a_worlds_identity() -> None:
    world = Table({0: [[(1.0, 1)]]}, 0)
    before = identity_of(world)
    world._dag_cache = ([], {}, [])  # type: ignore[attr-defined]
    world.possible_goal_generator = object()  # type: ignore[attr-defined]
    assert identity_of(world) == before


def test_a_world_that_cannot_be_told_from_others_is_not_taken_for_the_one_before(tmp_path: Path) -> None:
    world = Table({0: [[(1.0, 1)]]}, 0)
    world.cannot_be_pickled = lambda: None  # type: ignore[attr-defined]
    enumerate_dag(world, store=tmp_path / "dag", progress=False)
    with pytest.raises(StoreMismatchError, match=r"cannot tell whether.*content_key.*overwrite=True"):
        enumerate_dag(world, store=tmp_path / "dag", progress=False)
    world.content_key = "now it can"  # type: ignore[attr-defined]
    enumerate_dag(world, store=tmp_path / "dag", overwrite=True, progress=False)
    assert enumerate_dag(world, store=tmp_path / "dag", progress=False).n_states == 2


def test_a_store_made_with_other_levels_is_not_reused(tmp_path: Path) -> None:
    world = Table({(0, 0): [[(0.5, (1, 0)), (0.5, (2, 1))]], (1, 0): [[(1.0, (3, 1))]]}, (0, 0))

    def steps(state: Any) -> int:
        return state[0]

    def places(state: Any) -> int:
        return 10 * state[0] + state[1]

    enumerate_dag(world, level_fct=steps, store=tmp_path / "dag", progress=False)
    assert enumerate_dag(world, level_fct=lambda state: state[0], store=tmp_path / "dag", progress=False).n_states == 4
    with pytest.raises(StoreMismatchError, match=r"the store has \(1, 0\) on level 1, level_fct says 10"):
        enumerate_dag(world, level_fct=places, store=tmp_path / "dag", progress=False)
    with pytest.raises(StoreMismatchError, match=r"differs in levels .*there 'given', here 'derived'"):
        enumerate_dag(world, store=tmp_path / "dag", progress=False)


def test_a_gridworld_of_another_horizon_does_not_open_a_store(tmp_path: Path) -> None:
    enumerate_dag(load_world("ice_rink", max_steps=3), store=tmp_path / "dag", progress=False)
    with pytest.raises(StoreMismatchError, match=r"3 steps>, not for the world given.*4 steps>"):
        open_dag(tmp_path / "dag", world=load_world("ice_rink", max_steps=4))


# --- what a digest may not see ----------------------------------------------------------------------------------------


def walk_with(chance: float, **attributes: Any) -> Any:
    class Walk:
        n_agents = 1
        action_space = SimpleNamespace(n=1)

        def initial_state(self) -> Any:
            return (0, 0)

        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            step, x = state
            return None if step == 3 else [(chance, (step + 1, x)), (1 - chance, (step + 1, x + 1))]

    world = Walk()
    vars(world).update(attributes)
    return world


def test_a_world_whose_closure_changed_is_another_world(tmp_path: Path) -> None:
    assert identity_of(walk_with(0.5)) == identity_of(walk_with(0.5))
    assert identity_of(walk_with(0.5)) != identity_of(walk_with(0.25))


def test_a_world_that_claims_to_be_the_same_but_answers_otherwise_is_noticed(tmp_path: Path) -> None:
    for options in ({"level_fct": lambda state: state[0]}, {}):
        place = tmp_path / str(len(options))
        enumerate_dag(walk_with(0.5, content_key="walk"), store=place, progress=False, **options)
        assert enumerate_dag(walk_with(0.5, content_key="walk"), store=place, progress=False, **options).n_states == 10
        with pytest.raises(StoreMismatchError, match=r"\(0, 0\) on level 0 has other successors in the store"):
            enumerate_dag(walk_with(0.25, content_key="walk"), store=place, progress=False, **options)


def test_named_states_are_all_of_one_kind_or_refused(tmp_path: Path) -> None:
    class A(NamedTuple):
        step: int

    class B(NamedTuple):
        step: int

    for start, follower in ((A(0), B(1)), ((0,), A(1)), (A(0), (1,)), (A(0), "e")):
        world = Table({start: [[(1.0, follower)]]}, start)
        with pytest.raises(InvalidStateError, match="but the initial state is"):
            enumerate_dag(world, level_fct=lambda s: 1 if s == "e" else s[0], store=tmp_path / "x", progress=False)
        shutil.rmtree(tmp_path / "x")


def test_opening_with_a_world_gives_the_bits_of_its_own_goals(tmp_path: Path) -> None:
    world = load_world("asymmetric_freeing", max_steps=3)
    enumerate_dag(world, store=tmp_path / "dag", progress=False)
    assert open_dag(tmp_path / "dag").level(1).n_goals == 18
    world.possible_goal_generator = TabularGoalGenerator([ReachCellGoal(world, 0, (2, 1))])
    level = open_dag(tmp_path / "dag", world=world).level(1)
    assert level.n_goals == 1
    assert level.attained_SHG is not None
    assert level.attained_SHG.any()
