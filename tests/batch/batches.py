"""What the tests of batches have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from empo_bi import run_batch
from empo_bi.batch.table import VOLATILE, Table

SMALL: dict[str, Any] = {
    "worlds": ["basics/first_steps", "pushing/mirror_freeing"],
    "steps": [3, 4],
    "params": {"gamma_h": 0.9, "zeta": [1, 2]},
}


def lasting(table: Table) -> list[dict[str, Any]]:
    """Rows without what depends on machine and moment."""
    return [{name: value for name, value in row.items() if name not in VOLATILE} for row in table.rows]


def lasting_csv(folder: Path) -> list[str]:
    """Lines of ``table.csv`` without columns that depend on machine and moment, which are the last ones."""
    lines = (folder / "table.csv").read_text().splitlines()
    names = lines[0].split(",")
    n = len([name for name in names if name in VOLATILE])
    assert set(names[-n:]) <= set(VOLATILE)
    return [line.rsplit(",", n)[0] for line in lines]


def run_here(batch: dict[str, Any], out: Path, **options: Any) -> Any:
    """In this process, quietly."""
    return run_batch(batch, out=out, **{"workers": 1, "progress": False, **options})
