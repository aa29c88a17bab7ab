"""The goals of all humans as columns x = (human, goal) of the tables that the sweep works on.

Where a generator yields the same goals everywhere, one row of weights serves all states. Any other generator is asked about
every state, once, before the sweep; each goal that it ever yields becomes a column, and a state says which of them it has.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from empo_bi.dag.attainment import FixedGoals, are_goals_of, fixed_goals
from empo_bi.dag.dag import ATTAINED
from empo_bi.dag.level_blocks import LevelBlocks
from empo_bi.dag.world_fingerprint import key_of
from empo_bi.errors import GoalError
from empo_bi.memory.watch import Watch
from empo_bi.problem.goal_answers import GoalAnswers, answers_before
from empo_bi.problem.protocols import Goal, GoalGenerator
from empo_bi.runtime.progress import LevelBar
from empo_bi.runtime.wording import short_repr
from empo_bi.types import Array, Arrays, ByteArray, FloatArray, IndexArray
from empo_bi.world.goals import name_of
from empo_bi.world.model import State

REMEMBERED_LEVELS = 3
_ASKED_AT_A_TIME = 1024  # states, between two looks at the memory
_NOWHERE = np.zeros(0, dtype=np.int64)


class Columns:
    """Goals as columns: as much of them as the phases read, which is also what goes to other machines.

    Attributes
    ----------
    humans : list of agents
    goals : goals[h][g], padded with None where another human has more
    """

    def __init__(self, humans: Sequence[int], goals: Sequence[Sequence[Goal]], n_goals: int) -> None:
        self.humans, self.goals, self.n_goals = list(humans), [list(known) for known in goals], n_goals

    @property
    def n_columns(self) -> int:
        return len(self.humans) * self.n_goals


class GoalColumns(Columns):
    """Which goals there are, who has them where with what weight, and where they are attained."""

    def __init__(
        self, blocks: LevelBlocks, humans: Sequence[int], generator: GoalGenerator, *, progress: bool = False,
        watch: Watch | None = None,
    ) -> None:  # fmt: skip
        """``watch`` looks after the memory while a generator is asked about every state."""
        self.dag, self.humans, self.generator = blocks.dag, list(humans), generator  # asked before there are columns
        self._blocks = blocks
        dag = self.dag
        fixed = fixed_goals(generator, self.humans, dag.model, dag)
        is_compiled = fixed is not None and dag.model.packed is not None and fixed.ignore_the_step
        self._said = said = GoalAnswers() if is_compiled else answers_before(dag, self.humans, generator)
        if fixed is None:
            if said.fixed is None:
                said.fixed = self._ask_everywhere(progress, Watch("goals", "Use fewer goals") if watch is None else watch)
            fixed = said.fixed
        self._weights, self._has = said.weights, said.has  # by level, where they differ from state to state
        super().__init__(humans, fixed.goals, fixed.n_goals)
        self._fixed = fixed
        self._is_stored = (
            dag.goals is not None and dag.goals.is_stored and dag.goals.fixed is not None and dag.goals.fixed == fixed
        )
        self._by_body: ByteArray | None = None
        self._by_level = said.by_level
        for goal in itertools.chain(*self.goals):
            check_hashable(goal)
        self._column: list[dict[Goal, int]] = [
            {goal: g for g, goal in reversed(list(enumerate(goals)))} for goals in self.goals
        ]

    @property
    def names(self) -> list[list[str]]:
        """Of each human's goals, in the order of the columns; the same in every process."""
        return [[lasting_name(goal) for goal in known] for known in self.goals]

    @property
    def is_fixed(self) -> bool:
        """Whether all states have the same goals, with the same weights."""
        return not self._weights

    @property
    def are_worlds_own(self) -> bool:
        """Whether the world's file says which goals there are, so that they can be read again without asking anybody."""
        model = self.dag.model
        return model.mapping is not None and self.generator is model.goal_generator and are_goals_of(model)

    @property
    def answers(self) -> list[str]:
        """Names of the arrays that a store needs in place of the goals, see :data:`~empo_bi.store.solved_levels.ANSWERS`."""
        if self.are_worlds_own:
            return []
        return ["attained"] if self.is_fixed else ["attained", "listed", "weight"]

    def answers_at(self, t: int, names: Collection[str]) -> Arrays:
        """Those of these arrays that a store has, for a level."""
        shape = (self.dag.level_sizes[t], self.n_columns)
        makers: dict[str, Callable[[], Array]] = {
            "attained": lambda: self.attained(t),
            "listed": lambda: np.packbits(np.broadcast_to(self.has(t), shape), axis=1, bitorder="little"),
            "weight": lambda: np.broadcast_to(self.weights(t), shape).reshape(-1, len(self.humans), self.n_goals),
        }
        return {name: make() for name, make in makers.items() if name in names}

    @property
    def answer_bytes(self) -> int:
        """What these arrays take for each state."""
        bits = -(-self.n_columns // 8)
        return bits * len(set(self.answers) & {"attained", "listed"}) + (
            8 * self.n_columns if "weight" in self.answers else 0
        )

    @property
    def fixed_weights(self) -> list[list[float]]:
        """Of the goals of each human, where :attr:`is_fixed`."""
        return [[float(weight) for weight in weights] for weights in self._fixed.weights]

    def column(self, human: int, goal: Goal) -> int:
        """The column of a goal of a human; KeyError if there is none."""
        h = self.humans.index(human) if human in self.humans else -1
        if h < 0:
            raise KeyError(f"agent {human!r} is not among the humans {self.humans}")
        return h * self.n_goals + self._column[h][goal]

    def key(self) -> str | None:
        """Identifies these goals, also in another process; None if that is unknown."""
        if not self.is_fixed:
            return key_of(self.generator)
        return self._fixed.key_with_weights()

    def weights(self, t: int) -> FloatArray:
        """(1, X) or (S, X); 0 for goals that a state does not have."""
        return self._weights[t] if self._weights else np.concatenate(self._fixed.weights)[np.newaxis]

    def has(self, t: int) -> ByteArray:
        """Which goals a state has, (1, X) or (S, X)."""
        return self._has[t] if self._has else self._everywhere

    @cached_property
    def _everywhere(self) -> ByteArray:
        """(1, X), 0 for columns that only fill up, where another human has more goals."""
        return np.array([[goal is not None for known in self.goals for goal in known]], dtype=np.uint8)

    def has_column(self, t: int, column: int) -> npt.NDArray[np.bool_]:
        """Whether states of a level have the goal of a column, (1,) or (S,)."""
        return self.has(t)[:, column].astype(np.bool_)

    # --- attainment ---------------------------------------------------------------------------------------------------

    @property
    def is_known_by_body(self) -> bool:
        """Whether goals are compiled and do not look at the step, so that one look at each body tells everything."""
        return self.dag.model.packed is not None and self._fixed.ignore_the_step

    def attained(self, t: int, place_M: IndexArray | None = None) -> ByteArray:
        """One bit per column for each state of level ``t``, or for those at some places: (S, ceil(X / 8)), lowest first."""
        if self.is_known_by_body:
            body_S = self._blocks.bodies(t)
            return self._of_bodies()[body_S if place_M is None else body_S[place_M]]
        bits = self._by_level.pop(t, None)
        self._by_level[t] = bits = self._of_level(t) if bits is None else bits
        if len(self._by_level) > REMEMBERED_LEVELS and (self._is_stored or self._said.are_large):
            del self._by_level[next(iter(self._by_level))]
        return bits if place_M is None else bits[place_M]

    def _of_level(self, t: int) -> ByteArray:
        found = self.dag.attained(t) if self._is_stored else None
        return self.dag.attainment_of(self._fixed, t) if found is None else found

    def _of_bodies(self) -> ByteArray:
        """Bits of all bodies, computed once for all levels."""
        if self._by_body is None:
            rows = []
            for t in range(self.dag.horizon + 1):
                piece = self.dag.levels.part(t, (*ATTAINED, "key"))
                if len(piece.added) == 0:
                    continue
                stored = piece.attained if self._is_stored and piece.attained_by_body else None
                rows.append(
                    self._fixed.rows(self.dag.model.packed, piece.value, piece.key_BW, None) if stored is None else stored
                )
            self._by_body = np.concatenate(rows)
        return self._by_body

    # --- generators that are asked about every state ------------------------------------------------------------------

    def _ask_everywhere(self, progress: bool, watch: Watch) -> FixedGoals:
        """Ask about all states that go on, from the first level to the last, so that columns do not depend on chance."""
        columns: list[dict[Goal, int]] = [{} for _ in self.humans]
        answers: list[_Answers] = []
        watch.owners = lambda: {"goals of all states": sum(answer.nbytes for answer in answers)}
        with LevelBar("goals", self.dag.horizon + 1, progress, limit=watch.budget.limit) as bar:
            watch.after_block = bar.block
            for t in range(self.dag.horizon + 1):
                answers.append(self._ask_level(t, columns, watch))
                watch.level(t, self.dag.level_sizes[t])
                bar.level(t, self.dag.level_sizes[t])
        n_goals = max(1, *map(len, columns))
        self._said.weights, self._said.has = [], []  # of an earlier call that was stopped here
        for t, n_states in enumerate(self.dag.level_sizes):
            watch.look(0, 9 * n_states * len(self.humans) * n_goals)
            weight_SX, has_SX = answers[t].tables(n_states, len(self.humans), n_goals)
            answers[t] = _Answers()
            self._said.weights.append(weight_SX)
            self._said.has.append(has_SX)
        if self._said.are_large:
            self.dag.goal_answers.clear()
        goals = [[*known, *([None] * (n_goals - len(known)))] for known in columns]
        return FixedGoals.of(self.humans, goals, [[0.0] * n_goals for _ in self.humans], self.dag.model, self.dag)

    def _ask_level(self, t: int, columns: list[dict[Goal, int]], watch: Watch) -> _Answers:
        going_on = np.sort(np.concatenate([_NOWHERE, *(block.place_M for block in self._blocks.of_level(t))]))
        parts = []
        for m in range(0, len(going_on), _ASKED_AT_A_TIME):
            place_M = going_on[m : m + _ASKED_AT_A_TIME]
            said = [
                (s, h, g, weight)
                for s, state in zip(place_M.tolist(), self.dag.states(t, place_M), strict=True)
                for h in range(len(self.humans))
                for g, weight in self._ask(state, h, t, columns[h]).items()
            ]
            parts.append(_Answers.of(said))
            watch.look(len(place_M))
        return _Answers.joined(parts)

    def _ask(self, state: State, h: int, t: int, columns: dict[Goal, int]) -> dict[int, float]:
        """Weights by column; a goal that is yielded twice counts twice."""
        weights: dict[int, float] = {}
        for pair in self.generator.generate(state, self.humans[h]):
            try:
                goal, given = pair
                weight = float(given)
            except (TypeError, ValueError):
                raise GoalError(
                    f"the goal generator yields {short_repr(pair)} for human {self.humans[h]} in state {short_repr(state)}; "
                    "expected a goal and its weight, such as (goal, 1.0)"
                ) from None
            if not (weight >= 0 and math.isfinite(weight)):
                raise GoalError(
                    f"human {self.humans[h]} has weight {weight} for goal {short_repr(goal)} in state {short_repr(state)}; "
                    "weights are finite and not negative"
                )
            check_hashable(goal)
            g = columns.setdefault(goal, len(columns))
            weights[g] = weights.get(g, 0.0) + weight
        if not weights:
            raise GoalError(
                f"human {self.humans[h]} has no goal in state {short_repr(state, 300)} on level {self.dag.level_values[t]}; "
                "let the goal generator yield at least one there"
            )
        return weights


@dataclass(frozen=True)
class _Answers:
    """What a generator said of the states of a level: who has which goal, with what weight, (N,) each."""

    place_N: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    human_N: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    goal_N: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    weight_N: FloatArray = field(default_factory=lambda: np.zeros(0))

    @classmethod
    def of(cls, said: list[tuple[int, int, int, float]]) -> _Answers:
        place, human, goal, weight = zip(*said, strict=True)
        return cls(np.array(place, np.int32), np.array(human, np.int32), np.array(goal, np.int32), np.array(weight))

    @classmethod
    def joined(cls, parts: list[_Answers]) -> _Answers:
        return cls(*(np.concatenate([getattr(part, f.name) for part in [*parts, cls()]]) for f in fields(cls)))

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, f.name).nbytes for f in fields(self))

    def tables(self, n_states: int, n_humans: int, n_goals: int) -> tuple[FloatArray, ByteArray]:
        """Weights, and which goals there are, by state and column (S, X)."""
        weight_SX = np.zeros((n_states, n_humans * n_goals))
        has_SX = np.zeros(weight_SX.shape, dtype=np.uint8)
        column_N = self.human_N * n_goals + self.goal_N
        weight_SX[self.place_N, column_N] = self.weight_N
        has_SX[self.place_N, column_N] = 1
        return weight_SX, has_SX


def lasting_name(goal: object) -> str:
    """The name of a goal without addresses, so that it is the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", name_of(goal))


def check_hashable(goal: object) -> None:
    """Goals are looked up in tables, so that equal ones are one column."""
    try:
        hash(goal)
    except TypeError as error:
        kind = type(goal)
        raise GoalError(
            f"goal {short_repr(goal)} is a {kind.__module__}.{kind.__qualname__}, which cannot be hashed ({error}); add "
            "__eq__ and __hash__ that look at what the goal is about, or make it a dataclass with frozen=True"
        ) from error


def bits_of(packed_SB: ByteArray, n_columns: int) -> npt.NDArray[np.bool_]:
    return np.unpackbits(packed_SB, axis=1, count=n_columns, bitorder="little").astype(np.bool_)
