"""Runs and batches in one file: what is packed opens as it is, and nothing that is damaged or unfinished is packed."""

from __future__ import annotations

import os
import random
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from empo_bi import Params, load_world, open_dag, open_solution, run_batch, solve
from empo_bi.batch.packing import pack
from empo_bi.cli import cli
from empo_bi.errors import DamagedStoreError, StoreMismatchError, StoreNotFoundError, TooManyStatesError

PARAMS = Params(zeta=2, gamma_h=0.9)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packing") / "run"
    solve(load_world("ice_rink", max_steps=2), PARAMS, out=folder, progress=False).close()
    return Path(folder)


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packing") / "batch"
    spec = {"worlds": "basics/first_steps", "steps": 2, "params": {"zeta": [1, 2]}, "keep": "values"}
    assert run_batch(spec, out=folder, workers=1, progress=False).is_complete
    return Path(folder)


def invoke(*words: object) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)))


def test_a_packed_run_opens_with_the_same_numbers(run: Path, tmp_path: Path) -> None:
    done = pack(run, tmp_path / "run.zip", progress=False)
    assert done.nbytes == (tmp_path / "run.zip").stat().st_size
    with open_solution(run) as expected, open_solution(tmp_path / "run.zip") as found:
        assert found.params == expected.params
        for t in range(3):
            np.testing.assert_array_equal(found.values.V_r[t], expected.values.V_r[t])
            np.testing.assert_array_equal(found.values.Vh_e[t], expected.values.Vh_e[t])
        state = expected.world.initial_state()
        assert found.robot_policy(state) == expected.robot_policy(state)
        assert found.precision == expected.precision
    (solution,) = [path.name for path in run.glob("solution-*")]
    with open_solution(tmp_path / "run.zip" / solution) as found, open_dag(tmp_path / "run.zip" / "dag") as dag:
        assert found.dag.n_states == dag.n_states


def test_the_file_has_its_world_versions_licence_and_citation(run: Path, tmp_path: Path) -> None:
    pack(run, tmp_path / "run.zip", licence="CC-BY-4.0", progress=False)
    with zipfile.ZipFile(tmp_path / "run.zip") as packed:
        text, world = packed.read("README.txt").decode(), packed.read("world.yaml").decode()
        assert {info.compress_type for info in packed.infolist()} == {zipfile.ZIP_STORED}
    assert "Licence: CC-BY-4.0" in text
    assert "empo_bi 0." in text
    assert "To cite:" in text
    assert load_world(world).initial_state() == load_world("ice_rink", max_steps=2).initial_state()


def test_equal_runs_make_equal_files_and_unpacking_gives_the_run(run: Path, tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        pack(run, tmp_path / name, progress=False)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        packed.extractall(tmp_path / "unpacked")
    files = {path.relative_to(run) for path in run.rglob("*") if path.is_file()}
    assert {path.relative_to(tmp_path / "unpacked") for path in (tmp_path / "unpacked").rglob("*") if path.is_file()} == (
        files | {Path("README.txt"), Path("world.yaml")}
    )
    assert pack(tmp_path / "unpacked", tmp_path / "c.zip", progress=False).n_files == len(files) + 2


def test_commands_take_a_packed_run(run: Path, tmp_path: Path) -> None:
    done = invoke("pack", run, tmp_path / "run.zip")
    assert done.exit_code == 0
    assert "opens as it is" in done.output
    assert "V_r = " in invoke("show", tmp_path / "run.zip").output
    found = invoke("verify", tmp_path / "run.zip")
    assert found.output.count("all checksums agree") == 2
    assert invoke("report", tmp_path / "run.zip", "--out", tmp_path / "page.html").exit_code == 0
    assert invoke("pack", run, tmp_path / "run.zip").exit_code == 2  # it is there already
    assert invoke("pack", run, tmp_path / "run.zip", "--force", "--quiet").output == ""
    assert invoke("pack", run, tmp_path / "run.tar").exit_code == 2
    assert invoke("show", tmp_path / "run.zip" / "nothing").exit_code == 2


def test_a_packed_batch_opens_run_by_run(batch: Path, tmp_path: Path) -> None:
    pack(batch, tmp_path / "batch.zip", progress=False)
    assert "2 runs: 2 finished" in invoke("show", tmp_path / "batch.zip").output
    assert invoke("verify", tmp_path / "batch.zip").exit_code == 0
    for one in (batch / "runs").iterdir():
        with open_solution(one) as expected, open_solution(tmp_path / "batch.zip" / "runs" / one.name) as found:
            assert found.values.V_r[0][0] == expected.values.V_r[0][0]
        pack(one, tmp_path / "one.zip", overwrite=True, progress=False)
        with open_solution(tmp_path / "one.zip") as found:
            assert found.params.zeta == expected.params.zeta


def test_a_run_that_shares_its_dag_is_packed_with_its_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empo_bi.batch.run_pass.SMALL_BODIES", 1)
    monkeypatch.setattr("empo_bi.batch.run_pass.SMALL_STATES", 1)
    spec = {"worlds": "basics/first_steps", "steps": 2, "keep": "values"}
    run_batch(spec, out=tmp_path / "batch", workers=1, progress=False)
    (one,) = (tmp_path / "batch" / "runs").iterdir()
    with pytest.raises(StoreMismatchError, match="pack the batch"):
        pack(one, tmp_path / "one.zip", progress=False)
    pack(tmp_path / "batch", tmp_path / "batch.zip", progress=False)
    with open_solution(tmp_path / "batch.zip" / "runs" / one.name) as found:
        assert found.values.V_r[0][0] < 0


def test_what_is_damaged_or_not_finished_is_not_packed(run: Path, tmp_path: Path) -> None:
    damaged = Path(shutil.copytree(run, tmp_path / "damaged"))
    chunk = damaged / "dag/level_00001/succ/c/0"
    chunk.write_bytes(chunk.read_bytes()[:-1] + b"x")
    with pytest.raises(DamagedStoreError, match="level 1, array 'succ'"):
        pack(damaged, tmp_path / "x.zip", progress=False)
    with pytest.raises(TooManyStatesError):
        solve(load_world("ice_rink", max_steps=5), out=tmp_path / "unfinished", max_states=150, progress=False)
    with pytest.raises(StoreNotFoundError, match="is not finished"):
        pack(tmp_path / "unfinished", tmp_path / "x.zip", progress=False)
    (tmp_path / "empty").mkdir()
    for nothing in ("empty", "nowhere"):
        with pytest.raises(StoreNotFoundError):
            pack(tmp_path / nothing, tmp_path / "x.zip", progress=False)
    assert not list(tmp_path.glob("*.zip*"))


def test_a_compressed_or_damaged_file_is_refused(run: Path, tmp_path: Path) -> None:
    pack(run, tmp_path / "run.zip", progress=False)
    data = (tmp_path / "run.zip").read_bytes()
    (tmp_path / "half.zip").write_bytes(data[: len(data) // 2])
    with zipfile.ZipFile(tmp_path / "run.zip") as packed, zipfile.ZipFile(tmp_path / "squeezed.zip", "w") as squeezed:
        for info in packed.infolist():
            squeezed.writestr(info.filename, packed.read(info), zipfile.ZIP_DEFLATED)
    for name, problem in (("half.zip", "not a complete zip file"), ("squeezed.zip", "members are compressed")):
        with pytest.raises(DamagedStoreError, match=problem):
            open_solution(tmp_path / name)
        assert invoke("verify", tmp_path / name).exit_code == 1


def test_names_that_lead_out_of_the_file_are_not_read(run: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as packed:
        for path in run.rglob("*"):
            if path.is_file():
                packed.writestr(f"../{path.relative_to(run).as_posix()}", path.read_bytes())
    with pytest.raises(StoreNotFoundError):
        open_solution(tmp_path / "run.zip")


def test_nothing_is_written_to_a_packed_run(run: Path, tmp_path: Path) -> None:
    pack(run, tmp_path / "run.zip", progress=False)
    before = (tmp_path / "run.zip").read_bytes()
    with pytest.raises(StoreMismatchError, match="open_solution opens a run that was packed"):
        solve(load_world("ice_rink", max_steps=2), PARAMS, out=tmp_path / "run.zip", progress=False)
    assert (tmp_path / "run.zip").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.zip"]


def test_the_list_of_members_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many folders there are: a small file with thousands of them took minutes."""
    with zipfile.ZipFile(tmp_path / "folders.zip", "w") as packed:
        for i in range(300):
            packed.writestr(f"runs/{i}/solution-{i}/zarr.json", b"{}")
    lists, infolist = list[object](), zipfile.ZipFile.infolist

    def counted(packed: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
        lists.append(packed)
        return infolist(packed)

    monkeypatch.setattr(zipfile.ZipFile, "infolist", counted)
    assert invoke("verify", tmp_path / "folders.zip").exit_code == 1
    assert len(lists) < 5


def test_names_of_a_thousand_folders_inside_of_each_other_are_left_out(run: Path, tmp_path: Path) -> None:
    pack(run, tmp_path / "run.zip", progress=False)
    with zipfile.ZipFile(tmp_path / "run.zip", "a") as packed:
        for i in range(100):
            packed.writestr("/".join(["x"] * 20_000) + str(i), b"")
        packed.writestr("dag/../../x", b"")
        packed.writestr("solution-\x1b[2J/zarr.json", b"")
    with open_solution(tmp_path / "run.zip") as found:
        assert found.values.V_r[0][0] < 0
    assert "\x1b" not in invoke("verify", tmp_path / "run.zip").output


def test_an_encrypted_file_is_refused(run: Path, tmp_path: Path) -> None:
    pack(run, tmp_path / "run.zip", progress=False)
    data = (tmp_path / "run.zip").read_bytes()
    at = data.rindex(b"PK\x01\x02")  # the last entry of the list of members
    (tmp_path / "run.zip").write_bytes(data[: at + 8] + b"\x01" + data[at + 9 :])
    with pytest.raises(DamagedStoreError, match="is encrypted"):
        open_solution(tmp_path / "run.zip")


def test_arrays_of_many_chunks_are_read_inside_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empo_bi.store.compression.CHUNK_BYTES", 200)
    solve(load_world("ice_rink", max_steps=2), PARAMS, out=tmp_path / "run", progress=False).close()
    pack(tmp_path / "run", tmp_path / "run.zip", progress=False)
    assert invoke("verify", tmp_path / "run.zip").output.count("all checksums agree") == 2
    with open_solution(tmp_path / "run") as expected, open_solution(tmp_path / "run.zip") as found:
        np.testing.assert_array_equal(found.values.Vh_e[2], expected.values.Vh_e[2])
    with zipfile.ZipFile(tmp_path / "run.zip") as packed, zipfile.ZipFile(tmp_path / "less.zip", "w") as less:
        for info in packed.infolist():
            if not info.filename.endswith("level_00002/vh/c/1/0/0"):
                less.writestr(info, packed.read(info))
    found_less = invoke("verify", tmp_path / "less.zip")
    assert found_less.exit_code == 1
    assert "level 2, array 'vh'" in found_less.output


def test_members_that_share_their_bytes_are_refused(run: Path, tmp_path: Path) -> None:
    """A file of a megabyte could otherwise have a gigabyte of manifests."""
    with zipfile.ZipFile(tmp_path / "run.zip", "w") as packed:
        for i in range(9):
            packed.writestr(f"runs/{i}/manifest.json", b" " * 10_000)
        for info in packed.infolist():
            info.header_offset = 0  # all of them are the first one
    with zipfile.ZipFile(tmp_path / "less.zip", "w") as less, zipfile.ZipFile(tmp_path / "run.zip") as packed:
        less.writestr("runs/0/manifest.json", b" " * 10_000)
        directory = packed.infolist()
        less.filelist += directory[1:]
        less.NameToInfo |= {info.filename: info for info in directory[1:]}
        less._didModify = True
    assert (tmp_path / "less.zip").stat().st_size < 20_000
    found = invoke("show", tmp_path / "less.zip")
    assert found.exit_code == 3
    assert "some of them overlap" in found.output


def test_names_that_not_every_system_can_write_are_refused(run: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(run, tmp_path / "run"))
    (other / os.fsdecode(b"\xff.txt")).write_text("")
    with pytest.raises(StoreMismatchError, match="not every system can write"):
        pack(other, tmp_path / "run.zip", progress=False)
    assert not (tmp_path / "run.zip").exists()


@pytest.mark.parametrize("n_bytes", [1, 3, 7])
def test_a_changed_byte_of_a_packed_batch_never_is_a_raw_error(n_bytes: int, batch: Path, tmp_path: Path) -> None:
    pack(batch, tmp_path / "batch.zip", progress=False)
    data, draw = (tmp_path / "batch.zip").read_bytes(), random.Random(n_bytes)
    begin = data.index(b"PK\x01\x02")  # the list of members, and the headers of two members
    places = [*range(begin, len(data)), *range(60), *range(data.index(b"manifest.json") - 40, data.index(b"manifest.json"))]
    for _ in range(25):
        changed = bytearray(data)
        for place in draw.sample(places, n_bytes):
            changed[place] ^= 1 << draw.randrange(8)
        (tmp_path / "changed.zip").write_bytes(changed)
        for command in ("show", "verify"):
            assert "should not happen" not in invoke(command, tmp_path / "changed.zip").output
