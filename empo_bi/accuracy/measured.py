"""The pass that finds how far a solution's numbers may be from exact ones.

Everything is computed once more, in float64 and with a bound of what float64 itself does (see ``arithmetic``), from the last
level to the first. How far a stored number is from the number found here, and that bound, are together a bound for the
stored number, wherever its error comes from: resting in float16, sums in float32, or what policies make of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from empo_bi.accuracy.human_bounds import human_bounds
from empo_bi.accuracy.robot_bounds import robot_bounds
from empo_bi.dag.level_blocks import Block
from empo_bi.problem.callbacks import beliefs_of
from empo_bi.problem.given_policies import GivenPolicies
from empo_bi.problem.goal_columns import bits_of
from empo_bi.results.error_bounds import QUANTITIES
from empo_bi.results.solution import Solution
from empo_bi.runtime.progress import LevelBar
from empo_bi.sweep.formulas import step_weight
from empo_bi.sweep.level_inputs import Level
from empo_bi.sweep.phases import NO_JOINT, BlockInputs, put_terminal
from empo_bi.sweep.value_tables import RowPlan, Rows, Table, rows_of
from empo_bi.types import Array, FloatArray, IndexArray, Json

SAFETY = 1.001  # bounds are sums with rounding errors themselves
_STEEP = 690.0  # a rate of discount beyond which the engine's factor is not the exact one any more

Found = dict[str, Array]


class ErrorPass:
    """Both phases of a solution once more, with bounds."""

    def __init__(self, solution: Solution) -> None:
        self.solution = solution
        self.setting = solution.setting
        self.params, self.human_params = solution.params, solution.human_params
        self.has_humans, self.has_robot = not solution.has_own_prior, solution.has_robot
        n = self.setting.goals.n_columns
        self._tables = {name: Table(n, "float64") for name in ("vh", "d_vh", "ve", "d_ve")}
        self._tables |= {name: Table(0, "float64") for name in ("vr", "d_vr")}

    def bounds(self) -> dict[str, FloatArray]:
        """By quantity, the bound of each level, (T + 1,)."""
        dag = self.solution.dag
        rows = rows_of(dag)
        found = {name: np.zeros(dag.horizon + 1) for name in self._quantities()}
        with LevelBar("bounds of errors", dag.horizon + 1, True, n_states=dag.n_states) as bar:
            for t in range(dag.horizon, -1, -1):
                for name, bound in self._level(t, rows).items():
                    found[name][t] = bound
                bar.level(t, dag.level_sizes[t])
        return found

    def _level(self, t: int, rows: Rows) -> dict[str, float]:
        """By quantity, the largest bound of a level."""
        dag, goals, largest = self.solution.dag, self.setting.goals, dict.fromkeys(self._quantities(), 0.0)
        plan = rows.begin(t, dag.levels.members(t))
        for table in self._tables.values():
            table.begin(plan)
        states = dag.states(t) if self._asks else None
        level = Level(t, plan, rows, goals.attained(t), goals.weights(t), goals.has(t), states, self._given_at(t))
        is_terminal = np.ones(len(plan.slot_S), dtype=np.bool_)
        self._end(plan, level)
        stored = {name: self._stored(name, t) for name in ("vh", "ve", "xh", "qr", "vr")}
        for block, pi_MAX in self._blocks(t):
            work = level.work(block).with_durations(dag.model if not self.setting.unit_durations else None)
            here = {name: None if array is None else array[block.place_M] for name, array in stored.items()}
            for name, bound in self._compared(self._computed(work), here, pi_MAX, work).items():
                largest[name] = max(largest[name], bound)
            is_terminal[block.place_M] = False
        if self.has_robot and self.params.terminal_function is not None:
            ended = np.flatnonzero(is_terminal)
            self._put_worth(plan.slot_S[ended], self.solution.terminal_values(t, ended))
        return largest

    def _quantities(self) -> list[str]:
        kept = self._kept
        needs = {"Vh_m": "vh", "pi_h": "vh", "Vh_e": "ve", "X_h": "xh", "U_r": "xh", "Q_r": "qr", "pi_r": "qr", "V_r": "vr"}
        return [name for name in QUANTITIES if needs[name] in kept]

    @cached_property
    def _kept(self) -> set[str]:
        """Names of arrays that all levels have."""
        levels, has = range(self.solution.dag.horizon + 1), self.solution.results.has
        return {name for name in ("vh", "ve", "xh", "qr", "vr") if all(has(t, name) for t in levels)}

    def _stored(self, name: str, t: int) -> FloatArray | None:
        if name not in self._kept:
            return None
        array: FloatArray = self.solution.rows(name, t)
        return array.reshape(len(array), -1) if name in ("vh", "ve") else array

    @property
    def _asks(self) -> bool:
        has_belief = self.human_params.believed_others_policy is not None
        is_asked = self.solution.has_own_prior and self.solution.asked_prior.wants_states
        return is_asked or has_belief or not self.setting.unit_durations

    def _given_at(self, t: int) -> Callable[[IndexArray], GivenPolicies | None]:
        if self.has_humans:
            return lambda place_M: None
        return partial(self.solution.asked_prior.given, self.solution.dag, t)

    def _blocks(self, t: int) -> Iterator[tuple[Block, Array | None]]:
        """Blocks of a level, with the policies that users read, if there are some."""
        if self.has_humans and "vh" in self._kept:
            return ((work.block, pi_MAX) for work, pi_MAX in self.solution.human_policies.blocks_of(t))
        return ((block, None) for block in self.solution.blocks.of_level(t))

    def _end(self, plan: RowPlan, level: Level) -> None:
        """All states as if they were terminal; those that are not are computed afterwards."""
        attained_SX = bits_of(level.attained_SB, self.setting.goals.n_columns)
        for name, rate in (("vh", self.human_params.rate_h), ("ve", self.params.rate_h)):
            put_terminal(self._tables[name], plan.slot_S, attained_SX, self.setting.factor(rate))
            self._tables[f"d_{name}"].write[plan.slot_S] = 0.0
        if not callable(self.params.terminal_Vr):
            self._put_worth(plan.slot_S, np.full(len(plan.slot_S), self.params.terminal_Vr))

    def _put_worth(self, slot_M: IndexArray, value_M: FloatArray) -> None:
        """What terminal states are worth to the robot, which counts as exact, as they are read one level below."""
        rate = self.params.rate_r
        worth_M = value_M * (self.setting.factor(rate) or 1.0)
        self._tables["vr"].write[slot_M] = worth_M
        self._tables["d_vr"].write[slot_M] = np.abs(worth_M) * _slack(rate, 1.0) * 2.0**-53 if rate else 0.0

    def _computed(self, work: BlockInputs) -> Found:
        found: Found = {}
        n, n_columns, n_actions = len(work.slot_M), self.setting.goals.n_columns, self.setting.profiles.n_actions
        if self.has_humans:
            found |= {name: np.empty((n, n_actions, n_columns)) for name in ("pi_h", "d_pi_h")}
            found |= {name: np.empty((n, n_columns)) for name in ("Vh_m", "d_Vh_m")}
            self._run_humans(work, found)
        else:
            found |= {name: np.empty((n, n_actions, 0)) for name in ("pi_h", "d_pi_h")}
        if self.has_robot:
            n_humans, n_robots = len(self.setting.goals.humans), len(self.setting.profiles.robot_profiles)
            widths = {
                "Vh_e": (n_columns,),
                "X_h": (n_humans,),
                "U_r": (),
                "Q_r": (n_robots,),
                "pi_r": (n_robots,),
                "V_r": (),
            }
            for name, width in widths.items():
                found |= {name: np.empty((n, *width)), f"d_{name}": np.empty((n, *width))}
            self._run_robot(work, found)
        return found

    def _run_humans(self, work: BlockInputs, found: Found) -> None:
        profiles, params, tables = self.setting.profiles, self.human_params, self._tables
        belief_NHU = profiles.uniform_belief_HU[np.newaxis]
        if params.believed_others_policy is not None:
            belief_NHU = beliefs_of(params.believed_others_policy, profiles, work.states or [])
        human_bounds(
            work.block.row_M, work.slot_M, *work.transitions, work.discounts(params.rate_h), tables["vh"].read,
            tables["d_vh"].read, work.attained_MB, work.has_NX, belief_NHU, profiles.all_UR, profiles.own_HAO,
            params.beta_h, self.setting.factor(params.rate_h), self._slack(params.rate_h, work), params.optimistic,
            found["pi_h"], found["d_pi_h"], found["Vh_m"], found["d_Vh_m"], tables["vh"].write, tables["d_vh"].write,
        )  # fmt: skip

    def _run_robot(self, work: BlockInputs, found: Found) -> None:
        profiles, params, tables = self.setting.profiles, self.params, self._tables
        joint = NO_JOINT
        if not self.has_humans:
            joint = self.solution.asked_prior.joint(work.states, work.has_NX, work.given)
        robot_bounds(
            work.block.row_M, work.slot_M, *work.transitions, work.discounts(params.rate_h), work.discounts(params.rate_r),
            work.duration_weights(params.rate_r), tables["ve"].read, tables["d_ve"].read, tables["vr"].read,
            tables["d_vr"].read, work.attained_MB, work.has_NX, work.weight_NX, found["pi_h"], found["d_pi_h"], *joint,
            profiles.played_UR, profiles.action_UH, profiles.n_profiles, params.beta_r,
            self.setting.factor(params.rate_h), self.setting.factor(params.rate_r), self._slack(params.rate_h, work),
            self._slack(params.rate_r, work), step_weight(params.rate_r), params.rate_r > 0, params.zeta, params.xi,
            params.eta, *(found[name] for q in ("Vh_e", "X_h", "U_r", "Q_r", "pi_r", "V_r") for name in (q, f"d_{q}")),
            tables["ve"].write, tables["d_ve"].write, tables["vr"].write, tables["d_vr"].write,
        )  # fmt: skip

    def _slack(self, rate: float, work: BlockInputs) -> float:
        return _slack(rate, float(work.duration_K.max(initial=0.0)) if len(work.duration_K) else 1.0)

    def _compared(self, found: Found, stored: Json, pi_MAX: Array | None, work: BlockInputs) -> dict[str, float]:
        """By quantity, how far stored numbers of a block may be off at most."""
        has_NX = work.has_NX.astype(np.bool_)
        bounds = {}
        if pi_MAX is not None:
            bounds["Vh_m"] = _absolute(stored["vh"], found["Vh_m"], found["d_Vh_m"], has_NX)
            bounds["pi_h"] = min(1.0, _absolute(pi_MAX, found["pi_h"], found["d_pi_h"], has_NX[:, np.newaxis]))
        if stored["ve"] is not None:
            bounds["Vh_e"] = _absolute(stored["ve"], found["Vh_e"], found["d_Vh_e"], has_NX)
        if stored["xh"] is not None:
            bounds["X_h"] = _relative(stored["xh"], found["X_h"], found["d_X_h"])
            with np.errstate(over="ignore"):
                d_U_r = found["d_U_r"] * np.abs(found["U_r"])
            bounds["U_r"] = _relative(self.solution.reward_of(stored["xh"]), found["U_r"], d_U_r)
        if stored["qr"] is not None:
            bounds["Q_r"] = _relative(stored["qr"], found["Q_r"], found["d_Q_r"])
            pi_MR = self.solution.robot_policy_of(stored["qr"])
            bounds["pi_r"] = min(1.0, _absolute(pi_MR, found["pi_r"], found["d_pi_r"]))
        if stored["vr"] is not None:
            bounds["V_r"] = _relative(stored["vr"], found["V_r"], found["d_V_r"])
        return bounds


def _slack(rate: float, longest: float) -> float:
    """By how many units a discount is off: its rate is rounded, and the exponential makes the most of that."""
    return 4 + 4 * rate * longest if rate < _STEEP else 2.0**53


def _absolute(stored: Any, number: Any, bound: Any, counts: Any = True) -> float:
    with np.errstate(invalid="ignore"):
        off = np.where(counts, SAFETY * (np.abs(stored.astype(np.float64) - number) + bound), 0.0)
    return _largest(off)


def _relative(stored: Any, number: Any, bound: Any) -> float:
    """Relative to the exact number, which is nearer to 0 by the bound than the one that was found, at the worst."""
    with np.errstate(all="ignore"):
        least = np.abs(number) - bound
        off = np.where(least > 0, SAFETY * (np.abs(stored - number) + bound) / least, np.inf)
    return _largest(off)


def _largest(off: Any) -> float:
    return float(np.where(np.isnan(off), np.inf, off).max(initial=0.0))


def bounds_of(solution: Solution) -> dict[str, FloatArray]:
    """By quantity, a bound of the error on each level; behind ``solution.precision``."""
    return ErrorPass(solution).bounds()
