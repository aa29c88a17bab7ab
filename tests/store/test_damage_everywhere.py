"""All kinds of damage at all kinds of places: it is named, nothing is misread, and what is not damaged stays readable."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from store_tools import assert_same_dags, assert_same_level, assert_same_trees, enumerated, environment, tree, world_of

from empo_bi import DamagedStoreError, EmpoError, StoreError, StoreMismatchError, TooManyStatesError, open_dag
from empo_bi.cli import cli
from empo_bi.store import compression as encoded

STEPS = 3
LEVEL = 2  # the one that is damaged


@pytest.fixture(scope="module", params=[True, False], ids=["compressed", "not compressed"])
def masters(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with undamaged stores, by the name of the world; their chunks are small, so that arrays have several."""
    folder = tmp_path_factory.mktemp("masters")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoded, "CHUNK_BYTES", 200)
        for kind in ("ice_rink", "leaps", "drift"):
            enumerated(kind, STEPS, folder / kind, compression=request.param)
    return folder


# --- one thing at a time ----------------------------------------------------------------------------------------------


def flip(path: Path, place: float) -> None:
    """Change one byte, given as a fraction of the file."""
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] ^= 0x10
    path.write_bytes(data)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def remove(path: Path) -> None:
    assert path.exists()
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def last_chunk(array: Path) -> Path:
    return sorted(path for path in (array / "c").rglob("*") if path.is_file())[-1]


# By name: what is done to an array's folder.
ARRAY_DAMAGE: dict[str, Callable[[Path], object]] = {
    "a truncated chunk": lambda array: truncate(last_chunk(array)),
    "an empty chunk": lambda array: last_chunk(array).write_bytes(b""),
    "a chunk with other bytes at its end": lambda array: last_chunk(array).open("ab").write(b"more"),
    "a flipped first byte": lambda array: flip(last_chunk(array), 0),
    "a flipped byte in the middle": lambda array: flip(last_chunk(array), 0.5),
    "a flipped last byte": lambda array: flip(last_chunk(array), 1),
    "a deleted chunk": lambda array: remove(last_chunk(array)),
    "no chunks": lambda array: remove(array / "c"),
    "a chunk of another array": lambda array: shutil.copy(
        last_chunk(array.with_name("prob" if array.name == "succ" else "succ")), last_chunk(array)
    ),
    "a chunk of the level before": lambda array: shutil.copy(
        last_chunk(array.parents[1] / f"level_{LEVEL - 1:05}" / array.name), last_chunk(array)
    ),
    "another type": lambda array: edit(array / "zarr.json", '"data_type": "', '"data_type": "u'),
    "another shape": lambda array: edit(array / "zarr.json", '"shape": [', '"shape": [ 7,'),
    "another codec": lambda array: edit(array / "zarr.json", "crc32c", "crc16c"),
    "garbage for metadata": lambda array: (array / "zarr.json").write_bytes(b"\x00\xff{["),
    "a list for metadata": lambda array: (array / "zarr.json").write_text("[1, 2]"),
    "empty metadata": lambda array: (array / "zarr.json").write_text(""),
    "no metadata": lambda array: remove(array / "zarr.json"),
    "no folder": remove,
}


@pytest.mark.parametrize("name", ["succ", "key"])
@pytest.mark.parametrize("damage", ARRAY_DAMAGE)
def test_a_damaged_array_is_named_and_levels_before_it_stay_readable(
    damage: str, name: str, masters: Path, tmp_path: Path
) -> None:
    shutil.copytree(masters / "ice_rink", tmp_path / "store")
    ARRAY_DAMAGE[damage](tmp_path / "store" / f"level_{LEVEL:05}" / name)
    expected, dag = open_dag(masters / "ice_rink"), open_dag(tmp_path / "store")
    for t in range(LEVEL):
        assert_same_level(dag, expected, t, states=False)
    with pytest.raises(DamagedStoreError, match=rf"level {LEVEL}, array '{name}'"):
        dag.level(LEVEL)
    # Bodies are shared, so what is known of level 2 is needed for level 3 as well.
    with pytest.raises(DamagedStoreError, match=rf"level {LEVEL}, array '{name}'"):
        dag.level(LEVEL + 1)
    found = CliRunner().invoke(cli, ["verify", str(tmp_path / "store")])
    assert found.exit_code == 1
    (line,) = [line for line in found.output.splitlines() if "level" in line and "array '" in line]
    assert f"level {LEVEL}, array '{name}'" in line
    assert "1 problem found" in found.output


@pytest.mark.parametrize(("kind", "name"), [("ice_rink", "key"), ("drift", "states")])
def test_states_of_levels_before_a_damaged_one_stay_readable(kind: str, name: str, masters: Path, tmp_path: Path) -> None:
    shutil.copytree(masters / kind, tmp_path / "store")
    flip(last_chunk(tmp_path / "store" / f"level_{LEVEL:05}" / name), 0.5)
    dag, expected = open_dag(tmp_path / "store"), open_dag(masters / kind)
    assert [dag.states(t) for t in range(LEVEL)] == [expected.states(t) for t in range(LEVEL)]


@pytest.mark.parametrize("damage", ["a truncated chunk", "a flipped byte in the middle", "a deleted chunk", "no folder"])
def test_where_bodies_are_not_shared_all_other_levels_stay_readable(damage: str, masters: Path, tmp_path: Path) -> None:
    shutil.copytree(masters / "leaps", tmp_path / "store")
    ARRAY_DAMAGE[damage](tmp_path / "store" / f"level_{LEVEL - 1:05}" / "succ")
    world, _ = world_of("leaps", STEPS)
    expected, dag = open_dag(masters / "leaps", world=world), open_dag(tmp_path / "store", world=world)
    with pytest.raises(DamagedStoreError, match=rf"level {LEVEL - 1}, array 'succ'"):
        dag.level(LEVEL - 1)
    for t in set(range(STEPS + 1)) - {LEVEL - 1}:
        assert dag.level(t).succ_K.tolist() == expected.level(t).succ_K.tolist()


def test_every_problem_is_listed_and_intact_stores_have_none(masters: Path, tmp_path: Path) -> None:
    for kind in ("ice_rink", "leaps", "drift"):
        found = CliRunner().invoke(cli, ["verify", str(masters / kind)])
        assert found.exit_code == 0, found.output
        assert "all checksums agree" in found.output
    shutil.copytree(masters / "ice_rink", tmp_path / "store")
    for t, name in ((0, "key"), (1, "succ"), (3, "attained")):
        flip(last_chunk(tmp_path / "store" / f"level_{t:05}" / name), 0.5)
    remove(tmp_path / "store" / "level_00002")
    found = CliRunner().invoke(cli, ["verify", str(tmp_path / "store")])
    assert found.exit_code == 1
    for what in ("level 0, array 'key'", "level 1, array 'succ'", "level 3, array 'attained'"):
        assert sum(what in line for line in found.output.splitlines()) == 1
    assert sum("level 2" in line for line in found.output.splitlines()) >= 5  # marker and arrays
    assert "level 0, array 'succ'" not in found.output


# --- markers and manifest ---------------------------------------------------------------------------------------------

RECORD_DAMAGE: dict[str, Callable[[Path], object]] = {
    "no record": lambda record: record.unlink(),
    "garbage": lambda record: record.write_bytes(b"\x00\xff{["),
    "half a record": truncate,
    "nothing in it": lambda record: record.write_text(""),
    "a list": lambda record: record.write_text("[]"),
    "attributes that are no object": lambda record: edit(record, '"empo_bi": {', '"empo_bi": 1, "other": {'),
    "another number": lambda record: edit(record, '"n_transitions": ', '"n_transitions": 1'),
    "another range": lambda record: edit(record, '"members": [', '"members": [ 1,'),
    "another checksum": lambda record: edit(record, '"crc32": "', '"crc32": "0'),
    "another name of a field": lambda record: edit(record, '"arrays"', '"array"'),
}


@pytest.mark.parametrize("damage", RECORD_DAMAGE)
def test_a_damaged_marker_is_found_by_verify_and_nothing_is_misread(damage: str, masters: Path, tmp_path: Path) -> None:
    shutil.copytree(masters / "ice_rink", tmp_path / "store")
    RECORD_DAMAGE[damage](tmp_path / "store" / f"level_{LEVEL:05}" / "zarr.json")
    # A finished store has all markers in one place, so that reading needs no others.
    assert_same_dags(open_dag(tmp_path / "store"), open_dag(masters / "ice_rink"))
    found = CliRunner().invoke(cli, ["verify", str(tmp_path / "store")])
    assert found.exit_code == 1
    assert sum(f"level {LEVEL}" in line for line in found.output.splitlines()) == 1, found.output
    assert "1 problem found" in found.output


@pytest.mark.parametrize("damage", RECORD_DAMAGE)
def test_a_damaged_marker_of_an_unfinished_store_hides_the_level_or_is_named(damage: str, tmp_path: Path) -> None:
    unfinished(tmp_path / "store")
    dag = open_dag(tmp_path / "store")
    n_levels = dag.horizon + 1
    assert n_levels > LEVEL
    RECORD_DAMAGE[damage](tmp_path / "store" / f"level_{LEVEL:05}" / "zarr.json")
    before = tree(tmp_path / "store")
    try:
        assert_same_dags(open_dag(tmp_path / "store"), dag, LEVEL)
    except DamagedStoreError as error:
        assert f"level {LEVEL}" in str(error)  # noqa: PT017 (it need not be raised)
    found = CliRunner().invoke(cli, ["verify", str(tmp_path / "store")])
    assert found.exit_code == 1 or f"{LEVEL} levels (unfinished" in found.output
    # Levels after it are known to nobody but have been computed; a run that cannot continue must not remove them.
    with pytest.raises(DamagedStoreError):
        enumerated("ice_rink", 6, tmp_path / "store")
    assert tree(tmp_path / "store") == before


@pytest.mark.parametrize("damage", RECORD_DAMAGE)
def test_a_damaged_list_of_markers_is_an_error_or_does_no_harm(damage: str, masters: Path, tmp_path: Path) -> None:
    shutil.copytree(masters / "ice_rink", tmp_path / "store")
    RECORD_DAMAGE[damage](tmp_path / "store" / "finished" / "zarr.json")
    found = CliRunner().invoke(cli, ["verify", str(tmp_path / "store")])
    try:
        # Without it, the store is as if the run had been killed just before its end.
        dag = open_dag(tmp_path / "store")
        assert not dag.is_finished
        assert_same_dags(dag, open_dag(masters / "ice_rink"))
        assert found.exit_code == 0
        assert "unfinished" in found.output
    except DamagedStoreError as error:
        assert "finished" in str(error)  # noqa: PT017 (it need not be raised)
        assert found.exit_code == 1


ROOT_DAMAGE: dict[str, tuple[Callable[[Path], object], type[StoreError], str]] = {
    "garbage": (lambda root: root.write_bytes(b"\x00\xff{["), DamagedStoreError, "metadata of the store"),
    "half of it": (truncate, DamagedStoreError, "metadata of the store"),
    "another number of profiles": (
        lambda root: edit(root, '"n_profiles": ', '"n_profiles": 1'),
        DamagedStoreError,
        "metadata of the store",
    ),
    "another map": (lambda root: edit(root, "We", "Wa"), DamagedStoreError, "metadata of the store"),
    "a later version": (
        lambda root: edit(root, '"version": 1', '"version": 2'),
        StoreMismatchError,
        "version 2 of the format, this empo_bi reads version 1",
    ),
    "another format": (lambda root: edit(root, '"empo_bi DAG"', '"other DAG"'), StoreMismatchError, "not a slice store"),
    "another zarr group": (
        lambda root: root.write_text('{"zarr_format": 3, "node_type": "group", "attributes": {}}'),
        StoreMismatchError,
        "not a slice store",
    ),
}


@pytest.mark.parametrize("damage", ROOT_DAMAGE)
def test_a_damaged_manifest_is_an_error_of_the_right_kind_everywhere(damage: str, masters: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(masters / "ice_rink", store)
    spoil, kind, message = ROOT_DAMAGE[damage]
    spoil(store / "zarr.json")
    before = tree(store)
    with pytest.raises(kind, match=message):
        open_dag(store)
    with pytest.raises(kind, match=message):
        enumerated("ice_rink", STEPS, store)
    assert tree(store) == before
    found = CliRunner().invoke(cli, ["verify", str(store)])
    # A later version, or somebody else's group, is no damage: those come as errors.
    assert found.exit_code == (1 if issubclass(kind, DamagedStoreError) else 2)
    assert message in found.output


def test_the_command_says_what_is_damaged_without_a_traceback(tmp_path: Path) -> None:
    def verify(name: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "empo_bi", "verify", str(tmp_path / name)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment())

    for name in ("intact", "chunk", "root", "version"):
        enumerated("ice_rink", 2, tmp_path / name)
    flip(last_chunk(tmp_path / "chunk" / "level_00001" / "succ"), 0.5)
    (tmp_path / "root" / "zarr.json").write_text("garbage")
    edit(tmp_path / "version" / "zarr.json", '"version": 1', '"version": 2')
    found = {name: verify(name) for name in ("intact", "chunk", "root", "version", "nothing")}
    assert {name: process.returncode for name, process in found.items()} == {
        "intact": 0,
        "chunk": 1,
        "root": 1,  # it is damaged, as the command's help has it
        "version": 2,
        "nothing": 2,
    }
    assert "level 1, array 'succ'" in found["chunk"].stdout
    assert "version 2 of the format" in found["version"].stderr
    assert "no such folder" in found["nothing"].stderr
    assert not any("Traceback" in process.stderr for process in found.values())


# --- mending ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spoil",
    [
        lambda store: flip(last_chunk(store / "level_00001" / "succ"), 0.5),
        lambda store: remove(store / "level_00001"),
        lambda store: (store / "level_00001" / "zarr.json").write_text("garbage"),
        lambda store: (store / "finished" / "zarr.json").write_text("garbage"),
        lambda store: (store / "zarr.json").write_text("garbage"),
        lambda store: edit(store / "zarr.json", '"version": 1', '"version": 2'),
        lambda store: remove(store / "zarr.json"),
    ],
    ids=["chunk", "level", "marker", "finished", "manifest", "version", "no manifest"],
)
def test_a_damaged_store_is_made_anew_with_overwrite(spoil: Callable[[Path], object], tmp_path: Path) -> None:
    for name in ("whole", "store"):
        enumerated("ice_rink", 2, tmp_path / name)
    spoil(tmp_path / "store")
    enumerated("ice_rink", 2, tmp_path / "store", overwrite=True)
    assert_same_trees(tmp_path / "store", tmp_path / "whole")


@pytest.mark.parametrize(
    "damage", ["a truncated chunk", "a flipped byte in the middle", "garbage for metadata", "no folder"]
)
def test_a_run_does_not_continue_from_a_damaged_frontier(damage: str, tmp_path: Path) -> None:
    unfinished(tmp_path / "store")
    (group,) = (tmp_path / "store").glob("frontier_*/0")
    ARRAY_DAMAGE[damage](group / "key")
    with pytest.raises(DamagedStoreError, match=rf"group {group.parent.name}/0, array 'key'"):
        enumerated("ice_rink", 6, tmp_path / "store")
    assert open_dag(tmp_path / "store").horizon >= LEVEL


def unfinished(store: Path) -> None:
    """The first levels of a run that was stopped."""
    with pytest.raises(TooManyStatesError):
        enumerated("ice_rink", 6, store, max_states=500)


# --- any byte ---------------------------------------------------------------------------------------------------------


@dataclass
class Specimen:
    """A store whose files are damaged one after the other, and what it says when it is whole."""

    kind: str
    store: Path
    steps: int = STEPS

    def __post_init__(self) -> None:
        self.world = None if self.kind == "ice_rink" else world_of(self.kind, self.steps)[0]
        self.whole = open_dag(self.store, world=self.world)
        for t in range(self.whole.horizon + 1):
            self.whole.level(t), self.whole.states(t)

    def misread(self) -> str | None:
        """What is wrong with how the store is read now: other numbers than before, or another error than is fair."""
        try:
            dag = open_dag(self.store, world=self.world)
            if dag.is_finished and not self.whole.is_finished:
                return "taken for finished"
            if dag.horizon != self.whole.horizon and self.whole.is_finished:
                return f"{dag.horizon + 1} levels"
        except EmpoError:
            return None
        except Exception as error:
            return f"open_dag: {error!r}"
        for t in range(dag.horizon + 1):
            try:
                assert_same_level(dag, self.whole, t)
                assert dag.level_values[t] == self.whole.level_values[t]
                assert dag.level_sizes[t] == self.whole.level_sizes[t]
            except EmpoError:
                continue
            except Exception as error:
                return f"level {t}: {error!r}"
        return None

    def after_changing(self, path: Path, place: int, mask: int) -> str | None:
        """:meth:`misread`, with some bits of one byte flipped meanwhile."""
        intact = path.read_bytes()
        changed = bytearray(intact)
        changed[place] ^= mask
        path.write_bytes(changed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                problem = self.misread()
        finally:
            path.write_bytes(intact)
        if problem is None:
            return None
        name = path.relative_to(self.store).as_posix() if path != self.store else path.name
        around = intact[max(0, place - 20) : place + 20]
        return f"{name}, byte {place} ^ {mask:#04x}, at {around!r}: {problem}"


@pytest.mark.parametrize("kind", ["ice_rink", "leaps", "drift"])
def test_whatever_byte_is_changed_no_other_numbers_are_read(kind: str, masters: Path, tmp_path: Path) -> None:
    shutil.copytree(masters / kind, tmp_path / "store")
    specimen, rng = Specimen(kind, tmp_path / "store"), random.Random(kind)
    files = [path for path in sorted((tmp_path / "store").rglob("*")) if path.is_file()]
    # Half of the changes go where there are no checksums of zarr's own.
    records = [path for path in files if path.parent.name in ("store", "finished")]
    problems = []
    for i in range(60):
        path = rng.choice(files if i % 2 else records)
        problems.append(specimen.after_changing(path, rng.randrange(path.stat().st_size), 1 << rng.randrange(8)))
    assert not any(problems), "\n".join(filter(None, problems))


def test_whatever_byte_of_an_unfinished_store_is_changed_no_other_numbers_are_read(tmp_path: Path) -> None:
    unfinished(tmp_path / "store")
    specimen, rng = Specimen("ice_rink", tmp_path / "store"), random.Random(1)
    files = [path for path in sorted((tmp_path / "store").rglob("*")) if path.is_file()]
    problems = []
    for _ in range(60):
        path = rng.choice(files)
        problems.append(specimen.after_changing(path, rng.randrange(path.stat().st_size), 1 << rng.randrange(8)))
    assert not any(problems), "\n".join(filter(None, problems))


def test_whatever_byte_of_a_zip_file_is_changed_no_other_numbers_are_read(tmp_path: Path) -> None:
    store = tmp_path / "store.zip"
    enumerated("leaps", STEPS, store)
    specimen, rng = Specimen("leaps", store), random.Random(2)
    with zipfile.ZipFile(store) as packed:
        listing = packed.start_dir
    size = store.stat().st_size
    problems = []
    for i in range(120):
        place = rng.randrange(listing, size) if i % 2 else rng.randrange(size)
        problems.append(specimen.after_changing(store, place, 1 << rng.randrange(8)))
    assert not any(problems), "\n".join(filter(None, problems))


@pytest.mark.parametrize("part", [0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_zip_file_is_an_error_that_names_it(part: float, tmp_path: Path) -> None:
    store = tmp_path / "store.zip"
    enumerated("ice_rink", 2, store)
    store.write_bytes(store.read_bytes()[: int(part * store.stat().st_size)])
    before = store.read_bytes()
    with pytest.raises(StoreError, match=r"store\.zip"):
        open_dag(store)
    with pytest.raises(StoreError, match=r"store\.zip"):
        enumerated("ice_rink", 2, store)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"store.zip": before}
    found = CliRunner().invoke(cli, ["verify", str(store)])
    assert found.exit_code == 1
    with pytest.raises(StoreError, match="remove it yourself"):  # it might be anybody's
        enumerated("ice_rink", 2, store, overwrite=True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ice_rink", "leaps", "drift"])
def test_whatever_byte_of_any_file_is_changed_no_other_numbers_are_read(kind: str, tmp_path: Path) -> None:
    enumerated(kind, 2, tmp_path / "store")
    specimen, rng = Specimen(kind, tmp_path / "store", steps=2), random.Random(kind)
    problems = []
    for path in [path for path in sorted((tmp_path / "store").rglob("*")) if path.is_file()]:
        places = range(0, path.stat().st_size, 3)
        problems += [specimen.after_changing(path, place, 1 << rng.randrange(8)) for place in places]
    assert not any(problems), "\n".join(filter(None, problems))
