"""JSON that somebody else may have written: read only if it cannot take far more memory than it is long."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MOST_VALUES = 1 << 20  # some 200 MB of Python objects at worst; 60,000 goals with a column each take a fifth of that


def parse_json(
    text: bytes | str, *, most_values: int = MOST_VALUES, parse_constant: Callable[[str], Any] | None = None
) -> Any:
    """What JSON says; ``ValueError`` if it is not JSON, or has more than ``most_values`` values.

    A text of sixty million brackets would become gigabytes of empty lists.

    >>> parse_json('{"a": [1, 2]}')
    {'a': [1, 2]}
    """
    data = text.encode() if isinstance(text, str) else text
    if (n_values := count_values(data)) > most_values:
        raise ValueError(f"it has up to {n_values:,} values; at most {most_values:,} are read")
    return json.loads(data, parse_constant=parse_constant)


def count_values(data: bytes) -> int:
    """At most so many values are in a JSON text: each but the first comes after a bracket, a brace, a comma or a colon.

    Colons come after names, and names after a brace or a comma, so these three are enough.
    """
    return 1 + sum(map(data.count, (b"[", b"{", b",")))
