"""The Promela model of a gridworld: SPIN finds exactly the states that the engine finds."""

from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from engine import load_quietly
from worked_examples import walled

from benchmarks.peers import spin
from benchmarks.peers.promela import UnsupportedWorldError, orders_of, promela_of
from empo_bi import enumerate_dag, load_world

needs_spin = pytest.mark.skipif(spin.why_missing() is not None, reason=str(spin.why_missing()))
QUICK_TO_COMPILE = ["-O0" if flag == "-O2" else flag for flag in spin.FLAGS]


def small_world(rows: str, steps: int, orientations: str, **keys: Any) -> Any:
    return load_quietly({"map": walled(rows), "max_steps": steps, "orientations": list(orientations), **keys})


def run_spin(world: Any, folder: Path, **options: Any) -> spin.SpinRun:
    return spin.enumerate_with_spin(world, folder, hash_bits=18, flags=QUICK_TO_COMPILE, **options)


# --- with SPIN --------------------------------------------------------------------------------------------------------


@needs_spin
@pytest.mark.parametrize("steps", [4, 6])
def test_spin_finds_as_many_states_as_the_dag_has(steps, tmp_path):
    world = load_world("asymmetric_freeing", max_steps=steps)
    assert run_spin(world, tmp_path).n_states == enumerate_dag(world, progress=False).n_states


@needs_spin
def test_without_the_step_spin_finds_as_many_states_as_the_dag_has_bodies(tmp_path):
    world = load_world("asymmetric_freeing", max_steps=7)
    assert run_spin(world, tmp_path, count="bodies").n_states == enumerate_dag(world, progress=False).n_bodies


SMALL_WORLDS = {
    "two want one cell": ((".. Ay .. Ae ..", 4, "ew"), {}),
    "two face each other and cannot swap": (("Ay Ae .. / .. .. ..", 5, "ew"), {}),
    "a row of three leaves a gap": (("Ay Ay Ae ..", 4, "eee"), {}),
    "the loser pushes on what the winner brought": ((".. Ae .. / .. Bl .. / Ay .. ..", 4, "se"), {}),
    "chains of rocks and blocks, and who may push them": (("Ay Bl Ro .. / .. Bl Ae ..", 5, "en"), {}),
    "rocks are interchangeable": ((".. .. .. .. / .. Ro Ro .. / .. .. .. .. / Ae .. .. ..", 20, "e"), {}),
    "two blocks of conflicts, in the order of their members": (("Ae .. Ay / Bl .. Bl / .. .. Ae", 3, "ewn"), {}),
    "no still and no right": (("Ay .. Ae / .. Bl ..", 5, "ew"), {"action_class": "MinimalActions"}),
    "a map without walls around it": (None, {}),
}  # fmt: skip


@needs_spin
@pytest.mark.parametrize("case", SMALL_WORLDS)
def test_spin_and_the_engine_agree_where(case, tmp_path):
    where, keys = SMALL_WORLDS[case]
    if where is None:
        world = load_quietly({"map": "Ay .. ..\n.. Ro ..\nGg Sw Ae", "max_steps": 5, "orientations": ["e", "n"]})
    else:
        world = small_world(*where, **keys)
    assert run_spin(world, tmp_path).n_states == enumerate_dag(world, progress=False).n_states


@needs_spin
def test_transitions_are_profiles_and_orders_of_execution(tmp_path):
    """16 profiles a state, one more where both want the cell between them, and the entry into the initial state."""
    world = small_world("Ay .. Ae", 3, "ew")
    states = [state for state in world.get_dag(quiet=True)[0] if not world.is_terminal(state)]
    n_conflicts = sum(state[1][0][:3] == (1, 1, 0) and state[1][1][:3] == (3, 1, 2) for state in states)
    assert n_conflicts > 0
    assert run_spin(world, tmp_path).n_transitions == 1 + 16 * len(states) + n_conflicts


@needs_spin
def test_memory_and_time_of_a_run_are_told(tmp_path):
    run = run_spin(small_world("Ay .. Ae", 3, "ew"), tmp_path)
    assert min(run.spin_seconds, run.gcc_seconds, run.pan_seconds) > 0
    table = 2**18 * 8
    assert table < run.reported_bytes < 100 * 2**20
    assert run.peak_bytes < 100 * 2**20, "what this process has in memory must not count"


@needs_spin
def test_a_search_without_enough_memory_is_an_error(tmp_path):
    world = load_world("asymmetric_freeing", max_steps=12)
    with pytest.raises(spin.SpinError, match=r"memory|MEMLIM|not completed"):
        run_spin(world, tmp_path, memory_limit_mb=3)


# --- without ----------------------------------------------------------------------------------------------------------


def test_a_search_that_was_not_deep_enough_is_an_error():
    output = (
        "error: max search depth too small\n... errors: 0\n 10 states, stored\n 20 transitions (=\n 1.0 memory usage (Mbyte)"
    )
    pan = spin.ChildRun(0, output, 1.0, 1.0, 1)
    with pytest.raises(spin.SpinError, match="max search depth too small"):
        spin._read(pan, 1.0, 1.0, is_depth_meant=False)
    assert spin._read(pan, 1.0, 1.0, is_depth_meant=True).n_states == 10


def test_a_rounded_number_of_states_is_an_error():
    output = "errors: 0\n 1.2345679e+08 states, stored\n 2e+09 transitions (=\n 1.0 memory usage (Mbyte)"
    with pytest.raises(spin.SpinError, match="rounded"):
        spin._read(spin.ChildRun(0, output, 1.0, 1.0, 1), 1.0, 1.0, is_depth_meant=False)


def test_a_report_that_cannot_be_read_is_an_error():
    with pytest.raises(spin.SpinError, match="lacks"):
        spin._read(spin.ChildRun(0, "Segmentation fault", 1.0, 1.0, 1), 1.0, 1.0, is_depth_meant=False)


@pytest.mark.parametrize(
    ("rows", "keys", "what"),
    [
        ("Ay La Bu", {}, "lava at 2,1"),
        ("Ay .. Kr", {}, "key at 3,1"),
        ("Ay .. ..", {"action_class": "MineActions"}, "action build of MineActions"),
        (".. .. ..", {}, "a map without agents"),
    ],
)
def test_what_the_model_does_not_know_is_refused_by_name(rows, keys, what):
    with pytest.raises(UnsupportedWorldError, match=re.escape(what)):
        promela_of(small_world(rows, 3, "e", **keys))


def test_large_maps_are_refused():
    world = small_world(" / ".join([" ".join([".."] * 15)] * 15 + [" ".join(["Ay"] + [".."] * 14)]), 3, "e")
    with pytest.raises(UnsupportedWorldError, match="over 255"):
        promela_of(world)


def test_orders_are_those_of_the_specification():
    """7.5 to 7.7: a winner from each block, in the order of the blocks, then the others by index."""
    orders = orders_of([0, 1, 2])
    assert set(orders) == set(permutations(range(3)))
    same_01, same_02 = "claim[0] == claim[1]", "claim[0] == claim[2]"
    assert orders[1, 0, 2] == [f"{same_01} && {same_02}"]
    assert orders[1, 2, 0] == [f"{same_01} && claim[0] != claim[2]"]
    assert orders[2, 1, 0] == [f"{same_02} && claim[0] != claim[1]"]
    assert f"{same_01} && claim[0] != claim[2]" in orders[0, 2, 1]  # the loser 1 waits for 2, who has no rival
    assert f"{same_01} && claim[0] != claim[2]" not in orders[0, 1, 2]


def test_an_option_for_each_profile_and_order():
    """Of 16 profiles of two agents, one has both go forward, in one of two orders."""
    assert promela_of(small_world("Ay .. Ae", 3, "ew")).count(":: d_step {") == 17
