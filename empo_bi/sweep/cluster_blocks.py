"""Blocks of a level computed on a cluster: each goes there with just the rows that it reads, and comes back as rows.

Those who compute it have neither the DAG nor its tables. They run the same phases on small tables, which have the rows of
successors that occur ("ghost rows"), so that the numbers are the same, bit by bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from empo_bi.dag.level_blocks import NO_FLOATS, RestingBlock
from empo_bi.runtime.blocks import active_cluster
from empo_bi.sweep.level_inputs import Level
from empo_bi.sweep.memory_model import BLOCK_STATES
from empo_bi.sweep.phase_pairs import PhasePair, distinct, phases_of, prior_of, run_block
from empo_bi.sweep.phases import BlockInputs, HumanPhase, PhaseSetting, RobotPhase, Setting, StateInputs
from empo_bi.sweep.undefined_values import StateTrouble
from empo_bi.sweep.value_tables import RowPlan
from empo_bi.types import Array, Arrays, IndexArray, SuccessorArray
from empo_bi.world.as_model import Model

FEWEST_STATES = 4096  # of a level that is worth sending, if only kernels compute it
FEWEST_ASKED = 64  # the same where users' functions are asked, which take longer than the way
BATCH_PAIRS = 1 << 18  # (state, profile) pairs that travel together: the more, the more ghost rows have they in common
LEAST_STATES = 1024  # that travel together, if only kernels compute them
PARTS_PER_WORKER = (
    4  # into which a level is divided if it is large enough, so that all workers are done at about the same time
)


@dataclass(frozen=True, eq=False)
class SharedSetting:
    """What all batches of a sweep have in common, sent once: phases without tables; the world, if it has durations."""

    setting: PhaseSetting
    pairs: Sequence[PhasePair]
    model: Model | None

    @classmethod
    def of(cls, pairs: Sequence[PhasePair], setting: Setting, model: Model | None) -> SharedSetting:
        lean = setting.lean(prior_of(pairs) is not None)
        return cls(lean, _fresh(pairs, lean), model)


@dataclass(frozen=True)
class BlockBatch:
    """Blocks of a level with all that phases read, except for what all batches share.

    Attributes
    ----------
    chosen : which of the shared pairs compute them
    blocks : their places are rows of the batch's own tables and levels, their successors ghost rows
    about : for each block what is known of its states, see :meth:`~empo_bi.sweep.level_inputs.Level.of`
    ghosts : for each phase its tables, by name: rows of the successors
    place_M : (M,) places of all states of the blocks in the level
    """

    chosen: list[int]
    blocks: list[RestingBlock]
    about: list[StateInputs]
    ghosts: list[Arrays]
    place_M: IndexArray


@dataclass(frozen=True)
class BlockResults:
    """What comes back.

    Attributes
    ----------
    place_M : as in the batch
    rows : for each phase, by name, the rows (M, ...) for its tables
    arrays : for each phase, by name, the rows (M, ...) for its level
    given_up : which of the shared pairs are
    """

    place_M: IndexArray
    rows: list[Arrays]
    arrays: list[Arrays]
    given_up: list[int]


def batch_of(
    level: Level, blocks: Sequence[RestingBlock], chosen: list[int], phases: Sequence[HumanPhase | RobotPhase]
) -> BlockBatch:
    """Make blocks independent of the tables in which their successors have rows."""
    slots = [level.rows.slots_of(block.succ_K) for block in blocks]
    ghost_N, local_of, base = _ghosts(slots)
    moved, first = [], 0
    for block, slot_K in zip(blocks, slots, strict=True):
        here = np.arange(first, first + len(block.place_M))
        moved.append(replace(block, place_M=here, body_M=here[:0], succ_K=local_of[slot_K - base]))
        first += len(here)
    return BlockBatch(
        chosen=chosen,
        blocks=moved,
        about=[level.of(block.place_M) for block in blocks],
        ghosts=[{name: table.read[ghost_N] for name, table in phase.tables().items()} for phase in phases],
        place_M=np.concatenate([block.place_M for block in blocks]),
    )


def compute_block_batch(shared: SharedSetting, batch: BlockBatch) -> BlockResults:
    """Compute a batch; this is what runs elsewhere."""
    pairs = _fresh([shared.pairs[i] for i in batch.chosen], shared.setting)  # threads of a worker share these
    phases, n = phases_of(pairs), len(batch.place_M)
    for phase, ghosts in zip(phases, batch.ghosts, strict=True):
        phase.begin(RowPlan(n, np.arange(n), None), n)
        for name, table in phase.tables().items():
            table.read = ghosts[name]
    for resting, about in zip(batch.blocks, batch.about, strict=True):
        block = resting.awake()
        work = BlockInputs(0, block, block.place_M, block.succ_K, duration_K=NO_FLOATS, **about)
        try:
            run_block(work.with_durations(shared.model), pairs, shared.setting)
        except StateTrouble as trouble:
            raise StateTrouble(int(batch.place_M[trouble.place]), *trouble.args[1:]) from None
    return BlockResults(
        place_M=batch.place_M,
        rows=[{name: table.write for name, table in phase.tables().items()} for phase in phases],
        arrays=[phase.arrays() for phase in phases],
        given_up=[i for i, pair in zip(batch.chosen, pairs, strict=True) if pair.is_given_up],
    )


def put_results(results: BlockResults, phases: Sequence[HumanPhase | RobotPhase], slot_M: IndexArray) -> None:
    """Write what came back into tables and levels, where a block computed here would have written it."""
    for phase, rows, arrays in zip(phases, results.rows, results.arrays, strict=True):
        for name, table in phase.tables().items():
            table.write[slot_M] = rows[name]
        for name, array in phase.arrays().items():
            array[results.place_M] = arrays[name]


def _fresh(pairs: Sequence[PhasePair], setting: PhaseSetting) -> list[PhasePair]:
    """The same phases with tables of their own, which are empty; those that were shared are."""
    humans = {human: None if human is None else human.fresh(setting) for human in distinct(pair.human for pair in pairs)}
    robots = {robot: None if robot is None else robot.fresh(setting) for robot in distinct(pair.robot for pair in pairs)}
    return [PhasePair(humans[pair.human], robots[pair.robot]) for pair in pairs]


def _ghosts(succs: Sequence[SuccessorArray]) -> tuple[IndexArray, Array, int]:
    """Rows that occur, ascending; and the place of each among them, from row ``base`` on. Much faster than sorting."""
    base, last = min(int(succ_K.min()) for succ_K in succs), max(int(succ_K.max()) for succ_K in succs)
    occurs = np.zeros(last + 1 - base, dtype=np.bool_)
    for succ_K in succs:
        occurs[succ_K - base] = True
    ghost_N = np.flatnonzero(occurs)
    local_of = np.empty(len(occurs), dtype=np.min_scalar_type(len(ghost_N)))  # the narrowest, since it travels
    local_of[ghost_N] = np.arange(len(ghost_N))
    return ghost_N + base, local_of, base


def batch_states(n_states: int, n_profiles: int, n_workers: int, *, asks: bool) -> int:
    """How many states of a level travel together: as many as possible, but every worker is to have some.

    Where users' functions are asked, the work is so long that no part is too small.
    """
    share = n_states // (n_workers * PARTS_PER_WORKER)
    return max(1, min(BATCH_PAIRS // n_profiles, share if asks else max(share, LEAST_STATES)))


def grouped(items: Iterator[RestingBlock], n: int) -> Iterator[list[RestingBlock]]:
    """Up to ``n`` at a time."""
    group: list[RestingBlock] = []
    for item in items:
        group.append(item)
        if len(group) == n:
            yield group
            group = []
    if group:
        yield group


def workers_or_batches(workers: int, n_profiles: int) -> int:
    """How many workers of this process would have as many blocks in work as it has at most, here or on the way."""
    cluster = active_cluster()
    if cluster is None:
        return workers
    return max(workers, cluster.n_workers * max(1, BATCH_PAIRS // n_profiles // BLOCK_STATES))
