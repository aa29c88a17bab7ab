"""Users' functions, loaded by name: metrics, and functions that make worlds."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from empo_bi.errors import MetricError
from empo_bi.runtime.digests import digest_of

REFERENCE = re.compile(r"(.+\.py|[\w.]+):\w+")  # module:function, or path.py:function
BESIDE = "__empo_bi_beside__"  # attribute of a module: the digest of what it imports from its own folder


def function_of(reference: str, folder: Path, expected: str) -> Callable[..., Any]:
    """The function that ``module:function`` or ``path.py:function`` names; ``expected`` is an example for messages."""
    module_name, _, function_name = reference.rpartition(":")
    try:
        if module_name.endswith(".py"):
            module = _module_at(folder / Path(module_name).expanduser())
        else:
            module = _module_named(module_name, folder)
    except (Exception, SystemExit) as error:
        raise MetricError(
            f"{reference}: cannot be imported ({type(error).__name__}: {error}); expected {expected}"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        there = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise MetricError(
            f"{reference}: the module has no function {function_name!r}; it has {', '.join(there) or 'none at all'}"
        )
    return function


def made_by(given: object, argument: object, expected: str) -> object:
    """What a user gave, or what the function makes of ``argument`` that a text names, below the present folder."""
    if not isinstance(given, str):
        return given
    if not REFERENCE.fullmatch(given):
        raise ValueError(f"{given!r} does not name a function; expected {expected}")
    return function_of(given, Path.cwd(), expected)(argument)


def text_key(function: object, reference: str) -> str:
    """A key for functions that cannot be fingerprinted, such as closures: the digest of their module's text."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    return digest_of(f"{reference} {source_text(function)} {getattr(module, BESIDE, None)}")


def source_text(function: object) -> str | None:
    """The source of a function's module; None if there is none."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    return Path(file).read_text(encoding="utf-8", errors="replace") if file is not None and file.endswith(".py") else None


def _module_at(path: Path) -> ModuleType:
    """A module from a file, whether or not its folder is on Python's path."""
    path = path.resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    text = path.read_text(encoding="utf-8")
    name = f"empo_bi_file_{digest_of(f'{path} {text}')}"  # a changed file is another module
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before, writes_none = set(sys.modules), sys.dont_write_bytecode
    sys.modules[name] = module  # where inspect looks for sources
    sys.path.insert(0, str(path.parent))  # it may import what lies beside it
    try:
        # Not by Python's loader, which misses changes within the same second; and no byte code of neighbouring modules
        # may be left for others.
        sys.dont_write_bytecode = True
        exec(compile(text, str(path), "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.dont_write_bytecode = writes_none
        sys.path.remove(str(path.parent))
        beside = _unload(set(sys.modules) - before - {name}, path.parent)
    vars(module)[BESIDE] = digest_of(str(beside))
    return module


def _unload(names: set[str], folder: Path) -> list[tuple[str, str]]:
    """Unload modules of a folder: another folder may have modules of the same names, and these may change.

    Modules that have imported them keep them. Returns their names and texts.
    """
    found = []
    for name in sorted(names):
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and file.endswith(".py") and folder in Path(file).parents:
            found.append((name, Path(file).read_text(encoding="utf-8", errors="replace")))
            del sys.modules[name]
    return found


def _module_named(name: str, folder: Path) -> ModuleType:
    if (folder / f"{name.replace('.', '/')}.py").is_file() and name not in sys.modules:
        return _module_at(folder / f"{name.replace('.', '/')}.py")
    return importlib.import_module(name)
