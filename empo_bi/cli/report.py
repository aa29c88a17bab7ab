"""``empo-bi report``: one HTML file to explore a run."""

from __future__ import annotations

import click

from empo_bi.cli.common import (
    again_option,
    as_usage_errors,
    check_out_file,
    goals_and_prior_options,
    json_option,
    made_by_option,
    quiet_option,
    trust_option,
)
from empo_bi.cli.output import echo, print_json


@click.command(short_help="Write an HTML file to explore a run.")
@click.argument("run", type=click.Path())
@click.option("--out", type=click.Path(dir_okay=False), required=True, help="The file to write, such as report.html.")
@click.option("--min-probability", type=click.FloatRange(0, 1), default=1e-6, show_default=True,
              help="Show states that are reached with at least this probability under both policies.")  # fmt: skip
@click.option("--max-states", type=click.IntRange(min=1),
              help="Show at most this many states, the most probable; by default as many as fit in about 2 MB.")  # fmt: skip
@click.option("--title", help="The page's title; by default the world's.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@made_by_option
@goals_and_prior_options
@trust_option
@again_option
@quiet_option("No progress and no messages.")
@json_option
def report(
    run: str, out: str, min_probability: float, max_states: int | None, title: str | None, force: bool, made_by: str | None,
    goals_by: str | None, prior_by: str | None, trust: bool, memory_limit: float | str | None, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Write one HTML file to explore RUN: a folder of `empo-bi solve --out`, one solution in it, or a run of a batch.

    The file opens in any browser and needs neither network nor server: the grid with a time slider, values, policies and
    power in each state, possible next states, charts by level. Of large runs, only probable states are shown; the page says
    what was left out.

    \b
    Examples:
      empo-bi report runs/mine --out report.html
      empo-bi report runs/sweep/runs/freeing-12-0a1b2c --out freeing.html --title "Freeing, zeta = 2"
      empo-bi report runs/mine --out report.html --force --min-probability 0.001 --max-states 20000
      empo-bi report runs/mine --out report.html --json | jq .bytes
    """
    from empo_bi.report.report import write_report
    from empo_bi.solving.opening import open_solution

    check_out_file(out, force)
    with (
        open_solution(
            run, world=made_by, goals=goals_by, prior=prior_by, trust=trust, memory_limit=memory_limit, progress=not quiet
        ) as solution,
        as_usage_errors(),
    ):
        written = write_report(
            solution, out, min_probability=min_probability, max_states=max_states, title=title, overwrite=force,
            progress=not quiet,
        )  # fmt: skip
    if as_json:
        content = {
            "path": str(written.path), "bytes": written.bytes, "states": written.states, "reached": written.reached,
            "embedded": written.embedded,
        }  # fmt: skip
        print_json(content)
    elif not quiet:
        echo(str(written))
