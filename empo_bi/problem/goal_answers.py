"""What users' goals said of the states of a DAG, which the DAG keeps for the next call with the same goals."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from empo_bi.dag.attainment import FixedGoals
from empo_bi.dag.dag import Dag
from empo_bi.dag.object_fingerprint import ContentHasher
from empo_bi.dag.world_snapshot import WorldSnapshot
from empo_bi.problem.protocols import GoalGenerator
from empo_bi.types import ByteArray, FloatArray
from empo_bi.world.model import World

KEPT_BYTES = 1 << 26  # of answers about a DAG


@dataclass
class GoalAnswers:
    """What goals that are not compiled, and their generator, said of the states of a DAG.

    Attributes
    ----------
    fixed, weights, has : of a generator that was asked about every state
    by_level : bits of the levels asked for
    snapshot : the user's world as it was then, if the goals know it
    """

    fixed: FixedGoals | None = None
    weights: list[FloatArray] = field(default_factory=list)
    has: list[ByteArray] = field(default_factory=list)
    by_level: dict[int, ByteArray] = field(default_factory=dict)
    snapshot: WorldSnapshot | None = None

    @property
    def are_large(self) -> bool:
        """Whether they take more memory than is spent on answers that may be needed again."""
        bits = sum(array.nbytes for array in (*self.has, *self.by_level.values()))
        return bits + sum(array.nbytes for array in self.weights) > KEPT_BYTES

    @property
    def has_interchangeable_goals(self) -> bool:
        """Whether equal goals are as good as these, which are the keys of tables."""
        known = itertools.chain(*self.fixed.goals) if self.fixed is not None else ()
        return all(inspect.getattr_static(type(goal), "__eq__") is not object.__eq__ for goal in known)


def answers_before(dag: Dag, humans: Sequence[int], generator: GoalGenerator) -> GoalAnswers:
    """What the same goals said of the same DAG before, which the DAG keeps for the last ones; or no answers yet.

    Generators that cannot be distinguished from others are asked in each call. For goals that know the user's world, it
    must still be what it was.
    """
    world = cast(World, dag.world if dag.model.packed is None else getattr(dag.world, "translated_from", None))
    hasher = _GoalHasher(world)
    try:
        key = str(hasher.hash([list(humans), generator]))
    except Exception:  # whatever pickling runs into in the user's own classes, or where there is no source
        return GoalAnswers()
    found = dag.goal_answers.get(key)
    if not isinstance(found, GoalAnswers) or not _can_be_used(found, dag, world):
        found = GoalAnswers(snapshot=WorldSnapshot(world) if hasher.has_met_world else None)
    dag.goal_answers.clear()
    dag.goal_answers[key] = found
    return found


def _can_be_used(found: GoalAnswers, dag: Dag, world: World) -> bool:
    if found.are_large or not found.has_interchangeable_goals:
        return False
    # Where the DAG has a snapshot of its own, that knows which attributes change when the world is asked.
    return found.snapshot is None or (dag.snapshot or found.snapshot).is_of(world, dag)


class _GoalHasher(ContentHasher):
    """Also counts the worlds of goals, which they lose when they are pickled.

    The user's world counts as the same, whatever it holds by now; that is for its snapshot to find out.
    """

    def __init__(self, world: object) -> None:
        super().__init__()
        self._users_world, self.has_met_world = world, False
        self._met: dict[int, str] = {}  # goals and generators, which may refer to each other

    def _told(self, thing: object) -> object:
        if isinstance(thing, type) or not any(
            _is_world(getattr(thing, "__dict__", {}).get(name)) for name in ("env", "world_model")
        ):
            return super()._told(thing)
        if id(thing) not in self._met:
            self._met[id(thing)] = f"goal {len(self._met)}"
            return ["goal", type(thing), vars(thing)]
        return self._met[id(thing)]

    def _world(self, world: object) -> object:
        if world is not self._users_world:
            return super()._world(world)
        self.has_met_world = True
        return "the user's world"


def _is_world(thing: object) -> bool:
    return inspect.getattr_static(thing, "transition_probabilities", None) is not None
