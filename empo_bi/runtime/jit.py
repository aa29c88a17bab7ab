"""How kernels are compiled: one set of options, one cache that notices every change.

Four decorators, from the smallest function to the largest:

- ``inlined``: pasted into its callers; for one-line helpers, and for what runs for every (state, profile).
- ``rule``: called by other kernels. Like an inlined function it must not allocate.
- ``allocating``: called by other kernels, makes arrays.
- ``kernel``: called from Python. Only these are cached on disk (beside the source, or in the user's cache folder where that
  is read-only).

Functions that do not allocate are compiled without reference counting, which numba would otherwise do for every array
argument of every call: 420 against 180 ns for one (state, profile), and 95 ns with the hot ones inlined.

The first call of a kernel after an installation or upgrade compiles it, which takes a while; ``compilation`` shows the
progress.

Numba's cache looks only at the file that holds the cached function. Our kernels are spread over modules, so a changed
rule would leave a stale kernel behind; :func:`kernel` therefore stamps the cache with every module of the package that the
kernel's module imports, directly or through others.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import config, njit

from empo_bi.runtime.compilation import compilations
from empo_bi.runtime.numba_internals import listen_to_compilations, stamp_cache, without_reference_counting
from empo_bi.types import Json

_PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(rf"^from ({_PACKAGE.name}[\w.]*) import (\([^)]*\)|.*)$", re.MULTILINE)

_OPTIONS: Json = {"nogil": True, "error_model": "numpy"}
_CALLED_BY_KERNELS = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_UNCOUNTED = {**_CALLED_BY_KERNELS, **without_reference_counting()}

listen_to_compilations(compilations.begin, compilations.end)  # so that nobody thinks the program hangs


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a small or hot function that is pasted into its callers and does not allocate."""
    return njit(forceinline=True, **_UNCOUNTED)(function)


def rule(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call and that does not allocate."""
    return njit(**_UNCOUNTED)(function)


def allocating(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call and that makes arrays."""
    return njit(**_CALLED_BY_KERNELS)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and cache the machine code on disk."""
    try:
        compiled = njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # read-only installation, and no home folder to write to
        _warn("no folder to keep compiled kernels in", "set NUMBA_CACHE_DIR to a folder you may write to")
        return njit(**_OPTIONS)(function)
    if not getattr(config, "DISABLE_JIT", False) and not stamp_cache(
        compiled, source_stamp(Path(function.__code__.co_filename))
    ):
        _warn("this numba is newer than empo_bi, which cannot tell whether cached kernels are current", "use an older numba")
        return njit(**_OPTIONS)(function)
    return compiled


def _warn(reason: str, remedy: str) -> None:
    message = f"{reason}, so every start compiles them anew (10 to 20 s); {remedy}"
    warnings.warn(message, RuntimeWarning, stacklevel=3)


def source_stamp(path: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, time of change and size of a module's source and of all it imports from this package."""
    found: dict[str, tuple[int, int]] = {}
    waiting = [str(path)]
    while waiting:
        file = waiting.pop()
        if file not in found and os.path.isfile(file):
            about = os.stat(file)
            found[file] = about.st_mtime_ns, about.st_size
            waiting += _imports_of(file, *found[file])
    return tuple((Path(file).relative_to(_PACKAGE).as_posix(), *found[file]) for file in sorted(found))


@cache
def _imports_of(file: str, changed: int, size: int) -> list[str]:
    """Files of this package that a source may import, as it was at a time; each kernel of a module asks for the same."""
    files = []
    for module, names in _IMPORT.findall(Path(file).read_text(encoding="utf-8")):
        # `from package import module` or `from module import name`: whichever exists.
        home = os.path.join(_PACKAGE, *module.split(".")[1:])
        files += [f"{home}.py", *(os.path.join(home, f"{name}.py") for name in re.findall(r"\w+", names))]
    return files
