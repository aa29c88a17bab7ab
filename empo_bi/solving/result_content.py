"""What results depend on, by name: how a store's manifest distinguishes them, and what else it says of them."""

from __future__ import annotations

from empo_bi.dag.dag import Dag
from empo_bi.dag.world_fingerprint import key_of
from empo_bi.results.goal_names import label_of
from empo_bi.runtime.digests import digest_of
from empo_bi.solving.problem import Problem
from empo_bi.store.solution_folders import durations_key
from empo_bi.store.solved_levels import ARRAYS
from empo_bi.sweep.phases import Setting
from empo_bi.types import Json


def description(problem: Problem, dag: Dag, setting: Setting) -> Json:
    """What a store says of itself for its readers; nothing depends on it."""
    goals, profiles = setting.goals, setting.profiles
    answers = [*goals.answers, *(["joint"] if problem.prior is not None and problem.phase_2 else [])]
    about: Json = {
        "title": problem.model.title,
        "horizon": dag.horizon,
        "levels": [int(value) for value in dag.level_values],
        "goals": goals.names,
        "actions": problem.model.action_names,
        "robot_profiles": [list(profile) for profile in profiles.robot_profiles],
    }
    if answers:
        about["answers"] = answers
    if goals.answers:
        about["goal_labels"] = [[None if goal is None else label_of(goal) for goal in own] for own in goals.goals]
    if goals.answers and goals.is_fixed:
        about["goal_weights"] = goals.fixed_weights
    if "joint" in answers:
        about["human_profiles"] = profiles.action_UH.tolist()
    return about


class ResultContent:
    """By name, everything that the arrays of a set of parameters depend on."""

    def __init__(self, problem: Problem, dag: Dag, arrays: frozenset[str]) -> None:
        self._problem, self._dag, self._arrays = problem, dag, arrays
        self._keys: dict[int, str | None] = {}  # of users' things by id: telling one from others may take seconds

    def of(self, i: int, setting: Setting) -> Json:
        """For set number ``i``."""
        problem, params, human_params = self._problem, self._problem.params[i], self._problem.params_of_humans(i)
        is_discounted = any([params.rate_h, params.rate_r, human_params.rate_h])
        return {
            "world": None if problem.world_key is None else problem.world_key[0],
            "horizon": None if problem.world_key is None else problem.world_key[1],
            "level_sizes": self._dag.level_sizes,
            "humans": problem.humans,
            "robots": problem.robots,
            "goals": setting.goals.key(),
            "goal_names": digest_of(repr(setting.goals.names)),  # a generator may yield them in another order next time
            "params": params.describe(),
            "human_params": None if problem.human_params is None else problem.human_params.describe(),
            "belief": self._key_of(human_params.believed_others_policy),
            "durations": durations_key(problem.model, are_asked=problem.model.has_own_durations and is_discounted),
            "prior": self._key_of(problem.prior),
            "rest": setting.precision.rest,
            "work": setting.precision.work,
            "probabilities": self._dag.precision,
            "phase_2": problem.phase_2,
            **self._dag.part.content,
            **self._functions(i),
            **({} if self._arrays >= ARRAYS.keys() else {"arrays": sorted(self._arrays)}),
        }

    def _functions(self, i: int) -> Json:
        """Users' functions that were not there from the beginning, and are part of a manifest only where they are given."""
        terminal = self._problem.params[i].terminal_function
        return {} if terminal is None else {"terminal_Vr": self._key_of(terminal)}

    def _key_of(self, thing: object) -> str | None:
        if id(thing) not in self._keys:
            self._keys[id(thing)] = key_of(thing)
        return self._keys[id(thing)]
