"""Policies to call and to draw from: of humans, by goal and over all goals, and of robots.

Both tabular classes take their numbers from any mapping of states: plain dictionaries, or views of a solution.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from empo_bi.types import FloatArray

Profile = tuple[float, list[int]]


class HumanPolicyPrior(ABC):
    """What humans may do: a distribution over actions for each human, with a goal or over all goals."""

    def __init__(self, world_model: Any, human_agent_indices: Sequence[int]) -> None:
        self.world_model = world_model
        self.human_agent_indices = list(human_agent_indices)

    @abstractmethod
    def __call__(self, state: Any, human_agent_index: int, possible_goal: Any = None) -> FloatArray:
        """Action probabilities of a human in a state, with a goal or over all goals."""

    def set_world_model(self, world_model: Any) -> None:
        self.world_model = world_model

    def sample(self, state: Any, human_agent_index: int | None = None, possible_goal: Any = None) -> int | list[int]:
        """Draw an action of a human; without one, an action of each, independently. Draws are NumPy's global ones."""
        if human_agent_index is None:
            assert possible_goal is None, "a goal belongs to a human; give human_agent_index as well"
            return [int(np.random.choice(len(p), p=p)) for p in self._marginals(state)]  # noqa: NPY002 (documented)
        given = np.asarray(self(state, human_agent_index, possible_goal), dtype=np.float64)
        return int(np.random.choice(len(given), p=normalised(given)))  # noqa: NPY002

    def profile_distribution(self, state: Any, device: Any = None) -> list[Profile]:
        """``(probability, [action of each human])`` for all that may happen; humans independent, the last one fastest.

        ``device`` is accepted for compatibility: what is returned are plain lists, wherever they were computed.
        """
        return joint(self._marginals(state))

    def profile_distribution_with_fixed_goal(
        self, state: Any, fixed_agent_index: int, fixed_goal: Any, device: Any = None
    ) -> list[Profile]:
        """The same with one human pursuing a goal while the others keep their marginals."""
        fixed = np.asarray(self(state, fixed_agent_index, fixed_goal), dtype=np.float64)
        by_human = self._marginals(state)
        return joint(
            [fixed if h == fixed_agent_index else p for h, p in zip(self.human_agent_indices, by_human, strict=True)]
        )

    def _marginals(self, state: Any) -> list[FloatArray]:
        return [normalised(np.asarray(self(state, h), dtype=np.float64)) for h in self.human_agent_indices]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "world_model": None}


class TabularHumanPolicyPrior(HumanPolicyPrior):
    """A prior with a table: ``values[state][human][goal]`` is an array of action probabilities.

    Pickling leaves the world behind: ``set_world_model`` gives the copy one again, which marginal calls need.
    """

    def __init__(
        self, world_model: Any, human_agent_indices: Sequence[int], possible_goal_generator: Any, values: Mapping[Any, Any]
    ) -> None:
        super().__init__(world_model, human_agent_indices)
        self.possible_goal_generator = possible_goal_generator
        self.values = values
        self.solution: Any = None  # where the table is a view of one

    def __call__(self, state: Any, human_agent_index: int, possible_goal: Any = None) -> FloatArray:
        """The policy for a goal; without one, the weighted sum over the goals of the state, not normalised.

        Raises
        ------
        KeyError
            For terminal and unknown states, and for humans and goals that are not in the table.
        """
        by_goal = self.values[state][human_agent_index]
        if possible_goal is not None:
            if possible_goal not in by_goal:
                raise KeyError(f"{possible_goal!r} is not among the goals that this prior has for human {human_agent_index}")
            policy: FloatArray = by_goal[possible_goal]
            return policy
        generator = self._generator()
        rows = [weight * np.asarray(by_goal[goal]) for goal, weight in generator.generate(state, human_agent_index)]
        return np.sum(rows, axis=0) if rows else np.zeros(int(self.world_model.action_space.n))

    def __repr__(self) -> str:
        return f"<TabularHumanPolicyPrior of humans {self.human_agent_indices}>"

    def _generator(self) -> Any:
        if self.possible_goal_generator is None or (
            getattr(self.possible_goal_generator, "world_model", self) is None and self.world_model is None
        ):
            raise ValueError("a pickled prior has lost its world; call set_world_model(world) before asking for marginals")
        return self.possible_goal_generator

    def set_world_model(self, world_model: Any) -> None:
        super().set_world_model(world_model)
        if hasattr(self.possible_goal_generator, "set_world_model"):
            self.possible_goal_generator.set_world_model(world_model)

    def __getstate__(self) -> dict[str, Any]:
        values = self.values.to_dict() if hasattr(self.values, "to_dict") else self.values
        return {**super().__getstate__(), "values": values, "solution": None}


class RobotPolicy(ABC):
    """What robots do."""

    @abstractmethod
    def sample(self, state: Any) -> Any:
        """Draw what all robots do, a tuple with one action each."""

    def reset(self, world_model: Any) -> None:  # noqa: B027 (documented to do nothing)
        """Told when an episode begins; by default nothing happens."""


class TabularRobotPolicy(RobotPolicy):
    """A robot policy with a table: ``values[state]`` is ``{robot profile: probability}``."""

    def __init__(self, world_model: Any, robot_agent_indices: Sequence[int], values: Mapping[Any, Any]) -> None:
        self.world_model = world_model
        self.robot_agent_indices = list(robot_agent_indices)
        self.values = values
        self.solution: Any = None  # where the table is a view of one
        self.num_actions = 0 if world_model is None else int(world_model.action_space.n)

    def __repr__(self) -> str:
        return f"<TabularRobotPolicy of robots {self.robot_agent_indices}>"

    def __call__(self, state: Any) -> dict[tuple[int, ...], float]:
        """The distribution over robot profiles; empty for terminal and unknown states."""
        found: dict[tuple[int, ...], float] = self.values.get(state, {})
        return found

    def sample(self, state: Any) -> tuple[int, ...]:
        """Draw a robot profile; uniformly random actions where there is no entry. Draws are NumPy's global ones."""
        distribution = self(state)
        if not distribution:
            return tuple(int(np.random.randint(self.num_actions)) for _ in self.robot_agent_indices)  # noqa: NPY002
        profiles = list(distribution)
        drawn = np.random.choice(len(profiles), p=normalised(np.array(list(distribution.values()))))  # noqa: NPY002
        return profiles[int(drawn)]

    def get_action(self, state: Any, robot_agent_index: int) -> int:
        """Draw a profile and return one robot's part of it."""
        if robot_agent_index not in self.robot_agent_indices:
            raise ValueError(f"agent {robot_agent_index!r} is not among the robots {self.robot_agent_indices}")
        return self.sample(state)[self.robot_agent_indices.index(robot_agent_index)]

    def reset(self, world_model: Any) -> None:
        self.world_model = world_model
        self.num_actions = int(world_model.action_space.n)

    def __getstate__(self) -> dict[str, Any]:
        values = self.values.to_dict() if hasattr(self.values, "to_dict") else self.values
        return {**self.__dict__, "world_model": None, "values": values, "solution": None}


def normalised(weights: FloatArray) -> FloatArray:
    """The weights divided by their sum; uniform where that is 0."""
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1.0 / len(weights))


def joint(by_human: Sequence[FloatArray]) -> list[Profile]:
    """All profiles of positive probability of independent humans, the last one changing fastest."""
    found: list[Profile] = []
    for actions in itertools.product(*(range(len(p)) for p in by_human)):
        probability = 1.0
        for p, action in zip(by_human, actions, strict=True):
            probability *= float(p[action])
        if probability > 0:
            found.append((probability, list(actions)))
    return found
