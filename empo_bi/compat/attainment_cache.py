"""Which goals successors attain, by state, profile and goal: a view of one bit per (state, human, goal)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from empo_bi.dag.level_blocks import LevelBlocks
from empo_bi.problem.goal_columns import GoalColumns, bits_of
from empo_bi.results.chain import documented_order


class AttainmentCache:
    """Reads like a table of attainments per transition, but takes only one bit per state and goal.

    It saves work and never changes a result. States are numbered as in ``world.get_dag()``.
    """

    def __init__(self, blocks: LevelBlocks, goals: GoalColumns) -> None:
        self.fill(blocks, goals)

    def fill(self, blocks: LevelBlocks, goals: GoalColumns) -> None:
        """Turn this into the cache of another run."""
        self.dag, self.num_action_profiles = blocks.dag, blocks.dag.n_profiles
        self._blocks, self._goals = blocks, goals
        self._order: npt.NDArray[np.int64] | None = None

    def get(self, state_index: int, profile_index: int, goal: object) -> npt.NDArray[np.int8] | None:
        """Whether each successor attains the goal, in the order of the transitions.

        None for terminal states, for goals that no human has, and for goals already attained in the state itself.
        """
        t, place = self._locate(state_index)
        columns = [h * self._goals.n_goals + g for h, goals in enumerate(self._goals.goals) for g, known in enumerate(goals)
                   if known is not None and known == goal]  # fmt: skip
        if not columns or not 0 <= profile_index < self.num_action_profiles:
            return None
        x, n_columns = columns[0], self._goals.n_columns
        if bits_of(self._goals.attained(t, np.array([place])), n_columns)[0, x]:
            return None
        for block in self._blocks.of_states(t, np.array([place])):
            ends = block.counts_of(self.num_action_profiles)[0].cumsum()
            entries = block.entries_of(self.num_action_profiles)
            first = 0 if profile_index == 0 else ends[profile_index - 1]
            succ_K = block.succ_K[entries[first : ends[profile_index]]]
            body_N, inverse_K = np.unique(succ_K, return_inverse=True)
            attained_N = np.zeros(len(body_N), dtype=np.int8)
            for level, chosen, places in self.dag.locate(t, body_N):
                attained_N[chosen] = bits_of(self._goals.attained(level, places), n_columns)[:, x]
            return attained_N[inverse_K]
        return None

    def _locate(self, state_index: int) -> tuple[int, int]:
        if self._order is None:
            self._order = np.argsort(documented_order(self.dag)[1])
        number = int(self._order[state_index])
        starts = self.dag.first_state_T
        t = int(np.searchsorted(starts, number, side="right")) - 1
        return t, number - int(starts[t])

    def num_states(self) -> int:
        """The number of states that are not terminal."""
        return sum(len(block.place_M) for t in range(self.dag.horizon + 1) for block in self._blocks.of_level(t))

    def total_entries(self) -> int:
        """The number of (state, profile, goal) triples: all profiles, and the goals not attained in the state itself."""
        total = 0
        for t in range(self.dag.horizon + 1):
            has_NX = self._goals.has(t)
            for block in self._blocks.of_level(t):
                open_MX = ~bits_of(self._goals.attained(t, block.place_M), self._goals.n_columns)
                open_MX &= (has_NX if len(has_NX) == 1 else has_NX[block.place_M]).astype(np.bool_)
                total += int(open_MX.sum()) * self.num_action_profiles
        return total

    def __repr__(self) -> str:
        return f"<AttainmentCache of {self.dag.n_states:,} states and {self._goals.n_columns} goals>"
