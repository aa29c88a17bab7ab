"""One HTML file from the page's parts and a report's content. It loads nothing, and names in it cannot run as code.

Title and first map are in the HTML itself, so they are visible while the rest is unpacked, and without JavaScript.
"""

from __future__ import annotations

import html
import json
from importlib.resources import files

from empo_bi.report.content import Content
from empo_bi.report.packing import packed
from empo_bi.runtime.printable import without_nan
from empo_bi.runtime.wording import counted
from empo_bi.types import Json

BOARD_TILE = 64  # pixels of a cell, if there is room for that


def page_of(content: Content) -> str:
    """The whole page."""
    where, block = packed(content.arrays, content.texts)
    parts = {
        "TITLE": html.escape(content.head["title"]),
        "SUBTITLE": html.escape(_subtitle(content.head)),
        "FIRST": _first(content),
        "STYLE": _part("explorer.css"),
        "SCRIPT": _part("explorer.js"),
        "HEAD": safe_json(content.head | {"arrays": where}),
        "BLOCK": block,
    }
    page = _part("page.html").split("%%")  # text, name, text, ..., text; inserted parts are not searched for names again
    return "".join(parts[piece] if i % 2 else piece for i, piece in enumerate(page))


def _subtitle(head: Json) -> str:
    of = "" if head["title"] == head["world"] else f"{head['world']}: "
    sizes = head["sizes"]
    agents = counted(len(head["agents"]), "agent")
    return f"{of}{counted(sizes['states'], 'state')} on {counted(sizes['levels'], 'level')}, {agents}"


def _first(content: Content) -> str:
    """The first state as HTML: a picture as large as the page's own will be, or a text."""
    if content.first_map is None:
        return f'<pre id="plain">{html.escape(content.texts["state"][0])}</pre>'
    grid, words = content.head["grid"], html.escape(content.texts["words"][0])
    width, height = grid["width"], grid["height"]
    board = f"width: min(100%, {width * BOARD_TILE}px, calc({width / height:.4f} * 56vh))"
    size = f'width="{width * grid["tile"]}" height="{height * grid["tile"]}"'
    return (
        f'<div id="board" style="{board}">\n'
        f'        <img id="first-map" {size} alt="{words}" src="{html.escape(content.first_map)}">\n'
        f'        <canvas id="picture" role="img"></canvas>\n'
        f'        <svg id="marks" viewBox="0 0 {width} {height}" aria-hidden="true"></svg>\n'
        f"      </div>"
    )


def safe_json(value: object) -> str:
    """JSON that cannot end the script element around it; nan becomes null, infinities become texts."""
    text = json.dumps(without_nan(value), ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _part(name: str) -> str:
    return (files("empo_bi.report") / "page" / name).read_text(encoding="utf-8")
