"""How much is measured: ``quick`` only shows that everything runs, ``small`` takes minutes, ``full`` half an hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

QUICK = "quick"


@dataclass(frozen=True)
class Sizes:
    """Numbers of rounds, and sizes of the problems of each section."""

    rounds: int  # how often what is timed is repeated
    bandwidth_bytes: int
    oracle_steps: int
    storm_steps: int
    spin_steps: int
    mdp_states: int
    mdp_actions: int
    mdp_entries: int
    mdp_steps: int
    mdp_goals: int
    streaming_steps: int  # of asymmetric_freeing; 40 or more have a million bodies
    growth_horizons: Sequence[int]
    growth_seconds: float  # no larger problem is begun after one that took so long
    startup_cold_runs: int  # half a minute each
    streaming_rounds: int
    streaming_workers: Sequence[int]  # the first is repeated, and counts
    streaming_horizons: tuple[int, int]  # of a room whose levels stop growing at step 10
    growth_rooms: Sequence[int]  # cells along each side
    growth_goals: Sequence[int]


SIZES = {
    QUICK: Sizes(
        1, 2**22, 2, 8, 4, 300, 4, 1500, 4, 3, 8, (4, 8), 1.0, startup_cold_runs=0, streaming_rounds=1,
        streaming_workers=(1,), streaming_horizons=(3, 6), growth_rooms=(2, 3), growth_goals=(1, 4),
    ),
    "small": Sizes(
        5, 2**28, 5, 15, 12, 70_000, 64, 5_400_000, 15, 18, 30, (5, 10, 15, 20, 30, 60), 5.0, startup_cold_runs=1,
        streaming_rounds=1, streaming_workers=(1,), streaming_horizons=(15, 60), growth_rooms=(3, 5, 8, 12, 16, 20),
        growth_goals=(1, 10, 50, 200),
    ),
    "full": Sizes(
        7, 2**29, 8, 15, 15, 70_000, 64, 5_400_000, 15, 18, 50, (5, 10, 15, 20, 25, 30, 40, 50, 60), 120.0,
        startup_cold_runs=3, streaming_rounds=2, streaming_workers=(1, 2), streaming_horizons=(15, 60),
        growth_rooms=(3, 4, 5, 6, 8, 10, 12, 16, 20), growth_goals=(1, 2, 5, 10, 20, 50, 100, 200),
    ),
}  # fmt: skip
