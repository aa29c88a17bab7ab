"""What the robots decide in a state, and what is behind it: :func:`plot_decision`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from empo_bi.analysis.decisions import Decision
from empo_bi.analysis.plots.canvas import axes_or_new, expect, title
from empo_bi.analysis.plots.colours import PALETTE, agent_colour, readable
from empo_bi.dag.slices import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR = PALETTE[4]
START, COLUMN = 1.08, 0.27  # where columns of numbers begin, and their width; the longest bar is 1


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
    ax = axes_or_new(ax, (4.6 + 0.8 * n_columns, 1.45 + 0.32 * n))
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
    for c, (head, colour, texts) in enumerate(columns):
        x = START + COLUMN * (c + 1)
        inked: dict[str, Any] = {} if colour is None else {"color": readable(colour)}
        ax.text(x, -0.7, head, ha="right", va="bottom", fontsize="small", fontweight="bold", **inked)
        for y, text in zip(y_N.tolist(), texts, strict=True):
            ax.text(x, y, text, ha="right", va="center", fontsize="small")
    if decision.humans:
        ax.text(
            START + COLUMN * n_columns,
            -1.35,
            "power $X_h$ expected next",
            ha="right",
            va="bottom",
            fontsize="small",
            alpha=0.75,
        )
    ax.set(yticks=y_N, yticklabels=[decision.names[r] for r in shown], xticks=[0, 0.25, 0.5, 0.75, 1])
    ax.set_xlim(0, START + COLUMN * (n_columns + 0.05))
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


def rounded(value_N: FloatArray) -> list[str]:
    """Numbers with as many decimals as show five digits of the greatest one."""
    most = float(np.abs(value_N).max(initial=0.0))
    decimals = min(6, max(0, 4 - math.floor(math.log10(most)))) if most > 0 else 0
    return [f"{value:.{decimals}f}" for value in value_N.tolist()]
