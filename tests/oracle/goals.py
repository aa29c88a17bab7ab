"""Entries of ``possible_goals`` beyond cells and rectangles, asked of state tuples; written from the docs alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DIRECTIONS = {"east": 0, "south": 1, "west": 2, "north": 3, "e": 0, "s": 1, "w": 2, "n": 3, 0: 0, 1: 1, 2: 2, 3: 3}


def numbers(place: Any) -> list[int]:
    """A cell or rectangle in any spelling, as two or four numbers."""
    if isinstance(place, str):
        return [int(part) for part in place.split(",")]
    return [number for part in place for number in (part if isinstance(part, list | tuple) else [part])]


def is_in(place: Any, x: int, y: int) -> bool:
    corners = numbers(place)
    if len(corners) == 2:
        return [x, y] == corners
    x1, y1, x2, y2 = corners
    return min(x1, x2) <= x <= max(x1, x2) and min(y1, y2) <= y <= max(y1, y2)


def places(cells: Any) -> list[Any]:
    """``cells`` is one place or a list of them."""
    is_one = isinstance(cells, str) or all(isinstance(part, int) for part in cells)
    return [cells] if is_one else list(cells)


def holds(entry: Any, state: Any, agent: int, named: Mapping[str, Any]) -> bool:
    """Whether what an entry asks for holds of an agent; ``named`` has the entries above it by name."""
    if isinstance(entry, str) and entry in named:
        return holds(named[entry], state, agent, named)
    me = state[1][agent]
    if not isinstance(entry, Mapping):
        return is_in(entry, me[0], me[1])
    answers = []
    for key, value in entry.items():
        if key == "goal":
            answers.append(is_in(value, me[0], me[1]))
        elif key == "cells":
            answers.append(any(is_in(place, me[0], me[1]) for place in places(value)))
        elif key == "facing":
            answers.append(me[2] == DIRECTIONS[value])
        elif key == "carries":
            *colour, kind = value.split()
            answers.append(me[6] == kind and (not colour or colour[0] == me[7]))
        elif key == "door":
            (door,) = [thing for thing in state[3] if thing[0] == "door" and [thing[1], thing[2]] == numbers(value)]
            answers.append(door[3])
        elif key == "step":
            answers.append(state[0] == value)
        elif key == "all":
            answers.append(all(holds(part, state, agent, named) for part in value))
        elif key == "any":
            answers.append(any(holds(part, state, agent, named) for part in value))
        else:
            assert key in ("name", "weight"), key
    return all(answers)


@dataclass(frozen=True)
class EntryGoal:
    """Entry number ``place`` of a human's list; goals are told apart by this alone."""

    human: int
    place: int
    lists: EntryGoals

    def is_achieved(self, state: Any) -> bool:
        entries = self.lists.entries[self.human]
        named = {entry["name"]: entry for entry in entries if isinstance(entry, Mapping) and "name" in entry}
        return holds(entries[self.place], state, self.human, named)


class EntryGoals:
    """A generator of the goals that lists of entries say, by human."""

    def __init__(self, entries: Mapping[int, Sequence[Any]]) -> None:
        self.entries = entries

    def generate(self, state: Any, human: int) -> Iterator[tuple[EntryGoal, float]]:
        own = self.entries[human]
        weights = [entry.get("weight", 1) if isinstance(entry, Mapping) else 1 for entry in own]
        for place, weight in enumerate(weights):
            yield EntryGoal(human, place, self), weight / sum(weights)
