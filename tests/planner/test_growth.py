"""How many states levels to come will have: forecasts are ordered, begin where counting ended, and know a full world."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from empo_bi import TooManyStatesError, enumerate_dag, load_world, worlds
from empo_bi.planner.growth import Range, extrapolated

COUNTS = st.lists(st.integers(0, 10**9), min_size=1, max_size=60)


@given(seen=COUNTS, more=st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_guesses_are_ordered_finite_and_begin_with_what_was_seen(seen: list[int], more: int) -> None:
    found = extrapolated(seen, len(seen) + more)
    assert found.n_seen == len(seen)
    for guess in (found.low, found.likely, found.high):
        assert len(guess) == len(seen) + more
        assert guess[: len(seen)].tolist() == seen
        assert np.isfinite(guess).all()
    assert (found.low >= 0).all()
    assert (found.low <= found.likely).all()
    assert (found.likely <= found.high * (1 + 1e-9)).all()


@given(seen=COUNTS, more=st.integers(0, 20))
def test_a_full_world_adds_nothing(seen: list[int], more: int) -> None:
    found = extrapolated([*seen, 0], len(seen) + 1 + more)
    for guess in (found.low, found.likely, found.high):
        assert guess.tolist() == [*seen, *([0] * (more + 1))]


def test_what_was_counted_to_the_end_is_exact() -> None:
    found = extrapolated([1, 5, 14, 20], 4)
    assert found.low.tolist() == found.likely.tolist() == found.high.tolist() == [1, 5, 14, 20]
    shorter = extrapolated([1, 5, 14, 20], 2)
    assert shorter.high.tolist() == [1, 5]


def test_after_few_levels_the_last_is_repeated_and_may_grow_fast() -> None:
    found = extrapolated([1, 8], 4)
    assert found.low.tolist() == [1, 8, 0, 0]
    assert found.likely.tolist() == [1, 8, 8, 8]
    assert found.high.tolist() == pytest.approx([1, 8, 8 * 1.5**5, 8 * 2**5])


def test_growth_like_a_power_is_continued_and_may_end() -> None:
    """A world that grows like t cubed and has not begun to fill: the highest guess is at least that, the likely one not."""
    cubes = [t**3 for t in range(1, 21)]
    found = extrapolated(cubes, 40)
    truth = np.arange(21, 41) ** 3.0
    assert (found.high[20:] >= truth).all()
    assert (found.likely[20:] <= truth).all()
    assert found.likely[20:].sum() > 0.2 * truth.sum()


def test_a_world_that_is_filling_is_not_taken_for_one_that_grows() -> None:
    filling = [round(1e6 * np.exp(-(((t - 15) / 6) ** 2))) for t in range(24)]  # the peak was at 15
    found = extrapolated(filling, 48)
    left = sum(1e6 * np.exp(-(((t - 15) / 6) ** 2)) for t in range(24, 48))
    assert found.low[24:].sum() <= left <= found.high[24:].sum()
    assert found.likely[24:].sum() < filling[-1] * 24


def test_in_most_shipped_worlds_what_is_counted_later_is_in_the_range() -> None:
    """One doubling ahead of what was seen; no forecast knows of rooms that nobody has entered yet."""
    inside, near, n = 0, 0, 0
    for name in worlds.available():
        steps = load_world(name).max_steps // 2 * 2
        if steps < 8:
            continue
        try:
            dag = enumerate_dag(load_world(name, max_steps=steps), max_states=40_000, progress=False)
        except TooManyStatesError:
            continue
        added = [sizes.n_bodies for sizes in dag.levels.sizes]
        if np.cumsum(added).tolist() == dag.level_sizes:  # nested
            found = extrapolated(added[: steps // 2 + 1], steps + 1)
            low, likely, high = (guess.cumsum().sum() for guess in (found.low, found.likely, found.high))
            n += 1
            inside += low <= dag.n_states <= high
            near += likely / 1.5 <= dag.n_states <= likely * 1.5
    assert n >= 25
    assert inside >= 0.9 * n, f"{inside} of {n}"
    assert near >= 0.6 * n, f"{near} of {n}"


def test_ranges_are_added_and_scaled() -> None:
    total = Range(1, 2, 4) + Range.exactly(10) * 0.5
    assert total == Range(6, 7, 9)
    assert not total.is_exact
    assert Range.exactly(3).is_exact
