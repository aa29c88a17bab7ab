r"""Humans who walk straight to their goals: :class:`ShortestPathPrior`, a prior that needs no phase 1.

With :math:`d(p)` the number of actions from a pose (cell and direction) to the goal, and :math:`p \cdot a` the pose after
action a, a human with rationality :math:`\beta_h` plays

.. math:: \pi(a \mid p) \propto e^{-\beta_h \, d(p \cdot a)},

or, for :math:`\beta_h = \infty`, all actions with :math:`d(p \cdot a) < d(p)` equally often. At the goal it stays.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np

from empo_bi.problem.protocols import Goal, GoalGenerator
from empo_bi.results.array_priors import VectorPrior, map_of
from empo_bi.runtime.arguments import suggests_names
from empo_bi.runtime.wording import short_repr
from empo_bi.types import FloatArray, IndexArray
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.goals import cells_of
from empo_bi.world.map_world import MapWorld
from empo_bi.world.model import World
from empo_bi.world.rectangles import Rectangle, inside, rectangle
from empo_bi.world.still import still_action

Area = tuple[Rectangle, ...]


@suggests_names()
class ShortestPathPrior(VectorPrior):
    r"""Humans who take shortest paths to cells or rectangles, as if nobody else were there.

    In a gridworld, distances count turns and steps on the bare map. What blocks the way: walls, buttons and switches, lava,
    and magic walls for humans who may not enter them. What does not: other agents, blocks, rocks and items, doors (open or
    not), bushes, unsteady ground. A human who walks straight may thus push against a rock forever. In a bush world,
    distances are Manhattan distances, whatever the bushes.

    With several cells or rectangles a human walks to the nearest. What else a goal asks for (a direction, a thing, a step)
    is left out of account.

    At the goal a human stands still (or passes); where there is no such action, it plays those that keep it there. A human
    that has no way to its goal does as if it were there.

    Parameters
    ----------
    world_model : a world on a map: a gridworld or a bush world
    human_agent_indices : sequence of int, optional
        By default the world's humans.
    possible_goal_generator : optional
        What humans may want, for policies averaged over all goals; by default the world's own.
    beta_h : float, 0 or more; may be infinite
        How strictly humans take shortest paths.

    Examples
    --------
    >>> from empo_bi import ShortestPathPrior, load_world, solve
    >>> from empo_bi.goals import ReachCellGoal
    >>> world = load_world("map: [Ro . ., . . Hu]\nB: 4\nmax_steps: 4")
    >>> prior = ShortestPathPrior(world)
    >>> start, goal = world.initial_state(), ReachCellGoal(world, 1, (0, 0))
    >>> prior(start, 1, goal)  # north, west, south, east, pass
    array([0.5, 0.5, 0. , 0. , 0. ])
    >>> solution = solve(world, human_policy_prior=prior, progress=False)
    """

    def __init__(
        self,
        world_model: MapWorld,
        human_agent_indices: Sequence[int] | None = None,
        possible_goal_generator: GoalGenerator | None = None,
        *,
        beta_h: float = math.inf,
    ) -> None:
        super().__init__(world_model, human_agent_indices, possible_goal_generator)
        if not beta_h >= 0:
            raise ValueError(f"beta_h={beta_h!r}; give a number, 0 or more, or infinity")
        self.beta_h = float(beta_h)
        self._policies: dict[tuple[int, Area], FloatArray] = {}

    def __repr__(self) -> str:
        return f"<ShortestPathPrior of humans {self.human_agent_indices}, beta_h={self.beta_h:g}>"

    def __call__(self, state: Hashable, human_agent_index: int, possible_goal: Goal | None = None) -> FloatArray:
        """The policy for a goal; without one, the weighted sum over the goals of the state, not normalised."""
        if possible_goal is not None:
            pose = self._world.pose(state, human_agent_index)  # type: ignore[arg-type]
            return self._policy(human_agent_index, possible_goal)[pose].copy()
        return super().__call__(state, human_agent_index)

    def policies(self, fields: AgentFields, step: int, human_agent_index: int, possible_goal: Goal) -> FloatArray:
        """(S, A), read from the table of all poses."""
        world = self._world
        x_S, y_S = fields.cell_xy(human_agent_index).T
        pose_S = (y_S * world.width + x_S) * world.n_directions + fields.direction(human_agent_index)
        return self._policy(human_agent_index, possible_goal)[pose_S]

    def set_world_model(self, world_model: World) -> None:
        map_of(world_model)
        super().set_world_model(world_model)
        self._policies = {}

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "_policies": {}}  # which can be made again

    def _policy(self, human: int, goal: Goal) -> FloatArray:
        """(P, A), the policy in each pose."""
        theirs = getattr(goal, "target_rect", None)  # of goals that are not ours
        area = cells_of(goal) if theirs is None else (rectangle(theirs),)
        if area is None:
            raise TypeError(
                f"{short_repr(goal)} has no cells to walk to; give goals such as ReachCellGoal, with a target_rect"
            )
        key = (int(human), area)
        if key not in self._policies:
            self._policies[key] = policies_towards(self._world, *key, self.beta_h)
        return self._policies[key]


def policies_towards(world: MapWorld, agent: int, area: Area, beta_h: float) -> FloatArray:
    """(P, A), how an agent walks to the nearest of some rectangles (x1, y1, x2, y2) from each pose."""
    next_PA = world.walk(agent)
    distance_P = distances(next_PA, poses_inside(world, area))
    after_PA = distance_P[next_PA]
    if math.isinf(beta_h):
        weight_PA = (after_PA < distance_P[:, np.newaxis]).astype(np.float64)
    else:
        with np.errstate(invalid="ignore"):
            weight_PA = np.exp(-beta_h * (after_PA - after_PA.min(axis=1, keepdims=True)))
        weight_PA[np.isinf(after_PA)] = 0.0  # also for beta_h = 0
    stays_P = (distance_P == 0) | np.isinf(distance_P)
    weight_PA[stays_P] = staying(world, next_PA, distance_P)[stays_P]
    return weight_PA / weight_PA.sum(axis=1, keepdims=True)


def poses_inside(world: MapWorld, area: Area) -> IndexArray:
    """Numbers of the poses whose cell is in one of some rectangles."""
    y_P, x_P, _ = (axis.ravel() for axis in np.indices((world.height, world.width, world.n_directions)))
    return np.flatnonzero(inside(x_P, y_P, area).any(axis=1))


def distances(next_PA: IndexArray, target_T: IndexArray) -> FloatArray:
    """(P,), the least number of actions from each pose to one of the targets; infinite if there is no way."""
    distance_P = np.full(len(next_PA), np.inf)
    distance_P[target_T] = 0
    for n in range(1, len(next_PA)):
        is_new_P = np.isinf(distance_P) & (distance_P[next_PA] == n - 1).any(axis=1)
        if not is_new_P.any():
            break
        distance_P[is_new_P] = n
    return distance_P


def staying(world: MapWorld, next_PA: IndexArray, distance_P: FloatArray) -> FloatArray:
    """(P, A), 1 for still or pass; in a world without such an action, for all that leave the distance as it is."""
    names = world.action_names
    idle = still_action(names)
    if idle is None:
        return (distance_P[next_PA] == distance_P[:, np.newaxis]).astype(np.float64)
    weight_PA = np.zeros(next_PA.shape)
    weight_PA[:, idle] = 1.0
    return weight_PA
