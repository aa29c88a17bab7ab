"""``empo-bi rollout``: episodes of a run, as a film or as text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from empo_bi.cli.common import (
    again_option,
    as_usage_errors,
    goals_and_prior_options,
    json_option,
    made_by_option,
    quiet_option,
    trust_option,
)
from empo_bi.cli.output import echo, print_json
from empo_bi.cli.values import Assignment, Pairs, as_dict
from empo_bi.runtime.atomic_write import checked_place
from empo_bi.runtime.wording import counted

if TYPE_CHECKING:
    from empo_bi.analysis.captions import Caption
    from empo_bi.problem.protocols import Goal
    from empo_bi.results.rollouts import Rollouts
    from empo_bi.results.solution import Solution
    from empo_bi.types import Json

ANYBODY = ""  # whose goal it is follows from the goal
PRINTED = 3  # episodes that are printed step by step if there are more


class HumanGoal(Assignment):
    """``HUMAN=GOAL``, or just the goal if only one human has it."""

    name = "human=goal"
    example = "1=8,2 (human 1 wants to reach cell 8,2)"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        is_goal_alone = isinstance(value, str) and "=" not in value and value.strip()
        return (ANYBODY, str(value).strip()) if is_goal_alone else super().convert(value, param, ctx)


@click.command(short_help="Sample episodes of a run, as a film or as text.")
@click.argument("run", type=click.Path())
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE",
              help="A film: .gif, .mp4, or .png for pictures of all steps. Without it, episodes are printed.")  # fmt: skip
@click.option("--episodes", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
              help="How many episodes; a film shows one after the other.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="The same seed gives the same episodes.")  # fmt: skip
@click.option("--goal", "goals", type=HumanGoal(), multiple=True, metavar="HUMAN=GOAL",
              help="Let a human pursue a goal, given by its cell (1=8,2), its corners (1=7,2,9,4), its number in the list "
              "of goals (1=12), or its name (1=kitchen, or kitchen if only one human has it); repeatable.")  # fmt: skip
@click.option("--columns", type=click.IntRange(min=1), metavar="N",
              help="Show the episodes of a film at the same time, N side by side.")  # fmt: skip
@click.option("--tile", type=click.IntRange(min=8), metavar="PX", help="Side of a cell; by default 48, and 32 for .png.")
@click.option("--pace", type=click.FloatRange(min=0.05), default=0.6, show_default=True, metavar="SECONDS",
              help="Time for each step of a film.")  # fmt: skip
@click.option("--plain", is_flag=True, help="Make a film without numbers.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@made_by_option
@goals_and_prior_options
@trust_option
@again_option
@quiet_option("No bars and no messages; just the result.")
@json_option
def rollout(
    run: str, out: str | None, episodes: int, seed: int, goals: Pairs, columns: int | None, tile: int | None, pace: float,
    plain: bool, force: bool, made_by: str | None, goals_by: str | None, prior_by: str | None,
    trust: bool, memory_limit: float | str | None, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Sample episodes under both policies from RUN, a folder of `empo-bi solve --out` or a run of a batch.

    With --out they become a film. Without, they are printed step by step, followed by how often each goal was attained
    beside the exact probability, and the robot's mean return beside its value.

    \b
    Examples:
      empo-bi solve asymmetric_freeing --steps 12 -p zeta=2 -p beta_r=50 --out runs/mine
      empo-bi rollout runs/mine --out run.gif --seed 3
      empo-bi rollout runs/mine --out run.mp4 --goal 1=8,4 --tile 64 --pace 0.4
      empo-bi rollout runs/mine --out steps.png                    # all steps in one picture
      empo-bi rollout runs/mine --episodes 10000                   # how often each goal is attained
      empo-bi rollout runs/mine --episodes 1000 --json | jq .mean_return
    """
    from empo_bi.solving.opening import open_solution

    _check_file(out, force)
    with open_solution(
        run, world=made_by, goals=goals_by, prior=prior_by, trust=trust, memory_limit=memory_limit, progress=not quiet
    ) as solution:
        given = _by_human([_with_human(solution, human, text) for human, text in goals])
        pursued = {human: _goal_of(solution, human, text) for human, text in given.items()}
        with as_usage_errors():
            rollouts = solution.rollouts(episodes, seed, pursued)
            if out is not None:
                _save(rollouts, out, tile=tile, seconds_per_step=pace, overlay=not plain, columns=columns, overwrite=force)
        if as_json:
            print_json(_content(rollouts, seed, out, n_printed=0 if out is not None else episodes))
        elif out is None:
            echo(_in_words(_content(rollouts, seed, out, n_printed=PRINTED)))
        elif not quiet:
            echo(f"{out}: {counted(episodes, 'episode')}, {Path(out).stat().st_size:,} bytes")


def _check_file(out: str | None, force: bool) -> None:
    """Refuse a wrong --out before a large run is opened."""
    if out is None:
        return
    from empo_bi.analysis.film import SUFFIXES

    if Path(out).suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"--out {out}; give a name that ends in {', '.join(SUFFIXES)}")
    try:
        checked_place(out, force)
    except OSError as error:
        raise click.UsageError(f"--out {error}") from error


def _with_human(solution: Solution, human: str, text: str) -> tuple[str, str]:
    """The human to whom a goal given without one belongs."""
    if human != ANYBODY:
        return human, text
    from empo_bi.results.goal_names import has_goal

    owners = [one for one in solution.humans if len(solution.humans) == 1 or has_goal(solution.goal_columns, one, text)]
    if len(owners) != 1:
        found = f"humans {', '.join(map(str, owners))} have it" if owners else f"no human of {solution.humans} has it"
        raise click.UsageError(f"--goal {text}: {found}; give HUMAN=GOAL, such as {HumanGoal.example}")
    return str(owners[0]), text


def _by_human(given: Pairs) -> dict[int, str]:
    found = {}
    for human, text in as_dict(given, "--goal").items():
        if not human.isdecimal():
            raise click.UsageError(
                f"--goal {human}={text}; {human!r} is not the number of an agent; give {HumanGoal.example}"
            )
        found[int(human)] = text
    return found


def _goal_of(solution: Solution, human: int, text: str) -> Goal:
    """The goal given by its cells, its number, or its name."""
    from empo_bi.results.goal_names import goal_number

    try:
        known = solution.goals.get(human, [])
        by_number = text.strip().isdecimal() and text not in map(repr, known)
        return known[goal_number(solution.goal_columns, human, int(text) if by_number else text)]
    except ValueError as error:
        raise click.UsageError(f"--goal {human}={text}: {error}") from error


def _save(rollouts: Rollouts, out: str, **options: Any) -> None:
    """Write the film; a missing library is reported without a traceback."""
    try:
        rollouts.save(out, episodes=range(len(rollouts)), **options)
    except ImportError as error:
        raise click.UsageError(str(error)) from error


def _content(rollouts: Rollouts, seed: int, out: str | None, n_printed: int) -> Json:
    """Everything that is printed, as JSON; ``n_printed`` episodes step by step."""
    import math

    from empo_bi.analysis.captions import captions_of
    from empo_bi.results.goal_names import label_of
    from empo_bi.results.occupancy import probability_by_time

    solution, n = rollouts.solution, len(rollouts)
    share_HG = rollouts.attained_NHG.mean(axis=0)
    goals = []
    for h, human in enumerate(solution.humans):
        known = solution.goals[human]
        exact_G = probability_by_time(solution, known, goals=rollouts.goals)[:, -1].tolist() if known else []
        goals += [
            {"human": human, "goal": label_of(goal), "attained": float(share_HG[h, g]), "probability": exact_G[g]}
            for g, goal in enumerate(known)
        ]
    spread = float(rollouts.return_N.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan
    return {
        "world": str(solution.world),
        "episodes": n,
        "seed": seed,
        "out": out,
        "pursued": {human: label_of(goal) for human, goal in rollouts.goals.items()},
        "steps": [[_step(caption) for caption in captions_of(rollouts, i)] for i in range(min(n_printed, n))],
        "goals": goals,
        "mean_return": float(rollouts.return_N.mean()),
        "standard_error": spread,
        # The robot's value assumes that humans act by their policies averaged over goals.
        "V_r": math.nan if rollouts.goals else float(solution.values.V_r[0][0]),
    }


def _step(caption: Caption) -> Json:
    from empo_bi.results.goal_names import label_of

    return {
        "step": caption.step,
        "actions": caption.did,
        "probability": caption.probability if caption.did else None,
        "X_h": caption.power,
        "attained": {human: [label_of(goal) for goal in goals] for human, goals in caption.attained.items()},
    }


def _in_words(content: Json) -> str:
    lines = [content["world"]]
    if content["pursued"]:
        lines.append("; ".join(f"human {human} wants {goal}" for human, goal in content["pursued"].items()))
    for i, steps in enumerate(content["steps"]):
        lines += ["", f"episode {i}", *_table(steps)]
    if content["episodes"] > len(content["steps"]):
        lines += ["", f"and {content['episodes'] - len(content['steps']):,} more"]
    return "\n".join([*lines, "", *_summary(content)])


def _table(steps: list[Json]) -> list[str]:
    """A line for each step: actions, their probability with the outcome, power afterwards, and goals attained."""
    agents = list(steps[-1]["actions"])
    humans = list(steps[0]["X_h"])
    head = ["step", *(f"agent {agent}" for agent in agents), "probability", *(f"X_{human}" for human in humans), "attained"]
    rows = [
        [
            str(step["step"]),
            *(step["actions"].get(agent, "") for agent in agents),
            "" if step["probability"] is None else f"{step['probability']:.4g}",
            *(f"{step['X_h'][human]:.4g}" if human in step["X_h"] else "" for human in humans),
            "; ".join(f"{human}: {', '.join(labels)}" for human, labels in step["attained"].items() if labels),
        ]
        for step in steps
    ]
    widths = [max(len(row[c]) for row in [head, *rows]) for c in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [head, *rows]]


def _summary(content: Json) -> list[str]:
    n = content["episodes"]
    lines = [f"{'human':>5}  {'goal':16}  {'attained':>8}  exactly"]
    lines += [
        f"{goal['human']:>5}  {goal['goal']:16}  {goal['attained']:>8.4f}  {goal['probability']:.4f}"
        for goal in content["goals"]
    ]
    error = "" if n == 1 else f" (standard error {content['standard_error']:.2g})"
    value = "" if content["pursued"] else f"; its expectation V_r is {content['V_r']:.6g}"
    return [
        *lines,
        f"the robot's return over {counted(n, 'episode')}: {content['mean_return']:.6g}{error}{value}",
    ]
