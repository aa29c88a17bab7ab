"""A film of a human who goes for a goal, and of the robot that lets him: the one in docs/rollouts.md.

The humans act by what they do over all their goals, but for one of them, who wants one thing. The robot does not know that,
and plays what it always plays. Of many episodes, the first one in which he gets there is shown.

    python examples/make_film.py                                        # freeing.gif
    python examples/make_film.py --out freeing.mp4 --tile 64            # as a video
    python examples/make_film.py --out freeing.png                      # all steps on one picture
    python examples/make_film.py --world locked_in --steps 9 --human 0 --cell 4 1 --out out_of_prison.gif
"""

from __future__ import annotations

import argparse

import numpy as np

from empo_bi import Params, ReachCellGoal, load_world, probability_by_time, solve


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", default="asymmetric_freeing", help="a shipped world or a file")
    parser.add_argument("--steps", type=int, default=12, help="the horizon (default 12)")
    parser.add_argument("--human", type=int, default=1, help="who wants something (default 1)")
    parser.add_argument("--cell", type=int, nargs=2, default=(8, 4), metavar=("X", "Y"), help="where to (default 8 4)")
    parser.add_argument("--seed", type=int, default=0, help="of the episodes (default 0)")
    parser.add_argument("--tile", type=int, help="side of a cell in pixels")
    parser.add_argument("--out", default="freeing.gif", help=".gif, .mp4 or .png (default freeing.gif)")
    options = parser.parse_args()

    world = load_world(options.world, max_steps=options.steps)
    goal = ReachCellGoal(world, options.human, options.cell)
    with solve(world, Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=50)) as solution:
        exact = probability_by_time(solution, goal, goals={options.human: goal})[-1]
        rollouts = solution.rollouts(1000, options.seed, goals={options.human: goal})
        arrived_N = rollouts.attained_NHG[:, solution.humans.index(options.human), solution.goals[options.human].index(goal)]
        print(f"human {options.human} comes to {tuple(options.cell)} in {arrived_N.mean():.1%} of 1,000 episodes")
        print(f"the exact probability is {exact:.1%}")
        shown = int(np.argmax(arrived_N))  # the first one, or number 0 if there is none
        path = rollouts.save(options.out, shown, tile=options.tile, overwrite=True)
    print(f"{path}: episode {shown}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
