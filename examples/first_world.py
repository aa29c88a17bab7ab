"""A first look at a world: draw it, ask what may happen next, count what can happen at all.

Run it with a world of your choice:

    python examples/first_world.py
    python examples/first_world.py --world doors_and_keys/locked_in --steps 8
    python examples/first_world.py --world my_world.yaml --picture my_world.png
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import empo_bi
from empo_bi import GridWorld, enumerate_dag, load_world
from empo_bi.world.text import describe_agents


def show(world: GridWorld) -> None:
    print(world, "\n")
    print(world.to_text(), "\n")
    print(describe_agents(world.world_spec, world.initial_state()), "\n")


def show_contested_step(world: GridWorld) -> None:
    """What happens if everybody goes forward (or, without such an action, takes the first one)."""
    action = world.action_names.index("forward") if "forward" in world.action_names else 0
    transitions = world.transition_probabilities(world.initial_state(), [action] * len(world.agents))
    if transitions is None:
        print("The world is over before it begins: max_steps is 0.\n")
        return
    print(f"If everybody takes action {action} ({world.action_names[action]}), this may happen:")
    for probability, state in transitions:
        print(f"\n  with probability {probability:g}")
        print("    " + world.to_text(state).replace("\n", "\n    "))
    print()


def count_states(world: GridWorld) -> None:
    """Enumerate everything that can happen. A *body* is a state but for the step: its transitions are computed once."""
    begin = time.perf_counter()
    dag = enumerate_dag(world)
    seconds = time.perf_counter() - begin
    print("step      states")
    for step, size in enumerate(dag.level_sizes):
        print(f"{step:4}  {size:10,}")
    print(f"\n{dag.summary()}, enumerated in {seconds:.2f} s")


def save_picture(world: GridWorld, path: Path) -> None:
    try:
        from matplotlib.image import imsave
    except ImportError:
        raise SystemExit("saving a picture needs matplotlib: pip install 'empo-bi[analysis]'") from None
    imsave(path, world.render(tile=48))
    print(f"\npicture written to {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", default="jobst_challenges/asymmetric_freeing", help="a shipped world's name or a file")
    parser.add_argument("--steps", type=int, help="horizon, instead of the file's max_steps")
    parser.add_argument("--picture", type=Path, help="also write a PNG of the initial state")
    parser.add_argument("--list", action="store_true", help="list the shipped worlds and stop")
    options = parser.parse_args()
    if options.list:
        for name in empo_bi.worlds.available():
            print(f"{name:40} {empo_bi.worlds.purpose(name)}")
        return
    try:
        world = load_world(options.world, **({} if options.steps is None else {"max_steps": options.steps}))
    except empo_bi.EmpoError as error:
        raise SystemExit(f"error: {error}") from None
    show(world)
    show_contested_step(world)
    count_states(world)
    if options.picture:
        save_picture(world, options.picture)


if __name__ == "__main__":
    main()
