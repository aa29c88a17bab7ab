"""Policies to call and to sample from: of humans, by goal and over all goals, and of robots.

Both tabular classes read their numbers from any mapping of states: a plain dictionary, or a view of a solution.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.problem.asked_prior import AnswersForEach
from empo_bi.problem.protocols import Goal, GoalGenerator
from empo_bi.runtime.wording import short_repr
from empo_bi.sweep.formulas import normalised
from empo_bi.types import FloatArray
from empo_bi.world.as_model import as_model

Profile = tuple[float, list[int]]  # a probability, and an action of each human
GoalPolicies = Mapping[int, Mapping[Goal, npt.ArrayLike]]  # by human and goal
RobotDistribution = Mapping[tuple[int, ...], float]  # by robot profile


class HumanPolicyPrior(AnswersForEach):
    """A distribution over actions for each human, for one goal or averaged over all goals.

    Humans act independently, unless a subclass has a ``profile_distribution`` of its own. A subclass may say of its answers
    what they depend on (``depends_on``), and that they may be asked for in worker processes (``asks_in_processes = True``).
    """

    def __init__(self, world_model: Any, human_agent_indices: Sequence[int]) -> None:
        self.world_model = world_model
        self.human_agent_indices = list(human_agent_indices)

    @abstractmethod
    def __call__(self, state: Hashable, human_agent_index: int, possible_goal: Goal | None = None) -> FloatArray:
        """Action probabilities of a human in a state, for a goal or averaged over all goals."""

    @property
    def is_independent(self) -> bool:
        """Whether what the humans do together follows from ``__call__`` alone."""
        names = ("profile_distribution", "profile_distribution_with_fixed_goal", "_marginals")
        return all(getattr(type(self), name) is getattr(HumanPolicyPrior, name) for name in names) and not any(
            name in self.__dict__ for name in names
        )

    def set_world_model(self, world_model: Any) -> None:
        self.world_model = world_model

    def sample(
        self, state: Hashable, human_agent_index: int | None = None, possible_goal: Goal | None = None
    ) -> int | list[int]:
        """Draw an action of one human, or independent actions of all humans. Uses NumPy's global random state."""
        if human_agent_index is None:
            assert possible_goal is None, "a goal belongs to a human; give human_agent_index as well"
            return [int(np.random.choice(len(p), p=p)) for p in self._marginals(state)]  # noqa: NPY002 (documented)
        given = np.asarray(self(state, human_agent_index, possible_goal), dtype=np.float64)
        return int(np.random.choice(len(given), p=normalised(given)))  # noqa: NPY002

    def profile_distribution(self, state: Hashable, device: object = None) -> list[Profile]:
        """``(probability, [action of each human])`` of all profiles that may occur.

        Humans act independently; the last one's action changes fastest. ``device`` is accepted for compatibility and has
        no effect.
        """
        return joint(self._marginals(state))

    def profile_distribution_with_fixed_goal(
        self, state: Hashable, fixed_agent_index: int, fixed_goal: Goal, device: object = None
    ) -> list[Profile]:
        """The same with one human pursuing a goal, while the others act by their averages over goals."""
        fixed = np.asarray(self(state, fixed_agent_index, fixed_goal), dtype=np.float64)
        by_human = self._marginals(state)
        return joint(
            [fixed if h == fixed_agent_index else p for h, p in zip(self.human_agent_indices, by_human, strict=True)]
        )

    def _marginals(self, state: Hashable) -> list[FloatArray]:
        return [normalised(np.asarray(self(state, h), dtype=np.float64)) for h in self.human_agent_indices]

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "world_model": None}


class TabularHumanPolicyPrior(HumanPolicyPrior):
    """A prior with a table: ``values[state][human][goal]`` is an array of action probabilities.

    A pickled prior has no world: call ``set_world_model`` before asking for averages over goals.
    """

    def __init__(
        self, world_model: Any, human_agent_indices: Sequence[int], possible_goal_generator: GoalGenerator | None,
        values: Mapping[Hashable, GoalPolicies],
    ) -> None:  # fmt: skip
        super().__init__(world_model, human_agent_indices)
        self.possible_goal_generator = possible_goal_generator
        self.values = values
        self.solution: Any = None  # the solution, if the table is a view of one

    def __call__(self, state: Hashable, human_agent_index: int, possible_goal: Goal | None = None) -> FloatArray:
        """The policy for a goal; without one, the weighted sum over the goals of the state, not normalised.

        Raises
        ------
        KeyError
            For terminal and unknown states, and for humans and goals that are not in the table.
        """
        by_human = self.values.get(state)
        if by_human is None:
            raise KeyError(f"state {short_repr(state)} has no policy here: it is terminal, or cannot be reached")
        if human_agent_index not in by_human:
            raise KeyError(f"agent {human_agent_index} is not among the humans of this prior, {list(by_human)}")
        by_goal = by_human[human_agent_index]
        if possible_goal is not None:
            if possible_goal not in by_goal:
                raise KeyError(
                    f"{possible_goal!r} is not among the goals that this prior has for human {human_agent_index}: "
                    f"{short_repr(list(by_goal), 200)}"
                )
            policy: FloatArray = by_goal[possible_goal]  # type: ignore[assignment]
            return policy
        generator = self._generator()
        rows = [weight * np.asarray(by_goal[goal]) for goal, weight in generator.generate(state, human_agent_index)]
        return np.sum(rows, axis=0) if rows else np.zeros(as_model(self.world_model).n_actions)

    def __repr__(self) -> str:
        return f"<TabularHumanPolicyPrior of humans {self.human_agent_indices}>"

    def _generator(self) -> GoalGenerator:
        if self.possible_goal_generator is None or (
            getattr(self.possible_goal_generator, "world_model", self) is None and self.world_model is None
        ):
            raise ValueError("this prior was pickled and has no world; call set_world_model(world) before asking it")
        return self.possible_goal_generator

    def set_world_model(self, world_model: Any) -> None:
        super().set_world_model(world_model)
        if self.possible_goal_generator is not None and hasattr(self.possible_goal_generator, "set_world_model"):
            self.possible_goal_generator.set_world_model(world_model)

    def __getstate__(self) -> dict[str, object]:
        values = self.values.to_dict() if hasattr(self.values, "to_dict") else self.values
        return {**super().__getstate__(), "values": values, "solution": None}


class RobotPolicy(ABC):
    """A policy of all robots together."""

    @abstractmethod
    def sample(self, state: Hashable) -> Sequence[int]:
        """Draw an action of each robot."""

    def reset(self, world_model: Any) -> None:  # noqa: B027 (documented to do nothing)
        """Called when an episode begins; does nothing by default."""


class TabularRobotPolicy(RobotPolicy):
    """A robot policy with a table: ``values[state]`` is ``{robot profile: probability}``."""

    def __init__(
        self, world_model: Any, robot_agent_indices: Sequence[int], values: Mapping[Hashable, RobotDistribution]
    ) -> None:
        self.world_model = world_model
        self.robot_agent_indices = list(robot_agent_indices)
        self.values = values
        self.solution: Any = None  # the solution, if the table is a view of one
        self._count_actions()

    def _count_actions(self) -> None:
        """``num_actions`` is the largest number of actions of any agent; a robot may have fewer."""
        model = None if self.world_model is None else as_model(self.world_model)
        self.num_actions = 0 if model is None else model.n_actions
        numbers = [] if model is None else model.num_actions_per_agent
        self._num_actions_of = {robot: numbers[robot] for robot in self.robot_agent_indices if robot < len(numbers)}

    def __repr__(self) -> str:
        return f"<TabularRobotPolicy of robots {self.robot_agent_indices}>"

    def __call__(self, state: Hashable) -> RobotDistribution:
        """The distribution over robot profiles; empty for terminal and unknown states."""
        return self.values.get(state, {})

    def sample(self, state: Hashable) -> tuple[int, ...]:
        """Draw a robot profile; uniformly random actions if there is no entry. Uses NumPy's global random state."""
        distribution = self(state)
        if not distribution:
            numbers = [self._num_actions_of.get(robot, self.num_actions) for robot in self.robot_agent_indices]
            return tuple(int(np.random.randint(n)) for n in numbers)  # noqa: NPY002
        profiles = list(distribution)
        drawn = np.random.choice(len(profiles), p=normalised(np.array(list(distribution.values()))))  # noqa: NPY002
        return profiles[int(drawn)]

    def get_action(self, state: Hashable, robot_agent_index: int) -> int:
        """Draw a profile and return one robot's action."""
        if robot_agent_index not in self.robot_agent_indices:
            raise ValueError(f"agent {robot_agent_index!r} is not among the robots {self.robot_agent_indices}")
        return self.sample(state)[self.robot_agent_indices.index(robot_agent_index)]

    def reset(self, world_model: Any) -> None:
        self.world_model = world_model
        self._count_actions()

    def __getstate__(self) -> dict[str, object]:
        values = self.values.to_dict() if hasattr(self.values, "to_dict") else self.values
        return {**self.__dict__, "world_model": None, "values": values, "solution": None}


def joint(by_human: Sequence[FloatArray]) -> list[Profile]:
    """All profiles of positive probability of independent humans; the last one's action changes fastest."""
    found: list[Profile] = []
    for actions in itertools.product(*(range(len(p)) for p in by_human)):
        probability = 1.0
        for p, action in zip(by_human, actions, strict=True):
            probability *= float(p[action])
        if probability > 0:
            found.append((probability, list(actions)))
    return found
