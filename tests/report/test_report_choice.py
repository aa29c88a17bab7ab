"""Which states go into a report, and what it says of those that do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from pages import Page

from empo_bi import Params, Solution, load_world, solve, write_report
from empo_bi.report.fitting import FEWEST, fitted_page
from empo_bi.report.state_selection import choose
from empo_bi.report.survey import survey, weighted_summary


@pytest.fixture(scope="module")
def freeing() -> Iterator[Solution]:
    world = load_world("asymmetric_freeing", max_steps=7)
    with solve(world, Params(gamma_h=0.99, gamma_r=0.99, beta_r=50), progress=False) as solution:
        yield solution


@pytest.mark.parametrize(("min_probability", "max_states"), [(0.0, 10**6), (1e-3, 10**6), (0.0, 100), (0.02, 50), (1.0, 1)])
def test_the_most_probable_states_are_there_with_likeliest_successors_and_nothing_else(
    freeing: Solution, min_probability: float, max_states: int
) -> None:
    choice = choose(freeing, survey(freeing), min_probability=min_probability, max_states=max_states)
    reached = [freeing.reached[t] for t in range(8)]
    chosen = set(zip(choice.level_N.tolist(), choice.place_N.tolist(), strict=True))
    ranked = sorted(((-mass[s], t, s) for t, mass in enumerate(reached) for s in range(len(mass)) if mass[s] > 0))
    wanted = {(t, s) for p, t, s in ranked[:max_states] if -p >= min_probability} | {(0, 0)}
    assert choice.n_probable == len(wanted)
    chain, first = freeing.markov_chain, np.cumsum([0, *freeing.dag.level_sizes])
    where = {int(i): n for n, i in enumerate(chain.place_N)}
    frontier, closed = sorted(wanted), set(wanted)
    while frontier:
        t, s = frontier.pop()
        row = chain[int(chain.place_N[first[t] + s])]
        if row:
            best = max(row.values())
            likeliest = {where[i] for i, p in row.items() if p >= best * (1 - 1e-12)}
            after = {(int(np.searchsorted(first, i, side="right")) - 1, i) for i in likeliest}
            found = {(u, int(i - first[u])) for u, i in after} & chosen
            assert found, "a likeliest successor is missing"
            frontier += sorted(found - closed)
            closed |= found
    assert chosen <= closed
    assert choice.mass_N.tolist() == [reached[t][s] for t, s in zip(choice.level_N, choice.place_N, strict=True)]
    assert (choice.level_N[0], choice.place_N[0]) == (0, 0)
    for t in range(8):
        assert (np.diff(choice.mass_N[choice.on_level(t)]) <= 0).all()


def test_what_is_embedded_and_what_is_left_out_add_up(freeing: Solution, tmp_path: Path) -> None:
    page = Page(write_report(freeing, tmp_path / "report.html", max_states=80, progress=False).path)
    n_left_out = 0
    for t in range(8):
        here = page.data["level"] == t
        left_out = np.delete(freeing.reached[t], page.data["place"][here])
        n_left_out += np.count_nonzero(left_out)
        assert page.data["level_embedded"][t] == here.sum() > 0
        assert page.data["level_embedded_mass"][t] + left_out.sum() == pytest.approx(1, abs=1e-12)
    told = page.head["embedded"]
    assert told["left_out"] == n_left_out > 0
    assert told["reached"] == sum(np.count_nonzero(freeing.reached[t]) for t in range(8))
    assert told["smallest_mass"] == pytest.approx(page.data["level_embedded_mass"].min(), rel=1e-9)
    assert (told["states"], told["probable"], told["max_states"]) == (len(page), 80, 80)
    assert page.head["horizon"] == 7


def test_a_state_that_is_not_there_has_number_minus_1(freeing: Solution) -> None:
    choice = choose(freeing, survey(freeing), min_probability=0.0, max_states=60)
    first = np.cumsum([0, *freeing.dag.level_sizes])
    numbers = choice.numbers_of(np.arange(freeing.dag.n_states))
    assert (numbers >= 0).sum() == len(choice)
    assert numbers[first[choice.level_N] + choice.place_N].tolist() == list(range(len(choice)))


@pytest.mark.parametrize(("world", "steps"), [("asymmetric_freeing", 8), ("one_key_two_rooms", 5), ("basics/carousel", 10)])
@pytest.mark.parametrize("aim", [250_000, 350_000])
def test_files_come_near_what_is_aimed_at_where_there_are_states_enough(world: str, steps: int, aim: int) -> None:
    with solve(load_world(world, max_steps=steps), Params(beta_r=20), progress=False) as solution:
        found = survey(solution)
        choice, page = fitted_page(solution, found, min_probability=0.0, aim=aim)
        assert len(choice) < found.reached_T.sum()
        assert 0.7 * aim < len(page) < 1.3 * aim


def test_where_all_states_fit_they_are_all_there_and_never_too_few(freeing: Solution) -> None:
    found = survey(freeing)
    everything, _ = fitted_page(freeing, found, min_probability=0.0, aim=10**8)
    assert len(everything) == found.reached_T.sum()
    likely, _ = fitted_page(freeing, found, min_probability=1e-2, aim=10**8)
    assert likely.n_probable == sum(int((freeing.reached[t] >= 1e-2).sum()) for t in range(8)) > 50
    fewest, page = fitted_page(freeing, found, min_probability=0.0, aim=1_000)
    assert fewest.n_probable == FEWEST
    assert len(page) > 1_000


def test_quantiles_of_a_weighted_sample_worked_out_by_hand() -> None:
    assert weighted_summary(np.array([3.0, 1.0, 2.0]), np.array([0.2, 0.3, 0.5])).tolist() == pytest.approx([1.9, 1, 2, 3])
    assert weighted_summary(np.array([5.0]), np.array([1e-9])).tolist() == [5, 5, 5, 5]
