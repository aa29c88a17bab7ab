"""``empo-bi show``: summarise a run, a batch or a solution."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from empo_bi.cli.common import json_option, made_by_option, scale_option
from empo_bi.cli.output import echo, print_json
from empo_bi.errors import DamagedStoreError, StoreNotFoundError
from empo_bi.runtime.ordinary_files import is_plain_name
from empo_bi.runtime.printable import one_line
from empo_bi.runtime.wording import counted

if TYPE_CHECKING:
    import os

    from empo_bi.store.small_files import Folder
    from empo_bi.types import Json

DAMAGED = "damaged"


@click.command(short_help="Summarise a run, a batch or a solution.")
@click.argument("path", type=click.Path())
@made_by_option
@scale_option
@json_option
def show(path: str, made_by: str | None, scale: bool | None, as_json: bool) -> None:
    """Summarise PATH: a run of a batch, a whole batch, or a folder of `empo-bi solve --out`.

    Nothing in these files is executed. Runs of worlds and goals written in Python open with what was stored of them.

    \b
    Examples:
      empo-bi show runs/sweep                          # a batch: how many runs finished or failed
      empo-bi show runs/sweep/runs/freeing-12-0a1b2c   # one run: parameters, sizes, values, the robot's first move
      empo-bi show runs/mine                           # a folder of solve --out
      empo-bi show runs/mine --json | jq .V_r
    """
    from empo_bi.solving.run_manifest import read_manifest
    from empo_bi.store.small_files import Folder

    folder = Folder(path)
    if not folder.exists:
        raise StoreNotFoundError(f"{path}: does not exist")
    manifest = read_manifest(folder)
    if manifest is not None:
        print_json(manifest) if as_json else echo(_run(manifest))
        return
    if names := (folder / "runs").names():
        there = set(names)
        found = {name: _manifest_at(folder / "runs" / name) if name in there else None for name in _runs_of(folder, names)}
        content = _batch(found, len(set(names) - set(found)))
        print_json(content) if as_json else echo(_in_words(content, folder))
        return
    _solution(path, made_by, scale, as_json)


def _runs_of(folder: Folder, names: list[str]) -> list[str]:
    """The runs of the last call of a batch, as listed in its file, or else all runs in the folder."""
    listed = (folder.read_json("batch.json") or {}).get("runs")
    if not isinstance(listed, list) or not all(is_plain_name(name) for name in listed):
        return names
    return list(dict.fromkeys(listed))


def _manifest_at(folder: Folder) -> Json | None:
    """What the list of a batch needs of a run's manifest; one that cannot be read has the status "damaged"."""
    from empo_bi.solving.run_manifest import read_manifest

    try:
        found = read_manifest(folder)
    except DamagedStoreError:
        return {"status": DAMAGED}
    # No more than is shown: there may be thousands.
    needed = ("status", "steps", "error", "timings")
    return None if found is None else {
        **{name: found[name] for name in needed if name in found}, "world": {"name": found["world"]["name"]},
    }  # fmt: skip


def _run(manifest: Json) -> str:
    """A run as text."""
    lines = [one_line(manifest["world"]["title"]), f"status: {manifest['status']}"]
    if manifest["status"] == "failed":
        error = manifest["error"]
        lines.append(f"error: {one_line(error['type'] + ': ' + error['message'])}")
        lines += [f"    | {line}" for line in (error["traceback"] or "").splitlines()]  # marked, so none looks like ours
    params = {name: value for name, value in manifest["params"].items() if name != "believed_others"}
    lines.append("params: " + ", ".join(f"{name} {_number(value)}" for name, value in params.items()))
    columns = manifest.get("columns", {})
    groups = {
        "sizes": [name for name in columns if name in ("states", "bodies", "transitions", "levels")],
        "at the start": [name for name in columns if name in ("V_r", "U_r") or name.startswith("X_h")],
        "the robot": [name for name in columns if name.startswith("pi_r")],
        "humans attain": [name for name in columns if name.startswith("V_h") and name.endswith("_mean")],
    }
    known = {name for names in groups.values() for name in names}
    groups["metrics"] = [name for name in columns if name not in known and not name.startswith("V_h")]
    for title, names in groups.items():
        if names:
            numbers = ", ".join(f"{name} {_number(columns[name])}" for name in names)
            lines.append(f"{title}: {one_line(numbers)}")
    if timings := manifest.get("timings"):
        seconds = {name: value for name, value in timings.items() if name.endswith("_seconds")}
        times = ", ".join(f"{name.removesuffix('_seconds')} {value:.3g} s" for name, value in seconds.items())
        where = f"at most {timings['peak_bytes'] / 1e6:,.0f} MB, on {manifest['machine']['host']}"
        lines.append(one_line(f"took: {times}, {where}"))
    kept = manifest["asked"]["keep"]
    lines.append(f"kept: {kept}" + ("" if manifest.get("dag") is None else f"; the DAG in {manifest['dag']}"))
    return "\n".join(
        [*lines, one_line(f"begun {manifest['begun']}" + (f", ended {manifest['ended']}" if "ended" in manifest else ""))]
    )


def _batch(manifests: dict[str, Json | None], n_others: int) -> Json:
    """The status of the runs of a batch; ``n_others`` are runs of earlier calls."""
    words = {None: "not done", "running": "begun and not finished"}  # keys of the JSON output
    there = {name: run for name, run in manifests.items() if run is not None and run["status"] != DAMAGED}
    statuses = [None if run is None else run["status"] for run in manifests.values()]
    return {
        "runs": len(manifests),
        "status": dict(Counter(words.get(status, status) for status in statuses)),
        "worlds": dict(Counter(one_line(run["world"]["name"]) for run in there.values())),
        "others": n_others,
        "seconds": sum(run["timings"]["solve_seconds"] for run in there.values() if "timings" in run),
        "failed": [{"run": name, "world": run["world"]["name"], "steps": run["steps"],
                    "error": f"{run['error']['type']}: {run['error']['message']}"}
                   for name, run in there.items() if run["status"] == "failed"],
    }  # fmt: skip


def _in_words(content: Json, folder: Folder) -> str:
    from empo_bi.batch.batch import failure_lines

    lines = [
        f"{counted(content['runs'], 'run')}: " + ", ".join(f"{n:,} {status}" for status, n in content["status"].items()),
        "worlds: " + ", ".join(f"{name} ({n:,})" for name, n in content["worlds"].items()),
        f"solving took {content['seconds']:.3g} s of the workers' time",
    ]
    lines += [f"  failed: {line}" for line in failure_lines(content["failed"])]
    if content["others"]:
        lines.append(f"{counted(content['others'], 'other run')} from earlier calls in {folder}/runs may be deleted")
    return "\n".join([*lines, f"table: {folder}/table.csv"])


def _solution(path: str, made_by: str | None, scale: bool | None, as_json: bool) -> None:
    from empo_bi.solving.opening import solutions_in
    from empo_bi.solving.solution_list import lines_of
    from empo_bi.store.small_files import Folder

    places = solutions_in(path)
    if len(places) == 1:
        _show_solution(places[0], made_by, scale, as_json)
        return
    if not as_json:
        echo("\n".join([f"{len(places):,} solutions:", *lines_of(Folder(path), [Folder(place).name for place in places])]))
    for place in places:
        if not as_json:
            echo(f"\n{Folder(place).name}")
        try:
            _show_solution(place, made_by, scale, as_json)
        except StoreNotFoundError as error:  # it is not finished; the others may be
            echo(str(error), err=True)


def _show_solution(place: str | os.PathLike[str], made_by: str | None, scale: bool | None, as_json: bool) -> None:
    from empo_bi.cli.scale import Comparison
    from empo_bi.cli.solve import content_of, in_words
    from empo_bi.solving.opening import open_solution
    from empo_bi.solving.options import Resources

    with open_solution(place, world=made_by) as solution:
        report = solution.at(solution.dag.states(0)[0])
        compared = Comparison.of(solution, report, scale, Resources(progress=not as_json))
        if as_json:
            content = content_of(solution, report, solution.model.title, str(place), None)
            print_json(content | {"scale": compared.content})
            return
        given = {name: _number(value) for name, value in solution.params.describe().items() if name != "believed_others"}
        given |= {} if solution.params.terminal_function is None else {"terminal_Vr": "a function"}
        params = ", ".join(f"{name} {value}" for name, value in given.items())
        lines = [one_line(solution.model.title), f"params: {params}", solution.summary(), *in_words(solution, report)]
        echo("\n".join([*lines, *compared.lines]))


def _number(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
