"""Worlds written in Python: expanded state by state, with errors that show the state, the profile and what to do.

Any object will do that has ``agents`` (or ``n_agents``), ``action_space.n``, ``initial_state()`` (or ``reset()`` and
``get_state()``) and ``transition_probabilities(state, actions)``, which returns ``(probability, successor)`` pairs, or None
at a terminal state. States are any hashable objects.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.slices import BodySlice, IndexArray
from empo_bi.errors import InvalidWorldError, TooManyStatesError, short_repr
from empo_bi.runtime.progress import level_bar

Successors = list[tuple[float, Any]]
LevelFunction = Callable[[Any], int]
Expanded = tuple[list[int], list[int], list[float]]  # counts by profile, successors, probabilities

MAX_STATES = 10_000_000
PROBABILITY_TOLERANCE = 1e-6  # on the sum of a profile's probabilities; what is accepted is renormalised


def n_agents_of(world: Any) -> int:
    agents = getattr(world, "agents", None)
    return int(world.n_agents) if agents is None else len(agents)


def initial_state_of(world: Any) -> Any:
    if hasattr(world, "initial_state"):
        return world.initial_state()
    world.reset()
    return world.get_state()


def all_profiles_of(world: Any) -> list[list[int]]:
    """Every action profile in profile-index order: agent 0 is the least significant digit."""
    actions = range(int(world.action_space.n))
    return [list(profile[::-1]) for profile in itertools.product(actions, repeat=n_agents_of(world))]


class PythonExplorer:
    """Numbers the states of a Python world and expands them one by one, checking all that the world says."""

    def __init__(self, world: Any, level_fct: LevelFunction | None, max_states: int | None) -> None:
        """``max_states`` is ``MAX_STATES`` unless given, so that a world without an end is noticed."""
        self.world = world
        self.profiles = all_profiles_of(world)
        self.states: list[Any] = []
        self.number_of: dict[Hashable, int] = {}
        self._level_fct = level_fct
        self._max_states = MAX_STATES if max_states is None else max_states
        self.number(initial_state_of(world), "the initial state")

    @property
    def has_level_fct(self) -> bool:
        return self._level_fct is not None

    def level_of(self, state: Any) -> int:
        assert self._level_fct is not None
        return int(self._level_fct(state))

    def number(self, state: Any, what: str) -> int:
        """The number of a state, a new one if it is new."""
        try:
            known = self.number_of.setdefault(state, len(self.states))
        except TypeError as error:
            raise InvalidWorldError(
                f"{what} is not hashable: {short_repr(state)} ({error}); use tuples instead of lists, dicts or arrays"
            ) from error
        if known == len(self.states):
            if known >= self._max_states:
                raise TooManyStatesError(
                    f"more than max_states={self._max_states:,} states, the last one {short_repr(state)}. Does the world "
                    "ever end? Shorten its horizon, or allow more"
                )
            self.states.append(state)
        return known

    def expand(self, number: int) -> Expanded | None:
        """Counts of each profile, successors and probabilities; None for a terminal state."""
        state = self.states[number]
        answers = [self.world.transition_probabilities(state, list(profile)) for profile in self.profiles]
        if all(answer is None for answer in answers):
            return None
        counts, successors, probabilities = [], [], []
        for profile, answer in zip(self.profiles, answers, strict=True):
            if answer is None:
                raise InvalidWorldError(
                    f"profile {profile} has no transitions in {short_repr(state)} although others have; a state is terminal "
                    "for all profiles or for none: where an action has no effect, let time pass and nothing else"
                )
            pairs = self._checked(state, profile, answer)
            counts.append(len(pairs))
            probabilities += [probability for probability, _ in pairs]
            successors += [self._successor(state, profile, successor) for _, successor in pairs]
        return counts, successors, probabilities

    def _checked(self, state: Any, profile: list[int], answer: Successors) -> Successors:
        """Pairs of positive probability, which sum to 1."""
        pairs = [(float(probability), successor) for probability, successor in answer]
        total = math.fsum(probability for probability, _ in pairs)
        where = f"profile {profile} in state {short_repr(state)}"
        if any(not probability >= 0 for probability, _ in pairs):
            raise InvalidWorldError(f"{where} has probabilities {[p for p, _ in pairs]}; they have to be 0 or more")
        if abs(total - 1) > PROBABILITY_TOLERANCE:
            raise InvalidWorldError(f"{where}: the probabilities sum to {total!r}, not to 1; check transition_probabilities")
        return [(probability / total, successor) for probability, successor in pairs if probability > 0]

    def _successor(self, state: Any, profile: list[int], successor: Any) -> int:
        number = self.number(successor, f"a successor of {short_repr(state)} under profile {profile}")
        if self._level_fct is not None and self.level_of(successor) <= self.level_of(state):
            raise InvalidWorldError(
                f"{short_repr(successor)} on level {self.level_of(successor)} follows {short_repr(state)} on level "
                f"{self.level_of(state)} under profile {profile}; level_fct has to give every successor a higher level"
            )
        return number


def explore(explorer: PythonExplorer, progress: bool) -> tuple[list[int], list[BodySlice], list[Any]]:
    """Expand everything, then number the states level by level, in the order of discovery within a level.

    Returns the values of the levels, what each level holds, and the states in their final order.
    """
    found: list[Expanded | None] = []
    with level_bar("enumerate", None, progress) as bar:
        while len(found) < len(explorer.states):
            found.append(explorer.expand(len(found)))
            bar.set_postfix_str(f"{len(found):,} of {len(explorer.states):,} states", refresh=False)
            bar.update(0)
    level_N = _levels(explorer, found)
    order = np.argsort(level_N, kind="stable")
    final_N = np.empty(len(order), dtype=np.int64)
    final_N[order] = np.arange(len(order))
    values, firsts = np.unique(level_N[order], return_index=True)
    slices = [
        _slice(first, [found[old] for old in order[first:last]], final_N, len(explorer.profiles))
        for first, last in itertools.pairwise([*firsts.tolist(), len(order)])
    ]
    return [int(value) for value in values], slices, [explorer.states[old] for old in order]


def _levels(explorer: PythonExplorer, found: list[Expanded | None]) -> IndexArray:
    if explorer.has_level_fct:
        return np.array([explorer.level_of(state) for state in explorer.states], dtype=np.int64)
    successors = [sorted(set(expanded[1])) if expanded else [] for expanded in found]
    level_N, on_cycle = longest_paths(successors)
    if on_cycle is not None:
        raise InvalidWorldError(
            f"the world has a cycle through {short_repr(explorer.states[on_cycle])}; time has to move forward: put a step "
            "counter into the state"
        )
    return level_N


def _slice(first: int, expanded: list[Expanded | None], final_N: IndexArray, n_profiles: int) -> BodySlice:
    """The transitions of consecutive states; a terminal one has no successors under any profile."""
    counts = np.array([e[0] if e else [0] * n_profiles for e in expanded], dtype=np.int64)
    old_K = np.array([number for e in expanded if e for number in e[1]], dtype=np.int64)
    prob_K = np.array([probability for e in expanded if e for probability in e[2]], dtype=np.float64)
    return BodySlice(
        first,
        None,
        len(expanded),
        counts.astype(np.min_scalar_type(int(counts.max(initial=1)))),
        final_N[old_K].astype(np.int32),
        prob_K,
    )


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


def _on_cycle(successors: list[list[int]], left: npt.NDArray[np.bool_], state: int) -> int:
    """Walk backwards among the states left over, each of which has a predecessor there, until one comes again."""
    before = {target: source for source, targets in enumerate(successors) if left[source] for target in targets}
    seen: set[int] = set()
    while state not in seen:
        seen.add(state)
        state = before[state]
    return state
