"""What can come about at all, whoever does what: when each goal can be attained at the earliest, and which agents can move.

States are met step by step by the world's own rules, without regard to the horizon, so that it is also known what would take
longer. Where a world is too large, only its first steps are looked at, which :class:`Reach` says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from empo_bi.dag.attainment import FixedGoals
from empo_bi.dag.key_index import KeyIndex
from empo_bi.types import BoolArray, IndexArray, KeyArray
from empo_bi.world.as_model import Model
from empo_bi.world.attained import ignores_the_step
from empo_bi.world.goals import ReachStatesGoal
from empo_bi.world.map_world import MapWorld
from empo_bi.world.model import State
from empo_bi.world.packed import PackedWorld

WORK = 8_000_000  # profiles that are tried in compiled worlds, in all; a few seconds
_BLOCK = 1 << 17  # of them at a time
QUESTIONS = 50_000  # that a world written in Python is asked


@dataclass(frozen=True)
class Reach:
    """What was found.

    Attributes
    ----------
    new_T : how many states can come about after so many steps, but not earlier; states count without their step
    is_complete : whether there are no others, however long the world goes on
    first_HG : the earliest step at which a state attains a goal; -1 where none does
    is_known_HG : False for goals that may depend on the step, or that do not exist
    moves : for worlds on a map, whether each agent can leave its cell
    """

    new_T: Sequence[int]
    is_complete: bool
    first_HG: IndexArray
    is_known_HG: BoolArray
    moves: Sequence[bool] | None

    @property
    def n_states(self) -> int:
        """How many were looked at."""
        return sum(self.new_T)

    @property
    def n_steps(self) -> int:
        """All states up to so many steps from the start were looked at."""
        return len(self.new_T) - 1

    def states_within(self, horizon: int) -> int:
        """At most so many states, with their steps, come about within a horizon that is covered."""
        return sum(n * (horizon + 1 - t) for t, n in enumerate(self.new_T[: horizon + 1]))

    def covers(self, horizon: int | None) -> bool:
        """Whether everything within a horizon was looked at."""
        return self.is_complete or (horizon is not None and self.n_steps >= horizon)


def reach_of(model: Model, goals: FixedGoals | None) -> Reach:
    """Look at what can come about, until nothing new does or it takes too long."""
    if model.packed is not None:
        return _of_packed(model, model.packed, goals)
    return _of_python(model, goals)


def _of_packed(model: Model, packed: PackedWorld, goals: FixedGoals | None) -> Reach:
    grid, n_agents = model.grid, model.n_agents
    first_X, is_known_X = _nothing_yet(goals, depends_on_step=False)
    moves_N = np.zeros(n_agents, dtype=np.bool_)
    compiled = [] if goals is None else [goal for known in goals.compiled for goal in known]
    asked_X = np.flatnonzero(is_known_X)
    new_T, is_complete = list[int](), False
    for key_SW, is_complete in _layers(packed):  # noqa: B007 (used after the loop)
        step = len(new_T)
        new_T.append(len(key_SW))
        open_X = asked_X[first_X[asked_X] < 0]
        if len(open_X):
            found_X = packed.attainment(step, key_SW, [compiled[x] for x in open_X]).any(axis=0)
            first_X[open_X[found_X]] = step
        if grid is not None:
            moves_N |= _have_moved(grid, key_SW)
    moves = None if grid is None else moves_N.tolist()
    return Reach(new_T, is_complete, *_by_human(goals, first_X, is_known_X), moves)


def _layers(packed: PackedWorld) -> Iterator[tuple[KeyArray, bool]]:
    """The bodies that are met after 0, 1, 2, ... steps and not before, and whether they are the last ones."""
    n_profiles = max(1, len(packed.all_profiles))
    index, begin, block = KeyIndex(packed.n_words), 0, max(1, _BLOCK // n_profiles)
    index.add(packed.initial_key)
    most = max(2, WORK // n_profiles)
    while True:
        layer_SW = index.keys[begin:].copy()
        begin = len(index)
        is_cut_off = begin > most
        for s in range(0, 0 if is_cut_off else len(layer_SW), block):
            index.add(packed.expand(layer_SW[s : s + block]).key_KW)
        is_complete = not is_cut_off and len(index) == begin
        yield layer_SW, is_complete
        if is_cut_off or is_complete:
            return


def _have_moved(grid: MapWorld, key_SW: KeyArray) -> BoolArray:
    now, start = grid.fields(key_SW), grid.fields(grid.initial_key)
    return np.array(
        [bool((now.cell(agent) != start.cell(agent)).any()) for agent in range(len(grid.agents))], dtype=np.bool_
    )


def _of_python(model: Model, goals: FixedGoals | None) -> Reach:
    """State by state, as far as the world goes on by itself; goals are asked about each."""
    first_X, is_known_X = _nothing_yet(goals, depends_on_step=True)
    asked = [] if goals is None else [goal for known in goals.compiled for goal in known]
    most = max(2, QUESTIONS // max(1, model.n_profiles))
    seen: set[State] = {model.initial_state()}
    layer, new_T = list(seen), list[int]()
    while layer and len(seen) <= most:
        for x in np.flatnonzero(is_known_X & (first_X < 0)).tolist():
            if any(asked[x].is_achieved(state) for state in layer):
                first_X[x] = len(new_T)
        new_T.append(len(layer))
        layer = list({following for state in layer for following in _successors(model, state)} - seen)
        seen.update(layer)
    return Reach(new_T, not layer, *_by_human(goals, first_X, is_known_X), None)


def _successors(model: Model, state: State) -> Iterator[State]:
    for profile in model.profiles:
        for probability, successor in model.transitions(state, profile) or ():
            if probability > 0:
                yield successor


def _nothing_yet(goals: FixedGoals | None, *, depends_on_step: bool) -> tuple[IndexArray, BoolArray]:
    """For each column: no step, and whether one can be found by looking at each body or state once."""
    flat = [] if goals is None else [goal for known in goals.compiled for goal in known]
    known = [
        goal is not None and (depends_on_step or type(goal) is ReachStatesGoal or ignores_the_step(goal)) for goal in flat
    ]
    return np.full(len(flat), -1, dtype=np.int64), np.array(known, dtype=np.bool_)


def _by_human(goals: FixedGoals | None, first_X: IndexArray, is_known_X: BoolArray) -> tuple[IndexArray, BoolArray]:
    shape = (0, 0) if goals is None else (len(goals.humans), goals.n_goals)
    return first_X.reshape(shape), is_known_X.reshape(shape)
