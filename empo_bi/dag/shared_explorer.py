"""Worlds written in Python that promise to be time-homogeneous: the level is the step, and bodies are shared."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from empo_bi.dag.attainment import FixedGoals
from empo_bi.dag.level_members import successors_of
from empo_bi.dag.levels import Levels
from empo_bi.dag.python_explorer import PythonExplorer
from empo_bi.dag.python_world import PythonBlock, expand_states, is_terminal
from empo_bi.dag.slices import BodySlice, Rows, as_array, bodies_from, places_in, transitions_of
from empo_bi.errors import InvalidWorldError, TooManyStatesError
from empo_bi.runtime.wording import short_repr
from empo_bi.types import BoolArray, IndexArray, Json
from empo_bi.world.as_model import Model
from empo_bi.world.model import State

MAX_LEVELS = 100_000  # of a world whose few bodies might go round for ever


class SharedExplorer(PythonExplorer):
    """A time-homogeneous world: a body's transitions are asked for once, at the first step at which it is not terminal.

    Which states are terminal may depend on the step, so this is asked for every state; and only states that occur are.
    """

    shares_bodies = True

    def __init__(self, model: Model, goals: FixedGoals | None, **options: Any) -> None:
        super().__init__(model, goals, **options)
        for start in self.starts:
            if not begins_with_step(start):
                raise without_step(start)
        # Named tuples stay named, since the world may ask for their fields.
        kind: Any = type(self.starts[0])
        self._make = kind._make if hasattr(kind, "_make") else tuple
        self._number_of: dict[Hashable, int] = {}
        self._rests: list[tuple[Any, ...]] = []
        self._is_expanded = np.zeros(0, dtype=np.bool_)
        self._begin_levels(-math.inf)
        self._first = 0
        self._expanding: list[int] = []  # levels whose slices hold transitions
        self._max_levels = MAX_LEVELS if options["max_states"] is None else self._max_states

    def _begin_levels(self, before: float) -> None:
        """Go to the first step after ``before`` at which some start."""
        self._step = min(int(start[0]) for start in self.starts if int(start[0]) > before)
        self._members = bodies_from(self._started())

    def _started(self) -> IndexArray:
        """Numbers of the bodies that start at this step, ascending."""
        here = [self._number_of_rest(start) for start in self.starts if int(start[0]) == self._step]
        return np.unique(np.array(here, dtype=np.int64))

    def _number_of_rest(self, state: State) -> int:
        rest = tuple(state[1:])
        known = self._number_of.get(rest)
        if known is None:
            known = self._number_of[rest] = self.count(state)
            self._rests.append(rest)
        return known

    def _state(self, body: int) -> Any:
        return self._make((self._step, *self._rests[body]))

    def next_level(self, earlier: Levels) -> BodySlice | None:
        if len(self._members) == 0:
            return None
        body_S = as_array(self._members)
        added = range(self._first, self.n_known)
        if len(earlier) >= self._max_levels:
            raise TooManyStatesError(
                f"more than {self._max_levels:,} levels, the last one with {short_repr(self._state(int(body_S[0])))}. Does "
                "the world ever end? If it does, allow more with max_states"
            )
        states = [self._state(body) for body in body_S.tolist()]
        transitions = self._expand(body_S, states)
        piece = BodySlice(
            value=self._step,
            members=self._members,
            added=added,
            states=[self._state(body) for body in added],
            attained=self.attained(self._step, states),
            attained_by_body=False,
            **transitions,
        )
        going_on = body_S[piece.goes_on_S]
        self._first = added.stop
        self._step += 1
        self._check_promise(piece, body_S, states, earlier)
        stored = (earlier.stretches(t, self.n_profiles) for t in self._expanding)
        sources = itertools.chain(*stored, piece.stretches(self.n_profiles))
        followers = successors_of(going_on, sources, self.n_profiles, self.n_known)
        if len(followers) == 0 and any(int(start[0]) > piece.value for start in self.starts):
            self._begin_levels(piece.value)
        else:
            self._members = bodies_from(np.union1d(followers, self._started()))
        if piece.n_entries:
            self._expanding.append(len(earlier))
        return replace(piece, known=self.n_known)

    def _check_promise(self, piece: BodySlice, body_S: IndexArray, states: list[Any], earlier: Levels) -> None:
        """Ask again about one body that an earlier level expanded: its successors have to be the same but for the step."""
        again = piece.goes_on_S
        again[places_in(piece.members, as_array(piece.expanded))[1]] = False
        if not again.any():
            return
        s = int(np.argmax(again))
        body = body_S[s : s + 1]
        slices = itertools.chain.from_iterable(earlier.stretches(t, self.n_profiles, body) for t in self._expanding)
        stored = transitions_of(body, slices, self.n_profiles)
        block = expand_states(self.model, self.profiles, [states[s]], self._stops)
        bodies = np.array([self._number_of.get(tuple(state[1:]), -1) for state in block.found], dtype=np.int32)
        if not stored.agrees_with(Rows(block.count_SJ, bodies[block.local_K], block.prob_K)):
            raise other_successors(states[s])

    def _expand(self, body_S: IndexArray, states: list[Any]) -> Json:
        """Transitions of those bodies on this level that go on and were never expanded, and which states have ended."""
        more = np.zeros(self.n_known - len(self._is_expanded), dtype=np.bool_)
        self._is_expanded = np.concatenate([self._is_expanded, more])
        is_new = ~self._is_expanded[body_S]
        ended_S = np.zeros(len(body_S), dtype=np.bool_)
        known = [states[s] for s in np.flatnonzero(~is_new).tolist()]
        ended_S[~is_new] = [is_terminal(self.model, state, self.profiles, self._stops) for state in known]
        new = np.flatnonzero(is_new)
        asked = [states[s] for s in new.tolist()]
        builder = self.new_builder()
        for first, block in self.expanded_blocks(asked):
            ended_S[new[first : first + len(block.ended_S)]] = block.ended_S
            number_of_local = [self._number(block, local, asked, first) for local in range(len(block.found))]
            number_K = np.array(number_of_local, dtype=np.int64)[block.local_K]
            builder.add(block.count_SJ[~block.ended_S], number_K, block.prob_K)
        expanded = body_S[is_new & ~ended_S]
        self._is_expanded[expanded] = True
        transitions = builder.arrays(partial(self._watch.look, 0))
        return {"ended": _summed_up(ended_S), "expanded": bodies_from(expanded), **transitions}

    def _number(self, block: PythonBlock, local: int, states: Sequence[Any], first: int) -> int:
        successor = block.found[local]
        if not isinstance(successor, tuple) or not successor or successor[0] != self._step + 1:
            row, profile = block.origin(local)
            raise not_next_step(successor, states[first + row], self.profiles[profile], self._step + 1)
        return self._number_of_rest(successor)

    def frontier(self) -> list[BodySlice]:
        if len(self._members) == 0:
            return []
        added = range(self._first, self.n_known)
        states = [self._state(body) for body in added]
        return [BodySlice(value=self._step, members=self._members, added=added, states=states)]

    def resume(self, done: Levels, frontier: list[BodySlice]) -> None:
        self._rests, expanded = [], []
        for t, piece in enumerate(itertools.chain(done.heads(), frontier)):
            if len(piece.expanded):
                self._expanding.append(t)
            self._rests += [tuple(state[1:]) for state in piece.states or ()]
            expanded.append(as_array(piece.expanded))
        self._number_of = {rest: number for number, rest in enumerate(self._rests)}
        if len(self._number_of) < len(self._rests):
            raise done.damaged("a state is there twice")
        self.n_known = self._first = len(self._rests)
        self._is_expanded = np.zeros(self.n_known, dtype=np.bool_)
        self._is_expanded[np.concatenate(expanded)] = True
        self._members = range(0)
        for piece in frontier:
            self._step, self._members = piece.value, piece.members
            self._first = self.n_known - len(piece.added)


def without_step(start: Any) -> InvalidWorldError:
    return InvalidWorldError(
        f"the world declares time_homogeneous, but its initial state is {short_repr(start)}; such a world's states "
        "are tuples that begin with the step"
    )


def not_next_step(successor: Any, state: Any, profile: list[int], step: int) -> InvalidWorldError:
    return InvalidWorldError(
        f"{short_repr(successor)} follows {short_repr(state)} under profile {profile}, but the world declares "
        f"time_homogeneous: a successor is a tuple that begins with the next step, {step}. Mend the world, or take the "
        "declaration back"
    )


def other_successors(state: Any) -> InvalidWorldError:
    return InvalidWorldError(
        f"{short_repr(state)} has other successors than the same state at an earlier step, but the world "
        "declares time_homogeneous; take the declaration back, or put what its rules depend on into the state"
    )


def _summed_up(ended_S: BoolArray) -> bool | BoolArray:
    return bool(ended_S[0]) if len(ended_S) and ended_S.all() == ended_S.any() else ended_S


def begins_with_step(state: Any) -> bool:
    return isinstance(state, tuple) and bool(state) and type(state[0]) is not bool and isinstance(state[0], int | np.integer)
