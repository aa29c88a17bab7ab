"""Make the pictures of docs/questions.md again: ``python docs/pictures/make_pictures.py [FOLDER]``, about ten seconds.

Needs the extra ``analysis``. Pictures are written beside this file unless another folder is given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import empo_bi
from empo_bi import analysis, events
from empo_bi.analysis import plots

DPI, STEP = 110, 6  # a step of 6 in 255 between shades keeps pictures of grids small, and hardly shows
PARAMS = empo_bi.Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=50)
DOUBTFUL = empo_bi.Params(gamma_h=0.99, gamma_r=0.99, zeta=2, beta_r=10, xi=2)


def freeing(params: empo_bi.Params = PARAMS) -> Any:
    """Two humans behind a rock each, and a robot that can push them away."""
    return empo_bi.solve(empo_bi.load_world("asymmetric_freeing", max_steps=12), params, progress=False)


def ledge() -> Any:
    """A human with two ways home: a slippery ledge above lava, or a path that the robot may clear."""
    return empo_bi.solve(empo_bi.load_world("hazards/slippery_ledge", max_steps=12), PARAMS, progress=False)


def value_maps() -> Any:
    solution = ledge()
    return plots.plot_maps([analysis.value_map(solution, 1, goal, 7, others="mean") for goal in range(8)])


def power_map() -> Any:
    solution = freeing()
    return plots.plot_maps([analysis.power_map(solution, 1, level, agent=2) for level in (2, 4, 6, 8)])


def reached() -> Any:
    return plots.plot_reached(freeing(), 2)


def arrows() -> Any:
    robot, human = freeing(), ledge()
    _, axes = plt.subplots(1, 2, figsize=(12, 4.3), layout="constrained", width_ratios=[1.75, 1])
    plots.plot_arrows(analysis.arrow_map(robot, 2, 4), axes[0], under=analysis.presence_map(robot, 2, 4))
    to_flag = human.goals[1][4]
    values = analysis.value_map(human, 1, to_flag, 7, others="mean")
    plots.plot_arrows(analysis.arrow_map(human, 1, 7, goal=to_flag, others="mean"), axes[1], under=values)
    return axes


def decision() -> Any:
    solution = freeing()
    start = solution.world.initial_state()
    _, axes = plt.subplots(1, 2, figsize=(12.5, 2.9), layout="constrained", width_ratios=[1, 1.25])
    plots.plot_state(solution.world, start, axes[0])
    plots.plot_decision(analysis.decision_at(solution, start), axes[1])
    return axes


def course() -> Any:
    solution = freeing()
    episodes = solution.rollouts(40, seed=1)
    best = int(np.argmax(episodes.attained_NHG[:, solution.humans.index(1)].sum(axis=1)))
    return plots.plot_course(analysis.course_of(solution, episodes.states(best)))


def timeline() -> Any:
    happenings = {
        "the right rock is gone": events.thing_gone("rock", (8, 2)),
        "human 1 is out": events.agent_in(1, (7, 2, 9, 4)),
        "the left rock is gone": events.thing_gone("rock", (2, 2)),
    }
    return plots.plot_probability_by_time(freeing(), list(happenings.values()), list(happenings))


def levels() -> Any:
    return plots.plot_levels(freeing())


def comparison() -> Any:
    return plots.plot_comparison(analysis.compare(freeing(), freeing(DOUBTFUL)))


PICTURES: list[Callable[[], Any]] = [
    value_maps, power_map, reached, arrows, decision, course, timeline, levels, comparison,
]  # fmt: skip


def main(folder: Path) -> None:
    mpl.use("Agg")
    for make in PICTURES:
        figure = np.ravel(make())[0].figure
        drawn = BytesIO()
        figure.savefig(drawn, dpi=DPI, bbox_inches="tight", pad_inches=0.08)
        plt.close(figure)
        path = folder / f"{make.__name__}.png"
        shade_YX3 = np.asarray(Image.open(drawn).convert("RGB"), dtype=np.float64)
        shade_YX3 = 255 - np.minimum(255, ((255 - shade_YX3) / STEP).round() * STEP)  # white stays white
        Image.fromarray(shade_YX3.astype(np.uint8)).save(path, optimize=True)
        print(f"{path} {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
