"""Phases that belong together, and how they compute a block: here, in a thread, or on another machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from empo_bi.problem.asked_prior import AskedPrior, Joint
from empo_bi.sweep.phases import NO_JOINT, BlockInputs, HumanPhase, PhaseSetting, RobotPhase, TooSmallForSingle
from empo_bi.types import Array

Item = TypeVar("Item")


@dataclass(eq=False)
class PhasePair:
    """The phases of one set of parameters. Several robot phases may share a human phase."""

    human: HumanPhase | None
    robot: RobotPhase | None
    is_given_up: bool = field(default=False, init=False)  # since its tables are too narrow

    @property
    def phases(self) -> list[HumanPhase | RobotPhase]:
        return [phase for phase in (self.human, self.robot) if phase is not None]


def run_block(work: BlockInputs, pairs: Sequence[PhasePair], setting: PhaseSetting) -> None:
    """Compute a block into the tables and levels of all phases; pairs whose tables are too narrow are given up."""
    shape = (len(work.slot_M), setting.profiles.n_actions, 0)
    pi_MAX: Array = np.empty(shape, dtype=setting.precision.work)
    joint = joint_of(work, pairs)
    for human in distinct(pair.human for pair in pairs):
        if human is not None:
            pi_MAX = human.run(work, wants_policies=any(pair.human is human and pair.robot is not None for pair in pairs))
        for pair in pairs:
            if pair.human is human and pair.robot is not None and not pair.is_given_up:
                try:
                    pair.robot.run(work, pi_MAX, joint)
                except TooSmallForSingle:
                    pair.is_given_up = True  # the others go on


def joint_of(work: BlockInputs, pairs: Sequence[PhasePair]) -> Joint:
    """What a prior says of all humans together; it is asked once, however many sets of parameters there are."""
    prior = prior_of(pairs)
    return NO_JOINT if prior is None else prior.joint(work.states, work.has_NX, work.given)


def prior_of(pairs: Iterable[PhasePair]) -> AskedPrior | None:
    """The prior, which is the same for all pairs; None if humans act as phase 1 says."""
    return next((pair.robot.prior for pair in pairs if pair.robot is not None), None)


def phases_of(pairs: Iterable[PhasePair]) -> list[HumanPhase | RobotPhase]:
    """In order, each once."""
    return distinct(phase for pair in pairs for phase in pair.phases)


def distinct(items: Iterable[Item]) -> list[Item]:
    """In order, each once."""
    return list(dict.fromkeys(items))
