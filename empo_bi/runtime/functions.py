"""What a function is made of, and digests of values that may hold functions: for comparisons within one process."""

from __future__ import annotations

import dis
import functools
import io
import pickle
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType

from empo_bi.runtime.digests import digest
from empo_bi.types import Json

NamedDigest = Callable[[object], str]  # of a user's class or module
StandIn = Callable[[object], object]  # what stands for an object, or the object itself
Reduced = tuple[type, tuple[object, ...]]  # what is made of which parts; NotImplemented leaves it to pickle


def globals_used_by(function: FunctionType) -> Json:
    """Values of global names that a function mentions, as they are now; library code is left out."""
    names, waiting = set(), [function.__code__]
    while waiting:
        code = waiting.pop()
        names |= {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    found = {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
    return {name: value for name, value in found.items() if not is_library(home_of(value))}


def home_of(value: object) -> str | None:
    """The module of a function or class, the name of a module; None for values."""
    if isinstance(value, ModuleType):
        return value.__name__
    return value.__module__ if isinstance(value, type | FunctionType | BuiltinFunctionType) else None


def bytecode(code: CodeType) -> list[object]:
    constants = [bytecode(constant) if isinstance(constant, CodeType) else constant for constant in code.co_consts]
    return [code.co_name, code.co_code, code.co_names, code.co_varnames, constants]


@functools.cache
def is_library(module: str | None) -> bool:
    """Whether a module is Python's own, installed, or ours: such code does not change between two runs of a study."""
    if module is None or module == "__main__":
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return module.split(".")[0] in sys.stdlib_module_names
    path = Path(file).resolve()
    standard = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")]
    is_installed = any(part in ("site-packages", "dist-packages") for part in path.parts)
    return is_installed or path.is_relative_to(_OURS) or any(path.is_relative_to(folder) for folder in standard)


_OURS = Path(__file__).resolve().parents[1]


# --- digests ----------------------------------------------------------------------------------------------------------


def digest_of_values(
    thing: object, of_named: NamedDigest, above: Sequence[object] = (), stands_for: StandIn = lambda thing: thing
) -> str:
    """A digest of all that pickle tells about a thing, with functions as what they are made of, lambdas and closures too.

    Hundreds of times as fast as joblib's, and good within one process. ``of_named`` has the digest of a user's class or
    module; ``above`` are things that hold this one, which are not looked into. Fails where pickling fails.
    """
    written = io.BytesIO()
    _Pickler(written, of_named, above, stands_for).dump(thing)
    return digest(written.getvalue())


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, of_named: NamedDigest, above: Sequence[object], stands_for: StandIn) -> None:
        super().__init__(file, protocol=5)
        self._of_named, self._above, self._stands_for = of_named, above, stands_for
        self._met: dict[FunctionType, int] = {}  # by the order in which they were met: some call themselves

    def reducer_override(self, thing: object) -> Reduced:
        """Asked about all but numbers, texts and collections."""
        if isinstance(thing, FunctionType) and not is_library(thing.__module__):
            return self._function(thing)
        if isinstance(thing, type | ModuleType) and not is_library(home_of(thing)):
            return str, (self._of_named(thing),)
        if isinstance(thing, ModuleType):
            return str, (f"module {thing.__name__}",)
        if any(thing is one for one in self._above):
            return str, ("above",)
        other = self._stands_for(thing)
        return NotImplemented if other is thing else (list, (other,))

    def _function(self, function: FunctionType) -> Reduced:
        if function in self._met:
            return str, (f"function {self._met[function]}",)
        self._met[function] = len(self._met)
        return list, (
            function.__qualname__,
            bytecode(function.__code__),
            function.__defaults__,
            function.__kwdefaults__,
            [_content_of(cell) for cell in function.__closure__ or ()],
            globals_used_by(function),
            vars(function),
        )


def _content_of(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return "empty"
