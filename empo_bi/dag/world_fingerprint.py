"""What determines the content of a DAG, so that a store made for one world is never taken for another's."""

from __future__ import annotations

import json
from typing import Any

from empo_bi.dag.object_fingerprint import digest_of_content, rules_of
from empo_bi.runtime.digests import digest
from empo_bi.world.gridworld import GridWorld

RULES_VERSION = 1  # to be raised when the gridworld rules, the packing of keys or the numbering of bodies change


def horizon_of(world: Any) -> int | None:
    """The number of steps of a gridworld; it is part of what other worlds are."""
    return world.max_steps if isinstance(world, GridWorld) else None


def identity_of(world: Any) -> str | None:
    """A digest that is the same in every process for the same world, None if there is none.

    A gridworld's follows from its compiled tables. Another world may say itself, as ``content_key`` (a text, or a method
    that returns one); otherwise the source of its classes and the values of its attributes count.
    """
    if isinstance(world, GridWorld):
        return _gridworld(world)
    given = getattr(world, "content_key", None)
    if given is not None:
        return digest(str(given() if callable(given) else given).encode())
    return digest_of_content(world)


def _gridworld(world: GridWorld) -> str:
    about, arrays = rules_of(world)
    named = json.dumps({"rules": RULES_VERSION, **about}).encode()
    return digest(b"".join([named, *(array.tobytes() for array in arrays)]))


def world_key(world: Any) -> tuple[str, int | None] | None:
    """Tells a world with its horizon from others; None if that cannot be told."""
    identity = identity_of(world)
    return None if identity is None else (identity, horizon_of(world))


def key_of(thing: Any) -> str | None:
    """Tells a user's object (a goal generator, a belief, a prior) from another, also in another process; None if not.

    What counts is the source of the modules that define it, and the values it holds. A function that was made by another
    one, or a lambda, cannot be told from others.
    """
    return "none" if thing is None else digest_of_content(thing)
