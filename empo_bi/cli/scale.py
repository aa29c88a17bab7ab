"""What `empo-bi solve` and `show` say after the values: how other robots would do, and what to type next."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from empo_bi.errors import EmpoError, MemoryLimitError

if TYPE_CHECKING:
    from empo_bi.results.solution import Solution
    from empo_bi.results.state_report import StateReport
    from empo_bi.solving.options import Resources
    from empo_bi.types import Json


@dataclass(frozen=True)
class Comparison:
    """V_r among those of other robots, as text and as JSON; both are empty where there is nothing to compare."""

    lines: list[str] = field(default_factory=list)
    content: Json | None = None

    @classmethod
    def of(cls, solution: Solution, report: StateReport, asked: bool | None, resources: Resources) -> Comparison:
        """``asked``: whether somebody wants it; None for what takes a few seconds at most."""
        if asked is False or not solution.has_robot or not solution.robots or report.is_terminal:
            return cls()
        from empo_bi.analysis.scale import is_cheap, scale_within
        from empo_bi.solving.evaluation import why_not

        if (reason := why_not(solution)) is not None:
            return cls([f"V_r was not compared with that of other robots: {reason}"])
        if asked is None and not is_cheap(solution):
            return cls(["V_r was not compared with that of other robots, which takes longer here; --scale does it"])
        try:
            scale = scale_within(solution, report.state, None, resources)
        except MemoryLimitError:
            return cls(["V_r was not compared with that of other robots, which takes more than the memory limit"])
        except EmpoError as error:  # what was solved is there all the same
            return cls([f"V_r was not compared with that of other robots: {error}"])
        return cls(str(scale).splitlines(), scale.to_json())


def next_steps(place: str | None, name: str) -> list[str]:
    """What to type next: commands that look through a run that was kept at a place, or how to keep one."""
    if place is None:
        folder = shlex.quote(f"runs/{name}")
        return [f"next: add --out {folder} to keep this run; then empo-bi report {folder} --out report.html"]
    run = shlex.quote(place)
    return [
        f"next: empo-bi report {run} --out report.html writes a page to look through; empo-bi rollout {run} shows episodes"
    ]


def place_of_results(solution: Solution, out: str) -> str:
    """The folder that commands take: that of the run, or of its solution if there are others beside it."""
    from empo_bi.solving.opening import solutions_in

    is_only = len(solutions_in(out)) == 1 or solution.results.name is None
    return out if is_only else str(Path(out) / str(solution.results.name))
