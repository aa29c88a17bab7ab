"""Ctrl-C: a KeyboardInterrupt between two blocks, whatever the moment, and the run can be continued."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from empo_bi import Params, enumerate_dag, load_world, solve
from empo_bi.memory.watch import Watch
from empo_bi.runtime.interrupts import Interrupts, kept_interrupts


@pytest.fixture(autouse=True)
def _ctrl_c_is_pythons() -> Iterator[None]:
    """Also where tests run in the background, and it would be ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_is_kept_until_somebody_asks() -> None:
    with kept_interrupts() as interrupts:
        press()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        interrupts.check()  # it was told
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_nobody_asked_for_is_told_in_the_end() -> None:
    with pytest.raises(KeyboardInterrupt), kept_interrupts():
        press()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_whoever_presses_twice_is_not_kept_waiting() -> None:
    with kept_interrupts() as interrupts:
        press()
        with pytest.raises(KeyboardInterrupt):
            press()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()


def test_what_others_do_about_ctrl_c_is_left_alone() -> None:
    pressed = []
    signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    try:
        with kept_interrupts() as interrupts:
            press()
            interrupts.check()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert pressed == [1]


def test_other_threads_do_not_touch_signals() -> None:
    found: list[Any] = []

    def work() -> None:
        with kept_interrupts() as interrupts:
            found.append(interrupts)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert isinstance(found[0], Interrupts)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("doing", ["enumerating", "solving"])
def test_a_run_that_was_interrupted_continues_with_the_same_numbers(
    doing: str, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, params = load_world("asymmetric_freeing", max_steps=8), Params(gamma_h=0.9)
    original, looks = Watch.look, []

    def look(self: Any, *args: Any) -> None:
        if self._doing == doing:
            looks.append(doing)
            if len(looks) == 5:
                press()
        original(self, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Watch, "look", look)
        with pytest.raises(KeyboardInterrupt):
            solve(world, params, out=tmp_path, workers=workers, progress=False)
    assert len(looks) == 5, "it stopped at once"
    found, expected = solve(world, params, out=tmp_path, progress=False), solve(world, params, progress=False)
    for t in range(9):
        assert (found.values.V_r[t] == expected.values.V_r[t]).all()


def test_interrupts_at_any_moment_are_keyboard_interrupts() -> None:
    world = load_world("asymmetric_freeing", max_steps=9)
    enumerate_dag(world, progress=False)
    moments = range(1, 40, 3)
    stopped = []
    for milliseconds in moments:
        timer = threading.Timer(milliseconds / 1000, press)
        try:
            timer.start()  # inside, since the interrupt may come before the next line
            for _ in range(1000):
                enumerate_dag(world, progress=False)
        except KeyboardInterrupt:
            stopped.append(milliseconds)
        finally:
            timer.join()
    assert stopped == list(moments)
