"""Which goals are attained in which state: one bit per (state, human, goal).

Attainment belongs to a state, not to a transition. The cells that gridworld goals ask for are part of the body, so such
goals take one row of bits per body; goals of the user's own may look at the whole state and take one row per state.

Only goal lists that are the same in every state have bits: those of world files, ``TabularGoalGenerator`` and
``DeterministicGoalGenerator``. What any other generator yields may differ from state to state.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

from empo_bi.dag.slices import ByteArray
from empo_bi.world.expand import KeyArray
from empo_bi.world.goals import (
    DeterministicGoalGenerator,
    PossibleGoal,
    ReachCellGoal,
    ReachRectangleGoal,
    TabularGoalGenerator,
    WorldGoalGenerator,
)


@dataclass(frozen=True)
class FixedGoals:
    """The goals of each human, the same in every state: ``goals[h][g]``."""

    humans: list[int]
    goals: list[list[PossibleGoal]]

    @property
    def n_goals(self) -> int:
        return len(self.goals[0])

    @property
    def ignore_the_step(self) -> bool:
        """Whether all are reach goals, exactly: a subclass may have its own idea of being achieved."""
        return all(type(goal) in (ReachCellGoal, ReachRectangleGoal) for goals in self.goals for goal in goals)

    def describe(self) -> list[list[str]]:
        return [[repr(goal) for goal in goals] for goals in self.goals]

    def key(self) -> str | None:
        """Tells one set of goals from another, also in another process; None for goals that cannot be told apart."""
        try:
            kinds = {type(goal) for goals in self.goals for goal in goals}  # finding a source takes ten milliseconds
            sources = sorted(map(inspect.getsource, kinds))
            return str(joblib.hash((self.humans, self.goals, sources), hash_name="sha1"))
        except Exception:  # whatever pickling runs into in the user's own classes
            return None

    def rows(self, world: Any, value: int, key_SW: KeyArray | None, states: Sequence[Any] | None) -> ByteArray:
        """Bits (S, X) of some states, given as keys (on level ``value`` of a gridworld) or as they are."""
        if key_SW is not None:
            bits = world.attainment(value, key_SW, [goal for goals in self.goals for goal in goals])
        else:
            assert states is not None
            shape = (len(states), len(self.humans) * self.n_goals)
            answers = [bool(goal.is_achieved(state)) for state in states for goals in self.goals for goal in goals]
            bits = np.array(answers, dtype=np.bool_).reshape(shape)
        return np.packbits(bits, axis=1, bitorder="little")


def fixed_goals_of(world: Any) -> FixedGoals | None:
    """A world's goals, if it has humans and a generator that yields the same goals everywhere."""
    generator: Any
    generator, humans = (
        getattr(world, "possible_goal_generator", None),
        [int(human) for human in getattr(world, "human_agent_indices", ())],
    )
    if not humans:
        return None
    # The exact classes: a subclass may yield what it likes.
    if type(generator) is WorldGoalGenerator:
        return FixedGoals(humans, [list(generator.goals_of(human)) for human in humans])
    if type(generator) in (TabularGoalGenerator, DeterministicGoalGenerator):
        goals = [goal for goal, _ in generator.generate(None, humans[0])]
        return FixedGoals(humans, [goals for _ in humans])
    return None
