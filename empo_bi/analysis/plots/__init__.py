"""Pictures of the answers, with matplotlib: ``from empo_bi.analysis import plots``.

Every function takes ``ax=None`` (or ``axes=None`` if it has several panels), draws into it or into a new figure, and returns
it. Nothing is shown or saved, and no setting of matplotlib is changed: ``plot_map(...).figure.savefig("map.png")``. An agent
has the same colour in all plots.
"""

from empo_bi.analysis.plots.arrows import plot_arrows
from empo_bi.analysis.plots.colours import agent_colour
from empo_bi.analysis.plots.comparison import plot_comparison
from empo_bi.analysis.plots.decisions import plot_decision
from empo_bi.analysis.plots.grid import plot_state
from empo_bi.analysis.plots.levels import plot_levels
from empo_bi.analysis.plots.maps import plot_map, plot_maps, plot_reached
from empo_bi.analysis.plots.timelines import plot_probability_by_time
from empo_bi.analysis.plots.trajectory import plot_course

__all__ = [
    "agent_colour",
    "plot_arrows",
    "plot_comparison",
    "plot_course",
    "plot_decision",
    "plot_levels",
    "plot_map",
    "plot_maps",
    "plot_probability_by_time",
    "plot_reached",
    "plot_state",
]
