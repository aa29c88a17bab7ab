"""Stores that somebody has changed, with valid checksums: each case was once met with a crash, a wrong verdict or worse."""

from __future__ import annotations

import json
import os
import shutil
import warnings
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import google_crc32c
import numpy as np
import pytest
from batch.batches import run_here
from command_line import invoke
from store.forging import manifest_of_run, put_record, put_tree, record_of, records_in, tree_of
from zarr.storage import LocalStore, MemoryStore

from empo_bi import ArrayWorld, Params, enumerate_dag, load_world, open_dag, open_solution, solve
from empo_bi.dag.key_index import KeyIndex
from empo_bi.errors import DamagedStoreError, MemoryLimitError, StoreError, StoreMismatchError, WorldWarning
from empo_bi.export.labels import goal_labels
from empo_bi.goals import ReachCellGoal, TabularGoalGenerator
from empo_bi.store import slice_arrays
from empo_bi.store.compression import Compression
from empo_bi.store.format_names import CHUNK_BYTES
from empo_bi.store.solution_folders import inside
from empo_bi.store.transition_chunks import read_stretches
from empo_bi.store.verify import verify_store
from empo_bi.store.zarr_files import ZarrFiles


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with solve(load_world("basics/first_steps", max_steps=2), out=tmp_path / "run", progress=False):
        return tmp_path / "run"


def remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def leave_out_labels(tree: dict[str, bytes]) -> None:
    for name in records_in(tree):
        put_record(tree, name, {key: value for key, value in record_of(tree, name).items() if key != "labels"})


def solution_in(run: Path) -> Path:
    (solution,) = run.glob("solution-*")
    return solution


PARAMETERS = [{"terminal_Vr": value} for value in ([1, 2, 3], [[1]], 10**400, "much", None)]
PARAMETERS += [{"zeta": "abc"}, {"optimistic": 3.0}, {"of_our_own": 1.0}]


@pytest.mark.parametrize("change", PARAMETERS, ids=str)
def test_parameters_that_are_none_are_damage(change: dict[str, Any], run: Path) -> None:
    tree = tree_of(solution_in(run))
    record = record_of(tree, "zarr.json")
    record["content"]["params"] |= change
    put_record(tree, "zarr.json", record)
    put_tree(tree, solution_in(run))
    with pytest.raises(DamagedStoreError, match="field 'params' of content"):
        verify_store(solution_in(run), progress=False)
    assert invoke("verify", run).exit_code == 1


@pytest.mark.parametrize(("name", "t"), [("vh", 1), ("ve", 0), ("xh", 2), ("qr", 0), ("vr", 0)])
def test_an_array_that_a_level_does_not_mention_is_missed(name: str, t: int, run: Path) -> None:
    tree = tree_of(solution_in(run))
    record = record_of(tree, f"level_{t:05}/zarr.json")
    del record["arrays"][name]
    put_record(tree, f"level_{t:05}/zarr.json", record)
    put_tree(tree, solution_in(run))
    assert invoke("verify", run).exit_code == 1
    with pytest.raises(DamagedStoreError, match=f"level {t}, array '{name}': is missing from its record"):
        open_solution(run)


def test_verify_follows_no_link_to_a_dag_elsewhere(run: Path, tmp_path: Path) -> None:
    shutil.move(run / "dag", tmp_path / "elsewhere")
    (run / "dag").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreMismatchError, match="dag: is a symbolic link"):
        verify_store(solution_in(run), progress=False)
    assert invoke("verify", run).exit_code != 0


@pytest.fixture
def twins(tmp_path: Path) -> tuple[Path, Path]:
    """Two solutions of one DAG, and their folder."""
    for zeta in (1.0, 2.0):
        params = Params(zeta=zeta)
        solve(load_world("basics/first_steps", max_steps=2), params, out=tmp_path / "run", progress=False).close()
    one, other = sorted((tmp_path / "run").glob("solution-*"))
    return one, other


@pytest.mark.parametrize("part", ["level_00000", "level_00002", "zarr.json"])
def test_parts_of_another_solution_are_noticed_though_all_checksums_agree(part: str, twins: tuple[Path, Path]) -> None:
    one, other = twins
    remove(one / part)
    (other / part).rename(one / part)
    shutil.rmtree(other)
    with pytest.raises(DamagedStoreError, match="belongs to another store, or the manifest"):
        open_solution(one.parent)
    assert invoke("verify", one.parent).exit_code == 1


def test_levels_of_another_world_are_noticed(run: Path, tmp_path: Path) -> None:
    enumerate_dag(
        load_world("basics/first_steps", max_steps=2, stumble_probability=0.5), store=tmp_path / "dag", progress=False
    ).close()
    for part in (path for path in (tmp_path / "dag").iterdir() if path.is_dir()):
        remove(run / "dag" / part.name)
        part.rename(run / "dag" / part.name)
    with pytest.raises(DamagedStoreError, match="belongs to another store"):
        open_dag(run / "dag")
    assert invoke("verify", run).exit_code == 1


@pytest.mark.parametrize("change", ["name", "levels", "world"])
def test_verify_compares_a_solution_with_its_name_and_its_dag(change: str, run: Path) -> None:
    tree = tree_of(solution_in(run))
    manifest = record_of(tree, "zarr.json")
    if change == "name":
        solution_in(run).rename(run / "solution-0123456789ab")
    elif change == "levels":
        put_record(tree, "zarr.json", {**manifest, "levels": [0, 2, 3]})
        leave_out_labels(tree)
        put_tree(tree, solution_in(run))
    else:
        put_record(tree, "zarr.json", {**manifest, "content": {**manifest["content"], "world": "0" * 40}})
        put_tree(tree, solution_in(run))
    found = invoke("verify", run)
    assert found.exit_code == 1
    words = {"name": "its manifest is that of solution-", "levels": "other numbers than", "world": "for another world than"}
    assert words[change] in found.output


@pytest.mark.parametrize("name", ["dag", "solution"])
def test_a_file_in_the_place_of_a_store_is_noticed(name: str, run: Path) -> None:
    store = run / "dag" if name == "dag" else solution_in(run)
    shutil.rmtree(store)
    store.write_text("no store")
    found = invoke("verify", run)
    assert found.exit_code == 2
    assert "is a file" in found.output


def test_folders_nested_deeper_than_names_can_be_are_refused_in_one_line(run: Path) -> None:
    here = os.open(run / "dag", os.O_RDONLY)
    for _ in range(60):
        os.mkdir("x" * 100, dir_fd=here)
        inner = os.open("x" * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    with pytest.raises(StoreMismatchError, match="deeper than names can be") as raised:
        open_dag(run / "dag")
    assert len(str(raised.value)) < 500
    shutil.rmtree(run / "dag")


def test_goals_and_humans_of_a_dag_are_those_of_its_world(run: Path) -> None:
    tree = tree_of(run / "dag")
    record = record_of(tree, "zarr.json")
    record["goals"][0].reverse()
    put_record(tree, "zarr.json", record)
    put_tree(tree, run / "dag")
    with pytest.raises(DamagedStoreError, match="its humans and goals are not those of its gridworld"):
        open_dag(run / "dag")
    assert invoke("verify", run / "dag").exit_code == 1


@pytest.mark.parametrize("change", ["exchange", "delete", "other cell"])
def test_a_dag_is_not_opened_with_a_world_that_has_other_goals(tmp_path: Path, change: str) -> None:
    cells = {"near": [[2, 1]], "far": [[3, 1]], "any": [[1, 1, 4, 1]]}
    goals = [{"name": name, "cells": own} for name, own in cells.items()]
    corridor = {"map": ["We We We We We We", "We Ay .. Ae .. We", "We We We We We We"], "possible_goals": goals}
    enumerate_dag(load_world(corridor, max_steps=2), store=tmp_path, progress=False).close()
    tree = tree_of(tmp_path)
    record = record_of(tree, "zarr.json")
    listed = record["world"]["possible_goals"]
    if change == "exchange":
        listed[0], listed[1] = listed[1], listed[0]
    elif change == "delete":
        del listed[0]
    else:
        listed[0]["cells"] = [[4, 1]]
    put_record(tree, "zarr.json", record)
    put_tree(tree, tmp_path)
    with pytest.raises(DamagedStoreError, match="its humans and goals are not those of its gridworld"):
        open_dag(tmp_path)


def test_a_dag_for_goals_of_the_users_own_opens_with_its_world(tmp_path: Path) -> None:
    world = load_world("basics/first_steps", max_steps=2)
    world.possible_goal_generator = TabularGoalGenerator([ReachCellGoal(world, 0, (2, 1))])
    with enumerate_dag(world, store=tmp_path, progress=False) as dag:
        expected = dag.attained(1)
    with open_dag(tmp_path) as found:
        assert (found.attained(1) == expected).all()


def test_labels_of_a_level_are_those_of_the_manifest(run: Path) -> None:
    tree = tree_of(solution_in(run))
    record = record_of(tree, "level_00001/zarr.json")
    record["labels"]["action"].reverse()
    put_record(tree, "level_00001/zarr.json", record)
    put_tree(tree, solution_in(run))
    with pytest.raises(DamagedStoreError, match="level 1: its labels are not those of the manifest"):
        open_solution(run)


def test_verify_asks_the_world_what_opening_asks(run: Path) -> None:
    tree = tree_of(solution_in(run))
    record = record_of(tree, "zarr.json")
    record["goals"][0].reverse()
    put_record(tree, "zarr.json", record)
    leave_out_labels(tree)
    put_tree(tree, solution_in(run))
    found = invoke("verify", run)
    assert found.exit_code == 1
    assert "goals contradict the rest of the metadata" in found.output


def test_a_level_that_has_ended_leads_nowhere(run: Path) -> None:
    tree = tree_of(run / "dag")
    finished = record_of(tree, "finished/zarr.json")
    finished["levels"][1]["ended"] = True
    put_record(tree, "finished/zarr.json", finished)
    put_tree(tree, run / "dag")
    with pytest.raises(
        DamagedStoreError, match="level 1: all its states are said to be terminal, though it has transitions"
    ):
        open_dag(run / "dag")


def test_half_of_a_zip_file_is_damage(run: Path) -> None:
    with zipfile.ZipFile(run / "half.zip", "w") as file:
        file.write(run / "dag/zarr.json", "zarr.json")
    found = invoke("verify", run / "half.zip")
    assert found.exit_code == 1
    assert "some of its files are missing" in found.output


def test_names_of_goals_in_exported_files_are_harmless(run: Path) -> None:
    goals = SimpleNamespace(humans=[0], names=[["a\x1b]0;b\x07\u202e\nc"]], n_goals=1)
    (label,) = goal_labels(SimpleNamespace(goals=goals))  # type: ignore[arg-type]
    assert label.text == "a\\x1b]0;b\\x07\\u202e c"


def test_a_solution_without_numbers_of_levels_opens_as_those_of_earlier_versions_did(run: Path) -> None:
    with open_solution(run) as before:
        V_r = before.values.V_r[0][0]
    tree = tree_of(solution_in(run))
    manifest = record_of(tree, "zarr.json")
    del manifest["levels"]
    put_record(tree, "zarr.json", manifest)
    put_tree(tree, solution_in(run))
    with open_solution(run) as solution:
        assert solution.values.V_r[0][0] == V_r


def test_records_without_a_manifest_as_earlier_versions_wrote_them_are_read(run: Path) -> None:
    tree = tree_of(run)
    for name in records_in(tree):
        put_record(tree, name, {key: value for key, value in record_of(tree, name).items() if key != "manifest"})
    put_tree(tree, run)
    assert invoke("verify", run).exit_code == 0
    open_solution(run).close()


def test_verify_names_links_that_it_does_not_follow(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "elsewhere")
    (run / "other").symlink_to(tmp_path / "elsewhere")
    found = invoke("verify", run)
    assert found.exit_code == 0
    assert f"{run / 'other'}: is a symbolic link, and was not followed" in found.output
    assert invoke("verify", "--quiet", run).output == ""


@pytest.mark.parametrize(
    ("file", "most"),
    [("dag/zarr.json", 16 << 20), ("dag/level_00001/zarr.json", 16 << 20), ("dag/level_00001/succ/zarr.json", 64 << 10)],
)
def test_metadata_of_hundreds_of_megabytes_are_not_read(file: str, most: int, run: Path) -> None:
    (run / "dag/finished/zarr.json").unlink()
    with (run / file).open("a") as metadata:
        metadata.truncate(300 << 20)  # a hole, which takes no room
    found = invoke("verify", run / "dag")
    assert found.exit_code == 1
    assert f"{file.removeprefix('dag/')} has more than the {most:,} bytes that it can have" in found.output


def test_a_chunk_is_no_larger_than_its_array(run: Path) -> None:
    chunk = run / "dag/level_00001/succ/c/0"
    with chunk.open("r+b") as file:
        file.truncate(1 << 30)
    found = invoke("verify", run / "dag")
    assert found.exit_code == 1
    assert "level_00001/succ/c/0 has more than the" in found.output


def test_a_level_for_which_there_is_no_memory_is_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: object) -> None:
        raise MemoryError("no room for 24 GB")

    monkeypatch.setattr(slice_arrays, "from_arrays", too_large)
    with pytest.raises(MemoryLimitError, match=r"no memory for level 0 as a whole \([\d,]+ transitions; no room for 24 GB"):
        open_dag(run / "dag").levels[0]


def test_a_zip_file_that_is_being_made_is_no_link(run: Path) -> None:
    (run / "x.zip.building").symlink_to(run / "dag")
    (run / "x.zip.lock").write_text("")
    with pytest.raises(StoreMismatchError, match=r"x\.zip\.building: is a symbolic link"):
        open_dag(run / "x.zip")


def test_names_of_folders_do_not_look_like_lines_of_ours(run: Path) -> None:
    shutil.copytree(solution_in(run), run / "solution-a\nall checksums agree\nthis run is fine")
    for command in ("verify", "show"):
        assert "this run is fine" not in invoke(command, run).output


def test_keys_cannot_be_chosen_so_that_they_meet() -> None:
    """The rows of two tables of the same keys differ, since each has a salt of its own; numbers do not."""
    keys = np.arange(500, dtype=np.uint64).reshape(-1, 1)
    one, other = KeyIndex(1), KeyIndex(1)
    assert np.array_equal(one.add(keys), other.add(keys))
    assert not np.array_equal(one._table, other._table)


@pytest.mark.parametrize("url", ["memory://", "://", "reference://x", "nonsense://x"])
def test_places_that_cannot_be_opened_are_named(url: str) -> None:
    with pytest.raises(StoreError):
        open_dag(url)
    with pytest.raises(StoreError):
        open_solution(url)


def test_a_manifest_that_is_a_folder_is_damage(run: Path) -> None:
    (run / "manifest.json").mkdir()
    with pytest.raises(DamagedStoreError, match=r"manifest\.json: is not JSON"):
        open_solution(run)


def test_rows_of_counts_are_read_few_at_a_time_also_where_transitions_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row has a count for each profile; a slice of few transitions may have gigabytes of zeros."""
    n_profiles, read = 1000, []

    class Rows:
        def __init__(self, *_: Any) -> None: ...

        def rows(self, first: int, last: int) -> Any:
            read.append(last - first)
            return np.zeros((last - first, n_profiles), dtype=np.uint8)

    monkeypatch.setattr("empo_bi.store.transition_chunks.RowReader", Rows)
    marker = {"level": 0, "arrays": {"count": {}}, "n_expanded": 100, "n_transitions": 1}
    head: Any = SimpleNamespace(expanded=range(100))
    nobody = np.zeros(0, dtype=np.int64)
    assert not list(read_stretches(MagicMock(), MagicMock(), marker, head, n_profiles, 16 * 5 * n_profiles, nobody))
    assert (sum(read), max(read)) == (100, 5)


def test_texts_of_world_files_do_not_look_like_lines_of_ours(tmp_path: Path) -> None:
    forged = '"x\\nall checksums agree"'
    for i, text in enumerate((f"{forged}: 1\n", f"metadata: {{name: {forged}}}\n")):
        file = tmp_path / f"world{i}.yaml"
        file.write_text("map: |\n  We We We\n  We Ay We\n  We We We\nmax_steps: 2\npossible_goals: ['1,1']\n" + text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shown = invoke("worlds", "describe", file)
        assert shown.exit_code == 0
        assert "all checksums agree" not in shown.output.splitlines()
    with pytest.warns(WorldWarning, match="x all checksums agree: unknown key"):
        load_world(tmp_path / "world0.yaml")


def test_an_empty_folder_of_a_store_at_a_url_is_unfinished(tmp_path: Path) -> None:
    (tmp_path / "solution-0a1b2c").mkdir()  # whose maker was killed between making the folder and its first file
    assert not verify_store(f"local://{tmp_path}/solution-0a1b2c", progress=False).is_finished
    with pytest.raises(StoreError, match="no slice store"):
        verify_store(f"local://{tmp_path}/solution-3d4e5f", progress=False)


def test_what_documented_functions_leave_on_an_array_world_does_not_make_it_another(tmp_path: Path) -> None:
    world = ArrayWorld(np.eye(2), max_steps=1, goals={"one": [1]})
    enumerate_dag(world, store=tmp_path / "dag", progress=False)
    world._attainment_cache = None
    assert enumerate_dag(world, store=tmp_path / "dag", progress=False).is_finished


class Unlisted(MemoryStore):
    """As buckets often are for those who may only read."""

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        raise PermissionError("403")
        yield ""


def test_a_finished_store_that_cannot_be_listed_is_used_again() -> None:
    world, files = load_world("basics/first_steps", max_steps=2), MemoryStore()
    n_states = enumerate_dag(world, store=files, progress=False).n_states
    assert enumerate_dag(world, store=Unlisted(files._store_dict), progress=False).n_states == n_states


@pytest.mark.parametrize(
    ("out", "place"), [("memory://", "memory://dag"), ("memory://x", "memory://x/dag"), ("s3://a/b//", "s3://a/b/dag")]
)
def test_places_below_urls_have_one_slash(out: str, place: str) -> None:
    assert inside(out, "dag") == place


@pytest.mark.parametrize("is_old", [False, True], ids=["with checksums of chunks", "from before them"])
def test_a_chunk_of_another_array_is_noticed_even_if_only_some_rows_are_read(run: Path, is_old: bool) -> None:
    level = solution_in(run) / "level_00001"
    (level / "vh/c/0/0/0").rename(run / "kept")
    (level / "ve/c/0/0/0").rename(level / "vh/c/0/0/0")
    (run / "kept").rename(level / "ve/c/0/0/0")
    if is_old:
        tree = tree_of(solution_in(run))
        record = record_of(tree, "level_00001/zarr.json")
        for about in record["arrays"].values():
            del about["chunks"]
        put_record(tree, "level_00001/zarr.json", record)
        put_tree(tree, solution_in(run))
    with open_solution(run) as solution, pytest.raises(DamagedStoreError, match="level 1, array 'vh'"):
        list(solution.pieces("vh", 1, range(1, 2)))


def test_chunks_know_their_places(tmp_path: Path) -> None:
    files = ZarrFiles("here", LocalStore(tmp_path))
    numbers = np.arange(3 * CHUNK_BYTES // 8, dtype=np.float64)
    about = files.write_array("g", "a", numbers, ("row",), Compression(level=0))
    assert len(about["chunks"]) == 3
    (tmp_path / "g/a/c/0").rename(tmp_path / "g/a/c/x")
    (tmp_path / "g/a/c/1").rename(tmp_path / "g/a/c/0")
    (tmp_path / "g/a/c/x").rename(tmp_path / "g/a/c/1")
    with pytest.raises(DamagedStoreError, match="is not the one that its level has recorded"):
        list(files.read_pieces("g", "a", about, range(5)))
    with pytest.raises(DamagedStoreError, match="its checksum differs"):
        files.read_array("g", "a", about)


@pytest.mark.parametrize("has_checksums", [True, False])
def test_another_order_of_bytes_gives_no_other_numbers(has_checksums: bool, tmp_path: Path) -> None:
    """Metadata of an array have no checksum: whoever asks for some rows of such an array reads all, and compares."""
    files = ZarrFiles("here", LocalStore(tmp_path))
    numbers = np.ones(3 * CHUNK_BYTES // 2, dtype=np.float16)
    about = files.write_array("g", "a", numbers, ("row",), Compression(level=0))
    about = about if has_checksums else {name: value for name, value in about.items() if name != "chunks"}
    metadata = tmp_path / "g/a/zarr.json"
    metadata.write_text(metadata.read_text().replace('"little"', '"big"'))
    with pytest.raises(DamagedStoreError, match="its checksum differs"):
        list(files.read_pieces("g", "a", about, range(5)))
    for chunk in (tmp_path / "g/a/c").iterdir():  # as somebody writes it who prefers that order
        data = np.frombuffer(chunk.read_bytes()[:-4], dtype="<f2").astype(">f2").tobytes()
        chunk.write_bytes(data + google_crc32c.value(data).to_bytes(4, "little"))
    ((_, rows),) = files.read_pieces("g", "a", about, range(5))
    np.testing.assert_array_equal(rows, np.ones(5))


def test_the_dag_of_a_run_is_looked_for_in_a_batch_only(tmp_path: Path) -> None:
    """A run that was moved elsewhere does not read folders that happen to lie there."""
    run_here({"worlds": "basics/first_steps", "steps": 2, "keep": "values"}, tmp_path / "batch")
    (run,) = (tmp_path / "batch/runs").iterdir()
    (tmp_path / "dags").mkdir()
    (tmp_path / "elsewhere").mkdir()
    moved = run.rename(tmp_path / "elsewhere/run")
    manifest = manifest_of_run(moved)
    manifest["dag"] = f"dags/{manifest['world']['key']}"
    (moved / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / manifest["dag"]).write_text("whoever reads this fails, since it is no folder")
    with open_solution(moved) as solution:
        assert solution.values.V_r[0][0] < 0


@pytest.mark.parametrize("url", ["memory://solution-abc", "memory://a/solution-abc"])
def test_urls_of_solutions_are_not_taken_for_folders(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="memory://"):
        open_solution(url)


@pytest.mark.parametrize("content", [{"title": "x" * (17 << 20)}, {"values": [1] * (1 << 20)}])
def test_nothing_is_written_that_opening_would_refuse(content: dict[str, Any]) -> None:
    store = MemoryStore()
    with pytest.raises(StoreError, match=r"metadata of group 0 would take \d+ MB, more than is read again"):
        ZarrFiles("here", store).write_record("0", content)
    assert ZarrFiles("here", store).read_record("0") is None
