"""Single pieces of advice, each from what is known of a problem: its agents, its goals, its horizon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from empo_bi.advice.reach import Reach
from empo_bi.dag.attainment import FixedGoals
from empo_bi.results.goal_names import label_of
from empo_bi.runtime.wording import counted
from empo_bi.solving.mistakes import missing_role
from empo_bi.world.as_model import Model
from empo_bi.world.codes import DIRECTION_NAMES, HUMAN_COLOUR, ROBOT_COLOUR
from empo_bi.world.map_world import MapWorld

_NAMED = 4  # goals in a sentence


@dataclass(frozen=True)
class Hint:
    """A probable mistake.

    Attributes
    ----------
    about : "file", "agents", "goals", "horizon" or "parameters"
    found : what it is
    remedy : what to do
    """

    about: str
    found: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.about}: {self.found}. {self.remedy}".removesuffix(". ")


@dataclass(frozen=True)
class Case:
    """A problem to give advice about: who is who, the goals of the humans, the horizon, and what can come about."""

    model: Model
    humans: Sequence[int]
    robots: Sequence[int]
    goals: FixedGoals | None
    horizon: int | None
    reach: Reach
    phase_2: bool = True

    def label(self, h: int, g: int) -> str:
        return label_of(None if self.goals is None else self.goals.compiled[h][g])


# --- agents -----------------------------------------------------------------------------------------------------------


def agents_in_words(model: Model, humans: Sequence[int], robots: Sequence[int]) -> list[str]:
    """``agent 0: human, yellow, at 1,1, facing east`` for each agent, as they are numbered."""
    lines = []
    for i in range(model.n_agents):
        role = "human" if i in humans else "robot" if i in robots else "neither human nor robot"
        lines.append(f"agent {i}: {role}" + ("" if model.grid is None else f", {_looks(model.grid, i)}"))
    return lines


def _looks(grid: MapWorld, i: int) -> str:
    one = grid.agents[i]
    facing = f", facing {DIRECTION_NAMES[one.direction]}" if grid.n_directions > 1 else ""
    return f"{one.colour}, at {one.x},{one.y}{facing}"


def about_roles(model: Model, humans: Sequence[int], robots: Sequence[int], phase_2: bool = True) -> list[Hint]:
    """A role that no agent has, while the colours of some say nothing; or colours that say the opposite of lists."""
    if model.grid is None:
        return [] if humans else [Hint("agents", "no agent is a human", "Give human_agent_indices (--humans)")]
    grid, hints = model.grid, []
    rest = [i for i in range(len(grid.agents)) if i not in humans and i not in robots]
    if not humans:
        hints.append(Hint("agents", *missing_role(grid, "human", rest)))
    if not robots and rest and phase_2:
        hints.append(Hint("agents", *missing_role(grid, "robot", rest)))
    for role, agents, others in (("human", humans, ROBOT_COLOUR), ("robot", robots, HUMAN_COLOUR)):
        wrong = [i for i in agents if grid.agents[i].colour == others]
        if wrong and grid.n_directions > 1:
            found = f"agent {wrong[0]} counts as a {role}, but is drawn in {others}, the colour of {_ROLE_OF[others]}s"
            hints.append(Hint("agents", found, "Agents are numbered in reading order of the map, from 0: see the list"))
    return hints


_ROLE_OF = {HUMAN_COLOUR: "human", ROBOT_COLOUR: "robot"}


def about_movement(case: Case) -> list[Hint]:
    """Agents who stay where they are, whatever anybody does."""
    moves, grid = case.reach.moves, case.model.grid
    if moves is None or grid is None or not case.reach.covers(case.horizon):
        return []
    hints, steps = [], _within(case)
    for role, agents in (("human", case.humans), ("robot", case.robots)):
        if role == "robot" and (grid.world_spec.can_pick_up or grid.world_spec.can_open_doors):
            continue  # it may have something else to do
        for i in agents:
            if not moves[i]:
                one = grid.agents[i]
                found = f"{role} {i} can never leave its cell {one.x},{one.y}{steps}, whatever anybody does"
                hints.append(Hint("agents", found, _why_stuck(grid, i)))
    return hints


def _why_stuck(grid: MapWorld, i: int) -> str:
    walk_PA = grid.walk(i)
    here, seen = grid.pose(grid.initial_state(), i), set[int]()
    left = [here]
    while left:
        pose = left.pop()
        seen.add(pose)
        left += [other for other in {*walk_PA[pose].tolist()} - seen if other not in left]
    if len({pose // grid.n_directions for pose in seen}) == 1:
        return "There are walls or the like on all sides: open one on the map"
    return "Something is in its way that neither it nor a robot can move: look at can_push_rocks, doors and action_class"


def _within(case: Case) -> str:
    return "" if case.reach.is_complete else f" within {case.horizon} steps"


# --- goals ------------------------------------------------------------------------------------------------------------


def about_goals(case: Case) -> list[Hint]:
    """Humans who attain no goal in time, or ever, beyond those that hold at the start."""
    if case.goals is None or not case.reach.covers(case.horizon):
        return []
    first_HG, is_known_HG, hints = case.reach.first_HG, case.reach.is_known_HG, list[Hint]()
    for h, human in enumerate(case.humans):
        n_goals = sum(goal is not None for goal in case.goals.compiled[h])
        later_G = first_HG[h][is_known_HG[h] & (first_HG[h] != 0)]
        if is_known_HG[h].sum() < n_goals or case.horizon is None or ((later_G > 0) & (later_G <= case.horizon)).any():
            continue
        if (later_G > 0).any():
            n = int(later_G[later_G > 0].min())
            found = f"the nearest goal of human {human} takes {counted(n, 'step')} at least; max_steps is {case.horizon}"
            hints.append(Hint("horizon", found, f"Set max_steps (--steps) to {2 * n} or so"))
        elif len(later_G) and not case.reach.is_complete:
            found = f"human {human} cannot attain any goal within {case.horizon} steps, whatever anybody does"
            hints.append(Hint("horizon", found, "Set max_steps (--steps) to more, or give nearer goals"))
        elif len(later_G):
            besides = "" if n_goals == len(later_G) else f" but {_some(_labels(case, h, first_HG[h] == 0))}, as at the start"
            found = f"human {human} can never attain any goal{besides}, whatever anybody does"
            hints.append(Hint("goals", found, "Give goals that are within reach ('possible_goals: all' for every cell)"))
    return hints


def notes_on_goals(case: Case) -> list[str]:
    """Goals that no human who has them attains ever, or in time, where others are attained: perhaps that is meant so."""
    if case.goals is None or case.horizon is None or not case.reach.covers(case.horizon):
        return []
    firsts = {name: [first for first in found if first >= 0] for name, found in _firsts(case).items()}
    never = [name for name, found in firsts.items() if not found]
    late = [f"{name} ({min(found)} steps)" for name, found in firsts.items() if found and min(found) > case.horizon]
    if len(never) + len(late) == len(firsts):
        return []  # which is more than a note
    when = "ever" if case.reach.is_complete else f"within {case.horizon} steps"
    notes = [f"goals that cannot be attained {when}, whatever anybody does: {_some(never)}"] if never else []
    return notes + ([f"goals that take more than the {case.horizon} steps there are: {_some(late)}"] if late else [])


def _firsts(case: Case) -> dict[str, list[int]]:
    """The earliest steps of each goal, of all humans who have it; 0 where they are unknown."""
    assert case.goals is not None
    found: dict[str, list[int]] = {}
    for h in range(len(case.humans)):
        for g, goal in enumerate(case.goals.compiled[h]):
            if goal is not None:
                first = int(case.reach.first_HG[h, g]) if case.reach.is_known_HG[h, g] else 0
                found.setdefault(case.label(h, g), []).append(first)
    return found


def _labels(case: Case, h: int, wanted_G: Sequence[bool]) -> list[str]:
    return [case.label(h, g) for g, is_wanted in enumerate(wanted_G) if is_wanted]


def _some(names: Sequence[str]) -> str:
    return "; ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
