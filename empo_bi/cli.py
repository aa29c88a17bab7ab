"""The command line: ``empo-bi``, also ``python -m empo_bi``."""

from __future__ import annotations

import sys

import click

import empo_bi
from empo_bi.errors import DamagedStoreError, EmpoError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(empo_bi.__version__, prog_name="empo-bi")
def cli() -> None:
    """Backward-induction planning for multi-agent worlds, with DAGs on disk."""


@cli.command()
@click.argument("path")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing unless something is wrong.")
def verify(path: str, quiet: bool) -> None:
    """Re-check every checksum of the DAG or solution at PATH (a folder, zip file or URL), or of all in a folder of solve.

    Ends with exit code 0 if all is well, 1 if something is damaged, each damaged array on a line of its own, 2 if there is
    no store.

    \b
    Examples:
      empo-bi verify runs/freeing
      empo-bi verify runs/freeing.zip && echo fine
    """
    from empo_bi.store.verify import stores_at, verify_store

    is_damaged = False
    for store in stores_at(path):
        try:
            report = verify_store(store, progress=not quiet)
        except DamagedStoreError as error:  # not even its list of levels can be read
            click.echo(str(error))
            is_damaged = True
            continue
        if not quiet or report.damage:
            click.echo(str(report))
        is_damaged |= bool(report.damage)
    sys.exit(1 if is_damaged else 0)


@cli.command()
@click.argument("world")
@click.option("--steps", help="Horizons to look at, such as 20 or 5,10,15,20; by default that of the world.")
@click.option("--memory", help="What may be used, such as 4GB; by default what is available now.")
@click.option("--workers", default=1, show_default=True, help="Threads of the backward pass.")
@click.option("--compare", is_flag=True, help="Show all ways to run, and by how much each needs less memory.")
def plan(world: str, steps: str | None, memory: str | None, workers: int, compare: bool) -> None:
    """Predict states, memory, disk and time of WORLD (a name or a file), and recommend how to run it.

    The first levels are looked at, for a second or so; what comes after is forecast, with a range. Ends with exit code 0 if
    there is a way that fits, 1 if there is none.

    \b
    Examples:
      empo-bi plan asymmetric_freeing --steps 10,20,40
      empo-bi plan my_world.yaml --steps 50 --memory 4GB --compare
    """
    try:
        wanted = None if steps is None else [int(number) for number in steps.split(",")]
    except ValueError:
        message = f"{steps!r}; give a number, or several with commas between them"
        raise click.BadParameter(message, param_hint="--steps") from None
    try:
        found = empo_bi.plan(empo_bi.load_world(world), steps=wanted, memory=memory, workers=workers)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    click.echo(found.comparison() if compare else str(found))
    sys.exit(0 if found.recommended is not None else 1)


def main() -> None:
    """Run the command line. What empo_bi complains about is printed without a traceback, with exit code 2."""
    try:
        cli(prog_name="empo-bi")
    except EmpoError as error:
        click.echo(f"empo-bi: {error}", err=True)
        sys.exit(2)
