"""What only Python functions can tell about a state: durations, beliefs, priors of other makers, what an end is worth.

All of it is asked state by state and turned into the arrays that kernels read. Where nothing is asked, one row serves all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import index
from typing import TypeVar

import numpy as np

from empo_bi.dag.level_blocks import Block
from empo_bi.errors import InvalidWorldError
from empo_bi.problem.goal_columns import Columns
from empo_bi.problem.params import Belief, TerminalValue
from empo_bi.problem.profiles import Profiles
from empo_bi.problem.protocols import JointPrior
from empo_bi.runtime.wording import short_repr
from empo_bi.types import ByteArray, FloatArray
from empo_bi.world.as_model import Model
from empo_bi.world.model import State

Answer = TypeVar("Answer")


def durations_of(model: Model, block: Block, states: Sequence[State]) -> FloatArray:
    """How long each entry of a block's stretch takes, (K,); those of rows without a state here stay 1."""
    profiles = model.profiles
    duration_K = np.ones(len(block.succ_K))
    count_MJ = block.counts_of(len(profiles))
    entry = iter(block.entries_of(len(profiles)).tolist())
    for state, counts in zip(states, count_MJ.tolist(), strict=True):
        for profile, n in zip(profiles, counts, strict=True):
            answer = model.transitions(state, profile)
            transitions = [] if answer is None else answer
            where = f"transition_durations of {short_repr(state)} under profile {profile}"
            try:
                given = [float(d) for d in model.durations(state, profile, transitions)]
            except Exception as error:
                error.add_note(f"({where} was asked for; it is a list with a number for each transition)")
                raise
            if len(given) != len(transitions):
                raise InvalidWorldError(f"{where}: {len(given)} durations for {len(transitions)} transitions; give one each")
            kept = [d for d, (probability, _) in zip(given, transitions, strict=True) if probability > 0]
            if not all(0 <= d < float("inf") for d in kept):
                raise InvalidWorldError(f"{where}: {given}; durations are finite and not negative")
            if len(kept) != n:
                raise InvalidWorldError(
                    f"{short_repr(state)} has {len(kept)} successors under profile {profile}, and had {n} when states were "
                    "enumerated; a world has to give the same answer to the same question"
                )
            for d in kept:
                duration_K[next(entry)] = d
    return duration_K


def beliefs_of(belief: Belief, profiles: Profiles, states: Sequence[State]) -> FloatArray:
    """What each human believes of the others in each state, (M, H, U): weights of human profiles, given the own action."""
    belief_MHU = np.zeros((len(states), len(profiles.humans), len(profiles.action_UH)))
    number_of = {tuple(actions): u for u, actions in enumerate(profiles.action_UH.tolist())}
    for m, state in enumerate(states):
        for h, human in enumerate(profiles.humans):
            for action in range(profiles.actions_N[human]):
                asked = f"believed_others_policy({short_repr(state)}, {human}, {action})"
                told = answer_of(partial(belief, state, human, action), asked)
                try:
                    pairs = [
                        (float(probability), tuple(action if i == human else index(actions[i]) for i in profiles.humans))
                        for probability, actions in told
                    ]
                except (TypeError, ValueError, IndexError, KeyError) as error:
                    raise ValueError(
                        f"{asked} gave {short_repr(told)}; expected [(probability, actions of all agents), ...] ({error})"
                    ) from error
                for probability, played in pairs:
                    u = number_of.get(played)
                    if u is None or not 0 <= probability < float("inf"):
                        raise ValueError(
                            f"{asked} lets the humans {list(profiles.humans)} play {list(played)} with probability "
                            f"{probability}; actions are {_ranges(profiles)}, probabilities not negative"
                        )
                    belief_MHU[m, h, u] += probability
    return belief_MHU


def _ranges(profiles: Profiles) -> str:
    """Which actions the humans have."""
    numbers = [profiles.actions_N[human] for human in profiles.humans]
    return (
        f"0 to {numbers[0] - 1}"
        if len(set(numbers)) == 1
        else ", ".join(f"0 to {n - 1} of agent {human}" for n, human in zip(numbers, profiles.humans, strict=True))
    )


def joint_policies_of(
    prior: JointPrior, profiles: Profiles, goals: Columns, states: Sequence[State], has_NX: ByteArray
) -> tuple[FloatArray, FloatArray]:
    """What a prior says of all humans together: ``joint_MU``, and with one of them pursuing one goal ``joint_MXU``."""
    n_u = len(profiles.action_UH)
    joint_MU = np.zeros((len(states), n_u))
    joint_MXU = np.zeros((len(states), goals.n_columns, n_u))
    number_of = {tuple(actions): u for u, actions in enumerate(profiles.action_UH.tolist())}

    def put(row_U: FloatArray, distribution: Iterable[tuple[float, Sequence[int]]], asked: str) -> None:
        try:
            pairs = [(float(probability), tuple(map(index, actions))) for probability, actions in distribution]
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{asked} gave {short_repr(distribution)}; expected [(probability, [action of each human]), ...] ({error})"
            ) from error
        for probability, actions in pairs:
            u = number_of.get(actions)
            if u is None:
                raise ValueError(
                    f"{asked} lets the humans {list(profiles.humans)} play {list(actions)}; expected one action each, "
                    f"{_ranges(profiles)}, in the order of human_agent_indices"
                )
            if not 0 <= probability < float("inf"):
                raise ValueError(f"{asked} gave a probability of {probability}; expected finite ones that are not negative")
            row_U[u] += probability
        if not row_U.sum() > 0:
            raise ValueError(f"{asked} gave {short_repr(distribution)}: nothing has a positive probability")

    for m, state in enumerate(states):
        asked = f"profile_distribution({short_repr(state)})"
        put(joint_MU[m], answer_of(partial(prior.profile_distribution, state), asked), asked)
        has_X = has_NX[m if len(has_NX) > 1 else 0]
        for h, human in enumerate(profiles.humans):
            for g, goal in enumerate(goals.goals[h]):
                x = h * goals.n_goals + g
                if has_X[x] and goal is not None:
                    asked = f"profile_distribution_with_fixed_goal({short_repr(state)}, {human}, {short_repr(goal)})"
                    ask = partial(prior.profile_distribution_with_fixed_goal, state, human, goal)
                    put(joint_MXU[m, x], answer_of(ask, asked), asked)
    return joint_MU, joint_MXU


def terminal_values_of(function: TerminalValue, states: Sequence[State]) -> FloatArray:
    """What each of some terminal states is worth to the robot, (M,): finite and negative."""
    return np.array([_terminal_value(function, state) for state in states], dtype=np.float64)


def _terminal_value(function: TerminalValue, state: State) -> float:
    asked = f"terminal_Vr({short_repr(state)})"
    told = answer_of(partial(function, state), asked)
    try:
        value = float(told)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{asked} gave {short_repr(told)}; expected a negative number ({error})") from error
    if not -float("inf") < value < 0:
        raise ValueError(f"{asked} gave {value!r}; the robot's values are finite and negative: give, say, -1e-10")
    return value


def answer_of(ask: Callable[[], Answer], asked: str) -> Answer:
    """What a user's function says; an exception of its own comes with the question."""
    try:
        return ask()
    except Exception as error:
        error.add_note(f"({asked} was asked)")
        raise
