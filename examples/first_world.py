"""A first look at a world: draw it, ask what may happen next, count what can happen at all.

Run it with a world of your choice:

    python examples/first_world.py
    python examples/first_world.py --world doors_and_keys/locked_in --steps 8
    python examples/first_world.py --world my_world.yaml --picture my_world.png
"""

from __future__ import annotations

import argparse
import textwrap
import time
from pathlib import Path

import empo_bi
from empo_bi import GridWorld, enumerate_dag, load_world
from empo_bi.world.png import png_bytes


def show(world: GridWorld) -> None:
    print(world, "\n")
    print(world.to_text(), "\n")
    print(world.describe(), "\n")


def show_first_step(world: GridWorld) -> None:
    """What may happen if everybody goes forward (or, without such an action, takes the first one)."""
    action = world.action_names.index("forward") if "forward" in world.action_names else 0
    transitions = world.transition_probabilities(world.initial_state(), [action] * len(world.agents))
    if transitions is None:
        print("The world is over before it begins: max_steps is 0.\n")
        return
    print(f"If everybody takes action {action} ({world.action_names[action]}):")
    for probability, state in transitions:
        print(f"\n  with probability {probability:.4g}")
        print("    " + world.to_text(state).replace("\n", "\n    "))
    print()


def count_states(world: GridWorld, max_states: int) -> None:
    """Enumerate everything that can happen. A *body* is a state but for the step: its transitions are computed once."""
    begin = time.perf_counter()
    dag = enumerate_dag(world, max_states=max_states)
    seconds = time.perf_counter() - begin
    print("step      states")
    for step, size in enumerate(dag.level_sizes):
        print(f"{step:4}  {size:10,}")
    print(f"\n{dag.summary()}, enumerated in {seconds:.2f} s")


def save_picture(world: GridWorld, path: Path) -> None:
    path.write_bytes(png_bytes(world.render(tile=48)))
    print(f"A picture of {world.world_spec.name} is in {path}.\n")


def check_picture(path: Path) -> None:
    """Complain before the work, not after it."""
    if not path.parent.is_dir():
        raise SystemExit(f"error: there is no folder {path.parent} for the picture")


def list_worlds() -> None:
    for name in empo_bi.worlds.available():
        print(name)
        print(textwrap.fill(empo_bi.worlds.purpose(name), 100, initial_indent="    ", subsequent_indent="    "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", help="a shipped world's name or a file; without it, a tour of two worlds")
    parser.add_argument("--steps", type=int, help="horizon, instead of the file's max_steps")
    parser.add_argument("--max-states", type=int, default=2_000_000, help="give up above so many (default 2,000,000)")
    parser.add_argument("--picture", type=Path, help="also write a PNG of the initial state")
    parser.add_argument("--list", action="store_true", help="list the shipped worlds and stop")
    options = parser.parse_args()
    if options.list:
        list_worlds()
        return
    if options.picture:
        check_picture(options.picture)
    try:
        overrides = {} if options.steps is None else {"max_steps": options.steps}
        world = load_world(options.world or "jobst_challenges/asymmetric_freeing", **overrides)
        if options.picture:
            save_picture(world, options.picture)
        if options.world is None:
            print("A conflict: three agents want one cell, and one of them gets it.\n")
            crossing = load_world("conflicts/three_at_the_crossing")
            show(crossing)
            show_first_step(crossing)
            print("And the standard benchmark: two humans behind rocks, one robot.\n")
        show(world)
        if options.world is not None:
            show_first_step(world)
        count_states(world, options.max_states)
    except empo_bi.EmpoError as error:
        raise SystemExit(f"error: {error}") from None


if __name__ == "__main__":
    main()
