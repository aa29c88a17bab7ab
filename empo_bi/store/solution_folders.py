"""Where results are kept: memory, a folder for each question beside the DAG, a temporary folder, an archive."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from empo_bi.dag.world_fingerprint import key_of
from empo_bi.errors import StoreNotFoundError
from empo_bi.runtime.digests import digest_of
from empo_bi.runtime.ordinary_files import check_relative, path_inside
from empo_bi.store.solved_levels import ARRAYS, MemorySolution, SolvedLevels
from empo_bi.world.as_model import Model

SOLUTION = "solution-"  # how folders of solutions begin
ARCHIVES = ("human_values", "robot_values")  # folders of values that the documented functions archive
UNTOLD = ("world", "goals", "belief", "prior", "durations")  # None where nobody can tell them from others


def results_for(out: Any, content: dict[str, Any], about: dict[str, Any], compression: Any, overwrite: bool) -> SolvedLevels:
    """Results for the question that ``content`` asks: those that are there, or a place for them.

    ``about`` has what else a store says of itself, among it the ``horizon``. Where the question cannot be told from others,
    since somebody's function is part of it, a folder of its own is begun each time.
    """
    if out is None:
        return MemorySolution(about["horizon"])
    from empo_bi.store.encoded import Compression
    from empo_bi.store.location import place_of
    from empo_bi.store.solution_store import SolutionStore

    name = _folder_name(content)
    if not are_same(content, content):
        name += f"-{os.urandom(4).hex()}"
    place = place_of(True if out is True else inside(out, name))
    manifest = manifest_of(content, about)
    return SolutionStore.open_or_create(place, manifest, compression=Compression.of(compression), overwrite=overwrite)


def is_begun(out: Any, content: dict[str, Any]) -> bool:
    """Whether results for a question are in a folder, all of them or some."""
    found = _found(out, content)
    return found is not None and len(found.levels) > 0


def is_finished(out: Any, content: dict[str, Any]) -> bool:
    """Whether all results for a question are in a folder."""
    found = _found(out, content)
    return found is not None and found.next_level < 0


def _found(out: Any, content: dict[str, Any]) -> Any:
    from empo_bi.store.location import place_of
    from empo_bi.store.solution_store import SolutionStore

    if not has_folder(out, content):
        return None
    try:
        return SolutionStore.open(place_of(inside(out, _folder_name(content))))
    except StoreNotFoundError:  # it was begun, and killed before anything was written
        return None


def has_folder(out: Any, content: dict[str, Any]) -> bool:
    """Whether there is a folder for a question, whatever is in it."""
    if not are_same(content, content):
        return False
    folder = inside(out, _folder_name(content))
    return is_url(folder) or Path(folder).is_dir()  # whether a URL has something shows when it is opened


def is_url(place: Any) -> bool:
    return isinstance(place, str) and "://" in place and not place.startswith("file://")


def inside(out: Any, name: str) -> Any:
    """A place inside a folder, or below a URL; names that would lead elsewhere are refused, and links as well."""
    if is_url(out):
        check_relative(name)
        return f"{out.rstrip('/')}/{name}"
    return path_inside(Path(str(out).removeprefix("file://")).expanduser(), name)


def _folder_name(content: dict[str, Any]) -> str:
    return f"{SOLUTION}{digest_of(json.dumps(content, sort_keys=True))}"


def are_same(content: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two questions are known to be the same."""
    return content == other and all(content.get(part) is not None for part in UNTOLD)


def check_archive(folder: Path) -> None:
    """Complain before the work, not after it, if somebody else's files are where an archive is to go."""
    from empo_bi.store.solution_store import refuse_strangers

    if folder.exists():
        refuse_strangers(str(folder), sorted(path.name for path in folder.iterdir()) if folder.is_dir() else [folder.name])


def write_archive(
    folder: Any, results: SolvedLevels, content: dict[str, Any], about: dict[str, Any], compression: Any
) -> None:
    """Copy all levels to a store, replacing the one that is there."""
    from empo_bi.store.encoded import Compression
    from empo_bi.store.location import place_of
    from empo_bi.store.solution_store import SolutionStore

    manifest = manifest_of(content, about)
    archive = SolutionStore.open_or_create(
        place_of(folder), manifest, compression=Compression.of(compression), overwrite=True
    )
    archive.backlog_bytes = 0  # a level at a time
    try:
        for t in range(about["horizon"], -1, -1):
            archive.put(t, {name: results.get(t, name) for name in ARRAYS if results.has(t, name)}, dict)
            results.give_back()
        archive.finish()
    except BaseException:
        archive.close()
        raise


def manifest_of(content: dict[str, Any], about: dict[str, Any]) -> dict[str, Any]:
    from empo_bi.store.solution_store import FORMAT, VERSION

    return {"format": FORMAT, "version": VERSION, **about, "content": content}


def durations_key(model: Model, *, are_asked: bool) -> str | None:
    """Tells how a world's durations come about; part of its class, unless the object has a function of its own."""
    if not are_asked:
        return "unit"
    own = getattr(model.world, "__dict__", {}).get("transition_durations")
    if own is not None:
        return key_of(own)
    # The attributes of a world written in Python are part of its identity; a gridworld's identity is its map and rules.
    return key_of([type(model.world), model.added_attributes])
