"""A state as text, in the two-letter codes of world files; the text of the initial state can be loaded again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from empo_bi.world.codes import CELL_CODES, COLOURS, DIRECTION_NAMES, CellCode, Kind
from empo_bi.world.encoding import GridState
from empo_bi.world.goal_entries import goals_as_values
from empo_bi.world.spec import WorldSpec

# The first spelling of each code wins, but kill buttons (Kb or Ki) are written Ki, which cannot be mistaken for a key.
_CODE_OF = {meaning: code for code, meaning in reversed(CELL_CODES.items())} | {CellCode(Kind.KILL_BUTTON): "Ki"}
_LETTER_OF = {name: letter for letter, name in COLOURS.items()}

Entry = tuple[Any, ...]  # of a state: an agent, or an object


def draw(spec: WorldSpec, state: GridState) -> str:
    """The rows of the map in a state: what every cell shows (C12), with the current state of doors and bushes."""
    _, agents, mobile, mutable = state
    rows = [[_ground(cell) for cell in row] for row in spec.cells]
    for kind, x, y, *flags in mutable:
        if kind == "door":
            is_open, is_locked = flags
            letter = "O" if is_open else "L" if is_locked else "C"
            rows[y][x] = letter + _LETTER_OF[str(spec.cells[y][x].colour)]
        elif kind == "bush" and flags[0]:
            rows[y][x] = ".."
    for kind, x, y, *colour in mobile:
        rows[y][x] = _CODE_OF[CellCode(Kind[kind.upper()], colour[0] if colour else None)]
    for agent, entry in zip(spec.agents, agents, strict=True):
        x, y = entry[:2]
        rows[y][x] = "A" + _LETTER_OF[agent.colour]
    return "\n".join(" ".join(row) for row in rows)


def _ground(cell: CellCode) -> str:
    if cell.kind in (Kind.AGENT, Kind.BLOCK, Kind.ROCK, Kind.KEY, Kind.BALL, Kind.BOX):
        return ".."
    return _CODE_OF[cell]


def notes(spec: WorldSpec, state: GridState) -> list[str]:
    """What the map of a state does not show: where agents look and what they carry, what lies under something, switches."""
    _, agents, mobile, mutable = state
    found = [_agent_note(spec, i, entry) for i, entry in enumerate(agents)]
    seen: dict[tuple[int, int], int] = Counter((entry[0], entry[1]) for entry in agents)
    hidden = []
    for entry in reversed(mobile):  # the last one on a cell is drawn, unless an agent stands there
        kind, x, y, *colour = entry
        if seen[x, y]:
            hidden.append(f"{' '.join((*colour, kind))} at {x},{y}")
        seen[x, y] += 1
    found += [f"beneath: {'; '.join(reversed(hidden))}"] if hidden else []
    words = [_object_words(spec, entry) for entry in mutable if entry[0] not in ("door", "bush") or seen[entry[1], entry[2]]]
    return found + ([f"the map: {'; '.join(words)}"] if words else [])


def _agent_note(spec: WorldSpec, i: int, entry: Entry) -> str:
    """``human 0 at 1,1 faces east, carries a red key``."""
    return f"{_role(spec, i)} {i} at {entry[0]},{entry[1]} faces {DIRECTION_NAMES[entry[2]]}{_burdens(spec, entry)}"


def _role(spec: WorldSpec, i: int) -> str:
    return "human" if i in spec.humans else "robot" if i in spec.robots else "agent"


def _burdens(spec: WorldSpec, entry: Entry) -> str:
    """What an agent carries, and what holds it."""
    _, _, _, terminated, _, paused, kind, colour, forced = entry
    carried = f", carries a {colour} {kind}" if kind else ""
    held = (", terminated" if terminated else "") + (", paused" if paused else "")
    return carried + held + (f", has to do {spec.actions[forced].name.lower()} next" if forced is not None else "")


def describe_state(spec: WorldSpec, state: GridState) -> str:
    """A state in words, all of it but the step: a line for each agent, one for things that lie about, one for what changes.

    Different states have different words.
    """
    _, _, mobile, mutable = state
    lines = _agent_lines(spec, state)
    things = [f"{' '.join((*colour, kind))} at {x},{y}" for kind, x, y, *colour in mobile]
    lines += [f"things: {'; '.join(things)}"] if things else []
    lines += [f"the map: {'; '.join(_object_words(spec, entry) for entry in mutable)}"] if mutable else []
    return "\n".join(lines)


def _agent_lines(spec: WorldSpec, state: GridState) -> list[str]:
    """Of each agent its cell and direction, what it carries, and what holds it."""
    return [
        f"{_role(spec, i)} {i} ({agent.colour}) at {x},{y} facing {DIRECTION_NAMES[direction]}{_burdens(spec, entry)}"
        for i, (agent, entry) in enumerate(zip(spec.agents, state[1], strict=True))
        for x, y, direction in [entry[:3]]
    ]


def _object_words(spec: WorldSpec, entry: Entry) -> str:
    """``locked green door at 1,2``, ``pause switch at 3,1 (on, disabled)``, ...; what is as usual is not said."""
    kind, x, y, *flags = entry
    if kind == "door":
        is_open, is_locked = flags
        condition = "open" if is_open else "locked" if is_locked else "closed"
        return f"{condition} {spec.cells[y][x].colour} door at {x},{y}"
    more = _WORDS_FOR_FLAGS[kind](spec, *flags)
    return f"{_SPOKEN[kind]} at {x},{y}" + (f" ({', '.join(more)})" if more else "")


def _of_control_button(
    spec: WorldSpec, is_enabled: bool, controlled: int | None, recorded: int | None, awaits: bool
) -> list[str]:
    return [
        *([] if is_enabled else ["disabled"]),
        *([] if controlled is None else [f"controls agent {controlled}"]),
        *([] if recorded is None else [f"makes it do {spec.actions[recorded].name.lower()}"]),
        *(["awaits an action"] if awaits else []),
    ]


_SPOKEN = {
    "magicwall": "magic wall", "bush": "bush", "killbutton": "kill button", "pauseswitch": "pause switch",
    "controlbutton": "control button",
}  # fmt: skip
_WORDS_FOR_FLAGS: dict[str, Callable[..., list[str]]] = {
    "magicwall": lambda spec, is_active: [] if is_active else ["solid"],
    "bush": lambda spec, is_trampled: ["trampled"] if is_trampled else [],
    "killbutton": lambda spec, is_enabled: [] if is_enabled else ["disabled"],
    "pauseswitch": lambda spec, is_on, is_enabled: ["on" if is_on else "off", *([] if is_enabled else ["disabled"])],
    "controlbutton": _of_control_button,
}


def to_mapping(spec: WorldSpec) -> dict[str, object]:
    """The world as a mapping of plain values that ``load_world`` can read; stores keep it."""
    weighted = goals_as_values(spec.goals)
    return {
        "metadata": {"name": spec.name},
        "map": [" ".join(_CODE_OF[cell] for cell in row) for row in spec.cells],
        "max_steps": spec.max_steps,
        "action_class": spec.action_set,
        "orientations": [agent.direction for agent in spec.agents],
        "can_push_rocks": _letters(agent.colour for agent in spec.agents if agent.can_push_rocks),
        "can_enter_magic_walls": _letters(agent.colour for agent in spec.agents if agent.can_enter_magic_walls),
        "stumble_probability": spec.stumble_probability,
        "solidify_probability": spec.solidify_probability,
        "enter_bush_success_prob": spec.enter_bush_success_prob,
        **({"possible_goals": weighted} if weighted else {}),
        **_roles(spec),
    }


def _roles(spec: WorldSpec) -> dict[str, object]:
    """Humans and robots where they do not follow from colours; worlds of earlier versions have none of this."""
    humans = tuple(i for i, agent in enumerate(spec.agents) if agent.is_human)
    robots = tuple(i for i, agent in enumerate(spec.agents) if agent.is_robot)
    found: dict[str, object] = {} if spec.humans == humans else {"humans": list(spec.humans)}
    return found if spec.robots == robots else {**found, "robots": list(spec.robots)}


def _letters(colours: Iterable[str]) -> str:
    return "".join(sorted({_LETTER_OF[colour] for colour in colours}))
