"""Axes to draw into, their titles and labels, and checks of arguments."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from empo_bi.analysis.plots.colours import readable
from empo_bi.runtime.extras import import_optional
from empo_bi.runtime.wording import short_repr
from empo_bi.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AxesArray = npt.NDArray[np.object_]
AxesLike: TypeAlias = "AxesArray | Sequence[Axes] | None"
LEVEL = "level (steps)"
FEW = 6  # with more lines than this, a legend names them


def expect(value: object, kind: type | tuple[type, ...], name: str, where_from: str) -> None:
    """Raise TypeError if an argument has another type; ``where_from`` is an example of what to give."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(one.__name__ for one in kinds)
        raise TypeError(f"{name} is {short_repr(value)}, a {type(value).__name__}; give a {wanted}, such as {where_from}")


# A constrained layout makes room for titles by the size of Axes before drawing. Grids shrink when they are drawn, since
# their cells are square, and would get too little room; a compressed layout measures again.
LAYOUT = {False: "constrained", True: "compressed"}


def axes_or_new(ax: Axes | None, size: tuple[float, float], *, is_grid: bool = False) -> Axes:
    """The given Axes, or those of a new figure of ``size`` inches; ``is_grid`` if it will show square cells."""
    if ax is None:
        return import_optional("matplotlib.pyplot", "analysis").subplots(figsize=size, layout=LAYOUT[is_grid])[1]
    expect(ax, import_optional("matplotlib.axes", "analysis").Axes, "ax", "plt.subplots()[1]")
    return ax


def panels(
    axes: AxesLike, shape: tuple[int, int], size: tuple[float, float], *, height_ratios: Sequence[float] | None = None,
    share_x: bool = False, n: int | None = None, is_grid: bool = False,
) -> AxesArray:  # fmt: skip
    """(n,) Axes: the given ones, or the first n of a new figure with ``shape`` rows and columns."""
    n = shape[0] * shape[1] if n is None else n
    if axes is None:
        grid = {"height_ratios": height_ratios} if height_ratios is not None else {}
        _, made = import_optional("matplotlib.pyplot", "analysis").subplots(
            *shape, figsize=size, layout=LAYOUT[is_grid], squeeze=False, sharex=share_x, gridspec_kw=grid
        )
        for spare in made.ravel()[n:]:
            spare.remove()
        return made.ravel()[:n]
    given = np.asarray(axes, dtype=object).ravel()
    if len(given) != n:
        raise ValueError(f"axes has {len(given)} Axes for {n} panels; give {n} of them, or none")
    for ax in given:
        expect(ax, import_optional("matplotlib.axes", "analysis").Axes, "one of axes", "those of plt.subplots(2, 3)[1]")
    return given


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Approximate width and height of Axes in points; the layout may change them when the figure is drawn."""
    per_pixel = 72 / ax.figure.dpi
    return per_pixel * ax.bbox.width, per_pixel * ax.bbox.height


def title(ax: Axes, text: str, subtitle: str = "", *, size: str = "medium") -> None:
    """A title at the left, wrapped to the width of the Axes, and a smaller subtitle below it."""
    from matplotlib.font_manager import FontProperties

    width, _ = size_in_points(ax)
    big, small = (FontProperties(size=name).get_size_in_points() for name in (size, "small"))
    lines = _wrapped(subtitle, width / (0.5 * small))
    if subtitle:
        ax.annotate(
            lines, (0, 1), (0, 4), xycoords="axes fraction", textcoords="offset points", fontsize=small, va="bottom",
            alpha=0.75, annotation_clip=False,
        )  # fmt: skip
    pad = 6 + (1.35 * small * (lines.count("\n") + 1) if subtitle else 0)
    ax.set_title(_wrapped(text, width / (0.54 * big)), loc="left", fontsize=big, pad=pad)


def plain(text: str) -> str:
    """A user's text for matplotlib, with dollar signs escaped, since they would begin an equation."""
    return text.replace("$", r"\$")


def one_line(text: str) -> str:
    return " ".join(text.split())


def _wrapped(text: str, n_characters: float) -> str:
    return "\n".join(line for part in text.split("\n") for line in textwrap.wrap(part, max(16, int(n_characters))))


def bare(ax: Axes) -> None:
    """Remove the upper and right side of the frame, and add faint horizontal grid lines."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)


def over_levels(ax: Axes, last: int, *, label: bool = True) -> None:
    """Make the x-axis one of levels, with whole numbers."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=min(max(last, 1), 12)))
    if label:
        ax.set_xlabel(LEVEL)


def name_lines(ax: Axes, ends: Sequence[tuple[float, float]], names: Sequence[str], colours: Sequence[str]) -> None:
    """Write the names of lines at their ends (x, y) without overlaps; many lines get a legend instead.

    Call it when the limits of the Axes are final. Lines whose end is nan are not named.
    """
    if len(names) > FEW:
        ax.legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
        return
    seen = [i for i, (_, y) in enumerate(ends) if np.isfinite(y)]
    if not seen:
        return
    from matplotlib.font_manager import FontProperties

    low, high = ax.get_ylim()
    y_M = np.array([ends[i][1] for i in seen])
    points_M = (y_M - low) / (high - low) * size_in_points(ax)[1]
    moved_M = apart(points_M, 1.25 * FontProperties(size="small").get_size_in_points()) - points_M
    x = max(ends[i][0] for i in seen)
    for i, y, moved in zip(seen, y_M.tolist(), moved_M.tolist(), strict=True):
        ax.annotate(
            names[i], (x, y), (6, moved), textcoords="offset points", va="center", fontsize="small",
            color=readable(colours[i]), annotation_clip=False,
        )  # fmt: skip


def apart(position_M: FloatArray, gap: float) -> FloatArray:
    """Positions moved so that neighbours are at least ``gap`` apart; colliding ones spread around their common middle."""
    order = np.argsort(position_M, kind="stable")
    groups: list[tuple[float, int]] = []  # the middle and the size of each pile
    for position in position_M[order]:
        middle, n = float(position), 1
        while groups and groups[-1][0] + gap * (groups[-1][1] + n) / 2 > middle:
            below, m = groups.pop()
            middle, n = (below * m + middle * n) / (m + n), m + n
        groups.append((middle, n))
    moved = np.concatenate([middle + gap * (np.arange(n) - (n - 1) / 2) for middle, n in groups])
    result = np.empty(len(position_M))
    result[order] = moved
    return result
