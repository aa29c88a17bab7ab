"""Whatever is killed, whenever: what is left can be looked at, and the same command, given once, mends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from kills.commands import COMMANDS
from store_tools import environment


def kill(*arguments: object, folder: Path, seconds: float) -> str:
    """In a process of its own, which can be forked since it has one thread only."""
    command = [sys.executable, "-m", "kills.rounds", *map(str, arguments)]
    env = environment(TMPDIR=str(folder))
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


SOME = (
    "enumerate, zip", "enumerate, URL", "enumerate, folder, overwrite", "enumerate, temporary", "solve, folder, sub-problem",
    "solve, URL", "solve, archive", "report", "batch, DAGs kept, summary", "batch, URL",
)  # fmt: skip


def test_a_few_kills_of_some_commands(tmp_path: Path) -> None:
    table = kill("--only", "--rounds", 2 * len(SOME), *SOME, folder=tmp_path, seconds=300)
    assert int(table.splitlines()[-1].split("|")[3]) >= len(SOME)


@pytest.mark.slow
def test_five_hundred_kills(tmp_path: Path) -> None:
    table = kill("--rounds", 500, "--seed", 1, folder=tmp_path, seconds=7200)
    assert int(table.splitlines()[-1].split("|")[3]) >= 500


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, command in COMMANDS.items() if not command.workers])
def test_kills_at_every_single_touch_of_the_disk(name: str, tmp_path: Path) -> None:
    kill("--every", "--only", name, folder=tmp_path, seconds=7200)
