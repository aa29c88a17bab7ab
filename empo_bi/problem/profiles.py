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
    n_profiles : int, J
    action_UH : (U, H) int32, what each human does in each human profile
    own_HAO : (H, A, U / A) int32, the human profiles in which a human takes an action
    all_UR : (U, J / U) int32, for phase 1: the profiles in which the humans play u, whatever everybody else does
    played_UR : (U, R) int32, for phase 2: the profile in which the humans play u, the robots r, and bystanders action 0
    robot_profiles : R tuples
    """

    n_actions: int
    n_profiles: int
    humans: tuple[int, ...]
    robots: tuple[int, ...]
    action_UH: Int32Array
    own_HAO: Int32Array
    all_UR: Int32Array
    played_UR: Int32Array
    robot_profiles: list[tuple[int, ...]]

    @classmethod
    def of(cls, n_agents: int, n_actions: int, humans: Sequence[int], robots: Sequence[int]) -> Profiles:
        others = [agent for agent in range(n_agents) if agent not in humans]
        human_profiles = list(itertools.product(range(n_actions), repeat=len(humans)))
        action_UH = np.array(human_profiles, dtype=np.int32).reshape(len(human_profiles), len(humans))
        own = [[np.flatnonzero(action_UH[:, h] == a) for a in range(n_actions)] for h in range(len(humans))]
        human_part = _part_of_index(humans, n_actions)
        return cls(
            n_actions=n_actions,
            n_profiles=n_actions**n_agents,
            humans=tuple(humans),
            robots=tuple(robots),
            action_UH=action_UH,
            own_HAO=np.array(own, dtype=np.int32),
            all_UR=np.add.outer(human_part, _part_of_index(others, n_actions)).astype(np.int32),
            played_UR=np.add.outer(human_part, _part_of_index(robots, n_actions)).astype(np.int32),
            robot_profiles=list(itertools.product(range(n_actions), repeat=len(robots))),
        )

    @property
    def uniform_belief_HU(self) -> npt.NDArray[np.float64]:
        """What each human believes of the others by default: all combinations of the other humans' actions alike."""
        share = float(self.n_actions) ** -(len(self.humans) - 1)
        return np.full((len(self.humans), len(self.action_UH)), share)


def _part_of_index(agents: Sequence[int], n_actions: int) -> npt.NDArray[np.int64]:
    """What some agents contribute to a profile's index, for each of their profiles, the last agent changing fastest."""
    part = np.zeros(1, dtype=np.int64)
    for agent in agents:
        part = np.add.outer(part, np.arange(n_actions) * n_actions**agent).ravel()
    return part
