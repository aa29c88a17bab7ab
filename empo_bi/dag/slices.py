"""The arrays of one level: :class:`BodySlice`, what is stored of it, and :class:`LevelSlice`, what the solver reads.

A *body* is a state without its step, where the world's rules do not depend on the step; elsewhere a body is simply a state.
Bodies are numbered in the order of discovery. A body's transitions are computed and stored once, in the slice of the level
where it is first expanded, and shared by all levels that the body is on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.spill import BlockArray, BlockSpool, SpillLimit
from empo_bi.runtime.jit import kernel
from empo_bi.types import Bodies, BoolArray, ByteArray, FloatArray, IndexArray, KeyArray, SuccessorArray

BYTES_PER_STATE = 200  # a guess at a Python object of a few numbers
TYPES = ("float16", "float32", "float64")  # in which probabilities rest
EXACT = "exact"  # in whichever of these loses nothing
PRECISIONS = (*TYPES, EXACT)


def bodies_from(numbers: IndexArray) -> Bodies:
    """Ascending numbers as a range if they are consecutive."""
    if len(numbers) == 0:
        return range(0)
    first, last = int(numbers[0]), int(numbers[-1])
    return range(first, last + 1) if last - first + 1 == len(numbers) else numbers


def as_array(bodies: Bodies) -> IndexArray:
    return np.arange(bodies.start, bodies.stop, dtype=np.int64) if isinstance(bodies, range) else bodies


def places_in(bodies: Bodies, wanted: IndexArray) -> tuple[BoolArray, IndexArray]:
    """Which of the ascending ``wanted`` numbers are among ``bodies``, and at what place each of those is."""
    if isinstance(bodies, range):
        inside = (wanted >= bodies.start) & (wanted < bodies.stop)
        return inside, wanted[inside] - bodies.start
    place = np.searchsorted(bodies, wanted)
    inside = place < len(bodies)
    inside[inside] = bodies[place[inside]] == wanted[inside]
    return inside, place[inside]


@dataclass(frozen=True, kw_only=True)
class BodySlice:
    """What is stored of one level: S states on it, B bodies that it adds, E bodies that are expanded here.

    What is trivial is left out: ``count_EJ`` is None if every profile has one successor, ``prob_K`` if every probability is
    1, ``succ_K`` if nothing is expanded.

    Attributes
    ----------
    value : int
        What ``level_fct`` says of the level's states; the step, where levels are steps.
    members : (S,) bodies on this level
    ended : bool, or (S,) bool
        Which of the states are terminal here although their body may go on elsewhere. (A state that is terminal wherever
        it occurs may also simply have no successors.)
    added : (B,) bodies that no earlier level has
    key_BW : (B, W) uint64, or None
        Their packed keys, in a compiled world.
    states : B states, or None
        The same in a Python world. Where bodies are shared, the step in them is the one of this level.
    expanded : (E,) bodies whose transitions are in this slice
    count_EJ : (E, J) successors of each (body, profile), or None
    succ_K : (K,) int32, bodies that follow, or None
    prob_K : (K,) float16, 32 or 64, or None
    attained : (B or S, X) uint8, or None
        One bit per (human, goal), see ``attainment``: a row per added body if ``attained_by_body``, else per state.
    known : int
        How many bodies had been found when this level was expanded: those with higher numbers follow only higher levels.
    spilled : SpilledTransitions or None
        The transitions of a level just expanded, where they are too many for memory; the three arrays are None then.
    """

    value: int
    members: Bodies
    added: Bodies
    ended: bool | BoolArray = False
    key_BW: KeyArray | None = None
    states: Sequence[Any] | None = None
    expanded: Bodies = range(0)
    count_EJ: npt.NDArray[np.unsignedinteger] | None = None
    succ_K: SuccessorArray | None = None
    prob_K: npt.NDArray[np.floating] | None = None
    attained: ByteArray | None = None
    attained_by_body: bool = True
    known: int = 0
    spilled: SpilledTransitions | None = None

    @property
    def goes_on_S(self) -> BoolArray:
        """Which states of the level are not terminal here, as far as the slice itself says."""
        return ~np.broadcast_to(self.ended, (len(self.members),))

    @property
    def n_entries(self) -> int:
        succ_K = self.succ_K if self.spilled is None else self.spilled.succ_K
        return 0 if succ_K is None else len(succ_K)

    @property
    def nbytes(self) -> int:
        return sum(self.bytes_by_array().values())

    def bytes_by_array(self) -> dict[str, int]:
        """By the names that arrays have in stores."""
        arrays = {
            "members": self.members, "added": self.added, "ended": self.ended, "key": self.key_BW, "expanded": self.expanded,
            "count": self.count_EJ, "succ": self.succ_K, "prob": self.prob_K, "attained": self.attained,
        }  # fmt: skip
        found = {name: array.nbytes for name, array in arrays.items() if isinstance(array, np.ndarray)}
        return found if self.states is None else {**found, "states": BYTES_PER_STATE * len(self.states)}

    def stretches(self, n_profiles: int) -> Iterator[BodySlice]:
        """Itself, or slices of consecutive ``expanded`` bodies where transitions were spilled, a block at a time."""
        if self.spilled is None:
            yield self
            return
        counts, probs = (
            itertools.repeat(None) if array is None else array.blocks()
            for array in (self.spilled.count_EJ, self.spilled.prob_K)
        )
        first = 0
        for count_EJ, succ_K, prob_K in zip(counts, self.spilled.succ_K.blocks(), probs, strict=False):
            n_rows = len(succ_K) // n_profiles if count_EJ is None else len(count_EJ)
            yield replace(
                self, spilled=None, expanded=self.expanded[first : first + n_rows],
                count_EJ=count_EJ, succ_K=succ_K.astype(np.int32), prob_K=prob_K,
            )  # fmt: skip
            first += n_rows

    def starts(self, n_profiles: int) -> IndexArray:
        """Where each expanded body's entries begin in ``succ_K``, and where the last one's end (E + 1,)."""
        if self.count_EJ is None:
            return np.arange(len(self.expanded) + 1, dtype=np.int64) * n_profiles
        ends = self.count_EJ.sum(axis=1, dtype=np.int64).cumsum()
        return np.concatenate([np.zeros(1, dtype=np.int64), ends])

    def rows(self, row_M: IndexArray, n_profiles: int) -> Rows:
        """Some of the expanded bodies, by their place among them, nothing left out."""
        assert self.succ_K is not None
        ones = np.ones((len(row_M), n_profiles), dtype=np.int64)
        count_MJ = ones if self.count_EJ is None else self.count_EJ[row_M].astype(np.int64)
        # Nested levels take whole slices, which need no gathering.
        chosen = slice(None) if len(row_M) == len(self.expanded) else entries_of(self.starts(n_profiles), row_M)
        succ_K = self.succ_K[chosen]
        prob_K = np.ones(len(succ_K)) if self.prob_K is None else widened(self.prob_K[chosen], count_MJ)
        return Rows(count_MJ, succ_K, prob_K)


@dataclass(frozen=True)
class Rows:
    """Transitions of M bodies in full: counts (M, J), successors (K,) and probabilities (K,)."""

    count_MJ: IndexArray
    succ_K: SuccessorArray
    prob_K: FloatArray

    def agrees_with(self, other: Rows) -> bool:
        """Equal up to the order within a profile, and up to the rounding of probabilities at rest."""
        if not np.array_equal(self.count_MJ, other.count_MJ):
            return False
        profile_K = np.repeat(np.arange(self.count_MJ.size), self.count_MJ.ravel())
        ours, theirs = (np.lexsort((rows.prob_K, rows.succ_K, profile_K)) for rows in (self, other))
        return np.array_equal(self.succ_K[ours], other.succ_K[theirs]) and np.allclose(
            self.prob_K[ours], other.prob_K[theirs], rtol=2**-9, atol=0
        )

    def permuted(self, order: IndexArray) -> Rows:
        starts = np.concatenate([np.zeros(1, dtype=np.int64), self.count_MJ.sum(axis=1).cumsum()])
        chosen = entries_of(starts, order)
        return Rows(self.count_MJ[order], self.succ_K[chosen], self.prob_K[chosen])


def entries_of(starts: IndexArray, row_M: IndexArray) -> IndexArray:
    """Numbers of the entries of some rows, one row after the other."""
    lengths = starts[row_M + 1] - starts[row_M]
    # A row's entries lie consecutively: shift a count from 0 to where they begin.
    shift = starts[row_M] - (lengths.cumsum() - lengths)
    return np.arange(lengths.sum(), dtype=np.int64) + np.repeat(shift, lengths)


def widened(prob_K: npt.NDArray[np.floating], count_MJ: npt.NDArray[np.integer]) -> FloatArray:
    """Probabilities as float64. Those that rested in a narrower type are renormalised, since rounding moved their sums."""
    wide_K = prob_K.astype(np.float64)
    if prob_K.dtype != np.float64:
        renormalise(wide_K, np.ascontiguousarray(count_MJ, dtype=np.int32).ravel())
    return wide_K


@kernel
def renormalise(prob_K: FloatArray, count_R: npt.NDArray[np.int32]) -> None:
    """Make each run of probabilities sum to 1, in place; ``count_R`` has their lengths, one after the other."""
    k = 0
    for n in count_R:
        if n == 1:  # the usual case, without a division
            prob_K[k] = 1.0
            k += 1
            continue
        total = 0.0
        for i in range(k, k + n):
            total += prob_K[i]
        for i in range(k, k + n):
            prob_K[i] /= total
        k += n


def narrowest(prob_K: FloatArray, precision: str, count_MJ: npt.NDArray[np.integer]) -> np.dtype[Any]:
    """The type in which probabilities rest; wider than asked for where some are too small for that one.

    Each keeps a relative precision of ``2**-11`` (float16), since none falls below the smallest normal number of its type.
    With the precision ``"exact"`` it is as narrow as it can be without any of them changing by more than rounding.
    """
    smallest = float(prob_K.min(initial=1.0))
    for dtype in map(np.dtype, TYPES if precision == EXACT else TYPES[TYPES.index(precision) :]):
        if smallest >= float(np.finfo(dtype).tiny) and (
            precision != EXACT or np.allclose(widened(prob_K.astype(dtype), count_MJ), prob_K, rtol=1e-15, atol=0)
        ):
            return dtype
    return prob_K.dtype


class SliceBuilder:
    """Gathers the transitions of a level, block by block, and leaves out what is trivial."""

    def __init__(self, n_profiles: int, precision: str, limit: SpillLimit | None = None) -> None:
        """Beyond the ``limit`` blocks wait in a file for the level to end."""
        self._n_profiles, self._precision = n_profiles, precision
        self._blocks = BlockSpool(limit)  # of counts, successors, and probabilities (None where all are 1)
        self._probability = np.dtype(TYPES[0])  # the widest type that some block needs
        self._is_certain = True
        self._n_rows, self._n_entries = 0, 0
        self._fewest, self._most, self._largest = 1, 1, 0  # counts; number of a successor

    @property
    def nbytes(self) -> int:
        """What waits in memory."""
        return self._blocks.nbytes

    def spill(self) -> bool:
        """Move it to a file now, since memory is short; False if there is no place for one."""
        return self._blocks.spill()

    def add(self, count_SJ: npt.NDArray[np.integer], number_K: IndexArray, prob_K: FloatArray) -> None:
        """One block, with the numbers of its successors."""
        fewest, most = int(count_SJ.min(initial=1)), int(count_SJ.max(initial=1))
        self._fewest, self._most = min(self._fewest, fewest), max(self._most, most)
        self._largest = max(self._largest, int(number_K.max(initial=0)))
        self._n_rows, self._n_entries = self._n_rows + len(count_SJ), self._n_entries + len(number_K)
        is_certain = bool((prob_K == 1.0).all())
        if not is_certain:
            self._is_certain = False
            needed = narrowest(prob_K, self._precision, count_SJ)
            self._probability = max(self._probability, needed, key=lambda dtype: dtype.itemsize)
        self._blocks.append(
            count_SJ.astype(np.min_scalar_type(most)),
            number_K.astype(np.int32),
            None if is_certain else prob_K.copy(),  # a block's own array has room to spare
        )

    def arrays(self, make_room: Callable[[int], None] = lambda nbytes: None) -> dict[str, Any]:
        """``count_EJ``, ``succ_K`` and ``prob_K`` of a :class:`BodySlice`, as far as they are not trivial, or ``spilled``.

        The builder is empty afterwards: blocks go as they are copied, so that a level is never there twice. ``make_room`` is
        told how many bytes are about to be taken, and may refuse.
        """
        if self._n_entries == 0:  # nothing but terminal states
            return {}
        has_counts, count_type = (self._fewest, self._most) != (1, 1), np.min_scalar_type(self._most)
        sizes = [
            self._n_rows * self._n_profiles * count_type.itemsize * has_counts,
            self._n_entries * 4,
            self._n_entries * self._probability.itemsize * (not self._is_certain),
        ]
        if not self._blocks.is_spilled:
            make_room(max(sizes))  # the others take the room of blocks that are gone; who has none may spill
        if self._blocks.is_spilled:
            return {"spilled": self._spilled(has_counts)}
        counts, succs, probs = map(self._blocks.pop_column, range(3))
        for i, succ in enumerate(succs):
            probs[i] = np.broadcast_to(1.0, len(succ)) if probs[i] is None else probs[i]
        prob_K = None if self._is_certain else _joined(probs, self._probability)
        count_EJ = _joined(counts, count_type) if has_counts else None
        return {"count_EJ": count_EJ, "succ_K": _joined(succs, np.dtype(np.int32)), "prob_K": prob_K}

    def _spilled(self, has_counts: bool) -> SpilledTransitions:
        entries, blocks = (self._n_entries,), self._blocks
        count_type, prob_type = np.min_scalar_type(self._most), self._probability
        number_type = np.min_scalar_type(self._largest)

        def counts() -> Iterator[npt.NDArray[Any]]:
            return (count.astype(count_type) for count in blocks.column(0) if count is not None)

        def succs() -> Iterator[npt.NDArray[Any]]:
            return (succ.astype(number_type) for succ in blocks.column(1) if succ is not None)

        def probs() -> Iterator[npt.NDArray[Any]]:
            for succ, prob in zip(blocks.column(1), blocks.column(2), strict=True):
                assert succ is not None
                yield np.ones(len(succ), dtype=prob_type) if prob is None else prob.astype(prob_type)

        return SpilledTransitions(
            BlockArray((self._n_rows, self._n_profiles), count_type, counts) if has_counts else None,
            BlockArray(entries, number_type, succs),
            None if self._is_certain else BlockArray(entries, prob_type, probs),
        )


@dataclass(frozen=True)
class SpilledTransitions:
    """The transitions of a slice that were too many for memory: shapes and types as stored, with successors narrow."""

    count_EJ: BlockArray | None
    succ_K: BlockArray
    prob_K: BlockArray | None


def _joined(blocks: list[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Arrays one after the other; the list is empty afterwards."""
    joined: npt.NDArray[Any] = np.empty((sum(map(len, blocks)), *blocks[0].shape[1:]), dtype=dtype)
    blocks.reverse()
    place = 0
    while blocks:
        block = blocks.pop()
        joined[place : place + len(block)] = block
        place += len(block)
    return joined


@dataclass(frozen=True)
class LevelSlice:
    """All states of one level, as the solver reads them, with nothing left out.

    Attributes
    ----------
    level : int
    body_S : (S,) int64, the body of each state, ascending
    count_SJ : (S, J) int64, successors of each (state, profile); 0 for terminal states, where nothing follows
    succ_K : (K,) int32, bodies of the successors; on the next level where levels are steps, elsewhere on any higher one
    prob_K : (K,) float64, which sum to 1 for each (state, profile)
    attained_SX : (S, X) uint8, one bit per (human, goal), or None without goals
    n_humans, n_goals : int
    """

    level: int
    body_S: IndexArray
    count_SJ: IndexArray
    succ_K: SuccessorArray
    prob_K: FloatArray
    attained_SX: ByteArray | None = None
    n_humans: int = 0
    n_goals: int = 0

    @property
    def n_states(self) -> int:
        return len(self.body_S)

    @property
    def attained_SHG(self) -> BoolArray | None:
        """Whether each goal of each human is attained in each state (S, H, G)."""
        if self.attained_SX is None:
            return None
        n = self.n_humans * self.n_goals
        bits = np.unpackbits(self.attained_SX, axis=1, count=n, bitorder="little").astype(np.bool_)
        return bits.reshape(self.n_states, self.n_humans, self.n_goals)


def transitions_of(bodies: IndexArray, slices: Iterable[BodySlice], n_profiles: int) -> Rows:
    """Transitions of ascending bodies, gathered from the slices that hold them. Bodies that none expands have none."""
    found: list[IndexArray] = []
    parts: list[Rows] = []
    for piece in slices:
        inside, row_M = places_in(piece.expanded, bodies)
        if len(row_M):
            found.append(np.flatnonzero(inside))
            parts.append(piece.rows(row_M, n_profiles))
    place_M = np.concatenate([*found, np.zeros(0, dtype=np.int64)])
    is_missing = np.ones(len(bodies), dtype=np.bool_)
    is_missing[place_M] = False
    missing = np.flatnonzero(is_missing)
    count_MJ = np.concatenate([*(part.count_MJ for part in parts), np.zeros((len(missing), n_profiles), np.int64)])
    succ_K = np.concatenate([*(part.succ_K for part in parts), np.zeros(0, dtype=np.int32)])
    prob_K = np.concatenate([*(part.prob_K for part in parts), np.zeros(0)])
    rows, place = Rows(count_MJ, succ_K, prob_K), np.concatenate([place_M, missing])
    return rows if (np.diff(place) > 0).all() else rows.permuted(np.argsort(place))
