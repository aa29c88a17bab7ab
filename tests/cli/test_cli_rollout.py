"""``empo-bi rollout``: films, and episodes in words with the numbers of the API."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke, json_of
from PIL import Image

from empo_bi import Params, Solution, load_world, open_solution, probability_by_time, run_batch, solve


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "freeing"
    params = Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=20)
    solve(load_world("asymmetric_freeing", max_steps=6), params, out=folder, progress=False).close()
    return folder


@pytest.fixture
def solution(run: Path) -> Iterator[Solution]:
    with open_solution(run) as found:
        yield found


# --- films ------------------------------------------------------------------------------------------------------------


def test_a_film_is_written_with_all_episodes(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.gif"
    done = invoke("rollout", run, "--out", out, "--episodes", 2, "--seed", 4, "--tile", 16, "--pace", 0.3)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"{out}: 2 episodes, {out.stat().st_size:,} bytes\n"
    with Image.open(out) as gif:
        assert (gif.n_frames, gif.info["duration"]) == (14, 300)  # type: ignore[attr-defined]


def test_the_film_is_that_of_the_api(run: Path, solution: Solution, tmp_path: Path) -> None:
    goal = solution.goals[1][12]
    expected = solution.rollouts(1, 7, {1: goal}).save(tmp_path / "expected.gif", tile=20)
    assert (
        invoke("rollout", run, "--out", tmp_path / "o.gif", "--seed", 7, "--tile", 20, "--goal", "1=8,2", "-q").stdout == ""
    )
    assert (tmp_path / "o.gif").read_bytes() == expected.read_bytes()
    plain = solution.rollouts(1, 7).save(tmp_path / "plain.gif", tile=20, overlay=False)
    invoke("rollout", run, "--out", tmp_path / "p.gif", "--seed", 7, "--tile", 20, "--plain")
    assert (tmp_path / "p.gif").read_bytes() == plain.read_bytes()


@pytest.mark.parametrize("suffix", [".mp4", ".png"])
def test_videos_and_pictures_of_all_steps(run: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"run{suffix}"
    given = ("--out", out, "--episodes", 2, "--columns", 2, "--tile", 16, "--pace", 0.1)
    content = json_of("rollout", run, *given)
    assert (content["out"], content["episodes"], content["steps"]) == (str(out), 2, [])
    assert out.read_bytes()[4:8] == b"ftyp" if suffix == ".mp4" else out.read_bytes()[1:4] == b"PNG"


def test_a_file_is_replaced_only_by_force(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run.gif"
    out.write_text("mine")
    done = invoke("rollout", run, "--out", out)
    assert done.exit_code == 2
    assert "(--force)" in done.stderr
    assert out.read_text() == "mine"
    assert invoke("rollout", run, "--out", out, "--force", "--tile", 16).exit_code == 0
    assert out.read_bytes()[:3] == b"GIF"


def test_a_missing_library_is_named(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = importlib.import_module

    def without(module: str, package: str | None = None) -> Any:
        if module == "imageio":
            raise ImportError("No module named 'imageio'")
        return honest(module, package)

    monkeypatch.setattr(importlib, "import_module", without)
    done = invoke("rollout", run, "--out", tmp_path / "run.mp4")
    assert done.exit_code == 2
    assert "pip install 'empo-bi[movies]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


# --- in words ---------------------------------------------------------------------------------------------------------


def test_the_json_has_the_numbers_of_the_api(run: Path, solution: Solution) -> None:
    goal = solution.goals[1][12]
    for pursued, given in (({}, ()), ({1: goal}, ("--goal", "1=12"))):
        found = json_of("rollout", run, "--episodes", 40, "--seed", 3, *given)
        rollouts = solution.rollouts(40, 3, pursued)
        assert found["pursued"] == {str(human): "8,2" for human in pursued}
        assert found["mean_return"] == rollouts.return_N.mean()
        assert found["standard_error"] == pytest.approx(np.std(rollouts.return_N, ddof=1) / np.sqrt(40))
        assert found["V_r"] == (None if pursued else solution.values.V_r[0][0])
        for g, row in enumerate(found["goals"]):
            h, g = divmod(g, 18)
            assert row["human"] == solution.humans[h]
            assert row["attained"] == rollouts.attained_NHG[:, h, g].mean()
            goal_of_row = solution.goals[solution.humans[h]][g]
            assert row["probability"] == probability_by_time(solution, goal_of_row, goals=pursued)[-1]
        assert len(found["steps"]) == 40
        for i in (0, 39):
            for k, (step, state) in enumerate(zip(found["steps"][i], rollouts.states(i), strict=True)):
                names = [solution.world.action_names[a] for a in rollouts.action_NTI[i, k - 1]] if k else []
                assert list(step["actions"].values()) == names
                assert step["X_h"] == {str(human): x for human, x in solution.at(state).power.items()}
                for human in solution.humans:
                    x, y, *_ = state[1][human]
                    assert step["attained"][str(human)] == [f"{x},{y}"], "in this world, every cell is a goal"


def test_the_text_tells_steps_goals_and_the_return(run: Path, solution: Solution) -> None:
    lines = invoke("rollout", run, "--episodes", 50, "--seed", 1).stdout.splitlines()
    rollouts = solution.rollouts(50, 1)
    assert lines[0] == str(solution.world)
    for i in range(3):
        first = lines.index(f"episode {i}") + 1
        assert " ".join(lines[first].split()) == "step agent 0 agent 1 agent 2 probability X_0 X_1 attained"
        for k, state in enumerate(rollouts.states(i)):
            words = lines[first + 1 + k].split()
            assert words[0] == str(k)
            if k:
                assert words[1:4] == [solution.world.action_names[a] for a in rollouts.action_NTI[i, k - 1]]
            if k < 6:
                power = [f"{x:.4g}" for x in solution.at(state).power.values()]
                assert words[5 if k else 1 :][:2] == power
    assert "episode 3" not in lines
    assert "and 47 more" in lines
    mean, error = rollouts.return_N.mean(), rollouts.return_N.std(ddof=1) / np.sqrt(50)
    value = solution.values.V_r[0][0]
    assert lines[-1] == (
        f"the robot's return over 50 episodes: {mean:.6g} (standard error {error:.2g}); its expectation V_r is {value:.6g}"
    )
    exact = probability_by_time(solution, solution.goals[1][12])[-1]
    share = rollouts.attained_NHG[:, 1, 12].mean()
    assert f"    1  8,2               {share:>8.4f}  {exact:.4f}" in lines


def test_one_episode_has_no_standard_error_and_a_goal_no_expected_return(run: Path) -> None:
    lines = invoke("rollout", run, "--goal", "1=8,4").stdout.splitlines()
    assert lines[1] == "human 1 wants 8,4"
    assert "standard error" not in lines[-1]
    assert "V_r" not in lines[-1]


def test_a_run_of_a_batch_is_opened(tmp_path: Path) -> None:
    result = run_batch({"worlds": "first_steps", "steps": 3}, out=tmp_path / "batch", progress=False)
    (folder,) = (tmp_path / "batch" / "runs").iterdir()
    assert len(result.table) == 1
    found = json_of("rollout", folder, "--seed", 2)
    assert len(found["steps"][0]) == 4


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--out", "run.avi"), "ends in .gif, .mp4, .png"),
        (("--out", "nowhere/run.gif"), "the folder nowhere does not exist"),
        (("--goal", "8,2"), "humans 0, 1 have it; give HUMAN=GOAL, such as 1=8,2"),
        (("--goal", "x=8,2"), "'x' is not the number of an agent"),
        (("--goal", "2=8,2"), "agent 2 is not among the humans [0, 1]"),
        (("--goal", "1=8,9"), "human 1 has no such goal; its goals, numbered from 0, are 1,2; 2,1;"),
        (("--goal", "1=99"), "human 1 has no such goal"),
        (("--goal", "1=8,2", "--goal", "1=8,3"), "given twice"),
        (("--episodes", "0"), "not in the range"),
        (("--seed", "-1"), "not in the range"),
        (("--tile", "2"), "not in the range"),
        (("--pace", "0"), "not in the range"),
    ],
)
def test_wrong_arguments_end_with_2(run: Path, given: tuple[str, ...], message: str) -> None:
    done = invoke("rollout", run, *given)
    assert done.exit_code == 2, done.output
    assert message in " ".join(done.stderr.split())


def test_a_run_that_is_not_there_ends_with_2_and_one_without_robot_policy_too(tmp_path: Path) -> None:
    done = invoke("rollout", tmp_path / "nothing")
    assert done.exit_code == 2
    assert "no solution is there" in done.stderr
    folder = tmp_path / "alone"
    solve(load_world("first_steps", max_steps=2), phase_2=False, out=folder, progress=False).close()
    done = invoke("rollout", folder)
    assert done.exit_code == 2
    assert "phase 2 was not solved" in done.stderr


def test_goals_are_given_by_cell_corners_number_or_print(tmp_path: Path) -> None:
    solve(load_world("carousel", max_steps=2), out=tmp_path / "c", progress=False).close()
    for text in ("1,1,3,1", "1,1, 3,1", "4", "ReachRectangleGoal(agent 0, 1,1,3,1)"):
        assert json_of("rollout", tmp_path / "c", "--goal", f"0={text}")["pursued"] == {"0": "1,1 to 3,1"}
    assert json_of("rollout", tmp_path / "c", "--goal", "0=3,1,3,1")["pursued"] == {"0": "3,1"}
