r"""Episodes drawn under both policies, all of them at once, level by level.

Each step of each episode takes one number of a PCG64 generator, episode after episode: the same seed gives the same
episodes on any machine with any number of threads, and more episodes begin with the same ones as fewer.

The *return* of an episode, whose expectation is the robot's value, is

.. math:: \sum_i e^{-\rho_r D_{<i}} w(D_i) U_r(s_i) + e^{-\rho_r D} V_{terminal}, \quad
    w(D) = (1 - e^{-\rho_r D}) / \rho_r \text{ or, without discount, } 1.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.level_blocks import NO_FLOATS
from empo_bi.problem.callbacks import durations_of
from empo_bi.problem.goal_columns import bits_of
from empo_bi.problem.protocols import Goal
from empo_bi.results.fixed_goals import PursuedGoals
from empo_bi.results.goal_names import GoalLike
from empo_bi.results.solution import Solution
from empo_bi.runtime.hooks import Displayed, provider_of
from empo_bi.sweep.formulas import discounts, duration_weights
from empo_bi.types import BoolArray, ByteArray, FloatArray, IndexArray

NONE = -1  # after the end


@dataclass(frozen=True)
class Rollouts(Displayed):
    """N episodes of at most T transitions. Numbers after an episode's end are -1.

    Axis H of arrays is in the order of ``solution.humans``, so human 1 is at ``solution.humans.index(1)``; the axis of
    agents in ``action_NTI`` has all agents by their numbers.

    Attributes
    ----------
    level_NT, place_NT : (N, T + 1) int32, where each state is: its level, and its place in ``dag.states(level)``
    profile_NT : (N, T) int32, the numbers of the profiles that were played (agent 0 is the least significant digit)
    return_N : (N,) float64, the robot's discounted return, whose expectation is V_r of the initial state (its mean over the
        states to start with, if a sub-problem has several) unless some humans pursue fixed goals
    goals : {human: goal}, the fixed goals that humans pursue; the others act by their policies averaged over goals
    """

    solution: Solution
    level_NT: npt.NDArray[np.int32]
    place_NT: npt.NDArray[np.int32]
    profile_NT: npt.NDArray[np.int32]
    return_N: FloatArray
    _bits_NB: ByteArray
    goals: dict[int, Goal] = field(default_factory=dict)

    _display = "Rollouts.display"

    def __len__(self) -> int:
        return len(self.return_N)

    def __repr__(self) -> str:
        return f"<Rollouts: {len(self):,} episodes of up to {self.profile_NT.shape[1]} steps>"

    @property
    def length_N(self) -> IndexArray:
        """(N,), the number of transitions of each episode."""
        return (self.profile_NT >= 0).sum(axis=1)

    @cached_property
    def attained_NHG(self) -> BoolArray:
        """(N, H, G), whether each goal of each human is attained in some state of the episode, the initial one included;
        H in the order of ``solution.humans``, G in that of ``solution.goals[human]``."""
        goals = self.solution.goal_columns
        return bits_of(self._bits_NB, goals.n_columns).reshape(len(self), len(goals.humans), goals.n_goals)

    @cached_property
    def action_NTI(self) -> npt.NDArray[np.int16]:
        """(N, T, agents), the action of each agent."""
        action_NTI = self.solution.profiles.actions_of(self.profile_NT)
        return np.where(self.profile_NT[:, :, np.newaxis] >= 0, action_NTI, NONE).astype(np.int16)

    def states(self, i: int) -> list[Hashable]:
        """The states of an episode, from the initial to a terminal state."""
        last = int(self.length_N[i])
        where = zip(self.level_NT[i, : last + 1].tolist(), self.place_NT[i, : last + 1].tolist(), strict=True)
        return [self.solution.dag.states(t, np.array([place]))[0] for t, place in where]

    def save(self, path: str | os.PathLike[str], episode: int = 0, **options: Any) -> Path:
        """Write an episode as a film (``.gif``, ``.mp4``) or as pictures of all steps (``.png``).

        For the options, such as ``episodes=[0, 1], columns=2``, see :func:`empo_bi.analysis.film.save_film`.
        """
        return provider_of("Rollouts.save")(self, path, **({"episodes": [episode]} | options))


def draw_episodes(
    solution: Solution, n: int, seed: int | Sequence[int] = 0, goals: Mapping[int, GoalLike] | None = None
) -> Rollouts:
    """Draw ``n`` episodes; policies are computed once per level, for the states that episodes have reached."""
    if index(n) < 1:
        raise ValueError(f"n={n}; give a number of episodes, 1 or more")
    pursued = PursuedGoals.of(solution.goal_columns, goals)
    dag, horizon = solution.dag, solution.dag.horizon
    draw = np.random.Generator(np.random.PCG64(seed))
    uniform_NT = draw.random((n, horizon))
    level_NT, place_NT = np.full((2, n, horizon + 1), NONE, dtype=np.int32)
    profile_NT = np.full((n, horizon), NONE, dtype=np.int32)
    starts = np.array([(t, place) for t, places in dag.starts().items() for place in places.tolist()])
    level_N, place_N = starts[draw.integers(len(starts), size=n)].T.copy()
    level_NT[:, 0], place_NT[:, 0] = level_N, place_N
    step_N = np.zeros(n, dtype=np.int64)
    discount_N, return_N = np.ones(n), np.zeros(n)
    bits_NB = np.zeros((n, -(-solution.goal_columns.n_columns // 8)), dtype=np.uint8)
    rate = solution.params.rate_r
    for t in range(horizon + 1):
        here = np.flatnonzero(level_N == t)
        if len(here) == 0:
            continue
        here = here[np.argsort(place_N[here], kind="stable")]
        place_M = place_N[here]
        bits_NB[here] |= solution.goal_columns.attained(t, place_M)
        uniform_M = uniform_NT[here, np.minimum(step_N[here], horizon - 1)] if horizon else NO_FLOATS
        drawn = _draw_steps(solution, t, place_M, uniform_M, pursued)
        goes_on = drawn.profile_N >= 0
        ended, here = here[~goes_on], here[goes_on]
        return_N[ended] += discount_N[ended] * solution.terminal_values(t, place_N[ended])
        if len(here) == 0:
            continue
        duration_N = drawn.duration_N[goes_on]
        return_N[here] += discount_N[here] * duration_weights(rate, duration_N) * solution.values.U_r[t][place_M[goes_on]]
        discount_N[here] *= discounts(rate, duration_N)
        profile_NT[here, step_N[here]] = drawn.profile_N[goes_on]
        step_N[here] += 1
        body_B, inverse_N = np.unique(drawn.succ_N[goes_on], return_inverse=True)
        for u, chosen, place in dag.locate(t, body_B):
            place_B = np.full(len(body_B), NONE)
            place_B[chosen] = place
            arrived = place_B[inverse_N] >= 0
            level_N[here[arrived]], place_N[here[arrived]] = u, place_B[inverse_N[arrived]]
        level_NT[here, step_N[here]], place_NT[here, step_N[here]] = level_N[here], place_N[here]
    return Rollouts(solution, level_NT, place_NT, profile_NT, return_N, bits_NB, pursued.goal_of)


@dataclass(frozen=True)
class _Steps:
    """The next step of N episodes; -1 where an episode has ended."""

    profile_N: IndexArray
    succ_N: IndexArray
    duration_N: FloatArray


def _draw_steps(solution: Solution, t: int, place_N: IndexArray, uniform_N: FloatArray, pursued: PursuedGoals) -> _Steps:
    """One step of episodes that are in states of level ``t``, whose places ascend."""
    drawn = _Steps(np.full(len(place_N), NONE), np.full(len(place_N), NONE), np.ones(len(place_N)))
    if t < solution.dag.horizon:
        for joint in solution.joint_policies(t, np.unique(place_N), pursued):
            block, duration_K = joint.block, NO_FLOATS
            if not solution.unit_durations:
                duration_K = durations_of(solution.model, block, solution.dag.states(t, block.place_M))
            first_M, last_M = (np.searchsorted(place_N, block.place_M, side) for side in ("left", "right"))
            joint.draw(duration_K, first_M, last_M, uniform_N, drawn.profile_N, drawn.succ_N, drawn.duration_N)
    return drawn
