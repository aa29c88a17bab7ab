"""States that random walks through a world come to, with what the world said of them."""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from empo_bi.dag.object_fingerprint import digest_of_content
from empo_bi.dag.python_world import LevelFunction, asked, check_hash, checked, ended_for_some
from empo_bi.errors import InvalidWorldError
from empo_bi.runtime.wording import counted, short_repr
from empo_bi.world.as_model import Model
from empo_bi.world.model import State
from empo_bi.world.python_model import attributes_of

MAX_PROFILES = 64  # that are asked about in each state
TOLERANCE = 1e-12  # on the sum of probabilities; planners accept more, and renormalise

Answer = list[tuple[float, State]] | None  # (probability, successor) pairs as given, None at a terminal state


@dataclass(frozen=True)
class Sample:
    """Some states of a world, the initial one first.

    Attributes
    ----------
    profiles : those that were asked about
    answers : by state, what the world said of each profile
    is_complete : whether there are no other states
    attributes : digests of what was on the world before it was asked, by name; None where there is none
    present : the world's present state before it was asked, None if it has none
    """

    model: Model
    level_fct: LevelFunction | None
    profiles: list[list[int]]
    answers: dict[Hashable, list[Answer]]
    is_complete: bool
    attributes: dict[str, str | None]
    present: Any
    seed: int

    @property
    def states(self) -> list[State]:
        return list(self.answers)

    @property
    def going_on(self) -> list[Any]:
        """States that are not terminal."""
        return [state for state, answers in self.answers.items() if answers[0] is not None]

    def transitions(self) -> Iterator[tuple[State, list[int], State]]:
        """``(state, profile, successor)`` of all transitions that were found, those of probability 0 left out."""
        for state, answers in self.answers.items():
            for profile, answer in zip(self.profiles, answers, strict=True):
                for probability, successor in answer or ():
                    if probability > 0:
                        yield state, profile, successor


def sample_of(model: Model, n_states: int, seed: int, level_fct: LevelFunction | None) -> Sample:
    """Walk from state to state, so that deep ones are met as well; begin again at a random one where nothing new follows."""
    rng = random.Random(seed)
    profiles, state = some_profiles(model, rng), model.initial_state()
    check_hash("the initial state", state)
    attributes, present = attribute_digests(model), present_state(model)  # a world may have been reset before this
    answers: dict[Hashable, list[Answer]] = {}
    waiting: dict[Hashable, None] = {}  # known, but not asked about; a set that keeps its order
    for _ in range(n_states):
        answers[state] = answers_about(model, profiles, state)
        waiting.pop(state, None)
        follow = {after: None for answer in answers[state] for p, after in answer or () if p > 0 and after not in answers}
        waiting |= follow
        if not waiting:
            break
        state = rng.choice(list(follow or waiting))
    return Sample(model, level_fct, profiles, answers, not waiting, attributes, present, seed)


def some_profiles(model: Model, rng: random.Random) -> list[list[int]]:
    """All action profiles, or so many random ones, the first and the last among them."""
    sizes_of(model)
    if model.n_profiles <= MAX_PROFILES:
        return model.profiles
    numbers = model.num_actions_per_agent
    chosen = [[rng.randrange(n) for n in numbers] for _ in range(MAX_PROFILES - 2)]
    return [[0] * len(numbers), *chosen, [n - 1 for n in numbers]]


def sizes_of(model: Model) -> tuple[int, int]:
    """Numbers of agents and actions, which a world has to have before anything can be asked."""
    try:
        n_agents, n_actions = model.n_agents, model.n_actions
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidWorldError(
            f"{short_repr(model.world)} does not say how many agents and actions there are ({error}); give it a list of "
            "agents (or n_agents, a number), and action_space with n, the number of actions of every agent"
        ) from error
    if n_agents < 0 or n_actions < 1:
        raise InvalidWorldError(
            f"{counted(n_agents, 'agent')} with {counted(n_actions, 'action')}; expected at least one action: set agents "
            "(or n_agents) and action_space.n"
        )
    return n_agents, n_actions


def answers_about(model: Model, profiles: list[list[int]], state: State) -> list[Answer]:
    """What the world says of a state, each answer checked by itself and all together."""
    answers = [answer_to(model, state, profile) for profile in profiles]
    if any(answer is not None for answer in answers):
        for profile, answer in zip(profiles, answers, strict=True):
            if answer is None:
                raise ended_for_some(state, profile)
    return answers


def answer_to(model: Model, state: State, profile: list[int]) -> Answer:
    """Checked: pairs of a probability and a hashable state, which sum to 1."""
    before = hash(state)
    answer = asked(model, state, profile)
    if hash(state) != before:
        raise InvalidWorldError(
            f"being asked about {short_repr(state)} changed that state; leave states as they are, and make new ones"
        )
    if answer is None:
        return None
    answer = list(answer) if hasattr(answer, "__iter__") else answer
    checked(state, profile, answer)
    where = f"profile {profile} in state {short_repr(state)}"
    total = math.fsum(probability for probability, _ in answer)
    if abs(total - 1) > TOLERANCE:
        raise InvalidWorldError(
            f"{where}: the probabilities sum to {total!r}, which is off by {abs(total - 1):.1e}; expected 1 within "
            f"{TOLERANCE:g}: do not round them, or divide them by their sum"
        )
    for _, successor in answer:
        check_hash(f"a successor of {short_repr(state)} under profile {profile}", successor)
    return [(float(probability), successor) for probability, successor in answer]


def attribute_digests(model: Model) -> dict[str, str | None]:
    """What is on a world that stores tell from others by its attributes, but for what planning leaves there."""
    if model.content is not None:
        return {}
    return {name: digest_of_content(value) for name, value in attributes_of(model.world)}


def present_state(model: Model) -> State | None:
    """Where a world that is also an environment is now; None for others."""
    get_state = getattr(model.world, "get_state", None)
    return get_state() if callable(get_state) else None
