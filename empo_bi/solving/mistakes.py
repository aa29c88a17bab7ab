"""Probable mistakes that a solution shows at its start for nothing: :func:`solve` warns of them. ``advise`` finds more."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from empo_bi.errors import AdviceWarning
from empo_bi.problem.goal_columns import bits_of
from empo_bi.results.first_moves import dawdling, eagerness, urgency
from empo_bi.results.solution import Solution
from empo_bi.runtime.wording import counted
from empo_bi.world.codes import COLOURS, HUMAN_COLOUR, ROBOT_COLOUR
from empo_bi.world.map_world import MapWorld

_MORE = "`empo-bi check`, or empo_bi.advise(world, params), says more"
_EQUAL = 1.1  # the best action's probability over that of the worst, where it does not matter what a human does
_LARGE = 2_000_000  # states without their steps; nobody waits for a look at more


def warn_of_mistakes(solutions: Sequence[Solution], *, robots_are_given: bool) -> None:
    """Of each at most once, however many sets of parameters were solved; what was there is only opened."""
    new = [solution for solution in solutions if not solution.was_there]
    for message in _mistakes(new, robots_are_given) if new else ():
        warnings.warn(f"{message}. {_MORE}", AdviceWarning, stacklevel=5)  # where solve was called


def _mistakes(solutions: Sequence[Solution], robots_are_given: bool) -> Iterator[str]:
    first = solutions[0]
    grid = first.model.grid
    if grid is not None and first.has_robot and not first.robots and not robots_are_given:
        rest = [i for i in range(len(grid.agents)) if i not in first.humans]
        if rest:
            found, remedy = missing_role(grid, "robot", rest)
            yield f"{found}, so there is nothing for phase 2 to decide. {remedy}"
    if nothing_in_reach(first):
        yield (
            f"no human can attain any goal within {counted(first.dag.horizon, 'step')}, but what holds at the start, "
            "whatever anybody does; so no action matters. Give more steps or nearer goals"
        )
    elif all(_all_dawdle(solution) for solution in solutions):
        yield (
            "at the start, humans hardly care which action to take, whatever their goal: arriving late is as good as "
            "arriving early, so they dawdle. Set gamma_h=0.95 and beta_h=50, for example"
        )


# --- roles ------------------------------------------------------------------------------------------------------------


def missing_role(grid: MapWorld, role: str, rest: Sequence[int]) -> tuple[str, str]:
    """That no agent has a role although some have none, and what to do."""
    who = ", ".join(f"agent {i} is {grid.agents[i].colour}" for i in rest)
    colour, code = {"human": HUMAN_COLOUR, "robot": ROBOT_COLOUR}[role], grid.role_codes[role]
    found = f"no agent is a {role}" + (f": {who}" if who else "")
    letters = {name: letter for letter, name in COLOURS.items()}
    if not rest:
        return found, f"Put '{code}' on the map"
    drawn = f"A{letters[grid.agents[rest[0]].colour]}"
    return (
        found,
        f"{role.capitalize()}s are {colour}: write '{code}' instead of '{drawn}', or '{role}s: {list(rest)}' in the file",
    )


# --- goals ------------------------------------------------------------------------------------------------------------


def nothing_in_reach(solution: Solution) -> bool:
    """Whether no state attains any goal that does not hold at the start: exactly, where goals are compiled."""
    goals, dag = solution.goal_columns, solution.dag
    if not goals.is_known_by_body or not dag.horizon or dag.n_bodies > _LARGE:
        return False
    if not solution.has_own_prior and solution.rows("vh", 0).any():
        return False
    left_X = goals.has(0)[0].astype(np.bool_) & ~bits_of(goals.attained(0), goals.n_columns)[0]
    if not left_X.any() or (solution.has_robot and solution.rows("ve", 0)[0].ravel()[left_X].any()):
        return False
    return not any((bits_of(goals.attained(t), goals.n_columns)[:, left_X]).any() for t in range(1, dag.horizon + 1))


# --- pace -------------------------------------------------------------------------------------------------------------


def _all_dawdle(solution: Solution) -> bool:
    """Whether all humans who pursue anything hardly care what they do; not where they were meant to act at random."""
    params = solution.human_params
    is_asked = solution.has_own_prior or params.believed_others_policy is not None or solution.model.packed is None
    if is_asked or params.beta_h == 0 or urgency(params) > 0.5 or not solution.dag.horizon:
        return False
    found_HG = eagerness(solution)
    n_pursuing = int((~np.isnan(found_HG)).any(axis=1).sum())
    return 0 < n_pursuing == len(dawdling(found_HG, _EQUAL, share=0.999))
