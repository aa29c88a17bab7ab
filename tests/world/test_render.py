"""Pictures: every kind of object and every condition can be told apart, and terrain shows below what is on it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from empo_bi import load_world
from empo_bi.world.render import draw

SIZE = 32
EAST, SOUTH, WEST, NORTH = range(4)
DIRECTION, TERMINATED, PAUSED, CARRIED_KIND, CARRIED_COLOUR, FORCED = 2, 3, 5, 6, 7, 8  # of an agent's entry
# One code a kind, all of one colour where they have one, so that shape alone has to tell them apart.
KINDS = [
    "We",
    "Gr",
    "Sw",
    "La",
    "Un",
    "Lr",
    "Cr",
    "Or",
    "Kr",
    "Br",
    "Xr",
    "Me",
    "Bu",
    "Bl",
    "Ro",
    "Ki",
    "Pa",
    "CB",
    "dK",
    "dP",
    "dC",
    "Ae",
    "Ay",
    "Ar",
]


def world_of(*codes, **keys):
    """Spec and initial state of a world with the codes in a row, the first of them at (1, 1), between rows of floor."""
    floor = [".."] * (len(codes) + 2)
    world = load_world({"map": [floor, ["..", *codes, ".."], floor], "action_class": "ObjectActions"} | keys)
    return world.world_spec, world.initial_state()


def cell(picture, x, y=1, size=SIZE):
    return picture[y * size : (y + 1) * size, x * size : (x + 1) * size].astype(int)


def tile_of(code, *, size=SIZE, entry=None, on_top=None, **keys):
    """Picture of the cell of ``code``; ``entry`` replaces its fields in the state, ``on_top`` lies on it."""
    spec, (step, agents, mobile, mutable) = world_of(code, **keys)
    if entry is not None:
        ((name, x, y, *_),) = mutable
        mutable = ((name, x, y, *entry),)
    if on_top is not None:
        kind, *colour = on_top
        mobile = (*mobile, (kind, 1, 1, *colour))
    return cell(draw(spec, (step, agents, mobile, mutable), tile=size), 1, size=size)


def agent_tile(code="Ae", *, ground="..", **fields):
    """Picture of an agent, with some fields of its entry replaced, that stands on ``ground``."""
    spec, (step, (agent,), mobile, mutable) = world_of(ground, code)
    changed = [1, *agent[1:]]
    for name, value in fields.items():
        changed[globals()[name.upper()]] = value
    return cell(draw(spec, (step, (tuple(changed),), mobile, mutable), tile=SIZE), 1)


def share_changed(one, other):
    """Share of the pixels whose lightness clearly differs: what a viewer without colours would see."""
    return float((np.abs(one.mean(axis=-1) - other.mean(axis=-1)) > 24).mean())


def ring(tile):
    """The outer eighth of a tile on all sides."""
    mask = np.ones(tile.shape[:2], dtype=bool)
    edge = len(tile) // 8
    mask[edge:-edge, edge:-edge] = False
    return tile[mask]


def is_dark(tile):
    return tile.max(axis=-1) < 70


def all_differ(tiles, least=0.03):
    return all(share_changed(one, other) > least for one, other in combinations(tiles, 2))


# --- the picture ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 8, 16, 33, 48])
def test_picture_has_tile_pixels_a_cell_and_three_bytes_a_pixel(size):
    picture = draw(*world_of("Ay", "La", "Kr"), tile=size)
    assert picture.shape == (3 * size, 5 * size, 3)
    assert picture.dtype == np.uint8


def test_cells_are_32_pixels_wide_unless_told_otherwise():
    assert draw(*world_of("Ay")).shape == (96, 96, 3)


def test_tile_of_no_pixels_is_refused():
    with pytest.raises(ValueError, match="at least one pixel"):
        draw(*world_of("Ay"), tile=0)


def test_picture_is_the_same_every_time_even_if_the_caller_paints_over_it():
    spec, state = world_of("Ay", "La", "Kr")
    first = draw(spec, state)
    kept = first.copy()
    first[:] = 0
    np.testing.assert_array_equal(draw(spec, state), kept)


def test_x_runs_to_the_right_and_y_down():
    spec, (step, (agent,), mobile, mutable) = world_of("Ay", "..", "..")
    moved = (3, 2, *agent[2:])
    before, after = (draw(spec, (step, (entry,), mobile, mutable)) for entry in (agent, moved))
    changed = {(x, y) for x in range(5) for y in range(3) if (cell(before, x, y) != cell(after, x, y)).any()}
    assert changed == {(1, 1), (3, 2)}


# --- kinds and conditions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [16, 32, 48])
def test_every_kind_differs_from_floor_and_from_every_other_kind_even_without_colours(size):
    tiles = {code: tile_of(code, size=size) for code in ["..", *KINDS]}
    alike = [(one, other) for one, other in combinations(tiles, 2) if share_changed(tiles[one], tiles[other]) < 0.06]
    assert not alike


@pytest.mark.parametrize("letter", "WLCOKBXGA")
def test_same_kind_in_another_colour_looks_different(letter):
    tiles = [tile_of(letter + colour) for colour in "rgbpye"]  # `Kb` is a kill button, all the more different
    assert all(np.abs(one - other).max() > 40 for one, other in combinations(tiles, 2))


def test_open_closed_and_locked_doors_differ_by_their_flags_and_not_by_the_map():
    flags = {"Or": (True, False), "Cr": (False, False), "Lr": (False, True)}
    assert all_differ([tile_of(code) for code in flags])
    for code, entry in flags.items():
        np.testing.assert_array_equal(tile_of("Lr", entry=entry), tile_of(code))


def test_trampled_bush_is_nearly_bare_floor():
    floor, standing, trampled = tile_of(".."), tile_of("Bu"), tile_of("Bu", entry=[True])
    assert 0.02 < share_changed(trampled, floor) < 0.2 < share_changed(standing, floor)


@pytest.mark.parametrize(("code", "side"), [("Me", EAST), ("Ms", SOUTH), ("Mw", WEST), ("Mn", NORTH)])
def test_magic_wall_is_brightest_on_its_magic_side(code, side):
    tile = tile_of(code)
    strips = {EAST: tile[:, -3:-1], SOUTH: tile[-3:-1], WEST: tile[:, 1:3], NORTH: tile[1:3]}
    assert max(strips, key=lambda d: strips[d].mean()) == side


def test_magic_wall_of_all_sides_differs_from_those_of_one():
    assert all_differ([tile_of(code) for code in ("Ma", "Me", "Ms", "Mw", "Mn")])


def test_inactive_magic_wall_resembles_a_wall_more_than_an_active_one_and_shows_no_side():
    inactive, wall = tile_of("Mn", entry=[False]), tile_of("We")
    assert 0 < np.abs(inactive - wall).mean() < 0.5 * np.abs(tile_of("Mn") - wall).mean()
    np.testing.assert_array_equal(inactive, tile_of("Ms", entry=[False]))


@pytest.mark.parametrize(
    ("code", "enabled", "disabled"),
    [
        ("Ki", [True], [False]),
        ("Pa", [False, True], [False, False]),
        ("Pa", [True, True], [True, False]),
        ("CB", [True, None, None, False], [False, None, None, False]),
        ("CB", [True, 0, 1, False], [False, 0, 1, False]),
    ],
)
def test_disabled_button_is_struck_out_and_has_lost_its_colours(code, enabled, disabled):
    bright, dull = tile_of(code, entry=enabled), tile_of(code, entry=disabled)
    assert is_dark(dull).any(axis=0)[3:-3].all()  # a stroke from side to side
    assert share_changed(bright, dull) > 0.1
    assert np.ptp(dull, axis=-1).max() < 0.3 * np.ptp(bright, axis=-1).max()


def test_disabled_buttons_of_different_kinds_still_differ():
    assert all_differ(
        [tile_of("Ki", entry=[False]), tile_of("Pa", entry=[False, False]), tile_of("CB", entry=[False, None, None, False])]
    )


def test_pause_switch_shows_by_its_bars_and_by_its_slide_whether_it_is_on():
    off, on = (tile_of("Pa", entry=[is_on, True]) for is_on in (False, True))
    assert share_changed(off[5:20, 5:-5], on[5:20, 5:-5]) > 0.1
    knob_off, knob_on = (np.argmax(tile[23, 5:-5].sum(axis=-1)) for tile in (off, on))
    assert knob_off < 11 < knob_on


def test_control_button_shows_whether_it_awaits_or_has_an_action():
    fresh, awaiting, programmed = [True, None, None, False], [True, 0, None, True], [True, 0, 1, False]
    assert all_differ([tile_of("CB", entry=entry) for entry in (fresh, awaiting, programmed)], least=0.01)


# --- agents -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["Ay", "Ae", "Ar"])
def test_agent_facing_south_is_the_one_facing_east_turned_clockwise_and_so_on(code):
    inner = np.s_[1:-1, 1:-1]  # without the grid line
    east = agent_tile(code, direction=EAST)[inner]
    for turns, direction in enumerate((SOUTH, WEST, NORTH), start=1):
        turned = agent_tile(code, direction=direction)[inner]
        np.testing.assert_allclose(turned, np.rot90(east, -turns), atol=1)
        assert share_changed(turned, east) > 0.03


@pytest.mark.parametrize("code", ["Ay", "Ae", "Ar"])
def test_agent_facing_east_has_its_tip_at_the_middle_of_the_right_edge(code):
    body = np.abs(agent_tile(code, direction=EAST) - tile_of("..")).max(axis=-1) > 60
    rightmost = np.flatnonzero(body.any(axis=0))[-1]
    rows = np.flatnonzero(body[:, rightmost])
    assert rightmost >= 28
    assert abs(rows.mean() - 15.5) <= 0.5
    assert len(rows) <= 4


def test_human_robot_and_other_agent_have_different_outlines():
    floor = tile_of("..")
    outlines = [np.abs(agent_tile(code) - floor).max(axis=-1) > 60 for code in ("Ay", "Ae", "Ar")]
    assert all((one != other).mean() > 0.03 for one, other in combinations(outlines, 2))


@pytest.mark.parametrize("code", ["Ay", "Ae", "Ar"])
def test_plain_terminated_paused_carrying_and_forced_agents_differ(code):
    conditions = [
        {},
        {"terminated": True},
        {"paused": True},
        {"carried_kind": "key", "carried_colour": "red"},
        {"forced": 3},
    ]
    assert all_differ([agent_tile(code, **condition) for condition in conditions])


@pytest.mark.parametrize("code", ["Ay", "Ae", "Ar"])
def test_terminated_agent_is_crossed_out(code):
    tile = agent_tile(code, terminated=True)
    assert all(is_dark(tile)[y, x] for y, x in ((16, 16), (11, 11), (11, 20), (20, 11), (20, 20)))


def test_carried_key_ball_and_box_differ_and_so_do_their_colours():
    loads = [("key", "red"), ("ball", "red"), ("box", "red"), ("box", "blue")]
    tiles = [agent_tile(carried_kind=kind, carried_colour=colour) for kind, colour in loads]
    assert all(np.abs(one - other).max() > 60 for one, other in combinations(tiles, 2))


# --- layers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("on_top", [("block",), ("rock",), ("key", "red"), ("ball", "red"), ("box", "red")])
@pytest.mark.parametrize("terrain", ["La", "Un", "Gg", "Sw"])
def test_thing_on_terrain_shows_in_the_middle_and_leaves_the_terrain_around_it(terrain, on_top):
    bare, covered = tile_of(terrain), tile_of(terrain, on_top=on_top)
    assert share_changed(bare[8:-8, 8:-8], covered[8:-8, 8:-8]) > 0.2
    assert (ring(bare) == ring(covered)).mean() > 0.9


def test_block_on_lava_shows_only_lava_along_its_rim():
    bare, covered = tile_of("La"), tile_of("La", on_top=("block",))
    np.testing.assert_array_equal(ring(bare), ring(covered))


@pytest.mark.parametrize("code", ["Ay", "Ae", "Ar"])
@pytest.mark.parametrize("ground", ["La", "Un", "Gg", "Sw", "Or", "Bu"])
def test_agent_shows_above_terrain_that_stays_visible_around_it(ground, code):
    bare, covered, on_floor = tile_of(ground), agent_tile(code, ground=ground), agent_tile(code)
    np.testing.assert_array_equal(covered[14:18, 14:18], on_floor[14:18, 14:18])
    assert (ring(bare) == ring(covered)).all(axis=-1).mean() > 0.85
    assert share_changed(covered, on_floor) > 0.1


def test_floor_shows_where_the_map_had_something_that_has_moved_away():
    spec, (step, (agent,), _, mutable) = world_of("Ay", "Bl", "Kr", "..")
    picture = draw(spec, (step, ((4, *agent[1:]),), (), mutable))
    for x in (1, 2, 3):
        np.testing.assert_array_equal(cell(picture, x), tile_of(".."))
