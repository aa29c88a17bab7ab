"""What determines the content of a DAG, so that a store made for one world is never taken for another's."""

from __future__ import annotations

from typing import Any

from empo_bi.dag.object_fingerprint import digest_of_content
from empo_bi.runtime.digests import digest
from empo_bi.world.as_model import as_model
from empo_bi.world.model import World

WorldKey = tuple[str, int | None] | None  # identity and horizon; None where nobody can tell a world from others


def horizon_of(world: World) -> int | None:
    """The number of steps of a gridworld; it is part of what other worlds are."""
    return as_model(world).free_horizon


def identity_of(world: World) -> str | None:
    """A digest that is the same in every process for the same world, None if there is none.

    A gridworld's follows from its compiled tables. Another world may say itself, as ``content_key`` (a text, or a method
    that returns one); otherwise the source of its classes and the values of its attributes count.
    """
    content = as_model(world).content
    return digest_of_content(world) if content is None else digest(content)


def world_key(world: World) -> WorldKey:
    """Identifies a world with its horizon; None if that is unknown."""
    identity = identity_of(world)
    return None if identity is None else (identity, horizon_of(world))


def key_of(thing: Any) -> str | None:
    """Tells a user's object (a goal generator, a belief, a prior) from another, also in another process; None if not.

    What counts is the source of the modules that define it, and the values it holds. A function that was made by another
    one, or a lambda, cannot be distinguished from others.
    """
    return "none" if thing is None else digest_of_content(thing)
