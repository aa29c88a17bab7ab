"""The command line: ``empo-bi``, also ``python -m empo_bi``."""

from __future__ import annotations

import sys
from typing import Any

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
@click.option("--seconds", default=10.0, show_default=True, help="How long to count; what lies beyond is forecast.")
@click.option("--compare", is_flag=True, help="Show all ways to run, and by how much each needs less memory.")
def plan(world: str, steps: str | None, memory: str | None, workers: int, seconds: float, compare: bool) -> None:
    """Predict states, memory, disk and time of WORLD (a name or a file), and recommend how to run it.

    Levels are counted for some seconds, often all of them; what comes after is forecast, with a range. Ends with exit code 0
    if there is a way that fits, 1 if there is none.

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
        found = empo_bi.plan(empo_bi.load_world(world), steps=wanted, memory=_size(memory), workers=workers, seconds=seconds)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    click.echo(found.comparison() if compare else str(found))
    sys.exit(0 if found.recommended is not None else 1)


@cli.command()
@click.argument("world")
@click.option("--steps", type=int, help="The horizon; by default that of the world.")
@click.option("--out", type=click.Path(file_okay=False), help="A folder for the results; a run that was stopped continues.")
@click.option("--param", "-p", "given", multiple=True, metavar="NAME=VALUE", help="A parameter of the theory, any number.")
@click.option("--precision", type=click.Choice(["float16", "float64"]), default="float16", show_default=True)
@click.option("--workers", default=1, show_default=True, help="Threads; -1 for one per core.")
@click.option("--memory-limit", help="What the process may hold, such as 2GB, or 0.5 for half of what is available.")
@click.option("--min-free", default=0.1, show_default=True, help="Pause when a smaller share of memory is free.")
@click.option("--profile-memory", is_flag=True, help="Write a report of what was held when, as text and picture.")
@click.option("--memory-snapshot-interval", default=1, show_default=True, help="Levels from one snapshot to the next.")
@click.option("--quiet", "-q", is_flag=True, help="No bars and no messages.")
def solve(
    world: str, steps: int | None, out: str | None, given: tuple[str, ...], precision: str, workers: int,
    memory_limit: str | None, min_free: float, profile_memory: bool, memory_snapshot_interval: int, quiet: bool,
) -> None:  # fmt: skip
    """Solve both phases of WORLD (a name or a file), and print what the start is worth.

    \b
    Examples:
      empo-bi solve asymmetric_freeing --steps 12 -p gamma_h=0.99 -p zeta=2
      empo-bi solve my_world.yaml --out runs/mine --memory-limit 2GB --profile-memory
    """
    overrides: dict[str, Any] = {} if steps is None else {"max_steps": steps}
    try:
        params = empo_bi.Params(**dict(_parameter(text) for text in given))
        limit = _size(memory_limit)
        profiler = empo_bi.MemoryProfiler(memory_snapshot_interval, limit=limit) if profile_memory else False
        solution = empo_bi.solve(
            empo_bi.load_world(world, **overrides), params, out=out,
            precision=precision, workers=workers, memory_limit=limit, progress=not quiet, memory_profile=profiler,
            monitor=empo_bi.MemoryMonitor(min_free, verbose=not quiet),
        )  # fmt: skip
    except EmpoError:
        raise
    except (ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error
    click.echo(solution.summary())


def _size(text: str | None) -> Any:
    """``"2GB"`` stays as it is; a bare number is a fraction, or bytes."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _parameter(text: str) -> tuple[str, Any]:
    name, is_there, value = text.partition("=")
    if not is_there:
        raise ValueError(f"--param {text}; give NAME=VALUE, such as zeta=2")
    if value.lower() in ("true", "false"):
        return name, value.lower() == "true"
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"--param {text}; {value!r} is no number") from None


def main() -> None:
    """Run the command line. What empo_bi complains about is printed without a traceback, with exit code 2."""
    try:
        cli(prog_name="empo-bi")
    except EmpoError as error:
        click.echo(f"empo-bi: {error}", err=True)
        sys.exit(2)
