"""docs/format.md is true: a reader written from it alone finds in a store what ``open_dag`` finds and the oracle says."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray
from engine import GRIDWORLDS, load_quietly
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import storereader
from oracle.gridworld import parse
from oracle.keyreader import KeyReader
from oracle.storereader import FormatError, Level, StoreReader
from random_worlds import random_worlds
from zarr.storage import ZipStore

from empo_bi import (
    Dag,
    PossibleGoal,
    TabularGoalGenerator,
    TooManyStatesError,
    enumerate_dag,
    load_world,
    open_dag,
)

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")


# --- worlds with everything that a store may contain ------------------------------------------------------------------


class IsAt(PossibleGoal):
    """The state's last element is the given one, at an even step."""

    def __init__(self, cell: int) -> None:
        super().__init__()
        self.cell = cell

    def is_achieved(self, state: Any) -> int:
        return int(state[-1] == self.cell and state[0] % 2 == 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IsAt) and other.cell == self.cell

    def __hash__(self) -> int:
        return hash(self.cell)


class EvenStep(PossibleGoal):
    """A goal that looks at the step of a gridworld's state, so that its bits belong to states, not to bodies."""

    def is_achieved(self, state: Any) -> int:
        return int(state[0] % 2 == 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EvenStep)

    def __hash__(self) -> int:
        return 0


class PythonWorld:
    """Two agents, of which agent 1 is a human with nine goals; ``(step, text, cell)``, from cell 0."""

    n_agents = 2
    action_space = SimpleNamespace(n=2)
    human_agent_indices = (1,)

    def __init__(self) -> None:
        self.possible_goal_generator = TabularGoalGenerator([IsAt(cell) for cell in range(9)])

    def initial_state(self) -> Any:
        return (0, 'a "text",\n\u2028 ä ☕', 0)


class Stairs(PythonWorld):
    """Every step goes up by one or, with probability 0.3, by three; some states are the end of it."""

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, text, cell = state
        if step >= 7 or (step, cell) == (2, 1):
            return None
        low, high = (cell + actions[0]) % 5, (cell + 1 + actions[1]) % 5
        if actions == [0, 0]:
            return [(1.0, (step + 1, text, low))]
        return [(0.7, (step + 1, text, low)), (0.3, (step + 3, None, high))]


class Circle(PythonWorld):
    """Time-homogeneous, on eleven cells. No cell is for ever terminal: it depends on the step, and cell 3 begins so."""

    time_homogeneous = True

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, text, cell = state
        if step == 9 or (step + cell) % 4 == 0 != cell or (step, cell) == (2, 3):
            return None
        return [(1 / 7, (step + 1, text, cell)), (6 / 7, (step + 1, text, (cell + 1 + sum(actions)) % 11))]


class Coded(Stairs):
    """States that JSON has no words for."""

    def initial_state(self) -> Any:
        return (0, frozenset({1}), 0)

    def encode_state(self, state: Any) -> Any:
        return [state[0], None if state[1] is None else sorted(state[1]), state[2]]

    def decode_state(self, value: Any) -> Any:
        return (value[0], None if value[1] is None else frozenset(value[1]), value[2])


def with_a_goal_that_looks_at_the_step() -> Any:
    world = load_world("ice_rink", max_steps=3)
    world.possible_goal_generator = TabularGoalGenerator([EvenStep(), *world.possible_goal_generator.goals_of(0)])
    return world


WORLDS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "asymmetric_freeing": (lambda: load_world("asymmetric_freeing", max_steps=5), {}),
    "carousel, where levels are not nested": (lambda: load_world("carousel", max_steps=6), {}),
    "ice_rink, which is stochastic": (lambda: load_world("ice_rink", max_steps=4), {}),
    "a gridworld with goals per state": (with_a_goal_that_looks_at_the_step, {}),
    "a gridworld without goals": (lambda: load_quietly("first_steps", possible_goals=[], max_steps=9), {}),
    "levels that skip some": (Stairs, {"level_fct": lambda state: 10 * state[0] - 25}),
    "derived levels": (Stairs, {}),
    "shared bodies": (Circle, {}),
}
# Where a store is, its precision and its compression.
VARIANTS = [
    pytest.param("dag", "float16", True, id="float16, folder"),
    pytest.param("dag", "float32", False, id="float32, folder, not compressed"),
    pytest.param("dag.zip", "float16", False, id="float16, zip, not compressed"),
    pytest.param("dag.zip", "float64", "lz4", id="float64, zip"),
]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A store of each world, to be read only."""
    folder = tmp_path_factory.mktemp("stores")
    paths = {name: folder / str(i) / "dag" for i, name in enumerate(WORLDS)}
    for name, (make, options) in WORLDS.items():
        enumerate_dag(make(), store=paths[name], progress=False, **options).close()
    return paths


def entries_of(level: Level) -> tuple[list[list[int]], list[int], list[float]]:
    """Counts, successors and probabilities as ``LevelSlice`` has them."""
    counts = [[len(row) for row in rows] for rows in level.transitions]
    entries = [entry for rows in level.transitions for row in rows for entry in row]
    return counts, [body for body, _ in entries], [probability for _, probability in entries]


def states_of(level: Level, world: Any) -> list[Any]:
    """A level's states as the world has them: here, at the very end, keys are decoded."""
    if level.keys is None:
        return list(level.states or ())
    return list(world.decode(level.value, np.array(level.keys, dtype=np.uint64)))


def assert_same(reader: StoreReader, dag: Dag, world: Any) -> None:
    assert len(reader) == dag.horizon + 1
    assert reader.is_finished == dag.is_finished
    for t, level in enumerate(reader):
        expected = dag.level(t)
        counts, succ, prob = entries_of(level)
        assert (level.number, level.value) == (t, dag.level_values[t])
        assert level.bodies == expected.body_S.tolist()
        assert counts == expected.count_SJ.tolist()
        assert succ == expected.succ_K.tolist()
        assert prob == pytest.approx(expected.prob_K.tolist(), rel=1e-14, abs=0)
        assert level.ended == (expected.count_SJ.sum(axis=1) == 0).tolist()
        assert states_of(level, world) == dag.states(t)
        assert (level.attained is None) == (expected.attained_SHG is None)
        assert level.attained is None or np.array_equal(level.attained, expected.attained_SHG)


# --- the reader and open_dag ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "precision", "compression"), VARIANTS)
@pytest.mark.parametrize("kind", WORLDS)
def test_a_reader_written_from_the_page_finds_what_open_dag_finds_and_what_was_in_memory(
    kind: str, name: str, precision: str, compression: Any, tmp_path: Path
) -> None:
    make, options = WORLDS[kind]
    world, options = make(), {"precision": precision, "progress": False, **options}
    enumerate_dag(world, store=tmp_path / name, compression=compression, **options).close()
    reader = StoreReader(tmp_path / name)
    assert {marker["arrays"]["prob"]["dtype"] for marker in reader.markers if "prob" in marker["arrays"]} <= {precision}
    assert reader.is_compressed() == bool(compression)
    with open_dag(tmp_path / name) as dag:
        assert_same(reader, dag, world)
    assert_same(reader, enumerate_dag(world, **options), world)


def test_the_worlds_of_these_tests_have_everything_that_a_store_may_contain(stores: dict[str, Path]) -> None:
    markers, manifests = [], []
    for reader in map(StoreReader, stores.values()):
        manifests.append(reader.manifest)
        markers += [(reader.shares_bodies, marker) for marker in reader.markers]
    assert {name for _, marker in markers for name in marker["arrays"]} == set(storereader.ARRAYS) - {"added"}
    assert {marker["added"] for _, marker in markers if isinstance(marker["added"], str)} == {"members"}
    assert {str(marker["ended"]) for _, marker in markers} == {"True", "False", "array"}
    assert {(shares, marker["attained_by_body"]) for shares, marker in markers if "attained" in marker["arrays"]} == {
        (True, True), (True, False), (False, False),
    }  # fmt: skip
    assert any(marker["n_bodies"] == 0 for _, marker in markers)
    assert any("succ" in marker["arrays"] and "prob" not in marker["arrays"] for _, marker in markers)
    assert any(marker["arrays"]["ended"]["shape"] == [2] for _, marker in markers if marker["ended"] == "array")
    assert {(m["world"] is None, m["goals"] is None) for m in manifests} == {(False, False), (False, True), (True, False)}


def test_a_body_that_ends_where_it_is_added_has_its_transitions_in_a_later_slice(stores: dict[str, Path]) -> None:
    reader = StoreReader(stores["shared bodies"])
    levels = list(reader)
    (added,) = [t for t, piece in enumerate(reader.slices) for b in piece.added if levels[t].states[b][-1] == 3]
    body = reader.slices[added].added[[state[-1] for state in reader.slices[added].states()].index(3)]
    (expanded,) = [t for t, piece in enumerate(reader.slices) if body in piece.expanded]
    assert levels[added].ended[levels[added].bodies.index(body)]
    assert added < expanded
    assert not levels[expanded].ended[levels[expanded].bodies.index(body)]


@pytest.mark.parametrize("kind", WORLDS)
def test_the_successors_of_a_state_are_on_the_next_level_or_on_a_higher_one(kind: str, stores: dict[str, Path]) -> None:
    reader = StoreReader(stores[kind])
    levels = list(reader)
    for t, level in enumerate(levels):
        above = levels[t + 1 : t + 2] if reader.shares_bodies else levels[t + 1 :]
        assert set(entries_of(level)[1]) <= {body for other in above for body in other.bodies}


def test_values_of_levels_and_successors_that_skip_some_are_in_the_store(stores: dict[str, Path]) -> None:
    reader = StoreReader(stores["levels that skip some"])
    assert [level.value for level in reader] == [10 * step - 25 for step in range(10)]
    (jump,) = {state for level in reader for state in level.states if state[0] == 3 and state[1] is None and state[2] == 1}
    first, third = reader.level(0), reader.level(3)
    bodies = {body for rows in first.transitions for row in rows for body, _ in row}
    assert third.bodies[third.states.index(jump)] in bodies


def test_states_that_the_world_encodes_are_read_as_it_encoded_them(tmp_path: Path) -> None:
    world = Coded()
    dag = enumerate_dag(world, store=tmp_path / "dag", progress=False)
    for t, level in enumerate(StoreReader(tmp_path / "dag")):
        assert [world.decode_state(value) for value in level.states] == dag.states(t)
    with open_dag(tmp_path / "dag") as plain:
        assert plain.states(0) == [(0, (1,), 0)] == StoreReader(tmp_path / "dag").level(0).states


# --- the oracle -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "steps"), [("asymmetric_freeing", 2), ("carousel", 6), ("ice_rink", 3), ("locked_in", 2)])
def test_what_is_stored_of_a_gridworld_is_what_the_oracle_says(name: str, steps: int, tmp_path: Path) -> None:
    """The oracle, too, has the world from the store alone."""
    world = load_world(name, max_steps=steps)
    enumerate_dag(world, store=tmp_path / "dag", precision="float64", progress=False).close()
    reader = StoreReader(tmp_path / "dag")
    oracle = parse(reader.manifest["world"])
    levels = list(reader)
    states = [dict(zip(level.bodies, states_of(level, world), strict=True)) for level in levels]
    assert list(states[0].values()) == [oracle.initial_state()]
    assert reader.n_profiles == oracle.n_actions**oracle.n_agents
    assert reader.manifest["humans"] == oracle.humans
    for t, level in enumerate(levels):
        for s, state in enumerate(states[t].values()):
            for j, profile in enumerate(oracle.profiles()):
                expected = oracle.transitions(state, profile)
                found = {states[t + 1][body]: probability for body, probability in level.transitions[s][j]}
                assert len(found) == len(level.transitions[s][j])
                assert found == pytest.approx({s: float(p) for s, p in (expected or {}).items()}, abs=1e-15)
            assert level.ended[s] == (expected is None)
            attained = [[oracle.achieved(state, human, goal) for goal in oracle.goals] for human in oracle.humans]
            assert level.attained[s].tolist() == attained
        assert t == steps or set(entries_of(level)[1]) == states[t + 1].keys()


@pytest.mark.parametrize("name", GRIDWORLDS)
def test_keys_of_shipped_worlds_are_packed_as_the_page_says(name: str, tmp_path: Path) -> None:
    world = load_world(name, max_steps=2)
    dag = enumerate_dag(world, store=tmp_path / "dag", progress=False)
    reader = StoreReader(tmp_path / "dag")
    keys = KeyReader(reader.manifest["world"])
    for t, piece in enumerate(reader.slices):
        found = [keys.state(t, key) for key in piece.keys() or ()]
        everybody = dict(zip(piece.members, dag.states(t), strict=True))
        assert found == [everybody[body] for body in piece.added]


@settings(max_examples=40, deadline=None)
@given(mapping=random_worlds(max_agents=3, max_steps=1))
def test_keys_of_random_worlds_are_packed_as_the_page_says(
    mapping: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("dag")
    dag = enumerate_dag(load_quietly(mapping), store=path, progress=False)
    reader = StoreReader(path)
    keys = KeyReader(reader.manifest["world"])
    for t in range(len(reader)):
        assert [keys.state(t, key) for key in reader.level(t).keys or ()] == dag.states(t)


def test_a_key_of_two_words_is_packed_as_the_page_says(tmp_path: Path) -> None:
    floor = ["We" + " .." * 8 + " We"] * 8
    rows = ["We " * 9 + "We", "We Ay .. Bl Bl Bl Bl Bl Bl We", "We Bl .. Bl Bl Bl Ro Ro Ae We", *floor, "We " * 9 + "We"]
    dag = enumerate_dag(load_quietly({"map": rows, "max_steps": 2}), store=tmp_path / "dag", progress=False)
    reader = StoreReader(tmp_path / "dag")
    keys = KeyReader(reader.manifest["world"])
    assert len(reader.level(0).keys[0]) == 2
    assert [keys.state(2, key) for key in reader.level(2).keys] == dag.states(2)


# --- probabilities ----------------------------------------------------------------------------------------------------


class Draw(PythonWorld):
    """One draw, with the given probabilities."""

    human_agent_indices = ()

    def __init__(self, probabilities: list[float]) -> None:
        self.probabilities = probabilities

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return [(p, (1, "", i)) for i, p in enumerate(self.probabilities)] if state[0] == 0 else None


@settings(max_examples=40, deadline=None)
@given(weights=st.lists(st.floats(1e-9, 1.0), min_size=2, max_size=7), precision=st.sampled_from(storereader.FLOATS))
def test_probabilities_keep_the_precision_that_the_page_promises(
    weights: list[float], precision: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    exact = [weight / math.fsum(weights) for weight in weights]
    path = tmp_path_factory.mktemp("dag")
    enumerate_dag(Draw(exact), store=path, precision=precision, progress=False).close()
    level = StoreReader(path).level(0)
    unit = {"float16": 2**-11, "float32": 2**-24, "float64": 2**-52}[precision]
    for row in level.transitions[0]:
        assert [p for _, p in row] == pytest.approx(exact, rel=2 * unit / (1 - unit) + 1e-14, abs=0)
        assert math.fsum(p for _, p in row) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize(
    ("smallest", "expected"), [(1e-4, "float16"), (2**-14, "float16"), (6e-5, "float32"), (1e-40, "float64")]
)
def test_a_level_with_small_probabilities_takes_a_wider_type(smallest: float, expected: str, tmp_path: Path) -> None:
    enumerate_dag(Draw([smallest, 1 - smallest]), store=tmp_path / "dag", progress=False).close()
    reader = StoreReader(tmp_path / "dag")
    assert reader.markers[0]["arrays"]["prob"]["dtype"] == expected
    assert reader.level(0).transitions[0][0][0][1] == pytest.approx(smallest, rel=2**-10)


# --- unfinished and damaged stores ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["dag", "dag.zip"])
def test_of_an_unfinished_store_the_committed_levels_and_the_frontier_are_read(name: str, tmp_path: Path) -> None:
    world = load_world("carousel", max_steps=6)
    with pytest.raises(TooManyStatesError):
        enumerate_dag(world, store=tmp_path / name, max_states=300, progress=False)
    folder = tmp_path / ("dag.zip.building" if name.endswith(".zip") else name)
    reader = StoreReader(folder)
    assert (reader.is_finished, len(reader)) == (False, 4)
    with open_dag(tmp_path / name) as dag:
        assert_same(reader, dag, world)
    (piece,) = reader.frontier()
    whole = enumerate_dag(world, progress=False).level(4)
    assert (piece.marker["value"], piece.members) == (4, whole.body_S.tolist())
    assert piece.added == list(range(reader.slices[-1].added[-1] + 1, max(piece.members) + 1))
    assert (piece.expanded, len(piece.keys())) == ([], len(piece.added))
    # What has no marker does not count, whatever else is there.
    marker = json.loads((folder / "level_00003" / "zarr.json").read_text())
    (folder / "level_00003" / "zarr.json").write_text(json.dumps({**marker, "attributes": {}}))
    (folder / "finished").mkdir()
    (folder / "finished" / "zarr.json").write_text(json.dumps({**marker, "attributes": {}}))
    assert (StoreReader(folder).is_finished, len(StoreReader(folder))) == (False, 3)
    assert (open_dag(tmp_path / name).is_finished, open_dag(tmp_path / name).horizon) == (False, 2)


def test_a_frontier_of_several_levels_is_read(tmp_path: Path) -> None:
    make, options = WORLDS["levels that skip some"]
    with pytest.raises(TooManyStatesError):
        enumerate_dag(make(), store=tmp_path / "dag", max_states=20, progress=False, **options)
    reader = StoreReader(tmp_path / "dag")
    last, ahead = reader.markers[-1]["value"], reader.frontier()
    assert [piece.marker["value"] for piece in ahead] == [last + 10, last + 20, last + 30]
    assert all({10 * state[0] - 25 for state in piece.states()} == {piece.marker["value"]} for piece in ahead)
    known = {body for piece in [*reader.slices, *ahead] for body in piece.added}
    assert {body for level in reader for body in entries_of(level)[1]} <= known == set(range(len(known)))


@pytest.mark.parametrize("kind", WORLDS)
def test_a_finished_store_has_no_frontier_and_no_lock(kind: str, stores: dict[str, Path]) -> None:
    reader = StoreReader(stores[kind])
    assert set(reader.root.group_keys()) == {"finished", *(f"level_{t:05}" for t in range(len(reader)))}
    assert [path.name for path in stores[kind].parent.iterdir()] == ["dag"]


def test_a_changed_or_missing_chunk_is_noticed(tmp_path: Path) -> None:
    for compression in (True, False):
        path = tmp_path / f"dag {compression}"
        enumerate_dag(load_world("ice_rink", max_steps=3), store=path, compression=compression, progress=False).close()
        chunk = path / "level_00002" / "succ" / "c" / "0"
        content = bytearray(chunk.read_bytes())
        content[len(content) // 2] ^= 1
        chunk.write_bytes(content)
        with pytest.raises(ValueError, match=r"checksum"):  # zarr's own, crc32c of the chunk
            StoreReader(path).level(2)
        chunk.unlink()
        with pytest.raises(FormatError, match=r"level_00002/succ: checksum"):
            StoreReader(path).level(2)
        StoreReader(path).level(1)


def test_a_changed_digit_in_the_metadata_is_noticed(tmp_path: Path) -> None:
    enumerate_dag(load_world("ice_rink", max_steps=3), store=tmp_path / "dag", progress=False).close()
    for group, field in (("", '"n_profiles": 16'), ("level_00002", '"n_states": 99'), ("finished", '"n_states": 99')):
        file = tmp_path / "dag" / group / "zarr.json"
        text = file.read_text()
        assert text.count(field) == 1
        file.write_text(text.replace(field, field[:-1] + "8"))
        with pytest.raises(FormatError, match=r"checksum of the attribute"):
            StoreReader(tmp_path / "dag")
        file.write_text(text)
    StoreReader(tmp_path / "dag")


def test_checksums_of_metadata_with_other_letters_and_small_numbers_agree(tmp_path: Path) -> None:
    mapping = {"map": ["We We We We", "We Ay Un We", "We We We We"], "metadata": {"name": "Café ☕ 𝄞"}, "max_steps": 1}
    world = load_quietly({**mapping, "stumble_probability": 1e-7, "solidify_probability": 1 / 3})
    enumerate_dag(world, store=tmp_path / "dag", progress=False).close()
    assert StoreReader(tmp_path / "dag").manifest["world"]["stumble_probability"] == 1e-7


# --- zarr, xarray and the page ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WORLDS)
def test_xarray_opens_every_level_with_named_dimensions_and_the_same_numbers(kind: str, stores: dict[str, Path]) -> None:
    check_xarray(stores[kind], StoreReader(stores[kind]))


def test_xarray_opens_every_level_of_a_zip_file(tmp_path: Path) -> None:
    path = tmp_path / "dag.zip"
    enumerate_dag(load_world("carousel", max_steps=4), store=path, progress=False).close()
    check_xarray(ZipStore(path, mode="r"), StoreReader(path))


def check_xarray(store: Any, reader: StoreReader) -> None:
    for t, marker in enumerate(reader.markers):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            dataset = xarray.open_zarr(store, group=f"level_{t:05}", consolidated=False)
        assert marker.items() <= dataset.attrs["empo_bi"].items()
        assert set(dataset.variables) == set(marker["arrays"])
        for array in marker["arrays"]:
            expected = reader.slices[t].array(array)
            assert dataset[array].dtype == expected.dtype
            assert np.array_equal(dataset[array].values, expected)
        assert set(dataset.sizes) <= {dimension for dimensions, _ in storereader.ARRAYS.values() for dimension in dimensions}
        sizes = {"state": marker["n_states"], "body": marker["n_bodies"], "row": marker["n_expanded"]}
        sizes |= {"transition": marker["n_transitions"], "profile": reader.n_profiles}
        assert {key: size for key, size in dataset.sizes.items() if key in sizes}.items() <= sizes.items()
        assert sizes.keys() & dataset.sizes.keys() or not marker["arrays"]


def test_chunks_hold_whole_rows_and_at_most_four_mebibytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empo_bi.store.compression.CHUNK_BYTES", 1000)  # as if levels were large
    world = load_world("ice_rink", max_steps=4)
    enumerate_dag(world, store=tmp_path / "dag", progress=False).close()
    reader = StoreReader(tmp_path / "dag")
    arrays = [piece.group[name] for piece in reader.slices for name in piece.marker["arrays"]]
    assert any(array.nchunks > 1 for array in arrays)
    for array in arrays:
        assert array.chunks[1:] == tuple(max(1, n) for n in array.shape[1:])
        assert array.chunks[0] == 1 or math.prod(array.chunks) * array.dtype.itemsize <= 1000
    assert_same(reader, enumerate_dag(world, progress=False), world)


def test_the_page_names_every_field_array_dimension_and_type() -> None:
    fields = storereader.MANIFEST_FIELDS | storereader.CONTENT_FIELDS | storereader.LEVEL_FIELDS | storereader.ARRAY_FIELDS
    dimensions = {dimension for dimensions, _ in storereader.ARRAYS.values() for dimension in dimensions}
    types = {name for _, names in storereader.ARRAYS.values() for name in names}
    words = {*fields, *storereader.ARRAYS, *dimensions, *types, "finished", "levels", "level_00000", "frontier_00003"}
    assert sorted(word for word in words if f"`{word}`" not in PAGE) == []


def test_the_table_of_arrays_on_the_page_has_exactly_the_arrays_that_the_reader_knows() -> None:
    table = PAGE.split("\n## Arrays\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)) == set(storereader.ARRAYS)
