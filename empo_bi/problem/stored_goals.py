"""The goals of a stored solution, as far as they were written down: names, weights, and where they are attained.

They take the place of users' own goals and generators, which a store cannot hold, and ask nobody anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.problem.goal_columns import Columns, GoalColumns, bits_of
from empo_bi.problem.protocols import Goal
from empo_bi.runtime.printable import one_line
from empo_bi.store.solved_levels import SolvedLevels
from empo_bi.types import ByteArray, FloatArray, IndexArray, Json
from empo_bi.world.model import State


@dataclass(frozen=True)
class StoredGoal:
    """A goal of which a solution knows the name, and the states that attain it."""

    human: int
    number: int  # among those of the human
    name: str  # which several goals may have
    label: str = field(compare=False)  # a short name
    columns: StoredGoals = field(compare=False, repr=False)

    def __repr__(self) -> str:
        return one_line(self.name)

    def is_achieved(self, state: State) -> bool:
        """Whether a state attains it, which is known of those that were solved."""
        return self.columns.is_attained(state, self.columns.humans.index(self.human) * self.columns.n_goals + self.number)


@dataclass(frozen=True)
class StoredGenerator:
    """Yields stored goals of states that were solved."""

    columns: StoredGoals

    def generate(self, state: State, human_agent_index: int) -> Iterator[tuple[Goal, float]]:
        return self.columns.goals_of(state, human_agent_index)


class StoredGoals(GoalColumns):
    """Columns of goals that are read from a solution.

    ``known[h][g]`` is a caller's own goal in the place of a stored one, None where that is unknown.
    """

    def __init__(self, dag: Dag, results: SolvedLevels, manifest: Json, known: Sequence[Sequence[Goal | None]] = ()) -> None:
        humans, names = manifest["content"]["humans"], manifest["goals"]
        labels: list[list[str | None]] = manifest["goal_labels"]  # None where another human has more goals
        goals: list[list[Goal | None]] = [
            [
                None if label is None else StoredGoal(human, g, name, one_line(label), self)
                for g, (name, label) in enumerate(zip(*lists, strict=True))
            ]
            for human, *lists in zip(humans, names, labels, strict=True)
        ]
        for h, own in enumerate(known):
            goals[h] = [goal if mine is None else mine for goal, mine in zip(goals[h], own, strict=True)]
        Columns.__init__(self, humans, goals, len(names[0]))
        self.dag, self.results, self.generator = dag, results, StoredGenerator(self)
        self._names: list[list[str]] = [list(own) for own in names]
        self._fixed_weights: list[list[float]] | None = manifest.get("goal_weights")
        self._column = [{goal: g for g, goal in reversed(list(enumerate(own)))} for own in self.goals]

    @property
    def names(self) -> list[list[str]]:
        return self._names

    @property
    def is_fixed(self) -> bool:
        return self._fixed_weights is not None

    def key(self) -> str | None:
        """Nobody solves for them again."""
        return None

    def weights(self, t: int) -> FloatArray:
        if self._fixed_weights is not None:
            return np.concatenate(self._fixed_weights)[np.newaxis].astype(np.float64)
        return self.results.get(t, "weight").reshape(-1, self.n_columns)

    def has(self, t: int) -> ByteArray:
        if self._fixed_weights is not None:
            return self._everywhere
        return bits_of(self.results.get(t, "listed"), self.n_columns).astype(np.uint8)

    def attained(self, t: int, place_M: IndexArray | None = None) -> ByteArray:
        found: ByteArray = self.results.get(t, "attained")
        return found if place_M is None else found[place_M]

    def is_attained(self, state: State, column: int) -> bool:
        """Whether a state attains the goal of a column."""
        t, place = self.dag.place_of(state)
        return bool(bits_of(self.attained(t)[place : place + 1], self.n_columns)[0, column])

    def goals_of(self, state: State, human: int) -> Iterator[tuple[Goal, float]]:
        """The goals that a human has in a state, each with its weight."""
        t, place = self.dag.place_of(state)
        first = self.humans.index(human) * self.n_goals
        weight_X, has_X = (table[place if len(table) > 1 else 0] for table in (self.weights(t), self.has(t)))
        for g, goal in enumerate(self.goals[self.humans.index(human)]):
            if has_X[first + g] and goal is not None:
                yield goal, float(weight_X[first + g])
