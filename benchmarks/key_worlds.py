"""Random worlds with keys and locked doors, whose states come in waves: the next room, the next key, the next door.

A corridor of rooms, one locked door between each two. The key of the first door lies in the first room or in the hands of
whoever fetches it; the key of the next door in the room behind it, or elsewhere. A seed gives the same world everywhere.
"""

from __future__ import annotations

import random
from typing import Any

from empo_bi import load_world
from empo_bi.world.gridworld import GridWorld

COLOURS = ("r", "g", "p")


def key_world(seed: int, max_steps: int, *, is_large: bool = False) -> GridWorld:
    """A world of two or three rooms with one robot and one human, a key for each locked door; or a larger one."""
    return load_world(key_world_mapping(seed, max_steps, is_large))


def key_world_mapping(seed: int, max_steps: int, is_large: bool) -> dict[str, Any]:
    drawn = random.Random(seed)
    n_rooms = 3 if is_large else drawn.choice([2, 2, 3])
    height = (2 if is_large else drawn.choice([1, 2])) if n_rooms == 3 else drawn.choice([1, 2, 2, 3])
    widths = [drawn.choice([2, 3] if height == 1 or is_large else [1, 2]) for _ in range(n_rooms)]
    widths[0] = max(widths[0], 2)  # room for an agent and a key
    rows = [["We"] * (sum(widths) + n_rooms + 1) for _ in range(height + 2)]
    rooms, x = [], 1
    for room, width in enumerate(widths):
        cells = [(x + i, 1 + j) for i in range(width) for j in range(height)]
        for cx, cy in cells:
            rows[cy][cx] = ".."
        rooms.append(cells)
        x += width
        if room < n_rooms - 1:
            rows[1 + drawn.randrange(height)][x] = "L" + COLOURS[room]
            x += 1
    free = [list(cells) for cells in rooms]
    _put(rows, free[0], "Ae", drawn)
    for door in range(n_rooms - 1):  # each key on this side of its door
        _put(rows, free[drawn.randrange(door + 1)] or free[door], "K" + COLOURS[door], drawn)
    _put(rows, drawn.choice([cells for cells in free if cells]), "Ay", drawn)
    goals = [f"{x},{y}" for cells in rooms for x, y in cells]
    return {
        "map": "\n".join(" ".join(row) for row in rows), "orientations": ["e", "w"], "action_class": "ObjectActions",
        "max_steps": max_steps, "possible_goals": goals,
    }  # fmt: skip


def _put(rows: list[list[str]], cells: list[tuple[int, int]], code: str, drawn: random.Random) -> None:
    x, y = cells.pop(drawn.randrange(len(cells)))
    rows[y][x] = code
