"""``empo-bi plan`` and ``empo-bi verify`` for scripts. What they print for people is tested with planner and stores."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path
from typing import Any, NoReturn

import pytest
from command_line import invoke, json_of

from empo_bi import Params, StoreError, enumerate_dag, load_world, plan, solve
from empo_bi.cli.plan import _command as command_of
from empo_bi.cli.solve import solve as solve_command


def test_a_plan_in_json_has_the_numbers_of_the_api() -> None:
    expected = plan(load_world("asymmetric_freeing"), Params(), steps=[5, 8], memory="4GB", progress=False)
    found = json_of("plan", "asymmetric_freeing", "--steps", "5,8", "--memory", "4GB", "--quiet")
    assert [(horizon["steps"], horizon["is_exact"]) for horizon in found["horizons"]] == [(5, True), (8, True)]
    for told, horizon in zip(found["horizons"], expected.horizons, strict=True):
        assert told["states"]["likely"] == horizon.sizes.states.likely
        assert told["transitions"]["high"] == horizon.sizes.transitions.high
        assert [way["name"] for way in told["ways"]] == [way.name for way in horizon.ways]
        assert all(way["memory"]["low"] <= way["memory"]["likely"] <= way["memory"]["high"] for way in told["ways"])
    assert (found["memory"], found["longest"], found["recommended"]) == (4_000_000_000, 8, "in memory, float16")
    assert found["command"] == "empo-bi solve asymmetric_freeing --steps 8"


def test_the_command_of_a_plan_can_be_typed() -> None:
    """Whatever way is recommended, ``solve`` has its options."""
    found = plan(load_world("asymmetric_freeing", max_steps=6), Params(), memory="4GB", progress=False)
    for way in found.horizons[0].ways:
        words = shlex.split(command_of("my worlds/free me.yaml", 6, way))
        assert words[:5] == ["empo-bi", "solve", "my worlds/free me.yaml", "--steps", "6"]
        typed = solve_command.make_context("solve", words[2:]).params
        assert {name: str(typed[name]) for name in way.options} == {name: str(way.options[name]) for name in way.options}
        assert (typed["out"] is None) == way.name.startswith("in memory")


def test_a_plan_that_does_not_fit_ends_with_1_in_json_too() -> None:
    done = invoke("plan", "asymmetric_freeing", "--steps", "6", "--memory", "2MB", "--json")
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert (found["recommended"], found["command"], found["longest"]) == (None, None, None)


def test_a_plan_knows_about_phases_agents_and_parameters() -> None:
    both = json_of("plan", "asymmetric_freeing", "--steps", "6")["horizons"][0]
    alone = json_of("plan", "asymmetric_freeing", "--steps", "6", "--phase-1-only")["horizons"][0]
    assert alone["states"] == both["states"]
    assert alone["ways"][0]["memory"]["likely"] < both["ways"][0]["memory"]["likely"]
    assert invoke("plan", "asymmetric_freeing", "-p", "zeta=0").exit_code == 2
    assert "there is no agent 7" in invoke("plan", "asymmetric_freeing", "--robots", "7").stderr


def test_every_option_of_a_plan_reaches_the_api(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def note(world: Any, params: Params, **options: Any) -> NoReturn:
        given.update(options, world=world, params=params)
        raise StoreError("that is enough")

    monkeypatch.setattr("empo_bi.planner.plan.plan", note)
    arguments = ["--steps", "2,3", "--memory", "0.5", "-p", "xi=3", "--phase-1-only", "--humans", "0", "--robots", "1"]
    assert invoke("plan", "carousel", *arguments, "--seconds", 2, "--workers", 3, "--max-levels", 4, "-q").exit_code == 3
    assert str(given.pop("world")) == str(load_world("carousel"))
    assert given == {
        "params": Params(xi=3), "steps": [2, 3], "memory": 0.5, "workers": 3, "seconds": 2.0, "max_levels": 4,
        "phase_2": False, "human_agent_indices": [0], "robot_agent_indices": [1], "progress": False,
    }  # fmt: skip


def test_verify_in_json_names_all_stores_and_what_is_damaged(tmp_path: Path) -> None:
    with solve(load_world("first_steps"), phase_2=False, out=tmp_path / "run", progress=False):
        pass
    found = json_of("verify", tmp_path / "run")
    assert found["is_fine"] is True
    assert [Path(store["name"]).name.split("-")[0] for store in found["stores"]] == ["dag", "solution"]
    assert all(store["is_finished"] and store["n_arrays"] > 0 and store["damage"] == [] for store in found["stores"])
    (chunk, *_) = sorted(path for path in (tmp_path / "run" / "dag").rglob("c/*") if path.is_file())
    data = bytearray(chunk.read_bytes())
    data[len(data) // 2] ^= 1
    chunk.write_bytes(data)
    done = invoke("verify", tmp_path / "run", "--json")
    assert done.exit_code == 1
    damaged = json.loads(done.stdout)
    assert damaged["is_fine"] is False
    assert [bool(store["damage"]) for store in damaged["stores"]] == [True, False]


def test_verify_quietly_prints_only_damage(tmp_path: Path) -> None:
    enumerate_dag(load_world("first_steps"), store=tmp_path / "dag", progress=False).close()
    done = invoke("verify", tmp_path / "dag", "--quiet")
    assert (done.exit_code, done.output) == (0, "")
    shutil.rmtree(tmp_path / "dag" / "level_00001")
    done = invoke("verify", tmp_path / "dag", "--quiet")
    assert done.exit_code == 1
    assert done.stdout


def test_verify_of_nothing_ends_with_2(tmp_path: Path) -> None:
    done = invoke("verify", tmp_path / "nothing")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("empo-bi: ")
