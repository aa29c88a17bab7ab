r"""Maps: a number for each cell of the grid, as a function of where one agent is.

Many states of a level have an agent on the same cell c. A map has their weighted mean,

.. math:: m(c) = \frac{\sum_{s: x_i(s) = c} w(s) v(s)}{\sum_{s: x_i(s) = c} w(s)},

over the states in which everybody and everything else is as in one given state (the agent may face any way), over all states
of the level, or with w the probability with which both policies come to them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from empo_bi.analysis.agent_policy import agent_number
from empo_bi.analysis.selection import MEAN, REACHED, goal_place, human_place, level_number, weights_of
from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray, IndexArray
from empo_bi.world.fields import StateFields
from empo_bi.world.gridworld import GridWorld

Others = Any  # "reached", "mean", or a state
ROUNDING = 1e-9  # of the size of two maps; differences below that are shown as 0


@dataclass(frozen=True)
class CellMap:
    """A number for each cell.

    Attributes
    ----------
    world : GridWorld
    level : int
    agent : whose cell it is
    quantity : what the number is, such as "power of human 0"
    how : which states were taken together
    value_YX : (height, width) float64, nan where the agent is in none of the states
    weight_YX : (height, width) float64, the total weight of the states with the agent there: a probability or a number
    scale : label for the number's scale, with its symbol or unit; "" to take ``quantity``
    goal : the goal that the number is about, if it is about one
    is_change : whether it is the difference of two maps
    rounding : numbers up to this are what rounding leaves of a 0; above 0 for differences, see :meth:`rounded_off`
    """

    world: GridWorld
    level: int
    agent: int
    quantity: str
    how: str
    value_YX: FloatArray
    weight_YX: FloatArray
    scale: str = ""
    goal: Any = None
    is_change: bool = False
    rounding: float = 0.0

    @property
    def title(self) -> str:
        """Two lines for a picture: what it is, and which states were taken together."""
        return f"{self.quantity}, level {self.level}\n{self.how}"

    def __sub__(self, other: CellMap) -> CellMap:
        """By how much this map is above another one of the same grid; nan where either is."""
        if not isinstance(other, CellMap):
            return NotImplemented
        if self.value_YX.shape != other.value_YX.shape:
            raise ValueError(
                f"the maps have {self.value_YX.shape} and {other.value_YX.shape} cells (height, width); subtract those of "
                "the same grid"
            )
        what, rest = self._told(other, "quantity"), self._told(other, "how")
        if self.level != other.level:
            what += f" since level {other.level}"
        return replace(
            self,
            quantity=f"change of {what}" if self.quantity == other.quantity else what,
            how=rest,
            value_YX=self.value_YX - other.value_YX,
            weight_YX=np.minimum(self.weight_YX, other.weight_YX),
            scale=f"change of {self.scale}" if self.scale and self.scale == other.scale else "difference",
            is_change=True,
            goal=self.goal if self.goal == other.goal else None,
            rounding=max(self._rounding_of_sums(), other._rounding_of_sums()),
        )

    def rounded_off(self) -> CellMap:
        """The map as it is to be shown: with 0 where a difference is no more than rounding leaves."""
        return replace(self, value_YX=np.where(np.abs(self.value_YX) <= self.rounding, 0.0, self.value_YX))

    def _rounding_of_sums(self) -> float:
        """What to take for 0 in sums with this map."""
        found = np.abs(self.value_YX[np.isfinite(self.value_YX)])
        return max(self.rounding, ROUNDING * float(found.max(initial=0.0)))

    def _told(self, other: CellMap, name: str) -> str:
        """What both maps say, or what each of them says."""
        own, others = getattr(self, name), getattr(other, name)
        return str(own) if own == others else f"{own} minus {others}"


@dataclass(frozen=True)
class Considered:
    """The states of a level that a map looks at.

    Attributes
    ----------
    t : level
    place_M, weight_M : places there, and weights above 0
    cell_M2, direction_M : where the agent is (x, y), and what it faces
    """

    world: GridWorld
    t: int
    place_M: IndexArray
    weight_M: FloatArray
    cell_M2: IndexArray
    direction_M: IndexArray

    def only(self, keep_N: IndexArray) -> Considered:
        """Some of them, by their number."""
        names = ("place_M", "weight_M", "cell_M2", "direction_M")
        return replace(self, **{name: getattr(self, name)[keep_N] for name in names})

    def summed(self, value_MN: FloatArray) -> FloatArray:
        """(height, width, N), the weighted sums of N numbers over the states of each cell."""
        height, width = self.world.layout.cell_number.shape
        cell_M = self.cell_M2[:, 1] * width + self.cell_M2[:, 0]
        total_NC = [
            np.bincount(cell_M, self.weight_M * value_M, height * width).astype(np.float64) for value_M in value_MN.T
        ]
        return np.stack(total_NC, axis=-1).reshape(height, width, -1)

    def means(self, value_MN: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weighted means, (height, width, N), nan where there is nothing, and the weights (height, width)."""
        weight_YX = self.summed(np.ones((len(self.place_M), 1)))[:, :, 0]
        with np.errstate(invalid="ignore"):
            return self.summed(value_MN) / weight_YX[:, :, np.newaxis], weight_YX


def considered(solution: Solution, level: int, agent: int, others: Others) -> Considered:
    """The states of a level that a map of an agent looks at: those with any weight."""
    t, agent = level_number(solution, level), agent_number(solution, agent)
    world = solution.world
    if not isinstance(world, GridWorld):
        raise TypeError(f"{world!r} has no cells; maps are of gridworlds. For other worlds, take solution.to_pandas(...)")
    key_SW = solution.dag.keys(t)
    assert key_SW is not None
    if isinstance(others, str):
        weight_S = weights_of(solution, t, others)
    else:
        _, key_1W = world.encode([others])
        weight_S = StateFields(world, key_SW).same_but_for(agent, key_1W[0]).astype(np.float64)
    place_M = np.flatnonzero(weight_S)
    fields = StateFields(world, key_SW[place_M])
    return Considered(world, t, place_M, weight_S[place_M], fields.cell_xy(agent), fields.direction(agent))


def cell_map(
    solution: Solution, value_S: Any, level: int, agent: int, *, others: Others = REACHED, quantity: str = "value"
) -> CellMap:
    """A map of any numbers that the states of a level have.

    Parameters
    ----------
    solution : Solution of a gridworld
    value_S : (S,), one number for each state of ``dag.states(level)``; nan for those that do not count
    level : int
    agent : whose cell the number is a function of
    others : "reached", "mean", or a state
        How states with the agent on the same cell are taken together: as likely as both policies make them (default), all
        alike, or only those in which all else is as in the given state, whatever its step.
    quantity : what the number is
    """
    chosen = considered(solution, level, agent, others)
    value_S = np.asarray(value_S, dtype=np.float64)
    n_states = solution.dag.level_sizes[chosen.t]
    if value_S.shape != (n_states,):
        raise ValueError(f"value_S has shape {value_S.shape}; level {level} has {n_states} states, give one number for each")
    chosen = chosen.only(np.flatnonzero(~np.isnan(value_S[chosen.place_M])))
    value_YX1, weight_YX = chosen.means(value_S[chosen.place_M, np.newaxis])
    what = {MEAN: "mean over all states", REACHED: "mean over what both policies come to"}
    how = f"by the cell of agent {agent}; {what[others] if isinstance(others, str) else 'all else as in one state'}"
    return CellMap(chosen.world, chosen.t, agent, quantity, how, value_YX1[:, :, 0], weight_YX)


def value_map(
    solution: Solution, human: int, goal: Any, level: int, *, agent: int | None = None, others: Others = REACHED,
    alone: bool = False,
) -> CellMap:  # fmt: skip
    """What a goal is worth to a human, :math:`V_h^e`, by the cell of an agent (by default that human).

    ``alone=True`` takes :math:`V_h` of phase 1 instead. A goal is given itself, by its number, or by its name; ``others``
    are as in :func:`cell_map`.
    """
    h, g = goal_place(solution, human, goal)
    t = level_number(solution, level)
    value_S = solution.rows("vh" if alone else "ve", t)[:, h, g]
    has_S = solution.goal_columns.has_column(t, h * solution.goal_columns.n_goals + g)
    value_S = np.where(has_S, value_S, np.nan)  # goals may depend on the state
    name = " ".join(solution.goal_columns.names[h][g].split())
    quantity = f"value of {name} to human {human}" + (", in phase 1" if alone else "")
    found = cell_map(solution, value_S, t, human if agent is None else agent, others=others, quantity=quantity)
    return replace(found, scale="value $V_h$" if alone else "value $V_h^e$", goal=solution.goals[human][g])


def power_map(solution: Solution, human: int, level: int, *, agent: int | None = None, others: Others = REACHED) -> CellMap:
    """The power :math:`X_h` of a human by the cell of an agent (by default that human)."""
    h, t = human_place(solution, human), level_number(solution, level)
    value_S = solution.rows("xh", t)[:, h]
    found = cell_map(
        solution, value_S, t, human if agent is None else agent, others=others, quantity=f"power of human {human}"
    )
    return replace(found, scale="power $X_h$")


def robot_value_map(solution: Solution, level: int, *, agent: int | None = None, others: Others = REACHED) -> CellMap:
    """The robot's value :math:`V_r` by the cell of an agent (by default the first robot, or human if there is no robot)."""
    t = level_number(solution, level)
    if agent is None:
        agent = [*solution.robots, *solution.humans][0]
    return cell_map(solution, solution.rows("vr", t), t, agent, others=others, quantity="V_r")


def presence_map(solution: Solution, agent: int, level: int) -> CellMap:
    """How likely an agent is on each cell of a level under both policies; nan where it never is."""
    chosen = considered(solution, level, agent, REACHED)
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
