"""``solution.to_xarray()``: the numbers are the solution's, whatever is selected; only what is asked for is read."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from planning_worlds import Ring
from store_tools import tree

from empo_bi import DamagedStoreError, Params, Solution, enumerate_dag, load_world, open_solution, solve
from empo_bi.analysis.quantities import QUANTITIES
from empo_bi.analysis.to_xarray import by_level, dataset_of
from empo_bi.store import compression as encoded
from empo_bi.store.zarr_files import ZarrFiles

WORLD = "conflicts/give_and_take"  # where values differ after few steps
PARAMS = Params(beta_h=5.0, gamma_h=0.9, beta_r=4.0, zeta=2.0)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A solution in chunks so small that most levels have several."""
    folder = tmp_path_factory.mktemp("labelled") / "freeing"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoded, "CHUNK_BYTES", 1 << 12)
        solve(load_world(WORLD, max_steps=6), PARAMS, out=folder, progress=False).close()
    return folder


@pytest.fixture(scope="module", params=["in memory", "on disk", "a Python world"])
def solution(request: pytest.FixtureRequest, folder: Path) -> Iterator[Solution]:
    if request.param == "in memory":
        yield solve(load_world(WORLD, max_steps=6), PARAMS, progress=False)
    elif request.param == "on disk":
        yield open_solution(folder)
    else:
        yield solve(Ring(), PARAMS, precision="float64", progress=False)


def all_levels(solution: Solution, name: str) -> Any:
    """A quantity of all states, read as users of plain arrays read it."""
    by_level = getattr(solution.values, name) if hasattr(solution.values, name) else getattr(solution, name)
    return np.concatenate(list(by_level))


def levels_of(solution: Solution) -> Any:
    return np.repeat(np.arange(solution.dag.horizon + 1), solution.dag.level_sizes)


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUANTITIES)
def test_every_variable_is_what_the_solution_says_level_after_level(solution: Solution, name: str) -> None:
    found, expected = solution.to_xarray()[name], all_levels(solution, name)
    assert found.dims == QUANTITIES[name].dims
    assert found.dtype == expected.dtype == np.float64
    assert len(np.unique(expected)) > 2  # or anything would do
    assert np.array_equal(found.values, expected)
    for t in range(solution.dag.horizon + 1):
        assert np.array_equal(found.sel(level=t).values, expected[levels_of(solution) == t]), t


def test_a_state_is_found_at_its_number(solution: Solution) -> None:
    ds = solution.to_xarray()
    for t in (0, 2, solution.dag.horizon):
        state = solution.dag.states(t)[-1]
        row = ds.isel(state=solution.dag.index_of(state))
        assert (int(row.level), int(row.step)) == (t, solution.dag.level_values[t])
        assert solution.dag.states(t)[int(row.place)] == state
        assert float(row.V_r) == solution.at(state).V_r


def keys_of(n: int) -> st.SearchStrategy[Any]:
    numbers = st.integers(-n, n - 1)
    ends = st.none() | st.integers(-n - 2, n + 2)
    forwards = st.builds(slice, ends, ends, st.none() | st.integers(1, 4))
    # Beyond the ends, xarray itself turns slices that go backwards into others.
    inside = st.none() | st.integers(0, n - 1)
    backwards = st.builds(slice, inside, inside, st.integers(-4, -1))
    return numbers | st.lists(numbers, max_size=6) | forwards | backwards


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_selection_is_that_of_plain_arrays(pairs: dict[str, Any], data: st.DataObject) -> None:
    array, plain = pairs[data.draw(st.sampled_from(sorted(pairs)))]
    for _ in range(data.draw(st.integers(1, 2))):
        keys = {dim: data.draw(keys_of(n)) for dim, n in array.sizes.items() if n and data.draw(st.booleans())}
        for axis, dim in reversed(list(enumerate(array.dims))):
            if dim in keys:
                plain = plain[(slice(None),) * axis + (keys[dim],)]
        array = array.isel(keys)
        assert array.shape == plain.shape
        assert np.array_equal(array.values, plain)
        if "state" in array.dims and "level" in array.xindexes:  # what is still known of levels is right
            level = array.level.values
            for t in set(level.tolist()):
                assert np.array_equal(array.sel(level=t).values, plain.compress(level == t, axis=array.dims.index("state")))


@pytest.fixture(scope="module")
def pairs(folder: Path) -> dict[str, Any]:
    """Lazy arrays, each with a plain one that has the same numbers."""
    solution = open_solution(folder)
    ds = solution.to_xarray()
    plain = {name: all_levels(solution, name) for name in ("Vh_e", "Vh_m", "X_h", "V_r", "pi_r", "U_r")}
    plain |= {"x_2": positions(solution)["x_2"], "level": levels_of(solution)}
    return {name: (ds[name], array) for name, array in plain.items()}


def positions(solution: Solution) -> dict[str, Any]:
    """Where agents are, from state tuples."""
    states = [state for t in range(solution.dag.horizon + 1) for state in solution.dag.states(t)]
    found = {}
    for i in range(len(states[0][1])):
        for k, name in enumerate(("x", "y", "direction")):
            found[f"{name}_{i}"] = np.array([state[1][i][k] for state in states])
    return found


def test_positions_are_those_of_state_tuples_and_select_states(folder: Path) -> None:
    ds, expected = (solution := open_solution(folder)).to_xarray(), positions(open_solution(folder))
    assert len(expected) == 9
    for name, numbers in expected.items():
        assert np.array_equal(ds[name].values, numbers), name
        assert name in ds.V_r.coords  # they go with every array
    here = ds.sel(level=5).load()
    moved = here.V_r.where(here.x_2 == 5, drop=True)
    places = [s for s, state in enumerate(solution.dag.states(5)) if state[1][2][0] == 5]
    assert len(places) > 3
    assert np.array_equal(moved.values, solution.values.V_r[5][places])


def test_points_are_picked_one_by_one(folder: Path) -> None:
    solution = open_solution(folder)
    ds, plain = solution.to_xarray(), all_levels(solution, "Vh_e")
    states, goals = [5, 1700, 90, 5], [2, 0, 7, 3]
    found = ds.Vh_e.isel(state=xarray.DataArray(states, dims="point"), goal=xarray.DataArray(goals, dims="point"), human=1)
    assert np.array_equal(found.values, plain[states, 1, goals])


# --- levels -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "levels"),
    [(3, [3]), (slice(2, 4), [2, 3, 4]), (slice(4, None), [4, 5, 6]), (slice(None, 1), [0, 1]), ([1, 3], [1, 3]),
     ([3, 4], [3, 4]), (slice(0, 6, 3), [0, 3, 6]), (np.int64(2), [2]), ([], [])],
)  # fmt: skip
def test_levels_are_selected_one_by_one_or_several(folder: Path, asked: Any, levels: list[int]) -> None:
    solution = open_solution(folder)
    part = solution.to_xarray().sel(level=asked)
    expected = np.isin(levels_of(solution), levels)
    assert np.array_equal(part.level.values, levels_of(solution)[expected])
    assert np.array_equal(part.V_r.values, all_levels(solution, "V_r")[expected])
    for t in levels:  # and once more from there
        assert np.array_equal(part.V_r.sel(level=t).values, solution.values.V_r[t])


def test_levels_that_are_not_there_are_named() -> None:
    ds = solve(Ring(), PARAMS, progress=False).to_xarray()
    with pytest.raises(KeyError, match="level 9: these data have levels 0 to 4"):
        ds.sel(level=9)
    with pytest.raises(KeyError, match="level 2: these data have levels 1, 3"):
        ds.sel(level=[1, 3]).sel(level=2)
    with pytest.raises(KeyError, match="whole number"):
        ds.sel(level=1.5)
    with pytest.raises(ValueError, match="nearest"):
        ds.sel(level=1, method="nearest")
    with pytest.raises(ValueError, match="the levels differ"):
        ds.V_r.sel(level=1) - ds.V_r.sel(level=2)


def test_one_result_a_level_is_that_of_groupby(solution: Solution) -> None:
    ds = solution.to_xarray()
    expected = [solution.values.X_h[t].mean(axis=0) for t in range(solution.dag.horizon + 1)]
    found = by_level(ds.X_h)
    assert found.dims == ("level", "human")
    assert found.level.values.tolist() == list(range(solution.dag.horizon + 1))
    assert np.allclose(found, expected, rtol=1e-13)
    assert np.allclose(ds.X_h.groupby("level").mean(), expected, rtol=1e-13)
    spread = by_level(ds[["V_r"]], lambda level: level.max() - level.min())
    assert spread.V_r.values.tolist() == [values.max() - values.min() for values in solution.values.V_r]
    with pytest.raises(ValueError, match="have lost their levels"):
        by_level(ds.V_r.isel(state=slice(None, None, -1)))


def test_arithmetic_keeps_levels_and_labels(folder: Path) -> None:
    solution = open_solution(folder)
    ds = solution.to_xarray()
    gain = (ds.Vh_e - ds.Vh_m).sel(level=5).isel(goal=3)
    assert np.array_equal(gain.values, (solution.values.Vh_e[5] - solution.values.Vh_m[5])[:, :, 3])
    assert np.array_equal((ds.pi_r * ds.Q_r).sum("robot_profile").sel(level=2).values,
                          (solution.pi_r[2] * solution.Q_r[2]).sum(axis=1))  # fmt: skip
    assert np.array_equal(
        (ds.V_r.sel(level=3) * ds.reached.sel(level=3)).values, solution.values.V_r[3] * solution.reached[3]
    )


# --- labels -----------------------------------------------------------------------------------------------------------


def test_labels_say_what_numbers_mean(folder: Path) -> None:
    ds = (solution := open_solution(folder)).to_xarray()
    assert ds.human.values.tolist() == [0, 1]
    assert ds.action_name.values.tolist() == ["still", "left", "right", "forward"] == ds.robot_profile_name.values.tolist()
    for h, human in enumerate(solution.humans):
        assert ds.goal_name.sel(human=human).values.tolist() == [repr(goal) for goal in solution.goals[human]]
        weights = [w for _, w in solution.world.possible_goal_generator.generate(solution.world.initial_state(), human)]
        assert ds.goal_weight.values[h].tolist() == weights
    assert ds.attrs["beta_h"] == 5.0
    assert ds.attrs["zeta"] == 2.0
    assert ds.attrs["title"] == str(solution.world).strip("<>")
    assert ds.attrs["gamma_h"] == pytest.approx(math.exp(-solution.params.rate_h))
    assert ds.attrs["left_out"] == ""
    assert all(ds[name].attrs["long_name"] and ds[name].attrs["description"] for name in ds.data_vars)


def test_humans_with_fewer_goals_have_empty_names_where_others_have_more() -> None:
    world = load_world(WORLD, max_steps=2)
    goals = {human: list(world.possible_goal_generator.generate(world.initial_state(), human)) for human in (0, 1)}

    class Own:
        def generate(self, state: Any, human: int) -> Any:
            yield from goals[human] if human else goals[human][:-1]

    ds = solve(world, possible_goal_generator=Own(), progress=False).to_xarray()
    assert ds.sizes["goal"] == len(goals[1])
    assert np.argwhere(ds.goal_name.values == "").tolist() == [[0, len(goals[1]) - 1]]
    assert "goal_weight" not in ds  # the generator may say something else elsewhere


def test_what_a_batch_did_not_keep_is_left_out_and_the_rest_is_there(tmp_path: Path) -> None:
    from empo_bi.solving.options import Resources, Storage
    from empo_bi.solving.pipeline import Pipeline
    from empo_bi.solving.run_manifest_rules import KEEPS

    world = load_world("basics/first_steps", max_steps=3)
    storage = Storage(where=tmp_path / "kept", arrays=frozenset(KEEPS["policies"]))
    (kept,) = Pipeline.of(world, [PARAMS], storage=storage, resources=Resources(progress=False)).solutions()
    ds, everything = kept.to_xarray(), solve(world, PARAMS, progress=False)
    assert set(ds.data_vars) == {"Vh_m", "Q_r", "pi_r", "pi_h", "reached"}
    assert "V_r: vr was not stored when this was solved, only vh, qr" in ds.attrs["left_out"]
    for name in ds.data_vars:
        assert np.array_equal(ds[name].values, all_levels(everything, str(name))), name


def test_what_was_not_solved_is_left_out_and_the_reason_told() -> None:
    world = load_world("basics/first_steps", max_steps=3)
    phase_1 = solve(world, phase_2=False, progress=False).to_xarray()
    assert set(phase_1.data_vars) == {"Vh_m", "pi_h"}
    assert "V_r: phase 2 was not solved" in phase_1.attrs["left_out"]

    class Uniform:
        def __call__(self, state: Any, human: int, goal: Any = None) -> Any:
            return np.full(int(world.action_space.n), 1 / int(world.action_space.n))

    prior = solve(world, human_policy_prior=Uniform(), progress=False)
    ds = prior.to_xarray()
    assert set(QUANTITIES) - set(ds.data_vars) == {"Vh_m", "pi_h"}
    assert "pi_h: phase 1 was not solved, since you gave a prior" in ds.attrs["left_out"]
    assert np.array_equal(ds.reached.sel(level=2).values, prior.reached[2])


# --- what is read -----------------------------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Arrays and chunks that are read, as they are read."""
    seen: list[tuple[str, int]] = []
    chunk, array = ZarrFiles.chunk, ZarrFiles.read_array

    def noted_chunk(self: Any, stored: Any, place: Any, group: str, name: str, *found: Any, **how: Any) -> Any:
        seen.append((f"{group}/{name}", place[0]))
        return chunk(self, stored, place, group, name, *found, **how)

    def noted_array(self: Any, group: str, name: str, about: Any) -> Any:
        seen.append((f"{group}/{name}", -1))
        return array(self, group, name, about)

    monkeypatch.setattr(ZarrFiles, "chunk", noted_chunk)
    monkeypatch.setattr(ZarrFiles, "read_array", noted_array)
    return seen


def test_making_and_printing_a_dataset_reads_nothing(folder: Path, reads: list[Any]) -> None:
    ds = open_solution(folder).to_xarray()
    assert "V_r" in repr(ds) + ds._repr_html_() + repr(ds.V_r) + repr(ds.sel(level=3)) + repr(ds.Vh_m.isel(goal=2))
    copy.deepcopy(ds)
    assert "level" in str(ds.xindexes)
    assert reads == []


def test_selecting_one_level_reads_only_that_level_and_one_array(folder: Path, reads: list[Any]) -> None:
    ds = open_solution(folder).to_xarray()
    ds.V_r.sel(level=5).max()
    assert {name for name, _ in reads} == {"level_00005/vr"}
    reads.clear()
    ds.Vh_e.sel(level=4).isel(goal=3).mean()
    assert {name for name, _ in reads} == {"level_00004/ve"}
    reads.clear()
    ds.pi_r.sel(level=slice(2, 3)).load()
    assert {name for name, _ in reads if "/key" not in name} == {"level_00002/qr", "level_00003/qr"}


def test_of_a_level_only_chunks_with_rows_that_are_asked_for_are_read(folder: Path, reads: list[Any]) -> None:
    ds = open_solution(folder).to_xarray()
    stored = zarr.open_array(next(folder.glob("solution-*")) / "level_00006" / "ve", mode="r")
    rows, n_chunks = stored.chunks[0], stored.cdata_shape[0]
    assert n_chunks > 8
    level = ds.Vh_e.sel(level=6)
    level.isel(state=slice(2 * rows + 1, 3 * rows + 2)).values  # noqa: B018
    assert [c for _, c in reads] == [2, 3]
    reads.clear()
    assert level.isel(state=[5 * rows, 0]).values.tolist() == stored[...][[5 * rows, 0]].tolist()
    assert [c for _, c in reads] == [0, 5]


def test_one_column_of_all_levels_is_never_held_with_all_others() -> None:
    import threading
    import tracemalloc

    from empo_bi.analysis.lazy_arrays import LevelledArray
    from empo_bi.analysis.xarray_internals import LazilyIndexedArray

    def wide_rows(t: int, places: Any) -> Iterator[tuple[slice, Any]]:
        """Levels of 2,000 states and 100 columns, 1.6 MB each, made when they are asked for."""
        yield slice(0, len(places)), np.full((len(places), 100), t) + np.arange(100)

    array = LevelledArray(wide_rows, np.arange(41) * 2000, (100,), np.float64, threading.Lock())
    wide = xarray.Variable(("state", "goal"), LazilyIndexedArray(array))
    tracemalloc.start()
    found = wide.isel(goal=7).values
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(found, np.repeat(np.arange(40), 2000) + 7)
    assert peak < found.nbytes + 4 * 1_600_000 < wide.nbytes / 8


def test_a_missing_or_changed_chunk_is_noticed_not_read_as_zeros(folder: Path, tmp_path: Path) -> None:
    import shutil

    for damage in ("missing", "changed", "cut"):
        copied = tmp_path / damage
        shutil.copytree(folder, copied)
        chunk = next(copied.glob("solution-*")) / "level_00006" / "vr" / "c" / "1"
        data = chunk.read_bytes()
        if damage == "missing":
            chunk.unlink()
        else:
            chunk.write_bytes(data[:-9] if damage == "cut" else data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
        ds = open_solution(copied).to_xarray()
        rows = zarr.open_array(chunk.parents[1], mode="r").chunks[0]
        ds.V_r.sel(level=6).isel(state=slice(0, rows)).load()  # the chunk before is sound
        for part in (ds.V_r.sel(level=6), ds.V_r.sel(level=6).isel(state=[rows + 1])):
            with pytest.raises(DamagedStoreError, match="level 6, array 'vr'"):
                part.values  # noqa: B018


def test_chunks_that_changed_places_are_noticed_when_all_rows_are_read(folder: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(folder, tmp_path / "copy")
    chunks = next((tmp_path / "copy").glob("solution-*")) / "level_00004" / "ve" / "c"
    (chunks / "0" / "0" / "0").rename(chunks / "other")
    (chunks / "1" / "0" / "0").rename(chunks / "0" / "0" / "0")
    (chunks / "other").rename(chunks / "1" / "0" / "0")
    with pytest.raises(DamagedStoreError, match="level 4, array 've'"):
        open_solution(tmp_path / "copy").to_xarray().Vh_e.sel(level=4).values  # noqa: B018


def test_packed_initial_states_are_those_of_the_kernel(shipped_names: list[str]) -> None:
    for name in shipped_names:
        world = load_world(name)
        assert np.array_equal(world.initial_key, world.codec.pack(world.layout.initial_row[np.newaxis].copy())), name


@pytest.fixture
def shipped_names() -> list[str]:
    from empo_bi.worlds import available

    return available()


def test_keys_of_some_states_are_those_of_all_before_and_after_one_is_looked_up() -> None:
    dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=5), progress=False)
    expected = [dag.world.encode(dag.states(t))[1] for t in range(6)]
    fresh = enumerate_dag(load_world("asymmetric_freeing", max_steps=5), progress=False)
    for t in (3, 5, 1):
        assert np.array_equal(fresh.keys(t), expected[t])
    assert np.array_equal(fresh.keys(5, range(7, 20)), expected[5][7:20])
    assert fresh.index_of(dag.states(4)[3]) == dag.index_of(dag.states(4)[3])
    assert np.array_equal(fresh.keys(2, np.array([4, 1])), expected[2][[4, 1]])
    assert np.array_equal(fresh.keys(5), expected[5])


# --- other tools ------------------------------------------------------------------------------------------------------


def test_dask_computes_the_same_in_several_threads(folder: Path) -> None:
    pytest.importorskip("dask")
    solution = open_solution(folder)
    ds = solution.to_xarray()
    chunked = ds[["V_r", "Vh_e", "pi_h"]].chunk(state=tuple(solution.dag.level_sizes))
    assert float(chunked.V_r.min().compute()) == min(values.min() for values in solution.values.V_r)
    assert np.array_equal(chunked.Vh_e.isel(goal=3).values, all_levels(solution, "Vh_e")[:, :, 3])
    assert np.array_equal(chunked.pi_h.sel(level=5).values, solution.pi_h[5])
    assert chunked.V_r.data.name != ds.chunk(state=100).U_r.data.name


def test_pickling_says_what_to_do_and_works_once_loaded(folder: Path) -> None:
    ds = open_solution(folder).to_xarray()[["V_r"]]
    with pytest.raises(TypeError, match=r"call \.load\(\) first"):
        pickle.dumps(ds)
    loaded = ds.sel(level=3).load()
    assert pickle.loads(pickle.dumps(loaded)).V_r.equals(loaded.V_r)


def test_plots_take_labels_from_the_dataset(folder: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ds = open_solution(folder).to_xarray()
    lines = by_level(ds.X_h, "max").plot.line(x="level")
    assert len(lines) == 2
    assert "power" in plt.gca().get_ylabel()
    plt.close("all")


def test_without_xarray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    solution = solve(Ring(), PARAMS, progress=False)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(ImportError, match=r"empo-bi\[analysis\]"):
        dataset_of(solution)


# --- the store by itself ----------------------------------------------------------------------------------------------


def test_a_level_of_the_store_opens_by_itself_with_labels_and_without_warnings(folder: Path) -> None:
    (place,) = folder.glob("solution-*")
    solution = open_solution(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        level = xarray.open_zarr(place, group="level_00003", consolidated=False)
        root = xarray.open_zarr(place, consolidated=False)
        forest = xarray.open_datatree(place, engine="zarr", consolidated=False)
    assert {name: array.dims for name, array in level.data_vars.items()} == {
        "vh": ("state", "human", "goal"), "ve": ("state", "human", "goal"), "xh": ("state", "human"),
        "qr": ("state", "robot_profile"), "vr": ("state",),
    }  # fmt: skip
    assert all(np.issubdtype(coordinate.dtype, np.integer) for coordinate in level.coords.values())
    assert np.array_equal(level.vr.values, solution.values.V_r[3])
    labels = level.attrs["empo_bi"]["labels"]
    assert labels["level"] == 3
    assert labels["human"] == solution.humans
    assert labels["goal"] == [[repr(goal) for goal in solution.goals[human]] for human in solution.humans]
    assert labels["action"] == solution.world.action_names
    assert [tuple(profile) for profile in labels["robot_profile"]] == solution.robot_profiles
    about = root.attrs["empo_bi"]
    assert (about["levels"], about["actions"]) == (solution.dag.level_values, solution.world.action_names)
    assert sorted(forest.children) == [f"level_{t:05}" for t in range(7)]
    assert np.array_equal(forest["level_00005/vr"].values, solution.values.V_r[5])


def test_stores_without_labels_still_open_and_can_be_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from empo_bi.solving import result_content

    world, description = load_world("basics/first_steps", max_steps=4), result_content.description

    def as_before(*asked: Any) -> Any:
        return {name: value for name, value in description(*asked).items() if name not in ("actions", "levels")}

    with monkeypatch.context() as earlier:
        earlier.setattr(result_content, "description", as_before)
        solve(world, PARAMS, out=tmp_path / "old", progress=False).close()
    (place,) = (tmp_path / "old").glob("solution-*")
    before = tree(place)
    assert "labels" not in zarr.open(place, mode="r")["level_00002"].attrs["empo_bi"]
    new = solve(world, PARAMS, progress=False)
    assert np.array_equal(open_solution(tmp_path / "old").to_xarray().V_r.values, all_levels(new, "V_r"))
    solve(world, PARAMS, out=tmp_path / "old", progress=False).close()
    assert tree(place) == before


# --- memory -----------------------------------------------------------------------------------------------------------


def test_the_benchmark_of_looking_at_one_level_runs() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "bench_labelled.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "to_pandas of that level, one goal" in done.stdout
    assert "NOT MET" not in done.stdout


def test_opening_a_solution_loads_no_kernel(folder: Path) -> None:
    code = """
import sys, empo_bi
from numba.core.dispatcher import Dispatcher
def compiled(self, signature):
    raise RuntimeError(f"{self.py_func.__name__} was loaded")
Dispatcher.compile = compiled
solution = empo_bi.open_solution(sys.argv[1])
print(float(solution.to_xarray().x_2.sel(level=4).max()), len(solution.to_pandas("V_r", levels=4)))
"""
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = max(state[1][2][0] for state in open_solution(folder).dag.states(4))
    assert done.stdout.split() == [str(float(expected)), str(open_solution(folder).dag.level_sizes[4])]


def test_levels_can_be_put_together_again_in_order(solution: Solution) -> None:
    import xarray

    ds = solution.to_xarray()
    parts = [ds.V_r.sel(level=level) for level in (1, 2, 4)]
    joined = xarray.concat(parts, "state")
    for level in (1, 2, 4):
        np.testing.assert_array_equal(joined.sel(level=level), solution.values.V_r[level])
    assert joined.level.values.tolist() == np.concatenate([part.level for part in parts]).tolist()
    with pytest.raises(ValueError, match=r"levels would not ascend.*drop_indexes"):
        xarray.concat(parts[::-1], "state")
