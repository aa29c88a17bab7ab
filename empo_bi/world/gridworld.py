"""GridWorld: the object that users hold. For users, states are nested tuples; for the engine, packed keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum
from typing import Any

import numpy as np

from empo_bi.types import Array, FloatArray, IndexArray, Json, KeyArray
from empo_bi.world import codes, text
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.codes import DIRECTION_VECTORS, Action, Kind
from empo_bi.world.encoding import GridState, StateCodec
from empo_bi.world.expand import expand
from empo_bi.world.key_layout import Expansion
from empo_bi.world.layout import AGENT_SLOTS, CELL, DIRECTION, StateLayout
from empo_bi.world.map_world import MapWorld
from empo_bi.world.shapes import Cell, Place
from empo_bi.world.spec import WorldSpec
from empo_bi.world.tables import build_tables

TURNS = {Action.FORWARD: 0, Action.RIGHT: 1, Action.LEFT: 3}  # quarter turns to the right


class GridWorld(MapWorld):
    """A gridworld with exact joint dynamics.

    For users: ``initial_state``, ``transition_probabilities``, ``step``, ``render``, ``to_text``. For the engine:
    ``encode``, ``decode``, ``expand`` and ``attainment``, which work on whole blocks of packed states.

    As a gymnasium environment it takes one action *per agent*, while ``action_space`` is that of a single agent, as the
    planners expect. Tools that sample from ``action_space`` therefore need a world with one agent; the PettingZoo wrapper
    works for all worlds.

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

    world_spec: WorldSpec
    layout: StateLayout
    codec: StateCodec
    kind = "GridWorld"
    n_directions = 4
    state_parts = "things"
    own_attributes = frozenset({"tables", "translated_from"})

    def __init__(self, spec: WorldSpec, *, render_mode: str | None = None) -> None:
        layout = StateLayout(spec)
        self.tables = build_tables(layout)
        self.translated_from: Any = None
        super().__init__(spec, layout, StateCodec(layout, self.tables), n_actions=len(spec.actions), render_mode=render_mode)

    def __getstate__(self) -> dict[str, object]:
        return super().__getstate__() | {"translated_from": None}

    @property
    def actions(self) -> type[IntEnum]:
        """The action set, named as in EMPO: ``world.actions.forward`` is the number of an action."""
        members = {name: i for i, name in enumerate(self.action_names)}
        return IntEnum(self.world_spec.action_set, members)  # type: ignore[return-value]

    @property
    def action_names(self) -> list[str]:
        return [action.name.lower() for action in self.world_spec.actions]

    @property
    def mapping(self) -> Json:
        return text.to_mapping(self.world_spec)

    @property
    def rules(self) -> tuple[Json, list[Array]]:
        """Map and rules, as compiled."""
        fields = [(f.slot, f.word, f.shift, f.width) for f in self.layout.fields]
        about = {"actions": self.action_names, "fields": fields, "words": self.tables.n_words}
        return about, [self.tables.world, self.tables.chances, self.initial_key]

    @property
    def settings(self) -> Json:
        names = ("stumble_probability", "solidify_probability", "enter_bush_success_prob")
        return {name: getattr(self.world_spec, name) for name in names}

    def traits(self, agent: int) -> Json:
        one = self.world_spec.agents[agent]
        return {
            "facing": codes.DIRECTION_NAMES[one.direction],
            "can_push_rocks": one.can_push_rocks,
            "can_enter_magic_walls": one.can_enter_magic_walls,
        }

    def with_horizon(self, steps: int) -> GridWorld:
        return GridWorld(replace(self.world_spec, max_steps=steps))

    # --- the map ------------------------------------------------------------------------------------------------------

    def cell_slot(self, agent: int) -> int:
        return agent * AGENT_SLOTS + int(CELL)

    def direction_slot(self, agent: int) -> int:
        return agent * AGENT_SLOTS + int(DIRECTION)

    @property
    def headings(self) -> FloatArray:
        """(4, A, 2); directions are 0 east, 1 south, 2 west, 3 north. Turning points the way the agent then faces."""
        heading_DA2 = np.zeros((4, len(self.world_spec.actions), 2))
        for a, action in enumerate(self.world_spec.actions):
            for d in range(4) if action in TURNS else ():
                heading_DA2[d, a] = DIRECTION_VECTORS[(d + TURNS[action]) % 4]
        return heading_DA2

    def walk(self, agent: int) -> IndexArray:
        """(P, A) on the bare map: what can be moved, opened or walked through at all does not block the way.

        Walls, buttons and switches do, lava (nobody walks on from there), and magic walls for agents who may not enter them.
        """
        spec, n_actions = self.world_spec, len(self.world_spec.actions)
        blocking = set() if spec.agents[agent].can_enter_magic_walls else {Kind.MAGIC_WALL}
        is_free = np.array(
            [
                [
                    spec.can_be_occupied(x, y) and spec.cells[y][x].kind not in {Kind.LAVA, *blocking}
                    for x in range(spec.width)
                ]
                for y in range(spec.height)
            ]
        )
        free_YX = np.pad(is_free, 1)  # outside the grid are walls
        y_P, x_P, d_P = (axis.ravel() for axis in np.indices((spec.height, spec.width, 4)))
        dx_P, dy_P = np.array(DIRECTION_VECTORS)[d_P].T
        moves_P = free_YX[y_P + 1 + dy_P, x_P + 1 + dx_P]
        next_PA = np.repeat(np.arange(len(d_P))[:, np.newaxis], n_actions, axis=1)
        for a, action in enumerate(spec.actions):
            if action in TURNS:
                turned_P = (d_P + TURNS[action]) % 4
                goes_P = moves_P & (action == Action.FORWARD)
                x2_P, y2_P = x_P + dx_P * goes_P, y_P + dy_P * goes_P
                next_PA[:, a] = (y2_P * spec.width + x2_P) * 4 + turned_P
        return next_PA

    def fields(self, key_SW: KeyArray) -> AgentFields:
        from empo_bi.world.fields import StateFields  # which knows this class

        return StateFields(self, key_SW)

    # --- blocks of packed states --------------------------------------------------------------------------------------

    def expand(self, key_SW: KeyArray, profile_JN: IndexArray | None = None) -> Expansion:
        """Successors of a block of packed states under all profiles, or under the given ones.

        The rules do not depend on the step, so the caller has to leave out terminal states.
        """
        return expand(self.tables, key_SW, self._profiles if profile_JN is None else self._checked_profiles(profile_JN))

    def _expand_present(self, profile_1N: IndexArray) -> Expansion:
        """Successors under a checked profile; by the subclass's own ``expand`` if it has one."""
        if getattr(self.expand, "__func__", None) is GridWorld.expand:
            return expand(self.tables, self._key, profile_1N)
        return self.expand(self._key, profile_1N)

    # --- looking at it ------------------------------------------------------------------------------------------------

    def looks(self, state: GridState, places: Iterable[Place] | None = None) -> dict[Place, Cell]:
        from empo_bi.world.render import cells_of  # only when somebody looks

        return cells_of(self.world_spec, state, places)

    def places_that_differ(self, state: GridState, other: GridState) -> list[Place]:
        from empo_bi.world.render import places_that_differ

        return places_that_differ(state, other)

    def map_text(self, state: GridState | None = None) -> str:
        return text.draw(self.world_spec, self._shown_state(state))

    def notes(self, state: GridState | None = None) -> list[str]:
        return text.notes(self.world_spec, self._shown_state(state))

    def describe(self, state: GridState | None = None) -> str:
        """A state in words: where agents are and look, what they carry, things, doors and switches; all but the step."""
        return text.describe_state(self.world_spec, self._shown_state(state))
