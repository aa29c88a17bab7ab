"""Worlds with keys and doors: their states come in waves, which the planner looks ahead for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from engine import load_quietly

from benchmarks.key_worlds import key_world
from empo_bi import Params, enumerate_dag, load_world, plan
from empo_bi.planner.growth import extrapolated
from empo_bi.planner.lookahead import SeenPairs, log_box, log_boxes_ahead
from empo_bi.planner.probe import Probe

PARAMS = Params(zeta=2)
BEHIND_A_DOOR = """
map: |
  We We We We We We We We
  We Ae Kr Lr .. .. Ay We
  We We We We We We We We
orientations: [e, w]
max_steps: 16
possible_goals: ["1,1", "6,1"]
"""
UNSEEN = range(7001, 7013)  # seeds; those below 1000 were used for fitting


@pytest.fixture(scope="module")
def half_counted() -> list[tuple[list[int], Probe, int]]:
    """Of twelve worlds: bodies that each level adds, and what the planner saw when it counted half of the levels."""
    found = []
    for seed in UNSEEN:
        world: Any = key_world(seed, 14)
        added = [sizes.n_bodies for sizes in enumerate_dag(world, progress=False).levels.sizes]
        probe = plan(world, PARAMS, max_levels=8, memory="4GB", progress=False).probe
        found.append((added, probe, len(probe.levels)))
    return found


def n_inside(cases: list[tuple[list[int], Probe, int]], scale: int, *, looks_ahead: bool) -> int:
    """How many worlds are in the range that is forecast, if each level had so many times as many bodies."""
    n = 0
    for added, probe, n_seen in cases:
        scaled = [scale * number for number in added]
        forecast = extrapolated(scaled[:n_seen], len(added), probe.waves if looks_ahead else ())
        low, high, truth = (np.cumsum(series).sum() for series in (forecast.low, forecast.high, scaled))
        n += bool(low <= truth <= high)
    return n


@pytest.mark.parametrize("scale", [1, 1000])
def test_most_worlds_with_keys_and_doors_are_in_the_range(half_counted: Any, scale: int) -> None:
    assert n_inside(half_counted, scale, looks_ahead=True) >= 11


def test_large_worlds_with_keys_and_doors_would_not_be_without_a_look_ahead(half_counted: Any) -> None:
    """So that the test above can fail: the growth of levels does not show what is behind a door."""
    assert n_inside(half_counted, 1000, looks_ahead=False) <= 6


def test_ranges_are_still_useful(half_counted: Any) -> None:
    for scale, at_most in ((1, 6.0), (1000, 4.5)):
        widths = []
        for added, probe, n_seen in half_counted:
            forecast = extrapolated([scale * number for number in added[:n_seen]], len(added), probe.waves)
            widths.append(forecast.high.cumsum().sum() / forecast.likely.cumsum().sum())
        assert np.median(widths) < at_most


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 0.75])
def test_most_larger_worlds_with_keys_and_doors_are_in_the_range(share: float) -> None:
    inside = 0
    for seed in range(6001, 6013):
        world = key_world(seed, 18, is_large=True)
        found = plan(world, PARAMS, max_levels=int(18 * share) + 1, memory="4GB", progress=False, seconds=60)
        states = found.horizons[-1].sizes.states
        inside += states.low <= enumerate_dag(world, progress=False).n_states <= states.high
    assert inside >= 11


# --- the look ahead ---------------------------------------------------------------------------------------------------


def test_the_look_ahead_finds_what_is_behind_a_door() -> None:
    world = load_quietly(BEHIND_A_DOOR)
    dag = enumerate_dag(world, progress=False)
    seen = SeenPairs(world.layout)
    for t in range(3):
        seen.add(dag.keys(t))
    boxes = log_boxes_ahead(world, seen, dag.keys(2), 14, 10.0)
    everything = SeenPairs(world.layout)
    everything.add(dag.keys(16))
    assert boxes[0] < 0.7 * log_box(everything)
    assert 0.95 * log_box(everything) < boxes[-1] <= log_box(everything)
    assert boxes == sorted(boxes)
    assert (seen.seen_VV <= everything.seen_VV).all()  # nothing that cannot be


def test_pairs_are_noted_once_each() -> None:
    world = load_quietly(BEHIND_A_DOOR)
    dag = enumerate_dag(world, progress=False)
    seen, keys = SeenPairs(world.layout), dag.keys(4)
    first = seen.add(keys)
    assert 0 < len(first) < len(keys)
    assert len(seen.add(keys)) == 0
    some = SeenPairs(world.layout)
    some.add(keys[first])
    assert (some.seen_VV == seen.seen_VV).all()
    rows_SR = world.codec.unpack(keys)
    changing = world.layout.changing_slots
    assert sorted(seen.counts()) == sorted(len(np.unique(rows_SR[:, slot])) for slot in changing)


def test_a_world_that_was_counted_to_the_end_is_not_looked_at() -> None:
    found = plan(load_quietly(BEHIND_A_DOOR), PARAMS, memory="4GB", progress=False)
    assert found.horizons[-1].sizes.is_exact
    assert list(found.probe.waves) == []


def test_what_opens_up_raises_the_forecast_from_the_level_where_it_does() -> None:
    seen = [2000 * t for t in range(1, 41)]
    plain, raised = extrapolated(seen, 44), extrapolated(seen, 44, [0.0, 0.0, 2.0])
    ratio = raised.likely[40:] / plain.likely[40:]
    assert ratio[:2].tolist() == [1, 1]
    assert ratio[2] == pytest.approx(ratio[3])  # the last wave stays
    assert ratio[2] > 2
    assert (raised.high[40:] >= plain.high[40:]).all()
    assert (raised.low == plain.low).all()


# --- ways to run ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "steps"), [("asymmetric_freeing", 6), ("one_key_two_rooms", 7), ("hall_2_rocks", 16)])
def test_a_tight_limit_never_takes_more_than_a_run_on_disk(name: str, steps: int) -> None:
    found = plan(load_world(name, max_steps=steps), PARAMS, steps=[2, steps], memory="4GB", progress=False, max_levels=6)
    for horizon in found.horizons:
        ways = {way.name: way for way in horizon.ways}
        tight, free = ways["on disk, tight limit"], ways["on disk"]
        for guess in ("low", "likely", "high"):
            assert getattr(tight.memory, guess) <= getattr(free.memory, guess)
        assert int(tight.options["memory_limit"].removesuffix("MB")) * 1e6 >= tight.memory.high * 0.99
