"""Progress on stderr: a bar on a terminal or in a notebook, plain lines elsewhere, nothing if the work is short."""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import NoReturn

from tqdm import TqdmWarning

from empo_bi.runtime.byte_sizes import held_text
from empo_bi.runtime.compilation import compilations
from empo_bi.runtime.machine import resident_bytes
from empo_bi.runtime.printable import printable
from empo_bi.runtime.wording import counted

with warnings.catch_warnings():
    warnings.simplefilter("ignore", TqdmWarning)  # in notebooks without ipywidgets, lines are fine and need no warning
    from tqdm.auto import tqdm

BAR_AFTER, BAR_EVERY = 1.0, 0.1  # seconds
LINE_AFTER, LINE_EVERY = 2.0, 10.0
COMPILATION_LINE_EVERY = 3.0  # compiling takes half a minute in all
ALIVE_AFTER, ALIVE_EVERY = 5.0, 60.0  # seconds until a batch says that it is alive, and between such lines
TICK_SECONDS = 1.0  # between looks at the clock
RATE_FROM_SECONDS = 1.0  # a speed that was measured over less time says little
ESTIMATE_FROM_SHARE, ESTIMATE_FROM_SECONDS = 0.01, 30.0  # from then on the measured speed is good for an estimate


class _Bar:
    """A bar on a terminal or in a notebook, plain lines elsewhere; not shown before it is due."""

    def __init__(self, what: str, total: int | None, units: str, *, after: float | None, every: float | None) -> None:
        self._what, self._total, self._units = what, total, units
        self._as_lines = not _is_terminal() and not _is_notebook()
        usual_after, usual_every = (LINE_AFTER, LINE_EVERY) if self._as_lines else (BAR_AFTER, BAR_EVERY)
        self._after, self._every = usual_after if after is None else after, usual_every if every is None else every
        self._begin = time.monotonic()
        self._due, self._has_printed = self._begin + self._after, False
        self._bar: tqdm[NoReturn] | None = None

    def _is_due(self, now: float) -> bool:
        if now < self._due:
            return False
        self._due = now + self._every
        return True

    def _draw(self, count: int, text: str) -> None:
        if self._bar is None:
            amount = "{n_fmt} " if self._total is None else "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} "
            form = "{desc}: " + amount + self._units + "{postfix}"
            self._bar = tqdm(total=self._total, initial=count, desc=self._what, bar_format=form, leave=False)
        self._bar.n = count
        self._bar.set_postfix_str(text)

    def _print(self, text: str) -> None:
        self._has_printed = True
        say(f"{self._what}: {text}")


class LevelBar(_Bar):
    """Progress by levels and blocks: how many are done, states per second, memory, and the time left.

    Parameters
    ----------
    what : the work
    n_levels : how many levels there will be, None if unknown
    n_states : how many states there will be, None if unknown; the time left follows from it, or else from the last level
    limit : bytes that the process may hold, None if there is no limit
    shown : False shows nothing
    after, every : seconds until it is first shown, and between updates
    """

    def __init__(
        self, what: str, n_levels: int | None, shown: bool, *, n_states: int | None = None, limit: int | None = None,
        after: float | None = None, every: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(what, n_levels, "levels", after=after, every=every)
        self._shown, self._n_states, self._limit = shown, n_states, limit
        self._skipped, self._done, self._done_states, self._states_in_work = 0, 0, 0, 0
        self._level: int | None = None
        self._last_level, self._level_seconds = self._begin, 0.0
        self._first: tuple[float, int] | None = None  # when there were states for the first time, and how many
        self._compiling_before = compilations.seconds

    def __enter__(self) -> LevelBar:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._has_printed and raised[0] is None:  # whoever saw it begin wants to see it end
            seconds = _duration(time.monotonic() - self._begin)
            self._print(f"{', '.join([f'{self._skipped + self._done} levels', *self._states()])}, done in {seconds}")

    def skip(self, n_levels: int) -> None:
        """``n_levels`` levels were done before."""
        self._skipped += n_levels

    def block(self, n_states: int) -> None:
        """``n_states`` more states of the current level are done."""
        if self._shown:
            self._states_in_work += n_states
            self._show_if_due()

    def level(self, t: int, n_states: int = 0) -> None:
        """Level ``t`` is done, with all its states."""
        if not self._shown:
            return
        now = time.monotonic()
        self._level_seconds, self._last_level = now - self._last_level, now
        self._level, self._done = t, self._done + 1
        self._done_states, self._states_in_work = self._done_states + n_states, 0
        self._show_if_due()

    def _show_if_due(self) -> None:
        now = time.monotonic()
        if self._first is None:  # before the first states, kernels were compiled or loaded
            self._first = now, self._done_states + self._states_in_work
            self._compiling_before = compilations.seconds
        if not self._is_due(now):
            return
        count = self._skipped + self._done
        if not self._as_lines:
            self._draw(count, self._text(now, in_bar=True))
            return
        of = "" if self._total is None else f" of {self._total}"
        place = "the first level in work" if self._level is None else f"level {self._level}"
        self._print(f"{place} ({count}{of} done), {self._text(now)}")

    def _text(self, now: float, *, in_bar: bool = False) -> str:
        """States (unless in a bar, which has no room), states per second, memory, and the time left, where known."""
        states = self._done_states + self._states_in_work
        parts = [] if in_bar else self._states()
        measured, seconds = self._measured(states, now)
        if measured and seconds >= RATE_FROM_SECONDS:
            parts.append(f"{_three_digits(measured / seconds)} states/s")
        parts.append(held_text(resident_bytes(), self._limit))
        left = self._seconds_left(states, now)
        return ", ".join([*parts, *([] if left is None else [f"{_duration(left)} left"])])

    def _states(self) -> list[str]:
        states = self._done_states + self._states_in_work
        if not states:
            return []
        return [f"{states / 1e6:,.1f} M states" if states >= 1_000_000 else counted(states, "state")]

    def _measured(self, states: int, now: float) -> tuple[int, float]:
        """States since the first ones, and the seconds that they took; before and between, kernels may be compiled."""
        if self._first is None:
            return 0, 0.0
        then, states_then = self._first
        return states - states_then, now - then - (compilations.seconds - self._compiling_before)

    def _seconds_left(self, states: int, now: float) -> float | None:
        """By states if their number is known; otherwise each remaining level is taken to last as long as the last one.

        None as long as there is too little to go by: the first minute may have been spent on compiling.
        """
        if self._n_states is not None and self._first is not None and states:
            left = max(0, self._n_states - states)
            measured, seconds = self._measured(states, now)
            is_enough = measured >= ESTIMATE_FROM_SHARE * self._n_states or seconds >= ESTIMATE_FROM_SECONDS
            return 0.0 if not left else seconds * left / measured if measured and is_enough else None
        if self._total is None or self._done < 2:
            return None
        return self._level_seconds * max(0, self._total - self._skipped - self._done)


class RunBar(_Bar):
    """Progress by runs of a batch: how many are done, what is at work, and the time left.

    Parameters
    ----------
    what : the work
    n_runs : how many runs there are to do
    shown : False shows nothing
    at_work : says what workers do at the moment, "" if that is unknown

    While a batch is at work, a thread looks at the clock, so that it says something even before the first run is done.
    """

    def __init__(self, what: str, n_runs: int, shown: bool, at_work: Callable[[], str] = str) -> None:
        super().__init__(what, n_runs, "runs", after=None, every=None)
        self._n_runs, self._shown, self._done, self._at_work = n_runs, shown, 0, at_work
        self._first: tuple[float, int] | None = None  # when runs were done for the first time, and how many
        is_off = self._as_lines or not shown
        self._runs: tqdm[NoReturn] = tqdm(
            total=n_runs, unit="run", desc=what, delay=self._after, leave=False, disable=is_off
        )
        self._alive_due, self._lock, self._is_over = self._begin + ALIVE_AFTER, threading.Lock(), threading.Event()
        self._ticker = threading.Thread(target=self._tick_on, name="empo_bi-progress", daemon=True)

    def __enter__(self) -> RunBar:
        if self._shown:
            self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        if self._shown:
            self._ticker.join()
        self._runs.close()

    def update(self, n: int) -> None:
        """``n`` more runs are done."""
        with self._lock:
            self._done += n
            self._runs.update(n)
            now = time.monotonic()
            if self._first is None:  # before the first run, workers were started and kernels loaded
                self._first = now, self._done
            if self._as_lines and self._shown and self._is_due(now):
                self._line(now, "")

    def tick(self) -> None:
        """Time has passed, whether anything was done or not."""
        at_work = self._at_work()
        with self._lock:
            now = time.monotonic()
            if not self._as_lines:
                if now - self._begin >= self._after:
                    self._runs.set_postfix_str(at_work)
            elif now >= self._alive_due:
                self._line(now, at_work)

    def _tick_on(self) -> None:
        while not self._is_over.wait(TICK_SECONDS):
            self.tick()

    def _line(self, now: float, at_work: str) -> None:
        self._alive_due = now + ALIVE_EVERY
        then, done_then = (now, 0) if self._first is None else self._first
        done = self._done - done_then
        left = f", {_duration((now - then) * (self._n_runs - self._done) / done)} left" if done else ""
        taken = f" after {_duration(now - self._begin)}" if self._first is None else ""
        doing = f"; at work: {at_work}" if at_work else ""
        self._print(f"{self._done:,} of {counted(self._n_runs, 'run')} done{taken}{left}{doing}")


class CompilationBar(_Bar):
    """Progress of compiling a kernel: how many of its functions are done, and the time taken."""

    def __init__(self, what: str, n_functions: int) -> None:
        super().__init__(what, n_functions, "functions", after=None, every=None)
        self._n_functions = n_functions
        if self._as_lines:
            self._every = COMPILATION_LINE_EVERY

    def to(self, n_done: int) -> None:
        """``n_done`` functions are done."""
        now = time.monotonic()
        if not self._is_due(now):
            return
        if self._as_lines:
            done = f"{n_done} of {counted(self._n_functions, 'function')} done"
            self._print(f"{done}, {_duration(now - self._begin)}")
        else:
            self._draw(n_done, _duration(now - self._begin))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._has_printed:
            self._print(f"done in {_duration(time.monotonic() - self._begin)}")


def say(text: str) -> None:
    """Print a line on stderr, if there is one, without breaking a bar."""
    if sys.stderr is not None:  # without it, tqdm would use stdout
        tqdm.write(printable(f"empo_bi: {text}"), file=sys.stderr)


def _is_terminal() -> bool:
    return bool(getattr(sys.stderr, "isatty", bool)())


def _is_notebook() -> bool:
    return any(kind.__module__ == "tqdm.notebook" for kind in tqdm.__mro__)


def _three_digits(number: float) -> str:
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
