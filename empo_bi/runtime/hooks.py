"""Methods of core classes that optional rooms provide: exports, tables, films.

The core never imports these rooms. The front door, ``empo_bi/__init__.py``, registers where each method is found, and it
is imported on the first call.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

_PROVIDERS: dict[str, str] = {}  # filled once, when the package is imported


def register(providers: Mapping[str, str]) -> None:
    """Say where methods are found, by name: ``{"Dag.to_drn": "empo_bi.export.drn:write_drn"}``."""
    _PROVIDERS.update(providers)


def provider_of(method: str) -> Callable[..., Any]:
    """The function behind a method, such as ``"Dag.to_drn"``."""
    module, _, function = _PROVIDERS[method].partition(":")
    return getattr(importlib.import_module(module), function)
