"""The engine as the oracle's tests see a world: once through the per-state API, once through blocks of packed states."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from empo_bi import GridWorld, WorldWarning, load_world, worlds

GRIDWORLDS = [name for name in worlds.available() if not name.startswith("bush_worlds/")]


def load_quietly(source: Any, **overrides: Any) -> GridWorld:
    """Load a world whose goals, or lack of them, do not matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorldWarning)
        return load_world(source, **overrides)


class PerState:
    """``transition_probabilities``, one state and profile at a time."""

    def __init__(self, world: GridWorld) -> None:
        self.world = world
        self.action_names = world.action_names

    def initial_state(self) -> tuple:
        return self.world.initial_state()

    def profiles(self) -> Iterable[tuple[int, ...]]:
        """Agent 0 is the least significant digit, so it changes fastest."""
        actions = range(self.world.action_space.n)
        return (profile[::-1] for profile in itertools.product(actions, repeat=len(self.world.agents)))

    def transitions(self, state: tuple, profile: Sequence[int]) -> dict[tuple, float] | None:
        pairs = self.world.transition_probabilities(state, profile)
        if pairs is None:
            return None
        outcomes = {successor: probability for probability, successor in pairs}
        assert len(outcomes) == len(pairs), "equal successors have to be merged"
        return outcomes


class Blocks(PerState):
    """All profiles of all states of a level in one block; answers come from the last block expanded."""

    def __init__(self, world: GridWorld) -> None:
        super().__init__(world)
        self._outcomes: dict[tuple, list[dict[tuple, float]]] = {}

    def transitions(self, state: tuple, profile: Sequence[int]) -> dict[tuple, float] | None:
        if state[0] >= self.world.max_steps:
            return None
        if state not in self._outcomes:
            self._expand(self._frontier(state))
        n_actions = self.world.action_space.n
        return self._outcomes[state][sum(action * n_actions**i for i, action in enumerate(profile))]

    def _frontier(self, state: tuple) -> list[tuple]:
        """The state's whole level, as far as the last block has discovered it."""
        found = {successor for rows in self._outcomes.values() for outcomes in rows for successor in outcomes}
        return sorted((s for s in found if s[0] == state[0]), key=repr) if state in found else [state]

    def _expand(self, states: list[tuple]) -> None:
        steps, key_SW = self.world.encode(states)
        count_SJ, key_KW, prob_K = self.world.expand(key_SW)
        ends = np.cumsum(count_SJ.ravel())
        successors = self.world.decode(steps[0] + 1, key_KW)
        assert ends[-1] == len(successors) == len(prob_K)
        self._outcomes = {}
        for s, state in enumerate(states):
            rows = []
            for j in range(count_SJ.shape[1]):
                last = ends[s * count_SJ.shape[1] + j]
                first = last - count_SJ[s, j]
                rows.append(dict(zip(successors[first:last], prob_K[first:last].tolist(), strict=True)))
                assert len(rows[-1]) == count_SJ[s, j], "equal successors have to be merged"
            self._outcomes[state] = rows
