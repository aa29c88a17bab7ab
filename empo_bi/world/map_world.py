"""Compiled worlds on a map that come from files: what gridworlds and other such worlds have in common.

A kind of its own derives from :class:`MapWorld` and says what its files mean, how its states are packed, and what happens in
a step; loading, storing, solving, drawing and exploring it then work. ``world/bush`` is a small example.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from empo_bi.errors import MissingAgentError
from empo_bi.runtime.hooks import Displayed, provider_of
from empo_bi.runtime.wording import counted
from empo_bi.types import Array, BoolArray, FloatArray, IndexArray, Json, KeyArray
from empo_bi.world import codes
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.attained import attained
from empo_bi.world.goals import PossibleGoal, WorldGoalGenerator, WorldGoalSampler
from empo_bi.world.key_layout import Expansion, KeyLayout
from empo_bi.world.lint import MapSpec, cells_without_goal
from empo_bi.world.packed import PackedWorld
from empo_bi.world.row_codec import MapState, RowCodec
from empo_bi.world.shapes import Cell, Place, every_place

# What every such world has; what is put on one beside this, and beside its own ``own_attributes``, is an addition.
ATTRIBUTES = frozenset({
    "world_spec", "render_mode", "agents", "max_steps", "human_agent_indices", "robot_agent_indices", "action_space",
    "observation_space", "layout", "codec", "_step_count", "_key", "_row",
})  # fmt: skip


class MapWorld(Displayed, PackedWorld):
    """A compiled world on a map.

    As a gymnasium environment it takes one action *per agent*, while ``action_space`` is that of a single agent, as the
    planners expect. Tools that sample from ``action_space`` therefore need a world with one agent; the PettingZoo wrapper
    works for all worlds.

    Parameters
    ----------
    spec : the checked content of the world file
    layout, codec : how states are packed
    n_actions : of each agent
    render_mode : None, "rgb_array" or "ansi"

    Attributes
    ----------
    world_spec : the checked content of the world file
    agents : its agents, each with x, y, colour, is_human and is_robot
    human_agent_indices, robot_agent_indices : list of int
        As the file says, unless reassigned.
    possible_goal_generator, possible_goal_sampler
        The file's goals, None if it has none.
    max_steps : int
        States with this step count are terminal.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 4}  # noqa: RUF012 (gymnasium's own convention)
    action_space: spaces.Discrete
    kind = "MapWorld"  # in titles
    _display = "MapWorld.display"
    role_codes = {"human": "Ay", "robot": "Ae"}  # noqa: RUF012 (a constant of each class)
    rules_version = 1  # to be raised when rules, the packing of keys or the numbering of bodies change
    n_directions = 1  # that an agent may face
    # What states have after step and agents, so that the explorer can say what changes: "things" for mobile and mutable
    # ones as in gridworlds, the name of a number for each cell, such as "density", or "" if it should not try.
    state_parts = ""
    own_attributes: frozenset[str] = frozenset()

    def __init__(
        self, spec: MapSpec, layout: KeyLayout, codec: RowCodec, *, n_actions: int, render_mode: str | None = None
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode={render_mode!r}; give one of {self.metadata['render_modes']}")
        self.world_spec: Any = spec
        self.render_mode = render_mode
        self.agents = spec.agents
        self.max_steps = spec.max_steps
        self.human_agent_indices, self.robot_agent_indices = list(spec.humans), list(spec.robots)
        self.action_space = spaces.Discrete(n_actions)
        self.layout: Any = layout
        self.codec: Any = codec
        self._dag_cache: tuple[Any, ...] | None = None
        self._recognised_goals: Any = None  # goals of other packages that turned out to be reach goals
        self._make_goals()
        self.observation_space = self._observation_space()
        self._to_start()

    def _make_goals(self) -> None:
        self.possible_goal_generator = WorldGoalGenerator(self) if self.world_spec.goals else None
        self.possible_goal_sampler = WorldGoalSampler(self.possible_goal_generator) if self.world_spec.goals else None

    def __getstate__(self) -> dict[str, object]:
        remembered = {"_profiles", "_recognised_goals"}  # which can be made again
        return {name: value for name, value in self.__dict__.items() if name not in remembered} | {"_dag_cache": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Goals lose their world when they are pickled or copied; the file's own goals are made again."""
        self.__dict__.update(state)
        if isinstance(self.possible_goal_generator, WorldGoalGenerator):
            self._make_goals()

    def __str__(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        spec = self.world_spec
        return (
            f"<{self.kind} {spec.name!r}: {spec.width} x {spec.height}, {counted(len(self.agents), 'agent')} "
            f"({counted(len(self.human_agent_indices), 'human')}, {counted(len(self.robot_agent_indices), 'robot')}), "
            f"{self.action_space.n} actions, {counted(len(spec.goals), 'goal')}, {counted(self.max_steps, 'step')}>"
        )

    def require_agents(self, *, human: bool = False, robot: bool = False) -> None:
        """Raise :class:`MissingAgentError` unless the world has the agents that are needed."""
        needed = [(human, "human", codes.HUMAN_COLOUR, self.human_agent_indices)]
        needed += [(robot, "robot", codes.ROBOT_COLOUR, self.robot_agent_indices)]
        for is_needed, role, colour, found in needed:
            if is_needed and not found:
                code = self.role_codes[role]
                colours = ", ".join(agent.colour for agent in self.agents) or "none at all"
                raise MissingAgentError(
                    f"{self.world_spec.origin}: map: a {role} is needed ({colour}, code '{code}'), but the agents are: "
                    f"{colours}. Put '{code}' on the map, or assign world.{role}_agent_indices"
                )

    def cells_without_goal(self, rectangles: Iterable[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
        """Cells (x, y) where a human can stand but that lie in none of the rectangles (section 8.4)."""
        return cells_without_goal(self.world_spec, list(rectangles))

    # --- what a kind of world says of itself --------------------------------------------------------------------------

    @property
    @abstractmethod
    def action_names(self) -> list[str]: ...

    @property
    @abstractmethod
    def mapping(self) -> Json:
        """The world as plain values that ``load_world`` can read; stores keep it."""

    @property
    @abstractmethod
    def rules(self) -> tuple[Json, list[Array]]:
        """All that transitions depend on, but for the horizon: names and numbers, and arrays. It identifies the world."""

    @property
    def settings(self) -> Json:
        """Further numbers of the file, for ``empo-bi worlds describe``."""
        return {}

    def traits(self, agent: int) -> Json:
        """What an agent has beside its role, colour and cell, for ``empo-bi worlds describe``."""
        return {}

    @abstractmethod
    def with_horizon(self, steps: int) -> MapWorld:
        """The same world with another horizon, and with the goals of its file."""

    # --- the map ------------------------------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        return int(self.world_spec.width)

    @property
    def height(self) -> int:
        return int(self.world_spec.height)

    @property
    def cell_xy(self) -> IndexArray:
        """(C, 2), the place of each cell by its number in rows; negative for cells that stand for no place."""
        cell_xy: IndexArray = self.layout.cell_xy
        return cell_xy

    @abstractmethod
    def cell_slot(self, agent: int) -> int:
        """The slot of rows that has the number of an agent's cell."""

    def direction_slot(self, agent: int) -> int | None:
        """The slot of rows that has an agent's direction; None if agents have none."""
        return None

    @property
    @abstractmethod
    def headings(self) -> FloatArray:
        """(D, A, 2), the way (x, y) that each action points for each direction of the agent; 0 if it is not a movement.

        D is ``n_directions``, 1 where agents have none.
        """

    @abstractmethod
    def walk(self, agent: int) -> IndexArray:
        """(P, A), the pose in which each action leaves an agent who has the map to itself.

        A pose is a cell with a direction, number ``(y * width + x) * D + direction``.
        """

    def pose(self, state: MapState, agent: int) -> int:
        """The number of an agent's pose in a state."""
        x, y, *more = state[1][agent]
        return int((y * self.width + x) * self.n_directions + (more[0] if self.n_directions > 1 else 0))

    def fields(self, key_SW: KeyArray) -> AgentFields:
        """Where agents are in some packed states."""
        return AgentFields(self, key_SW)

    # --- states and transitions ---------------------------------------------------------------------------------------

    def initial_state(self) -> MapState:
        start: MapState = self.codec.state_of(0, self.layout.initial_row.tolist())
        return start

    def is_terminal(self, state: MapState | None = None) -> bool:
        step = self._step_count if state is None else state[0]
        return bool(step >= self.max_steps)

    def get_dag(self, return_probabilities: bool = False, quiet: bool = False) -> tuple[Any, ...]:
        """All reachable states as Python objects: ``(states, state_to_idx, successors[, transitions])``.

        Convenient for small worlds; ``empo_bi.enumerate_dag`` returns the same as arrays, for millions of states. States are
        in topological order, with ties broken by size. ``transitions[i]`` has one ``(profile, probabilities, successor
        indices)`` per profile, and is empty for a terminal state. The result is cached until :meth:`clear_dag_cache`; the
        world is reset.
        """
        if self._dag_cache is None:
            self.reset()
            self._dag_cache = provider_of("MapWorld.get_dag")(self, progress=not quiet)
        return self._dag_cache if return_probabilities else self._dag_cache[:3]

    def clear_dag_cache(self) -> None:
        """Drop the cached result of :meth:`get_dag`."""
        self._dag_cache = None

    @property
    def n_words(self) -> int:
        return int(self.layout.n_words)

    @property
    def initial_key(self) -> KeyArray:
        """Key of the initial state, (1, W)."""
        key_1W: KeyArray = self.layout.initial_key.copy()
        return key_1W

    def encode(self, states: Iterable[MapState]) -> tuple[npt.NDArray[np.int64], KeyArray]:
        """Steps (S,) and keys (S, W) of state tuples."""
        steps, key_SW = self.codec.encode(states)
        return steps, key_SW

    def decode(self, steps: npt.ArrayLike, key_SW: KeyArray) -> list[MapState]:
        """MapState tuples of keys; ``steps`` is one number for all, or one for each."""
        states: list[MapState] = self.codec.decode(steps, key_SW)
        return states

    def problem_of_keys(self, key_SW: KeyArray) -> str | None:
        """Why some keys are not states of this world; None if all are. For keys from untrusted files."""
        problem: str | None = self.layout.problem_of_keys(key_SW)
        return problem

    def attainment(self, steps: npt.ArrayLike, key_SW: KeyArray, goals: Sequence[PossibleGoal]) -> BoolArray:
        """Whether each goal is achieved in each state of a block, (S, G)."""
        return attained(self.fields(key_SW), steps, lambda: self.decode(steps, key_SW), list(goals))

    # --- gymnasium ----------------------------------------------------------------------------------------------------

    def _to_start(self) -> None:
        self._go_to(0, self.initial_key, self.layout.initial_row.tolist())

    def _go_to(self, step: int, key_1W: KeyArray, row: list[int] | None = None) -> None:
        """Make a state the current one: its step, its key, and its row, from which observations and tuples are made."""
        self._step_count, self._key = step, key_1W
        self._row = self.codec.unpack(key_1W)[0].tolist() if row is None else row

    def get_state(self) -> MapState:
        state: MapState = self.codec.state_of(self._step_count, self._row)
        return state

    def set_state(self, state: MapState) -> None:
        steps, key_1W = self.codec.encode([state])
        self._go_to(int(steps[0]), key_1W)

    def reset(self, *, seed: int | None = None, options: Json | None = None) -> tuple[npt.NDArray[np.int64], Json]:
        """Return to the initial state, or to ``options["state"]``. A ``seed`` makes the following steps repeatable.

        Other options are ignored, as wrappers and PettingZoo's own test expect.
        """
        super().reset(seed=seed)
        self._to_start()
        if options and "state" in options:
            self.set_state(options["state"])
        return self._observation(), self._info()

    def step(self, actions: int | Sequence[int]) -> tuple[npt.NDArray[np.int64], float, bool, bool, Json]:
        """Draw the outcome of one action of each agent: ``(observation, 0.0, terminated, False, info)``.

        A world with one agent also accepts a bare action id. There is no reward, since values depend on goals.
        """
        profile_1N = self._profile(actions)
        if self.is_terminal():
            raise RuntimeError(f"the world ended after {self.max_steps} steps; call reset() to start again")
        _, key_KW, prob_K = self._expand_present(profile_1N)
        drawn = self.draw(prob_K)
        self._go_to(self._step_count + 1, key_KW[drawn : drawn + 1].copy())
        return self._observation(), 0.0, self.is_terminal(), False, self._info()

    def _observation_space(self) -> spaces.Box:
        high = np.array([self.max_steps, *((1 << field.width) - 1 for field in self.layout.fields)], dtype=np.int64)
        return spaces.Box(low=np.zeros_like(high), high=high, dtype=np.int64)

    def _observation(self) -> npt.NDArray[np.int64]:
        """The step, then the slots of the state's row that can change in this world (see ``layout``)."""
        row = self._row
        return np.array([self._step_count, *[row[slot] for slot in self.layout.changing_slots]], dtype=np.int64)

    def _info(self) -> Json:
        return {"state": self.get_state()}

    def _expand_present(self, profile_1N: IndexArray) -> Expansion:
        """Successors of the current state under a checked profile."""
        return self.expand(self._key, profile_1N)

    # --- looking at it ------------------------------------------------------------------------------------------------

    def render(self, state: MapState | None = None, *, tile: int = 32) -> Any:  # an array, or a text
        """A state (by default the current one) as RGB array (height * tile, width * tile, 3), or as text in mode "ansi"."""
        return self.to_text(state) if self.render_mode == "ansi" else self.picture(self._shown_state(state), index(tile))

    def show(self, state: MapState | None = None) -> object:
        """A state (by default the current one) for a notebook: a picture with the agents' numbers, and the state in words.

        ``str(world.show(state))`` is :meth:`describe`.
        """
        view: object = provider_of("MapWorld.show")(self, self._shown_state(state))
        return view

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Json:
        """Also a plain picture, for tools that show no HTML."""
        bundle: Json = provider_of("MapWorld.bundle")(self)
        return bundle

    def picture(self, state: MapState, tile: int) -> npt.NDArray[np.uint8]:
        """A state of this world as RGB array."""
        from empo_bi.world.render import assembled  # only when somebody looks

        return assembled(self.looks(state), self.width, self.height, tile)

    @abstractmethod
    def looks(self, state: MapState, places: Iterable[Place] | None = None) -> dict[Place, Cell]:
        """What each cell (x, y), or each of some, shows, for ``render.paint``: a stack of layers, from the ground up."""

    def places_that_differ(self, state: MapState, other: MapState) -> Sequence[Place]:
        """Cells, row by row, that may look different in two states; all of them where a kind of world knows no better."""
        return every_place(self.width, self.height)

    def to_text(self, state: MapState | None = None) -> str:
        """The map of a state (by default the current one) as in world files; below it, behind #, what a map does not show.

        States that differ in anything but the step have different texts. ``load_world`` reads them as maps again, ignoring
        what stands below; :meth:`map_text` leaves it out.
        """
        return "\n".join([self.map_text(state), *(f"# {note}" for note in self.notes(state))])

    @abstractmethod
    def map_text(self, state: MapState | None = None) -> str:
        """The rows of the map of a state (by default the current one), as in world files, with what each cell shows."""

    @abstractmethod
    def notes(self, state: MapState | None = None) -> list[str]:
        """What :meth:`map_text` does not show of a state."""

    @abstractmethod
    def describe(self, state: MapState | None = None) -> str:
        """A state in words, all of it but the step: states that differ in anything else have different words."""

    def _shown_state(self, state: MapState | None) -> MapState:
        if state is None:
            return self.get_state()
        self.encode([state])  # refuses states of another world
        return state
