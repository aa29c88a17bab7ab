"""The checked description of a world, :class:`WorldSpec`, and the function that makes it, :func:`read_spec`.

Every error names file, line, key and value, and says what is expected. Probable mistakes that leave a usable world (an
unknown key, a goal that cannot be reached, cells without a goal) are warnings, or errors with ``strict=True``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from empo_bi.runtime.wording import did_you_mean, short_repr
from empo_bi.world import codes
from empo_bi.world.codes import Action, CellCode, Kind
from empo_bi.world.file_values import (
    MOST_AGENTS,
    MOST_SIDE,
    map_rows,
    override,
    read_metadata,
    read_steps,
    real,
    tell,
    whole,
)
from empo_bi.world.goal_entries import GoalSpec, read_goals
from empo_bi.world.lint import NEED_NO_GOAL, RELEVANT_KEYS, is_list, probable_mistakes
from empo_bi.world.source import WorldSource

# Kinds of cells that are never occupied.
_NEVER_ENTERED = {
    Kind.WALL, Kind.KILL_BUTTON, Kind.PAUSE_SWITCH, Kind.CONTROL_BUTTON, Kind.DISABLING_SWITCH,
}  # fmt: skip

MOST_CELLS = 1 << 14  # pictures of larger maps would take gigabytes


@dataclass(frozen=True)
class AgentSpec:
    """One agent at the start: its cell, its direction, and what its colour allows."""

    x: int
    y: int
    colour: str
    direction: int
    can_push_rocks: bool
    can_enter_magic_walls: bool

    # The names that MultiGridEnv uses.

    @property
    def pos(self) -> tuple[int, int]:
        return self.x, self.y

    @property
    def dir(self) -> int:
        return self.direction

    @property
    def color(self) -> str:
        return self.colour

    @property
    def is_human(self) -> bool:
        return self.colour == codes.HUMAN_COLOUR

    @property
    def is_robot(self) -> bool:
        return self.colour == codes.ROBOT_COLOUR

    @property
    def is_robot_like(self) -> bool:
        """Tramples bushes instead of entering them (section 1.4)."""
        return self.is_robot or self.can_push_rocks or self.can_enter_magic_walls


@dataclass(frozen=True)
class WorldSpec:
    """A checked world: all that the planner needs to know, and nothing about how it computes.

    ``cells[y][x]`` is the map. Weights of ``goals`` sum to 1.
    """

    name: str
    origin: str
    cells: tuple[tuple[CellCode, ...], ...]
    max_steps: int
    agents: tuple[AgentSpec, ...]
    action_set: str
    stumble_probability: float
    solidify_probability: float
    enter_bush_success_prob: float
    humans: tuple[int, ...]
    robots: tuple[int, ...]
    goals: tuple[GoalSpec, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def width(self) -> int:
        return len(self.cells[0])

    @property
    def height(self) -> int:
        return len(self.cells)

    @property
    def actions(self) -> tuple[Action, ...]:
        """Meaning of each action id."""
        return codes.ACTION_SETS[self.action_set]

    @property
    def has_directions(self) -> bool:
        return True

    @property
    def can_pick_up(self) -> bool:
        return Action.PICKUP in self.actions

    @property
    def can_open_doors(self) -> bool:
        return Action.TOGGLE in self.actions

    @property
    def items(self) -> set[tuple[str, str | None]]:
        """Kinds and colours of things on the map that agents can carry."""
        return {(cell.kind.name.lower(), cell.colour) for row in self.cells for cell in row if cell.kind in codes.ITEMS}

    @property
    def doors(self) -> list[tuple[int, int]]:
        """Cells (x, y) of doors, row by row."""
        return [(x, y) for y, row in enumerate(self.cells) for x, cell in enumerate(row) if cell.kind in codes.DOORS]

    def cells_that_humans_reach(self) -> list[tuple[int, int]]:
        """Cells (x, y), row by row, that some human can walk to if doors open and things get out of the way."""
        found = {(self.agents[human].x, self.agents[human].y) for human in self.humans}
        left = list(found)
        while left:
            x, y = left.pop()
            near = {(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)} - found
            new = {(x, y) for x, y in near if 0 <= x < self.width and 0 <= y < self.height and self.can_be_occupied(x, y)}
            found |= new
            left += new
        return sorted(found, key=lambda cell: cell[::-1])

    def needs_goal(self, x: int, y: int) -> bool:
        """Whether a human may stand there, so that some goal should be attained there (section 8.4)."""
        return self.cells[y][x].kind not in NEED_NO_GOAL

    def can_be_occupied(self, x: int, y: int) -> bool:
        """Whether an agent, pushable or item could ever be on the cell."""
        kind = self.cells[y][x].kind
        if kind == Kind.MAGIC_WALL:
            return any(agent.can_enter_magic_walls for agent in self.agents)
        return kind not in _NEVER_ENTERED


def read_spec(source: WorldSource, overrides: Mapping[str, Any] | None = None, *, strict: bool = False) -> WorldSpec:
    """Check a world's mapping, with the caller's ``overrides`` in place of the file's values.

    Raises
    ------
    WorldFileError
        If the world is invalid; with ``strict`` also instead of every :class:`~empo_bi.errors.WorldWarning`.
    TypeError
        If there is no such override.
    """
    source = override(source, overrides or {}, RELEVANT_KEYS)
    cells = _read_map(source)
    agents = _read_agents(source, cells)
    spec = WorldSpec(
        name=source.name,
        origin=source.origin,
        cells=cells,
        max_steps=read_steps(source),
        agents=agents,
        action_set=_read_action_set(source, cells),
        stumble_probability=_read_probability(source, "stumble_probability", 0.5),
        solidify_probability=_read_probability(source, "solidify_probability", 0.1),
        enter_bush_success_prob=_read_probability(source, "enter_bush_success_prob", 1.0),
        humans=_read_role(source, "humans", [agent.is_human for agent in agents]),
        robots=_read_role(source, "robots", [agent.is_robot for agent in agents]),
        metadata=read_metadata(source),
    )
    if both := set(spec.humans) & set(spec.robots):
        raise source.error("humans", message=f"agent {min(both)} is also among the robots; an agent is one of both")
    spec = replace(spec, goals=read_goals(source, spec))
    tell(probable_mistakes(source, spec), strict=strict)
    return spec


# --- the map ----------------------------------------------------------------------------------------------------------


def _read_map(source: WorldSource) -> tuple[tuple[CellCode, ...], ...]:
    rows = ["".join(row.split()) for row in map_rows(source, "two characters for each cell")]
    if "grid_size" in source.mapping:
        raise source.error("grid_size", message="not allowed together with a map, which has its own size; remove it")
    width = len(rows[0]) // 2
    for y, row in enumerate(rows):
        if len(row) % 2:
            raise source.error(
                "map",
                y,
                message=f"row {y} has {len(row)} characters ({short_repr(row)}); each cell has two: is one missing?",
            )
        if len(row) // 2 != width:
            raise source.error(
                "map", y,
                message=f"row {y} has {len(row) // 2} cells, row 0 has {width}; all rows need the same number of cells",
            )  # fmt: skip
    if width < 3 or len(rows) < 3:
        raise source.error("map", message=f"{width} x {len(rows)} cells; give at least 3 x 3")
    if width * len(rows) > MOST_CELLS or max(width, len(rows)) > MOST_SIDE:
        raise source.error(
            "map",
            message=f"{width:,} x {len(rows):,} cells; a map has at most {MOST_CELLS:,} cells, {MOST_SIDE} along a side",
        )
    return tuple(tuple(_cell_code(source, row[2 * x : 2 * x + 2], x, y) for x in range(width)) for y, row in enumerate(rows))


def _cell_code(source: WorldSource, code: str, x: int, y: int) -> CellCode:
    try:
        return codes.CELL_CODES[code]
    except KeyError:
        swapped = [known for known in codes.CELL_CODES if known.lower() == code.lower()]
        hint = f" Did you mean {swapped[0]!r}?" if swapped else did_you_mean(code, codes.CELL_CODES)
        raise source.error(
            "map", y,
            message=f"unknown code {code!r} at x={x}, y={y}.{hint} Codes are two characters, such as '..' (empty), 'We' "
            "(wall), 'Ay' (human), 'Ae' (robot), 'Ro' (rock); docs/world_files.md lists all",
        ) from None  # fmt: skip


# --- single values ----------------------------------------------------------------------------------------------------


def _read_probability(source: WorldSource, key: str, default: float) -> float:
    value = source.mapping.get(key, default)
    probability = real(value)
    if probability is None or not 0 <= probability <= 1:
        raise source.error(key, message=f"found {short_repr(value)}, expected a probability from 0 to 1")
    return probability


def _read_action_set(source: WorldSource, cells: tuple[tuple[CellCode, ...], ...]) -> str:
    value = source.mapping.get("action_class")
    names = [*codes.ACTION_SETS, *codes.AUTOMATIC_ACTION_SETS]
    if value is None or value in codes.AUTOMATIC_ACTION_SETS:
        return codes.default_action_set({cell.kind for row in cells for cell in row})
    if isinstance(value, str):
        wanted = value.lower().removesuffix("actions")
        for name in codes.ACTION_SETS:
            if name.lower().removesuffix("actions") == wanted:
                return name
    raise source.error(
        "action_class",
        message=f"found {short_repr(value)}, expected {', '.join(codes.ACTION_SETS)}, "
        "or the short forms small, object, minimal, mine."
        + did_you_mean(str(value), [*names, "small", "object", "minimal", "mine"]),
    )


def _read_colours(source: WorldSource, key: str, default: str) -> set[str]:
    """Colour letters as a text or list; None and the empty text mean no agent."""
    value = source.mapping.get(key, default)
    letters = list(value) if isinstance(value, str) or is_list(value) else [] if value is None else [value]
    for letter in letters:
        if not isinstance(letter, str) or letter not in codes.COLOURS:
            raise source.error(
                key, message=f"found {short_repr(letter)} in {short_repr(value)}, expected colour letters among "
                f"{''.join(codes.COLOURS)}, as in \"ye\" for yellow and grey, or \"\" for no agent",
            )  # fmt: skip
    return {codes.COLOURS[letter] for letter in letters}


# --- agents -----------------------------------------------------------------------------------------------------------


def _read_agents(source: WorldSource, cells: tuple[tuple[CellCode, ...], ...]) -> tuple[AgentSpec, ...]:
    """Agents in reading order of the map (section 1.4)."""
    pushers = _read_colours(source, "can_push_rocks", "e")
    enterers = _read_colours(source, "can_enter_magic_walls", "")
    places = [(x, y, cell.colour) for y, row in enumerate(cells) for x, cell in enumerate(row) if cell.kind == Kind.AGENT]
    if len(places) > MOST_AGENTS:
        raise source.error("map", message=f"found {len(places):,} agents, expected at most {MOST_AGENTS}; remove some")
    directions = _read_orientations(source, len(places))
    return tuple(
        AgentSpec(x, y, str(colour), direction, colour in pushers, colour in enterers)
        for (x, y, colour), direction in zip(places, directions, strict=True)
    )


def _read_role(source: WorldSource, key: str, by_colour: list[bool]) -> tuple[int, ...]:
    """The agents that a key lists; without it, those of the role's colour."""
    value = source.mapping.get(key)
    if value is None:
        return tuple(i for i, has_colour in enumerate(by_colour) if has_colour)
    listed = [whole(agent) for agent in value] if is_list(value) else []
    known = {agent for agent in listed if agent is not None and 0 <= agent < len(by_colour)}
    if not is_list(value) or len(known) < len(listed):
        raise source.error(
            key, message=f"found {short_repr(value)}, expected a list of different agents among 0 to {len(by_colour) - 1}, "
            "which are numbered in reading order",
        )  # fmt: skip
    return tuple(sorted(known))


def _read_orientations(source: WorldSource, n_agents: int) -> list[int]:
    value = source.mapping.get("orientations", 0)
    if is_list(value):
        given = [_direction(source, entry, ("orientations", i)) for i, entry in enumerate(value)]
        return (given + [0] * n_agents)[:n_agents]
    return [_direction(source, value, ("orientations",))] * n_agents


def _direction(source: WorldSource, value: object, path: tuple[str | int, ...]) -> int:
    if isinstance(value, str) and value in codes.DIRECTION_LETTERS:
        return codes.DIRECTION_LETTERS[value]
    number = whole(value)
    if number is not None and 0 <= number <= 3:
        return number
    raise source.error(
        *path,
        message=f"found {short_repr(value)}, expected a direction (e, s, w, n or 0, 1, 2, 3) for all agents, or a list",
    )
