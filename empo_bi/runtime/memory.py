"""How much memory there is, and how block and cache sizes follow from a limit: the one importer of psutil."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from empo_bi.errors import MemoryLimitError

_UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_CGROUP_LIMITS = (  # version 2, then version 1: limit and usage
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
_DEFAULT_BLOCK, _SMALLEST_BLOCK = 1 << 18, 1 << 12  # (state, profile) pairs
_BYTES_PER_PAIR = 200  # of a block in work: successors, their numbers and probabilities, room to spare
_DEFAULT_CACHE = 256 << 20
SMALLEST_LIMIT = 1_000_000  # less is a slip


@dataclass(frozen=True)
class MemoryPlan:
    """Sizes that follow from a limit in bytes, None for no limit."""

    limit: int | None
    block_entries: int
    cache_bytes: int

    def check(self, doing: str) -> None:
        """Raise :class:`MemoryLimitError` if the process has outgrown its limit."""
        if self.limit is None:
            return
        used = int(psutil.Process().memory_info().rss)
        if used > self.limit:
            raise MemoryLimitError(
                f"{doing}: the process holds {used / 1e6:,.0f} MB, Python and libraries included, more than "
                f"memory_limit={self.limit / 1e6:,.0f} MB. Keep the levels on disk (store=PATH or True; a given place can "
                "be continued), shorten the horizon, or allow more"
            )


def plan_memory(limit: int | float | str | None) -> MemoryPlan:
    """A quarter of the limit for slices in memory, an eighth for the block in work, at most the defaults."""
    if limit is None:
        return MemoryPlan(None, _DEFAULT_BLOCK, _DEFAULT_CACHE)
    nbytes = parse_limit(limit)
    block = max(_SMALLEST_BLOCK, min(_DEFAULT_BLOCK, nbytes // 8 // _BYTES_PER_PAIR))
    return MemoryPlan(nbytes, block, min(_DEFAULT_CACHE, nbytes // 4))


def parse_limit(limit: int | float | str) -> int:
    """Bytes of ``"2GB"``, ``"512 MiB"``, ``2_000_000_000``, or of a fraction of the available memory such as ``0.5``."""
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGT]?I?)B?\s*", limit.upper())
        nbytes = float(found[1]) * _UNITS[found[2]] if found and found[2] in _UNITS else 0.0
    elif isinstance(limit, float) and 0 < limit <= 1:
        nbytes = limit * available_bytes()
    elif isinstance(limit, int | float) and not isinstance(limit, bool):
        nbytes = limit if limit < float("inf") else 0.0
    else:
        nbytes = 0.0
    if nbytes < SMALLEST_LIMIT:
        raise ValueError(
            f"memory_limit={limit!r}; give a size such as '2GB' or '512MiB', a number of bytes (at least a million), or a "
            "fraction of the available memory between 0 and 1"
        )
    return int(nbytes)


def available_bytes() -> int:
    """What this process may still take: the machine's available memory, or what its container leaves, if that is less."""
    left = [int(psutil.virtual_memory().available)]
    for limit_file, usage_file in _CGROUP_LIMITS:
        try:
            limit, usage = Path(limit_file).read_text().strip(), Path(usage_file).read_text().strip()
        except OSError:
            continue
        if limit.isdigit():  # "max" means no limit
            left.append(max(0, int(limit) - int(usage)))
    return min(left)
