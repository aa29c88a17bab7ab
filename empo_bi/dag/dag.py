"""The levelled DAG that users and the solver hold, and :func:`enumerate_dag`, which makes it."""

from __future__ import annotations

from typing import Any

import numpy as np
from tqdm import tqdm

from empo_bi.dag.enumerate import is_nested, next_members, sweep
from empo_bi.dag.key_index import KeyIndex
from empo_bi.dag.slices import BodySlice, IndexArray, LevelSlice
from empo_bi.errors import InvalidStateError
from empo_bi.world.encoding import State
from empo_bi.world.gridworld import GridWorld


def enumerate_dag(world: GridWorld, *, max_states: int | None = None, progress: bool = True) -> Dag:
    """Find every state that can be reached, with all transitions.

    Parameters
    ----------
    world : GridWorld
    max_states : int, optional
        Stop with an error when more bodies (states but for the step) than this are found.
    progress : bool
        Show a bar for anything over a second.

    Examples
    --------
    >>> from empo_bi import load_world
    >>> dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=8), progress=False)
    >>> dag.n_states, dag.n_bodies, dag.level_sizes[:4]
    (3741, 1144, [1, 36, 128, 224])
    """
    index = KeyIndex(world.layout.n_words)
    slices = []
    with tqdm(total=world.max_steps, unit="level", desc="enumerate", delay=1, leave=False, disable=not progress) as bar:
        for piece in sweep(world, index, max_states):
            slices.append(piece)
            bar.set_postfix_str(f"{len(index):,} bodies", refresh=False)
            bar.update()
    return Dag(world, index, slices)


class Dag:
    """All states of a world up to its horizon, level by level (level = step).

    Attributes
    ----------
    horizon : int
        The last level; its states are terminal.
    level_sizes : list of int
        States on each level.
    n_states, n_bodies, n_transitions : int
        States of all levels; distinct states but for the step; stored (body, profile, successor) entries.
    """

    def __init__(self, world: GridWorld, index: KeyIndex, slices: list[BodySlice]) -> None:
        self.world = world
        self.horizon = world.max_steps
        self._index = index
        self._slices = slices
        self._n_profiles = len(world.all_profiles)
        self._members = self._find_members()
        self.level_sizes = [len(bodies) for bodies in self._members]
        self.n_states = sum(self.level_sizes)
        self.n_bodies = len(index)
        self.n_transitions = sum(piece.n_entries for piece in slices)
        self._first_state = np.cumsum([0, *self.level_sizes])

    def __repr__(self) -> str:
        return f"<Dag of {self.world.world_spec.name!r}: {self.summary()}>"

    def _find_members(self) -> list[range | IndexArray]:
        """The bodies on each level: a range where levels are nested, else an ascending array."""
        if is_nested(self._slices[0]):
            return [range(piece.first + len(piece)) for piece in self._slices]
        members: list[range | IndexArray] = [np.zeros(1, dtype=np.int64)]
        for _ in range(self.horizon):
            members.append(next_members(np.asarray(members[-1]), self._slices, self._n_profiles, len(self._index)))
        return members

    def level(self, t: int) -> LevelSlice:
        """Everything about level ``t``, negative levels counting from the horizon."""
        t = self._checked_level(t)
        body_S = np.asarray(self._members[t], dtype=np.int64)
        if t == self.horizon:
            nothing = np.zeros(0, dtype=np.int64)
            return LevelSlice(t, body_S, np.zeros((len(body_S), self._n_profiles), np.int64), nothing, np.zeros(0))
        pieces = []
        for piece in self._slices[: t + 1]:
            lo, hi = np.searchsorted(body_S, [piece.first, piece.first + len(piece)])
            pieces.append(self._entries(piece, body_S[lo:hi] - piece.first))
        count_SJ, succ_K, prob_K = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
        return LevelSlice(t, body_S, count_SJ, succ_K, prob_K)

    def _entries(self, piece: BodySlice, body_M: IndexArray) -> tuple[Any, Any, Any]:
        """Counts, successors and probabilities of some bodies of a slice, with what was left out put back."""
        assert piece.succ_K is not None
        starts = piece.starts(self._n_profiles)
        lengths = starts[body_M + 1] - starts[body_M]
        # Entry k of the result belongs to a body whose entries lie consecutively in the slice.
        shifts = np.repeat(starts[body_M] - np.concatenate([[0], lengths.cumsum()[:-1]]), lengths) if len(body_M) else 0
        chosen = np.arange(lengths.sum()) + shifts
        ones = np.ones((len(body_M), self._n_profiles), dtype=np.int64)
        count_MJ = ones if piece.count_BJ is None else piece.count_BJ[body_M].astype(np.int64)
        prob_K = np.ones(len(chosen)) if piece.prob_K is None else piece.prob_K[chosen]
        return count_MJ, piece.succ_K[chosen].astype(np.int64), prob_K

    def states(self, t: int) -> list[State]:
        """State tuples of level ``t``, in the order of ``level(t)``."""
        t = self._checked_level(t)
        return self.world.decode(t, self._index.keys[np.asarray(self._members[t], dtype=np.int64)])

    def index_of(self, state: State) -> int:
        """The number of a state among all states, level after level."""
        steps, key_1W = self.world.encode([state])
        t, body = int(steps[0]), int(self._index.find(key_1W)[0])
        bodies = self._members[t]
        place = body if isinstance(bodies, range) else int(np.searchsorted(bodies, body))
        if body < 0 or place >= len(bodies) or bodies[place] != body:
            raise InvalidStateError(f"{state!r} cannot be reached in {t} steps")
        return int(self._first_state[t]) + place

    def summary(self) -> str:
        """Sizes in one line."""
        nbytes = self._index.nbytes + sum(piece.nbytes for piece in self._slices)
        return (
            f"{self.n_states:,} states on levels 0 to {self.horizon}, {self.n_bodies:,} bodies, "
            f"{self.n_transitions:,} transitions, {nbytes / 1e6:.1f} MB"
        )

    def _checked_level(self, t: int) -> int:
        if not -self.horizon - 1 <= t <= self.horizon:
            raise IndexError(f"level {t}: this DAG has levels 0 to {self.horizon}")
        return t % (self.horizon + 1)
