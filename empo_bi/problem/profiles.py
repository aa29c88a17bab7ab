"""Action profiles as numbers: who plays what in which profile.

A profile index counts with agent 0 as the least significant digit, which has as many values as the agent has actions. Human
and robot profiles are tuples in the order in which
the caller names the agents, the last one changing fastest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int32Array = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Profiles:
    """Profiles of N agents with up to A actions each, seen by H humans and by the robots.

    Attributes
    ----------
    actions_N : how many actions each agent has, A or fewer
    n_profiles : int, J
    action_UH : (U, H) int32, what each human does in each human profile
    own_HAO : (H, A, O) int32, the human profiles in which a human takes an action; U / A of them. Where agents have other
        numbers of actions, rows that have fewer end with -1, and those of actions that a human does not have are all -1
    all_UR : (U, J / U) int32, for phase 1: the profiles in which the humans play u, whatever everybody else does
    played_UR : (U, R) int32, for phase 2: the profile in which the humans play u, the robots r, and bystanders action 0
    robot_profiles : R tuples
    """

    n_actions: int
    actions_N: tuple[int, ...]
    n_profiles: int
    humans: tuple[int, ...]
    robots: tuple[int, ...]
    action_UH: Int32Array
    own_HAO: Int32Array
    all_UR: Int32Array
    played_UR: Int32Array
    robot_profiles: list[tuple[int, ...]]

    @classmethod
    def of(cls, actions_N: Sequence[int], humans: Sequence[int], robots: Sequence[int]) -> Profiles:
        others = [agent for agent in range(len(actions_N)) if agent not in humans]
        human_profiles = _profiles_of(humans, actions_N)
        action_UH = np.array(human_profiles, dtype=np.int32).reshape(len(human_profiles), len(humans))
        human_part = _part_of_index(humans, actions_N)
        return cls(
            n_actions=max(actions_N),
            actions_N=tuple(actions_N),
            n_profiles=math.prod(actions_N),
            humans=tuple(humans),
            robots=tuple(robots),
            action_UH=action_UH,
            own_HAO=_own_profiles(action_UH, max(actions_N)),
            all_UR=np.add.outer(human_part, _part_of_index(others, actions_N)).astype(np.int32),
            played_UR=np.add.outer(human_part, _part_of_index(robots, actions_N)).astype(np.int32),
            robot_profiles=_profiles_of(robots, actions_N),
        )

    def actions_of(self, profile: npt.NDArray[np.integer]) -> npt.NDArray[np.integer]:
        """What each agent does in profiles given by their numbers, (..., N)."""
        return np.asarray(profile[..., np.newaxis] // np.array(strides(self.actions_N)) % np.array(self.actions_N))

    @property
    def uniform_belief_HU(self) -> npt.NDArray[np.float64]:
        """What each human believes of the others by default: all combinations of the other humans' actions alike."""
        shares = [1.0 / math.prod(self.actions_N[j] for j in self.humans if j != human) for human in self.humans]
        return np.repeat(np.array(shares)[:, np.newaxis], len(self.action_UH), axis=1)


def strides(actions_N: Sequence[int]) -> list[int]:
    """By how much one more of each agent's action raises the number of a profile."""
    return [math.prod(actions_N[:agent]) for agent in range(len(actions_N))]


def _profiles_of(agents: Sequence[int], actions_N: Sequence[int]) -> list[tuple[int, ...]]:
    """All combinations of some agents' actions, the last agent changing fastest."""
    return list(itertools.product(*(range(actions_N[agent]) for agent in agents)))


def _own_profiles(action_UH: Int32Array, n_actions: int) -> Int32Array:
    own = [[np.flatnonzero(action_U == a) for a in range(n_actions)] for action_U in action_UH.T]
    own_HAO = np.full((len(own), n_actions, max((len(u_O) for by_action in own for u_O in by_action), default=0)), -1)
    for h, by_action in enumerate(own):
        for a, u_O in enumerate(by_action):
            own_HAO[h, a, : len(u_O)] = u_O
    return own_HAO.astype(np.int32)


def _part_of_index(agents: Sequence[int], actions_N: Sequence[int]) -> npt.NDArray[np.int64]:
    """What some agents contribute to a profile's index, for each of their profiles, the last agent changing fastest."""
    part = np.zeros(1, dtype=np.int64)
    for agent in agents:
        part = np.add.outer(part, np.arange(actions_N[agent]) * strides(actions_N)[agent]).ravel()
    return part
