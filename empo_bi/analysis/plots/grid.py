"""The grid as ``render()`` draws it: :func:`plot_state`, and the faded picture below maps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from empo_bi.analysis.plots.canvas import axes_or_new, expect, one_line, plain, size_in_points, title
from empo_bi.analysis.plots.colours import MARKED, WHITE, agent_colour, ink_on
from empo_bi.problem.protocols import Goal
from empo_bi.results.goal_names import label_of
from empo_bi.world.goals import ConditionGoal, ReachGoal, cells_of
from empo_bi.world.map_world import MapWorld
from empo_bi.world.row_codec import MapState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOOR = np.array([244, 242, 237]) / 255  # the colour of floors in render(); fading towards it leaves them unchanged
PRESENCE = 0.45  # strength of a faded picture
TILE = 48  # pixels
MOST_PIXELS = 4_000_000


def plot_state(world: MapWorld, state: MapState | None = None, ax: Axes | None = None) -> Axes:
    """Draw a state as ``world.render`` does, with the coordinates of cells and the numbers of agents.

    Parameters
    ----------
    world : GridWorld, or another world on a map
    state : a state of that world; None for the initial one
    ax : Axes to draw into; None for a new figure
    """
    expect(world, MapWorld, "world", "load_world('asymmetric_freeing')")
    state = _known(world, state)
    ax = axes_or_new(ax, figure_size(world), is_grid=True)
    draw_grid(ax, world, state)
    _number_agents(ax, world, state)
    n = state[0]
    title(ax, f"state at step {n}" if n else "initial state")
    return ax


def figure_size(world: MapWorld, *, beside: float = 0.6) -> tuple[float, float]:
    """Width and height in inches for a grid, with room for a colour bar beside it."""
    cell = min(0.6, 9 / world.width, 6 / world.height)
    return max(3.4, cell * world.width + beside), max(2.2, cell * world.height + 0.9)


def draw_grid(ax: Axes, world: MapWorld, state: MapState | None, *, faded: bool = False) -> None:
    """Draw a state (None for the initial one), with a unit square for each cell and small tick labels."""
    state = _known(world, state)
    height, width = world.height, world.width
    picture = world.picture(state, min(TILE, math.isqrt(MOST_PIXELS // (width * height)))) / 255
    if faded:
        picture = FLOOR + PRESENCE * (picture - FLOOR)
    ax.imshow(picture, extent=(-0.5, width - 0.5, height - 0.5, -0.5), interpolation="antialiased", zorder=0)
    size = "x-small" if cell_points(ax, world) > 9 else "xx-small"
    ax.set_xticks(range(0, width, 1 if width <= 20 else 5))
    ax.set_yticks(range(0, height, 1 if height <= 20 else 5))
    ax.tick_params(length=0, labelsize=size, pad=2)
    ax.set_xlabel("x", fontsize=size, labelpad=1, loc="right")
    ax.set_ylabel("y", fontsize=size, labelpad=1, rotation=0, loc="top", va="center")
    ax.spines[:].set_visible(False)


def cell_points(ax: Axes, world: MapWorld) -> float:
    """The approximate side of a cell in points."""
    height, width = world.height, world.width
    across, down = size_in_points(ax)
    return min(across / width, down / height)


def outline_goal(ax: Axes, goal: Goal | None) -> None:
    """Frame the cells where a goal's human has to be; goals without such cells are not drawn."""
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    for x1, y1, x2, y2 in cells_of(goal) or ():
        ax.add_patch(
            Rectangle(
                (x1 - 0.46, y1 - 0.46), x2 - x1 + 0.92, y2 - y1 + 0.92, fill=False, edgecolor=MARKED, linewidth=1.8,
                linestyle=(0, (2.5, 1.2)), path_effects=[withStroke(linewidth=3.2, foreground=WHITE)], zorder=4,
                label="goal",
            )
        )  # fmt: skip


def goal_label(goal: Goal | None) -> str:
    """A short name of a goal, for the title of a panel."""
    is_short = isinstance(goal, ReachGoal | ConditionGoal)
    return f"goal {label_of(goal)}" if is_short else one_line(repr(goal))


def in_words(text: str, goal: Goal | None) -> str:
    """A text for matplotlib in which the goal's ``repr`` is replaced by its short name."""
    return plain(text if goal is None else text.replace(one_line(repr(goal)), goal_label(goal)))


def _number_agents(ax: Axes, world: MapWorld, state: MapState) -> None:
    """Write the number of each agent on a disc of its colour, in a corner of its cell."""
    from matplotlib.colors import to_rgb

    size = max(5.0, min(9.0, 0.24 * cell_points(ax, world)))
    on_cell: dict[tuple[int, int], int] = {}
    for agent, (x, y, *_) in enumerate(state[1]):
        n = on_cell[x, y] = on_cell.get((x, y), -1) + 1  # agents may share a cell
        plate = agent_colour(agent)
        ax.text(
            x + 0.32 - 0.3 * n, y - 0.32, str(agent), fontsize=size, color=ink_on(to_rgb(plate)), ha="center", va="center",
            fontweight="bold", zorder=5,
            bbox={"boxstyle": "circle,pad=0.18", "facecolor": plate, "edgecolor": WHITE, "linewidth": 0.6},
        )  # fmt: skip


def _known(world: MapWorld, state: MapState | None) -> MapState:
    if state is None:
        return world.initial_state()
    world.encode([state])  # refuses states of another world
    return state
