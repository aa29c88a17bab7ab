"""How a sweep keeps within its memory: sizes to begin with, what can be given back, what is held, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from empo_bi.dag.dag import Dag
from empo_bi.dag.level_blocks import LevelBlocks
from empo_bi.memory.budget import Budget
from empo_bi.runtime.machine import set_malloc_threshold, trim
from empo_bi.solving.options import Resources, Storage
from empo_bi.solving.problem import Problem
from empo_bi.store.solved_levels import SolvedLevels
from empo_bi.sweep.backward_pass import SolveTask
from empo_bi.sweep.cluster_blocks import workers_or_batches
from empo_bi.sweep.memory_model import SweepSizes, shape_of, sizes_for
from empo_bi.sweep.phases import Setting

SMALL_BLOCK = 64  # states, when memory is short


def remedy(storage: Storage, n_sets: int) -> str:
    """What would help where memory does not suffice, without what is done already."""
    ways = {
        "keep everything on disk (out=PATH, which can be continued)": storage.places(n_sets)[0] is None,
        "shorten the horizon": True,
        "use fewer goals": True,
        "solve fewer sets of parameters at a time": n_sets > 1,
        "use precision='float16'": storage.precision != "float16",
    }
    text = ", ".join(way for way, is_left in ways.items() if is_left)
    return f"{text[0].upper()}{text[1:]}, or allow more"


def sweep_sizes(
    problem: Problem, dag: Dag, setting: Setting, resources: Resources, chosen: Sequence[int], *, in_memory: bool
) -> SweepSizes:
    """Sizes that keep a sweep of some sets within its budget; slices that enumeration left in memory go first."""
    shape = shape_of(
        dag, setting, in_memory=in_memory, asks=problem.asks(setting), robot_phases=len(chosen) if problem.phase_2 else 0,
        human_phases=len({problem.human_key(i) for i in chosen}) if problem.prior is None else 0,
        has_prior=problem.prior is not None,
    )  # fmt: skip
    if resources.budget.limit is not None:
        dag.levels.give_back()
        set_malloc_threshold()
        trim()
    budget = resources.budget if chosen else Budget()  # what is there already is only opened
    sizes = sizes_for(shape, dag.levels.sizes, budget, workers_or_batches(resources.workers, dag.n_profiles))
    dag.levels.give_back(sizes.cache_bytes)
    return sizes


def give_back(blocks: LevelBlocks, results: Iterable[SolvedLevels]) -> None:
    """Let go of all that can be read again, and go on in small steps."""
    blocks.dag.levels.give_back()
    for levels in results:
        levels.give_back()
    blocks.block_states = max(1, min(blocks.block_states, SMALL_BLOCK))


def owners(dag: Dag, tasks: Sequence[SolveTask]) -> dict[str, int]:
    """Arrays that a sweep holds, by what they are for.

    The level that was just handed over counts once, though its sink has the same arrays, unless it has written them already.
    """
    phases = dict.fromkeys(phase for task in tasks for phase in task.phases)
    in_work = {phase: sum(array.nbytes for array in phase.arrays().values()) for phase in phases}
    handed_over = [sum(in_work[phase] for phase in task.phases) for task in tasks]
    return {
        "slices at hand": dag.levels.cached_bytes,
        "tables of values": sum(table.nbytes for phase in phases for table in phase.tables().values()),
        "the level in work": sum(in_work.values()),
        "solved levels in memory": sum(
            max(0, task.sink.held_bytes - nbytes) for task, nbytes in zip(tasks, handed_over, strict=True)
        ),
    }
