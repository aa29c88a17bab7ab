"""Goals that some humans pursue for sure, while the others do what they do over all goals: for rollouts and the exact chain.

A human with a goal plays its policy for that goal. That is the average over goals with all weight on one of them, so nothing
new has to be computed; a prior of another maker is asked for ``profile_distribution_with_fixed_goal``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from empo_bi.backward.goals import GoalColumns
from empo_bi.dag.slices import ByteArray, FloatArray, IndexArray
from empo_bi.errors import short_repr


@dataclass(frozen=True)
class Pursued:
    """Who pursues what. An empty one changes nothing.

    Attributes
    ----------
    goal_of : {human: goal}
    column_of : {human: column x}
    """

    columns: GoalColumns
    goal_of: dict[int, Any]
    column_of: dict[int, int]

    @classmethod
    def of(cls, columns: GoalColumns, goals: Mapping[int, Any] | None) -> Pursued:
        """Check goals as users give them, ``{human: goal}``."""
        if goals is not None and not isinstance(goals, Mapping):
            raise TypeError(f"goals is {short_repr(goals)}; give {{human: goal}}, such as {{0: solution.goals[0][3]}}")
        column_of: dict[int, int] = {}
        for human, goal in (goals or {}).items():
            if human not in columns.humans:
                raise ValueError(f"goals names agent {human!r}, which is not among the humans {columns.humans}")
            try:
                column_of[human] = columns.column(human, _no_padding(goal))
            except (KeyError, TypeError):  # unknown, or nothing that could be a goal
                known = [one for one in columns.goals[columns.humans.index(human)] if one is not None]
                listed = ", ".join(map(short_repr, known[:5])) + (", ..." if len(known) > 5 else "")
                raise ValueError(
                    f"goals[{human}] is {short_repr(goal)}, which is not among the {len(known)} goals of human {human}; "
                    f"take one of solution.goals[{human}]: {listed}"
                ) from None
        return cls(columns, dict(goals or {}), column_of)

    def __bool__(self) -> bool:
        return bool(self.goal_of)

    def weights(self, weight_NX: FloatArray) -> FloatArray:
        """Weights of goals, (N, X), with those of the humans in question on their goals alone."""
        if not self:
            return weight_NX
        n_goals = self.columns.n_goals
        weight_NX = weight_NX.copy()
        for x in self.column_of.values():
            first = x // n_goals * n_goals
            weight_NX[:, first : first + n_goals] = 0.0
            weight_NX[:, x] = 1.0
        return weight_NX

    def asked(self) -> ByteArray:
        """The column that a prior of another maker is asked about, (1, X), if there is one."""
        if len(self.goal_of) > 1:
            raise ValueError(
                f"goals are given for the humans {sorted(self.goal_of)}, but a prior of your own tells only what happens "
                "when one human has a goal (profile_distribution_with_fixed_goal); give a goal to one of them"
            )
        has_1X = np.zeros((1, self.columns.n_columns), dtype=np.uint8)
        has_1X[0, list(self.column_of.values())] = 1
        return has_1X

    def check_states(self, t: int, place_M: IndexArray) -> None:
        """Complain if a human does not have its goal in one of the states."""
        if not self or self.columns.is_fixed:
            return
        has_SX = self.columns.has(t)
        for human, x in self.column_of.items():
            lacking = np.flatnonzero(has_SX[place_M, x] == 0)
            if len(lacking):
                state = self.columns.dag.states(t, place_M[lacking[:1]])[0]
                raise ValueError(
                    f"human {human} does not have the goal {short_repr(self.goal_of[human])} in state {short_repr(state)}, "
                    "to which episodes come; the goal generator has to yield it in all such states for it to be pursued"
                )


def _no_padding(goal: Any) -> Any:
    """Columns are padded with None where a human has fewer goals than others, which is nothing to pursue."""
    if goal is None:
        raise KeyError("None is no goal")
    return goal
