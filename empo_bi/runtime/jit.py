"""How kernels are compiled: one set of options, one cache that notices every change.

``rule`` is for functions called by other kernels, ``kernel`` for those called from Python. Only the latter are cached on
disk (beside the source, or in the user's cache folder where that is read-only).

Numba's cache looks only at the file that holds the cached function. Our kernels are spread over modules, so a changed
rule would leave a stale kernel behind; :func:`kernel` therefore stamps the cache with every source file of the package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def rule(function: Callable[..., Any]) -> Any:
    """Compile a function that only other kernels call."""
    return njit(**_OPTIONS)(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and keep the machine code on disk."""
    compiled = njit(cache=True, **_OPTIONS)(function)
    cache_file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if hasattr(cache_file, "_source_stamp"):
        cache_file._source_stamp = source_stamp()  # type: ignore[union-attr]
    return compiled


@cache
def source_stamp() -> tuple[tuple[str, int, int], ...]:
    """Name, time of change and size of every source file of the package."""
    root = Path(__file__).parents[1]
    stats = ((path.relative_to(root).as_posix(), path.stat()) for path in sorted(root.rglob("*.py")))
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)
