"""Policy objects, row by row of the tables in section 6: made by the engine, and made by users of plain dictionaries."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from planning_worlds import At, Places, Ring, TwoSteps, plain

from empo_bi import (
    HumanPolicyPrior,
    PossibleGoalGenerator,
    RobotPolicy,
    TabularGoalGenerator,
    TabularHumanPolicyPrior,
    TabularRobotPolicy,
    compute_human_policy_prior,
    compute_robot_policy,
    load_world,
)

START = (0, 0)
TERMINAL = (1, 3)
UNKNOWN = (9, 9)
HUMANS = [2, 0]  # not in the order of the agents, which has to be kept


def seed(number: int) -> None:
    np.random.seed(number)  # noqa: NPY002 (documented: draws come from NumPy's global generator)


def engine_prior() -> TabularHumanPolicyPrior:
    return compute_human_policy_prior(Ring(), HUMANS, optimistic=True, beta_h=3.0, use_float16=False, quiet=True)


def disk_prior() -> TabularHumanPolicyPrior:
    return compute_human_policy_prior(
        Ring(), HUMANS, optimistic=True, beta_h=3.0, use_float16=False, quiet=True, use_disk_slicing=True
    )


def plain_prior() -> TabularHumanPolicyPrior:
    made = engine_prior()
    return TabularHumanPolicyPrior(made.world_model, HUMANS, made.possible_goal_generator, made.values.to_dict())


def engine_policy() -> TabularRobotPolicy:
    return compute_robot_policy(Ring(), [0], [2, 1], quiet=True)


def disk_policy() -> TabularRobotPolicy:
    return compute_robot_policy(Ring(), [0], [2, 1], quiet=True, use_disk_slicing=True)


def plain_policy() -> TabularRobotPolicy:
    return TabularRobotPolicy(Ring(), [2, 1], plain(engine_policy().values))


PRIORS: dict[str, Callable[[], TabularHumanPolicyPrior]] = {
    "in memory": engine_prior,
    "on disk": disk_prior,
    "plain dictionaries": plain_prior,
}
POLICIES: dict[str, Callable[[], TabularRobotPolicy]] = {
    "in memory": engine_policy,
    "on disk": disk_policy,
    "plain dictionaries": plain_policy,
}


@pytest.fixture(params=PRIORS)
def prior(request: pytest.FixtureRequest) -> TabularHumanPolicyPrior:
    return PRIORS[request.param]()


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> TabularRobotPolicy:
    return POLICIES[request.param]()


# --- priors that somebody has changed ---------------------------------------------------------------------------------


def value_at_start(prior: TabularHumanPolicyPrior) -> float:
    found: float = compute_robot_policy(
        prior.world_model, HUMANS, [1], human_policy_prior=prior, return_values=True, use_float16=False, quiet=True
    )[1][START]
    return found


def test_values_that_somebody_has_put_into_a_computed_prior_count_in_phase_2() -> None:
    prior = engine_prior()
    before, changed = value_at_start(prior), prior.values.copy()
    for by_goal in (by_goal for entry in changed.values() for by_goal in entry.values()):
        for pi_A in by_goal.values():
            pi_A[:] = np.eye(len(pi_A))[-1]
    by_table = TabularHumanPolicyPrior(prior.world_model, HUMANS, prior.possible_goal_generator, changed)
    prior.values = changed
    assert value_at_start(prior) == value_at_start(by_table) != before


def test_the_arrays_of_a_computed_prior_can_only_be_read() -> None:
    prior = engine_prior()
    entries = [prior.values[START], next(iter(prior.values.values())), next(iter(prior.values.items()))[1]]
    for entry in entries:
        with pytest.raises(ValueError, match="read-only"):
            entry[0][At(1)][:] = 0.5


# --- the humans' prior ------------------------------------------------------------------------------------------------


def test_a_prior_keeps_the_arguments_of_its_constructor() -> None:
    world, goals, values = Ring(), Places(1.0), {START: {0: {At(0): np.array([1.0, 0.0])}}}
    made = TabularHumanPolicyPrior(world, [0], goals, values)
    assert made.world_model is world
    assert made.human_agent_indices == [0]
    assert made.possible_goal_generator is goals
    assert made.values is values
    by_name = TabularHumanPolicyPrior(
        world_model=world, human_agent_indices=[0], possible_goal_generator=goals, values=values
    )
    assert by_name.values is values


def test_the_engines_prior_has_the_same_attributes() -> None:
    world, goals = Ring(), Places(1.0, 1.0, 1.0, 1.0)
    made = compute_human_policy_prior(world, HUMANS, goals, quiet=True)
    assert made.world_model is world
    assert made.human_agent_indices == HUMANS
    assert made.possible_goal_generator is goals
    assert isinstance(made, HumanPolicyPrior)


def test_a_call_with_a_goal_gives_the_stored_array(prior: TabularHumanPolicyPrior) -> None:
    stored = prior.values[START][0][At(1)]
    found = prior(START, 0, At(1))
    assert found is stored
    assert found.dtype == np.float64
    assert prior(state=START, human_agent_index=0, possible_goal=At(1)) is stored


@pytest.mark.parametrize(
    ("state", "human", "goal"),
    [
        (TERMINAL, 0, At(1)),
        (UNKNOWN, 0, At(1)),
        (START, 1, At(1)),
        (START, 7, At(1)),
        (START, 0, At(8)),
        (START, 0, "no goal"),
    ],
)
def test_a_call_for_what_is_not_in_the_table_is_a_key_error(
    prior: TabularHumanPolicyPrior, state: Any, human: int, goal: Any
) -> None:
    with pytest.raises(KeyError):
        prior(state, human, goal)


@pytest.mark.parametrize(
    ("state", "human", "problem"),
    [
        (TERMINAL, 0, "has no policy here: it is terminal, or cannot be reached"),
        (UNKNOWN, 0, "has no policy here: it is terminal, or cannot be reached"),
        (START, 1, r"agent 1 is not among the humans of this prior, \[2, 0\]"),
    ],
)
def test_a_marginal_of_what_is_not_in_the_table_is_a_key_error(
    prior: TabularHumanPolicyPrior, state: Any, human: int, problem: str
) -> None:
    with pytest.raises(KeyError, match=problem):
        prior(state, human)
    with pytest.raises(KeyError, match=problem):
        prior.sample(state, human)


def test_a_marginal_is_the_weighted_sum_and_is_not_normalised(prior: TabularHumanPolicyPrior) -> None:
    weights = prior.possible_goal_generator.weights
    expected = sum(weight * prior.values[START][2][At(place)] for place, weight in enumerate(weights))
    found = prior(START, 2)
    assert found.dtype == np.float64
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-12)
    assert found.sum() == pytest.approx(sum(weights))
    assert sum(weights) != 1  # so that the line above says something


def test_a_goal_that_is_yielded_twice_counts_twice() -> None:
    class Twice(Places):
        def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[At, float]]:
            yield from super().generate(state, human_agent_index)
            yield At(1), 0.25

    values = {START: {0: {At(0): np.array([1.0, 0.0]), At(1): np.array([0.2, 0.8])}}}
    made = TabularHumanPolicyPrior(Ring(), [0], Twice(0.5, 0.5), values)
    assert made(START, 0).tolist() == pytest.approx([0.65, 0.6])


def normalised(weights: Any) -> list[float]:
    return (np.asarray(weights) / np.sum(weights)).tolist()


def test_profile_distributions_are_products_of_normalised_marginals(prior: TabularHumanPolicyPrior) -> None:
    found = prior.profile_distribution(START)
    first, second = (normalised(prior(START, human)) for human in HUMANS)
    assert [actions for _, actions in found] == [[0, 0], [0, 1], [1, 0], [1, 1]], "the last human changes fastest"
    assert [p for p, _ in found] == pytest.approx([first[a] * second[b] for a in (0, 1) for b in (0, 1)])
    assert sum(p for p, _ in found) == pytest.approx(1)
    assert all(type(p) is float and all(type(a) is int for a in actions) for p, actions in found)
    assert prior.profile_distribution(state=START, device=None) == found


def test_a_fixed_goal_changes_one_human_and_leaves_the_others_their_marginals(prior: TabularHumanPolicyPrior) -> None:
    found = prior.profile_distribution_with_fixed_goal(START, 0, At(1))
    first, second = normalised(prior(START, 2)), prior(START, 0, At(1)).tolist()
    assert {tuple(actions): p for p, actions in found} == pytest.approx(
        {(a, b): first[a] * second[b] for a in (0, 1) for b in (0, 1)}
    )
    named = prior.profile_distribution_with_fixed_goal(state=START, fixed_agent_index=0, fixed_goal=At(1), device=None)
    assert named == found


def test_only_profiles_of_positive_probability_are_listed(prior: TabularHumanPolicyPrior) -> None:
    found = prior.profile_distribution_with_fixed_goal(START, 0, At(0))  # attained: action 0
    assert [actions for _, actions in found] == [[0, 0], [1, 0]]
    assert all(p > 0 for p, _ in found)


@pytest.mark.parametrize("state", [TERMINAL, UNKNOWN])
def test_profile_distributions_of_states_without_entry_are_key_errors(prior: TabularHumanPolicyPrior, state: Any) -> None:
    with pytest.raises(KeyError):
        prior.profile_distribution(state)
    with pytest.raises(KeyError):
        prior.profile_distribution_with_fixed_goal(state, 0, At(1))


def test_marginals_that_sum_to_nothing_become_uniform() -> None:
    values = {START: {0: {At(0): np.array([1.0, 0.0])}, 2: {At(0): np.array([0.25, 0.75])}}}
    made = TabularHumanPolicyPrior(Ring(), [0, 2], Places(0.0), values)
    assert made(START, 0).tolist() == [0.0, 0.0]
    assert made.profile_distribution(START) == [(0.25, [a, b]) for a in (0, 1) for b in (0, 1)]
    assert made.profile_distribution_with_fixed_goal(START, 0, At(0)) == [(0.5, [0, 0]), (0.5, [0, 1])]


def test_a_human_without_goals_in_a_state_has_a_marginal_of_zeros_and_plays_uniformly() -> None:
    made = TabularHumanPolicyPrior(Ring(), [0], Places(), {START: {0: {}}})
    assert made(START, 0).tolist() == [0.0, 0.0]  # engine defect, reported: an array without dimensions
    assert made.profile_distribution(START) == [(0.5, [0]), (0.5, [1])]


def test_without_humans_there_is_one_empty_profile() -> None:
    made = TabularHumanPolicyPrior(Ring(), [], Places(1.0), {})
    assert made.profile_distribution(START) == [(1.0, [])]


def test_a_sample_with_an_agent_is_an_int_and_without_one_a_list(prior: TabularHumanPolicyPrior) -> None:
    assert type(prior.sample(START, 0)) is int
    assert type(prior.sample(START, 0, At(1))) is int
    assert type(prior.sample(state=START, human_agent_index=0, possible_goal=At(1))) is int
    drawn = prior.sample(START)
    assert isinstance(drawn, list)
    assert [type(action) for action in drawn] == [int, int]


def test_a_goal_without_an_agent_cannot_be_sampled(prior: TabularHumanPolicyPrior) -> None:
    with pytest.raises(AssertionError, match="human_agent_index"):
        prior.sample(START, None, At(1))


def test_samples_follow_the_global_generator_of_numpy(prior: TabularHumanPolicyPrior) -> None:
    def draws() -> list[Any]:
        return [(prior.sample(START), prior.sample(START, 0), prior.sample(START, 2, At(1))) for _ in range(40)]

    seed(5)
    first = draws()
    assert draws() != first, "the generator moves on"
    seed(5)
    assert draws() == first


def test_samples_have_the_probabilities_of_the_policies(prior: TabularHumanPolicyPrior) -> None:
    seed(1)
    n = 3000
    with_goal = np.mean([prior.sample(START, 0, At(1)) for _ in range(n)])
    over_goals = np.mean([prior.sample(START, 0) for _ in range(n)])
    of_all = np.mean([prior.sample(START) for _ in range(n)], axis=0)
    tolerance = 5 * 0.5 / np.sqrt(n)
    assert with_goal == pytest.approx(prior(START, 0, At(1))[1], abs=tolerance)
    assert over_goals == pytest.approx(normalised(prior(START, 0))[1], abs=tolerance)
    assert of_all.tolist() == pytest.approx([normalised(prior(START, human))[1] for human in HUMANS], abs=tolerance)


def test_humans_are_sampled_independently() -> None:
    values = {START: {h: {At(0): np.array([0.5, 0.5])} for h in HUMANS}}
    made = TabularHumanPolicyPrior(Ring(), HUMANS, Places(1.0), values)
    seed(2)
    drawn = [tuple(made.sample(START)) for _ in range(400)]
    assert {drawn.count(profile) > 50 for profile in [(0, 0), (0, 1), (1, 0), (1, 1)]} == {True}


def test_set_world_model_replaces_the_reference(prior: TabularHumanPolicyPrior) -> None:
    other = Ring()
    prior.set_world_model(other)
    assert prior.world_model is other


class NeedsItsWorld(PossibleGoalGenerator):
    """Goals that can only be told with the world at hand."""

    def generate(self, state: Any, human_agent_index: int) -> Iterator[tuple[Any, float]]:
        for place in range(4):
            yield At(place), 1.0 / len(self.env.agents)


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("as_dictionary", [False, True])
def test_a_pickled_prior_has_lost_its_world_and_gets_it_back(on_disk: bool, as_dictionary: bool) -> None:
    world = Ring()
    prior = compute_human_policy_prior(
        world, HUMANS, NeedsItsWorld(world), optimistic=True, quiet=True, use_disk_slicing=on_disk
    )
    if as_dictionary:
        prior = TabularHumanPolicyPrior(world, HUMANS, prior.possible_goal_generator, prior.values.to_dict())
    copy = pickle.loads(pickle.dumps(prior))
    assert type(copy) is TabularHumanPolicyPrior
    assert copy.world_model is None
    assert copy.human_agent_indices == HUMANS
    assert plain(copy.values) == plain(prior.values)
    assert copy(START, 0, At(1)).tolist() == prior(START, 0, At(1)).tolist()
    assert type(copy.sample(START, 0, At(1))) is int
    with pytest.raises(ValueError, match="set_world_model"):
        copy(START, 0)
    copy.set_world_model(Ring())
    assert copy(START, 0).tolist() == prior(START, 0).tolist()
    assert copy.profile_distribution(START) == prior.profile_distribution(START)
    assert prior.world_model is world, "the original keeps its world"


def test_a_pickled_prior_of_a_gridworld_works_again_with_its_world() -> None:
    world = load_world("first_steps", max_steps=3)
    prior = compute_human_policy_prior(world, [0], quiet=True)
    copy = pickle.loads(pickle.dumps(prior))
    start = world.initial_state()
    goals = [goal for goal, _ in world.possible_goal_generator.generate(start, 0)]
    for goal in goals:
        assert copy(start, 0, goal).tolist() == prior(start, 0, goal).tolist()
    copy.set_world_model(world)
    assert copy(start, 0).tolist() == prior(start, 0).tolist()


def test_a_pickled_prior_with_its_world_again_serves_phase_2() -> None:
    world = TwoSteps()
    world.possible_goal_generator = TabularGoalGenerator([At(0), At(1)])
    prior = compute_human_policy_prior(world, [0], use_float16=False, quiet=True)
    expected = compute_robot_policy(world, [0], [1], None, prior, use_float16=False, quiet=True)
    copy = pickle.loads(pickle.dumps(prior))
    copy.set_world_model(world)
    found = compute_robot_policy(world, [0], [1], None, copy, use_float16=False, quiet=True)
    for state, distribution in expected.values.items():
        assert found(state) == pytest.approx(distribution, rel=1e-12)


def test_a_prior_of_ones_own_gets_its_methods_from_the_base_class() -> None:
    class Fixed(HumanPolicyPrior):
        def __call__(self, state: Any, human_agent_index: int, possible_goal: Any = None) -> Any:
            return np.array([3.0, 1.0]) if possible_goal is None else np.array([0.0, 1.0])

    world = Ring()
    made = Fixed(world, [0, 2])
    assert (made.world_model, made.human_agent_indices) == (world, [0, 2])
    assert made.profile_distribution(START)[0] == (0.5625, [0, 0])
    assert made.profile_distribution_with_fixed_goal(START, 2, At(0)) == [(0.75, [0, 1]), (0.25, [1, 1])]
    assert made.sample(START, 0, At(0)) == 1
    with pytest.raises(TypeError, match="abstract"):
        HumanPolicyPrior(world, [0])


# --- the robots' policy -----------------------------------------------------------------------------------------------


def test_a_robot_policy_keeps_the_arguments_of_its_constructor_and_the_number_of_actions() -> None:
    world, values = Ring(), {START: {(0, 1): 1.0}}
    made = TabularRobotPolicy(world, [2, 1], values)
    assert made.world_model is world
    assert made.robot_agent_indices == [2, 1]
    assert made.values is values
    assert made.num_actions == 2
    assert TabularRobotPolicy(world_model=world, robot_agent_indices=[2, 1], values=values).values is values


def test_the_engines_robot_policy_has_the_same_attributes() -> None:
    world = Ring()
    made = compute_robot_policy(world, [0], [2, 1], quiet=True)
    assert made.world_model is world
    assert (made.robot_agent_indices, made.num_actions) == ([2, 1], 2)
    assert isinstance(made, RobotPolicy)


def test_a_call_gives_the_stored_distribution(policy: TabularRobotPolicy) -> None:
    found = policy(START)
    assert found is policy.values[START]
    assert list(found) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert sum(found.values()) == pytest.approx(1)
    assert all(type(probability) is float for probability in found.values())


@pytest.mark.parametrize("state", [TERMINAL, UNKNOWN, "nonsense", None])
def test_a_call_for_terminal_and_unknown_states_gives_nothing(policy: TabularRobotPolicy, state: Any) -> None:
    assert policy(state) == {}


def test_a_sample_is_a_profile_drawn_from_the_global_generator(policy: TabularRobotPolicy) -> None:
    seed(3)
    first = [policy.sample(START) for _ in range(40)]
    assert [policy.sample(START) for _ in range(40)] != first
    seed(3)
    assert [policy.sample(START) for _ in range(40)] == first
    assert set(first) <= set(policy(START))
    assert all(isinstance(profile, tuple) and all(type(action) is int for action in profile) for profile in first)


def test_samples_have_the_probabilities_of_the_policy(policy: TabularRobotPolicy) -> None:
    seed(4)
    drawn = [policy.sample(START) for _ in range(3000)]
    for profile, probability in policy(START).items():
        assert drawn.count(profile) / 3000 == pytest.approx(probability, abs=5 * 0.5 / np.sqrt(3000))


@pytest.mark.parametrize("state", [TERMINAL, UNKNOWN])
def test_without_an_entry_actions_are_uniformly_random(policy: TabularRobotPolicy, state: Any) -> None:
    seed(6)
    drawn = [policy.sample(state) for _ in range(800)]
    for profile in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        assert drawn.count(profile) == pytest.approx(200, abs=75)
    seed(6)
    assert [policy.sample(state) for _ in range(800)] == drawn


def test_an_action_is_that_robots_part_of_a_drawn_profile(policy: TabularRobotPolicy) -> None:
    for place, robot in enumerate([2, 1]):
        seed(7)
        profiles = [policy.sample(START) for _ in range(50)]
        seed(7)
        actions = [policy.get_action(START, robot) for _ in range(50)]
        assert actions == [profile[place] for profile in profiles]
        assert {type(action) for action in actions} == {int}


@pytest.mark.parametrize("agent", [0, 5, -1])
def test_an_action_of_somebody_else_is_an_error(policy: TabularRobotPolicy, agent: int) -> None:
    with pytest.raises(ValueError, match=rf"agent {agent} is not among the robots \[2, 1\]"):
        policy.get_action(START, agent)
    with pytest.raises(ValueError, match=f"agent {agent}"):
        policy.get_action(state=UNKNOWN, robot_agent_index=agent)


def test_reset_replaces_the_world(policy: TabularRobotPolicy) -> None:
    other = Ring()
    policy.reset(other)
    assert policy.world_model is other
    assert policy(START) != {}


def test_the_reset_of_the_base_class_does_nothing() -> None:
    class Still(RobotPolicy):
        def sample(self, state: Any) -> Any:
            return (0,)

    made = Still()
    made.reset(Ring())
    assert vars(made) == {}
    with pytest.raises(TypeError, match="abstract"):
        RobotPolicy()


def test_a_pickled_robot_policy_acts_as_before(policy: TabularRobotPolicy) -> None:
    copy = pickle.loads(pickle.dumps(policy))
    assert plain(copy.values) == plain(policy.values)
    seed(8)
    first = [policy.sample(START) for _ in range(20)] + [policy.sample(UNKNOWN) for _ in range(20)]
    seed(8)
    assert [copy.sample(START) for _ in range(20)] + [copy.sample(UNKNOWN) for _ in range(20)] == first


def test_without_robots_the_only_profile_is_empty() -> None:
    made = compute_robot_policy(Ring(), [0], [], quiet=True)
    assert made(START) == {(): 1.0}
    assert made.sample(START) == made.sample(UNKNOWN) == ()
    with pytest.raises(ValueError, match="agent 1"):
        made.get_action(START, 1)


def test_a_robot_policy_from_saved_values_needs_no_probabilities_that_sum_to_one_exactly() -> None:
    made = TabularRobotPolicy(Ring(), [1], {START: {(0,): 1 / 3, (1,): 2 / 3 + 1e-7}})
    assert {made.sample(START) for _ in range(60)} == {(0,), (1,)}
