"""How a state becomes a row of integers, and a row becomes a few 64-bit words.

**Cells** are numbered: 0 is every wall and everything outside the grid; 1 to ``n_occupiable`` are the cells that agents and
things can be on, column by column (so that sorting numbers sorts by x, then y); the rest are cells that are never occupied,
such as buttons.

**A row** has six slots for each agent, one slot for each thing (block, rock, key, ball, box: the number of its cell, 0 while
it is carried or gone), and four slots for each object with flags. Things of one type (kind and colour) are interchangeable,
so their slots are sorted: equal states have equal rows.

**A key** packs the slots that can change; ``key_layout`` says how.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from empo_bi.types import BoolArray, IndexArray
from empo_bi.world import codes
from empo_bi.world.codes import Action, Door, Kind
from empo_bi.world.key_layout import KeyLayout
from empo_bi.world.spec import AgentSpec, WorldSpec

# Slot numbers are NumPy integers because numba compiles a function again for every plain literal it is called with.
# Slots of an agent. CARRIED is a type number + 1, FORCED an action id + 1, 0 means none.
CELL, DIRECTION, TERMINATED, PAUSED, CARRIED, FORCED = map(np.int64, range(6))
AGENT_SLOTS = 6
# Slots of an object with flags, by kind: door; magic wall; bush; button; pause switch; control button.
CONDITION = ACTIVE = TRAMPLED = ENABLED = np.int64(0)
IS_ON = np.int64(1)
# CONTROLLED is an agent's index + 1, RECORDED an action id + 1, 0 means none.
CONTROLLED, RECORDED, AWAITING = map(np.int64, (1, 2, 3))
OBJECT_SLOTS = 4

WALL_CELL: int = np.int64(0)  # type: ignore[assignment]


@dataclass(frozen=True)
class Thing:
    """A block, rock, key, ball or box. ``type`` numbers its (kind, colour)."""

    kind: Kind
    colour: str | None
    type: int
    cell: int


@dataclass(frozen=True)
class MapObject:
    """An object that never moves but has flags or can be operated: doors, magic walls, bushes, buttons, switches."""

    kind: Kind
    x: int
    y: int
    colour: str | None
    trait: int

    @property
    def is_in_state(self) -> bool:
        return self.kind in codes.MUTABLE_NAMES


class StateLayout(KeyLayout):
    """Cells, things, objects and bit fields of one world.

    Attributes
    ----------
    cell_number : (height, width) int64
    cell_xy : (n_cells, 2) int64, (-1, -1) for the wall cell
    n_occupiable : int
        Things and agents are only ever on cells 1 to ``n_occupiable``.
    item_types, types : int, list of (kind, colour)
        Types below ``item_types`` can be carried.
    things, objects : in row order; objects in reading order of the map
    """

    def __init__(self, spec: WorldSpec) -> None:
        self.spec = spec
        self.n_agents = len(spec.agents)
        self._number_cells()
        self._list_things()
        self._list_objects()
        super().__init__(self._build_initial_row(), self._slot_ranges())

    # --- rows ---------------------------------------------------------------------------------------------------------

    @property
    def first_thing(self) -> int:
        return self.n_agents * AGENT_SLOTS

    @property
    def first_object(self) -> int:
        return self.first_thing + len(self.things)

    @property
    def meaning(self) -> tuple[object, ...]:
        return (*super().meaning, self.cell_xy.tolist(), self.types, self.objects)

    # --- which rows are states ----------------------------------------------------------------------------------------

    def problem_of_rows(self, row_SR: IndexArray) -> str | None:
        """The rules rely on this, whether or not the state can ever be reached."""
        if self._share_a_cell(row_SR).any():
            return "two agents or things are on one cell"
        return "more is carried than is missing on the ground" if self._carry_too_much(row_SR).any() else None

    def _share_a_cell(self, row_SR: IndexArray) -> BoolArray:
        """0 stands for no cell."""
        agents, things = row_SR[:, CELL : self.first_thing : AGENT_SLOTS], row_SR[:, self.first_thing : self.first_object]
        cells = np.sort(np.concatenate([agents, things], axis=1), axis=1)
        shared: BoolArray = ((cells[:, 1:] == cells[:, :-1]) & (cells[:, 1:] > 0)).any(axis=1)
        return shared

    def _carry_too_much(self, row_SR: IndexArray) -> BoolArray:
        carried_SN = row_SR[:, CARRIED : self.first_thing : AGENT_SLOTS]
        too_much = np.zeros(len(row_SR), dtype=np.bool_)
        for number, (first, last) in enumerate(self.type_ranges[: self.item_types]):
            cells = row_SR[:, self.first_thing + first : self.first_thing + last]
            too_much |= (carried_SN == number + 1).sum(axis=1) > (cells == 0).sum(axis=1)
        return too_much

    # --- construction -------------------------------------------------------------------------------------------------

    def _number_cells(self) -> None:
        spec = self.spec
        column_by_column = [(x, y) for x in range(spec.width) for y in range(spec.height)]
        occupiable = [(x, y) for x, y in column_by_column if spec.can_be_occupied(x, y)]
        others = [
            (x, y) for x, y in column_by_column if not spec.can_be_occupied(x, y) and spec.cells[y][x].kind != Kind.WALL
        ]
        self.n_occupiable = len(occupiable)
        self.cell_xy: IndexArray = np.array([(-1, -1), *occupiable, *others], dtype=np.int64)
        self.cell_number: IndexArray = np.zeros((spec.height, spec.width), dtype=np.int64)
        self.cell_number[self.cell_xy[1:, 1], self.cell_xy[1:, 0]] = np.arange(1, len(self.cell_xy))

    def _list_things(self) -> None:
        found = [
            (cell.kind, cell.colour, int(self.cell_number[y, x]))
            for y, row in enumerate(self.spec.cells)
            for x, cell in enumerate(row)
            if cell.kind in codes.PUSHABLES or cell.kind in codes.ITEMS
        ]
        # Items first, so that the number of a carried type stays small.
        self.types = sorted({(kind, colour) for kind, colour, _ in found}, key=lambda t: (t[0] in codes.PUSHABLES, t))
        self.item_types = sum(kind in codes.ITEMS for kind, _ in self.types)
        self.things = sorted(
            (Thing(kind, colour, self.types.index((kind, colour)), cell) for kind, colour, cell in found),
            key=lambda thing: (thing.type, thing.cell),
        )
        # The consecutive things of each type, as (first, past the last).
        numbers = [thing.type for thing in self.things]
        self.type_ranges = [(numbers.index(t), numbers.index(t) + numbers.count(t)) for t in range(len(self.types))]

    def _list_objects(self) -> None:
        self.objects = [
            MapObject(cell.kind, x, y, cell.colour, cell.trait)
            for y, row in enumerate(self.spec.cells)
            for x, cell in enumerate(row)
            if cell.kind in codes.MUTABLE_NAMES or cell.kind == Kind.DISABLING_SWITCH
        ]

    def _build_initial_row(self) -> IndexArray:
        row = np.zeros(self.first_object + len(self.objects) * OBJECT_SLOTS, dtype=np.int64)
        agents = row[: self.first_thing].reshape(self.n_agents, AGENT_SLOTS)
        objects = row[self.first_object :].reshape(len(self.objects), OBJECT_SLOTS)
        for agent, slots in zip(self.spec.agents, agents, strict=True):
            slots[CELL], slots[DIRECTION] = self.cell_number[agent.y, agent.x], agent.direction
        row[self.first_thing : self.first_object] = [thing.cell for thing in self.things]
        for it, slots in zip(self.objects, objects, strict=True):
            if it.kind in codes.DOORS:
                slots[CONDITION] = it.trait
            elif it.kind == Kind.MAGIC_WALL:
                slots[ACTIVE] = 1
            elif it.kind in (Kind.KILL_BUTTON, Kind.PAUSE_SWITCH, Kind.CONTROL_BUTTON):
                slots[ENABLED] = 1
        return row

    def _slot_ranges(self) -> list[tuple[int, int]]:
        """The smallest and largest value of each slot; (0, 0) if it can never change, so that it takes no bits."""
        ranges = [r for agent in self.spec.agents for r in self._agent_ranges(agent)]
        ranges += [self._thing_range(thing) for thing in self.things]
        return ranges + [(0, largest) for it in self.objects for largest in self._largest_flags(it)]

    def _agent_ranges(self, agent: AgentSpec) -> list[tuple[int, int]]:
        """Ranges of an agent's slots; only grey agents can be paused, forced, or terminated remotely."""
        actions, kinds = self.spec.actions, {it.kind for it in self.objects}
        remote = agent.is_robot and Action.TOGGLE in actions
        lava = any(cell.kind == Kind.LAVA for row in self.spec.cells for cell in row)
        ranges = [(0, 0)] * AGENT_SLOTS
        ranges[CELL], ranges[DIRECTION] = (1, self.n_occupiable), (0, 3)
        ranges[TERMINATED] = (0, int(lava or (remote and Kind.KILL_BUTTON in kinds)))
        ranges[PAUSED] = (0, int(remote and Kind.PAUSE_SWITCH in kinds))
        ranges[CARRIED] = (0, self.item_types if Action.PICKUP in actions else 0)
        ranges[FORCED] = (0, len(actions) if remote and Kind.CONTROL_BUTTON in kinds else 0)
        return ranges

    def _thing_range(self, thing: Thing) -> tuple[int, int]:
        """Cells of a thing: pushables are always somewhere, items may be carried or gone (0)."""
        actions = self.spec.actions
        if thing.kind == Kind.BLOCK:
            return 1, self.n_occupiable
        if thing.kind == Kind.ROCK:
            return (1, self.n_occupiable) if any(agent.can_push_rocks for agent in self.spec.agents) else (0, 0)
        movable = Action.PICKUP in actions or (thing.kind == Kind.BOX and Action.TOGGLE in actions)
        return 0, self.n_occupiable if movable else 0

    def _largest_flags(self, it: MapObject) -> list[int]:
        """The largest value of each of an object's slots."""
        toggles = Action.TOGGLE in self.spec.actions
        largest = [0] * OBJECT_SLOTS
        if it.kind in codes.DOORS:
            largest[CONDITION] = Door.LOCKED if toggles else 0
        elif it.kind == Kind.MAGIC_WALL:
            largest[ACTIVE] = any(agent.can_enter_magic_walls for agent in self.spec.agents)
        elif it.kind == Kind.BUSH:
            largest[TRAMPLED] = any(agent.is_robot_like for agent in self.spec.agents)
        elif it.is_in_state and toggles:
            largest[ENABLED] = any(
                switch.kind == Kind.DISABLING_SWITCH and switch.trait == it.kind for switch in self.objects
            )
            if it.kind == Kind.PAUSE_SWITCH:
                largest[IS_ON] = 1
            elif it.kind == Kind.CONTROL_BUTTON:
                largest[CONTROLLED], largest[RECORDED] = self.n_agents, len(self.spec.actions)
                largest[AWAITING] = 1
        return [int(value) for value in largest]
