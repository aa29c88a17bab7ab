"""Which state has which number: keys for compiled worlds, a dictionary for Python worlds; built when first asked for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from empo_bi.dag.key_index import KeyIndex
from empo_bi.dag.levels import Levels
from empo_bi.dag.slices import as_array, places_in
from empo_bi.runtime.wording import short_repr
from empo_bi.types import IndexArray, KeyArray


class StateIndex(Protocol):
    """Translates between states and (level, body)."""

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        """States of some bodies on level ``t``."""

    def find(self, state: Any) -> list[tuple[int, int]]:
        """Levels and bodies that a state may be, to be looked up there; none if it was never met."""


class StateKeys(Protocol):
    """Translates between states and keys: a packed world, or less."""

    @property
    def n_words(self) -> int: ...

    def encode(self, states: Iterable[Any]) -> tuple[npt.NDArray[np.int64], KeyArray]:
        """Steps and keys of states."""

    def decode(self, steps: npt.ArrayLike, key_SW: KeyArray) -> list[Any]:
        """States of keys."""


def level_at(levels: Levels, step: int) -> int:
    """The level of a step; -1 if there is none, as before the first one, or between the starts of sub-problems."""
    t = bisect_left(levels.sizes, step, key=lambda sizes: sizes.value)
    return t if t < len(levels.sizes) and levels.sizes[t].value == step else -1


class KeyStateIndex:
    """Bodies of a packed world; the level is the step."""

    def __init__(self, codec: StateKeys, levels: Levels) -> None:
        self._codec, self._levels = codec, levels
        # Two numbers that only grow: which keys are known, in order, and which of them can be looked up. Looking up takes
        # several times the room, and most questions are the other way round.
        self._key_BW: KeyArray = np.empty((0, codec.n_words), dtype=np.uint64)
        self._index, self._n_read, self._n_indexed = KeyIndex(codec.n_words), 0, 0

    def _known_up_to(self, t: int) -> KeyIndex:
        while self._n_indexed <= min(t, len(self._levels) - 1):
            piece = self._levels.head(self._n_indexed)
            if piece.key_BW is not None:
                self._index.add(piece.key_BW)
            self._n_indexed += 1
            if len(self._index) != piece.added.stop and len(piece.added):  # type: ignore[union-attr]
                raise self._levels.damaged(f"level {self._n_indexed - 1}, array 'key': a body is there twice")
        return self._index

    def keys(self, t: int, body_S: IndexArray) -> KeyArray:
        if self._n_indexed > min(t, len(self._levels) - 1):
            # The index has them as well; a slice of the array would hold on to all of it.
            self._key_BW, self._n_read = np.empty((0, self._key_BW.shape[1]), dtype=np.uint64), 0
            return self._index.keys[body_S]
        new = range(self._n_read, min(t, len(self._levels) - 1) + 1)
        if new:
            known = len(self._key_BW)
            n_keys = known + sum(self._levels.sizes[i].n_bodies for i in new)
            key_BW = np.empty((n_keys, self._key_BW.shape[1]), dtype=np.uint64)
            key_BW[:known] = self._key_BW
            for i in new:
                key_MW = self._levels.head(i).key_BW
                if key_MW is not None:
                    key_BW[known : known + len(key_MW)] = key_MW
                    known += len(key_MW)
            self._key_BW, self._n_read = key_BW[:known], new.stop
        return self._key_BW[body_S]

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        return list(self._codec.decode(self._levels.sizes[t].value, self.keys(t, body_S)))

    def find(self, state: Any) -> list[tuple[int, int]]:
        steps, key_1W = self._codec.encode([state])
        t = level_at(self._levels, int(steps[0]))
        body = int(self._known_up_to(t).find(key_1W)[0])
        return [(t, body)] if body >= 0 else []


class ListStateIndex:
    """States of a Python world, each of which is a body of its own."""

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self._found: dict[Hashable, tuple[int, int]] | None = None

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        piece = self._levels.part(t, ("members", "states"))
        if piece.states is None:
            raise ValueError("this store has no states, only their numbers")
        return [piece.states[place] for place in places_in(piece.members, body_S)[1].tolist()]

    def find(self, state: Any) -> list[tuple[int, int]]:
        if self._found is None:
            found: dict[Hashable, tuple[int, int]] = {}
            for t, piece in enumerate(self._levels.heads()):
                places = ((t, body) for body in as_array(piece.added).tolist())
                found.update(zip(piece.states or (), places, strict=True))
            if len(found) < sum(sizes.n_bodies for sizes in self._levels.sizes):
                raise self._levels.damaged("a state is there twice")
            self._found = found  # once it is complete
        return [self._found[state]] if state in self._found else []


class SharedStateIndex:
    """States of a time-homogeneous Python world: the first element is the step, the rest is the body."""

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self._states: list[Any] = []
        self._body_of: dict[Hashable, int] = {}
        self._n_read = 0

    def _known_up_to(self, t: int) -> list[Any]:
        while self._n_read <= min(t, len(self._levels) - 1):
            for state in self._levels.head(self._n_read).states or ():
                if not isinstance(state, tuple) or not state:
                    raise self._levels.damaged(
                        f"level {self._n_read}, array 'states': {short_repr(state)} does not begin with a step; if the "
                        "world has decode_state, give the world"
                    )
                self._body_of[tuple(state[1:])] = len(self._states)
                self._states.append(state)
            self._n_read += 1
            if len(self._body_of) < len(self._states):
                raise self._levels.damaged(f"level {self._n_read - 1}, array 'states': a state is there twice")
        return self._states

    def states(self, t: int, body_S: IndexArray) -> list[Any]:
        known = self._known_up_to(t)
        make = type(known[0])._make if hasattr(type(known[0]), "_make") else tuple
        step = self._levels.sizes[t].value
        return [make((step, *known[body][1:])) for body in body_S.tolist()]

    def find(self, state: Any) -> list[tuple[int, int]]:
        if not isinstance(state, tuple) or not state or not isinstance(state[0], int | np.integer):
            return []
        t = level_at(self._levels, int(state[0]))
        self._known_up_to(t)
        body = self._body_of.get(tuple(state[1:]))
        return [] if body is None else [(t, body)]
