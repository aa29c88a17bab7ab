"""``empo-bi rollout``: episodes of what was solved, as a film or in words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from empo_bi.cli.common import as_usage_errors, json_option, made_by_option, quiet_option, trust_option
from empo_bi.cli.output import echo, print_json
from empo_bi.cli.values import Assignment, as_dict
from empo_bi.runtime.wording import counted

if TYPE_CHECKING:
    from empo_bi.analysis.captions import Caption
    from empo_bi.results.rollouts import Rollouts
    from empo_bi.results.solution import Solution

TOLD = 3  # episodes that are told step by step when there are more of them


class HumanGoal(Assignment):
    """``HUMAN=GOAL``."""

    name = "human=goal"
    example = "1=8,2 (human 1 wants to be on the cell 8,2)"


@click.command(short_help="Draw episodes of a run: a film, or in words.")
@click.argument("run", type=click.Path())
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE",
              help="A film: .gif, .mp4, or .png for pictures of all steps. Without it, episodes are told.")  # fmt: skip
@click.option("--episodes", type=click.IntRange(min=1), default=1, show_default=True, metavar="N",
              help="How many; in a film, one after the other.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Other seeds give other episodes.")
@click.option("--goal", "goals", type=HumanGoal(), multiple=True, metavar="HUMAN=GOAL",
              help="Let a human pursue a goal: its cell (1=8,2), its corners (1=7,2,9,4), its number in the list of goals "
              "(1=12), or how it prints; may be given for several humans.")  # fmt: skip
@click.option("--columns", type=click.IntRange(min=1), metavar="N",
              help="Show the episodes of a film at the same time, so many side by side.")  # fmt: skip
@click.option("--tile", type=click.IntRange(min=8), metavar="PX", help="Side of a cell; by default 48, and 32 for .png.")
@click.option("--pace", type=click.FloatRange(min=0.05), default=0.6, show_default=True, metavar="SECONDS",
              help="Time for a step of a film.")  # fmt: skip
@click.option("--plain", is_flag=True, help="A film without numbers.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@made_by_option
@trust_option
@quiet_option("No bars and no messages; just the result.")
@json_option
def rollout(
    run: str, out: str | None, episodes: int, seed: int, goals: Any, columns: int | None, tile: int | None, pace: float,
    plain: bool, force: bool, made_by: str | None, trust: bool, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Draw episodes under both policies from RUN, a folder of `empo-bi solve --out` or a run of a batch.

    With --out they become a film. Without, they are told step by step, and after them how often goals were attained, beside
    the exact probability of that, and the mean of the robot's return, beside its value.

    \b
    Examples:
      empo-bi solve asymmetric_freeing --steps 12 -p zeta=2 -p beta_r=50 --out runs/mine
      empo-bi rollout runs/mine --out run.gif --seed 3
      empo-bi rollout runs/mine --out run.mp4 --goal 1=8,4 --tile 64 --pace 0.4
      empo-bi rollout runs/mine --out steps.png                    # all steps on one picture
      empo-bi rollout runs/mine --episodes 10000                   # how often is what attained?
      empo-bi rollout runs/mine --episodes 1000 --json | jq .mean_return
    """
    from empo_bi.solving.opening import open_solution

    _check_file(out, force)
    with open_solution(run, world=made_by, trust=trust, progress=not quiet) as solution:
        pursued = {human: _goal_of(solution, human, text) for human, text in _by_human(goals).items()}
        with as_usage_errors():
            rollouts = solution.rollouts(episodes, seed, pursued)
            if out is not None:
                _save(rollouts, out, tile=tile, seconds_per_step=pace, overlay=not plain, columns=columns, overwrite=force)
        if as_json:
            print_json(_content(rollouts, seed, out, n_told=0 if out is not None else episodes))
        elif out is None:
            echo(_in_words(_content(rollouts, seed, out, n_told=TOLD)))
        elif not quiet:
            echo(f"{out}: {counted(episodes, 'episode')}, {Path(out).stat().st_size:,} bytes")


def _check_file(out: str | None, force: bool) -> None:
    """What can be told at once is told before a large run is opened."""
    if out is None:
        return
    from empo_bi.analysis.film import SUFFIXES

    path = Path(out)
    if path.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"--out {out}; give a name that ends with {', '.join(SUFFIXES)}")
    if path.exists() and not force:
        raise click.UsageError(f"--out {out}: is there already; give another name, or --force to replace it")
    if not path.parent.is_dir():
        raise click.UsageError(f"--out {out}: there is no folder {path.parent}; make it first")


def _by_human(given: Any) -> dict[int, str]:
    found = {}
    for human, text in as_dict(given, "--goal").items():
        if not human.isdecimal():
            raise click.UsageError(
                f"--goal {human}={text}; {human!r} is no agent: give its number, such as {HumanGoal.example}"
            )
        found[int(human)] = text
    return found


def _goal_of(solution: Solution, human: int, text: str) -> Any:
    """The goal that is meant: by its cells, its number, or how it prints."""
    from empo_bi.results.goal_names import goal_number

    try:
        known = solution.goals.get(human, [])
        by_number = text.strip().isdecimal() and text not in map(repr, known)
        return known[goal_number(solution.goal_columns, human, int(text) if by_number else text)]
    except ValueError as error:
        raise click.UsageError(f"--goal {human}={text}: {error}") from error


def _save(rollouts: Rollouts, out: str, **options: Any) -> None:
    """Write the film; a library that is missing is a matter of the installation, and told without a traceback."""
    try:
        rollouts.save(out, episodes=range(len(rollouts)), **options)
    except ImportError as error:
        raise click.UsageError(str(error)) from error


def _content(rollouts: Rollouts, seed: int, out: str | None, n_told: int) -> dict[str, Any]:
    """Everything that is told, as numbers; ``n_told`` episodes step by step."""
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
        "steps": [[_step(caption) for caption in captions_of(rollouts, i)] for i in range(min(n_told, n))],
        "goals": goals,
        "mean_return": float(rollouts.return_N.mean()),
        "standard_error": spread,
        # What humans do over all goals is what the robot's value is about.
        "V_r": math.nan if rollouts.goals else float(solution.values.V_r[0][0]),
    }


def _step(caption: Caption) -> dict[str, Any]:
    from empo_bi.results.goal_names import label_of

    return {
        "step": caption.step,
        "actions": caption.did,
        "probability": caption.probability if caption.did else None,
        "X_h": caption.power,
        "attained": {human: [label_of(goal) for goal in goals] for human, goals in caption.attained.items()},
    }


def _in_words(content: dict[str, Any]) -> str:
    lines = [content["world"]]
    if content["pursued"]:
        lines.append("; ".join(f"human {human} wants {goal}" for human, goal in content["pursued"].items()))
    for i, steps in enumerate(content["steps"]):
        lines += ["", f"episode {i}", *_table(steps)]
    if content["episodes"] > len(content["steps"]):
        lines += ["", f"and {content['episodes'] - len(content['steps']):,} more"]
    return "\n".join([*lines, "", *_summary(content)])


def _table(steps: list[dict[str, Any]]) -> list[str]:
    """A line a step: what agents did and how likely that and its outcome was, the power they have then, and goals."""
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


def _summary(content: dict[str, Any]) -> list[str]:
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
