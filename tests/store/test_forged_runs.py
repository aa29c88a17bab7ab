"""Runs that somebody has forged, checksums and all: they are used in every way there is, and met with clear errors only.

``forging.py`` forges and ``attack.py`` uses them; here are the processes that this runs in, since what is looked for would
take pytest with it: a crash, a hang, memory without end.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from store_tools import environment

HERE = Path(__file__).parent
KINDS = ("grid", "keys", "array", "ring", "shared", "unfinished DAG", "unfinished solution")


def attacked(kinds: str, first: int, n: int, seconds: float) -> str:
    """What an attack has found; its last forgery, if it did not come to its end."""
    command = [sys.executable, str(HERE / "attack.py"), kinds, str(first), str(n)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False, env=environment())
    lines = done.stdout.splitlines()
    found = [line for line in lines if line.startswith("FOUND")]
    if done.returncode:
        last = [line for line in lines if line.startswith("seed")][-1:]
        found.append(f"ended with code {done.returncode} at {last}: {done.stderr[-3000:]}")
    assert done.returncode or lines[-1].startswith("COUNTS")
    return "\n".join(found)


def test_forged_runs_of_all_kinds_are_met_with_clear_errors() -> None:
    found = attacked(",".join(KINDS), 0, 25, 600)
    assert not found, found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", range(100_000, 102_000, 500))
def test_thousands_of_forged_runs_are_met_with_clear_errors(kind: str, first: int) -> None:
    found = attacked(kind, first, 500, 7200)
    assert not found, found
