"""Archives of values: read under the documented names, exact, checked, and never executed."""

from __future__ import annotations

import json
import math
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle.planning import Graph
from planning_worlds import Ring, TwoSteps

from empo_bi import ArrayWorld, compute_human_policy_prior, compute_robot_policy, load_world
from empo_bi.compat import archive_value_slices, archives, detect_archivable_levels, load_archived_value_slices
from empo_bi.errors import DamagedStoreError, MemoryLimitError, StoreMismatchError
from empo_bi.goals import PossibleGoal, ReachRectangleGoal
from empo_bi.solving.opening import AGAIN_BYTES
from empo_bi.store.value_lines import FORMAT, VERSION, read_levels

LEVEL_OF = {"a": 0, "b": 1, "c": 1, "d": 2}.__getitem__


class Evil:
    def __reduce__(self) -> Any:
        return exec, ("raise SystemExit('a pickle was executed')",)


# --- the documented functions -----------------------------------------------------------------------------------------


def solved(world: Any, archive: Path, **roles: Any) -> tuple[Any, Any, Any]:
    humans, robots = roles.get("humans", world.human_agent_indices), roles.get("robots", world.robot_agent_indices)
    options: dict[str, Any] = {"archive_dir": archive, "use_float16": False, "quiet": True}
    prior, Vh = compute_human_policy_prior(world, humans, gamma_h=0.9, return_Vh=True, **options)
    _, Vr, Vhe = compute_robot_policy(
        world, humans, robots, human_policy_prior=prior, gamma_h=0.9, gamma_r=0.9, return_values=True, **options
    )
    return Vh, Vr, Vhe


def numbered_world() -> ArrayWorld:
    moves = [np.eye(3), np.roll(np.eye(3), 1, axis=1)]
    return ArrayWorld(moves, max_steps=3, goals={"first": [0], "all": range(3)})


MAKERS = {
    "gridworld": lambda: load_world("ice_rink", max_steps=3),
    "keys, which cannot be compared": lambda: load_world("locked_in", max_steps=3),
    "bush world": lambda: load_world("bush_worlds/overgrown_start", max_steps=2),
    "python": Ring,
    "python, two steps": TwoSteps,
    "arrays": numbered_world,
}


def states_in_order(world: Any) -> list[Any]:
    """As ``get_dag`` has them; worlds without one are put in order by the oracle."""
    if hasattr(world, "get_dag"):
        return world.get_dag(quiet=True)[0]
    world.n_actions, world.n_agents = world.action_space.n, len(world.agents)
    return Graph(world).states


@pytest.mark.parametrize(
    "value",
    [
        {"dict": [[1, 2], [1, 3]]},
        {"array": "float64", "shape": [-1], "values": [1.0]},
        {"array": "float64", "shape": [True], "values": [1.0]},
    ],
)
def test_values_that_contradict_themselves_are_damage(tmp_path: Path, value: Any) -> None:
    lines = [{FORMAT: VERSION, "level_value": 0, "num_states": 1, "state_indices": [0]}, value, {"end": 0}]
    texts = [json.dumps(line).encode() for line in lines]
    path = tmp_path / "values"
    path.write_bytes(b"".join(b"%08x %s\n" % (zlib.crc32(text), text) for text in texts))
    with pytest.raises(DamagedStoreError, match="does not make sense"):
        list(read_levels(path, str))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_what_the_documented_functions_archive_is_read_in_the_order_of_get_dag(make: Any, tmp_path: Path) -> None:
    world = make()
    Vh, Vr, Vhe = solved(world, tmp_path)
    states = states_in_order(make())
    goals = [goal for table in (Vh, Vhe) for of in table.values() for known in of.values() for goal in known]
    for name, table in (("vh", Vh), ("vhe", Vhe), ("vr", {state: [value] for state, value in Vr.items()})):
        found = list(load_archived_value_slices(tmp_path / f"{name}_values.pkl", goals=goals))
        assert sorted(i for _, numbers, _ in found for i in numbers) == list(range(len(states)))
        assert [level for level, _, _ in found] == sorted({level for level, _, _ in found}, reverse=True)
        for _, numbers, values in found:
            for i, value in zip(numbers, values, strict=True):
                assert value == table.get(states[i], {}), (name, states[i])


def test_goals_are_those_of_the_archives_world_or_names(tmp_path: Path) -> None:
    solved(load_world("ice_rink", max_steps=2), tmp_path / "grid")
    solved(Ring(), tmp_path / "python")
    for folder, kind in (("grid", PossibleGoal), ("python", str)):
        slices = load_archived_value_slices(tmp_path / folder / "vhe_values.pkl")
        goals = {goal for *_, values in slices for value in values for known in value.values() for goal in known}
        assert goals
        assert all(isinstance(goal, kind) for goal in goals)


def test_levels_are_read_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from empo_bi.store.solution_store import SolutionStore

    solved(load_world("ice_rink", max_steps=3), tmp_path)
    read = []
    get = SolutionStore.get
    monkeypatch.setattr(SolutionStore, "get", lambda self, t, name: read.append(t) or get(self, t, name))
    slices = load_archived_value_slices(tmp_path / "vr_values.pkl")
    assert read == []
    next(slices)
    assert read == [3]


def test_an_archive_that_names_another_world_is_damaged(tmp_path: Path) -> None:
    import zarr

    solved(load_world("ice_rink", max_steps=2), tmp_path)
    other = load_world("asymmetric_freeing", max_steps=2)
    group = zarr.open_group(tmp_path / "robot_values", mode="r+")
    manifest = dict(group.attrs["empo_bi"])
    from empo_bi.runtime.digests import checksum_of_json
    from empo_bi.world.as_model import as_model

    manifest.pop("crc32")
    manifest["world"] = as_model(other).mapping
    group.attrs["empo_bi"] = manifest | {"crc32": checksum_of_json(manifest)}
    with pytest.raises(DamagedStoreError):
        list(load_archived_value_slices(tmp_path / "vr_values.pkl"))


# --- files of one's own -----------------------------------------------------------------------------------------------


def test_values_come_back_as_they_were(tmp_path: Path) -> None:
    goal = ReachRectangleGoal(None, 0, (1, 1, 2, 2))
    values = [
        [{goal: 0.1 + 0.2}, {}], {0: {goal: np.float16(0.1)}, 1: {}}, [math.inf, -0.0, 5e-324, None, "text", True, 2**70],
        {"tables": (np.array([[0.1, 0.2]], dtype=np.float32), np.arange(3)), (1, None): -math.inf},
    ]  # fmt: skip
    archive_value_slices(values, "abcd", LEVEL_OF, [2, 1], "v.pkl", quiet=True, archive_dir=tmp_path)
    archive_value_slices(values, "abcd", LEVEL_OF, [0], tmp_path / "v.pkl", quiet=True)
    found = list(load_archived_value_slices(tmp_path / "v.pkl", goals=[goal]))
    assert [(level, numbers) for level, numbers, _ in found] == [(2, [3]), (1, [1, 2]), (0, [0])]
    assert found[2][2] == [values[0]]
    assert found[1][2] == [{0: {goal: float(np.float16(0.1))}, 1: {}}, values[2]]
    assert math.copysign(1, found[1][2][1][1]) == -1
    table, numbers = found[0][2][0]["tables"]
    assert (table.dtype, table.tolist(), numbers.tolist()) == (np.float32, values[3]["tables"][0].tolist(), [0, 1, 2])
    assert found[0][2][0][1, None] == -math.inf
    (by_name,) = [values for level, _, values in load_archived_value_slices(tmp_path / "v.pkl") if level == 0]
    assert by_name == [[{repr(goal): 0.1 + 0.2}, {}]]


def test_nan_comes_back_and_entries_are_emptied_where_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {"a": [math.nan], "b": {1: 2.0}, "c": 3.0}
    archive_value_slices(values, "abcd", LEVEL_OF, [1, 0], tmp_path / "v", return_values=False)
    assert values == {"a": [], "b": {}, "c": None}
    assert capsys.readouterr().err.splitlines()[0] == f"empo_bi: level 1: values of 2 states are in {tmp_path / 'v'}"
    (_, _, ((a, b))), (_, _, ((nan,),)) = load_archived_value_slices(tmp_path / "v")
    assert (a, b) == ({1: 2.0}, 3.0)
    assert math.isnan(nan[0]) if isinstance(nan, list) else math.isnan(nan)


def test_a_missing_file_has_nothing(tmp_path: Path) -> None:
    for name in ("vh_values.pkl", "mine"):
        assert list(load_archived_value_slices(tmp_path / name)) == []


class Nameless:
    def is_achieved(self, state: Any) -> bool:
        return False

    def __repr__(self) -> str:
        return "goal"


@pytest.mark.parametrize(
    ("value", "match"),
    [(Evil(), "of type Evil cannot be archived"), ({Evil(): 1}, "of type Evil"), (np.array([None]), "array of object"),
     ({Nameless(): 1, Nameless(): 2}, "two goals are called"), (1j, "of type complex")],
)  # fmt: skip
def test_what_cannot_be_held_is_refused_and_nothing_is_written(value: Any, match: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=match):
        archive_value_slices([1.0, 2.0, value], "abc", LEVEL_OF, [1], tmp_path / "v", quiet=True)
    assert (tmp_path / "v").read_bytes() == b""


# --- other files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [pickle.dumps(Evil()), pickle.dumps(Evil(), protocol=0), b"{}\n", b"\x00" * 100, b"x"])
def test_pickles_and_other_files_are_refused_unread(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "vh_values.pkl"
    path.write_bytes(content)
    with pytest.raises(StoreMismatchError, match=r"Pickles can run any program when they are read, so this one is not"):
        list(load_archived_value_slices(path))
    with pytest.raises(StoreMismatchError, match="archive the values anew"):
        archive_value_slices([1.0], "a", LEVEL_OF, [0], path, quiet=True)
    with pytest.raises(StoreMismatchError, match=r"vh_values\.pkl"):
        compute_human_policy_prior(TwoSteps(), [0], archive_dir=tmp_path, quiet=True)
    assert path.read_bytes() == content


def test_a_writer_that_was_stopped_is_noticed_wherever_it_was(tmp_path: Path) -> None:
    path = tmp_path / "v"
    archive_value_slices([1.5, 2.5, 3.5], "abc", LEVEL_OF, [1, 0], path, quiet=True)
    whole = path.read_bytes()
    n_first = whole.index(b"\n", whole.index(b'"end":1')) + 1
    for n in range(1, len(whole)):
        path.write_bytes(whole[:n])
        if n == n_first:  # the first level is complete
            assert len(list(load_archived_value_slices(path))) == 1
            continue
        with pytest.raises((DamagedStoreError, StoreMismatchError)):
            list(load_archived_value_slices(path))
        with pytest.raises((DamagedStoreError, StoreMismatchError)):
            archive_value_slices([1.5], "a", LEVEL_OF, [0], path, quiet=True)
    path.write_bytes(whole[:-3])
    slices = load_archived_value_slices(path)
    assert next(slices) == (1, [1, 2], [2.5, 3.5])
    with pytest.raises(DamagedStoreError, match="ends within a level: the program that wrote it was stopped"):
        next(slices)


def test_no_changed_byte_goes_unnoticed(tmp_path: Path) -> None:
    path = tmp_path / "v"
    archive_value_slices([1.5, {1: 2.5}], "ab", LEVEL_OF, [1, 0], path, quiet=True)
    whole = path.read_bytes()
    expected = list(load_archived_value_slices(path))
    for n in range(len(whole)):
        path.write_bytes(whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :])
        try:
            assert list(load_archived_value_slices(path)) == expected
        except (DamagedStoreError, StoreMismatchError):
            continue
        pytest.fail(f"byte {n} was changed")


# --- levels that can be archived --------------------------------------------------------------------------------------


def test_levels_that_nobody_needs_any_more() -> None:
    step_by_step = {t: t + 1 for t in range(6)}
    assert detect_archivable_levels(3, step_by_step, quiet=True) == [5, 4]
    assert detect_archivable_levels(1, step_by_step, quiet=True) == [5, 4, 3, 2]
    assert detect_archivable_levels(0, step_by_step, quiet=True) == []
    assert detect_archivable_levels(3, {**step_by_step, 0: 4}, quiet=True) == [5]
    assert detect_archivable_levels(-2, {-4: -2, -2: 7, 7: 8}, quiet=True) == [7]


def test_levels_are_named_unless_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    detect_archivable_levels(1, {0: 1, 1: 2, 2: 3})
    assert capsys.readouterr().err == "empo_bi: levels 2 can be archived\n"


def archived(path: Path, record: Any) -> Path:
    """A file with one level, which says this of its only state."""
    archive_value_slices([0.0], "a", LEVEL_OF, [0], path, quiet=True)
    lines = path.read_bytes().splitlines()
    text = json.dumps(record, separators=(",", ":")).encode()
    path.write_bytes(b"\n".join([lines[0], b"%08x %s" % (zlib.crc32(text), text), *lines[2:]]) + b"\n")
    return path


@pytest.mark.parametrize(
    "record",
    [
        {"array": "int8", "shape": [1], "values": [300]},
        {"array": "float64", "shape": [1], "values": [10**400]},
        {"dict": [[i * (2**61 - 1), 0] for i in range(1, 60_000)]},
        {"dict": [[{"tuple": [{"tuple": [2**61]}]}, 0]]},
    ],
    ids=["too large", "larger than floats", "same remainders", "inside"],
)
def test_records_that_no_archive_has_are_damage(record: Any, tmp_path: Path) -> None:
    with pytest.raises(DamagedStoreError, match="a record does not make sense"):
        list(load_archived_value_slices(archived(tmp_path / "v", record)))


def test_keys_that_would_not_be_read_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"cannot be archived; expected numbers below 2\*\*53"):
        archive_value_slices([{2**60: 1}], "a", LEVEL_OF, [0], tmp_path / "v", quiet=True)


def test_states_of_an_archive_are_found_again_within_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    solved(load_world("asymmetric_freeing", max_steps=8), tmp_path)
    assert len(list(load_archived_value_slices(tmp_path / "vr_values.pkl"))) == 9
    monkeypatch.setattr(archives, "resident_bytes", lambda: -AGAIN_BYTES + (100 << 20))
    with pytest.raises(MemoryLimitError, match="found again, and that takes more than 2 GB; use open_solution"):
        list(load_archived_value_slices(tmp_path / "vr_values.pkl"))
