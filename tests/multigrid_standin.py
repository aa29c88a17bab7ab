"""Stand-ins for the environments, goals and generators of the public EMPO project: the same attributes, rules of the oracle.

They share no code with the package. Like the originals, they change private attributes when they are asked, and count how
often that happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

from oracle.gridworld import parse
from oracle.worldfile import split_map

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


class StandIn(BaseModel):
    """An environment with the attributes of a ``MultiGridEnv`` and the rules of a world file."""

    calls: ClassVar[Calls] = Calls()  # of all objects, so that copies count

    def __init__(self, mapping: Mapping[str, Any], *, has_goals: bool = True) -> None:
        self._oracle = parse(mapping)
        layout = self._oracle.layout
        self.width, self.height, self.max_steps = layout.width, layout.height, layout.max_steps
        self.stumble_probability = float(layout.stumble_probability)
        self.solidify_probability = float(layout.solidify_probability)
        self.enter_bush_success_prob = float(layout.bush_probability)
        self.actions = ACTION_SETS[layout.action_set]
        self.action_space = SimpleNamespace(n=self._oracle.n_actions)
        self._codes = split_map(mapping["map"])
        self.human_agent_indices, self.robot_agent_indices = self._oracle.humans, self._oracle.robots
        self._mobile_objects: list[Any] = []
        self.reset()
        if has_goals and layout.goals:
            goals = [(g.x1, g.y1) if g.kind == "cell" else (g.x1, g.y1, g.x2, g.y2) for g in layout.goals]
            self.possible_goal_generator = StandInGenerator(self, goals)

    def reset(self) -> None:
        self._state = self._oracle.initial_state()
        self.grid, self.terrain_grid = Grid(self.width, self.height), Grid(self.width, self.height)
        self.agents = [
            SimpleNamespace(
                pos=agent.start, dir=agent.direction, color=agent.colour, can_push_rocks=agent.can_push_rocks,
                can_enter_magic_walls=agent.can_enter_magic_walls, terminated=False, carrying=None,
            )
            for agent in self._oracle.layout.agents
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
        StandIn.calls["transitions"] += 1
        self.set_state(state)
        self._mobile_objects = [*state[2]]  # what the original leaves behind
        self.grid = Grid(self.width, self.height)
        if state[0] >= self.max_steps:
            return None
        self._oracle.max_steps = self.max_steps
        found = self._oracle.transitions(state, actions)
        return None if found is None else [(float(p), successor) for successor, p in found.items()]


class AskedStateByState:
    """The same without the attributes by which it would be recognised."""

    def __init__(self, env: StandIn) -> None:
        self._env, self.max_steps, self.action_space = env, env.max_steps, env.action_space
        self.n_agents = len(env.agents)
        self.human_agent_indices, self.robot_agent_indices = env.human_agent_indices, env.robot_agent_indices
        self.possible_goal_generator = getattr(env, "possible_goal_generator", None)

    def initial_state(self) -> Any:
        return self._env._oracle.initial_state()

    def transition_probabilities(self, state: Any, actions: Sequence[int]) -> Any:
        return self._env.transition_probabilities(state, actions)


class StandInGoal:
    """Hashes and compares by what it means."""

    def __init__(self, env: Any, human: int, target: Sequence[int], index: int) -> None:
        self.env, self.human_agent_index, self.index = env, human, index
        if len(target) == 2:
            self.target_pos = tuple(target)
        x1, y1, x2, y2 = (*target, *target)[:4]
        self.target_rect = (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))

    def is_achieved(self, state: Any) -> int:
        StandIn.calls["goals"] += 1
        x, y = state[1][self.human_agent_index][:2]
        x1, y1, x2, y2 = self.target_rect
        return int(x1 <= x <= x2 and y1 <= y <= y2)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StandInGoal) and (self.human_agent_index, self.target_rect) == (
            other.human_agent_index, other.target_rect,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.human_agent_index, self.target_rect))

    def __repr__(self) -> str:
        return f"StandInGoal({self.human_agent_index}, {self.target_rect})"


class StandInGenerator:
    """The same goals in every state, as a world file makes them."""

    indexed = True

    def __init__(self, env: Any, goal_coords: Sequence[Sequence[int]]) -> None:
        self.env = self.world_model = env
        self.goal_coords, self.n_goals = list(goal_coords), len(goal_coords)

    def generate(self, state: Any, human: int) -> Iterator[tuple[StandInGoal, float]]:
        StandIn.calls["generator"] += 1
        for i, target in enumerate(self.goal_coords):
            yield StandInGoal(self.env, human, target, i), 1 / self.n_goals
