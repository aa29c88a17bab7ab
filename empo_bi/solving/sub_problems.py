"""Sub-problems as users write them: ``start`` and ``stop``, and DAGs at hand that can be used for them."""

from __future__ import annotations

import copy
from typing import cast

import numpy as np

from empo_bi.dag.dag import Dag
from empo_bi.dag.levels import Levels
from empo_bi.dag.stopped_levels import StoppedLevels
from empo_bi.dag.sub_problem import KEYS, SubProblem, check_starts_of_python_world, checked_starts
from empo_bi.errors import InvalidStateError
from empo_bi.events import Event, indicators_of, stop_of
from empo_bi.runtime.wording import short_repr
from empo_bi.types import Json
from empo_bi.world.as_model import Model


def sub_problem_of(model: Model, start: object, stop: Event | None) -> SubProblem:
    """What a user gave as ``start`` and ``stop``, checked."""
    starts = checked_starts(model, start)
    try:
        part = SubProblem(starts, stop_of(stop, model))
    except TypeError as error:
        raise TypeError(f"stop={short_repr(stop)}: {error}") from error
    check_starts_of_python_world(model, part)
    return part


def stored_part(content: Json) -> SubProblem:
    """The sub-problem of a store, of which its manifest knows no more than what identifies it."""
    return SubProblem(stored={name: content[name] for name in KEYS if name in content})


def dag_for(dag: Dag, part: SubProblem) -> Dag:
    """A DAG at hand, as that of a sub-problem of its world: the same one, or with other starts and more ends.

    Raises
    ------
    ValueError
        If it does not have the states to start with, or stops elsewhere.
    """
    for state in part.starts:
        try:
            dag.place_of(state)
        except InvalidStateError as error:
            raise ValueError(
                f"dag={dag!r} does not have the state to start with, {short_repr(state)}; leave dag out, and a DAG is "
                "enumerated from there"
            ) from error
    if part.starts and part.starts != dag.part.starts:
        dag = copy.copy(dag)
        dag.begins = part.starts
    if part.stop is None or part.is_same_stop(dag.part):
        return dag
    if "stop" in dag.part.content:
        raise ValueError(
            f"dag={dag!r} was enumerated with another stop than {short_repr(part.stop.event)}; leave dag out, or give one "
            "that was enumerated without stop"
        )
    return _stopped(dag, part)


def _stopped(dag: Dag, part: SubProblem) -> Dag:
    assert part.stop is not None
    (holds,) = indicators_of([part.stop.event], dag)
    stopped = [holds(t, np.arange(n)) for t, n in enumerate(dag.level_sizes)]
    other = copy.copy(dag)
    other.goal_answers = {}  # generators are asked about states that go on, and these are fewer now
    other.levels = cast(Levels, StoppedLevels(dag.levels, stopped))
    # Its states are those of the DAG, wherever the sub-problem starts; so that is what identifies it.
    own = {name: key for name, key in dag.part.content.items() if name != "stop"}
    other.part = SubProblem(dag.part.starts, part.stop, stored={**own, "stop": part.content["stop"]})
    return other
