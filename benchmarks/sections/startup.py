"""How long it takes until the first result: importing the package, and the command on a trivial world, warm and cold."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.child import ROOT
from benchmarks.measuring import Runs, in_turns
from benchmarks.report import Section
from benchmarks.sizes import Sizes

WORLD = "first_steps"
HEAVY = ["numba", "zarr", "scipy", "matplotlib", "xarray", "dask", "pandas"]
# What an import brings, printed by a process of its own.
_LOADED = "import json, sys; before = set(sys.modules); import empo_bi; print(json.dumps(sorted(set(sys.modules) - before)))"


def measure(sizes: Sizes) -> Section:
    section = Section("startup", "Startup")
    section.about.append(
        f"Fresh processes, one after the other. *The command* is `empo-bi solve {WORLD} --quiet`, from the shell's call to "
        "the end of the process. *Warm* finds its compiled kernels on disk; *cold* has an empty folder for them "
        "(`NUMBA_CACHE_DIR`), as after an installation or an upgrade, and compiles what it needs."
    )
    with tempfile.TemporaryDirectory() as folder:
        cold = _cold(sizes.startup_cold_runs, Path(folder))
        compiled = None if cold is None else _cache(Path(folder), 0)  # what the first cold run compiled
        _solve(compiled)  # so that all kernels are there, and their files in the page cache
        jobs = {
            "bare interpreter": lambda: _run("-c", "pass"),
            "import empo_bi": lambda: _run("-c", "import empo_bi"),
            "import empo_bi, load_world, solve": lambda: _run("-c", "from empo_bi import load_world, solve"),
            "the command, warm": lambda: _solve(compiled),
        }
        runs = in_turns(jobs, sizes.rounds)
        n_kernels = None if compiled is None else len(list(compiled.rglob("*.nbc")))
    _time_table(section, runs, cold)
    _import_table(section, n_kernels)
    section.want("warm `empo-bi solve` of a trivial world", runs["the command, warm"].seconds, at_most=2.0, unit=" s")
    section.want(
        "cold `empo-bi solve` of a trivial world", None if cold is None else cold.seconds, at_most=30.0, unit=" s",
        why="It was left out: compiling takes half a minute of CPU; python -m benchmarks startup has it." if cold is None
        else "Compiling takes nearly all of it, so others on the machine (see the cores below) stretch it.",
    )  # fmt: skip
    return section


def _time_table(section: Section, runs: dict[str, Runs], cold: Runs | None) -> None:
    bare = runs["bare interpreter"].seconds
    table = section.table("Time", "", "wall", "spread", "CPU", "without the interpreter")
    for name, run in runs.items():
        own = "–" if name == "bare interpreter" else f"{(run.seconds - bare) * 1e3:,.0f} ms"
        table.row(name, *run.cells(), own)
        section.figures[f"{name}, s"] = run.seconds
    if cold is None:
        table.row("the command, cold", "not in this size", "–", "–", "–")
        section.missing.append("the cold command, which takes half a minute: python -m benchmarks startup has it")
    else:
        table.row("the command, cold", *cold.cells(), f"{cold.seconds - bare:.1f} s")
        section.figures["the command, cold, s"] = cold.seconds


def _import_table(section: Section, n_kernels: int | None) -> None:
    loaded = json.loads(_run("-c", _LOADED))
    heavy = [name for name in HEAVY if name in loaded]
    table = section.table(
        "What is loaded and compiled", "", "number",
        note=f"Heavy libraries looked for: {', '.join(HEAVY)}. Found among the modules: {', '.join(heavy) or 'none'}. A "
        "specialisation is a kernel for one combination of types, a file in numba's cache.",
    )  # fmt: skip
    table.row("modules that `import empo_bi` loads", f"{len(loaded)}")
    table.row("heavy libraries among them", f"{len(heavy)}")
    table.row("compiled specialisations that the command needs", "not in this size" if n_kernels is None else f"{n_kernels}")
    section.figures |= {"modules": len(loaded), "heavy modules": len(heavy)}
    if n_kernels is not None:
        section.figures["specialisations"] = n_kernels


def _cold(n_runs: int, folder: Path) -> Runs | None:
    """The command with an empty cache, each time; None if that is not wanted."""
    runs = Runs()
    for i in range(n_runs):
        runs.run(lambda i=i: _solve(_cache(folder, i)))  # type: ignore[misc]
    return runs if n_runs else None


def _cache(folder: Path, i: int) -> Path:
    return folder / f"compiled_{i}"


def _solve(compiled: Path | None) -> str:
    """The command, with a folder for compiled kernels, or the usual one."""
    environment = {} if compiled is None else {"NUMBA_CACHE_DIR": str(compiled)}
    return _run("-m", "empo_bi", "solve", WORLD, "--quiet", **environment)


def _run(*arguments: str, **environment: str) -> str:
    """What a fresh interpreter prints. It sees this copy of the package, wherever it is started."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} ended with exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout
