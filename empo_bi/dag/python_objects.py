"""A DAG as plain Python objects, in the documented order: what ``world.get_dag()`` returns.

States come root first, level by level, and within a level by the ordinary comparison of tuples where that is defined. For
gridworlds this is the topological order that always takes the smallest state next, since a state begins with its step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.types import IndexArray

Transition = tuple[tuple[int, ...], list[float], list[int]]


def as_python_objects(dag: Dag) -> tuple[list[Any], dict[Any, int], list[list[int]], list[list[Transition]]]:
    """``(states, state_to_idx, successors, transitions)``.

    ``successors[i]`` has the indices that follow state ``i``, without repetition; ``transitions[i]`` one ``(profile,
    probabilities, successor indices)`` per profile in profile-index order, nothing at a terminal state.
    """
    states: list[Any] = []
    place_of_level: list[IndexArray] = []
    for t in range(dag.horizon + 1):
        here = dag.states(t)
        order = sorted_order(here)
        place = np.empty(len(here), dtype=np.int64)
        place[order] = np.arange(len(states), len(states) + len(here))
        place_of_level.append(place)
        states += [here[i] for i in order]
    profiles = [tuple(profile) for profile in dag.world.all_profiles.tolist()]
    transitions: list[list[Transition]] = [[] for _ in states]
    for t in range(dag.horizon):
        level, bodies_after = dag.level(t), dag.level(t + 1).body_S
        after = place_of_level[t + 1][np.searchsorted(bodies_after, level.succ_K)].tolist()
        probabilities = level.prob_K.tolist()
        ends = level.count_SJ.ravel().cumsum().tolist()
        starts = [0, *ends]
        for s, place in enumerate(place_of_level[t].tolist()):
            transitions[place] = [
                (profile, probabilities[first:last], after[first:last])
                for j, profile in enumerate(profiles)
                for first, last in [(starts[s * len(profiles) + j], ends[s * len(profiles) + j])]
            ]
    successors = [sorted({i for _, _, after in rows for i in after}) for rows in transitions]
    return states, {state: i for i, state in enumerate(states)}, successors, transitions


def sorted_order(states: list[Any]) -> list[int]:
    """Indices of the states in ascending order; in the order of discovery where they cannot be compared."""
    try:
        return sorted(range(len(states)), key=states.__getitem__)
    except TypeError:  # None beside a string or number, as in worlds with keys or control buttons
        return list(range(len(states)))
