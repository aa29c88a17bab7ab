"""The file of a bush world: its checked content, :class:`BushSpec`, and the function that reads it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from empo_bi.runtime.wording import short_repr
from empo_bi.types import Json
from empo_bi.world import codes
from empo_bi.world.file_values import (
    MOST_AGENTS,
    MOST_SIDE,
    map_rows,
    override,
    read_metadata,
    read_steps,
    real,
    rows_of_text,
    tell,
    whole,
)
from empo_bi.world.goal_entries import GoalSpec, goals_as_values, read_goals
from empo_bi.world.lint import ALL, goal_mistakes, is_list, unknown_keys
from empo_bi.world.shapes import Place, every_place
from empo_bi.world.source import WorldSource

KEYS = ("map", "B", "max_steps", "fill_density", "possible_goals", "seed", "metadata")
ROBOT, HUMAN, EMPTY = "Ro", "Hu", "."
MOST_CELLS = 4096
MOST_DENSE = 9999


@dataclass(frozen=True)
class Player:
    """A robot or a human at the start."""

    x: int
    y: int
    is_robot: bool

    @property
    def is_human(self) -> bool:
        return not self.is_robot

    @property
    def colour(self) -> str:
        return codes.ROBOT_COLOUR if self.is_robot else codes.HUMAN_COLOUR


@dataclass(frozen=True)
class BushSpec:
    """A checked bush world.

    Attributes
    ----------
    agents : robots first, then humans, each in reading order
    densities : row by row, also those below players
    B : the density from which on humans never get in
    goals : with weights that sum to 1
    """

    name: str
    origin: str
    width: int
    height: int
    agents: tuple[Player, ...]
    densities: tuple[int, ...]
    B: float
    fill_density: int
    max_steps: int
    goals: tuple[GoalSpec, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def humans(self) -> tuple[int, ...]:
        return tuple(i for i, player in enumerate(self.agents) if player.is_human)

    @property
    def robots(self) -> tuple[int, ...]:
        return tuple(i for i, player in enumerate(self.agents) if player.is_robot)

    @property
    def has_directions(self) -> bool:
        return False

    @property
    def can_pick_up(self) -> bool:
        return False

    @property
    def can_open_doors(self) -> bool:
        return False

    @property
    def items(self) -> set[tuple[str, str | None]]:
        return set()

    @property
    def doors(self) -> list[Place]:
        return []

    def cells_that_humans_reach(self) -> list[Place]:
        """All, row by row, if there are humans: robots may thin out every bush."""
        return every_place(self.width, self.height) if self.humans else []

    def can_be_occupied(self, x: int, y: int) -> bool:
        return True

    def needs_goal(self, x: int, y: int) -> bool:
        return True


def is_bush_world(mapping: Mapping[str, Any]) -> bool:
    """Whether a world's mapping is that of a bush world: by its keys, or by codes that gridworlds do not have."""
    if "B" in mapping or "fill_density" in mapping:
        return True
    value = mapping.get("map")
    rows = rows_of_text(value) if isinstance(value, str) else value if is_list(value) else ()
    found = [row.split() if isinstance(row, str) else row if is_list(row) else () for row in rows]
    return any(code == HUMAN or _is_density(code) for row in found for code in row)


def _is_density(code: object) -> bool:
    """Also a number: that is what YAML and JSON make of digits."""
    return code.isdecimal() if isinstance(code, str) else whole(code) is not None


def read_bush_spec(source: WorldSource, overrides: Mapping[str, Any], *, strict: bool = False) -> BushSpec:
    """Check the mapping of a bush world, with the caller's ``overrides`` in place of the file's values.

    Raises
    ------
    WorldFileError
        If the world is invalid; with ``strict`` also instead of every :class:`~empo_bi.errors.WorldWarning`.
    """
    source = override(source, overrides, KEYS)
    rows = _read_map(source)
    fill = _read_fill_density(source)
    cells = [(x, y, code) for y, row in enumerate(rows) for x, code in enumerate(row)]
    players = [Player(x, y, code == ROBOT) for x, y, code in cells if code in (ROBOT, HUMAN)]
    if len(players) > MOST_AGENTS:
        raise source.error("map", message=f"found {len(players):,} players, expected at most {MOST_AGENTS}; remove some")
    spec = BushSpec(
        name=source.name,
        origin=source.origin,
        width=len(rows[0]),
        height=len(rows),
        agents=tuple(sorted(players, key=lambda player: player.is_human)),  # stable: reading order within each group
        densities=tuple(fill if code in (ROBOT, HUMAN) else int(code) for _, _, code in cells),
        B=_read_B(source),
        fill_density=fill,
        max_steps=read_steps(source),
        metadata=read_metadata(source),
    )
    spec = replace(spec, goals=read_goals(source, spec, default=ALL))
    tell([*unknown_keys(source, KEYS), *goal_mistakes(source, spec, f"no cell has the code '{HUMAN}'")], strict=strict)
    return spec


def _read_map(source: WorldSource) -> list[list[str]]:
    """A code for each cell; numbers without leading zeros, 0 for an empty cell."""
    value = source.mapping.get("map")
    if is_list(value):  # YAML and JSON may have read densities as numbers
        plain = [[_as_text(code) for code in row] if is_list(row) else row for row in value]
        source = WorldSource({**source.mapping, "map": plain}, source.origin, source.name, source.lines, source.overridden)
    rows = [row.split() for row in map_rows(source, "with blanks between cells")]
    width = len(rows[0])
    for y, row in enumerate(rows):
        if len(row) != width:
            raise source.error(
                "map", y, message=f"row {y} has {len(row)} cells, row 0 has {width}; all rows need the same number of cells"
            )
    if not 1 <= width * len(rows) <= MOST_CELLS or max(width, len(rows)) > MOST_SIDE:
        raise source.error(
            "map", message=f"{width} x {len(rows)} cells; give 1 to {MOST_CELLS:,}, at most {MOST_SIDE} along a side"
        )
    return [[_code(source, code, x, y) for x, code in enumerate(row)] for y, row in enumerate(rows)]


def _as_text(code: object) -> object:
    number = whole(code)
    return str(number) if number is not None and abs(number) <= 10 * MOST_DENSE else code


def _code(source: WorldSource, code: str, x: int, y: int) -> str:
    if code in (ROBOT, HUMAN):
        return code
    if code in (EMPTY, ".."):
        return "0"
    if re.fullmatch(r"[0-9]{1,4}", code):
        return str(int(code))
    hint = next((f" Did you mean {known!r}?" for known in (ROBOT, HUMAN) if known.lower() == code.lower()), "")
    raise source.error(
        "map", y,
        message=f"unknown code {short_repr(code)} at x={x}, y={y}.{hint} Codes of a bush world are '{ROBOT}' (robot), "
        f"'{HUMAN}' (human), '{EMPTY}' (empty) and densities up to {MOST_DENSE}, such as '05', with blanks between them",
    )  # fmt: skip


def _read_B(source: WorldSource) -> float:
    if "B" not in source.mapping:
        raise source.error(message="the key 'B' is missing; give the density from which on humans never get into a bush")
    value = source.mapping["B"]
    found = real(value)
    if found is None or not 0 < found < math.inf:
        raise source.error("B", message=f"found {short_repr(value)}, expected a positive number, such as 10")
    return whole(value) or found


def _read_fill_density(source: WorldSource) -> int:
    value = source.mapping.get("fill_density", 0)
    found = whole(value)
    if found is None or not 0 <= found <= MOST_DENSE:
        raise source.error(
            "fill_density",
            message=f"found {short_repr(value)}, expected the density of the players' cells, a whole number from 0 to "
            f"{MOST_DENSE}",
        )
    return found


def to_mapping(spec: BushSpec) -> Json:
    """The world as a mapping of plain values that ``load_world`` can read; stores keep it."""
    rows = [[density_code(spec.densities[y * spec.width + x]) for x in range(spec.width)] for y in range(spec.height)]
    for player in spec.agents:
        rows[player.y][player.x] = ROBOT if player.is_robot else HUMAN
    return {
        "metadata": {"name": spec.name},
        "map": [" ".join(row) for row in rows],
        "B": spec.B,
        "fill_density": spec.fill_density,
        "max_steps": spec.max_steps,
        "possible_goals": goals_as_values(spec.goals),
    }


def density_code(density: int) -> str:
    """Two characters or more, as wide as ``Ro``."""
    return f"{density:02}" if density else f"{EMPTY} "
