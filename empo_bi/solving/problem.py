"""What is to be solved, checked: a world, sets of parameters, and who is who in it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from empo_bi.dag.world_fingerprint import WorldKey, world_key
from empo_bi.problem.asked_prior import AnswersInArrays
from empo_bi.problem.goal_columns import GoalColumns
from empo_bi.problem.params import Params
from empo_bi.problem.profiles import Profiles
from empo_bi.problem.protocols import GoalGenerator, JointPrior
from empo_bi.results.priors import checked_prior
from empo_bi.solving.argument_checks import checked_agents, checked_generator
from empo_bi.solving.options import Roles
from empo_bi.sweep.phases import Precision, Setting
from empo_bi.world.as_model import Model, as_model
from empo_bi.world.model import World


@dataclass(frozen=True)
class Problem:
    """A world with sets of parameters, which are solved together.

    Attributes
    ----------
    human_params : the parameters of phase 1, where they are not those of the set
    prior : to be asked instead of phase 1, if there is one
    world_key : identifies the world; taken before anybody asks it, since some worlds remember their answers
    """

    model: Model
    params: Sequence[Params]
    humans: list[int]
    robots: list[int]
    generator: GoalGenerator
    prior: JointPrior | None
    human_params: Params | None
    phase_2: bool
    world_key: WorldKey

    @classmethod
    def of(cls, world: World, params: Sequence[Params], roles: Roles, known_key: WorldKey = None) -> Problem:
        """Check who is who, and fill in what the world says of it, and its key, unless that is known."""
        model = as_model(world)
        if not isinstance(roles.phase_2, bool):
            raise TypeError(f"phase_2={roles.phase_2!r}; give True or False")
        wanted = model.robot_agent_indices if roles.robots is None else roles.robots
        humans = model.human_agent_indices if roles.humans is None else roles.humans
        humans, robots = checked_agents(model, humans, wanted if roles.phase_2 else ())
        generator = checked_generator(model, roles.goals)
        prior, human_params = None, roles.human_params
        if roles.prior is not None:
            prior, human_params = checked_prior(roles.prior, world, humans, generator)
        key = world_key(world) if known_key is None else known_key
        return cls(model, list(params), humans, robots, generator, prior, human_params, roles.phase_2, key)

    @property
    def all_params(self) -> list[Params]:
        return [*self.params, *([] if self.human_params is None else [self.human_params])]

    def params_of_humans(self, i: int) -> Params:
        """The parameters of phase 1 for set number ``i``."""
        return self.human_params or self.params[i]

    def human_key(self, i: int) -> Hashable:
        """Sets of parameters for which this is the same share phase 1."""
        own = self.params_of_humans(i)
        return own.beta_h, own.rate_h, own.optimistic, own.believed_others_policy

    def setting(self, goals: GoalColumns, precision: Precision) -> Setting:
        """What all phases have in common."""
        profiles = Profiles.of(self.model.num_actions_per_agent, self.humans, self.robots)
        is_discounted = any(rate for params in self.all_params for rate in (params.rate_h, params.rate_r))
        return Setting(profiles, goals, precision, unit_durations=not self.model.has_own_durations or not is_discounted)

    def asks(self, setting: Setting) -> bool:
        """Whether functions of users are asked about states during the sweep."""
        has_belief = any(params.believed_others_policy is not None for params in self.all_params)
        is_asked = self.prior is not None and not isinstance(self.prior, AnswersInArrays)
        return is_asked or has_belief or not setting.unit_durations

    @property
    def asks_at_the_end(self) -> bool:
        """Whether functions of users are asked about terminal states."""
        return self.phase_2 and any(params.terminal_function is not None for params in self.params)
