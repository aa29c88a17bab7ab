"""Environments that are asked state by state are asked once, whatever they remember, and never taken for another world."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from counting_functions import asked, note
from multigrid_standin import StandIn

from empo_bi import compute_human_policy_prior, compute_robot_policy, enumerate_dag, load_world
from empo_bi.dag.python_objects import as_python_objects
from empo_bi.goals import PossibleGoal, PossibleGoalGenerator, TabularGoalGenerator
from empo_bi.world.text import to_mapping

HUMANS, ROBOTS, STEPS = [0, 1], [2], 2


class Remembering(StandIn):
    """Leaves traces of every kind when it is asked, stepped or drawn, and ``reset`` removes none of them."""

    empo_bi_translate = False

    def __init__(self, mapping: Any) -> None:
        self._n_asked, self._memo, self._last, self._frames = 0, dict[Any, Any](), list[Any](), list[Any]()
        self._statistics = {"asked": 0, "slips": 0.25}  # a number that matters beside one that does not
        self.last_actions: Any = None
        super().__init__(mapping)

    def transition_probabilities(self, state: Any, actions: Sequence[int]) -> Any:
        self._n_asked += 1
        self._statistics["asked"] += 1
        self._last, self.last_actions = [state, *actions], tuple(actions)
        key = state, tuple(actions)
        if key not in self._memo:
            self._memo[key] = super().transition_probabilities(state, actions)
        else:
            StandIn.calls["transitions"] += 1
        return self._memo[key]

    def get_dag(self, return_probabilities: bool = False, quiet: bool = False) -> Any:
        raise AssertionError("asked for all states once more")

    def step(self, actions: Sequence[int]) -> None:
        self._history = [*getattr(self, "_history", []), tuple(actions)]
        self.set_state(self._oracle.transitions(self._state, actions).popitem()[0])

    def render(self, mode: str = "human") -> None:
        self._frames.append(mode)
        self._window = (n for n in range(3))  # which nobody can pickle or copy


def environment(name: str = "asymmetric_freeing", steps: int = STEPS) -> Remembering:
    mapping: dict[str, Any] = to_mapping(load_world(name, max_steps=steps).world_spec)
    mapping["possible_goals"] = [goal["goal"] for goal in mapping["possible_goals"]]
    return Remembering(mapping)


def both_phases(env: Any, beta: float = 5.0, **switches: Any) -> tuple[Any, ...]:
    prior = compute_human_policy_prior(env, HUMANS, beta_h=beta, gamma_h=0.9, quiet=True, **switches)
    found = compute_robot_policy(
        env, HUMANS, ROBOTS, human_policy_prior=prior, beta_r=beta, gamma_h=0.9, gamma_r=0.9, return_values=True,
        return_markov_chain=True, quiet=True, **switches,
    )  # fmt: skip
    return prior, *found


@pytest.fixture(autouse=True)
def _count_from_zero() -> None:
    StandIn.calls.clear()


@pytest.fixture(scope="module")
def one_enumeration() -> int:
    StandIn.calls.clear()
    enumerate_dag(environment(), progress=False)
    return StandIn.calls["transitions"]


@pytest.mark.parametrize(
    "switches", [{}, {"level_fct": lambda state: state[0]}, {"use_disk_slicing": True}], ids=["plain", "levels", "disk"]
)
def test_two_phases_and_a_sweep_take_one_enumeration(switches: dict[str, Any], one_enumeration: int) -> None:
    env = environment()
    for beta in (1.0, 5.0, 10.0):
        prior, _, Vr, *_ = both_phases(env, beta, **switches)
    assert StandIn.calls["transitions"] <= one_enumeration
    expected = both_phases(environment(), 10.0)
    assert Vr == expected[2].copy()
    state = env._oracle.initial_state()
    assert prior(state, 0).tolist() == expected[0](state, 0).tolist()


def test_a_sweep_of_phase_2_alone_takes_one_enumeration(one_enumeration: int) -> None:
    env = environment()
    for beta in (1.0, 5.0):
        compute_robot_policy(env, HUMANS, ROBOTS, beta_r=beta, quiet=True)
    assert StandIn.calls["transitions"] <= one_enumeration


def test_a_level_function_written_in_the_loop_does_no_harm_and_another_one_is_another_dag(one_enumeration: int) -> None:
    env = environment()
    for _ in range(2):
        compute_human_policy_prior(env, HUMANS, level_fct=lambda state: state[0], quiet=True)
    assert StandIn.calls["transitions"] <= one_enumeration
    prior = compute_human_policy_prior(env, HUMANS, level_fct=lambda state: 2 * state[0], quiet=True)
    assert prior.solution.dag.level_values == [0, 2, 4]


def test_being_stepped_and_drawn_between_two_calls_takes_some_questions_and_no_enumeration(one_enumeration: int) -> None:
    env = environment()
    both_phases(env)
    env.reset()
    env.step([3, 3, 3])
    StandIn.calls.clear()
    both_phases(env)
    assert StandIn.calls["transitions"] <= 1_000 < one_enumeration / 5  # of a copy: does it read what was changed?
    env.render("rgb_array")
    del env._window
    both_phases(env)
    assert StandIn.calls["transitions"] <= 3_000


def test_after_solving_nobody_is_asked_and_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    env = environment()
    prior, policy, Vr, Vhe, chain = both_phases(env)
    state = env._oracle.initial_state()
    before = dict(StandIn.calls)
    assert prior(state, 0).sum() == pytest.approx(1)
    for table in (prior.values, policy.values, Vr, Vhe):
        assert pickle.loads(pickle.dumps(table)).keys() == table.copy().keys()
    assert sum(chain[0].values()) == pytest.approx(1)
    assert len(pickle.loads(pickle.dumps(chain))) == len(Vr)
    assert pickle.loads(pickle.dumps(policy))(state) == policy(state)
    pickle.dumps(prior)
    goal = next(iter(prior.values[state][0]))
    assert prior(state, 0, goal).sum() == pytest.approx(1)
    assert StandIn.calls["transitions"] == before["transitions"]
    assert capsys.readouterr() == ("", "")


# --- never taken for another world ------------------------------------------------------------------------------------


def more_steps(env: Remembering) -> None:
    env.max_steps += 1
    env._memo.clear()


def other_chance(env: Remembering) -> None:
    env._oracle.layout.stumble_probability = Fraction(1, 10)
    env._memo.clear()


def chance_beside_a_counter(env: Remembering) -> None:
    env._statistics["slips"] = 0.5


def other_map(env: Remembering) -> None:
    other = environment("ice_rink")
    env._rules, env._codes, env.width, env.height = other._rules, other._codes, other.width, other.height
    env._memo.clear()


def other_rules(env: Remembering) -> None:
    env.__class__ = type("Other", (Remembering,), {"transition_durations": lambda *_: [2.0]})


@pytest.mark.parametrize(
    ("change", "name"),
    [(more_steps, "asymmetric_freeing"), (other_chance, "ice_rink"), (chance_beside_a_counter, "ice_rink"),
     (other_map, "asymmetric_freeing"), (other_rules, "ice_rink")],
)  # fmt: skip
def test_a_world_that_somebody_changed_is_enumerated_anew(change: Callable[[Remembering], None], name: str) -> None:
    env = environment(name)
    humans = env.human_agent_indices
    first = compute_human_policy_prior(env, humans, quiet=True).solution.dag
    assert compute_human_policy_prior(env, humans, quiet=True).solution.dag is first
    change(env)
    again = compute_human_policy_prior(env, env._oracle.humans, quiet=True).solution.dag
    assert again is not first
    assert again.n_states == enumerate_dag(env, progress=False).n_states


def test_the_values_of_a_changed_world_are_those_of_a_new_object() -> None:
    env, new = environment("ice_rink"), environment("ice_rink")
    state = env._oracle.initial_state()
    roles = env.human_agent_indices, env.robot_agent_indices
    before = compute_robot_policy(env, *roles, return_values=True, quiet=True)[1][state]
    for one in (env, new):
        other_chance(one)
    found, expected = (compute_robot_policy(one, *roles, return_values=True, quiet=True)[1][state] for one in (env, new))
    assert found == expected != before


class Path:
    """A small world with a rule that somebody may replace, and attributes that few questions read."""

    agents: ClassVar[list[int]] = [0, 1]
    action_space = SimpleNamespace(n=2)
    human_agent_indices: ClassVar[list[int]] = [0]
    robot_agent_indices: ClassVar[list[int]] = [1]

    def __init__(self) -> None:
        self.rule: Any = None
        self._rare, self._n_asked = 0.5, 0
        self.possible_goal_generator = Places()

    def initial_state(self) -> tuple[int, int]:
        return 0, 0

    def transition_probabilities(self, state: tuple[int, int], actions: Sequence[int]) -> Any:
        self._n_asked += 1
        step, place = state
        if step == 4:
            return None
        p = 0.5 if self.rule is None else self.rule(state)
        if (step, place, *actions) == (3, 2, 1, 1):
            p = self._rare
        return [(p, (step + 1, (place + 1 + actions[1]) % 3)), (1 - p, (step + 1, place))]


class Lasting(Path):
    _scale = 1.0

    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> list[float]:
        return [self._scale for _ in transitions]


class Places:
    def generate(self, state: Any, human: int) -> Any:
        return [(Place(k), 1 / 3) for k in range(3)]


@dataclass(frozen=True)
class Place:
    number: int

    def is_achieved(self, state: Any) -> bool:
        return bool(state[1] == self.number)


def value_of(world: Path) -> float:
    found = compute_robot_policy(
        world, [0], [1], gamma_h=0.9, gamma_r=0.9, return_values=True, quiet=True,
    )  # fmt: skip
    return float(found[1][0, 0])


def with_closure(p: float) -> Callable[[Any], float]:
    return lambda state: p


CHANCE = {"p": 0.1}


def test_rules_made_by_the_same_function_are_different_rules() -> None:
    world, values = Path(), []
    for p in (0.1, 0.9, 0.3):
        world.rule = None  # so that the next function takes the address of the last
        world.rule = with_closure(p)
        new = Path()
        new.rule = with_closure(p)
        values.append(value_of(world))
        assert values[-1] == value_of(new)
    assert len({*values}) == 3


def test_a_rule_whose_global_variable_changed_is_another_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Path()
    world.rule = lambda state: CHANCE["p"]
    before = value_of(world)
    n_asked = world._n_asked
    assert value_of(world) == before
    assert world._n_asked == n_asked
    monkeypatch.setitem(CHANCE, "p", 0.9)
    new = Path()
    new.rule = with_closure(0.9)
    assert value_of(world) == value_of(new) != before


def test_rules_made_again_or_that_know_their_world_do_no_harm() -> None:
    world = Path()
    world.rule = lambda state: 0.25 if world.agents else 0.5
    before, n_asked = value_of(world), world._n_asked
    assert value_of(world) == before
    world.rules_beside = with_closure(0.5)  # type: ignore[attr-defined]
    value_of(world)
    n_asked_then = world._n_asked
    world.rules_beside = with_closure(0.5)  # type: ignore[attr-defined]
    value_of(world)
    assert (world._n_asked, n_asked_then) == (2 * n_asked, 2 * n_asked)


@pytest.mark.parametrize(("kind", "name"), [(Path, "_rare"), (Lasting, "_scale")])
def test_a_private_attribute_that_is_read_rarely_makes_another_world(kind: type[Path], name: str) -> None:
    world, new = kind(), kind()
    before = value_of(world)
    for one in (world, new):
        setattr(one, name, 0.99)
    assert value_of(world) == value_of(new) != before


def test_durations_are_asked_in_each_call_and_states_are_not_enumerated_again() -> None:
    world = Lasting()
    value_of(world)
    both, dag = world._n_asked, enumerate_dag(Lasting(), progress=False)
    n_entries = 4 * sum(dag.level_sizes[:-1])
    value_of(world)
    assert world._n_asked - both == n_entries  # about what goes on, with four profiles
    assert both == n_entries + 4 * dag.n_states  # which also found the states


def test_what_has_no_digest_is_the_same_as_long_as_it_is_not_replaced() -> None:
    world = Path()
    world.window = (n for n in range(3))  # type: ignore[attr-defined]
    before, n_asked = value_of(world), world._n_asked
    assert value_of(world) == before
    assert world._n_asked == n_asked
    world.window = (n for n in range(3))  # type: ignore[attr-defined]
    value_of(world)
    assert world._n_asked == 2 * n_asked


# --- what get_dag left ------------------------------------------------------------------------------------------------


def with_dag_cache(name: str = "asymmetric_freeing") -> Remembering:
    """As after ``env.get_dag(return_probabilities=True)``, with plain lists."""
    env = environment(name)
    env._dag_cache = as_python_objects(enumerate_dag(env, precision="float64", progress=False))
    StandIn.calls.clear()
    return env


def test_what_get_dag_left_is_used_after_some_questions(one_enumeration: int) -> None:
    env = with_dag_cache()
    prior, policy, Vr, _, chain = both_phases(env)
    assert 300 <= StandIn.calls["transitions"] < one_enumeration / 10
    expected = both_phases(environment())
    assert Vr == expected[2].copy()
    assert {s: dict(p) for s, p in policy.values.items()} == {s: dict(p) for s, p in expected[1].values.items()}
    assert list(chain) == list(expected[4])
    assert prior.solution.dag.world is env


@pytest.mark.parametrize("change", [more_steps, other_chance, other_map])
def test_what_get_dag_left_is_not_used_for_a_world_that_was_changed_since(
    change: Callable[[Remembering], None], capsys: pytest.CaptureFixture[str]
) -> None:
    env = with_dag_cache("ice_rink" if change is other_chance else "asymmetric_freeing")
    change(env)
    prior = compute_human_policy_prior(env, env._oracle.humans)
    assert "its _dag_cache is not used, since it is of another world" in capsys.readouterr().err
    assert prior.solution.dag.n_states == enumerate_dag(env, progress=False).n_states


@pytest.mark.parametrize(
    "cache", [None, (), ([], {}, []), ([], {}, [], []), "text", ([1], {1: 0}, [[]], [[((0,), [], [])]])]
)
def test_what_is_no_dag_is_not_taken_for_one(cache: Any, one_enumeration: int) -> None:
    env = environment()
    env._dag_cache = cache
    compute_human_policy_prior(env, HUMANS, quiet=True)
    assert StandIn.calls["transitions"] <= one_enumeration + 1


# --- goals that are not compiled --------------------------------------------------------------------------------------


class Facing(PossibleGoal):
    """To look into a direction, on a cell: an idea of its own of being achieved."""

    def __init__(self, env: Any, human: int, direction: int) -> None:
        super().__init__(env)
        self.human, self.direction = human, direction

    def is_achieved(self, state: Any) -> int:
        note("facing")
        return int(state[1][self.human][2] == self.direction)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Facing) and (self.human, self.direction) == (other.human, other.direction)

    def __hash__(self) -> int:
        return hash((self.human, self.direction))


class AllDirections(PossibleGoalGenerator):
    """Asked about every state."""

    def __init__(self, env: Any, weight: float = 0.25) -> None:
        super().__init__(env)
        self.weight = weight

    def generate(self, state: Any, human_agent_index: int) -> Any:
        note("generate")
        for direction in range(4):
            yield Facing(self.env, human_agent_index, direction), self.weight


@pytest.mark.parametrize("is_translated", [True, False])
@pytest.mark.parametrize("is_fixed", [True, False])
def test_goals_are_asked_once_for_all_calls_with_an_object(*, is_translated: bool, is_fixed: bool) -> None:
    env = environment(steps=4)
    env.empo_bi_translate = is_translated
    goals = [Facing(env, 0, direction) for direction in range(4)]
    generator: Any = TabularGoalGenerator(goals) if is_fixed else AllDirections(env)

    def solve_both(beta: float) -> Any:
        prior = compute_human_policy_prior(env, HUMANS, generator, beta_h=beta, gamma_h=0.9, quiet=True)
        _, Vr, _ = compute_robot_policy(
            env, HUMANS, ROBOTS, generator, human_policy_prior=prior, beta_r=beta, gamma_h=0.9, gamma_r=0.9,
            return_values=True, quiet=True,
        )  # fmt: skip
        return prior, Vr

    asked.clear()
    prior, Vr = solve_both(1.0)
    n_goals = 8
    assert asked["facing"] == n_goals * len(Vr)
    before = dict(asked)
    for beta in (2.0, 3.0):
        prior, Vr = solve_both(beta)
    assert len(prior.values) < len(Vr)  # which reads all levels
    assert asked == before
    if not is_fixed:  # another weight is another generator
        generator.weight = 0.5
        _, other = solve_both(3.0)
        assert asked["facing"] > before["facing"]
        assert other != Vr


class Turned(Facing):
    """What counts as having achieved it stands on the environment."""

    def is_achieved(self, state: Any) -> int:
        return int(state[1][self.human][2] == (self.direction + self.env.turns) % 4)


@pytest.mark.parametrize("is_translated", [True, False])
def test_goals_are_asked_again_if_the_environment_that_they_know_has_changed(*, is_translated: bool) -> None:
    env: Any = environment()
    env.empo_bi_translate, env.turns = is_translated, 0
    see_that_changes_count(env)


def test_goals_are_asked_again_if_something_on_the_gridworld_that_they_know_has_changed() -> None:
    world: Any = load_world("asymmetric_freeing", max_steps=STEPS)
    world.turns = 0
    see_that_changes_count(world)


def see_that_changes_count(env: Any) -> None:
    generator = TabularGoalGenerator([Turned(env, 0, 0), Turned(env, 0, 1)])

    def values() -> Any:
        return compute_human_policy_prior(env, [0], generator, return_Vh=True, quiet=True)[1].copy()

    before = values()
    env.turns = 1
    after = values()
    env.turns = 0
    assert before == values() != after


class ItsOwn(PossibleGoal):
    """Equal to itself only."""

    def __init__(self, human: int) -> None:
        super().__init__(None)
        self.human = human

    def is_achieved(self, state: Any) -> int:
        return int(state[1][self.human][2] == 0)

    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Listed(PossibleGoalGenerator):
    def __init__(self) -> None:
        super().__init__(None)
        self.goals = [ItsOwn(human) for human in range(2)]

    def generate(self, state: Any, human_agent_index: int) -> Any:
        yield self.goals[human_agent_index], 1.0


def test_tables_have_the_goals_of_this_call_not_equal_ones_of_the_last() -> None:
    env = environment()
    for generator in (Listed(), Listed()):
        prior = compute_human_policy_prior(env, HUMANS, generator, quiet=True)
        assert [*prior(env.get_state(), 1, generator.goals[1]).shape] == [4]
