"""The humans' policies, computed on demand from the stored values of the next level."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from empo_bi.dag.level_blocks import NO_FLOATS, Block, LevelBlocks
from empo_bi.dag.slices import as_array
from empo_bi.problem.callbacks import durations_of
from empo_bi.problem.goal_columns import bits_of
from empo_bi.problem.params import Params
from empo_bi.runtime.compilation import compilations
from empo_bi.sweep.phases import BlockInputs, HumanPhase, Setting, continuation_rows
from empo_bi.types import Bodies, FloatArray, IndexArray, SuccessorArray

FloatingArray = npt.NDArray[np.floating]  # in the type of arithmetic or of storage
ValuesOf = Callable[[int], FloatingArray]


class HumanPolicies:
    """Goal-conditioned policies of a solved phase 1, level by level or state by state.

    ``values_of(t)`` returns the values of level ``t``, (S, H, G), as stored. If ``is_quiet``, no compilation is shown.
    """

    def __init__(
        self, blocks: LevelBlocks, setting: Setting, params: Params, values_of: ValuesOf, *, is_quiet: bool = False
    ) -> None:
        self.blocks, self.setting, self.params, self._values_of = blocks, setting, params, values_of
        self._is_quiet = is_quiet

    def blocks_of(self, t: int, place_M: IndexArray | None = None) -> Iterator[tuple[BlockInputs, FloatingArray]]:
        """Blocks of a level, or of some of its states, each with its policies (M, A, X); terminal states are left out."""
        dag = self.blocks.dag
        blocks = self.blocks.of_level(t) if place_M is None else self.blocks.of_states(t, place_M)
        phase = HumanPhase(self.setting, self.params, keeps_values=False)
        n_wanted = dag.level_sizes[t] if place_M is None else len(place_M)
        following = None
        # Few states have few successors, which are looked up; for many states, the whole next level is read.
        if dag.shares_bodies and t < dag.horizon and n_wanted * dag.n_profiles >= dag.level_sizes[t + 1]:
            following = _NextLevel(dag.levels.members(t + 1), dag.n_bodies)
            phase.table.read = self._continuations(t, following.body_N)
        for block in blocks:
            if following is None:
                succ_N, slot_K = np.unique(block.succ_K, return_inverse=True)
                work, table = self._work(t, block, slot_K.astype(np.int32)), self._continuations(t, succ_N)
                phase.table.read = table
            else:
                work, table = self._work(t, block, following.slots_of(block.succ_K)), phase.table.read
            phase.table.write = np.empty((len(block.row_M), table.shape[1]), dtype=table.dtype)
            with compilations.quiet(self._is_quiet):
                found = phase.run(work)
            yield work, found

    def of_states(self, t: int, place_M: IndexArray) -> tuple[IndexArray, FloatArray]:
        """Of some states of level ``t``: places of those that are not terminal, and their policies (M, H, G, A)."""
        places, parts = [], []
        for block_M, pi_MHGA in self.pieces(t, place_M):
            places.append(block_M)
            parts.append(pi_MHGA)
        if not parts:
            shape = (0, len(self.setting.goals.humans), self.setting.goals.n_goals, self.setting.profiles.n_actions)
            return np.zeros(0, dtype=np.int64), np.zeros(shape)
        return np.concatenate(places), np.concatenate(parts)

    def of_level(self, t: int) -> FloatArray:
        """Policies (S, H, G, A) of all states of level ``t``; 0 for terminal states."""
        goals = self.setting.goals
        n_states = self.blocks.dag.level_sizes[t]
        pi_SHGA = np.zeros((n_states, len(goals.humans), goals.n_goals, self.setting.profiles.n_actions))
        for block_M, pi_MHGA in self.pieces(t):
            pi_SHGA[block_M] = pi_MHGA
        return pi_SHGA

    def pieces(self, t: int, place_M: IndexArray | None = None) -> Iterator[tuple[IndexArray, FloatArray]]:
        """Blocks of a level, or of some of its states: places of those that are not terminal, and policies (M, H, G, A)."""
        return ((work.block.place_M, self._by_human(pi_MAX)) for work, pi_MAX in self.blocks_of(t, place_M))

    def _by_human(self, pi_MAX: FloatingArray) -> FloatArray:
        n, n_actions, _ = pi_MAX.shape
        pi_MAHG = pi_MAX.reshape(n, n_actions, len(self.setting.goals.humans), -1)
        return np.moveaxis(pi_MAHG, 1, 3).astype(np.float64)

    def _work(self, t: int, block: Block, slot_K: npt.NDArray[np.int32]) -> BlockInputs:
        """A block as the kernel reads it; ``slot_K`` are the rows of successors in the table."""
        dag, goals, place_M = self.blocks.dag, self.setting.goals, block.place_M
        needs_states = self.params.believed_others_policy is not None or not self.setting.unit_durations
        states = dag.states(t, place_M) if needs_states else None
        weight_NX, has_NX = goals.weights(t), goals.has(t)
        return BlockInputs(
            t=t,
            block=block,
            slot_M=np.arange(len(place_M)),
            succ_K=slot_K,
            attained_MB=goals.attained(t, place_M),
            has_NX=has_NX if len(has_NX) == 1 else has_NX[place_M],
            weight_NX=weight_NX if len(weight_NX) == 1 else weight_NX[place_M],
            duration_K=NO_FLOATS if self.setting.unit_durations else durations_of(dag.model, block, states or []),
            states=states,
        )

    def _continuations(self, t: int, succ_N: npt.NDArray[np.integer]) -> FloatingArray:
        """What successors are worth: a row for each of ``succ_N``, a column for each (human, goal)."""
        goals, factor = self.setting.goals, self.setting.factor(self.params.rate_h)
        table = np.empty((len(succ_N), goals.n_columns), dtype=self.setting.precision.work)
        for level, chosen, place in self.blocks.dag.locate(t, succ_N):
            attained = bits_of(goals.attained(level, place), goals.n_columns)
            values = self._values_of(level)[place].reshape(len(place), -1).astype(table.dtype)
            table[chosen] = continuation_rows(values, attained, factor)
        return table


class _NextLevel:
    """The next level as a table with a row for each of its states, in their order, if levels share bodies."""

    def __init__(self, members: Bodies, n_bodies: int) -> None:
        self.body_N = as_array(members)
        self._first = members.start if isinstance(members, range) else -1
        if self._first < 0:
            self._slot_B = np.zeros(n_bodies, dtype=np.int32)
            self._slot_B[self.body_N] = np.arange(len(self.body_N))

    def slots_of(self, succ_K: SuccessorArray) -> SuccessorArray:
        """The rows of successors."""
        if self._first < 0:
            # A stretch may also have rows of other states, which lead elsewhere.
            return self._slot_B[succ_K]
        return succ_K if self._first == 0 else succ_K - np.int32(self._first)
