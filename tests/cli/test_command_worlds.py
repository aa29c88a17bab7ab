"""``empo-bi worlds``: list, describe, draw."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from command_line import invoke, json_of

from empo_bi import load_world, worlds
from empo_bi.world.png import png_bytes


def test_all_worlds_are_listed_with_states_and_purpose() -> None:
    done = invoke("worlds")
    lines = done.stdout.splitlines()[1:]
    assert [line.split()[0] for line in lines] == worlds.available()
    (line,) = [line for line in lines if "asymmetric_freeing" in line]
    assert line.split()[1] == "70,333"
    assert "Two humans are locked in" in line
    assert "over 6 million" in done.stdout  # what a file says of its states need not be a number


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("freeing", ["jobst_challenges/asymmetric_freeing", "pushing/mirror_freeing"]),
        ("hall_?_rocks", ["scaling/hall_2_rocks", "scaling/hall_3_rocks"]),
        ("mine/*", ["mine/collapsed_gallery", "mine/strong_miner"]),
    ],
)
def test_a_pattern_is_a_part_of_a_name_or_one_as_for_files(pattern: str, expected: list[str]) -> None:
    assert [world["name"] for world in json_of("worlds", pattern)] == expected
    assert [world["name"] for world in json_of("worlds", "list", pattern)] == expected


def test_a_pattern_that_fits_nothing_ends_with_1() -> None:
    done = invoke("worlds", "xyzzy")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no shipped world matches 'xyzzy'" in done.stderr


def test_the_list_in_json_is_that_of_the_package() -> None:
    found = json_of("worlds")
    assert [world["name"] for world in found] == worlds.available()
    assert all(world["purpose"] == worlds.purpose(world["name"]) for world in found)
    assert {world["name"]: world["states"] for world in found}["basics/first_steps"] == 60


def test_a_description_has_map_agents_actions_goals_horizon_and_purpose() -> None:
    world = load_world("asymmetric_freeing", max_steps=7)
    shown = invoke("worlds", "describe", "asymmetric_freeing", "--steps", 7).stdout
    assert world.map_text().replace("\n", "\n    ") in shown
    assert world.describe() in shown
    assert "horizon 7" in shown
    assert "0 still, 1 left, 2 right, 3 forward" in shown
    assert "18 goals: 1,2; 2,1;" in shown
    assert "whom does the robot free" in shown


def test_a_description_in_json_agrees_with_the_world() -> None:
    world = load_world("asymmetric_freeing")
    found = json_of("worlds", "describe", "asymmetric_freeing")
    assert found["map"] == world.map_text().split("\n")
    assert found["actions"] == world.action_names
    assert (found["steps"], found["states"], len(found["goals"])) == (15, 70_333, 18)
    assert [agent["agent"] for agent in found["agents"] if agent["role"] == "human"] == world.human_agent_indices
    assert [agent["agent"] for agent in found["agents"] if agent["can_push_rocks"]] == [2]
    assert sum(goal["weight"] for goal in found["goals"]) == pytest.approx(1)
    assert found["purpose"] == worlds.purpose("asymmetric_freeing")


MINE = """\
# A corridor
# of two cells.
map: |
  We We We We
  We Ay Ae We
  We We We We
max_steps: 3
possible_goals: ["1,1", {goal: "2,1", weight: 3}]
"""


def test_files_changes_and_strictness(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(MINE, encoding="utf-8")
    shown = invoke("worlds", "describe", file).stdout
    assert "A corridor of two cells." in shown
    assert "2,1 (weight 0.75)" in shown
    changed = json_of("worlds", "describe", file, "--set", "stumble_probability=0.25", "--set", "max_steps=9")
    assert (changed["stumble_probability"], changed["steps"]) == (0.25, 9)
    file.write_text(MINE + "colour: red\n", encoding="utf-8")
    done = invoke("worlds", "describe", file)
    assert done.exit_code == 0
    assert done.stderr.startswith("empo-bi: warning: ")
    assert "colour" in done.stderr
    assert "WorldWarning" not in done.stderr  # which Python would show, with a line of source
    assert invoke("worlds", "describe", file, "--strict").exit_code == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [("stumble=0.2", "stumble"), ("max_steps", "give NAME=VALUE, such as stumble"), ("map=[a: b: c]", "is not YAML")],
)
def test_changes_that_cannot_be_are_named(change: str, message: str) -> None:
    done = invoke("worlds", "describe", "first_steps", "--set", change)
    assert done.exit_code == 2
    assert message in done.stderr


def test_drawing_prints_the_map_or_writes_a_picture(tmp_path: Path) -> None:
    world = load_world("asymmetric_freeing")
    assert invoke("worlds", "draw", "asymmetric_freeing").stdout == world.to_text() + "\n"
    file = tmp_path / "world.png"
    done = invoke("worlds", "draw", "asymmetric_freeing", "--out", file, "--tile", 20)
    assert done.exit_code == 0, done.output
    assert "220 x 120 pixels" in done.stdout
    np.testing.assert_array_equal(pixels_of(file.read_bytes()), world.render(tile=20))


def pixels_of(data: bytes) -> np.ndarray:
    """A reader of PNGs without filters, which checks what it reads."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, chunks = 8, {}
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + length]
        assert struct.unpack(">I", data[place + 8 + length : place + 12 + length]) == (zlib.crc32(kind + body),)
        chunks[kind] = body
        place += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 2, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), dtype=np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_matplotlib_reads_our_pictures(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image")
    picture = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    (tmp_path / "p.png").write_bytes(png_bytes(picture))
    np.testing.assert_array_equal((image.imread(tmp_path / "p.png") * 255).round().astype(np.uint8), picture)


def test_pictures_are_png_files_in_folders_that_exist(tmp_path: Path) -> None:
    done = invoke("worlds", "draw", "first_steps", "--out", tmp_path / "world.jpg")
    assert done.exit_code == 2
    assert "ends in .png" in done.stderr
    done = invoke("worlds", "draw", "first_steps", "--out", tmp_path / "nowhere" / "world.png")
    assert done.exit_code == 3
    assert "No such file" in done.stderr
