"""What the explorer shows before its data are unpacked, or without JavaScript: the title and the first map."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import Page, pixels
from planning_worlds import TwoSteps
from test_explorer_in_browser import SETTING, browser  # noqa: F401 (a fixture)

from empo_bi import Solution, load_world, solve, write_report

EVIL = "</h1><img src=x onerror=alert(1)><b>&amp;"
# The data are not unpacked until somebody says so; shifts of what is shown already are summed up.
HELD = """
const unpack = Response.prototype.arrayBuffer;
let release;
const released = new Promise((resolve) => { release = resolve; });
Response.prototype.arrayBuffer = async function () { await released; return unpack.call(this); };
window.release = () => release();
window.shifted = 0;
const add = (list) => { for (const entry of list.getEntries()) window.shifted += entry.value; };
new PerformanceObserver(add).observe({type: "layout-shift", buffered: true});
"""


@pytest.fixture(scope="module")
def freeing() -> Iterator[Solution]:
    with solve(load_world("asymmetric_freeing", max_steps=3), SETTING, progress=False) as solution:
        yield solution


@pytest.fixture(scope="module")
def path(freeing: Solution, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("first") / "report.html"
    return write_report(freeing, place, max_states=50, title=EVIL, progress=False).path


def opened(browser: Any, path: Path, *, held: bool = False, **context: Any) -> Any:  # noqa: F811
    page = browser.new_context(**context).new_page()
    page.set_default_timeout(10_000)
    if held:
        page.add_init_script(HELD)
    page.goto(path.as_uri())
    return page


def box(page: Any, which: str) -> Any:
    return page.locator(which).bounding_box()


def test_title_and_map_are_there_without_javascript(browser: Any, path: Path, freeing: Solution) -> None:  # noqa: F811
    page = opened(browser, path, java_script_enabled=False)
    assert page.inner_text("#title") == page.title() == EVIL
    assert page.inner_text("#subtitle") == f"Asymmetric freeing: {freeing.dag.n_states:,} states on 4 levels, 3 agents"
    assert page.locator("#first-map").is_visible()
    assert page.get_attribute("#first-map", "alt") == freeing.world.describe(freeing.world.initial_state())
    shown = pixels(page.get_attribute("#first-map", "src"))
    np.testing.assert_array_equal(shown, freeing.world.render(freeing.world.initial_state(), tile=48))
    np.testing.assert_array_equal(shown, Page(path).picture(0))
    assert "please allow JavaScript" in page.inner_text("body")
    assert not page.locator("#slider").is_visible()
    assert page.locator("img").count() == 1
    page.context.close()


@pytest.mark.parametrize("width", [400, 1200])
def test_the_live_page_takes_over_without_a_shift(browser: Any, path: Path, width: int) -> None:  # noqa: F811
    page = opened(browser, path, held=True, viewport={"width": width, "height": 800})
    page.wait_for_selector("#first-map")
    before = {which: box(page, which) for which in ("#title", "#subtitle", "#board", ".tools")}
    assert box(page, "#first-map") == before["#board"]
    assert not page.locator("#picture").is_visible()
    assert not page.locator("#state").is_visible()
    page.evaluate("release()")
    page.wait_for_selector("html[data-ready]")
    assert {which: box(page, which) for which in before} == before
    assert box(page, "#picture") == before["#board"]
    assert page.locator("#first-map").count() == 0
    assert page.evaluate("new Promise((seen) => requestAnimationFrame(() => setTimeout(() => seen(window.shifted))))") == 0
    page.context.close()


def test_data_that_cannot_be_unpacked_leave_title_and_map(browser: Any, path: Path, tmp_path: Path) -> None:  # noqa: F811
    broken = tmp_path / "broken.html"
    text = path.read_text(encoding="utf-8")
    broken.write_text(text.replace('id="block">', 'id="block">AAAA'), encoding="utf-8")
    page = opened(browser, broken)
    page.wait_for_selector("#trouble:not([hidden])")
    assert page.inner_text("#title") == EVIL
    assert page.locator("#first-map").is_visible()
    page.context.close()


def test_a_world_without_a_map_shows_its_first_state(browser: Any, tmp_path: Path) -> None:  # noqa: F811
    with solve(TwoSteps(), progress=False) as solution:
        path = write_report(solution, tmp_path / "report.html", progress=False).path
        first = repr(solution.world.initial_state())
    for enabled in (False, True):
        page = opened(browser, path, java_script_enabled=enabled)
        assert page.inner_text("#plain") == first
        page.context.close()
