"""What users bring, as far as it is asked: goal generators and priors. Any object with these methods will do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Protocol

from empo_bi.world.model import State

Goal = Hashable


class GoalGenerator(Protocol):
    def generate(self, state: State, human_agent_index: int, /) -> Iterable[tuple[Goal, float]]:
        """The goals that a human may have in a state, each with its weight."""


class JointPrior(Protocol):
    """What all humans do together."""

    def profile_distribution(self, state: State, /) -> Iterable[tuple[float, Sequence[int]]]:
        """``(probability, [action of each human])`` for everything that may happen."""

    def profile_distribution_with_fixed_goal(
        self, state: State, human_agent_index: int, goal: Goal, /
    ) -> Iterable[tuple[float, Sequence[int]]]:
        """The same while one human pursues a goal."""
