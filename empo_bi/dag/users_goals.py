"""Goals and generators of other packages, such as EMPO's own, recognised by their attributes and held to what they answer.

They are asked about some states only: enough to find out whether they mean what their attributes say. Where they do, the
compiled path computes where goals are attained, and the users' objects stay what tables are keyed by.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from empo_bi.world.as_model import Model
from empo_bi.world.goals import PossibleGoal, PossibleGoalGenerator, ReachRectangleGoal
from empo_bi.world.model import State

UsersGoal = Any  # has is_achieved(state)
UsersGenerator = Any  # has generate(state, human)

N_PROBES = 40  # states along a random walk


class UsersGoals:
    """Asks goals and generators of other packages about some states of a world on a map; of others it knows nothing."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @cached_property
    def _probes(self) -> list[State]:
        return random_states(self._model, N_PROBES)

    def reach_goal_like(self, goal: UsersGoal) -> ReachRectangleGoal | None:
        """The reach goal that somebody else's goal is: an agent, and the cell or rectangle where it has to be.

        It is asked about states with the agent on every cell of the map, and about many with it at the target: if it says
        otherwise anywhere, it is none.
        """
        target = _target(goal)
        if target is None or isinstance(goal, PossibleGoal) or self._model.grid is None:  # ours are known by their class
            return None
        found = ReachRectangleGoal(None, goal.human_agent_index, target)
        if found.human_agent_index >= self._model.n_agents:
            return None
        states = self._moved_everywhere(found)
        return found if all(bool(goal.is_achieved(state)) == bool(found.is_achieved(state)) for state in states) else None

    def _moved_everywhere(self, goal: ReachRectangleGoal) -> Iterator[State]:
        """States with the goal's agent put on every cell in turn, whether or not it could stand there."""
        assert self._model.grid is not None
        grid, agent, (x1, y1, x2, y2) = self._model.grid, goal.human_agent_index, goal.target_rect
        for x, y in itertools.product(range(grid.width), range(grid.height)):
            is_target = x in (x1, x2) and y in (y1, y2)
            for step, agents, *rest in self._probes if is_target else [self._probes[(x + y) % len(self._probes)]]:
                moved = (x, y, *agents[agent][2:])
                yield (step, (*agents[:agent], moved, *agents[agent + 1 :]), *rest)

    def fixed_yield(self, generator: UsersGenerator, human: int) -> list[tuple[UsersGoal, float]] | None:
        """What somebody else's generator yields for a human everywhere; None if that may differ between states.

        It counts as fixed if it has a list, and yields the same in all states that it is asked about.
        """
        first, *others = (list(generator.generate(state, human)) for state in self._probes)
        return first if first and all(other == first for other in others) else None


_LISTS = (("goal_coords", "n_goals"), ("goals", "weights"))


def has_a_list(generator: object) -> bool:
    """Whether a generator is another package's, with the attributes of one that yields the same everywhere."""
    is_ours = isinstance(generator, PossibleGoalGenerator)  # and known by its class
    return not is_ours and any(all(hasattr(generator, name) for name in names) for names in _LISTS)


def said_at_first(generator: UsersGenerator, humans: list[int], model: Model) -> list[object]:
    """What a generator yields for each human in the initial state: enough to see that somebody has changed its goals."""
    state = model.initial_state()
    return [
        (human, type(goal), goal, weight, _target(goal))
        for human in humans
        for goal, weight in generator.generate(state, human)
    ]


def _target(goal: UsersGoal) -> tuple[int, int, int, int] | None:
    """(x1, y1, x2, y2) of an object with ``human_agent_index`` and ``target_rect`` or ``target_pos``."""
    try:
        place = getattr(goal, "target_rect", None)
        place = goal.target_pos if place is None else place
        numbers = [int(number) for part in place for number in (part if hasattr(part, "__len__") else [part])]
        goal.human_agent_index.__index__()
    except (AttributeError, TypeError, ValueError):
        return None
    if len(numbers) == 2:
        return (*numbers, *numbers)  # type: ignore[return-value]
    return tuple(numbers) if len(numbers) == 4 else None  # type: ignore[return-value]


def random_states(model: Model, n_states: int, seed: int = 0) -> list[State]:
    """States along a random walk, which begins again at the start when it has ended."""
    draw, found, state = random.Random(seed), list[State](), model.initial_state()
    while len(found) < n_states:
        found.append(state)
        profile = [draw.randrange(n) for n in model.num_actions_per_agent]
        transitions = model.transitions(state, profile)
        if transitions is None:
            state = model.initial_state()
        else:
            state = draw.choices([successor for _, successor in transitions], [p for p, _ in transitions])[0]
    return found
