"""Nothing is left behind: twenty solves in one process hold what two of them did, and leave no folders or threads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from store_tools import environment, run_python

N_RUNS = 20
SLACK = 8_000_000  # of an allocator that fills the pools of its threads; two runs that stay would be as much

RUNS = """
import gc, json, os, sys, tempfile, threading
import numpy as np
from empo_bi import load_world, solve
from empo_bi.runtime.machine import resident_bytes, trim
out = {"memory": None, "temporary": True}[sys.argv[1]]
leak = sys.argv[2] == "leak"
kept, held, sizes = [], [], []
for n in range(int(sys.argv[3])):
    solution = solve(load_world("heavy_boots"), out=out, workers=1 + n % 2, progress=False)
    sizes.append(solution.memory_report().total.packed + solution.dag.memory_report().total.packed)
    if leak:
        kept.append(np.ones(sizes[-1] // 8))
    del solution
    gc.collect()
    trim()
    held.append(resident_bytes())
print(json.dumps({
    "held": held, "size": sizes[0], "threads": [thread.name for thread in threading.enumerate()],
    "left": os.listdir(tempfile.gettempdir()),
    "files": len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0,
}))
"""


def twenty_solves(where: str, tmp_path: Path, *, leak: bool = False) -> dict[str, Any]:
    """In a process of their own, whose memory no other test has used, with a folder of its own for what is temporary."""
    child = run_python(RUNS, where, "leak" if leak else "-", N_RUNS, env=environment(TMPDIR=str(tmp_path)))
    assert child.returncode == 0, child.stderr[-2000:]
    return dict(json.loads(child.stdout))


@pytest.mark.parametrize("where", ["memory", "temporary"])
def test_twenty_solves_hold_no_more_than_two(where: str, tmp_path: Path) -> None:
    found = twenty_solves(where, tmp_path)
    assert 18 * found["size"] > 8 * SLACK  # so that a run that stays would show
    held = found["held"]
    assert max(held[2:]) - held[1] < SLACK, [f"{nbytes / 1e6:.1f} MB" for nbytes in held]
    assert [name for name in found["threads"] if name.startswith("empo_bi")] == []
    assert found["left"] == []
    assert found["files"] < 30


def test_a_process_that_keeps_what_it_solved_would_be_noticed(tmp_path: Path) -> None:
    """The test above can fail: here every run leaves as much as its results take."""
    held = twenty_solves("memory", tmp_path, leak=True)["held"]
    assert max(held[2:]) - held[1] > 5 * SLACK
