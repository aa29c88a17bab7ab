"""The engine is held to Storm, a model checker by other people, and what Storm reads is what was written."""

from __future__ import annotations

import math
import re
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine import load_quietly
from export.model_files import AtCell, Stroll, drn_model
from hypothesis import assume, given, settings
from random_worlds import random_worlds

from empo_bi import Dag, ExportedModel, Params, Solution, enumerate_dag, load_world, solve

stormpy = pytest.importorskip("stormpy", reason="Storm is not installed; pip install 'empo-bi[peers]'")

WORLDS = {"thicket": 6, "slippery_ledge": 6, "revolving_wall": 7, "three_at_the_crossing": 4}  # all with chance in them
BEST = Params(beta_h=math.inf, gamma_h=1.0)
TOLERANCE = 1e-9


def read(model: ExportedModel) -> Any:
    if model.path.suffix == ".drn":
        options = stormpy.io.DirectEncodingParserOptions()
        options.build_choice_labeling = True
        return stormpy.build_model_from_drn(model.path, options=options)
    options = stormpy.io.UmbImportOptions()
    options.build_choice_labeling, options.build_state_valuations = True, False
    return stormpy.build_model_from_umb(model.path, options=options)


def values(storm_model: Any, query: str) -> Any:
    """What Storm answers, for all states (S,)."""
    result = stormpy.model_checking(storm_model, stormpy.parse_property(query), only_initial_states=False)
    return np.array(result.get_value_vector())


def solved(world: Any, dag: Dag, params: Params, humans: list[int]) -> Solution:
    return solve(
        world, params, dag=dag, human_agent_indices=humans, phase_2=False, precision="float64", progress=False
    )  # fmt: skip


def compare(solution: Solution, model: ExportedModel, human: int) -> float:
    """Phase 1's values of one human with Storm's, in all states of all levels; returns the largest probability strictly
    between 0 and 1, to see that something was compared.

    From a state of level t there are horizon - t steps left. Storm says 1 where a goal is attained already; our tables say
    0, since that was credited on arrival.
    """
    dag, storm_model, h = solution.dag, read(model), solution.humans.index(human)
    first = np.cumsum([0, *dag.level_sizes])
    largest = 0.0
    asked = {label: goal for label, (agent, goal) in model.labels.items() if agent == human}
    assert asked
    for label, g in asked.items():
        for t in range(dag.horizon + 1):
            query = f'Pmax=? [F<={dag.horizon - t} "{label}"]'
            numbers = first[t] + np.arange(dag.level_sizes[t]) if model.is_unrolled else dag.level(t).body_S
            theirs = values(storm_model, query)[numbers]
            is_attained = dag.level(t).attained_SHG[:, dag.goals.humans.index(human), g]
            ours = solution.values.Vh_m[t][:, h, g]
            assert (theirs[is_attained] == 1).all()
            assert (ours[is_attained] == 0).all()
            np.testing.assert_allclose(ours[~is_attained], theirs[~is_attained], rtol=0, atol=TOLERANCE)
            largest = max(largest, float(ours[ours < 1].max(initial=0.0)))
    for agent, g in model.never.values():
        if agent == human:
            assert all((solution.values.Vh_m[t][:, h, g] == 0).all() for t in range(dag.horizon + 1))
    return largest


@pytest.mark.parametrize("kind", ["drn", "umb"])
@pytest.mark.parametrize("name", WORLDS)
def test_a_human_who_errs_never_attains_what_storm_says_is_possible_with_others_at_random(
    name: str, kind: str, tmp_path: Path
) -> None:
    """All agents are humans for the engine: each believes that the others act uniformly at random."""
    world = load_world(name, max_steps=WORLDS[name])
    dag = enumerate_dag(world, precision="exact", progress=False)
    assert any((dag.level(t).prob_K < 1).any() for t in range(dag.horizon))
    solution = solved(world, dag, BEST, list(range(len(world.agents))))
    human = world.human_agent_indices[0]
    model = getattr(dag, f"to_{kind}")(tmp_path / f"model.{kind}", deciding=human, progress=False)
    assert not model.is_unrolled
    assert 0 < compare(solution, model, human) < 1


@settings(max_examples=25, deadline=None)
@given(random_worlds(max_agents=2, max_steps=3))
def test_random_worlds_over_all_object_kinds_agree_with_storm(source: dict[str, Any]) -> None:
    """The first human may have any cell as a goal; the other agent, if there is one, acts at random."""
    size = len(source["map"][0]), len(source["map"])
    cells = [[x, y] for x in range(size[0]) for y in range(size[1])]
    world = load_quietly({**source, "possible_goals": cells})
    assume(len(world.human_agent_indices) > 0)
    dag = enumerate_dag(world, precision="exact", progress=False)
    solution = solved(world, dag, BEST, list(range(len(world.agents))))
    with tempfile.TemporaryDirectory() as folder:
        human = world.human_agent_indices[0]
        compare(solution, dag.to_umb(f"{folder}/model.umb", deciding=human, progress=False), human)


@pytest.mark.parametrize("name", ["thicket", "slippery_ledge", "revolving_wall"])
def test_an_optimistic_human_attains_what_storm_says_both_together_can(name: str, tmp_path: Path) -> None:
    world = load_world(name, max_steps=WORLDS[name] - 1)
    dag = enumerate_dag(world, precision="exact", progress=False)
    (human,) = world.human_agent_indices
    solution = solved(world, dag, BEST.replace(optimistic=True), [human])
    assert 0 < compare(solution, dag.to_umb(tmp_path / "model.umb", progress=False), human) < 1


def test_unbounded_properties_of_an_unrolled_model_say_the_same(tmp_path: Path) -> None:
    world = load_world("thicket", max_steps=5)
    dag = enumerate_dag(world, precision="exact", progress=False)
    model = dag.to_umb(tmp_path / "model.umb", deciding=0, unrolled=True, progress=False)
    solution = solved(world, dag, BEST, [0, 1])
    assert 0 < compare(solution, model, 0) < 1
    storm_model = read(model)
    first = np.cumsum([0, *dag.level_sizes])
    for label, (human, g) in model.labels.items():
        theirs = values(storm_model, f'Pmax=? [F "{label}"]')
        for t in range(dag.horizon + 1):
            ours = np.where(dag.level(t).attained_SHG[:, human, g], 1.0, solution.values.Vh_m[t][:, human, g])
            np.testing.assert_allclose(theirs[first[t] : first[t + 1]], ours, rtol=0, atol=1e-6)  # Storm iterates here


@pytest.mark.parametrize(
    ("goals", "pauses"),
    [
        ([AtCell(2), AtCell(3)], frozenset()),
        ([AtCell(3), AtCell(1, since=3)], frozenset()),
        ([AtCell(3)], frozenset({(2, 2), (3, 1)})),
        ([AtCell(3)], frozenset({(step, 0) for step in range(9)})),
    ],
)
def test_worlds_whose_goals_or_ends_depend_on_the_step_are_exact_too(
    goals: list[AtCell], pauses: frozenset[tuple[int, int]], tmp_path: Path
) -> None:
    world = Stroll(6, goals, pauses)
    dag = enumerate_dag(world, precision="exact", progress=False)
    solution = solved(world, dag, BEST, [0, 1])
    assert 0 < compare(solution, dag.to_drn(tmp_path / "model.drn", deciding=0, progress=False), 0) < 1


def test_bounded_answers_of_storm_are_exact_whatever_its_precision(tmp_path: Path) -> None:
    dag = enumerate_dag(load_world("thicket", max_steps=6), precision="exact", progress=False)
    model = dag.to_umb(tmp_path / "model.umb", deciding=0, progress=False)
    storm_model = read(model)
    for query in model.queries().values():
        result = stormpy.model_checking(storm_model, stormpy.parse_property(query))
        assert result.get_lower_bound(0) == result.get_upper_bound(0) == result.get_value(0)


def test_the_page_on_storm_shows_what_its_code_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "storm.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", page, flags=re.DOTALL)
    assert len(blocks) == page.count("```python")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for code, shown in blocks:
        exec(compile(code, "storm.md", "exec"), namespace)
        assert capsys.readouterr().out == textwrap.dedent(shown)


@pytest.mark.parametrize("kind", ["drn", "umb"])
@pytest.mark.parametrize("options", [{}, {"deciding": 1}, {"deciding": [0, 2], "unrolled": True}, {"deciding": []}], ids=str)
@pytest.mark.parametrize("name", ["three_at_the_crossing", "asymmetric_freeing"])
def test_storm_reads_what_was_written(name: str, options: dict[str, Any], kind: str, tmp_path: Path) -> None:
    """Every state, choice, name, label and probability, to the last bit."""
    dag = enumerate_dag(load_world(name, max_steps=3), progress=False)
    expected = drn_model(dag.to_drn(tmp_path / "expected.drn", progress=False, **options).path)
    model = getattr(dag, f"to_{kind}")(tmp_path / f"model.{kind}", progress=False, **options)
    found = read(model)
    assert (found.nr_states, found.nr_choices, found.nr_transitions) == (
        len(expected.labels), expected.n_choices, expected.n_branches,
    )  # fmt: skip
    assert (model.n_states, model.n_choices, model.n_transitions) == (
        found.nr_states,
        found.nr_choices,
        found.nr_transitions,
    )
    assert set(model.labels) <= set(found.labeling.get_labels())
    matrix = found.transition_matrix
    for s in range(found.nr_states):
        assert set(found.labeling.get_labels_of_state(s)) - {"deadlock"} == expected.labels[s]
        rows = range(matrix.get_row_group_start(s), matrix.get_row_group_end(s))
        for row, (name_of_choice, branches) in zip(rows, expected.choices[s], strict=True):
            assert {entry.column: entry.value for entry in matrix.get_row(row)} == branches
            if found.has_choice_labeling():
                names = found.choice_labeling.get_labels_of_choice(row) - {""}
                assert (names or {"__NOLABEL__"}) == {name_of_choice}
    assert found.has_choice_labeling() or options.get("deciding") == []
    assert found.initial_states == [0]
