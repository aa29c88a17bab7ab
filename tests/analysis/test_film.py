"""Films: the numbers of captions are the solution's, frames show the states, files can be read again."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from planning_worlds import At, Ring, TwoSteps

from empo_bi import Params, Solution, load_world, solve
from empo_bi.analysis import film, overlay
from empo_bi.analysis.captions import Caption, captions_of, label_of
from empo_bi.analysis.film import frames, save_film
from empo_bi.results.rollouts import Rollouts

EXACT: dict[str, Any] = {"precision": "float64", "progress": False}
PARAMS = Params(gamma_h=0.97, gamma_r=0.95, zeta=2.0, beta_h=5.0, beta_r=4.0)


class Painted(Ring):
    """A world in Python that can paint its states: the place is a bright column."""

    def picture(self, state: Any) -> Any:
        picture = np.full((30, 40, 3), 40, dtype=np.uint8)
        picture[:, 10 * state[1] : 10 * state[1] + 10] = 220
        return picture


def freeing(goals: dict[int, int] | None = None, n: int = 4, seed: int = 2, steps: int = 5) -> Rollouts:
    solution = solve(load_world("asymmetric_freeing", max_steps=steps), PARAMS, **EXACT)
    return solution.rollouts(n, seed, {human: solution.goals[human][g] for human, g in (goals or {}).items()})


CASES = [
    pytest.param(lambda: freeing(steps=8), id="no goals"),
    pytest.param(lambda: freeing({1: 12}, steps=8), id="a goal"),
    pytest.param(lambda: solve(load_world("ice_rink", max_steps=4), PARAMS, **EXACT).rollouts(4, 1), id="chance"),
    pytest.param(lambda: solve(load_world("first_steps", max_steps=4), PARAMS, **EXACT).rollouts(4, 1), id="no robot"),
    pytest.param(lambda: solve(load_world("assembly", max_steps=1), PARAMS, **EXACT).rollouts(4, 1), id="two robots"),
    pytest.param(lambda: solve(Painted(4), PARAMS, **EXACT).rollouts(4, 1, {2: At(1)}), id="Python world"),
]


@pytest.fixture(params=CASES)
def rollouts(request: pytest.FixtureRequest) -> Rollouts:
    found: Rollouts = request.param()
    return found


def steps_of(rollouts: Rollouts, i: int) -> Iterator[tuple[Solution, int, int, Any, Caption]]:
    """Level, place and state of each caption."""
    captions = captions_of(rollouts, i)
    assert len(captions) == rollouts.length_N[i] + 1
    for k, (state, caption) in enumerate(zip(rollouts.states(i), captions, strict=True)):
        yield rollouts.solution, int(rollouts.level_NT[i, k]), int(rollouts.place_NT[i, k]), state, caption


# --- captions ---------------------------------------------------------------------------------------------------------


def names_of(solution: Solution, actions: Any) -> tuple[str, ...]:
    names = getattr(solution.world, "action_names", None) or ["action 0", "action 1"]
    return tuple(names[a] for a in actions)


def test_power_and_policies_are_those_of_the_levels(rollouts: Rollouts) -> None:
    for i in range(len(rollouts)):
        for solution, t, place, state, caption in steps_of(rollouts, i):
            assert caption.state == state
            if caption.step == caption.n_steps:
                assert (caption.power, caption.robots, caption.next_robots) == ({}, [], None)
                continue
            assert list(caption.power.values()) == solution.values.X_h[t][place].tolist()
            assert list(caption.power) == solution.humans
            expected = zip(solution.robot_profiles, solution.pi_r[t][place].tolist(), strict=True)
            assert dict(caption.robots) == {names_of(solution, profile): p for profile, p in expected}
            shares = [p for _, p in caption.robots]
            assert shares == sorted(shares, reverse=True)
            assert sum(shares) == pytest.approx(1.0)
            played = rollouts.action_NTI[i, caption.step]
            assert caption.next_robots == names_of(solution, [played[robot] for robot in solution.robots])
            assert caption.next_robots in [actions for actions, _ in caption.shown_robots(4)]


def test_what_happened_is_as_likely_as_policies_and_world_make_it(rollouts: Rollouts) -> None:
    """Put together from single policies: of each human, of the robots, of the world."""
    solution, world = rollouts.solution, rollouts.solution.world
    for i in range(len(rollouts)):
        states, captions = rollouts.states(i), captions_of(rollouts, i)
        assert (captions[0].did, captions[0].probability) == ({}, 1.0)
        for k in range(1, len(states)):
            actions = rollouts.action_NTI[i, k - 1].tolist()
            p = solution.robot_policy(states[k - 1])[tuple(actions[robot] for robot in solution.robots)]
            for human in solution.humans:
                p_A = np.asarray(solution.prior(states[k - 1], human, rollouts.goals.get(human)))
                p *= p_A[actions[human]] / p_A.sum()
            outcome = {after: q for q, after in world.transition_probabilities(states[k - 1], actions)}
            if isinstance(world, Ring):  # which may list a state twice
                listed = world.transition_probabilities(states[k - 1], actions)
                outcome = {states[k]: sum(q for q, after in listed if after == states[k])}
            assert tuple(captions[k].did.values()) == names_of(solution, actions)
            assert captions[k].p_actions == pytest.approx(p, rel=1e-9)
            assert captions[k].p_outcome == pytest.approx(outcome[states[k]], rel=1e-12)
            assert captions[k].probability == pytest.approx(p * outcome[states[k]], rel=1e-9)


def test_the_product_of_all_probabilities_is_that_of_the_chain_where_actions_show_in_the_outcome() -> None:
    """In a world whose states tell what was done, an episode is as likely as its path in the Markov chain."""

    class Diary(TwoSteps):
        def initial_state(self) -> Any:
            return (0, 0, ())

        def transition_probabilities(self, state: Any, actions: Any) -> Any:
            t, k, diary = state
            return None if t == self.steps else [(1.0, (t + 1, k | min(actions), (*diary, *actions)))]

    solution = solve(Diary(3), PARAMS, **EXACT)
    rollouts = solution.rollouts(6, 3)
    for i in range(6):
        last = captions_of(rollouts, i)
        t, place = rollouts.level_NT[i, 3], rollouts.place_NT[i, 3]
        assert math.prod(caption.probability for caption in last) == pytest.approx(solution.reached[t][place], rel=1e-9)


def test_goals_have_their_values_and_whether_they_were_attained(rollouts: Rollouts) -> None:
    n_positive = 0
    for i in range(len(rollouts)):
        past: list[Any] = []
        for solution, t, place, state, caption in steps_of(rollouts, i):
            past.append(state)
            for h, human in enumerate(solution.humans):
                known = solution.goals[human]
                assert caption.attained[human] == [goal for goal in known if goal.is_achieved(state)]
                notes = caption.goals.get(human, [])
                assert len(notes) == (0 if caption.step == caption.n_steps else len(known))
                for g, note in enumerate(notes):
                    assert note.goal == known[g]
                    assert note.value == solution.values.Vh_e[t][place, h, g]
                    n_positive += 0 < note.value < 1
                    assert note.attained == any(note.goal.is_achieved(before) for before in past)
                values = [note.value for note in caption.best_goals(human, 2)]
                assert values == sorted((note.value for note in notes), reverse=True)[:2]
            assert set(caption.pursued) == set(rollouts.goals)
            for human, note in caption.pursued.items():
                assert note.goal == rollouts.goals[human]
                assert note.attained == any(note.goal.is_achieved(before) for before in past)
                value = solution.Vhe.get(state, {}).get(human, {}).get(note.goal, 0.0)
                assert note.value == value or (caption.step == caption.n_steps and math.isnan(note.value))
    assert n_positive > 0 or rollouts.solution.dag.horizon == 1


def test_what_comes_next_is_shown_however_unlikely() -> None:
    robots = [(("a",), 0.5), (("b",), 0.3), (("c",), 0.2), (("d",), 0.0)]
    here: dict[str, Any] = {name: {} for name in ("did", "power", "attained", "goals", "pursued")}
    caption = Caption(None, 0, 1, p_actions=1, p_outcome=1, robots=robots, next_robots=("c",), **here)
    assert caption.shown_robots(2) == [robots[0], robots[2]]
    assert caption.shown_robots(3) == robots[:3]


def test_goals_are_labelled_by_their_cells() -> None:
    goals = solve(load_world("carousel", max_steps=1), **EXACT).goals[0]
    assert (label_of(goals[1]), label_of(goals[4])) == ("3,1", "1,1 to 3,1")
    assert label_of(At(2)) == "At(place=2)"


def test_numbers_are_written_in_few_characters() -> None:
    assert [overlay.number(x) for x in (0.0, 0.81249, 12.345, 3.4e-5, math.nan)] == [
        "0.000",
        "0.812",
        "12.3",
        "3.4e-05",
        "-",
    ]
    room = 18 * 14  # of the narrowest column
    assert overlay.font(14).getlength("just now: p = 3.4e-05 (chance 3.4e-05)") < room
    assert [overlay.share(p) for p in (0.0, 1e-5, 0.0006, 1.0)] == ["0.000", "~0", "0.001", "1.000"]
    assert [overlay._short(p) for p in (0.0, 1e-4, 0.25, 0.999, math.nan)] == ["0", "~0", ".25", "1.0", ""]


# --- frames -----------------------------------------------------------------------------------------------------------


def test_a_frame_for_each_state_all_of_one_size(rollouts: Rollouts) -> None:
    for i in range(2):
        found = list(frames(rollouts, i, tile=20))
        assert len(found) == rollouts.length_N[i] + 1
        assert {(picture.shape, picture.dtype.name) for picture in found} == {(found[0].shape, "uint8")}
        height, width, colours = found[0].shape
        assert (height % 2, width % 2, colours) == (0, 0, 3)
        assert all((one != other).any() for one, other in itertools.pairwise(found)), "the step, at least"


def test_without_overlay_frames_are_those_of_render() -> None:
    rollouts = freeing()
    world = rollouts.solution.world
    for state, picture in zip(rollouts.states(1), frames(rollouts, 1, tile=16, overlay=False), strict=True):
        assert np.array_equal(picture, world.render(state, tile=16))


def test_with_overlay_the_grid_is_that_of_render_but_for_numbers_and_goals() -> None:
    """Walls, which are no goals and where nobody stands, are untouched; so are all cells but one goal and three agents."""
    rollouts = freeing({1: 12})
    goal = rollouts.goals[1].target_pos
    tile = 24
    for state, picture in zip(rollouts.states(0), frames(rollouts, 0, tile=tile), strict=True):
        plain = rollouts.solution.world.render(state, tile=tile)
        height, width, _ = plain.shape
        painter = overlay.Overlay(rollouts.solution, (height, width), tile, rollouts.goals, most_power=1.0)
        left, top = painter.grid_xy
        grid = picture[top : top + height, left : left + width]
        changed = {(x, y) for y, x in np.argwhere((grid != plain).any(axis=2)) // tile}
        assert changed == {goal, *((x, y) for x, y, *_ in state[1])}


def test_bars_in_cells_are_as_long_as_values() -> None:
    """Each pixel row of a bar is counted by its colour."""
    solution, tile = solve(load_world("crowd_in_the_corridor", max_steps=4), PARAMS, **EXACT), 48
    rollouts = solution.rollouts(8)
    blank = np.full((5 * tile, 6 * tile, 3), 255, dtype=np.uint8)
    painter = overlay.Overlay(solution, blank.shape[:2], tile, {}, most_power=1.0)
    n_bars = 0
    for caption in (caption for i in range(8) for caption in captions_of(rollouts, i)[:-1]):
        marked = painter.marked(blank, caption)
        occupied = {(x, y) for x, y, *_ in caption.state[1]}
        for h, human in enumerate(solution.humans):
            for note in caption.goals[human]:
                assert note.cells is not None
                x, y = note.cells[:2]
                cell = marked[y * tile : (y + 1) * tile, x * tile : (x + 1) * tile]
                length = (cell == overlay.HUMANS[h]).all(axis=2)[tile // 2 :].sum(axis=1).max()
                full = tile - 2 * (tile // 16)
                if note.value >= 0.005 and (x, y) not in occupied:
                    assert length == max(1, round(full * note.value))
                    n_bars += 1
                elif (x, y) not in occupied:
                    assert length == 0
    assert n_bars > 3


def test_the_panel_says_what_the_solution_says(rollouts: Rollouts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are caught on their way to the picture, and expected from arrays of levels."""
    told: list[str] = []
    painted = overlay.Overlay._text

    def catch(self: Any, draw: Any, x: float, y: int, text: str, *rest: Any, **more: Any) -> None:
        told.append(text)
        painted(self, draw, x, y, text, *rest, **more)

    monkeypatch.setattr(overlay.Overlay, "_text", catch)
    solution = rollouts.solution
    n_frames = 0
    for (_, t, place, _, caption), _ in zip(steps_of(rollouts, 1), frames(rollouts, 1), strict=True):
        # Each frame is painted when it is asked for, so what was caught is of this one.
        n_frames += 1
        texts, told[:] = list(told), []
        actions = [names_of(solution, [a])[0] for a in rollouts.action_NTI[1, caption.step - 1]] if caption.step else []
        assert [text for text in texts if text in actions][: len(actions)] == actions
        assert any(text.startswith(f"just now: p = {overlay.number(caption.probability)}") for text in texts) == bool(
            actions
        )
        if caption.step == caption.n_steps:
            assert texts.count("power -") == len(solution.humans)
            continue
        for h in range(len(solution.humans)):
            assert f"power {overlay.number(solution.values.X_h[t][place, h])}" in texts
        if solution.robots:
            shares = [text for text in texts if text[0] in "01~" and text not in actions]
            likeliest = np.sort(solution.pi_r[t][place])[::-1][:4]
            assert shares[:3] == [overlay.share(p) for p in likeliest[:3]]
        for human in rollouts.goals:
            value = solution.Vhe.get(caption.state, {}).get(human, {}).get(rollouts.goals[human], 0.0)
            ending = "attained" if caption.pursued[human].attained else f"value {overlay.number(value)}"
            assert any(text.startswith("wants ") and text.endswith(ending) for text in texts)
    assert n_frames == rollouts.length_N[1] + 1


@pytest.mark.parametrize("name", ["first_steps", "locked_in", "crowd_in_the_corridor", "the_many_or_the_few", "assembly"])
@pytest.mark.parametrize("tile", [12, 48])
def test_nothing_is_painted_outside_of_its_column(name: str, tile: int) -> None:
    """The margins around the picture and all columns of numbers stay white."""
    rollouts = solve(load_world(name, max_steps=1), PARAMS, **EXACT).rollouts(1)
    shape = rollouts.solution.world.render(tile=tile).shape
    painter = overlay.Overlay(rollouts.solution, shape[:2], tile, {}, most_power=1.0)
    outside = np.ones((painter.height, painter.width), dtype=bool)
    left, top = painter.grid_xy
    outside[top : top + shape[0], left : left + shape[1]] = False
    for block, x, y in painter._placed:
        assert x >= 0
        assert x + painter._column <= painter.width
        assert y + block.height <= painter.height
        assert outside[y : y + block.height, x : x + painter._column].all(), "blocks do not overlap"
        outside[y : y + block.height, x : x + painter._column] = False
    # Round ends of sparklines and the bottoms of letters may stand out by a pixel or two.
    margin = outside.copy()
    for shift in range(-4, 5):
        for axis in (0, 1):
            margin &= np.roll(outside, shift, axis=axis)
    for picture in frames(rollouts, 0, tile=tile):
        assert (picture[margin] == 255).all()


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_gif_has_all_frames_their_times_and_nearly_their_colours(tmp_path: Path) -> None:
    rollouts = freeing({1: 12})
    path = save_film(rollouts, tmp_path / "run.gif", episodes=[0, 2], tile=24, seconds_per_step=0.25)
    expected = [picture for painted in film._Film(rollouts, [0, 2], 24, True).shots(None)[:1] for picture in painted]
    with Image.open(path) as gif:
        assert gif.info["loop"] == 0
        assert gif.n_frames == 12  # type: ignore[attr-defined]
        for k, picture in enumerate(expected):
            gif.seek(k)
            assert gif.info["duration"] == (750 if k % 6 == 5 else 250)
            difference = np.abs(np.asarray(gif.convert("RGB")).astype(int) - picture)
            assert difference.mean() < 0.3
            assert difference.max() < 64


def test_a_gif_of_few_colours_is_exact(tmp_path: Path) -> None:
    rollouts = solve(Painted(4), PARAMS, **EXACT).rollouts(3, 1)
    path = rollouts.save(tmp_path / "run.gif", 1, overlay=False)
    states = rollouts.states(1)
    shown = [rollouts.solution.world.picture(state) for state in states]
    with Image.open(path) as gif:
        total, seen = 0, []
        for k in range(gif.n_frames):  # type: ignore[attr-defined]
            gif.seek(k)
            total += gif.info["duration"]
            seen.append(np.asarray(gif.convert("RGB")))
    assert total == 600 * (len(states) + 2), "frames that are the same may be one that is shown for longer"
    # Without repetitions, both tell the same story.
    story = [p for k, p in enumerate(shown) if k == 0 or (p != shown[k - 1]).any()]
    read = [p for k, p in enumerate(seen) if k == 0 or (p != seen[k - 1]).any()]
    assert len(story) == len(read)
    assert all(np.array_equal(one, other) for one, other in zip(story, read, strict=True))


def test_a_video_has_all_frames_and_the_format_that_browsers_play(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    rollouts = freeing()
    path = save_film(rollouts, tmp_path / "run.mp4", tile=24, seconds_per_step=0.2)
    expected = list(frames(rollouts, 0, tile=24))
    with av.open(str(path)) as video:
        stream = video.streams.video[0]
        assert (stream.codec_context.name, stream.codec_context.pix_fmt, float(stream.average_rate)) == (
            "h264",
            "yuv420p",
            20.0,
        )
        read = [frame.to_ndarray(format="rgb24") for frame in video.decode(stream)]
    assert len(read) == 4 * (len(expected) + 2)
    for k, picture in enumerate(expected):
        assert read[4 * k].shape == picture.shape
        assert np.abs(read[4 * k].astype(int) - picture).mean() < 4


def test_a_video_of_odd_size_is_made_even(tmp_path: Path) -> None:
    av = pytest.importorskip("av")
    path = save_film(freeing(n=1), tmp_path / "run.mp4", tile=17, overlay=False, seconds_per_step=0.05)
    with av.open(str(path)) as video:
        stream = video.streams.video[0]
        assert (stream.codec_context.width, stream.codec_context.height) == (188, 102)  # 11 * 17 is 187
        assert len(list(video.decode(stream))) == 5 + 3


def test_a_png_has_all_steps(tmp_path: Path) -> None:
    rollouts = freeing()
    world = rollouts.solution.world
    path = save_film(rollouts, tmp_path / "steps.png", overlay=False, tile=24, columns=3, episodes=[0, 1])
    sheet = np.asarray(Image.open(path).convert("RGB"))
    pad, line = round(0.8 * overlay.MIN_TEXT), round(1.4 * overlay.MIN_TEXT)
    height, width = 6 * 24 + line + pad, 11 * 24 + pad
    assert sheet.shape == (4 * height + pad, 3 * width + pad, 3)
    for e in range(2):
        for k, state in enumerate(rollouts.states(e)):
            y, x = pad + (2 * e + k // 3) * height, pad + k % 3 * width
            assert np.array_equal(sheet[y : y + 144, x : x + 264], world.render(state, tile=24))
    with_numbers = np.asarray(Image.open(save_film(rollouts, tmp_path / "numbers.png", tile=24, columns=3)))
    assert with_numbers.shape == (2 * (height + 2 * line) + pad, 3 * width + pad, 3)


class Crowd(TwoSteps):
    """Three humans and a robot with long names of actions, in a small picture."""

    agents = ("human", "human", "human", "robot")
    action_space = SimpleNamespace(n=2)
    action_names = ("wait_for_others", "open_every_door")
    human_agent_indices = (0, 1, 2)
    robot_agent_indices = (3,)

    def transition_probabilities(self, state: Any, actions: Any) -> Any:
        t, k = state
        return None if t == self.steps else [(1.0, (t + 1, 1 if sum(actions) > 2 else k))]

    def picture(self, state: Any) -> Any:
        picture = np.full((60, 90, 3), 40, dtype=np.uint8)
        picture[10:50, 20 + 40 * state[1] : 30 + 40 * state[1]] = 220
        return picture


def test_small_pictures_of_worlds_in_python_are_enlarged_beside_text(tmp_path: Path) -> None:
    rollouts = solve(Crowd(), PARAMS, **EXACT).rollouts(2, 1)
    states = rollouts.states(0)
    small = [rollouts.solution.world.picture(state) for state in states]
    for tile, times in ((48, 4), (8, 1)):  # 8 * 48 is 384, and 4 * 90 is 360
        x, y = film._Film(rollouts, [0], tile, True).overlay.grid_xy  # type: ignore[union-attr]
        for frame, picture in zip(frames(rollouts, 0, tile=tile), small, strict=True):
            drawn = frame[y : y + 60 * times, x : x + 90 * times]
            assert np.array_equal(drawn, np.kron(picture, np.ones((times, times, 1), dtype=np.uint8)))
    sheet = np.asarray(Image.open(save_film(rollouts, tmp_path / "steps.png")).convert("RGB"))
    pad = round(0.8 * overlay.MIN_TEXT)
    assert np.array_equal(sheet[pad : pad + 120, pad : pad + 180], small[0].repeat(2, axis=0).repeat(2, axis=1))
    without = list(frames(rollouts, 0, overlay=False))
    assert all(np.array_equal(one, other) for one, other in zip(without, small, strict=True)), "as the world paints them"


def test_below_the_pictures_of_all_steps_it_is_told_in_full_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts = solve(Crowd(), PARAMS, **EXACT).rollouts(2, 1)
    seen: list[tuple[float, float, str, float]] = []
    from PIL import ImageDraw

    write = ImageDraw.ImageDraw.text

    def noted(self: Any, xy: Any, text: str, fill: Any, font: Any, **options: Any) -> None:
        seen.append((*xy, text, font.getlength(text)))
        write(self, xy, text, fill, font, **options)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", noted)
    monkeypatch.setattr(overlay.Overlay, "marked", lambda self, picture, caption: picture)  # only what is written below
    sheet = np.asarray(Image.open(save_film(rollouts, tmp_path / "steps.png", columns=1)))
    room = 15 * overlay.MIN_TEXT
    assert all(length <= room for *_, length in seen)
    assert all(y + overlay.MIN_TEXT / 2 < sheet.shape[0] for _, y, *_ in seen)
    written = " ".join(text for _, _, text, _ in sorted(seen, key=lambda entry: entry[1]))
    for caption in captions_of(rollouts, 0)[1:]:
        assert ", ".join(f"{agent} {action}" for agent, action in caption.did.items()) in written
        assert ", ".join(map(overlay.number, caption.power.values())) in written
    assert "..." not in written
    assert film._wrapped(["0 " + 80 * "x" + ", 1 y"], room, 13)[0].endswith("x...")


def test_episodes_side_by_side_wait_for_each_other(tmp_path: Path) -> None:
    rollouts = solve(Painted(4), PARAMS, **EXACT).rollouts(5, 1)
    lengths = rollouts.length_N.tolist()
    assert len(set(lengths)) > 1
    shots, shown = film._Film(rollouts, [0, 1, 2, 3, 4], 48, False).shots(2)
    assert len(shots) == max(lengths) + 1
    assert shown == [1] * max(lengths) + [film.LAST]
    for k, shot in enumerate(shots):
        assert shot.shape == (90, 80, 3)
        for i in range(5):
            state = rollouts.states(i)[min(k, lengths[i])]
            y, x = 30 * (i // 2), 40 * (i % 2)
            assert np.array_equal(shot[y : y + 30, x : x + 40], rollouts.solution.world.picture(state))
        assert (shot[60:, 40:] == 255).all(), "nothing is where a sixth episode would be"


def test_the_same_episodes_give_the_same_file(tmp_path: Path) -> None:
    one, other = (freeing().save(tmp_path / f"{n}.gif", tile=16).read_bytes() for n in range(2))
    assert one == other


# --- mistakes ---------------------------------------------------------------------------------------------------------


def test_a_file_that_is_there_stays_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "run.gif"
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"overwrite=True"):
        freeing(n=1).save(path)
    assert path.read_text() == "mine"
    assert freeing(n=1).save(path, overwrite=True, tile=16).read_bytes()[:3] == b"GIF"


def test_wrong_arguments_say_what_would_be_right(tmp_path: Path) -> None:
    rollouts = freeing(n=2)
    for options, error, message in [
        ({"path": "run.avi"}, ValueError, r"\.gif, \.mp4, \.png"),
        ({"tile": -3}, ValueError, "in pixels, 1 or more"),
        ({"seconds_per_step": 0.0}, ValueError, "positive"),
        ({"seconds_per_step": math.nan}, ValueError, "positive"),
        ({"columns": 0}, ValueError, "a number of columns, 1 or more"),
        ({"episodes": []}, ValueError, "list of numbers"),
        ({"episodes": 3}, ValueError, "list of numbers"),
        ({"episodes": [0, 2]}, IndexError, "episode 2: episodes are numbered 0 to 1"),
        ({"path": "nowhere/run.gif"}, FileNotFoundError, r"the folder .*nowhere does not exist"),
    ]:
        given: dict[str, Any] = {"path": "run.gif"} | options
        with pytest.raises(error, match=message):
            save_film(rollouts, tmp_path / given.pop("path"), **given)
    with pytest.raises(IndexError, match="episode 7"):
        captions_of(rollouts, 7)
    assert list(tmp_path.iterdir()) == []


def test_worlds_without_pictures_are_told_how_to_have_them(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"method picture\(state\)"):
        solve(Ring(3), **EXACT).rollouts(1).save(tmp_path / "run.gif")

    class Grey(Ring):
        def picture(self, state: Any) -> Any:
            return np.zeros((20, 20))

    with pytest.raises(TypeError, match=r"gave float64 of shape \(20, 20\)"):
        solve(Grey(3), **EXACT).rollouts(1).save(tmp_path / "run.gif")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("library", "name", "extra"), [("PIL", "run.gif", "analysis"), ("av", "run.mp4", "movies")])
def test_what_is_not_installed_is_named_with_its_extra(
    library: str, name: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import importlib

    honest = importlib.import_module

    def without(module: str, package: str | None = None) -> Any:
        if module.split(".")[0] == library:
            raise ImportError(f"No module named {module!r}")
        return honest(module, package)

    rollouts = freeing(n=1)
    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(ImportError, match=rf"{library}.* pip install 'empo-bi\[{extra}\]'"):
        rollouts.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["run.gif", "run.mp4", "run.png"])
def test_a_film_that_fails_leaves_nothing_behind(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rollouts = freeing(n=1)
    (tmp_path / name).write_text("mine")

    def stop(path: Path, *_: Any) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(film, f"_write_{name[-3:]}", stop)
    with pytest.raises(KeyboardInterrupt):
        rollouts.save(tmp_path / name, overwrite=True, tile=16)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_film_needs_both_phases() -> None:
    solution = solve(load_world("first_steps", max_steps=2), phase_2=False, **EXACT)
    with pytest.raises(ValueError, match="phase 2 was not solved"):
        solution.rollouts(1)
