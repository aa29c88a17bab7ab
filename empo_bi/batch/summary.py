"""The columns of a solution in the table: sizes, and values and policies at the initial state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from empo_bi.results.solution import Solution
from empo_bi.types import Json
from empo_bi.world.goals import ConditionGoal


def columns_of(solution: Solution, *, per_goal: bool) -> Json:
    """Numbers by column; none depends on the machine.

    ``X_h_0`` is the power of human 0, ``V_h_0_mean`` the weighted mean over goals of its values with the robot,
    ``V_h_alone_0_mean`` the same for phase 1, where robots work against the human or, with ``optimistic``, help it,
    ``pi_r_forward`` the probability that the robot goes forward.
    """
    start = solution.at(solution.dag.states(0)[0])
    found: Json = {
        "states": solution.dag.n_states,
        "bodies": solution.dag.n_bodies,
        "transitions": solution.dag.n_transitions,
        "levels": solution.dag.horizon + 1,
        "V_r": start.V_r,
        "U_r": start.U_r,
    }
    found |= {f"X_h_{human}": power for human, power in start.power.items()}
    for human, rows in start.goals.items():
        goals, weights, in_phase_1, with_robot, _ = zip(*rows, strict=True)
        for name, values in (("V_h", with_robot), ("V_h_alone", in_phase_1)):
            found[f"{name}_{human}_mean"] = _mean(values, weights)
            found[f"{name}_{human}_min"], found[f"{name}_{human}_max"] = min(values), max(values)
            if per_goal:
                found |= {f"{name}_{human}[{_short(goal)}]": value for goal, value in zip(goals, values, strict=True)}
    names = getattr(solution.world, "action_names", None)
    for profile, probability in start.robot_policy.items() if solution.robots else ():
        actions = [str(action) if names is None else names[action] for action in profile]
        found["_".join(["pi_r", *actions])] = probability
    return found


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    total = float(np.sum(weights))
    return float(np.dot(values, weights)) / total if total > 0 else float(np.mean(values))


def _short(goal: object) -> str:
    """The cells of a goal, its name, or the goal as text."""
    if isinstance(goal, ConditionGoal):
        return goal.label
    rectangle = getattr(goal, "target_rect", None)
    if rectangle is None:
        return str(goal)
    x1, y1, x2, y2 = (int(number) for number in np.ravel(rectangle))
    return f"{x1},{y1}" if (x1, y1) == (x2, y2) else f"{x1},{y1},{x2},{y2}"


def rollout_columns(solution: Solution, episodes: int, seed: int) -> Json:
    """From sampled episodes: the robot's mean return, which estimates ``V_r``, and its standard error."""
    return_N = solution.rollouts(episodes, seed=seed).return_N
    error = float(return_N.std(ddof=1) / np.sqrt(episodes)) if episodes > 1 else float("nan")
    return {"rollouts": episodes, "rollout_V_r": float(return_N.mean()), "rollout_V_r_error": error}
