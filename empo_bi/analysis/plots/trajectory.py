"""Values along a trajectory: :func:`plot_course`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from empo_bi.analysis.plots.canvas import AxesArray, AxesLike, bare, expect, name_lines, over_levels, panels, plain, title
from empo_bi.analysis.plots.colours import agent_colour, text_colour
from empo_bi.analysis.trajectory import Course

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NUMBERED = 3  # up to this many goals attained at once are shown by their numbers


def plot_course(course: Course, axes: AxesLike = None) -> AxesArray:
    """Draw the humans' power, the goals that they attain, and the robot's reward and value along a trajectory.

    A goal is marked where it is first attained, with its name, or its number in ``solution.goals[human]``. Terminal states
    have no power and no reward, so these lines end before them.

    Parameters
    ----------
    course : Course, of states on ascending levels
    axes : 4 Axes, for power, goals, reward and value; None for a new figure

    Returns
    -------
    (4,) array of Axes
    """
    expect(course, Course, "course", "course_of(solution, solution.rollouts(1).states(0))")
    if (np.diff(course.level_N) <= 0).any():
        raise ValueError(f"the states are on levels {course.level_N.tolist()}; give states on ascending levels")
    n_humans = len(course.humans)
    ratios = [2.4, 0.35 + 0.3 * n_humans, 1.2, 1.2]
    power, goals, reward, value = drawn = panels(
        axes, (4, 1), (7.0, 1.0 + 0.95 * sum(ratios)), height_ratios=ratios, share_x=True
    )
    goes_on = (course.X_NH > 0).all(axis=1)
    level_M, last = course.level_N[goes_on], int(course.level_N[-1])
    colours = [agent_colour(human) for human in course.humans]
    names = [f"human {human}" for human in course.humans]
    for h, (colour, name) in enumerate(zip(colours, names, strict=True)):
        power.plot(level_M, course.X_NH[goes_on, h], color=colour, marker="o", markersize=4, label=name)
    power.set(ylabel="power $X_h$", ylim=(0, None))
    _mark_goals(goals, course, colours, names)
    for ax, number_M, at_M, symbol, meaning in (
        (reward, course.U_N[goes_on], level_M, "$U_r$", "reward"),
        (value, course.V_N, course.level_N, "$V_r$", "value"),
    ):
        ax.plot(at_M, number_M, color=text_colour(), marker="o", markersize=3, linewidth=1.2)
        ax.set_ylabel(f"robot's\n{meaning} {symbol}")
        ax.margins(y=0.15)
        ax.locator_params(axis="y", nbins=4)
    for ax in (power, reward, value):
        bare(ax)
    over_levels(value, last)
    for ax in (power, goals, reward):
        over_levels(ax, last, label=False)
    if len(level_M):
        name_lines(power, [(level_M[-1], float(x)) for x in course.X_NH[goes_on][-1]], names, colours)
    title(power, f"along one trajectory, level {course.level_N[0]} to {last}")
    return drawn


def _mark_goals(ax: Axes, course: Course, colours: list[str], names: list[str]) -> None:
    first_NHG = course.attained_NHG & (np.cumsum(course.attained_NHG, axis=0) == 1)
    for h, colour in enumerate(colours):
        for i in np.flatnonzero(first_NHG[:, h].any(axis=1)).tolist():
            goal_M = np.flatnonzero(first_NHG[i, h]).tolist()
            shown = [plain(course.goal_names[h][g]) for g in goal_M]
            text = ", ".join(shown) if len(shown) <= NUMBERED else f"{len(shown)} goals"
            ax.scatter(course.level_N[i], h, color=colour, marker="D", s=26, zorder=3)
            ax.annotate(text, (course.level_N[i], h), (5, 0), textcoords="offset points", va="center", fontsize="x-small")
    ax.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.4, -0.6))
    ax.tick_params(axis="y", length=0, labelsize="small")
    ax.set_ylabel("goals first\nattained")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="x", alpha=0.25, linewidth=0.6)
