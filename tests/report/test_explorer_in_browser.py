"""The explorer in a real browser: it loads, moves about, shows the solution's numbers, and asks nobody for anything."""

from __future__ import annotations

import ast
import base64
import io
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import Page
from planning_worlds import At, TwoSteps

from empo_bi import Params, Solution, load_world, solve, write_report

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip(
        "no browser (chromium, chromium-browser, google-chrome): the explorer is not tested", allow_module_level=True
    )
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the explorer is not tested")

ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SETTING = Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=50)


@dataclass
class Tab:
    """A page in the browser, with what it said and asked for."""

    page: Any
    file: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def state(self) -> int:
        return int(self.page.evaluate("document.documentElement.dataset.state"))

    def numbers(self, within: str = "body") -> dict[str, float]:
        """Everything in an element that has a name and a number, exactly; the same name has the same number everywhere."""
        script = "(all) => all.map((one) => [one.dataset.name, one.dataset.value])"
        found: dict[str, float] = {}
        for name, value in self.page.eval_on_selector_all(f"{within} .num", script):
            assert found.setdefault(name, float(value)) == pytest.approx(float(value), nan_ok=True)
        return found

    def go(self, n: int) -> None:
        self.page.evaluate(f"location.hash = '#s={n}'")
        self.page.wait_for_selector(f'html[data-state="{n}"]')

    def click_cell(self, x: int, y: int) -> None:
        box, grid = self.page.locator("#board").bounding_box(), self.file.head["grid"]
        position = {"x": (x + 0.5) * box["width"] / grid["width"], "y": (y + 0.5) * box["height"] / grid["height"]}
        self.page.locator("#board").click(position=position)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def freeing() -> Iterator[Solution]:
    with solve(load_world("asymmetric_freeing", max_steps=6), SETTING, progress=False) as solution:
        yield solution


@pytest.fixture(scope="module")
def path(freeing: Solution, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("explorer") / "report.html"
    return write_report(freeing, place, max_states=300, progress=False).path


def opened(browser: Any, path: Path, anchor: str = "", **context: Any) -> Tab:
    page = browser.new_context(**context).new_page()
    tab = Tab(page, Page(path))
    page.set_default_timeout(10_000)
    page.on("console", lambda message: tab.complaints.append(message.text))
    page.on("pageerror", lambda error: tab.complaints.append(str(error)))
    page.on("request", lambda request: tab.requests.append(request.url))
    page.goto(path.as_uri() + anchor)
    page.wait_for_selector("html[data-ready]")
    return tab


@pytest.fixture
def tab(browser: Any, path: Path) -> Iterator[Tab]:
    found = opened(browser, path)
    yield found
    assert found.complaints == []
    others = [url for url in found.requests if not url.startswith("data:image/png") and url.split("#")[0] != path.as_uri()]
    assert others == []
    found.page.context.close()


def test_it_loads_without_a_word_and_asks_for_nothing(tab: Tab, freeing: Solution) -> None:
    assert tab.state == 0
    assert tab.page.title() == "Asymmetric freeing"
    assert tab.page.inner_text("#when") == "Step 0 of 6"
    assert f"{freeing.dag.n_states:,} states" in tab.page.inner_text("#subtitle")
    assert tab.page.evaluate("fetch('https://example.org/').then(() => 'sent', () => 'refused')") == "refused"
    tab.complaints.clear()  # of which the browser told, rightly
    tab.requests[:] = [url for url in tab.requests if "example.org" not in url]


def test_the_picture_is_that_of_render(tab: Tab, freeing: Solution) -> None:
    image = pytest.importorskip("PIL.Image")
    for n in (0, 7, len(tab.file) - 1):
        tab.go(n)
        url = tab.page.evaluate("document.getElementById('picture').toDataURL('image/png')")
        shown = image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).convert("RGB")
        t, place = tab.file.where(n)
        np.testing.assert_array_equal(np.asarray(shown), freeing.world.render(freeing.dag.states(t)[place], tile=48))


def test_every_number_shown_of_a_state_is_that_of_the_solution(tab: Tab, freeing: Solution) -> None:
    middle = int(np.searchsorted(tab.file.data["level"], 3))
    for n in (0, 5, middle + 2, len(tab.file) - 1):
        tab.go(n)
        t, place = tab.file.where(n)
        told = freeing.at(freeing.dag.states(t)[place])
        shown = tab.numbers("#state")
        expected = {"reached": float(freeing.reached[t][place]), "V_r": told.V_r, "U_r": told.U_r, "place": float(place)}
        if not told.is_terminal:
            for human, rows in told.goals.items():
                expected[f"X_h {human}"] = told.power[human]
                over_all = np.asarray(freeing.prior(told.state, human))
                expected |= {f"marginal {human} {a}": float(np.float32(p)) for a, p in enumerate(over_all)}
                for g, (_, weight, alone, helped, policy) in enumerate(rows):
                    expected |= {f"weight {human} {g}": weight, f"Vh_m {human} {g}": alone, f"Vh_e {human} {g}": helped}
                    stack = tab.page.get_attribute(f'[data-name="actions {human} {g}"]', "data-value")
                    assert [float(p) for p in str(stack).split()] == pytest.approx(policy, rel=1e-6)
                    if any(name.startswith(f"pi_h {human} {g} ") for name in shown):
                        expected |= {f"pi_h {human} {g} {a}": float(p) for a, p in enumerate(policy)}
            for profile, p in told.robot_policy.items():
                key = " ".join(map(str, profile))
                expected |= {f"pi_r {key}": p, f"Q_r {key}": told.Q_r[profile]}
        assert shown.keys() == expected.keys()
        assert shown == pytest.approx(expected, rel=1e-6, abs=1e-30)
        assert shown["V_r"] == told.V_r  # the robot's are exact
        for text, value in tab.page.eval_on_selector_all(
            "#state .num", "(all) => all.map((e) => [e.innerText, e.dataset.value])"
        ):
            read = float(text.replace("−", "-").replace(",", ""))
            assert read == pytest.approx(float(value), rel=6e-2 if abs(float(value)) < 5e-3 else 2e-2)


def test_successors_and_outcomes_shown_are_those_of_the_chain_and_of_the_world(tab: Tab, freeing: Solution) -> None:
    tab.page.click("#successors .rest button")  # more of them
    chain = freeing.markov_chain
    row = chain[int(chain.place_N[0])]
    number_of = {freeing.dag.states(t)[s]: n for n, (t, s) in enumerate(map(tab.file.where, range(len(tab.file))))}
    expected = {f"successor {number_of[chain.states[i]]}": p for i, p in row.items() if chain.states[i] in number_of}
    shown = tab.numbers("#successors")
    left_out = shown.pop("successor not embedded", 0.0)
    assert shown == pytest.approx(expected, rel=1e-9)
    assert sum(shown.values()) + left_out == pytest.approx(1)
    for agent, action in ((0, 1), (1, 0), (2, 3)):
        tab.page.select_option(f'#picks select[data-agent="{agent}"]', str(action))
    ((p, successor),) = freeing.world.transition_probabilities(freeing.world.initial_state(), [1, 0, 3])
    assert tab.numbers("#outcomes") == {f"outcome {number_of[successor]}": p}
    tab.page.click("#outcomes button")
    assert tab.state == number_of[successor]


def test_numbers_by_level_are_those_of_the_file(tab: Tab) -> None:
    data = tab.file.data
    for t in (0, 4):
        tab.page.locator("#slider").fill(str(t))
        shown = tab.numbers("#charts")
        expected = {"level states": data["level_states"][t], "level reached": data["level_reached"][t],
                    "level embedded": data["level_embedded"][t], "level embedded mass": data["level_embedded_mass"][t],
                    "level entropy": data["level_entropy"][t], "level V_r": data["level_V_r"][t, 0],
                    "level V_r low": data["level_V_r"][t, 1], "level V_r high": data["level_V_r"][t, 3]}  # fmt: skip
        for h, human in enumerate((0, 1)):
            for m, kind in ((0, ""), (1, " low"), (3, " high")):
                expected[f"level X_h {human}{kind}"] = data["level_X_h"][t, m, h]
        assert shown == expected


def test_parameters_sizes_and_what_was_left_out_are_told(tab: Tab, freeing: Solution) -> None:
    script = "(all) => Object.fromEntries(all.map((one) => [one.dataset.name, one.dataset.value]))"
    params = tab.page.eval_on_selector_all("#params dd", script)
    assert {name: float(params[name]) for name in ("zeta", "beta_r", "terminal_Vr")} == {
        "zeta": 2, "beta_r": 50, "terminal_Vr": -1e-10,
    }  # fmt: skip
    assert float(params["gamma_h"]) == pytest.approx(0.99)
    sizes = tab.page.eval_on_selector_all("#sizes dd", script)
    assert (int(sizes["states"]), int(sizes["transitions"])) == (freeing.dag.n_states, freeing.dag.n_transitions)
    reached = sum(np.count_nonzero(freeing.reached[t]) for t in range(7))
    words = tab.page.inner_text("#left-out")
    assert f"Of {reached:,} states" in words
    assert f"this file has {len(tab.file):,}" in words
    tab.page.click("#about summary")
    for t, value in enumerate(tab.numbers("#left-out-table").values()):
        here = tab.file.data["place"][tab.file.data["level"] == t]
        assert value == pytest.approx(np.delete(freeing.reached[t], here).sum(), abs=1e-12)


def test_the_slider_follows_the_likeliest_successors_and_comes_back_along_the_path(tab: Tab) -> None:
    n, visited = 0, [0]
    for _ in range(4):
        found = {m: p for m, p in tab.file.successors(n).items() if m >= 0}
        n = max(sorted(found), key=lambda m: found[m])
        visited.append(n)
    tab.page.locator("#slider").fill("4")
    assert tab.state == n
    assert tab.page.inner_text("#when") == "Step 4 of 6"
    assert tab.page.locator("#path button").count() == 5
    tab.page.locator("#slider").fill("2")
    assert tab.state == visited[2]
    tab.page.click("#later")
    assert tab.state == visited[3]
    tab.page.click("#first")
    assert tab.state == 0


def test_a_click_on_a_cell_moves_the_chosen_agent_there(tab: Tab) -> None:
    tab.page.locator("#slider").fill("2")
    data, before = tab.file.data, tab.state
    width = tab.file.head["grid"]["width"]
    here = np.flatnonzero(data["level"] == 2)
    cells = {int(cell) for cell in data["agent_cell"][here, 2]} - {int(data["agent_cell"][before, 2])}
    for cell in sorted(cells):
        tab.go(before)
        tab.click_cell(cell % width, cell // width)
        after = tab.state
        assert data["agent_cell"][after, 2] == cell
        candidates = here[data["agent_cell"][here, 2] == cell]
        alike = candidates[data["others"][candidates, 2] == data["others"][before, 2]]
        if len(alike):
            assert data["others"][after, 2] == data["others"][before, 2]
        else:
            assert data["reached"][after] == data["reached"][candidates].max()
    assert cells
    tab.go(before)
    tab.click_cell(0, 0)  # a wall
    assert tab.state == before
    assert "No state that is in this file has robot 2 on 0,0" in tab.page.inner_text("#status")
    tab.click_cell(2, 1)  # where human 0 is: it is chosen now
    assert tab.page.get_attribute('[data-agent="0"][aria-pressed]', "aria-pressed") == "true"


def test_cells_are_coloured_by_where_an_agent_is_and_by_what_it_would_be_worth(tab: Tab) -> None:
    tab.page.locator("#slider").fill("3")
    data, n, width = tab.file.data, tab.state, tab.file.head["grid"]["width"]
    script = "(all) => Object.fromEntries(all.map((one) => [one.dataset.cell, one.dataset.value]))"
    tab.page.select_option("#overlay", "reached")
    shown = tab.page.eval_on_selector_all("#marks [data-cell]", script)
    mass_C = data["cell_reached"][3, 2]
    assert {name: float(value) for name, value in shown.items()} == {
        f"{c % width},{c // width}": pytest.approx(float(mass_C[c]), rel=1e-6) for c in np.flatnonzero(mass_C)
    }
    tab.page.click('[data-human="1"] [data-goal="7"]')  # whose values are among the overlays
    of_goal = (("Vh_e", data["Vh_e"][:, 1, 7]), ("Vh_m", data["Vh_m"][:, 1, 7]))
    for key, values_N in (("V_r", data["V_r"]), ("X_h:1", data["X_h"][:, 1]), *of_goal):
        tab.page.select_option("#overlay", key)
        shown = tab.page.eval_on_selector_all("#marks [data-cell]", script)
        alike = np.flatnonzero((data["level"] == 3) & (data["others"][:, 2] == data["others"][n, 2]))
        by_cell: dict[str, list[float]] = {}
        for m in alike:
            cell = int(data["agent_cell"][m, 2])
            by_cell.setdefault(f"{cell % width},{cell // width}", []).append(float(values_N[m]))
        assert shown.keys() == by_cell.keys()
        assert all(float(value) in by_cell[name] for name, value in shown.items())
        ends = [float(value) for value in shown.values()]
        assert tab.numbers("#legend") == {"overlay low": min(ends), "overlay high": max(ends)}
        here = int(data["agent_cell"][n, 2])
        assert float(shown[f"{here % width},{here // width}"]) == values_N[n]


@pytest.mark.parametrize(
    ("optimistic", "title", "overlay"),
    [(True, "helped", "if the robot helps"), (False, "against robot", "if the robot works against it")],
)
def test_values_of_phase_1_are_named_by_what_the_robot_does(
    browser: Any, tmp_path: Path, optimistic: bool, title: str, overlay: str
) -> None:
    """With optimistic=True the page once said that somebody behind a locked door attains 0.57 "alone"."""
    with solve(load_world("locked_in", max_steps=8), Params(optimistic=optimistic), progress=False) as solution:
        found = opened(browser, write_report(solution, tmp_path / "page.html", progress=False).path)
    assert found.page.locator("#state th button").all_inner_texts() == ["weight", title, "with robot"]
    assert f"value {overlay} of goal" in found.page.locator('#overlay option[value="Vh_m"]').inner_text()
    assert found.page.locator("#phase1-name").text_content() == title
    assert "alone" not in found.page.locator("body").text_content()
    assert found.complaints == []
    found.page.context.close()


def test_everything_can_be_done_with_keys(tab: Tab) -> None:
    found = {m: p for m, p in tab.file.successors(0).items() if m >= 0}
    ranked = sorted(found, key=lambda m: (-found[m], m))
    press = tab.page.keyboard.press
    press("ArrowRight")
    assert tab.state == ranked[0]
    press("ArrowLeft")
    assert tab.state == 0
    press("3")
    assert tab.state == ranked[2]
    press("Backspace")
    assert tab.state == 0
    press("ArrowDown")
    assert tab.page.get_attribute("#successors .marked", "data-state") == str(ranked[1])
    press("ArrowRight")
    assert tab.state == ranked[1]
    press("Home")
    press("ArrowUp")
    press("ArrowDown")
    assert tab.page.get_attribute("#successors .marked", "data-state") == str(ranked[0])
    press("?")
    assert tab.page.locator("#help").is_visible()
    press("Escape")
    assert not tab.page.locator("#help").is_visible()
    tab.page.focus("#successors button")
    press("Enter")
    assert tab.state == ranked[0]


def test_play_goes_on_to_the_end(tab: Tab) -> None:
    tab.page.locator("#slider").fill("5")
    tab.page.click("#play")
    tab.page.wait_for_selector("#later:disabled")
    tab.page.wait_for_selector('#play[aria-pressed="false"]')
    assert tab.page.inner_text("#when") == "Step 6 of 6"
    assert "nothing: the run ends here" in tab.page.inner_text("#successors")


def test_signs_on_buttons_are_drawn_since_fonts_may_lack_them(tab: Tab) -> None:
    buttons = "(all) => all.map((one) => [one.innerText.trim(), one.querySelectorAll('svg path').length])"
    assert dict(tab.page.eval_on_selector_all(".time button", buttons)) == {"": 1, "play": 2, "likeliest here": 0}
    signs = "(all) => all.filter((one) => one.getBoundingClientRect().width > 8).map((one) => one.classList[1])"
    assert tab.page.eval_on_selector_all("#play svg", signs) == ["when-still"]
    tab.page.click("#play")
    assert tab.page.eval_on_selector_all("#play svg", signs) == ["when-playing"]
    assert tab.page.inner_text("#play").strip() == "pause"
    tab.page.click("#play")


BADGES = """(all) => all.map((one) => {
  const circle = one.querySelector("circle"), box = circle.getBoundingClientRect();
  return [Number(one.dataset.badge), one.textContent, Number(circle.getAttribute("cx")), Number(circle.getAttribute("cy")),
    box.left, box.top, box.width, getComputedStyle(one.querySelectorAll("circle")[1]).fill];
})"""


@pytest.mark.parametrize("width", [390, 1400])
def test_every_agent_has_its_number_on_its_cell_in_its_colour(browser: Any, path: Path, width: int) -> None:
    tab = opened(browser, path, viewport={"width": width, "height": 844})
    columns, data = tab.file.head["grid"]["width"], tab.file.data
    swatches = tab.page.eval_on_selector_all(
        "#agents .swatch", "(all) => all.map((one) => getComputedStyle(one).backgroundColor)"
    )
    for n in (0, 60, len(tab.file) - 1):
        tab.go(n)
        shown = tab.page.eval_on_selector_all("#marks .badge", BADGES)
        assert [(i, text) for i, text, *_ in shown] == [(0, "0"), (1, "1"), (2, "2")]
        for i, _, x, y, _, _, size, colour in shown:
            assert int(y) * columns + int(x) == data["agent_cell"][n, i]
            assert size >= 14  # pixels
            assert colour == swatches[i]
    tab.page.context.close()


def test_numbers_of_agents_on_one_cell_lie_side_by_side(browser: Any, tmp_path: Path, freeing: Solution) -> None:
    """As if all were on the cell of the first."""
    path = write_report(freeing, tmp_path / "report.html", max_states=20, progress=False).path
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("const cell = D.agent_cell[S.n * I + i], k", "const cell = D.agent_cell[S.n * I], k"), encoding="utf-8"
    )
    tab = opened(browser, path, viewport={"width": 390, "height": 844})
    shown = tab.page.eval_on_selector_all("#marks .badge", BADGES)
    assert len({(int(x), int(y)) for _, _, x, y, *_ in shown}) == 1
    for a, one in enumerate(shown):
        for other in shown[a + 1 :]:
            assert max(abs(one[4] - other[4]), abs(one[5] - other[5])) >= one[6] - 0.5
    tab.page.context.close()


def told_steps(tab: Tab) -> Iterator[tuple[Any, Any, str]]:
    """States, successors, and what is said of the step: of 25 states after which things may be elsewhere or otherwise."""
    states = [ast.literal_eval(state) for state in tab.file.data["state"]]
    followed = ((n, m) for n in range(len(states)) for m in tab.file.successors(n) if m >= 0)
    lively = list(dict.fromkeys(n for n, m in followed if states[n][2:] != states[m][2:]))
    assert lively
    for n in lively[:: max(1, len(lively) // 25)]:
        tab.go(n)
        while tab.page.locator("#successors .rest button").count():
            tab.page.click("#successors .rest button")
        script = "(all) => all.map((one) => [Number(one.dataset.state), one.querySelector('.what').lastChild.textContent])"
        for m, text in tab.page.eval_on_selector_all("#successors button", script):
            yield states[n], states[m], text


def test_steps_say_who_takes_and_drops_what_and_what_doors_do(browser: Any, tmp_path: Path) -> None:
    with solve(load_world("one_key_two_rooms", max_steps=4), SETTING, progress=False) as solution:
        tab = opened(browser, write_report(solution, tmp_path / "report.html", progress=False).path)
    names, seen = ["human 0", "human 1", "robot 2"], set[str]()
    for (_, agents, _, doors), (_, agents_then, items_then, doors_then), text in told_steps(tab):
        (giver,) = [name for name, was in zip(names, agents, strict=True) if was[6]] or [None]
        (taker,) = [name for name, then in zip(names, agents_then, strict=True) if then[6]] or [None]
        (place,) = [f"{x},{y}" for _, x, y, _ in items_then] or [None]
        expected = []
        if giver and taker and giver != taker:
            expected = [f"the green key goes from {giver} to {taker}"]
        elif taker and not giver:
            expected = [f"{taker} takes the green key"]
        elif giver and not taker:
            expected = [f"{giver} drops the green key on {place}"]
        for (_, x, y, is_open, is_locked), (_, _, _, opens, locks) in zip(doors, doors_then, strict=True):
            words = (
                ["unlocks"] * (is_locked and not locks)
                + ["opens"] * (opens and not is_open)
                + ["closes"] * (is_open and not opens)
            )
            expected += [f"the door at {x},{y} {' and '.join(words)}"] if words else []
        found = [part for part in text.split(", ") if re.search("key|door|changes on", part)]
        assert sorted(found) == sorted(expected), text
        seen |= {word for part in expected for word in re.findall("takes|drops|unlocks|opens|closes", part)}
    assert seen >= {"takes", "drops", "unlocks", "opens", "closes"}
    assert tab.complaints == []
    tab.page.context.close()


def test_steps_say_where_rocks_go(browser: Any, tmp_path: Path) -> None:
    with solve(load_world("pushing/cork_in_the_bottle", max_steps=5), SETTING, progress=False) as solution:
        tab = opened(browser, write_report(solution, tmp_path / "report.html", progress=False).path)
    n_moved = 0
    for (_, _, rocks, _), (_, _, rocks_then, _), text in told_steps(tab):
        gone, come = set(rocks) - set(rocks_then), set(rocks_then) - set(rocks)
        moves = {
            f"the rock at {a[1]},{a[2]} moves to {b[1]},{b[2]}" for a, b in zip(sorted(gone), sorted(come), strict=True)
        }
        assert {part for part in text.split(", ") if "rock" in part or "changes" in part} - {"nothing changes"} == moves
        n_moved += len(moves)
    assert n_moved
    tab.page.context.close()


def test_a_chart_leads_to_a_step_and_a_goal_can_be_chosen(tab: Tab) -> None:
    chart = tab.page.locator(".chart svg").first
    fifth = chart.evaluate(
        "(one) => Number([...one.querySelectorAll('text')].find((t) => t.textContent === '5').getAttribute('x'))"
    )
    box = chart.bounding_box()
    chart.click(position={"x": fifth / 330 * box["width"], "y": box["height"] / 2})
    assert tab.page.inner_text("#when") == "Step 5 of 6"
    tab.page.click('[data-human="1"] [data-goal="4"]')
    shown = tab.numbers('[data-human="1"]')
    n, data = tab.state, tab.file.data
    assert [shown[f"pi_h 1 4 {a}"] for a in range(4)] == data["pi_h"][n, 1, 4].tolist()
    tab.page.click('[data-human="0"] th:nth-child(4) button')
    values = [value for name, value in tab.numbers('[data-human="0"] tbody').items() if name.startswith("Vh_e")]
    assert values == sorted(values, reverse=True)


def test_the_address_keeps_the_state(browser: Any, path: Path) -> None:
    tab = opened(browser, path, "#s=9")
    assert tab.state == 9
    tab.page.keyboard.press("1")
    assert tab.page.url.endswith(f"#s={tab.state}")
    wrong = opened(browser, path, "#s=99999999")
    assert (wrong.state, wrong.complaints) == (0, [])
    assert wrong.page.inner_text("#status").startswith("State 99999999 of the link is not in this file, ")
    wrong.page.keyboard.press("1")
    assert wrong.page.inner_text("#status") == ""
    tab.page.evaluate("location.hash = '#s=88888888'")
    tab.page.wait_for_function("document.getElementById('status').textContent.includes('State 88888888 of the link is not')")
    assert tab.page.url.endswith(f"#s={tab.state}")
    right = opened(browser, path, "#s=0")
    assert right.page.inner_text("#status") == ""
    for one in (tab, wrong, right):
        one.page.context.close()


@pytest.mark.parametrize("width", [360, 390, 700, 1024, 1400])
def test_nothing_is_wider_than_the_screen(browser: Any, path: Path, width: int) -> None:
    tab = opened(browser, path, "#s=40", viewport={"width": width, "height": 844})
    tab.page.select_option("#overlay", "V_r")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    narrow = "(all) => all.filter((one) => one.getBoundingClientRect().height < 30).map((one) => one.id || one.outerHTML)"
    assert tab.page.eval_on_selector_all(".time button, #agents button, .moves button, header button, select", narrow) == []
    tab.page.context.close()


def test_dark_is_as_the_system_has_it_or_as_chosen(browser: Any, path: Path) -> None:
    tab = opened(browser, path, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = tab.page.evaluate(ground)
    assert max(int(part) for part in dark.strip("rgb()").split(",")) < 60
    tab.page.click("#theme")
    light = tab.page.evaluate(ground)
    assert min(int(part) for part in light.strip("rgb()").split(",")) > 200
    tab.page.click("#theme")
    assert tab.page.evaluate(ground) == dark
    tab.page.context.close()


def test_a_world_in_python_shows_its_states_as_text_and_names_do_no_harm(browser: Any, tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)></title><script>alert(1)</script>"
    with solve(TwoSteps(), SETTING, precision="float64", progress=False) as solution:
        path = write_report(solution, tmp_path / "report.html", title=evil, progress=False).path
        tab = opened(browser, path)
        assert tab.page.title() == tab.page.inner_text("h1") == evil
        assert tab.page.inner_text("#plain") == "(0, 0)"
        assert tab.page.locator("img").count() == 0
        tab.page.click("#successors button")
        t, place = tab.file.where(tab.state)
        state = solution.dag.states(t)[place]
        assert tab.page.inner_text("#plain") == repr(state)
        assert tab.numbers("#state")["V_r"] == solution.at(state).V_r
        assert tab.page.inner_text("#when") == "Level 1 of 2"
        assert tab.complaints == []
        tab.page.context.close()


class EndsEarly(TwoSteps):
    """Most steps lead straight to the last level."""

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        t, k = state
        if t == self.steps:
            return None
        return [(0.9, (self.steps, 1)), (0.1, (t + 1, k))] if t + 1 < self.steps else [(1.0, (self.steps, 1))]


def test_the_slider_ends_on_a_level_that_has_states(browser: Any, tmp_path: Path) -> None:
    solution = solve(EndsEarly(5), Params(beta_r=0), progress=False)
    file = write_report(solution, tmp_path / "leaps.html", min_probability=1, max_states=1, progress=False).path
    tab = opened(browser, file)
    here = set(tab.file.data["level"].tolist())
    assert here != set(range(6)), "some levels are left out"
    for t in range(6):
        tab.page.evaluate("(t) => { slider.value = t; slider.dispatchEvent(new Event('input')); }", t)
        assert int(tab.page.input_value("#slider")) == int(tab.file.data["level"][tab.state]) in here
    assert tab.complaints == []
    tab.page.context.close()


def test_a_run_that_ends_where_it_begins_is_shown_without_a_complaint(browser: Any, tmp_path: Path) -> None:
    solution = solve(load_world("asymmetric_freeing", max_steps=0), progress=False)
    tab = opened(browser, write_report(solution, tmp_path / "end.html", title="5", progress=False).path)
    assert tab.complaints == []
    assert "NaN" not in "".join(tab.page.eval_on_selector_all("svg", "(all) => all.map((one) => one.outerHTML)"))
    tab.page.context.close()


class SometimesSecond:
    """The second goal is there while k is 0."""

    def generate(self, state: Any, human: int) -> Any:
        yield At(0), 1.0
        yield At(1), 1.0
        if state[1] == 0:
            yield At(2), 1.0


def test_nothing_is_said_of_goals_that_a_state_does_not_have(browser: Any, tmp_path: Path) -> None:
    solution = solve(TwoSteps(), possible_goal_generator=SometimesSecond(), progress=False)
    tab = opened(browser, write_report(solution, tmp_path / "goals.html", progress=False).path)
    states = [ast.literal_eval(text) for text in tab.file.data["state"]]
    tab.page.click('[data-human="0"] [data-goal="2"]')
    for n, (step, k) in enumerate(states):
        if step < 2:
            tab.go(n)
            told = {name for name in tab.numbers() if name.startswith("pi_h 0 2")}
            assert bool(told) == (k == 0)
    tab.page.context.close()


def test_a_bush_world_is_shown_like_a_gridworld(browser: Any, tmp_path: Path) -> None:
    solution = solve(load_world("bush_worlds/overgrown_start", max_steps=3), progress=False)
    tab = opened(browser, write_report(solution, tmp_path / "bush.html", progress=False).path)
    assert tab.page.title() == "Overgrown start"
    assert "human 1 at 1,1 on density 2" in tab.page.text_content("#words")
    assert "density on 0,0 from 2 to 1" in tab.page.text_content("body")  # the robot may pass
    for n in range(1, len(tab.file), 5):
        tab.go(n)
    tab.click_cell(0, 0)
    assert tab.complaints == []
    tab.page.context.close()


def test_goals_are_called_by_their_names_and_framed_wherever_they_are(browser: Any, tmp_path: Path) -> None:
    anywhere = {"name": "anywhere", "cells": "1,1,9,4"}
    goals = {
        0: [{"name": "<i>ends</i>", "cells": [[1, 2], [8, 2, 9, 3]]}, {"name": "south", "facing": "south"}, anywhere],
        1: [anywhere],
    }
    with solve(load_world("asymmetric_freeing", max_steps=3, goals=goals), SETTING, progress=False) as solution:
        place = write_report(solution, tmp_path / "named.html", max_states=50, progress=False).path
    tab = opened(browser, place)
    shown = tab.page.eval_on_selector_all("button[data-goal]", "(all) => all.map((e) => e.textContent.split('\\u00a0')[0])")
    assert shown == ["<i>ends</i>", "south", "anywhere", "anywhere"]
    frames = {}
    for g in range(3):
        tab.page.locator("button[data-goal]").nth(g).click()
        frames[g] = tab.page.locator('#marks rect[stroke="#D55E00"]').count()
    assert frames == {0: 2, 1: 0, 2: 1}
    assert tab.complaints == []
    tab.page.context.close()
