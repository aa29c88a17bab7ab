"""Goals and generators of other packages, such as EMPO's own, recognised by their attributes and held to what they answer.

They are asked about some states only: enough to find out whether they mean what their attributes say. Where they do, the
compiled path computes where goals are attained, and the users' objects stay what tables are keyed by.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from empo_bi.types import IndexArray
from empo_bi.world.as_model import Model
from empo_bi.world.goals import PossibleGoal, PossibleGoalGenerator, ReachRectangleGoal
from empo_bi.world.model import State

UsersGoal = Any  # has is_achieved(state)
UsersGenerator = Any  # has generate(state, human)

N_PROBES = 40  # states along a random walk, or one for each step
_MOST_PROBES = 200
N_FOUND = 300  # states of a DAG


class FoundStates(Protocol):
    """A finished DAG."""

    level_sizes: list[int]

    @property
    def levels(self) -> object: ...

    def states(self, t: int, place_M: IndexArray | None = None) -> list[State]: ...


class UsersGoals:
    """Asks goals and generators of other packages about some states of a world on a map; of others it knows nothing.

    With a DAG of that world, it asks about states that can be reached, too. What fails when it is asked is not recognised.
    """

    def __init__(self, model: Model, dag: FoundStates | None = None) -> None:
        self._model, self._dag = model, dag

    @cached_property
    def _probes(self) -> list[State]:
        """States along a walk, each with another step, so that all steps from the first to the last occur."""
        last = self._model.max_steps or 0
        walk = random_states(self._model, min(max(N_PROBES, last + 1), _MOST_PROBES))
        steps = [round(i * last / (len(walk) - 1)) for i in range(len(walk))]
        random.Random(1).shuffle(steps)
        return [(step, *state[1:]) for step, state in zip(steps, walk, strict=True)]

    @cached_property
    def _found(self) -> list[State]:
        return [] if self._dag is None else states_of(self._dag, N_FOUND)

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
        states = itertools.chain(self._moved_everywhere(found), self._found, _moved_to_target(found, self._found))
        try:
            return found if all(bool(goal.is_achieved(state)) == found.is_achieved(state) for state in states) else None
        except Exception:  # whatever users' goals run into; asked about states that can be reached, they may work
            return None

    def _moved_everywhere(self, goal: ReachRectangleGoal) -> Iterator[State]:
        """States with the goal's agent put on every cell in turn, whether or not it could stand there."""
        assert self._model.grid is not None
        grid, (x1, y1, x2, y2) = self._model.grid, goal.target_rect
        for x, y in itertools.product(range(grid.width), range(grid.height)):
            is_target = x in (x1, x2) and y in (y1, y2)
            for state in self._probes if is_target else [self._probes[(x + y) % len(self._probes)]]:
                yield _moved(state, goal.human_agent_index, x, y)

    def fixed_yield(self, generator: UsersGenerator, human: int) -> list[tuple[UsersGoal, float]] | None:
        """What somebody else's generator yields for a human everywhere; None if that may differ between states.

        It counts as fixed if it has a list, and yields the same in all states that it is asked about.
        """
        try:
            first, *others = (list(generator.generate(state, human)) for state in (*self._probes, *self._found))
        except Exception:  # as above
            return None
        return first if first and all(other == first for other in others) else None


def _moved(state: State, agent: int, x: int, y: int) -> State:
    step, agents, *rest = state
    return (step, (*agents[:agent], (x, y, *agents[agent][2:]), *agents[agent + 1 :]), *rest)


def _moved_to_target(goal: ReachRectangleGoal, states: Iterable[State]) -> Iterator[State]:
    x, y, *_ = goal.target_rect
    return (_moved(state, goal.human_agent_index, x, y) for state in states)


def states_of(dag: FoundStates, n_states: int) -> list[State]:
    """Some states of a DAG, from all its levels in equal parts; all, where there are no more."""
    has_few = sum(dag.level_sizes) <= n_states
    share, draw = n_states if has_few else -(-n_states // len(dag.level_sizes)), np.random.default_rng(0)
    places = [np.sort(draw.choice(size, min(size, share), replace=False)) for size in dag.level_sizes]
    return [state for t, place_M in enumerate(places) for state in dag.states(t, place_M)]


_LISTS = (("goal_coords", "n_goals"), ("goals", "weights"))


def has_a_list(generator: object) -> bool:
    """Whether a generator is another package's, with the attributes of one that yields the same everywhere."""
    is_ours = isinstance(generator, PossibleGoalGenerator)  # and known by its class
    return not is_ours and any(all(hasattr(generator, name) for name in names) for names in _LISTS)


def said_at_first(generator: UsersGenerator, humans: list[int], model: Model) -> list[object]:
    """What a generator yields for each human in the initial state: enough to see that somebody has changed its goals."""
    state = model.initial_state()
    return [
        (human, type(goal), goal, weight, _target(goal), _plain_attributes(goal))
        for human in humans
        for goal, weight in generator.generate(state, human)
    ]


def _plain_attributes(goal: UsersGoal) -> dict[str, object]:
    """What somebody may have changed about a goal that is still equal to itself."""
    attributes: dict[str, object] = getattr(goal, "__dict__", {})
    return {name: value for name, value in attributes.items() if isinstance(value, bool | int | float | str | None)}


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
