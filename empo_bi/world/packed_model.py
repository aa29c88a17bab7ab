"""Compiled worlds as :class:`~empo_bi.world.as_model.Model`: packed ones in general, array worlds, and worlds on a map."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from empo_bi.types import Json, KeyArray
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.array_world import ArrayWorld
from empo_bi.world.goals import WorldGoalGenerator
from empo_bi.world.map_world import ATTRIBUTES, MapWorld
from empo_bi.world.model import State
from empo_bi.world.packed import PackedWorld
from empo_bi.world.python_model import NOT_PART_OF_A_WORLD, Picture, PythonModel


class PackedModel(PythonModel):
    """A world that expands whole blocks of packed states."""

    world: PackedWorld
    is_time_homogeneous = True

    @property
    def packed(self) -> PackedWorld:
        return self.world

    def states_in_own_order(self, *, ask: bool) -> Sequence[State] | None:
        return None

    @property
    def title(self) -> str:
        return str(self.world)


class ArrayModel(PackedModel):
    """A model given as sparse arrays; a key is the number of a state."""

    world: ArrayWorld
    state_format = "numbered"


class MapModel(PackedModel):
    """A world on a map: its compiled rules tell it from others, and it has cells, agents on them, and pictures."""

    world: MapWorld
    may_remember = False  # what is left on it is not part of its rules

    # --- identity -----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return str(self.world.world_spec.name)

    @property
    def content(self) -> bytes:
        about, arrays = self.world.rules
        named = json.dumps({"rules": self.world.rules_version, **about}).encode()
        return b"".join([named, *(array.tobytes() for array in arrays)])

    @property
    def hashed(self) -> list[Any]:
        """Map and rules, horizon and who is who, and what somebody has put on it."""
        world = self.world
        roles = [world.human_agent_indices, world.robot_agent_indices]
        return [world.kind.lower(), type(world), *world.rules, world.max_steps, roles, self.added_attributes]

    @property
    def added_attributes(self) -> Json:
        known = ATTRIBUTES | self.world.own_attributes | NOT_PART_OF_A_WORLD
        return {name: value for name, value in vars(self.world).items() if name not in known}

    @property
    def mapping(self) -> Json:
        return self.world.mapping

    @property
    def key_meaning(self) -> object:
        return self.world.layout.meaning

    # --- the horizon --------------------------------------------------------------------------------------------------

    @property
    def free_horizon(self) -> int:
        return self.world.max_steps

    def with_horizon(self, steps: int) -> MapWorld:
        """With the goals that somebody gave it after it was loaded."""
        world = self.world
        if steps == world.max_steps:
            return world
        other = world.with_horizon(steps)
        if not isinstance(world.possible_goal_generator, WorldGoalGenerator):
            other.possible_goal_generator = world.possible_goal_generator
        return other

    # --- looking at states --------------------------------------------------------------------------------------------

    @property
    def grid(self) -> MapWorld:
        return self.world

    @property
    def fields(self) -> Callable[[KeyArray], AgentFields]:
        return self.world.fields

    @property
    def picture(self) -> Callable[[State, int], Picture]:
        return self.world.picture
