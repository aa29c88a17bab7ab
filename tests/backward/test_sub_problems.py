"""Sub-problems against the oracle: from given states, up to where an event holds, with ends that are worth something."""

from __future__ import annotations

import contextlib
import math
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from backward.against_oracle import Problem, check_solve
from backward.test_gridworlds_against_oracle import PARAMETERS, problem_of
from backward.test_python_worlds_against_oracle import Drawn, problems, two_steps
from engine import load_quietly
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from oracle.storereader import StoreReader
from planning_worlds import Ring, TwoSteps, step_of
from store.test_format import assert_same
from store_tools import assert_same_dags, assert_same_trees

from empo_bi import (
    ArrayWorld,
    Params,
    ReachCellGoal,
    Solution,
    StoreMismatchError,
    compute_robot_policy,
    enumerate_dag,
    events,
    open_dag,
    open_solution,
    plan,
    probability_by_time,
    solve,
)
from empo_bi.analysis.comparison import compare
from empo_bi.analysis.uncertainty import robot_divergence, robot_entropy
from empo_bi.errors import EmpoOverflowError, GoalError, InvalidStateError, TooManyStatesError
from empo_bi.store.verify import verify_store

QUIET = {"progress": False}


class Table:
    """What a test says of states, as a function."""

    def __init__(self, table: dict[Any, Any]) -> None:
        self.table, self.asked = table, Counter[Any]()

    def __call__(self, state: Any) -> Any:
        self.asked[state] += 1
        return self.table[state]


def damage_in(folder: Path) -> list[str]:
    """What is wrong with the DAG and the solutions in a folder."""
    stores = [folder / "dag", *folder.glob("solution-*")]
    return [problem for store in stores for problem in verify_store(store, progress=False).damage]


def is_near_a_tie(expected: dict[str, Any]) -> bool:
    """Whether rounding may decide who is best, in some state."""
    for by_profile in expected["Qr"].values():
        first, second = [*sorted(by_profile.values(), reverse=True), -math.inf][:2]
        if first - second < 1e-9 * abs(first):
            return True
    return False


@st.composite
def sub_problems(draw: st.DrawFn) -> tuple[Problem, Drawn]:
    """A random world of any kind of levels; any of its states may be where it starts, or stops."""
    problem, drawn = draw(problems())
    rng = Random(draw(st.integers(0, 2**20)))
    states = list(problem.world.table)
    if draw(st.booleans()):
        problem.start = rng.sample(states, rng.choice([1, 1, 2, 3]) if len(states) > 2 else 1)
    if draw(st.booleans()):
        problem.stop = Table({state: rng.random() < 0.3 for state in states})
    robot = dict(problem.robot)
    if draw(st.booleans()):
        robot["terminal_Vr"] = Table({state: -rng.choice([1e-10, 0.3, 2.0, 7.5]) for state in states})
    problem.robot = robot
    return problem, drawn


def mass_by_hand(problem: Problem, solution: Solution) -> dict[Any, float]:
    """How likely each state is reached along a chain that agrees with the oracle's, from all states to start with alike."""
    chain = solution.markov_chain
    starts = set(problem.start or problem.graph.states[:1])
    mass = [(state in starts) / len(starts) for state in chain.states]
    for i, row in enumerate(chain):  # in topological order
        for j, probability in row.items():
            mass[j] += mass[i] * probability
    return dict(zip(chain.states, mass, strict=True))


def reached(solution: Solution) -> dict[Any, float]:
    dag = solution.dag
    return {state: p for t in range(dag.horizon + 1) for state, p in zip(dag.states(t), solution.reached[t], strict=True)}


def solvable(problem: Problem) -> None:
    """Leave out what has no solution, which other tests look at."""
    assume(not callable(problem.prior))  # `solve` takes no functions
    try:
        expected = problem.robot_answers
    except (OverflowError, ValueError):
        reject()
    assume(min(expected["Vr"].values()) > -1e100)


@settings(max_examples=120, deadline=None)
@given(sub_problems())
def test_random_sub_problems_agree_with_the_oracle(drawn: tuple[Problem, Drawn]) -> None:
    problem, _ = drawn
    solvable(problem)
    solution = check_solve(problem)
    expected = mass_by_hand(problem, solution)
    assert reached(solution) == pytest.approx(expected, abs=1e-9)
    function = problem.robot.get("terminal_Vr")
    if isinstance(function, Table):
        check_solve(problem, out=True)
        function.asked.clear()
        check_solve(problem, dag=solution.dag)
        ends = set(problem.graph.states) - set(problem.going_on)
        assert function.asked.keys() == ends
    # A DAG of everything serves as well; what else is in it is solved, too.
    whole = Problem(problem.world, problem.humans, problem.robots, problem.generator, level_fct=problem.level_fct)
    dag = enumerate_dag(problem.world, level_fct=whole.level_fct, precision="exact", **QUIET)
    params = solution.params
    try:
        shared = solve(
            problem.world, params, dag=dag, start=problem.start, stop=problem.stop, human_agent_indices=problem.humans,
            robot_agent_indices=problem.robots, possible_goal_generator=problem.generator,
            human_policy_prior=problem.prior, precision="float64", **QUIET,
        )  # fmt: skip
    except (GoalError, EmpoOverflowError):  # a state beyond the sub-problem may have no solution
        return
    for state, value in solution.Vr.items():
        assert shared.Vr[state] == pytest.approx(value, rel=1e-12)
    assert {state: p for state, p in reached(shared).items() if p} == pytest.approx(
        {state: p for state, p in expected.items() if p}, abs=1e-9
    )


def test_runs_begin_in_each_start_with_the_same_probability(tmp_path: Path) -> None:
    """Two starts on level 1, one on level 3; a store that was opened without them knows those of its lowest level only."""
    world, starts = numbered(), [(1, 2), (1, 4), (3, 1)]
    solution = solve(world, Params(gamma_r=0.9), start=starts, out=tmp_path / "three", **QUIET)
    episodes = solution.rollouts(3_000, seed=1)
    begun = Counter(tuple(episodes.states(i)[0]) for i in range(300))
    assert begun.keys() == set(starts)
    assert min(begun.values()) > 60
    assert episodes.return_N.mean() == pytest.approx(np.mean([solution.Vr[start] for start in starts]), rel=0.02)
    assert probability_by_time(solution, lambda state: state in starts)[-1] == pytest.approx(1)
    with pytest.raises(StoreMismatchError, match=r"from 3 states on several levels.*same start and out"):
        open_solution(tmp_path / "three", world=world).reached  # noqa: B018
    again = solve(world, Params(gamma_r=0.9), start=starts, out=tmp_path / "three", **QUIET)
    assert reached(again) == reached(solution)
    two = solve(world, Params(gamma_r=0.9), start=starts[:2], out=tmp_path / "two", **QUIET)
    assert reached(open_solution(tmp_path / "two", world=world)) == reached(two)


def test_a_shared_dag_begins_where_the_sub_problem_does() -> None:
    world = load_quietly("ice_rink", max_steps=3)
    whole = enumerate_dag(world, precision="exact", **QUIET)
    start = whole.states(1)[2]
    mine = solve(world, Params(), start=start, precision="float64", **QUIET)
    shared = solve(world, Params(), start=start, dag=whole, precision="float64", **QUIET)
    expected = {state: p for state, p in reached(mine).items() if p}
    assert {state: p for state, p in reached(shared).items() if p} == pytest.approx(expected)
    assert shared.rollouts(3).states(0)[0] == start
    assert f"V_r = {shared.Vr[start]:.7g} at the start" in shared.summary()
    assert whole.starts()[0].tolist() == [0]  # the DAG itself stays what it was


@settings(max_examples=60, deadline=None)
@given(sub_problems())
def test_a_robot_that_always_does_the_best_agrees_with_the_oracle(drawn: tuple[Problem, Drawn]) -> None:
    problem, _ = drawn
    problem.robot = {**problem.robot, "beta_r": math.inf}
    problem.belief = None
    solvable(problem)
    assume(not is_near_a_tie(problem.robot_answers))
    check_solve(problem)


@pytest.mark.parametrize("terminal_Vr", [-5.0, -512.0, -8192.0])
def test_a_robot_that_always_does_the_best_may_expect_very_little(terminal_Vr: float) -> None:
    """Below -709, exp(-Q_r) is infinite."""
    world = TwoSteps(3)
    solution = solve(world, Params(beta_r=math.inf, beta_h=2.0, terminal_Vr=terminal_Vr), **QUIET)
    usual = solve(world, Params(beta_r=math.inf, beta_h=2.0, terminal_Vr=-1.0), **QUIET)
    for state, policy in usual.robot_policy.values.items():
        assert solution.robot_policy(state) == policy
        assert solution.Vr[state] == pytest.approx(usual.Vr[state] + terminal_Vr + 1.0)


def test_a_robot_that_always_does_the_best_shares_ties_equally() -> None:
    """Nothing that robot 1 does matters when the human is where it stays: both actions are equally good."""
    world = TwoSteps(3)
    solution = solve(world, Params(beta_r=math.inf, beta_h=2.0), **QUIET)
    assert solution.robot_policy((1, 1)) == {(0,): 0.5, (1,): 0.5}
    strict = solve(world, Params(beta_r=1e6, beta_h=2.0), **QUIET)
    assert solution.robot_policy((0, 0)) == pytest.approx(strict.robot_policy((0, 0)))
    assert max(solution.robot_policy((0, 0)).values()) == 1.0
    assert solution.Vr[(0, 0)] == pytest.approx(strict.Vr[(0, 0)])
    policy = compute_robot_policy(world, [0], [1], beta_r=math.inf, quiet=True)
    assert policy((1, 1)) == {(0,): 0.5, (1,): 0.5}
    bounds = solution.precision
    assert bounds.pi_r >= 0.5  # rounding may decide about a tie, and bounds say so
    rollouts = solution.rollouts(200, seed=1)
    assert rollouts.return_N.mean() == pytest.approx(solution.Vr[(0, 0)], rel=0.1)


# --- compiled worlds --------------------------------------------------------------------------------------------------


EVENTS: dict[str, Any] = {
    "compiled": events.agent_in(0, (2, 1, 9, 9)),
    "a goal": ReachCellGoal(None, 0, (2, 1)),
    "a function of the body": lambda state: state[1][0][0] >= 2,
    "a function of the step": lambda state: state[0] % 2 == 1 and state[1][0][0] >= 2,
}
AS_FUNCTIONS: dict[str, Any] = {
    "compiled": lambda state: 2 <= state[1][0][0] <= 9 and 1 <= state[1][0][1] <= 9,
    "a goal": lambda state: state[1][0][:2] == (2, 1),
}


def worth(state: Any) -> float:
    """Something that depends on the whole state."""
    return -0.5 - 0.25 * state[0] - 0.125 * state[1][0][0]


def some_states(problem: Problem, n: int) -> list[Any]:
    """Some that can be reached, on several levels."""
    return problem.graph.states[1 :: max(1, len(problem.graph.states) // n)][:n]


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("name", ["basics/first_steps", "basics/carousel", "hazards/ice_rink"])
def test_compiled_worlds_stop_where_the_oracle_does(name: str, event: str) -> None:
    """The carousel's actions have no `still`, so that levels are not nested; on ice, chance has a say."""
    for starts in (None, 1, 4):
        problem = problem_of(name, *PARAMETERS["optimists"])
        problem.start = None if starts is None else some_states(problem, starts)
        problem.stop = AS_FUNCTIONS.get(event, EVENTS[event])
        problem.robot = {**problem.robot, "terminal_Vr": worth}
        problem.__dict__.pop("graph", None)
        problem.graph  # noqa: B018 (the oracle takes a function; the engine gets the event itself)
        problem.stop = EVENTS[event]
        for options in ({}, {"out": True}, {"workers": 3}):
            check_solve(problem, **options)
        whole = enumerate_dag(problem.world, precision="exact", **QUIET)
        mine = solve(problem.world, Params(terminal_Vr=worth), start=problem.start, stop=problem.stop, **QUIET)
        shared = solve(problem.world, Params(terminal_Vr=worth), start=problem.start, stop=problem.stop, dag=whole, **QUIET)
        assert all(shared.Vr[state] == value for state, value in mine.Vr.items())


def test_a_compiled_event_is_asked_about_all_bodies_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world, asked = load_quietly("asymmetric_freeing", max_steps=5), []
    event = events.by_fields(lambda fields: asked.append(len(fields)) or fields.inside(2, (3, 2, 3, 2)))
    monkeypatch.setattr(type(world), "decode", lambda *_: pytest.fail("states were made"))
    dag = enumerate_dag(world, stop=event, **QUIET)
    assert sum(asked) == dag.n_bodies - dag.levels.sizes[-1].n_bodies  # on the last level, all states end in any case
    assert len(asked) <= len(dag.level_sizes)


def numbered(problem_start: Any = None, **more: Any) -> ArrayWorld:
    rng = np.random.default_rng(3)
    transitions = []
    for _ in range(4):  # two agents, two actions each
        rows = rng.random((6, 6)) * (rng.random((6, 6)) < 0.5)
        rows[:, 0] += 0.1
        transitions.append(rows / rows.sum(axis=1, keepdims=True))
    everywhere = {f"at {i}": [i] for i in range(6)}
    return ArrayWorld(transitions, max_steps=4, goals=everywhere, n_agents=2, humans=[0], robots=[1], **more)


@pytest.mark.parametrize("stop", [None, lambda s: s[1] == 3, lambda s: s[0] == 2 and s[1] > 2])
@pytest.mark.parametrize("start", [None, [(1, 2)], [(3, 1), (1, 2), (1, 4)]])
def test_array_worlds_agree_with_the_oracle(start: Any, stop: Any) -> None:
    world = numbered()
    world.n_agents, world.n_actions = 2, 2
    goals = world.possible_goal_generator
    problem = Problem(world, [0], [1], goals, start=start, stop=stop, robot={"terminal_Vr": lambda s: -1.0 - s[1] / 8})
    check_solve(problem)
    check_solve(problem, out=True)


def test_starts_far_apart_leave_levels_out() -> None:
    """All runs of the first start have stopped before the second one starts."""
    world = numbered()
    dag = enumerate_dag(world, start=[(0, 1), (3, 2)], stop=lambda s: s[0] == 1, **QUIET)
    assert dag.level_values == [0, 1, 3, 4]
    assert dag.place_of((3, 2)) == (2, 0)
    with pytest.raises(InvalidStateError):
        dag.place_of((2, 2))
    steady = two_steps()
    steady.time_homogeneous = True
    dag = enumerate_dag(steady, start=[(0, 0), (2, 1)], stop=lambda s: s == (0, 0), **QUIET)
    assert dag.level_values == [0, 2]
    assert dag.terminal_states() == [(0, 0), (2, 1)]


# --- what ends are worth ----------------------------------------------------------------------------------------------


def constant(state: Any) -> float:
    return -0.3


@pytest.mark.parametrize("precision", ["float16", "float64"])
@pytest.mark.parametrize("make", [lambda: load_quietly("ice_rink", max_steps=3), lambda: Ring(4), numbered])
def test_a_function_that_is_constant_gives_the_bits_of_the_constant(make: Any, precision: str, tmp_path: Path) -> None:
    world = make()
    given = [Params(terminal_Vr=-0.3, zeta=zeta, gamma_r=0.9) for zeta in (1, 2)]
    asked = [params.replace(terminal_Vr=constant) for params in given]
    for i, out in enumerate((None, True, tmp_path)):
        for expected, found in zip(
            solve(world, given, out=out if out is not tmp_path else tmp_path / "constant", precision=precision, **QUIET),
            solve(world, asked, out=out, precision=precision, workers=1 + i, **QUIET),
            strict=True,
        ):
            for name in ("V_r", "U_r", "X_h", "Vh_e", "Vh_m"):
                theirs, ours = getattr(expected.values, name), getattr(found.values, name)
                assert all(a.tobytes() == b.tobytes() for a, b in zip(theirs, ours, strict=True))
            assert found.precision == expected.precision
            assert found.rollouts(20).return_N.tolist() == expected.rollouts(20).return_N.tolist()
    assert damage_in(tmp_path) == []


def test_each_terminal_state_is_asked_about_once_for_all_parameters() -> None:
    world = load_quietly("asymmetric_freeing", max_steps=4)
    asked = Counter[Any]()

    def function(state: Any) -> float:
        asked[state] += 1
        return -1e-10

    solutions = solve(world, [Params(zeta=zeta, terminal_Vr=function) for zeta in (1, 1.5, 2)], **QUIET)
    ends = solutions[0].dag.terminal_states()
    assert asked == Counter(ends)
    assert {state[0] for state in ends} == {4}


@pytest.mark.parametrize(
    ("said", "message"),
    [(0.0, "and negative"), (1, "and negative"), (math.nan, "and negative"), (-math.inf, "and negative"),
     (None, "a negative number"), ("much", "a negative number")],
)  # fmt: skip
def test_what_a_function_says_of_ends_is_checked(said: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"terminal_Vr\(\(4, .*{message}"):
        solve(Ring(4), Params(terminal_Vr=lambda state: said), **QUIET)


def test_an_error_of_the_function_comes_with_its_state() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        solve(TwoSteps(), Params(terminal_Vr=lambda state: 1 / 0), **QUIET)
    assert "terminal_Vr((2, 0))" in caught.value.__notes__[0]


# --- stores -----------------------------------------------------------------------------------------------------------


def is_far(state: Any) -> bool:
    return state[1] == 2


def is_late(state: Any) -> bool:
    return state[0] > 2


def fails_once(state: Any) -> float:
    """Not part of its source, so not of what identifies it: whether the machine lets it."""
    if "EMPO_BI_TEST_FAILS_AT" in os.environ and state[0] <= int(os.environ["EMPO_BI_TEST_FAILS_AT"]):
        raise KeyboardInterrupt
    return -0.25 - state[0]


KINDS: dict[str, Any] = {
    "compiled": (lambda: load_quietly("ice_rink", max_steps=4), events.agent_in(0, (2, 1, 9, 9))),
    "compiled, by function": (lambda: load_quietly("ice_rink", max_steps=4), is_late),
    "arrays": (numbered, is_far),
    "Python": (lambda: Ring(4), is_far),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_of_a_sub_problem_is_never_taken_for_another(kind: str, tmp_path: Path) -> None:
    make, stop = KINDS[kind]
    world = make()
    dag = enumerate_dag(world, stop=stop, store=tmp_path / "dag", **QUIET)
    start = [dag.states(1)[0], dag.states(1)[-1], dag.states(2)[-1]]
    for other in (
        {},
        {"start": start},
        {"start": start, "stop": stop},
        {"stop": is_late if stop is not is_late else is_far},
    ):
        with pytest.raises(StoreMismatchError, match=r"differs in (start|stop)"):
            enumerate_dag(make(), store=tmp_path / "dag", **other, **QUIET)
    with pytest.raises(StoreMismatchError, match=r"the same stop|differs in stop"):
        enumerate_dag(make(), store=tmp_path / "dag", stop=lambda s: False, **QUIET)
    again = enumerate_dag(make(), stop=stop, store=tmp_path / "dag", **QUIET)
    assert_same_dags(again, enumerate_dag(world, stop=stop, **QUIET))
    assert damage_in(tmp_path) == []
    if kind != "arrays":  # a reader that was written from docs/format.md, for all worlds but numbered ones
        assert_same(StoreReader(tmp_path / "dag"), again, world)
    params = Params(terminal_Vr=-0.5)
    first = solve(world, params, start=start, stop=stop, out=tmp_path / "out", **QUIET)
    found = open_solution(tmp_path / "out", world=make())
    assert (
        dict(found.Vr.items())
        == dict(first.Vr.items())
        == dict(solve(world, params, start=start, stop=stop, out=True, **QUIET).Vr.items())
    )
    assert damage_in(tmp_path / "out") == []
    with pytest.raises(StoreMismatchError, match="differs in start, stop"):
        solve(make(), params, out=tmp_path / "out", **QUIET)
    opened = open_dag(tmp_path / "out" / "dag", world=make())
    assert dict(solve(make(), params, dag=opened, **QUIET).Vr.items()) == dict(first.Vr.items())


@pytest.mark.parametrize("kind", KINDS)
def test_interrupted_work_on_a_sub_problem_ends_with_the_same_files(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, stop = KINDS[kind]
    start = enumerate_dag(make(), **QUIET).states(1)[:3]
    options: dict[str, Any] = {"start": start, "stop": stop, **QUIET}
    params = Params(terminal_Vr=fails_once)
    solve(make(), params, out=tmp_path / "peace", **options)
    n_bodies = open_dag(tmp_path / "peace" / "dag").n_bodies
    for n in range(1, n_bodies, max(1, n_bodies // 6)):
        with pytest.raises(TooManyStatesError):
            enumerate_dag(make(), store=tmp_path / "war" / "dag", max_states=n, precision="exact", **options)
    n_finished = 0
    for step in (3, 2, 1):
        monkeypatch.setenv("EMPO_BI_TEST_FAILS_AT", str(step))
        with contextlib.suppress(KeyboardInterrupt):
            solve(make(), params, out=tmp_path / "war", **options)
            n_finished += 1
    assert n_finished < 3
    monkeypatch.delenv("EMPO_BI_TEST_FAILS_AT")
    solve(make(), params, out=tmp_path / "war", **options)
    assert_same_trees(tmp_path / "war", tmp_path / "peace")


def test_a_folder_with_a_function_of_ends_opens_without_it(tmp_path: Path) -> None:
    world = load_quietly("ice_rink", max_steps=2)
    solved = solve(world, Params(terminal_Vr=worth), out=tmp_path, **QUIET)
    with open_solution(tmp_path) as found:
        assert dict(found.Vr.items()) == dict(solved.Vr.items())
    asked = Counter[Any]()
    unknown = solve(world, Params(terminal_Vr=lambda state: asked.update([state]) or -1.0), out=tmp_path, **QUIET)
    assert sum(asked.values()) == unknown.dag.level_sizes[-1]  # no function can be told from another lambda
    assert len(list(tmp_path.glob("solution-*"))) == 2


def test_a_stop_that_only_a_view_of_the_dag_has_is_named_when_results_are_opened(tmp_path: Path) -> None:
    world = load_quietly("ice_rink", max_steps=3)
    whole = solve(world, out=tmp_path, **QUIET)
    stop = events.agent_in(0, (2, 1, 9, 9))
    part = solve(world, dag=whole.dag, stop=stop, out=tmp_path, **QUIET)
    assert dict(part.Vr.items()) != dict(whole.Vr.items())
    assert dict(solve(world, dag=whole.dag, stop=stop, out=tmp_path, **QUIET).Vr.items()) == dict(part.Vr.items())
    opened, refused = 0, 0
    for folder in tmp_path.glob("solution-*"):
        try:
            opened += dict(open_solution(folder).Vr.items()) == dict(whole.Vr.items())
        except StoreMismatchError as error:
            refused += "with a stop that the DAG beside it does not have" in str(error)
    assert (opened, refused) == (1, 1)


def test_the_planner_never_asks_about_ends() -> None:
    asked = Counter[Any]()
    params = Params(terminal_Vr=lambda state: asked.update([state]) or -1.0)
    plan(load_quietly("asymmetric_freeing", max_steps=6), params=params, progress=False)
    assert not asked


def test_a_sub_problem_is_exported_and_tabulated(tmp_path: Path) -> None:
    world = load_quietly("ice_rink", max_steps=4)
    start = enumerate_dag(world, **QUIET).states(1)[:2]
    solution = solve(world, Params(beta_r=math.inf), start=start, stop=events.agent_in(0, (2, 1, 9, 9)), **QUIET)
    model = solution.dag.to_drn(tmp_path / "part.drn", unrolled=True, progress=False)
    assert model.n_states == solution.dag.n_states
    entropy, divergence = robot_entropy(solution), robot_divergence(solution, solution)
    assert np.nanmin(entropy) >= 0
    assert np.nanmax(divergence) == 0
    soft = solve(world, Params(beta_r=2.0), dag=solution.dag, **QUIET)
    differences = compare(solution, soft).most_different(1, by="distance")
    assert differences
    assert "log-odds" not in str(differences[0])  # which are infinite


# --- what users give --------------------------------------------------------------------------------------------------


def test_what_is_no_start_or_stop_is_refused() -> None:
    world = load_quietly("ice_rink", max_steps=2)
    late = (9, *world.initial_state()[1:])
    with pytest.raises(ValueError, match=r"start=\[\]; give a state"):
        solve(world, start=[], **QUIET)
    with pytest.raises(InvalidStateError, match="a state at step 9, but this world has steps 0 to 2"):
        solve(world, start=late, **QUIET)
    with pytest.raises(InvalidStateError):
        solve(world, start=(0, "nowhere"), **QUIET)
    with pytest.raises(InvalidStateError, match=r"start=\[\[0, 1\]\]: unhashable"):
        solve(Ring(), start=[[0, 1]], **QUIET)
    with pytest.raises(
        InvalidStateError, match="start='nowhere': the world was asked about this state and raised ValueError"
    ):
        solve(Ring(), start="nowhere", **QUIET)
    with pytest.raises(TypeError, match="is not an event"):
        solve(world, stop=3, **QUIET)
    with pytest.raises(TypeError, match="is not one; give a goal"):
        solve(Ring(), stop=events.agent_in(0, (1, 1)), **QUIET)
    with pytest.raises(TypeError, match="said 3 of a state"):
        solve(Ring(), stop=lambda state: 3, **QUIET)


def test_a_dag_without_the_states_to_start_with_is_refused() -> None:
    world = Ring(4)
    dag = enumerate_dag(world, start=(2, 1), **QUIET)
    with pytest.raises(ValueError, match="does not have the state to start with"):
        solve(world, dag=dag, start=(0, 0), **QUIET)
    stopped = enumerate_dag(world, stop=is_far, **QUIET)
    with pytest.raises(ValueError, match="was enumerated with another stop"):
        solve(world, dag=stopped, stop=is_late, **QUIET)
    assert solve(world, dag=stopped, stop=is_far, **QUIET).dag.n_states == stopped.n_states


def test_chances_begin_in_all_states_to_start_with() -> None:
    solution = solve(Ring(4), start=[(1, 2), (1, 1)], level_fct=step_of, **QUIET)
    assert solution.dag.states(0) == [(1, 2), (1, 1)]
    assert solution.reached[0].tolist() == [0.5, 0.5]
    episodes = solution.rollouts(40)
    assert {episodes.states(i)[0] for i in range(40)} == {(1, 2), (1, 1)}


def test_several_workers_find_the_same_sub_problem() -> None:
    world = Ring(4)
    alone = enumerate_dag(world, start=[(1, 2), (1, 1)], stop=is_far, **QUIET)
    assert_same_dags(enumerate_dag(world, start=[(1, 2), (1, 1)], stop=is_far, workers=2, **QUIET), alone)


# --- hierarchical planning --------------------------------------------------------------------------------------------

TWO_ROOMS = """
We We We We We We We
We Ay .. .. .. .. We
We .. .. We Ae .. We
We We We We We We We
"""


class RoomGoals:
    """A human wants to be on some cell of the room that it is in."""

    def __init__(self, world: Any) -> None:
        self.world = world

    def generate(self, state: Any, human: int) -> Iterator[tuple[Any, float]]:
        is_first = state[1][human][0] <= 3
        cells = [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)] if is_first else [(4, 1), (5, 1), (4, 2), (5, 2)]
        for cell in cells:
            yield ReachCellGoal(self.world, human, cell), 1 / len(cells)


@pytest.mark.parametrize("beta_r", [10.0, math.inf])
def test_rooms_solved_one_by_one_are_worth_what_the_whole_is(beta_r: float) -> None:
    """Goals of a room are none of the next one's, so that the door splits the problem: all numbers are the same."""
    world = load_quietly({"map": TWO_ROOMS, "max_steps": 7, "action_class": "SmallActions"})
    goals = RoomGoals(world)
    options: dict[str, Any] = {"possible_goal_generator": goals, "precision": "float64", **QUIET}
    params = Params(beta_h=8, beta_r=beta_r, gamma_h=0.95, gamma_r=0.95, zeta=1.5)
    whole = solve(world, params, **options)

    through_the_door = events.agent_in(0, (4, 1, 5, 2))
    first_room = enumerate_dag(world, stop=through_the_door, precision="exact", **QUIET)
    second = solve(world, params, start=first_room.terminal_states(), **options)
    first = solve(world, params.replace(terminal_Vr=second.Vr.__getitem__), dag=first_room, **options)

    assert first.dag.n_states < whole.dag.n_states
    for part in (first, second):
        assert dict(part.Vr.items()) == {state: whole.Vr[state] for state in part.Vr}
    going_on = list(first.robot_policy.values)
    assert all(first.robot_policy(state) == whole.robot_policy(state) for state in going_on)
    alone = solve(world, params, dag=first_room, **options)
    assert alone.Vr[world.initial_state()] != whole.Vr[world.initial_state()]  # what comes later does matter
