"""Which part of a world is enumerated: from which states on, and where it stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from empo_bi.errors import InvalidStateError
from empo_bi.runtime.wording import short_repr

if TYPE_CHECKING:  # worker processes load this module, and need no numba
    from empo_bi.types import BoolArray, Json, KeyArray
    from empo_bi.world.as_model import Model
    from empo_bi.world.model import State


@dataclass(frozen=True)
class Stop:
    """Where a sub-problem stops, in one of two forms.

    Attributes
    ----------
    event : as the user gave it
    of_state : whether it holds in a state
    of_keys : the same for packed bodies at once, (S, W) -> (S,) bool, where it does not depend on the step; else None
    """

    event: object
    of_state: Callable[[State], bool]
    of_keys: Callable[[KeyArray], BoolArray] | None = None


@dataclass(frozen=True)
class SubProblem:
    """The part of a world that can be reached from some states, up to where an event holds; by default the whole.

    Attributes
    ----------
    starts : states to begin with, each once; none for the world's initial state
    stop : states where it holds are terminal; None where only the world ends
    stored : what a store says of it, if it was opened without knowing them: ``content`` as it was
    """

    starts: tuple[State, ...] = ()
    stop: Stop | None = None
    stored: Json | None = None

    @cached_property
    def content(self) -> Json:
        """What identifies it in a manifest, by name, in JSON; nothing for a whole world.

        A key is None where a state or function cannot be told from others.
        """
        from empo_bi.dag.world_fingerprint import key_of

        if self.stored is not None:
            return self.stored
        starts = {"start": key_of(list(self.starts)), "n_starts": len(self.starts)} if self.starts else {}
        return starts if self.stop is None else {**starts, "stop": key_of(self.stop.event)}

    def start_states(self, model: Model) -> Sequence[State]:
        return self.starts or [model.initial_state()]

    @property
    def stops(self) -> Callable[[State], bool] | None:
        """Whether it stops in a state; None where it never does."""
        return None if self.stop is None else self.stop.of_state

    def is_same_stop(self, other: SubProblem) -> bool:
        """Whether both are known to stop in the same states."""
        if self.stop is None or other.stop is None or self.stop.event is not other.stop.event:
            known = self.content.get("stop", "never")
            return known is not None and known == other.content.get("stop", "never")
        return True


WHOLE = SubProblem()
KEYS = ("start", "n_starts", "stop")  # of content


def checked_starts(model: Model, start: object) -> tuple[State, ...]:
    """The states that a user gave as ``start``, each once: one state, or a list of them; none for None."""
    if start is None:
        return ()
    states = start if isinstance(start, list) else [start]
    if not states:
        raise ValueError("start=[]; give a state, a list with at least one state, or None for the initial state")
    try:
        return tuple(dict.fromkeys(_as_the_world_has_them(model, states)))
    except (InvalidStateError, TypeError, ValueError, IndexError) as error:
        raise InvalidStateError(
            f"start={short_repr(start)}: {error}; give a state of this world, or a list of them"
        ) from error


def _as_the_world_has_them(model: Model, states: list[State]) -> list[State]:
    """States, checked as far as that takes no question: those of a packed world by encoding them."""
    packed = model.packed
    if packed is None:
        return states
    steps, key_SW = packed.encode(states)
    late = steps[(steps < 0) | (steps > packed.max_steps)]
    if len(late):
        raise InvalidStateError(f"a state at step {int(late[0])}, but this world has steps 0 to {packed.max_steps}")
    return packed.decode(steps, key_SW)


def check_starts_of_python_world(model: Model, part: SubProblem) -> None:
    """Ask a world that is written in Python about each state to begin with, so that an error names the argument."""
    for state in part.starts if model.packed is None else ():
        if part.stops is None or not part.stops(state):
            try:
                model.transitions(state, model.profiles[0])
            except Exception as error:
                raise InvalidStateError(
                    f"start={short_repr(state)}: the world was asked about this state and raised {type(error).__name__}: "
                    f"{error}; give a state of this world, or a list of them"
                ) from error
