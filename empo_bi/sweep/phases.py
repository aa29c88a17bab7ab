"""The two phases as objects: each has its tables, computes blocks of states, and hands over the arrays of a level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np

from empo_bi.dag.level_blocks import NO_FLOATS, Block
from empo_bi.problem.asked_prior import AskedPrior, Joint
from empo_bi.problem.callbacks import beliefs_of, durations_of
from empo_bi.problem.given_policies import GivenPolicies
from empo_bi.problem.goal_columns import Columns, GoalColumns
from empo_bi.problem.params import Params
from empo_bi.problem.profiles import Profiles
from empo_bi.sweep import formulas
from empo_bi.sweep.float16 import put_rows
from empo_bi.sweep.kernels import OK, human_block, robot_block
from empo_bi.sweep.successor_values import ATTAINED
from empo_bi.sweep.undefined_values import StateTrouble, parameter_at_fault, too_large
from empo_bi.sweep.value_tables import RowPlan, Table
from empo_bi.types import Array, Arrays, BoolArray, ByteArray, FloatArray, IndexArray, SuccessorArray
from empo_bi.world.as_model import Model
from empo_bi.world.model import State

NO_JOINT: Joint = (np.zeros((0, 0)), np.zeros((0, 0, 0)))
_BY_THE_POWER_LAW = np.zeros((0, 0))
_SMALLEST = 1e-300  # a discount that is hardly there, which is not the same as 0


@dataclass(frozen=True)
class Precision:
    """In which types the humans' values rest and are worked with.

    Whatever concerns the robot is always float64: it spans many orders of magnitude and begins at -1e-10.
    """

    rest: str
    work: str

    @property
    def least(self) -> float:
        """A human all of whose values are below this asks for wider tables: single numbers lose digits there."""
        return 1e-30 if self.work == "float32" else 0.0


# Those that may be asked for; each with the types to be tried, one after the other.
PRECISIONS = {
    "float16": [Precision("float16", "float32"), Precision("float16", "float64")],
    "float64": [Precision("float64", "float64")],
}


# Beyond which float32 is not tried. In 4,276 random worlds below it, and with a finite beta_h, no value was off by more than
# 1.001 times what resting in float16 does; above it, some were off by 20 times as much, and by up to 0.7 at the extremes.
STEEPEST_FOR_SINGLE = 300.0


def steepness(params: Params) -> float:
    r"""How much the robot's policy makes of a relative error of the humans' values, :math:`\beta_r \zeta \xi \eta`.

    An error of :math:`V_h^e` becomes one of :math:`X_h` times zeta, of :math:`U_r` times xi and eta, and of the logits of
    :math:`\pi_r` times beta_r, from which it returns to the :math:`V_h^e` of the level below.
    """
    return params.beta_r * params.zeta * params.xi * params.eta


def wants_double(params: Params, phase_2: bool) -> bool:
    """Whether tables are float64 from the beginning, whatever values rest in."""
    return phase_2 and steepness(params) > STEEPEST_FOR_SINGLE


class TooSmallForSingle(Exception):
    """Some human's power is 0, or the robot's value infinite, perhaps only because tables are float32."""


@dataclass(frozen=True)
class PhaseSetting:
    """What all phases of a sweep have in common, wherever they are computed."""

    profiles: Profiles
    goals: Columns
    precision: Precision
    unit_durations: bool

    def factor(self, rate: float) -> float:
        """The discount of one step, 0 where it comes with each transition."""
        return max(formulas.discount_factor(rate), _SMALLEST) if self.unit_durations or rate == 0 else 0.0


@dataclass(frozen=True)
class Setting(PhaseSetting):
    """The same where the DAG is."""

    goals: GoalColumns

    def lean(self, needs_goals: bool) -> PhaseSetting:
        """As much of it as other machines need; the goals themselves only where a prior is asked about them."""
        goals = Columns(self.goals.humans, self.goals.goals if needs_goals else [], self.goals.n_goals)
        return PhaseSetting(self.profiles, goals, self.precision, self.unit_durations)


class StateInputs(TypedDict):
    """What is known of the states of a block, by its name in :class:`BlockInputs`."""

    attained_MB: ByteArray
    has_NX: ByteArray
    weight_NX: FloatArray
    states: list[State] | None
    given: GivenPolicies | None


@dataclass(frozen=True)
class BlockInputs:
    """A block with all that phases read: rows of successors in the tables, and what was asked about its states."""

    t: int
    block: Block
    slot_M: IndexArray
    succ_K: SuccessorArray
    attained_MB: ByteArray
    has_NX: ByteArray
    weight_NX: FloatArray
    duration_K: FloatArray
    states: list[State] | None
    given: GivenPolicies | None = None  # by a prior that was asked already

    @property
    def transitions(self) -> tuple[IndexArray, Array, SuccessorArray, FloatArray]:
        return self.block.start_E, self.block.count_EJ, self.succ_K, self.block.prob_K

    def with_durations(self, model: Model | None) -> BlockInputs:
        """The same with what a world says of its transitions; as it is if there is none to ask."""
        return self if model is None else replace(self, duration_K=durations_of(model, self.block, self.states or []))

    def discounts(self, rate: float) -> FloatArray:
        """One factor per transition; empty where the discount is part of the tables."""
        return formulas.discounts(rate, self.duration_K) if rate > 0 and len(self.duration_K) else NO_FLOATS

    def duration_weights(self, rate: float) -> FloatArray:
        """How long each transition is to a discounting robot; empty where durations are 1, or play no part."""
        return formulas.duration_weights(rate, self.duration_K) if rate > 0 and len(self.duration_K) else NO_FLOATS


@dataclass(frozen=True)
class Ends:
    """Terminal states of a level: places and rows, goals attained there, and what users' functions say each is worth."""

    place_M: IndexArray
    slot_M: IndexArray
    attained_MX: BoolArray
    worth_M: Mapping[int, FloatArray]  # by the id of the function


class HumanPhase:
    r"""Phase 1: :math:`V_h` and the humans' policies by goal."""

    def __init__(self, setting: PhaseSetting, params: Params, *, keeps_values: bool) -> None:
        self.setting, self.params, self.keeps_values = setting, params, keeps_values
        self.table = Table(setting.goals.n_columns, setting.precision.work)
        self._factor = setting.factor(params.rate_h)
        self._uniform = setting.profiles.uniform_belief_HU[np.newaxis]
        self._vh_SX = np.zeros((0, 0))

    def fresh(self, setting: PhaseSetting) -> HumanPhase:
        """The same phase with empty tables."""
        return HumanPhase(setting, self.params, keeps_values=self.keeps_values)

    def begin(self, plan: RowPlan, n_states: int) -> None:
        self.table.begin(plan)
        shape = (n_states if self.keeps_values else 0, self.setting.goals.n_columns)
        self._vh_SX = np.zeros(shape, dtype=self.setting.precision.rest)

    def run(self, work: BlockInputs, *, wants_policies: bool = True) -> Array:
        """Compute a block. Returns the policies, (M, A, X), if they are wanted."""
        profiles, params = self.setting.profiles, self.params
        dtype = self.setting.precision.work
        n_columns = self.setting.goals.n_columns
        pi_NAX = np.empty((len(work.slot_M) if wants_policies else 1, profiles.n_actions, n_columns), dtype)
        v_MX = np.empty((len(work.slot_M), n_columns), dtype)
        belief_NHU = self._uniform
        if params.believed_others_policy is not None:
            assert work.states is not None
            belief_NHU = beliefs_of(params.believed_others_policy, profiles, work.states)
        human_block(
            work.block.row_M, work.slot_M, *work.transitions, work.discounts(params.rate_h), self.table.read,
            work.attained_MB, work.has_NX, belief_NHU, profiles.all_UR, profiles.own_HAO,
            params.beta_h, self._factor, params.optimistic, pi_NAX, v_MX, self.table.write,
        )  # fmt: skip
        if params.believed_others_policy is not None:
            check_held(work, v_MX, self.setting.precision.rest, "believed_others_policy")
        if self.keeps_values:
            put_rows(self._vh_SX, work.block.place_M, v_MX)
        return pi_NAX

    def end_here(self, ends: Ends) -> None:
        """Terminal states: nothing more to come but what was attained on arrival."""
        put_terminal(self.table, ends.slot_M, ends.attained_MX, self._factor)

    def arrays(self) -> Arrays:
        n_humans = len(self.setting.goals.humans)
        shape = (len(self._vh_SX), n_humans, self.setting.goals.n_goals)
        return {"vh": self._vh_SX.reshape(shape)} if self.keeps_values else {}

    def tables(self) -> dict[str, Table]:
        return {"human": self.table}


class RobotPhase:
    r"""Phase 2: the robot's :math:`Q_r`, :math:`V_r`, and the humans' values and power under both policies.

    The humans' policies come from a :class:`HumanPhase`, or from a prior of another maker. The robots act by the power law;
    with ``policy_R``, the probability of each of their profiles is that in every state, and what it is worth is found.
    """

    def __init__(
        self, setting: PhaseSetting, params: Params, prior: AskedPrior | None = None, policy_R: FloatArray | None = None,
        *, keeps_joint: bool = False,
    ) -> None:  # fmt: skip
        """``keeps_joint``: hand over what the prior says of all humans together, too."""
        self.setting, self.params, self.prior, self.keeps_joint = setting, params, prior, keeps_joint
        self.policy_R, self._policy_NR = policy_R, _BY_THE_POWER_LAW if policy_R is None else policy_R[np.newaxis]
        self.table = Table(setting.goals.n_columns, setting.precision.work)
        self.vr_table = Table(0, "float64")
        self._terminal = params.terminal_function
        self._factor_h, self._factor_r = setting.factor(params.rate_h), setting.factor(params.rate_r)
        self._level: Arrays = {}

    def fresh(self, setting: PhaseSetting) -> RobotPhase:
        """The same phase with empty tables, for states that go on: a function of terminal states stays here."""
        params = self.params if self._terminal is None else self.params.replace(terminal_Vr=-1.0)
        return RobotPhase(setting, params, self.prior, self.policy_R, keeps_joint=self.keeps_joint)

    def begin(self, plan: RowPlan, n_states: int) -> None:
        self.table.begin(plan)
        self.vr_table.begin(plan)
        goals, precision = self.setting.goals, self.setting.precision
        n_humans, n_robots = len(goals.humans), len(self.setting.profiles.robot_profiles)
        self._level = {
            "ve": np.zeros((n_states, goals.n_columns), dtype=precision.rest),
            "xh": np.zeros((n_states, n_humans)),
            "qr": np.zeros((n_states, n_robots)),
            "vr": np.full(n_states, self.params.terminal_Vr if self._terminal is None else np.nan),
        }
        if self.keeps_joint:
            self._level["joint"] = np.zeros((n_states, len(self.setting.profiles.action_UH)))

    def run(self, work: BlockInputs, pi_MAX: Array, joint: Joint = NO_JOINT) -> None:
        """Compute a block, with the humans' policies by goal or with what the prior says of all humans together."""
        profiles, params, goals = self.setting.profiles, self.params, self.setting.goals
        n, n_humans = len(work.slot_M), len(goals.humans)
        v_MX = np.empty((n, goals.n_columns), self.setting.precision.work)
        xh_MH, qr_MR, vr_M = np.empty((n, n_humans)), np.empty((n, len(profiles.robot_profiles))), np.empty(n)
        trouble = robot_block(
            work.block.row_M, work.slot_M, *work.transitions, work.discounts(params.rate_h),
            work.discounts(params.rate_r), work.duration_weights(params.rate_r), self.table.read, self.vr_table.read,
            work.attained_MB, work.has_NX, work.weight_NX, pi_MAX, *joint, profiles.played_UR,
            profiles.own_HAO, profiles.action_UH, profiles.n_profiles, self._policy_NR, params.beta_r, self._factor_h,
            self._factor_r, formulas.step_weight(params.rate_r), params.rate_r > 0, params.zeta, params.xi, params.eta,
            self.setting.precision.least, v_MX, xh_MH, qr_MR, vr_M, self.table.write, self.vr_table.write,
        )  # fmt: skip
        if trouble != OK:
            m, h = divmod(int(trouble), n_humans)
            self._complain(work, m, h, v_MX[m], xh_MH[m], qr_MR[m])
        if self.prior is not None:
            check_held(work, v_MX, self.setting.precision.rest, "human_policy_prior")
        put_rows(self._level["ve"], work.block.place_M, v_MX)
        found = {"xh": xh_MH, "qr": qr_MR, "vr": vr_M, **({"joint": joint[0]} if self.keeps_joint else {})}
        for name, array in found.items():
            self._level[name][work.block.place_M] = array

    def _complain(self, work: BlockInputs, m: int, h: int, v_X: FloatArray, x_H: FloatArray, q_R: FloatArray) -> None:
        if self.setting.precision.work == "float32":
            raise TooSmallForSingle
        longest = float(work.duration_K.max(initial=0.0)) if len(work.duration_K) else 1.0
        weight_HG = work.weight_NX[m if len(work.weight_NX) > 1 else 0].reshape(len(x_H), -1)
        why = parameter_at_fault(self.params, longest, weight_HG, v_X.reshape(weight_HG.shape), x_H, q_R)
        raise StateTrouble(int(work.block.place_M[m]), h, why)

    def end_here(self, ends: Ends) -> None:
        put_terminal(self.table, ends.slot_M, ends.attained_MX, self._factor_h)
        worth = self.params.terminal_Vr if self._terminal is None else ends.worth_M[id(self._terminal)]
        self._level["vr"][ends.place_M] = worth
        self.vr_table.write[ends.slot_M] = worth * (self._factor_r or 1.0)  # type: ignore[operator]

    def arrays(self) -> Arrays:
        if not self._level:  # nothing was begun
            return {}
        values = self._level["ve"]
        return {**self._level, "ve": values.reshape(len(values), len(self.setting.goals.humans), self.setting.goals.n_goals)}

    def tables(self) -> dict[str, Table]:
        return {"effective": self.table, "robot": self.vr_table}


def put_terminal(table: Table, slot_M: IndexArray, attained_MX: BoolArray, factor: float) -> None:
    """Terminal states, where there is nothing left to attain."""
    table.write[slot_M] = continuation_rows(np.zeros(attained_MX.shape), attained_MX, factor)


def continuation_rows(v_MX: Array, attained_MX: BoolArray, factor: float) -> Array:
    """What arriving at states is worth, as tables have it: with the discount, unless that comes with each transition."""
    return formulas.continuation(v_MX, attained_MX, factor) if factor > 0 else np.where(attained_MX, ATTAINED, v_MX)


def check_held(work: BlockInputs, v_MX: Array, rest: str, source: str) -> None:
    """Values above 1 come from somebody's distributions that sum to more than 1; they may outgrow the type at rest."""
    largest = float(np.finfo(rest).max)
    if not (v_MX <= largest).all():
        m = int(np.flatnonzero(~(v_MX <= largest).all(axis=1))[0])
        raise StateTrouble(int(work.block.place_M[m]), 0, too_large(float(v_MX[m].max()), rest, largest, source))
