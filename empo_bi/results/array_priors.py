"""Priors that answer for many states at once: :class:`VectorPrior` computes them, :class:`ArrayPrior` has them in arrays.

The engine asks them about whole blocks of states and never makes state tuples for them. They can also be asked about one
state, like any prior.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from empo_bi.dag.attainment import FixedGoals, fixed_goals
from empo_bi.dag.dag import Dag
from empo_bi.problem.asked_prior import AnswersInArrays
from empo_bi.problem.given_policies import GivenPolicies, StatesInQuestion, normalised_rows
from empo_bi.problem.protocols import Goal, GoalGenerator
from empo_bi.results.policies import HumanPolicyPrior
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.wording import short_repr
from empo_bi.types import FloatArray
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.as_model import as_model
from empo_bi.world.map_world import MapWorld
from empo_bi.world.model import World


@suggests_names()
class VectorPrior(HumanPolicyPrior, AnswersInArrays):
    """A prior of your own that computes the policies of many states at once, from the fields of packed states.

    Derive a class and write :meth:`policies`. Averages over goals follow from it, with the weights of the goals.

    Parameters
    ----------
    world_model : a world on a map: a gridworld or a bush world
    human_agent_indices : sequence of int, optional
        By default the world's humans.
    possible_goal_generator : optional
        What humans may want, for policies averaged over all goals; by default the world's own.

    Examples
    --------
    >>> import numpy as np
    >>> from empo_bi import Params, VectorPrior, load_world, solve
    >>> class StaysAtHome(VectorPrior):
    ...     def policies(self, fields, step, human_agent_index, possible_goal):
    ...         x_S, y_S = fields.cell_xy(human_agent_index).T
    ...         is_at_home_S1 = (x_S < 5)[:, np.newaxis]
    ...         return np.where(is_at_home_S1, [1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25])
    >>> world = load_world("asymmetric_freeing", max_steps=4)
    >>> prior = StaysAtHome(world)
    >>> prior(world.initial_state(), 1)
    array([0.25, 0.25, 0.25, 0.25])
    >>> solution = solve(world, Params(zeta=2), human_policy_prior=prior, progress=False)
    """

    def __init__(
        self,
        world_model: MapWorld,
        human_agent_indices: Sequence[int] | None = None,
        possible_goal_generator: GoalGenerator | None = None,
    ) -> None:
        map_of(world_model)
        humans = world_model.human_agent_indices if human_agent_indices is None else human_agent_indices
        super().__init__(world_model, humans)
        self.possible_goal_generator = possible_goal_generator

    @abstractmethod
    def policies(self, fields: Any, step: int, human_agent_index: int, possible_goal: Goal) -> npt.ArrayLike:
        """(S, A), probabilities of a human's actions in S states of one step, while it pursues a goal.

        ``fields`` are those of the states, as ``world.fields(keys)`` gives them: :class:`StateFields` in gridworlds.
        """

    def __call__(self, state: Hashable, human_agent_index: int, possible_goal: Goal | None = None) -> FloatArray:
        """The policy for a goal; without one, the weighted sum over the goals of the state, not normalised."""
        if possible_goal is not None:
            steps, key_1W = self._world.encode([state])  # type: ignore[list-item]
            return self._of(self._world.fields(key_1W), int(steps[0]), human_agent_index, possible_goal)[0].copy()
        weighted = list(self._generator.generate(state, human_agent_index))
        rows = [weight * self(state, human_agent_index, goal) for goal, weight in weighted]
        return np.sum(rows, axis=0) if rows else np.zeros(len(self._world.action_names))

    def given_policies(self, asked: StatesInQuestion) -> GivenPolicies:
        found = GivenPolicies.empty(len(asked.place_M), asked.goals, len(self._world.action_names))
        for h, human in enumerate(asked.goals.humans):
            known: dict[Goal, FloatArray] = {}
            for g, goal in enumerate(asked.goals.goals[h]):
                if goal is not None:
                    if goal not in known:
                        known[goal] = self._of(asked.fields, asked.step, human, goal)
                    found.pi_MXA[:, h * asked.goals.n_goals + g] = known[goal]
            found.mean_MHA[:, h] = normalised_rows(self._summed(asked, human, known))
        return found

    def _summed(self, asked: StatesInQuestion, human: int, known: dict[Goal, FloatArray]) -> FloatArray:
        """(M, A), sums over goals with their weights; ``known`` are policies that were asked for already."""
        if fixed_goals(self._generator, [human], as_model(self._world)) is None:  # goals differ from state to state
            return np.array([self(state, human) for state in asked.states]).reshape(len(asked.place_M), -1)
        weighted = list(self._generator.generate(self._world.initial_state(), human))
        sum_MA = np.zeros((len(asked.place_M), len(self._world.action_names)))
        for n, (goal, weight) in enumerate(weighted):
            if goal not in known:
                known[goal] = self._of(asked.fields, asked.step, human, goal)
            sum_MA = weight * known[goal] if n == 0 else sum_MA + weight * known[goal]
        return sum_MA

    def _of(self, fields: AgentFields, step: int, human: int, goal: Goal) -> FloatArray:
        found = np.asarray(self.policies(fields, step, human, goal), dtype=np.float64)
        expected = (len(fields), len(self._world.action_names))
        if found.shape != expected:
            raise ValueError(
                f"{type(self).__name__}.policies(fields, {step}, {human}, {short_repr(goal)}) gave an array of shape "
                f"{found.shape}; expected {expected}, states by actions"
            )
        return found

    @property
    def _world(self) -> MapWorld:
        if self.world_model is None:
            raise ValueError("this prior was pickled and has no world; call set_world_model(world) before asking it")
        return map_of(self.world_model)

    @property
    def _generator(self) -> GoalGenerator:
        own = self.possible_goal_generator
        generator: GoalGenerator | None = self._world.possible_goal_generator if own is None else own
        if generator is None:
            raise ValueError(f"{short_repr(self.world_model)} has no goals; give possible_goal_generator")
        return generator


@suggests_names()
class ArrayPrior(HumanPolicyPrior, AnswersInArrays):
    """A prior that has all policies in arrays, one for each level of a DAG.

    Parameters
    ----------
    dag : of the world that is solved, from ``enumerate_dag``; it says which state is where
    policies : sequence or mapping of arrays, or a function of the level
        ``policies[t]`` is (S, H, G, A): states in the order of ``dag.states(t)``, humans, goals in the order of
        ``solution.goals`` (that of the goal generator), actions. What it says of terminal states is never read; an array of
        the last level is not needed where all its states are terminal.
    human_agent_indices : sequence of int, optional
        By default the world's humans.
    possible_goal_generator : optional
        Goals and their weights, the same in every state; by default the world's own.

    Examples
    --------
    >>> import numpy as np
    >>> from empo_bi import ArrayPrior, Params, enumerate_dag, load_world, solve
    >>> dag = enumerate_dag(load_world("asymmetric_freeing", max_steps=4), progress=False)
    >>> prior = ArrayPrior(dag, [np.full((n, 2, 18, 4), 0.25) for n in dag.level_sizes])
    >>> solution = solve(dag.world, Params(zeta=2), dag=dag, human_policy_prior=prior, progress=False)
    """

    def __init__(
        self,
        dag: Dag,
        policies: Sequence[npt.ArrayLike] | Mapping[int, npt.ArrayLike] | Callable[[int], npt.ArrayLike],
        human_agent_indices: Sequence[int] | None = None,
        possible_goal_generator: GoalGenerator | None = None,
    ) -> None:
        humans = dag.model.human_agent_indices if human_agent_indices is None else human_agent_indices
        super().__init__(dag.world, list(humans or []))
        self._dag: Dag | None = dag
        self.array_of = policies
        generator = dag.model.goal_generator if possible_goal_generator is None else possible_goal_generator
        fixed = None if generator is None else fixed_goals(generator, self.human_agent_indices, dag.model)
        if fixed is None:
            raise ValueError(
                f"possible_goal_generator={short_repr(generator)}; an ArrayPrior needs goals that are the same in every "
                "state (those of a world file, TabularGoalGenerator); for others, give a prior that is asked about states"
            )
        self._goals: FixedGoals = fixed
        self._last: tuple[int, FloatArray] | None = None  # the array of a level that was used last

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_dag": None, "_goals": None, "_last": None}

    def __call__(self, state: Hashable, human_agent_index: int, possible_goal: Goal | None = None) -> FloatArray:
        """The policy for a goal; without one, the weighted sum over all goals, not normalised."""
        t, place = self._its_dag.place_of(state)
        h = self._goals.humans.index(human_agent_index)
        pi_GA = self._level(t)[place, h]
        if possible_goal is not None:
            return pi_GA[self._number(h, possible_goal)].copy()
        return self._summed(pi_GA[np.newaxis], h)[0]

    def given_policies(self, asked: StatesInQuestion) -> GivenPolicies:
        if asked.dag.level_sizes != self._its_dag.level_sizes:
            raise ValueError(
                f"the arrays of human_policy_prior are for a DAG with {sum(self._its_dag.level_sizes):,} states, but the "
                f"one that is solved has {sum(asked.dag.level_sizes):,}; give solve the same dag"
            )
        pi_MHGA = self._level(asked.t)[asked.place_M]
        found = GivenPolicies.empty(len(pi_MHGA), asked.goals, pi_MHGA.shape[3])
        for h, goals in enumerate(asked.goals.goals):
            for g, goal in enumerate(goals):
                if goal is not None:
                    own = self._number(h, goal)
                    found.pi_MXA[:, h * asked.goals.n_goals + g] = pi_MHGA[:, h, own]
            found.mean_MHA[:, h] = normalised_rows(self._summed(pi_MHGA[:, h], h))
        return found

    def _number(self, h: int, goal: Goal) -> int:
        """The place of a goal among those of a human."""
        if goal not in self._goals.goals[h]:
            raise KeyError(
                f"{goal!r} is not among the goals of human {self._goals.humans[h]} that this prior has arrays for"
            )
        return self._goals.goals[h].index(goal)

    @property
    def _its_dag(self) -> Dag:
        if self._dag is None:
            raise ValueError("this prior was pickled and has no DAG; make another one, with ArrayPrior(dag, policies)")
        return self._dag

    def _summed(self, pi_MGA: FloatArray, h: int) -> FloatArray:
        """(M, A), sums over goals with their weights, one goal after the other."""
        weights = [w for goal, w in zip(self._goals.goals[h], self._goals.weights[h], strict=True) if goal is not None]
        sum_MA = weights[0] * pi_MGA[:, 0]
        for g, weight in enumerate(weights[1:], 1):
            sum_MA = sum_MA + weight * pi_MGA[:, g]
        return np.asarray(sum_MA)

    def _level(self, t: int) -> FloatArray:
        if self._last is None or self._last[0] != t:
            given = self.array_of(t) if callable(self.array_of) else self._given_array(t)
            array = np.asarray(given, dtype=np.float64)
            n_actions = as_model(self.world_model).n_actions
            expected = (self._its_dag.level_sizes[t], len(self.human_agent_indices), self._goals.n_goals, n_actions)
            if array.shape != expected:
                raise ValueError(
                    f"the policies of level {t} have the shape {array.shape}; expected {expected}: states, humans, goals, "
                    "actions"
                )
            self._last = (t, array)
        return self._last[1]

    def _given_array(self, t: int) -> npt.ArrayLike:
        assert not callable(self.array_of)
        try:
            return self.array_of[t]
        except LookupError:
            raise ValueError(
                f"there are no policies for level {t}; an ArrayPrior needs those of all levels with states that are not "
                f"terminal (level 0 to {self._its_dag.horizon - 1})"
            ) from None


def map_of(world: World) -> MapWorld:
    """The world on a map that a model has; TypeError if it has none."""
    grid = as_model(world, "world_model").grid
    if grid is None:
        raise TypeError(f"{short_repr(world)} has no map to walk on; give a gridworld or a bush world")
    return grid
