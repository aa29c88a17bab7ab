"""The robots' decision in a state, and the numbers behind it: :func:`plot_decision`."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from empo_bi.analysis.decisions import Decision
from empo_bi.analysis.plots.canvas import axes_or_new, expect, size_in_points, title
from empo_bi.analysis.plots.colours import PALETTE, agent_colour, readable, text_colour
from empo_bi.types import FloatArray, IndexArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = PALETTE[4]
START, COLUMN = 1.08, 0.27  # where columns of numbers begin, and their minimum width; the longest bar is 1
GAP = 8.0  # points between columns
LONGEST = 30  # characters of a profile's name in one line


def plot_decision(decision: Decision, ax: Axes | None = None, *, most: int = 12) -> Axes:
    """Draw the robots' policy in a state as bars, most likely first, with the numbers behind it in columns.

    The columns show :math:`Q_r` of each profile and the expected power of each human one step later.

    Parameters
    ----------
    decision : Decision
    ax : Axes to draw into; None for a new figure
    most : show at most this many profiles; the title gives the total probability of the others
    """
    expect(decision, Decision, "decision", "decision_at(solution, state)")
    if most < 1:
        raise ValueError(f"most={most}; give a number of profiles, 1 or more")
    order = np.argsort(-decision.probability_R, kind="stable")
    shown, left_out = order[:most], order[most:]
    n, n_columns = len(shown), 1 + len(decision.humans)
    names = ["\n".join(textwrap.wrap(decision.names[r], LONGEST)) for r in shown]
    lines = max(name.count("\n") + 1 for name in names)
    beside = _points([line for name in names for line in name.split("\n")], "medium")
    ax = axes_or_new(ax, (4.0 + beside / 72 + 0.8 * n_columns, 1.45 + (0.12 + 0.2 * lines) * n))
    y_N, probability_N = np.arange(n), decision.probability_R[shown]
    bars = ax.barh(y_N, probability_N, height=0.66, color=BAR)
    for bar, probability in zip(bars, probability_N.tolist(), strict=True):
        ax.annotate(
            f"{probability:.3f}", (bar.get_width(), bar.get_y() + bar.get_height() / 2), (4, 0),
            textcoords="offset points", va="center", fontsize="small",
        )  # fmt: skip
    room = size_in_points(ax)[0] - (beside if ax.figure.get_layout_engine() is not None else 0.0)
    column = _put_columns(ax, decision, shown, room)
    ax.set(yticks=y_N, yticklabels=names, xticks=[0, 0.25, 0.5, 0.75, 1])
    ax.set_xlim(0, START + column * (n_columns + 0.05))
    ax.set_ylim(n - 0.4, -2.0)
    ax.set_xlabel("probability", x=0.5 / ax.get_xlim()[1])
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines["bottom"].set_bounds(0, 1)
    ax.spines["left"].set_bounds(n - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    rest = ""
    if len(left_out):
        total = float(decision.probability_R[left_out].sum())
        rest = f"the {n} likeliest of {len(order)} profiles; the others together have probability {total:.3g}"
    title(ax, f"what the robots do, level {decision.level}", rest)
    return ax


def _put_columns(ax: Axes, decision: Decision, shown: IndexArray, room: float) -> float:
    """Write :math:`Q_r` and the expected power of the humans beside the bars. Returns the width of a column."""
    columns: list[tuple[str, str | None, list[str]]] = [("$Q_r$", None, rounded(decision.Q_R[shown]))]
    columns += [
        (f"human {human}", agent_colour(human), [f"{x:.4f}" for x in decision.power_after_RH[shown, h].tolist()])
        for h, human in enumerate(decision.humans)
    ]
    widest = GAP + _points([text for head, _, texts in columns[1:] for text in (head, *texts)], "small")
    column = _column_width(widest, room, len(columns))
    for c, (head, colour, texts) in enumerate(columns):
        x = START + column * (c + 1)
        ink = text_colour() if colour is None else readable(colour)
        ax.text(x, -0.7, head, ha="right", va="bottom", fontsize="small", fontweight="bold", color=ink)
        for y, text in enumerate(texts):
            ax.text(x, y, text, ha="right", va="center", fontsize="small")
    if decision.humans:
        x = START + column * len(columns)
        ax.text(x, -1.35, "power $X_h$ expected next", ha="right", va="bottom", fontsize="small", alpha=0.75)
    return column


def _points(texts: list[str], size: str) -> float:
    """Approximate width of the longest text; bold letters are 0.7 times as wide as high."""
    from matplotlib.font_manager import FontProperties

    return 0.7 * FontProperties(size=size).get_size_in_points() * max(map(len, texts), default=0)


def _column_width(text: float, room: float, n: int) -> float:
    """The width of each of n columns that fits a text, in units of the longest bar; ``text`` and ``room`` are points.

    In a room of w points, a column of width c gets w c / (START + n c). Bars always keep at least a fifth of the room.
    """
    needed = START * text / (room - n * text) if room > n * text else math.inf
    return max(COLUMN, min(needed, 4 * START / n))


def rounded(value_N: FloatArray) -> list[str]:
    """Numbers with enough decimals for five digits of the largest one."""
    most = float(np.abs(value_N).max(initial=0.0))
    decimals = min(6, max(0, 4 - math.floor(math.log10(most)))) if most > 0 else 0
    return [f"{value:.{decimals}f}" for value in value_N.tolist()]
