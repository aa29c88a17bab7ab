"""Which state has which number: keys for compiled worlds, a dictionary for Python worlds; built when first asked for."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

import numpy as np

from empo_bi.dag.key_index import KeyIndex
from empo_bi.dag.levels import Levels
from empo_bi.dag.slices import IndexArray, as_array
from empo_bi.world.expand import KeyArray
from empo_bi.world.gridworld import GridWorld


class StateBook(Protocol):
    """Translates between states and (level, body)."""

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        """States of some bodies on level ``t``."""

    def find(self, state: Any) -> list[tuple[int, int]]:
        """Levels and bodies that a state may be, to be looked up there; none if it was never met."""


class KeyBook:
    """A gridworld's bodies; the level is the step."""

    def __init__(self, world: GridWorld, levels: Levels) -> None:
        self._world, self._levels = world, levels
        self._index: KeyIndex | None = None

    def _known(self) -> KeyIndex:
        if self._index is None:
            self._index = KeyIndex(self._world.layout.n_words)
            for piece in self._levels.heads():
                if piece.key_BW is not None:
                    self._index.add(piece.key_BW)
        return self._index

    def keys(self, body_S: IndexArray) -> KeyArray:
        keys: KeyArray = self._known().keys[body_S]
        return keys

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        return list(self._world.decode(t, self.keys(body_S)))

    def find(self, state: Any) -> list[tuple[int, int]]:
        steps, key_1W = self._world.encode([state])
        body = int(self._known().find(key_1W)[0])
        return [(int(steps[0]), body)] if body >= 0 else []


class StateListBook:
    """States of a Python world, each of which is a body of its own."""

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self._found: dict[Hashable, tuple[int, int]] | None = None

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        states = self._levels[t].states
        if states is None:
            raise ValueError("this store has no states, only their numbers")
        return list(states)

    def find(self, state: Any) -> list[tuple[int, int]]:
        if self._found is None:
            self._found = {}
            for t, piece in enumerate(self._levels.heads()):
                places = ((t, body) for body in as_array(piece.added).tolist())
                self._found.update(zip(piece.states or (), places, strict=True))
        return [self._found[state]] if state in self._found else []


class SharedStateBook:
    """States of a time-homogeneous Python world: the first element is the step, the rest is the body."""

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self._states: list[Any] | None = None
        self._body_of: dict[Hashable, int] = {}
        self._first_step = 0

    def _known(self) -> list[Any]:
        if self._states is None:
            self._states = [state for piece in self._levels.heads() for state in piece.states or ()]
            self._body_of = {tuple(state[1:]): body for body, state in enumerate(self._states)}
            self._first_step = int(self._states[0][0])
        return self._states

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        known = self._known()
        make = type(known[0])._make if hasattr(type(known[0]), "_make") else tuple
        step = self._first_step + t
        return [make((step, *known[body][1:])) for body in body_S.tolist()]

    def find(self, state: Any) -> list[tuple[int, int]]:
        self._known()
        if not isinstance(state, tuple) or not state or not isinstance(state[0], int | np.integer):
            return []
        body = self._body_of.get(tuple(state[1:]))
        return [] if body is None else [(int(state[0]) - self._first_step, body)]
