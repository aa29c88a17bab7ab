"""Keys of gridworlds as states, written from docs/format.md and docs/world_files.md alone.

The bits of a key follow from the map: :class:`KeyReader` lists them in order as (name, largest value), and puts a state
together from what it finds there, or from the start for what can never change.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLOURS = {"r": "red", "g": "green", "b": "blue", "p": "purple", "y": "yellow", "e": "grey"}
ACTIONS = {"SmallActions": 4, "ObjectActions": 7, "MinimalActions": 2, "MineActions": 5}
BUTTONS = {"Ki": "killbutton", "Ps": "pauseswitch", "CB": "controlbutton"}
DISABLED_BY = {"killbutton": "Dk", "pauseswitch": "Dp", "controlbutton": "DC"}
OBJECTS = {"Bu": "bush", **BUTTONS}  # doors and magic walls come with a letter of their own
DOORS = {"O": 0, "C": 1, "L": 2}
KINDS = {"K": "key", "B": "ball", "X": "box"}

Name = tuple[str, int, str]  # what, its number, which slot of it


class KeyReader:
    """``world`` is the mapping of a manifest."""

    def __init__(self, world: Mapping[str, Any]) -> None:
        rows = [row.split() for row in world["map"]]
        self.codes = {(x, y): code for y, row in enumerate(rows) for x, code in enumerate(row)}  # reading order
        self.n_actions = ACTIONS[world["action_class"]]
        self.has_toggle = world["action_class"] == "ObjectActions"
        self.agents = [(cell, code[1]) for cell, code in self.codes.items() if code[0] == "A"]
        self.directions = world["orientations"]
        self.pushers, self.enterers = world["can_push_rocks"], world["can_enter_magic_walls"]
        by_column = sorted(cell for cell in self.codes if self._can_hold_something(cell))
        self.cells = [(-1, -1), *by_column]
        things = [(self._type(code), cell) for cell, code in self.codes.items() if self._type(code)]
        self.things = sorted((kind, self.cells.index(cell)) for kind, cell in things)
        self.items = sorted({kind for kind, _ in self.things if kind[0] == 0})
        self.objects = [(cell, self._object(code)) for cell, code in self.codes.items() if self._object(code)]
        self.slots = [*self._agent_slots(), *self._thing_slots(), *self._object_slots()]

    def _any(self, letters: str) -> bool:
        return any(colour in letters for _, colour in self.agents)

    def _can_hold_something(self, cell: tuple[int, int]) -> bool:
        code = self.codes[cell]
        if code[0] == "M":
            return self._any(self.enterers)
        return code[0] != "W" and code not in (*BUTTONS, *DISABLED_BY.values())

    @staticmethod
    def _type(code: str) -> tuple[int, int, str] | None:
        """Sorts as types do: keys, balls, boxes, each by the name of the colour, then blocks, then rocks."""
        if code in ("Bl", "Ro"):
            return (1, ("Bl", "Ro").index(code), "")
        if code[0] in KINDS and code[1] in COLOURS:
            return (0, "KBX".index(code[0]), COLOURS[code[1]])
        return None

    @staticmethod
    def _object(code: str) -> str | None:
        if code[0] in DOORS and code[1] in COLOURS:  # CB is a button
            return "door"
        return "magicwall" if code[0] == "M" else OBJECTS.get(code)

    def _agent_slots(self) -> list[tuple[Name, int]]:
        present = set(self.codes.values())
        slots = []
        for i, (_, colour) in enumerate(self.agents):
            at_a_distance = colour == "e" and self.has_toggle
            largest = {
                "cell": len(self.cells) - 1,
                "direction": 3,
                "terminated": int("La" in present or (at_a_distance and "Ki" in present)),
                "paused": int(at_a_distance and "Ps" in present),
                "carried": len(self.items) if self.has_toggle else 0,
                "forced": self.n_actions if at_a_distance and "CB" in present else 0,
            }
            slots += [(("agent", i, slot), value) for slot, value in largest.items()]
        return slots

    def _thing_slots(self) -> list[tuple[Name, int]]:
        slots = []
        for i, ((is_pushable, number, _), _) in enumerate(self.things):
            if is_pushable:
                moves = number == 0 or self._any(self.pushers)
            else:
                moves = self.has_toggle
            slots.append((("thing", i, "cell"), len(self.cells) - 1 if moves else 0))
        return slots

    def _object_slots(self) -> list[tuple[Name, int]]:
        slots: list[tuple[Name, int]] = []
        for i, (_, kind) in enumerate(self.objects):
            largest = {"flag": 0}
            if kind == "door":
                largest["flag"] = 2 if self.has_toggle else 0
            elif kind == "magicwall":
                largest["flag"] = int(self._any(self.enterers))
            elif kind == "bush":
                largest["flag"] = int(self._any("e" + self.pushers + self.enterers))
            elif self.has_toggle:
                largest["flag"] = int(DISABLED_BY[kind] in self.codes.values())
                if kind == "pauseswitch":
                    largest["is_on"] = 1
                elif kind == "controlbutton":
                    largest |= {"controlled": len(self.agents), "recorded": self.n_actions, "awaiting": 1}
            slots += [(("object", i, slot), value) for slot, value in largest.items()]
        return slots

    def unpack(self, key: tuple[int, ...]) -> dict[Name, int]:
        """The slots that take bits, from the lowest bit of the first word on; none lies across two words."""
        found, word, shift = {}, 0, 0
        for name, largest in self.slots:
            width = largest.bit_length()
            if width == 0:
                continue
            if shift + width > 64:
                word, shift = word + 1, 0
            found[name] = key[word] >> shift & ((1 << width) - 1)
            shift += width
        assert len(key) == word + 1
        return found

    def state(self, step: int, key: tuple[int, ...]) -> tuple:
        found = self.unpack(key)
        agents = []
        for i, (cell, _) in enumerate(self.agents):
            start = {"cell": self.cells.index(cell), "direction": self.directions[i]}
            at = {slot: found.get(("agent", i, slot), start.get(slot, 0)) for slot in _AGENT_SLOTS}
            carried = self.items[at["carried"] - 1] if at["carried"] else None
            kind, colour = (None, None) if carried is None else (list(KINDS.values())[carried[1]], carried[2])
            flags = (bool(at["terminated"]), True, bool(at["paused"]))
            agents.append((*self.cells[at["cell"]], at["direction"], *flags, kind, colour, _none(at["forced"])))
        mobile = []
        for i, ((is_pushable, number, colour), start) in enumerate(self.things):
            cell = found.get(("thing", i, "cell"), start)
            if cell and is_pushable:
                mobile.append((("block", "rock")[number], *self.cells[cell]))
            elif cell:
                mobile.append((list(KINDS.values())[number], *self.cells[cell], colour))
        return step, tuple(agents), tuple(sorted(mobile)), tuple(self._mutable(found))

    def _mutable(self, found: Mapping[Name, int]) -> list[tuple]:
        entries = []
        for i, ((x, y), kind) in enumerate(self.objects):
            initial = DOORS[self.codes[x, y][0]] if kind == "door" else 0 if kind == "bush" else 1
            flag = found.get(("object", i, "flag"), initial)
            flags: tuple = (bool(flag),)
            if kind == "door":
                flags = (flag == 0, flag == 2)
            elif kind == "pauseswitch":
                flags = (bool(found.get(("object", i, "is_on"), 0)), bool(flag))
            elif kind == "controlbutton":
                at = {slot: found.get(("object", i, slot), 0) for slot in ("controlled", "recorded", "awaiting")}
                flags = (bool(flag), _none(at["controlled"]), _none(at["recorded"]), bool(at["awaiting"]))
            entries.append((kind, x, y, *flags))
        return entries


_AGENT_SLOTS = ("cell", "direction", "terminated", "paused", "carried", "forced")


def _none(value: int) -> int | None:
    """0 stands for nothing, n + 1 for n."""
    return value - 1 if value else None
