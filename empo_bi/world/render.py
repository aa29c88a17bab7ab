"""Pictures of states: :func:`draw`; for pictures assembled from cells, :func:`cells_of` and :func:`paint`.

A cell is a stack of layers, painted from the ground up: floor, the map's object, and the item, pushable or agent on it
(C12). What is on a cell leaves its rim free, so that lava, a bush or an open door stays visible below. Shapes carry the
meaning, and colours repeat it: humans are drops, robots are tags with a visor, other agents are darts, each with its tip
ahead; what yellow agents operate has a yellow frame, what grey agents operate has a grey one.

**Shapes** are functions of the pixels' coordinates that return the signed distance to the shape's edge, negative inside,
in units of a tile's side. Coverage of a pixel follows from its distance, which gives smooth edges at every size;
``np.minimum`` unites two shapes, ``abs`` turns one into its outline, subtracting a number makes it fatter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.world import codes
from empo_bi.world.codes import ALL_SIDES, DIRECTION_VECTORS, CellCode, Kind
from empo_bi.world.encoding import GridState
from empo_bi.world.spec import WorldSpec

Image = npt.NDArray[np.uint8]
Distance = npt.NDArray[np.float64]
Colour = tuple[float, float, float]
Point = tuple[float, float]
Layer = tuple[Any, ...]  # a kind, then the arguments of its painter
Place = tuple[int, int]
Cell = tuple[Layer, ...]  # from the ground up; equal cells look the same

# Hues, and as far as possible lightnesses, that also differ for the colour-blind.
_COLOURS: dict[str, Colour] = {
    "red": (205, 48, 40),
    "green": (16, 172, 106),
    "blue": (24, 100, 190),
    "purple": (168, 84, 206),
    "yellow": (250, 200, 30),
    "grey": (140, 147, 158),
    "magic": (150, 92, 224),
    "spent magic": (118, 116, 136),
}
_INK, _WHITE, _FLOOR, _PANEL = (36, 38, 44), (255, 255, 255), (244, 242, 237), (72, 77, 87)
_LAVA, _GLOW, _SAND, _CRACK = (232, 84, 20), (255, 208, 80), (222, 198, 156), (120, 88, 52)
_LEAF, _TWIG, _WOOD, _STONE = (72, 140, 52), (128, 140, 84), (190, 134, 76), (122, 114, 108)


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
    if tile < 1:
        raise ValueError(f"tile={tile!r}: a cell is at least one pixel wide; 16 to 48 look best")
    picture = np.empty((spec.height, tile, spec.width, tile, 3), dtype=np.uint8)
    for (x, y), cell in cells_of(spec, state).items():
        picture[y, :, x] = paint(cell, tile)
    return picture.reshape(spec.height * tile, spec.width * tile, 3)


def cells_of(spec: WorldSpec, state: GridState, places: Iterable[Place] | None = None) -> dict[Place, Cell]:
    """What each cell (x, y) of a state, or each of some, shows; cells can be compared, counted and painted."""
    if places is None:
        places = ((x, y) for y in range(spec.height) for x in range(spec.width))
    return {place: tuple(layers) for place, layers in _layers_by_cell(spec, state, places).items()}


def places_that_differ(state: GridState, other: GridState) -> list[Place]:
    """Cells, row by row, that may look different in two states: those of agents and of things that move or have flags."""
    entries = [(x, y) for _, agents, _, _ in (state, other) for x, y, *_ in agents]
    entries += [(x, y) for _, _, mobile, mutable in (state, other) for _, x, y, *_ in (*mobile, *mutable)]
    return sorted(set(entries), key=lambda place: place[::-1])


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
    tile = _Tile(np.full((size, size, 3), _FLOOR, dtype=np.float64), x, y, 1 / size)
    for kind, *arguments in layers:
        _PAINTERS[kind](tile, *arguments)
    tile.paint(np.minimum(x, y) - 1 / size, _INK, 0.12)  # the grid: a line at the left and the top
    cell = tile.rgb.round().astype(np.uint8)
    cell.flags.writeable = False
    return cell


# --- pixels and shapes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tile:
    """Pixels being painted, and where they are: ``x`` to the right and ``y`` down, 0 to 1 across the tile.

    ``part`` and ``facing`` show the same pixels in other coordinates, so that a painter need not know where it paints.
    """

    rgb: npt.NDArray[np.float64]
    x: Distance
    y: Distance
    pixel: float

    def paint(self, shape: Distance, colour: Colour, opacity: float = 1.0) -> None:
        cover = opacity * np.clip(0.5 - shape / self.pixel, 0, 1)
        self.rgb[:] += cover[..., None] * (np.array(colour) - self.rgb)

    def paint_outlined(self, shape: Distance, colour: Colour, edge: Colour = _INK, width: float = 0.05) -> None:
        self.paint(shape, edge)
        self.paint(shape + max(width, 0.7 * self.pixel), colour)

    def part(self, x: float, y: float, scale: float) -> _Tile:
        """The square of side ``scale`` around (x, y) as a tile of its own."""
        return replace(self, x=(self.x - x) / scale + 0.5, y=(self.y - y) / scale + 0.5, pixel=self.pixel / scale)

    def facing(self, direction: int) -> _Tile:
        """The tile turned so that ``x`` grows in that direction."""
        (dx, dy), x, y = DIRECTION_VECTORS[direction], self.x - 0.5, self.y - 0.5
        return replace(self, x=x * dx + y * dy + 0.5, y=y * dx - x * dy + 0.5)


def _disc(t: _Tile, x: float, y: float, radius: float) -> Distance:
    return np.hypot(t.x - x, t.y - y) - radius


def _box(t: _Tile, x1: float, y1: float, x2: float, y2: float, rounding: float = 0.0) -> Distance:
    across = np.abs(t.x - (x1 + x2) / 2) - (x2 - x1) / 2 + rounding
    down = np.abs(t.y - (y1 + y2) / 2) - (y2 - y1) / 2 + rounding
    outside = np.hypot(np.maximum(across, 0), np.maximum(down, 0))
    return outside + np.minimum(np.maximum(across, down), 0) - rounding


def _line(t: _Tile, *points: Point, width: float) -> Distance:
    """A stroke with round ends through the points."""
    distances = []
    for (x1, y1), (x2, y2) in pairwise(points):
        dx, dy = x2 - x1, y2 - y1
        along = np.clip(((t.x - x1) * dx + (t.y - y1) * dy) / (dx * dx + dy * dy), 0, 1)
        distances.append(np.hypot(t.x - x1 - along * dx, t.y - y1 - along * dy))
    return np.minimum.reduce(distances) - width / 2


def _polygon(t: _Tile, *corners: Point) -> Distance:
    inside = np.zeros(t.x.shape, dtype=bool)
    for (x1, y1), (x2, y2) in zip(corners, (*corners[1:], corners[0]), strict=True):
        if y1 != y2:  # even-odd rule: count the edges to the right
            inside ^= ((t.y < y1) != (t.y < y2)) & (t.x < x1 + (t.y - y1) * (x2 - x1) / (y2 - y1))
    return _line(t, *corners, corners[0], width=0) * np.where(inside, -1, 1)


def _union(*shapes: Distance) -> Distance:
    return np.minimum.reduce(shapes)


def _mix(colour: Colour, other: Colour, share: float) -> Colour:
    """``colour`` with a ``share`` of the other one in it."""
    a, b, c = (own + share * (more - own) for own, more in zip(colour, other, strict=True))
    return a, b, c


# --- ground -----------------------------------------------------------------------------------------------------------


def _paint_wall(t: _Tile, colour: str) -> None:
    bricks = _mix(_COLOURS[colour], _INK, 0.3)
    beds = [_line(t, (0, y), (1, y), width=0.05) for y in (0.0, 0.33, 0.67, 1.0)]
    joints = [_line(t, (x, y), (x, y + 0.33), width=0.05) for x, y in ((0.5, 0), (0.25, 0.33), (0.75, 0.33), (0.5, 0.67))]
    t.paint(_box(t, 0, 0, 1, 1), bricks)
    t.paint(_union(*beds, *joints), _mix(bricks, _INK, 0.45))


def _paint_magic_wall(t: _Tile, side: int, active: bool) -> None:
    """Sparkling bricks, and an arrow into the wall from each magic side; an inactive one is a wall with a dull sparkle."""
    _paint_wall(t, "magic" if active else "spent magic")
    for direction in range(4) if side == ALL_SIDES else [side]:
        if active:
            inward = t.facing(direction)
            arrow = _polygon(inward, (0.7, 0.5), (0.95, 0.3), (0.95, 0.7))
            t.paint(_union(_box(inward, 0.9, 0, 1, 1), arrow), _GLOW)
    for x, y, size in ((0.45, 0.5, 0.3), (0.25, 0.25, 0.15), (0.3, 0.75, 0.15)):
        sparkle = np.sqrt(np.abs(t.x - x)) + np.sqrt(np.abs(t.y - y)) - np.sqrt(size)
        t.paint(sparkle, _WHITE, 1.0 if active else 0.3)


def _paint_goal(t: _Tile, colour: str) -> None:
    hue = _COLOURS[colour]
    t.paint(_box(t, 0, 0, 1, 1), _mix(hue, _FLOOR, 0.7))
    t.paint(np.abs(_box(t, 0.06, 0.06, 0.94, 0.94)) - 0.04, hue)
    t.paint_outlined(_polygon(t, (0.36, 0.2), (0.8, 0.36), (0.36, 0.54)), hue, width=0.04)
    t.paint(_line(t, (0.36, 0.22), (0.36, 0.82), width=0.08), _INK)


def _paint_switch(t: _Tile) -> None:
    t.paint_outlined(_box(t, 0.08, 0.08, 0.92, 0.92, 0.1), (205, 210, 216), _PANEL)
    t.paint_outlined(_box(t, 0.27, 0.27, 0.73, 0.73, 0.06), (176, 184, 194), _PANEL)


def _paint_lava(t: _Tile) -> None:
    t.paint(_box(t, 0, 0, 1, 1), _LAVA)
    for y in (0.18, 0.5, 0.82):
        t.paint(np.abs(t.y - y - 0.07 * np.sin(4 * np.pi * t.x)) - 0.05, _GLOW)


def _paint_unsteady(t: _Tile) -> None:
    t.paint(_box(t, 0, 0, 1, 1), _SAND)
    cracks = (
        ((0, 0.3), (0.2, 0.2), (0.38, 0.42), (0.62, 0.3), (0.8, 0.5), (1, 0.4)),
        ((0.38, 0.42), (0.28, 0.66), (0.42, 0.8), (0.34, 1)),
        ((0.62, 0.3), (0.7, 0.12), (0.62, 0)),
        ((0.8, 0.5), (0.72, 0.72), (0.9, 0.88), (1, 0.86)),
    )
    t.paint(_union(*(_line(t, *crack, width=0.055) for crack in cracks)), _CRACK)


def _paint_bush(t: _Tile, trampled: bool) -> None:
    if trampled:
        for x, y in ((0.2, 0.3), (0.55, 0.2), (0.3, 0.62), (0.65, 0.55), (0.5, 0.85)):
            t.paint(_line(t, (x - 0.1, y + 0.04), (x + 0.13, y - 0.02), width=0.06), _TWIG)
        return
    around = [_disc(t, 0.5 + 0.28 * np.cos(a), 0.5 + 0.28 * np.sin(a), 0.19) for a in np.arange(7) * 2 * np.pi / 7]
    t.paint_outlined(_union(_disc(t, 0.5, 0.5, 0.3), *around), _LEAF, _mix(_LEAF, _INK, 0.6))
    for x, y in ((0.35, 0.32), (0.62, 0.28), (0.26, 0.56), (0.5, 0.52), (0.74, 0.52), (0.4, 0.74), (0.64, 0.72)):
        t.paint(_line(t, (x - 0.05, y), (x, y - 0.06), (x + 0.05, y), width=0.05), _mix(_LEAF, _WHITE, 0.55))


def _paint_open_door(t: _Tile, colour: str) -> None:
    """The frame, and the leaf swung to the left."""
    t.paint_outlined(np.abs(_box(t, 0.05, 0.05, 0.95, 0.95)) - 0.05, _COLOURS[colour], width=0.03)
    t.paint_outlined(_polygon(t, (0.08, 0.06), (0.3, 0.2), (0.3, 0.98), (0.08, 0.92)), _COLOURS[colour], width=0.03)


def _paint_closed_door(t: _Tile, colour: str, locked: bool) -> None:
    hue = _COLOURS[colour]
    t.paint_outlined(_box(t, 0, 0, 1, 1), hue, width=0.07)
    if locked:
        t.paint_outlined(_box(t, 0.28, 0.18, 0.72, 0.82, 0.12), _FLOOR)
        t.paint(_union(_disc(t, 0.5, 0.42, 0.1), _polygon(t, (0.5, 0.38), (0.6, 0.7), (0.4, 0.7))), _INK)
    else:
        panels = (_box(t, 0.2, 0.18, 0.64, 0.44), _box(t, 0.2, 0.56, 0.64, 0.82))
        t.paint(np.abs(_union(*panels)) - 0.025, _mix(hue, _INK, 0.55))
        t.paint_outlined(_disc(t, 0.78, 0.5, 0.1), _WHITE, width=0.04)


# --- buttons and switches ---------------------------------------------------------------------------------------------


def _paint_panel(t: _Tile, operator: str) -> None:
    t.paint_outlined(_box(t, 0.03, 0.03, 0.97, 0.97, 0.12), _COLOURS[operator], width=0.04)
    t.paint(_box(t, 0.14, 0.14, 0.86, 0.86, 0.06), _PANEL)


def _strike_out(t: _Tile) -> None:
    """Turn what is there grey and strike it through: it is disabled."""
    t.rgb[:] = 0.6 * t.rgb.mean(axis=-1, keepdims=True) + 0.4 * np.array(_COLOURS["grey"])
    slash = _line(t, (0.06, 0.7), (0.94, 0.3), width=0.08)
    t.paint(slash - 0.05, _FLOOR)
    t.paint(slash, _INK)


def _cross(t: _Tile) -> Distance:
    return _union(_line(t, (0.28, 0.28), (0.72, 0.72), width=0.14), _line(t, (0.28, 0.72), (0.72, 0.28), width=0.14))


def _bars(t: _Tile) -> Distance:
    return _union(_box(t, 0.28, 0.24, 0.44, 0.76), _box(t, 0.56, 0.24, 0.72, 0.76))


def _arrows(t: _Tile) -> Distance:
    """Four arrow heads away from the centre: remote control."""
    return _union(*(_polygon(t.facing(d), (0.9, 0.5), (0.72, 0.33), (0.72, 0.67)) for d in range(4)))


def _play(t: _Tile) -> Distance:
    return _polygon(t, (0.2, 0.1), (0.9, 0.5), (0.2, 0.9))


def _paint_kill_button(t: _Tile, enabled: bool) -> None:
    _paint_panel(t, codes.HUMAN_COLOUR)
    t.paint_outlined(_disc(t, 0.5, 0.5, 0.35), _COLOURS["red"])
    t.paint(_cross(t.part(0.5, 0.5, 0.85)), _WHITE)
    if not enabled:
        _strike_out(t)


def _paint_pause_switch(t: _Tile, is_on: bool, enabled: bool) -> None:
    """Two bars above a slide: knob to the right and bright bars mean on."""
    _paint_panel(t, codes.HUMAN_COLOUR)
    t.paint(_bars(t.part(0.5, 0.4, 0.8)), _WHITE if is_on else _COLOURS["grey"])
    t.paint(_line(t, (0.34, 0.74), (0.66, 0.74), width=0.2), _COLOURS["green"] if is_on else _INK)
    t.paint(_disc(t, 0.66 if is_on else 0.34, 0.74, 0.1), _WHITE)
    if not enabled:
        _strike_out(t)


def _paint_control_button(t: _Tile, enabled: bool, programmed: bool, awaiting: bool) -> None:
    """Arrows all round; in the middle a recorder's dot while awaiting an action, a player's triangle when it has one."""
    _paint_panel(t, codes.HUMAN_COLOUR)
    t.paint(_arrows(t.part(0.5, 0.5, 0.85)), _WHITE)
    if awaiting:
        t.paint_outlined(_disc(t, 0.5, 0.5, 0.16), _COLOURS["red"], _WHITE, width=0.04)
    elif programmed:
        t.paint(_play(t.part(0.5, 0.5, 0.36)), _COLOURS["yellow"])
    if not enabled:
        _strike_out(t)


def _paint_disabling_switch(t: _Tile, target: int) -> None:
    """The target's sign in a prohibition sign."""
    sign = {Kind.KILL_BUTTON: _cross, Kind.PAUSE_SWITCH: _bars, Kind.CONTROL_BUTTON: _arrows}[Kind(target)]
    _paint_panel(t, codes.ROBOT_COLOUR)
    t.paint(_disc(t, 0.5, 0.5, 0.42), _WHITE)
    t.paint(sign(t.part(0.5, 0.5, 0.8)), _INK)
    slash = _line(t, (0.15, 0.65), (0.85, 0.35), width=0.07)
    t.paint(_union(np.abs(_disc(t, 0.5, 0.5, 0.38)) - 0.05, slash), _COLOURS["red"])


# --- things and agents ------------------------------------------------------------------------------------------------


def _paint_block(t: _Tile) -> None:
    """A wooden crate."""
    dark = _mix(_WOOD, _INK, 0.6)
    t.paint_outlined(_box(t, 0.13, 0.13, 0.87, 0.87, 0.03), _WOOD, dark)
    t.paint(_union(np.abs(_box(t, 0.27, 0.27, 0.73, 0.73)) - 0.025, _line(t, (0.27, 0.73), (0.73, 0.27), width=0.1)), dark)


def _paint_rock(t: _Tile) -> None:
    """A boulder with a lit face."""
    outline = ((0.12, 0.62), (0.2, 0.34), (0.44, 0.14), (0.7, 0.2), (0.88, 0.48), (0.82, 0.8), (0.5, 0.88), (0.22, 0.82))
    t.paint_outlined(_polygon(t, *outline), _STONE, width=0.06)
    t.paint(_polygon(t, (0.26, 0.4), (0.45, 0.22), (0.64, 0.26), (0.5, 0.48)), _mix(_STONE, _WHITE, 0.5))
    t.paint(_line(t, (0.5, 0.48), (0.56, 0.66), (0.8, 0.72), width=0.05), _mix(_STONE, _INK, 0.6))


def _paint_key(t: _Tile, colour: str) -> None:
    shaft = _line(t, (0.46, 0.45), (0.84, 0.45), width=0.11)
    teeth = (_line(t, (0.64, 0.45), (0.64, 0.61), width=0.1), _line(t, (0.8, 0.45), (0.8, 0.67), width=0.1))
    key = _union(np.abs(_disc(t, 0.32, 0.45, 0.13)) - 0.055, shaft, *teeth)
    t.paint(key - 0.04, _INK)
    t.paint(key, _COLOURS[colour])


def _paint_ball(t: _Tile, colour: str) -> None:
    t.paint_outlined(_disc(t, 0.5, 0.5, 0.28), _COLOURS[colour])
    t.paint(_disc(t, 0.41, 0.4, 0.07), _mix(_COLOURS[colour], _WHITE, 0.75))


def _paint_box(t: _Tile, colour: str) -> None:
    """A parcel with a ribbon."""
    t.paint_outlined(_box(t, 0.22, 0.34, 0.78, 0.8), _COLOURS[colour])
    t.paint(_box(t, 0.45, 0.34, 0.55, 0.78), _WHITE)
    t.paint_outlined(_box(t, 0.17, 0.28, 0.83, 0.46), _COLOURS[colour])
    t.paint(_box(t, 0.45, 0.3, 0.55, 0.44), _WHITE)
    loops = (_line(t, (0.5, 0.28), (0.36, 0.17), width=0.09), _line(t, (0.5, 0.28), (0.64, 0.17), width=0.09))
    t.paint(_union(*loops), _INK)


def _paint_agent(
    t: _Tile, colour: str, direction: int, terminated: bool, paused: bool, load: tuple[Kind, str] | None, forced: bool
) -> None:
    hue = _mix(_COLOURS[colour], _FLOOR, 0.5 if terminated else 0.0)
    ahead = t.facing(direction)
    if colour == codes.HUMAN_COLOUR:
        nose = _polygon(ahead, (0.56, 0.2), (0.97, 0.5), (0.56, 0.8))
        t.paint_outlined(_union(_disc(ahead, 0.45, 0.5, 0.32), nose), hue)
        t.paint(_union(_disc(ahead, 0.6, 0.38, 0.06), _disc(ahead, 0.6, 0.62, 0.06)), _INK)
    elif colour == codes.ROBOT_COLOUR:
        t.paint_outlined(_polygon(ahead, (0.14, 0.17), (0.68, 0.17), (0.95, 0.5), (0.68, 0.83), (0.14, 0.83)), hue)
        t.paint(_box(ahead, 0.54, 0.26, 0.7, 0.74, 0.05), _INK)
        t.paint(_union(_disc(ahead, 0.62, 0.38, 0.05), _disc(ahead, 0.62, 0.62, 0.05)), _WHITE)
    else:
        t.paint_outlined(_polygon(ahead, (0.1, 0.12), (0.96, 0.5), (0.1, 0.88), (0.28, 0.5)), hue)
    if paused:
        bars = _bars(t.part(0.5, 0.5, 0.6))
        t.paint(bars - 0.08, _INK)
        t.paint(bars, _WHITE)
    if terminated:
        t.paint(_cross(t.part(0.5, 0.5, 1.3)) + 0.03, _INK)
    if forced:  # a player's triangle: the next action is a control button's
        t.paint(_disc(t, 0.2, 0.2, 0.2), _INK)
        t.paint(_play(t.part(0.2, 0.2, 0.26)), _COLOURS["yellow"])
    if load is not None:
        kind, tint = load
        badge = t.part(0.73, 0.73, 0.52)
        badge.paint_outlined(_disc(badge, 0.5, 0.5, 0.5), _WHITE)
        _PAINTERS[kind](badge, tint)


_PAINTERS: dict[Kind, Callable[..., None]] = {
    Kind.GOAL: _paint_goal, Kind.SWITCH: _paint_switch, Kind.LAVA: _paint_lava, Kind.UNSTEADY: _paint_unsteady,
    Kind.OPEN_DOOR: _paint_open_door, Kind.CLOSED_DOOR: _paint_closed_door, Kind.WALL: _paint_wall,
    Kind.MAGIC_WALL: _paint_magic_wall, Kind.BUSH: _paint_bush, Kind.KILL_BUTTON: _paint_kill_button,
    Kind.PAUSE_SWITCH: _paint_pause_switch, Kind.CONTROL_BUTTON: _paint_control_button,
    Kind.DISABLING_SWITCH: _paint_disabling_switch, Kind.BLOCK: _paint_block, Kind.ROCK: _paint_rock,
    Kind.KEY: _paint_key, Kind.BALL: _paint_ball, Kind.BOX: _paint_box, Kind.AGENT: _paint_agent,
}  # fmt: skip
