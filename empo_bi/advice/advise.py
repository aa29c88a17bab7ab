"""Looking at a problem before it is solved: :func:`advise`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from empo_bi.advice.dawdling import about_pace
from empo_bi.advice.hints import Case, Hint, about_goals, about_movement, about_roles, agents_in_words, notes_on_goals
from empo_bi.advice.reach import Reach, reach_of
from empo_bi.dag.attainment import fixed_goals
from empo_bi.errors import WorldWarning
from empo_bi.problem.params import BELONGS_ELSEWHERE, Params
from empo_bi.problem.protocols import GoalGenerator
from empo_bi.runtime.arguments import check_flags, check_kind, suggests_names
from empo_bi.runtime.wording import counted
from empo_bi.solving.argument_checks import checked_agents, checked_generator
from empo_bi.world.as_model import Model, as_model
from empo_bi.world.load import load_world
from empo_bi.world.model import World
from empo_bi.world.translation import translated


@dataclass(frozen=True)
class Advice:
    """What :func:`advise` found; ``print`` shows it.

    Attributes
    ----------
    title : how messages call the world
    agents : a line for each agent: its number, its role, and for worlds on a map its colour, cell and direction
    examined : what was looked at
    hints : probable mistakes, each with ``about``, ``found`` and ``remedy``; empty if all is well
    notes : what may well be meant so, such as single goals that cannot be attained
    """

    title: str
    agents: list[str]
    examined: list[str]
    hints: list[Hint]
    notes: list[str]

    @property
    def is_fine(self) -> bool:
        return not self.hints

    def __str__(self) -> str:
        count = "no probable mistakes" if self.is_fine else f"{counted(len(self.hints), 'probable mistake')}"
        lines = [self.title, *(f"  {line}" for line in self.agents), *(f"  looked at: {line}" for line in self.examined)]
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join([*lines, f"{count}{'' if self.is_fine else ':'}", *(f"  {hint}" for hint in self.hints)])


@suggests_names(elsewhere=BELONGS_ELSEWHERE)
def advise(
    world: World | str,
    params: Params | None = None,
    *,
    human_agent_indices: Sequence[int] | None = None,
    robot_agent_indices: Sequence[int] | None = None,
    possible_goal_generator: GoalGenerator | None = None,
    phase_2: bool = True,
) -> Advice:
    """Look for probable mistakes in a world and in the parameters that it is to be solved with.

    Agents in colours that are neither human nor robot, agents who can never move, goals that are out of reach, a horizon
    that is too short for any goal, parameters under which humans dawdle. What can come about is enumerated by the world's
    own rules, until nothing new does or it takes some seconds; ``examined`` says how far that went. Nothing is written.

    Parameters
    ----------
    world : a world, or what :func:`load_world` takes; then mistakes in the file are listed, too
    params, human_agent_indices, robot_agent_indices, possible_goal_generator, phase_2 : as for :func:`solve`

    Examples
    --------
    >>> for hint in advise("basics/first_steps").hints:
    ...     print(hint.about, "|", hint.remedy)
    parameters | With gamma_h=0.95 and beta_h=50 they do not
    """
    check_kind("params", params, Params)
    check_flags(phase_2=phase_2)
    found, hints = _loaded(world)
    model = as_model(translated(found, progress=False))
    humans = list(model.human_agent_indices if human_agent_indices is None else human_agent_indices)
    robots = list(model.robot_agent_indices if robot_agent_indices is None else robot_agent_indices)
    if humans:
        humans, robots = checked_agents(model, humans, robots)
    explicit = robot_agent_indices is not None
    hints += about_roles(model, humans, robots, phase_2 and not explicit)
    case = _case(model, humans, robots, possible_goal_generator, phase_2)
    hints += [*about_movement(case), *about_goals(case)]
    examined = [_how_far(case.reach)]
    generator = model.goal_generator if possible_goal_generator is None else possible_goal_generator
    if humans and generator is None:
        hints.append(Hint("goals", "there are no goals", "Give possible_goals ('possible_goals: all' for every cell)"))
    elif humans and not any(hint.about == "horizon" for hint in hints):
        pace, how = about_pace(case, params or Params(), checked_generator(model, possible_goal_generator))
        hints += pace
        examined.append(how)
    return Advice(model.title, agents_in_words(model, humans, robots), examined, hints, notes_on_goals(case))


def _loaded(world: World | str) -> tuple[World, list[Hint]]:
    """A world, and what is probably wrong in its file."""
    if not isinstance(world, str | os.PathLike | Mapping):
        return world, []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WorldWarning)
        found = load_world(world)
    return found, file_hints(caught)


def file_hints(caught: Sequence[warnings.WarningMessage]) -> list[Hint]:
    """What ``load_world`` warned of."""
    return [Hint("file", str(one.message), "") for one in caught if issubclass(one.category, WorldWarning)]


def _case(
    model: Model, humans: Sequence[int], robots: Sequence[int], generator: GoalGenerator | None, phase_2: bool
) -> Case:
    given = model.goal_generator if generator is None else generator
    goals = None if given is None or not humans else fixed_goals(given, list(humans), model)
    reach = reach_of(model, goals)
    horizon = model.max_steps
    if horizon is None and reach.is_complete:
        horizon = reach.n_steps  # the world ends by itself
    return Case(model, humans, robots, goals, horizon, reach, phase_2)


def _how_far(reach: Reach) -> str:
    states = f"{counted(reach.n_states, 'state')}, without regard to their step,"
    if reach.is_complete:
        return f"all {states} that can ever come about; the last ones take {counted(reach.n_steps, 'step')}"
    return f"the {states} that can come about in the first {counted(reach.n_steps, 'step')}"
