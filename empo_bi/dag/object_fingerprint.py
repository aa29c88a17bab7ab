"""Digests of users' things (worlds, goals, beliefs, priors) that count their values and the source of their code.

Two things that differ in anything that may matter get different digests, the same thing gets the same one in every process,
and where that cannot be told, there is none. A store made for one thing is then never taken for that of another.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from empo_bi.runtime.functions import bytecode, globals_used_by, home_of, is_library
from empo_bi.runtime.joblib_internals import NumpyHasher
from empo_bi.world.as_model import as_model

_PLAIN = {bool, int, float, complex, str, bytes, tuple, list, dict, type(None), np.ndarray}  # what pickle tells rightly


class ContentHasher(NumpyHasher):
    """joblib's hasher, except that functions and classes are identified by their source, not by their names, at any depth.

    It pickles a thing and hashes the bytes; so whatever a thing tells pickle about itself counts, things that are shared are
    written once, and cycles are no trouble.
    """

    def __init__(self, code: dict[Any, str] | None = None) -> None:
        super().__init__(hash_name="sha1")
        self._code: dict[Any, str] = {} if code is None else code  # digests of classes, functions and modules met so far
        self._worlds: dict[int, str] = {}

    def save(self, thing: Any) -> None:
        super().save(self._told(thing))

    def _told(self, thing: Any) -> Any:
        """What stands for a thing that pickle would tell by its name, or in an order that changes."""
        if type(thing) in _PLAIN:
            return thing
        if isinstance(thing, type):
            return thing if is_library(thing.__module__) else self._class(thing)
        if isinstance(thing, FunctionType):
            return thing if is_library(thing.__module__) else self._function(thing)
        if isinstance(thing, ModuleType):
            return f"module {thing.__name__}" if is_library(thing.__name__) else self._module(thing)
        if isinstance(thing, frozenset):
            return ["frozenset", *sorted(ContentHasher(self._code).hash(element) for element in thing)]
        if type(thing) is set:
            return ["set", *sorted(ContentHasher(self._code).hash(element) for element in thing)]
        if isinstance(thing, MethodType) and getattr(type(thing.__self__), thing.__name__, None) != thing.__func__:
            return ["method", thing.__func__, thing.__self__]  # bound by hand, or a class method
        if isinstance(thing, functools._lru_cache_wrapper):
            return ["cached", thing.__wrapped__]
        if _has(thing, "py_func") and is_library(type(thing).__module__):
            return ["compiled", thing.py_func]  # by numba
        if _has(thing, "transition_probabilities"):
            return self._world(thing)
        return thing

    def _function(self, function: FunctionType) -> Any:
        if function.__closure__ or "<" in function.__qualname__:
            raise TypeError(f"{function.__qualname__} cannot be distinguished from others")
        if function not in self._code:
            self._code[function] = f"function {function.__qualname__}"  # for those that call themselves
            self._code[function] += " " + ContentHasher(self._code).hash(
                [source_of(function), *_about(function), vars(function)]  # which has what it wraps, too
            )
        return self._code[function]

    def _module(self, module: ModuleType) -> Any:
        """A module that a function uses: its source, and its values as they are now."""
        if module not in self._code:
            self._code[module] = f"module {module.__name__}"
            values = {
                name: value for name, value in vars(module).items() if name[:2] != "__" and not is_library(home_of(value))
            }
            self._code[module] += " " + ContentHasher(self._code).hash([source_of(module), values])
        return self._code[module]

    def _class(self, kind: type) -> str:
        if kind not in self._code:
            self._code[kind] = f"class {kind.__qualname__}"  # for those that refer to themselves
            self._code[kind] += " " + ContentHasher(self._code).hash(code_of(kind))
        return self._code[kind]

    def _world(self, world: Any) -> Any:
        if id(world) in self._worlds:
            return self._worlds[id(world)]
        self._worlds[id(world)] = f"world {len(self._worlds)}"
        return as_model(world).hashed


def digest_of_content(thing: Any) -> str | None:
    """A digest of all that a thing holds; None if it cannot be distinguished from others."""
    try:
        return str(ContentHasher().hash(thing))
    except Exception:  # whatever pickling runs into in the user's own classes, or where there is no source
        return None


def code_of(kind: type) -> list[Any]:
    """What defines a class and its bases: their source, what their functions use from outside, and attributes' values."""
    found: list[Any] = []
    for base in kind.__mro__:
        if is_library(base.__module__):
            found.append(base)
            continue
        source_file = getattr(sys.modules.get(base.__module__), "__file__", None)
        found += [base.__qualname__, source_of(base)]
        for name, value in sorted(vars(base).items()):
            functions = _functions_in(value)
            if functions:
                found.append([name, [_beyond_the_source(function, source_file) for function in functions]])
            elif not name.startswith(("__", "_abc_")) and not is_library(
                type(value).__module__ if _has(value, "__get__") else None
            ):
                found.append([name, value])
    return found


def _beyond_the_source(function: FunctionType, source_file: str | None) -> Any:
    """What the source of a class does not tell about one of its functions."""
    code = function.__code__
    if source_file is not None and code.co_filename != source_file:
        is_made = code.co_filename.startswith("<") or is_library(function.__globals__.get("__name__", ""))
        return None if is_made else function  # by dataclasses and the like, or it was put there by somebody else
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    closed_over = [content for content in cells if not isinstance(content, type)]  # super() closes over the class itself
    return [closed_over, *_about(function)]


def _about(function: FunctionType) -> list[Any]:
    """What distinguishes a function from another of the same file; which of two of the same name it is, too."""
    code = function.__code__
    return [
        function.__qualname__,
        bytecode(code),
        function.__defaults__,
        function.__kwdefaults__,
        globals_used_by(function),
    ]


def _functions_in(value: Any) -> list[FunctionType]:
    """The functions in what a class has: a function, or what decorators make of it."""
    if isinstance(value, FunctionType):
        return [value]
    if isinstance(value, staticmethod | classmethod):
        return _functions_in(value.__func__)
    if isinstance(value, property):
        return [function for part in (value.fget, value.fset, value.fdel) for function in _functions_in(part)]
    if isinstance(value, functools.cached_property):
        return _functions_in(value.func)
    if isinstance(value, functools._lru_cache_wrapper):
        return _functions_in(value.__wrapped__)
    return []


def _has(thing: Any, name: str) -> bool:
    """Whether a thing has an attribute, found without running anybody's ``__getattr__``."""
    return inspect.getattr_static(thing, name, None) is not None


def source_of(thing: Any) -> Any:
    """The source of the module that defines something, since it may use what stands beside it.

    Where there is none, as for what was typed in, that of the thing itself; and where there is not even that, its bytecode.
    """
    module = thing if isinstance(thing, ModuleType) else inspect.getmodule(thing)
    for source in (module, thing):
        with contextlib.suppress(OSError, TypeError):
            if source is not None:
                return inspect.getsource(source)
    parts = [thing] if isinstance(thing, FunctionType) else vars(thing).values()
    functions = [function for part in parts for function in _functions_in(part)]
    if not functions and not isinstance(thing, type):
        raise TypeError(f"{thing!r} has no source")
    return [bytecode(function.__code__) for function in functions]
