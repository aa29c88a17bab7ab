"""Whoever asks again for what is finished opens each folder once: its manifest, and each record, is read one time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zarr.storage

from empo_bi import Params, enumerate_dag, load_world, open_dag, open_solution, solve
from empo_bi.sweep.phases import PRECISIONS, Precision

PARAMS = [Params(), Params(zeta=2.5)]


def world() -> Any:
    return load_world("ice_rink", max_steps=3)


def solved(out: Path, params: Any = PARAMS[0], **options: Any) -> Any:
    return solve(world(), params, out=out, progress=False, **options)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Counter[str]]:
    """How often each record of a store was read since this was asked last, by folder and file."""
    found: Counter[str] = Counter()
    plain = zarr.storage.LocalStore.get

    async def get(self: Any, key: str, *arguments: Any, **options: Any) -> Any:
        if key.count("/") <= 1:  # those of arrays are deeper
            found[f"{self.root.name}/{key}"] += 1
        return await plain(self, key, *arguments, **options)

    def so_far() -> Counter[str]:
        counts = Counter(found)
        found.clear()
        return counts

    monkeypatch.setattr(zarr.storage.LocalStore, "get", get)
    return so_far


def assert_once(reads: Counter[str], n_folders: int) -> None:
    assert sum(name.count("/") == 1 for name in reads) == n_folders, reads
    assert set(reads.values()) == {1}, reads


def test_an_enumeration_of_what_is_there_opens_it_once(tmp_path: Path, reads: Callable[[], Counter[str]]) -> None:
    enumerate_dag(world(), store=tmp_path / "dag", progress=False).close()
    reads()
    enumerate_dag(world(), store=tmp_path / "dag", progress=False).close()
    assert_once(reads(), 1)
    open_dag(tmp_path / "dag").close()
    assert_once(reads(), 1)


def test_a_solve_of_what_is_there_opens_its_dag_and_its_solution_once(
    tmp_path: Path, reads: Callable[[], Counter[str]]
) -> None:
    solved(tmp_path).close()
    reads()
    solved(tmp_path).close()
    assert_once(reads(), 2)
    open_solution(tmp_path).close()
    assert_once(reads(), 2)


def test_each_of_several_solutions_is_opened_once(tmp_path: Path, reads: Callable[[], Counter[str]]) -> None:
    for solution in solved(tmp_path, PARAMS):
        solution.close()
    reads()
    for solution in solved(tmp_path, PARAMS):
        solution.close()
    assert_once(reads(), 3)


def test_a_solution_with_wider_tables_which_is_looked_for_first_is_opened_once(
    tmp_path: Path, reads: Callable[[], Counter[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(PRECISIONS, "float16", [Precision("float16", "float64")])
        solved(tmp_path).close()
    reads()
    found = solved(tmp_path)
    assert found.precision.work == "float64"
    found.close()
    assert_once(reads(), 2)
