"""Priors of all makers: ours, which is the parameters of phase 1, objects that tell joint policies, and functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from empo_bi.dag.world_fingerprint import world_key
from empo_bi.problem.params import Params
from empo_bi.results.policies import HumanPolicyPrior, TabularHumanPolicyPrior
from empo_bi.runtime.wording import short_repr


class CallablePrior(HumanPolicyPrior):
    """A function ``f(state, agent_index, goal)`` as a prior; the goal is None where all goals are meant."""

    def __init__(self, function: Callable[..., Any], world_model: Any, human_agent_indices: Sequence[int]) -> None:
        super().__init__(world_model, human_agent_indices)
        self.function, self._has_warned = function, False

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_has_warned": False}

    def __call__(self, state: Any, human_agent_index: int, possible_goal: Any = None) -> Any:
        asked = f"human_policy_prior({short_repr(state)}, {human_agent_index}, {possible_goal!r})"
        try:
            found = np.asarray(self.function(state, human_agent_index, possible_goal), dtype=np.float64)
        except Exception as error:
            error.add_note(f"({asked} was asked for; it is an array with a probability for each action)")
            raise
        n_actions = int(self.world_model.action_space.n)
        if found.shape != (n_actions,) or not (found >= 0).all():
            raise ValueError(f"{asked} gave {short_repr(found)}; expected {n_actions} probabilities, one for each action")
        if not self._has_warned and abs(found.sum() - 1) > 1e-6:
            self._has_warned = True
            warnings.warn(
                f"{asked} gave probabilities that sum to {found.sum():g}; they are used as they are, which is rarely meant",
                stacklevel=2,
            )
        return found


def checked_prior(prior: Any, world: Any, humans: Sequence[int], generator: Any) -> tuple[Any, Params | None]:
    """A prior to be asked, or the parameters of phase 1, which then becomes part of the same sweep.

    Raises
    ------
    ValueError
        For a prior of other humans or of another world.
    """
    of = getattr(prior, "human_agent_indices", None)
    if of is not None and list(of) != list(humans):
        raise ValueError(
            f"human_policy_prior was computed for the humans {list(of)}, human_agent_indices says {list(humans)}; they have "
            "to be the same in the same order"
        )
    solution = getattr(prior, "solution", None) if isinstance(prior, TabularHumanPolicyPrior) else None
    theirs = getattr(prior, "world_model", None)
    key = world_key(world)
    if solution is not None:
        # A world written in Python may remember its answers, which changes its key; the same object is then good enough.
        is_same = solution.dag.world is world and solution.model.may_remember
        if not is_same and (key is None or solution.dag.world_key != key):
            raise ValueError(
                "human_policy_prior was computed for another world, or another horizon; compute it for this one"
            )
    elif theirs is not None and theirs is not world and (key is None or world_key(theirs) != key):
        raise ValueError("human_policy_prior belongs to another world; give one for this world, or call set_world_model")
    if solution is not None and solution.goal_columns.generator is generator:
        return None, solution.human_params
    if hasattr(prior, "profile_distribution") and hasattr(prior, "profile_distribution_with_fixed_goal"):
        return prior, None
    if callable(prior):
        return CallablePrior(prior, world, humans), None
    raise TypeError(
        f"human_policy_prior={prior!r} is no prior: it needs profile_distribution(state) and "
        "profile_distribution_with_fixed_goal(state, agent_index, goal), or has to be a function f(state, agent_index, goal)"
    )
