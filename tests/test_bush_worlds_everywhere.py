"""Whatever works with a gridworld works with a bush world, too: stores, reports, tables, films, exports, commands."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke, json_of
from export.model_files import drn_model
from report.pages import Page
from store.forging import put_record, put_tree, record_of, tree_of

import empo_bi
from empo_bi import Params, analysis, enumerate_dag, events, load_world, open_dag, open_solution, solve
from empo_bi.analysis import plots
from empo_bi.analysis.alignment import shared_places
from empo_bi.dag.users_goals import UsersGoals
from empo_bi.errors import DamagedStoreError, StoreMismatchError
from empo_bi.goals import ReachRectangleGoal
from empo_bi.results.solution import Solution
from empo_bi.store.stored_world import remembered_world
from empo_bi.world.as_model import as_model
from empo_bi.world.bush.world import BushWorld

NAME = "bush_worlds/overgrown_start"
PARAMS = Params(gamma_h=0.8, gamma_r=0.95, beta_h=50, optimistic=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bush") / "run"
    solve(load_world(NAME, max_steps=4), PARAMS, out=path, progress=False).close()
    return path


@pytest.fixture(scope="module")
def solution(run: Path) -> Solution:
    return open_solution(run)


def test_a_run_remembers_its_world_and_opens_without_it(solution: Solution, run: Path) -> None:
    world = load_world(NAME, max_steps=4)
    assert isinstance(solution.world, BushWorld)
    assert solution.world.mapping == world.mapping
    in_memory = solve(world, PARAMS, progress=False)
    start = world.initial_state()
    assert solution.robot_policy(start) == in_memory.robot_policy(start)
    assert open_dag(run / "dag").n_states == in_memory.dag.n_states
    assert open_dag(run / "dag").states(2) == in_memory.dag.states(2)
    again = solve(world, PARAMS, out=run, progress=False)  # nothing to do
    assert again.robot_policy(start) == in_memory.robot_policy(start)


def test_a_store_of_one_world_is_not_that_of_another(run: Path) -> None:
    for changes in ({"B": 3}, {"fill_density": 1}, {"map": "Ro 01\n. Hu"}):
        with pytest.raises(StoreMismatchError):
            enumerate_dag(load_world(NAME, max_steps=4, **changes), store=run / "dag", progress=False)


def test_what_a_forged_store_says_of_its_world_is_data_and_is_checked() -> None:
    good = load_world(NAME).mapping
    assert remembered_world(good, "run").mapping == good
    for changes in (
        {"B": -1},
        {"B": "__import__('os')"},
        {"map": "/etc/passwd"},
        {"map": [" ".join(["."] * 500)] * 500},
        {"fill_density": 10**30},
        {"max_steps": 10**12},
        {"possible_goals": [{"goal": [0, 0], "weight": -1}]},
        {"map": ["Ro 99999999999999999999"]},
    ):
        with pytest.raises(DamagedStoreError, match="cannot be loaded"):
            remembered_world({**good, **changes}, "run")
    with pytest.raises(DamagedStoreError, match="not that of a world file"):
        remembered_world("bush.yaml", "run")


def test_goals_and_humans_of_a_store_are_those_of_its_world(run: Path, tmp_path: Path) -> None:
    tree = tree_of(run / "dag")
    record = record_of(tree, "zarr.json")
    record["goals"][0].reverse()
    put_record(tree, "zarr.json", record)
    put_tree(tree, tmp_path / "dag")
    with pytest.raises(DamagedStoreError, match="its humans and goals are not those"):
        open_dag(tmp_path / "dag")


def test_goals_of_other_packages_are_recognised() -> None:
    world = load_world(NAME, max_steps=4)
    human = world.human_agent_indices[0]

    class Target:
        human_agent_index, target_pos = human, (0, 0)

        def is_achieved(self, state: Any) -> bool:
            return bool(state[1][human] == (0, 0))

    found = UsersGoals(as_model(world)).reach_goal_like(Target())
    assert found == ReachRectangleGoal(world, human, (0, 0, 0, 0))


def test_reports_show_maps_pictures_and_words(solution: Solution, tmp_path: Path) -> None:
    empo_bi.write_report(solution, tmp_path / "page.html", progress=False)
    page = Page(tmp_path / "page.html")
    assert (page.head["grid"]["width"], page.head["grid"]["height"]) == (2, 2)
    assert [agent["colour"] for agent in page.head["agents"]] == ["grey", "yellow"]
    states = [solution.dag.states(t)[place] for t, place in (page.where(n) for n in range(len(page)))]
    for n in (0, len(page) - 1):
        assert np.array_equal(page.picture(n), solution.world.render(states[n], tile=page.head["grid"]["tile"]))
        assert page.data["words"][n] == solution.world.describe(states[n])
        assert page.data["agent_cell"][n].tolist() == [y * 2 + x for x, y in states[n][1]]
    assert not page.data["agent_direction"].any()


def test_maps_arrows_tables_and_films(solution: Solution, tmp_path: Path) -> None:
    power = analysis.power_map(solution, 1, 2)
    assert power.value_YX.shape == (2, 2)
    towards = analysis.arrow_map(solution, 1, 0, goal=1)  # from 1,1 to 1,0
    assert towards.heading_YX2[1, 1, 1] < -0.5
    assert np.isfinite(towards.stays_YX[1, 1])
    plots.plot_state(solution.world)
    plots.plot_map(power)
    plots.plot_arrows(towards)
    table = solution.to_pandas("X_h", levels=2)
    assert {"x_0", "y_1"} <= set(table.columns)
    assert "direction_0" not in table.columns
    assert "x_1" in solution.to_xarray().coords
    film = solution.rollouts(2, seed=0).save(tmp_path / "film.gif")
    assert Path(film).stat().st_size > 1000


def test_events_look_at_players_and_densities(solution: Solution) -> None:
    by_fields = empo_bi.probability_by_time(solution, events.agent_in(1, (1, 0)))
    by_states = empo_bi.probability_by_time(solution, lambda state: state[1][1] == (1, 0))
    assert np.allclose(by_fields, by_states)
    thinned = events.by_fields(lambda fields: fields.density((0, 0)) < 2)
    assert np.allclose(
        empo_bi.probability_by_time(solution, thinned),
        empo_bi.probability_by_time(solution, lambda state: state[2][0] < 2),
    )
    with pytest.raises(TypeError, match=r"asks for fields.is_open, which states of <BushWorld"):
        empo_bi.probability_by_time(solution, events.door_open((0, 0)))


def test_solutions_of_different_B_are_compared_by_keys() -> None:
    one, other = (solve(load_world(NAME, max_steps=3, B=B), progress=False) for B in (2, 4))
    first, second = shared_places(one, other, 2)
    assert len(first) > 3
    assert [one.dag.states(2)[p] for p in first] == [other.dag.states(2)[p] for p in second]
    assert one.model.key_meaning == other.model.key_meaning
    assert one.model.key_meaning != as_model(load_world("bush_worlds/trailblazer")).key_meaning


def test_models_are_exported(tmp_path: Path) -> None:
    world = load_world(NAME, max_steps=2)
    dag = enumerate_dag(world, precision="exact", progress=False)
    written = dag.to_drn(tmp_path / "model.drn", progress=False)
    assert len(drn_model(written.path).labels) == written.n_states
    assert dag.to_umb(tmp_path / "model.umb", progress=False).path.exists()


def test_commands_take_bush_worlds(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("# Mine.\nmap: |\n  Ro 01 Hu\nB: 2\nmax_steps: 2\n")
    found = json_of("worlds", "describe", tmp_path / "mine.yaml")
    assert (found["B"], found["map"], found["actions"][-1]) == (2, ["Ro 01 Hu"], "pass")
    assert found["agents"][0] == {"agent": 0, "role": "robot", "colour": "grey", "x": 0, "y": 0}
    assert "human 1 at 2,0 on density 0" in invoke("worlds", "describe", tmp_path / "mine.yaml").stdout
    assert invoke("worlds", "draw", tmp_path / "mine.yaml").stdout == "Ro 01 Hu\n# robot 0 at 0,0\n# human 1 at 2,0\n"
    assert "96 x 32 pixels" in invoke("worlds", "draw", tmp_path / "mine.yaml", "--out", tmp_path / "mine.png").stdout
    assert invoke("solve", tmp_path / "mine.yaml", "--out", tmp_path / "run", "--set", "B=3", "--quiet").exit_code == 0
    assert invoke("show", tmp_path / "run").exit_code == 0
    assert invoke("verify", tmp_path / "run").exit_code == 0
    assert invoke("report", tmp_path / "run", "--out", tmp_path / "page.html").exit_code == 0
    assert invoke("rollout", tmp_path / "run", "--episodes", "2").exit_code == 0
    assert invoke("plan", tmp_path / "mine.yaml", "--steps", "2,4").exit_code == 0


def test_a_batch_of_one_bush_world(tmp_path: Path) -> None:
    batch = {"worlds": [NAME], "steps": [2, 3], "params": {"zeta": [1, 2]}, "keep": "summary", "out": "runs"}
    (tmp_path / "batch.yaml").write_text(json.dumps(batch))
    result = invoke("batch", tmp_path / "batch.yaml", "--workers", "1", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("4 runs: 4 finished, 0 failed")


def test_a_zip_file_keeps_it_as_well(tmp_path: Path) -> None:
    dag = enumerate_dag(load_world(NAME, max_steps=2), store=tmp_path / "dag.zip", progress=False)
    assert zipfile.is_zipfile(tmp_path / "dag.zip")
    assert open_dag(tmp_path / "dag.zip").states(2) == dag.states(2)
