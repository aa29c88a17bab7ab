"""What notebooks show: pictures with the agents' numbers, tables, films, and the explorer in a frame."""

from __future__ import annotations

import base64
import html
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from planning_worlds import TwoSteps

from empo_bi import Params, enumerate_dag, load_world, plan, solve, write_report
from empo_bi.analysis import compare, displays, html_parts
from empo_bi.errors import InvalidStateError

SCRIPT = "<script>alert('x')</script>"
HOSTILE = {
    "map": ["We We We We We", "We Ay .. Ae We", "We We We We We"],
    "max_steps": 3,
    "metadata": {"name": SCRIPT},
    "possible_goals": [{"name": f"{SCRIPT} {x}", "cells": [[x, 1]]} for x in (1, 2, 3)],
}


class Reader(HTMLParser):
    """Tags that are opened, text, and whether all tags are closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text, self.open = "", list[str]()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + " "


@pytest.fixture(scope="module")
def solution() -> Any:
    return solve(load_world("asymmetric_freeing", max_steps=4), Params(zeta=2, gamma_h=0.9), progress=False)


def test_a_world_is_a_picture_with_the_numbers_of_its_agents() -> None:
    world = load_world("asymmetric_freeing")
    shown = Reader(world._repr_html_() or "")
    assert shown.tags.count("image") == 1
    assert shown.tags.count("circle") == len(world.agents) == 3
    assert not shown.open
    for words in ("human", "robot", "yellow", "grey", world.world_spec.name):
        assert words in shown.text
    bundle = world._repr_mimebundle_()
    assert bundle["image/png"].startswith(b"\x89PNG")
    assert bundle["text/plain"] == repr(world)


def test_agents_on_one_cell_have_their_numbers_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_world("asymmetric_freeing")
    monkeypatch.setattr(type(world), "describe", lambda *_: "a state that other kinds of worlds may have")
    step, agents, *things = world.initial_state()
    merged = html_parts._numbered(world, (step, (agents[0], agents[0], agents[2]), *things), b"")
    places = re.findall(r'cx="([\d.]+)"', merged)
    assert len(places) == len(set(places)) == 3


def test_a_state_is_shown_with_its_words() -> None:
    world = load_world("asymmetric_freeing")
    state = enumerate_dag(world.with_horizon(2), progress=False).states(1)[5]
    view = world.show(state)
    assert str(view) == repr(view) == world.describe(state)
    assert html.escape(world.describe(state).splitlines()[-1]) in view._repr_html_()
    assert view._repr_html_() != world.show()._repr_html_()
    with pytest.raises(InvalidStateError):
        world.show((0, 1, 2))


def test_a_solution_shows_its_start_parameters_and_goals(solution: Any) -> None:
    shown = Reader(solution._repr_html_())
    report = solution.at(solution.dag.states(0)[0])
    for words in (
        f"{report.V_r:.6g}",
        "gamma_h 0.9",
        "zeta 2",
        "V_h, if the robot",
        "V_h^e, with the robot",
        f"power {report.power[0]:.4g}",
    ):
        assert words in shown.text
    assert "circle" in shown.tags
    assert "and 6 more" in shown.text  # of 18 goals of each human
    assert f"{report.U_r:.6g}" in Reader(report._repr_html_() or "").text


def test_phase_1_alone_is_shown_as_well() -> None:
    alone = solve(load_world("basics/first_steps", max_steps=3), phase_2=False, progress=False)
    shown = Reader(alone._repr_html_() or "")
    assert "V_r" not in shown.text
    assert "human 0" in shown.text
    assert "nan" not in shown.text


def test_a_closed_solution_is_shown_as_text(tmp_path: Path) -> None:
    closed = solve(load_world("basics/first_steps", max_steps=3), out=tmp_path, progress=False)
    closed.close()
    assert closed._repr_html_() is None
    assert "can no longer be read" in repr(closed)


def test_a_dag_shows_how_its_levels_grow(solution: Any) -> None:
    shown = Reader(solution.dag._repr_html_())
    assert shown.tags.count("rect") == 5
    assert f"{solution.dag.n_states:,}" in shown.text


def test_episodes_are_a_film(solution: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    episodes = solution.rollouts(3)
    (film,) = re.findall(r'src="data:image/gif;base64,([^"]+)"', episodes._repr_html_())
    assert base64.b64decode(film).startswith(b"GIF89a")
    monkeypatch.setattr(displays, "MOST_FRAMES", 3)
    assert episodes._repr_html_() is None  # a notebook is no place for long films
    monkeypatch.undo()
    monkeypatch.setattr("empo_bi.analysis.film.import_optional", _missing)
    assert episodes._repr_html_() is None


def _missing(*_: str) -> None:
    raise ImportError("this needs PIL")


def test_a_world_without_pictures_has_tables_and_no_film() -> None:
    solved = solve(TwoSteps(), progress=False)
    shown = Reader(solved._repr_html_() or "")
    assert "image" not in shown.tags
    assert "V_r at the start" in shown.text
    assert solved.rollouts(2)._repr_html_() is None


def test_comparisons_and_plans_are_tables(solution: Any) -> None:
    other = solve(solution.world, Params(zeta=1, gamma_h=0.9), dag=solution.dag, progress=False)
    shown = Reader(compare(solution, other)._repr_html_())
    assert "zeta 2 → 1; states count by how likely they are reached" in shown.text
    assert shown.tags.count("tr") == 1 + 4
    planned = Reader(plan(load_world("basics/first_steps"), steps=[3, 5], progress=False)._repr_html_())
    assert planned.tags.count("tr") == 1 + 2
    assert "Recommended: solve(world, params" in planned.text


def test_texts_of_files_stay_texts(tmp_path: Path) -> None:
    """docs/security.md: names are text, never HTML or script."""
    world = load_world(HOSTILE)
    solved = solve(world, out=tmp_path, progress=False)
    other = solve(world, Params(zeta=2), out=tmp_path, progress=False)
    shown = [world, world.show(), solved, solved.dag, solved.at(world.initial_state()), compare(solved, other)]
    shown += [plan(world, steps=[2], progress=False), solved.rollouts(1)]
    pages = [thing._repr_html_() for thing in shown]
    for page in filter(None, pages):
        assert "script" not in Reader(page).tags
    assert SCRIPT in Reader(pages[2]).text  # it is there, as text
    assert html_parts.escaped("a\x1b[31m<b>") == "a\\x1b[31m&lt;b&gt;"


def test_the_explorer_in_a_notebook_is_the_page_of_the_report(solution: Any, tmp_path: Path) -> None:
    found = solution.explore(height=500, progress=False)
    written = write_report(solution, tmp_path / "report.html", progress=False)
    assert found.page == written.path.read_text(encoding="utf-8")
    assert (found.embedded, found.reached) == (written.embedded, written.reached)
    shown = found._repr_html_()
    assert Reader(shown).tags == ["iframe"]
    (inside,) = re.findall(r'srcdoc="([^"]*)"', shown)
    assert html.unescape(inside) == found.page
    assert 'sandbox="allow-scripts"' in shown  # and not "allow-same-origin": it cannot reach the notebook
    assert "height: 500px" in shown
    assert len(solution.explore(max_states=3, title="Mine", progress=False).page) < len(found.page)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"height": 5}, "height=5; give the height"), ({"max_states": 0}, "max_states=0"), ({"title": 7}, "title")],
)
def test_wrong_choices_are_refused(wrong: dict[str, Any], said: str, solution: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        solution.explore(progress=False, **wrong)


NOTEBOOK = """
import empo_bi
world = empo_bi.load_world("basics/first_steps", max_steps=3); world
###
world.show(world.initial_state())
###
solution = empo_bi.solve(world); solution
###
solution.at(world.initial_state())
###
solution.dag
###
solution.rollouts(2)
###
solution.explore()
"""


def test_a_notebook_shows_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="notebooks are run with the extra 'notebooks'")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("PIL")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in NOTEBOOK.split("###")])
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    results = [
        [output["data"] for output in cell["outputs"] if output["output_type"] == "execute_result"]
        for cell in notebook.cells
    ]
    assert [len(shown) for shown in results] == [1] * 7
    htmls = [shown[0].get("text/html", "") for shown in results]
    marks = ["<circle", "<circle", "V_r at the start", "if the robot works", "<rect", "data:image/gif", "<iframe sandbox"]
    for mark, found in zip(marks, htmls, strict=True):
        assert mark in found
    assert "image/png" in results[0][0]
