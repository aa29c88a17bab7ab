"""The rules that a world keeps, each a function of a :class:`~empo_bi.testing.sample.Sample`.

A rule raises :class:`InvalidWorldError` if it is broken, and otherwise says what it found.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from empo_bi.dag.derived_explorer import has_cycle, longest_paths
from empo_bi.dag.python_world import level_of, not_higher
from empo_bi.dag.shared_explorer import begins_with_step, not_next_step, other_successors, without_step
from empo_bi.errors import InvalidStateError, InvalidWorldError
from empo_bi.runtime.wording import counted, short_repr
from empo_bi.solving.argument_checks import checked_agents
from empo_bi.store.json_states import JsonStates
from empo_bi.testing.sample import Answer, Sample, answer_to, attribute_digests, present_state
from empo_bi.world.as_model import Model
from empo_bi.world.model import State


@dataclass(frozen=True)
class Finding:
    """What a rule found, in a few words, and what is allowed but worth a note."""

    text: str
    notes: Sequence[str] = ()


# --- agents and actions -----------------------------------------------------------------------------------------------


def agents(sample: Sample) -> Finding:
    """Numbers of agents and actions, roles, names of actions."""
    model = sample.model
    humans, robots = model.human_agent_indices, model.robot_agent_indices
    if len(humans):
        _check_roles(model, humans, robots)
    names = getattr(model.world, "action_names", None)
    if names is not None and (isinstance(names, str) or len(names) != model.n_actions):
        raise InvalidWorldError(
            f"action_names={short_repr(names)} for {counted(model.n_actions, 'action')}; give a list with a name for each"
        )
    text = f"{counted(model.n_agents, 'agent')} with {counted(model.n_actions, 'action')}"
    return Finding(f"{text}; humans {list(humans)}, robots {list(robots)}")


def _check_roles(model: Model, humans: Any, robots: Any) -> None:
    try:
        checked_agents(model, humans, robots)
    except (TypeError, ValueError) as error:
        raise InvalidWorldError(str(error)) from error


def actions(sample: Sample) -> Finding:
    """Profiles of the wrong length, or with actions that do not exist, are refused."""
    n_agents = sample.model.n_agents
    if not n_agents or not sample.going_on:
        return Finding("nothing to ask")
    n_actions = sample.model.num_actions_per_agent[-1]
    wrong = {
        f"action {n_actions} (there are 0 to {n_actions - 1})": [*[0] * (n_agents - 1), n_actions],
        "action -1": [*[0] * (n_agents - 1), -1],
        f"{counted(n_agents + 1, 'action')} for {counted(n_agents, 'agent')}": [0] * (n_agents + 1),
        f"{counted(n_agents - 1, 'action')} for {counted(n_agents, 'agent')}": [0] * (n_agents - 1),
    }
    accepted = [what for what, profile in wrong.items() if not _is_refused(sample.model, sample.going_on[0], profile)]
    if accepted:
        note = (
            f"transition_probabilities accepts {', '.join(accepted)}; raise an error, or a slip in a caller goes unnoticed"
        )
        return Finding("wrong action profiles are accepted", [note])
    return Finding("wrong action profiles are refused")


def _is_refused(model: Model, state: State, profile: list[int]) -> bool:
    try:
        model.transitions(state, profile)
    except Exception:  # whatever a user's function raises
        return True
    return False


# --- states and transitions -------------------------------------------------------------------------------------------


def states(sample: Sample) -> Finding:
    """States are hashable (the sample has seen to that); what is terminal says so."""
    n_ended = len(sample.states) - len(sample.going_on)
    says = getattr(sample.model.world, "is_terminal", None)
    for state, answers in sample.answers.items():
        if callable(says) and bool(says(state)) != (answers[0] is None):
            raise InvalidWorldError(
                f"is_terminal({short_repr(state)}) is {says(state)!r}, but transition_probabilities returns "
                f"{short_repr(answers[0])} there; a state is terminal exactly where that is None"
            )
    notes = [] if n_ended else ["no terminal state was met; does the world ever end? Look at more states with n_states"]
    return Finding(f"{counted(len(sample.states), 'state')}, {n_ended:,} of them terminal, all hashable", notes)


def transitions(sample: Sample) -> Finding:
    """The same question has the same answer, in another order too; and asking changes nothing."""
    model = sample.model
    _check_same_start(model, sample.states[0])
    questions = [(state, j) for state in sample.states for j in range(len(sample.profiles))]
    random.Random(sample.seed).shuffle(questions)
    for state, j in questions:
        again = answer_to(model, state, sample.profiles[j])
        _check_same(state, sample.profiles[j], sample.answers[state][j], again)
    _check_untouched(sample)
    return Finding(f"{counted(len(questions), 'question')}, asked twice, in another order: the same answers")


def _check_same_start(model: Model, start: State) -> None:
    again = model.initial_state()
    if again != start or hash(again) != hash(start):
        raise InvalidWorldError(
            f"the initial state is {short_repr(start)} at first and {short_repr(again)} when asked again; "
            + _remedy_for_difference(start, again)
        )


def _check_same(state: State, profile: list[int], first: Answer, again: Answer) -> None:
    if first == again and [hash(after) for _, after in first or ()] == [hash(after) for _, after in again or ()]:
        return
    pairs = zip(first or (), again or (), strict=False)
    one, other = next(((a, b) for (_, a), (_, b) in pairs if a != b or hash(a) != hash(b)), (None, None))
    raise InvalidWorldError(
        f"profile {profile} in state {short_repr(state)}: transition_probabilities said {short_repr(first)} at first and "
        f"{short_repr(again)} when asked again; " + _remedy_for_difference(one, other)
    )


def _remedy_for_difference(one: Any, other: Any) -> str:
    if one is not None and type(one) is type(other) and type(one).__eq__ is object.__eq__:
        return f"states of the class {type(one).__name__} are equal only to themselves: give it __eq__ and __hash__"
    if one is not None and one == other:
        return "equal states have to have the same hash: let __hash__ look at what __eq__ looks at"
    return "the same question has to have the same answer, in the same order: use no random numbers, clocks or counters"


def _check_untouched(sample: Sample) -> None:
    if present_state(sample.model) != sample.present:
        raise InvalidWorldError(
            f"asking moved the world from {short_repr(sample.present)} to {short_repr(present_state(sample.model))}; "
            "transition_probabilities has to leave the present state as it is"
        )
    now = attribute_digests(sample.model)
    changed = [name for name in now.keys() | sample.attributes.keys() if now.get(name) != sample.attributes.get(name)]
    if changed:
        raise InvalidWorldError(
            f"asking changed {', '.join(sorted(changed))} of the world, by which stores tell it from others; leave its "
            "attributes as they are, or, if it remembers answers, give it a content_key that says what it is"
        )


def levels(sample: Sample) -> Finding:
    """Time moves forward: every successor is on a higher level."""
    if sample.model.is_time_homogeneous:
        _check_steps(sample)
        unasked = (
            [] if sample.level_fct is None else ["level_fct is not asked: the world is time_homogeneous, levels are steps"]
        )
        return Finding("steps, with the same rules at each (time_homogeneous)", unasked)
    if sample.level_fct is not None:
        for state, profile, successor in sample.transitions():
            value, level = level_of(sample.level_fct, state), level_of(sample.level_fct, successor)
            if level <= value:
                raise not_higher(successor, level, state, value, profile)
        return Finding("as level_fct says; every successor is on a higher one")
    _check_acyclic(sample)
    return Finding("the longest path to each state; no path leads back to one")


def _check_steps(sample: Sample) -> None:
    if not begins_with_step(sample.states[0]):
        raise without_step(sample.states[0])
    for state, profile, successor in sample.transitions():
        if not begins_with_step(successor) or successor[0] != state[0] + 1:
            raise not_next_step(successor, state, profile, state[0] + 1)
    known: dict[Any, Any] = {}
    for state in sorted(sample.going_on, key=lambda state: int(state[0])):
        rules = [[(p, tuple(after[1:])) for p, after in answer or ()] for answer in sample.answers[state]]
        if known.setdefault(tuple(state[1:]), rules) != rules:
            raise other_successors(state)


def _check_acyclic(sample: Sample) -> None:
    number_of = {state: i for i, state in enumerate(sample.states)}
    follow: list[set[int]] = [set() for _ in number_of]
    for state, _, successor in sample.transitions():
        if successor in number_of:
            follow[number_of[state]].add(number_of[successor])
    _, on_cycle = longest_paths([sorted(numbers) for numbers in follow])
    if on_cycle is not None:
        raise has_cycle(sample.states[on_cycle])


def durations(sample: Sample) -> Finding:
    """A number for each transition, finite and not negative, always the same."""
    model = sample.model
    if not model.has_own_durations:
        return Finding("1 each")
    for state in sample.going_on:
        for profile, answer in zip(sample.profiles, sample.answers[state], strict=True):
            given, again = ([*model.durations(state, profile, list(answer or ()))] for _ in range(2))
            where = f"transition_durations of {short_repr(state)} under profile {profile}"
            if len(given) != len(answer or ()):
                raise InvalidWorldError(
                    f"{where}: {len(given)} durations for {len(answer or ())} transitions; give one each"
                )
            if not all(0 <= duration < math.inf for duration in given):
                raise InvalidWorldError(f"{where}: {given}; durations are finite and not negative")
            if given != again:
                raise InvalidWorldError(f"{where}: {given} at first and {again} when asked again; give the same each time")
    return Finding("given by the world, finite and not negative")


# --- stores and goals -------------------------------------------------------------------------------------------------


def stores(sample: Sample) -> Finding:
    """States come back from a store as they went."""
    packed = sample.model.packed
    if packed is not None:
        steps, key_SW = packed.encode(sample.states)
        problem = packed.problem_of_keys(key_SW)
        if problem is not None or packed.decode(steps, key_SW) != sample.states:
            raise InvalidWorldError(
                f"states do not come back from encode and decode as they went ({problem or 'others come back'}); they have "
                "to undo each other"
            )
        return Finding("keys come back as the states that they were made of")
    try:
        json_states = JsonStates(sample.model, sample.states[0])
        back = json_states.from_bytes(json_states.to_bytes(sample.states))
    except TypeError as error:
        raise InvalidWorldError(str(error)) from error
    except InvalidStateError as error:
        if sample.model.encode_state is not None:
            raise InvalidWorldError(str(error)) from error
        return Finding("states cannot be written to disk", [f"only in memory: {error}"])
    wrong = next((pair for pair in zip(sample.states, back, strict=True) if pair[0] != pair[1]), None)
    if wrong is not None:
        raise InvalidWorldError(f"{short_repr(wrong[0])} comes back from a store as {short_repr(wrong[1])}; give the world "
                                "encode_state and decode_state, which undo each other")  # fmt: skip
    return Finding("states are written as JSON and come back equal")


def goals(sample: Sample) -> Finding:
    """Goals can be compared and asked; generators say the same each time."""
    generator, humans = sample.model.goal_generator, list(sample.model.human_agent_indices)
    if generator is None or not humans:
        return Finding("none", ["no humans with goals: solve wants human_agent_indices and possible_goal_generator"])
    if not callable(getattr(generator, "generate", None)):
        raise InvalidWorldError(
            f"possible_goal_generator={short_repr(generator)} has no method generate(state, human_agent_index); give one "
            "that yields (goal, weight) pairs"
        )
    known: set[Any] = set()
    without = 0
    for state in sample.going_on:
        for human in humans:
            given = _goals_of(generator, state, human)
            without += not any(weight > 0 for _, weight in given)
            known |= {goal for goal, _ in given}
            _check_same_goals(given, _goals_of(generator, state, human), state, human)
    for state in sample.states:
        for goal in known:
            _check_attainment(goal, state)
    notes = [f"{without:,} times a human has no goal of positive weight, so no power: the robot's phase stops there"]
    return Finding(f"{counted(len(known), 'goal')} of {counted(len(humans), 'human')}", notes if without else [])


def _goals_of(generator: Any, state: State, human: int) -> list[tuple[Any, float]]:
    where = f"generate({short_repr(state)}, {human})"
    given = list(generator.generate(state, human))
    try:
        pairs = [(goal, float(weight)) for goal, weight in given]
    except (TypeError, ValueError) as error:
        raise InvalidWorldError(f"{where} gave {short_repr(given)}; expected (goal, weight) pairs ({error})") from error
    for goal, weight in pairs:
        if not 0 <= weight < math.inf:
            raise InvalidWorldError(f"{where}: {short_repr(goal)} has weight {weight}; weights are finite and not negative")
        if not callable(getattr(goal, "is_achieved", None)):
            raise InvalidWorldError(f"{where}: {short_repr(goal)} has no is_achieved(state); give goals that have")
        try:
            hash(goal)
        except TypeError as error:
            raise InvalidWorldError(
                f"{where}: {short_repr(goal)} is not hashable ({error}); give its class __hash__ beside __eq__"
            ) from error
    return pairs


def _check_same_goals(first: list[tuple[Any, float]], again: list[tuple[Any, float]], state: State, human: int) -> None:
    if first != again:
        raise InvalidWorldError(
            f"generate({short_repr(state)}, {human}) gave {short_repr(first)} at first and {short_repr(again)} when asked "
            "again; goals are compared by == and hash: give their class __eq__ and __hash__, and yield the same each time"
        )
    different = next((goal for (goal, _), (other, _) in zip(first, again, strict=True) if hash(goal) != hash(other)), None)
    if different is not None:
        raise InvalidWorldError(
            f"{short_repr(different)} is equal to the goal that generate yields when asked again, but has another hash; let "
            "__hash__ look at what __eq__ looks at"
        )


def _check_attainment(goal: Any, state: State) -> None:
    first, again = goal.is_achieved(state), goal.is_achieved(state)
    where = f"{short_repr(goal)}.is_achieved({short_repr(state)})"
    if not isinstance(first, bool | int | np.bool_ | np.integer) or first not in (0, 1):
        raise InvalidWorldError(f"{where} is {short_repr(first)}; expected True or False (1 or 0)")
    if first != again:
        raise InvalidWorldError(
            f"{where} is {first!r} at first and {again!r} when asked again; it depends on the state alone"
        )


RULES: list[Callable[[Sample], Finding]] = [agents, states, actions, transitions, levels, durations, stores, goals]
