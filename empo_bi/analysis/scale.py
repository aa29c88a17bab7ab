r"""What V_r and the humans' values mean: the same humans with other robots, each evaluated exactly.

.. math:: \text{share} = \frac{V_r - V_r^0}{V_r^1 - V_r^0}

where :math:`V_r^0` is a robot that does nothing, and :math:`V_r^1` the best of all that are compared.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from empo_bi.analysis import html_parts as parts
from empo_bi.errors import EmpoOverflowError, GoalError, MemoryLimitError
from empo_bi.problem.goal_columns import bits_of
from empo_bi.results.solution import Solution
from empo_bi.results.state_report import what_V_h_is
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.byte_sizes import Size
from empo_bi.runtime.wording import short_repr
from empo_bi.solving.evaluation import Robots, level_with
from empo_bi.solving.options import Resources, resources_from
from empo_bi.types import Arrays, BoolArray, FloatArray, Json
from empo_bi.world.still import STILL_NAMES, still_action

COMPUTED, NOTHING, RANDOM, BEST = "as computed", "does nothing", "acts at random", "takes its best action"
SAME = 1e-6  # relative difference of V_r that is rounding: as many digits as are shown
PASS_PAIRS = 30_000_000  # pairs of a state and an action profile, which take a few seconds


@dataclass(frozen=True)
class RobotRow:
    """One robot, and what it is worth in a state with the humans of a solution.

    Attributes
    ----------
    robot : what it does, in words
    V_r, U_r : float; -inf where it leaves a human without any goal that can be attained
    power : {human: X_h}
    values : {human: V_h^e by goal}, in the order of ``solution.goals[human]``
    mean_value : {human: the mean of these}, by weight, over goals that are not attained in the state; nan if there is none
    """

    robot: str
    V_r: float
    U_r: float
    power: dict[int, float]
    values: dict[int, FloatArray]
    mean_value: dict[int, float]


@dataclass(frozen=True)
class ValueScale:
    """V_r of a solution in a state, and of other robots with the same humans; ``print`` shows a table.

    Attributes
    ----------
    state, level
    computed, random : RobotRow, the robot of the solution, and one that takes all its actions with the same probability
    nothing : RobotRow, a robot that does nothing; None where it is not known how
    best : RobotRow, a robot that always takes its best action (``beta_r=inf``); None where that is not defined
    V_h : {human: mean of V_h}, phase 1, over the same goals; empty where phase 1 was not solved
    optimistic : whether V_h is what a human attains if the robots help it, or if they work against it
    gamma_h : the humans' discount; with 1, values are chances
    left_out : {robot in words: why it is left out}
    """

    state: Hashable
    level: int
    computed: RobotRow
    nothing: RobotRow | None
    random: RobotRow
    best: RobotRow | None
    V_h: dict[int, float]
    optimistic: bool
    gamma_h: float
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> list[RobotRow]:
        """All robots that are compared."""
        return [row for row in (self.computed, self.nothing, self.random, self.best) if row is not None]

    @property
    def zero(self) -> RobotRow:
        """The robot that is 0% of the scale: one that does nothing, or else one that acts at random."""
        return self.random if self.nothing is None or math.isinf(self.nothing.V_r) else self.nothing

    @property
    def makes_a_difference(self) -> bool:
        """Whether V_r depends on what the robot does, by more than rounding."""
        values = [row.V_r for row in self.rows]
        return not max(values) - min(values) <= SAME * abs(max(values))

    @property
    def share(self) -> float:
        """Where V_r is on the scale: 0 is a robot that does nothing, 1 the best of those compared; nan without a scale."""
        return self.share_of(self.computed)

    def share_of(self, row: RobotRow) -> float:
        """The same for one of the rows."""
        zero, most = self.zero.V_r, max(one.V_r for one in self.rows)
        if not (math.isfinite(zero) and most - zero > SAME * abs(most)):
            return math.nan
        return (row.V_r - zero) / (most - zero)

    def to_json(self) -> Json:
        """The numbers as plain dictionaries and lists."""
        rows = [
            {"robot": row.robot, "V_r": row.V_r, "share": self.share_of(row), "X_h": row.power, "V_h_e": row.mean_value}
            for row in self.rows
        ]
        return {
            "robots": rows, "makes_a_difference": self.makes_a_difference, "zero": self.zero.robot, "V_h": self.V_h,
            "optimistic": self.optimistic, "gamma_h": self.gamma_h, "left_out": self.left_out,
        }  # fmt: skip

    def __str__(self) -> str:
        table = [self._head(), *self._cells()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join([cells[0].ljust(widths[0]), *(c.rjust(n) for c, n in zip(cells[1:], widths[1:], strict=True))])
            for cells in table
        ]
        return "\n".join([*(line.rstrip() for line in lines), *self.notes()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(parts.paragraph(note) for note in self.notes())
        return parts.table(self._head(), self._cells()) + notes

    def _head(self) -> list[str]:
        scale = ["scale"] if self._has_scale else []
        return ["the robot ...", "V_r", *scale, *(f"human {human}" for human in self.computed.mean_value)]

    @property
    def _has_scale(self) -> bool:
        return not math.isnan(self.share)

    def _cells(self) -> list[list[str]]:
        cells = []
        for row in self.rows:
            scale = [_percent(self.share_of(row))] if self._has_scale else []
            cells.append([row.robot, f"{row.V_r:.6g}", *scale, *map(_value, row.mean_value.values())])
        if self.V_h:
            blank = ["", ""] if self._has_scale else [""]
            cells.append([f"{what_V_h_is(self.optimistic)} (V_h)", *blank, *map(_value, self.V_h.values())])
        return cells

    def notes(self) -> list[str]:
        """How to read the numbers, one sentence each."""
        notes = [] if self.makes_a_difference else ["The robot makes no difference here: V_r is the same whatever it does."]
        if self._has_scale:
            notes.append(f"scale: 0% is a robot that {self.zero.robot}, 100% the best of these.")
        elif self.makes_a_difference:
            notes.append(f"There is no scale: none of these robots is better than one that {self.zero.robot}.")
        if self.computed.mean_value:
            notes.append(f"humans: the mean V_h^e ({self._what_values_are()}) of goals not attained yet.")
        if any(math.isinf(row.V_r) for row in self.rows):
            notes.append("V_r is -inf where a human may come to a state without any goal that can still be attained.")
        return [*notes, *(f"{robot}: left out, {why}" for robot, why in self.left_out.items())]

    def _what_values_are(self) -> str:
        chance = "the chance to attain a goal"
        return chance if self.gamma_h == 1 else f"{chance}, discounted by gamma_h={self.gamma_h:.4g} a step"


@suggests_names()
def value_scale(
    solution: Solution, state: Hashable = None, *, still: int | str | None = None, memory_limit: Size | None = None,
    workers: int = 1, progress: bool = False,
) -> ValueScale:  # fmt: skip
    """Put V_r and the humans' values into a scale: against a robot that does nothing, one that acts at random, and the best.

    All of them meet the humans of the solution: by its phase 1 or its prior. Numbers are exact, and take two more backward
    passes over the DAG.

    Parameters
    ----------
    solution : Solution, with both phases and at least one robot
    state : optional
        By default the one where runs begin; the first if there are several.
    still : int or str, optional
        The action that does nothing, by its number or name. By default one of the name still, pass, stay, wait, noop or
        the like.
    memory_limit, workers, progress : as for :func:`solve`

    Examples
    --------
    >>> from empo_bi import Params, load_world, solve
    >>> world = load_world("asymmetric_freeing", max_steps=8)
    >>> scale = value_scale(solve(world, Params(gamma_h=0.95, beta_h=50, zeta=2, beta_r=50), progress=False))
    >>> print(f"V_r {scale.computed.V_r:.1f}, with an idle robot {scale.nothing.V_r:.1f}: {scale.share:.0%}")
    V_r -126.1, with an idle robot -144.0: 94%
    """
    return scale_within(
        solution, state, still, resources_from(memory_limit=memory_limit, workers=workers, progress=progress)
    )


def scale_within(solution: Solution, state: Hashable, still: int | str | None, resources: Resources) -> ValueScale:
    """The same, with what may be used for it."""
    if not solution.has_robot:
        raise ValueError("phase 2 was not solved (phase_2=False), so there is no robot to compare; solve both phases")
    if not solution.robots:
        raise ValueError("this was solved without robots, so there is nothing to compare")
    state = start_of(solution) if state is None else state
    t, place = solution.dag.place_of(state)
    if not any(True for _ in solution.blocks.of_states(t, np.array([place]))):
        raise ValueError(f"{short_repr(state)} is terminal, so nothing that a robot does matters; give another state")
    found, left_out = _other_robots(solution, still, t, resources)
    own = {name: solution.rows(name, t, np.array([place])) for name in ("ve", "xh", "vr")}
    reader = _Reader(solution, t, place)
    rows = {name: reader.row(name, {key: array[[place]] for key, array in one.items()}) for name, one in found.items()}
    V_h = {} if solution.why_missing("vh", t) else reader.means(solution.rows("vh", t, np.array([place]))[0])
    return ValueScale(
        state, t, reader.row(COMPUTED, own), rows.get(NOTHING), rows[RANDOM], rows.get(BEST), V_h,
        solution.human_params.optimistic, math.exp(-solution.params.rate_h), left_out,
    )  # fmt: skip


def start_of(solution: Solution) -> Hashable:
    """Where runs begin; the first state of several."""
    return solution.dag.begins[0] if solution.dag.begins else solution.dag.states(0, np.array([0]))[0]


def is_cheap(solution: Solution) -> bool:
    """Whether the passes take no more than a few seconds: the solution is small, and none of your functions is asked."""
    asks = solution.has_own_prior or solution.human_params.believed_others_policy or solution.params.terminal_function
    return not asks and solution.unit_durations and solution.dag.n_states * solution.dag.n_profiles <= PASS_PAIRS


def _other_robots(
    solution: Solution, still: int | str | None, t: int, resources: Resources
) -> tuple[dict[str, Arrays], dict[str, str]]:
    """Arrays of level ``t`` by robot, and why others are left out."""
    params, n = solution.params, len(solution.robot_profiles)
    robots, left_out = {RANDOM: Robots(params, np.full(n, 1.0 / n))}, {}
    action = _still_action(solution, still)
    if action is None:
        left_out[NOTHING] = (
            f"since no action of this world has a name such as {', '.join(STILL_NAMES[:4])}; "
            "value_scale(solution, still=...) takes the number of the action that does nothing"
        )
    else:
        profile = (action,) * len(solution.robots)
        robots[NOTHING] = Robots(params, np.array([float(r == profile) for r in solution.robot_profiles]))
    found = dict(zip(robots, level_with(solution, list(robots.values()), t, resources), strict=True))
    try:
        found[BEST] = level_with(solution, [Robots(params.replace(beta_r=math.inf))], t, resources)[0]
    except (EmpoOverflowError, GoalError, MemoryLimitError) as error:
        left_out[BEST] = f"since {error}"
    return found, left_out


def _still_action(solution: Solution, still: int | str | None) -> int | None:
    names = solution.model.action_names
    n_actions = min(solution.profiles.actions_N[robot] for robot in solution.robots)
    action = still_action(names[:n_actions]) if still is None else names.index(still) if still in names else still
    if action is None or (isinstance(action, int | np.integer) and not isinstance(action, bool) and 0 <= action < n_actions):
        return None if action is None else int(action)
    listed = ", ".join(f"{a} ({name})" for a, name in enumerate(names[:n_actions]))
    raise ValueError(f"still={short_repr(still)}; give an action that all robots have, by its number or name: {listed}")


@dataclass(frozen=True)
class _Reader:
    """Reads the arrays of one state."""

    solution: Solution
    level: int
    place: int

    def row(self, robot: str, arrays: Arrays) -> RobotRow:
        """From arrays that have one state, (1, ...)."""
        solution = self.solution
        x_H, v_HG = arrays["xh"][0].astype(np.float64), self._by_human(arrays["ve"][0].astype(np.float64))
        u_r = -math.inf if (x_H == 0).any() else float(solution.reward_of(x_H[np.newaxis])[0])
        values = {
            human: v_HG[h, : sum(goal is not None for goal in solution.goal_columns.goals[h])]
            for h, human in enumerate(solution.humans)
        }
        power = dict(zip(solution.humans, x_H.tolist(), strict=True))
        return RobotRow(robot, float(arrays["vr"][0]), u_r, power, values, self.means(v_HG))

    def means(self, v_HG: FloatArray) -> dict[int, float]:
        """Of each human, by weight, over the goals that it has in the state and has not attained there."""
        goals, t = self.solution.goal_columns, self.level
        weight_NX, has_NX = goals.weights(t), goals.has(t)
        attained_X = bits_of(goals.attained(t, np.array([self.place])), goals.n_columns)[0]
        weight_HG = self._by_human(weight_NX[self.place if len(weight_NX) > 1 else 0])
        counts_HG = self._by_human(has_NX[self.place if len(has_NX) > 1 else 0].astype(np.bool_) & ~attained_X)
        pairs = zip(self.solution.humans, v_HG, weight_HG, counts_HG, strict=True)
        return {human: _mean(v_G, weight_G, counts_G) for human, v_G, weight_G, counts_G in pairs}

    def _by_human(self, array_X: FloatArray) -> FloatArray:
        return array_X.reshape(len(self.solution.humans), self.solution.goal_columns.n_goals)


def _mean(v_G: FloatArray, weight_G: FloatArray, counts_G: BoolArray) -> float:
    total = float(weight_G[counts_G].sum())
    return float(weight_G[counts_G] @ v_G[counts_G]) / total if total > 0 else math.nan


def _percent(share: float) -> str:
    return f"{share:.0%}" if math.isfinite(share) else ""


def _value(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"
