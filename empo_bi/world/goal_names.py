"""Names that people give to goals."""

from __future__ import annotations

import re

from empo_bi.runtime.printable import one_line
from empo_bi.runtime.wording import short_repr

MOST_CHARACTERS = 60


def checked_name(name: object) -> str:
    """A name of a goal: a short text on one line, not to be taken for a number or for cells."""
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"name is {short_repr(name)}; give a text, such as 'kitchen'")
    if len(name) > MOST_CHARACTERS:
        raise ValueError(f"name {short_repr(name, 20)} has {len(name):,} characters; give at most {MOST_CHARACTERS}")
    if name != one_line(name):
        raise ValueError(
            f"name {short_repr(name)} has blanks at its ends or control characters; give plain text on one line"
        )
    if re.fullmatch(r"[\d\s,.()+-]*(to[\d\s,.()+-]*)?", name) or name == "None":
        raise ValueError(f"name {short_repr(name)} could be taken for a number, for cells or for no goal; give a word")
    return name
