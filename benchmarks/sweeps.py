"""Enumerating and solving in a process of its own, for :func:`benchmarks.child.in_child`: times, peaks and sizes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from empo_bi import Dag, Params, enumerate_dag, load_world, open_dag, solve
from empo_bi.runtime.machine import peak_bytes, reset_peak, resident_bytes

PARAMS = Params(beta_h=10.0, gamma_h=0.99, beta_r=10.0, gamma_r=0.99, zeta=2.0, xi=1.0, eta=1.1)
_EXACT = "exact"  # how solve() itself asks for probabilities


def warm_up(**_: Any) -> None:
    """Load all kernels and libraries, so that they are neither in times nor in what is added to memory."""
    world = load_world("asymmetric_freeing", max_steps=3)
    with tempfile.TemporaryDirectory() as folder:
        solve(world, PARAMS, out=Path(folder) / "run", progress=False).close()


def enumerated(world: Any, steps: int, folder: str) -> dict[str, float]:
    """The DAG, stored in a folder."""
    dag = enumerate_dag(load_world(world, max_steps=steps), store=folder, precision=_EXACT, progress=False)
    found = sizes_of(dag)
    dag.close()
    return found


def swept_in_memory(world: Any, steps: int, workers: int) -> dict[str, float]:
    """DAG and solution in memory. Only the sweep is timed; what it peaks at includes the DAG."""
    model = load_world(world, max_steps=steps)
    dag = enumerate_dag(model, precision=_EXACT, progress=False)
    return _swept(lambda: solve(model, PARAMS, dag=dag, workers=workers, progress=False))


def swept_from_disk(world: Any, steps: int, workers: int, dag_folder: str, memory_limit: str | None) -> dict[str, float]:
    """DAG in a folder, which is opened and read, solution to another. All of that is timed."""
    model = load_world(world, max_steps=steps)
    with tempfile.TemporaryDirectory() as folder:
        return _swept(
            lambda: solve(
                model,
                PARAMS,
                dag=open_dag(dag_folder, world=model, memory_limit=memory_limit),
                out=Path(folder) / "run",
                workers=workers,
                memory_limit=memory_limit,
                progress=False,
            )
        )


def enumerated_and_solved(world: Any, steps: int) -> dict[str, float]:
    """Both, to disk, one worker each. Short ones are repeated, and the least of each number counts."""
    model = load_world(world, max_steps=steps)
    found: dict[str, float] = {}
    begin = time.perf_counter()
    while not found or time.perf_counter() - begin < 0.2:
        with tempfile.TemporaryDirectory() as folder:
            run = _both(model, Path(folder))
        found = {name: min(value, found.get(name, value)) for name, value in run.items()}
    return found


def _both(model: Any, folder: Path) -> dict[str, float]:
    dags: list[Dag] = []
    enumerate_part = _timed(
        lambda: dags.append(enumerate_dag(model, store=folder / "dag", precision=_EXACT, progress=False))
    )
    dag = dags[0]
    found = {f"enumerate {name}": value for name, value in enumerate_part.items()} | sizes_of(dag)
    found["enumerate disk"] = nbytes_in(folder / "dag")
    solutions: list[Any] = []
    solve_part = _timed(lambda: solutions.append(solve(model, PARAMS, dag=dag, out=folder / "run", progress=False)))
    found |= {f"solve {name}": value for name, value in solve_part.items()}
    found["solve disk"] = nbytes_in(folder / "run")
    found["columns"] = int(solutions[0].values.Vh_e[0].size)
    solutions[0].close()
    dag.close()
    return found


def _swept(job: Callable[[], Any]) -> dict[str, float]:
    """Time and peak of a sweep; what the peak includes was there before, and is for the caller to take off."""
    solutions: list[Any] = []
    held = resident_bytes()
    found = _timed(lambda: solutions.append(job()))
    found |= {"held": held, "V_r": float(solutions[0].values.V_r[0][0])}
    found |= sizes_of(solutions[0].dag)
    solutions[0].close()
    return found


def _timed(job: Callable[[], Any]) -> dict[str, float]:
    reset_peak()
    begin, cpu = time.perf_counter(), time.process_time()
    job()
    return {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "peak": peak_bytes()}


def sizes_of(dag: Dag) -> dict[str, float]:
    """Numbers of states, bodies and profiles; ``expanded`` bodies and ``solved`` states are those with successors."""
    sizes = dag.levels.sizes
    return {
        "states": dag.n_states,
        "bodies": dag.n_bodies,
        "profiles": dag.n_profiles,
        "expanded": sum(level.n_bodies for level in sizes[:-1]),
        "solved": sum(dag.level_sizes[:-1]),
        "last level": dag.level_sizes[-1],
        "level before": dag.level_sizes[-2],
    }


def nbytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
