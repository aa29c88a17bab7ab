"""Asking a prior of the user's: each question once, and with arrays instead of questions where the prior can answer so.

There are three kinds of priors. Some answer for many states at once, in arrays. Those in which each human acts for itself
are asked once for each (state, human, goal), and the products are taken here. All others are asked what the humans do
together. All give the same numbers, bit by bit, if they mean the same.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from empo_bi.dag.dag import Dag
from empo_bi.errors import StoreMismatchError
from empo_bi.problem.callbacks import joint_policies_of
from empo_bi.problem.given_policies import (
    GivenJoint,
    GivenPolicies,
    StatesInQuestion,
    are_sound,
    joint_of_given,
    normalised_rows,
)
from empo_bi.problem.goal_columns import Columns
from empo_bi.problem.profiles import Profiles
from empo_bi.problem.protocols import Goal, JointPrior
from empo_bi.runtime.wording import short_repr
from empo_bi.types import ByteArray, FloatArray, IndexArray, Json
from empo_bi.world.model import State, World

REMEMBERED_BYTES = 1 << 25  # of answers that hold for several states; when there are more, all are forgotten
_ROUNDING = 1e-2  # of a policy's sum; some come from tables in float16
_BYTES_PER_ANSWER = 400  # of a question and an array, beside its numbers

Joint = tuple[FloatArray, FloatArray]  # (M, U) and (M, X, U)


class AnswersForEach(ABC):
    """A prior that is asked for one human at a time."""

    asks_in_processes: bool = False  # whether it may be asked in worker processes, if solve has several workers

    @property
    @abstractmethod
    def is_independent(self) -> bool:
        """Whether each human acts for itself, so that what they do together are products."""

    @abstractmethod
    def __call__(self, state: State, human_agent_index: int, possible_goal: Goal | None = None) -> npt.ArrayLike:
        """Probabilities of a human's actions."""

    def depends_on(self, state: Hashable, human_agent_index: int) -> Hashable:
        """What of a state the answers for a human depend on; by default all of it, its step included.

        The prior is asked once for all states for which this is the same. For humans who do not look at the step of a
        gridworld it is ``state[1:]``, for those who look only at themselves ``state[1][human_agent_index]``.
        """
        return state


class AnswersInArrays(ABC):
    """A prior that answers for many states at once."""

    @abstractmethod
    def given_policies(self, asked: StatesInQuestion) -> GivenPolicies:
        """The policies of all humans, for all goals of ``asked.goals`` and averaged over goals."""


class AskedPrior:
    """A prior with the answers that hold for several states, and how long it took to answer.

    Attributes
    ----------
    n_questions : how often it was asked; one for a block of states where it answers in arrays
    seconds : the time that this took, in the prior itself; of processes, all together
    """

    def __init__(self, prior: JointPrior, profiles: Profiles, goals: Columns) -> None:
        self.prior, self.profiles, self.goals = prior, profiles, goals
        self.n_questions, self.seconds = 0, 0.0
        self._answers: dict[Hashable, FloatArray] = {}
        self._lock = threading.Lock()
        self._has_warned = False

    def __getstate__(self) -> dict[str, object]:
        """For other processes: they get no answers, and where those are arrays, not the prior either."""
        prior = None if isinstance(self.prior, AnswersInArrays) else self.prior
        lean = Columns(self.goals.humans, self.goals.goals, self.goals.n_goals)
        return {"prior": prior, "profiles": self.profiles, "goals": lean}

    def __setstate__(self, state: Json) -> None:
        self.__init__(**state)  # type: ignore[misc]

    @property
    def wants_states(self) -> bool:
        """Whether it is asked about states one by one, as Python objects."""
        return not isinstance(self.prior, AnswersInArrays)

    @property
    def may_ask_elsewhere(self) -> bool:
        """Whether the user allows worker processes."""
        return isinstance(self.prior, AnswersForEach) and self.prior.is_independent and self.prior.asks_in_processes

    def given(self, dag: Dag, t: int, place_M: IndexArray) -> GivenPolicies | None:
        """Policies of some states of a level, if the prior answers in arrays; by one thread at a time."""
        if not isinstance(self.prior, AnswersInArrays):
            return None
        with self._lock:
            begin = time.perf_counter()
            found = self.prior.given_policies(StatesInQuestion(dag, self.goals, t, place_M))
            self.seconds += time.perf_counter() - begin
            self.n_questions += 1
            return found

    def joint(self, states: Sequence[State] | None, has_NX: ByteArray, given: GivenPolicies | None) -> Joint:
        """What all humans do together, see :func:`joint_policies_of`; from ``given`` where that is known already."""
        if given is None:
            assert states is not None
            if not (isinstance(self.prior, AnswersForEach) and self.prior.is_independent):
                return self._asked_together(states, has_NX)
            given = self.ask_each(states, has_NX)
        if isinstance(given, GivenJoint):
            return self._stored(given, has_NX)
        joint_MU, joint_MXU, is_sound_M = joint_of_given(given, self.profiles, self.goals, has_NX)
        if not is_sound_M.all():
            if states is None:
                raise _complaint(given, int(np.flatnonzero(~is_sound_M)[0]))
            for m in np.flatnonzero(~is_sound_M).tolist():  # the plain way says what is wrong, if anything is
                has_1X = has_NX if len(has_NX) == 1 else has_NX[m : m + 1]
                joint_MU[m : m + 1], joint_MXU[m : m + 1] = self._asked_together([states[m]], has_1X)
        return joint_MU, joint_MXU

    def _stored(self, given: GivenJoint, has_NX: ByteArray) -> Joint:
        if has_NX.any():
            raise StoreMismatchError(
                "this was solved with a prior of your own, and what it says of single goals was not stored: open it with "
                "prior=... (--prior MODULE:FUNCTION), or call solve again with the same arguments"
            )
        joint_MU = given.joint_MU
        if not are_sound(joint_MU).all():
            raise StoreMismatchError("array 'joint': a state that is not terminal has no probabilities of what humans do")
        return joint_MU, np.zeros((len(joint_MU), 0, joint_MU.shape[1]))

    def ask_each(self, states: Sequence[State], has_NX: ByteArray) -> GivenPolicies:
        """Policies of states, asked for one human and goal at a time; equal goals are asked about once."""
        found = GivenPolicies.empty(len(states), self.goals, self.profiles.n_actions)
        prior, n_goals = self.prior, self.goals.n_goals
        assert isinstance(prior, AnswersForEach)
        remembers = type(prior).depends_on is not AnswersForEach.depends_on
        for m, state in enumerate(states):
            has_X = has_NX[m if len(has_NX) > 1 else 0]
            for h, human in enumerate(self.goals.humans):
                about = prior.depends_on(state, human) if remembers else None
                found.mean_MHA[m, h] = self._mean(state, human, about, remembers)
                first_of: dict[Goal, int] = {}
                for g, goal in enumerate(self.goals.goals[h]):
                    x = h * n_goals + g
                    if not has_X[x] or goal is None:
                        continue
                    same = first_of.setdefault(goal, x)
                    found.pi_MXA[m, x] = (
                        self._policy(state, human, goal, about, remembers) if same == x else found.pi_MXA[m, same]
                    )
        return found

    def with_answers(self, told: Answers) -> GivenPolicies:
        """Count what was asked in another process."""
        self.n_questions += told.n_questions
        self.seconds += told.seconds
        return told.given

    def _mean(self, state: State, human: int, about: Hashable, remembers: bool) -> FloatArray:
        return self._remembered((about, human), remembers, lambda: self._row(normalised_rows(self._ask(state, human, None))))

    def _policy(self, state: State, human: int, goal: Goal, about: Hashable, remembers: bool) -> FloatArray:
        return self._remembered((about, human, goal), remembers, lambda: self._row(self._ask(state, human, goal)))

    def _remembered(self, question: Hashable, remembers: bool, answer: Callable[[], FloatArray]) -> FloatArray:
        if not remembers:
            return answer()
        known = self._answers.get(question)
        if known is None:
            if len(self._answers) * (8 * self.profiles.n_actions + _BYTES_PER_ANSWER) > REMEMBERED_BYTES:
                self._answers.clear()
            self._answers[question] = known = answer()
        return known

    def _ask(self, state: State, human: int, goal: Goal | None) -> FloatArray:
        prior = cast(AnswersForEach, self.prior)
        begin = time.perf_counter()
        try:
            told = prior(state, human) if goal is None else prior(state, human, goal)
            found_A = np.asarray(told, dtype=np.float64)
        except Exception as error:
            error.add_note(f"(human_policy_prior({short_repr(state)}, {human}, {short_repr(goal)}) was asked)")
            raise
        finally:
            self.seconds += time.perf_counter() - begin
            self.n_questions += 1
        self._check(found_A, state, human, goal)
        return found_A

    def _check(self, found_A: FloatArray, state: State, human: int, goal: Goal) -> None:
        """Refuse answers for another number of actions; say once if probabilities of a goal do not sum to 1."""
        n_actions = self.profiles.actions_N[human]
        asked = f"human_policy_prior({short_repr(state)}, {human}, {short_repr(goal)})"
        if found_A.ndim == 1 and len(found_A) not in (n_actions, self.profiles.n_actions):
            raise ValueError(f"{asked} gave {len(found_A)} probabilities; human {human} has {n_actions} actions")
        if not (found_A >= 0).all():
            raise ValueError(f"{asked} gave {short_repr(found_A.tolist())}; probabilities are 0 or more")
        total = float(found_A.sum())
        if goal is not None and not self._has_warned and math.isfinite(total) and abs(total - 1) > _ROUNDING:
            self._has_warned = True
            warnings.warn(
                f"{asked} gave probabilities that sum to {total:g}, not 1; they are used as they are", stacklevel=2
            )

    def _row(self, told_A: FloatArray) -> FloatArray:
        """(A,), filled up with 0; NaN for what is no policy, which makes the plain way ask again and complain."""
        row_A = np.zeros(self.profiles.n_actions)
        if told_A.ndim != 1 or (told_A[len(row_A) :] != 0).any():
            row_A[:] = np.nan
            return row_A
        n = min(len(told_A), len(row_A))
        row_A[:n] = told_A[:n]
        return row_A

    def _asked_together(self, states: Sequence[State], has_NX: ByteArray) -> Joint:
        self.n_questions += len(states) + int(has_NX.sum()) * (len(states) if len(has_NX) == 1 else 1)
        begin = time.perf_counter()
        try:
            return joint_policies_of(self.prior, self.profiles, self.goals, states, has_NX)
        finally:
            self.seconds += time.perf_counter() - begin


def _complaint(given: GivenPolicies, m: int) -> ValueError:
    """About arrays that are not made of policies."""
    return ValueError(
        f"human_policy_prior gave {short_repr(given.pi_MXA[m].tolist())} for the goals of a state, and averages "
        f"{short_repr(given.mean_MHA[m].tolist())}; expected probabilities of the actions that each human has, finite, not "
        "negative and not all 0"
    )


@dataclass(frozen=True)
class Questions:
    """What a worker process is asked: states of a block, and which goals they have."""

    prior: AskedPrior
    world: World
    states: Sequence[State]
    has_NX: ByteArray


@dataclass(frozen=True)
class Answers:
    """What it found, and what that took."""

    given: GivenPolicies
    n_questions: int
    seconds: float


def answered(questions: Questions) -> Answers:
    """Ask a prior; this is what runs in a worker process."""
    asked = questions.prior
    if getattr(asked.prior, "world_model", questions) is None:  # which priors lose on the way
        asked.prior.set_world_model(questions.world)  # type: ignore[attr-defined]
    given = asked.ask_each(questions.states, questions.has_NX)
    return Answers(given, asked.n_questions, asked.seconds)
