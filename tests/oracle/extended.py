"""Both phases of spec/public_api.md in any arithmetic, so that the truth is known to more digits than float64 has.

Plain loops over states and profiles; only the goals of a human are an array. Nothing is shared with the package, nor with
:mod:`oracle.planning`. A world has ``n_agents``, ``n_actions``, ``transitions(state)`` (a dictionary from profiles to lists
of (probability, duration, successor), empty if terminal), ``states`` (successors later), humans, robots, and ``goals``: for
each human a list of (set of cells, weight), attained where ``state[1]`` is one of the cells.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Arithmetic:
    """Numbers with more digits: how they are made, and their functions. Arrays of them have the type ``dtype``."""

    real: Callable[[Any], Any]
    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    expm1: Callable[[Any], Any]
    dtype: Any

    def array(self, numbers: Any) -> Any:
        return np.array([self.real(number) for number in numbers], dtype=self.dtype)

    def zeros(self, n: int) -> Any:
        return self.array([0] * n)

    def exps(self, numbers: Any) -> Any:
        return np.array([self.exp(number) for number in numbers], dtype=self.dtype)


EXTENDED = Arithmetic(np.longdouble, np.exp, np.log, np.expm1, np.longdouble)  # 64 bits of mantissa on x86


def multiprecision(digits: int = 60) -> Arithmetic:
    import mpmath

    context = mpmath.MPContext()
    context.dps = digits
    return Arithmetic(lambda number: context.mpf(float(number)), context.exp, context.log, context.expm1, object)


@dataclass
class Answers:
    """By state; those of goals are arrays (G,), by (state, human), policies by (state, human, goal)."""

    Vh_m: dict[Any, Any] = field(default_factory=dict)
    Vh_e: dict[Any, Any] = field(default_factory=dict)
    pi_h: dict[Any, Any] = field(default_factory=dict)
    pi_r: dict[Any, Any] = field(default_factory=dict)
    Q_r: dict[Any, Any] = field(default_factory=dict)
    X_h: dict[Any, Any] = field(default_factory=dict)
    U_r: dict[Any, Any] = field(default_factory=dict)
    V_r: dict[Any, Any] = field(default_factory=dict)


class Truth:
    """Solves a world; ``params`` are the package's, by name."""

    def __init__(self, world: Any, params: Mapping[str, Any], arithmetic: Arithmetic = EXTENDED) -> None:
        self.world, self.params, self.n = world, params, arithmetic
        self.rho_h, self.rho_r = self._rate("gamma_h"), self._rate("gamma_r")
        self.answers = Answers()
        actions = range(world.n_actions)
        others = [i for i in range(world.n_agents) if i not in world.humans]
        self.human_profiles = list(itertools.product(actions, repeat=len(world.humans)))
        self.others = [dict(zip(others, r, strict=True)) for r in itertools.product(actions, repeat=len(others))]
        self.robots = [dict(zip(world.robots, r, strict=True)) for r in itertools.product(actions, repeat=len(world.robots))]
        for state in reversed(world.states):
            self._solve(state)

    def _rate(self, name: str) -> Any:
        gamma = self.params[name]
        return self.n.real(0) if gamma is None else -self.n.log(self.n.real(gamma))

    def _profile(self, u: Any, robots: dict[int, int]) -> tuple[int, ...]:
        played = dict(zip(self.world.humans, u, strict=True)) | robots
        return tuple(played.get(i, 0) for i in range(self.world.n_agents))

    def _attained(self, h: int, state: Any) -> Any:
        return np.array([state[1] in cells for cells, _ in self.world.goals[h]])

    def _promise(self, values: dict[Any, Any], h: int, outcomes: Any) -> Any:
        """E(V; s, p, g) for all goals of human number h."""
        total = self.n.zeros(len(self.world.goals[h]))
        for p, duration, after in outcomes:
            factor = self.n.exp(-self.rho_h * self.n.real(duration))
            total = total + self.n.real(p) * np.where(self._attained(h, after), self.n.real(1), factor * values[after, h])
        return total

    def _solve(self, state: Any) -> None:
        world, found, humans = self.world, self.answers, range(len(self.world.humans))
        transitions = world.transitions(state)
        if not transitions:
            found.V_r[state] = self.n.real(self.params["terminal_Vr"])
            for h in humans:
                found.Vh_m[state, h] = found.Vh_e[state, h] = self.n.zeros(len(world.goals[h]))
            return
        for h in humans:
            self._phase_1(state, h, transitions)
        marginals = [self._marginal(state, h) for h in humans]
        self._robot(state, transitions, marginals)
        for h in humans:
            self._effective(state, h, transitions, marginals)
        self._reward(state, transitions, marginals)

    def _phase_1(self, state: Any, h: int, transitions: Any) -> None:
        extreme = np.maximum if self.params["optimistic"] else np.minimum
        share = self.n.real(1) / self.n.real(self.world.n_actions ** (len(self.world.humans) - 1))
        q = [self.n.zeros(len(self.world.goals[h])) for _ in range(self.world.n_actions)]
        for u in self.human_profiles:
            promises = [self._promise(self.answers.Vh_m, h, transitions[self._profile(u, r)]) for r in self.others]
            best = promises[0]
            for promise in promises[1:]:
                best = extreme(best, promise)
            q[u[h]] = q[u[h]] + share * best
        values = []
        for g, attained in enumerate(self._attained(h, state)):
            if attained:
                values.append(self.n.real(0))
                policy = self.n.array([1] + [0] * (self.world.n_actions - 1))
            else:
                policy = self._boltzmann(np.array([q_a[g] for q_a in q], dtype=self.n.dtype))
                values.append(sum(p * q_a[g] for p, q_a in zip(policy, q, strict=True)))
            self.answers.pi_h[state, h, g] = policy
        self.answers.Vh_m[state, h] = np.array(values, dtype=self.n.dtype)

    def _boltzmann(self, q: Any) -> Any:
        beta = self.params["beta_h"]
        weights = self.n.array(q == q.max()) if math.isinf(beta) else self.n.exps(self.n.real(beta) * (q - q.max()))
        return weights / weights.sum()

    def _marginal(self, state: Any, h: int) -> Any:
        total = sum(self.n.real(w) * self.answers.pi_h[state, h, g] for g, (_, w) in enumerate(self.world.goals[h]))
        return total / total.sum()

    def _robot(self, state: Any, transitions: Any, marginals: Any) -> None:
        q = []
        for r in self.robots:
            total = self.n.real(0)
            for u in self.human_profiles:
                share = math.prod((m[a] for m, a in zip(marginals, u, strict=True)), start=self.n.real(1))
                for p, duration, after in transitions[self._profile(u, r)]:
                    factor = self.n.exp(-self.rho_r * self.n.real(duration))
                    total += share * self.n.real(p) * factor * self.answers.V_r[after]
            q.append(total)
        logs = np.array([-self.n.real(self.params["beta_r"]) * self.n.log(-q_r) for q_r in q], dtype=self.n.dtype)
        weights = self.n.exps(logs - logs.max())
        self.answers.Q_r[state] = np.array(q, dtype=self.n.dtype)
        self.answers.pi_r[state] = weights / weights.sum()

    def _effective(self, state: Any, h: int, transitions: Any, marginals: Any) -> None:
        total = self.n.zeros(len(self.world.goals[h]))
        policies = np.array([self.answers.pi_h[state, h, g] for g in range(len(total))], dtype=self.n.dtype)
        for r, p_r in zip(self.robots, self.answers.pi_r[state], strict=True):
            for u in self.human_profiles:
                others = math.prod((m[a] for i, (m, a) in enumerate(zip(marginals, u, strict=True)) if i != h),
                                   start=self.n.real(1))  # fmt: skip
                promise = self._promise(self.answers.Vh_e, h, transitions[self._profile(u, r)])
                total = total + p_r * others * policies[:, u[h]] * promise
        self.answers.Vh_e[state, h] = total

    def _reward(self, state: Any, transitions: Any, marginals: Any) -> None:
        n, params, found = self.n, self.params, self.answers
        zeta, xi, eta = (n.real(params[name]) for name in ("zeta", "xi", "eta"))
        humans = range(len(self.world.humans))
        powers = [sum(n.real(w) * v**zeta for v, (_, w) in zip(found.Vh_e[state, h], self.world.goals[h], strict=True))
                  for h in humans]  # fmt: skip
        found.X_h[state] = np.array(powers, dtype=n.dtype)
        found.U_r[state] = -((sum(x**-xi for x in powers) / n.real(len(powers))) ** eta)
        lasting = n.real(1)
        if self.rho_r > 0:
            lasting = n.real(0)
            for r, p_r in zip(self.robots, found.pi_r[state], strict=True):
                for u in self.human_profiles:
                    share = math.prod((m[a] for m, a in zip(marginals, u, strict=True)), start=p_r)
                    for p, duration, _ in transitions[self._profile(u, r)]:
                        lasting += share * n.real(p) * -n.expm1(-self.rho_r * n.real(duration)) / self.rho_r
        future = sum(p_r * q_r for p_r, q_r in zip(found.pi_r[state], found.Q_r[state], strict=True))
        found.V_r[state] = lasting * found.U_r[state] + future
