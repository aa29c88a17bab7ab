"""Archives of values under the documented names: :func:`archive_value_slices`, :func:`load_archived_value_slices`.

Scripts read ``vh_values.pkl``, ``vhe_values.pkl`` and ``vr_values.pkl`` in an ``archive_dir``. Here nothing is pickled:
these names stand for the arrays that the documented functions leave in that folder, or are files of lines of JSON
(:mod:`empo_bi.store.value_lines`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from pathlib import Path
from typing import TextIO, cast

import numpy as np

from empo_bi.dag.attainment import fixed_goals_of
from empo_bi.dag.dag import Dag
from empo_bi.dag.python_objects import sorted_order
from empo_bi.dag.python_world import LevelFunction, level_of
from empo_bi.dag.world_fingerprint import world_key
from empo_bi.errors import MemoryLimitError, StoreMismatchError, TooManyStatesError
from empo_bi.results.chain import documented_order
from empo_bi.results.solution import Solution
from empo_bi.runtime.byte_sizes import as_text
from empo_bi.runtime.machine import resident_bytes
from empo_bi.runtime.ordinary_files import open_without_links, path_inside
from empo_bi.runtime.progress import say
from empo_bi.solving.enumeration import enumerate_dag
from empo_bi.solving.opening import AGAIN_BYTES
from empo_bi.store.solution_folders import ARCHIVES
from empo_bi.store.value_lines import GoalOf, Slice, Value, append_level, check_end, check_kind, name_of, read_levels
from empo_bi.types import Array, Json
from empo_bi.world.as_model import as_model
from empo_bi.world.model import State, World

Values = MutableSequence[Value] | MutableMapping[State, Value]  # by number, or by state

# By file: the folder of the documented functions' archive, and the array there.
_ARRAYS = {
    "vh_values.pkl": (ARCHIVES[False], "vh"),
    "vhe_values.pkl": (ARCHIVES[True], "ve"),
    "vr_values.pkl": (ARCHIVES[True], "vr"),
}


def detect_archivable_levels(current: int, max_successor_levels: Mapping[int, int], quiet: bool = False) -> list[int]:
    """Levels whose values nobody needs any more, once ``current`` and all levels above it are solved; the highest first.

    Parameters
    ----------
    current : int
        The level that was solved last.
    max_successor_levels : mapping
        For each level, the highest level that its states lead to.
    quiet : bool
        Say nothing.

    Examples
    --------
    >>> detect_archivable_levels(2, {0: 1, 1: 2, 2: 3, 3: 4, 4: 5}, quiet=True)
    [4, 3]
    """
    needed = [highest for level, highest in max_successor_levels.items() if level < current]
    found = sorted((level for level in max_successor_levels if needed and level > max(needed)), reverse=True)
    if found and not quiet:
        say(f"levels {', '.join(map(str, found))} can be archived")
    return found


def archive_value_slices(
    values: Values, states: Sequence[State], level_fct: LevelFunction,
    archivable_levels: Iterable[int], filepath: str | os.PathLike[str], return_values: bool = True, quiet: bool = False,
    archive_dir: str | os.PathLike[str] | None = None,
) -> None:  # fmt: skip
    """Append the values of some levels to a file, which :func:`load_archived_value_slices` reads.

    The file has lines of JSON with checksums (``docs/format.md``), whatever it is called; nothing is pickled. Floats are
    read back as the same numbers.

    Parameters
    ----------
    values : a value for each state, by number; or by state
    states : all states; ``level_fct(state)`` is the level of each
    archivable_levels : the levels to be written
    filepath : the file, inside of ``archive_dir`` if that is given
    return_values : False to empty the entries that were written, which saves memory
    quiet : say nothing

    Raises
    ------
    TypeError
        For values other than numbers, texts, None, arrays, and lists, tuples and dictionaries of these.
    DamagedStoreError
        If a program that was writing the file was stopped within a level.
    """
    path = Path(filepath) if archive_dir is None else Path(archive_dir) / filepath
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size:
        check_end(path)
    level_S = [level_of(level_fct, state) for state in states]
    with open_without_links(path, "a") as file:
        for level in archivable_levels:
            numbers = [i for i, value in enumerate(level_S) if value == level]
            keys = [states[i] for i in numbers] if isinstance(values, Mapping) else numbers
            append_level(cast(TextIO, file).buffer, int(level), numbers, [_of(values, key) for key in keys])
            if not return_values:
                _empty(values, keys)
            if not quiet:
                say(f"level {level}: values of {len(numbers):,} states are in {path}")


def _of(values: Values, key: State) -> Value:
    return values.get(key) if isinstance(values, Mapping) else values[key]


def _empty(values: Values, keys: Iterable[State]) -> None:
    for key in keys:
        if _of(values, key) is not None:
            values[key] = type(values[key])() if isinstance(values[key], dict | list) else None


# --- reading ----------------------------------------------------------------------------------------------------------


def load_archived_value_slices(
    filepath: str | os.PathLike[str], goals: Iterable[object] | None = None
) -> Iterator[tuple[int, list[int], list[Value]]]:
    """Archived values, level by level: ``(level, state_indices, [value per state])``; nothing if there is no such archive.

    Parameters
    ----------
    filepath : path
        A file that :func:`archive_value_slices` wrote; or ``vh_values.pkl``, ``vhe_values.pkl`` or ``vr_values.pkl`` in the
        ``archive_dir`` of the documented functions. States are numbered as in ``world.get_dag()``. A value is
        ``{human: {goal: value}}`` without zeros, or ``[V_r]``.
    goals : objects, optional
        What goals of the same ``repr`` are replaced by. Otherwise keys are goals of the archive's own world where that can
        be made again, and names of goals where it cannot.

    Raises
    ------
    StoreMismatchError
        For a file of another kind. A pickle is never read, since reading one runs whatever its writer wanted.
    DamagedStoreError
    """
    path = Path(filepath)
    named = None if goals is None else {name_of(goal): goal for goal in goals}
    if path.exists():
        return read_levels(path, lambda name: (named or {}).get(name, name))
    folder, array = _ARRAYS.get(path.name, ("", ""))
    if not folder or not (path.parent / folder).is_dir():
        return iter(())
    return _FolderArchive(path_inside(path.parent, folder), named).slices(array)


class _FolderArchive:
    """The arrays that a documented function left in its ``archive_dir``, of a world on a map."""

    def __init__(self, folder: Path, named: Mapping[str, object] | None) -> None:
        from empo_bi.store.location import place_of
        from empo_bi.store.solution_store import SolutionStore

        self._folder, self._named = folder, named
        self._levels = SolutionStore.open(place_of(folder))
        self._manifest: Json = self._levels.manifest

    def slices(self, array: str) -> Iterator[Slice]:
        """Level by level, from the last, as they are solved."""
        if not self._levels.levels:  # nothing was solved yet
            return
        dag = self._dag()
        goal_of = self._goal_of(dag)
        for t in sorted(self._levels.levels, reverse=True):
            value_S = self._levels.get(t, array)
            order = sorted_order(dag.states(t))
            first = int(dag.first_state_T[t])
            numbers = list(range(first, first + len(order)))
            yield self._manifest.get("levels", range(t + 1))[t], numbers, self._entries(value_S[order], goal_of)

    def _dag(self) -> Dag:
        """The states that the rows belong to: found again, since an archive has values only."""
        from empo_bi.store.stored_world import remembered_world

        content, mapping = self._manifest["content"], self._manifest.get("world")
        if mapping is None:
            raise StoreMismatchError(
                f"{self._folder}: does not say which world its rows belong to, since it is older than this version, or its "
                "world is written in Python; solve the world again with the same archive_dir"
            )
        world, is_same = remembered_world(mapping, str(self._folder)), False
        if world_key(world) == (content["world"], content["horizon"]):
            with contextlib.suppress(TooManyStatesError):  # than there are values: no archive makes us look for more
                dag = self._found_again(world, sum(content["level_sizes"]))
                is_same = dag.level_sizes == content["level_sizes"]
        if not is_same:
            raise self._levels.damaged("the metadata of the store: its world is another one than that of its values")
        return dag

    def _found_again(self, world: World, n_states: int) -> Dag:
        limit = resident_bytes() + AGAIN_BYTES
        try:
            return enumerate_dag(world, max_states=max(1, n_states), memory_limit=limit, progress=False)
        except MemoryLimitError as error:
            raise MemoryLimitError(
                f"{self._folder}: to tell which states its rows belong to, they are found again, and that takes more than "
                f"{as_text(AGAIN_BYTES)}; use open_solution on the folder of the run instead"
            ) from error

    def _goal_of(self, dag: Dag) -> GoalOf:
        named = self._named
        if named is None:
            known = fixed_goals_of(dag.model)
            named = {} if known is None else {name_of(goal): goal for goals in known.goals for goal in goals}
        return lambda name: named.get(name, name)

    def _entries(self, value_S: Array, goal_of: GoalOf) -> list[Value]:
        if value_S.ndim == 1:
            return [[value] for value in value_S.tolist()]
        goals = [[goal_of(name) for name in names] for names in self._manifest["goals"]]
        humans = self._manifest["content"]["humans"]
        found: list[dict[int, dict[object, float]]] = [{} for _ in value_S]
        for s, h, g in np.argwhere(value_S != 0).tolist():
            found[s].setdefault(humans[h], {})[goals[h][g]] = float(value_S[s, h, g])
        return found


# --- what the documented functions leave ------------------------------------------------------------------------------


def check_archive_files(archive_dir: str | os.PathLike[str]) -> None:
    """Complain before the work, not after it, if somebody else's file has the name of an archive."""
    for name in _ARRAYS:
        if (Path(archive_dir) / name).exists():
            check_kind(Path(archive_dir) / name)


def archive_as_documented(solution: Solution, archive_dir: str | os.PathLike[str], *, phase_2: bool) -> None:
    """Write the files that scripts read, for a world that cannot be made again from the archive's folder.

    For a world on a map the folder is enough. Files of an earlier run go.
    """
    tables: dict[str, Callable[[], Mapping[State, Value]]] = {"vh_values.pkl": lambda: solution.Vh}
    if phase_2:
        tables = {
            "vhe_values.pkl": lambda: solution.Vhe,
            "vr_values.pkl": lambda: {state: [value] for state, value in solution.Vr.items()},
        }
    has_world = as_model(solution.dag.world).mapping is not None
    for name, table in tables.items():
        path = Path(archive_dir) / name
        path.unlink(missing_ok=True)
        if not has_world:
            _write(solution.dag, table(), path)


def _write(dag: Dag, table: Mapping[State, Value], path: Path) -> None:
    states, place_N = documented_order(dag)
    with open_without_links(path, "wb") as file:
        for t, value in reversed(list(enumerate(dag.level_values))):
            numbers = sorted(place_N[dag.first_state_T[t] : dag.first_state_T[t + 1]].tolist())
            append_level(file, int(value), numbers, [table.get(states[i], {}) for i in numbers])
