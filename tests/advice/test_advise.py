"""What a stranger gets wrong is found before anything is solved, and what is fine is left alone."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from engine import load_quietly
from planning_worlds import At, TwoSteps
from worked_examples import walled

import empo_bi
from empo_bi import Params, TabularGoalGenerator, advise, load_world, solve
from empo_bi.errors import AdviceWarning
from empo_bi.results.first_moves import dawdling, eagerness

GOOD = Params(gamma_h=0.95, beta_h=50, zeta=2)
HALL = {"map": walled("Ay .. .. .. .."), "orientations": ["e"], "max_steps": 9, "possible_goals": "all"}
TWO = {"map": walled("Ay .. .. .. / We We We We / Ae .. .. .."), "max_steps": 5, "possible_goals": "all"}


def found_in(mapping: dict[str, Any], params: Params = GOOD, **options: Any) -> list[str]:
    return [str(hint) for hint in advise(load_quietly(mapping), params, **options).hints]


def only(mapping: dict[str, Any], params: Params = GOOD, **options: Any) -> str:
    (hint,) = found_in(mapping, params, **options)
    return hint


# --- agents -----------------------------------------------------------------------------------------------------------


def test_a_colour_that_is_nobody_is_named_with_the_code_to_write() -> None:
    blue = {**TWO, "map": walled("Ay .. .. .. / We We We We / Ab .. .. ..")}
    assert only(blue) == (
        "agents: no agent is a robot: agent 1 is blue. Robots are grey: write 'Ae' instead of 'Ab', or 'robots: [1]' in the "
        "file"
    )
    assert found_in({**blue, "robots": [1]}) == found_in(blue, robot_agent_indices=[]) == found_in(blue, phase_2=False) == []
    human = only({**TWO, "map": walled("Ag .. .. .. / We We We We / Ae .. .. .."), "possible_goals": None})
    assert "no agent is a human: agent 0 is green. Humans are yellow: write 'Ay' instead of 'Ag', or 'humans: [0]'" in human


def test_humans_alone_and_passers_by_are_no_mistakes() -> None:
    assert found_in(HALL) == []
    assert found_in({**TWO, "map": walled("Ay .. Ab .. / We We We We / Ae .. .. ..")}) == []


def test_agents_are_listed_by_the_numbers_that_the_map_gives_them() -> None:
    shown = str(advise(load_quietly({**TWO, "orientations": ["w", "n"]}), GOOD))
    assert "agent 0: human, yellow, at 1,1, facing west\n  agent 1: robot, grey, at 1,3, facing north" in shown
    above = {**TWO, "map": walled("Ae .. .. .. / We We We We / Ay .. .. .."), "humans": [0], "robots": [1]}
    hints = found_in(above)
    assert (
        "agent 0 counts as a human, but is drawn in grey, the colour of robots. Agents are numbered in reading order"
        in hints[0]
    )
    assert "agent 1 counts as a robot, but is drawn in yellow" in hints[1]
    assert "agent 1 counts as a human" in found_in(TWO, human_agent_indices=[1], robot_agent_indices=[0])[0]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ("Ay We .. Ae", "There are walls or the like on all sides"),
        ("Ay Ro .. .. We Ae ..", "Something is in its way that neither"),
    ],
)
def test_humans_who_can_never_move_are_named(rows: str, reason: str) -> None:
    hints = found_in({"map": walled(rows), "max_steps": 4, "possible_goals": "all"})
    assert f"agents: human 0 can never leave its cell 1,1, whatever anybody does. {reason}" in hints[0]
    has_others = "Ro" in rows  # without the rock, the only cell to walk to is the one that it is on
    assert len(hints) == 1 + has_others
    assert all(
        "human 0 can never attain any goal but 1,1, as at the start, whatever anybody does" in hint for hint in hints[1:]
    )


def test_a_robot_that_can_never_move_is_named_unless_it_may_do_something_else() -> None:
    stuck = {**TWO, "map": walled("Ay .. .. .. / We We We We / Ae We .. ..")}
    assert "agents: robot 1 can never leave its cell 1,3" in only(stuck)
    assert found_in({**stuck, "action_class": "ObjectActions"}) == []


def test_a_human_whom_a_robot_can_free_is_not_stuck() -> None:
    for name in ("asymmetric_freeing", "locked_in", "cork_in_the_bottle"):
        assert advise(load_world(name), GOOD).is_fine


# --- goals and horizon ------------------------------------------------------------------------------------------------


def test_a_horizon_too_short_for_any_goal_says_how_many_steps_it_takes() -> None:
    far = {**HALL, "possible_goals": ["5,1"], "max_steps": 3}
    assert only(far) == (
        "horizon: the nearest goal of human 0 takes 4 steps at least; max_steps is 3. Set max_steps (--steps) to 8 or so"
    )
    assert found_in({**far, "max_steps": 8}) == []
    turned = {**far, "orientations": ["w"]}
    assert "takes 6 steps at least" in only(turned)  # two of them to turn


def test_goals_that_nobody_can_ever_reach_are_named() -> None:
    island = {**HALL, "map": walled("Ay .. We .. .."), "possible_goals": ["5,1"]}
    assert "goals: human 0 can never attain any goal, whatever anybody does" in only(island)
    some = advise(load_quietly({**island, "possible_goals": ["5,1", "2,1"]}), GOOD)
    assert some.is_fine
    assert some.notes == ["goals that cannot be attained ever, whatever anybody does: 5,1"]
    late = advise(load_quietly({**HALL, "possible_goals": ["5,1", "2,1"], "max_steps": 3}), GOOD)
    assert late.notes == ["goals that take more than the 3 steps there are: 5,1 (4 steps)"]


def test_a_goal_of_one_human_may_be_out_of_reach_of_another() -> None:
    two = {"map": walled("Ay .. We .. Ay"), "orientations": ["e", "w"], "max_steps": 9, "possible_goals": ["2,1", "4,1"]}
    assert advise(load_quietly(two), GOOD).notes == []
    own = {**two, "possible_goals": {0: ["4,1"], 1: ["4,1"]}}
    assert "human 0 can never attain any goal" in only(own)


def test_a_world_without_goals_or_humans_is_told_what_it_needs() -> None:
    assert "goals: there are no goals. Give possible_goals" in only({**HALL, "possible_goals": None})
    assert "agents: no agent is a human. Put 'Ay' on the map" in only({"map": walled("Ae .. .."), "max_steps": 3})


# --- parameters -------------------------------------------------------------------------------------------------------


def test_dawdling_is_said_with_values_under_which_humans_do_not() -> None:
    hint = only(HALL, Params())
    assert hint == (
        "parameters: at the start, human 0 hardly cares which action to take, for 4 of 4 goals within reach: with gamma_h=1 "
        "arriving late is as good as arriving early (beta_h=10), so humans dawdle. With gamma_h=0.95 and beta_h=50 they do "
        "not"
    )
    assert found_in(HALL, Params(gamma_h=0.95, beta_h=50)) == []
    weak = only(HALL, Params(gamma_h=0.99, beta_h=10))
    assert "with beta_h=10 and gamma_h=0.99 a lost step makes so little difference that humans dawdle" in weak
    assert "(beta_h (1 - gamma_h) is 0.1, and should be 2 or more)" in weak
    assert found_in(HALL, Params(beta_h=0)) == []  # deliberately at random
    assert found_in({**HALL, "possible_goals": ["5,1"], "max_steps": 4}, Params()) == []  # no time to lose


def test_a_large_world_is_judged_by_the_rule_of_thumb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("empo_bi.advice.dawdling.MOST_STATES", 10)
    assert "so humans dawdle. Try gamma_h=0.95 with beta_h=50" in only(HALL, Params())
    assert found_in(HALL, Params(gamma_h=0.95, beta_h=50)) == []
    assert "rule of thumb" in advise(load_quietly(HALL)).examined[-1]


def test_eagerness_is_the_closed_form_where_there_is_one_way() -> None:
    """One step from the goal with two left: forward is worth 1, and after a turn nothing can be attained in the other."""
    beta, gamma = 3.0, 0.5
    world = load_quietly({**HALL, "possible_goals": ["2,1"], "max_steps": 2})
    found = eagerness(solve(world, Params(beta_h=beta, gamma_h=gamma), phase_2=False, precision="float64", progress=False))
    assert found == pytest.approx(np.array([[math.exp(beta)]]))
    assert dawdling(np.array([[1.5, math.nan], [9.0, 1.0], [math.nan, math.nan]]), 2.0) == [0]
    assert dawdling(np.array([[1.5, 1.0, 9.0]]), 2.0) == [0]


# --- what is fine -----------------------------------------------------------------------------------------------------

LARGE = ("scaling/", "challenges/", "items/", "conflicts/the_many", "doors_and_keys/one", "doors_and_keys/whose")
QUICK = [name for name in empo_bi.worlds.available() if not name.startswith(LARGE)]


@pytest.mark.parametrize("name", QUICK)
def test_shipped_worlds_are_fine_with_the_parameters_to_begin_with(name: str) -> None:
    found = advise(name, GOOD)
    assert [hint.about for hint in found.hints] == (["agents"] if name == "basics/robot_alone" else [])
    assert "no probable mistakes" in str(found) or name == "basics/robot_alone"


def test_mistakes_of_a_file_come_first_when_it_is_read_here() -> None:
    found = advise({**HALL, "colour": "red"}, GOOD)
    assert [(hint.about, "unknown key" in hint.found) for hint in found.hints] == [("file", True)]


def test_python_worlds_get_advice_about_goals() -> None:
    world = TwoSteps()
    world.possible_goal_generator = TabularGoalGenerator([At(7)])  # type: ignore[list-item]
    (hint,) = advise(world, GOOD).hints
    assert "human 0 can never attain any goal" in str(hint)
    world.possible_goal_generator = TabularGoalGenerator([At(1)])  # type: ignore[list-item]
    assert advise(world, GOOD).is_fine


def test_arguments_are_those_of_solve() -> None:
    with pytest.raises(TypeError, match=r"Params\(zeta=2\)"):
        advise(load_world("first_steps"), zeta=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="params=3 is a int; give a Params"):
        advise(load_world("first_steps"), 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no agent 7"):
        advise(load_world("first_steps"), human_agent_indices=[7])


# --- warnings of solve ------------------------------------------------------------------------------------------------


def warned(mapping: Any, params: Any = GOOD, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solve(load_quietly(mapping), params, progress=False, **options)
    assert all(one.category is AdviceWarning and one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


def test_solve_warns_of_a_robot_that_is_none() -> None:
    blue = {**TWO, "map": walled("Ay .. .. .. / We We We We / Ab .. .. ..")}
    (message,) = warned(blue)
    assert message.startswith(
        "no agent is a robot: agent 1 is blue, so there is nothing for phase 2 to decide. Robots are grey"
    )
    assert "`empo-bi check`" in message
    assert warned(blue, robot_agent_indices=[]) == warned(blue, phase_2=False) == warned({**blue, "robots": [1]}) == []


def test_solve_warns_of_a_horizon_too_short_for_any_goal() -> None:
    """Each of the robot's actions is as good as the others: 25 or 14.3 percent everywhere."""
    short = {**TWO, "possible_goals": ["1,1,2,1", "1,1,3,1", "4,1"], "max_steps": 2, "action_class": "ObjectActions"}
    (message,) = warned(short)
    assert message.startswith(
        "no human can attain any goal within 2 steps, but what holds at the start, whatever anybody does"
    )
    assert warned(short, phase_2=False) == [message]
    assert warned({**short, "max_steps": 3}) == []
    assert warned({**short, "possible_goals": ["1,1,4,1"]}) == []  # all that there is has been attained


def test_solve_warns_of_humans_who_dawdle_but_not_of_those_who_are_meant_to() -> None:
    (message,) = warned(HALL, Params())
    assert message.startswith("at the start, humans hardly care which action to take")
    assert warned(HALL, [Params(), Params(gamma_h=0.999)]) == [message]
    assert warned(HALL, [Params(), GOOD]) == warned(HALL, GOOD) == warned(HALL, Params(beta_h=0)) == []
    assert warned(HALL, Params(), human_policy_prior=lambda state, human, goal: [0.25] * 4) == []


@pytest.mark.parametrize("name", ["locked_in", "trailblazer", "secret_chamber", "remote_control"])
def test_solve_does_not_warn_of_shipped_worlds(name: str) -> None:
    assert warned(name) == []
