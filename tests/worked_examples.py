"""Worked examples of the rules: appendix A of the specification, and more of the kind, for any implementation.

A world under test offers ``initial_state()``, ``action_names`` and ``transitions(state, profile)``, a mapping from
successors to probabilities. Section numbers, A1 to A39, C1 to C16 and Q1 to Q28 are those of spec/gridworld.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

# Writing worlds and states on one line

ACTIONS = {"F": "forward", "L": "left", "R": "right", "S": "still", "P": "pickup", "D": "drop", "T": "toggle"}
ACTIONS |= {"B": "build"}


def walled(rows: str) -> str:
    """The inner rows of a map, separated by "/", with a wall around them: the first cell shown is (1,1)."""
    inner = [row.split() for row in rows.split("/")]
    wall = ["We"] * (len(inner[0]) + 2)
    return "\n".join(" ".join(row) for row in [wall, *(["We", *row, "We"] for row in inner), wall])


def profile_of(world: Any, letters: str) -> tuple[int, ...]:
    """ "F T" -> action ids."""
    return tuple(world.action_names.index(ACTIONS[letter]) for letter in letters.split())


def describe(state: tuple) -> str:
    """A whole state, without its step count, as text: agents; mobile objects; mutable objects.

    An agent is its cell and direction, then what is special about it: ``(2,1)w/dead/paused/red key/forced 6``.
    """
    _, agents, mobile, mutable = state
    words = [describe_agent(*agent) for agent in agents]
    words += [f"{' '.join([*entry[3:], entry[0]])}({entry[1]},{entry[2]})" for entry in mobile]
    words += [describe_mutable(*entry) for entry in mutable]
    return " ".join(words)


def describe_agent(
    x: int,
    y: int,
    direction: int,
    terminated: bool,
    started: bool,
    paused: bool,
    kind: str | None,
    colour: str | None,
    forced: int | None,
) -> str:
    assert started
    marks = ["/dead"] * terminated + ["/paused"] * paused
    marks += [f"/{colour} {kind}"] * (kind is not None) + [f"/forced {forced}"] * (forced is not None)
    return f"({x},{y}){'eswn'[direction]}" + "".join(marks)


def describe_mutable(kind: str, x: int, y: int, *flags: Any) -> str:
    names = {
        "door": {(True, False): "open", (False, False): "closed", (False, True): "locked"},
        "magicwall": {(True,): "active", (False,): "inactive"},
        "bush": {(False,): "fresh", (True,): "trampled"},
        "killbutton": {(True,): "enabled", (False,): "disabled"},
        "pauseswitch": {
            (False, True): "off",
            (True, True): "on",
            (False, False): "off-disabled",
            (True, False): "on-disabled",
        },
    }
    shown = str(flags) if kind == "controlbutton" else names[kind][flags]
    return f"{kind}({x},{y}):{shown}"


Expected = str | dict[str, str]


def check_steps(world: Any, steps: list[tuple[str, Expected]]) -> None:
    """Play one profile after the other and compare all outcomes of each: whole states, and probabilities to the last digit.

    An expectation is one state, or state -> probability; the play goes on from the first one.
    """
    state = world.initial_state()
    for number, (letters, expected) in enumerate(steps, start=1):
        outcomes = world.transitions(state, profile_of(world, letters))
        wanted = {expected: "1"} if isinstance(expected, str) else expected
        found = {describe(successor): float(p) for successor, p in outcomes.items()}
        assert len(found) == len(outcomes)
        assert found == pytest.approx({text: float(Fraction(p)) for text, p in wanted.items()}, rel=1e-14)
        assert all(successor[0] == number for successor in outcomes)
        state = next(successor for successor in outcomes if describe(successor) == next(iter(wanted)))


# Appendix A, "Worked examples". Each: map, orientations, steps, further keys.

OBJECTS = {"action_class": "ObjectActions"}

WORKED_EXAMPLES: dict[str, tuple] = {
    "A1 two after one cell draw": (
        "Ay .. Ae",
        "ew",
        [("F F", {"(2,1)e (3,1)w": "1/2", "(1,1)e (2,1)w": "1/2"})],
    ),
    "A2 three after one cell draw": (
        "Ay .. Ae / We Ay We",
        "ewn",
        [("F F F", {"(2,1)e (3,1)w (2,2)n": "1/3", "(1,1)e (2,1)w (2,2)n": "1/3", "(1,1)e (3,1)w (2,1)n": "1/3"})],
    ),
    "A3 no following": ("Ay Ae ..", "ee", [("F F", "(1,1)e (3,1)e")]),
    "A4 no swapping": ("Ay Ae", "ew", [("F F", "(1,1)e (2,1)w")]),
    "A5 loser pushes on what the winner pushed": (
        ".. Ae .. / .. Bl .. / Ay .. ..",
        "se",
        [("F F", {"(2,2)s (2,3)e block(3,3)": "1/2", "(2,1)s (2,3)e block(2,2)": "1/2"})],
    ),
    "A6 as A5 without room": (
        ".. Ae / .. Bl / Ay ..",
        "se",
        [("F F", {"(2,2)s (1,3)e block(2,3)": "1/2", "(2,1)s (2,3)e block(2,2)": "1/2"})],
    ),
    "A7 one block pushed from two sides": (
        ".. Ae .. / Ay Bl .. / .. .. ..",
        "se",
        [("F F", "(2,2)s (1,2)e block(2,3)")],
    ),
    "A8 two pushes with one end cell": (
        "Ay Bl .. Bl Ae",
        "ew",
        [("F F", {"(2,1)e (5,1)w block(3,1) block(4,1)": "1/2", "(1,1)e (4,1)w block(2,1) block(3,1)": "1/2"})],
    ),
    "A9 robot pushes a mixed chain": ("Ae Bl Ro ..", "e", [("F", "(2,1)e block(3,1) rock(4,1)")]),
    "A9 human may not push the rock in it": ("Ay Bl Ro ..", "e", [("F", "(1,1)e block(2,1) rock(3,1)")]),
    "A10 no pushing onto a cell left in this step": ("Ay Bl Ae ..", "ee", [("F F", "(1,1)e (4,1)e block(2,1)")]),
    "A11 kill against a step": (
        "Ki Ay .. / .. Ae ..",
        "ww",
        [
            (
                "T F",
                {
                    "(2,1)w (2,2)w/dead killbutton(1,1):enabled": "1/2",
                    "(2,1)w (1,2)w/dead killbutton(1,1):enabled": "1/2",
                },
            )
        ],
        OBJECTS,
    ),
    "A12 kill against a turn, human first": (
        "Ki Ay .. / .. Ae ..",
        "ww",
        [("T L", "(2,1)w (2,2)w/dead killbutton(1,1):enabled")],
        OBJECTS,
    ),
    "A13 kill against a turn, robot first": (
        ".. Ae .. / Ki Ay ..",
        "ww",
        [("L T", "(2,1)s/dead (2,2)w killbutton(1,2):enabled")],
        OBJECTS,
    ),
    "A14 kill against two robots, first actor drawn": (
        ".. Ae .. / Ki Ay .. / .. Ae ..",
        "www",
        [
            (
                "F T F",
                {
                    "(2,1)w/dead (2,2)w (2,3)w/dead killbutton(1,2):enabled": "1/3",
                    "(1,1)w/dead (2,2)w (2,3)w/dead killbutton(1,2):enabled": "1/3",
                    "(1,1)w/dead (2,2)w (1,3)w/dead killbutton(1,2):enabled": "1/3",
                },
            )
        ],
        OBJECTS,
    ),
    "A15 pause against disabling": (
        "Pa Ay .. / dP Ae ..",
        "ww",
        [
            (
                "T T",
                {
                    "(2,1)w (2,2)w/paused pauseswitch(1,1):on": "1/2",
                    "(2,1)w (2,2)w pauseswitch(1,1):off-disabled": "1/2",
                },
            )
        ],
    ),
    "A16 stumbling": (
        ".. .. .. / Ay Un .. / We .. We",
        "e",
        [("F", "(2,2)e"), ("F", {"(3,2)e": "1/2", "(2,1)n": "1/4", "(2,3)s": "1/4"})],
    ),
    "A17 stumblers exclude each other, also at p = 0": (
        "Ay Un .. Un Ay",
        "ew",
        [("F F", "(2,1)e (4,1)w"), ("F F", "(2,1)e (4,1)w")],
        {"stumble_probability": 0},
    ),
    "A18 normal agents come before stumblers": (
        "Ay Un .. .. Ay",
        "ew",
        [("F F", "(2,1)e (4,1)w"), ("F F", "(2,1)e (3,1)w")],
        {"stumble_probability": 0},
    ),
    "A19 entering a bush": (
        "Ay Bu",
        "e",
        [("F", {"(2,1)e bush(2,1):fresh": "7/10", "(1,1)e bush(2,1):fresh": "3/10"})],
        {"enter_bush_success_prob": 0.7},
    ),
    "A20 robot gets the bush, q < 1": (
        "Ay Bu Ae",
        "ew",
        [("F F", "(1,1)e (2,1)w bush(2,1):trampled")],
        {"enter_bush_success_prob": 0.7},
    ),
    "A21 human and robot draw for the bush, q = 1": (
        "Ay Bu Ae",
        "ew",
        [("F F", {"(2,1)e (3,1)w bush(2,1):fresh": "1/2", "(1,1)e (2,1)w bush(2,1):trampled": "1/2"})],
        {"enter_bush_success_prob": 1},
    ),
    "A22 two humans for one bush": (
        "Ay Bu Ay",
        "ew",
        [
            (
                "F F",
                {
                    "(2,1)e (3,1)w bush(2,1):fresh": "1/2",
                    "(1,1)e (2,1)w bush(2,1):fresh": "1/4",
                    "(1,1)e (3,1)w bush(2,1):fresh": "1/4",
                },
            )
        ],
        {"enter_bush_success_prob": 0.5},
    ),
    "A23 lava": ("Ay La ..", "e", [("F", "(2,1)e/dead"), ("F", "(2,1)e/dead")]),
    "A24 lava under a block": (
        "Ay Bl La ..",
        "e",
        [("F", "(2,1)e block(3,1)"), ("F", "(3,1)e/dead block(4,1)")],
    ),
    "A25 two pickups draw": (
        "Ay Kr Ae",
        "ew",
        [("P P", {"(1,1)e/red key (3,1)w": "1/2", "(1,1)e (3,1)w/red key": "1/2"})],
    ),
    "A26 pickup, then step": ("Ay Kr Ae", "ew", [("P F", "(1,1)e/red key (2,1)w")]),
    "A27 step refused, then pickup": ("Ay Kr Ae", "ew", [("F P", "(1,1)e (3,1)w/red key")]),
    "A28 through the door in the step that opens it": (
        "Ay Cr .. / We Ae We",
        "en",
        [("T F", "(1,1)e (2,1)n door(2,1):open")],
    ),
    "A29 too early for the door": ("Ay Cr .. / We Ae We", "en", [("F T", "(1,1)e (2,2)n door(2,1):open")]),
    "A30 released by a lower index": (
        "Pa Ay .. / .. Ae ..",
        "ww",
        [("T S", "(2,1)w (2,2)w/paused pauseswitch(1,1):on"), ("T F", "(2,1)w (1,2)w pauseswitch(1,1):off")],
    ),
    "A31 released by a higher index": (
        ".. Ae .. / Pa Ay ..",
        "ww",
        [("S T", "(2,1)w/paused (2,2)w pauseswitch(1,2):on"), ("F T", "(2,1)w (2,2)w pauseswitch(1,2):off")],
    ),
    "A32 key on the lava": (
        "Ay Kr La ..",
        "e",
        [
            ("P", "(1,1)e/red key"),
            ("F", "(2,1)e/red key"),
            ("D", "(2,1)e red key(3,1)"),
            ("F", "(2,1)e red key(3,1)"),
            ("P", "(2,1)e/red key"),
            ("F", "(3,1)e/dead/red key"),  # the lava shows again
        ],
    ),
    "A33 box picked up first": ("Ay Xr Ae", "ew", [("P T", "(1,1)e/red box (3,1)w")]),
    "A33 box opened first": ("Ay Xr Ae", "ew", [("T P", "(1,1)e (3,1)w")]),
    "A34 key on the door": (
        "Ay Kr Or Ae",
        "ew",
        [
            ("P S", "(1,1)e/red key (4,1)w door(3,1):open"),
            ("F S", "(2,1)e/red key (4,1)w door(3,1):open"),
            ("D T", "(2,1)e (4,1)w red key(3,1) door(3,1):open"),
            ("P T", "(2,1)e/red key (4,1)w door(3,1):closed"),
        ],
    ),
    "A35 door closed behind a pusher": (
        "Ay Or Bl .. / .. Ae .. ..",
        "en",
        [
            ("F S", "(2,1)e (2,2)n block(3,1) door(2,1):open"),
            ("F T", "(3,1)e (2,2)n block(4,1) door(2,1):closed"),
        ],
    ),
    "A36 two magic agents at one wall": (
        "Ay Ma Ae",
        "ew",
        [
            (
                "F F",
                {
                    "(2,1)e (3,1)w magicwall(2,1):active": "0.375",
                    "(1,1)e (2,1)w magicwall(2,1):active": "0.325",
                    "(1,1)e (3,1)w magicwall(2,1):active": "0.16",
                    "(1,1)e (3,1)w magicwall(2,1):inactive": "0.14",
                },
            )
        ],
        {"can_enter_magic_walls": "ye", "solidify_probability": 0.2},
    ),
    "A37 drop on a cell of S0": (
        ".. Ae Ky Ay",
        "ww",
        [
            ("S P", "(2,1)w (4,1)w/yellow key"),
            ("S F", "(2,1)w (3,1)w/yellow key"),
            ("F D", "(1,1)w (3,1)w yellow key(2,1)"),
        ],
    ),
    "A38 no pushing onto items": ("Ay Bl Kr ..", "e", [("F", "(1,1)e block(2,1) red key(3,1)")]),
    "A39 winners act before the dropper": (
        ".. Ay .. / Ay Ky .. / .. Ae ..",
        "sen",
        [
            ("S P S", "(2,1)s (1,2)e/yellow key (2,3)n"),
            (
                "F D F",
                {"(2,2)s (1,2)e/yellow key (2,3)n": "1/2", "(2,1)s (1,2)e/yellow key (2,2)n": "1/2"},
            ),
        ],
    ),
    "sequence: key and door": (
        ".. Ay Kr / We Lr We / .. .. ..",
        "e",
        [
            ("P", "(2,1)e/red key door(2,2):locked"),
            ("R", "(2,1)s/red key door(2,2):locked"),
            ("T", "(2,1)s/red key door(2,2):open"),
            ("F", "(2,2)s/red key door(2,2):open"),
            ("S", "(2,2)s/red key door(2,2):open"),
            ("F", "(2,3)s/red key door(2,2):open"),
        ],
    ),
    "sequence: control button": (
        "Ay CB Ae / .. .. ..",
        "ew",
        [
            ("S T", "(1,1)e (3,1)w controlbutton(2,1):(True, 1, None, True)"),
            ("S S", "(1,1)e (3,1)w controlbutton(2,1):(True, 1, None, True)"),
            ("S L", "(1,1)e (3,1)s controlbutton(2,1):(True, 1, 1, False)"),
            ("T F", "(1,1)e (3,2)s/forced 1 controlbutton(2,1):(True, 1, 1, False)"),
            ("S F", "(1,1)e (3,2)e controlbutton(2,1):(True, 1, 1, False)"),
        ],
    ),
    "sequence: re-toggling": (
        "Ay CB Ae / .. .. ..",
        "ew",
        [
            ("S T", "(1,1)e (3,1)w controlbutton(2,1):(True, 1, None, True)"),
            ("T T", "(1,1)e (3,1)w controlbutton(2,1):(True, 1, 6, False)"),
            ("T L", "(1,1)e (3,1)s/forced 6 controlbutton(2,1):(True, 1, 6, False)"),
            ("L L", "(1,1)n (3,1)s controlbutton(2,1):(True, 1, 6, False)"),
        ],
    ),
}

# Rules that appendix A does not show; expectations worked out by hand from the sections named.

UNPROGRAMMED = "(True, None, None, False)"

FURTHER_EXAMPLES: dict[str, tuple] = {
    "6.1 build does nothing": ("Ay .. Ae", "ew", [("B F", "(1,1)e (2,1)w")], {"action_class": "MineActions"}),
    "6.3 no pushing onto a cell of S0, though it is free by now": (
        ".. Ae Bl Ay",
        "ww",
        [("F F", "(1,1)w (4,1)w block(3,1)")],
    ),
    "6.8 a pause switch disabled while on stays on, and pauses nobody when enabled again": (
        "Pa Ay Pa / dP Ae ..",
        "ww",
        [
            ("T S", "(2,1)w (2,2)w/paused pauseswitch(1,1):on pauseswitch(3,1):off"),
            ("R S", "(2,1)n (2,2)w/paused pauseswitch(1,1):on pauseswitch(3,1):off"),
            ("R S", "(2,1)e (2,2)w/paused pauseswitch(1,1):on pauseswitch(3,1):off"),
            ("T S", "(2,1)e (2,2)w/paused pauseswitch(1,1):on pauseswitch(3,1):on"),
            ("T S", "(2,1)e (2,2)w pauseswitch(1,1):on pauseswitch(3,1):off"),
            ("S T", "(2,1)e (2,2)w pauseswitch(1,1):on-disabled pauseswitch(3,1):off-disabled"),
            ("T S", "(2,1)e (2,2)w pauseswitch(1,1):on-disabled pauseswitch(3,1):off-disabled"),
            ("S T", "(2,1)e (2,2)w pauseswitch(1,1):on pauseswitch(3,1):off"),
            ("L S", "(2,1)n (2,2)w pauseswitch(1,1):on pauseswitch(3,1):off"),
            ("L S", "(2,1)w (2,2)w pauseswitch(1,1):on pauseswitch(3,1):off"),
            ("T S", "(2,1)w (2,2)w pauseswitch(1,1):off pauseswitch(3,1):off"),
        ],
    ),
    "6.8, 7.5 a disabled kill button kills nobody and merges nothing": (
        "Ki Ay .. / dK Ae ..",
        "ww",
        [
            ("S T", "(2,1)w (2,2)w killbutton(1,1):disabled"),
            ("T T", "(2,1)w (2,2)w killbutton(1,1):enabled"),
        ],
    ),
    "6.8 a key of another colour opens nothing": (
        "Kg Ay Lr",
        "w",
        [
            ("P", "(2,1)w/green key door(3,1):locked"),
            ("L", "(2,1)s/green key door(3,1):locked"),
            ("L", "(2,1)e/green key door(3,1):locked"),
            ("T", "(2,1)e/green key door(3,1):locked"),
        ],
    ),
    "6.9, Q9 toggling A and then B programs A with toggle and starts B; stumbling is not recorded": (
        "CB Un Ae / .. CB ..",
        "w",
        [
            ("F", f"(2,1)w controlbutton(1,1):{UNPROGRAMMED} controlbutton(2,2):{UNPROGRAMMED}"),
            ("T", f"(2,1)w controlbutton(1,1):(True, 0, None, True) controlbutton(2,2):{UNPROGRAMMED}"),
            (
                "F",
                {
                    f"(2,1)s controlbutton(1,1):(True, 0, None, True) controlbutton(2,2):{UNPROGRAMMED}": "1/2",
                    f"(2,1)n controlbutton(1,1):(True, 0, None, True) controlbutton(2,2):{UNPROGRAMMED}": "1/2",
                },
            ),
            ("T", "(2,1)s controlbutton(1,1):(True, 0, 6, False) controlbutton(2,2):(True, 0, None, True)"),
        ],
        {"stumble_probability": 1},
    ),
    "7.3 a magic wall is entered from its magic side": (
        "Ae Mw ..",
        "e",
        [
            (
                "F",
                {
                    "(2,1)e magicwall(2,1):active": "1/2",
                    "(1,1)e magicwall(2,1):active": "2/5",
                    "(1,1)e magicwall(2,1):inactive": "1/10",
                },
            ),
            ("F", "(3,1)e magicwall(2,1):active"),  # C4: shows again when the agent leaves
        ],
        {"can_enter_magic_walls": "e", "solidify_probability": 0.2},
    ),
    "7.3 and from no other side": (
        "Ae Me ..",
        "e",
        [("F", "(1,1)e magicwall(2,1):active")],
        {"can_enter_magic_walls": "e"},
    ),
    "7.5 two drops in front of one agent are a conflict": (
        "Kg Ay .. / .. Ay .. / Kr Ay ..",
        "wew",
        [
            ("P S P", "(2,1)w/green key (2,2)e (2,3)w/red key"),
            ("L S R", "(2,1)s/green key (2,2)e (2,3)n/red key"),
            (
                "D F D",
                {
                    "(2,1)s/green key (3,2)e (2,3)n red key(2,2)": "1/2",
                    "(2,1)s (3,2)e (2,3)n/red key green key(2,2)": "1/2",
                },
            ),
        ],
    ),
    "7.5 only yellow agents act remotely": (
        "Ki Ar .. .. / .. .. Ae .. / .. Ae Bl .. / .. .. .. ..",
        "wse",
        [("T F F", "(2,1)w (3,3)s (2,3)e block(3,4) killbutton(1,1):enabled")],
        OBJECTS,
    ),
    "7.5 a merged block has the place of its first constituent": (
        ".. .. Ar .. / .. Ae Bl .. / .. .. .. .. / Ki Ay .. ..",
        "sew",
        [("F F T", "(3,2)s (2,2)e/dead (2,4)w block(3,3) killbutton(1,4):enabled")],
        OBJECTS,
    ),
    "7.8 a stumbler terminated in phase 1 does not stumble": (
        "Ki Ay .. / .. Un Ae",
        "ww",
        [
            ("S F", "(2,1)w (2,2)w killbutton(1,1):enabled"),
            ("T F", "(2,1)w (2,2)w/dead killbutton(1,1):enabled"),
        ],
        OBJECTS,
    ),
    "C3 a door under a block cannot be toggled and keeps its flags": (
        "Ay Bl Or .. / .. .. Ae ..",
        "en",
        [
            ("F S", "(2,1)e (3,2)n block(3,1) door(3,1):open"),
            ("S T", "(2,1)e (3,2)n block(3,1) door(3,1):open"),
            ("F T", "(3,1)e (3,2)n block(4,1) door(3,1):open"),
        ],
    ),
    "C6 a ball is carried like a key": (
        "Ay Bg ..",
        "e",
        [("P", "(1,1)e/green ball"), ("F", "(2,1)e/green ball"), ("D", "(2,1)e green ball(3,1)")],
    ),
    "C13 pickup with full hands is a conflict all the same": (
        "Kg Ay .. / Ay Kr .. / .. Ay ..",
        "wen",
        [
            ("P S S", "(2,1)w/green key (1,2)e (2,3)n red key(2,2)"),
            ("L S S", "(2,1)s/green key (1,2)e (2,3)n red key(2,2)"),
            (
                "P F P",
                {
                    "(2,1)s/green key (2,2)e (2,3)n/red key": "1/2",
                    "(2,1)s/green key (1,2)e (2,3)n/red key": "1/2",
                },
            ),
        ],
    ),
    "C14 magic agents paused by now drop out": (
        "Pa Ay .. / Ae Ma ..",
        "we",
        [("T F", "(2,1)w (1,2)e/paused pauseswitch(1,1):on magicwall(2,2):active")],
        {"can_enter_magic_walls": "e"},
    ),
    "C14 and are no rivals of those who stay": (
        "Pa Ay .. / Ae Ma Ay",
        "wew",
        [
            (
                "T F F",
                {
                    "(2,1)w (1,2)e/paused (2,2)w pauseswitch(1,1):on magicwall(2,2):active": "1/2",
                    "(2,1)w (1,2)e/paused (3,2)w pauseswitch(1,1):on magicwall(2,2):active": "1/2",
                },
            )
        ],
        {"can_enter_magic_walls": "ye", "solidify_probability": 0},
    ),
    "C16 to an agent released in this step a magic wall is a wall": (
        "Pa Ay .. / Ae Ma ..",
        "we",
        [
            ("T S", "(2,1)w (1,2)e/paused pauseswitch(1,1):on magicwall(2,2):active"),
            ("T F", "(2,1)w (1,2)e pauseswitch(1,1):off magicwall(2,2):active"),
        ],
        {"can_enter_magic_walls": "e"},
    ),
    "Q1 the cell of an agent released in this step is closed, too": (
        "Pa Ay .. / .. Ae Ay",
        "www",
        [
            ("T S S", "(2,1)w (2,2)w/paused (3,2)w pauseswitch(1,1):on"),
            ("T F F", "(2,1)w (1,2)w (3,2)w pauseswitch(1,1):off"),
        ],
    ),
    "Q4 a second non-turn makes turning robots part of the draw": (
        "Ki Ay .. / .. Ae .. / Ag .. ..",
        "wwe",
        [
            (
                "T L F",
                {
                    "(2,1)w (2,2)w/dead (2,3)e killbutton(1,1):enabled": "1/2",
                    "(2,1)w (2,2)s/dead (2,3)e killbutton(1,1):enabled": "1/2",
                },
            )
        ],
        OBJECTS,
    ),
    "Q6 released in a random step, a robot does not act": (
        "Pa Ay .. / .. Ae .. / Ag .. Ag",
        "wwew",
        [
            ("T S S S", "(2,1)w (2,2)w/paused (1,3)e (3,3)w pauseswitch(1,1):on"),
            (
                "T F F F",
                {
                    "(2,1)w (2,2)w (2,3)e (3,3)w pauseswitch(1,1):off": "1/2",
                    "(2,1)w (2,2)w (1,3)e (2,3)w pauseswitch(1,1):off": "1/2",
                },
            ),
        ],
    ),
    "Q8 of two stumblers that push one block from two sides the lower index wins": (
        ".. .. Ay .. / .. .. Un .. / Ay Un Bl .. / .. .. .. ..",
        "se",
        [("F F", "(3,2)s (2,3)e block(3,3)"), ("F F", "(3,3)s (2,3)e block(3,4)")],
        {"stumble_probability": 0},
    ),
    "Q12 who faces a bush with q < 1 does not stumble": (
        "Ay Un Bu / .. .. ..",
        "e",
        [("F", "(2,1)e bush(3,1):fresh"), ("F", {"(3,1)e bush(3,1):fresh": "1/4", "(2,1)e bush(3,1):fresh": "3/4"})],
        {"enter_bush_success_prob": 0.25},
    ),
    "Q12 who stumbles sideways into a bush enters with certainty": (
        "Bu .. / Un Ay / Bu ..",
        "w",
        [
            ("F", "(1,2)w bush(1,1):fresh bush(1,3):fresh"),
            (
                "F",
                {
                    "(1,3)s bush(1,1):fresh bush(1,3):fresh": "1/2",
                    "(1,1)n bush(1,1):fresh bush(1,3):fresh": "1/2",
                },
            ),
        ],
        {"enter_bush_success_prob": 0.25, "stumble_probability": 1},
    ),
    "Q28 humans that push rocks trample": (
        "Ay Bu ..",
        "e",
        [("F", "(2,1)e bush(2,1):trampled")],
        {"can_push_rocks": "ye", "enter_bush_success_prob": 0.5},
    ),
}


def mapping_of(example: str) -> dict[str, Any]:
    """The world file of an example, as a mapping."""
    rows, orientations, _, *keys = EXAMPLES[example]
    return {"map": walled(rows), "orientations": list(orientations)} | (keys[0] if keys else {})


EXAMPLES = WORKED_EXAMPLES | FURTHER_EXAMPLES
