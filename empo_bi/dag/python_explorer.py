"""What explorers of worlds written in Python have in common: asking the world in blocks, and counting states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.attainment import FixedGoals
from empo_bi.dag.python_world import PythonBlock, check_hash, expand_states_of
from empo_bi.dag.slices import BYTES_PER_STATE, BodySlice, SliceBuilder, bodies_from
from empo_bi.dag.spill import SpillLimit
from empo_bi.dag.sub_problem import WHOLE, SubProblem
from empo_bi.errors import InvalidWorldError, TooManyStatesError
from empo_bi.memory.watch import Watch
from empo_bi.runtime.blocks import active_cluster, map_blocks
from empo_bi.runtime.wording import short_repr
from empo_bi.types import IndexArray
from empo_bi.world.as_model import Model

MAX_STATES = 10_000_000
BLOCK_PAIRS = 4096  # (state, profile) pairs a worker expands at a time


class PythonExplorer:
    """Asks the world in blocks, and counts states; subclasses differ in where levels come from."""

    shares_bodies = False
    levels_are = "steps"
    n_levels: int | None = None

    def __init__(
        self,
        model: Model,
        goals: FixedGoals | None,
        *,
        precision: str,
        workers: int,
        max_states: int | None,
        spill: SpillLimit | None,
        watch: Watch,
        part: SubProblem = WHOLE,
    ) -> None:
        """``max_states`` is ``MAX_STATES`` unless given, so that a world without an end is noticed."""
        self.model = model
        self.profiles = model.profiles
        self.n_profiles = len(self.profiles)
        self.n_known = 0
        self._trusts_workers = False
        self._watch, self._cluster = watch, active_cluster()
        self._stops = part.stops
        self._asked = (model, self.profiles, self._stops)  # the same object for all blocks, so that a cluster gets it once
        self._goals, self._precision, self._workers, self._spill = goals, precision, workers, spill
        self._builder = self.new_builder()
        self._max_states = MAX_STATES if max_states is None else max_states
        self.starts = part.start_states(model)
        for start in self.starts:
            check_hash("the initial state", start)

    @property
    def nbytes(self) -> int:
        return self.n_known * BYTES_PER_STATE

    def expanded_blocks(self, states: Sequence[Any]) -> Iterator[tuple[int, PythonBlock]]:
        """Blocks of consecutive states, each with the place of its first."""
        size = max(1, BLOCK_PAIRS // max(1, self.n_profiles))
        places = range(0, len(states), size)
        blocks = (states[place : place + size] for place in places)
        workers = self._workers if len(places) > 1 else 1
        cluster = self._cluster if len(places) > 1 else None
        if cluster is not None:
            expanded = cluster.map(expand_states_of, self._asked, blocks)
        else:
            expanded = map_blocks(partial(expand_states_of, self._asked), blocks, workers, processes=True)
        for place, block in zip(places, expanded, strict=True):
            if (workers > 1 or cluster is not None) and not self._trusts_workers:
                self._check_worker(block, expand_states_of(self._asked, states[place : place + size]))
            yield place, block
            self._watch.look(len(block.count_SJ))

    def new_builder(self) -> SliceBuilder:
        """One for the transitions of the next level."""
        self._builder = SliceBuilder(self.n_profiles, self._precision, self._spill)
        return self._builder

    def own_level(
        self, value: int, number_S: IndexArray, states: Sequence[Any], *, all_ended: bool, known: int
    ) -> BodySlice:
        """A level whose bodies are on no other one, with the transitions that the builder has."""
        members, attained = bodies_from(number_S), self.attained(value, states)
        transitions = {} if all_ended else self._builder.arrays(partial(self._watch.look, 0))
        return BodySlice(
            value=value, members=members, added=members, ended=all_ended, states=states,
            expanded=range(0) if all_ended else members, attained=attained, attained_by_body=False, known=known,
            **transitions,
        )  # fmt: skip

    @property
    def waiting_bytes(self) -> int:
        return self._builder.nbytes

    def give_back(self) -> None:
        self._builder.spill()

    def _check_worker(self, theirs: PythonBlock, ours: PythonBlock) -> None:
        """Whether states mean the same in another process: not if they are equal only to themselves, or hold NaN."""
        if theirs.found != ours.found or [hash(s) for s in theirs.found] != [hash(s) for s in ours.found]:
            raise InvalidWorldError(
                f"states that come from another process, such as {short_repr(theirs.found[0])}, differ from those of this "
                "one; give them __eq__ and __hash__ that look at their content, or use workers=1"
            )
        self._trusts_workers = True

    def count(self, state: Any) -> int:
        """A number for a new state."""
        if self.n_known >= self._max_states:
            raise TooManyStatesError(
                f"more than max_states={self._max_states:,} states, the last one {short_repr(state)}. Does the world "
                "ever end? Shorten its horizon, or allow more"
            )
        self.n_known += 1
        return self.n_known - 1

    def check(self, heads: Iterable[BodySlice]) -> None:
        """By default the world's identity decides what its levels are."""

    def attained(self, value: int, states: Sequence[Any]) -> npt.NDArray[np.uint8] | None:
        return None if self._goals is None else self._goals.rows(None, value, None, states)
