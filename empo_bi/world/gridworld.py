"""GridWorld: the object that users hold. For users, states are nested tuples; for the engine, packed keys."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from operator import index
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from empo_bi.errors import InvalidActionError, MissingAgentError
from empo_bi.runtime.arguments import check_flags
from empo_bi.runtime.hooks import provider_of
from empo_bi.runtime.wording import counted
from empo_bi.types import Json, KeyArray
from empo_bi.world import codes, text
from empo_bi.world.encoding import GridState, StateCodec
from empo_bi.world.expand import Expansion, expand
from empo_bi.world.goals import PossibleGoal, WorldGoalGenerator, WorldGoalSampler, attained
from empo_bi.world.key_rules import problem_of_keys
from empo_bi.world.layout import StateLayout
from empo_bi.world.lint import cells_without_goal
from empo_bi.world.model import Transitions
from empo_bi.world.packed import PackedWorld
from empo_bi.world.source import read_source
from empo_bi.world.spec import WorldSpec, read_spec
from empo_bi.world.tables import build_tables


def load_world(
    source: str | os.PathLike[str] | Mapping[str, Any],
    *,
    strict: bool = False,
    require_human: bool = False,
    require_robot: bool = False,
    render_mode: str | None = None,
    **overrides: Any,
) -> GridWorld:
    """Load a gridworld.

    Parameters
    ----------
    source : path, str or mapping
        A world file (YAML if it ends in .yaml or .yml, else JSON), the name of a shipped world such as
        ``"asymmetric_freeing"`` or ``"jobst_challenges/asymmetric_freeing"``, a YAML or JSON text, or a mapping with the
        keys of a world file.
    strict : bool
        Turn warnings (unknown keys, useless goals, cells without a goal) into errors.
    require_human, require_robot : bool
        Refuse a world without a human (yellow agent) or robot (grey agent).
    render_mode : None, "rgb_array" or "ansi"
        What ``render()`` returns: a picture (also the default) or a text.
    **overrides
        Values that replace the file's: ``max_steps=15``, ``actions="small"`` (or ``action_class="SmallActions"``),
        ``orientations``, ``can_push_rocks``, ``can_enter_magic_walls``, ``stumble_probability``,
        ``solidify_probability``, ``enter_bush_success_prob``, ``possible_goals`` (or ``goals``; ``"all"`` for every cell
        where a human can walk), ``humans=[0]``, ``robots=[1]``, ``map``, ``metadata``.

    Examples
    --------
    >>> world = load_world("jobst_challenges/asymmetric_freeing", max_steps=3)
    >>> len(world.agents), world.human_agent_indices, world.robot_agent_indices
    (3, [0, 1], [2])
    """
    check_flags(strict=strict, require_human=require_human, require_robot=require_robot)
    spec = read_spec(read_source(source), overrides, strict=strict)
    world = GridWorld(spec, render_mode=render_mode)
    world.require_agents(human=require_human, robot=require_robot)
    return world


class GridWorld(PackedWorld):
    """A gridworld with exact joint dynamics.

    As a gymnasium environment it takes one action *per agent*, while ``action_space`` is that of a single agent, as the
    planners expect. Tools that sample from ``action_space`` therefore need a world with one agent; the PettingZoo wrapper
    works for all worlds.

    For users: ``initial_state``, ``transition_probabilities``, ``step``, ``render``, ``to_text``. For the engine:
    ``encode``, ``decode``, ``expand`` and ``attainment``, which work on whole blocks of packed states.

    Attributes
    ----------
    world_spec : WorldSpec
        The checked content of the world file.
    agents : tuple of AgentSpec
    human_agent_indices, robot_agent_indices : list of int
        Yellow and grey agents, unless reassigned.
    possible_goal_generator, possible_goal_sampler
        The file's goals, None if it has none.
    max_steps : int
        States with this step count are terminal.
    translated_from : object or None
        The environment that :func:`~empo_bi.from_multigrid` made this of.
    """

    metadata = {"render_modes": ["rgb_array", "ansi"], "render_fps": 4}  # noqa: RUF012 (gymnasium's own convention)
    action_space: spaces.Discrete

    def __init__(self, spec: WorldSpec, *, render_mode: str | None = None) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode={render_mode!r}; give one of {self.metadata['render_modes']}")
        self.world_spec = spec
        self.render_mode = render_mode
        self.agents = spec.agents
        self.max_steps = spec.max_steps
        self.human_agent_indices, self.robot_agent_indices = list(spec.humans), list(spec.robots)
        self.action_space = spaces.Discrete(len(spec.actions))
        self.layout = StateLayout(spec)
        self.tables = build_tables(self.layout)
        self.codec = StateCodec(self.layout, self.tables)
        self._dag_cache: tuple[Any, ...] | None = None
        self.translated_from: Any = None
        self._make_goals()
        self.observation_space = self._observation_space()
        self._to_start()

    def _make_goals(self) -> None:
        self.possible_goal_generator = WorldGoalGenerator(self) if self.world_spec.goals else None
        self.possible_goal_sampler = WorldGoalSampler(self.possible_goal_generator) if self.world_spec.goals else None

    def __getstate__(self) -> dict[str, object]:
        # Without what can be made again.
        return {name: value for name, value in self.__dict__.items() if name != "_profiles"} | {
            "_dag_cache": None,
            "translated_from": None,
        }

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
            f"<GridWorld {spec.name!r}: {spec.width} x {spec.height}, {counted(len(self.agents), 'agent')} "
            f"({counted(len(self.human_agent_indices), 'human')}, {counted(len(self.robot_agent_indices), 'robot')}), "
            f"{self.action_space.n} actions, {counted(len(spec.goals), 'goal')}, {counted(self.max_steps, 'step')}>"
        )

    @property
    def width(self) -> int:
        return self.world_spec.width

    @property
    def height(self) -> int:
        return self.world_spec.height

    @property
    def actions(self) -> type[IntEnum]:
        """The action set, named as in EMPO: ``world.actions.forward`` is the number of an action."""
        members = {name: i for i, name in enumerate(self.action_names)}
        return IntEnum(self.world_spec.action_set, members)  # type: ignore[return-value]

    @property
    def action_names(self) -> list[str]:
        return [action.name.lower() for action in self.world_spec.actions]

    def require_agents(self, *, human: bool = False, robot: bool = False) -> None:
        """Raise :class:`MissingAgentError` unless the world has the agents that are needed."""
        needed = [(human, "human", codes.HUMAN_COLOUR, "Ay", self.human_agent_indices)]
        needed += [(robot, "robot", codes.ROBOT_COLOUR, "Ae", self.robot_agent_indices)]
        for is_needed, role, colour, code, found in needed:
            if is_needed and not found:
                colours = ", ".join(agent.colour for agent in self.agents) or "none at all"
                raise MissingAgentError(
                    f"{self.world_spec.origin}: map: a {role} is needed ({colour}, code '{code}'), but the agents are: "
                    f"{colours}. Put '{code}' on the map, or assign world.{role}_agent_indices"
                )

    def cells_without_goal(self, rectangles: Iterable[tuple[int, int, int, int]]) -> list[tuple[int, int]]:
        """Cells (x, y) where a human can stand but that lie in none of the rectangles (section 8.4)."""
        return cells_without_goal(self.world_spec.cells, list(rectangles))

    # --- states and transitions ---------------------------------------------------------------------------------------

    def initial_state(self) -> GridState:
        return self.codec.state_of(0, self.layout.initial_row.tolist())

    def is_terminal(self, state: GridState | None = None) -> bool:
        step = self._step_count if state is None else state[0]
        return bool(step >= self.max_steps)

    def transition_probabilities(self, state: GridState, actions: Sequence[int]) -> Transitions | None:
        """``[(probability, successor), ...]``, equal successors merged; None in a terminal state.

        Raises
        ------
        InvalidStateError, InvalidActionError
            If the state cannot occur in this world, or actions are not one valid id per agent.
        """
        profile_1N = self._profile(actions)
        steps, key_1W = self.codec.encode([state])
        if steps[0] >= self.max_steps:
            return None
        expansion = self.expand(key_1W, profile_1N)
        successors = self.codec.decode(steps[0] + 1, expansion.key_KW)
        return list(zip(expansion.prob_K.tolist(), successors, strict=True))

    def _profile(self, actions: int | Sequence[int]) -> npt.NDArray[np.int64]:
        """One profile as a row, checked."""
        n = len(self.agents)
        is_list = isinstance(actions, list | tuple)
        given = cast(Sequence[int], actions if is_list or np.ndim(actions) else [actions])
        try:
            ids = [index(action) for action in given]
        except TypeError:
            raise InvalidActionError(
                f"actions {actions!r}; give a whole number for each agent. {self._valid_actions}"
            ) from None
        if len(ids) != n:
            raise InvalidActionError(
                f"{counted(len(ids), 'action')} for {counted(n, 'agent')}: {actions!r}; give one action id for each agent"
            )
        n_actions = self.action_space.n
        for agent, action in enumerate(ids):
            if not 0 <= action < n_actions:
                raise self._no_such_action(agent, action)
        return np.array([ids], dtype=np.int64)

    def _checked_profiles(self, profile_JN: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        n, profiles = len(self.agents), np.asarray(profile_JN)
        if profiles.ndim != 2 or profiles.shape[1] != n or not np.issubdtype(profiles.dtype, np.integer):
            raise InvalidActionError(
                f"profiles of shape {profiles.shape}, type {profiles.dtype}; expected whole numbers of shape (profiles, {n})"
            )
        bad = np.argwhere((profiles < 0) | (profiles >= self.action_space.n))
        if len(bad):
            row, agent = bad[0]
            raise self._no_such_action(agent, profiles[row, agent])
        return profiles

    def _no_such_action(self, agent: int, action: int) -> InvalidActionError:
        return InvalidActionError(f"invalid action {action} of agent {agent}. {self._valid_actions}")

    @property
    def _valid_actions(self) -> str:
        return "This world's actions are " + ", ".join(f"{i} {name}" for i, name in enumerate(self.action_names))

    def get_dag(self, return_probabilities: bool = False, quiet: bool = False) -> tuple[Any, ...]:
        """All reachable states as Python objects: ``(states, state_to_idx, successors[, transitions])``.

        Convenient for small worlds; ``empo_bi.enumerate_dag`` returns the same as arrays, for millions of states. States are
        in topological order, with ties broken by size. ``transitions[i]`` has one ``(profile, probabilities, successor
        indices)`` per profile, and is empty for a terminal state. The result is cached until :meth:`clear_dag_cache`; the
        world is reset.
        """
        if self._dag_cache is None:
            self.reset()
            self._dag_cache = provider_of("GridWorld.get_dag")(self, progress=not quiet)
        return self._dag_cache if return_probabilities else self._dag_cache[:3]

    def clear_dag_cache(self) -> None:
        """Drop the cached result of :meth:`get_dag`."""
        self._dag_cache = None

    # --- blocks of packed states --------------------------------------------------------------------------------------

    @property
    def n_words(self) -> int:
        return self.layout.n_words

    @property
    def initial_key(self) -> KeyArray:
        """Key of the initial state, (1, W)."""
        return self.layout.initial_key.copy()

    def encode(self, states: Iterable[GridState]) -> tuple[npt.NDArray[np.int64], KeyArray]:
        """Steps (S,) and keys (S, W) of state tuples."""
        return self.codec.encode(states)

    def decode(self, steps: npt.ArrayLike, key_SW: KeyArray) -> list[GridState]:
        """State tuples of keys; ``steps`` is one number for all, or one for each."""
        return self.codec.decode(steps, key_SW)

    def problem_of_keys(self, key_SW: KeyArray) -> str | None:
        """Why some keys are not states of this world; None if all are. For keys from untrusted files."""
        return problem_of_keys(self.layout, key_SW)

    def expand(self, key_SW: KeyArray, profile_JN: npt.NDArray[np.int64] | None = None) -> Expansion:
        """Successors of a block of packed states under all profiles, or under the given ones.

        The rules do not depend on the step, so the caller has to leave out terminal states.
        """
        return expand(self.tables, key_SW, self._profiles if profile_JN is None else self._checked_profiles(profile_JN))

    def attainment(self, steps: npt.ArrayLike, key_SW: KeyArray, goals: Sequence[PossibleGoal]) -> npt.NDArray[np.bool_]:
        """Whether each goal is achieved in each state of a block, (S, G)."""
        goals = list(goals)
        for goal in goals:
            if not hasattr(goal, "is_achieved"):
                raise TypeError(
                    f"{goal!r} is not a goal; give goals alone, without the weights that generators yield with them"
                )
        return attained(self.codec, steps, key_SW, goals)

    # --- gymnasium ----------------------------------------------------------------------------------------------------

    def _to_start(self) -> None:
        self._go_to(0, self.initial_key, self.layout.initial_row.tolist())

    def _go_to(self, step: int, key_1W: KeyArray, row: list[int] | None = None) -> None:
        """Make a state the current one: its step, its key, and its row, from which observations and tuples are made."""
        self._step_count, self._key = step, key_1W
        self._row = self.codec.unpack(key_1W)[0].tolist() if row is None else row

    def get_state(self) -> GridState:
        return self.codec.state_of(self._step_count, self._row)

    def set_state(self, state: GridState) -> None:
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

    def _expand_present(self, profile_1N: npt.NDArray[np.int64]) -> Expansion:
        """Successors under a checked profile; by the subclass's own ``expand`` if it has one."""
        if getattr(self.expand, "__func__", None) is GridWorld.expand:
            return expand(self.tables, self._key, profile_1N)
        return self.expand(self._key, profile_1N)

    def _observation_space(self) -> spaces.Box:
        high = np.array([self.max_steps, *((1 << field.width) - 1 for field in self.layout.fields)], dtype=np.int64)
        return spaces.Box(low=np.zeros_like(high), high=high, dtype=np.int64)

    def _observation(self) -> npt.NDArray[np.int64]:
        """The step, then the slots of the state's row that can change in this world (see ``layout``)."""
        row = self._row
        return np.array([self._step_count, *[row[slot] for slot in self.layout.changing_slots]], dtype=np.int64)

    def _info(self) -> Json:
        return {"state": self.get_state()}

    # --- looking at it ------------------------------------------------------------------------------------------------

    def render(self, state: GridState | None = None, *, tile: int = 32) -> Any:  # an array, or a text
        """A state (by default the current one) as RGB array (height * tile, width * tile, 3), or as text in mode "ansi"."""
        if self.render_mode == "ansi":
            return self.to_text(state)
        from empo_bi.world.render import draw  # rarely needed

        return draw(self.world_spec, self._shown_state(state), tile=index(tile))

    def to_text(self, state: GridState | None = None) -> str:
        """The map of a state (by default the current one) in the two-letter codes of world files.

        It does not show directions, carried items and flags; :meth:`describe` does.
        """
        return text.draw(self.world_spec, self._shown_state(state))

    def describe(self, state: GridState | None = None) -> str:
        """One line for each agent: its cell and direction, what it carries, and whether it is terminated or paused."""
        return text.describe_agents(self.world_spec, self._shown_state(state))

    def _shown_state(self, state: GridState | None) -> GridState:
        if state is None:
            return self.get_state()
        self.encode([state])  # refuses states of another world
        return state
