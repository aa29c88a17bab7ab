"""A level as its blocks see it: what they take from it beside their transitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from empo_bi.dag.level_blocks import NO_FLOATS, Block
from empo_bi.problem.given_policies import GivenPolicies
from empo_bi.sweep.phases import BlockInputs, StateInputs
from empo_bi.sweep.value_tables import RowPlan, Rows
from empo_bi.types import ByteArray, FloatArray, IndexArray
from empo_bi.world.model import State


@dataclass(frozen=True)
class Level:
    """What blocks of a level take from it. Shapes as in :class:`~empo_bi.sweep.phases.BlockInputs`, for all states."""

    t: int
    plan: RowPlan
    rows: Rows
    attained_SB: ByteArray
    weight_NX: FloatArray
    has_NX: ByteArray
    states: list[State] | None
    given_at: Callable[[IndexArray], GivenPolicies | None] = lambda place_M: None  # by a prior that answers in arrays

    def work(self, block: Block) -> BlockInputs:
        """A block as phases read it, but for durations."""
        slot_M = self.plan.slot_S[block.place_M]
        return BlockInputs(
            self.t, block, slot_M, self.rows.slots_of(block.succ_K), duration_K=NO_FLOATS, **self.of(block.place_M)
        )

    def of(self, place_M: IndexArray) -> StateInputs:
        """What is known of some states, by its name in a work."""
        return {
            "attained_MB": self.attained_SB[place_M],
            "has_NX": self.has_NX if len(self.has_NX) == 1 else self.has_NX[place_M],
            "weight_NX": self.weight_NX if len(self.weight_NX) == 1 else self.weight_NX[place_M],
            "states": None if self.states is None else [self.states[s] for s in place_M.tolist()],
            "given": self.given_at(place_M),
        }
