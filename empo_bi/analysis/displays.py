"""What notebooks show for worlds, states, DAGs, solutions and episodes, in place of one line of text.

The core's classes reach these functions by hooks (``empo_bi/__init__.py``). They read no more than the first level.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

from empo_bi.analysis import html_parts as parts
from empo_bi.analysis.quantities import robot_profile_names
from empo_bi.dag.dag import Dag
from empo_bi.results.rollouts import Rollouts
from empo_bi.results.solution import Solution
from empo_bi.results.state_report import StateReport, what_V_h_is
from empo_bi.types import Json
from empo_bi.world.as_model import as_model
from empo_bi.world.goals import name_of
from empo_bi.world.map_world import MapWorld
from empo_bi.world.png import png_bytes
from empo_bi.world.row_codec import MapState

MOST_ROWS = 12  # of a table in a display
MOST_FRAMES = 60  # of a film in a display
FILM_TILE = 32  # pixels


@dataclass(frozen=True)
class StateView:
    """A state of a world on a map, to be shown in a notebook; ``str()`` of it is the state in words."""

    world: MapWorld
    state: MapState

    def __str__(self) -> str:
        return self.world.describe(self.state)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        words = "".join(f"<div>{parts.escaped(line)}</div>" for line in str(self).splitlines())
        return parts.side_by_side(parts.picture(as_model(self.world), self.state), words)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Json:
        png = png_bytes(self.world.picture(self.state, parts.tile_of(self.world)))
        return {"text/plain": str(self), "text/html": self._repr_html_(), "image/png": png}


def state_view(world: MapWorld, state: MapState) -> StateView:
    return StateView(world, state)


def world_html(world: MapWorld) -> str:
    """The current state, and who is who."""
    rows = [
        [agent, _role(world, agent), about.colour, f"({about.x}, {about.y})"] for agent, about in enumerate(world.agents)
    ]
    shown = rows[:MOST_ROWS] + ([["...", "", "", ""]] if len(rows) > MOST_ROWS else [])
    caption = f"{world.kind} {world.world_spec.name}: {len(world.world_spec.goals)} goals, {world.max_steps} steps"
    agents = parts.table(["agent", "role", "colour", "begins at"], shown, caption)
    return parts.side_by_side(parts.picture(as_model(world), world.get_state()), agents)


def _role(world: MapWorld, agent: int) -> str:
    return "human" if agent in world.human_agent_indices else "robot" if agent in world.robot_agent_indices else "neither"


def world_bundle(world: MapWorld) -> Json:
    """The same, and a picture for whatever cannot show HTML."""
    png = png_bytes(world.picture(world.get_state(), parts.tile_of(world)))
    return {"text/plain": repr(world), "text/html": world_html(world), "image/png": png}


def dag_html(dag: Dag) -> str:
    """Sizes, and how many states each level has."""
    rows: list[list[object]] = [
        ["states", f"{dag.n_states:,}"], ["bodies", f"{dag.n_bodies:,}"], ["transitions", f"{dag.n_transitions:,}"],
        ["levels", f"0 to {dag.horizon}"], ["largest level", f"{max(dag.level_sizes):,} states"],
        ["where", dag.levels.describe()],
    ]  # fmt: skip
    if not dag.is_finished:
        rows.append(["", "unfinished: more levels follow"])
    chart = parts.bars(dag.level_sizes, f"states by level: {dag.level_sizes}")
    return parts.side_by_side(parts.table(["DAG", ""], rows), f"{chart}{parts.paragraph('states by level')}")


def solution_html(solution: Solution) -> str:
    """The initial state with its numbers: parameters, V_r, what the robots do, and what humans can attain."""
    start = solution.dag.states(0)[0]
    report = solution.at(start)
    rows: list[list[object]] = [["states", f"{solution.dag.n_states:,} on levels 0 to {solution.dag.horizon}"]]
    if not math.isnan(report.V_r):
        rows.append(["V_r at the start", f"{report.V_r:.6g}"])
    rows.append(["parameters", _params(solution)])
    rows.append(["where", solution.results.describe()])
    return parts.side_by_side(
        parts.picture(solution.model, start),
        parts.table(["solution", ""], rows),
        _decision_table(solution, report),
        _goal_table(report),
    )


def _params(solution: Solution) -> str:
    from empo_bi.sweep.formulas import discount_factor

    found = {name: value for name, value in solution.params.describe().items() if name != "believed_others"}
    for who in ("h", "r"):
        found[f"gamma_{who}"] = discount_factor(float(found.pop(f"rho_{who}")))
    return ", ".join(f"{name} {parts.number(value)}" for name, value in found.items())


def _decision_table(solution: Solution, report: StateReport) -> str:
    """The likeliest profiles of the robots."""
    if not report.robot_policy or not solution.robots:
        return ""
    names = dict(zip(solution.robot_profiles, robot_profile_names(solution), strict=True))
    ranked = sorted(report.robot_policy.items(), key=lambda item: -item[1])[:MOST_ROWS]
    rows = [[names[profile], f"{p:.1%}", f"{report.Q_r[profile]:.6g}"] for profile, p in ranked]
    return parts.table(["the robots", "probability", "Q_r"], rows)


def _goal_table(report: StateReport) -> str:
    """For each human: its power, and the value of each goal in both phases."""
    rows: list[list[object]] = []
    for human, known in report.goals.items():
        power = f", power {report.power[human]:.4g}" if human in report.power else ""
        rows.append([f"human {human}{power}", "", ""])
        rows += [["– " + name_of(goal), _value(before), _value(after)] for goal, _, before, after, _ in known[:MOST_ROWS]]
        if len(known) > MOST_ROWS:
            rows.append([f"– and {len(known) - MOST_ROWS:,} more", "", ""])
    how = f"V_h, if the robot {what_V_h_is(report.optimistic)}"
    return parts.table(["goal", how, "V_h^e, with the robot"], rows) if rows else ""


def _value(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4f}"


def report_html(report: StateReport) -> str:
    """All numbers of a state."""
    ends = ", terminal" if report.is_terminal else ""
    rows: list[list[object]] = [["level", f"{report.level}{ends}"]]
    rows += [[name, f"{value:.6g}"] for name, value in (("V_r", report.V_r), ("U_r", report.U_r)) if not math.isnan(value)]
    ranked = sorted(report.robot_policy.items(), key=lambda item: -item[1])[:MOST_ROWS]
    policy = [[str(profile), f"{p:.1%}", f"{report.Q_r[profile]:.6g}"] for profile, p in ranked]
    return parts.side_by_side(
        parts.table(["state", ""], rows),
        parts.table(["the robots' actions", "probability", "Q_r"], policy) if policy else "",
        _goal_table(report),
    )


def rollouts_html(rollouts: Rollouts) -> str | None:
    """The first episode as a film, if the world has pictures and the extra ``analysis`` is installed; else nothing."""
    film = film_of(rollouts)
    if film is None:
        return None
    n = len(rollouts)
    mean = float(rollouts.return_N.mean())
    said = f"episode 0 of {n:,}; the robot's mean return {mean:.4g}; rollouts.save('film.gif', episode=1) writes another one"
    return parts.image(film, "image/gif", f"a film of episode 0 of {n:,}") + parts.paragraph(said)


def film_of(rollouts: Rollouts) -> bytes | None:
    """The first episode as GIF; None where there is nothing to draw, or nothing to draw with, or too much."""
    from empo_bi.analysis.film import save_film

    is_drawn = rollouts.solution.model.picture is not None and len(rollouts) and int(rollouts.length_N[0]) <= MOST_FRAMES
    if not is_drawn:
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            return save_film(rollouts, Path(folder) / "film.gif", tile=FILM_TILE).read_bytes()
        except ImportError:
            return None
