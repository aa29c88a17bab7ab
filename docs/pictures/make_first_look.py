"""The picture at the top of the README: a world, and what a robot makes of it. Takes some seconds.

python docs/pictures/make_first_look.py                # writes first_look.png beside this file
python docs/pictures/make_first_look.py --out here.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import empo_bi
from empo_bi import events, probability_by_time

STEPS = 12
PARAMS = empo_bi.Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=50)  # those of the README
LEFT, RIGHT = "#D55E00", "#0072B2"  # vermillion and blue of Okabe and Ito
ROCKS = {"left": (2, 2), "right": (8, 2)}
EPISODES = 4000


def numbers(n_steps: int = STEPS) -> dict[str, Any]:
    """What is drawn: by step, the humans' expected power and how likely each rock has been moved; and episodes."""
    world = empo_bi.load_world("asymmetric_freeing", max_steps=n_steps)
    solution = empo_bi.solve(world, PARAMS, progress=False)
    steps = range(n_steps)  # nothing is left to attain in the last one
    power_TH = np.array([solution.reached[t] @ solution.values.X_h[t] for t in steps])
    moved = [events.thing_gone("rock", cell) for cell in ROCKS.values()]
    return {
        "world": world,
        "policy": solution.robot_policy(world.initial_state()),
        "power_TH": power_TH,
        "moved_ET": probability_by_time(solution, moved),
        "episodes": solution.rollouts(EPISODES, seed=1),
    }


def usual_episode(found: dict[str, Any]) -> tuple[list[Any], int]:
    """States of an episode in which the robot mostly does what is usual at each step, and when the right human gets out."""
    action_NT = found["episodes"].action_NTI[:, :, 2]
    usual_T = np.array([np.bincount(column, minlength=4).argmax() for column in action_NT.T])
    for i in np.argsort(-(action_NT == usual_T).sum(axis=1), kind="stable").tolist():
        states = found["episodes"].states(i)
        out = [t for t, state in enumerate(states) if state[1][1][:2] != states[0][1][1][:2]]
        if out:
            return states, out[0]
    raise SystemExit("the right human gets out in none of the episodes: draw more of them")


def show_world(axes: Any, world: Any, state: Any, title: str) -> None:
    axes.imshow(world.render(state, tile=64), interpolation="nearest")
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_axis_off()


def draw(found: dict[str, Any], path: Path) -> None:
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "font.family": "DejaVu Sans"})
    figure = plt.figure(figsize=(9.6, 4.9), dpi=110, facecolor="white", layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)  # some white around it, for pages that are dark
    grid = figure.add_gridspec(2, 2, width_ratios=[1.15, 1])
    world = found["world"]
    states, out = usual_episode(found)
    forward = found["policy"][(3,)]
    show_world(
        figure.add_subplot(grid[0, 0]), world, states[0], f"Start: the robot will go right, with probability {forward:.2f}"
    )
    show_world(figure.add_subplot(grid[1, 0]), world, states[out], f"Step {out} of an episode: the right human is out")

    power = figure.add_subplot(grid[0, 1])
    steps = np.arange(len(found["power_TH"]))
    for h, (name, colour, marker) in enumerate([("left human", LEFT, "o"), ("right human", RIGHT, "s")]):
        power.plot(steps, found["power_TH"][:, h], color=colour, marker=marker, markersize=4)
        power.annotate(name, (5.2, found["power_TH"][5, h]), textcoords="offset points", xytext=(0, -15), color=colour)
    power.set(ylim=(0, None), ylabel="power $X_h$, expected")
    power.set_title("What the humans can attain, by step", fontsize=10, loc="left")

    moved = figure.add_subplot(grid[1, 1], sharex=power)
    for e, (name, colour, marker) in enumerate([("left rock", LEFT, "o"), ("right rock", RIGHT, "s")]):
        moved.plot(found["moved_ET"][e], color=colour, marker=marker, markersize=4)
        moved.annotate(name, (9, found["moved_ET"][e][9]), textcoords="offset points", xytext=(0, 6 - 20 * e), color=colour)
    moved.set(ylim=(-0.03, 1.05), xlabel="step", ylabel="probability", xticks=range(0, STEPS + 1, 2))
    moved.set_title("The rock has been pushed away, by step", fontsize=10, loc="left")
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("first_look.png"))
    options = parser.parse_args()
    draw(numbers(), options.out)
    print(f"{options.out}: {options.out.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
