"""Empty rooms of any shape with any number of agents: worlds whose sizes can be chosen one by one."""

from __future__ import annotations

import itertools
from typing import Any

WALL, FLOOR, HUMAN, ROBOT = "We", "..", "Ay", "Ae"


def room(
    width: int, height: int, *, humans: int, robots: int = 1, n_goals: int, actions: str = "SmallActions"
) -> dict[str, Any]:
    """A world as a mapping: agents begin in the first cells, humans first, and nothing else is in the room.

    Goals are distinct rectangles, so that there may be more of them than cells: first the whole room, so that every human
    has something within reach, then single cells, and so on.
    """
    n_agents = humans + robots
    if n_agents > width * height:
        raise ValueError(f"{n_agents} agents do not fit into {width} x {height} cells")
    *smaller, whole = rectangles(width, height)
    goals = [whole, *smaller]
    if n_goals > len(goals):
        raise ValueError(f"{n_goals} goals, but {width} x {height} cells have {len(goals)} rectangles")
    cells = [*[HUMAN] * humans, *[ROBOT] * robots, *[FLOOR] * (width * height - n_agents)]
    inner = [[WALL, *cells[y * width : (y + 1) * width], WALL] for y in range(height)]
    border = [WALL] * (width + 2)
    return {
        "metadata": {"name": f"Room of {width} x {height}, {humans} humans, {robots} robots"},
        "map": "\n".join(" ".join(line) for line in [border, *inner, border]),
        "orientations": "e",
        "action_class": actions,
        "possible_goals": [list(goal) for goal in goals[:n_goals]],
    }


def rectangles(width: int, height: int) -> list[tuple[int, int, int, int]]:
    """All rectangles of cells of a room inside a wall, as (left, top, right, bottom), the smallest first."""
    found = [
        (x, y, x + w - 1, y + h - 1)
        for w, h in itertools.product(range(1, width + 1), range(1, height + 1))
        for y, x in itertools.product(range(1, height - h + 2), range(1, width - w + 2))
    ]
    return sorted(found, key=lambda one: ((one[2] - one[0] + 1) * (one[3] - one[1] + 1), one))
