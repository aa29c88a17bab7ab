"""Goals, their generators and samplers: for your own worlds, and for goals that differ from state to state."""

from __future__ import annotations

from empo_bi.world.conditions import AllOf, AnyOf, AtStep, Carries, Condition, DoorOpen, Facing, InCells
from empo_bi.world.goals import (
    ConditionGoal,
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
    "AllOf",
    "AnyOf",
    "AtStep",
    "Carries",
    "Condition",
    "ConditionGoal",
    "DeterministicGoalGenerator",
    "DeterministicGoalSampler",
    "DoorOpen",
    "Facing",
    "InCells",
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
