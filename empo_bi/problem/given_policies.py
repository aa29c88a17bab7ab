r"""Policies that a prior gave as arrays, and what they make of all humans together, if each acts for itself:

.. math:: \pi_H(u \mid s) = \prod_h \pi_h(u_h \mid s)

The products are taken in the order of the humans, so that the numbers are, bit by bit, those that a prior's own
``profile_distribution`` would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.problem.goal_columns import Columns
from empo_bi.problem.profiles import Profiles
from empo_bi.types import BoolArray, ByteArray, FloatArray, IndexArray
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.model import State


@dataclass(frozen=True)
class GivenPolicies:
    """What a prior says of M states.

    Attributes
    ----------
    pi_MXA : policies by goal, as they were given; 0 where a state does not have the goal
    mean_MHA : policies averaged over goals, normalised
    """

    pi_MXA: FloatArray
    mean_MHA: FloatArray

    @classmethod
    def empty(cls, n_states: int, goals: Columns, n_actions: int) -> GivenPolicies:
        return cls(np.zeros((n_states, goals.n_columns, n_actions)), np.zeros((n_states, len(goals.humans), n_actions)))


@dataclass(frozen=True)
class GivenJoint(GivenPolicies):
    """What is known of M states is only what all humans do together, averaged over goals: ``joint_MU``."""

    joint_MU: FloatArray

    @classmethod
    def of(cls, joint_MU: FloatArray) -> GivenJoint:
        none = np.zeros((len(joint_MU), 0, 0))
        return cls(none, none, np.ascontiguousarray(joint_MU, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class StatesInQuestion:
    """States of one level that a prior is asked about, at ``place_M`` in the order of ``dag.states(t)``."""

    dag: Dag
    goals: Columns
    t: int
    place_M: IndexArray

    @property
    def step(self) -> int:
        return int(self.dag.level_values[self.t])

    @cached_property
    def states(self) -> list[State]:
        return self.dag.states(self.t, self.place_M)

    @cached_property
    def fields(self) -> AgentFields:
        """Their fields, for priors that read packed states; only worlds on a map have them."""
        grid = self.dag.model.grid
        key_MW = self.dag.keys(self.t, self.place_M)
        if grid is None or key_MW is None:
            raise TypeError("packed fields are for worlds on a map; give a prior that is asked about states instead")
        return grid.fields(key_MW)


def normalised_rows(weight_MA: FloatArray) -> FloatArray:
    """Each row divided by its sum; uniform where that is 0."""
    total_M1 = weight_MA.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total_M1 > 0, weight_MA / total_M1, 1.0 / weight_MA.shape[-1]))


def joint_of_given(
    given: GivenPolicies, profiles: Profiles, goals: Columns, has_NX: ByteArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """``joint_MU``, ``joint_MXU`` as kernels read them, and which states have sound ones, (M,).

    The others have a row that is negative, not finite, or all 0, or a positive probability for an action that the human
    does not have.
    """
    mean_HMU = [given.mean_MHA[:, h, profiles.action_UH[:, h]] for h in range(len(goals.humans))]
    joint_MU = _product(mean_HMU)
    n, n_u = joint_MU.shape
    joint_MHGU = np.empty((n, len(goals.humans), goals.n_goals, n_u))
    for h in range(len(goals.humans)):
        own_MGA = given.pi_MXA[:, h * goals.n_goals : (h + 1) * goals.n_goals]
        others = [mean_MU[:, np.newaxis] for mean_MU in mean_HMU]
        joint_MHGU[:, h] = _product([*others[:h], own_MGA[:, :, profiles.action_UH[:, h]], *others[h + 1 :]])
    joint_MXU: FloatArray = joint_MHGU.reshape(n, goals.n_columns, n_u)
    has_MX = np.broadcast_to(has_NX.astype(np.bool_) & _is_a_goal(goals), (n, goals.n_columns))
    joint_MXU[~has_MX] = 0.0
    is_sound_M = are_sound(joint_MU) & (are_sound(joint_MXU) | ~has_MX).all(axis=1) & _are_possible(given, profiles)
    return joint_MU, joint_MXU, is_sound_M


def _product(factors: list[FloatArray]) -> FloatArray:
    """From left to right."""
    found = factors[0].copy()
    for factor in factors[1:]:
        found = found * factor
    return found


def _is_a_goal(goals: Columns) -> BoolArray:
    """(X,), False for columns that only fill up."""
    return np.array([goal is not None for known in goals.goals for goal in known], dtype=np.bool_)


def are_sound(joint: FloatArray) -> BoolArray:
    return np.asarray(((joint >= 0) & (joint < np.inf)).all(axis=-1) & (joint.sum(axis=-1) > 0))


def _are_possible(given: GivenPolicies, profiles: Profiles) -> BoolArray:
    """(M,), whether the policies themselves are finite and never negative, and 0 for actions that a human does not have."""
    n, n_columns, _ = given.pi_MXA.shape
    is_good_M = np.ones(n, dtype=np.bool_)
    n_goals = n_columns // len(profiles.humans)
    for h, human in enumerate(profiles.humans):
        n_own = profiles.actions_N[human]
        for pi in (given.pi_MXA[:, h * n_goals : (h + 1) * n_goals], given.mean_MHA[:, h : h + 1]):
            is_good = ((pi >= 0) & (pi < np.inf)).all(axis=(1, 2)) & (pi[:, :, n_own:] == 0).all(axis=(1, 2))
            is_good_M &= is_good
    return is_good_M
