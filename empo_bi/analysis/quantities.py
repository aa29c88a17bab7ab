"""The quantities of a solution, by name, and readers of their numbers for some states of a level.

Datasets of xarray and tables of pandas are both made from these; nothing here needs either library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from empo_bi.dag.slices import as_array
from empo_bi.results.solution import Solution
from empo_bi.runtime.machine import trim
from empo_bi.store.solved_levels import rows_at
from empo_bi.types import Bodies, IndexArray, KeyArray
from empo_bi.world.agent_fields import AgentFields

Array = npt.NDArray[np.number]
Where = slice | IndexArray  # which of the wanted states
STATES_AT_A_TIME = 1 << 16  # whose fields are read together
# Reads a quantity: level, ascending places of some states -> their rows, a few megabytes at a time; missing rows are 0.
Source = Callable[[int, Bodies], Iterator[tuple[Where, Array]]]


@dataclass(frozen=True)
class Quantity:
    """A quantity: its dimensions, the stored arrays that it needs, a label for axes, and a description."""

    dims: tuple[str, ...]
    needs: tuple[str, ...]
    long_name: str
    description: str


QUANTITIES = {
    "Vh_m": Quantity(
        ("state", "human", "goal"),
        ("vh",),
        "value $V_h$",
        "of a goal for a human if the robots work against it (optimistic: help it)",
    ),
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
        return partial(_stored, solution, _STORED[quantity])
    kinds = {"U_r": _rewards, "pi_r": _robot_policies, "pi_h": _human_policies, "reached": _reached}
    return partial(kinds[quantity], solution)


def sizes_of(solution: Solution) -> dict[str, int]:
    """The length of every dimension."""
    return {
        "state": solution.dag.n_states,
        "human": len(solution.humans),
        "goal": solution.goal_columns.n_goals,
        "action": solution.profiles.n_actions,
        "robot_profile": len(solution.robot_profiles),
    }


def _stored(solution: Solution, array: str, t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
    for where, rows in solution.pieces(array, t, places):
        yield where, absent_as_nan(solution, t, as_array(places[where]), rows) if rows.ndim == 3 else rows


def _rewards(solution: Solution, t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
    for where, x_MH in solution.pieces("xh", t, places):
        yield where, solution.reward_of(x_MH.astype(np.float64))


def _robot_policies(solution: Solution, t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
    for where, q_MR in solution.pieces("qr", t, places):
        yield where, solution.robot_policy_of(q_MR.astype(np.float64))


def _human_policies(solution: Solution, t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
    """Computed block by block from the values of successors and the DAG's transitions."""
    place_M = as_array(places)
    is_all = len(place_M) == solution.dag.level_sizes[t]
    for block_M, pi_MHGA in solution.human_policies.pieces(t, None if is_all else place_M):
        yield np.searchsorted(place_M, block_M), absent_as_nan(solution, t, block_M, pi_MHGA)


def _reached(solution: Solution, t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
    """The first time, this takes a pass over all levels."""
    yield slice(0, len(places)), rows_at(solution.reached[t], places)


def absent_as_nan(solution: Solution, t: int, place_M: IndexArray, rows: Array) -> Array:
    """Numbers by human and goal, (M, H, G, ...), with nan for goals that a state does not have; terminal states stay 0."""
    goals = solution.goal_columns
    has_NX = goals.has(t)
    if goals.is_fixed and has_NX.all():
        return rows
    has_MX = np.repeat(has_NX, len(place_M), axis=0) if goals.is_fixed else has_NX[place_M]
    has_MHG = has_MX.astype(np.bool_).reshape(len(place_M), len(goals.humans), goals.n_goals)
    has_MHG |= ~has_MHG.any(axis=(1, 2), keepdims=True)  # terminal states, where all numbers are 0
    return np.where(has_MHG.reshape(has_MHG.shape + (1,) * (rows.ndim - 3)), rows, np.nan)


def per_level(number_T: Sequence[int]) -> Source:
    """Reads one number per level."""
    return lambda t, places: iter([(slice(0, len(places)), np.array([number_T[t]]))])


def read_places(t: int, places: Bodies) -> Iterator[tuple[Where, Array]]:
    """The place of a state in ``dag.states(level)``."""
    for where in _stretches(places):
        yield where, as_array(places[where])


def _stretches(places: Bodies) -> Iterator[slice]:
    for first in range(0, len(places), STATES_AT_A_TIME):
        yield slice(first, min(first + STATES_AT_A_TIME, len(places)))


def _agent_field(
    solution: Solution, fields_of: Callable[[KeyArray], AgentFields], agent: int, field: str, t: int, places: Bodies
) -> Iterator[tuple[Where, Array]]:
    """``x``, ``y`` or ``direction`` of an agent on a map, read from packed states."""
    for where in _stretches(places):
        key_MW = solution.dag.keys(t, places[where])
        assert key_MW is not None
        fields = fields_of(key_MW)
        if field == "direction":
            yield where, fields.direction(agent)
        else:
            yield where, fields.cell_xy(agent)[:, "xy".index(field)]


def agent_fields(solution: Solution) -> dict[str, Source]:
    """``x_0``, ``y_0``, ``direction_0``, ``x_1``, ... of a world on a map; nothing for other worlds."""
    fields_of = solution.model.fields
    if fields_of is None:
        return {}
    grid = solution.model.grid
    has_directions = grid is not None and grid.n_directions > 1
    return {
        f"{field}_{i}": partial(_agent_field, solution, fields_of, i, field)
        for i in range(solution.model.n_agents)
        for field in (("x", "y", "direction") if has_directions else ("x", "y"))
    }


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


def robot_profile_names(solution: Solution) -> list[str]:
    """Actions of all robots, separated by commas; "nothing" if there are no robots."""
    names = solution.model.action_names
    return [", ".join(names[action] for action in profile) or "nothing" for profile in solution.robot_profiles]
