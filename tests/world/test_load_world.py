"""Where worlds come from, what overrides them, and what is said about bad ones."""

from __future__ import annotations

import json
import os
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

import empo_bi
from empo_bi import MissingAgentError, WorldFileError, WorldNotFoundError, WorldWarning, load_world
from empo_bi.world.text import to_mapping

MAP = "We We We We\nWe Ay Ae We\nWe We We We"
SMALL = {"map": MAP, "max_steps": 3}
SMALL_YAML = """\
map: |
  We We We We
  We Ay Ae We
  We We We We
max_steps: 3
"""


def with_key(**keys: Any) -> dict[str, Any]:
    return SMALL | keys


# --- sources ----------------------------------------------------------------------------------------------------------


def test_a_shipped_world_has_a_short_and_a_full_name() -> None:
    short, full = load_world("asymmetric_freeing"), load_world("jobst_challenges/asymmetric_freeing")
    assert short.world_spec == full.world_spec
    assert short.max_steps == 15


def test_every_kind_of_source_gives_the_same_world(tmp_path: Path) -> None:
    yaml_file, json_file = tmp_path / "w.yaml", tmp_path / "w.json"
    yaml_file.write_text(SMALL_YAML)
    json_file.write_text(json.dumps(SMALL))
    sources = [SMALL, SMALL_YAML, json.dumps(SMALL), json.dumps(SMALL, indent="\t"), yaml_file, str(yaml_file), json_file]
    states = [load_world(source).initial_state() for source in sources]
    assert len(set(states)) == 1
    assert states[0][1][0][:2] == (1, 1)


def test_the_three_forms_of_a_map_are_one_world() -> None:
    rows = MAP.split("\n")
    forms = [
        SMALL["map"],
        f"\n\n  {SMALL['map']}  \n",
        rows,
        [row.replace(" ", "") for row in rows],
        [r.split() for r in rows],
    ]
    worlds = [load_world({"map": form}).world_spec.cells for form in forms]
    assert all(cells == worlds[0] for cells in worlds)


def test_a_file_in_this_folder_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text(SMALL_YAML)
    monkeypatch.chdir(tmp_path)
    assert load_world("mine.yaml").max_steps == 3


def test_a_file_is_found_without_its_ending_and_a_folder_of_worlds_lists_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text(SMALL_YAML)
    monkeypatch.chdir(tmp_path)
    assert load_world("mine").max_steps == 3
    with pytest.raises(WorldNotFoundError, match=r"'buttons' is a folder of shipped worlds.*buttons/off_switch"):
        load_world("buttons")


def test_what_to_text_prints_can_be_loaded_again() -> None:
    for name in empo_bi.worlds.available():
        world = load_world(name)
        again = load_world({"map": world.to_text()}, actions=world.world_spec.action_set)
        assert again.world_spec.cells == world.world_spec.cells


# --- overrides --------------------------------------------------------------------------------------------------------


def test_what_the_caller_passes_wins_over_the_file_even_when_it_equals_a_default() -> None:
    assert load_world(SMALL, max_steps=100).max_steps == 100
    assert load_world(SMALL, can_push_rocks="e").agents[1].can_push_rocks
    assert load_world(with_key(stumble_probability=0.3), stumble_probability=0.5).world_spec.stumble_probability == 0.5


@pytest.mark.parametrize(
    ("name", "expected"),
    [("small", 4), ("SmallActions", 4), ("object", 7), ("minimal", 2), ("MineActions", 5), ("FullActions", 4), (None, 4)],
)
def test_action_sets_have_long_and_short_names(name: str | None, expected: int) -> None:
    assert load_world(SMALL, actions=name).action_space.n == expected
    assert load_world(with_key(action_class=name)).action_space.n == expected


def test_an_override_that_does_not_exist_is_named_with_the_near_miss() -> None:
    with pytest.raises(TypeError, match=r"no option 'max_step'.*'max_steps'"):
        load_world(SMALL, max_step=3)
    with pytest.raises(TypeError, match="mean the same"):
        load_world(SMALL, actions="small", action_class="SmallActions")


# --- goals ------------------------------------------------------------------------------------------------------------


def test_goals_in_every_syntax() -> None:
    entries = [
        "1,1",
        " 1 , 1 ",
        [1, 1],
        [1.0, 1.0],
        "2,1,1,1",
        [2, 1, 1, 1],
        [[1, 1], [2, 1]],
        {"goal": [1, 1], "weight": 3},
    ]
    spec = load_world(SMALL, possible_goals=entries).world_spec
    assert [goal.rectangle for goal in spec.goals] == [(1, 1, 1, 1)] * 4 + [(1, 1, 2, 1)] * 3 + [(1, 1, 1, 1)]
    assert [goal.is_cell for goal in spec.goals] == [True] * 4 + [False] * 3 + [True]
    assert [goal.weight for goal in spec.goals] == pytest.approx([0.1] * 7 + [0.3])


def test_without_weights_each_of_n_goals_weighs_one_nth_and_duplicates_count() -> None:
    world = load_world(SMALL, possible_goals=["1,1", "1,1", "2,1", "1,1,2,1"])
    pairs = list(world.possible_goal_generator.generate(world.initial_state(), 0))
    assert [weight for _, weight in pairs] == [0.25] * 4
    assert [goal.index for goal, _ in pairs] == [0, 1, 2, 3]
    assert pairs[0][0] == pairs[1][0] != pairs[2][0]


# --- bad input: errors ------------------------------------------------------------------------------------------------

BAD_MAPPINGS = {
    "no map": ({"max_steps": 3}, "'map' is missing"),
    "a map under another name": ({"grid": MAP}, "found 'grid'"),
    "a map with a typo": ({"mapp": MAP}, "found 'mapp'"),
    "more steps than can be counted": (with_key(max_steps=10**12), r"at most 2,147,483,647"),
    "ragged rows": ({"map": "We We We\nWe We\nWe We We"}, r"row 1 has 2 cells, row 0 has 3"),
    "half a cell": ({"map": "We We We\nWe W We\nWe We We"}, r"row 1 has 5 characters"),
    "an empty row inside": ({"map": "We We We\n\nWe We We\nWe We We"}, r"row 1 has 0 cells"),
    "too large": ({"map": ["We" * 300] * 300}, r"300 x 300 cells; a map has at most 16,384 cells, 256 along a side"),
    "too small": ({"map": "We We\nWe We"}, r"at least 3 x 3"),
    "an unknown code": ({"map": "We We We\nWe Zz We\nWe We We"}, r"unknown code 'Zz' at x=1, y=1"),
    "a code in the wrong case": ({"map": "We We We\nWe ay We\nWe We We"}, r"Did you mean 'Ay'"),
    "a map that is a number": ({"map": 7}, r"map: found 7"),
    "a row that is a number": ({"map": ["We We We", 7, "We We We"]}, r"row 1 is 7"),
    "an empty map": ({"map": []}, r"map: found \[\]"),
    "grid_size beside a map": (with_key(grid_size=5), r"grid_size"),
    "negative steps": (with_key(max_steps=-1), r"max_steps: found -1.*0 or more"),
    "half steps": (with_key(max_steps=2.5), r"max_steps: found 2.5"),
    "steps in words": (with_key(max_steps="ten"), r"max_steps: found 'ten'"),
    "steps that are true": (with_key(max_steps=True), r"max_steps: found True"),
    "a probability above 1": (with_key(stumble_probability=1.5), r"stumble_probability: found 1.5.*from 0 to 1"),
    "a negative probability": (with_key(solidify_probability=-0.1), r"solidify_probability: found -0.1"),
    "a huge probability": (with_key(stumble_probability=10**400), r"stumble_probability: found 1000.*characters"),
    "colours in lists in lists": (with_key(can_push_rocks=[["y"]]), r"can_push_rocks: found \['y'\]"),
    "colours as a mapping": (with_key(can_enter_magic_walls={"y": 1}), r"can_enter_magic_walls: found \{'y': 1\}"),
    "a goal that is huge": (with_key(possible_goals=[[10**400, 1]]), r"\[1000"),
    "a goal with underscores": (with_key(possible_goals=["1_1,1"]), r"'1_1,1' is not a goal"),
    "directions as bytes": (with_key(orientations=b"\x00\x01"), r"orientations: found b"),
    "a probability that is no number": (with_key(enter_bush_success_prob=float("nan")), r"found nan"),
    "an unknown action set": (with_key(action_class="SmalActions"), r"action_class: found 'SmalActions'.*'SmallActions'"),
    "an unknown direction": (with_key(orientations=["e", "up"]), r"orientations\[1\]: found 'up'"),
    "a direction out of range": (with_key(orientations=4), r"orientations: found 4"),
    "an unknown colour": (with_key(can_push_rocks="ex"), r"can_push_rocks: found 'x' in 'ex'"),
    "metadata that is a text": (with_key(metadata="hello"), r"metadata: found 'hello'"),
    "goals that are a text": (with_key(possible_goals="1,1"), r"possible_goals: found '1,1', expected a list"),
    "a goal of three numbers": (with_key(possible_goals=["1,1", "1,2,3"]), r"possible_goals\[1\]: '1,2,3' is not a goal"),
    "a goal in words": (with_key(possible_goals=["home"]), r"possible_goals\[0\]: 'home' is not a goal"),
    "a goal that is infinite": (with_key(possible_goals=[[float("inf"), 1]]), r"\[inf, 1\] is not a goal"),
    "a goal with a wrong key": (with_key(possible_goals=[{"gaol": "1,1"}]), r"found keys \['gaol'\]"),
    "a goal of negative weight": (with_key(possible_goals=[{"goal": "1,1", "weight": -1}]), r"weight is -1"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_MAPPINGS)
def test_bad_values_are_named_with_what_was_expected(case: str) -> None:
    mapping, message = BAD_MAPPINGS[case]
    with pytest.raises(WorldFileError, match=message):
        load_world(mapping)


BAD_TEXTS = {
    "no YAML": ("map: |\n  We\nmax_steps: [1, 2\n", r":\d+: not YAML"),
    "tabs": ("map:\n\t- x\n", r":2: not YAML"),
    "a tag that makes objects": (SMALL_YAML + "metadata: !!python/object/apply:os.getcwd []\n", r":6: .*remove the tag"),
    "a tag that its value does not fit": (SMALL_YAML + "metadata: !!bool x\n", r"does not fit its tag.*remove the tag"),
    "a tag without a value": (SMALL_YAML + "metadata: !!int ''\n", r"does not fit its tag.*remove the tag"),
    "a date that is none": (SMALL_YAML + "metadata: !!timestamp x\n", r"does not fit its tag.*remove the tag"),
    "a tag of one's own": (SMALL_YAML + "metadata: !thing {}\n", r":6: .*remove the tag"),
    "a key twice": (SMALL_YAML + "max_steps: 4\n", r":6: duplicate key 'max_steps'"),
    "a list": ("- 1\n- 2\n", r"found list, expected a mapping"),
    "nothing": ("\n\n", r"found NoneType, expected a mapping"),
    "a bad value with its line": (SMALL_YAML.replace("3", "-3"), r":5: max_steps: found -3"),
    "a bad goal with its line": (SMALL_YAML + "possible_goals:\n  - 1,1\n  - x\n", r":8: possible_goals\[1\]"),
    "a goal's key twice": (SMALL_YAML + "possible_goals:\n  - {goal: '1,1', goal: '2,1'}\n", r":7: duplicate key 'goal'"),
    "a bell": (SMALL_YAML + 'metadata: {name: "\x07"}\n', r"not YAML"),
    "a date that does not exist": (SMALL_YAML + "metadata: {day: 2026-13-45}\n", r"not a world file \(ValueError"),
    "a key that is a list": (SMALL_YAML + "metadata: {[1, 2]: 3}\n", r":6: "),
    "a number of 5000 digits": (SMALL_YAML.replace("3", "0x" + "f" * 5000), r":5: max_steps: found .*whole number"),
    "a bad row below a blank one": (SMALL_YAML.replace("|\n", "|\n\n").replace("Ay", "Zz"), r":4: map\[1\]: unknown"),
    "a bad row with its line": (SMALL_YAML.replace("Ay", "Zz"), r":3: map\[1\]: unknown code 'Zz'"),
    "two documents": (SMALL_YAML + "---\nmap: x\n", r"not YAML"),
    "an alias that holds itself": ("map: &a [*a]\n", r"expands to more than"),
}


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_bad_texts_are_named_with_file_and_line(case: str, tmp_path: Path) -> None:
    text, message = BAD_TEXTS[case]
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(WorldFileError, match=message) as caught:
        load_world(path)
    assert str(caught.value).startswith(str(path))
    with pytest.raises(WorldFileError, match=message):
        load_world(text)


@pytest.mark.parametrize(("text", "message"), [
    ("metadata: {x: 1" + ":1" * 400_000 + "}\n", "<text>:1: a number in base 60"),  # which took two minutes
    ("metadata:\n  ? 1" + ":1" * 400_000 + "\n  : x\n", "a number in base 60"),
    ("? {a: 1}\n: x\n", "<text>:1: a key is a list or a mapping"),
])  # fmt: skip
def test_yaml_that_takes_long_to_read_is_refused_quickly(text: str, message: str) -> None:
    begin = time.perf_counter()
    with pytest.raises(WorldFileError, match=message):
        load_world(text)
    assert time.perf_counter() - begin < 30


def test_yaml_that_unfolds_without_end_is_refused_quickly() -> None:
    levels = "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12))
    with pytest.raises(WorldFileError, match="expands to more than"):
        load_world(f"a0: &a0 [x]\n{levels}\nmap: *a11\n")


def test_json_that_does_not_parse_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"map": "x",\n "max_steps": }')
    with pytest.raises(WorldFileError, match=r"bad.json:2: not JSON"):
        load_world(path)


def test_json_with_a_key_twice_or_a_monstrous_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"map": "x", "map": "y"}')
    with pytest.raises(WorldFileError, match="duplicate key 'map'"):
        load_world(path)
    path.write_text('{"map": "x", "max_steps": ' + "9" * 5000 + "}")
    with pytest.raises(WorldFileError, match="not a world file"):
        load_world(path)


def test_a_file_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    for name, text in (("w.yaml", SMALL_YAML), ("w.json", json.dumps(SMALL))):
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
        assert load_world(tmp_path / name).max_steps == 3


def test_a_text_may_be_a_single_line() -> None:
    assert len(load_world('map: ["WeWeWe","WeAyWe","WeWeWe"]').agents) == 1
    assert len(load_world("map: [" + ", ".join(["WeWeWe", "WeAyWe", *["WeWeWe"] * 60]) + "]").agents) == 1


@pytest.mark.parametrize("name", ["x" * 5000, "~nobody_of_that_name/x.yaml", "with\0null", ""])
def test_names_that_cannot_be_files_are_simply_not_found(name: str) -> None:
    with pytest.raises(WorldNotFoundError):
        load_world(name)


def test_a_bad_override_is_not_blamed_on_the_file() -> None:
    with pytest.raises(WorldFileError, match=r"^max_steps=\.\.\. passed to load_world: found -1"):
        load_world("asymmetric_freeing", max_steps=-1)


def test_enormous_weights_are_normalised_too() -> None:
    goals = [{"goal": "1,1", "weight": 1e308}, {"goal": "2,1", "weight": 1e308}]
    assert [goal.weight for goal in load_world(SMALL, possible_goals=goals).world_spec.goals] == [0.5, 0.5]


def test_a_large_map_with_a_goal_for_every_cell_loads_without_delay() -> None:
    """14,400 goals; no time is asserted, but a check of every cell against every goal would take minutes."""
    size = 120
    rows = ["We" * size, "WeAy" + ".." * (size - 3) + "We", *["We" + ".." * (size - 2) + "We"] * (size - 3), "We" * size]
    goals = [[x, y] for x in range(size) for y in range(size)]
    with pytest.warns(WorldWarning, match="no agent can ever stand"):
        world = load_world({"map": rows}, possible_goals=goals)
    assert len(world.world_spec.goals) == size**2


def test_a_missing_world_is_named_with_the_near_miss() -> None:
    with pytest.raises(WorldNotFoundError, match=r"asymetric_freeing.*Did you mean 'asymmetric_freeing'"):
        load_world("asymetric_freeing")
    with pytest.raises(FileNotFoundError, match="neither a file"):
        load_world("no/such/file.yaml")
    with pytest.raises(FileNotFoundError, match="neither a file"):
        load_world(Path("no_such_file.yaml"))


def test_a_folder_is_not_a_world(tmp_path: Path) -> None:
    with pytest.raises(WorldNotFoundError, match="is a folder"):
        load_world(tmp_path)


def test_an_enormous_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "big.yaml"
    with path.open("wb") as file:
        file.truncate(50_000_000_000)  # sparse: takes no room
    with pytest.raises(WorldFileError, match=r"50,000,000,000 bytes; a world file has at most"):
        load_world(path)
    with pytest.raises(WorldFileError, match="characters"):
        load_world("map: |\n" + "We We We\n" * 200_000)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_bytes(b"map: \xff\xfe\x00")
    with pytest.raises(WorldFileError, match="not UTF-8"):
        load_world(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(SMALL_YAML)
    path.chmod(0)
    with pytest.raises(WorldFileError, match="cannot be read"):
        load_world(path)


def test_a_source_of_a_wrong_type_is_refused() -> None:
    with pytest.raises(TypeError, match=r"source=7 \(int\); give a path"):
        load_world(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(("code", "option", "role"), [("Ae", "require_human", "human"), ("Ay", "require_robot", "robot")])
def test_a_missing_human_or_robot_is_an_error_where_one_is_needed(code: str, option: str, role: str) -> None:
    mapping = {"map": f"We We We\nWe {code} We\nWe We We"}
    load_world(mapping)
    with pytest.raises(MissingAgentError, match=rf"a {role} is needed .*but the agents are"):
        load_world(mapping, **{option: True})


# --- bad input: warnings ----------------------------------------------------------------------------------------------

SLIPS = {
    "an unknown key": (with_key(max_step=5), r"max_step: unknown key. Did you mean 'max_steps'"),
    "a goal on a wall": (with_key(possible_goals=["0,0", "1,1,2,1"]), r"goals\[0\]: no agent can ever stand on the cell"),
    "a goal off the grid": (with_key(possible_goals=["4,1", "1,1,2,1"]), r"goals\[0\]: the cell 4,1 extends beyond"),
    "a rectangle that sticks out": (with_key(possible_goals=["1,1,9,1"]), r"the rectangle 1,1,9,1 extends beyond the grid"),
    "a rectangle of walls": (with_key(possible_goals=["0,0,3,0", "1,1,2,1"]), r"no agent can ever stand on the rectangle"),
    "cells without a goal": (with_key(possible_goals=["1,1"]), r"no goal covers the cells \(2,1\)"),
    "a key of another name": (with_key(goals=["1,1"]), r"goals: unknown key. Did you mean 'possible_goals'"),
    "a kill button nobody can press": ({"map": MAP.replace("Ae", "Ki")}, r"no agent can press it with SmallActions"),
    "half a cell": (with_key(possible_goals=[[1.5, 1], "1,1,2,1"]), r"goals\[0\]: \[1.5, 1\] is taken as 1,1"),
    "too few directions": (with_key(orientations=["n"]), r"orientations: 1 direction for 2 agents"),
    "too many directions": (with_key(orientations=["n", "s", "e"]), r"3 directions for 2 agents.*1 \(grey\) at 2,1"),
    "a width that is not the map's": (with_key(width=9), r"width: found 9, but the map has 4"),
    "goals without a human": ({"map": MAP.replace("Ay", "Ar"), "possible_goals": ["1,1,2,1"]}, r"no agent is yellow"),
}  # fmt: skip


@pytest.mark.parametrize("case", SLIPS)
def test_slips_are_warnings_and_errors_when_strict(case: str) -> None:
    mapping, message = SLIPS[case]
    with pytest.warns(WorldWarning, match=message):
        world = load_world(mapping)
    assert world.initial_state()[0] == 0
    with pytest.raises(WorldFileError, match=message):
        load_world(mapping, strict=True)


def test_a_strict_load_lists_all_slips_at_once() -> None:
    with pytest.raises(WorldFileError) as caught:
        load_world(with_key(colour="red", possible_goals=["0,0", "1,1"]), strict=True)
    assert len(str(caught.value).splitlines()) == 3


def test_a_warning_points_to_the_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(SMALL_YAML + "stumbel_probability: 0.1\n")
    with pytest.warns(WorldWarning, match=r"w.yaml:6: stumbel_probability: unknown key.*'stumble_probability'"):
        assert load_world(path).world_spec.stumble_probability == 0.5


def test_a_good_world_loads_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world = load_world(with_key(possible_goals=["1,1", "2,1"], metadata={"name": "x"}, seed=3), strict=True)
    assert (world.world_spec.name, len(world.world_spec.goals)) == ("x", 2)


def test_keys_that_only_matter_for_observations_are_accepted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        world = load_world(with_key(partial_obs=False, agent_view_size=5, see_through_walls=True, seed=2, width=4, height=3))
    assert world.initial_state() == load_world(SMALL).initial_state()


def test_a_kill_button_is_no_slip_where_the_action_set_is_given() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "toggle" not in load_world({"map": MAP.replace("Ae", "Ki"), "action_class": "SmallActions"}).action_names
        assert "toggle" in load_world({"map": MAP.replace("Ae", "Ki")}, actions="object").action_names


def test_world_files_are_plain_yaml_for_everybody_else() -> None:
    for name in empo_bi.worlds.available():
        path = empo_bi.worlds.find(name)
        assert path is not None
        assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_a_map_full_of_agents_is_refused_before_it_takes_long() -> None:
    with pytest.raises(WorldFileError, match="map: found 10,000 agents, expected at most 64"):
        load_world({"map": "\n".join(" ".join(["Ay"] * 100) for _ in range(100)), "max_steps": 1})


# --- goals and roles that are not listed ------------------------------------------------------------------------------

ROWS = ["We We We We We", "We Ar .. Ab We", "We Lr We Ro We", "We .. We We We", "We We We We We"]
CLOSED_OFF: dict[str, Any] = {"map": ROWS, "max_steps": 2}


def test_all_cells_that_humans_can_walk_to_are_goals() -> None:
    world = load_world(CLOSED_OFF, humans=[0], robots=[1], goals="all")
    assert [goal.rectangle[:2] for goal in world.world_spec.goals] == [(1, 1), (2, 1), (3, 1), (1, 2), (3, 2), (1, 3)]
    assert all(goal.is_cell and goal.weight == pytest.approx(1 / 6) for goal in world.world_spec.goals)
    assert (world.human_agent_indices, world.robot_agent_indices) == ([0], [1])
    again = load_world(to_mapping(world.world_spec))
    assert again.world_spec.goals == world.world_spec.goals
    assert (again.human_agent_indices, again.robot_agent_indices) == ([0], [1])


def test_cells_that_nobody_reaches_are_named() -> None:
    closed = {**CLOSED_OFF, "map": [row.replace("Lr", "We") for row in ROWS], "humans": [0]}
    with pytest.warns(WorldWarning, match=r"no human can walk to the cells \(1,3\), so they are not among the goals"):
        load_world({**closed, "possible_goals": "all"})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"humans": [2]}, r"humans.*found \[2\], expected a list of different agents among 0 to 1"),
        ({"humans": [0, 0]}, r"different agents"),
        ({"humans": "all"}, r"expected a list of different agents"),
        ({"humans": [True]}, r"expected a list of different agents"),
        ({"humans": [0], "robots": [0, 1]}, r"agent 0 is also among the robots"),
        ({"possible_goals": "every"}, r"found 'every', expected a list with one goal per entry, as in '- 3,2', or 'all'"),
    ],
)
def test_wrong_roles_and_goals_are_named(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(WorldFileError, match=message):
        load_world({**CLOSED_OFF, **keys})


def test_goals_have_one_name_at_a_time() -> None:
    with pytest.raises(TypeError, match="goals= and possible_goals= mean the same"):
        load_world(CLOSED_OFF, goals="all", possible_goals="all")


def test_a_map_full_of_things_takes_memory_by_cells_not_by_cells_and_things() -> None:
    rows = ["We" * 60, "WeAy" + "Ro" * 57 + "We", *["We" + "Ro" * 58 + "We"] * 57, "We" * 60]
    world = load_world({"map": rows, "max_steps": 1})
    assert len(world.codec._things) > 3000
    assert len({id(entries) for entries in world.codec._things}) == 1
