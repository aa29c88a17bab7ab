"""The PRISM program of a gridworld: Storm builds exactly the states and the probabilities that the engine has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine import load_quietly
from worked_examples import walled

from benchmarks.peers.prism import cell_number, prism_of
from benchmarks.peers.promela import UnsupportedWorldError
from empo_bi import enumerate_dag, load_world


def built(stormpy: Any, world: Any, folder: Path, formula: str = "") -> tuple[Any, Any]:
    """Storm's model with the meaning of its states and choices, and its properties."""
    file = folder / "world.prism"
    file.write_text(prism_of(world))
    program = stormpy.parse_prism_program(str(file))
    properties = stormpy.parse_properties(formula, program) if formula else []
    options = stormpy.BuilderOptions([p.get_raw_formula() for p in properties])
    options.set_build_state_valuations()
    options.set_build_choice_labels()
    return stormpy.build_model(program, options=options), properties


def small_world(rows: str, steps: int, orientations: str, **keys: Any) -> Any:
    return load_quietly({"map": walled(rows), "max_steps": steps, "orientations": list(orientations), **keys})


WORLDS = {
    "conflict for one cell": ("Ay .. Ae / .. Ay ..", 2, "ewn"),
    "pushed twice in a step": (".. Ae .. / .. Bl .. / Ay .. ..", 3, "se"),
    "chains with rocks": ("Ay Bl Ro .. / .. .. Ae ..", 3, "en"),
}


@pytest.mark.parametrize("case", WORLDS)
def test_storm_has_the_states_and_the_probabilities_of_the_engine(case, tmp_path):
    stormpy = pytest.importorskip("stormpy", reason="stormpy is needed to build PRISM programs; pip install stormpy")
    world = small_world(*WORLDS[case])
    model, _ = built(stormpy, world, tmp_path)
    state_of = [engine_state(world, model, s) for s in range(model.nr_states)]
    assert len(set(state_of)) == model.nr_states == enumerate_dag(world, progress=False).n_states
    matrix, n_drawn = model.transition_matrix, 0
    for s, state in enumerate(state_of):
        for row in range(matrix.get_row_group_start(s), matrix.get_row_group_end(s)):
            (label,) = model.choice_labeling.get_labels_of_choice(row)
            if world.is_terminal(state):
                assert label == "end"
                continue
            found: dict[tuple, float] = {}
            for entry in matrix.get_row(row):
                found[state_of[entry.column]] = found.get(state_of[entry.column], 0.0) + entry.value
            profile = [world.action_names.index(name) for name in label.split("_")]
            expected = {successor: p for p, successor in world.transition_probabilities(state, profile)}
            assert found == pytest.approx(expected, abs=1e-12)
            n_drawn += len(expected) > 1
        n_rows = matrix.get_row_group_end(s) - matrix.get_row_group_start(s)
        assert n_rows == (1 if world.is_terminal(state) else len(world.all_profiles))
    assert n_drawn > 0, "this case is about chance"


def engine_state(world: Any, model: Any, s: int) -> tuple:
    """The engine's tuple for a state of Storm's model, from the values of its variables."""
    value = json.loads(str(model.state_valuations.to_json(s)))
    place = {cell_number(world, x, y): (x, y) for x in range(world.world_spec.width) for y in range(world.world_spec.height)}
    start = world.initial_state()
    agents = tuple((*place[value[f"p{i}"]], value[f"d{i}"], *agent[3:]) for i, agent in enumerate(start[1]))
    kinds = sorted((entry[0] for entry in start[2]), reverse=True)  # the program has rocks first
    mobile = tuple(sorted((kind, *place[value[f"r{k}"]]) for k, kind in enumerate(kinds)))
    return (value["step"], agents, mobile, start[3])


@pytest.mark.parametrize("steps", [2, 4])
def test_storm_builds_as_many_states_as_the_dag_has(steps, tmp_path):
    stormpy = pytest.importorskip("stormpy", reason="stormpy is needed to build PRISM programs; pip install stormpy")
    world = load_world("asymmetric_freeing", max_steps=steps)
    model, _ = built(stormpy, world, tmp_path)
    dag = enumerate_dag(world, progress=False)
    assert model.nr_states == dag.n_states
    assert model.nr_choices == 64 * (dag.n_states - dag.level_sizes[-1]) + dag.level_sizes[-1]


def test_best_chances_of_reaching_a_goal_agree(tmp_path):
    """Two who can only go forward or turn left and have to go through the cell that both face at once."""
    stormpy = pytest.importorskip("stormpy", reason="stormpy is needed to build PRISM programs; pip install stormpy")
    world = small_world("We Ay We / Ay .. .. / We We ..", 3, "se", action_class="MinimalActions")
    both = {0: (2, 2), 1: (3, 2)}
    goal = " & ".join(f"p{i}={cell_number(world, *cell)}" for i, cell in both.items())
    for optimum, best in (("max", max), ("min", min)):
        model, properties = built(stormpy, world, tmp_path, f"P{optimum}=? [F ({goal})]")
        ours = best_chance(world, lambda state: all(state[1][i][:2] == cell for i, cell in both.items()), best)
        theirs = stormpy.model_checking(model, properties[0]).get_value(model.initial_states[0])
        assert theirs == pytest.approx(ours, abs=1e-9)
        if optimum == "max":
            assert 0 < ours < 1


def best_chance(world: Any, is_goal: Any, best: Any) -> float:
    """Backward induction in a few lines: the states are in topological order."""
    states, _, _, transitions = world.get_dag(return_probabilities=True, quiet=True)
    value = [0.0] * len(states)
    for s in reversed(range(len(states))):
        rows = [sum(p * value[k] for p, k in zip(odds, to, strict=True)) for _, odds, to in transitions[s]]
        value[s] = 1.0 if is_goal(states[s]) else best(rows, default=0.0)
    return value[0]


def test_what_the_program_does_not_know_is_refused_by_name():
    with pytest.raises(UnsupportedWorldError, match="lava at 2,1"):
        prism_of(small_world("Ay La ..", 3, "e"))
