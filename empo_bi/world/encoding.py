"""State tuples to packed keys and back.

For users, a state is the nested tuple ``(step, agents, mobile, mutable)``; for the engine, it is a step and a key. Tuples
are translated one by one, which is slow, so the engine never does it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.errors import InvalidStateError
from empo_bi.types import KeyArray
from empo_bi.world import codes
from empo_bi.world.codes import Door, Kind
from empo_bi.world.expand import as_keys, pack_rows, unpack_keys
from empo_bi.world.layout import (
    AGENT_SLOTS,
    AWAITING,
    CARRIED,
    CELL,
    CONDITION,
    CONTROLLED,
    DIRECTION,
    ENABLED,
    FORCED,
    IS_ON,
    OBJECT_SLOTS,
    PAUSED,
    RECORDED,
    TERMINATED,
    MapObject,
    StateLayout,
)
from empo_bi.world.tables import Tables

GridState = tuple[Any, ...]  # (step, agents, mobile things, mutable objects)
Entry = tuple[Any, ...]  # of an agent, a mobile thing or a mutable object in a state

MOST_REMEMBERED = 1 << 16  # entries of tuples; small worlds have fewer, and for large ones some are made again

_DOOR_FLAGS = {Door.OPEN: (True, False), Door.CLOSED: (False, False), Door.LOCKED: (False, True)}  # is_open, is_locked
_DOOR_CONDITIONS = {flags: condition for condition, flags in _DOOR_FLAGS.items()}


class _Remembered(dict[tuple[int, ...], Entry]):
    """Entries of state tuples by their slots, made on first use: states have few distinct entries."""

    def __init__(self, make: Callable[[tuple[int, ...]], Entry]) -> None:
        self._make = make

    def __missing__(self, slots: tuple[int, ...]) -> Entry:
        if len(self) >= MOST_REMEMBERED:
            self.clear()
        entry = self[slots] = self._make(slots)
        return entry


class StateCodec:
    """Translates the states of one world."""

    def __init__(self, layout: StateLayout, tables: Tables) -> None:
        self.layout = layout
        self._tables = tables
        self._xy: list[tuple[int, int]] = [(int(x), int(y)) for x, y in layout.cell_xy]
        self._type_number = {(kind.name.lower(), colour): n for n, (kind, colour) in enumerate(layout.types)}
        self._carried = [(kind.name.lower(), colour) for kind, colour in layout.types[: layout.item_types]]
        self._mutable = [(i, it) for i, it in enumerate(layout.objects) if it.is_in_state]
        changeable = np.zeros(layout.n_slots, dtype=bool)
        changeable[[f.slot for f in layout.fields]] = True
        self._frozen_slots = np.flatnonzero(~changeable)
        self._n_actions = len(layout.spec.actions)
        self._first_thing, self._first_object = layout.first_thing, layout.first_object
        self._agents = _Remembered(self._agent_entry)
        known = {(thing.kind, thing.colour) for thing in layout.things}
        entries = {type: self._thing_entries(*type) for type in known}  # shared: a map may have a thing on every cell
        self._things = [entries[thing.kind, thing.colour] for thing in layout.things]
        self._objects = [
            (layout.first_object + i * OBJECT_SLOTS, _Remembered(partial(_object_entry, it))) for i, it in self._mutable
        ]

    def __reduce__(self) -> tuple[type[StateCodec], tuple[StateLayout, Tables]]:
        return StateCodec, (self.layout, self._tables)  # without remembered entries

    # --- tuples -> keys -----------------------------------------------------------------------------------------------

    def encode(self, states: Iterable[GridState]) -> tuple[npt.NDArray[np.int64], KeyArray]:
        """Steps ``(S,)`` and keys ``(S, W)`` of state tuples.

        Raises
        ------
        InvalidStateError
            If a tuple is malformed, or describes a state that cannot occur in this world.
        """
        if isinstance(states, tuple) and states and isinstance(states[0], int):
            raise InvalidStateError("encode takes a list of states; for a single state, write encode([state])")
        states = list(states)
        steps = np.empty(len(states), dtype=np.int64)
        row_SR = np.empty((len(states), self.layout.n_slots), dtype=np.int64)
        for s, state in enumerate(states):
            try:
                steps[s], row_SR[s] = self._row_of(state)
            except InvalidStateError:
                raise
            except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
                raise InvalidStateError(
                    f"not a state of this world: {state!r} ({type(error).__name__}: {error}); give (step, agents, mobile, "
                    "mutable), as in world.initial_state()"
                ) from error
        return steps, self.pack(row_SR)

    def pack(self, row_SR: npt.NDArray[np.int64]) -> KeyArray:
        key_SW = np.empty((len(row_SR), self.layout.n_words), dtype=np.uint64)
        pack_rows(self._tables.world, row_SR, key_SW)
        return key_SW

    def _row_of(self, state: GridState) -> tuple[int, npt.NDArray[np.int64]]:
        layout = self.layout
        step, agents, mobile, mutable = state
        if index(step) < 0:
            raise InvalidStateError(f"step {step!r}; steps are counted from 0")
        if len(agents) != layout.n_agents or len(mutable) != len(self._mutable):
            raise InvalidStateError(
                f"state with {len(agents)} agents and {len(mutable)} mutable objects; this world has {layout.n_agents} "
                f"and {len(self._mutable)}. Was it made for another world?"
            )
        row = layout.initial_row.copy()
        row[: layout.first_thing] = [slot for entry in agents for slot in self._agent_slots(entry)]
        row[layout.first_thing : layout.first_object] = self._thing_cells(agents, mobile)
        objects = row[layout.first_object :].reshape(-1, OBJECT_SLOTS)
        for (i, it), entry in zip(self._mutable, mutable, strict=True):
            self._set_object(objects[i], it, entry)
        self._check_row(row, state)
        return index(step), row

    def _check_row(self, row: npt.NDArray[np.int64], state: GridState) -> None:
        layout = self.layout
        held = np.concatenate([row[CELL : layout.first_thing : AGENT_SLOTS], row[layout.first_thing : layout.first_object]])
        held = held[held > 0]
        if len(np.unique(held)) < len(held):
            raise InvalidStateError(f"two agents or things on one cell in {state!r}; a cell holds at most one")
        wrong = [int(slot) for slot in self._frozen_slots if row[slot] != layout.initial_row[slot]]
        if wrong:
            raise InvalidStateError(f"{self._slot_name(wrong[0])} can never have this value in this world: {state!r}")

    def _slot_name(self, slot: int) -> str:
        layout = self.layout
        if slot < layout.first_thing:
            names = ("x, y", "direction", "terminated", "paused", "carried item", "forced action")
            return f"agent {slot // AGENT_SLOTS}'s {names[slot % AGENT_SLOTS]}"
        if slot < layout.first_object:
            thing = layout.things[slot - layout.first_thing]
            return f"the place of a {thing.kind.name.lower()}"
        it = layout.objects[(slot - layout.first_object) // OBJECT_SLOTS]
        return f"the {codes.MUTABLE_NAMES[it.kind]} at ({it.x}, {it.y})"

    def _cell(self, x: int, y: int) -> int:
        spec = self.layout.spec
        x, y = index(x), index(y)  # refuses 2.0
        if not (0 <= x < spec.width and 0 <= y < spec.height and spec.can_be_occupied(x, y)):
            raise InvalidStateError(f"something is on cell ({x}, {y}), which is a wall, a button, or outside the grid")
        return int(self.layout.cell_number[y, x])

    def _agent_slots(self, entry: Entry) -> list[int]:
        x, y, direction, terminated, started, paused, kind, colour, forced = entry
        if not _flag(started) or index(direction) not in (0, 1, 2, 3):
            raise InvalidStateError(f"agent {entry!r}: expected a direction from 0 to 3, and True as the fifth entry")
        if forced is not None and index(forced) not in range(self._n_actions):
            raise InvalidStateError(f"agent {entry!r}: forced action {forced!r} is not an action of this world")
        carried = 0 if kind is None and colour is None else self._type_number.get((kind, colour), len(self._carried)) + 1
        if carried > len(self._carried):
            raise InvalidStateError(f"agent {entry!r} carries a {colour} {kind}, but the map has none")
        slots = [0] * AGENT_SLOTS
        slots[CELL], slots[DIRECTION], slots[CARRIED] = self._cell(x, y), direction, carried
        slots[TERMINATED], slots[PAUSED] = _flag(terminated), _flag(paused)
        slots[FORCED] = 0 if forced is None else forced + 1
        return slots

    def _thing_cells(self, agents: Sequence[Entry], mobile: Sequence[Entry]) -> list[int]:
        """The cell of each thing, sorted within a type; 0 for things that are not on the ground."""
        layout = self.layout
        by_type: list[list[int]] = [[] for _ in layout.types]
        if any(one[:3] > other[:3] for one, other in pairwise(mobile)):
            raise InvalidStateError(f"mobile is {mobile!r}; sort it by kind, x, y")
        for entry in mobile:
            name, x, y, *colours = entry
            number = self._type_number.get((name, colours[0] if colours else None))
            if number is None or len(colours) != (number < layout.item_types):
                raise InvalidStateError(f"{entry!r} in mobile: the map has no such thing")
            by_type[number].append(self._cell(x, y))
        cells = []
        for number, (kind, colour) in enumerate(layout.types):
            first, last = layout.type_ranges[number]
            missing = last - first - len(by_type[number])
            carried = sum((entry[6], entry[7]) == (kind.name.lower(), colour) for entry in agents)
            # Pushables never disappear; an item may be carried; a box may have been opened.
            if missing < carried or (missing > carried and kind != Kind.BOX):
                found = f"{len(by_type[number])} on the ground and {carried} carried"
                raise InvalidStateError(f"{colour or ''} {kind.name.lower()}: {found}, but the map has {last - first}")
            cells += [0] * missing + sorted(by_type[number])
        return cells

    def _set_object(self, slots: npt.NDArray[np.int64], it: MapObject, entry: Entry) -> None:
        name, x, y, *flags = entry
        if (name, x, y) != (codes.MUTABLE_NAMES[it.kind], it.x, it.y):
            raise InvalidStateError(f"{entry!r} in mutable; expected the {codes.MUTABLE_NAMES[it.kind]} at ({it.x}, {it.y})")
        if it.kind in codes.DOORS:
            is_open, is_locked = flags
            if (is_open, is_locked) not in _DOOR_CONDITIONS:
                raise InvalidStateError(f"{entry!r}: a door is open, closed or locked, never open and locked")
            slots[CONDITION] = _DOOR_CONDITIONS[is_open, is_locked]
        elif it.kind == Kind.PAUSE_SWITCH:
            is_on, enabled = flags
            slots[IS_ON], slots[ENABLED] = _flag(is_on), _flag(enabled)
        elif it.kind == Kind.CONTROL_BUTTON:
            enabled, controlled, recorded, awaiting = flags
            slots[ENABLED], slots[AWAITING] = _flag(enabled), _flag(awaiting)
            slots[CONTROLLED] = self._optional(controlled, self.layout.n_agents, entry)
            slots[RECORDED] = self._optional(recorded, self._n_actions, entry)
        else:
            (slots[0],) = (_flag(flag) for flag in flags)

    def _optional(self, value: int | None, limit: int, entry: Entry) -> int:
        if value is None:
            return 0
        if index(value) not in range(limit):
            raise InvalidStateError(f"{entry!r}: found {value!r}, expected a number below {limit}")
        return value + 1

    # --- keys -> tuples -----------------------------------------------------------------------------------------------

    def decode(self, steps: npt.ArrayLike, key_SW: KeyArray) -> list[GridState]:
        """State tuples of steps (one number for all, or one for each) and keys ``(S, W)``."""
        rows = self.unpack(key_SW).tolist()
        all_steps = np.broadcast_to(np.asarray(steps, dtype=np.int64), len(rows)).tolist()
        return [self.state_of(step, row) for step, row in zip(all_steps, rows, strict=True)]

    def unpack(self, key_SW: KeyArray) -> npt.NDArray[np.int64]:
        """Rows ``(S, slots)`` of keys."""
        keys = as_keys(self._tables, key_SW)
        row_SR = np.empty((len(keys), self.layout.n_slots), dtype=np.int64)
        unpack_keys(self._tables.world, keys, row_SR)
        return row_SR

    def state_of(self, step: int, row: list[int]) -> GridState:
        """The tuple of a step and a row."""
        agents = [self._agents[tuple(row[i : i + AGENT_SLOTS])] for i in range(0, self._first_thing, AGENT_SLOTS)]
        cells = row[self._first_thing : self._first_object]
        mobile = sorted([entry_of[cell] for entry_of, cell in zip(self._things, cells, strict=True) if cell])
        mutable = [entry_of[tuple(row[i : i + OBJECT_SLOTS])] for i, entry_of in self._objects]
        return step, tuple(agents), tuple(mobile), tuple(mutable)

    def _agent_entry(self, slots: tuple[int, ...]) -> Entry:
        kind, colour = self._carried[slots[CARRIED] - 1] if slots[CARRIED] else (None, None)
        forced = slots[FORCED] - 1 if slots[FORCED] else None
        terminated, paused = bool(slots[TERMINATED]), bool(slots[PAUSED])
        return (*self._xy[slots[CELL]], slots[DIRECTION], terminated, True, paused, kind, colour, forced)

    def _thing_entries(self, kind: Kind, colour: str | None) -> list[Entry]:
        """The entry of a thing for each cell."""
        return [(kind.name.lower(), x, y) if colour is None else (kind.name.lower(), x, y, colour) for x, y in self._xy]


def _object_entry(it: MapObject, slots: tuple[int, ...]) -> Entry:
    head = (codes.MUTABLE_NAMES[it.kind], it.x, it.y)
    if it.kind in codes.DOORS:
        return (*head, *_DOOR_FLAGS[Door(slots[CONDITION])])
    if it.kind == Kind.PAUSE_SWITCH:
        return (*head, bool(slots[IS_ON]), bool(slots[ENABLED]))
    if it.kind == Kind.CONTROL_BUTTON:
        controlled = slots[CONTROLLED] - 1 if slots[CONTROLLED] else None
        recorded = slots[RECORDED] - 1 if slots[RECORDED] else None
        return (*head, bool(slots[ENABLED]), controlled, recorded, bool(slots[AWAITING]))
    return (*head, bool(slots[0]))


def _flag(value: object) -> int:
    if value not in (True, False):
        raise InvalidStateError(f"found {value!r}, expected True or False")
    return int(bool(value))
