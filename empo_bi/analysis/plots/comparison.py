"""Two solutions side by side, level by level: :func:`plot_comparison`."""

from __future__ import annotations

import numpy as np

from empo_bi.analysis.comparison import Comparison
from empo_bi.analysis.plots.canvas import AxesArray, AxesLike, bare, expect, name_lines, over_levels, panels, title
from empo_bi.analysis.plots.colours import agent_colour, robots_colour
from empo_bi.analysis.selection import REACHED


def plot_comparison(comparison: Comparison, axes: AxesLike = None) -> AxesArray:
    """Draw the distance of the robots' decisions (total variation and divergence) and the change of power, by level.

    Where the solutions differ in zeta, with which power is defined, the change of V_h^e is drawn instead.

    Parameters
    ----------
    comparison : Comparison
    axes : 3 Axes; None for a new figure

    Returns
    -------
    (3,) array of Axes
    """
    expect(comparison, Comparison, "comparison", "compare(first, second)")
    distance, divergence, power = drawn = panels(axes, (3, 1), (7.0, 5.8), height_ratios=[1, 1, 1.4], share_x=True)
    n_levels = len(comparison.distance_T)
    level_T = np.arange(n_levels)
    humans, robot_colour = comparison.first.humans, robots_colour(comparison.first)
    line = {"marker": "o", "markersize": 3.5}
    distance.plot(level_T, comparison.distance_T, color=robot_colour, **line)
    distance.set(ylabel="distance\n(probability)", ylim=(0, None))
    divergence.plot(level_T, comparison.divergence_T, color=robot_colour, **line)
    divergence.set(ylabel="divergence\n(nats)", ylim=(0, None))
    colours = [agent_colour(human) for human in humans]
    names = [f"human {human}" for human in humans]
    power.axhline(0, color="grey", linewidth=0.8)
    for h in range(len(humans)):
        power.plot(level_T, comparison.change_TH[:, h], color=colours[h], label=names[h], **line)
    power.set_ylabel("change of\npower $X_h$" if comparison.same_zeta else "change of\nvalues $V_h^e$")
    power.margins(y=0.1)
    for ax in drawn:
        bare(ax)
        over_levels(ax, n_levels - 1, label=ax is power)
    known = np.flatnonzero(np.isfinite(comparison.change_TH).all(axis=1))
    if len(known):
        end = int(known[-1])
        name_lines(power, [(end, float(x)) for x in comparison.change_TH[end]], names, colours)
    weighted = "weighted by their probability in the first" if comparison.over == REACHED else "all weighted equally"
    title(distance, "how far the robots' decisions are apart", f"means over states that both solutions have, {weighted}")
    why = "" if comparison.same_zeta else "; power is defined with zeta, which differs"
    title(power, f"second minus first{why}", size="small")
    return drawn
