"""A solution as a labelled dataset of xarray that reads its arrays on demand."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

from empo_bi.analysis.quantities import (
    QUANTITIES,
    Source,
    agent_fields,
    goal_names,
    per_level,
    read_places,
    robot_profile_names,
    sizes_of,
    source_of,
    why_left_out,
)
from empo_bi.results.solution import Solution
from empo_bi.runtime.extras import import_optional
from empo_bi.sweep.formulas import discount_factor

if TYPE_CHECKING:
    import xarray

_FIELDS = {
    "x": ("column of agent {} on the grid", "cells from the left"),
    "y": ("row of agent {} on the grid", "cells from the top"),
    "direction": ("direction that agent {} faces", "0 east, 1 south, 2 west, 3 north"),
}
Data = TypeVar("Data", "xarray.DataArray", "xarray.Dataset")


def dataset_of(solution: Solution) -> xarray.Dataset:
    """All quantities of a solution as one dataset, whose arrays are read on demand.

    The dimension ``state`` runs over the states of all levels, level after level, as ``dag.index_of`` numbers them, and
    ``level`` is a coordinate along it: ``ds.sel(level=3)`` selects the states of a level. Levels cannot be a dimension of
    their own, since each has different states.

    Parameters
    ----------
    solution : Solution, in memory or on disk. It must stay open as long as the dataset is read.

    Returns
    -------
    xarray.Dataset with these float64 variables, if they were solved and stored (the attribute ``left_out`` lists the rest):

        ========  =====================================  ==============================================
        Vh_m      state, human, goal                     values of phase 1
        Vh_e      state, human, goal                     values with the robot's policy
        X_h       state, human                           power
        U_r, V_r  state                                  the robot's reward and value
        Q_r       state, robot_profile                   values of robot profiles
        pi_r      state, robot_profile                   the robots' policy; 0 for terminal states
        pi_h      state, human, goal, action             the humans' policies; 0 for terminal states
        reached   state                                  probability of reaching the state under both policies
        ========  =====================================  ==============================================

        and coordinates ``level``, ``step`` (what the world calls the level), ``place`` (in ``dag.states(level)``), in
        gridworlds ``x_0``, ``y_0``, ``direction_0``, ``x_1``, ... (all along ``state``), ``human`` (agents), ``goal``,
        ``action``, ``robot_profile`` (numbers), ``goal_name``, ``goal_weight`` (human, goal), ``action_name``,
        ``robot_profile_name``. Weights are left out if they differ from state to state.

    Notes
    -----
    On disk, a level is stored in chunks of 4 MiB, and only chunks with selected states are read; a chunk has all goals, so
    selecting one goal saves memory but not reading. ``pi_h`` and ``reached`` are computed: the former from the next level,
    the latter, once, in a pass over all levels. Nothing is cached, so call ``.load()`` on what you use repeatedly.

    Examples
    --------
    >>> from empo_bi import load_world, solve
    >>> ds = dataset_of(solve(load_world("asymmetric_freeing", max_steps=4), progress=False))
    >>> ds.V_r.sel(level=3).sizes["state"] == ds.sizes["state"]
    False
    >>> ds.Vh_e.sel(level=2).isel(goal=0).dims
    ('state', 'human')
    """
    xarray = import_optional("xarray", "analysis")
    from empo_bi.analysis.level_index import LevelIndex

    lazy = _Lazy(solution)
    dag, sizes = solution.dag, sizes_of(solution)
    left_out = {name: reason for name in QUANTITIES if (reason := why_left_out(solution, name)) is not None}
    variables = {}
    for name, quantity in QUANTITIES.items():
        if name not in left_out:
            columns = [sizes[dim] for dim in quantity.dims[1:]]
            about = {"long_name": quantity.long_name, "description": quantity.description}
            variables[name] = lazy.variable(source_of(solution, name), quantity.dims, columns, np.float64, about)
    levels = LevelIndex(np.arange(dag.horizon + 1), lazy.first_state)
    by_level = levels.create_variables()
    by_level["level"].attrs["long_name"] = "level of the DAG, counted from 0"
    of_states: dict[str, tuple[Source, str]] = {
        "step": (per_level(dag.level_values), "what the world calls the level"),
        "place": (read_places, "place in dag.states(level)"),
    }
    coordinates = {
        name: lazy.variable(source, ("state",), (), np.int32, {"long_name": long_name})
        for name, (source, long_name) in of_states.items()
    }
    for name, source in agent_fields(solution).items():
        field, agent = name.split("_")
        long_name, units = _FIELDS[field]
        about = {"long_name": long_name.format(agent), "units": units}
        coordinates[name] = lazy.variable(source, ("state",), (), np.int16, about)
    return xarray.Dataset(
        variables, xarray.Coordinates(by_level, {"level": levels}), _attributes(solution, left_out)
    ).assign_coords(coordinates | _labels(solution))


class _Lazy:
    """Makes variables of xarray that read from a solution."""

    def __init__(self, solution: Solution) -> None:
        self.first_state = solution.dag.first_state_T
        self._lock = threading.Lock()  # one for all: they read from the same files

    def variable(
        self, source: Source, dims: tuple[str, ...], columns: Sequence[int], dtype: npt.DTypeLike, about: dict[str, str]
    ) -> xarray.Variable:
        import xarray

        from empo_bi.analysis.lazy_arrays import LevelledArray
        from empo_bi.analysis.xarray_internals import LazilyIndexedArray

        array = LevelledArray(source, self.first_state, columns, dtype, self._lock)
        return xarray.Variable(dims, LazilyIndexedArray(array), about)


def _labels(solution: Solution) -> dict[str, tuple[object, ...]]:
    """Coordinates that say what humans, goals, actions and robot profiles are, as xarray takes them."""
    sizes, goals = sizes_of(solution), solution.goal_columns
    names = np.array(goal_names(solution), dtype=str).reshape(sizes["human"], sizes["goal"])
    labels: dict[str, tuple[object, ...]] = {
        "human": ("human", np.array(solution.humans, dtype=np.int64), {"long_name": "agent"}),
        "goal": ("goal", np.arange(sizes["goal"]), {"long_name": "number of a goal among those of its human"}),
        "action": ("action", np.arange(sizes["action"])),
        "robot_profile": ("robot_profile", np.arange(sizes["robot_profile"])),
        "goal_name": (("human", "goal"), names),
        "action_name": ("action", np.array(solution.model.action_names, dtype=str)),
        "robot_profile_name": ("robot_profile", np.array(robot_profile_names(solution), dtype=str)),
    }
    if goals.is_fixed:
        labels["goal_weight"] = (("human", "goal"), goals.weights(0).reshape(names.shape))
    return labels


def _attributes(solution: Solution, left_out: dict[str, str]) -> dict[str, object]:
    """Texts and numbers only, which every file format accepts."""
    params = {
        name: int(value) if isinstance(value, bool) else math.inf if value == "inf" else value
        for name, value in solution.params.describe().items()
        if value is not None
    }
    missing = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
    factors = {f"gamma_{who}": discount_factor(params[f"rho_{who}"]) for who in "hr"}
    return {
        "title": solution.model.title.strip("<>"),
        "horizon": solution.dag.horizon,
        **params,
        **factors,
        "left_out": missing,
    }


def by_level(data: Data, how: str | Callable[[Data], Data] = "mean") -> Data:
    """One result per level, along a dimension ``level``, reading one level at a time.

    ``data.groupby("level")`` does the same, but holds all data in memory at once.

    Parameters
    ----------
    data : a dataset from :func:`dataset_of`, one of its arrays, or a selection of these
    how : the name of an xarray method that takes a dimension ("mean", "max", "min", "sum", "std", ...), or a function of
        one level's part of the data

    Examples
    --------
    >>> from empo_bi import load_world, solve
    >>> ds = dataset_of(solve(load_world("asymmetric_freeing", max_steps=4), progress=False))
    >>> by_level(ds.X_h, "max").dims
    ('level', 'human')
    """
    xarray = import_optional("xarray", "analysis")
    from empo_bi.analysis.level_index import LevelIndex

    index = data.xindexes.get("level")
    if not isinstance(index, LevelIndex):
        raise ValueError("these data have lost their levels; select by level, or keep states in order")
    parts = []
    for level in index.level_L.tolist():
        here = data.sel(level=level)
        parts.append(getattr(here, how)("state") if isinstance(how, str) else how(here))
    return xarray.concat(parts, xarray.Variable("level", index.level_L), coords="minimal", compat="override")
