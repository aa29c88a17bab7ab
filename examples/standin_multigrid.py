"""Stand-ins for environments and goals of the public EMPO project, so that scripts written for it run without it.

They have the attributes and methods that such scripts use, written from a description alone. Like the originals, they change
private attributes when they are asked; unlike them, they count how often that happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from empo_bi import load_world
from empo_bi.world.text import to_mapping

COLOURS = {"r": "red", "g": "green", "b": "blue", "p": "purple", "y": "yellow", "e": "grey"}
FIXED = {
    "..": None, "Bl": ("block", {}), "Ro": ("rock", {}), "La": ("lava", {}), "Sw": ("switch", {}),
    "Un": ("unsteadyground", {}), "Bu": ("bush", {}), "Ki": ("killbutton", {}), "Kb": ("killbutton", {}),
    "Pa": ("pauseswitch", {}), "Ps": ("pauseswitch", {}), "CB": ("controlbutton", {}),
    "dK": ("disablingswitch", {"target_type": "killbutton"}),
    "dP": ("disablingswitch", {"target_type": "pauseswitch"}), "dC": ("disablingswitch", {"target_type": "controlbutton"}),
    **{f"M{side}": ("magicwall", {"magic_side": n}) for n, side in enumerate("eswna")},
}  # fmt: skip
COLOURED = {
    "W": ("wall", {}), "K": ("key", {}), "B": ("ball", {}), "X": ("box", {"contains": None}), "G": ("goal", {}),
    "L": ("door", {"is_open": False, "is_locked": True}), "C": ("door", {"is_open": False, "is_locked": False}),
    "O": ("door", {"is_open": True, "is_locked": False}), "A": ("agent", {}),
}  # fmt: skip


class Grid:
    def __init__(self, width: int, height: int) -> None:
        self.width, self.height, self.cells = width, height, [None] * (width * height)

    def get(self, x: int, y: int) -> Any:
        return self.cells[y * self.width + x]

    def set(self, x: int, y: int, thing: Any) -> None:
        self.cells[y * self.width + x] = thing


class SmallActions:
    pass


class ObjectActions:
    pass


class MinimalActions:
    pass


class MineActions:
    pass


ACTION_SETS = {kind.__name__: kind for kind in (SmallActions, ObjectActions, MinimalActions, MineActions)}


class Calls(Counter[str]):
    """Counts, and looks the same whatever it has counted: no part of what a world is."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Calls, ()


class BaseModel:
    """Where durations are inherited from, all ones."""

    def transition_durations(self, state: Any, actions: Sequence[int], transitions: Any) -> list[float]:
        """How long each transition takes."""
        return [1.0] * len(transitions)


class RulesOfFile:
    """What moves where, told by a world file, a state at a time. The tests have rules of their own in its place."""

    def __init__(self, source: str | Mapping[str, Any]) -> None:
        self._world = load_world(source, max_steps=1_000)  # the environment stops before
        self.layout, self.n_actions = self._world.world_spec, self._world.action_space.n
        self.humans, self.robots = self._world.human_agent_indices, self._world.robot_agent_indices

    def initial_state(self) -> Any:
        return self._world.initial_state()

    def transitions(self, state: Any, actions: Sequence[int]) -> dict[Any, float] | None:
        found = self._world.transition_probabilities(state, actions)
        return None if found is None else {successor: p for p, successor in found}


class MultiGridEnv(BaseModel):
    """An environment with the attributes of a ``MultiGridEnv``, made from a world file."""

    calls: ClassVar[Calls] = Calls()  # of all objects, so that copies count

    def __init__(self, config_file: str, *, partial_obs: bool = False, actions_set: type | None = None) -> None:
        mapping = to_mapping(load_world(config_file).world_spec)
        rules = RulesOfFile(mapping)
        self._build(mapping, rules, mapping["max_steps"], [goal.rectangle for goal in rules.layout.goals])

    def _build(self, mapping: Mapping[str, Any], rules: Any, max_steps: int, corners: Sequence[Sequence[int]]) -> None:
        """``corners`` has (x1, y1, x2, y2) of each goal."""
        self._rules, layout = rules, rules.layout
        self.width, self.height, self.max_steps = layout.width, layout.height, max_steps
        self.stumble_probability = float(mapping.get("stumble_probability", 0.5))
        self.solidify_probability = float(mapping.get("solidify_probability", 0.1))
        self.enter_bush_success_prob = float(mapping.get("enter_bush_success_prob", 1))
        self.actions = ACTION_SETS[layout.action_set]
        self.action_space = SimpleNamespace(n=self._rules.n_actions)
        self._codes = [["".join(pair) for pair in zip(row[::2], row[1::2], strict=True)] for row in _rows(mapping["map"])]
        self.human_agent_indices, self.robot_agent_indices = self._rules.humans, self._rules.robots
        self._mobile_objects: list[Any] = []
        self.reset()
        if corners:
            goals = [four[:2] if four[:2] == four[2:] else four for four in corners]
            self.possible_goal_generator = FileGoalGenerator(self, goals)

    def reset(self) -> None:
        self._state = self._rules.initial_state()
        self.grid, self.terrain_grid = Grid(self.width, self.height), Grid(self.width, self.height)
        self.agents = [
            SimpleNamespace(
                pos=_start(agent), dir=agent.direction, color=agent.colour, can_push_rocks=agent.can_push_rocks,
                can_enter_magic_walls=agent.can_enter_magic_walls, terminated=False, carrying=None,
            )
            for agent in self._rules.layout.agents
        ]  # fmt: skip
        for y, row in enumerate(self._codes):
            for x, code in enumerate(row):
                self.grid.set(x, y, self._thing(code))

    def _thing(self, code: str) -> Any:
        if code in FIXED:
            found, colour = FIXED[code], "grey"
        else:
            found, colour = COLOURED[code[0]], COLOURS[code[1]]
        if found is None:
            return None
        kind, attributes = found
        thing = SimpleNamespace(type=kind, color=colour, **attributes)
        if kind == "magicwall":
            thing.entry_probability, thing.solidify_probability = 0.5, self.solidify_probability
        return thing

    def get_state(self) -> Any:
        return self._state

    def set_state(self, state: Any) -> None:
        self._state = state
        for agent, entry in zip(self.agents, state[1], strict=True):
            agent.pos, agent.dir, agent.terminated = entry[:2], entry[2], entry[3]

    def transition_probabilities(self, state: Any, actions: Sequence[int]) -> Any:
        MultiGridEnv.calls["transitions"] += 1
        self.set_state(state)
        self._mobile_objects = [*state[2]]  # what the original leaves behind
        self.grid = Grid(self.width, self.height)
        if state[0] >= self.max_steps:
            return None
        found = self._rules.transitions(state, actions)
        return None if found is None else [(float(p), successor) for successor, p in found.items()]


def _rows(written: str | Sequence[str]) -> list[str]:
    lines = written.strip().split("\n") if isinstance(written, str) else written
    return ["".join("".join(line).split()) for line in lines]


def _start(agent: Any) -> tuple[int, int]:
    return agent.start if hasattr(agent, "start") else (agent.x, agent.y)


class ReachGoal:
    """Hashes and compares by what it means."""

    def __init__(self, env: Any, human: int, target: Sequence[int], index: int) -> None:
        self.env, self.human_agent_index, self.index = env, human, index
        if len(target) == 2:
            self.target_pos = tuple(target)
        x1, y1, x2, y2 = (*target, *target)[:4]
        self.target_rect = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))

    def is_achieved(self, state: Any) -> int:
        MultiGridEnv.calls["goals"] += 1
        x, y = state[1][self.human_agent_index][:2]
        x1, y1, x2, y2 = self.target_rect
        return int(x1 <= x <= x2 and y1 <= y <= y2)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"env": None}  # as the originals do

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReachGoal) and (self.human_agent_index, self.target_rect) == (
            other.human_agent_index, other.target_rect,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.human_agent_index, self.target_rect))

    def __repr__(self) -> str:
        return f"ReachGoal({self.human_agent_index}, {self.target_rect})"


class FileGoalGenerator:
    """The same goals in every state, as a world file makes them."""

    indexed = True

    def __init__(self, env: Any, goal_coords: Sequence[Sequence[int]]) -> None:
        self.env = self.world_model = env
        self.goal_coords, self.n_goals = list(goal_coords), len(goal_coords)

    def generate(self, state: Any, human: int) -> Iterator[tuple[ReachGoal, float]]:
        MultiGridEnv.calls["generator"] += 1
        for i, target in enumerate(self.goal_coords):
            yield ReachGoal(self.env, human, target, i), 1 / self.n_goals
