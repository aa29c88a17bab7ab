"""Checks of arguments that many functions share; messages begin with the argument's name as the caller knows it."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import numpy as np

from empo_bi.runtime.wording import did_you_mean, near_misses, short_repr

F = TypeVar("F", bound=Callable[..., object])


def suggests_names(
    *, also: Iterable[str] = (), elsewhere: Mapping[str, str] | None = None, called: str | None = None
) -> Callable[[F], F]:
    """Decorate a function, or a class for its constructor: a wrong keyword is a TypeError that suggests the right one.

    Parameters
    ----------
    also : names that the function takes as ``**options``
    elsewhere : of names that belong to something else, what to do with them
    called : what users call it; by default its name
    """

    def decorate(function: F) -> F:
        if isinstance(function, type):
            _suggest_for_constructor(function, elsewhere)
            return function
        name = function.__name__ if called is None else called
        known = [*_keywords(function), *also]

        @functools.wraps(function)
        def checked(*args: object, **options: object) -> object:
            for wrong in options:
                if wrong not in known:
                    raise TypeError(unexpected_keyword(name, wrong, options[wrong], known, elsewhere or {}))
            return function(*args, **options)

        return checked  # type: ignore[return-value]

    return decorate


def unexpected_keyword(name: str, wrong: str, value: object, known: Iterable[str], elsewhere: Mapping[str, str]) -> str:
    """In Python's own words, with what was probably meant, or all names there are."""
    said = f"{name}() got an unexpected keyword argument {wrong!r}"
    hint = did_you_mean(wrong, known)
    near = near_misses(wrong, elsewhere) if wrong not in elsewhere else [wrong]
    if near and (near[0] == wrong or not hint):
        meant = "" if near[0] == wrong else f" if you mean {near[0]!r},"
        return f"{said};{meant} {elsewhere[near[0]].format(value=short_repr(value, 40))}"
    return f"{said}.{hint or ' It takes ' + ', '.join(known) + '.'}"


def _suggest_for_constructor(cls: type, elsewhere: Mapping[str, str] | None) -> None:
    cls.__init__ = suggests_names(elsewhere=elsewhere, called=cls.__name__)(cls.__init__)  # type: ignore[misc]


def _keywords(function: Callable[..., object]) -> list[str]:
    """Parameters that can be given by name."""
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = [name for name, about in inspect.signature(function).parameters.items() if about.kind in by_name]
    return [name for name in found if name != "self"]


def check_flags(**flags: object) -> None:
    """True or False; also 1, 0 and None. Strings are refused: ``"False"`` would count as true."""
    for name, value in flags.items():
        is_flag = value is None or isinstance(value, bool | np.bool_) or (isinstance(value, int) and value in (0, 1))
        if not is_flag:
            raise TypeError(f"{name}={short_repr(value)}; give True or False")


def check_path(name: str, value: object, expected: str) -> None:
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise TypeError(f"{name}={short_repr(value)}; give {expected}")


def check_function(name: str, value: object, expected: str) -> None:
    """Something that can be called, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name}={short_repr(value)} cannot be called; give {expected}, or None")


def check_kind(name: str, value: object, kind: type) -> None:
    """An object of a class, or None."""
    if value is not None and not isinstance(value, kind):
        raise TypeError(f"{name}={short_repr(value)} is a {type(value).__name__}; give a {kind.__name__}, or None")
