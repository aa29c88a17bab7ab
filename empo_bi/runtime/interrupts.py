"""Ctrl-C while compiled code runs: kept until the block in work is done, since kernels cannot be left in the middle.

Python raises ``KeyboardInterrupt`` wherever it happens to be, which may be inside numba's own calls; they then fail in ways
of their own, up to a crash. A run therefore takes note of Ctrl-C, and stops where it is safe. Whoever presses it twice gets
what Python does otherwise.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """Whether Ctrl-C was pressed since this was made."""

    def __init__(self) -> None:
        self._was_pressed = False

    def note(self, number: int, frame: FrameType | None) -> None:
        if self._was_pressed:
            signal.default_int_handler(number, frame)
        self._was_pressed = True
        with contextlib.suppress(OSError):  # nobody is listening
            os.write(2, b"\nempo_bi: stopping when the block in work is done; press Ctrl-C again to stop at once\n")

    def check(self) -> None:
        """Raise ``KeyboardInterrupt`` if it was; called between blocks."""
        if self._was_pressed:
            self._was_pressed = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def kept_interrupts() -> Iterator[Interrupts]:
    """Keep Ctrl-C for :meth:`Interrupts.check`, where that is ours to do: in the main thread, if nobody else handles it."""
    interrupts = Interrupts()
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield interrupts
        return
    signal.signal(signal.SIGINT, interrupts.note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupts.check()
