"""A prior of somebody's own, as far as its answers are stored with a solution: what all humans did together."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.errors import StoreMismatchError
from empo_bi.problem.asked_prior import AnswersInArrays
from empo_bi.problem.given_policies import GivenJoint, StatesInQuestion
from empo_bi.problem.profiles import Profiles
from empo_bi.problem.protocols import Goal
from empo_bi.store.solved_levels import SolvedLevels
from empo_bi.types import FloatArray

WANTED = "what it says of single goals was not stored: open with prior=... (--prior MODULE:FUNCTION), or call solve again"


class StoredPrior(AnswersInArrays):
    """Averages over goals, from the array ``joint``; policies by goal need the prior itself."""

    def __init__(self, dag: Dag, results: SolvedLevels, profiles: Profiles) -> None:
        self.dag, self.results, self.profiles = dag, results, profiles
        self.human_agent_indices = list(profiles.humans)

    def given_policies(self, asked: StatesInQuestion) -> GivenJoint:
        return GivenJoint.of(self.results.get(asked.t, "joint")[asked.place_M])

    def __call__(self, state: Hashable, human_agent_index: int, possible_goal: Goal | None = None) -> FloatArray:
        """Probabilities of a human's actions."""
        if possible_goal is not None:
            raise StoreMismatchError(f"the humans acted by a prior, and {WANTED}")
        h = self.human_agent_indices.index(human_agent_index)
        found_A = np.zeros(self.profiles.n_actions)
        np.add.at(found_A, self.profiles.action_UH[:, h], self._joint(state))
        return found_A

    def profile_distribution(self, state: Hashable) -> list[tuple[float, list[int]]]:
        """``(probability, [action of each human])`` for everything that may happen."""
        pairs = zip(self._joint(state).tolist(), self.profiles.action_UH.tolist(), strict=True)
        return [(probability, actions) for probability, actions in pairs if probability > 0]

    def profile_distribution_with_fixed_goal(
        self, state: Hashable, human_agent_index: int, goal: Goal
    ) -> list[tuple[float, list[int]]]:
        raise StoreMismatchError(f"the humans acted by a prior, and {WANTED}")

    def _joint(self, state: Hashable) -> FloatArray:
        t, place = self.dag.place_of(state)
        found: FloatArray = self.results.get(t, "joint")[place]
        return found
