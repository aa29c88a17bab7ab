"""The vocabulary of world files: colours, directions, actions, and the two-letter codes of the map.

``CellCode`` is the meaning of two characters; ``Lr``, for example, is a locked red door. Specification: sections 1.3 to 1.5
and 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

COLOURS = {"r": "red", "g": "green", "b": "blue", "p": "purple", "y": "yellow", "e": "grey"}
HUMAN_COLOUR, ROBOT_COLOUR = "yellow", "grey"

# East, south, west, north: x grows to the right, y downwards.
DIRECTION_VECTORS = ((1, 0), (0, 1), (-1, 0), (0, -1))
DIRECTION_NAMES = ("east", "south", "west", "north")
DIRECTION_LETTERS = {"e": 0, "s": 1, "w": 2, "n": 3}
ALL_SIDES = 4  # the magic side of a wall that can be entered from everywhere


class Action(IntEnum):
    """What an action means; an action's *id* is its place in the world's action set."""

    STILL = 0
    LEFT = 1
    RIGHT = 2
    FORWARD = 3
    PICKUP = 4
    DROP = 5
    TOGGLE = 6
    BUILD = 7


_SMALL = (Action.STILL, Action.LEFT, Action.RIGHT, Action.FORWARD)
_OBJECT = (*_SMALL, Action.PICKUP, Action.DROP, Action.TOGGLE)
ACTION_SETS = {
    "SmallActions": _SMALL,
    "ObjectActions": _OBJECT,
    "MinimalActions": (Action.FORWARD, Action.LEFT),
    "MineActions": (*_SMALL, Action.BUILD),
}
AUTOMATIC_ACTION_SETS = ("Actions", "FullActions")  # these names mean: choose by the map (quirk Q19)


class Kind(IntEnum):
    """What a cell can show, ordered so that "may be entered" is one comparison: ``kind <= OPEN_DOOR``."""

    EMPTY = 0
    GOAL = 1
    SWITCH = 2
    LAVA = 3
    UNSTEADY = 4
    OPEN_DOOR = 5
    CLOSED_DOOR = 6  # closed or locked
    WALL = 7
    MAGIC_WALL = 8
    BUSH = 9
    KILL_BUTTON = 10
    PAUSE_SWITCH = 11
    CONTROL_BUTTON = 12
    DISABLING_SWITCH = 13
    BLOCK = 14
    ROCK = 15
    KEY = 16
    BALL = 17
    BOX = 18
    AGENT = 19


class Door(IntEnum):
    """The three conditions of a door."""

    OPEN = 0
    CLOSED = 1
    LOCKED = 2


PUSHABLES = (Kind.BLOCK, Kind.ROCK)
ITEMS = (Kind.KEY, Kind.BALL, Kind.BOX)
DOORS = (Kind.OPEN_DOOR, Kind.CLOSED_DOOR)
# Kinds that have flags in the state, and their names there (section 4.4).
MUTABLE_NAMES = {
    Kind.OPEN_DOOR: "door",
    Kind.CLOSED_DOOR: "door",
    Kind.MAGIC_WALL: "magicwall",
    Kind.BUSH: "bush",
    Kind.KILL_BUTTON: "killbutton",
    Kind.PAUSE_SWITCH: "pauseswitch",
    Kind.CONTROL_BUTTON: "controlbutton",
}


@dataclass(frozen=True)
class CellCode:
    """What a map cell has at the start.

    ``trait`` depends on the kind: the condition of a door (:class:`Door`), the magic side of a wall (a direction or
    ``ALL_SIDES``), or the kind of object that a disabling switch acts on.
    """

    kind: Kind
    colour: str | None = None
    trait: int = 0


_FIXED = {
    "..": CellCode(Kind.EMPTY),
    "Bu": CellCode(Kind.BUSH),
    "Bl": CellCode(Kind.BLOCK),
    "La": CellCode(Kind.LAVA),
    "Ro": CellCode(Kind.ROCK),
    "Sw": CellCode(Kind.SWITCH),
    "Un": CellCode(Kind.UNSTEADY),
    "CB": CellCode(Kind.CONTROL_BUTTON),
    "Kb": CellCode(Kind.KILL_BUTTON),
    "Ki": CellCode(Kind.KILL_BUTTON),
    "Ps": CellCode(Kind.PAUSE_SWITCH),
    "Pa": CellCode(Kind.PAUSE_SWITCH),
    "Dk": CellCode(Kind.DISABLING_SWITCH, trait=Kind.KILL_BUTTON),
    "dK": CellCode(Kind.DISABLING_SWITCH, trait=Kind.KILL_BUTTON),
    "Dp": CellCode(Kind.DISABLING_SWITCH, trait=Kind.PAUSE_SWITCH),
    "dP": CellCode(Kind.DISABLING_SWITCH, trait=Kind.PAUSE_SWITCH),
    "DC": CellCode(Kind.DISABLING_SWITCH, trait=Kind.CONTROL_BUTTON),
    "dC": CellCode(Kind.DISABLING_SWITCH, trait=Kind.CONTROL_BUTTON),
    "Me": CellCode(Kind.MAGIC_WALL, trait=0),
    "Ms": CellCode(Kind.MAGIC_WALL, trait=1),
    "Mw": CellCode(Kind.MAGIC_WALL, trait=2),
    "Mn": CellCode(Kind.MAGIC_WALL, trait=3),
    "Ma": CellCode(Kind.MAGIC_WALL, trait=ALL_SIDES),
}
_COLOURED = {
    "W": (Kind.WALL, 0),
    "L": (Kind.CLOSED_DOOR, Door.LOCKED),
    "C": (Kind.CLOSED_DOOR, Door.CLOSED),
    "O": (Kind.OPEN_DOOR, Door.OPEN),
    "K": (Kind.KEY, 0),
    "B": (Kind.BALL, 0),
    "X": (Kind.BOX, 0),
    "G": (Kind.GOAL, 0),
    "A": (Kind.AGENT, 0),
}
# Fixed codes win over letter + colour: `Kb` is a kill button, so there is no blue key (quirk Q20).
CELL_CODES = {
    letter + colour: CellCode(kind, COLOURS[colour], int(trait))
    for letter, (kind, trait) in _COLOURED.items()
    for colour in COLOURS
} | _FIXED

# Objects that need pickup, drop and toggle; a kill button alone does not count (quirk Q20).
_CALL_FOR_OBJECT_ACTIONS = {*ITEMS, *DOORS, Kind.PAUSE_SWITCH, Kind.DISABLING_SWITCH, Kind.CONTROL_BUTTON}


def default_action_set(kinds: set[Kind]) -> str:
    """The default action set of a map with objects of these ``kinds`` (section 1.5)."""
    return "ObjectActions" if kinds & _CALL_FOR_OBJECT_ACTIONS else "SmallActions"
