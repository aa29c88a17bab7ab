"""Where results are kept: memory, a folder for each question beside the DAG, a temporary folder, an archive."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from empo_bi.dag.world_fingerprint import key_of
from empo_bi.errors import StoreNotFoundError
from empo_bi.runtime.digests import digest_of
from empo_bi.runtime.ordinary_files import check_relative, path_inside
from empo_bi.store.format_names import SOLUTION_KIND, WRITTEN_BY
from empo_bi.store.solved_levels import DIMENSIONS, MemorySolution, SolvedLevels
from empo_bi.store.zipped_run import zip_above
from empo_bi.types import Json
from empo_bi.world.as_model import Model

if TYPE_CHECKING:
    from empo_bi.store.solution_store import SolutionStore  # which imports zarr, a third of a second

SOLUTION = "solution-"  # how folders of solutions begin
ARCHIVES = ("human_values", "robot_values")  # folders of values that the documented functions archive
UNTOLD = ("world", "goals", "belief", "prior", "durations")  # None where nobody can tell them from others
UNTOLD_IF_THERE = ("terminal_Vr", "start", "stop")  # likewise, where they are part of the question


class SolutionFolders:
    """Solutions by the questions that they answer. What is finished is opened once, however often it is asked about.

    ``out`` is None for memory, True for temporary folders, or the folder or URL that holds a folder for each question, which
    ``content`` asks: by name, everything that the arrays depend on.
    """

    def __init__(self) -> None:
        self._finished: dict[str, SolutionStore] = {}  # that were opened, and not handed out yet

    def remember(self, found: SolutionStore) -> None:
        """Hand out a finished solution, which somebody has opened, when its question is asked."""
        self._finished[found.place.name] = found

    def results_for(self, out: Any, content: Json, about: Json, compression: Any, overwrite: bool) -> SolvedLevels:
        """Results for a question: those that are there, or a place for them.

        ``about`` has what else a store says of itself, among it the ``horizon``. Where the question cannot be told from
        others, since somebody's function is part of it, a folder of its own is begun each time.
        """
        if out is None:
            return MemorySolution(about["horizon"])
        name = folder_name(content)
        if not are_same(content, content):
            name += f"-{os.urandom(4).hex()}"
        where = True if out is True else inside(out, name)
        found = self._finished.pop(str(where), None)
        if found is not None and not overwrite:
            found.check_content(manifest_of(content, about))
            found.tidy()
            return found
        return _open_or_create(where, content, about, compression, overwrite)

    def is_begun(self, out: Any, content: Json) -> bool:
        """Whether results for a question are in a folder, all of them or some."""
        found = self._found(out, content)
        return found is not None and len(found) > 0

    def is_finished(self, out: Any, content: Json) -> bool:
        """Whether all results for a question are in a folder."""
        found = self._found(out, content)
        return found is not None and found.is_finished

    def _found(self, out: Any, content: Json) -> SolutionStore | None:
        from empo_bi.store.location import place_of
        from empo_bi.store.solution_store import SolutionStore

        if not has_folder(out, content):
            return None
        where = inside(out, folder_name(content))
        if str(where) not in self._finished:
            try:
                found = SolutionStore.open(place_of(where))
            except StoreNotFoundError:  # it was begun, and killed before anything was written
                return None
            if not found.is_finished:  # it may be another time
                return found
            self.remember(found)
        return self._finished[str(where)]


def _open_or_create(where: Any, content: Json, about: Json, compression: Any, overwrite: bool) -> SolutionStore:
    from empo_bi.store.compression import Compression
    from empo_bi.store.location import place_of
    from empo_bi.store.solution_store import SolutionStore

    return SolutionStore.open_or_create(
        place_of(where), manifest_of(content, about), compression=Compression.of(compression), overwrite=overwrite
    )


def has_folder(out: Any, content: Json) -> bool:
    """Whether there is a folder for a question, whatever is in it."""
    if not are_same(content, content):
        return False
    folder = inside(out, folder_name(content))
    return (
        is_url(folder) or Path(folder).is_dir() or zip_above(Path(folder)) is not None
    )  # whether a URL has something shows when it is opened


def is_url(place: Any) -> bool:
    return isinstance(place, str) and "://" in place and not place.startswith("file://")


def trimmed_url(url: str) -> str:
    """A URL without slashes at its end, except those of ``memory://``."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rstrip('/')}"


def inside(out: Any, name: str) -> Any:
    """A place inside a folder, or below a URL; names that would lead elsewhere are refused, and links as well."""
    if is_url(out):
        check_relative(name)
        base = trimmed_url(out)
        return f"{base}{name}" if base.endswith("/") else f"{base}/{name}"
    return path_inside(Path(str(out).removeprefix("file://")).expanduser(), name)


def folder_name(content: Json) -> str:
    return f"{SOLUTION}{digest_of(json.dumps(content, sort_keys=True))}"


def are_same(content: Json, other: Json) -> bool:
    """Whether two questions are known to be the same."""
    parts = [*UNTOLD, *(part for part in UNTOLD_IF_THERE if part in content)]
    return content == other and all(content.get(part) is not None for part in parts)


def check_archive(folder: Path) -> None:
    """Complain before the work, not after it, if somebody else's files are where an archive is to go."""
    from empo_bi.store.manifest import refuse_strangers

    if folder.exists():
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else [folder.name]
        refuse_strangers(str(folder), SOLUTION_KIND, names)


def write_archive(folder: Any, results: SolvedLevels, content: Json, about: Json, compression: Any) -> None:
    """Copy all levels to a store, replacing the one that is there."""
    archive = _open_or_create(folder, content, about, compression, overwrite=True)
    archive.backlog_bytes = 0  # a level at a time
    try:
        for t in range(about["horizon"], -1, -1):
            archive.put(t, {name: results.get(t, name) for name in DIMENSIONS if results.has(t, name)}, dict)
            results.give_back()
        archive.finish()
    except BaseException:
        archive.close()
        raise


def manifest_of(content: Json, about: Json) -> Json:
    kind = {"format": SOLUTION_KIND.format, "version": SOLUTION_KIND.version, "written_by": WRITTEN_BY}
    return {**kind, **about, "content": content}


def durations_key(model: Model, *, are_asked: bool) -> str | None:
    """Tells how a world's durations come about; part of its class, unless the object has a function of its own."""
    if not are_asked:
        return "unit"
    own = getattr(model.world, "__dict__", {}).get("transition_durations")
    if own is not None:
        return key_of(own)
    # The attributes of a world written in Python are part of its identity; a gridworld's identity is its map and rules.
    return key_of([type(model.world), model.added_attributes])
