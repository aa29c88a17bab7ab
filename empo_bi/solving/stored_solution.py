"""A solution as it was stored, without the functions of users that it was made with: their answers are stored, too."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from empo_bi.dag.attainment import fixed_goals
from empo_bi.dag.dag import Dag
from empo_bi.dag.level_blocks import LevelBlocks
from empo_bi.dag.stored_world import with_stored_world
from empo_bi.dag.world_fingerprint import key_of
from empo_bi.errors import DamagedStoreError, EmpoError, StoreMismatchError
from empo_bi.problem.asked_prior import AskedPrior
from empo_bi.problem.goal_columns import GoalColumns, lasting_name
from empo_bi.problem.params import params_from
from empo_bi.problem.profiles import Profiles
from empo_bi.problem.protocols import Goal, GoalGenerator, JointPrior
from empo_bi.problem.stored_goals import StoredGoals
from empo_bi.results.priors import checked_prior
from empo_bi.results.solution import Solution
from empo_bi.results.stored_prior import StoredPrior
from empo_bi.runtime.digests import digest_of
from empo_bi.runtime.wording import short_repr
from empo_bi.store.solution_folders import durations_key
from empo_bi.store.solution_store import SolutionStore
from empo_bi.sweep.memory_model import BLOCK_STATES
from empo_bi.sweep.phases import Precision, Setting
from empo_bi.types import Json

_SAME_AS_DAG = ("world", "horizon", "start", "n_starts", "stop")  # parts of the content of a solution and of its DAG


@dataclass(frozen=True)
class StoredSolution:
    """What a solution's store says, the DAG that it belongs to, and what the caller has of the functions behind it.

    Attributes
    ----------
    goals : a generator, whose goals take the place of stored ones of the same names
    prior : what the humans' policies came from, which has more answers than a store
    """

    results: SolutionStore
    dag: Dag
    goals: GoalGenerator | None = None
    prior: object = None

    @property
    def _manifest(self) -> Json:
        return self.results.manifest

    @property
    def _content(self) -> Json:
        content: Json = self.results.manifest["content"]
        return content

    @property
    def is_needed(self) -> bool:
        """Whether users' functions were asked, or the world is not at hand; otherwise everything can be asked again."""
        content = self._content
        functions = [content["belief"], content["prior"], content.get("terminal_Vr", "none")]
        return bool(
            self.dag.world is None
            or any(key != "none" for key in functions)
            or content["human_params"] is not None
            or (self._has_goals and not self._worlds_goals_are_meant)
        )

    @property
    def _has_goals(self) -> bool:
        return "attained" in self.results.answers

    @property
    def _worlds_goals_are_meant(self) -> bool:
        return self.dag.model.mapping is not None and self.goals is None and not self._has_goals

    def open(self) -> Solution:
        """The solution; :class:`StoreMismatchError` where that takes a function that is not at hand."""
        content, manifest = self._content, self._manifest
        self.check_given()
        self._check_what_is_stored()
        self._hold_to_dag()
        with as_damage(self.results.place.name):
            stored = getattr(self.dag.levels, "manifest", {})
            dag = with_stored_world(self.dag, stored, manifest["actions"], content["humans"], content["robots"])
            profiles = self._profiles(dag)
            params = params_from(content["params"], _missing)
            described = content["human_params"]
            human_params = None if described is None else params_from(described, _missing)
        goals = self._goals(dag, LevelBlocks(dag, BLOCK_STATES))
        precision = Precision(content["rest"], content["work"])
        setting = Setting(profiles, goals, precision, unit_durations=content["durations"] == "unit")
        solution = Solution(
            LevelBlocks(dag, BLOCK_STATES), setting, params, self.results, human_params=human_params,
            prior=self._prior(dag, setting), has_robot=content["phase_2"],
        )  # fmt: skip
        solution.missing = self._what_is_missing(dag)
        return solution

    def check_given(self) -> None:
        """Refuse what the run has no use for: the caller thinks of another one."""
        if self.prior is not None and self._content["prior"] == "none":
            raise StoreMismatchError(f"{self.results.place.name}: was solved without a prior of your own; leave out prior")
        is_of_world = self.results.manifest.get("written_by") is not None and not self._has_goals
        if self.goals is not None and is_of_world and self.dag.model.mapping is not None:
            raise StoreMismatchError(f"{self.results.place.name}: was solved for the goals of its world; leave out goals")

    def _profiles(self, dag: Dag) -> Profiles:
        """As the manifest has them, too."""
        content, numbers = self._content, dag.model.num_actions_per_agent
        if any(agent >= len(numbers) for agent in [*content["humans"], *content["robots"]]):
            raise self.results.damaged(f"the metadata of the store: its humans or robots are beyond {len(numbers)} agents")
        profiles = Profiles.of(numbers, content["humans"], content["robots"])
        known = {"robot_profiles": [list(profile) for profile in profiles.robot_profiles]}
        known["human_profiles"] = profiles.action_UH.tolist()
        for name, expected in known.items():
            if self._manifest.get(name, expected) != expected:
                raise self.results.damaged(f"the metadata of the store: its {name} are not those of the DAG's agents")
        return profiles

    def _check_what_is_stored(self) -> None:
        content, answers = self._content, self.results.answers
        lacking = []
        if not self._has_goals and (self.dag.world is None or self.dag.model.mapping is None):
            lacking.append("goals (world=..., --world)")
        if content["prior"] != "none" and content["phase_2"] and "joint" not in answers and self.prior is None:
            lacking.append("prior (prior=..., --prior)")
        if lacking or "actions" not in self._manifest:
            raise StoreMismatchError(
                f"{self.results.place.name}: was solved with functions of your own by an earlier version, which did not "
                f"store what they said; give its {' and its '.join(lacking) or 'world'}, or call solve with the same "
                "arguments"
            )

    def _hold_to_dag(self) -> None:
        """Whether the DAG is that of the solution, and the manifest agrees with itself."""
        content = self._content
        stored = getattr(self.dag.levels, "manifest", {"content": {}})["content"]
        wrong = [part for part in _SAME_AS_DAG if stored and content.get(part) != stored.get(part)]
        if content["level_sizes"] != self.dag.level_sizes or content["probabilities"] != self.dag.precision:
            wrong.append("level_sizes, probabilities")
        if wrong:
            raise StoreMismatchError(
                f"{self.results.place.name}: belongs to another DAG than the one beside it ({', '.join(wrong)} differ); "
                "solve it again"
            )
        if content["goal_names"] != digest_of(repr(self._manifest["goals"])):
            raise self.results.damaged("the metadata of the store: 'goals' are not those of 'goal_names'")

    def _goals(self, dag: Dag, blocks: LevelBlocks) -> GoalColumns:
        content = self._content
        if self._has_goals:
            return StoredGoals(dag, self.results, self._manifest, self._known_goals(dag))
        found = GoalColumns(blocks, content["humans"], self.goals or dag.model.goal_generator)
        if found.key() != content["goals"]:
            raise StoreMismatchError(f"{self.results.place.name}: was solved for other goals than these")
        return found

    def _known_goals(self, dag: Dag) -> list[list[Goal | None]]:
        """Goals of the caller's generator in place of stored ones: all, if it is the generator that was asked, else those
        whose names say which they are, among those that it yields at first."""
        generator, humans, names = self.goals or dag.model.goal_generator, self._content["humans"], self._manifest["goals"]
        if generator is None:
            return []
        fixed = fixed_goals(generator, humans, dag.model, dag)
        if fixed is not None and fixed.key_with_weights() == self._content["goals"]:
            return fixed.goals
        start = dag.states(0, np.zeros(1, dtype=np.int64))[0]
        known: list[list[Goal | None]] = []
        for h, human in enumerate(humans):
            yielded = [goal for goal, _ in generator.generate(start, human)] if fixed is None else fixed.goals[h]
            often = Counter([*names[h], *map(lasting_name, yielded)])  # twice: once stored, once yielded
            of_name = {lasting_name(goal): goal for goal in yielded if often[lasting_name(goal)] == 2}
            known.append([of_name.get(name) for name in names[h]])
        if self.goals is not None and not any(goal is not None for own in known for goal in own):
            raise StoreMismatchError(
                f"{self.results.place.name}: none of the goals given has the name of one that was solved for, "
                f"{short_repr(names[0][0])} and so on"
            )
        return known

    def _prior(self, dag: Dag, setting: Setting) -> JointPrior | None:
        content = self._content
        if content["prior"] == "none":
            return None
        if self.prior is None:
            return StoredPrior(dag, self.results, setting.profiles)
        prior, _ = checked_prior(self.prior, dag.world, content["humans"], setting.goals.generator)
        if not self._is_the_prior(prior, dag, setting):
            raise StoreMismatchError(f"{self.results.place.name}: was solved with another prior than the one given")
        return prior

    def _is_the_prior(self, prior: JointPrior | None, dag: Dag, setting: Setting) -> bool:
        """By its key; by what it says at the start, if it has none."""
        key = self._content["prior"]
        if key is not None:
            return bool(key_of(prior) == key)
        start = np.zeros(1, dtype=np.int64)
        if prior is None or "joint" not in self.results.answers:
            return prior is not None
        asked = AskedPrior(prior, setting.profiles, setting.goals)
        none_1X = np.zeros((1, setting.goals.n_columns), dtype=np.uint8)
        joint_MU, _ = asked.joint(dag.states(0, start), none_1X, asked.given(dag, 0, start))
        return bool(np.allclose(joint_MU, self.results.get(0, "joint")[:1], rtol=1e-9, atol=0))

    def _what_is_missing(self, dag: Dag) -> str | None:
        """What the humans' policies of phase 1 depend on, if it is not at hand."""
        content = self._content
        if content["belief"] != "none":
            return "believed_others_policy, a function of the user's"
        is_timed = content["durations"] != "unit"
        if is_timed and durations_key(dag.model, are_asked=True) != content["durations"]:
            return "transition_durations of a world written in Python (give world=..., --world)"
        return None


def _missing(*_: object) -> NoReturn:
    raise StoreMismatchError("this takes a function of the user's, which a folder cannot hold; call solve again")


@contextlib.contextmanager
def as_damage(what: str) -> Iterator[None]:
    """Around what a store's own record is given to: if that is wrong, the record is, and not the caller."""
    try:
        yield
    except EmpoError:
        raise
    except (TypeError, ValueError, KeyError) as error:
        raise DamagedStoreError(f"{what}: its metadata is inconsistent ({error}); solve it again") from error
