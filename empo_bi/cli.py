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


def main() -> None:
    """Run the command line. What empo_bi complains about is printed without a traceback, with exit code 2."""
    try:
        cli(prog_name="empo-bi")
    except EmpoError as error:
        click.echo(f"empo-bi: {error}", err=True)
        sys.exit(2)
