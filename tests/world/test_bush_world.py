"""Bush worlds: their rules against the oracle, their values in both phases, their files, states and pictures."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backward.against_oracle import Problem, check_documented_functions, check_solve
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.bushworld import AreaGoals, OracleBushWorld, every_cell, state_of_key

import empo_bi
from empo_bi import GridWorld, enumerate_dag, load_world
from empo_bi.errors import (
    InvalidActionError,
    InvalidStateError,
    MissingAgentError,
    WorldFileError,
    WorldTooLargeError,
    WorldWarning,
)
from empo_bi.goals import ReachCellGoal, ReachRectangleGoal, TabularGoalGenerator
from empo_bi.testing import check_world
from empo_bi.world.as_model import as_model
from empo_bi.world.bush import rules
from empo_bi.world.bush.world import BushWorld

SMALL = {"map": "Ro 02 Hu\n. . 01", "B": 3, "max_steps": 3}
NORTH, WEST, SOUTH, EAST, PASS = range(5)
SHIPPED = [name for name in empo_bi.worlds.available() if name.startswith("bush_worlds/")]


@st.composite
def bush_worlds(draw: Any, max_players: int = 3, max_steps: int = 3) -> dict[str, Any]:
    width, height = draw(st.sampled_from([(1, 1), (2, 1), (1, 3), (2, 2), (3, 2), (3, 3)]))
    n_cells = width * height
    codes = [draw(st.sampled_from([".", "01", "02", "3", "07"])) for _ in range(n_cells)]
    n_players = draw(st.integers(1, min(max_players, n_cells)))
    for cell in draw(st.permutations(range(n_cells)))[:n_players]:
        codes[cell] = draw(st.sampled_from(["Ro", "Hu"]))
    rows = [" ".join(codes[y * width : (y + 1) * width]) for y in range(height)]
    fill, B = draw(st.integers(0, 3)), draw(st.sampled_from([1, 2, 3, 2.5]))
    return {"map": "\n".join(rows), "B": B, "max_steps": draw(st.integers(0, max_steps)), "fill_density": fill}


# --- rules ------------------------------------------------------------------------------------------------------------


@given(bush_worlds())
@settings(max_examples=40, deadline=None)
def test_all_transitions_of_random_worlds_are_those_of_the_oracle(mapping: dict[str, Any]) -> None:
    world, oracle = load_world(mapping), OracleBushWorld(mapping)
    assert (world.robot_agent_indices, world.human_agent_indices) == (oracle.robots, oracle.humans)
    profiles = list(itertools.product(range(5), repeat=oracle.n_agents))
    level = [oracle.initial_state()]
    assert world.initial_state() == level[0]
    for step in range(oracle.max_steps + 1):
        steps, key_SW = world.encode(level)
        assert world.problem_of_keys(key_SW) is None
        assert world.decode(steps, key_SW) == level
        assert [state_of_key(world.mapping, step, key) for key in key_SW.tolist()] == level
        if step == oracle.max_steps:
            assert world.transition_probabilities(level[0], profiles[0]) is None
            break
        expansion = world.expand(key_SW, np.array(profiles))
        found = iter(zip(world.decode(step + 1, expansion.key_KW), expansion.prob_K.tolist(), strict=True))
        after: dict[Any, None] = {}
        for s, state in enumerate(level):
            for j, profile in enumerate(profiles):
                expected = oracle.transitions(state, profile)
                outcomes = dict(itertools.islice(found, int(expansion.count_SJ[s, j])))
                assert outcomes == pytest.approx({s: float(p) for s, p in expected.items()}, abs=1e-15)
                after |= dict.fromkeys(expected)
        assert next(found, None) is None
        level = list(after)[:20]


@given(bush_worlds(max_players=2, max_steps=2), st.sampled_from([{}, {"gamma_h": 0.9, "beta_h": 3}]))
@settings(max_examples=12, deadline=None)
def test_both_phases_of_random_worlds_are_those_of_the_oracle(mapping: dict[str, Any], human: dict[str, Any]) -> None:
    world, oracle = load_world(mapping), OracleBushWorld(mapping)
    if not world.human_agent_indices:
        return
    check_problem(world, oracle, every_cell(oracle), human, {"zeta": 1.5, "beta_r": 2})


@pytest.mark.parametrize("name", SHIPPED)
def test_both_phases_of_shipped_worlds_are_those_of_the_oracle(name: str) -> None:
    world = load_world(name, max_steps=2)
    oracle = OracleBushWorld(world.mapping)
    goals = AreaGoals({goal.rectangle: goal.weight for goal in world.world_spec.goals})
    check_problem(world, oracle, goals, {"gamma_h": 0.95}, {"gamma_r": 0.9, "eta": 1.2})


def check_problem(world: Any, oracle: OracleBushWorld, goals: AreaGoals, human: Any, robot: Any) -> None:
    problem = Problem(
        world, world.human_agent_indices, world.robot_agent_indices, oracle_world=oracle, oracle_goals=goals,
        name_of=lambda goal: (goal.human_agent_index, goal.target_rect), oracle_name_of=lambda goal: (goal.human, goal.area),
        human=human, robot=robot,
    )  # fmt: skip
    check_documented_functions(problem)
    check_solve(problem)


def outcomes(mapping: dict[str, Any], actions: list[int]) -> dict[Any, float]:
    world = load_world({"B": 4, "max_steps": 2, **mapping})
    found = world.transition_probabilities(world.initial_state(), actions)
    assert found is not None
    return {(positions, densities): p for p, (_, positions, densities) in found}


def test_rules_by_hand() -> None:
    # A human gets into density 1 of 4 with probability 3/4; a robot always, and thins it out.
    assert outcomes({"map": "Hu 01"}, [EAST]) == {(((1, 0),), (0, 1)): 0.75, (((0, 0),), (0, 1)): 0.25}
    assert outcomes({"map": "Ro 01"}, [EAST]) == {(((1, 0),), (0, 0)): 1.0}
    assert outcomes({"map": "Hu 04"}, [EAST]) == {(((0, 0),), (0, 4)): 1.0}
    # Passing thins the robot's own cell; being blocked, by the edge or by somebody, changes nothing.
    assert outcomes({"map": "Ro .", "fill_density": 3}, [PASS]) == {(((0, 0),), (2, 0)): 1.0}
    assert outcomes({"map": "Ro .", "fill_density": 3}, [WEST]) == {(((0, 0),), (3, 0)): 1.0}
    assert outcomes({"map": "Ro Hu", "fill_density": 3}, [EAST, PASS]) == {(((0, 0), (1, 0)), (3, 3)): 1.0}
    # Nobody follows or swaps; of two who want one cell the first by index tries, also if it may fail.
    assert outcomes({"map": "Ro Ro ."}, [EAST, EAST]) == {(((0, 0), (2, 0)), (0, 0, 0)): 1.0}
    assert outcomes({"map": "Hu 02 Ro"}, [WEST, EAST]) == {(((1, 0), (0, 0)), (0, 1, 0)): 1.0}
    assert outcomes({"map": "Hu 02 Hu"}, [EAST, WEST]) == {
        (((1, 0), (2, 0)), (0, 2, 0)): 0.5,
        (((0, 0), (2, 0)), (0, 2, 0)): 0.5,
    }


def test_players_are_robots_first_then_humans_in_reading_order() -> None:
    world = load_world({"map": "Hu Ro\nRo Hu", "B": 1, "max_steps": 1})
    assert world.initial_state()[1] == ((1, 0), (0, 1), (0, 0), (1, 1))
    assert (world.robot_agent_indices, world.human_agent_indices) == ([0, 1], [2, 3])


def test_a_step_with_too_many_outcomes_is_refused() -> None:
    row = " ".join(["Hu"] * 25)
    world = load_world({"map": f"{row}\n{' '.join(['01'] * 25)}", "B": 2, "max_steps": 1})
    with pytest.raises(WorldTooLargeError, match="over 1,048,576 outcomes; use fewer humans"):
        world.transition_probabilities(world.initial_state(), [SOUTH] * 25)


def test_a_state_whose_successors_take_too_much_memory_is_refused() -> None:
    """Before any memory is taken: 5^9 profiles with up to 2^8 outcomes each."""
    row = " ".join(["Hu", "01"] * 8)
    world = load_world(
        {"map": "\n".join([" ".join(["01"] * 15 + ["Ro"]), row, " ".join(["01"] * 16)]), "B": 2, "max_steps": 1}
    )
    with pytest.raises(WorldTooLargeError, match="its 1,953,125 action profiles take over 256 MB; use fewer players"):
        enumerate_dag(world, progress=False)


# --- the contract -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_bush_worlds_keep_the_contract(name: str) -> None:
    assert check_world(load_world(name, max_steps=3), n_states=30, strict=True).n_states <= 30


def test_there_are_some_in_a_folder_of_their_own() -> None:
    assert len(SHIPPED) >= 2
    assert all(isinstance(load_world(name), BushWorld) for name in SHIPPED)


def test_kernels_are_compiled_for_one_set_of_types() -> None:
    world = load_world(SMALL)
    frozen = world.initial_key
    frozen.flags.writeable = False
    world.expand(frozen, world.all_profiles[::2].astype(np.int32))
    assert [len(kernel.signatures) for kernel in (rules.count_outcomes, rules.write_outcomes)] == [1, 1]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ((0, ((0, 0), (2, 0)), (0, 2, 0, 0, 0)), "2 players and 5 densities; this world has 2 and 6"),
        ((0, ((0, 0), (0, 0)), (0, 2, 0, 0, 0, 1)), "two players on one cell"),
        ((0, ((0, 0), (3, 0)), (0, 2, 0, 0, 0, 1)), r"cell \(3, 0\), which is outside the grid"),
        ((0, ((0, 0), (2, 0)), (0, 3, 0, 0, 0, 1)), r"density 3 on cell \(1, 0\); it is 2 at the start"),
        ((0, ((0, 0), (2, 0)), (0, -1, 0, 0, 0, 1)), "density -1"),
        ((-1, ((0, 0), (2, 0)), (0, 2, 0, 0, 0, 1)), "steps are counted from 0"),
        ((0, 1), r"give \(step, positions, densities\)"),
        ("nonsense", "not a state of this world"),
    ],
)
def test_what_is_no_state_is_refused(state: Any, message: str) -> None:
    with pytest.raises(InvalidStateError, match=message):
        load_world(SMALL).encode([state])


def test_densities_never_change_without_robots_and_take_no_bits() -> None:
    world = load_world({"map": "Hu 07 07", "B": 8, "max_steps": 2})
    assert [field.slot for field in world.layout.fields] == [0]
    with pytest.raises(InvalidStateError, match="only robots lower it"):
        world.encode([(0, ((0, 0),), (0, 6, 7))])


def test_keys_that_are_no_states_are_found() -> None:
    world = load_world(SMALL)
    assert world.problem_of_keys(world.initial_key) is None
    assert "words" in str(world.problem_of_keys(np.zeros((1, 2), dtype=np.uint64)))
    both_at_0 = np.zeros((1, 1), dtype=np.uint64)
    assert world.problem_of_keys(both_at_0) == "two players are on one cell"
    assert "belong to no field" in str(world.problem_of_keys(world.initial_key | np.uint64(1 << 60)))
    assert "expected 0 to 5" in str(world.problem_of_keys(world.initial_key | np.uint64(7)))
    with pytest.raises(InvalidStateError, match="not a state of this world"):
        world.expand(np.full((1, 1), 7, dtype=np.uint64))
    with pytest.raises(InvalidActionError, match="0 north, 1 west, 2 south, 3 east, 4 pass"):
        world.transition_probabilities(world.initial_state(), [0, 5])


def test_it_is_a_gymnasium_environment() -> None:
    world = load_world(SMALL)
    episodes = []
    for _ in range(2):
        observation, info = world.reset(seed=5)
        assert world.observation_space.contains(observation)
        states = [info["state"]]
        while not world.is_terminal():
            observation, reward, terminated, truncated, info = world.step([EAST, WEST])
            states.append(info["state"])
        assert (reward, terminated, truncated) == (0.0, True, False)
        episodes.append(states)
    assert episodes[0] == episodes[1]
    world.set_state(episodes[0][1])
    assert world.get_state() == episodes[0][1]


def test_copies_are_worlds_with_goals_of_their_own() -> None:
    world = load_world(SMALL)
    for again in (copy.deepcopy(world), pickle.loads(pickle.dumps(world))):
        assert again.possible_goal_generator.env is again
        assert again.transition_probabilities(again.initial_state(), [EAST, WEST]) == world.transition_probabilities(
            world.initial_state(), [EAST, WEST]
        )


def test_the_docs_say_how_many_lines_it_took() -> None:
    page = (Path(__file__).parents[2] / "docs" / "own_world.md").read_text(encoding="utf-8")
    folder = Path(rules.__file__).parent
    for name, said in re.findall(r"^\| `(\w+)` \| (\d+) \|", page, flags=re.MULTILINE):
        n_lines = len((folder / f"{name}.py").read_text(encoding="utf-8").splitlines())
        assert abs(n_lines - int(said)) <= 0.1 * n_lines, f"{name} has {n_lines} lines, the page says {said}"


# --- goals and fields -------------------------------------------------------------------------------------------------


def test_without_goals_every_cell_is_one_and_goals_are_checked_in_blocks() -> None:
    world = load_world(SMALL)
    generator = world.possible_goal_generator
    assert [goal.target_pos for goal, _ in generator.generate(world.initial_state(), 1)] == [
        (0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)
    ]  # fmt: skip
    assert sum(weight for _, weight in generator.generate(None, 1)) == pytest.approx(1)
    dag = enumerate_dag(world, progress=False)

    class Elsewhere(ReachCellGoal):
        def is_achieved(self, state: Any) -> int:
            return 1 - super().is_achieved(state)

    goals = [ReachCellGoal(world, 1, (1, 0)), ReachRectangleGoal(world, 1, (1, 0, 9, 9)), Elsewhere(world, 0, (0, 0))]
    keys = dag.keys(2)
    expected = [[goal.is_achieved(state) for goal in goals] for state in dag.states(2)]
    assert world.attainment(2, keys, goals).tolist() == [[bool(one) for one in row] for row in expected]
    world.possible_goal_generator = TabularGoalGenerator(goals[:2])
    assert as_model(world).with_horizon(5).possible_goal_generator is world.possible_goal_generator
    assert load_world({**SMALL, "possible_goals": []}).possible_goal_generator is None
    assert load_world({"map": "Ro .", "B": 1, "max_steps": 1}).possible_goal_generator is None


def test_fields_are_those_of_the_tuples() -> None:
    world = load_world(SMALL)
    dag = enumerate_dag(world, progress=False)
    fields, states = as_model(world).fields(dag.keys(3)), dag.states(3)
    for agent in (0, 1):
        assert fields.cell_xy(agent).tolist() == [list(state[1][agent]) for state in states]
        assert not fields.direction(agent).any()
    assert fields.density((1, 0)).tolist() == [state[2][1] for state in states]
    alike = fields.same_but_for(1, world.encode([states[0]])[1][0]).tolist()
    assert alike == [state[1][0] == states[0][1][0] and state[2] == states[0][2] for state in states]
    with pytest.raises(ValueError, match="off the grid"):
        fields.density((3, 0))
    with pytest.raises(ValueError, match="agents 0 to 1"):
        fields.cell_xy(2)


# --- files ------------------------------------------------------------------------------------------------------------


@given(bush_worlds())
@settings(max_examples=30, deadline=None)
def test_a_world_comes_back_from_its_mapping_and_from_its_text(mapping: dict[str, Any]) -> None:
    world = load_world(mapping)
    again = load_world(json.loads(json.dumps(as_model(world).mapping)))
    assert as_model(again).content == as_model(world).content
    assert again.mapping == world.mapping
    assert again.world_spec.goals == world.world_spec.goals
    assert load_world({**mapping, "map": world.to_text()}).world_spec.densities == world.world_spec.densities


def test_a_file_may_be_written_in_several_ways(tmp_path: Path) -> None:
    expected = load_world(SMALL)
    lists = {**SMALL, "map": [["Ro", 2, "Hu"], [".", "..", "01"]]}
    texts = {**SMALL, "map": ["Ro 02 Hu", ". . 1"]}
    (tmp_path / "bush.yaml").write_text(
        "map: |\n  Ro 02 Hu\n  .  .  01\nB: 3\nmax_steps: 3\nseed: 4\nmetadata: {name: Mine}\n"
    )
    (tmp_path / "bush.json").write_text(json.dumps(SMALL))
    for source in (lists, texts, tmp_path / "bush.yaml", tmp_path / "bush.json"):
        world = load_world(source)
        assert as_model(world).content == as_model(expected).content
    assert load_world(tmp_path / "bush.yaml").world_spec.name == "Mine"
    assert load_world(SMALL, B=4, max_steps=9, fill_density=1).settings == {"B": 4, "fill_density": 1}


def test_kinds_are_told_by_keys_and_codes() -> None:
    assert isinstance(load_world({"map": "Ro .", "B": 2, "max_steps": 1}), BushWorld)
    with pytest.raises(WorldFileError, match="the key 'B' is missing"):
        load_world({"map": "Ro Hu", "max_steps": 1})
    with pytest.raises(WorldFileError, match="the key 'B' is missing"):
        load_world({"map": [["Ro", 2]], "max_steps": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorldWarning)
        assert isinstance(load_world({"map": "Ro .. Ay\n.. .. ..\n. .Ro Ro", "max_steps": 1}), GridWorld)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("map: |\n  Ro HU\nB: 2", r"<text>:2: map\[0\]: unknown code 'HU' at x=1, y=0. Did you mean 'Hu'\?"),
        ("map: |\n  RoHu01\nB: 2", "with blanks between them"),
        ("map: |\n  Ro Hu\n  .\nB: 2", r":3: map\[1\]: row 1 has 1 cells, row 0 has 2"),
        ("map: |\n  Ro Hu\nB: 0", ":3: B: found 0, expected a positive number"),
        ("map: |\n  Ro Hu\nB: .inf", "B: found inf"),
        ("map: |\n  Ro Hu\nB: two", "B: found 'two'"),
        ("map: |\n  Ro Hu\nB: 2\nfill_density: 1.5", ":4: fill_density: found 1.5, expected the density"),
        ("map: |\n  Ro Hu\nB: 2\nfill_density: -1", "fill_density: found -1"),
        ("map: |\n  Ro Hu\nB: 2\nfill_density: 99999", "fill_density: found 99999"),
        ("map: |\n  Ro Hu\nB: 2\nmax_steps: six", ":4: max_steps: found 'six'"),
        ("map: |\n  Ro Hu\nB: 2\npossible_goals: [here]", r"possible_goals\[0\]: 'here' is not a goal"),
        ("map: |\n  Ro Hu 12345\nB: 2", "unknown code '12345'"),
        ("B: 2\nmax_steps: 3", "the key 'map' is missing; give the grid, with blanks between cells"),
        ("map: 3\nB: 2", "map: found 3, expected the rows of the grid"),
        ("map: ''\nB: 2", "0 x 1 cells; give 1 to 4,096"),
        ("map: |\n  Ro Hu\nB: 2\nmetadata: 3", "metadata: found 3"),
    ],
)
def test_bad_files_are_told_with_file_line_and_remedy(text: str, message: str) -> None:
    with pytest.raises(WorldFileError, match=message):
        load_world(text)


def test_sizes_are_bounded() -> None:
    with pytest.raises(WorldFileError, match="101 x 100 cells; give 1 to 4,096"):
        load_world({"map": [" ".join(["."] * 101)] * 100, "B": 1})
    with pytest.raises(WorldFileError, match="257 x 1 cells; give 1 to 4,096, at most 256 along a side"):
        load_world({"map": " ".join(["."] * 257), "B": 1})
    with pytest.raises(WorldFileError, match="found 65 players, expected at most 64"):
        load_world({"map": " ".join(["Hu"] * 65), "B": 1})


def test_probable_mistakes_are_warnings_or_errors() -> None:
    for changes, message in (
        ({"goals": []}, "goals: unknown key. Did you mean 'possible_goals'"),
        ({"possible_goals": ["0,0"]}, r"no goal covers the cells \(1,0\), "),
        ({"possible_goals": ["0,0,9,9"]}, "extends beyond the grid"),
        ({"possible_goals": ["0,0,2,1"], "map": "Ro . .\n. . ."}, "goals need humans, but no cell has the code 'Hu'"),
    ):
        with pytest.warns(WorldWarning, match=message):
            load_world({**SMALL, **changes})
        with pytest.raises(WorldFileError, match=message):
            load_world({**SMALL, **changes}, strict=True)
    with pytest.raises(TypeError, match="no option 'stumble_probability'"):
        load_world(SMALL, stumble_probability=0.5)
    with pytest.raises(MissingAgentError, match=r"a human is needed .*code 'Hu'"):
        load_world({"map": "Ro .", "B": 1}, require_human=True)


def test_all_means_every_cell_also_as_an_option() -> None:
    every = load_world(SMALL).world_spec.goals
    some = {**SMALL, "possible_goals": ["0,0"]}
    assert load_world({**SMALL, "possible_goals": "all"}).world_spec.goals == every
    assert load_world(some, goals="all").world_spec.goals == every
    assert load_world({"map": "Ro 01", "B": 2, "possible_goals": "all"}, strict=True).world_spec.goals == ()
    with pytest.raises(TypeError, match="goals= and possible_goals= mean the same"):
        load_world(SMALL, goals="all", possible_goals="all")
    with pytest.raises(WorldFileError, match=r"found 'every', expected a list .*or 'all'"):
        load_world(SMALL, goals="every")


def test_numbers_that_are_no_densities_are_refused() -> None:
    for number, message in ((-1, "unknown code '-1'"), (10_000, "unknown code '10000'"), (1 << 40_000, "row 0 is a list")):
        with pytest.raises(WorldFileError, match=message):
            load_world({"map": [["Ro", number, "Hu"]], "B": 2})
        with pytest.raises(WorldFileError):
            load_world({"map": [[number, number]]})


# --- looks ------------------------------------------------------------------------------------------------------------


def test_text_words_and_pictures_show_a_state() -> None:
    world = load_world(SMALL)
    state = (1, ((1, 0), (2, 0)), (0, 1, 0, 0, 0, 1))
    assert world.map_text(state) == ".  Ro Hu\n.  .  01"
    assert world.to_text(state) == ".  Ro Hu\n.  .  01\n# robot 0 at 1,0 on density 1\n# human 1 at 2,0"
    assert world.describe(state) == "robot 0 at 1,0 on density 1\nhuman 1 at 2,0 on density 0\ndensity changed at 1,0 to 1"
    picture = world.render(state, tile=16)
    assert (picture.shape, picture.dtype) == ((32, 48, 3), np.uint8)
    assert not np.array_equal(picture, world.render(tile=16))
    assert np.array_equal(world.render((2, *state[1:]), tile=16), picture)
    assert load_world(SMALL, render_mode="ansi").render() == world.to_text()
    with pytest.raises(InvalidStateError):
        world.render((0, ((0, 0),), ()))


@given(bush_worlds(), st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_only_cells_that_are_said_to_differ_look_different(mapping: dict[str, Any], draw: Any) -> None:
    world = load_world(mapping)
    dag = enumerate_dag(world, progress=False)
    states = [state for t in range(dag.horizon + 1) for state in dag.states(t)]
    for _ in range(10):
        state, other = draw.choice(states), draw.choice(states)
        places = world.places_that_differ(state, other)
        before, after = world.looks(state), world.looks(other)
        assert places == sorted(set(places), key=lambda place: place[::-1])
        assert world.looks(other, places) == {place: after[place] for place in places}
        assert all(before[place] == after[place] for place in before if place not in places)
