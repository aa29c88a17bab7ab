"""Checks during work: the memory limit, the machine's memory, Ctrl-C, and the memory profile if there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from empo_bi.memory.budget import Budget
from empo_bi.memory.monitor import MemoryMonitor
from empo_bi.memory.profiler import MemoryProfiler
from empo_bi.runtime.interrupts import Interrupts
from empo_bi.runtime.machine import trim


class Watch:
    """Called by work that takes memory, after every block and level.

    Parameters
    ----------
    doing : the work, as messages call it
    remedy : what messages recommend

    Attributes
    ----------
    give_back : frees what can be read or computed again
    owners : bytes of the arrays in memory, by purpose
    after_block : called with the number of states that are done
    interrupts : whether Ctrl-C was pressed
    """

    def __init__(
        self,
        doing: str,
        remedy: str,
        *,
        budget: Budget | None = None,
        monitor: MemoryMonitor | None = None,
        profiler: MemoryProfiler | None = None,
    ) -> None:
        self.budget = Budget() if budget is None else budget
        self._doing, self._remedy = doing, remedy
        self._monitor, self._profiler = monitor, profiler
        self.give_back: Callable[[], None] | None = None
        self.owners: Callable[[], Mapping[str, int]] = dict
        self.after_block: Callable[[int], None] | None = None
        self.interrupts = Interrupts()
        self._n_done, self._level = 0, 0

    def also(self, doing: str) -> Watch:
        """A watch for other work, with the same limit and profile."""
        other = Watch(doing, self._remedy, budget=self.budget, monitor=self._monitor, profiler=self._profiler)
        other.interrupts = self.interrupts
        return other

    def forget(self) -> None:
        """Drop the references to what was watched."""
        self.give_back, self.owners, self.after_block = None, dict, None

    def look(self, n_states: int = 0, more: int = 0) -> None:
        """Check, after ``n_states`` more states and before ``more`` bytes are allocated."""
        self._n_done += n_states
        if self.after_block is not None:
            self.after_block(n_states)
        self.interrupts.check()
        if self._profiler is not None:
            self._profiler.sample()
        if self.budget.is_exceeded(more):
            self._relieve()
            if self._profiler is not None and self.budget.is_exceeded(more):  # the profile should show how it ended
                self._profiler.snapshot(self._doing, self._level, n_states, self.owners(), is_due=True)
        self.budget.check(self._doing, self._remedy, more)
        if self._monitor is not None:
            self._monitor.check(self._n_done, give_back=self.give_back, between=self.interrupts.check)

    def _relieve(self) -> None:
        """Before giving up: free what can be read or computed again, and what the C library keeps."""
        if self.give_back is not None:
            self.give_back()
        trim()

    def level(self, t: int, n_states: int) -> None:
        """A level is done."""
        self._level = t
        if self._profiler is not None:
            self._profiler.snapshot(self._doing, t, n_states, self.owners())
        if self.budget.limit is not None:
            trim()
