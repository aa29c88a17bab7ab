"""The seam between worlds and everything else: :class:`Model`, which :func:`as_model` makes of any world.

Worlds on a map, array worlds and worlds written in Python all enter here. Behind it nobody asks what kind of world there is;
what only some worlds can do is an optional part, None where a world cannot.

>>> from empo_bi import load_world
>>> model = as_model(load_world("asymmetric_freeing", max_steps=8))
>>> model.n_agents, model.n_actions, model.free_horizon
(3, 4, 8)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from empo_bi.runtime.wording import short_repr
from empo_bi.types import Json, KeyArray
from empo_bi.world.agent_fields import AgentFields
from empo_bi.world.array_world import ArrayWorld
from empo_bi.world.map_world import MapWorld
from empo_bi.world.model import State, Transitions
from empo_bi.world.packed import PackedWorld
from empo_bi.world.packed_model import ArrayModel, MapModel, PackedModel
from empo_bi.world.python_model import Picture, PythonModel, UnknownModel


class Model(Protocol):
    """A world as the engine sees it. It holds the user's own object, and never changes it.

    S, W and J count states, words of a key, and action profiles.
    """

    @property
    def world(self) -> Any:
        """The object that the user gave."""

    # --- agents, actions, goals ---------------------------------------------------------------------------------------

    @property
    def n_agents(self) -> int: ...

    @property
    def n_actions(self) -> int:
        """Actions of every agent, or of the one that has the most."""

    @property
    def num_actions_per_agent(self) -> list[int]:
        """Actions of each agent: the first so many."""

    @property
    def n_profiles(self) -> int:
        """J, the number of action profiles."""

    @property
    def profiles(self) -> list[list[int]]:
        """Every action profile in profile-index order: agent 0 is the least significant digit."""

    @property
    def action_names(self) -> list[str]:
        """As the world calls its actions; "action 0", "action 1", ... where it does not."""

    @property
    def human_agent_indices(self) -> Sequence[int]:
        """As the world says, not checked; empty if it does not say."""

    @property
    def robot_agent_indices(self) -> Sequence[int]: ...

    @property
    def goal_generator(self) -> Any:
        """The world's own generator of goals, or None."""

    # --- states and transitions ---------------------------------------------------------------------------------------

    def initial_state(self) -> State: ...

    def transitions(self, state: State, profile: Sequence[int]) -> Transitions | None:
        """``[(probability, successor), ...]`` as the world says; None at a terminal state."""

    @property
    def is_time_homogeneous(self) -> bool:
        """Whether states begin with their step and the rules ignore it, so that levels share bodies."""

    @property
    def packed(self) -> PackedWorld | None:
        """What encodes, decodes and expands whole blocks of states as keys (S, W); None: states are asked one by one."""

    def states_in_own_order(self, *, ask: bool) -> Sequence[State] | None:
        """All states in the order that the world's own ``get_dag`` has left behind, or if one may ``ask``, that it says."""

    # --- durations ----------------------------------------------------------------------------------------------------

    @property
    def has_own_durations(self) -> bool:
        """Whether the world has a say in how long transitions take; otherwise all take 1."""

    def durations(self, state: State, profile: Sequence[int], transitions: Transitions) -> Sequence[float]:
        """How long each of the transitions takes."""

    # --- identity -----------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        """How stores and messages call the world; the same in every process."""

    @property
    def name(self) -> str | None:
        """The name that the world itself has; None if it has none."""

    @property
    def content(self) -> bytes | None:
        """All that its transitions depend on, but for ``free_horizon``; None: its source and attributes tell."""

    @property
    def hashed(self) -> list[Any]:
        """What counts when something that holds the world (a goal, a prior) is identified."""

    @property
    def added_attributes(self) -> Json | None:
        """What somebody has put on the world that ``content`` leaves out; None if ``content`` leaves out nothing."""

    @property
    def may_remember(self) -> bool:
        """Whether being asked may leave something on the world, so that ``content`` is another one afterwards."""

    # --- the horizon --------------------------------------------------------------------------------------------------

    @property
    def max_steps(self) -> int | None:
        """Steps until the end, if the world says so."""

    @property
    def free_horizon(self) -> int | None:
        """The same where the rules do not depend on it, so that :meth:`with_horizon` can change it; else None."""

    def with_horizon(self, steps: int) -> Any:
        """The same world with another ``free_horizon``."""

    # --- what stores keep ---------------------------------------------------------------------------------------------

    @property
    def mapping(self) -> Json | None:
        """The world as data, from which ``load_world`` makes it again; None if it is code or arrays."""

    @property
    def state_format(self) -> str | None:
        """How a store calls keys that can be read without the world; None if they cannot."""

    @property
    def key_meaning(self) -> object:
        """What keys mean: equal keys of two worlds are equal states if this is equal; None if states must be compared."""

    @property
    def encode_state(self) -> Callable[[Any], Any] | None:
        """The world's own way to write a state as a JSON value; None for tuples, numbers, texts, booleans and None."""

    @property
    def decode_state(self) -> Callable[[Any], Any] | None:
        """The way back."""

    # --- looking at states --------------------------------------------------------------------------------------------

    @property
    def grid(self) -> MapWorld | None:
        """The map, its cells and who stands where; None for worlds without one."""

    @property
    def fields(self) -> Callable[[KeyArray], AgentFields] | None:
        """Reads fields of keys (S, W): where agents and things are; None for states that have no such fields."""

    @property
    def picture(self) -> Callable[[State, int], Picture] | None:
        """Draws ``(state, pixels of a cell)``, (height, width, 3) uint8; None for worlds without pictures."""


def as_model(world: Any, name: str = "world") -> Model:
    """What the engine sees of a world: the one place that looks at what kind of object somebody gave (as ``name``).

    Raises
    ------
    TypeError
        For what is not a world.
    """
    if isinstance(world, MapWorld):
        return MapModel(world)
    if isinstance(world, ArrayWorld):
        return ArrayModel(world)
    if isinstance(world, PackedWorld):
        return PackedModel(world)
    if not hasattr(world, "transition_probabilities"):
        raise TypeError(
            f"{name}={short_repr(world)} is not a world: it has no transition_probabilities; load_world makes one from a "
            "name or file"
        )
    return PythonModel(world)


UNKNOWN: Model = UnknownModel(None)  # of a store that was opened without the world it was made from
