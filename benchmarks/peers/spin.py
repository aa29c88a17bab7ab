"""Enumeration by the model checker SPIN, on the model of :mod:`benchmarks.peers.promela`: :func:`enumerate_with_spin`.

SPIN writes a C program for the model (``spin -a``), gcc compiles it, and the program ``pan`` searches all states. It counts
states and transitions and keeps the states in its hash table; it stores neither transitions nor probabilities.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.peers.children import ChildRun, run_child
from benchmarks.peers.promela import promela_of
from empo_bi import GridWorld

# One process, and only reachability is asked for: no cycles, no fairness, no partial orders, no compression of states.
FLAGS = ("-O2", "-w", "-DSAFETY", "-DNOREDUCE", "-DNOFAIR", "-DNOCOMP")
# SPIN refuses hidden variables in a breadth-first search since it would not restore them. The model's are constant or set
# before they are read within one step, so there is nothing to restore, and the refusal is taken out of the program.
_REFUSAL = "#error cannot use BFS on models with variables declared hidden"


class SpinError(RuntimeError):
    """SPIN, gcc or the search failed, or the search was not complete."""


@dataclass(frozen=True)
class SpinRun:
    """One enumeration: what was found, and the cost of its three programs, in wall seconds unless named otherwise.

    ``n_transitions`` counts profiles and orders of execution, also where they lead to the same state; from a hundred million
    on, ``pan`` rounds it to eight digits.
    ``reported_bytes`` is the memory that ``pan`` says it used, ``peak_bytes`` its peak as the operating system saw it.
    """

    n_states: int
    n_transitions: int
    spin_seconds: float
    gcc_seconds: float
    pan_seconds: float
    pan_cpu_seconds: float
    reported_bytes: int
    peak_bytes: int


def why_missing() -> str | None:
    """None if SPIN can be used, else what to install."""
    missing = [program for program in ("spin", "gcc") if shutil.which(program) is None]
    return f"{' and '.join(missing)} not found; apt-get install spin gcc" if missing else None


def enumerate_with_spin(
    world: GridWorld,
    folder: str | Path,
    *,
    count: Literal["states", "bodies"] = "states",
    hash_bits: int = 22,
    memory_limit_mb: int = 8192,
    flags: Sequence[str] = FLAGS,
) -> SpinRun:
    """Let SPIN find all states of a world.

    Parameters
    ----------
    world : GridWorld
        See :func:`~benchmarks.peers.promela.promela_of` for what is supported.
    folder : path
        Where the model and the programs are written.
    count : "states" or "bodies"
        States with their step, by depth-first search; or without it, by breadth-first search no deeper than ``max_steps``,
        which is what ``enumerate_dag`` does and the least work for SPIN.
    hash_bits : int
        The hash table has ``2 ** hash_bits`` slots of 8 bytes. It does not grow: best about as many as there are states.
    memory_limit_mb : int
    flags : list of str
        For gcc; the default is for speed of the search.

    Raises
    ------
    SpinError
        If a program is missing or fails, or the search hits a limit.
    UnsupportedWorldError
        If the model cannot say what the world has.
    """
    if (missing := why_missing()) is not None:
        raise SpinError(missing)
    if count not in ("states", "bodies"):
        raise ValueError(f"count={count!r}; expected 'states' or 'bodies'")
    folder, with_step = Path(folder), count == "states"
    (folder / "model.pml").write_text(promela_of(world, with_step=with_step))
    spin = _run(["spin", "-a", "model.pml"], folder)
    search = () if with_step else ("-DBFS",)
    if not with_step:
        header = folder / "pan.h"
        header.write_text(header.read_text().replace(_REFUSAL, ""))
    gcc = _run(["gcc", *flags, *search, f"-DMEMLIM={memory_limit_mb}", "-o", "pan", "pan.c"], folder)
    # With its step, the deepest state is at depth max_steps, and pan wants a little room below; without, the limit is meant.
    depth = world.max_steps + 10 if with_step else world.max_steps
    pan = _run(["./pan", f"-m{depth}", f"-w{hash_bits}"], folder)
    return _read(pan, spin.seconds, gcc.seconds, is_depth_meant=not with_step)


def _run(command: list[str], folder: Path) -> ChildRun:
    run = run_child(command, folder)
    if run.exit_code != 0:
        raise SpinError(f"{' '.join(command)} ended with {run.exit_code} in {folder}:\n{run.output[-2000:]}")
    return run


def _read(pan: ChildRun, spin_seconds: float, gcc_seconds: float, *, is_depth_meant: bool) -> SpinRun:
    """What ``pan`` says, if it says that it is through."""
    complaints = ["Search not completed", "MEMLIM", "out of memory"] + ["max search depth too small"] * (not is_depth_meant)
    for complaint in complaints:
        if complaint in pan.output:
            raise SpinError(f"pan did not search all states ({complaint}); it wrote:\n{pan.output}")
    if (errors := _number(pan, r"errors:\s+(\S+)")) != 0:
        raise SpinError(f"pan found {errors:g} errors where none can be; it wrote:\n{pan.output}")
    megabytes = _number(pan, r"(\S+)\s+(?:total actual memory usage|memory usage \(Mbyte\))")
    return SpinRun(
        n_states=_exact(pan, r"(\S+) states, stored"),
        n_transitions=int(_number(pan, r"(\S+) transitions \(=")),
        spin_seconds=spin_seconds,
        gcc_seconds=gcc_seconds,
        pan_seconds=pan.seconds,
        pan_cpu_seconds=pan.cpu_seconds,
        reported_bytes=round(megabytes * 2**20),
        peak_bytes=pan.peak_bytes,
    )


def _number(pan: ChildRun, pattern: str) -> float:
    found = re.search(pattern, pan.output)
    if found is None:
        raise SpinError(f"pan's report lacks {pattern!r}; it wrote:\n{pan.output}")
    return float(found[1])


def _exact(pan: ChildRun, pattern: str) -> int:
    """An exact count. Pan writes eight digits and rounds larger numbers, which would not be a count any more."""
    number = _number(pan, pattern)
    if number >= 10**8:
        raise SpinError(f"pan reports {number:g} for {pattern!r}, rounded to eight digits: too many to be counted exactly")
    return int(number)
