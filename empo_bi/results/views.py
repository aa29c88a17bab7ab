"""Views of arrays as dictionaries keyed by states; entries are made on demand.

They are dictionaries for whoever asks ``isinstance(view, dict)``, as scripts written for EMPO do, but hold no entries. What
Python offers for dictionaries works, except changing them: a copy is a plain dictionary, and so is what is pickled.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, ItemsView, Iterator, Mapping
from copy import deepcopy
from typing import NoReturn, TypeVar

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.errors import InvalidStateError
from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.problem.profiles import Profiles
from empo_bi.problem.protocols import Goal
from empo_bi.results.human_policies import HumanPolicies
from empo_bi.types import FloatArray, IndexArray

REMEMBERED = 512  # entries
CHUNK = 1024  # states whose entries are made together in iterations

Entry = TypeVar("Entry")
Rows = Callable[[int, IndexArray], FloatArray]  # level, places of M states -> (M, ...)


class StateView(dict[Hashable, Entry]):
    """One entry for each state that has one. Iterating goes level by level and makes entries a thousand at a time."""

    def __init__(self, dag: Dag) -> None:
        super().__init__()
        self._dag = dag
        self._entries: OrderedDict[tuple[int, int], Entry] = OrderedDict()
        self._length: int | None = None

    @abstractmethod
    def _make(self, t: int, place_M: IndexArray) -> list[Entry | None]:
        """The entries of the states at ``place_M`` of level ``t``; None for states without one."""

    def __getitem__(self, state: Hashable) -> Entry:
        try:
            t, place = self._dag.place_of(state)
        except InvalidStateError as error:
            raise KeyError(state) from error
        if (t, place) not in self._entries:
            entry = self._make(t, np.array([place]))[0]
            if entry is None:
                raise KeyError(state)
            self._entries[t, place] = self._protected(entry)
            if len(self._entries) > REMEMBERED:
                self._entries.popitem(last=False)
        return self._entries[t, place]

    def _protected(self, entry: Entry) -> Entry:
        """An entry to look at. Changing it would change no result, so where it has arrays, these can only be read."""
        return entry

    def _all(self) -> Iterator[tuple[Hashable, Entry]]:
        for t, n_states in enumerate(self._dag.level_sizes):
            for first in range(0, n_states, CHUNK):
                place_M = np.arange(first, min(first + CHUNK, n_states))
                entries = self._make(t, place_M)
                if any(entry is not None for entry in entries):
                    for state, entry in zip(self._dag.states(t, place_M), entries, strict=True):
                        if entry is not None:
                            yield state, entry

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self._all())
        return self._length

    def __iter__(self) -> Iterator[Hashable]:
        return (state for state, _ in self._all())

    # A dictionary's own methods would look at its entries, of which it has none.
    __contains__ = Mapping.__contains__
    __eq__ = Mapping.__eq__
    __ne__ = object.__ne__
    __hash__ = None
    get = Mapping.get  # type: ignore[assignment]
    keys = Mapping.keys  # type: ignore[assignment]
    values = Mapping.values  # type: ignore[assignment]

    def items(self) -> ItemsView[Hashable, Entry]:  # type: ignore[override]
        """Pairs of state and entry, made on demand."""
        return _Items(self)

    def __reversed__(self) -> Iterator[Hashable]:
        return reversed(list(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._dag.n_states:,} states, read on demand>"

    def to_dict(self) -> dict[Hashable, Entry]:
        """Everything, as plain dictionaries."""
        return dict(self._all())

    def copy(self) -> dict[Hashable, Entry]:
        """A plain dictionary, which may be changed."""
        return self.to_dict()

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> dict[Hashable, Entry]:
        return deepcopy(self.to_dict())

    def __or__(self, other: object) -> dict[Hashable, Entry]:  # type: ignore[override]
        return self.to_dict() | other  # type: ignore[operator]

    def __ror__(self, other: object) -> dict[Hashable, Entry]:  # type: ignore[override]
        return other | self.to_dict()  # type: ignore[operator]

    def __reduce_ex__(self, protocol: object) -> tuple[type, tuple[dict[Hashable, Entry]]]:
        return dict, (self.to_dict(),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("results are read from arrays and cannot be changed; change a copy: table.copy() is a plain dict")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


class _Items(ItemsView[Hashable, Entry]):
    """Iterates in chunks; the inherited way would make entries one by one."""

    _mapping: StateView[Entry]

    def __iter__(self) -> Iterator[tuple[Hashable, Entry]]:
        return ((state, self._mapping._protected(entry)) for state, entry in self._mapping._all())


class PolicyView(StateView[dict[int, dict[Goal, FloatArray]]]):
    """``view[state][human][goal]``: an array of action probabilities, for states that are not terminal."""

    def __init__(self, policies: HumanPolicies) -> None:
        super().__init__(policies.blocks.dag)
        self.policies = policies

    def _make(self, t: int, place_M: IndexArray) -> list[dict[int, dict[Goal, FloatArray]] | None]:
        goals = self.policies.setting.goals
        places, pi_MHGA = self.policies.of_states(t, place_M)
        has_NX = goals.has(t)
        found: dict[int, dict[int, dict[Goal, FloatArray]]] = {}
        for place, pi_HGA in zip(places.tolist(), pi_MHGA, strict=True):
            has_HG = has_NX[place if len(has_NX) > 1 else 0].reshape(len(goals.humans), -1)
            found[place] = {
                human: {goal: pi_HGA[h, g] for g, goal in enumerate(goals.goals[h]) if has_HG[h, g] and goal is not None}
                for h, human in enumerate(goals.humans)
            }
        return [found.get(place) for place in place_M.tolist()]

    def _protected(self, entry: dict[int, dict[Goal, FloatArray]]) -> dict[int, dict[Goal, FloatArray]]:
        for by_goal in entry.values():
            for pi_A in by_goal.values():
                pi_A.flags.writeable = False
        return entry


class GoalValueView(StateView[dict[int, dict[Goal, float]]]):
    """``view[state][human][goal]``: values that are not 0; states and humans without any are left out."""

    def __init__(self, dag: Dag, goals: GoalColumns, values_of: Rows) -> None:
        super().__init__(dag)
        self._goals, self._values_of = goals, values_of

    def _make(self, t: int, place_M: IndexArray) -> list[dict[int, dict[Goal, float]] | None]:
        return [self._entry(value_HG) for value_HG in self._values_of(t, place_M)]

    def _entry(self, value_HG: FloatArray) -> dict[int, dict[Goal, float]] | None:
        entry: dict[int, dict[Goal, float]] = {}
        for h, g in np.argwhere(value_HG != 0).tolist():
            entry.setdefault(self._goals.humans[h], {})[self._goals.goals[h][g]] = value_HG[h, g]
        return entry or None


class StateValueView(StateView[float]):
    """``view[state]``: a float, for every state."""

    def __init__(self, dag: Dag, values_of: Rows) -> None:
        super().__init__(dag)
        self._values_of = values_of

    def _make(self, t: int, place_M: IndexArray) -> list[float | None]:
        return list(self._values_of(t, place_M).tolist())

    def __len__(self) -> int:
        return self._dag.n_states


class RobotPolicyView(StateView[dict[tuple[int, ...], float]]):
    """``view[state]``: ``{robot profile: probability}``, for states that are not terminal."""

    def __init__(self, dag: Dag, profiles: Profiles, policy_of: Rows) -> None:
        super().__init__(dag)
        self._profiles, self._policy_of = profiles, policy_of

    def _make(self, t: int, place_M: IndexArray) -> list[dict[tuple[int, ...], float] | None]:
        return [
            dict(zip(self._profiles.robot_profiles, row, strict=True)) if sum(row) > 0 else None
            for row in self._policy_of(t, place_M).tolist()
        ]
