"""Progress on stderr: a bar on a terminal or in a notebook, plain lines elsewhere, nothing if the work is short."""

from __future__ import annotations

import sys
import time
import warnings
from typing import NoReturn

from tqdm import TqdmWarning

from empo_bi.runtime.byte_sizes import held_text
from empo_bi.runtime.machine import resident_bytes
from empo_bi.runtime.printable import printable
from empo_bi.runtime.wording import counted

with warnings.catch_warnings():
    warnings.simplefilter("ignore", TqdmWarning)  # in notebooks without ipywidgets, lines are fine and need no warning
    from tqdm.auto import tqdm

BAR_AFTER, BAR_EVERY = 1.0, 0.1  # seconds
LINE_AFTER, LINE_EVERY = 2.0, 10.0
COMPILATION_LINE_EVERY = 3.0  # compiling takes half a minute in all
ESTIMATE_FROM_SHARE, ESTIMATE_FROM_SECONDS = 0.01, 30.0  # from then on the measured speed is good for an estimate


class LevelBar:
    """Progress by levels and blocks: how many are done, states per second, memory, and the time left.

    Parameters
    ----------
    what : the work
    n_levels : how many levels there will be, None if unknown
    n_states : how many states there will be, None if unknown; the time left follows from it, or else from the last level
    limit : bytes that the process may hold, None if there is no limit
    shown : False shows nothing
    as_lines : lines instead of a bar, also on a terminal
    after, every : seconds until it is first shown, and between updates
    """

    def __init__(
        self, what: str, n_levels: int | None, shown: bool, *, n_states: int | None = None, limit: int | None = None,
        as_lines: bool, after: float, every: float,
    ) -> None:  # fmt: skip
        self._what, self._n_levels, self._n_states, self._limit = what, n_levels, n_states, limit
        self._shown, self._every = shown, every
        self._skipped, self._done, self._done_states, self._states_in_work = 0, 0, 0, 0
        self._level: int | None = None
        self._begin = self._last_level = time.monotonic()
        self._level_seconds = 0.0
        self._first: tuple[float, int] | None = None  # when there were states for the first time, and how many
        self._due = self._begin + after
        self._as_lines, self._has_printed = as_lines, False
        self._bar: tqdm[NoReturn] | None = None

    def __enter__(self) -> LevelBar:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._has_printed and raised[0] is None:  # whoever saw it begin wants to see it end
            seconds = _duration(time.monotonic() - self._begin)
            say(f"{self._what}: {', '.join([f'{self._skipped + self._done} levels', *self._states()])}, done in {seconds}")

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
        if now < self._due:
            return
        self._due = now + self._every
        count = self._skipped + self._done
        if not self._as_lines:
            self._draw(count, self._text(now, in_bar=True))
            return
        self._has_printed = True
        of = "" if self._n_levels is None else f" of {self._n_levels}"
        place = "the first level in work" if self._level is None else f"level {self._level}"
        say(f"{self._what}: {place} ({count}{of} done), {self._text(now)}")

    def _draw(self, count: int, text: str) -> None:
        if self._bar is None:
            levels = "{n_fmt} levels" if self._n_levels is None else "{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} levels"
            form = "{desc}: " + levels + "{postfix}"
            self._bar = tqdm(total=self._n_levels, initial=count, desc=self._what, bar_format=form, leave=False)
        self._bar.n = count
        self._bar.set_postfix_str(text)

    def _text(self, now: float, *, in_bar: bool = False) -> str:
        """States (unless in a bar, which has no room), states per second, memory, and the time left, where known."""
        states, seconds = self._done_states + self._states_in_work, now - self._begin
        parts = [] if in_bar else self._states()
        if states and seconds > 0:
            parts.append(f"{_three_digits(states / seconds)} states/s")
        parts.append(held_text(resident_bytes(), self._limit))
        left = self._seconds_left(states, now)
        return ", ".join([*parts, *([] if left is None else [f"{_duration(left)} left"])])

    def _states(self) -> list[str]:
        states = self._done_states + self._states_in_work
        if not states:
            return []
        return [f"{states / 1e6:,.1f} M states" if states >= 1_000_000 else counted(states, "state")]

    def _seconds_left(self, states: int, now: float) -> float | None:
        """By states if their number is known; otherwise each remaining level is taken to last as long as the last one.

        None as long as there is too little to go by: the first minute may have been spent on compiling.
        """
        if self._n_states is not None and self._first is not None and states:
            left = max(0, self._n_states - states)
            then, states_then = self._first
            measured, seconds = states - states_then, now - then
            is_enough = measured >= ESTIMATE_FROM_SHARE * self._n_states or seconds >= ESTIMATE_FROM_SECONDS
            return 0.0 if not left else seconds * left / measured if measured and is_enough else None
        if self._n_levels is None or self._done < 2:
            return None
        return self._level_seconds * max(0, self._n_levels - self._skipped - self._done)


def level_bar(
    what: str, n_levels: int | None, shown: bool, *, n_states: int | None = None, limit: int | None = None,
    after: float | None = None, every: float | None = None,
) -> LevelBar:  # fmt: skip
    """A :class:`LevelBar` that suits stderr: a bar on a terminal or in a notebook, plain lines elsewhere."""
    as_lines = _has_lines_only()
    return LevelBar(
        what, n_levels, shown, n_states=n_states, limit=limit, as_lines=as_lines,
        after=(LINE_AFTER if as_lines else BAR_AFTER) if after is None else after,
        every=(LINE_EVERY if as_lines else BAR_EVERY) if every is None else every,
    )  # fmt: skip


class RunBar:
    """Progress by runs of a batch: how many are done, and the time left; a bar, or lines."""

    def __init__(self, what: str, n_runs: int, shown: bool, *, as_lines: bool, after: float, every: float) -> None:
        self._what, self._n_runs, self._done, self._every = what, n_runs, 0, every
        self._first: tuple[float, int] | None = None  # when runs were done for the first time, and how many
        self._due = time.monotonic() + after
        self._as_lines = as_lines and shown
        self._bar = tqdm(total=n_runs, unit="run", desc=what, delay=after, leave=False, disable=as_lines or not shown)

    def __enter__(self) -> RunBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def update(self, n: int) -> None:
        self._done += n
        self._bar.update(n)
        now = time.monotonic()
        if self._first is None:  # before the first run, workers were started and kernels loaded
            self._first = now, self._done
        if self._as_lines and now >= self._due:
            self._due = now + self._every
            then, done_then = self._first
            done = self._done - done_then
            left = f", {_duration((now - then) * (self._n_runs - self._done) / done)} left" if done else ""
            say(f"{self._what}: {self._done:,} of {counted(self._n_runs, 'run')} done{left}")


def run_bar(what: str, n_runs: int, shown: bool) -> RunBar:
    """A :class:`RunBar` that suits stderr, as :func:`level_bar` chooses."""
    as_lines = _has_lines_only()
    after, every = (LINE_AFTER, LINE_EVERY) if as_lines else (BAR_AFTER, BAR_EVERY)
    return RunBar(what, n_runs, shown, as_lines=as_lines, after=after, every=every)


class CompilationBar:
    """Progress of compiling a kernel: how many of its functions are done, and the time taken; a bar, or lines."""

    def __init__(self, what: str, n_functions: int, *, as_lines: bool, after: float, every: float) -> None:
        self._what, self._n_functions, self._as_lines, self._every = what, n_functions, as_lines, every
        self._begin = time.monotonic()
        self._due, self._has_printed = self._begin + after, False
        self._bar: tqdm[NoReturn] | None = None

    def to(self, n_done: int) -> None:
        """``n_done`` functions are done."""
        now = time.monotonic()
        if now < self._due:
            return
        self._due, self._has_printed = now + self._every, True
        if self._as_lines:
            done = f"{n_done} of {counted(self._n_functions, 'function')} done"
            say(f"{self._what}: {done}, {_duration(now - self._begin)}")
            return
        if self._bar is None:
            form = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} functions{postfix}"
            self._bar = tqdm(total=self._n_functions, desc=self._what, bar_format=form, leave=False)
        self._bar.n = n_done
        self._bar.set_postfix_str(_duration(now - self._begin))

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._has_printed:
            say(f"{self._what}: done in {_duration(time.monotonic() - self._begin)}")


def compilation_bar(what: str, n_functions: int) -> CompilationBar:
    """A :class:`CompilationBar` that suits stderr, as :func:`level_bar` chooses."""
    as_lines = _has_lines_only()
    after, every = (LINE_AFTER, COMPILATION_LINE_EVERY) if as_lines else (BAR_AFTER, BAR_EVERY)
    return CompilationBar(what, n_functions, as_lines=as_lines, after=after, every=every)


def say(text: str) -> None:
    """Print a line on stderr, if there is one, without breaking a bar."""
    if sys.stderr is not None:  # without it, tqdm would use stdout
        tqdm.write(printable(f"empo_bi: {text}"), file=sys.stderr)


def _has_lines_only() -> bool:
    return not _is_terminal() and not _is_notebook()


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
