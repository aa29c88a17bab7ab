r"""A random sparse finite-horizon decision process, and how others solve it: quantecon, scipy's matrices, numpy's arrays.

Everybody finds, for each goal, the greatest probability to reach it within the horizon, from every state:

.. math:: V_0 = 0, \quad V_{n+1}(s) = \max_a \sum_{s'} P(s' \mid s, a) \, c_n(s')

where :math:`c_n` is 1 on the goal and :math:`V_n` elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from empo_bi.types import FloatArray

QUANTECON_MISSING = "quantecon is not installed: pip install 'empo-bi[peers]'"


@dataclass(frozen=True)
class RandomMdp:
    """S states, A actions, K entries in all; ``matrix`` (S * A, S) has a row per (state, action)."""

    matrix: Any
    n_actions: int
    goals: list[list[int]]
    steps: int

    @classmethod
    def make(cls, n_states: int, n_actions: int, n_entries: int, steps: int, n_goals: int, seed: int = 0) -> RandomMdp:
        """Every (state, action) has one successor, and the remaining entries are scattered; goals are sets of 20 states."""
        rng = np.random.default_rng(seed)
        n_rows = n_states * n_actions
        count_R = 1 + np.bincount(rng.integers(0, n_rows, n_entries - n_rows), minlength=n_rows)
        begin_R = np.concatenate([[0], count_R.cumsum()])
        entries = (rng.random(n_entries) + 1e-3, rng.integers(0, n_states, n_entries), begin_R)
        matrix = sparse.csr_array(entries, shape=(n_rows, n_states))
        matrix.sum_duplicates()
        total_R = np.add.reduceat(matrix.data, matrix.indptr[:-1])
        matrix.data /= np.repeat(total_R, np.diff(matrix.indptr))
        size = min(20, max(1, n_states // 10))
        return cls(matrix, n_actions, [rng.integers(0, n_states, size).tolist() for _ in range(n_goals)], steps)

    @property
    def n_states(self) -> int:
        return int(self.matrix.shape[1])

    def mask(self, goal: int) -> npt.NDArray[np.bool_]:
        mask = np.zeros(self.n_states, dtype=np.bool_)
        mask[self.goals[goal]] = True
        return mask

    def world(self, n_goals: int) -> Any:
        from empo_bi import ArrayWorld

        return ArrayWorld(self.matrix, max_steps=self.steps, goals=self.goals[:n_goals])

    # --- peers --------------------------------------------------------------------------------------------------------

    def with_scipy(self, goal: int, steps: int | None = None) -> FloatArray:
        """A sparse matrix times a vector, and a maximum, in each step; all steps, or fewer."""
        inside = self.mask(goal)
        value_S = np.zeros(self.n_states)
        for _ in range(self.steps if steps is None else steps):
            worth_S = np.where(inside, 1.0, value_S)
            value_S = (self.matrix @ worth_S).reshape(-1, self.n_actions).max(axis=1)
        return np.where(inside, 0.0, value_S)  # reached already

    def with_scipy_together(self, n_goals: int) -> FloatArray:
        """The same with a column per goal, (S, G)."""
        inside_SG = np.stack([self.mask(goal) for goal in range(n_goals)], axis=1)
        value_SG = np.zeros(inside_SG.shape)
        for _ in range(self.steps):
            worth_SG = np.where(inside_SG, 1.0, value_SG)
            value_SG = (self.matrix @ worth_SG).reshape(-1, self.n_actions, n_goals).max(axis=1)
        return np.where(inside_SG, 0.0, value_SG)

    def with_numpy(self, goal: int) -> FloatArray:
        """Arrays of successors and probabilities: gather, multiply, add up by row, maximise."""
        inside = self.mask(goal)
        value_S = np.zeros(self.n_states)
        succ_K, prob_K, begin_R = self.matrix.indices, self.matrix.data, self.matrix.indptr[:-1]
        for _ in range(self.steps):
            worth_S = np.where(inside, 1.0, value_S)
            value_S = np.add.reduceat(prob_K * worth_S[succ_K], begin_R).reshape(-1, self.n_actions).max(axis=1)
        return np.where(inside, 0.0, value_S)

    def quantecon_problem(self, goal: int) -> Any:
        """quantecon's ``DiscreteDP``: rewards for arriving, nothing more to gain where the goal has been reached."""
        from quantecon.markov import DiscreteDP

        inside = self.mask(goal)
        is_over_R = np.repeat(inside, self.n_actions)
        reward_R = self.matrix @ inside.astype(np.float64)
        reward_R[is_over_R] = 0.0
        matrix = sparse.csr_matrix(self.matrix)
        matrix.data = np.where(np.repeat(is_over_R, np.diff(matrix.indptr)), 0.0, matrix.data)
        state_R = np.repeat(np.arange(self.n_states), self.n_actions)
        action_R = np.tile(np.arange(self.n_actions), self.n_states)
        # It asks for a discount below 1: the nearest number.
        return DiscreteDP(reward_R, matrix, np.nextafter(1.0, 0.0), state_R, action_R)

    def with_quantecon(self, problem: Any) -> FloatArray:
        """Only its backward induction; the problem is prepared."""
        from quantecon.markov.ddp import backward_induction

        values_TS, _ = backward_induction(problem, self.steps, np.zeros(self.n_states))
        return np.asarray(values_TS[0])


def why_quantecon_is_missing() -> str | None:
    """What to do if it is."""
    try:
        import quantecon  # noqa: F401
    except ImportError:
        return QUANTECON_MISSING
    return None
