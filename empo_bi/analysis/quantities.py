"""The quantities of a solution, by name, and readers of their numbers for some states of a level.

Datasets of xarray and tables of pandas are both made from these; nothing here needs either library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from empo_bi.dag.slices import as_array
from empo_bi.results.solution import Solution
from empo_bi.runtime.machine import trim
from empo_bi.store.solved_levels import rows_at
from empo_bi.types import Bodies, FloatArray, IndexArray, KeyArray
from empo_bi.world.agent_fields import AgentFields

Array = npt.NDArray[np.number]
Where = slice | IndexArray  # which of the wanted states
STATES_AT_A_TIME = 1 << 16  # whose fields are read together


class Source(Protocol):
    """Reads the numbers of a quantity for some states of a level."""

    def pieces(self, t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
        """Rows of the states at ``places`` (ascending) of level ``t``, a few megabytes at a time; missing rows are 0."""


@dataclass(frozen=True)
class Quantity:
    """A quantity: its dimensions, the stored arrays that it needs, a label for axes, and a description."""

    dims: tuple[str, ...]
    needs: tuple[str, ...]
    long_name: str
    description: str


QUANTITIES = {
    "Vh_m": Quantity(("state", "human", "goal"), ("vh",), "value $V_h$", "of a goal for a human, phase 1"),
    "Vh_e": Quantity(("state", "human", "goal"), ("ve",), "value $V_h^e$", "of a goal for a human, with the robot's policy"),
    "X_h": Quantity(("state", "human"), ("xh",), "power $X_h$", "weighted sum over goals of Vh_e to the power of zeta"),
    "U_r": Quantity(("state",), ("xh",), "robot's reward $U_r$", "aggregate of the humans' power"),
    "V_r": Quantity(("state",), ("vr",), "robot's value $V_r$", "expected discounted sum of U_r from here on"),
    "Q_r": Quantity(("state", "robot_profile"), ("qr",), "$Q_r$", "value of a profile of robot actions"),
    "pi_r": Quantity(("state", "robot_profile"), ("qr",), "robots' policy", "probability of a profile of robot actions"),
    "pi_h": Quantity(
        ("state", "human", "goal", "action"), ("vh",), "humans' policy", "probability of an action of a human with a goal"
    ),
    "reached": Quantity(
        ("state",), ("vh", "qr"), "probability of the state", "of ever reaching it from the initial one, under both policies"
    ),
}
_STORED = {"Vh_m": "vh", "Vh_e": "ve", "X_h": "xh", "V_r": "vr", "Q_r": "qr"}


def why_left_out(solution: Solution, quantity: str) -> str | None:
    """Why a solution does not have a quantity; None if it has."""
    for array in QUANTITIES[quantity].needs:
        if quantity == "reached" and array == "vh" and solution.has_own_prior:
            continue  # which replaces phase 1
        # The first level has all arrays, even if the others do not.
        if (reason := solution.why_missing(array, solution.dag.horizon)) is not None:
            return reason
    return None


def source_of(solution: Solution, quantity: str) -> Source:
    """The reader of a quantity's numbers."""
    if quantity in _STORED:
        return Stored(solution, _STORED[quantity])
    kinds: dict[str, Callable[[Solution], Source]] = {
        "U_r": Reward, "pi_r": RobotPolicy, "pi_h": HumanPolicy, "reached": Reached,
    }  # fmt: skip
    return kinds[quantity](solution)


def sizes_of(solution: Solution) -> dict[str, int]:
    """The length of every dimension."""
    return {
        "state": solution.dag.n_states,
        "human": len(solution.humans),
        "goal": solution.goal_columns.n_goals,
        "action": solution.profiles.n_actions,
        "robot_profile": len(solution.robot_profiles),
    }


class Stored:
    """An array that the solution stores."""

    def __init__(self, solution: Solution, array: str) -> None:
        self._solution, self._array = solution, array

    def pieces(self, t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
        for where, rows in self._solution.pieces(self._array, t, places):
            yield where, absent_as_nan(self._solution, t, as_array(places[where]), rows) if rows.ndim == 3 else rows


class Reward:
    """``U_r``, computed from the humans' power."""

    def __init__(self, solution: Solution) -> None:
        self._solution = solution

    def pieces(self, t: int, places: Bodies) -> Iterator[tuple[Where, FloatArray]]:
        for where, x_MH in self._solution.pieces("xh", t, places):
            yield where, self._solution.reward_of(x_MH.astype(np.float64))


class RobotPolicy:
    """``pi_r``, computed from ``Q_r``."""

    def __init__(self, solution: Solution) -> None:
        self._solution = solution

    def pieces(self, t: int, places: Bodies) -> Iterator[tuple[Where, FloatArray]]:
        for where, q_MR in self._solution.pieces("qr", t, places):
            yield where, self._solution.robot_policy_of(q_MR.astype(np.float64))


class HumanPolicy:
    """``pi_h``, computed block by block from the values of successors and the DAG's transitions."""

    def __init__(self, solution: Solution) -> None:
        self._solution = solution

    def pieces(self, t: int, places: Bodies) -> Iterator[tuple[IndexArray, Array]]:
        place_M = as_array(places)
        is_all = len(place_M) == self._solution.dag.level_sizes[t]
        for block_M, pi_MHGA in self._solution.human_policies.pieces(t, None if is_all else place_M):
            yield np.searchsorted(place_M, block_M), absent_as_nan(self._solution, t, block_M, pi_MHGA)


def absent_as_nan(solution: Solution, t: int, place_M: IndexArray, rows: Array) -> Array:
    """Numbers by human and goal, (M, H, G, ...), with nan for goals that a state does not have; terminal states stay 0."""
    goals = solution.goal_columns
    if goals.is_fixed:
        return rows
    has_MHG = goals.has(t)[place_M].astype(np.bool_).reshape(len(place_M), len(goals.humans), goals.n_goals)
    has_MHG |= ~has_MHG.any(axis=(1, 2), keepdims=True)  # terminal states, where all numbers are 0
    return np.where(has_MHG.reshape(has_MHG.shape + (1,) * (rows.ndim - 3)), rows, np.nan)


class Reached:
    """``reached``; reading it for the first time takes a pass over all levels."""

    def __init__(self, solution: Solution) -> None:
        self._solution = solution

    def pieces(self, t: int, places: Bodies) -> Iterator[tuple[Where, FloatArray]]:
        yield slice(0, len(places)), rows_at(self._solution.reached[t], places)


class PerLevel:
    """One number per level."""

    def __init__(self, number_T: Sequence[int]) -> None:
        self._number_T = number_T

    def pieces(self, t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
        yield slice(0, len(places)), np.array([self._number_T[t]])


class Place:
    """The place of a state in ``dag.states(level)``."""

    def pieces(self, t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
        for first in range(0, len(places), STATES_AT_A_TIME):
            where = slice(first, min(first + STATES_AT_A_TIME, len(places)))
            yield where, as_array(places[where])


class AgentField:
    """``x``, ``y`` or ``direction`` of an agent of a gridworld, read from packed states."""

    def __init__(self, solution: Solution, fields_of: Callable[[KeyArray], AgentFields], agent: int, field: str) -> None:
        self._solution, self._fields_of, self._agent, self._field = solution, fields_of, agent, field

    def pieces(self, t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
        for first in range(0, len(places), STATES_AT_A_TIME):
            where = slice(first, min(first + STATES_AT_A_TIME, len(places)))
            key_MW = self._solution.dag.keys(t, places[where])
            assert key_MW is not None
            fields = self._fields_of(key_MW)
            if self._field == "direction":
                yield where, fields.direction(self._agent)
            else:
                yield where, fields.cell_xy(self._agent)[:, "xy".index(self._field)]


def agent_fields(solution: Solution) -> dict[str, AgentField]:
    """``x_0``, ``y_0``, ``direction_0``, ``x_1``, ... of a world on a map; nothing for other worlds."""
    fields_of = solution.model.fields
    if fields_of is None:
        return {}
    agents, grid = range(solution.model.n_agents), solution.model.grid
    has_directions = grid is not None and grid.n_directions > 1
    names = ("x", "y", "direction") if has_directions else ("x", "y")
    return {f"{field}_{i}": AgentField(solution, fields_of, i, field) for i in agents for field in names}


def trim_after(n_states: int) -> None:
    """Return freed memory to the system after reading many states: the C library keeps some 20 MB per thread of zarr."""
    if n_states > STATES_AT_A_TIME:
        trim()


# --- labels -----------------------------------------------------------------------------------------------------------


def goal_names(solution: Solution) -> list[list[str]]:
    """Unique names of goals, by human; padded with empty names if another human has more goals."""
    goals = solution.goal_columns
    found = []
    for known, names in zip(goals.goals, goals.names, strict=True):
        is_twin = [names.count(name) > 1 or name == "" for name in names]
        found.append(
            ["" if goal is None else f"{name} (goal {g})" if is_twin[g] else name
             for g, (goal, name) in enumerate(zip(known, names, strict=True))]
        )  # fmt: skip
    return found


def action_names(solution: Solution) -> list[str]:
    return solution.model.action_names


def robot_profile_names(solution: Solution) -> list[str]:
    """Actions of all robots, separated by commas; "nothing" if there are no robots."""
    names = action_names(solution)
    return [", ".join(names[action] for action in profile) or "nothing" for profile in solution.robot_profiles]
