"""Both planning phases on disk: what humans can attain against and with the robot, what the robot does, and how it goes.

    python examples/phase2_backward_induction.py
    python examples/phase2_backward_induction.py --world jobst_challenges/asymmetric_freeing --steps 15
    python examples/phase2_backward_induction.py --world locked_in --zeta 2 --beta-r 30 --rollouts 3 --seed 1
    python examples/phase2_backward_induction.py --world my_world.yaml --out runs/mine --workers 4 --memory-limit 2GB

With --out, results are kept: a run that was stopped continues there, and the next one finds them. `first_world.py --list`
lists the shipped worlds.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import empo_bi
from empo_bi import GridWorld, compute_human_policy_prior, compute_robot_policy, load_world
from empo_bi.runtime.machine import peak_bytes

MOST_STEPS, QUICK_STEPS = 15, 8  # unless --steps says otherwise
MOST_FRAMES, MOST_ROWS = 6, 8  # shown of a rollout, and of a table
PARAMETERS = [
    ("beta_h", 10.0, "how strictly humans pursue a goal; inf allowed"), ("gamma_h", 0.99, "the humans' discount factor"),
    ("beta_r", 10.0, "exponent of the robot's power law"), ("gamma_r", 0.99, "the robot's discount factor"),
    ("zeta", 2.0, "risk aversion over goals"), ("xi", 1.0, "aversion to inequality between humans"),
    ("eta", 1.1, "aversion to inequality over time"),
]  # fmt: skip


def goals_of(world: GridWorld, human: int) -> dict[Any, float]:
    """The human's goals at the start, with their weights; a goal that is listed twice counts twice."""
    goals: dict[Any, float] = {}
    if world.possible_goal_generator is not None:
        for goal, weight in world.possible_goal_generator.generate(world.initial_state(), human):
            goals[goal] = goals.get(goal, 0.0) + weight
    return goals


def megabytes(nbytes: float) -> str:
    return f"{nbytes / 1e6:,.1f} MB"


def estimate(world: GridWorld, options: argparse.Namespace) -> None:
    """What the ways to run would take, before anything is computed; the one on disk is taken."""
    params = empo_bi.Params(**{name: vars(options)[name] for name, *_ in PARAMETERS})
    print(empo_bi.plan(world, params, memory=options.memory_limit, workers=options.workers).comparison() + "\n")


def timed(what: str, compute: Callable[[], Any]) -> Any:
    begin = time.perf_counter()
    result = compute()
    print(f"{what}: {time.perf_counter() - begin:.2f} s, peak memory {megabytes(peak_bytes())}")
    return result


def solve(world: GridWorld, options: argparse.Namespace, folder: Path) -> tuple[Any, ...]:
    """Both phases, the way they are documented."""
    humans, robots = world.human_agent_indices, world.robot_agent_indices
    shared: Any = {
        "use_disk_slicing": True, "use_compression": True, "disk_cache_dir": folder, "gamma_h": options.gamma_h,
        "parallel": options.workers != 1, "num_workers": options.workers if options.workers != 1 else None,
        "memory_limit": options.memory_limit,
    }  # fmt: skip
    print(f"peak memory so far: {megabytes(peak_bytes())}, most of it Python, its libraries and compiled kernels")
    phase_1 = {"beta_h": options.beta_h, "return_Vh": True, **shared}
    prior, Vh = timed("phase 1", lambda: compute_human_policy_prior(world, humans, **phase_1))
    phase_2 = {name: getattr(options, name) for name in ("beta_r", "gamma_r", "zeta", "xi", "eta")} | shared
    policy, Vr, Vhe = timed("phase 2", lambda: compute_robot_policy(
        world, humans, robots, human_policy_prior=prior, return_values=True, **phase_2,
    ))  # fmt: skip
    on_disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"on disk: {megabytes(on_disk)} in {folder}" + ("" if options.out else ", which goes when this ends") + "\n")
    return prior, Vh, policy, Vr, Vhe


def compare(world: GridWorld, Vh: Any, Vhe: Any) -> None:
    """The humans' values at the start, by goal. Tables leave out zeros, so they are read with ``get``."""
    state = world.initial_state()
    print("Values at the start: if the robot did its worst (V_h), and with this robot (V_h^e).")
    print("A goal that is attained already is worth nothing in phase 1, and in phase 2 as much as staying there.\n")
    print(f"{'human':7}{'goal':38}{'against':>9}{'with':>9}{'change':>9}")
    for human in world.human_agent_indices:
        before, after = (view.get(state, {}).get(human, {}) for view in (Vh, Vhe))
        change = {goal: after.get(goal, 0.0) - before.get(goal, 0.0) for goal in goals_of(world, human)}
        changed = sorted((goal for goal in change if abs(change[goal]) >= 1e-4), key=lambda goal: -abs(change[goal]))
        for goal in changed[:MOST_ROWS]:
            values = f"{before.get(goal, 0.0):9.4f}{after.get(goal, 0.0):9.4f}{change[goal]:+9.4f}"
            print(f"{human:<7}{goal!r:38}{values}" + ("  attained already" if goal.is_achieved(state) else ""))
        print(f"{human:<7}of {len(change)} goals, {len(changed)} change by 0.0001 or more\n")


def show_policy(world: GridWorld, policy: Any, Vr: Any) -> None:
    state = world.initial_state()
    print(f"The robot's value at the start is V_r = {Vr[state]:.6g}, and what it does there, most likely first:")
    for profile, probability in sorted(policy(state).items(), key=lambda item: -item[1])[:MOST_ROWS]:
        names = ", ".join(world.action_names[action] for action in profile) or "(there is no robot)"
        print(f"  {names:24}{probability:7.4f}  {'#' * round(40 * probability)}".rstrip())
    print()


def rollout(world: GridWorld, prior: Any, policy: Any, seed: int) -> None:
    """One run with goals drawn by weight: humans pursue them, the robot does not know them."""
    np.random.seed(seed)  # noqa: NPY002 (the policies draw from NumPy's global generator)
    world.reset(seed=seed)
    states, profiles, goals = [world.initial_state()], [], {}
    for human in world.human_agent_indices:
        known, weights = zip(*goals_of(world, human).items(), strict=True)
        goals[human] = known[np.random.choice(len(known), p=np.array(weights) / sum(weights))]  # noqa: NPY002
    while not world.is_terminal(states[-1]):
        actions = [0] * len(world.agents)
        for human, goal in goals.items():
            actions[human] = prior.sample(states[-1], human, goal)
        for robot, action in zip(world.robot_agent_indices, policy.sample(states[-1]), strict=True):
            actions[robot] = action
        states.append(world.step(actions)[4]["state"])
        profiles.append(actions)
    for human, goal in goals.items():
        when = next((f"attained at step {state[0]}" for state in states if goal.is_achieved(state)), "not attained")
        print(f"human {human} wants {goal!r}: {when}")
    chosen = np.unique(np.linspace(0, len(states) - 1, MOST_FRAMES).round().astype(int))
    print_side_by_side([f"step {i}\n{world.map_text(states[i])}".splitlines() for i in chosen])
    for agent in range(len(world.agents)):
        print(f"agent {agent}:", *(world.action_names[profile[agent]] for profile in profiles))
    print()


def print_side_by_side(frames: Sequence[list[str]]) -> None:
    width = max(map(len, frames[0])) + 3
    n = max(1, shutil.get_terminal_size((120, 0)).columns // width)
    for i in range(0, len(frames), n):
        rows = zip(*frames[i : i + n], strict=True)
        print(*("".join(line.ljust(width) for line in row).rstrip() for row in rows), "", sep="\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", default="jobst_challenges/asymmetric_freeing", help="a shipped world's name, or a file")
    parser.add_argument("--steps", type=int, metavar="N", help=f"horizon (default: that of the file, at most {MOST_STEPS})")
    for name, default, meaning in PARAMETERS:
        option, text = f"--{name.replace('_', '-')}", f"{meaning} (default {default:g})"
        parser.add_argument(option, type=float, default=default, metavar="X", help=text)
    parser.add_argument("--rollouts", type=int, metavar="N", default=2, help="runs to show (default 2)")
    parser.add_argument("--seed", type=int, metavar="N", default=0, help="of the first run; then 1 more each (default 0)")
    parser.add_argument("--memory-limit", metavar="SIZE", help="what the process may hold, for example 2GB")
    parser.add_argument("--workers", type=int, metavar="N", default=1, help="threads; -1 for one per core (default 1)")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="keep everything in this folder, and use what is there")
    parser.add_argument("--quick", action="store_true", help=f"at most {QUICK_STEPS} steps and one run")
    return parser.parse_args()


def main() -> None:
    options = parse()
    try:
        empo_bi.Params(**{name: vars(options)[name] for name, *_ in PARAMETERS})  # complain before the work
        world = load_world(options.world)
        steps = min(world.max_steps, MOST_STEPS) if options.steps is None else options.steps
        world = load_world(options.world, max_steps=min(steps, QUICK_STEPS) if options.quick else steps)
        print(f"{world}\n\n{world.map_text()}\n\n{world.describe()}\n")
        estimate(world, options)
        with tempfile.TemporaryDirectory() as temporary:
            prior, Vh, policy, Vr, Vhe = solve(world, options, options.out or Path(temporary))
            compare(world, Vh, Vhe)
            show_policy(world, policy, Vr)
            for i in range(min(options.rollouts, 1) if options.quick else options.rollouts):
                rollout(world, prior, policy, options.seed + i)
    except (empo_bi.EmpoError, ValueError) as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
