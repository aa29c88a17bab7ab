"""A solution level by level: :func:`plot_levels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from empo_bi.analysis.plots.canvas import AxesArray, bare, expect, name_lines, over_levels, panels, title
from empo_bi.analysis.plots.colours import agent_colour, colour, robots_colour
from empo_bi.analysis.quantiles import weighted_quantiles
from empo_bi.analysis.uncertainty import robot_entropy
from empo_bi.results.solution import Solution
from empo_bi.types import FloatArray

BAND = (0.1, 0.9)


def plot_levels(solution: Solution, axes: Any = None) -> AxesArray:
    r"""Draw how many states levels have, the humans' power in those that come about, and how undecided the robots are.

    Power is shown as its mean under both policies, with a band that begins where the least tenth ends and ends where the
    greatest tenth begins; the robots' mean entropy beside :math:`\ln R`, that of choosing among R profiles at random.

    Parameters
    ----------
    solution : Solution, with both phases
    axes : 3 Axes; None for a new figure

    Returns
    -------
    (3,) array of Axes
    """
    expect(solution, Solution, "solution", "solve(world)")
    sizes, power, entropy = drawn = panels(axes, (3, 1), (7.0, 6.2), height_ratios=[1, 1.6, 1], share_x=True)
    horizon = solution.dag.horizon
    level_T = np.arange(horizon + 1)
    sizes.bar(level_T, solution.dag.level_sizes, color=colour(4), width=0.8)
    sizes.set(yscale="log", ylabel="states")
    sizes.minorticks_off()
    mean_TH, low_TH, high_TH = power_spread(solution)
    known = np.isfinite(mean_TH).all(axis=1)
    colours = [agent_colour(human) for human in solution.humans]
    for h, human in enumerate(solution.humans):
        power.fill_between(level_T[known], low_TH[known, h], high_TH[known, h], color=colours[h], alpha=0.2, linewidth=0)
        power.plot(level_T[known], mean_TH[known, h], color=colours[h], marker="o", markersize=3.5, label=f"human {human}")
    power.set(ylabel="power $X_h$", ylim=(0, None))
    entropy_T = robot_entropy(solution)
    entropy.plot(level_T[:horizon], entropy_T, color=robots_colour(solution), marker="o", markersize=3.5)
    most = float(np.log(len(solution.robot_profiles)))
    entropy.axhline(most, linestyle="--", linewidth=0.8, color="grey")
    entropy.annotate(
        f"at random: ln {len(solution.robot_profiles)}", (0, most), (0, 2), textcoords="offset points", va="bottom",
        fontsize="x-small", annotation_clip=False,
    )  # fmt: skip
    entropy.set(ylabel="robots' entropy\n(nats)", ylim=(0, 1.2 * most or 1.0))
    for ax in drawn:
        bare(ax)
        over_levels(ax, horizon, label=ax is entropy)
    if known.any():
        end = int(level_T[known][-1])
        name_lines(power, [(end, float(x)) for x in mean_TH[end]], [f"human {human}" for human in solution.humans], colours)
    title(sizes, f"{solution.dag.n_states:,} states by level")
    title(power, "power under both policies: mean, and a band without the least and the greatest tenth", size="small")
    return drawn


def power_spread(solution: Solution) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(T + 1, H) each: mean, 10 % and 90 % quantile of power over what both policies come to; nan if all is terminal.

    States are weighted by their probability given that they are not terminal.
    """
    shape = (solution.dag.horizon + 1, len(solution.humans))
    mean_TH, low_TH, high_TH = (np.full(shape, np.nan) for _ in range(3))
    for t in range(shape[0]):
        place_M = np.flatnonzero(solution.reached[t])
        power_MH = solution.rows("xh", t, place_M)
        goes_on = (power_MH > 0).all(axis=1)
        if goes_on.any():
            power_MH, weight_M = power_MH[goes_on], solution.reached[t][place_M[goes_on]]
            mean_TH[t] = np.average(power_MH, axis=0, weights=weight_M)
            low_TH[t], high_TH[t] = weighted_quantiles(power_MH, weight_M, BAND)
    return mean_TH, low_TH, high_TH
