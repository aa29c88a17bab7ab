"""Action profiles as numbers: who plays what in which profile.

A profile index counts with agent 0 as the least significant digit. Human and robot profiles are tuples in the order in which
the caller names the agents, the last one changing fastest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int32Array = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Profiles:
    """Profiles of N agents with A actions each, seen by H humans and by the robots.

    Attributes
    ----------
    human_J : (J,) int32, the human profile that is part of each profile
    first_J : (J,) int32, 1 where a human profile occurs for the first time among the profiles
    robot_J : (J,) int32, the robot profile of each profile in phase 2, -1 where a bystander does not play action 0
    action_UH : (U, H) int32, what each human does in each human profile
    robot_profiles : R tuples
    """

    n_actions: int
    humans: tuple[int, ...]
    robots: tuple[int, ...]
    human_J: Int32Array
    first_J: Int32Array
    robot_J: Int32Array
    action_UH: Int32Array
    robot_profiles: list[tuple[int, ...]]

    @classmethod
    def of(cls, n_agents: int, n_actions: int, humans: Sequence[int], robots: Sequence[int]) -> Profiles:
        j = np.arange(n_actions**n_agents)
        action_NJ = [j // n_actions**i % n_actions for i in range(n_agents)]
        human_J = _number_of(action_NJ, humans, n_actions, len(j))
        _, first = np.unique(human_J, return_index=True)
        first_J = np.zeros(len(j), dtype=np.int32)
        first_J[first] = 1
        robot_J = _number_of(action_NJ, robots, n_actions, len(j))
        for bystander in set(range(n_agents)) - set(humans) - set(robots):
            robot_J[action_NJ[bystander] != 0] = -1
        human_profiles = list(itertools.product(range(n_actions), repeat=len(humans)))
        return cls(
            n_actions=n_actions,
            humans=tuple(humans),
            robots=tuple(robots),
            human_J=human_J.astype(np.int32),
            first_J=first_J,
            robot_J=robot_J.astype(np.int32),
            action_UH=np.array(human_profiles, dtype=np.int32).reshape(len(human_profiles), len(humans)),
            robot_profiles=list(itertools.product(range(n_actions), repeat=len(robots))),
        )

    @property
    def n_profiles(self) -> int:
        return len(self.human_J)

    @property
    def uniform_belief_HU(self) -> npt.NDArray[np.float64]:
        """What each human believes of the others by default: all combinations of the other humans' actions alike."""
        share = float(self.n_actions) ** -(len(self.humans) - 1)
        return np.full((len(self.humans), len(self.action_UH)), share)


def _number_of(
    action_NJ: Sequence[npt.NDArray[np.int64]], agents: Sequence[int], n_actions: int, n_profiles: int
) -> npt.NDArray[np.int64]:
    """The number of each profile's part that some agents play, the last of them changing fastest."""
    number = np.zeros(n_profiles, dtype=np.int64)
    for agent in agents:
        number = number * n_actions + action_NJ[agent]
    return number
