"""A GridWorld for PettingZoo (extra ``[multiagent]``): agents have names and act simultaneously.

>>> from empo_bi import load_world
>>> env = ParallelGridWorld(load_world("asymmetric_freeing", max_steps=3))
>>> env.possible_agents
['human_0', 'human_1', 'robot_2']
"""

from __future__ import annotations

from copy import copy
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from empo_bi.errors import InvalidActionError
from empo_bi.types import Json
from empo_bi.world.gridworld import GridWorld

try:
    from pettingzoo import ParallelEnv
except ImportError as error:
    raise ImportError("the PettingZoo wrapper needs an extra: pip install 'empo-bi[multiagent]'") from error

Observation = npt.NDArray[np.int64]
Value = TypeVar("Value")


class ParallelGridWorld(ParallelEnv):
    """PettingZoo's parallel interface to a :class:`GridWorld`.

    Agents are named ``human_0``, ``robot_2``, ``agent_3`` by role and index. All agents observe the whole state, as in
    ``GridWorld.step``; rewards are 0; all agents leave when the world ends. Agents terminated by lava or a kill button stay
    in the game, but their actions have no effect.
    """

    metadata = {"name": "empo_bi_gridworld", "render_modes": ["rgb_array", "ansi"], "is_parallelizable": True}  # noqa: RUF012

    def __init__(self, world: GridWorld) -> None:
        self.world = world
        self.render_mode = world.render_mode
        self.possible_agents = [self._name(i) for i in range(len(world.agents))]
        self.agents: list[str] = []

    def _name(self, index: int) -> str:
        if index in self.world.human_agent_indices:
            return f"human_{index}"
        return f"robot_{index}" if index in self.world.robot_agent_indices else f"agent_{index}"

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        return self.world.observation_space

    def action_space(self, agent: str) -> spaces.Space[Any]:
        return self.world.action_space

    def reset(self, seed: int | None = None, options: Json | None = None) -> tuple[dict[str, Observation], dict[str, Json]]:
        observation, info = self.world.reset(seed=seed, options=options)
        self.agents = [] if self.world.is_terminal() else list(self.possible_agents)
        return self._for_all(observation), self._for_all(info)

    def step(self, actions: dict[str, int]) -> tuple[dict[str, object], ...]:
        if not self.agents:
            raise RuntimeError("the world has ended, or has not been reset; call reset() to start")
        missing = [agent for agent in self.agents if agent not in actions]
        unknown = [str(agent) for agent in actions if agent not in self.agents]
        if missing or unknown:
            raise InvalidActionError(
                f"give one action for each of {', '.join(self.agents)}"
                + (f"; missing: {', '.join(missing)}" if missing else "")
                + (f"; unknown: {', '.join(unknown)}" if unknown else "")
            )
        profile = [actions[agent] for agent in self.possible_agents]
        observation, reward, terminated, truncated, info = self.world.step(profile)
        values: tuple[object, ...] = (observation, reward, terminated, truncated, info)
        results = tuple(self._for_all(value) for value in values)
        if terminated or truncated:
            self.agents = []
        return results

    def _for_all(self, value: Value) -> dict[str, Value]:
        """A copy of the value for every agent."""
        return {agent: copy(value) for agent in self.agents}

    def render(self) -> Any:
        return self.world.render()

    def close(self) -> None:
        self.world.close()
