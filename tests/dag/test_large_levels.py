"""Levels whose transitions are too many for memory: they wait on disk, and are read stretch by stretch."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dag.test_python_worlds import StandIn
from dag.test_shared_python_worlds import SharedStandIn
from planning_worlds import Patience
from store_tools import Drift, Leaps, mapped_beyond_usual, run_python

from empo_bi import MemoryLimitError, MemoryProfiler, Params, enumerate_dag, load_world, open_dag, solve
from empo_bi.dag.slices import SliceBuilder
from empo_bi.dag.spill import BlockArray, BlockSpool, SpillLimit
from empo_bi.memory import budget
from empo_bi.store.compression import Compression
from empo_bi.store.location import place_of
from empo_bi.store.row_reader import RowReader
from empo_bi.store.slice_rules import _check_probabilities
from empo_bi.store.transition_chunks import _cut
from empo_bi.store.zarr_files import ZarrFiles

MB = 1_000_000


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that every level exceeds: blocks of a few states, all of which wait on disk, and stretches of a few."""
    monkeypatch.setattr("empo_bi.solving.enumeration.SPILL_BYTES", 0)
    monkeypatch.setattr("empo_bi.solving.enumeration.BLOCK_BYTES", 0)
    monkeypatch.setattr("empo_bi.solving.enumeration.CACHE_BYTES", 0)
    monkeypatch.setattr("empo_bi.dag.packed_explorer._FEWEST_PAIRS", 300)
    monkeypatch.setattr("empo_bi.dag.python_explorer.BLOCK_PAIRS", 16)
    monkeypatch.setattr("empo_bi.store.dag_store.STRETCH_BYTES", 1000)


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


WORLDS: dict[str, Any] = {
    "nested levels": lambda: load_world("asymmetric_freeing", max_steps=5),
    "chance": lambda: load_world("ice_rink", max_steps=4),
    "levels that are not nested": lambda: load_world("carousel", max_steps=5),
    "two words": lambda: load_world("items/full_hands", max_steps=4),
    "Python, shared": lambda: SharedStandIn(load_world("ice_rink", max_steps=2)),
    "Python, derived": lambda: StandIn(load_world("ice_rink", max_steps=2)),
    "Python, leaps": lambda: Leaps(7),
    "Python, ends": lambda: Drift(9),
}


@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("precision", ["float16", "exact"])
def test_levels_that_waited_on_disk_are_the_same_bytes(
    kind: str, precision: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    options: dict[str, Any] = {"precision": precision, "progress": False}
    if kind == "Python, leaps":
        options["level_fct"] = lambda state: state[0]
    enumerate_dag(WORLDS[kind](), store=tmp_path / "at_once", **options)
    request.getfixturevalue("tiny")
    spilled: list[bool] = []
    original = BlockSpool.spill

    def spill(self: BlockSpool) -> bool:
        spilled.append(True)
        return original(self)

    request.getfixturevalue("monkeypatch").setattr(BlockSpool, "spill", spill)
    enumerate_dag(WORLDS[kind](), store=tmp_path / "spilled", workers=1, **options)
    assert spilled
    assert content_of(tmp_path / "spilled") == content_of(tmp_path / "at_once")


@pytest.mark.parametrize("kind", ["nested levels", "chance", "levels that are not nested", "Python, shared"])
def test_stretches_of_a_slice_make_up_its_level(
    kind: str, tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = WORLDS[kind]()
    plain = enumerate_dag(world, progress=False)
    on_disk = enumerate_dag(world, store=tmp_path / "dag", progress=False)
    n_stretches = [len(list(on_disk.levels.stretches(t, on_disk.n_profiles))) for t in range(on_disk.horizon)]
    assert max(n_stretches) > 2
    for t in range(plain.horizon + 1):
        ours, theirs = on_disk.level(t), plain.level(t)
        for name in ("body_S", "count_SJ", "succ_K", "prob_K", "attained_SX"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)) or getattr(ours, name) is None
        assert on_disk.states(t) == plain.states(t)
    t = int(np.argmax(n_stretches))
    last = np.array([next(iter(reversed(plain.levels[t].expanded)))])
    assert len(list(on_disk.levels.stretches(t, on_disk.n_profiles, last))) == 1


def test_a_sweep_over_stretches_finds_the_same_bits(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    world = load_world("ice_rink", max_steps=4)
    params = Params(zeta=2, beta_r=20)
    whole = solve(world, params, out=tmp_path / "whole", progress=False)
    request.getfixturevalue("tiny")
    request.getfixturevalue("monkeypatch").setattr("empo_bi.sweep.memory_model.CACHE_BYTES", 0)
    stretched = solve(world, params, out=tmp_path / "stretched", progress=False)
    assert content_of(tmp_path / "stretched") == content_of(tmp_path / "whole")
    for t in range(world.max_steps):
        assert np.array_equal(stretched.pi_h[t], whole.pi_h[t])
        assert np.array_equal(stretched.reached[t], whole.reached[t])


def test_damage_of_a_chunk_is_found_in_stretches_too(tmp_path: Path, tiny: None) -> None:
    from empo_bi.errors import DamagedStoreError

    enumerate_dag(load_world("ice_rink", max_steps=3), store=tmp_path / "dag", progress=False)
    chunk = tmp_path / "dag" / "level_00002" / "succ" / "c" / "0"
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(DamagedStoreError, match="level 2, array 'succ'"):
        open_dag(tmp_path / "dag").level(2)


def test_a_reader_of_rows_reads_each_chunk_once_and_checks_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("empo_bi.store.compression.CHUNK_BYTES", 64)
    files = ZarrFiles("here", place_of(tmp_path / "store").for_writing())
    array = np.arange(100, dtype=np.int32).reshape(50, 2)
    about = files.write_array("g", "a", array, ("x", "y"), Compression())
    reader, read = RowReader(files, "g", "a", about), []
    original = files.chunk
    monkeypatch.setattr(files, "chunk", lambda *args, **how: read.append(args[1]) or original(*args, **how))
    assert np.array_equal(np.concatenate([reader.rows(b, b + 7) for b in range(0, 50, 7)]), array)
    assert read == [(c, 0) for c in range(7)]
    assert np.array_equal(reader.rows(11, 12), array[11:12])
    assert len(reader.rows(50, 60)) == 0
    with pytest.raises(Exception, match="checksum differs"):
        RowReader(files, "g", "a", {**about, "crc32": "00000000"}).rows(0, 50)


def test_arrays_in_blocks_are_stored_as_if_they_came_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empo_bi.store.compression.CHUNK_BYTES", 64)
    files = ZarrFiles("here", place_of(tmp_path / "store").for_writing())
    rng = np.random.default_rng(0)
    for n in (1, 7, 8, 9, 64, 100):
        array = rng.integers(0, 1000, (n, 2)).astype(np.uint32)
        cuts = np.sort(rng.integers(0, n + 1, 5))
        blocks = BlockArray(array.shape, array.dtype, lambda array=array, cuts=cuts: np.split(array, cuts))  # type: ignore[misc]
        one = files.write_array("whole", "a", array, ("x", "y"), Compression())
        assert files.write_array("blocks", "a", blocks, ("x", "y"), Compression()) == one
        assert content_of(tmp_path / "store" / "blocks") == content_of(tmp_path / "store" / "whole")


def test_what_is_spilled_leaves_no_file_behind(tmp_path: Path) -> None:
    spool = BlockSpool(SpillLimit(100, tmp_path))
    blocks = [np.arange(n, dtype=np.int64) for n in (3, 50, 0, 20)]
    for block in blocks:
        spool.append(block, None)
    assert spool.is_spilled
    assert spool.nbytes == 0
    assert all(np.array_equal(a, b) for a, b in zip(spool.column(0), blocks, strict=True))  # type: ignore[arg-type]
    assert list(spool.column(1)) == [None] * 4
    assert os.listdir(tmp_path) == []


def test_a_stretch_ends_where_its_transitions_are_too_many() -> None:
    count_EJ = np.array([[1, 1], [400, 100], [3, 3], [1, 1]], dtype=np.uint16)
    assert [(len(rows), n) for rows, n in (_cut(count_EJ[e:], 10) for e in range(4))] == [(1, 2), (1, 500), (2, 8), (1, 2)]


def test_blocks_that_are_to_be_joined_can_still_be_spilled(tmp_path: Path) -> None:
    builder = SliceBuilder(2, "float16", SpillLimit(10**9, tmp_path))
    builder.add(np.full((5, 2), 2), np.arange(20), np.full(20, 0.5))
    asked: list[int] = []
    found = builder.arrays(lambda nbytes: asked.append(nbytes) or builder.spill())  # type: ignore[func-returns-value]
    assert asked == [80]
    assert list(found) == ["spilled"]
    assert np.array_equal(np.concatenate(list(found["spilled"].succ_K.blocks())), np.arange(20))


def test_looking_at_probabilities_takes_little_memory_whatever_the_number_of_profiles() -> None:
    count_EJ = np.full((4000, 343), 2, dtype=np.uint8)
    prob_K = np.full(count_EJ.size * 2, 0.5, dtype=np.float16)
    tracemalloc.start()
    try:
        _check_probabilities("here", prob_K, count_EJ)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * MB  # 55 MB of float64, were they widened at once


# --- the limit --------------------------------------------------------------------------------------------------------

ENUMERATE = """
import json, sys
from empo_bi import MemoryLimitError, enumerate_dag, load_world
from empo_bi.runtime.machine import peak_bytes
name, steps, limit, store = sys.argv[1:]
try:
    dag = enumerate_dag(load_world(name, max_steps=int(steps)), store=store or None, memory_limit=int(limit), progress=False)
    found = {"states": dag.n_states}
except MemoryLimitError as error:
    found = {"error": str(error)}
print(json.dumps({**found, "peak": peak_bytes()}))
"""


def enumerated(name: str, steps: int, limit: int, store: Path | str) -> dict[str, Any]:
    child = run_python(ENUMERATE, name, steps, limit, store)
    assert child.returncode == 0, child.stderr[-2000:]
    return dict(json.loads(child.stdout))


LARGE = [(9, 245), pytest.param(12, 300, marks=pytest.mark.slow)]  # transitions take 68, and 500 MB in memory


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize(("steps", "limit"), LARGE)
def test_enumeration_to_disk_keeps_a_limit_below_the_size_of_its_levels(steps: int, limit: int, disk_path: Path) -> None:
    most = limit * MB + mapped_beyond_usual()
    found = enumerated("one_key_two_rooms", steps, most, disk_path / "dag")
    assert "error" not in found, found["error"]
    assert found["peak"] < most, f"{found['peak'] / MB:.0f} MB"
    in_memory = enumerated("one_key_two_rooms", steps, most, "")
    assert in_memory["peak"] < most, f"{in_memory['peak'] / MB:.0f} MB"
    assert "Keep the levels on disk" in in_memory["error"]


def test_a_limit_below_what_python_takes_is_refused_at_once_with_the_base(tmp_path: Path) -> None:
    found = enumerated("asymmetric_freeing", 4, 150 * MB, tmp_path / "dag")
    assert "memory_limit=150 MB is less than the 200 MB that the process needs" in found["error"]
    assert found["peak"] < 150 * MB + mapped_beyond_usual()
    assert not (tmp_path / "dag").exists()


def test_the_advice_is_not_what_was_done_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_world("asymmetric_freeing", max_steps=6)
    held = iter(range(10 * MB, 10**12, 3 * MB))
    monkeypatch.setattr(budget, "resident_bytes", lambda: next(held))
    monkeypatch.setattr(budget, "BASE_BYTES", 0)
    with pytest.raises(MemoryLimitError, match=r"MB\. Shorten the horizon, or allow more"):
        enumerate_dag(world, store=tmp_path / "dag", memory_limit="90MB", progress=False)
    held = iter(range(10 * MB, 10**12, 3 * MB))
    with pytest.raises(MemoryLimitError, match=r"MB\. Keep the levels on disk .*, shorten the horizon, or allow more"):
        enumerate_dag(world, memory_limit="90MB", progress=False)


# --- the profile ------------------------------------------------------------------------------------------------------


def test_a_run_that_fails_leaves_its_profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_world("asymmetric_freeing", max_steps=6)
    held = iter(range(10 * MB, 10**12, 3 * MB))
    monkeypatch.setattr(budget, "resident_bytes", lambda: next(held))
    monkeypatch.setattr(budget, "BASE_BYTES", 0)
    profiler = MemoryProfiler()
    with pytest.raises(MemoryLimitError):
        solve(world, out=tmp_path, memory_limit="90MB", memory_profile=profiler, progress=False)
    assert "enumerating" in (tmp_path / "memory_profile.txt").read_text()
    assert profiler.snapshots[-1].doing == "enumerating"


def test_the_profile_covers_the_pass_over_goals() -> None:
    profiler = MemoryProfiler()
    solution = solve(Patience(5), memory_profile=profiler, progress=False)
    asked = [snapshot.level for snapshot in profiler.snapshots if snapshot.doing == "goals"]
    assert asked == list(range(solution.dag.horizon + 1))


def test_the_peak_of_a_profile_is_that_of_any_look_not_only_at_the_end_of_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    held = [100 * MB]
    monkeypatch.setattr("empo_bi.memory.profiler.resident_bytes", lambda: held[0])
    monkeypatch.setattr("empo_bi.memory.profiler.worker_bytes", list)
    profiler = MemoryProfiler()
    for most, last in ((200, 110), (150, 120)):
        held[0] = most * MB
        profiler.sample()
        held[0] = last * MB
        profiler.snapshot("solving", 0, 1, {})
    assert [snapshot.highest // MB for snapshot in profiler.snapshots] == [200, 150]
    assert profiler.peak.most == 200 * MB
    assert "peak: 200 MB" in profiler.report()
