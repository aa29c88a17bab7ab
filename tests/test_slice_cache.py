"""The cache of slices: never more than its limit, the last used ones stay, and what is read ahead is read once."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from empo_bi.dag.slices import BodySlice
from empo_bi.store.cache import LevelCache


class Shelf:
    """Slices of 100 bytes each, but for number 9, which has 10,000; counts how often each is read."""

    def __init__(self) -> None:
        self.read_counts: dict[int, int] = {}

    def read(self, t: int) -> BodySlice:
        if t == 13:
            raise OSError("a bad sector")
        self.read_counts[t] = self.read_counts.get(t, 0) + 1
        n = 2500 if t == 9 else 25
        return BodySlice(value=t, members=range(1), added=range(1), succ_K=np.zeros(n, dtype=np.int32))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=40), st.integers(0, 600))
def test_a_cache_gives_the_right_slices_and_keeps_to_its_limit(wanted: list[tuple[int, bool]], limit: int) -> None:
    cache = LevelCache(Shelf().read, limit)
    for t, ahead in wanted:
        if ahead:
            cache.prefetch([t, (t + 1) % 10])
        assert cache.get(t).value == t
        assert cache.nbytes <= limit
    cache.close()
    assert cache.nbytes == 0


def test_the_last_used_slices_stay() -> None:
    shelf = Shelf()
    cache = LevelCache(shelf.read, 300)
    for t in (0, 1, 2, 0, 3):  # 3 takes the place of 1
        cache.get(t)
    for t in (0, 2, 3):
        cache.get(t)
    assert shelf.read_counts == {0: 1, 1: 1, 2: 1, 3: 1}
    cache.get(1)
    assert shelf.read_counts[1] == 2


def test_what_is_read_ahead_is_not_read_again() -> None:
    shelf, gate = Shelf(), threading.Event()

    def slowly(t: int) -> BodySlice:
        gate.wait(10)
        return shelf.read(t)

    cache = LevelCache(slowly, 1000)
    cache.prefetch([4, 5])
    cache.prefetch([4])
    gate.set()
    assert (cache.get(4).value, cache.get(5).value) == (4, 5)
    assert shelf.read_counts == {4: 1, 5: 1}
    cache.close()


def test_an_error_in_reading_ahead_shows_when_the_slice_is_wanted() -> None:
    cache = LevelCache(Shelf().read, 1000)
    cache.prefetch([13, 1])
    assert cache.get(1).value == 1
    with pytest.raises(OSError, match="a bad sector"):
        cache.get(13)
    cache.close()
