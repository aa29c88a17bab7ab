"""Choosing parameters: what beta_h, gamma_h, zeta, xi, eta and beta_r change, in worlds of a few hundred states.

    python examples/choosing_parameters.py                  # the tables
    python examples/choosing_parameters.py --out FOLDER     # and the pictures of docs/choosing_parameters.md, as PNG

docs/choosing_parameters.md explains what they show.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import empo_bi
from empo_bi import Params

CORRIDOR = {
    "map": ["We We We We We We We We", "We Ay .. .. .. .. .. We", "We We We We We We We We"],
    "orientations": ["e"],
    "max_steps": 12,
    "possible_goals": "all",
    "metadata": {"name": "A corridor, and one human"},
}
STEPS_NEEDED = 5  # to the far end of the corridor
FREEING_STEPS = 8


def arrival(beta_h: float, gamma_h: float) -> list[float]:
    """The probability that a human who wants to be at the far end has been there, after 0, 1, 2, ... steps; exact."""
    world = empo_bi.load_world(CORRIDOR)
    solution = empo_bi.solve(world, Params(beta_h=beta_h, gamma_h=gamma_h), progress=False)
    goal = next(goal for goal in solution.goals[0] if goal.is_achieved((0, ((6, 1, 0),), (), ())))
    on_the_way, there, found = Counter({world.initial_state(): 1.0}), 0.0, [0.0]
    for _ in range(world.max_steps):
        after: Counter[Any] = Counter()
        for state, p in on_the_way.items():
            for action, chance in enumerate(solution.prior(state, 0, goal)):
                for q, successor in world.transition_probabilities(state, [action]) or []:
                    after[successor] += p * chance * q
        there += sum(p for state, p in after.items() if goal.is_achieved(state))
        on_the_way = Counter({state: p for state, p in after.items() if not goal.is_achieved(state)})
        found.append(there)
    return found


def mean_arrival(by_step: Sequence[float]) -> float:
    """The mean number of steps; whoever does not arrive counts as arriving one step after the end."""
    return sum(1 - p for p in by_step)


def power_of(attainment: Sequence[float], zeta: float) -> float:
    """X_h of a human with equally weighted goals that it attains with these probabilities."""
    return sum(v**zeta for v in attainment) / len(attainment)


def reward_of(powers: Sequence[float], xi: float, eta: float) -> float:
    """U_r of a moment in which the humans have these powers."""
    return -((sum(x**-xi for x in powers) / len(powers)) ** eta)


def robot_choices(changes: Mapping[str, Sequence[float]]) -> dict[tuple[str, float], float]:
    """The probability of the robot's best first action in ``asymmetric_freeing``, by parameter and value."""
    usual: dict[str, Any] = {"zeta": 2, "xi": 1, "eta": 1.1, "beta_r": 20, "gamma_h": 0.95}
    cases = [(name, value) for name, values in changes.items() for value in values]
    world = empo_bi.load_world("asymmetric_freeing", max_steps=FREEING_STEPS)
    solutions = empo_bi.solve(world, [Params(**{**usual, name: value}) for name, value in cases], progress=False)
    return {case: float(solution.pi_r[0][0].max()) for case, solution in zip(cases, solutions, strict=True)}


CHANGES = {"beta_r": [1, 5, 20, 50, 200], "zeta": [1, 1.5, 2, 3], "xi": [0.5, 1, 2, 4], "eta": [0.5, 1, 2, 4]}
HUMANS = [(10, 1.0), (10, 0.9), (50, 1.0), (50, 0.9), (50, 0.8)]  # beta_h, gamma_h


def print_tables() -> None:
    print(f"A human who needs {STEPS_NEEDED} steps to the far end of a corridor, and has 12:")
    for beta_h, gamma_h in HUMANS:
        by_step = arrival(beta_h, gamma_h)
        print(f"  beta_h {beta_h:3}, gamma_h {gamma_h}: arrives after {mean_arrival(by_step):4.1f} steps on average, "
              f"in time {by_step[-1]:.0%}")  # fmt: skip
    print("The probability of the robot's best first action in asymmetric_freeing:")
    for (name, value), p in robot_choices(CHANGES).items():
        print(f"  {name} {value:g}: {p:.3f}")


def draw(folder: Path) -> list[Path]:
    """The pictures of the page."""
    import matplotlib.pyplot as plt

    made = []

    def save(name: str, figure: Any) -> None:
        made.append(folder / f"{name}.png")
        figure.savefig(made[-1], dpi=90)
        plt.close(figure)

    figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    for beta_h, gamma_h in HUMANS:
        ax.plot(arrival(beta_h, gamma_h), marker=".", label=f"beta_h {beta_h}, gamma_h {gamma_h:g}")
    ax.axvline(STEPS_NEEDED, color="grey", linestyle=":", label="the shortest way")
    ax.set(xlabel="step", ylabel="has arrived", ylim=(0, 1.03), title="When a human arrives who wants to")
    ax.legend(fontsize="small")
    save("choosing_humans", figure)

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    zetas, shares = [1 + i / 10 for i in range(21)], [0.1 * i for i in range(1, 11)]
    humans = {"one goal of four, surely": [1, 0, 0, 0], "each by a quarter": [0.25] * 4, "two surely": [1, 1, 0, 0]}
    for words, attainment in humans.items():
        axes[0].plot(zetas, [power_of(attainment, zeta) for zeta in zetas], label=words)
    axes[0].set(xlabel="zeta", ylabel="power X_h", title="zeta: certainty counts")
    for xi in (0.5, 1, 2, 4):
        axes[1].plot(shares, [(-reward_of([1, x], xi, 1)) ** (-1 / xi) for x in shares], label=f"xi {xi:g}")
    axes[1].set(xlabel="power of one human, the other has 1", ylabel="mean power", title="xi: who counts")
    for eta in (0.5, 1, 2):
        axes[2].plot(shares, [reward_of([x], 1, eta) for x in shares], label=f"eta {eta:g}")
    axes[2].set(xlabel="power of the human", ylabel="U_r", title="eta: bad moments", ylim=(-30, 0))
    for ax in axes:
        ax.legend(fontsize="small")
    save("choosing_power", figure)

    found = robot_choices(CHANGES)
    figure, axes = plt.subplots(1, len(CHANGES), figsize=(10, 2.8), layout="constrained", sharey=True)
    for ax, (name, values) in zip(axes, CHANGES.items(), strict=True):
        ax.plot(values, [found[name, value] for value in values], marker="o")
        ax.set(xlabel=name, xscale="log", ylim=(0, 1.03))
        ax.set_xticks(values, [f"{value:g}" for value in values])
        ax.set_xticks([], minor=True)
    axes[0].set_ylabel("best first action")
    save("choosing_robot", figure)
    return made


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="draw pictures into this folder; needs matplotlib")
    options = parser.parse_args()
    print_tables()
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        for path in draw(options.out):
            print(path)
