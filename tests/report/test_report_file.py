"""The file of a report: names that look like HTML, what is there already, the command."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke, json_of
from pages import Page
from planning_worlds import TwoSteps

from empo_bi import Params, Solution, load_world, solve, write_report
from empo_bi.report.page import safe_json

EVIL = "</script><script>alert(1)</script><!-- & \u2028 %%BLOCK%%"
CELL = "map: |\n  We We We We\n  We Ay Ae We\n  We We We We\nmax_steps: 2\npossible_goals: ['1,1', '2,1']\n"


@dataclass(frozen=True)
class Named:
    """A goal whose name is not harmless."""

    place: int

    def is_achieved(self, state: Any) -> int:
        return int(state[1] == self.place)

    def __repr__(self) -> str:
        return f"{EVIL}{self.place}"


class NamedGoals:
    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Named, float]]:
        yield Named(0), 0.5
        yield Named(1), 0.5


@pytest.fixture(scope="module")
def solution() -> Iterator[Solution]:
    with solve(load_world("basics/first_steps", max_steps=3), progress=False) as found:
        yield found


def scripts(text: str) -> int:
    return len(re.findall(r"<script", text, flags=re.IGNORECASE))


def test_names_that_look_like_html_stay_names(solution: Solution, tmp_path: Path) -> None:
    plain = Page(write_report(solution, tmp_path / "plain.html", progress=False).path)
    world = TwoSteps()
    world.possible_goal_generator = NamedGoals()
    with solve(world, progress=False) as named:
        page = Page(write_report(named, tmp_path / "evil.html", title=EVIL, progress=False).path)
    assert scripts(page.text) == scripts(plain.text) == 3
    assert page.head["title"] == EVIL
    assert page.head["goals"][0][1]["name"] == f"{EVIL}1"
    assert "<title>&lt;/script&gt;&lt;script&gt;alert(1)" in page.text


def test_a_title_in_a_world_file_stays_a_title(tmp_path: Path) -> None:
    world = load_world(CELL + "metadata: {name: '<script>alert(1)</script>'}\n")
    with solve(world, progress=False) as found:
        page = Page(write_report(found, tmp_path / "report.html", progress=False).path)
    assert page.head["title"] == "<script>alert(1)</script>"
    assert scripts(page.text) == 3


def test_json_for_a_page_has_nothing_that_ends_a_script() -> None:
    text = safe_json({"a": [EVIL, float("inf"), float("nan")]})
    assert not set("<>&\u2028") & set(text)
    assert text.endswith('"inf", null]}')


def test_the_page_forbids_itself_to_load_anything(solution: Solution, tmp_path: Path) -> None:
    text = Page(write_report(solution, tmp_path / "report.html", progress=False).path).text
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:" in text
    assert re.findall(r"""(?:src|href)=["'](?!#|data:image/png;base64,)""", text) == []
    assert set(re.findall(r"https?://[^\"'` ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "innerHTML" not in text


def test_the_same_solution_makes_the_same_bytes(solution: Solution, tmp_path: Path) -> None:
    one, two = (write_report(solution, tmp_path / name, progress=False) for name in ("one.html", "two.html"))
    assert one.path.read_bytes() == two.path.read_bytes()
    assert one.bytes == one.path.stat().st_size


def test_a_file_that_is_there_is_kept_unless_told_otherwise(solution: Solution, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_report(solution, path, progress=False)
    assert path.read_text() == "mine"
    write_report(solution, path, overwrite=True, progress=False)
    assert len(Page(path)) > 1
    assert os.listdir(tmp_path) == ["report.html"]


def test_what_cannot_be_is_refused_with_what_to_do(solution: Solution, tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="give the name of a file"):
        write_report(solution, tmp_path)
    with pytest.raises(FileNotFoundError, match="create it first"):
        write_report(solution, tmp_path / "nowhere" / "report.html")
    with pytest.raises(ValueError, match="from 0 to 1"):
        write_report(solution, tmp_path / "report.html", min_probability=1.5)
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match="at least 1"):
            write_report(solution, tmp_path / "report.html", max_states=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="give a Solution"):
        write_report(solution.world, tmp_path / "report.html")
    with (
        solve(solution.world, phase_2=False, progress=False) as humans_only,
        pytest.raises(ValueError, match="solve both phases"),
    ):
        write_report(humans_only, tmp_path / "report.html")
    assert os.listdir(tmp_path) == []


def test_a_world_with_no_steps_has_a_report_of_one_state(tmp_path: Path) -> None:
    with solve(load_world(CELL, max_steps=0), progress=False) as ended:
        page = Page(write_report(ended, tmp_path / "report.html", progress=False).path)
    assert (len(page), page.data["goes_on"].tolist()) == (1, [0])


def test_the_command_writes_what_the_function_writes(tmp_path: Path) -> None:
    world = load_world("basics/first_steps", max_steps=3)
    run = tmp_path / "run"
    with solve(world, Params(zeta=2), out=run, progress=False) as kept:
        write_report(kept, tmp_path / "function.html", title="Mine", max_states=20, progress=False)
    told = json_of("report", run, "--out", tmp_path / "command.html", "--title", "Mine", "--max-states", 20)
    assert (tmp_path / "command.html").read_bytes() == (tmp_path / "function.html").read_bytes()
    page = Page(tmp_path / "command.html")
    assert told["embedded"] == len(page)
    assert told["states"] == kept.dag.n_states
    assert told["bytes"] == (tmp_path / "command.html").stat().st_size
    again = invoke("report", run, "--out", tmp_path / "command.html")
    assert again.exit_code == 2
    assert "--force" in again.stderr
    done = invoke("report", run, "--out", tmp_path / "command.html", "--force", "--min-probability", 0.01)
    assert done.exit_code == 0
    assert "command.html: " in done.stdout
    assert Page(tmp_path / "command.html").head["embedded"]["min_probability"] == 0.01
    assert invoke("report", run, "--out", tmp_path / "command.html", "--force", "--quiet").output == ""


def test_the_command_complains_about_what_is_not_there(tmp_path: Path) -> None:
    nothing = invoke("report", tmp_path / "nothing", "--out", tmp_path / "report.html")
    assert nothing.exit_code == 2
    assert "no solution is there" in nothing.stderr
    with solve(load_world(CELL), phase_2=False, out=tmp_path / "run", progress=False):
        pass
    humans_only = invoke("report", tmp_path / "run", "--out", tmp_path / "report.html")
    assert humans_only.exit_code == 2
    assert "solve both phases" in humans_only.stderr
    assert not (tmp_path / "report.html").exists()
