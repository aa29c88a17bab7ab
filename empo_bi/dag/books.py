"""Which state has which number: packed keys for compiled worlds, a dictionary for worlds written in Python."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Protocol

import numpy as np

from empo_bi.dag.key_index import KeyIndex
from empo_bi.dag.slices import IndexArray
from empo_bi.world.gridworld import GridWorld


class StateBook(Protocol):
    """Translates between states and (level, body)."""

    nbytes: int

    def __len__(self) -> int: ...

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        """States of some bodies on level ``t``."""

    def find(self, state: Any) -> tuple[int, int]:
        """Level and body of a state; body -1 if it was never met."""


class KeyBook:
    """A gridworld's bodies; the level is the step."""

    def __init__(self, world: GridWorld, index: KeyIndex) -> None:
        self._world, self._index = world, index
        self.nbytes = index.nbytes

    def __len__(self) -> int:
        return len(self._index)

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        return list(self._world.decode(t, self._index.keys[body_S]))

    def find(self, state: Any) -> tuple[int, int]:
        steps, key_1W = self._world.encode([state])
        return int(steps[0]), int(self._index.find(key_1W)[0])


class DictBook:
    """States of a Python world, level after level; every state is a body of its own."""

    def __init__(self, states: list[Any], first_of_level: IndexArray) -> None:
        self._states = states
        self._number_of: dict[Hashable, int] = {state: number for number, state in enumerate(states)}
        self._first_of_level = first_of_level
        self.nbytes = 0  # the states are the user's own objects

    def __len__(self) -> int:
        return len(self._states)

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        return [self._states[body] for body in body_S.tolist()]

    def find(self, state: Any) -> tuple[int, int]:
        body = self._number_of.get(state, -1)
        return (int(np.searchsorted(self._first_of_level, body, side="right")) - 1 if body >= 0 else 0), body
