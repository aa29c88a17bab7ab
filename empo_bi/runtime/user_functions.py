"""Functions of users, found by name: metrics, and functions that make worlds."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from empo_bi.errors import MetricError
from empo_bi.runtime.digests import digest_of

BESIDE = "__empo_bi_beside__"  # where a module has the digest of those that it imports from its own folder


def function_of(reference: str, folder: Path, expected: str) -> Callable[..., Any]:
    """What ``module:function`` or ``path.py:function`` stands for; ``expected`` is an example of what it might be."""
    module_name, _, function_name = reference.rpartition(":")
    try:
        if module_name.endswith(".py"):
            module = _module_at(folder / Path(module_name).expanduser())
        else:
            module = _module_called(module_name, folder)
    except (Exception, SystemExit) as error:
        raise MetricError(
            f"{reference}: cannot be imported ({type(error).__name__}: {error}); expected {expected}"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        there = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
        raise MetricError(
            f"{reference}: there is no function {function_name!r} in it, only {', '.join(there) or 'none at all'}"
        )
    return function


def text_key(function: Any, reference: str) -> str:
    """For what cannot be told from others, such as a function made by another one: the text of its module."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    return digest_of(f"{reference} {source_text(function)} {getattr(module, BESIDE, None)}")


def source_text(function: Any) -> str | None:
    """Of the module of a function; None if there is none."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    file = getattr(module, "__file__", None)
    return Path(file).read_text(encoding="utf-8", errors="replace") if file is not None and file.endswith(".py") else None


def _module_at(path: Path) -> Any:
    """A module from a file, whether or not its folder is one that Python looks into."""
    path = path.resolve()
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file")
    text = path.read_text(encoding="utf-8")
    name = f"empo_bi_file_{digest_of(f'{path} {text}')}"  # a file that was changed is another module
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before, writes_none = set(sys.modules), sys.dont_write_bytecode
    sys.modules[name] = module  # where inspect looks for sources
    sys.path.insert(0, str(path.parent))  # it may import what lies beside it
    try:
        # Python takes a file that was changed within the same second for the one that it has compiled: not by its loader,
        # and what lies beside it is not to be compiled for others.
        sys.dont_write_bytecode = True
        exec(compile(text, str(path), "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    finally:
        sys.dont_write_bytecode = writes_none
        sys.path.remove(str(path.parent))
        beside = _forgotten(set(sys.modules) - before - {name}, path.parent)
    vars(module)[BESIDE] = digest_of(str(beside))
    return module


def _forgotten(names: set[str], folder: Path) -> list[tuple[str, str]]:
    """Forget modules that lie in a folder: another folder may have others of the same names, and these may be changed.

    Whoever has imported them keeps them. Returns their names and texts.
    """
    found = []
    for name in sorted(names):
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and file.endswith(".py") and folder in Path(file).parents:
            found.append((name, Path(file).read_text(encoding="utf-8", errors="replace")))
            del sys.modules[name]
    return found


def _module_called(name: str, folder: Path) -> Any:
    if (folder / f"{name.replace('.', '/')}.py").is_file() and name not in sys.modules:
        return _module_at(folder / f"{name.replace('.', '/')}.py")
    return importlib.import_module(name)
