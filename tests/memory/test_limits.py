"""A memory limit holds: real solves in processes that the kernel keeps to it, with the results of a run without one."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from store_tools import run_python

from empo_bi import MemoryLimitError, Params, enumerate_dag, load_world, solve
from empo_bi.memory import budget
from empo_bi.memory.budget import Budget, Needs
from empo_bi.memory.watch import Watch

SOLVE = """
import hashlib, json, os, resource, sys
name, steps, limit, headroom, group, workers, out = sys.argv[1:]
if group:
    with open(os.path.join(group, "cgroup.procs"), "w") as file:
        file.write(str(os.getpid()))
elif headroom != "0":
    resource.setrlimit(resource.RLIMIT_AS, (int(headroom), int(headroom)))
from empo_bi import Params, load_world, solve
from empo_bi.runtime.machine import peak_bytes
params = Params(gamma_h=0.99, gamma_r=0.99, zeta=2, eta=1.1)
solution = solve(load_world(name, max_steps=int(steps)), params, out=out, memory_limit=int(limit) or None,
                 workers=int(workers), progress=False)
digest = hashlib.sha256()
peak = peak_bytes()
for t in range(solution.dag.horizon + 1):
    for array in ("vh", "ve", "xh", "qr", "vr"):
        digest.update(solution.results.get(t, array).tobytes())
print(json.dumps({"peak": peak, "digest": digest.hexdigest()}))
"""
MB = 1_000_000
ADDRESSES = 3_000 * MB  # that a process reserves beyond what it holds: libraries, stacks of threads, LLVM


@contextlib.contextmanager
def hard_limit(nbytes: int) -> Iterator[str]:
    """A control group with that limit; "" where this process may not make one."""
    own = next((line.split(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines() if ":memory:" in line), "")
    group = Path(f"/sys/fs/cgroup/memory{own}") / f"empo_bi-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(nbytes))
    except OSError:
        with contextlib.suppress(OSError):
            group.rmdir()
        yield ""
        return
    try:
        yield str(group)
    finally:
        group.rmdir()


def run(name: str, steps: int, out: Path, *, limit: int = 0, workers: int = 1) -> Any:
    with hard_limit(limit) if limit else contextlib.nullcontext("") as group:
        headroom = limit + ADDRESSES if limit and not group else 0
        return run_python(SOLVE, name, steps, limit, headroom, group, workers, out)


def solved(name: str, steps: int, out: Path, *, limit: int = 0, workers: int = 1) -> dict[str, Any]:
    child = run(name, steps, out, limit=limit, workers=workers)
    assert child.returncode == 0, child.stderr[-2000:]
    return dict(json.loads(child.stdout))


def recommended(message: str) -> int:
    """The limit that a complaint recommends."""
    found = re.search(r"memory_limit='(\d+)MB'", message)
    assert found, message
    return int(found[1]) * MB


CASES = [
    ("asymmetric_freeing", 15),
    pytest.param("asymmetric_freeing", 20, marks=pytest.mark.slow),
    ("items/full_hands", 14),
]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize(("name", "steps"), CASES)
def test_a_solve_stays_below_its_limit_and_finds_the_same(name: str, steps: int, disk_path: Path) -> None:
    free = solved(name, steps, disk_path / "free")
    shutil.copytree(disk_path / "free" / "dag", disk_path / "little" / "dag")  # so that only the sweep lacks memory
    too_little = run_python(SOLVE, name, steps, 201 * MB, 0, "", 1, disk_path / "little")
    assert "MemoryLimitError: solving needs" in too_little.stderr, too_little.stderr[-2000:]
    least = recommended(too_little.stderr)
    for n, limit in enumerate([int(factor * least) for factor in (1.1, 1.25, 2)]):  # a run that enumerates holds more code
        found = solved(name, steps, disk_path / str(n), limit=limit, workers=1 + n % 2)
        assert found["peak"] < limit, f"{found['peak'] / MB:.0f} MB of {limit / MB:.0f} MB"
        assert found["digest"] == free["digest"]


# --- what is said before anything is allocated ------------------------------------------------------------------------


class Room:
    """A process that holds nothing yet, and may take so many bytes."""

    def __init__(self, patch: pytest.MonkeyPatch, held: int = 0) -> None:
        self.held = held
        patch.setattr(budget, "resident_bytes", lambda: self.held)
        patch.setattr(budget, "BASE_BYTES", 0)


def test_a_sweep_that_cannot_fit_says_what_it_needs_for_what_and_what_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    Room(monkeypatch, held=100 * MB)
    world = load_world("asymmetric_freeing", max_steps=12)
    dag = enumerate_dag(world, precision="exact", progress=False)
    allocated = []
    monkeypatch.setattr("empo_bi.sweep.value_tables.Table._empty", lambda self, n: allocated.append(n))
    params = [Params(), Params(beta_r=5), Params(beta_r=50)]
    with pytest.raises(MemoryLimitError) as caught:
        solve(world, params, dag=dag, precision="float64", memory_limit="155MB", progress=False)
    message = str(caught.value)
    for part in ("for Python, libraries", "for tables of values", "for all solved levels", "results on disk (out=PATH",
                 "precision='float16'", "one set of parameters at a time", "half as many goals",
                 "a horizon of "):  # fmt: skip
        assert part in message, message
    assert set(allocated) <= {0}
    shorter = int(re.search(r"a horizon of (\d+) steps", message)[1])  # type: ignore[index]
    assert 1 <= shorter < 12


def test_what_is_recommended_fits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Room(monkeypatch, held=100 * MB)
    world = load_world("asymmetric_freeing", max_steps=12)
    with pytest.raises(MemoryLimitError) as caught:
        solve(world, precision="float64", memory_limit="115MB", progress=False)
    limit = recommended(str(caught.value))
    assert solve(world, precision="float64", memory_limit=limit, progress=False).values.V_r[0][0] < 0
    assert solve(world, memory_limit=limit, out=tmp_path, progress=False).values.V_r[0][0] < 0


def test_needs_are_added_and_told_by_purpose() -> None:
    needs = Needs({"tables": 90 * MB, "crumbs": 10}) + Needs({"tables": 10 * MB, "blocks": 50 * MB})
    assert needs.total == 150 * MB + 10
    assert str(needs) == "100 MB for tables, 50 MB for blocks"


def test_a_budget_without_a_limit_grants_everything() -> None:
    free = Budget()
    free.check("doing", "remedy", more=10**18)
    assert free.room is None
    assert free.share(0.5, at_most=7) == 7


def test_a_budget_shares_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)
    limited = Budget(budget.UNLOADED + 100 * MB)
    assert limited.share(0.25, at_most=10**12) == 25 * MB
    assert limited.share(0.25, at_most=7) == 7
    room.held = 1000 * MB
    assert limited.room == 0
    assert limited.share(0.25, at_most=10) == 0
    with pytest.raises(MemoryLimitError, match=r"doing: the process holds 1 GB.*more than memory_limit=\d+ MB. remedy"):
        limited.check("doing", "remedy")


def test_an_index_that_would_outgrow_the_limit_is_not_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Room(monkeypatch)
    limit = 40 * MB
    taken = []

    def look(self: Any, n_states: int = 0, more: int = 0) -> None:
        taken.append(more)
        original(self, n_states, more)

    original = Watch.look
    monkeypatch.setattr(Watch, "look", look)
    room.held = 39 * MB
    with pytest.raises(MemoryLimitError, match=r"enumerating: the process holds 39 MB.* and needs [\d.]+ MB more"):
        enumerate_dag(load_world("asymmetric_freeing", max_steps=22), store=True, memory_limit=limit, progress=False)
    assert 1 * MB < taken[-1] < 100 * MB


def test_what_is_finished_is_opened_whatever_the_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = load_world("asymmetric_freeing", max_steps=6)
    expected = solve(world, out=tmp_path, progress=False).values.V_r[0][0]
    Room(monkeypatch, held=100 * MB)
    assert solve(world, out=tmp_path, memory_limit="101MB", progress=False).values.V_r[0][0] == expected
    with pytest.raises(MemoryLimitError):
        solve(world, Params(zeta=2), out=tmp_path, memory_limit="101MB", progress=False)
    assert len(list(tmp_path.glob("solution-*"))) == 1
