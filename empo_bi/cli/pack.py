"""``empo-bi pack``: one file that holds a whole run or batch."""

from __future__ import annotations

import click

from empo_bi.cli.common import check_out_file, json_option, quiet_option
from empo_bi.cli.output import echo, print_json


@click.command(short_help="Put a run or a batch into one file, to share it.")
@click.argument("run", type=click.Path())
@click.argument("out", type=click.Path(dir_okay=False))
@click.option("--licence", help="Under which others may use it, such as CC-BY-4.0; it is written into the file.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@quiet_option("No progress and no messages.")
@json_option
def pack(run: str, out: str, licence: str | None, force: bool, quiet: bool, as_json: bool) -> None:
    """Put the run or batch at RUN, a folder, into the zip file OUT, which opens as it is.

    Everything is verified first. The file also has the world, and a text that says what it is, which versions made it, and
    how to open and cite it.

    \b
    Examples:
      empo-bi pack runs/mine mine.zip --licence CC-BY-4.0
      empo-bi show mine.zip                            # also report, rollout, verify, open_solution
      empo-bi pack runs/sweep sweep.zip
      empo-bi show sweep.zip/runs/freeing-12-0a1b2c    # one run of a batch
    """
    from empo_bi.batch.packing import pack as packed

    if not out.lower().endswith(".zip"):
        raise click.UsageError(f"{out}: give the name of a file that ends in .zip")
    check_out_file(out, force)
    done = packed(run, out, licence=licence, overwrite=force, progress=not quiet)
    if as_json:
        print_json({"path": str(done.path), "files": done.n_files, "bytes": done.nbytes})
    elif not quiet:
        echo(str(done))
