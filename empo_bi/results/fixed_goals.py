"""Fixed goals that some humans pursue in rollouts and events, while the others act by their policies averaged over goals.

A human with a fixed goal acts by its policy for that goal. That is the average with all weight on one goal, so nothing new
has to be computed; a user's own prior is asked for ``profile_distribution_with_fixed_goal``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.problem.protocols import Goal
from empo_bi.results.goal_names import GoalLike, goal_number
from empo_bi.runtime.wording import short_repr
from empo_bi.types import ByteArray, FloatArray, IndexArray


@dataclass(frozen=True)
class PursuedGoals:
    """Which humans pursue which goals; without any, policies stay as they are.

    Attributes
    ----------
    goal_of : {human: goal}
    column_of : {human: column x}
    """

    columns: GoalColumns
    goal_of: dict[int, Goal]
    column_of: dict[int, int]

    @classmethod
    def of(cls, columns: GoalColumns, goals: Mapping[int, GoalLike] | None) -> PursuedGoals:
        """From goals as users give them, ``{human: goal}``, checked."""
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
        """Weights of goals, (N, X), with all weight of these humans on their fixed goals."""
        if not self:
            return weight_NX
        n_goals = self.columns.n_goals
        weight_NX = weight_NX.copy()
        for x in self.column_of.values():
            first = x // n_goals * n_goals
            weight_NX[:, first : first + n_goals] = 0.0
            weight_NX[:, x] = 1.0
        return weight_NX

    def single_column(self) -> ByteArray:
        """A mask (1, X) of the one fixed goal, which a user's own prior is asked about; all 0 if there is none."""
        if len(self.goal_of) > 1:
            raise ValueError(
                f"goals are given for the humans {sorted(self.goal_of)}, but a prior of your own can only fix the goal of "
                "one human (profile_distribution_with_fixed_goal); give a goal to one of them"
            )
        has_1X = np.zeros((1, self.columns.n_columns), dtype=np.uint8)
        has_1X[0, list(self.column_of.values())] = 1
        return has_1X

    def check_states(self, t: int, place_M: IndexArray) -> None:
        """Raise ValueError if a human does not have its fixed goal in one of the states."""
        if not self or self.columns.is_fixed:
            return
        has_SX = self.columns.has(t)
        for human, x in self.column_of.items():
            lacking = np.flatnonzero(has_SX[place_M, x] == 0)
            if len(lacking):
                state = self.columns.dag.states(t, place_M[lacking[:1]])[0]
                raise ValueError(
                    f"human {human} does not have the goal {short_repr(self.goal_of[human])} in state {short_repr(state)}, "
                    "which episodes reach; to be pursued, a goal must be yielded by the goal generator in all such states"
                )
