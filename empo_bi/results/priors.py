"""Priors that users may give: ours, which stands for phase 1 and its parameters, other objects, and functions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from empo_bi.dag.world_fingerprint import world_key
from empo_bi.problem.params import Params
from empo_bi.problem.protocols import Goal, GoalGenerator, JointPrior
from empo_bi.results.policies import HumanPolicyPrior, TabularHumanPolicyPrior
from empo_bi.results.views import PolicyView
from empo_bi.runtime.wording import short_repr
from empo_bi.types import FloatArray
from empo_bi.world.as_model import as_model
from empo_bi.world.model import World
from empo_bi.world.multigrid import is_multigrid
from empo_bi.world.translation import translated


class CallablePrior(HumanPolicyPrior):
    """A function ``f(state, agent_index, goal)`` as a prior; goal None stands for all goals."""

    def __init__(self, function: Callable[..., npt.ArrayLike], world_model: Any, human_agent_indices: Sequence[int]) -> None:
        super().__init__(world_model, human_agent_indices)
        self.function = function

    def __call__(self, state: Hashable, human_agent_index: int, possible_goal: Goal | None = None) -> FloatArray:
        def call() -> str:
            return f"human_policy_prior({short_repr(state)}, {human_agent_index}, {possible_goal!r})"

        try:
            found = np.asarray(self.function(state, human_agent_index, possible_goal), dtype=np.float64)
        except Exception as error:
            error.add_note(f"(raised by {call()}, which should return an array with a probability for each action)")
            raise
        n_actions = as_model(self.world_model).n_actions
        if found.shape != (n_actions,) or not (found >= 0).all():
            raise ValueError(f"{call()} gave {short_repr(found)}; expected {n_actions} probabilities, one for each action")
        return found


def checked_prior(
    prior: object, world: Any, humans: Sequence[int], generator: GoalGenerator
) -> tuple[JointPrior | None, Params | None]:
    """A prior to query, or the parameters of phase 1, which then becomes part of the same sweep.

    Raises
    ------
    ValueError
        If the prior belongs to other humans or to another world.
    """
    of = getattr(prior, "human_agent_indices", None)
    if of is not None and list(of) != list(humans):
        raise ValueError(
            f"human_policy_prior was computed for the humans {list(of)}, but human_agent_indices is {list(humans)}; give "
            "the same humans in the same order"
        )
    solution = getattr(prior, "solution", None) if isinstance(prior, TabularHumanPolicyPrior) else None
    theirs = getattr(prior, "world_model", None)
    if solution is not None:
        # A world written in Python may cache its answers, which changes its key; the same object is then good enough.
        is_same = solution.dag.world is world and solution.model.may_remember
        if not is_same and not _are_same(solution.dag.world_key, world_key(world)):
            raise ValueError(
                "human_policy_prior was computed for another world or another horizon; compute it for this world"
            )
    elif theirs is not None and not _is_translated_to(theirs, world) and not _are_same(world_key(theirs), world_key(world)):
        raise ValueError("human_policy_prior belongs to another world; give one for this world, or call set_world_model")
    # The same sweep then solves phase 1, too, unless somebody has put other values in the place of the solution's.
    if solution is not None and solution.goal_columns.generator is generator:
        values = getattr(prior, "values", None)
        if isinstance(values, PolicyView) and values.policies is solution.human_policies:
            return None, solution.human_params
    if all(hasattr(prior, name) for name in ("profile_distribution", "profile_distribution_with_fixed_goal")):
        return cast(JointPrior, prior), None  # by its looks: a wrapper may answer for another object
    if callable(prior):
        return CallablePrior(prior, world, humans), None
    raise TypeError(
        f"human_policy_prior={prior!r} is not a prior; give an object with profile_distribution(state) and "
        "profile_distribution_with_fixed_goal(state, agent_index, goal), or a function f(state, agent_index, goal)"
    )


def _is_translated_to(theirs: World, world: World) -> bool:
    """Whether a prior's world is the one to solve, or the environment that this was translated from, or one like it."""
    if theirs is world or theirs is getattr(world, "translated_from", None):
        return True
    if not is_multigrid(cast(object, theirs)):
        return False
    return _are_same(world_key(translated(theirs, progress=False)), world_key(world))


def _are_same(theirs: tuple[str, int | None] | None, ours: tuple[str, int | None] | None) -> bool:
    return ours is not None and theirs == ours
