"""A world that fits on paper, with numbers that were worked out elsewhere.

Human 0 and robot 1 have two actions each. States are (t, k), from (0, 0) to step 2; k becomes 1 when both play 1, and stays.
The human may want k = 0 or k = 1. Other tests hold the engine to the oracle; these numbers hold both of them to the theory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from empo_bi import (
    Params,
    Solution,
    TabularGoalGenerator,
    WorldModel,
    compute_human_policy_prior,
    compute_markov_chain_value_function,
    compute_robot_policy,
    solve,
)

State = tuple[int, int]
HUMAN, ROBOT = [0], [1]


@dataclass(frozen=True)
class Reach:
    """The goal that k has some value."""

    k: int

    def is_achieved(self, state: State) -> int:
        return int(state[1] == self.k)


class BothGoals:
    def generate(self, state: State, human_agent_index: int) -> Iterator[tuple[Reach, float]]:
        yield Reach(0), 0.5
        yield Reach(1), 0.5


class TwoSteps:
    """As little as the planners need."""

    n_agents = 2
    action_space = SimpleNamespace(n=2)

    def initial_state(self) -> State:
        return 0, 0

    def transition_probabilities(self, state: State, actions: Sequence[int]) -> list[tuple[float, State]] | None:
        t, k = state
        return None if t == 2 else [(1.0, (t + 1, 1 if list(actions) == [1, 1] else k))]


class TwoHomogeneousSteps(TwoSteps):
    time_homogeneous = True


class TwoStepsInTwo(TwoSteps):
    """Every transition comes in two halves, which are the same state."""

    def transition_probabilities(self, state: State, actions: Sequence[int]) -> list[tuple[float, State]] | None:
        found = super().transition_probabilities(state, actions)
        return None if found is None else [(0.5, successor) for _, successor in found for _ in range(2)]


class TwoTimedSteps(TwoSteps):
    """Durations are asked for, and are what they would be anyway."""

    def transition_durations(self, state: State, actions: Sequence[int], transitions: Sequence[Any]) -> list[float]:
        return [1.0] * len(transitions)


class TwoModelledSteps(WorldModel):
    """The same world on the documented base class, with everything on board."""

    agents = ("human", "robot")
    action_space = SimpleNamespace(n=2)
    human_agent_indices = HUMAN
    robot_agent_indices = ROBOT

    def __init__(self) -> None:
        self.possible_goal_generator = TabularGoalGenerator([Reach(0), Reach(1)])
        self._state = (0, 0)

    def get_state(self) -> State:
        return self._state

    def set_state(self, state: State) -> None:
        self._state = state

    def reset(self, **_: Any) -> Any:
        self._state = (0, 0)
        return self._state, {}

    def transition_probabilities(self, state: State, actions: Sequence[int]) -> list[tuple[float, State]] | None:
        return TwoSteps().transition_probabilities(state, actions)


WORLDS = {
    "plain": (TwoSteps, None),
    "with levels": (TwoSteps, lambda state: state[0]),
    "with levels far apart": (TwoSteps, lambda state: 100 * state[0] - 150),
    "time-homogeneous": (TwoHomogeneousSteps, None),
    "in halves": (TwoStepsInTwo, None),
    "timed": (TwoTimedSteps, None),
    "on the base class": (TwoModelledSteps, None),
}
HUMAN_PARAMS = {"beta_h": 2.0, "gamma_h": 0.9}
ROBOT_PARAMS = {"beta_r": 3.0, "gamma_r": 0.8, "zeta": 2.0, "xi": 1.0, "eta": 1.1}

STATES = [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1)]
# state, prior for k = 0, prior for k = 1, pi_r, V_h^e of both goals, V_r
TABLE = [
    ((0, 0), [1, 0], [0.5, 0.5], [0.512817, 0.487183], [1, 0.413783], -3.064551),
    ((1, 0), [1, 0], [0.5, 0.5], [0.5, 0.5], [1, 0.25], -1.797284),
    ((1, 1), [0.5, 0.5], [1, 0], [0.5, 0.5], [0, 1], -1.921227),
]
CHAIN = [{1: 0.878204, 2: 0.121796}, {3: 0.875, 4: 0.125}, {4: 1.0}, {}, {}]


def near(value: Any) -> Any:
    """Six digits were printed."""
    return pytest.approx(value, abs=6e-7)


@dataclass
class Answers:
    """What the documented functions return."""

    prior: Any
    Vh: Any
    policy: Any
    Vr: Any
    Vhe: Any
    chain: Any


def plan(kind: str, *, optimistic: bool = False) -> Answers:
    """Both documented functions, one after the other."""
    make, level_fct = WORLDS[kind]
    world: Any = make()
    generator = None if isinstance(world, TwoModelledSteps) else BothGoals()
    options: dict[str, Any] = {"use_float16": False, "quiet": True, "level_fct": level_fct}
    prior, Vh = compute_human_policy_prior(
        world, HUMAN, generator, optimistic=optimistic, return_Vh=True, **HUMAN_PARAMS, **options
    )
    rest = compute_robot_policy(
        world, HUMAN, ROBOT, generator, prior, gamma_h=0.9, return_values=True, return_markov_chain=True, **ROBOT_PARAMS,
        **options,
    )  # fmt: skip
    return Answers(prior, Vh, *rest)


def solved(kind: str, *, optimistic: bool = False) -> Solution:
    make, level_fct = WORLDS[kind]
    params = Params(optimistic=optimistic, **HUMAN_PARAMS, **ROBOT_PARAMS)
    world: Any = make()
    if isinstance(world, TwoModelledSteps):
        return solve(world, params, precision="float64", progress=False)
    return solve(
        world, params, human_agent_indices=HUMAN, robot_agent_indices=ROBOT, possible_goal_generator=BothGoals(),
        level_fct=level_fct, precision="float64", progress=False,
    )  # fmt: skip


each_world = pytest.mark.parametrize("kind", WORLDS)


@each_world
def test_the_table_through_the_documented_functions(kind: str) -> None:
    found = plan(kind)
    for state, prior_0, prior_1, pi_r, Vhe, Vr in TABLE:
        assert found.prior(state, 0, Reach(0)).tolist() == near(prior_0)
        assert found.prior(state, 0, Reach(1)).tolist() == near(prior_1)
        assert found.policy(state) == near({(0,): pi_r[0], (1,): pi_r[1]})
        assert [found.Vhe[state][0].get(Reach(k), 0) for k in (0, 1)] == near(Vhe)
        assert found.Vr[state] == near(Vr)


@each_world
def test_zeros_are_absent_and_terminal_states_have_no_policy(kind: str) -> None:
    found = plan(kind)
    assert dict(found.Vh) == {}
    assert Reach(0) not in found.Vhe[1, 1][0]
    assert set(found.prior.values) == set(found.policy.values) == set(found.Vhe) == {(0, 0), (1, 0), (1, 1)}
    assert found.Vr[2, 0] == found.Vr[2, 1] == -1e-10
    assert len(found.Vr) == 5
    assert found.policy((2, 0)) == {}
    with pytest.raises(KeyError):
        found.prior((2, 1), 0, Reach(1))


@each_world
def test_the_chain_through_both_ways(kind: str) -> None:
    for chain in (plan(kind).chain, solved(kind).markov_chain):
        assert [dict(row) for row in chain] == [near(row) for row in CHAIN]
        assert chain.states == STATES


@each_world
def test_the_optimistic_variant(kind: str) -> None:
    found = plan(kind, optimistic=True)
    assert found.prior((1, 0), 0, Reach(1)).tolist() == near([0.119203, 0.880797])
    assert found.prior((0, 0), 0, Reach(1)).tolist() == near([0.397818, 0.602182])
    assert {state: dict(by_human[0]) for state, by_human in found.Vh.items()} == {
        (1, 0): near({Reach(1): 0.880797}),
        (0, 0): near({Reach(1): 0.917539}),
    }
    assert found.Vr[0, 0] == near(-2.723658)
    assert found.policy((0, 0))[0,] == near(0.546970)
    assert found.Vhe[0, 0][0][Reach(1)] == near(0.561036)


@each_world
def test_the_table_through_solve(kind: str) -> None:
    solution = solved(kind)
    assert solution.goals == {0: [Reach(0), Reach(1)]}
    for state, prior_0, prior_1, pi_r, Vhe, Vr in TABLE:
        t, s = solution.dag.place_of(state)
        values = solution.values
        assert values.Vh_m[t][s].tolist() == [[0, 0]]
        assert values.Vh_e[t][s].tolist() == [near(Vhe)]
        assert values.V_r[t][s] == near(Vr)
        assert solution.pi_h[t][s].tolist() == [[near(prior_0), near(prior_1)]]
        assert solution.pi_r[t][s].tolist() == near(pi_r)
        # X_h = (V_0² + V_1²) / 2, U_r = -X_h ** -1.1
        power = (Vhe[0] ** 2 + Vhe[1] ** 2) / 2
        assert values.X_h[t][s].tolist() == near([power])
        assert values.U_r[t][s] == pytest.approx(-(power**-1.1), rel=2e-6)
        report = solution.at(state)
        assert (report.V_r, report.power[0]) == (near(Vr), near(power))
        assert report.robot_policy == near({(0,): pi_r[0], (1,): pi_r[1]})
        assert [after for _, _, _, after, _ in report.goals[0]] == near(Vhe)


@each_world
def test_the_optimistic_variant_through_solve(kind: str) -> None:
    solution = solved(kind, optimistic=True)
    values = solution.values
    assert values.Vh_m[0].tolist() == [[near([0, 0.917539])]]
    assert solution.Vh[1, 0][0][Reach(1)] == near(0.880797)
    assert solution.prior((1, 0), 0, Reach(1)).tolist() == near([0.119203, 0.880797])
    assert solution.pi_h[0][0].tolist() == [[[1, 0], near([0.397818, 0.602182])]]
    assert values.V_r[0].tolist() == near([-2.723658])
    assert solution.pi_r[0].tolist() == [near([0.546970, 0.453030])]
    assert values.Vh_e[0].tolist() == [[near([1, 0.561036])]]


def test_robot_values_of_the_last_step_by_hand() -> None:
    """In (1, 0) both robot actions lead to the end, so Q is its discounted value; V_r is weight times reward plus that."""
    solution = solved("plain")
    t, s = solution.dag.place_of((1, 0))
    assert solution.Q_r[t][s].tolist() == pytest.approx([-0.8e-10, -0.8e-10], rel=1e-12)
    weight = (1 - 0.8) / -np.log(0.8)
    power = (1 + 0.25**2) / 2
    assert solution.values.V_r[t][s] == pytest.approx(-weight * power**-1.1 - 0.8e-10, rel=1e-12)


def test_the_probability_to_end_with_k_equal_to_1() -> None:
    def ends_there(state: State) -> list[float]:
        return [float(state == (2, 1))]

    values = compute_markov_chain_value_function(plan("plain").chain, ends_there, gamma=1.0, states=STATES)
    assert values[0, 0] == near(0.878204 * 0.125 + 0.121796)
    assert values[:, 0].tolist() == near([values[0, 0], 0.125, 1, 0, 1])
