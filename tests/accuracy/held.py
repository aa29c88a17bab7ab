"""Holding a solution's numbers to the truth: by quantity, the largest error of any state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from accuracy.random_problems import DrawnWorld, drawn_params
from oracle.extended import EXTENDED, Arithmetic, Truth

from empo_bi import EmpoError, Params, Solution, solve
from empo_bi.results.error_bounds import RELATIVE


@dataclass
class Held:
    """A solution and, by quantity, the largest error of its numbers."""

    seed: int
    params: dict[str, Any]
    solution: Solution
    errors: dict[str, float]

    def bound(self, name: str) -> float:
        return float(getattr(self.solution.precision, name))

    @property
    def broken(self) -> list[str]:
        """Quantities whose error is above the bound."""
        return [name for name, error in self.errors.items() if not error <= self.bound(name)]


def held(seed: int, *, precision: str, wide: bool, max_steps: int = 15, arithmetic: Arithmetic = EXTENDED) -> Held | None:
    """Solve a random world and compare; None if its numbers are beyond what float64 holds."""
    rng = np.random.default_rng(seed)
    world, params = DrawnWorld(rng, max_steps=max_steps), drawn_params(rng, wide=wide)
    try:
        solution = solve(world, Params(**params), precision=precision, level_fct=lambda state: state[0], progress=False)
    except EmpoError:
        return None
    truth = Truth(world, params, arithmetic).answers
    errors: dict[str, float] = {}
    for name, found, exact in compared(solution, truth):
        with np.errstate(all="ignore"):
            off = abs(arithmetic.array(np.atleast_1d(found).ravel().tolist()) - exact)
            off = off / abs(exact) if name in RELATIVE else off
        errors[name] = max(errors.get(name, 0.0), *(float(number) for number in off))
    return Held(seed, params, solution, errors)


def compared(solution: Solution, truth: Any) -> Iterator[tuple[str, Any, Any]]:
    """Names of quantities, and what the solution and the truth have of them in each state that goes on."""
    for t in range(solution.dag.horizon + 1):
        values, pi_h, pi_r, q_r = solution.values, solution.pi_h[t], solution.pi_r[t], solution.Q_r[t]
        levels = {name: getattr(values, name)[t] for name in ("Vh_m", "Vh_e", "X_h", "U_r", "V_r")}
        for i, state in enumerate(solution.dag.states(t)):
            if state not in truth.U_r:
                continue
            for name in ("U_r", "V_r"):
                yield name, levels[name][i], np.atleast_1d(getattr(truth, name)[state])
            yield "X_h", levels["X_h"][i], truth.X_h[state]
            yield "Q_r", q_r[i], truth.Q_r[state]
            yield "pi_r", pi_r[i], truth.pi_r[state]
            for h in range(len(solution.humans)):
                for name in ("Vh_m", "Vh_e"):
                    exact = getattr(truth, name)[state, h]
                    yield name, levels[name][i][h][: len(exact)], exact
                    for g in range(len(exact)):
                        yield "pi_h", pi_h[i][h, g], truth.pi_h[state, h, g]
