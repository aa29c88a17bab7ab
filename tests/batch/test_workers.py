"""Workers that die, locally and on a Dask cluster, and the runs they leave."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch.batches import SMALL, lasting, lasting_csv, run_here
from joblib.externals.loky.process_executor import TerminatedWorkerError
from store_tools import environment

from empo_bi import ClusterError, run_batch
from empo_bi.batch.workers import Workers, workers_for
from empo_bi.runtime.cluster import DaskCluster
from empo_bi.sweep.cluster_blocks import compute_block_batch

DEADLY = """
import os, signal

def deadly(solution):
    with open(os.path.join(os.path.dirname(__file__), "asked.txt"), "a") as file:
        file.write(f"{solution.params.zeta:g}\\n")
    if solution.params.zeta == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return 1
"""


def test_a_run_that_kills_its_worker_is_found_out_and_the_others_finish(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(DEADLY)
    batch = {
        "worlds": ["basics/first_steps", "basics/carousel"],
        "steps": 2,
        "params": {"zeta": [1, 2, 3]},
        "keep": "summary",
    }
    result = run_batch({**batch, "metrics": f"{tmp_path}/m.py:deadly"}, out=tmp_path / "runs", workers=2, progress=False)
    statuses = dict(zip(zip(result.table["world"], result.table["zeta"], strict=True), result.table["status"], strict=True))
    assert {key for key, status in statuses.items() if status == "failed"} == {(world, 2) for world in batch["worlds"]}
    assert result.n_finished == 4
    assert all("died twice" in row["error"] and "memory_limit" in row["error"] for row in result.failed)
    asked = (tmp_path / "asked.txt").read_text().split()
    assert asked.count("1") == asked.count("3") == 2  # what was finished before the crash is not done again


def test_what_cannot_be_reached_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empo_bi.batch.workers.CONNECT_SECONDS", 0.5)
    with pytest.raises(ClusterError, match=r"no Dask scheduler answers at this address .* `dask scheduler`"):
        workers_for("dask", 1, "tcp://127.0.0.1:9")
    with pytest.raises(ValueError, match="Did you mean 'dask'"):
        workers_for("dusk", 1, None)
    with pytest.raises(ValueError, match=r"'ray' was removed .* use a Dask cluster"):
        workers_for("ray", 1, None)
    with pytest.raises(ValueError, match="Did you mean 'blocks'"):
        workers_for("dask", 1, None, "block")
    with pytest.raises(ValueError, match="needs a cluster"):
        workers_for("local", 1, None, "blocks")


# --- Dask -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster:
        yield cluster


SLOW = """
import os, pathlib, time

def slow(solution):
    (pathlib.Path(__file__).parent / f"{os.getpid()}.pid").touch()
    time.sleep(0.1)
    return solution.dag.n_states
"""


def test_a_dask_cluster_loses_a_worker_and_no_run(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(SLOW)
    batch = {**SMALL, "worlds": ["basics/[c-o]*", "pushing/mirror_freeing"], "metrics": f"{tmp_path}/m.py:slow"}
    run_here(batch, tmp_path / "here")
    for file in tmp_path.glob("*.pid"):
        file.unlink()
    killed = []

    def kill_one() -> None:
        while not (found := [int(file.stem) for file in tmp_path.glob("*.pid")]):  # somebody is at work
            time.sleep(0.01)
        killed.append(found[0])
        os.kill(found[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    result = run_batch(batch, out=tmp_path / "there", scheduler=cluster.scheduler_address, progress=False)
    killer.join()
    workers = {int(file.stem) for file in tmp_path.glob("*.pid")}
    assert os.getpid() not in workers
    assert len(workers) >= 2
    assert killed
    assert result.is_complete, result.summary()
    assert lasting_csv(tmp_path / "there") == lasting_csv(tmp_path / "here")
    for store in (tmp_path / "here/runs").glob("*/solution-*"):
        for file in store.rglob("*"):
            if file.is_file():
                assert file.read_bytes() == (tmp_path / "there" / file.relative_to(tmp_path / "here")).read_bytes()


def test_stores_of_a_cluster_may_be_at_a_url(cluster: Any, tmp_path: Path) -> None:
    expected = run_here(SMALL, tmp_path / "here")
    url = f"local://{tmp_path}/there"  # by way of fsspec, to where all workers see it
    result = run_batch(SMALL, out=url, scheduler=cluster.scheduler_address, progress=False)
    assert lasting(result.table) == lasting(expected.table)
    assert (tmp_path / "there/table.parquet").exists()
    assert run_batch(SMALL, out=url, scheduler=cluster.scheduler_address, progress=False).n_skipped == 8


@pytest.mark.parametrize("spread", ["runs", "blocks"])
def test_large_levels_do_not_make_a_cluster_wait_for_itself(
    spread: str, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = {"worlds": "asymmetric_freeing", "steps": [11, 12], "params": {"gamma_h": 0.9}, "keep": "summary"}
    here = run_here(batch, tmp_path / "here")
    sent, send = [], DaskCluster.map
    monkeypatch.setattr(
        DaskCluster, "map", lambda self, function, *rest: sent.append(function) or send(self, function, *rest)
    )
    there = run_batch(batch, out=tmp_path / "there", scheduler=cluster.scheduler_address, spread=spread, progress=False)
    assert lasting(there.table) == lasting(here.table)
    assert (compute_block_batch in sent) == (spread == "blocks")


def test_workers_that_do_not_see_the_folder_are_found_out(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="workers do not share this folder"):
        run_batch(
            SMALL, out=f"memory://{tmp_path.name}/here", workers=2, progress=False
        )  # each process has a memory of its own


def test_a_cluster_may_have_no_workers_before_there_is_work(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    (tmp_path / "m.py").write_text(SLOW)
    with distributed.LocalCluster(n_workers=0, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster:
        cluster.adapt(minimum=0, maximum=1)
        batch = {**SMALL, "metrics": f"{tmp_path}/m.py:slow"}
        result = run_batch(batch, out=tmp_path / "runs", scheduler=cluster.scheduler_address, progress=False)
    assert result.is_complete, result.summary()
    assert str(os.getpid()) not in {file.stem for file in tmp_path.glob("*.pid")}  # one worker is a worker, too


def test_a_cluster_of_our_own(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    result = run_batch(SMALL, out=tmp_path / "runs", backend="dask", workers=2, progress=False)
    assert result.is_complete


@pytest.mark.slow
def test_a_scheduler_that_is_killed_costs_nothing_that_was_finished(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    (tmp_path / "m.py").write_text(SLOW)
    batch = {**SMALL, "metrics": f"{tmp_path}/m.py:slow"}
    with dask_cluster(tmp_path / "first.json") as (address, scheduler):

        def kill_soon() -> None:
            while not list(tmp_path.glob("*.pid")):  # somebody is at work
                time.sleep(0.01)
            scheduler.kill()

        killer = threading.Thread(target=kill_soon)
        killer.start()
        with pytest.raises(ClusterError, match=r"scheduler is gone.*the same command continues"):
            run_batch(batch, out=tmp_path / "there", scheduler=address, progress=False)
        killer.join()
    with dask_cluster(tmp_path / "second.json") as (address, _):
        assert run_batch(batch, out=tmp_path / "there", scheduler=address, progress=False).is_complete
    run_here(batch, tmp_path / "here")
    assert lasting_csv(tmp_path / "there") == lasting_csv(tmp_path / "here")


@contextlib.contextmanager
def dask_cluster(file: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A scheduler and a worker in processes of their own."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment()}
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    scheduler = subprocess.Popen([*command, "--scheduler-file", str(file)], **quiet)
    while not file.exists() or not file.read_text().strip().endswith("}"):
        time.sleep(0.05)
        assert scheduler.poll() is None
    command = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    worker = subprocess.Popen([*command, "--scheduler-file", str(file), "--death-timeout", "5"], **quiet)
    try:
        yield json.loads(file.read_text())["address"], scheduler
    finally:
        for process in (worker, scheduler):
            process.kill()
            process.wait()


def test_a_worker_that_is_killed_while_it_starts_does_not_end_the_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def dies_first(self: Workers, function: Any, tasks: Any) -> Iterator[Any]:
        calls.append(tasks)
        if len(calls) <= deaths:
            raise TerminatedWorkerError("killed")
        yield from map(function, tasks)

    monkeypatch.setattr(Workers, "map", dies_first)
    deaths = 2
    assert run_here(SMALL, tmp_path / "twice").is_complete
    calls, deaths = [], 3
    with pytest.raises(ClusterError, match="workers die before they begin a run"):
        run_here(SMALL, tmp_path / "always")
