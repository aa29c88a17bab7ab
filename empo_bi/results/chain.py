r"""The Markov chain of a world under both policies, and values on it.

.. math:: P(s' \mid s) = \sum_r \pi_r(r \mid s) \sum_u \pi_H(u \mid s) T(s' \mid s, (u, r))
"""

from __future__ import annotations

import heapq
import itertools
import operator
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, SupportsIndex, overload

import numpy as np
import numpy.typing as npt

from empo_bi.dag.dag import Dag
from empo_bi.dag.level_blocks import Block
from empo_bi.dag.python_objects import sorted_order
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.compilation import compilations
from empo_bi.runtime.jit import kernel
from empo_bi.types import FloatArray, IndexArray

if TYPE_CHECKING:
    import scipy.sparse

ProfileWeights = Callable[[int], Iterator[tuple[Block, FloatArray]]]


class MarkovChain(list[dict[int, float]]):
    """``chain[i]`` maps the numbers of successors to probabilities; ``{}`` for terminal states.

    States are in the order of ``world.get_dag()[0]``. ``matrix`` is the same as a sparse matrix. It is a list for whoever
    asks, though its entries are made on demand; a copy is a plain list, and so is what is pickled.
    """

    def __init__(self, dag: Dag, weights_of: ProfileWeights, *, is_quiet: bool = False) -> None:
        """``weights_of(t)`` yields blocks of level ``t`` with the probability of each (state, profile), (M, J).

        If ``is_quiet``, no compilation is shown.
        """
        super().__init__()
        self._is_quiet = is_quiet
        self._dag, self._weights_of = dag, weights_of
        self._matrix: scipy.sparse.csr_array | None = None
        self._states: list[Hashable] | None = None
        self._place_N: IndexArray | None = None

    @property
    def states(self) -> list[Hashable]:
        """All states in the order of the chain."""
        if self._states is None:
            with compilations.quiet(self._is_quiet):
                self._states, self._place_N = documented_order(self._dag)
        return self._states

    @property
    def place_N(self) -> IndexArray:
        """The number in the chain of each state of the DAG, counted level after level."""
        assert self.states is not None
        assert self._place_N is not None
        return self._place_N

    @property
    def matrix(self) -> scipy.sparse.csr_array:
        """Probabilities as a sparse matrix, (N, N); rows of terminal states are empty."""
        if self._matrix is None:
            with compilations.quiet(self._is_quiet):
                self._matrix = self._made_matrix()
        return self._matrix

    def _made_matrix(self) -> scipy.sparse.csr_array:
        import scipy.sparse  # 11 MB that are rarely needed

        place_N, n = self.place_N, self._dag.n_states
        parts = [self._level(t) for t in range(self._dag.horizon)]
        rows, columns, values = (np.concatenate([part[i] for part in parts]) for i in range(3)) if parts else _NOTHING
        matrix = scipy.sparse.coo_array((values, (place_N[rows], place_N[columns])), shape=(n, n)).tocsr()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix

    def _level(self, t: int) -> tuple[IndexArray, IndexArray, FloatArray]:
        """Entries of the states of a level: numbers from, numbers to, probabilities."""
        import scipy.sparse

        found = []
        for block, weight_MJ in self._weights_of(t):
            n_profiles = self._dag.n_profiles
            count_MJ, entry_K = block.counts_of(n_profiles), block.entries_of(n_profiles)
            weight_K = np.repeat(weight_MJ.ravel(), count_MJ.ravel())
            if block.prob_K.size:
                weight_K = weight_K * block.prob_K[entry_K]
            body_N, inverse_K = np.unique(block.succ_K[entry_K], return_inverse=True)
            number_N = self._dag.numbers_of(t, body_N)
            m_K = np.repeat(np.arange(len(block.place_M)), count_MJ.sum(axis=1))
            # Profiles that lead to the same successor are summed at once, to save memory.
            shape = (len(block.place_M), len(body_N))
            summed = scipy.sparse.coo_array((weight_K, (m_K, inverse_K)), shape=shape).tocsr().tocoo()
            from_K = self._dag.first_state_T[t] + block.place_M[summed.coords[0]]
            found.append((from_K, number_N[summed.coords[1]], summed.data))
        if not found:
            return _NOTHING
        return tuple(np.concatenate([part[i] for part in found]) for i in range(3))  # type: ignore[return-value]

    def __len__(self) -> int:
        return self._dag.n_states

    @overload
    def __getitem__(self, i: SupportsIndex, /) -> dict[int, float]: ...
    @overload
    def __getitem__(self, i: slice, /) -> list[dict[int, float]]: ...
    def __getitem__(self, i: SupportsIndex | slice, /) -> dict[int, float] | list[dict[int, float]]:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        i = range(len(self))[operator.index(i)]
        matrix = self.matrix
        entries = slice(matrix.indptr[i], matrix.indptr[i + 1])
        return dict(zip(matrix.indices[entries].tolist(), matrix.data[entries].tolist(), strict=True))

    # A list's own methods would look at its items, of which it has none.
    __iter__ = Sequence.__iter__
    __reversed__ = Sequence.__reversed__
    __contains__ = Sequence.__contains__
    index = Sequence.index  # type: ignore[assignment]
    count = Sequence.count

    def copy(self) -> list[dict[int, float]]:
        """A plain list, which may be changed."""
        return list(self)

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> list[dict[int, float]]:
        return self.copy()

    def __add__(self, other: object) -> list[dict[int, float]]:  # type: ignore[override]
        return self.copy() + other  # type: ignore[operator]

    def __reduce_ex__(self, protocol: object) -> tuple[type, tuple[list[dict[int, float]]]]:
        return list, (self.copy(),)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("the chain is read from arrays and cannot be changed; change a copy: chain.copy() is a plain list")

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = extend = insert = pop = remove = clear = sort = reverse = (
        _refuse
    )

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Sequence) and not isinstance(other, str | bytes):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None

    def __repr__(self) -> str:
        return f"<MarkovChain of {len(self):,} states>"


_NOTHING: tuple[IndexArray, IndexArray, FloatArray] = (
    np.zeros(0, dtype=np.int64),
    np.zeros(0, dtype=np.int64),
    np.zeros(0),
)


def documented_order(dag: Dag) -> tuple[list[Hashable], IndexArray]:
    """All states in topological order, with ties broken by size, and the place of each state of the DAG in that order.

    Where states cannot be compared, a world written in Python that has its own ``get_dag`` decides the order itself. The
    orders of others are the same, so they are not asked, which may take as long as enumerating them.
    """
    by_level = [dag.states(t) for t in range(dag.horizon + 1)]
    found = [state for states in by_level for state in states]
    if dag.model.packed is not None:  # a state begins with its step, so levels follow each other
        order = [int(dag.first_state_T[t]) + i for t, states in enumerate(by_level) for i in sorted_order(states)]
    else:
        order = _own_order(dag, found) or _smallest_first(dag, found)
    place_N = np.empty(len(found), dtype=np.int64)
    place_N[order] = np.arange(len(found))
    return [found[i] for i in order], place_N


def _own_order(dag: Dag, states: Sequence[Hashable]) -> list[int] | None:
    """The order of the world's own ``get_dag``, if it has one that is of these states."""
    own = dag.model.states_in_own_order(ask=not _are_totally_ordered(states))
    number_of = {state: i for i, state in enumerate(states)}
    if own is None or len(own) != len(states) or not all(state in number_of for state in own):
        return None
    return [number_of[state] for state in own]


def _are_totally_ordered(states: Sequence[Any]) -> bool:
    """Whether ``<`` puts all of them in a row; frozensets, for example, can be compared, but have no such order."""
    try:
        return all(a < b for a, b in itertools.pairwise(sorted(states)))
    except TypeError:  # such as None beside a number
        return False


def _smallest_first(dag: Dag, states: Sequence[Any]) -> list[int]:
    """Kahn's algorithm with a heap; level by level if states cannot be compared."""
    follows: list[list[int]] = [[] for _ in states]
    waiting = [0] * len(states)
    for t in range(dag.horizon):
        level = dag.level(t)
        body_N, inverse_K = np.unique(level.succ_K, return_inverse=True)
        number_N = dag.numbers_of(t, body_N)
        row_K = np.repeat(np.arange(level.n_states), level.count_SJ.sum(axis=1))
        for s, number in {*zip(row_K.tolist(), number_N[inverse_K].tolist(), strict=True)}:
            follows[int(dag.first_state_T[t]) + s].append(number)
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
    except TypeError:  # such as None beside a number
        return list(range(len(states)))


@suggests_names()
def compute_markov_chain_value_function(
    markov_chain: Sequence[dict[int, float]],
    rewards: npt.ArrayLike | Callable[..., npt.ArrayLike],
    gamma: float,
    states: Sequence[Hashable] | None = None,
) -> npt.NDArray[np.float64]:
    r"""Expected discounted rewards along a Markov chain: :math:`V(s) = R(s) + \gamma \sum_{s'} P(s' \mid s) V(s')`.

    Parameters
    ----------
    markov_chain : list of {successor: probability}, in topological order, or a :class:`MarkovChain`
    rewards : (N, k) array, or a function of a state that gives k numbers
    gamma : float, applied once per transition
    states : list of N states, needed if ``rewards`` is a function

    Returns
    -------
    (N, k) float64

    Examples
    --------
    The probability of ending in the second of two terminal states:

    >>> chain = [{1: 0.25, 2: 0.75}, {}, {}]
    >>> compute_markov_chain_value_function(chain, [[0.0], [0.0], [1.0]], gamma=1.0)[0]
    array([0.75])
    """
    n = len(markov_chain)
    if callable(rewards):
        if states is None:
            raise ValueError("rewards is a function of the state; also give states, the list of states in the chain's order")
        value_NK = np.array([rewards(state) for state in states], dtype=np.float64)
    else:
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
            f"state {i} of the chain leads to {j}; states are numbered from 0 to {n - 1}, and successors need higher "
            "numbers than their states. Give the chain in the order of world.get_dag()"
        )
    add_values(value_NK, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data, float(gamma))
    return value_NK


class _Csr(NamedTuple):
    """The three arrays of a sparse matrix, whose indices are not checked yet."""

    indptr: IndexArray
    indices: IndexArray
    data: FloatArray


def _as_matrix(chain: Sequence[dict[int, float]]) -> _Csr:
    indptr = np.cumsum([0, *map(len, chain)])
    columns = np.fromiter((j for row in chain for j in row), dtype=np.int64, count=indptr[-1])
    values = np.fromiter((p for row in chain for p in row.values()), dtype=np.float64, count=indptr[-1])
    return _Csr(indptr, columns, values)


@kernel
def add_values(value_NK: FloatArray, indptr: IndexArray, indices: IndexArray, data: FloatArray, gamma: float) -> None:
    """Add the expected values of successors, from the last state to the first; successors have higher numbers."""
    for i in range(value_NK.shape[0] - 1, -1, -1):
        for k in range(value_NK.shape[1]):
            total = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                total += data[e] * value_NK[indices[e], k]
            value_NK[i, k] += gamma * total
