"""Colours that can be distinguished with any kind of colour vision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Union

import numpy as np

from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.colors import Colormap

ColourMap = Union[str, "Colormap"]

# The palette of Okabe and Ito without black, which is invisible in a dark style; its pale yellow comes last.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
MARKED = "#D55E00"  # the outline of a goal
SEQUENTIAL, DIVERGING = "viridis", "RdBu_r"
INK = "#24262c"  # on pictures of grids, which are light in every style
WHITE = "#ffffff"


def colour(i: int) -> str:
    return PALETTE[i % len(PALETTE)]


def agent_colour(agent: int) -> str:
    """The colour of an agent, human or robot, in all plots."""
    return colour(agent)


def robots_colour(solution: Solution) -> str:
    """The colour of the first robot, for what all robots do together; the text colour if there is none."""
    return agent_colour(solution.robots[0]) if solution.robots else text_colour()


def text_colour() -> str:
    """The text colour of the current style, for what belongs to no agent."""
    import matplotlib

    return str(matplotlib.rcParams["text.color"])


def readable(name: str) -> tuple[float, float, float]:
    """A colour for text: mixed with the text colour, since thin strokes need more contrast than lines."""
    from matplotlib.colors import to_rgb

    red, green, blue = 0.65 * np.array(to_rgb(name)) + 0.35 * np.array(to_rgb(text_colour()))
    return float(red), float(green), float(blue)


def ink_on(rgb: Sequence[float] | FloatArray) -> str:
    """Black or white, whichever is easier to read on a colour (r, g, b from 0 to 1)."""
    red, green, blue = rgb[:3]
    return INK if 0.299 * red + 0.587 * green + 0.114 * blue > 0.55 else WHITE


def colour_scale(
    values: FloatArray, vmin: float | None = None, vmax: float | None = None, cmap: ColourMap | None = None, *,
    is_change: bool = False,
) -> tuple[float, float, ColourMap]:  # fmt: skip
    """A range and a colour map for numbers, unless they are given.

    Positive numbers, such as probabilities, begin at 0; negative ones, such as the robot's values, which are never near 0,
    begin at the least. Changes, and numbers of both signs, have 0 in the middle.
    """
    found = values[np.isfinite(values)]
    low, high = (float(found.min()), float(found.max())) if len(found) else (0.0, 1.0)
    if is_change or low < 0 < high:
        reach = max(-low, high) or 1.0  # also if nothing changes, 0 is in the middle
        low, high, usual = -reach, reach, DIVERGING
    else:
        low, usual = min(low, 0.0) if low >= 0 else low, SEQUENTIAL
    low, high = low if vmin is None else float(vmin), high if vmax is None else float(vmax)
    if not low < high:
        low, high = (low, low + 1.0) if vmax is None else (high - 1.0, high)
    return low, high, usual if cmap is None else cmap
