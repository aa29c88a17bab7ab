"""What determines the content of a DAG, so that a store made for one world is never taken for another's."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import joblib

from empo_bi.world.gridworld import GridWorld

RULES_VERSION = 1  # to be raised when the gridworld rules, the packing of keys or the numbering of bodies change

# Attributes that planning itself leaves on a world, or that only matter for drawing random numbers.
_NOT_PART_OF_A_WORLD = {"_dag_cache", "_attainment_cache", "_disk_dag", "_np_random", "_np_random_seed"}
_NOT_PART_OF_A_WORLD |= {"possible_goal_generator", "possible_goal_sampler"}  # goals have a digest of their own
_OF_A_GRIDWORLD = _NOT_PART_OF_A_WORLD | {
    "world_spec", "render_mode", "agents", "max_steps", "human_agent_indices", "robot_agent_indices", "action_space",
    "observation_space", "layout", "tables", "codec", "_profiles", "_step_count", "_key",
}  # fmt: skip
_LIBRARIES = (set(sys.stdlib_module_names) - {"__main__"}) | {"numpy", "scipy", "numba", "gymnasium", "torch", "pandas"}


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
        about = [code_of(type(world)), _described(_attributes_of(world))]
        return str(joblib.hash(about, hash_name="sha1"))
    except Exception:  # no source (typed in by hand), or attributes that cannot be pickled
        return None


def code_of(kind: type) -> list[Any]:
    """The modules that define a class and its bases, what its functions have closed over, and its attributes' values."""
    found: list[Any] = []
    for base in kind.__mro__:
        if _is_foreign(base):
            continue
        found.append(_source_of(base))
        for name, value in sorted(vars(base).items()):
            if isinstance(value, FunctionType):
                found.append([name, [cell.cell_contents for cell in value.__closure__ or () if _is_value(cell)]])
            elif not name.startswith(("__", "_abc_")) and not callable(value) and not hasattr(value, "__get__"):
                found.append([name, value])
    return found


def _source_of(base: type) -> str:
    """Of the whole module, since a class may use what stands beside it; of the class alone where there is no file."""
    module = inspect.getmodule(base)
    try:
        return inspect.getsource(base) if module is None else inspect.getsource(module)
    except (OSError, TypeError):
        return inspect.getsource(base)


def _is_value(cell: Any) -> bool:
    """``super()`` closes over the class itself, which says nothing new."""
    return not isinstance(cell.cell_contents, type)


def _attributes_of(world: Any) -> list[tuple[str, Any]]:
    slots = [name for base in type(world).__mro__ for name in getattr(base, "__slots__", ()) if hasattr(world, name)]
    found = {**getattr(world, "__dict__", {}), **{name: getattr(world, name) for name in slots}}
    return sorted((name, value) for name, value in found.items() if name not in _NOT_PART_OF_A_WORLD)


def _gridworld(world: GridWorld) -> str:
    fields = [(f.slot, f.word, f.shift, f.width) for f in world.layout.fields]
    about = {"rules": RULES_VERSION, "actions": world.action_names, "fields": fields, "words": world.tables.n_words}
    parts = [json.dumps(about).encode(), world.tables.world.tobytes(), world.tables.chances.tobytes()]
    parts.append(world.initial_key.tobytes())
    return _digest(b"".join(parts))


def world_key(world: Any) -> tuple[str, int | None] | None:
    """Tells a world with its horizon from others; None if that cannot be told."""
    identity = identity_of(world)
    return None if identity is None else (identity, horizon_of(world))


def digest_of(text: str) -> str:
    """A short name for a text, for folders."""
    return _digest(text.encode())[:12]


def key_of(thing: Any) -> str | None:
    """Tells a user's object (a goal generator, a belief, a prior) from another, also in another process; None if not.

    What counts is the source of the modules that define it, and the values it holds. A function that was made by another
    one, or a lambda, cannot be told from others.
    """
    if thing is None:
        return "none"
    try:
        return str(joblib.hash(_described(thing), hash_name="sha1"))
    except Exception:  # whatever pickling runs into in the user's own classes, or where there is no source
        return None


def _described(thing: Any, inside: tuple[int, ...] = ()) -> Any:
    """A thing as what determines it, in plain values: sources and contents, however deep they are.

    ``inside`` are the things around it, each of which is described only once.
    """
    if thing is None or isinstance(thing, bool | int | float | complex | str | bytes):
        return thing
    if id(thing) in inside:
        return "itself"
    inside = (*inside, id(thing))
    describe = functools.partial(_described, inside=inside)
    if isinstance(thing, GridWorld):
        return ["world", *(world_key(thing) or ()), describe(added_attributes(thing))]
    if type(thing) in (list, tuple):
        return [type(thing).__name__, *map(describe, thing)]
    if type(thing) is dict:
        return {joblib.hash(describe(key)): describe(value) for key, value in thing.items()}
    if type(thing) in (set, frozenset):
        return sorted(joblib.hash(describe(element)) for element in thing)
    if isinstance(thing, functools.partial):
        return ["partial", describe(thing.func), describe(thing.args), describe(thing.keywords)]
    if isinstance(thing, MethodType):
        is_of_class = getattr(type(thing.__self__), thing.__name__, None) is thing.__func__
        return ["method", thing.__name__ if is_of_class else describe(thing.__func__), describe(thing.__self__)]
    if isinstance(thing, FunctionType):
        return _function(thing, describe)
    if isinstance(thing, type):
        return ["class", thing.__qualname__, code_of(thing)]
    if _is_foreign(type(thing)):
        return thing  # as pickling tells it
    return ["object", type(thing).__qualname__, code_of(type(thing)), describe(thing.__getstate__())]


def _function(thing: FunctionType, describe: Callable[[Any], Any]) -> Any:
    if thing.__closure__ or "<" in thing.__qualname__:
        raise TypeError(f"{thing.__qualname__} cannot be told from others")
    module = inspect.getmodule(thing)
    source = inspect.getsource(thing if module is None else module)
    return ["function", thing.__qualname__, source, describe(thing.__defaults__), describe(thing.__kwdefaults__)]


def added_attributes(world: GridWorld) -> dict[str, Any]:
    """What somebody has put on a gridworld beyond its map and rules."""
    return {name: value for name, value in vars(world).items() if name not in _OF_A_GRIDWORLD}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:40]


def _is_foreign(base: type) -> bool:
    """Builtins and well-known libraries, whose source does not define the world."""
    return base.__module__.split(".")[0] in _LIBRARIES
