"""Keys, balls, boxes, doors and lava do what a person expects, over many steps."""

from __future__ import annotations

from typing import Any

import pytest
from engine import PerState, load_quietly
from worked_examples import describe, profile_of, walled


class Play:
    """Plays profiles written as letters ("F S") one after the other, each with one certain outcome."""

    def __init__(self, rows: str, orientations: str, **keys: Any) -> None:
        self.world = PerState(load_quietly({"map": walled(rows), "orientations": list(orientations)} | keys))
        self.state = self.world.initial_state()

    def __call__(self, *profiles: str) -> str:
        for letters in profiles:
            outcomes = self.world.transitions(self.state, profile_of(self.world, letters))
            (self.state,) = outcomes
        return describe(self.state)


def test_a_picked_up_key_is_gone_from_the_floor_for_good() -> None:
    play = Play("Ay Kr .. .. ..", "e")
    assert play("P") == "(1,1)e/red key"
    assert play("F", "F", "R", "R", "S", "S", "S") == "(3,1)w/red key"
    assert play("F", "F") == "(1,1)w/red key"


def test_a_dropped_key_lies_where_it_was_dropped_and_can_be_taken_by_another() -> None:
    play = Play("Ay Kr .. Ae", "ew")
    assert play("P S", "F S", "D S") == "(2,1)e (4,1)w red key(3,1)"
    assert play("L L", "L S", "F S") == "(1,1)w (4,1)s red key(3,1)"
    assert play("S R", "S P") == "(1,1)w (4,1)w/red key"
    assert play("S S", "S F", "S F") == "(1,1)w (2,1)w/red key"


def test_a_key_cannot_be_dropped_on_a_wall_an_agent_or_another_item_and_stays_in_hand() -> None:
    play = Play("Kr Ay Kg / .. Ae ..", "wn")
    assert play("P S", "R S", "D S") == "(2,1)n/red key (2,2)n green key(3,1)"  # a wall
    assert play("R S", "D S") == "(2,1)e/red key (2,2)n green key(3,1)"  # another key
    assert play("P S") == "(2,1)e/red key (2,2)n green key(3,1)"  # full hands
    assert play("R S", "D S") == "(2,1)s/red key (2,2)n green key(3,1)"  # the robot


def test_an_unlocked_door_stays_unlocked_whoever_walks_through() -> None:
    play = Play("Ay Kr We .. / .. .. Lr .. / .. Ae We ..", "ee")
    play("P S", "R S", "F S", "L S", "F S")
    assert play("T S") == "(2,2)e/red key (2,3)e door(3,2):open"
    assert play("F S", "F S", "S S", "S L") == "(4,2)e/red key (2,3)n door(3,2):open"
    assert play("R F", "R R", "S F", "S S") == "(4,2)w/red key (3,2)e door(3,2):open"  # the robot stands on it
    assert play("T S", "T S") == "(4,2)w/red key (3,2)e door(3,2):open"  # a covered door cannot be toggled
    play("L R", "F R", "S F")
    assert play("S R", "S R") == "(4,3)s/red key (2,2)e door(3,2):open"
    assert play("S T") == "(4,3)s/red key (2,2)e door(3,2):closed"
    assert play("S T") == "(4,3)s/red key (2,2)e door(3,2):open"  # without a key: closed is not locked


def test_a_locked_door_opens_only_to_a_key_of_its_own_colour() -> None:
    play = Play("Kg Ay Lr", "w")
    assert play("P", "R", "R", "T", "F") == "(2,1)e/green key door(3,1):locked"


def test_a_ball_is_carried_and_dropped_like_a_key() -> None:
    play = Play("Ay Bg .. ..", "e")
    assert play("P", "S", "F", "D", "S", "F") == "(2,1)e green ball(3,1)"
    assert play("P", "F", "F") == "(4,1)e/green ball"


def test_an_opened_box_is_gone_for_good_and_a_carried_one_is_not() -> None:
    play = Play("Ay Xb .. Xb", "e")
    assert play("T") == "(1,1)e blue box(4,1)"
    assert play("F", "F", "P", "S") == "(3,1)e/blue box"
    assert play("D", "T", "F") == "(4,1)e"


def test_a_block_pushed_off_lava_uncovers_it() -> None:
    play = Play("Ay Bl La .. ..", "e")
    assert play("F", "S", "S") == "(2,1)e block(3,1)"  # harmless below the block
    assert play("F") == "(3,1)e/dead block(4,1)"
    play = Play(".. .. .. / Ay Bl La / .. Ae ..", "en", can_push_rocks="")
    assert play("F S", "S S", "L R", "F F") == "(2,1)n (3,3)e block(3,2)"
    assert play("R L", "F S") == "(3,1)e (3,3)n block(3,2)"


def test_an_item_on_lava_keeps_people_off_until_it_is_taken() -> None:
    play = Play("Kr Ay La ..", "w")
    assert play("P", "R", "R", "D", "F", "F") == "(2,1)e red key(3,1)"
    assert play("P", "F") == "(3,1)e/dead/red key"


def test_the_dead_stay_as_obstacles_with_all_they_carry() -> None:
    play = Play("Kr Ay La Ae", "ww")
    assert play("P S", "R S", "R S", "F S") == "(3,1)e/dead/red key (4,1)w"
    assert play("F F", "P P", "L F", "D F") == "(3,1)e/dead/red key (4,1)w"


def test_two_keys_of_one_colour_are_interchangeable() -> None:
    """Whoever takes which, the state is the same, and so is its packed key."""
    rows, orientations = "Kr Ay .. Ae Kr", "we"
    one, other = Play(rows, orientations), Play(rows, orientations)
    one("P S", "R S", "R S", "D S", "S P", "S R", "S R")
    other("S P", "S R", "S R", "P S", "R S", "R S", "D S")
    assert describe(one.state) == describe(other.state) == "(2,1)e (4,1)w/red key red key(3,1)"
    assert (one.world.world.encode([one.state])[1] == other.world.world.encode([other.state])[1]).all()


@pytest.mark.parametrize("still", [1, 50])
def test_waiting_changes_nothing_but_the_step(still: int) -> None:
    play = Play("Ay Kr Lr Bg / Ae Xr Bl La / Un Bu Pa CB", "ee")
    before = play.state
    play(*["S S"] * still)
    assert play.state == (before[0] + still, *before[1:])
