"""One HTML file of the page's parts and a report's content. Nothing in it can load anything or run what a name says."""

from __future__ import annotations

import html
import json
import math
from importlib.resources import files
from typing import Any

from empo_bi.report.content import Content
from empo_bi.report.packing import packed


def page_of(content: Content) -> str:
    """The whole page."""
    where, block = packed(content.arrays, content.texts)
    parts = {
        "TITLE": html.escape(content.head["title"]),
        "STYLE": _part("explorer.css"),
        "SCRIPT": _part("explorer.js"),
        "HEAD": safe_json(content.head | {"arrays": where}),
        "BLOCK": block,
    }
    page = _part("page.html").split("%%")  # text, name, text, name, ..., text: what is put in is not looked at again
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(page))


def safe_json(value: Any) -> str:
    """JSON that cannot end the script element that it is in; what is no number in JSON becomes null or a text."""
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _part(name: str) -> str:
    return (files("empo_bi.report") / "page" / name).read_text(encoding="utf-8")
