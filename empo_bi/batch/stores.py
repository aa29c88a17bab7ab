"""The stores in a folder of :func:`solve` or of a batch, on disk or at a URL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from empo_bi.errors import DamagedStoreError, EmpoError
from empo_bi.runtime.ordinary_files import is_plain_name
from empo_bi.runtime.wording import short_repr
from empo_bi.solving.opening import open_stored
from empo_bi.solving.run_manifest import REMEDY, is_about, is_half_written, openable, read_manifest
from empo_bi.store.location import BUILDING, place_of
from empo_bi.store.small_files import Folder
from empo_bi.store.solution_folders import SOLUTION, is_url
from empo_bi.store.solution_store import SolutionStore
from empo_bi.types import Json

DEPTH = 3  # how deep nested folders are searched


def stores_at(path: object) -> list[object]:
    """The store at ``path``, or all stores if it is the folder of :func:`solve` or of a batch, or a folder of these.

    Empty for a batch without stores.
    """
    if not isinstance(path, str | os.PathLike):
        return [path]
    folder = Folder(path)
    try:
        found: list[object] = [path] if _is_store(folder) else list(_stores_in(folder, DEPTH))
        return found or ([] if _is_of_batch(folder) else [path])
    except DamagedStoreError:  # half of a zip file, which says so when it is opened
        return [path]


def damaged_manifests(path: object) -> list[str]:
    """What is wrong with manifests of runs, in a run's folder or in that of a batch."""
    if not isinstance(path, str | os.PathLike):
        return []
    folder, found = Folder(path), list[str]()
    try:
        runs = [folder, *(folder / "runs").folders()] if "runs" in folder.names("runs") else [folder]
    except DamagedStoreError:  # half of a zip file
        return found
    for run in runs:
        try:
            read_manifest(run)
        except DamagedStoreError as error:
            if not is_half_written(run):
                found.append(str(error))
    return found


def problems_when_opened(store: object) -> list[str]:
    """What opening a finished solution says against it, where its world is at hand."""
    if not isinstance(store, str | os.PathLike) or not Folder(store).name.startswith(SOLUTION):
        return []
    try:
        found = read_manifest(Folder(os.path.dirname(os.fspath(store).rstrip("/"))))
        run = None if found is None else openable(found)
        if found is not None and (run is None or run.get("store") != Folder(store).name):
            return []  # of a run that is not finished, or of an earlier one
        if run is not None and run["dag"] is None:  # finding its states again would take as long as somebody wants
            return wrong_summary(store, run)
        open_stored(store).close()
        return []
    except DamagedStoreError as error:
        return [str(error)]
    except (EmpoError, ValueError):  # its world is not at hand, or it is not finished
        return []


def wrong_summary(store: str | os.PathLike[str], run: Json) -> list[str]:
    """What the summary of a batch's run says that is not so, as far as that can be told without its DAG."""
    results = SolutionStore.open(place_of(store))
    content = results.manifest["content"]
    found: Json = {"states": sum(content["level_sizes"])}
    if results.has(0, "vr"):
        found["V_r"] = float(results.get(0, "vr")[0])
    if results.has(0, "xh"):
        found |= {f"X_h_{human}": float(x) for human, x in zip(content["humans"], results.get(0, "xh")[0], strict=True)}
    others = (
        [] if run["params"] == content["params"] else [f"{store}: this run has other parameters than its solution. {REMEDY}"]
    )
    return [*others, *_wrong_columns(store, run, found)]


def _wrong_columns(store: str | os.PathLike[str], run: Json, found: Json) -> list[str]:
    """Numbers in the summary of a batch's run that are not those of its solution."""
    said = run.get("columns", {})
    wrong = [name for name, value in found.items() if not is_about(said.get(name), value)]
    return [
        f"{store}: the summary of this run says {name} {short_repr(said.get(name))}, the solution {found[name]!r}. {REMEDY}"
        for name in wrong[:5]
    ]


def links_at(path: object) -> list[str]:
    """Links in a folder, as deep as stores are looked for; what they lead to is not part of it, and is left alone."""
    found: list[str] = []
    if not isinstance(path, str | os.PathLike) or is_url(path):
        return found
    for folder, folders, files in os.walk(os.fspath(path)):
        inside = [os.path.join(folder, name) for name in (*folders, *files)]
        found += filter(os.path.islink, inside)
        if os.path.relpath(folder, path).count(os.sep) >= DEPTH:
            folders.clear()
    return sorted(found)


def _is_of_batch(folder: Folder) -> bool:
    """Whether this is the folder of a batch, even one that has just begun, or of a run."""
    return bool({"batch.json", "manifest.json"} & set(folder.names())) or (
        not is_url(folder.place) and (folder.place / "batch.lock").exists()
    )


def _stores_in(folder: Folder, depth: int) -> Iterator[object]:
    """Places inside a folder that are stores, or have the name of one.

    A damaged store may have lost even its metadata; one whose writer was killed early may be only a lock.
    """
    for name in sorted(_names_in(folder)):
        inside = folder / name
        if name == "dag" or name.startswith(SOLUTION) or folder.name == "dags" or _is_store(inside):
            yield inside.place
        elif depth:
            yield from _stores_in(inside, depth - 1)


def _names_in(folder: Folder) -> set[str]:
    """Names of folders, of files in the place of a store, and of locks without a folder; unfinished zip files have both."""
    names = {inside.name.removesuffix(BUILDING) for inside in folder.folders() if not inside.name.startswith(".")}
    names |= {name for name in folder.names() if name == "dag" or re.fullmatch(rf"{SOLUTION}[0-9a-f]+", name)}  # or a file
    if not is_url(folder.place) and folder.place.is_dir():
        names |= {path.stem for path in folder.place.glob("*.lock") if path.name != "batch.lock"}
        names = set(filter(is_plain_name, names))
    return names


def _is_store(folder: Folder) -> bool:
    return "zarr.json" in folder.names("zarr.json") or (not is_url(folder.place) and place_of(folder.place).is_begun)
