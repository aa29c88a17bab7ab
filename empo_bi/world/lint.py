"""Probable mistakes in a world file that is usable all the same: a misspelt key, a goal inside a wall, a button that cannot
be pressed. Each is a warning, or an error with ``strict=True``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np

from empo_bi.runtime.wording import counted, did_you_mean
from empo_bi.types import BoolArray
from empo_bi.world.codes import Action, Kind
from empo_bi.world.conditions import AtStep, Carries, DoorOpen
from empo_bi.world.source import WorldSource

if TYPE_CHECKING:
    from empo_bi.world.goal_entries import GoalSpec
    from empo_bi.world.spec import WorldSpec

RELEVANT_KEYS = (
    "map", "max_steps", "orientations", "can_push_rocks", "can_enter_magic_walls", "stumble_probability",
    "solidify_probability", "enter_bush_success_prob", "action_class", "possible_goals", "humans", "robots", "metadata",
)  # fmt: skip
ALL = "all"  # in the place of a list of goals: every cell where a human can walk
_IRRELEVANT_KEYS = ("partial_obs", "agent_view_size", "see_through_walls", "seed", "width", "height")
KNOWN_KEYS = (*RELEVANT_KEYS, *_IRRELEVANT_KEYS)

# Cells that need no goal (section 8.4).
NEED_NO_GOAL = {
    Kind.WALL, Kind.KILL_BUTTON, Kind.PAUSE_SWITCH, Kind.CONTROL_BUTTON, Kind.DISABLING_SWITCH,
    Kind.LAVA, Kind.MAGIC_WALL, Kind.BUSH,
}  # fmt: skip


_NO_HUMAN = "no agent is yellow (code 'Ay'), nor among 'humans'"


def probable_mistakes(source: WorldSource, spec: WorldSpec) -> list[str]:
    """A message for each, in the order of the checks."""
    checks = (
        _size_mismatch, _orientation_mismatch, _dead_buttons,
    )  # fmt: skip
    own = [message for check in checks for message in check(source, spec)]
    return [*unknown_keys(source, KNOWN_KEYS), *own, *goal_mistakes(source, spec, _NO_HUMAN)]


def goal_mistakes(source: WorldSource, spec: MapSpec, no_human: str) -> list[str]:
    """Goals that are probably not meant so; ``no_human`` says how a human would be written."""
    found = [] if spec.humans or not spec.goals else [f"{source.place('possible_goals')}: goals need humans, but {no_human}"]
    usable_YX = np.array([[spec.can_be_occupied(x, y) for x in range(spec.width)] for y in range(spec.height)])
    for check in (_truncated, partial(_useless, usable_YX), *_NEVER):
        found += [f"{source.place(*goal.path)}: {why}" for goal in spec.goals if (why := check(spec, goal)) is not None]
    # Humans of one colour share a list, whose mistakes are told once.
    return [*dict.fromkeys(found), *_uncovered_cells(source, spec)]


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


class MapSpec(Protocol):
    """What the specifications of all worlds on a map have."""

    @property
    def name(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def max_steps(self) -> int: ...
    @property
    def agents(self) -> Sequence[Any]: ...
    @property
    def humans(self) -> Sequence[int]: ...
    @property
    def robots(self) -> Sequence[int]: ...
    @property
    def goals(self) -> Sequence[GoalSpec]: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def has_directions(self) -> bool: ...
    @property
    def can_pick_up(self) -> bool: ...
    @property
    def can_open_doors(self) -> bool: ...
    @property
    def items(self) -> set[tuple[str, str | None]]: ...
    @property
    def doors(self) -> Sequence[tuple[int, int]]: ...
    def can_be_occupied(self, x: int, y: int) -> bool: ...
    def needs_goal(self, x: int, y: int) -> bool: ...
    def cells_that_humans_reach(self) -> Sequence[tuple[int, int]]: ...


def cells_without_goal(spec: MapSpec, rectangles: Sequence[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
    """Cells (x, y) of a map that need a goal (section 8.4) but lie in none of the rectangles."""
    bare = np.array([[spec.needs_goal(x, y) for x in range(spec.width)] for y in range(spec.height)])
    for x1, y1, x2, y2 in rectangles:
        bare[max(y1, 0) : max(y2 + 1, 0), max(x1, 0) : max(x2 + 1, 0)] = False
    return [(int(x), int(y)) for y, x in np.argwhere(bare)]


# Names that people use for keys.
_OTHER_NAMES = {"goals": "possible_goals", "steps": "max_steps", "horizon": "max_steps", "actions": "action_class"}


def unknown_keys(source: WorldSource, known: Sequence[str]) -> list[str]:
    unknown = [str(key) for key in source.mapping if key not in (*known, "grid_size")]
    return [f"{source.place(key)}: unknown key.{meant_key(key, known)}" for key in unknown]


def meant_key(key: str, known: Iterable[str]) -> str:
    """A suggestion for an unknown key: what people often call a known one, or a near miss."""
    return f" Did you mean {_OTHER_NAMES[key]!r}?" if key in _OTHER_NAMES else did_you_mean(key, known)


def _size_mismatch(source: WorldSource, spec: WorldSpec) -> list[str]:
    return [
        f"{source.place(key)}: found {source.mapping[key]!r}, but the map has {size}, which counts; remove the key"
        for key, size in (("width", spec.width), ("height", spec.height))
        if source.mapping.get(key, size) != size
    ]


def _orientation_mismatch(source: WorldSource, spec: WorldSpec) -> list[str]:
    """A list that is too short or too long is allowed (section 1.4), but probably a mistake."""
    value = source.mapping.get("orientations")
    if value is None or not is_list(value) or len(value) in (0, len(spec.agents)):
        return []
    where = ", ".join(f"{i} ({agent.colour}) at {agent.x},{agent.y}" for i, agent in enumerate(spec.agents))
    return [
        f"{source.place('orientations')}: {counted(len(value), 'direction')} for {counted(len(spec.agents), 'agent')}; "
        f"agents without one face east, extra directions are ignored. Agents are numbered in reading order: {where}"
    ]


def _dead_buttons(source: WorldSource, spec: WorldSpec) -> list[str]:
    """A kill button alone does not select the actions that press it (section 1.5), which is easily overlooked."""
    kill_buttons = any(cell.kind == Kind.KILL_BUTTON for row in spec.cells for cell in row)
    if not kill_buttons or Action.TOGGLE in spec.actions or source.mapping.get("action_class") is not None:
        return []
    return [
        f"{source.place('map')}: there is a kill button, but no agent can press it with {spec.action_set}; "
        "set action_class: ObjectActions, or action_class: SmallActions if this is intended"
    ]


def _truncated(spec: MapSpec, goal: GoalSpec) -> str | None:
    """Coordinates are truncated (section 8.1)."""
    return None if goal.truncated is None else f"{goal.truncated} is taken as {goal.label}; give whole numbers"


def _useless(usable_YX: BoolArray, spec: MapSpec, goal: GoalSpec) -> str | None:
    """Goals that extend beyond the grid, and goals without any cell that an agent can stand on."""
    cells = goal.condition.cells
    if cells is None:
        return None
    kind = "cell " if goal.is_cell else "rectangle " if goal.is_rectangle else ""
    what = f"the {kind}{goal.label}" if kind else goal.condition.words
    if any(x1 < 0 or y1 < 0 or x2 >= spec.width or y2 >= spec.height for x1, y1, x2, y2 in cells):
        return f"{what} extends beyond the grid, whose cells are 0,0 to {spec.width - 1},{spec.height - 1}"
    if not cells:
        return f"no cell is where an agent has to be for this: {what}"
    if not any(usable_YX[y1 : y2 + 1, x1 : x2 + 1].any() for x1, y1, x2, y2 in cells):
        return f"no agent can ever stand on {what}, which is only wall or similar"
    return None


def _too_late(spec: MapSpec, goal: GoalSpec) -> str | None:
    late = [part.step for part in goal.condition.singles() if isinstance(part, AtStep) and part.step > spec.max_steps]
    return f"step {late[0]} never comes, since max_steps is {spec.max_steps}" if late else None


def _never_carried(spec: MapSpec, goal: GoalSpec) -> str | None:
    asks = any(isinstance(part, Carries) for part in goal.condition.singles())
    return "nobody can pick up anything here; set action_class: ObjectActions" if asks and not spec.can_pick_up else None


def _never_opened(spec: MapSpec, goal: GoalSpec) -> str | None:
    asks = any(isinstance(part, DoorOpen) for part in goal.condition.singles())
    is_idle = asks and not spec.can_open_doors
    return "nobody can open or close doors here; set action_class: ObjectActions" if is_idle else None


_NEVER = (_too_late, _never_carried, _never_opened)


def _uncovered_cells(source: WorldSource, spec: MapSpec) -> list[str]:
    """Cells where a human can stand but that belong to no goal (section 8.4, C11)."""
    lists: dict[int | None, list[GoalSpec]] = {}
    for goal in spec.goals:
        lists.setdefault(goal.agent, []).append(goal)
    found = [_uncovered_by(source, spec, agent, goals) for agent, goals in lists.items()]
    return [message for message in found if message is not None]


def _uncovered_by(source: WorldSource, spec: MapSpec, agent: int | None, goals: Sequence[GoalSpec]) -> str | None:
    """What one list of goals leaves out; goals that are not about cells may be out of reach anywhere."""
    bare = cells_without_goal(spec, [area for goal in goals for area in goal.condition.cells or ()])
    names, where = _some([f"({x},{y})" for x, y in bare]), source.place(*goals[0].path[:-1])
    whose = "" if agent is None else f" of human {agent}"
    if not bare:
        return None
    if all(goal.is_walkable for goal in goals):
        return f"{where}: no human can walk to the cells {names}, so they are not among the goals"
    return (
        f"{where}: no goal{whose} covers the cells {names}; a human there may have no goal within reach, and phase 2 may "
        "refuse the world. Add goals for these cells, or write 'possible_goals: all'"
    )


def _some(cells: Sequence[str]) -> str:
    return ", ".join(cells[:12]) + (f" and {len(cells) - 12} more" if len(cells) > 12 else "")
