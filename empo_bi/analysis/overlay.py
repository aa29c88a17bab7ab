"""Drawing the frames of a film: agents' numbers and goals on the grid, and a panel of numbers beside or below it.

The layout depends on the solution alone, so all frames of a film have one size and nothing jumps. The panel is made of
blocks as wide as a column; they are arranged in one to three columns, below or beside the grid, whichever makes the smallest
frame.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from empo_bi.analysis.captions import Caption, GoalNote
from empo_bi.problem.protocols import Goal
from empo_bi.results.solution import Solution
from empo_bi.runtime.extras import import_optional
from empo_bi.world.goals import cells_of
from empo_bi.world.rectangles import Rectangle, is_one_cell

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

Picture = npt.NDArray[np.uint8]
Colour = tuple[int, int, int]
Paint = Callable[["ImageDraw", int, int, Sequence[Caption]], None]

INK, PAPER, GREY, TRACK = (36, 38, 44), (255, 255, 255), (104, 109, 119), (212, 215, 221)
ROBOT, OTHER = (60, 64, 72), (128, 90, 150)
# The palette of Okabe and Ito, darkened so that white numbers are readable on it.
HUMANS: tuple[Colour, ...] = ((0, 101, 168), (200, 80, 0), (0, 128, 96), (160, 74, 128), (120, 92, 20), (40, 136, 176))
MIN_TEXT = 13
SHOWN_PROFILES, SHOWN_GOALS = 4, 3
END, TICK = "the end", "tick"


@lru_cache(maxsize=16)
def font(size: int) -> FreeTypeFont:
    return import_optional("PIL.ImageFont", "analysis").load_default(size)


def cut(text: str, room: float, size: int, strip: str = "") -> str:
    """The text, cut if there is not enough room; characters of ``strip`` are not left before the dots."""
    measure = font(size).getlength
    if measure(text) <= room:
        return text
    while text and measure(text + "...") > room:
        text = text[:-1]
    return text.rstrip(strip) + "..."


def number(value: float) -> str:
    """A probability or a power in few characters: 0.812, 12.4, 3e-05."""
    if value != value:
        return "-"
    if value == 0 or 0.0005 <= abs(value) < 10:
        return f"{value:.3f}"
    return f"{value:.3g}" if abs(value) > 1 else f"{value:.2g}"


def share(p: float) -> str:
    """A probability with three decimals; "~0" if it is tiny but not 0."""
    return "~0" if 0 < p < 0.0005 else f"{p:.3f}"


@dataclass(frozen=True)
class Block:
    """A part of the panel: its height, and the function that paints it at (x, y)."""

    height: int
    paint: Paint


class Overlay:
    """Paints the frames of a solution's episodes. ``goals`` are the fixed goals that humans pursue.

    Attributes
    ----------
    height, width : of a frame
    grid_xy : where the picture of the state is in the frame
    """

    def __init__(
        self, solution: Solution, picture: tuple[int, int], tile: int, goals: dict[int, Goal], *, most_power: float
    ) -> None:
        """``picture`` is the (height, width) of pictures of states; ``most_power`` is the top of the sparklines."""
        self._solution, self._tile, self._goals, self._most_power = solution, tile, goals, most_power
        self._em = max(MIN_TEXT, round(0.29 * tile))
        self._line, self._pad, self._gap = round(1.55 * self._em), round(0.9 * self._em), round(0.7 * self._em)
        self._colour = dict.fromkeys(solution.robots, ROBOT)
        self._colour |= {human: HUMANS[h % len(HUMANS)] for h, human in enumerate(solution.humans)}
        self._is_grid = solution.model.grid is not None
        self._arrange(*picture)

    # --- where things are ---------------------------------------------------------------------------------------------

    def _arrange(self, rows: int, columns: int) -> None:
        """Choose the smallest of all frames with the panel below or beside the picture."""
        pad, gap, least = self._pad, 2 * self._gap, 18 * self._em
        best: tuple[int, ...] = ()
        for is_below, n in itertools.product((True, False), (1, 2, 3)):
            if is_below:
                width = max(columns + 2 * pad, n * least + (n - 1) * gap + 2 * pad)
                column = min(30 * self._em, (width - 2 * pad - (n - 1) * gap) // n)
            else:
                column = least
                width = columns + n * least + (n - 1) * gap + 3 * pad
            self._column = column
            blocks = self._blocks()
            if n > len(blocks):
                continue
            cuts, inner = _split([block.height for block in blocks], n, self._gap)
            height = rows + inner + 3 * pad if is_below else max(rows, inner) + 2 * pad
            # Frames up to about twice as wide as high fit pages and screens; more extreme ones, unless the world itself is
            # like that, are scored as if they were larger.
            stretch = max(width / height / max(2.2, columns / rows), height / width / max(1.1, rows / columns), 1.0)
            score = round(width * height * stretch)
            if not best or score < best[0]:
                best = (score, width, height, column, int(is_below), *cuts)
        _, width, height, self._column, goes_below, *cuts = best
        self.width, self.height = width + width % 2, height + height % 2  # videos want even numbers
        left = (self.width - columns) // 2 if goes_below else pad
        self.grid_xy = left, pad
        x0, y0 = (pad, rows + 2 * pad) if goes_below else (columns + 2 * pad, pad)
        self._placed: list[tuple[Block, int, int]] = []
        blocks = self._blocks()
        for n, (first, last) in enumerate(itertools.pairwise([0, *cuts, len(blocks)])):
            y = y0
            for block in blocks[first:last]:
                self._placed.append((block, x0 + n * (self._column + 2 * self._gap), y))
                y += block.height + self._gap

    def _blocks(self) -> list[Block]:
        solution, line = self._solution, self._line
        names = solution.model.action_names
        n_agents = solution.model.n_agents
        widest = max(font(self._em).getlength(name) for name in names)
        item = round(1.9 * self._em + widest + 0.9 * self._em)
        per_line = max(1, min(n_agents, self._column // item))
        blocks = [
            Block(
                round(2.6 * line + line * math.ceil(n_agents / per_line)),
                self._last_step(per_line, self._column // per_line),
            )
        ]
        if solution.robots:
            n_rows = min(SHOWN_PROFILES, len(solution.robot_profiles))
            blocks.append(Block(line * (1 + n_rows), self._robots(n_rows)))
        blocks += [Block(2 * line, self._human(human)) for human in solution.humans]
        if self._is_grid and not self._goals and self._has_cell_goals():
            blocks.append(Block(line, self._legend))
        return blocks

    def _has_cell_goals(self) -> bool:
        goals = [goal for known in self._solution.goals.values() for goal in known]
        return any(is_one_cell(place) for goal in goals for place in cells_of(goal) or ())

    # --- a frame ------------------------------------------------------------------------------------------------------

    def frame(self, picture: Picture, captions: Sequence[Caption], title: str = "") -> Picture:
        """The frame of the last caption; earlier captions are the episode so far. ``title`` goes into the corner."""
        image_module, draw_module = import_optional("PIL.Image", "analysis"), import_optional("PIL.ImageDraw", "analysis")
        image = image_module.new("RGB", (self.width, self.height), PAPER)
        image.paste(image_module.fromarray(self.marked(picture, captions[-1])), self.grid_xy)
        draw = draw_module.Draw(image)
        for block, x, y in self._placed:
            block.paint(draw, x, y, captions)
        if title:
            _, x, y = self._placed[0]
            draw.text((x + self._column, y), title, GREY, font(self._em), anchor="ra")
        return np.asarray(image)

    # --- on the grid --------------------------------------------------------------------------------------------------

    def marked(self, picture: Picture, caption: Caption) -> Picture:
        """A picture of a gridworld with goals, their values, and the agents' numbers."""
        if not self._is_grid:
            return picture
        image = import_optional("PIL.Image", "analysis").fromarray(picture)
        draw = import_optional("PIL.ImageDraw", "analysis").Draw(image)
        if self._goals:
            self._outline_goals(draw, caption)
        else:
            self._put_bars(draw, caption)
        tile = self._tile
        if tile >= 18:
            size = max(11, round(0.36 * tile))
            for agent, (x, y, *_) in enumerate(caption.state[1]):
                badge = _badge(str(agent), self._colour.get(agent, OTHER), size)
                image.paste(badge, ((x + 1) * tile - size, y * tile + 1), badge)
        return np.asarray(image)

    def _put_bars(self, draw: ImageDraw, caption: Caption) -> None:
        """At the bottom of each goal cell, a bar for each human who has this goal, as long as its value."""
        tile, humans = self._tile, self._solution.humans
        thick = max(3, min(round(0.13 * tile), round(0.3 * tile) // max(1, len(humans))))
        inset = max(1, tile // 16)
        for h, human in enumerate(humans):
            for note in caption.goals.get(human, []):
                for place in note.places if note.value >= 0.005 else ():
                    if not is_one_cell(place):
                        continue
                    x, y = place[0] * tile + inset, (place[1] + 1) * tile - inset - (len(humans) - h) * thick
                    full = tile - 2 * inset
                    edge = thick >= 5
                    draw.rectangle((x, y, x + full - 1, y + thick - 1), TRACK, PAPER if edge else None)
                    length = max(1, round(full * min(1.0, note.value)))
                    draw.rectangle((x, y + edge, x + length - 1, y + thick - 1 - edge), self._colour[human])

    def _outline_goals(self, draw: ImageDraw, caption: Caption) -> None:
        """For each fixed goal, a frame in the human's colour, and its value here."""
        tile, taken = self._tile, set[Rectangle]()
        thick = max(2, round(0.07 * tile))
        pursued = [(human, note, place) for human, note in caption.pursued.items() for place in note.places]
        for human, note, place in pursued:
            x1, y1, x2, y2 = place
            shift = thick * (place in taken)
            corners = (x1 * tile + shift, y1 * tile + shift, (x2 + 1) * tile - 1 - shift, (y2 + 1) * tile - 1 - shift)
            draw.rectangle(corners, outline=self._colour[human], width=thick)
            if tile >= 18 and not shift:
                self._put_value(draw, note, self._colour[human], (x1 * tile + thick, (y2 + 1) * tile - thick))
            taken.add(place)

    def _put_value(self, draw: ImageDraw, note: GoalNote, colour: Colour, corner: tuple[int, int]) -> None:
        """In the lower left corner of a goal its value, or a tick if it is attained."""
        (x, y), size = corner, max(11, round(0.36 * self._tile))
        label = _short(note.value)
        if note.attained:
            tick = _badge(TICK, colour, size)
            draw._image.paste(tick, (x + 1, y - size), tick)
        elif label and self._tile >= 30:
            text = font(max(10, round(0.27 * self._tile)))
            left, top, right, _ = draw.textbbox((x + 2, y - 2), label, text, anchor="ls")
            draw.rectangle((left - 2, top - 2, right + 2, y - 1), PAPER)
            draw.text((x + 2, y - 2), label, colour, text, anchor="ls")

    # --- blocks -------------------------------------------------------------------------------------------------------

    def _fit(self, text: str, room: float) -> str:
        return cut(text, room, self._em, " ,")

    def _put_badge(self, draw: ImageDraw, agent: int, x: int, y: int) -> int:
        """Draw an agent's number in its colour, centred on the line at ``y``; returns its width with a gap."""
        size = round(1.35 * self._em)
        badge = _badge(str(agent), self._colour.get(agent, OTHER), size)
        draw._image.paste(badge, (x, y + (self._line - size) // 2), badge)
        return size + round(0.45 * self._em)

    def _text(self, draw: ImageDraw, x: float, y: int, text: str, colour: Colour = INK, anchor: str = "lm") -> None:
        draw.text((x, y + self._line // 2), text, colour, font(self._em), anchor=anchor)

    def _last_step(self, per_line: int, item: int) -> Paint:
        def paint(draw: ImageDraw, x: int, y: int, captions: Sequence[Caption]) -> None:
            caption, width, line = captions[-1], self._column, self._line
            draw.text((x, y), f"step {caption.step} of {caption.n_steps}", INK, font(round(1.2 * self._em)), anchor="la")
            y += line
            done = round(width * caption.step / max(1, caption.n_steps))
            draw.rectangle((x, y + 2, x + width - 1, y + 5), TRACK)
            if done:
                draw.rectangle((x, y + 2, x + done - 1, y + 5), INK)
            y += round(0.6 * line)
            if not caption.did:
                self._text(draw, x, y, "the start", GREY)
                return
            text = f"just now: p = {number(caption.probability)}"
            if caption.p_outcome < 1:
                text += f" (chance {number(caption.p_outcome)})"
            self._text(draw, x, y, self._fit(text, width), GREY)
            y += line
            for n, (agent, action) in enumerate(caption.did.items()):
                left, top = x + n % per_line * item, y + n // per_line * line
                left += self._put_badge(draw, agent, left, top)
                self._text(draw, left, top, action)

        return paint

    def _robots(self, n_rows: int) -> Paint:
        robots = self._solution.robots
        names = self._solution.model.action_names
        measure = font(self._em).getlength
        widest = max(map(measure, names)) * len(robots) + measure(" + ") * (len(robots) - 1)
        mark = round(0.9 * self._em)  # marks the next profile
        label = round(min(widest, 0.55 * self._column)) + round(0.5 * self._em)
        figure = round(measure("0.000"))

        def paint(draw: ImageDraw, x: int, y: int, captions: Sequence[Caption]) -> None:
            caption, line = captions[-1], self._line
            left = x
            for robot in robots[:6]:
                left += self._put_badge(draw, robot, left, y)
            heading = "plays here, by probability" if len(robots) == 1 else "policy here"
            room = x + self._column - left
            if caption.robots:
                hint = round(measure("next"))
                self._text(draw, x + self._column, y, "next", GREY, anchor="rm")
                self._put_mark(draw, x + self._column - hint - mark, y, GREY)
                room -= hint + mark + self._gap
            self._text(draw, left, y, self._fit(heading if caption.robots else END, room), GREY)
            bar_x = x + mark + label
            full = self._column - mark - label - figure - self._gap
            for actions, p in caption.shown_robots(n_rows):
                y += line
                middle = y + line // 2
                if actions == caption.next_robots:
                    self._put_mark(draw, x, y, INK)
                self._text(draw, x + mark, y, self._fit(" + ".join(actions), label))
                thick = round(0.3 * self._em)
                draw.rectangle((bar_x, middle - thick, bar_x + full - 1, middle + thick), TRACK)
                if length := round(full * p):
                    draw.rectangle((bar_x, middle - thick, bar_x + length - 1, middle + thick), ROBOT)
                self._text(draw, x + self._column, y, share(p), anchor="rm")

        return paint

    def _put_mark(self, draw: ImageDraw, x: int, y: int, colour: Colour) -> None:
        """A small triangle pointing right, which marks the next profile."""
        middle, high = y + self._line // 2, round(0.32 * self._em)
        draw.polygon([(x, middle - high), (x + round(1.4 * high), middle), (x, middle + high)], fill=colour)

    def _human(self, human: int) -> Paint:
        def paint(draw: ImageDraw, x: int, y: int, captions: Sequence[Caption]) -> None:
            caption, line = captions[-1], self._line
            left = x + self._put_badge(draw, human, x, y)
            power = caption.power.get(human)
            self._text(draw, left, y, f"power {number(math.nan if power is None else power)}")
            begin = left + round(font(self._em).getlength("power 0.000e-00")) + self._gap
            self._sparkline(draw, (begin, y + 3, x + self._column, y + line - 3), human, captions)
            room = x + self._column - left
            if human in caption.pursued:
                self._text(draw, left, y + line, self._fit(_goal_text(caption.pursued[human]), room), self._colour[human])
            elif caption.power:
                self._text(draw, left, y + line, self._best_goals_text(caption, human, room), GREY)

        return paint

    def _best_goals_text(self, caption: Caption, human: int, room: float) -> str:
        """The goals with the highest values here, as many as there is room for."""
        best = [note for note in caption.best_goals(human, SHOWN_GOALS) if note.value >= 0.005]
        if not best:
            return "no goal is within reach"
        texts = ["best: " + ", ".join(f"{_named(note)} {_short(note.value)}" for note in best[:n]) for n in range(1, 4)]
        fitting = [text for text in texts if self._fit(text, room) == text]
        return fitting[-1] if fitting else self._fit(texts[0], room)

    def _sparkline(self, draw: ImageDraw, box: tuple[int, int, int, int], human: int, captions: Sequence[Caption]) -> None:
        """Power so far, from 0 to the highest power in the film; the full width is the whole episode."""
        x1, y1, x2, y2 = box
        n_steps = max(1, captions[-1].n_steps - 1)  # there is no power at the end
        draw.line((x1, y2, x2, y2), TRACK, 1)
        points = [
            (
                x1 + (x2 - x1 - self._em // 4) * caption.step / n_steps,
                y2 - (y2 - y1) * caption.power[human] / self._most_power,
            )
            for caption in captions
            if human in caption.power
        ]
        if len(points) > 1:
            draw.line(points, self._colour[human], max(2, self._em // 7))
        if points:
            (x, y), radius = points[-1], max(3, self._em // 5)
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), self._colour[human])

    def _legend(self, draw: ImageDraw, x: int, y: int, captions: Sequence[Caption]) -> None:
        middle, thick, size = y + self._line // 2, max(2, round(0.1 * self._tile)), round(1.6 * self._em)
        draw.rectangle((x, middle - thick // 2, x + size - 1, middle - thick // 2 + thick - 1), TRACK)
        colour = self._colour[self._solution.humans[0]]
        draw.rectangle((x, middle - thick // 2, x + round(0.6 * size), middle - thick // 2 + thick - 1), colour)
        left = x + size + round(0.5 * self._em)
        self._text(draw, left, y, self._fit("in cells: value of that goal, 0 to 1", x + self._column - left), GREY)


def _goal_text(note: GoalNote) -> str:
    """The fixed goal of a human, and its value or whether it was attained."""
    if note.attained or note.value != note.value:
        return f"wants {note.label}: {'attained' if note.attained else 'not attained'}"
    return f"wants {note.label}: value {number(note.value)}"


def _named(note: GoalNote) -> str:
    return f"({note.label})" if note.cells is not None else note.label


def _short(value: float) -> str:
    """A value of at most 1 in three characters; empty for nan."""
    if value != value:
        return ""
    return f"{value:.1f}" if value >= 0.995 else f"{value:.2f}".lstrip("0") if value >= 0.005 else "~0" if value > 0 else "0"


def _split(heights: Sequence[int], n: int, gap: int) -> tuple[list[int], int]:
    """Where to cut a list of blocks into ``n`` columns so that the highest is as low as possible, and its height."""

    def height_of(cuts: tuple[int, ...]) -> int:
        return max(
            sum(heights[first:last]) + gap * (last - first - 1)
            for first, last in itertools.pairwise([0, *cuts, len(heights)])
        )

    height_by_cuts = {cuts: height_of(cuts) for cuts in itertools.combinations(range(1, len(heights)), n - 1)}
    enough = min(height_by_cuts.values()) + 2 * gap  # fill the first columns first if that costs next to nothing
    cuts = max(cuts for cuts, height in height_by_cuts.items() if height <= enough)
    return list(cuts), height_by_cuts[cuts]


@lru_cache(maxsize=256)
def _badge(text: str, colour: Colour, size: int) -> Image:
    """A disc with a number or a tick, with smooth edges: painted four times as large, then scaled down."""
    image_module, draw_module = import_optional("PIL.Image", "analysis"), import_optional("PIL.ImageDraw", "analysis")
    large = 4 * size
    image = image_module.new("RGBA", (large, large), (*colour, 0))
    draw = draw_module.Draw(image)
    draw.ellipse((0, 0, large - 1, large - 1), (255, 255, 255, 255))
    draw.ellipse((4, 4, large - 5, large - 5), (*colour, 255))
    if text == TICK:
        points = [(0.26 * large, 0.52 * large), (0.44 * large, 0.7 * large), (0.75 * large, 0.32 * large)]
        draw.line(points, (255, 255, 255, 255), round(0.13 * large), joint="curve")
        return image.resize((size, size), image_module.Resampling.LANCZOS)
    letters = font(round((0.68 if len(text) == 1 else 0.55) * large))
    draw.text((large / 2, large / 2), text, (255, 255, 255, 255), letters, anchor="mm")
    return image.resize((size, size), image_module.Resampling.LANCZOS)
