r"""One pass over a whole run, level by level: the probability of each state under both policies, and summaries of levels.

Summaries weight states by their probability :math:`d_t(s)` under both policies. They leave out terminal states, which have
no power and no policy, and whose value is a convention.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from empo_bi.analysis.quantiles import weighted_quantiles
from empo_bi.analysis.uncertainty import entropy_of_logits, robot_logits
from empo_bi.results.occupancy import ForwardPass
from empo_bi.results.solution import Solution
from empo_bi.runtime.progress import LevelBar
from empo_bi.types import FloatArray, IndexArray
from empo_bi.world.map_world import MapWorld

QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Survey:
    """Summaries of T + 1 levels; nan for a level without such states.

    Attributes
    ----------
    mass_TS : (S,) by level, the probability that each state is reached under both policies
    states_T, reached_T : (T + 1,), how many states there are, and how many have a positive probability
    mass_T : (T + 1,), the probability that the level is reached; below 1 if runs may end early
    v_r_TM, x_TMH : (T + 1, 1 + quantiles[, H]), V_r and power: the mean, then quantiles
    entropy_T : (T + 1,), nats, the mean entropy of the robot's policy
    cell_TIC : (T + 1, agents, cells), the probability that an agent is on a cell, row by row; None without a map
    """

    mass_TS: list[FloatArray]
    states_T: IndexArray
    reached_T: IndexArray
    mass_T: FloatArray
    v_r_TM: FloatArray
    x_TMH: FloatArray
    entropy_T: FloatArray
    cell_TIC: FloatArray | None


def survey(solution: Solution, *, progress: bool = False) -> Survey:
    """Go forward through all levels; memory holds the arrays of one level, and one number for each state."""
    dag, grid = solution.dag, solution.model.grid
    n_levels, n_humans = dag.horizon + 1, len(solution.humans)
    found = Survey(
        mass_TS=[],
        states_T=np.array(dag.level_sizes, dtype=np.int64),
        reached_T=np.zeros(n_levels, dtype=np.int64),
        mass_T=np.zeros(n_levels),
        v_r_TM=np.full((n_levels, 1 + len(QUANTILES)), np.nan),
        x_TMH=np.full((n_levels, 1 + len(QUANTILES), n_humans), np.nan),
        entropy_T=np.full(n_levels, np.nan),
        cell_TIC=None if grid is None else _no_cells(grid, n_levels),
    )
    with LevelBar("report", n_levels, progress, n_states=dag.n_states) as bar:
        for t, mass_SN in ForwardPass(solution):
            mass_S = mass_SN[:, 0].copy()
            found.mass_TS.append(mass_S)
            place_M = np.flatnonzero(mass_S)
            mass_M = mass_S[place_M]
            found.reached_T[t], found.mass_T[t] = len(place_M), mass_M.sum()
            if len(place_M):
                _summarise(solution, found, t, place_M, mass_M)
            bar.level(t, len(mass_S))
    return found


def _summarise(solution: Solution, found: Survey, t: int, place_M: IndexArray, mass_M: FloatArray) -> None:
    """Write the summaries of a level, whose M states at ``place_M`` are reached, into its rows."""
    x_MH = solution.rows("xh", t, place_M)
    logit_NR, goes_on = robot_logits(solution, t, place_M)
    if goes_on.any():
        found.v_r_TM[t] = weighted_summary(solution.rows("vr", t, place_M[goes_on]), mass_M[goes_on])
        for h in range(x_MH.shape[1]):
            found.x_TMH[t, :, h] = weighted_summary(x_MH[goes_on, h], mass_M[goes_on])
        found.entropy_T[t] = np.average(entropy_of_logits(logit_NR), weights=mass_M[goes_on])
    grid = solution.model.grid
    if found.cell_TIC is not None and grid is not None:
        keys = solution.dag.keys(t)
        assert keys is not None
        fields = grid.fields(keys[place_M])
        for i in range(found.cell_TIC.shape[1]):
            x_M, y_M = fields.cell_xy(i).T
            found.cell_TIC[t, i] = np.bincount(y_M * grid.width + x_M, mass_M, minlength=grid.width * grid.height)


def _no_cells(world: MapWorld, n_levels: int) -> FloatArray:
    return np.zeros((n_levels, len(world.agents), world.width * world.height))


def weighted_summary(value_M: FloatArray, weight_M: FloatArray) -> FloatArray:
    """The mean, then the quantiles."""
    quantiles_Q = weighted_quantiles(value_M[:, np.newaxis], weight_M, QUANTILES)[:, 0]
    return np.concatenate([[np.average(value_M, weights=weight_M)], quantiles_Q])
