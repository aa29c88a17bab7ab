"""Environments of the public EMPO project, as gridworlds: what their attributes say, written as a world file.

Only attributes are read, of a copy, and every one that has no counterpart in a world file is a reason to refuse: nothing is
guessed. Whether the result is the same world is for :mod:`empo_bi.world.translation` to check.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol, TypeGuard

from empo_bi.errors import TranslationError
from empo_bi.runtime.wording import short_repr
from empo_bi.types import Json
from empo_bi.world.codes import ACTION_SETS, CELL_CODES, COLOURS, CellCode, Door, Kind
from empo_bi.world.model import State

_CODE_OF = {meaning: code for code, meaning in reversed(CELL_CODES.items())}
_LETTER_OF = {name: letter for letter, name in COLOURS.items()}
_PLAIN = {
    "block": Kind.BLOCK, "rock": Kind.ROCK, "lava": Kind.LAVA, "switch": Kind.SWITCH, "unsteadyground": Kind.UNSTEADY,
    "bush": Kind.BUSH, "killbutton": Kind.KILL_BUTTON, "pauseswitch": Kind.PAUSE_SWITCH,
    "controlbutton": Kind.CONTROL_BUTTON,
}  # fmt: skip
_COLOURED = {"wall": Kind.WALL, "key": Kind.KEY, "ball": Kind.BALL, "goal": Kind.GOAL}
_DISABLED = {"killbutton": Kind.KILL_BUTTON, "pauseswitch": Kind.PAUSE_SWITCH, "controlbutton": Kind.CONTROL_BUTTON}
_CHANCES = {"stumble_probability": 0.5, "solidify_probability": 0.1, "enter_bush_success_prob": 1.0}


class Thing(Protocol):
    """What is on a cell. Attributes after the first two belong to some types only."""

    type: str
    color: str
    is_open: bool
    is_locked: bool
    contains: object
    magic_side: int
    target_type: str


class Cells(Protocol):
    def get(self, x: int, y: int) -> Thing | None: ...


class GridAgent(Protocol):
    pos: Sequence[int]
    dir: int
    color: str


class ActionSpace(Protocol):
    n: int


class MultiGrid(Protocol):
    """As much of a ``MultiGridEnv`` as is read."""

    width: int
    height: int
    max_steps: int
    grid: Cells
    agents: Sequence[GridAgent]
    actions: object
    action_space: ActionSpace

    def reset(self) -> object: ...

    def get_state(self) -> State: ...


def is_multigrid(world: object) -> TypeGuard[MultiGrid]:
    """Whether an object is to be translated: it has the attributes, and not ``empo_bi_translate = False``."""
    return getattr(world, "empo_bi_translate", True) is not False and has_grid_of_agents(world)


def has_grid_of_agents(world: object) -> TypeGuard[MultiGrid]:
    """Whether an object has the attributes of a ``MultiGridEnv``."""
    has_grid = callable(getattr(getattr(world, "grid", None), "get", None))
    methods = ("get_state", "set_state", "transition_probabilities", "reset")
    return has_grid and all(callable(getattr(world, name, None)) for name in methods) and hasattr(world, "agents")


def world_file_of(env: MultiGrid) -> Json:
    """What an environment that has just been reset is, with the keys of a world file.

    Raises
    ------
    TranslationError
        With the first reason why there is no such file.
    """
    cells = [[_code(env, x, y) for x in range(env.width)] for y in range(env.height)]
    return {
        "metadata": {"name": type(env).__name__},
        "map": [" ".join(row) for row in cells],
        "max_steps": _whole(env.max_steps, "max_steps"),
        "action_class": _action_set(env),
        "orientations": [_whole(agent.dir, f"dir of agent {i}") for i, agent in enumerate(env.agents)],
        "can_push_rocks": _colours_that(env, "can_push_rocks"),
        "can_enter_magic_walls": _colours_that(env, "can_enter_magic_walls"),
        **{name: _chance(getattr(env, name, default), name) for name, default in _CHANCES.items()},
    }


# --- cells ------------------------------------------------------------------------------------------------------------


def _code(env: MultiGrid, x: int, y: int) -> str:
    """The two characters of a cell."""
    here = [(i, agent) for i, agent in enumerate(env.agents) if tuple(map(int, agent.pos)) == (x, y)]
    if len(here) > 1:
        raise TranslationError(f"agents {here[0][0]} and {here[1][0]} are both at {x},{y}")
    thing = env.grid.get(x, y)
    below = _below(env, x, y)
    if here:
        i, agent = here[0]
        if thing is not None and thing.type != "agent":
            below = thing
        meaning, who = CellCode(Kind.AGENT, str(agent.color)), f"agent {i}"
    elif thing is None:
        return _CODE_OF[CellCode(Kind.EMPTY)] if below is None else _written(_meaning(env, below, x, y), x, y)
    elif thing.type == "agent":
        raise TranslationError(f"an agent is drawn at {x},{y}, where none of the agents is")
    else:
        meaning, who = _meaning(env, thing, x, y), f"a {thing.type}"
    if below is not None and below is not thing:
        raise TranslationError(f"{who} is on a {below.type} at {x},{y}; in a world file nothing is under it")
    return _written(meaning, x, y)


def _below(env: MultiGrid, x: int, y: int) -> Thing | None:
    """What lies under an agent or a thing, None if that is bare floor."""
    terrain = getattr(env, "terrain_grid", None)
    found = None if terrain is None else terrain.get(x, y)
    return None if found is None or found.type in ("floor", "empty") else found


def _written(meaning: CellCode, x: int, y: int) -> str:
    try:
        return _CODE_OF[meaning]
    except KeyError:
        what = meaning.kind.name.lower().replace("_", " ")
        raise TranslationError(f"no code of world files is a {what} of colour {meaning.colour!r} (at {x},{y})") from None


def _meaning(env: MultiGrid, thing: Thing, x: int, y: int) -> CellCode:
    read = _OWN.get(thing.type)
    if read is not None:
        return read(env, thing, f"at {x},{y}")
    if thing.type in ("floor", "empty"):
        return CellCode(Kind.EMPTY)
    if thing.type in _PLAIN:
        return CellCode(_PLAIN[thing.type])
    if thing.type in _COLOURED:
        return CellCode(_COLOURED[thing.type], str(thing.color))
    raise TranslationError(f"unknown kind of object: {short_repr(thing.type)} at {x},{y}")


def _door(env: MultiGrid, thing: Thing, where: str) -> CellCode:
    if thing.is_open and thing.is_locked:
        raise TranslationError(f"the door {where} is open and locked")
    if thing.is_open:
        return CellCode(Kind.OPEN_DOOR, str(thing.color), int(Door.OPEN))
    return CellCode(Kind.CLOSED_DOOR, str(thing.color), int(Door.LOCKED if thing.is_locked else Door.CLOSED))


def _box(env: MultiGrid, thing: Thing, where: str) -> CellCode:
    if getattr(thing, "contains", None) is not None:
        raise TranslationError(f"the box {where} contains {short_repr(thing.contains)}; boxes of world files are empty")
    return CellCode(Kind.BOX, str(thing.color))


def _magic_wall(env: MultiGrid, thing: Thing, where: str) -> CellCode:
    usual = {"entry_probability": 0.5, "solidify_probability": getattr(env, "solidify_probability", 0.1)}
    for name, expected in usual.items():
        found = getattr(thing, name, expected)
        if found != expected and any(getattr(agent, "can_enter_magic_walls", False) for agent in env.agents):
            raise TranslationError(f"the magic wall {where} has its own {name}, {found}; in a world file it is {expected}")
    return CellCode(Kind.MAGIC_WALL, trait=_whole(thing.magic_side, f"magic_side {where}"))


def _disabling_switch(env: MultiGrid, thing: Thing, where: str) -> CellCode:
    target = str(thing.target_type).lower().replace("_", "")
    if target not in _DISABLED:
        raise TranslationError(f"the disabling switch {where} acts on {short_repr(thing.target_type)}")
    return CellCode(Kind.DISABLING_SWITCH, trait=_DISABLED[target])


_OWN: dict[str, Callable[[MultiGrid, Thing, str], CellCode]] = {
    "door": _door, "box": _box, "magicwall": _magic_wall, "disablingswitch": _disabling_switch,
}  # fmt: skip


# --- agents and numbers -----------------------------------------------------------------------------------------------


def _colours_that(env: MultiGrid, ability: str) -> str:
    """Letters of the colours whose agents can do something; in a world file, all or none of a colour can."""
    found: dict[str, set[bool]] = defaultdict(set)
    for agent in env.agents:
        found[str(agent.color)].add(bool(getattr(agent, ability, False)))
    for colour, answers in found.items():
        if len(answers) > 1:
            raise TranslationError(f"only some {colour} agents have {ability}; in a world file it goes by colour")
    return "".join(sorted(_LETTER_OF[colour] for colour, answers in found.items() if True in answers))


def _action_set(env: MultiGrid) -> str:
    name, n_actions = getattr(env.actions, "__name__", type(env.actions).__name__), int(env.action_space.n)
    known = {known: actions for known, actions in ACTION_SETS.items() if len(actions) == n_actions}
    if name in known:
        return str(name)
    raise TranslationError(f"actions {name!r} with {n_actions} actions; known are {', '.join(ACTION_SETS)}")


def _whole(value: float, what: str) -> int:
    if isinstance(value, bool) or int(value) != value:
        raise TranslationError(f"{what} is {short_repr(value)}, not a whole number")
    return int(value)


def _chance(value: float, what: str) -> float:
    found = float(value)
    if not 0 <= found <= 1:
        raise TranslationError(f"{what} is {short_repr(value)}, not a probability")
    return found
