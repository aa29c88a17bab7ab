r"""Maps: a number for each cell of the grid, depending on where one agent is.

Many states of a level have the agent on the same cell c. A map shows their weighted mean,

.. math:: m(c) = \frac{\sum_{s: x_i(s) = c} w(s) v(s)}{\sum_{s: x_i(s) = c} w(s)},

over the states in which everything else is as in one given state (the agent may face any direction), over all states of the
level, or with w the probability that a state is reached under both policies.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from empo_bi.analysis.agent_policy import agent_number
from empo_bi.analysis.selection import MEAN, REACHED, goal_place, human_place, level_number, weights_of
from empo_bi.problem.protocols import Goal
from empo_bi.results.goal_names import GoalLike
from empo_bi.results.solution import Solution
from empo_bi.results.state_report import what_V_h_is
from empo_bi.runtime.arguments import suggests_names
from empo_bi.types import FloatArray, IndexArray
from empo_bi.world.map_world import MapWorld
from empo_bi.world.row_codec import MapState

Others = str | MapState  # "reached", "mean", or a state
ROUNDING = 1e-9  # relative to the largest number of two maps; smaller differences are shown as 0


@dataclass(frozen=True)
class CellMap:
    """A number for each cell.

    Attributes
    ----------
    world : GridWorld, or another world on a map
    level : int
    agent : the agent whose cell is meant
    quantity : what the number is, such as "power of human 0"
    how : which states were averaged
    value_YX : (height, width) float64, nan where the agent is in none of the states
    weight_YX : (height, width) float64, the total weight of the states with the agent there: a probability or a count
    scale : label of the colour scale, with symbol or unit; "" to use ``quantity``
    goal : the goal that the number is about, if any
    is_change : whether this is the difference of two maps
    rounding : differences up to this are rounding errors, see :meth:`rounded_off`; 0 for maps that are not differences
    """

    world: MapWorld
    level: int
    agent: int
    quantity: str
    how: str
    value_YX: FloatArray
    weight_YX: FloatArray
    scale: str = ""
    goal: Goal | None = None
    is_change: bool = False
    rounding: float = 0.0

    @property
    def title(self) -> str:
        """Two lines for a picture: what it shows, and which states were averaged."""
        return f"{self.quantity}, level {self.level}\n{self.how}"

    def __sub__(self, other: CellMap) -> CellMap:
        """This map minus another one of the same grid; nan where either is nan."""
        if not isinstance(other, CellMap):
            return NotImplemented
        if self.value_YX.shape != other.value_YX.shape:
            raise ValueError(
                f"the maps have {self.value_YX.shape} and {other.value_YX.shape} cells (height, width); subtract maps of "
                "the same grid"
            )
        what, how = self._minus(other, "quantity"), self._minus(other, "how")
        if self.level != other.level:
            what += f" since level {other.level}"
        return replace(
            self,
            quantity=f"change of {what}" if self.quantity == other.quantity else what,
            how=how,
            value_YX=self.value_YX - other.value_YX,
            weight_YX=np.minimum(self.weight_YX, other.weight_YX),
            scale=f"change of {self.scale}" if self.scale and self.scale == other.scale else "difference",
            is_change=True,
            goal=self.goal if self.goal == other.goal else None,
            rounding=max(self._rounding_of_sums(), other._rounding_of_sums()),
        )

    def rounded_off(self) -> CellMap:
        """The map as it is shown: with 0 where a difference is only a rounding error."""
        return replace(self, value_YX=np.where(np.abs(self.value_YX) <= self.rounding, 0.0, self.value_YX))

    def _rounding_of_sums(self) -> float:
        """What counts as 0 in differences with this map."""
        found = np.abs(self.value_YX[np.isfinite(self.value_YX)])
        return max(self.rounding, ROUNDING * float(found.max(initial=0.0)))

    def _minus(self, other: CellMap, name: str) -> str:
        """A text attribute of the difference: the common one, or both with "minus" between them."""
        own, others = getattr(self, name), getattr(other, name)
        return str(own) if own == others else f"{own} minus {others}"


@dataclass(frozen=True)
class MapStates:
    """The states of a level that a map averages.

    Attributes
    ----------
    t : level
    place_M, weight_M : their places on the level, and their positive weights
    cell_M2, direction_M : where the agent is (x, y), and which way it faces
    """

    world: MapWorld
    t: int
    place_M: IndexArray
    weight_M: FloatArray
    cell_M2: IndexArray
    direction_M: IndexArray

    def only(self, keep_N: IndexArray) -> MapStates:
        """Some of these states, by their indices."""
        names = ("place_M", "weight_M", "cell_M2", "direction_M")
        return replace(self, **{name: getattr(self, name)[keep_N] for name in names})

    def summed(self, value_MN: FloatArray) -> FloatArray:
        """(height, width, N), the weighted sums of N numbers over the states of each cell."""
        height, width = self.world.height, self.world.width
        cell_M = self.cell_M2[:, 1] * width + self.cell_M2[:, 0]
        total_NC = [
            np.bincount(cell_M, self.weight_M * value_M, height * width).astype(np.float64) for value_M in value_MN.T
        ]
        return np.stack(total_NC, axis=-1).reshape(height, width, -1)

    def means(self, value_MN: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weighted means, (height, width, N), nan where there are no states, and the weights (height, width)."""
        weight_YX = self.summed(np.ones((len(self.place_M), 1)))[:, :, 0]
        with np.errstate(invalid="ignore"):
            return self.summed(value_MN) / weight_YX[:, :, np.newaxis], weight_YX


def map_states(solution: Solution, level: int, agent: int, others: Others) -> MapStates:
    """The states of a level that a map of an agent averages: those with positive weight."""
    t, agent = level_number(solution, level), agent_number(solution, agent)
    world = solution.model.grid
    if world is None:
        raise TypeError(
            f"{solution.world!r} has no cells; maps need a gridworld. For other worlds, use solution.to_pandas(...)"
        )
    key_SW = solution.dag.keys(t)
    assert key_SW is not None
    if isinstance(others, str):
        weight_S = weights_of(solution, t, others)
    else:
        _, key_1W = world.encode([others])
        weight_S = world.fields(key_SW).same_but_for(agent, key_1W[0]).astype(np.float64)
    place_M = np.flatnonzero(weight_S)
    fields = world.fields(key_SW[place_M])
    return MapStates(world, t, place_M, weight_S[place_M], fields.cell_xy(agent), fields.direction(agent))


@suggests_names()
def cell_map(
    solution: Solution, value_S: npt.ArrayLike, level: int, agent: int, *, others: Others = REACHED, quantity: str = "value"
) -> CellMap:
    """A map of any numbers given for the states of a level.

    Parameters
    ----------
    solution : Solution of a gridworld
    value_S : (S,), one number for each state of ``dag.states(level)``; nan for states to leave out
    level : int
    agent : the agent whose cell is meant
    others : "reached", "mean", or a state
        How states with the agent on the same cell are averaged: weighted by their probability under both policies
        (default), all equally, or only those in which everything else is as in the given state, whatever its step.
    quantity : what the number is
    """
    chosen = map_states(solution, level, agent, others)
    value_S = np.asarray(value_S, dtype=np.float64)
    n_states = solution.dag.level_sizes[chosen.t]
    if value_S.shape != (n_states,):
        raise ValueError(f"value_S has shape {value_S.shape}; level {level} has {n_states} states: give one number for each")
    chosen = chosen.only(np.flatnonzero(~np.isnan(value_S[chosen.place_M])))
    value_YX1, weight_YX = chosen.means(value_S[chosen.place_M, np.newaxis])
    what = {MEAN: "mean over all states", REACHED: "mean over states reached under both policies"}
    how = f"by the cell of agent {agent}; {what[others] if isinstance(others, str) else 'all else as in one state'}"
    return CellMap(chosen.world, chosen.t, agent, quantity, how, value_YX1[:, :, 0], weight_YX)


@suggests_names()
def value_map(
    solution: Solution, human: int, goal: GoalLike, level: int, *, agent: int | None = None, others: Others = REACHED,
    phase_1: bool = False, alone: bool = False,
) -> CellMap:  # fmt: skip
    """The value of a goal to a human, :math:`V_h^e`, by the cell of an agent (by default that human).

    ``phase_1=True`` shows :math:`V_h` instead, what the goal is worth if the robots work against the human (or, with
    ``optimistic``, help it); ``alone`` is its former name. ``goal`` is a goal, its number, or its name; ``others`` is as in
    :func:`cell_map`.
    """
    h, g = goal_place(solution, human, goal)
    t = level_number(solution, level)
    phase_1 = phase_1 or alone
    value_S = solution.rows("vh" if phase_1 else "ve", t)[:, h, g]
    has_S = solution.goal_columns.has_column(t, h * solution.goal_columns.n_goals + g)
    value_S = np.where(has_S, value_S, np.nan)  # goals may depend on the state
    name = " ".join(solution.goal_columns.names[h][g].split())
    how = f" if the robot {what_V_h_is(solution.human_params.optimistic)}" if phase_1 else ""
    quantity = f"value of {name} to human {human}{how}"
    found = cell_map(solution, value_S, t, human if agent is None else agent, others=others, quantity=quantity)
    return replace(found, scale="value $V_h$" if phase_1 else "value $V_h^e$", goal=solution.goals[human][g])


@suggests_names()
def power_map(solution: Solution, human: int, level: int, *, agent: int | None = None, others: Others = REACHED) -> CellMap:
    """The power :math:`X_h` of a human by the cell of an agent (by default that human)."""
    h, t = human_place(solution, human), level_number(solution, level)
    value_S = solution.rows("xh", t)[:, h]
    found = cell_map(
        solution, value_S, t, human if agent is None else agent, others=others, quantity=f"power of human {human}"
    )
    return replace(found, scale="power $X_h$")


@suggests_names()
def robot_value_map(solution: Solution, level: int, *, agent: int | None = None, others: Others = REACHED) -> CellMap:
    """The robot's value :math:`V_r` by the cell of an agent (by default the first robot, or human if there are none)."""
    t = level_number(solution, level)
    if agent is None:
        agent = [*solution.robots, *solution.humans][0]
    return cell_map(solution, solution.rows("vr", t), t, agent, others=others, quantity="V_r")


@suggests_names()
def presence_map(solution: Solution, agent: int, level: int) -> CellMap:
    """The probability that an agent is on each cell, on a level, under both policies; nan where it never is."""
    chosen = map_states(solution, level, agent, REACHED)
    weight_YX = chosen.summed(np.ones((len(chosen.place_M), 1)))[:, :, 0]
    value_YX = np.where(weight_YX > 0, weight_YX, np.nan)
    return CellMap(
        chosen.world,
        chosen.t,
        agent,
        f"where agent {agent} is",
        "probability of each cell under both policies",
        value_YX,
        weight_YX,
        scale="probability",
    )
