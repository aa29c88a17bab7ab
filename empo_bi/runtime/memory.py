"""How much memory there is, and how block and cache sizes follow from a limit: the one importer of psutil."""

from __future__ import annotations

import contextlib
import logging
import re
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from empo_bi.errors import MemoryLimitError, MemoryPressureError

_log = logging.getLogger(__name__)

_UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_CGROUP_LIMITS = (  # version 2, then version 1: limit and usage
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
_DEFAULT_BLOCK, _SMALLEST_BLOCK = 1 << 18, 1 << 12  # (state, profile) pairs
_BYTES_PER_PAIR = 200  # of a block in work: successors, their numbers and probabilities, room to spare
_DEFAULT_CACHE = 256 << 20
_REMEDY = "Keep the levels on disk (store=PATH or True; a given place can be continued), shorten the horizon, or allow more"
SMALLEST_LIMIT = 1_000_000  # less is a slip


@dataclass(frozen=True)
class MemoryPlan:
    """Sizes that follow from a limit in bytes, None for no limit."""

    limit: int | None
    block_entries: int
    cache_bytes: int

    def check(self, doing: str, remedy: str = _REMEDY) -> None:
        """Raise :class:`MemoryLimitError` if the process has outgrown its limit."""
        if self.limit is None:
            return
        used = resident_bytes()
        if used > self.limit:
            raise MemoryLimitError(
                f"{doing}: the process holds {used / 1e6:,.0f} MB, Python and libraries included, more than "
                f"memory_limit={self.limit / 1e6:,.0f} MB. {remedy}"
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


def resident_bytes() -> int:
    """What this process holds, Python and libraries included."""
    return int(psutil.Process().memory_info().rss)


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


def total_bytes() -> int:
    """The machine's memory, or the limit of the container, if that is less."""
    limits = [int(psutil.virtual_memory().total)]
    for limit_file, _ in _CGROUP_LIMITS:
        with contextlib.suppress(OSError):
            text = Path(limit_file).read_text().strip()
            limits += [int(text)] if text.isdigit() else []
    return min(limits)


class MemoryMonitor:
    """Watches the machine's memory, or the container's, and waits when little is left.

    Parameters
    ----------
    min_free_fraction : float between 0 and 1
        Below this share of free memory the work pauses; 0 switches the monitor off.
    check_interval : int
        States between two looks.
    pause_duration : float, seconds
        How long to wait for memory to become free. It goes on as soon as there is room; if there is none by then,
        :class:`MemoryPressureError` is raised.
    verbose : bool
        Say when it pauses, and why.
    enabled : bool
    """

    def __init__(
        self,
        min_free_fraction: float = 0.1,
        check_interval: int = 100,
        pause_duration: float = 60.0,
        verbose: bool = True,
        enabled: bool = True,
    ) -> None:
        for name, value in (
            ("min_free_fraction", min_free_fraction),
            ("check_interval", check_interval),
            ("pause_duration", pause_duration),
        ):
            if isinstance(value, bool) or not isinstance(value, int | float | np.number):
                raise TypeError(f"{name}={value!r} is a {type(value).__name__}; give a number")
        if not 0 <= min_free_fraction < 1:
            raise ValueError(f"min_free_fraction={min_free_fraction!r}; give a share from 0 (off) to below 1")
        if not check_interval >= 1:
            raise ValueError(f"check_interval={check_interval!r}; give a number of states, 1 or more")
        if not pause_duration >= 0:
            raise ValueError(f"pause_duration={pause_duration!r}; give seconds, 0 or more")
        self.min_free_fraction, self.check_interval, self.pause_duration = min_free_fraction, check_interval, pause_duration
        self.verbose, self.enabled = verbose, enabled and min_free_fraction > 0
        self._next_step, self._next_look = 0, 0.0

    def __enter__(self) -> MemoryMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get_free_memory_fraction(self) -> float:
        return available_bytes() / total_bytes()

    def get_memory_usage_fraction(self) -> float:
        return 1.0 - self.get_free_memory_fraction()

    def is_memory_low(self) -> bool:
        return self.enabled and self.get_free_memory_fraction() < self.min_free_fraction

    def check(self, step: int, force: bool = False) -> None:
        """Look, if ``check_interval`` steps have passed since the last look, and wait or raise if memory is short."""
        if not self.enabled or not (force or self._is_time(step)):
            return
        if self.is_memory_low():
            self._wait()

    def _is_time(self, step: int) -> bool:
        """Compiled kernels do a hundred states in a fraction of a millisecond; more than four looks a second would cost."""
        now = time.monotonic()
        if step < self._next_step or now < self._next_look:
            return False
        self._next_step, self._next_look = step + self.check_interval, now + 0.25
        return True

    def _wait(self) -> None:
        free = self.get_free_memory_fraction()
        wanted = f"{self.min_free_fraction:.0%} should be free, {free:.1%} are"
        if self.verbose:
            _log.warning("memory is short (%s): pausing for up to %.0f s", wanted, self.pause_duration)
        until = time.monotonic() + self.pause_duration
        while time.monotonic() < until:
            time.sleep(min(0.2, self.pause_duration))
            if not self.is_memory_low():
                return
        if self.is_memory_low():
            raise MemoryPressureError(
                f"memory is short: {wanted}, also after a pause of {self.pause_duration:.0f} s. Close other programs, keep "
                "levels on disk (use_disk_slicing, or out=PATH, which can be continued), or lower min_free_memory_fraction"
            )


def check_memory(step: int, min_free_fraction: float = 0.1, check_interval: int = 100, pause_duration: float = 60.0) -> None:
    """One look, every ``check_interval`` steps, as :class:`MemoryMonitor` does it."""
    if step % check_interval == 0:
        MemoryMonitor(min_free_fraction, check_interval, pause_duration).check(step, force=True)
