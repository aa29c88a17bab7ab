"""Levels that have been found, wherever they rest: what the enumeration appends to and the DAG reads from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from empo_bi.dag.slices import BodySlice
from empo_bi.dag.successor_check import SuccessorCheck
from empo_bi.types import Bodies, IndexArray


@dataclass(frozen=True)
class LevelSizes:
    """The numbers of one level that are always at hand."""

    value: int
    n_states: int
    n_bodies: int
    n_expanded: int
    n_transitions: int
    nbytes: int
    known: int

    @classmethod
    def of(cls, piece: BodySlice) -> LevelSizes:
        counts = len(piece.members), len(piece.added), len(piece.expanded), piece.n_entries
        return cls(piece.value, *counts, nbytes=piece.nbytes, known=piece.known)


def check_ascending(before: int | None, value: int) -> None:
    """Complain of a level whose value is not above that of the level before it, None for the first one."""
    if before is not None and value <= before:
        raise ValueError(f"a level of value {value:,} is out of order after one of {before:,}; values of levels ascend")


class LevelStore(Protocol):
    """What the levels of a DAG and those of a solution have in common, wherever they rest.

    Levels are put one by one, in one direction, until the store is finished.
    """

    is_finished: bool

    def __len__(self) -> int:
        """Levels that were put."""

    def finish(self) -> None:
        """Say that the last level has been put, wait until everything is safe, and let others write."""

    def close(self) -> None:
        """Let go of memory, locks and temporary folders; nothing more is put or read. A second time, nothing happens."""

    def damaged(self, problem: str) -> Exception:
        """What to raise if levels contradict each other, or what is expected of them."""

    def compressed_bytes(self) -> dict[str, int] | None:
        """On disk by array, metadata included; None if they are not there, or nobody can tell."""

    def describe(self) -> str:
        """Where the levels are and how much room they take."""


class Levels(LevelStore, Protocol):
    """A sequence of slices that can be appended to."""

    sizes: list[LevelSizes]

    def __getitem__(self, t: int) -> BodySlice: ...

    def __iter__(self) -> Iterator[BodySlice]: ...

    def part(self, t: int, names: Collection[str]) -> BodySlice:
        """A slice of which only some arrays are wanted, by their names in stores; others may be there or not."""

    def stretches(self, t: int, n_profiles: int, wanted: IndexArray | None = None) -> Iterator[BodySlice]:
        """The slice, or one after the other stretches of its expanded bodies, where it is too large to be held.

        Stretches without any of the ``wanted`` bodies, which ascend, may be left out.
        """

    def head(self, t: int) -> BodySlice:
        """A slice without its transitions: keys or states, and which bodies are where."""

    def heads(self) -> Iterator[BodySlice]:
        """All of them."""

    def members(self, t: int) -> Bodies:
        """The bodies on a level."""

    def successor_check(self, t: int) -> SuccessorCheck | None:
        """What holds successors of level ``t`` to the next level; None where there is nothing to doubt."""

    def append(self, piece: BodySlice, frontier: Callable[[], list[BodySlice]]) -> None:
        """Add a level. ``frontier`` is what is known of levels to come, which a store keeps to continue from."""

    def frontier(self) -> list[BodySlice]:
        """What was known of levels to come when the last level was appended."""

    def restart(self) -> None:
        """Forget all levels."""

    def prefetch(self, levels: Iterable[int]) -> None: ...

    def give_back(self, cache_bytes: int = 0) -> None:
        """Let go of slices that can be read again, all but so many bytes, and keep to that from now on."""

    @property
    def cached_bytes(self) -> int:
        """Slices that are in memory."""

    def bytes_by_array(self) -> dict[str, int]:
        """Of all slices, as they are when they have been read."""


class InMemory:
    """What levels in memory have in common: nothing to write, to damage or to compress."""

    def __init__(self) -> None:
        self.is_finished = False

    def finish(self) -> None:
        self.is_finished = True

    def damaged(self, problem: str) -> Exception:
        return RuntimeError(f"{problem}; please report this")

    def compressed_bytes(self) -> dict[str, int] | None:
        return None


class MemoryLevels(InMemory):
    """Slices in a list."""

    def __init__(self) -> None:
        super().__init__()
        self._slices: list[BodySlice] = []
        self.sizes: list[LevelSizes] = []

    def __len__(self) -> int:
        return len(self._slices)

    def __getitem__(self, t: int) -> BodySlice:
        return self._slices[t]

    def __iter__(self) -> Iterator[BodySlice]:
        return iter(self._slices)

    head = __getitem__
    heads = __iter__

    def part(self, t: int, names: Collection[str]) -> BodySlice:
        return self._slices[t]

    def stretches(self, t: int, n_profiles: int, wanted: IndexArray | None = None) -> Iterator[BodySlice]:
        yield self._slices[t]

    def members(self, t: int) -> Bodies:
        return self._slices[t].members

    def successor_check(self, t: int) -> SuccessorCheck | None:
        return None

    def append(self, piece: BodySlice, frontier: Callable[[], list[BodySlice]]) -> None:
        if self.is_finished:
            raise ValueError("a level is out of order: it comes after the end of finished levels")
        check_ascending(self.sizes[-1].value if self.sizes else None, piece.value)
        self._slices.append(piece)
        self.sizes.append(LevelSizes.of(piece))

    def frontier(self) -> list[BodySlice]:
        return []

    def restart(self) -> None:
        self._slices, self.sizes = [], []

    def prefetch(self, levels: Iterable[int]) -> None:
        pass

    def give_back(self, cache_bytes: int = 0) -> None:
        pass

    @property
    def cached_bytes(self) -> int:
        return sum(sizes.nbytes for sizes in self.sizes)

    def bytes_by_array(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for piece in self._slices:
            for name, nbytes in piece.bytes_by_array().items():
                found[name] = found.get(name, 0) + nbytes
        return found

    def describe(self) -> str:
        return f"{self.cached_bytes / 1e6:.1f} MB in memory"

    def close(self) -> None:
        pass
