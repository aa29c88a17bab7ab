"""The numbers in a report are those of the solution, asked another way: by state, of the world, of the chain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import Page
from planning_worlds import Places, TwoSteps

from empo_bi import Params, Solution, compute_robot_policy, load_world, solve, write_report
from empo_bi.report.pictures import COLUMNS, MOST_PIXELS, TILE, pictures_of

PARAMS = Params(gamma_h=0.99, gamma_r=0.98, zeta=2, beta_r=20)
DOORS = """
map: |
  We We We We We
  We Ay .. Cr We
  We Kr .. Ae We
  We We We We We
orientations: [e, w]
max_steps: 3
stumble_probability: 0.25
possible_goals: ["1,1", "1,1, 3,2", {goal: [2, 1], weight: 2}]
"""


def written(solution: Solution, folder: Path, **options: Any) -> Page:
    return Page(write_report(solution, folder / "report.html", overwrite=True, progress=False, **options).path)


@pytest.fixture(scope="module")
def freeing() -> Iterator[Solution]:
    with solve(load_world("asymmetric_freeing", max_steps=6), PARAMS, precision="float64", progress=False) as solution:
        yield solution


@pytest.fixture(scope="module")
def doors() -> Iterator[Solution]:
    with solve(load_world(DOORS), PARAMS, precision="float64", progress=False) as solution:
        yield solution


@pytest.fixture(scope="module", params=["all", "few"])
def page(request: pytest.FixtureRequest, freeing: Solution, tmp_path_factory: pytest.TempPathFactory) -> Page:
    few: dict[str, Any] = {"max_states": 60} if request.param == "few" else {"min_probability": 0.0, "max_states": 10_000}
    return written(freeing, tmp_path_factory.mktemp(request.param), **few)


def states_of(page: Page, solution: Solution) -> list[Any]:
    by_level = [solution.dag.states(t) for t in range(solution.dag.horizon + 1)]
    return [by_level[t][place] for t, place in map(page.where, range(len(page)))]


def check_numbers(page: Page, solution: Solution, every: int = 1) -> None:
    """All numbers of each state against ``solution.at``."""
    states, data = states_of(page, solution), page.data
    n_terminal = 0
    for n in range(0, len(page), every):
        told = solution.at(states[n])
        assert data["state"][n] == repr(states[n])
        assert (data["level"][n], data["V_r"][n], data["U_r"][n]) == (told.level, told.V_r, told.U_r)
        assert bool(data["goes_on"][n]) is not told.is_terminal
        assert data["reached"][n] == solution.reached[told.level][data["place"][n]]
        n_terminal += told.is_terminal
        if told.is_terminal:
            assert not data["outcome_count"][n].any()
            continue
        assert dict(zip(solution.humans, data["X_h"][n].tolist(), strict=True)) == told.power
        assert dict(zip(map(tuple, page.head["robot_profiles"]), data["pi_r"][n].tolist(), strict=True)) == told.robot_policy
        assert dict(zip(map(tuple, page.head["robot_profiles"]), data["Q_r"][n].tolist(), strict=True)) == told.Q_r
        for h, human in enumerate(solution.humans):
            marginal = np.asarray(solution.prior(states[n], human))  # sums to what the weights sum to
            np.testing.assert_allclose(data["marginal"][n, h], marginal / marginal.sum(), rtol=1e-6)
            for goal, weight, alone, helped, policy in told.goals[human]:
                g = [entry["name"] for entry in page.head["goals"][h] if entry].index(repr(goal))
                assert data["weight"][n if len(data["weight"]) > 1 else 0, h, g] == weight
                assert data["Vh_m"][n, h, g] == np.float32(alone)
                assert data["Vh_e"][n, h, g] == np.float32(helped)
                assert data["pi_h"][n, h, g].tolist() == policy.astype(np.float32).tolist()
                assert data["attained"][n, h, g] == goal.is_achieved(states[n])
    assert n_terminal > 0


def check_transitions(page: Page, solution: Solution, every: int = 1) -> None:
    """Outcomes of every profile against the world, successors against the Markov chain."""
    states, chain = states_of(page, solution), solution.markov_chain
    number_of = {state: n for n, state in enumerate(states)}
    place_of = {state: i for i, state in enumerate(chain.states)}
    n_agents, n_actions = len(page.head["agents"]), len(page.head["actions"])
    for n in range(0, len(page), every):
        expected: dict[int, float] = {}
        for place, p in chain[place_of[states[n]]].items():
            number = number_of.get(chain.states[place], -1)
            expected[number] = expected.get(number, 0.0) + p
        assert page.successors(n) == pytest.approx(expected, rel=1e-9)
        for digits in itertools.product(range(n_actions), repeat=n_agents):
            outcomes: dict[int, float] = {}
            for p, successor in solution.world.transition_probabilities(states[n], list(digits)) or []:
                number = number_of.get(successor, -1)
                outcomes[number] = outcomes.get(number, 0.0) + p
            j = sum(action * n_actions**agent for agent, action in enumerate(digits))
            assert page.outcomes(n, j) == pytest.approx(outcomes, rel=1e-9)


def test_every_number_of_a_state_is_that_of_the_solution(page: Page, freeing: Solution) -> None:
    check_numbers(page, freeing, every=max(1, len(page) // 60))


def test_outcomes_are_those_of_the_world_and_successors_those_of_the_chain(page: Page, freeing: Solution) -> None:
    check_transitions(page, freeing, every=max(1, len(page) // 25))


def test_doors_keys_and_chance_are_told_as_well(doors: Solution, tmp_path: Path) -> None:
    for options in ({}, {"max_states": 30}):
        page = written(doors, tmp_path, **options)
        check_numbers(page, doors, every=max(1, len(page) // 40))
        check_transitions(page, doors, every=max(1, len(page) // 20))


def test_a_world_in_python_is_told_by_its_states(tmp_path: Path) -> None:
    with solve(TwoSteps(), PARAMS, precision="float64", progress=False) as solution:
        page = written(solution, tmp_path)
        check_numbers(page, solution)
        check_transitions(page, solution)
        assert "grid" not in page.head
        assert page.head["actions"] == ["action 0", "action 1"]
        assert page.head["title"] == "TwoSteps"


def test_goals_that_only_some_states_have_have_weights_by_state(tmp_path: Path) -> None:
    class Sometimes:
        def generate(self, state: Any, human: int) -> Iterator[tuple[Any, float]]:
            yield from list(Places(0.5, 0.25).generate(state, human))[: 1 + state[0] % 2]

    world = TwoSteps()
    world.possible_goal_generator = Sometimes()
    with solve(world, PARAMS, precision="float64", progress=False) as solution:
        page = written(solution, tmp_path)
        check_numbers(page, solution)
        assert [math.isnan(weight) for weight in page.data["weight"][page.data["level"] == 0][0, 0]] == [False, True]
        assert [math.isnan(weight) for weight in page.data["weight"][page.data["level"] == 1][0, 0]] == [False, False]


def test_a_prior_of_another_maker_has_no_values_of_phase_1(freeing: Solution, tmp_path: Path) -> None:
    world = load_world("asymmetric_freeing", max_steps=2)
    humans, robots = world.human_agent_indices, world.robot_agent_indices

    class Still:
        def __call__(self, state: Any, human: int, goal: Any = None) -> Any:
            return np.array([0.7, 0.1, 0.1, 0.1])

    policy = compute_robot_policy(world, humans, robots, human_policy_prior=Still(), gamma_h=0.99, quiet=True)
    page = written(policy.solution, tmp_path)
    assert page.data["Vh_m"].shape[0] == page.data["pi_h"].shape[0] == 0
    np.testing.assert_allclose(page.data["marginal"][0], [[0.7, 0.1, 0.1, 0.1]] * 2, rtol=1e-6)
    for n in range(len(page)):
        assert page.data["V_r"][n] == policy.solution.values.V_r[page.data["level"][n]][page.data["place"][n]]


# --- levels -----------------------------------------------------------------------------------------------------------


def test_summaries_by_level_are_those_of_all_states_weighted_by_their_probability(page: Page, freeing: Solution) -> None:
    for t in range(freeing.dag.horizon + 1):
        mass = freeing.reached[t]
        told = [(float(mass[s]), freeing.at(state)) for s, state in enumerate(freeing.dag.states(t)) if mass[s] > 0]
        assert page.data["level_states"][t] == freeing.dag.level_sizes[t]
        assert page.data["level_reached"][t] == len(told)
        assert page.data["level_mass"][t] == pytest.approx(1, abs=1e-12)
        going = [(p, one) for p, one in told if not one.is_terminal]
        if not going:
            assert np.isnan(page.data["level_X_h"][t]).all()
            assert np.isnan(page.data["level_V_r"][t]).all()
            continue
        total = sum(p for p, _ in going)
        expected = sum(p * one.V_r for p, one in going) / total
        assert page.data["level_V_r"][t, 0] == pytest.approx(expected, rel=1e-12)
        for m, q in enumerate(page.head["quantiles"]):
            value = page.data["level_V_r"][t, 1 + m]
            assert sum(p for p, one in going if one.V_r <= value) / total >= q - 1e-9
            assert sum(p for p, one in going if one.V_r < value) / total < q + 1e-9
        nats = [-sum(q * math.log(q) for q in one.robot_policy.values() if q > 0) for _, one in going]
        entropy = sum(p * b for (p, _), b in zip(going, nats, strict=True)) / total
        assert page.data["level_entropy"][t] == pytest.approx(entropy, rel=1e-9)
        for h, human in enumerate(freeing.humans):
            power = sorted((one.power[human], p) for p, one in going)
            assert page.data["level_X_h"][t, 0, h] == pytest.approx(sum(x * p for x, p in power) / total, rel=1e-12)
            for m, q in enumerate(page.head["quantiles"]):
                value = page.data["level_X_h"][t, 1 + m, h]
                assert sum(p for x, p in power if x <= value) / total >= q - 1e-9
                assert sum(p for x, p in power if x < value) / total < q + 1e-9


def test_where_agents_are_counts_all_states_also_those_left_out(page: Page, freeing: Solution) -> None:
    width = page.head["grid"]["width"]
    for t in range(freeing.dag.horizon + 1):
        expected = np.zeros(page.data["cell_reached"][t].shape)
        for p, state in zip(freeing.reached[t], freeing.dag.states(t), strict=True):
            for i, (x, y, *_) in enumerate(state[1]):
                expected[i, y * width + x] += p
        np.testing.assert_allclose(page.data["cell_reached"][t], expected, rtol=1e-6)


def test_parameters_and_sizes_are_those_of_the_solution(page: Page, freeing: Solution) -> None:
    assert page.head["params"] == freeing.params.describe()
    sizes = page.head["sizes"]
    assert (sizes["states"], sizes["bodies"]) == (freeing.dag.n_states, freeing.dag.n_bodies)
    assert (sizes["transitions"], sizes["joint actions"]) == (freeing.dag.n_transitions, 64)
    assert page.head["precision"] == freeing.precision.types


# --- pictures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["freeing", "doors"])
def test_pictures_are_those_of_render_to_the_pixel(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    solution = request.getfixturevalue(which)
    page = written(solution, tmp_path, max_states=200)
    states = states_of(page, solution)
    for n in range(0, len(page), 9):
        np.testing.assert_array_equal(page.picture(n), solution.world.render(states[n], tile=page.head["grid"]["tile"]))
        assert page.data["words"][n] == solution.world.describe(states[n])


def test_states_with_equal_others_differ_in_one_agent_only(page: Page, freeing: Solution) -> None:
    states, others = states_of(page, freeing), page.data["others"]
    for i in range(3):
        rest = [(step, agents[:i], agents[i + 1 :], mobile, mutable) for step, agents, mobile, mutable in states]
        numbers = dict[Any, int]()
        for n, of in enumerate(rest):
            assert numbers.setdefault(of, int(others[n, i])) == others[n, i]
        assert len(set(numbers.values())) == len(numbers)
    cells = [[y * 11 + x for x, y, *_ in state[1]] for state in states]
    assert page.data["agent_cell"].tolist() == cells
    assert page.data["agent_direction"].tolist() == [[entry[2] for entry in state[1]] for state in states]


@pytest.mark.parametrize("humans", [None, [2, 0]])
def test_humans_are_told_by_their_place_in_the_solution_whatever_their_numbers(tmp_path: Path, humans: Any) -> None:
    world = load_world("whose_door_first", max_steps=3)
    with solve(world, PARAMS, human_agent_indices=humans, precision="float64", progress=False) as solution:
        assert solution.humans == (humans or [0, 2])
        check_numbers(written(solution, tmp_path), solution, every=7)


def test_large_maps_take_small_pictures_and_only_changed_cells_are_looked_at() -> None:
    n = 120
    rows = [["We"] * n for _ in range(n)]
    for y, x, code in ((1, 1, "Ay"), (1, 2, ".."), (2, 1, ".."), (2, 2, "Ae")):
        rows[y][x] = code
    goals = ["1,1", "2,1", "1,2", "2,2"]
    world = load_world({"map": [" ".join(row) for row in rows], "max_steps": 2, "possible_goals": goals})
    start = world.initial_state()
    states = [start, *(successor for _, successor in world.transition_probabilities(start, [3, 3]))]
    found = pictures_of(world, states)
    assert found.first(n).size <= 3 * MOST_PIXELS
    for k, state in enumerate(states):
        shown = found.first_C.copy()
        shown[found.cell_D[found.start_N[k] : found.start_N[k + 1]]] = found.shown_D[found.start_N[k] : found.start_N[k + 1]]
        sprites = found.sheet.reshape(-1, TILE, COLUMNS, TILE, 3).swapaxes(1, 2).reshape(-1, TILE, TILE, 3)
        corner = sprites[shown.reshape(n, n)[:4, :4]].swapaxes(1, 2).reshape(4 * TILE, 4 * TILE, 3)
        assert np.array_equal(corner, world.render(state, tile=TILE)[: 4 * TILE, : 4 * TILE])
