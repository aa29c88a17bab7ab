"""Worlds written in Python without levels of their own: all is explored, then a state's level is its longest path."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.attainment import FixedGoals
from empo_bi.dag.levels import Levels
from empo_bi.dag.python_explorer import PythonExplorer
from empo_bi.dag.slices import BodySlice, entries_of
from empo_bi.errors import InvalidWorldError
from empo_bi.runtime.wording import short_repr
from empo_bi.types import BoolArray, IndexArray
from empo_bi.world.as_model import Model


class DerivedExplorer(PythonExplorer):
    """No levels given: all states are explored, then a state's level is the length of the longest path to it."""

    levels_are = "derived"

    def __init__(self, model: Model, goals: FixedGoals | None, **options: Any) -> None:
        super().__init__(model, goals, **options)
        self._levels: Iterator[BodySlice] | None = None
        self._known = len(self.starts)  # bodies that the levels so far lead to have lower numbers

    def next_level(self, earlier: Levels) -> BodySlice | None:
        if self._levels is None:
            self._levels = self._explore()
        return next(self._levels, None)

    def frontier(self) -> list[BodySlice]:
        return []

    def resume(self, done: Levels, frontier: list[BodySlice]) -> None:
        """Begin anew: everything has to be explored in any case."""
        done.restart()

    def _explore(self) -> Iterator[BodySlice]:
        states = list(self.starts)
        number_of: dict[Hashable, int] = {start: self.count(start) for start in self.starts}
        counts, succs, probs = [], [], []
        done = 0
        while done < len(states):
            generation = states[done:]
            done = len(states)
            for _, block in self.expanded_blocks(generation):
                for state in block.found:
                    if state not in number_of:
                        number_of[state] = self.count(state)
                        states.append(state)
                number_of_local = np.array([number_of[state] for state in block.found], dtype=np.int64)
                counts.append(block.count_SJ)
                succs.append(number_of_local[block.local_K])
                probs.append(block.prob_K)
        count_NJ, succ_K, prob_K = np.concatenate(counts), np.concatenate(succs), np.concatenate(probs)
        starts = np.concatenate([np.zeros(1, dtype=np.int64), count_NJ.sum(axis=1).cumsum()])
        level_N = self._longest_paths(states, starts, succ_K)
        for value in range(int(level_N.max()) + 1):
            yield self._level(value, np.flatnonzero(level_N == value), states, count_NJ, starts, succ_K, prob_K)

    def _level(
        self, value: int, number_S: IndexArray, states: list[Any], count_NJ: IndexArray, starts: IndexArray,
        succ_K: IndexArray, prob_K: npt.NDArray[np.float64],
    ) -> BodySlice:  # fmt: skip
        entries = entries_of(starts, number_S)
        self.new_builder().add(count_NJ[number_S], succ_K[entries], prob_K[entries])
        self._known = max(self._known, int(succ_K[entries].max(initial=-1)) + 1)
        here = [states[n] for n in number_S.tolist()]
        return self.own_level(value, number_S, here, all_ended=len(entries) == 0, known=self._known)

    def _longest_paths(self, states: list[Any], starts: IndexArray, succ_K: IndexArray) -> IndexArray:
        successors = [np.unique(succ_K[a:b]).tolist() for a, b in itertools.pairwise(starts.tolist())]
        level_N, on_cycle = longest_paths(successors, len(self.starts))
        if on_cycle is not None:
            raise has_cycle(states[on_cycle])
        return level_N


def has_cycle(state: Any) -> InvalidWorldError:
    return InvalidWorldError(
        f"the world has a cycle through {short_repr(state)}; time has to move forward: put a step counter into the state, "
        "and let every transition raise it"
    )


def longest_paths(successors: list[list[int]], n_starts: int = 1) -> tuple[IndexArray, int | None]:
    """The length of the longest path from one of the first states to each, and a state on a cycle if there is one."""
    waiting = np.zeros(len(successors), dtype=np.int64)
    for targets in successors:
        waiting[targets] += 1
    level = np.zeros(len(successors), dtype=np.int64)
    ready = [start for start in range(n_starts) if waiting[start] == 0]
    while ready:
        state = ready.pop()
        for target in successors[state]:
            level[target] = max(level[target], level[state] + 1)
            waiting[target] -= 1
            if waiting[target] == 0:
                ready.append(target)
    left = np.flatnonzero(waiting)
    return level, _on_cycle(successors, waiting > 0, int(left[0])) if len(left) else None


def _on_cycle(successors: list[list[int]], left: BoolArray, state: int) -> int:
    """Walk backwards among the states left over, each of which has a predecessor there, until one comes again."""
    before = {target: source for source, targets in enumerate(successors) if left[source] for target in targets}
    seen: set[int] = set()
    while state not in seen:
        seen.add(state)
        state = before[state]
    return state
