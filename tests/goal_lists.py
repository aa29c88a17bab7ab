"""Random entries of ``possible_goals`` for a map, as plain values that the engine and the oracle read."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

COLOURS = {"r": "red", "g": "green", "b": "blue", "y": "yellow"}
KINDS = {"K": "key", "B": "ball", "X": "box"}


def cells_of(mapping: dict[str, Any]) -> dict[tuple[int, int], str]:
    return {(x, y): code for y, row in enumerate(mapping["map"]) for x, code in enumerate(row)}


def doors_of(mapping: dict[str, Any]) -> list[list[int]]:
    return [list(cell) for cell, code in cells_of(mapping).items() if code in ("Lr", "Cr", "Or")]


def things_of(mapping: dict[str, Any]) -> list[str]:
    """Kinds of things, with and without their colours."""
    found = [(KINDS[code[0]], COLOURS[code[1]]) for code in cells_of(mapping).values() if code in ("Kr", "Kg", "By", "Xb")]
    return sorted({text for kind, colour in found for text in (kind, f"{colour} {kind}")})


@st.composite
def places(draw: st.DrawFn, mapping: dict[str, Any]) -> Any:
    x, y = draw(st.sampled_from(sorted(cells_of(mapping))))
    x2, y2 = draw(st.sampled_from(sorted(cells_of(mapping))))
    return draw(st.sampled_from([[x, y], f"{x},{y}", [x, y, x2, y2], [[x, y], [x2, y2]], f"{x}, {y}, {x2}, {y2}"]))


def single(mapping: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    kinds = [
        st.fixed_dictionaries({"cells": st.lists(places(mapping), min_size=1, max_size=3)}),
        st.fixed_dictionaries({"goal": places(mapping)}),
        st.fixed_dictionaries({"facing": st.sampled_from(["north", "s", 0, "west"])}),
        st.fixed_dictionaries({"step": st.integers(0, 3)}),
    ]
    for key, known in (("carries", things_of(mapping)), ("door", doors_of(mapping))):
        kinds += [st.fixed_dictionaries({key: st.sampled_from(known)})] * 2 if known else []
    return st.one_of(kinds)


def conditions(mapping: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Single ones, several in one mapping, and all or any of others."""
    together = st.lists(single(mapping), min_size=1, max_size=3).map(joined)
    part = st.one_of(together, places(mapping))
    nested = st.dictionaries(st.sampled_from(["all", "any"]), st.lists(part, min_size=1, max_size=3), min_size=1, max_size=2)
    deeper = st.dictionaries(
        st.sampled_from(["all", "any"]), st.lists(st.one_of(nested, part), min_size=1, max_size=2), min_size=1
    )
    return st.one_of(together, nested, deeper)


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    found = {key: value for part in parts for key, value in part.items()}
    return {key: value for key, value in found.items() if key != "goal" or "cells" not in found}


@st.composite
def goal_lists(draw: st.DrawFn, mapping: dict[str, Any], most: int = 4) -> list[Any]:
    """Entries with and without names and weights; the last may refer to the first by its name."""
    entries: list[Any] = []
    for i in range(draw(st.integers(1, most))):
        entry = dict(draw(conditions(mapping)))
        if draw(st.booleans()):
            entry["name"] = f"goal {'abcd'[i]}"
        if draw(st.booleans()):
            entry["weight"] = draw(st.sampled_from([0.5, 1, 3]))
        entries.append(entry)
    named = [entry["name"] for entry in entries if "name" in entry and not {"all", "any"} & entry.keys()]
    if named and draw(st.booleans()):
        entries.append({"any": [named[0], draw(places(mapping))]})
    if draw(st.booleans()):
        entries.append(draw(places(mapping)))
    return entries
