"""What a world is: :class:`World`, the least that an object needs; :class:`WorldModel`, a base class with the rest.

The planners use attributes and methods only, so deriving from :class:`WorldModel` is a convenience, not a duty. What they
see of any world is a :class:`~empo_bi.world.as_model.Model`. ``empo_bi.testing.check_world`` checks a world of your own.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

import gymnasium
import numpy as np
import numpy.typing as npt

from empo_bi.types import Json

State = Any  # any hashable object
Transitions = list[tuple[float, State]]

PROBABILITY_TOLERANCE = 1e-6  # of the sum of a profile's probabilities; accepted ones are renormalised


class World(Protocol):
    """The least that an object needs to be a world, beside ``agents`` (or ``n_agents``) and an initial state.

    :class:`WorldModel` has the whole contract.
    """

    @property
    def action_space(self) -> Any:
        """With ``n``, the number of actions of every agent."""

    def transition_probabilities(self, state: State, actions: Any) -> Any:
        """``[(probability, successor), ...]`` for one action per agent, None at a terminal state."""


class WorldModel(gymnasium.Env[Any, Any], ABC):
    """A finite game in which time only moves forward.

    A subclass sets ``agents`` and ``action_space`` (with ``n``, the number of actions of every agent) and defines
    ``get_state``, ``set_state``, ``reset`` and ``transition_probabilities``; everything else has a default.

    The contract, which ``empo_bi.testing.check_world(world)`` checks:

    - **States** are hashable, and equal ones have the same hash. They hold all that the future depends on, time included.
    - **Transitions** are a function of state and actions: the same question has the same answer, whenever and in whatever
      order it is asked, and asking changes nothing. Probabilities are 0 or more and sum to 1.
    - **Time moves forward**: no path leads back to a state. With ``level_fct``, every successor is on a higher level.
    - **A state is terminal** for all action profiles (``transition_probabilities`` is None) or for none.
    - **Action profiles** have one action per agent, each from 0 to ``action_space.n - 1``; others are refused.
    - **Goals** are compared by ``==`` and ``hash``; ``is_achieved(state)`` is True or False (or 1 or 0), their weights are
      finite and 0 or more.

    What a world may have beyond that:

    - ``human_agent_indices`` and ``robot_agent_indices``: who is what.
    - ``possible_goal_generator``: what humans may want; its ``generate(state, human)`` yields ``(goal, weight)`` pairs.
    - ``num_actions_per_agent``: how many actions each agent has, where they differ; agent i has actions 0 to
      ``num_actions_per_agent[i] - 1``, and the world is never asked about others.
    - ``action_names``: a name for each action, for messages, tables and pictures.
    - ``time_homogeneous``: a promise that makes the planners faster, see below.
    - ``transition_durations(state, actions, transitions)``: how long each transition takes, where that is not 1.
    - ``encode_state(state)`` and ``decode_state(value)``: states as JSON values and back, for stores on disk.
    - ``content_key``: a text (or a method that returns one) that identifies this world.
    - ``max_steps``: the horizon, for messages and batches.
    - ``picture(state)``: a (height, width, 3) array of uint8, for films.

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
    def get_state(self) -> State:
        """The current state, hashable and complete."""

    @abstractmethod
    def set_state(self, state: State) -> None:
        """Make a state the current one."""

    @abstractmethod
    def transition_probabilities(self, state: State, actions: Sequence[int]) -> Transitions | None:
        """``[(probability, successor), ...]`` for one action per agent, None in a terminal state."""

    def initial_state(self) -> State:
        """The state after ``reset``; the current state is kept."""
        present = self.get_state()
        self.reset()
        start = self.get_state()
        self.set_state(present)
        return start

    def is_terminal(self, state: State = None) -> bool:
        """Whether a state has no successors (tested with action 0 for all agents)."""
        state = self.get_state() if state is None else state
        return self.transition_probabilities(state, [0] * len(self.agents)) is None

    def transition_durations(self, state: State, actions: Sequence[int], transitions: Transitions) -> list[float]:
        """How long each transition takes; 1 unless a world overrides it."""
        return [1.0] * len(transitions)

    def terminal_duration(self, state: State) -> float:
        return 1.0

    def step(self, actions: Sequence[int]) -> tuple[Any, float, bool, bool, Json]:
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
