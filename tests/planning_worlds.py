"""Small worlds written in Python that the tests of results and of the documented functions share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any


@dataclass(frozen=True)
class At:
    """The goal that the second element of a state has some value."""

    place: int

    def is_achieved(self, state: Any) -> int:
        return int(state[1] == self.place)


class Places:
    """One goal for each place, with weights that do not sum to 1; the list is the same in every state and for all humans."""

    def __init__(self, *weights: float) -> None:
        self.weights = weights

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[At, float]]:
        for place, weight in enumerate(self.weights):
            yield At(place), weight


class TwoSteps:
    """Section 12 of the specification: human 0, robot 1; k becomes 1 when both play 1, and stays 1."""

    agents = ("human", "robot")
    action_space = SimpleNamespace(n=2)
    human_agent_indices = (0,)
    robot_agent_indices = (1,)

    def __init__(self, steps: int = 2) -> None:
        self.steps = steps
        self.possible_goal_generator: Any = Places(0.5, 0.5)

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        t, k = state
        return None if t == self.steps else [(1.0, (t + 1, 1 if list(actions) == [1, 1] else k))]


@dataclass(frozen=True)
class Late:
    """The goal that a step has come, whatever k is then, or with a certain k."""

    step: int
    k: int | None = None

    def is_achieved(self, state: Any) -> int:
        return int(state[0] == self.step and self.k in (None, state[1]))


class LateGoals:
    """Goals that are attained on the last step and never before."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Late, float]]:
        yield Late(self.steps), 0.5
        yield Late(self.steps, 0), 0.25
        yield Late(self.steps, 1), 0.25


class Patience(TwoSteps):
    """The same with more steps and late goals: with a steep discount, the human's values are tiny on the first levels."""

    def __init__(self, steps: int) -> None:
        super().__init__(steps)
        self.possible_goal_generator = LateGoals(steps)


class Ring:
    """Humans 0 and 2, robot 1 on a ring of four places: mostly the humans push, each in one direction, sometimes the robot.

    Or nothing moves, for two steps. Who comes to place 3 has arrived, so terminal states are on several levels.
    The world has a present state, which ``reset`` makes the initial one.
    """

    agents = ("human", "robot", "human")
    action_space = SimpleNamespace(n=2)
    human_agent_indices = (0, 2)
    robot_agent_indices = (1,)

    def __init__(self, steps: int = 4) -> None:
        self.steps = steps
        self.possible_goal_generator: Any = Places(0.4, 0.3, 0.2, 0.6)
        self.state = (0, 0)

    def reset(self) -> None:
        self.state = (0, 0)

    def get_state(self) -> Any:
        return self.state

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        t, place = state
        if t >= self.steps or place == 3:
            return None
        return [
            (0.5, (t + 1, (place + actions[0] - actions[2]) % 4)),
            (0.2, (t + 1, (place + 2 * actions[1]) % 4)),
            (0.3, (min(t + 2, self.steps), place)),
        ]


def step_of(state: Any) -> int:
    return int(state[0])


def plain(view: Any) -> Any:
    """A table of arrays or numbers as plain dictionaries and lists, which can be compared with ``==``."""
    if hasattr(view, "to_dict"):
        view = view.to_dict()
    if isinstance(view, dict):
        return {key: plain(value) for key, value in view.items()}
    return view.tolist() if hasattr(view, "tolist") else view
