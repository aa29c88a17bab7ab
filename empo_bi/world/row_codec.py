"""MapState tuples to keys and back, by way of rows: what the codecs of compiled worlds have in common.

Tuples are translated one by one, which is slow, so the engine never does it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.errors import InvalidStateError
from empo_bi.types import IndexArray, KeyArray
from empo_bi.world.key_layout import KeyLayout, as_keys

MapState = tuple[Any, ...]  # (step, agents, whatever else a kind of world has)


class RowCodec(ABC):
    """Translates the states of one world. A subclass says which row (see ``key_layout``) a tuple has, and back."""

    layout: KeyLayout
    form: str  # what a state is, for errors, such as "(step, agents, mobile, mutable)"

    @abstractmethod
    def row_of(self, state: MapState) -> tuple[int, IndexArray]:
        """Step and row of a tuple; InvalidStateError (or any error of wrong types) if it is no state of this world."""

    @abstractmethod
    def state_of(self, step: int, row: list[int]) -> MapState:
        """The tuple of a step and a row."""

    def pack(self, row_SR: IndexArray) -> KeyArray:
        """Keys ``(S, W)`` of rows."""
        return self.layout.pack(row_SR)

    def unpack(self, key_SW: KeyArray) -> IndexArray:
        """Rows ``(S, slots)`` of keys."""
        return self.layout.unpack(as_keys(self.layout.n_words, key_SW))

    def encode(self, states: Iterable[MapState]) -> tuple[IndexArray, KeyArray]:
        """Steps ``(S,)`` and keys ``(S, W)`` of state tuples.

        Raises
        ------
        InvalidStateError
            If a tuple is malformed, or describes a state that cannot occur in this world.
        """
        if isinstance(states, tuple) and states and isinstance(states[0], int):
            raise InvalidStateError("encode takes a list of states; for a single state, write encode([state])")
        states = list(states)
        steps = np.empty(len(states), dtype=np.int64)
        row_SR = np.empty((len(states), self.layout.n_slots), dtype=np.int64)
        for s, state in enumerate(states):
            try:
                steps[s], row_SR[s] = self.row_of(state)
            except InvalidStateError:
                raise
            except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
                raise InvalidStateError(
                    f"not a state of this world: {state!r} ({type(error).__name__}: {error}); give {self.form}, as in "
                    "world.initial_state()"
                ) from error
        return steps, self.pack(row_SR)

    def decode(self, steps: npt.ArrayLike, key_SW: KeyArray) -> list[MapState]:
        """MapState tuples of steps (one number for all, or one for each) and keys ``(S, W)``."""
        rows = self.unpack(key_SW).tolist()
        all_steps = np.broadcast_to(np.asarray(steps, dtype=np.int64), len(rows)).tolist()
        return [self.state_of(step, row) for step, row in zip(all_steps, rows, strict=True)]
