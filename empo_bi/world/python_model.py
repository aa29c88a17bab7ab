"""Any object that is a world, as a :class:`~empo_bi.world.as_model.Model`: with defaults for what it does not say.

Worker processes load this module; it imports nothing that compiles (numba takes 24 MB in each).
"""

from __future__ import annotations

import copy
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from empo_bi.errors import InvalidWorldError
from empo_bi.runtime.wording import short_repr
from empo_bi.types import Json
from empo_bi.world.model import State, Transitions, WorldModel
from empo_bi.world.multigrid import has_grid_of_agents

if TYPE_CHECKING:
    from empo_bi.types import KeyArray
    from empo_bi.world.agent_fields import AgentFields
    from empo_bi.world.map_world import MapWorld
    from empo_bi.world.packed import PackedWorld

AnyWorld = TypeVar("AnyWorld")
Picture = npt.NDArray[np.uint8]  # (height, width, 3)

# Attributes that planning itself leaves on a world, or that only matter for drawing random numbers.
NOT_PART_OF_A_WORLD = {"_dag_cache", "_attainment_cache", "_disk_dag", "_np_random", "_np_random_seed"}
NOT_PART_OF_A_WORLD |= {"possible_goal_generator", "possible_goal_sampler"}  # goals have a digest of their own
NOT_PART_OF_A_WORLD |= {"_profiles", "_present_state", "_digest_of_arrays"}  # what array worlds remember, and where they are
NOT_PART_OF_A_WORLD |= {"_recognised_goals"}  # of other packages, on worlds with a map


class PythonModel:
    """A world written in Python, of which nothing is known but what it says when it is asked."""

    def __init__(self, world: Any) -> None:
        self.world = world

    def __repr__(self) -> str:
        return repr(self.world)

    # --- agents, actions, goals ---------------------------------------------------------------------------------------

    @property
    def n_agents(self) -> int:
        agents = getattr(self.world, "agents", None)
        return int(self.world.n_agents) if agents is None else len(agents)

    @property
    def n_actions(self) -> int:
        if self._said("num_actions_per_agent", None) is None:
            return int(self.world.action_space.n)
        return max(self.num_actions_per_agent, default=1)

    @property
    def num_actions_per_agent(self) -> list[int]:
        given = self._said("num_actions_per_agent", None)
        if given is None:
            return [self.n_actions] * self.n_agents
        return checked_numbers_of_actions(given, self.n_agents)

    @property
    def n_profiles(self) -> int:
        return math.prod(self.num_actions_per_agent)

    @property
    def profiles(self) -> list[list[int]]:
        ranges = [range(n) for n in self.num_actions_per_agent]
        return [list(profile[::-1]) for profile in itertools.product(*reversed(ranges))]

    @property
    def action_names(self) -> list[str]:
        n_actions, names = self.n_actions, getattr(self.world, "action_names", None)
        if names is None or isinstance(names, str) or len(names) != n_actions:
            return [f"action {a}" for a in range(n_actions)]
        return [str(name) for name in names]

    @property
    def human_agent_indices(self) -> Sequence[int]:
        return self._said("human_agent_indices", ())

    @property
    def robot_agent_indices(self) -> Sequence[int]:
        return self._said("robot_agent_indices", ())

    @property
    def goal_generator(self) -> Any:
        return self._said("possible_goal_generator", None)

    def _said(self, attribute: str, otherwise: Any) -> Any:
        return getattr(self.world, attribute, otherwise)

    # --- states and transitions ---------------------------------------------------------------------------------------

    def initial_state(self) -> State:
        if hasattr(self.world, "initial_state"):
            return self.world.initial_state()
        self.world.reset()
        return self.world.get_state()

    def transitions(self, state: State, profile: Sequence[int]) -> Transitions | None:
        found: Transitions | None = self.world.transition_probabilities(state, list(profile))
        return found

    @property
    def is_time_homogeneous(self) -> bool:
        return self._said("time_homogeneous", False) is True

    @property
    def packed(self) -> PackedWorld | None:
        return None

    def states_in_own_order(self, *, ask: bool) -> Sequence[State] | None:
        """What ``get_dag`` has left behind, or says. Environments of EMPO are not asked: theirs is the documented order."""
        found: Sequence[State] | None = None
        if self._said("_dag_cache", None):
            found = self.world._dag_cache[0]
        elif ask and callable(self._said("get_dag", None)) and not has_grid_of_agents(self.world):
            can_be_quiet = "quiet" in inspect.signature(self.world.get_dag).parameters
            found = (self.world.get_dag(quiet=True) if can_be_quiet else self.world.get_dag())[0]
        return found

    # --- durations ----------------------------------------------------------------------------------------------------

    @property
    def has_own_durations(self) -> bool:
        if "transition_durations" in getattr(self.world, "__dict__", {}):
            return True
        own = getattr(type(self.world), "transition_durations", None)
        return own is not None and own is not WorldModel.transition_durations and not _is_always_one(own)

    def durations(self, state: State, profile: Sequence[int], transitions: Transitions) -> Sequence[float]:
        found: Sequence[float] = self.world.transition_durations(state, list(profile), transitions)
        return found

    # --- identity -----------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        kind = type(self.world)
        return f"a Python world, {kind.__module__}.{kind.__qualname__}"

    @property
    def name(self) -> str | None:
        return None

    @property
    def content(self) -> bytes | None:
        """``content_key`` of the world, a text or a method that returns one."""
        given = self._said("content_key", None)
        return None if given is None else str(given() if callable(given) else given).encode()

    @property
    def hashed(self) -> list[Any]:
        return ["world", type(self.world), attributes_of(self.world)]

    @property
    def added_attributes(self) -> Json | None:
        return None

    may_remember = True

    # --- the horizon --------------------------------------------------------------------------------------------------

    @property
    def max_steps(self) -> int | None:
        found: int | None = self._said("max_steps", None)
        return found

    @property
    def free_horizon(self) -> int | None:
        return None

    def with_horizon(self, steps: int) -> Any:
        raise ValueError(f"{short_repr(self.world)} has a fixed horizon; construct the world with the one you want")

    # --- what stores keep ---------------------------------------------------------------------------------------------

    @property
    def mapping(self) -> Json | None:
        return None

    state_format: str | None = None

    @property
    def key_meaning(self) -> object:
        return None

    @property
    def encode_state(self) -> Callable[[Any], Any] | None:
        found: Callable[[Any], Any] | None = self._said("encode_state", None)
        return found

    @property
    def decode_state(self) -> Callable[[Any], Any] | None:
        found: Callable[[Any], Any] | None = self._said("decode_state", None)
        return found

    # --- looking at states --------------------------------------------------------------------------------------------

    @property
    def grid(self) -> MapWorld | None:
        return None

    @property
    def fields(self) -> Callable[[KeyArray], AgentFields] | None:
        return None

    @property
    def picture(self) -> Callable[[State, int], Picture] | None:
        """The world's own ``picture(state)``, which knows nothing of the size of a cell."""
        return self._own_picture if callable(self._said("picture", None)) else None

    def _own_picture(self, state: State, tile: int) -> Picture:
        picture = np.asarray(self.world.picture(state))
        if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
            raise TypeError(
                f"picture({short_repr(state)}) gave {picture.dtype} of shape {picture.shape}; expected uint8 of shape "
                "(height, width, 3)"
            )
        return picture


def checked_numbers_of_actions(given: Sequence[int], n_agents: int) -> list[int]:
    """``num_actions_per_agent`` as a world says it: a number for each agent, 1 or more."""
    try:
        numbers = [index(n) for n in given]
    except TypeError:
        numbers = []
    if len(numbers) != n_agents or not all(n >= 1 for n in numbers):
        raise InvalidWorldError(
            f"num_actions_per_agent={short_repr(given)}; expected a number for each of {n_agents} agents, 1 or more each"
        )
    return numbers


class UnknownModel(PythonModel):
    """Stands for a world written in Python that is not at hand; its store knows states and transitions, and no more."""

    title = "a Python world"


def deep_copy_of(world: AnyWorld) -> AnyWorld:
    """A copy that shares nothing with a world, without what planning left there."""
    shallow = copy.copy(world)
    for name in NOT_PART_OF_A_WORLD & vars(shallow).keys():
        del shallow.__dict__[name]
    return copy.deepcopy(shallow)


def attributes_of(world: Any) -> list[tuple[str, Any]]:
    """What is on a world, but for what planning left there."""
    state = object.__getstate__(world)  # attributes, or a pair of attributes and slots
    parts = state if isinstance(state, tuple) else (state,)
    found = {name: value for part in parts if part for name, value in part.items() if name not in NOT_PART_OF_A_WORLD}
    content: Any = None
    if isinstance(world, dict):
        content = dict(world)
    elif isinstance(world, tuple | list):
        content = list(world)
    return [*sorted(found.items(), key=lambda item: item[0]), ("", content)]


def _is_always_one(function: Callable[..., object]) -> bool:
    """Whether a method gives 1 for every transition, whatever it is asked: its code knows no other number and no attribute.

    That is what the base classes of environments do, and asking them about every transition would take as long as the rest.
    """
    code = getattr(function, "__code__", None)
    if code is None or code.co_freevars or set(code.co_names) - {"len"}:
        return False
    constants = [c for c in code.co_consts if not isinstance(c, str | type(None) | type(code))]
    inner = [c for c in code.co_consts if isinstance(c, type(code))]
    if any(c not in (1, (1,), (1.0,)) for c in constants) or any(c.co_names or c.co_freevars for c in inner):
        return False
    probes: list[list[tuple[float, object]]] = [[], [(1.0, (0,))], [(0.25, (1,)), (0.75, (2, "x"))]]
    try:
        return all(list(function(None, (3,), [2, 0], probe)) == [1.0] * len(probe) for probe in probes)  # type: ignore[call-overload]
    except Exception:
        return False
