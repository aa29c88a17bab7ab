"""``empo-bi export``: a world as a Markov decision process for model checkers."""

from __future__ import annotations

from pathlib import Path

import click

from empo_bi.cli.common import as_usage_errors, check_out_file, json_option, loaded, quiet_option, world_options
from empo_bi.cli.output import echo, print_json
from empo_bi.cli.values import Numbers, Pairs, Size

SUFFIXES = (".drn", ".umb")


@click.command(short_help="Write a world as a model for the model checker Storm.")
@world_options
@click.option("--steps", type=int, help="The horizon; by default the world's own.")
@click.option(
    "--out", type=click.Path(dir_okay=False), required=True, help="The file to write, .drn (text) or .umb (arrays)."
)
@click.option("--deciding", type=Numbers(), metavar="AGENTS",
              help="Agents that choose, such as 0 or 0,2 (default: all); the others act at random.")  # fmt: skip
@click.option("--unrolled", is_flag=True, help="Separate states for each step; properties then need no step bound.")
@click.option("--memory-limit", type=Size(), help="Memory to use, such as 2GB; levels then go to temporary files.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@quiet_option("No progress and no messages.")
@json_option
def export(
    world: str, changes: Pairs, strict: bool, steps: int | None, out: str, deciding: list[int] | None, unrolled: bool,
    memory_limit: float | str | None, force: bool, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Write WORLD (a name or a file) as a Markov decision process for the model checker Storm.

    Humans' goals become labels of states; the JSON output has a Storm property for each of them.

    \b
    Examples:
      empo-bi export thicket --steps 8 --out thicket.drn
      empo-bi export thicket --steps 8 --out thicket.umb --deciding 0 --force
      empo-bi export my_world.yaml --out model.umb --memory-limit 2GB --json | jq -r '.queries[]'
    """
    from empo_bi.solving.enumeration import enumerate_dag

    if Path(out).suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"--out {out}; give a name that ends in {' or '.join(SUFFIXES)}, the two formats")
    check_out_file(out, force)
    world_model = loaded(world, changes, strict, steps)
    with enumerate_dag(
        world_model, precision="exact", store=None if memory_limit is None else True, memory_limit=memory_limit,
        progress=not quiet,
    ) as dag, as_usage_errors():  # fmt: skip
        write = dag.to_drn if Path(out).suffix.lower() == ".drn" else dag.to_umb
        model = write(out, deciding=deciding, unrolled=unrolled, overwrite=force, progress=not quiet)
    if as_json:
        content = {
            "path": str(model.path), "states": model.n_states, "choices": model.n_choices,
            "transitions": model.n_transitions, "horizon": model.horizon, "is_unrolled": model.is_unrolled,
            "labels": {label: list(meant) for label, meant in model.labels.items()}, "never": list(model.never),
            "queries": model.queries(),
        }  # fmt: skip
        print_json(content)
    elif not quiet:
        echo(str(model))
