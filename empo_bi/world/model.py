"""The interface of worlds, with sensible defaults for worlds written in Python.

The planners only use its attributes and methods, so deriving from :class:`WorldModel` is convenient but not required.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

Transitions = list[tuple[float, Any]]

PROBABILITY_TOLERANCE = 1e-6  # of the sum of a profile's probabilities; accepted ones are renormalised


class WorldModel(gymnasium.Env[Any, Any], ABC):
    """A finite game in which time only moves forward.

    A subclass sets ``agents`` and ``action_space`` (with ``n``, the number of actions of every agent) and defines
    ``get_state``, ``set_state``, ``reset`` and ``transition_probabilities``; everything else has a default.

    Attributes
    ----------
    time_homogeneous : bool
        A promise that makes the planners faster: states are tuples that begin with the step, each transition adds 1 to
        it, and in states that are not terminal, probabilities and durations do not depend on it.
    """

    agents: Sequence[Any] = ()
    human_agent_indices: list[int] = []  # noqa: RUF012 (an interface: subclasses assign their own)
    robot_agent_indices: list[int] = []  # noqa: RUF012
    possible_goal_generator: Any = None
    time_homogeneous = False

    @abstractmethod
    def get_state(self) -> Hashable:
        """The current state, hashable and complete."""

    @abstractmethod
    def set_state(self, state: Any) -> None:
        """Make a state the current one."""

    @abstractmethod
    def transition_probabilities(self, state: Any, actions: Sequence[int]) -> Transitions | None:
        """``[(probability, successor), ...]`` for one action per agent, None in a terminal state."""

    def initial_state(self) -> Any:
        """The state after ``reset``; the current state is kept."""
        present = self.get_state()
        self.reset()
        start = self.get_state()
        self.set_state(present)
        return start

    def is_terminal(self, state: Any = None) -> bool:
        """Whether a state has no successors (tested with action 0 for all agents)."""
        state = self.get_state() if state is None else state
        return self.transition_probabilities(state, [0] * len(self.agents)) is None

    def transition_durations(self, state: Any, actions: Sequence[int], transitions: Transitions) -> list[float]:
        """How long each transition takes; 1 unless a world overrides it."""
        return [1.0] * len(transitions)

    def terminal_duration(self, state: Any) -> float:
        return 1.0

    def step(self, actions: Sequence[int]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Draw a successor: ``(state, 0.0, terminated, False, {})``."""
        transitions = self.transition_probabilities(self.get_state(), actions)
        if not transitions:
            raise RuntimeError("the current state is terminal, so the world has ended; call reset() to start again")
        state = transitions[self.draw([probability for probability, _ in transitions])][1]
        self.set_state(state)
        return state, 0.0, self.is_terminal(state), False, {}

    def draw(self, probabilities: npt.ArrayLike) -> int:
        """Draw an index with the environment's own random numbers, which ``reset(seed=...)`` makes repeatable.

        Each draw takes one uniform number, even if there is only one choice. The result is the same as that of
        ``Generator.choice``, to the last bit, but four times as fast.
        """
        weights = np.asarray(probabilities, dtype=np.float64)
        if len(weights) == 1 and weights[0] > 0:
            self.np_random.random()
            return 0
        total = weights.sum()
        if not (0 < total < math.inf and weights.min() >= 0):
            raise ValueError(f"probabilities {weights.tolist()}; give finite numbers, none negative and not all 0")
        cumulated = (weights / total).cumsum()
        cumulated /= cumulated[-1]
        return int(cumulated.searchsorted(self.np_random.random(), side="right"))
