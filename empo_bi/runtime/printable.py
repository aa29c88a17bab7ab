"""Texts from files, made safe for a terminal: titles and messages may not move the cursor, or change what was printed."""

from __future__ import annotations

import math
import re

# Control characters except newline and tab, and those that reorder or hide text, such as right-to-left overrides.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


def printable(text: str) -> str:
    r"""The same text with control characters written out.

    >>> printable("\x1b[31mred\x1b[0m")
    '\\x1b[31mred\\x1b[0m'
    """
    return _UNPRINTABLE.sub(_written_out, text)


def one_line(text: str) -> str:
    """A text on one line, for titles and names, which might otherwise imitate lines of our output.

    >>> one_line("a world\\nall checksums agree")
    'a world all checksums agree'
    """
    return printable(" ".join(text.split()))


def printable_json(text: str) -> str:
    r"""JSON with control characters escaped; they can only occur in its strings, where ``\u001b`` means the same.

    >>> printable_json('{"title": "\x9b31m"}')
    '{"title": "\\u009b31m"}'
    """
    return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def without_nan(value: object) -> object:
    """What JSON can hold: nan becomes None, and infinities become texts (``"inf"``)."""
    if isinstance(value, dict):
        return {str(key): without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
