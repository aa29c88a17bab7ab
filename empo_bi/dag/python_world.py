"""What a world written in Python says, asked state by state and checked: errors show the state, the profile and what to do.

Any object will do that has ``agents`` (or ``n_agents``), ``action_space.n``, ``initial_state()`` (or ``reset()`` and
``get_state()``) and ``transition_probabilities(state, actions)``, which returns ``(probability, successor)`` pairs, or None
at a terminal state. States are any hashable objects.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from empo_bi.errors import InvalidWorldError
from empo_bi.runtime.wording import short_repr
from empo_bi.world.model import PROBABILITY_TOLERANCE

if TYPE_CHECKING:  # worker processes load this module, and need no numba: 24 MB each
    from empo_bi.types import BoolArray, FloatArray, IndexArray

LevelFunction = Callable[[Any], int]


def n_agents_of(world: Any) -> int:
    agents = getattr(world, "agents", None)
    return int(world.n_agents) if agents is None else len(agents)


def action_names_of(world: Any) -> list[str]:
    """As the world calls its actions (``action_names``); "action 0", "action 1", ... where it does not."""
    n_actions, names = int(world.action_space.n), getattr(world, "action_names", None)
    if names is None or isinstance(names, str) or len(names) != n_actions:
        return [f"action {a}" for a in range(n_actions)]
    return [str(name) for name in names]


def initial_state_of(world: Any) -> Any:
    if hasattr(world, "initial_state"):
        return world.initial_state()
    world.reset()
    return world.get_state()


def all_profiles_of(world: Any) -> list[list[int]]:
    """Every action profile in profile-index order: agent 0 is the least significant digit."""
    actions = range(int(world.action_space.n))
    return [list(profile[::-1]) for profile in itertools.product(actions, repeat=n_agents_of(world))]


def is_terminal(world: Any, state: Any, profiles: Sequence[list[int]]) -> bool:
    """Whether nothing follows; one profile tells, since a state has successors for all or for none."""
    return world.transition_probabilities(state, list(profiles[0])) is None


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


def expand_states(world: Any, profiles: Sequence[list[int]], states: Sequence[Any]) -> PythonBlock:
    """All that may follow each of the states, checked.

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
        answers = [_answer(world, state, profile) for profile in profiles]
        if all(answer is None for answer in answers):
            counts.append([])
            continue
        row = []
        for profile, answer in zip(profiles, answers, strict=True):
            if answer is None:
                raise InvalidWorldError(
                    f"profile {profile} has no transitions in {short_repr(state)} although others have; a state is terminal "
                    "for all profiles or for none: return None for all, or let the profile lead somewhere"
                )
            pairs = _checked(state, profile, answer)
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


def expand_states_of(asked: tuple[Any, Sequence[list[int]]], states: Sequence[Any]) -> PythonBlock:
    """The same, with world and profiles in one."""
    return expand_states(*asked, states)


def _answer(world: Any, state: Any, profile: list[int]) -> Any:
    try:
        return world.transition_probabilities(state, list(profile))
    except Exception as error:
        error.add_note(f"(transition_probabilities was asked about state {short_repr(state)}, profile {profile})")
        raise


def _number(place_of: dict[Hashable, int], successor: Any, state: Any, profile: list[int]) -> int:
    try:
        return place_of.setdefault(successor, len(place_of))
    except TypeError as error:
        raise unhashable(f"a successor of {short_repr(state)} under profile {profile}", successor, error) from error


def unhashable(what: str, state: Any, error: TypeError) -> InvalidWorldError:
    return InvalidWorldError(
        f"{what} is not hashable: {short_repr(state)} ({error}); use tuples instead of lists, dicts or arrays"
    )


def _checked(state: Any, profile: list[int], answer: Any) -> list[tuple[float, Any]]:
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
