"""Worlds written in Python, level by level. Three kinds, which differ in where levels come from:

- :class:`LevelExplorer`: the user's ``level_fct`` tells. Only states of levels to come are remembered.
- :class:`SharedExplorer`: the world promises to be time-homogeneous; the level is the step, and bodies are shared.
- :class:`DerivedExplorer`: nobody tells; everything is explored first, then a state's level is its longest path.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.attainment import FixedGoals
from empo_bi.dag.levels import Levels
from empo_bi.dag.python_world import (
    LevelFunction,
    PythonBlock,
    all_profiles_of,
    expand_states,
    initial_state_of,
    is_terminal,
    unhashable,
)
from empo_bi.dag.reach import successors_of
from empo_bi.dag.slices import (
    BYTES_PER_STATE,
    Bodies,
    BodySlice,
    BoolArray,
    IndexArray,
    Rows,
    SliceBuilder,
    as_array,
    bodies_from,
    places_in,
    transitions_of,
)
from empo_bi.errors import InvalidWorldError, StoreMismatchError, TooManyStatesError, short_repr
from empo_bi.memory.watch import Watch
from empo_bi.runtime.blocks import map_blocks

MAX_STATES = 10_000_000
MAX_LEVELS = 100_000  # of a world whose few bodies might go round for ever
BLOCK_PAIRS = 4096  # (state, profile) pairs a worker expands at a time


class PythonExplorer:
    """What the three kinds have in common: asking the world in blocks, and counting states."""

    shares_bodies = False
    levels_are = "steps"
    n_levels: int | None = None

    def __init__(
        self,
        world: Any,
        goals: FixedGoals | None,
        *,
        precision: str,
        workers: int,
        max_states: int | None,
        watch: Watch,
    ) -> None:
        """``max_states`` is ``MAX_STATES`` unless given, so that a world without an end is noticed."""
        self.world = world
        self.profiles = all_profiles_of(world)
        self.n_profiles = len(self.profiles)
        self.n_known = 0
        self._trusts_workers = False
        self._watch = watch
        self._goals, self._precision, self._workers = goals, precision, workers
        self._max_states = MAX_STATES if max_states is None else max_states
        self.start = initial_state_of(world)
        try:
            hash(self.start)
        except TypeError as error:
            raise unhashable("the initial state", self.start, error) from error

    @property
    def nbytes(self) -> int:
        return self.n_known * BYTES_PER_STATE

    def expanded_blocks(self, states: Sequence[Any]) -> Iterator[tuple[int, PythonBlock]]:
        """Blocks of consecutive states, each with the place of its first."""
        size = max(1, BLOCK_PAIRS // max(1, self.n_profiles))
        places = range(0, len(states), size)
        ask = partial(expand_states, self.world, self.profiles)
        blocks = (states[place : place + size] for place in places)
        workers = self._workers if len(places) > 1 else 1
        for place, block in zip(places, map_blocks(ask, blocks, workers, processes=True), strict=True):
            if workers > 1 and not self._trusts_workers:
                self._check_worker(block, ask(states[place : place + size]))
            yield place, block
            self._watch.look(len(block.count_SJ))

    def _check_worker(self, theirs: PythonBlock, ours: PythonBlock) -> None:
        """Whether states mean the same in another process: not if they are equal only to themselves, or hold NaN."""
        if theirs.found != ours.found or [hash(s) for s in theirs.found] != [hash(s) for s in ours.found]:
            raise InvalidWorldError(
                f"states that come from another process, such as {short_repr(theirs.found[0])}, differ from those of this "
                "one; give them __eq__ and __hash__ that look at their content, or use workers=1"
            )
        self._trusts_workers = True

    def count(self, state: Any) -> int:
        """A number for a new state."""
        if self.n_known >= self._max_states:
            raise TooManyStatesError(
                f"more than max_states={self._max_states:,} states, the last one {short_repr(state)}. Does the world "
                "ever end? Shorten its horizon, or allow more"
            )
        self.n_known += 1
        return self.n_known - 1

    def check(self, heads: Iterable[BodySlice]) -> None:
        """By default the world's identity decides what its levels are."""

    def attained(self, value: int, states: Sequence[Any]) -> npt.NDArray[np.uint8] | None:
        return None if self._goals is None else self._goals.rows(self.world, value, None, states)


class LevelExplorer(PythonExplorer):
    """Levels as ``level_fct`` tells. A level's states are all known once the levels below it have been expanded."""

    levels_are = "given"

    def __init__(self, world: Any, goals: FixedGoals | None, level_fct: LevelFunction, **options: Any) -> None:
        super().__init__(world, goals, **options)
        self._level_fct = level_fct
        self._number_of: dict[Hashable, int] = {}
        self._waiting: dict[int, tuple[list[int], list[Any]]] = {}  # by level: numbers, ascending, and states
        self._add(self.start, self._level_of(self.start))

    def _level_of(self, state: Any) -> int:
        try:
            level = self._level_fct(state)
        except Exception as error:
            error.add_note(f"(level_fct was asked about state {short_repr(state)})")
            raise
        try:
            whole = int(level)
        except (TypeError, ValueError, OverflowError):
            whole = None
        if whole is None or whole != level:
            raise InvalidWorldError(f"level_fct gives {short_repr(level)} for {short_repr(state)}; levels are whole numbers")
        return whole

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
        builder = SliceBuilder(self.n_profiles, self._precision)
        ended = []
        for first, block in self.expanded_blocks(states):
            number_of_local = [self._number(block, local, states, first, value) for local in range(len(block.found))]
            builder.add(block.count_SJ, np.array(number_of_local, dtype=np.int64)[block.local_K], block.prob_K)
            ended.append(block.ended_S)
        members = bodies_from(np.array(numbers, dtype=np.int64))
        attained = self.attained(value, states)
        all_ended = bool(np.concatenate(ended).all())
        return BodySlice(
            value=value, members=members, added=members, ended=all_ended, states=states,
            expanded=range(0) if all_ended else members, attained=attained, attained_by_body=False, known=self.n_known,
            **({} if all_ended else builder.arrays()),
        )  # fmt: skip

    def _number(self, block: PythonBlock, local: int, states: Sequence[Any], first: int, value: int) -> int:
        successor = block.found[local]
        known = self._number_of.get(successor)
        if known is not None:
            return known
        level = self._level_of(successor)
        if level <= value:
            row, profile = block.origin(local)
            raise InvalidWorldError(
                f"{short_repr(successor)} on level {level} follows {short_repr(states[first + row])} on level {value} "
                f"under profile {self.profiles[profile]}; level_fct has to give every successor a higher level"
            )
        return self._add(successor, level)

    def check(self, heads: Iterable[BodySlice]) -> None:
        """A function cannot be told from another by its looks, so it is asked about every state."""
        for piece in heads:
            for state in piece.states or ():
                if self._level_of(state) != piece.value:
                    raise StoreMismatchError(
                        f"the store has {short_repr(state)} on level {piece.value}, level_fct says {self._level_of(state)}; "
                        "use the function that the store was made with, choose another place, or pass overwrite=True"
                    )

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
        self.n_known = sum(len(piece.added) for piece in itertools.chain(done.heads(), frontier))


class SharedExplorer(PythonExplorer):
    """A time-homogeneous world: a body's transitions are asked for once, at the first step at which it is not terminal.

    Which states are terminal may depend on the step, so this is asked for every state; and only states that occur are.
    """

    shares_bodies = True

    def __init__(self, world: Any, goals: FixedGoals | None, **options: Any) -> None:
        super().__init__(world, goals, **options)
        start = self.start
        if not isinstance(start, tuple) or not start or isinstance(start[0], bool) or not _is_whole(start[0]):
            raise InvalidWorldError(
                f"the world declares time_homogeneous, but its initial state is {short_repr(start)}; such a world's states "
                "are tuples that begin with the step"
            )
        # Named tuples stay named, since the world may ask for their fields.
        kind: Any = type(start)
        self._make = kind._make if hasattr(kind, "_make") else tuple
        self._step = int(start[0])
        self._number_of: dict[Hashable, int] = {tuple(start[1:]): self.count(start)}
        self._rests: list[tuple[Any, ...]] = [tuple(start[1:])]
        self._is_expanded = np.zeros(1, dtype=np.bool_)
        self._members: Bodies = range(1)
        self._first = 0
        self._expanding: list[int] = []  # levels whose slices hold transitions
        self._max_levels = MAX_LEVELS if options["max_states"] is None else self._max_states

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
            known=self.n_known,
            **transitions,
        )
        going_on = body_S[~np.broadcast_to(piece.ended, body_S.shape)]
        self._first = added.stop
        self._step += 1
        self._check_promise(piece, body_S, states, earlier)
        sources = itertools.chain((earlier[t] for t in self._expanding), [piece])
        self._members = bodies_from(successors_of(going_on, sources, self.n_profiles, self.n_known))
        if piece.succ_K is not None:
            self._expanding.append(len(earlier))
        return piece

    def _check_promise(self, piece: BodySlice, body_S: IndexArray, states: list[Any], earlier: Levels) -> None:
        """Ask again about one body that an earlier level expanded: its successors have to be the same but for the step."""
        again = ~np.broadcast_to(piece.ended, body_S.shape)
        again[places_in(piece.members, as_array(piece.expanded))[1]] = False
        if not again.any():
            return
        s = int(np.argmax(again))
        stored = transitions_of(body_S[s : s + 1], (earlier[t] for t in self._expanding), self.n_profiles)
        block = expand_states(self.world, self.profiles, [states[s]])
        bodies = np.array([self._number_of.get(tuple(state[1:]), -1) for state in block.found], dtype=np.int32)
        if not stored.agrees_with(Rows(block.count_SJ, bodies[block.local_K], block.prob_K)):
            raise InvalidWorldError(
                f"{short_repr(states[s])} has other successors than the same state at an earlier step, but the world "
                "declares time_homogeneous; take the declaration back, or put what its rules depend on into the state"
            )

    def _expand(self, body_S: IndexArray, states: list[Any]) -> dict[str, Any]:
        """Transitions of those bodies on this level that go on and were never expanded, and which states have ended."""
        is_new = ~self._is_expanded[body_S]
        ended_S = np.zeros(len(body_S), dtype=np.bool_)
        ended_S[~is_new] = [is_terminal(self.world, states[s], self.profiles) for s in np.flatnonzero(~is_new).tolist()]
        new = np.flatnonzero(is_new)
        asked = [states[s] for s in new.tolist()]
        builder = SliceBuilder(self.n_profiles, self._precision)
        for first, block in self.expanded_blocks(asked):
            ended_S[new[first : first + len(block.ended_S)]] = block.ended_S
            number_of_local = [self._number(block, local, asked, first) for local in range(len(block.found))]
            number_K = np.array(number_of_local, dtype=np.int64)[block.local_K]
            builder.add(block.count_SJ[~block.ended_S], number_K, block.prob_K)
        expanded = body_S[is_new & ~ended_S]
        self._is_expanded[expanded] = True
        self._is_expanded = np.concatenate(
            [self._is_expanded, np.zeros(self.n_known - len(self._is_expanded), dtype=np.bool_)]
        )
        return {"ended": _summed_up(ended_S), "expanded": bodies_from(expanded), **builder.arrays()}

    def _number(self, block: PythonBlock, local: int, states: Sequence[Any], first: int) -> int:
        successor = block.found[local]
        if not isinstance(successor, tuple) or not successor or successor[0] != self._step + 1:
            row, profile = block.origin(local)
            raise InvalidWorldError(
                f"{short_repr(successor)} follows {short_repr(states[first + row])} under profile {self.profiles[profile]}, "
                f"but the world declares time_homogeneous: a successor is a tuple that begins with the next step, "
                f"{self._step + 1}. Mend the world, or take the declaration back"
            )
        rest = tuple(successor[1:])
        known = self._number_of.get(rest)
        if known is None:
            known = self._number_of[rest] = self.count(successor)
            self._rests.append(rest)
        return known

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
        self.n_known = self._first = len(self._rests)
        self._is_expanded = np.zeros(self.n_known, dtype=np.bool_)
        self._is_expanded[np.concatenate(expanded)] = True
        self._members = range(0)
        for piece in frontier:
            self._step, self._members = piece.value, piece.members
            self._first = self.n_known - len(piece.added)


class DerivedExplorer(PythonExplorer):
    """No levels given: all states are explored, then a state's level is the length of the longest path to it."""

    levels_are = "derived"

    def __init__(self, world: Any, goals: FixedGoals | None, **options: Any) -> None:
        super().__init__(world, goals, **options)
        self._levels: Iterator[BodySlice] | None = None
        self._known = 1  # bodies that the levels so far lead to have lower numbers

    def next_level(self, earlier: Levels) -> BodySlice | None:
        if self._levels is None:
            self._levels = self._explore()
        return next(self._levels, None)

    def frontier(self) -> list[BodySlice]:
        return []

    def resume(self, done: Levels, frontier: list[BodySlice]) -> None:
        raise NotImplementedError("derived levels are found anew, since everything has to be explored in any case")

    def _explore(self) -> Iterator[BodySlice]:
        states = [self.start]
        number_of: dict[Hashable, int] = {self.start: self.count(self.start)}
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
        entries = np.concatenate([np.arange(starts[n], starts[n + 1]) for n in number_S.tolist()])
        builder = SliceBuilder(self.n_profiles, self._precision)
        builder.add(count_NJ[number_S], succ_K[entries], prob_K[entries])
        self._known = max(self._known, int(succ_K[entries].max(initial=-1)) + 1)
        here, members, all_ended = [states[n] for n in number_S.tolist()], bodies_from(number_S), len(entries) == 0
        return BodySlice(
            value=value, members=members, added=members, ended=all_ended, states=here,
            expanded=range(0) if all_ended else members, attained=self.attained(value, here), attained_by_body=False,
            known=self._known,
            **({} if all_ended else builder.arrays()),
        )  # fmt: skip

    def _longest_paths(self, states: list[Any], starts: IndexArray, succ_K: IndexArray) -> IndexArray:
        successors = [np.unique(succ_K[a:b]).tolist() for a, b in itertools.pairwise(starts.tolist())]
        level_N, on_cycle = longest_paths(successors)
        if on_cycle is not None:
            raise InvalidWorldError(
                f"the world has a cycle through {short_repr(states[on_cycle])}; time has to move forward: put a step "
                "counter into the state"
            )
        return level_N


def longest_paths(successors: list[list[int]]) -> tuple[IndexArray, int | None]:
    """The length of the longest path from state 0 to each state, and the number of a state on a cycle if there is one."""
    waiting = np.zeros(len(successors), dtype=np.int64)
    for targets in successors:
        waiting[targets] += 1
    level = np.zeros(len(successors), dtype=np.int64)
    ready = [0] if waiting[0] == 0 else []
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


def _summed_up(ended_S: BoolArray) -> bool | BoolArray:
    return bool(ended_S[0]) if len(ended_S) and ended_S.all() == ended_S.any() else ended_S


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer)
