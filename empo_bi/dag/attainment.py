"""Which goals are attained in which state: one bit per (state, human, goal).

Attainment belongs to a state, not to a transition. What compiled goals ask for is part of the body, unless it is the step,
so such goals take one row of bits per body; goals of the user's own may look at the whole state and take one row per state.

Only goal lists that are the same in every state have bits: those of world files, ``TabularGoalGenerator`` and
``DeterministicGoalGenerator``. What any other generator yields may differ from state to state.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from empo_bi.dag.users_goals import FoundStates, UsersGenerator, UsersGoal, UsersGoals, has_a_list, said_at_first
from empo_bi.dag.world_fingerprint import key_of
from empo_bi.runtime.digests import digest_of
from empo_bi.types import ByteArray, KeyArray
from empo_bi.world.as_model import Model
from empo_bi.world.attained import ignores_the_step
from empo_bi.world.goals import (
    ConditionGoal,
    DeterministicGoalGenerator,
    PossibleGoal,
    ReachStatesGoal,
    TabularGoalGenerator,
    WorldGoalGenerator,
    name_of,
)
from empo_bi.world.model import State
from empo_bi.world.packed import PackedWorld

Entry = TypeVar("Entry")

_BLOCK_STATES = 1 << 16  # whose goals are looked at before they become bits


@dataclass(frozen=True)
class FixedGoals:
    """The goals of each human, the same in every state: ``goals[h][g]``, with weights; None is never attained."""

    humans: list[int]
    goals: list[list[UsersGoal]]
    weights: list[list[float]] = field(compare=False)
    compiled: list[list[UsersGoal]]  # reach goals in place of goals of other packages that are the same

    @classmethod
    def of(
        cls, humans: list[int], goals: list[list[UsersGoal]], weights: list[list[float]], model: Model,
        dag: FoundStates | None = None,
    ) -> FixedGoals:  # fmt: skip
        asked = UsersGoals(model, dag)
        compiled = [[asked.reach_goal_like(goal) or goal for goal in known] for known in goals]
        return cls(humans, goals, weights, compiled)

    @property
    def n_goals(self) -> int:
        return len(self.goals[0])

    @property
    def ignore_the_step(self) -> bool:
        """Whether all are compiled goals that do, exactly: a subclass may have its own idea of being achieved."""
        return all(
            type(goal) in (ReachStatesGoal, type(None)) or ignores_the_step(goal)
            for goals in self.compiled
            for goal in goals
        )

    def describe(self) -> list[list[str]]:
        return [[name_of(goal) for goal in goals] for goals in self.goals]

    def key(self) -> str | None:
        """Identifies a set of goals, also in another process; None for goals that cannot be distinguished."""
        # Conditions may be shared between goals, which a digest of objects would notice.
        told = [[goal.content if type(goal) is ConditionGoal else goal for goal in goals] for goals in self.compiled]
        return key_of([self.humans, told])

    def key_with_weights(self) -> str | None:
        """The same with weights, as solutions have it."""
        goals = self.key()
        return None if goals is None else digest_of(f"{goals} {self.weights}")

    def rows(
        self, packed: PackedWorld | None, value: int, key_SW: KeyArray | None, states: Sequence[State] | None
    ) -> ByteArray:
        """Bits (S, X) of some states, given as keys (on level ``value`` of a packed world) or as they are."""
        n_states = len(states or ()) if key_SW is None else len(key_SW)
        goals = [goal for goals in self.compiled for goal in goals]
        bits = np.empty((n_states, -(-len(goals) // 8)), dtype=np.uint8)
        for s in range(0, n_states, _BLOCK_STATES):
            block = slice(s, s + _BLOCK_STATES)
            keys, some = None if key_SW is None else key_SW[block], None if states is None else states[block]
            bits[block] = np.packbits(_attained(packed, value, goals, keys, some), axis=1, bitorder="little")
        return bits


def _attained(
    packed: PackedWorld | None, value: int, goals: list[UsersGoal], key_SW: KeyArray | None, states: Sequence[State] | None
) -> npt.NDArray[np.bool_]:
    """Whether each goal is attained in each state (S, X)."""
    asked = [x for x, goal in enumerate(goals) if goal is not None]
    found = np.zeros((len(states or ()) if key_SW is None else len(key_SW), len(goals)), dtype=np.bool_)
    if key_SW is not None:
        assert packed is not None
        found[:, asked] = packed.attainment(value, key_SW, [goals[x] for x in asked])
    else:
        for s, state in enumerate(states or ()):
            found[s, asked] = [bool(goals[x].is_achieved(state)) for x in asked]
    return found


def are_goals_of(model: Model) -> bool:
    """Whether a world's generator has the goals of its own file."""
    generator = model.goal_generator
    return type(generator) is WorldGoalGenerator and generator.env is model.world  # a subclass may yield what it likes


def fixed_goals_of(model: Model, dag: FoundStates | None = None) -> FixedGoals | None:
    """A world's goals, if it has humans and a generator that yields the same goals everywhere."""
    humans = [int(human) for human in model.human_agent_indices]
    return fixed_goals(model.goal_generator, humans, model, dag) if humans else None


def fixed_goals(
    generator: UsersGenerator, humans: list[int], model: Model, dag: FoundStates | None = None
) -> FixedGoals | None:
    """What a generator yields for each human, if that is the same in every state.

    Goals of other packages are recognised by asking them; with a finished DAG, also about some of its states.
    """
    # The exact classes: a subclass may yield what it likes.
    if type(generator) is WorldGoalGenerator:
        own = _padded([generator.goals_of(human) for human in humans], None)
        return FixedGoals.of(humans, own, _padded([generator.weights_of(human) for human in humans], 0.0), model)
    if type(generator) in (TabularGoalGenerator, DeterministicGoalGenerator):
        goals, weights = [list(generator.goals)] * len(humans), [list(generator.weights)] * len(humans)
        if model.grid is None or all(isinstance(goal, PossibleGoal) for goal in generator.goals):  # which are not asked
            return FixedGoals.of(humans, goals, weights, model)
        return _remembered(generator, humans, model, dag, lambda: FixedGoals.of(humans, goals, weights, model, dag))
    if model.grid is None or not has_a_list(generator):
        return None
    return _remembered(generator, humans, model, dag, lambda: _recognised(generator, humans, model, dag))


def _padded(lists: Sequence[Sequence[Entry]], filling: Entry) -> list[list[Entry]]:
    """Lists of the same length: humans may have different numbers of goals."""
    longest = max(map(len, lists))
    return [[*known, *[filling] * (longest - len(known))] for known in lists]


@dataclass(frozen=True)
class _Recognised:
    """What was found out about a generator of another package, as long as it says the same in the initial state."""

    generator: object
    said: list[object]
    fixed: FixedGoals | None
    levels: weakref.ref[object] | None  # of the DAG whose states it was asked about

    def is_about(self, generator: object, said: list[object], dag: FoundStates | None) -> bool:
        is_same = self.generator is generator and self.said == said
        is_held = dag is None or self.fixed is None or (self.levels is not None and self.levels() is dag.levels)
        return is_same and is_held


def _remembered(
    generator: UsersGenerator, humans: list[int], model: Model, dag: FoundStates | None,
    recognise: Callable[[], FixedGoals | None],
) -> FixedGoals | None:  # fmt: skip
    """What is recognised in goals of other packages: thousands of questions, so the world remembers the last answer."""
    assert model.grid is not None
    known, said = getattr(model.grid, "_recognised_goals", None), said_at_first(generator, humans, model)
    if known is None or not known.is_about(generator, said, dag):
        known = _Recognised(generator, said, recognise(), None if dag is None else weakref.ref(dag.levels))
        model.grid._recognised_goals = known
    found: FixedGoals | None = known.fixed
    return found


def _recognised(generator: UsersGenerator, humans: list[int], model: Model, dag: FoundStates | None) -> FixedGoals | None:
    """The goals of a generator that yields the same everywhere, if all humans have equally many."""
    asked = UsersGoals(model, dag)
    found = [asked.fixed_yield(generator, human) for human in humans]
    if any(known is None for known in found) or len({len(known or ()) for known in found}) != 1:
        return None
    goals = [[goal for goal, _ in known or ()] for known in found]
    return FixedGoals.of(humans, goals, [[float(weight) for _, weight in known or ()] for known in found], model, dag)
