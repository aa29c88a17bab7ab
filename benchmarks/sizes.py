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
    streaming_steps: int  # of asymmetric_freeing; 40 have a million bodies
    growth_horizons: Sequence[int]
    growth_seconds: float  # no larger problem is begun after one that took so long


SIZES = {
    QUICK: Sizes(1, 2**22, 2, 8, 4, 300, 4, 1500, 4, 3, 8, (4, 6, 8), 1.0),
    "small": Sizes(5, 2**28, 5, 15, 12, 70_000, 64, 5_400_000, 15, 18, 40, (5, 10, 15, 20, 30, 60), 5.0),
    "full": Sizes(7, 2**29, 8, 15, 15, 70_000, 64, 5_400_000, 15, 18, 40, (5, 10, 15, 20, 25, 30, 40, 50, 60), 60.0),
}
