"""What a world written in Python says, asked state by state and checked: errors show the state, the profile and what to do.

:class:`~empo_bi.world.model.WorldModel` has the contract.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from empo_bi.errors import InvalidWorldError
from empo_bi.runtime.wording import short_repr
from empo_bi.world.model import PROBABILITY_TOLERANCE, State

if TYPE_CHECKING:  # worker processes load this module, and need no numba: 24 MB each
    from empo_bi.types import BoolArray, FloatArray, IndexArray
    from empo_bi.world.as_model import Model

LevelFunction = Callable[[Any], int]
StateTest = Callable[[State], bool]


def level_of(level_fct: LevelFunction, state: State) -> int:
    """What the user's function says of a state: a whole number."""
    try:
        level = level_fct(state)
    except Exception as error:
        error.add_note(f"(level_fct was asked about state {short_repr(state)})")
        raise
    try:
        whole = int(level)
    except (TypeError, ValueError, OverflowError):
        whole = None
    if whole is None or whole != level:
        raise InvalidWorldError(f"level_fct gives {short_repr(level)} for {short_repr(state)}; levels are whole numbers")
    return whole


def not_higher(successor: State, level: int, state: State, value: int, profile: list[int]) -> InvalidWorldError:
    return InvalidWorldError(
        f"{short_repr(successor)} on level {level} follows {short_repr(state)} on level {value} "
        f"under profile {profile}; level_fct has to give every successor a higher level"
    )


def is_terminal(model: Model, state: State, profiles: Sequence[list[int]], stops: StateTest | None = None) -> bool:
    """Whether nothing follows; one profile tells, since a state has successors for all or for none."""
    if stops is not None and stops(state):
        return True
    return model.transitions(state, profiles[0]) is None


@dataclass(frozen=True)
class PythonBlock:
    """Successors of a block of S states, none of probability 0; ``found`` has the distinct ones in the order of appearance.

    Attributes
    ----------
    ended_S : (S,) whether a state is terminal, so that its counts are 0
    count_SJ : (S, J)
    local_K : (K,) places of the successors in ``found``
    prob_K : (K,)
    """

    ended_S: BoolArray
    count_SJ: IndexArray
    local_K: IndexArray
    prob_K: FloatArray
    found: list[Any]

    def origin(self, local: int) -> tuple[int, int]:
        """State (by its place in the block) and profile that first lead to a successor."""
        k = int(np.flatnonzero(self.local_K == local)[0])
        row = int(np.searchsorted(self.count_SJ.ravel().cumsum(), k, side="right"))
        return divmod(row, self.count_SJ.shape[1])


def expand_states(
    model: Model, profiles: Sequence[list[int]], states: Sequence[State], stops: StateTest | None = None
) -> PythonBlock:
    """All that may follow each of the states, checked; nothing where a sub-problem ``stops``, and the world is not asked.

    Raises
    ------
    InvalidWorldError
        For an answer that cannot be.
    """
    place_of: dict[Hashable, int] = {}
    counts: list[list[int]] = []
    local: list[int] = []
    probabilities: list[float] = []
    for state in states:
        is_stopped = stops is not None and stops(state)
        answers = [None if is_stopped else asked(model, state, profile) for profile in profiles]
        if all(answer is None for answer in answers):
            counts.append([])
            continue
        row = []
        for profile, answer in zip(profiles, answers, strict=True):
            if answer is None:
                raise ended_for_some(state, profile)
            pairs = checked(state, profile, answer)
            row.append(len(pairs))
            for probability, successor in pairs:
                local.append(_number(place_of, successor, state, profile))
                probabilities.append(probability)
        counts.append(row)
    count_SJ = np.array([row or [0] * len(profiles) for row in counts], dtype=np.int64).reshape(len(states), len(profiles))
    ended_S = np.array([not row for row in counts], dtype=np.bool_)
    return PythonBlock(
        ended_S, count_SJ, np.array(local, dtype=np.int64), np.array(probabilities, dtype=np.float64), list(place_of)
    )


def expand_states_of(question: tuple[Model, Sequence[list[int]], StateTest | None], states: Sequence[State]) -> PythonBlock:
    """The same, with all that blocks have in common in one."""
    model, profiles, stops = question
    return expand_states(model, profiles, states, stops)


def asked(model: Model, state: State, profile: list[int]) -> Any:
    """What the world says; an exception of its own comes with the question."""
    try:
        return model.transitions(state, profile)
    except Exception as error:
        error.add_note(f"(transition_probabilities was asked about state {short_repr(state)}, profile {profile})")
        raise


def _number(place_of: dict[Hashable, int], successor: State, state: State, profile: list[int]) -> int:
    try:
        return place_of.setdefault(successor, len(place_of))
    except TypeError as error:
        raise unhashable(f"a successor of {short_repr(state)} under profile {profile}", successor, error) from error


def ended_for_some(state: State, profile: list[int]) -> InvalidWorldError:
    return InvalidWorldError(
        f"profile {profile} has no transitions in {short_repr(state)} although others have; a state is terminal "
        "for all profiles or for none: return None for all, or let the profile lead somewhere"
    )


def check_hash(what: str, state: State) -> None:
    try:
        hash(state)
    except TypeError as error:
        raise unhashable(what, state, error) from error


def unhashable(what: str, state: State, error: TypeError) -> InvalidWorldError:
    return InvalidWorldError(
        f"{what} is not hashable: {short_repr(state)} ({error}); use tuples instead of lists, dicts or arrays"
    )


def checked(state: State, profile: list[int], answer: Any) -> list[tuple[float, State]]:
    """Pairs of positive probability, which sum to 1."""
    where = f"profile {profile} in state {short_repr(state)}"
    try:
        pairs = [(float(probability), successor) for probability, successor in answer]
    except (TypeError, ValueError) as error:
        raise InvalidWorldError(
            f"{where}: transition_probabilities returned {short_repr(answer)}; expected a list of (probability, successor) "
            f"pairs, or None ({error})"
        ) from error
    total = sum(probability for probability, _ in pairs)  # fsum would stumble over infinities
    if any(not probability >= 0 for probability, _ in pairs):
        raise InvalidWorldError(f"{where} has probabilities {[p for p, _ in pairs]}; they have to be 0 or more")
    total = math.fsum(probability for probability, _ in pairs) if math.isfinite(total) else total
    if not abs(total - 1) <= PROBABILITY_TOLERANCE:
        raise InvalidWorldError(f"{where}: the probabilities sum to {total!r}, not to 1; check transition_probabilities")
    return [(probability / total, successor) for probability, successor in pairs if probability > 0]
