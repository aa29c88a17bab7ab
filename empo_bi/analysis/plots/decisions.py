"""What the robots decide in a state, and what is behind it: :func:`plot_decision`."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from empo_bi.analysis.decisions import Decision
from empo_bi.analysis.plots.canvas import axes_or_new, expect, size_in_points, title
from empo_bi.analysis.plots.colours import PALETTE, agent_colour, readable
from empo_bi.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = PALETTE[4]
START, COLUMN = 1.08, 0.27  # where columns of numbers begin, and their least width; the longest bar is 1
GAP = 8.0  # points between columns
LONGEST = 30  # characters of a profile's name in one line


def plot_decision(decision: Decision, ax: Axes | None = None, *, most: int = 12) -> Axes:
    """Draw the robots' policy in a state as bars, most likely first, with the numbers behind it in columns.

    The columns have :math:`Q_r` of each profile and the power of each human that is expected one step later.

    Parameters
    ----------
    decision : Decision
    ax : Axes to draw into; None for a new figure
    most : so many profiles are shown; the title tells how likely the others are together
    """
    expect(decision, Decision, "decision", "decision_at(solution, state)")
    if most < 1:
        raise ValueError(f"most={most}; show at least one profile")
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
    columns: list[tuple[str, str | None, list[str]]] = [("$Q_r$", None, rounded(decision.Q_R[shown]))]
    columns += [
        (f"human {human}", agent_colour(human), [f"{x:.4f}" for x in decision.power_after_RH[shown, h].tolist()])
        for h, human in enumerate(decision.humans)
    ]
    room = size_in_points(ax)[0] - (beside if ax.figure.get_layout_engine() is not None else 0.0)
    widest = GAP + _points([text for head, _, texts in columns[1:] for text in (head, *texts)], "small")
    column = _column_width(widest, room, n_columns)
    for c, (head, colour, texts) in enumerate(columns):
        x = START + column * (c + 1)
        inked: dict[str, Any] = {} if colour is None else {"color": readable(colour)}
        ax.text(x, -0.7, head, ha="right", va="bottom", fontsize="small", fontweight="bold", **inked)
        for y, text in zip(y_N.tolist(), texts, strict=True):
            ax.text(x, y, text, ha="right", va="center", fontsize="small")
    if decision.humans:
        ax.text(
            START + column * n_columns,
            -1.35,
            "power $X_h$ expected next",
            ha="right",
            va="bottom",
            fontsize="small",
            alpha=0.75,
        )
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


def _points(texts: list[str], size: str) -> float:
    """How wide the longest of some texts is, roughly: bold letters have 0.7 of their height."""
    from matplotlib.font_manager import FontProperties

    return 0.7 * FontProperties(size=size).get_size_in_points() * max(map(len, texts), default=0)


def _column_width(text: float, room: float, n: int) -> float:
    """The width of n columns, where the longest bar is 1, that holds a text; ``text`` and ``room`` are points.

    Of a room w, a column of width c gets w c / (START + n c). Where nothing is left for bars they keep a fifth.
    """
    needed = START * text / (room - n * text) if room > n * text else math.inf
    return max(COLUMN, min(needed, 4 * START / n))


def rounded(value_N: FloatArray) -> list[str]:
    """Numbers with as many decimals as show five digits of the greatest one."""
    most = float(np.abs(value_N).max(initial=0.0))
    decimals = min(6, max(0, 4 - math.floor(math.log10(most)))) if most > 0 else 0
    return [f"{value:.{decimals}f}" for value in value_N.tolist()]
