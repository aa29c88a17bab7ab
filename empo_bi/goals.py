"""Goals, their generators and samplers: for your own worlds, and for goals that differ from state to state."""

from __future__ import annotations

from empo_bi.world.goals import (
    DeterministicGoalGenerator,
    DeterministicGoalSampler,
    PossibleGoal,
    PossibleGoalGenerator,
    PossibleGoalSampler,
    ReachCellGoal,
    ReachRectangleGoal,
    ReachStatesGoal,
    TabularGoalGenerator,
    TabularGoalSampler,
    approx_integral_over_possible_goals,
)

__all__ = [
    "DeterministicGoalGenerator",
    "DeterministicGoalSampler",
    "PossibleGoal",
    "PossibleGoalGenerator",
    "PossibleGoalSampler",
    "ReachCellGoal",
    "ReachRectangleGoal",
    "ReachStatesGoal",
    "TabularGoalGenerator",
    "TabularGoalSampler",
    "approx_integral_over_possible_goals",
]
