"""A state of a bush world as text, in words, and as pictures of cells."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from empo_bi.world.bush.spec import HUMAN, ROBOT, BushSpec, Player, density_code
from empo_bi.world.row_codec import MapState
from empo_bi.world.shapes import (
    COLOURS,
    INK,
    LEAF,
    WHITE,
    Cell,
    Place,
    Tile,
    box,
    disc,
    every_place,
    line,
    mix,
    row_by_row,
    union,
)


def draw(spec: BushSpec, state: MapState) -> str:
    """The rows of the map; a player hides the density of its cell."""
    _, positions, densities = state
    cells = [density_code(density) for density in densities]
    for player, (x, y) in zip(spec.agents, positions, strict=True):
        cells[y * spec.width + x] = ROBOT if player.is_robot else HUMAN
    wide = max(map(len, cells))
    rows = [cells[first : first + spec.width] for first in range(0, len(cells), spec.width)]
    return "\n".join(" ".join(code.ljust(wide) for code in row).rstrip() for row in rows)


def notes(spec: BushSpec, state: MapState) -> list[str]:
    """What the map of a state does not show: who is who, and bushes in the cells of players."""
    _, positions, densities = state
    lines = []
    for i, (player, (x, y)) in enumerate(zip(spec.agents, positions, strict=True)):
        density = densities[y * spec.width + x]
        lines.append(f"{_role(player)} {i} at {x},{y}" + (f" on density {density}" if density else ""))
    return lines


def describe_state(spec: BushSpec, state: MapState) -> str:
    """One line for each player: its cell, and the density there; and one for bushes that are not as at the start."""
    _, positions, densities = state
    lines = []
    for i, (player, (x, y)) in enumerate(zip(spec.agents, positions, strict=True)):
        lines.append(f"{_role(player)} {i} at {x},{y} on density {densities[y * spec.width + x]}")
    pairs = zip(spec.densities, densities, strict=True)
    changed = [(n, new) for n, (old, new) in enumerate(pairs) if old != new]
    thinned = "; ".join(f"{n % spec.width},{n // spec.width} to {new}" for n, new in changed)
    return "\n".join([*lines, *([f"density changed at {thinned}"] if changed else [])])


def _role(player: Player) -> str:
    return "robot" if player.is_robot else "human"


def cells_of(spec: BushSpec, state: MapState, places: Iterable[Place] | None = None) -> dict[Place, Cell]:
    """What each cell (x, y), or each of some, shows: a bush the larger the denser it is, and the player in it."""
    _, positions, densities = state
    player_on = dict(zip(positions, spec.agents, strict=True))
    found = dict[Place, Cell]()
    for x, y in every_place(spec.width, spec.height) if places is None else places:
        share, player = min(densities[y * spec.width + x] / spec.B, 1.0), player_on.get((x, y))
        bush: Cell = ((paint_thicket, share),) if share else ()
        found[x, y] = bush if player is None else (*bush, (paint_robot if player.is_robot else paint_human,))
    return found


def places_that_differ(spec: BushSpec, state: MapState, other: MapState) -> list[Place]:
    """Cells, row by row, that may look different in two states: those of players, and of other densities."""
    (_, positions, before), (_, other_positions, after) = state, other
    changed = [divmod(n, spec.width)[::-1] for n, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    return row_by_row([*positions, *other_positions, *changed])


def paint_thicket(t: Tile, share: float) -> None:
    """A round bush; one that no human gets through fills its cell and is dark."""
    leaf = mix(LEAF, INK, 0.35 if share >= 1 else 0.0)
    inner = t.part(0.5, 0.5, 0.4 + 0.58 * share)
    around = [disc(inner, 0.5 + 0.28 * np.cos(a), 0.5 + 0.28 * np.sin(a), 0.2) for a in np.arange(7) * 2 * np.pi / 7]
    inner.paint_outlined(union(disc(inner, 0.5, 0.5, 0.3), *around), leaf, mix(leaf, INK, 0.6))
    for x, y in ((0.35, 0.32), (0.62, 0.28), (0.26, 0.56), (0.74, 0.52), (0.4, 0.74), (0.64, 0.72)):
        inner.paint(line(inner, (x - 0.05, y), (x, y - 0.06), (x + 0.05, y), width=0.05), mix(leaf, WHITE, 0.55))


def paint_human(t: Tile) -> None:
    t.paint_outlined(disc(t, 0.5, 0.5, 0.34), COLOURS["yellow"])
    t.paint(union(disc(t, 0.38, 0.44, 0.06), disc(t, 0.62, 0.44, 0.06)), INK)
    t.paint(line(t, (0.38, 0.62), (0.5, 0.67), (0.62, 0.62), width=0.05), INK)


def paint_robot(t: Tile) -> None:
    t.paint_outlined(box(t, 0.18, 0.18, 0.82, 0.82, 0.08), COLOURS["grey"])
    t.paint(box(t, 0.26, 0.32, 0.74, 0.52, 0.05), INK)
    t.paint(union(disc(t, 0.39, 0.42, 0.05), disc(t, 0.61, 0.42, 0.05)), WHITE)
