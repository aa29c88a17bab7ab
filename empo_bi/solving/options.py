"""How a world is solved, beside the parameters of the theory: who is who, where results go, and what may be used for it.

The documented functions translate their options into these objects, once; everything behind them passes the objects on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from empo_bi.memory.budget import Budget
from empo_bi.memory.monitor import MemoryMonitor
from empo_bi.memory.profiler import MemoryProfiler, profiler_of
from empo_bi.problem.params import Params
from empo_bi.problem.protocols import GoalGenerator
from empo_bi.runtime.arguments import check_flags, check_kind
from empo_bi.runtime.blocks import checked_workers
from empo_bi.runtime.byte_sizes import Size
from empo_bi.store.solved_levels import ARRAYS

AfterLevel = Callable[[int, int, int], None]  # level, its number of states, number of all states


@dataclass(frozen=True, kw_only=True)
class Roles:
    """Who is who.

    Attributes
    ----------
    humans, robots : lists of agents; None for those of the world
    goals : the goal generator; None for that of the world
    prior : what humans do, as the user gave it; None for phase 1
    human_params : the parameters of phase 1, where phase 2 has others
    phase_2 : False to solve phase 1 alone
    """

    humans: Sequence[int] | None = None
    robots: Sequence[int] | None = None
    goals: GoalGenerator | None = None
    prior: object = None
    human_params: Params | None = None
    phase_2: bool = True


@dataclass(frozen=True, kw_only=True)
class Storage:
    """Where results go, and how they are stored.

    Attributes
    ----------
    where : None for memory, True for temporary folders, else a folder or URL (of a DAG alone, also a zip file or zarr store)
    folders : a folder for each set of parameters, in place of ``where``, which then is for the DAG alone
    arrays : names of the arrays that are kept
    archive : a folder that gets a copy of all results
    precision : of the humans' values, or of the probabilities of a DAG
    compression : True, False, a level, or the name of a compressor
    overwrite : replace what is there
    only_opens : what is not there is an error
    """

    where: object = None
    folders: Sequence[object] | None = None
    arrays: frozenset[str] = frozenset(ARRAYS)
    archive: object = None
    precision: str = "float16"
    compression: bool | int | str = True
    overwrite: bool = False
    only_opens: bool = False

    def places(self, n_sets: int) -> list[object]:
        """Where the results of each set of parameters go."""
        return [self.where] * n_sets if self.folders is None else list(self.folders)


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What may be used, and who hears of it meanwhile.

    Attributes
    ----------
    budget : what the process may hold
    workers : threads of the sweep, and what enumerating makes of them
    max_states : where enumerating stops
    monitor : looks after the machine's memory
    profiler : takes snapshots of what is held
    progress : whether bars and messages are shown
    after_level : called after every level that is solved
    """

    budget: Budget = field(default_factory=Budget)
    workers: int = 1
    max_states: int | None = None
    monitor: MemoryMonitor | None = None
    profiler: MemoryProfiler | None = None
    progress: bool = True
    after_level: AfterLevel | None = None


def resources_from(
    *,
    memory_limit: Size | None = None,
    workers: int = 1,
    max_states: int | None = None,
    monitor: MemoryMonitor | None = None,
    memory_profile: bool | MemoryProfiler | None = False,
    progress: bool = True,
    after_level: AfterLevel | None = None,
) -> Resources:
    """Resources as users write them, checked. A fraction of the available memory is measured here, once."""
    check_flags(progress=progress)
    check_kind("monitor", monitor, MemoryMonitor)
    budget = Budget.of(memory_limit)
    return Resources(
        budget=budget, workers=checked_workers(workers), max_states=max_states, monitor=monitor,
        profiler=profiler_of(memory_profile, budget.limit), progress=progress, after_level=after_level,
    )  # fmt: skip
