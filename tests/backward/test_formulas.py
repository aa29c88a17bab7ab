"""Kernels against the formulas in plain NumPy, on random blocks of states."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from empo_bi import Params
from empo_bi.dag.level_blocks import NO_FLOATS, Block
from empo_bi.problem.goal_columns import Columns
from empo_bi.problem.profiles import Profiles
from empo_bi.results.joint_policy import JointPolicy
from empo_bi.sweep import formulas
from empo_bi.sweep.phases import NO_JOINT, BlockInputs, HumanPhase, PhaseSetting, Precision, RobotPhase, continuation_rows

N_STATES, N_SUCCESSORS = 3, 7


@dataclass(frozen=True)
class Case:
    """A block of states, all arrays with it, and what is known of the states that may follow."""

    setting: PhaseSetting
    params: Params
    work: BlockInputs
    v_NX: Any  # of states that may follow
    attained_NX: Any
    vr_N: Any

    def entries(self, m: int, u: int, r: int, profile_UR: Any) -> slice:
        """The transitions of a profile."""
        ends = np.cumsum(self.work.block.count_EJ[m])
        j = profile_UR[u, r]
        first = int(self.work.block.start_E[m])
        return slice(first + int(ends[j] - self.work.block.count_EJ[m, j]), first + int(ends[j]))

    @property
    def duration_K(self) -> Any:
        return self.work.duration_K if len(self.work.duration_K) else np.ones(len(self.work.succ_K))

    def expected(self, m: int, profile_UR: Any, rate: float) -> Any:
        """E(V; s, (u, r), x), (U, R, X)."""
        discount_K1 = formulas.discounts(rate, self.duration_K)[:, np.newaxis]
        succ_K = self.work.succ_K
        worth_KX = formulas.continuation(self.v_NX[succ_K], self.attained_NX[succ_K], discount_K1)
        return self._over_profiles(m, profile_UR, worth_KX)

    def future(self, m: int, profile_UR: Any, worth_K: Any) -> Any:
        """The expectation of what is known of each transition, (U, R)."""
        return self._over_profiles(m, profile_UR, worth_K)

    def _over_profiles(self, m: int, profile_UR: Any, worth_K: Any) -> Any:
        prob_K = self.work.block.prob_K
        n_u, n_r = profile_UR.shape
        entries = [[self.entries(m, u, r, profile_UR) for r in range(n_r)] for u in range(n_u)]
        return np.array([[formulas.expectation(prob_K[k], worth_K[k]) for k in row] for row in entries])


class Prior:
    """Somebody's prior: random, and the same whenever it is asked the same."""

    def __init__(self, profiles: Profiles) -> None:
        self._profiles = profiles

    def joint(self, *asked: int) -> Any:
        return np.random.default_rng(asked).dirichlet(np.ones(len(self._profiles.action_UH)))

    def of_all(self, goals: Columns) -> tuple[Any, Any]:
        """What it says of all states: (M, U), and with the goal of each column (M, X, U)."""
        columns = [(human, g) for human in self._profiles.humans for g in range(goals.n_goals)]
        joint_MXU = np.array([[self.joint(m, human, g) for human, g in columns] for m in range(N_STATES)])
        return np.array([self.joint(m) for m in range(N_STATES)]), joint_MXU


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n_humans, n_goals, n_actions = draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.sampled_from([2, 3, 4]))
    has_durations, is_strict = draw(st.booleans()), draw(st.booleans()) and n_actions != 3
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    params = Params(
        beta_h=math.inf if is_strict else draw(st.floats(0, 50)),
        rho_h=0.0 if is_strict else draw(st.sampled_from([0.0, 0.05, 1.5])),  # so that equal numbers are equal to the bit
        rho_r=draw(st.sampled_from([0.0, 0.1, 2.0])),
        optimistic=draw(st.booleans()),
        beta_r=draw(st.floats(0, 50)),
        zeta=draw(st.sampled_from([1.0, 2.0, 1.7])),
        xi=draw(st.floats(0.2, 3)),
        eta=draw(st.floats(0.2, 3)),
    )
    profiles = Profiles.of([n_actions] * (n_humans + 1), list(range(n_humans)), [n_humans])
    columns = Columns(profiles.humans, [list(range(n_goals))] * n_humans, n_goals)
    setting = PhaseSetting(profiles, columns, Precision("float64", "float64"), not has_durations)
    count_EJ = rng.integers(1, 4, (N_STATES, profiles.n_profiles)).astype(np.int32)
    start_E = np.concatenate([[0], count_EJ.sum(axis=1).cumsum()]).astype(np.int64)
    succ_K = rng.integers(0, N_SUCCESSORS, start_E[-1]).astype(np.int32)
    prob_K = np.concatenate([([1.0], [0.25, 0.75], [0.5, 0.25, 0.25])[n - 1] for n in count_EJ.ravel()])
    rows = np.arange(N_STATES)
    block = Block(rows, rows, rows, start_E, count_EJ, succ_K, prob_K)
    bits_MB = np.packbits(rng.random((N_STATES, columns.n_columns)) < 0.2, axis=1, bitorder="little")
    work = BlockInputs(
        t=0, block=block, slot_M=rows, succ_K=succ_K, attained_MB=bits_MB,
        has_NX=np.ones((1, columns.n_columns), dtype=np.uint8), weight_NX=rng.random((1, columns.n_columns)) + 0.1,
        duration_K=rng.random(len(succ_K)) * 3 if has_durations else NO_FLOATS, states=list(range(N_STATES)),
    )  # fmt: skip
    v_NX = rng.integers(1, 64, (N_SUCCESSORS, columns.n_columns)) / 64
    return Case(setting, params, work, v_NX, rng.random(v_NX.shape) < 0.2, -rng.random(N_SUCCESSORS) * 10 - 0.1)


def attained_of(case: Case, m: int) -> Any:
    bits = np.unpackbits(case.work.attained_MB[m], bitorder="little", count=case.setting.goals.n_columns)
    return bits.astype(np.bool_)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


def run_humans(case: Case) -> tuple[HumanPhase, Any]:
    phase = HumanPhase(case.setting, case.params, keeps_values=True)
    factor = case.setting.factor(case.params.rate_h)
    phase.table.read = continuation_rows(case.v_NX, case.attained_NX, factor)
    phase.table.write = np.empty((N_STATES, case.v_NX.shape[1]))
    phase._vh_SX = np.zeros((N_STATES, case.v_NX.shape[1]))
    return phase, phase.run(case.work)


def expected_policy(case: Case, m: int, x: int) -> tuple[Any, Any]:
    """What phase 1 is for one column: policy (A,) and value."""
    profiles, params = case.setting.profiles, case.params
    best_UX = formulas.extreme_over_robots(case.expected(m, profiles.all_UR, params.rate_h), params.optimistic)
    h = x // case.setting.goals.n_goals
    belief_U, action_U = profiles.uniform_belief_HU[h], profiles.action_UH[:, h]
    q_A1 = formulas.action_values(belief_U, best_UX[:, [x]], action_U, profiles.n_actions)
    pi_A1, v_1 = formulas.human_policy(q_A1, params.beta_h, attained_of(case, m)[[x]])
    return pi_A1[:, 0], v_1[0]


@given(cases())
@settings(max_examples=60, deadline=None)
def test_phase_1_is_what_the_formulas_say(case: Case) -> None:
    phase, pi_MAX = run_humans(case)
    factor = case.setting.factor(case.params.rate_h)
    for m in range(N_STATES):
        for x in range(case.v_NX.shape[1]):
            pi_A, v = expected_policy(case, m, x)
            same(pi_MAX[m, :, x], pi_A)
            same(phase._vh_SX[m, x], v)
        same(phase.table.write[m], continuation_rows(phase._vh_SX[m], attained_of(case, m), factor))


@given(cases(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_phase_2_is_what_the_formulas_say(case: Case, is_told: bool) -> None:
    setting, params, work = case.setting, case.params, case.work
    profiles, goals = setting.profiles, setting.goals
    n_humans, n_goals, n_columns = len(profiles.humans), goals.n_goals, goals.n_columns
    prior = Prior(profiles) if is_told else None
    _, pi_MAX = run_humans(case)
    phase = RobotPhase(setting, params, prior)
    factor_r = setting.factor(params.rate_r)
    phase.table.read = continuation_rows(case.v_NX, case.attained_NX, setting.factor(params.rate_h))
    phase.table.write = np.empty((N_STATES, n_columns))
    phase.vr_table.read = case.vr_N * (factor_r if factor_r > 0 else 1.0)
    phase.vr_table.write = np.empty(N_STATES)
    phase._level = {
        "ve": np.zeros((N_STATES, n_columns)),
        "xh": np.zeros((N_STATES, n_humans)),
        "qr": np.zeros((N_STATES, len(profiles.robot_profiles))),
        "vr": np.zeros(N_STATES),
    }
    phase.run(work, pi_MAX, NO_JOINT if prior is None else prior.of_all(goals))
    found = phase.arrays()
    weight_HG = work.weight_NX[0].reshape(n_humans, n_goals)
    for m in range(N_STATES):
        pi_AHG = pi_MAX[m].reshape(profiles.n_actions, n_humans, n_goals)
        over_goals_HA = np.array([formulas.policy_over_goals(weight_HG[h], pi_AHG[:, h]) for h in range(n_humans)])
        joint_U = formulas.joint_policy(over_goals_HA, profiles.action_UH) if prior is None else prior.joint(m)
        worth_K = formulas.discounts(params.rate_r, case.duration_K) * case.vr_N[work.succ_K]
        q_R = formulas.expected_over_humans(joint_U, case.future(m, profiles.played_UR, worth_K))
        same(found["qr"][m], q_R)
        pi_R = formulas.robot_policy(q_R, params.beta_r)
        expected_URX = case.expected(m, profiles.played_UR, params.rate_h)
        for h in range(n_humans):
            for g in range(n_goals):
                if prior is None:
                    others_HA = over_goals_HA.copy()
                    others_HA[h] = pi_AHG[:, h, g]
                    given_U = formulas.joint_policy(others_HA, profiles.action_UH)
                else:
                    given_U = prior.joint(m, profiles.humans[h], g)
                same(found["ve"][m, h, g], formulas.effective_value(given_U, pi_R, expected_URX[:, :, h * n_goals + g]))
            same(found["xh"][m, h], formulas.power(found["ve"][m, h], weight_HG[h], params.zeta))
        u_r = formulas.reward(found["xh"][m], params.xi, params.eta)
        weight_K = formulas.duration_weights(params.rate_r, case.duration_K)
        weight_R = formulas.expected_over_humans(joint_U, case.future(m, profiles.played_UR, weight_K))
        same(found["vr"][m], formulas.robot_value(pi_R, weight_R, float(u_r), q_R))


@given(cases())
@settings(max_examples=20, deadline=None)
def test_profiles_are_played_as_the_formulas_say(case: Case) -> None:
    profiles, goals = case.setting.profiles, case.setting.goals
    _, pi_MAX = run_humans(case)
    q_MR = -np.random.default_rng(0).random((N_STATES, len(profiles.robot_profiles))) - 0.1
    weight_NX = case.work.weight_NX
    play = JointPolicy(case.work.block, pi_MAX, weight_NX, np.zeros((0, 0)), q_MR, case.params.beta_r, profiles)
    weight_HG = weight_NX[0].reshape(len(goals.humans), goals.n_goals)
    for m, weight_J in enumerate(play.profile_weights()):
        pi_AHG = pi_MAX[m].reshape(profiles.n_actions, *weight_HG.shape)
        policy_HA = np.array([formulas.policy_over_goals(weight_G, pi_AHG[:, h]) for h, weight_G in enumerate(weight_HG)])
        joint_U = formulas.joint_policy(policy_HA, profiles.action_UH)
        expected_UR = formulas.profile_probabilities(joint_U, formulas.robot_policy(q_MR[m], case.params.beta_r))
        same(weight_J[profiles.played_UR], expected_UR)


@pytest.mark.parametrize("rate", [0.0, 1e-9, 0.05, 3.0])
def test_one_step_is_a_transition_that_takes_1(rate: float) -> None:
    same(formulas.discounts(rate, np.ones(1))[0], formulas.discount_factor(rate))
    same(formulas.duration_weights(rate, np.ones(1))[0], formulas.step_weight(rate))


def test_what_a_step_weighs_tends_to_1_without_discount() -> None:
    assert formulas.step_weight(1e-12) == pytest.approx(1.0)
    assert formulas.step_weight(0.0) == 1.0


def test_weights_that_are_all_0_count_alike() -> None:
    assert formulas.normalised(np.zeros(4)).tolist() == [0.25] * 4
