"""The probability that events have happened by each time: :func:`plot_probability_by_time`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from empo_bi.analysis.plots.canvas import axes_or_new, bare, expect, name_lines, over_levels, plain, title
from empo_bi.analysis.plots.colours import colour
from empo_bi.events import Event
from empo_bi.results.occupancy import probability_by_time
from empo_bi.results.solution import Solution
from empo_bi.world.goals import name_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = ("-", "--", ":", "-.")  # the next one each time the colours start over


def plot_probability_by_time(
    solution: Solution, events: Event | Sequence[Event], labels: Sequence[str] | None = None, ax: Axes | None = None, *,
    colours: Sequence[str] | None = None,
) -> Axes:  # fmt: skip
    """Draw the probability that each event has happened by each level, under both policies.

    Parameters
    ----------
    solution : Solution, with both phases
    events : an event or a list of them, as in :func:`empo_bi.probability_by_time`
    labels : a name for each event; by default its own name
    ax : Axes to draw into; None for a new figure
    colours : one for each event, such as ``agent_colour(0)``; by default the palette's, in order
    """
    expect(solution, Solution, "solution", "solve(world)")
    events = list(events) if isinstance(events, Sequence) else [events]
    if not events:
        raise ValueError("events is empty; give at least one, such as empo_bi.events.agent_in(0, (3, 2))")
    labels = [plain(getattr(event, "__name__", name_of(event))) for event in events] if labels is None else list(labels)
    colours = [colour(e) for e in range(len(events))] if colours is None else list(colours)
    for name, given in (("labels", labels), ("colours", colours)):
        if len(given) != len(events):
            raise ValueError(f"{name} has {len(given)} entries for {len(events)} events; give one for each")
    by_time_ET = probability_by_time(solution, events)
    ax = axes_or_new(ax, (7.0, 3.4))
    horizon = solution.dag.horizon
    for e, by_time_T in enumerate(by_time_ET):
        style = STYLES[e // 7 % len(STYLES)]
        ax.step(np.arange(horizon + 1), by_time_T, where="post", color=colours[e], linestyle=style, label=labels[e])
    ax.set(ylabel="probability", ylim=(-0.02, 1.02), xlim=(0, horizon))
    bare(ax)
    over_levels(ax, horizon)
    name_lines(ax, [(horizon, float(by_time_T[-1])) for by_time_T in by_time_ET], labels, colours)
    title(ax, "what has happened by each level")
    return ax
