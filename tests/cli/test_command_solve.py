"""``empo-bi solve``: the numbers of the API, in words and in JSON."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any, NoReturn

import pytest
from command_line import invoke, json_of, run_command

from empo_bi import MemoryLimitError, Params, StoreError, load_world, solve
from empo_bi.analysis import value_scale
from empo_bi.runtime import progress
from empo_bi.solving.solve import SolveOptions

STEPS = ("asymmetric_freeing", "--steps", 4)


def test_the_json_has_the_numbers_of_the_api() -> None:
    world = load_world("asymmetric_freeing", max_steps=4)
    params = Params(beta_h=float("inf"), gamma_h=0.99, zeta=2, optimistic=True)
    with solve(world, params, precision="float64", progress=False) as solution:
        expected, n_states, n_bodies = solution.at(world.initial_state()), solution.dag.n_states, solution.dag.n_bodies
    given = ("-p", "beta_h=inf", "-p", "gamma_h=0.99", "--param", "zeta=2", "-p", "optimistic=true")
    found = json_of("solve", *STEPS, *given, "--precision", "float64", "--workers", 2)
    assert (found["world"], found["title"], found["steps"]) == ("asymmetric_freeing", "Asymmetric freeing", 4)
    assert (found["states"], found["bodies"], found["V_r"]) == (n_states, n_bodies, expected.V_r)
    assert found["X_h"] == {str(human): power for human, power in expected.power.items()}
    policy = {tuple(entry["actions"]): entry["probability"] for entry in found["robot_policy"]}
    assert policy == expected.robot_policy
    assert [entry["names"] for entry in found["robot_policy"]] == [["still"], ["left"], ["right"], ["forward"]]
    assert {tuple(entry["actions"]): entry["Q_r"] for entry in found["robot_policy"]} == expected.Q_r
    for human, rows in expected.goals.items():
        told = [(goal["goal"], goal["weight"], goal["V_h"], goal["V_h_e"]) for goal in found["goals"][str(human)]]
        assert told == [(repr(row.goal), row.weight, row.V_h, row.V_h_e) for row in rows]
    assert found["params"]["beta_h"] == "inf"
    assert (found["params"]["zeta"], found["params"]["optimistic"], found["params"]["rho_h"]) == (2, True, None)
    assert found["peak_bytes"] > 50e6
    assert found["seconds"] > 0
    assert found["where"] is None


def test_the_text_has_the_summary_and_the_policy_in_words() -> None:
    world = load_world("asymmetric_freeing", max_steps=8)
    with solve(world, Params(beta_r=50), progress=False) as solution:
        summary, policy = solution.summary(), solution.robot_policy(world.initial_state())
    lines = invoke("solve", "asymmetric_freeing", "--steps", 8, "-p", "beta_r=50").stdout.splitlines()
    assert lines[0] == summary
    assert lines[1].startswith(f"the robot at the start: forward {policy[(3,)]:.1%}, ")
    with solve(world, Params(beta_r=50), progress=False) as solution:
        assert lines[2:-1] == str(value_scale(solution)).splitlines()
    assert lines[-1] == (
        "next: add --out runs/asymmetric_freeing to keep this run; then empo-bi report runs/asymmetric_freeing "
        "--out report.html"
    )


def test_the_json_has_the_scale_and_so_has_that_of_show(tmp_path: Path) -> None:
    world = load_world("locked_in", max_steps=5)
    with solve(world, progress=False) as solution:
        expected = json.loads(json.dumps(value_scale(solution).to_json()))
    arguments = ("locked_in", "--steps", 5, "--out", tmp_path / "run")
    assert json_of("solve", *arguments)["scale"] == expected
    assert json_of("show", tmp_path / "run")["scale"] == expected
    assert [row["robot"] for row in expected["robots"]] == [
        "as computed", "does nothing", "acts at random", "takes its best action",
    ]  # fmt: skip
    assert json_of("solve", *arguments, "--no-scale")["scale"] is None
    assert "scale: 0% is" in invoke("show", tmp_path / "run").stdout
    assert "scale: 0% is" not in invoke("show", tmp_path / "run", "--no-scale").stdout


def test_the_last_line_says_what_to_type_next_and_that_works(tmp_path: Path) -> None:
    for beta_r, n in ((5, 1), (6, 2)):  # with two solutions in the folder, commands want to know which
        done = invoke("solve", "locked_in", "--steps", 4, "-p", f"beta_r={beta_r}", "--out", tmp_path / "my run")
        report, rollout = re.findall(r"empo-bi ((?:report|rollout) '[^']+')", done.stdout.splitlines()[-1])
        assert ("solution-" in report) == (n == 2)
        assert invoke(*shlex.split(report), "--out", tmp_path / f"{n}.html").exit_code == 0
        assert invoke(*shlex.split(rollout)).exit_code == 0
    assert "next:" not in invoke("solve", "locked_in", "--steps", 4, "--quiet").stdout


def test_what_takes_longer_is_compared_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empo_bi.analysis.scale.PASS_PAIRS", 100)
    arguments = ("solve", "locked_in", "--steps", 4)
    unasked = invoke(*arguments).stdout
    assert "V_r was not compared with that of other robots, which takes longer here; --scale does it" in unasked
    assert json_of(*arguments)["scale"] is None
    assert "The robot makes no difference here" in invoke(*arguments, "--scale").stdout


def test_a_solution_is_shown_though_there_is_no_memory_to_compare_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise MemoryLimitError("evaluating: too much")

    monkeypatch.setattr("empo_bi.analysis.scale.scale_within", refuse)
    done = invoke("solve", "locked_in", "--steps", 4)
    assert done.exit_code == 0
    assert "V_r was not compared with that of other robots, which takes more than the memory limit" in done.stdout


def test_without_robots_or_steps_nothing_is_compared() -> None:
    for arguments in (
        ("first_steps", "--steps", 3),
        ("locked_in", "--steps", 0),
        ("locked_in", "--steps", 3, "--phase-1-only"),
    ):
        assert "compared" not in invoke("solve", *arguments).stdout
        assert json_of("solve", *arguments)["scale"] is None


@pytest.mark.parametrize("optimistic", [False, True])
def test_phase_1_alone_tells_what_humans_hope_for(optimistic: bool) -> None:
    world = load_world("carousel", max_steps=4)
    with solve(world, Params(optimistic=optimistic), phase_2=False, progress=False) as solution:
        expected = solution.at(world.initial_state()).goals
    arguments = ("solve", "carousel", "--steps", 4, "--phase-1-only", "-p", f"optimistic={optimistic}".lower())
    found, text = json_of(*arguments), invoke(*arguments).stdout
    assert (found["V_r"], found["X_h"], found["robot_policy"]) == (None, {}, [])
    how = "helps the human" if optimistic else "works against the human"
    for human, rows in expected.items():
        assert [goal["V_h"] for goal in found["goals"][str(human)]] == [row.V_h for row in rows]
        average = sum(row.weight * row.V_h for row in rows)
        assert f"human {human}: the mean value of its goals is {average:.4g} if the robot {how}" in text


def test_a_world_of_no_steps_is_over() -> None:
    assert "the initial state is terminal" in invoke("solve", "asymmetric_freeing", "--steps", 0).stdout
    assert json_of("solve", "asymmetric_freeing", "--steps", 0)["robot_policy"] == []


def test_agents_can_change_their_roles() -> None:
    found = json_of("solve", *STEPS, "--humans", "0", "--robots", "2,1")
    assert list(found["X_h"]) == ["0"]
    assert [entry["actions"] for entry in found["robot_policy"]] == [[a, b] for a in range(4) for b in range(4)]
    assert "the robots at the start: " in invoke("solve", *STEPS, "--humans", "0", "--robots", "2,1").stdout


def test_results_are_kept_used_again_and_replaced(tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = ("--out", out, "--compression", "lz4", "--memory-limit", "4GB", "--max-states", 1000)
    first = json_of("solve", *STEPS, *options)
    assert first["where"] == str(out)
    (folder,) = out.glob("solution-*")
    assert b'"cname": "lz4"' in b"".join(file.read_bytes() for file in folder.rglob("zarr.json"))
    written = folder.stat().st_mtime_ns
    again = json_of("solve", *STEPS, "--out", out)
    assert {key: again[key] for key in again if key not in ("seconds", "peak_bytes")} == {
        key: first[key] for key in first if key not in ("seconds", "peak_bytes")
    }
    assert folder.stat().st_mtime_ns == written
    assert json_of("solve", *STEPS, "--out", out, "--overwrite")["V_r"] == first["V_r"]
    assert (out.glob("solution-*").__next__()).stat().st_mtime_ns != written
    other = invoke("solve", "asymmetric_freeing", "--steps", 5, "--out", out)
    assert other.exit_code == 2
    assert "overwrite" in other.stderr


def test_a_temporary_folder_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert "in a temporary folder" in invoke("solve", *STEPS, "--temporary").stdout
    assert [path for path in tmp_path.rglob("*") if path.is_file() and "solution" in str(path)] == []
    assert invoke("solve", *STEPS, "--temporary", "--out", tmp_path).exit_code == 2


def test_a_memory_profile_has_a_snapshot_every_so_many_levels(tmp_path: Path) -> None:
    options = ("--profile-memory", "--memory-snapshot-interval", 2, "--memory-limit", "3GB", "--min-free", 0)
    assert invoke("solve", *STEPS, "--out", tmp_path, *options).exit_code == 0
    report = (tmp_path / "memory_profile.txt").read_text(encoding="utf-8")
    assert "Memory at 5 moments" in report  # 2 * 5 levels
    assert "limit: 3 GB" in report


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "zetta=2"], "unknown parameter 'zetta'. Did you mean 'zeta' or 'eta'?"),
        (["-p", "q=2"], "Known parameters: beta_h, gamma_h"),
        (["-p", "zeta"], "give NAME=VALUE, such as zeta=2"),
        (["-p", "zeta=two"], "zeta=two; give a number"),
        (["-p", "zeta=-1"], "give a positive number"),
        (["-p", "xi=inf"], "give a finite number"),
        (["-p", "zeta=1", "-p", "zeta=2"], "--param zeta is given twice"),
        (["-p", "optimistic=maybe"], "give true or false"),
        (["-p", "believed_others_policy=f"], "is a function; give it in Python"),
        (["-p", "gamma_h=0.9", "-p", "rho_h=0.1"], "not by both"),
        (["--memory-limit", "lots"], "give a size such as '2GB'"),
        (["--memory-limit", "12"], "--memory-limit"),
        (["--workers", "0"], "workers=0"),
        (["--compression", "12"], "a level from 0 (off) to 9"),
        (["--humans", "0,x"], "several separated by commas"),
        (["--humans", "9"], "there is no agent 9"),
        (["--steps", "-3"], "max_steps"),
        (["--precision", "float8"], "float16"),
        (["--max-states", "0"], "--max-states"),
        (["--min-free", "1"], "--min-free"),
        (["--out", "runs.zip"], "results go to a folder"),
    ],
)
def test_wrong_options_end_with_2_and_are_explained(arguments: list[str], message: str) -> None:
    done = invoke("solve", "asymmetric_freeing", *arguments)
    assert done.exit_code == 2
    assert message in re.sub(r"\s+", " ", done.stderr)
    assert done.stdout == ""


def test_progress_goes_to_stderr_in_plain_lines_and_quiet_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LINE_AFTER", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    done = invoke("solve", *STEPS, "--json", "--memory-limit", "4GB")
    assert json.loads(done.stdout)["steps"] == 4
    assert "\r" not in done.stderr
    lines = done.stderr.splitlines()
    assert [line for line in lines if not line.startswith(("empo_bi: ", "empo-bi: warning: no human can attain"))] == []
    at_levels = [line for line in lines if re.match(r"empo_bi: solve: level \d \(\d of 5 done\), ", line)]
    assert len(at_levels) >= 5
    assert all(re.search(r"states(, [\d.,]+ states/s)?, 0\.\d\d of 4\.00 GB(, \d+ s left)?$", line) for line in at_levels)
    assert sum(line.endswith(" s left") for line in at_levels) >= 3, "once it can be told"
    assert any(line.startswith("empo_bi: enumerate: level 4 (5 of 5 done)") for line in lines)
    quiet = invoke("solve", *STEPS, "--json", "--quiet")
    assert quiet.stderr == ""
    assert json.loads(quiet.stdout)["V_r"] == json.loads(done.stdout)["V_r"]


def test_ctrl_c_ends_with_130_and_the_same_command_continues(tmp_path: Path) -> None:
    """A real signal in a real process, when level 2 is being solved."""
    press = """
import os, signal
from empo_bi.sweep.backward_pass import Sweep
signal.signal(signal.SIGINT, signal.default_int_handler)
level = Sweep._level
def pressed(self, t, *arguments):
    level(self, t, *arguments)
    if t == 2:
        os.kill(os.getpid(), signal.SIGINT)
Sweep._level = pressed
"""
    arguments = ("solve", "asymmetric_freeing", "--steps", 5, "--out", tmp_path / "run", "--json")
    stopped = run_command(*arguments, code=press)
    assert (stopped.returncode, stopped.stdout) == (130, "")
    assert f"interrupted. Finished levels are kept in {tmp_path / 'run'}; the same command continues" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    again = invoke(*arguments)
    assert json.loads(again.stdout)["V_r"] == json_of("solve", "asymmetric_freeing", "--steps", 5)["V_r"]


def test_ctrl_c_while_robots_are_compared_says_that_the_run_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def press(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("empo_bi.analysis.scale.scale_within", press)
    done = invoke("solve", "locked_in", "--steps", 3, "--out", tmp_path / "run")
    assert done.exit_code == 130
    assert "the robot at the start" in done.stdout
    assert f"interrupted. The run is finished and kept in {tmp_path / 'run'}; --no-scale leaves out" in done.stderr
    monkeypatch.undo()
    assert invoke("show", tmp_path / "run").exit_code == 0


def test_every_option_reaches_the_api(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: dict[str, Any] = {}

    def note(world: Any, params: Params, **options: Any) -> NoReturn:
        given.update(options, world=world, params=params)
        raise StoreError("that is enough")

    monkeypatch.setattr("empo_bi.solving.solve.solve", note)
    arguments = [
        *("solve", "first_steps", "--steps", 3, "--out", tmp_path, "-p", "xi=3", "--precision", "float64", "--workers", 3),
        *("--memory-limit", "2GB", "--max-states", 77, "--overwrite", "--compression", 7, "--phase-1-only", "--quiet"),
        *("--humans", "0", "--robots", "1,2", "--min-free", 0.25, "--profile-memory", "--memory-snapshot-interval", 4),
        *("--set", "stumble_probability=0.75"),
    ]
    assert invoke(*arguments).exit_code == 3
    monitor, profiler = given.pop("monitor"), given.pop("memory_profile")
    assert (monitor.min_free_fraction, monitor.verbose) == (0.25, False)
    assert (profiler.interval, profiler.limit) == (4, "2GB")
    world, params = given.pop("world"), given.pop("params")
    assert (world.max_steps, world.world_spec.stumble_probability, params) == (3, 0.75, Params(xi=3))
    assert given == {
        "human_agent_indices": [0], "robot_agent_indices": [1, 2], "possible_goal_generator": None,
        "human_policy_prior": None, "phase_2": False, "out": str(tmp_path),
        "precision": "float64", "compression": 7, "memory_limit": "2GB", "workers": 3, "overwrite": True, "max_states": 77,
        "progress": False,
    }  # fmt: skip
    options = set(SolveOptions.__annotations__) - {"monitor", "memory_profile"}
    only_in_python = {"dag", "level_fct", "start", "stop"}
    assert options - set(given) == only_in_python
    invoke("solve", "first_steps", "--temporary")
    assert (given["out"], given["progress"], given["compression"]) == (True, True, True)
