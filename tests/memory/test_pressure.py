"""Real pressure: another process takes the memory that is left below a ceiling, and gives it back, or does not."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from empo_bi import GridWorld, MemoryMonitor, MemoryPressureError, Params, enumerate_dag, load_world, solve
from empo_bi.runtime.machine import available_bytes, used_bytes
from empo_bi.store.dag_store import DagStore

MB = 1_000_000
PARAMS = Params(gamma_h=0.99, gamma_r=0.99)
HOG = """
import sys
import numpy as np
held = np.ones(int(sys.argv[1]), dtype=np.uint8)  # every page is touched
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def hog(nbytes: int) -> Iterator[subprocess.Popen[str]]:
    """A process that holds so much memory until its input is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", HOG, str(nbytes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def monitor(**options: Any) -> MemoryMonitor:
    """One that takes the machine for one with a gigabyte more than is used now, of which half is to be free."""
    if available_bytes() < 1500 * MB:
        pytest.skip("there is no memory to play with")
    ceiling = used_bytes() + 1000 * MB
    return MemoryMonitor(500 * MB / ceiling, check_interval=1, ceiling=ceiling, **options)


@pytest.fixture
def world() -> GridWorld:
    return load_world("asymmetric_freeing", max_steps=13)


def kept_levels(folder: Path) -> int:
    return len(list(folder.glob("solution-*/level_*/zarr.json")))


def test_a_run_gives_back_pauses_and_goes_on_when_there_is_room(
    world: GridWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = solve(world, PARAMS, progress=False).values.V_r[0][0]
    given_back = []
    original = DagStore.give_back
    monkeypatch.setattr(DagStore, "give_back", lambda self, n=0: given_back.append(n) or original(self, n))
    watching = monitor(pause_duration=60.0)
    with hog(950 * MB) as process, caplog.at_level(logging.WARNING):
        assert watching.is_memory_low()

        def release_when_it_pauses() -> None:
            while "pausing" not in caplog.text:
                released.wait(0.05)
            process.stdin.close()  # type: ignore[union-attr]

        released = threading.Event()
        helper = threading.Thread(target=release_when_it_pauses)
        helper.start()
        solution = solve(world, PARAMS, out=tmp_path, monitor=watching, progress=False)
        helper.join()
    assert solution.values.V_r[0][0] == expected
    said = [record.message for record in caplog.records if "memory" in record.message]
    assert "freeing caches" in said[0]
    assert f"{watching.min_free_fraction:.0%} free memory required" in said[0]
    assert "pausing for up to 60 s" in said[1]
    assert "memory is available again: continuing" in said[2]
    assert 0 in given_back


def test_a_run_under_lasting_pressure_stops_and_the_same_call_continues(world: GridWorld, tmp_path: Path) -> None:
    expected = solve(world, PARAMS, progress=False)
    watching = monitor(pause_duration=0.5, verbose=False)

    class Later(MemoryMonitor):
        """Looks only when some levels have been solved."""

        def is_memory_low(self) -> bool:
            return kept_levels(tmp_path) >= 5 and watching.is_memory_low()

    later = Later(0.3, check_interval=1, pause_duration=0.5, verbose=False)
    later._is_time = lambda step: True  # type: ignore[method-assign]  # not only four times a second
    with hog(950 * MB):
        assert watching.is_memory_low()
        with pytest.raises(KeyboardInterrupt) as caught:
            solve(world, PARAMS, out=tmp_path, monitor=later, progress=False)
    assert isinstance(caught.value, MemoryPressureError)
    assert "even after a pause" in str(caught.value)
    kept = kept_levels(tmp_path)
    assert 5 <= kept < 14
    assert list(tmp_path.rglob("*.lock")) == []
    computed = []
    found = solve(world, PARAMS, out=tmp_path, progress=False, monitor=Counting(computed))
    assert sum(computed) == sum(expected.dag.level_sizes[: 14 - kept])
    for t in range(14):
        assert (found.results.get(t, "vr") == expected.results.get(t, "vr")).all()
        assert (found.results.get(t, "ve") == expected.results.get(t, "ve")).all()


class Counting(MemoryMonitor):
    """Counts the states that are solved."""

    def __init__(self, seen: list[int]) -> None:
        super().__init__()
        self._seen, self._before = seen, 0

    def check(self, step: int, force: bool = False, **_: Any) -> None:
        if step > self._before:
            self._seen.append(step - self._before)
        self._before = step


class Once(MemoryMonitor):
    """Finds memory short at one look, and then never again."""

    def __init__(self, look: int) -> None:
        super().__init__(check_interval=1, verbose=False)
        self._left = look

    def _is_time(self, step: int) -> bool:
        return True

    def is_memory_low(self) -> bool:
        self._left -= 1
        return self._left == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_giving_back_in_the_middle_of_a_level_changes_nothing(workers: int, world: GridWorld) -> None:
    """Slices of over a thousand states: the blocks that follow are smaller, and none may be left out."""
    dag = enumerate_dag(world, precision="exact", progress=False)
    assert max(sizes.n_bodies for sizes in dag.levels.sizes[:-1]) > 2 * 1024
    expected = solve(world, PARAMS, dag=dag, progress=False)
    for look in range(1, 30, 2):
        found = solve(world, PARAMS, dag=dag, monitor=Once(look), workers=workers, progress=False)
        for t in range(world.max_steps + 1):
            assert (found.results.get(t, "vr") == expected.results.get(t, "vr")).all(), f"look {look}, level {t}"
