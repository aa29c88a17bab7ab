"""Writing a report: :func:`write_report`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from operator import index
from pathlib import Path

import numpy as np

from empo_bi.report.content import content_of
from empo_bi.report.fitting import fitted_page
from empo_bi.report.page import page_of
from empo_bi.report.state_selection import MIN_PROBABILITY, choose
from empo_bi.report.survey import survey
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import check_flags, check_kind, check_path, suggests_names
from empo_bi.runtime.atomic_write import atomic_write, checked_place
from empo_bi.runtime.compilation import quiet_unless_shown
from empo_bi.runtime.wording import counted


@dataclass(frozen=True)
class ReportFile:
    """The file that was written.

    Attributes
    ----------
    path, bytes
    states, reached, embedded : how many states the run has, how many can be reached, how many the file shows
    """

    path: Path
    bytes: int
    states: int
    reached: int
    embedded: int

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.bytes / 1e6:,.1f} MB with {counted(self.embedded, 'state')} of {self.reached:,} that can "
            f"be reached ({self.states:,} in all)"
        )


@suggests_names()
@quiet_unless_shown
def write_report(
    solution: Solution, path: str | os.PathLike[str], *, min_probability: float = MIN_PROBABILITY,
    max_states: int | None = None, title: str | None = None, overwrite: bool = False, progress: bool = True,
) -> ReportFile:  # fmt: skip
    """Write one HTML file to look through a solution; it needs no network and no server.

    Parameters
    ----------
    solution : Solution, with both phases
    path : path of the file, such as ``report.html``
    min_probability : float in [0, 1]
        Show states that are reached with at least this probability under both policies, and their likeliest successors.
    max_states : int, optional
        Show at most this many of these states, the most probable of the whole run. By default as many as fit into a file of
        about 2 MB.
    title : optional
        By default the world's title.
    overwrite : bool
        Replace an existing file.
    progress : bool
        Show a bar if it takes longer than a second.

    Examples
    --------
    >>> import tempfile
    >>> from empo_bi import load_world, solve
    >>> solution = solve(load_world("basics/first_steps", max_steps=3), progress=False)
    >>> report = write_report(solution, tempfile.mkdtemp() + "/report.html", progress=False)
    >>> report.embedded == report.reached, report.bytes < 1e6
    (True, True)
    """
    check_choices(solution, min_probability, max_states, title)
    check_path("path", path, "the name of a file, such as report.html")
    check_flags(overwrite=overwrite, progress=progress)
    file = checked_place(path, overwrite)
    made = made_page(solution, min_probability=min_probability, max_states=max_states, title=title, progress=progress)
    with atomic_write(file) as unfinished:
        unfinished.write_bytes(made.page)
    return ReportFile(file, len(made.page), solution.dag.n_states, made.reached, made.embedded)


def check_choices(solution: object, min_probability: object, max_states: object, title: object) -> None:
    """Refuse what is not a solution of both phases, and wrong choices of what to show of it."""
    if not isinstance(solution, Solution):
        raise TypeError(f"solution is a {type(solution).__name__}; give a Solution, as solve or open_solution returns it")
    if not solution.has_robot:
        raise ValueError("phase 2 was not solved (phase_2=False), but a report shows both policies; solve both phases")
    if not isinstance(min_probability, int | float | np.number) or not 0 <= min_probability <= 1:
        raise ValueError(f"min_probability={min_probability!r}; give a probability from 0 to 1")
    is_number = hasattr(max_states, "__index__") and not isinstance(max_states, bool)
    if max_states is not None and not (is_number and index(max_states) >= 1):  # type: ignore[arg-type]
        raise ValueError(f"max_states={max_states!r}; give a whole number of at least 1, or None")
    check_kind("title", title, str)


@dataclass(frozen=True)
class MadePage:
    """The explorer as the bytes of an HTML file; how many states can be reached, and how many it shows."""

    page: bytes
    reached: int
    embedded: int


def made_page(
    solution: Solution, *, min_probability: float, max_states: int | None, title: str | None, progress: bool
) -> MadePage:
    """The page for a solution; the choices are checked already."""
    title = None if title is None else str(title)
    found = survey(solution, progress=progress)
    if max_states is None:
        choice, page = fitted_page(solution, found, min_probability=float(min_probability), title=title)
    else:
        choice = choose(solution, found, min_probability=float(min_probability), max_states=int(max_states))
        page = page_of(content_of(solution, found, choice, title)).encode("utf-8")
    return MadePage(page, int(found.reached_T.sum()), len(choice))
