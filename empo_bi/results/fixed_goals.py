"""Goals that some humans pursue for sure, while the others do what they do over all goals: for rollouts and the exact chain.

A human with a goal plays its policy for that goal. That is the average over goals with all weight on one of them, so nothing
new has to be computed; a prior of another maker is asked for ``profile_distribution_with_fixed_goal``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.results.goal_names import goal_number
from empo_bi.runtime.wording import short_repr
from empo_bi.types import ByteArray, FloatArray, IndexArray


@dataclass(frozen=True)
class PursuedGoals:
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
    def of(cls, columns: GoalColumns, goals: Mapping[int, Any] | None) -> PursuedGoals:
        """Check goals as users give them, ``{human: goal}``."""
        if goals is not None and not isinstance(goals, Mapping):
            raise TypeError(f"goals is {short_repr(goals)}; give {{human: goal}}, such as {{0: solution.goals[0][3]}}")
        number_of = {human: goal_number(columns, human, goal) for human, goal in (goals or {}).items()}
        place_of = {human: columns.humans.index(human) for human in number_of}
        return cls(
            columns,
            {human: columns.goals[place_of[human]][g] for human, g in number_of.items()},
            {human: place_of[human] * columns.n_goals + g for human, g in number_of.items()},
        )

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
