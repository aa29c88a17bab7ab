"""What comes about under both policies: probabilities of states, of events by time, and of being the first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracle import planning
from oracle.gridworld import parse
from planning_worlds import At, Places, Ring, TwoSteps

import empo_bi
from empo_bi import Params, Solution, events, first_of, goals, load_world, probability_by_time, solve, worlds
from empo_bi.world.fields import StateFields

EXACT: dict[str, Any] = {"precision": "float64", "progress": False}
LEFT, RIGHT = events.thing_gone("rock", (2, 2)), events.thing_gone("rock", (6, 2))


def solved(name: str, steps: int, **params: Any) -> Solution:
    return solve(load_world(name, max_steps=steps), Params(gamma_h=0.98, gamma_r=0.95, **params), **EXACT)


# --- plain references -------------------------------------------------------------------------------------------------


def first_by_hand(chain: list[dict[int, float]], states: list[Any], asked: list[Any]) -> tuple[list[float], float, float]:
    """First, tie and none of functions of a state, along a chain in topological order that begins with the initial state."""
    mass = [1.0] + [0.0] * (len(states) - 1)
    first, tie, none = [0.0] * len(asked), 0.0, 0.0
    for i, state in enumerate(states):
        holding = [e for e, ask in enumerate(asked) if ask(state)]
        if len(holding) == 1:
            first[holding[0]] += mass[i]
        elif holding:
            tie += mass[i]
        elif not chain[i]:
            none += mass[i]
        else:
            for j, p in chain[i].items():
                mass[j] += mass[i] * p
    return first, tie, none


def steps_by_powers(solution: Solution) -> list[np.ndarray]:
    """Probabilities of all states after 0, 1, 2, ... transitions, in the order of the chain."""
    mass = np.zeros(solution.dag.n_states)
    mass[0] = 1.0
    found = [mass]
    for _ in range(solution.dag.horizon):
        found.append(found[-1] @ solution.markov_chain.matrix)
    return found


def is_gone(x: int, y: int) -> Any:
    return lambda state: ("rock", x, y) not in state[2]


# --- probabilities of states ------------------------------------------------------------------------------------------

WORLDS = [
    ("mirror_freeing", 7), ("asymmetric_freeing", 6), ("ice_rink", 4), ("slippery_ledge", 4), ("after_you", 4),
    ("shortcut_that_may_close", 4), ("locked_in", 4), ("lava_lid", 4), ("heavy_boots", 4), ("carousel", 5),
]  # fmt: skip


@pytest.mark.parametrize(("name", "steps"), WORLDS)
def test_reached_is_what_powers_of_the_matrix_give(name: str, steps: int) -> None:
    solution = solved(name, steps)
    expected = sum(steps_by_powers(solution))[solution.markov_chain.place_N]
    found = np.concatenate(list(solution.reached))
    assert np.abs(found - expected).max() < 1e-14
    assert all(mass.sum() == pytest.approx(1, abs=1e-13) for mass in solution.reached), "every step has a state"


def test_reached_has_a_number_for_each_state_in_order() -> None:
    solution = solved("mirror_freeing", 6)
    assert [len(mass) for mass in solution.reached] == solution.dag.level_sizes
    assert solution.reached[0].tolist() == [1.0]
    assert {mass.dtype for mass in solution.reached} == {np.dtype(np.float64)}
    assert solution.reached is solution.reached


def test_states_of_worlds_that_leap_over_levels() -> None:
    solution = solve(Ring(), Params(gamma_r=0.9), **EXACT)
    expected = sum(steps_by_powers(solution))[solution.markov_chain.place_N]
    assert np.abs(np.concatenate(list(solution.reached)) - expected).max() < 1e-15
    assert any(mass.sum() < 0.99 for mass in solution.reached), "some levels are leapt over"


@pytest.mark.parametrize("level_fct", [None, lambda state: state[0], lambda state: 3 * state[0] - 7])
def test_it_does_not_matter_where_levels_come_from(level_fct: Any) -> None:
    solution = solve(Ring(), Params(gamma_r=0.9), level_fct=level_fct, **EXACT)
    arrived = first_of(solution, [At(3), At(2)])
    reference = first_of(solve(Ring(), Params(gamma_r=0.9), **EXACT), [At(3), At(2)])
    assert arrived.first == pytest.approx(reference.first, rel=1e-12)
    assert arrived.none == pytest.approx(reference.none, rel=1e-12)


# --- against the oracle -----------------------------------------------------------------------------------------------


def oracle_chain(world: Any, humans: list[int], robots: list[int], **robot: Any) -> tuple[list[dict[int, float]], list[Any]]:
    goals = world.possible_goal_generator
    found = planning.robot_policy(world, humans, robots, goals, **robot)
    return found["chain"], found["states"]


class OracleRing(Ring):
    n_agents, n_actions = 3, 2


class OracleTwoSteps(TwoSteps):
    n_agents, n_actions = 2, 2


@pytest.mark.parametrize(
    ("world", "asked"),
    [
        (OracleRing(), [lambda s: s[1] == 3, lambda s: s[1] == 2]),
        (OracleRing(6), [lambda s: s[1] == 3 and s[0] > 2, lambda s: s[0] >= 3, lambda s: s[1] == 1]),
        (OracleTwoSteps(5), [lambda s: s[1] == 1]),
        (OracleTwoSteps(3), [lambda s: s[0] == 2, lambda s: s == (2, 1)]),
    ],
)
def test_first_of_along_the_chain_of_the_oracle(world: Any, asked: list[Any]) -> None:
    chain, states = oracle_chain(world, list(world.human_agent_indices), list(world.robot_agent_indices), gamma_r=0.9)
    first, tie, none = first_by_hand(chain, states, asked)
    found = first_of(solve(world, Params(gamma_r=0.9), **EXACT), asked)
    assert found.first == pytest.approx(first, abs=1e-12)
    assert found.tie == pytest.approx(tie, abs=1e-12)
    assert found.none == pytest.approx(none, abs=1e-12)


def paths_of(chain: list[dict[int, float]], i: int = 0) -> Iterator[tuple[Fraction, list[int]]]:
    """Every path from a state to the end, with its probability: the exact product of what the chain says."""
    if not chain[i]:
        yield Fraction(1), [i]
    for j, p in chain[i].items():
        for q, path in paths_of(chain, j):
            yield Fraction(p) * q, [i, *path]


def test_first_of_is_a_sum_over_paths() -> None:
    world, asked = OracleRing(), [lambda s: s[1] == 2, lambda s: s[0] >= 3, lambda s: s[1] == 1]
    chain, states = oracle_chain(world, [0, 2], [1], gamma_r=0.9)
    outcome = {key: Fraction(0) for key in (0, 1, 2, "tie", "none")}
    for p, path in paths_of(chain):
        holding = next(filter(None, ([e for e in range(3) if asked[e](states[i])] for i in path)), ["none"])
        outcome["tie" if len(holding) > 1 else holding[0]] += p  # type: ignore[index]
    found = first_of(solve(world, Params(gamma_r=0.9), **EXACT), asked)
    assert [*found.first, found.tie, found.none] == pytest.approx([float(p) for p in outcome.values()], abs=1e-12)


@pytest.mark.parametrize(
    ("name", "steps", "cells"),
    [
        ("basics/carousel", 6, None),
        ("hazards/ice_rink", 3, None),
        ("pushing/wrong_push", 3, None),
        ("magic/shortcut_that_may_close", 3, None),
        ("jobst_challenges/asymmetric_freeing", 3, [(2, 2), (8, 2)]),
    ],
)
def test_events_of_gridworlds_along_the_chain_of_the_oracle(name: str, steps: int, cells: Any) -> None:
    path = worlds.find(name)
    assert path is not None
    plain = parse(path.read_text(), max_steps=steps)
    world = load_world(name, max_steps=steps)
    found = planning.robot_policy(
        planning.GridPlanningWorld(plain), world.human_agent_indices, world.robot_agent_indices, planning.GridGoals(plain),
        gamma_r=0.9, beta_r=7.0,
    )  # fmt: skip
    solution = solve(world, Params(gamma_r=0.9, beta_r=7.0), **EXACT)
    agent, (x, y, *_) = len(world.agents) - 1, world.initial_state()[1][-1]
    asked: list[Any] = [lambda s: s[1][agent][:2] != (x, y), lambda s: s[1][0][2] == 3]
    ours: list[Any] = [
        events.by_fields(lambda fields: ~fields.inside(agent, (x, y))),
        events.by_fields(lambda fields: fields.direction(0) == 3),
    ]
    if cells is not None:
        asked, ours = asked + [is_gone(*cell) for cell in cells], ours + [events.thing_gone("rock", cell) for cell in cells]
    first, tie, none = first_by_hand(found["chain"], found["states"], asked)
    assert sum(first) + tie > 0
    for told in (asked, ours):
        answer = first_of(solution, told)
        assert [*answer.first, answer.tie, answer.none] == pytest.approx([*first, tie, none], abs=1e-10)


def test_a_prior_of_ones_own_is_followed() -> None:
    class Both:
        def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
            return [(0.25, [0]), (0.75, [1])]

        def profile_distribution_with_fixed_goal(self, *_: Any) -> list[tuple[float, list[int]]]:
            return [(1.0, [0])]

    world = TwoSteps(3)
    solution = solve(world, Params(beta_r=0.0), human_policy_prior=Both(), **EXACT)
    assert probability_by_time(solution, At(1)) == pytest.approx([0, 0.375, 1 - 0.625**2, 1 - 0.625**3], rel=1e-14)
    expected = sum(steps_by_powers(solution))[solution.markov_chain.place_N]
    assert np.concatenate(list(solution.reached)) == pytest.approx(expected, rel=1e-14)


def test_a_prior_of_ones_own_in_a_gridworld() -> None:
    world = load_world("mirror_freeing", max_steps=5)

    def uniform(state: Any, human: int, goal: Any = None) -> list[float]:
        return [0.25] * 4

    solution = solve(world, Params(), human_policy_prior=uniform, **EXACT)
    expected = sum(steps_by_powers(solution))[solution.markov_chain.place_N]
    assert np.abs(np.concatenate(list(solution.reached)) - expected).max() < 1e-15


# --- events -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "steps"), [("mirror_freeing", 9), ("asymmetric_freeing", 8)])
def test_who_is_freed_first_along_the_chain(name: str, steps: int) -> None:
    solution = solved(name, steps, beta_r=20.0)
    rocks = [(x, y) for _, x, y in solution.world.initial_state()[2]]
    chain = list(solution.markov_chain)
    first, tie, none = first_by_hand(chain, solution.markov_chain.states, [is_gone(x, y) for x, y in rocks])
    fast = first_of(solution, [events.thing_gone("rock", cell) for cell in rocks])
    slow = first_of(solution, [is_gone(x, y) for x, y in rocks])
    assert fast.first == pytest.approx(first, abs=1e-14)
    assert fast.tie == pytest.approx(tie, abs=1e-14)
    assert fast.none == pytest.approx(none, abs=1e-14)
    assert slow.first.tolist() == fast.first.tolist()
    assert slow.by_time.tolist() == fast.by_time.tolist()


def test_a_mirror_image_is_freed_as_often() -> None:
    found = first_of(solved("mirror_freeing", 11, beta_r=30.0), [LEFT, RIGHT])
    assert found.first[0] == pytest.approx(found.first[1], rel=1e-12)
    assert found.first[0] > 0.4
    assert found.first.sum() + found.tie + found.none == pytest.approx(1, abs=1e-14)


def test_all_ways_to_say_the_same() -> None:
    solution = solved("asymmetric_freeing", 8)
    world = solution.world

    class Own(empo_bi.PossibleGoal):
        def is_achieved(self, state: Any) -> int:
            return int(state[1][1][:2] == (8, 2))

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 1

    @events.by_fields
    def out(fields: Any) -> Any:
        return (fields.cell_xy(1) == (8, 2)).all(axis=1)

    ways = [
        empo_bi.ReachCellGoal(world, 1, (8, 2)), empo_bi.ReachRectangleGoal(world, 1, (8, 2, 8, 2)), Own(), out,
        events.agent_in(1, (8, 2)), events.agent_in(1, (8, 2, 8, 2)), lambda state: state[1][1][:2] == (8, 2),
    ]  # fmt: skip
    found = probability_by_time(solution, ways)
    assert found.shape == (7, 9)
    assert found[0, -1] > 0
    for row, way in zip(found, ways, strict=True):
        assert row.tolist() == found[0].tolist()
        assert probability_by_time(solution, way).tolist() == row.tolist(), "together or alone"


def test_probability_by_time_grows_and_begins_with_the_initial_state() -> None:
    solution = solved("mirror_freeing", 9)
    found = probability_by_time(solution, LEFT)
    assert found.shape == (10,)
    assert found[0] == 0
    assert (np.diff(found) >= 0).all()
    assert found[-1] <= 1 + 1e-14
    assert probability_by_time(solution, lambda state: True).tolist() == [1.0] * 10
    assert probability_by_time(solution, lambda state: state[0] == 3) == pytest.approx([0] * 3 + [1] * 7, abs=1e-14)
    assert probability_by_time(solution, lambda state: False).tolist() == [0.0] * 10


def test_one_event_alone_is_the_first_if_it_happens() -> None:
    solution = solved("mirror_freeing", 9)
    alone = first_of(solution, [LEFT])
    assert alone.by_time[:, 0].tolist() == probability_by_time(solution, LEFT).tolist()
    assert alone.tie == 0
    assert alone.none == pytest.approx(1 - alone.first[0], abs=1e-14)


def test_the_order_of_events_permutes_the_answer() -> None:
    solution = solved("asymmetric_freeing", 8)
    asked = [events.thing_gone("rock", (2, 2)), events.agent_in(2, (7, 2)), events.agent_in(2, (2, 2, 3, 2))]
    reference = first_of(solution, asked)
    for order in ([2, 0, 1], [1, 0, 2]):
        found = first_of(solution, [asked[e] for e in order])
        assert found.first.tolist() == reference.first[order].tolist()
        assert (found.tie, found.none) == (reference.tie, reference.none)


def test_what_holds_at_once_is_a_tie() -> None:
    solution = solved("mirror_freeing", 7)
    assert (first_of(solution, [LEFT, LEFT]).first == 0).all()
    assert first_of(solution, [LEFT, LEFT]).tie == pytest.approx(first_of(solution, [LEFT]).first[0], abs=1e-15)
    at_once = first_of(solution, [lambda s: True, lambda s: s[0] == 0, LEFT])
    assert (at_once.first.tolist(), at_once.tie, at_once.none) == ([0, 0, 0], 1, 0)


def test_functions_are_asked_only_about_states_that_can_come_about() -> None:
    solution = solve(TwoSteps(3), Params(), **EXACT)
    asked: list[Any] = []

    def look(state: Any) -> bool:
        asked.append(state)
        return state == (1, 0)

    probability_by_time(solution, look)
    assert len(asked) == len(set(asked))
    assert (2, 0) not in asked, "(1, 0) comes first"


# --- closed forms -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tick:
    """The goal that the step is even, or odd, which is attained soon in any world."""

    rest: int

    def is_achieved(self, state: Any) -> int:
        return int(state[0] % 2 == self.rest)


class Drunkard:
    """A walk on whole numbers whatever the one human does, for so many steps; the state is (step, place)."""

    agents = ("human",)
    human_agent_indices = (0,)
    robot_agent_indices = ()
    action_space = SimpleNamespace(n=2)

    def __init__(self, steps: int, *, is_homogeneous: bool, p: float = 0.5) -> None:
        self.steps, self.time_homogeneous, self.p = steps, is_homogeneous, p
        self.possible_goal_generator = self

    def generate(self, state: Any, human: int) -> Iterator[tuple[Any, float]]:
        yield Tick(0), 0.5
        yield Tick(1), 0.5

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, x = state
        return None if step == self.steps else [(self.p, (step + 1, x + 1)), (1 - self.p, (step + 1, x - 1))]


@pytest.mark.parametrize("is_homogeneous", [False, True])
def test_a_walk_is_binomial_and_obeys_the_reflection_principle(is_homogeneous: bool) -> None:
    n = 12
    solution = solve(Drunkard(n, is_homogeneous=is_homogeneous), Params(), **EXACT)
    for t, mass in enumerate(solution.reached):
        found = {state[1]: p for state, p in zip(solution.dag.states(t), mass, strict=True)}
        assert found == pytest.approx({2 * k - t: math.comb(t, k) / 2**t for k in range(t + 1)}, rel=1e-13)
    for a in (1, 2, 5):
        end = {2 * k - n: math.comb(n, k) / 2**n for k in range(n + 1)}
        expected = sum(p for x, p in end.items() if x >= a) + sum(p for x, p in end.items() if x > a)
        assert probability_by_time(solution, At(a))[-1] == pytest.approx(expected, rel=1e-13)


def test_a_gambler_is_ruined_as_often_as_books_say() -> None:
    p, up, down, n = 0.6, 3, -2, 150
    found = first_of(solve(Drunkard(n, is_homogeneous=True, p=p), Params(), **EXACT), [At(up), At(down)])
    ratio = (1 - p) / p
    assert found.first[0] == pytest.approx((1 - ratio**-down) / (1 - ratio ** (up - down)), rel=1e-12)
    assert found.none < 1e-12


def test_a_world_that_ends_at_once() -> None:
    solution = solve(TwoSteps(steps=0), **EXACT)
    assert [mass.tolist() for mass in solution.reached] == [[1.0]]
    assert probability_by_time(solution, At(0)).tolist() == [1.0]
    found = first_of(solution, [At(1)])
    assert (found.first.tolist(), found.none) == ([0.0], 1.0)


# --- where it is, and how exact ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_exact", [True, False])
def test_memory_and_disk_agree(is_exact: bool) -> None:
    options: dict[str, Any] = {"precision": "float64" if is_exact else "float16", "progress": False}
    world = load_world("ice_rink", max_steps=5)
    here, there = (solve(world, Params(), out=out, **options) for out in (None, True))
    assert [a.tolist() for a in here.reached] == [a.tolist() for a in there.reached]


def test_blocks_do_not_matter() -> None:
    solution = solved("mirror_freeing", 9)
    before = first_of(solution, [LEFT, RIGHT])
    solution.blocks.block_states = 7
    after = first_of(solution, [LEFT, RIGHT])
    assert before.by_time.tolist() == after.by_time.tolist()


# --- errors -----------------------------------------------------------------------------------------------------------


def test_both_phases_are_needed() -> None:
    solution = solve(load_world("mirror_freeing", max_steps=3), phase_2=False, **EXACT)
    for ask in (lambda: solution.reached, lambda: first_of(solution, [LEFT]), lambda: probability_by_time(solution, LEFT)):
        with pytest.raises(ValueError, match="phase 2 was not solved"):
            ask()


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (events.thing_gone("rock", (3, 1)), r"no rock on that cell at the start; they lie on \[\(2, 2\), \(6, 2\)\]"),
        (events.thing_gone("ball", (3, 1)), "they lie on no cell"),
        (events.thing_gone("rok", (2, 2)), "Did you mean 'rock'"),
        (events.thing_gone("rock", (20, 2)), "off the grid"),
        (events.agent_in(3, (2, 2)), "agents 0 to 2"),
        (events.agent_in(0, (20, 2)), r"cell \(20, 2\) is off the grid; give x from 0 to 8"),
        (events.agent_in(0, (1, 7, 2, 9)), r"rectangle \(1, 7, 2, 9\) is off the grid"),
        (events.agent_in("0", (2, 2)), "agent '0'; this world has agents 0 to 2"),  # type: ignore[arg-type]
        (events.carries(7, "key"), "agent 7; this world has agents 0 to 2"),
        (events.carries(0, "key"), "there is no key in this world"),
        (events.door_open((20, 2)), r"no door on cell \(20, 2\); the doors of this world are on no cell"),
        (goals.ReachCellGoal(None, 0, (20, 2)), "event ReachCellGoal.* 20,2 is off the grid, whose cells are 0,0 to 8,5"),
        (goals.ReachCellGoal(None, 3, (2, 2)), "agents 0 to 2"),
        (goals.ConditionGoal(None, 0, goals.InCells([(20, 2)])), "20,2 is off the grid"),
        (events.by_fields(lambda fields: fields.direction(0)), "int64 of shape .* expected one boolean each"),
        (events.by_fields(lambda fields: True), "expected one boolean each"),
        (7, "7 is not an event"),
        (At, "is not an event"),
    ],
)
def test_events_that_cannot_be(event: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        probability_by_time(solved("mirror_freeing", 2), event)


def test_areas_are_cells_or_rectangles() -> None:
    with pytest.raises(ValueError, match="give a cell"):
        events.agent_in(0, (1, 2, 3))
    with pytest.raises(TypeError, match="give whole numbers: a cell"):
        events.agent_in(0, "kitchen")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"is a rectangle; give one cell \(x, y\)"):
        events.door_open((1, 2, 3, 4))
    with pytest.raises(ValueError, match="Did you mean 'key'"):
        events.carries(0, "keys")


def test_fields_are_those_of_gridworlds() -> None:
    with pytest.raises(TypeError, match="computed from the fields of a gridworld"):
        first_of(solve(TwoSteps(), **EXACT), [LEFT])


@pytest.mark.parametrize("asked", [[], LEFT])
def test_events_are_a_list(asked: Any) -> None:
    with pytest.raises(ValueError, match="give a list of at least one event"):
        first_of(solved("mirror_freeing", 2), asked)


def test_goals_that_differ_from_state_to_state_have_weights_of_their_own() -> None:
    class Twice(Places):
        def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[At, float]]:
            yield At(state[1]), 1.0

    solution = solve(TwoSteps(), possible_goal_generator=Twice(), **EXACT)
    assert np.concatenate(list(solution.reached))[solution.markov_chain.place_N.argsort()].tolist() == [1, 1, 0, 1, 0]


def test_doors_and_things_in_hands_are_events() -> None:
    """A door that a key opens: both events against the tuples of states."""
    solution = solved("locked_in", 6)
    start = StateFields(solution.world, solution.world.initial_key)
    doors = [(x, y) for _, x, y, *_ in solution.world.initial_state()[3]]
    assert doors
    for door in doors:

        def is_open(state: Any, door: Any = door) -> bool:
            return any((x, y) == door and flags[0] for _, x, y, *flags in state[3])

        by_event, by_state = probability_by_time(solution, [events.door_open(door), is_open])
        assert by_event.tolist() == by_state.tolist()
    for agent in range(len(solution.world.agents)):
        by_event, by_state = probability_by_time(
            solution,
            [events.carries(agent, "key"), lambda state: state[1][agent][6] == "key"],  # noqa: B023
        )
        assert by_event.tolist() == by_state.tolist()
    assert not start.carries(0, "key")[0]
    assert repr(events.carries(1, "key")) == "carries(1, 'key')"
    assert repr(events.door_open((2, 1))) == "door_open((2, 1))"


def test_packed_bodies_are_read_once_for_all_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """A map with thousands of cells has as many goals, and reading is what takes the time."""
    solution = solve(load_world("mirror_freeing", max_steps=3), progress=False)
    known, calls = solution.goals[solution.humans[0]], list[object]()
    heads = type(solution.dag.levels).heads

    def counted(levels: Any) -> Any:
        calls.append(levels)
        return heads(levels)

    monkeypatch.setattr(type(solution.dag.levels), "heads", counted)
    assert len(probability_by_time(solution, known)) == len(known) > 5
    assert len(calls) == 1
