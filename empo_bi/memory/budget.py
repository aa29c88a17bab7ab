"""A limit on what the process holds, what is left of it, and what a piece of work needs: known before it begins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from empo_bi.errors import MemoryLimitError
from empo_bi.runtime.byte_sizes import Size, as_text, parse_size
from empo_bi.runtime.compilation import compilations
from empo_bi.runtime.machine import resident_bytes

BASE_BYTES = 200_000_000  # what Python, libraries and compiled kernels take once all are loaded, as measured
UNLOADED = 12 << 20  # kernels and libraries that are loaded when they are first used
_COMPILED = ". Kernels were compiled by this process, which takes some 100 MB: the same call needs less the next time"
# What is taken where nobody sets a limit: of what was read, and of what waits to be written.
CACHE_BYTES = 256 << 20
SLICE_BACKLOG, RESULT_BACKLOG = 32 << 20, 64 << 20
STRETCH_BYTES = 32 << 20  # of transitions that are read at a time, of slices that are too large to be held
SPILL_BYTES = 128 << 20  # of a level's transitions, until it ends; beyond that they wait on disk


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
        """The largest first; crumbs are left out."""
        ordered = sorted(self.parts.items(), key=lambda part: -part[1])
        return ", ".join(f"{as_text(nbytes)} for {what}" for what, nbytes in ordered if nbytes >= self.total // 100)


@dataclass(frozen=True)
class Budget:
    """What the process may hold, Python and libraries included; ``limit`` is None if nobody set one."""

    limit: int | None = None

    @classmethod
    def of(cls, limit: Size | None) -> Budget:
        return cls(None if limit is None else parse_size(limit))

    @property
    def held(self) -> int:
        """What the process holds now, code that will be loaded included."""
        return resident_bytes() + UNLOADED

    @property
    def room(self) -> int | None:
        """What is left now."""
        return None if self.limit is None else max(0, self.limit - self.held)

    def share(self, part: float, *, at_most: int) -> int:
        """Some part of the room."""
        room = self.room
        return at_most if room is None else min(at_most, int(part * room))

    def check_base(self, doing: str) -> None:
        """Refuse a limit that is exceeded before anything is done, before it is."""
        base = max(BASE_BYTES, resident_bytes())
        if self.limit is not None and self.limit < base:
            raise MemoryLimitError(
                f"{doing}: memory_limit={as_text(self.limit)} is less than the {as_text(base)} that Python, libraries, "
                "compiled kernels and what the process holds already take by themselves; allow at least "
                f"memory_limit='{math.ceil(1.15 * base / 1e6)}MB'"
            )

    def is_exceeded(self, more: int = 0) -> bool:
        """Whether the process has outgrown its limit, or will with so many bytes more."""
        return self.limit is not None and resident_bytes() + more > self.limit

    def check(self, doing: str, remedy: str, more: int = 0) -> None:
        """Raise :class:`MemoryLimitError` if the process has outgrown its limit, or will with so many bytes more."""
        if self.limit is not None and self.is_exceeded(more):
            held = resident_bytes()
            wanted = f", and needs {as_text(more)} more" if more else ""
            raise MemoryLimitError(
                f"{doing}: the process holds {as_text(held)}, Python and libraries included{wanted}, which is more than "
                f"memory_limit={as_text(self.limit)}. {remedy}{_COMPILED if compilations.n_compiled else ''}"
            )
