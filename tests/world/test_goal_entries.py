"""``possible_goals`` in world files: spellings, lists by human, every error and warning, into stores and back."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from engine import load_quietly
from goal_lists import goal_lists
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_worlds import random_worlds
from worked_examples import walled

from empo_bi import (
    GoalError,
    Params,
    ReachCellGoal,
    ReachRectangleGoal,
    WorldFileError,
    WorldWarning,
    load_world,
    open_solution,
    solve,
)  # fmt: skip
from empo_bi.dag.attainment import fixed_goals_of
from empo_bi.goals import AllOf, AnyOf, AtStep, Carries, ConditionGoal, DoorOpen, Facing, InCells
from empo_bi.store.stored_world import remembered_world
from empo_bi.world.as_model import as_model

MAP = walled("Ay Kg Lg .. / Ay .. We Ae")  # humans 0 at 1,1 and 1 at 1,2, robot 2 at 4,2
ALL_CELLS = "1,1,4,2"


def flat(goals: Any, **more: Any) -> dict[str, Any]:
    return {"map": MAP, "max_steps": 5, "possible_goals": goals, **more}


def goals_of(goals: Any, human: int = 0, **more: Any) -> list[Any]:
    return load_quietly(flat(goals, **more)).possible_goal_generator.goals_of(human)


@pytest.mark.parametrize(
    ("entry", "condition"),
    [
        ({"cells": [[1, 1], [2, 1]]}, InCells([(1, 1), (2, 1)])),
        ({"cells": ["1,1", [2, 1, 3, 2], [[1, 2], [2, 2]]]}, InCells([(1, 1), (2, 1, 3, 2), (1, 2, 2, 2)])),
        ({"name": "a", "cells": [1, 1]}, InCells([(1, 1)])),
        ({"name": "a", "cells": "1,1,2,2"}, InCells([(1, 1, 2, 2)])),
        ({"name": "a", "goal": [[1, 1], [2, 2]]}, InCells([(1, 1, 2, 2)])),
        ({"facing": "north"}, Facing("north")),
        ({"facing": "n"}, Facing("north")),
        ({"facing": 3}, Facing("north")),
        ({"carries": "key"}, Carries("key")),
        ({"carries": "green key"}, Carries("key", "green")),
        ({"door": [3, 1]}, DoorOpen((3, 1))),
        ({"door": "3,1"}, DoorOpen((3, 1))),
        ({"step": 4}, AtStep(4)),
        ({"goal": "1,1", "facing": "s", "step": 2}, AllOf([InCells([(1, 1)]), Facing("s"), AtStep(2)])),
        ({"all": ["1,1", {"facing": "s"}]}, AllOf([InCells([(1, 1)]), Facing("s")])),
        ({"any": ["1,1", {"facing": "s", "step": 2}]}, AnyOf([InCells([(1, 1)]), AllOf([Facing("s"), AtStep(2)])])),
        ({"any": [{"facing": "s"}]}, Facing("s")),
        ({"name": None, "facing": "s"}, Facing("s")),
    ],
)
def test_an_entry_says_what_has_to_hold(entry: Any, condition: Any) -> None:
    (goal,) = goals_of([entry])
    assert goal == ConditionGoal(None, 0, condition)
    assert goal.name == entry.get("name")


def test_a_single_place_without_a_name_is_what_it_was(recwarn: pytest.WarningsRecorder) -> None:
    found = goals_of(["1,1", {"cells": [[1, 1]]}, {"cells": "1,1,2,2", "weight": 3}, {"goal": "1,1,1,1", "weight": 2}])
    assert found == [
        ReachCellGoal(None, 0, (1, 1)), ReachCellGoal(None, 0, (1, 1)), ReachRectangleGoal(None, 0, (1, 1, 2, 2)),
        ReachRectangleGoal(None, 0, (1, 1, 1, 1)),
    ]  # fmt: skip
    assert load_quietly(flat(["1,1"])).mapping["possible_goals"] == [{"goal": [1, 1], "weight": 1.0}]


def test_all_and_any_take_goals_further_up_by_their_names() -> None:
    entries = [{"name": "home", "cells": [[1, 1], [1, 2]]}, {"name": "key", "carries": "key"}, {"all": ["home", "key"]}]
    assert goals_of(entries)[2].condition == InCells([(1, 1), (1, 2)]) & Carries("key")


def test_each_human_has_its_own_list_with_its_own_weights() -> None:
    world = load_quietly(flat({0: [{"name": "home", "cells": [1, 1], "weight": 3}, "2,1"], 1: ["1,2", "2,2", "2,1", "1,1"]}))
    generator = world.possible_goal_generator
    assert [(goal.index, weight) for goal, weight in generator.generate(None, 0)] == [(0, 0.75), (1, 0.25)]
    assert [weight for _, weight in generator.generate(None, 1)] == [0.25] * 4
    assert {goal.human_agent_index for goal in generator.goals_of(1)} == {1}
    with pytest.raises(GoalError, match="agent 2 has no goals in this world's file, only agents 0, 1; give it a list"):
        list(generator.generate(None, 2))
    assert generator.goal_coords == [None, (2, 1), (1, 2), (2, 2), (2, 1), (1, 1)]
    assert (generator.n_goals, min(generator.weights)) == (6, 0.25)
    sampler = world.possible_goal_sampler
    assert {sampler.sample(None, 1)[0].human_agent_index for _ in range(9)} == {1}


@pytest.mark.parametrize("key", ["yellow", "y"])
def test_humans_of_a_colour_share_a_list_unless_one_has_its_own(key: str) -> None:
    goals = {key: ["1,1", "2,1"], 1: ["1,2"]}
    assert [len(goals_of(goals, human)) for human in (0, 1)] == [2, 1]
    assert [len(goals_of({key: ["1,1", "2,1"]}, human)) for human in (0, 1)] == [2, 2]


def test_a_list_may_be_all_cells() -> None:
    assert len(goals_of({0: "all", 1: ["1,1"]})) == 7
    assert goals_of({"0": "all", "1": ["1,1"]}, 1) == [ReachCellGoal(None, 1, (1, 1))]


BAD = {
    "a misspelt key": ([{"nmae": "a", "step": 1}], r"goals\[0\]: found keys .* 'nmae' is unknown. Did you mean 'name'"),
    "another word": ([{"direction": "n"}], "'direction' is unknown. Did you mean 'facing'"),
    "no quotes in braces": ([{"goal": 3, 2: None}], "'2' is unknown. Put quotes around a cell in braces"),
    "no condition": ([{"name": "a"}], r"found keys \['name'\], expected also what has to hold: goal, cells"),
    "a number as a name": ([{"name": 7, "cells": [[1, 1]]}], r"goals\[0\].name: name is 7; give a text"),
    "a name like a cell": ([{"name": "7,3", "cells": [[1, 1]]}], "could be taken for a number, for cells"),
    "a long name": ([{"name": "a" * 61, "cells": [[1, 1]]}], "has 61 characters"),
    "a name that colours the terminal": ([{"name": "a\x1b[31m", "cells": [[1, 1]]}], "control characters"),
    "a name of two lines": ([{"name": "a\nb", "cells": [[1, 1]]}], "control characters"),
    "a name twice": ([{"name": "a", "step": 1}, {"name": "a", "step": 2}], r"goals\[1\]: another goal is called 'a', too"),
    "no weight": ([{"name": "a", "step": 1, "weight": 0}], "weight is 0, expected a positive number"),
    "a cell off the grid": ([{"cells": [[1, 1], [9, 9]]}], "9,9 is not on the grid, whose cells are 0,0 to 5,3"),
    "a named cell off the grid": ([{"name": "a", "goal": [-1, 0]}], "-1,0 is not on the grid"),
    "no cells": ([{"cells": []}], r"goals\[0\].cells: found \[\], expected a list of cells and rectangles"),
    "half a cell": ([{"cells": [[1.5, 1]]}], r"\[1.5, 1\] is not a place; give a cell .* with whole numbers"),
    "cells in words": ([{"cells": "home"}], "'home', expected a list of cells"),
    "too many cells": ([{"cells": [[1, 1]] * 257}], "found 257 places, expected at most 256"),
    "goal and cells": ([{"goal": "1,1", "cells": [[1, 1]]}], "'goal' and 'cells' mean the same"),
    "no direction": ([{"facing": "up"}], r"goals\[0\].facing: 'up'; give a direction: east"),
    "a fourth of a turn too far": ([{"facing": 4}], "found 4, expected a direction"),
    "no thing": ([{"carries": "robot"}], "'robot'; give a kind of thing that agents carry: key, ball, box"),
    "three words": ([{"carries": "a green key"}], "found 'a green key', expected a kind of thing, such as 'key'"),
    "no such thing": ([{"carries": "red key"}], "there is no red key in this world; what can be carried: green key"),
    "no such colour": ([{"carries": "gren key"}], "colour 'gren'; give one of .* Did you mean 'green'"),
    "no door": ([{"door": [1, 1]}], "there is no door on 1,1; doors are on 3,1"),
    "a door of many cells": ([{"door": [1, 1, 2, 2]}], "expected the cell of a door"),
    "a step in words": ([{"step": "soon"}], "found 'soon', expected a number of steps, 0 or more"),
    "half a step": ([{"step": 1.5}], "found 1.5, expected a number of steps"),
    "nothing in all": ([{"all": []}], r"found \[\], expected a list of 1 to 256 entries"),
    "no list in any": ([{"any": "1,1"}], "found '1,1', expected a list of 1 to 256 entries"),
    "no such name": ([{"name": "home", "step": 1}, {"any": ["hoem"]}], r"any\[0\]: 'hoem' .* Did you mean 'home'"),
    "a name further down": ([{"any": ["home"]}, {"name": "home", "step": 1}], "nor the name of a goal further up"),
    "a weight within": ([{"any": [{"step": 1, "weight": 2}]}], r"any\[0\]: found keys .* 'weight' is unknown"),
    "an unknown agent": ({0: ["1,1"], 7: ["1,1"]}, r"goals.7: found 7, expected the number or the colour of a human: 0 \("),
    "a robot": ({2: ["1,1"]}, "agent 2 is not a human, expected the number or the colour of a human"),
    "an unknown colour": ({"yelow": ["1,1"]}, "found 'yelow', .* Did you mean 'yellow'"),
    "a human without a list": ({0: ["1,1"]}, r"human 1 has no list of goals; give one for each of 0 \(yellow\), 1"),
    "a human without goals": ({0: [], 1: ["1,1"]}, "the list of human 0 is empty"),
    "a goal for a list": ({"cells": [[1, 1]]}, "found a single goal, expected a list"),
    "no list of a human": ({0: "1,1", 1: ["1,1"]}, r"goals.0: found '1,1', expected a list with one goal per entry"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_every_mistake_is_named_with_what_was_expected(case: str) -> None:
    goals, message = BAD[case]
    with pytest.raises(WorldFileError, match=message) as raised:
        load_world(flat(goals))
    assert str(raised.value).isprintable()


def deep(depth: int) -> Any:
    return {"step": 1} if depth == 0 else {"all" if depth % 2 else "any": [deep(depth - 1), {"facing": "north"}]}


def test_all_and_any_are_not_nested_endlessly() -> None:
    assert len(goals_of([deep(6)])) == 1
    for depth in (7, 25, 400):
        with pytest.raises(WorldFileError, match="nested"):
            load_world(flat([deep(depth)]))
    # Names are no way around it: neither deeper nor, with many copies, larger.
    by_name = [{"name": "a0", "facing": "north"}]
    by_name += [{"name": f"a{i}", "any" if i % 2 else "all": [f"a{i - 1}", {"step": i}]} for i in range(1, 9)]
    with pytest.raises(WorldFileError, match="nested 7 deep"):
        load_world(flat(by_name))
    wide = [{"name": "rows", "cells": [[x, y] for x in range(6) for y in range(4)]}]
    wide += [
        {"name": f"w{i}", "all": [*(["rows"] if i == 0 else [f"w{i - 1}"]), {"any": ["rows", {"step": i}]}]}
        for i in range(40)
    ]
    with pytest.raises(WorldFileError, match="conditions and places; give 1 to 256"):
        load_world(flat(wide))


def test_an_error_names_the_line_of_a_list(tmp_path: Any) -> None:
    rows = "\n".join("  " + row for row in MAP.split("\n"))
    (tmp_path / "w.yaml").write_text(
        f"map: |\n{rows}\npossible_goals:\n  0:\n    - 1,1\n    - {{door: [1, 1]}}\n  1: [1,2]\n"
    )
    with pytest.raises(WorldFileError, match=r"w\.yaml:9: possible_goals\.0\[1\]: there is no door on 1,1"):
        load_world(tmp_path / "w.yaml")


WARNINGS = {
    "walls": ([{"name": "a", "cells": [[0, 0], [0, 1]]}, ALL_CELLS], r"goals\[0\]: no agent can ever stand on 0,0 or 0,1"),
    "nowhere": ([{"all": ["1,1", "2,1"]}, ALL_CELLS], "no cell is where an agent has to be for this: 1,1 and 2,1"),
    "too late": ([{"name": "a", "any": [{"step": 6}, "1,1"]}, ALL_CELLS], "step 6 never comes, since max_steps is 5"),
    "uncovered": ([{"name": "a", "cells": [1, 1, 4, 1]}, {"carries": "key"}], r"no goal covers the cells \(1,2\), \(2,2\)"),
    "uncovered by one": ({0: [ALL_CELLS], 1: ["1,1,4,1"]}, r"goals\.1: no goal of human 1 covers the cells \(1,2\)"),
}  # fmt: skip


@pytest.mark.parametrize("case", WARNINGS)
def test_probable_mistakes_are_warnings_and_errors_if_strict(case: str) -> None:
    goals, message = WARNINGS[case]
    with pytest.warns(WorldWarning, match=message):
        load_world(flat(goals))
    with pytest.raises(WorldFileError, match=message):
        load_world(flat(goals), strict=True)


def test_goals_that_hands_are_needed_for() -> None:
    for entry, message in (
        ({"carries": "key"}, "nobody can pick up anything here"),
        ({"door": [3, 1]}, "nobody can open or close"),
    ):
        with pytest.warns(WorldWarning, match=message):
            load_world(flat([entry, ALL_CELLS], action_class="SmallActions"))


def test_mistakes_of_a_shared_list_are_told_once(recwarn: pytest.WarningsRecorder) -> None:
    load_world(flat({"yellow": [{"name": "a", "cells": [[0, 0]]}, ALL_CELLS]}))
    assert [str(found.message).split(": ")[2][:27] for found in recwarn] == ["no agent can ever stand on "]


def test_named_goals_that_cover_the_map_warn_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    load_world(flat({0: [{"name": "anywhere", "cells": ALL_CELLS}, {"name": "out", "door": [3, 1]}], 1: [ALL_CELLS]}))
    assert not recwarn.list


@pytest.mark.parametrize("entry", [{"facing": "north"}, {"carries": "key"}, {"door": [0, 0]}])
def test_bush_worlds_take_cells_steps_all_and_any(entry: Any) -> None:
    bushes = {"map": ["Ro . .", ". . Hu"], "B": 4, "max_steps": 3}
    with pytest.raises(WorldFileError, match=r"look nowhere|nobody carries|no doors"):
        load_quietly({**bushes, "possible_goals": [entry]})
    goals = {1: [{"name": "corner", "cells": [[0, 0], [2, 0]], "step": 2}, {"any": ["corner", "1,1"]}]}
    world = load_quietly({**bushes, "possible_goals": goals})
    assert [goal.label for goal in world.possible_goal_generator.goals_of(1)] == [
        "corner", "1,1 or ((0,0 or 2,0) and at step 2)"
    ]  # fmt: skip
    twin = load_quietly(json.loads(json.dumps(world.mapping)))
    assert twin.world_spec.goals == world.world_spec.goals


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_what_stores_remember_is_the_same_world_with_the_same_goals(data: st.DataObject) -> None:
    mapping = data.draw(
        random_worlds(max_agents=3, max_steps=2).filter(lambda found: "Ay" in itertools.chain(*found["map"]))
    )
    humans = load_quietly(mapping).human_agent_indices
    given_goals: Any = data.draw(goal_lists(mapping))
    if data.draw(st.booleans()):
        given_goals = {human: data.draw(goal_lists(mapping)) for human in humans}
    elif data.draw(st.booleans()):
        given_goals = {"yellow": given_goals}
    world = load_quietly({**mapping, "possible_goals": given_goals})
    written = json.loads(json.dumps(world.mapping))
    assert written == world.mapping
    twin = remembered_world(written, "a store")
    assert twin.world_spec.goals == world.world_spec.goals
    assert twin.mapping == world.mapping
    assert isinstance(written["possible_goals"], Mapping) == isinstance(given_goals, dict)
    one, other = fixed_goals_of(as_model(world)), fixed_goals_of(as_model(twin))
    assert one is not None
    assert other is not None
    assert (one.key(), one.describe(), one.goals) == (other.key(), other.describe(), other.goals)
    assert one.key() is not None


def test_names_are_part_of_what_stores_are_known_by() -> None:
    keys = []
    for name in ("home", "house"):
        found = fixed_goals_of(as_model(load_quietly(flat([{"name": name, "cells": [[1, 1]]}]))))
        assert found is not None
        keys.append(found.key())
    assert keys[0] != keys[1]


def test_weights_that_do_not_survive_two_normalisations_are_remembered_as_given() -> None:
    """A run with such weights could not be opened again: the remembered world had other weights, in the last digit."""
    even, odd = (
        load_quietly(flat(["1,1", "2,1", "1,2", {"goal": "2,2", "weight": heavy}, "4,1", "4,2"])) for heavy in (1, 3)
    )
    assert {entry["weight"] for entry in even.mapping["possible_goals"]} == {1 / 6}
    assert [entry["weight"] for entry in odd.mapping["possible_goals"]] == [1, 1, 1, 3, 1, 1]
    for world in (even, odd):
        twin = remembered_world(json.loads(json.dumps(world.mapping)), "a store")
        assert twin.possible_goal_generator.weights == world.possible_goal_generator.weights
        assert sum(twin.possible_goal_generator.weights) == pytest.approx(1)


def test_a_run_with_such_weights_opens_again(tmp_path: Any) -> None:
    world = load_quietly(flat(["1,1", "2,1", "1,2", {"goal": "2,2", "weight": 3}, "4,1", ALL_CELLS], max_steps=2))
    solve(world, Params(zeta=2), out=tmp_path / "run", progress=False).close()
    with open_solution(tmp_path / "run") as found:
        assert found.goal_columns.weights(0)[0, :6].tolist() == world.possible_goal_generator.weights


def rectangles(n: int) -> list[list[int]]:
    """Different ones that have a cell in common."""
    return [[1, 1, 1 + k % 8, 1 + k // 8] for k in range(n)]


WIDE = walled(" / ".join(["Ay .. .. .. .. .. .. .."] + [".. " * 8] * 15))


def test_a_weight_that_is_nothing_beside_the_others_is_refused() -> None:
    """Or a run would be written that its own readers take for damaged."""
    goals = [{"goal": [1, 1], "weight": 1e308}, {"goal": [2, 1], "weight": 1e-323}]
    with pytest.raises(WorldFileError, match=r"possible_goals.*weight 9.88131e-324 is nothing beside those of"):
        load_world({"map": ["We We We We", "We Ay .. We", "We We We We"], "possible_goals": goals})


def test_halves_of_characters_in_names_become_question_marks() -> None:
    room = {"map": ["We We We We", "We Ay .. We", "We We We We"], "metadata": {"name": "a\ud800b"}}
    assert load_world(room).world_spec.name == "a?b"


def test_places_that_multiply_are_refused_at_once() -> None:
    parts = [{"cells": rectangles(n)} for n in (45, 46, 47, 48)]
    with pytest.raises(WorldFileError, match=r"up to 4,669,920 rectangles in common; at most 4,096 are kept"):
        load_world({"map": WIDE, "possible_goals": [{"name": "many", "all": parts}]})
    (goal,) = load_world({"map": WIDE, "possible_goals": [{"name": "two", "all": parts[:2]}]}).world_spec.goals
    assert len(goal.condition.cells) == 45


def test_goals_that_name_others_are_counted_with_all_that_these_ask_for() -> None:
    first = {"name": "many", "cells": rectangles(120)}
    named = [{"name": f"n{i}", "any": ["many", {"step": i}]} for i in range(2300)]
    with pytest.raises(WorldFileError, match=r"goals with 278,420 places and conditions in all; give at most 262,144"):
        load_world({"map": WIDE, "max_steps": 3000, "possible_goals": [first, *named]})


def test_places_of_many_goals_are_looked_at_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    world = load_world("asymmetric_freeing", max_steps=3)
    goals = [ReachRectangleGoal(world, 0, (x, 1, x + 1, y)) for x in range(1, 8) for y in range(1, 4)]
    steps, key_SW = world.encode([world.initial_state()])
    whole = world.attainment(steps, key_SW, goals)
    monkeypatch.setattr("empo_bi.world.attained._TABLE_BYTES", 1)
    assert np.array_equal(world.attainment(steps, key_SW, goals), whole)
    assert whole.any()
    assert not whole.all()
