"""``empo-bi verify``: check stores for damage."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from empo_bi.cli.common import json_option, quiet_option
from empo_bi.cli.exits import FINE, NO
from empo_bi.cli.output import echo, print_json
from empo_bi.errors import DamagedStoreError, StoreNotFoundError

if TYPE_CHECKING:
    from empo_bi.types import Json


@click.command(short_help="Re-check all checksums of what is on disk.")
@click.argument("path", type=click.Path())
@quiet_option("Print nothing unless something is wrong.")
@json_option
@click.pass_context
def verify(ctx: click.Context, path: str, quiet: bool, as_json: bool) -> None:
    """Re-check all checksums of the DAG or solution at PATH (a folder, zip file or URL), or of all stores in a folder.

    Ends with exit code 0 if all is well, 1 if something is damaged (with a line for each damaged array), 2 if there is no
    store. What a killed run left is not damage: it is reported as unfinished, and the same command continues it.

    \b
    Examples:
      empo-bi verify runs/freeing
      empo-bi verify runs/freeing.zip && echo fine
      empo-bi verify runs/freeing --json | jq '.stores[].damage'
    """
    from empo_bi.batch.stores import damaged_manifests, links_at, problems_when_opened, stores_at
    from empo_bi.store.verify import verify_store

    found: list[Json] = []
    for store in stores_at(path):
        try:
            report = verify_store(store, progress=not quiet)
        except DamagedStoreError as error:  # not even its list of levels can be read
            text, entry = str(error), {"name": str(store), "damage": [str(error)]}
        except StoreNotFoundError:
            if store == path:
                raise
            continue  # a batch that is running has just removed it
        else:
            report = replace(report, damage=report.damage or problems_when_opened(store))
            text, entry = str(report), asdict(report)
        found.append(entry)
        if not as_json and (not quiet or entry["damage"]):
            echo(text)
    known = {problem for entry in found for problem in entry["damage"]}
    for problem in damaged_manifests(path):
        if problem in known:  # opening a run's solution has read its manifest, too
            continue
        found.append({"name": str(path), "damage": [problem]})
        if not as_json:
            echo(problem)
    if not found and not as_json and not quiet:
        echo(f"{path}: contains no stores, so there is nothing to check")
    links = links_at(path)
    for link in [] if as_json or quiet else links:
        echo(f"{link}: is a symbolic link, and was not followed; verify what it leads to by its own name")
    is_fine = not any(entry["damage"] for entry in found)
    if as_json:
        print_json({"path": path, "is_fine": is_fine, "stores": found, "links": links})
    ctx.exit(FINE if is_fine else NO)
