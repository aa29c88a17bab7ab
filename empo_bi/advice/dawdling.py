"""Parameters under which humans dawdle, found by solving phase 1 of the world, and ones under which they do not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from empo_bi.advice.hints import Case, Hint
from empo_bi.problem.params import Params
from empo_bi.problem.protocols import GoalGenerator
from empo_bi.results.first_moves import HURRY, dawdling, eagerness, urgency
from empo_bi.results.solution import Solution
from empo_bi.runtime.wording import counted
from empo_bi.solving.solve import SolveOptions, pipeline_for
from empo_bi.world.model import World

MOST_STATES = 300_000  # whose values are computed, about a second
_RATIO = 2.0  # of the best action's probability to that of the worst; a human who wants something exceeds it
_BETTER = ({"gamma_h": 0.95, "beta_h": 50.0}, {"gamma_h": 0.9, "beta_h": 50.0}, {"gamma_h": 0.9, "beta_h": 100.0})


def about_pace(case: Case, params: Params, generator: GoalGenerator | None) -> tuple[list[Hint], str]:
    """Whether humans dawdle at the start, and what was looked at."""
    if params.beta_h == 0:
        return [], "beta_h=0: humans act at random, as you wish"
    horizon = case.horizon
    if horizon is None or not case.reach.covers(horizon) or case.reach.states_within(horizon) > MOST_STATES:
        return _by_rule(case, params), "too many states to solve phase 1 for advice; the rule of thumb was applied"
    (now,) = _solved(case, [params], generator)
    slow = dawdling(eagerness(now), _RATIO)
    examined = "phase 1 was solved with these parameters"
    if not slow:
        return [], examined
    better = [params.replace(**changes) for changes in _BETTER]
    for changes, solution in zip(_BETTER, _solved(case, better, generator), strict=True):
        if not dawdling(eagerness(solution), _RATIO):
            values = " and ".join(f"{name}={value:g}" for name, value in changes.items())
            return [Hint("parameters", _in_words(case, params, now, slow), f"With {values} they do not")], examined
    return [], examined  # what they do at first does not matter, with whatever parameters


def _solved(case: Case, sets: Sequence[Params], generator: GoalGenerator | None) -> list[Solution]:
    """Phase 1 alone, in memory, without the warnings of ``solve``."""
    world: World = case.model.world
    options: SolveOptions = {
        "human_agent_indices": list(case.humans), "possible_goal_generator": generator, "phase_2": False, "progress": False,
    }  # fmt: skip
    return pipeline_for(world, sets, options).solutions()


def _in_words(case: Case, params: Params, solution: Solution, slow: Sequence[int]) -> str:
    ratio_HG = eagerness(solution)[slow]
    n_pursued, n_slow = int((~np.isnan(ratio_HG)).sum()), int((np.nan_to_num(ratio_HG, nan=np.inf) < _RATIO).sum())
    who = "human" + ("s " if len(slow) > 1 else " ") + ", ".join(str(case.humans[h]) for h in slow)
    return (
        f"at the start, {who} hardly care{'' if len(slow) > 1 else 's'} which action to take, for {n_slow} of "
        f"{counted(n_pursued, 'goal')} within reach: {_reason(params)}"
    )


def _reason(params: Params) -> str:
    if params.rate_h == 0:
        return f"with gamma_h=1 arriving late is as good as arriving early (beta_h={params.beta_h:g}), so humans dawdle"
    gamma = np.exp(-params.rate_h)
    return (
        f"with beta_h={params.beta_h:g} and gamma_h={gamma:.4g} a lost step makes so little difference that humans dawdle "
        f"(beta_h (1 - gamma_h) is {urgency(params):.2g}, and should be {HURRY:g} or more)"
    )


def _by_rule(case: Case, params: Params) -> list[Hint]:
    if urgency(params) >= HURRY / 2:
        return []
    return [Hint("parameters", _reason(params), "Try gamma_h=0.95 with beta_h=50")]
