"""Decisions, extremes, courses, entropies and comparisons, held to plain loops, closed forms and properties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planning_worlds import At, Places, TwoSteps
from state_reports import report_of

from empo_bi import Params, Solution, analysis, load_world, solve
from empo_bi.analysis.alignment import shared_places
from empo_bi.analysis.ranking import smallest
from empo_bi.analysis.uncertainty import divergence_of_logits, entropy_of_logits

EXACT: dict[str, Any] = {"precision": "float64", "progress": False}
PARAMS = Params(gamma_h=0.98, gamma_r=0.95, zeta=2, beta_r=20)


def solved(name: str = "asymmetric_freeing", steps: int = 6, **params: Any) -> Solution:
    return solve(load_world(name, max_steps=steps), PARAMS.replace(**params), **EXACT)


@pytest.fixture(scope="module")
def solution() -> Solution:
    return solved()


def some_states(solution: Solution) -> list[Any]:
    """Of every level that is decided on, the most likely state and one from the middle."""
    found = []
    for t in range(solution.dag.horizon):
        states = solution.dag.states(t)
        found += [states[int(np.argmax(solution.reached[t]))], states[len(states) // 2]]
    return found


# --- decisions --------------------------------------------------------------------------------------------------------


def humans_play(solution: Solution, state: Any) -> list[tuple[float, dict[int, int]]]:
    """What the humans do together, from their policies by goal."""
    rows = [(1.0, {})]
    for human, goals in report_of(solution, state).goals.items():
        weights = np.array([row[1] for row in goals])
        policy = weights @ np.array([row[4] for row in goals]) / weights.sum()
        rows = [(p * q, {**played, human: a}) for p, played in rows for a, q in enumerate(policy.tolist())]
    return rows


@pytest.mark.parametrize("name", ["asymmetric_freeing", "ice_rink", "carousel"])
def test_what_is_behind_a_decision_is_what_transitions_say(name: str) -> None:
    solution = solved(name, 4)
    world = solution.world
    for state in some_states(solution):
        found = analysis.decision_at(solution, state)
        report = report_of(solution, state)
        assert found.profiles == solution.robot_profiles
        assert found.probability_R == pytest.approx(list(report.robot_policy.values()), rel=1e-14)
        assert pytest.approx(list(report.Q_r.values()), rel=1e-14) == found.Q_R
        for r, robots in enumerate(found.profiles):
            expected, value = np.zeros(len(solution.humans)), 0.0
            for share, played in humans_play(solution, state):
                actions = played | dict(zip(solution.robots, robots, strict=True))
                profile = [actions.get(agent, 0) for agent in range(len(world.agents))]
                for p, successor in world.transition_probabilities(state, profile):
                    after = report_of(solution, successor)
                    expected += share * p * np.array([after.power.get(h, 0.0) for h in solution.humans])
                    value += share * p * 0.95 * after.V_r
            assert found.power_after_RH[r] == pytest.approx(expected, rel=1e-9, abs=1e-15)
            assert found.Q_R[r] == pytest.approx(value, rel=1e-9), "the same successors give Q_r"
        best = found.names[int(found.probability_R.argmax())]
        assert str(found).splitlines()[1].startswith(f"  {best}: probability {found.probability_R.max():.4f}")


def test_nothing_is_decided_in_terminal_states(solution: Solution) -> None:
    with pytest.raises(ValueError, match="is terminal, so nothing is decided there"):
        analysis.decision_at(solution, solution.dag.states(solution.dag.horizon)[0])


def test_profiles_are_named_robot_by_robot_also_in_worlds_without_names() -> None:
    assert analysis.decision_at(solve(TwoSteps(), **EXACT), (0, 0)).names == ["action 0", "action 1"]
    assert analysis.decision_at(solved(steps=2), load_world("asymmetric_freeing", max_steps=2).initial_state()).names == [
        "still", "left", "right", "forward",
    ]  # fmt: skip


# --- extremes ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-3, 3), max_size=30), st.integers(1, 35))
def test_the_smallest_are_those_of_a_stable_sort(values: list[int], n: int) -> None:
    value_M = np.array(values, dtype=np.float64)
    assert smallest(value_M, n).tolist() == np.argsort(value_M, kind="stable")[:n].tolist()


@pytest.mark.parametrize("human", [None, 0, 1])
def test_the_most_and_least_empowered_are_those_that_sorting_finds(solution: Solution, human: int | None) -> None:
    level = 4
    reports = [report_of(solution, state) for state in solution.dag.states(level)]
    values = [report.U_r if human is None else report.power[human] for report in reports]
    most = sorted(range(len(values)), key=lambda s: (-values[s], s))
    least = sorted(range(len(values)), key=lambda s: (values[s], s))
    for found, expected in (
        (analysis.most_empowered(solution, level, human=human, n=7), most),
        (analysis.least_empowered(solution, level, human=human, n=7), least),
    ):
        assert [entry.place for entry in found] == expected[:7]
        assert [entry.state for entry in found] == [reports[s].state for s in expected[:7]]
        assert [entry.value for entry in found] == [values[s] for s in expected[:7]]
    likely = [s for s in most if solution.reached[level][s] >= 0.01]
    found = analysis.most_empowered(solution, level, human=human, n=3, min_probability=0.01)
    assert [entry.place for entry in found] == likely[:3]
    assert likely[:3] != most[:3]


def test_terminal_states_have_no_rank(solution: Solution) -> None:
    assert analysis.most_empowered(solution, -1) == analysis.least_empowered(solution, -1, human=0) == []
    with pytest.raises(ValueError, match="n=0; give a number of states, 1 or more"):
        analysis.most_empowered(solution, 0, n=0)


# --- along a trajectory -----------------------------------------------------------------------------------------------


def test_a_course_has_the_numbers_of_its_states_in_their_order(solution: Solution) -> None:
    states = solution.rollouts(1, seed=3).states(0)
    course = analysis.course_of(solution, [*states, states[2]])
    for n, state in enumerate(course.states):
        report = report_of(solution, state)
        assert course.level_N[n] == report.level == state[0]
        assert course.X_NH[n].tolist() == [report.power.get(human, 0.0) for human in solution.humans]
        assert (course.U_N[n], course.V_N[n]) == (report.U_r, report.V_r)
        for h, human in enumerate(solution.humans):
            for g, goal in enumerate(solution.goals[human]):
                assert course.attained_NHG[n, h, g] == bool(goal.is_achieved(state))
                if not report.is_terminal:
                    assert course.Vh_NHG[n, h, g] == report.goals[human][g][3]
    assert course.gain_NH.shape == (len(states), 2)
    assert course.gain_NH[0].tolist() == (course.X_NH[1] - course.X_NH[0]).tolist()
    with pytest.raises(ValueError, match="states is empty"):
        analysis.course_of(solution, [])


# --- entropy and divergence -------------------------------------------------------------------------------------------


def mean_of(solution: Solution, t: int, over: str, value_of: Any) -> float:
    """A mean over the states of a level that go on, one after the other."""
    total = weight = 0.0
    for place, state in enumerate(solution.dag.states(t)):
        w = float(solution.reached[t][place]) if over == "reached" else 1.0
        if w > 0 and not report_of(solution, state).is_terminal:
            total += w * value_of(state)
            weight += w
    return total / weight


def entropy(policy: Any) -> float:
    return -sum(p * math.log(p) for p in policy if p > 0)


def over_all_goals(solution: Solution, state: Any, human: int) -> Any:
    rows = report_of(solution, state).goals[human]
    weights = np.array([row[1] for row in rows])
    return weights @ np.array([row[4] for row in rows]) / weights.sum()


@pytest.mark.parametrize("over", ["reached", "mean"])
def test_entropies_are_means_over_states(solution: Solution, over: str) -> None:
    robots = analysis.robot_entropy(solution, over=over)
    humans = analysis.human_entropy(solution, 1, over=over)
    towards = analysis.human_entropy(solution, 1, goal=4, over=over)
    assert len(robots) == len(humans) == len(towards) == solution.dag.horizon
    for t in (0, 3, 4):
        expected = mean_of(solution, t, over, lambda s: entropy(report_of(solution, s).robot_policy.values()))
        assert robots[t] == pytest.approx(expected, rel=1e-9)
        assert humans[t] == pytest.approx(
            mean_of(solution, t, over, lambda s: entropy(over_all_goals(solution, s, 1))), rel=1e-6
        )
        assert towards[t] == pytest.approx(
            mean_of(solution, t, over, lambda s: entropy(report_of(solution, s).goals[1][4][4])), rel=1e-6
        )


def test_a_random_robot_has_the_entropy_of_its_actions_and_a_strict_human_none_where_one_action_is_best() -> None:
    solution = solved(steps=3, beta_r=0)
    assert analysis.robot_entropy(solution) == pytest.approx(math.log(4))
    strict = solve(TwoSteps(), Params(beta_h=math.inf, optimistic=True), **EXACT)
    assert analysis.human_entropy(strict, 0, goal=At(1))[1] == 0


@given(
    st.lists(st.floats(-700, 700), min_size=2, max_size=5).flatmap(
        lambda row: st.tuples(st.just(row), st.lists(st.floats(-700, 700), min_size=len(row), max_size=len(row)))
    )
)
def test_closed_forms_are_what_the_definitions_say_where_these_can_be_computed(
    rows: tuple[list[float], list[float]],
) -> None:
    logit, other = (np.array([row]) for row in rows)
    p, q = (np.exp(one - one.max()) / np.exp(one - one.max()).sum() for one in (logit, other))
    assert entropy_of_logits(logit)[0] == pytest.approx(entropy(p[0]), abs=1e-9)
    found = divergence_of_logits(logit, other)[0]
    assert found >= 0
    if (q > 1e-300).all():
        assert found == pytest.approx(sum(a * math.log(a / b) for a, b in zip(p[0], q[0], strict=True) if a > 0), abs=1e-9)


def test_divergences_are_means_over_states_of_the_first() -> None:
    first, second = solved("whose_door_first", 4), solved("whose_door_first", 4, beta_r=5, beta_h=3.0, xi=2.0)

    def divergence(p: Any, q: Any) -> float:
        return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True) if a > 0)

    robots, humans = analysis.robot_divergence(first, second), analysis.human_divergence(first, second, 2)
    towards = analysis.human_divergence(first, second, 2, goal=1, over="mean")
    for t in range(4):
        assert robots[t] == pytest.approx(
            mean_of(
                first, t, "reached", lambda s: divergence(*(report_of(x, s).robot_policy.values() for x in (first, second)))
            ),
            rel=1e-6, abs=1e-12,
        )  # fmt: skip
        assert humans[t] == pytest.approx(
            mean_of(first, t, "reached", lambda s: divergence(*(over_all_goals(x, s, 2) for x in (first, second)))),
            rel=1e-4, abs=1e-9,
        )  # fmt: skip
        assert towards[t] == pytest.approx(
            mean_of(first, t, "mean", lambda s: divergence(*(report_of(x, s).goals[2][1][4] for x in (first, second)))),
            rel=1e-4, abs=1e-9,
        )  # fmt: skip
    assert robots.max() > 1e-3
    assert analysis.robot_divergence(first, first) == pytest.approx(0, abs=1e-15)
    assert analysis.human_divergence(first, first, 2) == pytest.approx(0, abs=1e-15)


def test_a_strict_human_diverges_without_bound_from_a_strict_one_with_another_mind() -> None:
    """Against the worst robot nothing can be attained, so all actions are alike; with the best one, action 1 is better."""
    afraid, hopeful = (solve(TwoSteps(), Params(beta_h=math.inf, optimistic=x), **EXACT) for x in (False, True))
    assert analysis.human_divergence(afraid, hopeful, 0, goal=At(1))[1] == math.inf
    not_yet = sum(p for p, (_, k) in zip(hopeful.reached[1], hopeful.dag.states(1), strict=True) if k == 0)
    assert 0 < not_yet < 1
    assert analysis.human_divergence(hopeful, afraid, 0, goal=At(1))[1] == pytest.approx(not_yet * math.log(2))


# --- comparisons ------------------------------------------------------------------------------------------------------


def test_states_are_matched_by_what_they_are() -> None:
    """Another horizon, another chance: levels have other states in another order."""
    for first, second in ((solved(steps=4), solved(steps=6)), (solved("ice_rink", 3), solved("ice_rink", 4))):
        for t in range(first.dag.horizon + 1):
            own_M, other_M = shared_places(first, second, t)
            own, other = first.dag.states(t), second.dag.states(t)
            assert [own[s] for s in own_M] == [other[s] for s in other_M]
            assert len(own_M) == len(set(own) & set(other))


def test_worlds_with_fewer_states_are_matched_where_they_meet() -> None:
    loaded = [load_world("asymmetric_freeing", max_steps=4, actions=actions) for actions in ("small", "minimal")]
    first, second = (solve(world, PARAMS, **EXACT) for world in loaded)
    with pytest.raises(ValueError, match="different robots or actions"):
        analysis.compare(first, second)
    sure, chancy = (
        solve(load_world("slippery_ledge", max_steps=4, stumble_probability=p), PARAMS, **EXACT) for p in (0.0, 0.3)
    )
    for t in range(5):
        own_M, other_M = shared_places(sure, chancy, t)
        own, other = sure.dag.states(t), chancy.dag.states(t)
        assert [own[s] for s in own_M] == [other[s] for s in other_M]
        assert len(own_M) == len(set(own) & set(other)) > 0


def test_solutions_with_other_robots_are_not_compared() -> None:
    world = load_world("the_many_or_the_few", max_steps=2)
    robots = world.robot_agent_indices
    others = [agent for agent in range(len(world.agents)) if agent not in robots]
    first = solve(world, PARAMS, human_agent_indices=others[:1], robot_agent_indices=robots, **EXACT)
    second = solve(world, PARAMS, human_agent_indices=others[:1], robot_agent_indices=others[1 : 1 + len(robots)], **EXACT)
    for ask in (analysis.compare, analysis.robot_divergence):
        with pytest.raises(ValueError, match="different robots or actions"):
            ask(first, second)


def test_python_worlds_are_matched_too() -> None:
    first, second = solve(TwoSteps(), PARAMS, **EXACT), solve(TwoSteps(3), PARAMS, **EXACT)
    for t in range(3):
        own_M, other_M = shared_places(first, second, t)
        assert [first.dag.states(t)[s] for s in own_M] == [second.dag.states(t)[s] for s in other_M] != []


def test_a_comparison_ranks_states_by_how_much_the_difference_matters() -> None:
    first, second = solved("whose_door_first", 4), solved("whose_door_first", 4, beta_r=4, xi=3)
    found = analysis.compare(first, second)

    def distance(state: Any) -> float:
        return (
            sum(
                abs(p - q)
                for p, q in zip(*(report_of(x, state).robot_policy.values() for x in (first, second)), strict=True)
            )
            / 2
        )

    every = [
        (distance(state), float(first.reached[t][place]), state)
        for t in range(4)
        for place, state in enumerate(first.dag.states(t))
    ]
    for by, rank in (("expected", lambda entry: entry[0] * entry[1]), ("distance", lambda entry: entry[0])):
        most = found.most_different(4, by=by)
        assert [entry.distance for entry in most] == pytest.approx([distance(entry.state) for entry in most])
        expected = sorted((rank(entry) for entry in every), reverse=True)[:4]
        got = [entry.distance * (entry.reached if by == "expected" else 1) for entry in most]
        assert got == pytest.approx(expected, rel=1e-9)
    for t in range(4):
        assert found.distance_T[t] == pytest.approx(mean_of(first, t, "reached", distance), rel=1e-9)
        for h, human in enumerate(first.humans):

            def gain(state: Any, human: int = human) -> float:
                return report_of(second, state).power[human] - report_of(first, state).power[human]

            change = mean_of(first, t, "reached", gain)
            assert found.power_TH[t, h] == pytest.approx(change, rel=1e-9, abs=1e-15)
    assert found.divergence_T == pytest.approx(analysis.robot_divergence(first, second))


def test_reasons_add_up_to_the_change_of_log_odds() -> None:
    first, second = solved("whose_door_first", 4), solved("whose_door_first", 4, beta_r=4, xi=3)
    most = analysis.compare(first, second).most_different(5)
    assert len(most) > 1
    for entry in most:
        before, after = entry.first.probability_R, entry.second.probability_R
        change = math.log(after[entry.more] / after[entry.less]) - math.log(before[entry.more] / before[entry.less])
        assert entry.by_strictness + entry.by_values == pytest.approx(change, rel=1e-9)
        assert after[entry.more] > before[entry.more]
        assert after[entry.less] < before[entry.less]
        told = str(entry)
        assert f"more {entry.first.names[entry.more]}: {before[entry.more]:.3f} -> {after[entry.more]:.3f}" in told
        assert f"{entry.by_values:+.3g} due to values" in told
    stricter = analysis.compare(solved("whose_door_first", 4), solved("whose_door_first", 4, beta_r=40)).most_different(1)[0]
    assert stricter.by_strictness > 0


def test_a_solution_differs_nowhere_from_itself(solution: Solution) -> None:
    found = analysis.compare(solution, solution)
    assert np.abs(found.distance_T).max() == np.abs(found.power_TH).max() == 0
    assert found.most_different() == []
    assert len(str(found).splitlines()) == 2 + solution.dag.horizon


def test_a_comparison_in_writing_says_whose_power_changes() -> None:
    first, second = solved("whose_door_first", 5), solved("whose_door_first", 5, beta_r=1, xi=3)
    found = analysis.compare(first, second)
    over, heads, *rows = str(found).splitlines()
    assert heads.split("  ")[0] == "level"
    assert (found.power_TH[:, 0] != found.power_TH[:, 1]).any(), "columns that differ"
    assert over.index("change of power") <= heads.index(f"human {first.humans[0]}")
    for t, row in enumerate(rows):
        assert row.split()[:3] == [str(t), f"{found.distance_T[t]:.4f}", f"{found.divergence_T[t]:.4g}"]
        for h, human in enumerate(first.humans):
            end = heads.index(f"human {human}") + len(f"human {human}")  # numbers end below the end of the human's name
            assert row[:end].split()[-1] == f"{found.power_TH[t, h]:+.4g}"
            assert row[end : end + 1] in ("", " ")


def test_power_is_not_compared_across_zeta_but_values_are() -> None:
    first, second = solved("whose_door_first", 4), solved("whose_door_first", 4, zeta=1)
    found = analysis.compare(first, second)
    assert not found.same_zeta
    assert "Power X_h is defined with zeta, and zeta differs (2 and 1), so powers cannot be compared." in str(found)
    assert str(found).splitlines()[0].split("  ")[-1].strip() == "change of V_h^e"
    for t in range(4):
        for h, human in enumerate(first.humans):

            def gain(state: Any, human: int = human) -> float:
                rows = [report_of(one, state).goals[human] for one in (second, first)]
                before, after = (sum(r.weight * r.V_h_e for r in row) / sum(r.weight for r in row) for row in rows)
                return before - after

            assert found.value_TH[t, h] == pytest.approx(mean_of(first, t, "reached", gain), rel=1e-9, abs=1e-15)
            assert str(found).splitlines()[2 + t].split()[3 + h] == f"{found.value_TH[t, h]:+.4g}"
    assert "change of V_h^e, human" in found._repr_html_()
    assert "zeta differs" in found._repr_html_()
    told = str(found.most_different(1)[0])
    assert "power next" not in told
    assert "Q_r" in told


def test_power_is_compared_where_zeta_is_the_same() -> None:
    found = analysis.compare(solved("whose_door_first", 4), solved("whose_door_first", 4, beta_r=4))
    assert found.same_zeta
    assert found.note == ""
    assert "change of power" in str(found)
    assert "power next" in str(found.most_different(1)[0])


class Anything(At):
    def is_achieved(self, state: Any) -> int:
        return 1


class Everywhere:
    def generate(self, state: Any, human: int) -> Any:
        yield Anything(0), 1.0


class Elsewhere(TwoSteps):
    def initial_state(self) -> Any:
        return (0, 5)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        return None if state[0] == self.steps else [(1.0, (state[0] + 1, 5))]


def test_what_cannot_be_compared_is_said(solution: Solution) -> None:
    with pytest.raises(ValueError, match=r"different humans, \[0, 1\] and \[0\]"):
        analysis.compare(solution, solve(load_world("asymmetric_freeing", max_steps=2), human_agent_indices=[0], **EXACT))
    with pytest.raises(ValueError, match="share no state"):
        analysis.compare(
            *(solve(world, possible_goal_generator=Everywhere(), **EXACT) for world in (TwoSteps(), Elsewhere()))
        )
    comparison = analysis.compare(solution, solution)
    with pytest.raises(ValueError, match="by='most'; give 'expected'"):
        comparison.most_different(by="most")
    with pytest.raises(ValueError, match="n=0"):
        comparison.most_different(0)


def test_goals_of_state_dependent_generators_are_found_by_name() -> None:
    world = TwoSteps()
    world.possible_goal_generator = Places(0.25, 0.75)
    solution = solve(world, PARAMS, **EXACT)
    name = solution.goal_columns.names[0][1]
    by_name, by_goal = (analysis.human_entropy(solution, 0, goal=goal) for goal in (name, solution.goals[0][1]))
    assert by_name.tolist() == by_goal.tolist()
