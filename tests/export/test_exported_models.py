"""Exported models, read without Storm: they are what the world says, state by state."""

from __future__ import annotations

import functools
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine import load_quietly
from export.model_files import AtCell, LevelledStroll, Model, Stroll, drn_model, umb_model

import empo_bi
from empo_bi import Dag, ExportedModel, GridWorld, enumerate_dag, load_world, open_dag
from empo_bi.export import choices, model_states

WORLDS = {"slippery_ledge": 4, "revolving_wall": 4, "three_at_the_crossing": 2, "thicket": 3, "carousel": 4}
STROLLS = {
    "nothing depends on the step": Stroll(4, [AtCell(2), AtCell(3)]),
    "a goal does": Stroll(4, [AtCell(2), AtCell(1, since=2)]),
    "an end does": Stroll(5, [AtCell(3)], frozenset({(1, 0), (2, 1)})),  # cell 0 is expanded after cell 2, found later
    "an end at every step": Stroll(4, [AtCell(3)], frozenset({(step, 0) for step in range(9)})),
}
KINDS = ("drn", "umb")


def exported(dag: Dag, folder: Path, kind: str, **options: Any) -> tuple[ExportedModel, Model]:
    written = getattr(dag, f"to_{kind}")(folder / f"model.{kind}", progress=False, overwrite=True, **options)
    return written, drn_model(written.path) if kind == "drn" else umb_model(written.path)[0]


def states_by_number(dag: Dag, is_unrolled: bool) -> list[Any]:
    """The state that each state of a model stands for; of a body, the first that it was met as."""
    found: dict[int, Any] = {}
    for t in range(dag.horizon + 1):
        for state in dag.states(t):
            found.setdefault(dag.index_of(state) if is_unrolled else dag.bodies_of(state)[0], state)
    return [found[number] for number in range(len(found))]


@functools.cache
def asked(world: Any, state: Any) -> list[tuple[tuple[int, ...], Any]]:
    """What the world itself says of every profile."""
    profiles = itertools.product(range(world.action_space.n), repeat=len(world.agents))
    return [(profile, world.transition_probabilities(state, profile)) for profile in profiles]


@functools.cache
def loaded(name: str) -> tuple[GridWorld, Dag]:
    world = load_world(name, max_steps=WORLDS[name])
    return world, enumerate_dag(world, precision="exact", progress=False)


def expected_choices(world: Any, state: Any, deciding: list[int]) -> dict[str, dict[Any, float]] | None:
    """By asking the world for every profile: what each choice leads to, or None where nothing follows."""
    names = [name.replace(" ", "_") for name in world.action_names]
    found: dict[str, dict[Any, float]] = {}
    n_actions = len(names)
    for profile, transitions in asked(world, state):
        if transitions is None:
            return None
        row = found.setdefault(",".join(names[profile[agent]] for agent in deciding) or "__NOLABEL__", {})
        for probability, successor in transitions:
            share = probability / n_actions ** (len(profile) - len(deciding))
            row[successor] = row.get(successor, 0.0) + share
    return found


def check_against_world(dag: Dag, written: ExportedModel, model: Model, deciding: list[int]) -> None:
    world, states = dag.world, states_by_number(dag, written.is_unrolled)
    assert written.n_states == len(model.labels) == len(states)
    # Bodies have no step, so successors are compared without it.
    shown = {number: state if written.is_unrolled else state[1:] for number, state in enumerate(states)}
    for number, (state, choices_here) in enumerate(zip(states, model.choices, strict=True)):
        expected = expected_choices(world, state, deciding)
        goes_on_later = not written.is_unrolled and state[0] == dag.horizon
        if expected is None:
            assert choices_here == [("__NOLABEL__", {number: 1.0})]
            last = goes_on_later or dag.place_of(state)[0] == dag.horizon
            assert model.labels[number] & {"terminal", "horizon"} == {"horizon" if last else "terminal"}
            continue
        assert not model.labels[number] & {"terminal", "horizon"}
        assert sorted(name for name, _ in choices_here) == sorted(expected)
        for name, branches in choices_here:
            wanted = {(key if written.is_unrolled else key[1:]): p for key, p in expected[name].items()}
            assert {shown[target]: p for target, p in branches.items()} == pytest.approx(wanted, rel=1e-14, abs=0)
            assert list(branches) == sorted(branches)


def check_labels(dag: Dag, written: ExportedModel, model: Model) -> None:
    """Goals by asking each of them about each state."""
    states = states_by_number(dag, written.is_unrolled)
    assert model.having("init") == [0]
    assert states[0] == dag.world.initial_state()
    for h, human in enumerate(dag.goals.humans):
        for g, goal in enumerate(dag.goals.fixed.goals[h]):
            expected = [number for number, state in enumerate(states) if goal.is_achieved(state)]
            assert model.having(f"goal_{human}_{g}") == expected
            table = written.labels if expected else written.never
            assert table[f"goal_{human}_{g}"] == (human, g)
    assert len(written.labels) + len(written.never) == len(dag.goals.humans) * dag.goals.n_goals


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unrolled", [False, True])
@pytest.mark.parametrize("name", WORLDS)
def test_a_model_has_the_transitions_and_goals_of_its_gridworld(
    name: str, unrolled: bool, kind: str, tmp_path: Path
) -> None:
    world, dag = loaded(name)
    assert any(0 < p < 1 for t in range(dag.horizon) for p in dag.level(t).prob_K) or name == "carousel"
    agents = list(range(len(world.agents)))
    for deciding in (None, 0, agents[1:], []):
        written, model = exported(dag, tmp_path, kind, deciding=deciding, unrolled=unrolled)
        assert written.is_unrolled == unrolled
        assert (written.n_choices, written.n_transitions) == (model.n_choices, model.n_branches)
        check_against_world(dag, written, model, agents if deciding is None else [0] if deciding == 0 else deciding)
        check_labels(dag, written, model)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", STROLLS)
def test_bodies_are_states_only_where_nothing_but_the_horizon_depends_on_the_step(
    case: str, kind: str, tmp_path: Path
) -> None:
    dag = enumerate_dag(STROLLS[case], precision="exact", progress=False)
    assert dag.shares_bodies
    for unrolled in (False, True):
        written, model = exported(dag, tmp_path, kind, unrolled=unrolled)
        assert written.is_unrolled == (unrolled or case in ("a goal does", "an end does"))
        check_against_world(dag, written, model, [0, 1])
        check_labels(dag, written, model)
    assert written.n_states == dag.n_states


def test_bodies_that_end_whenever_they_are_met_are_terminal_and_those_of_the_last_level_are_marked(tmp_path: Path) -> None:
    dag = enumerate_dag(STROLLS["an end at every step"], progress=False)
    written, model = exported(dag, tmp_path, "drn")
    assert not written.is_unrolled
    assert [states_by_number(dag, False)[s][1] for s in model.having("terminal")] == [0]
    assert model.having("horizon") == []
    short = enumerate_dag(Stroll(2, [AtCell(3)]), progress=False)
    written, model = exported(short, tmp_path, "drn")
    assert [states_by_number(short, False)[s] for s in model.having("horizon")] == [(2, 3)]


@pytest.mark.parametrize("level_fct", [None, lambda state: 3 * state[0]])
def test_worlds_that_share_no_bodies_are_numbered_level_after_level(level_fct: Any, tmp_path: Path) -> None:
    world = LevelledStroll(4, [AtCell(3), AtCell(2, since=2)], frozenset({(1, 2), (2, 1)}))
    dag = enumerate_dag(world, level_fct=level_fct, precision="exact", progress=False)
    written, model = exported(dag, tmp_path, "drn", deciding=1)
    assert written.is_unrolled
    check_against_world(dag, written, model, [1])
    check_labels(dag, written, model)
    assert umb_model(dag.to_umb(tmp_path / "same.umb", deciding=1).path)[0] == model


@pytest.mark.parametrize("deciding", [None, 1])
def test_both_formats_have_the_same_model(deciding: int | None, tmp_path: Path) -> None:
    dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=4), progress=False)
    text, as_text = exported(dag, tmp_path, "drn", deciding=deciding)
    arrays, as_arrays = exported(dag, tmp_path, "umb", deciding=deciding)
    assert as_text == as_arrays
    assert (text.n_states, text.n_choices, text.n_transitions) == (arrays.n_states, arrays.n_choices, arrays.n_transitions)
    assert (text.labels, text.never) == (arrays.labels, arrays.never)
    assert text.n_states == dag.n_bodies
    if deciding is None:
        assert text.n_transitions == dag.n_transitions + len(as_text.having("horizon"))


def test_rounded_probabilities_are_written_as_the_solver_reads_them(tmp_path: Path) -> None:
    world = load_quietly("three_at_the_crossing", max_steps=3, stumble_probability=0.3, solidify_probability=0.3)
    dag = enumerate_dag(world, precision="float16", progress=False)
    _, model = exported(dag, tmp_path, "drn", unrolled=True)
    first = 0
    seen = set()
    for t in range(dag.horizon):
        level = dag.level(t)
        row_ends = level.count_SJ.ravel().cumsum()
        for r, (_, branches) in enumerate(row for here in model.choices[first : first + level.n_states] for row in here):
            read = level.prob_K[row_ends[r] - level.count_SJ.ravel()[r] : row_ends[r]]
            assert sorted(branches.values()) == sorted(read.tolist())  # to the last bit
            seen |= set(branches.values())
        first += level.n_states
    assert 1 / 3 in seen


def test_blocks_and_stores_make_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_world("slippery_ledge", max_steps=4)
    dag = enumerate_dag(world, progress=False)
    stored = enumerate_dag(world, store=tmp_path / "store", progress=False)
    opened = open_dag(tmp_path / "store")
    for kind, unrolled in itertools.product(KINDS, [False, True]):
        options = {"deciding": 0, "unrolled": unrolled}
        expected = exported(dag, tmp_path, kind, **options)[0].path.read_bytes()
        assert exported(stored, tmp_path, kind, **options)[0].path.read_bytes() == expected
        assert exported(opened, tmp_path, kind, **options)[0].path.read_bytes() == expected
        with monkeypatch.context() as smaller:
            smaller.setattr(model_states, "BLOCK_PAIRS", 7 * dag.n_profiles)
            assert exported(dag, tmp_path, kind, **options)[0].path.read_bytes() == expected


def test_the_file_says_what_it_is(tmp_path: Path) -> None:
    dag = enumerate_dag(load_world("thicket", max_steps=3), progress=False)
    text = dag.to_drn(tmp_path / "model.drn", deciding=0, progress=False)
    header = text.path.read_text(encoding="utf-8").split("@type")[0]
    index = umb_model(dag.to_umb(tmp_path / "model.umb", deciding=0, progress=False).path)[1]
    for told in (header, str(index)):
        for word in ("Thicket", "3 steps", "2 agents", "empo_bi", empo_bi.__version__, "Agents 0 decide", "a body"):
            assert word in told
        assert all(label in told for label in [*text.labels, *text.never, "horizon"])
    assert set(index["annotations"]["aps"]) == {*text.labels, "horizon"}
    assert text.never
    assert all(line.startswith("//") for line in header.splitlines())
    assert f"{text.n_choices:,} choices" in str(text)


def test_queries_ask_for_the_best_or_the_worst_within_the_horizon(tmp_path: Path) -> None:
    model = enumerate_dag(load_world("first_steps", max_steps=3), progress=False).to_drn(tmp_path / "model.drn")
    label = next(iter(model.labels))
    assert model.queries()[label] == f'Pmax=? [F<=3 "{label}"]'
    assert model.queries("min", bound=2)[label] == f'Pmin=? [F<=2 "{label}"]'
    assert list(model.queries()) == list(model.labels)
    with pytest.raises(ValueError, match="bound=4; expected a number of steps from 0 to 3"):
        model.queries(bound=4)
    with pytest.raises(ValueError, match="optimum='best'; expected 'max' or 'min'"):
        model.queries("best")


@pytest.mark.parametrize("deciding", [3, -1, [0, 0], [0, 7], "0", True, 1.0, [0, True]])
def test_agents_that_are_none_are_refused(deciding: Any, tmp_path: Path) -> None:
    dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=1), progress=False)
    with pytest.raises(ValueError, match="give an agent from 0 to 2, a list of different agents, or None"):
        dag.to_drn(tmp_path / "model.drn", deciding=deciding)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_there_only_when_it_is_finished_and_replaced_only_when_asked(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag = enumerate_dag(load_world("first_steps", max_steps=2), progress=False)
    write, path = getattr(dag, f"to_{kind}"), tmp_path / f"model.{kind}"
    write(path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write(path)
    kept = choices.merge
    calls = []

    def fails_on_the_last_level(*arguments: Any) -> Any:
        calls.append(0)
        if len(calls) == dag.horizon + 1:
            raise OSError("no space left on device")
        return kept(*arguments)

    monkeypatch.setattr(choices, "merge", fails_on_the_last_level)
    with pytest.raises(OSError, match="no space left"):
        write(path, overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == before
    with pytest.raises(FileNotFoundError, match="create it first"):
        write(tmp_path / "nowhere" / "model")


def test_a_dag_that_is_closed_or_without_its_world_says_so(tmp_path: Path) -> None:
    world = Stroll(3, [AtCell(2)])
    enumerate_dag(world, store=tmp_path / "store", progress=False).close()
    nameless = open_dag(tmp_path / "store")
    with pytest.raises(ValueError, match=r"opened without its world.*open_dag\(path, world=\.\.\.\)"):
        nameless.to_drn(tmp_path / "model.drn", deciding=0)
    model = drn_model(nameless.to_drn(tmp_path / "model.drn").path)
    assert {name for here in model.choices for name, _ in here} >= {f"profile_{j}" for j in range(4)}
    named = open_dag(tmp_path / "store", world=world)
    assert drn_model(named.to_drn(tmp_path / "named.drn").path).choices[0][3][0] == "go_on,go_on"
    named.close()
    with pytest.raises(ValueError, match="closed"):
        named.to_umb(tmp_path / "model.umb")


def test_many_branches_of_merged_agents_are_added_up_in_order() -> None:
    """Three agents, of whom two are merged, with successors in no order and equal ones on both sides."""
    rng = np.random.default_rng(5)
    n_actions, n_agents = 3, 3
    n_profiles = n_actions**n_agents
    count_MJ = rng.integers(1, 6, size=(4, n_profiles))
    count_MJ[2] = 0
    succ_K = np.concatenate([rng.permutation(9)[:n] for n in count_MJ.ravel()]).astype(np.int64)
    prob_K = np.concatenate([rng.dirichlet(np.ones(n)) for n in count_MJ.ravel() if n])
    profile_CO = np.add.outer(np.arange(3) * 3, np.add.outer(np.arange(3) * 9, np.arange(3)).ravel())
    assert sorted(profile_CO.ravel().tolist()) == list(range(n_profiles))
    name_C, n_branches_C = np.zeros(10, np.uint32), np.zeros(10, np.int64)
    target_K, merged_K = np.zeros(len(succ_K) + 4, np.int64), np.zeros(len(succ_K) + 4)
    own = np.arange(1, 4, dtype=np.uint32)
    n = choices.merge(100, count_MJ, succ_K, prob_K, profile_CO, own, name_C, n_branches_C, target_K, merged_K)
    assert n == n_branches_C.sum()
    assert name_C.tolist() == [1, 2, 3, 1, 2, 3, 0, 1, 2, 3]
    ends = count_MJ.ravel().cumsum().reshape(count_MJ.shape)
    expected = []
    for m, choice in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (3, 1), (3, 2)]:
        dense = np.zeros(101 + 4)
        for j in profile_CO[choice] if m != 2 else []:
            entries = slice(ends[m, j] - count_MJ[m, j], ends[m, j])
            np.add.at(dense, succ_K[entries], prob_K[entries] / 9)
        if m == 2:
            dense[102] = 1.0
        expected.append(dense)
    starts = np.concatenate([[0], n_branches_C.cumsum()])
    for c, dense in enumerate(expected):
        chosen = slice(starts[c], starts[c + 1])
        assert target_K[chosen].tolist() == np.flatnonzero(dense).tolist()
        np.testing.assert_allclose(merged_K[chosen], dense[dense > 0], rtol=1e-13)
