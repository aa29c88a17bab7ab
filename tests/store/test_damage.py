"""Stores that were damaged: named by level and array, never used, and never another exception."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from empo_bi import (
    DamagedStoreError,
    EmpoError,
    StoreError,
    StoreMismatchError,
    StoreNotFoundError,
    enumerate_dag,
    load_world,
    open_dag,
)
from empo_bi.cli import cli

ARRAYS = ("body_S", "count_SJ", "succ_K", "prob_K", "attained_SX")


@pytest.fixture(scope="module", params=[True, False], ids=["compressed", "plain"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that nobody touches: bodies, counts, probabilities and attainment are all in it."""
    path = tmp_path_factory.mktemp("whole") / "dag"
    world = load_world("ice_rink", max_steps=4)
    enumerate_dag(world, store=path, compression=request.param, progress=False)
    return path


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "dag"))


def flip(path: Path, place: int = -1) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 0x40
    path.write_bytes(bytes(content))


def change_json(path: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def chunk(store: Path, name: str) -> Path:
    return next(path for path in sorted((store / "level_00002" / name / "c").rglob("*")) if path.is_file())


def test_the_command_line_tells_a_sound_store_from_a_damaged_one_and_from_none(copy: Path) -> None:
    def verify(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "empo_bi", "verify", str(path), *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    sound = verify(copy)
    assert (sound.returncode, "all checksums agree" in sound.stdout) == (0, True)
    assert verify(copy, "--quiet").stdout == ""
    truncate(chunk(copy, "succ"))
    shutil.rmtree(copy / "level_00003" / "succ")
    damaged = verify(copy, "--quiet")
    assert damaged.returncode == 1
    assert "2 problems found" in damaged.stdout
    none = verify(copy / "nowhere")
    assert none.returncode == 2
    assert "no such folder" in none.stderr
    assert "Traceback" not in none.stderr


def test_a_changed_commit_marker_is_found_by_verify_and_refused_when_it_is_needed(copy: Path) -> None:
    def change(content: Any) -> None:
        content["attributes"]["empo_bi"]["n_states"] += 1

    change_json(copy / "level_00002/zarr.json", change)
    assert "level 2: its checksum differs" in CliRunner().invoke(cli, ["verify", str(copy)]).output
    shutil.rmtree(copy / "finished")
    with pytest.raises(DamagedStoreError, match="the metadata of level 2: its checksum differs"):
        open_dag(copy)


def test_other_zarr_groups_and_folders_are_no_stores_and_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}')
    (tmp_path / "other" / "notes.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("mine")
    world = load_world("first_steps", max_steps=2)
    for name in ("other", "folder"):
        for overwrite in (False, True):
            with pytest.raises(StoreMismatchError, match=r"not a slice store"):
                enumerate_dag(world, store=tmp_path / name, overwrite=overwrite, progress=False)
        with pytest.raises(StoreError, match=r"(not a|no) slice store"):
            open_dag(tmp_path / name)
        assert (tmp_path / name / "notes.txt").read_text() == "mine"
    with pytest.raises(StoreNotFoundError, match="no such folder"):
        open_dag(tmp_path / "nowhere")


def test_whatever_byte_is_changed_reading_gives_the_original_or_an_error(whole: Path, tmp_path: Path) -> None:
    """Never other numbers, and never an exception that is not ours."""
    original = [open_dag(whole).level(t) for t in range(5)]
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
    rng, refused = random.Random(5), 0
    copy = Path(shutil.copytree(whole, tmp_path / "dag"))
    for _ in range(150):
        name = rng.choice(files)
        content = (whole / name).read_bytes()
        changed = bytearray(content)
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        (copy / name).write_bytes(bytes(changed))
        try:
            dag = open_dag(copy)
            for t, level in enumerate(original):
                found = dag.level(t)
                for array in ARRAYS:
                    assert np.array_equal(getattr(found, array), getattr(level, array)), (name, array)
        except EmpoError:
            refused += 1
        (copy / name).write_bytes(content)
    assert refused > 50
