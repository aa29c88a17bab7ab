"""Where an agent goes, as arrows on the grid: :func:`plot_arrows`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from empo_bi.analysis.arrows import ArrowMap
from empo_bi.analysis.maps import CellMap
from empo_bi.analysis.plots.canvas import axes_or_new, expect, title
from empo_bi.analysis.plots.colours import INK, WHITE
from empo_bi.analysis.plots.grid import cell_points, draw_grid, figure_size, in_words, outline_goal
from empo_bi.analysis.plots.maps import plot_map
from empo_bi.world.row_codec import MapState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONGEST = 0.8  # cells
LEGEND = "length: how sure; ring: mostly stays"


def plot_arrows(
    arrow_map: ArrowMap, ax: Axes | None = None, *, under: CellMap | None = None, state: MapState | None = None
) -> Axes:
    """Draw the mean heading on each cell; its length shows how sure the agent is, and a ring that it mostly stays.

    Parameters
    ----------
    arrow_map : ArrowMap
    ax : Axes to draw into; None for a new figure
    under : a CellMap of the same grid to draw below the arrows, such as the values that they climb
    state : the state that the grid shows; None for the initial state
    """
    expect(arrow_map, ArrowMap, "arrow_map", "arrow_map(solution, 0, 3)")
    world = arrow_map.world
    if under is not None:
        expect(under, CellMap, "under", "value_map(solution, 0, 1, 3)")
        if under.value_YX.shape != arrow_map.weight_YX.shape:
            raise ValueError(
                f"under has {under.value_YX.shape} cells (height, width), but the arrows have {arrow_map.weight_YX.shape}; "
                "give a map of the same grid"
            )
    ax = axes_or_new(ax, figure_size(world, beside=1.5 if under is not None else 0.6), is_grid=True)
    if under is None:
        draw_grid(ax, world, state, faded=True)
        outline_goal(ax, arrow_map.goal)
    else:
        already_there = set(ax.texts)
        plot_map(under, ax, numbers=False, state=state)
        for text in set(ax.texts) - already_there:  # the map's subtitle, since the title is that of the arrows
            text.remove()
        if under.goal is None:
            outline_goal(ax, arrow_map.goal)
    stays = arrow_map.stays_YX > 0.5
    y_M, x_M = np.nonzero(np.isfinite(arrow_map.stays_YX) & ~stays)
    heading_M2 = arrow_map.heading_YX2[y_M, x_M]
    ax.quiver(
        x_M, y_M, heading_M2[:, 0], heading_M2[:, 1], angles="xy", scale_units="xy", scale=1 / LONGEST, units="xy",
        width=0.085, headwidth=3.6, headlength=3.6, headaxislength=3.2, minlength=0.5, pivot="mid", color=INK,
        edgecolor=WHITE, linewidth=0.7, zorder=6,
    )  # fmt: skip
    y_M, x_M = np.nonzero(stays)
    side = cell_points(ax, world)
    ax.scatter(x_M, y_M, s=(0.34 * side) ** 2, facecolor="none", edgecolor=WHITE, linewidth=3.0, zorder=6)
    ax.scatter(x_M, y_M, s=(0.34 * side) ** 2, facecolor="none", edgecolor=INK, linewidth=1.5, zorder=7, label="stays")
    legend = LEGEND if under is None else f"{LEGEND}; colour: {in_words(under.quantity, under.goal)}"
    title(ax, in_words(arrow_map.title, arrow_map.goal), legend)
    return ax
