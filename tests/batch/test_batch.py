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
from empo_bi import MetricError, Params, StoreLockedError, load_world, open_solution, run_batch, solve
from empo_bi.batch import batch as batches
from empo_bi.batch import work as work_module
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


def test_what_failed_is_tried_again_when_asked(tmp_path: Path) -> None:
    (tmp_path / "metrics.py").write_text("def works(solution):\n    raise RuntimeError('not today')\n")
    batch = tmp_path / "batch.yaml"
    batch.write_text("worlds: basics/first_steps\nsteps: 2\nmetrics: metrics.py:works\nout: runs\n")
    first = run_batch(batch, workers=1, progress=False)
    assert first.failed[0]["error"] == "MetricError: metric works: RuntimeError: not today"
    assert run_batch(batch, workers=1, progress=False).failed == first.failed
    (tmp_path / "metrics.py").write_text("def works(solution):\n    return 7\n")
    assert run_batch(batch, workers=1, progress=False).failed == first.failed  # only when asked
    again = run_batch(batch, workers=1, progress=False, retry_failed=True)
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
        ("nothing.py:f", "is no file"),
        ("math:f", "there is no function 'f'"),
        ("no_such:f", "cannot be"),
    ):
        with pytest.raises(MetricError, match=words):
            run_here({"worlds": "basics/first_steps", "metrics": reference}, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_two_batches_in_one_folder_take_turns(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path / "runs.lock")
    with pytest.raises(StoreLockedError, match=r"runs: process .* is writing there"):
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
            with pytest.raises(ValueError, match=r"xh was not kept .* only vh, qr"):
                solution.values.X_h[1]


def test_who_wants_more_gets_it_and_who_wants_less_has_it(tmp_path: Path) -> None:
    result = run_here({**SMALL, "keep": "summary"}, tmp_path / "runs")
    more = run_here({**SMALL, "keep": "values"}, tmp_path / "runs")
    assert more.n_skipped == 0
    assert lasting(more.table) == lasting(result.table)
    assert run_here({**SMALL, "keep": "policies"}, tmp_path / "runs").n_skipped == 8
    assert run_here({**SMALL, "keep": "summary"}, tmp_path / "runs").n_skipped == 8


def test_other_metrics_are_computed_from_what_was_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.py").write_text("def states(solution):\n    return {'all': solution.dag.n_states, 'first': 'one'}\n")
    run_here(SMALL, tmp_path / "runs")
    monkeypatch.setattr("empo_bi.solver.Sweep._level", lambda *_: pytest.fail("it was solved again"))
    result = run_here({**SMALL, "metrics": f"{tmp_path}/m.py:states"}, tmp_path / "runs")
    assert result.is_complete
    assert result.table["states.all"] == result.table["states"]
    assert set(result.table["states.first"]) == {"one"}


def test_a_metric_must_return_what_fits_a_table(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("import numpy\ndef f(s):\n    return numpy.float32(0.5)\ndef g(s):\n    return [1, 2]\n")
    batch = {"worlds": "basics/first_steps", "steps": 2}
    assert run_here({**batch, "metrics": f"{tmp_path}/m.py:f"}, tmp_path / "runs").table["f"] == [0.5]
    [row] = run_here({**batch, "metrics": f"{tmp_path}/m.py:g"}, tmp_path / "runs").failed
    assert row["error"] == "MetricError: metric g: returned [1, 2]; give a number, a text, or a mapping of such"


# --- shared work ------------------------------------------------------------------------------------------------------


def test_runs_that_differ_in_parameters_only_share_dag_and_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enumerated, swept = [], []
    enumerate_dag, run = work_module.enumerate_dag, empo_bi.solver.Sweep.run
    monkeypatch.setattr(work_module, "enumerate_dag", lambda *a, **k: enumerated.append(1) or enumerate_dag(*a, **k))
    monkeypatch.setattr("empo_bi.solver.Sweep.run", lambda self: swept.append(len(self.strands)) or run(self))
    result = run_here({**SMALL, "params": {"zeta": [1, 2, 3], "gamma_h": [0.9, 0.8]}}, tmp_path / "runs")
    assert len(enumerated) == 4  # two worlds, two horizons
    assert swept == [6, 6, 6, 6]
    assert set(result.table["runs_in_pass"]) == {6}


def test_where_memory_is_short_fewer_are_solved_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = {"worlds": "pushing/mirror_freeing", "steps": 5, "params": {"zeta": [1, 2, 3, 4], "gamma_h": 0.9}}
    expected = run_here(batch, tmp_path / "all")
    sizes_for = empo_bi.solver.sizes_for

    def little(shape: Any, *rest: Any) -> Any:
        if shape.robot_phases > 2:
            raise empo_bi.MemoryLimitError("not so many")
        return sizes_for(shape, *rest)

    monkeypatch.setattr("empo_bi.solver.sizes_for", little)
    result = run_here(batch, tmp_path / "few")
    assert set(result.table["runs_in_pass"]) == {2}
    assert lasting(result.table) == lasting(expected.table)
    log = (tmp_path / "few/runs" / result.table["run"][0] / "log.txt").read_text()
    assert "not together with 3 others (MemoryLimitError: not so many)" in log


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
    with open_solution(tmp_path / "runs/runs" / result.table["run"][0]) as solution:
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
