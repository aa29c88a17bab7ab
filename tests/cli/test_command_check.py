"""``empo-bi check``: the same as ``advise``, with the mistakes of the file, for people and for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import invoke, json_of

from empo_bi import Params, advise, load_world

GOOD = ("-p", "gamma_h=0.95", "-p", "beta_h=50")
MINE = """\
map: |
  We We We We We We We
  We Ay .. .. .. .. We
  We We We We We We We
  We .. Ab .. .. .. We
  We We We We We We We
max_steps: 3
possible_goals: ["5,1"]
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.yaml"
    file.write_text(MINE, encoding="utf-8")
    return file


def test_a_world_without_mistakes_ends_with_0() -> None:
    done = invoke("check", "locked_in", *GOOD)
    assert done.exit_code == 0, done.output
    assert "no probable mistakes" in done.stdout
    assert "agent 1: robot, grey" in done.stdout
    assert done.stdout.startswith(str(advise("locked_in", Params(gamma_h=0.95, beta_h=50))))


def test_mistakes_are_listed_and_end_with_1(mine: Path) -> None:
    done = invoke("check", mine, *GOOD)
    assert (done.exit_code, done.stderr) == (1, "")
    assert "3 probable mistakes:" in done.stdout
    for text in (
        "mine.yaml:8: possible_goals: no goal covers the cells", "agent 1 is blue", "write 'Ae' instead of 'Ab'",
        "the nearest goal of human 0 takes 4 steps at least; max_steps is 3",
    ):  # fmt: skip
        assert text in done.stdout
    assert "max_steps is 3" not in invoke("check", mine, *GOOD, "--steps", 8).stdout
    assert "is blue" not in invoke("check", mine, *GOOD, "--robots", 1).stdout
    assert "is blue" not in invoke("check", mine, *GOOD, "--phase-1-only").stdout
    assert invoke("check", mine, "--strict").exit_code == 2


def test_parameters_are_those_of_solve() -> None:
    done = invoke("check", "first_steps")
    assert done.exit_code == 1
    assert "so humans dawdle. With gamma_h=0.95 and beta_h=50 they do not" in done.stdout
    assert invoke("check", "first_steps", *GOOD).exit_code == 0
    assert invoke("check", "first_steps", "-p", "gama_h=1").exit_code == 2
    assert "there is no agent 9" in invoke("check", "first_steps", "--humans", 9).stderr


def test_the_json_has_what_the_api_has() -> None:
    found = json_of("check", "side_by_side", *GOOD)
    expected = advise(load_world("side_by_side"), Params(gamma_h=0.95, beta_h=50))
    assert (found["is_fine"], found["agents"], found["examined"]) == (True, expected.agents, expected.examined)
    assert found["notes"] == expected.notes == ["goals that take more than the 3 steps there are: 3,2 (4 steps)"]
    done = invoke("check", "first_steps", "--json")
    assert done.exit_code == 1
    (hint,) = json.loads(done.stdout)["hints"]
    assert (hint["about"], hint["remedy"]) == ("parameters", "With gamma_h=0.95 and beta_h=50 they do not")


def test_bush_worlds_are_checked_as_well() -> None:
    done = invoke("check", "trailblazer", *GOOD)
    assert done.exit_code == 0, done.output
    assert "human, yellow, at" in done.stdout


def test_solve_warns_on_stderr_unless_it_is_quiet(tmp_path: Path) -> None:
    done = invoke("solve", "first_steps")
    assert done.exit_code == 0
    assert "empo-bi: warning: at the start, humans hardly care which action to take" in done.stderr
    assert invoke("solve", "first_steps", "--quiet").stderr == ""
    assert "warning" not in invoke("solve", "first_steps", *GOOD).stderr
