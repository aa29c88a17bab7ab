"""Forecasts of the planner for worlds with keys and locked doors, whose states come in waves.

    python benchmarks/bench_keys.py                   # twelve worlds that were not used for fitting: about five minutes
    python benchmarks/bench_keys.py --first 3001      # twelve others
    python benchmarks/bench_keys.py --small           # small worlds, with the planner's rules for worlds of that size

Each world is enumerated up to the longest of some horizons with at most 1.5 million bodies. The planner counts three
quarters of the levels (``--share``) and forecasts the rest; the number of states should be in its range. Seeds below 1000
were used for fitting.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from key_worlds import key_world
from measuring import Table, wanted

from empo_bi import Params, TooManyStatesError, enumerate_dag, plan

PARAMS = Params(gamma_h=0.99, gamma_r=0.99, zeta=2.0, eta=1.1)
HORIZONS = (12, 14, 16, 18, 20, 24, 28)
MOST_BODIES = 1_500_000


def counted(seed: int, is_large: bool) -> tuple[int, int]:
    """The longest horizon that can be enumerated, and the number of states up to it."""
    found = (0, 0)
    for steps in HORIZONS:
        world = key_world(seed, steps, is_large=is_large)
        try:
            dag = enumerate_dag(world, max_states=MOST_BODIES, precision="exact", progress=False)
        except TooManyStatesError:
            break
        found = (steps, dag.n_states)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=2001, help="the first seed")
    parser.add_argument("--worlds", type=int, default=12)
    parser.add_argument("--small", action="store_true", help="small worlds")
    parser.add_argument("--share", type=float, default=0.75, help="the share of levels that the planner may count")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    columns = {"seed": 6, "steps": 6, "bodies seen": 12, "low": 12, "likely": 12, "high": 12, "counted": 12, "ratio": 7}
    table = Table("States of worlds with keys and doors: forecast from some of the levels, against all of them", **columns)
    n_inside, widths, ratios = 0, [], []
    for seed in range(options.first, options.first + options.worlds):
        steps, n_states = counted(seed, not options.small)
        world = key_world(seed, steps, is_large=not options.small)
        found = plan(world, PARAMS, max_levels=int(steps * options.share) + 1, memory="4GB", progress=False, seconds=60)
        states = found.horizons[-1].sizes.states
        is_inside = states.low <= n_states <= states.high
        n_inside += is_inside
        widths.append(states.high / states.likely)
        ratios.append(n_states / states.likely)
        numbers = [f"{number:,.0f}" for number in (states.low, states.likely, states.high, n_states)]
        note = "" if is_inside else "outside the range"
        seen = f"{found.probe.n_bodies:,}"
        table.row(str(seed), f"{steps}", seen, *numbers, f"{states.likely / n_states:.2f}", note=note)
    print(f"\ninside the range: {n_inside} of {options.worlds}   {wanted(n_inside >= options.worlds - 1, 'all but one')}")
    print(f"high is {np.median(widths):.1f} times likely (median; at most {max(widths):.1f});", end=" ")
    print(f"counted is {min(ratios):.2f} to {max(ratios):.2f} times likely, median {np.median(ratios):.2f}")


if __name__ == "__main__":
    main()
