r"""The exact distribution over states under both policies, level by level from the first to the last.

.. math:: d_{t+1}(s') = d_0(s') + \sum_s d_t(s) P(s' \mid s)

where :math:`d_0` is 1 in the initial state. If a sub-problem has several states to start with, each has the same part of it.

Only one level's probabilities are in memory at a time (if transitions skip levels: one number for each state), and only
policies of states that can be reached. For questions about *first* times, probability mass is removed where an event
happens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from empo_bi.dag.slices import as_array
from empo_bi.events import Event, indicators_of
from empo_bi.results.fixed_goals import PursuedGoals
from empo_bi.results.goal_names import GoalLike
from empo_bi.results.solution import Solution
from empo_bi.runtime.arguments import suggests_names
from empo_bi.types import BoolArray, FloatArray

_NOWHERE = np.zeros(0, dtype=np.int64)


class ForwardPass:
    """A forward pass over all levels with N kinds of mass, each of which is 1 in all, in equal parts where runs begin.

    Attributes
    ----------
    ended_N : (N,), the mass that has reached terminal states so far
    """

    def __init__(self, solution: Solution, n_kinds: int = 1, goals: Mapping[int, GoalLike] | None = None) -> None:
        """``goals`` are the fixed goals of some humans; see :meth:`Solution.rollouts`."""
        self._solution, self._pursued = solution, PursuedGoals.of(solution.goal_columns, goals)
        self.ended_N = np.zeros(n_kinds)

    def __iter__(self) -> Iterator[tuple[int, FloatArray]]:
        """Levels with their masses (S, N). The caller may remove mass, which is then not carried to the next level."""
        solution, dag, n_kinds = self._solution, self._solution.dag, len(self.ended_N)
        solution.rows("qr", 0)  # raises an error if there is no robot policy
        self.ended_N[:] = 0.0
        starts, next_BN = dag.starts(), np.zeros((dag.n_bodies, n_kinds))
        share = 1.0 / sum(map(len, starts.values()))
        for t in range(dag.horizon + 1):
            body_S = as_array(dag.levels.members(t))
            mass_SN = next_BN[body_S]
            mass_SN[starts.get(t, _NOWHERE)] += share
            yield t, mass_SN
            if dag.shares_bodies:  # otherwise a body is on one level only, and mass may wait for a later level
                next_BN[:] = 0.0
            has_mass: BoolArray = np.asarray(mass_SN.any(axis=1), dtype=np.bool_)
            if t < dag.horizon and has_mass.any():
                for joint in solution.joint_policies(t, None if has_mass.all() else np.flatnonzero(has_mass), self._pursued):
                    joint.push(mass_SN, next_BN)
                    has_mass[joint.block.place_M] = False
            self.ended_N += mass_SN[has_mass].sum(axis=0)


def reached_levels(solution: Solution) -> list[FloatArray]:
    """The probability of each state, (S,) by level; read-only, since the solution caches them."""
    mass_TS = [mass_SN[:, 0] for _, mass_SN in ForwardPass(solution)]
    for mass_S in mass_TS:
        mass_S.flags.writeable = False
    return mass_TS


@suggests_names()
def probability_by_time(
    solution: Solution, event: Event | Sequence[Event], goals: Mapping[int, GoalLike] | None = None
) -> FloatArray:
    """The probability that an event has happened by each time: in the state of any level up to t, from the initial one on.

    Parameters
    ----------
    solution : Solution, with both phases
    event : a goal, one of ``empo_bi.events``, or a function of a state; or a list of E of them, computed in one pass
    goals : {human: goal}, optional
        Fixed goals of some humans, as in :meth:`Solution.rollouts`; the others act by their policies averaged over goals.

    Returns
    -------
    (T + 1,) float64, or (E, T + 1): T is ``dag.horizon``, and t the step in gridworlds
    """
    events = list(event) if isinstance(event, Sequence) and not isinstance(event, str) else [event]
    indicators = indicators_of(events, solution.dag)
    happened_TE = np.zeros((solution.dag.horizon + 1, len(events)))
    for t, mass_SN in ForwardPass(solution, len(events), goals):
        for e, indicator in enumerate(indicators):
            place_M = np.flatnonzero(mass_SN[:, e])
            now = place_M[indicator(t, place_M)]
            happened_TE[t, e] = mass_SN[now, e].sum()
            mass_SN[now, e] = 0.0
    by_time_ET = happened_TE.cumsum(axis=0).T
    return by_time_ET if isinstance(event, Sequence) and not isinstance(event, str) else by_time_ET[0]


@dataclass(frozen=True)
class FirstEvent:
    """Which of E events happens first; ``first``, ``tie`` and ``none`` sum to 1.

    Attributes
    ----------
    first : (E,), the probability that this event holds in some state, and no other event there or before
    tie : the probability that several events hold in the first state in which any does
    none : the probability that none ever holds
    by_time : (T + 1, E), the probability that this event has been the first by level t; its last row is ``first``
    """

    first: FloatArray
    tie: float
    none: float
    by_time: FloatArray

    def __str__(self) -> str:
        return f"first {' '.join(f'{p:.4g}' for p in self.first)}, tie {self.tie:.4g}, none {self.none:.4g}"


@suggests_names()
def first_of(solution: Solution, events: Sequence[Event]) -> FirstEvent:
    """The exact probabilities, under both policies, that each of several events happens first.

    Parameters
    ----------
    solution : Solution, with both phases
    events : goals, events of ``empo_bi.events``, functions of a state
    """
    if not isinstance(events, Sequence) or isinstance(events, str) or not events:
        raise ValueError(f"events={events!r}; give a list of at least one event")
    indicators = indicators_of(events, solution.dag)
    first_TE, tie = np.zeros((solution.dag.horizon + 1, len(events))), 0.0
    forward = ForwardPass(solution)
    for t, mass_SN in forward:
        place_M = np.flatnonzero(mass_SN[:, 0])
        holds_EM = np.array([indicator(t, place_M) for indicator in indicators])
        n_M = holds_EM.sum(axis=0)
        mass_M = mass_SN[place_M, 0]
        first_TE[t] = np.where(holds_EM & (n_M == 1), mass_M, 0.0).sum(axis=1)
        tie += float(mass_M[n_M > 1].sum())
        mass_SN[place_M[n_M > 0]] = 0.0
    by_time_TE = first_TE.cumsum(axis=0)
    return FirstEvent(by_time_TE[-1], tie, float(forward.ended_N[0]), by_time_TE)
