r"""The Markov chain that both policies make of a world, and values on it.

.. math:: P(s' \mid s) = \sum_r \pi_r(r \mid s) \sum_u \pi_H(u \mid s) T(s' \mid s, (u, r))
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.dag import Dag
from empo_bi.dag.level_blocks import Block
from empo_bi.dag.python_objects import sorted_order
from empo_bi.runtime.jit import kernel
from empo_bi.types import FloatArray, IndexArray
from empo_bi.world.packed import PackedWorld

if TYPE_CHECKING:
    import scipy.sparse

ProfileWeights = Callable[[int], Iterator[tuple[Block, FloatArray]]]


class MarkovChain(Sequence[dict[int, float]]):
    """``chain[i]`` maps the numbers of successors to probabilities; ``{}`` for terminal states.

    States are in the documented order, that of ``world.get_dag()[0]``. ``matrix`` has the same as a sparse matrix.
    """

    def __init__(self, dag: Dag, weights_of: ProfileWeights) -> None:
        """``weights_of(t)`` yields blocks of level ``t`` with the probability of each (state, profile), (M, J)."""
        self._dag, self._weights_of = dag, weights_of
        self._matrix: Any = None
        self._states: list[Any] | None = None
        self._place_N: IndexArray | None = None

    @property
    def states(self) -> list[Any]:
        """All states in the order of the chain."""
        if self._states is None:
            self._states, self._place_N = documented_order(self._dag)
        return self._states

    @property
    def place_N(self) -> IndexArray:
        """Where each state of the DAG, counted level after level, is in the chain."""
        assert self.states is not None
        assert self._place_N is not None
        return self._place_N

    @property
    def matrix(self) -> scipy.sparse.csr_array:
        """Probabilities as a sparse matrix, (N, N); rows of terminal states are empty."""
        if self._matrix is None:
            import scipy.sparse  # 11 MB that few need

            place_N, n = self.place_N, self._dag.n_states
            parts = [self._level(t) for t in range(self._dag.horizon)]
            rows, columns, values = (np.concatenate([part[i] for part in parts]) for i in range(3)) if parts else _NOTHING
            matrix = scipy.sparse.coo_array((values, (place_N[rows], place_N[columns])), shape=(n, n)).tocsr()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
            self._matrix = matrix
        return self._matrix

    def _level(self, t: int) -> tuple[IndexArray, IndexArray, FloatArray]:
        """Entries of the states of a level: numbers from, numbers to, probabilities."""
        import scipy.sparse

        first = np.cumsum([0, *self._dag.level_sizes])
        found = []
        for block, weight_MJ in self._weights_of(t):
            n_profiles = self._dag.n_profiles
            count_MJ, entry_K = block.counts_of(n_profiles), block.entries_of(n_profiles)
            weight_K = np.repeat(weight_MJ.ravel(), count_MJ.ravel())
            if block.prob_K.size:
                weight_K = weight_K * block.prob_K[entry_K]
            body_N, inverse_K = np.unique(block.succ_K[entry_K], return_inverse=True)
            number_N = np.zeros(len(body_N), dtype=np.int64)
            for level, chosen, place in self._dag.locate(t, body_N):
                number_N[chosen] = first[level] + place
            m_K = np.repeat(np.arange(len(block.place_M)), count_MJ.sum(axis=1))
            # What many profiles lead to is summed up at once, so that memory stays small.
            shape = (len(block.place_M), len(body_N))
            summed = scipy.sparse.coo_array((weight_K, (m_K, inverse_K)), shape=shape).tocsr().tocoo()
            found.append((first[t] + block.place_M[summed.coords[0]], number_N[summed.coords[1]], summed.data))
        if not found:
            return _NOTHING
        return tuple(np.concatenate([part[i] for part in found]) for i in range(3))  # type: ignore[return-value]

    def __len__(self) -> int:
        return self._dag.n_states

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        matrix = self.matrix
        entries = slice(matrix.indptr[i], matrix.indptr[i + 1])
        return dict(zip(matrix.indices[entries].tolist(), matrix.data[entries].tolist(), strict=True))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str | bytes):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<MarkovChain of {len(self):,} states>"


_NOTHING: tuple[IndexArray, IndexArray, FloatArray] = (
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    np.zeros(0),
)


def documented_order(dag: Dag) -> tuple[list[Any], IndexArray]:
    """All states in topological order, the smallest one next where several are possible, and where each state of the DAG is.

    A world written in Python that has ``get_dag`` of its own decides itself.
    """
    by_level = [dag.states(t) for t in range(dag.horizon + 1)]
    found = [state for states in by_level for state in states]
    if isinstance(dag.world, PackedWorld):  # a state begins with its step, so levels follow each other
        starts = np.cumsum([0, *dag.level_sizes])
        order = [int(starts[t]) + i for t, states in enumerate(by_level) for i in sorted_order(states)]
    elif callable(getattr(dag.world, "get_dag", None)):
        number_of = {state: i for i, state in enumerate(found)}
        order = [number_of[state] for state in dag.world.get_dag()[0]]
    else:
        order = _smallest_first(dag, found)
    place_N = np.empty(len(found), dtype=np.int64)
    place_N[order] = np.arange(len(found))
    return [found[i] for i in order], place_N


def _smallest_first(dag: Dag, states: list[Any]) -> list[int]:
    """Kahn's algorithm with a heap; level by level where states cannot be compared."""
    first = np.cumsum([0, *dag.level_sizes])
    follows: list[list[int]] = [[] for _ in states]
    waiting = [0] * len(states)
    for t in range(dag.horizon):
        level = dag.level(t)
        body_N, inverse_K = np.unique(level.succ_K, return_inverse=True)
        number_N = np.zeros(len(body_N), dtype=np.int64)
        for u, chosen, place in dag.locate(t, body_N):
            number_N[chosen] = first[u] + place
        row_K = np.repeat(np.arange(level.n_states), level.count_SJ.sum(axis=1))
        for s, number in {*zip(row_K.tolist(), number_N[inverse_K].tolist(), strict=True)}:
            follows[int(first[t]) + s].append(number)
            waiting[number] += 1
    try:
        ready = [(states[i], i) for i in range(len(states)) if waiting[i] == 0]
        heapq.heapify(ready)
        order = []
        while ready:
            _, i = heapq.heappop(ready)
            order.append(i)
            for j in follows[i]:
                waiting[j] -= 1
                if waiting[j] == 0:
                    heapq.heappush(ready, (states[j], j))
        return order
    except TypeError:  # None beside a number, and the like
        return list(range(len(states)))


def compute_markov_chain_value_function(
    markov_chain: Sequence[dict[int, float]],
    rewards: Any,
    gamma: float,
    states: Sequence[Any] | None = None,
) -> npt.NDArray[np.float64]:
    r"""Expected discounted rewards along a Markov chain: :math:`V(s) = R(s) + \gamma \sum_{s'} P(s' \mid s) V(s')`.

    Parameters
    ----------
    markov_chain : list of {successor: probability}, in topological order, or a :class:`MarkovChain`
    rewards : (N, k) array, or a function of a state that gives k numbers
    gamma : float, applied once per transition
    states : list of N states, needed where ``rewards`` is a function

    Returns
    -------
    (N, k) float64

    Examples
    --------
    The probability to end in the second of two terminal states:

    >>> chain = [{1: 0.25, 2: 0.75}, {}, {}]
    >>> compute_markov_chain_value_function(chain, [[0.0], [0.0], [1.0]], gamma=1.0)[0]
    array([0.75])
    """
    n = len(markov_chain)
    if callable(rewards):
        if states is None:
            raise ValueError("rewards is a function of the state, so states has to be given: the list in the chain's order")
        rewards = [rewards(state) for state in states]
    value_NK = np.array(rewards, dtype=np.float64)
    if value_NK.ndim != 2:
        raise ValueError(f"rewards has {value_NK.ndim} dimensions, expected 2: a row per state, a column per kind of reward")
    if len(value_NK) != n:
        raise ValueError(f"rewards has {len(value_NK)} rows for a chain of {n} states; give one row each")
    if not np.isfinite(gamma):
        raise ValueError(f"gamma={gamma!r}; give a finite number")
    matrix = markov_chain.matrix if isinstance(markov_chain, MarkovChain) else _as_matrix(markov_chain)
    row_E = np.repeat(np.arange(n), np.diff(matrix.indptr))
    wrong = np.flatnonzero((matrix.indices <= row_E) | (matrix.indices >= n))
    if len(wrong):
        i, j = int(row_E[wrong[0]]), int(matrix.indices[wrong[0]])
        raise ValueError(
            f"state {i} of the chain leads to {j}; states are numbered from 0 to {n - 1}, successors have higher numbers "
            "than their states: give the chain in the order of world.get_dag()"
        )
    add_values(value_NK, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data, float(gamma))
    return value_NK


def _as_matrix(chain: Sequence[dict[int, float]]) -> Any:
    indptr = np.cumsum([0, *map(len, chain)])
    columns = np.fromiter((j for row in chain for j in row), dtype=np.int64, count=indptr[-1])
    values = np.fromiter((p for row in chain for p in row.values()), dtype=np.float64, count=indptr[-1])
    return SimpleNamespace(indptr=indptr, indices=columns, data=values)  # checked before anything is made of it


@kernel
def add_values(value_NK: FloatArray, indptr: IndexArray, indices: IndexArray, data: FloatArray, gamma: float) -> None:
    """Add what is expected to follow, from the last state to the first; successors have higher numbers."""
    for i in range(value_NK.shape[0] - 1, -1, -1):
        for k in range(value_NK.shape[1]):
            total = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                total += data[e] * value_NK[indices[e], k]
            value_NK[i, k] += gamma * total
