"""World files as the oracle reads them: spec/gridworld.md sections 1, 3 and 8.1.

Valid input is assumed; what is checked is checked by a bare assert. The result is a :class:`Layout`, the part of a
world that never changes, plus what lies and stands where at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import yaml

Cell = tuple[int, int]

COLOURS = {"r": "red", "g": "green", "b": "blue", "p": "purple", "y": "yellow", "e": "grey"}  # 1.3

# 2: directions 0 east, 1 south, 2 west, 3 north
DIRECTIONS = {"e": 0, "s": 1, "w": 2, "n": 3}
ALL_SIDES = "all"

# 1.3, first table: codes that stand for themselves and are tried before letter + colour
FIXED_CODES = {
    "Bl": "block",
    "Ro": "rock",
    "Un": "unsteady",
    "Bu": "bush",
    "La": "lava",
    "Sw": "switch",
    "CB": "controlbutton",
    "Kb": "killbutton",
    "Ki": "killbutton",
    "Ps": "pauseswitch",
    "Pa": "pauseswitch",
    "Dk": "disablingswitch",
    "dK": "disablingswitch",
    "Dp": "disablingswitch",
    "dP": "disablingswitch",
    "DC": "disablingswitch",
    "dC": "disablingswitch",
}
DISABLES = {
    "Dk": "killbutton",
    "dK": "killbutton",
    "Dp": "pauseswitch",
    "dP": "pauseswitch",
    "DC": "controlbutton",
    "dC": "controlbutton",
}
# 1.3, second table
LETTER_CODES = {
    "W": "wall",
    "L": "door",
    "C": "door",
    "O": "door",
    "K": "key",
    "B": "ball",
    "X": "box",
    "G": "goal",
    "A": "agent",
}
# 4.4: (is_open, is_locked) by the letter of the door
DOOR_FLAGS = {"L": (False, True), "C": (False, False), "O": (True, False)}

# 1.5
SMALL_ACTIONS = ["still", "left", "right", "forward"]
OBJECT_ACTIONS = [*SMALL_ACTIONS, "pickup", "drop", "toggle"]
ACTION_SETS = {
    "SmallActions": SMALL_ACTIONS,
    "ObjectActions": OBJECT_ACTIONS,
    "MinimalActions": ["forward", "left"],
    "MineActions": [*SMALL_ACTIONS, "build"],
}
NEEDS_OBJECT_ACTIONS = {"key", "ball", "box", "door", "pauseswitch", "disablingswitch", "controlbutton"}


class Goal(NamedTuple):
    """A goal of section 8: both corners inclusive and in order; kind is "cell" or "rectangle"."""

    x1: int
    y1: int
    x2: int
    y2: int
    kind: str


class AgentSpec(NamedTuple):
    """What never changes about an agent (1.4), and where it starts."""

    colour: str
    start: Cell
    direction: int
    can_push_rocks: bool
    can_enter_magic_walls: bool

    @property
    def robot_like(self) -> bool:
        """1.4, for bushes only."""
        return self.can_push_rocks or self.can_enter_magic_walls or self.colour == "grey"


@dataclass
class Layout:
    """Everything a world file says.

    ``terrain`` holds the map's own objects, cell -> kind, without agents, pushables and items: below the start of
    those the cell is empty (C2).
    """

    width: int
    height: int
    max_steps: int
    action_set: str
    action_names: list[str]
    stumble_probability: Fraction
    solidify_probability: Fraction
    bush_probability: Fraction
    goals: list[Goal]
    goal_weights: list[float]  # of the file: relative, 1 where none is given
    agents: list[AgentSpec] = field(default_factory=list)
    terrain: dict[Cell, str] = field(default_factory=dict)
    door_colour: dict[Cell, str] = field(default_factory=dict)
    door_start: dict[Cell, tuple[bool, bool]] = field(default_factory=dict)
    magic_side: dict[Cell, int | str] = field(default_factory=dict)
    disables: dict[Cell, str] = field(default_factory=dict)
    pushables: dict[Cell, str] = field(default_factory=dict)
    items: dict[Cell, tuple[str, str]] = field(default_factory=dict)


def read_layout(source: Mapping[str, Any] | str, **overrides: Any) -> Layout:
    """Read a mapping, or the YAML text of one. A value passed by the caller always overrides the file (C9)."""
    keys = dict(yaml.safe_load(source) if isinstance(source, str) else source)
    keys.update(overrides)
    rows = split_map(keys["map"])
    codes = {(x, y): code for y, row in enumerate(rows) for x, code in enumerate(row)}  # in reading order
    action_set = choose_action_set(keys.get("action_class"), codes)
    layout = Layout(
        width=len(rows[0]),
        height=len(rows),
        max_steps=keys.get("max_steps", 100),
        action_set=action_set,
        action_names=ACTION_SETS[action_set],
        stumble_probability=exact(keys.get("stumble_probability", 0.5)),
        solidify_probability=exact(keys.get("solidify_probability", 0.1)),
        bush_probability=exact(keys.get("enter_bush_success_prob", 1.0)),
        goals=[read_goal(entry) for entry in keys.get("possible_goals") or []],
        goal_weights=[read_weight(entry) for entry in keys.get("possible_goals") or []],
    )
    pushers = colour_names(keys.get("can_push_rocks", "e"))
    enterers = colour_names(keys.get("can_enter_magic_walls", ""))  # C4
    for cell, code in codes.items():
        place_code(layout, cell, code, keys.get("orientations", 0), pushers, enterers)
    return layout


def exact(probability: float | str) -> Fraction:
    """0.3 in a file means three tenths."""
    return Fraction(str(probability))


def split_map(source: str | list) -> list[list[str]]:
    """1.2: three forms, white space deleted, two characters a cell."""
    lines = source.strip().split("\n") if isinstance(source, str) else source
    texts = ["".join("".join(line).split()) for line in lines]
    assert all(len(text) % 2 == 0 for text in texts), "a row with half a cell"
    assert len({len(text) for text in texts}) == 1, "rows of unequal width"
    assert min(len(texts), len(texts[0]) // 2) >= 3, "smaller than 3 x 3"
    return [[text[i : i + 2] for i in range(0, len(text), 2)] for text in texts]


def kind_of(code: str) -> str | None:
    """1.3: fixed codes first, then magic walls, then letter + colour. None is an empty cell."""
    if code == "..":
        return None
    if code in FIXED_CODES:
        return FIXED_CODES[code]
    if code[0] == "M" and code[1] in "nswea":
        return "magicwall"
    assert code[0] in LETTER_CODES, f"unknown code {code}"
    assert code[1] in COLOURS, f"unknown code {code}"
    return LETTER_CODES[code[0]]


def choose_action_set(requested: str | None, codes: Mapping[Cell, str]) -> str:
    """1.5: chosen from the map unless a selectable set is requested."""
    if requested not in (None, "Actions", "FullActions"):
        assert requested in ACTION_SETS, f"unknown action set {requested}"
        return requested
    kinds = {kind_of(code) for code in codes.values()}
    return "ObjectActions" if kinds & NEEDS_OBJECT_ACTIONS else "SmallActions"


def colour_names(letters: str | list[str] | None) -> set[str]:
    """Colour letters of 1.1: a string, a list, or null for nobody."""
    return {COLOURS[letter] for letter in letters or ""}


def read_direction(orientations: Any, index: int) -> int:
    """1.4: one value for everybody, or a list in which missing entries mean east."""
    if isinstance(orientations, list):
        value = orientations[index] if index < len(orientations) else 0
    else:
        value = orientations
    direction = DIRECTIONS[value] if isinstance(value, str) else value
    assert direction in (0, 1, 2, 3)
    return direction


def read_goal(entry: Any) -> Goal:
    """8.1: "x,y", "x1,y1,x2,y2", lists of 2 or 4 numbers, or two pairs; any of them also as {goal: ..., weight: ...}."""
    if isinstance(entry, dict):
        return read_goal(entry["goal"])
    if isinstance(entry, str):
        numbers = [int(part) for part in entry.split(",")]
    elif len(entry) == 2 and isinstance(entry[0], (list, tuple)):
        numbers = [int(number) for pair in entry for number in pair]
    else:
        numbers = [int(number) for number in entry]
    if len(numbers) == 2:
        x, y = numbers
        return Goal(x, y, x, y, "cell")
    x1, y1, x2, y2 = numbers
    return Goal(min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2), "rectangle")


def read_weight(entry: Any) -> float:
    """A goal counts once unless its entry says otherwise."""
    return float(entry.get("weight", 1)) if isinstance(entry, dict) else 1.0


def place_code(layout: Layout, cell: Cell, code: str, orientations: Any, pushers: set[str], enterers: set[str]) -> None:
    """Put one map code into the layout."""
    kind = kind_of(code)
    colour = COLOURS.get(code[1], "")
    if kind is None:
        return
    if kind == "agent":  # 1.4: numbered in reading order
        direction = read_direction(orientations, len(layout.agents))
        layout.agents.append(AgentSpec(colour, cell, direction, colour in pushers, colour in enterers))
    elif kind in ("block", "rock"):
        layout.pushables[cell] = kind
    elif kind in ("key", "ball", "box"):
        layout.items[cell] = (kind, colour)
    else:
        layout.terrain[cell] = kind
    if kind == "door":
        layout.door_colour[cell] = colour
        layout.door_start[cell] = DOOR_FLAGS[code[0]]
    elif kind == "magicwall":
        layout.magic_side[cell] = ALL_SIDES if code[1] == "a" else DIRECTIONS[code[1]]
    elif kind == "disablingswitch":
        layout.disables[cell] = DISABLES[code]
