"""Worlds written in Python whose levels the user's ``level_fct`` gives; only states of levels to come are remembered."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from empo_bi.dag.attainment import FixedGoals
from empo_bi.dag.levels import Levels
from empo_bi.dag.python_explorer import PythonExplorer
from empo_bi.dag.python_world import LevelFunction, PythonBlock, level_of, not_higher
from empo_bi.dag.slices import BodySlice, as_array, bodies_from
from empo_bi.errors import StoreMismatchError
from empo_bi.runtime.wording import short_repr
from empo_bi.world.as_model import Model


class LevelExplorer(PythonExplorer):
    """Levels as ``level_fct`` gives them. A level's states are all known once the levels below it have been expanded."""

    levels_are = "given"

    def __init__(self, model: Model, goals: FixedGoals | None, level_fct: LevelFunction, **options: Any) -> None:
        super().__init__(model, goals, **options)
        self._level_fct = level_fct
        self._number_of: dict[Hashable, int] = {}
        self._waiting: dict[int, tuple[list[int], list[Any]]] = {}  # by level: numbers, ascending, and states
        for start in self.starts:
            self._add(start, self._level_of(start))

    def _level_of(self, state: Any) -> int:
        return level_of(self._level_fct, state)

    def _add(self, state: Any, level: int) -> int:
        number = self._number_of[state] = self.count(state)
        numbers, states = self._waiting.setdefault(level, ([], []))
        numbers.append(number)
        states.append(state)
        return number

    def next_level(self, earlier: Levels) -> BodySlice | None:
        if not self._waiting:
            return None
        value = min(self._waiting)
        numbers, states = self._waiting.pop(value)
        for state in states:
            del self._number_of[state]  # what follows is on higher levels
        builder = self.new_builder()
        ended = []
        for first, block in self.expanded_blocks(states):
            number_of_local = [self._number(block, local, states, first, value) for local in range(len(block.found))]
            builder.add(block.count_SJ, np.array(number_of_local, dtype=np.int64)[block.local_K], block.prob_K)
            ended.append(block.ended_S)
        all_ended = bool(np.concatenate(ended).all())
        return self.own_level(value, np.array(numbers, dtype=np.int64), states, all_ended=all_ended, known=self.n_known)

    def _number(self, block: PythonBlock, local: int, states: Sequence[Any], first: int, value: int) -> int:
        successor = block.found[local]
        known = self._number_of.get(successor)
        if known is not None:
            return known
        level = self._level_of(successor)
        if level <= value:
            row, profile = block.origin(local)
            raise not_higher(successor, level, states[first + row], value, self.profiles[profile])
        return self._add(successor, level)

    def check(self, heads: Iterable[BodySlice]) -> None:
        """A function cannot be told from another by its looks, so it is asked about every state."""
        for piece in heads:
            for state in piece.states or ():
                if (level := self._said_of(state)) != piece.value:
                    raise StoreMismatchError(
                        f"the store has {short_repr(state)} on level {piece.value}, level_fct says {level}; use the "
                        "function that the store was made with, choose another place, or pass overwrite=True"
                    )

    def _said_of(self, state: Any) -> Any:
        """The level of a stored state, or what ``level_fct`` says of one that it cannot read."""
        try:
            return self._level_of(state)
        except Exception as error:  # a user's function, about a state that may be anybody's
            return repr(error)

    def frontier(self) -> list[BodySlice]:
        pieces = []
        for value, (numbers, states) in sorted(self._waiting.items()):
            members = bodies_from(np.array(numbers, dtype=np.int64))
            # A copy, since it is written in the background while more states are found.
            pieces.append(BodySlice(value=value, members=members, added=members, states=list(states)))
        return pieces

    def resume(self, done: Levels, frontier: list[BodySlice]) -> None:
        self._number_of, self._waiting = {}, {}
        for piece in frontier:
            assert piece.states is not None
            numbers, states = as_array(piece.added).tolist(), list(piece.states)
            self._waiting[piece.value] = numbers, states
            self._number_of.update(zip(states, numbers, strict=True))
        if len(self._number_of) < sum(len(piece.added) for piece in frontier):
            raise done.damaged("a state of the frontier is there twice")
        self.n_known = sum(len(piece.added) for piece in itertools.chain(done.heads(), frontier))
