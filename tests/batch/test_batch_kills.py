"""A batch that is killed at any moment and run again makes the same table."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from batch.batches import lasting_csv

from empo_bi import StoreLockedError, run_batch

BATCH = """
worlds: [asymmetric_freeing, basics/carousel, no_such_world]
steps: {integers: [4, 6]}
params:
  zeta: {uniform: [1, 3]}
  gamma_h: {uniform: [0.8, 1]}
samples: 5
seed: 3
"""


def start(batch: Path, out: Path, workers: int) -> subprocess.Popen[bytes]:
    """In a group of its own, so that its workers can be killed with it."""
    command = [sys.executable, "-m", "empo_bi", "batch", str(batch), "--out", str(out), "--workers", str(workers), "--quiet"]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(batch: Path, out: Path, keep: str) -> None:
    for _ in range(50):
        try:
            run_batch(batch, out=out, keep=keep, workers=1, progress=False)
            return
        except StoreLockedError:  # a killed worker may take a moment to go
            time.sleep(0.1)
    pytest.fail("the lock of a killed batch stayed")


KILLS = [("values", 1, 2), ("summary", 2, 2), pytest.param("values", 1, 20, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("keep", "workers", "kills"), KILLS)
def test_kills_at_random_moments_change_nothing(keep: str, workers: int, kills: int, tmp_path: Path) -> None:
    batch = tmp_path / "batch.yaml"
    batch.write_text(f"{BATCH}keep: {keep}\n")
    begin = time.monotonic()
    whole = start(batch, tmp_path / "whole", workers)
    assert whole.wait() == 3  # one of the worlds does not exist
    seconds = time.monotonic() - begin
    rng, left = random.Random(f"{keep} {time.time_ns()}"), kills
    n_done = []
    while left:
        process = start(batch, tmp_path / "killed", workers)
        try:
            process.wait(timeout=rng.uniform(0.3, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            left -= 1
        else:  # it got to its end: begin anew, so that all kills hit something
            assert lasting_csv(tmp_path / "killed") == lasting_csv(tmp_path / "whole")
            subprocess.run(["rm", "-rf", str(tmp_path / "killed")], check=True)
        runs = tmp_path / "killed/runs"
        n_done.append(sum('"status": "finished"' in file.read_text() for file in runs.glob("*/manifest.json")))
    finish(batch, tmp_path / "killed", keep)
    assert lasting_csv(tmp_path / "killed") == lasting_csv(tmp_path / "whole"), f"finished after each kill: {n_done}"
    for folder in (tmp_path / "whole/runs").iterdir():  # what was kept is the same, too, to the byte
        for file in folder.glob("solution-*/**/*"):
            if file.is_file():
                assert file.read_bytes() == (tmp_path / "killed" / file.relative_to(tmp_path / "whole")).read_bytes()


def test_ctrl_c_stops_cleanly_and_the_same_command_continues(tmp_path: Path) -> None:
    batch = tmp_path / "batch.yaml"
    batch.write_text(BATCH)
    process = start(batch, tmp_path / "runs", 2)
    while not list((tmp_path / "runs/runs").glob("*/solution-*/level_*")):
        time.sleep(0.02)
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, complaint = process.communicate(timeout=60)
    if process.returncode == 3:
        pytest.skip("the batch was faster than Ctrl-C")
    assert process.returncode == 130, complaint.decode()
    # No tracebacks of workers, no warnings of joblib or multiprocessing about what they leave behind.
    told = re.fullmatch(
        r"empo-bi: interrupted\. (\d+) of 15 runs finished(, \d+ runs? half done)?; the same command continues\n",
        complaint.decode(),
    )
    assert told, complaint.decode()
    assert int(told[1]) or told[2]
    assert (tmp_path / "runs/table.csv").exists()
    finish(batch, tmp_path / "runs", "values")
    finish(batch, tmp_path / "whole", "values")
    assert lasting_csv(tmp_path / "runs") == lasting_csv(tmp_path / "whole")


def test_workers_do_not_outlive_a_batch_whose_own_process_is_killed(tmp_path: Path) -> None:
    """Or the next call would meet their locks, and take runs for failed."""
    batch = tmp_path / "batch.yaml"
    batch.write_text(BATCH.replace("[4, 6]", "[10, 11]"))
    process = start(batch, tmp_path / "killed", 2)
    while not list((tmp_path / "killed/runs").glob("*/solution-*/level_*")):
        time.sleep(0.01)
        assert process.poll() is None
    children = psutil.Process(process.pid).children(recursive=True)
    workers = [child for child in children if "loky" in " ".join(child.cmdline())]
    assert workers
    os.kill(process.pid, signal.SIGKILL)  # and not its group
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive
    finish(batch, tmp_path / "killed", "values")
    finish(batch, tmp_path / "whole", "values")
    assert lasting_csv(tmp_path / "killed") == lasting_csv(tmp_path / "whole")
