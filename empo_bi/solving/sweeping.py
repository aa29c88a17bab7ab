"""One sweep over a DAG, looked after: its memory, its progress, and Ctrl-C."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

from empo_bi.dag.level_blocks import LevelBlocks
from empo_bi.memory.watch import Watch
from empo_bi.runtime.interrupts import Interrupts, kept_interrupts
from empo_bi.solving.memory_advice import give_back, owners
from empo_bi.solving.options import Resources
from empo_bi.solving.problem import Problem
from empo_bi.sweep.backward_pass import SolveTask, Sweep
from empo_bi.sweep.memory_model import SweepSizes
from empo_bi.sweep.phases import Setting


def run_sweep(
    problem: Problem, blocks: LevelBlocks, setting: Setting, tasks: Sequence[SolveTask], sizes: SweepSizes,
    resources: Resources, watch: Watch, *, after_level: Callable[[int, int], None], doing: str = "solve",
) -> None:  # fmt: skip
    """Run all tasks from where their sinks are; ``watch`` looks after it, ``after_level`` hears of each level."""
    asks = problem.asks(setting)
    watch.give_back = partial(give_back, blocks, [task.sink for task in tasks])
    watch.owners = partial(owners, blocks.dag, tasks)
    sweep = Sweep(
        blocks, setting, tasks, resources.workers, wants_states=asks, asks_durations=not setting.unit_durations,
        waits=sizes.waits, progress=resources.progress, memory_limit=resources.budget.limit, after_block=watch.look,
        after_level=after_level, doing=doing,
    )  # fmt: skip
    # Functions of users may take long; nobody should have to wait for them.
    may_take_long = asks or problem.asks_at_the_end or problem.prior is not None
    keeping = contextlib.nullcontext(Interrupts()) if may_take_long else kept_interrupts()
    with keeping as watch.interrupts:
        sweep.run()
    watch.forget()
