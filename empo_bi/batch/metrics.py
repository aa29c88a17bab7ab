"""Users' metrics: functions of a solution, loaded by name, whose numbers become columns of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from empo_bi.batch.table import is_taken
from empo_bi.dag.world_fingerprint import key_of
from empo_bi.errors import BatchFileError, MetricError
from empo_bi.results.solution import Solution
from empo_bi.runtime.user_functions import function_of, source_text, text_key
from empo_bi.runtime.wording import short_repr

EXAMPLE = "'my_metrics.py:left_first', a function of a solution"
Entry = bool | int | float | str | None  # what fits into a table


@dataclass(frozen=True)
class MetricReference:
    """A column's name, and ``module:function`` or ``path.py:function``; modules are first looked for in ``folder``."""

    name: str
    reference: str
    folder: Path

    def load(self) -> Metric:
        """Import the function.

        Raises
        ------
        MetricError
            If there is no such function.
        """
        function = function_of(self.reference, self.folder, EXAMPLE)
        return Metric(self.name, function, key_of(function) or text_key(function, self.reference))

    def text(self) -> str | None:
        """The source of its module, for the manifest."""
        return source_text(function_of(self.reference, self.folder, EXAMPLE))


@dataclass(frozen=True)
class Metric:
    """A function of a solution; ``key`` shows whether it has changed."""

    name: str
    function: Callable[[Solution], object]
    key: str

    def columns(self, solution: Solution) -> dict[str, Entry]:
        """Its value for a solution: one column, or several if it returns a mapping."""
        try:
            found = self.function(solution)
        except (Exception, SystemExit) as error:
            raise MetricError(f"metric {self.name}: {type(error).__name__}: {error}") from error
        if isinstance(found, Mapping):
            columns = {f"{self.name}.{part}": self._plain(value) for part, value in found.items()}
            if len(columns) < len(found):
                raise MetricError(f"metric {self.name}: returned {short_repr(found)}; keys must be distinct strings")
            return columns
        return {self.name: self._plain(found)}

    def _plain(self, value: object) -> Entry:
        value = value.item() if isinstance(value, np.generic | np.ndarray) and np.size(value) == 1 else value
        if value is None or isinstance(value, bool):
            return value
        for kind in (int, float, str):
            if isinstance(value, kind):
                return kind.__str__(value) if kind is str else kind(value)  # also of classes derived from them
        raise MetricError(
            f"metric {self.name}: returned {short_repr(value)}; return a number, a text, or a mapping of names to these"
        )


def metric_references(given: object, folder: Path, error: Callable[..., BatchFileError]) -> tuple[MetricReference, ...]:
    """From a list of references, or a mapping from columns to references."""
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, list | dict):
        raise error(message=f"found {short_repr(given)}; give a list of functions such as {EXAMPLE}")
    named = given.items() if isinstance(given, dict) else ((None, reference) for reference in given)
    found: dict[str, MetricReference] = {}
    for i, (name, reference) in enumerate(named):
        place = i if name is None else name
        if not isinstance(reference, str) or not all(reference.rpartition(":")):
            raise error(place, message=f"found {short_repr(reference)}; give {EXAMPLE}")
        column = str(reference.rpartition(":")[2] if name is None else name)
        if is_taken(column):
            raise error(
                place, message=f"the table already has a column {column!r}; choose another name, as in 'my_{column}: ...'"
            )
        if column in found:
            raise error(place, message=f"two metrics are called {column!r}; give names, as in 'first: a.py:left_first'")
        found[column] = MetricReference(column, reference, folder)
    return tuple(found.values())
