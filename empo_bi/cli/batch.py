"""``empo-bi batch``: many runs, unattended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from empo_bi.cli.common import as_usage_errors, json_option, quiet_option
from empo_bi.cli.exits import FINE, UNFINISHED
from empo_bi.cli.output import echo, print_json
from empo_bi.cli.values import Size

if TYPE_CHECKING:
    from empo_bi.types import Json


@click.command(short_help="Run many worlds, horizons and parameters; resumable, with a table.")
@click.argument("spec", type=click.Path(dir_okay=False))
@click.option("--out", metavar="FOLDER", help="A folder or URL for runs and table; by default as in SPEC.")
@click.option("--workers", type=int, help="Runs at a time; -1 for one per core.")
@click.option("--memory-limit", type=Size(), help="What each worker may hold, such as 2GB.")
@click.option("--keep", type=click.Choice(["values", "policies", "summary"]), help="What to keep of each run.")
@click.option("--retry-failed", is_flag=True, help="Try failed runs again; otherwise they are only reported.")
@click.option("--backend", type=click.Choice(["local", "dask"]), default="local", show_default=True,
              help="Where runs go: processes of this machine, or a cluster.")  # fmt: skip
@click.option("--scheduler", metavar="ADDRESS", help="A Dask scheduler, such as tcp://10.0.0.1:8786.")
@click.option("--spread", type=click.Choice(["runs", "blocks"]), default="runs", show_default=True,
              help="What a Dask cluster distributes: runs, or the blocks of one run after the other.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="List the runs and their status; run nothing.")
@quiet_option("No progress; just the summary.")
@json_option
@click.pass_context
def batch(
    ctx: click.Context, spec: str, out: str | None, workers: int | None, memory_limit: float | str | None, keep: str | None,
    retry_failed: bool, backend: str, scheduler: str | None, spread: str, dry_run: bool, quiet: bool, as_json: bool,
) -> None:  # fmt: skip
    """Run everything in SPEC, a YAML file, and write a table with one row per run.

    Finished runs are skipped, interrupted runs continue. A run that fails is recorded with its error, and the others go on;
    the command then ends with exit code 3.

    \b
    SPEC looks like this (docs/batch.md explains all keys):
      worlds: [asymmetric_freeing, pushing/*]     # names, files, patterns
      steps: [8, 10, 12]
      params:
        zeta: [1, 2]                              # a list: every combination
        beta_h: {log_uniform: [5, 100]}           # drawn
      samples: 50
      keep: summary
    \b
    Examples:
      empo-bi batch sweep.yaml
      empo-bi batch sweep.yaml --out runs/sweep --workers 8 --memory-limit 2GB
      empo-bi batch sweep.yaml --retry-failed
      empo-bi batch sweep.yaml --scheduler tcp://10.0.0.1:8786
    """
    from empo_bi.batch.batch import look_at_batch, run_batch

    options: Json = {"out": out, "workers": workers, "memory_limit": memory_limit, "keep": keep}
    with as_usage_errors():
        if dry_run:
            result = look_at_batch(spec, **options)
        else:
            result = run_batch(
                spec,
                **options,
                retry_failed=retry_failed,
                backend=backend,
                scheduler=scheduler,
                spread=spread,
                progress=not quiet,
            )
    if as_json:
        print_json({
            "folder": str(result.folder),
            "runs": len(result.table),
            "finished": result.n_finished,
            "skipped": result.n_skipped,
            "failed": [{name: row[name] for name in ("run", "world", "steps", "error")} for row in result.failed],
            "rows": result.table.rows if dry_run else None,
        })  # fmt: skip
    else:
        echo("\n".join([*result.listing(), result.summary().rpartition("\n")[0]]) if dry_run else result.summary())
    ctx.exit(FINE if dry_run or result.is_complete else UNFINISHED)
