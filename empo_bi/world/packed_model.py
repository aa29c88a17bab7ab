"""Compiled worlds as :class:`~empo_bi.world.as_model.Model`: packed ones in general, array worlds, and gridworlds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from empo_bi.types import Array, Json, KeyArray
from empo_bi.world.array_world import ArrayWorld
from empo_bi.world.fields import StateFields
from empo_bi.world.goals import WorldGoalGenerator
from empo_bi.world.gridworld import GridWorld
from empo_bi.world.model import State
from empo_bi.world.packed import PackedWorld
from empo_bi.world.python_model import NOT_PART_OF_A_WORLD, Picture, PythonModel
from empo_bi.world.text import to_mapping

RULES_VERSION = 1  # to be raised when the gridworld rules, the packing of keys or the numbering of bodies change

_OF_A_GRIDWORLD = NOT_PART_OF_A_WORLD | {
    "world_spec", "render_mode", "agents", "max_steps", "human_agent_indices", "robot_agent_indices", "action_space",
    "observation_space", "translated_from", "layout", "tables", "codec", "_step_count", "_key", "_row",
}  # fmt: skip


class PackedModel(PythonModel):
    """A world that expands whole blocks of packed states."""

    world: PackedWorld
    is_time_homogeneous = True

    @property
    def packed(self) -> PackedWorld:
        return self.world

    def states_in_own_order(self) -> Sequence[State] | None:
        return None

    @property
    def title(self) -> str:
        return str(self.world)


class ArrayModel(PackedModel):
    """A model given as sparse arrays; a key is the number of a state."""

    world: ArrayWorld
    state_format = "numbered"


class GridModel(PackedModel):
    """A gridworld: its compiled tables tell it from others, and it has a map."""

    world: GridWorld
    may_remember = False  # what is left on it is not part of its tables

    # --- identity -----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return str(self.world.world_spec.name)

    @property
    def content(self) -> bytes:
        about, arrays = self._rules
        named = json.dumps({"rules": RULES_VERSION, **about}).encode()
        return b"".join([named, *(array.tobytes() for array in arrays)])

    @property
    def _rules(self) -> tuple[Json, list[Array]]:
        """Map and rules, as compiled: names and numbers, and arrays."""
        world = self.world
        fields = [(f.slot, f.word, f.shift, f.width) for f in world.layout.fields]
        about = {"actions": world.action_names, "fields": fields, "words": world.tables.n_words}
        return about, [world.tables.world, world.tables.chances, world.initial_key]

    @property
    def hashed(self) -> list[Any]:
        """Map and rules, horizon and who is who, and what somebody has put on it."""
        world = self.world
        roles = [world.human_agent_indices, world.robot_agent_indices]
        return ["gridworld", type(world), *self._rules, world.max_steps, roles, self.added_attributes]

    @property
    def added_attributes(self) -> Json:
        return {name: value for name, value in vars(self.world).items() if name not in _OF_A_GRIDWORLD}

    @property
    def mapping(self) -> Json:
        return to_mapping(self.world.world_spec)

    # --- the horizon --------------------------------------------------------------------------------------------------

    @property
    def free_horizon(self) -> int:
        return self.world.max_steps

    def with_horizon(self, steps: int) -> GridWorld:
        """With the goals that somebody gave it after it was loaded."""
        world = self.world
        if steps == world.max_steps:
            return world
        other = GridWorld(replace(world.world_spec, max_steps=steps))
        if not isinstance(world.possible_goal_generator, WorldGoalGenerator):
            other.possible_goal_generator = world.possible_goal_generator
        return other

    # --- looking at states --------------------------------------------------------------------------------------------

    @property
    def grid(self) -> GridWorld:
        return self.world

    @property
    def fields(self) -> Callable[[KeyArray], StateFields]:
        return self._fields

    def _fields(self, key_SW: KeyArray) -> StateFields:
        return StateFields(self.world, key_SW)

    @property
    def picture(self) -> Callable[[State, int], Picture]:
        return self._drawn

    def _drawn(self, state: State, tile: int) -> Picture:
        from empo_bi.world.render import draw  # only when somebody looks

        return draw(self.world.world_spec, state, tile=tile)
