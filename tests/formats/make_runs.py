"""Make small runs with the package that is imported, for the tests of later versions; once for each release.

    python tests/formats/make_runs.py 0.2.0      # writes tests/formats/0.2.0.tar.xz

Folders and a zip file, finished and not, one set of parameters and several, compiled worlds and one in Python, by ``solve``
and in batches. An archive is written once and never changed: what users have on their disks does not change either.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tarfile
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from empo_bi import Params, enumerate_dag, load_world, run_batch, solve

HERE = Path(__file__).resolve().parent
SETS = (Params(), Params(beta_h=5, xi=2, gamma_r=0.9))
BATCH = {"worlds": ["basics/first_steps"], "steps": [1, 2], "params": {"zeta": [1, 2]}}


class Cell:
    """To be on a cell of the ring."""

    def __init__(self, cell: int) -> None:
        self.cell = cell

    def is_achieved(self, state: Any) -> bool:
        return bool(state[1] == self.cell)

    def __hash__(self) -> int:
        return self.cell

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.cell == other.cell

    def __repr__(self) -> str:
        return f"cell {self.cell}"


class Cells:
    """All goals of the ring."""

    def generate(self, state: Any, human: int) -> Any:
        return [(Cell(1), 0.75), (Cell(2), 0.25)]


class Ring:
    """A human walks on a ring of five cells; a robot may hold it back half the time."""

    n_agents = 2
    action_space = SimpleNamespace(n=2)
    human_agent_indices, robot_agent_indices = (0,), (1,)
    possible_goal_generator = Cells()

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, cell = state
        if step == 3:
            return None
        ahead, here = (step + 1, (cell + actions[0]) % 5), (step + 1, cell)
        return [(0.5, ahead), (0.5, here)] if actions[1] and ahead != here else [(1.0, ahead)]


def keys() -> Any:
    return load_world("one_key_two_rooms", max_steps=2)


def rink(steps: int) -> Any:
    return load_world("ice_rink", max_steps=steps)


def make(folder: Path) -> None:
    os.chdir(folder)  # so that no run knows where it was made
    solve(keys(), SETS[1], out="keys", progress=False).close()
    for solution in solve(rink(2), list(SETS), out="two_sets", precision="float64", compression=True, progress=False):
        solution.close()
    solve(Ring(), SETS[0], out="ring", progress=False).close()
    enumerate_dag(rink(3), store="rink.zip", precision="exact", progress=False).close()
    with contextlib.suppress(Exception):  # too many states, of an error that has moved since
        enumerate_dag(rink(5), store="unfinished", max_states=150, progress=False)
    for keep in ("values", "summary"):
        run_batch({**BATCH, "keep": keep}, out=keep, progress=False)


def main() -> None:
    version = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        with tarfile.open(HERE / f"{version}.tar.xz", "w:xz") as archive:
            archive.add(folder, version)


if __name__ == "__main__":
    import make_runs  # worlds are known by their modules, which is not to be __main__

    make_runs.main()
