"""Users' functions are asked by one thread, one question after the other, however many workers compute."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from backward.test_one_sweep import assert_same
from planning_worlds import At, Places, Ring

from empo_bi import HumanPolicyPrior, Params, Solution, solve
from empo_bi.sweep import phases

PARAMS = Params(beta_h=3.0, gamma_h=0.9, gamma_r=0.8, zeta=1.5)
PHASE_2 = ("ve", "xh", "qr", "vr")


class Asked:
    """Counts questions by thread, and notices one that comes before the last one was answered."""

    def __init__(self) -> None:
        self.by_thread: dict[int, int] = {}
        self.was_interrupted = False
        self._busy = threading.Lock()

    def __call__(self) -> None:
        me = threading.get_ident()
        self.by_thread[me] = self.by_thread.get(me, 0) + 1
        if not self._busy.acquire(blocking=False):
            self.was_interrupted = True
            return
        time.sleep(1e-4)  # time for another thread to come along
        self._busy.release()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """With blocks of one state, so that a level of four has enough of them for several threads."""
    monkeypatch.setattr("empo_bi.sweep.memory_model.BLOCK_STATES", 1)
    return Asked()


@pytest.fixture
def computing(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Threads that compute phase 2."""
    found: set[int] = set()
    plain = phases.RobotPhase.run

    def run(self: Any, work: Any, *arguments: Any) -> None:
        found.add(threading.get_ident())
        plain(self, work, *arguments)

    monkeypatch.setattr(phases.RobotPhase, "run", run)
    return found


# --- what users bring -------------------------------------------------------------------------------------------------


class SlowRing(Ring):
    def __init__(self, asked: Asked) -> None:
        super().__init__(6)
        self.asked = asked

    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> list[float]:
        self.asked()
        return [float(after[0] - state[0]) for _, after in transitions]


class Doubtful:
    """The others mostly do as oneself."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def __call__(self, state: Any, human: int, action: int) -> list[tuple[float, list[int]]]:
        self.asked()
        return [(0.75, [action] * 3), (0.25, [1 - action] * 3)]


class Together:
    """A prior that tells what the humans do together."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def profile_distribution(self, state: Any) -> list[tuple[float, list[int]]]:
        self.asked()
        return [(0.5, [0, 0]), (0.3, [1, 0]), (0.2, [1, 1])]

    def profile_distribution_with_fixed_goal(self, state: Any, human: int, goal: Any) -> list[tuple[float, list[int]]]:
        self.asked()
        return [(0.6, [0, 0]), (0.4, [state[1] % 2, 1])]


class EachForItself(HumanPolicyPrior):
    """A prior of the base class, which is asked for each human."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(None, [0, 2])
        self.asked = asked

    def __call__(self, state: Any, human_agent_index: int, possible_goal: Any = None) -> Any:
        self.asked()
        return [0.25, 0.75] if possible_goal is None else [0.5, 0.5]


class SomePlaces(Places):
    """Goals that differ from state to state; the present place is always one of them."""

    def __init__(self, asked: Asked) -> None:
        super().__init__(0.4, 0.3, 0.2, 0.6)
        self.asked = asked

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[At, float]]:
        self.asked()
        yield from list(super().generate(state, human_agent_index))[: state[1] + 1]


def function(asked: Asked) -> Callable[..., Any]:
    def prior(state: Any, human: int, goal: Any) -> list[float]:
        asked()
        return [0.5, 0.5] if goal is None else [0.25, 0.75]

    return prior


USERS: dict[str, Callable[[Asked], dict[str, Any]]] = {
    "durations": lambda asked: {"world": SlowRing(asked)},
    "a belief": lambda asked: {"params": PARAMS.replace(believed_others_policy=Doubtful(asked))},
    "a prior of another maker": lambda asked: {"human_policy_prior": Together(asked)},
    "a prior of the base class": lambda asked: {"human_policy_prior": EachForItself(asked)},
    "a function as a prior": lambda asked: {"human_policy_prior": function(asked)},
    "durations, a belief and goals": lambda asked: {
        "world": SlowRing(asked),
        "params": [PARAMS, PARAMS.replace(believed_others_policy=Doubtful(asked))],
        "possible_goal_generator": SomePlaces(asked),
    },
}


def solved(user: dict[str, Any], workers: int) -> list[Solution]:
    options = {"world": Ring(6), "params": PARAMS, **user}
    found = solve(options.pop("world"), options.pop("params"), workers=workers, progress=False, **options)
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("what", USERS)
def test_whatever_users_bring_is_asked_by_the_thread_that_solves(what: str, asked: Asked, computing: set[int]) -> None:
    expected = solved(USERS[what](asked), workers=1)
    (n_questions,) = asked.by_thread.values()
    asked.by_thread.clear()
    for found, alone in zip(solved(USERS[what](asked), workers=2), expected, strict=True):
        assert_same(found, alone, PHASE_2)
    assert asked.by_thread == {threading.get_ident(): n_questions}
    assert not asked.was_interrupted
    assert computing == {threading.get_ident()}


def test_where_nothing_is_asked_other_threads_compute_the_same_blocks(asked: Asked, computing: set[int]) -> None:
    """Or there would be nothing to see above."""
    expected = solved({}, workers=1)
    assert computing == {threading.get_ident()}
    computing.clear()
    assert_same(solved({}, workers=2)[0], expected[0])
    assert computing - {threading.get_ident()}
