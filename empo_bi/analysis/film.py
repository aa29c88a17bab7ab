"""Films of episodes: :func:`frames`, and :func:`save_film` as GIF, MP4, or one picture of all steps (PNG).

What the panel says is in :mod:`empo_bi.analysis.captions`, how it is drawn in :mod:`empo_bi.analysis.overlay`.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator, Sequence
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.analysis.captions import Caption, captions_of
from empo_bi.analysis.overlay import GREY, INK, MIN_TEXT, PAPER, Overlay, Picture, cut, font, number
from empo_bi.results.rollouts import Rollouts
from empo_bi.runtime.atomic_write import atomic_write, checked_place
from empo_bi.runtime.extras import import_optional
from empo_bi.runtime.wording import short_repr
from empo_bi.world.as_model import Model

TILE = 48
SHEET_TILE = 32
MOST_PIXELS, MOST_SHEET_PIXELS = 4_000_000, 20_000_000  # of a frame, and of a picture of all steps, by default
SIDE = 8  # tiles; smaller pictures of Python worlds are enlarged up to this size
VIDEO_RATE = 20  # frames per second; each step is shown for a whole number of frames
LAST = 3  # how many times longer the last frame of an episode is shown
UNCHANGED = 255  # the palette index of a GIF for transparent pixels, which keep their previous colour
EXACT_COLOURS = 160
SUFFIXES = (".gif", ".mp4", ".png")


def frames(rollouts: Rollouts, i: int, *, tile: int = TILE, overlay: bool = True) -> Iterator[Picture]:
    """Pictures of the states of episode ``i``, one for each state, all of one size.

    Parameters
    ----------
    rollouts : Rollouts
    i : int
    tile : int, pixels
        Side of a cell. With an overlay, small pictures of Python worlds are enlarged by a whole factor, up to 8 tiles.
    overlay : bool
        Show numbers: the last step and its probability, the robot's policy, the humans' power so far, and on the grid the
        agents' numbers and the values of goals. Without an overlay, frames are those of ``world.render``.

    Yields
    ------
    (H, W, 3) uint8
    """
    yield from _Film(rollouts, [i], tile, overlay).frames(0)


def save_film(
    rollouts: Rollouts,
    path: str | os.PathLike[str],
    *,
    episodes: Sequence[int] = (0,),
    tile: int | None = None,
    seconds_per_step: float = 0.6,
    overlay: bool = True,
    columns: int | None = None,
    overwrite: bool = False,
) -> Path:
    """Write episodes as a film, or as one picture of all steps.

    Parameters
    ----------
    rollouts : Rollouts
    path : path
        Its suffix is the format: ``.gif``, ``.mp4`` (H.264, needs ``pip install 'empo-bi[movies]'``), or ``.png`` for one
        sheet with small pictures of all steps. The file appears when it is complete, and not at all if something fails.
    episodes : list of int
        Which episodes, one after the other.
    tile : int, pixels
        Side of a cell, by default 48, or 32 in a ``.png``. With an overlay, small pictures of Python worlds are enlarged by
        a whole factor, up to 8 tiles.
    seconds_per_step : float
        Rounded to hundredths of a second in GIFs and to twentieths in videos. The last state of an episode is shown three
        times as long.
    overlay : bool
        Show numbers, see :func:`frames`.
    columns : int, optional
        Show the episodes at the same time, this many side by side; episodes that end early wait for the others. In a
        ``.png``: the number of pictures in a row.
    overwrite : bool
        Replace an existing file.

    Returns
    -------
    The path.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(
            f"{path}: films are written as {', '.join(SUFFIXES)} (a picture of all steps); give a name with one of these "
            "suffixes"
        )
    if not 0 < seconds_per_step < math.inf:
        raise ValueError(f"seconds_per_step={seconds_per_step!r}; give a positive number")
    if columns is not None and index(columns) < 1:
        raise ValueError(f"columns={columns!r}; give a number of columns, 1 or more")
    if isinstance(episodes, int) or len(episodes) == 0:
        raise ValueError(f"episodes={episodes!r}; give a list of numbers, such as [0, 1]")
    path = checked_place(path, overwrite)
    if suffix == ".mp4":
        import_optional("imageio", "movies"), import_optional("av", "movies")
    import_optional("PIL.Image", "analysis")
    film = _Film(rollouts, list(episodes), tile or _usual_tile(rollouts, list(episodes), suffix), overlay)
    with atomic_write(path) as unfinished:
        if suffix == ".png":
            _write_png(unfinished, film.sheet(columns))
        elif suffix == ".gif":
            _write_gif(unfinished, *film.shots(columns), seconds_per_step)
        else:
            _write_mp4(unfinished, *film.shots(columns), seconds_per_step)
    return path


def _usual_tile(rollouts: Rollouts, episodes: Sequence[int], suffix: str) -> int:
    """Pixels of a cell if nobody asks for others: fewer for large maps, so that memory suffices."""
    grid, usual = rollouts.solution.model.grid, SHEET_TILE if suffix == ".png" else TILE
    if grid is None:
        return usual
    n_at_once = sum(len(rollouts.states(i)) for i in episodes) if suffix == ".png" else len(episodes)
    most = MOST_SHEET_PIXELS if suffix == ".png" else MOST_PIXELS
    return max(1, min(usual, math.isqrt(most // (grid.width * grid.height * max(1, n_at_once)))))


class _Film:
    """Episodes with their captions; all their overlays have the same scale and size."""

    def __init__(self, rollouts: Rollouts, episodes: list[int], tile: int, overlay: bool) -> None:
        if index(tile) < 1:
            raise ValueError(f"tile={tile!r}; give the side of a cell in pixels, 1 or more (16 to 64 look best)")
        wrong = [i for i in episodes if not -len(rollouts) <= index(i) < len(rollouts)]
        if wrong:
            raise IndexError(f"episode {wrong[0]}: episodes are numbered 0 to {len(rollouts) - 1}")
        self.rollouts, self.episodes, self.tile = rollouts, episodes, tile
        self.model = rollouts.solution.model
        self.states = [rollouts.states(i) for i in episodes]
        self.captions: list[list[Caption]] = []
        self.overlay: Overlay | None = None
        if overlay:
            self.captions = [captions_of(rollouts, i) for i in episodes]
            powers = [x for captions in self.captions for caption in captions for x in caption.power.values()]
            height, width, _ = self.picture(self.states[0][0], with_text=True).shape
            self.overlay = Overlay(
                rollouts.solution, (height, width), tile, rollouts.goals, most_power=max([*powers, 1e-300])
            )

    def picture(self, state: Any, *, with_text: bool) -> Picture:
        """A state; beside text, small pictures of Python worlds are enlarged."""
        picture = picture_of(self.model, state, self.tile)
        if not with_text or self.model.grid is not None:
            return picture
        times = max(1, SIDE * self.tile // max(1, *picture.shape[:2]))
        return picture.repeat(times, axis=0).repeat(times, axis=1)

    def frames(self, e: int) -> Iterator[Picture]:
        """The frames of the ``e``-th of the episodes."""
        title = f"episode {self.episodes[e]}" if len(self.episodes) > 1 else ""
        for k, state in enumerate(self.states[e]):
            picture = self.picture(state, with_text=self.overlay is not None)
            if self.overlay is not None:
                picture = self.overlay.frame(picture, self.captions[e][: k + 1], title)
            yield picture

    def shots(self, columns: int | None) -> tuple[list[Picture], list[int]]:
        """All frames of the film, and for how many steps' time each is shown."""
        by_episode = [list(self.frames(e)) for e in range(len(self.episodes))]
        if columns is not None:
            by_episode = [_side_by_side(by_episode, columns)]
        shown = [LAST if k == len(pictures) - 1 else 1 for pictures in by_episode for k in range(len(pictures))]
        return [picture for pictures in by_episode for picture in pictures], shown

    def sheet(self, columns: int | None) -> Picture:
        """All steps as small pictures, row by row, each episode beginning a row."""
        image_module, draw_module = import_optional("PIL.Image", "analysis"), import_optional("PIL.ImageDraw", "analysis")
        rows, width, _ = self.picture(self.states[0][0], with_text=True).shape
        em = max(MIN_TEXT, round(0.29 * self.tile))
        line, pad = round(1.4 * em), round(0.8 * em)
        width = max(width, 15 * em)
        texts = [
            [_wrapped(self._below(e, k), width, em) for k in range(len(states))] for e, states in enumerate(self.states)
        ]
        height = rows + line * max(len(lines) for episode in texts for lines in episode)
        longest = max(map(len, self.states))
        n = columns or max(1, min(longest, round(math.sqrt(longest * 1.6 * (height + pad) / (width + pad)))))
        n_rows = sum(math.ceil(len(states) / n) for states in self.states)
        image = image_module.new("RGB", (n * (width + pad) + pad, n_rows * (height + pad) + pad), PAPER)
        draw = draw_module.Draw(image)
        row = 0
        for e, states in enumerate(self.states):
            for k, state in enumerate(states):
                x, y = pad + k % n * (width + pad), pad + (row + k // n) * (height + pad)
                picture = self.picture(state, with_text=True)
                if self.overlay is not None:
                    picture = self.overlay.marked(picture, self.captions[e][k])
                image.paste(image_module.fromarray(picture), (x, y))
                for j, text in enumerate(texts[e][k]):
                    at = (x, y + rows + j * line + line // 2)
                    draw.text(at, text, INK if j == 0 else GREY, font(em), anchor="lm")
            row += math.ceil(len(states) / n)
        return np.asarray(image)

    def _below(self, e: int, k: int) -> list[str]:
        """The lines of text below a small picture."""
        head = f"step {k}" if len(self.states) == 1 else f"episode {self.episodes[e]}, step {k}"
        return [head] if self.overlay is None else _caption_lines(head, self.captions[e][k])


def _caption_lines(head: str, caption: Caption) -> list[str]:
    """Three lines below a small picture."""
    if caption.did:
        head += f", p = {number(caption.probability)}"
    did = ", ".join(f"{agent} {action}" for agent, action in caption.did.items()) or "the start"
    power = ", ".join(map(number, caption.power.values()))
    return [head, did, f"power {power}" if power else "the end"]


def _wrapped(texts: list[str], room: int, size: int) -> list[str]:
    """Texts in as many lines as they need, broken after commas; a part that is too long for a line is cut."""
    measure = font(size).getlength
    lines = []
    for text in texts:
        line = ""
        for part in text.split(", "):
            longer = f"{line}, {part}" if line else part
            if line and measure(longer + ",") > room:
                lines.append(line + ",")
                longer = part
            line = longer
        lines.append(line)
    return [cut(line, room, size) for line in lines]


def picture_of(model: Model, state: Any, tile: int) -> Picture:
    """A state as (H, W, 3) uint8: drawn by us for gridworlds, else by the world's own ``picture(state)``."""
    if model.picture is None:
        raise TypeError(
            f"{short_repr(model.world)} has no pictures; give its class a method picture(state) that returns a (height, "
            "width, 3) array of uint8 (a run that was opened without its world has none: give world=...), or look at "
            "rollouts.states(i)"
        )
    return model.picture(state, tile)


def _side_by_side(by_episode: list[list[Picture]], columns: int) -> list[Picture]:
    """Frames of several episodes at the same time; a shorter episode stays at its last frame."""
    blank = np.full_like(by_episode[0][0], 255)
    found = []
    for k in range(max(map(len, by_episode))):
        now = [pictures[min(k, len(pictures) - 1)] for pictures in by_episode]
        rows = [now[first : first + columns] for first in range(0, len(now), columns)]
        n = min(columns, len(now))
        found.append(np.vstack([np.hstack(row + [blank] * (n - len(row))) for row in rows]))
    return found


# --- files ------------------------------------------------------------------------------------------------------------


def _write_png(path: Path, picture: Picture) -> None:
    import_optional("PIL.Image", "analysis").fromarray(picture).save(path, optimize=True)


def _write_gif(path: Path, pictures: list[Picture], shown: list[int], seconds: float) -> None:
    """One palette for all frames; unchanged pixels are transparent, which compresses well."""
    image_module = import_optional("PIL.Image", "analysis")
    palette_C3, indexed = _with_one_palette(pictures)
    images = []
    for before, now in itertools.pairwise([None, *indexed]):
        assert now is not None
        image = image_module.fromarray(now if before is None else np.where(now == before, UNCHANGED, now).astype(np.uint8))
        image.putpalette(palette_C3.tobytes())
        images.append(image)
    duration = [max(20, 10 * round(100 * seconds * times)) for times in shown]
    images[0].save(
        path, save_all=True, append_images=images[1:], duration=duration, loop=0, optimize=False, disposal=1,
        transparency=UNCHANGED,
    )  # fmt: skip


def _with_one_palette(pictures: list[Picture]) -> tuple[npt.NDArray[np.uint8], list[Picture]]:
    """A palette (256, 3), and pictures as (H, W) indices into it; the last index is free.

    Most of a picture has few colours, which are kept exactly. The many colours of smooth edges share the rest of the
    palette: each becomes the nearest entry. There is no dithering, which would flicker.
    """
    packed = [picture.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32) for picture in pictures]
    code_U, count_U = np.unique(np.concatenate([p.ravel() for p in packed]), return_counts=True)
    colour_U3 = np.stack([code_U >> 16, code_U >> 8 & 255, code_U & 255], axis=1).astype(np.uint8)
    kept = colour_U3[np.argsort(-count_U, kind="stable")[:EXACT_COLOURS]]
    if len(colour_U3) > EXACT_COLOURS:
        image_module = import_optional("PIL.Image", "analysis")
        others = colour_U3[np.argsort(-count_U, kind="stable")[EXACT_COLOURS:]]
        shared = image_module.fromarray(others[np.newaxis]).quantize(UNCHANGED - EXACT_COLOURS, kmeans=1).getpalette()
        kept = np.concatenate([kept, np.array(shared, dtype=np.uint8).reshape(-1, 3)[: UNCHANGED - EXACT_COLOURS]])
    palette_C3 = np.zeros((256, 3), dtype=np.uint8)
    palette_C3[: len(kept)] = kept
    place_U = np.concatenate(
        [
            ((part[:, np.newaxis].astype(np.int32) - kept.astype(np.int32)) ** 2).sum(axis=2).argmin(axis=1)
            for part in np.array_split(colour_U3, max(1, len(colour_U3) // 1000))
        ]
    ).astype(np.uint8)
    return palette_C3, [place_U[np.searchsorted(code_U, p)] for p in packed]


def _write_mp4(path: Path, pictures: list[Picture], shown: list[int], seconds: float) -> None:
    """H.264 with colours at half resolution (yuv420p), which all browsers play; width and height must be even."""
    imageio = import_optional("imageio.v3", "movies")
    height, width, _ = pictures[0].shape
    with imageio.imopen(path, "w", plugin="pyav") as video:
        video.init_video_stream("libx264", fps=VIDEO_RATE, pixel_format="yuv420p")
        for picture, times in zip(pictures, shown, strict=True):
            even = np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
            for _ in range(max(1, round(VIDEO_RATE * seconds * times))):
                video.write_frame(even)
