"""The oracle's gridworld against the specification: worked examples of appendix A, golden digests, laws.

Section numbers, A1 to A39, C1 to C16 and Q1 to Q28 are those of spec/gridworld.md.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from golden_files import REFERENCE, as_tuple, check_golden_figures, golden_cases, golden_worlds
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.gridworld import (
    Goal,
    OracleWorld,
    canonical_state,
    digest,
    enumerate_levels,
    golden_figures,
    golden_figures_by_horizon,
    parse,
    transition_line,
)
from random_worlds import random_worlds
from worked_examples import EXAMPLES, WORKED_EXAMPLES, check_steps, describe, mapping_of, profile_of, walled


@pytest.mark.parametrize("example", EXAMPLES)
def test_worked_example(example: str) -> None:
    check_steps(parse(mapping_of(example)), EXAMPLES[example][2])


def test_all_worked_examples_of_appendix_a_are_here() -> None:
    named = {name.split()[0] for name in WORKED_EXAMPLES}
    assert named == {f"A{number}" for number in range(1, 40)} | {"sequence:"}


def test_disabling_a_pause_switch_that_is_on_releases_all_robots() -> None:
    """6.8. By play alone all robots are paused or none is, so this state is made by hand."""
    world = parse({"map": walled("Pa Ae .. / dP Ae .."), "orientations": "w"})
    robot, other = (2, 1, 2, False, True, True, None, None, None), (2, 2, 2, False, True, False, None, None, None)
    state = (0, (robot, other), (), (("pauseswitch", 1, 1, True, True),))
    outcomes = world.transitions(state, profile_of(world, "S T"))
    assert [describe(successor) for successor in outcomes] == ["(2,1)w (2,2)w pauseswitch(1,1):on-disabled"]


# Reading world files


def test_the_three_map_forms_are_one_world() -> None:
    as_text = parse({"map": "\n\nWe We We\nWeAyWe\n We We We \n"})
    as_rows = parse({"map": ["We We We", "We Ay We", "We We We"]})
    as_cells = parse({"map": [["We", "We", "We"], ["We", "Ay", "We"], ["We", "We", "We"]]})
    assert as_text.layout == as_rows.layout == as_cells.layout


@pytest.mark.parametrize(
    ("rows", "requested", "chosen"),
    [
        ("Ay .. ..", None, "SmallActions"),
        ("Ay Ki ..", None, "SmallActions"),  # Q20
        ("Ay Kb ..", None, "SmallActions"),
        ("Ay Kr ..", None, "ObjectActions"),
        ("Ay .. Bg", None, "ObjectActions"),
        ("Ay .. Xg", None, "ObjectActions"),
        ("Ay .. Og", None, "ObjectActions"),
        ("Ay .. Ps", None, "ObjectActions"),
        ("Ay .. Dk", None, "ObjectActions"),
        ("Ay .. CB", None, "ObjectActions"),
        ("Ay .. Kr", "Actions", "ObjectActions"),  # Q19
        ("Ay .. ..", "FullActions", "SmallActions"),
        ("Ay .. Kr", "MinimalActions", "MinimalActions"),
    ],
)
def test_the_action_set_is_chosen_from_the_map(rows: str, requested: str | None, chosen: str) -> None:
    assert parse({"map": walled(rows), "action_class": requested}).layout.action_set == chosen


@pytest.mark.parametrize(
    ("orientations", "directions"),
    [(0, [0, 0]), ("s", [1, 1]), (["n"], [3, 0]), ([2, "s", "e"], [2, 1])],
)
def test_orientations_apply_to_all_or_by_index(orientations: Any, directions: list[int]) -> None:
    state = parse({"map": walled("Ay .. Ae"), "orientations": orientations}).initial_state()
    assert [agent[2] for agent in state[1]] == directions


def test_goals_in_every_syntax() -> None:
    text = "map: [We We We, We Ay We, We We We]\npossible_goals:\n  - 1,1\n  - '2, 2, 0,1'\n"
    text += "  - [1.9, 1]\n  - [0, 0, 2, 2]\n  - [[2, 0], [0, 2]]\n"
    world = parse(text)
    assert world.goals == [
        Goal(1, 1, 1, 1, "cell"),
        Goal(0, 1, 2, 2, "rectangle"),
        Goal(1, 1, 1, 1, "cell"),
        Goal(0, 0, 2, 2, "rectangle"),
        Goal(0, 0, 2, 2, "rectangle"),
    ]
    assert all(world.achieved(world.initial_state(), 0, goal) for goal in world.goals)
    assert not world.achieved(world.initial_state(), 0, Goal(0, 0, 0, 2, "rectangle"))


def test_what_the_caller_passes_overrides_the_file() -> None:
    assert parse({"map": walled("Ay .. .."), "max_steps": 7}, max_steps=100).max_steps == 100


def test_outside_an_open_map_everything_is_wall() -> None:
    world = parse({"map": [".. .. ..", "Bl Ay ..", ".. .. .."], "orientations": "w"})
    check_steps(world, [("F", "(1,1)w block(0,1)")])
    world = parse({"map": ["Ay .. ..", ".. .. ..", ".. .. .."], "orientations": "n"})
    check_steps(world, [("F", "(0,0)n"), ("L", "(0,0)w"), ("F", "(0,0)w")])


def test_an_action_outside_the_set_is_an_error() -> None:
    world = parse({"map": walled("Ay .. ..")})
    with pytest.raises(ValueError, match="no profile"):
        world.transitions(world.initial_state(), (4,))


def test_profiles_come_with_agent_0_as_the_least_significant_digit() -> None:
    world = parse({"map": walled("Ay .. Ae"), "action_class": "MinimalActions"})
    assert list(world.profiles()) == [(0, 0), (1, 0), (0, 1), (1, 1)]


# Golden digests


def test_check_value_of_the_reference_readme() -> None:
    rows = ["We We We We We", "We .. .. .. We", "We .. Ar .. We", "We .. .. .. We", "We We We We We"]
    world = parse({"map": rows, "orientations": ["e"], "action_class": "MinimalActions"})
    start = world.initial_state()
    lines = [transition_line(start, profile, world.transitions(start, profile)) for profile in world.profiles()]
    agent = "[[2,2,0,false,true,false,null,null,null]],[],[]]"
    moved, turned = agent.replace("2,2,0", "3,2,0"), agent.replace("2,2,0", "2,2,3")
    assert lines == [
        f'[[0,{agent},[0],[[[1,{moved},"1.000000000"]]]',
        f'[[0,{agent},[1],[[[1,{turned},"1.000000000"]]]',
    ]
    assert digest(lines) == "f9fd36e5c485daa51fc60b1bd6cf0a9389419ee35f7cd4e0064da403647d96b9"
    states = [state for level in enumerate_levels(world, 1) for state in level]
    assert digest(map(canonical_state, states)) == "4c9c72c1e44797c2ea590bc9ccad517190f67718db3c00554cde5748f7f6a13d"
    assert golden_figures(world, 1) == {
        "states_per_level": [1, 2],
        "profile_lines": 2,
        "stochastic_lines": 0,
        "transition_entries": 2,
        "states_digest": "4c9c72c1e44797c2ea590bc9ccad517190f67718db3c00554cde5748f7f6a13d",
        "transitions_digest": "f9fd36e5c485daa51fc60b1bd6cf0a9389419ee35f7cd4e0064da403647d96b9",
    }


def reference_world(name: str, **overrides: Any) -> OracleWorld:
    return parse((REFERENCE / "worlds" / f"{name}.yaml").read_text(), **overrides)


@pytest.mark.parametrize(("path", "horizons"), golden_cases(quick_lines=6000))
def test_golden_digests_at_horizons_with_parity(path: Path, horizons: list[int]) -> None:
    world = reference_world(path.stem, max_steps=max(horizons))
    check_golden_figures(path, horizons, golden_figures_by_horizon(world, max(horizons)))


@pytest.mark.parametrize("path", golden_worlds())
def test_golden_facts_about_the_world(path: Path) -> None:
    golden = json.loads(path.read_text())
    world = reference_world(golden["world"])
    assert (world.layout.width, world.layout.height) == (golden["width"], golden["height"])
    assert (world.layout.action_set, world.action_names) == (golden["action_set"], golden["actions"])
    assert (world.n_agents, world.n_actions) == (golden["n_agents"], golden["n_actions"])
    assert (world.humans, world.robots) == (golden["human_indices"], golden["robot_indices"])
    agents = world.layout.agents
    assert [agent.colour for agent in agents] == golden["agent_colors"]
    assert [agent.can_push_rocks for agent in agents] == golden["can_push_rocks"]
    assert [agent.can_enter_magic_walls for agent in agents] == golden["can_enter_magic_walls"]
    assert [goal.kind for goal in world.goals] == [
        "cell" if len(goal) == 2 else "rectangle" for goal in golden["goals"] or []
    ]
    if not world.layout.items:  # C1
        assert world.initial_state() == as_tuple(golden["initial_state"])


# Laws that hold in every world, on random maps (open ones included) and random play


def check_state(world: OracleWorld, state: tuple) -> None:
    """What holds in every reachable state."""
    _, agents, mobile, _ = state
    cells = [agent[:2] for agent in agents] + [entry[1:3] for entry in mobile]
    assert len(set(cells)) == len(cells)  # C12: no cell holds two of agent, pushable, item
    assert all(0 <= x < world.layout.width and 0 <= y < world.layout.height for x, y in cells)  # C8
    assert all(world.layout.terrain.get(cell) != "wall" for cell in cells)
    assert list(mobile) == sorted(mobile, key=lambda entry: entry[:3])  # C1
    for agent in agents:
        assert agent[3] or world.layout.terrain.get(agent[:2]) != "lava"  # C5


def things(state: tuple, kinds: tuple[str, ...]) -> list[tuple]:
    """The mobile things of some kinds, wherever they are, with their colours."""
    carried = [agent[6:8] for agent in state[1] if agent[6] in kinds]
    return sorted(carried + [(entry[0], *entry[3:]) for entry in state[2] if entry[0] in kinds])


@settings(max_examples=150, deadline=None)
@given(random_worlds(), st.integers(0, 2**32))
def test_laws_of_every_transition(mapping: dict[str, Any], seed: int) -> None:
    world = parse(mapping)
    choose = random.Random(seed)
    state = world.initial_state()
    check_state(world, state)
    for _ in range(12):
        profile = [choose.randrange(world.n_actions) for _ in range(world.n_agents)]
        outcomes = world.transitions(state, profile)
        assert sum(outcomes.values()) == 1
        assert min(outcomes.values()) > 0  # C7
        for successor in outcomes:
            check_state(world, successor)
            assert successor[0] == state[0] + 1
            assert [entry[:3] for entry in successor[3]] == [entry[:3] for entry in state[3]]
            kept = ("block", "rock", "key", "ball")
            assert things(successor, kept) == things(state, kept)
            assert len(things(successor, ("box",))) <= len(things(state, ("box",)))
            for before, after in zip(state[1], successor[1], strict=True):
                assert not before[3] or before[:8] == (*after[:5], before[5], *after[6:8])  # C15
        forced = [agent[8] is not None for agent in state[1]]
        other = [choose.randrange(world.n_actions) if is_forced else a for a, is_forced in zip(profile, forced, strict=True)]
        assert world.transitions(state, other) == outcomes  # 7.1
        state = choose.choice(list(outcomes))


def test_a_state_at_the_horizon_is_terminal() -> None:
    world = parse({"map": walled("Ay .. .."), "max_steps": 1})
    assert world.transitions(world.initial_state(), (0,)) is not None
    assert all(world.transitions(state, (0,)) is None for state in enumerate_levels(world, 1)[1])
