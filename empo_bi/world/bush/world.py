"""BushWorld: the object that users hold, and the fields of its packed states."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import index

import numpy as np

from empo_bi.types import Array, FloatArray, IndexArray, Json, KeyArray
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.bush.packing import BushCodec, BushLayout
from empo_bi.world.bush.rules import ACTIONS, STEPS_XY, build_tables, expand
from empo_bi.world.bush.spec import BushSpec, to_mapping
from empo_bi.world.key_layout import Expansion
from empo_bi.world.map_world import MapWorld
from empo_bi.world.row_codec import MapState
from empo_bi.world.shapes import Cell, Place


class BushWorld(MapWorld):
    """A world of bushes, made by :func:`~empo_bi.load_world`. A state is ``(step, positions, densities)``.

    Robots come first, then humans. ``rules`` has what happens in a step.

    >>> from empo_bi import load_world
    >>> world = load_world("map: Ro 02 Hu\\nB: 4\\nmax_steps: 3")
    >>> world.initial_state()
    (0, ((0, 0), (2, 0)), (0, 2, 0))
    >>> world.transition_probabilities(world.initial_state(), [4, 1])  # the robot passes, the human goes west
    [(0.5, (1, ((0, 0), (1, 0)), (0, 2, 0))), (0.5, (1, ((0, 0), (2, 0)), (0, 2, 0)))]
    """

    world_spec: BushSpec
    layout: BushLayout
    codec: BushCodec
    kind = "BushWorld"
    state_parts = "density"
    role_codes = {"human": "Hu", "robot": "Ro"}  # noqa: RUF012
    own_attributes = frozenset({"tables"})

    def __init__(self, spec: BushSpec, *, render_mode: str | None = None) -> None:
        layout = BushLayout(spec)
        self.tables = build_tables(layout)
        super().__init__(spec, layout, BushCodec(layout), n_actions=len(ACTIONS), render_mode=render_mode)

    @property
    def action_names(self) -> list[str]:
        return list(ACTIONS)

    @property
    def mapping(self) -> Json:
        return to_mapping(self.world_spec)

    @property
    def rules(self) -> tuple[Json, list[Array]]:
        about = {"kind": self.kind, "robots": self.tables.n_robots, "players": len(self.agents), "words": self.n_words}
        return about, [self.tables.ahead_CA, self.tables.slot_R4, self.tables.chance_D, self.initial_key]

    @property
    def settings(self) -> Json:
        return {"B": self.world_spec.B, "fill_density": self.world_spec.fill_density}

    def with_horizon(self, steps: int) -> BushWorld:
        return BushWorld(replace(self.world_spec, max_steps=steps))

    # --- the map ------------------------------------------------------------------------------------------------------

    def cell_slot(self, agent: int) -> int:
        return agent

    @property
    def headings(self) -> FloatArray:
        return np.array([STEPS_XY], dtype=np.float64)

    def walk(self, agent: int) -> IndexArray:
        """(cells, actions) on a map without bushes."""
        ahead_CA = self.tables.ahead_CA
        return np.where(ahead_CA < 0, np.arange(len(ahead_CA))[:, np.newaxis], ahead_CA)

    def fields(self, key_SW: KeyArray) -> BushFields:
        return BushFields(self, key_SW)

    # --- transitions --------------------------------------------------------------------------------------------------

    def expand(self, key_SW: KeyArray, profile_JN: IndexArray | None = None) -> Expansion:
        profiles = self._profiles if profile_JN is None else self._checked_profiles(profile_JN)
        return expand(self.tables, self.n_words, key_SW, profiles)

    # --- looking at it ------------------------------------------------------------------------------------------------

    def looks(self, state: MapState, places: Iterable[Place] | None = None) -> dict[Place, Cell]:
        from empo_bi.world.bush.looks import cells_of  # only when somebody looks

        return cells_of(self.world_spec, state, places)

    def places_that_differ(self, state: MapState, other: MapState) -> list[Place]:
        from empo_bi.world.bush.looks import places_that_differ

        return places_that_differ(self.world_spec, state, other)

    def map_text(self, state: MapState | None = None) -> str:
        from empo_bi.world.bush.looks import draw

        return draw(self.world_spec, self._shown_state(state))

    def notes(self, state: MapState | None = None) -> list[str]:
        from empo_bi.world.bush.looks import notes

        return notes(self.world_spec, self._shown_state(state))

    def describe(self, state: MapState | None = None) -> str:
        """One line for each player: its cell, and the density there; and one for bushes that are not as at the start."""
        from empo_bi.world.bush.looks import describe_state

        return describe_state(self.world_spec, self._shown_state(state))


class BushFields(AgentFields):
    """Where players are, and how dense the bushes are, in S packed states."""

    world: BushWorld

    def density(self, cell: Sequence[int]) -> IndexArray:
        """(S,), the density of the cell (x, y)."""
        x, y = map(index, cell)
        if not (0 <= x < self.world.width and 0 <= y < self.world.height):
            raise ValueError(
                f"cell {(x, y)} is off the grid; give x from 0 to {self.world.width - 1}, y to {self.world.height - 1}"
            )
        return self._slot(len(self.world.agents) + y * self.world.width + x)
