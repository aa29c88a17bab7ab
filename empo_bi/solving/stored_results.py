"""Where the results of each set of parameters go, and what is there already."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from empo_bi.dag.dag import Dag
from empo_bi.errors import StoreMismatchError
from empo_bi.solving import result_content
from empo_bi.solving.options import Storage
from empo_bi.solving.problem import Problem
from empo_bi.solving.result_content import ResultContent
from empo_bi.store.records import SOLUTION_ANSWERS
from empo_bi.store.solution_folders import ARCHIVES, SolutionFolders, are_same, has_folder, inside, write_archive
from empo_bi.store.solved_levels import SolvedLevels
from empo_bi.sweep.phases import Setting
from empo_bi.types import Json


def archive_folder(storage: Storage, phase_2: bool) -> Path:
    return Path(inside(storage.archive, ARCHIVES[phase_2]))


@dataclass(frozen=True)
class StoredResults:
    """The places of all sets of parameters. Sets go by their numbers."""

    problem: Problem
    dag: Dag
    storage: Storage
    folders: SolutionFolders

    @cached_property
    def places(self) -> list[object]:
        return self.storage.places(len(self.problem.params))

    @cached_property
    def _content(self) -> ResultContent:
        return ResultContent(self.problem, self.dag, self.storage.arrays)

    @property
    def has_folders(self) -> bool:
        """Whether results can be found again; those in memory and in temporary folders cannot."""
        return self.places[0] is not None and self.places[0] is not True

    def contents(self, chosen: Iterable[int], setting: Setting) -> dict[int, Json]:
        """What the results of some sets depend on; nothing where nobody wants to know, since that may take seconds."""
        is_kept = self.has_folders or self.storage.archive is not None
        return {i: self._content.of(i, setting) if is_kept else {} for i in chosen}

    def is_begun(self, i: int, setting: Setting) -> bool:
        return self.has_folders and self.folders.is_begun(self.places[i], self._content.of(i, setting))

    def unfinished(self, contents: dict[int, Json]) -> list[int]:
        """Sets of which something is left to solve; an error if results are only to be opened."""
        left = [i for i, content in contents.items() if not self._is_finished(i, content)]
        if left and self.storage.only_opens:
            raise StoreMismatchError(
                f"{self.places[left[0]]}: what is there was solved for another world, or by another version of empo_bi; "
                "solve it again"
            )
        return left

    def _is_finished(self, i: int, content: Json) -> bool:
        return self.has_folders and not self.storage.overwrite and self.folders.is_finished(self.places[i], content)

    def are_same(self, i: int, j: int, contents: dict[int, Json]) -> bool:
        """Whether two sets ask the same, so that the second finds the results of the first in the same folder."""
        return self.has_folders and self.places[i] == self.places[j] and are_same(contents[i], contents[j])

    def is_there(self, i: int, content: Json) -> bool:
        return self.folders.is_begun(self.places[i], content)

    def opened(self, i: int, content: Json, setting: Setting, *, overwrite: bool) -> SolvedLevels:
        """The results that are there, or a place for them."""
        about = result_content.description(self.problem, self.dag, setting)
        return self.folders.results_for(self.places[i], content, about, self.storage.compression, overwrite)

    def forget(self, chosen: Iterable[int], setting: Setting) -> None:
        """With ``overwrite``, what was solved with other tables goes as well, or later calls would prefer it."""
        for i in chosen if self.storage.overwrite and self.has_folders else ():
            content = self._content.of(i, setting)
            if has_folder(self.places[i], content):
                self.opened(i, content, setting, overwrite=True).remove()

    def archive(self, results: SolvedLevels, content: Json, setting: Setting) -> None:
        """Copy results to the archive, if there is to be one."""
        if self.storage.archive is not None:
            about = result_content.description(self.problem, self.dag, setting)
            if not results.answers:  # they are in memory, and have their functions at hand
                about = {name: value for name, value in about.items() if name not in SOLUTION_ANSWERS}
            about["world"] = self.problem.model.mapping  # so that its readers can find the states again
            folder = archive_folder(self.storage, self.problem.phase_2)
            write_archive(folder, results, content, about, self.storage.compression)
