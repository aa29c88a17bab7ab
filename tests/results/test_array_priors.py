"""Priors at the speed of arrays: the same bits as state by state, the oracle's numbers, and each question asked once."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from backward.against_oracle import Problem, check_solve
from engine import load_quietly

from empo_bi import (
    ArrayPrior,
    HumanPolicyPrior,
    Params,
    ShortestPathPrior,
    Solution,
    VectorPrior,
    enumerate_dag,
    solve,
)
from empo_bi.goals import ReachCellGoal, TabularGoalGenerator

PARAMS = Params(zeta=2, gamma_h=0.9, gamma_r=0.95, xi=1.1)


class StateByState:
    """Another prior's answers, given as those of strangers are: what the humans do together, one state at a time."""

    def __init__(self, prior: HumanPolicyPrior) -> None:
        self.prior = prior

    def profile_distribution(self, state: Any) -> Any:
        return HumanPolicyPrior.profile_distribution(self.prior, state)

    def profile_distribution_with_fixed_goal(self, state: Any, human: int, goal: Any) -> Any:
        return HumanPolicyPrior.profile_distribution_with_fixed_goal(self.prior, state, human, goal)


def numbers(state: Any, human: int, goal: Any, n_actions: int) -> list[float]:
    """Probabilities that look at everything and do not sum to 1 exactly."""
    drawn = np.random.default_rng([state[0], human, *np.ravel(state[1][human][:2]).astype(int), goal.target_rect[0]])
    return [float(p) for p in drawn.dirichlet(np.ones(n_actions))]


class Asked(HumanPolicyPrior):
    """Counts the questions."""

    def __init__(self, world: Any) -> None:
        super().__init__(world, world.human_agent_indices)
        self.questions: Counter[Any] = Counter()

    def __call__(self, state: Any, human_agent_index: int, possible_goal: Any = None) -> Any:
        self.questions[state, human_agent_index, possible_goal] += 1
        return self.answer(state, human_agent_index, possible_goal)

    def answer(self, state: Any, human: int, goal: Any) -> Any:
        n_actions = int(self.world_model.action_space.n)
        if goal is not None:
            return numbers(state, human, goal, n_actions)
        return np.arange(1.0, n_actions + 1) ** (1 + state[0])


class ByStepAndPlace(VectorPrior):
    def policies(self, fields: Any, step: int, human_agent_index: int, possible_goal: Any) -> Any:
        x_S, y_S = fields.cell_xy(human_agent_index).T
        seen_S = 1.0 + x_S + 0.37 * y_S + 0.11 * fields.direction(human_agent_index) + step * possible_goal.target_rect[0]
        weight_SA = seen_S[:, np.newaxis] ** np.linspace(-1.0, 0.7, int(self.world_model.action_space.n))
        return weight_SA / weight_SA.sum(axis=1, keepdims=True)


def bits(solution: Solution) -> list[Any]:
    names, levels = ("ve", "xh", "qr", "vr"), range(solution.dag.horizon + 1)
    return [solution.rows(name, t).tobytes() for name in names for t in levels]


def arrays_of(dag: Any, prior: HumanPolicyPrior) -> list[np.ndarray]:
    """What a prior says, asked state by state, as arrays (S, H, G, A)."""
    found = []
    for t in range(dag.horizon):
        by_state = [
            [[prior(state, h, goal) for goal, _ in dag.world.possible_goal_generator.generate(state, h)]
             for h in prior.human_agent_indices]
            for state in dag.states(t)
        ]  # fmt: skip
        found.append(np.array(by_state))
    return found


TWO_HUMANS = """
map: |
  We We We We We
  We Ay .. Ro We
  We .. Ae Ay We
  We We We We We
orientations: [e, n, w]
max_steps: 3
possible_goals: ["1,1", "2,1, 3,2", "1,2"]
"""
WORLDS = {"two humans": TWO_HUMANS, "bushes": "bush_worlds/overgrown_start"}


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("kind", ["shortest paths", "on fields", "arrays", "a function of the level", "asked for each"])
def test_values_have_the_bits_of_the_same_prior_asked_state_by_state(name: str, kind: str) -> None:
    world = load_quietly(WORLDS[name], max_steps=2)
    dag = enumerate_dag(world, progress=False)
    plain: HumanPolicyPrior = ShortestPathPrior(world, beta_h=0.7) if kind == "shortest paths" else ByStepAndPlace(world)
    prior = plain
    if kind == "asked for each":
        prior = plain = Asked(world)
    elif kind in ("arrays", "a function of the level"):
        arrays = arrays_of(dag, plain)
        prior = ArrayPrior(dag, arrays if kind == "arrays" else lambda t: arrays[t])
    options: Any = {"dag": dag, "progress": False, "precision": "float64"}
    found = solve(world, PARAMS, human_policy_prior=prior, **options)
    expected = solve(world, PARAMS, human_policy_prior=StateByState(plain), **options)
    assert bits(found) == bits(expected)
    assert found.prior is prior
    goal = {found.humans[0]: found.goals[found.humans[0]][0]}
    for goals in (None, goal):
        drawn, plainly = (solution.rollouts(5, seed=1, goals=goals) for solution in (found, expected))
        assert drawn.place_NT.tolist() == plainly.place_NT.tolist()
    assert bits(solve(world, PARAMS, human_policy_prior=prior, workers=2, **options)) == bits(expected)


def test_a_prior_on_fields_solves_what_the_oracle_solves() -> None:
    world = load_quietly(TWO_HUMANS, max_steps=2)
    prior = ByStepAndPlace(world)
    problem = Problem(
        world, world.human_agent_indices, world.robot_agent_indices, world.possible_goal_generator, prior=prior,
        oracle_world=AsOracle(world), robot={"zeta": 1.5},
    )  # fmt: skip
    check_solve(problem)


class AsOracle:
    def __init__(self, world: Any) -> None:
        self.world, self.n_agents, self.n_actions = world, len(world.agents), int(world.action_space.n)
        self.initial_state, self.transition_probabilities = world.initial_state, world.transition_probabilities


# --- each question once -----------------------------------------------------------------------------------------------


def test_each_question_is_asked_once_for_all_sets_of_parameters() -> None:
    world = load_quietly(TWO_HUMANS)
    prior = Asked(world)
    one, other = solve(world, [PARAMS, PARAMS.replace(zeta=1.5)], human_policy_prior=prior, progress=False)
    assert set(prior.questions.values()) == {1}
    going_on = sum(one.dag.level_sizes[:-1])
    assert len(prior.questions) == going_on * 2 * (1 + len(one.goals[0]))
    assert bits(other) != bits(one)


def test_equal_goals_are_one_question() -> None:
    world = load_quietly(TWO_HUMANS, max_steps=2)
    goals = [ReachCellGoal(world, 0, (1, 1)), ReachCellGoal(world, 0, (1, 1)), ReachCellGoal(world, 0, (2, 1))]
    world.possible_goal_generator = TabularGoalGenerator(goals)
    prior = Asked(world)
    solve(world, Params(zeta=2, terminal_Vr=-1.0), human_policy_prior=prior, progress=False)
    assert set(prior.questions.values()) == {1}


class Ignorant(Asked):
    """Does not know the step, and says so."""

    def depends_on(self, state: Any, human_agent_index: int) -> Any:
        return state[1:]

    def answer(self, state: Any, human: int, goal: Any) -> Any:
        return super().answer((0, *state[1:]), human, goal)


def test_a_prior_that_ignores_the_step_is_asked_once_for_a_body() -> None:
    world = load_quietly(TWO_HUMANS, max_steps=4)
    prior = Ignorant(world)
    found = solve(world, PARAMS, human_policy_prior=prior, progress=False)
    asked = Counter((state[1:], human, goal) for state, human, goal in prior.questions)
    assert set(asked.values()) == {1}
    assert bits(found) == bits(solve(world, PARAMS, human_policy_prior=StateByState(Ignorant(world)), progress=False))


def test_answers_are_forgotten_when_they_take_too_much_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_quietly(TWO_HUMANS, max_steps=4)
    expected = bits(solve(world, PARAMS, human_policy_prior=Ignorant(world), progress=False))
    monkeypatch.setattr("empo_bi.problem.asked_prior.REMEMBERED_BYTES", 20_000)
    prior = Ignorant(world)
    assert bits(solve(world, PARAMS, human_policy_prior=prior, progress=False)) == expected
    asked = Counter((state[1:], human, goal) for state, human, goal in prior.questions)
    assert max(asked.values()) > 1


class InProcesses(Asked):
    asks_in_processes = True


def test_worker_processes_ask_where_the_prior_allows_it() -> None:
    world = load_quietly(TWO_HUMANS)
    expected = bits(solve(world, PARAMS, human_policy_prior=Asked(world), progress=False))
    elsewhere, here = InProcesses(world), Asked(world)
    assert bits(solve(world, PARAMS, human_policy_prior=elsewhere, workers=2, progress=False)) == expected
    assert not elsewhere.questions
    assert bits(solve(world, PARAMS, human_policy_prior=here, workers=2, progress=False)) == expected
    assert here.questions


def test_what_the_prior_took_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("empo_bi.solving.parameter_sets._WORTH_TELLING", 0.0)
    world = load_quietly(TWO_HUMANS, max_steps=2)
    prior = Asked(world)
    solve(world, PARAMS, human_policy_prior=prior)
    assert f"s for {len(prior.questions):,} questions, of " in capsys.readouterr().err
    solve(world, PARAMS, human_policy_prior=ShortestPathPrior(world))
    assert " blocks of states, of " in capsys.readouterr().err
    solve(world, PARAMS, human_policy_prior=prior, progress=False)
    assert "human_policy_prior" not in capsys.readouterr().err


# --- goals that differ from state to state, and mistakes ---------------------------------------------------------------


class WhereOneIs:
    """The goal to stay, and another one that only some states have."""

    def __init__(self, world: Any) -> None:
        self.world = world

    def generate(self, state: Any, human: int) -> Any:
        yield ReachCellGoal(self.world, human, state[1][human][:2]), 0.5
        if state[0] % 2:
            yield ReachCellGoal(self.world, human, (1, 1)), 0.25


def test_goals_may_differ_from_state_to_state() -> None:
    world = load_quietly(TWO_HUMANS)
    generator = WhereOneIs(world)
    prior = ShortestPathPrior(world, possible_goal_generator=generator, beta_h=1.0)
    options: Any = {"possible_goal_generator": generator, "progress": False}
    found = solve(world, PARAMS, human_policy_prior=prior, **options)
    assert bits(found) == bits(solve(world, PARAMS, human_policy_prior=StateByState(prior), **options))


@pytest.fixture
def dag() -> Any:
    return enumerate_dag(load_quietly(TWO_HUMANS, max_steps=2), progress=False)


def test_arrays_that_do_not_fit_are_refused(dag: Any) -> None:
    shape = (2, 3, 4)
    good = [np.full((n, *shape), 0.25) for n in dag.level_sizes[:-1]]
    options: Any = {"dag": dag, "progress": False}

    def solved(policies: Any) -> Solution:
        return solve(dag.world, PARAMS, human_policy_prior=ArrayPrior(dag, policies), **options)

    solved(good)
    with pytest.raises(ValueError, match=r"policies of level 1 have the shape \(3, 4\); expected \("):
        solved([good[0], np.zeros((3, 4))])
    with pytest.raises(ValueError, match="there are no policies for level 1; an ArrayPrior needs"):
        solved({0: good[0]})
    for wrong in (-0.5, np.nan, np.inf):
        with pytest.raises(ValueError, match="expected probabilities of the actions that each human has, finite"):
            solved([good[0], np.where(np.arange(4) == 2, wrong, good[1])])
    with pytest.raises(ValueError, match="not all 0"):
        solved([good[0], 0 * good[1]])
    longer = load_quietly(TWO_HUMANS, max_steps=3)
    with pytest.raises(ValueError, match="belongs to another world"):
        solve(longer, PARAMS, human_policy_prior=ArrayPrior(dag, good), progress=False)
    with pytest.raises(ValueError, match="needs goals that are the same in every state"):
        ArrayPrior(dag, good, possible_goal_generator=WhereOneIs(dag.world))


def test_an_array_prior_answers_for_single_states(dag: Any) -> None:
    arrays = arrays_of(dag, ShortestPathPrior(dag.world, beta_h=1.0))
    prior, plain, start = ArrayPrior(dag, arrays), ShortestPathPrior(dag.world, beta_h=1.0), dag.world.initial_state()
    human = dag.world.human_agent_indices[1]
    goal = ReachCellGoal(dag.world, human, (1, 2))
    assert prior(start, human, goal).tolist() == plain(start, human, goal).tolist()
    assert prior(start, human).tolist() == plain(start, human).tolist()
    with pytest.raises(KeyError, match="is not among the goals of human 2"):
        prior(start, human, ReachCellGoal(dag.world, human, (0, 0)))
    again = pickle.loads(pickle.dumps(prior))
    with pytest.raises(ValueError, match="was pickled and has no DAG"):
        again(start, human, goal)


def test_a_vectorised_function_of_the_wrong_shape_says_so() -> None:
    class Flat(ByStepAndPlace):
        def policies(self, *question: Any) -> Any:
            return [0.25] * 4

    world = load_quietly(TWO_HUMANS, max_steps=2)
    with pytest.raises(ValueError, match=r"Flat.policies\(fields, 1, 0, .*shape \(4,\); expected \(\d+, 4\), states by act"):
        solve(world, PARAMS, human_policy_prior=Flat(world), progress=False)


def test_stores_tell_arrays_from_others(tmp_path: Any, dag: Any) -> None:
    arrays = arrays_of(dag, ShortestPathPrior(dag.world, beta_h=1.0))
    for policies in (arrays, [array.copy() for array in arrays], [np.full_like(array, 0.25) for array in arrays]):
        solve(dag.world, PARAMS, human_policy_prior=ArrayPrior(dag, policies), out=tmp_path / "run", progress=False)
    assert sum(path.name.startswith("solution-") for path in (tmp_path / "run").iterdir()) == 2


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [([0.5, 0.5], "gave 2 probabilities; human 0 has 4 actions"), ([1.5, -0.5, 0, 0], "probabilities are 0 or more")],
)
def test_a_prior_of_ones_own_with_odd_answers_is_refused(answer: list[float], complaint: str) -> None:
    class Odd(HumanPolicyPrior):
        def __call__(self, state: Any, human_agent_index: int, possible_goal: Any = None) -> Any:
            return np.array(answer)

    world = load_quietly("asymmetric_freeing", max_steps=2)
    with pytest.raises(ValueError, match=complaint):
        solve(world, human_policy_prior=Odd(world, [0, 1]), progress=False)


def test_probabilities_that_do_not_sum_to_1_are_told_of_once() -> None:
    class Much(HumanPolicyPrior):
        def __call__(self, state: Any, human_agent_index: int, possible_goal: Any = None) -> Any:
            return np.full(4, 0.4)

    world = load_quietly("asymmetric_freeing", max_steps=2)
    with pytest.warns(UserWarning, match=r"sum to 1\.6, not 1; they are used as they are") as told:
        solve(world, human_policy_prior=Much(world, [0, 1]), progress=False)
    assert sum("sum to" in str(one.message) for one in told) == 1
