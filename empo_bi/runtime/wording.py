"""Words for messages: shortened values, counted nouns, and suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def short_repr(value: object, at_most: int = 100) -> str:
    """The value's ``repr``, cut if it is long.

    A message has to fit the screen, and Python refuses to print integers of thousands of digits.
    """
    try:
        text = repr(value)
    except ValueError:
        return f"a {type(value).__name__} too long to print"
    return text if len(text) <= at_most else f"{text[:at_most]}... ({len(text):,} characters)"


def counted(n: int, noun: str) -> str:
    """``"1 robot"``, ``"2 robots"``, ``"1,253 states"``."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``" Did you mean 'max_steps'?"`` for a near miss, else the empty string; ends messages about unknown names."""
    near = near_misses(word, known)
    return f" Did you mean {' or '.join(repr(name) for name in near)}?" if near else ""


def near_misses(word: str, known: Iterable[str]) -> list[str]:
    """Up to two known names that resemble a word, the closest first."""
    return difflib.get_close_matches(str(word), list(known), n=2, cutoff=0.6)
