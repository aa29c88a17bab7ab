"""Environments of EMPO: what is translated is the same world, what is not is refused with the reason, nothing is changed."""

from __future__ import annotations

import copy
import json
import pickle
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from multigrid_standin import AskedStateByState, StandIn, StandInGoal
from oracle.gridworld import parse
from random_worlds import random_worlds

import empo_bi
from empo_bi import (
    HumanPolicyPrior,
    Params,
    TabularHumanPolicyPrior,
    compute_human_policy_prior,
    compute_robot_policy,
    enumerate_dag,
    from_multigrid,
    load_world,
    plan,
    solve,
)
from empo_bi.errors import TranslationError
from empo_bi.world.text import to_mapping

BASICS = ["basics/first_steps", "asymmetric_freeing", "ice_rink"]


def file_of(name: str, steps: int) -> dict[str, Any]:
    """A shipped world as a mapping, without weights, which the environments do not have."""
    mapping: dict[str, Any] = to_mapping(load_world(name, max_steps=steps).world_spec)
    if "possible_goals" in mapping:
        mapping["possible_goals"] = [goal["goal"] for goal in mapping["possible_goals"]]
    return mapping


def freeing(steps: int = 3) -> StandIn:
    return StandIn(file_of("asymmetric_freeing", steps))


@pytest.fixture(autouse=True)
def _count_from_zero() -> None:
    StandIn.calls.clear()


# --- the same world ---------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::empo_bi.errors.WorldWarning")
@settings(max_examples=60, deadline=None)
@given(random_worlds(max_steps=4))
def test_worlds_with_all_kinds_of_objects_are_translated(mapping: dict[str, Any]) -> None:
    env = StandIn(mapping)
    world = from_multigrid(env)
    ours, theirs = load_world(mapping), parse(mapping)
    assert world.initial_state() == theirs.initial_state()
    assert empo_bi.dag.world_fingerprint.identity_of(world) == empo_bi.dag.world_fingerprint.identity_of(ours)
    assert world.translated_from is env


@pytest.mark.parametrize("name", BASICS)
def test_tables_are_the_same_translated_and_not(name: str) -> None:
    env = StandIn(file_of(name, 3))
    params = Params(zeta=2, beta_r=3)
    there = solve(AskedStateByState(env), params, precision="float64", progress=False)
    here = solve(env, params, precision="float64", progress=False)
    assert here.dag.world.translated_from is env
    assert there.dag.world.__class__ is AskedStateByState
    tables = [(dict(there.Vr), dict(here.Vr))]
    assert tables[0][0].keys() == tables[0][1].keys()
    for state, value in tables[0][0].items():
        assert here.Vr[state] == pytest.approx(value, rel=1e-9)
        assert dict(here.Vh.get(state, {})).keys() == dict(there.Vh.get(state, {})).keys()
        for human, goals in dict(there.Vh.get(state, {})).items():
            assert dict(here.Vh[state][human]) == pytest.approx(dict(goals), rel=1e-9)


def test_goals_of_users_stay_the_keys() -> None:
    env = freeing()
    prior, values = compute_human_policy_prior(env, [0, 1], return_Vh=True, quiet=True)
    state = env._oracle.initial_state()
    goals = [goal for goal, _ in env.possible_goal_generator.generate(state, 1)]
    assert list(prior.values[state][1]) == goals
    assert all(type(goal) is StandInGoal for goal in prior.values[state][1])
    assert np.asarray(prior(state, 1, goals[2])).sum() == pytest.approx(1)
    assert all(type(goal) is StandInGoal for table in values.values() for of in table.values() for goal in of)


def test_goals_that_mean_something_else_than_their_target_are_asked_everywhere() -> None:
    class Late(StandInGoal):
        def is_achieved(self, state: Any) -> int:
            return int(state[0] >= 2 and super().is_achieved(state))

    env = freeing()
    plain = solve(env, progress=False, phase_2=False)
    generate = type(env.possible_goal_generator).generate

    class Generator(type(env.possible_goal_generator)):  # type: ignore[misc]
        def generate(self, state: Any, human: int) -> Any:
            return ((Late(None, g.human_agent_index, g.target_rect, g.index), w) for g, w in generate(self, state, human))

    env.possible_goal_generator = Generator(env, env.possible_goal_generator.goal_coords)
    late = solve(env, progress=False, phase_2=False)
    expected = solve(AskedStateByState(env), progress=False, phase_2=False)
    for state, humans in expected.Vh.items():
        assert {human: dict(goals) for human, goals in late.Vh[state].items()} == {
            human: dict(goals) for human, goals in humans.items()
        }
    assert not np.array_equal(late.values.Vh_m[1], plain.values.Vh_m[1])


# --- nobody is asked needlessly ---------------------------------------------------------------------------------------


def test_two_phases_and_a_sweep_ask_the_environment_only_for_the_checks() -> None:
    env = freeing(5)
    for beta in (5.0, 7.0):
        prior = compute_human_policy_prior(env, [0, 1], beta_h=beta, quiet=True)
        policy = compute_robot_policy(env, [0, 1], [2], human_policy_prior=prior, quiet=True)
    assert StandIn.calls["transitions"] == 300 + 3 * 10
    before = Counter(StandIn.calls)
    state = env._oracle.initial_state()
    assert policy(state)
    prior(state, 0)
    assert StandIn.calls["transitions"] == before["transitions"]
    enumerate_dag(env, progress=False)
    plan(env, steps=3, progress=False)
    assert StandIn.calls["transitions"] <= before["transitions"] + 3 * 10


class WithBlueWalls(StandIn):
    """An environment of which nobody knows what it is."""

    def reset(self) -> None:
        super().reset()
        self._mobile_objects = []
        self.grid.get(0, 0).type = "blue wall"


def test_an_environment_that_cannot_be_translated_is_enumerated_once() -> None:
    env = WithBlueWalls(file_of("asymmetric_freeing", 3))
    prior = compute_human_policy_prior(env, [0, 1], gamma_h=0.9, quiet=True)
    n_states, n_profiles = prior.solution.dag.n_states, 4**3
    assert prior.solution.dag.world is env
    once = StandIn.calls["transitions"]
    assert once <= n_states * n_profiles
    policy = compute_robot_policy(env, [0, 1], [2], human_policy_prior=prior, gamma_h=0.9, gamma_r=0.9, quiet=True)
    assert policy(env._oracle.initial_state())
    prior(env._oracle.initial_state(), 0)
    assert StandIn.calls["transitions"] == once


def test_being_asked_stepped_and_reset_leaves_it_the_same_world() -> None:
    env = freeing()
    world = from_multigrid(env)
    env.transition_probabilities(env.get_state(), [3, 3, 3])
    env.set_state(world.transition_probabilities(world.initial_state(), [3, 3, 3])[0][1])
    assert from_multigrid(env) is world
    env.max_steps = 7
    other = from_multigrid(env)
    assert other is not world
    assert other.max_steps == 7


class Windy(StandIn):
    """Has a rule that no world file has, once ``wind`` is set."""

    wind = 0.0

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        found = super().transition_probabilities(state, actions)
        stays = super().transition_probabilities(state, [0] * len(actions))
        if not self.wind or found is None:
            return found
        return [((1 - self.wind) * p, s) for p, s in found] + [(self.wind * p, s) for p, s in stays]


def test_an_object_whose_own_rule_begins_to_matter_is_checked_again() -> None:
    env = Windy(file_of("asymmetric_freeing", 3))
    from_multigrid(env)
    env.wind = 0.25
    with pytest.raises(TranslationError, match="with probability"):
        from_multigrid(env)


class WithSwitches(StandIn):
    """Has rules of its own, which no attribute of a map says, and which do nothing at first."""

    late = 99
    held: ClassVar[list[int]] = []

    def __init__(self, mapping: Any) -> None:
        self.blocked: list[int] = []
        self.settings = {"on": False}
        self._private = False
        self.filter = lambda agent: False
        super().__init__(mapping)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        is_off = self.settings["on"] or self._private or state[0] >= self.late or LATE_RULE["on"]
        stops = [*self.blocked, *self.held, *([2] if is_off else []), *(i for i in range(3) if self.filter(i))]
        return super().transition_probabilities(state, [0 if i in stops else a for i, a in enumerate(actions)])


LATE_RULE = {"on": False}


def closure_over(stops: list[int]) -> Callable[[int], bool]:
    return lambda agent: agent in stops


def own_method(env: WithSwitches) -> None:
    def asked(state: Any, actions: Any) -> Any:
        return StandIn.transition_probabilities(env, state, [*actions[:2], 0])

    env.transition_probabilities = asked  # type: ignore[method-assign]


def of_the_class(env: WithSwitches) -> None:
    env.__class__ = type("WithSwitches", (WithSwitches,), {"held": [2]})


CHANGES: dict[str, Callable[[WithSwitches], Any]] = {
    "public list": lambda env: env.blocked.append(2),
    "public dictionary": lambda env: env.settings.update(on=True),
    "number of NumPy": lambda env: setattr(env, "late", np.int64(1)),
    "private attribute": lambda env: setattr(env, "_private", True),
    "function with a closure": lambda env: setattr(env, "filter", closure_over([2])),
    "method of the object": own_method,
    "another class": of_the_class,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_of_an_object_was_changed_its_values_are_those_of_a_new_object(change: Callable[[Any], Any]) -> None:
    env, new = WithSwitches(file_of("asymmetric_freeing", 3)), WithSwitches(file_of("asymmetric_freeing", 3))
    first = from_multigrid(env)
    assert from_multigrid(env) is first
    change(env)
    change(new)
    with pytest.raises(TranslationError, match=r"with probability|goes on"):
        from_multigrid(env)
    found, expected = (compute_human_policy_prior(one, [0, 1], quiet=True).solution for one in (env, new))
    assert found.dag.n_states == expected.dag.n_states < enumerate_dag(first, progress=False).n_states
    assert [v.tolist() for v in found.values.Vh_m] == [v.tolist() for v in expected.values.Vh_m]


def test_what_no_attribute_says_is_found_by_a_few_questions_in_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    env = WithSwitches(file_of("asymmetric_freeing", 3))
    from_multigrid(env)
    monkeypatch.setitem(LATE_RULE, "on", True)  # of the module

    def look_again_and_again() -> None:
        for _ in range(20):
            from_multigrid(env)

    with pytest.raises(TranslationError):
        look_again_and_again()


def test_a_changed_attribute_that_no_rule_depends_on_leaves_the_translation_as_it_is() -> None:
    env = WithSwitches(file_of("asymmetric_freeing", 3))
    world = from_multigrid(env)
    env.settings["colour"] = "red"
    env._n_drawn = 3
    env.filter = closure_over([])
    assert from_multigrid(env) is world
    assert StandIn.calls["transitions"] == 600


def test_a_line_says_that_an_object_is_not_translated_any_more(capsys: pytest.CaptureFixture[str]) -> None:
    env = WithSwitches(file_of("asymmetric_freeing", 1))
    solve(env)
    env.blocked = [2]
    solve(env)
    lines = [line for line in capsys.readouterr().err.splitlines() if "translated" in line]
    assert ["was translated" in line for line in lines] == [True, False]


def test_translation_changes_nothing_of_the_object() -> None:
    env = freeing()
    env.set_state(env.transition_probabilities(env.get_state(), [3, 3, 3])[0][1])
    before = copy.deepcopy(vars(env))
    from_multigrid(env)
    after = vars(env)
    assert after.keys() == before.keys()
    for name in ("_state", "max_steps", "width", "_mobile_objects"):
        assert after[name] == before[name]
    assert [vars(agent) for agent in after["agents"]] == [vars(agent) for agent in before["agents"]]
    assert [str(thing) for thing in after["grid"].cells] == [str(thing) for thing in before["grid"].cells]


# --- priors of users --------------------------------------------------------------------------------------------------


class StandsStill(HumanPolicyPrior):
    def __call__(self, state: Any, human_agent_index: int, possible_goal: Any = None) -> Any:
        return np.array([1.0, 0, 0, 0])


def unpickled(env: StandIn, computed: TabularHumanPolicyPrior) -> HumanPolicyPrior:
    prior: HumanPolicyPrior = pickle.loads(pickle.dumps(computed))
    prior.set_world_model(env)
    return prior


def by_table(env: StandIn, computed: TabularHumanPolicyPrior) -> HumanPolicyPrior:
    return TabularHumanPolicyPrior(env, [0, 1], env.possible_goal_generator, computed.values.copy())


def of_an_equal_environment(env: StandIn, computed: TabularHumanPolicyPrior) -> HumanPolicyPrior:
    return by_table(freeing(2), computed)


@pytest.mark.parametrize("make", [unpickled, by_table, of_an_equal_environment], ids=lambda make: make.__name__)
def test_priors_made_with_an_environment_belong_to_its_translation(make: Callable[..., HumanPolicyPrior]) -> None:
    env = freeing(2)
    computed = compute_human_policy_prior(env, [0, 1], gamma_h=0.9, use_float16=False, quiet=True)

    def values(prior: object) -> Any:
        return compute_robot_policy(
            env, [0, 1], [2], human_policy_prior=prior, gamma_h=0.9, gamma_r=0.9, return_values=True, use_float16=False,
            quiet=True,
        )[1].copy()  # fmt: skip

    assert values(make(env, computed)) == pytest.approx(values(computed), rel=1e-9)


def test_a_prior_of_a_users_own_class_made_with_an_environment_belongs_to_its_translation() -> None:
    env = freeing(2)
    policy = compute_robot_policy(env, [0, 1], [2], human_policy_prior=StandsStill(env, [0, 1]), quiet=True)
    assert policy(env.get_state())
    other = StandsStill(freeing(3), [0, 1])
    with pytest.raises(ValueError, match="belongs to another world"):
        compute_robot_policy(env, [0, 1], [2], human_policy_prior=other, quiet=True)


def test_policies_know_the_environment_that_was_given() -> None:
    env = freeing(1)
    prior = compute_human_policy_prior(env, [0, 1], quiet=True)
    assert prior.world_model is env
    assert compute_robot_policy(env, [0, 1], [2], human_policy_prior=prior, quiet=True).world_model is env


# --- what is said -----------------------------------------------------------------------------------------------------


def test_one_line_says_what_was_done_once(capsys: pytest.CaptureFixture[str]) -> None:
    env = freeing(1)
    solve(env)
    solve(env)
    lines = [line for line in capsys.readouterr().err.splitlines() if "translated" in line]
    assert lines == ["empo_bi: StandIn was translated to a compiled gridworld, which agrees with it in 300 transitions"]
    compute_human_policy_prior(freeing(1), [0, 1], quiet=True)
    assert capsys.readouterr().err == ""


def test_where_it_cannot_be_translated_a_line_says_why_and_it_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    env = freeing(1)
    env.agents_have_wings = True
    env._codes[0][0] = "??"
    env.reset = lambda: None  # type: ignore[method-assign]
    env.grid.get(0, 0).type = "cloud"
    solution = solve(env)
    assert solution.dag.world is env
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "translated" in line]
    assert line.endswith("cannot be translated to a compiled gridworld: unknown kind of object: 'cloud' at 0,0")


# --- what is refused --------------------------------------------------------------------------------------------------


def on_terrain(env: StandIn) -> None:
    x, y = env.agents[0].pos
    env.terrain_grid.set(x, y, SimpleNamespace(type="switch", color="grey"))


def box_with_a_key(env: StandIn) -> None:
    env.grid.set(1, 1, SimpleNamespace(type="box", color="red", contains="a key"))


def other_wall(env: StandIn) -> None:
    env.agents[0].can_enter_magic_walls = True
    thing = SimpleNamespace(type="magicwall", color="grey", magic_side=1, entry_probability=0.9, solidify_probability=0.1)
    env.grid.set(1, 1, thing)


def strong_human(env: StandIn) -> None:
    env.agents[0].can_push_rocks = True


def swapped(env: StandIn) -> None:
    env.agents = env.agents[::-1]


def blue_key(env: StandIn) -> None:
    env.grid.set(1, 1, SimpleNamespace(type="key", color="blue"))


def unknown_actions(env: StandIn) -> None:
    env.actions = SimpleNamespace


def more_steps_than_one(env: StandIn) -> None:
    env.transition_durations = lambda state, actions, transitions: [2.0] * len(transitions)  # type: ignore[method-assign]


def carries(env: StandIn) -> None:
    step, agents, *rest = env._state
    env._state = (step, ((*agents[0][:6], "key", "red", None), *agents[1:]), *rest)


def own_rules(env: StandIn) -> None:
    env.transition_probabilities = lambda state, actions: [(1.0, (state[0] + 1, *state[1:]))] if state[0] < 3 else None  # type: ignore[method-assign]


def door_that_is_open_and_locked(env: StandIn) -> None:
    env.grid.set(1, 1, SimpleNamespace(type="door", color="red", is_open=True, is_locked=True))


def two_on_a_cell(env: StandIn) -> None:
    env.agents[1].pos = env.agents[0].pos


REFUSED: dict[Callable[[StandIn], None], str] = {
    on_terrain: r"agent 0 is on a switch at \d+,\d+",
    box_with_a_key: r"the box at 1,1 contains 'a key'",
    other_wall: r"the magic wall at 1,1 has its own entry_probability, 0.9",
    strong_human: r"only some yellow agents have can_push_rocks",
    swapped: r"not numbered in reading order",
    blue_key: r"no code of world files is a key of colour 'blue'",
    unknown_actions: r"actions 'SimpleNamespace' with 4 actions",
    more_steps_than_one: r"durations of its own",
    carries: r"initial state is another one: agents",
    own_rules: r"the rules of world files say",
    door_that_is_open_and_locked: r"the door at 1,1 is open and locked",
    two_on_a_cell: r"agents 0 and 1 are both at",
}


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__)
def test_what_world_files_cannot_say_is_refused_with_the_reason(change: Callable[[StandIn], None]) -> None:
    env = freeing(3)
    env.reset = lambda: None  # type: ignore[method-assign]
    change(env)
    with pytest.raises(TranslationError, match=REFUSED[change]):
        from_multigrid(env)


def test_an_object_may_ask_not_to_be_translated() -> None:
    env = freeing(1)
    env.empo_bi_translate = False
    assert solve(env, progress=False).dag.world is env


def test_what_cannot_be_copied_is_refused() -> None:
    env = freeing(1)
    env.window = (n for n in range(3))
    with pytest.raises(TranslationError, match="cannot be copied"):
        from_multigrid(env)


def test_other_objects_are_no_environments() -> None:
    with pytest.raises(TypeError, match="does not have the attributes of a MultiGridEnv"):
        from_multigrid(load_world("basics/first_steps"))


def test_a_run_of_a_translated_world_opens_without_it(tmp_path: Any) -> None:
    env = freeing()
    with solve(env, out=tmp_path / "run", progress=False) as solution:
        value = solution.values.V_r[0][0]
    with empo_bi.open_solution(tmp_path / "run", world=env) as again:
        assert again.values.V_r[0][0] == value
    assert json.dumps(to_mapping(from_multigrid(env).world_spec))
