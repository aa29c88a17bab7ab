"""Arrays of solved levels, wherever they rest: what the sweep hands over and the solution reads from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from empo_bi.dag.levels import InMemory, LevelStore
from empo_bi.errors import StoreError
from empo_bi.types import Array, Arrays, Bodies

# Names and dimensions.
ARRAYS: dict[str, tuple[str, ...]] = {
    "vh": ("state", "human", "goal"),  # V_h of phase 1
    "ve": ("state", "human", "goal"),  # V_h under both policies
    "xh": ("state", "human"),  # power
    "qr": ("state", "robot_profile"),  # Q_r
    "vr": ("state",),  # V_r
}
# What users' functions said, for whoever opens a solution without these functions. A manifest lists those that are there.
ANSWERS: dict[str, tuple[str, ...]] = {
    "attained": ("state", "byte"),  # a bit for each goal
    "listed": ("state", "byte"),  # a bit for each goal that a state has
    "weight": ("state", "human", "goal"),  # of each goal
    "joint": ("state", "human_profile"),  # what a prior says of all humans together
}
DIMENSIONS = ARRAYS | ANSWERS


def rows_at(array: Array, places: Bodies) -> Array:
    """Some rows; those of a range are a view."""
    return array[places.start : places.stop] if isinstance(places, range) else array[places]


class SolvedLevels(LevelStore, Protocol):
    """Levels from the last one down to the first."""

    backlog_bytes: int  # what may wait to be written

    @property
    def name(self) -> str | None:
        """Of the folder; None for memory."""

    @property
    def held_bytes(self) -> int:
        """Arrays that are in memory, or wait to be written."""

    @property
    def next_level(self) -> int:
        """The level to be put next; -1 when all are there."""

    @property
    def answers(self) -> frozenset[str]:
        """Names of those of :data:`ANSWERS` that each level has."""

    def put(self, t: int, arrays: Arrays, carry: Callable[[], Arrays]) -> None:
        """Take the arrays of level ``t``; ``carry`` has what a sweep needs to continue from there."""

    def settle(self, t: int) -> None:
        """Wait until level ``t`` and those above it do not need the arrays any more with which they were put."""

    def carried(self) -> Arrays:
        """What was carried with the last level."""

    def get(self, t: int, name: str) -> Array:
        """An array of a level, as it rests."""

    def pieces(self, t: int, name: str, places: Bodies) -> Iterator[tuple[slice, Array]]:
        """Some rows of an array, as they rest, a few megabytes at a time: which of ``places`` they are, and the rows.

        ``places`` ascend. Nothing is remembered, so that whoever goes through many levels holds none of them.
        """

    def has(self, t: int, name: str) -> bool:
        """Whether a level has such an array."""

    def remove(self) -> None:
        """Close, and leave nothing behind."""

    def give_back(self) -> None:
        """Let go of arrays that can be read again, and let nothing wait to be written."""


class MemorySolution(InMemory):
    """Arrays in a dictionary."""

    answers: frozenset[str] = frozenset()  # the functions themselves are at hand

    def __init__(self, horizon: int) -> None:
        super().__init__()
        self._arrays: dict[tuple[int, str], Array] = {}
        self._horizon = self.next_level = horizon
        self._is_closed = False
        self.backlog_bytes = 0
        self.name = None

    def __len__(self) -> int:
        return self._horizon - self.next_level

    def put(self, t: int, arrays: Arrays, carry: Callable[[], Arrays]) -> None:
        self._check_open()
        if t != self.next_level:
            raise ValueError(f"level {t} is out of order; expected level {self.next_level}")
        self._arrays |= {(t, name): array for name, array in arrays.items()}
        self.next_level = t - 1

    def finish(self) -> None:
        if self.next_level >= 0:
            raise ValueError(f"cannot be finished, level {self.next_level} has not been put")
        super().finish()

    def settle(self, t: int) -> None:
        pass

    def carried(self) -> Arrays:
        return {}

    def get(self, t: int, name: str) -> Array:
        self._check_open()
        return self._arrays[t, name]

    def pieces(self, t: int, name: str, places: Bodies) -> Iterator[tuple[slice, Array]]:
        yield slice(0, len(places)), rows_at(self.get(t, name), places)

    def has(self, t: int, name: str) -> bool:
        self._check_open()
        return (t, name) in self._arrays

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("this solution was closed; solve again")

    def close(self) -> None:
        self._is_closed = True
        self._arrays.clear()

    remove = close

    @property
    def held_bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())

    def give_back(self) -> None:
        pass

    def describe(self) -> str:
        return f"{self.held_bytes / 1e6:.1f} MB in memory"
