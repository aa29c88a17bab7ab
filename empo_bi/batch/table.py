"""The table of a batch: one row a run, in CSV and in Parquet."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from typing import Any

from empo_bi.batch.folder import Folder, Json

# Columns that depend on machine and moment; all others are the same whenever and wherever a batch runs.
VOLATILE = ("enumerate_seconds", "solve_seconds", "metric_seconds", "runs_in_pass", "peak_bytes", "host")


class Table:
    """Rows with the same columns: None where a run has none.

    Examples
    --------
    >>> table = Table([{"run": "a", "V_r": -1.5}, {"run": "b", "error": "no goals"}])
    >>> table.columns
    ['run', 'V_r', 'error']
    >>> table["V_r"]
    [-1.5, None]
    """

    def __init__(self, rows: Sequence[Json]) -> None:
        first = dict.fromkeys(name for row in rows for name in row if name not in VOLATILE)
        last = dict.fromkeys(name for name in VOLATILE if any(name in row for row in rows))
        self.columns = [*first, *last]
        self.rows = [{name: row.get(name) for name in self.columns} for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> list[Any]:
        if column not in self.columns:
            raise KeyError(f"there is no column {column!r}, only {', '.join(self.columns)}")
        return [row[column] for row in self.rows]

    def to_pandas(self) -> Any:
        """A data frame (extra ``analysis``)."""
        import pandas

        return pandas.DataFrame(self.rows, columns=self.columns)

    def to_csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_as_text(row[name]) for name in self.columns] for row in self.rows)
        return text.getvalue()

    def to_parquet(self) -> bytes | None:
        """None where pyarrow is not installed (extra ``batch``)."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            return None
        sink = pyarrow.BufferOutputStream()
        columns = {name: pyarrow.array(_of_one_type(self[name])) for name in self.columns}
        pyarrow.parquet.write_table(pyarrow.table(columns), sink, compression="zstd")
        return bytes(sink.getvalue().to_pybytes())

    def write(self, folder: Folder) -> None:
        """Write ``table.csv`` and, where pyarrow is installed, ``table.parquet``, unless they are there already."""
        text = self.to_csv().encode()
        if folder.read_bytes("table.csv") == text and "table.parquet" in folder.names("table"):
            return  # pyarrow takes half a second to be loaded
        parquet = self.to_parquet()
        if parquet is not None:
            folder.write_bytes("table.parquet", parquet)
        folder.write_bytes("table.csv", text)  # the last, so that both are of one time


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    return str(value)


def _of_one_type(values: list[Any]) -> list[Any]:
    """Whole numbers beside fractions become fractions, anything else beside something else a text."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) < 2:
        return values
    if kinds == {int, float}:
        return [None if value is None else float(value) for value in values]
    return [None if value is None else str(value) for value in values]
