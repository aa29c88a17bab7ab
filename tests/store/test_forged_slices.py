"""Numbers that no store has, with checksums that agree: each is refused by name, before a kernel sees it, and by ``verify``.

Kernels would read and write wherever these lead. ``test_forged_runs.py`` tries thousands of them; here is one of each kind.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack import PARAMS, array_world, make_master, world_of
from click.testing import CliRunner
from forging import array_of, put_array, put_record, put_tree, record_of, records_in, tree_of
from store_tools import assert_same_trees

from empo_bi import (
    DamagedStoreError,
    StoreError,
    StoreMismatchError,
    enumerate_dag,
    load_world,
    open_dag,
    open_solution,
    solve,
)
from empo_bi.cli import cli
from empo_bi.store.records import FormatError
from empo_bi.store.solution_rules import SolutionRules
from empo_bi.store.solution_store import SolutionStore
from empo_bi.store.verify import verify_store
from empo_bi.store.zarr_files import ZarrFiles

Forge = Callable[[np.ndarray], object]


@pytest.fixture(scope="module")
def masters(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Honest runs by their kind, each made once."""
    folder = tmp_path_factory.mktemp("masters")

    def made(kind: str) -> Path:
        if not (folder / kind).exists():
            make_master(kind, folder / kind)
        return folder / kind

    return made


def put(index: Any, value: Any) -> Forge:
    def forge(array: np.ndarray) -> None:
        array[index] = value

    return forge


def wider(array: np.ndarray) -> np.ndarray:
    return np.full(array.shape, 2**31, dtype=np.uint32)


# By name: the kind of run, the level, the array and what becomes of it, and what is said of it.
FORGED: dict[str, tuple[str, int, str, Forge, str]] = {
    "a successor beyond all bodies": ("grid", 1, "succ", put(3, 255), "body 255 follows"),
    "successors that int32 cannot hold": ("grid", 1, "succ", wider, "body 2,147,483,648 follows"),
    "a successor on a level before": (
        "ring",
        1,
        "succ",
        put(0, 0),
        "a transition leads to level 0, which is not",
    ),
    "more transitions than there are": ("grid", 1, "count", put((0, 0), 90), "its numbers sum to"),
    "more successors than there are bodies": ("grid", 1, "count", put((0, 0), 200), "200 successors of one body"),
    "profiles that lead nowhere": ("array", 0, "count", lambda a: put((0, slice(0, 2)), [0, 4])(a), "under some profiles"),
    "a probability that is not a number": ("grid", 1, "prob", put(0, np.nan), "a probability is nan"),
    "a negative probability": ("grid", 1, "prob", put(0, -0.5), "not above 0"),
    "a probability of 0": ("grid", 1, "prob", put(0, 0), "not above 0"),
    "probabilities that do not sum to 1": ("array", 1, "prob", put(slice(None), 0.75), "sum to 1.5"),
    "a body on a level twice": ("array", 2, "members", lambda a: put(1, a[0])(a), "do not ascend"),
    "a member that no level has added": ("array", 2, "members", put(-1, 200), "it has body 200"),
    "bits of goals that nobody has": ("grid", 1, "attained", put((0, -1), 255), "padding bits are set"),
    "a key that is no state": ("grid", 1, "key", put(0, 2**64 - 1), "a field of"),
    "another initial state": ("grid", 0, "key", lambda a: a.__ixor__(np.uint64(1 << 4)), "array 'key'"),
    "a number of a state that there is not": ("array", 1, "key", put(0, 10**6), "state 1,000,000 of 14"),
}


@pytest.mark.parametrize("case", FORGED)
@pytest.mark.parametrize("is_held_whole", [True, False], ids=["whole", "in stretches"])
def test_numbers_that_cannot_be_are_refused_by_level_and_array(
    case: str, is_held_whole: bool, masters: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("empo_bi.store.dag_store.DagStore._is_held_whole", lambda self, t: is_held_whole)
    kind, t, name, forge, message = FORGED[case]
    files = tree_of(masters(kind))
    array = array_of(files, f"dag/level_{t:05}/{name}")
    made = forge(array)
    put_array(files, f"dag/level_{t:05}/{name}", made if isinstance(made, np.ndarray) else array)
    put_tree(files, tmp_path / "run")
    world = None if kind == "grid" else world_of(kind)[0]
    with open_dag(tmp_path / "run/dag", world=world) as dag, pytest.raises(DamagedStoreError, match=message) as error:
        [(dag.level(t), dag.states(t)) for t in range(dag.horizon + 1)]
    assert f"level {t}, array {name!r}" in str(error.value)
    assert str(tmp_path / "run/dag") in str(error.value)
    if "state that there is not" not in case:  # which takes the world to tell
        assert any(message in line for line in verify_store(tmp_path / "run/dag", progress=False).damage)
    with (
        pytest.raises(DamagedStoreError, match=message),
        open_solution(tmp_path / "run", world=world, progress=False) as solution,
    ):
        [(solution.pi_h[t], solution.reached[t], solution.dag.states(t)) for t in range(solution.dag.horizon + 1)]


def test_successors_on_another_level_are_noticed_where_levels_are_not_nested(
    masters: Callable[[str], Path], tmp_path: Path
) -> None:
    files = tree_of(masters("array"))
    succ, members = array_of(files, "dag/level_00001/succ"), array_of(files, "dag/level_00002/members")
    succ[0] = next(body for body in range(int(members.max())) if body not in members)
    put_array(files, "dag/level_00001/succ", succ)
    put_tree(files, tmp_path / "run")
    message = "level 1: body .* follows, but is not on level 2"
    with open_dag(tmp_path / "run/dag", world=array_world()) as dag, pytest.raises(DamagedStoreError, match=message):
        dag.level(1)
    with pytest.raises(DamagedStoreError, match=message), open_solution(tmp_path / "run", world=array_world()) as solution:
        solution.reached[2]
    assert "is not on level 2" in verify_store(tmp_path / "run/dag", progress=False).damage[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_known": 10**9}, "1,000,000,000 bodies are said to be known, but"),
        ({"members": [0, 10**9]}, "members are said to be"),
        ({"members": [5, 2]}, "expected .first, past the last."),
        ({"n_states": 10**9, "members": [0, 10**9]}, "members go up to 1,000,000,000"),
        ({"n_transitions": -1}, "field 'n_transitions' is -1; expected a whole number"),
        ({"n_expanded": 1.5}, "field 'n_expanded' is 1.5"),
        ({"ended": 1}, "field 'ended' is 1"),
        ({"level": 7}, "its commit marker is that of level 7"),
        ({"value": 9}, "its value is 9"),
        ({"arrays": None}, "field 'arrays' is None; expected an object"),
    ],
)
def test_a_marker_that_cannot_be_is_refused_when_the_store_is_opened(
    change: dict[str, Any], message: str, masters: Callable[[str], Path], tmp_path: Path
) -> None:
    files = tree_of(masters("grid"))
    end = record_of(files, "dag/finished/zarr.json")
    end["levels"][2].update(change)
    put_record(files, "dag/finished/zarr.json", end)
    put_tree(files, tmp_path / "run")
    with pytest.raises(DamagedStoreError, match=message) as error:
        open_dag(tmp_path / "run/dag")
    assert "level " in str(error.value)
    assert CliRunner().invoke(cli, ["verify", str(tmp_path / "run/dag")]).exit_code == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_profiles": 10**6}, "field 'n_profiles'"),
        ({"n_agents": 10**15, "n_actions": 2}, "field 'n_profiles'"),
        ({"humans": [99]}, "different agents below"),
        ({"goals": [["a"], ["b", "c"]]}, "equally many goals"),
        ({"shares_bodies": False}, "bodies of a compiled world are shared"),
        ({"world": {"map": 3}}, "its world cannot be loaded"),
        ({"content": []}, "field 'content' is"),
        ({"title": "\ud800"}, "field 'title' is"),
    ],
)
def test_a_manifest_that_cannot_be_is_refused(
    change: dict[str, Any], message: str, masters: Callable[[str], Path], tmp_path: Path
) -> None:
    files = tree_of(masters("grid"))
    put_record(files, "dag/zarr.json", {**record_of(files, "dag/zarr.json"), **change})
    put_tree(files, tmp_path / "run")
    with pytest.raises(DamagedStoreError, match=message):
        open_dag(tmp_path / "run/dag")
    with pytest.raises(DamagedStoreError, match=message):
        open_solution(tmp_path / "run", progress=False)


def test_another_format_or_version_is_named(masters: Callable[[str], Path], tmp_path: Path) -> None:
    files = tree_of(masters("grid"))
    manifest = record_of(files, "dag/zarr.json")
    for change, message in (
        ({"version": 99}, "has version 99 of the format, this empo_bi reads version 1"),
        ({"format": "empo_bi graph", "version": 7}, "expected format 'empo_bi DAG', version 1, found format 'empo_bi "
         "graph', version 7"),
    ):  # fmt: skip
        put_record(files, "dag/zarr.json", {**manifest, **change})
        put_tree(files, tmp_path / "run")
        with pytest.raises(StoreMismatchError, match=message):
            open_dag(tmp_path / "run/dag")
        assert CliRunner().invoke(cli, ["verify", str(tmp_path / "run/dag")]).exit_code == 2


SOLVED: dict[str, tuple[str, Forge, str]] = {
    "values beyond 1": ("vh", put((0, 0, 0), 2.0), "values of goals are 0 to 2"),
    "values that are not numbers": ("ve", put((0, 0, 0), np.nan), "values of goals are nan"),
    "negative power": ("xh", put((0, 0), -1.0), "power is -1"),
    "a robot that is glad": ("qr", put((0, 0), 3.0), "the robot's values are"),
    "a robot that is half terminal": ("qr", put((0, 0), 0.0), "some numbers are 0 and others are not"),
    "an infinite value": ("vr", put(0, -np.inf), "the robot's values are -inf"),
    "fewer states": ("vr", lambda array: array[:-1], "it is said to be float64"),
}


@pytest.mark.parametrize("case", SOLVED)
def test_values_that_cannot_be_are_refused(case: str, masters: Callable[[str], Path], tmp_path: Path) -> None:
    name, forge, message = SOLVED[case]
    files = tree_of(masters("grid"))
    (folder,) = (name_ for name_ in {file.split("/")[0] for file in files} if name_.startswith("solution-"))
    array = array_of(files, f"{folder}/level_00002/{name}")
    made = forge(array)
    put_array(files, f"{folder}/level_00002/{name}", made if isinstance(made, np.ndarray) else array)
    put_tree(files, tmp_path / "run")
    attribute = {"vh": "Vh_m", "ve": "Vh_e", "xh": "X_h", "qr": None, "vr": "V_r"}[name]

    def opened() -> Any:
        return open_solution(tmp_path / "run", progress=False)

    with pytest.raises(DamagedStoreError, match=f"level 2, array '{name}'.*{message}"), opened() as solution:
        (solution.Q_r if attribute is None else getattr(solution.values, attribute))[2]
    with pytest.raises(DamagedStoreError, match=message), opened() as solution:
        list(solution.pieces(name, 2, range(3)))
    found = CliRunner().invoke(cli, ["verify", str(tmp_path / "run")])
    assert found.exit_code == 1
    assert f"level 2, array '{name}'" in found.output


def test_a_carry_of_another_size_is_refused(masters: Callable[[str], Path], tmp_path: Path) -> None:
    files = tree_of(masters("unfinished solution"))
    (carry,) = {file.rpartition("/")[0].rpartition("/c/")[0] or file.rpartition("/")[0] for file in files
                if "carry_" in file and "/robot/zarr.json" in file}  # fmt: skip
    put_array(files, carry, array_of(files, carry)[:-3])
    put_tree(files, tmp_path / "run")
    world, _ = world_of("unfinished solution")
    problem = r"array 'robot': it is said to be float64 .*; expected float64 \['rows'\], rows: "
    with pytest.raises(DamagedStoreError, match=problem):
        solve(world, PARAMS, out=tmp_path / "run", progress=False)
    found = CliRunner().invoke(cli, ["verify", str(tmp_path / "run")])
    assert found.exit_code == 1
    assert "'robot': it is said to be" in found.output


def test_a_carry_of_another_solution_is_noticed(masters: Callable[[str], Path], tmp_path: Path) -> None:
    tree = tree_of(masters("unfinished solution"))
    (record,) = [name for name in records_in(tree) if "carry_" in name]
    put_record(tree, record, {**record_of(tree, record), "manifest": "01234567"})
    put_tree(tree, tmp_path / "run")
    with pytest.raises(DamagedStoreError, match="belongs to another store"):
        solve(world_of("unfinished solution")[0], PARAMS, out=tmp_path / "run", progress=False)
    assert CliRunner().invoke(cli, ["verify", str(tmp_path / "run")]).exit_code == 1


@pytest.mark.parametrize("is_patient", [True, False])
def test_verify_does_not_take_what_a_writer_removes_for_damage(
    is_patient: bool, masters: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer goes on between looking at the levels and reading what the next one needs."""
    run = Path(shutil.copytree(masters("unfinished solution"), tmp_path / "run"))
    carried = SolutionStore.carried

    def too_late(store: SolutionStore) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(SolutionStore, "carried", carried)
            solve(world_of("unfinished solution")[0], PARAMS, out=run, progress=False).close()
        return carried(store)

    monkeypatch.setattr(SolutionStore, "carried", too_late)
    if not is_patient:
        monkeypatch.setattr("empo_bi.store.verify._TRIES", 1)
    found = CliRunner().invoke(cli, ["verify", str(run)])
    assert found.exit_code == 0, found.output
    assert ("somebody is writing there" in found.output) != is_patient
    assert ("2 levels (somebody is writing there" in found.output) != is_patient


# --- the record of the end ----------------------------------------------------------------------------------------------


def flip(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"n_states": ', b'"n_states": 1', 1))


@pytest.mark.parametrize("kind", ["grid", "ring", "shared"])
@pytest.mark.parametrize("spoil", [Path.unlink, flip, lambda path: path.write_bytes(b"{")])
def test_a_missing_or_damaged_end_is_named_and_mended_by_the_same_command(
    spoil: Callable[[Path], object], kind: str, masters: Callable[[str], Path], tmp_path: Path
) -> None:
    run = Path(shutil.copytree(masters(kind), tmp_path / "run"))
    spoil(run / "dag/finished/zarr.json")
    found = CliRunner().invoke(cli, ["verify", str(run)])
    assert found.exit_code == 1
    assert "finished" in found.output
    assert "run the same command again" in found.output
    world, options = world_of(kind)
    with pytest.raises(DamagedStoreError, match=r"finished.*run the same command again"):
        open_solution(run, world=None if kind == "grid" else world, progress=False)
    solve(world, PARAMS, out=run, progress=False, **options).close()
    assert_same_trees(run, masters(kind))
    assert CliRunner().invoke(cli, ["verify", str(run)]).exit_code == 0


def test_a_run_that_was_stopped_just_before_its_end_is_not_damaged(tmp_path: Path) -> None:
    enumerate_dag(load_world("ice_rink", max_steps=2), store=tmp_path / "dag", progress=False).close()
    shutil.rmtree(tmp_path / "dag/finished")
    found = CliRunner().invoke(cli, ["verify", str(tmp_path / "dag")])
    assert found.exit_code == 0
    assert "the file finished/zarr.json, is missing" in found.output


@pytest.mark.parametrize("store", ["dag", "solution"])
def test_a_store_without_its_own_record_is_named(store: str, masters: Callable[[str], Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(masters("grid"), tmp_path / "run"))
    (place,) = run.glob(f"{store}*")
    (place / "zarr.json").unlink()
    with pytest.raises(
        DamagedStoreError, match=f"{place.name}: has levels, but its own record, the file zarr.json, is missing"
    ):
        open_solution(run, progress=False)
    found = CliRunner().invoke(cli, ["verify", str(run)])
    assert found.exit_code == 1
    assert f"{place.name}: has levels, but its own record" in found.output


# --- other ways in ------------------------------------------------------------------------------------------------------


def test_links_out_of_a_store_are_not_followed(masters: Callable[[str], Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(masters("grid"), tmp_path / "run"))
    chunk = run / "dag/level_00001/succ/c/0"
    shutil.move(chunk, tmp_path / "elsewhere")
    chunk.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreMismatchError, match=r"level_00001/succ/c/0: is a symbolic link"):
        open_dag(run / "dag")
    chunk.unlink()
    shutil.move(tmp_path / "elsewhere", chunk)
    (tmp_path / "link").symlink_to(run)  # whoever opens this has chosen it
    with open_dag(tmp_path / "link/dag") as dag:
        dag.level(0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_a_store_does_not_make_anybody_wait(masters: Callable[[str], Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(masters("grid"), tmp_path / "run"))
    (run / "dag/level_00001/zarr.json").unlink()
    os.mkfifo(run / "dag/level_00001/zarr.json")
    (run / "dag/level_00002/key/c/0/0").unlink()
    os.mkfifo(run / "dag/level_00002/key/c/0/0")
    for attempt in (verify_store, open_dag):
        with pytest.raises(StoreMismatchError, match="is a named pipe"):
            attempt(run / "dag")


def test_compressed_members_of_a_zip_file_are_refused(tmp_path: Path) -> None:
    enumerate_dag(load_world("ice_rink", max_steps=2), store=tmp_path / "dag", progress=False).close()
    with zipfile.ZipFile(tmp_path / "dag.zip", "w", compression=zipfile.ZIP_DEFLATED) as packed:
        for name, data in tree_of(tmp_path / "dag").items():
            packed.writestr(name, data)
    with pytest.raises(DamagedStoreError, match="members are compressed"):
        open_dag(tmp_path / "dag.zip")


def test_sizes_are_held_against_files_before_memory_is_taken(masters: Callable[[str], Path], tmp_path: Path) -> None:
    """A level that says it has two thousand million bodies, consistently, but for its files."""
    n, files = 2_000_000_000, tree_of(masters("grid"))
    end = record_of(files, "dag/finished/zarr.json")
    first, second = end["levels"][:2]
    n_first = first["n_bodies"]
    second.update(
        n_states=n, members=[0, n], n_bodies=n - n_first, added=[n_first, n], n_known=n, n_expanded=0, n_transitions=0
    )
    second.update(expanded=[0, 0], ended=True, arrays={name: second["arrays"][name] for name in ("key", "attained")})
    for name in ("key", "attained"):
        second["arrays"][name]["shape"][0] = n - n_first
    first["n_known"] = n
    end["levels"] = [first, second]
    put_record(files, "dag/finished/zarr.json", end)
    put_tree(files, tmp_path / "run")
    with pytest.raises(StoreError, match=r"bodies are said to be known, but"):
        open_dag(tmp_path / "run/dag")
    ring = tree_of(masters("ring"))  # an array of many chunks, of which there is only the last
    about = record_of(ring, "dag/finished/zarr.json")["levels"][1]["arrays"]["states"]
    metadata = json.loads(ring["dag/level_00001/states/zarr.json"])
    metadata["shape"], metadata["chunk_grid"]["configuration"]["chunk_shape"] = [10**9], [1]
    ring["dag/level_00001/states/zarr.json"] = json.dumps(metadata).encode()
    ring[f"dag/level_00001/states/c/{10**9 - 1}"] = ring["dag/level_00001/states/c/0"]
    for record, path in (("finished", ["levels", 1]), ("level_00001", [])):
        content = record_of(ring, f"dag/{record}/zarr.json")
        marker = content["levels"][1] if path else content
        marker["arrays"]["states"] = {"dtype": about["dtype"], "shape": [10**9], "crc32": about["crc32"]}
        put_record(ring, f"dag/{record}/zarr.json", content)
    put_tree(ring, tmp_path / "ring")
    with pytest.raises(StoreError, match="level 1, array 'states': its checksum differs, so a chunk is missing"):
        open_dag(tmp_path / "ring/dag", world=world_of("ring")[0])


def test_a_carry_has_no_more_rows_than_there_are_states() -> None:
    rules = SolutionRules([1, 2], 1, 3, 4, "float16", "float32", 1.0, frozenset(), frozenset())
    rules.check_carry(0, "carry_00000", {"robot": {"dtype": "float64", "shape": [3]}})
    with pytest.raises(FormatError, match=r"carry_00001, array 'robot': it is said to be float64 .1000000000."):
        rules.check_carry(1, "carry_00001", {"robot": {"dtype": "float64", "shape": [10**9]}})
    tables = {"robot": {"dtype": "float64", "shape": [2]}, "effective": {"dtype": "float32", "shape": [3, 3]}}
    with pytest.raises(FormatError, match=r"array 'effective': .* rows: 1 to 3, as many for each table"):
        rules.check_carry(0, "carry_00000", tables)


def test_many_levels_without_markers_are_looked_for_in_one_list(
    masters: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(shutil.copytree(masters("grid"), tmp_path / "run"))
    store = next(run.glob("solution-*"))
    for marker in sorted(store.glob("level_*/zarr.json"))[1:]:
        marker.unlink()
    listed: list[int] = []
    original = ZarrFiles.names
    monkeypatch.setattr(ZarrFiles, "names", lambda self: listed.append(1) or original(self))  # type: ignore[func-returns-value]
    with pytest.raises(DamagedStoreError, match=r"marker of level . is missing, though level 0 below it is there"):
        open_solution(run)
    assert len(listed) <= 2


def forged_solution(run: Path, folder: Path, t: int, name: str, value: float) -> Path:
    """The first state of a level with other numbers."""
    files = tree_of(run)
    key = next(key for key in files if f"/level_{t:05}/{name}/zarr.json" in key).removesuffix("/zarr.json")
    array = array_of(files, key)
    array[0] = value
    put_array(files, key, array)
    put_tree(files, folder)
    return folder


def test_a_robot_without_values_where_it_goes_on_is_noticed(masters: Callable[[str], Path], tmp_path: Path) -> None:
    run = forged_solution(masters("grid"), tmp_path / "run", 1, "qr", 0)
    with pytest.raises(DamagedStoreError, match="level 1, array 'qr': a robot's value is 0 in a state that is not terminal"):
        list(open_solution(run).reached)
    damage = verify_store(next(run.glob("solution-*")), progress=False).damage
    assert any(
        "level 1, array 'xh': other states than by array 'qr' have the numbers of terminal" in line for line in damage
    )


@pytest.mark.parametrize(("name", "value"), [("vh", 1), ("ve", 0.5), ("vr", -3), ("xh", 1), ("qr", -1)])
def test_terminal_states_with_numbers_of_others_are_damage(
    name: str, value: float, masters: Callable[[str], Path], tmp_path: Path
) -> None:
    run = forged_solution(masters("grid"), tmp_path / "run", 3, name, value)
    damage = verify_store(next(run.glob("solution-*")), progress=False).damage
    assert any("level 3, array" in line and "terminal" in line for line in damage), damage
    assert verify_store(next(masters("grid").glob("solution-*")), progress=False).damage == []


def test_members_of_a_zip_file_that_begin_outside_of_it_are_refused(tmp_path: Path) -> None:
    enumerate_dag(load_world("ice_rink", max_steps=2), store=tmp_path / "dag.zip", progress=False).close()
    data = bytearray((tmp_path / "dag.zip").read_bytes())
    end = data.rindex(b"PK\x05\x06")
    data[end + 16 : end + 20] = (2**31 - 1).to_bytes(4, "little")
    (tmp_path / "dag.zip").write_bytes(data)
    with pytest.raises(DamagedStoreError, match="its list of members cannot be read"):
        open_dag(tmp_path / "dag.zip")


def test_a_solution_of_other_sizes_than_its_dag_is_noticed(masters: Callable[[str], Path], tmp_path: Path) -> None:
    run = Path(shutil.copytree(masters("grid"), tmp_path / "run"))
    shutil.rmtree(run / "dag")
    enumerate_dag(load_world("ice_rink", max_steps=2), store=run / "dag", progress=False).close()
    damage = verify_store(next(run.glob("solution-*")), progress=False).damage
    assert any("its levels have other sizes than those of the DAG beside it" in line for line in damage), damage


def test_a_reward_that_is_not_finite_is_refused(masters: Callable[[str], Path], tmp_path: Path) -> None:
    files = tree_of(masters("grid"))
    name = next(key for key in files if "/level_00001/xh/zarr.json" in key).removesuffix("/zarr.json")
    power = array_of(files, name)
    power[0] = 5e-324
    put_array(files, name, power)
    put_tree(files, tmp_path / "run")
    with pytest.raises(DamagedStoreError, match="a reward is infinite"):
        open_solution(tmp_path / "run").values.U_r[1]
