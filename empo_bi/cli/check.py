"""``empo-bi check``: what is probably wrong with a world and its parameters, before it is solved."""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
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
    world_options,
)
from empo_bi.cli.exits import FINE, NO
from empo_bi.cli.output import echo, print_json
from empo_bi.cli.values import Pairs
from empo_bi.errors import WorldWarning

if TYPE_CHECKING:
    from empo_bi.types import Json


@click.command(short_help="Look for probable mistakes in a world and its parameters.")
@world_options
@click.option("--steps", type=int, help="The horizon; by default the world's own.")
@param_option
@phase_1_option
@agent_options
@json_option
@click.pass_context
def check(
    ctx: click.Context, world: str, changes: Pairs, strict: bool, steps: int | None, given: Pairs, phase_1_only: bool,
    humans: list[int] | None, robots: list[int] | None, as_json: bool,
) -> None:  # fmt: skip
    """Look for probable mistakes in WORLD (a name or a file) and in the parameters that it is to be solved with.

    Mistakes in the file; agents in colours that are neither human nor robot, or who can never move; a horizon that is too
    short for any goal, and goals out of reach; parameters under which humans dawdle, with values under which they do not.
    Lists the agents as they are numbered. Ends with exit code 0 if there is no probable mistake, 1 if there is one.

    \b
    Examples:
      empo-bi check my_world.yaml
      empo-bi check my_world.yaml --steps 20 -p gamma_h=0.95 -p beta_h=50
      empo-bi check locked_in -p gamma_h=0.95 -p beta_h=50 --json | jq '.hints[].found'
    """
    from empo_bi.advice.advise import advise, file_hints

    params = params_of(given)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WorldWarning)
        model = loaded(world, changes, strict, steps)
    with as_usage_errors():
        found = advise(model, params, human_agent_indices=humans, robot_agent_indices=robots, phase_2=not phase_1_only)
    found = replace(found, hints=[*file_hints(caught), *found.hints])
    if as_json:
        content: Json = {"world": world, "steps": model.max_steps, "is_fine": found.is_fine, **asdict(found)}
        print_json(content)
    else:
        echo(str(found))
    ctx.exit(FINE if found.is_fine else NO)
