"""A limit on the memory of the process, what is left of it, and what a piece of work will need."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from empo_bi.errors import MemoryLimitError
from empo_bi.runtime.byte_sizes import Size, as_text, parse_size
from empo_bi.runtime.compilation import compilations
from empo_bi.runtime.machine import resident_bytes

BASE_BYTES = 200_000_000  # measured: Python, libraries and compiled kernels once all are loaded
UNLOADED = 12 << 20  # kernels and libraries that are loaded on first use
_COMPILED = ". Compiling kernels took some 100 MB of it: the same call needs less next time"
# Sizes of caches and backlogs where no limit is set.
CACHE_BYTES = 256 << 20
SLICE_BACKLOG, RESULT_BACKLOG = 32 << 20, 64 << 20
STRETCH_BYTES = 32 << 20  # transitions read at a time, of slices that are too large for memory
SPILL_BYTES = 128 << 20  # transitions of an unfinished level kept in memory; the others wait on disk


@dataclass(frozen=True)
class Needs:
    """Bytes by purpose."""

    parts: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def __add__(self, other: Needs) -> Needs:
        names = dict.fromkeys([*self.parts, *other.parts])
        return Needs({name: self.parts.get(name, 0) + other.parts.get(name, 0) for name in names})

    def __str__(self) -> str:
        """The largest first; parts below one percent are left out."""
        ordered = sorted(self.parts.items(), key=lambda part: -part[1])
        return ", ".join(f"{as_text(nbytes)} for {what}" for what, nbytes in ordered if nbytes >= self.total // 100)


@dataclass(frozen=True)
class Budget:
    """What the process may hold, Python and libraries included; ``limit`` is None if there is none."""

    limit: int | None = None

    @classmethod
    def of(cls, limit: Size | None) -> Budget:
        return cls(None if limit is None else parse_size(limit))

    @property
    def held(self) -> int:
        """What the process holds now, including code that is still to be loaded."""
        return resident_bytes() + UNLOADED

    @property
    def room(self) -> int | None:
        """What is left now."""
        return None if self.limit is None else max(0, self.limit - self.held)

    def share(self, part: float, *, at_most: int) -> int:
        """This part of the room, at most ``at_most`` bytes."""
        room = self.room
        return at_most if room is None else min(at_most, int(part * room))

    def check_base(self, doing: str) -> None:
        """Refuse a limit that the process exceeds before it has begun to work."""
        base = max(BASE_BYTES, resident_bytes())
        if self.limit is not None and self.limit < base:
            raise MemoryLimitError(
                f"{doing}: memory_limit={as_text(self.limit)} is less than the {as_text(base)} that the process needs "
                "before it begins, for Python, libraries and compiled kernels; give at least "
                f"memory_limit='{math.ceil(1.15 * base / 1e6)}MB'"
            )

    def is_exceeded(self, more: int = 0) -> bool:
        """Whether the process exceeds its limit, or will with ``more`` bytes."""
        return self.limit is not None and resident_bytes() + more > self.limit

    def check(self, doing: str, remedy: str, more: int = 0) -> None:
        """Raise :class:`MemoryLimitError` if the process exceeds its limit, or will with ``more`` bytes."""
        if self.limit is not None and self.is_exceeded(more):
            held = resident_bytes()
            wanted = f", and needs {as_text(more)} more" if more else ""
            raise MemoryLimitError(
                f"{doing}: the process holds {as_text(held)}, Python and libraries included{wanted}, which is more than "
                f"memory_limit={as_text(self.limit)}. {remedy}{_COMPILED if compilations.n_compiled else ''}"
            )
