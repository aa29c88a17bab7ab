"""Names of goals wherever goals are shown: tables, plots, films, the explorer, the command line, stores, exported models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from command_line import invoke, json_of

mpl.use("Agg")

from worked_examples import walled

from empo_bi import DamagedStoreError, Params, Solution, analysis, enumerate_dag, load_world, open_solution, run_batch, solve
from empo_bi.analysis import plots
from empo_bi.analysis.captions import captions_of
from empo_bi.analysis.maps import value_map
from empo_bi.report.content import _goals
from empo_bi.report.report import write_report
from empo_bi.store.stored_world import remembered_world

WORLD = f"""
map: |
{chr(10).join("  " + row for row in walled("Ay .. Kg .. / .. Ay Ae ..").splitlines())}
max_steps: 4
possible_goals:
  0:
    - {{name: <b>bed & $room$</b>, cells: [[1, 1], [4, 1, 4, 2]], weight: 2}}
    - {{name: window, cells: [2, 1], facing: north}}
    - {{name: shopping, carries: green key}}
    - 1,1,4,2
  1:
    - {{name: anywhere, cells: [1, 1, 4, 2]}}
    - {{name: too late, step: 4, cells: [1, 1]}}
"""
BED = "<b>bed & $room$</b>"
RECTANGLE = "ReachRectangleGoal(agent 0, 1,1,4,2)"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("worlds") / "rooms.yaml"
    path.write_text(WORLD)
    return path


@pytest.fixture(scope="module")
def run(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "rooms"
    solve(load_world(file), Params(beta_h=5, gamma_h=0.9, zeta=2), out=folder, progress=False).close()
    return folder


@pytest.fixture
def solution(run: Path) -> Iterator[Solution]:
    with open_solution(run) as found:
        yield found


def test_the_run_is_that_of_the_file(run: Path, solution: Solution, file: Path) -> None:
    fresh = solve(load_world(file), Params(beta_h=5, gamma_h=0.9, zeta=2), progress=False)
    assert fresh.goals == solution.goals
    assert [goal.name for goal in solution.goals[0][:3]] == [BED, "window", "shopping"]
    for t in range(5):
        assert np.array_equal(fresh.values.Vh_e[t], solution.values.Vh_e[t])
    again = solve(load_world(file), Params(beta_h=5, gamma_h=0.9, zeta=2), out=run, progress=False)
    assert again.goal_columns.key() == solution.goal_columns.key() == fresh.goal_columns.key()
    assert invoke("verify", run).exit_code == 0


def test_tables_and_arrays(solution: Solution) -> None:
    assert solution.goal_columns.names == [[BED, "window", "shopping", RECTANGLE], ["anywhere", "too late", "None", "None"]]
    assert set(solution.to_pandas("Vh_e")["goal"]) == {BED, "window", "shopping", RECTANGLE, "anywhere", "too late"}
    assert solution.to_xarray()["goal_name"].values[1].tolist() == ["anywhere", "too late", "", ""]
    assert "    shopping: weight 0.2, value" in str(solution.at(solution.dag.states(0)[0]))
    assert repr(solution.dag.goals).endswith("human 1: anywhere, too late>")


def test_goals_are_found_by_their_names(solution: Solution) -> None:
    window = solution.goals[0][1]
    by_name = value_map(solution, 0, "window", 0)
    assert by_name.goal == window == solution.rollouts(1, goals={0: "window"}).goals[0]
    assert by_name.quantity == "value of window to human 0"
    assert solution.rollouts(1, goals={0: "1,1,4,2"}).goals[0] == solution.goals[0][3]
    assert solution.rollouts(1, goals={1: "1,1 to 4,2"}).goals[1].name == "anywhere"
    with pytest.raises(ValueError, match=r"its goals, numbered from 0, are .*; window; shopping; .* Did you mean 'window'"):
        solution.rollouts(1, goals={0: "windov"})


def test_plots_name_goals_and_frame_all_their_places(solution: Solution) -> None:
    ax = plots.plot_map(value_map(solution, 0, BED, 0))
    assert len(ax.patches) == 2
    ax.figure.canvas.draw()  # dollar signs begin no equation
    assert "bed & " in ax.get_title() + ax.get_title("left")
    shown = plots.plot_probability_by_time(solution, solution.goals[0][:2])
    shown.figure.canvas.draw()
    assert "window" in shown.get_legend_handles_labels()[1]
    rollouts = solution.rollouts(1, goals={0: "shopping"})
    goals = plots.plot_course(analysis.course_of(solution, rollouts.states(0)))[1]
    assert "anywhere" in " ".join(text.get_text() for text in goals.texts)
    axes = plots.plot_maps([value_map(solution, 0, name, 0) for name in (BED, "window", "shopping")])
    axes.ravel()[0].figure.canvas.draw()
    titles = [ax.get_title() + ax.get_title("left") for ax in axes.ravel()[:3]]
    assert [re.sub(r"\\", "", title) for title in titles] == [f"goal {BED}", "goal window", "goal shopping"]


def test_films_and_their_captions(solution: Solution, tmp_path: Path) -> None:
    rollouts = solution.rollouts(1, seed=3, goals={0: BED})
    first = captions_of(rollouts, 0)[0]
    assert [note.label for note in first.goals[0]] == [BED, "window", "shopping", "1,1 to 4,2"]
    assert [note.places for note in first.goals[1]] == [((1, 1, 4, 2),), ((1, 1, 1, 1),)]
    assert (first.pursued[0].label, first.pursued[0].cells) == (BED, None)
    assert rollouts.save(tmp_path / "film.gif", tile=20).stat().st_size > 0
    assert solution.rollouts(1).save(tmp_path / "bars.gif", tile=20).stat().st_size > 0


def test_the_explorer(solution: Solution, tmp_path: Path) -> None:
    assert [[goal and (goal["label"], goal["places"]) for goal in goals] for goals in _goals(solution)] == [
        [(BED, [[1, 1, 1, 1], [4, 1, 4, 2]]), ("window", [[2, 1, 2, 1]]), ("shopping", []), ("1,1 to 4,2", [[1, 1, 4, 2]])],
        [("anywhere", [[1, 1, 4, 2]]), ("too late", [[1, 1, 1, 1]]), None, None],
    ]
    page = write_report(solution, tmp_path / "page.html", progress=False).path.read_text()
    assert "<b>bed" not in page
    assert "window" in page


def test_the_command_line(run: Path, file: Path) -> None:
    described = invoke("worlds", "describe", file).stdout
    assert (
        f"4 goals of human 0: {BED} (1,1 or 4,1 to 4,2; weight 0.4); window (2,1 and facing\nnorth; weight 0.2)" in described
    )
    assert "2 goals of human 1: anywhere (1,1 to 4,2); too late (1,1 and at step 4)" in described
    assert json_of("worlds", "describe", file)["goals"]["1"][0] == {
        "name": "anywhere",
        "cells": [[1, 1, 4, 2]],
        "weight": 0.5,
    }
    shown = json_of("solve", file, "-p", "zeta=2")
    assert [goal["goal"] for goal in shown["goals"]["0"]] == [BED, "window", "shopping", RECTANGLE]
    with_human, alone = (json_of("rollout", run, "--goal", given, "--seed", 5) for given in ("0=shopping", "shopping"))
    assert with_human == alone
    assert alone["pursued"] == {"0": "shopping"}
    assert "human 1 wants too late" in invoke("rollout", run, "--goal", "too late").stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("shoping", "no human of [0, 1] has it; give HUMAN=GOAL"),
        ("1=shopping", "human 1 has no such goal; its goals, numbered from 0, are anywhere; too late"),
        ("1,1,4,2", "humans 0, 1 have it; give HUMAN=GOAL"),
        ("=shopping", "give NAME=VALUE"),
    ],
)
def test_wrong_goals_on_the_command_line(run: Path, given: str, message: str) -> None:
    done = invoke("rollout", run, "--goal", given)
    assert (done.exit_code, message in " ".join(done.output.split())) == (2, True), done.output


def test_batches_and_exported_models(file: Path, tmp_path: Path) -> None:
    batch = {"worlds": [str(file)], "params": {"zeta": 2}, "per_goal": True}
    table = run_batch(batch, out=tmp_path / "batch", workers=1, progress=False).table
    assert {f"V_h_0[{BED}]", "V_h_0[window]", "V_h_1[anywhere]"} <= set(table.rows[0])
    dag = enumerate_dag(load_world(file), progress=False)
    model = dag.to_drn(tmp_path / "model.drn")
    assert model.is_unrolled is False or model.n_states == dag.n_states
    named = (tmp_path / "model.drn").read_text()
    assert "human 1 has attained goal 1, too late" in named
    assert "None" not in named


def test_what_stores_remember_is_held_to_the_rules_of_files(file: Path) -> None:
    """Somebody else's store is read as a world file is: names cannot colour a terminal, nesting ends."""
    mapping = json.loads(json.dumps(load_world(file).mapping))
    remembered_world(mapping, "a store")
    endless: Any = {"step": 1}
    for _ in range(60):
        endless = {"all": [endless, {"facing": "north"}]}
    for entry in ({"name": "\x1b[31mred", "step": 1}, {"name": "a" * 100, "step": 1}, {"cells": [[1, 1]] * 300}, endless):
        forged = {**mapping, "possible_goals": [entry]}
        with pytest.raises(DamagedStoreError, match="its world cannot be loaded") as raised:
            remembered_world(forged, "a store")
        assert str(raised.value).isprintable()
