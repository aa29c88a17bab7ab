"""Worlds whose states are packed into keys of a few words and expanded in whole blocks: gridworlds and array worlds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.errors import WorldTooLargeError
from empo_bi.types import KeyArray
from empo_bi.world.expand import Expansion
from empo_bi.world.goals import PossibleGoal
from empo_bi.world.model import WorldModel

MAX_PROFILES = 10_000_000


class PackedWorld(WorldModel):
    """A time-homogeneous world for the engine: a body is a key of W words, and transitions come by the block.

    Attributes
    ----------
    max_steps : int
        States with this step count are terminal.
    """

    time_homogeneous = True
    max_steps: int

    @property
    @abstractmethod
    def n_words(self) -> int:
        """Words of a key."""

    @property
    @abstractmethod
    def initial_key(self) -> KeyArray:
        """Key of the initial state, (1, W)."""

    @abstractmethod
    def encode(self, states: Iterable[Any]) -> tuple[npt.NDArray[np.int64], KeyArray]:
        """Steps (S,) and keys (S, W) of state tuples."""

    @abstractmethod
    def decode(self, steps: npt.ArrayLike, key_SW: KeyArray) -> list[Any]:
        """State tuples of keys; ``steps`` is one number for all, or one a state."""

    @abstractmethod
    def problem_of_keys(self, key_SW: KeyArray) -> str | None:
        """Why some keys are not states of this world, for keys from elsewhere; None if all are."""

    @abstractmethod
    def expand(self, key_SW: KeyArray, profile_JN: npt.NDArray[np.int64] | None = None) -> Expansion:
        """Successors of a block of packed states under all profiles, or those given; none where a state is terminal."""

    @abstractmethod
    def attainment(self, steps: npt.ArrayLike, key_SW: KeyArray, goals: Sequence[PossibleGoal]) -> npt.NDArray[np.bool_]:
        """Whether each goal is achieved in each state of a block, (S, G)."""

    @property
    def all_profiles(self) -> npt.NDArray[np.int64]:
        """Every action profile (J, N) in profile-index order: agent 0 is the least significant digit. Read-only."""
        view = self._profiles[:]
        view.flags.writeable = False
        return view

    @cached_property
    def _profiles(self) -> npt.NDArray[np.int64]:
        n, n_actions = len(self.agents), int(self.action_space.n)  # type: ignore[attr-defined]
        if n_actions**n > MAX_PROFILES:
            raise WorldTooLargeError(
                f"{n} agents with {n_actions} actions have {n_actions**n:,} action profiles, more than {MAX_PROFILES:,}; "
                "use fewer agents or a smaller action set"
            )
        number = np.arange(n_actions**n, dtype=np.int64)
        return np.stack([number // n_actions**i % n_actions for i in range(n)], axis=1) if n else np.empty((1, 0), np.int64)
