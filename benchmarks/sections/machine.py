"""The yardstick: what this machine copies, gathers and writes, in the same run as everything else."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt
import psutil

from benchmarks.measuring import Runs, in_turns
from benchmarks.report import Section
from benchmarks.sizes import Sizes

_ROW = 36  # columns of a table row that the sweep gathers at a time in the worlds measured here


@numba.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def gather_sum(table_NX, row_K, out_X):  # type: ignore[no-untyped-def]
    """Do nothing but read rows: the least that a sweep has to do."""
    for k in range(row_K.size):
        row = row_K[k]
        for x in range(table_NX.shape[1]):
            out_X[x] += table_NX[row, x]


def measure(sizes: Sizes) -> Section:
    section = Section("machine", "The machine")
    section.about.append(
        f"{os.cpu_count()} cores, {psutil.virtual_memory().total / 1e9:.0f} GB. *Copy* counts bytes read and written, one "
        f"core. *Gather* reads rows of {_ROW} float32 numbers, each once, and adds them up: anywhere, or (*local*) at "
        "places near each other, as in a level. *Disk* is a file of random bytes in the "
        "folder for temporary files, written and flushed (`fsync`), and read back (from the page cache, if it is there)."
    )
    rng = np.random.default_rng(0)
    source = rng.random(sizes.bandwidth_bytes // 8)
    target = np.empty_like(source)
    table_NX = rng.random((sizes.bandwidth_bytes // 4 // _ROW, _ROW), dtype=np.float32)
    anywhere = rng.integers(0, len(table_NX), len(table_NX))
    nearby = np.clip(np.arange(len(table_NX)) + rng.integers(-200, 200, len(table_NX)), 0, len(table_NX) - 1)
    out_X = np.zeros(_ROW, dtype=np.float32)
    gather_sum(table_NX[:1], anywhere[:0], out_X)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bytes"
        jobs = {
            "copy": lambda: np.copyto(target, source),
            "gather, anywhere": lambda: gather_sum(table_NX, anywhere, out_X),
            "gather, local": lambda: gather_sum(table_NX, nearby, out_X),
            "disk, write": lambda: _write(path, source),
            "disk, read": lambda: path.read_bytes(),
        }
        runs = in_turns(jobs, sizes.rounds)
    table = section.table("Bandwidth", "", "bytes", "time", "spread", "CPU", "bandwidth")
    for name, run in runs.items():
        n_bytes = table_NX.nbytes if name.startswith("gather") else source.nbytes * (2 if name == "copy" else 1)
        _row(table, name, n_bytes, run)
        section.figures[f"{name} GB/s"] = n_bytes / run.seconds / 1e9
    return section


def _write(path: Path, array: npt.NDArray[np.float64]) -> None:
    with path.open("wb") as file:
        file.write(memoryview(array))
        file.flush()
        os.fsync(file.fileno())


def _row(table, name: str, n_bytes: int, run: Runs) -> None:  # type: ignore[no-untyped-def]
    run.result = None
    table.row(name, f"{n_bytes / 1e6:,.0f} MB", *run.cells(), f"{n_bytes / run.seconds / 1e9:.1f} GB/s")
