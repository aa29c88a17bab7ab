"""Batches: the numbers of their tables, what is skipped, continued and tried again, and what they keep."""

from __future__ import annotations

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from batch.batches import SMALL, lasting, lasting_csv, run_here

import empo_bi
from empo_bi import (
    MetricError,
    Params,
    StoreLockedError,
    StoreMismatchError,
    load_world,
    open_solution,
    run_batch,
    solve,
)
from empo_bi.batch import batch as batches
from empo_bi.batch import run_pass as work_module
from empo_bi.batch.run_pass import do_pass
from empo_bi.store.lock import WriterLock


def test_the_table_has_what_solve_says(tmp_path: Path) -> None:
    result = run_here({**SMALL, "per_goal": True, "precision": "float64"}, tmp_path / "runs")
    assert result.is_complete
    assert len(result.table) == 8
    for row in result.table.rows:
        world = load_world(row["world"], max_steps=row["steps"])
        solution = solve(world, Params(gamma_h=0.9, zeta=row["zeta"]), precision="float64", progress=False)
        start = solution.at(world.initial_state())
        assert row["V_r"] == start.V_r
        assert row["U_r"] == start.U_r
        assert (row["states"], row["bodies"]) == (solution.dag.n_states, solution.dag.n_bodies)
        assert row["transitions"] == solution.dag.n_transitions
        assert (row["gamma_h"], row["gamma_r"], row["beta_h"]) == (0.9, 1.0, 10.0)
        for human, goals in start.goals.items():
            assert row[f"X_h_{human}"] == start.power[human]
            weights = [weight for _, weight, *_ in goals]
            for name, place in (("V_h_alone", 2), ("V_h", 3)):
                values = [goal[place] for goal in goals]
                assert row[f"{name}_{human}_mean"] == pytest.approx(np.average(values, weights=weights), abs=1e-15)
                assert (row[f"{name}_{human}_min"], row[f"{name}_{human}_max"]) == (min(values), max(values))
                found = [value for key, value in row.items() if key.startswith(f"{name}_{human}[") and value is not None]
                assert found == values
        policy = {f"pi_r_{world.action_names[profile[0]]}": p for profile, p in start.robot_policy.items() if profile}
        assert {name: value for name, value in row.items() if name.startswith("pi_r") and value is not None} == policy
        assert not policy or math.isclose(sum(policy.values()), 1)


def test_rows_are_in_the_order_of_the_file_whatever_the_order_of_the_work(tmp_path: Path) -> None:
    table = run_here(SMALL, tmp_path / "runs").table
    assert table["world"] == ["basics/first_steps"] * 4 + ["pushing/mirror_freeing"] * 4
    assert table["steps"] == [3, 3, 4, 4] * 2
    assert table["zeta"] == [1, 2] * 4


def test_csv_and_parquet_say_the_same(tmp_path: Path) -> None:
    result = run_here({"worlds": ["basics/first_steps", "no_such_world"], "params": {"zeta": [1, 2.5]}}, tmp_path / "runs")
    from_csv, from_parquet = (
        pandas.read_csv(tmp_path / "runs/table.csv"),
        pandas.read_parquet(tmp_path / "runs/table.parquet"),
    )
    assert list(from_csv.columns) == list(from_parquet.columns) == result.table.columns
    pandas.testing.assert_frame_equal(from_csv, from_parquet, check_dtype=False, check_exact=True)
    assert result.table.to_pandas()["V_r"].tolist()[:2] == from_csv["V_r"].tolist()[:2]
    assert from_csv["V_r"].dtype == from_parquet["V_r"].dtype == np.float64


def test_what_is_finished_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run_here(SMALL, tmp_path / "runs")
    monkeypatch.setattr(batches, "do_pass", lambda work: pytest.fail("something was done again"))
    again = run_here(SMALL, tmp_path / "runs")
    assert again.n_skipped == 8
    assert again.table.rows == first.table.rows  # timings too: they are those of the first time
    # Another file that asks for some of it finds it as well, whatever it is called and wherever it is.
    some = {"worlds": "pushing/*_freeing", "steps": 4, "params": {"rho_h": -math.log(0.9)}, "keep": "summary"}
    other = run_here(some, tmp_path / "runs")
    assert (len(other.table), other.n_skipped) == (1, 1)


def test_more_samples_add_to_those_that_are_there(tmp_path: Path) -> None:
    batch = {"worlds": "basics/first_steps", "steps": 3, "params": {"zeta": {"uniform": [1, 3]}}, "samples": 3, "seed": 5}
    few = run_here(batch, tmp_path / "runs")
    more = run_here({**batch, "samples": 5}, tmp_path / "runs")
    assert more.n_skipped == 3
    assert lasting(more.table)[:3] == lasting(few.table)
    assert more.table["sample"] == [0, 1, 2, 3, 4]
    assert len(set(more.table["zeta"])) == 5


def test_draws_that_are_the_same_are_solved_once_and_have_a_row_each(tmp_path: Path) -> None:
    batch = {"worlds": "basics/first_steps", "steps": 3, "params": {"zeta": {"choices": [1, 2]}}, "samples": 6}
    result = run_here(batch, tmp_path / "runs")
    assert len(result.table) == 6
    assert len(list((tmp_path / "runs/runs").iterdir())) == len(set(result.table["run"])) == 2


def test_seeds_draw_anew(tmp_path: Path) -> None:
    batch = {
        "worlds": "basics/first_steps",
        "steps": 3,
        "params": {"zeta": {"uniform": [1, 3]}},
        "samples": 2,
        "seed": [1, 2],
    }
    result = run_here(batch, tmp_path / "runs")
    assert (result.table["seed"], result.table["sample"]) == ([1, 1, 2, 2], [0, 1, 0, 1])
    assert len(set(result.table["zeta"])) == 4


def test_a_changed_world_file_is_another_world(tmp_path: Path) -> None:
    text = "map: |\n  We We We We We\n  We Ay .. Ae We\n  We We We We We\nmax_steps: 3\npossible_goals: ['1,1', '2,1']\n"
    (tmp_path / "mine.yaml").write_text(text)
    (tmp_path / "batch.yaml").write_text("worlds: '*ne.yaml'\nout: runs\nkeep: summary\n")
    first = run_batch(tmp_path / "batch.yaml", workers=1, progress=False)
    assert first.table["world"] == ["mine.yaml"]
    (tmp_path / "mine.yaml").write_text(text.replace("'2,1'", "{goal: [2, 1], weight: 3}"))
    second = run_batch(tmp_path / "batch.yaml", workers=1, progress=False)
    assert (second.n_skipped, len(second.table)) == (0, 1)
    assert first.table["V_r"] != second.table["V_r"]
    (tmp_path / "mine.yaml").write_text(f"# a remark\n{text}")
    assert run_batch(tmp_path / "batch.yaml", workers=1, progress=False).n_skipped == 1


# --- failures ---------------------------------------------------------------------------------------------------------


def test_failures_are_written_down_and_stop_nobody(tmp_path: Path) -> None:
    (tmp_path / "torn.yaml").write_text("map: |\n  We We We\n  We Qq We\n  We We We\n")
    (tmp_path / "nobody.yaml").write_text(
        "map: |\n  We We We\n  We Ae We\n  We We We\nmax_steps: 2\npossible_goals: ['1,1']\n"
    )
    (tmp_path / "batch.yaml").write_text(
        "worlds: [basics/first_steps, torn.yaml, no_such_world, nobody.yaml, 'nothing/*']\nsteps: 2\nout: runs\n"
    )
    result = run_batch(tmp_path / "batch.yaml", workers=1, progress=False)
    assert [row["status"] for row in result.table.rows] == ["finished", "failed", "failed", "failed", "failed"]
    errors = result.table["error"]
    assert errors[0] is None
    for error, words in zip(errors[1:], ["WorldFileError: .*torn.yaml:3: map.*Qq", "WorldNotFoundError: 'no_such_world'",
                                         "ValueError: there are no humans", "WorldNotFoundError: 'nothing/.' matches no"],
                            strict=True):  # fmt: skip
        assert re.search(words, error)
    assert not result.is_complete
    assert "5 runs: 1 finished, 4 failed" in result.summary()
    assert all(str(error) in result.summary() for error in errors[1:])
    manifest = json.loads((tmp_path / "runs/runs" / result.table["run"][3] / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert "checked_agents" in manifest["error"]["traceback"]
    assert "failed: " in (tmp_path / "runs/runs" / result.table["run"][3] / "log.txt").read_text()


def test_what_failed_is_tried_again_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metrics.py").write_text("def works(solution):\n    raise RuntimeError('not today')\n")
    batch = tmp_path / "batch.yaml"
    batch.write_text("worlds: basics/first_steps\nsteps: 2\nmetrics: metrics.py:works\nout: runs\n")
    first = run_batch(batch, workers=1, progress=False)
    assert first.failed[0]["error"] == "MetricError: metric works: RuntimeError: not today"
    assert first.table["V_r"] != [None]  # what was found before the metric failed is there
    log = (tmp_path / "runs/runs" / first.table["run"][0] / "log.txt").read_text()
    assert 'metrics.py", line 2, in works' in log  # with the user's own line
    assert run_batch(batch, workers=1, progress=False).failed == first.failed
    monkeypatch.setattr(batches, "do_pass", lambda work: calls.append(work) or do_pass(work))
    calls: list[Any] = []
    assert run_batch(batch, workers=1, progress=False).failed == first.failed
    assert not calls
    assert lasting(run_batch(batch, workers=1, progress=False, retry_failed=True).table) == lasting(first.table)
    assert len(calls) == 1
    (tmp_path / "metrics.py").write_text("def works(solution):\n    return 7\n")  # another question, so nobody has to ask
    again = run_batch(batch, workers=1, progress=False)
    assert again.is_complete
    assert again.table["works"] == [7]


def test_a_set_that_fails_leaves_the_others_of_its_pass_alone(tmp_path: Path) -> None:
    batch = {"worlds": "asymmetric_freeing", "steps": 4, "params": {"xi": [1, 400, 2]}, "keep": "summary"}
    result = run_here(batch, tmp_path / "runs")
    statuses = dict(zip(result.table["xi"], result.table["status"], strict=True))
    assert statuses == {1: "finished", 400: "failed", 2: "finished"}
    assert "EmpoOverflowError" in result.failed[0]["error"]


def test_a_metric_that_is_not_there_stops_the_batch_before_it_begins(tmp_path: Path) -> None:
    for reference, words in (
        ("nothing.py:f", "is not a file"),
        ("math:f", "the module has no function 'f'"),
        ("no_such:f", "cannot be"),
    ):
        with pytest.raises(MetricError, match=words):
            run_here({"worlds": "basics/first_steps", "metrics": reference}, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_two_batches_in_one_folder_take_turns(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    lock = WriterLock(tmp_path / "runs/batch.lock")
    with pytest.raises(StoreLockedError, match=r"runs/batch: process .* is writing there"):
        run_here(SMALL, tmp_path / "runs")
    lock.release()


# --- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", ["values", "policies", "summary"])
def test_what_is_kept_can_be_opened(keep: str, tmp_path: Path) -> None:
    result = run_here({**SMALL, "keep": keep}, tmp_path / "runs")
    row = result.table.rows[-1]
    folder = tmp_path / "runs/runs" / row["run"]
    stores = list(folder.glob("solution-*"))
    assert len(stores) == (0 if keep == "summary" else 1)
    names = {path.name for store in stores for path in (store / "level_00002").iterdir() if path.is_dir()}
    assert names == {"values": {"vh", "ve", "xh", "qr", "vr"}, "policies": {"vh", "qr"}, "summary": set()}[keep]
    with open_solution(folder) as solution:
        world = load_world(row["world"], max_steps=row["steps"])
        direct = solve(world, Params(gamma_h=0.9, zeta=row["zeta"]), progress=False)
        for t in range(solution.dag.horizon + 1):
            np.testing.assert_array_equal(solution.pi_r[t], direct.pi_r[t])
            np.testing.assert_array_equal(solution.pi_h[t], direct.pi_h[t])
            if keep != "policies":
                np.testing.assert_array_equal(solution.values.X_h[t], direct.values.X_h[t])
        assert solution.values.V_r[0][0] == row["V_r"]
        assert str(row["states"]).replace(",", "") in solution.summary().replace(",", "")
        if keep == "policies":
            with pytest.raises(ValueError, match=r"xh was not stored .* only vh, qr"):
                solution.values.X_h[1]


def test_who_wants_more_gets_it_and_who_wants_less_has_it(tmp_path: Path) -> None:
    result = run_here({**SMALL, "keep": "summary"}, tmp_path / "runs")
    more = run_here({**SMALL, "keep": "values"}, tmp_path / "runs")
    assert more.n_skipped == 0
    assert lasting(more.table) == lasting(result.table)
    assert run_here({**SMALL, "keep": "policies"}, tmp_path / "runs").n_skipped == 8
    assert run_here({**SMALL, "keep": "summary"}, tmp_path / "runs").n_skipped == 8


def test_other_metrics_are_computed_from_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.py").write_text("def found(solution):\n    return {'all': solution.dag.n_states, 'first': 'one'}\n")
    first = run_here(SMALL, tmp_path / "runs")
    monkeypatch.setattr("empo_bi.sweep.backward_pass.Sweep._level", lambda *_: pytest.fail("it was solved again"))
    result = run_here({**SMALL, "metrics": f"{tmp_path}/m.py:found"}, tmp_path / "runs")
    assert result.is_complete
    assert result.table["found.all"] == result.table["states"]
    assert set(result.table["found.first"]) == {"one"}
    assert result.table["solve_seconds"] == first.table["solve_seconds"]  # nothing was solved


def test_a_metric_must_return_what_fits_a_table(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("import numpy\ndef f(s):\n    return numpy.float32(0.5)\ndef g(s):\n    return [1, 2]\n")
    batch = {"worlds": "basics/first_steps", "steps": 2}
    assert run_here({**batch, "metrics": f"{tmp_path}/m.py:f"}, tmp_path / "runs").table["f"] == [0.5]
    [row] = run_here({**batch, "metrics": f"{tmp_path}/m.py:g"}, tmp_path / "runs").failed
    assert row["error"] == "MetricError: metric g: returned [1, 2]; return a number, a text, or a mapping of names to these"


# --- shared work ------------------------------------------------------------------------------------------------------


def test_runs_that_differ_in_parameters_only_share_dag_and_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enumerated, swept = [], []
    enumerate_dag, run = work_module.enumerate_dag, empo_bi.sweep.backward_pass.Sweep.run
    monkeypatch.setattr(work_module, "enumerate_dag", lambda *a, **k: enumerated.append(1) or enumerate_dag(*a, **k))
    monkeypatch.setattr("empo_bi.sweep.backward_pass.Sweep.run", lambda self: swept.append(len(self.tasks)) or run(self))
    result = run_here({**SMALL, "params": {"zeta": [1, 2, 3], "gamma_h": [0.9, 0.8]}}, tmp_path / "runs")
    assert len(enumerated) == 4  # two worlds, two horizons
    assert swept == [6, 6, 6, 6]
    assert set(result.table["runs_in_pass"]) == {6}


def test_where_memory_is_short_fewer_are_solved_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = {"worlds": "pushing/mirror_freeing", "steps": 5, "params": {"zeta": [1, 2, 3, 4], "gamma_h": 0.9}}
    expected = run_here(batch, tmp_path / "all")
    sizes_for = empo_bi.solving.memory_advice.sizes_for

    def little(shape: Any, *rest: Any) -> Any:
        if shape.robot_phases > 2:
            raise empo_bi.MemoryLimitError("not so many")
        return sizes_for(shape, *rest)

    monkeypatch.setattr("empo_bi.solving.memory_advice.sizes_for", little)
    result = run_here(batch, tmp_path / "few")
    assert set(result.table["runs_in_pass"]) == {2}
    assert lasting(result.table) == lasting(expected.table)
    log = (tmp_path / "few/runs" / result.table["run"][0] / "log.txt").read_text()
    assert "cannot be solved together with 3 others (MemoryLimitError: not so many)" in log


@pytest.mark.parametrize("keep", ["values", "summary"])
def test_large_worlds_have_a_dag_on_disk_which_all_runs_share(
    keep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = {**SMALL, "worlds": "pushing/mirror_freeing", "keep": keep}
    expected = run_here(batch, tmp_path / "small")
    monkeypatch.setattr(work_module, "SMALL_BODIES", 10)
    result = run_here(batch, tmp_path / "large")
    assert lasting(result.table) == lasting(expected.table)
    assert len([path for path in (tmp_path / "large/dags").iterdir() if path.is_dir()]) == 2
    for row in result.table.rows:
        folder = tmp_path / "large/runs" / row["run"]
        assert len(list(folder.glob("solution-*"))) == (1 if keep == "values" else 0)
        with open_solution(folder) as solution:
            assert solution.values.V_r[0][0] == row["V_r"]
    # A DAG of many levels may have few bodies and many states.
    monkeypatch.setattr(work_module, "SMALL_BODIES", 10**6)
    monkeypatch.setattr(work_module, "SMALL_STATES", 10)
    shutil.rmtree(tmp_path / "large")
    assert lasting(run_here(batch, tmp_path / "large").table) == lasting(expected.table)
    assert (tmp_path / "large/dags").is_dir()


def test_a_limit_of_states_is_told(tmp_path: Path) -> None:
    result = run_here({"worlds": "asymmetric_freeing", "steps": 8, "max_states": 100}, tmp_path / "runs")
    assert "TooManyStatesError" in result.failed[0]["error"]


# --- places and workers -----------------------------------------------------------------------------------------------


def test_two_workers_make_the_same_table(tmp_path: Path) -> None:
    run_here(SMALL, tmp_path / "one")
    run_batch(SMALL, out=tmp_path / "two", workers=2, progress=False)
    assert lasting_csv(tmp_path / "one") == lasting_csv(tmp_path / "two")


def test_everything_may_be_at_a_url(tmp_path: Path) -> None:
    expected = run_here(SMALL, tmp_path / "runs")
    url = f"memory://{tmp_path.name}/runs"
    result = run_here(SMALL, url)  # type: ignore[arg-type]
    assert lasting(result.table) == lasting(expected.table)
    with open_solution(f"{url}/runs/{result.table['run'][-1]}") as solution:
        assert solution.values.V_r[0][0] == result.table["V_r"][-1]
    assert run_here(SMALL, url).n_skipped == 8  # type: ignore[arg-type]


def test_worlds_written_in_python_take_part(tmp_path: Path) -> None:
    (tmp_path / "walks.py").write_text(
        "from planning_worlds import Ring\ndef ring(max_steps=3):\n    return Ring()\n"
    )  # fmt: skip
    (tmp_path / "batch.yaml").write_text("worlds: walks.py:ring\nout: runs\nparams: {zeta: [1, 2]}\n")
    result = run_batch(tmp_path / "batch.yaml", workers=1, progress=False)
    assert result.is_complete, result.summary()
    assert run_batch(tmp_path / "batch.yaml", workers=1, progress=False).n_skipped == 2
    with open_solution(tmp_path / "runs/runs" / result.table["run"][0], trust=True) as solution:
        assert solution.values.V_r[0][0] == result.table["V_r"][0]


# --- rollouts ---------------------------------------------------------------------------------------------------------


def test_rollouts_estimate_what_is_exact_and_are_the_same_each_time(tmp_path: Path) -> None:
    batch = {"worlds": "pushing/mirror_freeing", "steps": 5, "params": {"gamma_h": 0.9}, "rollouts": 400, "keep": "summary"}
    result = run_here(batch, tmp_path / "runs")
    [row] = result.table.rows
    assert row["rollouts"] == 400
    assert abs(row["rollout_V_r"] - row["V_r"]) < 5 * row["rollout_V_r_error"] + 1e-9
    assert lasting(run_here(batch, tmp_path / "again").table) == lasting(result.table)
    more = run_here({**batch, "rollouts": 500}, tmp_path / "runs")
    assert more.n_skipped == 0
    assert more.table["rollouts"] == [500]


def test_repetitions_have_rollouts_of_their_own(tmp_path: Path) -> None:
    batch = {"worlds": "pushing/mirror_freeing", "steps": 9, "rollouts": 20, "repetitions": 3, "params": {"beta_r": 5}}
    result = run_here(batch, tmp_path / "runs")
    assert result.table["repetition"] == [0, 1, 2]
    assert len(set(result.table["V_r"])) == 1
    assert len(set(result.table["rollout_V_r"])) == 3
    # The first repetition is the run that is asked for without repetitions.
    assert run_here({**batch, "repetitions": 1}, tmp_path / "runs").n_skipped == 1
    seeded = run_here({**batch, "repetitions": 1, "seed": 7}, tmp_path / "runs")
    assert seeded.n_skipped == 0
    assert seeded.table["rollout_V_r"][0] not in result.table["rollout_V_r"]


# --- what tells runs apart ----------------------------------------------------------------------------------------------

FUNCTIONS = """
from empo_bi import load_world, TabularGoalGenerator, ReachCellGoal

WEIGHT = 1.0

def plain(max_steps=3):
    return load_world("pushing/mirror_freeing", max_steps=max_steps)

def own(max_steps=3):
    world = plain(max_steps)
    world.possible_goal_generator = TabularGoalGenerator([ReachCellGoal(world, 1, (1, 2))], weights=[WEIGHT])
    return world

def roles(max_steps=3):
    world = plain(max_steps)
    world.human_agent_indices = [1]
    return world

def made(weight):
    def make(max_steps=3, p=1):
        world = plain(max_steps)
        world.possible_goal_generator = TabularGoalGenerator([ReachCellGoal(world, 1, (1, 2))], weights=[weight * p])
        return world
    return make

factory = made(2.0)
"""


def test_worlds_made_by_functions_are_told_apart_by_all_that_was_changed(tmp_path: Path) -> None:
    (tmp_path / "w.py").write_text(FUNCTIONS)
    (tmp_path / "batch.yaml").write_text("worlds: [w.py:plain, w.py:own, w.py:roles, w.py:factory]\nout: runs\n")
    result = run_batch(tmp_path / "batch.yaml", workers=1, progress=False)
    assert result.is_complete, result.summary()
    assert len(set(result.table["run"])) == 4
    assert len(set(result.table["V_r"])) == 4
    for row in result.table.rows:  # what is opened is the world that was solved
        with open_solution(tmp_path / "runs/runs" / row["run"], trust=True) as solution:
            assert solution.values.V_r[0][0] == row["V_r"]
    # Another number in the module, and other options.
    (tmp_path / "w.py").write_text(FUNCTIONS.replace("WEIGHT = 1.0", "WEIGHT = 3.0"))
    changed = run_batch(tmp_path / "batch.yaml", workers=1, progress=False)
    assert changed.n_skipped == 0
    assert changed.table["V_r"][1] != result.table["V_r"][1]
    with pytest.raises(StoreMismatchError, match="now makes a different world"):
        open_solution(tmp_path / "runs/runs" / result.table["run"][1], trust=True)
    for p in (1, 2):
        (tmp_path / "p.yaml").write_text(f"worlds: w.py:factory\nout: p\noverrides: {{p: {p}}}\n")
        assert run_batch(tmp_path / "p.yaml", workers=1, progress=False).n_skipped == 0


def test_a_world_that_changes_while_a_batch_runs_is_solved_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "map: |\n  We We We We We\n  We Ay .. Ae We\n  We We We We We\nmax_steps: 3\npossible_goals: ['1,1', '2,1', '3,1']\n"
    )
    (tmp_path / "mine.yaml").write_text(text)
    batch = {"worlds": f"{tmp_path}/mine.yaml", "steps": [3, 4]}
    expected = run_here(batch, tmp_path / "expected")

    def changing(work: Any) -> Any:
        (tmp_path / "mine.yaml").write_text(text.replace("..", "Ro"))
        return do_pass(work)

    monkeypatch.setattr(batches, "do_pass", changing)
    assert lasting(run_here(batch, tmp_path / "runs").table) == lasting(expected.table)


def test_a_metric_that_changes_while_a_batch_runs_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.py").write_text("def f(s):\n    return 1\n")

    def changing(work: Any) -> Any:
        (tmp_path / "m.py").write_text("def f(s):\n    return 2\n")
        return do_pass(work)

    monkeypatch.setattr(batches, "do_pass", changing)
    result = run_here({"worlds": "basics/first_steps", "steps": 2, "metrics": f"{tmp_path}/m.py:f"}, tmp_path / "runs")
    assert "has changed since the batch was called" in result.failed[0]["error"]


def test_metrics_made_by_other_functions_are_told_apart_by_the_text_of_their_module(tmp_path: Path) -> None:
    text = "def factory(k):\n    def metric(s):\n        return k * 1\n    return metric\nleft = factory(1)\n"
    batch = {"worlds": "basics/first_steps", "steps": 2, "metrics": f"{tmp_path}/m.py:left"}
    for factor in (1, 100):
        (tmp_path / "m.py").write_text(text.replace("k * 1", f"k * {factor}"))
        assert run_here(batch, tmp_path / "runs").table["left"] == [factor]


def test_a_metric_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "helper_of_metrics.py").write_text("NUMBER = 5\n")
    (tmp_path / "m.py").write_text("from helper_of_metrics import NUMBER\ndef f(s):\n    return NUMBER\n")
    batch = {"worlds": "basics/first_steps", "steps": 2, "metrics": f"{tmp_path}/m.py:f"}
    assert run_batch(batch, out=tmp_path / "runs", workers=2, progress=False).table["f"] == [5]


def test_equal_worlds_share_a_run_whatever_they_are_called(tmp_path: Path) -> None:
    text = (
        "map: |\n  We We We We We\n  We Ay .. Ae We\n  We We We We We\nmax_steps: 3\npossible_goals: ['1,1', '2,1', '3,1']\n"
    )
    for name in "abc":
        (tmp_path / f"{name}.yaml").write_text(text)
    result = run_here({"worlds": [f"{tmp_path}/a.yaml", f"{tmp_path}/b.yaml"]}, tmp_path / "runs")
    assert result.is_complete
    assert len(set(result.table["run"])) == 1
    assert run_here({"worlds": f"{tmp_path}/c.yaml"}, tmp_path / "runs").n_skipped == 1


# --- attempts after attempts --------------------------------------------------------------------------------------------


def test_a_failed_attempt_costs_nothing_that_was_finished(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def bad(s):\n    raise KeyError('oops')\n")
    plain = {"worlds": "pushing/mirror_freeing", "steps": 3}
    first = run_here(plain, tmp_path / "runs")
    assert run_here({**plain, "metrics": f"{tmp_path}/m.py:bad"}, tmp_path / "runs").failed
    again = run_here(plain, tmp_path / "runs")
    assert again.n_skipped == 1
    assert again.table.rows == first.table.rows
    with open_solution(tmp_path / "runs/runs" / first.table["run"][0]) as solution:
        assert solution.values.V_r[0][0] == first.table["V_r"][0]


def test_asking_for_more_or_less_leaves_one_solution_and_throws_nothing_away(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def f(s):\n    return 1\n")
    batch = {"worlds": "pushing/mirror_freeing", "steps": 3}
    for keep, metrics in (("policies", []), ("values", []), ("summary", [f"{tmp_path}/m.py:f"])):
        result = run_here({**batch, "keep": keep, "metrics": metrics}, tmp_path / "runs")
        assert result.is_complete
        assert len(list((tmp_path / "runs/runs").glob("*/solution-*[0-9a-f]"))) == 1
    with open_solution(tmp_path / "runs/runs" / result.table["run"][0]) as solution:
        assert len(solution.values.X_h[1]) > 1  # values are still there


def test_a_solution_that_was_deleted_is_solved_again_if_it_is_asked_for(tmp_path: Path) -> None:
    batch = {"worlds": "pushing/mirror_freeing", "steps": 3}
    run_here(batch, tmp_path / "runs")
    shutil.rmtree(next((tmp_path / "runs/runs").glob("*/solution-*")))
    assert run_here({**batch, "keep": "summary"}, tmp_path / "runs").n_skipped == 1
    assert run_here(batch, tmp_path / "runs").n_skipped == 0
    assert next((tmp_path / "runs/runs").glob("*/solution-*")).is_dir()


def test_functions_that_exit_or_fail_in_odd_ways_stop_nobody(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def f(s):\n    raise SystemExit(4)\n")
    (tmp_path / "w.py").write_text(
        "def odd(**options):\n    raise KeyError('odd')\ndef leaves(**options):\n    raise SystemExit\n"
    )
    batch = {"worlds": ["basics/first_steps", f"{tmp_path}/w.py:odd", f"{tmp_path}/w.py:leaves", f"{tmp_path}/no.py:world"]}
    result = run_here({**batch, "steps": 2}, tmp_path / "runs")
    assert result.table["status"] == ["finished", "failed", "failed", "failed"]
    assert result.table["error"][1] == "KeyError: 'odd'"
    assert "SystemExit" in result.table["error"][2]
    assert "a function that makes a world" in result.table["error"][3]
    result = run_here({**batch, "steps": 2, "metrics": f"{tmp_path}/m.py:f"}, tmp_path / "exits")
    assert result.table["error"][0] == "MetricError: metric f: SystemExit: 4"


@pytest.mark.parametrize("value", ["2**70", "'\\ud800'", "float('nan')", "float('inf')", "None", "True"])
def test_a_table_takes_whatever_a_metric_returns(value: str, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(f"def f(s):\n    return {value}\n")
    batch = {"worlds": ["basics/first_steps", "basics/carousel"], "steps": 2, "keep": "summary"}
    assert run_here({**batch, "metrics": f"{tmp_path}/m.py:f"}, tmp_path / "runs").is_complete
    assert (
        len(pandas.read_csv(tmp_path / "runs/table.csv")) == len(pandas.read_parquet(tmp_path / "runs/table.parquet")) == 2
    )


# --- folders ------------------------------------------------------------------------------------------------------------


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/table.csv").write_text("my,precious,data\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/thesis.txt").write_text("...")
    (tmp_path / "file").write_text("...")
    for name, words in (("mine", "contains table.csv"), ("other", "contains thesis.txt"), ("file", "is a file")):
        with pytest.raises(StoreMismatchError, match=words):
            run_here(SMALL, tmp_path / name)
    assert (tmp_path / "mine/table.csv").read_text() == "my,precious,data\n"


def test_a_folder_may_be_the_present_one_and_runs_are_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_module, "SMALL_BODIES", 10)  # so that there is a DAG beside the runs
    monkeypatch.chdir(tmp_path)
    result = run_here({**SMALL, "worlds": "pushing/mirror_freeing"}, Path())
    assert result.is_complete
    monkeypatch.chdir(tmp_path / "runs" / result.table["run"][0])
    assert open_solution(".").values.V_r[0][0] == result.table["V_r"][0]


def test_a_batch_can_be_made_again_from_its_folder(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def f(s):\n    return 1\n")
    batch = {**SMALL, "metrics": f"{tmp_path}/m.py:f", "rollouts": 3}
    result = run_here(batch, tmp_path / "runs")
    about = json.loads((tmp_path / "runs/batch.json").read_text())
    assert about["metrics"]["f"]["source"] == "def f(s):\n    return 1\n"
    assert lasting(run_here(about["spec"]["file"], tmp_path / "again").table) == lasting(result.table)
    row = result.table.rows[-1]
    manifest = json.loads((tmp_path / "runs/runs" / row["run"] / "manifest.json").read_text())
    with open_solution(tmp_path / "runs/runs" / row["run"]) as solution:
        assert solution.rollouts(3, seed=manifest["rollout_seed"]).return_N.mean() == row["rollout_V_r"]


def test_columns_are_in_the_same_order_whichever_runs_come_first(tmp_path: Path) -> None:
    forwards = run_here({"worlds": ["basics/first_steps", "mirror_freeing", "no_such"], "steps": 3}, tmp_path / "one").table
    backwards = run_here({"worlds": ["no_such", "mirror_freeing", "basics/first_steps"], "steps": 3}, tmp_path / "two").table
    assert forwards.columns == backwards.columns


def test_many_runs_at_a_url_are_one_task_and_still_few_at_a_time(tmp_path: Path) -> None:
    zetas = [1 + i / 100 for i in range(40)]
    batch = {"worlds": "basics/first_steps", "steps": 2, "params": {"zeta": zetas, "xi": [1, 400]}, "keep": "summary"}
    result = run_here(batch, f"memory://{tmp_path.name}/many")  # type: ignore[arg-type]
    assert max(n for n in result.table["runs_in_pass"] if n is not None) <= 16


def test_helpers_of_metrics_are_those_beside_them_and_as_they_are_now(tmp_path: Path) -> None:
    for name, number in (("a", 10), ("b", 20)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "helper_h3.py").write_text(f"NUMBER = {number}\n")
        (tmp_path / name / "m.py").write_text("import helper_h3\ndef f(s):\n    return helper_h3.NUMBER\n")
    batch = {"worlds": "basics/first_steps", "steps": 2}
    for name, number in (("a", 10), ("b", 20)):
        assert run_here({**batch, "metrics": f"{tmp_path}/{name}/m.py:f"}, tmp_path / "runs" / name).table["f"] == [number]
    (tmp_path / "a/helper_h3.py").write_text("NUMBER = 30\n")
    assert run_here({**batch, "metrics": f"{tmp_path}/a/m.py:f"}, tmp_path / "runs/a").table["f"] == [30]


def test_worlds_that_cannot_be_told_apart_are_told_by_all_that_lies_beside_them(tmp_path: Path) -> None:
    (tmp_path / "helper_h4.py").write_text("W = 1.0\n")
    (tmp_path / "w.py").write_text(
        "from empo_bi import load_world, ReachCellGoal\nimport helper_h4\n"
        "def make(max_steps=3):\n    world = load_world('pushing/mirror_freeing', max_steps=max_steps)\n"
        "    class Own:\n        def generate(self, state, human):\n"
        "            yield ReachCellGoal(world, human, (1, 2)), helper_h4.W\n"
        "            yield ReachCellGoal(world, human, (7, 2)), helper_h4.W\n"
        "    world.possible_goal_generator = Own()\n    return world\n"
    )
    first = run_here({"worlds": f"{tmp_path}/w.py:make"}, tmp_path / "runs")
    assert first.is_complete, first.summary()
    (tmp_path / "helper_h4.py").write_text("W = 9.0\n")
    second = run_here({"worlds": f"{tmp_path}/w.py:make"}, tmp_path / "runs")
    assert second.n_skipped == 0
    assert second.table["V_r"] != first.table["V_r"]


def test_a_summary_with_rollouts_is_possible_where_policies_were_kept(tmp_path: Path) -> None:
    batch = {"worlds": "pushing/mirror_freeing", "steps": 3}
    run_here({**batch, "keep": "policies"}, tmp_path / "runs")
    result = run_here({**batch, "keep": "summary", "rollouts": 5}, tmp_path / "runs")
    assert result.is_complete, result.summary()


def test_a_failure_is_tried_again_when_its_remedy_was_followed(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def later(s):\n    return float(s.values.V_r[1][0])\n")
    batch = {"worlds": "pushing/mirror_freeing", "steps": 3, "metrics": f"{tmp_path}/m.py:later"}
    assert "'keep: values'" in run_here({**batch, "keep": "policies"}, tmp_path / "runs").failed[0]["error"]
    assert run_here({**batch, "keep": "values"}, tmp_path / "runs").is_complete
    assert run_here({**batch, "max_states": 10}, tmp_path / "states").failed
    assert run_here(batch, tmp_path / "states").is_complete


def test_a_damaged_solution_is_solved_again(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def f(s):\n    return float(s.values.V_r[1][0])\n")
    batch = {"worlds": "pushing/mirror_freeing", "steps": 3}
    first = run_here(batch, tmp_path / "runs")
    store = next((tmp_path / "runs/runs").glob("*/solution-*"))
    (store / "zarr.json").write_bytes((store / "zarr.json").read_bytes()[:20])
    result = run_here({**batch, "metrics": f"{tmp_path}/m.py:f"}, tmp_path / "runs")
    assert result.is_complete, result.summary()
    assert result.table["V_r"] == first.table["V_r"]


def test_a_solution_whose_first_metric_failed_is_kept_and_opened(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def f(s):\n    raise KeyError\n")
    batch = {"worlds": "pushing/mirror_freeing", "steps": 3, "metrics": f"{tmp_path}/m.py:f"}
    failed = run_here(batch, tmp_path / "runs")
    with open_solution(tmp_path / "runs/runs" / failed.table["run"][0]) as solution:
        assert solution.values.V_r[0][0] == failed.table["V_r"][0]
    (tmp_path / "m.py").write_text("def f(s):\n    return 1\n")
    mended = run_here({**batch, "keep": "summary"}, tmp_path / "runs")
    assert mended.is_complete
    assert len(list((tmp_path / "runs/runs").glob("*/solution-*[0-9a-f]"))) == 1
    assert mended.table["solve_seconds"] == failed.table["solve_seconds"]  # it was only opened


def test_asking_for_less_solves_nothing(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("def f(s):\n    return {'a': 1, 'b': 2}\ndef g(s):\n    return 3\n")
    batch = {"worlds": "pushing/mirror_freeing", "steps": 3, "keep": "summary"}
    more = {"metrics": [f"{tmp_path}/m.py:f", f"{tmp_path}/m.py:g"], "per_goal": True, "rollouts": 4}
    everything = run_here({**batch, **more}, tmp_path / "runs")
    assert everything.table.columns.index("f.a") < everything.table.columns.index("g")
    less = run_here({**batch, "metrics": f"{tmp_path}/m.py:g"}, tmp_path / "runs")
    assert less.n_skipped == 1
    expected = run_here({**batch, "metrics": f"{tmp_path}/m.py:g"}, tmp_path / "plain").table
    assert less.table.columns == expected.columns
    assert lasting(less.table) == lasting(expected)


def test_what_users_put_beside_a_table_is_no_obstacle(tmp_path: Path) -> None:
    run_here(SMALL, tmp_path / "runs")
    (tmp_path / "runs/plot.png").write_bytes(b"...")
    assert run_here(SMALL, tmp_path / "runs").n_skipped == 8
    assert run_here({**SMALL, "steps": [2, 3]}, tmp_path / "runs").is_complete


def test_dags_and_solutions_that_were_deleted_are_made_again_when_a_run_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work_module, "SMALL_BODIES", 10)
    result = run_here({"worlds": "pushing/mirror_freeing", "steps": 3}, tmp_path / "runs")
    folder = tmp_path / "runs/runs" / result.table["run"][0]
    shutil.rmtree(tmp_path / "runs/dags")
    assert open_solution(folder).values.V_r[0][0] == result.table["V_r"][0]
    shutil.rmtree(next(folder.glob("solution-*")))
    assert open_solution(folder, progress=False).values.V_r[0][0] == result.table["V_r"][0]


def test_columns_of_metrics_do_not_run_into_each_other(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(
        "def f(s):\n    return {'b': 1}\ndef g(s):\n    return 2\ndef h(s):\n    return {1: 1, '1': 2}\n"
    )
    batch = {"worlds": "basics/first_steps", "steps": 2}
    metrics = {"a": f"{tmp_path}/m.py:f", "a.b": f"{tmp_path}/m.py:g"}
    assert "already has a column 'a.b'" in run_here({**batch, "metrics": metrics}, tmp_path / "one").failed[0]["error"]
    assert (
        "keys must be distinct strings"
        in run_here({**batch, "metrics": f"{tmp_path}/m.py:h"}, tmp_path / "two").failed[0]["error"]
    )


def test_a_world_that_does_not_exist_is_no_reason_to_write_again(tmp_path: Path) -> None:
    batch = {**SMALL, "worlds": ["basics/first_steps", "no_such_world"]}
    run_here(batch, tmp_path / "runs")
    lock = WriterLock(tmp_path / "runs/batch.lock")  # somebody else is at work, and nothing is left to do for us
    assert len(run_here(batch, tmp_path / "runs").failed) == 4
    lock.release()


def test_rows_of_which_more_is_asked_keep_what_they_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.py").write_text("def f(s):\n    return 1\n")
    (tmp_path / "n.py").write_text("def g(s):\n    return 2\n")
    batch = {**SMALL, "metrics": [f"{tmp_path}/m.py:f", f"{tmp_path}/n.py:g"]}
    first = run_here(batch, tmp_path / "runs")
    (tmp_path / "n.py").write_text("def g(s):\n    return 3\n")
    looked = batches.look_at_batch(batch, out=tmp_path / "runs")
    assert set(looked.table["status"]) == {"outdated"}
    assert looked.table["V_r"] == first.table["V_r"]
    assert looked.table["f"] == [1] * 8
    assert "g" not in looked.table.columns
    assert "8 to be extended" in looked.summary()

    def stops(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(batches, "do_pass", stops)
    with pytest.raises(KeyboardInterrupt):
        run_here(batch, tmp_path / "runs")
    assert pandas.read_csv(tmp_path / "runs/table.csv")["V_r"].tolist() == first.table["V_r"]


def test_solving_into_the_folder_of_a_batch_is_refused(tmp_path: Path) -> None:
    run_here(SMALL, tmp_path / "runs")
    with pytest.raises(StoreMismatchError, match="is the folder of a batch"):
        solve(load_world("basics/first_steps", max_steps=2), out=tmp_path / "runs", progress=False)


def test_a_file_that_is_misspelt_is_guessed(tmp_path: Path) -> None:
    (tmp_path / "gate.yaml").write_text("map: |\n  We We We\n  We Ay We\n  We We We\n")
    (tmp_path / "batch.yaml").write_text("worlds: gate.yml\nout: runs\n")
    [row] = run_batch(tmp_path / "batch.yaml", workers=1, progress=False).failed
    assert "Did you mean 'gate.yaml'" in row["error"]
