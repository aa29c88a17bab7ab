"""``empo-bi plan``: predict what a world will take, and recommend how to run it."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from empo_bi.cli.common import (
    agent_options,
    as_usage_errors,
    json_option,
    loaded,
    param_option,
    params_of,
    phase_1_option,
    quiet_option,
    workers_option,
    world_options,
)
from empo_bi.cli.exits import FINE, NO
from empo_bi.cli.output import echo, print_json
from empo_bi.cli.values import Numbers, Pairs, Size

if TYPE_CHECKING:
    from empo_bi.planner.plan import Horizon, Plan, Way
    from empo_bi.types import Json


@click.command(short_help="Predict states, memory, disk and time; recommend a way to run.")
@world_options
@click.option(
    "--steps", type=Numbers(), metavar="N[,N...]", help="Horizons, such as 20 or 5,10,15,20; by default the world's own."
)
@click.option("--memory", type=Size(), help="Memory to use, such as 4GB; by default what is available now.")
@param_option
@phase_1_option
@agent_options
@workers_option
@click.option("--seconds", default=10.0, show_default=True, help="How long to count levels; the others are forecast.")
@click.option("--max-levels", type=click.IntRange(min=1), help="Count at most this many levels.")
@click.option("--compare", is_flag=True, help="Show all ways to run, and how much memory each saves.")
@quiet_option("No bar; just the plan.")
@json_option
@click.pass_context
def plan(
    ctx: click.Context, world: str, changes: Pairs, strict: bool, steps: list[int] | None, memory: float | str | None,
    given: Pairs, phase_1_only: bool, humans: list[int] | None, robots: list[int] | None, workers: int, seconds: float,
    max_levels: int | None, compare: bool, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Predict states, memory, disk and time of WORLD (a name or a file), and recommend how to run it.

    Levels are counted for some seconds, which is often enough for all of them; the others are forecast, with a range. Ends
    with exit code 0 if a way to run fits, 1 if none does.

    \b
    Examples:
      empo-bi plan asymmetric_freeing --steps 10,20,40
      empo-bi plan my_world.yaml --steps 50 --memory 4GB --compare
      empo-bi plan carousel --steps 30 --json | jq -r .command
    """
    from empo_bi.planner.plan import plan as planned

    params, world_model = params_of(given), loaded(world, changes, strict)
    with as_usage_errors():
        found = planned(
            world_model, params, steps=steps, memory=memory, workers=workers, seconds=seconds, max_levels=max_levels,
            phase_2=not phase_1_only, human_agent_indices=humans, robot_agent_indices=robots, progress=not quiet,
        )  # fmt: skip
    if as_json:
        print_json(_content(found, world))
    else:
        echo(found.comparison() if compare else str(found))
    ctx.exit(FINE if found.recommended is not None else NO)


def _content(found: Plan, world: str) -> Json:
    last = found.horizons[-1]
    return {
        "world": world,
        "title": found.title,
        "memory": found.memory,
        "levels_counted": len(found.probe.levels),
        "horizons": [_horizon(horizon) for horizon in found.horizons],
        "longest": found.longest,
        "recommended": None if last.recommended is None else last.recommended.name,
        "command": None if last.recommended is None else _command(world, last.sizes.steps, last.recommended),
    }


def _horizon(horizon: Horizon) -> Json:
    """Numbers that are not known exactly have a low, a likely and a high estimate."""
    sizes = asdict(horizon.sizes) | {"is_exact": horizon.sizes.is_exact}
    ways = [asdict(way) | {"options": dict(way.options), "call": way.call} for way in horizon.ways]
    recommended = horizon.recommended
    return sizes | {"recommended": None if recommended is None else recommended.name, "ways": ways}


def _command(world: str, steps: int, way: Way) -> str:
    """The command that does the same as ``solve`` in Python."""
    options = [f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in way.options.items()]
    return " ".join(["empo-bi solve", shlex.quote(world), f"--steps {steps}", *options])
