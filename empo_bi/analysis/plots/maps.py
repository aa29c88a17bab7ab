"""Maps in colour, one or several with a common scale: :func:`plot_map`, :func:`plot_maps`, :func:`plot_reached`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from empo_bi.analysis.maps import CellMap, presence_map
from empo_bi.analysis.plots.canvas import AxesArray, AxesLike, axes_or_new, expect, one_line, panels, plain, title
from empo_bi.analysis.plots.colours import ColourMap, colour_scale, ink_on
from empo_bi.analysis.plots.grid import FLOOR, cell_points, draw_grid, figure_size, goal_label, in_words, outline_goal
from empo_bi.analysis.selection import level_number
from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray
from empo_bi.world.goals import name_of
from empo_bi.world.row_codec import MapState

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

OPACITY = 0.8
READABLE = 4.5  # points; smaller numbers are left out
TINY = 5e-4  # numbers below this would hardly show a digit in four decimals
FROM = "power_map(solution, 0, 3)"


def plot_map(
    cell_map: CellMap, ax: Axes | None = None, *, vmin: float | None = None, vmax: float | None = None,
    cmap: ColourMap | None = None, numbers: bool | None = None, state: MapState | None = None,
) -> Axes:  # fmt: skip
    """Draw a map: the faded grid, and each cell's number as a colour.

    Parameters
    ----------
    cell_map : CellMap
        From :func:`empo_bi.analysis.power_map` and similar functions, or the difference of two maps, in which rounding
        errors are shown as 0.
    ax : Axes to draw into; None for a new figure
    vmin, vmax : range of the colours
        By default from 0 to the largest number; negative numbers start at the least; numbers of both signs have 0 in the
        middle.
    cmap : a colour map; by default viridis, and for numbers of both signs RdBu
    numbers : whether to write numbers into the cells; None writes them if they are readable
    state : the state that the grid shows; None for the initial state
    """
    expect(cell_map, CellMap, "cell_map", FROM)
    cell_map = cell_map.rounded_off()
    ax = axes_or_new(ax, figure_size(cell_map.world, beside=1.5), is_grid=True)
    mesh = paint_map(ax, cell_map, vmin, vmax, cmap, numbers, state)
    what = in_words(f"{cell_map.quantity}, level {cell_map.level}", cell_map.goal)
    title(ax, what, plain(cell_map.how))
    _colour_bar(ax, [ax], mesh, cell_map.scale or what)
    return ax


def plot_maps(
    maps: Iterable[CellMap], axes: AxesLike = None, *, titles: Sequence[str] | None = None, columns: int | None = None,
    vmin: float | None = None, vmax: float | None = None, cmap: ColourMap | None = None, numbers: bool | None = None,
    state: MapState | None = None,
) -> AxesArray:  # fmt: skip
    """Draw several maps, for example of several levels or goals, with one colour scale so that they can be compared.

    Parameters
    ----------
    maps : CellMaps of one world
    axes : one Axes for each map; None for a new figure
    titles : one for each map; None for what distinguishes them: level, goal, quantity or horizon
    columns : of the new figure; None for a figure about as wide as a page
    vmin, vmax, cmap, numbers, state : as in :func:`plot_map`

    Returns
    -------
    (n,) array of Axes, in the order of the maps
    """
    maps = list(maps)
    if not maps:
        raise ValueError("maps is empty; give at least one CellMap, such as " + FROM)
    for one in maps:
        expect(one, CellMap, "one of maps", FROM)
    if columns is not None and columns < 1:
        raise ValueError(f"columns={columns}; give a number of columns, 1 or more")
    if titles is not None and len(titles) != len(maps):
        raise ValueError(f"titles has {len(titles)} entries for {len(maps)} maps; give one for each")
    if any(one.value_YX.shape != maps[0].value_YX.shape for one in maps):
        raise ValueError("the maps belong to grids of different sizes; draw the maps of each grid separately")
    maps, n = [one.rounded_off() for one in maps], len(maps)
    shape, size = _arranged(n, maps[0].value_YX.shape, columns)
    drawn = panels(axes, shape, size, n=n, is_grid=True)
    value_NYX = np.stack([one.value_YX for one in maps])
    low, high, colours = colour_scale(value_NYX, vmin, vmax, cmap, is_change=any(one.is_change for one in maps))
    for ax, one in zip(drawn, maps, strict=True):
        mesh = paint_map(ax, one, low, high, colours, numbers, state)
    common, names = _panel_names(maps)
    names = names if titles is None else list(titles)
    for ax, name in zip(drawn, names, strict=True):
        title(ax, name, size="small")
    _colour_bar(drawn[0], list(drawn), mesh, (maps[0].scale if _same(maps, "scale") else "") or _what(maps))
    if axes is None:
        figure = drawn[0].figure
        figure.suptitle(common, fontsize="medium", x=0.01, ha="left")
        figure.get_layout_engine().execute(figure)  # with several grids, one pass of the layout is not enough
    return drawn


def plot_reached(
    solution: Solution, agent: int, levels: Sequence[int] | None = None, axes: AxesLike = None, **options: Any
) -> AxesArray:
    """Where an agent is, level by level, under both policies: :func:`plot_maps` of presence maps.

    By default, ``levels`` are six evenly spaced levels; ``options`` are those of :func:`plot_maps`.
    """
    expect(solution, Solution, "solution", "solve(world)")
    if levels is None:
        levels = np.unique(np.linspace(0, solution.dag.horizon, 6).round().astype(int)).tolist()
    wanted = [level_number(solution, level) for level in levels]
    return plot_maps([presence_map(solution, agent, level) for level in wanted], axes, **options)


def paint_map(
    ax: Axes, cell_map: CellMap, vmin: float | None, vmax: float | None, cmap: ColourMap | None, numbers: bool | None,
    state: MapState | None,
) -> QuadMesh:  # fmt: skip
    """Draw the faded grid with the colours, the goal's frame and the numbers on it."""
    draw_grid(ax, cell_map.world, state, faded=True)
    low, high, colours = colour_scale(cell_map.value_YX, vmin, vmax, cmap, is_change=cell_map.is_change)
    height, width = cell_map.value_YX.shape
    mesh = ax.pcolormesh(
        np.arange(width + 1) - 0.5, np.arange(height + 1) - 0.5, np.ma.masked_invalid(cell_map.value_YX),
        cmap=colours, vmin=low, vmax=high, alpha=OPACITY, zorder=2,
    )  # fmt: skip
    ax.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5))
    outline_goal(ax, cell_map.goal)
    _write_numbers(ax, cell_map, mesh, numbers)
    return mesh


def _write_numbers(ax: Axes, cell_map: CellMap, mesh: QuadMesh, numbers: bool | None) -> None:
    found = np.argwhere(np.isfinite(cell_map.value_YX))
    most = float(np.abs(mesh.get_clim()).max())  # panels with the same scale use the same decimals
    texts = written(cell_map.value_YX[np.isfinite(cell_map.value_YX)], most)
    size = min(9.0, 1.5 * cell_points(ax, cell_map.world) / max([4, *map(len, texts)]))
    if numbers is False or (numbers is None and size < READABLE):
        return
    from matplotlib.patheffects import withStroke

    for (y, x), text in zip(found.tolist(), texts, strict=True):
        rgb = np.array(mesh.to_rgba(cell_map.value_YX[y, x])[:3])
        behind = OPACITY * rgb + (1 - OPACITY) * FLOOR
        ax.text(
            x, y, text, ha="center", va="center", fontsize=size, color=ink_on(behind), zorder=5,
            path_effects=[withStroke(linewidth=1.6, foreground=(*behind, 0.85))],  # the picture below may have any colour
        )  # fmt: skip


def written(value_M: FloatArray, most: float) -> list[str]:
    """Numbers with decimals that suit a scale up to ``most``, without the zero before the point; a plain 0 is exact.

    Numbers that are rounded to 0 have no sign. If four decimals would show nothing, numbers have exponents.
    """
    if 0 < most < TINY:
        return [f"{value:.0e}".replace("e-0", "e-") if value else "0" for value in np.asarray(value_M).tolist()]
    decimals = 2 if not most > 0 else min(4, max(0, 2 - math.floor(math.log10(most))))
    decimals = min(decimals, 2) if most >= 0.1 else decimals
    texts = [f"{value:z.{decimals}f}" if value else "0" for value in np.asarray(value_M, dtype=np.float64).tolist()]
    return [text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text for text in texts]


def _colour_bar(ax: Axes, beside: list[Axes], mesh: QuadMesh, label: str) -> None:
    bar = ax.figure.colorbar(mesh, ax=beside, label=label, shrink=0.85, pad=0.02, aspect=25)
    bar.ax.set_facecolor(tuple(FLOOR.tolist()))  # colours are translucent and lie on the floor in the grid
    bar.ax.tick_params(labelsize="small")
    bar.outline.set_visible(False)


def _arranged(n: int, grid: tuple[int, ...], columns: int | None) -> tuple[tuple[int, int], tuple[float, float]]:
    """Rows and columns for n panels, and the size in inches of their figure, about as wide as a page."""
    height, width = grid
    cell = max(0.25, 2.5 / max(height, width))
    if columns is None:
        most = max(1, round(10 / (cell * width + 0.3)))
        columns = math.ceil(n / math.ceil(n / most))
    columns = min(n, columns)
    rows = math.ceil(n / columns)
    cell = min(0.5, max(cell, 9 / (columns * width)))
    return (rows, columns), (columns * (cell * width + 0.3) + 0.9, rows * (cell * height + 0.5) + 0.45)


def _same(maps: list[CellMap], name: str) -> bool:
    return all(getattr(one, name) == getattr(maps[0], name) for one in maps)


def _what(maps: list[CellMap]) -> str:
    """What maps have in common, in a few words."""
    if _same(maps, "quantity"):
        return in_words(maps[0].quantity, maps[0].goal)
    texts = {plain(one.quantity.replace(f" {one_line(name_of(one.goal))} ", " the goal ", 1)) for one in maps}
    return texts.pop() if len(texts) == 1 else "value"


def _panel_names(maps: list[CellMap]) -> tuple[str, list[str]]:
    """What all maps have in common, and what distinguishes each of them."""
    goals = [one.goal for one in maps]
    by_goal = not _same(maps, "quantity") and None not in goals and len(set(goals)) == len(goals)
    parts = {
        "quantity": [plain(goal_label(goal)) for goal in goals]
        if by_goal
        else [in_words(one.quantity, one.goal) for one in maps],
        "level": [f"level {one.level}" for one in maps],
        "how": [one.how for one in maps],
        "horizon": [f"{one.world.max_steps} steps in all" for one in maps],
    }
    shared = {name: part[0] for name, part in parts.items() if len(set(part)) == 1}
    own = zip(*[part for name, part in parts.items() if name not in shared], strict=True)
    shared.pop("horizon", None)  # needs no mention
    how = shared.pop("how", "")
    common = ", ".join([_what(maps)] * by_goal + list(shared.values()))
    names = [", ".join(texts) for texts in own] or [""] * len(maps)
    return "\n".join(text for text in (common, how) if text), names
