"""The table of a batch: one row per run, as CSV and Parquet."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from empo_bi.store.small_files import Folder
from empo_bi.types import Json

if TYPE_CHECKING:
    import pandas
    import pyarrow

# Columns that depend on machine and time; all others are the same whenever and wherever a batch runs.
VOLATILE = ("enumerate_seconds", "solve_seconds", "metric_seconds", "runs_in_pass", "peak_bytes", "host")


FIRST = (
    "run", "status", "world", "steps", "seed", "sample", "repetition", "beta_h", "beta_r", "gamma_h", "gamma_r",
    "optimistic", "zeta", "xi", "eta", "terminal_Vr", "states", "bodies", "transitions", "levels", "V_r", "U_r",
)  # fmt: skip
THEN = ("X_h_", "V_h_alone_", "V_h_", "pi_r_")  # prefixes of the columns of humans and robots
LAST = ("rollouts", "rollout_V_r", "rollout_V_r_error", "error", *VOLATILE)


def is_taken(column: str) -> bool:
    """Whether the table has its own column of this name, so that no metric may use it."""
    return column in (*FIRST, *LAST) or column.startswith(THEN)


def _rank(column: str, metrics: Mapping[str, int]) -> tuple[int, int, str]:
    """Sorts columns in the same order whichever runs there are; metrics come before the last columns."""
    if column in FIRST:
        return 0, FIRST.index(column), ""
    if column in LAST:
        return 3, LAST.index(column), ""
    group = next((i for i, prefix in enumerate(THEN) if column.startswith(prefix)), None)
    if group is None:
        return 2, metrics.get(column, metrics.get(column.partition(".")[0], 0)), ""
    return 1, group, "".join(re.findall(r"^\d+", column.removeprefix(THEN[group]))).zfill(4)  # by agents


class Table:
    """Rows with the same columns; None if a run has no entry.

    Examples
    --------
    >>> table = Table([{"run": "a", "V_r": -1.5}, {"run": "b", "error": "no goals"}])
    >>> table.columns
    ['run', 'V_r', 'error']
    >>> table["V_r"]
    [-1.5, None]
    """

    def __init__(self, rows: Sequence[Json], metrics: Sequence[str] = ()) -> None:
        """``metrics`` are in the order of their columns."""
        places = {metric: i for i, metric in enumerate(metrics)}
        names = dict.fromkeys(name for row in rows for name in row)
        self.columns = sorted(names, key=lambda name: _rank(name, places))
        self.rows = [{name: row.get(name) for name in self.columns} for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self.columns:
            raise KeyError(f"no column {column!r}; the columns are {', '.join(self.columns)}")
        return [row[column] for row in self.rows]

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame; needs the extra ``analysis``."""
        import pandas

        return pandas.DataFrame(self.rows, columns=self.columns)

    def to_csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_as_text(row[name]) for name in self.columns] for row in self.rows)
        return text.getvalue()

    def to_parquet(self) -> bytes | None:
        """The table as Parquet; None if pyarrow is not installed (extra ``batch``)."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            return None
        sink = pyarrow.BufferOutputStream()
        columns = {name: _as_arrow(pyarrow, _of_one_type([row[name] for row in self.rows])) for name in self.columns}
        pyarrow.parquet.write_table(pyarrow.table(columns), sink, compression="zstd")
        return bytes(sink.getvalue().to_pybytes())

    def write(self, folder: Folder) -> None:
        """Write ``table.csv`` and, if pyarrow is installed, ``table.parquet``, unless they are up to date."""
        text = self.to_csv().encode(errors="backslashreplace")
        # At a URL, a killed process may have left part of a file. Importing pyarrow takes half a second.
        if folder.read_bytes("table.csv") == text and (folder.read_bytes("table.parquet") or b"").endswith(b"PAR1"):
            return
        folder.remove("table.parquet")  # which may be an old one
        folder.write_bytes("table.csv", text)
        parquet = self.to_parquet()
        if parquet is not None:
            folder.write_bytes("table.parquet", parquet)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    return str(value)


def _as_arrow(pyarrow: ModuleType, values: list[Any]) -> pyarrow.Array:
    """A column; values that Arrow cannot store become texts."""
    try:
        return pyarrow.array(values, type=None if any(value is not None for value in values) else pyarrow.string())
    except (pyarrow.ArrowException, OverflowError, UnicodeError):
        texts = [None if value is None else str(value).encode(errors="backslashreplace").decode() for value in values]
        return pyarrow.array(texts)


def _of_one_type(values: list[Any]) -> list[Any]:
    """Whole numbers beside fractions become fractions; other mixtures become texts."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [None if value is None else str(value) for value in values]
