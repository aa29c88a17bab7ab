"""The table of a Gymnasium toy-text environment, ``P[state][action] = [(probability, next state, reward, terminated)]``."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from empo_bi.errors import InvalidWorldError
from empo_bi.runtime.wording import short_repr
from empo_bi.world.goals import PossibleGoal, ReachStatesGoal

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def with_ended(goal: PossibleGoal, ended_copies: Mapping[int, int]) -> PossibleGoal:
    """A goal that is also attained in the terminal copies of its states."""
    if not ended_copies:
        return goal
    if type(goal) is not ReachStatesGoal:
        raise InvalidWorldError(
            f"goal {short_repr(goal)}: states {short_repr(list(ended_copies))} can be entered both as terminal and "
            "not, so they get terminal copies, which a goal of your own does not recognise; give state numbers instead"
        )
    return ReachStatesGoal(goal.name, [*goal.numbers, *(ended_copies[n] for n in goal.numbers if n in ended_copies)])


def only_start(distribution: npt.ArrayLike | None) -> int:
    """The state in which an environment always starts."""
    if distribution is None:
        raise InvalidWorldError("a table does not say where it starts; give start=")
    certain = np.flatnonzero(np.asarray(distribution) == 1.0)
    if len(certain) != 1:
        n = np.count_nonzero(distribution)
        raise InvalidWorldError(f"the environment starts in one of {n} states; choose one with start=")
    return int(certain[0])


def matrix_of_table(table: Mapping[Any, Any], start: int) -> tuple[csr_array, dict[int, int]]:
    """A toy-text table as one matrix (S * A, S), and the terminal copies ``{state: copy}``.

    A state that may be entered both with and without ``terminated`` gets a terminal copy, numbered after all others.
    """
    from scipy import sparse

    n_states = len(table)
    if not 0 <= start < n_states:
        raise InvalidWorldError(f"start={start}: the table has states 0 to {n_states - 1}")
    try:
        n_actions = len(table[0])
        odd = next((s for s in range(n_states) if set(table[s]) != set(range(n_actions))), None)
        if odd is not None:
            raise ValueError(f"state {odd} has actions {sorted(table[odd])}; expected 0 to {n_actions - 1}, as in state 0")
        entries = [
            (s * n_actions + a, index(successor), float(probability), bool(terminated))
            for s in range(n_states)
            for a in range(n_actions)
            for probability, successor, _, terminated in table[s][a]
        ]
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidWorldError(
            "a table is P[state][action] = [(probability, next state, reward, terminated), ...], with states and actions "
            f"numbered from 0, the same actions everywhere ({type(error).__name__}: {error})"
        ) from error
    row_K, succ_K = (np.array([entry[i] for entry in entries], dtype=np.int64) for i in (0, 1))
    prob_K, ends_K = np.array([entry[2] for entry in entries]), np.array([entry[3] for entry in entries], dtype=np.bool_)
    if len(succ_K) and not (succ_K.min() >= 0 and succ_K.max() < n_states):
        raise InvalidWorldError(f"next states {succ_K.min()} to {succ_K.max()}; the table has states 0 to {n_states - 1}")
    if not (prob_K >= 0).all():
        raise InvalidWorldError(f"the table has a probability of {prob_K[~(prob_K >= 0)][0]}; give 0 or more")
    ends_S, passes_S = np.zeros((2, n_states), dtype=np.bool_)
    ends_S[succ_K[ends_K & (prob_K > 0)]] = True
    passes_S[start] = True
    passes_S[succ_K[~ends_K & (prob_K > 0)]] = True  # also from states that are never met, which costs nothing but a number
    split = np.flatnonzero(ends_S & passes_S)
    ended_S = np.arange(n_states)
    ended_S[split] = n_states + np.arange(len(split))
    succ_K = np.where(ends_K, ended_S[succ_K], succ_K)
    goes_on_K = (passes_S | ~ends_S)[row_K // max(1, n_actions)]
    n_all = n_states + len(split)
    kept = (prob_K[goes_on_K], (row_K[goes_on_K], succ_K[goes_on_K]))
    matrix = sparse.csr_array(sparse.coo_array(kept, shape=(n_all * n_actions, n_all)))
    return matrix, {int(s): int(ended_S[s]) for s in split}
