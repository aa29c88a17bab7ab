"""Pictures of states: :func:`draw`; for pictures assembled from cells, :func:`cells_of` and :func:`paint`.

A cell is a stack of layers, painted from the ground up: floor, the map's object, and the item, pushable or agent on it
(C12). What is on a cell leaves its rim free, so that lava, a bush or an open door stays visible below. Shapes carry the
meaning, and colours repeat it: humans are drops, robots are tags with a visor, other agents are darts, each with its tip
ahead; what yellow agents operate has a yellow frame, what grey agents operate has a grey one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from empo_bi.world import codes
from empo_bi.world.codes import ALL_SIDES, CellCode, Kind
from empo_bi.world.encoding import GridState
from empo_bi.world.shapes import (
    COLOURS,
    CRACK,
    FLOOR,
    GLOW,
    INK,
    LAVA,
    LEAF,
    PANEL,
    SAND,
    STONE,
    TWIG,
    WHITE,
    WOOD,
    Cell,
    Distance,
    Layer,
    Place,
    Tile,
    box,
    disc,
    every_place,
    line,
    mix,
    polygon,
    row_by_row,
    union,
)
from empo_bi.world.spec import WorldSpec

Image = npt.NDArray[np.uint8]


def draw(spec: WorldSpec, state: GridState, *, tile: int = 32) -> Image:
    """Picture of a state: ``(height * tile, width * tile, 3)`` uint8.

    Parameters
    ----------
    spec : WorldSpec
    state : (step, agents, mobile, mutable)
        A state of that world.
    tile : int > 0, pixels
        Side of a cell; 16 to 48 look best.
    """
    return assembled(cells_of(spec, state), spec.width, spec.height, tile)


def assembled(cells: dict[Place, Cell], width: int, height: int, tile: int) -> Image:
    """A picture of cells by their places (x, y)."""
    if tile < 1:
        raise ValueError(f"tile={tile!r}: a cell is at least one pixel wide; 16 to 48 look best")
    picture = np.empty((height, tile, width, tile, 3), dtype=np.uint8)
    for (x, y), cell in cells.items():
        picture[y, :, x] = paint(cell, tile)
    return picture.reshape(height * tile, width * tile, 3)


def cells_of(spec: WorldSpec, state: GridState, places: Iterable[Place] | None = None) -> dict[Place, Cell]:
    """What each cell (x, y) of a state, or each of some, shows; cells can be compared, counted and painted."""
    if places is None:
        places = every_place(spec.width, spec.height)
    return {place: tuple(layers) for place, layers in _layers_by_cell(spec, state, places).items()}


def places_that_differ(state: GridState, other: GridState) -> list[Place]:
    """Cells, row by row, that may look different in two states: those of agents and of things that move or have flags."""
    entries = [(x, y) for _, agents, _, _ in (state, other) for x, y, *_ in agents]
    entries += [(x, y) for _, _, mobile, mutable in (state, other) for _, x, y, *_ in (*mobile, *mutable)]
    return row_by_row(entries)


# --- what a cell shows ------------------------------------------------------------------------------------------------


def _layers_by_cell(spec: WorldSpec, state: GridState, places: Iterable[Place]) -> dict[Place, list[Layer]]:
    """Layers of some cells, from the ground up; agents and things elsewhere are left out."""
    _, agents, mobile, mutable = state
    flags = {(x, y): values for _, x, y, *values in mutable}
    layers = {(x, y): _map_layers(spec.cells[y][x], flags.get((x, y), [])) for x, y in places}
    for kind, x, y, *colour in mobile:
        if (x, y) in layers:
            layers[x, y].append((Kind[kind.upper()], *colour))
    for agent, (x, y, direction, terminated, _, paused, *carried, forced) in zip(spec.agents, agents, strict=True):
        load = (Kind[carried[0].upper()], carried[1]) if carried[0] else None
        if (x, y) in layers:
            layers[x, y].append((Kind.AGENT, agent.colour, direction, terminated, paused, load, forced is not None))
    return layers


def _map_layers(code: CellCode, flags: Sequence[object]) -> list[Layer]:
    """The map's object, if it stays where it is; ``flags`` are its fields in the state (section 4.4)."""
    if code.kind in (Kind.EMPTY, Kind.AGENT, *codes.PUSHABLES, *codes.ITEMS):
        return []
    if code.kind in codes.DOORS:
        is_open, is_locked = flags
        return [(Kind.OPEN_DOOR, code.colour) if is_open else (Kind.CLOSED_DOOR, code.colour, is_locked)]
    if code.kind == Kind.CONTROL_BUTTON:
        enabled, _, recorded, awaiting = flags
        return [(code.kind, enabled, recorded is not None, awaiting)]
    if code.kind in (Kind.MAGIC_WALL, Kind.DISABLING_SWITCH):
        return [(code.kind, code.trait, *flags)]
    return [(code.kind, *flags)] if code.colour is None else [(code.kind, code.colour)]


@lru_cache(maxsize=1024)
def paint(layers: Cell, size: int) -> Image:
    """The picture of one cell, (size, size, 3) uint8; read-only, since callers share it."""
    centres = (np.arange(size) + 0.5) / size
    x, y = np.meshgrid(centres, centres)
    tile = Tile(np.full((size, size, 3), FLOOR, dtype=np.float64), x, y, 1 / size)
    for kind, *arguments in layers:
        painter: Callable[..., None] = kind if callable(kind) else _PAINTERS[kind]
        painter(tile, *arguments)
    tile.paint(np.minimum(x, y) - 1 / size, INK, 0.12)  # the grid: a line at the left and the top
    cell = tile.rgb.round().astype(np.uint8)
    cell.flags.writeable = False
    return cell


# --- ground -----------------------------------------------------------------------------------------------------------


def _paint_wall(t: Tile, colour: str) -> None:
    bricks = mix(COLOURS[colour], INK, 0.3)
    beds = [line(t, (0, y), (1, y), width=0.05) for y in (0.0, 0.33, 0.67, 1.0)]
    joints = [line(t, (x, y), (x, y + 0.33), width=0.05) for x, y in ((0.5, 0), (0.25, 0.33), (0.75, 0.33), (0.5, 0.67))]
    t.paint(box(t, 0, 0, 1, 1), bricks)
    t.paint(union(*beds, *joints), mix(bricks, INK, 0.45))


def _paint_magic_wall(t: Tile, side: int, active: bool) -> None:
    """Sparkling bricks, and an arrow into the wall from each magic side; an inactive one is a wall with a dull sparkle."""
    _paint_wall(t, "magic" if active else "spent magic")
    for direction in range(4) if side == ALL_SIDES else [side]:
        if active:
            inward = t.facing(direction)
            arrow = polygon(inward, (0.7, 0.5), (0.95, 0.3), (0.95, 0.7))
            t.paint(union(box(inward, 0.9, 0, 1, 1), arrow), GLOW)
    for x, y, size in ((0.45, 0.5, 0.3), (0.25, 0.25, 0.15), (0.3, 0.75, 0.15)):
        sparkle = np.sqrt(np.abs(t.x - x)) + np.sqrt(np.abs(t.y - y)) - np.sqrt(size)
        t.paint(sparkle, WHITE, 1.0 if active else 0.3)


def _paint_goal(t: Tile, colour: str) -> None:
    hue = COLOURS[colour]
    t.paint(box(t, 0, 0, 1, 1), mix(hue, FLOOR, 0.7))
    t.paint(np.abs(box(t, 0.06, 0.06, 0.94, 0.94)) - 0.04, hue)
    t.paint_outlined(polygon(t, (0.36, 0.2), (0.8, 0.36), (0.36, 0.54)), hue, width=0.04)
    t.paint(line(t, (0.36, 0.22), (0.36, 0.82), width=0.08), INK)


def _paint_switch(t: Tile) -> None:
    t.paint_outlined(box(t, 0.08, 0.08, 0.92, 0.92, 0.1), (205, 210, 216), PANEL)
    t.paint_outlined(box(t, 0.27, 0.27, 0.73, 0.73, 0.06), (176, 184, 194), PANEL)


def _paint_lava(t: Tile) -> None:
    t.paint(box(t, 0, 0, 1, 1), LAVA)
    for y in (0.18, 0.5, 0.82):
        t.paint(np.abs(t.y - y - 0.07 * np.sin(4 * np.pi * t.x)) - 0.05, GLOW)


def _paint_unsteady(t: Tile) -> None:
    t.paint(box(t, 0, 0, 1, 1), SAND)
    cracks = (
        ((0, 0.3), (0.2, 0.2), (0.38, 0.42), (0.62, 0.3), (0.8, 0.5), (1, 0.4)),
        ((0.38, 0.42), (0.28, 0.66), (0.42, 0.8), (0.34, 1)),
        ((0.62, 0.3), (0.7, 0.12), (0.62, 0)),
        ((0.8, 0.5), (0.72, 0.72), (0.9, 0.88), (1, 0.86)),
    )
    t.paint(union(*(line(t, *crack, width=0.055) for crack in cracks)), CRACK)


def _paint_bush(t: Tile, trampled: bool) -> None:
    if trampled:
        for x, y in ((0.2, 0.3), (0.55, 0.2), (0.3, 0.62), (0.65, 0.55), (0.5, 0.85)):
            t.paint(line(t, (x - 0.1, y + 0.04), (x + 0.13, y - 0.02), width=0.06), TWIG)
        return
    around = [disc(t, 0.5 + 0.28 * np.cos(a), 0.5 + 0.28 * np.sin(a), 0.19) for a in np.arange(7) * 2 * np.pi / 7]
    t.paint_outlined(union(disc(t, 0.5, 0.5, 0.3), *around), LEAF, mix(LEAF, INK, 0.6))
    for x, y in ((0.35, 0.32), (0.62, 0.28), (0.26, 0.56), (0.5, 0.52), (0.74, 0.52), (0.4, 0.74), (0.64, 0.72)):
        t.paint(line(t, (x - 0.05, y), (x, y - 0.06), (x + 0.05, y), width=0.05), mix(LEAF, WHITE, 0.55))


def _paint_open_door(t: Tile, colour: str) -> None:
    """The frame, and the leaf swung to the left."""
    t.paint_outlined(np.abs(box(t, 0.05, 0.05, 0.95, 0.95)) - 0.05, COLOURS[colour], width=0.03)
    t.paint_outlined(polygon(t, (0.08, 0.06), (0.3, 0.2), (0.3, 0.98), (0.08, 0.92)), COLOURS[colour], width=0.03)


def _paint_closed_door(t: Tile, colour: str, locked: bool) -> None:
    hue = COLOURS[colour]
    t.paint_outlined(box(t, 0, 0, 1, 1), hue, width=0.07)
    if locked:
        t.paint_outlined(box(t, 0.28, 0.18, 0.72, 0.82, 0.12), FLOOR)
        t.paint(union(disc(t, 0.5, 0.42, 0.1), polygon(t, (0.5, 0.38), (0.6, 0.7), (0.4, 0.7))), INK)
    else:
        panels = (box(t, 0.2, 0.18, 0.64, 0.44), box(t, 0.2, 0.56, 0.64, 0.82))
        t.paint(np.abs(union(*panels)) - 0.025, mix(hue, INK, 0.55))
        t.paint_outlined(disc(t, 0.78, 0.5, 0.1), WHITE, width=0.04)


# --- buttons and switches ---------------------------------------------------------------------------------------------


def _paint_panel(t: Tile, operator: str) -> None:
    t.paint_outlined(box(t, 0.03, 0.03, 0.97, 0.97, 0.12), COLOURS[operator], width=0.04)
    t.paint(box(t, 0.14, 0.14, 0.86, 0.86, 0.06), PANEL)


def _strike_out(t: Tile) -> None:
    """Turn what is there grey and strike it through: it is disabled."""
    t.rgb[:] = 0.6 * t.rgb.mean(axis=-1, keepdims=True) + 0.4 * np.array(COLOURS["grey"])
    slash = line(t, (0.06, 0.7), (0.94, 0.3), width=0.08)
    t.paint(slash - 0.05, FLOOR)
    t.paint(slash, INK)


def _cross(t: Tile) -> Distance:
    return union(line(t, (0.28, 0.28), (0.72, 0.72), width=0.14), line(t, (0.28, 0.72), (0.72, 0.28), width=0.14))


def _bars(t: Tile) -> Distance:
    return union(box(t, 0.28, 0.24, 0.44, 0.76), box(t, 0.56, 0.24, 0.72, 0.76))


def _arrows(t: Tile) -> Distance:
    """Four arrow heads away from the centre: remote control."""
    return union(*(polygon(t.facing(d), (0.9, 0.5), (0.72, 0.33), (0.72, 0.67)) for d in range(4)))


def _play(t: Tile) -> Distance:
    return polygon(t, (0.2, 0.1), (0.9, 0.5), (0.2, 0.9))


def _paint_kill_button(t: Tile, enabled: bool) -> None:
    _paint_panel(t, codes.HUMAN_COLOUR)
    t.paint_outlined(disc(t, 0.5, 0.5, 0.35), COLOURS["red"])
    t.paint(_cross(t.part(0.5, 0.5, 0.85)), WHITE)
    if not enabled:
        _strike_out(t)


def _paint_pause_switch(t: Tile, is_on: bool, enabled: bool) -> None:
    """Two bars above a slide: knob to the right and bright bars mean on."""
    _paint_panel(t, codes.HUMAN_COLOUR)
    t.paint(_bars(t.part(0.5, 0.4, 0.8)), WHITE if is_on else COLOURS["grey"])
    t.paint(line(t, (0.34, 0.74), (0.66, 0.74), width=0.2), COLOURS["green"] if is_on else INK)
    t.paint(disc(t, 0.66 if is_on else 0.34, 0.74, 0.1), WHITE)
    if not enabled:
        _strike_out(t)


def _paint_control_button(t: Tile, enabled: bool, programmed: bool, awaiting: bool) -> None:
    """Arrows all round; in the middle a recorder's dot while awaiting an action, a player's triangle when it has one."""
    _paint_panel(t, codes.HUMAN_COLOUR)
    t.paint(_arrows(t.part(0.5, 0.5, 0.85)), WHITE)
    if awaiting:
        t.paint_outlined(disc(t, 0.5, 0.5, 0.16), COLOURS["red"], WHITE, width=0.04)
    elif programmed:
        t.paint(_play(t.part(0.5, 0.5, 0.36)), COLOURS["yellow"])
    if not enabled:
        _strike_out(t)


def _paint_disabling_switch(t: Tile, target: int) -> None:
    """The target's sign in a prohibition sign."""
    sign = {Kind.KILL_BUTTON: _cross, Kind.PAUSE_SWITCH: _bars, Kind.CONTROL_BUTTON: _arrows}[Kind(target)]
    _paint_panel(t, codes.ROBOT_COLOUR)
    t.paint(disc(t, 0.5, 0.5, 0.42), WHITE)
    t.paint(sign(t.part(0.5, 0.5, 0.8)), INK)
    slash = line(t, (0.15, 0.65), (0.85, 0.35), width=0.07)
    t.paint(union(np.abs(disc(t, 0.5, 0.5, 0.38)) - 0.05, slash), COLOURS["red"])


# --- things and agents ------------------------------------------------------------------------------------------------


def _paint_block(t: Tile) -> None:
    """A wooden crate."""
    dark = mix(WOOD, INK, 0.6)
    t.paint_outlined(box(t, 0.13, 0.13, 0.87, 0.87, 0.03), WOOD, dark)
    t.paint(union(np.abs(box(t, 0.27, 0.27, 0.73, 0.73)) - 0.025, line(t, (0.27, 0.73), (0.73, 0.27), width=0.1)), dark)


def _paint_rock(t: Tile) -> None:
    """A boulder with a lit face."""
    outline = ((0.12, 0.62), (0.2, 0.34), (0.44, 0.14), (0.7, 0.2), (0.88, 0.48), (0.82, 0.8), (0.5, 0.88), (0.22, 0.82))
    t.paint_outlined(polygon(t, *outline), STONE, width=0.06)
    t.paint(polygon(t, (0.26, 0.4), (0.45, 0.22), (0.64, 0.26), (0.5, 0.48)), mix(STONE, WHITE, 0.5))
    t.paint(line(t, (0.5, 0.48), (0.56, 0.66), (0.8, 0.72), width=0.05), mix(STONE, INK, 0.6))


def _paint_key(t: Tile, colour: str) -> None:
    shaft = line(t, (0.46, 0.45), (0.84, 0.45), width=0.11)
    teeth = (line(t, (0.64, 0.45), (0.64, 0.61), width=0.1), line(t, (0.8, 0.45), (0.8, 0.67), width=0.1))
    key = union(np.abs(disc(t, 0.32, 0.45, 0.13)) - 0.055, shaft, *teeth)
    t.paint(key - 0.04, INK)
    t.paint(key, COLOURS[colour])


def _paint_ball(t: Tile, colour: str) -> None:
    t.paint_outlined(disc(t, 0.5, 0.5, 0.28), COLOURS[colour])
    t.paint(disc(t, 0.41, 0.4, 0.07), mix(COLOURS[colour], WHITE, 0.75))


def _paint_box(t: Tile, colour: str) -> None:
    """A parcel with a ribbon."""
    t.paint_outlined(box(t, 0.22, 0.34, 0.78, 0.8), COLOURS[colour])
    t.paint(box(t, 0.45, 0.34, 0.55, 0.78), WHITE)
    t.paint_outlined(box(t, 0.17, 0.28, 0.83, 0.46), COLOURS[colour])
    t.paint(box(t, 0.45, 0.3, 0.55, 0.44), WHITE)
    loops = (line(t, (0.5, 0.28), (0.36, 0.17), width=0.09), line(t, (0.5, 0.28), (0.64, 0.17), width=0.09))
    t.paint(union(*loops), INK)


def _paint_agent(
    t: Tile, colour: str, direction: int, terminated: bool, paused: bool, load: tuple[Kind, str] | None, forced: bool
) -> None:
    hue = mix(COLOURS[colour], FLOOR, 0.5 if terminated else 0.0)
    ahead = t.facing(direction)
    if colour == codes.HUMAN_COLOUR:
        nose = polygon(ahead, (0.56, 0.2), (0.97, 0.5), (0.56, 0.8))
        t.paint_outlined(union(disc(ahead, 0.45, 0.5, 0.32), nose), hue)
        t.paint(union(disc(ahead, 0.6, 0.38, 0.06), disc(ahead, 0.6, 0.62, 0.06)), INK)
    elif colour == codes.ROBOT_COLOUR:
        t.paint_outlined(polygon(ahead, (0.14, 0.17), (0.68, 0.17), (0.95, 0.5), (0.68, 0.83), (0.14, 0.83)), hue)
        t.paint(box(ahead, 0.54, 0.26, 0.7, 0.74, 0.05), INK)
        t.paint(union(disc(ahead, 0.62, 0.38, 0.05), disc(ahead, 0.62, 0.62, 0.05)), WHITE)
    else:
        t.paint_outlined(polygon(ahead, (0.1, 0.12), (0.96, 0.5), (0.1, 0.88), (0.28, 0.5)), hue)
    if paused:
        bars = _bars(t.part(0.5, 0.5, 0.6))
        t.paint(bars - 0.08, INK)
        t.paint(bars, WHITE)
    if terminated:
        t.paint(_cross(t.part(0.5, 0.5, 1.3)) + 0.03, INK)
    if forced:  # a player's triangle: the next action is a control button's
        t.paint(disc(t, 0.2, 0.2, 0.2), INK)
        t.paint(_play(t.part(0.2, 0.2, 0.26)), COLOURS["yellow"])
    if load is not None:
        kind, tint = load
        badge = t.part(0.73, 0.73, 0.52)
        badge.paint_outlined(disc(badge, 0.5, 0.5, 0.5), WHITE)
        _PAINTERS[kind](badge, tint)


_PAINTERS: dict[Kind, Callable[..., None]] = {
    Kind.GOAL: _paint_goal, Kind.SWITCH: _paint_switch, Kind.LAVA: _paint_lava, Kind.UNSTEADY: _paint_unsteady,
    Kind.OPEN_DOOR: _paint_open_door, Kind.CLOSED_DOOR: _paint_closed_door, Kind.WALL: _paint_wall,
    Kind.MAGIC_WALL: _paint_magic_wall, Kind.BUSH: _paint_bush, Kind.KILL_BUTTON: _paint_kill_button,
    Kind.PAUSE_SWITCH: _paint_pause_switch, Kind.CONTROL_BUTTON: _paint_control_button,
    Kind.DISABLING_SWITCH: _paint_disabling_switch, Kind.BLOCK: _paint_block, Kind.ROCK: _paint_rock,
    Kind.KEY: _paint_key, Kind.BALL: _paint_ball, Kind.BOX: _paint_box, Kind.AGENT: _paint_agent,
}  # fmt: skip
