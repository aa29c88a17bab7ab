"""Whether a world written in Python is still the same world, although it was asked, stepped or drawn since.

Many environments leave traces when they are asked: counters, caches, where things were last. Their attributes then differ
from before, although nothing about the world has changed. A :class:`WorldSnapshot` learns from one enumeration which parts
are such traces, and counts any other difference as another world.
"""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence, Set
from types import ModuleType, SimpleNamespace
from typing import Any

from empo_bi.dag.object_fingerprint import ContentHasher
from empo_bi.dag.users_goals import FoundStates, states_of
from empo_bi.runtime.functions import digest_of_values, is_library
from empo_bi.world.as_model import Model, as_model
from empo_bi.world.model import State, World
from empo_bi.world.noticed_parts import Itself
from empo_bi.world.python_model import NOT_PART_OF_A_WORLD, deep_copy_of

Path = tuple[str, ...]  # names of attributes, keys and places, from the world down
Parts = dict[str, Any]  # attributes and the like, by name
Tree = str | Itself | Parts  # a digest, what has none, or the parts of an object, list or dictionary

N_WATCHED = 1_000  # questions that a copy is asked, to see which attributes it reads; all there are, if they are no more
_DEEPEST, _LARGEST = 8, 2_000  # parts below, or lists with more elements, have one digest


class WorldSnapshot:
    """What the attributes of a world were, part by part, before and after it was asked about all its states.

    It belongs to one object. Take it before the first question, and call :meth:`learn` after the last.
    """

    def __init__(self, world: World) -> None:
        self._before = _parts(world)
        self._traces: set[Path] = set()
        self._dag_cache = id(getattr(world, "_dag_cache", None))

    def learn(self, world: World) -> None:
        """What has changed by now was changed by asking, and no change of it will count."""
        self._traces |= set(_changes(self._before, _parts(world)))

    def has_seen(self, dag_cache: object) -> bool:
        """Whether what ``get_dag`` left was there when this was taken: then it is as old as this, or older."""
        return id(dag_cache) == self._dag_cache

    def is_of(self, world: World, dag: FoundStates) -> bool:
        """Whether the same object is still the same world, of which this DAG was made."""
        changed = [path for path in _changes(self._before, _parts(world, self._traces)) if not self._is_trace(path)]
        if not changed:
            return True
        names = {path[0] for path in changed}
        if not all(name.startswith("_") for name in names) or names & _names_read_by(world, dag):
            return False
        self._traces |= {(name,) for name in names}  # of drawing, say: nothing that its answers depend on
        return True

    def _is_trace(self, path: Path) -> bool:
        return any(path[:n] in self._traces for n in range(1, len(path) + 1))


def _parts(world: World, traces: Set[Path] = frozenset()) -> Tree:
    """What a world is made of; attributes that are traces as a whole are not looked at, since caches may be large."""
    found = {
        name: None if (name,) in traces else value
        for name, value in _attributes(world).items()
        if name not in NOT_PART_OF_A_WORLD
    }
    return _Walk().parts_of({"": type(world), **found}, [world])


def _attributes(thing: object) -> Parts:
    state = object.__getstate__(thing)  # attributes, or a pair of attributes and slots
    parts = state if isinstance(state, tuple) else (state,)
    return {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}


class _Walk:
    """Goes through the parts of an object; functions and classes have one digest each, computed once."""

    def __init__(self) -> None:
        self._code: dict[object, str] = {}

    def parts_of(self, things: Mapping[str, object], above: list[object]) -> Tree:
        return {name: self._tree(value, above) for name, value in things.items()}

    def _tree(self, thing: object, above: list[object]) -> Tree:
        if any(thing is one for one in above):
            return "above"  # an agent that knows its world, say
        inside = None if len(above) > _DEEPEST else _inside(thing)
        if inside is None:
            return self._digest(thing, above)
        return self.parts_of({"": type(thing), **inside}, [*above, thing])

    def _digest(self, thing: object, above: list[object]) -> str | Itself:
        if isinstance(thing, bool | int | float | str | None):
            return f"{type(thing).__name__} {thing!r}"
        try:
            if isinstance(thing, type | ModuleType):
                return self._of_named(thing)
            return digest_of_values(thing, self._of_named, above)
        except Exception:  # whatever pickling runs into in the user's own classes
            return Itself(thing)  # it is another one if it is replaced

    def _of_named(self, thing: object) -> str:
        return str(ContentHasher(self._code).hash(thing))


def _inside(thing: object) -> Parts | None:
    """The parts of a list, of a dictionary with names, or of an object of a user's own class; None for all else.

    Other dictionaries and tuples have one digest: they are caches and states, not places where a world keeps its rules.
    """
    if type(thing) is list and len(thing) <= _LARGEST:
        return {str(i): element for i, element in enumerate(thing)}
    if type(thing) is dict and len(thing) <= _LARGEST and all(type(key) is str for key in thing):
        return thing
    is_plain = not isinstance(thing, type) and type(thing).__reduce_ex__ is object.__reduce_ex__
    has_own_class = type(thing) is SimpleNamespace or (is_plain and not is_library(type(thing).__module__))
    return _attributes(thing) if has_own_class and hasattr(thing, "__dict__") else None


def _changes(before: Tree, after: Tree, path: Path = ()) -> Iterator[Path]:
    """The smallest parts that differ; one with other names or places differs as a whole."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        if before != after:
            yield path
        return
    if path and before.keys() != after.keys():
        yield path
        return
    for name in before.keys() | after.keys():
        yield from _changes(before.get(name, "nothing"), after.get(name, "nothing"), (*path, name))


def _names_read_by(world: World, dag: FoundStates) -> set[str]:
    """Attributes that a world reads when it is reset and asked, found by watching a copy; all, where that fails."""
    everything = set(_attributes(world))
    read: set[str] = set()
    with contextlib.suppress(Exception):  # whatever copying and asking somebody's object runs into
        twin: Any = deep_copy_of(world)
        twin.__class__ = _watched(type(twin), read)
        model, has_durations = as_model(twin), as_model(world).has_own_durations  # which looks at all attributes
        model.initial_state()
        for state, profile in _questions(dag, model):
            transitions = model.transitions(state, profile)
            if transitions is not None and has_durations:
                model.durations(state, profile, transitions)
        return read if "__dict__" not in read else everything
    return everything


def _questions(dag: FoundStates, model: Model) -> list[tuple[State, Sequence[int]]]:
    """States of a DAG, from all its levels, with profiles."""
    states = states_of(dag, N_WATCHED)
    if sum(dag.level_sizes) * model.n_profiles <= N_WATCHED:
        return list(itertools.product(states, model.profiles))
    draw = random.Random(0)
    often = [*states, *draw.choices(states, k=max(0, N_WATCHED - len(states)))]
    return [(state, [draw.randrange(n) for n in model.num_actions_per_agent]) for state in often]


def _watched(kind: Any, read: set[str]) -> type:
    """A class like ``kind`` whose objects tell which attributes are read."""

    def watch(self: object, name: str) -> object:
        read.add(name)
        return kind.__getattribute__(self, name)

    return type(kind.__name__, (kind,), {"__getattribute__": watch})
