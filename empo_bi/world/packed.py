"""Worlds whose states are packed into keys of a few words and expanded in blocks."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from functools import cached_property
from operator import index
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from empo_bi.errors import InvalidActionError, WorldTooLargeError
from empo_bi.runtime.wording import counted
from empo_bi.types import BoolArray, IndexArray, KeyArray
from empo_bi.world.goals import PossibleGoal
from empo_bi.world.key_layout import Expansion
from empo_bi.world.model import State, Transitions, WorldModel

MAX_PROFILES = 10_000_000


class PackedWorld(WorldModel):
    """A time-homogeneous world for the engine: a body is a key of W words, and transitions are computed in blocks.

    Attributes
    ----------
    max_steps : int
        States with this step count are terminal.
    """

    time_homogeneous = True
    max_steps: int
    action_space: spaces.Discrete

    @property
    @abstractmethod
    def n_words(self) -> int:
        """Words of a key."""

    @property
    @abstractmethod
    def initial_key(self) -> KeyArray:
        """Key of the initial state, (1, W)."""

    @abstractmethod
    def encode(self, states: Iterable[Any]) -> tuple[IndexArray, KeyArray]:
        """Steps (S,) and keys (S, W) of state tuples."""

    @abstractmethod
    def decode(self, steps: npt.ArrayLike, key_SW: KeyArray) -> list[Any]:
        """State tuples of keys; ``steps`` is one number for all, or one for each."""

    @abstractmethod
    def problem_of_keys(self, key_SW: KeyArray) -> str | None:
        """Why some keys are not states of this world; None if all are. For keys from untrusted files."""

    @abstractmethod
    def expand(self, key_SW: KeyArray, profile_JN: IndexArray | None = None) -> Expansion:
        """Successors of a block of packed states under all profiles, or the given ones; none for terminal states."""

    @abstractmethod
    def attainment(self, steps: npt.ArrayLike, key_SW: KeyArray, goals: Sequence[PossibleGoal]) -> BoolArray:
        """Whether each goal is achieved in each state of a block, (S, G)."""

    # --- one state at a time, by the same kernels ---------------------------------------------------------------------

    def transition_probabilities(self, state: State, actions: Sequence[int]) -> Transitions | None:
        """``[(probability, successor), ...]``, equal successors merged; None in a terminal state.

        Raises
        ------
        InvalidStateError, InvalidActionError
            If the state cannot occur in this world, or actions are not one valid id per agent.
        """
        profile_1N = self._profile(actions)
        steps, key_1W = self.encode([state])
        if steps[0] >= self.max_steps:
            return None
        expansion = self.expand(key_1W, profile_1N)
        successors = self.decode(int(steps[0]) + 1, expansion.key_KW)
        return list(zip(expansion.prob_K.tolist(), successors, strict=True))

    # --- action profiles ----------------------------------------------------------------------------------------------

    @property
    def all_profiles(self) -> IndexArray:
        """Every action profile (J, N) in profile-index order: agent 0 is the least significant digit. Read-only."""
        view = self._profiles[:]
        view.flags.writeable = False
        return view

    @cached_property
    def _profiles(self) -> IndexArray:
        n, actions_N = len(self.agents), self._actions_N
        n_profiles = math.prod(actions_N)
        if n_profiles > MAX_PROFILES:
            raise WorldTooLargeError(
                f"{n} agents with {max(actions_N)} actions have {n_profiles:,} action profiles, more than {MAX_PROFILES:,}; "
                "use fewer agents or a smaller action set"
            )
        number = np.arange(n_profiles, dtype=np.int64)
        digits = [number // math.prod(actions_N[:i]) % actions_N[i] for i in range(n)]
        return np.stack(digits, axis=1) if n else np.empty((1, 0), np.int64)

    @property
    def _actions_N(self) -> list[int]:
        """How many actions each agent has."""
        given = getattr(self, "num_actions_per_agent", None)
        return [int(self.action_space.n)] * len(self.agents) if given is None else list(given)

    def _profile(self, actions: int | Sequence[int]) -> IndexArray:
        """One profile as a row, checked."""
        n = len(self.agents)
        is_list = isinstance(actions, list | tuple)
        given = cast(Sequence[int], actions if is_list or np.ndim(actions) else [actions])
        try:
            ids = [index(action) for action in given]
        except TypeError:
            raise InvalidActionError(
                f"actions {actions!r}; give a whole number for each agent. {self._valid_actions}"
            ) from None
        if len(ids) != n:
            raise InvalidActionError(
                f"{counted(len(ids), 'action')} for {counted(n, 'agent')}: {actions!r}; give one action id for each agent"
            )
        actions_N = self._actions_N
        for agent, action in enumerate(ids):
            if not 0 <= action < actions_N[agent]:
                raise self._no_such_action(agent, action)
        return np.array([ids], dtype=np.int64)

    def _checked_profiles(self, profile_JN: IndexArray) -> IndexArray:
        n, profiles = len(self.agents), np.asarray(profile_JN)
        if profiles.ndim != 2 or profiles.shape[1] != n or not np.issubdtype(profiles.dtype, np.integer):
            raise InvalidActionError(
                f"profiles of shape {profiles.shape}, type {profiles.dtype}; expected whole numbers of shape (profiles, {n})"
            )
        bad = np.argwhere((profiles < 0) | (profiles >= np.array(self._actions_N, dtype=np.int64)))
        if len(bad):
            row, agent = bad[0]
            raise self._no_such_action(agent, profiles[row, agent])
        return profiles

    def _no_such_action(self, agent: int, action: int) -> InvalidActionError:
        return InvalidActionError(f"invalid action {action} of agent {agent}. {self._valid_actions}")

    @property
    def _valid_actions(self) -> str:
        names = self.action_names  # type: ignore[attr-defined]
        return "This world's actions are " + ", ".join(f"{i} {name}" for i, name in enumerate(names))
