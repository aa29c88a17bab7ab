"""Goals that humans may have, generators that list them with weights, and samplers that draw them.

A goal is any object with ``is_achieved(state)`` that can be compared and hashed; a generator lists the goals that a human
may have in a state, with weights; a sampler draws one. Goals that reach cells or ask for a condition are compiled: whole
blocks of packed states are checked at once (:mod:`empo_bi.world.attained`).
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from empo_bi.errors import GoalError
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.wording import short_repr
from empo_bi.types import BoolArray
from empo_bi.world.conditions import Condition
from empo_bi.world.goal_entries import GoalSpec
from empo_bi.world.goal_names import checked_name
from empo_bi.world.model import State
from empo_bi.world.rectangles import Rectangle, in_words


class PossibleGoal(ABC):
    """A goal that a human may have. Subclasses define ``is_achieved``, ``__eq__`` and ``__hash__``.

    ``env`` is the world that the goal belongs to, if any, and ``index`` its place in a list; neither affects the results. A
    subclass may end its ``__init__`` with ``self._freeze()``, after which it cannot be changed. A pickled goal has no world:
    ``env`` is None in the copy.
    """

    def __init__(self, env: Any = None, index: int | None = None) -> None:
        self.env = env
        self.index = index

    @abstractmethod
    def is_achieved(self, state: State) -> int:
        """1 if the goal is achieved in the state, else 0."""

    @abstractmethod
    def __hash__(self) -> int: ...

    @abstractmethod
    def __eq__(self, other: object) -> bool: ...

    def __repr__(self) -> str:
        names = {name: value for name, value in self.__dict__.items() if name not in ("env", "index", "_frozen")}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in names.items())})"

    def _freeze(self) -> None:
        object.__setattr__(self, "_frozen", True)

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_frozen", False):
            raise AttributeError(f"{type(self).__name__} is frozen; make a new goal instead of changing {name!r}")
        object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "env": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)


def _checked_agent(agent: int, world: object) -> int:
    """The number of an agent; that of an agent whom the world does not have is refused, if there is a world on a map."""
    if operator.index(agent) < 0:
        raise ValueError(f"human_agent_index={agent}; agents are numbered from 0")
    spec = getattr(world, "world_spec", None)
    if spec is not None and agent >= len(spec.agents):
        raise ValueError(f"human_agent_index={agent}; this world has agents 0 to {len(spec.agents) - 1}")
    return operator.index(agent)


def place_problem(world: object, places: Sequence[Rectangle]) -> str | None:
    """That places are all off the grid of a world on a map; None if some are on it, or if it is another kind of world."""
    spec = getattr(world, "world_spec", None)
    if spec is None or not places:
        return None
    if any(x1 < spec.width and y1 < spec.height and x2 >= 0 and y2 >= 0 for x1, y1, x2, y2 in places):
        return None
    what = " or ".join(in_words(place) for place in places[:3])
    return f"{what} is off the grid, whose cells are 0,0 to {spec.width - 1},{spec.height - 1}"


class ReachGoal(PossibleGoal):
    """An agent is inside a rectangle of cells, corners included. Equality ignores ``index``.

    With a world on a map, an agent whom it does not have and cells off its grid are errors; a rectangle may stick out. (In a
    world file, goals off the grid are warnings.)
    """

    def __init__(self, world_model: Any, human_agent_index: int, target_rect: Sequence[int], index: int | None) -> None:
        super().__init__(world_model, index)
        x1, y1, x2, y2 = (int(value) for value in target_rect)
        self.human_agent_index = _checked_agent(human_agent_index, world_model)
        self.target_rect = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))
        problem = place_problem(world_model, [self.target_rect])
        if problem is not None:
            raise ValueError(problem)

    def is_achieved(self, state: State) -> int:
        x, y = state[1][self.human_agent_index][:2]
        x1, y1, x2, y2 = self.target_rect
        return int(x1 <= x <= x2 and y1 <= y <= y2)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReachGoal) or type(other) is not type(self):
            return NotImplemented
        return (self.human_agent_index, self.target_rect) == (other.human_agent_index, other.target_rect)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.human_agent_index, self.target_rect))


@suggests_names()
class ReachCellGoal(ReachGoal):
    """Human ``human_agent_index`` is on the cell ``target_pos``."""

    def __init__(
        self, world_model: Any, human_agent_index: int, target_pos: Sequence[int], index: int | None = None
    ) -> None:
        x, y = target_pos
        super().__init__(world_model, human_agent_index, (x, y, x, y), index)
        self.target_pos = (int(x), int(y))
        self._freeze()

    def __repr__(self) -> str:
        return f"ReachCellGoal(agent {self.human_agent_index}, {self.target_pos[0]},{self.target_pos[1]})"


@suggests_names()
class ReachRectangleGoal(ReachGoal):
    """Human ``human_agent_index`` is inside ``target_rect``, (x1, y1, x2, y2) with corners included and in any order."""

    def __init__(
        self, world_model: Any, human_agent_index: int, target_rect: Sequence[int], index: int | None = None
    ) -> None:
        super().__init__(world_model, human_agent_index, target_rect, index)
        self._freeze()

    def __repr__(self) -> str:
        return f"ReachRectangleGoal(agent {self.human_agent_index}, {','.join(map(str, self.target_rect))})"


@suggests_names()
class ConditionGoal(PossibleGoal):
    """Of an agent a condition holds, such as ``InCells([(7, 3), (7, 4)])`` or ``Carries("key") & Facing("north")``.

    It may have a name, by which tables, plots, films and the explorer call it. Equality looks at agent and condition, not at
    name and ``index``. With a world, conditions that it cannot have are refused: cells off the grid, doors that are not
    there.

    Examples
    --------
    >>> from empo_bi import load_world
    >>> from empo_bi.goals import ConditionGoal, Facing, InCells
    >>> world = load_world("asymmetric_freeing")
    >>> window = ConditionGoal(world, 0, InCells([(4, 2), (4, 3)]) & Facing("north"), "at the window")
    >>> window
    ConditionGoal(agent 0, at the window: (4,2 or 4,3) and facing north)
    >>> window.is_achieved(world.initial_state())
    0
    """

    def __init__(
        self, world_model: object, human_agent_index: int, condition: Condition, name: str | None = None,
        index: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(world_model, index)
        if not isinstance(condition, Condition):
            raise TypeError(f"condition={short_repr(condition)}; give one, such as InCells([(3, 2)])")
        self.human_agent_index = _checked_agent(human_agent_index, world_model)
        spec = getattr(world_model, "world_spec", None)
        problem = None if spec is None else condition.problem(spec)
        if problem is not None:
            raise ValueError(f"{condition!r}: {problem}")
        self.condition = condition
        self.name = None if name is None else checked_name(name)
        self._freeze()

    @property
    def label(self) -> str:
        """Its name; without one, its condition in words."""
        return self.condition.words if self.name is None else self.name

    @property
    def content(self) -> str:
        """All that it is, as a text that is the same in every process."""
        return f"{self.human_agent_index} {self.index} {self.name!r} {self.condition!r}"

    def is_achieved(self, state: State) -> int:
        return int(self.condition.holds_in(state, self.human_agent_index))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return (self.human_agent_index, self.condition) == (other.human_agent_index, other.condition)

    def __hash__(self) -> int:
        return hash((self.human_agent_index, self.condition))

    def __repr__(self) -> str:
        named = "" if self.name is None else f"{self.name}: "
        return f"ConditionGoal(agent {self.human_agent_index}, {named}{self.condition.words})"


def name_of(goal: object) -> str:
    """What tables and files call a goal: the name or the words of a condition, the ``repr`` of any other goal."""
    return goal.label if isinstance(goal, ConditionGoal) else repr(goal)


def cells_of(goal: object) -> tuple[Rectangle, ...] | None:
    """Where a goal's agent has to be, as rectangles; None if that is anywhere, or unknown."""
    if isinstance(goal, ConditionGoal):
        return goal.condition.cells
    return (goal.target_rect,) if isinstance(goal, ReachGoal) else None


@suggests_names()
class ReachStatesGoal(PossibleGoal):
    """The world is in one of some numbered states; states are ``(step, number)``, as in an array world."""

    def __init__(self, name: str, numbers: Sequence[int], index: int | None = None) -> None:
        super().__init__(None, index)
        self.name = str(name)
        self.numbers = tuple(sorted({operator.index(number) for number in numbers}))
        if self.numbers and self.numbers[0] < 0:
            raise ValueError(f"goal {name!r} has state {self.numbers[0]}; states are numbered from 0")
        self._freeze()

    def is_achieved(self, state: Any) -> int:
        return int(state[1] in self.numbers)

    def mask(self, n_states: int) -> BoolArray:
        """Which of ``n_states`` states attain the goal."""
        mask = np.zeros(n_states, dtype=np.bool_)
        mask[[number for number in self.numbers if number < n_states]] = True
        return mask

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (self.name, self.numbers) == (other.name, other.numbers)

    def __hash__(self) -> int:
        return hash((self.name, self.numbers))

    def __repr__(self) -> str:
        some = ",".join(map(str, self.numbers[:3])) + (",..." if len(self.numbers) > 3 else "")
        return f"ReachStatesGoal({self.name}: {some})"


# --- generators and samplers ------------------------------------------------------------------------------------------


class PossibleGoalGenerator(ABC):
    """Lists the goals that a human may have in a state, each with a weight, which is used without normalising."""

    def __init__(self, env: Any = None, indexed: bool = False) -> None:
        self.env = self.world_model = env
        self.indexed = indexed

    @abstractmethod
    def generate(self, state: Hashable, human_agent_index: int) -> Iterator[tuple[PossibleGoal, float]]:
        """Yield ``(goal, weight)``."""

    def set_world_model(self, world_model: Any) -> None:
        self.env = self.world_model = world_model

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "env": None, "world_model": None}


class PossibleGoalSampler(ABC):
    """Draws a goal for a human in a state. It matches a generator whose weights are probability times weight."""

    def __init__(self, env: Any = None, indexed: bool = False) -> None:
        self.env = self.world_model = env
        self.indexed = indexed

    @abstractmethod
    def sample(self, state: Hashable, human_agent_index: int) -> tuple[PossibleGoal, float]:
        """Draw ``(goal, weight)``."""

    def set_world_model(self, world_model: Any) -> None:
        self.env = self.world_model = world_model

    def get_smallest_pw(self) -> float | None:
        """The smallest product of probability and weight, None if unknown."""
        return None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "env": None, "world_model": None}


@suggests_names()
class TabularGoalGenerator(PossibleGoalGenerator):
    """A fixed list of goals, the same in every state; weights default to 1/n each."""

    def __init__(self, goals: Sequence[PossibleGoal], weights: Sequence[float] | None = None, indexed: bool = False) -> None:
        self.goals, self.weights = _checked(goals, weights, 1.0 / max(len(goals), 1), "weights")
        super().__init__(getattr(self.goals[0], "env", None), indexed)

    def generate(self, state: Hashable, human_agent_index: int) -> Iterator[tuple[PossibleGoal, float]]:
        yield from zip(self.goals, self.weights, strict=True)

    def get_sampler(self) -> TabularGoalSampler:
        """The sampler that draws goals in proportion to their weights, each with weight 1."""
        return TabularGoalSampler(self.goals, probabilities=self.weights, indexed=self.indexed)

    def validate_coverage(self, raise_on_error: bool = True) -> bool:
        """Whether every cell where a human can stand belongs to some goal; otherwise False, or a ValueError."""
        return _covers_world(self.goals, raise_on_error)


@suggests_names()
class TabularGoalSampler(PossibleGoalSampler):
    """Draws from a fixed list of goals. Probabilities are normalised and default to 1/n, weights default to 1."""

    def __init__(
        self,
        goals: Sequence[PossibleGoal],
        probabilities: Sequence[float] | None = None,
        weights: Sequence[float] | None = None,
        indexed: bool = False,
        *,
        seed: int | None = None,
    ) -> None:
        self.goals, given = _checked(goals, probabilities, 1.0 / max(len(goals), 1), "probabilities")
        if not 0 < sum(given) < float("inf"):
            raise ValueError(f"probabilities={given}; give probabilities with a positive, finite sum")
        self.probabilities = [p / sum(given) for p in given]
        _, self.weights = _checked(goals, weights, 1.0, "weights")
        self.rng = np.random.default_rng(seed)
        super().__init__(getattr(self.goals[0], "env", None), indexed)

    def sample(self, state: Hashable, human_agent_index: int) -> tuple[PossibleGoal, float]:
        i = int(self.rng.choice(len(self.goals), p=self.probabilities))
        return self.goals[i], self.weights[i]

    def get_generator(self) -> TabularGoalGenerator:
        """The generator with weight = probability times weight."""
        weights = [p * w for p, w in zip(self.probabilities, self.weights, strict=True)]
        return TabularGoalGenerator(self.goals, weights, self.indexed)

    def get_smallest_pw(self) -> float | None:
        return min(p * w for p, w in zip(self.probabilities, self.weights, strict=True))

    def validate_coverage(self, raise_on_error: bool = True) -> bool:
        """Whether every cell where a human can stand belongs to some goal; otherwise False, or a ValueError."""
        return _covers_world(self.goals, raise_on_error)


@suggests_names()
class DeterministicGoalGenerator(TabularGoalGenerator):
    """One goal, always."""

    def __init__(self, goal: PossibleGoal, weight: float = 1.0, indexed: bool = False) -> None:
        super().__init__([goal], [weight], indexed)


@suggests_names()
class DeterministicGoalSampler(TabularGoalSampler):
    """One goal, always."""

    def __init__(self, goal: PossibleGoal, weight: float = 1.0, indexed: bool = False) -> None:
        super().__init__([goal], weights=[weight], indexed=indexed)


class WorldGoalGenerator(PossibleGoalGenerator):
    """The goals of a world file: the same list for each human (section 8.2), or a list for each.

    ``goal_coords`` has the coordinates, two numbers for a cell, four for a rectangle, None for other goals; the ``index`` of
    a goal is its place in the list. Where humans have lists of their own, ``goal_coords``, ``weights`` and ``n_goals`` are
    about all lists, one after the other.
    """

    def __init__(self, world: Any) -> None:
        super().__init__(world, indexed=True)
        specs = world.world_spec.goals
        self.goal_coords = [goal.coordinates for goal in specs]
        self.n_goals = len(specs)
        self.weights = [goal.weight for goal in specs]
        own = [[goal for goal in specs if goal.agent in (None, agent)] for agent in range(len(world.agents))]
        self._goals = [[_goal_of(world, agent, goal, i) for i, goal in enumerate(known)] for agent, known in enumerate(own)]
        self._weights = [[goal.weight for goal in known] for known in own]

    def goals_of(self, human_agent_index: int) -> list[PossibleGoal]:
        return list(self._goals[self._known(human_agent_index)])

    def weights_of(self, human_agent_index: int) -> list[float]:
        return list(self._weights[self._known(human_agent_index)])

    def generate(self, state: Hashable, human_agent_index: int) -> Iterator[tuple[PossibleGoal, float]]:
        yield from zip(self.goals_of(human_agent_index), self.weights_of(human_agent_index), strict=True)

    def _known(self, agent: int) -> int:
        if not 0 <= agent < len(self._goals):
            raise ValueError(f"agent {agent}; this world has agents 0 to {len(self._goals) - 1}")
        if not self._goals[agent]:
            others = ", ".join(str(other) for other, known in enumerate(self._goals) if known)
            raise GoalError(
                f"agent {agent} has no goals in this world's file, only agents {others}; give it a list in possible_goals"
            )
        return agent


def _goal_of(world: object, agent: int, goal: GoalSpec, i: int) -> PossibleGoal:
    if goal.is_cell or goal.is_rectangle:
        is_cell, area = goal.is_cell, goal.rectangle
        reach = ReachCellGoal(None, agent, area[:2], i) if is_cell else ReachRectangleGoal(None, agent, area, i)
        object.__setattr__(reach, "env", world)  # later, since cells off the grid are no more than warnings in files
        return reach
    return ConditionGoal(world, agent, goal.condition, goal.name, i)


class WorldGoalSampler(PossibleGoalSampler):
    """Draws from the goals of a world file, in proportion to their weights."""

    def __init__(self, generator: WorldGoalGenerator, *, seed: int | None = None) -> None:
        super().__init__(generator.env, indexed=True)
        self.generator = generator
        self.goal_coords, self.n_goals = generator.goal_coords, generator.n_goals
        self.rng = np.random.default_rng(seed)

    def sample(self, state: Hashable, human_agent_index: int) -> tuple[PossibleGoal, float]:
        goals, weights = self.generator.goals_of(human_agent_index), self.generator.weights_of(human_agent_index)
        return goals[int(self.rng.choice(len(goals), p=weights))], 1.0

    def get_smallest_pw(self) -> float | None:
        return min(self.generator.weights)


@suggests_names()
def approx_integral_over_possible_goals(
    state: State,
    human_agent_index: int,
    sampler: PossibleGoalSampler,
    func: Callable[[PossibleGoal], float],
    sample_size: int,
) -> float:
    """Average of ``func(goal) * weight`` over ``sample_size`` draws."""
    draws = (sampler.sample(state, human_agent_index) for _ in range(sample_size))
    return sum(func(goal) * weight for goal, weight in draws) / sample_size


def _checked(
    goals: Sequence[PossibleGoal], numbers: Sequence[float] | None, default: float, name: str
) -> tuple[list[PossibleGoal], list[float]]:
    goals = list(goals)
    if not goals:
        raise ValueError("the list of goals is empty; give at least one goal")
    values = [default] * len(goals) if numbers is None else [float(number) for number in numbers]
    if len(values) != len(goals):
        raise ValueError(f"{len(values)} {name} for {len(goals)} goals; give one each")
    if not all(0 <= value < float("inf") for value in values):
        raise ValueError(f"{name}={values}; give finite numbers, 0 or more")
    return goals, values


def _covers_world(goals: Sequence[PossibleGoal], raise_on_error: bool) -> bool:
    world = getattr(goals[0], "env", None)
    if world is None or not hasattr(world, "cells_without_goal"):
        raise ValueError("these goals belong to no GridWorld, so coverage is unknown; make them with a GridWorld")
    bare = world.cells_without_goal([area for goal in goals for area in cells_of(goal) or ()])
    if bare and raise_on_error:
        raise ValueError(f"no goal covers the cells {bare}; add goals for them")
    return not bare
