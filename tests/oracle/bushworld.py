"""The bush world as plain loops over tuples, with exact fractions; and its keys, read as docs/format.md says.

Written from the rules in docs/bush_worlds.md; it shares no code with the engine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

Cell = tuple[int, int]
State = tuple[int, tuple[Cell, ...], tuple[int, ...]]
MOVES = {0: (0, -1), 1: (-1, 0), 2: (0, 1), 3: (1, 0)}
PASS = 4


class OracleBushWorld:
    """``mapping`` has the keys of a world file; its map is a text or a list of texts."""

    n_actions = 5

    def __init__(self, mapping: Mapping[str, Any]) -> None:
        lines = mapping["map"].strip().split("\n") if isinstance(mapping["map"], str) else mapping["map"]
        rows = [line.split() for line in lines]
        self.width, self.height = len(rows[0]), len(rows)
        self.B, self.max_steps = Fraction(mapping["B"]), mapping["max_steps"]
        fill = mapping.get("fill_density", 0)
        robots, humans, self.density = [], [], []
        for y in range(self.height):
            for x in range(self.width):
                code = rows[y][x]
                robots += [(x, y)] if code == "Ro" else []
                humans += [(x, y)] if code == "Hu" else []
                self.density.append(fill if code in ("Ro", "Hu") else 0 if code in (".", "..") else int(code))
        self.start = [*robots, *humans]
        self.robots = list(range(len(robots)))
        self.humans = list(range(len(robots), len(self.start)))
        self.n_agents = len(self.start)

    def initial_state(self) -> State:
        return 0, tuple(self.start), tuple(self.density)

    def transition_probabilities(self, state: State, actions: Sequence[int]) -> list[tuple[float, State]] | None:
        found = self.transitions(state, actions)
        return None if found is None else [(float(p), after) for after, p in found.items()]

    def transitions(self, state: State, actions: Sequence[int]) -> dict[State, Fraction] | None:
        step, places, densities = state
        if step >= self.max_steps:
            return None
        entered = self._tries(places, actions)
        after_robots = list(densities)
        for i in self.robots:
            if i in entered:
                self._thin(after_robots, entered[i])
            elif actions[i] == PASS:
                self._thin(after_robots, places[i])
        trying = [i for i in self.humans if i in entered]
        outcomes: dict[State, Fraction] = {}
        for successes in itertools.product([True, False], repeat=len(trying)):
            now, probability = list(places), Fraction(1)
            for i in self.robots:
                now[i] = entered.get(i, places[i])
            for i, success in zip(trying, successes, strict=True):
                chance = max(Fraction(0), 1 - densities[self._at(entered[i])] / self.B)
                probability *= chance if success else 1 - chance
                now[i] = entered[i] if success else places[i]
            if probability > 0:
                successor = (step + 1, tuple(now), tuple(after_robots))
                outcomes[successor] = outcomes.get(successor, Fraction(0)) + probability
        return outcomes

    def _tries(self, places: Sequence[Cell], actions: Sequence[int]) -> dict[int, Cell]:
        """Who tries to enter which cell."""
        tries: dict[int, Cell] = {}
        for i, (x, y) in enumerate(places):
            if actions[i] == PASS:
                continue
            dx, dy = MOVES[actions[i]]
            wanted = (x + dx, y + dy)
            is_inside = 0 <= wanted[0] < self.width and 0 <= wanted[1] < self.height
            if is_inside and wanted not in places and wanted not in tries.values():
                tries[i] = wanted
        return tries

    def _at(self, cell: Cell) -> int:
        return cell[1] * self.width + cell[0]

    def _thin(self, densities: list[int], cell: Cell) -> None:
        densities[self._at(cell)] = max(0, densities[self._at(cell)] - 1)


@dataclass(frozen=True)
class AreaGoal:
    """A human is inside a rectangle."""

    human: int
    area: tuple[int, int, int, int]

    def is_achieved(self, state: State) -> bool:
        x, y = state[1][self.human]
        return self.area[0] <= x <= self.area[2] and self.area[1] <= y <= self.area[3]


class AreaGoals:
    """The same areas for every human, with weights that sum to 1."""

    def __init__(self, weights: Mapping[tuple[int, int, int, int], float]) -> None:
        self.weights = weights

    def generate(self, state: State, human: int) -> Iterator[tuple[AreaGoal, float]]:
        for area, weight in self.weights.items():
            yield AreaGoal(human, area), weight / sum(self.weights.values())


def every_cell(world: OracleBushWorld) -> AreaGoals:
    """The goals of a file without goals."""
    return AreaGoals({(x, y, x, y): 1.0 for y in range(world.height) for x in range(world.width)})


def state_of_key(mapping: Mapping[str, Any], step: int, key: Sequence[int]) -> State:
    """A key, read from ``world`` of a manifest: cells of players, then densities that may change, each in its bits."""
    world = OracleBushWorld(mapping)
    n_cells = world.width * world.height
    largest = [n_cells - 1] * world.n_agents + [density if world.robots else 0 for density in world.density]
    values, word, shift = [], 0, 0
    for most, initial in zip(largest, [*map(world._at, world.start), *world.density], strict=True):
        width = most.bit_length()
        if width == 0:
            values.append(initial)
            continue
        if shift + width > 64:
            word, shift = word + 1, 0
        values.append((int(key[word]) >> shift) & ((1 << width) - 1))
        shift += width
    places = [(cell % world.width, cell // world.width) for cell in values[: world.n_agents]]
    return step, tuple(places), tuple(values[world.n_agents :])
