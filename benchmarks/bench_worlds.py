"""How fast worlds are: the compiled block path against the plain oracle, on the same states, in one run.

Run with `make bench`, or

    python benchmarks/bench_worlds.py                      # the tables and start times: a minute or two
    python benchmarks/bench_worlds.py --worlds locked_in   # another world
    python benchmarks/bench_worlds.py --no-start           # without the cold start, which compiles everything anew

An *expansion* is one (state, profile): all its successors with their probabilities. Everything runs on one core. Figures of
one run may be compared with each other; machines differ. CPU seconds are used, the best of several repetitions.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the oracle lives there

from oracle.gridworld import OracleWorld, parse  # noqa: E402

from empo_bi import GridWorld, load_world, worlds  # noqa: E402
from empo_bi.world.pettingzoo import ParallelGridWorld  # noqa: E402

DEFAULT_WORLDS = (
    "asymmetric_freeing",
    "first_steps",
    "locked_in",
    "off_switch",
    "ice_rink",
    "heavy_boots",
    "remote_control",
)
START = """
import time
begin = time.perf_counter()
import empo_bi
world = empo_bi.load_world("asymmetric_freeing")
world.transition_probabilities(world.initial_state(), [3, 3, 3])
print(time.perf_counter() - begin)
"""


def best_cpu_seconds(function: Callable[[], Any], repeat: int = 5) -> float:
    seconds = []
    for _ in range(repeat):
        begin = time.process_time()
        function()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def reachable_sample(world: GridWorld, levels: int, size: int, seed: int = 0) -> tuple[int, np.ndarray]:
    """A step and a random sample of the states reachable in that many steps, packed."""
    rng = np.random.default_rng(seed)
    key_SW = world.initial_key
    for _ in range(levels):
        key_SW = np.unique(world.expand(key_SW).key_KW, axis=0)
        key_SW = key_SW[rng.permutation(len(key_SW))[:size]]
    return levels, key_SW


def seconds_of_oracle(oracle: OracleWorld, states: list[tuple]) -> float:
    profiles = list(oracle.profiles())

    def run() -> None:
        for state in states:
            for profile in profiles:
                oracle.transitions(state, profile)

    return best_cpu_seconds(run, repeat=1)


def oracle_of(name: str) -> OracleWorld:
    path = worlds.find(name)
    assert path is not None
    return parse(path.read_text(encoding="utf-8"))


def compare(name: str, *, oracle_expansions: int = 2000, rounds: int = 5) -> dict[str, Any]:
    """Engine and oracle on the same states, the engine's block repeated until it can be timed.

    They take turns, and the best time of each counts: a virtual machine may be half as fast from one second to the next.
    """
    world, oracle = load_world(name), oracle_of(name)
    levels = min(6, world.max_steps - 1)
    n_profiles = len(world.all_profiles)
    step, key_SW = reachable_sample(world, levels, max(1, oracle_expansions // n_profiles))
    states = world.decode(step, key_SW)
    block_SW = np.repeat(key_SW, max(1, 200_000 // (len(key_SW) * n_profiles)), axis=0)
    times = [(best_cpu_seconds(lambda: world.expand(block_SW)), seconds_of_oracle(oracle, states)) for _ in range(rounds)]
    engine = min(time_ for time_, _ in times) / (len(block_SW) * n_profiles)
    plain = min(time_ for _, time_ in times) / (len(states) * n_profiles)
    entries = len(world.expand(key_SW).prob_K) / (len(key_SW) * n_profiles)
    return {
        "world": name.split("/")[-1], "agents": len(world.agents), "actions": world.action_space.n,
        "bits": sum(field.width for field in world.layout.fields), "outcomes": entries,
        "engine_ns": engine * 1e9, "oracle_us": plain * 1e6, "rate": 1 / engine, "ratio": plain / engine,
    }  # fmt: skip


def print_comparison(names: list[str]) -> None:
    print("Compiled block path against the oracle, same states, one core\n")
    columns = (
        ("agents", 7),
        ("actions", 8),
        ("bits", 6),
        ("outcomes", 9),
        ("engine", 10),
        ("oracle", 11),
        ("per second", 12),
    )
    head = f"{'world':22}" + "".join(f"{name:>{width}}" for name, width in columns) + f"{'ratio':>9}"
    print(head, "-" * len(head), sep="\n")
    for name in names:
        row = compare(name)
        print(
            f"{row['world']:22}{row['agents']:7}{row['actions']:8}{row['bits']:6}{row['outcomes']:9.2f}"
            f"{row['engine_ns']:7.0f} ns{row['oracle_us']:8.1f} us{row['rate'] / 1e6:10.2f} M{row['ratio']:8.0f}x"
        )


def print_cost_of_objects() -> None:
    """The same room, plain and with objects in a closed chamber where nobody gets: only their presence is paid for."""
    print("\nWhat a world pays for objects that are there (in a chamber nobody can enter) or not\n")
    room = [
        "We We We We We We We",
        "We Ay .. .. Ro .. We",
        "We .. .. .. .. .. We",
        "We .. Ro .. Ae .. We",
        "We We We We We We We",
    ]
    chambers = {
        "nothing special": "We We We We We We We",
        "lava, unsteady ground, bush, goal": "We La Un Bu Gg La We",
        "buttons and switches (7 actions)": "We Ki Pa dK dP CB We",
        "keys, doors, ball, box (7 actions)": "We Kr Lr Bg Xb Or We",
    }
    print(f"{'chamber':38}{'bits':>6}{'7 actions':>14}{'4 actions':>14}")
    for label, chamber in chambers.items():
        grid = "\n".join([*room, chamber, room[0]])
        times = []
        for actions in ("object", "small"):
            world = load_world({"map": grid, "max_steps": 50}, actions=actions)
            _, key_SW = reachable_sample(world, 8, 2000)
            n = len(key_SW) * len(world.all_profiles)
            times.append(best_cpu_seconds(lambda world=world, key_SW=key_SW: world.expand(key_SW), repeat=40) / n * 1e9)  # type: ignore[misc]
            bits = sum(field.width for field in world.layout.fields)
        print(f"{label:38}{bits:6}{times[0]:11.0f} ns{times[1]:11.0f} ns")


def seconds_of_episodes(env: Any, actions: list[Any]) -> float:
    """CPU seconds of as many steps as there are actions, with the resets that they need."""

    def run() -> None:
        env.reset(seed=0)
        for one in actions:
            _, _, terminated, _, _ = env.step(one)
            if terminated is True or (terminated is not False and any(terminated.values())):
                env.reset()

    return best_cpu_seconds(run)


def print_steps_per_second(names: list[str], n: int = 3000) -> None:
    """A single environment under random actions: gymnasium's interface, and PettingZoo's on top of it."""
    print(
        f"\nSteps per second of one environment, one core, random actions, resets included\n\n{'world':22}{'gymnasium':>11}",
        end="",
    )
    print(f"{'PettingZoo':>12}")
    for name in names:
        world = load_world(name)
        parallel = ParallelGridWorld(world)
        profiles = np.random.default_rng(0).integers(world.action_space.n, size=(n, len(world.agents))).tolist()
        named = [dict(zip(parallel.possible_agents, profile, strict=True)) for profile in profiles]
        rates = [n / seconds_of_episodes(world, profiles), n / seconds_of_episodes(parallel, named)]
        print(f"{name:22}{rates[0]:11,.0f}{rates[1]:12,.0f}")


def print_start_times() -> None:
    print("\nStart: import, load asymmetric_freeing, first transition (a new process each)\n")
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        for label in ("cold (nothing compiled yet)", "warm", "warm again"):
            begin = time.perf_counter()
            done = subprocess.run([sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=True)
            whole = time.perf_counter() - begin
            print(f"{label:30}{float(done.stdout):7.2f} s, {whole:.2f} s with the interpreter's own start")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--worlds", nargs="+", default=list(DEFAULT_WORLDS), metavar="WORLD", help="shipped worlds to compare"
    )
    parser.add_argument("--no-start", action="store_true", help="leave out cold and warm start times")
    options = parser.parse_args()
    print_comparison(options.worlds)
    print_cost_of_objects()
    print_steps_per_second(options.worlds)
    if not options.no_start:
        print_start_times()


if __name__ == "__main__":
    main()
