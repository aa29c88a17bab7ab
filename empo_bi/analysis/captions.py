"""The numbers that a film shows beside each state of an episode, without the drawing: :func:`captions_of`."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from empo_bi.problem.goal_columns import bits_of
from empo_bi.problem.protocols import Goal
from empo_bi.results.fixed_goals import PursuedGoals
from empo_bi.results.goal_names import label_of
from empo_bi.results.rollouts import Rollouts
from empo_bi.results.solution import Solution
from empo_bi.results.state_report import GoalRow
from empo_bi.types import BoolArray
from empo_bi.world.as_model import Model
from empo_bi.world.goals import cells_of
from empo_bi.world.rectangles import Rectangle


@dataclass(frozen=True)
class GoalNote:
    """A goal of a human in a state.

    Attributes
    ----------
    label : a short name, such as ``8,2``
    places : rectangles (x1, y1, x2, y2) where the human has to be; none if it may be anywhere
    value : V_h^e, with the robot; nan in a terminal state
    attained : whether it is attained in this state or was earlier in the episode
    """

    goal: Goal
    label: str
    places: tuple[Rectangle, ...]
    value: float
    attained: bool

    @property
    def cells(self) -> Rectangle | None:
        """The only place, None if there are several or none."""
        return self.places[0] if len(self.places) == 1 else None


@dataclass(frozen=True)
class Caption:
    """What a film shows about one state of an episode.

    Attributes
    ----------
    step, n_steps : transitions so far, and in the whole episode
    did : {agent: action}, the actions that led here; empty at the start
    p_actions : the probability of these actions in the previous state, under both policies
    p_outcome : the probability of this state after these actions
    robots : [(actions, probability), ...], all robot profiles, the likeliest first; empty at the end
    next_robots : the robots' next actions, None at the end
    power : {human: X_h}; empty at the end
    attained : {human: goals that are attained in this state}
    goals : {human: notes on its goals in this state}; empty at the end
    pursued : {human: note}, for the fixed goals of this episode
    """

    state: Any
    step: int
    n_steps: int
    did: dict[int, str]
    p_actions: float
    p_outcome: float
    robots: list[tuple[tuple[str, ...], float]]
    next_robots: tuple[str, ...] | None
    power: dict[int, float]
    attained: dict[int, list[Goal]]
    goals: dict[int, list[GoalNote]]
    pursued: dict[int, GoalNote]

    @property
    def probability(self) -> float:
        """The probability of the last step, actions and outcome."""
        return self.p_actions * self.p_outcome

    def shown_robots(self, n: int) -> list[tuple[tuple[str, ...], float]]:
        """The ``n`` likeliest robot profiles; the next one to be played replaces the last of them if it is not there."""
        shown, rest = self.robots[:n], self.robots[n:]
        coming = [entry for entry in rest if entry[0] == self.next_robots]
        return [*shown[: n - 1], *coming] if coming else shown

    def best_goals(self, human: int, n: int) -> list[GoalNote]:
        """The ``n`` goals of a human with the highest values here."""
        return sorted(self.goals.get(human, []), key=lambda note: -note.value)[:n]


def captions_of(rollouts: Rollouts, i: int) -> list[Caption]:
    """A caption for each state of episode ``i``, from the initial one to the last."""
    if not -len(rollouts) <= i < len(rollouts):
        raise IndexError(f"episode {i}: episodes are numbered 0 to {len(rollouts) - 1}")
    solution, states = rollouts.solution, rollouts.states(i)
    pursued = PursuedGoals.of(solution.goal_columns, rollouts.goals)
    attained_HG = np.zeros((len(solution.humans), solution.goal_columns.n_goals), dtype=bool)
    found = []
    for k in range(len(states)):
        t, place = int(rollouts.level_NT[i, k]), int(rollouts.place_NT[i, k])
        now_HG = bits_of(solution.goal_columns.attained(t, np.array([place])), attained_HG.size).reshape(attained_HG.shape)
        attained_HG = attained_HG | now_HG
        found.append(_caption(rollouts, i, k, states, pursued, now_HG, attained_HG))
    return found


def _caption(
    rollouts: Rollouts, i: int, k: int, states: Sequence[Hashable], pursued: PursuedGoals, now_HG: BoolArray,
    attained_HG: BoolArray,
) -> Caption:  # fmt: skip
    """The caption of state ``k``, where goals are attained ``now_HG``, and were attained by then."""
    solution, n_steps = rollouts.solution, len(states) - 1
    report, names = solution.at(states[k]), solution.model.action_names
    did, p_actions, p_outcome = {}, 1.0, 1.0
    if k > 0:
        before = int(rollouts.level_NT[i, k - 1]), int(rollouts.place_NT[i, k - 1])
        actions = rollouts.action_NTI[i, k - 1].tolist()
        did = {agent: names[action] for agent, action in enumerate(actions)}
        p_actions = _probability_of_actions(solution, before, int(rollouts.profile_NT[i, k - 1]), pursued)
        p_outcome = _probability_of_outcome(solution.model, states[k - 1], actions, states[k])
    following = rollouts.action_NTI[i, k].tolist() if k < n_steps else None
    notes = _notes(solution, report.goals, attained_HG)
    return Caption(
        state=states[k],
        step=k,
        n_steps=n_steps,
        did=did,
        p_actions=p_actions,
        p_outcome=p_outcome,
        robots=[
            (tuple(names[action] for action in profile), p)
            for profile, p in sorted(report.robot_policy.items(), key=lambda item: -item[1])
        ],
        next_robots=None if following is None else tuple(names[following[robot]] for robot in solution.robots),
        power=report.power,
        attained={
            human: [goal for goal, is_attained in zip(solution.goals[human], now_HG[h], strict=False) if is_attained]
            for h, human in enumerate(solution.humans)
        },
        goals=notes,
        pursued={human: _pursued(solution, human, goal, notes, attained_HG) for human, goal in rollouts.goals.items()},
    )


def _notes(solution: Solution, rows_of: dict[int, list[GoalRow]], attained_HG: BoolArray) -> dict[int, list[GoalNote]]:
    """Notes on the goals that humans have in a state."""
    return {
        human: [_note(solution, human, goal, value, attained_HG) for goal, _, _, value, _ in rows]
        for human, rows in rows_of.items()
    }


def _note(solution: Solution, human: int, goal: Goal, value: float, attained_HG: BoolArray) -> GoalNote:
    attained = bool(attained_HG.ravel()[solution.goal_columns.column(human, goal)])
    return GoalNote(goal, label_of(goal), cells_of(goal) or (), value, attained)


def _pursued(
    solution: Solution, human: int, goal: Goal, notes: dict[int, list[GoalNote]], attained_HG: BoolArray
) -> GoalNote:
    """The note on a human's fixed goal; in terminal states, which have no goals, whether it was attained."""
    here: Iterable[GoalNote] = (note for note in notes.get(human, []) if note.goal == goal)
    return next(iter(here), None) or _note(solution, human, goal, math.nan, attained_HG)


def _probability_of_actions(solution: Solution, where: tuple[int, int], profile: int, pursued: PursuedGoals) -> float:
    t, place = where
    (joint,) = solution.joint_policies(t, np.array([place]), pursued)
    weight_J = joint.profile_weights()[0]
    return float(weight_J[profile] / weight_J.sum())  # a user's own prior need not sum to 1


def _probability_of_outcome(model: Model, state: Hashable, actions: list[int], successor: Hashable) -> float:
    return float(sum(p for p, after in model.transitions(state, actions) or () if after == successor))
