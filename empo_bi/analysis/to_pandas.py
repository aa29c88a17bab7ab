"""Tidy tables of a solution for pandas: one number per row, beside columns that say what it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index as as_integer
from types import ModuleType
from typing import TYPE_CHECKING, Union

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
    trim_after,
    why_left_out,
)
from empo_bi.dag.slices import as_array, bodies_from
from empo_bi.results.goal_names import GoalLike, goal_number
from empo_bi.results.solution import Solution
from empo_bi.runtime.extras import import_optional
from empo_bi.runtime.wording import did_you_mean, short_repr
from empo_bi.types import Array, Bodies, IndexArray

if TYPE_CHECKING:
    import pandas

MAX_ROWS = 2_000_000
Column = Union[Array, "pandas.Categorical"]
Goals = GoalLike | Iterable[GoalLike]
Humans = int | Iterable[int]


def table_of(
    solution: Solution,
    quantity: str | Sequence[str],
    *,
    levels: int | Sequence[int] | slice | None = None,
    humans: int | Sequence[int] | None = None,
    goals: Goals | None = None,
    min_reached: float | None = None,
    states: bool = False,
    max_rows: int = MAX_ROWS,
) -> pandas.DataFrame:
    """A quantity as a table with one number per row, level after level, in the order of ``dag.states(level)``.

    Parameters
    ----------
    solution : Solution
    quantity : "Vh_m", "Vh_e", "X_h", "U_r", "V_r", "Q_r", "pi_r", "pi_h" or "reached", as in :func:`dataset_of`; or a list
        of quantities with the same dimensions, such as ["U_r", "V_r"], each of which becomes a column
    levels : a level, a list of levels, or a slice; negative levels count from the last. Default: all
    humans : a human's agent number, or a list of them. Default: all
    goals : a goal, its number or its name, or a list of these. Default: all
    min_reached : only states reached with at least this probability under both policies; adds a column ``reached``
    states : whether to add a column with the states
    max_rows : refuse to make a table with more rows

    Returns
    -------
    pandas.DataFrame with columns ``level``, ``place`` (in ``dag.states(level)``), then, where they apply, ``human``
    (agent), ``goal``, ``action``, ``robot_profile`` (categorical, by name), ``x_0``, ``y_0``, ``direction_0``, ``x_1``, ...
    of agents in gridworlds, ``reached``, ``state``, and finally ``value``, or a column for each quantity.

    Raises
    ------
    ValueError
        If something does not exist, or the table would have more than ``max_rows`` rows.

    Examples
    --------
    >>> from empo_bi import load_world, solve
    >>> solution = solve(load_world("asymmetric_freeing", max_steps=4), progress=False)
    >>> table = table_of(solution, "X_h", levels=3, humans=0)
    >>> list(table.columns[:3]), len(table) == solution.dag.level_sizes[3]
    (['level', 'place', 'human'], True)
    """
    pandas = import_optional("pandas", "analysis")
    quantities = [quantity] if isinstance(quantity, str) else list(quantity)
    _check_quantities(solution, quantities)
    cells = _Cells(solution, quantities[0], humans, goals)
    chosen_levels = _levels(solution, levels)
    n_states = sum(solution.dag.level_sizes[t] for t in chosen_levels)
    if min_reached is None:  # otherwise the number of states is known later
        _check_rows(quantities[0], n_states, cells, max_rows)
    places = {t: _places(solution, t, min_reached) for t in chosen_levels}
    places = {t: here for t, here in places.items() if len(here)}
    n_states = sum(map(len, places.values()))
    _check_rows(quantities[0], n_states, cells, max_rows)

    # First what takes the most memory while it is read.
    values = {name: cells.values(name, places, n_states) for name in quantities}
    columns: dict[str, Column] = {
        "level": _repeated(_along(places, per_level(range(solution.dag.horizon + 1)), np.int32), cells.per_state),
        "place": _repeated(_along(places, read_places, np.int32), cells.per_state),
    }
    columns |= cells.columns(pandas, n_states)
    for name, source in agent_fields(solution).items():
        columns[name] = _repeated(_along(places, source, np.int16), cells.per_state)
    if min_reached is not None:
        columns["reached"] = _repeated(_along(places, source_of(solution, "reached"), np.float64), cells.per_state)
    if states:
        tuples = np.empty(n_states, dtype=object)
        tuples[:] = [state for t, here in places.items() for state in solution.dag.states(t, as_array(here))]
        columns["state"] = _repeated(tuples, cells.per_state)
    if isinstance(quantity, str):
        columns["value"] = values[quantity]
    else:
        columns |= values  # "reached" may be among both, with the same numbers
    return pandas.DataFrame(columns, copy=False)


def _check_quantities(solution: Solution, quantities: list[str]) -> None:
    for name in quantities:
        if name not in QUANTITIES:
            known = ", ".join(QUANTITIES)
            raise ValueError(f"quantity {name!r}; expected one of {known}.{did_you_mean(str(name), QUANTITIES)}")
        if (reason := why_left_out(solution, name)) is not None:
            raise ValueError(f"{name}: {reason}")
    if not quantities:
        raise ValueError(f"quantity is an empty list; give one or more of {', '.join(QUANTITIES)}")
    kinds = {name: QUANTITIES[name].dims for name in quantities}
    if len(set(kinds.values())) > 1:
        found = "; ".join(f"{name}: {', '.join(dims)}" for name, dims in kinds.items())
        raise ValueError(f"quantities of one table need the same dimensions, found {found}; make a table for each")


class _Cells:
    """Which numbers of each state are wanted: (human, goal) pairs or humans, each times actions or robot profiles."""

    def __init__(self, solution: Solution, quantity: str, humans: Humans | None, goals: Goals | None) -> None:
        self._solution, self._dims = solution, QUANTITIES[quantity].dims
        sizes = sizes_of(solution)
        given_dims: dict[str, object] = {"human": humans, "goal": goals}
        for dim, given in given_dims.items():
            if given is not None and dim not in self._dims:
                dims = ", ".join(self._dims)
                raise ValueError(f"{dim}s={short_repr(given)}: {quantity} has no {dim}s, only {dims}; leave {dim}s out")
        self._names = goal_names(solution)
        human_P, goal_P = self._pairs(humans, goals)
        self._human_P, self._goal_P = np.array(human_P, dtype=np.int64), np.array(goal_P, dtype=np.int64)
        self._n_pairs = len(human_P) if "human" in self._dims else 1
        self._n_last = sizes[self._dims[-1]] if self._dims[-1] in ("action", "robot_profile") else 1
        self.per_state = self._n_pairs * self._n_last

    def _pairs(self, humans: Humans | None, goals: Goals | None) -> tuple[list[int], list[int]]:
        if "human" not in self._dims:
            return [], []
        chosen = self._humans(humans)
        if "goal" not in self._dims:
            return chosen, []
        solution_goals = self._solution.goal_columns.goals
        pairs = [(h, g) for h in chosen for g in range(len(self._names[h])) if solution_goals[h][g] is not None]
        if goals is not None:
            wanted = [goals] if isinstance(goals, str) or not isinstance(goals, Iterable) else list(goals)
            pairs = self._with_goals(pairs, wanted)
        return [h for h, _ in pairs], [g for _, g in pairs]

    def _humans(self, humans: Humans | None) -> list[int]:
        if humans is None:
            return list(range(len(self._solution.humans)))
        wanted = [as_integer(human) for human in ([humans] if not isinstance(humans, Iterable) else humans)]
        for human in wanted:
            if human not in self._solution.humans:
                raise ValueError(f"human {human}; the humans of this solution are agents {self._solution.humans}")
        return [h for h, human in enumerate(self._solution.humans) if human in wanted]

    def _with_goals(self, pairs: list[tuple[int, int]], wanted: list[GoalLike]) -> list[tuple[int, int]]:
        """Pairs whose goal is wanted; it is enough if one of the chosen humans has a goal."""
        columns = self._solution.goal_columns
        found: set[tuple[int, int]] = set()
        for goal in wanted:
            errors = []
            for h in dict.fromkeys(h for h, _ in pairs):
                try:
                    found.add((h, goal_number(columns, columns.humans[h], goal)))
                except ValueError as error:
                    errors.append(error)
            if len(errors) == len({h for h, _ in pairs}):
                raise errors[0]
        return [pair for pair in pairs if pair in found]

    def columns(self, pandas: ModuleType, n_states: int) -> dict[str, Column]:
        """Humans, goals, actions and robot profiles of all rows."""
        found: dict[str, Column] = {}
        if "human" in self._dims:
            human_P = np.array(self._solution.humans, dtype=np.int16)[self._human_P]
            found["human"] = np.tile(human_P.repeat(self._n_last), n_states)
        if "goal" in self._dims:
            names = [self._names[h][g] for h, g in zip(self._human_P, self._goal_P, strict=True)]
            found["goal"] = _categories(pandas, names, n_before=n_states, n_after=self._n_last)
        names_of = {"action": self._solution.model.action_names, "robot_profile": robot_profile_names(self._solution)}
        for dim, names in names_of.items():
            if dim in self._dims:
                found[dim] = _categories(pandas, names, n_before=n_states * self._n_pairs)
        return found

    def values(self, quantity: str, places: dict[int, Bodies], n_states: int) -> Array:
        value_SC = np.empty((n_states, self.per_state))
        source, s = source_of(self._solution, quantity), 0
        for t, here in places.items():
            value_MC = value_SC[s : s + len(here)]
            value_MC[:] = 0.0  # rows that are in no piece
            for where, rows in source(t, here):
                value_MC[where] = self._chosen(rows).reshape(len(rows), -1)
            trim_after(len(here))
            s += len(here)
        return value_SC.reshape(-1)

    def _chosen(self, rows: Array) -> Array:
        if "human" not in self._dims:
            return rows
        return rows[:, self._human_P, self._goal_P] if "goal" in self._dims else rows[:, self._human_P]


def _levels(solution: Solution, levels: int | Iterable[int] | slice | None) -> list[int]:
    n = solution.dag.horizon + 1
    if levels is None or isinstance(levels, slice):
        return list(range(n)[levels if isinstance(levels, slice) else slice(None)])
    chosen = [as_integer(t) for t in (levels if isinstance(levels, Iterable) else [levels])]
    for t in chosen:
        if not -n <= t < n:
            raise ValueError(f"level {t}: levels are numbered 0 to {n - 1}")
    return sorted({t % n for t in chosen})


def _places(solution: Solution, t: int, min_reached: float | None) -> Bodies:
    if min_reached is None:
        return range(solution.dag.level_sizes[t])
    places: IndexArray = np.flatnonzero(solution.reached[t] >= min_reached)
    return bodies_from(places)


def _check_rows(quantity: str, n_states: int, cells: _Cells, max_rows: int) -> None:
    n_rows = n_states * cells.per_state
    if n_rows > max_rows:
        times = "" if cells.per_state == 1 else f" ({n_states:,} states x {cells.per_state:,} numbers)"
        raise ValueError(
            f"a table of {quantity} would have {n_rows:,} rows{times}, more than max_rows={max_rows:,}; choose fewer "
            "levels, humans or goals, leave out unlikely states with min_reached, raise max_rows, or use to_xarray, which "
            "reads on demand"
        )


def _along(places: Mapping[int, Bodies], of_level: Source, dtype: npt.DTypeLike) -> Array:
    """A number for each state of all chosen levels; ``of_level`` reads the pieces of one level."""
    found: Array = np.zeros(sum(map(len, places.values())), dtype=dtype)
    s = 0
    for t, here in places.items():
        out = found[s : s + len(here)]
        for where, piece in of_level(t, here):
            out[where] = piece
        s += len(here)
    return found


def _repeated(number_S: Array, per_state: int) -> Array:
    return number_S if per_state == 1 else number_S.repeat(per_state)


def _categories(pandas: ModuleType, names: Sequence[str], *, n_before: int, n_after: int = 1) -> pandas.Categorical:
    """A categorical column: each name ``n_after`` times, and all of that ``n_before`` times."""
    known = list(dict.fromkeys(names))
    dtype = np.min_scalar_type(-max(1, len(known)))
    code_P = np.array([known.index(name) for name in names], dtype=dtype).repeat(n_after)
    return pandas.Categorical.from_codes(np.tile(code_P, n_before), categories=known)
