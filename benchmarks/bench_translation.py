"""What translating an environment of EMPO is worth: a sweep over parameters, on one object, in one run.

    python benchmarks/bench_translation.py            # some minutes, most of them for the Python path
    python benchmarks/bench_translation.py --quick    # only to see that it runs

The environment is the tests' stand-in with the interface of a ``MultiGridEnv``; a sample is both phases. Each row is the
same sweep in CPU seconds:

- **translated**: as it is given, the checks included;
- **asked once**: with ``empo_bi_translate = False``; the DAG of the first call is used by all others;
- **asked in each call**: the Python path as it was before that, and as it is for whoever makes a new object each time. Each
  sample costs the same, so some are measured, and the rest is multiplied; the row says how many.

A question to the stand-in takes about 30 microseconds. The original takes some 180 (3.0 s for 16,876), so that with it both
ratios are larger.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import Table, wanted

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # the stand-in and its rules live there

from multigrid_standin import StandIn

from empo_bi import compute_human_policy_prior, compute_robot_policy, load_world
from empo_bi.world.text import to_mapping

WORLD, AT_LEAST = "asymmetric_freeing", 300


def environment(steps: int, *, is_translated: bool) -> StandIn:
    mapping: dict[str, Any] = to_mapping(load_world(WORLD, max_steps=steps).world_spec)
    mapping["possible_goals"] = [goal["goal"] for goal in mapping["possible_goals"]]
    env = StandIn(mapping)
    env.empo_bi_translate = is_translated
    return env


def sample(env: StandIn, beta_r: float) -> float:
    """Both phases, as a script calls them; V_r at the start."""
    humans, robots = env.human_agent_indices, env.robot_agent_indices
    prior = compute_human_policy_prior(env, humans, gamma_h=0.99, quiet=True)
    _, Vr, _ = compute_robot_policy(
        env, humans, robots, human_policy_prior=prior, beta_r=beta_r, gamma_h=0.99, gamma_r=0.99, zeta=2, return_values=True,
        quiet=True,
    )  # fmt: skip
    return float(Vr[env._oracle.initial_state()])


def anew(steps: int, beta_r: float) -> None:
    """Both phases, neither of which finds anything. With or without a prior, phase 2 computes phase 1 along the way."""
    first, second = (environment(steps, is_translated=False) for _ in range(2))
    compute_human_policy_prior(first, first.human_agent_indices, gamma_h=0.99, quiet=True)
    roles = second.human_agent_indices, second.robot_agent_indices
    compute_robot_policy(second, *roles, beta_r=beta_r, gamma_h=0.99, gamma_r=0.99, zeta=2, quiet=True)


def timed(sweep: Callable[[], list[Any]]) -> tuple[float, int, list[Any]]:
    """CPU seconds, questions to the environment, and what was found."""
    StandIn.calls.clear()
    begin = time.process_time()
    found = sweep()
    return time.process_time() - begin, StandIn.calls["transitions"], found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few steps and samples")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--measured", type=int, default=2, help="samples measured where the rest is multiplied")
    options = parser.parse_args()
    steps, n_samples = (2, 3) if options.quick else (options.steps, options.samples)
    betas = [1.0 + i for i in range(n_samples)]
    sample(environment(1, is_translated=True), 1.0)  # imports, and loads kernels

    def on_one(*, is_translated: bool) -> list[float]:
        env = environment(steps, is_translated=is_translated)
        return [sample(env, beta) for beta in betas]

    table = Table(f"{n_samples} samples of {WORLD}, {steps} steps, CPU seconds", path=44, seconds=10, questions=12, ratio=9)
    seconds, questions, ours = timed(lambda: on_one(is_translated=True))
    table.row("translated", f"{seconds:.2f}", f"{questions:,}", "1x")
    once, questions, theirs = timed(lambda: on_one(is_translated=False))
    table.row("asked once", f"{once:.2f}", f"{questions:,}", f"{once / seconds:,.0f}x")
    some = betas[: options.measured]
    part, questions, _ = timed(lambda: [anew(steps, beta) for beta in some])
    each = part / len(some) * n_samples
    name = f"asked in each call ({len(some)} measured, times {n_samples / len(some):g})"
    table.row(name, f"{each:.2f}", f"{questions * n_samples // len(some):,}", f"{each / seconds:,.0f}x")
    if any(abs(here / there - 1) > 1e-6 for there, here in zip(theirs, ours, strict=True)):
        raise AssertionError(f"V_r is {ours} translated, {theirs} when asked")
    print(wanted(each / seconds >= AT_LEAST, f"{AT_LEAST}x faster than asking in each call; found {each / seconds:,.0f}x"))


if __name__ == "__main__":
    main()
