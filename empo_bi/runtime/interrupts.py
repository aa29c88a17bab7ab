"""Ctrl-C while compiled code runs: deferred until the current block is done, since kernels cannot be interrupted.

Python raises ``KeyboardInterrupt`` wherever it happens to be, possibly inside numba's own calls, which then fail in odd
ways, up to a crash. A run therefore only notes the first Ctrl-C and stops where that is safe. The second Ctrl-C does what
Python usually does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class Interrupts:
    """Whether Ctrl-C was pressed since this object was made."""

    def __init__(self) -> None:
        self._was_pressed = False

    def note(self, number: int, frame: FrameType | None) -> None:
        if self._was_pressed:
            signal.default_int_handler(number, frame)
        self._was_pressed = True
        with contextlib.suppress(OSError):  # stderr is closed
            os.write(2, b"\nempo_bi: stopping when the current block is done; press Ctrl-C again to stop at once\n")

    def check(self) -> None:
        """Raise ``KeyboardInterrupt`` if Ctrl-C was pressed; called between blocks."""
        if self._was_pressed:
            self._was_pressed = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def kept_interrupts() -> Iterator[Interrupts]:
    """Defer Ctrl-C to :meth:`Interrupts.check`, but only in the main thread and if no other handler is installed."""
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
