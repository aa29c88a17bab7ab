"""``empo_bi.testing.check_world``: sound worlds of all kinds pass, and for each rule a world that breaks it is told how."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from accuracy.random_problems import DrawnWorld
from backward.test_worked_example import TwoHomogeneousSteps, TwoModelledSteps, TwoSteps, TwoTimedSteps
from dag.test_shared_python_worlds import NamedWalk
from planning_worlds import At, Patience, Places, Ring, step_of

import empo_bi
from empo_bi import ArrayWorld, WorldModel, load_world
from empo_bi.errors import InvalidWorldError
from empo_bi.testing import check_world

SHIPPED = empo_bi.worlds.available()


def lake() -> ArrayWorld:
    environment = gymnasium.make("FrozenLake-v1", is_slippery=True)
    return ArrayWorld.from_gymnasium(environment, max_steps=20, goals={"present": [15]})


def two_agents() -> ArrayWorld:
    rng = np.random.default_rng(0)
    matrices = rng.random((4, 9, 9))
    return ArrayWorld(
        list(matrices / matrices.sum(axis=2, keepdims=True)), max_steps=4, n_agents=2, goals={"a": [1], "all": range(9)}
    )


def drawn(seed: int) -> DrawnWorld:
    return DrawnWorld(np.random.default_rng(seed), max_steps=4)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_worlds_keep_the_contract_strictly(name: str) -> None:
    found = check_world(load_world(name, max_steps=4), n_states=12, strict=bool(load_world(name).human_agent_indices))
    assert found.n_states <= 12


@pytest.mark.parametrize(
    "make",
    [TwoSteps, TwoHomogeneousSteps, TwoTimedSteps, TwoModelledSteps, Ring, NamedWalk, lake, two_agents,
     lambda: Patience(4), *(partial(drawn, seed) for seed in range(6))],
)  # fmt: skip
def test_worlds_of_all_kinds_pass(make: Callable[[], Any]) -> None:
    found = check_world(make())
    assert "keeps the contract" in str(found)
    assert "asked twice" in found.findings["transitions"].text


def test_the_report_prints_well() -> None:
    found = check_world(Ring(), level_fct=step_of)
    assert str(found).splitlines()[:7] == [
        "a Python world, planning_worlds.Ring: keeps the contract (all 17 states looked at)",
        "  agents       3 agents with 2 actions; humans [0, 2], robots [1]",
        "  states       17 states, 7 of them terminal, all hashable",
        "  actions      wrong action profiles are accepted",
        "  transitions  136 questions, asked twice, in another order: the same answers",
        "  levels       as level_fct says; every successor is on a higher one",
        "  durations    1 each",
    ]
    assert len(found.notes) == 1
    assert "accepts action 2 (there are 0 to 1), action -1, 4 actions for 3 agents" in found.notes[0]


def test_the_sample_is_as_large_as_asked_and_goes_deep() -> None:
    found = check_world(load_world("asymmetric_freeing"), n_states=40)
    assert found.n_states == 40
    assert not found.is_complete
    assert "40 states of more" in str(found)
    assert "0 of them terminal" not in found.findings["states"].text


def test_many_profiles_are_sampled() -> None:
    class Crowd(Line):
        agents = tuple(range(12))

    assert "questions" in check_world(Crowd()).findings["transitions"].text


def test_arguments_are_checked() -> None:
    for n_states in (0, True, 2.5):
        with pytest.raises(ValueError, match="n_states="):
            check_world(Line(), n_states)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="is not a world: it has no transition_probabilities"):
        check_world(object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="level_fct"):
        check_world(Line(), level_fct=3)  # type: ignore[arg-type]


# --- worlds that break a rule -----------------------------------------------------------------------------------------


class Line:
    """A sound world: action 1 moves on, with a step counter."""

    agents: Any = ("human", "robot")
    action_space: Any = SimpleNamespace(n=2)
    human_agent_indices: Any = (0,)
    robot_agent_indices: Any = (1,)
    possible_goal_generator: Any = Places(0.5, 0.5)

    def initial_state(self) -> Any:
        return (0, 0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, k = state
        if len(actions) != len(self.agents) or not set(actions) <= {0, 1}:
            raise ValueError(f"actions {actions}")
        return None if step == 3 else [(0.25, (step + 1, k)), (0.75, (step + 1, actions[0]))]


class WithoutAgents(Line):
    agents = None


class WithoutActions(Line):
    action_space = SimpleNamespace(n=0)


class StrangeRole(Line):
    human_agent_indices = (5,)


class TwoRoles(Line):
    robot_agent_indices = (0,)


class MissingName(Line):
    action_names = ("wait",)


class Listed(Line):
    def initial_state(self) -> Any:
        return [0, 0]


class ListedLater(Line):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return [(1.0, [state[0] + 1, 0])]


class Negative(Line):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return [(1.5, (state[0] + 1, 0)), (-0.5, (state[0] + 1, 1))]


class Short(Line):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return [(0.5, (state[0] + 1, 0))]


class Rounded(Line):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if state[0] == 2 else [(0.3333333333, (state[0] + 1, k)) for k in range(3)]


class NoPairs(Line):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return 7


class HalfEnded(Line):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if actions[1] else super().transition_probabilities(state, actions)


class WrongEnd(Line):
    def is_terminal(self, state: Any) -> bool:
        return bool(state[0] >= 2)


class Moody(Line):
    def __init__(self) -> None:
        self._mood = itertools.count()

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if state[0] == 3 else [(1.0, (state[0] + 1, next(self._mood)))]


class ManyStarts(Line):
    def __init__(self) -> None:
        self._starts = itertools.count()

    def initial_state(self) -> Any:
        return (0, next(self._starts))


class Bare:
    """Equal only to itself."""

    def __init__(self, step: int) -> None:
        self.step = step


class BareStates(Line):
    start = Bare(0)

    def initial_state(self) -> Any:
        return self.start

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if state.step == 3 else [(1.0, Bare(state.step + 1))]


class Hashed:
    """Equal to others of the same step, with another hash."""

    def __init__(self, step: int) -> None:
        self.step = step

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Hashed) and other.step == self.step

    def __hash__(self) -> int:
        return id(self)


class HashedStates(BareStates):
    start = Hashed(0)  # type: ignore[assignment]
    kept: list[Any] = []  # noqa: RUF012 (so that no two have the same id)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        self.kept.append(Hashed(state.step + 1))
        return None if state.step == 3 else [(1.0, self.kept[-1])]


class Counting(Line):
    def __init__(self) -> None:
        self.asked = 0

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        self.asked += 1
        return super().transition_probabilities(state, actions)


class Moved(Line):
    def __init__(self) -> None:
        self._state = (0, 0)

    def get_state(self) -> Any:
        return self._state

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        self._state = state
        return super().transition_probabilities(state, actions)


class Changing:
    """A state that changes when it is asked about."""

    def __init__(self, step: int, asked: int = 0) -> None:
        self.step, self.asked = step, asked

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Changing) and other.step == self.step

    def __hash__(self) -> int:
        return hash((self.step, self.asked))


class ChangedStates(Line):
    def initial_state(self) -> Any:
        return Changing(0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        state.asked += 1
        return None if state.step == 3 else [(1.0, Changing(state.step + 1))]


class Cycle(Line):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return [(1.0, (0, actions[0]))]


class Stepless(Line):
    time_homogeneous = True

    def initial_state(self) -> Any:
        return "start"

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if state == "end" else [(1.0, "end")]


class Leaping(Line):
    time_homogeneous = True

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if state[0] >= 4 else [(1.0, (state[0] + 2, 0))]


class Breaking(Line):
    """Promises that the step plays no part."""

    time_homogeneous = True

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if state[0] == 4 else [(1.0, (state[0] + 1, state[0] // 2))]


class FewDurations(Line):
    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> Any:
        return [1.0]


class PastDurations(Line):
    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> Any:
        return [-1.0 for _ in transitions]


class MoodyDurations(Line):
    mood = itertools.count()

    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> Any:
        return [float(next(self.mood)) for _ in transitions]


class OnlyEncodes(Line):
    def encode_state(self, state: Any) -> Any:
        return list(state)


class Forgetful(Line):
    def encode_state(self, state: Any) -> Any:
        return state[0]

    def decode_state(self, value: Any) -> Any:
        return (value, 0)


class Unwritable(Line):
    def encode_state(self, state: Any) -> Any:
        return object()

    def decode_state(self, value: Any) -> Any:
        return value


class Wished(Line):
    """With a generator of its own."""

    def __init__(self) -> None:
        self.possible_goal_generator = self

    def generate(self, state: Any, human: int) -> Iterator[Any]:
        yield self.goal(), 1.0

    def goal(self) -> Any:
        return At(0)


class NoGenerator(Line):
    possible_goal_generator = "home"


class NoWeights(Wished):
    def generate(self, state: Any, human: int) -> Any:
        return [At(0)]


class NegativeWeight(Wished):
    def generate(self, state: Any, human: int) -> Any:
        return [(At(0), -1.0)]


class NoGoal(Wished):
    def goal(self) -> Any:
        return "home"


@dataclass
class Unhashable:
    place: int = 0

    def is_achieved(self, state: Any) -> bool:
        return bool(state[1] == self.place)


class UnhashableGoals(Wished):
    def goal(self) -> Any:
        return Unhashable()


class OnlyItself:
    def is_achieved(self, state: Any) -> bool:
        return True


class GoalsOfIdentity(Wished):
    def goal(self) -> Any:
        return OnlyItself()


class OddHash(OnlyItself):
    numbers = itertools.count()

    def __init__(self) -> None:
        self.number = next(self.numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OddHash)

    def __hash__(self) -> int:
        return self.number


class OddlyHashedGoals(Wished):
    def goal(self) -> Any:
        return OddHash()


@dataclass(frozen=True)
class Says:
    answers: Any

    def is_achieved(self, state: Any) -> Any:
        return next(self.answers)


class Halfway(Wished):
    says = Says(itertools.repeat(0.5))

    def goal(self) -> Any:
        return self.says


class Wavering(Halfway):
    says = Says(itertools.cycle([True, False]))


BROKEN: dict[type, str] = {
    WithoutAgents: r"does not say how many agents and actions there are.*give it a list of agents",
    WithoutActions: r"2 agents with 0 actions; expected at least one action",
    StrangeRole: r"there is no agent 5; this world has 0 to 1",
    TwoRoles: r"agent 0 is both human and robot",
    MissingName: r"action_names=\('wait',\) for 2 actions; give a list with a name for each",
    Listed: r"the initial state is not hashable: \[0, 0\].*use tuples",
    ListedLater: r"a successor of \(0, 0\) under profile \[0, 0\] is not hashable",
    Negative: r"has probabilities \[1.5, -0.5\]; they have to be 0 or more",
    Short: r"the probabilities sum to 0.5, not to 1",
    Rounded: r"off by 1.0e-10; expected 1 within 1e-12: do not round them",
    NoPairs: r"returned 7; expected a list of \(probability, successor\) pairs",
    HalfEnded: r"has no transitions in .* although others have; a state is terminal for all profiles or for none",
    WrongEnd: r"is_terminal\(\(2, .*\)\) is True, but transition_probabilities returns .*a state is terminal exactly where",
    Moody: r"said .* at first and .* when asked again; the same question has to have the same answer",
    ManyStarts: r"the initial state is \(0, 0\) at first and \(0, 1\) when asked again",
    BareStates: r"when asked again; states of the class Bare are equal only to themselves: give it __eq__ and __hash__",
    HashedStates: r"when asked again; equal states have to have the same hash",
    Counting: r"asking changed asked of the world, by which stores tell it from others.*content_key",
    Moved: r"asking moved the world from \(0, 0\) to .*leave the present state as it is",
    ChangedStates: r"being asked about .* changed that state; leave states as they are",
    Cycle: r"the world has a cycle through \(0, .\); time has to move forward: put a step counter",
    Stepless: r"declares time_homogeneous, but its initial state is 'start'",
    Leaping: r"\(2, 0\) follows \(0, 0\) under profile .*begins with the next step, 1",
    Breaking: r"has other successors than the same state at an earlier step",
    FewDurations: r"transition_durations of .*: 1 durations for 2 transitions; give one each",
    PastDurations: r"durations are finite and not negative",
    MoodyDurations: r"when asked again; give the same each time",
    OnlyEncodes: r"has only one of encode_state and decode_state; a store needs both",
    Forgetful: r"is written as .* by encode_state, of which decode_state makes",
    Unwritable: r"which JSON cannot keep",
    NoGenerator: r"possible_goal_generator='home' has no method generate",
    NoWeights: r"expected \(goal, weight\) pairs",
    NegativeWeight: r"has weight -1.0; weights are finite and not negative",
    NoGoal: r"'home' has no is_achieved\(state\)",
    UnhashableGoals: r"is not hashable .*give its class __hash__ beside __eq__",
    GoalsOfIdentity: r"goals are compared by == and hash: give their class __eq__ and __hash__",
    OddlyHashedGoals: r"but has another hash; let __hash__ look at what __eq__ looks at",
    Halfway: r"is_achieved\(\(0, 0\)\) is 0.5; expected True or False",
    Wavering: r"is True at first and False when asked again; it depends on the state alone",
}


def test_the_world_that_the_broken_ones_derive_from_is_sound() -> None:
    assert check_world(Line(), strict=True).notes == []


@pytest.mark.parametrize("kind", list(BROKEN), ids=lambda kind: kind.__name__)
def test_a_broken_rule_is_told(kind: type) -> None:
    with pytest.raises(InvalidWorldError, match=BROKEN[kind]):
        check_world(kind())


@pytest.mark.parametrize("levels", [lambda state: -state[0], lambda state: 0.5, lambda state: "one"])
def test_levels_that_do_not_rise_are_told(levels: Any) -> None:
    with pytest.raises(InvalidWorldError, match=r"level_fct (has to give every successor a higher level|gives)"):
        check_world(Line(), level_fct=levels)


def test_packed_states_that_do_not_come_back_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    world = lake()
    monkeypatch.setattr(ArrayWorld, "decode", lambda self, steps, keys: [(0, 0)] * len(keys))
    with pytest.raises(InvalidWorldError, match="do not come back from encode and decode"):
        check_world(world)


def test_an_exception_of_the_world_comes_with_the_question() -> None:
    class Failing(Line):
        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            raise KeyError("oops")

    with pytest.raises(KeyError) as caught:
        check_world(Failing())
    assert "transition_probabilities was asked about state (0, 0), profile [0, 0]" in caught.value.__notes__[0]


class Spot(NamedTuple):
    step: int
    places: frozenset[int] = frozenset()


class Sets(Line):
    """States that JSON cannot keep: fine in memory."""

    def initial_state(self) -> Any:
        return Spot(0)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        if len(actions) != 2 or not set(actions) <= {0, 1}:
            raise ValueError(f"actions {actions}")
        return None if state.step == 2 else [(1.0, Spot(state.step + 1, state.places | {actions[0]}))]


class Lax(Line):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if state[0] == 3 else [(1.0, (state[0] + 1, 0))]


class Goalless(Line):
    possible_goal_generator = None


class Endless(Line):
    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        super().transition_probabilities((0, 0), actions)
        return [(1.0, (state[0] + 1, 0))]


class Powerless(Line):
    possible_goal_generator = Places()


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        (Sets, "only in memory: .* is a frozenset, which JSON cannot keep"),
        (Lax, "accepts action 2 .* raise an error, or a slip in a caller goes unnoticed"),
        (Goalless, "no humans with goals"),
        (Endless, "no terminal state was met; does the world ever end"),
        (Powerless, "a human has no goal of positive weight"),
    ],
)
def test_what_is_allowed_but_odd_is_a_note_and_strictly_an_error(kind: type, note: str) -> None:
    world = kind()
    if kind is Sets:
        world.possible_goal_generator = None
        world.human_agent_indices = ()
        world.robot_agent_indices = ()
    assert any(np.char.find(found, note.split(" .*")[0]) >= 0 for found in check_world(world).notes)
    with pytest.raises(InvalidWorldError, match=note + r"[\s\S]*strict=True"):
        check_world(world, strict=True)


def test_a_world_that_remembers_answers_passes_with_a_content_key() -> None:
    class Remembering(Counting):
        content_key = "remembering"

    assert check_world(Remembering()).n_states > 1


def test_asking_again_looks_at_the_same_states() -> None:
    class Watched(WorldModel):
        agents = ("human",)
        action_space: Any = SimpleNamespace(n=3)  # type: ignore[assignment]

        def __init__(self) -> None:
            self.asked: list[Any] = []
            self.content_key = "watched"

        def get_state(self) -> Any:
            return (0, 0)

        def set_state(self, state: Any) -> None: ...

        def reset(self, **_: Any) -> Any: ...

        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            self.asked.append((state, tuple(actions)))
            return None if state[0] == 5 else [(1.0, (state[0] + 1, (state[1] * 3 + actions[0]) % 17))]

    first, again, other = Watched(), Watched(), Watched()
    check_world(first, 20, seed=1), check_world(again, 20, seed=1), check_world(other, 20, seed=2)
    assert first.asked == again.asked
    assert first.asked != other.asked
