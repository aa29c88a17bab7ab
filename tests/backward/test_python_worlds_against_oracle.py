"""Worlds written in Python against the oracle: any graph, any roles, durations, beliefs, goals and priors of all kinds."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from backward.against_oracle import (
    Problem,
    check_documented_functions,
    check_human_policy_prior,
    check_robot_policy,
    check_solve,
)
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from oracle.planning import TabularPrior, all_profiles

from empo_bi import (
    GoalError,
    TabularGoalGenerator,
    TabularHumanPolicyPrior,
    compute_human_policy_prior,
    compute_robot_policy,
)

# --- worlds -----------------------------------------------------------------------------------------------------------


class Spot(NamedTuple):
    step: int
    x: int
    y: Any


Outcomes = list[tuple[float, Any]]


class TableWorld:
    """A world given as {state: {profile: [(probability, successor)]}}, None for terminal states; the oracle takes it, too.

    Being asked about any other state is a ``KeyError``.
    """

    time_homogeneous = False

    def __init__(self, n_agents: int, n_actions: int, table: dict[Any, dict[tuple[int, ...], Outcomes] | None]) -> None:
        self.agents = [f"agent {i}" for i in range(n_agents)]
        self.n_agents, self.n_actions = n_agents, n_actions
        self.action_space = SimpleNamespace(n=n_actions)
        self.table = table

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_agents}, {self.n_actions}, {self.table})"

    def initial_state(self) -> Any:
        return next(iter(self.table))

    def transition_probabilities(self, state: Any, actions: Sequence[int]) -> Outcomes | None:
        here = self.table[state]
        return None if here is None else list(here[tuple(actions)])


class SteadyWorld(TableWorld):
    time_homogeneous = True


class Timed:
    """Mixed into a world: durations of {(place, profile): [duration of each outcome]}."""

    table: dict[Any, Any]
    durations: dict[Any, list[float]]
    time_homogeneous: bool

    def transition_durations(self, state: Any, actions: Sequence[int], transitions: Sequence[Any]) -> list[float]:
        assert list(transitions) == self.table[state][tuple(actions)], "transitions come in the order of the world"
        place = state[1:] if self.time_homogeneous else state
        return self.durations[place, tuple(actions)]


class TimedWorld(Timed, TableWorld):
    pass


class TimedSteadyWorld(Timed, SteadyWorld):
    pass


def parts_of_one(rng: Random, n: int, in_halves: bool) -> list[float]:
    """Probabilities; in halves: so few binary digits that no sum of products is ever rounded."""
    if in_halves:
        parts = [1.0]
        while len(parts) < n:
            half = parts.pop(rng.randrange(len(parts))) / 2
            parts += [half, half]
        return parts
    weights = [rng.randint(1, 9) for _ in range(n)]
    return [weight / sum(weights) for weight in weights]


def outcomes(rng: Random, candidates: Sequence[Any], in_halves: bool, chance: bool) -> Outcomes:
    """Up to five successors, perhaps the same one twice, perhaps one of probability 0."""
    n = rng.choice([1, 1, 2, 3, 5]) if chance else 1
    successors = rng.choices(candidates, k=n)
    found = list(zip(parts_of_one(rng, n, in_halves), successors, strict=True))
    if chance and rng.random() < 0.1:
        found.insert(rng.randrange(n + 1), (0.0, successors[0]))
    return found


def durations_for(rng: Random, table: dict[Any, dict[tuple[int, ...], Outcomes]]) -> dict[Any, list[float]]:
    return {
        (place, profile): [rng.choice([0.0, 0.5, 1.0, 2.0, 3.7]) for _ in found]
        for place, by_profile in table.items()
        for profile, found in by_profile.items()
    }


# Drawn from lists, since drawn numbers are mostly small.
AGENTS = st.sampled_from([1, 2, 2, 3, 3])
HUMANS_AND_ROBOTS = {1: [(1, 0)], 2: [(1, 1), (1, 0), (2, 0)], 3: [(1, 1), (1, 2), (2, 1), (1, 0), (2, 0), (3, 0)]}

MIXED = [None, "a", "", 3, 2.5, (1, None), ("x", 2), frozenset({1, 2}), b"z", -1, (), Spot(1, 2, None), frozenset(), "0", 7j]


def labels(rng: Random, kind: str, layers: list[list[int]]) -> dict[int, Any]:
    """A name for each state: something that can be compared, or not at all."""
    numbers = [number for layer in layers for number in layer]
    if kind == "tuples":
        return {number: (i, -number) for i, layer in enumerate(layers) for number in layer}
    if kind == "numbers":
        return dict(zip(numbers, rng.sample(range(-50, 50), len(numbers)), strict=True))
    return dict(zip(numbers, rng.sample(MIXED, len(numbers)), strict=True))


@dataclass
class Drawn:
    """A world, its level function if it has one, and whether its states can be compared."""

    world: Any
    level_fct: Any
    is_ordered: bool


@st.composite
def layered_worlds(draw: st.DrawFn, in_halves: bool) -> Drawn:
    """A graph in layers, whose transitions may skip some of them."""
    n_agents, n_actions = draw(AGENTS), 2 if in_halves else draw(st.sampled_from([2, 3]))
    n_layers = draw(st.sampled_from([1, 2, 3, 4, 4]))
    widths = [1, *(draw(st.sampled_from([1, 2, 3, 3])) for _ in range(n_layers))]
    kind = draw(st.sampled_from(["tuples", "numbers", "mixed"]))
    skips, chance, is_timed = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    levels = draw(st.sampled_from(["none", "layers", "far apart"]))
    rng = Random(draw(st.integers(0, 2**20)))
    numbers = itertools.count()
    layers = [[next(numbers) for _ in range(width)] for width in widths]
    name = labels(rng, kind, layers)
    layer_of = {name[number]: i for i, layer in enumerate(layers) for number in layer}
    table: dict[Any, Any] = {}
    waiting = [name[0]]
    while waiting:  # only what can be reached
        state = waiting.pop(0)
        if state in table:
            continue
        i = layer_of[state]
        table[state] = None
        later = layers[i + 1 :] if skips else layers[i + 1 : i + 2]
        if later and (i == 0 or rng.random() < 0.85):
            candidates = [name[number] for layer in later for number in layer]
            profiles = all_profiles(n_agents, n_actions)
            table[state] = {profile: outcomes(rng, candidates, in_halves, chance) for profile in profiles}
            waiting += [successor for found in table[state].values() for _, successor in found]
    world = (TimedWorld if is_timed else TableWorld)(n_agents, n_actions, table)
    if is_timed:
        world.durations = durations_for(rng, {s: rows for s, rows in table.items() if rows})
    gaps = list(itertools.accumulate(rng.randint(1, 3) for _ in layers))
    level_fct = {
        "none": None,
        "layers": lambda state: layer_of[state],
        "far apart": lambda state: gaps[layer_of[state]] - 7,
    }[levels]
    return Drawn(world, level_fct, kind != "mixed")


@st.composite
def steady_worlds(draw: st.DrawFn, in_halves: bool) -> Drawn:
    """Time-homogeneous: a few bodies, whose end may depend on the step."""
    n_agents, n_actions = draw(AGENTS), 2 if in_halves else draw(st.sampled_from([2, 3]))
    n_bodies, horizon = draw(st.sampled_from([1, 2, 3])), draw(st.sampled_from([1, 2, 3, 4]))
    start = draw(st.sampled_from([0, 5]))
    chance, is_timed, is_named = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    rng = Random(draw(st.integers(0, 2**20)))
    bodies = [(i, None) for i in range(n_bodies)] if is_named else [("b", i) for i in range(n_bodies)]
    profiles = list(all_profiles(n_agents, n_actions))
    rules = {body: {profile: outcomes(rng, bodies, in_halves, chance) for profile in profiles} for body in bodies}
    ends = {(step, body) for step in range(start + 1, start + horizon) for body in bodies if rng.random() < 0.2}

    def at(step: int, body: tuple) -> Any:
        return Spot(step, *body) if is_named else (step, *body)

    table: dict[Any, Any] = {}
    here = dict.fromkeys([bodies[0]])
    for step in range(start, start + horizon + 1):
        following: dict[Any, None] = {}
        for body in here:
            table[at(step, body)] = None
            if step < start + horizon and (step, body) not in ends:
                rows = {profile: [(p, at(step + 1, after)) for p, after in found] for profile, found in rules[body].items()}
                table[at(step, body)] = rows
                following |= dict.fromkeys(after for found in rules[body].values() for _, after in found)
        here = following
    world = (TimedSteadyWorld if is_timed else SteadyWorld)(n_agents, n_actions, table)
    if is_timed:
        world.durations = durations_for(rng, rules)
    return Drawn(world, None, True)


# --- goals, beliefs, priors -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wish:
    """To be in one of some states. BatchSettings of the same name are equal."""

    name: str
    states: frozenset[Any] = field(compare=False, repr=False)

    def is_achieved(self, state: Any) -> int:
        return int(state in self.states)


class TableWishes:
    """Goals given as {(state, human): [(goal, weight)]}."""

    def __init__(self, table: dict[Any, list[tuple[Wish, float]]]) -> None:
        self.table = table

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Wish, float]]:
        yield from self.table.get((state, human_agent_index), [])


def goals_for(rng: Random, kind: str, world: TableWorld, humans: Sequence[int], mostly_something: bool) -> Any:
    """A generator. ``mostly_something``: everybody may always want what is always the case, so that nobody is powerless."""
    states = list(world.table)
    pool = [Wish(f"wish {i}", frozenset(s for s in states if rng.random() < 0.4)) for i in range(4)]
    always = [(Wish("anything", frozenset(states)), 0.5)] if mostly_something else []

    def some() -> list[tuple[Wish, float]]:
        chosen = [(rng.choice(pool), rng.choice([0.0, 0.25, 1.0, 2.5])) for _ in range(rng.randint(1, 4))]  # some twice
        given = [*always, *chosen]
        rng.shuffle(given)
        return given

    if kind == "fixed":
        given = some()
        return TabularGoalGenerator([goal for goal, _ in given], [weight for _, weight in given])
    by_human = {human: some() for human in humans}
    return TableWishes({(s, h): by_human[h] if kind == "by human" else some() for s in states for h in humans})


class TableBelief:
    """Beliefs given as {(state, human, action): [(probability, actions of all agents)]}, not normalised."""

    def __init__(self, rng: Random, world: TableWorld, humans: Sequence[int], in_halves: bool) -> None:
        weights = [0.0, 0.5, 1.0] if in_halves else [0.0, 0.1, 0.3, 0.77]

        def profile(own: int) -> Any:
            """Entries of the human itself and of robots are to be ignored, so they may be anything."""
            actions = [rng.randrange(world.n_actions) if i in humans and i != own else -7 for i in range(world.n_agents)]
            return np.array(actions, dtype=np.int64)

        self.table = {
            (s, h, a): [(rng.choice(weights), profile(h)) for _ in range(rng.randint(1, 3))]
            for s in world.table
            for h in humans
            for a in range(world.n_actions)
        }

    def __call__(self, state: Any, agent_index: int, action: int) -> list[tuple[float, Any]]:
        return [(probability, actions.copy()) for probability, actions in self.table[state, agent_index, action]]


class CorrelatedPrior:
    """Humans who act together, in all states and with all goals. What it says of a goal need not sum to 1."""

    def __init__(self, rng: Random, world: TableWorld, humans: Sequence[int], generator: Any) -> None:
        profiles = list(itertools.product(range(world.n_actions), repeat=len(humans)))

        def some() -> list[tuple[float, list[int]]]:
            return [(rng.choice([0.1, 0.4, 1.0]), list(rng.choice(profiles))) for _ in range(rng.randint(1, 3))]

        def normalised(given: list[tuple[float, list[int]]]) -> list[tuple[float, list[int]]]:
            return [(p / sum(p for p, _ in given), actions) for p, actions in given]

        going_on = [s for s, rows in world.table.items() if rows]
        self.joint = {s: normalised(some()) for s in going_on}
        self.with_goal = {(s, h, g): some() for s in going_on for h in humans for g, _ in generator.generate(s, h)}

    def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
        return self.joint[state]

    def profile_distribution_with_fixed_goal(self, state: Any, agent_index: int, goal: Any) -> list[tuple[float, list[int]]]:
        return self.with_goal[state, agent_index, goal]


class TablePrior:
    """A function of state, human and goal; for the goal None the human's marginal, up to a factor."""

    def __init__(self, rng: Random, world: TableWorld, humans: Sequence[int], generator: Any) -> None:
        def some() -> list[float]:
            return [rng.choice([0.0, 0.2, 0.5]) for _ in range(world.n_actions - 1)] + [0.6]

        self.table: dict[Any, list[float]] = {}
        for s, rows in world.table.items():
            for h in humans if rows else ():
                self.table |= {(s, h, None): some()} | {(s, h, g): some() for g, _ in generator.generate(s, h)}

    def __call__(self, state: Any, agent_index: int, goal: Any) -> list[float]:
        return self.table[state, agent_index, goal]


class OracleTablePrior(TabularPrior):
    """The same in the oracle's terms: marginals are normalised, what is said of a goal is used as it is."""

    def __init__(self, function: TablePrior, humans: Sequence[int], n_actions: int) -> None:
        super().__init__({}, humans, None, n_actions)
        for (s, h, g), probabilities in function.table.items():
            self.policies.setdefault(s, {}).setdefault(h, {})[g] = probabilities

    def marginal(self, state: Any, human: int) -> list[float]:
        given = self.policies[state][human][None]
        return [p / sum(given) for p in given]


# --- problems ---------------------------------------------------------------------------------------------------------


def discount(who: str) -> st.SearchStrategy[dict[str, float]]:
    return st.sampled_from([{}, {f"gamma_{who}": 0.9}, {f"gamma_{who}": 1.0}, {f"rho_{who}": 0.4}, {f"rho_{who}": 0.0}])


@st.composite
def human_params(draw: st.DrawFn, strict: bool) -> dict[str, Any]:
    optimistic = {"optimistic": draw(st.booleans())}
    if strict:  # no discount, which would round
        return {"beta_h": math.inf, **optimistic}
    return {"beta_h": draw(st.sampled_from([0, 0.7, 5, 20.0])), **draw(discount("h")), **optimistic}


@st.composite
def robot_params(draw: st.DrawFn) -> dict[str, Any]:
    # A strict robot takes the end where that is worth 1e-10 less than anything else, and leaves humans a power of 1e-300.
    beta_r, terminal_Vr = draw(
        st.sampled_from([(0, -1e-10), (0.5, -1e-10), (5, -1e-10), (1.5, -1e-30), (5, -0.3), (30.0, -3.0)])
    )
    return {
        "beta_r": beta_r,
        "terminal_Vr": terminal_Vr,
        **draw(discount("h")),
        **draw(discount("r")),
        "zeta": draw(st.sampled_from([1, 2, 0.5, 1.7])),
        "xi": draw(st.sampled_from([1, 0.3, 2.2])),
        "eta": draw(st.sampled_from([1, 0.6, 1.1])),
    }


@st.composite
def problems(draw: st.DrawFn, strict: bool = False) -> tuple[Problem, Drawn]:
    drawn = draw(st.one_of(layered_worlds(strict), steady_worlds(strict)))
    world = drawn.world
    agents = draw(st.permutations(range(world.n_agents)))
    n_humans, n_robots = draw(st.sampled_from(HUMANS_AND_ROBOTS[world.n_agents]))  # the others stand by
    humans, robots = agents[:n_humans], agents[n_humans : n_humans + n_robots]
    rng = Random(draw(st.integers(0, 2**20)))
    kind = draw(st.sampled_from(["fixed", "by human", "by state"]))
    generator = goals_for(rng, kind, world, humans, draw(st.sampled_from([True, True, True, False])))
    belief = draw(st.sampled_from([None, TableBelief(rng, world, humans, strict)]))
    problem = Problem(
        world, humans, robots, generator, level_fct=drawn.level_fct, belief=belief, human=draw(human_params(strict)),
        robot=draw(robot_params()),
    )  # fmt: skip
    prior = draw(st.sampled_from(["own", "own", "own", "correlated", "function"]))
    if prior == "correlated":
        problem.prior = CorrelatedPrior(rng, world, humans, generator)
    elif prior == "function":
        problem.prior = TablePrior(rng, world, humans, generator)
        problem.oracle_prior = OracleTablePrior(problem.prior, humans, world.n_actions)
    return problem, drawn


def check(problem: Problem, drawn: Drawn) -> None:
    prior = check_human_policy_prior(problem)
    if problem.prior is not None:
        prior = problem.prior
    try:
        expected = problem.robot_answers
    except OverflowError:
        reject()
    except ValueError:  # somebody cannot attain anything
        with pytest.raises(GoalError, match="has no power in state"):
            compute_robot_policy(
                problem.world, problem.humans, problem.robots, problem.generator, prior, level_fct=problem.level_fct,
                use_float16=False, quiet=True, **problem.robot,
            )  # fmt: skip
        return
    assume(min(expected["Vr"].values()) > -1e100)  # beyond that, small numbers lose their digits
    chain = check_robot_policy(problem, prior)
    if drawn.is_ordered:
        assert chain.states == expected["states"]
    if not callable(problem.prior):  # `solve` takes no functions
        check_solve(problem)


# --- any of them ------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(problems())
def test_random_worlds_agree_with_the_oracle(drawn: tuple[Problem, Drawn]) -> None:
    check(*drawn)


@settings(max_examples=50, deadline=None)
@given(problems(strict=True))
def test_humans_who_know_exactly_what_they_want_share_ties_as_the_oracle_does(drawn: tuple[Problem, Drawn]) -> None:
    """Two actions, chances in halves of halves, no discount: nothing is ever rounded, so that a tie is a tie."""
    check(*drawn)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(st.one_of(problems(), problems(), problems(strict=True)))
def test_many_random_worlds_agree_with_the_oracle(drawn: tuple[Problem, Drawn]) -> None:
    check(*drawn)


# --- and some by hand -------------------------------------------------------------------------------------------------


def two_steps(kind: type[TableWorld] = TableWorld) -> Any:
    """Human 0, human 1 and robot 2 go right if two of them play 1; on the way chance has a say."""

    def rows(t: int, x: int) -> dict[tuple[int, ...], Outcomes]:
        return {profile: [(0.75, (t + 1, x + (sum(profile) > 1))), (0.25, (t + 1, x))] for profile in all_profiles(3, 2)}

    states = [(t, x) for t in range(3) for x in range(t + 1)]
    return kind(3, 2, {(t, x): rows(t, x) if t < 2 else None for t, x in states})


def places() -> list[Wish]:
    return [Wish(f"at {x}", frozenset((t, x) for t in range(3))) for x in range(3)]


class Places:
    """To be at 0, 1 or 2, with weights."""

    def __init__(self, *weights: float) -> None:
        self.weights = weights

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Wish, float]]:
        yield from zip(places(), self.weights, strict=False)


ROBOT = {"beta_r": 4.0, "gamma_h": 0.9, "gamma_r": 0.8, "zeta": 1.5, "xi": 0.8, "eta": 1.2}


def test_a_prior_that_was_rebuilt_from_saved_tables_serves_phase_2() -> None:
    problem = Problem(two_steps(), [1, 0], [2], Places(0.2, 0.3, 0.5), human={"beta_h": 3, "gamma_h": 0.9}, robot=ROBOT)
    prior = check_human_policy_prior(problem)
    saved = {
        state: {human: {goal: list(policy) for goal, policy in by_goal.items()} for human, by_goal in by_human.items()}
        for state, by_human in prior.values.items()
    }
    arrays = {
        state: {human: {goal: np.array(policy) for goal, policy in by_goal.items()} for human, by_goal in by_human.items()}
        for state, by_human in saved.items()
    }
    check_robot_policy(problem, TabularHumanPolicyPrior(problem.world, [1, 0], problem.generator, arrays))


def test_the_robot_may_weigh_goals_otherwise_than_the_humans_do() -> None:
    """The prior's marginals follow its own weights; the robot's reward follows those that phase 2 is given."""
    theirs, ours = Places(0.2, 0.3, 0.5), Places(2.0, 0.1)  # one goal less
    first = Problem(two_steps(), [0, 1], [2], theirs, human={"beta_h": 3})
    prior = check_human_policy_prior(first)
    oracle_prior = TabularPrior(first.human_answers[0], [0, 1], theirs, 2)
    second = Problem(first.world, [0, 1], [2], ours, prior=prior, oracle_prior=oracle_prior, robot=ROBOT)
    check_robot_policy(second, prior)
    plain = Problem(first.world, [0, 1], [2], theirs, human={"beta_h": 3}, robot=ROBOT)
    assert second.robot_answers["Vr"][0, 0] != pytest.approx(plain.robot_answers["Vr"][0, 0], rel=1e-2)


def test_without_a_prior_phase_1_runs_with_its_own_defaults() -> None:
    problem = Problem(two_steps(SteadyWorld), [0, 1], [2], Places(1, 2, 3), robot=ROBOT)
    check_robot_policy(problem, None)


def test_a_prior_that_does_not_sum_to_1_is_used_as_it_is() -> None:
    """Its mass is part of Q, of the humans' values, and of the duration weight as well."""

    class Emphatic:
        def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
            return [(0.75, [1]), (0.5, [0]), (0.25, [1])]

        def profile_distribution_with_fixed_goal(self, state: Any, human: int, goal: Any) -> list[tuple[float, list[int]]]:
            return [(1.25, [1]), (0.5, [0])]

    for robot in ({}, {"gamma_h": 0.9}, ROBOT):
        problem = Problem(two_steps(), [0], [2], Places(1, 2, 3), prior=Emphatic(), robot=robot)
        check_robot_policy(problem, problem.prior)


def test_a_state_without_goals_is_refused_in_both_phases() -> None:
    """The robot needs everybody to want something everywhere; so that nobody waits for phase 2 in vain, phase 1 tells."""

    class Late(Places):
        def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Wish, float]]:
            return iter(()) if state == (1, 0) else super().generate(state, human_agent_index)

    with pytest.raises(GoalError, match=r"human 0 has no goal in state \(1, 0\) on level 1"):
        check_human_policy_prior(Problem(two_steps(), [0], [], Late(1, 2, 3), human={"gamma_h": 0.9}))


def test_a_goal_that_is_yielded_twice_counts_twice() -> None:
    class Twice(Places):
        def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Wish, float]]:
            at_0, at_1, at_2 = places()
            yield from [(at_1, 0.25), (at_0, 0.2), (at_1, 0.05), (at_2, 0.5)]

    twice = Problem(two_steps(), [0, 1], [2], Twice(), human={"beta_h": 3}, robot=ROBOT)
    once = Problem(two_steps(), [0, 1], [2], Places(0.2, 0.3, 0.5), human={"beta_h": 3}, robot=ROBOT)
    check_documented_functions(twice)
    check_solve(twice)
    assert twice.robot_answers["Vr"] == pytest.approx(once.robot_answers["Vr"], rel=1e-12)


def test_numbers_beyond_all_bounds_are_told_and_do_not_become_nan() -> None:
    """A strict robot in "open" would rather end it all, so the human's power there is 1e-320, whose inverse is infinite."""
    profiles = list(all_profiles(2, 2))

    def by_robot(off: str, on: str) -> dict[tuple[int, ...], Outcomes]:
        return {profile: [(1.0, on if profile[1] else off)] for profile in profiles}

    table = {"start": by_robot("yard", "open"), "open": by_robot("end", "yard"), "yard": by_robot("home", "home")}
    world = TableWorld(2, 2, {**table, "end": None, "home": None})
    outside = TabularGoalGenerator([Wish("out", frozenset({"yard", "home"}))])
    with pytest.raises((ValueError, OverflowError)):
        compute_robot_policy(world, [0], [1], outside, beta_r=16, zeta=2, use_float16=False, quiet=True)


class Clocked(TableWorld):
    """Counts how often durations are asked for."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.asked: Counter[Any] = Counter()

    def transition_durations(self, state: Any, actions: Sequence[int], transitions: Sequence[Any]) -> list[float]:
        self.asked[state, tuple(actions)] += 1
        return [2.0] * len(transitions)


@pytest.mark.parametrize(("gamma_h", "gamma_r", "times"), [(None, None, 0), (1.0, 1.0, 0), (0.9, None, 1), (None, 0.9, 1)])
def test_durations_are_asked_for_once_where_there_is_a_discount(
    gamma_h: float | None, gamma_r: float | None, times: int
) -> None:
    world = two_steps(Clocked)
    pairs = [((t, x), profile) for t in range(2) for x in range(t + 1) for profile in all_profiles(3, 2)]
    options: dict[str, Any] = {"use_float16": False, "quiet": True}
    compute_robot_policy(world, [0, 1], [2], Places(1, 2, 3), Uniform(), gamma_h=gamma_h, gamma_r=gamma_r, **options)
    assert world.asked == Counter(dict.fromkeys(pairs, times))
    world.asked.clear()
    compute_human_policy_prior(world, [0, 1], Places(1, 2, 3), gamma_h=gamma_h, **options)
    assert world.asked == Counter(dict.fromkeys(pairs, times if gamma_h else 0))


class Uniform:
    def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
        return [(0.25, [a, b]) for a in range(2) for b in range(2)]

    def profile_distribution_with_fixed_goal(self, state: Any, human: int, goal: Any) -> list[tuple[float, list[int]]]:
        return self.profile_distribution(state)
