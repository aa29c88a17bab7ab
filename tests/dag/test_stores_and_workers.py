"""One DAG, wherever it rests and whoever computes it: the same bytes for every store, number of workers and block size."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dag.test_enumerate import FromDag
from dag.test_python_worlds import StandIn, Table
from dag.test_shared_python_worlds import SharedStandIn
from engine import load_quietly
from golden_files import REFERENCE, check_golden_figures, golden_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.gridworld import golden_figures_by_horizon, parse
from random_worlds import random_worlds

from empo_bi import Dag, InvalidWorldError, MemoryLimitError, enumerate_dag, load_world, open_dag
from empo_bi.dag import python_explorer
from empo_bi.memory import budget
from empo_bi.memory.budget import Budget
from empo_bi.solving import enumeration
from empo_bi.store.dag_store import DagStore
from empo_bi.store.zarr_files import ZarrFiles

ARRAYS = ("body_S", "count_SJ", "succ_K", "prob_K", "attained_SX")


def assert_same(one: Dag, other: Dag) -> None:
    assert (one.level_sizes, one.level_values, one.n_bodies) == (other.level_sizes, other.level_values, other.n_bodies)
    for t in range(one.horizon + 1):
        ours, theirs = one.level(t), other.level(t)
        for name in ARRAYS:
            a, b = getattr(ours, name), getattr(theirs, name)
            assert (a is None) == (b is None), (t, name)
            assert a is None or (a.dtype == b.dtype and np.array_equal(a, b)), (t, name)
        assert one.states(t) == other.states(t)


def variants(world: Any, folder: Path, **options: Any) -> dict[str, Dag]:
    """The same DAG in memory, a folder, a zip file and a temporary folder, by one worker and by two."""
    options = {"progress": False, **options}
    return {
        "memory, 2 workers": enumerate_dag(world, workers=2, **options),
        "folder": enumerate_dag(world, store=folder / "folder", **options),
        "folder, 2 workers": enumerate_dag(world, store=folder / "by_two", workers=2, **options),
        "folder, not compressed": enumerate_dag(world, store=folder / "plain", compression=False, **options),
        "zip": enumerate_dag(world, store=folder / "dag.zip", **options),
        "zip, opened again": open_dag(folder / "dag.zip", world=None if hasattr(world, "world_spec") else world),
        "temporary folder": enumerate_dag(world, store=True, **options),
        "little memory": enumerate_dag(world, store=folder / "little", memory_limit="4GB", **options),
    }


@pytest.mark.parametrize("name", ["asymmetric_freeing", "carousel", "ice_rink", "locked_in"])
@pytest.mark.parametrize("precision", ["float16", "float64"])
def test_a_gridworld_has_the_same_arrays_everywhere(
    name: str, precision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = load_world(name, max_steps=5)
    plain = enumerate_dag(world, precision=precision, progress=False)
    monkeypatch.setattr(enumeration, "BLOCK_BYTES", 700 * 200)  # so that there is work for two
    monkeypatch.setattr("empo_bi.dag.packed_explorer._FEWEST_PAIRS", 700)
    for dag in variants(world, tmp_path, precision=precision).values():
        assert_same(plain, dag)
        dag.close()


@pytest.mark.parametrize("kind", [StandIn, SharedStandIn])
@pytest.mark.parametrize("level_fct", [None, lambda state: state[0]], ids=["derived levels", "steps"])
def test_a_python_world_has_the_same_arrays_everywhere(
    kind: Any, level_fct: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = kind(load_world("ice_rink", max_steps=2))
    plain = enumerate_dag(world, level_fct=level_fct, progress=False)
    monkeypatch.setattr(python_explorer, "BLOCK_PAIRS", 64)  # so that there is work for two
    for dag in variants(world, tmp_path, level_fct=level_fct).values():
        assert_same(plain, dag)
        dag.close()


@pytest.mark.parametrize(("path", "horizons"), golden_cases(quick_lines=2_000))
def test_golden_digests_of_stored_dags(path: Path, horizons: list[int], tmp_path: Path) -> None:
    world = load_quietly(REFERENCE / "worlds" / f"{path.stem}.yaml", max_steps=max(horizons))
    for store, workers in (("folder", 1), ("dag.zip", 2)):
        dag = enumerate_dag(world, store=tmp_path / store, workers=workers, precision="float64", progress=False)
        check_golden_figures(path, horizons, golden_figures_by_horizon(FromDag(dag), max(horizons)))


@settings(max_examples=15, deadline=None)
@given(mapping=random_worlds(max_agents=2, max_steps=3))
def test_stored_dags_of_random_worlds_have_the_digests_of_the_oracle(
    mapping: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    expected = golden_figures_by_horizon(parse(mapping), 3)
    world = load_quietly(mapping)
    for store in (tmp_path_factory.mktemp("dag"), True):
        with enumerate_dag(world, store=store, precision="float64", progress=False) as dag:
            assert golden_figures_by_horizon(FromDag(dag), 3) == expected


# --- reading ----------------------------------------------------------------------------------------------------------


def test_a_level_that_was_read_ahead_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_world("asymmetric_freeing", max_steps=6)
    plain = enumerate_dag(world, store=tmp_path / "dag", progress=False)
    dag = open_dag(tmp_path / "dag")
    read: list[str] = []
    original = ZarrFiles.read_arrays

    def counting(self: ZarrFiles, group: str, abouts: Any) -> Any:
        read.extend(f"{group}/{name}" for name in abouts)
        return original(self, group, abouts)

    monkeypatch.setattr(ZarrFiles, "read_arrays", counting)
    dag.prefetch(5)
    assert np.array_equal(dag.level(5).succ_K, plain.level(5).succ_K)
    ours = [name for name in read if not name.startswith("level_00006")]
    assert len(ours) == len(set(ours)) > 0


def test_the_cache_keeps_to_its_share_of_the_memory_limit(tmp_path: Path) -> None:
    enumerate_dag(load_world("asymmetric_freeing", max_steps=15), store=tmp_path / "dag", progress=False)
    dag = open_dag(tmp_path / "dag", memory_limit=Budget().held + 4_000_000)
    assert isinstance(dag.levels, DagStore)
    for t in (15, 3, 14):
        dag.level(t)
        assert 0 < dag.levels._cache.nbytes <= 1_000_000


def test_a_run_that_outgrows_its_memory_limit_stops_and_can_be_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = load_world("asymmetric_freeing", max_steps=6)
    held = itertools.count(10_000_000, 5_000_000)
    with monkeypatch.context() as patch:
        patch.setattr(budget, "resident_bytes", lambda: next(held))
        patch.setattr(budget, "BASE_BYTES", 0)
        with pytest.raises(MemoryLimitError, match=r"the process holds .* MB.*more than memory_limit=150 MB\. Shorten"):
            enumerate_dag(world, store=tmp_path / "dag", memory_limit="150MB", progress=False)
    assert not open_dag(tmp_path / "dag").is_finished
    assert_same(enumerate_dag(world, store=tmp_path / "dag", progress=False), enumerate_dag(world, progress=False))


# --- probabilities at rest --------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(1e-12, 1.0), min_size=1, max_size=6))
def test_resting_in_float16_changes_no_probability_by_more_than_a_thousandth(weights: list[float]) -> None:
    total = sum(weights)
    exact = {i: weight / total for i, weight in enumerate(weights)}
    world = Table({"start": [[(p, i) for i, p in exact.items()]]}, "start")
    for precision, bound in (("float16", 2**-10), ("float32", 2**-23), ("float64", 2**-50)):
        level = enumerate_dag(world, precision=precision, progress=False).level(0)
        assert level.prob_K.dtype == np.float64
        assert level.prob_K.sum() == pytest.approx(1, abs=1e-14)
        assert level.prob_K.tolist() == pytest.approx([exact[i] for i in range(len(weights))], rel=bound, abs=0)


def test_thirds_are_exact_again_after_resting_in_float16() -> None:
    world = Table({0: [[(1 / 3, 1), (1 / 3, 2), (1 / 3, 3)]]}, 0)
    assert enumerate_dag(world, progress=False).level(0).prob_K.tolist() == [1 / 3] * 3


# --- errors -----------------------------------------------------------------------------------------------------------


def test_an_error_in_a_worker_process_is_the_same_as_without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table: dict[Any, Any] = {0: [[(1 / 5000, i) for i in range(1, 5001)]]}
    table |= {i: [[(1.0, -1)]] for i in range(1, 5001)}
    table[4321] = [[(0.5, -1)]]
    levels = {0: 0, -1: 2}
    for workers in (1, 2):
        with pytest.raises(InvalidWorldError, match=r"in state 4321: the probabilities sum to 0\.5"):
            enumerate_dag(
                Table(table, 0), level_fct=lambda s: levels.get(s, 1), workers=workers, store=tmp_path / "x", progress=False
            )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers=0; give the number of workers, or -1"),
        ({"workers": 2.5}, "workers=2.5"),
        ({"precision": "float8"}, "precision='float8'; expected one of float16, float32, float64"),
        ({"memory_limit": "2 apples"}, "memory_limit='2 apples'; give a size such as '2GB'"),
        ({"memory_limit": -1}, "memory_limit=-1"),
        ({"store": True, "compression": "gzip"}, "expected zstd, lz4"),
        ({"store": True, "compression": 11}, "a level from 0"),
    ],
)
def test_options_that_make_no_sense_are_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        enumerate_dag(load_world("first_steps"), progress=False, **options)
