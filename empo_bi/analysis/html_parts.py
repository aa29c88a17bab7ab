"""Pieces of HTML for displays in notebooks. Every text in them is escaped, since it may come from somebody's file."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Hashable, Iterable, Sequence

from empo_bi.analysis.plots.colours import INK, WHITE, agent_colour, ink_on
from empo_bi.runtime.printable import printable
from empo_bi.world.as_model import Model
from empo_bi.world.map_world import MapWorld
from empo_bi.world.png import png_bytes

TILE = 40  # pixels of a cell
MOST_PIXELS = 1_000_000  # of a picture; the cells of large maps are smaller
MOST_WIDTH = 720  # pixels on the page


def escaped(text: object) -> str:
    """A text that is shown as it is, whatever it contains."""
    return html.escape(printable(str(text)))


def table(head: Sequence[object], rows: Iterable[Sequence[object]], caption: object = "") -> str:
    """A table; the first column is aligned to the left, the others, which have numbers, to the right."""

    def row(cells: Sequence[object], tag: str) -> str:
        sides = ["left", *["right"] * (len(cells) - 1)]
        inside = "".join(
            f'<{tag} style="text-align: {side}">{escaped(cell)}</{tag}>' for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{inside}</tr>"

    above = f'<caption style="text-align: left">{escaped(caption)}</caption>' if caption else ""
    return (
        f"<table>{above}<thead>{row(head, 'th')}</thead><tbody>{''.join(row(cells, 'td') for cells in rows)}</tbody></table>"
    )


def side_by_side(*parts: str) -> str:
    """Parts beside each other, or below where there is no room."""
    inside = "".join(f"<div>{part}</div>" for part in parts if part)
    return f'<div style="display: flex; flex-wrap: wrap; gap: 1.5em; align-items: flex-start">{inside}</div>'


def paragraph(text: object) -> str:
    return f"<p>{escaped(text)}</p>"


def picture(model: Model, state: Hashable) -> str:
    """A state as picture, with the numbers of agents where the world has a map; "" for worlds without pictures."""
    if model.picture is None:
        return ""
    world = model.grid
    if world is None:
        return image(png_bytes(model.picture(state, TILE)), "image/png", "a state")
    pixels = world.picture(state, tile_of(world))  # type: ignore[arg-type]
    return _numbered(world, state, png_bytes(pixels))


def tile_of(world: MapWorld) -> int:
    """Pixels of a cell, fewer for large maps."""
    return max(1, min(TILE, math.isqrt(MOST_PIXELS // (world.width * world.height))))


def image(data: bytes, kind: str, words: str) -> str:
    """A picture or film; ``words`` are for whoever cannot see it."""
    return f'<img src="{data_url(data, kind)}" alt="{escaped(words)}" style="max-width: 100%">'


def data_url(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def bars(numbers: Sequence[float], words: str) -> str:
    """A small chart with a bar for each number."""
    n, most = len(numbers), max([*numbers, 1])
    drawn = "".join(
        f'<rect x="{i + 0.1:.1f}" y="{40 - 40 * number / most:.2f}" width="0.8" height="{40 * number / most:.2f}"/>'
        for i, number in enumerate(numbers)
    )
    size = f'viewBox="0 0 {n} 40" preserveAspectRatio="none" width="{min(MOST_WIDTH, max(60, 12 * n))}" height="80"'
    return f'<svg {size} role="img" aria-label="{escaped(words)}" fill="{agent_colour(0)}">{drawn}</svg>'


def _numbered(world: MapWorld, state: Hashable, png: bytes) -> str:
    """The map with each agent's number on a disc of its colour, in a corner of its cell."""
    width, height = world.width, world.height
    marks, on_cell = [], dict[tuple[int, int], int]()
    for agent, (x, y, *_) in enumerate(state[1]):  # type: ignore[index]
        n = on_cell[x, y] = on_cell.get((x, y), -1) + 1  # agents may share a cell
        left, colour = x + 0.8 - 0.36 * n, agent_colour(agent)
        marks.append(
            f'<circle cx="{left:.2f}" cy="{y + 0.2:.2f}" r="0.18" fill="{colour}" stroke="{WHITE}" stroke-width="0.03"/>'
            f'<text x="{left:.2f}" y="{y + 0.29:.2f}" font-size="0.26" font-weight="bold" font-family="sans-serif" '
            f'text-anchor="middle" fill="{_ink_on(colour)}">{agent}</text>'
        )
    across = min(MOST_WIDTH, TILE * width)
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{across}" height="{across * height / width:.0f}" role="img" '
        f'style="max-width: 100%" aria-label="{escaped(world.describe(state))}">'  # type: ignore[arg-type]
        f'<image href="{data_url(png, "image/png")}" width="{width}" height="{height}" preserveAspectRatio="none"/>'
        f"{''.join(marks)}</svg>"
    )


def _ink_on(colour: str) -> str:
    return INK if ink_on([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]) == INK else WHITE


def number(value: object) -> str:
    """A number as tables show it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
