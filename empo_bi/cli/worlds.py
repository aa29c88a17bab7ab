"""``empo-bi worlds``: list, describe and draw worlds."""

from __future__ import annotations

import fnmatch
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from empo_bi.cli.common import json_option, loaded, world_options
from empo_bi.cli.exits import FINE, NO
from empo_bi.cli.output import echo, print_json
from empo_bi.cli.values import Pairs
from empo_bi.runtime.printable import one_line

if TYPE_CHECKING:
    from empo_bi.types import Json
    from empo_bi.world.goal_entries import GoalSpec
    from empo_bi.world.map_world import MapWorld


class ListsByDefault(click.Group):
    """A first word that is not a command of this group is a pattern for ``list``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        if not is_named and (args or not ctx.resilient_parsing):  # while the first word is completed, it may be either
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from empo_bi import worlds as shipped

        names = [CompletionItem(name) for name in shipped.available() if name.startswith(incomplete)]
        return [*super().shell_complete(ctx, incomplete), *names]


@click.group(cls=ListsByDefault, subcommand_metavar="[PATTERN] | COMMAND [ARGS]...")
def worlds() -> None:
    """List the shipped worlds, describe one, or draw it.

    \b
    Examples:
      empo-bi worlds                                       # all worlds
      empo-bi worlds doors                                 # worlds with "doors" in the name
      empo-bi worlds 'b*/*'                                # worlds that match a pattern
      empo-bi worlds describe asymmetric_freeing
      empo-bi worlds draw my_world.yaml --out my_world.png
    """


@worlds.command("list")
@click.argument("pattern", required=False)
@json_option
@click.pass_context
def list_worlds(ctx: click.Context, pattern: str | None, as_json: bool) -> None:
    """List the shipped worlds with their numbers of states and what they show.

    PATTERN is part of a name, or a file pattern with *, ? and []. Ends with exit code 1 if nothing matches.

    \b
    Examples:
      empo-bi worlds list
      empo-bi worlds list 'jobst*'
      empo-bi worlds list --json | jq -r '.[] | select(.states < 1000) | .name'
    """
    from empo_bi import worlds as shipped
    from empo_bi.world.source import read_source

    found = []
    for name in shipped.available():
        if pattern is None or _matches(name, pattern):
            metadata = read_source(name).mapping.get("metadata") or {}
            title, states = metadata.get("name", name), metadata.get("states")
            found.append({"name": name, "title": title, "states": states, "purpose": shipped.purpose(name)})
    if as_json:
        print_json(found)
    elif found:
        echo(_table(found))
    if not found:
        echo(f"empo-bi: no shipped world matches {pattern!r}; `empo-bi worlds` lists them all", err=True)
    ctx.exit(FINE if found else NO)


def _matches(name: str, pattern: str) -> bool:
    is_part = pattern.lower() in name.lower()
    return is_part or any(fnmatch.fnmatch(part, pattern) for part in (name, name.split("/")[-1]))


def _table(found: list[Json]) -> str:
    """A line for each world; the purpose is cut on a narrow screen."""
    width = max(len(world["name"]) for world in found)
    room = max(40, shutil.get_terminal_size((125, 40)).columns - width - 15)
    lines = [f"{'world':{width}} {'states':>11}  what it shows"]
    for world in found:
        states = _counted(world["states"])
        purpose = textwrap.shorten(world["purpose"], room, placeholder=" ...")
        lines.append(f"{world['name']:{width}} {states:>11}  {purpose}")
    return "\n".join(lines)


def _counted(states: object) -> str:
    """The number of states from a world's file; a text if they have not been counted, or empty."""
    return "" if states is None else f"{states:,}" if isinstance(states, int) else str(states)


@worlds.command()
@world_options
@click.option("--steps", type=int, help="The horizon; by default the world's own.")
@json_option
def describe(world: str, changes: Pairs, strict: bool, steps: int | None, as_json: bool) -> None:
    """Describe WORLD (a name or a file): map, agents, actions, goals, horizon, and what it shows.

    \b
    Examples:
      empo-bi worlds describe asymmetric_freeing
      empo-bi worlds describe my_world.yaml --strict && echo 'no warnings'
      empo-bi worlds describe carousel --json | jq '.agents | length'
    """
    content = _content(loaded(world, changes, strict, steps))
    if as_json:
        print_json(content)
    else:
        echo(_description(content))


def _content(world: MapWorld) -> Json:
    from empo_bi.world.goal_entries import goals_as_values

    spec = world.world_spec
    agents = [
        {
            "agent": i,
            "role": "human" if agent.is_human else "robot" if agent.is_robot else "other",
            "colour": agent.colour,
            "x": agent.x,
            "y": agent.y,
            **world.traits(i),
        }
        for i, agent in enumerate(spec.agents)
    ]
    return {
        "title": spec.name,
        "file": spec.origin,
        "purpose": _purpose(Path(spec.origin)),
        "width": spec.width,
        "height": spec.height,
        "map": world.map_text().split("\n"),
        "steps": world.max_steps,
        "actions": world.action_names,
        "agents": agents,
        "agents_in_words": world.describe().split("\n"),
        "goals": goals_as_values(spec.goals),
        "goals_in_words": _goals_in_words(spec.goals),
        **world.settings,
        "states": spec.metadata.get("states"),
        "tags": list(spec.metadata.get("tags") or []),
    }


def _goals_in_words(goals: Sequence[GoalSpec]) -> list[str]:
    """A line for the list of all humans, or one for each; weights are told where they differ."""
    lines = []
    for agent in dict.fromkeys(goal.agent for goal in goals):
        own = [goal for goal in goals if goal.agent == agent]
        differ = len({goal.weight for goal in own}) > 1
        whose = "" if agent is None else f" of human {agent}"
        lines.append(f"{len(own)} goals{whose}: {'; '.join(_goal_in_words(goal, differ) for goal in own)}")
    return lines


def _goal_in_words(goal: GoalSpec, has_own_weight: bool) -> str:
    """``3,2``, ``bedroom (7,3 or 7,4)``, ``bedroom (7,3 or 7,4; weight 0.5)``."""
    more = [] if goal.name is None else [goal.condition.words]
    more += [f"weight {goal.weight:.3g}"] if has_own_weight else []
    return f"{goal.label} ({'; '.join(more)})" if more else goal.label


def _purpose(path: Path) -> str:
    from empo_bi.worlds import comment_at_top

    return comment_at_top(path) if path.suffix in (".yaml", ".yml") and path.is_file() else ""


def _description(content: Json) -> str:
    states = f", {_counted(content['states'])} states with the horizon of its file" if content["states"] else ""
    parts = [
        f"{one_line(content['title'])}, {content['width']} x {content['height']} cells, horizon {content['steps']}{states}",
        textwrap.fill(content["purpose"], 100) if content["purpose"] else None,
        textwrap.indent("\n".join(content["map"]), "    "),
        "\n".join(content["agents_in_words"]),
        "actions: " + ", ".join(f"{i} {name}" for i, name in enumerate(content["actions"])),
        "\n".join(textwrap.fill(line, 100) for line in content["goals_in_words"]) or "no goals",
        f"file: {content['file']}",
    ]
    return "\n\n".join(part for part in parts if part)


@worlds.command()
@world_options
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="A file for the picture, such as world.png.")
@click.option("--tile", type=click.IntRange(4, 256), default=32, show_default=True, help="Pixels along a cell's side.")
def draw(world: str, changes: Pairs, strict: bool, out: Path | None, tile: int) -> None:
    """Draw the initial state of WORLD (a name or a file): a picture with --out, otherwise text as in world files.

    \b
    Examples:
      empo-bi worlds draw asymmetric_freeing
      empo-bi worlds draw asymmetric_freeing --out freeing.png --tile 48
    """
    from empo_bi.world.png import png_bytes

    if out is not None and out.suffix.lower() != ".png":
        raise click.BadParameter(f"{str(out)!r}; give a name that ends in .png", param_hint="--out")
    start = loaded(world, changes, strict)
    if out is None:
        echo(start.to_text())
        return
    out.write_bytes(png_bytes(start.render(tile=tile)))
    echo(f"{out}: {start.width * tile} x {start.height * tile} pixels")
