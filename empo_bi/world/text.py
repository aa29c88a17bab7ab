"""A state as text, in the two-letter codes of world files: what it prints for the initial state can be loaded again."""

from __future__ import annotations

from empo_bi.world.codes import CELL_CODES, COLOURS, CellCode, Kind
from empo_bi.world.encoding import State
from empo_bi.world.spec import WorldSpec

# The first spelling of each code wins (kill buttons are Kb or Ki), except that `Ki` cannot be taken for a key.
_CODE_OF = {meaning: code for code, meaning in reversed(CELL_CODES.items())} | {CellCode(Kind.KILL_BUTTON): "Ki"}
_LETTER_OF = {name: letter for letter, name in COLOURS.items()}


def draw(spec: WorldSpec, state: State) -> str:
    """The rows of the map as they are in the state: what every cell shows (C12), doors and bushes as they are now."""
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


def describe_agents(spec: WorldSpec, state: State) -> str:
    """One line an agent: where it is, which way it faces, what holds it or is in its hands."""
    lines = []
    for i, (agent, entry) in enumerate(zip(spec.agents, state[1], strict=True)):
        x, y, direction, terminated, _, paused, kind, colour, forced = entry
        role = "human" if agent.is_human else "robot" if agent.is_robot else "agent"
        line = f"{role} {i} ({agent.colour}) at {x},{y} facing {('east', 'south', 'west', 'north')[direction]}"
        line += f", carries a {colour} {kind}" if kind else ""
        line += ", terminated" if terminated else ""
        line += ", paused" if paused else ""
        line += f", has to do {spec.actions[forced].name.lower()} next" if forced is not None else ""
        lines.append(line)
    return "\n".join(lines)
