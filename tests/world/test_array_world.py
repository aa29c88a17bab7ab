"""Models from elsewhere: the compiled path gives what plain dictionaries give, and bad arrays are refused."""

from __future__ import annotations

import itertools
import math
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest
from backward.against_oracle import Problem, check_documented_functions, check_solve
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from empo_bi import (
    ArrayWorld,
    InvalidActionError,
    InvalidStateError,
    InvalidWorldError,
    Params,
    PossibleGoal,
    ReachStatesGoal,
    StoreMismatchError,
    enumerate_dag,
    first_of,
    open_dag,
    open_solution,
    plan,
    solve,
)
from empo_bi.store.dag_store import DagStore

GREEDY = Params(beta_h=math.inf)


class PlainWorld:
    """The same by plain lists, for the oracle: ``rows[state][profile number]`` is [(probability, successor)]."""

    def __init__(self, rows: list[Any], n_agents: int, n_actions: int, max_steps: int, start: int) -> None:
        self.rows, self.n_agents, self.n_actions, self.max_steps, self.start = rows, n_agents, n_actions, max_steps, start

    def initial_state(self) -> tuple[int, int]:
        return (0, self.start)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        step, number = state
        if step == self.max_steps or not self.rows[number]:
            return None
        profile = sum(action * self.n_actions**i for i, action in enumerate(actions))
        return [(p, (step + 1, successor)) for p, successor in self.rows[number][profile]]


@dataclass
class Model:
    """A random model, as lists and as one matrix (S * J, S)."""

    rows: list[Any]
    n_agents: int
    n_actions: int
    max_steps: int
    start: int
    goals: dict[str, list[int]]

    @property
    def matrix(self) -> Any:
        n, n_profiles = len(self.rows), self.n_actions**self.n_agents
        dense = np.zeros((n * n_profiles, n))
        for s, profiles in enumerate(self.rows):
            for j, pairs in enumerate(profiles):
                for p, successor in pairs:
                    dense[s * n_profiles + j, successor] += p
        return sparse.csr_array(dense)

    def world(self, **options: Any) -> ArrayWorld:
        given_options = {"max_steps": self.max_steps, "goals": self.goals, "start": self.start, "n_agents": self.n_agents}
        return ArrayWorld(self.matrix, **given_options | options)

    def plain(self) -> PlainWorld:
        return PlainWorld(self.rows, self.n_agents, self.n_actions, self.max_steps, self.start)


@st.composite
def models(draw: st.DrawFn, most_agents: int = 2) -> Model:
    n_agents, n_actions = draw(st.integers(1, most_agents)), draw(st.integers(1, 3))
    n = draw(st.integers(1, 6))
    rows = []
    for _ in range(n):
        if draw(st.integers(0, 4)) == 0:
            rows.append([])  # terminal
            continue
        profiles = []
        for _ in range(n_actions**n_agents):
            followers = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4, unique=True))
            weights = [draw(st.integers(1, 9)) for _ in followers]
            profiles.append([(w / sum(weights), s) for w, s in zip(weights, followers, strict=True)])
        rows.append(profiles)
    goals = {
        f"g{i}": draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=3, unique=True))
        for i in range(draw(st.integers(1, 9)))
    }
    return Model(rows, n_agents, n_actions, draw(st.integers(1, 4)), draw(st.integers(0, n - 1)), goals)


def problem_of(model: Model, humans: list[int], robots: list[int], beta_h: float) -> Problem:
    world = model.world(humans=humans, robots=robots)
    # Everybody gets somewhere: a goal attained everywhere keeps powers above 0.
    world.possible_goal_generator.goals.append(ReachStatesGoal("anywhere", range(len(model.rows))))
    world.possible_goal_generator.weights.append(0.5)
    return Problem(
        world, humans, robots, world.possible_goal_generator, model.plain(),
        human={"beta_h": beta_h, "gamma_h": 0.9}, robot={"beta_r": 2.0, "gamma_h": 0.9, "gamma_r": 0.95, "zeta": 2.0},
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(models(), st.sampled_from([1.0, 7.0, math.inf]))
def test_both_phases_are_those_of_the_oracle(model: Model, beta_h: float) -> None:
    if model.n_agents == 1:  # then there is no robot; phase 1 alone
        check_phase_1(model, beta_h)
    else:
        problem = problem_of(model, [0], [1], beta_h)
        if problem.going_on:
            check_documented_functions(problem)
            check_solve(problem)


@settings(max_examples=40, deadline=None)
@given(models(most_agents=1))
def test_a_plain_decision_process_is_solved_as_the_oracle_does(model: Model) -> None:
    check_phase_1(model, math.inf)


def check_phase_1(model: Model, beta_h: float) -> None:
    """Without policies, which is another path through the kernel than with them."""
    problem = problem_of(model, [0], [], beta_h)
    expected = problem.human_answers[1]
    params = Params(beta_h=beta_h, gamma_h=0.9)
    for workers in (1, 2):
        solution = solve(problem.world, params, phase_2=False, precision="float64", workers=workers, progress=False)
        for state in problem.graph.states:
            for goal in solution.goals[0]:
                wanted = expected.get(state, {}).get(0, {}).get(goal, 0.0)
                assert solution.Vh.get(state, {}).get(0, {}).get(goal, 0.0) == pytest.approx(wanted, abs=1e-12)


@settings(max_examples=30, deadline=None)
@given(models())
def test_a_matrix_per_profile_means_the_same_as_one_matrix(model: Model) -> None:
    n_profiles, matrix = model.n_actions**model.n_agents, model.matrix
    parts: list[Any] = [sparse.coo_array(matrix[j::n_profiles]) for j in range(n_profiles)]
    dense = np.array([part.toarray() for part in parts])
    options: Any = {"max_steps": model.max_steps, "goals": model.goals, "start": model.start, "n_agents": model.n_agents}
    worlds = [ArrayWorld(given_as, **options) for given_as in (matrix, matrix.toarray(), parts, dense)]
    assert len({world.content_key for world in worlds}) == 1
    for state, profile in itertools.product(range(len(model.rows)), worlds[0].all_profiles.tolist()):
        expected = model.plain().transition_probabilities((0, state), profile)
        found = worlds[3].transition_probabilities((0, state), profile)
        assert (found is None) == (expected is None)
        if expected is not None:
            assert {s: p for p, s in found or ()} == pytest.approx({s: p for p, s in expected})


def test_levels_hold_what_can_be_reached_and_end_early_where_all_is_over() -> None:
    """0 leads to 1 or 2, both lead to 3, which is terminal."""
    matrix = sparse.csr_array(([0.5, 0.5, 1, 1], ([0, 0, 1, 2], [1, 2, 3, 3])), shape=(4, 4))
    dag = enumerate_dag(ArrayWorld([matrix], max_steps=9, goals={"end": [3]}), progress=False)
    assert [sorted(dag.states(t)) for t in range(dag.horizon + 1)] == [[(0, 0)], [(1, 1), (1, 2)], [(2, 3)]]
    assert dag.n_transitions == 4
    solution = solve(dag.world, GREEDY, phase_2=False, dag=dag, progress=False)
    assert solution.Vh[0, 0][0][ReachStatesGoal("end", [3])] == 1
    assert solution.at((2, 3)).is_terminal


def test_a_world_that_is_over_at_once_can_be_enumerated() -> None:
    dag = enumerate_dag(ArrayWorld(np.zeros((3, 3)), max_steps=4, goals=[[0]], start=2), progress=False)
    assert (dag.horizon, dag.n_states, dag.states(0)) == (0, 1, [(0, 2)])


def lake(**options: Any) -> Any:
    return gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True, **options)


def test_frozen_lake_is_solved_as_by_hand() -> None:
    environment = lake()
    world = ArrayWorld.from_gymnasium(environment, max_steps=30, goals={"present": [15], "far corner": 12})
    solution = solve(world, GREEDY, phase_2=False, precision="float64", progress=False)
    for goal, target in (("present", 15), ("far corner", 12)):
        value = np.zeros(16)
        for _ in range(30):
            before, value = value, np.zeros(16)
            for s, actions in environment.unwrapped.P.items():
                if s in (5, 7, 11, 12, 15) and s != 12:
                    continue
                value[s] = max(
                    sum(p * (1.0 if succ == target else 0.0 if over else before[succ]) for p, succ, _, over in pairs)
                    for pairs in actions.values()
                )
        assert solution.Vh[0, 0][0][next(g for g in solution.goals[0] if g.name == goal)] == pytest.approx(
            value[0], abs=1e-12
        )


def newest(name: str) -> Any:
    """An environment whose version has changed with Gymnasium's."""
    versions = [found for found in gymnasium.registry if found.startswith(f"{name}-v")]
    return gymnasium.make(max(versions, key=lambda found: int(found.rpartition("v")[2])))


def test_other_toy_text_environments_are_taken() -> None:
    cliff = ArrayWorld.from_gymnasium(newest("CliffWalking"), max_steps=13, goals={"home": [47]})
    assert solve(cliff, GREEDY, phase_2=False, progress=False).Vh[0, 36][0][ReachStatesGoal("home", [47])] == 1
    taxi = newest("Taxi")
    with pytest.raises(InvalidWorldError, match="starts in one of 300 states; choose one with start="):
        ArrayWorld.from_gymnasium(taxi, max_steps=5, goals=[[0]])
    assert ArrayWorld.from_gymnasium(taxi, max_steps=5, goals=[[0]], start=1).n_states == 500 + 4  # drop-offs
    table = taxi.unwrapped.P
    with pytest.raises(InvalidWorldError, match="give start="):
        ArrayWorld.from_gymnasium(table, max_steps=5, goals=[[0]])
    with pytest.raises(InvalidWorldError, match="no table P"):
        ArrayWorld.from_gymnasium(gymnasium.make("CartPole-v1"), max_steps=5, goals=[[0]])


def test_a_state_that_ends_only_sometimes_becomes_two() -> None:
    """State 1 is entered half of the times to end there, half of the times to go on to 2."""
    table = {
        0: {0: [(0.5, 1, 0.0, True), (0.5, 1, 0.0, False)]},
        1: {0: [(1.0, 2, 0.0, True)]},
        2: {0: [(1.0, 2, 0.0, True)]},
    }
    world = ArrayWorld.from_gymnasium(table, max_steps=5, goals={"one": [1], "two": [2]}, start=0)
    dag = enumerate_dag(world, progress=False)
    assert [sorted(dag.states(t)) for t in range(dag.horizon + 1)] == [[(0, 0)], [(1, 1), (1, 3)], [(2, 2)]]
    solution = solve(world, GREEDY, phase_2=False, precision="float64", progress=False)
    assert [solution.Vh[0, 0][0][goal] for goal in solution.goals[0]] == [1.0, 0.5]


def test_steps_are_drawn_from_the_same_probabilities() -> None:
    world = ArrayWorld([np.eye(2), np.array([[0.1, 0.9], [0.0, 1.0]])], max_steps=2, goals={"there": [1]}, action_names="sg")
    assert world.reset(seed=3) == ((0, 0), {})
    state, _, over, _, _ = world.step([1])
    assert state in [(1, 0), (1, 1)]
    assert not over
    assert world.step([0]) == ((2, state[1]), 0.0, True, False, {})
    assert world.transition_probabilities((0, 0), [1]) == [(pytest.approx(0.1), (1, 0)), (0.9, (1, 1))]
    assert world.transition_probabilities((2, 0), [1]) is None
    assert world.action_names == ["s", "g"]
    for actions in ([2], [0, 0], [-1]):
        with pytest.raises(InvalidActionError):
            world.transition_probabilities((0, 0), actions)
    for state in ((0, 2), (0,), (-1, 0), "ab", 3):
        with pytest.raises(InvalidStateError):
            world.transition_probabilities(state, [0])


def walk(n: int = 30) -> ArrayWorld:
    """Left or right on a ring, which slips."""
    left, right = np.roll(np.eye(n), -1, axis=1), np.roll(np.eye(n), 1, axis=1)
    return ArrayWorld(
        [0.9 * left + 0.1 * right, 0.2 * left + 0.8 * right], max_steps=12, goals={"near": [3, n - 3], "far": [10]}
    )


def test_what_is_on_disk_is_what_is_in_memory(tmp_path: Path) -> None:
    here = solve(walk(), Params(), phase_2=False, precision="float64", progress=False)
    there = solve(walk(), Params(), phase_2=False, precision="float64", out=tmp_path / "run", progress=False)
    for t in range(13):
        np.testing.assert_array_equal(here.values.Vh_m[t], there.values.Vh_m[t])
    again = open_solution(tmp_path / "run", world=walk())
    np.testing.assert_array_equal(again.values.Vh_m[0], here.values.Vh_m[0])


def test_a_stored_dag_opens_with_and_without_its_world(tmp_path: Path) -> None:
    made = enumerate_dag(walk(), store=tmp_path / "dag", progress=False)
    for dag in (open_dag(tmp_path / "dag"), open_dag(tmp_path / "dag", world=walk())):
        assert dag.states(2) == made.states(2)
        assert dag.place_of((2, 28)) == made.place_of((2, 28))
    with pytest.raises(StoreMismatchError):
        open_dag(tmp_path / "dag", world=walk(31))
    with pytest.raises(StoreMismatchError):
        enumerate_dag(walk(31), store=tmp_path / "dag", progress=False)


def test_it_travels_is_planned_for_and_is_asked_about_events() -> None:
    world = walk()
    copy = pickle.loads(pickle.dumps(world))
    assert copy.content_key == world.content_key
    dag = enumerate_dag(copy, progress=False)
    assert plan(world, phase_2=False, progress=False, seconds=5).horizons[0].sizes.states.likely == dag.n_states
    solution = solve(world, Params(), human_policy_prior=None, progress=False, phase_2=False)
    assert solution.dag.n_states == dag.n_states


def test_first_passage_is_that_of_a_random_walk() -> None:
    """With nobody in command a ring is symmetric: both neighbours at the same distance are met first equally often."""
    n = 12
    left, right = np.roll(np.eye(n), -1, axis=1), np.roll(np.eye(n), 1, axis=1)
    half = (left + right) / 2
    matrices = [half] * 4
    world = ArrayWorld(matrices, max_steps=8, goals={"a": [2], "b": [10], "any": range(n)}, n_agents=2)
    solution = solve(world, Params(), progress=False)
    found = first_of(solution, solution.goals[0][:2])
    a, b = found.first.tolist()
    assert a == pytest.approx(b)
    assert a + b + found.none == pytest.approx(1)
    assert 0.3 < a < 0.5


class Odd(PossibleGoal):
    """A goal of the user's own, which looks at the step, too."""

    def is_achieved(self, state: Any) -> int:
        return int(state[0] % 2 and state[1] % 2)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd)

    def __hash__(self) -> int:
        return 1


def test_goals_of_ones_own_are_asked() -> None:
    world = ArrayWorld([np.array([[0.5, 0.5], [0.5, 0.5]])], max_steps=3, goals={"odd": Odd(), "one": [1]})
    solution = solve(world, GREEDY, phase_2=False, precision="float64", progress=False)
    assert solution.Vh[0, 0][0][Odd()] == pytest.approx(1 - 0.5 * 0.5)  # at steps 1 and 3
    assert solution.Vh[0, 0][0][ReachStatesGoal("one", [1])] == pytest.approx(1 - 0.5**3)


EYE = np.eye(2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"transitions": [EYE * 0.5]}, "state 0, profile 0: the probabilities sum to .*0.5.*, expected 1"),
        ({"transitions": [EYE, np.diag([1.0, 0.0])]}, "state 1, profile 1.*terminal for all profiles or for none"),
        ({"transitions": [np.array([[1.5, -0.5], [0, 1]])]}, "has a probability of -0.5"),
        ({"transitions": [np.array([[math.nan, 1], [0, 1]])]}, "has a probability of nan"),
        ({"transitions": []}, "transitions is empty"),
        ({"transitions": [EYE, np.eye(3)]}, r"shape \(3, 3\); expected \(S, S\)"),
        ({"transitions": np.ones((3, 2)) / 2}, r"shape \(3, 2\); expected \(S \* J, S\)"),
        ({"transitions": "matrix"}, "give a matrix or a list of matrices"),
        ({"max_steps": 0}, "max_steps=0; give a whole number, 1 or more"),
        ({"max_steps": 2.5}, "max_steps=2.5"),
        ({"start": 2}, "start=2; this world has states 0 to 1"),
        ({"goals": {}}, "goals is empty"),
        ({"goals": {"a": [2]}}, "goal 'a' has states .*2.*; this world has states 0 to 1"),
        ({"goals": {"a": []}}, "goal 'a': .*give numbers of states, or a mask of 2"),
        ({"goals": {"a": [0.5]}}, "goal 'a'"),
        ({"goals": "a"}, "goals='a'; give names with states"),
        ({"n_agents": 2}, r"2 action profiles for n_agents=2; .* A \*\* 2"),
        ({"action_names": ["a"]}, "1 action_names for 2 actions"),
    ],
)
def test_bad_arrays_are_refused_with_what_is_wrong(arguments: dict[str, Any], message: str) -> None:
    good = {"transitions": [EYE, EYE[::-1]], "max_steps": 3, "goals": {"one": [1]}}
    together: dict[str, Any] = good | arguments
    with pytest.raises(InvalidWorldError, match=message):
        ArrayWorld(together.pop("transitions"), **together)


def test_the_users_arrays_stay_as_they_are() -> None:
    matrix = sparse.csr_array(np.array([[0.5, 0.5], [0.0, 1.0]]))
    data: npt.NDArray[np.float64] = matrix.data.copy()
    ArrayWorld([matrix], max_steps=2, goals=[[True, False]])
    ArrayWorld(matrix, max_steps=2, goals=[np.array([True, False])])
    matrix.data[0] = 0.5  # still writable
    np.testing.assert_array_equal(matrix.data, data)


def test_a_run_killed_before_its_last_record_continues_with_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All levels are committed, and end before the horizon; only the record that they are complete is missing."""
    matrix = sparse.csr_array(([0.5, 0.5, 1, 1], ([0, 0, 1, 2], [1, 2, 3, 3])), shape=(4, 4))

    def made() -> Any:
        return enumerate_dag(ArrayWorld([matrix], max_steps=9, goals={"end": [3]}), store=tmp_path / "dag", progress=False)

    def killed(levels: Any) -> None:
        levels._collect()
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(DagStore, "finish", killed)
        with pytest.raises(InterruptedError):
            made()
    dag = made()
    assert [sorted(dag.states(t)) for t in range(dag.horizon + 1)] == [[(0, 0)], [(1, 1), (1, 2)], [(2, 3)]]
    assert dag.is_finished


class Timed(ArrayWorld):
    """Every transition takes as long as an attribute says."""

    speed = 1.0

    def transition_durations(self, state: Any, actions: Any, transitions: Any) -> list[float]:
        return [self.speed] * len(transitions)


def test_attributes_of_a_subclass_are_part_of_the_question(tmp_path: Path) -> None:
    def value(speed: float, out: Path | None) -> float:
        world = Timed([np.array([[0.5, 0.5], [0.0, 1.0]])], max_steps=3, goals={"one": [1]})
        world.speed = speed
        params = Params(beta_h=math.inf, gamma_h=0.8)
        solution = solve(world, params, phase_2=False, precision="float64", out=out, progress=False)
        return float(solution.Vh[0, 0][0][ReachStatesGoal("one", [1])])

    alone = {speed: value(speed, None) for speed in (1.0, 5.0)}
    assert alone[1.0] > alone[5.0] + 0.1
    assert value(1.0, tmp_path / "runs") == alone[1.0]
    with pytest.raises(StoreMismatchError, match="differs in world"):
        value(5.0, tmp_path / "runs")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {0: {0: [(1.0, 1, 0, False)]}, 1: {0: [(1.0, 1, 0, True)], 1: [(1.0, 0, 0, True)]}},
            r"state 1 has actions \[0, 1\]",
        ),
        ({0: {0: [(1.0, 1.7, 0, False)]}, 1: {0: [(1.0, 1, 0, True)]}}, "numbered from 0"),
        ({0: {0: [(1.5, 0, 0, False), (-0.5, 0, 0, False)]}}, "probability of -0.5"),
        ({0: {0: [(1.0, 3, 0, False)]}}, "next states 3 to 3"),
        ({0: {0: [(1.0, 0)]}}, "expected 4, got 2"),
    ],
)
def test_odd_tables_are_refused(table: Any, message: str) -> None:
    with pytest.raises(InvalidWorldError, match=message):
        ArrayWorld.from_gymnasium(table, max_steps=2, goals=[[0]], start=0)


def test_goals_of_ones_own_are_refused_where_states_become_two() -> None:
    table = {0: {0: [(0.5, 1, 0.0, True), (0.5, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 0.0, True)]}}
    with pytest.raises(InvalidWorldError, match=r"states \[0, 1\] can be entered both"):
        ArrayWorld.from_gymnasium(table, max_steps=2, goals={"odd": Odd()}, start=0)
    assert ArrayWorld.from_gymnasium(table, max_steps=2, goals=[[0]], start=0).ended_copies == {0: 2, 1: 3}


def test_hidden_negative_entries_and_flat_lists_are_refused() -> None:
    twice = sparse.coo_array(([1.5, -0.5], ([0, 0], [0, 0])), shape=(1, 1))
    with pytest.raises(InvalidWorldError, match=r"probability of -0.5"):
        ArrayWorld([twice], max_steps=2, goals=[[0]])
    with pytest.raises(InvalidWorldError, match=r"have shape \(2,\)"):
        ArrayWorld([[1, 0], [0, 1]], max_steps=2, goals=[[0]])


@pytest.mark.parametrize(
    "roles", [{"humans": [1]}, {"humans": [0, 0]}, {"robots": [5]}, {"humans": [0], "robots": [0]}, {"humans": [-1]}]
)
def test_roles_are_checked(roles: dict[str, Any]) -> None:
    with pytest.raises(InvalidWorldError, match=r"humans=|robots=|both a human and a robot"):
        ArrayWorld([EYE], max_steps=2, goals=[[0]], **roles)


def test_goals_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="states are numbered from 0"):
        ReachStatesGoal("a", [-1])
    with pytest.raises(InvalidWorldError, match="has state 99"):
        ArrayWorld([EYE], max_steps=2, goals=[ReachStatesGoal("a", [99])])
    dag = enumerate_dag(walk(), progress=False)
    with pytest.raises(InvalidStateError):
        dag.place_of((1, 10**30))


def test_a_goal_is_called_by_its_name() -> None:
    solution = solve(walk(), Params(), phase_2=False, progress=False)
    table = solution.to_pandas("Vh_m", goals="near")
    assert len(table) > 0
    with pytest.raises(ValueError, match="its goals, numbered from 0, are near; far"):
        solution.to_pandas("Vh_m", goals="nearest")


def test_one_agent_may_be_told_its_action_alone() -> None:
    world = walk()
    assert world.transition_probabilities((0, 0), 1) == world.transition_probabilities((0, 0), [1])


def test_another_horizon_is_another_world() -> None:
    world = walk()
    before = world.content_key
    world.max_steps = 5
    assert world.content_key != before
    world.possible_goal_generator = None
    assert "0 goals" in repr(world)
