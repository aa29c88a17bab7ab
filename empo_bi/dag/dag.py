"""The levelled DAG that users and the solver hold, and :func:`enumerate_dag`, which makes it."""

from __future__ import annotations

from typing import Any

import numpy as np

from empo_bi.dag.books import DictBook, KeyBook, StateBook
from empo_bi.dag.enumerate import members_of_levels, sweep
from empo_bi.dag.key_index import KeyIndex
from empo_bi.dag.python_world import LevelFunction, PythonExplorer, explore
from empo_bi.dag.slices import BodySlice, IndexArray, LevelSlice
from empo_bi.errors import InvalidStateError, counted
from empo_bi.runtime.progress import level_bar
from empo_bi.world.gridworld import GridWorld

Members = list[range | IndexArray]


def enumerate_dag(
    world: Any, *, level_fct: LevelFunction | None = None, max_states: int | None = None, progress: bool = True
) -> Dag:
    """Find every state that can be reached, with all transitions.

    Parameters
    ----------
    world : GridWorld, or any world written in Python
        A Python world has ``agents`` (or ``n_agents``), ``action_space.n``, ``initial_state()`` (or ``reset()`` and
        ``get_state()``) and ``transition_probabilities(state, actions)``.
    level_fct : function, optional
        ``f(state) -> int``, for Python worlds: every successor is on a higher level than its state; gaps and negative levels
        are fine. Without it, a state's level is the length of the longest path that leads to it. Gridworlds have steps.
    max_states : int, optional
        Stop with an error when more states (of a gridworld: bodies, states but for the step) than this are found. For Python
        worlds the default is ten million, in case they never end.
    progress : bool
        Show a bar for anything over a second.

    Examples
    --------
    >>> from empo_bi import load_world
    >>> dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=8), progress=False)
    >>> dag.n_states, dag.n_bodies, dag.level_sizes[:4]
    (3741, 1144, [1, 36, 128, 224])
    """
    if isinstance(world, GridWorld):
        return _enumerate_gridworld(world, max_states, progress)
    if not hasattr(world, "transition_probabilities"):
        raise TypeError(
            f"{world!r} is no world: it has no transition_probabilities; load_world makes one from a name or file"
        )
    explorer = PythonExplorer(world, level_fct, max_states)
    levels, slices, states = explore(explorer, progress)
    firsts = np.array([piece.first for piece in slices])
    members: Members = [range(piece.first, piece.first + len(piece)) for piece in slices]
    return Dag(world, DictBook(states, firsts), slices, members, levels, len(explorer.profiles))


def _enumerate_gridworld(world: GridWorld, max_states: int | None, progress: bool) -> Dag:
    index = KeyIndex(world.layout.n_words)
    slices = []
    with level_bar("enumerate", world.max_steps + 1, progress) as bar:
        for piece in sweep(world, index, max_states):
            slices.append(piece)
            bar.set_postfix_str(f"{len(index):,} bodies", refresh=False)
            bar.update()
    n_profiles = len(world.all_profiles)
    members = members_of_levels(slices, n_profiles, len(index))
    return Dag(world, KeyBook(world, index), slices, members, list(range(world.max_steps + 1)), n_profiles)


class Dag:
    """All states of a world, level by level; in a gridworld, level = step.

    Attributes
    ----------
    horizon : int
        The last level; its states are terminal.
    level_sizes : list of int
        States on each level.
    level_values : list of int
        What ``level_fct`` says of each level; simply 0, 1, 2, ... for gridworlds.
    n_states, n_bodies, n_transitions : int
        States of all levels; distinct states but for the step; stored (body, profile, successor) entries.
    """

    def __init__(
        self,
        world: Any,
        book: StateBook,
        slices: list[BodySlice],
        members: Members,
        level_values: list[int],
        n_profiles: int,
    ) -> None:
        self.world = world
        self.level_values = level_values
        self.horizon = len(members) - 1
        self.level_sizes = [len(bodies) for bodies in members]
        self.n_states = sum(self.level_sizes)
        self.n_bodies = len(book)
        self.n_transitions = sum(piece.n_entries for piece in slices)
        self._book, self._slices, self._members, self._n_profiles = book, slices, members, n_profiles
        self._first_state = np.cumsum([0, *self.level_sizes])

    def __repr__(self) -> str:
        return f"<Dag: {self.summary()}>"

    def level(self, t: int) -> LevelSlice:
        """Everything about level ``t``, negative levels counting from the last one."""
        t = self._checked_level(t)
        body_S = np.asarray(self._members[t], dtype=np.int64)
        if t == self.horizon:
            nothing = np.zeros(0, dtype=np.int64)
            return LevelSlice(t, body_S, np.zeros((len(body_S), self._n_profiles), np.int64), nothing, np.zeros(0))
        pieces = []
        for piece in self._slices[: t + 1]:
            lo, hi = np.searchsorted(body_S, [piece.first, piece.first + len(piece)])
            pieces.append(piece.entries(body_S[lo:hi] - piece.first, self._n_profiles))
        count_SJ, succ_K, prob_K = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
        return LevelSlice(t, body_S, count_SJ, succ_K, prob_K)

    def states(self, t: int) -> list[Any]:
        """States of level ``t``, in the order of ``level(t)``."""
        t = self._checked_level(t)
        return self._book.states(t, np.asarray(self._members[t], dtype=np.int64))

    def index_of(self, state: Any) -> int:
        """The number of a state among all states, level after level."""
        t, body = self._book.find(state)
        bodies = self._members[t] if t <= self.horizon else range(0)
        place = body - bodies.start if isinstance(bodies, range) else int(np.searchsorted(bodies, body))
        if body < 0 or not 0 <= place < len(bodies) or bodies[place] != body:
            raise InvalidStateError(f"{state!r} cannot be reached")
        return int(self._first_state[t]) + place

    def summary(self) -> str:
        """Sizes in one line."""
        nbytes = self._book.nbytes + sum(piece.nbytes for piece in self._slices)
        return (
            f"{counted(self.n_states, 'state')} on levels 0 to {self.horizon}, "
            f"{self.n_bodies:,} {'body' if self.n_bodies == 1 else 'bodies'}, "
            f"{counted(self.n_transitions, 'transition')}, {nbytes / 1e6:.1f} MB"
        )

    def _checked_level(self, t: int) -> int:
        if not -self.horizon - 1 <= t <= self.horizon:
            raise IndexError(f"level {t}: this DAG has levels 0 to {self.horizon}")
        return t % (self.horizon + 1)
