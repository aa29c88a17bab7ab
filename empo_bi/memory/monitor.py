"""Watches the machine's memory during work; frees caches, pauses or stops when little is left."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import numpy as np

from empo_bi.errors import MemoryPressureError
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.byte_sizes import Size, parse_size
from empo_bi.runtime.machine import available_and_total, trim, used_bytes
from empo_bi.runtime.wording import short_repr

_log = logging.getLogger(__name__)

GiveBack = Callable[[], None]


def check_monitor(**given: float) -> None:
    """Check share, interval and duration, in this order, under the names that the caller uses."""
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float | np.number):
            raise TypeError(f"{name}={short_repr(value)} is a {type(value).__name__}; give a number")
    (share, free), (interval, states), (duration, seconds) = given.items()
    if not 0 <= free < 1:
        raise ValueError(f"{share}={free!r}; give a share from 0 (off) to below 1")
    if not states >= 1:
        raise ValueError(f"{interval}={states!r}; give a number of states, 1 or more")
    if not seconds >= 0:
        raise ValueError(f"{duration}={seconds!r}; give seconds, 0 or more")


@suggests_names()
class MemoryMonitor:
    """Watches the machine's memory, or the container's, whichever is tighter.

    When little memory is left, work frees its caches and continues in smaller blocks; if that is not enough, it pauses
    until there is room; if there is still none after the pause, it stops. Levels finished on disk are kept, and the same
    call continues from there.

    Parameters
    ----------
    min_free_fraction : float between 0 and 1
        The share of memory that must stay free; 0 switches the monitor off.
    check_interval : int
        States between two checks; there are never more than four checks a second.
    pause_duration : float, seconds
        How long to wait for free memory. Work continues as soon as there is room; if there is none by then,
        :class:`MemoryPressureError` is raised, which is also a ``KeyboardInterrupt``.
    verbose : bool
        Log what is done, and why.
    enabled : bool
    ceiling : int, float or str, optional
        Behave as on a machine with this much memory, for example ``"8GB"``. Memory of other processes counts.
    """

    def __init__(
        self,
        min_free_fraction: float = 0.1,
        check_interval: int = 100,
        pause_duration: float = 60.0,
        verbose: bool = True,
        enabled: bool = True,
        *,
        ceiling: Size | None = None,
    ) -> None:
        check_monitor(min_free_fraction=min_free_fraction, check_interval=check_interval, pause_duration=pause_duration)
        self.min_free_fraction, self.check_interval, self.pause_duration = min_free_fraction, check_interval, pause_duration
        self.verbose, self.enabled = verbose, enabled and min_free_fraction > 0
        self.ceiling = None if ceiling is None else parse_size(ceiling, "ceiling")
        self._last_step, self._next_step, self._next_look = 0, 0, 0.0

    def __enter__(self) -> MemoryMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get_free_memory_fraction(self) -> float:
        free, total = available_and_total()
        if self.ceiling is not None and self.ceiling < total:
            free, total = min(free, max(0, self.ceiling - used_bytes())), self.ceiling
        return free / total

    def get_memory_usage_fraction(self) -> float:
        return 1.0 - self.get_free_memory_fraction()

    def is_memory_low(self) -> bool:
        return self.enabled and self.get_free_memory_fraction() < self.min_free_fraction

    def check(
        self, step: int, force: bool = False, *, give_back: GiveBack | None = None, between: GiveBack | None = None
    ) -> None:
        """Check, if ``check_interval`` steps have passed since the last check, and act if memory is low.

        ``give_back`` is called first: it frees what can be read or computed again. ``between`` is called while waiting,
        and may raise.
        """
        if not self.enabled or not (force or self._is_time(step)):
            return
        if self.is_memory_low():
            self._relieve(give_back, between)

    def _is_time(self, step: int) -> bool:
        """At most four checks a second: compiled kernels do a hundred states in a fraction of a millisecond."""
        now = time.monotonic()
        if step < self._last_step:  # other work, which counts from the beginning
            self._next_step = step
        self._last_step = step
        if step < self._next_step or now < self._next_look:
            return False
        self._next_step, self._next_look = step + self.check_interval, now + 0.25
        return True

    def _relieve(self, give_back: GiveBack | None, between: GiveBack | None) -> None:
        if give_back is not None:
            self._say("freeing caches and continuing in smaller blocks")
            give_back()
            trim()
            if not self.is_memory_low():
                return
        self._say(f"pausing for up to {self.pause_duration:.0f} s, until there is room")
        until = time.monotonic() + self.pause_duration
        while time.monotonic() < until:
            time.sleep(min(0.2, self.pause_duration))
            if between is not None:
                between()
            if not self.is_memory_low():
                self._say("continuing", is_low=False)
                return
        if self.is_memory_low():
            raise MemoryPressureError(
                f"memory is low: {self._situation()}, even after a pause of {self.pause_duration:.0f} s. Close other "
                "programs, keep levels on disk (out=PATH, where the same call continues), or lower min_free_memory_fraction"
            )

    def _situation(self) -> str:
        return f"{self.min_free_fraction:.0%} free memory required, {self.get_free_memory_fraction():.1%} available"

    def _say(self, what: str, *, is_low: bool = True) -> None:
        if self.verbose:
            text = f"memory is low ({self._situation()}): {what}" if is_low else f"memory is available again: {what}"
            _log.warning("%s", text)


def check_memory(step: int, min_free_fraction: float = 0.1, check_interval: int = 100, pause_duration: float = 60.0) -> None:
    """Check once every ``check_interval`` steps, as :class:`MemoryMonitor` does."""
    if step % check_interval == 0:
        MemoryMonitor(min_free_fraction, check_interval, pause_duration).check(step, force=True)
