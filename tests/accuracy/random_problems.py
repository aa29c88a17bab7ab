"""Random small worlds and parameters over wide ranges, with ties, near ties, and chances from 1e-9 to 1."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

State = tuple[int, int]


@dataclass(frozen=True)
class Among:
    """The goal to be on one of some cells."""

    cells: frozenset[int]

    def is_achieved(self, state: Any) -> bool:
        return state[1] in self.cells


class DrawnWorld:
    """A state is (step, cell). ``rows[cell][profile]`` lists (probability, duration, next cell); some cells are the end."""

    def __init__(self, rng: np.random.Generator, *, max_steps: int) -> None:
        self.n_cells, self.n_actions = int(rng.integers(2, 5)), int(rng.choice([2, 2, 3]))
        self.n_agents = int(rng.choice([1, 2, 2, 2, 3])) if self.n_actions == 2 else int(rng.choice([1, 2, 2]))
        n_humans = int(rng.integers(1, min(2, self.n_agents) + 1))
        agents = rng.permutation(self.n_agents).tolist()
        self.humans, rest = sorted(agents[:n_humans]), agents[n_humans:]
        self.robots = sorted(rest[: len(rest) - (rng.random() < 0.1)]) if rest else []
        self.max_steps = int(rng.integers(1, max_steps + 1))
        self.time_homogeneous = bool(rng.random() < 0.7)
        self.rows = [self._cell(rng) for _ in range(self.n_cells)]
        self.ends = frozenset(np.flatnonzero(rng.random(self.n_cells) < 0.1).tolist()) - {0}
        covering = [frozenset({cell}) for cell in range(self.n_cells)]
        self.goals = [[(cells, float(rng.choice([1.0, rng.random() + 0.01]))) for cells in covering] for _ in self.humans]
        if rng.random() < 0.5:
            for known in self.goals:
                known.append((frozenset(rng.choice(self.n_cells, 2, replace=False).tolist()), float(rng.random())))
        self.action_space = SimpleNamespace(n=self.n_actions)
        self.human_agent_indices, self.robot_agent_indices = self.humans, self.robots
        self.possible_goal_generator: Any = self
        if rng.random() < 0.3:
            self.transition_durations = self._durations

    def _cell(self, rng: np.random.Generator) -> dict[tuple[int, ...], list[tuple[float, float, int]]]:
        """Rows that are often the same as another one, or nearly so."""
        rows: list[list[tuple[float, float, int]]] = []
        profiles = list(itertools.product(range(self.n_actions), repeat=self.n_agents))
        for _ in profiles:
            kind = rng.random()
            if rows and kind < 0.25:
                rows.append(rows[rng.integers(len(rows))])
            elif rows and kind < 0.5:
                rows.append(_nearly(rows[rng.integers(len(rows))], 10.0 ** -rng.uniform(1, 9)))
            else:
                rows.append(self._row(rng))
        return dict(zip(profiles, rows, strict=True))

    def _row(self, rng: np.random.Generator) -> list[tuple[float, float, int]]:
        n = int(rng.integers(1, min(3, self.n_cells) + 1))
        cells = rng.choice(self.n_cells, n, replace=False).tolist()
        weights = rng.random(n) ** rng.choice([1, 3]) + 1e-3
        if n > 1 and rng.random() < 0.2:
            weights[0] = 10.0 ** -rng.uniform(3, 9)
        chances = (weights / weights.sum()).tolist()
        if n > 1:
            chances[-1] = 1.0 - sum(chances[:-1])
        return [(p, float(rng.choice([1.0, 0.3, 2.5])), cell) for p, cell in zip(chances, cells, strict=True)]

    # --- as the engine asks -----------------------------------------------------------------------------------------------

    def initial_state(self) -> State:
        return 0, 0

    def transition_probabilities(self, state: State, actions: Sequence[int]) -> Any:
        step, cell = state
        if step == self.max_steps or cell in self.ends:
            return None
        return [(p, (step + 1, after)) for p, _, after in self.rows[cell][tuple(actions)]]

    def _durations(self, state: State, actions: Sequence[int], transitions: Any) -> list[float]:
        return [duration for _, duration, _ in self.rows[state[1]][tuple(actions)]]

    def generate(self, state: State, human_agent_index: int) -> Iterator[tuple[Among, float]]:
        for cells, weight in self.goals[self.humans.index(human_agent_index)]:
            yield Among(cells), weight

    # --- as the oracle asks -----------------------------------------------------------------------------------------------

    def transitions(self, state: State) -> dict[tuple[int, ...], list[tuple[float, float, State]]]:
        step, cell = state
        if step == self.max_steps or cell in self.ends:
            return {}
        timed = hasattr(self, "transition_durations")
        return {
            profile: [(p, duration if timed else 1.0, (step + 1, after)) for p, duration, after in row]
            for profile, row in self.rows[cell].items()
        }

    @cached_property
    def states(self) -> list[State]:
        found = [{self.initial_state()}]
        for _ in range(self.max_steps):
            following = {s for state in found[-1] for row in self.transitions(state).values() for _, _, s in row}
            found.append(following)
        return [state for level in found for state in sorted(level)]


def _nearly(row: list[tuple[float, float, int]], by: float) -> list[tuple[float, float, int]]:
    """The same with a little probability moved."""
    if len(row) < 2 or row[1][0] <= 2 * by:
        return row
    (p, *first), (_, *second), *others = row
    moved = p + by
    return [(moved, *first), (1.0 - moved - sum(r[0] for r in others), *second), *others]  # type: ignore[list-item]


def drawn_params(rng: np.random.Generator, *, wide: bool) -> dict[str, Any]:
    """Parameters, ordinary ones or over wide ranges."""

    def log_uniform(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    def discount() -> float | None:
        return None if rng.random() < 0.4 else float(rng.choice([0.99, 0.9, 0.5, rng.uniform(0.2, 1)]))

    params: dict[str, Any] = {"gamma_h": discount(), "gamma_r": discount(), "optimistic": bool(rng.random() < 0.3)}
    if not wide:
        return params | {
            "beta_h": float(rng.uniform(1, 30)), "beta_r": float(rng.uniform(1, 20)), "zeta": float(rng.choice([1.0, 2.0])),
            "xi": 1.0, "eta": float(rng.choice([1.0, 1.1])), "terminal_Vr": -1e-10,
        }  # fmt: skip
    return params | {
        "beta_h": float(rng.choice([0.0, np.inf, *([log_uniform(0.1, 1e3)] * 6)])),
        "beta_r": float(rng.choice([0.0, *([log_uniform(0.1, 1e4)] * 6)])),
        "zeta": float(rng.choice([1.0, 2.0, log_uniform(0.2, 50), log_uniform(1, 50)])),
        "xi": log_uniform(0.1, 10), "eta": log_uniform(0.1, 4), "terminal_Vr": float(rng.choice([-1e-10, -1e-10, -1.0])),
    }  # fmt: skip
