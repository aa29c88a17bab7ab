"""The stand-ins of examples/ for environments of the public EMPO project, with the rules of the oracle.

These share no code with the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oracle.gridworld import OracleWorld, parse

from examples.standin_multigrid import FileGoalGenerator as StandInGenerator
from examples.standin_multigrid import MultiGridEnv
from examples.standin_multigrid import ReachGoal as StandInGoal

__all__ = ["AskedStateByState", "StandIn", "StandInGenerator", "StandInGoal"]


class StandIn(MultiGridEnv):
    """An environment whose rules are the oracle's."""

    def __init__(self, mapping: Mapping[str, Any], *, has_goals: bool = True) -> None:
        rules = parse(mapping)
        corners = [(goal.x1, goal.y1, goal.x2, goal.y2) for goal in rules.layout.goals if has_goals]
        self._build(mapping, rules, rules.layout.max_steps, corners)

    @property
    def _oracle(self) -> OracleWorld:
        return self._rules

    def transition_probabilities(self, state: Any, actions: Sequence[int]) -> Any:
        self._oracle.max_steps = self.max_steps
        return super().transition_probabilities(state, actions)


class AskedStateByState:
    """The same without the attributes by which it would be recognised."""

    def __init__(self, env: StandIn) -> None:
        self._env, self.max_steps, self.action_space = env, env.max_steps, env.action_space
        self.n_agents = len(env.agents)
        self.human_agent_indices, self.robot_agent_indices = env.human_agent_indices, env.robot_agent_indices
        self.possible_goal_generator = getattr(env, "possible_goal_generator", None)

    def initial_state(self) -> Any:
        return self._env._oracle.initial_state()

    def transition_probabilities(self, state: Any, actions: Sequence[int]) -> Any:
        return self._env.transition_probabilities(state, actions)
