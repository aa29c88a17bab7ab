"""Dictionaries keyed by states that are views of arrays: an entry is made when somebody asks for it."""

from __future__ import annotations

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.errors import InvalidStateError
from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.problem.profiles import Profiles
from empo_bi.results.human_policies import HumanPolicies
from empo_bi.types import IndexArray

REMEMBERED = 512  # entries
CHUNK = 1024  # states whose entries are made together when all are asked for

Rows = Callable[[int, IndexArray], Any]  # of some states of a level


class StateView(Mapping[Hashable, Any]):
    """One entry for each state that has one. Iterating goes level by level and makes entries a thousand at a time."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._entries: OrderedDict[tuple[int, int], Any] = OrderedDict()
        self._length: int | None = None

    @abstractmethod
    def _make(self, t: int, place_M: IndexArray) -> list[Any]:
        """The entries of some states of a level, None for those without."""

    def __getitem__(self, state: Hashable) -> Any:
        try:
            t, place = self._dag.place_of(state)
        except InvalidStateError as error:
            raise KeyError(state) from error
        if (t, place) not in self._entries:
            entry = self._make(t, np.array([place]))[0]
            if entry is None:
                raise KeyError(state)
            self._entries[t, place] = entry
            if len(self._entries) > REMEMBERED:
                self._entries.popitem(last=False)
        return self._entries[t, place]

    def _all(self) -> Iterator[tuple[Any, Any]]:
        for t, n_states in enumerate(self._dag.level_sizes):
            for first in range(0, n_states, CHUNK):
                place_M = np.arange(first, min(first + CHUNK, n_states))
                entries = self._make(t, place_M)
                if any(entry is not None for entry in entries):
                    for state, entry in zip(self._dag.states(t, place_M), entries, strict=True):
                        if entry is not None:
                            yield state, entry

    def __iter__(self) -> Iterator[Any]:
        return (state for state, _ in self._all())

    def items(self) -> Any:
        """Pairs of state and entry, made as they are asked for."""
        return _Items(self)

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self._all())
        return self._length

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._dag.n_states:,} states, read when asked for>"

    def to_dict(self) -> dict[Any, Any]:
        """Everything, as plain dictionaries."""
        return dict(self._all())


class _Items:
    def __init__(self, view: StateView) -> None:
        self._view = view

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        return self._view._all()

    def __len__(self) -> int:
        return len(self._view)


class PolicyView(StateView):
    """``view[state][human][goal]``: an array of action probabilities, for states that are not terminal."""

    def __init__(self, policies: HumanPolicies) -> None:
        super().__init__(policies.blocks.dag)
        self.policies = policies

    def _make(self, t: int, place_M: IndexArray) -> list[Any]:
        goals = self.policies.setting.goals
        places, pi_MHGA = self.policies.of_states(t, place_M)
        has_NX = goals.has(t)
        found: dict[int, Any] = {}
        for place, pi_HGA in zip(places.tolist(), pi_MHGA, strict=True):
            has_HG = has_NX[place if len(has_NX) > 1 else 0].reshape(len(goals.humans), -1)
            found[place] = {
                human: {goal: pi_HGA[h, g] for g, goal in enumerate(goals.goals[h]) if has_HG[h, g] and goal is not None}
                for h, human in enumerate(goals.humans)
            }
        return [found.get(place) for place in place_M.tolist()]


class GoalValueView(StateView):
    """``view[state][human][goal]``: values that are not 0; states and humans without any are left out."""

    def __init__(self, dag: Dag, goals: GoalColumns, values_of: Rows) -> None:
        super().__init__(dag)
        self._goals, self._values_of = goals, values_of

    def _make(self, t: int, place_M: IndexArray) -> list[Any]:
        return [self._entry(value_HG) for value_HG in self._values_of(t, place_M)]

    def _entry(self, value_HG: Any) -> dict[int, dict[Any, Any]] | None:
        entry: dict[int, dict[Any, Any]] = {}
        for h, g in np.argwhere(value_HG != 0).tolist():
            entry.setdefault(self._goals.humans[h], {})[self._goals.goals[h][g]] = value_HG[h, g]
        return entry or None


class StateValueView(StateView):
    """``view[state]``: a float, for every state."""

    def __init__(self, dag: Dag, values_of: Rows) -> None:
        super().__init__(dag)
        self._values_of = values_of

    def _make(self, t: int, place_M: IndexArray) -> list[Any]:
        values: list[Any] = self._values_of(t, place_M).tolist()
        return values

    def __len__(self) -> int:
        return self._dag.n_states


class RobotPolicyView(StateView):
    """``view[state]``: ``{robot profile: probability}``, for states that are not terminal."""

    def __init__(self, dag: Dag, profiles: Profiles, policy_of: Rows) -> None:
        super().__init__(dag)
        self._profiles, self._policy_of = profiles, policy_of

    def _make(self, t: int, place_M: IndexArray) -> list[Any]:
        return [
            dict(zip(self._profiles.robot_profiles, row, strict=True)) if sum(row) > 0 else None
            for row in self._policy_of(t, place_M).tolist()
        ]
