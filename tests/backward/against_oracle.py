"""The engine held to the plain oracle: every table of both phases, number by number, in float64."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from oracle import planning

from empo_bi import Params, compute_human_policy_prior, compute_robot_policy, solve

TOLERANCE = 1e-9


@dataclass
class Problem:
    """What is planned for, as the engine and as the oracle take it; where they take the same object, it stands here once.

    Attributes
    ----------
    name_of : tells an engine's goal by what it means, as ``oracle_name_of`` does with an oracle's
    prior : of another maker, instead of phase 1
    human, robot : parameters of phase 1 and of phase 2
    """

    world: Any
    humans: Sequence[int]
    robots: Sequence[int]
    generator: Any = None
    oracle_world: Any = None
    oracle_goals: Any = None
    name_of: Callable[[Any], Any] = lambda goal: goal
    oracle_name_of: Callable[[Any], Any] = lambda goal: goal
    level_fct: Callable[[Any], int] | None = None
    belief: Any = None
    prior: Any = None
    oracle_prior: Any = None
    start: list[Any] | None = None
    stop: Any = None
    human: Mapping[str, Any] = field(default_factory=dict)
    robot: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def graph(self) -> planning.Graph:
        stops = (lambda state: False) if self.stop is None else getattr(self.stop, "is_achieved", self.stop)
        return planning.Graph(self.oracle_world or self.world, self.start or (), stops)

    @property
    def goals(self) -> Any:
        return self.oracle_goals or self.generator

    @cached_property
    def human_answers(self) -> tuple[dict, dict]:
        """Policies and values of the oracle's phase 1."""
        return planning.human_policy_prior(
            self.graph.world, self.humans, self.goals, self.belief, graph=self.graph, **self.human
        )

    @cached_property
    def robot_answers(self) -> dict[str, Any]:
        """All of the oracle's phase 2."""
        prior = self.human_answers[0] if self.prior is None else self.oracle_prior or self.prior
        return planning.robot_policy(
            self.graph.world, self.humans, self.robots, self.goals, prior, graph=self.graph, **self.robot
        )

    @property
    def going_on(self) -> list[Any]:
        return [state for state in self.graph.states if self.graph.transitions[state]]


def assert_close(what: str, found: Mapping[Any, float], expected: Mapping[Any, float], *, rel: float = 0.0) -> None:
    """The same keys, and numbers that differ by at most 1e-9 (relative to what is expected, if ``rel`` is given)."""
    assert found.keys() == expected.keys(), what
    keys = list(expected)
    is_here, should_be = np.array([found[key] for key in keys]), np.array([expected[key] for key in keys])
    allowed = rel * np.abs(should_be) if rel else np.full(len(keys), TOLERANCE)
    wrong = np.flatnonzero(~(np.abs(is_here - should_be) <= allowed))  # nan is wrong, too
    assert not len(wrong), f"{what} of {keys[wrong[0]]}: {is_here[wrong[0]]!r} instead of {should_be[wrong[0]]!r}"


def flat_table(table: Mapping[Any, Any], name_of: Callable[[Any], Any]) -> dict[Any, float]:
    """(state, human, goal) -> value of a sparse table."""
    return {
        (state, human, name_of(goal)): value
        for state, by_human in table.items()
        for human, by_goal in by_human.items()
        for goal, value in by_goal.items()
    }


def flat_policies(table: Mapping[Any, Any], name_of: Callable[[Any], Any]) -> dict[Any, float]:
    """(state, human, goal, action) -> probability."""
    return {
        (*key, action): probability
        for key, policy in flat_table(table, name_of).items()
        for action, probability in enumerate(policy)
    }


def flat_robot(table: Mapping[Any, Any]) -> dict[Any, float]:
    """(state, what) -> number, of dictionaries by state."""
    return {(state, what): number for state, numbers in table.items() for what, number in numbers.items()}


def flat_chain(states: Sequence[Any], chain: Sequence[Mapping[int, float]]) -> dict[Any, float]:
    """(state, successor) -> probability: states instead of their numbers, whose order may be free."""
    assert len(states) == len(chain)
    return {(state, states[j]): p for state, row in zip(states, chain, strict=True) for j, p in row.items()}


def is_sparse(table: Mapping[Any, Any]) -> bool:
    """Whether zeros are left out, and states and humans without entries as well."""
    return all(by_human and all(by_goal and all(by_goal.values()) for by_goal in by_human.values())
               for _, by_human in table.items())  # fmt: skip


# --- phase 1 ----------------------------------------------------------------------------------------------------------


def check_human_policy_prior(problem: Problem) -> Any:
    """``compute_human_policy_prior`` against the oracle. Returns the prior."""
    policies, Vh = problem.human_answers
    prior, found_Vh = compute_human_policy_prior(
        problem.world, problem.humans, problem.generator, problem.belief, level_fct=problem.level_fct, return_Vh=True,
        use_float16=False, quiet=True, min_free_memory_fraction=0.0, **problem.human,
    )  # fmt: skip
    assert set(prior.values) == set(policies)
    expected = flat_policies(policies, problem.oracle_name_of)
    assert_close("pi_h", flat_policies(prior.values, problem.name_of), expected)
    assert_close("V_h", flat_table(found_Vh, problem.name_of), flat_table(Vh, problem.oracle_name_of))
    assert is_sparse(found_Vh)
    if problem.going_on:
        check_joint_policies(problem, prior)
    return prior


def check_joint_policies(problem: Problem, prior: Any) -> None:
    """What the prior says of all humans together, in the initial state."""
    start, world = problem.going_on[0], problem.graph.world
    oracle = planning.TabularPrior(problem.human_answers[0], problem.humans, problem.goals, world.n_actions)
    found = {tuple(actions): p for p, actions in prior.profile_distribution(start)}
    assert_close("pi_H", found, {u: p for p, u in oracle.profile_distribution(start)})
    for human in problem.humans:
        by_name = {problem.name_of(goal): goal for goal in prior.values[start][human]}
        for goal in policies_of(problem, start, human):
            expected = oracle.profile_distribution_with_fixed_goal(start, human, goal)
            mine = by_name[problem.oracle_name_of(goal)]
            given = prior.profile_distribution_with_fixed_goal(start, human, mine)
            assert_close("pi_H|g", {tuple(u): p for p, u in given}, {u: p for p, u in expected})


def policies_of(problem: Problem, state: Any, human: int) -> dict[Any, list[float]]:
    return problem.human_answers[0][state][human]


# --- phase 2 ----------------------------------------------------------------------------------------------------------


def check_robot_policy(problem: Problem, prior: Any) -> Any:
    """``compute_robot_policy`` with a prior, or with None, against the oracle. Returns the chain."""
    expected = problem.robot_answers
    policy, Vr, Vhe, chain = compute_robot_policy(
        problem.world, problem.humans, problem.robots, problem.generator, prior, level_fct=problem.level_fct,
        return_values=True, return_markov_chain=True, use_float16=False, quiet=True, min_free_memory_fraction=0.0,
        **problem.robot,
    )  # fmt: skip
    assert_close("pi_r", flat_robot(policy.values), flat_robot(expected["pi_r"]))
    assert_close("V_r", dict(Vr.items()), expected["Vr"], rel=TOLERANCE)
    assert_close("V_h^e", flat_table(Vhe, problem.name_of), flat_table(expected["Vhe"], problem.oracle_name_of))
    assert is_sparse(Vhe)
    assert_close("chain", flat_chain(chain.states, chain), flat_chain(problem.graph.states, expected["chain"]))
    n_actions = problem.graph.world.n_actions
    for state in problem.going_on[:1]:
        assert list(policy(state)) == list(itertools.product(range(n_actions), repeat=len(problem.robots)))
    return chain


def check_documented_functions(problem: Problem) -> None:
    """Both phases, one after the other; phase 2 with a prior of another maker, where there is one."""
    prior = check_human_policy_prior(problem)
    check_robot_policy(problem, prior if problem.prior is None else problem.prior)


# --- both at once -----------------------------------------------------------------------------------------------------


def check_solve(problem: Problem, **options: Any) -> Any:
    """``solve`` against the oracle: all arrays, level by level. Both phases have the humans' discount of phase 1."""
    discount = {name: value for name, value in problem.human.items() if name in ("gamma_h", "rho_h")}
    rest = {name: value for name, value in problem.robot.items() if name not in ("gamma_h", "rho_h")}
    known = {name: problem.__dict__[name] for name in ("graph", "human_answers") if name in problem.__dict__}
    problem = replace(problem, robot=rest | discount)
    problem.__dict__.update(known)  # which the change of discount has no influence on
    policies, Vh = problem.human_answers
    expected = problem.robot_answers
    params = Params(**problem.human, **rest, believed_others_policy=problem.belief)
    solution = solve(
        problem.world, params, human_agent_indices=problem.humans, robot_agent_indices=problem.robots,
        possible_goal_generator=problem.generator, human_policy_prior=problem.prior, level_fct=problem.level_fct,
        start=problem.start, stop=problem.stop, precision="float64", progress=False, **options,
    )  # fmt: skip
    states = [solution.dag.states(t) for t in range(solution.dag.horizon + 1)]
    going_on = set(problem.going_on)
    assert {s for level in states for s in level} == set(problem.graph.states)

    def by_state(arrays: Any) -> dict[Any, Any]:
        found = {s: row for t, level in enumerate(states) for s, row in zip(level, arrays[t], strict=True)}
        assert not any(np.any(row) for s, row in found.items() if s not in going_on), "terminal states have 0"
        return {s: row for s, row in found.items() if s in going_on}

    def by_goal(arrays: Any) -> dict[Any, float]:
        return {
            (s, human, problem.name_of(goal)): row_HG[h][g]
            for s, row_HG in by_state(arrays).items()
            for h, human in enumerate(problem.humans)
            for g, goal in enumerate(solution.goals[human])
        }

    def with_zeros(table: Any, found: Mapping[Any, float]) -> dict[Any, float]:
        return dict.fromkeys(found, 0.0) | flat_table(table, problem.oracle_name_of)

    Vr = {s: v for t, level in enumerate(states) for s, v in zip(level, solution.values.V_r[t].tolist(), strict=True)}
    assert_close("V_r", Vr, expected["Vr"], rel=TOLERANCE)
    found_Vhe = by_goal(solution.values.Vh_e)
    assert_close("V_h^e", found_Vhe, with_zeros(expected["Vhe"], found_Vhe))
    Xh = {(s, h): x for s, row in by_state(solution.values.X_h).items() for h, x in zip(problem.humans, row, strict=True)}
    assert_close("X_h", Xh, flat_robot(expected["Xh"]))
    assert_close("U_r", by_state(solution.values.U_r), expected["Ur"], rel=TOLERANCE)
    profiles = solution.robot_profiles
    Qr = {s: dict(zip(profiles, row, strict=True)) for s, row in by_state(solution.Q_r).items()}
    assert_close("Q_r", flat_robot(Qr), flat_robot(expected["Qr"]), rel=TOLERANCE)
    pi_r = {s: dict(zip(profiles, row, strict=True)) for s, row in by_state(solution.pi_r).items()}
    assert_close("pi_r", flat_robot(pi_r), flat_robot(expected["pi_r"]))
    chain = solution.markov_chain
    assert_close("chain", flat_chain(chain.states, chain), flat_chain(problem.graph.states, expected["chain"]))
    if problem.prior is not None:
        return solution
    found_Vh = by_goal(solution.values.Vh_m)
    assert_close("V_h", found_Vh, with_zeros(Vh, found_Vh))
    pi_h = {
        (*key, a): p for key, policy in by_goal(solution.pi_h).items() for a, p in enumerate(policy)
    }  # of goals that a state does not have as well, where it means nothing
    expected_pi_h = flat_policies(policies, problem.oracle_name_of)
    assert_close("pi_h", {key: pi_h[key] for key in expected_pi_h}, expected_pi_h)
    return solution
