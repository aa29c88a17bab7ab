"""All numbers that a solution has for one state, also as text."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from empo_bi.problem.protocols import Goal
from empo_bi.runtime.hooks import Displayed
from empo_bi.types import FloatArray
from empo_bi.world.goals import name_of


class GoalRow(NamedTuple):
    """What a solution knows of one goal of a human in a state; numbers are nan where a phase was not solved.

    Attributes
    ----------
    goal, weight
    V_h : its value in phase 1, in which the robots work against the human, or with ``optimistic`` help it
    V_h_e : its value with the robots' policy
    policy : (A,), action probabilities of the human
    """

    goal: Goal
    weight: float
    V_h: float
    V_h_e: float
    policy: FloatArray


def what_V_h_is(optimistic: bool) -> str:
    """What the robots of phase 1 do, in words: V_h is what a human attains if they do this."""
    return "helps the human" if optimistic else "works against the human"


@dataclass(frozen=True)
class StateReport(Displayed):
    """All numbers that a solution has for one state.

    Attributes
    ----------
    state, level
    is_terminal : bool
    goals : goals[human] = list of :class:`GoalRow` (goal, weight, V_h, V_h_e, policy)
        Numbers are nan where a phase was not solved.
    power : {human: X_h}
    robot_policy, Q_r : {robot profile: number}
    U_r, V_r : float
    optimistic : whether V_h is what humans attain if the robots help them, or if they work against them
    """

    state: Hashable
    level: int
    is_terminal: bool
    goals: dict[int, list[GoalRow]]
    power: dict[int, float]
    robot_policy: dict[tuple[int, ...], float]
    Q_r: dict[tuple[int, ...], float]
    U_r: float
    V_r: float
    optimistic: bool = False

    _display = "StateReport.display"

    def __str__(self) -> str:
        if self.is_terminal:
            return f"state {self.state!r} on level {self.level}: terminal, V_r = {self.V_r:.6g}"
        head = "" if math.isnan(self.V_r) else f": V_r = {self.V_r:.6g}, U_r = {self.U_r:.6g}"
        lines = [f"state {self.state!r} on level {self.level}{head}"]
        for profile, probability in self.robot_policy.items():
            lines.append(f"  robots {profile}: probability {probability:.4f}, Q_r = {self.Q_r[profile]:.6g}")
        for human, rows in self.goals.items():
            lines.append(f"  human {human}" + (f": power {self.power[human]:.4g}" if human in self.power else ""))
            for goal, weight, before, after, policy in rows:
                known = {f"if the robot {what_V_h_is(self.optimistic)}": before, "with this robot": after}
                values = ", ".join(f"{value:.4f} {how}" for how, value in known.items() if not math.isnan(value))
                actions = "" if np.isnan(policy).any() else "; actions " + " ".join(f"{p:.3f}" for p in policy)
                lines.append(f"    {name_of(goal)}: weight {weight:.3g}, value {values}{actions}")
        return "\n".join(lines)
