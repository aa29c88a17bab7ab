"""What an object of a user's class is made of, part by part, so that a later look notices what somebody has changed."""

from __future__ import annotations

import inspect

from empo_bi.runtime.functions import digest_of_values, is_library
from empo_bi.world.python_model import NOT_PART_OF_A_WORLD, attributes_of

Part = object  # a digest, a plain value, or the thing itself
Parts = dict[tuple[str, str], Part]  # by class (empty for the object's own attributes) and name


MISSING = object()


class Itself:
    """Stands for something without a digest: another thing is another one. It is held, so that its address stays its own."""

    def __init__(self, thing: object) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Itself) and self.thing is other.thing

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[Itself], tuple[object]]:
        return Itself, (object(),)  # in another process it is another thing


def noticed_parts(thing: object) -> Parts:
    """The attributes of an object, and what its classes have, as far as they are the user's own."""
    attributes: dict[str, object] = getattr(thing, "__dict__", {})
    own = {("", name): part_of(value, [thing]) for name, value in attributes.items() if name not in NOT_PART_OF_A_WORLD}
    inherited = {
        (f"{place} {base.__qualname__}", name): Itself(value) if hasattr(value, "__get__") else part_of(value, [thing])
        for place, base in enumerate(type(thing).__mro__)
        if not is_library(base.__module__)
        for name, value in vars(base).items()
        if name not in {"__dict__", "__weakref__", "__doc__", "__module__", "_abc_impl"}
    }
    return own | inherited


def changed(before: Parts, after: Parts) -> set[tuple[str, str]]:
    return {name for name in before.keys() | after.keys() if before.get(name, MISSING) != after.get(name, MISSING)}


def part_of(thing: object, above: list[object]) -> Part:
    if isinstance(thing, bool | int | float | str | None):
        return f"{type(thing).__name__} {thing!r}"
    if isinstance(thing, type):
        return Itself(thing)
    try:
        return digest_of_values(thing, _name_of, above, content_of_world)
    except Exception:  # whatever pickling runs into in the user's own classes
        return Itself(thing)


def content_of_world(thing: object) -> object:
    """A world that another one holds, without what planning leaves there, and what draws random numbers."""
    is_world = inspect.getattr_static(thing, "transition_probabilities", None) is not None
    return (type(thing).__qualname__, attributes_of(thing)) if is_world else thing


def _name_of(named: object) -> str:
    return f"{getattr(named, '__module__', '')} {getattr(named, '__qualname__', named)}"
