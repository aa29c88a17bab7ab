"""Users' functions that count how often they are asked, for the tests of what is stored in their place."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from empo_bi import HumanPolicyPrior, load_world
from empo_bi.goals import PossibleGoal, PossibleGoalGenerator, ReachRectangleGoal, TabularGoalGenerator

asked: Counter[str] = Counter()


class _Counts(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        asked[record.msg] += 1


def note(what: str) -> None:
    """Count a question. By way of logging, since what a function refers to is part of its key, and may not change."""
    logging.getLogger("asked").debug(what)


logging.getLogger("asked").addHandler(_Counts())
logging.getLogger("asked").setLevel(logging.DEBUG)


class FacesNorth(PossibleGoal):
    def __init__(self, human: int) -> None:
        super().__init__()
        self.human = human

    def is_achieved(self, state: Any) -> int:
        note("goal")
        return int(state[1][self.human][2] == 3)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FacesNorth) and other.human == self.human

    def __hash__(self) -> int:
        return hash(self.human)

    def __repr__(self) -> str:
        return f"faces north ({self.human})"


class MoreOnTheLeft(PossibleGoalGenerator):
    """The goals and their weights depend on where a human is."""

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Any, float]]:
        note("generator")
        anywhere = ReachRectangleGoal(self.env, human_agent_index, (1, 1, 9, 4))
        yield anywhere, 0.5
        if state[1][human_agent_index][2] != 1:
            yield FacesNorth(human_agent_index), 0.25 + state[1][human_agent_index][0] / 100


def changing(max_steps: int = 3) -> Any:
    world = load_world("asymmetric_freeing", max_steps=max_steps)
    world.possible_goal_generator = MoreOnTheLeft(world)
    return world


def listed(max_steps: int = 3) -> Any:
    world = load_world("asymmetric_freeing", max_steps=max_steps)
    own = [FacesNorth(0), FacesNorth(1), *(ReachRectangleGoal(world, human, (1, 1, 9, 4)) for human in (0, 1))]
    world.possible_goal_generator = TabularGoalGenerator(own, [0.1, 0.2, 0.3, 0.4])
    return world


def goals_of(world: Any) -> Any:
    return MoreOnTheLeft(world)


class Lazy(HumanPolicyPrior):
    """Not independent: both humans stand still together, or both move."""

    def __call__(self, state: Any, human_agent_index: int, possible_goal: Any = None) -> Any:
        return np.array([0.4, 0.2, 0.2, 0.2])

    def profile_distribution(self, state: Any, device: object = None) -> Any:
        note("prior")
        return [(0.25 + state[0] / 10, [0, 0]), (0.75 - state[0] / 10, [3, 1])]

    def profile_distribution_with_fixed_goal(self, state: Any, human: int, goal: Any, device: object = None) -> Any:
        note("prior")
        return [(0.5, [0, 0]), (0.5, [3, 2])]


def lazy(world: Any) -> Any:
    return Lazy(world, [0, 1])


def end_is_worth(state: Any) -> float:
    note("end")
    return -1.0 - state[1][2][0]


def believe(state: Any, human: int, action: int) -> Any:
    note("belief")
    return [(0.5, [action, action, 0]), (0.5, [0, 0, 0])] if human == 0 else [(1.0, [1, action, 0])]


class At(PossibleGoal):
    def __init__(self, place: int) -> None:
        super().__init__()
        self.place = place

    def is_achieved(self, state: Any) -> int:
        note("goal")
        return int(state[1] == self.place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, At) and other.place == self.place

    def __hash__(self) -> int:
        return hash(self.place)

    def __repr__(self) -> str:
        return f"at {self.place}"


class Ring:
    """Human 0 waits or walks on a ring, pushed by robot 1; steps take longer at place 2 if ``is_slow``."""

    n_agents = 2
    human_agent_indices = (0,)
    robot_agent_indices = (1,)
    action_space = SimpleNamespace(n=2)
    action_names = ("wait", "walk")

    def __init__(self, max_steps: int = 4) -> None:
        self.max_steps = max_steps
        self.possible_goal_generator = TabularGoalGenerator([At(0), At(1), At(2)], [0.5, 0.25, 0.25])

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        note("world")
        step, x = state
        if step == self.max_steps:
            return None
        if actions[0] == 0:
            return [(1.0, (step + 1, x))]
        return [(0.75, (step + 1, (x + 1) % 3)), (0.25, (step + 1, (x + 2 * actions[1]) % 3))]


class SlowRing(Ring):
    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> list[float]:
        note("world")
        return [1.0 + state[1] for _ in transitions]


def ring(max_steps: int = 4) -> Ring:
    return Ring(max_steps)


def slow_ring(max_steps: int = 4) -> SlowRing:
    return SlowRing(max_steps)
