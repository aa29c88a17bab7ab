"""The solution of a world: values, policies and the Markov chain, read from memory or from a store on demand."""

from __future__ import annotations

import math
import weakref
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.level_blocks import Block, LevelBlocks
from empo_bi.errors import StoreError, StoreMismatchError
from empo_bi.memory.profiler import MemoryProfiler
from empo_bi.memory.storage_report import Account, MemoryReport
from empo_bi.problem.asked_prior import AskedPrior
from empo_bi.problem.callbacks import terminal_values_of
from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.problem.params import Params
from empo_bi.problem.profiles import Profiles
from empo_bi.problem.protocols import Goal, JointPrior
from empo_bi.results.chain import MarkovChain
from empo_bi.results.error_bounds import ErrorBounds
from empo_bi.results.fixed_goals import PursuedGoals
from empo_bi.results.goal_names import GoalLike
from empo_bi.results.human_policies import HumanPolicies
from empo_bi.results.joint_policy import JointPolicy
from empo_bi.results.policies import TabularHumanPolicyPrior, TabularRobotPolicy
from empo_bi.results.state_report import GoalRow, StateReport
from empo_bi.results.values import ByLevel, Values
from empo_bi.results.views import GoalValueView, PolicyView, RobotPolicyView, StateValueView
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.compilation import compilations
from empo_bi.runtime.hooks import Displayed, provider_of
from empo_bi.store.solved_levels import ARRAYS, SolvedLevels
from empo_bi.sweep import formulas
from empo_bi.sweep.phases import Setting
from empo_bi.types import Bodies, FloatArray, IndexArray
from empo_bi.world.as_model import Model

if TYPE_CHECKING:
    import pandas
    import xarray

    from empo_bi.results.rollouts import Rollouts

_NO_JOINT, _NO_WEIGHTS = np.zeros((0, 0)), np.zeros((1, 0))


class Solution(Displayed):
    """Both phases of a world, solved for one set of parameters. Arrays are read only when they are needed.

    Attributes
    ----------
    world, dag, params
    humans, robots : lists of agents
    memory_profile : the :class:`MemoryProfiler` of the run, or None
    """

    def __init__(
        self, blocks: LevelBlocks, setting: Setting, params: Params, results: SolvedLevels, *,
        human_params: Params | None = None, prior: JointPrior | None = None, has_robot: bool = True, owns_dag: bool = False,
        users: weakref.WeakSet[Solution] | None = None, memory_profile: MemoryProfiler | None = None,
    ) -> None:  # fmt: skip
        """``human_params`` are the parameters of phase 1 if they differ; ``prior`` is the user's own prior, if any;
        ``users`` is shared by the solutions of one DAG: the last one to close also closes the DAG if ``owns_dag``."""
        self.dag, self.params, self.results, self.memory_profile = blocks.dag, params, results, memory_profile
        self.human_params, self._owns_dag = human_params or params, owns_dag
        # Open solutions of the same DAG.
        self._users: weakref.WeakSet[Solution] = weakref.WeakSet() if users is None else users
        self._users.add(self)
        self.blocks, self.setting, self._given_prior, self.has_robot = blocks, setting, prior, has_robot
        self.was_there = False  # whether it was opened, not solved
        self.is_quiet = compilations.are_quiet  # reading results of a quiet call is quiet as well
        self.missing: str | None = None  # what the humans' policies depend on, where that is not at hand
        self.humans, self.robots = list(setting.profiles.humans), list(setting.profiles.robots)

    @property
    def world(self) -> Any:
        """The user's world."""
        return self.dag.world

    @property
    def model(self) -> Model:
        """What the engine sees of the world."""
        return self.dag.model

    @property
    def goal_columns(self) -> GoalColumns:
        return self.setting.goals

    @property
    def profiles(self) -> Profiles:
        return self.setting.profiles

    @property
    def unit_durations(self) -> bool:
        """Whether every transition takes 1."""
        return self.setting.unit_durations

    _display = "Solution.display"

    def __repr__(self) -> str:
        try:
            return f"<Solution: {self.summary()}>"
        except StoreError as error:  # it was closed, or its files are gone
            return f"<Solution that can no longer be read: {error}>"

    def __enter__(self) -> Solution:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free memory and delete temporary stores; the DAG is closed with the last solution that uses it."""
        self.results.close()
        self._users.discard(self)
        if self._owns_dag and not self._users:
            self.dag.close()

    # --- values -------------------------------------------------------------------------------------------------------

    def rows(self, name: str, t: int, place_M: IndexArray | None = None) -> FloatArray:
        """An array of level ``t`` as float64, for all its states or for those at ``place_M``."""
        array = self._stored(name, t)
        return (array if place_M is None else array[place_M]).astype(np.float64)

    def pieces(self, name: str, t: int, places: Bodies) -> Iterator[tuple[slice, npt.NDArray[np.floating]]]:
        """Some rows of an array of level ``t``, as stored, a few megabytes at a time: which of ``places``, and the rows.

        ``places`` ascend. On disk, only the chunks with these rows are read, and none are cached.
        """
        self._check_exists(name, t)
        return self.results.pieces(t, name, places)

    def _stored(self, name: str, t: int) -> npt.NDArray[np.floating]:
        """An array of level ``t`` in its stored type, if there is one."""
        self._check_exists(name, t)
        return self.results.get(t, name)

    def _check_exists(self, name: str, t: int) -> None:
        reason = self.why_missing(name, t)
        if reason is not None:
            raise ValueError(reason)

    def why_missing(self, name: str, t: int) -> str | None:
        """Why there is no array of a name (``vh``, ``ve``, ``xh``, ``qr``, ``vr``) on level ``t``; None if there is one."""
        if name == "vh" and self._given_prior is not None:
            return "phase 1 was not solved, since you gave a prior of your own; solve without it"
        if name != "vh" and not self.has_robot:
            return "phase 2 was not solved (phase_2=False); solve both phases to get its values"
        if self.results.has(t, name):
            return None
        return (
            f"{name} was not stored when this was solved, only {', '.join(n for n in ARRAYS if self.results.has(t, n))}; "
            "solve again (in a batch, with 'keep: values')"
        )

    @property
    def has_own_prior(self) -> bool:
        """Whether the humans' policies come from the user's own prior instead of phase 1."""
        return self._given_prior is not None

    def _by_level(self, name: str) -> ByLevel:
        return ByLevel(self.dag.horizon + 1, lambda t: self.rows(name, t))

    @cached_property
    def values(self) -> Values:
        u_r = ByLevel(self.dag.horizon + 1, self.rewards)
        read = self._by_level
        return Values(Vh_m=read("vh"), Vh_e=read("ve"), X_h=read("xh"), U_r=u_r, V_r=read("vr"))

    def rewards(self, t: int, place_M: IndexArray | None = None) -> FloatArray:
        r""":math:`U_r = -(\frac{1}{|H|} \sum_h X_h^{-\xi})^\eta`; 0 for terminal states."""
        return self.reward_of(self.rows("xh", t, place_M))

    def reward_of(self, x_SH: FloatArray) -> FloatArray:
        """U_r (S,) of states with powers ``x_SH``; 0 for terminal states, whose powers are 0."""
        u_S = np.zeros(len(x_SH))
        goes_on = (x_SH > 0).all(axis=1)
        with np.errstate(over="ignore"):
            u_S[goes_on] = formulas.reward(x_SH[goes_on], self.params.xi, self.params.eta)
        if not np.isfinite(u_S).all():
            raise self.results.damaged("array 'xh' does not fit the parameters xi and eta: a reward is infinite")
        return u_S

    @property
    def Q_r(self) -> ByLevel:
        """(S, R) by level: the value of each robot profile, in the order of :attr:`robot_profiles`; 0 if terminal."""
        return self._by_level("qr")

    @property
    def pi_r(self) -> ByLevel:
        """(S, R) by level: the robots' policy; 0 for terminal states."""
        return ByLevel(self.dag.horizon + 1, self.robot_policies)

    def robot_policies(self, t: int, place_M: IndexArray | None = None) -> FloatArray:
        """The robots' policy, (S, R), in all states of a level or in those at ``place_M``; 0 for terminal states."""
        return self.robot_policy_of(self.rows("qr", t, place_M))

    def robot_policy_of(self, q_SR: FloatArray) -> FloatArray:
        """The robots' policy (S, R) where robot profiles have the values ``q_SR``; 0 for terminal states."""
        goes_on = (q_SR < 0).all(axis=1)
        pi_SR = np.zeros_like(q_SR)
        if goes_on.any():
            pi_SR[goes_on] = formulas.softmax(self._logits(q_SR[goes_on]))
        return pi_SR

    @property
    def robot_profiles(self) -> list[tuple[int, ...]]:
        return self.setting.profiles.robot_profiles

    @property
    def pi_h(self) -> ByLevel:
        """(S, H, G, A) by level: the humans' policies by goal, computed from stored values; 0 for terminal states."""
        return ByLevel(self.dag.horizon + 1, self.human_policies.of_level)

    @property
    def goals(self) -> dict[int, list[Goal]]:
        """The goals of each human, in the order of the arrays."""
        goals = self.setting.goals
        return {human: [goal for goal in goals.goals[h] if goal is not None] for h, human in enumerate(goals.humans)}

    @cached_property
    def human_policies(self) -> HumanPolicies:
        if self._given_prior is not None:
            raise ValueError("this was solved with a prior of your own, which has the humans' policies; ask that prior")
        if self.missing is not None:
            raise StoreMismatchError(
                f"the humans' policies depend on {self.missing}, which a folder cannot hold; call solve with the same "
                "arguments: it opens what is there"
            )
        return HumanPolicies(
            self.blocks, self.setting, self.human_params, lambda t: self._stored("vh", t), is_quiet=self.is_quiet
        )

    # --- policies -----------------------------------------------------------------------------------------------------

    @cached_property
    def prior(self) -> Any:
        """The humans' policies, by goal and over all goals: a :class:`TabularHumanPolicyPrior`, or your own prior."""
        if self._given_prior is not None:
            return self._given_prior
        generator = self.setting.goals.generator
        prior = TabularHumanPolicyPrior(self.world, self.humans, generator, PolicyView(self.human_policies))
        prior.solution = self
        return prior

    @cached_property
    def asked_prior(self) -> AskedPrior:
        """Your own prior, as it is asked."""
        assert self._given_prior is not None
        return AskedPrior(self._given_prior, self.setting.profiles, self.setting.goals)

    @cached_property
    def robot_policy(self) -> TabularRobotPolicy:
        view = RobotPolicyView(self.dag, self.setting.profiles, self.robot_policies)
        policy = TabularRobotPolicy(self.world, self.robots, view)
        policy.solution = self
        return policy

    @cached_property
    def Vh(self) -> GoalValueView:
        """``Vh[state][human][goal]``, phase 1; zeros are left out."""
        return GoalValueView(self.dag, self.setting.goals, lambda t, place_M: self.rows("vh", t, place_M))

    @cached_property
    def Vhe(self) -> GoalValueView:
        """``Vhe[state][human][goal]``, with the robot; zeros are left out."""
        return GoalValueView(self.dag, self.setting.goals, lambda t, place_M: self.rows("ve", t, place_M))

    @cached_property
    def Vr(self) -> StateValueView:
        """``Vr[state]``, for every state."""
        return StateValueView(self.dag, lambda t, place_M: self.rows("vr", t, place_M))

    # --- the chain ----------------------------------------------------------------------------------------------------

    @cached_property
    def markov_chain(self) -> MarkovChain:
        return MarkovChain(self.dag, self._profile_weights, is_quiet=self.is_quiet)

    def _profile_weights(self, t: int) -> Iterator[tuple[Block, FloatArray]]:
        """Blocks of a level with the probability of each (state, profile) under both policies."""
        return ((joint.block, joint.profile_weights()) for joint in self.joint_policies(t))

    def joint_policies(
        self, t: int, place_M: IndexArray | None = None, pursued: PursuedGoals | None = None
    ) -> Iterator[JointPolicy]:
        """Blocks of a level, or of its states at ``place_M``, with both policies; terminal states are left out.

        Humans act by their policies averaged over goals, except those who pursue a fixed goal.
        """
        profiles, goals = self.setting.profiles, self.setting.goals
        pursued = pursued or PursuedGoals.of(goals, None)
        q_SR = self.rows("qr", t)
        if self._given_prior is None:
            for work, pi_MAX in self.human_policies.blocks_of(t, place_M):
                q_MR = self._checked_values(t, q_SR[work.block.place_M])
                pursued.check_states(t, work.block.place_M)
                weight_NX = pursued.weights(work.weight_NX)
                yield JointPolicy(work.block, pi_MAX, weight_NX, _NO_JOINT, q_MR, self.params.beta_r, profiles)
            return
        fixed_1X = pursued.single_column()
        for block in self.blocks.of_level(t) if place_M is None else self.blocks.of_states(t, place_M):
            pursued.check_states(t, block.place_M)
            asked = self.asked_prior
            states = self.dag.states(t, block.place_M) if asked.wants_states else None
            joint_MU, joint_MXU = asked.joint(states, fixed_1X, asked.given(self.dag, t, block.place_M))
            for x in pursued.column_of.values():
                joint_MU = np.ascontiguousarray(joint_MXU[:, x])
            pi_MAX = np.zeros((len(block.place_M), profiles.n_actions, 0))
            q_MR = self._checked_values(t, q_SR[block.place_M])
            yield JointPolicy(block, pi_MAX, _NO_WEIGHTS, joint_MU, q_MR, self.params.beta_r, profiles)

    def _checked_values(self, t: int, q_MR: FloatArray) -> FloatArray:
        """The robot's values in states that are not terminal; they must be below 0, which a foreign store may violate."""
        if self.has_robot:
            if not (q_MR < 0).all():
                raise self.results.damaged(f"level {t}, array 'qr': a robot's value is 0 in a state that is not terminal")
            self._logits(q_MR)
        return q_MR

    def _logits(self, q_MR: FloatArray) -> FloatArray:
        """``-beta_r log(-Q_r)``: the robots' policy is proportional to its exponential. The largest is always finite."""
        with np.errstate(over="ignore"):
            logit_MR = formulas.robot_logits(q_MR, self.params.beta_r)
        if not np.isfinite(logit_MR if np.isfinite(self.params.beta_r) else q_MR).all():
            raise self.results.damaged(f"array 'qr' does not fit beta_r={self.params.beta_r}")
        return logit_MR

    def terminal_values(self, t: int, place_M: IndexArray) -> FloatArray:
        """What terminal states of a level are worth to the robot, (M,): what was stored, or a user's function says again."""
        function = self.params.terminal_function
        if function is None:
            return np.full(len(place_M), self.params.terminal_Vr)
        if self.results.has(t, "vr"):
            return self.rows("vr", t, place_M)
        return terminal_values_of(function, self.dag.states(t, place_M))

    @cached_property
    def reached(self) -> ByLevel:
        """(S,) by level: the probability that each state is ever reached from the initial one, under both policies.

        If a sub-problem has several states to start with, a run begins in each of them with the same probability.
        """
        from empo_bi.results.occupancy import reached_levels  # which imports this module

        with compilations.quiet(self.is_quiet):
            mass_TS = reached_levels(self)
        return ByLevel(self.dag.horizon + 1, lambda t: mass_TS[t])

    @suggests_names()
    def rollouts(self, n: int, seed: int | Sequence[int] = 0, goals: Mapping[int, GoalLike] | None = None) -> Rollouts:
        """Draw ``n`` episodes under both policies.

        Parameters
        ----------
        n : int
        seed : int, or a sequence of ints
            The same seed gives the same episodes.
        goals : {human: goal}, optional
            Goals that some humans pursue from beginning to end, each from ``solution.goals[human]``. The other humans act
            by their policies averaged over all goals. The robot does not know these goals; its policy stays the same.
        """
        from empo_bi.results.rollouts import draw_episodes

        with compilations.quiet(self.is_quiet):
            return draw_episodes(self, n, seed, goals)

    # --- labelled -----------------------------------------------------------------------------------------------------

    def to_xarray(self) -> xarray.Dataset:
        """Everything as a labelled dataset that reads its arrays on demand.

        See :func:`empo_bi.analysis.to_xarray.dataset_of`; needs the extra ``analysis``.
        """
        return provider_of("Solution.to_xarray")(self)

    def to_pandas(self, quantity: str, **choices: Any) -> pandas.DataFrame:
        """A tidy table of a quantity, with one number per row: ``solution.to_pandas("X_h", levels=3)``.

        See :func:`empo_bi.analysis.to_pandas.table_of` for the choices; needs the extra ``analysis``.
        """
        return provider_of("Solution.to_pandas")(self, quantity, **choices)

    # --- looking at it ------------------------------------------------------------------------------------------------

    def at(self, state: Hashable) -> StateReport:
        """All numbers of one state; :class:`InvalidStateError` if it cannot be reached."""
        t, place = self.dag.place_of(state)
        places = np.array([place])
        goals = self.setting.goals
        is_terminal = not any(True for _ in self.blocks.of_states(t, places))
        table: dict[int, list[GoalRow]] = {}
        if not is_terminal:
            shape = (len(self.humans), goals.n_goals)
            weight_X, has_X = goals.weights(t), goals.has(t)
            weight_HG = weight_X[place if len(weight_X) > 1 else 0].reshape(shape)
            has_HG = has_X[place if len(has_X) > 1 else 0].reshape(shape)
            before_HG, pi_HGA = np.full(shape, math.nan), np.full((*shape, self.setting.profiles.n_actions), math.nan)
            if self._given_prior is None:
                before_HG = self.rows("vh", t, places)[0]
            if self._given_prior is None and self.missing is None:
                pi_HGA = self.human_policies.of_states(t, places)[1][0]
            after_HG = self.rows("ve", t, places)[0] if self.has_robot else np.full(shape, math.nan)
            for h, human in enumerate(self.humans):
                table[human] = [
                    GoalRow(goal, float(weight_HG[h, g]), float(before_HG[h, g]), float(after_HG[h, g]), pi_HGA[h, g])
                    for g, goal in enumerate(goals.goals[h])
                    if has_HG[h, g] and goal is not None
                ]
        optimistic = self.human_params.optimistic
        if not self.has_robot:
            return StateReport(state, t, is_terminal, table, {}, {}, {}, math.nan, math.nan, optimistic)
        power = dict(zip(self.humans, self.rows("xh", t, places)[0].tolist(), strict=True))
        q_R, pi_R = self.rows("qr", t, places)[0].tolist(), self.robot_policies(t, places)[0].tolist()
        return StateReport(
            state=state,
            level=t,
            is_terminal=is_terminal,
            goals=table,
            power={} if is_terminal else power,
            robot_policy={} if is_terminal else dict(zip(self.robot_profiles, pi_R, strict=True)),
            Q_r={} if is_terminal else dict(zip(self.robot_profiles, q_R, strict=True)),
            U_r=float(self.rewards(t, places)[0]),
            V_r=float(self.rows("vr", t, places)[0]),
            optimistic=optimistic,
        )

    def explore(self, *, height: int = 760, **options: object) -> object:
        """The explorer inside a notebook: the page that :func:`empo_bi.write_report` writes, in a frame.

        Parameters
        ----------
        height : int
            Of the frame, in pixels.
        options
            ``min_probability``, ``max_states``, ``title``, ``progress``: as for :func:`empo_bi.write_report`.
        """
        explorer: object = provider_of("Solution.explore")(self, height=height, **options)
        return explorer

    @cached_property
    def precision(self) -> ErrorBounds:
        """How exact the numbers are. Reading the first bound takes a pass over all levels."""
        rest, work = self.setting.precision.rest, self.setting.precision.work
        is_known = self.dag.precision in ("exact", "float64")
        return ErrorBounds(rest, work, self._measured if is_known else None)

    def _measured(self) -> dict[str, FloatArray]:
        with compilations.quiet(self.is_quiet):
            return provider_of("Solution.precision")(self)

    def memory_report(self) -> MemoryReport:
        """Bytes of all arrays, and how much smaller they are than in plainer ways to store them."""
        on_disk = self.results.compressed_bytes()
        n_humans, n_columns, rest = len(self.humans), self.setting.goals.n_columns, np.dtype(self.setting.precision.rest)
        names = {"vh": "V_h", "ve": "V_h with the robot", "xh": "X_h", "qr": "Q_r", "vr": "V_r"}
        widths = {"vh": n_columns, "ve": n_columns, "xh": n_humans, "qr": len(self.robot_profiles), "vr": 1}
        accounts = []
        for array in names:
            if self.results.has(0, array):
                n = self.dag.n_states * widths[array]
                packed = n * (rest.itemsize if array in ("vh", "ve") else 8)
                compressed = None if on_disk is None else on_disk.get(array, 0)
                accounts.append(Account(names[array], 8 * n, 4 * n, packed, compressed))
        bits = -(-n_columns // 8)
        said = {"attained": (n_columns, bits), "listed": (n_columns, bits), "weight": (n_columns, 8 * n_columns)}
        said["joint"] = (len(self.profiles.action_UH), 8 * len(self.profiles.action_UH))
        for array in sorted(self.results.answers):
            (numbers, packed), n = said[array], self.dag.n_states
            compressed = None if on_disk is None else on_disk.get(array, 0)
            accounts.append(Account(f"{array}, as stored", 8 * numbers * n, 4 * numbers * n, packed * n, compressed))
        # Policies are computed on demand; this is what they would take.
        n = self.dag.n_states * n_columns * self.setting.profiles.n_actions
        nothing = None if on_disk is None else 0
        return MemoryReport(self.summary(), [*accounts, Account("policies of the humans", 8 * n, 4 * n, 0, nothing)])

    def summary(self) -> str:
        """Sizes, the values of the initial state, and where everything is."""
        parts = [f"{self.dag.n_states:,} states on levels 0 to {self.dag.horizon}"]
        if self.has_robot and self.results.has(0, "vr"):
            t, place = self.dag.place_of(self.dag.begins[0]) if self.dag.begins else (0, 0)
            power = ", ".join(f"{x:.4g}" for x in self.values.X_h[t][place])
            parts.append(f"V_r = {self.values.V_r[t][place]:.7g} at the start, the humans' power {power}")
        return "; ".join([*parts, self.results.describe()])
