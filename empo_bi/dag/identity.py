"""What determines the content of a DAG, so that a store made for one world is never taken for another's."""

from __future__ import annotations

import hashlib
import inspect
import json
from typing import Any

import joblib

from empo_bi.dag.attainment import FixedGoals
from empo_bi.world.gridworld import GridWorld

RULES_VERSION = 1  # to be raised when the gridworld rules, the packing of keys or the numbering of bodies change

# Attributes that planning itself leaves on a world, or that only matter for drawing random numbers.
_NOT_PART_OF_A_WORLD = {"_dag_cache", "_attainment_cache", "_disk_dag", "_np_random", "_np_random_seed"}


def content_of(world: Any, levels_are: str, precision: str, goals: FixedGoals | None) -> dict[str, Any]:
    """By name, everything that the arrays of a store depend on. ``world`` is None where a world cannot be told apart."""
    return {
        "world": identity_of(world),
        "horizon": horizon_of(world),
        "levels": levels_are,
        "precision": precision,
        "goals": None if goals is None else goals.key(),
    }


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
        return _digest(str(given() if callable(given) else given).encode())
    try:
        sources = [inspect.getsource(base) for base in type(world).__mro__ if not _is_foreign(base)]
        attributes = {name: value for name, value in vars(world).items() if name not in _NOT_PART_OF_A_WORLD}
        # Goals have a digest of their own.
        attributes = {name: value for name, value in attributes.items() if not name.startswith("possible_goal_")}
        return str(joblib.hash((sources, sorted(attributes.items())), hash_name="sha1"))
    except Exception:  # no source (typed in by hand), or attributes that cannot be pickled
        return None


def _gridworld(world: GridWorld) -> str:
    fields = [(f.slot, f.word, f.shift, f.width) for f in world.layout.fields]
    about = {"rules": RULES_VERSION, "actions": world.action_names, "fields": fields, "words": world.tables.n_words}
    parts = [json.dumps(about).encode(), world.tables.world.tobytes(), world.tables.chances.tobytes()]
    parts.append(world.initial_key.tobytes())
    return _digest(b"".join(parts))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:40]


def _is_foreign(base: type) -> bool:
    """Builtins and well-known libraries, whose source does not define the world."""
    return base.__module__.split(".")[0] in {"builtins", "abc", "typing", "gymnasium", "collections"}
