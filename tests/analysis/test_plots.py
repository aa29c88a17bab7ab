"""Pictures say what the solution says: the numbers in the drawn things are held to what states, one by one, report."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, pairwise, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, PolyCollection, QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle
from matplotlib.quiver import Quiver
from planning_worlds import TwoSteps

from empo_bi import Params, Solution, analysis, events, load_world, solve
from empo_bi.analysis import plots
from empo_bi.analysis.plots.canvas import apart
from empo_bi.analysis.plots.colours import PALETTE, colour_scale
from empo_bi.analysis.plots.maps import written
from empo_bi.analysis.quantiles import weighted_quantiles
from empo_bi.world.codes import DIRECTION_VECTORS

ROOT = Path(__file__).parents[2]
ROBOT, HORIZON = 2, 10  # in so many steps the robot can free a human
TURN = {"left": -1, "forward": 0, "right": 1}


@pytest.fixture(autouse=True)
def _nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No window, no figure left over from before, and no call of plt.show."""
    before = mpl.get_backend()
    plt.switch_backend("Agg")
    plt.close("all")
    monkeypatch.setattr(plt, "show", lambda *_, **__: pytest.fail("a plot called plt.show"))
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.fixture(scope="module")
def freeing() -> Solution:
    params = Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=50)
    return solve(load_world("asymmetric_freeing", max_steps=HORIZON), params, precision="float64", progress=False)


@pytest.fixture(scope="module")
def doubtful(freeing: Solution) -> Solution:
    params = Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=10, xi=2)
    return solve(freeing.world, params, precision="float64", progress=False)


@pytest.fixture(scope="module")
def ledge() -> Solution:
    return solve(
        load_world("hazards/slippery_ledge", max_steps=5), Params(gamma_h=0.95), precision="float64", progress=False
    )


def means_by_cell(
    solution: Solution, t: int, agent: int, number: Callable[[Any], Any], weighted: bool = True
) -> dict[tuple[int, int], Any]:
    """Means of a number over the states with an agent on each cell, state by state."""
    total: dict[tuple[int, int], Any] = defaultdict(float)
    weight: dict[tuple[int, int], float] = defaultdict(float)
    for place, state in enumerate(solution.dag.states(t)):
        w = float(solution.reached[t][place]) if weighted else 1.0
        if w > 0:
            x, y, *_ = state[1][agent]
            total[x, y] += w * np.asarray(number(state))
            weight[x, y] += w
    return {cell: total[cell] / weight[cell] for cell in total}


def mesh_of(ax: Axes) -> QuadMesh:
    (mesh,) = [one for one in ax.collections if isinstance(one, QuadMesh)]
    return mesh


def assert_mesh_is(ax: Axes, expected: dict[tuple[int, int], float]) -> None:
    array_YX = mesh_of(ax).get_array()
    assert array_YX is not None
    assert len(expected) == (~np.ma.getmaskarray(array_YX)).sum()
    for (x, y), number in expected.items():
        assert array_YX[y, x] == pytest.approx(number, abs=1e-12)
    corners = mesh_of(ax).get_coordinates()
    assert corners[0, 0].tolist() == [-0.5, -0.5]  # cell x, y is around the point x, y
    assert corners[-1, -1].tolist() == [array_YX.shape[1] - 0.5, array_YX.shape[0] - 0.5]


def title_of(ax: Axes) -> str:
    return ax.get_title(loc="left").replace("\n", " ")


def line_points(ax: Axes, label: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Data of the line with a label, or of the first line."""
    line = next(line for line in ax.get_lines() if label in (None, line.get_label()))
    return np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)


# --- every public plot ------------------------------------------------------------------------------------------------

CALLS: dict[str, tuple[int, Callable[..., Any]]] = {
    "plot_state": (1, lambda a, b, ax: plots.plot_state(a.world, None, ax)),
    "plot_map": (1, lambda a, b, ax: plots.plot_map(analysis.power_map(a, 1, 4), ax)),
    "plot_maps": (2, lambda a, b, ax: plots.plot_maps([analysis.power_map(a, 1, t) for t in (3, 4)], ax)),
    "plot_reached": (3, lambda a, b, ax: plots.plot_reached(a, ROBOT, [0, 2, -1], ax)),
    "plot_arrows": (1, lambda a, b, ax: plots.plot_arrows(analysis.arrow_map(a, ROBOT, 3), ax)),
    "plot_decision": (1, lambda a, b, ax: plots.plot_decision(analysis.decision_at(a, a.world.initial_state()), ax)),
    "plot_course": (4, lambda a, b, ax: plots.plot_course(analysis.course_of(a, a.rollouts(1).states(0)), ax)),
    "plot_probability_by_time": (
        1,
        lambda a, b, ax: plots.plot_probability_by_time(a, events.thing_gone("rock", (8, 2)), ax=ax),
    ),
    "plot_levels": (3, lambda a, b, ax: plots.plot_levels(a, ax)),
    "plot_comparison": (3, lambda a, b, ax: plots.plot_comparison(analysis.compare(a, b), ax)),
}


def test_every_public_plot_is_tried_here() -> None:
    assert set(CALLS) == {name for name in plots.__all__ if name.startswith("plot_")}


@pytest.mark.parametrize("name", CALLS)
def test_a_plot_makes_one_figure_names_its_axes_and_changes_no_setting(
    name: str, freeing: Solution, doubtful: Solution
) -> None:
    n, call = CALLS[name]
    before = dict(mpl.rcParams)
    drawn = call(freeing, doubtful, None)
    assert dict(mpl.rcParams) == before
    assert len(plt.get_fignums()) == 1
    several = np.ravel(drawn).tolist()
    assert len(several) == n
    assert isinstance(drawn, Axes) == (n == 1 and name != "plot_reached")
    assert all(isinstance(ax, Axes) for ax in several)
    assert title_of(several[0]) or several[0].figure.get_suptitle()
    assert several[-1].get_xlabel()
    assert all(ax.get_ylabel() for ax in several if ax.get_xlabel() != "probability")
    several[0].figure.draw_without_rendering()


@pytest.mark.parametrize("name", CALLS)
def test_a_plot_draws_into_given_axes_and_makes_no_figure_then(name: str, freeing: Solution, doubtful: Solution) -> None:
    n, call = CALLS[name]
    figure, given = plt.subplots(n, 1, squeeze=False)
    drawn = call(freeing, doubtful, given[0, 0] if n == 1 else given)
    assert np.ravel(drawn).tolist() == given.ravel().tolist()
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("name", CALLS)
def test_a_plot_takes_light_text_from_a_dark_style(name: str, freeing: Solution, doubtful: Solution) -> None:
    with plt.style.context("dark_background"):
        drawn = np.ravel(CALLS[name][1](freeing, doubtful, None)).tolist()
    for ax in drawn:
        assert to_rgb(ax.xaxis.label.get_color()) == (1, 1, 1)
        assert to_rgb(ax.yaxis.label.get_color()) == (1, 1, 1)
        lines = [line for line in ax.get_lines() if line.get_linestyle() != "None"]
        assert all(sum(to_rgb(line.get_color())) > 0.5 for line in lines), "a dark line on a dark ground"


@pytest.mark.parametrize("name", CALLS)
def test_without_matplotlib_a_plot_says_what_to_install(
    name: str, freeing: Solution, doubtful: Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'empo-bi\[analysis\]'"):
        CALLS[name][1](freeing, doubtful, None)


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    "plot_state": (lambda a: plots.plot_state(a), "world is .* give a MapWorld"),
    "plot_map": (lambda a: plots.plot_map(analysis.arrow_map(a, ROBOT, 3)), "cell_map is .* give a CellMap"),
    "plot_maps": (lambda a: plots.plot_maps([a]), "one of maps is .* give a CellMap"),
    "plot_reached": (lambda a: plots.plot_reached(a.world, 0), "solution is .* give a Solution"),
    "plot_arrows": (lambda a: plots.plot_arrows(analysis.power_map(a, 1, 3)), "arrow_map is .* give a ArrowMap"),
    "plot_decision": (lambda a: plots.plot_decision(a.world.initial_state()), "decision is .* give a Decision"),
    "plot_course": (lambda a: plots.plot_course([1]), "course is .* give a Course"),
    "plot_probability_by_time": (lambda a: plots.plot_probability_by_time(a.dag, []), "give a Solution"),
    "plot_levels": (lambda a: plots.plot_levels("freeing"), "solution is 'freeing', a str; give a Solution"),
    "plot_comparison": (lambda a: plots.plot_comparison(a), "comparison is .* give a Comparison"),
}


def margins_of(figure: Any) -> list[float]:
    """Pixels between all that is drawn and the edges of a figure, drawn once: left, below, right, above."""
    figure.canvas.draw()
    drawn = figure.get_tightbbox(figure.canvas.get_renderer()).transformed(figure.dpi_scale_trans)
    return [drawn.x0, drawn.y0, figure.bbox.x1 - drawn.x1, figure.bbox.y1 - drawn.y1]


@pytest.mark.parametrize("name", ["the_many_or_the_few", "whose_door_first", "slippery_ledge", "ice_rink", "first_steps"])
def test_nothing_of_a_grid_and_its_titles_is_outside_of_the_figure(name: str) -> None:
    solution = solve(load_world(name, max_steps=3), progress=False)
    human = solution.humans[0]
    power = [analysis.power_map(solution, human, t) for t in (1, 2)]
    values = [analysis.value_map(solution, human, g, 1) for g in (0, 1)]
    arrows, towards = (analysis.arrow_map(solution, human, 1, goal=goal) for goal in (None, 0))
    drawn = {
        "state": plots.plot_state(solution.world),
        "power": plots.plot_map(power[1]),
        "value": plots.plot_map(values[0]),
        "change": plots.plot_map(power[1] - power[0]),
        "arrows": plots.plot_arrows(arrows),
        "arrows on values": plots.plot_arrows(towards, under=values[0]),
        "levels": plots.plot_maps(power)[0],
        "goals": plots.plot_maps(values)[0],
        "reached": plots.plot_reached(solution, human)[0],
    }
    for what, ax in drawn.items():
        assert min(margins_of(ax.figure)) > 0, what


@pytest.mark.parametrize("name", WRONG)
def test_a_plot_of_something_else_is_refused_before_a_figure_is_made(name: str, freeing: Solution) -> None:
    call, message = WRONG[name]
    with pytest.raises(TypeError, match=message):
        call(freeing)
    assert plt.get_fignums() == []


def test_wrong_axes_and_empty_lists_are_refused(freeing: Solution, ledge: Solution) -> None:
    with pytest.raises(TypeError, match="ax is 3, a int; give a Axes"):
        plots.plot_map(analysis.power_map(freeing, 1, 3), 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="axes has 2 Axes for 3 panels"):
        plots.plot_levels(freeing, plt.subplots(2)[1])
    with pytest.raises(ValueError, match="maps is empty"):
        plots.plot_maps([])
    with pytest.raises(ValueError, match="grids of different sizes"):
        plots.plot_maps([analysis.power_map(freeing, 1, 3), analysis.power_map(ledge, 1, 3)])
    with pytest.raises(ValueError, match="titles has 2 entries for 1 maps"):
        plots.plot_maps([analysis.power_map(freeing, 1, 3)], titles=["a", "b"])
    with pytest.raises(ValueError, match="columns=0"):
        plots.plot_maps([analysis.power_map(freeing, 1, 3)], columns=0)
    with pytest.raises(ValueError, match="a map of the same grid"):
        plots.plot_arrows(analysis.arrow_map(freeing, 1, 3), under=analysis.power_map(ledge, 1, 3))
    with pytest.raises(ValueError, match="events is empty"):
        plots.plot_probability_by_time(freeing, [])
    with pytest.raises(ValueError, match="labels has 2 entries for 1 events"):
        plots.plot_probability_by_time(freeing, events.agent_in(0, (2, 1)), ["a", "b"])
    with pytest.raises(ValueError, match="most=0"):
        plots.plot_decision(analysis.decision_at(freeing, freeing.world.initial_state()), most=0)
    states = freeing.rollouts(1).states(0)
    with pytest.raises(ValueError, match=r"levels \[1, 0\]; give states on ascending levels"):
        plots.plot_course(analysis.course_of(freeing, [states[1], states[0]]))
    with pytest.raises(IndexError, match="level 11; this solution has levels 0 to 10"):
        plots.plot_reached(freeing, 0, [11])


# --- the grid ---------------------------------------------------------------------------------------------------------


def test_a_state_is_drawn_as_render_does_with_coordinates_and_numbers_of_agents(freeing: Solution) -> None:
    state = freeing.rollouts(1, seed=1).states(0)[3]
    ax = plots.plot_state(freeing.world, state)
    (image,) = ax.get_images()
    assert np.array_equal(np.round(np.asarray(image.get_array()) * 255), freeing.world.render(state, tile=48))
    assert image.get_extent() == [-0.5, 10.5, 5.5, -0.5]  # y goes down
    assert [label.get_text() for label in ax.get_xticklabels()] == [str(x) for x in range(11)]
    assert ax.yaxis_inverted()
    found = {text.get_text(): text for text in ax.texts}
    assert sorted(found) == ["0", "1", "2"]
    for agent, (x, y, *_) in enumerate(state[1]):
        text = found[str(agent)]
        assert (round(text.get_position()[0]), round(text.get_position()[1])) == (x, y)
        assert to_rgb(text.get_bbox_patch().get_facecolor()) == to_rgb(plots.agent_colour(agent))
    assert title_of(ax) == "state at step 3"
    with pytest.raises(ValueError):
        plots.plot_state(freeing.world, (0, (), (), ()))


def test_agents_have_different_colours_and_the_same_one_in_every_plot(freeing: Solution, doubtful: Solution) -> None:
    assert len({plots.agent_colour(agent) for agent in range(len(PALETTE))}) == len(PALETTE)
    course = plots.plot_course(analysis.course_of(freeing, freeing.rollouts(1).states(0)))[0]
    levels = plots.plot_levels(freeing)[1]
    compared = plots.plot_comparison(analysis.compare(freeing, doubtful))[2]
    for human in freeing.humans:
        for ax in (course, levels, compared):
            (line,) = [line for line in ax.get_lines() if line.get_label() == f"human {human}"]
            assert line.get_color() == plots.agent_colour(human)


# --- maps -------------------------------------------------------------------------------------------------------------


def test_a_power_map_has_the_mean_power_of_the_states_of_each_cell_as_colour_and_in_writing(freeing: Solution) -> None:
    expected = means_by_cell(freeing, 5, ROBOT, lambda state: freeing.at(state).power[1])
    assert len(expected) > 5
    ax = plots.plot_map(analysis.power_map(freeing, 1, 5, agent=ROBOT))
    assert_mesh_is(ax, expected)
    assert mesh_of(ax).get_clim() == (0.0, pytest.approx(max(expected.values())))
    assert mesh_of(ax).get_cmap().name == "viridis"
    shown = {text.get_position(): float(text.get_text()) for text in ax.texts if text.get_text().startswith(".")}
    assert set(shown) == set(expected)
    for cell, number in shown.items():
        assert number == pytest.approx(expected[cell], abs=0.005 + 1e-9)
    assert title_of(ax) == "power of human 1, level 5"
    assert "mean over states reached under both policies" in [text.get_text() for text in ax.texts][-1]
    bar = ax.figure.axes[1]
    assert bar.get_ylabel() == "power $X_h$"


def test_a_value_map_frames_its_goal_and_is_named_by_it(ledge: Solution) -> None:
    goal = ledge.goals[1][7]
    expected = means_by_cell(ledge, 3, 1, lambda state: ledge.Vhe.get(state, {}).get(1, {}).get(goal, 0.0), weighted=False)
    ax = plots.plot_map(analysis.value_map(ledge, 1, 7, 3, others="mean"))
    assert_mesh_is(ax, expected)
    (frame,) = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    x1, y1, x2, y2 = goal.target_rect
    assert np.allclose(frame.get_bbox().extents, [x1 - 0.46, y1 - 0.46, x2 + 0.46, y2 + 0.46])
    assert title_of(ax) == "value of goal 2,4 to 4,5 to human 1, level 3"


def test_the_robots_values_are_drawn_from_the_least_on(freeing: Solution) -> None:
    expected = means_by_cell(freeing, 4, ROBOT, lambda state: freeing.Vr[state])
    ax = plots.plot_map(analysis.robot_value_map(freeing, 4))
    assert_mesh_is(ax, expected)
    assert mesh_of(ax).get_clim() == (pytest.approx(min(expected.values())), pytest.approx(max(expected.values())))


def test_a_difference_of_maps_has_zero_in_the_middle_of_other_colours(freeing: Solution) -> None:
    after, before = (means_by_cell(freeing, t, ROBOT, lambda state: freeing.at(state).power[1]) for t in (5, 3))
    ax = plots.plot_map(analysis.power_map(freeing, 1, 5, agent=ROBOT) - analysis.power_map(freeing, 1, 3, agent=ROBOT))
    assert_mesh_is(ax, {cell: after[cell] - before[cell] for cell in set(after) & set(before)})
    low, high = mesh_of(ax).get_clim()
    assert low == -high
    assert mesh_of(ax).get_cmap().name == "RdBu_r"
    assert title_of(ax) == "change of power of human 1 since level 3, level 5"


def test_what_rounding_leaves_of_no_difference_is_drawn_as_zero() -> None:
    world = load_world("the_many_or_the_few", max_steps=4)
    a, b = (solve(world, Params(beta_r=beta_r), precision="float64", progress=False) for beta_r in (5, 10))
    change = analysis.power_map(b, 1, 3, agent=0) - analysis.power_map(a, 1, 3, agent=0)
    size = np.nanmax(analysis.power_map(a, 1, 3, agent=0).value_YX)
    known = np.isfinite(change.value_YX)
    # Differences of a few last digits, such as other orders of summing leave them, of both signs, and one that is real.
    noise_YX = np.where(known, size * 1e-15 * np.where(np.arange(known.size).reshape(known.shape) % 2, 1, -1), np.nan)
    for real in (0.0, 1e-7 * size):
        value_YX = noise_YX.copy()
        where = tuple(np.argwhere(known)[0])
        value_YX[where] += real
        ax = plots.plot_map(replace(change, value_YX=value_YX))
        array_YX = mesh_of(ax).get_array()
        assert array_YX is not None
        n_real = int(real > 0)
        assert np.count_nonzero(array_YX.compressed()) == n_real
        low, high = mesh_of(ax).get_clim()
        assert (low, high) == ((-1, 1) if real == 0 else (-value_YX[where], value_YX[where])), "0 is in the middle"
        cells = [text.get_text() for text in ax.texts[:-1]]
        assert sorted(cells) == sorted(["0"] * (known.sum() - n_real) + [f"{real:.0e}".replace("e-0", "e-")] * n_real)
        several = plots.plot_maps([replace(change, value_YX=value_YX)] * 2)
        assert mesh_of(several[0]).get_clim() == (low, high)
    first = analysis.power_map(a, 1, 3)
    assert (first.rounding, (first - first).rounding) == (0, pytest.approx(1e-9 * np.nanmax(first.value_YX)))
    assert np.array_equal((first - first - first).rounded_off().value_YX, -first.value_YX, equal_nan=True)


def test_differences_of_maps_of_two_grids_or_of_numbers_make_no_sense(freeing: Solution, ledge: Solution) -> None:
    with pytest.raises(ValueError, match="of the same grid"):
        analysis.power_map(freeing, 1, 3) - analysis.power_map(ledge, 1, 3)
    with pytest.raises(TypeError):
        analysis.power_map(freeing, 1, 3) - 1  # type: ignore[operator]


def test_a_difference_of_two_quantities_names_both(ledge: Solution) -> None:
    with_robot, alone = (analysis.value_map(ledge, 1, 1, 2, alone=alone) for alone in (False, True))
    gain = with_robot - alone
    assert gain.quantity == f"{with_robot.quantity} minus {alone.quantity}"
    assert gain.goal == ledge.goals[1][1]
    assert gain.scale == "difference"
    assert np.array_equal(gain.value_YX, with_robot.value_YX - alone.value_YX, equal_nan=True)


def test_a_range_colours_and_numbers_can_be_given(freeing: Solution) -> None:
    ax = plots.plot_map(analysis.power_map(freeing, 1, 5), vmin=-1, vmax=3, cmap="cividis", numbers=False)
    assert mesh_of(ax).get_clim() == (-1, 3)
    assert mesh_of(ax).get_cmap().name == "cividis"
    assert len(ax.texts) == 1  # the subtitle
    tiny = plt.subplots(figsize=(1.5, 1))[1]
    assert len(plots.plot_map(analysis.power_map(freeing, 1, 5), tiny).texts) == 1
    assert len(plots.plot_map(analysis.power_map(freeing, 1, 5), tiny, numbers=True).texts) > 2


def test_maps_of_levels_share_one_scale_and_one_bar(freeing: Solution) -> None:
    levels = [2, 4, 6]
    expected = [means_by_cell(freeing, t, ROBOT, lambda state: freeing.at(state).power[1]) for t in levels]
    axes = plots.plot_maps([analysis.power_map(freeing, 1, t, agent=ROBOT) for t in levels])
    assert axes.shape == (3,)
    top = max(max(one.values()) for one in expected)
    for ax, t, one in zip(axes, levels, expected, strict=True):
        assert_mesh_is(ax, one)
        assert mesh_of(ax).get_clim() == (0.0, pytest.approx(top))
        assert title_of(ax) == f"level {t}"
    assert len(axes[0].figure.axes) == 4
    assert axes[0].figure.get_suptitle().startswith("power of human 1\nby the cell of agent 2")


def test_maps_of_negative_numbers_and_of_changes_share_both_ends_and_the_colours(freeing: Solution) -> None:
    values = [analysis.robot_value_map(freeing, t) for t in (3, 6)]
    ends = {mesh_of(ax).get_clim() for ax in plots.plot_maps(values)}
    assert ends == {(np.nanmin([one.value_YX for one in values]), np.nanmax([one.value_YX for one in values]))}
    changes = [
        analysis.power_map(freeing, 1, t, agent=ROBOT) - analysis.power_map(freeing, 1, 3, agent=ROBOT) for t in (3, 6)
    ]
    axes = plots.plot_maps(changes)
    top = np.nanmax(np.abs([one.value_YX for one in changes]))
    assert {mesh_of(ax).get_clim() for ax in axes} == {(-top, top)}
    assert {mesh_of(ax).get_cmap().name for ax in axes} == {"RdBu_r"}


def test_the_grid_below_a_map_is_that_of_a_state_and_faded(freeing: Solution) -> None:
    state = freeing.rollouts(1, seed=1).states(0)[3]
    floor = np.array([244, 242, 237])
    drawn = [
        plots.plot_map(analysis.power_map(freeing, 1, 3), state=state),
        plots.plot_map(analysis.power_map(freeing, 1, 3)),
    ]
    for ax, shown in zip(drawn, (state, freeing.world.initial_state()), strict=True):
        (image,) = ax.get_images()
        expected = floor + 0.45 * (freeing.world.render(shown, tile=48) - floor)
        assert np.allclose(np.asarray(image.get_array()) * 255, expected)


def test_maps_of_goals_are_named_by_goals_and_columns_are_kept(ledge: Solution) -> None:
    axes = plots.plot_maps([analysis.value_map(ledge, 1, g, 3) for g in range(8)], columns=3)
    assert [title_of(ax) for ax in axes[:4]] == ["goal 1,2 to 2,2", "goal 3,1 to 3,3", "goal 4,2 to 5,2", "goal 1,3"]
    assert axes[0].figure.get_suptitle().startswith("value of the goal to human 1, level 3\n")
    rows = {round(ax.get_subplotspec().rowspan.start) for ax in axes}
    assert rows == {0, 1, 2}
    assert len(axes[0].figure.axes) == 9  # no empty panels


def test_maps_that_nothing_tells_apart_can_be_given_titles(freeing: Solution, doubtful: Solution) -> None:
    maps = [analysis.presence_map(one, ROBOT, 4) for one in (freeing, doubtful)]
    assert [title_of(ax) for ax in plots.plot_maps(maps)] == ["", ""]
    assert [title_of(ax) for ax in plots.plot_maps(maps, titles=["strict", "doubtful"])] == ["strict", "doubtful"]


def test_maps_of_horizons_are_named_by_them(freeing: Solution) -> None:
    short = solve(load_world("asymmetric_freeing", max_steps=5), progress=False)
    axes = plots.plot_maps([analysis.presence_map(one, ROBOT, 4) for one in (short, freeing)])
    assert [title_of(ax) for ax in axes] == ["5 steps in all", "10 steps in all"]
    assert axes[0].figure.get_suptitle().startswith("where agent 2 is, level 4\n")


def test_presence_maps_sum_to_one_and_are_what_the_chain_comes_to(freeing: Solution) -> None:
    chain, states = freeing.markov_chain, freeing.markov_chain.states
    mass = [0.0] * len(states)
    mass[states.index(freeing.world.initial_state())] = 1.0
    for i in sorted(range(len(states)), key=lambda i: states[i][0]):
        for j, p in chain[i].items():
            mass[j] += mass[i] * p
    axes = plots.plot_reached(freeing, ROBOT)
    levels = [0, 2, 4, 6, 8, 10]
    assert [title_of(ax) for ax in axes] == [f"level {t}" for t in levels]
    for ax, t in zip(axes, levels, strict=True):
        expected: dict[tuple[int, int], float] = defaultdict(float)
        for state, p in zip(states, mass, strict=True):
            if state[0] == t and p > 0:
                expected[state[1][ROBOT][:2]] += p
        assert sum(expected.values()) == pytest.approx(1)
        assert_mesh_is(ax, expected)
    assert axes[0].figure.axes[-1].get_ylabel() == "probability"


def test_scales_of_numbers() -> None:
    assert colour_scale(np.array([0.2, 0.5, np.nan])) == (0.0, 0.5, "viridis")
    assert colour_scale(np.array([-5.0, -2.0])) == (-5.0, -2.0, "viridis")
    assert colour_scale(np.array([-1.0, 3.0])) == (-3.0, 3.0, "RdBu_r")
    assert colour_scale(np.array([1.0, 3.0]), is_change=True) == (-3.0, 3.0, "RdBu_r")
    assert colour_scale(np.array([np.nan])) == (0.0, 1.0, "viridis")
    assert colour_scale(np.zeros(2)) == (0.0, 1.0, "viridis")
    assert colour_scale(np.zeros(2), is_change=True) == (-1.0, 1.0, "RdBu_r")
    assert colour_scale(np.array([-4.0, -4.0])) == (-4.0, -3.0, "viridis")
    assert colour_scale(np.array([0.2]), vmax=0.0) == (-1.0, 0.0, "viridis")


def test_numbers_are_written_with_the_decimals_of_their_scale() -> None:
    assert written([0.187, 0.004, 0.0, 1.0], 1.0) == [".19", ".00", "0", "1.00"]
    assert written([-104.8, -72.1], 104.8) == ["-105", "-72"]
    assert written([-0.25, 12.34], 12.34) == ["-.2", "12.3"]
    assert written([0.0256], 0.0256) == [".0256"]
    assert written([2.4e-7, -1e-10, 0.0], 2.4e-7) == ["2e-7", "-1e-10", "0"]
    assert written([-1e-5, -0.004, -0.006], 1.0) == [".00", ".00", "-.01"]


# --- arrows -----------------------------------------------------------------------------------------------------------


def heading(state: Any, agent: int, policy: Any, names: list[str]) -> np.ndarray:
    """Mean heading of an agent and, last, the probability that it does not move."""
    found = np.zeros(3)
    for a, p in enumerate(policy):
        if names[a] in TURN:
            found[:2] += p * np.array(DIRECTION_VECTORS[(state[1][agent][2] + TURN[names[a]]) % 4])
        else:
            found[2] += p
    return found


def quiver_of(ax: Axes) -> Quiver:
    (quiver,) = [one for one in ax.collections if isinstance(one, Quiver)]
    return quiver


def assert_arrows_are(ax: Axes, expected: dict[tuple[int, int], np.ndarray]) -> None:
    quiver = quiver_of(ax)
    arrows = {cell: h for cell, h in expected.items() if h[2] <= 0.5}
    assert {(x, y) for x, y in quiver.XY.tolist()} == set(arrows)
    for (x, y), u, v in zip(quiver.XY.tolist(), quiver.U.tolist(), quiver.V.tolist(), strict=True):
        assert (u, v) == pytest.approx(tuple(arrows[x, y][:2]), abs=1e-12)
    rings = [one for one in ax.collections if isinstance(one, PathCollection) and one.get_label() == "stays"]
    assert {tuple(xy) for xy in rings[0].get_offsets().tolist()} == set(expected) - set(arrows)


def test_arrows_of_the_robot_are_its_mean_headings(freeing: Solution) -> None:
    names = freeing.world.action_names

    def of_state(state: Any) -> np.ndarray:
        return heading(state, ROBOT, [freeing.robot_policy(state)[(a,)] for a in range(len(names))], names)

    expected = means_by_cell(freeing, 4, ROBOT, of_state)
    assert any(np.hypot(h[0], h[1]) > 0.9 for h in expected.values())
    ax = plots.plot_arrows(analysis.arrow_map(freeing, ROBOT, 4))
    assert_arrows_are(ax, expected)
    assert title_of(ax) == "robot 2, level 4"
    # Arrows are drawn in cells, y down, as long as 0.8 cells when the robot is sure.
    assert (quiver_of(ax).angles, quiver_of(ax).scale_units, quiver_of(ax).scale) == ("xy", "xy", 1.25)


def test_arrows_towards_a_goal_lie_on_the_values_given_under_them(ledge: Solution) -> None:
    goal, names = ledge.goals[1][5], ledge.world.action_names
    expected = means_by_cell(
        ledge, 3, 1, lambda state: heading(state, 1, ledge.prior(state, 1, goal), names), weighted=False
    )
    values = analysis.value_map(ledge, 1, goal, 3, others="mean")
    ax = plots.plot_arrows(analysis.arrow_map(ledge, 1, 3, goal=goal, others="mean"), under=values)
    assert_arrows_are(ax, expected)
    assert np.ma.allequal(mesh_of(ax).get_array(), np.ma.masked_invalid(values.value_YX))
    assert title_of(ax) == "human 1 towards goal 1,4, level 3"
    assert [text.get_text().replace("\n", " ") for text in ax.texts] == [
        "length: how sure; ring: mostly stays; colour: value of goal 1,4 to human 1"
    ]
    assert len([patch for patch in ax.patches if patch.get_label() == "goal"]) == 1


def test_a_ring_instead_of_an_arrow_is_where_an_agent_mostly_stays(freeing: Solution) -> None:
    arrows = analysis.arrow_map(freeing, ROBOT, 4)
    still = freeing.world.action_names.index("still")
    action_YXA = arrows.action_YXA.copy()
    action_YXA[2, 6] = 0.1
    action_YXA[2, 6, still] = 0.7
    changed = replace(arrows, action_YXA=action_YXA)
    assert changed.stays_YX[2, 6] == 0.7
    ax = plots.plot_arrows(changed)
    rings = [one for one in ax.collections if isinstance(one, PathCollection) and one.get_label() == "stays"]
    assert [6, 2] in rings[0].get_offsets().tolist()
    assert [6, 2] not in quiver_of(ax).XY.tolist()
    assert [6, 2] in quiver_of(plots.plot_arrows(arrows)).XY.tolist()


# --- decisions --------------------------------------------------------------------------------------------------------


def expected_power(solution: Solution, state: Any, robot_action: int) -> np.ndarray:
    """Expected power one step later, from the policies, the transitions and the reports of the states that follow."""
    humans = [solution.prior(state, h) / solution.prior(state, h).sum() for h in solution.humans]
    total = np.zeros(len(solution.humans))
    for actions in product(range(len(solution.world.action_names)), repeat=len(humans)):
        weight = np.prod([policy[a] for policy, a in zip(humans, actions, strict=True)])
        for p, after in solution.world.transition_probabilities(state, [*actions, robot_action]) or []:
            power = solution.at(after).power
            total += weight * p * np.array([power.get(h, 0.0) for h in solution.humans])
    return total


def test_a_decision_shows_probabilities_values_and_the_power_that_follows(freeing: Solution) -> None:
    state = freeing.rollouts(1, seed=1).states(0)[2]
    report, names = freeing.at(state), freeing.world.action_names
    ax = plots.plot_decision(analysis.decision_at(freeing, state))
    ranked = sorted(report.robot_policy, key=lambda profile: -report.robot_policy[profile])
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([report.robot_policy[r] for r in ranked])
    assert [label.get_text() for label in ax.get_yticklabels()] == [names[r[0]] for r in ranked]
    rows = defaultdict(list)
    for text in ax.texts:
        rows[round(float(text.xy[1] if hasattr(text, "xy") else text.get_position()[1]), 3)].append(text.get_text())
    for y, profile in enumerate(ranked):
        probability, q, *power = map(float, rows[y])
        assert probability == pytest.approx(report.robot_policy[profile], abs=5.1e-4)
        assert q == pytest.approx(report.Q_r[profile], rel=1e-4)
        assert power == pytest.approx(expected_power(freeing, state, profile[0]).tolist(), abs=5.1e-5)
    assert ax.get_xlabel() == "probability"
    assert rows[-0.7] == ["$Q_r$", "human 0", "human 1"]
    assert title_of(ax) == "what the robots do, level 2"


def test_a_decision_tells_what_is_not_shown(freeing: Solution) -> None:
    decision = analysis.decision_at(freeing, freeing.world.initial_state())
    ax = plots.plot_decision(decision, most=2)
    assert len(ax.patches) == 2
    rest = np.sort(decision.probability_R)[:2].sum()
    assert f"the 2 likeliest of 4 profiles; the others together have probability {rest:.3g}" in [
        text.get_text().replace("\n", " ") for text in ax.texts
    ]


class Wordy(TwoSteps):
    """Three humans and a robot, whose actions have long names."""

    agents = ("human", "human", "human", "robot")
    action_space = SimpleNamespace(n=3)
    action_names = ("press_the_button", "wait_for_others", "open_every_door")
    human_agent_indices = (0, 1, 2)
    robot_agent_indices = (3,)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        t, k = state
        return None if t == self.steps else [(1.0, (t + 1, 1 if sum(actions) > 2 else k))]


@pytest.mark.parametrize("n_humans", [1, 2, 3])
@pytest.mark.parametrize("where", ["a new figure", "given Axes", "given Axes of a layout that adapts itself"])
def test_columns_of_a_decision_stand_apart_however_long_the_names_of_actions_are(n_humans: int, where: str) -> None:
    solution = solve(Wordy(), human_agent_indices=[0, 1, 2][:n_humans], robot_agent_indices=[3], progress=False)
    decision = analysis.decision_at(solution, solution.world.initial_state())
    layout = "constrained" if where.endswith("itself") else None
    ax = plots.plot_decision(decision, None if where == "a new figure" else plt.subplots(layout=layout)[1])
    ax.figure.canvas.draw()
    texts = [*ax.texts, *ax.get_yticklabels()]
    assert [text.get_text() for text in texts[-3:]] == [decision.names[r] for r in np.argsort(-decision.probability_R)]
    boxes = [text.get_window_extent() for text in texts]
    for (i, one), (j, other) in combinations(enumerate(boxes), 2):
        assert not one.overlaps(other), (texts[i].get_text(), texts[j].get_text())
    heads = [
        box for text, box in zip(texts, boxes, strict=True) if text.get_text() in ("$Q_r$", "human 0", "human 1", "human 2")
    ]
    assert len(heads) == 1 + n_humans
    assert min(right.x0 - left.x1 for left, right in pairwise(heads)) > 3, "pixels"
    if where == "a new figure":
        assert min(margins_of(ax.figure)) > 0


# --- lines over levels ------------------------------------------------------------------------------------------------


def test_a_course_shows_what_its_states_report_and_when_goals_are_first_attained(freeing: Solution) -> None:
    episodes = freeing.rollouts(200, seed=3)
    states = episodes.states(int(episodes.attained_NHG[:, 1].sum(axis=1).argmax()))
    reports = [freeing.at(state) for state in states]
    power, goals, reward, value = plots.plot_course(analysis.course_of(freeing, states))
    last = len(states) - 1
    assert reports[-1].is_terminal
    for human in freeing.humans:
        x, y = line_points(power, f"human {human}")
        assert x.tolist() == list(range(last))  # the terminal state has no power
        assert y == pytest.approx([report.power[human] for report in reports[:-1]])
    assert line_points(reward)[1] == pytest.approx([report.U_r for report in reports[:-1]])
    assert line_points(value)[1] == pytest.approx([report.V_r for report in reports])
    expected: dict[tuple[int, int], list[int]] = defaultdict(list)
    for h, human in enumerate(freeing.humans):
        for g, goal in enumerate(freeing.goals[human]):
            when = [t for t, state in enumerate(states) if goal.is_achieved(state)]
            if when:
                expected[when[0], h].append(g)
    assert len(expected) >= 3
    shown = {tuple(map(int, text.xy)): text.get_text() for text in goals.texts}
    assert shown == {where: ", ".join(map(str, numbers)) for where, numbers in expected.items()}
    assert {tuple(mark.get_offsets()[0].astype(int).tolist()) for mark in goals.collections} == set(expected)
    assert [ax.get_ylabel().replace("\n", " ") for ax in (power, goals, reward, value)] == [
        "power $X_h$",
        "goals first attained",
        "robot's reward $U_r$",
        "robot's value $V_r$",
    ]
    assert value.get_xlabel() == "level (steps)"


def test_many_goals_attained_at_once_are_counted(ledge: Solution) -> None:
    course = analysis.course_of(ledge, ledge.rollouts(1).states(0))
    attained_NHG = course.attained_NHG.copy()
    attained_NHG[2:, 0, :] = True
    newly = 8 - int(course.attained_NHG[:2, 0].any(axis=0).sum())
    goals = plots.plot_course(replace(course, attained_NHG=attained_NHG))[1]
    assert {tuple(text.xy): text.get_text() for text in goals.texts}[2, 0] == f"{newly} goals"


def test_a_timeline_shows_the_absorbed_mass_of_the_chain(freeing: Solution) -> None:
    chain, states = freeing.markov_chain, freeing.markov_chain.states
    asked = [lambda state: ("rock", 8, 2) not in state[2], lambda state: state[1][1][:2] == (8, 2)]
    given = [events.thing_gone("rock", (8, 2)), events.agent_in(1, (8, 2))]
    ax = plots.plot_probability_by_time(freeing, given, ["rock gone", "human out"])
    ends = []
    for label, ask in zip(["rock gone", "human out"], asked, strict=True):
        mass, happened = np.zeros(len(states)), np.zeros(HORIZON + 1)
        mass[states.index(freeing.world.initial_state())] = 1.0
        for i in sorted(range(len(states)), key=lambda i: states[i][0]):
            if ask(states[i]):
                happened[states[i][0] :] += mass[i]
            else:
                for j, p in chain[i].items():
                    mass[j] += mass[i] * p
        x, y = line_points(ax, label)
        assert x.tolist() == list(range(HORIZON + 1))
        assert y == pytest.approx(happened, abs=1e-12)
        ends.append(happened[-1])
    assert ends[0] > 0.5
    assert ends[1] > 0
    assert [line.get_drawstyle() for line in ax.get_lines()] == ["steps-post"] * 2
    assert [(text.get_text(), text.xy[1]) for text in ax.texts] == [
        ("rock gone", pytest.approx(ends[0])),
        ("human out", pytest.approx(ends[1])),
    ]
    assert ax.get_legend() is None
    assert (ax.get_ylabel(), ax.get_xlabel()) == ("probability", "level (steps)")


def test_many_lines_get_a_legend_and_events_call_themselves_by_name(freeing: Solution) -> None:
    def has_begun(state: Any) -> bool:
        return state[0] > 0

    cells = [events.agent_in(ROBOT, (x, 2)) for x in range(1, 8)]
    ax = plots.plot_probability_by_time(freeing, [*cells, has_begun])
    assert len(ax.texts) == 0
    named = [text.get_text() for text in ax.get_legend().get_texts()]
    assert named == [*map(repr, cells), "has_begun"]
    assert ax.get_lines()[7].get_linestyle() != ax.get_lines()[0].get_linestyle()  # colours begin anew


def test_levels_show_sizes_power_with_its_spread_and_entropy(freeing: Solution) -> None:
    sizes, power, entropy = plots.plot_levels(freeing)
    assert [bar.get_height() for bar in sizes.patches] == freeing.dag.level_sizes
    assert sizes.get_yscale() == "log"
    bands = [one for one in power.collections if isinstance(one, PolyCollection)]
    for h, human in enumerate(freeing.humans):
        x, y = line_points(power, f"human {human}")
        assert x.tolist() == list(range(HORIZON))  # all states of the last level are terminal
        corners = bands[h].get_paths()[0].vertices
        for t in range(HORIZON):
            power_S = freeing.values.X_h[t][:, h].tolist()
            reached = [(x, p) for x, p in zip(power_S, freeing.reached[t].tolist(), strict=True) if p > 0]
            assert y[t] == pytest.approx(sum(v * p for v, p in reached), abs=1e-12)
            spread = sorted(reached)
            shares = list(accumulate(p for _, p in spread))
            low, high = (next(v for (v, _), share in zip(spread, shares, strict=True) if share >= q) for q in (0.1, 0.9))
            at_level = corners[corners[:, 0] == t, 1]
            assert (at_level.min(), at_level.max()) == pytest.approx((low, high))
    x, y = line_points(entropy)
    assert x.tolist() == list(range(HORIZON))
    for t in range(HORIZON):
        pi_SR = freeing.pi_r[t]
        assert y[t] == pytest.approx(-(freeing.reached[t] @ (pi_SR * np.log(pi_SR)).sum(axis=1)))
    assert line_points(entropy, entropy.get_lines()[1].get_label())[1].tolist() == pytest.approx([np.log(4)] * 2)
    assert title_of(sizes) == f"{freeing.dag.n_states:,} states by level"


def test_weighted_quantiles_of_columns() -> None:
    value_MH = np.array([[3.0, 10.0], [1.0, 20.0], [2.0, 30.0]])
    weight_M = np.array([0.5, 0.2, 0.3])
    assert weighted_quantiles(value_MH, weight_M, [0.2, 0.45, 0.9]).tolist() == [[1.0, 10.0], [2.0, 10.0], [3.0, 30.0]]
    for n in (20, 40, 50):  # where shares in floating point fall short of a tenth
        alike = weighted_quantiles(np.arange(1.0, n + 1)[:, np.newaxis], np.full(n, 0.1), [0.1, 0.9])
        assert alike[:, 0].tolist() == [n // 10, 9 * n // 10]


def test_a_comparison_shows_distances_divergences_and_changes_of_power(freeing: Solution, doubtful: Solution) -> None:
    distance, divergence, power = plots.plot_comparison(analysis.compare(freeing, doubtful))
    for t in range(HORIZON):
        weight_S, p_SR, q_SR = freeing.reached[t], freeing.pi_r[t], doubtful.pi_r[t]
        assert line_points(distance)[1][t] == pytest.approx(weight_S @ np.abs(p_SR - q_SR).sum(axis=1) / 2, abs=1e-12)
        assert line_points(divergence)[1][t] == pytest.approx(weight_S @ (p_SR * np.log(p_SR / q_SR)).sum(axis=1), abs=1e-9)
        change_SH = doubtful.values.X_h[t] - freeing.values.X_h[t]
        for h, human in enumerate(freeing.humans):
            assert line_points(power, f"human {human}")[1][t] == pytest.approx(weight_S @ change_SH[:, h], abs=1e-12)
    assert [text.get_text() for text in distance.texts] == [
        "means over states that both solutions have, weighted by their probability in the first"
    ]
    assert divergence.get_ylabel() == "divergence\n(nats)"
    unweighted = plots.plot_comparison(analysis.compare(freeing, doubtful, over="mean"))[0]
    assert "all weighted equally" in unweighted.texts[0].get_text()


def test_a_comparison_across_zeta_draws_values_instead_of_power(freeing: Solution) -> None:
    other = solve(freeing.world, freeing.params.replace(zeta=3), dag=freeing.dag, progress=False)
    compared = analysis.compare(freeing, other)
    values = plots.plot_comparison(compared)[2]
    subtitle = " ".join(values.get_title(loc="left").split())
    assert values.get_ylabel() == "change of\nvalues $V_h^e$"
    assert line_points(values, f"human {freeing.humans[0]}")[1] == pytest.approx(compared.value_TH[:, 0])
    assert subtitle == "second minus first; power is defined with zeta, which differs"


def test_names_at_the_ends_of_lines_are_kept_apart_in_their_order() -> None:
    assert apart(np.array([0.0, 50.0, 20.0]), 10).tolist() == [0, 50, 20]
    assert apart(np.array([5.0, 5.0]), 10).tolist() == [0, 10]
    moved = apart(np.array([30.0, 1.0, 0.0, 2.0, 31.0, 12.0]), 10)
    assert np.argsort(moved, kind="stable").tolist() == [2, 1, 3, 5, 0, 4]
    assert np.diff(np.sort(moved)).min() >= 10 - 1e-9
    assert moved.mean() == pytest.approx(np.mean([30.0, 1.0, 0.0, 2.0, 31.0, 12.0]))


# --- the pictures of the docs -----------------------------------------------------------------------------------------


def test_the_pictures_of_the_docs_are_there_small_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "pictures"))
    import make_pictures

    page = (ROOT / "docs" / "questions.md").read_text(encoding="utf-8")
    for make in make_pictures.PICTURES:
        path = ROOT / "docs" / "pictures" / f"{make.__name__}.png"
        assert path.stat().st_size < 150_000
        assert f"](pictures/{path.name})" in page


@dataclass(frozen=True)
class Odd:
    """A goal whose name is no equation, and has two lines."""

    price: str = "$\\bad{$\nand $6"

    def is_achieved(self, state: Any) -> int:
        return int(state[0] >= 1)

    def __repr__(self) -> str:
        return self.price


class OddGoals:
    def generate(self, state: Any, human: int) -> Any:
        yield Odd(), 1.0


def test_names_of_goals_are_drawn_to_the_letter() -> None:
    world = load_world("asymmetric_freeing", max_steps=3)
    solution = solve(world, possible_goal_generator=OddGoals(), progress=False)
    drawn = [
        plots.plot_map(analysis.value_map(solution, 0, 0, 1)),
        plots.plot_arrows(analysis.arrow_map(solution, 0, 1, goal=0)),
        *plots.plot_maps([analysis.value_map(solution, 0, 0, level) for level in (1, 2)]),
    ]
    for ax in drawn:
        ax.figure.canvas.draw()
    assert r"\$" in drawn[0].get_title(loc="left")
    for ax in drawn:
        plt.close(ax.figure)


def test_worlds_without_robots_have_pictures_of_levels_and_comparisons() -> None:
    solution = solve(load_world("basics/first_steps", max_steps=3), progress=False)
    assert solution.robots == []
    for axes in (plots.plot_levels(solution), plots.plot_comparison(analysis.compare(solution, solution))):
        plt.close(axes[0].figure)
    assert analysis.robot_value_map(solution, 1).agent == solution.humans[0]


def test_texts_of_users_stay_where_arrows_are_drawn() -> None:
    solution = solve(load_world("asymmetric_freeing", max_steps=3), progress=False)
    _, ax = plt.subplots()
    mine = ax.text(0, 0, "mine")
    plots.plot_arrows(analysis.arrow_map(solution, 2, 1), ax, under=analysis.power_map(solution, 0, 1))
    assert mine in ax.texts
    plt.close(ax.figure)
